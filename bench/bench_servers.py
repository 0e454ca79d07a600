#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a tool costs a server that is busy: the processor time that redis and nginx take for a request while it
watches them, against without, in pairs: each measurement lies between two without any tool. 1.00 is nothing. Load
comes from redis-benchmark and wrk, which share the processors. What is not installed is left out, and said. Needs
root. bench_servers [WORD...] takes the rows whose names have one of the words, redis or nginx that server alone;
PRCB_SERVERS=N makes N rounds."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PRCB = os.environ.get("PRCB", str(HERE / "../src/tools/cli/prcb"))
ROUNDS = int(os.environ.get("PRCB_SERVERS", "7"))
WINDOW = 1.0  # second
READY = 10  # seconds that a tool may take to begin
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# PID is the server's process, FILE one in a folder of our own.
TOOLS = {
    "nothing": None,
    "prcb stat -p": [PRCB, "stat", "-p", "PID"],
    "prcb why -p": [PRCB, "why", "-p", "PID"],
    "prcb top --by-whom": [PRCB, "top", "-b", "--by-whom", "-p", "PID"],
    "prcb record -p": [PRCB, "record", "-o", "FILE", "-p", "PID"],
    "prcb record -g -p": [PRCB, "record", "-g", "-o", "FILE", "-p", "PID"],
    "prcb record -a": [PRCB, "record", "-o", "FILE", "-a"],
    "offcputime -p (libbpf-tools)": ["offcputime", "-p", "PID", "1000"],
    "perf sched record": ["perf", "sched", "record", "-o", "FILE"],
    "perf record -F 1000 -p": ["perf", "record", "-e", "cpu-clock", "-F", "1000", "-o", "FILE", "-p", "PID"],
    "perf record -F 1000 -g -p": ["perf", "record", "-e", "cpu-clock", "-F", "1000", "--call-graph",
                                  "dwarf,16384", "-o", "FILE", "-p", "PID"],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ran_ns(pid):
    """The processor time of all threads of a process."""
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


class Redis:
    needs = ("redis-server", "redis-benchmark")

    def __init__(self, folder):
        self.path = folder + "/redis.sock"
        self.server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "",
                                        "--appendonly", "no", "--dir", folder], **QUIET)
        wait_for(lambda: os.path.exists(self.path))
        self.pid = self.server.pid
        self.load = subprocess.Popen(["redis-benchmark", "-s", self.path, "-t", "get", "-c", "20", "-l", "-q"], **QUIET)

    def requests(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(b"INFO stats\r\n")
            text = b""
            while b"total_commands_processed:" not in text or not text.endswith(b"\n"):
                text += connection.recv(65536)
        return int(text.split(b"total_commands_processed:")[1].split()[0])

    def end(self):
        for process in (self.load, self.server):
            process.kill()
            process.wait()


class Nginx:
    needs = ("nginx", "wrk")

    def __init__(self, folder):
        self.port = free_port()
        pathlib.Path(folder, "index.html").write_text("x" * 612, encoding="ascii")
        pathlib.Path(folder, "nginx.conf").write_text(
            f"user root; worker_processes 1; pid {folder}/pid; error_log /dev/null; daemon off;\n"
            "events { worker_connections 512; }\n"
            f"http {{ access_log off; keepalive_requests 1000000000; server {{ listen 127.0.0.1:{self.port}; root {folder};"
            " location /status { stub_status; } } }\n", encoding="ascii")
        self.server = subprocess.Popen(["nginx", "-c", folder + "/nginx.conf", "-p", folder], **QUIET)
        children = pathlib.Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        wait_for(lambda: children.read_text(encoding="ascii").split())
        self.pid = int(children.read_text(encoding="ascii").split()[0])
        wait_for(self.answers)
        self.load = subprocess.Popen(["wrk", "-t1", "-c20", "-d3600", f"http://127.0.0.1:{self.port}/"], **QUIET)

    def answers(self):
        with contextlib.suppress(OSError):
            return self.requests()
        return 0

    def requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=5) as answer:
            return int(answer.read().split()[9])

    def end(self):
        self.load.kill()
        self.load.wait()
        self.server.terminate()
        self.server.wait()


def wait_for(condition):
    deadline = time.monotonic() + READY
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("bench_servers: a server or tool did not begin")
        time.sleep(0.02)


def measure(server):
    """Nanoseconds of the server's processor time for a request."""
    requests, begin = server.requests(), ran_ns(server.pid)
    time.sleep(WINDOW)
    end, after = ran_ns(server.pid), server.requests()
    if after == requests:
        sys.exit("bench_servers: the server answers nobody")
    return (end - begin) / (after - requests)


def measure_with(server, command, folder):
    file = folder + "/recording"
    words = [{"PID": str(server.pid), "FILE": file}.get(word, word) for word in command]
    with subprocess.Popen(words, **QUIET) as tool:
        time.sleep(1.2)  # it loads programs and looks around first; its first second is not measured
        result = measure(server) if tool.poll() is None else None
        tool.send_signal(signal.SIGINT)
        try:
            tool.wait(10)
        except subprocess.TimeoutExpired:
            tool.kill()
    for left in pathlib.Path(folder).glob("recording*"):
        left.unlink()
    return result


def spread(found):
    if not found:
        return "it ended"
    low, _, high = statistics.quantiles(found, n=4) if len(found) > 1 else found * 3
    return f"{statistics.median(found):8.3f} ({low:.3f} .. {high:.3f})"


def compare(kind, rows):
    ratios, plain = {name: [] for name in rows}, []
    with tempfile.TemporaryDirectory(prefix="prcb-servers-") as folder:
        server = kind(folder)
        try:
            time.sleep(1)
            before = measure(server)
            for name, command in list(rows.items()) * ROUNDS:
                cost = measure_with(server, command, folder) if command else measure(server)
                after = measure(server)
                if cost:
                    ratios[name].append(cost / ((before + after) / 2))
                before = after
                plain.append(after)
        finally:
            server.end()
    print(f"\n{kind.__name__.lower() + f', {statistics.median(plain):.0f} ns a request':32}")
    for name, found in ratios.items():
        print(f"{name:32}{spread(found)}", flush=True)


def main():
    servers = {"redis": Redis, "nginx": Nginx}
    words = [word for word in sys.argv[1:] if word not in servers]
    servers = {name: servers[name] for name in sys.argv[1:] if name in servers} or servers
    rows = {name: tool for name, tool in TOOLS.items() if not words or any(word in name for word in words)}
    for name in [name for name, tool in rows.items() if tool and not shutil.which(tool[0])]:
        print(f"{name}: not installed")
        del rows[name]
    print(f"processor time of the server for a request, against that without: median of {ROUNDS} rounds (half of "
          "them lie within)", flush=True)
    for name, kind in servers.items():
        if all(shutil.which(program) for program in kind.needs):
            compare(kind, rows)
        else:
            print(f"\n{name}: not installed")


if __name__ == "__main__":
    if os.geteuid():
        sys.exit("bench_servers: needs root")
    main()
