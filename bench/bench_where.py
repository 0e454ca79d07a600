#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to know where threads wait: prcb why beside offcputime and bpftrace with stacks, on
the same threads: 10,000 of which none wakes up, then 500 of which each wakes up a hundred times a
second. A row has processor time in percent of one processor over the seconds after the tool's start,
medians and least of interleaved rounds: the tool's own (its children's included), and the program's
above what it needs with no tool. Then unwindings: how many prcb why made of a second of processor
time, and how often it read a thread that slept on; then what functions of Python take. Before them: what prcb push costs, for 1,000 threads. Peers that are not installed are left out, and said.
Last what stacks of samples take on a processor, of prcb record and perf record by turns. bench_where
--no-peers leaves all out, bench_where --push and --samples all but that."""
import glob
import http.server
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PRCB = os.path.join(HERE, "../src/tools/cli/prcb")
ROUNDS, WARM_S, SECONDS = 3, 5, 6
BPFTRACE = ("tracepoint:sched:sched_switch { @start[args->prev_pid] = nsecs; "
            "$s = @start[args->next_pid]; if ($s && pid == PID) "
            "{ @off[kstack, ustack] = sum(nsecs - $s); } }")
ROWS = [
    ("prcb why", [PRCB, "why", "--no-whom", "-p", "PID"]),
    ("prcb why, with by whom", [PRCB, "why", "-p", "PID"]),
    ("prcb why --tier perf", [PRCB, "why", "--tier", "perf", "-p", "PID"]),
    ("prcb stat", [PRCB, "stat", "-p", "PID"]),
    ("offcputime -p (libbpf-tools)", ["offcputime", "-p", "PID", "100000"]),
    ("offcputime-bpfcc -p", ["offcputime-bpfcc", "-p", "PID", "100000"]),
    ("bpftrace off-CPU time with stacks", ["bpftrace", "-e", BPFTRACE]),
]
# Peers look tracepoints up in tracefs, which is mounted where the peer alone sees it.
TRACEFS = ["unshare", "-m", "sh", "-c", "[ -e /sys/kernel/tracing/events ] || "
           "mount -t tracefs tracefs /sys/kernel/tracing; exec \"$0\" \"$@\""]
HERTZ = os.sysconf("SC_CLK_TCK")


def ticks(pid):
    """Of the process, and of its children that live or were waited for."""
    total = 0
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    total += sum(map(int, fields[11:15]))
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        for child in file.read().split():
            total += ticks(int(child))
    return total


class Threads:
    def __init__(self, count, busy):
        self.process = subprocess.Popen([os.path.join(HERE, "top_threads"), str(count), str(busy)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != str(count):
            sys.exit(f"bench_where: {count} threads cannot be had here: raise pids.max of the cgroup, ulimit -u, "
                     "kernel.threads-max or vm.max_map_count")
        self.pid = self.process.pid

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def percent(used, seconds):
    return 100 * used / HERTZ / seconds


def watch(threads, command, lasts=SECONDS):
    """(percent of the tool, of the threads) while it runs; None: it is not there, or ended."""
    tool = None
    if command:
        arguments = [part.replace("PID", str(threads.pid)) for part in command]
        if not shutil.which(arguments[0]):
            return None
        tool = subprocess.Popen((TRACEFS if arguments[0] != PRCB else []) + arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=os.environ | {"BPFTRACE_STRLEN": "16"})
        time.sleep(WARM_S)
        if tool.poll() is not None:
            return None
    began = time.monotonic()
    before = ticks(tool.pid) if tool else 0, ticks(threads.pid)
    time.sleep(lasts)
    after = ticks(tool.pid) if tool else 0, ticks(threads.pid)
    seconds = time.monotonic() - began
    if tool:
        tool.send_signal(signal.SIGINT)
        try:
            tool.wait(30)
        except subprocess.TimeoutExpired:
            tool.kill()
            tool.wait()
    return percent(after[0] - before[0], seconds), percent(after[1] - before[1], seconds)


def compare(title, count, busy, rows, lasts=SECONDS):
    threads = Threads(count, busy)
    seen = {name: [] for name, _ in rows}
    for _ in range(ROUNDS):
        plain = watch(threads, None, lasts)[1]
        for name, command in rows:
            found = watch(threads, command, lasts)
            if found:
                seen[name].append((found[0], found[1] - plain))
    threads.end()
    print(f"\n{title}\n{'':<38} {'tool: least':>11} {'median':>7}   {'program: median':>15}")
    for name, _ in rows:
        if not seen[name]:
            print(f"{name:<38} not available here")
            continue
        own = [figures[0] for figures in seen[name]]
        print(f"{name:<38} {min(own):>9.2f} % {statistics.median(own):>5.2f} %   "
              f"{statistics.median(figures[1] for figures in seen[name]):>+13.2f} %", flush=True)


def push():
    """A profile of ten seconds each, to a receiver that takes it: over two of them."""
    sizes = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            sizes.append(len(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        rows = [(f"prcb push --as {form}", [PRCB, "push", "--to", f"http://127.0.0.1:{server.server_port}", "--as", form,
                                            "-p", "PID"]) for form in ("otlp", "pyroscope")]
        for busy in (0, 200):
            sizes.clear()
            compare(f"1,000 threads, {busy} of them busy, a profile of ten seconds each: percent of one processor", 1000, busy,
                    rows, 20)
            print(f"  {len(sizes)} requests of {statistics.median(sizes or [0]):,.0f} bytes (median)")
        server.shutdown()


def unwindings():
    """From prcb why's own report: with a budget that is not used up, and the idle ones."""
    print("\nunwinding (prcb why's own figures)")
    for title, count, busy, options in (
            ("500 busy threads, no budget", 500, 500, ["--budget", "100", "--min", "500"]),
            ("10,000 idle threads, 10 s", 10000, 0, ["--budget", "100"])):
        threads = Threads(count, busy)
        with tempfile.NamedTemporaryFile() as file:
            subprocess.run([PRCB, "why", "-j", "--no-whom", *options, "-p", str(threads.pid), "--for",
                            "10" if busy == 0 else "4", "-o", file.name], check=True)
            reader = json.load(file)["reader"]
        threads.end()
        cpu = reader["cpu_ns"] / 1e9
        print(f"  {title}: {reader['unwound']} stacks unwound, {reader['remembered']} answered from "
              f"memory, {reader['unwound'] / cpu if cpu else 0:,.0f} a second of processor time")


