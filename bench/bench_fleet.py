#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A fleet on one machine: HOSTS made-up machines of 100 cgroups, each a prcb-exporter of its own that
plays looks from a file, scraped by one Prometheus each 5 seconds over the loopback: how long scrapes
take, what Prometheus and the exporters need of memory and processors, and whether a scrape fails.
PRCB_FLEET_HOSTS and PRCB_FLEET_SECONDS say otherwise. docs/fleet.md has what it said."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
EXPORTER = os.environ.get("PRCB_EXPORTER", str(HERE / "../src/services/exporter/prcb-exporter"))
HOSTS = int(os.environ.get("PRCB_FLEET_HOSTS", "100"))
SECONDS = int(os.environ.get("PRCB_FLEET_SECONDS", "60"))
INTERVAL = 5
CGROUPS = 100
PROCESSORS = 64
DEADLINE = 240
CAUSES = ("sleep", "futex", "epoll", "pipe", "socket", "disk", "file", "throttled", "child", "signal", "worker")


def look(number):
    """The machine after so many seconds: a thread a cgroup, which runs and waits for everything."""
    ns = (number + 1) * 1000000000
    processors = [{"number": i, "online": True, "wall_ns": ns, "idle_ns": ns // 2, "user_ns": ns // 4,
                   "kernel_ns": ns // 8, "dpc_ns": ns // 16, "interrupt_ns": ns // 32, "steal_ns": ns // 32,
                   "interrupts": 1000 * number, "dpcs": 500 * number, "switches": 2000 * number,
                   "idle_entries": 900 * number} for i in range(PROCESSORS)]
    accounts = [{"key": i + 1, "tid": i + 1, "pid": i + 1, "comm": "worker", "cgroup": i + 2,
                 "run_ns": ns // 4, "ready_ns": ns // 8, "switches": 100 * number,
                 "voluntary_switches": 90 * number, "migrations": number, "open": "epoll",
                 "waits": {cause: [number, ns // 32] for cause in CAUSES}} for i in range(CGROUPS)]
    return {"ms": number * 1000, "tier": "daemon", "max_threads": 65536, "hostname": "made-up",
            "cgroups": {str(i + 2): f"/kubepods.slice/kubepods-burstable.slice/cri-containerd-{i:064x}.scope"
                        for i in range(CGROUPS)},
            "processors": processors, "accounts": accounts}


def free_ports(count):
    """Free a moment ago; Prometheus and its targets take them at once."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def resident(pids, what):
    """Sum in MB."""
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(what + ":"):
                total += int(line.split()[1])
    return total / 1024


def processor_seconds(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def ask(port, expression):
    """The values of an instant query."""
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            return [float(one["value"][1]) for one in json.load(answer)["data"]["result"]]
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        if not isinstance(error, urllib.error.URLError) or isinstance(error.reason, ConnectionError):
            return []  # it is not there yet
        sys.exit(f"bench_fleet: {expression}: {error}")


def wait_for(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"bench_fleet: not within {DEADLINE} s: {what}")
        time.sleep(.5)


def start(folder, stack):
    """The exporters and Prometheus; its port."""
    ports = free_ports(HOSTS + 1)
    with open(f"{folder}/looks", "w", encoding="ascii") as file:
        for number in range(SECONDS + 2 * DEADLINE):
            json.dump(look(number), file, separators=(",", ":"))
            file.write("\n")
    with open(f"{folder}/prometheus.yml", "w", encoding="ascii") as file:
        file.write(f"global:\n  scrape_interval: {INTERVAL}s\n  scrape_timeout: {INTERVAL}s\n"
                   "scrape_configs:\n- job_name: prcb\n  static_configs:\n  - targets: [%s]\n"
                   % ", ".join(f"'127.0.0.1:{port}'" for port in ports[1:]))

    def run(*command):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=open(f"{folder}/log", "ab"))
        stack.callback(process.wait)
        stack.callback(process.send_signal, signal.SIGKILL)
        return process.pid

    exporters = [run(EXPORTER, f"--replay={folder}/looks", f"--web.listen-address=127.0.0.1:{port}")
                 for port in ports[1:]]
    prometheus = run("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                     f"--web.listen-address=127.0.0.1:{ports[0]}", f"--web.console.templates={folder}",
                     f"--web.console.libraries={folder}", "--log.level=warn")
    return ports[0], exporters, prometheus


def main():
    if not shutil.which("prometheus"):
        print("bench_fleet: no prometheus")
        return 0
    folder = tempfile.mkdtemp(prefix="prcb-fleet-")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, True)
        port, exporters, prometheus = start(folder, stack)
        wait_for(lambda: ask(port, "sum(up)") == [HOSTS], "all hosts are scraped")
        began, before = time.monotonic(), (processor_seconds(exporters), processor_seconds([prometheus]))
        time.sleep(SECONDS)
        passed = time.monotonic() - began
        window = f"[{SECONDS}s]"
        series = ask(port, "sum(scrape_samples_scraped)")[0] / HOSTS
        durations = ask(port, f"quantile(.5, avg_over_time(scrape_duration_seconds{window}))") + \
            ask(port, f"max(max_over_time(scrape_duration_seconds{window}))")
        failed = ask(port, f"sum(count_over_time(up{window}) - sum_over_time(up{window}))")[0]
        falls = sum(sum(ask(port, f"sum(resets({name}{window}))")) for name in
                    ("prcb_cgroup_run_seconds_total", "prcb_cgroup_wait_seconds_total", "prcb_system_cpu_seconds_total"))
        print(f"{HOSTS} made-up hosts of {series:.0f} series each, scraped each {INTERVAL} s for {passed:.0f} s\n")
        print(f"{'a scrape, median of hosts':44}{durations[0] * 1e3:8.1f} ms\n"
              f"{'a scrape, the longest':44}{durations[1] * 1e3:8.1f} ms\n"
              f"{'scrapes that failed':44}{failed:8.0f}\n{'counters that fell':44}{falls:8.0f}\n"
              f"{'Prometheus, resident':44}{resident([prometheus], 'VmRSS'):8.0f} MB\n"
              f"{'Prometheus, of a processor':44}"
              f"{(processor_seconds([prometheus]) - before[1]) / passed * 100:8.1f} %\n"
              f"{'an exporter, resident':44}{resident(exporters, 'VmRSS') / HOSTS:8.1f} MB\n"
              f"{'an exporter, of a processor':44}"
              f"{(processor_seconds(exporters) - before[0]) / passed / HOSTS * 100:8.2f} %")
    return 1 if failed or falls else 0


if __name__ == "__main__":
    sys.exit(main())
