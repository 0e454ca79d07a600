#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The catalog against the symbol-derived facts, by their own checker.

Runs ../shared/tools/check_layout.py (PRCB_SHARED names another place) over what
prcb prints: 0 mismatches and no layout of the facts without one of ours. Both by
version key, where servicing variants may stand for each other, and by full build,
where they may not. Skipped where the facts are not at hand.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PRCB = os.environ["PRCB"]
SOURCE = pathlib.Path(os.environ["PRCB_SOURCE"])
SHARED = pathlib.Path(os.environ.get("PRCB_SHARED", SOURCE / ".." / "shared"))
CHECKER = SHARED / "tools" / "check_layout.py"
FACTS = SHARED / "data" / "layouts.json"
MORE = SHARED / "data" / "layouts-more.json"  # kernels that were read later: names and offsets
SUMMARY = re.compile(r"layouts compared (\d+), members compared (\d+), mismatches (\d+)$")


def layout(*arguments):
    return subprocess.run([PRCB, "layout", *arguments], capture_output=True, text=True,
                          timeout=120)


def merged():
    """The facts, and of the kernels that were read later those that are variants of a version of the
    facts, in the same form: sizes and types are that version's, for they have names and offsets alone."""
    rows = json.loads(FACTS.read_text())
    known = {(row["struct"], row["build"], row["arch"]): row for row in rows}
    for kernel, structs in json.loads(MORE.read_text()).items() if MORE.exists() else ():
        build, arch = kernel.split()
        for name, found in structs.items():
            like = known.get((name, build.rsplit(".", 1)[0], arch))
            if like:
                sizes = {m["name"]: m for m in like["members"]}
                rows.append(dict(like, build=build, size=found["size"], partial=True, members=[
                    dict(sizes[m[0]], offset=m[1]) for m in found["members"] if m[0] in sizes]))
    return rows


class Facts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.truth = tempfile.NamedTemporaryFile("w", suffix=".json")
        cls.addClassCleanup(cls.truth.close)
        json.dump(merged(), cls.truth)
        cls.truth.flush()

    def check(self, *arguments, catalog=None):
        """Runs the checker; returns how many layouts it compared."""
        out = subprocess.run([sys.executable, CHECKER, "--strict", "--truth", self.truth.name,
                              *arguments], input=catalog,
                             capture_output=True, text=True, timeout=280)
        found = SUMMARY.search(out.stdout.strip())
        self.assertIsNotNone(found, out.stdout + out.stderr)
        bad = [line for line in out.stdout.splitlines() if not line.startswith("no truth")]
        self.assertEqual(out.returncode, 0, "\n".join(bad))
        self.assertEqual(found.group(3), "0")
        self.assertNotIn("skipped", out.stdout)
        print(found.group(0), file=sys.stderr)
        return int(found.group(1))

    def test_stream_by_build(self):
        self.assertGreater(self.check("-", catalog=layout("--all", "-j").stdout), 1000)

    def test_stream_by_version_key(self):
        self.assertGreater(self.check("-", catalog=layout("--all", "--keys", "-j").stdout), 900)

    def test_program_by_version_key(self):
        for style in "article", "key":
            with self.subTest(style=style):
                self.check("--version-style", style, "--cli",
                           PRCB + " layout {struct} --version {version} --arch {arch} -j")

    def test_program_by_build(self):
        """Every entry of the facts, asked for by the build it was read from."""
        lines = []
        asked = sorted({(row["struct"], row["build"], row["arch"])
                        for row in json.loads(FACTS.read_text()) if row["kind"] != "enum"})
        for struct, build, arch in asked:
            out = layout(struct, "--version", build, "--arch", arch, "-j")
            self.assertEqual(out.returncode, 0, (struct, build, arch, out.stderr))
            document = json.loads(out.stdout)
            document["version"] = build
            lines.append(json.dumps(document))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("\n".join(lines))
            file.flush()
            self.assertEqual(self.check(file.name), len(asked))

    def test_kernels_that_were_read_later(self):
        """All members of these, and no others, at their offsets."""
        if not MORE.exists():
            self.skipTest(f"{MORE} is not there")
        for kernel, structs in json.loads(MORE.read_text()).items():
            build, arch = kernel.split()
            for name, found in structs.items():
                out = layout(name, "--version", build, "--arch", arch, "-j")
                self.assertEqual(out.returncode, 0, (name, kernel, out.stderr))
                ours = json.loads(out.stdout)
                self.assertEqual((ours["size"], ours["source"]), (found["size"], "symbols"),
                                 (name, kernel))
                theirs = {m[0]: (m[1], m[2] if len(m) > 2 else 0) for m in found["members"]}
                listed = {m["name"]: (m["offset"], m.get("bits", [0, 0])[1])
                          for m in ours["members"] if "." not in m["name"]}
                if name == "KPRCB":  # of which we list some
                    theirs = {m: theirs.get(m) for m in listed}
                if listed:
                    self.assertEqual(listed, theirs, (name, kernel))


if __name__ == "__main__":
    if not CHECKER.exists():
        print(f"{CHECKER} is not there: the catalog was NOT compared with the facts")
        sys.exit(77)
    unittest.main()
