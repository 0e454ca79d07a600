#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What everybody types first: help, versions, words mistyped by one letter, times with units.

Nothing is measured here; no privilege is needed.
"""
import os
import subprocess
import unittest

PRCB = os.environ["PRCB"]


def prcb(*arguments):
    return subprocess.run([PRCB, *arguments], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL)


class CommandLine(unittest.TestCase):
    def refused(self, words, *arguments):
        result = prcb(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_help_of_a_command_is_its_own(self):
        for command in prcb("--completions").stdout.split():
            self.assertEqual(prcb("help", command).stdout, prcb(command, "--help").stdout)
        self.assertEqual(prcb("help").stdout, prcb("--help").stdout)
        if "stat" in prcb("--completions").stdout.split():
            self.refused("no command 'stats': perhaps stat;", "help", "stats")

    def test_help_fits_a_terminal(self):
        for command in ("", *prcb("--completions").stdout.split()):
            long = [line for line in prcb("help", *command.split()).stdout.splitlines()
                    if len(line) > 80]
            self.assertFalse(long, command)

    def test_version(self):
        self.assertRegex(prcb("-V").stdout, r"^prcb [0-9.]+\n$")
        self.assertEqual(prcb("-V").stdout, prcb("--version").stdout)

    def test_near_names_are_told(self):
        self.refused("no command 'layuot': perhaps layout;", "layuot")
        self.refused("no command 'xyzzy';", "xyzzy")
        command = prcb("--completions").stdout.split()[0]
        self.refused("unknown option '--jsn=1': perhaps json", command, "--jsn=1")
        self.refused("unknown option '--xyzzy';", command, "--xyzzy")

    def test_times_have_units(self):
        commands = prcb("--completions").stdout.split() # a build may lack some
        for command, option, wrong in (("stat", "-I", ("9", "9ms", "10x", "0.009s", "2d", "1e3", "-1s", "s")),
                                       ("stat", "--for", ("0", "0s", "1y", "10 s", "1s1", ".", "1.s", "99999999999h")),
                                       ("top", "-d", ("99ms", "0.05", "50000us")),
                                       ("top", "--keep", ("23h", "0", "3651")),
                                       ("why", "--min", ("0", "999ns", "2min"))):
            for value in wrong if command in commands else ():
                self.refused("%s '%s': must be a time from" % (option, value), command, option, value)
        # What is right is taken, so that the next word is what is refused.
        for command, option, right in (("stat", "-I", ("10", "10ms", "2s", "1min", "1d", "0.5s")),
                                       ("stat", "--for", ("0.5", ".5", "10s", "100ms", "5min", "5m", "1h", "366d")),
                                       ("top", "-d", ("0.1", "100ms", "2min")),
                                       ("top", "--keep", ("1", "7d", "48h")),
                                       ("why", "--min", ("1", "1us", "1000ns", "5ms", "1min"))):
            for value in right if command in commands else ():
                self.refused("unknown option '--no-such'", command, option, value, "--no-such")

    def test_mistyped_words_of_a_filter(self):
        if "top" not in prcb("--completions").stdout.split():
            self.skipTest("this build has no top")
        for word in ("caus:futex", "cause:futx", "redy>5", "ready>x", "usr:root"):
            self.refused("-f: '%s' must be" % word, "top", "-b", "-n", "1", "-f", word)


if __name__ == "__main__":
    unittest.main()
