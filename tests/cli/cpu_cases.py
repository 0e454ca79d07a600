# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `prcb cpu` and `prcb power` share: running the program, and changing a
recorded machine (machine.py) while it looks."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB_EXE") or os.environ.get("PRCB") or
                       os.path.join(SOURCE, "build/src/tools/cli/prcb"))
ROOT = os.geteuid() == 0
TIMEOUT = 60
SECOND = 1000000000


def run(*args, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("text", True)
    return subprocess.run([PRCB, *args], stderr=subprocess.PIPE, timeout=TIMEOUT, check=False,
                          **options)


def bpf_reason():
    """Why the bpf tier cannot be had; None if it can."""
    result = run("cpu", "--tier", "bpf", "0.01", "1")
    return None if result.returncode == 0 else result.stderr.strip()


BPF_REASON = bpf_reason()
needs_bpf = unittest.skipIf(BPF_REASON, "no bpf tier: %s" % BPF_REASON)
needs_root = unittest.skipUnless(ROOT, "needs root")


def wait_until_asleep(process):
    """Until the program has looked for the first time and sleeps: reading files, it would be
    running or in uninterruptible sleep."""
    deadline = time.monotonic() + TIMEOUT
    asleep = 0
    while asleep < 2:
        with open("/proc/%d/stat" % process.pid) as file:
            comm, rest = file.read().rsplit(")", 1)
        asleep = asleep + 1 if rest.split()[0] == "S" and comm.endswith("(prcb") else 0
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError("prcb does not sleep: %s" % process.stderr.read())
        time.sleep(0.005)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(
            dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(self.folder.cleanup)
        os.chmod(self.folder.name, 0o755)

    def start(self, *args, **options):
        """The program, which does not outlive the test."""
        options.setdefault("text", True)
        process = subprocess.Popen([PRCB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   **options)
        self.addCleanup(process.__exit__, None, None, None)  # closes its pipes, waits
        self.addCleanup(process.kill)
        return process

    def end(self, process, number=signal.SIGINT):
        """What it prints until it has ended well, as the signal bids it."""
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, err)
        return out

    def assert_fails(self, result, status, command, *words):
        """One clear line on standard error, nothing on standard output."""
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("prcb %s: " % command), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def look(self, machine, change, *args, text=True):
        """What the program prints of the time in which change() happened to the machine: it looks,
        sleeps, and looks again when it is told to end."""
        machine.write()
        process = self.start(*args[:1], "--root", machine.folder, *args[1:], "1000", text=text)
        wait_until_asleep(process)
        change()
        machine.write()
        return self.end(process)

    def look_json(self, machine, change, *args):
        return json.loads(self.look(machine, change, *args, "-j"))
