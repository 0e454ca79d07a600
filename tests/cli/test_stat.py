#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb stat` as a user meets it: the built program is run, its output and exit
status are compared with facts that do not come from it (the kernel's counters,
what the profiled program was told to do, include/prcb/causes.h).

PRCB or PRCB_EXE names the program; else build/src/tools/cli/prcb is taken. Tests of the
bpf tier are skipped where it cannot be had; everything else runs as any user."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import pwd
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB_EXE") or os.environ.get("PRCB") or
                       os.path.join(SOURCE, "build/src/tools/cli/prcb"))
PYTHON = os.path.realpath(sys.executable)
ROOT = os.geteuid() == 0
TIMEOUT = 60

SECOND = 1000000000
MS = 1000000

THREAD_KEYS = ["tid", "pid", "comm", "cgroup_id", "wall_ns", "run_ns", "ready_ns", "switches",
               "voluntary_switches", "migrations", "tsc_cycles", "waits", "open", "exited"]


def run(*args, **options):
    """prcb stat ARGS, with its output as text."""
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PRCB, "stat", *args], stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT, **options)


def start(*args, **options):
    return subprocess.Popen([PRCB, "stat", *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def run_for_lines(count, *args, stream="stdout"):
    """As run, of a command that reads its standard input to the end: that comes once so many lines were printed,
    however late prcb is with its intervals."""
    with start(*args, stdin=subprocess.PIPE) as process:
        limit = threading.Timer(TIMEOUT, process.kill)
        limit.start()
        read = {"stdout": "", "stderr": ""}
        for _ in range(count):
            read[stream] += getattr(process, stream).readline()
        process.stdin.close()
        for name in read:
            read[name] += getattr(process, name).read()
        limit.cancel()
        return subprocess.CompletedProcess(args, process.wait(), **read)


def enter(folder, pid):
    with open(os.path.join(folder, "cgroup.procs"), "w") as file:
        file.write(str(pid))


@contextlib.contextmanager
def cgroups(count):
    """So many cgroups of version 2, by their folders."""
    with open("/proc/self/mounts") as mounts:
        root = next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)
    if not root:
        raise unittest.SkipTest("no cgroup2 is mounted")
    folders = ["%s/prcb-stat-%d-%d" % (root, os.getpid(), i) for i in range(count)]
    made = []
    try:
        for folder in folders:
            try:
                os.mkdir(folder)
            except OSError as error:
                raise unittest.SkipTest("%s: %s" % (folder, error.strerror))
            made.append(folder)
        yield folders
    finally:
        for folder in made:
            deadline = time.monotonic() + TIMEOUT
            while True:
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(.01)


def asleep(pid):
    """Whether it waits; a moment later it may run again."""
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


def python(code):
    """A command line: python with nothing loaded that is not needed."""
    return [PYTHON, "-I", "-S", "-c", code]


def bpf_reason():
    """Why the bpf tier cannot be had; None if it can."""
    result = run("--tier", "bpf", "-o", os.devnull, "--", "true")
    return None if result.returncode == 0 else result.stderr.strip()


BPF_REASON = bpf_reason()
needs_bpf = unittest.skipIf(BPF_REASON, "no bpf tier: %s" % BPF_REASON)
needs_root = unittest.skipUnless(ROOT, "needs root")


def causes():
    """name -> (kind, reason number, reason name), read from causes.h."""
    with open(os.path.join(SOURCE, "include/prcb/causes.h")) as file:
        text = file.read()
    rows = re.findall(r'X\(\s*\d+, *\w+, *"([\w-]+)", *(\w+), *(\d+), *"', text)
    names = dict(re.findall(r"X\(\s*(\d+), (\w+)\)", text))
    return {name: (kind, int(number), names[number]) for name, kind, number in rows}


class Sleeper:
    """A process to profile: sleeps until it is left."""

    def __init__(self, command=("sleep", "1000"), **options):
        self.process = subprocess.Popen(command, **options)

    def __enter__(self):
        # until exec has happened, its name and its waits are not its own
        deadline = time.monotonic() + TIMEOUT
        name = os.path.basename(self.process.args[0])[:15]
        while time.monotonic() < deadline:
            with open("/proc/%d/comm" % self.process.pid) as file:
                if file.read().strip() == name and asleep(self.process.pid):
                    return self.process
            time.sleep(0.005)
        self.__exit__()
        raise AssertionError("%s does not come to its wait" % name)

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.chmod(self.folder.name, 0o755)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def wait_until(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline, "timed out")
            time.sleep(0.01)

    def document(self, *args, status=0, **options):
        result = run("-j", *args, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout.count("\n"), 1, "one document on one line")
        return json.loads(result.stdout)

    def one(self, document, comm):
        rows = [row for row in document["threads"] if row["comm"] == comm]
        self.assertEqual(len(rows), 1, "%s in %s" % (comm, document))
        return rows[0]

    def cause(self, row, name):
        rows = [wait for wait in row["waits"] if wait["cause"] == name]
        self.assertLessEqual(len(rows), 1)
        return rows[0] if rows else {"count": 0, "ns": 0}

    def assert_fails(self, result, status, *words):
        """One clear line on standard error, nothing on standard output."""
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("prcb stat: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)


class Json(Case):
    @needs_bpf
    def test_brief(self):
        """Bounded, ranked, and of the figures that -j has: here of a sleep, and of hundreds of threads' names."""
        threads = "import threading, time\n" \
                  "def wait(i):\n" \
                  "  open('/proc/thread-self/comm', 'w').write(f'name-{i}')\n" \
                  "  time.sleep(0.3)\n" \
                  "for i in range(300): threading.Thread(target=wait, args=[i], daemon=True).start()\n" \
                  "time.sleep(0.3)"
        result = run("--brief", "--", *python(threads))
        self.assertLessEqual(len(result.stdout), 8192)
        brief = json.loads(result.stdout)
        held = [row["held_up_ns"] for row in brief["rows"]]
        self.assertEqual(held, sorted(held, reverse=True))
        self.assertEqual(len(brief["rows"]) + brief["left_out"], brief["threads"])
        self.assertGreater(held[0], 200_000_000)
        causes = [row["ns"] for row in brief["causes"]]
        self.assertEqual(causes, sorted(causes, reverse=True))
        self.assertIn("prcb why", brief["cannot_say"][-1])
        self.assertTrue(brief["verdict"], brief)

    def test_programs(self):
        """What the kernel missed, program by program, adds up; tiers without programs have none."""
        for tier in ("perf",) + (() if BPF_REASON else ("bpf",)):
            document = self.document("--tier", tier, "--interrupted", "--", "true")
            names = [row["name"] for row in document["programs"]]
            misses = [row["recursion_misses"] for row in document["programs"]]
            self.assertEqual(document["limits"] if tier == "perf" else [], [])
            if tier == "perf":
                self.assertEqual((names, document["recursion_misses"]), ([], None))
                continue
            self.assertEqual(len(set(names)), len(names))
            for name in "prcb_switch", "prcb_contention_end", "prcb_processor_switch", "prcb_soft_exit":
                self.assertIn(name, names)
            self.assertEqual(sum(misses), document["recursion_misses"])

    def test_schema(self):
        """Keys, types and their order; what its manual promises."""
        document = self.document("--", "sh", "-c", "sleep 0.1; true")
        keys = list(document)
        self.assertEqual(keys[:3], ["format", "format_version", "tier"])
        self.assertIn(document["tier"], ("bpf", "perf"))
        for key in ("wall_ns", "threads", "untracked_threads"):
            self.assertIn(key, keys)
        self.assertEqual(document["untracked_threads"], 0)
        self.assertGreaterEqual(len(document["threads"]), 2)
        for row in document["threads"]:
            self.assertEqual([key for key in row if key in THREAD_KEYS], THREAD_KEYS)
            self.assertIsInstance(row["tid"], int)
            self.assertIsInstance(row["comm"], str)
            self.assertIsInstance(row["exited"], bool)
            for key in THREAD_KEYS[3:10]:
                self.assertIsInstance(row[key], (int, type(None)), key)
            for wait in row["waits"] or []:
                self.assertEqual(list(wait), ["cause", "reason", "number", "count", "ns"])
                self.assertTrue(wait["count"] or wait["ns"], wait)

    def test_absent_members_are_null_and_explained(self):
        for tier in ("perf",) + (() if BPF_REASON else ("bpf",)):
            document = self.document("--tier", tier, "--", "sleep", "0.1")
            self.assertEqual(document["tier"], tier)
            for row in document["threads"]:
                for key in ("run_ns", "ready_ns", "switches", "migrations", "tsc_cycles", "waits"):
                    if row[key] is None:
                        self.assertTrue(document["absent"].get(key), key)
                for key, reason in document["absent"].items():
                    self.assertIsNone(row[key], key)
                    self.assertTrue(reason)

    @needs_bpf
    def test_interrupted(self):
        """A part of run, of a thread that ticks have struck; and only where it was asked for."""
        # A thread that ran when its account began is known from its next switch on.
        spin = python("import time\ntime.sleep(0.01)\nend = time.process_time() + 0.3\n"
                      "while time.process_time() < end: pass")
        document = self.document("--interrupted", "--tier", "bpf", "--", *spin)
        row = document["total"]
        if row["interrupted_ns"] is None:
            self.skipTest(document["absent"]["interrupted_ns"])
        self.assertGreater(row["interrupted_ns"], 0)
        self.assertLess(row["interrupted_ns"], row["run_ns"] / 2)
        self.assertNotIn("interrupted_ns", document["absent"])
        lines = run("--interrupted", "-x", ",", "--", "true").stdout.splitlines()
        self.assertIn("unclear_wakes,interrupted_ns,", lines[0])
        self.assertEqual(lines[0].count(","), lines[1].count(","))
        document = self.document("--", "true")
        self.assertNotIn("interrupted_ns", document["total"])
        self.assertNotIn("interrupted_ns", document["absent"])

    def test_interrupted_is_absent_on_the_perf_tier(self):
        document = self.document("--interrupted", "--tier", "perf", "--", "sleep", "0.1")
        self.assertIsNone(document["total"]["interrupted_ns"])
        self.assertTrue(document["absent"]["interrupted_ns"])

    @needs_bpf
    def test_reasons_are_those_of_the_table(self):
        table = causes()
        self.assertGreater(len(table), 30)
        document = self.document("--", *python(
            "import os,time,threading\n"
            "time.sleep(.01); os.sched_yield()\n"
            "t=threading.Thread(target=time.sleep,args=(.05,)); t.start(); t.join()\n"
            "r,w=os.pipe()\n"
            "if os.fork():\n"
            "  os.read(r,1); os.wait()\n"
            "else:\n"
            "  while open('/proc/%d/stat'%os.getppid()).read().rsplit(')',1)[1][1]!='S': pass\n"
            "  time.sleep(.05); os.write(w,b'x')\n"))
        seen = set()
        for row in document["threads"]:
            for wait in row["waits"]:
                kind, number, name = table[wait["cause"]]
                self.assertEqual((wait["number"], wait["reason"]), (number, name))
                self.assertTrue(kind == "WAIT" or wait["ns"] == 0, wait)
                seen.add(wait["cause"])
        self.assertLessEqual({"sleep", "futex", "pipe", "exit"}, seen)

    @needs_bpf
    def test_sums(self):
        """run + ready + waits + open == wall to the nanosecond, ended or alive."""
        code = ("import threading,time\n"
                "def f():\n"
                "  for i in range(20): time.sleep(.002); sum(range(20000))\n"
                "ts=[threading.Thread(target=f) for i in range(4)]\n"
                "[t.start() for t in ts]; [t.join() for t in ts]\n")
        with Sleeper() as sleeper:
            for args in (("--", *python(code)), ("-p", str(sleeper.pid), "--for", "0.2")):
                document = self.document(*args)
                self.assertTrue(document["threads"])
                for row in document["threads"] + [document["total"]]:
                    waits = sum(wait["ns"] for wait in row["waits"])
                    open_ns = row["open"]["ns"] if row["open"] else 0
                    self.assertEqual(row["wait_ns"], waits)
                    self.assertEqual(row["run_ns"] + row["ready_ns"] + waits + open_ns,
                                     row["wall_ns"], row)
                    self.assertEqual(sum(wait["count"] for wait in row["waits"]) +
                                     row["missed_switches"], row["switches"], row)

    @needs_bpf
    def test_known_sleeps(self):
        document = self.document("--", *python("import time\nfor i in range(7): time.sleep(.02)"))
        row = document["threads"][0]
        sleep = self.cause(row, "sleep")
        self.assertEqual(sleep["count"], 7)
        # The kernel never wakes early; what comes on top is the machine's noise. The
        # switch out is a little later than the call that set the timer.
        self.assertGreaterEqual(sleep["ns"], 7 * 20 * MS - 7 * MS)
        self.assertLessEqual(sleep["ns"], row["wall_ns"])
        self.assertTrue(row["exited"])
        self.assertIsNone(row["open"])

    @needs_bpf
    def test_switches_are_the_kernels(self):
        """A child's switches against what wait4 says of it."""
        code = ("import os,time,sys\n"
                "pid=os.fork()\n"
                "if not pid:\n"
                "  for i in range(25): time.sleep(.001)\n"
                "  os._exit(0)\n"
                # the last switch is over before the counters are read
                "os.waitid(os.P_PID,pid,os.WEXITED|os.WNOWAIT); time.sleep(.5)\n"
                "u=os.wait4(pid,0)[2]\n"
                "open(sys.argv[1],'w').write('%d %d %d'%(pid,u.ru_nvcsw,u.ru_nivcsw))\n")
        document = self.document("--", *python(code), self.path("usage"))
        with open(self.path("usage")) as file:
            pid, voluntary, involuntary = map(int, file.read().split())
        row = [row for row in document["threads"] if row["pid"] == pid][0]
        self.assertEqual(row["voluntary_switches"], voluntary)
        self.assertEqual(row["switches"], voluntary + involuntary)

    @needs_bpf
    def test_open_wait(self):
        with Sleeper() as sleeper:
            document = self.document("-p", str(sleeper.pid), "--for", "0.2")
        row = self.one(document, "sleep")
        self.assertEqual(row["tid"], sleeper.pid)
        self.assertEqual(row["open"]["cause"], "sleep")
        self.assertEqual(row["open"]["ns"], row["wall_ns"])
        self.assertGreaterEqual(row["wall_ns"], 0.19 * SECOND)
        self.assertFalse(row["exited"])
        self.assertEqual(row["switches"], 0)

    @needs_bpf
    def test_brief_threads_appear(self):
        code = ("import threading\n"
                "for i in range(100):\n"
                "  t=threading.Thread(target=int); t.start(); t.join()\n")
        document = self.document("--", *python(code))
        self.assertEqual(len(document["threads"]), 101)
        self.assertTrue(all(row["exited"] for row in document["threads"]))
        self.assertEqual(document["total"]["threads"], 101)

    @needs_bpf
    def test_names_are_valid_text(self):
        """A thread may call itself anything, broken UTF-8 included."""
        code = "open('/proc/self/comm','wb').write(b'\\xff\\x1b[2J\"\\xc3'); import time; time.sleep(.05)"
        result = subprocess.run([PRCB, "stat", "-j", "--", *python(code)], stdout=subprocess.PIPE,
                                timeout=TIMEOUT)
        document = json.loads(result.stdout.decode("utf-8"))
        self.assertEqual(document["threads"][0]["comm"], '\ufffd\x1b[2J"\ufffd')
        table = subprocess.run([PRCB, "stat", "--", *python(code)], stderr=subprocess.PIPE,
                               timeout=TIMEOUT).stderr
        self.assertNotIn(b"\x1b", table)
        self.assertIn(b'??[2J"?', table)

    def test_per_process(self):
        code = ("import os,threading,time\n"
                "ts=[threading.Thread(target=time.sleep,args=(.15,)) for i in range(3)]\n"
                "[t.start() for t in ts]\n"
                "if not os.fork(): time.sleep(.1); os._exit(0)\n"
                "os.wait(); [t.join() for t in ts]\n")
        document = self.document("--per-process", "--", *python(code))
        self.assertNotIn("threads", document)
        threads = sorted(row["threads"] for row in document["processes"])
        self.assertEqual(threads, [1, 4])
        for row in document["processes"]:
            self.assertNotIn("tid", row)
        self.assertEqual(sum(row["run_ns"] for row in document["processes"]),
                         document["total"]["run_ns"])

    def test_per_name(self):
        code = ("import os,time\n"
                "for name in ('fleet-a','fleet-a','fleet-b'):\n"
                "  if not os.fork():\n"
                "    open('/proc/self/comm','w').write(name); time.sleep(.5); os._exit(0)\n"
                "for i in range(3): os.wait()\n")
        document = self.document("--per-name", "--", *python(code))
        threads = {row["comm"]: row["threads"] for row in document["names"]}
        self.assertEqual((threads["fleet-a"], threads["fleet-b"]), (2, 1))
        self.assertEqual(sum(row["wall_ns"] for row in document["names"]),
                         document["total"]["wall_ns"])

    @needs_bpf
    def test_per_cgroup(self):
        """A process runs in one cgroup, is moved, and runs as long again: each has its part."""
        code = ("import sys,time\n"
                "def burn():\n"
                "  end=time.process_time()+.6\n"
                "  while time.process_time()<end: time.sleep(.002); sum(range(20000))\n"
                "for folder in sys.argv[1:]:\n"
                "  open(folder+'/cgroup.procs','w').write('0'); time.sleep(.3); burn()\n")
        with cgroups(2) as folders:
            result = run("-j", "--per-cgroup", "--", *python(code), *folders)
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            rows = {row["cgroup"]: row for row in document["cgroups"]}
            for folder in folders:
                row = rows["/" + os.path.basename(folder)]
                self.assertEqual(row["cgroup_id"], os.stat(folder).st_ino)
                # Looks are 250 ms apart; what falls between two is the earlier cgroup's.
                self.assertAlmostEqual(row["run_ns"] / SECOND, .6, delta=.35)
            self.assertEqual(sum(row["threads"] for row in rows.values()), 1)
            for figure in "run_ns", "wall_ns", "switches":
                self.assertEqual(sum(row[figure] for row in rows.values()),
                                 document["total"][figure])
            for row in rows.values():
                parts = row["run_ns"] + row["ready_ns"] + sum(w["ns"] for w in row["waits"])
                parts += row["open"]["ns"] if row["open"] else 0
                self.assertEqual(parts, row["wall_ns"])

    def test_per_cgroup_needs_bpf(self):
        result = run("--tier", "perf", "--per-cgroup", "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--per-cgroup is not possible", result.stderr)

    def test_no_follow(self):
        document = self.document("--no-follow", "--", "sh", "-c", "sleep 0.1; true")
        self.assertEqual([row["comm"] for row in document["threads"]], ["sh"])

    def test_top_and_sort(self):
        code = ("import os,time\n"
                "for ms in (150,50,250):\n"
                "  if not os.fork(): time.sleep(ms/1000); os._exit(0)\n"
                "for i in range(3): os.wait()\n")
        document = self.document("--sort", "wall", "--top", "3", "--", *python(code))
        walls = [row["wall_ns"] for row in document["threads"]]
        self.assertEqual(walls, sorted(walls, reverse=True))
        self.assertEqual(len(walls), 3)
        self.assertEqual(document["rows_left_out"], 1)
        self.assertEqual(document["total"]["threads"], 4)
        self.assertGreater(document["total"]["wall_ns"], sum(walls))
        tids = [row["tid"] for row in self.document("--sort", "tid", "--", *python(code))["threads"]]
        self.assertEqual(tids, sorted(tids))
        if not BPF_REASON:
            rows = self.document("--sort", "sleep", "--", *python(code))["threads"]
            sleeps = [self.cause(row, "sleep")["ns"] for row in rows]
            self.assertEqual(sleeps, sorted(sleeps, reverse=True))
            self.assertGreater(sleeps[0], 200 * MS)


class Room(Case):
    @staticmethod
    def threads(count):
        """A program of so many more threads, of which none ends before all are there."""
        return python("import threading\n"
                      "end=threading.Event()\n"
                      "ts=[threading.Thread(target=end.wait) for i in range(%d)]\n"
                      "[t.start() for t in ts]; end.set(); [t.join() for t in ts]\n" % count)

    @needs_bpf
    def test_untracked_threads_are_counted(self):
        document = self.document("--max-threads", "8", "--", *self.threads(20))
        self.assertEqual(len(document["threads"]), 8)
        self.assertEqual(document["untracked_threads"], 13)
        table = run("--max-threads", "8", "--", *self.threads(20)).stderr
        self.assertIn("13 threads were not tracked", table)
        self.assertIn("--max-threads", table)

    @needs_bpf
    def test_long_runs_do_not_run_out(self):
        """Far more processes than there is room for, one after the other."""
        code = ("import os,time\n"
                "for i in range(600):\n"
                "  if not os.fork(): os._exit(0)\n"
                "  os.wait(); time.sleep(.003)\n")
        document = self.document("--max-threads", "256", "--", *python(code))
        self.assertEqual(document["untracked_threads"], 0)
        self.assertEqual(len(document["threads"]), 601)
        # No row twice. A number may be: where others start processes all are given out in seconds.
        self.assertEqual(len({json.dumps(row) for row in document["threads"]}), 601)
        self.assertEqual(document["total"]["exited_threads"], 601)

    @needs_bpf
    def test_rooms_end_in_csv_is_told_on_stderr(self):
        result = run("-x", ",", "--max-threads", "2", "--", *self.threads(4))
        self.assertIn("3 threads were not tracked", result.stderr)


class Table(Case):
    @needs_bpf
    def test_words_and_legend(self):
        result = run("--nt", "--", "sleep", "0.3", env=dict(os.environ, COLUMNS="100"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "", "it is the command's")
        text = result.stderr
        self.assertRegex(text, r"(?m)^\d+ % of thread time \(([3-9]\d\dms|\d\.\d+s)\) was spent "
                               r"asleep \(nanosleep\)")
        self.assertRegex(text, r"(?m)^ +sleep +DelayExecution +asleep \(nanosleep\)$")
        self.assertRegex(run("--", "sleep", "0.1").stderr, r"(?m)^ +sleep +asleep \(nanosleep\)$")
        self.assertRegex(text, r"(?m)^ *TID +THREAD +WALL +RUN +READY +sleep .*SWITCHES")
        self.assertRegex(text, r"(?m)^ *total ")
        self.assertFalse(re.search(r"(?m) $", text), "no line ends with a space")

    @needs_bpf
    def test_open_wait_is_marked(self):
        with Sleeper() as sleeper:
            text = run("-p", str(sleeper.pid), "--for", "0.2").stdout
        # For all the time that it was looked at.
        self.assertRegex(text, r"(?m)^ *%d +sleep +([2-9]\d\dms|\d\.\d+s) .*\+\1 sleep$" % sleeper.pid)
        self.assertIn("none of these waits had ended", text)

    @needs_bpf
    def test_width(self):
        code = ("import os,time,threading\n"
                "time.sleep(.05)\n"
                "t=threading.Thread(target=time.sleep,args=(.05,)); t.start(); t.join()\n"
                "r,w=os.pipe()\n"
                "if os.fork(): os.read(r,1); os.wait()\n"
                "else:\n"
                "  while open('/proc/%d/stat'%os.getppid()).read().rsplit(')',1)[1][1]!='S': pass\n"
                "  time.sleep(.05); os.write(w,b'x'); time.sleep(.05)\n")
        for columns in (60, 80, 200):
            text = run("--", *python(code), env=dict(os.environ, COLUMNS=str(columns))).stderr
            table = text.split("\n\n")[1].splitlines()
            self.assertLessEqual(max(map(len, table)), columns)
            heading = table[0].split()
            if columns == 200:
                self.assertLessEqual({"sleep", "futex", "pipe", "child"}, set(heading))
            elif columns == 80:
                self.assertIn("rest", heading)

    @needs_bpf
    @needs_root
    def test_width_of_all_that_runs(self):
        """Long names and numbers, open waits; a row is no longer than the terminal is wide."""
        # There may be few others, in a pid namespace say.
        with Sleeper(), Sleeper(), Sleeper(), Sleeper(), Sleeper():
            for columns in (60, 72, 90, 120):
                for args in ((), ("--per-process",)):
                    text = run("-a", "--for", "0.2", *args,
                               env=dict(os.environ, COLUMNS=str(columns))).stdout
                    rows = [row for row in text.split("\n\n")[1].splitlines() if not row.startswith(" (")]
                    self.assertGreater(len(rows), 5)
                    self.assertLessEqual(len(rows), 1 + 40 + 4)  # heading, rows, what is summed
                    for row in text.split("note: ")[0].splitlines()[2:]:
                        self.assertLessEqual(len(row), columns, row)
                    # The legend explains what is in the table and nothing else.
                    for name in re.findall(r"(?m)^  ([a-z]\S+)  ", "\n\n".join(text.split("\n\n")[3:])):
                        self.assertTrue(any(name in row for row in rows), f"{name}:\n{text}")
                text = run("-a", "-I", "100", "--for", "0.3",
                           env=dict(os.environ, COLUMNS=str(columns))).stdout
                lines = text.split("\n\n")[0].splitlines()
                self.assertGreater(len(lines), 5)
                for line in lines:
                    self.assertLessEqual(len(line), columns, line)

    def test_title_of_a_long_command_is_cut(self):
        words = [str(number) for number in range(2000)]
        title = run("--", "true", *words).stderr.splitlines()[1]
        self.assertRegex(title, r"^ true 0 1 2 .* \.\.\.: 1 thread in ")
        self.assertLess(len(title), 400)
        title = run("--", "true", *words[:9]).stderr.splitlines()[1]
        self.assertTrue(title.startswith(" true 0 1 2 3 4 5 6 7 8: 1 thread in "), title)

    def test_childs_output_comes_first(self):
        for stream in ("1", "2"):
            result = run("--", "sh", "-c", "echo from the child >&%s" % stream,
                         **({} if stream == "1" else {}))
            if stream == "1":
                self.assertEqual(result.stdout, "from the child\n")
                self.assertIn("SWITCHES", result.stderr)
            else:
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, r"(?s)^from the child\n.*SWITCHES")
        # What a program reads is where it looks for it, and so is what -o names.
        self.assertIn('"tier"', run("-j", "--", "true").stdout)
        self.assertIn(",", run("-x", ",", "--", "true").stdout)
        self.assertEqual(run("-o", self.path("table"), "--", "echo", "hello").stdout, "hello\n")
        with open(self.path("table")) as file:
            self.assertIn("SWITCHES", file.read())

    def test_notes_of_the_perf_tier(self):
        text = run("--tier", "perf", "--", "sleep", "0.1").stderr
        self.assertIn("note: perf tier", text)
        self.assertIn("absent:", text)
        self.assertIn("may be missing", text)

    def test_help(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("examples:", result.stdout)
        for option in ("--pid", "--tid", "--cgroup", "--all", "--for", "--interval", "--csv",
                       "--json", "--ndjson", "--output", "--sort", "--top", "--per-thread",
                       "--per-process", "--no-follow", "--tier", "--max-threads"):
            self.assertIn(option, result.stdout)


class Idle(Case):
    @needs_bpf
    def test_each_process_has_its_turn(self):
        """Five thousand threads of a process have more stacks than are read at the end. Another's event loop is read."""
        many = subprocess.Popen([sys.executable, "-c", """
import threading
threading.stack_size(65536)
end = threading.Event()
for _ in range(5000):
    threading.Thread(target=end.wait, daemon=True).start()
print(flush=True)
end.wait()
"""], stdout=subprocess.PIPE, text=True)
        self.addCleanup(many.stdout.close)
        self.addCleanup(many.wait)
        self.addCleanup(many.kill)
        if not many.stdout.readline():
            self.skipTest("5000 threads may not be created")
        loop = ("import asyncio; asyncio.run(asyncio.sleep(1000))",)
        with Sleeper((sys.executable, "-c", *loop)) as looping:
            rows = json.loads(run("-p", f"{many.pid},{looping.pid}", "--for", "0.3", "--per-process", "--brief").stdout)["rows"]
        self.assertEqual([row["pid"] for row in rows if row["held_up_ns"]], [many.pid])

    @needs_bpf
    def test_ended_ones_of_a_name_are_one(self):
        words = "for i in 1 2 3 4 5 6; do /bin/true; done; :"
        text = run("--", "sh", "-c", words).stderr
        self.assertRegex(text, r"(?m)^ +- +- +true \(6 ended\) ")
        self.assertEqual(len(re.findall(r"(?m)^ +\S+ +\S+ +true ", text)), 1, text)
        text = run("--per-process", "--", "sh", "-c", words).stderr
        self.assertRegex(text, r"(?m)^ +- +true \(6 ended\) +6 ")
        threads = json.loads(run("-j", "--", "sh", "-c", words).stdout)["threads"]
        self.assertEqual(sum(row["comm"] == "true" for row in threads), 6)


class Intervals(Case):
    CODE = "import sys, time\nfor i in range(10): time.sleep(.03)\nsys.stdin.read()"

    @needs_bpf
    def test_ndjson(self):
        result = run_for_lines(4, "-I", "50", "--ndjson", "--", *python(self.CODE))
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertGreaterEqual(len(lines), 4)
        ends = [line["time_ns"] for line in lines]
        self.assertEqual(ends, sorted(ends))
        self.assertEqual(sum(line["wall_ns"] for line in lines), ends[-1])
        rows = [row for line in lines for row in line["threads"]]
        self.assertEqual({row["tid"] for row in rows}, {rows[0]["tid"]})
        self.assertEqual(sum(self.cause(row, "sleep")["count"] for row in rows), 10)
        # Changes add up to the whole; what was open at the end of one is in a later one.
        before = 0
        for row in rows:
            now = row["open"]["ns"] if row["open"] else 0
            parts = row["run_ns"] + row["ready_ns"] + row["wait_ns"] + now - before
            # A live stretch of running is an estimate of this moment, corrected later by
            # the kernel's own stamp; both within microseconds.
            self.assertAlmostEqual(parts, row["wall_ns"], delta=MS)
            before = now
        self.assertTrue(rows[-1]["exited"])

    @needs_bpf
    def test_tails_of_intervals_are_parts_of_the_whole(self):
        result = run_for_lines(4, "-I", "100", "--tails", "--ndjson", "--", *python(self.CODE))
        self.assertEqual(result.returncode, 0, result.stderr)
        tails = [json.loads(line)["total"]["tails"].get("sleep") for line in result.stdout.splitlines()]
        tails = [tail for tail in tails if tail]
        self.assertGreater(len(tails), 1)
        self.assertEqual(sum(tail["count"] for tail in tails), 10)
        longest = max(tail["max_ns"] or 0 for tail in tails)
        for tail in tails:
            self.assertEqual(sum(bucket["count"] for bucket in tail["buckets"]), tail["count"])
            # Of the 30 ms some pass before the thread has left, more where it is preempted.
            self.assertGreaterEqual(tail["ns"], 15 * MS * tail["count"])
            self.assertGreaterEqual(tail["p50"]["up_to_ns"], 15 * MS)
            self.assertLess(tail["p50"]["above_ns"], tail["p50"]["up_to_ns"])
            self.assertLessEqual(tail["p99"]["up_to_ns"], longest)
            # Where the longest is not said, an earlier interval has one that is not shorter.
            if tail["max_ns"] is None:
                self.assertGreater(longest, tail["buckets"][-1]["up_to_ns"] * .8)

    def test_ndjson_without_intervals_is_one_line(self):
        result = run("--ndjson", "--", "true")
        self.assertEqual(result.stdout.count("\n"), 1)
        self.assertIn("threads", json.loads(result.stdout))

    def test_lines_then_summary(self):
        text = run_for_lines(4, "-I", "100", "--", *python(self.CODE), stream="stderr").stderr
        self.assertRegex(text, r"^ +TIME +TID +THREAD +RUN +READY +WAIT +SWITCHES +WAITS\n")
        times = [float(time) for time in re.findall(r"(?m)^ +(\d+\.\d{3}) ", text)]
        self.assertGreaterEqual(len(times), 3)
        self.assertGreaterEqual(times[0], 0.1)
        self.assertIn("of thread time", text)

    def test_intervals_of_several_processes(self):
        """An empty line and a heading in front of each, and whose threads they are."""
        for columns in (80, 120):
            with Sleeper() as other:
                text = run("-I", "100", "--for", "1.5", "-p", f"{os.getpid()}\n{other.pid}\n",
                           env=dict(os.environ, COLUMNS=str(columns))).stdout.split("\n\n process ")[0]
            blocks = text.split("\n\n")
            self.assertGreaterEqual(len(blocks), 3)
            for block in blocks:
                self.assertRegex(block, r"^ *(TIME )? +PID +TID +THREAD .*WAITS")
                self.assertRegex(block, rf"(?m)^[ .0-9]* {os.getpid()} +{os.getpid()} ")

    def test_names_of_processes(self):
        with open("/proc/self/comm", encoding="utf-8") as file:
            name = file.read().strip()
        document = json.loads(run("-j", "--for", "0.1", "-p", name).stdout)
        self.assertIn(os.getpid(), [thread["pid"] for thread in document["threads"]])
        # One that ends before it is looked at is none of them.
        with subprocess.Popen([sys.executable, "-I", "-S", "-c",
                               "import os\nwhile os.getppid() == %d:\n"
                               "    if not os.fork(): os._exit(0)\n    os.wait()" % os.getpid()]) as forks:
            try:
                for _ in range(10):
                    run("-j", "--for", "0.01", "-p", f"{os.getpid()},{name}")
            finally:
                forks.kill()
        result = subprocess.run([PRCB, "stat", "-p", "no-such-process", "--for", "0.1"], capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no process is called 'no-such-process'", result.stderr)

    def test_csv(self):
        text = run_for_lines(4, "-I", "100", "-x", ";", "--", *python(self.CODE)).stdout
        rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
        self.assertGreaterEqual(len(rows), 3)
        for row in rows:
            self.assertIn("futex_ns", row)
            self.assertGreater(int(row["time_ns"]), 0)
            self.assertNotIn(None, row)
            self.assertNotIn(None, row.values())


class Csv(Case):
    @needs_bpf
    def test_columns(self):
        code = "open('/proc/self/comm','w').write('a,\"b'); import time; time.sleep(.05)"
        result = run("-x", ",", "--", *python(code))
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        self.assertEqual(len(rows), 1)
        row = rows[0]
        self.assertEqual(row["comm"], 'a,"b')
        self.assertEqual(row["sleep_count"], "1")
        self.assertGreater(int(row["sleep_ns"]), 45 * MS)
        self.assertNotIn("socket_ns", row)
        waits = sum(int(value) for key, value in row.items()
                    if key.endswith("_ns") and key[:-3] in causes())
        self.assertEqual(waits, int(row["wait_ns"]))
        self.assertEqual(int(row["run_ns"]) + int(row["ready_ns"]) + waits + int(row["open_ns"]),
                         int(row["wall_ns"]))

    def test_absent_is_empty(self):
        result = run("--tier", "perf", "-x", "\\t", "--", "sleep", "0.1")
        row = next(csv.DictReader(io.StringIO(result.stdout), delimiter="\t"))
        self.assertIn("waits by cause absent: ", result.stderr)
        for key in ("missed_switches", "open_cause"):
            self.assertEqual(row[key], "")
        self.assertGreater(int(row["wall_ns"]), 90 * MS)

    def test_bad_separators(self):
        for separator in ("", "a", "1", '"', ".", "-", "_"):
            self.assert_fails(run("-x", separator, "--", "true"), 2, "-x")


class Status(Case):
    def test_exit_status_of_the_command(self):
        self.assertEqual(run("sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(run("-o", self.path("r"), "--", "sh", "-c", "exit 0").returncode, 0)
        self.assertEqual(run("--", "sh", "-c", "kill -TERM $$").returncode, 128 + signal.SIGTERM)
        self.assertEqual(run("--", "sh", "-c", "kill -KILL $$").returncode, 128 + signal.SIGKILL)

    def test_command_cannot_be_run(self):
        self.assert_fails(run("--", "no-such-command-at-all"), 127, "no-such-command-at-all",
                          "not found")
        self.assert_fails(run("--", "/"), 126, "/: ")
        with open(self.path("data"), "w") as file:
            file.write("data")
        self.assert_fails(run("--", self.path("data")), 126, "ermission denied")
        with Sleeper() as sleeper:
            pid = str(sleeper.pid)
            self.assert_fails(run("-p", pid, "--", "no-such-command-at-all"), 127, "not found")
            self.assert_fails(run("-p", pid, "--", self.path("data")), 126, "ermission denied")

    def test_usage(self):
        for args in ((), ("--",), ("-p", "x"), ("-p", "0"), ("-p", "1,,2"), ("-p", "-1"),
                     ("-p", "99999999999"), ("-t", "1.5"), ("-I", "5", "true"),
                     ("-I", "x", "true"), ("--for", "0", "-a"), ("--for", "-1", "-a"),
                     ("--for", "1x", "-a"), ("--sort", "beauty", "true"), ("--top", "x", "true"),
                     ("--tier", "best", "true"), ("--max-threads", "0", "true"),
                     ("--max-threads", "9999999999", "true"), ("--nonsense",), ("-Z",),
                     ("-j", "-x", ",", "true"), ("-j", "--ndjson", "true"),
                     ("-j", "-I", "100", "true"), ("--per-thread", "--per-process", "true"),
                     ("-a", "-p", "1"), ("-a", "--no-follow"), ("--cgroup", "", "true"),
                     ("-o", "", "true"), ("-p",)):
            with self.subTest(args=args):
                self.assert_fails(run(*args), 2)

    def test_unknown_targets(self):
        # Numbers are given out in turn: one that was just given back is not given out soon.
        with subprocess.Popen(["true"]) as gone:
            nobody = str(gone.pid)
        self.assert_fails(run("-p", nobody, "--for", "1"), 1, nobody, "no such process")
        self.assert_fails(run("-t", nobody, "--for", "1"), 1, nobody, "no such thread")
        self.assert_fails(run("-p", nobody, "--", "touch", self.path("started")), 1, nobody)
        self.assertFalse(os.path.exists(self.path("started")), "nothing half-done")
        self.assert_fails(run("--cgroup", "/no/such/cgroup", "--for", "1"), 1, "/no/such/cgroup")
        with Sleeper() as sleeper:
            self.assert_fails(run("-p", "%d,%s" % (sleeper.pid, nobody), "--for", "1"), 1, nobody)

    def test_output_file(self):
        result = run("-j", "-o", self.path("report"), "--", "echo", "hello")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "hello\n", ""))
        with open(self.path("report")) as file:
            self.assertEqual(json.load(file)["total"]["threads"], 1)
        with open(self.path("report"), "a") as file:
            file.write("x" * 100000)
        run("-x", ",", "-o", self.path("report"), "--", "true")
        self.assertLess(os.path.getsize(self.path("report")), 10000, "what was there is gone")

    def test_output_file_cannot_be_written(self):
        path = self.path("no/report")
        result = run("-o", path, "--", "touch", self.path("started"))
        self.assert_fails(result, 1, path, "No such file")
        self.assertFalse(os.path.exists(self.path("started")), "nothing half-done")
        result = run("-o", "/dev/full", "--", "true")
        self.assert_fails(result, 1, "/dev/full", "No space left")
        self.assertEqual(run("-o", "/dev/full", "--", "sh", "-c", "exit 4").returncode, 4)

    def test_failed_start_leaves_the_file_alone(self):
        with open(self.path("kept"), "w") as file:
            file.write("kept")
        self.assertEqual(run("-o", self.path("kept"), "--", "no-such-command").returncode, 127)
        self.assertEqual(run("-o", self.path("new"), "--", "no-such-command").returncode, 127)
        with open(self.path("kept")) as file:
            self.assertEqual(file.read(), "kept")
        self.assertFalse(os.path.exists(self.path("new")))

    def test_broken_pipe(self):
        for args in (("-x,", "--", "true"), ("-j", "--", "true"), ("-I", "50", "--for", "50", "-a")):
            reader, writer = os.pipe()
            os.close(reader)
            begin = time.monotonic()
            result = run(*args, stdout=writer)
            os.close(writer)
            self.assertNotIn("ipe", result.stderr, args)  # notes of a lesser tier may come before
            self.assertEqual(result.returncode, 128 + signal.SIGPIPE, args)
            self.assertLess(time.monotonic() - begin, 40, "stops when nobody reads")
        reader, writer = os.pipe()
        os.close(reader)
        self.assertEqual(run("-j", "--", "sh", "-c", "exit 5", stdout=writer).returncode, 5)
        os.close(writer)

    def test_full_disk_on_standard_output(self):
        with open("/dev/full", "w") as full:
            result = run("-j", "--", "true", stdout=full)
            lost = subprocess.run([PRCB, "stat", "--", "true"], stderr=full, timeout=TIMEOUT, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)
        self.assertEqual(lost.returncode, 1, "the table was to be on standard error")

    def test_closed_standard_output(self):
        result = subprocess.run(["sh", "-c", '"$0" stat -j -- true >&-', PRCB], timeout=TIMEOUT,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

    def test_command_gets_the_signals_it_would_have(self):
        command = ["grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"]
        plain = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
        with Sleeper() as sleeper:
            for args in ((), ("-p", str(sleeper.pid))):
                result = run("-o", self.path("r"), *args, "--", *command)
                self.assertEqual(result.stdout, plain)


class Ending(Case):
    def test_interrupt_reports(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with Sleeper() as sleeper:
                prcb = start("-I", "20", "--ndjson", "-p", str(sleeper.pid))
                prcb.stdout.readline()
                prcb.send_signal(number)
                text, errors = prcb.communicate(timeout=TIMEOUT)
                self.assertEqual(prcb.returncode, 0)
                self.assertEqual(errors, "")
                self.assertEqual(json.loads(text.splitlines()[-1])["threads"][0]["tid"],
                                 sleeper.pid)

    def test_interrupt_of_the_group_is_the_commands(self):
        prcb = start("-j", "--", "sh", "-c", "touch %s; sleep 30" % self.path("started"),
                     start_new_session=True)
        self.wait_until(lambda: os.path.exists(self.path("started")))
        os.killpg(prcb.pid, signal.SIGINT)
        text, errors = prcb.communicate(timeout=TIMEOUT)
        self.assertEqual(prcb.returncode, 128 + signal.SIGINT)
        self.assertIn("sh", [row["comm"] for row in json.loads(text)["threads"]])

    def test_interrupt_before_the_command_has_started(self):
        """Whenever it comes, it is not lost."""
        for delay in (0.01, 0.02, 0.04, 0.06, 0.08, 0.1):
            prcb = start("--", "sleep", "30", start_new_session=True)
            time.sleep(delay)
            os.killpg(prcb.pid, signal.SIGINT)
            began = time.monotonic()
            prcb.communicate(timeout=TIMEOUT)
            self.assertIn(prcb.returncode, (-signal.SIGINT, 128 + signal.SIGINT))
            self.assertLess(time.monotonic() - began, 20)

    def test_signals_to_prcb_alone_are_handed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            prcb = start("-j", "--", *python("import time; open(%r,'w'); time.sleep(30)"
                                             % self.path(str(number))))
            self.wait_until(lambda: os.path.exists(self.path(str(number))))
            prcb.send_signal(number)
            text, errors = prcb.communicate(timeout=TIMEOUT)
            self.assertEqual(prcb.returncode, 128 + number)
            self.assertEqual(json.loads(text)["total"]["threads"], 1)

    def test_command_that_obeys_no_signal_is_waited_for(self):
        prcb = start("-j", "--", "sh", "-c",
                     "trap 'exit 9' INT; touch %s; while :; do sleep 0.01; done"
                     % self.path("started"), start_new_session=True)
        self.wait_until(lambda: os.path.exists(self.path("started")))
        os.killpg(prcb.pid, signal.SIGINT)
        prcb.communicate(timeout=TIMEOUT)
        self.assertEqual(prcb.returncode, 9)

    def test_on_a_terminal(self):
        """Says what it does and how to end it; Ctrl-C typed there ends it; the table
        has the terminal's width."""
        ours, theirs = pty.openpty()  # theirs stays open here: what is said last is not lost
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("4H", 25, 90, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        text = b""

        def read_until(word, ended=lambda: True):
            nonlocal text
            deadline = time.monotonic() + TIMEOUT
            while word not in text or not ended():
                self.assertLess(time.monotonic(), deadline, text)
                if select.select([ours], [], [], 0.1)[0]:
                    text += os.read(ours, 4096)

        with Sleeper() as sleeper, subprocess.Popen(
                [PRCB, "stat", "-p", str(sleeper.pid), "--for", "60"], stdin=theirs,
                stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as process:
            read_until(b"Ctrl-C")
            self.assertIn(b"measuring", text)
            self.assertIn(b"for 60.0s", text)
            os.write(ours, b"\x03")
            read_until(b"share", lambda: process.poll() is not None)
            self.assertEqual(process.returncode, 0)
        os.close(ours)
        os.close(theirs)
        self.assertIn(b"SWITCHES", text)
        lines = text.decode().replace("\r", "").split("\n")
        heading = [n for n, line in enumerate(lines) if "SWITCHES" in line][0]
        self.assertLessEqual(max(map(len, lines[heading:heading + 4])), 90)

    def test_for(self):
        with Sleeper() as sleeper:
            document = self.document("-p", str(sleeper.pid), "--for", "0.25")
        self.assertGreaterEqual(document["wall_ns"], 0.25 * SECOND)
        self.assertLess(document["wall_ns"], 5 * SECOND)

    def test_for_ends_the_command(self):
        begin = time.monotonic()
        document = self.document("--for", "0.3", "--", "sleep", "30")
        self.assertLess(time.monotonic() - begin, 10)
        row = self.one(document, "sleep")
        self.assertFalse(row["exited"])
        self.assertGreaterEqual(document["wall_ns"], 0.3 * SECOND)
        self.assertIn("was ended (--for)", run("--for", "0.1", "--", "sleep", "30").stderr)

    def test_command_that_is_done_before_for(self):
        self.assertEqual(run("--for", "30", "--", "sh", "-c", "exit 6").returncode, 6)

    def test_ends_with_its_targets(self):
        """The target ends once prcb looks at it: it has begun when it sleeps."""
        with Sleeper(("cat",), stdin=subprocess.PIPE) as target, \
                start("-j", "-p", str(target.pid)) as prcb:
            # It works on its way; it sleeps once, and goes on sleeping, when it looks on.
            self.wait_until(lambda: all(asleep(prcb.pid) and not time.sleep(0.02)
                                        for _ in range(5)))
            target.stdin.close()
            target.wait()
            out, err = prcb.communicate(timeout=TIMEOUT)
        self.assertEqual(prcb.returncode, 0, err)
        self.assertTrue(self.one(json.loads(out), "cat")["exited"])

    def test_process_while_a_command_runs(self):
        with Sleeper() as sleeper:
            document = self.document("-p", str(sleeper.pid), "--", "sh", "-c", "sleep 0.3; exit 3",
                                     status=3)
        self.assertEqual([row["tid"] for row in document["threads"]], [sleeper.pid])
        self.assertGreaterEqual(document["wall_ns"], 0.3 * SECOND)

    def test_thread(self):
        with Sleeper(tuple(python("import threading,time\n"
                                  "threading.Thread(target=time.sleep,args=(60,)).start()\n"
                                  "time.sleep(60)"))) as process:
            tasks = "/proc/%d/task" % process.pid
            self.wait_until(lambda: len(os.listdir(tasks)) == 2)
            tid = max(map(int, os.listdir(tasks)))
            document = self.document("-t", str(tid), "--for", "0.1")
        self.assertEqual([(row["tid"], row["pid"]) for row in document["threads"]],
                         [(tid, process.pid)])


class Wide(Case):
    @needs_bpf
    @needs_root
    def test_all(self):
        document = self.document("-a", "--for", "0.2", "--sort", "tid")
        tids = {row["tid"] for row in document["threads"]}
        self.assertIn(os.getpid(), tids)
        kernel = pathlib.Path("/proc/2/comm")
        # In a pid namespace kthreadd has no number.
        if kernel.exists() and kernel.read_text(encoding="ascii") == "kthreadd\n":
            self.assertIn(2, tids, "kthreadd")

    @needs_bpf
    @needs_root
    def test_cgroups(self):
        """Each that is named, and no others; what is started in one or moved there meanwhile."""
        with cgroups(3) as folders, Sleeper() as first, Sleeper() as second, Sleeper() as third, \
                Sleeper() as later:
            for sleeper, folder in ((first, folders[0]), (second, folders[1]), (third, folders[2])):
                enter(folder, sleeper.pid)
            self.assertEqual({row["tid"] for row in self.document("--cgroup", folders[0], "--for", "0.2")["threads"]},
                             {first.pid})
            named = ["--cgroup", folders[0], "--cgroup", folders[1]]
            self.assertEqual({row["tid"] for row in self.document(*named, "--for", "0.2")["threads"]},
                             {first.pid, second.pid})
            with start("--ndjson", "-I", "100", *named) as stat:
                stat.stdout.readline()
                enter(folders[1], later.pid)
                deadline = time.monotonic() + TIMEOUT
                seen = set()
                while later.pid not in seen and time.monotonic() < deadline:
                    seen = {row["tid"] for row in json.loads(stat.stdout.readline())["threads"]}
                stat.send_signal(signal.SIGINT)
                stat.communicate()
            self.assertEqual(seen, {first.pid, second.pid, later.pid})

    @needs_bpf
    @needs_root
    def test_too_many_cgroups(self):
        with cgroups(17) as folders:
            self.assert_fails(run("--for", ".1", *[word for folder in folders for word in ("--cgroup", folder)]), 1,
                              "which is the limit")

    @needs_bpf
    @needs_root
    def test_pid_namespace(self):
        """Numbers are those of the namespace that prcb runs in."""
        made = subprocess.run(["unshare", "-p", "-f", "true"], stderr=subprocess.PIPE, text=True)
        if made.returncode:
            self.skipTest("no pid namespace can be made: %s" % made.stderr)
        code = ("import os,subprocess,sys,json\n"
                "p=subprocess.Popen(['sleep','60'])\n"
                "o=subprocess.run([%r,'stat','-j','-p',str(p.pid),'--for','0.2'],"
                "stdout=-1,check=1).stdout\n"
                "p.kill()\n"
                "print(json.dumps([p.pid,json.loads(o)]))\n" % PRCB)
        # not --mount-proc: it changes the root's mount first, and a chroot's root is none
        mount = "mount --make-private /proc && mount -t proc proc /proc && exec \"$@\""
        out = subprocess.run(["unshare", "-p", "-f", "-m", "--propagation", "unchanged", "sh", "-c",
                              mount, "sh", *python(code)],
                             stdout=subprocess.PIPE, check=True, timeout=TIMEOUT, text=True).stdout
        pid, document = json.loads(out)
        self.assertLess(pid, 100, "a number of the new namespace")
        self.assertEqual([(row["tid"], row["pid"]) for row in document["threads"]], [(pid, pid)])


class Nobody(Case):
    """An ordinary user with no capability."""

    def as_nobody(self):
        if not ROOT:
            return {}
        user = pwd.getpwnam("nobody")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}

    def setUp(self):
        super().setUp()
        who = self.as_nobody()
        if who and subprocess.run(["test", "-x", PRCB], **who).returncode:
            self.skipTest("%s cannot be reached by nobody" % PRCB)

    def test_command(self):
        result = run("-j", "--", "sleep", "0.3", **self.as_nobody())
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["tier"], "perf")
        self.assertTrue(document["tier_reason"])
        row = self.one(document, "sleep")
        self.assertGreaterEqual(row["wall_ns"], 0.29 * SECOND)
        self.assertLess(row["run_ns"], 0.2 * SECOND)
        self.assertIsNone(row["waits"])
        self.assertTrue(document["absent"]["waits"])

    def test_table_names_the_tier_and_what_is_missing(self):
        result = run("--", "sleep", "0.2", **self.as_nobody())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("perf tier: ", result.stderr)
        self.assertRegex(result.stderr, r"(?m)^note: .*waits by cause.* absent: ")

    def test_forced_bpf_is_refused(self):
        built = not BPF_REASON or "not in this build" not in BPF_REASON
        self.assert_fails(run("--tier", "bpf", "--", "true", **self.as_nobody()), 1,
                          "CAP_BPF" if built else "not in this build")

    def test_run_time_is_seen(self):
        result = run("-j", "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done",
                     **self.as_nobody())
        row = json.loads(result.stdout)["threads"][0]
        self.assertGreater(row["run_ns"], 0.5 * row["wall_ns"] - (row["ready_ns"] or 0))
        self.assertGreater(row["switches"], 0)


if __name__ == "__main__":
    unittest.main()
