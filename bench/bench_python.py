#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What measuring costs in Python: `with prcb.measure()`, enter and exit together, beside what
else a Python program has. Rounds are interleaved; a row is the least of them, for what disturbs
only adds. Each row is less the cost of an empty call."""
import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/python"))
import prcb  # noqa: E402
from prcb.spans import Span  # noqa: E402

ROUNDS, CALLS = 31, 5000
TRACE, SPAN = bytes(range(16)), bytes(range(8))
thread = prcb.thread()
measure = prcb.measure


def empty():
    pass


def measured():
    with measure():
        pass


def spanned():
    with Span(TRACE, SPAN):
        pass


def twice(function):
    def call():
        function()
        function()
    return call


def rusage():
    resource.getrusage(resource.RUSAGE_THREAD)


ROWS = [("empty call", empty),
        ("with prcb.measure(), all causes", measured),
        ("with prcb.spans.Span(), all causes", spanned),
        ("Thread.times(), twice", twice(thread.times)),
        ("time.thread_time(), twice", twice(time.thread_time)),
        ("resource.getrusage(), twice", twice(rusage))]
try:
    import psutil
    process = psutil.Process()
    ROWS += [("psutil num_ctx_switches(), twice", twice(process.num_ctx_switches)),
             ("psutil threads(), twice", twice(process.threads))]
except ImportError:
    print("psutil is not installed: its rows are left out")

least = {}
for _ in range(ROUNDS):
    for name, function in ROWS:
        calls = CALLS if not name.startswith("psutil") else CALLS // 100
        begin = time.perf_counter_ns()
        for _ in range(calls):
            function()
        each = (time.perf_counter_ns() - begin) / calls
        least[name] = min(each, least.get(name, each))

base = least["with prcb.measure(), all causes"] - least["empty call"]
print(f"Python {sys.version.split()[0]}, {prcb.default_session().tier} tier, least of {ROUNDS} "
      "interleaved rounds\n")
print(f"{'':40}{'ns':>9}  prcb is")
for name, _ in ROWS:
    each = least[name] - (least["empty call"] if name != "empty call" else 0)
    print(f"{name:40}{each:9.0f}" + (f"{each / base:8.1f}x" if name not in
                                     ("empty call", "with prcb.measure(), all causes") else ""))
