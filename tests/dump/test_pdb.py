# SPDX-License-Identifier: BSD-2-Clause
"""PDBs, made by a compiler and linker that are not ours, against the same dump without them."""
import os
import random
import shutil
import subprocess
import sys
import unittest

import mkdump
from common import DumpTest, run
from test_synthetic import TIMES

TRIAGE = TIMES + "container = triage64\nversion = %s\n"
SCALARS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
TOOLS = ("clang", "lld-link")


def members(name, version):
    """name -> (offset, size) of the members of a structure that overlap no other."""
    rows = sorted((*place, n) for n, place in mkdump.layout(name, version, "x64").items()
                  if n not in ("", "version") and "." not in n)
    kept, end = [], 0
    for offset, size, n in rows:
        if offset >= end and size:
            kept.append((n, offset, size))
            end = offset + size
    return kept


def definition(name, version, types):
    """A C structure with members at the very offsets, what lies between them as bytes."""
    at, lines = 0, []
    for n, offset, size in members(name, version):
        if offset > at:
            lines.append("unsigned char pad_%x[%d];" % (at, offset - at))
        if n in types:
            lines.append("%s %s;" % (types[n], n))
        elif size in SCALARS:
            lines.append("%s %s;" % (SCALARS[size], n))
        else:
            lines.append("unsigned char %s[%d];" % (n, size))
        at = offset + size
    length = mkdump.layout(name, version, "x64")[""][1]
    if length > at:
        lines.append("unsigned char pad_%x[%d];" % (at, length - at))
    return "struct _%s {\n    %s\n};\n" % (name, "\n    ".join(lines))


def source(version, more=""):
    return ("#pragma pack(push, 1)\nstruct _KTHREAD;\n"
            "struct _EPROCESS { unsigned char pad[0x5a8]; unsigned char ImageFileName[15]; };\n"
            "struct _CLIENT_ID { void *UniqueProcess, *UniqueThread; };\n"
            "struct _ETHREAD { unsigned char pad[0x478]; struct _CLIENT_ID Cid; };\n" +
            definition("KDPC", version, {}) +
            definition("PROCESSOR_POWER_STATE", version, {"PerfActionDpc": "struct _KDPC",
                                                          "WmiInterfaceEnabled": "int"}) +
            definition("KTHREAD", version, {}) +
            definition("KPRCB", version, {"PowerState": "struct _PROCESSOR_POWER_STATE",
                                          "CurrentThread": "struct _KTHREAD *"}) + more +
            "#pragma pack(pop)\nstruct _KPRCB a; struct _ETHREAD b; struct _EPROCESS c;\n"
            "struct _KTHREAD d; int entry(void) { return 0; }\n")


