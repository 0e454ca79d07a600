#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All attackers at once, each of another user, beside an honest client of prcbd, the exporter and top: the honest are
served as at the beginning, and nobody's memory or descriptors grow. For PRCB_SOAK_SECONDS (30): ./dev attack soak.

Witness: the clock of who is served, and /proc of the programs."""
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # pylint: disable=wrong-import-position
from wire import FOLLOW_ALL, HELLO, PROCESS, Client, Closed, Refused, hello, message  # pylint: disable=wrong-import-position

PRCBD, PRCB, EXPORTER = (os.environ.get(name, "") for name in ("PRCBD", "PRCB", "PRCB_EXPORTER"))
SECONDS = float(os.environ.get("PRCB_SOAK_SECONDS", "30"))
FIRST_USER = 41000
HONEST = 42000


def rest(seconds=0.01):
    time.sleep(seconds)


# ---- attackers: each is called over and over, as a user of its own ----

def opens_without_pause(world):
    with_tails = random.choice((0, 2))
    client = Client(world.socket).open(16, flags=with_tails)
    client.profile(PROCESS, os.getpid(), FOLLOW_ALL)
    client.close()


def talks_garbage(world):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(world.socket)
        s.send(random.choice((b"\xff" * 64, os.urandom(200), message(HELLO, 1, hello())[:-3],
                              message(random.randrange(40), 7, os.urandom(random.randrange(64))))))
        rest()


def hoards_connections(world):
    held = []
    try:
        while True:
            held.append(Client(world.socket).open(4))
    except (Refused, Closed, OSError):
        rest(1)
    finally:
        for client in held:
            client.close()


def never_reads(world):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(world.socket)
        s.setblocking(False)
        try:
            while True:
                s.send(message(HELLO, 1, hello()) * 100)
        except OSError:
            rest(0.5)


def renames_itself(_):
    with open("/proc/self/comm", "wb", buffering=0) as file:
        for _ in range(50):
            file.write(random.choice((b"\x1b[31m", b"=cmd()", b"\xff\xfe", b"a\nb ")) + os.urandom(4).hex().encode())
            rest(0.001)


def starts_processes(_):
    for _ in range(20):
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    rest()


def drips_at_the_exporter(world):
    held = []
    try:
        for _ in range(96):
            s = socket.create_connection(("127.0.0.1", world.port), 1)
            s.send(b"GET /metrics HTTP/1.1\r\nX: ")
            held.append(s)
        for _ in range(4):
            rest(1)
            for s in held:
                s.send(b"a")
    except OSError:
        rest(0.1)
    finally:
        for s in held:
            s.close()


def asks_the_exporter_for_all(world):
    with socket.create_connection(("127.0.0.1", world.port), 1) as s:
        s.send(b"GET " + random.choice((b"/metrics", b"/debug/pprof/wait?seconds=9e9", b"/" + b"x" * 9000, b"/\xff")) +
               b" HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        rest(0.05)


ATTACKERS = (opens_without_pause, talks_garbage, hoards_connections, never_reads, renames_itself, starts_processes,
             drips_at_the_exporter, asks_the_exporter_for_all)


def attack(attacker, world, user):
    """In a process of its own; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        wire.become(user, user)
        while True:
            try:
                attacker(world)
            except (Refused, Closed, OSError):
                rest()
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    finally:
        os._exit(1)


# ---- the honest ----

def is_served(world):
    """Seconds that an answer of prcbd took."""
    began = time.monotonic()
    client = Client(world.socket).open(8)
    client.profile(PROCESS, os.getpid())
    client.close()
    return time.monotonic() - began


def scrapes(world):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", world.port), 20) as s:
        s.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        data = b""
        while part := s.recv(65536):
            data += part
    assert b" 200 " in data[:20] and b"prcb_up 1" in data, data[:200]
    return time.monotonic() - began