def python_frames():
    """What a stack of twenty functions takes: each of the installed versions."""
    print("\nfunctions of Python: twenty frames of a thread that waits, in the process that reads")
    program = "".join(f"def f{i}():\n    return f{i + 1}()\n" for i in range(18)) + (
        "def f18():\n    import time\n    print(flush=True)\n    time.sleep(1000)\nf0()\n")
    for path in [sys.executable, "/usr/bin/python3", *sorted(glob.glob("/root/.pyenv/versions/3.*/bin/python3"))]:
        process = subprocess.Popen([path, "-c", program], stdout=subprocess.PIPE)
        process.stdout.readline()
        with open(f"/proc/{process.pid}/maps", encoding="utf-8", errors="replace") as file:
            maps = [line.split() for line in file if re.search(r"/(lib)?python3\.\d+(\.so\S*)?$", line)]
        library = [row for row in maps if "lib" in os.path.basename(row[5])] or maps
        base = library[0][0].split("-")[0]
        if not os.path.basename(library[0][5]).startswith("lib"):
            with open(library[0][5], "rb") as file:
                base = base if file.read(18)[16] == 3 else "0"  # ET_DYN
        said = subprocess.run([os.path.join(HERE, "python_frames"), str(process.pid), library[0][5], base, "5000"],
                              capture_output=True, text=True, check=False).stdout.strip()
        process.kill()
        process.communicate()
        print(f"  {library[0][5]}: {said or 'not read'}", flush=True)


