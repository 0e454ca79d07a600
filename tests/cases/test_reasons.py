#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each reason in brackets why a wait has no stack, where it is true, and only there.

Witness: the programs, whose threads wait in that way and in no other; /proc says which are of the kernel."""
import json
import os
import pathlib
import platform
import re
import subprocess
import unittest

from house import NOBODY, PRCB, ROOT, House, await_true, on_tiers, state_of


def reasons(process):
    """ns by reason; None: with a stack."""
    sums = {}
    for cause in process["causes"]:
        for row in cause["stacks"]:
            sums[row["unknown"]] = sums.get(row["unknown"], 0) + row["ns"]
    return sums


def thread_of(pid, comm):
    for name in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{name}/comm", encoding="ascii") as file:
            if file.read().strip() == comm:
                return int(name)
    return None


class Reasons(House):
    def of(self, tier, tid, *arguments):
        report = self.document(tier, "why", "-t", tid, "--for", 0.5, *arguments)
        return reasons(report["processes"][0]), report["processes"][0]

    def begin(self, tier):
        _, (pid,) = self.start("reasons", user=self.user_of(tier))
        await_true(lambda: thread_of(pid, "brief") and thread_of(pid, "bare"), "its threads are there")
        await_true(lambda: state_of(pid, thread_of(pid, "bare")) == "S", "it waits")
        return pid

    @on_tiers("daemon", "perf")
    def test_too_short(self, tier):
        """Where nothing is copied as waits begin."""
        pid = self.begin(tier)
        sums, process = self.of(tier, thread_of(pid, "brief"), "--min", 5000)
        # What lasted longer because it was not let run has its stack.
        short = "[between looks]" if tier == "perf" else "[too short]"
        self.assertLessEqual(set(sums), {short, None}, process)
        self.assertGreater(sums[short], 0.5 * process["wait_ns"], process)
        sums, process = self.of(tier, pid)
        self.assertGreater(sums[None], 0.5 * process["wait_ns"], process)

    @on_tiers("bpf")
    def test_short_and_known(self, tier):
        """Where some are, none is too short."""
        sums, process = self.of(tier, thread_of(self.begin(tier), "brief"))
        self.assertGreater(sums[None] + sums.get("[not read]", 0), 0.9 * process["wait_ns"], process)

    @on_tiers("bpf")
    def test_no_room_and_not_read(self, tier):
        """Of sixty threads that sleep for moments at the same time more waits are chosen than there are buffers for;
        of one alone all are read. Whether 1 % of a processor reads what there is room for depends on the machine."""
        _, (pid,) = self.start("reasons", "many")
        report = self.document(tier, "why", "-p", pid, "--for", 0.4, "--budget", 1, "--no-whom", "--no-objects")
        sums = reasons(report["processes"][0])
        self.assertIn("[no room]", sums)
        self.assertLessEqual(set(sums), {"[no room]", "[not read]", "[too short]", None}, sums)
        sums, process = self.of(tier, pid, "--budget", 90)  # its first thread, which waits for a signal
        self.assertEqual(set(sums), {None}, process)

    def test_each_has_a_test(self):
        """Those that the manual has are those that are tested here."""
        page = pathlib.Path(__file__).parents[2] / "man/prcb-why.1.scd"
        words = set(re.findall(r"(?m)^\*(\[.*\])\*$", page.read_text(encoding="utf-8")))
        tested = set(re.findall(r'"(\[[a-z ]+\])"', pathlib.Path(__file__).read_text(encoding="utf-8")))
        self.assertLess({"[ended]", "[not read]"}, words)
        self.assertEqual(words, tested)

    @unittest.skipUnless(platform.machine() == "x86_64", "the program has no such thread here")
    @on_tiers("bpf", "daemon", "perf")
    def test_unreadable(self, tier):
        sums, process = self.of(tier, thread_of(self.begin(tier), "bare"))
        if tier != "perf" and None in sums:  # The kernel tells where in it the thread is.
            frames = [frame for cause in process["causes"] for row in cause["stacks"] for frame in row["frames"]]
            self.assertEqual({frame["file"] for frame in frames}, {"[kernel]"}, process)
            return
        # The perf tier knows a wait from the second look on.
        self.assertLessEqual(set(sums), {"[unreadable]", "[between looks]" if tier == "perf" else "[too short]"}, process)
        self.assertGreater(sums["[unreadable]"], 0.5 * process["wait_ns"], process)

    @unittest.skipUnless(ROOT, "needs root, to be somebody else")
    @on_tiers("perf")
    def test_no_permission(self, tier):
        """Root's process for nobody, and nobody's own."""
        for user, reason in (0, "[no permission]"), (NOBODY, None):
            _, (pid,) = self.start("reasons", user=user)
            sums, process = self.of(tier, pid)
            self.assertGreater(sums[reason], 0.5 * process["wait_ns"], process)
            self.assertEqual("[no permission]" in sums, reason is not None, process)

    @unittest.skipUnless(ROOT, "needs root, who sees all threads anywhere")
    @on_tiers("perf")
    def test_kernel(self, tier):
        """Of the kernel's threads alone, and of all of these."""
        result = subprocess.run([PRCB, "why", "-j", "-a", "--tier", tier, "--for", "0.5"], capture_output=True, text=True,
                                timeout=60, check=True)
        processes = json.loads(result.stdout)["processes"]
        for process in processes:
            sums = reasons(process)
            if process["pid"] is None:
                self.assertLessEqual(set(sums), {"[kernel]", "[between looks]" if tier == "perf" else "[too short]"}, process)
                self.assertGreater(sums["[kernel]"], 0.5 * process["wait_ns"], process)
            else:
                self.assertNotIn("[kernel]", sums, process)

    @on_tiers("bpf")
    def test_ended(self, tier):
        """Programs that live for milliseconds; one that is there when it is looked at has not ended."""
        report = self.document(tier, "why", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.0005; done; sleep 0.3")
        long = max((process for process in report["processes"] if process["comm"] == "sleep"),
                   key=lambda process: process["wait_ns"])
        self.assertGreater(reasons(long).get(None, 0), 0.9 * long["wait_ns"], long)
        for process in report["processes"]:
            if process["wait_ns"] > 100_000_000:
                self.assertNotIn("[ended]", {reason for reason, ns in reasons(process).items()
                                             if ns > 0.1 * process["wait_ns"]}, process)


if __name__ == "__main__":
    unittest.main()
