#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who it is that a wait is for, in another process: its number, and what became of it.

Witness: the program, which made those processes and prints their numbers."""
import os
import re
import shutil
import tempfile
import time
import unittest

from house import House, await_true, on_tiers, state_of


def keeps_blockers():
    try:
        with open("/sys/kernel/btf/vmlinux", "rb") as types:
            return b"\0blocker\0" in types.read()
    except OSError:
        return False


class Holders(House):
    def begin(self, tier, how, *more):
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        user = self.user_of(tier)
        if user:
            os.chown(folder, user, user)
        path = [os.path.join(folder, name) for name in more]
        _, (waiter, other) = self.start("holders", how, *path, user=user)
        await_true(lambda: state_of(waiter) == "S", "it waits")
        time.sleep(0.05)  # it sleeps before too, for a byte of the other one
        return waiter, other, path

    def rows(self, tier, waiter):
        report = self.document(tier, "why", "--objects", "-p", waiter, "--for", 0.3)
        process = next(row for row in report["processes"] if row["pid"] == waiter)
        now = next(row for row in process["now"] if row["tid"] == waiter)
        held = [row for cause in process["causes"] for row in cause["held_by"] if row["tid"]]
        return now.get("object") or {}, held

    @on_tiers("bpf", "daemon")
    def test_mutexes(self, tier):
        for how, words in {"live": r"^holder \(%d\)$", "dead": r"^thread \(%d\) \(has ended: nobody will release it",
                           "fork": r"^\w+ \(%d\) \(of the process that this one was forked from"}.items():
            with self.subTest(how=how):
                waiter, other, _ = self.begin(tier, how)
                _, held = self.rows(tier, waiter)
                self.assertEqual([row["tid"] for row in held], [other])
                self.assertRegex(held[0]["name"], words % other)

    @on_tiers("bpf", "daemon")
    def test_file_locks(self, tier):
        for how in ("flock", "posix", "ofd"):
            with self.subTest(how=how):
                waiter, other, path = self.begin(tier, how, "lock")
                thing, held = self.rows(tier, waiter)
                self.assertEqual(thing["name"], path[0])
                self.assertEqual([row["name"] for row in held], [f"holder ({other})"])

    @on_tiers("bpf", "daemon", "perf")
    def test_pipes_sockets_and_children(self, tier):
        waiter, other, _ = self.begin(tier, "pipe")
        self.assertEqual(self.rows(tier, waiter)[0].get("detail"), f"read by reader ({other})")
        waiter, other, path = self.begin(tier, "connect", "socket")
        self.assertEqual(self.rows(tier, waiter)[0].get("detail"), f"to unix {path[0]}")
        waiter, other, _ = self.begin(tier, "child")
        text = self.prcb(tier, "why", "--objects", "--tier", tier, "-p", waiter, "--for", 0.2)
        self.assertTrue(re.search(rf"waits for process sleeper \({other}\) \(it sleeps", text), text)

    @on_tiers("bpf", "daemon")
    def test_a_mutex_of_the_kernel_since_before(self, tier):
        if not keeps_blockers():
            self.skipTest("the kernel does not keep what a thread sleeps for (Linux 6.16)")
        _, (holder, waiter) = self.start("mutex_hang", user=self.user_of(tier))
        await_true(lambda: state_of(waiter) == "D", "it hangs")
        report = self.document(tier, "why", "-p", waiter, "--for", 0.2)
        now = next(row for row in report["processes"] if row["pid"] == waiter)["now"][0]
        self.assertEqual((now["cause"], now["held_by"]), ("mutex", holder))
        text = self.prcb(tier, "stat", "--tier", tier, "-p", waiter, "--for", 0.2)
        self.assertIn("waiting for a kernel mutex", text)
        self.chain(tier, waiter, holder, f"{waiter},{holder}")
        self.assertEqual(state_of(waiter), "D")

    def chain(self, tier, waiter, holder, pids):
        report = self.document(tier, "why", "--chain", "-p", pids)
        row = next(row for row in report["threads"] if row["tid"] == waiter)
        self.assertEqual(row["held_by"], holder, row)

    @on_tiers("bpf", "daemon")
    def test_chains(self, tier):
        waiter, other, _ = self.begin(tier, "flock", "lock")
        self.chain(tier, waiter, other, f"{waiter},{other}")
        self.chain(tier, waiter, other, waiter)
        text = self.prcb(tier, "why", "--chain", "--tier", tier, "-p", waiter)
        self.assertRegex(text, rf"(?m)^chain: holder \({other}\) holds up\n +waiter \({waiter}\)  file-lock ")
        waiter, other, _ = self.begin(tier, "child")
        self.chain(tier, waiter, other, f"{waiter},{other}")


if __name__ == "__main__":
    unittest.main()
