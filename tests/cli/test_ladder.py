#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ladder: what an ordinary user with no capability gets. Run by root, the tests
become nobody; run by anyone else, they stay who they are. Oracles are the kernel's
getrusage and schedstat as the profiled program itself reads them.

PRCB names the program under test, LADDER_SELF the built ladder_self."""

import json
import os
import pwd
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(BUILD, "src/tools/cli/prcb"))
SELF = os.path.abspath(os.environ.get("LADDER_SELF") or
                       os.path.join(BUILD, "tests/cli/ladder_self"))
ROOT = os.geteuid() == 0
MS = 1000000

NOBODY = {}
if ROOT:
    user = pwd.getpwnam("nobody")
    NOBODY = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}


def run(*command, **options):
    """A command as an ordinary user, with its output as text."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, **{**NOBODY, **options})


def find_python():
    """A python that nobody may run, which root's own may not be; None: there is none."""
    for path in os.path.realpath(sys.executable), "/usr/bin/python3":
        if run("test", "-x", path).returncode == 0:
            return path
    return None


def stat(*args, **options):
    return run(PRCB, "stat", *args, **options)


PYTHON = find_python()
needs_python = unittest.skipUnless(PYTHON, "there is no python3 that nobody may run")

# Reads the kernel's counters, does something, reads them again, and is gone: the account
# starts before the first reading and ends a little after the second.
PROGRAM = r"""
import os, resource, sys, time
def kernel():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    ready = int(open("/proc/self/schedstat").read().split()[1])
    return [usage.ru_nvcsw, usage.ru_nvcsw + usage.ru_nivcsw, time.process_time_ns(), ready]
first = kernel()
for i in range(100):
    time.sleep(0.001)
until = time.process_time_ns() + 50000000
while time.process_time_ns() < until:
    pass
os.write(int(sys.argv[1]), repr([first, kernel()]).encode())
os._exit(37)
"""


