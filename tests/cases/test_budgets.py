#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A thread that has used up its budget of SCHED_DEADLINE, or its group's real-time budget, is held back: it is not ready,
and nobody is to blame.

Witness: the thread's own clock of the processor."""
import os
import tempfile
import unittest

from house import ROOT, House, await_true, on_tiers

GROUPS = "/sys/fs/cgroup/cpu"


@unittest.skipUnless(ROOT, "needs root, which alone may have such budgets")
class Budgets(House):
    def check(self, tier, *tasks):
        program, (pid,) = self.start("budget", 2000, self.user_of(tier) or 0, *tasks)
        if not pid:
            self.skipTest("the kernel gives no such budget here")
        row, = self.document(tier, "stat", "--by-whom", "-p", pid, "--for", 1.2)["threads"]
        ran, lasted = (int(word) for word in program.stdout.readline().split())
        held = {wait["cause"]: wait["ns"] for wait in row["waits"]}.get("throttled", 0)
        wall, run = row["wall_ns"], row["run_ns"]
        # The part of an interval that is open when the time is over is in no cause yet.
        held += row["open"]["ns"] if row["open"] and row["open"]["cause"] == "throttled" else 0
        self.assertLess(abs(run / wall - ran / lasted), 0.1, row)
        # On a busy machine others have their share of the processor: 5 of 100 before real-time threads.
        self.assertGreater(held, 0.8 * (wall - run), row)
        self.assertLess(row["ready_ns"], 0.15 * wall, row)
        blamed = sum(edge["ns"] for edge in row["by_whom"]["ready_behind"])
        self.assertLessEqual(blamed, row["ready_ns"], row)
        self.assertEqual({edge["by"] for edge in row["by_whom"]["woken_by"]["throttled"]}, {"rest"}, row)

    @on_tiers("bpf", "daemon")
    def test_deadline(self, tier):
        self.check(tier)

    @on_tiers("bpf", "daemon")
    def test_real_time_group(self, tier):
        if not os.path.exists(os.path.join(GROUPS, "cpu.rt_runtime_us")):
            self.skipTest("needs cgroups of version 1 with CONFIG_RT_GROUP_SCHED")
        group = tempfile.mkdtemp(prefix="prcb-case-", dir=GROUPS)

        def remove():
            with open(os.path.join(group, "tasks"), encoding="ascii") as file:
                await_true(lambda: not file.seek(0) and not file.read(), "the group is empty")
            os.rmdir(group)

        self.addCleanup(remove)
        with open(os.path.join(group, "cpu.rt_runtime_us"), "w", encoding="ascii") as file:
            file.write("200000")
        self.check(tier, os.path.join(group, "tasks"))


if __name__ == "__main__":
    unittest.main()
