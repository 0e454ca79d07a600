#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb list`, and `prcb stat -e`: counts against what programs were told to do and
what the kernel's resource usage says of them."""
import csv
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(SOURCE, "build/src/tools/cli/prcb"))
PYTHON = os.path.realpath(sys.executable)
PAGE = resource.getpagesize()

# Threads and processes that each touch a known number of new pages; prints tid and the
# kernel's count of faults of each.
WORK = """
import mmap, os, resource, threading, sys
PAGES, THREADS, CHILDREN = 300, %d, %d
def touch():
    area = mmap.mmap(-1, PAGES * %d)
    if hasattr(area, "madvise"):
        area.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(PAGES):
        area[page * %d] = 1
    area.close()
def work():
    touch()
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    print(threading.get_native_id(), usage.ru_minflt + usage.ru_majflt, flush=True)
threads = [threading.Thread(target=work) for _ in range(THREADS)]
for thread in threads:
    thread.start()
    thread.join()
for _ in range(CHILDREN):
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    os.waitpid(child, 0)
"""


def run(*args, **options):
    return subprocess.run([PRCB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60, **options)


def listing(*args):
    result = run("list", "-j", *args)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


EVENTS = {row["name"]: row for row in listing()["events"]}
needs_faults = unittest.skipUnless(EVENTS["page-faults"]["backing"],
                                   "page faults: %s" % EVENTS["page-faults"]["reason"])
ABSENT = next((name for name, row in EVENTS.items() if not row["backing"]), None)
BPF = run("stat", "--tier", "bpf", "-o", os.devnull, "--", "true").returncode == 0


def work(threads, children):
    return [PYTHON, "-I", "-S", "-c", WORK % (threads, children, PAGE, PAGE)]


def stat(*args):
    """The report as JSON, and what the command printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report")
        result = run("stat", "-j", "-o", path, *args)
        assert result.returncode == 0, result.stderr
        with open(path, encoding="utf-8") as file:
            return json.load(file), result.stdout


def counter(row, name):
    return next(item for item in row["counters"] if item["name"] == name)


class List(unittest.TestCase):
    def test_table_and_json_agree(self):
        table = run("list").stdout
        for name in EVENTS:
            self.assertRegex(table, r"(?m)^%s\s" % re.escape(name))
        self.assertIn("EVENT", table)
        self.assertIn("KPROFILE_SOURCE", table)

    def test_each_row_has_a_backing_or_a_reason(self):
        whole = listing()
        for row in whole["events"] + whole["sources"]:
            self.assertEqual(row["backing"] is None, row["reason"] is not None, row)
            self.assertIn(row["backing"], (None, "software", "hardware"))

    def test_sources(self):
        sources = {row["number"]: row for row in listing()["sources"]}
        for number, name, event in ((0, "ProfileTime", "task-clock"),
                                    (2, "ProfileTotalIssues", "instructions"),
                                    (19, "ProfileTotalCycles", "cycles"),
                                    (4, "ProfileLoadInstructions", None),
                                    (0x10002, None, "page-faults"),
                                    (0x40000000, None, "instructions")):
            self.assertEqual((sources[number]["name"], sources[number]["event"]), (name, event))
        for number in range(24):
            self.assertIn(number, sources)

    def test_word(self):
        names = [row["name"] for row in listing("FAULT")["events"]]
        self.assertIn("page-faults", names)
        self.assertNotIn("cycles", names)
        self.assertIn("nothing here has 'zzz'", run("list", "zzz").stdout)
        self.assertEqual(run("list", "a", "b").returncode, 2)
        self.assertEqual(run("list", "FAULT", "-j").stdout, run("list", "-j", "FAULT").stdout)
        self.assertEqual(run("list", "FAULT", "--bad").returncode, 2)

    def test_libpfm4(self):
        names = [row["name"] for row in listing("--libpfm", "page-faults")["libpfm4"]]
        if not names:
            self.skipTest("built without libpfm4")
        self.assertIn("perf::PAGE-FAULTS", names)


class Names(unittest.TestCase):
    def test_unknown(self):
        for name in ("no-such-event", "cycles,", "", "page-faults,,cs"):
            result = run("stat", "-e", name, "--", "true")
            self.assertEqual(result.returncode, 2, name)
            self.assertIn("-e", result.stderr)

    @unittest.skipUnless(ABSENT, "this machine counts everything")
    def test_absent(self):
        result = run("stat", "-e", ABSENT, "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: %s absent: " % ABSENT, result.stderr)
        report, _ = stat("-e", ABSENT, "--", "true")
        for row in report["threads"] + [report["total"]]:
            item = counter(row, ABSENT)
            self.assertIsNone(item["value"])
            self.assertIsNone(item["running_ns"])
            self.assertIsNone(item["source"])
            self.assertTrue(item["reason"])

    def test_without(self):
        report, _ = stat("--", "true")
        self.assertNotIn("counters", report["threads"][0])
        self.assertNotIn("counters", report["total"])


@needs_faults
class Command(unittest.TestCase):
    @unittest.skipUnless(BPF, "short threads are missed on the perf tier")
    def test_each_thread(self):
        report, output = stat("-e", "task-clock,page-faults", "--", *work(5, 5))
        said = {int(tid): int(faults) for tid, faults in
                (line.split() for line in output.splitlines())}
        rows = {row["tid"]: row for row in report["threads"]}
        self.assertEqual(len(said), 10)
        for tid, faults in said.items():
            item = counter(rows[tid], "page-faults")
            # A child's fork and a thread's end fault some pages that it did not see.
            self.assertGreaterEqual(item["value"], faults)
            self.assertLess(item["value"], faults + 100)
            self.assertEqual(item["source"], "software")
            self.assertGreater(item["running_ns"], 0)
            # perf's clock goes on while a hypervisor has the processor: as a rule less than a tick.
            clock = counter(rows[tid], "task-clock")["value"]
            self.assertLess(clock, rows[tid]["run_ns"] * 1.2 + 1e9 / os.sysconf("SC_CLK_TCK"))
        total = counter(report["total"], "page-faults")["value"]
        self.assertEqual(total, sum(counter(row, "page-faults")["value"]
                                    for row in report["threads"]))

    def test_total_misses_nobody(self):
        for tier in ["perf"] + ["bpf"] * BPF:
            report, output = stat("--tier", tier, "-e", "page-faults", "--", *work(20, 20))
            least = sum(int(line.split()[1]) for line in output.splitlines())
            self.assertGreaterEqual(counter(report["total"], "page-faults")["value"], least)

    def test_processes(self):
        report, _ = stat("-e", "page-faults", "--per-process", "--", *work(3, 3))
        values = [counter(row, "page-faults")["value"] for row in report["processes"]]
        if BPF:
            self.assertEqual(len(values), 4)
            self.assertGreater(max(values), 900)
            self.assertEqual(sum(values), counter(report["total"], "page-faults")["value"])

    def test_csv(self):
        result = run("stat", "-x", ",", "-e", "page-faults", "--", "true")
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        self.assertGreater(int(rows[0]["page-faults"]), 0)
        self.assertGreater(int(rows[0]["page-faults_running_ns"]), 0)

    def test_intervals(self):
        result = run("stat", "--ndjson", "-I", "50", "-e", "page-faults", "--",
                     PYTHON, "-I", "-S", "-c",
                     # Intervals that are missed are left out: some are in time.
                     "import time\nfor i in range(32):\n x = bytearray(2000000); time.sleep(0.05)")
        totals = [counter(json.loads(line)["total"], "page-faults")["value"] or 0
                  for line in result.stdout.splitlines()]
        self.assertGreater(len(totals), 3)
        self.assertTrue(all(value >= 0 for value in totals))
        self.assertGreater(sum(totals), 500)

    def test_many_short_threads(self):
        if not BPF:
            self.skipTest("no bpf tier")
        report, output = stat("-e", "page-faults", "--", *work(400, 0))
        self.assertEqual(len(output.splitlines()), 400)
        self.assertTrue(all(counter(row, "page-faults")["value"] is not None
                            for row in report["threads"]))


@needs_faults
class Targets(unittest.TestCase):
    def test_process(self):
        for tier in ["perf"] + ["bpf"] * BPF:
            with subprocess.Popen(work(0, 0)[:-1] + ["input()\n" + WORK % (0, 0, PAGE, PAGE) +
                                                     "touch()\ninput()\n"],
                                  stdin=subprocess.PIPE, text=True) as child:
                stat_run = subprocess.Popen([PRCB, "stat", "-j", "--tier", tier, "-p",
                                             str(child.pid), "-e", "page-faults,task-clock"],
                                            stdout=subprocess.PIPE, text=True)
                # The program goes on when it is surely counted: its first line is read
                # by a reader that waited for the counters' file descriptors.
                wait_for_events(stat_run.pid)
                child.stdin.write("\n\n")
                child.stdin.flush()
                child.stdin.close()
                child.wait(30)
                report = json.loads(stat_run.communicate(timeout=30)[0])
            row = report["threads"][0]
            self.assertGreaterEqual(counter(row, "page-faults")["value"], 300)
            self.assertGreater(counter(row, "task-clock")["value"], 0)
            self.assertEqual(counter(row, "page-faults"),
                             counter(report["total"], "page-faults"))


def wait_for_events(pid):
    """Until the process holds two perf events."""
    for _ in range(2000):
        links = []
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                links.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
            except OSError:
                pass
        if sum("perf_event" in link for link in links) >= 2:
            return
        time.sleep(0.005)
    raise AssertionError("the counters were not opened")


if __name__ == "__main__":
    unittest.main()
