#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""./dev on machines whose packages are in disorder: its `need`, with a dpkg and an apt of the test's."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

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


class Need(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name)
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("sudo", PLAIN)):
            (self.state / name).write_text(text)
            (self.state / name).chmod(0o755)

    def need(self, *packages, installed="", half="", can="", ends="0", update="0"):
        for name, text in (("installed", installed), ("half", half), ("can", can), ("ends", ends),
                           ("update", update), ("asked", "")):
            (self.state / name).write_text(text)
        script = rf'source <(sed "/^# ---- build directories/,\$d" "{DEV}"); need {" ".join(packages)}'
        return subprocess.run(["bash", "-c", script, str(DEV)], capture_output=True, text=True, check=False,
                              env={"PATH": f"{self.state}:{os.environ['PATH']}", "STATE": str(self.state)},
                              timeout=60)

    def asked(self):
        return (self.state / "asked").read_text()

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


if __name__ == "__main__":
    sys.exit(unittest.main())
