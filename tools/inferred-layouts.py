#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which structures nobody read in which version: the table of docs/layout-sources.md.

    tools/inferred-layouts.py PRCB            prints it, as the program PRCB says
    tools/inferred-layouts.py --write PRCB    writes it into docs/layout-sources.md
"""
import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/layout-sources.md"
BEGIN, END = "<!-- made by tools/inferred-layouts.py -->\n", "<!-- until here -->\n"


def table(prcb):
    """A row for the structures of which the same versions were not read."""
    out = subprocess.run([prcb, "layout", "--all", "-j"], capture_output=True, text=True, check=True).stdout
    versions, structures = {}, {}
    for row in map(json.loads, out.splitlines()):
        if row["source"] == "inferred":
            versions.setdefault(row["struct"], []).append(f"{row['version']} {row['arch']}")
    for name, unread in versions.items():
        structures.setdefault(", ".join(unread), []).append(f"`{name}`")
    rows = "".join(f"| {', '.join(names)} | {unread} |\n" for unread, names in structures.items())
    return f"\n| Structures | Versions that were not read |\n|---|---|\n{rows}\n"


def main():
    made = table(sys.argv[-1])
    if "--write" not in sys.argv:
        print(made, end="")
        return
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + made + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
