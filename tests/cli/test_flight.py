#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb flight`: moments kept by a command, a rule, a signal and a program, and what is in their files
beside what the kernel and the programs themselves say."""
import ctypes
import glob
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

from bad_disk import BadDisk
from cpu_cgroup import CpuCgroup

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "daemon"))
import wire  # pylint: disable=wrong-import-position

PRCBD = os.environ.get("PRCBD")
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(SOURCE, "build/src/tools/cli/prcb"))
LIBRARY = os.environ.get("PRCB_LIBRARY") or os.path.join(SOURCE, "build/src/lib/libprcb.so")

# Two threads: one writes to a disk while it holds a lock that the other waits for.
STALL = """
import sys, threading, time, ctypes, os
def name(text): ctypes.CDLL(None).prctl(15, text.encode(), 0, 0, 0)
lock, held = threading.Lock(), threading.Event()
def hold():
    name('holder')
    with lock:
        held.set()
        save_orders()
def save_orders():
    with open(sys.argv[1], 'wb', buffering=0) as file:
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            file.write(b'x' * 65536)
            os.fsync(file)
def place_order():
    with lock: pass
thread = threading.Thread(target=hold)
thread.start()
name('victim')
held.wait()
place_order()
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
        if not cls.start("--stacks", "--rest", "0.000001", "--keep", "4", "--on", "futex>200ms,comm=victim",
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
        return self.file_of(reason, 30) or self.fail(self.said())

    def file_of(self, reason, seconds):
        """None: there is none within so many."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name in self.files():
                path = os.path.join(self.folder, name)
                if self.facts(path).get("saved_by") == reason:
                    return path
            time.sleep(0.02)
        return None

    def facts(self, path):
        with sqlite3.connect(path) as db:
            return dict(db.execute("SELECT * FROM facts"))

    def kind_of_disk(self, path):
        return subprocess.run(["stat", "-f", "-c", "%T", path], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()

    def stacks(self, path, name):
        """The functions where threads of a name waited, by SQL alone."""
        with sqlite3.connect(path) as db:
            return {row[0] for row in db.execute(
                "WITH RECURSIVE frames(id) AS (SELECT stack FROM wait_stacks w JOIN threads t ON t.id = w.thread "
                "WHERE t.name = ? UNION SELECT caller FROM frames JOIN stacks USING (id) WHERE caller NOT NULL) "
                "SELECT s.name FROM frames JOIN stacks s USING (id)", (name,))}

    def is_left_out(self, path, name):
        """Among many threads that wait there may be no time for one: then nothing, or "budget", stands for it."""
        with sqlite3.connect(path) as db:
            return {row[0] for row in db.execute("SELECT w.missing FROM wait_stacks w JOIN threads t ON t.id = w.thread "
                                                 "WHERE t.name = ?", (name,))} <= {"budget"}

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
            # It slept all the time: where, is asked when the file is made.
            where = self.stacks(path, "sleep")
            self.assertTrue(where & {"clock_nanosleep", "nanosleep", "__nanosleep"} or
                            not where and self.is_left_out(path, "sleep"), where)
            facts = self.facts(path)
            self.assertEqual((facts["saved_by"], facts["complete"]), ("to count", "1"))
            for option in ("-j", "--html", "--perfetto", "--folded"):
                result = prcb("report", option, path) if option in ("-j", "--folded") else \
                    prcb("report", option, "-o", os.path.join(self.folder, "export"), path)
                self.assertEqual(result.returncode, 0, result.stderr)
            result = prcb("report", "--diff", path, os.path.join(self.folder, "before"))
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_rule_names_thread_and_holder(self):
        disk = os.path.join(os.path.dirname(os.path.abspath(LIBRARY)), f"flight-{os.getpid()}")
        self.addCleanup(os.unlink, disk)
        with subprocess.Popen([sys.executable, "-c", STALL, disk], stdin=subprocess.PIPE,
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
        self.assertRegex(first[0], r"^victim \(\d+\) waited for futex for [\d.]+ms: of that time [\d.]+ms "
                                   r".*holder \(\d+\) ")
        if self.kind_of_disk(disk) != "tmpfs":
            self.assertRegex(first[0], r"holder \(\d+\) (waits for|ready \() ?(fsync|disk)")
        self.assertRegex(first[1], r"^saved by futex>200ms,comm=victim: the last [\d.]+s; that was until ")
        brief = json.loads(prcb("report", "--brief", path).stdout)
        self.assertEqual(brief["verdict"][0]["text"], first[0])
        # Where it waited for the lock; and what waited from before the file until now is in it, too.
        with sqlite3.connect(path) as db:
            known = db.execute("SELECT w.time_ns, w.missing FROM wait_stacks w JOIN threads t ON t.id = w.thread WHERE "
                               "t.name = 'victim'").fetchall()
        # On a machine that is busy with other programs there may be no time to read it: that is said.
        if all(missing != "budget" for _, missing in known):
            self.assertIn("place_order", self.stacks(path, "victim"), (known, facts))
        chain = json.loads(prcb("report", "--critical", facts["saved_thread"], "-j", path).stdout)
        self.assertTrue(chain)

    def test_a_neighbour_is_named(self):
        result = subprocess.run([sys.executable, "-c", NEIGHBOUR], stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            self.skipTest(result.stderr)
        first = prcb("report", self.wait_for_file("ready>100ms,comm=prey")).stdout.splitlines()[0]
        self.assertRegex(first, r"^prey \(\d+\) was ready and had no processor for [\d.]+ms: of that time "
                                r".*prey \(\d+\) ready.*, (mostly )?behind hog \(\d+\)")

    def test_a_quota_is_named(self):
        group = CpuCgroup("flight")
        self.addCleanup(group.remove)
        for v1, v2 in ((("cpu.cfs_period_us", "100000"), ("cpu.max", "20000 100000")),
                       (("cpu.cfs_quota_us", "20000"), ("cpu.max", "20000 100000"))):
            group.set(v1, v2)
        code = f"open({group.processes!r}, 'w').write('0')\n" + BURST
        for _ in range(4): # a busy machine may leave it less of its quota than it may use
            before = group.throttled()[1]
            subprocess.run([sys.executable, "-c", code], check=True)
            self.assertGreater(group.throttled()[1], before)
            path = self.file_of("throttled>30ms,comm=burst", 6)
            if path:
                break
        first = prcb("report", path or self.fail(self.said())).stdout.splitlines()[0]
        # Behind it stands what the time went to, where the switches before it are in the file.
        self.assertRegex(first, r"^burst \(\d+\) was held back by a CPU quota for [\d.]+ms"
                                r"(: of that time .*burst \(\d+\) .*throttled.*)?$")

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
                            (("--on", "psi:disk>1%", "-o", "."), "cpu, io or memory"),
                            (("--on", "psi:io>1", "-o", "."), "share"), (("--on", "psi:io>100%", "-o", "."), "share"),
                            (("--on", "psi:io>1%,comm=x", "-o", "."), "cgroup="), (("--spans", "-o", "."), "--stacks"),
                            (("--tier", "perf", "-o", "."), "switches"),
                            ((), "-o FOLDER"), (("go",), "save")):
            result = prcb("flight", *args)
            self.assertEqual(result.returncode, 2, result)
            self.assertIn(words, result.stderr)
        result = prcb("flight", "-o", self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("runs already", result.stderr)
        result = prcb("flight", "-o", self.folder, env=os.environ | {"PRCB_FLIGHT_SOCKET": "/" + "x" * 107})
        self.assertEqual(result.returncode, 1)
        self.assertIn("too long", result.stderr)

    def test_folders_that_others_may_write(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o1777)
            self.assertIn("every user may write", prcb("flight", "-o", folder).stderr)
            if os.geteuid() == 0:
                os.chmod(folder, 0o755)
                os.chown(folder, wire.NOBODY, wire.NOBODY)
                self.assertIn("another user's", prcb("flight", "-o", folder).stderr)
        self.assertIn("Not a directory", prcb("flight", "-o", "/dev/null").stderr)


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@unittest.skipIf(os.geteuid(), "needs other users")
class Others(unittest.TestCase):
    """Who asks is another user than who keeps, and who keeps is not root."""

    def setUp(self):
        os.environ.pop("PRCB_FLIGHT_SOCKET", None)
        self.place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.place)
        os.chmod(self.place, 0o755)
        # A folder's name is none of a pattern.
        self.folder = os.path.join(self.place, "files *[a]")
        self.socket = os.path.join(self.place, "socket")
        os.mkdir(self.folder)

    def keep(self, *args, **options):
        # pylint: disable-next=consider-using-with
        keeper = subprocess.Popen([PRCB, "flight", "-o", self.folder, "--size", "4", *args], stderr=subprocess.PIPE,
                                  text=True, **options)
        self.addCleanup(keeper.stderr.close)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        line = keeper.stderr.readline()
        if "eBPF" in line or "not permitted" in line:
            self.skipTest(line)
        self.assertIn("keeping the last switches", line)
        return keeper, line

    def sleeper_of(self, user):
        pid = os.fork()
        if not pid:
            wire.become(user, user)
            while True:
                time.sleep(0.01)
        return pid

    def switches_of(self, tid, user):
        result = prcb("flight", "save", **user)
        self.assertEqual(result.returncode, 0, result.stderr)
        with sqlite3.connect("file:" + result.stdout.strip().replace("[", "%5b") + "?immutable=1", uri=True) as db:
            return db.execute("SELECT count(*) FROM switches s JOIN threads t ON t.id = s.old_thread WHERE t.tid = ?",
                              (tid,)).fetchone()[0]

    def asked(self, asks=False):
        return sorted(name for name in os.listdir(self.folder) if name.endswith("-asked.db") == asks)

    def test_strangers_take_nothing_from_the_others(self):
        keeper, _ = self.keep("--open", "--rest", "1000", "--keep", "2", "--socket", self.socket, "--last", "1")
        old = "flight-20200101T000000.000Z"
        for name in (old + ".db", old + "-asked.db"):
            with open(os.path.join(self.folder, name), "w", encoding="ascii"):
                pass
        stranger = {"user": wire.NOBODY, "group": wire.NOBODY, "extra_groups": [], "cwd": "/"}
        save = ("flight", "save", "--socket", self.socket)
        self.assertEqual(prcb(*save, **stranger).returncode, 0)
        # The stranger's older file went, and not the other's, which is as old.
        self.assertEqual((self.asked(), len(self.asked(True))), ([old + ".db"], 1))
        self.assertNotIn(old + "-asked.db", self.asked(True))
        self.assertIn("one file in 1000 s", prcb(*save, **stranger).stderr)
        # A minute's rest of the stranger's is none of a signal's, and of one's own neither.
        keeper.send_signal(signal.SIGUSR1)
        until(lambda: len(self.asked()) == 2)
        until(lambda: not self.asked(True))
        self.assertIn("one file in 1000 s", prcb(*save).stderr)
        self.assertIn("one file in 1000 s", prcb(*save, **stranger).stderr)

    def test_a_full_disk_pressure_and_a_storm(self):
        """A disk that is full takes no file, and nothing from what is kept; the kernel's pressure makes one; and
        of 64 who ask at once, and as many signals, none gets another in the time of --rest."""
        mount = 'mount -t tmpfs -o size=100k,mode=755 tmpfs "$1" || exit 99; shift; exec "$@"'
        # pylint: disable-next=consider-using-with
        keeper = subprocess.Popen(["unshare", "-m", "sh", "-c", mount, "sh", self.folder, PRCB, "flight", "-o", self.folder,
                                   "--size", "4", "--rest", "2", "--on", "psi:cpu>0.5%", "--socket", self.socket],
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(keeper.stderr.close)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        line = keeper.stderr.readline()
        if "keeping the last switches" not in line:
            self.skipTest(line)
        place = f"/proc/{keeper.pid}/root{self.folder}"
        began = time.monotonic_ns()
        until(lambda: time.monotonic_ns() > began + 1e8)
        save = ("flight", "save", "--socket", self.socket)
        result = prcb(*save)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("full", result.stderr)
        self.assertEqual(os.listdir(place), [])
        subprocess.run(["nsenter", "-t", str(keeper.pid), "-m", "mount", "-o", "remount,size=64m", self.folder], check=True)
        burn = "import time; end = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass"
        files = []
        deadline = time.monotonic() + 60
        while not files:
            self.assertLess(time.monotonic(), deadline)
            for child in [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(os.cpu_count() + 1)]:
                child.wait()
            files = [name for name in os.listdir(place) if name.endswith(".db")]
        copy = os.path.join(self.place, "copy")  # SQLite would follow the link, and leave that mount
        shutil.copy(os.path.join(place, files[0]), copy)
        with sqlite3.connect(copy) as db:
            facts = dict(db.execute("SELECT * FROM facts"))
            most = max(count for count, in db.execute("SELECT count(*) FROM switches GROUP BY cpu"))
        self.assertEqual((facts["saved_by"], facts["complete"]), ("psi:cpu>0.5%", "1"))
        # From the beginning on, or, where there is more than is kept, as much as a processor's memory has: 128 bytes
        # for a switch, of a size that is a power of two.
        self.assertTrue(int(facts["start_ns"]) < began + 1e8 or most > (4 << 20) / os.cpu_count() / 2 / 128, (facts, most))
        asked = time.monotonic()
        for _ in range(64):
            keeper.send_signal(signal.SIGUSR1)
        children = [subprocess.Popen([PRCB, *save], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(64)]
        answers = [child.communicate(timeout=60) for child in children]
        took = time.monotonic() - asked
        saved = [out for out, _ in answers if out]
        self.assertLessEqual(len(saved), 1 + took / 2)
        for out, error in answers:
            self.assertTrue(out or b"one file in 2 s" in error, error)
        self.assertLessEqual(len([name for name in os.listdir(place) if name.endswith(".db")]), 3 + took / 2)
        keeper.send_signal(signal.SIGINT)
        self.assertEqual(keeper.wait(60), 0)

    def test_files_on_a_disk_that_fails(self):
        """At the first write and later, asked for and by a signal: nothing of the file is left, each says
        why, and what is kept is written when the disk is well again."""
        try:
            disk = BadDisk(self.folder)
        except OSError as error:
            self.skipTest(f"no mount: {error}")
        self.addCleanup(disk.close)
        keeper, _ = self.keep("--rest", "0.000001", "--last", "1", "--socket", self.socket)
        save = ("flight", "save", "--socket", self.socket)
        for way, reason in {"eio": "I/O error", "nospc": "full|No space left", "sync": "I/O error"}.items():
            for after in 0, 10:
                disk.fail(way, after)
                result = prcb(*save)
                self.assertEqual(result.returncode, 1, (way, after, result))
                self.assertRegex(result.stderr, reason, (way, after))
                self.assertRegex(keeper.stderr.readline(), f"not saved: .*({reason}).*the switches are kept")
                self.assertGreater(disk.failed, 0)
                disk.fail("")
                self.assertEqual(os.listdir(self.folder), [], (way, after))
            disk.fail(way)
            keeper.send_signal(signal.SIGUSR1)
            self.assertRegex(keeper.stderr.readline(), f"not saved: .*({reason})", way)
        # Nothing can be removed from one that only reads: that is left for the next start.
        disk.fail("rofs", 3)
        result = prcb(*save)
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stderr, "readonly|Read-only")
        keeper.stderr.readline()
        disk.fail("")
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".db")], [])
        self.assertNotEqual(os.listdir(self.folder), [])
        result = prcb(*save)
        self.assertEqual(result.returncode, 0, result)
        report = prcb("report", result.stdout.strip())
        self.assertEqual(report.returncode, 0, report)
        keeper.stderr.readline()
        disk.fail("rofs")
        keeper.send_signal(signal.SIGINT)
        self.assertEqual(keeper.wait(60), 0)
        disk.fail("")
        again, _ = self.keep("--socket", self.socket)
        self.assertEqual([os.path.join(self.folder, name) for name in os.listdir(self.folder)], [result.stdout.strip()])
        again.send_signal(signal.SIGINT)
        self.assertEqual(again.wait(60), 0)

    def test_a_pressure_that_is_not_told(self):
        """A cgroup of root's has a pressure, and who may not ask for it is not told that there is none."""
        group = next((os.path.dirname(path) for path in glob.glob("/sys/fs/cgroup/**/cpu.pressure", recursive=True)
                      if not os.stat(path).st_mode & 0o2 and not os.path.ismount(os.path.dirname(path))), None)
        if not group:
            self.skipTest("no cgroup has a pressure")
        mount = subprocess.run(["stat", "-c", "%m", group], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        os.chown(self.folder, wire.NOBODY, wire.NOBODY)
        rule = "psi:cpu>20%,cgroup=" + group[len(mount):]
        result = prcb("flight", "-o", self.folder, "--socket", self.socket, "--on", rule, user=wire.NOBODY,
                      group=wire.NOBODY, extra_groups=[])
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"does not tell you of this pressure: (Permission denied|Operation not permitted)")

    @unittest.skipUnless(PRCBD, "built without prcbd")
    def test_a_user_through_prcbd(self):
        try:
            daemon = wire.Daemon(PRCBD)
        except RuntimeError as error:
            self.skipTest(str(error))
        self.addCleanup(daemon.stop)
        for path in (self.place, self.folder):
            os.chown(path, wire.NOBODY, wire.NOBODY)
        user = {"user": wire.NOBODY, "group": wire.NOBODY, "extra_groups": [],
                "env": os.environ | {"PRCB_SOCKET": daemon.socket, "XDG_RUNTIME_DIR": self.place}}
        sleeper = self.sleeper_of(wire.NOBODY)
        self.addCleanup(os.waitpid, sleeper, 0)
        self.addCleanup(os.kill, sleeper, signal.SIGKILL)
        keeper, line = self.keep("--rest", "0.000001", **user)
        self.assertIn("of your own processes", line)
        self.assertTrue(os.path.exists(os.path.join(self.place, "prcb-flight.socket")))
        began = time.monotonic()
        until(lambda: time.monotonic() > began + 0.1)
        result = prcb("flight", "save", **user)
        self.assertEqual(result.returncode, 0, result.stderr)
        with sqlite3.connect("file:" + result.stdout.strip().replace("[", "%5b") + "?immutable=1", uri=True) as db:
            facts = dict(db.execute("SELECT * FROM facts"))
            count, = db.execute("SELECT count(*) FROM switches s JOIN threads t ON t.id = s.old_thread "
                                "WHERE t.tid = ? AND s.cause = 'sleep'", (sleeper,)).fetchone()
        # Nothing is claimed of the time before it began, ten seconds ago.
        self.assertLess(int(facts["end_ns"]) - int(facts["start_ns"]), (time.monotonic() - began + 5) * 1e9)
        self.assertEqual(facts["scope"], "processes")
        self.assertGreater(count, 5)
        # A process of the user's that begins later, elsewhere.
        late = self.sleeper_of(wire.NOBODY)
        self.addCleanup(os.waitpid, late, 0)
        self.addCleanup(os.kill, late, signal.SIGKILL)
        until(lambda: self.switches_of(late, user) > 5)
        # Its switches go on while prcbd is gone, and with its successor.
        killed = time.monotonic_ns()
        daemon.kill()
        until(lambda: time.monotonic_ns() > killed + 3e8)
        daemon.start()
        started = time.monotonic_ns()
        until(lambda: time.monotonic_ns() > started + 1e8)
        result = prcb("flight", "save", **user)
        self.assertEqual(result.returncode, 0, result.stderr)
        with sqlite3.connect("file:" + result.stdout.strip().replace("[", "%5b") + "?immutable=1", uri=True) as db:
            counts = [db.execute("SELECT count(*) FROM switches s JOIN threads t ON t.id = s.old_thread WHERE t.tid = ? "
                                 "AND s.time_ns BETWEEN ? AND ?", (sleeper, begin, end)).fetchone()[0]
                      for begin, end in ((0, killed), (killed, started), (started, 2**62))]
        self.assertTrue(all(count > 3 for count in counts), counts)
        # A program of the user's finds it, too: it asks the user's own, and then the machine's.
        library = ctypes.CDLL(LIBRARY)
        os.environ["XDG_RUNTIME_DIR"] = self.place
        self.addCleanup(os.environ.pop, "XDG_RUNTIME_DIR")
        self.assertEqual(wire.as_user(wire.NOBODY, library.prcb_flight_save, b"by program", None), 0)
        keeper.send_signal(signal.SIGINT)
        self.assertEqual(keeper.wait(60), 0)
        self.assertFalse(os.path.exists(os.path.join(self.place, "prcb-flight.socket")))
        result = prcb("flight", "save", **user)
        self.assertIn("/run/prcb-flight.socket", result.stderr)


@unittest.skipIf(os.geteuid() or not PRCBD, "needs root and prcbd")
class Prcbds(unittest.TestCase):
    """prcbd keeps the switches of all threads; who may see them all writes them into files of their own."""

    def setUp(self):
        os.environ.pop("PRCB_FLIGHT_SOCKET", None)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o777)

    def begin(self, settings):
        try:
            # The group is of who asks, here as ever: NOBODY's, and not OTHER's.
            self.daemon = wire.Daemon(PRCBD, settings + "profile_all = group nogroup\n")
        except RuntimeError as error:
            self.skipTest(str(error))
        self.addCleanup(self.daemon.stop)
        self.env = {"env": os.environ | {"PRCB_SOCKET": self.daemon.socket, "XDG_RUNTIME_DIR": self.folder}}
        until(lambda: self.save("first")[0].returncode == 0)

    def save(self, name, user=0, **options):
        path = os.path.join(self.folder, name)
        return prcb("flight", "save", "--last", "60", "-o", path, user=user, group=user, extra_groups=[], **self.env,
                    **options), path

    def sleeper(self):
        """A program that slept, its switches by the kernel, and when that was."""
        with subprocess.Popen([sys.executable, "-c", "import time, resource\n"
                               "begin, since = resource.getrusage(1), time.monotonic_ns()\n"
                               "for i in range(200): time.sleep(0.001)\n"
                               "end, now = resource.getrusage(1), time.monotonic_ns()\n"
                               "print(end.ru_nvcsw - begin.ru_nvcsw + end.ru_nivcsw - begin.ru_nivcsw, since, now)\n"],
                              stdout=subprocess.PIPE, text=True) as child:
            return child.pid, *map(int, child.communicate()[0].split())

    def check(self, path, pid, count, begin, end):
        with sqlite3.connect(path) as db:
            got, slept = db.execute("SELECT count(*), sum(s.cause = 'sleep') FROM switches s JOIN threads t ON "
                                    "t.id = s.old_thread WHERE t.tid = ? AND s.time_ns BETWEEN ? AND ?",
                                    (pid, begin, end)).fetchone()
        # Between the clock and the kernel's count on either side it may lose its processor.
        self.assertTrue(abs(count - got) <= 4, (count, got, self.daemon.said()))
        self.assertGreaterEqual(slept, 190)

    def test_prcbds(self):
        self.begin("flight = 16M\ntails = yes\n")
        first = self.sleeper()
        result, path = self.save("alive", wire.NOBODY)
        self.assertEqual((result.returncode, result.stdout.strip()), (0, path), result.stderr)
        self.assertEqual(os.stat(path).st_uid, wire.NOBODY)
        self.check(path, *first)
        result, _ = self.save("no", wire.OTHER)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "prcb flight does not run.*nor has prcbd any: .*flight and profile_all in prcbd.conf")
        # What it keeps needs no prcbd: one that is killed, and its successor, have it.
        self.daemon.kill()
        between = self.sleeper()
        self.daemon.start()
        restarted = self.sleeper()
        # So has one of another build, whose programs take the place of those that go on meanwhile.
        self.daemon.kill()
        self.daemon.pretend_another_build()
        updating = self.sleeper()
        self.daemon.start()
        self.assertRegex(self.daemon.said(), "another build.*; sessions continue")
        last = self.sleeper()
        result, path = self.save("updated")
        self.assertEqual(result.returncode, 0, result.stderr)
        for of in (first, between, restarted, updating, last):
            self.check(path, *of)
        facts = dict(sqlite3.connect(path).execute("SELECT * FROM facts"))
        self.assertEqual((facts["scope"], facts["complete"], facts["saved_by"]), ("system", "1", "prcb flight save"))
        # Nothing is claimed of the time before.
        self.assertGreater(int(facts["end_ns"]) - int(facts["start_ns"]), last[3] - first[2])
        self.assertLess(int(facts["end_ns"]) - int(facts["start_ns"]), 59e9)
        report = prcb("report", path)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.top_goes_back(last)
        keeper = self.rules_on_what_prcbd_keeps()
        self.blocks_of_another_version(last, keeper)

    def test_rotation_loses_nobody(self):
        """Who slept all the time, and who came and went, is known when the memory was gone round many times."""
        self.begin("flight = 4M\n") # less than the pipe's switches, more than others make during one save
        # pylint: disable-next=consider-using-with
        asleep = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(asleep.wait)
        self.addCleanup(asleep.kill)
        self.sleeper()
        began = time.monotonic_ns()
        subprocess.run([sys.executable, "-c", "import os\nthere, back = os.pipe(), os.pipe()\nif not os.fork():\n"
                        "    while os.read(there[0], 1) == b'x': os.write(back[1], b'x')\n    os._exit(0)\n"
                        "for i in range(20000): os.write(there[1], b'x'), os.read(back[0], 1)\nos.write(there[1], b'y')"],
                       check=True)
        late = self.sleeper()
        result, path = self.save("rotated")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check(path, *late)
        with sqlite3.connect(path) as db:
            facts = dict(db.execute("SELECT * FROM facts"))
            nameless = db.execute("SELECT t.* FROM threads t WHERE t.name IS NULL OR t.name = ''").fetchall()
            unknown, = db.execute("SELECT count(*) FROM switches s WHERE s.old_thread NOT NULL AND s.old_thread NOT IN "
                                  "(SELECT id FROM threads)").fetchone()
            still = db.execute("SELECT name, start_cause FROM threads WHERE tid = ?", (asleep.pid,)).fetchall()
        self.assertGreater(int(facts["start_ns"]), began)
        self.assertEqual((nameless, unknown, still), ([], 0, [("sleep", "sleep")]))

    def top_goes_back(self, ended):
        """prcb top begins with the time before it: a program that had ended, and one that goes on."""
        history = os.path.join(self.folder, "history")
        # pylint: disable-next=consider-using-with
        ticks = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])
        self.addCleanup(ticks.wait)
        self.addCleanup(ticks.kill)
        began = time.monotonic_ns()
        until(lambda: time.monotonic_ns() > began + 5e8)
        asked = time.monotonic_ns()
        result = prcb("top", "-q", "-a", "-d", "0.2", "-n", "2", "-w", history, **self.env)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = "SELECT t.id, i.end_ns, p.wall_ns, p.run_ns + p.ready_ns + p.wait_ns, p.switches, p.run_ns FROM " \
               "interval_threads p JOIN intervals i ON i.id = p.interval JOIN threads t ON t.id = p.thread WHERE t.tid = ? " \
               "AND p.wall_ns NOT NULL ORDER BY 2"
        with sqlite3.connect(history) as db:
            before, both = (db.execute(rows, (tid,)).fetchall() for tid in (ended[0], ticks.pid))
        self.assertLess(before[-1][1], asked)
        self.assertGreaterEqual(sum(row[4] for row in before), ended[1])
        # It is one thread, before and after, and has each interval once.
        self.assertEqual(len({row[0] for row in both}), 1)
        self.assertTrue(both[0][1] < asked < both[-1][1], both)
        ends = [row[1] for row in both]
        self.assertEqual(len(ends), len(set(ends)))
        for _, _, wall, parts, _, run in before + both:
            self.assertTrue(parts == wall > 0 and run <= wall, before + both)

    def rules_on_what_prcbd_keeps(self):
        self.kept = os.path.join(self.folder, "keep")
        os.mkdir(self.kept)
        # pylint: disable-next=consider-using-with
        keeper = subprocess.Popen([PRCB, "flight", "-o", self.kept, "--socket", self.kept + "/socket", "--rest", "0.000001",
                                   "--on", "sleep>150ms,comm=slow"], stderr=subprocess.PIPE, text=True, **self.env)
        self.addCleanup(keeper.stderr.close)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        self.assertIn("as prcbd does", keeper.stderr.readline())
        self.slow()
        keeper.stderr.readline() # its name
        return keeper

    def slow(self):
        """What a rule is for: there is a file of it."""
        before = os.listdir(self.kept)
        subprocess.run([sys.executable, "-c", "import ctypes, time\nctypes.CDLL(None).prctl(15, b'slow', 0, 0, 0)\n"
                        "time.sleep(0.2)"], check=True)
        until(lambda: any(name.endswith(".db") and name not in before for name in os.listdir(self.kept)))
        path, = (os.path.join(self.kept, name) for name in os.listdir(self.kept)
                 if name.endswith(".db") and name not in before)
        self.assertRegex(prcb("report", path).stdout, r"^slow \(\d+\) waited for sleep|^slow \(\d+\) slept")

    def blocks_of_another_version(self, before, keeper):
        """An update that cannot use the memory says so, and begins anew."""
        self.daemon.kill()
        self.daemon.pretend_other_blocks()
        updated = time.monotonic_ns()
        self.daemon.start()
        self.assertIn("another block version left sessions: they end", self.daemon.said())
        until(lambda: self.save("anew")[0].returncode == 0)
        after = self.sleeper()
        result, path = self.save("anew")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check(path, *after)
        with sqlite3.connect(path) as db:
            start, = db.execute("SELECT value FROM facts WHERE name = 'start_ns'").fetchone()
            old, = db.execute("SELECT count(*) FROM threads WHERE tid = ?", (before[0],)).fetchone()
        self.assertGreater(int(start), updated)
        self.assertEqual(old, 0)
        # A recorder with rules that runs meanwhile goes on with the new memory.
        self.assertIn("what was kept is gone", keeper.stderr.readline())
        self.assertIn("keeping the last switches, as prcbd does", keeper.stderr.readline())
        self.slow()


if __name__ == "__main__":
    unittest.main()
