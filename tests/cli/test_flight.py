#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb flight`: moments kept by a command, a rule, a signal and a program, and what is in their files
beside what the kernel and the programs themselves say."""
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from cpu_cgroup import CpuCgroup

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(SOURCE, "build/src/tools/cli/prcb"))
LIBRARY = os.environ.get("PRCB_LIBRARY") or os.path.join(SOURCE, "build/src/lib/libprcb.so")

# Two threads: one sleeps while it holds a lock that the other waits for. At the end it says its own
# count of switches, as the kernel has it.
STALL = """
import sys, threading, time, ctypes
def name(text): ctypes.CDLL(None).prctl(15, text.encode(), 0, 0, 0)
lock, held = threading.Lock(), threading.Event()
def hold():
    name('holder')
    with lock:
        held.set()
        time.sleep(0.3)
thread = threading.Thread(target=hold)
thread.start()
name('victim')
held.wait()
with lock: pass
thread.join()
print('done', flush=True)
sys.stdin.readline()
"""


# A thread with the rights of real time that another one, with more of them, keeps from its processor
# for a fifth of a second, at a time that nobody knows.
NEIGHBOUR = """
import ctypes, os, random, sys, threading, time
def begin(name, priority):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
try:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    begin(b'prey', 1)
except PermissionError:
    sys.exit('no real time here')
if not os.fork():
    begin(b'hog', 2)
    time.sleep(random.random() / 2)
    until = time.monotonic() + 0.2
    while time.monotonic() < until: pass
    os._exit(0)
