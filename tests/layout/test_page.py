#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/processor-power-state.md is what tools/power-state-page.py makes of the catalog; the manual
of layout.h has all its calls."""
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


class Page(unittest.TestCase):
    def test_up_to_date(self):
        made = subprocess.run([sys.executable, TOOL, PRCB], capture_output=True, text=True,
                              timeout=60, check=True).stdout
        self.assertTrue(made == PAGE.read_text(),
                        f"out of date: {TOOL.name} build/src/cli/prcb > {PAGE}")


if __name__ == "__main__":
    unittest.main()
