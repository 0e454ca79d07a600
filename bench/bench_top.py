#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a screen of 10,000 threads costs, a hundred of which wake up a hundred times a second: prcb top
beside htop and atop, each on a terminal of its own, the same threads, an interval of one second, as
processor time (its children's included) in percent of one processor over the seconds after its start.
Rounds are interleaved; a row is the least and the median. Then what a refresh of prcb top opens, by
strace."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PRCB = os.path.join(HERE, "../src/tools/cli/prcb")
THREADS, BUSY, ROUNDS, WARM_S, SECONDS = 10000, 100, 3, 4, 8
ROWS = [("prcb top", [PRCB, "top"]), ("prcb top -p", [PRCB, "top", "-p", "PID"]),
        ("prcb top, asleep shown", [PRCB, "top", "-i"]),
        ("htop", ["htop", "-d", "10"]), ("htop -p", ["htop", "-d", "10", "-p", "PID"]),
        ("atop, threads", ["atop", "-y", "1"])]


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", HOME="/nonexistent")
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.bytes = 0

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    self.bytes += len(os.read(self.fd, 65536))
                except OSError:
                    return

    def ticks(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15]))

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        for _ in range(100):
            self.watch(0.02)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def measure(command):
    """Percent of a processor; None: it has ended by itself."""
    terminal = Terminal(command)
    terminal.watch(WARM_S)
    try:
        before = terminal.ticks()
        terminal.watch(SECONDS)
        used = terminal.ticks() - before
    except OSError:
        os.waitpid(terminal.pid, 0)
        return None
    drawn = terminal.bytes
    terminal.end()
    return 100 * used / os.sysconf("SC_CLK_TCK") / SECONDS if drawn else None


def count_opens(pid):
    """How often files of procfs are opened each second, after the first seconds."""
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        terminal = Terminal(["strace", "-f", "-ttt", "-e", "trace=openat,open", "-o", log, PRCB, "top", "-p", pid])
        terminal.watch(WARM_S + SECONDS)
        terminal.end()
        with open(log, encoding="utf-8", errors="replace") as file:
            calls = re.findall(r"^\d+ +(\d+\.\d+) open\w*\(.*?\"(/proc/\d[^\"]*)\"", file.read(), re.M)
    if not calls:
        return 0
    last = float(calls[-1][0])
    return len([1 for moment, _ in calls if float(moment) > max(float(calls[0][0]) + WARM_S, last - SECONDS)]) / SECONDS


def main():
    subprocess.run([os.path.join(HERE, "top_redraw")], check=False)
    threads = subprocess.Popen([os.path.join(HERE, "top_threads"), str(THREADS), str(BUSY)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    if threads.stdout.readline().strip() != str(THREADS):
        print(f"{THREADS} threads cannot be had here")
        return 1
    rows = []
    for name, command in ROWS:
        command = [word if word != "PID" else str(threads.pid) for word in command]
        if shutil.which(command[0]):
            rows.append((name, command, []))
        else:
            print(f"{name}: not installed")
    for _ in range(ROUNDS):
        for _, command, results in rows:
            result = measure(command)
            if result is not None:
                results.append(result)
    print(f"{'percent of one processor':32}{'least':>9}{'median':>9}")
    for name, _, results in rows:
        if results:
            print(f"{name:32}{min(results):9.2f}{statistics.median(results):9.2f}")
        else:
            print(f"{name:32}   it cannot be run here")
    if shutil.which("strace"):
        print(f"files of /proc/PID opened by a refresh: {count_opens(str(threads.pid)):.1f}")
    threads.stdin.close()
    threads.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
