# SPDX-License-Identifier: BSD-2-Clause
"""Recordings whose every stretch is known: written from docs/record-file.md, not by prcb."""
import os
import random
import shutil
import sqlite3
import subprocess
import tarfile

TABLES = """
PRAGMA application_id = 0x50524342;
PRAGMA user_version = 1;
CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE threads(id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, parent_pid INTEGER, name TEXT, start_ns INTEGER, end_ns INTEGER, start_state TEXT, start_cause TEXT, start_reason INTEGER);
CREATE TABLE maps(id INTEGER PRIMARY KEY, pid INTEGER, time_ns INTEGER, start INTEGER, length INTEGER, file_offset INTEGER, file TEXT, build_id TEXT, uid INTEGER);
CREATE TABLE stacks(id INTEGER PRIMARY KEY, caller INTEGER, kernel INTEGER, map INTEGER, address INTEGER);
CREATE TABLE samples(time_ns INTEGER, cpu INTEGER, thread INTEGER, stack INTEGER, weight INTEGER, missing TEXT);
CREATE TABLE switches(time_ns INTEGER, cpu INTEGER, old_thread INTEGER, new_thread INTEGER, state TEXT, cause TEXT, reason INTEGER, ready_ns INTEGER, pebs_index INTEGER, waker INTEGER, woken_ns INTEGER, woken_cpu INTEGER);
CREATE TABLE wakers(id INTEGER PRIMARY KEY, by TEXT, thread INTEGER, pid INTEGER, tid INTEGER, name TEXT, number INTEGER);
CREATE TABLE wait_stacks(time_ns INTEGER, thread INTEGER, stack INTEGER, missing TEXT, kind TEXT, word TEXT, one_in INTEGER, trace_id TEXT, span_id TEXT);
CREATE TABLE losses(time_ns INTEGER, cpu INTEGER, what TEXT, count INTEGER);
CREATE TABLE functions(id INTEGER PRIMARY KEY, name TEXT, file TEXT);
CREATE TABLE stack_functions(stack INTEGER PRIMARY KEY, function INTEGER);
CREATE TABLE processor_times(time_ns INTEGER, cpu INTEGER, user_ns INTEGER, kernel_ns INTEGER, dpc_ns INTEGER, interrupt_ns INTEGER, steal_ns INTEGER, idle_ns INTEGER);
"""

HOSTILE = [
    "</script><img src=x onerror=window.hacked=1>",
    "javascript:window.hacked=1",
    "\u202egnp.exe\u2066",
    "a\x1b]0;evil\x07\x9b31m",
    "<b>bold</b>&lt;!--",
    "__proto__",
    "'\"`${window.hacked=1}",
    "=HYPERLINK(1)",
]
CAUSES = [("futex", 37), ("disk", 0), ("socket", 6), ("epoll", 15), ("sleep", 4)]
START = 5_000_000_000_000


