#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""HACKING.md and its pages: the index is whole, and what they name is there. tests/hacking does as
they say."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("PRCB_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "tests/hacking"))
import recipe  # pylint: disable=wrong-import-position,import-error

HACKING = (ROOT / "HACKING.md").read_text(encoding="utf-8")
PAGES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/hacking").glob("*.md"))}
FOLDERS = "src|include|tests|docs|man|examples|bench|completion|fuzz|tools|packaging"


def names_of_tests():
    """As tests/*/meson.build have them; one that is made of parts by its beginning."""
    names = set()
    for path in (ROOT / "tests").rglob("meson.build"):
        text = path.read_text(encoding="utf-8")
        names |= set(re.findall(r"\btest\('([\w-]+)'[,)]", text))
        for start in re.findall(r"\btest\('([\w-]+-)' \+", text):
            names |= {start + file.name[5:].rsplit(".", 1)[0] for file in path.parent.glob("test_*")}
    return names


class Hacking(unittest.TestCase):
    def test_index(self):
        """Pages are numbered without a gap, and the index has their titles."""
        listed = re.findall(r"(?m)^(\d+)\. \[(.+)\]\((docs/hacking/(\d+)-[\w-]+\.md)\)$", HACKING)
        self.assertEqual([name for _, _, name, _ in listed], [str(path.relative_to(ROOT)) for path in PAGES])
        for place, (number, title, name, in_name) in enumerate(listed, 1):
            self.assertEqual((int(number), int(in_name)), (place, place))
            self.assertEqual(PAGES[ROOT / name].splitlines()[0], f"# {number}. {title}")

    def test_paths(self):
        for path, text in {ROOT / "HACKING.md": HACKING, **PAGES}.items():
            for name in re.findall(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./*-]*[\w/*])", text):
                if name.startswith("build"):
                    continue
                with self.subTest(page=path.name, name=name):
                    self.assertTrue(list(ROOT.glob(re.sub("NAME|PACKAGE|test_x", "*", name))))
            for name in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text):
                self.assertTrue((path.parent / name).exists(), f"{path.name}: {name}")

    def test_commands(self):
        """./dev has the command, and the build the test."""
        usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, timeout=30,
                               check=True).stdout
        known, tests, seen = set(re.findall(r"(?m)^  ([a-z]+) ", usage)), names_of_tests(), 0
        for path, text in {ROOT / "HACKING.md": HACKING, **PAGES}.items():
            for command in recipe.commands(text):
                with self.subTest(page=path.name, command=command):
                    for word in re.findall(r"\./dev (\w+)", command):
                        self.assertIn(word, known)
                    if match := re.match(r"\./dev test (.*?)(?: -- .*)?$", command):
                        for name in re.sub(r"--suite \w+|\"[\w*-]+\"", "", match.group(1)).split():
                            self.assertIn(name, tests)
                            seen += 1
        self.assertGreater(seen, 30)

    def test_changes_apply(self):
        """Each block has its one place in the tree as it is."""
        seen = 0
        for path, text in {ROOT / "HACKING.md": HACKING, **PAGES}.items():
            files = {}
            for name, lines in recipe.changes(text):
                before = files.get(name) or (ROOT / name).read_text(encoding="utf-8")
                with self.subTest(page=path.name, file=name):
                    files[name] = recipe.changed(before, lines, name)
                    seen += 1
        self.assertGreater(seen, 10)

    def test_lines_are_short(self):
        for path in (ROOT / "HACKING.md", ROOT / "ARCHITECTURE.md", *PAGES):
            text = path.read_text(encoding="utf-8")
            self.assertEqual([line for line in text.splitlines() if len(line) > 100], [], path.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
