#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Follows a guest's console: prints what its programs print, and writes a test log.

    console.py LOG NAMES <console

LOG gets one JSON object per command in the form of a meson test log (what
tests/tally.py reads); NAMES has the commands' names, a line each. A command that
never ended, because the guest hung or died in it, counts as failed.
"""
import json
import re
import sys
import time


def result_of(status):
    return {0: "OK", 77: "SKIP"}.get(status, "FAIL")


def entry(name, lines, status):
    return {"name": name, "stdout": "".join(lines), "stderr": "",
            "result": result_of(status) if status is not None else "TIMEOUT",
            "returncode": status}


def follow(console, names):
    """Yields one entry for each name; prints the lines on the way."""
    number, lines, done, begun, tail = 0, [], 0, 0.0, []
    for line in console:
        line = line.replace("\r", "")
        match = re.search(r"@guest (up|begin|end|down)\b ?(\S*) ?(\S*)(.*)", line)
        if not match:
            (lines if number else tail).append(line)
            if number:
                sys.stdout.write(line)
                sys.stdout.flush()
            continue
        word = match.group(1)
        if word == "up":
            print(f"== guest: Linux {match.group(2)} {match.group(3)}{match.group(4)}")
        elif word == "begin":
            number, lines = int(match.group(2)), [line[:match.start()]]
            begun = time.monotonic()
            print(f"== {names[number - 1]}", flush=True)
        elif word == "end":
            lines.append(line[:match.start()])
            yield entry(names[number - 1], lines, int(match.group(3)))
            print(f"== {names[number - 1]}: exit status {match.group(3)},"
                  f" {time.monotonic() - begun:.1f} s", flush=True)
            done, number = number, 0
    if done < len(names):
        what = names[done] if number else "the guest did not come up, or stopped"
        print(f"== stopped in: {what}\n" + "".join((lines if number else tail)[-30:]))
    if number:
        yield entry(names[number - 1], lines, None)
        done = number
    for name in names[done:]:
        yield entry(name, ["not started: the guest had stopped before\n"], None)


def main(log, names_path):
    with open(names_path, encoding="utf-8") as file:
        names = file.read().splitlines()
    sys.stdin.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    with open(log, "w", encoding="utf-8") as out:
        for result in follow(sys.stdin, names):
            out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
