#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The commands in a pid namespace of their own, as in a container: its threads under its numbers, and
none of those that begin outside of it meanwhile; where /proc is another namespace's, a reason.

Witnesses: who was started inside and outside, and the numbers that a shell inside tells.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

PRCB = os.environ["PRCB"]
# Not --mount-proc: it changes the root's mount first, and a chroot's root is none.
OWN = ("unshare", "--pid", "--fork", "--mount", "--propagation", "unchanged")
OTHERS = ("unshare", "--pid", "--fork")
PROC = "mount --make-private /proc && mount -t proc proc /proc && "


def lacking():
    if os.geteuid():
        return "needs root"
    made = subprocess.run([*OWN, "sh", "-c", PROC + "true"], capture_output=True, text=True, check=False)
    return f"no pid namespace can be made: {made.stderr.strip()}" if made.returncode else None


def has(command):
    return not subprocess.run([PRCB, command, "--help"], capture_output=True, check=False).returncode


LACKING = lacking()


@unittest.skipIf(LACKING, LACKING)
class Own(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in "insider", "outsider":
            shutil.copy(shutil.which("sleep"), os.path.join(self.folder, name))

    def begin_outside(self, end, begun):
        while not end.is_set():
            subprocess.run([os.path.join(self.folder, "outsider"), "0.01"], check=True)
            begun.append(1)

    def inside(self, *command):
        """What the command writes to standard output, and the number of a thread inside."""
        script = (PROC + 'cd "$1"; shift; ./insider 100 & echo $! >number; "$@"; status=$?; kill $!; exit $status')
        end, begun = threading.Event(), []
        outside = threading.Thread(target=self.begin_outside, args=(end, begun))
        outside.start()
        try:
            result = subprocess.run([*OWN, "sh", "-c", script, "sh", self.folder, *command],
                                    capture_output=True, text=True, timeout=100, check=False)
        finally:
            end.set()
            outside.join()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(len(begun), 5)
        with open(os.path.join(self.folder, "number"), encoding="ascii") as file:
            return result.stdout, int(file.read())

    def check(self, rows, number, members=("pid", "tid")):
        """rows: of processes or threads, with their names."""
        self.assertNotIn("outsider", [row["comm"] for row in rows])
        self.assertEqual([tuple(row[m] for m in members) for row in rows if row["comm"] == "insider"],
                         [(number,) * len(members)], rows)
        for row in rows:
            for member in members:
                self.assertTrue(row[member] and 0 < row[member] < 100, row)

    def test_stat(self):
        out, number = self.inside(PRCB, "stat", "-a", "-j", "--for", "0.5")
        self.check(json.loads(out)["threads"], number)

    @unittest.skipUnless(has("why"), "built without libdw")
    def test_why(self):
        out, number = self.inside(PRCB, "why", "-a", "-j", "--for", "0.5")
        report = json.loads(out)
        self.check(report["processes"], number, ("pid",))
        for process in report["processes"]:
            for cause in process["causes"]:
                self.assertNotIn("[ended]", [part["unknown"] for part in cause["stacks"]], process)

    def test_top(self):
        out, number = self.inside(PRCB, "top", "-b", "--idle", "-n", "2", "-d", "0.3")
        rows = [dict(zip(("pid", "tid", "comm"), (int(row[1]), int(row[2]), row[3])))
                for row in re.finditer(r"^ *(\d+) +(\d+) (\S+)", out[out.rindex("prcb top"):], re.M)]
        self.check(rows, number)

    @unittest.skipUnless(has("record"), "built without SQLite")
    def test_record(self):
        out, number = self.inside("sh", "-c", '"$0" record -a -o made.db --for 0.5 2>messages && "$0" report -j made.db',
                                  PRCB)
        rows = [{**row, "comm": row["name"]} for row in json.loads(out)["threads"]]
        self.check(rows, number)


@unittest.skipIf(LACKING, LACKING)
class OtherProc(unittest.TestCase):
    """After unshare --pid alone: /proc has other threads under the numbers."""
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_inside(self, *command):
        return subprocess.run([*OTHERS, PRCB, *command], capture_output=True, text=True, timeout=60, check=False)

    def test_what_needs_proc_says_so(self):
        commands = [("top", "-b", "-n", "1", "-d", "0.1"), ("stat", "-p", "sh", "--for", "0.1"),
                    ("stat", "--tier", "perf", "--", "true")]
        commands += [("why", "--", "true")] if has("why") else []
        commands += [("record", "-o", self.folder + "/made.db", "--", "true")] if has("record") else []
        commands += [("serve", "-p", str(os.getpid()))] if has("serve") else []
        for command in commands:
            with self.subTest(command=command):
                result = self.run_inside(*command)
                self.assertEqual(result.returncode, 1, result)
                self.assertIn("/proc belongs to another pid namespace", result.stderr)

    def test_accounts_do_without(self):
        result = self.run_inside("stat", "-j", "--", "sh", "-c", "echo $$")
        if '"tier"' not in result.stdout:
            self.skipTest("no bpf tier here: " + result.stderr.strip())
        told, document = result.stdout.split("\n", 1)
        self.assertEqual([row["tid"] for row in json.loads(document)["threads"]], [int(told)])


if __name__ == "__main__":
    unittest.main()