SAMPLES_HZ, SAMPLES_S = 2000, 2


def used_by(command):
    """Processor time of a command and its children, and its end."""
    before = os.times()
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, ended


def of_prcb(folder, pid, size):
    """(processor time, samples, share that is complete, bytes of the file, processor time to read it)"""
    path = os.path.join(folder, "prcb.db")
    used, ended = used_by([PRCB, "record", "-g", "-F", str(SAMPLES_HZ), "--stack-bytes", str(size), "-o", path, "-p", str(pid), "--for", str(SAMPLES_S)])
    if ended:
        return None
    read = used_by([PRCB, "report", path])[0]
    document = json.loads(subprocess.run([PRCB, "report", "-j", path], capture_output=True, text=True, check=True).stdout)
    found = used, *samples_of(document), os.path.getsize(path), read
    os.unlink(path)
    return found


def samples_of(document):
    whole, count = document.get("samples_complete"), document["samples"]
    return count, whole / count if count and whole is not None else None


def of_perf(folder, pid, size):
    path = os.path.join(folder, "perf.data")
    how = f"dwarf,{size}" if size else "fp"
    used, ended = used_by(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_HZ), "--call-graph", how, "-o", path, "-p", str(pid),
                           "--", "sleep", str(SAMPLES_S)])
    if ended:
        return None
    script = ["perf", "script", "--no-inline", "-F", "ip,sym", "-i", path]
    read = used_by(script)[0]
    stacks = subprocess.run(script, capture_output=True, text=True, check=False).stdout.strip().split("\n\n")
    whole = sum("_start" in stack for stack in stacks)
    found = used, len(stacks), whole / len(stacks), os.path.getsize(path), read
    os.unlink(path)
    return found


def samples():
    rows = [(f"prcb record -g --stack-bytes {size}", of_prcb, size) for size in (0, 8192, 16384, 57344)]
    rows += [(f"perf record --call-graph dwarf,{size}", of_perf, size) for size in (8192, 16384, 57344)]
    rows += [("perf record --call-graph fp", of_perf, 0)]
    if not shutil.which("perf") or "--no-peers" in sys.argv:
        rows = [row for row in rows if row[1] is of_prcb]
    seen = {name: [] for name, *_ in rows}
    deep = subprocess.Popen([os.path.join(HERE, "deep")], stdout=subprocess.PIPE)
    deep.stdout.readline()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, fn, size in rows:
                found = fn(folder, deep.pid, size)
                if found:
                    seen[name].append(found)
    deep.kill()
    deep.communicate()
    print(f"\nstacks of samples on a processor: twelve functions without frame pointers, {SAMPLES_HZ} Hz for {SAMPLES_S} s, medians of "
          f"{ROUNDS} rounds\n{'':<38} {'samples':>8} {'time':>9} {'a sample':>9} {'complete':>9} {'file':>9} {'reading it':>11}")
    for name, found in seen.items():
        if not found:
            print(f"{name:<38} not available here")
            continue
        used, count, size, read = (statistics.median(row[i] for row in found) for i in (0, 1, 3, 4))
        known = [row[2] for row in found if row[2] is not None]
        whole = f"{100 * statistics.median(known):.0f} %" if known else "unknown"
        print(f"{name:<38} {count:>8,.0f} {1000 * used:>6.0f} ms {1e6 * used / max(count, 1):>6.0f} us {whole:>9} {size / 1e6:>6.1f} MB "
              f"{1000 * read:>8.0f} ms", flush=True)


def main():
    if "--samples" in sys.argv:
        samples()
        return
    if "--push" in sys.argv:
        push()
        return
    rows = ROWS if "--no-peers" not in sys.argv else [row for row in ROWS if row[1][0] == PRCB]
    compare("10,000 idle threads: percent of one processor", 10000, 0, rows)
    compare("500 busy threads: percent of one processor", 500, 500, rows)
    push()
    unwindings()
    python_frames()
    samples()


if __name__ == "__main__":
    main()