class Made:
    """Its threads' stretches, {thread: [(kind, cause, start, end)]}, from START; times: of all
    durations."""

    def __init__(self, path, switches=2000, threads=12, processors=2, seed=1, hostile=True, facts=None,
                 names=None, times=1):
        draw = random.Random(seed)
        self.path = path
        self.stretches = {thread: [] for thread in range(1, threads + 1)}
        self.names = {thread: names[(thread - 1) % len(names)] if names else
                      HOSTILE[(thread - 1) % len(HOSTILE)] if hostile and thread <= len(HOSTILE)
                      else f"worker-{thread}" for thread in self.stretches}
        self.functions = [(1, "main", "/usr/bin/made"), (2, "work(int)", "/usr/bin/made")] + [
            (3 + i, name, "/usr/lib/" + name) for i, name in enumerate(HOSTILE)] + [
            (20, "do_syscall_64", "[kernel.kallsyms]"), (21, "[unknown]", "/opt/stripped")]
        with sqlite3.connect(path) as db:
            db.executescript(TABLES)
            self.write(db, draw, switches, processors, times)
            known = {"start_ns": START, "end_ns": START + self.span, "event": "cpu-clock", "frequency": 1000,
                     "scope": "system", "command": "made </script><script>window.hacked=1</script>", "complete": 1,
                     "stacks": 1, "wait_stacks": 1, "wakers": 1, "host": "made", "started": "2026-01-02T03:04:05Z", "switch_source": "eBPF",
                     "processor_times_source": "eBPF", "prcb_version": "0", "format_version": 1}
            known.update(facts or {})
            db.executemany("INSERT INTO facts VALUES(?,?)", [(k, str(v)) for k, v in known.items()])

    def write(self, db, draw, count, processors, times):
        threads = len(self.names)
        now, rows, samples = 0, [], []
        self.wakes = []  # (thread, cause, start, end, waker) of waits that somebody ended
        off = {thread: None for thread in self.stretches}  # (since, kind, cause)
        on = {}  # processor: (thread, since)
        stacks = self.write_stacks(db, draw)
        for _ in range(count):
            now += draw.randrange(100, 20000) * times
            cpu = draw.randrange(processors)
            old, since = on.get(cpu, (None, 0))
            if old is not None:
                self.stretches[old].append(("run", None, since, now))
                if draw.random() < 0.5:
                    samples.append((START + draw.randrange(since, now), cpu, old, draw.choice(stacks), 1_000_000))
            free = [t for t in off if t != old and all(t != other for other, _ in on.values())]
            new = draw.choice(free)
            ready = waker = None
            if off[new]:
                begin, kind, cause = off[new]
                ready = draw.randrange(0, now - begin) if kind == "wait" else now - begin
                if kind == "wait":
                    self.stretches[new].append(("wait", cause, begin, now - ready))
                    waker = (None, 1, 2, 100 + (new % threads) + 1)[len(rows) % 4]
                    if waker and now - ready > begin:
                        self.wakes.append((new, cause, begin, now - ready, waker))
                if ready:
                    self.stretches[new].append(("ready", cause, now - ready, now))
            preempted = draw.random() < 0.3
            cause, reason = ("preempted", 32) if preempted else draw.choice(CAUSES)
            rows.append((START + now, cpu, old, new, None if old is None else "ready" if preempted else "waiting",
                         None if old is None else cause, None if old is None else reason, ready, waker,
                         None if waker is None else START + now - ready, None if waker is None else cpu))
            if old is not None:
                off[old] = (now, "ready" if preempted else "wait", cause)
            on[cpu] = (new, now)
        self.span = now + 1000
        for thread, since in on.values():
            self.stretches[thread].append(("run", None, since, self.span))
        running = {thread for thread, _ in on.values()}
        for thread, state in off.items():
            if state and thread not in running:
                self.stretches[thread].append((state[1], state[2], state[0], self.span))
        db.executemany("INSERT INTO threads VALUES(?,?,?,?,?,?,NULL,NULL,NULL,NULL)", [
            (t, 100 + t // 4, 1000 + t, 1, name, START) for t, name in self.names.items()])
        db.executemany("INSERT INTO switches VALUES(?,?,?,?,?,?,?,?,NULL,?,?,?)", rows)
        db.executemany("INSERT INTO wakers VALUES(?,?,?,?,?,?,?)", [
            (1, "timer", None, None, None, None, None), (2, "softirq", None, None, None, "net_rx", 3),
            *((100 + t, "thread", t, 100 + t // 4, 1000 + t, name, None) for t, name in self.names.items())])
        db.executemany("INSERT INTO samples VALUES(?,?,?,?,?,NULL)", sorted(samples))
        for cpu in range(processors):
            for at, part in ((0, 0), (self.span, 1)):
                db.execute("INSERT INTO processor_times VALUES(?,?,?,?,?,?,?,?)",
                           (START + at, cpu, *(part * self.span * share // 100 for share in (50, 20, 1, 1, 0, 28))))
        self.samples = samples
        self.spanned = {}  # ns of waits by (trace, span)
        for thread, stretches in self.stretches.items():  # of two waits in three
            span = ("%032x" % (thread // 6 + 1), "%016x" % (thread + 1)) if thread % 3 == 0 else (None, None)
            for kind, cause, start, end in stretches:
                if kind == "wait" and end > start and draw.random() < 0.67:
                    if span[0]:
                        self.spanned[span] = self.spanned.get(span, 0) + end - start
                    db.execute("INSERT INTO wait_stacks VALUES(?,?,?,?,?,?,1,?,?)", (
                        START + (start + end) // 2, thread, *draw.choice([
                            (draw.choice(stacks), None, "blocked", "mutex"), (draw.choice(stacks), None, "idle", "event loop"),
                            (None, "budget", "blocked", None)]), *span))

    def write_stacks(self, db, draw):
        """Trees of calls; returns the rows that samples may have."""
        db.executemany("INSERT INTO functions VALUES(?,?,?)", self.functions)
        self.stack_rows = {1: (None, 1), 2: (1, 2)}
        for i in range(3, 60):
            self.stack_rows[i] = (draw.randrange(1, i), draw.choice(self.functions)[0])
        for i, (caller, function) in self.stack_rows.items():
            db.execute("INSERT INTO stacks VALUES(?,?,?,NULL,?)", (i, caller, int(function == 20), i))
            db.execute("INSERT INTO stack_functions VALUES(?,?)", (i, function))
        return sorted(self.stack_rows)

    def sums(self, start, end):
        """{thread: {"run", "ready", "wait": ns}} between two moments."""
        result = {}
        for thread, rows in self.stretches.items():
            sums = result[thread] = {"run": 0, "ready": 0, "wait": 0}
            for kind, _, begin, until in rows:
                sums[kind] += max(0, min(until, end) - max(begin, start))
        return result


def make_many(path, switches, threads=200):
    """A recording of many switches, quickly."""
    draw = random.Random(7)
    causes = CAUSES
    with sqlite3.connect(path) as db:
        db.executescript(TABLES)
        db.executemany("INSERT INTO threads VALUES(?,?,?,1,?,?,NULL,NULL,NULL,NULL)", [
            (t, 100 + t // 8, 1000 + t, f"thread-{t}", START) for t in range(1, threads + 1)])

        def rows():
            now, on = START, [1, 2, 3, 4]
            idle = list(range(5, threads + 1))
            for _ in range(switches):
                now += draw.randrange(200, 4000)
                cpu, place = draw.randrange(4), draw.randrange(len(idle))
                cause, reason = causes[draw.randrange(5)]
                on[cpu], idle[place] = idle[place], on[cpu]
                yield (now, cpu, idle[place], on[cpu], "waiting", cause, reason, draw.randrange(5000))
            self_end.append(now)
        self_end = []
        db.executemany("INSERT INTO switches VALUES(?,?,?,?,?,?,?,?,NULL,NULL,NULL,NULL)", rows())
        db.executemany("INSERT INTO facts VALUES(?,?)", [
            ("start_ns", str(START)), ("end_ns", str(self_end[0])), ("event", "cpu-clock"), ("complete", "1"),
            ("scope", "system"), ("command", "many"), ("switch_source", "eBPF")])


def speedscope_package(folder):
    """(where speedscope of npm is unpacked, None), or (None, why it cannot be had)."""
    if not shutil.which("npm"):
        return None, "npm is not installed: speedscope cannot be had"
    name = "speedscope-1.25.0"
    try:
        got = subprocess.run(["npm", "pack", "--silent", name.replace("-", "@")], cwd=folder, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "npm's registry does not answer: speedscope cannot be had"
    archive = os.path.join(folder, name + ".tgz")
    if got.returncode or not os.path.exists(archive):
        return None, "npm's registry cannot be reached: speedscope cannot be had"
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else members.extractall(folder)
    return os.path.join(folder, "package"), None
