#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb neighbours`: of a recorded machine, in all forms."""

import json
import os
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB_EXE") or os.environ.get("PRCB") or
                       os.path.join(SOURCE, "build/src/tools/cli/prcb"))
S = 10 ** 9
CGROUPS = {"1": "/victim", "2": "/hog", "3": "/evil\x1b[31m\n\u202e"}


def account(number, cgroup, ready=0, behind=(), **more):
    return {"key": number, "tid": number, "pid": number, "comm": "x", "cgroup": cgroup, "run_ns": S,
            "ready_ns": ready, "waits": {"throttled": [1, 2 * S]}, "behind": behind, **more}


ACCOUNTS = [account(11, 1, 10 * S, [[12, 6 * S, "thread", "preempted"], [13, 1 * S, "thread", ""],
                                    [14, 1 * S, "thread", ""], [0, 1 * S, "softirq", ""]]),
            account(12, 2), account(13, 3, S, [[12, S, "thread", "preempted"]]), account(14, 1)]


def run(*args, columns="100", **options):
    return subprocess.run([PRCB, "neighbours", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, env={**os.environ, "COLUMNS": columns}, **options)


class Replayed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "looks")
        with open(self.file, "w") as file:
            json.dump({"ms": 0, "accounts": ACCOUNTS, "cgroups": CGROUPS}, file)

    def tearDown(self):
        self.folder.cleanup()

    def test_parts_are_the_ready_time(self):
        document = json.loads(run("-j", "--replay", self.file).stdout)
        found = {c["cgroup"]: c for c in document["cgroups"]}
        behind = {b["by"]: b["ns"] for b in found["/victim"]["behind"]}
        self.assertEqual(behind, {"/hog": 6 * S, CGROUPS["3"]: S, "self": S, "(kernel)": S, "(other)": S})
        for cgroup in found.values():
            self.assertEqual(sum(b["ns"] for b in cgroup["behind"]) + cgroup["ready_open_ns"], cgroup["ready_ns"])
        self.assertEqual(found["/victim"]["throttled_ns"], 4 * S)

    def test_a_matrix_of_one_screen(self):
        for columns in "100", "60", "20":
            text = run("--replay", self.file, columns=columns).stdout
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\u202e", text)
            self.assertRegex(text, r"(?m)^ \[1\] /victim +2\.00s +10\.0s +4\.00s")
        text = run("--replay", self.file).stdout
        self.assertRegex(text, r"(?m)^ \[1\] .* 10 % +10 % +60 % +10 % +10 %$")
        self.assertEqual(len({len(line) for line in text.splitlines() if "[1]" in line}), 1)

    def test_lines_of_values(self):
        lines = run("-x", ";", "--replay", self.file).stdout.splitlines()
        self.assertEqual(lines[0], "cgroup;by;ns;ready_ns")
        self.assertIn("/victim;/hog;%d;%d" % (6 * S, 10 * S), lines)

    def test_what_is_wrong_is_said(self):
        self.assertEqual(run("--tier", "perf", "--for", "0.1").returncode, 1)
        self.assertEqual(run("operand").returncode, 2)
        self.assertEqual(run("-j", "-x", ",").returncode, 2)


if __name__ == "__main__":
    unittest.main()
