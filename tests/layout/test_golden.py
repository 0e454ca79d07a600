#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every layout as it was last recorded: one file a structure, all its versions.

A change of the catalog shows here as a diff to be read and, if it is meant,
recorded: PRCB=build/src/tools/cli/prcb PRCB_SOURCE=. tests/layout/test_golden.py --record
"""
import difflib
import json
import os
import pathlib
import subprocess
import sys
import unittest

PRCB = os.environ["PRCB"]
SOURCE = pathlib.Path(os.environ["PRCB_SOURCE"])
GOLDEN = SOURCE / "tests" / "layout" / "golden"

OTHERS = {
    "diff.6.1-6.2": ["PROCESSOR_POWER_STATE", "--arch", "x86", "--diff", "6.1", "6.2"],
    "diff.18362": ["PROCESSOR_POWER_STATE", "--diff", "10.0.18362.30", "10.0.18362.295"],
    "header.KDPC": ["KDPC", "--version", "11 24H2", "--header"],
    "json.PROCESSOR_POWER_STATE": ["PROCESSOR_POWER_STATE", "--version", "Vista SP1", "-j"],
    "list": [],
}


def prcb(arguments):
    return subprocess.run([PRCB, "layout", *arguments], capture_output=True, text=True,
                          timeout=60, check=True).stdout


def structures():
    return json.loads(prcb(["-j"]))["structs"]


def wanted():
    """Name of each golden file, and the command that makes it."""
    files = {name: [name, "--all"] for name in structures()}
    files.update(OTHERS)
    return files


class Golden(unittest.TestCase):
    def test_recorded(self):
        self.maxDiff = None
        for name, arguments in wanted().items():
            with self.subTest(file=name):
                path = GOLDEN / (name + ".txt")
                recorded = path.read_text() if path.exists() else ""
                diff = difflib.unified_diff(recorded.splitlines(), prcb(arguments).splitlines(),
                                            str(path), "prcb " + " ".join(arguments), lineterm="")
                self.assertEqual("\n".join(diff), "")

    def test_nothing_left_over(self):
        self.assertEqual({path.stem for path in GOLDEN.glob("*.txt")}, set(wanted()))


def record():
    GOLDEN.mkdir(exist_ok=True)
    for path in GOLDEN.glob("*.txt"):
        path.unlink()
    for name, arguments in wanted().items():
        (GOLDEN / (name + ".txt")).write_text(prcb(arguments))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        unittest.main()
