#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Python in stacks of waits.

Witness: the interpreter's own sys._current_frames() of the same threads, which do not move.
"""
import collections
import contextlib
import glob
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PRCB = os.environ["PRCB"]
HERE = pathlib.Path(__file__).resolve().parent
ROOT = os.geteuid() == 0
SANITIZED = os.environ.get("SANITIZED") == "1"


def interpreters():
    """By version: this one, the system's and those that pyenv built."""
    found = {}
    for path in [sys.executable, "/usr/bin/python3", *sorted(glob.glob("/root/.pyenv/versions/*/bin/python3"))]:
        said = subprocess.run([path, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
                              capture_output=True, text=True, check=False).stdout.strip()
        if re.fullmatch(r"3\.(9|1[0-4])\..*", said):
            found.setdefault(said, path)
    return found


def newest():
    found = interpreters()
    return found[max(found, key=lambda version: [int(part) for part in version.split(".")])]


def interpreters_once():
    """All, but for a sanitizer the newest: their layouts are read of all where frames are the interpreter's."""
    return {"newest": newest()} if SANITIZED else interpreters()


def python_frames(part):
    """Those of a stack that are an interpreter's."""
    return tuple((frame["function"], frame["file"], frame["line"])
                 for frame in part.get("frames", []) if "line" in frame)


def report_of(pid, *options):
    result = subprocess.run([PRCB, "why", "-j", "-p", str(pid), "--for", "0.3", *options],
                            capture_output=True, text=True, timeout=60, check=True)
    return json.loads(result.stdout)


def all_parts(report, pid):
    return [part for row in report["processes"] if row["pid"] == pid
            for cause in row["causes"] for part in cause["stacks"]]


def stacks_of(pid, *options):
    return [part for part in all_parts(report_of(pid, *options), pid) if part.get("frames")]


# Waits in the same function, called by one that is new each time.
NEW_CALLERS = """
import time
def nap():
    time.sleep(0.0003)
print(flush=True)
kept = []
while True:
    exec("def caller():\\n    nap()")
    kept = [caller, *kept[:9]]
    caller()
"""

# Several interpreters, of which the one in the middle is run by a function of the first.
INTERPRETERS = """
import importlib, sys, time
made = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
numbers = [made.create() for _ in range(3)]
def outer():
    made.run_string(numbers[1], sys.argv[1])
if len(sys.argv) > 1:
    outer()
print(flush=True)
time.sleep(1000)
"""
INNER = "import time\ndef inner():\n    print(flush=True)\n    time.sleep(1000)\ninner()"

# Each thread waits in one line, and says its frames once while both are there.
SHORT_WAITS = """
import json, sys, threading, time
def nap():
    time.sleep(0.0003)
def left():
    while True: nap()
class Right:
    def doze(self):
        time.sleep(0.0003)
    def run(self):
        while True: self.doze()
threads = [threading.Thread(target=left, daemon=True), threading.Thread(target=Right().run, daemon=True)]
for thread in threads:
    thread.start()
def frames(thread):
    while True:
        frame, found = sys._current_frames().get(thread.ident), []
        while frame:
            code = frame.f_code
            found.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
            frame = frame.f_back
        if found and found[0][0] in ("nap", "doze", "Right.doze"):
            return found
print(json.dumps([frames(thread) for thread in threads]), flush=True)
threading.Event().wait()
"""


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
class Frames(unittest.TestCase):
    def waiter(self, path, *arguments):
        process = subprocess.Popen([path, str(HERE / "python_waiter.py"), *arguments],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        witness = {int(tid): [tuple(frame) for frame in frames]
                   for tid, frames in json.loads(process.stdout.readline()).items()}
        return process, witness

    def check(self, pid, witness):
        found = {python_frames(part) for part in stacks_of(pid)}
        for frames in witness.values():
            self.assertIn(tuple(frames), found)

    def test_as_the_interpreter_says(self):
        for version, path in interpreters().items():
            with self.subTest(version=version):
                process, witness = self.waiter(path)
                self.check(process.pid, witness)

    def report_of_interpreters(self, path, *arguments):
        process = subprocess.Popen([path, "-c", INTERPRETERS, *arguments], stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            report = report_of(process.pid)
            return ([python_frames(part) for part in all_parts(report, process.pid) if part.get("frames")],
                    report["reader"])
        finally:
            process.kill()
            process.communicate()

    def test_several_interpreters(self):
        """A thread has a state in each that it made. Witness: the program has no other way to where it is."""
        found, _ = self.report_of_interpreters(sys.executable)
        self.assertEqual(found[0][-1], ("<module>", "<string>", 10))
        for version, path in interpreters().items():
            with self.subTest(version):
                found, reader = self.report_of_interpreters(path, INNER)
                if version.startswith(("3.9.", "3.10.")):
                    self.assertIn("several interpreters", reader["unread"])
                    self.assertNotEqual(reader["uninterpreted"], 0)
                    continue
                self.assertIn([("inner", 4), ("<module>", 5), ("outer", 6), ("<module>", 8)],
                              [[frame[::2] for frame in frames if frame[1] == "<string>"] for frames in found])
                self.assertEqual(reader["uninterpreted"], 0)

    def test_after_fork(self):
        process, witness = self.waiter(sys.executable, "fork")
        child = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii"))
        self.check(child, witness)

    def test_waits_that_are_over(self):
        """Waits of a third of a millisecond end before anything can be read of them."""
        for version, path in interpreters_once().items():
            with self.subTest(version=version):
                process = subprocess.Popen([path, "-c", SHORT_WAITS], stdout=subprocess.PIPE, text=True)
                self.addCleanup(process.communicate)
                self.addCleanup(process.kill)
                witness = {tuple(tuple(frame) for frame in frames) for frames in json.loads(process.stdout.readline())}
                report = report_of(process.pid, "--for", "1")
                times = {}
                for part in all_parts(report, process.pid):
                    times[python_frames(part)] = times.get(python_frames(part), 0) + part["ns"]
                self.assertEqual(len(witness), 2)
                # How long they wait, and how many of the waits are copied, depends on how busy the machine is.
                innermost = {frames[0] for frames in witness}
                named = sum(ns for frames, ns in times.items() if frames and frames[0] in innermost)
                self.assertGreater(named, 0)
                for frames in witness:
                    self.assertGreater(times.get(frames, 0), named / 4)
                self.assertGreater(report["reader"]["copied"], report["reader"]["uninterpreted"])

    def test_a_missing_caller_is_seen(self):
        """Of short waits a code object that was made just now has no name: its callers are not its callee's."""
        process = subprocess.Popen([newest(), "-c", NEW_CALLERS], stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        report = report_of(process.pid, "--for", "1", "--stacks", "0", "--budget", "50")
        cut = whole = 0
        for part in all_parts(report, process.pid):
            frames = python_frames(part)
            if not frames or frames[0][0] != "nap":
                continue
            if frames[-1][0] == "<module>":
                whole += 1
            else:
                outer = part["frames"].index(next(f for f in part["frames"] if f.get("function") == frames[-1][0])) + 1
                self.assertIn("python", part["frames"][outer].get("file", ""), part["frames"])
                cut += 1
        self.assertGreater(cut + whole, 0)

    def test_share(self):
        process, witness = self.waiter(sys.executable)
        reader = report_of(process.pid)["reader"]
        self.assertGreaterEqual(reader["interpreted"], len(witness))
        self.assertEqual((reader["uninterpreted"], reader["unread"]), (0, None))

    def test_native(self):
        process, _ = self.waiter(sys.executable)
        self.assertFalse(any(python_frames(part) for part in stacks_of(process.pid, "--native")))

    def test_recorded(self):
        process, witness = self.waiter(sys.executable)
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/waits.db"
            subprocess.run([PRCB, "record", "-g", "-o", path, "-p", str(process.pid), "--for", "0.3"],
                           check=True, capture_output=True, timeout=60)
            with contextlib.closing(sqlite3.connect(path)) as db:
                stacks = {row[0]: row[1:] for row in db.execute("SELECT id, caller, name, file, line FROM stacks")}
                found = set()
                for stack, in db.execute("SELECT stack FROM wait_stacks WHERE stack NOT NULL"):
                    frames = []
                    while stack:
                        stack, *frame = stacks[stack]
                        if frame[1]:
                            frames.append(tuple(frame))
                    found.add(tuple(frames))
                functions = set(db.execute("SELECT name, file FROM functions"))
                facts = dict(db.execute("SELECT name, value FROM facts"))
            text = subprocess.run([PRCB, "report", path], capture_output=True, text=True, timeout=60, check=True).stdout
        for frames in witness.values():
            self.assertIn(tuple(frames), found)
            self.assertLessEqual({(function, file) for function, file, _ in frames}, functions)
        waits = int(facts["interpreted_waits"])
        self.assertGreaterEqual(waits, len(witness))
        self.assertIn(f"functions are all known for {100 * waits / (waits + int(facts['uninterpreted_waits'])):.1f}% of",
                      text)


# Half of its time in each of two functions, by its own clock; it never waits.
BUSY = """
import time
def left(until):
    while time.thread_time_ns() < until: pass
class Right:
    def run(self, until):
        while time.thread_time_ns() < until: pass
def turn(now):
    left(now + 3000000)
    Right().run(now + 6000000)
def main():
    print("ready", flush=True)
    while True: turn(time.thread_time_ns())
main()
"""


@unittest.skipUnless(ROOT, "needs root: eBPF")
class Samples(unittest.TestCase):
    def test_on_a_processor(self):
        """The program itself says what a half is: five parts of six hundred samples are six deviations."""
        for version, path in interpreters_once().items():
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                process = subprocess.Popen([path, "-c", BUSY], stdout=subprocess.PIPE, text=True)
                self.addCleanup(process.communicate)
                self.addCleanup(process.kill)
                self.assertEqual(process.stdout.readline(), "ready\n")
                subprocess.run([PRCB, "record", "-g", "-o", folder + "/ran.db", "-p", str(process.pid), "--for", "0.7"],
                               check=True, capture_output=True, timeout=60)
                with contextlib.closing(sqlite3.connect(folder + "/ran.db")) as db:
                    stacks = {row[0]: row[1:] for row in db.execute("SELECT id, caller, name, line FROM stacks")}
                    found = []
                    for stack, in db.execute("SELECT stack FROM samples"):
                        frames = []
                        while stack:
                            stack, name, line = stacks[stack]
                            if name and line:
                                frames.append((name.rpartition(".")[2] if name != "<module>" else name, line))
                        found.append(tuple(frames))
                process.kill()
                outer = (("turn", 9), ("turn", 10)), ("main", 13), ("<module>", 14)
                left = found.count((("left", 4), outer[0][0], *outer[1:]))
                right = found.count((("run", 7), outer[0][1], *outer[1:]))
                self.assertGreater(left + right, 0.8 * len(found), collections.Counter(found))
                self.assertLess(abs(left - right), 0.25 * len(found))


SENTENCES = {
    # A library's function that keeps the GIL while it waits.
    "wait(s)? for Python's GIL in .*; python3.* holds it.* and sleeps in keeps\\(\\)": """
import ctypes, threading
library = ctypes.PyDLL(None)
def keeps():
    while True:
        library.usleep(300000)
def needs():
    while True:
        sum(range(1000))
threads = [threading.Thread(target=target) for target in (needs, needs, keeps)]
for thread in threads:
    thread.start()
""",
    "blocks asyncio's event loop by sleeping in Store.load\\(\\)": """
import asyncio, time
class Store:
    def load(self):
        time.sleep(0.2)
async def handle(store):
    while True:
        store.load()
        await asyncio.sleep(0)
asyncio.run(handle(Store()))
""",
}


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
class Sentences(unittest.TestCase):
    def test_first(self):
        for sentence, program in SENTENCES.items():
            process = subprocess.Popen([sys.executable, "-c", program])
            try:
                said = subprocess.run([PRCB, "why", "-p", str(process.pid), "--for", "2"], check=True,
                                      capture_output=True, text=True, timeout=60).stdout
            finally:
                process.kill()
                process.wait()
            self.assertRegex(" ".join(said.split("\n\n")[0].split()), sentence)


MANY_TASKS = """
import asyncio
async def main():
    event = asyncio.Event()
    kept = [asyncio.create_task(event.wait()) for _ in range(67000)]
    await asyncio.sleep(0)
    print(len(asyncio.all_tasks()), flush=True)
    await event.wait()
asyncio.run(main())
"""
LARGE_SET = """
import asyncio
async def main():
    event = asyncio.Event()
    kept = asyncio.create_task(event.wait())
    tasks = next(known for known in (getattr(asyncio.tasks, name, None) for name in ("_all_tasks", "_scheduled_tasks"))
                 if hasattr(known, "data"))
    tasks.data.update(range(700000))
    tasks.data.difference_update(range(700000))
    await asyncio.sleep(0)
    print(flush=True)
    await event.wait()
asyncio.run(main())
"""


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
class Tasks(unittest.TestCase):
    """Witness: the coroutines' own cr_await, gi_yieldfrom and ag_await."""
    def test_as_the_interpreter_says(self):
        for version, path in interpreters().items():
            with self.subTest(version):
                process = subprocess.Popen([path, str(HERE / "asyncio_waiter.py")], stdout=subprocess.PIPE, text=True)
                self.addCleanup(process.communicate)
                self.addCleanup(process.kill)
                said = collections.Counter({tuple(tuple(frame) for frame in frames): count
                                            for frames, count in json.loads(process.stdout.readline())})
                tasks = report_of(process.pid)["processes"][0]["tasks"]
                if version.startswith("3.14."):
                    self.assertEqual(tasks["unread"], "where this version has them is not known")
                    continue
                found = collections.Counter()
                for group in tasks["groups"]:
                    self.assertTrue(group["complete"], group)
                    frames = tuple((frame["function"], frame["file"], frame["line"]) for frame in group["frames"])
                    found[frames] += group["count"] if frames[0][0] != "main" else 0
                self.assertEqual((found - said, said - found), (collections.Counter(),) * 2)
                self.assertEqual((tasks["total"], tasks["moved"], tasks["beyond"]), (sum(said.values()) + 1, 0, 0))
                process.kill()

    def test_more_than_are_looked_at(self):
        process = subprocess.Popen([sys.executable, "-c", MANY_TASKS], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "67001\n")
        text = subprocess.run([PRCB, "why", "-p", str(process.pid), "--for", "0.3"], check=True,
                              capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(text, r"^6\d{4} of 6\d{4} tasks of asyncio that were looked at are in Event\.wait")
        self.assertIn("; there are more, which were not looked at\n", text)
        tasks = report_of(process.pid)["processes"][0]["tasks"]
        self.assertEqual(tasks["total"] + tasks["beyond"], 67001)

    def test_set_that_was_large(self):
        process = subprocess.Popen([sys.executable, "-c", LARGE_SET], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        tasks = report_of(process.pid)["processes"][0]["tasks"]
        self.assertEqual((tasks["total"], tasks["beyond"]), (2, 0))

    def test_first_sentence(self):
        process = subprocess.Popen([sys.executable, str(HERE / "asyncio_waiter.py")], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        text = subprocess.run([PRCB, "why", "-p", str(process.pid), "--for", "0.3"], check=True,
                              capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(" ".join(text.split()),
                         r"^100 of 110 tasks of asyncio wait for a lock \((Lock\.)?acquire\) in (Cache\.)?get\(\) "
                         r"\(asyncio_waiter\.py:16\), called by handle\(\); of the others 1 is in "
                         r"(StreamReader\.)?_wait_for_data in fetch\(\) \(asyncio_waiter\.py:26\)")


if __name__ == "__main__":
    unittest.main()
