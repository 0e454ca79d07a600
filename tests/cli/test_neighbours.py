#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb neighbours`: of a recorded machine, in all forms; and of this one, beside bpftrace's own account."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "daemon")]
import wire  # pylint: disable=wrong-import-position
from cpu_cgroup import CpuCgroup  # pylint: disable=wrong-import-position

SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB_EXE") or os.environ.get("PRCB") or
                       os.path.join(SOURCE, "build/src/tools/cli/prcb"))
PRCBD = os.environ.get("PRCBD", "")
once = unittest.skipIf(os.environ.get("SANITIZED") == "1", "shares of time, which no sanitizer changes")
S = 10 ** 9
CGROUPS = {"1": "/victim", "2": "/hog", "3": "/evil\x1b[31m\n\u202e"}


def account(number, cgroup, ready=0, behind=(), **more):
    return {"key": number, "tid": number, "pid": number, "comm": "x", "cgroup": cgroup, "run_ns": S,
            "ready_ns": ready, "waits": {"throttled": [1, 2 * S]}, "meanwhile": behind, **more}


ACCOUNTS = [account(11, 1, 10 * S, [[2, 6 * S, "cgroup"], [3, S, "cgroup"], [1, S, "cgroup"], [0, S, "kernel"]]),
            account(12, 2), account(13, 3, S, [[2, S, "cgroup"]]), account(14, 1)]


def run(*args, columns="100", **options):
    return subprocess.run([PRCB, "neighbours", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, env={**os.environ, "COLUMNS": columns}, **options)


class Replayed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "looks")
        with open(self.file, "w") as file:
            json.dump({"ms": 0, "accounts": ACCOUNTS, "cgroups": CGROUPS}, file)

    def tearDown(self):
        self.folder.cleanup()

    def test_parts_are_the_ready_time(self):
        document = json.loads(run("-j", "--replay", self.file).stdout)
        found = {c["cgroup"]: c for c in document["cgroups"]}
        behind = {b["by"]: b["ns"] for b in found["/victim"]["behind"]}
        self.assertEqual(behind, {"/hog": 6 * S, CGROUPS["3"]: S, "self": S, "(kernel)": S, "(other)": S})
        for cgroup in found.values():
            self.assertEqual(sum(b["ns"] for b in cgroup["behind"]) + cgroup["ready_open_ns"], cgroup["ready_ns"])
        self.assertEqual(found["/victim"]["throttled_ns"], 4 * S)

    def test_a_matrix_of_one_screen(self):
        for columns in "100", "60", "20":
            text = run("--replay", self.file, columns=columns).stdout
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\u202e", text)
            self.assertRegex(text, r"(?m)^ \[1\] /victim +2\.00s +10\.0s +4\.00s")
        text = run("--replay", self.file).stdout
        self.assertRegex(text, r"(?m)^ \[1\] .* 10 % +10 % +60 % +10 % +10 %$")
        self.assertEqual(len({len(line) for line in text.splitlines() if "[1]" in line}), 1)

    def test_lines_of_values(self):
        lines = run("-x", ";", "--replay", self.file).stdout.splitlines()
        self.assertEqual(lines[0], "cgroup;by;ns;ready_ns")
        self.assertIn("/victim;/hog;%d;%d" % (6 * S, 10 * S), lines)

    def test_what_is_wrong_is_said(self):
        self.assertEqual(run("--tier", "perf", "--for", "0.1").returncode, 1)
        self.assertEqual(run("operand").returncode, 2)
        self.assertEqual(run("-j", "-x", ",").returncode, 2)


class Hogs:
    """Programs that compete for one processor, each in a cgroup of its own; by names, with their niceness."""

    def __init__(self, **names):
        with open("/proc/mounts", encoding="ascii") as file:
            mounts = [line.split()[1] for line in file if line.split()[2] == "cgroup2"]
        if not mounts or os.geteuid():
            raise unittest.SkipTest("no cgroup2 is mounted, or this is not root")
        self.cpu = max(os.sched_getaffinity(0))
        self.base = f"/prcb-neighbours-{os.getpid()}"
        self.folders = [mounts[0] + self.base] + [f"{mounts[0]}{self.base}/{name}" for name in names]
        try:
            for folder in self.folders:
                os.mkdir(folder)
        except OSError as error:
            raise unittest.SkipTest(f"no cgroup can be made here: {error}") from error
        self.hogs = {name: self.start(f"{mounts[0]}{self.base}/{name}", nice) for name, nice in names.items()}

    def start(self, folder, nice):
        def become():
            with open(folder + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")
            os.sched_setaffinity(0, [self.cpu])
            os.nice(nice)
        return subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=become)

    def end(self):
        for hog in self.hogs.values():
            hog.kill()
            hog.wait()
        for folder in reversed(self.folders):
            os.rmdir(folder)


