# SPDX-License-Identifier: BSD-2-Clause
"""Dumps that are wrong on purpose, and files that are no dumps."""
import os
import random
import struct
import time
import unittest

import mkdump
from common import DumpTest, run
from test_synthetic import CONTAINERS_32, CONTAINERS_64, TIMES

TRIAGE = TIMES + "container = triage64\nversion = 10.0.19041\n"
BLOCKS, BLOCK_COUNT = 0x2078, 0x207c


class Disagreement(DumpTest):
    def test_landmark_against_catalog(self):
        data = self.make(TRIAGE + "shift = 0x40\ncpu.*.PowerState.IdleTimeTotal = 1")
        self.note(data, "the catalog puts it at 0x8000", "landmark at 0x8040")
        for p in data["processors"]:
            self.assertEqual((p["power_state"]["offset"], p["power_state"]["found_by"]),
                             (0x8040, "landmark"))
            self.assertIsNone(p["KeContextSwitches"])  # no longer believed
            self.assertEqual(p["found_by"]["MHz"], "kdbg")
            # the times have a landmark of their own
            self.assertEqual((p["KernelTime"], p["found_by"]["KernelTime"]), (60000, "landmark"))

    def test_no_landmark_at_all(self):
        data = self.make(TRIAGE + "landmark = 0")
        self.note(data, "confirmed by the KDPC landmark in 0 of 3")
        self.assertEqual(data["processors"][0]["power_state"]["found_by"], "catalog")

    def test_two_candidates(self):
        """Two revisions of 7601, and nothing in the dump to tell them apart by."""
        data = self.make(TIMES + "container = triage64\nversion = 6.1.7601\nkdbg = none\n"
                         "landmark = 0\nuptime = 0\nraw.*.0x4bb8.8 = \"GenuineI\"")
        self.note(data, "layouts (6.1.7601.0 .. 6.1.7601.24540) fit this dump", "left out")
        p, = data["processors"]
        self.assertEqual((p["KernelTime"], p["MHz"]), (None, 2000))  # MHz: where all agree
        self.assertIsNone(p["power_state"])

    def test_candidates_that_differ_in_one_member(self):
        """XP SP2 and SP3 have one build number; four bytes of the power state differ in meaning."""
        data = self.make(TIMES + "container = triage32\nversion = 5.1.2600 SP3\nbuild = 2600")
        for p in data["processors"]:
            self.assertEqual(p["KernelTime"], 60000)
            self.assertEqual(p["power_state"]["version"], "5.1.2600 SP2 .. 5.1.2600 SP3")
            self.assertIn("IdleHandler" if "IdleHandler" in p["power_state"]["members"]
                          else "IdleFunction", p["power_state"]["members"])
            for name in ("Spare1[0]", "Spare1", "LastPackageIdleTime"):
                self.assertNotIn(name, p["power_state"]["members"])

    def test_more_ticks_than_uptime(self):
        data = self.make(TRIAGE.replace("uptime = 10000000000", "uptime = 5000000000"))
        self.note(data, "3 of 3 processors", "uptime")
        self.assertIsNone(data["processors"][0]["KernelTime"])

    def test_symbols_of_another_kernel(self):
        path = self.path("other.json")
        with open(path, "w") as out:
            out.write('{"base_types": {"pointer": {"size": 8}, "u": {"size": 4}}, "enums": {},'
                      '"user_types": {"_KPRCB": {"size": 4096, "kind": "struct", "fields": {'
                      '"KernelTime": {"offset": 16, "type": {"kind": "base", "name": "u"}}}}}}')
        data = self.make(TRIAGE, "--symbols", path)
        self.note(data, "symbol file is another kernel's", "0x1000", "0xaf00")
        self.assertEqual(data["processors"][0]["KernelTime"], 60000)

    def test_rejected_symbols_change_nothing_but_the_notes(self):
        path = self.path("short.json")
        for size in (64, 4096, 0x20000):
            with open(path, "w") as out:
                out.write('{"base_types": {"pointer": {"size": 8}, "u": {"size": 4}}, "enums": {},'
                          '"user_types": {"_KPRCB": {"size": %d, "kind": "struct", "fields": {'
                          '"KernelTime": {"offset": 16, "type": {"kind": "base", "name": "u"}}}}}}'
                          % size)
            for text in (TRIAGE, TRIAGE + "blocks = none\ncrashing = 1\n",
                         TRIAGE.replace("triage64", "full64")):
                before, after = self.make(text), self.make(text, "--symbols", path)
                self.note(after, "symbol file is another kernel's", "0x%x" % size)
                for data in (before, after):
                    data.pop("notes")
                self.assertEqual(before, after, (size, text[:20]))

    def test_copies_that_differ(self):
        offset = struct.unpack_from("<I", mkdump.make(TRIAGE), 0x201c)[0]
        data = self.make(TRIAGE + "poke.%d.4 = 7" % (offset + 0x7e84))
        self.note(data, "two copies", "differ")

    def test_mxcsr(self):
        data = self.make(TRIAGE + "raw.2.0.4 = 0x1234")
        self.note(data, "processor 2", "MxCsr", "0x1234")


