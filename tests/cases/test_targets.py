#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""-p with a thread's number means its process, and a zombie in a list does not end the command; both are said.

Witness: the numbers that the kernel gave (Tgid in /proc, Popen)."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from house import PRCB, ROOT, House, await_true, mount_of, state_of


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

    def ask_word(self, *words):
        return subprocess.run([PRCB, "why", "-j", *words], capture_output=True, text=True, timeout=60, check=False)

    def test_a_word_names_what_runs(self):
        """A number, a name with options behind it, a cgroup; and a command where nothing is called so."""
        name = f"t{os.getpid()}"
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        os.symlink(shutil.which("sleep"), os.path.join(folder, name))
        slept = subprocess.Popen([os.path.join(folder, name), "60"])
        self.addCleanup(slept.wait)
        self.addCleanup(slept.kill)
        await_true(lambda: state_of(slept.pid) == "S", "it sleeps")
        for words in (str(slept.pid), "--for", "0.1"), ("--for", "0.1", name), (name, "--for", "0.1"), (name, "--", "true"):
            result = self.ask_word(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept.pid])
        # A name with words behind it that are no options is a command's.
        result = self.ask_word(os.path.join(folder, name), "0.1")
        self.assertNotEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept.pid])
        for words in (name + "x",), (name + "x", "--for", "1"), ("0",):
            result = self.ask_word(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"no process is called '{words[0]}'; to start it as a command: prcb why -- {words[0]}", result.stderr)
        self.assertEqual(self.ask_word(name, "--for", "1", "more").returncode, 2)
        self.assertEqual(self.ask_word("--unit", name).returncode, 1)

    @unittest.skipUnless(ROOT, "needs root, to make a cgroup")
    def test_a_cgroup_by_its_path_and_as_a_unit(self):
        mount = mount_of("cgroup2") or mount_of("pids")
        if not mount:
            self.skipTest("no cgroups are mounted")
        group = os.path.join(mount, f"prcb-case-{os.getpid()}.service")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"no cgroup can be made here: {error}")
        slept = subprocess.Popen(["sleep", "60"])
        try:
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(slept.pid))
            name = os.path.basename(group)
            for words in ("/" + name,), (group,), ("--unit", name), ("--unit", name[:-len(".service")]), ("--cgroup", group):
                result = self.ask_word(*words, "--for", "0.1")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept.pid])
        finally:
            slept.kill()
            slept.wait()
            os.rmdir(group)

    @unittest.skipUnless(ROOT, "needs root, for eBPF")
    def test_what_stays_running(self):
        """The live page and the recorder: until they are told to end."""
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        for command in ["serve"], ["flight", "-o", folder]:
            with subprocess.Popen([PRCB, *command, "-p", f"{self.thread.native_id},{self.zombie.pid}"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                said = [process.stderr.readline() for _ in range(2)]
                process.terminate()
                process.communicate(timeout=60)
            self.assertIn(f"{self.thread.native_id} is a thread of process {os.getpid()} (", said[0])
            self.assertIn(f"process {self.zombie.pid} has ended and waits to be reaped: it is left out", said[1])

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
