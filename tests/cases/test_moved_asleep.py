#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A thread that the kernel moves while it sleeps is not ready before it is woken.

Witness: the thread, which measures by its own clocks how long it was off the processor while it was able to run. The
kernel's own run-queue delay says that what is meant did happen: it has whole sleeps in it."""
import subprocess
import unittest

from house import House, on_tiers, steady

MS = 1_000_000
SLACK = 20 * MS  # what the program does not see: from a clock to a switch, and how late a timer is, all sleeps together


class MovedAsleep(House):
    def told(self, line):
        """How many sleeps the kernel counted as delay, how long the thread was ready at least and at most, how long it
        asked to sleep."""
        counted, able, most, asked = (int(word) for word in line.split())
        if not asked:
            self.skipTest("needs two processors")
        if not counted:
            self.skipTest("this kernel counts no sleep as run-queue delay (it does from Linux 6.12 on)")
        return counted, able, most, asked

    def both(self, tier, *options):
        """What the thread measured, what the accounts say of it, and a recording of the same run, made without
        wakers, if these options do not ask for them."""
        rows, report, _, printed = super().both(tier, [self.program("moved_asleep"), 8, 100], options,
                                                [] if options else ["--no-wakers"])
        row = next(row for row in rows.values() if row["comm"] == "sleeper")
        recorded = next(thread for thread in report["threads"] if thread["tid"] == row["tid"])
        return self.told(printed.splitlines()[1]), row, recorded

    def slept(self, row):
        return next(wait["ns"] for wait in row["waits"] if wait["cause"] == "sleep")

    def check_bounds(self, row, recorded, able, most, asked):
        """What holds where the ends of some waits were not seen: what follows them is in the wait."""
        for told in row, recorded:
            self.assertLess(told["ready_ns"], most + SLACK, told)
            self.assertGreater(told["ready_ns"] + told["wait_ns"], able + asked - SLACK, told)
        self.assertGreaterEqual(self.slept(row), asked - MS, row)
        self.assertLess(self.slept(row), asked + most + SLACK, row)

    @on_tiers("bpf", "daemon")
    @steady
    def test_ready_is_what_the_thread_measured(self, tier):
        (counted, able, most, asked), row, recorded = self.both(tier)
        self.check_bounds(row, recorded, able, most, asked)
        self.assertGreaterEqual(row["unclear_wakes"], 1, (counted, row))

    @on_tiers("bpf", "daemon")
    @steady
    def test_with_wakers_the_end_is_known(self, tier):
        (counted, able, most, asked), row, recorded = self.both(tier, "--by-whom")
        self.check_bounds(row, recorded, able, most, asked)
        # A virtual machine may not tell of a wakeup: one in a thousand. That is said.
        self.assertLessEqual(row["unclear_wakes"], counted // 2, row)
        if row["unclear_wakes"]:
            return
        self.assertLess(self.slept(row), asked + SLACK, row)
        for told in row, recorded:
            self.assertGreater(told["ready_ns"], able - SLACK, told)

    @on_tiers("bpf", "daemon")
    @steady
    def test_of_a_thread_that_sleeps_already(self, tier):
        program, (pid,) = self.start("moved_asleep", 4, 400, user=self.user_of(tier))
        rows = self.document(tier, "stat", "-p", pid, "--for", 1.3)["threads"]
        *_, most, _ = self.told(program.stdout.readline())
        row = next(row for row in rows if row["comm"] == "sleeper")
        self.assertLess(row["ready_ns"], most + SLACK, row)

    @on_tiers("bpf")
    @steady
    def test_of_moves_that_are_not_reported(self, tier):
        printed = subprocess.run([self.program("moves_unseen"), "sleeper", self.program("moved_asleep"), "8", "100"],
                                 capture_output=True, text=True, timeout=60, check=True).stdout
        lines = printed.splitlines()
        _, able, most, asked = self.told(lines[1])
        ready, slept, wait, unclear = (int(word) for word in lines[2].split())
        self.assertLess(ready, most + SLACK, (tier, printed))
        self.assertGreater(ready + wait, able + asked - SLACK, printed)
        self.assertGreaterEqual(slept, asked - MS, printed)
        self.assertGreaterEqual(unclear, 1, printed)


if __name__ == "__main__":
    unittest.main()
