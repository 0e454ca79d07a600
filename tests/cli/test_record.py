#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb record` and `prcb report`: shares of a program that measures itself, what is in the
file, what a bad end leaves, and each export opened by a reader that is not ours."""
import collections
import contextlib
import csv
import ctypes
import gzip
import io
import itertools
import json
import lzma
import os
import pty
import pwd
import re
import resource
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(SOURCE, "build/src/tools/cli/prcb"))
SHARES = os.environ.get("RECORD_SHARES") or os.path.join(SOURCE, "build/tests/cli/record_shares")
PYTHON = os.path.realpath(sys.executable)
MANGLED = os.environ.get("RECORD_MANGLED") or os.path.join(SOURCE, "build/tests/cli/record_mangled")
INLINES = os.environ.get("RECORD_INLINES") or os.path.join(SOURCE, "build/tests/cli/record_inlines")
ROOT = os.geteuid() == 0
# The root's mount is left alone: a chroot's root is none. What is mounted may then be seen outside,
# and is taken away at the end.
OWN_MOUNTS = ("unshare", "-m", "--propagation", "unchanged", "sh", "-c")
SMALL_DISK = ('mount -t tmpfs -o size=%s tmpfs "$1" && cd "$1" || exit 99; '
              "trap 'cd / && umount \"$1\"' EXIT; ")
SANITIZED = os.environ.get("SANITIZED") == "1"


def prcb(*args, **options):
    options.setdefault("timeout", 60)
    return subprocess.run([PRCB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, **options)


def why_not(*args):
    """Why nothing can be recorded here; None: it can."""
    with tempfile.TemporaryDirectory() as folder:
        result = prcb("record", *args, "-o", os.path.join(folder, "try"), "--", "true")
    return None if result.returncode == 0 else result.stderr.decode().strip()


REASON = why_not()
BPF_REASON = why_not("--tier", "bpf")
BPF = BPF_REASON is None


def stay_on_one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def fastest():
    """The most samples a second that the kernel allows; it lowers that itself where they take long."""
    with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as file:
        return int(file.read())


def rate(hertz):
    """The rate for -F, or what is allowed where a lower one does as well."""
    return str(min(hertz, fastest()))


def needs_rate(hertz):
    return unittest.skipIf(fastest() < hertz, f"kernel.perf_event_max_sample_rate is {fastest()}, "
                           f"and this needs {hertz} samples a second")


def stolen():
    """Seconds that a hypervisor took of the processors so far."""
    with open("/proc/stat", encoding="ascii") as file:
        return int((file.readline().split() + ["0"] * 8)[8]) / os.sysconf("SC_CLK_TCK")


def preempted(pid):
    """How often its first thread lost its processor against its will."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return int(re.search(r"nonvoluntary_ctxt_switches:\s+(\d+)", file.read())[1])


