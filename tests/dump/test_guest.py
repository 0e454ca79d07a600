# SPDX-License-Identifier: BSD-2-Clause
"""A Windows guest's memory as QEMU and libvirt write it (ELF), without a crash dump's header: what it
says is what a full crash dump of the same memory says."""
import unittest

import mkdump
from common import DumpTest, run
from test_synthetic import TIMES as THREE

TIMES = THREE + "processors = 2\n"

MORE = """
module.0 = ntoskrnl.exe 0xfffff80000400000 0x100000
module.1 = viostor.sys 0xfffff80001000000 0x10000
dpc.1.0 = 0xffffd00000001000 0xfffff80001000123
dpc.1.1 = 0xffffd00000002000 0xfffff80001000456
cpu.0.PowerState.IdleTimeTotal = 123456789012345
guest.rip = 0xfffff80001002345
"""
GUEST = "container = qemu-elf64\n"


class Guest(DumpTest):
    def texts(self):
        for version in ("10.0.19041", "10.0.26100", "10.0.22631", "6.1.7601.24540"):
            for more in ("", "kdbg = encoded\n"):
                yield version, more, TIMES + MORE + "version = %s\n" % version + more

    def test_as_a_crash_dump_of_it(self):
        for version, more, text in self.texts():
            full = self.read(self.write("container = full64\n" + text.replace("encoded", "plain"), "full.dmp"))
            data = self.read(self.write(GUEST + text, "guest.elf"))
            self.assertEqual((data["container"], data["machine"], data["build"], data["bugcheck"]["code"]),
                             ("qemu-elf64", "x64", full["build"], 0), version)
            self.assertEqual(data["uptime_100ns"], full["uptime_100ns"])
            self.assertEqual(data["crash_filetime"], full["crash_filetime"])
            self.assertEqual(len(data["processors"]), 2)
            for a, b in zip(full["processors"], data["processors"]):
                for name in ("number", "kprcb", "KernelTime", "UserTime", "DpcTime", "InterruptCount", "MHz",
                             "IdleTimeTotal", "Parked", "vendor", "dpcs", "IdleThread", "thread"):
                    self.assertEqual(a[name], b[name], (version, more, name))
                self.assertEqual(a["power_state"]["offset"], b["power_state"]["offset"])
            self.assertEqual([d["at"] for d in data["processors"][1]["dpcs"] if d["at"]],
                             ["viostor.sys+0x123", "viostor.sys+0x456"])
            self.note(data, "without a crash dump's header")
            if more:
                self.note(data, "debugger data are encoded")
            else:
                self.no_note(data, "encoded")

    def test_the_computer_by_smbios(self):
        for container, form in (("qemu-elf64", "2"), ("qemu-elf64", "3"), ("full64", "2"), ("bitmap-full64", "3")):
            data = self.make(f"container = {container}\n" + TIMES + f"version = 10.0.19041\nsmbios = {form}\n")
            self.assertEqual((data["computer"], data["firmware"]),
                             ("QEMU Standard PC (Q35 + ICH9, 2009)", "SeaBIOS 1.16.2, 04/01/2014"), container)
        text = run(self.path("test.dmp")).stdout.decode()
        self.assertIn("computer    QEMU Standard PC (Q35 + ICH9, 2009)\nfirmware    SeaBIOS 1.16.2, 04/01/2014\n", text)

    def test_tables_that_are_damaged(self):
        base = GUEST + TIMES + "version = 10.0.19041\nsmbios = "
        for more in ("2\nsmbios.sum = 1", "3\nsmbios.poke.6 = 4", "2\nsmbios.poke.5 = 4",
                     "3\nsmbios.poke.14 = 255", "3\nsmbios.poke.18 = 255", "2\nsmbios.poke.0x10001 = 3",
                     "2\nsmbios.poke.0x10001 = 255"):
            data = self.make(base + more)
            self.assertIsNone(data["computer"], more)
        data = self.make(base + "2\nsmbios.computer = \x1b[31m")
        self.assertEqual(data["computer"], "QEMU ?[31m")
        data = self.make(base + "2\nsmbios.poke.0x10004 = 99\nsmbios.poke.0x10005 = 0")
        self.assertEqual((data["firmware"], data["computer"][:4]), ("04/01/2014", "QEMU"))
        self.assertEqual(len(data["processors"]), 2)

    def test_what_each_processor_does(self):
        data = self.make(GUEST + TIMES + MORE + "version = 10.0.19041\nguest.mode = user\n")
        first, last = (p["context"] for p in data["processors"])
        self.assertEqual((first["at"], first["registers"]["rip"]),
                         ("viostor.sys+0x2345", "0xfffff80001002345"))
        self.assertEqual((first["registers"]["rax"], first["registers"]["rsp"]),
                         ("0x1", "0xfffff80020000000"))
        self.assertEqual((last["at"], last["registers"]["rip"]), (None, "0x7ff600001000"))
        self.assertEqual(data["kernel_pdb"],
                         "ntkrnlmp.pdb/111122223333444455556666777788881/ntkrnlmp.pdb")
        text = run(self.path("test.dmp")).stdout.decode()
        self.assertIn("bug check   none: the machine was running\n", text)
        self.assertRegex(text, r"(?m)^taken +20\d\d-")

    def test_tables_that_hide_the_kernel(self):
        for more in ("guest.mode = shadow\n", "paging = x64-5\n", "large = 1\n"):
            data = self.make(GUEST + TIMES + "version = 10.0.22631\nkdbg = encoded\n" + more)
            self.assertEqual([p["KernelTime"] for p in data["processors"]], [60000, 60000], more)

    def test_a_bug_check_and_a_header(self):
        text = GUEST + TIMES + "version = 10.0.19041\nbugcheck = 0x9f\nparameter.1 = 3\n"
        data = self.make(text)
        self.assertEqual((data["bugcheck"]["code"], data["bugcheck"]["parameters"][0]), (0x9f, "0x3"))
        data = self.make(text + "guest.exports = 0\nguest.note = header\n")
        self.assertEqual((data["bugcheck"]["code"], len(data["processors"])), (0x9f, 2))
        self.no_note(data, "without a crash dump's header")
        data = self.make(text + "guest.exports = 0\nkdbg = encoded\n")
        self.assertEqual((data["bugcheck"]["code"], data["build"]), (0, 19041))
        self.note(data, "exports no PsLoadedModuleList")

    def test_none_inside(self):
        text = GUEST + TIMES + "version = 10.0.19041\n"
        self.refused(self.write(text + "guest.mode = none\n"), "no 64-bit Windows is found", "2 processors")

    def test_processors_without_a_kernel(self):
        """A thousand processors whose GS bases lead nowhere are one note."""
        text = GUEST + TIMES + "version = 10.0.19041\nkdbg = encoded\n"
        m = mkdump.Machine(mkdump.parse(text))
        m.count, m.kprcbs = 1000, m.kprcbs + [0xfffff80077770180] * 998
        data = self.read(self.file("many.elf", bytes(mkdump.qemu_elf(m, m.spec))))
        self.assertEqual((data["processor_count"], len(data["processors"])), (1000, 2))
        self.note(data, "998 of 1000 processors lead to no KPCR")

    def test_damage(self):
        """Notes, tables and images that say absurd things: an answer or an error each."""
        whole = mkdump.make(GUEST + TIMES + MORE + "version = 10.0.19041\n")
        paths = []
        for i, (at, value) in enumerate((
                (0x38, b"\xff\xff"), (0x20, b"\xff" * 8), (0x28, b"\xf0" + b"\xff" * 7), (0x38, b"\0\0"),
                (0x48, b"\xff" * 8), (0x60, b"\xff" * 8), (0x60, b"\x08" + b"\0" * 7), (0x98, b"\xff" * 8),
                (0x80, b"\xff" * 8), (0xa0, b"\xff" * 7), (0x12, b"\x28\0"), (0x12, b"\xb7\0"))):
            data = bytearray(whole)
            data[at:at + len(value)] = value
            paths.append(self.file("bad%d" % i, bytes(data)))
        image = whole.index(b"MZ")
        for i, (at, value) in enumerate((
                (0x3c, b"\xff\xff\xff\xff"), (0xd0, b"\xff\xff\xff\xff"), (0x108, b"\xff\xff\xff\xff"),
                (0x108, b"\0\0\1\0"), (0x84, b"\xff" * 64))):
            data = bytearray(whole)
            data[image + at:image + at + len(value)] = value
            paths.append(self.file("image%d" % i, bytes(data)))
        for length in (0x40, 0x78, 0x100, 0x800, len(whole) // 2, len(whole) - 0x1000):
            paths.append(self.file("cut%d" % length, whole[:length]))
        self.read_all(paths, timeout=60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
