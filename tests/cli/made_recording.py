# SPDX-License-Identifier: BSD-2-Clause
"""Recordings that no machine made: hosts with as many switches as asked for, and what they add up to."""
import pathlib
import random
import re
import sqlite3

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src/recording/file/schema.h"
CAUSES = ("futex", "sleep", "epoll", "disk", "pipe", "tcp", "page-fault")
FUNCTIONS = ("main", "serve", "Cache::get(int)", "lock_wait", "read_page", "poll_loop", "fsync", "send")
PROCESSOR = ("time_ns", "cpu", "user_ns", "kernel_ns", "dpc_ns", "interrupt_ns", "steal_ns", "idle_ns")
NS = 1000000000


def statements():
    """The tables of src/recording/file/schema.h."""
    text = SCHEMA.read_text(encoding="utf-8")
    functions = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.split("#define RECORD_FUNCTIONS")[1].split("\n\n")[0]))
    schema = text.split("#define RECORD_SCHEMA")[1].split("\n\n")[0]
    return ("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', schema.replace('RECORD_FUNCTIONS("")', '"' + functions.replace("  ", " ") + '"'))))


def make(path, switches, host="host-1", boot="0123abcd-x", seed=1, threads=40, names=None, wall=1700000000 * NS):
    rng = random.Random(seed)
    start = 10 * NS
    db = sqlite3.connect(path)
    db.executescript(f"PRAGMA application_id = {0x50524342}; PRAGMA user_version = 1; PRAGMA journal_mode = OFF; "
                     "PRAGMA synchronous = OFF;" + statements() +
                     f"CREATE TABLE processor_times({', '.join(PROCESSOR)});")
    rows = [(i + 1, 1000 + i // 4 * 4, 1000 + i, 1, (names or ["web", "worker", "db", "cron"])[i // 4 % 4] + f"-{i % 4}",
             start, None, "waiting", CAUSES[i % 7], 0) for i in range(threads)]
    db.executemany("INSERT INTO threads(id, pid, tid, parent_pid, name, start_ns, end_ns, start_state, start_cause, "
                   "start_reason) VALUES(?,?,?,?,?,?,?,?,?,?)", rows)
    db.executemany("INSERT INTO functions(id, name, file) VALUES(?,?,?)", [(i + 1, name, "/usr/bin/made") for i, name in enumerate(FUNCTIONS)])
    stacks = [(i + 1, i if i % 8 else None, 0, None, 4096 * i, None, None, None) for i in range(64)]
    db.executemany("INSERT INTO stacks(id, caller, kernel, map, address, name, file, line) VALUES(?,?,?,?,?,?,?,?)", stacks)
    db.executemany("INSERT INTO stack_functions(stack, function) VALUES(?,?)", [(i + 1, i % 8 + 1) for i in range(64)])
    now, current, left, made, waits = start, [0, 0], {}, [], []
    half = threads // 2
    for _ in range(switches):
        cpu = rng.randrange(2)
        now += rng.randrange(2000, 200000)
        old = current[cpu]
        new = rng.randrange(1, half + 1) * 2 - cpu
        if new == old:
            new = 0
        state, cause = (("ready", None) if rng.random() < .2 else ("waiting", rng.choice(CAUSES))) if old else (None, None)
        ready = None
        if new:
            off = now - left.get(new, start)
            ready = rng.randrange(off // 8 + 1)
        made.append((now, cpu, old or None, new or None, state, cause, 0 if cause else None, ready, None, None, None, None))
        if cause == "futex" and rng.random() < .2:
            waits.append((now + 1, old, rng.randrange(1, 9) * 8, None, "blocked", "mutex", 1) +
                         ((f"{old % 3:032x}", f"{len(waits):016x}") if old % 3 else (None, None)))
        if old:
            left[old] = now
        current[cpu] = new
    db.executemany("INSERT INTO switches(time_ns, cpu, old_thread, new_thread, state, cause, reason, ready_ns, pebs_index, "
                   "waker, woken_ns, woken_cpu) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", made)
    db.executemany("INSERT INTO wait_stacks(time_ns, thread, stack, missing, kind, word, one_in, trace_id, span_id) "
                   "VALUES(?,?,?,?,?,?,?,?,?)", waits)
    facts = {"host": host, "boot_id": boot, "start_ns": start, "end_ns": now + 1000, "wall_ns": wall, "complete": 1,
             "switch_source": "made up", "sample_source": "none", "event": "none", "stacks": 1, "wait_stacks": 1,
             "wakers": 0, "scope": "system", "format_version": 1, "prcb_version": "made up", "clock": "CLOCK_MONOTONIC"}
    db.executemany("INSERT INTO facts(name, value) VALUES(?,?)", [(name, str(value)) for name, value in facts.items()])
    db.commit()
    db.close()
