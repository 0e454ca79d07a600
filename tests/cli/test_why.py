#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb why: stacks of waits, and what their time adds up to.

Witnesses: a program that measures how long it waits in each of its functions, gdb's backtrace of the
same thread, and the exact times of prcb stat.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

PRCB = os.environ["PRCB"]
SHARES = os.environ["WHY_SHARES"]
WAITER = os.environ["STACK_WAITER"]
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
        self.assertEqual(len(kernel), 1)
        for cause in kernel[0]["causes"]:
            for part in cause["stacks"]:
                self.assertIn(part["unknown"], ("[kernel]", "[too short]"))


class Where(unittest.TestCase):
    def shares(self, seconds, milliseconds, within, **options):
        """Shares of the futex time by function equal those that the program measured."""
        report, said = document("--min", "500", "--", SHARES, str(seconds), str(milliseconds), **options)
        if report["tier"] == "perf" and within < 0.1:
            self.skipTest("the perf tier looks ten times a second: a wait's end is not seen")
        spent = [int(word) for word in said[0].split()]
        process = process_named(report, os.path.basename(SHARES)[:15])
        cause = next(c for c in process["causes"] if c["cause"] in ("futex", "wait"))
        names = ["long_wait", "middle_wait", "short_wait"]
        seen = dict.fromkeys(names, 0)
        for part in cause["stacks"]:
            for name in names:
                if name in functions(part):
                    seen[name] += part["ns"]
                    self.assertTrue(part["complete"], part)
        for name, own in zip(names, spent):
            self.assertAlmostEqual(seen[name] / cause["ns"], own / sum(spent), delta=within)

    def test_three_waits_have_their_shares(self):
        self.shares(3, 500, 0.02)

    def test_short_waits(self):
        """300, 150 and 50 microseconds, thousands of times: by what the timer was set to, for what
        the program measures has the time to wake up in it as well."""
        try:
            report, _ = document("--tier", "bpf", "--", SHARES, "4", "0.5")
        except AssertionError as error:
            self.skipTest(str(error))
        process = process_named(report, "why_shares")
        found = {}
        for cause in process["causes"]:
            self.assertEqual(sum(part["ns"] for part in cause["stacks"]), cause["ns"])
            for part in cause["stacks"]:
                for name in ("long_wait", "middle_wait", "short_wait"):
                    if name in functions(part):
                        found[name] = found.get(name, 0) + part["ns"]
                        self.assertTrue(part["complete"], part)
        whole = sum(found.values())
        self.assertGreater(whole, 0.95 * process["wait_ns"], process["causes"])
        for name, share in (("long_wait", 0.6), ("middle_wait", 0.3), ("short_wait", 0.1)):
            self.assertAlmostEqual(found[name] / whole, share, delta=0.03, msg=found)

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
        for way in ("mutex", "condition", "poll", "semaphore", "pipe"):
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
                own = [name for name in ("inner", "middle", "outer", "run") if name in frames]
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
                self.assertIn(functions(now[0])[-1], ("_start", None))

    def test_one_unwinding_for_a_thread_that_sleeps_on(self):
        process = subprocess.Popen(["sleep", "60"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        await_state(process.pid, "S")
        report, _ = document("-p", str(process.pid), "--for", "1")
        self.assertEqual(report["reader"]["unwound"], 1)

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
        self.assertLess(process["idle_ns"], 1_300_000_000)

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


BY_WHOM = """
import os, threading, time
there, back = os.pipe(), os.pipe()
if not os.fork():
    os.close(there[1])
    while os.read(there[0], 1):
        time.sleep(0.01)
        os.write(back[1], b"x")
    os._exit(0)
for _ in range(40):
    os.write(there[1], b"x")
    os.read(back[0], 1)
lock = threading.Lock()
lock.acquire()
for _ in range(20):
    lock.acquire(timeout=0.005)
os._exit(0)
"""


class ByWhom(unittest.TestCase):
    """Who ended the waits: the only ones that could."""

    def setUp(self):
        report, _ = document("--no-whom", "--", "true")
        if os.geteuid() or report["tier"] != "bpf":
            self.skipTest("by whom is the bpf tier's")

    def waits(self):
        report, _ = document("--idle", "--", "python3", "-c", BY_WHOM)
        # The parent: its child waits for no lock. An interpreter's start may add causes to either.
        process = max((row for row in report["processes"] if row["comm"].startswith("python3")),
                      key=lambda row: sum(cause["count"] for cause in row["causes"]
                                          if cause["cause"] == "futex"))
        return report, {row["cause"]: row for row in process["causes"]}

    def test_a_thread_and_a_timeout(self):
        report, causes = self.waits()
        echoes = {row["pid"] for row in report["processes"]}
        pipe = causes["pipe"]["woken_by"]
        self.assertEqual(pipe[0]["by"], "thread", pipe)
        self.assertIn(pipe[0]["pid"], echoes)
        self.assertGreaterEqual(pipe[0]["count"], 35, pipe)
        futex = causes["futex"]["woken_by"]
        self.assertEqual(futex[0]["by"], "timer", futex)
        self.assertEqual(futex[0]["name"], "timer (timed out)")
        self.assertGreaterEqual(futex[0]["count"], 18, futex)

    def test_edges_and_rest_are_the_causes_time(self):
        report, _ = self.waits()
        for process in report["processes"]:
            for row in process["causes"]:
                if row["cause"] in ("quantum", "preempted", "yield", "exit"):
                    continue
                whom = row["woken_by"]
                self.assertEqual(sum(who["count"] for who in whom), row["count"], row["cause"])
                # The account's open wait is in no edge yet.
                self.assertLessEqual(sum(who["ns"] for who in whom), row["ns"], row["cause"])
            self.assertLessEqual(sum(who["ns"] for who in process["ready_behind"]),
                                 process["ready_ns"])

    def test_text(self):
        result = why("--", "sleep", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"woken by  (timer|not known)")
        self.assertNotIn("woken by", why("--no-whom", "--", "sleep", "0.3").stdout)

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
                              text=True, timeout=60).stdout
        self.assertRegex(text, r"(?m)^  sleep +woken by  ")

    def test_other_tiers_say_why(self):
        result = subprocess.run([PRCB, "stat", "--by-whom", "--tier", "perf", "--", "sleep", "0.1"],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("by whom is not known: the perf tier keeps no edges", result.stdout)


class Output(unittest.TestCase):
    def test_text(self):
        result = why("--", "sleep", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^sleep \(\d+\), 1 thread, ")
        self.assertIn("_start", result.stdout)
        self.assertIn("stack known for", result.stdout)

    def test_folded(self):
        result = why("--folded", "--", "sleep", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in result.stdout.splitlines():
            self.assertRegex(line, r"^[^;]+;[^;]+(;[^;]+)* \d+$")
        self.assertTrue(any(line.startswith("sleep;") and "_start" in line
                            for line in result.stdout.splitlines()), result.stdout)

    def test_hostile_names_do_not_reach_the_terminal(self):
        folder = os.path.join("/tmp", f"prcb-why-{os.getpid()}-\x1b[31mred;\n\u202e")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        program = os.path.join(folder, "a\x1b]0;b\x07")
        shutil.copy(shutil.which("sleep"), program)
        for form in ([], ["--folded"], ["-j"]):
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


if __name__ == "__main__":
    unittest.main()
