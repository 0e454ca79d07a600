#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turns what tests printed into lines of results for ./dev check.

    tally.py GROUP testlog.json [again]    a meson test log, one JSON object a line
    tally.py --tap GROUP STATUS FILE       the output of a script that prints TAP
    tally.py --again testlog.json          names of the failed tests to run a second time

Each result is "pass|fail|skip|unsteady TAB group TAB name TAB reason". A meson test is a
program that holds many test functions; they are counted one by one where the
output says so (cmocka, unittest, TAP), so that a skipped function inside a
program that passed is not lost. A program with other output counts as one.

Tests that failed are run again; one that passes then is "unsteady": no failure, but counted
and listed with what it said, for it has a race that somebody has to find. The second runs are
bounded by time, not number: the shortest come first, as long as all together took no more than
AGAIN_S seconds the first time. Load that upsets many tests is no reason to look at none of
them, and a broken build does not double the time of a check.
"""
import json
import os
import re
import sys

PASS, FAIL, SKIP, UNSTEADY = "pass", "fail", "skip", "unsteady"
AGAIN_S = 420
NO_REASON = "no reason given"


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else NO_REASON


def cmocka(text):
    """cmocka's own output; the reason of a skip is what was printed before it."""
    results, said = [], []
    for line in text.splitlines():
        match = re.match(r"\[ ([ A-Z]{8}) \] (.*)", line)
        if not match:
            said.append(line)
            continue
        word, name = match.group(1).strip(), match.group(2).strip()
        if word == "RUN":
            said = []
        elif word == "OK":
            results.append((PASS, name, ""))
        elif word == "SKIPPED" and not re.match(r".*\d+ test\(s\)", name):
            if (SKIP, name) not in [result[:2] for result in results]:
                results.append((SKIP, name, last_line("\n".join(said))))
        elif word == "FAILED" and not re.match(r".*\d+ test\(s\)", name):
            if (FAIL, name) not in [result[:2] for result in results]:
                results.append((FAIL, name, ""))
    return results


def unittest_output(text):
    """unittest: the summary counts; verbose output adds the names of the skipped."""
    ran = re.search(r"^Ran (\d+) tests? in", text, re.M)
    if not ran:
        return []
    counts = dict((key, int(value)) for key, value in
                  re.findall(r"(failures|errors|skipped|unexpected successes)=(\d+)", text))
    failed = (counts.get("failures", 0) + counts.get("errors", 0)
              + counts.get("unexpected successes", 0))
    skipped = counts.get("skipped", 0)
    # A class that is skipped as it is set up counts as skipped once, and not as run.
    not_run = len(re.findall(r"^setUp(?:Class|Module) .* \.\.\. skipped ", text, re.M))
    passed = max(0, int(ran.group(1)) - failed - (skipped - not_run))
    named = re.findall(r"^(\w+) \([^)]*\)(?:\n[^\n]*?)?(?: \.\.\. | )skipped (['\"])(.*)\2$",
                       text, re.M)
    results = [(SKIP, name, reason) for name, _, reason in named[:skipped]]
    results += [(SKIP, "unittest", NO_REASON)] * (skipped - len(results))
    broken = [name for _, name in re.findall(r"^(FAIL|ERROR): (\S+)", text, re.M)][:failed]
    results += [(FAIL, name, "") for name in broken + ["unittest"] * (failed - len(broken))]
    return results + [(PASS, "unittest", "")] * passed


def tap(text):
    results = []
    for line in text.splitlines():
        match = re.match(r"(not )?ok\b\s*\d*\s*-?\s*([^#]*)(?:#\s*SKIP\S*\s*(.*))?", line, re.I)
        if not match:
            continue
        name = match.group(2).strip()
        if match.group(3) is not None:
            results.append((SKIP, name, match.group(3) or NO_REASON))
        else:
            results.append((FAIL if match.group(1) else PASS, name, ""))
    return results


def inner_results(text):
    for parser in (cmocka, unittest_output, tap):
        results = parser(text)
        if results:
            return results
    return []


def meson_results(entry):
    """The results of one meson test, never empty."""
    text = entry.get("stdout", "") + "\n" + entry.get("stderr", "")
    outcome = entry["result"]
    if outcome == "SKIP":
        return [(SKIP, "", last_line(text))]
    results = inner_results(text)
    if outcome in ("OK", "EXPECTEDFAIL"):
        return results or [(PASS, "", "")]
    if not any(kind == FAIL for kind, _, _ in results):
        results.append((FAIL, "", f"{outcome.lower()}, exit status {entry.get('returncode')}"))
    return results


def program_of(entry):
    return entry["name"].split(" / ")[-1]


def read_log(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [json.loads(line) for line in file]


def failed(entry):
    return any(kind == FAIL for kind, _, _ in meson_results(entry))


def second_runs(entries):
    """Names of the tests to run again, in the order of the log."""
    chosen, left = set(), AGAIN_S
    for entry in sorted(filter(failed, entries), key=lambda entry: entry.get("duration", 0)):
        left -= entry.get("duration", 0)
        if left < 0:
            break
        chosen.add(program_of(entry))
    return [program_of(entry) for entry in entries if program_of(entry) in chosen]


def said(entry):
    """The line of the first failure: cmocka's or unittest's."""
    text = entry.get("stdout", "") + "\n" + entry.get("stderr", "")
    lines = re.findall(r"^\[ +ERROR +\] --- (.+)|^((?:AssertionError|\w+Error)\b.*)", text, re.M)
    return " ".join(lines[0]).strip() if lines else entry["result"].lower()


def second_look(first, second):
    """What two runs of a test make together; the second is None where there was none."""
    if not failed(first) or second is None or failed(second):
        return meson_results(first)
    before = {name for kind, name, _ in meson_results(first) if kind == FAIL}
    rest = [result for result in meson_results(second) if result[1] not in before or not result[1]]
    return rest + [(UNSTEADY, name, said(first)) for name in sorted(before)]


def put(group, program, results):
    for kind, name, reason in results:
        full = ": ".join(part for part in (program, name) if part)
        print(kind, group, full.replace("\t", " "), reason.replace("\t", " "), sep="\t")


def main(arguments):
    if arguments[0] == "--tap":
        group, status, path = arguments[1:]
        with open(path, encoding="utf-8", errors="replace") as file:
            results = tap(file.read())
        if int(status) and not any(kind == FAIL for kind, _, _ in results):
            results.append((FAIL, "script", f"exit status {status}"))
        put(group, "", results)
        return
    if arguments[0] == "--again":
        for name in second_runs(read_log(arguments[1])):
            print(name)
        return
    group, path = arguments[:2]
    again = {program_of(entry): entry for second in arguments[2:]
             if os.path.exists(second) for entry in read_log(second)}
    for entry in read_log(path):
        program = program_of(entry)
        put(group, program, second_look(entry, again.get(program)))


if __name__ == "__main__":
    main(sys.argv[1:])
