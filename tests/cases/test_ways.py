#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One load, and all commands asked about it: stat, why, top -b and record with report say the same cause of each
thread, and nothing else.

Witness: the program, each of whose threads waits in one way alone and is called so."""
import unittest

from house import House, on_tiers

WAYS = "sleep", "futex", "pipe", "epoll", "poll"
FOR = 0.5


class Ways(House):
    def only(self, name, causes, where):
        """Of the times by cause of a thread's waits nearly all is its own; what it was held up by besides, page faults
        and the like, may take a little on a busy machine."""
        whole = sum(causes.values())
        self.assertGreater(whole, 0, (where, name))
        self.assertGreater(causes.get(name, 0), 0.9 * whole, (where, name, causes))

    def stat(self, tier, pid):
        rows = self.document(tier, "stat", "-p", pid, "--for", FOR)["threads"]
        return {row["comm"]: {wait["cause"]: wait["ns"] for wait in row["waits"]} for row in rows}

    def why(self, tier, pid):
        process, = self.document(tier, "why", "-p", pid, "--for", FOR)["processes"]
        return {cause["cause"]: cause["ns"] for cause in process["causes"]}

    def record(self, tier, pid):
        report = self.recorded(tier, "--for", FOR, "-p", pid)
        self.assertEqual(report["facts"]["switch_source"], {"bpf": "eBPF", "daemon": "prcbd"}[tier])
        return {wait["cause"]: wait["ns"] for wait in report["waits"] if wait["state"] == "waiting"}

    @on_tiers("bpf", "daemon")
    def test_all_commands(self, tier):
        _, (pid,) = self.start("ways", user=self.user_of(tier))
        by_thread = self.stat(tier, pid)
        for name in WAYS:
            self.only(name, by_thread[name], "stat")
        # The first thread sleeps, too. By process all ways together are all.
        whole = {}
        for causes in by_thread.values():
            for cause, ns in causes.items():
                whole[cause] = whole.get(cause, 0) + ns
        for where, causes in ("stat", whole), ("why", self.why(tier, pid)), ("report", self.record(tier, pid)):
            known = sum(causes.get(name, 0) for name in WAYS)
            self.assertGreater(known, 0.9 * sum(causes.values()), (where, causes))
            for name in WAYS:
                share = causes.get(name, 0) / known
                wanted = (2 if name == "sleep" else 1) / (len(WAYS) + 1)
                self.assertTrue(0.7 * wanted < share < 1.3 * wanted, (where, name, causes))
        lines = [line.split() for line in self.top(tier, "-i", "-n", 3, "-d", 0.2, "-p", pid).splitlines()]
        for name in WAYS:
            now = {words[3] for words in lines if len(words) > 4 and words[0] == str(pid) and words[2] == name}
            self.assertIn(name, now, lines)
            self.assertFalse(now & (set(WAYS) - {name}), lines)


if __name__ == "__main__":
    unittest.main()
