#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Recordings of an ordinary user's: switches with causes and wakers, from prcbd. Witnesses: what the
recorded program does, and the kernel's own counts of its switches, which it prints."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
from case import Case, end  # pylint: disable=wrong-import-position
from wire import OTHER, Client, Rings  # pylint: disable=wrong-import-position

PRCB = os.environ["PRCB"]
# Where every user may run it; that of a user's home may not be.
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
ROUNDS, SLEEPS = 500, 20
tearDownModule = case.stop_daemons  # pylint: disable=invalid-name

# Two threads that wait for each other on pipes, and the first one that sleeps. Each prints its
# number, how often the kernel switched it out, and how often of these it did so to wait.
PROGRAM = f"""
import json, os, threading, time
there, back = os.pipe(), os.pipe()
result = {{}}

def count():
    with open(f"/proc/thread-self/status", encoding="ascii") as file:
        counts = [int(line.split()[1]) for line in file if "ctxt_switches" in line]
    return sum(counts), counts[0]  # all, and those that were voluntary

def ask():
    for _ in range({ROUNDS}):
        os.write(there[1], b"x")
        os.read(back[0], 1)
    result["ask"] = threading.get_native_id(), *count()

def answer():
    for _ in range({ROUNDS}):
        os.read(there[0], 1)
        os.write(back[1], b"y")
    result["answer"] = threading.get_native_id(), *count()

threads = [threading.Thread(target=way) for way in (ask, answer)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
slept = count()[1]
for _ in range({SLEEPS}):
    time.sleep(0.002)
result["slept"] = count()[1] - slept  # without a processor for as long, it is over before it begins
print(json.dumps(dict(result, pid=os.getpid())))
"""

# As fast as they can, until they are ended.
STORM = """
import os
there, back = os.pipe(), os.pipe()
if os.fork():
    while True:
        os.write(there[1], b"x")
        os.read(back[0], 1)
os.close(there[1])  # so that it ends with the other
while os.read(there[0], 1):
    os.write(back[1], b"y")
"""


