#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Python in stacks of waits.

Witness: the interpreter's own sys._current_frames() of the same threads, which do not move.
"""
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

PRCB = os.environ["PRCB"]
HERE = pathlib.Path(__file__).resolve().parent
ROOT = os.geteuid() == 0


def interpreters():
    """By version: this one, the system's and those that pyenv built."""
    found = {}
    for path in [sys.executable, "/usr/bin/python3", *sorted(glob.glob("/root/.pyenv/versions/*/bin/python3"))]:
        said = subprocess.run([path, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
                              capture_output=True, text=True, check=False).stdout.strip()
        if re.fullmatch(r"3\.(9|1[0-3])\..*", said):
            found.setdefault(said, path)
    return found


def python_frames(part):
    """Those of a stack that are an interpreter's."""
    return tuple((frame["function"], frame["file"], frame["line"])
                 for frame in part["frames"] if "line" in frame)


def stacks_of(pid):
    result = subprocess.run([PRCB, "why", "-j", "-p", str(pid), "--for", "0.3"], capture_output=True,
                            text=True, timeout=60, check=True)
    report = json.loads(result.stdout)
    return [part for row in report["processes"] if row["pid"] == pid
            for cause in row["causes"] for part in cause["stacks"] if part.get("frames")]


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

    def test_after_fork(self):
        process, witness = self.waiter(sys.executable, "fork")
        child = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii"))
        self.check(child, witness)


if __name__ == "__main__":
    unittest.main()
