#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Boots a guest, follows its console, prints what its programs print, writes a test log.

    console.py FOLDER SECONDS -- EMULATOR [ARGUMENT]...

FOLDER/names has the commands' names, a line each. FOLDER/testlog.json gets one JSON object
per command in the form of a meson test log (what tests/tally.py reads), FOLDER/console.log
all that the last machine said. The time limit holds from the moment the guest is up. A
command that never ended, because the guest hung or died in it, counts as failed. Time in which
the emulator was ready to run and others had the processors counts for no limit here.

A machine that falls silent, or ends, before it is up is started again, twice at most, and
that is said: nothing of ours runs before, so it is the emulator or the kernel that hung.
"""
import contextlib
import glob
import json
import os
import re
import select
import subprocess
import sys
import time

BOOTS = 3
# Between two lines of a booting kernel lie three seconds at most on a machine that does
# nothing else.
SILENCE = int(os.environ.get("GUEST_SILENCE", "90"))
# A kernel that says something for ever is no better: for all boots together. (Thirty-two
# processors on a machine with five programs a processor took two minutes.)
BOOTING = int(os.environ.get("GUEST_BOOTING", str(8 * SILENCE)))


class Stopped(Exception):
    """The machine had to be stopped; the text says why."""


class Machine:
    """A running emulator, its console as lines."""

    def __init__(self, command, log, seconds):
        # It must not outlive us, whatever ends us.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.log = open(log, "wb")
        self.begun = time.monotonic()
        self.delayed = 0.0
        self.said = []  # the last lines
        self.silence, self.deadline = SILENCE, seconds

    def came_up(self, seconds):
        """From here on silence may last, but all of it has a limit."""
        self.silence, self.deadline = None, self.clock() + seconds

    def clock(self):
        """Seconds since its start, less those in which it was ready and had no processor, by the kernel's
        count (schedstat): at its priority they can be most of them."""
        for thread in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"):
            with contextlib.suppress(OSError, IndexError, ValueError), open(thread, encoding="ascii") as file:
                self.delayed = max(self.delayed, int(file.read().split()[1]) / 1e9)
        return time.monotonic() - self.begun - self.delayed

    def wait(self):
        heard = self.clock()
        while True:
            now = self.clock()
            silent = self.silence is not None and now >= heard + self.silence
            if silent or now >= self.deadline:
                raise Stopped(("said nothing for %d s" % self.silence if silent else "took too long: %d s" % now) +
                              ", and %d without a processor" % self.delayed)
            until = self.deadline if self.silence is None else min(self.deadline, heard + self.silence)
            if select.select([self.process.stdout], [], [], until - now)[0]:
                return

    def lines(self):
        rest = b""
        while True:
            self.wait()
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                break
            self.log.write(data)
            self.log.flush()
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield self.line(line)
        if rest:
            yield self.line(rest)

    def line(self, data):
        text = data.decode("utf-8", "replace").replace("\r", "") + "\n"
        self.said = self.said[-29:] + [text]
        return text

    def busy(self):
        """Seconds of a processor that it has used here."""
        with open(f"/proc/{self.process.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def entry(name, lines, status):
    return {"name": name, "stdout": "".join(lines), "stderr": "",
            "result": {None: "TIMEOUT", 0: "OK", 77: "SKIP"}.get(status, "FAIL"),
            "returncode": status}


def wait_until_up(lines):
    """What the guest says of itself; None: it ended before."""
    for line in lines:
        match = re.search(r"@guest up (\S*) (\S*) (.*)", line)
        if match:
            return "Linux %s %s, %s" % match.groups()
    return None


def boot(command, folder, seconds):
    """A machine that is up, and the rest of its lines; None when none came up."""
    left = BOOTING
    for number in range(1, BOOTS + 1):
        machine = Machine(command, folder + "/console.log", left)
        lines = machine.lines()
        try:
            what = wait_until_up(lines)
            reason = "it ended"
        except Stopped as stopped:
            what, reason = None, "it " + str(stopped)
        except BaseException:
            machine.end()
            raise
        if what:
            print(f"== guest: {what}, {time.monotonic() - machine.begun:.1f} s here,"
                  f" {machine.busy():.1f} of a processor", flush=True)
            machine.came_up(seconds)
            return machine, lines
        left -= machine.clock()
        machine.end()
        print(f"== boot {number} of {BOOTS} failed: {reason}; its last lines:\n"
              + "".join(machine.said), flush=True)
        if left <= 0:
            break
    return None


def follow(machine, lines, names):
    """Yields one entry for each name; prints the lines on the way."""
    number, said, done, begun, busy, reason = 0, [], 0, 0.0, 0.0, "it ended"
    try:
        for line in lines:
            match = re.search(r"@guest (begin|end|down)\b ?(\S*) ?(\S*)", line)
            if not match:
                said.append(line)
                if number:
                    sys.stdout.write(line)
                    sys.stdout.flush()
                continue
            if match.group(1) == "begin":
                number, said = int(match.group(2)), [line[:match.start()]]
                begun, busy = time.monotonic(), machine.busy()
                print(f"== {names[number - 1]}", flush=True)
            elif match.group(1) == "end":
                said.append(line[:match.start()])
                yield entry(names[number - 1], said, int(match.group(3)))
                print(f"== {names[number - 1]}: exit status {match.group(3)},"
                      f" {time.monotonic() - begun:.1f} s,"
                      f" {machine.busy() - busy:.1f} of a processor", flush=True)
                done, number, said = number, 0, []
    except Stopped as stopped:
        reason = "it " + str(stopped)
    if done < len(names):
        print(f"== the guest stopped in {names[done]}: {reason}; its last lines:\n"
              + "".join(said[-30:]))
    if number:
        yield entry(names[number - 1], said, None)
        done = number
    for name in names[done:]:
        yield entry(name, ["not started: the guest had stopped before\n"], None)


def main(folder, seconds, dashes, *command):
    assert dashes == "--"
    with open(folder + "/names", encoding="utf-8") as file:
        names = file.read().splitlines()
    with open(folder + "/testlog.json", "w", encoding="utf-8") as out:
        up = boot(command, folder, int(seconds))
        if not up:
            results = [entry(name, ["the guest did not come up\n"], None) for name in names]
        else:
            results = follow(*up, names)
        try:
            for result in results:
                out.write(json.dumps(result) + "\n")
                out.flush()
        finally:
            if up:
                up[0].end()


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")
    main(*sys.argv[1:])