class Recording(unittest.TestCase):
    def setUp(self):
        if REASON:
            self.skipTest(REASON)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "recording")

    def record(self, *args, **options):
        result = prcb("record", "-o", self.path, *args, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def report(self, *args):
        result = prcb("report", *args, self.path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def json(self, *args):
        return json.loads(self.report("-j", *args))

    def query(self, sql):
        with sqlite3.connect(self.path) as db:
            return db.execute(sql).fetchall()

    def sleeper(self):
        # pylint: disable-next=consider-using-with
        target = subprocess.Popen(["sleep", "1000"])
        for clean in (target.wait, target.kill):
            self.addCleanup(clean)
        deadline = time.monotonic() + 20
        while True:
            with open(f"/proc/{target.pid}/syscall", encoding="ascii") as file:
                # In read() and page faults it is still being loaded.
                if file.read().split()[0] not in ("running", "-1", "0"):
                    return target.pid
            self.assertLess(time.monotonic(), deadline)


def spent_of(output):
    """What record_shares printed."""
    return {name: int(ns) for name, ns in (line.split() for line in output.splitlines())}


def shares_of(output):
    """The same, as shares of the whole."""
    spent = spent_of(output)
    return {name: ns / sum(spent.values()) for name, ns in spent.items()}


@needs_rate(10000)
class Shares(Recording):
    """10,000 samples and more: the error of a share is below 0.5 % (one standard deviation) even if
    samples were independent of each other, and they are less random than that."""

    def own(self, rows, weight, said):
        """What the three functions have of it. The rest is the kernel's: interrupts, those of the samples first,
        and on a busy machine a quarter of the time; but for clocks, and the program's start and end."""
        own = sum(row["self"] for row in rows if row["function"] in said)
        kernel = sum(row["self"] for row in rows if row["file"] == "[kernel]")
        self.assertGreater(own + kernel, 0.95 * weight)
        self.assertGreater(own, 0.5 * weight)
        return own

    @staticmethod
    def bound(rows, weight, run_ns):
        """How far a share may be off: three standard deviations of 10,000 independent samples, and all that the
        functions' samples lack to the thread's own clock, should it be of one function: those that the kernel's
        interrupts took, and those of time that a hypervisor took, or too many behind it."""
        kernel = sum(row["self"] for row in rows if row["file"] == "[kernel]")
        return 3 * 0.005 + kernel / weight + abs(weight / run_ns - 1)

    def test_against_the_threads_own_clock(self):
        taken = stolen()
        spent = spent_of(self.record("-F", "10000", "--", SHARES, "1"))
        taken = stolen() - taken
        report, total = self.json(), sum(spent.values())
        said = {name: ns / total for name, ns in spent.items()}
        run, unknown = (report["threads"][0][name] for name in ("run_ns", "unknown_ns"))
        got = {row["function"]: row for row in report["functions"]}
        own = self.own(report["functions"], report["weight"], said)
        bound = self.bound(report["functions"], report["weight"], run)
        for name, share in said.items():
            self.assertAlmostEqual(got[name]["self"] / own, share, delta=bound)
            self.assertEqual(os.path.realpath(got[name]["file"]), os.path.realpath(SHARES))
        # A sample stands for a ten thousandth of a second of the thread's own time, but for time that a hypervisor
        # took, which has none. The clock says how long that was, not the argument: the last round may be a long one.
        self.assertEqual(report["unit"], "ns")
        self.assertAlmostEqual(report["weight"] / run, 1, delta=0.1 + taken * 1e9 / run)
        # What the program does besides its rounds; the clock of perf's switches is read a little apart. Kernels of some
        # virtual machines do not report all switches (docs/processors.md): it may have run in what is unknown.
        self.assertGreater(run + unknown, 0.99 * total)
        self.assertLess(run, total + 0.1e9 + taken * 1e9)

    def test_same_as_perf(self):
        perf = shutil.which("perf")
        data = os.path.join(self.folder, "perf.data")
        if not perf or subprocess.run([perf, "record", "-e", "cpu-clock", "-o", data, "true"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      check=False).returncode:
            self.skipTest("perf record does not work here")
        output = subprocess.run([perf, "record", "-q", "-e", "cpu-clock", "-F", "10000", "-o", data,
                                 SHARES, "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                check=True, text=True).stdout
        lines = subprocess.run([perf, "report", "-i", data, "--stdio", "-s", "sym", "-F",
                                "sample,sym"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=True, text=True).stdout
        perfs = [{"self": int(count) * 100000, "file": "[kernel]" if mode == "k" else "", "function": name}
                 for count, mode, name in re.findall(r"(\d+)\s+\[([.k])\]\s+(\w+)", lines)]
        ours = self.record("-F", "10000", "--", SHARES, "1")
        for rows, output in (perfs, output), (self.json("--table", "functions")["functions"], ours):
            weight, said = sum(row["self"] for row in rows), shares_of(output)
            own = self.own(rows, weight, said)
            bound = self.bound(rows, weight, sum(spent_of(output).values()))
            for name, share in said.items():
                found = sum(row["self"] for row in rows if row["function"] == name)
                self.assertAlmostEqual(found / own, share, delta=bound)

    def test_perf_ring_and_ebpf_agree(self):
        for tier in ("perf", "bpf"):
            if tier == "bpf" and not BPF:
                self.skipTest(BPF_REASON)
            taken = stolen()
            said = shares_of(self.record("--tier", tier, "-F", "10000", "--", SHARES, "1"))
            taken = stolen() - taken
            report = self.json("--table", "functions,threads")
            self.assertEqual(report["facts"]["sample_source"],
                             {"perf": "perf ring", "bpf": "eBPF"}[tier])
            run = report["threads"][0]["run_ns"]
            self.assertAlmostEqual(report["weight"] / run, 1, delta=0.1 + taken * 1e9 / run)
            got = {row["function"]: row["self"] for row in report["functions"] if row["function"] in said}
            own = self.own(report["functions"], report["weight"], said)
            bound = self.bound(report["functions"], report["weight"], run)
            for name, share in said.items():
                self.assertAlmostEqual(got[name] / own, share, delta=bound)

    def test_stacks(self):
        self.record("-g", "-F", rate(5000), "--", SHARES, "0.5")
        report = self.json()
        total = {row["function"]: row["total"] for row in report["functions"]}
        # All three are called by one function that is called by main.
        for name in ("main", "round_of_all"):
            self.assertGreater(total[name], 0.9 * report["weight"])
        folded = self.report("--folded").decode().splitlines()
        burn = [line for line in folded if ";main;round_of_all;burn_half" in line]
        self.assertTrue(burn, folded[:5])
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded), report["weight"])
        stacks = [line.rsplit(" ", 1)[0] for line in folded]
        self.assertEqual(len(stacks), len(set(stacks)), "each stack has one line")


class File(Recording):
    def test_every_query_of_the_document(self):
        self.record("-g", "--", SHARES, "0.2")
        with open(os.path.join(SOURCE, "docs/record-file.md"), encoding="utf-8") as file:
            queries = re.findall(r"```sql\n(.*?)```", file.read(), re.S)
        self.assertEqual(len(queries), 6)
        self.assertEqual(self.query(queries[0])[0][0], "burn_half")
        names = [row[1] for row in self.query(queries[1])]
        self.assertTrue(names)
        self.query(queries[2])

    def test_every_column_of_the_document(self):
        self.record("--", "true")
        with open(os.path.join(SOURCE, "docs/record-file.md"), encoding="utf-8") as file:
            text = file.read()
        for (table,) in self.query("SELECT name FROM sqlite_master WHERE type='table'"):
            self.assertIn(f"`{table}`", text)
            columns = [row[1] for row in self.query(f"PRAGMA table_info({table})")]
            for column in columns:
                self.assertRegex(text, rf"`({table}\.)?{column}`", table)
        for (name,) in self.query("SELECT name FROM facts"):
            family, dot, _ = name.partition(".")  # of which there is one for each program
            self.assertIn(f"`{family}{dot}`", text)
        self.assertEqual(self.query("PRAGMA user_version"), [(1,)])
        self.assertEqual(self.query("PRAGMA application_id"), [(0x50524342,)])
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    def test_processes_of_a_command(self):
        self.record("--", "sh", "-c", "true; /bin/true & wait; :")
        names = [row[0] for row in self.query("SELECT name FROM threads WHERE end_ns NOT NULL")]
        self.assertIn("sh", names)
        self.assertIn("true", names)
        parents = self.query("SELECT count(*) FROM threads a JOIN threads b "
                             "ON a.parent_pid = b.pid")
        self.assertGreater(parents[0][0], 0)

    def test_short_processes(self):
        """They end before the timer of their own does: that is said, and -a has no such gap."""
        script = ["sh", "-c", "for i in $(seq 30); do $0 0.004; done", SHARES]
        if not BPF:
            self.skipTest(BPF_REASON)
        self.record("-F", "10", "--", *script)
        report = self.json()
        ran = sum(row["run_ns"] for row in report["threads"])
        self.assertGreater(ran, 30 * 4e6)
        self.assertLess(report["weight"], ran / 2)
        self.assertIn(b"note: samples stand for", self.report())
        taken = stolen()
        self.record("-a", "-F", "1000", "--", *script)
        taken = stolen() - taken
        report = self.json()
        ours = [row for row in report["threads"] if row["name"] == "record_shares"]
        # Samples at points of the processors' time: a few percent more or less. What a hypervisor
        # takes is in a thread's time and has no samples.
        run = sum(row["run_ns"] for row in ours)
        share = sum(row["weight"] for row in ours) / run
        self.assertGreater(share, 0.6 - taken * 1e9 / run)
        self.assertLess(share, 1.3)
        self.assertNotIn(b"note: samples stand for", self.report())
        self.record("--", SHARES, "0.3")
        self.assertNotIn(b"note: samples stand for", self.report())

    def test_build_ids(self):
        self.record("--", SHARES, "0.2")
        rows = self.query("SELECT DISTINCT m.build_id FROM maps m JOIN stacks k ON k.map = m.id "
                          "WHERE m.file LIKE '%record_shares'")
        readelf = shutil.which("readelf")
        if not readelf:
            self.skipTest("no readelf")
        notes = subprocess.run([readelf, "-n", SHARES], stdout=subprocess.PIPE, check=True,
                               text=True).stdout
        self.assertIn(rows[0][0], notes)

    def test_switches_are_the_kernels(self):
        """A thread that sleeps N times leaves the processor N times for it, or a little less
        often on a busy machine: a sleep until a moment that has passed is none."""
        code = "import time\nfor i in range(50): time.sleep(0.001)"
        self.record("--", PYTHON, "-I", "-S", "-c", code)
        rows = self.query("SELECT count(*) FROM switches WHERE state='waiting'")
        self.assertGreater(rows[0][0], 35)
        self.assertLess(rows[0][0], 150)
        report = self.json()
        self.assertGreater(sum(row["wait_ns"] for row in report["threads"]), 20 * 1000000)

    def test_causes(self):
        if not BPF:
            self.skipTest(BPF_REASON)
        code = ("import time, os\nfor i in range(40): time.sleep(0.002)\n"
                "r, w = os.pipe()\nparent = os.getpid()\nif not os.fork():\n"
                " while open('/proc/%d/stat' % parent).read().rsplit(')', 1)[1][1] != 'S': pass\n"
                " time.sleep(0.2); os._exit(0)\n"
                "os.close(w); os.read(r, 1)")
        self.record("--", PYTHON, "-I", "-S", "-c", code)
        report = self.json()
        waits = {row["cause"]: row for row in report["waits"] if row["state"] == "waiting"}
        # A sleep until a moment that has passed by then, on a busy machine, is none.
        self.assertLessEqual(waits["sleep"]["count"], 41)
        self.assertGreater(waits["sleep"]["count"], 25)
        self.assertEqual(waits["sleep"]["reason_name"], "DelayExecution")
        # Some kernels do not report each switch from idleness, nor then the whole of the wait before it: the child's
        # sleep of 200 ms, say.
        self.assertGreater(waits["sleep"]["ns"], 2e6 * (waits["sleep"]["count"] - 2))
        self.assertEqual(waits["pipe"]["reason"], 0)
        self.assertGreater(waits["pipe"]["ns"], 50000000)
        # A thread is at each moment in one state: its stretches fill its life, to its last
        # switch, which comes some work after what the kernel calls its exit.
        lives = dict(self.query("SELECT id, max(end_ns, ifnull((SELECT max(time_ns) FROM switches "
                                "WHERE old_thread = id), 0)) - start_ns FROM threads"))
        whole = sum(lives.values())
        parts = sum(row["run_ns"] + row["ready_ns"] + row["wait_ns"] for row in report["threads"])
        self.assertAlmostEqual((parts + self.untold()) / whole, 1, delta=0.02)

    def untold(self):
        """Between two switches away from a thread the kernel did not report one to it (docs/processors.md,
        missed_switches): what it did in between is not known."""
        left, between = {}, 0
        for now, old, new in self.query("SELECT time_ns, old_thread, new_thread FROM switches ORDER BY time_ns, rowid"):
            if old in left:
                between += now - left[old]
            left[old] = now
            left.pop(new, None)
            left.pop(None, None)
        return between

    def test_whole_system(self):
        if not ROOT:
            self.skipTest("the whole system is root's")
        result = prcb("record", "-a", "-o", self.path, "--", SHARES, "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = self.json()
        self.assertIn("burn_half", [row["function"] for row in report["functions"]])
        for row in report["processors"]:
            # No processor runs two threads at a time, nor longer than there was time.
            self.assertLessEqual(row["run_ns"], report["span_ns"])

    def test_switches_that_were_not_told(self):
        """A thread that leaves a processor which it was not seen to come to has not run on it since
        the beginning: others have."""
        if not BPF:
            self.skipTest(BPF_REASON)
        self.record(*(["-a"] if ROOT else []), "--", SHARES, "0.3")
        connection = sqlite3.connect(self.path)
        with contextlib.closing(connection), connection:
            # Of each thread but the first on its processor the first coming.
            connection.execute(
                "DELETE FROM switches WHERE rowid IN (SELECT min(rowid) FROM switches GROUP BY "
                "new_thread) AND rowid NOT IN (SELECT min(rowid) FROM switches GROUP BY cpu)")
        report = self.json()
        for row in report["processors"]:
            self.assertLessEqual(row["run_ns"], report["span_ns"])

    def test_an_end_whose_switch_was_not_told(self):
        """A parent makes a child and ends; the switch between them was not told. What the child did
        since it was made is not known: until its end the parent was on that processor."""
        self.record("--", "true")
        connection = sqlite3.connect(self.path)
        with contextlib.closing(connection), connection:
            start, = connection.execute("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'start_ns'").fetchone()
            for table in "samples", "switches", "threads", "processor_times":
                connection.execute(f"DELETE FROM {table}")
            connection.execute("UPDATE facts SET value = ? WHERE name = 'end_ns'", (str(start + 1000),))
            connection.executemany("INSERT INTO threads(id, pid, tid, start_ns, end_ns, start_state) VALUES(?,?,?,?,?,?)",
                                   [(1, 71, 71, start, start + 600, "waiting"), (2, 72, 72, start + 500, None, "ready")])
            connection.executemany("INSERT INTO switches(time_ns, cpu, old_thread, new_thread, state) VALUES(?,?,?,?,?)",
                                   [(start, 0, None, 1, None), (start + 1000, 0, 2, None, "waiting")])
        report = self.json()
        self.assertEqual(report["span_ns"], 1000)
        self.assertEqual({row["tid"]: row["run_ns"] for row in report["threads"] if row["run_ns"]}, {71: 600})
        self.assertEqual([row["run_ns"] for row in report["processors"] if row["cpu"] == 0], [600])

    def test_a_sleeping_thread_that_was_moved(self):
        """The kernel counts one as ready from then on; it was not before it was woken."""
        if not BPF:
            self.skipTest(BPF_REASON)
        self.record("--", "true")
        connection = sqlite3.connect(self.path)
        with contextlib.closing(connection), connection:
            start, = connection.execute("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'start_ns'").fetchone()
            for table in "samples", "switches", "threads", "processor_times", "wakers":
                connection.execute(f"DELETE FROM {table}")
            connection.execute("UPDATE facts SET value = ? WHERE name = 'end_ns'", (str(start + 1000),))
            connection.execute("INSERT INTO wakers(id, by, name) VALUES(1, 'timer', '')")
            connection.executemany("INSERT INTO threads(id, pid, tid, start_ns, start_state) VALUES(?,?,?,?,?)",
                                   [(tid, tid, tid, start, "running") for tid in (71, 72)])
            connection.executemany(
                "INSERT INTO switches(time_ns, cpu, old_thread, new_thread, state, cause, ready_ns, waker, woken_ns) "
                "VALUES(?,?,?,?,?,?,?,?,?)",
                [(start + 100, 0, 71, None, "waiting", "sleep", None, None, None),
                 (start + 100, 1, 72, None, "waiting", "sleep", None, None, None),
                 (start + 900, 0, None, 71, None, None, 700, 1, start + 800),
                 (start + 900, 1, None, 72, None, None, 50, 1, start + 800)])
        self.assertEqual({row["tid"]: (row["run_ns"], row["ready_ns"], row["wait_ns"])
                          for row in self.json()["threads"]}, {71: (200, 100, 700), 72: (200, 50, 750)})

    def test_what_was_there_before(self):
        """A thread that slept when the recording began was not ready until it ran."""
        code = "import time\nprint('', flush=True)\nwhile True: time.sleep(0.4)"
        # pylint: disable-next=consider-using-with
        target = subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE)
        for clean in (target.wait, target.stdout.close, target.kill): # the last one first
            self.addCleanup(clean)
        target.stdout.read(1)
        for options in ([["-a"]] if ROOT else []) + [["-p", str(target.pid)]]:
            for _ in range(20): # it may be between two sleeps, and without a processor
                before = preempted(target.pid)
                self.record(*options, "--for", "0.6")
                after = preempted(target.pid)
                start, begun, state = self.query(
                    "SELECT CAST(value AS INTEGER), start_ns, start_state FROM facts, threads "
                    f"WHERE facts.name = 'start_ns' AND tid = {target.pid}")[0]
                self.assertEqual(start, begun)
                if state == "waiting" and before == after:
                    break
            self.assertEqual(state, "waiting")
            ready = [row["ns"] for row in self.json("--table", "waits")["waits"]
                     if row["state"] == "ready" and not row["cause"]]
            # Between two sleeps it may lose its processor on a busy machine, as the kernel counts.
            if "-p" in options and before == after:
                self.assertEqual(sum(ready), 0)

    @contextlib.contextmanager
    def three_threads(self):
        """A process of three threads that all run and sleep, with their numbers."""
        code = ("import threading, time\n"
                "def work():\n    while True:\n        sum(range(5000)); time.sleep(.001)\n"
                "for i in range(2): threading.Thread(target=work, daemon=True).start()\n"
                "print(*[t.native_id for t in threading.enumerate()], flush=True)\nwork()\n")
        with subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, text=True) as target:
            try:
                yield target.pid, [int(word) for word in target.stdout.readline().split()]
            finally:
                target.kill()

    def test_one_thread(self):
        for tier in ([] if BPF_REASON else ["bpf"]) + ["perf"]:
            with self.three_threads() as (pid, tids):
                self.record("--tier", tier, "-t", str(tids[1]), "--for", "0.5")
            self.assertEqual(self.query("SELECT pid, tid FROM threads"), [(pid, tids[1])])
            self.assertGreater(self.query("SELECT count(*) FROM switches")[0][0], 10)
            # Where its process has what, once.
            maps = self.query("SELECT count(*), count(DISTINCT start) FROM maps")[0]
            self.assertEqual(maps[0], maps[1])
        result = prcb("record", "-o", self.path, "-t", "4194305")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"thread 4194305: there is none", result.stderr)

    @unittest.skipUnless(ROOT, "making a cgroup needs root")
    def test_cgroup(self):
        """The threads that are in it, and what these start; nobody else."""
        with open("/proc/self/mounts", encoding="ascii") as mounts:
            root = next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)
        if not root:
            self.skipTest("no cgroup2 is mounted")
        folder = f"{root}/prcb-record-{os.getpid()}"
        try:
            os.mkdir(folder)
        except OSError as error:
            self.skipTest(f"{folder}: {error.strerror}")
        try:
            with self.three_threads() as (pid, tids), self.three_threads():
                with open(folder + "/cgroup.procs", "w", encoding="ascii") as file:
                    file.write(str(pid))
                # One that is named twice is recorded once.
                self.record("--cgroup", folder, "-t", str(tids[1]), "--for", "0.5")
            self.assertEqual(sorted(self.query("SELECT tid FROM threads")), sorted((tid,) for tid in tids))
            self.assertEqual(self.query("SELECT value FROM facts WHERE name = 'scope'"), [("threads",)])
        finally:
            for _ in range(1000):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
                    break
                time.sleep(.01)

    def test_a_thread_that_never_runs(self):
        """No switch tells of it: all of the recording it waited, and not for nothing."""
        pid = self.sleeper()
        for tier in ([] if BPF_REASON else ["bpf"]) + ["perf"]:
            self.record("--tier", tier, "-p", str(pid), "--for", "0.3")
            report = self.json()
            thread = report["threads"][0]
            self.assertEqual((thread["run_ns"], thread["ready_ns"], thread["unknown_ns"]), (0, 0, 0))
            self.assertEqual(thread["wait_ns"], report["span_ns"])
            self.assertEqual([(row["state"], row["cause"], row["ns"]) for row in report["waits"]],
                             [("waiting", "sleep" if tier == "bpf" else None, report["span_ns"])])

    def test_what_is_not_known_is_not_nought(self):
        """The same thread where nothing tells what it did."""
        self.record("-p", str(self.sleeper()), "--for", "0.2")
        with sqlite3.connect(self.path) as db:
            db.execute("UPDATE threads SET start_state = NULL, start_cause = NULL")
        thread = self.json()["threads"][0]
        self.assertEqual([thread[name] for name in ("run_ns", "ready_ns", "wait_ns")], [None] * 3)
        self.assertEqual(thread["unknown_ns"], self.json()["span_ns"])
        self.assertRegex(self.report("--table", "threads").decode(), r" - +- +- +\d+ +\d+  sleep")

    def test_never_switched(self):
        """Between exec and exit no switch is told on the perf ring: it ran all the time. Nobody takes
        the processor from a thread of a real-time class, which root alone may make."""
        before = ["chrt", "-f", "1"] if ROOT and shutil.which("chrt") else []
        for _ in range(20):
            self.record("--tier", "perf", "-F", rate(5000), "--", *before, SHARES, "0.01")
            threads = self.json()["threads"]
            for thread in threads:
                if thread["samples"]:
                    self.assertGreater(thread["run_ns"], 0, threads)
            if not self.query("SELECT count(*) FROM switches")[0][0]:
                return

    def test_recordings_of_before(self):
        """Those without what a thread did at its start, stacks of waits and wakers."""
        self.record("--", SHARES, "0.1")
        with sqlite3.connect(self.path) as db:
            db.executescript("DROP TABLE wait_stacks; DROP TABLE wakers; ALTER TABLE stacks DROP COLUMN name;" + "".join(
                f"ALTER TABLE switches DROP COLUMN {name};"
                for name in ("waker", "woken_ns", "woken_cpu")) + "".join(
                f"ALTER TABLE threads DROP COLUMN start_{name};"
                for name in ("state", "cause", "reason")) +
                             "DELETE FROM facts WHERE name IN ('wait_stacks', 'wakers');")
        self.assertGreater(self.json()["threads"][0]["run_ns"], 0)

    def test_without_switches(self):
        self.record("--no-switches", "--", SHARES, "0.1")
        self.assertEqual(self.query("SELECT count(*) FROM switches"), [(0,)])
        report = self.json()
        self.assertIsNone(report["waits"])
        self.assertIsNone(report["threads"][0]["run_ns"])
        self.assertIn(b"no switches were recorded", self.report())

    def test_other_event(self):
        self.record("-e", "page-faults", "-c", "1", "--", PYTHON, "-I", "-S", "-c",
                    "x = bytearray(20000000)")
        report = self.json()
        self.assertEqual(report["unit"], "events")
        self.assertGreater(report["weight"], 1000)

    @unittest.skipIf(os.environ.get("DEMANGLES") == "0", "built without libiberty")
    def test_names_of_the_source(self):
        self.record("-F", rate(2000), "--", MANGLED, "0.2")
        shares = {row["function"]: row["self"] for row in self.json()["functions"]}
        self.assertEqual(max(shares, key=shares.get), "demo::spin(int)")
        self.assertIn(";demo::spin(int) ", self.report("--folded").decode())

    def test_just_in_time_code(self):
        """Code in anonymous memory, named by the file that its compiler writes."""
        code = """
import ctypes, mmap, os
area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
area.write(bytes.fromhex('b900e1f505' 'ffc9' '75fc' 'c3'))  # mov ecx, 100000000; dec; jnz; ret
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
with open('/tmp/perf-%d.map' % os.getpid(), 'w') as file:
    file.write('%x 40 jitted: a loop\\n' % at)
ctypes.CFUNCTYPE(None)(at)()
print(os.getpid())
"""
        if os.uname().machine != "x86_64":
            self.skipTest("the code is x86-64's")
        pid = int(self.record("-F", rate(2000), "--", PYTHON, "-c", code))
        os.unlink("/tmp/perf-%d.map" % pid)
        names = {row["function"]: row["samples"] for row in self.json()["functions"]}
        self.assertGreater(names.get("jitted: a loop", 0), 10)


# Two processes pass a byte there and back; then sleeps; then a datagram to itself, through the
# loopback device, each in a thread that does nothing else. They print their thread numbers.
WOKEN = """
import os, socket, threading, time
there, back = os.pipe(), os.pipe()
child = os.fork()
if not child:
    for i in range(1000):
        os.read(there[0], 1)
        os.write(back[1], b"x")
    os._exit(0)
for i in range(1000):
    os.write(there[1], b"x")
    os.read(back[0], 1)
os.waitpid(child, 0)
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(2)]
for s in sockets: s.bind(("127.0.0.1", 0))
def sleep():
    print("sleep", threading.get_native_id(), flush=True)
    for i in range(100): time.sleep(0.001)
def receive():
    print("net", threading.get_native_id(), flush=True)
    for i in range(100): sockets[1].recv(1)
threads = [threading.Thread(target=f) for f in (sleep, receive)]
for t in threads: t.start()
for i in range(100):
    time.sleep(0.002)
    sockets[0].sendto(b"x", sockets[1].getsockname())
for t in threads: t.join()
print("pipe", child, os.getpid())
"""


class Wakers(Recording):
    """By whom the waits of a program ended that does nothing but wait for what is known."""
    def setUp(self):
        super().setUp()
        if not BPF:
            self.skipTest(BPF_REASON)

    def waits(self, tid, cause):
        """(waker's by, name, thread's tid, woken_ns, moment of leaving, of coming) of each wait."""
        found, left = [], None
        names = {row[0]: row[1:] for row in self.query(
            "SELECT w.id, w.by, w.name, t.tid, w.tid FROM wakers w LEFT JOIN threads t "
            "ON t.id = w.thread")}
        threads = {row[0] for row in self.query(f"SELECT id FROM threads WHERE tid = {tid}")}
        for now, old, new, why, waker, woken in self.query(
                "SELECT time_ns, old_thread, new_thread, cause, waker, woken_ns FROM switches "
                "ORDER BY time_ns, rowid"):
            if new in threads and left and left[1] == cause:
                found.append((*names.get(waker, (None,) * 4), woken, left[0], now))
            if new in threads or old in threads:
                left = (now, why) if old in threads else None
        return found

    def check_woken(self, tid, cause, least, by, name=None, waker=None):
        waits = self.waits(tid, cause)
        self.assertGreater(len(waits), least)
        right = 0
        for got, title, thread, number, woken, left, come in waits:
            if got is None:
                continue  # the kernel did not report the waking, or the switch before
            self.assertLessEqual(woken, come)
            # A wake may find its sleeper about to sleep, but not long before.
            self.assertGreater(woken, left - 100000000)
            right += got == by and name in (None, title) and (waker in (None, thread, number))
        self.assertGreaterEqual(right / len(waits), 0.95, (cause, waits[:20]))

    def test_program(self):
        out = self.record("--", PYTHON, "-I", "-S", "-c", WOKEN)
        tids = {words[0]: [int(word) for word in words[1:]]
                for words in map(str.split, out.splitlines())}
        child, parent = tids["pipe"]
        self.check_woken(parent, "pipe", 100, "thread", waker=child)
        self.check_woken(child, "pipe", 100, "thread", waker=parent)
        self.check_woken(tids["sleep"][0], "sleep", 50, "timer")
        self.check_woken(tids["net"][0], "socket", 50, "softirq", "net_rx")
        self.assertEqual(self.query("SELECT value FROM facts WHERE name = 'wakers'"), [("1",)])

    def test_a_waker_that_is_not_recorded(self):
        """This process, by number and name; it gets no row among the threads."""
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
            with subprocess.Popen([PRCB, "record", "-o", self.path, "-p", str(cat.pid)],
                                  stderr=subprocess.PIPE) as process:
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    cat.stdin.write(b"x")
                    cat.stdin.flush()
                    cat.stdout.read(1)
                    try:
                        if os.path.exists(self.path) and self.query(
                                "SELECT count(*) FROM switches WHERE waker NOT NULL")[0][0]:
                            break
                    except sqlite3.Error:
                        pass  # there is no table yet
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)
            cat.stdin.close()
        with open("/proc/self/comm", encoding="utf-8") as file:
            name = file.read().rstrip("\n")
        self.assertIn(("thread", None, os.getpid(), os.getpid(), name),
                      self.query("SELECT by, thread, pid, tid, name FROM wakers"))
        self.assertEqual(self.query("SELECT pid FROM threads"), [(cat.pid,)])

    @unittest.skipUnless(ROOT, "a loop device needs root")
    def test_disk(self):
        """Reads of a loop device end by the block layer's softirq or its workers, by no timer."""
        image = os.path.join(self.folder, "image")
        with open(image, "wb") as file:
            file.truncate(4 << 20)
        made = subprocess.run(["losetup", "-f", "--show", image], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if made.returncode:
            self.skipTest(f"no loop device: {made.stderr.decode()}")
        device = made.stdout.decode().strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", device], check=False)
        self.record("--", "dd", f"if={device}", "of=/dev/null", "bs=4096", "count=200",
                    "iflag=direct")
        tid = self.query("SELECT max(tid) FROM threads WHERE name = 'dd'")[0][0]
        waits = self.waits(tid, "disk")
        self.assertGreater(len(waits), 100)
        by = [(row[0], row[1] or "") for row in waits]
        good = sum(how == ("softirq", "block") or how[0] == "interrupt" or
                   (how[0] == "thread" and how[1].startswith(("kworker", "loop"))) for how in by)
        self.assertGreater(good / len(by), 0.95, collections.Counter(by))

    @unittest.skipUnless(ROOT, "bpftrace needs root")
    def test_beside_bpftrace(self):
        """A server and one client, through a socket of the file system: who woke the server, as bpftrace
        counts it at the kernel's tracepoint, and in the recording and by the accounts that lie in its time."""
        for tool in "bpftrace", "redis-server", "redis-benchmark":
            if not shutil.which(tool):
                self.skipTest(f"no {tool}")
        path = os.path.join(self.folder, "socket")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", ""],
                                  stdout=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        # It looks tracepoints up in tracefs, which is mounted where it alone sees it.
        script = ('[ -e /sys/kernel/tracing/events ] || { mount --make-private /sys && '
                  'mount -t tracefs tracefs /sys/kernel/tracing; }; '
                  'exec timeout 50 bpftrace -e "$0" 2>&1')
        program = ("tracepoint:sched:sched_waking /args->pid == %d/ { @[pid] = count(); } "
                   'BEGIN { printf("begun\\n"); }' % server.pid)
        witness = subprocess.Popen([*OWN_MOUNTS, script, program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(witness.stdout.close)
        said = ""
        for line in witness.stdout:
            said += line
            if line == "begun\n":
                break
        else:
            witness.wait()
            self.skipTest(f"bpftrace does not run here: {said}")
        with self.recording("-p", str(server.pid)) as process:
            accounts = os.path.join(self.folder, "accounts")
            client = subprocess.run([PRCB, "stat", "--by-whom", "--per-thread", "-j", "-o", accounts, "-p",
                                     str(server.pid), "--", "redis-benchmark", "-s", path, "-c", "1", "-n", "3000",
                                     "-t", "ping_mbulk", "-q"], stdout=subprocess.DEVNULL, check=False, timeout=60)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        witness.send_signal(signal.SIGINT)
        text = witness.communicate(timeout=60)[0]
        self.assertEqual(client.returncode, 0)
        counted = {int(pid): int(count) for pid, count in re.findall(r"@\[(\d+)\]: (\d+)", text)}
        recorded = dict(self.query(
            "SELECT w.pid, count(*) FROM switches s JOIN wakers w ON w.id = s.waker "
            f"JOIN threads t ON t.id = s.new_thread WHERE t.tid = {server.pid} AND w.by = 'thread' "
            "GROUP BY w.pid"))
        with open(accounts, encoding="utf-8") as file:
            row = next(row for row in json.load(file)["threads"] if row["tid"] == server.pid)
        edges = collections.Counter()
        for who in itertools.chain.from_iterable(row["by_whom"]["woken_by"].values()):
            if who["by"] == "thread":
                edges[who["pid"]] += who["count"]
        for told in recorded, edges:
            pid, count = max(told.items(), key=lambda item: item[1])
            self.assertGreater(count, 100)
            # A wake of the server while it runs ends no wait, and is counted there only.
            self.assertLessEqual(count, counted.get(pid, 0))
            self.assertGreater(count, 0.9 * counted[pid])
            self.assertGreater(count, 0.95 * sum(told.values()))

    @contextlib.contextmanager
    def recording(self, *args):
        """prcb record, once its file is there."""
        with subprocess.Popen([PRCB, "record", "-o", self.path, *args],
                              stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and process.poll() is None:
                try:
                    if os.path.exists(self.path) and self.query(
                            "SELECT count(*) FROM processor_times")[0][0]:
                        break
                except sqlite3.Error:
                    pass  # there is no table yet
                time.sleep(0.01)
            yield process

    def test_left_out(self):
        self.record("--no-wakers", "--", "sleep", "0.01")
        self.assertEqual(self.query("SELECT count(*) FROM wakers"), [(0,)])
        self.assertEqual(self.query("SELECT count(*) FROM switches WHERE waker NOT NULL"), [(0,)])
        self.assertEqual(self.query("SELECT value FROM facts WHERE name = 'wakers'"), [("0",)])


# It waits for a child, that for one of its own, which works; then each works for itself. They print
# what their clocks say.
CHAIN = """
import os, time
first, second = os.pipe(), os.pipe()
def work(seconds):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < seconds * 1e9: pass
    print("work", os.getpid(), time.thread_time_ns() - begin, flush=True)
child = os.fork()
if not child:
    waiter = os.getpid()
    grandchild = os.fork()
    if not grandchild:
        # What it does before the other waits for it is on nobody's path.
        while open("/proc/%d/stat" % waiter).read().rsplit(")", 1)[1].split()[0] != "S": pass
        work(0.15)
        os.write(second[1], b"x")
        os._exit(0)
    os.read(second[0], 1)
    work(0.1)
    os.write(first[1], b"x")
    os.wait()
    os._exit(0)
os.read(first[0], 1)
print("root", os.getpid(), child, flush=True)
time.sleep(0.05)
os.wait()
"""


class Lines(Recording):
    """prcb report --lines beside addr2line, for each address that was sampled."""

    def witness(self, places):
        """Of each place "FILE:LINE" and the functions, innermost first, by binutils."""
        found = {}
        for place in places:
            text = subprocess.run(["addr2line", "-f", "-i", "-e", INLINES, hex(place)], stdout=subprocess.PIPE, check=True,
                                  timeout=60).stdout.decode().split("\n")[:-1]
            where = re.sub(r" \(discriminator \d+\)$", "", text[1])
            found[place] = (where, text[::2])
        return found

    @staticmethod
    def in_tree(path):
        """The last three parts. What is before them is the place of the build, where a compiler cache may put another's."""
        return "/".join(path.split("/")[-3:])

    @unittest.skipUnless(shutil.which("addr2line"), "addr2line (binutils) is not installed")
    def test_as_addr2line(self):
        self.record("-F", rate(2000), "--", INLINES)
        document = json.loads(self.report("--lines", "-j"))
        places = self.query("SELECT k.address - m.start + m.file_offset, count(*) FROM samples s "
                            "JOIN stacks k ON k.id = s.stack JOIN maps m ON m.id = k.map "
                            "WHERE m.file LIKE '%record_inlines' AND NOT k.kernel GROUP BY 1")
        self.assertTrue(places)
        shift = self.address_less_offset()
        lines = self.witness([place + shift for place, _ in places])
        expected = {}
        for place, count in places:
            where, functions = lines[place + shift]
            if not where.startswith("??") and not where.endswith(":?"):
                expected[where, *functions] = expected.get((where, *functions), 0) + count
        shown = {}
        for row in document["lines"]:
            if row["file"] and row["file"].endswith("record_inlines.c"):
                functions = (row["inlined"].split(" < ") if row["inlined"] else []) + [row["function"]]
                key = f"{self.in_tree(row['file'])}:{row['line']}", *functions
                shown[key] = shown.get(key, 0) + row["samples"]
        self.assertEqual(shown, {(self.in_tree(where), *functions): count for (where, *functions), count in expected.items()})
        self.assertTrue(any(key[1:] == ("inner", "middle", "outer") for key in shown))
        self.assertEqual(sum(row["samples"] for row in document["lines"]), document["samples"])
        self.assertEqual(sum(row["weight"] for row in document["lines"]), document["weight"])
        text = self.report("--lines").decode()
        self.assertRegex(text, r"record_inlines\.c:\d+  inner < middle < outer\n")
        rows = list(csv.DictReader(io.StringIO(self.report("--lines", "-x", ",").decode())))
        self.assertEqual(sum(int(row["samples"]) for row in rows), document["samples"])

    def address_less_offset(self):
        """Of the part of the program that is executed, by its own headers."""
        with open(INLINES, "rb") as file:
            data = file.read()
        start, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        for i in range(count):
            kind, flags, offset, address = struct.unpack_from("<IIQQ", data, start + i * size)
            if kind == 1 and flags & 1:
                return address - offset
        raise AssertionError("no part of it is executed")

    def test_nothing_is_known(self):
        """Without debug information all is one row."""
        stripped = os.path.join(self.folder, "stripped")
        subprocess.run(["strip", "-o", stripped, INLINES], check=True, timeout=60)
        self.record("--", stripped)
        document = json.loads(self.report("--lines", "-j"))
        rest = [row for row in document["lines"] if row["line"] is None]
        self.assertEqual(len(rest), 1)
        self.assertFalse([row for row in document["lines"] if row["function"] == "outer"])
        self.assertEqual(sum(row["samples"] for row in document["lines"]), document["samples"])

    def test_goes_with(self):
        for args in (["--folded"], ["--html", "-o", "x"], ["--table", "threads"], ["--diff", "b.db"]):
            self.assertEqual(prcb("report", "--lines", *args, self.path).returncode, 2, args)


class SwitchRows(Recording):
    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(
            self.report("--table", "switches", "-x,", *args).decode())))

    def test_rows(self):
        """They sum to what the report says of each thread, and name wakers as the file does."""
        self.record("-g", "--", "sh", "-c", 'for i in 1 2 3; do sleep 0.02 | cat; done; "$0" 0.2', SHARES)
        rows, report = self.rows(), self.json()
        for thread in report["threads"]:
            own = [row for row in rows if int(row["tid"]) == thread["tid"]]
            alike = [row for row in report["threads"] if row["tid"] == thread["tid"]]
            # What came behind the last stretch on a processor is in no row.
            for name in "run_ns", "ready_ns", "wait_ns":
                self.assertLessEqual(sum(int(row[name] or 0) for row in own),
                                     sum(row[name] or 0 for row in alike))
            self.assertEqual(sum(int(row["run_ns"]) for row in own),
                             sum(row["run_ns"] or 0 for row in alike))
        for row in rows:
            if row["old_tid"]:
                self.assertNotEqual(row["old_tid"], row["tid"])
            if row["waker_tid"]:
                self.assertEqual(row["waker_by"], "thread")
                self.assertGreater(int(row["woken_ns"]), 0)
        if BPF:
            pipes = [row for row in rows if row["cause"] == "pipe" and row["wait_ns"] != "0"]
            self.assertTrue(pipes)
            self.assertIn("thread", {row["waker_by"] for row in pipes})
            self.assertIn("timer", {row["waker_by"] for row in rows if row["cause"] == "sleep"})
            self.assertEqual({row["reason_name"] for row in rows if row["cause"] == "sleep"},
                             {"DelayExecution"})

    def test_names_of_wpa(self):
        self.record("--", "sh", "-c", "sleep 0.02 | cat")
        rows, wpa = self.rows(), self.rows("--names=wpa")
        self.assertEqual(len(rows), len(wpa))
        for own, row in zip(rows, wpa):
            self.assertEqual(row["New Thread Id"], own["tid"])
            self.assertRegex(row["New Process"], rf".* \({own['pid']}\)$")
            self.assertEqual(round(float(row["Switch-In Time (s)"]) * 1e9), int(own["time_ns"]))
            for theirs, ours in (("Waits (us)", "wait_ns"), ("Ready (us)", "ready_ns")):
                self.assertEqual(bool(row[theirs]), bool(own[ours]))
                if own[ours]:
                    self.assertEqual(round(float(row[theirs]) * 1000), int(own[ours]))
            self.assertEqual(row["New Prev Wait Reason"], own["reason_name"])
            self.assertEqual(row["Readying Thread Id"], own["waker_tid"])
            self.assertEqual(row["Ready Thread In DPC"],
                             {"": "", "unknown": "", "thread": "False"}.get(own["waker_by"], "True"))

    def test_arguments(self):
        self.record("--", "true")
        for wrong in (["--table=switches"], ["--table=switches", "-j"], ["--names=wpa", "-x,"],
                      ["--table=switches,waits", "-x,"], ["--table=switches", "-x,", "--names=vtune"]):
            self.assertEqual(prcb("report", *wrong, self.path).returncode, 2, wrong)
        self.record("--no-switches", "--", "true")
        result = prcb("report", "--table=switches", "-x,", self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"no switches were recorded", result.stderr)


class Critical(Recording):
    """The critical path of a program whose parts wait for each other in a known way."""
    def setUp(self):
        super().setUp()
        if not BPF:
            self.skipTest(BPF_REASON)

    def test_chain(self):
        for _ in range(5):
            out = [line.split() for line in self.record("--", PYTHON, "-I", "-S", "-c", CHAIN).splitlines()]
            worked = {int(words[1]): int(words[2]) for words in out if words[0] == "work"}
            root, child = next((int(words[1]), int(words[2])) for words in out if words[0] == "root")
            path = self.json("--critical", str(root))
            steps, at = path["steps"], path["start_ns"]
            unknown = sum(step["ns"] for step in steps if step["state"] == "unknown")
            # Kernels of some virtual machines do not report all switches (docs/processors.md).
            if unknown < path["ns"] / 20:
                break
        self.assertLess(unknown, path["ns"] / 20)
        for step in steps: # they fill the window
            self.assertEqual(step["start_ns"], at)
            self.assertGreater(step["ns"], 0)
            at += step["ns"]
        self.assertEqual(at, path["start_ns"] + path["ns"])
        for tid, ns in worked.items():
            ran = sum(step["ns"] for step in steps if (step["tid"], step["state"]) == (tid, "runs"))
            # Besides its work each starts, and interrupts are in the switches' time and in the clock's. What is unknown
            # may have been its.
            self.assertGreater(ran + unknown, 0.95 * ns)
            self.assertLess(ran, ns + 60000000)
        self.assertEqual({step["depth"] for step in steps if step["tid"] == root}, {0})
        depths = {step["tid"]: step["depth"] for step in steps if step["tid"] in worked and
                  step["state"] == "runs" and step["ns"] > 1000000}
        self.assertEqual(depths[child], 1)
        self.assertEqual(sorted(depths.values()), [1, 2])
        slept = [step for step in steps if step["cause"] == "sleep" and step["state"] == "waits"]
        self.assertEqual([step["waker"] for step in slept], ["timer"])
        self.assertGreater(slept[0]["ns"], 45000000)
        # The same as lines of values, for people, and of a part.
        rows = list(csv.DictReader(io.StringIO(self.report("--critical", str(root), "-x,").decode())))
        self.assertEqual([(int(row["start_ns"]), row["state"]) for row in rows],
                         [(step["start_ns"], step["state"]) for step in steps])
        self.assertIn(b"until timer", self.report("--critical", str(root), "--top", "0"))
        begin = path["start_ns"] / 1e9
        part = self.json("--critical", f"{root}:{begin + 0.01:.9f}-{begin + 0.03:.9f}")
        self.assertAlmostEqual(part["ns"], 20000000, delta=10)
        self.assertEqual(sum(step["ns"] for step in part["steps"]), part["ns"])

    def test_what_cannot_be(self):
        self.record("--no-wakers", "--", "true")
        result = prcb("report", "--critical", "1", self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"does not tell who woke threads", result.stderr)
        self.record("--", "true")
        self.assertEqual(prcb("report", "--critical", "1", self.path).returncode, 1)
        for wrong in "x", "0", "1:", "1:2", "1:2-1", "1:nan-2", "1:1-2x", "-1":
            result = prcb("report", "--critical=" + wrong, self.path)
            self.assertEqual(result.returncode, 2, wrong)
        self.assertEqual(prcb("report", "--critical=1", "--html", self.path).returncode, 2)

    def test_damaged(self):
        """Wakers in circles, moments that make no sense: it ends, and fills its window."""
        self.record("--", PYTHON, "-I", "-S", "-c", WOKEN)
        tid = self.query("SELECT tid FROM threads ORDER BY id LIMIT 1")[0][0]
        with sqlite3.connect(self.path) as db:
            db.execute("UPDATE wakers SET thread = (SELECT id FROM threads ORDER BY random() LIMIT 1)")
            db.execute("UPDATE switches SET woken_ns = time_ns + random() % 100000000")
            db.execute("UPDATE switches SET time_ns = time_ns + random() % 1000 WHERE rowid % 3 = 0")
        db.close()
        path = self.json("--critical", str(tid))
        self.assertEqual(sum(step["ns"] for step in path["steps"]), path["ns"])


class Ends(Recording):
    def start(self, *args, **options):
        return subprocess.Popen([PRCB, "record", "-o", self.path, *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def wait_for_samples(self, process, table="samples", above=10):
        """Until something is committed. Who reads the file before prcb has it is in prcb's way."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if (os.path.getsize(self.path) and
                        self.query(f"SELECT count(*) FROM {table}")[0][0] > above):
                    return
            except (FileNotFoundError, sqlite3.Error):
                pass
            if process.poll() is not None:
                self.fail(process.stderr.read())
            time.sleep(0.02)
        process.kill()  # or its end would be waited for
        self.fail("nothing was recorded")

    def test_killed(self):
        with self.start("-F", rate(5000), "--", SHARES, "30") as process:
            self.wait_for_samples(process)
            process.kill()
            process.wait()
            # The command lives on; its number is in the file.
            os.kill(self.query("SELECT max(pid) FROM threads")[0][0], signal.SIGKILL)
        report = self.json()
        self.assertFalse(report["complete"])
        self.assertGreater(report["samples"], 10)
        self.assertIn("burn_half", [row["function"] for row in report["functions"]])
        self.assertIn(b"is incomplete or still running", self.report())
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    def test_killed_in_its_first_second(self):
        for _ in range(5):
            with self.start("-F", rate(5000), "--", SHARES, "30") as process:
                self.wait_for_samples(process)
                process.kill()
                process.wait()
                end = time.monotonic_ns()
                pid = self.query("SELECT pid FROM threads WHERE name = 'record_shares'"
                                 " OR pid = (SELECT max(pid) FROM threads)")[-1][0]
                os.kill(pid, signal.SIGKILL)
            start = self.query("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'start_ns'")[0][0]
            if end - start < 1e9:
                break
            os.unlink(self.path)
        else:
            self.skipTest("this machine is too busy to look into a recording's first second")
        # The first samples are there with the times of the first moment alone, which are
        # written again a second later: they did not wait for that.
        self.assertEqual(self.query("SELECT count(DISTINCT time_ns) FROM processor_times"), [(1,)])
        self.assertGreater(self.json()["samples"], 10)

    def test_times_are_of_the_moment_they_name(self):
        """What processors did in a recording is not longer than the recording; each has
        stretches that are not told apart, and reading takes its time."""
        if not BPF:
            self.skipTest(BPF_REASON)
        # Between a stamp and the reading prcb may have no processor; a wrong stamp is wrong each time.
        for _ in range(5):
            self.record("--for", "0.2", "--", "sleep", "60")
            report = self.json()
            off = max(abs(sum(row[name + "_ns"] for name in
                              ("user", "kernel", "dpc", "interrupt", "steal", "idle")) - report["span_ns"])
                      for row in report["processors"])
            if off <= 0.05 * report["span_ns"] + 5e6:
                break
        self.assertLessEqual(off, 0.05 * report["span_ns"] + 5e6)

    def test_interrupted(self):
        """Ctrl-C reaches the command too; what there is by then is a whole recording."""
        with self.start("-F", rate(5000), "--", SHARES, "30") as process:
            self.wait_for_samples(process)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertTrue(self.json()["complete"])

    def test_a_process_until_ctrl_c(self):
        self.check_until(signal.SIGINT)

    def test_impatient(self):
        """A second Ctrl-C while functions are named: they are named by the report then."""
        code = ("import ctypes, mmap\narea = mmap.mmap(-1, 4096, prot=7)\n"
                "area.write(bytes.fromhex('b900e1f505' 'ffc9' '75fc' 'c3'))\n"
                "at = ctypes.addressof(ctypes.c_char.from_buffer(area))\n"
                "while True: ctypes.CFUNCTYPE(None)(at)()")
        if os.uname().machine != "x86_64":
            self.skipTest("the code is x86-64's")
        with subprocess.Popen([PYTHON, "-I", "-S", "-c", code]) as target:
            self.addCleanup(target.kill)
            listed = f"/tmp/perf-{target.pid}.map"
            with open(listed, "w", encoding="ascii") as file: # to be read for a while
                self.addCleanup(os.unlink, listed)
                for row in range(1000):
                    file.write("".join(f"{(row * 1000 + i) * 16 + 4096:x} 10 f{i}\n"
                                       for i in range(1000)))
            with self.start("-p", str(target.pid), "-F", rate(2000)) as process:
                self.wait_for_samples(process)
                process.send_signal(signal.SIGINT)
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)
            target.kill()
        # On a machine that is fast, or late, the second one came too late or too soon to matter.
        self.assertIn(process.returncode, (-signal.SIGINT, 0))
        self.assertGreater(self.json("--table", "threads")["samples"], 10)

    def test_a_process_until_the_terminal_is_gone(self):
        # What nohup runs ignores it, and so does what that starts: prcb would go on until its target ends.
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        self.check_until(signal.SIGHUP)

    def check_until(self, number):
        with subprocess.Popen([SHARES, "30"], stdout=subprocess.DEVNULL) as target:
            with self.start("-p", str(target.pid), "-F", rate(2000)) as process:
                self.wait_for_samples(process)
                process.send_signal(number)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0)
            target.kill()
        report = self.json()
        self.assertTrue(report["complete"])
        self.assertIn("burn_half", [row["function"] for row in report["functions"]])
        self.assertEqual(report["threads"][0]["tid"], target.pid)

    def test_many_threads(self):
        """More descriptors than the soft limit that shells have."""
        code = ("import threading, time\nfor i in range(300): "
                "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
                "print('ready', flush=True)\ninput()")
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 4096:
            self.skipTest("no more than %d open files are allowed" % hard)
        with subprocess.Popen([PYTHON, "-I", "-S", "-c", code], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as target:
            target.stdout.readline()
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
            result = prcb("record", "-o", self.path, "-p", str(target.pid), "--for", "0.1",
                          preexec_fn=limit)
            self.assertEqual(result.returncode, 0, result.stderr)
            target.kill()
        self.assertEqual(self.query("SELECT count(*) FROM threads"), [(301,)])

    @unittest.skipUnless(BPF, f"threads are chosen by eBPF: {BPF_REASON}")
    def test_threads_are_chosen(self):
        """What a process starts is recorded as well, nobody else, and that takes no descriptor a thread: samples
        and switches are those that each thread counts itself."""
        code = ("import os, threading, time\n"
                "def work(name):\n"
                "    end = time.monotonic() + .1\n"
                "    while time.thread_time() < .05 or time.monotonic() < end:\n        pass\n"
                "    print(name, threading.get_native_id(), time.thread_time(), flush=True)\n"
                "for i in range(200):\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
                "print('ready', flush=True)\ninput()\n"
                "thread = threading.Thread(target=work, args=('thread',))\nthread.start()\nthread.join()\n"
                "child = os.fork()\nif not child:\n    work('child')\n    os._exit(0)\nos.waitpid(child, 0)\n")
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        for option in ((), ("-g",)):
            self.path = os.path.join(self.folder, "recording" + "".join(option))
            with subprocess.Popen([SHARES, "60"], stdout=subprocess.DEVNULL) as stranger, \
                 contextlib.ExitStack() as clean, subprocess.Popen([PYTHON, "-I", "-S", "-c", code], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as target:
                clean.callback(stranger.kill)
                target.stdout.readline()
                with self.start("-p", str(target.pid), *option, preexec_fn=few) as process:
                    self.wait_for_samples(process, "threads", 200)
                    said, _ = target.communicate("\n")
                    _, words = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, words)
            self.assertEqual(self.query(f"SELECT count(*) FROM threads WHERE tid = {stranger.pid}"), [(0,)])
            for name, tid, seconds in (line.split() for line in said.splitlines()):
                with self.subTest(option, thread=name):
                    row = self.query(f"SELECT id FROM threads WHERE tid = {tid}")
                    self.assertEqual(len(row), 1)
                    ran = self.query(f"SELECT sum(weight) FROM samples WHERE thread = {row[0][0]}")[0][0]
                    self.assertLess(abs((ran or 0) / 1e9 - float(seconds)), .02 + float(seconds) / 4)
                    self.assertEqual(self.query("SELECT state, cause FROM switches WHERE old_thread = "
                                                f"{row[0][0]} ORDER BY time_ns DESC LIMIT 1"), [("ended", "exit")])

    def test_a_process_that_ends(self):
        with subprocess.Popen([SHARES, "60"], stdout=subprocess.DEVNULL) as target:
            with self.start("-p", str(target.pid)) as process:
                self.wait_for_samples(process)
                target.kill()
                _, words = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0, words)
        self.assertTrue(self.json()["complete"])

    def test_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        with subprocess.Popen([PRCB, "record", "-o", self.path, "--", SHARES, "1.5"],
                              stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            text = b""
            try:
                while data := os.read(ours, 4096):
                    text += data
            except OSError:  # the other end is closed
                pass
            process.wait()
        os.close(ours)
        lines = re.findall(rb"\r([\d.]+) s: (\d+) samples, \d+ switches, 0 lost, [\d.]+ MB", text)
        self.assertGreaterEqual(len(lines), 2, text)
        self.assertGreater(int(lines[-1][1]), int(lines[0][1]))

    def test_line_of_time_fits_the_terminal(self):
        self.record("--", "sh", "-c", f"{SHARES} 0.1; sleep 0.01; :")  # sh waits: there are switches
        for columns, width in (("80", 80), ("60", 60), ("200", 106)):
            text = prcb("report", "--table", "timeline", self.path,
                        env=dict(os.environ, COLUMNS=columns)).stdout.decode()
            lines = re.findall(r"(?m)^ *\d+  [.+A-Za-z]+$", text)
            self.assertTrue(lines, text)
            self.assertEqual({len(line) for line in lines}, {width})
        self.assertEqual({len(row["timeline"]) for row in self.json()["processors"]}, {100})

    def test_tables_fit_the_terminal(self):
        self.record("-g", "--", "sh", "-c", f"{SHARES} 0.1; sleep 0.01; :")
        texts = {columns: prcb("report", self.path, env=dict(os.environ, COLUMNS=str(columns))).stdout.decode()
                 for columns in (80, 120)}
        texts = {columns: re.split(r"\d+ samples of .*\n", text, maxsplit=1)[1] for columns, text in texts.items()}
        self.assertIn("WITH CALLS", texts[80])
        for line in texts[80].splitlines():
            if len(line) > 80:  # a name that is wider stands alone
                self.assertRegex(line, r"^ +\S+ +[\d.]+% +\S+ +[\d.]+% +\d+  \S{30,}( \[bpf\])?$")
        times = [re.findall(r"(?m)^ *([\d.]+[mun]?s) ", text) for text in texts.values()]
        self.assertEqual(*times)

    def test_for(self):
        result = prcb("record", "-o", self.path, "--for", "0.3", "--", "sleep", "60")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(self.json()["complete"])

    @needs_rate(40000)
    def test_losses_are_counted(self):
        """prcb is stopped until its buffers are full: what was not recorded is counted."""
        for tier in ("perf", "bpf"):
            if tier == "bpf" and not BPF:
                self.skipTest(BPF_REASON)
            # On one processor: each has a ring, and one alone is sure to be full in time.
            with subprocess.Popen([SHARES, "60"], stdout=subprocess.DEVNULL,
                                  preexec_fn=stay_on_one_processor) as target:
                more = ["-g"] * (tier == "perf")  # larger records: the ring is sooner full
                with self.start("--tier", tier, "-p", str(target.pid), "-F", "40000",
                                "--no-switches", *more) as process:
                    self.wait_for_samples(process)
                    process.send_signal(signal.SIGSTOP)
                    self.let_run(target, process, 1)
                    process.send_signal(signal.SIGINT)
                    process.send_signal(signal.SIGCONT)
                    process.communicate(timeout=60)
                    self.assertEqual(process.returncode, 0)
                target.kill()
            report = self.json()
            self.assertGreater(report["lost"], 1000, tier)
            self.assertEqual(self.query("SELECT sum(count) FROM losses"), [(report["lost"],)])
            # Each 25 microseconds of this second there was a sample or a loss, but for those that
            # came too late for the next.
            self.assertGreater(report["samples"] + report["lost"], 0.6 * 40000, tier)
            os.unlink(self.path)

    def let_run(self, target, process, seconds):
        """Until the target has had so much of a processor."""
        def used():
            with open("/proc/%d/schedstat" % target.pid, encoding="ascii") as file:
                return int(file.read().split()[0])
        start = used()
        while used() < start + seconds * 1e9:
            if target.poll() is not None:
                process.kill()  # it is stopped
                self.fail("the target ended before it had so much of a processor")
            time.sleep(0.05)

    @needs_rate(20000)
    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_full_disk(self):
        folder = os.path.join(self.folder, "small")
        os.mkdir(folder)
        script = (SMALL_DISK % "1m" + '"$2" record -g --stack-bytes 0 -F 20000 -o recording -- "$3" 2; echo "status $?"; '
                  '"$2" report -j recording >"$4"')
        out = os.path.join(self.folder, "report")
        result = subprocess.run([*OWN_MOUNTS, script, "sh", folder, PRCB, SHARES, out],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
        if result.returncode == 99 or b"unshare" in result.stderr:
            self.skipTest("no mount of our own: %s" % result.stderr.decode())
        self.assertIn(b"disk is full", result.stderr)
        self.assertIn(b"status 1", result.stdout)
        self.assertIn(b"burn_sixth", result.stdout)  # the command came to its end
        with open(out, encoding="utf-8") as file:
            report = json.load(file)
        self.assertGreater(report["samples"], 100)
        self.assertFalse(report["complete"])

    @unittest.skipIf(SANITIZED, "a sanitizer's memory is no witness")
    def test_bombs(self):
        """5,000 threads, 1,000 processes and 200 programs one after the other, 65,000 mappings: the program comes to its
        end, and the recorder's memory and file are what they may be."""
        for way in "threads", "processes", "programs", "mappings":
            with subprocess.Popen([PRCB, "record", "-g", "-o", self.path, "--", os.environ["RECORD_BOMBS"], way],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                watch = threading.Timer(60, process.kill)
                watch.start()
                out, said = process.stdout.read(), process.stderr.read()
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                watch.cancel()
            self.assertEqual((process.returncode, out), (0, b"done\n"), (way, said))
            self.assertLess(used.ru_maxrss, 256 * 1024, way)  # KiB
            self.assertLess(os.path.getsize(self.path), 32 << 20, way)
            self.assertEqual(prcb("report", self.path).returncode, 0, way)

    def test_return_addresses_of_any_kind(self):
        """A program chooses what is on its stack: an address that looks like the recorder's own mark, and one of the
        page of old system calls."""
        for address in "8000414141414141", "80007ffff7ff0000", "ffffffffff600400":
            with subprocess.Popen([os.environ["RECORD_BOMBS"], "calls", address], stdout=subprocess.PIPE) as process:
                try:
                    process.stdout.readline()
                    result = prcb("record", "-g", "-p", str(process.pid), "--for", "1", "-o", self.path)
                finally:
                    process.kill()
            self.assertEqual(result.returncode, 0, (address, result.stderr))
            with sqlite3.connect(self.path) as db:
                samples, = db.execute("SELECT count(*) FROM samples").fetchone()
            self.assertGreater(samples, 10)
            self.assertEqual(prcb("report", self.path).returncode, 0, address)

    @unittest.skipUnless(os.environ.get("BAD_DISK_LIBRARY"), "needs a library of the build")
    def test_a_disk_that_fails(self):
        """From the first write on, and later, when the beginning is there. The command comes to its end."""
        for writes, rows in (("0", False), ("60", True)):
            environment = os.environ | {"LD_PRELOAD": os.environ["BAD_DISK_LIBRARY"], "BAD_DISK": writes}
            script = "for i in $(seq 100); do /bin/true; done; echo ran"
            result = prcb("record", "--tier", "perf", "-o", self.path, "--", "sh", "-c", script, env=environment)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(b"cannot be written: disk I/O error", result.stderr)
            self.assertEqual(b"ran\n" in result.stdout, rows)
            self.assertEqual(os.path.exists(self.path), rows)
        report = prcb("report", self.path)
        self.assertEqual(report.returncode, 0)
        self.assertIn(b"incomplete", report.stdout + report.stderr)

    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_disk_without_room_for_a_page(self):
        self.record("--", "true")
        folder = os.path.join(self.folder, "tiny")
        os.mkdir(folder)
        script = SMALL_DISK % "20k" + '"$2" report --html -o page.html "$3"; echo "status $?"; ls'
        result = subprocess.run([*OWN_MOUNTS, script, "sh", folder, PRCB, self.path],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                timeout=60, text=True)
        if result.returncode == 99 or "unshare" in result.stderr:
            self.skipTest("no mount of our own: " + result.stderr)
        if "built without zlib" in result.stderr:
            self.skipTest(result.stderr)
        self.assertIn("No space left on device", result.stderr)
        self.assertEqual(result.stdout, "status 1\n")  # and no part of it stays

    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_disk_without_room_for_a_beginning(self):
        folder = os.path.join(self.folder, "tiny")
        os.mkdir(folder)
        script = (SMALL_DISK % "20k" + '"$2" record -o recording -- echo ran; echo "status $?"; ls')
        result = subprocess.run([*OWN_MOUNTS, script, "sh", folder, PRCB],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                timeout=60, text=True)
        if result.returncode == 99 or "unshare" in result.stderr:
            self.skipTest("no mount of our own: " + result.stderr)
        self.assertIn("disk is full: nothing was recorded", result.stderr)
        self.assertEqual(result.stdout, "status 1\n")  # neither did the command run


@unittest.skipUnless(ROOT, "becoming an ordinary user needs root")
class Ordinary(Recording):
    """As nobody: one's own programs in user mode, and plain words for the rest."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o777)
        user = pwd.getpwnam("nobody")
        self.nobody = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        if prcb("--version", **self.nobody).returncode:
            self.skipTest("nobody may not run this prcb")
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            self.paranoid = int(file.read())

    def test_own_program(self):
        result = prcb("record", "-g", "-o", self.path, "--", SHARES, "0.2", **self.nobody)
        if self.paranoid > 2:
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"perf_event_paranoid", result.stderr)
            return
        self.assertEqual(result.returncode, 0, result.stderr)
        report = self.json()
        self.assertEqual(report["facts"]["switch_source"], "perf ring")
        self.assertIn("burn_half", [row["function"] for row in report["functions"]])
        for row in report["waits"] or []: # a quiet machine may not have switched it
            self.assertIsNone(row["cause"])
            self.assertIsNone(row["reason"])
        if self.paranoid > 1:
            self.assertIn(b"user mode only", result.stderr)
            self.assertEqual(report["facts"]["user_only"], "1")
            self.assertFalse(any(row["kernel"] for row in report["functions"]))

    def test_of_others(self):
        for args in (["-p", "1"], ["-a"]) if self.paranoid > 0 else (["-p", "1"],):
            result = prcb("record", "-o", self.path, *args, "--", "true", **self.nobody)
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"not permitted", result.stderr)
        result = prcb("record", "--tier", "bpf", "-o", self.path, "--", "true", **self.nobody)
        self.assertEqual(result.returncode, 1)
        self.assertFalse(os.path.exists(self.path))


class Arguments(Recording):
    def refuse(self, status, words, *args):
        result = prcb(*args, cwd=self.folder)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(words, result.stderr.decode())
        return result

    def test_bad(self):
        self.refuse(2, "nothing to record", "record")
        self.refuse(2, "no such event", "record", "-e", "no-such", "--", "true")
        self.refuse(2, "must be a number from", "record", "-F", "fast", "--", "true")
        self.refuse(2, "exclude", "record", "-F", "10", "-c", "10", "--", "true")
        self.refuse(2, "-a records everything", "record", "-a", "-p", "1")
        self.refuse(1, "clocks tick", "record", "-c", "100", "--", "true")
        with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as file:
            most = int(file.read())
        if most < 1000000:
            self.refuse(1, "max_sample_rate", "record", "-F", str(most + 1), "--", "true")
        without = b"no bpf tier" in prcb("record", "--tier", "bpf", "--", "true", cwd=self.folder).stderr
        for words, option in ("stacks (-g)", ["-g"]), ("(-F)", ["-e", "page-faults"]):
            self.refuse(1, "no bpf tier" if without else words, "record", "--tier", "bpf", *option, "--", "true")
        self.refuse(2, "no process is called 'no-such-name'", "record", "-p", "1,no-such-name")
        for tier in ("x", "daemon"):
            self.refuse(2, "must be bpf or perf", "record", "--tier", tier, "--", "true")
        self.refuse(1, "no such process", "record", "-p", "2147483647")
        self.refuse(127, "command not found", "record", "--", "./no-such-command")
        self.refuse(126, "Permission denied", "record", "--", "/")
        self.refuse(1, "o/such/folder", "record", "-o", "no/such/folder", "--", "true")
        self.refuse(2, "one recording", "report", "a", "-j", "b")
        self.refuse(2, "missing behind '-o'", "report", "a", "-o")
        self.refuse(2, "--table", "report", "--table", "x")
        self.refuse(2, "exclude", "report", "-j", "--firefox")
        self.refuse(1, "No such file", "report", "none")

    def test_any_order(self):
        """Options may follow the file; behind -- all are files."""
        self.record("--", "true")
        os.link(self.path, os.path.join(self.folder, "-j"))
        expected = prcb("report", "-j", self.path).stdout
        self.assertGreater(len(expected), 2)
        out = os.path.join(self.folder, "out")
        for args in ((self.path, "-j", "-o", out), ("-j", self.path, "-o", out),
                     (self.path, "-jo", out, "--"), ("-o", out, "-j", "--", "-j")):
            result = prcb("report", *args, cwd=self.folder)
            self.assertEqual((result.returncode, result.stdout), (0, b""), result.stderr)
            with open(out, "rb") as file:
                self.assertEqual(file.read(), expected, args)
            os.unlink(out)
        self.refuse(2, "one recording", "report", self.path, "--", "-j")

    def test_exit_status(self):
        for command, status in ((["false"], 1), (["sh", "-c", "exit 7"], 7),
                                (["sh", "-c", "kill -9 $$"], 137)):
            result = prcb("record", "-o", self.path, "--", *command)
            self.assertEqual(result.returncode, status)

    def test_other_files_are_left_alone(self):
        for content in (b"precious", b"SQLite format 3\0" + bytes(100)):
            with open(self.path, "wb") as file:
                file.write(content)
            self.refuse(1, "not a recording", "record", "-o", self.path, "--", "true")
            with open(self.path, "rb") as file:
                self.assertEqual(file.read(), content)
        os.unlink(self.path)
        self.record("--", "true")
        self.record("--", "true")  # a recording is replaced

    def test_a_recording_outlives_a_mistyped_command(self):
        self.record("--", "true")
        for status, words, command in ((127, "command not found", "./no-such"),
                                       (127, "command not found", "no-such-command"),
                                       (126, "Permission denied", self.path)):
            for named in ([], ["-p", str(os.getpid())]):
                self.refuse(status, words, "record", *named, "-o", self.path, "--", command)
            self.assertEqual(self.query("SELECT value FROM facts WHERE name='command'"),
                             [("true",)])

    def test_a_report_is_not_written_over_its_recording(self):
        self.record("--", "true")
        link = os.path.join(self.folder, "link")
        os.symlink(self.path, link)
        for output in (self.path, link):
            self.refuse(1, "the recording itself", "report", self.path, "-o", output)
            self.refuse(1, "the recording itself", "report", "--firefox", self.path, "-o", output)
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    def test_no_name(self):
        self.refuse(1, "no name", "record", "-o", "", "--", "true")

    def test_a_recording_that_goes_on_is_left_alone(self):
        with subprocess.Popen([PRCB, "record", "-o", self.path, "--", "cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            while not os.path.exists(self.path) or not os.path.getsize(self.path):
                time.sleep(0.02)
            self.refuse(1, "being recorded", "record", "-o", self.path, "--", "true")
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
        self.assertEqual(self.query("SELECT value FROM facts WHERE name='command'"), [("cat",)])

    def test_one_file_that_others_can_read(self):
        """A whole recording, where its reader may not write."""
        self.record("--", "true")
        self.assertEqual(os.listdir(self.folder), [os.path.basename(self.path)])
        # It has the kernel's addresses, and what others run: it is its owner's until passed on.
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        os.chmod(self.path, 0o644)
        uri = f"file:{self.path}?mode=ro"
        if ROOT:
            os.chmod(self.folder, 0o755)
            user = pwd.getpwnam("nobody")
            code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], uri=True).execute('SELECT 1 FROM samples')"
            result = subprocess.run(["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
                                     "--clear-groups", PYTHON, "-c", code, uri],
                                    stderr=subprocess.PIPE, check=False, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
        with sqlite3.connect(uri, uri=True) as db:
            self.assertEqual(db.execute("PRAGMA journal_mode").fetchone(), ("delete",))
        db.close()

    def test_not_plain_files(self):
        os.mkfifo(self.path)
        self.refuse(1, "regular file", "report", self.path)
        self.refuse(1, "regular file", "record", "-o", self.path, "--", "true")
        self.refuse(1, "regular file", "report", self.folder)

    @unittest.skipUnless(BPF, BPF_REASON)
    def test_programs_that_were_not_run(self):
        """The kernel's counts lie in the recording, and the report tells those that are not 0."""
        self.record("--", "sleep", "0.01")
        counts = {name: int(value) for name, value in self.json()["facts"].items()
                  if name.startswith("recursion_misses.")}
        self.assertIn("recursion_misses.prcb_switch_record", counts)
        self.assertNotIn("recursion_misses.prcb_sample", counts)  # the kernel does not count those
        said = [line for line in self.report().decode().splitlines() if "in the middle of it" in line]
        self.assertEqual(len(said), len([count for count in counts.values() if count]))
        with sqlite3.connect(self.path) as db:
            db.execute("UPDATE facts SET value = 0 WHERE name GLOB 'recursion_misses.*'")
            db.execute("UPDATE facts SET value = 3 WHERE name = 'recursion_misses.prcb_switch_record'")
            db.execute("INSERT INTO facts VALUES ('recursion_misses.' || char(27) || 'c', 1)")
        db.close()
        said = [line for line in self.report().decode().splitlines() if "in the middle of it" in line]
        self.assertEqual(len(said), 2, said)
        self.assertIn("note: 3 times the kernel did not run the program prcb_switch_record, being", said[1])
        self.assertIn("note: 1 time the kernel", said[0])
        self.assertNotIn("\x1b", said[0])

    def test_names_move_no_cursor(self):
        self.record("--", "sleep", "0.01")
        with sqlite3.connect(self.path) as db:
            db.executescript("""
                UPDATE facts SET value = 'a' || char(27) || '[2J' WHERE name IN ('command', 'event');
                UPDATE facts SET value = char(27) || 'c' WHERE name = 'sample_source';
                UPDATE threads SET name = char(27) || 'c';
                UPDATE switches SET cause = char(27) || 'c';
                UPDATE functions SET name = 'f' || char(27) || '[2J' || char(155) || char(8238),
                    file = char(127) || x'9b' || char(13);
                UPDATE maps SET file = char(27) || ']0;owned' || char(7), build_id = char(27);
            """)
        db.close()
        for option in [], ["-j"], ["-x,"], ["--folded"], ["--firefox"]:
            text = self.report(*option)
            self.assertNotRegex(text, b"[\x00-\x09\x0b-\x1f\x7f]", option)
            self.assertNotRegex(text.decode(), "[\x80-\x9f\u202a-\u202e\u2066-\u2069]", option)
        with sqlite3.connect(self.path) as db:  # CSI as one character, and as a bare byte
            db.execute("UPDATE threads SET name = char(155) || '2J' || CAST(x'9b' AS TEXT) || ?",
                       (chr(0xe9),))
        db.close()
        for table in self.report(), self.report("--folded"):
            self.assertNotRegex(table, b"\x9b")
        self.assertIn("?2J?\xe9", self.report().decode())

    def test_not_recordings(self):
        for content in (b"", b"precious", b"SQLite format 3\0" + bytes(5000)):
            with open(self.path, "wb") as file:
                file.write(content)
            result = prcb("report", self.path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"is not a recording", result.stderr)

    def test_later_version(self):
        self.record("--", "true")
        with sqlite3.connect(self.path) as db:
            db.execute("PRAGMA user_version=2")
        db.close()
        self.refuse(1, "version 2", "report", self.path)

    def test_damaged(self):
        """Rows that refer to nothing, in circles, or hold what does not belong there."""
        self.record("-g", "--", SHARES, "0.1")
        with sqlite3.connect(self.path) as db:
            db.executescript("""
                UPDATE stacks SET caller = id + 1 WHERE id % 2;
                UPDATE stacks SET caller = id WHERE id % 3 = 0;
                UPDATE samples SET thread = 'x' WHERE rowid % 5 = 0;
                UPDATE samples SET stack = -1 WHERE rowid % 7 = 0;
                UPDATE samples SET cpu = 1 << 40 WHERE rowid % 11 = 0;
                INSERT INTO switches VALUES(-5, -5, 1, 1, 'odd', 'a cause that is far too long', 999, -3, 0, 77, -1, -1);
                INSERT INTO wakers VALUES(77, NULL, 77, -1, -1, NULL, -1);
                UPDATE threads SET name = x'ff22', end_ns = 1;
                DELETE FROM functions WHERE id % 2;
                INSERT INTO threads(id) VALUES(-7);
            """)
        db.close()
        for option in ("-j", "-x,", "--folded", "--firefox"):
            self.assertTrue(self.report(option))
        result = prcb("report", "--perfetto", self.path)
        self.assertTrue(result.returncode == 0 or b"built without" in result.stderr, result.stderr)
        self.report()
        json.loads(self.report("--firefox"))


    def test_sources_of_names_without_end(self):
        """What was mapped is named by files that anybody may have written."""
        self.record("-F", rate(5000), "--", SHARES, "0.1")
        packed = os.path.join(self.folder, "packed")
        with open(SHARES, "rb") as file, gzip.open(packed, "wb") as out:
            shutil.copyfileobj(file, out)
        pid = 2 ** 31 - 7  # no process has this number
        listed = f"/tmp/perf-{pid}.map"
        with open(listed, "w", encoding="ascii") as file:
            self.addCleanup(os.unlink, listed)
            file.write("0 ffffffffffffffff endless\n")
            file.truncate(1 << 32)
        for file, owner in ((SHARES, pid), (packed, pid), ("//anon", pid)):
            with sqlite3.connect(self.path) as db:
                db.execute("UPDATE maps SET file = ?, pid = ?, build_id = NULL "
                           "WHERE file IN (?, ?)", (file, owner, SHARES, packed))
                db.execute("DELETE FROM stack_functions")
                db.execute("DELETE FROM functions")
            db.close()
            names = [row["function"] for row in self.json()["functions"]]
            self.assertEqual("burn_half" in names, file == SHARES, (file, names))
            self.assertNotIn("endless", names)

    def test_debug_information_that_is_a_pipe(self):
        """A program names the file of its debug information: who opens that would wait."""
        program, trap = os.path.join(self.folder, "program"), os.path.join(self.folder, "trap")
        if not shutil.which("objcopy"):
            self.skipTest("no objcopy")
        with open(trap, "wb") as file:
            file.write(b"x")
        subprocess.run(["objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
                        "--add-gnu-debuglink=" + trap, SHARES, program], check=True, timeout=60)
        os.unlink(trap)
        os.mkfifo(trap)
        self.record("-F", rate(5000), "--", program, "0.1")
        self.assertIn(["[unknown]", os.path.realpath(program)],
                      [[row["function"], os.path.realpath(row["file"])]
                       for row in self.json()["functions"]])

    def test_view_without_end(self):
        self.record("--", "true")
        with sqlite3.connect(self.path) as db:
            db.executescript("""
                DROP TABLE samples;
                CREATE VIEW samples AS
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                SELECT i AS time_ns, 0 AS cpu, 1 AS thread, 1 AS stack, 1 AS weight FROM n;
            """)
        db.close()
        self.refuse(1, "damaged", "report", self.path)

    JITTED = """
import ctypes, mmap, os, sys, time
area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
area.write(bytes.fromhex('b980969800' 'ffc9' '75fc' 'c3'))  # mov ecx, 10000000; dec; jnz; ret
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
row = '%x 40 jitted: a loop\\n' % at
exec(sys.argv[1])
print(flush=True)
while True: ctypes.CFUNCTYPE(None)(at)()
"""

    def jitted(self, listing, *before):
        """Whether a compiler's name is found, of a program that does this about its list."""
        if os.uname().machine != "x86_64":
            self.skipTest("the code is x86-64's")
        with subprocess.Popen([*before, PYTHON, "-I", "-S", "-c", self.JITTED, listing],
                              stdout=subprocess.PIPE) as target:
            self.addCleanup(target.kill)
            target.stdout.readline()
            pid = target.pid
            if before:  # of unshare: its child
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                    pid = int(file.read())
            result = prcb("record", "-o", self.path, "-p", str(pid), "-F", rate(2000), "--for",
                          "0.3")
            self.assertEqual(result.returncode, 0, result.stderr)
            if before:
                os.kill(pid, signal.SIGKILL)
            target.kill()
        for path in (f"/tmp/perf-{pid}.map",):
            if os.path.lexists(path):
                os.unlink(path)
        return "jitted: a loop" in [row["function"] for row in self.json()["functions"]]

    def test_whose_list_it_is(self):
        """Anybody may write /tmp/perf-PID.map: only the process's user is believed."""
        write = "open('/tmp/perf-%d.map' % os.getpid(), 'w').write(row)"
        self.assertTrue(self.jitted(write))
        self.assertFalse(self.jitted("os.mkfifo('/tmp/perf-%d.map' % os.getpid())"))  # nobody waits for its other end
        self.assertFalse(self.jitted(
            "open('/tmp/prcb-list', 'w').write(row)\n"
            "os.symlink('/tmp/prcb-list', '/tmp/perf-%d.map' % os.getpid())"))
        os.unlink("/tmp/prcb-list")
        if not ROOT:
            return
        nobody = pwd.getpwnam("nobody").pw_uid
        self.assertFalse(self.jitted(write + f"\nos.chown('/tmp/perf-%d.map' % os.getpid(), "
                                             f"{nobody}, {nobody})"))
        # The process's user is not root, and the list is root's: the other way round.
        dumpable = "import ctypes; ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)"
        become = f"os.setresuid({nobody}, {nobody}, {nobody})\n{dumpable}\n"
        again = ("area = mmap.mmap(-1, 4096, prot=7)\n"
                 "area.write(bytes.fromhex('b980969800' 'ffc9' '75fc' 'c3'))\n"
                 "at = ctypes.addressof(ctypes.c_char.from_buffer(area))\n"
                 "row = '%x 40 jitted: a loop\\n' % at\n")
        self.assertTrue(self.jitted(become + again + write))
        self.assertFalse(self.jitted(
            write.replace("row", "'0 7fffffffffff jitted: a loop\\n'") + "\n" + become + again))

    @unittest.skipUnless(ROOT, "mount namespaces are root's")
    def test_lists_in_containers(self):
        """The list is where the process sees /tmp, under the number that it has there."""
        made = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.PIPE, check=False, text=True)
        if made.returncode:
            self.skipTest(f"no mount namespace, as in a chroot: {made.stderr.strip()}")
        mounted = ("libc = ctypes.CDLL(None)\n"
                   "assert not libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)\n")
        write = "open('/tmp/perf-%d.map' % os.getpid(), 'w').write(row)\n"
        own = ("unshare", "--mount", "--pid", "--fork")
        self.assertTrue(self.jitted(mounted + write, *own))
        # Its /tmp is a link out of its file system; the list there is not its own.
        listed = "/tmp/prcb-outside"
        os.makedirs(listed, exist_ok=True)
        self.addCleanup(shutil.rmtree, listed)
        self.assertFalse(self.jitted(
            f"open('{listed}/perf-%d.map' % os.getpid(), 'w').write(row)\n"
            "import tempfile; root = tempfile.mkdtemp()\n"
            f"os.symlink('{listed}', root + '/tmp'); os.chroot(root); os.chdir('/')\n", *own))

    def forge(self, name, *options):
        """A program of the same code, whose functions have other names."""
        if not shutil.which("objcopy"):
            self.skipTest("no objcopy")
        path = os.path.join(self.folder, name)
        subprocess.run(["objcopy", "--redefine-sym", "burn_half=forged", *options, SHARES, path], check=True,
                       timeout=60)
        return path

    def functions_of(self, program):
        return {row["function"] for row in self.json()["functions"] if row["file"] == program}

    @unittest.skipUnless(ROOT, "mount namespaces are root's")
    def test_another_program_under_its_path(self):
        """In a mount namespace of its own a process has another file under the path that is here."""
        made = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.PIPE, check=False, text=True)
        if made.returncode:
            self.skipTest(f"no mount namespace, as in a chroot: {made.stderr.strip()}")
        here = shutil.copy(SHARES, os.path.join(self.folder, "program"))
        other = self.forge("other", "--remove-section=.note.gnu.build-id")
        run = ("unshare", "-m", "--propagation", "private", "sh", "-c",
               'mount --bind "$0" "$1" && exec "$1" 60', other, here)
        with subprocess.Popen(run) as target:
            self.addCleanup(target.kill)
            while os.readlink(f"/proc/{target.pid}/exe") != here:
                self.assertIsNone(target.poll())
            self.record("-F", rate(2000), "-p", str(target.pid), "--for", "0.3")
            target.kill()
        self.assertEqual(self.functions_of(here), {"[unknown]"})

    @unittest.skipUnless(ROOT, "gives files to others")
    def test_a_strangers_program_under_its_path(self):
        """A file of another user's under the path of a program that was removed, with its build id. As
        long as the user's file is the program, it has names."""
        here = shutil.copy(SHARES, os.path.join(self.folder, "program"))
        other = self.forge("other")
        os.chmod(self.folder, 0o755)
        nobody = pwd.getpwnam("nobody").pw_uid
        for path in here, other:
            os.chown(path, nobody, nobody)
        self.record("-F", rate(2000), "--", here, "0.1")
        self.assertIn("burn_half", self.functions_of(here))
        self.record("-F", rate(2000), "--", "sh", "-c",
                    '"$0" 0.2 & while ! grep -q "x.*$0" /proc/$!/maps; do :; done; mv "$1" "$0"; wait',
                    here, other)
        self.assertEqual(self.functions_of(here), {"[unknown]"})

    @unittest.skipUnless(ROOT, "gives files to others")
    def test_a_strangers_program_that_is_older(self):
        """A stranger's file comes under the path with its folder, so that its time of change is from
        before the program was mapped: only that it is another file tells."""
        folders = [os.path.join(self.folder, name) for name in ("true", "forged", "kept")]
        os.chmod(self.folder, 0o755)
        nobody = pwd.getpwnam("nobody").pw_uid
        for folder, program in zip(folders, (SHARES, self.forge("other"))):
            os.mkdir(folder)
            os.chown(shutil.copy(program, os.path.join(folder, "program")), nobody, nobody)
        here = os.path.join(folders[0], "program")
        run = '"$0"/program 0.2 & while ! grep -q "x.*$0" /proc/$!/maps; do :; done; '
        self.record("-F", rate(2000), "--", "sh", "-c", run + "wait", folders[0])
        self.assertIn("burn_half", self.functions_of(here))
        self.record("-F", rate(2000), "--", "sh", "-c", run + 'mv "$0" "$2"; mv "$1" "$0"; wait', *folders)
        self.assertEqual(self.functions_of(here), {"[unknown]"})

    @unittest.skipUnless(ROOT, "mounts")
    def test_a_strangers_program_on_overlayfs(self):
        """There a file has other numbers than its mappings, and yet it is the program."""
        lower, upper, work, merged = (os.path.join(self.folder, name) for name in
                                      ("lower", "upper", "work", "merged"))
        for path in lower, upper, work, merged:
            os.mkdir(path)
        nobody = pwd.getpwnam("nobody").pw_uid
        os.chown(shutil.copy(SHARES, lower), nobody, nobody)
        made = subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                               f"lowerdir={lower},upperdir={upper},workdir={work}", merged],
                              stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode:
            self.skipTest(f"no overlayfs: {made.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", merged], check=False)
        here = os.path.join(merged, os.path.basename(SHARES))
        with subprocess.Popen([here, "60"]) as target:
            self.addCleanup(target.kill)
            self.record("-F", rate(2000), "-p", str(target.pid), "--for", "0.3")
            target.kill()
        self.assertIn("burn_half", self.functions_of(here))

    def test_what_is_no_program_is_not_opened(self):
        """To open a device may do something: nothing but plain files is, whatever the path."""
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        self.record("-F", rate(2000), "--", SHARES, "0.1")
        watch = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK)
        self.addCleanup(os.close, watch)
        self.assertGreater(ctypes.CDLL(None).inotify_add_watch(watch, pipe.encode(), 0x20), 0)
        for path in pipe, "/proc/self/root" + pipe, "/proc/kmsg", "/proc/self/mem", self.folder:
            with sqlite3.connect(self.path) as db:
                db.execute("UPDATE maps SET file = ?, build_id = NULL WHERE file LIKE '/%'", (path,))
                db.execute("DELETE FROM stack_functions")
                db.execute("DELETE FROM functions")
            db.close()
            status, text = self.ends_soon()
            self.assertEqual(status, 0, text)
        with self.assertRaises(BlockingIOError):
            os.read(watch, 4096)  # IN_OPEN

    def test_compressed_symbols_without_end(self):
        """A program of 2 MB whose symbols are 1.5 GB: its observer took as much."""
        if not shutil.which("objcopy"):
            self.skipTest("no objcopy")
        program, packed = (os.path.join(self.folder, name) for name in ("program", "packed"))
        part = lzma.compress(bytes(16 << 20), check=lzma.CHECK_NONE, preset=0)
        with open(packed, "wb") as file:
            # Once the header of the format, many times its block; whoever comes to where the index is
            # missing has unpacked them all. The footer tells the index's size.
            behind = 12 + (int.from_bytes(part[-8:-4], "little") + 1) * 4
            file.write(part[:12] + part[12:-behind] * 96)
        subprocess.run(["objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
                        "--add-section", ".gnu_debugdata=" + packed, SHARES, program], check=True,
                       timeout=60)
        status, text = self.ends_soon("record", "-F", rate(2000), "-o", self.path, "--", program,
                                      "0.1")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, "1 file left without names.*program: reading it took too (long|much memory)")
        names = [row["function"] for row in self.json()["functions"]
                 if row["file"] and row["file"].endswith("/program")]
        self.assertEqual(set(names), {"[unknown]"})

    def ends_soon(self, *args):
        """The program's status, messages, and that it took neither memory nor time. Options alone
        are the report's."""
        if not args or args[0].startswith("-"):
            args = "report", *args, self.path
        # What a process took at most is also what it was forked from: so from something small.
        run = ("import json, os, subprocess, sys\n"
               "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
               "_, status, usage = os.wait4(p.pid, 0)\n"
               "print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss >> 10,\n"
               "                  usage.ru_utime + usage.ru_stime]))\n")
        result = subprocess.run([PYTHON, "-I", "-S", "-c", run, PRCB, *args],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                                check=True)
        status, mebibytes, seconds = json.loads(result.stdout)
        text = result.stderr.decode()
        if not SANITIZED:  # it takes memory and time of its own, and a sandbox then has no limit
            self.assertLess(mebibytes, 700, (args, text))
            self.assertLess(seconds, 30, text)
        return status, text

    def test_schemas_that_compute(self):
        """What is not stored is computed by whoever reads it: 1.6 GB took one row of this."""
        bomb = "hex(zeroblob(400000000))"
        others = [
            f"DROP TABLE threads; CREATE TABLE threads(id INTEGER PRIMARY KEY, pid, tid, "
            f"parent_pid, name AS ({bomb}), start_ns, end_ns); INSERT INTO threads(id) VALUES(1)",
            f"ALTER TABLE maps ADD COLUMN more AS ({bomb}) VIRTUAL",
            "DROP TABLE facts; CREATE VIRTUAL TABLE facts USING fts5(name, value)",
            "CREATE VIRTUAL TABLE harmless USING fts5(text)",
            "CREATE TRIGGER t AFTER INSERT ON samples BEGIN DELETE FROM threads; END",
            f"CREATE VIEW more AS SELECT {bomb}",
            f"DROP VIEW sampled; CREATE VIEW sampled(a) AS SELECT {bomb}",
        ]
        self.record("--", "true")
        shutil.copy(self.path, self.path + ".good")
        for sql in others:
            shutil.copy(self.path + ".good", self.path)
            with sqlite3.connect(self.path) as db:
                db.executescript(sql)
            db.close()
            status, text = self.ends_soon()
            self.assertEqual(status, 1, (sql, text))
            self.assertIn("damaged", text, sql)
        shutil.copy(self.path + ".good", self.path)
        with sqlite3.connect(self.path) as db:  # somebody's own tables and indexes are no harm
            db.executescript("CREATE TABLE mine(x); CREATE INDEX by_cpu ON samples(cpu);")
        db.close()
        self.report()

    def test_long_values(self):
        self.record("--", "true")
        with sqlite3.connect(self.path) as db:
            db.execute("UPDATE threads SET name = printf('%.*c', 50000000, 'x')")
        db.close()
        for option in [], ["-j"], ["--firefox"]:
            status, text = self.ends_soon(*option)
            self.assertEqual(status, 1, text)

    def test_pages_within_pages(self):
        """Four pages of which each is referred to a thousand times: a million million rows."""
        self.record("--", "true")
        with sqlite3.connect(self.path) as db:
            db.execute("PRAGMA page_size=16384")
            db.execute("VACUUM")
            for table in "threads", "samples", "functions":
                db.execute(f"DELETE FROM {table}")
            db.execute("INSERT OR IGNORE INTO stack_functions VALUES(1, 1)")  # they are named
        db.close()
        shutil.copy(self.path, self.path + ".good")
        for table in "threads", "samples", "functions":
            shutil.copy(self.path + ".good", self.path)
            with sqlite3.connect(self.path) as db:
                root, = db.execute("SELECT rootpage FROM sqlite_master WHERE name=?",
                                   (table,)).fetchone()
                columns = len(db.execute(f"PRAGMA table_info({table})").fetchall())
                pages, = db.execute("PRAGMA page_count").fetchone()
            db.close()
            # Leaf: rows of NULLs. Interior: a thousand times the page below.
            row = bytes([columns + 1]) + bytes(columns)
            leaf = self.page(13, [bytes([len(row), 1]) + row] * 1000, b"")
            inner = [self.page(5, [struct.pack(">I", pages + 1 + level) + b"\x01"] * 1000,
                               struct.pack(">I", pages + 1 + level)) for level in range(3)]
            with open(self.path, "r+b") as file:
                file.seek((root - 1) << 14)
                file.write(inner[2])
                file.seek(pages << 14)
                file.write(leaf + inner[0] + inner[1])
                file.seek(28)
                file.write(struct.pack(">I", pages + 3))
            for option in [], ["--folded"], ["--firefox"]:
                status, text = self.ends_soon(*option)
                self.assertEqual(status, 1, (table, option, text))

    @staticmethod
    def page(kind, cells, right):
        """A page of SQLite's: header, places of the cells, the cells from its end."""
        size, places, body = 16384, [], b""
        for cell in cells:
            body = cell + body
            places.append(size - len(body))
        head = struct.pack(">BHHHB", kind, 0, len(cells), places[-1], 0) + right
        head += b"".join(struct.pack(">H", place) for place in places)
        return head.ljust(size - len(body), b"\0") + body

    def test_deep(self):
        """A chain of callers that no kernel tells, with a sample at each of its ends."""
        self.record("--", "true")
        with sqlite3.connect(self.path) as db:
            db.executescript("""
                DELETE FROM stacks; DELETE FROM samples;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
                INSERT INTO stacks(id, caller, kernel, map, address) SELECT i, i - 1, 0, NULL, i FROM n;
                INSERT INTO samples SELECT id, 0, 1, id, 1, NULL FROM stacks WHERE id % 100 = 0;
            """)
        db.close()
        folded = self.report("--folded").splitlines()
        self.assertEqual(sum(int(line.rsplit(b" ", 1)[1]) for line in folded), 500)
        self.assertGreater(len(folded), 10)
        self.assertLess(max(line.count(b";") for line in folded), 5000)


