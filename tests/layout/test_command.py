#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb layout: what it prints, refuses and suggests; bytes to JSON and back."""
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

PRCB = os.environ["PRCB"]


def prcb(*arguments, data=None):
    return subprocess.run([PRCB, "layout", *arguments], input=data, capture_output=True,
                          timeout=60)


def text(*arguments):
    out = prcb(*arguments)
    assert out.returncode == 0, out.stderr
    return out.stdout.decode()


def document(*arguments):
    return json.loads(text(*arguments))


class Printing(unittest.TestCase):
    def test_list(self):
        out = text()
        self.assertIn("PROCESSOR_POWER_STATE", out)
        self.assertIn("Windows 11 24H2", out)

    def test_definition(self):
        out = text("PROCESSOR_POWER_STATE", "--version", "early 6.0", "--arch", "x86")
        self.assertIn("/* 0x004 */ PPM_IDLE_STATES *IdleStates;", out)
        self.assertIn("typedef VOID (FASTCALL *PPROCESSOR_IDLE_FUNCTION)"
                      "(PROCESSOR_POWER_STATE *);", out)

    def test_function_types(self):
        types = {"PPROCESSOR_IDLE_FUNCTION": ("VOID", "PROCESSOR_POWER_STATE *", "analyst"),
                 "PSET_PROCESSOR_THROTTLE": ("NTSTATUS", "UCHAR", "symbols")}
        listed = {f["name"]: f for f in document("-j")["functions"]}
        self.assertEqual(set(listed), set(types))
        for name, (returns, parameters, source) in types.items():
            typedef = f"typedef {returns} (FASTCALL *{name})({parameters});\n"
            self.assertEqual(text(name), typedef)
            self.assertIn("  " + typedef, text())
            self.assertEqual(listed[name], {"name": name, "returns": returns, "source": source,
                                            "convention": "FASTCALL", "parameters": parameters})

    def test_options_and_structure_in_any_order(self):
        wanted = text("KDPC", "--version", "6.1")
        self.assertEqual(text("--version", "6.1", "KDPC"), wanted)
        self.assertEqual(text("--version=6.1", "_KDPC", "--arch", "amd64"), wanted)

    def test_json_has_the_promised_keys(self):
        out = document("PROCESSOR_POWER_STATE", "--version", "Vista SP2", "-j")
        self.assertEqual(list(out), ["format", "format_version", "struct", "version", "arch", "size", "source", "members"])
        self.assertEqual(out["size"], 0x118)
        members = {member["name"]: member for member in out["members"]}
        self.assertEqual(members["Flags.Reserved"], {"name": "Flags.Reserved", "offset": 0x4A,
                                                     "type": "USHORT", "size": 2,
                                                     "bits": [2, 14]})
        self.assertNotIn("bits", members["IdleStates"])

    def test_partial_is_marked(self):
        self.assertTrue(document("KPRCB", "--version", "6.1", "-j")["partial"])
        self.assertIn("of which some are listed", text("KPRCB", "--version", "6.1"))

    def test_without_version_the_newest(self):
        self.assertEqual(document("PPM_PERF_STATES", "-j")["version"], "6.1.7601.24540")

    def test_without_arch_x64_where_there_is_one(self):
        self.assertEqual(document("KDPC", "--version", "XP SP3", "-j")["arch"], "x86")
        self.assertEqual(document("KDPC", "--version", "6.1", "-j")["arch"], "x64")