class Writers(Hogs):
    """Programs that write to one file, whose lock the kernel holds for as long as a call lasts; by names, so many bytes
    in a call. The one who writes little sleeps between calls, and adds up what its calls took."""

    PROGRAM = ("import os, sys, time\n"
               "file, size = os.open(sys.argv[1], os.O_RDWR), int(sys.argv[2])\n"
               "data, took = bytes(size), 0\n"
               "while True:\n"
               "    began = time.monotonic_ns()\n"
               "    os.pwrite(file, data, 0)\n"
               "    took += time.monotonic_ns() - began\n"
               "    if size == 1: os.pwrite(3, b'%20d' % took, 0) and time.sleep(0.001)\n")

    def start(self, folder, nice):
        if not hasattr(self, "file"):
            self.file, self.took = tempfile.NamedTemporaryFile(dir="/dev/shm"), tempfile.TemporaryFile()

        def become():
            with open(folder + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")
            os.sched_setaffinity(0, [self.cpu])
            os.dup2(self.took.fileno(), 3, inheritable=True)
        return subprocess.Popen([sys.executable, "-c", self.PROGRAM, self.file.name, str(nice)], preexec_fn=become,
                                pass_fds=[3])

    def end(self):
        super().end()
        self.file.close()
        self.took.close()

    def ns(self):
        return int(os.pread(self.took.fileno(), 20, 0) or 0)


class Witness:
    """What bpftrace saw of the switches of a processor."""

    SWITCHES = ("tracepoint:sched:sched_switch /cpu == %d/ "
                "{ printf(\"%%llu %%d %%d %%d\\n\", nsecs, args->prev_pid, args->prev_state, args->next_pid); } "
                "BEGIN { printf(\"begins\\n\"); }")
    # It looks tracepoints up in tracefs, which is mounted where it alone sees it.
    SCRIPT = ("[ -e /sys/kernel/tracing/events ] || { mount --make-private /sys && "
              "mount -t tracefs tracefs /sys/kernel/tracing; }; exec timeout 60 bpftrace -q -e \"$0\" 2>&1")

    def __init__(self, cpu):
        if not shutil.which("bpftrace"):
            raise unittest.SkipTest("bpftrace is not installed")
        self.file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(["unshare", "-m", "sh", "-c", self.SCRIPT, self.SWITCHES % cpu], stdout=self.file,
                                        env={**os.environ, "BPFTRACE_PERF_RB_PAGES": "1024"})
        deadline = time.monotonic() + 30
        while "begins" not in self.read():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise unittest.SkipTest("bpftrace does not begin here")
            time.sleep(0.05)

    def read(self):
        self.file.seek(0)
        return self.file.read().decode().splitlines()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def close(self):
        self.end()
        self.file.close()

    def ran_meanwhile(self, victim, began, ended):
        """How long each thread ran while this one, which never sleeps, was ready, from and to so many nanoseconds."""
        turns, queued, ret = [], None, {}
        before = None
        for line in self.read():
            words = line.split()
            if len(words) != 4:
                continue
            now, old, state, new = (int(word) for word in words)
            if before is not None and queued is not None:
                turns.append((before, now, old))
            before = now
            if new == victim and queued is not None and began <= now <= ended:
                for since, until, who in turns:
                    ret[who] = ret.get(who, 0) + max(until - max(since, began), 0)
            if new == victim or old == victim:
                turns = []
            queued = now if old == victim and state & 0xff == 0 else None if new == victim else queued
        return ret


class Live(unittest.TestCase):
    def compare(self, hogs):
        """False: the two saw different times, as where others have the processor for a long time."""
        witness = Witness(hogs.cpu)
        self.addCleanup(witness.close)
        with tempfile.NamedTemporaryFile() as file:
            run("-j", "--for", "2.5", "--cgroup-include", hogs.base, "-o", file.name)
            document = json.load(file)
            # It is written before the programs are unloaded, which takes as long as a few stretches.
            ended = time.monotonic_ns() - (time.time_ns() - os.stat(file.name).st_mtime_ns)
        time.sleep(0.2)  # bpftrace writes what it has
        witness.end()
        found = {c["cgroup"]: c for c in document["cgroups"]}
        rows = []
        for name, victim in hogs.hogs.items():
            told = found[f"{hogs.base}/{name}"]
            behind = {b["by"]: b["ns"] for b in told["behind"]}
            ready = sum(behind.values())
            self.assertEqual(ready + told["ready_open_ns"], told["ready_ns"])
            seen = witness.ran_meanwhile(victim.pid, ended - document["elapsed_ns"], ended)
            whole = sum(seen.values())
            rest = behind.get("(other)", 0)
            # Each at the ends of its window may have a stretch that the other has not.
            if ready < 0.3 * document["elapsed_ns"] or abs(whole - ready) > 0.05 * ready or rest > 0.02 * ready:
                return False
            rows += [(name, other, behind.get(f"{hogs.base}/{other}", 0) / ready, seen.get(culprit.pid, 0) / whole)
                     for other, culprit in hogs.hogs.items()]
        for name, other, share, seen in rows:
            self.assertAlmostEqual(share, seen, delta=0.02, msg=f"{name} by {other}")
            print(f"    {name} behind {other}: {share:.4f}, by bpftrace {seen:.4f}")
        return True

    @once
    def test_shares_are_those_that_another_program_finds(self):
        hogs = Hogs(light=5, middle=2, heavy=0)
        self.addCleanup(hogs.end)
        if not any(self.compare(hogs) for _ in range(4)):
            self.skipTest("others had the processor for most of four times")

    def test_stat_by_cgroup(self):
        """The parts are the ready time to the nanosecond, as text, JSON and lines of values."""
        hogs = Hogs(light=5, heavy=0)
        self.addCleanup(hogs.end)

        def stat(told, *args):
            """What it prints once `told` is in it: a stretch that goes on for all of a look, on a busy machine, is of
            nobody yet."""
            for _ in range(10):
                out = subprocess.run([PRCB, "stat", "--cgroup", hogs.folders[0], "--per-cgroup", "--by-whom", "--for", "0.5", *args],
                                     stdout=subprocess.PIPE, text=True, timeout=60, check=True,
                                     env={**os.environ, "COLUMNS": "200"}).stdout
                if told(out):
                    return out
            return self.fail(out)

        def of(out, name):
            return next(row for row in json.loads(out)["cgroups"] if row["cgroup"] == f"{hogs.base}/{name}")

        def blamed(out):
            return {part["cgroup"]: part for part in of(out, "light")["by_whom"]["ready_behind_cgroups"]}
        out = stat(lambda out: f"{hogs.base}/heavy" in blamed(out), "-j")
        rows = json.loads(out)["cgroups"]
        for row in rows:
            parts = row["by_whom"]["ready_behind_cgroups"]
            self.assertEqual(sum(part["ns"] for part in parts), row["ready_ns"])
            for part in parts:
                self.assertEqual(part["by"] == "cgroup", part["cgroup_id"] is not None)
        heavy = blamed(out)[f"{hogs.base}/heavy"]
        self.assertGreater(heavy["ns"], 0)
        self.assertEqual(heavy["cgroup_id"], of(out, "heavy")["cgroup_id"])
        line = r"(?m)^  %s/light behind  .*%s/heavy \d" % (hogs.base, hogs.base)
        stat(lambda out: re.search(line, out))
        row = r"(?m)^%s/light;\d+;ready_behind_cgroup;ready;cgroup;%s/heavy;" % (hogs.base, hogs.base)
        stat(lambda out: re.search(row, out), "-x", ";")

    @once
    def test_a_quota_is_nobodys_fault_and_weights_are(self):
        """Witness: the kernel's count of throttled time, and one thread has one processor at most."""
        hogs = Hogs(limited=0, light=0, heavy=0)
        self.addCleanup(hogs.end)
        groups = {}
        for name, shares, weight in ("limited", "4096", "400"), ("light", "1024", "100"), ("heavy", "4096", "400"):
            groups[name] = CpuCgroup("neighbours-" + name)
            self.addCleanup(groups[name].remove)
            groups[name].set(("cpu.shares", shares), ("cpu.weight", weight))
        groups["limited"].set(("cpu.cfs_quota_us", "4000"), ("cpu.max", "4000 100000"))
        # Version 2 has one cgroup for a thread, which is then the name, too.
        paths = {name: "/" + os.path.basename(group.path) if group.v2 else f"{hogs.base}/{name}" for name, group in groups.items()}
        for name, group in groups.items():
            group.write(str(hogs.hogs[name].pid), group.processes)
        self.addCleanup(lambda: [hog.kill() or hog.wait() for hog in hogs.hogs.values()])

        def ask():
            before = groups["limited"].throttled()[0]
            document = json.loads(run("-j", "--for", "1.5", "--cgroup-include", "|".join(paths.values())).stdout)
            return document, groups["limited"].throttled()[0] - before
        document, taken = groups["limited"].look(ask, 0.4)
        rows = {name: next(row for row in document["cgroups"] if row["cgroup"] == path) for name, path in paths.items()}
        for row in rows.values():
            self.assertEqual(sum(part["ns"] for part in row["behind"]) + row["ready_open_ns"], row["ready_ns"])
            self.assertLess(row["run_ns"] + row["ready_ns"] + row["throttled_ns"], 1.05 * document["elapsed_ns"] + 1e8)
        self.assertGreater(rows["limited"]["throttled_ns"], 0.3 * document["elapsed_ns"])
        self.assertLess(rows["limited"]["throttled_ns"], 1.05 * taken)
        self.assertEqual([rows[name]["throttled_ns"] for name in ("light", "heavy")], [0, 0])
        self.assertGreater(rows["heavy"]["run_ns"], 1.5 * rows["light"]["run_ns"])
        behind = {part["by"]: part["ns"] for part in rows["light"]["behind"]}
        self.assertGreater(behind[paths["heavy"]], 2 * behind.get(paths["limited"], 0))
        print(f"    the quota took {rows['limited']['throttled_ns'] / S:.3f} s, by the kernel {taken / S:.3f} in a longer time")

    def test_the_law_holds_while_threads_move(self):
        """And a thread that was moved is behind those of its group of then: nothing is lost, and nothing twice."""
        hogs = Hogs(one=3, two=0, three=0)
        self.addCleanup(hogs.end)
        with tempfile.TemporaryFile("w+") as file:
            told = subprocess.Popen([PRCB, "neighbours", "-j", "--for", "1.5", "--cgroup-include", hogs.base], stdout=file)
            moves = 0
            while told.poll() is None:
                with open(hogs.folders[1 + moves % 3] + "/cgroup.procs", "w", encoding="ascii") as procs:
                    procs.write(str(hogs.hogs["one"].pid))
                moves += 1
                time.sleep(0.02)
            self.assertEqual(told.returncode, 0)
            file.seek(0)
            document = json.load(file)
        self.assertGreater(moves, 20)
        rows = [row for row in document["cgroups"] if row["cgroup"].startswith(hogs.base)]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual(sum(part["ns"] for part in row["behind"]) + row["ready_open_ns"], row["ready_ns"])
            self.assertEqual(row["throttled_ns"], 0)
        print(f"    {moves} moves, {sum(row['ready_ns'] for row in rows)} ns exact")

    def test_who_holds_a_lock_across_containers(self):
        """Witness: the program, whose calls take as long as it waits for the lock, and for the processor."""
        with open("/sys/kernel/btf/vmlinux", "rb") as types:
            if b"\0rwsem_waiter\0" not in types.read():
                self.skipTest("the kernel does not tell its locks")
        writers = Writers(small=1, big=64_000_000)
        self.addCleanup(writers.end)
        deadline = time.monotonic() + 30
        while not writers.ns():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.blocked(writers, "bpf", os.environ)
        if PRCBD and os.path.ismount("/sys/fs/bpf"):
            daemon = wire.Daemon(PRCBD, "profile_all = all\nby_whom = yes\n")
            self.addCleanup(daemon.stop)
            self.blocked(writers, "daemon", {**os.environ, "PRCB_SOCKET": daemon.socket})

    def blocked(self, writers, tier, environment):
        before = writers.ns()
        text = subprocess.run([PRCB, "export", "--tier", tier, "--for", "1.5", "--by-whom", "--cgroup-causes", "--cgroup-include",
                               writers.base], stdout=subprocess.PIPE, text=True, timeout=60, check=True, env=environment).stdout
        took = (writers.ns() - before) / S
        found = {series: float(value) for series, _, value in (line.rpartition(" ") for line in text.splitlines())
                 if series.startswith("prcb_cgroup")}
        small = 'cgroup="%s/small"' % writers.base
        parts = {series.split('by="')[1][:-2]: value for series, value in found.items()
                 if series.startswith("prcb_cgroup_blocked_by_seconds_total{" + small)}
        whole = sum(value for series, value in found.items()
                    if re.match(r"prcb_cgroup_cause_seconds_total\{%s,cause=\"(rwsem|mmap-lock|mutex|klock)" % small, series))
        self.assertAlmostEqual(sum(parts.values()) + found["prcb_cgroup_blocked_open_seconds{%s}" % small], whole, places=7)
        # The stretch that was open at the beginning has nobody, and that at the end is not over.
        self.assertGreater(parts[writers.base + "/big"], 0.7 * whole)
        self.assertEqual(parts["self"], 0)
        self.assertGreater(whole, 0.5)
        self.assertLess(whole, took + 1)
        print(f"    {tier}: {parts[writers.base + '/big']:.3f} of {whole:.3f} s behind the other; its calls took {took:.3f} s")


if __name__ == "__main__":
    unittest.main()
