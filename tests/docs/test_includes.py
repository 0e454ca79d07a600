#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Include lines follow src/imports.txt, and ARCHITECTURE.md shows the same rooms and wings.

Every #include of every file in a room must name a header of that room, of one that its entry
in src/imports.txt names, of a library named there, or the system's.
"""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("PRCB_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
SUFFIXES = (".c", ".h", ".def", ".inc")

# What a header in angle brackets or a generated one belongs to; the rest is the system's.
LIBRARIES = {
    "bpf/": "libbpf", "bzlib.h": "bzip2", "json-c/": "json-c", "lzma.h": "liblzma", "zstd.h": "libzstd",
    "zlib.h": "zlib", "sqlite3.h": "sqlite", "gnutls/": "GnuTLS", "yaml.h": "libyaml",
    "crypt.h": "libcrypt", "curses.h": "ncurses", "term.h": "ncurses", "elfutils/": "libdw",
    "gelf.h": "libelf", "libiberty/": "libiberty", "pcp/": "libpcp", "postgres.h": "PostgreSQL",
    **{f"{folder}/": "PostgreSQL" for folder in (
        "access", "catalog", "commands", "datatype", "executor", "nodes", "port", "storage", "tcop", "utils")},
    **{f"{name}.h": "PostgreSQL" for name in ("c", "funcapi", "miscadmin", "pgstat")},
    "protobuf-c/": "protobuf-c", "microhttpd.h": "libmicrohttpd", "curl/": "libcurl"}
GENERATED = {
    "accounts.skel.h": "src/kernel/bpf/", "clients.skel.h": "src/kernel/bpf/",
    "processors.skel.h": "src/kernel/bpf/", "samples.skel.h": "src/kernel/bpf/",
    "top_terminfo.h": "src/tools/top/",
    "profile.pb-c.h": "src/recording/exports/", "perfetto.pb-c.h": "src/recording/exports/", "otlp.pb-c.h": "src/recording/exports/"}


def rooms():
    """{room: set of what it may import}, in the order of src/imports.txt."""
    rules = {}
    for line in (ROOT / "src/imports.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            imports |= set(line.split())
        elif line and not line.startswith("#"):
            imports = rules[line] = {"include/prcb/"} if rules else set()
    return rules


def wing(name):
    """The wing of a room; None: it is in none."""
    return name.split("/")[1] if name.startswith("src/") else None


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
        self.rules = rooms()
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

    def test_every_folder_is_a_room_or_in_one(self):
        self.assertGreater(len(self.rules), 5)
        folders = {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "src").rglob("*.[ch]")}
        for folder in folders:
            self.assertTrue(any(folder.startswith(rule) for rule in self.rules), folder)
        for folder in self.rules:
            self.assertTrue((ROOT / folder).is_dir(), folder)

    def test_imports_come_from_rooms_above(self):
        above = set(LIBRARIES.values())
        for folder, imports in self.rules.items():
            self.assertLessEqual(imports, above, folder)
            above.add(folder)

    def test_architecture_shows_the_rooms(self):
        page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(?m)^\| `([^`]+/)` \|", page), list(self.rules))
        self.assertLessEqual(len(page.splitlines()), 200)

    def test_architecture_draws_the_wings(self):
        """The drawing is what the rooms' entries add up to, and a wing imports wings above it only."""
        wings = {}
        for folder, imports in self.rules.items():
            if wing(folder):
                others = {wing(name) for name in imports} - {None, wing(folder)}
                self.assertLessEqual(others, set(wings), folder)
                wings.setdefault(wing(folder), set()).update(others)
        page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
        drawing = re.search(r"(?ms)^```\n(base\n.*?)^```$", page).group(1).splitlines()
        self.assertEqual([line.split()[0] for line in drawing], list(wings))
        for line in drawing:
            name, *others = line.split()
            self.assertEqual(set(others), wings[name], name)

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