class Tables(Recording):
    def test_formats_agree(self):
        self.record("--", SHARES, "0.2")
        report = self.json()
        text = self.report("--top", "0").decode()
        for row in report["functions"]:
            self.assertIn(row["function"], text)
        tables = self.report("-x", ",").decode().split("\n\n")
        self.assertEqual(len(tables), 5) # that of stacks needs -g
        rows = list(csv.DictReader(io.StringIO(tables[0])))
        self.assertEqual([row["function"] for row in rows],
                         [row["function"] for row in report["functions"]])
        self.assertEqual([int(row["self"]) for row in rows],
                         [row["self"] for row in report["functions"]])
        rows = list(csv.DictReader(io.StringIO(tables[1])))
        self.assertEqual([int(row["run_ns"]) for row in rows],
                         [row["run_ns"] for row in report["threads"]])
        self.assertEqual(len(self.json("--top", "1")["functions"]), 1)
        self.assertNotIn("threads", self.json("--table", "functions,waits"))

    def test_timeline(self):
        """The cells of all processors sum to what the threads ran."""
        self.record("--", SHARES, "0.3")
        report = self.json()
        cells = sum(cell["busy_ns"] for row in report["processors"] for cell in row["timeline"])
        run = sum(row["run_ns"] for row in report["threads"])
        self.assertAlmostEqual(cells / run, 1, delta=0.001)
        self.assertIn("record_shares", self.report("--table", "timeline").decode())


