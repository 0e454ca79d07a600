#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The follower of a guest's console (tests/guest/console.py), with a shell for an emulator."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
UP = "echo '@guest up 6.1 x86_64 4 processors, 2 s'; "


class Console(unittest.TestCase):
    def follow(self, script, names=("one", "two"), seconds=20, **limits):
        """Boots `sh -c script`, where $boot counts from 1; the results, what was printed."""
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/names", "w", encoding="utf-8") as file:
                file.write("".join(name + "\n" for name in names))
            count = f"echo x >>{folder}/boots; boot=$(grep -c x {folder}/boots); "
            run = subprocess.run(
                [sys.executable, ROOT + "/tests/guest/console.py", folder, str(seconds), "--",
                 "sh", "-c", count + script], env={**os.environ, "GUEST_SILENCE": "1", **limits},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
            with open(folder + "/testlog.json", encoding="utf-8") as file:
                log = [json.loads(line) for line in file]
        self.assertEqual([entry["name"] for entry in log], list(names))
        return [entry["result"] for entry in log], run.stdout, log

    BOTH = ("echo '@guest begin 1'; echo said; echo '@guest end 1 0'; "
            "printf 'no line end'; echo '@guest begin 2'; echo '@guest end 2 77'; "
            "echo '@guest down'")

    def test_results(self):
        results, out, log = self.follow("echo kernel; " + UP + self.BOTH)
        self.assertEqual(results, ["OK", "SKIP"])
        self.assertIn("Linux 6.1 x86_64, 4 processors", out)
        self.assertEqual(log[0]["stdout"], "said\n")
        self.assertNotIn("kernel", out)

    def test_failure(self):
        results, _, log = self.follow(UP + "echo '@guest begin 1'; echo '@guest end 1 3'; "
                                      "echo '@guest begin 2'; echo '@guest end 2 0'")
        self.assertEqual(results, ["FAIL", "OK"])
        self.assertEqual(log[0]["returncode"], 3)

    def test_silent_boots(self):
        results, out, _ = self.follow("if [ $boot -lt 3 ]; then echo 'last words'; exec sleep 60; fi; "
                                      + UP + self.BOTH)
        self.assertEqual(results, ["OK", "SKIP"])
        self.assertEqual(out.count("failed: it said nothing for 1 s"), 2)
        self.assertEqual(out.count("last words"), 2)

    def test_never_up(self):
        results, out, _ = self.follow("echo panic $boot")
        self.assertEqual(results, ["TIMEOUT", "TIMEOUT"])
        for boot in (1, 2, 3):
            self.assertIn(f"boot {boot} of 3 failed: it ended", out)
            self.assertIn(f"panic {boot}\n", out)
        self.assertNotIn("panic 4", out)

    def test_says_something_for_ever(self):
        results, out, _ = self.follow("while :; do echo booting; sleep 0.1; done",
                                      GUEST_BOOTING="2")
        self.assertEqual(results, ["TIMEOUT", "TIMEOUT"])
        self.assertIn("boot 1 of 3 failed: it took too long", out)
        self.assertNotIn("boot 2", out)

    def test_stops_in_a_command(self):
        results, out, _ = self.follow(UP + "echo '@guest begin 1'; echo '@guest end 1 0'; "
                                      "echo '@guest begin 2'; echo oops")
        self.assertEqual(results, ["OK", "TIMEOUT"])
        self.assertIn("the guest stopped in two: it ended", out)

    def test_time_limit(self):
        results, out, _ = self.follow(UP + "echo '@guest begin 1'; exec sleep 60", seconds=1)
        self.assertEqual(results, ["TIMEOUT", "TIMEOUT"])
        self.assertIn("the guest stopped in one: it took too long", out)


if __name__ == "__main__":
    unittest.main()
