#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/processor-power-state.md is what tools/power-state-page.py makes of the catalog."""
import os
import pathlib
import subprocess
import sys
import unittest

PRCB = os.environ["PRCB"]
SOURCE = pathlib.Path(os.environ["PRCB_SOURCE"])
PAGE = SOURCE / "docs" / "processor-power-state.md"
TOOL = SOURCE / "tools" / "power-state-page.py"


class Page(unittest.TestCase):
    def test_up_to_date(self):
        made = subprocess.run([sys.executable, TOOL, PRCB], capture_output=True, text=True,
                              timeout=60, check=True).stdout
        self.assertTrue(made == PAGE.read_text(),
                        f"out of date: {TOOL.name} build/src/cli/prcb > {PAGE}")


if __name__ == "__main__":
    unittest.main()
