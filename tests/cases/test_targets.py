#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""-p with a thread's number means its process, and a zombie in a list does not end the command; both are said.

Witness: the numbers that the kernel gave (Tgid in /proc, Popen)."""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from house import PRCB, House, await_true, state_of


class Targets(House):
    def ask(self, command, targets):
        arguments = {"stat": ["-j", "--for", "0.1"], "why": ["-j", "--for", "0.1"], "top": ["-b", "--idle", "-n", "1", "-d", "0.1"]}[command]
        return subprocess.run([PRCB, command, "-p", targets, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def setUp(self):
        self.end = threading.Event()
        self.zombie = subprocess.Popen([sys.executable, "-c", ""])
        self.addCleanup(self.zombie.wait)
        self.thread = threading.Thread(target=self.end.wait)
        self.thread.start()
        self.addCleanup(self.thread.join)
        self.addCleanup(self.end.set)
        await_true(lambda: state_of(self.zombie.pid) == "Z", "it has ended")

    def test_a_number_of_a_thread(self):
        for command in ("stat", "why", "top"):
            result = self.ask(command, str(self.thread.native_id))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"{self.thread.native_id} is a thread of process {os.getpid()} (", result.stderr)
            self.assertIn(str(os.getpid()), result.stdout)

    def test_a_zombie_among_others(self):
        for command in ("stat", "why", "top"):
            result = self.ask(command, f"{self.zombie.pid},{os.getpid()}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"process {self.zombie.pid} has ended and waits to be reaped: it is left out", result.stderr)
            result = self.ask(command, str(self.zombie.pid))
            self.assertNotEqual(result.returncode, 0)

    def test_record(self):
        """What it records of a thread's number was nothing, and no failure."""
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "recording")
        result = subprocess.run([PRCB, "record", "-p", f"{self.thread.native_id},{self.zombie.pid}", "-o", path, "--",
                                 sys.executable, "-c", ""], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"is a thread of process {os.getpid()} (", result.stderr)
        self.assertIn("it is left out", result.stderr)
        text = subprocess.run([PRCB, "report", "-j", path], capture_output=True, text=True, check=True).stdout
        self.assertIn(f'"pid": {os.getpid()}', text.replace('"pid":', '"pid": ').replace(":  ", ": "))


if __name__ == "__main__":
    unittest.main()
