#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb why: stacks of waits, and what their time adds up to.

Witnesses: a program that measures how long it waits in each of its functions, gdb's backtrace of the
same thread, and the exact times of prcb stat.
"""
import ast
import contextlib
import fcntl
import glob
import itertools
import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from asker import asker
from cpu_cgroup import CpuCgroup

PRCB = os.environ["PRCB"]
SHARES = os.environ["WHY_SHARES"]
WAITER = os.environ["STACK_WAITER"]
OBJECTS = os.environ["WHY_OBJECTS"]
LEFT = ("[not read]", "[no room]", "[ended]")
NOBODY = 65534
ROOT = os.geteuid() == 0


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def why(*arguments, as_nobody=False, timeout=60):
    return subprocess.run([PRCB, "why", *arguments], capture_output=True, text=True, timeout=timeout,
                          preexec_fn=become_nobody if as_nobody else None)


def document(*arguments, **options):
    result = why("-j", *arguments, **options)
    if result.returncode:
        raise AssertionError(result.stderr)
    # The command's own output comes before the document, which is the last line.
    return json.loads(result.stdout.splitlines()[-1]), result.stdout.splitlines()[:-1]


def process_named(report, comm):
    found = [row for row in report["processes"] if row["comm"] == comm]
    assert len(found) == 1, [row["comm"] for row in report["processes"]]
    return found[0]


def await_call(pid, tid):
    """Until the thread sleeps in futex(2), or in clock_nanosleep(2) where it sleeps for good."""
    wanted = {"x86_64": ("202", "230", "35"), "aarch64": ("98", "115", "101")}[platform.machine()]
    for _ in range(2000):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            if file.read().split()[0] in wanted:
                return
        time.sleep(0.005)


def may_mount():
    """A chroot's root is no mount, of which there could be a private one."""
    return ROOT and not subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL,
                                       check=False).returncode


def comm_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
        return file.read().strip()
    return None


def functions(stack):
    return [frame["function"] for frame in stack.get("frames", [])]


def await_state(pid, state):
    """Until the first thread's state is the one wanted."""
    for _ in range(2000):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == state:
                return
        time.sleep(0.005)
    raise AssertionError(f"process {pid} does not come to state {state}")


class Sums(unittest.TestCase):
    def check(self, report):
        """Parts of a cause sum to the cause, causes to what threads waited."""
        for process in report["processes"]:
            for cause in process["causes"]:
                self.assertEqual(sum(part["ns"] for part in cause["stacks"]), cause["ns"])
                self.assertEqual(sum(part["ns"] for part in cause["stacks"] if not part["unknown"]),
                                 cause["known_ns"])
            self.assertEqual(sum(cause["ns"] for cause in process["causes"]), process["wait_ns"])
            if report["tier"] != "perf":
                self.assertEqual(process["run_ns"] + process["ready_ns"] + process["wait_ns"],
                                 process["wall_ns"])

    def test_parts_sum_to_the_exact_time(self):
        report, _ = document("--", "sh", "-c", "sleep 0.3 & sleep 0.2; wait; echo x | cat >/dev/null")
        self.check(report)

    @unittest.skipUnless(ROOT, "needs root")
    def test_the_whole_system(self):
        report, _ = document("-a", "--for", "0.5")
        self.check(report)
        kernel = [row for row in report["processes"] if row["pid"] is None]
        # In a pid namespace of one's own there are none.
        has_kernel = any(comm_of(pid) == "kthreadd" for pid in os.listdir("/proc") if pid.isdigit())
        self.assertEqual(len(kernel), int(has_kernel))
        for cause in kernel[0]["causes"] if kernel else []:
            for part in cause["stacks"]:
                if part["unknown"]:
                    self.assertIn(part["unknown"], ("[kernel]", "[too short]", "[between looks]"))
                for frame in part.get("frames", ()):  # of one that waits for storage, say
                    self.assertRegex(frame["file"], r"^\[.*\]$", part)


# A program runs as the process with this number, then another one.
TWICE = """
import ctypes, os, signal, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def begin(number, *command):
    tid = ctypes.c_int(number)
    args = struct.pack("=11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(tid), 1, 0)
    pid = libc.syscall(435, args, len(args))  # clone3
    if pid < 0:
        sys.exit("no process of this number: " + os.strerror(ctypes.get_errno()))
    if not pid:
        os.execv(command[0], command)
    return pid
number = next(n for n in range(30000, 1, -1) if not os.path.exists("/proc/" + str(n)))
for seconds, program in (0.6, sys.argv[1]), (0.5, sys.argv[2]):
    pid = begin(number, program, str(60), "20")
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(number)
"""


