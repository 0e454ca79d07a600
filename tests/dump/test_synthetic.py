# SPDX-License-Identifier: BSD-2-Clause
"""Dumps written by mkdump.py: every container, every version, and the search for layouts."""
import os
import re
import struct
import unittest

import mkdump
from common import DumpTest, SOURCE, run

CONTAINERS_64 = ("triage64", "full64", "bitmap-full64", "bitmap-kernel64", "kernel64",
                 "ranges-kernel64", "ranges-active64", "ranges-full64")
CONTAINERS_32 = ("triage32", "full32", "bitmap-full32", "bitmap-kernel32", "kernel32")
TIMES = """
processors = 3
crashing = 1
uptime = 10000000000
cpu.*.InterruptCount = 123456
cpu.*.KernelTime = 60000
cpu.*.UserTime = 4000
cpu.*.DpcTime = 12
cpu.*.InterruptTime = 7
cpu.1.UserTime = 3990
"""


def versions():
    """(name, build, archs) of the rows of versions.def."""
    path = os.path.join(SOURCE, "src", "windows", "layout", "catalog", "versions.def")
    row = re.compile(r'^[VL]\(\w+,\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+),\s*(\w+),\s*"([^"]+)"', re.M)
    with open(path) as file:
        return [(m[5], int(m[2]), m[4]) for m in row.findall(file.read())]


class Releases(unittest.TestCase):
    def test_every_version_is_of_a_release(self):
        """R rows have each build that V and SAME rows name, by a name that agrees."""
        with open(os.path.join(SOURCE, "src/windows/layout/catalog/versions.def")) as file:
            text = file.read()
        sold = {build: [w for w in (workstation, server) if w] for build, workstation, server in re.findall(
            r'(?m)^R\((\d+),\s*(?:NULL|"([^"]+)"),\s*(?:NULL|"([^"]+)")\)', text)}
        read = re.findall(r'(?m)^[VL]\(\w+,\s*\d+,\s*\d+,\s*(\d+),.*"([^"]+)"\)', text)
        same = re.findall(r"(?m)^SAME\((\d+),", text)
        self.assertGreater(len(read), 50)
        self.assertLessEqual({build for build, _ in read} | set(same), set(sold))
        for build, release in read:
            with self.subTest(release):
                self.assertTrue(any(release.startswith(name) or name.startswith(release)
                                    for name in sold[build]))


