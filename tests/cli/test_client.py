#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The library against whoever listens on prcbd's socket: one that drips, passes too much, passes
what is no memory, or writes nonsense into memory that is. Its answers come from docs/protocol.md.

PRCB names the program under test, which is the client."""

import ctypes
import fcntl
import json
import mmap
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(BUILD, "src/tools/cli/prcb"))

HELLO, OPEN, PROFILE, PROGRAMS = 1, 2, 3, 10
HEADER = struct.Struct("=IHHIi")
ACCOUNT = 1024
CAUSES = 48
FIRST_CAUSE = 256

libc = ctypes.CDLL(None, use_errno=True)
NR_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())


def make_map(elements, **how):
    """A real map of eBPF's, or None."""
    attributes = struct.pack("=IIIII", how.get("type", 2), 4, ACCOUNT, elements,
                             how.get("flags", 0x400))
    buffer = ctypes.create_string_buffer(attributes + bytes(128 - len(attributes)), 128)
    fd = libc.syscall(NR_BPF, 0, buffer, 128) if NR_BPF else -1
    return fd if fd >= 0 else None


def can_make_maps():
    fd = make_map(1)
    if fd is not None:
        os.close(fd)
    return fd is not None


needs_maps = unittest.skipUnless(can_make_maps(), "this user may not make eBPF maps")


def head(**how):
    """A head as an honest daemon writes it, but for what the caller wants."""
    values = dict(magic=0x42435250, major=1, minor=2, head_size=128, size=ACCOUNT, stride=ACCOUNT,
                  count=15, features=2, untracked=0, offset=0, used=0)
    values.update(how)
    return struct.pack("=IHHIIIIIIQqQ", values["magic"], values["major"], values["minor"],
                       values["head_size"], values["size"], values["stride"], values["count"],
                       values["features"], 0, values["untracked"], values["offset"],
                       values["used"]).ljust(128, b"\0")


def hello(minor=0):
    return struct.pack("=IHH16sHHIII", 0x44425250, 1, minor, b"hostile", 1, 2, 3, 16384, 65536)


def programs(*rows):
    """Rows of (misses, id, name)."""
    return struct.pack("=II", len(rows), 0) + b"".join(
        struct.pack("=QI28s", misses, number, name) for misses, number, name in rows)


UNKNOWN = 2 ** 64 - 1


def opened(accounts):
    return struct.pack("=II16s", accounts, 0, b"t" * 16)


