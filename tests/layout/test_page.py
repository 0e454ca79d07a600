#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/processor-power-state.md is what tools/power-state-page.py makes of the catalog, and the
table of docs/layout-sources.md what tools/inferred-layouts.py makes of it; the manual of layout.h
has all its calls."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

PRCB = os.environ["PRCB"]
SOURCE = pathlib.Path(os.environ["PRCB_SOURCE"])
PAGE = SOURCE / "docs" / "processor-power-state.md"
TOOL = SOURCE / "tools" / "power-state-page.py"


HEADER = SOURCE / "include" / "prcb" / "layout.h"
MANUAL = SOURCE / "man" / "prcb_layout.3.scd"


class Manual(unittest.TestCase):
    def test_every_call_is_in_it(self):
        header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
        calls = set(re.findall(r"PRCB_API[^;]*?\b(prcb_\w+)\(", header))
        types = set(re.findall(r"\b(?:struct|enum) (prcb_\w+)", header))
        self.assertGreater(len(calls), 25)
        page = set(re.findall(r"\bprcb_\w+\b(?!\*\(3\))", MANUAL.read_text().replace("\\", "")))
        self.assertEqual(calls - page, set(), "not in the page")
        self.assertEqual(page - calls - types - {"prcb_layout", "prcb_error"}, set(),
                         "only in the page")


def page():
    return subprocess.run([sys.executable, TOOL, PRCB], capture_output=True, text=True,
                          timeout=60, check=True).stdout


class Page(unittest.TestCase):
    def test_up_to_date(self):
        self.assertTrue(page() == PAGE.read_text(),
                        f"out of date: {TOOL.name} build/src/tools/cli/prcb > {PAGE}")

    def test_table(self):
        out = page()
        self.assertIn("| 0x04 | 0x08 | `PROC_IDLE_ACCOUNTING *IdleAccounting` | 6.2 and higher | "
                      "previously at 0x20 |", out)
        self.assertIn("0x08 (6.1); 0x10 (6.2); 0x08", out)
        self.assertIn("| 0x4C |  | `VOID *AbortThrottle` | 5.0 |  |", out)
        # Its return under the old name is another member; early 5.2 is as early 5.1 was.
        self.assertIn("| 0x2F | 0x33 | `UCHAR Reserved` | 6.1 | next at 0x28 and 0x30 |", out)
        self.assertIn("`ULONG Spare1[2]` | early 5.1; early 5.2 |", out)

    def test_table_is_in_order_of_time(self):
        """What shares bytes in different versions comes oldest first, as in the article."""
        rows = page().splitlines()
        place = {row.split("`")[1]: i for i, row in enumerate(rows) if "`" in row}
        for older, newer in (("ULONG PerfIdleTime", "ULONG LastIdleThreadKernelTime"),
                             ("UCHAR Class", "UCHAR EfficiencyClass"),
                             ("PROC_IDLE_SNAP IdleCheck", "PROC_IDLE_SNAP HvIdleCheck"),
                             ("PROC_IDLE_SNAP PerfCheck", "PROC_PERF_SNAP PerfCheck"),
                             ("UCHAR NotUsed", "UCHAR ContainmentGroupType")):
            self.assertLess(place[older], place[newer])


class Inferred(unittest.TestCase):
    def test_the_table_is_what_the_catalog_says(self):
        tool = SOURCE / "tools" / "inferred-layouts.py"
        made = subprocess.run([sys.executable, tool, PRCB], capture_output=True, text=True, timeout=60,
                              check=True).stdout
        self.assertIn("`KDPC`", made)
        self.assertIn(made, (SOURCE / "docs/layout-sources.md").read_text(),
                      f"out of date: {tool.name} --write {PRCB}")


if __name__ == "__main__":
    unittest.main()