def memory(pid):
    """KiB that are its own: what it shares with clients and files is none of it."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@unittest.skipIf(os.geteuid(), "needs root: it becomes other users")
@unittest.skipUnless(os.path.exists("/sys/kernel/btf/vmlinux"), "needs eBPF")
class Soak(unittest.TestCase):
    def start(self, *command, stdout=subprocess.DEVNULL):
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL,  # pylint: disable=consider-using-with
                                   stdin=subprocess.DEVNULL, env=os.environ | {"PRCB_SOCKET": self.daemon.socket})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def setUp(self):
        try:
            self.daemon = wire.Daemon(PRCBD)
        except RuntimeError as error:
            self.skipTest(str(error))
        self.addCleanup(self.daemon.stop)
        self.socket = self.daemon.socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        # What top keeps on purpose is little, and the same from the end of the first third on: what it is depends on how
        # many threads of others' live meanwhile.
        self.programs = {
            "prcbd": self.daemon.process,
            "prcb-exporter": self.start(EXPORTER, f"--web.listen-address=127.0.0.1:{self.port}", "--per-name",
                                        "--pprof", "2"),
            "prcb top": self.start(PRCB, "top", "-b", "-d", "0.5", "--tier", "daemon", "-a", "--history",
                                   str(min(int(SECONDS / 6) + 1, 10)), stdout=subprocess.PIPE)}
        self.until(lambda: self.tried(scrapes), "the exporter answers")
        tables = self.programs["prcb top"].stdout
        self.addCleanup(tables.close)
        self.assertTrue(tables.readline(), "top shows a table, so it has its session, too")
        threading.Thread(target=lambda: [0 for _ in iter(lambda: os.read(tables.fileno(), 65536), b"")], daemon=True).start()

    def until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, what() if callable(what) and time.monotonic() > deadline else what)
            rest(0.05)

    def tried(self, what):
        try:
            what(self)
            return True
        except OSError:
            return False

    def measure(self, seconds):
        """{name: [seconds]}, and at the end {program: (KiB, descriptors)}."""
        times = {"a session of prcbd": [], "a scrape": []}
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            times["a session of prcbd"].append(wire.as_user(HONEST, is_served, self))
            times["a scrape"].append(scrapes(self))
            for name, process in self.programs.items():
                self.assertIsNone(process.poll(), name + " has ended")
            rest(0.1)
        return times, {name: (memory(p.pid), descriptors(p.pid)) for name, p in self.programs.items()}

    def test_all_at_once(self):
        quiet = descriptors(self.daemon.process.pid)
        attackers = {attack(attacker, self, FIRST_USER + i): attacker.__name__ for i, attacker in enumerate(ATTACKERS)}

        def end():
            for pid in attackers:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.addCleanup(end)
        first, before = self.measure(SECONDS / 3)
        self.measure(SECONDS / 3)
        last, after = self.measure(SECONDS / 3)
        for name in first:
            was, is_now = statistics.median(first[name]), statistics.median(last[name])
            print(f"{name}: {was * 1000:.1f} ms, then {is_now * 1000:.1f} ms, at most {max(last[name]) * 1000:.0f} ms; "
                  f"{len(last[name])} times")
            self.assertLess(is_now, 2, name)  # of a machine with two processors that all attackers use up
            self.assertLess(max(last[name]), 10, name)
        for name, (kib, files) in after.items():
            print(f"{name}: {before[name][0]} KiB and {before[name][1]} descriptors, then {kib} and {files}")
            # top has room for as many threads as lived at one time, also others than the attackers'.
            self.assertLess(kib, before[name][0] + (65536 if name == "prcb top" else 8192), name)
        self.assertLess(after["prcb top"][1], before["prcb top"][1] + 8)
        self.assertEqual([os.waitpid(pid, os.WNOHANG) for pid in attackers], [(0, 0)] * len(attackers), attackers)
        end()
        attackers.clear()
        # When they are gone, nothing of them is left. Closed sessions go as the kernel lets them.
        self.until(lambda: descriptors(self.daemon.process.pid) <= quiet,
                   lambda: f"prcbd's descriptors go: {quiet} before, {descriptors(self.daemon.process.pid)} after")
        self.assertLess(wire.as_user(HONEST, is_served, self), 2)


if __name__ == "__main__":
    unittest.main()
