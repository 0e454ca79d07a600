#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb report begins with what held the threads up, in the sentences of prcb why.

Witness: recordings that nobody made, whose times are known to the nanosecond."""
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest

from made_recording import PROCESSOR, statements

PRCB = os.environ["PRCB"]
MS = 1_000_000
START = 10_000 * MS
FUNCTIONS = {"nap": 1, "take_order": 2, "work": 3, "main": 4, "burn": 5, "serve": 6}


def prcb(*args):
    return subprocess.run([PRCB, *args], capture_output=True, text=True, timeout=60, check=False, errors="surrogateescape",
                          env=os.environ | {"COLUMNS": "1000"})


class Verdict(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "made.db")
        self.db = sqlite3.connect(self.path)
        self.addCleanup(self.db.close)
        self.db.executescript(f"PRAGMA application_id = {0x50524342}; PRAGMA user_version = 1; PRAGMA journal_mode = OFF; " +
                              statements() + f"CREATE TABLE processor_times({', '.join(PROCESSOR)});")
        self.db.executemany("INSERT INTO functions(id, name, file) VALUES(?,?,'/usr/bin/made')",
                            [(number, name) for name, number in FUNCTIONS.items()])
        self.stacks = {}

    def thread(self, number, pid, tid, name, state="waiting", cause="futex"):
        self.db.execute("INSERT INTO threads(id, pid, tid, parent_pid, name, start_ns, start_state, start_cause, start_reason) "
                        "VALUES(?,?,?,1,?,?,?,?,0)", (number, pid, tid, name, START, state, cause))

    def stack(self, *names):
        """Innermost first."""
        caller = None
        for depth in range(len(names), 0, -1):
            key = names[depth - 1:]
            if key not in self.stacks:
                self.stacks[key] = len(self.stacks) + 1
                self.db.execute("INSERT INTO stacks(id, caller, kernel, address) VALUES(?,?,0,4096)", (self.stacks[key], caller))
                self.db.execute("INSERT INTO stack_functions(stack, function) VALUES(?,?)", (self.stacks[key], FUNCTIONS[names[depth - 1]]))
            caller = self.stacks[key]
        return caller

    def waits(self, thread, at, kind, word, *names):
        self.db.execute("INSERT INTO wait_stacks(time_ns, thread, stack, missing, kind, word, one_in) VALUES(?,?,?,NULL,?,?,1)",
                        (START + at * MS, thread, self.stack(*names), kind, word))

    def switch(self, at, cpu, old, new, state=None, cause=None, ready=None, waker=None):
        self.db.execute("INSERT INTO switches(time_ns, cpu, old_thread, new_thread, state, cause, reason, ready_ns, waker, woken_ns, "
                        "woken_cpu) VALUES(?,?,?,?,?,?,0,?,?,?,0)",
                        (START + at * MS, cpu, old, new, state, cause, None if ready is None else ready * MS, waker,
                         None if waker is None else START + (at - (ready or 0)) * MS))

    def end(self, at, **more):
        facts = {"start_ns": START, "end_ns": START + at * MS, "complete": 1, "switch_source": "eBPF", "sample_source": "none",
                 "event": "cpu-clock", "stacks": 1, "wait_stacks": 1, "wakers": 1, "scope": "system", "format_version": 1,
                 "clock": "CLOCK_MONOTONIC"} | more
        self.db.executemany("INSERT INTO facts(name, value) VALUES(?,?)", [(name, str(value)) for name, value in facts.items()])
        self.db.commit()

    def said(self):
        """The sentences, which all three forms have."""
        text = prcb("report", self.path)
        self.assertEqual(text.returncode, 0, text.stderr)
        lines = text.stdout.split("\n\n")[0].splitlines()
        whole = [line["text"] for line in json.loads(prcb("report", "-j", self.path).stdout)["verdict"]]
        brief = [line["text"] for line in json.loads(prcb("report", "--brief", self.path).stdout)["verdict"]]
        self.assertEqual(lines, whole)
        self.assertEqual(brief[:len(whole)], whole)
        return lines

    def test_a_lock(self):
        """Two workers wait 80 of 100 ms each; a pool that idles by design waits longer, and is not named."""
        self.thread(1, 100, 100, "shop", cause="sleep")
        self.thread(2, 100, 101, "worker-1")
        self.thread(3, 100, 102, "worker-2")
        self.thread(4, 100, 103, "keeper")
        for number in range(5, 10):
            self.thread(number, 100, 99 + number, f"pool-{number}")
            self.waits(number, 0, "idle", "thread pool", "serve", "main")
        self.waits(2, 0, "blocked", "mutex", "take_order", "work", "main")
        self.waits(3, 0, "blocked", "mutex", "take_order", "work", "main")
        self.db.execute("INSERT INTO wakers(id, by, thread, pid, tid, name) VALUES(1, 'thread', 4, 100, 103, 'keeper')")
        self.switch(80, 0, None, 2, ready=0, waker=1)
        self.switch(80, 1, None, 3, ready=0, waker=1)
        self.end(100)
        self.assertEqual(self.said()[0], "100 % of the waiting: 2 threads (worker-*) wait for a mutex in take_order(), called by "
                                         "work(); its holder is not known, keeper (103) ended most of these waits.")

    def test_who_had_the_processor(self):
        """Ready time is divided among all that ran there meanwhile, not given to the last of them."""
        self.thread(1, 100, 100, "price", "ready", "preempted")
        self.thread(2, 200, 200, "reports", "ready", "preempted")
        self.thread(3, 300, 300, "backup", "ready", "preempted")
        self.switch(0, 0, None, 2, ready=0)
        self.switch(60, 0, 2, 3, "waiting", "disk", ready=60)
        self.switch(90, 0, 3, 1, "waiting", "disk", ready=90)
        self.switch(100, 0, 1, None, "waiting", "disk")
        self.end(100)
        self.db.execute("DELETE FROM threads WHERE id = 3") # who is in no table is nobody that is known
        self.db.commit()
        said = [line for line in self.said() if line.split(": ")[1].startswith("price")]
        self.assertRegex(said[0], r"price \(100\) is ready and has no processor, behind reports \(200\) for 67 % of that\.$")

    def test_many_had_the_processor(self):
        """Each of twenty recorded threads had a twentieth; what has no row has all of it."""
        self.thread(1, 100, 100, "price", "ready", "preempted")
        for number in range(2, 23):
            at = 5 * (number - 2)
            if number < 22:
                self.thread(number, 100 * number, 100 * number, f"job-{number}")
                self.waits(number, 0, "idle", "thread pool", "serve", "main")
                self.waits(number, at + 5, "idle", "thread pool", "serve", "main")
            self.switch(at, 0, number - 1 if number > 2 else None, number if number < 22 else 1, "waiting", "futex",
                        ready=100 if number == 22 else 0)
        self.end(110)
        self.assertRegex("".join(self.said()), r"price \(100\) is ready and has no processor, behind many others\.")
        self.db.execute("DELETE FROM switches")
        self.switch(100, 0, None, 1, ready=100)
        self.db.commit()
        self.assertRegex("".join(self.said()), r"price \(100\) is ready and has no processor, behind what is not in the recording\.")

    def test_it_runs(self):
        self.thread(1, 100, 100, "burner", "running", None)
        self.switch(0, 0, None, 1, ready=0)
        self.switch(95, 0, 1, None, "waiting", "disk")
        for at in range(4):
            names = ("burn", "main") if at else ("main",)
            self.db.execute("INSERT INTO samples(time_ns, thread, cpu, weight, stack) VALUES(?,1,0,1000000,?)",
                            (START + 10 * at * MS, self.stack(*names)))
        self.end(100, sample_source="perf ring")
        self.assertEqual(self.said()[0], "It runs rather than waits: 95 % of the time that it did not idle was spent on a processor "
                                         "(95.0ms); 75 % of the samples are in burn.")

    def test_a_name_that_changed(self):
        """What ran another program, and so has two rows, is one thread by its last name."""
        self.thread(1, 100, 100, "sh", cause="disk")
        self.thread(2, 100, 100, "tar", cause="disk")
        self.switch(40, 0, None, 1, ready=0)
        self.switch(90, 1, None, 2, ready=0)
        self.switch(100, 0, 1, None, "waiting", "disk")
        self.end(100)
        self.assertEqual(self.said()[0].split(": ")[1], "tar (100) waits for storage.")

    def test_what_a_child_does(self):
        """Who waits for a busy child, or for data that it is to write, is no answer: the child is."""
        for number, name, cause in (1, "make", "child"), (2, "wc", "pipe"), (3, "gzip", None):
            self.thread(number, 100 * number, 100 * number, name, "running" if cause is None else "waiting", cause)
            self.db.execute("INSERT INTO wakers(id, by, thread, pid, tid, name) VALUES(?, 'thread', ?, ?, ?, ?)",
                            (number, number, 100 * number, 100 * number, name))
        self.switch(0, 0, None, 3, ready=0)
        self.switch(95, 1, None, 2, ready=0, waker=3)
        self.switch(98, 0, 3, 1, "waiting", "disk", ready=0, waker=2)
        self.end(100)
        said = self.said()
        self.assertTrue(said[0].startswith("They run rather than wait: "), said)
        self.assertIn("by gzip (300)", said[0])
        self.assertFalse([line for line in said if "child" in line or "pipe" in line], said)

    def test_nothing_holds_it_up(self):
        self.thread(1, 100, 100, "pool")
        self.waits(1, 0, "idle", "thread pool", "serve", "main")
        self.switch(99, 0, None, 1, ready=0)
        self.end(100)
        self.assertEqual(self.said(), ["Nothing holds it up: it waited for work for 99 % of its time, and ran for 1.0 %."])

    def test_what_is_not_known(self):
        """Without stacks and causes nothing is made up; a name from outside moves no cursor."""
        self.thread(1, 100, 100, "na\x1b[2Jme", cause=None)
        self.switch(90, 0, None, 1, ready=40)
        self.end(100, wait_stacks=0)
        self.assertEqual(len(self.said()), 1)
        self.assertNotIn("\x1b", prcb("report", self.path).stdout)
        self.assertRegex(self.said()[0], r"^\d+ % of (the|all) waiting")

    def test_no_switches(self):
        self.end(100, switch_source="none", sample_source="perf ring")
        result = prcb("report", self.path)
        self.assertTrue(result.stdout.startswith("0 samples of cpu-clock"), result.stdout)
        self.assertFalse(json.loads(prcb("report", "-j", self.path).stdout)["verdict"])


if __name__ == "__main__":
    unittest.main()
