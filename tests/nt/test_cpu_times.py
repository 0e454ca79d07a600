#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processor times of a program written for Windows (cpu_times.c, as C and as C++, by both
compilers, on both tiers) against /proc/stat and mpstat, while one processor is kept busy.

Moments are enclosed: the kernel's figures are read before and after the program takes its own, so
the bounds need not guess how late anything runs."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = os.environ["PRCB_SOURCE"]
BUILD = os.environ["PRCB_BUILD"]
HZ = os.sysconf("SC_CLK_TCK")
ROOT = os.geteuid() == 0
SECONDS = 2.0
PYTHON = os.path.realpath(sys.executable)

ENVIRONMENT = dict(os.environ, LC_ALL="C", PKG_CONFIG_PATH=BUILD + "/meson-uninstalled",
                   LD_LIBRARY_PATH=BUILD + "/src/nt/compat:" + BUILD + "/src/lib")


def compile_program(folder, compiler, *options):
    """By the name of its source a compiler knows the language: clang 19 takes -x none for an error
    where no file follows it."""
    path = os.path.join(folder, compiler)
    source = path + (".cpp" if "++" in compiler else ".c")
    shutil.copy(os.path.join(SOURCE, "tests/nt/cpu_times.c"), source)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "prcb-nt"], env=ENVIRONMENT,
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    subprocess.run([compiler, *options, "-O1", "-Wall", "-Wextra", "-Werror",
                    "-Wno-cast-function-type", source, *shlex.split(flags), "-o", path],
                   check=True)
    return path


def kernel_times():
    """{processor: {"user", "system", "idle", "interrupt", "dpc"} in seconds}: as the manual says
    that they are put together."""
    result = {}
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if re.match(r"cpu\d", line):
                name, *ticks = line.split()
                user, nice, system, idle, wait, irq, softirq, steal = (int(x) / HZ
                                                                       for x in ticks[:8])
                result[int(name[3:])] = {
                    "user": user + nice, "system": system + irq + softirq + steal,
                    "idle": idle + wait, "interrupt": irq, "dpc": softirq}
    return result


class Program:
    """One that takes a moment whenever it is told to."""

    def __init__(self, path, *wrapper):
        self.process = subprocess.Popen([*wrapper, path], env=ENVIRONMENT, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def moment(self):
        """What it printed, with the kernel's figures and the time before and after."""
        taken = {"before": kernel_times(), "from": time.monotonic(), "lines": []}
        self.process.stdin.write("now\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line == "done\n":
                break
            taken["lines"].append(line.split())
        else:
            raise AssertionError("the program ended: %r" % taken["lines"])
        taken["until"], taken["after"] = time.monotonic(), kernel_times()
        return taken

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def rows(taken, kind):
    return {int(line[1]): [float(x) for x in line[2:]] for line in taken["lines"]
            if line[0] == kind}


class Load:
    """The last processor busy, most of it in user mode."""

    def __enter__(self):
        code = ("import os\nos.sched_setaffinity(0, {%d})\nprint(flush=True)\n"
                "while True: pass\n" % self.processor())
        self.process = subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE)
        self.process.stdout.readline()
        return self

    @staticmethod
    def processor():
        return max(os.sched_getaffinity(0))

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Mpstat:
    """mpstat over one interval, and when it ran."""

    def __init__(self):
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            ["mpstat", "-P", "ALL", "-o", "JSON", str(int(SECONDS)), "1"], env=ENVIRONMENT,
            stdout=subprocess.PIPE, text=True) if shutil.which("mpstat") else None

    def result(self):
        if not self.process:
            return None
        text, _ = self.process.communicate()
        host = json.loads(text)["sysstat"]["hosts"][0]
        return {int(row["cpu"]): row for row in host["statistics"][0]["cpu-load"]
                if row["cpu"] != "all"}


