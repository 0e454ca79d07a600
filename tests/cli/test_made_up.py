#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A figure is one row: those that made_up_*.def add are in every output, with no other code."""
import csv
import io
import json
import os
import re
import tempfile
import unittest

from cpu_cases import run
from machine import Machine

SLEEP = ("--tier", "perf", "--", "sh", "-c", "sleep 0.1; sleep 0.1")


def prcb(*arguments):
    result = run(*arguments)
    if result.returncode:
        raise AssertionError(result.stderr)
    return result


class Accounts(unittest.TestCase):
    def test_json(self):
        document = json.loads(prcb("stat", "-j", *SLEEP).stdout)
        for row in document["threads"] + [document["total"]]:
            self.assertEqual(row["made_up"], row["voluntary_switches"])
            self.assertIsNone(row["made_up_lack"])
        self.assertGreater(document["total"]["made_up"], 0)
        self.assertEqual(document["total"]["made_up"],
                         sum(row["made_up"] for row in document["threads"]))
        self.assertEqual(document["absent"]["made_up_lack"], document["absent"]["migrations"])

    def test_intervals(self):
        """Differences."""
        # Intervals that are missed are left out: some are in time.
        lines = prcb("stat", "--ndjson", "-I", "50", *SLEEP[:-1], "sleep 0.5; sleep 0.5").stdout.splitlines()
        totals = [json.loads(line)["total"] for line in lines]
        self.assertGreater(len(totals), 2)
        self.assertEqual([row["made_up"] for row in totals],
                         [row["voluntary_switches"] for row in totals])

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(prcb("stat", "-x,", *SLEEP).stdout)))
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["made_up"], row["voluntary_switches"])
            self.assertEqual(row["made_up_lack"], "")

    def test_table_and_notes(self):
        text = prcb("stat", *SLEEP).stderr
        heading, total = (next(line for line in text.splitlines() if word in line)
                          for word in ("MADE UP", " total "))
        place = heading.index("MADE UP") + len("MADE UP")
        self.assertRegex(total[:place], r" \d+$")
        self.assertIn("note: migrations, made-up figure absent: ", text)


class Processors(unittest.TestCase):
    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        machine = Machine(self.folder.name, processors=2)
        machine.write()
        self.root = ("cpu", "--root", machine.folder)

    def test_json(self):
        document = json.loads(prcb(*self.root, "-j", "0.01").stdout)
        for row in document["processors"]:
            self.assertEqual([row["made_up"], row["made_up_ns"]], [0, 0])
            self.assertIsNone(row["made_up_lack"])
        reasons = {entry["name"]: entry["reason"] for entry in document["absent"]}
        self.assertEqual(reasons["made_up_lack"], reasons["switches"])

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(prcb(*self.root, "-x,", "0.01", "1").stdout)))
        self.assertEqual([(row["made_up"], row["made_up_ns"], row["made_up_lack"]) for row in rows],
                         [("0", "0", "")] * 2)

    def test_this_machine(self):
        document = json.loads(prcb("cpu", "-j", "0.2").stdout)
        for row in document["processors"]:
            self.assertEqual(row["made_up_ns"], row["user_ns"])
            self.assertEqual(row["made_up"], row["interrupts"])
        self.assertGreater(sum(row["made_up"] or 0 for row in document["processors"]), 0)

    def test_table_and_notes(self):
        text = prcb(*self.root, "0.01", "1").stdout
        heading = next(line for line in text.splitlines() if "%user" in line).split()
        self.assertIn("made/s", heading)
        self.assertIn("%made", heading)
        self.assertRegex(text, r"(?m)^no switches, missed_switches, made-up figure: ")

    def test_power(self):
        root = ("power", *self.root[1:])
        document = json.loads(prcb(*root, "-j", "0.01").stdout)
        for row in document["processors"]:
            self.assertEqual(row["made_up"], 0)
            self.assertIsNone(row["made_up_lack"])
            self.assertIn("made_up_lack", row["absent"])
        text = prcb(*root, "0.01").stdout
        self.assertRegex(text, r"throttles +made/s\n(?: .* 0\n){2}")
        self.assertRegex(text, r"(?m)^no made-up figure: ")

    def test_export(self):
        """A part of time is a mode."""
        text = prcb("export", "--for", "0.2", "--per-cpu", "--format", "openmetrics").stdout
        sums = dict(re.findall(r'(?m)^prcb_system_cpu_seconds_total{mode="(\w+)"} (\S+)', text))
        self.assertEqual(sums["made_up"], sums["user"])
        self.assertRegex(text, r'(?m)^prcb_cpu_seconds_total{cpu="0",mode="made_up"} ')

    def test_recordings(self):
        """A part of time is recorded, and reported in each form."""
        path = os.path.join(self.folder.name, "recording")
        result = run("record", "-o", path, "--", "sleep", "0.3")
        if result.returncode:
            self.skipTest(result.stderr.strip())
        rows = json.loads(prcb("report", path, "-j").stdout)["processors"]
        self.assertEqual([row["made_up_ns"] for row in rows], [row["user_ns"] for row in rows])
        rows = list(csv.DictReader(io.StringIO(prcb("report", path, "-x,", "--table",
                                                    "processors").stdout)))
        self.assertEqual([row["made_up_ns"] for row in rows], [row["user_ns"] for row in rows])
        self.assertIn(" MADE", prcb("report", path, "--table", "processors").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
