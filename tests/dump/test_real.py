# SPDX-License-Identifier: BSD-2-Clause
"""The five real triage dumps: the values read off them by hand, and the rules they obey."""
import glob
import lzma
import os
import struct
import sys
import unittest

from common import DUMPS, DumpTest

NAMES = ("crashing", "InterruptCount", "KernelTime", "UserTime", "DpcTime", "InterruptTime",
         "IdleTimeTotal")
# machine, build, processors, bug check, uptime in s, vendor, MHz; then the crashing processor
KNOWN = {
    "rizin_triage_x64": ("x64", 19041, 16, 0x1000007e, 3.75, "AuthenticAMD", 3593,
                         (0, 2554, 239, 0, 0, 0, 28484550)),
    "rizin_triage_arm64": ("arm64", 22000, 8, 0x1c8, 796.71, "Qualcomm", 1517,
                           (0, 1362874, 48852, 2137, 548, 418, 12621878857)),
    "ojusha_100623-6156-01": ("x64", 19041, 12, 0x50, 179.00, "GenuineIntel", 2496,
                              (1, 310591, 10398, 1057, 2, 2, 1519009960)),
    "daimuvg_102622-12000-01": ("x64", 19041, 16, 0x101, 699.25, "AuthenticAMD", 2895,
                                (5, 494998, 42147, 2595, 4, 8, 6296051210)),
    "noam_040124-5515-01": ("x64", 19041, 24, 0x1c7, 23829.94, "GenuineIntel", 2112,
                            (18, 25125249, 1471854, 53248, 125, 2444, 220809845817)),
}
OJUSHA = """
0 fffff80551448180 352654 10875 580 14 13 1463508903
1 ffffa781d8be7180 310591 10398 1057 2 2 1519009960
2 ffffa781d8d87180 449254 10463 985 6 3 1514187067
3 ffffa781d90e5180 575338 10737 711 3 4 1606128482
4 ffffa781d919f180 608601 10616 832 5 6 1453799555
5 ffffa781d9240180 177150 10573 875 2 1 1551959785
6 ffffa781d9300180 799297 10703 745 7 10 1569348103
7 ffffa781d93c0180 114125 11094 353 1 2 1697244644
8 ffffa781d9479180 591808 11025 422 9 7 1639552342
9 ffffa781d9540180 90037 11209 238 1 0 1717281011
10 ffffa781d95eb180 429710 10625 822 3 9 1590867327
11 ffffa781d96a5180 98931 11234 213 2 0 1718625314"""
ARM64 = """
0 1362874 48852 2137 548 418
1 696689 48951 2003 86 105
2 544866 49070 1884 54 78
3 430378 49109 1845 29 60
4 256900 49596 1358 24 26
5 206315 49677 1277 19 17
6 867262 44020 6934 45 70
7 824855 45229 5725 36 85"""
TICK = 0.015625


