#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of samples of a program without frame pointers: its known chain of calls is complete in the
recording and each export, as perf script (DWARF) sees it."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB") or os.path.join(SOURCE, "build/src/tools/cli/prcb"))
CHAIN = os.environ.get("RECORD_CHAIN") or os.path.join(SOURCE, "build/tests/cli/record_chain")
# Between main and these are the C library's own, whose number differs.
INNER = ["compare_serves", "middle_handles", "leaf_spins"]


def prcb(*args):
    return subprocess.run([PRCB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)


def has_chain(names):
    """Whether functions, outermost first, are the chain from the program's beginning to where it spins."""
    text = ";".join(names)
    return names[0] == "_start" and re.search(r";main;(qsort|msort|introsort)[^;]*(;\w*(sort|_r\b)[^;]*)*;" +
                                              ";".join(INNER) + r"(;|$)", text) is not None


class Chain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path = os.path.join(cls.folder, "recording")
        result = prcb("record", "-g", "-o", cls.path, "--", CHAIN, "0.6")
        if result.returncode:
            raise unittest.SkipTest(result.stderr.decode())
        cls.said = result.stderr.decode()

    def report(self, *args):
        result = prcb("report", *args, self.path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def samples(self):
        """[functions, outermost first, weight, why it is not complete]"""
        with sqlite3.connect(self.path) as db:
            callers = dict(db.execute("SELECT id, caller FROM stacks"))
            kernel = dict(db.execute("SELECT id, kernel FROM stacks"))
            names = dict(db.execute("SELECT stack, name FROM stack_functions JOIN functions ON function=id"))
            rows = db.execute("SELECT stack, weight, missing FROM samples").fetchall()
        for stack, weight, missing in rows:
            chain = []
            while stack:
                if not kernel[stack]:
                    chain.insert(0, names.get(stack, "?"))
                stack = callers[stack]
            yield chain, weight, missing

    def test_every_sample_of_it(self):
        rows = list(self.samples())
        spins = [row for row in rows if row[0] and row[0][-1] == "leaf_spins"]
        self.assertGreater(len(spins), 0.8 * len(rows))
        # What is left: the first moments, before the program's files could be read, and of a busy machine the budget.
        whole = [row for row in spins if row[2] is None]
        self.assertGreater(len(whole), 0.9 * len(spins))
        for chain, _, _ in whole:
            self.assertTrue(has_chain(chain), chain)

    def test_shares_that_are_said(self):
        rows = list(self.samples())
        complete = sum(row[2] is None for row in rows)
        report = json.loads(self.report("-j", "--table", "functions"))
        self.assertEqual(report["samples_complete"], complete)
        self.assertEqual(complete + sum(row["samples"] for row in report["samples_incomplete"]), len(rows))
        share = f"{100 * complete / len(rows):.1f}%"
        self.assertIn(f"stacks are complete for {share} of the samples", self.report())
        self.assertIn(f"({share} complete)", self.said)

    def test_folded(self):
        lines = [line.rsplit(" ", 1) for line in self.report("--folded").splitlines()]
        found = sum(int(ns) for text, ns in lines if has_chain(text.split(";")[1:]))
        self.assertGreater(found, 0.7 * sum(int(ns) for _, ns in lines))

    def all_time(self):
        """[states and functions, ns] of each line"""
        lines = [line.rsplit(" ", 1) for line in self.report("--folded", "--all-time").splitlines()]
        return [(text.split(";")[1:], int(ns)) for text, ns in lines]

    def test_all_time(self):
        """Its sum is the threads' life, in ns; each part is what the switches say; samples divide the running time."""
        rows = self.all_time()
        sums = {}
        for (state, *_), ns in rows:
            kind = "run" if state == "running" else "ready" if state.startswith("ready") else \
                "unknown" if state == "[not known]" else "wait"
            sums[kind] = sums.get(kind, 0) + ns
        threads = json.loads(self.report("-j", "--table", "threads"))["threads"]
        for kind in ("run", "ready", "wait", "unknown"):
            self.assertEqual(sums.get(kind, 0), sum(thread[kind + "_ns"] for thread in threads), kind)
        with sqlite3.connect(self.path) as db:
            life, = db.execute("""SELECT sum(min(ifnull(end_ns, e), e) - max(start_ns, s)) FROM threads, (SELECT
                                  (SELECT value + 0 FROM facts WHERE name = 'start_ns') s,
                                  (SELECT value + 0 FROM facts WHERE name = 'end_ns') e)""").fetchone()
        # A thread leaves its processor for the last time a moment after the kernel reports its end.
        self.assertGreaterEqual(sum(ns for _, ns in rows), life)
        self.assertLess(sum(ns for _, ns in rows), life + 0.1e9)
        spins = sum(ns for names, ns in rows if names[0] == "running" and has_chain(names[1:]))
        self.assertGreater(spins, 0.7 * sums["run"])
        rests = sum(ns for names, ns in rows if names[0] == "sleep" and "rests_between" in names)
        slept = sum(ns for names, ns in rows if names[0] == "sleep")
        self.assertGreater(sums["wait"], 0)
        self.assertGreaterEqual(slept, rests)

    def test_all_time_needs_switches(self):
        path = os.path.join(self.folder, "alone")
        result = prcb("record", "-g", "--no-switches", "-o", path, "--", CHAIN, "0.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = prcb("report", "--folded", "--all-time", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"no switches were recorded", result.stderr)
        for words in (["--all-time"], ["--folded", "--waits", "--all-time"]):
            self.assertEqual(prcb("report", *words, path).returncode, 2)

    def test_pprof(self):
        """Read by pprof: the type "time" has all of it, and the chain is complete."""
        path, tool = os.path.join(self.folder, "profile.pb.gz"), shutil.which("go")
        result = prcb("report", "--pprof", "-o", path, self.path)
        if result.returncode or not tool:
            self.skipTest(result.stderr.decode() or "no go tool pprof")
        text = subprocess.run([tool, "tool", "pprof", "-raw", path], stdout=subprocess.PIPE, check=True,
                              stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder}).stdout.decode()
        types = re.search(r"(?m)^samples/count.*$", text).group().split()
        self.assertEqual(types[-1], "time/nanoseconds")
        rows = [line.split(":") for line in re.findall(r"(?m)^ +\d+(?: +\d+)+: [\d ]+$", text)]
        self.assertEqual(sum(int(values.split()[-1]) for values, _ in rows), sum(ns for _, ns in self.all_time()))
        names = dict(re.findall(r"(?m)^ +(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(\w+)", text))
        spins = sum(int(values.split()[1]) for values, places in rows
                    if has_chain([names.get(place, "?") for place in reversed(places.split())]))
        self.assertGreater(spins, 0.7 * sum(int(values.split()[1]) for values, _ in rows))

    def test_as_perf_sees_it(self):
        perf, data = shutil.which("perf"), os.path.join(self.folder, "perf.data")
        how = ["-q", "--call-graph", "dwarf,8192", "-e", "cpu-clock", "-F", "200", "-o", data, CHAIN, "0.3"]
        if not perf or subprocess.run([perf, "record", *how], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      check=False).returncode:
            self.skipTest("perf record --call-graph dwarf does not work here")
        text = subprocess.run([perf, "script", "--no-inline", "-i", data, "-F", "ip,sym"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True, text=True).stdout
        own = {"_start", "main", *INNER}
        plain = lambda names: tuple(name if name in own else "libc" for name in names) # it has several names for each
        theirs = set()
        for stack in text.split("\n\n"):
            names = [line.split()[1] for line in reversed(stack.splitlines()) if len(line.split()) > 1]
            if names and names[-1] == "leaf_spins" and names[0] == "_start":
                theirs.add(plain(names))
        ours = {plain(chain) for chain, _, missing in self.samples()
                if chain and chain[-1] == "leaf_spins" and missing is None}
        if not theirs:
            self.skipTest("perf script names none of these functions")
        self.assertTrue(ours & theirs, (ours, theirs))

    def test_frame_pointers_alone(self):
        """As before: no share is said, for nobody knows it."""
        path = os.path.join(self.folder, "pointers")
        result = prcb("record", "-g", "--stack-bytes", "0", "-o", path, "--", CHAIN, "0.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("complete", result.stderr.decode())
        report = prcb("report", path).stdout.decode()
        self.assertNotIn("stacks are complete", report)
        self.assertIsNone(json.loads(prcb("report", "-j", path).stdout)["samples_complete"])

    def test_shallow_copies_are_cut(self):
        path = os.path.join(self.folder, "shallow")
        result = prcb("record", "-g", "--stack-bytes", "64", "-o", path, "--", CHAIN, "0.2")
        self.assertEqual(result.returncode, 0, result.stderr)
        with sqlite3.connect(path) as db:
            cut = dict(db.execute("SELECT ifnull(missing, ''), count(*) FROM samples GROUP BY 1"))
        self.assertGreater(cut.get("cut", 0), 0.5 * sum(cut.values()), cut)

    def test_too_many_bytes(self):
        result = prcb("record", "-g", "--stack-bytes", "57345", "-o", self.path + "x", "--", "true")
        self.assertEqual(result.returncode, 2, result.stderr)


if __name__ == "__main__":
    unittest.main()
