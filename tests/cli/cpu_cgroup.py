# SPDX-License-Identifier: BSD-2-Clause
"""Cgroups with a share or a quota of processor time, for tests."""
import os
import time
import unittest


class CpuCgroup:
    """A cgroup with the controller of processor time, of either version."""

    def __init__(self, name):
        with open("/proc/mounts", encoding="ascii") as file:
            mounts = [line.split() for line in file]
        found = [path for _, path, kind, options, *_ in mounts
                 if kind == "cgroup" and "cpu" in options.split(",")]
        self.v2 = not found
        for _, path, kind, *_ in mounts if self.v2 else ():
            try:
                with open(path + "/cgroup.controllers", encoding="ascii") as file:
                    if kind == "cgroup2" and "cpu" in file.read().split():
                        found.append(path)
                        self.write("+cpu", path + "/cgroup.subtree_control")
            except OSError:
                pass
        if not found:
            raise unittest.SkipTest("no cgroup controller of processor time is mounted")
        self.path = f"{found[0]}/prcb-test-{os.getpid()}-{name}"
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise unittest.SkipTest(f"no cgroup can be made here: {error}") from error

    @staticmethod
    def write(text, path):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def set(self, v1, v2):
        name, value = (v2 if self.v2 else v1)
        try:
            self.write(value, f"{self.path}/{name}")
        except OSError as error:
            raise unittest.SkipTest(f"{name} cannot be set here: {error}") from error

    @property
    def processes(self):
        return self.path + "/cgroup.procs"

    def throttled(self):
        """(time, how often)"""
        with open(self.path + "/cpu.stat", encoding="ascii") as file:
            stat = dict(line.split() for line in file)
        return int(stat["throttled_usec"]) * 1000 if self.v2 else int(stat["throttled_time"]), int(stat["nr_throttled"])

    def look(self, ask, share=0.5, seconds=20):
        """What ask() tells of a time of which the quota took at least this share, by the group's own count. Where others
        have the processor, a real-time thread before all, what is in the group does not come to use its quota up, and
        it is asked again; a group that the quota does not hold back within so many seconds is no case of one."""
        deadline = time.monotonic() + seconds
        while True:
            began, before = time.monotonic_ns(), self.throttled()[0]
            told = ask()
            taken, took = self.throttled()[0] - before, time.monotonic_ns() - began
            if taken >= share * took:
                return told
            if time.monotonic() > deadline:
                raise unittest.SkipTest(f"others have the processor: of {took} ns the quota took {taken}")

    def remove(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                os.rmdir(self.path)
                return
            except OSError:  # what ended there is not gone yet
                time.sleep(0.01)