class Records(Case):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="prcb-records-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.chown(self.folder, OTHER, OTHER)
        self.file = self.folder / "recording"

    def start(self, *arguments):
        process = subprocess.Popen(
            [PRCB, "record", "-o", self.file, *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=os.environ | {"PRCB_SOCKET": self.path},
            preexec_fn=lambda: wire.become(OTHER, OTHER))
        self.addCleanup(end, process.pid)
        return process

    def record(self, *arguments):
        """What the program printed, and what prcb said."""
        process = self.start(*arguments)
        out, words = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, words)
        return out, words

    def rows(self, query, *values):
        """Read by the recorder's user: root's SQLite makes the files beside a database root's, and changes their
        owner only then, so a recorder that opens them in between may not."""
        def read():
            with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as database:
                return database.execute(query, values).fetchall()
        return wire.as_user(OTHER, read)

    def facts(self):
        return dict(self.rows("SELECT name, value FROM facts"))

    def thread(self, tid):
        return self.rows("SELECT id FROM threads WHERE tid = ?", tid)[0][0]

    def check(self, told):
        """The recording of PROGRAM, which told this."""
        facts = self.facts()
        self.assertEqual((facts["switch_source"], facts["wakers"]), ("prcbd", "1"))
        self.assertEqual(self.rows("SELECT * FROM losses"), [])
        self.assertEqual(self.rows("SELECT DISTINCT pid FROM threads"), [(told["pid"],)])
        ids = {way: self.thread(told[way][0]) for way in ("ask", "answer")}
        for way, partner in ("ask", "answer"), ("answer", "ask"):
            # By the kernel; it goes on to be switched a few times until it has ended.
            outs = self.rows("SELECT count(*) FROM switches WHERE old_thread = ?", ids[way])[0][0]
            self.assertGreaterEqual(outs, told[way][1])
            self.assertLessEqual(outs, told[way][1] + 30)
            # An answer may be there before it is waited for, and the interpreter's lock is waited for instead:
            # as many waits as the kernel counted, and some of them for the pipe.
            waited = self.rows("SELECT count(*) FROM switches WHERE old_thread = ? AND cause NOT IN "
                               "('quantum', 'preempted', 'yield')", ids[way])[0][0]
            self.assertGreaterEqual(waited, told[way][2] - 2)
            self.assertLessEqual(waited, told[way][2] + 30)
            waits = self.rows("SELECT cause, waker FROM (SELECT old_thread IS NOT NULL AND "
                              "old_thread = ?1 AS left, lag(cause) OVER (ORDER BY time_ns) AS cause,"
                              " waker, new_thread FROM switches WHERE old_thread = ?1 OR "
                              "new_thread = ?1) WHERE new_thread = ?1 AND cause = 'pipe'", ids[way])
            self.assertGreater(len(waits), 0)
            self.assertLessEqual(len(waits), ROUNDS)
            wakers = dict(self.rows("SELECT id, thread FROM wakers WHERE thread IS NOT NULL"))
            by_partner = sum(wakers.get(waker) == ids[partner] for _, waker in waits)
            self.assertEqual(by_partner, len(waits), self.rows("SELECT * FROM wakers"))
        sleeps = self.rows("SELECT count(*) FROM switches WHERE cause = 'sleep'")[0][0]
        self.assertGreaterEqual(sleeps, min(SLEEPS, told["slept"]))
        self.assertGreaterEqual(sleeps, SLEEPS // 2)
        timers = self.rows("SELECT count(*) FROM switches JOIN wakers ON wakers.id = waker "
                           "WHERE wakers.by = 'timer'")[0][0]
        self.assertGreaterEqual(timers, SLEEPS // 2)

    def test_a_command_with_stacks_and_without(self):
        for more in ("-g",), ():
            with self.subTest(more=more):
                out, words = self.record(*more, "--", PYTHON, "-c", PROGRAM)
                self.assertIn("switches by prcbd", words)
                self.check(json.loads(out))

    def recorded(self, text):
        """(the program, the recorder of it): the program began when the recording had."""
        reader, writer = os.pipe()
        go = f"import os; os.read({reader}, 1)\n"
        program = subprocess.Popen([PYTHON, "-c", go + text], stdout=subprocess.PIPE,
                                   pass_fds=(reader,), text=True,
                                   preexec_fn=lambda: wire.become(OTHER, OTHER))
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        recorder = self.start("-g", "-p", str(program.pid))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not self.begun():
            time.sleep(0.01)
        os.write(writer, b"x")
        os.close(writer)
        os.close(reader)
        return program, recorder

    def begun(self):
        try:
            return "start_ns" in self.facts()
        except AssertionError:  # sqlite3.Error over there: there is no table yet
            return False

    def finish(self, recorder):
        _, words = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, words)

    def test_a_process_that_runs(self):
        program, recorder = self.recorded(PROGRAM)
        out, _ = program.communicate(timeout=60)
        self.finish(recorder)  # with the program
        self.check(json.loads(out))

    def test_who_cannot_keep_up_says_what_is_lost(self):
        program, recorder = self.recorded(STORM)
        deadline, lost = time.monotonic() + 30, None
        while time.monotonic() < deadline and not lost:
            recorder.send_signal(signal.SIGSTOP)
            time.sleep(0.5)  # of the storm, until a ring is full
            recorder.send_signal(signal.SIGCONT)
            time.sleep(0.2)
            lost = self.rows("SELECT sum(count) FROM losses WHERE what = 'switches'")[0][0]
        recorder.send_signal(signal.SIGINT)
        self.finish(recorder)
        program.kill()
        self.assertTrue(lost, "no loss was told")
        times = [row[0] for row in self.rows("SELECT time_ns FROM switches ORDER BY rowid")]
        self.assertGreater(len(times), 1000)
        self.assertEqual(times, sorted(times))

    def test_with_no_room_for_more_the_perf_ring_does_it(self):
        def work():
            return [Client(self.path).open(1, flags=Rings.SWITCHES) for _ in range(2)], 0
        self.hold(work, OTHER)
        out, words = self.record("-g", "--", PYTHON, "-c", PROGRAM)
        self.assertIn("by the perf ring, without wait reasons", words)
        self.assertNotIn("no stacks", words)
        self.assertEqual(self.facts()["switch_source"], "perf ring")
        self.assertTrue(json.loads(out))


if __name__ == "__main__":
    unittest.main()
