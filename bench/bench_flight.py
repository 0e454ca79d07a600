#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to have the last seconds of all switches when somebody asks: prcb flight, prcbd's own (flight in
prcbd.conf), and perf's ways. Two threads of one processor wake each other through pipes, by turns without and with a
recorder; then the last seconds are asked for. Needs root. PRCB_FLIGHT_TRIPS=N round trips, PRCB_FLIGHT_ROUNDS=N."""
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PRCB = os.environ.get("PRCB", str(HERE / "../src/tools/cli/prcb"))
PRCBD = os.environ.get("PRCBD", str(HERE / "../src/services/daemon/prcbd"))
TRIPS = int(os.environ.get("PRCB_FLIGHT_TRIPS", "100000"))
ROUNDS = int(os.environ.get("PRCB_FLIGHT_ROUNDS", "7"))
PINS = f"/sys/fs/bpf/prcb-bench-{os.getpid()}"


def switch():
    """Nanoseconds of the processor for each switch of TRIPS round trips: two in each."""
    there, back = os.pipe(), os.pipe()
    pid = os.fork()
    os.sched_setaffinity(0, {0})
    if not pid:
        os.sched_setaffinity(0, {0})
        while os.read(there[0], 1) == b"x":
            os.write(back[1], b"x")
        os._exit(0)
    begin = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(TRIPS):
        os.write(there[1], b"x")
        os.read(back[0], 1)
    end = resource.getrusage(resource.RUSAGE_SELF)
    os.write(there[1], b"y")
    _, _, child = os.wait4(pid, 0)
    for fd in there + back:
        os.close(fd)
    os.sched_setaffinity(0, range(os.cpu_count()))
    own = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    return (own + child.ru_utime + child.ru_stime) * 1e9 / TRIPS / 2


def processor_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size(folder):
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def run(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def save(folder, *socket):
    run([PRCB, "flight", "save", "--last", "1000", "-o", folder + "/saved.db", *socket])


def ends(process, number):
    process.send_signal(number)
    process.wait()


def prcbd_conf(folder):
    with open(folder + "/conf", "w", encoding="ascii") as file:
        file.write(f"pin_directory = {PINS}\nuser =\nflight = 64M\nallow_unprivileged_bpf = yes\n")
    os.environ["PRCB_SOCKET"] = folder + "/prcbd"
    return [PRCBD, "--foreground", "--socket", folder + "/prcbd", "--config", folder + "/conf"]


# Name, command, how it is asked for the last seconds.
RECORDERS = (
    ("prcb flight", lambda folder: [PRCB, "flight", "-a", "--size", "64", "--tier", "bpf", "-o", folder, "--socket",
                                    folder + "/ask"],
     lambda folder, process: save(folder, "--socket", folder + "/ask")),
    ("prcbd, flight = 64M", prcbd_conf, lambda folder, process: save(folder)),
    ("perf record --overwrite", lambda folder: ["perf", "record", "--overwrite", "-a", "-m", "32M", "-e",
                                                "sched:sched_switch", "-e", "sched:sched_waking", "-o", folder + "/data"],
     lambda folder, process: ends(process, signal.SIGINT)),
    ("perf sched record", lambda folder: ["perf", "sched", "record", "-o", folder + "/data"],
     lambda folder, process: ends(process, signal.SIGINT)),
)


def measure(command, ask):
    folder = tempfile.mkdtemp(dir="/var/tmp")
    os.chmod(folder, 0o755)
    costs = []
    try:
        with subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(3)  # to load, and to take its first look
            if process.poll() is not None:
                return None
            before, began = processor_time(process.pid), time.monotonic()
            for _ in range(ROUNDS):
                costs.append(switch())
            used, took, meanwhile = processor_time(process.pid) - before, time.monotonic() - began, size(folder)
            ask(folder, process)
            if process.poll() is None:
                ends(process, signal.SIGTERM)
            return costs, used / took, meanwhile, size(folder)
    finally:
        if os.path.exists(folder + "/conf"):
            run([PRCBD, "--cleanup", "--config", folder + "/conf"])
            shutil.rmtree(PINS, ignore_errors=True)
        shutil.rmtree(folder)


def main():
    if os.geteuid():
        sys.exit("bench_flight: needs root")
    print(f"{ROUNDS} x {TRIPS} round trips, without a recorder before and after each:\n\n"
          f"{'':26}{'ns a switch':>14}{'its processor':>16}{'written meanwhile':>20}{'at the end':>14}")
    for name, command, ask in RECORDERS:
        plain = [switch() for _ in range(ROUNDS)]
        found = measure(command, ask)
        plain += [switch() for _ in range(ROUNDS)]
        if not found:
            print(f"{name:26}  does not run here")
            continue
        costs, used, meanwhile, end = found
        print(f"{name:26}{statistics.median(costs) - statistics.median(plain):+8.0f} of {statistics.median(plain):<4.0f}"
              f"{used:14.1%}{meanwhile / 2**20:16.1f} MiB{end / 2**20:10.1f} MiB")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
