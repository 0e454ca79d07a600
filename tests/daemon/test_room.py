#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Room for threads: as many accounts as the targets need, and what is told of threads without one. Witness: how
many threads a program has started."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
from case import Case, end  # pylint: disable=wrong-import-position
from wire import OTHER  # pylint: disable=wrong-import-position

PRCB = os.environ["PRCB"]
# Where every user may run it; that of a user's home may not be.
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
THREADS = 400
SLEEPERS = f"""
import threading, time
for _ in range({THREADS - 1}):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""
tearDownModule = case.stop_daemons  # pylint: disable=invalid-name


class Room(Case):
    settings = "processors = none"

    def sleepers(self, uid):
        process = subprocess.Popen([PYTHON, "-I", "-S", "-c", SLEEPERS], stdout=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: wire.become(uid, uid))
        self.addCleanup(end, process.pid)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process.pid

    def stat(self, uid, *arguments):
        """Threads with an account, and without."""
        result = subprocess.run([PRCB, "stat", "-j", *arguments, "--", "sleep", "0.1"], check=True,
                                stdout=subprocess.PIPE, env=os.environ | {"PRCB_SOCKET": self.path}, timeout=60,
                                preexec_fn=lambda: wire.become(uid, uid))
        report = json.loads(result.stdout)
        self.assertEqual(report["tier"], "daemon")
        return report["total"]["threads"], report["untracked_threads"]

    def test_the_targets_have_room(self):
        for uid in OTHER, 0:
            pid = self.sleepers(uid)
            self.assertEqual(self.stat(uid, "-p", str(pid)), (THREADS, 0))

    def test_each_thread_without_room_counts_once(self):
        for uid in OTHER, 0:
            pid = self.sleepers(uid)
            self.assertEqual(self.stat(uid, "--max-threads", "100", "-p", str(pid)), (100, THREADS - 100))


if __name__ == "__main__":
    unittest.main()
