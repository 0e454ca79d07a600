#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of waits by prcbd: of one's own threads, as an ordinary user, with the kernel's part by
name; nobody else's. Witness: the functions that the waiter is known to wait in."""
import json
import os
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
from case import Case, end  # pylint: disable=wrong-import-position
from wire import NOBODY, OTHER, PROCESS, Client, Refused, as_user, used  # pylint: disable=wrong-import-position

PRCB = os.environ["PRCB"]
WAITER = os.environ["STACK_WAITER"]
OBJECTS = os.environ["WHY_OBJECTS"]
TEST_STACKS = os.environ["TEST_STACKS"]
KERNEL_STACK = 9
tearDownModule = case.stop_daemons  # pylint: disable=invalid-name


def ask_kernel_stack(client, key, tid):
    return client.ask(KERNEL_STACK, struct.pack("=QII", key, tid, 0))


class Stacks(Case):
    def waiter(self, way, uid=NOBODY):
        """(pid, tid) of one that waits in that way, as that user."""
        process = subprocess.Popen([WAITER, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, preexec_fn=lambda: wire.become(uid, uid))
        pid, tid = (int(word) for word in process.stdout.readline().split())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while True:
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "SD":
                    return pid, tid

    def why(self, *arguments, uid=NOBODY):
        result = subprocess.run([PRCB, "why", "-j", "--no-whom", "--tier", "daemon", *arguments],
                                capture_output=True, text=True, timeout=60,
                                env=os.environ | {"PRCB_SOCKET": self.path},
                                preexec_fn=lambda: wire.become(uid, uid))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout.splitlines()[-1])

    def test_an_ordinary_users_own(self):
        for way, inner in ("mutex", "by_mutex"), ("poll", "by_poll"), ("terminal", "by_terminal"):
            with self.subTest(way=way):
                pid, tid = self.waiter(way)
                report = self.why("-p", str(pid), "--for", "0.2")
                now = [row for row in report["processes"][0]["now"] if row["tid"] == tid]
                self.assertEqual(len(now), 1, report)
                self.assertTrue(now[0]["complete"], now)
                names = [frame["function"] for frame in now[0]["frames"]]
                wanted = [inner, "inner", "middle", "outer", "run"]
                self.assertEqual([name for name in names if name in wanted], wanted)

    def test_the_kernels_part_by_name(self):
        pid, tid = self.waiter("terminal")
        report = self.why("-p", str(pid), "--for", "0.2")
        frames = next(row for row in report["processes"][0]["now"] if row["tid"] == tid)["frames"]
        if frames[0]["file"] != "[kernel]":
            self.skipTest("the kernel cannot point an iterator at one thread (6.1)")
        names = [frame["function"] for frame in frames]
        self.assertLess(names.index("n_tty_read"), names.index("by_terminal"))
        for frame in frames:
            self.assertNotIn("address", frame)

    def test_what_ones_own_threads_wait_for(self):
        """Of a program that is followed from its start each file is the one that it waits for, and not what
        the descriptor is now. Witness: the program."""
        command = [PRCB, "why", "-j", "--no-whom", "--tier", "daemon", "--objects", "--budget", "100", "--for", "3",
                   "--", OBJECTS]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env=os.environ | {"PRCB_SOCKET": self.path},
                                 preexec_fn=lambda: wire.become(NOBODY, NOBODY))
        self.addCleanup(child.kill)
        with child:
            ways = {}
            for line in iter(child.stdout.readline, "ready\n"):
                way, tid, identity = line.split(" ", 2)
                ways[int(tid)] = way, identity.strip()
            report = json.loads(child.stdout.read().splitlines()[-1])
        found = {ways[row["tid"]]: row["object"] for process in report["processes"] for row in process["now"]
                 if row["tid"] in ways and row["object"]}
        for (way, identity), row in found.items():
            if way in ("pipe", "fifo", "unix", "tcp"):
                self.assertFalse(row["now"], row)
                self.assertTrue(row["name"].startswith(identity), row)
        self.assertLessEqual({"pipe", "fifo", "unix", "tcp", "event", "bss", "heap"}, {way for way, _ in found})

    def test_who_held_the_kernels_lock(self):
        """A pipe's mutex, held by a thread that writes a page which is not there yet: who, and never where the
        lock lies. As root, for the page."""
        for command in [PRCB, "why", "--objects", "--budget", "100"], [PRCB, "stat", "--owners", "--per-thread"]:
            command = [*command, "-j", "--tier", "daemon", "--", OBJECTS, "kernel"]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env=os.environ | {"PRCB_SOCKET": self.path})
            self.addCleanup(child.kill)
            with child:
                tids = {}
                for line in iter(child.stdout.readline, "ready\n"):
                    if not line:
                        self.skipTest("no userfaultfd")
                    tids[line.split()[0]] = int(line.split()[1])
                child.stdin.close()
                text = child.stdout.read()
            self.assertNotRegex(text, r"0x[89a-f][0-9a-f]{15}")
            report = json.loads(text.splitlines()[-1])
            if "processes" in report:
                mutex = next((cause for cause in report["processes"][0]["causes"] if cause["cause"] == "mutex"), None)
                held = mutex and mutex["held_by"]
            else:
                row = next(row for row in report["threads"] if row["tid"] == tids["waiter"])
                held = row["by_whom"]["held_by"].get("mutex")
            if not held:
                self.skipTest("the kernel does not report waits for its locks")
            self.assertEqual((held[0]["tid"], held[0]["count"]), (tids["holder"], 1))

    def test_a_program_of_its_own_waits_there(self):
        """prcb/stack.h on this tier, with the cases of the others."""
        result = subprocess.run([TEST_STACKS, WAITER], capture_output=True, text=True, timeout=60,
                                env=os.environ | {"PRCB_SOCKET": self.path})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("daemon tier", result.stdout + result.stderr)

    def test_nobody_elses(self):
        """Of an account that is not one's own, or a thread that the account is not of."""
        mine, _ = self.waiter("terminal", OTHER)
        _, theirs = self.waiter("terminal", NOBODY)

        def work():
            client = Client(self.path).open(4)
            client.profile(PROCESS, mine)
            client.profile(PROCESS, os.getpid())
            accounts = used(client.map(), 4)
            keys = {account.tid: struct.unpack_from("=I", account.memory, account.at + 4)[0] << 32 | slot
                    for slot, account in enumerate(accounts)}
            refused = 0
            for key, tid in [(key, theirs) for key in keys.values()] + [(1 << 32, theirs),
                                                                      (2, theirs), (1 << 22, theirs)]:
                try:
                    ask_kernel_stack(client, key, tid)
                except Refused:
                    refused += 1
            try:
                ask_kernel_stack(Client(self.path), 1 << 32, theirs)  # without a session
            except Refused:
                refused += 1
            return len(keys), refused
        keys, refused = as_user(OTHER, work)
        self.assertEqual(refused, keys + 4)
        self.served()


if __name__ == "__main__":
    unittest.main()