class CpuTimes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chmod(cls.folder, 0o755)
        programs = {"C": Program(compile_program(cls.folder, "gcc"))}
        if ROOT:  # an ordinary user has the perf tier
            programs["C++, nobody"] = Program(
                compile_program(cls.folder, "g++", "-std=c++11"), "setpriv",
                "--reuid=65534", "--regid=65534", "--clear-groups")
        else:
            programs["C++"] = Program(compile_program(cls.folder, "g++"))
        for compiler, options in (("clang", ()), ("clang++", ("-std=c++20",))):
            if shutil.which(compiler):
                compile_program(cls.folder, compiler, *options)
        with Load():
            cls.first = {name: program.moment() for name, program in programs.items()}
            mpstat = Mpstat()
            time.sleep(SECONDS)
            cls.mpstat = mpstat.result()
            cls.mpstat_times = mpstat.start, time.monotonic()
            cls.second = {name: program.moment() for name, program in programs.items()}
        cls.codes = [program.close() for program in programs.values()]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def each(self):
        """(program, its first moment, its second)."""
        for name, first in self.first.items():
            self.program = name
            yield first, self.second[name]

    program = ""

    def _formatMessage(self, msg, standardMsg):
        return super()._formatMessage("%s: %s" % (self.program, msg or ""), standardMsg)

    @staticmethod
    def kernel_grew(first, second, processor, members):
        """By how much at least, and at most, the kernel's own figures grew between the moments."""
        def total(taken, when):
            return sum(taken[when][processor][member] for member in members)
        return (total(second, "before") - total(first, "after"),
                total(second, "after") - total(first, "before"))

    def kernel_is_off(self, first, second, processor):
        """By how many seconds user, system and idle of /proc/stat miss the time that passed: ticks
        are lost where a hypervisor takes the processor away, and come late in bursts."""
        least, most = self.kernel_grew(first, second, processor, ("user", "system", "idle"))
        return max(0, second["from"] - first["until"] - most,
                   least - (second["until"] - first["from"]))

    def enclosed(self, first, second, processor, member, value, slack):
        """value: what a program says a member grew by between its two moments."""
        least, most = self.kernel_grew(first, second, processor, (member,))
        slack += self.kernel_is_off(first, second, processor)
        self.assertGreaterEqual(value, least - slack, "processor %d %s" % (processor, member))
        self.assertLessEqual(value, most + slack, "processor %d %s" % (processor, member))

    def test_ends(self):
        self.assertEqual(set(self.codes), {0})

    def test_since_boot(self):
        """Totals are since the system's start, as Windows' are: what the kernel has at the
        first moment, to three of its units."""
        units = 3.001 / HZ  # sums of decimals are not exact
        for first, _ in self.each():
            for processor, values in rows(first, "scripts").items():
                for member, value in zip(("user", "system", "idle"), values):
                    self.assertGreaterEqual(value + units, first["before"][processor][member])
                    self.assertLessEqual(value - units, first["after"][processor][member])

    def test_against_proc_stat(self):
        """What the kernel's tick calls idle or user has interrupts in it where the kernel does
        not take them out (IRQ_TIME_ACCOUNTING): the program's figures have not. Besides, user
        and kernel are told apart by the tick on either side, and a tick that fell on an
        interrupt is the kernel's there: 5 % of the interval."""
        for first, second in self.each():
            before, after = rows(first, "scripts"), rows(second, "scripts")
            self.assertEqual(sorted(after), sorted(second["after"]))
            for processor, values in after.items():
                user, system, idle, interrupt, dpc = (
                    now - then for now, then in zip(values, before[processor]))
                slack = 3 / HZ + interrupt + dpc
                self.enclosed(first, second, processor, "idle", idle, slack)
                self.enclosed(first, second, processor, "user", user, slack + 0.05 * SECONDS)
                self.enclosed(first, second, processor, "system", system, slack + 0.05 * SECONDS)

    def test_all_time(self):
        """Kernel and user time are all time there is: to the millisecond on the bpf tier, to
        a few units of the kernel's otherwise."""
        for first, second in self.each():
            before, after = rows(first, "scripts"), rows(second, "scripts")
            for processor, values in after.items():
                whole = sum(values[:3]) - sum(before[processor][:3])
                # The perf tier has the kernel's sum, which may be off itself.
                slack = 6 / HZ + self.kernel_is_off(first, second, processor)
                self.assertGreaterEqual(whole, second["from"] - first["until"] - slack)
                self.assertLessEqual(whole, second["until"] - first["from"] + slack)

    def test_load(self):
        """The busy loop: its processor had no idle time to speak of, and much user time."""
        busy = Load.processor()
        for first, second in self.each():
            user, system, idle = [now - then for now, then in zip(
                rows(second, "scripts")[busy], rows(first, "scripts")[busy])][:3]
            off = self.kernel_is_off(first, second, busy)
            self.assertLess(idle, 0.1 * SECONDS + off)
            self.assertGreater(user + system, 0.9 * SECONDS - off)

    def test_agree(self):
        """Three ways to work it out, one result: whole milliseconds, and shares."""
        for first, second in self.each():
            scripts, events = rows(second, "scripts"), rows(second, "events")
            before = rows(first, "scripts")
            self.assertEqual(sorted(scripts), sorted(events))
            took = second["until"] - second["from"]
            for processor, (user, system, idle, _, _) in scripts.items():
                for value, whole in zip((user, system, idle), events[processor]):
                    self.assertLessEqual(abs(value - whole / 1000), took + 3 / HZ)
            for _, group, number, kernel, used in (line for line in second["lines"]
                                                   if line[0] == "viewer"):
                processor = int(group) * 64 + int(number)
                then, now = before[processor], scripts[processor]
                grown = [after - earlier for earlier, after in zip(then, now)][:3]
                whole = sum(grown)
                # The viewer looks a moment later, both times.
                late = 100 * (took + first["until"] - first["from"] + 6 / HZ) / whole
                self.assertLessEqual(abs(float(used) - 100 * grown[0] / whole), late)
                self.assertLessEqual(abs(float(kernel) - 100 * grown[1] / whole), late)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the program has no cycles here")
    def test_cycles(self):
        """Busy by cycles is busy by times."""
        for first, second in self.each():
            scripts, before = rows(second, "scripts"), rows(first, "scripts")
            late = (second["until"] - second["from"] + first["until"] - first["from"] + 6 / HZ)
            for processor, (busy,) in rows(second, "cycles").items():
                grown = [after - earlier for earlier, after
                         in zip(before[processor], scripts[processor])][:3]
                off = self.kernel_is_off(first, second, processor)  # cycles pass when ticks do not
                self.assertLessEqual(abs(busy - 100 * (1 - grown[2] / sum(grown))),
                                     100 * (late + off) / sum(grown) + 0.5)

    def test_counts(self):
        """Interrupts and softirqs grow, by no more than a processor could take."""
        for first, second in self.each():
            for then, now in zip(*([int(x) for x in line[1:]] for taken in (first, second)
                                   for line in taken["lines"] if line[0] == "counts")):
                grown = (now - then) % (1 << 32)
                self.assertGreater(grown, 10)  # a busy processor's ticks alone
                self.assertLess(grown, 20_000_000)

    def test_against_mpstat(self):
        """mpstat's shares over its interval, which lies within ours but for its start: the
        parts that differ count in full."""
        if not self.mpstat:
            self.skipTest("no mpstat: install sysstat")
        for first, second in self.each():
            scripts, before = rows(second, "scripts"), rows(first, "scripts")
            whole = second["until"] - first["from"]
            # All of our interval that mpstat's two seconds may not cover, as a share of it.
            other = 100 * (whole - SECONDS + 0.05) / whole
            for processor, row in self.mpstat.items():
                grown = [after - earlier for earlier, after
                         in zip(before[processor], scripts[processor])]
                interrupts = 100 * (grown[3] + grown[4]) / sum(grown[:3])
                share = 100 * grown[2] / sum(grown[:3])
                self.assertLessEqual(abs(share - row["idle"] - row["iowait"]),
                                     other + interrupts + 2, "processor %d" % processor)
                share = 100 * grown[0] / sum(grown[:3])
                self.assertLessEqual(abs(share - row["usr"] - row["nice"] - row["guest"]
                                         - row["gnice"]), other + interrupts + 5,
                                     "processor %d" % processor)


if __name__ == "__main__":
    unittest.main()
