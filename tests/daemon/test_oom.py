#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each program is killed for want of memory: while it works it comes into a cgroup that has none left. Nobody else
hangs, what it wrote can be read, and the next one starts.

Witness: the kernel's count of processes that it killed for that in the cgroup."""
import contextlib
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case import needs  # pylint: disable=wrong-import-position
from wire import FOLLOW_ALL, PROCESS, Client, Daemon  # pylint: disable=wrong-import-position

PRCBD, PRCB, EXPORTER = (os.environ.get(name, "") for name in ("PRCBD", "PRCB", "PRCB_EXPORTER"))
DEADLINE = 60
KINDS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
         ("/sys/fs/cgroup", "memory.max", "memory.events"))


def until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class Poor:
    """A cgroup without memory."""

    def __init__(self):
        for root, limit, events in KINDS:
            self.folder = f"{root}/prcb-oom-{os.getpid()}"
            self.events = f"{self.folder}/{events}"
            with contextlib.suppress(OSError):
                os.mkdir(self.folder)
            if os.path.exists(f"{self.folder}/{limit}"):
                with open(f"{self.folder}/{limit}", "w", encoding="ascii") as file:
                    file.write("0")
                return
            self.remove()
        raise unittest.SkipTest("no cgroup that limits memory can be made")

    def remove(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)

    def killed(self):
        with open(self.events, encoding="ascii") as file:
            return dict(line.split() for line in file)["oom_kill"]

    def take(self, process):
        before = self.killed()
        with open(f"{self.folder}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(process.pid))
        return before


class OutOfMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.poor = Poor()
        cls.addClassCleanup(cls.poor.remove)

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.file = os.path.join(self.folder, "recording")

    def start(self, *command, **options):
        process = subprocess.Popen(command, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ends(self, process, ask=lambda: None):
        before = self.poor.take(process)

        def ended():
            with contextlib.suppress(OSError):
                ask()
            return process.poll() is not None
        until(ended, "it goes on without memory")
        self.assertEqual(process.returncode, -9)
        self.assertNotEqual(self.poor.killed(), before)

    def report(self):
        result = subprocess.run([PRCB, "report", self.file], capture_output=True, text=True, timeout=DEADLINE,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("incomplete", result.stdout + result.stderr)

    def test_record(self):
        process = self.start(PRCB, "record", "-a", "--tier", "perf", "-F", "500", "-o", self.file)
        until(lambda: os.path.exists(self.file + "-wal") and os.path.getsize(self.file + "-wal") > 65536, "a recording")
        self.ends(process)
        self.report()

    def test_top(self):
        ours, its = pty.openpty()
        self.addCleanup(os.close, ours)
        process = self.start(PRCB, "top", "--tier", "perf", stdin=its, stdout=its, stderr=its,
                             env=os.environ | {"TERM": "xterm"})
        os.close(its)
        self.assertTrue(os.read(ours, 1))
        os.set_blocking(ours, False)
        self.ends(process, lambda: os.write(ours, b"s") and os.read(ours, 65536))

    def test_push(self):
        """Also the process that sends, which is another user's: what came of it is told, and nobody waits for it."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            push = (PRCB, "push", "--to", url, "--as", "otlp", "--tier", "perf", "--every", "0.2",
                    "-p", str(os.getpid()))
            process = self.start(*push)
            until(lambda: self.child(process), "its sender")
            self.ends(process)
            process = self.start(*push)
            until(lambda: self.child(process), "its sender")
            self.poor.take(self.child(process))
            until(lambda: process.poll() is not None, "it goes on without its sender")
            self.assertGreater(process.returncode, 0)

    def child(self, process):
        """The sender, once it runs its program."""
        class Child:
            pid = 0
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            for pid in file.read().split():
                with open(f"/proc/{pid}/comm", encoding="ascii") as name:
                    if name.read().startswith("prcb-push"):
                        Child.pid = int(pid)
        return Child if Child.pid else None

    @unittest.skipIf(not EXPORTER, "no exporter is built")
    def test_exporter(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        command = (EXPORTER, f"--web.listen-address=127.0.0.1:{port}", "--tier=perf")

        def scrape():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE) as answer:
                    return b"prcb_" in answer.read()
            except (urllib.error.URLError, OSError):
                return False
        process = self.start(*command)
        until(scrape, "an answer")
        self.ends(process, scrape)
        self.start(*command)
        until(scrape, "an answer of the next one")

    @unittest.skipIf(needs(), needs())
    @unittest.skipIf(not PRCBD, "no prcbd is built")
    def test_prcbd(self):
        """The next one takes over its pins, and removes what is left at its end."""
        daemon = Daemon(PRCBD)
        self.addCleanup(lambda: self.assertFalse(os.path.exists(daemon.pins)))
        self.addCleanup(daemon.stop)
        client = Client(daemon.socket).open(4)
        client.profile(PROCESS, os.getpid(), FOLLOW_ALL)

        def ask():
            with contextlib.suppress(Exception):
                Client(daemon.socket).open(4).close()
        self.ends(daemon.process, ask)
        daemon.start()
        Client(daemon.socket).open(4).close()

    @unittest.skipIf(needs(), needs())
    def test_flight(self):
        log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.addCleanup(log.close)

        def started():
            process = self.start(PRCB, "flight", "-o", self.folder, "--size", "16", stderr=log)
            seen = os.path.getsize(log.name)

            def said():
                if process.poll() is not None:
                    raise unittest.SkipTest("no eBPF")
                with open(log.name, encoding="utf-8") as file:
                    file.seek(seen)
                    return "keeping the last" in file.read()
            until(said, "it keeps nothing")
            return process
        self.ends(started())
        started()

    @unittest.skipIf(needs(), needs())
    def test_why(self):
        """Its children are killed as well, or end with it."""
        process = self.start(PRCB, "why", "-a", "--for", "60")
        children = f"/proc/{process.pid}/task/{process.pid}/children"

        def pids():
            with open(children, encoding="ascii") as file:
                return file.read().split()
        until(pids, "it has no child")
        left = pids()
        self.ends(process)
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left), "its children go on")


if __name__ == "__main__":
    unittest.main()
