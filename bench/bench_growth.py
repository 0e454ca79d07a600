#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How what prcb takes grows: with threads, with cgroups, with the switches in a recording. Each row is a command, at
several sizes: its processor time, that of its children included, and the most memory that one of them had. The last
column is the exponent of the last step, by processor time: 1 is linear. Then the memory of what stays running: of the
process, and what its maps take of the kernel's. Needs root and, for cgroups, version 2. PRCB_GROWTH=N divides all sizes
by N; bench_growth [threads] [cgroups] [switches] [memory]: these tables alone."""
import contextlib
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent
SOURCE = json.loads((BUILD / "meson-info/meson-info.json").read_text(encoding="utf-8"))["directories"]["source"]
sys.path[:0] = [SOURCE + "/tests/daemon"]
import wire  # noqa: E402 pylint: disable=wrong-import-position

PRCB = os.environ.get("PRCB", str(BUILD / "src/tools/cli/prcb"))
LESS = int(os.environ.get("PRCB_GROWTH", "1"))
SWITCHING = """
import os, sys, threading
there, back = os.pipe(), os.pipe()
def answer():
    while os.read(there[0], 1):
        os.write(back[1], b"x")
threading.Thread(target=answer, daemon=True).start()
for _ in range(int(sys.argv[1]) // 2):
    os.write(there[1], b"x")
    os.read(back[0], 1)
"""


def sizes(*numbers):
    return [max(number // LESS, 2) for number in numbers]


def cost(*command):
    """Processor seconds and MiB."""
    pid = os.posix_spawn(PRCB, [PRCB, *command], os.environ | {"LC_ALL": "C"}, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"bench_growth: {' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def print_table(title, numbers, rows):
    print(f"\n{title + ':':40}" + "".join(f"{number:>20,}" for number in numbers) + "   exponent")
    for name, costs in rows.items():
        step = math.log(max(costs[-1][0], 1e-3) / max(costs[-2][0], 1e-3)) / math.log(numbers[-1] / numbers[-2])
        print(f"{name:40}" + "".join(f"{cpu * 1e3:8.0f} ms {mib:5.0f} MiB" for cpu, mib in costs) + f"   {step:8.2f}")
    sys.stdout.flush()


@contextlib.contextmanager
def threads(count):
    with subprocess.Popen([HERE / "top_threads", str(count), "0"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def by_threads():
    commands = {"stat -p, a second": ("stat", "--for", "1"), "why -p, a second": ("why", "--for", "1"),
                "top -b -p, three tables": ("top", "-b", "-n", "3", "-d", "0.5")}
    numbers, rows = sizes(100, 1000, 10000, 30000), {name: [] for name in commands}
    for count in numbers:
        with threads(count) as pid:
            for name, command in commands.items():
                rows[name].append(cost(*command, "-p", str(pid), "--max-threads", str(count + 1024)))
    print_table("threads that sleep", numbers, rows)


def sleeper(folder):
    pid = os.fork()
    if not pid:
        try:
            (folder / "cgroup.procs").write_text("0", encoding="ascii")
            time.sleep(600)
        finally:
            os._exit(0)
    return pid


def cgroup_root():
    """Where version 2 is mounted; None: nowhere."""
    for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        if line.split()[2] == "cgroup2":
            return pathlib.Path(line.split()[1])
    return None


@contextlib.contextmanager
def cgroups(count):
    root, pids, folders = cgroup_root() / f"prcb-growth-{os.getpid()}", [], []
    root.mkdir()
    try:
        for i in range(count):
            folders.append(root / str(i))
            folders[-1].mkdir()
            pids.append(sleeper(folders[-1]))
        yield
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        for folder in folders + [root]:
            folder.rmdir()


def by_cgroups():
    if not cgroup_root():
        print("\ncgroups: this machine has none of version 2")
        return
    numbers, rows = sizes(10, 100, 1000, 3000), {"export": [], "stat -a --per-cgroup, a second": []}
    for count in numbers:
        with cgroups(count):
            rows["export"].append(cost("export"))
            rows["stat -a --per-cgroup, a second"].append(cost("stat", "-a", "--per-cgroup", "--for", "1"))
    print_table("cgroups with a thread each", numbers, rows)


def first_thread(path):
    with contextlib.closing(sqlite3.connect(path)) as recording:
        return str(recording.execute("SELECT tid FROM threads ORDER BY id LIMIT 1").fetchone()[0])


def by_switches(folder):
    numbers = sizes(100000, 1000000, 10000000)
    rows = {"record, two threads that switch": [], "report": [], "report --critical": []}
    bytes_each = []
    for count in numbers:
        path = f"{folder}/{count}.db"
        rows["record, two threads that switch"].append(
            cost("record", "-o", path, "--", sys.executable, "-I", "-S", "-c", SWITCHING, str(count)))
        bytes_each.append(os.stat(path).st_size / count)
        rows["report"].append(cost("report", path))
        rows["report --critical"].append(cost("report", "--critical", first_thread(path), path))
    print_table("switches in a recording", numbers, rows)
    print(f"{'bytes of the file for each':40}" + "".join(f"{number:20.0f}" for number in bytes_each))
    print("(record's processor time has that of the two threads in it)")


def most_of(pid):
    """MiB: the most memory that the process had."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def maps():
    """The kernel's memory for each eBPF map there is, by number; none: bpftool is not installed."""
    if not shutil.which("bpftool"):
        return {}
    said = subprocess.run(["bpftool", "-j", "map", "show"], stdout=subprocess.PIPE, check=True).stdout
    return {row["id"]: row["bytes_memlock"] for row in json.loads(said)}


def memory_of(pid, before):
    """And of the kernel, for maps that came since."""
    return most_of(pid), sum(size for number, size in maps().items() if number not in before) / 2**20


@contextlib.contextmanager
def running(*command, **environment):
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=os.environ | environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def until_settled(process, before):
    """Until its memory has stayed the same for a second."""
    memory, since, begin = None, 0, time.monotonic()
    while (now := time.monotonic()) < begin + 60 and (memory is None or now < since + 1):
        if process.poll() is not None:
            sys.exit(f"bench_growth: {process.args[0]} ended")
        if most_of(process.pid) != memory:
            memory, since = most_of(process.pid), now
        time.sleep(0.1)
    return memory_of(process.pid, before)


def beside_prcbd(count, rows):
    before = maps()
    daemon = wire.Daemon(str(BUILD / "src/services/daemon/prcbd"),
                         f"profile_all = all\naccounts_per_client_max = {2 * count + 4096}\n")
    try:
        rows["prcbd"].append(memory_of(daemon.process.pid, before))
        before = maps()
        with running(str(BUILD / "src/services/exporter/prcb-exporter"), "--by-whom",
                     "--web.listen-address=unix:" + daemon.folder + "/exporter", PRCB_SOCKET=daemon.socket) as process:
            rows["prcb-exporter, its session"].append(until_settled(process, before))
    finally:
        daemon.stop()


def by_memory():
    """What stays running, while so many threads are there."""
    numbers = sizes(100, 1000, 10000, 30000)
    commands = {"prcb stat -p": ("stat",), "prcb top -b -p": ("top", "-b"), "prcb why -p": ("why",)}
    rows = {name: [] for name in (*commands, "prcbd", "prcb-exporter, its session")}
    for count in numbers:
        with threads(count) as pid:
            for name, command in commands.items():
                before = maps()
                with running(PRCB, *command, "-p", str(pid), "--tier", "bpf", "--max-threads",
                             str(count + 1024)) as process:
                    rows[name].append(until_settled(process, before))
            beside_prcbd(count, rows)
    print("\n" + "memory of what runs, while threads are:".ljust(40) + "".join(f"{number:>20,}" for number in numbers))
    for name, memory in rows.items():
        print(f"{name:40}" + "".join(f"{process:8.0f} +{of_maps:6.0f} MiB" for process, of_maps in memory))
    print("(the process's, and the kernel's for eBPF maps)")


def main():
    if os.geteuid():
        sys.exit("bench_growth: needs root")
    folder = tempfile.mkdtemp(prefix="prcb-growth-")
    tables = {"threads": by_threads, "cgroups": by_cgroups, "switches": lambda: by_switches(folder), "memory": by_memory}
    try:
        for name in sys.argv[1:] or tables:
            tables[name]()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
