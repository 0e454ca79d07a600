#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a command costs before its first instruction and after its last: `prcb stat -- true` beside
`perf stat -- true`, as wall time and as the processor time of the program and its child. Rounds are
interleaved; a row is the least and the median of them, for what disturbs only adds."""
import os
import shutil
import statistics
import sys
import time

PRCB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/tools/cli/prcb")
ROUNDS = 21
ROWS = [("true", ["true"]),
        ("perf stat -- true", ["perf", "stat", "--", "true"]),
        ("prcb stat -- true", [PRCB, "stat", "--", "true"]),
        ("prcb stat --tier bpf -- true", [PRCB, "stat", "--tier", "bpf", "--", "true"]),
        ("prcb stat --tier perf -- true", [PRCB, "stat", "--tier", "perf", "--", "true"]),
        ("prcb cpu 0.001 1", [PRCB, "cpu", "0.001", "1"]),
        ("prcb --version", [PRCB, "--version"])]


def run(command):
    """Wall and processor milliseconds; None: it failed."""
    begin = time.perf_counter_ns()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    if status:
        return None
    return (time.perf_counter_ns() - begin) / 1e6, (used.ru_utime + used.ru_stime) * 1e3


def main():
    rows = []
    for name, command in ROWS:
        if not shutil.which(command[0]) or run(command) is None:
            print(f"{name}: cannot be run here")
        else:
            rows.append((name, command, []))
    for _ in range(ROUNDS):
        for _, command, results in rows:
            result = run(command)
            if result:
                results.append(result)
    print(f"{'':32}{'wall ms':>18}{'processor ms':>18}\n{'':32}" + f"{'least':>9}{'median':>9}" * 2)
    for name, _, results in rows:
        cells = [f"{f(column):9.1f}" for column in zip(*results) for f in (min, statistics.median)]
        print(f"{name:32}" + "".join(cells))


if __name__ == "__main__":
    sys.exit(main())