class Saying(unittest.TestCase):
    def assert_said(self, words, *arguments):
        out = prcb(*arguments)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn(words, out.stderr.decode())

    def assert_refused(self, words, *arguments, status=1):
        out = prcb(*arguments)
        self.assertEqual(out.returncode, status, out.stdout)
        self.assertEqual(out.stdout, b"")
        self.assertIn(words, out.stderr.decode())

    def test_assumptions(self):
        self.assert_said("last revision known", "KDPC", "--version", "6.1")
        self.assert_said("inferred", "KDPC", "--version", "10.0.17000")
        self.assert_said("past 10.0.26100", "KDPC", "--version", "10.0.30000")
        self.assertEqual(prcb("KDPC", "--version", "6.1.7601.24540").stderr, b"")

    def test_near_names(self):
        self.assert_refused("PROCESSOR_POWER_STATE", "PROCESSOR_POWER_STAT")
        self.assert_refused("PROC_FEEDBACK", "proc_fedback")

    def test_choices(self):
        for version in "5.1", "5.2", "6.0", "21H2", "22H2", "Windows 10", "Windows 11", "win10":
            self.assert_refused("fits several layouts", "KDPC", "--version", version)
        self.assert_refused("Windows 10 22H2", "KDPC", "--version", "22H2")

    def test_names(self):
        for name, version in (("25H2", "10.0.26100"), ("Server 23H2", "10.0.22631"),
                              ("Win10 1809", "10.0.17763.5933"), ("WinXP SP3", "5.1.2600 SP3"),
                              ("Server 2003 x64", "5.2.3790 SP1"), ("LTSB 2016", "10.0.14393.6343"),
                              ("Windows 10 Enterprise LTSC 2019", "10.0.17763.5933"),
                              ("Windows 10 IoT Enterprise LTSC 2021", "10.0.19041.3570"),
                              ("Windows 11 LTSC 2024", "10.0.26100")):
            self.assertEqual(document("PROCESSOR_POWER_STATE", "--version", name, "--arch",
                                      "x86" if "XP" in name else "x64", "-j")["version"], version)

    def test_releases_without_32_bits(self):
        for version in ("11 22H2", "Server 2022", "10.0.22000", "10.0.26100", "26200", "25H2",
                        "Server 2008 R2", "Server 2012 R2", "2019", "XP x64"):
            self.assert_refused("64-bit", "KDPC", "--version", version, "--arch", "x86")
        for version in "Windows 10 22H2", "10.0.19045", "Windows 7", "8.1", "Server 2008":
            self.assertEqual(document("KDPC", "--version", version, "--arch", "x86", "-j")["arch"],
                             "x86")

    def test_wrong_command_lines(self):
        self.assert_refused("--frob", "--frob", status=2)
        self.assert_refused("arm64", "KDPC", "--arch", "arm64", status=2)
        self.assert_refused("which structure", "--header", status=2)
        self.assert_refused("needs two versions", "KDPC", "--diff", "6.1", status=2)
        self.assert_refused("one structure", "KDPC", "KTIMER", status=2)
        self.assert_refused("give one of", "KDPC", "--header", "--isf", status=2)


class Comparing(unittest.TestCase):
    def changes(self, *arguments):
        out = document("PROCESSOR_POWER_STATE", "--diff", *arguments, "-j")
        return {(change["change"], change["name"]) for change in out["changes"]}

    def test_diff(self):
        changes = self.changes("6.1", "6.2")
        self.assertIn(("moved", "IdleAccounting"), changes)
        self.assertIn(("removed", "IdleCheck"), changes)
        self.assertIn(("added", "HvIdleCheck"), changes)
        self.assertIn(("resized", "PerfCheck"), changes)
        self.assertIn(("retyped", "PerfHistory"), changes)
        self.assertEqual(self.changes("10.0.18362.30", "10.0.18362.295"),
                         {("renamed", "SoftParked")})
        self.assertEqual(self.changes("6.1", "6.1"), set())

    def test_diff_renamed(self):
        out = document("PROCESSOR_POWER_STATE", "--diff", "10.0.18362.30", "10.0.18362.295", "-j")
        self.assertEqual(out["changes"], [
            {"change": "renamed", "name": "SoftParked", "old_name": "Reserved",
             "from": {"offset": 0x33, "type": "UCHAR", "size": 1},
             "to": {"offset": 0x33, "type": "UCHAR", "size": 1}}])
        self.assertIn("renamed  Reserved -> SoftParked", text(
            "PROCESSOR_POWER_STATE", "--diff", "10.0.18362.30", "10.0.18362.295"))

    def test_diff_follows_nested_members(self):
        """KDPC changed in 6.3; it lies in PROCESSOR_POWER_STATE, which lies in KPRCB."""
        out = document("PROCESSOR_POWER_STATE", "--diff", "6.2", "6.3", "-j")
        changes = {(c["change"], c["name"]): c for c in out["changes"]}
        change = changes["retyped", "PerfActionDpc.DpcListEntry"]
        self.assertEqual(change["to"]["offset"], 0xE8 + 8)
        self.assertIn(("added", "PerfActionDpc.ProcessorHistory"), changes)
        names = {c["name"] for c in document("KPRCB", "--diff", "6.2", "6.3", "-j")["changes"]}
        self.assertIn("PowerState.PerfActionDpc.DpcListEntry", names)
        self.assertIn("DpcData[].ActiveDpc", names)

    def test_diff_of_bits(self):
        out = document("PPM_PERF_STATES", "--diff", "Vista SP2", "6.1", "-j")
        self.assertIn({"change": "moved", "name": "Flags.IncreasePolicy",
                       "from": {"offset": 44, "type": "ULONG", "size": 4, "bits": [2, 2]},
                       "to": {"offset": 44, "type": "ULONG", "size": 4, "bits": [0, 2]}},
                      out["changes"])


