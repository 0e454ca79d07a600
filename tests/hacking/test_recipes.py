#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does as HACKING.md and docs/hacking say, in a copy of the tree and of the build, and finds the
made-up cause, figure, metric and option in what prcb prints."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import recipe

ROOT = pathlib.Path(os.environ["PRCB_SOURCE"])
BUILD = pathlib.Path(os.environ["PRCB_BUILD"])
PAGES = ["HACKING.md", "docs/hacking/01-cause.md", "docs/hacking/05-account-figure.md",
         "docs/hacking/07-metric.md"]
PROGRAMS = ["src/tools/cli/prcb", "tests/unit/test_unit_metrics"]
PAUSE = "import signal; signal.signal(signal.SIGALRM, lambda *_: 0); signal.alarm(1); signal.pause()"


def copied(tree):
    """The tree and what was built of it; as old as they are, so nothing is built that is the same."""
    shutil.copytree(ROOT, tree, symlinks=True,
                    ignore=lambda folder, names: [name for name in names if pathlib.Path(folder) == ROOT
                                                  and (name.startswith(("build", ".git")) or name == "shared")])
    shutil.copytree(BUILD, tree / "build", symlinks=True,
                    ignore=shutil.ignore_patterns("meson-logs", "bench", "examples", "test_*", "*.sock", "prcb_made_up*"))


def apply(tree):
    for page in PAGES:
        for name, lines in recipe.changes((ROOT / page).read_text(encoding="utf-8")):
            path = tree / name
            stamp = path.stat()
            path.write_text(recipe.changed(path.read_text(encoding="utf-8"), lines, name), encoding="utf-8")
            # A new constant changes none of the files that do not expand the table of causes or
            # name the cause. All include it: they would take a minute.
            if name == "include/prcb/causes.h":
                os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
                for user in (tree / "src").rglob("*.[ch]"):
                    if re.search(r"\bPRCB_CAUSES\(", user.read_text(encoding="utf-8")):
                        user.touch()


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prcb-recipes-")
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.tree = pathlib.Path(folder.name) / "tree"
        copied(cls.tree)
        apply(cls.tree)
        done = subprocess.run(["ninja", "-C", cls.tree / "build", *PROGRAMS], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise AssertionError(done.stdout[-4000:])
        cls.prcb = str(cls.tree / "build" / PROGRAMS[0])
        cls.environment = {**os.environ, "PRCB": cls.prcb, "PRCB_SOURCE": str(cls.tree),
                           "PRCB_PROGRAMS": ""}
        # meson's, which leads to the libraries of the build that is copied
        cls.environment.pop("LD_LIBRARY_PATH", None)

    def run_in(self, *command, **more):
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.tree,
                              env={**self.environment, **more}, timeout=120)

    def prints(self, *arguments):
        done = self.run_in(self.prcb, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @unittest.skipUnless(platform.machine() == "x86_64", "the page's row is of x86-64's table")
    def test_cause(self):
        report = json.loads(self.prints("stat", "-j", "--", sys.executable, "-c", PAUSE))
        if report["tier"] != "bpf":
            self.skipTest(f"tier {report['tier']} knows no causes: {report['tier_reason']}")
        waits = {wait["cause"]: wait for wait in report["total"]["waits"]}
        self.assertIn("made-up", waits)
        self.assertEqual(waits["made-up"]["reason"], "UserRequest")
        self.assertGreater(waits["made-up"]["ns"], 5e8)
        self.assertNotIn("signal", waits)

    def test_figure(self):
        command = ("--tier", "perf", "--", "sh", "-c", "sleep 0.1; sleep 0.1")
        total = json.loads(self.prints("stat", "-j", *command))["total"]
        self.assertEqual(total["made_up"], total["voluntary_switches"])
        self.assertIn("MADE UP", self.run_in(self.prcb, "stat", *command).stderr)

    def test_metric(self):
        self.assertRegex(self.prints("export", "--for", "0.2"), r"(?m)^prcb_made_up 1$")

    def test_option(self):
        self.assertIn("-m, --missing  ", self.prints("doctor", "--help"))
        self.assertIn("--missing", self.prints("--completions", "doctor"))
        done = self.run_in(sys.executable, "tests/cli/test_doctor.py", "-k", "missing")
        self.assertIn("Ran 1 test", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_documents(self):
        """Pages and tables agree: what they define is there, in its place."""
        for page in PAGES:
            for command in recipe.commands((ROOT / page).read_text(encoding="utf-8")):
                if command.startswith("PRCB_WRITE"):
                    done = self.run_in("bash", "-c", command)
                    self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")
        metrics = (self.tree / "docs/metrics.md").read_text(encoding="utf-8")
        self.assertIn("`prcb_made_up`", metrics)
        self.assertRegex(metrics, r"\| `event` \|.* made-up")
        done = self.run_in(sys.executable, "tests/docs/test_documents.py", "Figures", "Manuals")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_documents_without_their_part(self):
        """The same test says what is missing: it compares the copy, with what the page says left out."""
        page = self.tree / "docs/figures.md"
        text = page.read_text(encoding="utf-8")
        self.addCleanup(page.write_text, text, encoding="utf-8")
        page.write_text("".join(line for line in text.splitlines(True) if "made-up" not in line), encoding="utf-8")
        done = self.run_in(sys.executable, "tests/docs/test_documents.py", "Figures")
        self.assertIn("made-up", done.stderr)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
