# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `prcb dump` share: running it, and where the real dumps are."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mkdump  # noqa: E402

PRCB = os.environ["PRCB"]
SOURCE = os.environ.get("PRCB_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")
SHARED = os.environ.get("PRCB_SHARED") or os.path.join(SOURCE, "..", "shared")
os.environ["XDG_DATA_HOME"] = "/nonexistent"  # no layouts that the developer saved
DUMPS = os.path.join(SHARED, "data", "dumps")


def run(*args, timeout=60):
    return subprocess.run([PRCB, "dump", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout)


class DumpTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="prcb-dump-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def file(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def write(self, text, name="test.dmp"):
        return self.file(name, mkdump.make(text))

    def read(self, path, *args):
        """The JSON of one dump; standard error must be quiet."""
        done = run("-j", *args, path)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stderr.decode())
        return json.loads(done.stdout)

    def make(self, text, *args):
        return self.read(self.write(text), *args)

    def read_all(self, paths, timeout=60):
        """What --ndjson says of each of many files, by one start of prcb: with a sanitizer a start takes
        longer than what it reads. A line that is missing is of the file at which prcb came to its end."""
        done = run("--ndjson", *paths, timeout=timeout)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one["file"] for one in said], paths, done.stderr.decode())
        self.assertEqual((done.returncode, done.stderr), (int(any("error" in one for one in said)), b""))
        return said

    def refused(self, path, *words):
        """It must be refused with one line that has all of the words, and no crash."""
        done = run(path)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 1, message)
        self.assertEqual(message.count("\n"), 1, message)
        for word in (os.path.basename(path),) + words:
            self.assertIn(word, message)

    def note(self, data, *words):
        """The one note that has all of the words."""
        found = [n for n in data["notes"] if all(w in n for w in words)]
        self.assertEqual(len(found), 1, "%s in %s" % (words, data["notes"]))
        return found[0]

    def no_note(self, data, word):
        self.assertEqual([n for n in data["notes"] if word in n], [])
