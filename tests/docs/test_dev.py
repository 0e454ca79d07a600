#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""./dev on machines whose packages are in disorder: its `need`, with a dpkg and an apt of the test's; and
what GitHub runs and shows of this tree is there."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

DEV = pathlib.Path(__file__).resolve().parents[2] / "dev"

# What is installed is in a file; apt-get puts what it could into it and ends as it was told.
DPKG_QUERY = """#!/bin/bash
shift 3
for package; do if grep -qx "$package" "$STATE/installed"; then printf '%s/installed ' "$package"
    elif grep -qx "$package" "$STATE/half"; then printf '%s/half-configured ' "$package"; fi; done
exit 1 # as with a name that it does not know
"""
APT_GET = """#!/bin/bash
echo "apt-get $*" >>"$STATE/asked"
if [[ " $* " == *" install "* ]]; then
    cat "$STATE/can" >>"$STATE/installed"
    echo "E: Sub-process /usr/bin/dpkg returned an error code (1)" >&2
    exit "$(cat "$STATE/ends")"
fi
exit "$(cat "$STATE/update")"
"""
PLAIN = '#!/bin/bash\nexec "$@"\n'


class Disorder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name)
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("sudo", PLAIN)):
            (self.state / name).write_text(text)
            (self.state / name).chmod(0o755)

    def asked(self):
        return (self.state / "asked").read_text()


class Need(Disorder):
    def need(self, *packages, installed="", half="", can="", ends="0", update="0"):
        for name, text in (("installed", installed), ("half", half), ("can", can), ("ends", ends),
                           ("update", update), ("asked", "")):
            (self.state / name).write_text(text)
        script = rf'source <(sed "/^# ---- build directories/,\$d" "{DEV}"); need {" ".join(packages)}'
        return subprocess.run(["bash", "-c", script, str(DEV)], capture_output=True, text=True, check=False,
                              env={"PATH": f"{self.state}:{os.environ['PATH']}", "STATE": str(self.state)},
                              timeout=60)

    def test_nothing_is_missing(self):
        result = self.need("gcc", "meson", installed="gcc\nmeson\n")
        self.assertEqual((result.returncode, result.stdout + result.stderr, self.asked()), (0, "", ""))

    def test_installed(self):
        result = self.need("gcc", "meson", installed="gcc\n", can="meson\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("install -y --no-install-recommends meson", self.asked())

    def test_another_package_is_half_configured(self):
        """apt-get installs what is asked for, and reports the other one's error."""
        result = self.need("gcc", "meson", installed="gcc\n", half="other\n", can="meson\n", ends="100")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Sub-process", result.stderr)
        self.assertIn("all that prcb needs is installed", result.stderr)

    def test_one_that_is_needed_is_half_configured(self):
        result = self.need("gcc", "meson", installed="gcc\n", half="meson\n", ends="100")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("could not install meson", result.stderr)
        self.assertIn("dpkg --configure -a", result.stderr)

    def test_no_lists(self):
        """The lists of packages cannot be fetched, the packages can."""
        result = self.need("meson", can="meson\n", update="100")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("trying the package lists as they are", result.stderr)


class Commands(Disorder):
    """Which packages a command asks for, where none is installed; and format elsewhere than with 14."""

    def ask(self, command, **more):
        """What apt-get is asked to install by a command whose build does nothing."""
        for name in ("installed", "half", "can", "asked"):
            (self.state / name).write_text("")
        (self.state / "ends").write_text("100")
        (self.state / "update").write_text("0")
        script = (rf'source <(sed "/^main \"\$@\"/d; s|^here=.*|here={DEV.parent}|" "{DEV}"); '
                  rf'build_main() {{ :; }}; {command}')
        result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60,
                                env={"PATH": f"{self.state}:{os.environ['PATH']}", "STATE": str(self.state)}, **more)
        install = [line for line in self.asked().splitlines() if " install " in line]
        return result, set(install[0].split("--no-install-recommends ")[1].split()) if install else set()

    def test_build(self):
        _, packages = self.ask("command_build")
        self.assertLessEqual({"gcc", "clang", "meson", "libcmocka-dev"}, packages)
        self.assertFalse({"prometheus", "clang-format", "gdb", "bpftrace"} & packages)
        self.assertLess(len(packages), 40)

    def test_tests_of_a_kind(self):
        for name, wanted, other in (("abi", "abigail-tools", "prometheus"),
                                    ("exporter-scrapes", "prometheus-node-exporter", "gdb"),
                                    ("unit-text", "gcc", "gdb"), ("--suite cli", "gdb", "chromium")):
            with self.subTest(name):
                _, packages = self.ask(f"command_test {name}")
                self.assertIn(wanted, packages)
                self.assertNotIn(other, packages)

    def test_every_kind_is_known(self):
        """A test whose kind has no packages needs none but the build's, or is named here."""
        kinds = set(re.findall(r"(?m)^    \[(\w+)\]=", DEV.read_text())) | {
            "cases", "daemon", "hacking", "layout", "page", "pmda", "tsan", "unit", "wine"}
        names = {name for path in (DEV.parent / "tests").rglob("meson.build")
                 for name in re.findall(r"\btest\('([a-z]+)", path.read_text())}
        self.assertGreater(len(names), 10)
        self.assertLessEqual(names, kinds)

    def test_format_elsewhere(self):
        for name in ("clang-format", "clang-format-14"):
            (self.state / name).write_text('#!/bin/sh\necho "Debian clang-format version 19.1.7"\n')
            (self.state / name).chmod(0o755)
        result, _ = self.ask("command_format --all")
        self.assertEqual(result.returncode, 1)
        self.assertIn("that of clang-format 14, and here is Debian clang-format version 19.1.7", result.stderr)


