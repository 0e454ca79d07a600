#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""By whom an ordinary user's threads wait, as the command line has it from prcbd. Witness: the program, which knows
who answers whom, and the kernel's count of its waits."""
import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "cli")]
import case  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
from asker import asker  # pylint: disable=wrong-import-position
from case import Case  # pylint: disable=wrong-import-position
from wire import OTHER  # pylint: disable=wrong-import-position

PRCB = os.environ["PRCB"]
# Where every user may run it; that of a user's home may not be.
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
tearDownModule = case.stop_daemons  # pylint: disable=invalid-name

PROGRAM = asker(200, 0.001, 0.002)


class ByWhom(Case):
    def report(self, *command):
        """Of PROGRAM: by the command; the number of the process and of its child, how often it waited for an answer
        and for the lock."""
        result = subprocess.run([PRCB, *command, "-j", "--", PYTHON, "-I", "-S", "-c", PROGRAM], capture_output=True,
                                text=True, timeout=60, env=os.environ | {"PRCB_SOCKET": self.path},
                                preexec_fn=lambda: wire.become(OTHER, OTHER))
        self.assertEqual(result.returncode, 0, result.stderr)
        said, document = result.stdout.splitlines()[-2:]
        report = json.loads(document)
        self.assertEqual(report["tier"], "daemon")
        return report, *(int(word) for word in said.split())

    def law(self, edges, count, ns):
        """Those that are known, and the rest, are all there is."""
        self.assertEqual(sum(who["count"] for who in edges), count, edges)
        self.assertEqual(sum(who["ns"] for who in edges), ns, edges)

    def check_wakers(self, woken, child, answered, timed_out):
        """Most of what the kernel counted: some kernels do not report each wakeup of an idle processor, in bursts."""
        pipe, futex = woken["pipe"], woken["futex"]
        self.assertGreater(answered, 20)
        self.assertGreater(timed_out, 2)
        self.assertEqual((pipe[0]["by"], pipe[0]["pid"]), ("thread", child), pipe)
        self.assertGreaterEqual(pipe[0]["count"], answered * 3 // 4, pipe)
        self.assertEqual((futex[0]["by"], futex[0]["name"]), ("timer", "timer (timed out)"), futex)
        self.assertGreaterEqual(futex[0]["count"], timed_out // 2, futex)

    def test_stat(self):
        report, parent, child, *counted = self.report("stat", "--by-whom", "--per-thread")
        self.assertLessEqual({parent, child}, {row["tid"] for row in report["threads"]})
        for row in [report["total"], *report["threads"]]:
            woken = row["by_whom"]["woken_by"]
            for wait in row["waits"]:
                if wait["cause"] in woken:
                    self.law(woken[wait["cause"]], wait["count"], wait["ns"])
            self.assertEqual(sum(who["ns"] for who in row["by_whom"]["ready_behind"]), row["ready_ns"])
        row = next(row for row in report["threads"] if row["tid"] == parent)
        self.check_wakers(row["by_whom"]["woken_by"], child, *counted)

    def test_why(self):
        report, parent, child, *counted = self.report("why", "--idle")
        processes = {row["pid"]: row for row in report["processes"]}
        self.assertLessEqual({parent, child}, set(processes))
        for row in processes.values():
            for cause in row["causes"]:
                if cause["woken_by"]:
                    self.law(cause["woken_by"], cause["count"], cause["ns"])
            self.assertEqual(sum(who["ns"] for who in row["ready_behind"]), row["ready_ns"])
        woken = {cause["cause"]: cause["woken_by"] for cause in processes[parent]["causes"]}
        self.check_wakers(woken, child, *counted)


if __name__ == "__main__":
    unittest.main()
