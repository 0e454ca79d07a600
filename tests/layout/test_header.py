#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb layout --header: the static asserts hold with gcc and clang, 32 and 64 bits.

Every layout of PROCESSOR_POWER_STATE and every structure in a few versions go into
one file, which also shows that headers of several versions go together. The
compilers only check the syntax, free-standing, so no 32-bit libc is needed.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PRCB = os.environ["PRCB"]
FLAGS = ["-std=c11", "-ffreestanding", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic",
         "-Werror"]
EVERYTHING_IN = ["XP SP3", "6.1", "10.0.19041", "11 24H2"]


def prcb(*arguments):
    return subprocess.run([PRCB, "layout", *arguments], capture_output=True, text=True,
                          timeout=60)


def headers():
    known = json.loads(prcb("-j").stdout)
    asked = [("PROCESSOR_POWER_STATE", v["version"], arch)
             for v in known["versions"] for arch in ("x86", "x64") if v[arch]]
    asked += [(name, version, arch) for name in known["structs"] for version in EVERYTHING_IN
              for arch in ("x86", "x64")]
    for name, version, arch in asked:
        out = prcb(name, "--version", version, "--arch", arch, "--header")
        if out.returncode == 0 and "enum " not in out.stdout:
            yield out.stdout


class Header(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.file = pathlib.Path(folder.name) / "layouts.h"
        text = "".join(headers())
        assert text.count("_Static_assert") > 5000, "too few headers"
        cls.file.write_text(text)

    def compile(self, compiler, bits):
        if not shutil.which(compiler):
            self.skipTest(compiler + " is not installed")
        if os.uname().machine != "x86_64":
            self.skipTest("-m32 is an x86-64 compiler's")
        out = subprocess.run([compiler, bits, *FLAGS, "-x", "c", self.file],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(out.returncode, 0, out.stderr[:4000])

    def test_gcc_32(self):
        self.compile("gcc", "-m32")

    def test_gcc_64(self):
        self.compile("gcc", "-m64")

    def test_clang_32(self):
        self.compile("clang", "-m32")

    def test_clang_64(self):
        self.compile("clang", "-m64")

    def test_a_wrong_offset_stops_the_build(self):
        text = prcb("KDPC", "--version", "6.1", "--header").stdout
        wrong = text.replace("== 0x40,", "== 0x48,", 1)
        self.assertNotEqual(text, wrong)
        out = subprocess.run(["gcc", *FLAGS, "-x", "c", "-"], input=wrong, capture_output=True,
                             text=True, timeout=60)
        self.assertNotEqual(out.returncode, 0)


if __name__ == "__main__":
    unittest.main()
