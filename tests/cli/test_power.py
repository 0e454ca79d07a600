#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb power`: the figures of recorded machines exactly, and PROCESSOR_POWER_STATE in every
version of the catalog, read back by `prcb layout --decode`."""
import json
import os
import pwd
import re
import subprocess
import unittest

from cpu_cases import BPF_REASON, PRCB, SOURCE, TIMEOUT, Case, needs_root, run, wait_until_asleep
from machine import Machine

KEYS = ["number", "online", "parked", "idle_ns", "transitions", "busy_permille",
        "performance_permille", "utility_permille", "mhz", "limit_mhz", "max_mhz", "min_mhz",
        "nominal_mhz", "throttle_permille", "limit_permille", "throttles", "idle_state",
        "performance_source", "idle_states", "absent"]
MEMBER_KEYS = ["name", "offset", "size", "type", "value"]


def power(*args, **options):
    return run("power", *args, **options)


def versions():
    """(version, architecture) of each layout that the catalog has."""
    listing = json.loads(run("layout", "-j").stdout)["versions"]
    return [(row["version"], arch) for row in listing for arch in ("x86", "x64") if row[arch]]


# Bytes on x86 and x64, for versions that begin so: the table of the article that
# docs/processor-power-state.md follows, written down here by hand.
SIZES = {
    "5.0.": (0x88, None), "5.1.": (0x120, None), "5.2.": (0x120, 0x170),
    "6.0.6000": (0xE0, 0x138), "6.0.6001": (0xC8, 0x118), "6.0.6002": (0xC8, 0x118),
    "6.1.": (0xC8, 0x100), "6.2.": (0x180, 0x1C8), "6.3.": (0x190, 0x1E0),
    "6.4.9841": (0x180, 0x1D0), "10.0.10240": (0x180, 0x1D0), "10.0.10586": (0x180, 0x1D0),
    "10.0.14393": (0x180, 0x1D0), "10.0.15063": (0x180, 0x1D8), "10.0.16299": (0x1A8, 0x200),
    "10.0.17134": (0x1A8, 0x200), "10.0.17763": (0x1A8, 0x200), "10.0.18362": (0x1A8, 0x200),
    "10.0.19041": (0x1A8, 0x200), "10.0.20348": (None, 0x210), "10.0.22000": (None, 0x230),
    "10.0.22621": (None, 0x230), "10.0.22631": (None, 0x238), "10.0.26100": (None, 0x238),
}


def size(version, arch):
    found = [row for start, row in SIZES.items() if version.startswith(start)]
    assert len(found) == 1, version
    return found[0][arch == "x64"]


def table():
    """{member: its source, or None}, of the table in the code."""
    with open(os.path.join(SOURCE, "src/nt/power/power_members.c")) as file:
        text = file.read()
    rows = re.findall(r'^    \{"([^"]+)", (NULL|&\w+), ', text, re.M)
    return {name: None if source == "NULL" else source[1:] for name, source in rows}


class Recorded(Case):
    """A processor of 2.0 to 4.0 GHz, nominal 2.5, now at 3.0 and held to at most 3.2."""

    def machine(self, processors=2, **options):
        options.setdefault("states", ["POLL", "C1", "C1E", "C3", "C6"])
        machine = Machine(self.folder.name, processors=processors, khz=(1000000, 2500000, 4000000),
                          policy=(2000000, 3200000), thermal=True, **options)
        machine[0].khz = 3000000
        return machine

    @staticmethod
    def work(machine):
        """40 of 200 ticks not idle."""
        one = machine[0]
        one.idle += 160
        one.user += 40
        for index, (usage, time) in enumerate([(5, 100), (40, 200000), (30, 300000), (20, 500000),
                                               (10, 600000)]):
            one.states[index].usage += usage
            one.states[index].time += time
        one.throttles += 3

    def test_every_number(self):
        machine = self.machine()
        self.work(machine)
        out = self.look_json(machine, lambda: self.work(machine), "power")
        self.assertEqual(list(out), ["format", "format_version", "tier", "tier_reason", "wall_ns", "processors"])
        row = out["processors"][0]
        self.assertEqual(list(row), KEYS)
        expected = {"number": 0, "online": True, "parked": False, "idle_ns": 1600000000,
                    "busy_permille": 200, "transitions": 105,
                    # present frequency of nominal, as nothing counts what was delivered
                    "performance_permille": 1200, "performance_source": "cpufreq",
                    "utility_permille": 240, "mhz": 3000, "limit_mhz": 3200, "max_mhz": 4000,
                    "min_mhz": 2000, "nominal_mhz": 2500, "throttle_permille": 750,
                    "limit_permille": 800, "throttles": 3}
        self.assertEqual({key: row[key] for key in expected}, expected)
        self.assertEqual(row["idle_states"],
                         [{"name": name, "entries": entries, "residency_ns": time * 1000}
                          for name, entries, time in [("POLL", 5, 100), ("C1", 40, 200000),
                                                      ("C1E", 30, 300000), ("C3", 20, 500000),
                                                      ("C6", 10, 600000)]])
        self.assertEqual(set(row["absent"]), {key for key in KEYS if row[key] is None})
        self.assertTrue(all(row["absent"].values()), "each with a reason")

    def test_table(self):
        machine = self.machine()
        text = self.look(machine, lambda: self.work(machine), "power")
        lines = [line.split() for line in text.splitlines()]
        head = next(line for line in lines if line[:1] == ["CPU"])
        row = dict(zip(head, next(line for line in lines if line[:2] == ["0", "no"])))
        self.assertEqual(row, {"CPU": "0", "parked": "no", "idle": "1.60s", "entries": "105",
                               "%busy": "20.0", "%perf": "120.0", "%utility": "24.0",
                               "MHz": "3000", "limit": "3200", "max": "4000", "%throttle": "75.0",
                               "throttles": "3"})
        self.assertIn(["0", "C6", "10", "600ms", "30", "%"], lines)
        self.assertIn("10 ms", text.splitlines()[0])

    def members(self, machine, version, arch, *args):
        out = self.look_json(machine, lambda: self.work(machine), "power", "--as", version,
                             "--arch", arch, *args)
        self.assertIn(out["source"], ("symbols", "analyst", "inferred"))
        self.assertEqual([key for key in out if key != "note"],
                         ["format", "format_version", "struct", "version", "arch", "size", "source", "tier", "tier_reason",
                          "wall_ns", "processors"])
        return {row["name"]: row["value"] for row in out["processors"][0]["members"]}

    def test_5_2(self):
        """C1 is the first state that does not poll; what is deeper than the third is in C3."""
        got = self.members(self.machine(), "5.2.3790 SP1", "x86")
        expected = {"IdleHandlersCount": 4, "CurrentThrottle": 75, "ThermalThrottleLimit": 80,
                    "ProcessorMinThrottle": 50, "ProcessorMaxThrottle": 80,
                    "LastBusyPercentage": 20, "LastAdjustedBusyPercentage": 24,
                    "LastC3Percentage": 55,
                    "TotalIdleStateTime[0]": 2000000, "TotalIdleStateTime[1]": 3000000,
                    "TotalIdleStateTime[2]": 11000000, "TotalIdleTransitions[0]": 40,
                    "TotalIdleTransitions[1]": 30, "TotalIdleTransitions[2]": 30}
        self.assertEqual({key: value for key, value in got.items() if value is not None}, expected)

    def test_6_0(self):
        got = self.members(self.machine(), "6.0.6002", "x64")
        self.assertEqual({key: value for key, value in got.items() if value is not None},
                         {"IdleTimeAccumulated": 16000000, "ThermalConstraint": 80,
                          "LastBusyPercentage": 20})

    def test_10_0(self):
        got = self.members(self.machine(), "10.0.17763", "x64")
        self.assertEqual({key: value for key, value in got.items() if value is not None},
                         {"IdleTimeTotal": 16000000, "GuaranteedPerformancePercent": 100,
                          "Parked": 0, "LatestPerformancePercent": 120,
                          "AveragePerformancePercent": 120, "Utility": 24, "ActiveTime": 4000000,
                          "TotalTime": 20000000})

    def test_few_states(self):
        """A state that the processor does not have is absent, and not 0."""
        machine = self.machine(states=["C1"])
        machine.write()

        def change():
            machine[0].states[0].usage += 9
        out = self.look_json(machine, change, "power", "--as", "XP SP3", "-C", "0")
        got = {row["name"]: row for row in out["processors"][0]["members"]}
        self.assertEqual(got["TotalIdleTransitions[0]"]["value"], 9)
        self.assertIsNone(got["TotalIdleTransitions[1]"]["value"])
        self.assertIn("no such idle state", got["TotalIdleTransitions[1]"]["reason"])

    def test_total_wraps_in_a_narrow_member(self):
        machine = self.machine(states=["C1"])
        out = self.look_json(machine, lambda: setattr(machine[0].states[0], "usage", (1 << 32) + 5),
                             "power", "--as", "XP SP3", "-C", "0")
        got = {row["name"]: row["value"] for row in out["processors"][0]["members"]}
        self.assertEqual(got["TotalIdleTransitions[0]"], 5)

    def test_percent_that_does_not_fit_is_absent(self):
        machine = self.machine()
        machine.policy = (2000000, 4000000 * 3)
        out = self.look_json(machine, lambda: None, "power", "--as", "XP SP3", "-C", "0")
        got = {row["name"]: row for row in out["processors"][0]["members"]}
        self.assertIsNone(got["ThermalThrottleLimit"]["value"])
        self.assertIn("does not fit", got["ThermalThrottleLimit"]["reason"])

    def test_a_boost_is_not_throttled(self):
        """cpuinfo_max_freq leaves boosts out on some machines: nothing is above the highest."""
        machine = self.machine()
        machine[0].khz = 4700000
        row = self.look_json(machine, lambda: None, "power")["processors"][0]
        self.assertEqual((row["mhz"], row["max_mhz"], row["throttle_permille"]), (4700, 4000, 1000))
        self.assertEqual(row["performance_permille"], 1880)

    def test_offline_is_parked(self):
        machine = self.machine(processors=1, possible=2)
        out = self.look_json(machine, lambda: None, "power")
        row = out["processors"][1]
        self.assertEqual([row["online"], row["parked"]], [False, True])
        self.assertEqual({key for key in KEYS if row[key] is None} - {"performance_source"},
                         set(row["absent"]))
        self.assertIsNone(row["idle_ns"])
        out = self.look_json(machine, lambda: None, "power", "--as", "6.2", "-C", "1")
        got = {row["name"]: row for row in out["processors"][0]["members"]}
        self.assertEqual(got["Parked"]["value"], 1)
        self.assertIn("offline", got["IdleTimeTotal"]["reason"])

    def test_256_processors(self):
        machine = self.machine(processors=256, states=["C1"])

        def change():
            for number in range(256):
                machine[number].idle += number + 1
        data = self.look(machine, change, "power", "--as", "10.0.19041", "--arch", "x64", "--raw",
                         text=False)
        self.assertEqual(len(data), 256 * 0x200)
        for number in (0, 1, 100, 255):
            total = int.from_bytes(data[number * 0x200 + 0x18:number * 0x200 + 0x20], "little")
            self.assertEqual(total, (number + 1) * 100000)


class RoundTrip(Case):
    """The bytes, decoded by `prcb layout`, are the values of the members."""

    def decode(self, data, version, arch):
        result = subprocess.run([PRCB, "layout", "PROCESSOR_POWER_STATE",
                                 "--version", version, "--arch", arch, "--decode", "-"],
                                input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                timeout=TIMEOUT, check=True)
        values = {}
        for line in result.stdout.decode().splitlines():
            offset, name, value = line.split()[:3]
            values[name] = (int(offset, 0), int(value, 0) if re.fullmatch(r"-?\d+|0x[0-9a-f]+",
                                                                          value) else value)
        return values

    @staticmethod
    def work(machine):
        machine[0].idle += 70
        machine[0].system += 30
        for index, state in enumerate(machine[0].states):
            state.usage += 11 + index
            state.time += 100000 + index

    def machine(self):
        return Machine(self.folder.name, processors=1, states=["POLL", "C1", "C6"],
                       khz=(1000000, 2000000, 3000000), thermal=True)

    def test_every_version(self):
        machine = self.machine()
        seen = set()
        for version, arch in versions():
            out = self.look_json(machine, lambda: self.work(machine), "power", "--as", version,
                                 "--arch", arch)
            row = out["processors"][0]
            with self.subTest(version=version, arch=arch):
                # a build without its revision means the last one known
                self.assertTrue(out["version"].startswith(version), out["version"])
                self.assertEqual([out["struct"], out["arch"]], ["PROCESSOR_POWER_STATE", arch])
                self.assertEqual(list(row), ["number", "online", "members", "bytes"])
                self.assertEqual(out["size"], size(version, arch))
                data = bytes.fromhex(row["bytes"])
                self.assertEqual(len(data), out["size"])
                self.compare(row["members"], self.decode(data, version, arch))
                seen |= {member["name"] for member in row["members"]}
        self.check_rows(seen)

    def compare(self, members, decoded):
        self.assertEqual([row["name"] for row in members], list(decoded))
        for row in members:
            self.assertEqual(row["offset"], decoded[row["name"]][0])
            if row["name"].startswith("Flags.PState"):
                self.assertEqual(row.pop("bits"), [row["name"].endswith("Accounting"), 1])
            row.pop("bits", None)
            self.assertNotIn("nothing is known", row.get("reason", ""))
            if row["value"] is None:
                self.assertEqual(list(row), MEMBER_KEYS + ["reason"])
            else:
                self.assertEqual(list(row), MEMBER_KEYS + ["source"])
                self.assertEqual(row["value"], decoded[row["name"]][1], row["name"])
        filled = {row["name"]: row["value"] for row in members if row["value"]}
        self.assertGreater(len(filled), 1)
        if "IdleTimeTotal" in decoded:
            self.assertEqual(filled["IdleTimeTotal"], 7000000)
        if "LastBusyPercentage" in decoded:
            self.assertEqual(filled["LastBusyPercentage"], 30)

    def test_raw_is_the_same(self):
        machine = self.machine()
        for version in ("5.0", "6.0.6000", "6.3.9600", "10.0.26100"):
            args = ("power", "--as", version)
            out = self.look_json(machine, lambda: self.work(machine), *args)
            raw = self.look(machine, lambda: self.work(machine), *args, "--raw", text=False)
            self.assertEqual(raw.hex(), out["processors"][0]["bytes"])

    def check_rows(self, seen):
        """Each row of the table is of use in some version."""
        for name in table():
            fits = [leaf for leaf in seen if leaf == name or
                    (leaf.startswith(name) and (name.endswith(".") or leaf[len(name)] == "["))]
            self.assertTrue(fits, "%s is in no version" % name)

    def test_live(self):
        for tier in ("perf",) if BPF_REASON else ("perf", "bpf"):
            with self.subTest(tier=tier):
                raw = power("--tier", tier, "--as", "10.0.26100", "--raw", "-C", "0", "0.2",
                            text=False).stdout
                decoded = self.decode(raw, "10.0.26100", "x64")
                total, idle = decoded["TotalTime"][1], decoded["IdleTimeTotal"][1]
                # each was cut to 100 ns on its own
                self.assertIn(total - idle - decoded["ActiveTime"][1], (0, 1))
                # 200 ms and no less; ticks may be lost on a busy host
                self.assertGreaterEqual(total, 2000000 if tier == "bpf" else 1000000)
                self.assertEqual(decoded["Parked"][1], 0)


class Arguments(Case):
    def test_bad(self):
        for args, word in [
                (["--as", "nonsense"], "nonsense"), (["--as", "5.1"], "5.1"), (["--as", ""], "--as"),
                (["--as", "6.1", "--arch", "arm"], "arm"), (["--arch", "x64"], "--as"),
                (["--raw"], "--as"), (["--as", "6.1", "--raw", "-j"], "--raw"), (["0"], "'0'"),
                (["1", "1"], "'1'"), (["-1"], "-1"), (["-C", "99999"], "0 to"),
                (["-C", ""], "''"), (["--as", "XP SP2", "--arch", "x64"], "x64"),
                (["--nonsense"], "--nonsense"), (["--as"], "--as")]:
            with self.subTest(args=args):
                self.assert_fails(power(*args), 2, "power", word)

    def test_x86_where_there_is_no_x64(self):
        result = power("--as", "XP SP2", "-j", "0.01")
        self.assertEqual(json.loads(result.stdout)["arch"], "x86")

    def test_what_was_assumed_is_said(self):
        result = power("--as", "1909", "0.01")
        self.assertEqual(result.returncode, 0)
        self.assertTrue(result.stderr.startswith("prcb power: "))

    def test_bytes_are_not_for_a_terminal(self):
        leader, follower = os.openpty()
        try:
            result = power("--as", "6.1", "--raw", stdout=follower, text=True)
        finally:
            os.close(leader)
            os.close(follower)
        self.assertEqual(result.returncode, 2)
        self.assertIn("terminal", result.stderr)


class Live(Case):
    def test_schema(self):
        for tier in ("perf",) if BPF_REASON else ("perf", "bpf"):
            out = json.loads(power("--tier", tier, "-j", "0.1").stdout)
            self.assertEqual(out["tier"], tier)
            for row in out["processors"]:
                self.assertEqual(list(row), KEYS)
                self.assertEqual({key for key in row["absent"]} - {"performance_source"},
                                 {key for key in KEYS if row[key] is None} - {"performance_source"})

    def test_interrupted(self):
        process = self.start("power", "1000")
        wait_until_asleep(process)
        out = self.end(process)
        self.assertIn("parked", out)

    def test_full_device(self):
        with open("/dev/full", "w") as full:
            result = power("0.01", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)

    @needs_root
    def test_as_nobody(self):
        nobody = pwd.getpwnam("nobody")
        result = power("0.05", user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("perf tier", result.stdout.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