class Containers(DumpTest):
    def check(self, data, container, machine):
        self.assertEqual((data["container"], data["machine"]), (container, machine))
        self.assertEqual([p["number"] for p in data["processors"]], [0, 1, 2])
        self.assertEqual([p["crashing"] for p in data["processors"]], [False, True, False])
        for p in data["processors"]:
            self.assertEqual([p[n] for n in ("InterruptCount", "KernelTime", "DpcTime",
                                             "InterruptTime", "MHz", "vendor")],
                             [123456, 60000, 12, 7, 2000, "GenuineIntel"])
            self.assertEqual(p["UserTime"], 3990 if p["number"] == 1 else 4000)
            self.assertTrue(p["power_state"]["landmark"])

    def test_64(self):
        for container in CONTAINERS_64:
            for paging in ("x64", "x64-5"):
                for large in (0, 1):
                    if container.startswith("triage") and (large or paging != "x64"):
                        continue
                    with self.subTest(container, paging=paging, large=large):
                        self.check(self.make(TIMES + "container = %s\nversion = 10.0.22621\n"
                                             "paging = %s\nlarge = %d" %
                                             (container, paging, large)), container, "x64")

    def test_32(self):
        for container in CONTAINERS_32:
            for paging in ("x86", "pae"):
                for large in (0, 1):
                    if container.startswith("triage") and (large or paging != "x86"):
                        continue
                    with self.subTest(container, paging=paging, large=large):
                        self.check(self.make(TIMES + "container = %s\nversion = 6.1.7601\n"
                                             "paging = %s\nlarge = %d" %
                                             (container, paging, large)), container, "x86")

    def test_header_fields_stand_where_other_readers_have_them(self):
        """Offsets of the published headers, written here a second time, apart from mkdump."""
        for container, word, fields in (
                ("full64", "<Q", {0x10: 8, 0x20: 8, 0x80: 8}), ("full32", "<I", {0x10: 4})):
            raw = mkdump.make("container = %s\nversion = 10.0.19041\nbugcheck = 0x133\n"
                              "parameter.1 = 1\nparameter.2 = 0x1e00" % container)
            code, param = (0x38, 0x40) if container == "full64" else (0x28, 0x2c)
            self.assertEqual(struct.unpack_from("<I", raw, code)[0], 0x133)
            self.assertEqual(struct.unpack_from(word, raw, param)[0], 1)
            for offset in fields:
                self.assertNotEqual(struct.unpack_from(word, raw, offset)[0], 0)

    def test_sparse_bits_beyond_the_last_page(self):
        data = self.make(TIMES + "container = bitmap-full64\nversion = 10.0.19041\n"
                         "bits = 0x1000007")
        self.check(data, "bitmap-full64", "x64")

    def test_pages_that_are_not_there(self):
        times = mkdump.layout("KPRCB", "10.0.19041", "x64")["KernelTime"][0] + 0x180
        for kind, words in (("transition", "transition"), ("prototype", "prototype"),
                            ("absent", "not in memory"), ("missing", "left out")):
            with self.subTest(kind):
                path = self.write(TIMES + "container = full64\nversion = 10.0.19041\n"
                                  "entry.1.%d = %s" % (times // 4096, kind))
                p = self.read(path)["processors"]
                self.assertEqual([x["KernelTime"] for x in p], [60000, None, 60000])
                self.assertEqual([x["MHz"] for x in p], [2000] * 3)
                done = run("--cpu", "1", path)
                line, = [x for x in done.stdout.decode().splitlines() if " KernelTime " in x]
                self.assertIn("not in this dump", line)
                self.assertIn(words, line)


class Versions(DumpTest):
    @classmethod
    def setUpClass(cls):
        mkdump.know_all("KPRCB", "KTHREAD", "PROCESSOR_POWER_STATE")

    def test_every_version_with_a_kprcb(self):
        made = []
        for name, build, archs in versions():
            for arch in ("x86", "x64"):
                if archs not in ("ANY", arch.upper()) or not mkdump.layout("KPRCB", name, arch):
                    continue
                text = TIMES + "container = %s\nversion = %s\nbuild = %d\n" % (
                    "triage64" if arch == "x64" else "triage32", name, build)
                if "IdleTimeTotal" in mkdump.layout("PROCESSOR_POWER_STATE", name, arch):
                    text += "cpu.*.PowerState.IdleTimeTotal = 987654"
                made.append((name, arch, self.write(text, "%s-%s.dmp" % (name, arch))))
        for (name, arch, _), data in zip(made, self.read_all([path for _, _, path in made])):
            with self.subTest(name, arch=arch):
                for p in data["processors"]:
                    self.assertEqual(p["KernelTime"], 60000)
                    self.assertEqual(p["found_by"]["KernelTime"], "catalog")
                    self.assertEqual(p["power_state"]["found_by"], "catalog")
                    self.assertTrue(p["power_state"]["landmark"])
                    self.assertIn(p["IdleTimeTotal"], (987654, None))
                self.no_note(data, "disagree;")
        self.assertGreater(len(made), 60)

    def test_every_version_has_a_release_name(self):
        made = []
        for name, build, archs in versions():
            container = "triage32" if archs != "X64" else "triage64"
            arch = "x86" if archs != "X64" else "x64"
            if mkdump.layout("KPRCB", name, arch):
                made.append((name, self.write("container = %s\nversion = %s\nbuild = %d" %
                                              (container, name, build), name + ".dmp")))
        for (name, _), data in zip(made, self.read_all([path for _, path in made])):
            self.assertIsNotNone(data["release"], name)

    def test_kprcb_of_2000_and_first_xp_is_not_known(self):
        """XP before SP2 has SP2's build number; no name of a processor is where SP2 has one."""
        for build, release in ((2195, "Windows 2000 or Windows 2000 Server"),
                               (2600, "Windows XP")):
            data = self.make("container = triage32\nversion = none\nbuild = %d\nsize = 0xc00\n"
                             "kdbg = short\nprocessors = 1" % build)
            self.note(data, "KPRCB layout of build %d (%s) is not known" % (build, release))
            self.assertEqual((data["release"], data["layout"]), (release, None))
            p, = data["processors"]
            for name in ("KernelTime", "InterruptCount", "MHz", "vendor", "power_state"):
                self.assertIsNone(p[name], name)

    def test_servicing_is_told_apart_by_the_debugger_data(self):
        """6.1.7601 and 14393 moved members within one build number."""
        for name, build in (("6.1.7601", 7601), ("6.1.7601.24540", 7601),
                            ("10.0.14393", 14393), ("10.0.14393.6343", 14393)):
            for kdbg in ("plain", "none"):  # without them the landmark has to tell
                with self.subTest(name, kdbg=kdbg):
                    data = self.make(TIMES + "container = triage64\nversion = %s\nbuild = %d\n"
                                     "kdbg = %s" % (name, build, kdbg))
                    crashing, = [p for p in data["processors"] if p["crashing"]]
                    if name.startswith("6.1"):
                        self.assertEqual(crashing["KernelTime"], 60000)
                    self.assertEqual(crashing["power_state"]["offset"],
                                     mkdump.layout("KPRCB", name, "x64")["PowerState"][0])

    def test_build_between_two_known(self):
        """25398 is not in the catalog; a KPRCB like 22631's bears that layout out."""
        data = self.make(TIMES + "container = triage64\nversion = 10.0.22631\nbuild = 25398")
        self.note(data, "build 25398 is not in the catalog", "10.0.22631", "bear out")
        self.assertEqual(data["processors"][0]["KernelTime"], 60000)

    def test_unknown_build_gives_what_landmarks_give(self):
        text = ("container = triage64\nversion = none\nbuild = 30000\nsize = 0x9000\n"
                "uptime = 10000000000\nprocessors = 3\nkdpc = 0x4118\nkdbg.MHz = 0x64\n"
                "raw.*.0x64.4 = 3100\nraw.*.0x2000.4 = 70000\nraw.*.0x2004.4 = 60000\n"
                "raw.*.0x2008.4 = 4000\nraw.*.0x200c.4 = 5\nraw.*.0x2010.4 = 6\n"
                "raw.*.0x4018.8 = 5555")
        data = self.make(text)
        self.note(data, "build 30000", "not known")
        self.assertIsNone(data["layout"])
        self.assertEqual(len(data["processors"]), 3)
        for p in data["processors"]:
            self.assertEqual([p[n] for n in ("InterruptCount", "KernelTime", "UserTime", "DpcTime",
                                             "InterruptTime", "MHz", "IdleTimeTotal")],
                             [70000, 60000, 4000, 5, 6, 3100, 5555])
            self.assertEqual(p["power_state"]["found_by"], "landmark")
            self.assertEqual(p["power_state"]["offset"], 0x4000)
            self.assertIsNone(p["KeContextSwitches"])

    def test_encoded_debugger_data_are_named(self):
        data = self.make(TIMES + "container = full64\nversion = 10.0.19041\nkdbg = encoded")
        self.note(data, "KDBG", "encoded")
        self.assertEqual(data["processors"], [])
        data = self.make(TIMES + "container = triage64\nversion = 10.0.19041\nkdbg = encoded")
        self.note(data, "KDBG", "encoded")
        self.assertEqual(len(data["processors"]), 3)  # by their own addresses

    def test_processors_without_debugger_data(self):
        data = self.make(TIMES + "container = triage64\nversion = 10.0.19041\nkdbg = none")
        self.assertEqual([p["number"] for p in data["processors"]], [0, 1, 2])
        self.assertEqual([p["KernelTime"] for p in data["processors"]], [60000] * 3)

    def test_only_the_copy(self):
        data = self.make(TIMES + "container = triage64\nversion = 10.0.26100\nblocks = none")
        p, = data["processors"]
        self.assertEqual((p["number"], p["crashing"], p["UserTime"]), (1, True, 3990))
        self.assertEqual(int(p["kprcb"], 16), 0xfffff80010020180)
        self.note(data, "1 of 3 processors")

    def test_copy_without_landmark_has_no_address(self):
        data = self.make(TIMES + "container = triage64\nversion = 10.0.19041\nblocks = none\n"
                         "landmark = 0")
        p, = data["processors"]
        self.assertIsNone(p["kprcb"])
        self.assertEqual(p["UserTime"], 3990)


class Inferred(DumpTest):
    def test_what_nobody_read_is_said(self):
        """KTHREAD of 10.0.22631, whose KPRCB was read."""
        path = self.write(TIMES + "container = triage64\nversion = 10.0.22631\n")
        self.note(self.read(path), "KTHREAD was not read in 10.0.22631", "inferred")
        text = run("--struct", "KTHREAD", path).stdout.decode()
        self.assertIn("layout 10.0.22631 (inferred), found by catalog", text)
        for name, source in (("KTHREAD", "inferred"), ("KPRCB", None)):
            data = self.read(path, "--cpu", "1", "--struct", name)
            self.assertEqual([p["structure"]["source"] for p in data["processors"] if "structure" in p], [source])
        self.no_note(self.make(TIMES + "container = triage64\nversion = 10.0.19041\n"), "inferred")


class Arm64(DumpTest):
    """10.0.26100 on arm64: offsets of the published header, written here a second time."""
    TEXT = """
container = triage64
machine = arm64
build = 26100
processors = 3
size = 0x9f00
kdpc = 0x1508
uptime = 10000000000
kdbg.MHz = 0x774
raw.*.0x774.4 = 2000
raw.*.0x18.8 = 0xffffe00000001000
raw.*.0xf80.4 = 123456
raw.*.0xf84.4 = 60000
raw.*.0xf88.4 = 4000
raw.*.0xf8c.4 = 12
raw.*.0xf90.4 = 7
raw.*.0xabc.4 = 5001
raw.*.0xb34.4 = 33
raw.*.0xc68.4 = 7680
raw.*.0x1418.8 = 987654
raw.2.0x158e.2 = 71
raw.2.0x15ac.1 = 1
"""

    def test_times_and_power_state_are_the_catalogs(self):
        data = self.make(self.TEXT)
        self.assertEqual((data["machine"], data["layout"]), ("arm64", "10.0.26100"))
        self.no_note(data, "landmark")
        for p in data["processors"]:
            self.assertEqual([p[n] for n in ("InterruptCount", "KernelTime", "UserTime", "DpcTime",
                                             "InterruptTime", "KeContextSwitches", "DpcCount", "MHz",
                                             "DpcWatchdogPeriod", "IdleTimeTotal", "Parked")],
                             [123456, 60000, 4000, 12, 7, 5001, 33, 2000, 7680, 987654,
                              int(p["number"] == 2)])
            self.assertEqual((p["found_by"]["KernelTime"], p["found_by"]["Parked"]), ("catalog", "catalog"))
            self.assertEqual((p["power_state"]["offset"], p["power_state"]["found_by"],
                              p["power_state"]["landmark"]), (0x1400, "catalog", True))
        self.assertEqual(data["processors"][2]["AveragePerformancePercent"], 71)

    def test_another_kernel_of_that_build_is_not_taken_for_it(self):
        data = self.make(self.TEXT.replace("size = 0x9f00", "size = 0x9f40"))
        self.note(data, "no layouts are known for this build on arm64")
        self.assertIsNone(data["layout"])
        self.assertEqual(data["processors"][0]["found_by"]["KernelTime"], "landmark")
        text = self.TEXT.replace("0x1508", "0x1548")
        self.note(self.make(text), "contradicts", "left out")
        pointers = "".join("raw.*.%#x.8 = 0xffffb00000001000\n" % at for at in (0x1440, 0x1448))
        moved = self.make(text + pointers)
        self.note(moved, "at 0x1440", "the landmark is believed")
        self.assertEqual(moved["processors"][0]["found_by"]["KernelTime"], "landmark")
        self.assertIsNone(moved["processors"][2]["Parked"])

    def test_every_member_shows(self):
        done = run("--struct", "PROCESSOR_POWER_STATE", "--cpu", "2", self.write(self.TEXT))
        text = done.stdout.decode()
        self.assertRegex(text, r"Parked +UCHAR +1\b")
        self.assertRegex(text, r"IdleTimeTotal +ULONGLONG +987654\b")
        self.assertNotIn("HvIdleCheck", text)  # x64's alone


class Values(DumpTest):
    def test_notes(self):
        text = ("container = triage64\nversion = 10.0.20348.405\nprocessors = 4\nbugcheck = 0x101\n"
                "parameter.3 = 0xfffff80010040180\nuptime = 20000000000\ncpu.*.KernelTime = 60000\n"
                "cpu.*.UserTime = 4000\ncpu.2.UserTime = 3000\ncpu.3.PowerState.Parked = 1\n"
                "cpu.1.DpcTimeCount = 1280\ncpu.*.DpcTimeLimitTicks = 1280\n")
        data = self.make(text)
        self.assertIn("parameter 3", self.note(data, "processor 2 is 15.62 s behind",
                                               "63000 of 64000"))
        self.note(data, "1 of 4 processors was parked: 3")
        self.assertIn("1000.00 s passed without ticks", self.note(data, "slept", "2000.00 s"))
        self.note(data, "assumed", "156250")
        self.note(data, "processor 1", "1280 of", "1280 ticks")

    def test_dpc_watchdog(self):
        at = mkdump.layout("KPRCB", "10.0.19041", "x64")["InterruptCount"][0] - 0x298
        text = ("container = triage64\nversion = 10.0.19041\nprocessors = 2\nuptime = 10000000000\n"
                "cpu.*.KernelTime = 64000\nraw.*.0x%x.4 = 7680\nraw.1.0x%x.4 = %d")
        data = self.make(text % (at, at + 4, 7680))
        self.note(data, "processor 1", "DpcWatchdogCount 7680 of DpcWatchdogPeriod 7680")
        self.assertEqual(data["processors"][1]["found_by"]["DpcWatchdogCount"], "landmark")
        self.no_note(self.make(text % (at, at + 4, 7679)), "DpcWatchdogCount")

    def test_increment(self):
        text = TIMES + "container = triage64\nversion = 10.0.19041\n"
        data = self.make(text + "increment = 156001")
        self.assertEqual((data["time_increment_100ns"], data["time_increment_from"]),
                         (156001, "dump"))
        self.no_note(data, "tick is not in this dump")
        data = self.make(text, "--time-increment", "100000")
        self.assertEqual((data["time_increment_100ns"], data["time_increment_from"]),
                         (100000, "option"))
        self.assertEqual(self.make(text + "increment = 0")["time_increment_from"], "assumed")

    def test_frequency(self):
        text = TIMES + "container = triage64\nversion = 10.0.19041\n"
        self.assertEqual(self.make(text)["qpc_hz"], 10000000)
        data = self.make(text + "cpu.0.PowerState.IdleTimeTotal = 20000000000")
        self.assertIsNone(data["qpc_hz"])  # 2000 s idle of 1000 s up: not its unit
        self.note(data, "IdleTimeTotal", "2000.0 s", "1000.0 s")
        self.assertIsNone(self.make(TIMES + "container = triage64\nversion = 6.1.7601")["qpc_hz"])
        self.assertEqual(self.make(text, "--qpc-frequency", "3579545")["qpc_hz"], 3579545)

    def test_idle_thread_and_wait_reason(self):
        data = self.make(TIMES + "container = triage64\nversion = 6.3.9600\n"
                         "idle.0.KernelTime = 50000\nthread.1.WaitReason = 5\nthread.1.State = 5\n"
                         "thread.1.CycleTime = 0x123456789\nthread.1.ContextSwitches = 4321")
        self.assertEqual([p["IdleTime"] for p in data["processors"]], [50000, 0, 0])
        thread = data["processors"][1]["thread"]
        self.assertEqual((thread["WaitReasonName"], thread["StateName"], thread["CycleTime"],
                          thread["ContextSwitches"]), ("Suspended", "Waiting", 0x123456789, 4321))

    def test_profile_control_area_body(self):
        path = self.write(TIMES + "container = triage64\nversion = 10.0.17763\n"
                          "area.1.0x60 = 0x11")
        data = self.read(path, "--struct", "PROCESSOR_PROFILE_CONTROL_AREA", "--cpu", "1")
        structure = data["processors"][0]["structure"]
        self.assertEqual(structure["address"], "0xffffb00000001000")
        self.assertTrue(structure["members"])
        for value in structure["members"].values():
            self.assertIn(value, (0x1111111111111111, "0x1111111111111111", 0x11111111))
        done = run("--struct", "PROCESSOR_PROFILE_CONTROL_AREA", "--cpu", "0", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"NULL", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
