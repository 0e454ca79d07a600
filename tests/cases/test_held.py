#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A thread that is stopped, traced or frozen is not idle, whatever its stack shows: it is an event loop's.

Witness: this program, which stops it, and the kernel's own word of it in /proc and in cgroups."""
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from house import NOBODY, ROOT, House, await_true, mount_of, on_tiers, state_of, wire
from cpu_cgroup import CpuCgroup

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
LIBC = ctypes.CDLL(None, use_errno=True)


class Held(House):
    def stop(self, pid):
        os.kill(pid, signal.SIGSTOP)
        await_true(lambda: state_of(pid) == "T", "it is stopped")
        return "stopped by a signal", lambda: os.kill(pid, signal.SIGCONT)

    def trace(self, pid):
        """By this thread: a tracer is one."""
        if LIBC.ptrace(PTRACE_ATTACH, pid, None, None):
            self.skipTest(f"it cannot be traced here: {os.strerror(ctypes.get_errno())}")
        os.waitpid(pid, 0)
        comm = pathlib.Path("/proc/thread-self/comm").read_text(encoding="ascii").strip()
        return f"stopped by a tracer, {comm} ({os.getpid()})", lambda: LIBC.ptrace(PTRACE_DETACH, pid, None, None)

    def freeze(self, pid, mount, control, on, off):
        if not ROOT or not mount:
            self.skipTest("needs root" if not ROOT else "no such hierarchy is mounted")
        group = pathlib.Path(mount, f"prcb-held-{os.getpid()}-{pid}")
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no cgroup can be made here: {error}")

        def remove():
            with contextlib.suppress(OSError):
                (group / control).write_text(off, encoding="ascii")
                pathlib.Path(mount, "cgroup.procs").write_text(str(pid), encoding="ascii")
            await_true(lambda: not (group / "cgroup.procs").read_text(encoding="ascii"), "the cgroup is empty")
            group.rmdir()

        (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
        (group / control).write_text(on, encoding="ascii")
        seen, word = ("freezer.state", "FROZEN") if control == "freezer.state" else ("cgroup.events", "frozen 1")
        await_true(lambda: word in (group / seen).read_text(encoding="ascii"), "it is frozen")
        return f"frozen by cgroup /{group.name}", remove

    def freeze_v1(self, pid):
        return self.freeze(pid, mount_of("freezer"), "freezer.state", "FROZEN", "THAWED")

    def freeze_v2(self, pid):
        return self.freeze(pid, mount_of("cgroup2"), "cgroup.freeze", "1", "0")

    def begin(self, tier, how):
        """The number of one that is held, and what prcb has to call that."""
        _, (pid,) = self.start("event_loop", user=self.user_of(tier))
        await_true(lambda: state_of(pid) == "S", "it waits")
        words, end = how(pid)
        # Not by a cleanup: what is frozen takes no SIGKILL on some kernels.
        return pid, words, end

    def check(self, tier, how):
        pid, words, end = self.begin(tier, how)
        try:
            began = time.monotonic()
            time.sleep(0.2)
            text = " ".join(self.prcb(tier, "why", "--tier", tier, "-p", pid, "--for", 0.3).split())
            told = re.search(r": 1 thread is (.*) since [0-9:]+ \(([\d.]+)(m?s)\)\.", text)
            self.assertTrue(told, text)
            self.assertEqual(told[1], words)
            self.assertNotIn("idle by design", text)
            # The kernel's stamp leaves out what interrupts took; before it was told to stop it did not stop.
            age = (time.monotonic() - began) * 1000
            held = float(told[2]) * (1 if told[3] == "ms" else 1000)
            self.assertLess(held, age + 100)
            self.assertGreater(held, 200)
            if how == self.trace and tier != "perf":
                self.assertRegex(self.prcb(tier, "why", "--chain", "--tier", tier, "-p", pid),
                                 rf"traced .*, held by \S+ \({os.getpid()}\)")
            text = self.prcb(tier, "stat", "--tier", tier, "-p", pid, "--for", 0.2)
            self.assertIn(f": 1 thread is {words} since ", text)
            self.assertNotIn("idle", text)
            text = self.top(tier, "-n", 1, "-d", 0.2, "-p", pid)
            if tier != "perf":
                row = next((line for line in text.splitlines() if " event_loop " in line), text)
                self.assertRegex(row, "stopped|traced|frozen")
                self.assertNotRegex(text, "time.* asleep [.]* *[1-9]")
        finally:
            end()

    @on_tiers("bpf", "daemon", "perf")
    def test_stopped_by_a_signal(self, tier):
        self.check(tier, self.stop)

    @on_tiers("bpf", "daemon", "perf")
    def test_stopped_by_a_tracer(self, tier):
        self.check(tier, self.trace)

    @on_tiers("bpf", "daemon", "perf")
    def test_frozen_by_a_cgroup_of_version_1(self, tier):
        self.check(tier, self.freeze_v1)

    @on_tiers("bpf", "daemon", "perf")
    def test_frozen_by_a_cgroup_of_version_2(self, tier):
        self.check(tier, self.freeze_v2)

    @on_tiers("bpf", "daemon", "perf")
    def test_stopped_on_the_way(self, tier):
        """What it idled before stays idle, except where the perf tier sees one wait alone."""
        _, (pid,) = self.start("event_loop", 10000, user=self.user_of(tier))
        report = self.document(tier, "why", "-p", pid, "--for", 2, "--", "sh", "-c",
                               f"sleep 0.2; kill -STOP {pid}; sleep 0.5")
        process = next(row for row in report["processes"] if row["pid"] == pid)
        if tier != "perf":
            causes = {row["cause"]: row for row in process["causes"]}
            self.assertEqual(causes["stopped"]["idle_ns"], 0)
            self.assertEqual(causes["epoll"]["idle_ns"], causes["epoll"]["ns"])
        self.assertEqual(process["now"][0]["tid"], pid)

    @unittest.skipUnless(ROOT, "needs root: a cgroup of its own")
    @on_tiers("bpf", "daemon", "perf")
    def test_held_back_by_a_quota(self, tier):
        """It is said first, and whose quota it is. Witness: the cgroup's own count."""
        group = CpuCgroup(f"held-{tier}")
        self.addCleanup(group.remove)
        group.set(("cpu.cfs_period_us", "100000"), ("cpu.max", "10000 100000"))
        group.set(("cpu.cfs_quota_us", "10000"), ("cpu.max", "10000 100000"))
        if self.user_of(tier):
            os.chown(group.processes, NOBODY, NOBODY)
        process = subprocess.Popen([self.program("quota"), group.processes, str(min(os.sched_getaffinity(0))), "30"],
                                   stdout=subprocess.DEVNULL,
                                   preexec_fn=lambda: self.user_of(tier) and wire.become(NOBODY, NOBODY))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        await_true(lambda: group.throttled()[1] > 1, "the quota holds it back")
        words = (rf"cgroup /{os.path.basename(group.path)} may run 10\.0ms in each 100ms, and was held back in (\d+) of "
                 r"its (\d+) periods so far")
        first = {"why": r"^\S+ % of the waiting: (ready or )?held back by a CPU quota: ",
                 "stat": r"\n\n\S+ % of thread time \(.*\) was spent "
                         r"(ready to run, waiting for a processor or )?held back by a CPU quota[^.]*: "}
        for command in "why", "stat":
            before = group.throttled()[1]
            text = group.look(lambda: self.prcb(tier, command, "--tier", tier, "-p", process.pid, "--for", 0.4))
            told = re.search(first[command] + words, re.sub(r"(?<=\S)\n(  )?(?=\S)", " ", text), re.MULTILINE)
            self.assertTrue(told, text)
            self.assertEqual(told[1] is not None, tier == "perf")
            self.assertTrue(before <= int(told[2]) <= group.throttled()[1], (before, told[2]))
            self.assertGreaterEqual(int(told[3]), int(told[2]))
            self.assertNotRegex(text, "was idle by design|% +idle by design")

    @on_tiers("bpf", "daemon")
    def test_each_screen(self, tier):
        """Whatever one asks, it is stopped, and nothing says that it idles, or sleeps."""
        _, (pid,) = self.start("event_loop", user=self.user_of(tier))
        await_true(lambda: state_of(pid) == "S", "it waits")
        folder = self.folder(tier)
        _, end = self.stop(pid)
        recording = os.path.join(folder, "recording")
        self.prcb(tier, "record", "-g", "-o", recording, "-p", pid, "--", "sleep", "0.2")
        asked = {"stat": ["stat", "-p", pid], "stat --brief": ["stat", "--brief", "-p", pid], "stat -x": ["stat", "-x,", "-p", pid],
                 "why --brief": ["why", "--brief", "-p", pid], "why --folded": ["why", "--folded", "-p", pid],
                 "why --chain": ["why", "--chain", "-p", pid]}
        asked |= {f"top -g {rows}": ["top", "-b", "-i", "-n", 1, "-d", 0.2, "-g", rows, "-p", pid]
                  for rows in ("threads", "processes", "names", "causes")}
        for what, arguments in asked.items():
            with self.subTest(what):
                span = [] if "top" in what else ["--for", 0.2]
                self.says_stopped(what, self.prcb(tier, arguments[0], "--tier", tier, *arguments[1:], *span), end)
        for what in ["--table", "waits"], ["--folded", "--waits"], []:
            with self.subTest("report " + " ".join(what)):
                self.says_stopped("report", self.prcb(tier, "report", *what, recording), end)
        end()

    def says_stopped(self, what, text, end):
        try:
            if what != "why --chain":  # it holds up nobody
                self.assertIn("stopped", text)
            for line in text.splitlines():
                if not line.startswith("cpu ") and "CPU  SAMPLES" not in line:  # of processors
                    self.assertNotRegex(line, r"\bidl|asleep [.]* *[1-9]|\bsleeps\b")
        except AssertionError:
            end()
            raise

    @on_tiers("bpf", "daemon")
    def test_recordings_do_not_call_it_idle(self, tier):
        """Stopped, it waits in its event loop; the recording says the cause, and no idling of it."""
        _, (pid,) = self.start("event_loop", user=self.user_of(tier))
        os.kill(pid, signal.SIGSTOP)
        await_true(lambda: state_of(pid) == "T", "it is stopped")
        report = self.recorded(tier, "-g", "-p", pid, "--", "sleep", "0.3")
        os.kill(pid, signal.SIGCONT)
        waits = {row["cause"]: row["ns"] for row in report["waits"] if row.get("cause")} if "waits" in report else {}
        self.assertEqual(report["wait_idle_ns"], 0, waits)
        self.assertGreater(report["wait_ns"], 200_000_000)


if __name__ == "__main__":
    unittest.main()
