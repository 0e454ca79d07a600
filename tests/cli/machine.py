# SPDX-License-Identifier: BSD-2-Clause
"""Recorded machines: folders with the files of procfs and sysfs that tell of processors,
written in the formats of the kernel's Documentation (filesystems/proc.rst,
admin-guide/pm/cpuidle.rst and cpufreq.rst, ABI/testing/sysfs-devices-system-cpu). What
the processors did is a number here, so that what prcb prints can be compared exactly.

    machine = Machine(folder, processors=4, states=["POLL", "C1", "C6"])
    machine[2].idle += 100            # clock ticks
    machine[2].states[1].usage += 7
    machine.write()
"""
import os

TICK_NS = 10000000  # /proc/stat counts in USER_HZ, which is 100 everywhere


class State:
    def __init__(self, name):
        self.name = name
        self.usage = 0
        self.time = 0  # microseconds


class Processor:
    """What one processor did since the machine started."""

    def __init__(self, states):
        self.online = True
        # /proc/stat, in ticks
        self.user = self.nice = self.system = self.idle = self.iowait = 0
        self.softirq = self.steal = self.guest = 0
        self.irq = 1  # a kernel that counts them has counted some; others leave it at 0
        self.interrupts = {}  # row of /proc/interrupts: count
        self.softirqs = {}
        self.states = [State(name) for name in states]
        self.khz = None  # scaling_cur_freq
        self.range = None  # as Machine's khz, where processors differ
        self.throttles = None

    def ticks(self):
        return [self.user, self.nice, self.system, self.idle, self.iowait, self.irq,
                self.softirq, self.steal, self.guest, 0]


class Machine:
    """khz: (least, nominal, most) of the hardware; policy: (least, most) of cpufreq."""

    def __init__(self, folder, processors=2, possible=None, states=(), khz=None, policy=None,
                 thermal=False, present=None):
        self.folder = folder
        self.possible = possible or processors
        self.present = present or self.possible
        self.khz = khz
        self.policy = policy or (khz and (khz[0], khz[2]))
        self.processors = [Processor(states) for _ in range(self.possible)]
        for number, processor in enumerate(self.processors):
            processor.online = number < processors
            processor.khz = khz and khz[1]
            processor.throttles = 0 if thermal else None

    def __getitem__(self, number):
        return self.processors[number]

    def online(self):
        return [number for number, one in enumerate(self.processors) if one.online]

    def put(self, name, text):
        """Changes a file in place, as the kernel's files change for those who have them open."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = text.encode()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(descriptor, data)
        os.ftruncate(descriptor, len(data))
        os.close(descriptor)

    def write(self):
        self.write_proc()
        folder = "sys/devices/system/cpu/"
        self.put(folder + "possible", ranges(range(self.possible)) + "\n")
        self.put(folder + "present", ranges(range(self.present)) + "\n")
        self.put(folder + "online", ranges(self.online()) + "\n")
        self.put(folder + "offline",
                 ranges(set(range(self.possible)) - set(self.online())) + "\n")
        for number, processor in enumerate(self.processors):
            self.write_processor("%scpu%d/" % (folder, number), processor)

    def write_proc(self):
        online = self.online()
        lines = ["cpu  " + " ".join(str(sum(column)) for column in
                                    zip(*[self[number].ticks() for number in online]))]
        lines += ["cpu%d %s" % (number, " ".join(map(str, self[number].ticks())))
                  for number in online]
        total = sum(sum(self[number].interrupts.values()) for number in online)
        lines += ["intr %d 0 0" % total, "ctxt 0", "btime 1700000000", "processes 1",
                  "procs_running 1", "procs_blocked 0", "softirq 0 0 0 0 0 0 0 0 0 0 0"]
        self.put("proc/stat", "\n".join(lines) + "\n")
        self.put("proc/interrupts", self.columns("interrupts", ["ERR:          0",
                                                                "MIS:          0"]))
        self.put("proc/softirqs", self.columns("softirqs", []))

    def columns(self, member, rest):
        online = self.online()
        rows = sorted({row for number in online for row in getattr(self[number], member)})
        lines = ["     " + "".join("%11s" % ("CPU%d" % number) for number in online) + " "]
        for row in rows:
            counts = [getattr(self[number], member).get(row, 0) for number in online]
            lines.append("%4s:" % row + "".join(" %10d" % count for count in counts) +
                         ("   IO-APIC   2-edge      timer" if row.isdigit() else
                          "   Some interrupts"))
        return "\n".join(lines + rest) + "\n"

    def write_processor(self, folder, processor):
        for index, state in enumerate(processor.states):
            where = "%scpuidle/state%d/" % (folder, index)
            self.put(where + "name", state.name + "\n")
            self.put(where + "usage", "%d\n" % state.usage)
            self.put(where + "time", "%d\n" % state.time)
        if self.khz and processor.online:
            where = folder + "cpufreq/"
            self.put(where + "scaling_cur_freq", "%d\n" % processor.khz)
            least, nominal, most = processor.range or self.khz
            policy = processor.range and (least, most) or self.policy
            self.put(where + "cpuinfo_min_freq", "%d\n" % least)
            self.put(where + "base_frequency", "%d\n" % nominal)
            self.put(where + "cpuinfo_max_freq", "%d\n" % most)
            self.put(where + "scaling_min_freq", "%d\n" % policy[0])
            self.put(where + "scaling_max_freq", "%d\n" % policy[1])
        if processor.throttles is not None:
            where = folder + "thermal_throttle/"
            self.put(where + "core_throttle_count", "%d\n" % processor.throttles)
            self.put(where + "package_throttle_count", "0\n")


def ranges(numbers):
    """{0, 1, 2, 5} as the kernel prints a list: 0-2,5."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in parts)