class Tracked(Disorder):
    """The files that go into packages, of a tree without a repository of its own."""

    def test_tarball(self):
        tree = self.state / "tree"
        for name in ("dev", "src/a.c", "src/b.h", "build/made.c", "build-deb/c.c", "src/a.o", "src/__pycache__/d.h"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).touch()
        script = rf'source <(sed "/^main \"\$@\"/d; s|^here=.*|here={DEV.parent}|" "{DEV}"); here=$0; tracked "$@"'
        for around in ("nothing", "a repository"):
            if around != "nothing":
                subprocess.run(["git", "init", "--quiet", self.state], check=True)
            for patterns, files in ((["*"], "dev src/a.c src/b.h"), (["*.c", "*.h"], "src/a.c src/b.h")):
                with self.subTest(around, patterns=patterns):
                    found = subprocess.run(["bash", "-c", script, tree, *patterns], capture_output=True, text=True,
                                           check=True, timeout=60).stdout
                    self.assertEqual(sorted(found.split()), files.split())


class GitHub(unittest.TestCase):
    def files(self, below):
        found = sorted((DEV.parent / ".github" / below).glob("*.yml"))
        self.assertTrue(found, below)
        return [(path, yaml.safe_load(path.read_text())) for path in found]

    def test_workflows(self):
        """Each step's script is one that bash can read, and the ./dev commands in it are there."""
        usage = subprocess.run([DEV, "help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  (\w+) ", usage, re.M)
        steps = [(path, step) for path, text in self.files("workflows") for job in text["jobs"].values()
                 for step in job["steps"]]
        ran = []
        for path, step in steps:
            with self.subTest(path.name, step=step.get("name", step.get("uses"))):
                if "run" not in step:
                    self.assertRegex(step["uses"], r"^[\w-]+/[\w-]+@v\d+$")
                    continue
                result = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                called = re.findall(r"\./(\w[\w/.-]*)(?: +(\w+))?", step["run"])
                for program, command in called:
                    self.assertTrue(os.access(DEV.parent / program, os.X_OK), program)
                    if program == "dev":
                        self.assertIn(command, commands)
                ran += called
        self.assertIn(("dev", "check"), ran)

    def test_issue_forms(self):
        for path, text in self.files("ISSUE_TEMPLATE"):
            with self.subTest(path.name):
                for name in re.findall(r"\b[A-Z]+\.md\b", path.read_text()):
                    self.assertTrue((DEV.parent / name).is_file(), name)
                if path.name == "config.yml":
                    continue
                self.assertTrue(text["name"] and text["description"] and text["body"])
                for part in text["body"]:
                    self.assertIn(part["type"], ("textarea", "input", "dropdown", "checkboxes", "markdown"))
                    self.assertTrue(part["attributes"])


if __name__ == "__main__":
    sys.exit(unittest.main())