PUBLISHED = "/usr/share/gocode/src/github.com/google/pprof/proto"


@unittest.skipUnless(os.environ.get("WHY_SHARES"), "this build cannot read stacks of waits")
class WaitStacks(Recording):
    """A program that says how long it waited in each of three functions."""
    NAMES = ("long_wait", "middle_wait", "short_wait")

    def setUp(self):
        super().setUp()
        # The best there is, and what anybody has, which looks ten times a second only.
        self.tiers = ([], ["--tier", "perf"]) if BPF else (["--tier", "perf"],)

    def shares(self, tier):
        result = prcb("record", "-g", *tier, "-o", self.path, "--",
                      os.environ["WHY_SHARES"], *(("4", "2000") if tier else ("2", "300")))
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(zip(self.NAMES, map(int, result.stdout.split())))

    def check_sums(self, report):
        """Rows of stacks sum to the waits of the switches, by cause."""
        def by_cause(rows):
            sums = {}
            for row in rows:
                sums[row["cause"]] = sums.get(row["cause"], 0) + row["ns"]
            return sums
        waits = [row for row in report["waits"] if row["state"] == "waiting"]
        self.assertEqual(by_cause(waits), by_cause(report["wait_stacks"]))
        self.assertEqual(report["wait_ns"], sum(row["ns"] for row in waits))
        self.assertEqual(report["wait_known_ns"],
                         sum(row["ns"] for row in report["wait_stacks"] if not row["rest"]))

    def test_shares(self):
        """What the program measures has the time in it until it gets a processor, which is no wait: with that the sum
        is the program's, but for the ready time of its start and end, which it does not measure. Only that, and waits
        of which no look in time told the function, can shift shares."""
        for tier in self.tiers:
            told = self.shares(tier)
            total = sum(told.values())
            report = self.json()
            self.check_sums(report)
            found = dict.fromkeys(self.NAMES, 0)
            for row in report["wait_stacks"]:
                names = [frame["function"] for frame in row["stack"] or []]
                for name in self.NAMES:
                    if name in names:
                        found[name] += row["ns"]
                        self.assertIn("main", names)
            thread = report["threads"][0]
            spent = thread["wait_ns"] + thread["ready_ns"] + thread["unknown_ns"]
            lacks = max(0, spent - sum(found.values()))
            self.assertGreater(spent, 0.98 * total, (tier, told, thread))
            self.assertLess(spent - thread["ready_ns"], 1.02 * total, (tier, told, thread))
            self.assertGreater(sum(found.values()), 0.5 * total, report["wait_stacks"])
            for name in self.NAMES:
                self.assertAlmostEqual(found[name] / sum(found.values()), told[name] / total,
                                       delta=0.02 + lacks / total, msg=(tier, found, told))

    def test_every_output(self):
        self.shares(self.tiers[0])
        report = self.json()
        text = self.report().decode()
        self.assertIn("long_wait < main", text)
        self.assertRegex(text, r"stack known for \d+\.\d% of the waiting time")
        tables = self.report("-x", ",").decode().split("\n\n")
        rows = list(csv.DictReader(io.StringIO(tables[5])))
        self.assertEqual([int(row["ns"]) for row in rows],
                         [row["ns"] for row in report["wait_stacks"]])
        folded = [line.rsplit(" ", 1)
                  for line in self.report("--folded", "--waits", "--idle").decode().splitlines()]
        self.assertEqual(sum(int(ns) for _, ns in folded), report["wait_ns"])
        self.assertTrue([line for line, _ in folded if ";main;long_wait" in line])
        for name in ("long_wait", "main"):
            self.assertIn(f'"{name}"', self.report("--firefox").decode())

    def test_pprof(self):
        self.shares(self.tiers[0])
        result = prcb("report", "--pprof", self.path)
        if b"built without" in result.stderr:
            self.skipTest(result.stderr.decode())
        if not shutil.which("protoc") or not os.path.isdir(PUBLISHED):
            self.skipTest("no protoc, or no golang-github-google-pprof-dev")
        text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", "-I", PUBLISHED,
                               "profile.proto"], input=gzip.decompress(result.stdout),
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        strings = [json.loads(value) for value in re.findall(r"(?m)^string_table: (.*)$", text)]
        types = [strings[int(number)] for number in
                 re.findall(r"(?m)^sample_type \{\n  type: (\d+)", text)]
        report = self.json()
        self.assertEqual(len(types), 2 + len({row["cause"] for row in report["wait_stacks"]}) + 1)
        sums = [0] * len(types)
        for sample in re.findall(r"(?m)^sample \{\n(.*?)^\}", text, re.S):
            values = [int(value) for value in re.findall(r"(?m)^  value: (\d+)", sample)]
            self.assertEqual(len(values), len(types))
            sums = [a + b for a, b in zip(sums, values)]
        for row in {row["cause"] for row in report["wait_stacks"]}:
            self.assertEqual(sums[types.index("wait" + ("_" + row if row else ""))],
                             sum(other["ns"] for other in report["wait_stacks"]
                                 if other["cause"] == row))

    def test_a_thread_that_hangs(self):
        """Its one wait has a stack, and it began before the recording."""
        target = self.sleeper()
        # A busy machine has no time for a look in half a second.
        for seconds in 0.5, 2, 8:
            self.record("-g", "-p", str(target), "--for", str(seconds))
            report = self.json()
            rows = [row for row in report["wait_stacks"] if row["stack"]]
            if rows:
                break
        self.assertEqual(len(rows), 1, report["wait_stacks"])
        self.assertEqual(rows[0]["word"], "sleep")
        self.assertGreater(rows[0]["ns"], 0.9 * report["span_ns"])

    def waiter(self):
        """Waits for a terminal: (process, thread)."""
        target = subprocess.Popen([os.environ["STACK_WAITER"], "terminal"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.addCleanup(target.wait)
        self.addCleanup(target.stdout.close)
        self.addCleanup(target.stdin.close)
        tid = int(target.stdout.readline().split()[1])
        for _ in range(2000):
            with open(f"/proc/{target.pid}/task/{tid}/wchan", encoding="ascii") as file:
                if file.read() not in ("", "0"):
                    return target.pid, tid
            time.sleep(0.005)
        raise AssertionError("it does not come to its wait")

    @unittest.skipUnless(BPF, "the kernel's part is the bpf tier's")
    def test_kernel_part(self):
        """The kernel's functions by name, on the user's, in every output; without tables of functions
        and in a recording of before, too."""
        pid, tid = self.waiter()
        for seconds in 0.5, 2, 8: # see test_a_thread_that_hangs
            self.record("-g", "-p", str(pid), "--for", str(seconds))
            if any(row["tid"] == tid and row["stack"] for row in self.json()["wait_stacks"]):
                break
        wanted = ["n_tty_read", "tty_read", "vfs_read"], ["by_terminal", "inner", "middle", "outer", "run"]

        def check(report):
            row = next(row for row in report["wait_stacks"] if row["tid"] == tid)
            for mode, names in enumerate(wanted):
                found = [frame["function"] for frame in row["stack"] if frame["kernel"] == (mode == 0)]
                self.assertEqual([name for name in found if name in names], names, row["stack"])
            kernel = [frame["kernel"] for frame in row["stack"]]
            self.assertEqual(kernel, sorted(kernel, reverse=True))
            self.assertEqual({frame["file"] for frame in row["stack"] if frame["kernel"]}, {"[kernel]"})
        check(self.json())
        self.assertRegex(" ".join(self.report().decode().split()), "n_tty_read < tty_read < .*by_terminal < inner")
        self.assertRegex(self.report("--folded", "--waits").decode(), ";by_terminal;.*;tty_read;n_tty_read")
        self.assertIn(b'"n_tty_read"', self.report("--firefox"))
        self.assertEqual(self.query("SELECT count(*) FROM stacks WHERE name IS NOT NULL AND "
                                    "(address IS NOT NULL OR NOT kernel)"), [(0,)])
        with sqlite3.connect(self.path) as db: # as if it had been cut off
            db.executescript("DELETE FROM functions; DELETE FROM stack_functions; "
                             "DELETE FROM facts WHERE name = 'end_ns';")
        check(self.json())
        with sqlite3.connect(self.path) as db:
            db.executescript("DELETE FROM functions; DELETE FROM stack_functions; "
                             "ALTER TABLE stacks DROP COLUMN name;")
        self.assertNotIn("n_tty_read", json.dumps(self.json()))

    def test_none_were_recorded(self):
        self.record("--", "true")
        result = prcb("report", "--folded", "--waits", self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"record with prcb record -g", result.stderr)
        self.assertIn(b"record with prcb record -g", self.report("--table", "stacks"))
        self.assertIsNone(self.json("--table", "stacks")["wait_stacks"])
        self.assertEqual(prcb("report", "--waits", self.path).returncode, 2)


def fields(data):
    """(number, value) of each field of a protocol buffer: numbers and bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        elif tag & 7 == 1:
            yield tag >> 3, int.from_bytes(data[at:at + 8], "little")
            at += 8
        elif tag & 7 == 2:
            length = number()
            assert at + length <= len(data)
            yield tag >> 3, data[at:at + length]
            at += length
        else:
            raise ValueError(f"tag {tag}")


def message(data):
    """The values of each field, by its number."""
    values = {}
    for field, value in fields(data):
        values.setdefault(field, []).append(value)
    return values


class Exports(Recording):
    def test_pprof(self):
        """Read with the schema that pprof's authors publish."""
        self.record("-g", "-F", rate(5000), "--", SHARES, "0.3")
        result = prcb("report", "--pprof", self.path)
        if b"built without" in result.stderr:
            self.skipTest(result.stderr.decode())
        self.assertEqual(result.returncode, 0, result.stderr)
        if not shutil.which("protoc") or not os.path.isdir(PUBLISHED):
            self.skipTest("no protoc, or no golang-github-google-pprof-dev")
        text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", "-I", PUBLISHED,
                               "profile.proto"], input=gzip.decompress(result.stdout),
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        report = self.json()
        # Each field known to the schema: none is shown by its number.
        self.assertNotRegex(text, r"(?m)^\s*\d+[: ]")
        strings = [json.loads(value) for value in re.findall(r"(?m)^string_table: (.*)$", text)]
        self.assertEqual(strings[0], "")
        samples = re.findall(r"(?m)^sample \{\n(.*?)^\}", text, re.S)
        values = [[int(value) for value in re.findall(r"(?m)^  value: (\d+)", sample)]
                  for sample in samples]
        self.assertEqual(sum(value[0] for value in values), report["samples"])
        self.assertEqual(sum(value[1] for value in values), report["weight"])
        names = {number: strings[int(name)] for number, name in
                 re.findall(r"(?m)^function \{\n  id: (\d+)\n  name: (\d+)", text)}
        places = dict(re.findall(r"(?m)^location \{\n  id: (\d+)\n(?:  mapping_id.*\n)?"
                                 r"(?:  address.*\n)?  line \{\n    function_id: (\d+)", text))
        stacks = [[names[places[place]] for place in re.findall(r"location_id: (\d+)", sample)]
                  for sample in samples]
        burn = sum(value[1] for value, stack in zip(values, stacks) if stack[0] == "burn_half")
        ours = {row["function"]: row["self"] for row in report["functions"]}
        self.assertEqual(burn, ours["burn_half"])
        self.assertIn(["burn_half", "round_of_all", "main"], [stack[:3] for stack in stacks])
        label = re.search(r"label \{\n    key: (\d+)\n    str: (\d+)", samples[0])
        self.assertEqual(strings[int(label.group(1))], "thread")

    def test_perfetto(self):
        """By the numbers of Perfetto's published schema: times by cause are the report's, switches and
        wakings the recording's, stacks those of samples and waits; each arrow has both ends."""
        self.record("-g", "-F", rate(2000), "--", "sh", "-c",
                    'for i in 1 2 3; do sleep 0.02 | cat; done; "$0" 0.2', SHARES)
        result = prcb("report", "--perfetto", self.path)
        if b"built without" in result.stderr:
            self.skipTest(result.stderr.decode())
        self.assertEqual(result.returncode, 0, result.stderr)
        report = self.json()
        if shutil.which("protoc"):
            subprocess.run(["protoc", "--decode_raw"], input=result.stdout, check=True,
                           stdout=subprocess.DEVNULL)
        packets = [message(bytes_) for _, bytes_ in fields(result.stdout)]
        self.assertEqual({packet[10][0] for packet in packets}, {1})
        kernel = [message(event) for packet in packets for bundle in packet.get(1, ())
                  for event in message(bundle)[2]]
        self.assertEqual(sum(4 in event for event in kernel),
                         self.query("SELECT count(*) FROM switches")[0][0])
        self.assertEqual(sum(20 in event for event in kernel), self.query(
            "SELECT count(*) FROM switches WHERE waker NOT NULL AND new_thread NOT NULL")[0][0])
        tracks = {}
        for packet in packets:
            for track in packet.get(60, ()):
                track = message(track)
                thread = message(track[4][0])
                tracks[track[1][0]] = thread[2][0]
        self.assertEqual(set(tracks.values()), {row["tid"] for row in report["threads"]})
        names, frames, stacks = {}, {}, {}
        spent, opened, flows, samples, stacked, weights = {}, {}, ({}, {}), [], 0, {}
        for packet in packets:
            for data in packet.get(12, ()):
                data = message(data)
                names.update((row[1][0], row[2][0].decode()) for row in map(message, data.get(5, ())))
                frames.update((row[1][0], row[2][0]) for row in map(message, data.get(6, ())))
                stacks.update((row[1][0], row[2]) for row in map(message, data.get(7, ())))
            for sample in packet.get(135, ()):
                sample = message(sample)
                counter = message(sample[9][0])
                name = counter[2][0].decode()
                weights[name] = weights.get(name, 0) + sample[11][0]
                task = message(sample[1][0])
                self.assertIn(task[3][0], tracks.values())
                if name == "off_cpu":
                    self.assertEqual((counter[3], 3 in sample), ([1], False))
                    continue
                self.assertIn(message(sample[3][0])[3][0], (1, 2))
                samples.append(names[frames[message(sample[5][0])[2][-1]]])
            for event in packet.get(11, ()):
                event, now = message(event), packet[8][0]
                track = event[11][0]
                self.assertIn(track, tracks)
                for field in 47, 48:
                    for flow in event.get(field, ()):
                        flows[field - 47][flow] = now
                if event[9][0] == 1:
                    opened[track] = event[23][0].decode(), now
                    stacked += 56 in event and event[56][0] in stacks
                elif event[9][0] == 2:
                    name, start = opened.pop(track)
                    spent[name] = spent.get(name, 0) + now - start
        self.assertEqual(opened, {})
        waits = {}
        for row in report["waits"]:
            name = "ready" if row["state"] == "ready" else row["cause"] or "waiting"
            waits[name] = waits.get(name, 0) + row["ns"]
        self.assertEqual(spent, {name: ns for name, ns in waits.items() if ns})
        self.assertEqual(len(samples), report["samples"])
        event, = self.query("SELECT value FROM facts WHERE name = 'event'")[0]
        self.assertEqual(weights.pop(event), self.query("SELECT sum(weight) FROM samples")[0][0])
        if self.query("SELECT count(*) FROM wait_stacks")[0][0]:
            # Each wait as a sample: what has no stack has a frame that says why.
            self.assertEqual(weights, {"off_cpu": sum(row["ns"] for row in report["waits"]
                                                      if row["state"] != "ready")})
        for row in report["functions"][:3]:
            if row["function"].startswith("burn_"):
                self.assertGreater(samples.count(row["function"]), 0)
        self.assertEqual(set(flows[0]), set(flows[1]))
        for flow, woken in flows[0].items():
            # The stamps are of two clocks that differ by microseconds; a wake is before its ready time.
            self.assertLess(woken, flows[1][flow] + 1000000)
        if BPF:
            self.assertGreater(len(flows[0]), 0)
            self.assertIn("pipe", spent)
            self.assertEqual(stacked > 0, self.query(
                "SELECT count(*) FROM wait_stacks WHERE stack NOT NULL")[0][0] > 0)

    def test_contexts_of_wakers(self):
        """Of all kinds that a recording may have: interrupts and softirqs are no threads, and those of whom nothing
        is told are no interrupts."""
        if not BPF:
            self.skipTest(BPF_REASON)
        self.record("--", "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.005 | cat; done")
        kinds = {"thread": 0, "others": 0, "unknown": 0, "timer": 0x08, "interrupt": 0x08, "softirq": 0x10}
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            db.execute("DELETE FROM wakers")
            db.executemany("INSERT INTO wakers (id, by, pid, tid, name) VALUES (?, ?, ?, ?, '')",
                           [(i + 1, by, *((7, 8) if by == "thread" else (None, None)))
                            for i, by in enumerate(kinds)])
            db.execute("UPDATE switches SET waker = 1 + (SELECT count(*) FROM switches o WHERE o.waker NOT NULL "
                       f"AND o.rowid < switches.rowid) % {len(kinds)} WHERE waker NOT NULL")
        result = prcb("report", "--perfetto", self.path)
        if b"built without" in result.stderr:
            self.skipTest(result.stderr.decode())
        self.assertEqual(result.returncode, 0, result.stderr)
        wakings = self.query("SELECT s.woken_ns, t.tid, w.by FROM switches s JOIN wakers w ON w.id = s.waker "
                             "JOIN threads t ON t.id = s.new_thread")
        expected = {(now, tid): (kinds[by], 8 if by == "thread" else 0) for now, tid, by in wakings}
        self.assertEqual({by for _, _, by in wakings}, set(kinds))
        kernel = [message(event) for _, packet in fields(result.stdout) for bundle in message(packet).get(1, ())
                  for event in message(bundle)[2]]
        found = {(event[1][0], message(event[20][0])[2][0]): (event.get(5, [0])[0], event.get(2, [0])[0])
                 for event in kernel if 20 in event}
        self.assertEqual(found, expected)
        rows = list(csv.DictReader(io.StringIO(self.report("--table", "switches", "-x,", "--names=wpa").decode())))
        self.assertEqual({(row["Readying Process"].split(" ")[0], row["Ready Thread In DPC"]) for row in rows
                          if row["Ready Thread In DPC"]} - {("", "False")},
                         {("others", "False"), ("timer", "True"), ("interrupt", "True"), ("softirq", "True")})


def words(*numbers):
    return struct.pack("<%dQ" % len(numbers), *numbers)


class DebugStore(unittest.TestCase):
    """Buffers written here by the layouts of Intel's manual."""

    def decode(self, content, status, *args):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            result = prcb("report", "--ds", file.name, *args)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def test_format_1(self):
        record = words(*range(0x100, 0x116))
        out = self.decode(record + record, 0, "--format", "1", "-j").stdout
        rows = json.loads(out)["records"]
        self.assertEqual(len(rows), 2)
        self.assertEqual(rows[1]["ip"], "0x101")
        self.assertEqual(rows[1]["bx"], "0x103")
        self.assertEqual(rows[1]["data_address"], "0x113")
        self.assertIsNone(rows[1]["eventing_ip"])
        lines = self.decode(record, 0, "--format", "1", "-x", ";").stdout.decode().splitlines()
        values = dict(zip(lines[0].split(";"), lines[1].split(";")))
        self.assertEqual((values["ip"], values["tsc"], values["r15"]), ("0x101", "", "0x111"))
        text = self.decode(record, 0, "--format", "1").stdout.decode()
        self.assertRegex(text, r"(?m)^  latency +0x115$")

    def test_format_6(self):
        basic = struct.pack("<IHH", 0x38 | 1 << 24, 7, 0x20 + 48 + 0x10 + 3 * 8 + 16)
        record = (basic + words(1, 2, 3) + words(10, 11, 12, 13, 14, 15) +
                  struct.pack("<4I", 0x80000001, 4, 3, 0) + words(20, 21, 22, 23, 24))
        row, = json.loads(self.decode(record, 0, "--format", "6", "-j").stdout)["records"]
        self.assertEqual(row["counters"], {"0": 20, "31": 21})
        self.assertEqual(row["fixed"], {"2": 22})
        self.assertEqual(row["metrics_data"], "0x18")
        self.assertEqual(row["lbr"][1], {"from": "0xd", "to": "0xe", "info": "0xf"})
        self.assertEqual(row["retire_latency"], 7)
        self.decode(record, 0, "--format", "6")

    def test_bts(self):
        out = self.decode(words(1, 2, 3, 4, 5, 6), 0, "--format", "bts", "-j").stdout
        self.assertEqual(json.loads(out)["records"][1],
                         {"from": "0x4", "to": "0x5", "flags": "0x6"})

    def test_cut(self):
        record = words(*range(18))
        result = self.decode(record + record[:-1], 1, "--format", "0", "-j")
        self.assertIn(b"at byte 144", result.stderr)
        out = json.loads(result.stdout)
        self.assertEqual((len(out["records"]), out["complete"]), (1, False))
        self.decode(words(1, 2, 3, 4), 1, "--format", "bts")
        self.assertEqual(self.decode(b"", 0, "--format", "3", "-x,").stdout, b"")

    def test_arguments(self):
        for args in (["--ds", "x"], ["--format", "3"], ["--ds", "x", "--format", "7"],
                     ["--ds", "x", "--format", "3", "--firefox"],
                     ["--ds", "x", "--format", "3", "recording"]):
            self.assertEqual(prcb("report", *args).returncode, 2, args)
        self.assertEqual(prcb("report", "--ds", "/no/file", "--format", "3").returncode, 1)


# What depends on files and arguments alone: RECORD_PART says "files" for these, "machine" for the others.
FILES = (Arguments, Exports, Tables, DebugStore)


def load_tests(_loader, tests, _pattern):
    part = os.environ.get("RECORD_PART")
    return unittest.TestSuite(case for suite in tests for case in suite
                              if not part or (part == "files") == isinstance(case, FILES))


if __name__ == "__main__":
    unittest.main()