class Client(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prcb-client-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "socket")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.path)
        self.listener.listen()
        self.failure = None

    def serve(self, answers):
        """Answers each request by what answers(kind, payload) yields: (bytes of a payload,
        descriptors), or does it all itself and returns None."""
        def take(connection, size):
            data = b""
            while len(data) < size:
                part = connection.recv(size - len(data))
                if not part:
                    raise EOFError
                data += part
            return data

        def loop():
            while True:
                try:
                    connection, _ = self.listener.accept()
                except OSError:
                    return
                try:
                    while True:
                        length, kind, _, number, _ = HEADER.unpack(take(connection, HEADER.size))
                        payload = take(connection, length - HEADER.size)
                        answer = answers(connection, kind, number, payload)
                        if answer is not None:
                            body, fds = answer
                            socket.send_fds(connection, [HEADER.pack(
                                HEADER.size + len(body), kind, 0, number, 0) + body], fds)
                except (EOFError, OSError):
                    pass
                finally:
                    connection.close()
        threading.Thread(target=loop, daemon=True).start()

    def client(self, *more, timeout=60):
        return subprocess.run([PRCB, "stat", "--tier", "daemon", "-p", str(os.getpid()), "--for",
                               "0.1", *more], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, check=False,
                              env={**os.environ, "PRCB_SOCKET": self.path})

    def refused(self, *words):
        result = self.client()
        self.assertEqual(result.returncode, 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr.decode())

    def honest(self, map_fd, head_fd, accounts=15):
        """All of the protocol, with these for memory."""
        def answers(connection, kind, number, payload):
            if kind == HELLO:
                return hello(), []
            if kind == OPEN:
                return opened(accounts), [map_fd, head_fd]
            if kind == PROFILE:
                return struct.pack("=IIIII", 1, 0, 0, 0, 0), []
            return struct.pack("=Q", 0), []
        self.serve(answers)

    def test_answers_that_drip(self):
        """Each byte comes in time, the answer does not: it took as long as the server liked."""
        def answers(connection, kind, number, payload):
            for byte in HEADER.pack(1024, kind, 0, number, 0) + bytes(1008):
                connection.sendall(bytes([byte]))
                time.sleep(0.5)
        self.serve(answers)
        began = time.monotonic()
        self.refused("timed out")
        self.assertLess(time.monotonic() - began, 30)

    def test_surplus_descriptors(self):
        """With each byte two more: 1,911 stayed open after one answer."""
        most = []

        def answers(connection, kind, number, payload):
            pid, _, _ = struct.unpack("=iII", connection.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            for byte in HEADER.pack(1024, kind, 0, number, 0) + bytes(1000):
                socket.send_fds(connection, [bytes([byte])], [0, 0])
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and not most:
                waiting = struct.unpack("=i", fcntl.ioctl(connection, 0x5411,
                                                                       bytes(4)))[0]
                if not waiting:  # TIOCOUTQ: it has taken all
                    most.append(len(os.listdir(f"/proc/{pid}/fd")))
            connection.close()
        self.serve(answers)
        self.refused()
        self.assertTrue(most)
        self.assertLess(most[0], 32)

    def test_memory_that_is_none(self):
        """A file that is made shorter when it is mapped ends its reader."""
        fd = os.memfd_create("map")
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, 16 * ACCOUNT)
        os.pwrite(fd, head(used=15), 0)
        self.honest(fd, fd)
        self.refused("something else than its memory")

    def test_no_memory(self):
        def answers(connection, kind, number, payload):
            return (hello(), []) if kind == HELLO else (opened(15), [])
        self.serve(answers)
        self.refused("no memory")

    def test_statuses(self):
        """Numbers that are no error, one that says nobody listens, words that drive a terminal."""
        for status, expected in (-2 ** 31, "something else"), (-1, r"\x1b]0;owned\x07"):
            def answers(connection, kind, number, payload, status=status):
                words = b"\x1b]0;owned\x07"
                connection.sendall(HEADER.pack(HEADER.size + len(words), kind, 0, number, status) +
                                   words)
            self.setUp()
            self.serve(answers)
            self.refused(expected)

    @needs_maps
    def test_maps_of_other_kinds(self):
        for how in dict(type=1, flags=0), dict(flags=0):  # a hash table; one not to be mapped
            fd = make_map(16, **how)
            self.addCleanup(os.close, fd)
            self.setUp()
            self.honest(fd, fd)
            self.refused("something else than its memory")

    def memory(self, **how):
        """A map that is memory, and its first elements to be written."""
        fd = make_map(16)
        self.addCleanup(os.close, fd)
        memory = mmap.mmap(fd, 16 * ACCOUNT)
        memory[:128] = head(**how)
        return fd, memory

    @needs_maps
    def test_geometry(self):
        """More accounts than there is memory: 2^32 of them were none when they were counted."""
        for how in dict(count=2 ** 32 - 1), dict(count=16), dict(stride=2 ** 31), dict(
                stride=ACCOUNT + 4), dict(size=64, stride=64):
            fd, _ = self.memory(used=2 ** 40, **how)
            self.setUp()
            self.honest(fd, fd)
            self.refused("memory that prcbd passed")

    @needs_maps
    def test_geometry_that_changes(self):
        """What was checked is what is used, whatever the memory says later."""
        fd, memory = self.memory(used=0)
        stop = threading.Event()
        self.addCleanup(stop.set)

        def answers(connection, kind, number, payload):
            if kind == HELLO:
                return hello(), []
            if kind == OPEN:
                return opened(15), [fd, fd]
            memory[16:24] = struct.pack("=II", 2 ** 30, 2 ** 32 - 1)  # stride, count
            memory[48:56] = struct.pack("=Q", 2 ** 40)  # used
            memory[24:28] = struct.pack("=I", 2 ** 32 - 1)  # features
            return (struct.pack("=IIIII", 1, 0, 0, 0, 0) if kind == PROFILE else
                    struct.pack("=Q", 0)), []
        self.serve(answers)
        result = self.client("-j")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["threads"], [])

    def serve_programs(self, told):
        """An honest daemon, and told(n) for the n-th question about its programs."""
        fd, _ = self.memory()
        asked = []

        def answers(connection, kind, number, payload):
            if kind == PROGRAMS:
                asked.append(payload)
                return told(len(asked)), []
            return ((hello(4), []) if kind == HELLO else (opened(15), [fd, fd]) if kind == OPEN else
                    (struct.pack("=IIIII", 1, 0, 0, 0, 0), []) if kind == PROFILE else
                    (struct.pack("=Q", 0), []))
        self.serve(answers)
        return asked

    def missed(self):
        result = self.client("-j")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        return document["recursion_misses"], [(row["name"], row["recursion_misses"])
                                              for row in document["programs"]]

    @needs_maps
    def test_misses_of_programs(self):
        """They count from the opening of the session, and on over a daemon that loads others."""
        def told(n):
            return programs((5 if n == 1 else 9, 1, b"prcb_switch"),
                            (700, 2, b"prcb_exec") if n == 1 else (n, 10 + n, b"prcb_exec"))
        asked = self.serve_programs(told)
        total, rows = self.missed()
        self.assertEqual(asked[0], struct.pack("=I", 1))
        # With the second answer 2 of another program, with each after that so many more.
        self.assertEqual(rows, [("prcb_switch", 4), ("prcb_exec", sum(range(2, len(asked) + 1)))])
        self.assertGreaterEqual(total, 4 + 2)
        self.assertIn("the kernel did not run the program prcb_exec", self.client().stdout.decode())

    @needs_maps
    def test_misses_that_are_nonsense(self):
        def told(n):
            return programs((UNKNOWN, 1, b"\x1b]0;owned\x07"), (n, 2, b"n" * 28)) + b"junk" + bytes(
                900)
        self.serve_programs(told)
        total, rows = self.missed()
        self.assertIsNone(total)
        self.assertEqual([value for _, value in rows][0], None)
        self.assertEqual(rows[1][0], "n" * 28)
        self.assertNotIn(b"\x1b", self.client().stdout)

    @needs_maps
    def test_no_misses(self):
        """One that says that there are more than are sent, or nothing at all."""
        for answer in struct.pack("=II", 2 ** 32 - 1, 0), struct.pack("=II", 0, 0), b"":
            self.setUp()
            self.serve_programs(lambda n, answer=answer: answer)
            self.missed()

    @needs_maps
    def test_late_misses(self):
        """The report does not wait for them, and what comes late is taken for nothing else."""
        def told(n):
            if n > 1:
                time.sleep(0.5)
            return programs((n, 1, b"prcb_switch"))
        asked = self.serve_programs(told)
        began = time.monotonic()
        result = self.client("--for", "1.2", "-I", "300", "--ndjson")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(time.monotonic() - began, 30)
        self.assertGreater(len(asked), 1)
        self.assertIsNone(json.loads(result.stdout.splitlines()[0])["recursion_misses"])

    @needs_maps
    def test_accounts_that_make_no_sense(self):
        """Every byte of every account is the server's."""
        fd, memory = self.memory(used=15)
        for slot in range(1, 16):
            account = bytearray(os.urandom(ACCOUNT))
            account[:8] = struct.pack("=II", 2 * slot, slot)
            account[48] = 1 + slot % 4  # state
            account[49] = (63, 255, 200, 40, 0)[slot % 5]  # cause
            if slot % 2:
                account[100:104] = struct.pack("=I", (255 << 8) | slot % 5)
            if slot % 3:
                account[FIRST_CAUSE:] = bytes(ACCOUNT - FIRST_CAUSE)
            account[148:152] = bytes(4)
            account[152:168] = b"\x1b[2J\xc2\x9b\xff" + bytes([slot]) * 9
            memory[slot * ACCOUNT:(slot + 1) * ACCOUNT] = bytes(account)
        self.honest(fd, fd)
        for form in [], ["-j"], ["-x,"], ["--per-process"], ["-I", "50", "--ndjson"], [
                "--interrupted"]:
            result = self.client(*form)
            self.assertEqual(result.returncode, 0, (form, result.stderr))
            self.assertNotRegex(result.stdout, b"[\x00-\x09\x0b-\x1f\x7f]", form)
            self.assertNotRegex(result.stdout.decode(), "[\x80-\x9f]", form)


if __name__ == "__main__":
    sys.exit(unittest.main())
