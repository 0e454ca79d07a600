#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Include lines follow the folder table of ARCHITECTURE.md.

Every #include of every file in a listed folder must name a header of that folder,
of a folder in its "May import" column, a library listed there, or the system's.
"""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("PRCB_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
SUFFIXES = (".c", ".h", ".def", ".inc")

# What a header in angle brackets or a generated one belongs to; the rest is the system's.
LIBRARIES = {"bpf/": "libbpf", "json-c/": "json-c", "lzma.h": "liblzma", "zstd.h": "libzstd",
             "zlib.h": "zlib", "sqlite3.h": "sqlite", "gnutls/": "GnuTLS", "yaml.h": "libyaml", "crypt.h": "libcrypt", "curses.h": "ncurses", "term.h": "ncurses", "elfutils/": "libdw", "gelf.h": "libelf", "libiberty/": "libiberty", "pcp/": "libpcp",
             "protobuf-c/": "protobuf-c", "microhttpd.h": "libmicrohttpd"}
GENERATED = {"accounts.skel.h": "src/kernel/bpf/", "clients.skel.h": "src/kernel/bpf/",
             "profile.pb-c.h": "src/recording/exports/", "perfetto.pb-c.h": "src/recording/exports/",
             "processors.skel.h": "src/kernel/bpf/", "samples.skel.h": "src/kernel/bpf/"}


def table():
    """{folder: set of what it may import}, in the order of the document."""
    rules = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| `([^`]+/)` \|[^|]*\|([^|]*)\|$", line)
        if match:
            rules[match.group(1)] = set(re.findall(r"[\w/.-]+", match.group(2)))
    return rules


def files_of(folder, rules):
    """The sources of a folder, without those of folders inside it that have a row of their own."""
    inside = [ROOT / other for other in rules if other != folder and other.startswith(folder)]
    return sorted(path for path in (ROOT / folder).rglob("*")
                  if path.suffix in SUFFIXES and not any(other in path.parents for other in inside))


def includes_of(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', text, re.M)


class Includes(unittest.TestCase):
    def setUp(self):
        self.rules = table()
        self.owners = {}
        for folder in self.rules:
            if folder == "include/prcb/":
                continue  # always spelled <prcb/...>
            for path in files_of(folder, self.rules):
                self.owners.setdefault(path.name, set()).add(folder)

    def owner(self, path, folder, bracket, name):
        """The folder or library that a header belongs to; None: the system."""
        if name.startswith("prcb/"):
            return "include/prcb/"
        if bracket == "<":
            return next((lib for start, lib in LIBRARIES.items() if name.startswith(start)), None)
        if (path.parent / name).exists() or folder in self.owners.get(pathlib.Path(name).name, ()):
            return folder
        if name in GENERATED:
            return GENERATED[name]
        owners = self.owners.get(pathlib.Path(name).name, set())
        self.assertEqual(len(owners), 1, f'{path}: "{name}" is in {sorted(owners)}')
        return next(iter(owners))

    def test_table_lists_every_folder(self):
        self.assertGreater(len(self.rules), 5)
        folders = {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "src").rglob("*.[ch]")}
        for folder in folders:
            self.assertTrue(any(folder.startswith(rule) for rule in self.rules), folder)
        for folder in self.rules:
            self.assertTrue((ROOT / folder).is_dir(), folder)

    def test_imports_come_from_rows_above(self):
        above = set(LIBRARIES.values())
        for folder, imports in self.rules.items():
            self.assertLessEqual(imports, above, folder)
            above.add(folder)

    def test_every_include_is_allowed(self):
        seen = 0
        for folder, imports in self.rules.items():
            for path in files_of(folder, self.rules):
                for bracket, name in includes_of(path):
                    owner = self.owner(path, folder, bracket, name)
                    seen += 1
                    self.assertTrue(owner in (None, folder) or owner in imports,
                                    f"{path.relative_to(ROOT)} includes {name} of {owner}")
        self.assertGreater(seen, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
