#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/tally.py: real outputs of cmocka, unittest and TAP, counted."""
import collections
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tally  # noqa: E402 (the path above first)

CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] good
[       OK ] good
[ RUN      ] bad
[  ERROR   ] --- 0x1 != 0x2
[   LINE   ] --- c.c:8: error: Failure!
[  FAILED  ] bad
[ RUN      ] none
no PMU here
[  SKIPPED ] none
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] none

 1 SKIPPED TEST(S)
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] bad

 1 FAILED TEST(S)
"""

UNITTEST = """test_a (__main__.A.test_a) ... ok
test_b (__main__.A.test_b)
Doc line. ... skipped "no 'x' here"
test_c (__main__.A.test_c) ... skipped 'why not'
test_d (__main__.A.test_d) ... FAIL
test_e (__main__.B.test_e) ... skipped 'whole class'
setUpClass (__main__.C) ... skipped 'class set-up'

----------------------------------------------------------------------
Ran 5 tests in 0.000s

FAILED (failures=1, skipped=4)
"""

TAP = """1..4
ok 1 - one
# a remark
not ok 2 - two
ok 3 - three # SKIP no network
ok
"""


def entry(result, stdout="", **more):
    return dict({"name": "p:s / x", "result": result, "stdout": stdout}, **more)


def counts(results):
    return dict(collections.Counter(kind for kind, _, _ in results))


class SecondRuns(unittest.TestCase):
    """A test that fails and then passes is neither a failure nor as good as one that passed."""

    def test_passed_then(self):
        good = CMOCKA.replace("[  FAILED  ] bad", "[       OK ] bad")
        results = tally.second_look(entry("FAIL", CMOCKA, returncode=1), entry("OK", good))
        self.assertEqual(counts(results), {"pass": 1, "unsteady": 1, "skip": 1})
        self.assertIn(("unsteady", "bad", "0x1 != 0x2"), results)

    def test_failed_twice(self):
        first = entry("FAIL", CMOCKA, returncode=1)
        self.assertEqual(tally.second_look(first, first), tally.meson_results(first))
        self.assertEqual(tally.second_look(first, None), tally.meson_results(first))

    def test_time_ran_out(self):
        results = tally.second_look(entry("TIMEOUT"), entry("OK", TAP.replace("not ok", "ok")))
        self.assertEqual(counts(results), {"pass": 3, "unsteady": 1, "skip": 1})

    def test_bounded_by_time(self):
        most = tally.AGAIN_S
        for seconds, names in (([], []), ([1] * 6, ["x0", "x1", "x2", "x3", "x4", "x5"]),
                               ([most, 1, 2], ["x1", "x2"]), ([most + 1], [])):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
                for i, duration in enumerate(seconds):
                    print(json.dumps(dict(entry("FAIL"), name=f"p:s / x{i}", duration=duration)),
                          file=log)
                print(json.dumps(entry("OK")), file=log, flush=True)
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    tally.main(["--again", log.name])
                self.assertEqual(output.getvalue().split(), names)


class Outputs(unittest.TestCase):
    def test_cmocka(self):
        results = tally.meson_results(entry("FAIL", CMOCKA, returncode=1))
        self.assertEqual(counts(results), {"pass": 1, "fail": 1, "skip": 1})
        self.assertIn(("skip", "none", "no PMU here"), results)

    def test_unittest(self):
        results = tally.meson_results(entry("FAIL", stderr=UNITTEST, returncode=1))
        self.assertEqual(counts(results), {"pass": 1, "fail": 1, "skip": 4})
        for reason in ("no 'x' here", "why not", "whole class", "class set-up"):
            self.assertIn(reason, [result[2] for result in results])

    def test_tap(self):
        results = tally.meson_results(entry("FAIL", TAP, returncode=1))
        self.assertEqual(counts(results), {"pass": 2, "fail": 1, "skip": 1})
        self.assertIn(("skip", "three", "no network"), results)


class Outcomes(unittest.TestCase):
    def test_other_output_counts_as_one(self):
        self.assertEqual(counts(tally.meson_results(entry("OK", "500 checks"))), {"pass": 1})

    def test_crash_behind_passed_functions_is_a_failure(self):
        text = "[ RUN      ] good\n[       OK ] good\n"
        results = tally.meson_results(entry("FAIL", text, returncode=-11))
        self.assertEqual(counts(results), {"pass": 1, "fail": 1})

    def test_timeout_is_a_failure(self):
        self.assertEqual(counts(tally.meson_results(entry("TIMEOUT", returncode=-15))), {"fail": 1})

    def test_whole_program_skipped_with_its_last_words(self):
        results = tally.meson_results(entry("SKIP", "trying\nneeds root\n"))
        self.assertEqual(results, [("skip", "", "needs root")])

    def test_skip_without_words(self):
        self.assertEqual(tally.meson_results(entry("SKIP"))[0][2], tally.NO_REASON)


if __name__ == "__main__":
    unittest.main(verbosity=2)
