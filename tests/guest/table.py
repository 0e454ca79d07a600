#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes what a guest's tests came to into the table of kernels.

    table.py PAGE NAME FOLDER

PAGE is docs/kernels.md, NAME one of kernels.py's kernels, FOLDER where the guest's console and
results are. The row of NAME is replaced, or made at the end of the table.
"""
import datetime
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN, END = "<!-- ./dev guests: begin -->\n", "<!-- ./dev guests: end -->\n"


def tally(log):
    text = subprocess.run([sys.executable, HERE + "/../tally.py", "guest", log], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def results(folder):
    """Passed, failed and skipped, and the names of those that failed, in which boots."""
    rows, again = tally(folder + "/testlog.json"), folder + "/again-testlog.json"
    count = {kind: sum(row[0] == kind for row in rows) for kind in ("pass", "fail", "skip")}
    said = f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped"
    failed = [row[2] for row in rows if row[0] == "fail"]
    twice = [row[2] for row in tally(again) if row[0] == "fail"] if os.path.exists(again) else failed
    for words, names in (("failed", [name for name in failed if name in twice]),
                         ("failed once and passed in a second boot",
                          [name for name in failed if name not in twice])):
        if names:
            said += f"; {words}: " + ", ".join(f"`{name.split(': ')[-1]}`" for name in names)
    return said


def main(page, name, folder):
    if not os.path.exists(folder + "/testlog.json"):
        return f"{name}: no results"
    with open(folder + "/console.log", encoding="utf-8", errors="replace") as console:
        up = re.search(r"@guest up (\S+) .*? s, (.*)", console.read())
    version = re.search(r"Debian (\S+)", up.group(2)) if up else None
    row = (f"| {name} | {up.group(1) if up else 'did not come up'} "
           f"| {version.group(1) if version else '-'} | {results(folder)} "
           f"| {datetime.date.today()} |\n")
    with open(page, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    table, after = rest.split(END)
    lines = table.splitlines(True)
    at = [i for i, line in enumerate(lines) if line.startswith(f"| {name} |")]
    lines[at[0] if at else len(lines):at[0] + 1 if at else len(lines)] = [row]
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "".join(lines) + END + after)
    print(row, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
