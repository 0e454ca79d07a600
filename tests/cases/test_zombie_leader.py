#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The first thread has ended: everything about its process is read through one that lives.

Witness: the program, which knows in which function each of its threads is, and the kernel's sum of the run time of
one that computes."""
import pathlib
import unittest

from house import House, await_true, on_tiers, state_of


def functions(stack):
    return [frame["function"] for frame in stack.get("frames", [])]


def run_ns(pid, tid):
    return int(pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text(encoding="ascii").split()[0])


class ZombieLeader(House):
    def begin(self, tier):
        _, (pid, holder, computer) = self.start("zombie_leader", user=self.user_of(tier))
        await_true(lambda: state_of(pid) == "Z", "the first thread has ended")
        return pid, holder, computer

    @on_tiers("bpf", "daemon", "perf")
    def test_why_has_stacks_locks_and_holders(self, tier):
        pid, holder, _ = self.begin(tier)
        report = parts = None

        def seen():
            """Who sleeps 5 ms at a time may not be met asleep in one look at a busy machine."""
            nonlocal report, parts
            report = self.document(tier, "why", "--objects", "-p", pid, "--for", 0.3)
            parts = {name: part for cause in report["processes"][0]["causes"] for part in cause["stacks"]
                     for name in functions(part)}
            return tier == "perf" or "napper" in parts
        await_true(seen, "the stack of who sleeps")
        self.assertTrue(parts["hold_it"]["complete"], parts["hold_it"])
        self.assertEqual(parts["want_it"]["word"], "mutex")
        now = {row["tid"]: row for row in report["processes"][0]["now"]}
        self.assertIn("hold_it", functions(now[holder]))
        chain = self.document(tier, "why", "--chain", "-p", pid)
        held = [row["held_by"] for row in chain["threads"] if row["comm"] == "waiter"]
        self.assertEqual(held, [holder])
        symbols = [(row["object"] or {}).get("symbol") for row in chain["threads"] if row["comm"] == "waiter"]
        self.assertEqual(symbols, ["ledger"])

    @on_tiers("bpf", "daemon", "perf")
    def test_recordings_have_the_names_of_functions(self, tier):
        pid, _, _ = self.begin(tier)
        report = self.recorded(tier, "-p", pid, "--", "sleep", "0.3")
        self_ns = {row["function"]: row["self"] for row in report["functions"]}
        self.assertGreater(self_ns.get("compute", 0), 0.8 * report["weight"], self_ns)
        self.assertNotIn(None, self_ns)

    @on_tiers("bpf", "daemon", "perf")
    def test_stat_and_top_see_every_thread(self, tier):
        pid, _, computer = self.begin(tier)
        before = run_ns(pid, computer)
        report = self.document(tier, "stat", "-p", pid, "--for", 0.3)
        after = run_ns(pid, computer)
        rows = {row["comm"]: row for row in report["threads"]}
        self.assertLessEqual({"holder", "waiter", "napper", "computer"}, rows.keys())
        # The kernel's sum is up to a tick behind while it runs.
        self.assertLessEqual(rows["computer"]["run_ns"], after - before + 20_000_000)
        self.assertGreater(rows["computer"]["run_ns"], 0)
        text = self.top(tier, "-n", 1, "-d", 0.3, "--idle", "-p", pid)
        row = next(line for line in text.splitlines() if " computer " in line)
        command = row.split()[-1]  # cut off where the table ends
        self.assertTrue(self.program("zombie_leader").startswith(command), row)


if __name__ == "__main__":
    unittest.main()