class Damage(DumpTest):
    def test_kprcb_cut_by_the_end_of_the_file(self):
        offset = struct.unpack_from("<I", mkdump.make(TRIAGE + "blocks = none"), 0x201c)[0]
        path = self.write(TRIAGE + "blocks = none\nkdbg = none\ncut = %d" % (offset + 0x7e88))
        raw = bytearray(open(path, "rb").read())
        struct.pack_into("<II", raw, BLOCKS, 0, 0)
        open(path, "wb").write(raw)
        data = self.read(path)
        self.note(data, "cut short")
        p, = data["processors"]
        self.assertEqual((p["KernelTime"], p["UserTime"]), (60000, None))

    def test_cut_after_its_header(self):
        """What the header knows is said, of each container, and that the rest is not there."""
        for container in CONTAINERS_64 + CONTAINERS_32:
            version, size = "6.1.7601", 0x1000
            if container.endswith("64"):
                version, size = "10.0.19041", 0x2000
            for more in (0, 0x10):
                data = self.make("container = %s\nversion = %s\nbugcheck = 0xe5\n"
                                 "poke.0xfa0.8 = 0x123456\ncut = %d" %
                                 (container, version, size + more))
                self.assertEqual(data["bugcheck"]["name"], "POWER_FAILURE_SIMULATE")
                self.assertEqual(data["processors"], [])
                self.note(data, "ends after", "only the header")

    def test_cut_in_its_block_table(self):
        """The copies in front of the table, and the header's facts, are still there."""
        table, count = struct.unpack_from("<II", mkdump.make(TRIAGE), BLOCKS)
        for left in (0, 1, count - 1):
            data = self.make(TRIAGE + "bugcheck = 0x9f\ncut = %d" % (table + 16 * left))
            self.note(data, "cut short")
            self.note(data, "%d of its entries are missing" % (count - left))
            self.assertEqual(data["bugcheck"]["name"], "DRIVER_POWER_STATE_FAILURE")
            p, = [p for p in data["processors"] if p["crashing"]]
            self.assertEqual(p["KernelTime"], 60000)

    def test_blocks_outside(self):
        raw = mkdump.make(TRIAGE)
        table, count = struct.unpack_from("<II", raw, BLOCKS)
        data = self.make(TRIAGE + "poke.%d.4 = 0xfffffff0" % (table + 8 + 16 * (count - 1)))
        self.note(data, "1 of %d blocks" % count, "past the end")
        self.assertEqual(len(data["processors"]), 3)

    def test_blocks_that_overlap(self):
        raw = mkdump.make(TRIAGE)
        table, count = struct.unpack_from("<II", raw, BLOCKS)
        last = table + 16 * (count - 1)
        address = 0xfffff80010000180 + 0x100
        data = self.make(TRIAGE + "poke.%d.8 = %d" % (last, address))
        self.note(data, "1 blocks of memory overlap")
        self.assertEqual(data["processors"][0]["KernelTime"], 60000)

    def test_every_block_the_same_and_huge(self):
        raw = bytearray(mkdump.make(TRIAGE))
        table, count = struct.unpack_from("<II", raw, BLOCKS)
        for i in range(count):
            struct.pack_into("<QII", raw, table + 16 * i, 0xffffffffffffff00, 0, 0xffffffff)
        with open(self.path("huge.dmp"), "wb") as out:
            out.write(raw)
        self.read(self.path("huge.dmp"))

    def test_counts_of_all_ones(self):
        full = "container = %s\nversion = 10.0.19041\n"
        for text, words in (
                (TRIAGE + "poke.%d.4 = -1" % BLOCK_COUNT, ["4294967295 entries"]),
                (full % "full64" + "poke.0x88.4 = -1", ["4294967295 runs"]),
                (full % "full64" + "poke.0xa0.8 = -1", ["run 0 has 0xffffffffffffffff pages"]),
                (full % "bitmap-full64" + "poke.0x2030.8 = -1", ["0xffffffffffffffff bits"]),
                (full % "bitmap-full64" + "poke.0x2030.4 = -1", ["bitmap needs"]),
                (full % "bitmap-full64" + "poke.0x2020.8 = 0", ["behind the first page"]),
                (full % "kernel64" + "poke.0x2010.4 = -1\npoke.0x2018.4 = -1", ["bitmap needs"])):
            with self.subTest(text[-40:]):
                self.refused(self.write(text), "offset 0x" if "runs" not in words[0] and
                             "run 0" not in words[0] else "", *words)

    def test_processor_counts(self):
        for container in ("triage64", "full64"):
            data = self.make(TIMES + "container = %s\nversion = 10.0.19041\n"
                             "header_processors = 0xffffffff" % container)
            self.note(data, "4294967295 processors", "2048")
            self.assertEqual(len(data["processors"]), 3)

    def test_all_fields_of_the_triage_header_all_ones(self):
        self.read_all([self.write(TRIAGE + "poke.%d.4 = -1" % at, "at-%#x.dmp" % at)
                       for at in range(0x2000, 0x2080, 4)])

    def test_page_table_loop(self):
        for container, paging in (("full64", "x64"), ("full64", "x64-5"), ("full32", "x86"),
                                  ("full32", "pae")):
            started = time.monotonic()
            data = self.make("container = %s\nversion = 6.1.7601\npaging = %s\nloop = 1" %
                             (container, paging))
            self.assertLess(time.monotonic() - started, 20)
            self.assertEqual(data["processors"], [])

    def test_truncated_anywhere(self):
        for container in CONTAINERS_64 + CONTAINERS_32:
            version = "10.0.19041" if container.endswith("64") else "6.1.7601"
            raw = mkdump.make(TIMES + "container = %s\nversion = %s" % (container, version))
            lengths = sorted({0, 1, 7, 8, 0xfff, 0x1fff, 0x2000, 0x2037, 0x2080,
                              *range(0x1000, len(raw), len(raw) // 23)})
            paths = [self.file("%s-%d.dmp" % (container, length), raw[:length]) for length in lengths]
            for length, said in zip(lengths, self.read_all(paths)):
                if length < (0x2000 if container.endswith("64") else 0x1000):
                    self.assertIn("error", said)

    def test_random_damage(self):
        """A fixed seed: what fails once fails again. The fuzzers do this in earnest."""
        rng = random.Random(20)
        for container in CONTAINERS_64 + CONTAINERS_32:
            version = "10.0.19041" if container.endswith("64") else "6.1.7601"
            raw = mkdump.make(TIMES + "container = %s\nversion = %s" % (container, version))
            paths = []
            for number in range(12):
                bad = bytearray(raw)
                for _ in range(rng.randrange(1, 40)):
                    at = rng.choice((rng.randrange(len(bad)), rng.randrange(0x2100)))
                    bad[at] = rng.choice((0, 0xff, rng.randrange(256)))
                paths.append(self.file("%s-%d.dmp" % (container, number), bad))
            self.read_all(paths, timeout=20)


class Strangers(DumpTest):
    def test_true_names(self):
        for magic, words in ((b"MDMP\x93\xa7", "user-mode minidump"), (b"\x7fELF\2\1\1", "ELF"),
                             (b"hibr", "hibernation"), (b"\xd2\xbe\xd2\xbe", "VMware"),
                             (b"PK\3\4", "ZIP"), (b"MZ\x90", "Windows program"),
                             (b"KDUMP   ", "Linux kernel dump"), (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
                             (b"hello world", "not a Windows kernel crash dump")):
            self.refused(self.file("x.dmp", magic + bytes(8192)), words)

    def test_memory_of_a_guest(self):
        """What `virsh dump --memory-only` writes, by its notes; damaged ones are ELF files."""
        def note(name, length):
            name += b"\0"
            return struct.pack("<III", len(name), length, 0) + name + bytes(-len(name) % 4 + length)

        def core(notes, at=0x78):
            return (b"\x7fELF\2\1\1" + bytes(9) +
                    struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 0x40, 0, 0, 0x40, 0x38, 1, 0, 0, 0) +
                    struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 0) + notes)
        windows = note(b"CORE", 336) + note(b"QEMU", 440)
        linux = windows + note(b"VMCOREINFO", 300)[:-300] + b"OSRELEASE=6.1.0\n".ljust(300, b"\0")
        self.refused(self.file("w.elf", core(windows)), "QEMU and libvirt", "--format win-dmp")
        self.refused(self.file("l.elf", core(linux)), "Linux guest")
        # As QEMU 7.2 writes it of a Linux 6.1 without a vmcoreinfo device: the page is in memory alone.
        page = b"OSRELEASE=6.1.0-47-amd64\nBUILD-ID=17\nPAGESIZE=4096\n"
        self.refused(self.file("m.elf", core(windows) + bytes(4096) + page), "its memory has Linux's")
        self.refused(self.file("p.elf", core(note(b"CORE", 336))), "an ELF file")
        here, wrong = struct.pack("<Q", 0x40), struct.pack("<Q", 2**64 - 8)
        for bad in (core(windows, 1 << 63), core(windows)[:0x80], core(windows)[:0x50],
                    core(struct.pack("<III", 0xffffffff, 0xffffffff, 0) + b"QEMU"),
                    core(windows).replace(here, wrong, 1)):
            self.refused(self.file("b.elf", bad), "an ELF file")

    def test_empty_directory_fifo_and_nothing(self):
        self.refused(self.file("empty.dmp", b""), "empty")
        done = run(self.folder.name + "/none.dmp")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No such file", done.stderr)
        os.mkfifo(self.path("fifo.dmp"))
        self.refused(self.path("fifo.dmp"), "not a regular file")

    def test_types_of_which_the_header_is_read(self):
        for number in (3, 7):
            data = self.make("container = full64\nversion = 10.0.19041\nbugcheck = 0x9f\n"
                             "type = %d" % number)
            self.assertEqual((data["bugcheck"]["code"], data["processors"]), (0x9f, []))
            self.note(data, "only the header")
        for number in (8, 9, 10):
            self.refused(self.write("container = full64\nversion = 10.0.19041\ntype = %d" % number),
                         "no header of page ranges")
            data = self.make("container = full32\nversion = 6.1.7601\ntype = %d" % number)
            self.note(data, "only the header")
        self.refused(self.write("container = full64\nversion = 10.0.19041\ntype = 77"),
                     "type 77", "unknown type")

    def test_machines(self):
        self.refused(self.write(TRIAGE + "poke.0x30.4 = 0x200"), "machine type 0x200")
        data = self.make("container = full64\nmachine = x64\nversion = 10.0.19041\n"
                         "poke.0x30.4 = 0xaa64")
        self.note(data, "page tables of arm64 are not read")
        self.assertEqual((data["processors"], data["processor_count"]), ([], 2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