until = time.monotonic() + 1
while time.monotonic() < until: time.sleep(0.001)
"""

# Its burst uses up the quota of its cgroup, once.
BURST = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'burst', 0, 0, 0)\nuntil = time.process_time() + 0.06\n" \
        "while time.process_time() < until: pass\n"


def prcb(*args, **options):
    return subprocess.run([PRCB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          check=False, text=True, **options)


class Flight(unittest.TestCase):
    """One keeper for all: to load its programs takes longer than what is asked of it."""
    keeper = folder = log = None

    @classmethod
    def start(cls, *args):
        # pylint: disable-next=consider-using-with
        cls.keeper = subprocess.Popen([PRCB, "flight", "-o", cls.folder, "--size", "16", *args],
                                      stderr=cls.log)
        deadline = time.monotonic() + 60
        while "keeping the last" not in cls.said():
            if cls.keeper.poll() is not None or time.monotonic() > deadline:
                cls.keeper.kill()
                cls.keeper.wait()
                return False
            time.sleep(0.01)
        return True

    @classmethod
    def said(cls):
        with open(os.path.join(cls.folder, "log"), encoding="utf-8") as file:
            return file.read()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # pylint: disable-next=consider-using-with
        cls.log = open(os.path.join(cls.folder, "log"), "w", encoding="utf-8")
        cls.addClassCleanup(cls.log.close)
        os.environ["PRCB_FLIGHT_SOCKET"] = os.path.join(cls.folder, "socket")
        if not cls.start("--rest", "0.000001", "--keep", "4", "--on", "futex>200ms,comm=victim",
                         "--on", "ready>100ms,comm=prey", "--on", "throttled>30ms,comm=burst"):
            raise unittest.SkipTest(cls.said().strip())

    @classmethod
    def tearDownClass(cls):
        if cls.keeper.poll() is None:
            cls.keeper.send_signal(signal.SIGINT)
            assert cls.keeper.wait(60) == 0, cls.said()
            assert not os.path.exists(os.environ["PRCB_FLIGHT_SOCKET"])

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".db"))

    def wait_for_file(self, reason):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for name in self.files():
                path = os.path.join(self.folder, name)
                if self.facts(path).get("saved_by") == reason:
                    return path
            time.sleep(0.02)
        return self.fail(self.said())

    def facts(self, path):
        with sqlite3.connect(path) as db:
            return dict(db.execute("SELECT * FROM facts"))

    def save(self, *args):
        result = prcb("flight", "save", *args)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.strip()

    def test_switches_are_the_kernels(self):
        # pylint: disable-next=consider-using-with
        target = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        with \
                subprocess.Popen([sys.executable, "-c", "import time, resource\n"
                                  "print(flush=True)\ninput()\nbegin = resource.getrusage(1)\n"
                                  "for i in range(200): time.sleep(0.001)\n"
                                  "end = resource.getrusage(1)\n"
                                  "print(end.ru_nvcsw - begin.ru_nvcsw + end.ru_nivcsw - begin.ru_nivcsw, flush=True)\n"
                                  "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sleeper:
            sleeper.stdout.readline()
            path = self.save("--last", "0.01", "-o", os.path.join(self.folder, "before"))
            begin = int(self.facts(path)["end_ns"])
            sleeper.stdin.write("\n")
            sleeper.stdin.flush()
            count = int(sleeper.stdout.readline())
            end = time.monotonic_ns()
            path = self.save("--last", "30", "--reason", "to count")
            with sqlite3.connect(path) as db:
                rows = db.execute("SELECT count(*), sum(s.cause = 'sleep') FROM switches s JOIN threads t "
                                  "ON t.id = s.old_thread WHERE t.tid = ? AND s.time_ns BETWEEN ? AND ?",
                                  (sleeper.pid, begin, end)).fetchone()
                still = db.execute("SELECT name, start_state, start_cause FROM threads WHERE tid = ?",
                                   (target.pid,)).fetchone()
            sleeper.stdin.write("\n")
            sleeper.stdin.close()
            # Besides: it waited for the line, may lose its processor before it says the number, and waits for the next.
            self.assertTrue(count <= rows[0] <= count + 20, (count, rows))
            self.assertGreaterEqual(rows[1], 190)
            self.assertEqual(still[0], "sleep")
            facts = self.facts(path)
            self.assertEqual((facts["saved_by"], facts["complete"]), ("to count", "1"))
            for option in ("-j", "--html", "--perfetto", "--folded"):
                result = prcb("report", option, path) if option in ("-j", "--folded") else \
                    prcb("report", option, "-o", os.path.join(self.folder, "export"), path)
                self.assertEqual(result.returncode, 0, result.stderr)
            result = prcb("report", "--diff", path, os.path.join(self.folder, "before"))
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_rule_names_thread_and_holder(self):
        with subprocess.Popen([sys.executable, "-c", STALL], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as stall:
            self.assertEqual(stall.stdout.readline(), "done\n")
            path = self.wait_for_file("futex>200ms,comm=victim")
            stall.stdin.close()
        facts = self.facts(path)
        self.assertEqual((facts["saved_name"], facts["saved_cause"], int(facts["saved_process"])),
                         ("victim", "futex", stall.pid))
        self.assertTrue(2e8 < int(facts["saved_for_ns"]) < 2e9, facts)
        # A second of what came after is in it.
        self.assertGreater(int(facts["end_ns"]) - int(facts["saved_at_ns"]), 0.9e9)
        report = prcb("report", path).stdout
        self.assertNotIn("FUNCTION", report)
        first = report.splitlines()[:2]
        self.assertRegex(first[0], r"^the last .* saved by futex>200ms,comm=victim: victim \(\d+\) was "
                                   r"waiting for futex for [\d.]+ms, until ")
        self.assertRegex(first[1], r"^of that time: [\d.]+ms holder \(\d+\) waits for sleep")
        chain = json.loads(prcb("report", "--critical", facts["saved_thread"], "-j", path).stdout)
        self.assertTrue(chain)

    def test_a_neighbour_is_named(self):
        result = subprocess.run([sys.executable, "-c", NEIGHBOUR], stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            self.skipTest(result.stderr)
        first = prcb("report", self.wait_for_file("ready>100ms,comm=prey")).stdout.splitlines()
        self.assertRegex(first[0], r"prey \(\d+\) was ready for [\d.]+ms, ")
        self.assertRegex(first[1], r"^of that time: .*prey \(\d+\) ready.*, behind hog \(\d+\)")

    def test_a_quota_is_named(self):
        group = CpuCgroup("flight")
        self.addCleanup(group.remove)
        for v1, v2 in ((("cpu.cfs_period_us", "100000"), ("cpu.max", "20000 100000")),
                       (("cpu.cfs_quota_us", "20000"), ("cpu.max", "20000 100000"))):
            group.set(v1, v2)
        before = group.throttled()[1]
        code = f"open({group.processes!r}, 'w').write('0')\n" + BURST
        subprocess.run([sys.executable, "-c", code], check=True)
        self.assertGreater(group.throttled()[1], before)
        first = prcb("report", self.wait_for_file("throttled>30ms,comm=burst")).stdout.splitlines()
        self.assertRegex(first[0], r"burst \(\d+\) was waiting for throttled for [\d.]+ms, ")
        self.assertRegex(first[1], r"^of that time: .*burst \(\d+\) .*throttled")

    def test_signal_and_program(self):
        self.keeper.send_signal(signal.SIGUSR1)
        self.wait_for_file("signal SIGUSR1")
        library = ctypes.CDLL(LIBRARY)
        self.assertEqual(library.prcb_flight_save(b"slow \x1b[31m page", None), 0)
        path = self.wait_for_file("slow \x1b[31m page")
        self.assertNotIn("\x1b", prcb("report", path).stdout)
        self.assertNotIn("\x1b", self.said())

    def test_the_oldest_go(self):
        names = [os.path.basename(self.save("--last", "0.1")) for _ in range(7)]
        self.assertEqual([name for name in self.files() if name in names], names[-4:])

    def test_a_kill_leaves_no_half_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            socket_path = os.path.join(folder, "socket")
            part = os.path.join(folder, "flight-20261127T000000.000Z.db.part")
            for name in (part, part + "-wal"):
                with open(name, "w", encoding="utf-8"):
                    pass
            with subprocess.Popen([PRCB, "flight", "-o", folder, "--socket", socket_path], stderr=subprocess.PIPE,
                                  text=True) as keeper:
                self.assertIn("keeping", keeper.stderr.readline())
                self.assertEqual(os.listdir(folder), ["socket"])
                asks = [PRCB, "flight", "save", "--socket", socket_path]
                with subprocess.Popen(asks, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
                    deadline = time.monotonic() + 20
                    while len(os.listdir(folder)) == 1 and time.monotonic() < deadline:
                        pass
                    keeper.kill()
                    asking.communicate(timeout=60)
            for name in os.listdir(folder):
                if name.endswith(".db"):
                    self.assertEqual(self.facts(os.path.join(folder, name))["complete"], "1")

    def test_what_others_send(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for message in (b"", b"\0", b"x" * 5000, b"1\n", b"-1\n\n", b"9" * 400 + b"\n/nowhere/x\ny"):
                sender.sendto(message, os.environ["PRCB_FLIGHT_SOCKET"])
        result = prcb("flight", "save", "-o", "/nowhere/file")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/file", result.stderr)
        self.save("--last", "1")

    def test_command_lines(self):
        for args, words in ((("--on", "ready", "-o", "."), "no '>'"),
                            (("--on", "nothing>1ms", "-o", "."), "cause"),
                            (("--on", "ready>1", "-o", "."), "time"),
                            (("--on", "ready>1ms,tid=1", "-o", "."), "condition"),
                            ((), "-o FOLDER"), (("go",), "save")):
            result = prcb("flight", *args)
            self.assertEqual(result.returncode, 2, result)
            self.assertIn(words, result.stderr)
        result = prcb("flight", "-o", self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("runs already", result.stderr)


if __name__ == "__main__":
    unittest.main()