class Numbers(unittest.TestCase):
    """An ordinary user ends a process, and another one's gets its number."""

    @unittest.skipUnless(ROOT, "needs root, to choose a number")
    def test_a_number_that_another_process_gets(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = [os.path.join(folder, name) for name in ("attacker", "victim")]
            for program in programs:
                shutil.copy(SHARES, program)
            run = ("--", sys.executable, "-c", TWICE, *programs)
            report, said = document("--tier", "bpf", *run)
            number = int(said[-1])
            rows = {p["comm"]: p for p in report["processes"] if p["pid"] == number}
            self.assertEqual(set(rows), {"attacker", "victim"})
            for name, least, most in ("attacker", 0.4e9, 0.9e9), ("victim", 0.3e9, 0.8e9):
                self.assertEqual(rows[name]["threads"], 1)
                self.assertGreater(rows[name]["wall_ns"], least)
                self.assertLess(rows[name]["wall_ns"], most)
                files = {frame["file"] for cause in rows[name]["causes"] for part in cause["stacks"]
                         for frame in part.get("frames") or [] if folder in (frame.get("file") or "")}
                self.assertLessEqual(files, {os.path.join(folder, name)})
            path = os.path.join(folder, "recording")
            for command in ("stat", "-j", "--tier", "bpf"), ("stat", "-j", "--tier", "perf"), ("record", "-g", "-o", path):
                result = subprocess.run([PRCB, *command, *run], capture_output=True, timeout=60, check=True)
                if command[0] == "record":
                    result = subprocess.run([PRCB, "report", "-j", path], capture_output=True, timeout=60, check=True)
                text = result.stdout + result.stderr
                threads = [t for t in json.JSONDecoder().raw_decode(text[text.index(b"{"):].decode())[0]["threads"]
                           if (t.get("comm") or t.get("name")) in rows]
                self.assertEqual({t.get("comm") or t.get("name") for t in threads}, set(rows), command)
                self.assertEqual([t["tid"] for t in threads], [threads[0]["tid"]] * 2, command)


class Where(unittest.TestCase):
    def shares(self, seconds, milliseconds, within, **options):
        """Shares of the futex time by function lie between those that the program set its timer to and those
        that it measured, which have the time to wake up in them: where a hypervisor takes the processor a timer
        is late. The perf tier's are those that it measured."""
        report, said = document("--min", "500", "--", SHARES, str(seconds), str(milliseconds), **options)
        if report["tier"] == "perf" and within < 0.1:
            self.skipTest("the perf tier looks ten times a second: a wait's end is not seen")
        *measured, rounds = [int(word) for word in said[0].split()]
        least = [rounds * milliseconds * 1000000 * share for share in (0.6, 0.3, 0.1)]
        if report["tier"] == "perf":
            least = measured
        process = process_named(report, os.path.basename(SHARES)[:15])
        cause = next(c for c in process["causes"] if c["cause"] in ("futex", "wait"))
        names = ["long_wait", "middle_wait", "short_wait"]
        seen = dict.fromkeys(names, 0)
        left = 0 # for which prcb had no processor in time, in rows that say so
        for part in cause["stacks"]:
            if part["unknown"] in LEFT:
                left += part["ns"] / cause["ns"]
            for name in names:
                if name in functions(part):
                    seen[name] += part["ns"]
                    self.assertTrue(part["complete"], part)
        self.assertLess(left, 0.5, cause)
        for i, name in enumerate(names):
            low = least[i] / (least[i] + sum(measured) - measured[i])
            high = measured[i] / (measured[i] + sum(least) - least[i])
            self.assertGreater(seen[name] / cause["ns"], low - within - left, (seen, measured, cause))
            self.assertLess(seen[name] / cause["ns"], high + within, (seen, measured, cause))

    def test_three_waits_have_their_shares(self):
        self.shares(3, 500, 0.02)

    def test_short_waits(self):
        """300, 150 and 50 microseconds, thousands of times. A wait lasts for as long as its timer was set
        to at least, and at most for what the program measures, which has the time to wake up in it too. What
        prcb had no processor time or memory for stands in rows of its own, which say so."""
        try:
            report, said = document("--tier", "bpf", "--", SHARES, "4", "0.5")
        except AssertionError as error:
            self.skipTest(str(error))
        process = process_named(report, "why_shares")
        found = {}
        chosen = left = 0
        for cause in process["causes"]:
            self.assertEqual(sum(part["ns"] for part in cause["stacks"]), cause["ns"])
            for part in cause["stacks"]:
                if part["unknown"] in LEFT:
                    left += part["ns"]
                for name in ("long_wait", "middle_wait", "short_wait"):
                    if name in functions(part):
                        found[name] = found.get(name, 0) + part["ns"]
                        chosen += part["count"]
                        self.assertTrue(part["complete"], part)
        whole = sum(found.values())
        # The last of them were chosen milliseconds before the process ended.
        self.assertGreater(whole + left, 0.98 * process["wait_ns"], process["causes"])
        if chosen < 400:
            self.skipTest(f"prcb got no further than {chosen} stacks on this busy machine")
        # Chosen at random: 2 hundredths with 4000 stacks, and more where fewer were read.
        within = 1.25 / chosen ** 0.5
        names = ("long_wait", "middle_wait", "short_wait")
        *measured, rounds = [int(word) for word in said[0].split()]
        least = [rounds * 500000 * share for share in (0.6, 0.3, 0.1)]
        for i, name in enumerate(names):
            low = least[i] / (least[i] + sum(measured) - measured[i])
            high = measured[i] / (measured[i] + sum(least) - least[i])
            self.assertGreater(found[name] / whole, low - within, (found, measured, chosen))
            self.assertLess(found[name] / whole, high + within, (found, measured, chosen))

    def test_three_waits_without_root(self):
        # The perf tier looks ten times a second: a wait's first look and its end are lost.
        self.shares(3, 1500, 0.15, as_nobody=ROOT)

    def waiter(self, way):
        process = subprocess.Popen([WAITER, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        pid, tid = process.stdout.readline().split()
        return int(pid), int(tid)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_frames_are_gdbs(self):
        for way in ("mutex", "condition", "poll", "semaphore", "pipe", "dynamic"):
            with self.subTest(way=way):
                pid, tid = self.waiter(way)
                await_state(pid, "S")
                report, _ = document("-p", str(pid), "--for", "0.3")
                stacks = [row for row in report["processes"][0]["now"] if row["tid"] == tid]
                self.assertEqual(len(stacks), 1, report)
                result = subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "set pagination off",
                                         "-ex", "thread apply all backtrace"],
                                        capture_output=True, text=True, timeout=60)
                text = result.stdout.split(f"LWP {tid})", 1)
                if len(text) < 2:
                    self.skipTest("gdb may not attach: " + result.stderr.strip()[-200:])
                frames = re.findall(r"^#\d+\s+(?:0x[0-9a-f]+ in )?(?:__GI_)?([\w:]+) ",
                                    text[1].split("\nThread ")[0], re.M)
                own = [name for name in ("hold", "by_dynamic", "inner", "middle", "outer", "run") if name in frames]
                self.assertEqual([name for name in functions(stacks[0]) if name in own], own)
                self.assertTrue(stacks[0]["complete"])

    def test_stock_programs_are_complete(self):
        for command in (["sleep", "60"], [shutil.which("python3") or sys.executable, "-c",
                                          "import time; time.sleep(60)"]):
            with self.subTest(command=command[0]):
                process = subprocess.Popen(command)
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                await_state(process.pid, "S")
                report, _ = document("-p", str(process.pid), "--for", "1")
                now = report["processes"][0]["now"]
                self.assertEqual(len(now), 1, report)
                self.assertTrue(now[0]["complete"], now)
                # An interpreter's own functions below its program's are left out, of a static one _start, too.
                self.assertIn(functions(now[0])[-1], ("_start", "__libc_start_main", None))

    def test_stock_servers_are_complete(self):
        """Every stack that is known, of all their threads, on the tier that anybody has, too."""
        folder = tempfile.mkdtemp(prefix="prcb-why-")
        self.addCleanup(shutil.rmtree, folder)
        for command in (["redis-server", "--port", "0", "--save", "", "--unixsocket", folder + "/socket"], ["node", "-e", "setInterval(() => 0, 1e6)"]):
            if not shutil.which(command[0]):
                continue
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd="/")
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            await_state(process.pid, "S")
            for tier in ([], ["--tier", "perf"]):
                with self.subTest(command=command[0], tier=tier):
                    report, _ = document("-p", str(process.pid), "--for", "1", *tier)
                    stacks = [part for row in report["processes"] for cause in row["causes"]
                              for part in cause["stacks"] if not part["unknown"]]
                    self.assertTrue(stacks, report)
                    for part in stacks:
                        self.assertTrue(part["complete"], part)
                        self.assertIn(functions(part)[-1], ("_start", "__clone", "__clone3", "clone3", None), part)

    def test_one_unwinding_for_a_thread_that_sleeps_on(self):
        process = subprocess.Popen(["sleep", "60"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        await_state(process.pid, "S")
        report, _ = document("-p", str(process.pid), "--for", "1")
        self.assertIn(report["reader"]["unwound"], (1, 2))  # and at the end, with the kernel's functions

    def test_idle_is_told_apart(self):
        pid, tid = self.waiter("event-loop")
        await_state(tid, "S")
        report, _ = document("-p", str(pid), "--for", "1")
        process = report["processes"][0]
        kinds = {part["word"]: part["kind"] for cause in process["causes"] for part in cause["stacks"]
                 if not part["unknown"]}
        self.assertEqual(kinds.get("event loop"), "idle", kinds)
        self.assertNotIn(tid, [row["tid"] for row in process["now"]])
        self.assertIn(pid, [row["tid"] for row in process["now"]])
        if report["tier"] == "perf":
            return  # looks ten times a second: the beginning and the end of a wait are not seen
        self.assertGreater(process["idle_ns"], 700_000_000)
        self.assertLess(process["idle_ns"], 0.65 * process["wall_ns"]) # one of two threads

    def words(self, *arguments, **options):
        result = subprocess.run([PRCB, "stat", *arguments], capture_output=True, text=True,
                                timeout=60, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [line for line in result.stdout.splitlines() if "thread time" in line]

    def test_words_of_stat_do_not_begin_with_idle_threads(self):
        """Two threads in event loops, and one that waits for a mutex, for the same time."""
        waiters = [self.waiter("event-loop"), self.waiter("event-loop"), self.waiter("mutex")]
        for _, tid in waiters:
            await_state(tid, "S")
        for tier in [], ["--tier", "perf"]:
            words = self.words(*tier, "-t", ",".join(str(tid) for _, tid in waiters), "--for", "1")
            self.assertRegex(words[0], r"^3\d % of thread time \(\S+\) was spent waiting")
            self.assertRegex("\n".join(words[1:]),
                             r"(?m)^6\d % of thread time \(\S+\) was idle by design: event loop "
                             r"\(2 threads\)\.$")

    def test_words_of_stat_say_what_cannot_be_told(self):
        if not ROOT:
            self.skipTest("two users are needed")
        _, tid = self.waiter("event-loop")
        await_state(tid, "S")
        words = self.words("--tier", "perf", "-t", str(tid), "--for", "0.5",
                           preexec_fn=become_nobody)
        self.assertRegex(words[-1], "cannot be told .*: the stacks of 1 thread may not be read")
        _, tid = self.waiter("condition")
        await_state(tid, "S")
        words = self.words("-t", str(tid), "--for", "0.5")
        self.assertRegex(words[-1], r"cannot be told .*: condition variable \(1 thread\)")


def postgres_program(name):
    """Debian has the server's programs outside of PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else shutil.which(name)


@unittest.skipUnless(postgres_program("postgres") and postgres_program("initdb") and shutil.which("psql"),
                     "needs PostgreSQL's server and psql")
class Postgres(unittest.TestCase):
    """A stock server, without debug information: names are those that it exports."""

    def setUp(self):
        as_user = {"preexec_fn": become_nobody} if ROOT else {}
        self.folder = tempfile.mkdtemp(prefix="prcb-why-")
        self.addCleanup(shutil.rmtree, self.folder)
        if ROOT:
            os.chown(self.folder, NOBODY, NOBODY)
        data = self.folder + "/data"
        made = subprocess.run([postgres_program("initdb"), "-D", data, "-A", "trust", "-U", "tester", "--no-sync"],
                              capture_output=True, text=True, timeout=120, cwd="/", **as_user)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.log = open(self.folder + "/log", "w", encoding="utf-8")
        self.addCleanup(self.log.close)
        # Who waits for a lock looks for a deadlock after this time, and waits anew.
        self.server = subprocess.Popen([postgres_program("postgres"), "-D", data, "-k", self.folder, "-h", "",
                                        "-F", "-c", "deadlock_timeout=1h"], stdout=self.log, stderr=self.log, cwd="/", **as_user)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.send_signal, signal.SIGINT)
        deadline = time.monotonic() + 60
        while not self.says_ready():
            self.assertIsNone(self.server.poll(), "the server ended")
            self.assertLess(time.monotonic(), deadline, "the server does not start")
            time.sleep(0.05)

    def says_ready(self):
        with open(self.folder + "/log", encoding="utf-8") as file:
            return "ready to accept connections" in file.read()

    def session(self):
        """A connection, and the process of the server that serves it."""
        psql = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-h", self.folder, "-U", "tester", "postgres"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        for end in psql.stdin.close, psql.stdout.close, psql.wait, psql.kill:
            self.addCleanup(end)
        return psql, int(self.ask(psql, "SELECT pg_backend_pid();"))

    def ask(self, psql, statement):
        psql.stdin.write(statement + "\n")
        return psql.stdout.readline()

    def test_who_waits_for_a_lock_and_who_for_its_client(self):
        holder, holder_pid = self.session()
        waiter, waiter_pid = self.session()
        self.ask(holder, "CREATE TABLE t (); BEGIN; LOCK TABLE t; SELECT 1;")
        waiter.stdin.write("BEGIN; LOCK TABLE t;\n")
        deadline = time.monotonic() + 60
        while self.ask(holder, "SELECT count(*) FROM pg_locks WHERE NOT granted;") != "1\n":
            self.assertLess(time.monotonic(), deadline, "nobody waits for the lock")
        for pid in waiter_pid, holder_pid:
            await_state(pid, "S")
        for tier in [], ["--tier", "perf"]:
            with self.subTest(tier=tier):
                report, _ = document("-p", f"{waiter_pid},{holder_pid}", "--for", "1", *tier)
                for row in report["processes"]:
                    for cause in row["causes"]:
                        for part in cause["stacks"]:
                            if not part["unknown"]:
                                self.assertTrue(part["complete"], part)
                now = process_of(report, waiter_pid)["now"]
                self.assertEqual([row["word"] for row in now], ["PostgreSQL lock"], now)
                names = functions(now[0])
                places = [names.index(name) for name in ("ProcSleep", "LockAcquireExtended", "PostgresMain", "main")]
                self.assertEqual(places, sorted(places), names)
                self.assertEqual(names[-1], "_start")
                idle = process_of(report, holder_pid)
                self.assertEqual(idle["now"], [])
                self.assertIn("waiting for the client",
                              [part.get("word") for cause in idle["causes"] for part in cause["stacks"]])
                self.assertGreater(idle["idle_ns"], 0.7 * idle["wait_ns"])


NESTED_IN_GO = """
package main

import (
	"runtime"
	"syscall"
)

type T struct{ x [100]int }

//go:noinline
func inner(fd int, b []byte) int { n, _ := syscall.Read(fd, b); return n + len(b) }

//go:noinline
func middle(fd int, a [37]int) int { var room [512]byte; return inner(fd, room[a[3]:]) + int(room[7]) + a[5] }

//go:noinline
func (t *T) outer(fd int) int { var a [37]int; t.x[3] = middle(fd, a); return t.x[3] + 1 }

func main() {
	var pipe [2]int
	syscall.Pipe(pipe[:])
	runtime.LockOSThread()
	println(syscall.Gettid())
	println(new(T).outer(pipe[0]))
}
"""
GO_SERVER = shutil.which("prometheus-node-exporter")


class Go(unittest.TestCase):
    """A stock server, and a program of known calls. The server's witness is Go: told to abort, it says for
    each thread where that is, by its own unwinding."""

    def start(self):
        server = subprocess.Popen([GO_SERVER, "--web.listen-address=127.0.0.1:0"], text=True, cwd="/",
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env={**os.environ, "GOTRACEBACK": "crash"},
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        for end in server.stderr.close, server.wait, server.kill:
            self.addCleanup(end)
        for line in server.stderr:
            if "TLS is disabled" in line:
                break
        self.assertIsNone(server.poll(), "the server ended")
        return server

    def says(self, server):
        """The stacks of its threads, innermost first, without functions that were inlined: "(...)"."""
        server.send_signal(signal.SIGQUIT)
        text = server.communicate(timeout=60)[1]
        return {tuple(name for name, arguments in re.findall(r"(?m)^(\S.*)\(([^()]*)\)$", part) if arguments != "...")
                for part in text.split("\n\n") if part.startswith("goroutine ")}

    def compare(self, tier):
        """The stacks that prcb knows and Go does not tell; what is alike otherwise."""
        server = self.start()
        report, _ = document("-p", str(server.pid), "--for", "1", "--no-whom", *tier)
        told = self.says(server)
        parts = [part for row in report["processes"] for cause in row["causes"]
                 for part in cause["stacks"] if not part["unknown"]]
        self.assertGreater(len(parts), 1, report)
        for part in parts:
            self.assertTrue(part["complete"], part)
            self.assertGreater(len(functions(part)), 2, part)
        self.assertIn("Go scheduler", [part["word"] for part in parts])
        return [functions(part) for part in parts if tuple(functions(part)) not in told]

    @unittest.skipUnless(GO_SERVER, "needs prometheus-node-exporter, a stripped program of Go's")
    def test_stacks_are_gos(self):
        """Waits had begun before prcb looked: their registers are those of procfs."""
        for tier in [], ["--tier", "perf"]:
            with self.subTest(tier=tier):
                for _ in range(4):
                    unlike = self.compare(tier)
                    if not unlike:
                        break  # else a thread went elsewhere between the two
                self.assertEqual(unlike, [])

    @unittest.skipUnless(GO_SERVER, "needs prometheus-node-exporter, a stripped program of Go's")
    def test_recorded(self):
        """A recording's names of the same stacks."""
        server = self.start()
        folder = tempfile.mkdtemp(prefix="prcb-why-")
        self.addCleanup(shutil.rmtree, folder)
        path = folder + "/go.db"
        result = subprocess.run([PRCB, "record", "-g", "-p", str(server.pid), "--for", "1", "-o", path],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = subprocess.run([PRCB, "report", "-j", path], capture_output=True, text=True, timeout=120)
        stacks = [row["stack"] for row in json.loads(report.stdout)["wait_stacks"] if row["stack"]]
        told = self.says(server)
        names = {tuple(frame["function"] for frame in stack) for stack in stacks}
        self.assertTrue(names & told, (names, told))
        for stack in names:
            self.assertIn(stack[-1], ("runtime.goexit", "runtime.mstart", "runtime.mcall", "runtime.rt0_go"), stack)

    @unittest.skipUnless(shutil.which("go"), "needs go, Go's compiler")
    def test_goroutines_in_calls(self):
        """Stripped, where the linker knows where it will lie and where it does not. It imports little, for each
        import is compiled once more where it does not."""
        folder = tempfile.mkdtemp(prefix="prcb-why-")
        self.addCleanup(shutil.rmtree, folder)
        for name, text in ("main.go", NESTED_IN_GO), ("go.mod", "module nested\n"):
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        for mode in "exe", "pie":
            with self.subTest(mode=mode):
                subprocess.run(["go", "build", f"-buildmode={mode}", "-ldflags=-s -w", "-o", mode, "."], check=True,
                               cwd=folder, env={**os.environ, "GOCACHE": folder + "/cache", "GOFLAGS": "-mod=mod",
                                                "CGO_ENABLED": "0"})
                process = subprocess.Popen([f"{folder}/{mode}"], stderr=subprocess.PIPE, text=True)
                for end in process.stderr.close, process.wait, process.kill:
                    self.addCleanup(end)
                tid = int(process.stderr.readline())
                await_state(tid, "S")
                report, _ = document("-t", str(tid), "--for", "0.5", "--no-whom")
                now = report["processes"][0]["now"]
                self.assertEqual(len(now), 1, report)
                names = functions(now[0])
                self.assertEqual(names[names.index("main.inner"):],
                                 ["main.inner", "main.middle", "main.(*T).outer", "main.main", "runtime.main",
                                  "runtime.goexit"])
                self.assertTrue(now[0]["complete"])


NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
NGINX_THREADS = 64
F_SETPIPE_SZ = 1031
NGINX_CONF = """
daemon off;
{user}
worker_processes 1;
pid pid;
error_log error.log;
thread_pool default threads={threads};
events {{ }}
http {{
    access_log log.fifo;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen unix:{folder}/socket;
        location / {{ root {folder}; aio threads; sendfile off; }}
    }}
}}
"""


@unittest.skipUnless(NGINX, "needs nginx")
class Nginx(unittest.TestCase):
    """A stock server under load, with a pool of threads that sleep. What keeps requests waiting is a log
    whose reader is slow."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prcb-why-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        with open(self.folder + "/file", "wb") as file:
            file.write(bytes(100_000))
        with open(self.folder + "/nginx.conf", "w", encoding="ascii") as file:
            file.write(NGINX_CONF.format(folder=self.folder, threads=NGINX_THREADS, user="user root;" if ROOT else ""))
        os.mkfifo(self.folder + "/log.fifo")
        log = os.open(self.folder + "/log.fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, log)
        fcntl.fcntl(log, F_SETPIPE_SZ, 4096)
        self.server = subprocess.Popen([NGINX, "-p", self.folder, "-c", "nginx.conf"], stderr=subprocess.PIPE, text=True)
        self.ended, self.full = threading.Event(), threading.Event()
        self.clients = []
        self.addCleanup(self.stop)
        self.worker = self.await_worker()
        self.clients = [threading.Thread(target=self.ask) for _ in range(4)]
        self.clients.append(threading.Thread(target=self.drain, args=[log]))
        for client in self.clients:
            client.start()
        self.await_log()

    def stop(self):
        self.ended.set()
        self.server.terminate()
        for client in self.clients:
            client.join()
        self.server.communicate()

    def await_worker(self):
        """Its pool is complete, and it listens."""
        deadline = time.monotonic() + 60
        while True:
            self.assertIsNone(self.server.poll(), "nginx ended")
            self.assertLess(time.monotonic(), deadline, "nginx does not start")
            with open(f"/proc/{self.server.pid}/task/{self.server.pid}/children", encoding="ascii") as file:
                children = file.read().split()
            if children and len(os.listdir(f"/proc/{children[0]}/task")) == NGINX_THREADS + 1 and \
                    os.path.exists(self.folder + "/socket"):
                return int(children[0])
            time.sleep(0.01)

    def await_log(self):
        """Until it waits in write(2)."""
        deadline = time.monotonic() + 60
        while True:
            with open(f"/proc/{self.worker}/syscall", encoding="ascii") as file:
                if file.read().split()[0] in ("1", "64"):
                    return
            self.assertLess(time.monotonic(), deadline, "nginx does not wait for its log")
            time.sleep(0.001)

    def ask(self):
        """Requests, one after the other."""
        request = b"GET /file HTTP/1.0\r\n\r\n"
        while not self.ended.is_set():
            with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
                connection.connect(self.folder + "/socket")
                connection.sendall(request)
                while connection.recv(1 << 20):
                    pass

    def drain(self, log):
        """Some forty lines in half a second, none while it shall stay full; at the end all, so that the server
        ends."""
        while not self.ended.wait(0.5):
            if self.full.is_set():
                continue
            try:
                os.read(log, 4096)
            except BlockingIOError:
                pass
        while self.server.poll() is None:
            try:
                os.read(log, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)

    def switches(self):
        lines = []
        for tid in os.listdir(f"/proc/{self.worker}/task"):
            with open(f"/proc/{self.worker}/task/{tid}/status", encoding="ascii") as file:
                lines += [line for line in file if line.startswith("voluntary_ctxt")]
        return lines

    def test_words_are_about_what_keeps_requests_waiting(self):
        """Its log is full, and stays so: what idles by design is told of waits that go on."""
        self.full.set()
        deadline = time.monotonic() + 60
        before = None
        while before != self.switches():
            self.assertLess(time.monotonic(), deadline, "nginx does not come to rest")
            before = self.switches()
            time.sleep(0.7)
        self.await_log()
        for tier in [], ["--tier", "perf"]:
            with self.subTest(tier=tier):
                result = subprocess.run([PRCB, "stat", *tier, "-p", str(self.worker), "--for", "1"],
                                        capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 0, result.stderr)
                words = [line for line in result.stdout.splitlines() if "thread time" in line]
                self.assertRegex(words[0], r"was spent waiting on a pipe, by nginx \(1 thread\)" if ROOT and not tier else
                                 r"was spent waiting .*by nginx \(1 thread\)", result.stdout + result.stderr)
                self.assertRegex("\n".join(words[1:]), r"was idle by design: nginx thread pool \(64 threads\)")

    @unittest.skipUnless(ROOT, "an ordinary user is told no causes")
    def test_where(self):
        """Not idle, though the event loop is on the same stack."""
        report, _ = document("-p", str(self.worker), "--for", "1")
        pipe = next(cause for row in report["processes"] for cause in row["causes"] if cause["cause"] == "pipe")
        self.assertEqual(pipe["idle_ns"], 0)
        self.assertGreater(pipe["ns"], 200_000_000)
        stack = next(part for part in pipe["stacks"] if not part["unknown"])
        self.assertEqual(stack["kind"], "blocked")
        self.assertTrue(stack["complete"])
        names = functions(stack)
        places = [names.index(name) for name in ("ngx_process_events_and_timers", "ngx_master_process_cycle", "main",
                                                 "_start")]
        self.assertEqual(places, sorted(places), names)
        self.assertIn(names[0], ("write", "__write", "__GI___libc_write"))
        text = why("-p", str(self.worker), "--for", "1").stdout.splitlines()
        causes = [line for line in text if re.search("; stack known for |ready, no processor ", line)]
        # The pool's threads wait 64 seconds in one. What of that is not known, for looks were late on a busy machine,
        # is not called idle: that alone may be more.
        ahead = list(itertools.takewhile(lambda line: not re.search(r" (pipe|ready, no processor) ", line), causes))
        self.assertLess(len(ahead), len(causes), text)
        for line in ahead:
            self.assertRegex(line, r" futex .*; stack known for (?!100 %)")
        self.assertTrue(any("idle by design" in line and "nginx thread pool" in line for line in text), text)


@unittest.skipUnless(ROOT and shutil.which("redis-server") and shutil.which("redis-benchmark"),
                     "needs root and Redis")
class Redis(unittest.TestCase):
    """A stock server that writes its log to storage for each command."""

    def test_what_it_waits_for(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            path = folder + "/socket"
            server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--dir", folder, "--save",
                                       "", "--appendonly", "yes", "--appendfsync", "always"],
                                      stdout=subprocess.DEVNULL, cwd="/")
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            deadline = time.monotonic() + 60
            while not os.path.exists(path):
                self.assertIsNone(server.poll(), "the server ended")
                self.assertLess(time.monotonic(), deadline, "the server does not start")
                time.sleep(0.05)
            report, _ = document("--objects", "--tier", "bpf", "--budget", "100", "-p", str(server.pid), "--",
                                 "redis-benchmark", "-s", path, "-c", "1", "-n", "3000", "-t", "set", "-q")
            links = [os.readlink(f"/proc/{server.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{server.pid}/fd")]
            log = [(link, os.stat(link).st_ino) for link in links if link.endswith(".aof")]
        causes = {row["cause"]: row for row in process_of(report, server.pid)["causes"]}
        self.assertEqual(len(log), 1, links)
        # A look reads for 200 ms of real time at most, also where prcb had no processor in them: what it did not come
        # to has a row of its own.
        cause = causes.get("fsync", {"ns": 0, "objects": []})
        read = cause["ns"] - sum(row["ns"] for row in cause["objects"] if row["unknown"] == "[not read]")
        if read < 0.05e9:
            self.skipTest(f"storage is quick here: {read / 1e6:.0f} ms of {cause['ns'] / 1e6:.0f} ms were read")
        # Where no mount says which path that is, in a chroot, the last part of it and the inode.
        path, inode = log[0]
        named = sum(row["ns"] for row in cause["objects"] if row["object"] and (
            row["object"]["name"] == path or row["object"]["name"] == os.path.basename(path) and
            row["object"]["detail"].startswith(f"inode {inode} on ")))
        # What a look meets may be over, and its thread ready: procfs does not tell its call then, the account does.
        self.assertGreater(named, 0.8 * read, cause["objects"])
        self.assertEqual(sum(row["ns"] for row in cause["objects"] if row["object"]), named, cause["objects"])
        self.assertEqual({row["object"]["kind"] for row in causes["epoll"]["objects"] if row["object"]}, {"epoll"})


IN_JS = """
const word = new Int32Array(new SharedArrayBuffer(4));
function waitInJs() { Atomics.wait(word, 0, 0, 400); /* longer than between two looks of any tier */ }
console.log("ready");
for (;;) waitInJs();
"""


class CodeMadeAtRunTime(unittest.TestCase):
    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_names_of_a_compilers_list(self):
        """Node's own functions by its symbols, though it maps a part of itself twice; those of the script
        by /tmp/perf-PID.map, with their lines."""
        folder = tempfile.mkdtemp(prefix="prcb-why-")
        self.addCleanup(shutil.rmtree, folder)
        node = subprocess.Popen(["node", "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", IN_JS],
                                stdout=subprocess.PIPE, text=True, cwd=folder)
        self.addCleanup(lambda: os.path.exists(f"/tmp/perf-{node.pid}.map")
                        and os.unlink(f"/tmp/perf-{node.pid}.map"))
        self.addCleanup(node.stdout.close)
        self.addCleanup(node.wait)
        self.addCleanup(node.kill)
        self.assertEqual(node.stdout.readline(), "ready\n")
        if not os.path.exists(f"/tmp/perf-{node.pid}.map"):
            self.skipTest("node wrote no list")
        report, _ = document("-p", str(node.pid), "-t", str(node.pid), "--for", "2", "--no-whom")
        process = next(row for row in report["processes"] if row["pid"] == node.pid)
        found = [part for cause in process["causes"] for part in cause["stacks"]
                 if any("waitInJs" in (name or "") for name in functions(part))]
        self.assertTrue(found, process["causes"])
        self.assertTrue(any(part["complete"] for part in found), found)
        self.assertTrue(any("AtomicsWait" in (name or "") for part in found for name in functions(part)),
                        found)


MANY = """
import sys, threading, time
threading.stack_size(65536)
lock = threading.Lock()
lock.acquire()
work = {"sleep": lock.acquire, "busy": lambda: [time.sleep(0.005) for _ in range(100000)]}[sys.argv[1]]
for _ in range(int(sys.argv[2])):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Cost(unittest.TestCase):
    def many(self, what, count):
        """A program of so many threads; its pid."""
        process = subprocess.Popen([sys.executable, "-c", MANY, what, str(count)], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process.pid

    def test_threads_that_sleep_on_are_read_once(self):
        """Stacks once; accounts until each wait has lasted for a second and twice --min, and a tenth more, for clocks
        may differ, then at the end. Looks lie 20 ms apart or more: a busy machine makes them fewer."""
        pid = self.many("sleep", 1000)
        for room in [], ["--max-threads", "2048"]:  # then accounts of ended threads go back at once
            with self.subTest(room=room):
                for seconds in "6", "12", "30":  # a busy machine gets less done
                    report, _ = document("-p", str(pid), "--for", seconds, "--budget", "100", *room)
                    if report["reader"]["unwound"] >= 1001:
                        break
                self.check_sleepers(pid, report)

    def check_sleepers(self, pid, report):
        reader = report["reader"]
        self.assertIn(reader["unwound"], range(1001, 1001 + 34))  # the longest at the end, with the kernel's functions
        self.assertLess(reader["remembered"], 34)
        if report["tier"] == "perf":
            return
        self.assertLessEqual(reader["accounts"], (1102 / 20 + 4) * 1001)
        process = process_of(report, pid)
        for cause in process["causes"]:
            self.assertEqual(sum(part["ns"] for part in cause["stacks"]), cause["ns"])
        self.assertGreater(process["known_ns"], 0.9 * process["wait_ns"])

    def test_budget(self):
        """More waits than 1 % of a processor can unwind: fewer are read, and that is said."""
        pid = self.many("busy", 200)
        began = time.monotonic()
        report, _ = document("-p", str(pid), "--for", "2", "--budget", "1", "--no-whom")
        wall = time.monotonic() - began
        reader = report["reader"]
        rows = [part for cause in process_of(report, pid)["causes"] for part in cause["stacks"]]
        if not any(part["unknown"] == "[not read]" for part in rows):
            self.skipTest(f"{reader['unwound']} stacks took no more than the budget")
        # Half a second is free, and a look that has begun a stack ends it; then it waits.
        self.assertLess(reader["cost_ns"], 0.5e9 + 0.01e9 * wall + 0.3e9)
        for cause in process_of(report, pid)["causes"]:
            self.assertEqual(sum(part["ns"] for part in cause["stacks"]), cause["ns"])
        text = why("-p", str(pid), "--for", "2", "--budget", "1", "--no-whom").stdout
        self.assertRegex(text, r"for .* of it no stack was read: looking may take 1 % of a processor")


def process_of(report, pid):
    return next(row for row in report["processes"] if row["pid"] == pid)


class Files(unittest.TestCase):
    """Programs whose files are not where they seem to be, or not what they should be."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prcb-why-", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self, program, to):
        target = self.folder + to
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(program, target)

    def start(self, *arguments, **options):
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        pid, tid = (int(word) for word in process.stdout.readline().split())
        await_state(tid, "S")
        return pid, tid

    def check(self, pid, tid, wanted=("by_mutex", "inner", "middle", "outer", "run"), **options):
        report, _ = document("-p", str(pid), "--for", "0.3", "--no-whom", **options)
        now = next(row for row in process_of(report, pid)["now"] if row["tid"] == tid)
        self.assertTrue(now["complete"], now)
        self.assertEqual([name for name in functions(now) if name in wanted], list(wanted))
        return now

    def container(self, uid):
        """The waiter below another root, in a mount namespace of its own: (pid, tid)."""
        self.copy(WAITER, "/files/waiter")
        for line in subprocess.run(["ldd", WAITER], capture_output=True, text=True,
                                   check=True).stdout.splitlines():
            for path in re.findall(r"(/\S+)", line):
                self.copy(path, "/files" + path)
        root = self.folder + "/root"
        os.mkdir(root)

        who = f"--userspec={uid}:{uid}" if uid else ""
        return self.start("unshare", "-m", "--propagation", "private", "sh", "-ec",
                          f"mount -t tmpfs none {root}; cp -a {self.folder}/files/. {root}; cd {root}; "
                          "mkdir old; pivot_root . old; PATH=/old/usr/sbin:/old/usr/bin; "
                          f"exec chroot {who} . /waiter mutex")

    @unittest.skipUnless(may_mount(), "no mount namespace of one's own: needs root, and a root that is no chroot's")
    def test_a_container(self):
        """Its files by the mapping itself, though nothing lies at their paths here, nor there any more."""
        pid, tid = self.container(0)
        self.assertFalse(os.path.exists("/waiter"))
        now = self.check(pid, tid)
        self.assertIn("/waiter", [frame["file"] for frame in now["frames"]])
        os.unlink(f"/proc/{pid}/root/waiter")
        self.check(pid, tid)

    @unittest.skipUnless(may_mount(), "no mount namespace of one's own: needs root, and a root that is no chroot's")
    def test_a_container_of_ones_own_without_rights(self):
        """By /proc/PID/root: who has no capability may not open a mapping."""
        pid, tid = self.container(NOBODY)
        self.check(pid, tid, as_nobody=True)

    @unittest.skipUnless(may_mount(), "no mount namespace of one's own: needs root, and a root that is no chroot's")
    def test_below_another_root_that_is_in_reach(self):
        """The kernel writes its files' paths as the reader sees them."""
        self.container(0)
        pid, tid = self.start("chroot", f"--userspec={NOBODY}:{NOBODY}", self.folder + "/files", "/waiter",
                              "mutex")
        self.check(pid, tid, as_nobody=True)

    @unittest.skipUnless(may_mount() and shutil.which("objcopy"), "needs root, mount namespaces and objcopy")
    def test_two_files_at_one_path(self):
        """One that a user mounted there for himself, with other names, does not name another's frames."""
        self.copy(WAITER, "/waiter")
        path, other = self.folder + "/waiter", self.folder + "/other"
        subprocess.run(["objcopy", "--redefine-sym", "by_mutex=forged", WAITER, other], check=True)
        forger, _ = self.start("unshare", "-m", "--propagation", "private", "sh", "-c",
                               'mount --bind "$0" "$1" && exec "$1" mutex', other, path)
        pid, _ = self.start(path, "mutex")
        report, _ = document("-p", f"{forger},{pid}", "--for", "0.3", "--no-whom")
        for which, name in (forger, "forged"), (pid, "by_mutex"):
            names = {name for row in process_of(report, which)["now"] for name in functions(row)}
            self.assertEqual(names & {"forged", "by_mutex"}, {name})

    @unittest.skipUnless(ROOT and shutil.which("objcopy") and shutil.which("readelf"),
                         "needs root, objcopy and readelf")
    def test_names_by_build_id(self):
        """Of a stripped program, from the debug information that is installed here."""
        notes = subprocess.run(["readelf", "-n", WAITER], capture_output=True, text=True, check=True)
        found = re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)
        if not found:
            self.skipTest("the linker makes no build id")
        stripped = self.folder + "/stripped"
        subprocess.run(["objcopy", "--strip-all", WAITER, stripped], check=True)
        os.chmod(stripped, 0o755)
        pid, tid = self.start(stripped, "mutex")
        self.check(pid, tid, wanted=())
        debug = f"/usr/lib/debug/.build-id/{found[1][:2]}/{found[1][2:]}.debug"
        if os.path.exists(debug):
            self.skipTest(f"{debug} is there")
        made = [folder for folder in (os.path.dirname(debug), os.path.dirname(os.path.dirname(debug)))
                if not os.path.exists(folder)]
        os.makedirs(os.path.dirname(debug), exist_ok=True)
        try:
            subprocess.run(["objcopy", "--only-keep-debug", WAITER, debug], check=True)
            self.check(pid, tid)
        finally:
            os.unlink(debug)
            for folder in made:
                os.rmdir(folder)

    def test_a_bomb_costs_others_nothing(self):
        """A program with a gigabyte of symbols: it is given up or named in time, and the one beside it
        has its stack."""
        bomb = self.folder + "/bomb"
        shutil.copy(WAITER, bomb)
        with open(bomb, "r+b") as file:
            data = bytearray(file.read())
            if data[4] != 2:
                self.skipTest("a 32-bit program")
            at, = struct.unpack_from("<Q", data, 40)
            size, count = struct.unpack_from("<HH", data, 58)
            for row in range(count):
                kind, = struct.unpack_from("<I", data, at + row * size + 4)
                if kind in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM: they begin where the file ended
                    struct.pack_into("<QQ", data, at + row * size + 24, len(data), 1 << 30)
            file.seek(0)
            file.write(data)
            file.truncate(len(data) + (1 << 30))
        loud, _ = self.start(bomb, "mutex")
        pid, tid = self.start(WAITER, "mutex")
        began = time.monotonic()
        report, _ = document("-p", f"{loud},{pid}", "--for", "1", "--no-whom", timeout=100)
        self.assertLess(time.monotonic() - began, 60)
        for row in report["processes"]:
            for cause in row["causes"]:
                self.assertEqual(sum(part["ns"] for part in cause["stacks"]), cause["ns"])
        now = [row for row in process_of(report, pid)["now"] if row["tid"] == tid]
        self.assertEqual(len(now), 1, report)


BY_WHOM = asker(40, 0.01, 0.005)


# Two threads that wake each other for a second.
PING_PONG = """
import ctypes, os, threading, time
there, back = os.pipe(), os.pipe()

def player(name, read, write, first):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    if first:
        os.write(write, b"x")
    for _ in range(40 - first):
        os.read(read, 1)
        time.sleep(0.025 if first else 0.003) # the other waits by then
        os.write(write, b"x")
    os.read(read, 1) if first else None

players = [threading.Thread(target=player, args=args)
           for args in ((b"ping", back[0], there[1], 1), (b"pong", there[0], back[1], 0))]
[one.start() for one in players]
[one.join() for one in players]
"""


MUTEX_OF_PROCESSES = """
import ctypes, mmap, os, threading, time
libc = ctypes.CDLL(None)
mutex = ctypes.byref((ctypes.c_char * 64).from_buffer(mmap.mmap(-1, 4096)))
attributes = ctypes.create_string_buffer(64)
libc.pthread_mutexattr_init(attributes)
libc.pthread_mutexattr_setpshared(attributes, 1)
libc.pthread_mutex_init(mutex, attributes)
"""

# Two processes of one thread each, which wait for nothing but a mutex that they share, and to sleep.
SHARE_A_MUTEX = MUTEX_OF_PROCESSES + """
child = os.fork()
for _ in range(60):
    libc.pthread_mutex_lock(mutex)
    time.sleep(0.01)
    libc.pthread_mutex_unlock(mutex)
    time.sleep(0.002)
if not child:
    os._exit(0)
os.wait()
print({"child": child, "parent": os.getpid()}, flush=True)
os._exit(0)
"""


UNLINKERS = """
import os, tempfile, threading

def unlink(folder, number):
    for _ in range(500):
        path = os.path.join(folder, str(number))
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.unlink(path)

with tempfile.TemporaryDirectory() as folder:
    threads = [threading.Thread(target=unlink, args=(folder, number)) for number in range(4)]
    [one.start() for one in threads]
    [one.join() for one in threads]
"""


# Goes into a cgroup, and runs for so many seconds of the clock on one processor.
SPINNER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
with open(sys.argv[4], "w") as file:
    file.write(str(os.getpid()))
with open("/proc/self/comm", "w") as file:
    file.write(sys.argv[2])
until = time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    pass
"""


class Neighbour(unittest.TestCase):
    """One that takes the processor, in a cgroup of its own, is named; what a quota takes is not laid
    at its door. Witnesses: the kernel's count of throttled time, and of how long the neighbour ran."""

    SECONDS = 1

    def setUp(self):
        report, _ = document("--no-whom", "--", "true")
        if os.geteuid() or report["tier"] != "bpf":
            self.skipTest("by whom is the bpf tier's")
        self.cpu = max(os.sched_getaffinity(0))
        self.victim = CpuCgroup("victim")
        self.addCleanup(self.victim.remove)
        self.loud = CpuCgroup("loud")
        self.addCleanup(self.loud.remove)
        # More than anybody else's who runs there.
        self.loud.set(("cpu.shares", "32768"), ("cpu.weight", "3200"))
        self.victim.set(("cpu.shares", "8192"), ("cpu.weight", "800"))

    def neighbour(self):
        process = subprocess.Popen([sys.executable, "-c", SPINNER, str(self.cpu), "loud", "100",
                                    self.loud.processes])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while self.comm(process.pid) != "loud":
            time.sleep(0.01)
        return process.pid

    @staticmethod
    def comm(pid):
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()

    @staticmethod
    def ran(pid):
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])

    def limit(self):
        """So little that it is used up, whoever else runs there."""
        self.victim.set(("cpu.shares", "32768"), ("cpu.weight", "3200"))
        self.victim.set(("cpu.cfs_period_us", "100000"), ("cpu.max", "5000 100000"))
        self.victim.set(("cpu.cfs_quota_us", "5000"), ("cpu.max", "5000 100000"))

    def measure(self, *command):
        """The victim's row, and what the kernel says it was throttled: (time, how often)."""
        before = self.victim.throttled()
        result = subprocess.run([PRCB, *command, "--", sys.executable, "-c", SPINNER, str(self.cpu),
                                 "victim", str(self.SECONDS), self.victim.processes],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        kernel = tuple(now - then for now, then in zip(self.victim.throttled(), before))
        return json.loads(result.stdout.splitlines()[-1]), kernel

    def test_named(self):
        """By both commands, with more of the victim's ready time than any other, however busy the machine
        is, and with no more than it ran."""
        pid = self.neighbour()
        for command in ("why", "-j"), ("stat", "--by-whom", "-j"):
            with self.subTest(command=command):
                ran = self.ran(pid)
                report, _ = self.measure(*command)
                ran = self.ran(pid) - ran
                row = self.row(report)
                behind = self.behind(row)
                own = [who for who in behind if who.get("pid") == pid]
                self.assertEqual(len(own), 1, behind)
                self.assertEqual((own[0]["by"], own[0]["comm"]), ("thread", "loud"))
                self.assertGreater(own[0]["ns"], row["ready_ns"] // 5, behind)
                # Many others together may have had it for longer.
                named = [who for who in behind if who["by"] not in ("rest", "others")]
                self.assertEqual(max(named, key=lambda who: who["ns"]), own[0])
                # The processor was another's for a moment of what is laid at its door.
                self.assertLessEqual(own[0]["ns"], ran * 1.5)
                self.assertEqual(self.throttled(row)[0], 0)

    def test_a_quota_is_nobodys(self):
        """With the neighbour beside it, too: what it is to blame for is ready time alone."""
        for loud in False, True:
            pid = self.neighbour() if loud else None
            for command in ("why", "-j"), ("stat", "--by-whom", "-j"):
                with self.subTest(command=command, loud=loud):
                    self.limit()
                    report, (kernel, times) = self.measure(*command)
                    row = self.row(report)
                    ns, count, whom = self.throttled(row)
                    self.assertGreater(kernel, 0)
                    # To a fiftieth, however busy the machine is; but for those, a period of 100 ms each, whose
                    # switch the kernel did not report. The last ends with the thread.
                    missing = max(0, times - 1 - count)
                    self.assertLessEqual(missing, 2, (times, count))
                    self.assertGreater(ns, kernel * 0.98 - missing * 100e6, (times, count))
                    self.assertLess(ns, kernel * 1.02, (times, count))
                    for who in whom:
                        self.assertNotEqual(who.get("pid"), pid or -1, whom)
                        self.assertIn(who["by"], ("rest", "timer", "softirq", "interrupt"), whom)
                    blamed = sum(who["ns"] for who in self.behind(row) if who["by"] == "thread")
                    self.assertLessEqual(blamed, row["ready_ns"])

    def row(self, report):
        rows = report["processes"] if "processes" in report else report["threads"]
        return next(row for row in rows if row["comm"] == "victim")

    @staticmethod
    def behind(row):
        return row["ready_behind"] if "ready_behind" in row else row["by_whom"]["ready_behind"]

    @staticmethod
    def throttled(row):
        """(time, how often, who ended it)"""
        for wait in row.get("causes", row.get("waits", [])):
            if wait["cause"] == "throttled":
                whom = wait["woken_by"] if "woken_by" in wait else \
                    row["by_whom"]["woken_by"].get("throttled", [])
                return wait["ns"], wait["count"], whom
        return 0, 0, []


class ByWhom(unittest.TestCase):
    """Who ended the waits: the only ones that could."""

    def setUp(self):
        report, _ = document("--no-whom", "--", "true")
        if os.geteuid() or report["tier"] != "bpf":
            self.skipTest("by whom is the bpf tier's")

    def waits(self):
        report, said = document("--idle", "--", sys.executable, "-c", BY_WHOM)
        parent, *said = [int(word) for word in said[0].split()]
        return report, {row["cause"]: row for row in process_of(report, parent)["causes"]}, said

    def test_a_thread_and_a_timeout(self):
        """As many as the kernel counted voluntary switches in: what comes while the program has no processor
        is not waited for. One may be for something else."""
        _, causes, (child, answered, timed_out) = self.waits()
        self.assertGreater(answered, 5)
        self.assertGreater(timed_out, 2)
        pipe = causes["pipe"]["woken_by"]
        self.assertEqual((pipe[0]["by"], pipe[0]["pid"]), ("thread", child), pipe)
        self.assertGreaterEqual(pipe[0]["count"], answered - 5, pipe)
        futex = causes["futex"]["woken_by"]
        self.assertEqual(futex[0]["by"], "timer", futex)
        self.assertEqual(futex[0]["name"], "timer (timed out)")
        self.assertGreaterEqual(futex[0]["count"], timed_out // 2, futex)  # not each wakeup is reported everywhere

    def test_edges_and_rest_are_the_causes_time(self):
        """Of what has ended, and of what goes on: all the system, and two that wake each other all the time."""
        busy = subprocess.Popen([sys.executable, "-c", "import os\nthere, back = os.pipe(), os.pipe()\n"
                                 "one, other = (there, back) if os.fork() else (back, there)\n"
                                 "while os.write(one[1], b'x'):\n    os.read(other[0], 1)"], start_new_session=True)
        self.addCleanup(busy.wait)
        self.addCleanup(os.killpg, busy.pid, signal.SIGKILL)
        for report in self.waits()[0], document("-a", "--for", "0.3")[0], document("-p", str(busy.pid), "--for", "0.1")[0]:
            self.assertTrue(report["processes"])
            for process in report["processes"]:
                for row in process["causes"]:
                    self.assertEqual(sum(who["count"] for who in row["woken_by"]), row["count"], row)
                    self.assertEqual(sum(who["ns"] for who in row["woken_by"]), row["ns"], row)
                self.assertEqual(sum(who["ns"] for who in process["ready_behind"]), process["ready_ns"])

    def test_text(self):
        result = why("--", "sleep", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"woken by  (timer|not known)")
        self.assertNotIn("woken by", why("--no-whom", "--", "sleep", "0.3").stdout)

    def test_how_often_it_timed_out(self):
        """A lock that nobody releases: of the waits that began and ended, as many as ended by the clock."""
        text = why("--idle", "--", sys.executable, "-c", BY_WHOM).stdout
        timed_out = int(text.splitlines()[0].split()[3])
        rows = re.findall(r"(?m)^ +\S+ +.{8}  futex +(\d+) times?;(?:\n|.)*?^ +(\w+ by)  timer \((\d+) of (\d+) timed out\)",
                          text)
        self.assertEqual(len(rows), 1, text)
        count, title, ended, of = rows[0]
        self.assertEqual(title, "woken by", text)
        self.assertLessEqual(int(of), int(count), text)
        self.assertLessEqual(int(ended), int(of), text)
        self.assertGreaterEqual(int(ended), timed_out // 2, text)  # not each wakeup is reported everywhere
        self.assertLessEqual(int(ended), int(count), text)
        text = self.stat(command=BY_WHOM)
        self.assertRegex(text, r"(?m)^  futex +woken by  timer \(\d+ of \d+ timed out\) ")
        # The end of a sleep is no failure.
        self.assertRegex(self.stat(command="import time\nfor i in range(40): time.sleep(0.01)"),
                         r"(?m)^  sleep +woken by  timer [\d.]+ %")

    def test_how_often_waits_that_had_begun_timed_out(self):
        """Whose beginning nobody counted: what ended is not said to be none of them, nor are those that go on."""
        code = """
import select, threading
def wait():
    while True:
        select.select([], [], [], 0.5)
for i in range(20):
    threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
wait()
"""
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
            self.addCleanup(child.kill)
            child.stdout.readline()
            for command in ("why", "--idle"), ("stat", "--by-whom"):
                # Each of the waits that go on now ends in it, and the next goes on at its end.
                text = subprocess.run([PRCB, *command, "-p", str(child.pid), "--for", "0.9"], capture_output=True,
                                      text=True, timeout=60, check=True).stdout
                rows = re.findall(r"timer \((?:(\d+) of (\d+) )?timed out[^)]*\)", text)
                self.assertTrue(rows, text)
                for ended, of in rows:
                    self.assertEqual(ended, of, text)
            child.kill()

    def test_who_released_a_mutex(self):
        text = why("--budget", "100", "--", sys.executable, "-c", SHARE_A_MUTEX).stdout
        pids = ast.literal_eval(text.splitlines()[0])
        for one, other in ("parent", "child"), ("child", "parent"):
            row = re.search(rf"(?m)^\S+ \({pids[one]}\), .*\n(?:.+\n)*?.*  futex .*stack known for ([\d.]+) % of it\n"
                            rf"(?: {{9,}}\S.*\n| +under .*\n)*? {{16}}(?:(\w+) by  \S+ \({pids[other]}\) \d+ %"
                            rf"|(?:held by|       ) +\d+ %  \S+ \({pids[other]}\))", text)
            self.assertTrue(row, text)
            # Where nine tenths of it are known to be for mutexes; on a busy machine looks may come too late for that.
            # A holder that was seen is told in its place.
            if row[2] and abs(float(row[1]) - 90) > 1:
                self.assertEqual(row[2], "released" if float(row[1]) > 90 else "woken", text)
        self.assertNotRegex(text, r"released by .*timer")

    def test_stat(self):
        result = subprocess.run([PRCB, "stat", "--by-whom", "-j", "--", "sleep", "0.3"],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        total = json.loads(result.stdout)["total"]
        for row in total["waits"]:
            whom = total["by_whom"]["woken_by"].get(row["cause"])
            if whom is not None:
                self.assertEqual(sum(who["ns"] for who in whom), row["ns"])
        self.assertEqual(sum(who["ns"] for who in total["by_whom"]["ready_behind"]),
                         total["ready_ns"])
        text = subprocess.run([PRCB, "stat", "--by-whom", "--", "sleep", "0.3"], capture_output=True,
                              text=True, timeout=60).stderr
        self.assertRegex(text, r"(?m)^  sleep +woken by  ")

    def law(self, row):
        """Edges and rest of a row are its waits, and its ready time."""
        whom = row["by_whom"]["woken_by"]
        for wait in row["waits"]:
            if wait["cause"] in whom:
                for member in ("count", "ns"):
                    self.assertEqual(sum(who[member] for who in whom[wait["cause"]]), wait[member])
        self.assertEqual(sum(who["ns"] for who in row["by_whom"]["ready_behind"]), row["ready_ns"])
        self.assertIn("pipe", whom, row)

    def stat(self, *options, command=PING_PONG):
        result = subprocess.run([PRCB, "stat", "--by-whom", *options, "--", sys.executable, "-c",
                                 command], capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout if {"-j", "-x,", "--ndjson"} & set(options) else result.stderr  # the table is beside the command's output

    def test_stat_rows(self):
        for option, rows in (("--per-thread", "threads"), ("--per-process", "processes"),
                             ("--per-name", "names"), ("--per-cgroup", "cgroups")):
            with self.subTest(option):
                report = json.loads(self.stat("-j", option))
                self.law(report["total"])
                row = next(row for row in report[rows] if option == "--per-cgroup" or
                           row["comm"] in ("ping", "pong") or
                           (option == "--per-process" and row["comm"].startswith("python")))
                self.law(row)
        # A thread's: the other's, and no more.
        report = json.loads(self.stat("-j"))
        ping, pong = (next(row for row in report["threads"] if row["comm"] == name)
                      for name in ("ping", "pong"))
        first = ping["by_whom"]["woken_by"]["pipe"][0]
        self.assertEqual((first["by"], first["tid"]), ("thread", pong["tid"]))
        self.assertGreaterEqual(first["count"], 25)

    def test_stat_owners(self):
        """Threads that unlink in one directory meet at its semaphore, which one of them holds."""
        report = json.loads(self.stat("-j", "--owners", "--per-thread", command=UNLINKERS))
        for row in [report["total"], *report["threads"]]:
            held = row["by_whom"]["held_by"]
            waits = {wait["cause"]: wait for wait in row["waits"]
                     if wait["cause"] in ("mutex", "rwsem", "mmap-lock", "klock")}
            self.assertLessEqual(set(waits), set(held))
            for cause, wait in waits.items():
                for member in ("count", "ns"):
                    self.assertEqual(sum(who[member] for who in held[cause]), wait[member])
            for who in [who for cause in held.values() for who in cause]:
                self.assertIn(who["by"], ("thread", "rest"))
        # Whoever woke them had held it.
        locks = r"mutex|rwsem|mmap-lock|klock"
        text = self.stat(command=UNLINKERS)
        self.assertNotRegex(text, rf"(?m)^  (?:{locks}) +woken by  ")
        most = max((row for row in report["total"]["waits"]), key=lambda row: row["ns"])
        if re.fullmatch(locks, most["cause"]):
            self.assertRegex(text, rf"(?m)^  (?:{locks}) +released by  ")
        text = subprocess.run([PRCB, "stat", "--owners", "--tier", "perf", "--", "true"],
                              capture_output=True, text=True, timeout=60).stderr
        self.assertIn("wakers and preemptors are unknown: the perf tier", text)

    def test_stat_intervals(self):
        reports = [json.loads(line)
                   for line in self.stat("--ndjson", "-I", "300").splitlines()]
        self.assertGreater(len(reports), 1)
        ping = [row for report in reports for row in report["threads"] if row["comm"] == "ping"]
        for row in ping:
            self.law(row)
        # Over all intervals: what pong woke it for, each wakeup in one of them.
        woken = [who for row in ping for who in row["by_whom"]["woken_by"].get("pipe", ())]
        self.assertLessEqual(sum(who["count"] for who in woken if who["comm"] == "pong"), 40)
        self.assertGreaterEqual(sum(who["count"] for who in woken if who["comm"] == "pong"), 25)
        text = self.stat("-I", "300")
        self.assertGreater(len(re.findall(r"(?m)^  pipe +woken by  p[io]ng ", text)), 1, text)

    def test_stat_values(self):
        for options in ((), ("-I", "300")):
            lines = [line.split(",") for line in self.stat("-x,", *options).splitlines()]
            rows = [dict(zip(lines[0], line)) for line in lines[1:]]
            self.assertEqual({len(line) for line in lines}, {len(lines[0])})
            self.assertEqual("time_ns" in lines[0], bool(options))
            pong = {row["tid"] for row in rows if row["comm"] == "pong"}
            woken = [row for row in rows if row["comm"] == "ping" and row["cause"] == "pipe"
                     and row["by_tid"] in pong]
            self.assertEqual({(row["edge"], row["by"]) for row in woken}, {("woken_by", "thread")})
            self.assertGreaterEqual(sum(int(row["count"]) for row in woken), 25)

    def test_other_tiers_say_why(self):
        result = subprocess.run([PRCB, "stat", "--by-whom", "--tier", "perf", "-x,", "--", "true"],
                                capture_output=True, text=True, timeout=60)
        self.assertIn("wakers and preemptors are unknown: the perf tier keeps no edges", result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 1)
        result = subprocess.run([PRCB, "stat", "--by-whom", "--tier", "perf", "--", "sleep", "0.1"],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("wakers and preemptors are unknown: the perf tier keeps no edges", result.stderr)


# Threads that take mutexes of the C library: two across each other, two that wait for a holder that sleeps, one that
# holds another mutex meanwhile, for which one waits in turn, one that is in a condition variable.
LOCKERS = """
import ctypes, sys, threading, time
libc = ctypes.CDLL(None)
memory = [ctypes.create_string_buffer(64) for _ in range(6)]
a, b, c, d, e, condition = memory
taken = threading.Barrier(2)
ids = {}

def thread(name, function):
    def run():
        libc.prctl(15, name.encode(), 0, 0, 0)
        ids[name] = threading.get_native_id()
        function()
    made = threading.Thread(target=run, daemon=True)
    made.start()
    return made

def cross(mine, other):
    libc.pthread_mutex_lock(mine)
    taken.wait()
    libc.pthread_mutex_lock(other)

def hold(mutex):
    libc.pthread_mutex_lock(mutex)
    held.set()
    time.sleep(1000)

def wait_on(mutex):
    libc.pthread_mutex_lock(mutex)
    libc.pthread_cond_wait(condition, mutex)

def hold_and_wait(mutex, other):
    libc.pthread_mutex_lock(mutex)
    also.set()
    libc.pthread_mutex_lock(other)

held, also = threading.Event(), threading.Event()
thread("ab", lambda: cross(a, b))
thread("ba", lambda: cross(b, a))
thread("holder", lambda: hold(c))
held.wait()
thread("later", lambda: libc.pthread_mutex_lock(c))
thread("more", lambda: libc.pthread_mutex_lock(c))
thread("condition", lambda: wait_on(d))
thread("middle", lambda: hold_and_wait(e, c))
also.wait()
thread("deep", lambda: libc.pthread_mutex_lock(e))
while len(ids) < 8:
    time.sleep(0.01)
print(ids, flush=True)
time.sleep(1000)
"""


# A mutex that two processes share: the second holds it, and a thread of the first waits for it.
SHARED = MUTEX_OF_PROCESSES + """
taken = os.pipe()
child = os.fork()
if not child:
    libc.pthread_mutex_lock(mutex)
    os.write(taken[1], b"x")
    time.sleep(1000)
os.read(taken[0], 1)
waiter = threading.Thread(target=libc.pthread_mutex_lock, args=[mutex], daemon=True)
waiter.start()
print({"child": child, "waiter": waiter.native_id}, flush=True)
time.sleep(1000)
"""


class Chains(unittest.TestCase):
    def start(self, program=LOCKERS):
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        ids = ast.literal_eval(child.stdout.readline())
        # They are in their last wait by then: all that may still run are between two calls.
        for name, tid in ids.items():
            await_call(tid if name == "child" else child.pid, tid)
        return child.pid, ids

    def look(self, pid, *arguments):
        result = why("--chain", "-j", "-p", str(pid), *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def check(self, seen, ids):
        by = {row["tid"]: row for row in seen["threads"]}
        self.assertTrue(seen["mutexes_known"])
        holders = {name: by[tid]["held_by"] for name, tid in ids.items()}
        self.assertEqual(holders, {"ab": ids["ba"], "ba": ids["ab"], "holder": None,
                                   "later": ids["holder"], "more": ids["holder"],
                                   "condition": None, "middle": ids["holder"], "deep": ids["middle"]})
        self.assertEqual(seen["deadlocks"], 1)
        self.assertEqual({name for name, tid in ids.items() if by[tid]["deadlock"]}, {"ab", "ba"})
        self.assertEqual(by[ids["ab"]]["stack"]["word"], "mutex")

    def test_who_holds_what(self):
        pid, ids = self.start()
        self.check(self.look(pid), ids)
        if ROOT:
            self.check(self.look(pid, "--tier", "perf"), ids)

    def test_words(self):
        pid, ids = self.start()
        text = why("--chain", "-p", str(pid)).stdout
        self.assertIn("deadlock: 2 threads wait for each other\n", text)
        self.assertRegex(text, rf"ab \({ids['ab']}\)  mutex.*, held by ba \({ids['ba']}\)")
        self.assertRegex(text, rf"(?m)^chain: 3 threads held up by\n  holder \({ids['holder']}\)")
        self.assertRegex(text, rf"more \({ids['more']}\)  mutex.*, held by holder")
        # Below whom it waits for, whose own wait is on the line of who holds that.
        self.assertRegex(text, rf"(?m)^    middle \({ids['middle']}\)  mutex.*, held by holder \({ids['holder']}\)\n.*\n"
                               rf"      deep \({ids['deep']}\)  mutex.*, held by middle \({ids['middle']}\)$")

    def test_another_processs_owner_is_named(self):
        """It has the memory, and its number means the same thread in both processes."""
        pid, ids = self.start(SHARED)
        self.addCleanup(os.kill, ids["child"], signal.SIGKILL)
        for tier in ([], ["--tier", "perf"]) if ROOT else ([],):
            seen = self.look(f"{pid},{ids['child']}", *tier)
            by = {row["tid"]: row for row in seen["threads"]}
            self.assertIn(ids["child"], by)
            self.assertEqual(by[ids["waiter"]]["stack"]["word"], "mutex")
            self.assertEqual(by[ids["waiter"]]["held_by"], ids["child"], seen)

    def test_nobody_waits(self):
        text = why("--chain", "--", "sleep", "0.2").stdout
        self.assertRegex(text, r"none for somebody who is known")
        self.assertEqual(why("--chain", "--folded", "--", "true").returncode, 2)


# Most of the waits for storage are b's.
BY_TURNS = """
import os, sys, time
took = {"a": 0, "b": 0}
data = b"x" * 100
until = time.monotonic() + 2
while time.monotonic() < until:
    for name, times in ("a", 1), ("b", 3):
        fd = os.open(os.path.join(sys.argv[1], name), os.O_CREAT | os.O_RDWR, 0o600)
        for i in range(times):
            os.pwrite(fd, data, i * 4096)
            began = time.monotonic_ns()
            os.fsync(fd)
            took[name] += time.monotonic_ns() - began
        os.close(fd)
print(took)
"""

# A child answers after some 300 microseconds.
ANSWERED = """
import os, time
there, back = os.pipe(), os.pipe()
if not os.fork():
    os.close(there[1])
    while os.read(there[0], 1):
        time.sleep(0.0003)
        os.write(back[1], b"x")
    os._exit(0)
for i in range(2000):
    os.write(there[1], b"x")
    os.read(back[0], 1)
print((os.fstat(back[0]).st_ino, 1500), flush=True)
"""


# Reads from a block device, past the page cache.
READ_DEVICE = """
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
until, i = time.monotonic() + 1, 0
while time.monotonic() < until:
    os.preadv(fd, [page], i % 1024 * 4096)
    i += 1
"""

# Four processes that move themselves between cgroups: the kernel does that under locks of its own.
MOVE = """
import os, sys, time
root, until = sys.argv[1], time.monotonic() + 2
for i in range(4):
    if os.fork():
        continue
    own = f"{root}/prcb-why-{os.getpid()}"
    while time.monotonic() < until:
        os.mkdir(own)
        try:
            for group in own, root:
                with open(group + "/cgroup.procs", "w") as file:
                    file.write(str(os.getpid()))
        finally:
            os.rmdir(own)
    os._exit(0)
for i in range(4):
    os.wait()
"""


# Threads that wait for a socket each, and what these are connected to.
ONE_SOCKET_AFTER_THE_OTHER = """
import socket, threading, time
listening = socket.create_server(("127.0.0.1", 0))
kept = []
for i in range(10):
    one = socket.create_connection(listening.getsockname())
    kept += one, listening.accept()[0]
    thread = threading.Thread(target=one.recv, args=[1], daemon=True)
    thread.start()
    print(thread.native_id, "tcp %s:%d -> %s:%d" % (one.getsockname() + one.getpeername()), flush=True)
    time.sleep(0.05)
time.sleep(60)
"""

# Says that it is there, and connects or listens when it is told to.
ENDS = """
import socket, sys
listening = socket.create_server(("", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
print("there", flush=True)
if sys.stdin.readline() == "listen\\n":
    one = listening.accept()[0]
else:
    one = socket.create_connection(("10.99.7.1", 7000))
    print("connected", flush=True)
one.recv(1)
"""


class Objects(unittest.TestCase):
    """What waits are for. Witnesses: the program, which knows; gdb; stat(2)."""

    def start(self, *command, shell_input=subprocess.PIPE):
        """The child, and what it says of its threads: {way: (tid, identity)}."""
        child = subprocess.Popen(command, stdin=shell_input, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.kill)
        if shell_input == subprocess.PIPE:
            self.addCleanup(child.stdin.close)
        return child, self.told(child.stdout)

    @staticmethod
    def told(lines):
        ways = {}
        for line in iter(lines.readline, "ready\n"):
            if not line:
                raise AssertionError("the program ended")
            way, tid, identity = line.split(" ", 2)
            ways[way] = int(tid), identity.strip()
        return ways

    def look(self, pid, *arguments):
        report, _ = document("--objects", "-p", str(pid), "--budget", "100", "--for", "0.5", *arguments)
        self.check_sums(report)
        return report

    def check_sums(self, report):
        for process in report["processes"]:
            for cause in process["causes"]:
                self.assertEqual(sum(row["ns"] for row in cause["objects"]), cause["ns"])
                self.assertEqual(sum(row["ns"] for row in cause["stacks"]), cause["ns"])
                if cause["held_by"]:
                    self.assertEqual(sum(row["ns"] for row in cause["held_by"]), cause["ns"])
                for row in cause["objects"]:
                    self.assertEqual(row["object"] is None, row["unknown"] is not None)

    @staticmethod
    def by_thread(report):
        return {row["tid"]: row["object"] for process in report["processes"] for row in process["now"]}

    def check(self, found, ways, now):
        self.assertEqual({way for way, (tid, _) in ways.items() if not found.get(tid)}, set())
        for way, kind, name in (("pipe", "pipe", "{}"), ("fifo", "FIFO", "{} (deleted)"), ("unix", "socket", "{}"),
                                ("tcp", "socket", "{}")):
            tid, identity = ways[way]
            # By its cause, which a user without eBPF is not told: there it is a file by its name.
            self.assertIn(found[tid]["kind"], (kind, "file") if way == "fifo" and not ROOT else (kind,))
            self.assertTrue(found[tid]["name"].endswith(name.format(identity)), found[tid])
            self.assertEqual(found[tid]["now"], now)
            self.assertEqual(found[tid]["name"].startswith("descriptor "), now)
        self.assertEqual(found[ways["event"][0]]["kind"], "eventfd")
        for way in ("epoll", "poll"):
            tid, identity = ways[way]
            self.assertEqual(found[tid]["kind"], way)
            self.assertRegex(found[tid]["detail"], r"^now \d+: " + re.escape(identity) + "$")
        for way, symbol in (("bss", "zero_mutex"), ("data", "data_mutexes"), ("heap", None),
                            ("robust", "robust_mutex"), ("pi", "pi_mutex")):
            tid, identity = ways[way]
            self.assertEqual((found[tid]["kind"], found[tid]["address"]), ("futex", identity))
            self.assertEqual(found[tid]["symbol"], symbol)
        self.assertIn("[heap]", found[ways["heap"][0]]["name"])

    def test_waits_that_had_begun(self):
        """Of these nobody knows which file a descriptor was."""
        child, ways = self.start(OBJECTS)
        report = self.look(child.pid)
        found = self.by_thread(report)
        self.check(found, ways, True)
        self.assertEqual(found[ways["tcp"][0]]["detail"], "peer: the process itself")
        self.assertEqual(found[ways["unix"][0]]["detail"], "peer: the process itself")
        futex = next(cause for cause in report["processes"][0]["causes"] if cause["cause"] in ("futex", "wait"))
        held = {row["tid"]: row["ns"] / futex["ns"] for row in futex["held_by"]}
        if futex["cause"] == "futex":
            self.assertAlmostEqual(held[child.pid], 5 / 6, delta=0.05)
            self.assertAlmostEqual(held[ways["pipe"][0]], 1 / 6, delta=0.05)  # that is joined

    def began(self, command, script):
        child = subprocess.Popen([*command, sys.executable, "-c", script], text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        for end in child.stdout.close, child.stdin.close, child.wait, child.kill:
            self.addCleanup(end)
        if child.stdout.readline() != "there\n":
            self.skipTest("no namespaces can be made")
        return child

    def connected(self, within=()):
        """A server and a client, each in a network namespace of its own, made within others."""
        server, client = (self.began([*within, "unshare", "-n"], ENDS) for _ in "ab")
        if subprocess.run([*within, "ip", "link", "add", "one", "netns", str(server.pid), "type", "veth", "peer", "name",
                           "other", "netns", str(client.pid)], check=False).returncode:
            self.skipTest("needs veth")
        for pid, address, name in (server.pid, "10.99.7.1/24", "one"), (client.pid, "10.99.7.2/24", "other"):
            for command in ["addr", "add", address, "dev", name], ["link", "set", name, "up"]:
                subprocess.run([*within, "nsenter", "-t", str(pid), "-n", "ip", *command], check=True)
        for child, word in (server, "listen"), (client, "connect"):
            child.stdin.write(word + "\n")
            child.stdin.flush()
        self.assertEqual(client.stdout.readline(), "connected\n")
        return server, client

    def detail(self, client):
        found = self.by_thread(self.look(client.pid))[client.pid]
        self.assertRegex(found["name"], r"tcp 10\.99\.7\.2:\d+ -> 10\.99\.7\.1:7000$")
        return found["name"], found["detail"]

    @unittest.skipUnless(ROOT and shutil.which("ip") and shutil.which("nsenter"), "needs root, ip and nsenter")
    def test_an_end_in_another_network_namespace(self):
        """The server's socket is one of IPv6, the client's one of IPv4: as of a container that calls another. And both
        in a user's own user namespace, as of containers without root."""
        holder = self.began(["unshare", "-Urn"], "input(print('there', flush=True))")
        for within in (), ("nsenter", "-t", str(holder.pid), "-U", "-n", "--preserve-credentials"):
            with self.subTest(within=within):
                server, client = self.connected(within)
                self.assertRegex(self.detail(client)[1], rf"^peer: \S+ \({server.pid}\)$")

    @unittest.skipUnless(ROOT and shutil.which("ip") and shutil.which("nsenter"), "needs root, ip and nsenter")
    def test_an_end_that_somebody_made_up(self):
        """A user has the addresses of another's connection in a network namespace of his own, and hundreds of
        other ones, which are looked through by nobody."""
        self.began(["sh", "-c", 'exec "$@"', "-"], """if True:
            import ctypes, os
            for _ in range(260):
                ends = os.pipe()
                if not os.fork():
                    ctypes.CDLL(None).prctl(1, 9)
                    ctypes.CDLL(None).unshare(0x50000000)
                    os.write(ends[1], b"x")
                    os.execvp("sleep", ["sleep", "600"])
                os.read(ends[0], 1)
            print("there", flush=True)
            input()""")
        server, client = self.connected()
        port = re.search(r":(\d+) ->", self.detail(client)[0])[1]
        self.began(["unshare", "-Urn", "sh", "-c",
                    "ip link set lo up; ip addr add 10.99.7.1 dev lo; ip addr add 10.99.7.2 dev lo; exec \"$@\"", "-"],
                   f"""if True:
            import socket
            listening = socket.create_server(("10.99.7.1", 7000))
            one = socket.create_connection(("10.99.7.1", 7000), source_address=("10.99.7.2", {port}))
            other = listening.accept()[0]
            print("there", flush=True)
            other.recv(1)""")
        self.assertRegex(self.detail(client)[1], rf"^peer: \S+ \({server.pid}\)$")
        # Without a word to the client.
        subprocess.run(["nsenter", "-t", str(server.pid), "-n", "ip", "link", "set", "one", "down"], check=True)
        server.kill()
        server.wait()
        self.assertIsNone(self.detail(client)[1])

    def from_the_start(self, *arguments, answer=""):
        """The report of a program that prcb starts."""
        child = subprocess.Popen([PRCB, "why", "-j", "--objects", "--tier", "bpf", "--budget", "100", "--for", "5",
                                  "--", OBJECTS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.kill)
        with child:
            if answer and not child.stdout.readline():
                self.skipTest(child.stderr.read())
            child.stdin.write(answer)
            child.stdin.flush()
            try:
                ways = self.told(child.stdout)
            except AssertionError:
                self.skipTest(child.stderr.read())
            report = json.loads(child.stdout.read().splitlines()[-1])
        self.check_sums(report)
        return self.by_thread(report), ways

    @unittest.skipUnless(ROOT, "needs root")
    def test_waits_that_were_seen_to_begin(self):
        found, ways = self.from_the_start()
        self.check(found, ways, False)

    @unittest.skipUnless(ROOT, "needs root")
    def test_sockets_that_are_newer_than_the_lists(self):
        """The kernel's lists of sockets are read ten times a second at most: a look that meets a socket
        which was made since has to ask again."""
        report, said = document("--objects", "--tier", "bpf", "--budget", "100", "--for", "4", "--", sys.executable,
                                "-c", ONE_SOCKET_AFTER_THE_OTHER)
        found = self.by_thread(report)
        ways = [line.split(" ", 1) for line in said]
        self.assertEqual(len(ways), 10)
        self.assertEqual([found[int(tid)]["name"] for tid, _ in ways], [name for _, name in ways])

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_number_that_was_used_again(self):
        """The descriptor is another pipe's since the thread began to read from the first. A look that comes between
        the two finds the first, and is right."""
        for _ in range(5):
            found, ways = self.from_the_start("reused", answer="\n")
            tid, other = ways["reused"]
            if found[tid]["now"]:
                break
            self.assertEqual(found[tid]["name"], ways["first"][1])
        else:
            self.skipTest("prcb looked before the number was another pipe's, each time")
        self.assertRegex(found[tid]["name"], r"^descriptor \d+, now " + re.escape(other) + "$")

    def test_a_process_of_one_thread(self):
        """Nobody else can have changed its descriptors; on the perf tier, too."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        child, ways = self.start("sh", "-c", "echo ready; exec cat >/dev/null", shell_input=reading)
        os.close(reading)
        await_state(child.pid, "S")
        for arguments in ((), ("--tier", "perf")):
            found = self.by_thread(self.look(child.pid, *arguments))
            self.assertEqual(found[child.pid]["name"], os.readlink(f"/proc/{child.pid}/fd/0"))
            self.assertFalse(found[child.pid]["now"])
            self.assertRegex(found[child.pid]["detail"], rf"^written by .* \({os.getpid()}\)$")
        self.assertEqual(ways, {})

    @staticmethod
    def mount_is_listed(fd):
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as info:
            number = re.search(r"(?m)^mnt_id:\s*(\d+)", info.read()).group(1)
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            return any(line.split()[0] == number for line in mounts)

    def test_a_file_with_a_hostile_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a\x1b[31m;b\nc")
            with open(path, "w", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                child, _ = self.start(sys.executable, "-c", "import fcntl, sys; file = open(sys.argv[1]); "
                                      "print('ready', flush=True); fcntl.flock(file, fcntl.LOCK_EX)", path)
                await_state(child.pid, "S")
                found = self.by_thread(self.look(child.pid))[child.pid]
                self.assertEqual((found["kind"], found["name"]), ("file", path))
                device = os.stat(path).st_dev
                link = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"
                if not self.mount_is_listed(file.fileno()): # in a chroot whose root is no mount
                    self.assertIsNone(found["detail"])
                elif os.path.exists(link):
                    self.assertEqual(found["detail"], os.path.basename(os.readlink(link)))
                for form in ((), ("--folded",)):
                    text = why("--objects", "-p", str(child.pid), "--for", "0.3", *form).stdout
                    self.assertNotIn("\x1b", text)
                    self.assertIn("?[31m", text)
                    self.assertNotIn("\nc", text)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_symbols_are_gdbs(self):
        child, ways = self.start(OBJECTS)
        found = self.by_thread(self.look(child.pid))
        for way in ("bss", "data", "robust"):
            tid, address = ways[way]
            said = subprocess.run(["gdb", "-p", str(child.pid), "-batch", "-nx", "-ex", f"info symbol {address}"],
                                  capture_output=True, text=True, timeout=60).stdout
            match = re.search(r"(?m)^(\w+)(?: \+ \d+)? in section", said)
            if not match:
                self.skipTest("gdb may not attach")
            self.assertEqual(found[tid]["symbol"], match.group(1))

    def test_a_chain_names_mutexes(self):
        child, ways = self.start(OBJECTS)
        rows = {row["tid"]: row for row in json.loads(why("--chain", "-j", "-p", str(child.pid)).stdout)["threads"]}
        self.assertEqual(rows[ways["bss"][0]]["object"]["symbol"], "zero_mutex")
        self.assertEqual(rows[ways["bss"][0]]["held_by"], child.pid)
        self.assertEqual(rows[ways["join"][0]]["held_by"], ways["pipe"][0])
        self.assertRegex(why("--chain", "-p", str(child.pid)).stdout, rf"zero_mutex {ways['bss'][1]} \(")

    @unittest.skipUnless(ROOT, "needs root")
    def test_kernel_locks(self):
        """A pipe's mutex, held by a thread that writes a page which is not there yet."""
        child = subprocess.Popen([PRCB, "why", "-j", "--objects", "--tier", "bpf", "--budget", "100", "--", OBJECTS,
                                  "kernel"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        self.addCleanup(child.kill)
        with child:
            try:
                ways = self.told(child.stdout)
            except (AssertionError, ValueError):
                self.skipTest("no userfaultfd, or " + child.stderr.read())
            time.sleep(1)  # for how long the lock is held
            child.stdin.close()
            report = json.loads(child.stdout.read().splitlines()[-1])
        self.check_sums(report)
        mutex = next((cause for cause in report["processes"][0]["causes"] if cause["cause"] == "mutex"), None)
        if not mutex:
            self.skipTest("the kernel does not report waits for its locks")
        locks = [row for row in mutex["objects"] if row["object"]]
        self.assertEqual([row["object"]["kind"] for row in locks], ["kernel lock"])
        self.assertRegex(locks[0]["object"]["address"], r"^0x[89a-f][0-9a-f]{15}$")
        self.assertGreater(locks[0]["ns"], 0.9 * mutex["ns"])
        self.assertEqual(mutex["held_by"][0]["tid"], ways["holder"][0])
        self.assertGreater(mutex["held_by"][0]["ns"], 0.9 * mutex["ns"])

    def short_waits(self, program, *arguments):
        """Of a program that measures its waits by what they are for: its process, and what it says."""
        try:
            report, said = document("--objects", "--tier", "bpf", "--budget", "100", "--", sys.executable, "-c",
                                    program, *arguments)
        except AssertionError as error:
            self.skipTest(str(error))
        self.check_sums(report)
        process = max(report["processes"], key=lambda row: row["wait_ns"])
        return process, ast.literal_eval(said[-1])

    @unittest.skipUnless(ROOT, "needs root")
    def test_short_waits_for_files(self):
        """Two files by turns, opened anew each time under one number: what the program measures for each."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
            process, measured = self.short_waits(BY_TURNS, folder)
        found, counts = {"a": 0, "b": 0}, {"a": 0, "b": 0}
        cause = next((row for row in process["causes"] if row["cause"] == "fsync"), {"ns": 0, "objects": []})
        seen = sum(row["count"] for row in cause["objects"])
        for row in cause["objects"]:
            if row["object"]:
                self.assertEqual(row["object"]["kind"], "file")
                self.assertFalse(row["object"]["now"])
                found[os.path.basename(row["object"]["name"])] += row["ns"]
                counts[os.path.basename(row["object"]["name"])] += row["count"]
        if cause["ns"] < 0.05e9 or seen < 50:
            self.skipTest(f"storage is quick here: {cause['ns'] / 1e6:.0f} ms, {seen} waits were looked at")
        # What a look meets may be over before it is known what it was for, and the number another file by then. So
        # most is known; but for that for which prcb had no processor in time.
        left = sum(row["ns"] for row in cause["objects"] if row["unknown"] in LEFT)
        self.assertGreater(sum(found.values()), 0.7 * (cause["ns"] - left), cause)
        # Three of four are b's, and each has the same chance to be looked at: three standard deviations. Their times
        # are few long ones and many short ones, of which the shares say little; but both are there.
        known = sum(counts.values())
        self.assertAlmostEqual(counts["b"] / known, 0.75, delta=0.05 + 3 * (0.75 * 0.25 / known) ** 0.5)
        self.assertTrue(found["a"] and found["b"], cause)
        self.assertTrue(measured["a"] and measured["b"])

    @unittest.skipUnless(ROOT, "needs root")
    def test_short_waits_for_pipes(self):
        process, (number, count) = self.short_waits(ANSWERED)
        cause = next(row for row in process["causes"] if row["cause"] == "pipe")
        self.assertGreaterEqual(cause["count"], count)
        named = {row["object"]["name"]: row["ns"] for row in cause["objects"] if row["object"]}
        left = sum(row["ns"] for row in cause["objects"] if row["unknown"] in LEFT)
        self.assertGreater(named.get(f"pipe:[{number}]", 0), 0.9 * (cause["ns"] - left), cause["objects"])

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_block_device(self):
        """What waits for a disk is for is the device, and nobody but its driver ends them: no timer, no network
        and no other process, whoever they interrupt."""
        with tempfile.NamedTemporaryFile() as image:
            image.truncate(8 << 20)
            made = subprocess.run(["losetup", "--find", "--show", image.name], capture_output=True, text=True,
                                  check=False) if shutil.which("losetup") else None
            if not made or made.returncode:
                self.skipTest("no loop device: " + (made.stderr if made else "losetup is not installed"))
            device = made.stdout.strip()
            self.addCleanup(subprocess.run, ["losetup", "--detach", device], check=False)
            report, _ = document("--objects", "--tier", "bpf", "--budget", "100", "--", sys.executable, "-c",
                                 READ_DEVICE, device)
        self.check_sums(report)
        cause = max((row for process in report["processes"] for row in process["causes"] if row["cause"] == "disk"),
                    key=lambda row: row["ns"], default=None)
        if not cause or cause["count"] < 200:
            self.skipTest("the device answers without a wait")
        named = sum(row["ns"] for row in cause["objects"] if row["object"] and row["object"]["name"] == device)
        left = sum(row["ns"] for row in cause["objects"] if row["unknown"] in LEFT)
        # As for short waits for files.
        self.assertGreater(named, 0.8 * (cause["ns"] - left), cause["objects"])
        drivers = sum(row["ns"] for row in cause["woken_by"]
                      if row["by"] == "softirq" and row["name"] == "softirq block" or row["by"] == "interrupt" or
                      row["by"] == "thread" and row["comm"].startswith(("kworker", "loop", "ksoftirqd")))
        self.assertGreater(drivers, 0.9 * cause["ns"], cause["woken_by"])

    def cgroups(self):
        """A hierarchy of cgroups in which some may be made: of version 1 where there is one."""
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:4] for line in file]
        for path, kind, options in mounts:
            if (kind == "cgroup2" or kind == "cgroup" and "freezer" in options.split(",")) and \
                    "ro" not in options.split(",") and os.access(path, os.W_OK):
                return path
        return self.skipTest("no cgroups can be made here")

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_static_lock_of_the_kernel(self):
        """By its name in /proc/kallsyms. Where the kernel lists no data there, a list is put in its place that
        has the lock."""
        run = [PRCB, "why", "-j", "--objects", "--tier", "bpf", "--budget", "100", "--", sys.executable, "-c", MOVE,
               self.cgroups()]

        def locks(command):
            result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout.splitlines()[-1])
            self.check_sums(report)
            return {int(row["object"]["address"], 16): row["object"]["symbol"] for process in report["processes"]
                    for cause in process["causes"] for row in cause["objects"]
                    if row["object"] and row["object"]["kind"] == "kernel lock"}
        found = locks(run)
        with open("/proc/kallsyms", encoding="ascii") as file:
            lines = file.read()
        listed = {int(line.split()[0], 16): line.split()[2] for line in lines.splitlines()
                  if line.split()[1] in "dDbB"}
        known = {address for address in found if address in listed}
        for address in known:
            self.assertEqual(found[address], listed[address])
        # In memory of the kernel's image, which begins with its text, and not in what it allocates.
        text = next((int(line.split()[0], 16) for line in lines.splitlines() if line.endswith(" _text")), 1 << 64)
        static = [address for address in found if text <= address < text + (1 << 26)]
        if known or not static:
            if not known:
                self.skipTest("nobody waited for a static lock")
            return
        if not may_mount():
            self.skipTest("the kernel lists no data, and no list can be put in its place")
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as made:
            made.write(lines + "".join(f"{address:016x} d made_up_{i}\n" for i, address in enumerate(static)))
            made.flush()
            again = locks(["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/kallsyms && exec "$@"',
                           made.name, *run])
        both = [address for address in static if address in again]
        if not both:
            self.skipTest("nobody waited for that lock again")
        for address in both:
            self.assertEqual(again[address], f"made_up_{static.index(address)}")

    def test_not_asked_for(self):
        report, _ = document("--no-objects", "--", "sleep", "0.1")
        for cause in report["processes"][0]["causes"]:
            self.assertNotIn("objects", cause)


class Output(unittest.TestCase):
    def test_text(self):
        result = why("--", "sleep", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^sleep \(\d+\), 1 thread, ")
        self.assertIn("_start", result.stdout)
        self.assertIn("stack known for", result.stdout)

    def test_lines_fit_the_terminal(self):
        """Who woke threads, wrapped: a process that many threads wake."""
        if not ROOT:
            self.skipTest("by whom is the bpf tier's")
        script = ("import os, threading, time\n"
                  "r, w = os.pipe()\n"
                  "def wake():\n"
                  "    for _ in range(10):\n"
                  "        time.sleep(0.02)\n"
                  "        os.write(w, b'x')\n"
                  "for _ in range(6):\n"
                  "    threading.Thread(target=wake, daemon=True).start()\n"
                  "for _ in range(60):\n"
                  "    os.read(r, 1)\n")
        result = subprocess.run([PRCB, "why", "--idle", "--", sys.executable, "-c", script], capture_output=True,
                                text=True, timeout=60, env=os.environ | {"COLUMNS": "64"})
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        first = [i for i, line in enumerate(lines) if "woken by  " in line]
        for i in first:
            while True:
                self.assertLessEqual(len(lines[i]), 64, lines[i])
                if not lines[i].endswith(","):
                    break
                i += 1
                self.assertRegex(lines[i], "^ {26}[^ ]")
        if first:
            self.assertTrue(any(lines[i].endswith(",") for i in first), result.stdout)

    def test_nothing_waited(self):
        result = why("--tier", "perf", "--", "true")
        self.assertNotIn("known for -", result.stdout)

    def test_folded(self):
        result = why("--folded", "--", "sleep", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in result.stdout.splitlines():
            self.assertRegex(line, r"^[^;]+;[^;]+(;[^;]+)* \d+$")
        self.assertTrue(any(line.startswith("sleep;") and "_start" in line
                            for line in result.stdout.splitlines()), result.stdout)

    def test_ended_processes_of_one_name_are_one(self):
        text = why("--for", "20", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; done").stdout
        self.assertRegex(text, r"(?m)^sleep \([4-9] ended\), [4-9] threads, ")
        self.assertNotRegex(text, r"(?m)^sleep \(\d+\), ")

    def test_brief(self):
        """At most 8 KiB, however much there is to say; the largest first."""
        result = why("--brief", "-a", "--for", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLessEqual(len(result.stdout.encode()), 8192)
        report = json.loads(result.stdout)
        times = [row["ns"] for row in report["causes"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertTrue(times)
        self.assertLessEqual(report["coverage"]["known_ns"], report["coverage"]["wait_ns"])
        self.assertTrue(report["cannot_say"])
        self.assertEqual(why("--brief", "--chain", "-a").returncode, 2)

    @unittest.skipUnless(shutil.which("go"), "needs go, whose pprof reads profiles")
    def test_pprof_sums_are_the_accounts(self):
        """To the nanosecond, as Go's own pprof adds them up; the accounts' figures are in a comment.
        The program's names are hostile."""
        program = ("import threading, time; l = threading.Lock(); l.acquire()\n"
                   "open('/proc/thread-self/comm', 'wb').write(b'a\\xff;\\x1b\\n')\n"
                   "[threading.Thread(target=l.acquire, args=(True, 0.4)).start() for _ in range(3)]\n"
                   "time.sleep(0.2)")
        with tempfile.TemporaryDirectory() as folder:
            for kind, unit, parts in (("wait", "off_cpu", ("ready", "wait")), ("run", "cpu", ("run",)),
                                      ("lock", "off_cpu", ("lock",))):
                path = os.path.join(folder, kind)
                result = why("--pprof", kind, "-o", path, "--", sys.executable, "-c", program)
                if "built without" in result.stderr:
                    self.skipTest(result.stderr)
                self.assertEqual(result.returncode, 0, result.stderr)
                raw = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True,
                                     timeout=60, check=True).stdout.decode()
                totals = {name: int(ns) for name, ns in re.findall(r"(\w+)_ns=(\d+)", raw)}
                rows = re.findall(r"(?m)^ +(\d+): [\d ]+$", raw.split("Samples:")[1].split("Locations")[0])
                self.assertEqual(sum(map(int, rows)), sum(totals[part] for part in parts), raw)
                self.assertIn(f"PeriodType: {unit} nanoseconds", raw)
                if sum(totals[part] for part in parts):  # the perf tier knows no locks
                    self.assertIn(" thread:[a" if kind == "run" else "cause:[", raw)
                self.assertNotRegex(raw, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertEqual(why("--pprof", "x", "--", "true").returncode, 2)
        self.assertEqual(why("--pprof", "wait", "--chain", "-p", "1").returncode, 2)

    def test_hostile_names_do_not_reach_the_terminal(self):
        folder = os.path.join("/tmp", f"prcb-why-{os.getpid()}-\x1b[31mred;\n\u202e")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        program = os.path.join(folder, "a\x1b]0;b\x07")
        shutil.copy(shutil.which("sleep"), program)
        for form in ([], ["--folded"], ["-j"], ["--brief"]):
            result = subprocess.run([PRCB, "why", *form, "--", program, "0.2"], capture_output=True,
                                    timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotRegex(result.stdout, rb"[\x00-\x09\x0b-\x1f\x7f]")
            self.assertNotIn("\u202e".encode(), result.stdout)

    def test_exit_status(self):
        self.assertEqual(why("--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(why("--", "/nonexistent/program").returncode, 127)
        self.assertEqual(why().returncode, 2)
        self.assertEqual(why("-a", "-p", "1").returncode, 2)
        self.assertEqual(why("-j", "--folded", "--", "true").returncode, 2)
        self.assertEqual(why("-p", "999999999").returncode, 1)
        self.assertEqual(why("--top", "x", "--", "true").returncode, 2)

    def test_ctrl_c_reports(self):
        target = subprocess.Popen(["sleep", "60"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        await_state(target.pid, "S")
        run = subprocess.Popen([PRCB, "why", "-j", "-p", str(target.pid)], stdout=subprocess.PIPE)
        # It profiles once the kernel side or /proc is open and the first look is over: the child
        # that unwinds is there.
        for _ in range(2000):
            if subprocess.run(["pgrep", "-P", str(run.pid)], stdout=subprocess.DEVNULL, check=False).returncode == 0:
                break
            time.sleep(0.005)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(json.loads(out)["processes"][0]["comm"], "sleep")

    def test_somebody_elses_process_is_unreadable(self):
        if not ROOT:
            self.skipTest("needs root, to become somebody else")
        target = subprocess.Popen(["sleep", "60"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        await_state(target.pid, "S")
        result = why("-p", str(target.pid), "--for", "0.5", as_nobody=True)
        self.assertNotIn("_start", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^ +\d+ %  \[no permission\]$")
        self.assertRegex(result.stdout, "may not be read: another user's process, or kernel.yama.ptrace_scope")


if __name__ == "__main__":
    unittest.main()
