#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A recording says of each thread and cause what the accounts say of the same load, and both what is true.

Witnesses: the clock of the program, and the kernel's count of the time that a quota took."""
import json
import os
import unittest

from house import NOBODY, ROOT, House, on_tiers, steady
from cpu_cgroup import CpuCgroup

# Accounts read the clock of the run queues, recordings CLOCK_MONOTONIC: each switch by so much (docs/figures.md).
CLOCKS_NS = 15_000
INTERRUPT_NS = 50000 # once between the two clocks, on a machine that is not alone on its processors


class Recordings(House):
    def near(self, recorded, true, switches, what, unknown=0):
        """unknown: time that the recording says it has no record of."""
        self.assertLess(abs(recorded - true), 0.005 * true + switches * CLOCKS_NS + INTERRUPT_NS + unknown, what)

    def between(self, said, least, most, row):
        """Of a thread that makes some 20 switches; what it did besides may be any of it."""
        slack, unknown = 0.005 * least + 20 * CLOCKS_NS, row.get("unknown_ns", 0)
        self.assertGreater(said, least - slack - unknown, row)
        self.assertLess(said, most + slack, row)

    def compare(self, rows, report):
        """Every thread but the first, which was there before the recording, and every cause."""
        causes = {}
        for thread in report["threads"]:
            row = rows[thread["tid"]]
            for wait in row["waits"]:
                ns, count = causes.get(wait["cause"], (0, 0))
                causes[wait["cause"]] = ns + wait["ns"], count + wait["count"]
            if thread["tid"] == thread["pid"]:
                continue
            for figure in "run_ns", "ready_ns", "wait_ns":
                self.near(thread[figure], row[figure], row["switches"], (figure, thread, row), thread["unknown_ns"])
        for wait in report["waits"]:
            if wait["state"] == "waiting":
                ns, count = causes[wait["cause"]]
                self.near(wait["ns"], ns, count, (wait, ns), sum(row["unknown_ns"] for row in report["threads"]))

    @unittest.skipUnless(ROOT, "needs root: threads of the class FIFO")
    @on_tiers("bpf")
    @steady
    def test_a_thread_that_is_moved_stays_ready(self, tier):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("a thread can be moved where there are two processors; this has one")
        rows, report, path, printed = self.both(tier, [self.program("moved"), *cpus[:2], 5])
        ready, slept, other, victim = (int(word) for word in printed.split())
        self.compare(rows, report)
        recorded = {row["tid"]: row for row in report["threads"]}[victim]
        for row in rows[victim], recorded:
            self.between(row["ready_ns"], ready, ready + other, row)
            self.between(row["wait_ns"], slept, slept + other, row)
        # The critical path goes through the same stretches.
        steps = json.loads(self.prcb(tier, "report", "--critical", victim, "-j", path))["steps"]
        waited = sum(step["ns"] for step in steps if step["tid"] == victim and step["state"] == "ready")
        self.between(waited, ready, ready + other, recorded)

    @unittest.skipUnless(ROOT, "needs root: a cgroup of its own")
    @on_tiers("bpf", "daemon")
    @steady
    def test_a_quota_is_not_ready_time(self, tier):
        group = CpuCgroup(f"quota-{tier}")
        self.addCleanup(group.remove)
        group.set(("cpu.cfs_period_us", "100000"), ("cpu.max", "10000 100000"))
        group.set(("cpu.cfs_quota_us", "10000"), ("cpu.max", "10000 100000"))
        if self.user_of(tier):
            os.chown(group.processes, NOBODY, NOBODY)
        before = group.throttled()[0]
        rows, report, path, printed = self.both(tier, [self.program("quota"), group.processes,
                                                       min(os.sched_getaffinity(0)), 1])
        ran, limited = (int(word) for word in printed.split())
        taken = group.throttled()[0] - before
        if taken < 100_000_000:
            self.skipTest(f"the quota took {taken} ns alone: others had the processor")
        self.compare(rows, report)
        waits = {(row["state"], row["cause"]): row["ns"] for row in report["waits"]}
        switches = rows[limited]["switches"]
        self.near(waits.get(("waiting", "throttled"), 0), taken, switches, (waits, taken))
        self.near(rows[limited]["run_ns"], ran, switches, (rows[limited], ran))
        # What comes after the quota, and no more, is ready time of it.
        self.assertLess(waits.get(("ready", "throttled"), 0), 0.5 * taken, waits)
        self.assertIn("\nthreads were held back by a CPU quota for ", self.prcb(tier, "report", path))


if __name__ == "__main__":
    unittest.main()
