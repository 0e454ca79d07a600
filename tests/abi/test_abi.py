#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The libraries' ABI beside the recorded one: what programs were compiled with goes on working.

tests/abi/NAME.abi.xz is what abidw said of a library, of its public headers alone. abidiff compares;
new functions and constants are no change, nor is a structure that starts with its own size and grew at
its end. Any other change fails, unless accepted.suppr lists it with the reason (abidiff's language:
libabigail's manual, "Suppression specifications").

    PRCB_ABI_RECORD=1 tests/abi/test_abi.py     records what is built, at a release or with a change
                                                that accepted.suppr has had
"""
import glob
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("PRCB_BUILD", os.path.join(SOURCE, "build"))
HEADERS = os.path.join(SOURCE, "include/prcb")
COMPAT = os.path.join(SOURCE, "include/compat")
LIBRARIES = {"libprcb": "src/lib/libprcb.so", "libprcb-layout": "src/windows/dump/libprcb-layout.so",
             "libprcb-nt": "src/nt/compat/libprcb-nt.so", "libprcb-stack": "src/analysis/stack/libprcb-stack.so"}


def say(library):
    """What abidw says of a library, as bytes of XML."""
    return subprocess.run(
        ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed",
         "--type-id-style", "hash", "--drop-undefined-syms", "--drop-private-types",
         "--headers-dir", HEADERS, "--headers-dir", COMPAT, library], capture_output=True, check=True, timeout=300).stdout


def recorded(name):
    with lzma.open(os.path.join(HERE, name + ".abi.xz")) as file:
        return file.read()


def growing():
    """Structures whose first member is their size."""
    names = set()
    for path in glob.glob(os.path.join(HEADERS, "*.h")):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        names |= set(re.findall(r"struct (\w+) \{\s*size_t size;", text))
    return sorted(names)


def as_long_as(old, new):
    """The new document with what structures that start with their size got behind their old end left
    out. (abidiff's has_data_member_inserted_at accepts more: members that moved.)"""
    sizes = {row.get("name"): row.get("size-in-bits")
             for row in ElementTree.fromstring(old).iter("class-decl") if row.get("size-in-bits")}
    document = ElementTree.fromstring(new)
    for row in document.iter("class-decl"):
        size = sizes.get(row.get("name")) if row.get("name") in growing() else None
        if not size or int(row.get("size-in-bits", 0)) <= int(size):
            continue
        row.set("size-in-bits", size)
        for member in row.findall("data-member"):
            if int(member.get("layout-offset-in-bits")) >= int(size):
                row.remove(member)
    return ElementTree.tostring(document)


def compare(old, new, *more):
    """(abidiff's status, its words); of two documents."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, data in ("old.abi", old), ("new.abi", as_long_as(old, new)):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "wb") as file:
                file.write(data)
        done = subprocess.run(["abidiff", "--no-added-syms", *more, *paths],
                              capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr


def setUpModule():
    if not shutil.which("abidiff") or not shutil.which("abidw"):
        raise unittest.SkipTest("abidiff is not installed (package abigail-tools)")
    if platform.machine() != "x86_64":
        raise unittest.SkipTest("the recorded ABI is x86-64's")


class Abi(unittest.TestCase):
    def check(self, name):
        library = os.path.join(BUILD, LIBRARIES[name])
        if name == "libprcb-stack" and not os.path.exists(library):
            self.skipTest(f"{name} is not built")
        accepted = os.path.join(HERE, "accepted.suppr")
        status, words = compare(recorded(name), say(library), "--suppressions", accepted)
        self.assertEqual(status, 0, f"{name}: {words}\nsee {HERE}/test_abi.py")

    def test_libprcb(self):
        self.check("libprcb")

    def test_libprcb_layout(self):
        self.check("libprcb-layout")

    def test_libprcb_nt(self):
        self.check("libprcb-nt")

    def test_libprcb_stack(self):
        self.check("libprcb-stack")


class Detects(unittest.TestCase):
    """The comparison fails where it has to."""
    def setUp(self):
        self.old = recorded("libprcb")

    def change(self, pattern, by):
        new, count = re.subn(pattern, by, self.old, flags=re.S)
        self.assertGreater(count, 0, pattern)
        return compare(self.old, new)

    def test_same(self):
        self.assertEqual(compare(self.old, self.old)[0], 0)

    def test_removed_function(self):
        self.assertNotEqual(self.change(rb"'prcb_open'", b"'prcb_opened'")[0], 0)

    def test_member_that_moved(self):
        member = rb"(<data-member access='public' layout-offset-in-bits=')\d+('>\s*<var-decl name='run_ns')"
        self.assertNotEqual(self.change(member, rb"\g<1>4096\2")[0], 0)

    def test_structure_that_grew(self):
        """One that starts with its size may, and no other."""
        for name, accepted in ("prcb_account", True), ("prcb_wait", False):
            with self.subTest(name):
                self.assertEqual(self.change(*self.longer(name))[0] == 0, accepted)

    def longer(self, name):
        size = int(re.search(f"class-decl name='{name}' size-in-bits='(\\d+)".encode(), self.old)[1])
        member = (f"<data-member access='public' layout-offset-in-bits='{size}'><var-decl name='more' "
                  "type-id='{}' visibility='default'/></data-member>")
        id_of_u64 = re.search(rb"typedef-decl name='uint64_t'[^>]* id='(\w+)'", self.old)[1].decode()
        return (f"(class-decl name='{name}' size-in-bits=')\\d+('[^>]*>.*?)(</class-decl>)".encode(),
                f"\\g<1>{size + 64}\\2{member.format(id_of_u64)}\\3".encode())

    def test_structure_that_shrank(self):
        size = rb"(class-decl name='prcb_account' size-in-bits=')\d+"
        self.assertNotEqual(self.change(size, rb"\g<1>64")[0], 0)


def record():
    for name, place in LIBRARIES.items():
        with lzma.open(os.path.join(HERE, name + ".abi.xz"), "wb", preset=9) as file:
            file.write(say(os.path.join(BUILD, place)))


if __name__ == "__main__":
    if os.environ.get("PRCB_ABI_RECORD"):
        sys.exit(record())
    unittest.main()
