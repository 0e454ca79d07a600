#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Disks that fail in the midst of it: EIO, no room, read-only from now on, writes that take a part, fsync(2) that says
that nothing was kept. Who writes ends with the file's name and the reason, leaves what can be read or nothing, and the
command that is measured comes to its end. Witness: the file system, which is the test's own."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from bad_disk import BadDisk

PRCB = os.environ["PRCB"]
PROGRAM = os.environ.get("WHY_SHARES")
REASONS = {"eio": b"I/O error|Input/output error", "nospc": b"disk is full|No space left", "rofs": b"readonly|Read-only"}


def prcb(*arguments, **options):
    return subprocess.run([PRCB, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
                          **options)


@unittest.skipIf(os.geteuid(), "needs root, for the mount")
@unittest.skipUnless(os.path.exists("/dev/fuse"), "no /dev/fuse")
class Failing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prcb-bad-disk-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.place = os.path.join(self.folder, "disk")
        os.mkdir(self.place)
        try:
            self.disk = BadDisk(self.place)
        except OSError as error:
            self.skipTest(f"no mount: {error}")
        self.addCleanup(self.disk.close)
        self.path = os.path.join(self.place, "file")

    def empty(self):
        self.disk.fail("")
        for name in os.listdir(self.place):
            os.unlink(os.path.join(self.place, name))

    def record(self, path, **options):
        return prcb("record", "--tier", "perf", "-o", path, "--", "sh", "-c",
                    "for i in $(seq 100); do /bin/true; done; echo ran", **options)

    def check_failed(self, result, way):
        self.assertEqual(result.returncode, 1, (way, result))
        self.assertRegex(result.stderr, REASONS[way], way)
        self.assertIn(self.place.encode(), result.stderr, way)
        self.assertLess(result.stderr.count(b"\n"), 4, result.stderr)
        self.assertGreater(self.disk.failed, 0)

    def test_record(self):
        for way in REASONS:
            for after in 0, 20:
                self.disk.fail(way, after)
                result = self.record(self.path)
                self.check_failed(result, way)
                self.disk.fail("")
                if way != "rofs" or b"ran\n" in result.stdout:  # else nothing could be removed either
                    self.assertEqual(os.path.exists(self.path), b"ran\n" in result.stdout, (way, after))
                if os.path.exists(self.path) and b"ran\n" in result.stdout:
                    report = prcb("report", self.path)
                    self.assertEqual(report.returncode, 0, (way, after, report))
                    self.assertIn(b"incomplete", report.stdout + report.stderr)
                self.empty()

    def test_top(self):
        """The same writer, over and over: into a file, and into prcb-history's folder."""
        for target, options in (self.path, ("-b",)), (self.place, ("-q",)):
            for way in REASONS:
                for after in 0, 30:
                    self.disk.fail(way, after)
                    result = prcb("top", *options, "--tier", "perf", "-p", str(os.getpid()), "-n", "12", "-d", "0.1", "-w",
                                  target)
                    self.check_failed(result, way)
                    self.empty()

    def test_reports(self):
        """What is written once is there as a whole, or not at all."""
        recording = os.path.join(self.folder, "recording")
        self.assertEqual(self.record(recording).returncode, 0)
        for options in ("--html",), ("--perfetto",), ("--pprof",), ("--parquet",):
            probe = prcb("report", *options, "-o", self.path, recording)
            if probe.returncode:
                continue  # this build, or this recording, has it not
            self.assertGreater(len(os.listdir(self.place)), 0)
            for way in REASONS:
                shutil.rmtree(self.path, ignore_errors=True)
                self.empty()
                self.disk.fail(way)
                self.check_failed(prcb("report", *options, "-o", self.path, recording), way)
                self.disk.fail("")
                self.assertEqual(os.listdir(self.place), [], (options, way))

    def test_writes_that_take_a_part(self):
        self.disk.fail("short")
        self.assertEqual(self.record(self.path).returncode, 0)
        self.assertGreater(self.disk.failed, 10)
        report = prcb("report", "-j", self.path)
        self.assertEqual((report.returncode, b'"complete":true' in report.stdout.replace(b" ", b"")), (0, True), report)

    @unittest.skipUnless(PROGRAM, "this build has no program that waits")
    def test_serve(self):
        """The address is for a file there, or the socket is, or the programs are whose functions it names: it ends at once
        and says why, or goes on without the names."""
        program = self.path + "-program"
        shutil.copy(PROGRAM, program)
        os.chmod(program, 0o755)
        serve = ("serve", "--tier", "perf", "-d", "0.1")
        with subprocess.Popen([program, "60", "20"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as watched:
            self.addCleanup(watched.kill)
            serve += "-p", str(watched.pid)
            for way in REASONS:
                self.disk.fail(way)
                self.check_failed(prcb(*serve, "--socket", self.path), way)
                self.disk.fail("")
                with open(self.path, "wb") as out:
                    self.disk.fail(way)
                    result = subprocess.run([PRCB, *serve], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                            timeout=60, check=False)
                self.assertEqual(result.returncode, 1, (way, result))
                self.assertRegex(result.stderr, REASONS[way], way)
                self.disk.fail("")
                os.unlink(self.path)
            with open(program, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            for name in "read", "rofs":
                with subprocess.Popen([PRCB, *serve, "--socket", self.path], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as server:
                    self.addCleanup(server.kill)
                    token = re.search(rb"token=\w+", server.stdout.readline() + server.stdout.readline())[0]
                    self.disk.fail(name)
                    with socket.socket(socket.AF_UNIX) as reader:
                        reader.settimeout(60)
                        reader.connect(self.path)
                        reader.sendall(b"GET /events?" + token + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        shown = b""
                        while shown.count(b"data: ") < 5:
                            part = reader.recv(65536)
                            self.assertTrue(part, shown)
                            shown += part
                    self.assertIn(b"file-program", shown)
                    server.send_signal(signal.SIGINT)  # and the socket of a disk that only reads stays
                    self.assertEqual((server.wait(60), server.stderr.read()), (0, b""))
                    self.disk.fail("")
            self.assertIsNone(watched.poll())
            watched.kill()

    def test_a_recording_that_cannot_be_read(self):
        self.assertEqual(self.record(self.path).returncode, 0)
        with open(self.path, "r+b") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self.disk.fail("read")
        for command in ("report",), ("report", "--html", "-o", os.path.join(self.folder, "page")), ("top", "-b", "-r"):
            result = prcb(*command, self.path)
            self.assertEqual(result.returncode, 1, result)
            self.assertRegex(result.stderr, b"I/O error|Input/output error")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "page")))


if __name__ == "__main__":
    unittest.main()