@unittest.skipIf(run("test", "-x", PRCB).returncode, "%s cannot be reached by nobody" % PRCB)
class Ladder(unittest.TestCase):
    @needs_python
    def test_figures_are_the_kernels(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        result = stat("-j", "--", PYTHON, "-I", "-S", "-c", PROGRAM, str(writer),
                      pass_fds=[writer])
        os.close(writer)
        self.assertEqual(result.returncode, 37, result.stderr)
        first, last = json.loads(os.read(reader, 4096).decode())
        document = json.loads(result.stdout)
        self.assertEqual(document["tier"], "perf")
        self.assertEqual(len(document["threads"]), 1)
        row = document["threads"][0]
        self.assertTrue(row["exited"])
        # Before the first reading lie the fork and the exec, of which the account has all
        # but the fork; after the last one only the exit. That is short, but on a busy
        # machine it may have to wait for a processor, and be preempted in it: at most four
        # times as often, by its run time, as between the readings.
        voluntary, switches, run_ns, _ = [b - a for a, b in zip(first, last)]
        preempted = 4 * (switches - voluntary) * (row["run_ns"] - run_ns) / run_ns
        cases = [("voluntary_switches", 0, 10), ("switches", 1, 20 + preempted),
                 ("run_ns", 2, 20 * MS), ("ready_ns", 3, 1000 * MS)]
        for name, index, tail in cases:
            with self.subTest(name):
                self.assertGreaterEqual(row[name], last[index] - first[index])
                self.assertLessEqual(row[name], last[index] + tail)
        self.assertGreaterEqual(row["voluntary_switches"], 100)
        self.assertGreaterEqual(row["run_ns"], 50 * MS)
        self.assertGreaterEqual(row["wait_ns"], 100 * MS)
        self.assertGreaterEqual(row["wall_ns"], row["run_ns"] + row["ready_ns"])
        self.assertLessEqual(row["wall_ns"], document["wall_ns"] + 10 * MS)

    @needs_python
    def test_threads_and_children_are_followed(self):
        program = ("import os, threading, time\n"
                   "for i in range(3): threading.Thread(target=time.sleep, args=[0.5]).start()\n"
                   "if os.fork() == 0: time.sleep(0.5); os._exit(0)\n"
                   "os.wait()\n")
        result = stat("-j", "--", PYTHON, "-I", "-S", "-c", program)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(len(document["threads"]), 5)
        self.assertEqual(len({row["pid"] for row in document["threads"]}), 2)
        for row in document["threads"]:
            # 0.5 s, less the time between two looks at the end
            self.assertGreaterEqual(row["wait_ns"], 200 * MS)
        self.assertTrue(document["short_threads_missed"])

    @needs_python
    def test_a_zombie_moves_nobodys_window(self):
        """Any zombie did: --for ended at once, and said that it had lasted as long as the zombie."""
        keep = subprocess.Popen([PYTHON, "-I", "-S", "-c", "import os, sys, time\n"
                                 "pid = os.fork() or os._exit(0)\n"
                                 "time.sleep(1.5)\n"
                                 "print(pid, flush=True)\n"
                                 "sys.stdin.read()"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, **NOBODY)
        self.addCleanup(keep.communicate)
        zombie = int(keep.stdout.readline())
        there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        began = time.monotonic_ns()
        result = stat("-j", "--tier", "perf", "-a", "--for", "1")
        took = time.monotonic_ns() - began
        document = json.loads(result.stdout)
        self.assertGreaterEqual(took, 1000 * MS)
        self.assertGreaterEqual(document["wall_ns"], 1000 * MS)
        self.assertLessEqual(document["wall_ns"], took)
        self.assertNotIn(zombie, [row["tid"] for row in document["threads"]])
        # Threads are read one after the other, the last of them later than the window's end. One that began
        # while the first of them were read counts from its own beginning.
        self.assertTrue(there & {row["tid"] for row in document["threads"]})
        for row in document["threads"]:
            if row["tid"] in there:
                # A process that began while that list was made may count from its own beginning, which the kernel
                # tells by ticks; the zombie's is 1.5 s ago.
                self.assertLessEqual(row["wall_ns"], took + 300 * MS, row)
        for option in "-p", "-t":
            result = stat("--tier", "perf", option, str(zombie), "--for", "0.1")
            self.assertEqual(result.returncode, 1)
            self.assertIn("a zombie", result.stderr)
            self.assertNotIn("hidepid", result.stderr)

    def test_exit_status(self):
        self.assertEqual(stat("--", "sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(stat("--", "sh", "-c", "kill -9 $$").returncode, 128 + signal.SIGKILL)
        self.assertEqual(stat("--", "/no/such/command").returncode, 127)

    def test_what_is_missing_is_named(self):
        result = stat("-j", "--", "true")
        document = json.loads(result.stdout)
        row = document["threads"][0]
        self.assertRegex(document["tier_reason"], "CAP_BPF|no bpf tier|BTF")
        for name in "waits", "open", "migrations":
            self.assertIsNone(row[name])
            self.assertTrue(document["absent"][name])
        for name in "wall_ns", "run_ns", "ready_ns", "switches", "voluntary_switches":
            self.assertIsInstance(row[name], int)
            self.assertNotIn(name, document["absent"])
        result = stat("--", "true")
        self.assertIn("note: perf tier: ", result.stderr)
        self.assertIn("waits by cause", result.stderr)

    def test_bpf_is_refused(self):
        result = stat("--tier", "bpf", "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertRegex(result.stderr, "CAP_BPF|not in this build|BTF")

    @unittest.skipUnless(ROOT, "only root has another user's process to show")
    def test_process_of_another_user(self):
        """As the kernel has it: without hidepid, everybody may see everybody's figures."""
        sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        allowed = run("cat", "/proc/%d/task/%d/schedstat" % (sleeper.pid, sleeper.pid))
        result = stat("-j", "-p", str(sleeper.pid), "--for", "0.2")
        if allowed.returncode == 0:
            self.assertEqual(result.returncode, 0, result.stderr)
            row = json.loads(result.stdout)["threads"][0]
            self.assertEqual(row["tid"], sleeper.pid)
            self.assertGreaterEqual(row["wait_ns"], 150 * MS)
        else:
            self.assertEqual(result.returncode, 1)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    @unittest.skipUnless(ROOT, "only root can mount a /proc with hidepid")
    def test_process_that_is_hidden(self):
        """A /proc of its own, in a mount namespace of its own."""
        # The root's mount is left alone: a chroot's root is none.
        mount = "mount --make-private /proc && mount -t proc -o hidepid=%d proc /proc && "
        become = 'exec setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"'
        for hidepid in 1, 2:
            shell = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c",
                     mount % hidepid + become, "sh"]
            if subprocess.run(shell + ["true"], stderr=subprocess.DEVNULL).returncode:
                self.skipTest("this kernel does not allow a /proc with hidepid here")
            root = {"user": 0, "group": 0}
            with self.subTest(hidepid=hidepid):
                result = run(*shell, PRCB, "stat", "-p", "1", "--for", "0.1", **root)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn("hidepid", result.stderr)
                # Its own it sees all the same.
                result = run(*shell, PRCB, "stat", "-j", "--", "sleep", "0.1", **root)
                self.assertEqual(result.returncode, 0, result.stderr)
                row = json.loads(result.stdout)["threads"][0]
                self.assertGreaterEqual(row["wait_ns"], 90 * MS)

    def test_no_such_process(self):
        child = subprocess.Popen(["true"])
        child.wait()
        result = stat("-p", str(child.pid), "--for", "0.1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         "prcb stat: process %d: no such process\n" % child.pid)

    @unittest.skipUnless(os.path.exists(SELF), "%s was not built" % SELF)
    def test_program_that_reads_itself(self):
        result = run(SELF)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)


if __name__ == "__main__":
    unittest.main()