class Isf(unittest.TestCase):
    def test_types_resolve(self):
        out = document("KPRCB", "--version", "Vista SP1", "--isf")
        for part in "metadata", "base_types", "user_types", "enums", "symbols":
            self.assertIn(part, out)
        named = {"struct": out["user_types"], "union": out["user_types"],
                 "base": out["base_types"], "enum": out["enums"]}

        def check(kind):
            if kind["kind"] in named:
                self.assertIn(kind["name"], named[kind["kind"]])
            for below in "subtype", "type":
                if below in kind:
                    check(kind[below])

        for name, structure in out["user_types"].items():
            for field in structure["fields"].values():
                check(field["type"])
                self.assertLess(field["offset"], structure["size"], name)
        power = out["user_types"]["_PROCESSOR_POWER_STATE"]
        self.assertEqual(power["fields"]["Flags"]["type"]["kind"], "union")
        bits = out["user_types"]["__unnamed_PROCESSOR_POWER_STATE_Flags"]["fields"]
        self.assertEqual(bits["Reserved"]["type"]["bit_position"], 2)
        self.assertEqual(out["base_types"]["pointer"]["size"], 8)

    def test_kinds_are_those_of_the_format(self):
        area = document("PROCESSOR_PROFILE_CONTROL_AREA", "--version", "1903", "--isf")
        fields = area["user_types"]["_PROCESSOR_PROFILE_CONTROL_AREA"]["fields"]
        self.assertEqual(fields["PebsDsSaveArea"]["type"],
                         {"kind": "union", "name": "_PEBS_DS_SAVE_AREA"})
        state = document("PROCESSOR_POWER_STATE", "--version", "XP SP3", "--isf")
        fields = state["user_types"]["_PROCESSOR_POWER_STATE"]["fields"]
        self.assertEqual(fields["IdleFunction"]["type"],
                         {"kind": "pointer", "subtype": {"kind": "function"}})


