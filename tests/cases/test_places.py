#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Waits whose system call alone does not say what they are for, in stat, why, top and record.

Witness: the program, which made those waits, and /proc/PID/task/TID/stack, which root may read."""
import re
import time
import unittest

from house import House, await_true, on_tiers, state_of

# How, the cause, and a function of the kernel on the way to the wait, if there is one to be seen.
PLACES = {
    "client": ("socket", None),
    "writer": ("pipe", None),
    "linger": ("close", "tcp_close"),
    "supervisor": ("supervisor", "seccomp"),
    "exec": ("exec", "begin_new_exec|de_thread|load_elf_binary"),
    "fault": ("page-fault", "handle_userfault"),
    "read": ("device", "handle_userfault"),
}
# What the kernel's functions say, of those.
WORDS = {"linger": "linger: data to be taken by the peer", "supervisor": "supervisor (seccomp)",
         "fault": "handler of userfaultfd", "read": "handler of userfaultfd"}


class Places(House):
    def begin(self, tier):
        """The numbers of the one that waits and of who is waited for, by how."""
        begun = {}
        for how in PLACES:
            _, numbers = self.start("places", how, *([self.user_of(tier)] if self.user_of(tier) else []))
            if numbers:  # else the kernel lacks what it needs
                begun[how] = numbers
        for how, (waiter, _) in begun.items():
            await_true(lambda pid=waiter: state_of(pid) in ("S", "D"), f"{how}: it waits")
        time.sleep(0.3)  # until it is that wait: these have no other sign
        return begun

    @on_tiers("bpf", "daemon")
    def test_causes(self, tier):
        begun = self.begin(tier)
        self.assertIn("supervisor", begun)
        pids = ",".join(str(waiter) for waiter, _ in begun.values())
        report = self.document(tier, "why", "--objects", "-p", pids, "--for", 0.3, "--top", 0)
        stat = self.document(tier, "stat", "-p", pids, "--for", 0.3)
        top = self.top(tier, "-n", 1, "-d", 0.3, "--idle", "-p", pids)
        threads = {row["tid"]: row for row in stat["threads"]}
        processes = {row["pid"]: row for row in report["processes"]}
        for how, (waiter, _) in begun.items():
            with self.subTest(how=how):
                self.check(how, waiter, threads[waiter], processes[waiter], top)

    def check(self, how, waiter, thread, process, top):
        cause, function = PLACES[how]
        waits = {row["cause"]: row["ns"] for row in thread["waits"]}
        opened = thread["open"] or {"cause": None, "ns": 0}
        waits[opened["cause"]] = waits.get(opened["cause"], 0) + opened["ns"]
        self.assertEqual(max(waits, key=waits.get), cause, waits)
        causes = {row["cause"]: row for row in process["causes"]}
        self.assertGreater(causes[cause]["ns"], 0.2e9, causes)
        row = next((line for line in top.splitlines() if re.match(rf" *{waiter} +{waiter} ", line)), top)
        self.assertIn(f" {cause} ", row)
        names = [frame["function"] or ""
                 for part in causes[cause]["stacks"] for frame in part.get("frames") or []]
        words = {part.get("word") for part in causes[cause]["stacks"]}
        if how in WORDS:
            self.assertIn(WORDS[how], words)
        if function:
            self.assertTrue(re.search(function, " ".join(names)), names)

    @on_tiers("bpf", "daemon")
    def test_recordings(self, tier):
        for how in ("supervisor", "writer"):
            with self.subTest(how=how):
                user = [self.user_of(tier)] if self.user_of(tier) else []
                _, (waiter, _) = self.start("places", how, *user)
                await_true(lambda pid=waiter: state_of(pid) == "S", "it waits")
                report = self.recorded(tier, "-p", waiter, "--", "sleep", "0.4")
                waits = {row["cause"]: row["ns"] for row in report["waits"] if row["state"] == "waiting"}
                self.assertEqual(max(waits, key=waits.get), PLACES[how][0], waits)


if __name__ == "__main__":
    unittest.main()
