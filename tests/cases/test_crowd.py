#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A cause with one waker keeps it, however many wake the thread from other waits or have its processor.

Witness: the program, in which one thread alone writes to the eventfd."""
import os
import unittest

from house import PROGRAMS, House, on_tiers


class Crowd(House):
    @on_tiers("bpf", "daemon")
    def test_a_small_cause_keeps_its_waker(self, tier):
        rows = self.document(tier, "stat", "--by-whom", "--", os.path.join(PROGRAMS, "crowd"))["threads"]
        row = next(row for row in rows if row["comm"] == "woken")
        total = next(wait for wait in row["waits"] if wait["cause"] == "eventfd")
        edge = next((edge for edge in row["by_whom"]["woken_by"]["eventfd"] if edge["comm"] == "friend"), None)
        self.assertIsNotNone(edge, row)
        # What came before the edge had a cell, and wakes that came before the wait.
        self.assertGreater(edge["count"], 0.9 * total["count"], row)
        self.assertGreater(edge["ns"], 0.9 * total["ns"], row)


if __name__ == "__main__":
    unittest.main()