class Bytes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.random = random.Random(1)

    def round_trip(self, structure, version, arch):
        size = document(structure, "--version", version, "--arch", arch, "-j")["size"]
        data = self.random.randbytes(size)
        file = self.folder / "bytes"
        file.write_bytes(b"x" * 5 + data + b"y" * 3)
        decoded = text(structure, "--version", version, "--arch", arch, "--decode", str(file),
                       "--offset", "5", "-j")
        out = prcb("--encode", "-", data=decoded.encode())
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(out.stdout, data)
        values = json.loads(decoded)
        del values["bytes"]
        again = prcb("--encode", "-", data=json.dumps(values).encode())
        self.assertEqual(again.returncode, 0, again.stderr)
        return values["values"], again.stdout, data

    def test_round_trip(self):
        for version, arch in ("XP SP3", "x86"), ("6.1", "x64"), ("10.0.20348", "x64"):
            for structure in "PROCESSOR_POWER_STATE", "KDPC", "KTIMER", "KPRCB":
                with self.subTest(structure=structure, version=version):
                    self.round_trip(structure, version, arch)

    def test_every_version(self):
        """Decoded JSON says a version that --encode takes back to the very same layout: all bytes,
        and the values of KPRCB's own members alone. (That each version's name is read back as
        that version, for all of them, is a unit test.)"""
        file = self.folder / "bytes"
        data = self.random.randbytes(0x10000)
        file.write_bytes(data)
        tried = 0
        for layout in (json.loads(line) for line in text("KPRCB", "--all", "-j").splitlines()):
            with self.subTest(version=layout["version"], arch=layout["arch"]):
                decoded = document("KPRCB", "--version", layout["version"], "--arch",
                                   layout["arch"], "--decode", str(file), "-j")
                self.assertEqual(decoded["version"], layout["version"])
                out = prcb("--encode", "-", data=json.dumps(decoded).encode())
                self.assertEqual(out.stdout, data[:layout["size"]])
                del decoded["bytes"]
                out = prcb("--encode", "-", data=json.dumps(decoded).encode()).stdout
                self.assertEqual(len(out), layout["size"])
                for m in layout["members"]:
                    if m["type"] in ("ULONG", "USHORT", "UCHAR", "ULONGLONG", "KTHREAD *"):
                        at = slice(m["offset"], m["offset"] + m["size"])
                        self.assertEqual(out[at], data[at], m["name"])
                tried += 1
        self.assertGreater(tried, 80)

    def test_values_alone_make_the_named_bytes(self):
        values, out, data = self.round_trip("THREAD_PERFORMANCE_DATA", "6.1", "x64")
        self.assertEqual(out, data)  # no padding in this one
        self.assertEqual(len(values["HwCounters"]), 16)
        self.assertEqual(values["ContextSwitches"], int.from_bytes(data[8:12], "little"))

    def test_table_of_values(self):
        data = bytes(range(0x40))
        file = self.folder / "bytes"
        file.write_bytes(data)
        out = text("KDPC", "--version", "6.1", "--decode", str(file))
        self.assertRegex(out, r"0x018 +DeferredRoutine +0x1f1e1d1c1b1a1918\n")
        self.assertRegex(out, r"0x000 +Type +0\n")

    def test_values_in_words_and_hex(self):
        given = {"struct": "PROCESSOR_POWER_STATE", "version": "6.1.7601.24540", "arch": "x64",
                 "values": {"IdleStates": "0xfffff80012345678", "IdleTimeLast": 7,
                            "Hypervisor": "ProcHypervisorPower", "WmiInterfaceEnabled": -1,
                            "PerfActionDpc": {"DeferredContext": "0x10"}, "Load": None}}
        out = prcb("--encode", "-", data=json.dumps(given).encode())
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(out.stdout[:16].hex(), "78563412" "00f8ffff" "0700000000000000")
        self.assertEqual(out.stdout[0x28], 2)
        self.assertEqual(out.stdout[0x40:0x44], b"\xff" * 4)
        self.assertEqual(out.stdout[0x88], 0x10)

    def refused(self, words, *arguments, data=None):
        out = prcb(*arguments, data=data)
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertEqual(out.stdout, b"")
        self.assertIn(words, out.stderr.decode())

    def test_truncated(self):
        self.refused("KDPC.DeferredRoutine at 0x18", "KDPC", "--version", "6.1", "--decode", "-",
                     data=bytes(0x1C))
        self.refused("KDPC.Type at 0x0", "KDPC", "--version", "6.1", "--decode", "-", data=b"")
        self.refused("No such file", "KDPC", "--decode", "/nonexistent")
        for offset in "64", "0x7fffffffffffffff", "0xffffffffffffffff":
            self.refused("KDPC.Type at 0x0", "KDPC", "--version", "6.1", "--decode", "-",
                         "--offset", offset, data=bytes(64))
        self.refused("no members", "PROC_HYPERVISOR_STATE", "--decode", "-", data=bytes(4))

    def test_end_of_a_partial_structure(self):
        """What lies behind the last listed member may be missing."""
        members = document("KPRCB", "--version", "6.1", "-j")["members"]
        data = self.random.randbytes(max(m["offset"] + m["size"] for m in members))
        decoded = prcb("KPRCB", "--version", "6.1", "--decode", "-", "-j", data=data).stdout
        self.assertEqual(prcb("--encode", "-", data=decoded).stdout, data)
        self.refused("KPRCB.", "KPRCB", "--version", "6.1", "--decode", "-", data=data[:-1])

    def test_bad_values(self):
        for values, words in (({"Type": 256}, "KDPC.Type"), ({"Typ": 1}, "Type"),
                              ({"Type": "much"}, "not a value"), ({"Type": {"a": 1}}, "Type"),
                              ({"DpcListEntry": 1}, "no single value"), ({"Type": 1.5}, "Type")):
            with self.subTest(values=values):
                self.refused(words, "KDPC", "--version", "6.1", "--encode", "-",
                             data=json.dumps({"values": values}).encode())
        self.refused("not a JSON object", "KDPC", "--encode", "-", data=b"[1, 2]")
        self.refused("not a JSON object", "KDPC", "--encode", "-", data=b"{")
        for data in b'{"values": {}} {}', b'{"values": {}}\0x', b'{"values": {"Type": 1},}':
            self.refused("not a JSON object", "KDPC", "--encode", "-", data=data)
        self.refused("arm64", "KDPC", "--encode", "-", data=b'{"arch": "arm64", "values": {}}')
        self.refused("in hex", "KDPC", "--encode", "-", data=b'{"bytes": null}')
        self.refused("neither", "KDPC", "--encode", "-", data=b'{"Type": 1}')
        self.refused("in hex", "KDPC", "--encode", "-", data=b'{"bytes": "zz"}')

    def test_ends_of_64_bits(self):
        """Numbers that a 64-bit field does not have are refused, not cut."""
        def encode(member, value):
            return prcb("PROCESSOR_POWER_STATE", "--version", "5.2-late", "--encode", "-",
                        data=json.dumps({"values": {member: value}}).encode())

        for member, value in (("LastCheck", -1), ("PerfCounterFrequency", 2**63)):
            self.assertIn(b"not a value of", encode(member, value).stderr)
        for member, value in (("LastCheck", 2**64 - 1), ("PerfCounterFrequency", -2**63)):
            self.assertIn((value % 2**64).to_bytes(8, "little"), encode(member, value).stdout)

    def test_output_file(self):
        file = self.folder / "out"
        prcb("PROC_IDLE_SNAP", "--encode", "-", "-o", str(file), data=b'{"values": {"Idle": 1}}')
        self.assertEqual(file.read_bytes(), bytes(8) + b"\x01" + bytes(7))


if __name__ == "__main__":
    unittest.main()
