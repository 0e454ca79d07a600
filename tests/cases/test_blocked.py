#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is blocked in the kernel is not idle: workers of io_uring, and threads in state D.

Witness: /proc/PID/task/TID/stack and its state letter."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from house import ROOT, House, await_true, on_tiers, state_of


def kernel_stack(pid, tid):
    """Functions, innermost first; empty where the kernel does not tell."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{tid}/stack").read_text(encoding="ascii")
    except OSError:
        return []
    return [line.split()[1].split("+")[0] for line in text.splitlines()]


def threads(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


class Blocked(House):
    @on_tiers("bpf", "daemon")
    def test_a_worker_of_io_uring_in_a_request(self, tier):
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        if self.user_of(tier):
            os.chown(folder, self.user_of(tier), self.user_of(tier))
        _, (pid,) = self.start("iowq", folder + "/fifo", user=self.user_of(tier))
        if not pid:
            self.skipTest("io_uring cannot be had here")
        await_true(lambda: any("fifo_open" in kernel_stack(pid, tid) for tid in threads(pid)),
                   "a worker opens the FIFO (as /proc/PID/task/TID/stack shows to root)")
        report = self.document(tier, "why", "-p", pid, "--for", 0.3)
        process = next(row for row in report["processes"] if row["pid"] == pid)
        now = {row["tid"]: row for row in process["now"]}
        for tid in threads(pid):
            stack = kernel_stack(pid, tid)
            if "fifo_open" in stack:
                self.assertEqual(now[tid]["cause"], "other")
                self.assertIsNone(now[tid]["object"])  # it has the registers of a call that is another thread's
                if tier == "bpf":
                    self.assertIn("fifo_open", [frame["function"] for frame in now[tid]["frames"]])
            elif stack[:1] == ["io_wq_worker"]:
                self.assertNotIn(tid, now)

    @on_tiers("bpf", "daemon", "perf")
    def test_a_hang_since_before(self, tier):
        _, (_, child) = self.start("mutex_hang", user=self.user_of(tier))
        await_true(lambda: state_of(child) == "D", "it hangs")
        began = time.monotonic()
        time.sleep(0.5)
        report = self.document(tier, "why", "-p", child, "--for", 0.3)
        now = next(row for row in report["processes"] if row["pid"] == child)["now"][0]
        age = (time.monotonic() - began) * 1e9
        # The stamp leaves out what interrupts took; it hangs since a moment before that was seen.
        self.assertGreater(now["age_ns"], 0.5e9)
        self.assertLess(now["age_ns"], age + 0.5e9)
        if tier == "bpf":
            self.assertEqual(now["frames"][0]["function"].split("_")[-1], "write", now)
        text = self.prcb(tier, "why", "--tier", tier, "-p", child, "--for", 0.3)
        self.assertNotIn("idle by design", text)
        self.assertEqual(state_of(child), "D")
        told = re.search(r"^blocked in the kernel now, in state D, 1 of the load average:\n +1  .*backend \((\d+)\)",
                         text, re.MULTILINE)
        self.assertTrue(told, text)
        self.assertEqual(int(told[1]), child)

    @unittest.skipUnless(ROOT, "needs root: a network namespace")
    @on_tiers("bpf")
    def test_workers_of_the_kernel(self, tier):
        """They remove network namespaces, and wait for RCU in state D, which makes the load average."""
        process = subprocess.Popen(["sh", "-c", "while unshare -n true; do :; done"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        look = threading.Thread(target=self.look)
        self.seen, self.looks, self.done = {}, 0, threading.Event()
        look.start()
        try:
            text = self.prcb(tier, "stat", "--tier", tier, "-a", "--for", 1)
        finally:
            self.done.set()
            look.join()
        if sum(self.seen.values()) < 0.2 * self.looks:
            self.skipTest(f"the kernel's threads were seldom in state D: {self.seen} of {self.looks} looks")
        told = re.search(r"Kernel threads were blocked, not idle, for (\S+), (\S+) for \S+ of it; prcb why -a",
                         text.replace("\n", " "))
        self.assertTrue(told, (self.seen, self.looks, text))
        self.assertTrue(any(comm.split("/")[0] == told[2].split("/")[0] for comm in self.seen), (told, self.seen))

    def look(self):
        """Which threads of the kernel are in state D, and how often."""
        while not self.done.wait(0.01):
            self.looks += 1
            for name in os.listdir("/proc"):
                if name.isdigit() and not os.path.exists(f"/proc/{name}/exe") and state_of(int(name)) == "D":
                    comm = pathlib.Path(f"/proc/{name}/comm")
                    with contextlib.suppress(OSError):
                        comm = comm.read_text(encoding="ascii").strip()
                        self.seen[comm] = self.seen.get(comm, 0) + 1


if __name__ == "__main__":
    unittest.main()
