#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A thread that the kernel moves while it sleeps is not ready before it is woken.

Witness: the thread, which measures by its own clocks how long it was off the processor while it was able to run. The
kernel's own run-queue delay says that what is meant did happen: it has whole sleeps in it."""
import unittest

from house import House, on_tiers, steady

MS = 1_000_000
SLACK = 20 * MS  # between the thread's clock and the switch, of all sleeps together


class MovedAsleep(House):
    def told(self, line):
        """How many sleeps the kernel counted as delay, how long the thread was ready, how long it asked to sleep."""
        counted, able, asked = (int(word) for word in line.split())
        if not asked:
            self.skipTest("needs two processors")
        if not counted:
            self.skipTest("this kernel counts no sleep as run-queue delay (it does from Linux 6.12 on)")
        return counted, able, asked

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

    @on_tiers("bpf", "daemon")
    @steady
    def test_ready_is_what_the_thread_measured(self, tier):
        (counted, able, asked), row, recorded = self.both(tier)
        for told in row, recorded:
            self.assertLess(told["ready_ns"], able + SLACK, told)
            # What follows a wait whose end was not seen is in the wait, and said.
            self.assertGreater(told["ready_ns"] + told["wait_ns"], able + asked - SLACK, told)
        self.assertGreaterEqual(self.slept(row), asked, row)
        self.assertLess(self.slept(row), asked + able + SLACK, row)
        self.assertGreaterEqual(row["unclear_wakes"], 1, (counted, row))

    @on_tiers("bpf", "daemon")
    @steady
    def test_with_wakers_nothing_is_unclear(self, tier):
        (_, able, asked), row, recorded = self.both(tier, "--by-whom")
        self.assertLess(abs(self.slept(row) - asked), SLACK, row)
        self.assertEqual(row["unclear_wakes"], 0, row)
        for told in row, recorded:
            self.assertLess(abs(told["ready_ns"] - able), SLACK, told)

    @on_tiers("bpf", "daemon")
    @steady
    def test_of_a_thread_that_sleeps_already(self, tier):
        program, (pid,) = self.start("moved_asleep", 4, 400, user=self.user_of(tier))
        rows = self.document(tier, "stat", "-p", pid, "--for", 1.3)["threads"]
        _, able, _ = self.told(program.stdout.readline())
        row = next(row for row in rows if row["comm"] == "sleeper")
        self.assertLess(row["ready_ns"], able + SLACK, row)


if __name__ == "__main__":
    unittest.main()
