# SPDX-License-Identifier: BSD-2-Clause
"""What the cases share: programs whose truth is known, and prcb asked about them on each tier.

A case is a program of this folder that prints what it knows of itself (numbers, or what it has measured by its own
clock), and a class here derived from House with tests that compare. README.md has the table."""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), folder) for folder in ("daemon", "cli")]
import wire  # pylint: disable=wrong-import-position

PRCB = os.environ["PRCB"]
PRCBD = os.environ.get("PRCBD", "")
PROGRAMS = os.environ["CASES"]
NOBODY = wire.NOBODY
ROOT = not os.geteuid()
DAEMON = []  # one for all cases: loading the programs takes longer than most of them


def lacks(tier):
    """Why a tier cannot be had here; None: it can."""
    if tier == "perf":
        return None
    if not ROOT:
        return "needs root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "eBPF programs cannot be loaded: the kernel has no BTF"
    if tier == "daemon" and not (PRCBD and os.path.ismount("/sys/fs/bpf")):
        return "no prcbd was built, or /sys/fs/bpf is not mounted"
    return None


def stop_daemon():
    while DAEMON:
        DAEMON.pop().stop()


def on_tiers(*tiers):
    """A test once on each of these tiers. It is skipped where none of them can be had."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            missing = {tier: lacks(tier) for tier in tiers}
            if all(missing.values()):
                self.skipTest("; ".join(f"{tier}: {reason}" for tier, reason in missing.items()))
            for tier in tiers:
                if not missing[tier]:
                    with self.subTest(tier=tier):
                        test(self, tier)
        return run
    return decorate


def steady(test):
    """Up to three runs: between a clock that the program reads and the switch, or between two clocks, a busy machine
    may take the processor for milliseconds, and then both are right. What is told wrongly is so in each run."""
    @functools.wraps(test)
    def run(self, tier):
        for _ in range(2):
            try:
                test(self, tier)
                return
            except AssertionError:
                self.doCleanups()
        test(self, tier)
    return run


def await_true(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.005)


def state_of(pid, tid=None):
    """The letter of /proc; None: it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{tid or pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.rsplit(")", 1)[1].split()[0]


def mount_of(wanted):
    """Where cgroups of version 2 are, or those of version 1 with a controller; None: nowhere."""
    for line in pathlib.Path("/proc/mounts").read_text(encoding="ascii").splitlines():
        _, path, kind, options, *_ = line.split()
        if kind == wanted or kind == "cgroup" and wanted in options.split(","):
            return path
    return None


class House(unittest.TestCase):
    """Programs, and prcb asked about them as the user who has the tier: prcbd's and perf's as nobody."""

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(stop_daemon)

    @staticmethod
    def user_of(tier):
        """Who asks on a tier: None is who runs the test."""
        return NOBODY if ROOT and tier != "bpf" else None

    @staticmethod
    def program(name):
        return os.path.join(PROGRAMS, name)

    def start(self, program, *arguments, user=None):
        """A program of this folder, ended with the test, and the numbers of the first line it prints."""
        process = subprocess.Popen([self.program(program), *map(str, arguments)],
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                   preexec_fn=(lambda: wire.become(user, user)) if user else None)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, [int(word) for word in process.stdout.readline().split()]

    def prcb(self, tier, *arguments):
        """Its output. As an ordinary user on the tiers that are theirs."""
        environment, user = dict(os.environ), self.user_of(tier)
        if tier == "daemon":
            if not DAEMON:
                DAEMON.append(wire.Daemon(PRCBD))
            environment["PRCB_SOCKET"] = DAEMON[0].socket
        result = subprocess.run([PRCB, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                                env=environment, preexec_fn=(lambda: wire.become(user, user)) if user else None,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def document(self, tier, command, *arguments):
        """What a command says as JSON: stat and why, with --tier."""
        return json.loads(self.prcb(tier, command, "-j", "--tier", tier, *arguments).splitlines()[-1])

    def folder(self, tier):
        """A folder of its own for the test, and for who asks on a tier."""
        path = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, path)
        if self.user_of(tier):
            os.chown(path, NOBODY, NOBODY)
        return path

    def make_cgroup(self, ending, *pids):
        """A cgroup of the test's, with these processes in it: its path. Who makes it removes it when it is empty."""
        mount = mount_of("cgroup2") or mount_of("pids")
        if not mount:
            self.skipTest("no cgroups are mounted")
        path = os.path.join(mount, f"prcb-case-{os.getpid()}{ending}")
        try:
            os.mkdir(path)
        except OSError as error:
            self.skipTest(f"no cgroup can be made here: {error}")
        for pid in pids:
            with open(path + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(pid))
        return path

    def recorded(self, tier, *arguments):
        """A recording made with these arguments, and read: the document of prcb report. It has no option for its
        tier: switches come from eBPF, from prcbd, or from perf, whichever the user may have."""
        path = os.path.join(self.folder(tier), "recording")
        self.prcb(tier, "record", "-o", path, *arguments)
        return json.loads(self.prcb(tier, "report", "-j", path))

    def both(self, tier, command, stat=(), record=()):
        """Of one run of a command, with these options: the accounts' rows by thread, the recording's document, its
        path, and what the command printed."""
        folder = self.folder(tier)
        accounts, recording = os.path.join(folder, "accounts"), os.path.join(folder, "recording")
        printed = self.prcb(tier, "stat", "-j", "--tier", tier, "-o", accounts, *stat, "--", PRCB, "record",
                            "-o", recording, *record, "--", *command)
        with open(accounts, encoding="utf-8") as file:
            rows = {row["tid"]: row for row in json.load(file)["threads"]}
        report = json.loads(self.prcb(tier, "report", "-j", recording))
        self.assertEqual(report["facts"]["switch_source"], {"bpf": "eBPF", "daemon": "prcbd"}[tier])
        return rows, report, recording, printed

    def top(self, tier, *arguments):
        """The tables of prcb top -b."""
        return self.prcb(tier, "top", "-b", "--tier", tier, *arguments)