class Real(DumpTest):
    _read = {}

    def dump(self, name):
        if name not in self._read:
            self._read[name] = self.read(os.path.join(DUMPS, name + ".dmp.xz"))
        return self._read[name]

    def crashing(self, data):
        found = [p for p in data["processors"] if p["crashing"]]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_all_files_are_known(self):
        files = {os.path.basename(f)[:-7] for f in glob.glob(os.path.join(DUMPS, "*.dmp.xz"))}
        self.assertEqual(files, set(KNOWN))

    def test_header(self):
        for name, known in KNOWN.items():
            with self.subTest(name):
                data = self.dump(name)
                self.assertEqual(data["container"], "triage64")
                self.assertEqual((data["machine"], data["build"]), known[:2])
                self.assertEqual(data["processor_count"], known[2])
                self.assertEqual(data["bugcheck"]["code"], known[3])
                self.assertIsNotNone(data["bugcheck"]["name"])
                self.assertAlmostEqual(data["uptime_100ns"] / 1e7, known[4], delta=0.006)
                self.assertEqual(data["time_increment_100ns"], 156250)
                self.assertEqual(data["time_increment_from"],
                                 "dump" if data["machine"] == "arm64" else "assumed")

    def test_crashing_processor(self):
        for name, known in KNOWN.items():
            with self.subTest(name):
                p = self.crashing(self.dump(name))
                values = (p["number"],) + tuple(p[n] for n in NAMES[1:])
                self.assertEqual(values, known[7])
                self.assertEqual((p["vendor"], p["MHz"]), known[5:7])

    def test_all_processors_of_two(self):
        for p, line in zip(self.dump("ojusha_100623-6156-01")["processors"],
                           OJUSHA.split("\n")[1:]):
            number, kprcb, *rest = line.split()
            self.assertEqual((p["number"], p["kprcb"]), (int(number), "0x" + kprcb))
            self.assertEqual([p[n] for n in NAMES[1:]], [int(r) for r in rest])
        data = self.dump("rizin_triage_arm64")
        self.assertEqual(len(data["processors"]), 8)
        for p, line in zip(data["processors"], ARM64.split("\n")[1:]):
            self.assertEqual([p["number"]] + [p[n] for n in NAMES[1:6]],
                             [int(r) for r in line.split()])

    def test_arm64_is_found_by_landmarks_and_says_so(self):
        data = self.dump("rizin_triage_arm64")
        self.note(data, "arm64", "landmarks")
        self.assertIsNone(data["layout"])
        for p in data["processors"]:
            self.assertEqual((p["power_state"]["offset"], p["power_state"]["found_by"]),
                             (0x1200, "landmark"))
            self.assertEqual(p["found_by"]["KernelTime"], "landmark")
            self.assertEqual(p["found_by"]["MHz"], "kdbg")
            self.assertIsNone(p["Parked"])  # behind what is known of the structure there

    def test_power_state_and_landmark(self):
        for name in KNOWN:
            for p in self.dump(name)["processors"]:
                self.assertTrue(p["power_state"]["landmark"], name)
                if self.dump(name)["machine"] == "x64":
                    self.assertEqual((p["power_state"]["offset"], p["power_state"]["found_by"]),
                                     (0x8000, "catalog"))

    def test_ticks_fit_the_uptime(self):
        """Kernel + user never exceed the uptime; the best processor is within half a second."""
        for name in KNOWN:
            data = self.dump(name)
            uptime = data["uptime_100ns"] / 1e7
            sums = [(p["KernelTime"] + p["UserTime"]) * TICK for p in data["processors"]]
            self.assertLessEqual(max(sums), uptime + TICK, name)
            if len(sums) > 1:  # noam's one processor may be one that lagged
                self.assertLess(uptime - max(sums), 0.5, name)

    def test_the_two_copies_of_the_crashing_kprcb_are_equal(self):
        """Of the file's bytes, without prcb; prcb's note would say that they differ."""
        compared = 0
        for name in KNOWN:
            data = self.dump(name)
            self.no_note(data, "two copies")
            with lzma.open(os.path.join(DUMPS, name + ".dmp.xz")) as file:
                raw = file.read()
            prcb, = struct.unpack_from("<I", raw, 0x201c)
            blocks, count = struct.unpack_from("<II", raw, 0x2078)
            want = int(self.crashing(data)["kprcb"], 16)
            for i in range(count):
                address, offset, size = struct.unpack_from("<QII", raw, blocks + 16 * i)
                if address == want and size > 0x8000:
                    self.assertEqual(raw[prcb:prcb + size], raw[offset:offset + size], name)
                    compared += 1
        self.assertEqual(compared, 4)  # noam holds one copy only

    def test_the_processor_that_hung(self):
        data = self.dump("daimuvg_102622-12000-01")
        parameters = data["bugcheck"]["parameters"]
        hung = data["processors"][int(parameters[3], 16)]
        self.assertEqual((hung["number"], hung["kprcb"]), (2, parameters[2]))
        note = self.note(data, "behind", "not idle")
        self.assertIn("processor 2 is 8.05 s behind", note)
        self.assertIn("44237 of 44752", note)
        self.note(data, "parked: 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")

    def test_others_are_not_said_to_hang(self):
        for name in set(KNOWN) - {"daimuvg_102622-12000-01"}:
            self.no_note(self.dump(name), "behind")

    def test_profile_control_areas(self):
        """Pointers on the Intel machines, 0xa0 apart; NULL on AMD's; the areas in no file."""
        ojusha = [int(p["ProcessorProfileControlArea"], 16)
                  for p in self.dump("ojusha_100623-6156-01")["processors"]]
        self.assertEqual({b - a for a, b in zip(ojusha, ojusha[1:])}, {0xa0})
        for p in self.dump("daimuvg_102622-12000-01")["processors"]:
            self.assertEqual(p["ProcessorProfileControlArea"], "0x0")

    def test_only_the_crashing_processor(self):
        data = self.dump("noam_040124-5515-01")
        self.assertEqual(len(data["processors"]), 1)
        self.assertEqual(data["processors"][0]["kprcb"], "0xffffb1000ff0f180")
        self.note(data, "1 of 24 processors")

    def test_thread(self):
        thread = self.crashing(self.dump("noam_040124-5515-01"))["thread"]
        self.assertEqual((thread["State"], thread["StateName"]), (2, "Running"))
        self.assertEqual(thread["ContextSwitches"], 1567091)
        self.assertEqual(thread["WaitReasonName"], "WrDispatchInt")

    def test_thread_and_process(self):
        """The files were reduced, but the crashing thread and its process are whole."""
        for name, wanted in (("rizin_triage_x64", ("System", 4, 264)),
                             ("rizin_triage_arm64", ("System", 4, 32)),
                             ("ojusha_100623-6156-01", ("System", 4, 3408)),
                             ("daimuvg_102622-12000-01", ("System", 4, 9196)),
                             ("noam_040124-5515-01", ("MemCompression", 2424, 2464))):
            t = self.crashing(self.dump(name))["thread"]
            self.assertEqual((t["process_name"], t["process_id"], t["id"]), wanted, name)

    def test_where_each_processor_of_arm64_was(self):
        """KPRCB.Context leads into the KPRCBs themselves there, which are whole. The header has
        the crashing processor's."""
        p = self.dump("rizin_triage_arm64")["processors"]
        self.assertEqual([x["context"]["registers"]["pc"] for x in p],
                         ["0xfffff803f32de014"] + ["0xfffff803f318d180"] * 5 +
                         ["0xfffff80686037c3c", "0xfffff803f318d180"])
        self.assertEqual([x["context"]["found_by"] for x in p], ["header"] + ["kdbg"] * 7)
        self.assertEqual(p[6]["context"]["registers"]["sp"], "0xffffe00e0f6e35c0")

    def test_registers_and_irql_of_x64(self):
        """Of the others the pages were cut out of these files: absent, not 0."""
        for name, pc, irql in (("rizin_triage_x64", "0xfffff8048b58334c", 0),
                               ("daimuvg_102622-12000-01", "0xfffff80133bf8f60", 13)):
            for p in self.dump(name)["processors"]:
                if p["crashing"]:
                    self.assertEqual((p["context"]["registers"]["rip"], p["irql"]), (pc, irql))
                else:
                    self.assertEqual((p["context"], p["irql"]), (None, 15))

    def test_exception(self):
        """Parameter 2 of 0x7e is the address in the context that the header holds."""
        data = self.dump("rizin_triage_x64")
        self.assertEqual(data["bugcheck"]["parameters"][1],
                         self.crashing(data)["context"]["registers"]["rip"])
        self.assertEqual(data["exception"]["code"], "0x80000003")

    def test_dpcs(self):
        p = self.crashing(self.dump("daimuvg_102622-12000-01"))
        self.assertEqual((p["DpcQueueDepth"], p["DpcCount"], p["DpcRoutineActive"]),
                         (3, 0x46ba, 0))
        self.assertEqual([d["address"] for d in p["dpcs"]], ["0xfffff80134420e80"])
        self.assertIsNone(p["dpcs"][0]["routine"])  # its KDPC is not in the file

    def test_release_is_the_workstations(self):
        for name in KNOWN:
            self.assertNotIn("Server", self.dump(name)["release"])

    def test_what_is_not_held_is_null(self):
        data = self.dump("daimuvg_102622-12000-01")
        self.assertEqual([p["IdleTime"] for p in data["processors"]], [None] * 16)
        self.assertIsNone(data["processors"][1]["thread"]["ContextSwitches"])


if __name__ == "__main__":
    if not os.path.isdir(DUMPS):
        print("SKIPPED: no real dumps at %s; set PRCB_SHARED to the folder that has data/dumps" %
              DUMPS)
        sys.exit(77)
    unittest.main(verbosity=2)