class Pdb(DumpTest):
    def compile(self, name, text):
        with open(self.path(name + ".c"), "w") as out:
            out.write(text)
        subprocess.run(["clang", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-c",
                        self.path(name + ".c"), "-o", self.path(name + ".obj")], check=True)
        return self.path(name + ".obj")

    def pdb(self, version, name="ntkrnlmp.pdb", text=None, others=()):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        objects = [self.compile("other%d" % i, more) for i, more in enumerate(others)]
        objects.append(self.compile("nt", text or source(version)))
        subprocess.run(["lld-link", *objects, "/debug", "/entry:entry", "/dll",
                        "/nodefaultlib", "/subsystem:native", "/out:" + self.path("nt.dll"),
                        "/pdb:" + self.path(name)], check=True, stdout=subprocess.DEVNULL)
        return self.path(name)

    def check(self, version, data, plain):
        for a, b in zip(plain["processors"], data["processors"]):
            self.assertEqual((b["found_by"]["KernelTime"], b["power_state"]["found_by"]),
                             ("symbols", "symbols"))
            for name in ("KernelTime", "UserTime", "DpcTime", "InterruptCount", "MHz",
                         "IdleTimeTotal", "Parked", "kprcb", "IdleThread"):
                self.assertEqual(a[name], b[name], name)
            self.assertEqual(a["power_state"]["members"]["WmiInterfaceEnabled"],
                             b["power_state"]["members"]["WmiInterfaceEnabled"])
            self.assertEqual(b["power_state"]["members"]["WmiInterfaceEnabled"], -5)

    def test_one(self):
        for version in ("10.0.19041", "10.0.26100"):
            text = TRIAGE % version + "cpu.*.PowerState.WmiInterfaceEnabled = -5\n" \
                "cpu.*.PowerState.IdleTimeTotal = 123456789012345\n"
            if version == "10.0.19041":
                text += "process.1 = svchost.exe 1232 5676\n"
            path = self.write(text)
            data = self.read(path, "--symbols", self.pdb(version))
            self.check(version, data, self.read(path))
            if version == "10.0.19041":
                t = data["processors"][1]["thread"]
                self.assertEqual((t["process_name"], t["process_name_found_by"], t["process_id"],
                                  t["ids_found_by"]), ("svchost.exe", "symbols", 1232, "symbols"))

    def test_two_kprcbs(self):
        """The public PDB of a kernel holds a short KPRCB, too: the one of KDBG's size is taken."""
        version = "10.0.19041"
        path = self.write(TRIAGE % version + "cpu.*.PowerState.WmiInterfaceEnabled = -5\n")
        plain = self.read(path)
        short = "struct _KPRCB { unsigned MxCsr; char pad[0x6fc]; } %s;\n"
        long = "struct _KPRCB { unsigned MxCsr; char pad[0x1fffc]; } %s;\n"
        for others in ((short,), (long,), (short, long)):
            pdb = self.pdb(version, others=[text % "other%d" % i for i, text in enumerate(others)])
            self.check(version, self.read(path, "--symbols", pdb), plain)
        pdb = self.pdb("", text=short % "x" + "int entry(void) { return 0; }\n",
                       others=[long % "y"])
        done = run("-j", "--symbols", pdb, path)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"another kernel's and is not used", done.stdout + done.stderr)

    def test_directory(self):
        """A symbol store with two kernels and another module's PDB: each dump takes its own."""
        self.pdb("10.0.19041", "store/ntkrnlmp.pdb/A1/ntkrnlmp.pdb")
        self.pdb("10.0.26100", "store/ntkrnlmp.pdb/B1/ntkrnlmp.pdb")
        self.pdb("", "store/other.pdb/C1/other.pdb", "struct _X { int y; } x; int entry(void) "
                 "{ return x.y; }\n")
        for version in ("10.0.19041", "10.0.26100"):
            path = self.write(TRIAGE % version)
            data = self.read(path, "--symbols", self.path("store"))
            self.assertEqual(data["processors"][0]["found_by"]["KernelTime"], "symbols")
            self.assertEqual(data["processors"][0]["KernelTime"], 60000)
        done = run("-j", "--symbols", self.path("store"), self.write(TRIAGE % "10.0.22621"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"none of the 2 PDBs", done.stderr)

    def test_two_that_fit(self):
        """The same sizes, but another place for a member: which is meant is not known."""
        self.pdb("10.0.19041", "store/a/ntkrnlmp.pdb")
        other = source("10.0.19041").replace(" KernelTime;", " Swapped;").replace(
            " UserTime;", " KernelTime;").replace(" Swapped;", " UserTime;")
        self.pdb("10.0.19041", "store/b/ntkrnlmp.pdb", other)
        done = run("-j", "--symbols", self.path("store"), self.write(TRIAGE % "10.0.19041"))
        self.assertIn(b"name one", done.stderr)
        self.assertIn(b'"KernelTime": "catalog"', done.stdout)

    def test_forms_of_members(self):
        """Bit fields, unnamed unions, arrays, enumerations, a modifier."""
        text = source("10.0.19041").replace(
            "struct _KTHREAD d;", "struct _KTHREAD d; struct _KTHREAD_COUNTERS e;").replace(
            "struct _EPROCESS {", "enum _MODE { ModeA, ModeB = 7 };\nstruct _KTHREAD_COUNTERS {\n"
            "union { unsigned long long Whole; struct { unsigned Low : 5; unsigned High : 27; "
            "const int Signed; }; };\nenum _MODE Mode; short Words[3]; struct { char Deep[2]; } "
            "Named[2];\n};\nstruct _EPROCESS {")
        pdb = self.pdb("10.0.19041", text=text)
        path = self.write(TRIAGE % "10.0.19041" + "thread.1.ThreadCounters = 0xfffff80010000180\n"
                          "cpu.0.Number = 0")
        out = run("--struct", "KTHREAD_COUNTERS", "--symbols", pdb, path).stdout.decode()
        for line in (r"\+0x0000 Whole +ULONGLONG", r"\+0x0000 Low : 5", r"\+0x0000 High : 27",
                     r"\+0x0004 Signed +LONG", r"\+0x0008 Mode", r"\+0x0012 Named\[0\]\.Deep"):
            self.assertRegex(out, line)

    def test_damage(self):
        """Cut at every kind of place, and random bytes: an error or an answer, never a crash."""
        with open(self.pdb("10.0.19041"), "rb") as file:
            raw = file.read()
        path, bad = self.write(TRIAGE % "10.0.19041"), self.path("bad.pdb")
        rng = random.Random(5)
        for i in range(80):
            data = bytearray(raw[:rng.randrange(32, len(raw))] if i % 2 else raw)
            for _ in range(rng.randrange(0, 60)):
                data[rng.randrange(32, min(len(data), rng.choice((0x40, 0x4000, 1 << 30))))
                     if len(data) > 0x40 else 0] = rng.choice((0, 0xff, rng.randrange(256)))
            with open(bad, "wb") as out:
                out.write(data)
            self.assertIn(run("-j", "--symbols", bad, path, timeout=20).returncode, (0, 1), i)


if __name__ == "__main__":
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing:
        print("SKIPPED: no %s here to make PDBs with" % " and no ".join(missing))
        sys.exit(77)
    unittest.main(verbosity=2)
