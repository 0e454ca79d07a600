#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb bench` on programs whose difference is known: what is more is found and named, what is equal
is not, whatever the machine does meanwhile. Witnesses: the program's own account of what it did, the
laws of accounts, and parsers of the formats that are not ours."""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
PRCB = os.path.abspath(os.environ["PRCB"])
WORK = os.path.abspath(os.environ["BENCH_WORK"])
TIMEOUT = 240


def bench(*args, code=0, **options):
    result = subprocess.run([PRCB, "bench", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=TIMEOUT, **options)
    if code is not None and result.returncode != code:
        raise AssertionError("exit status %d: %s%s" % (result.returncode, result.stderr, result.stdout))
    return result


def parts(document):
    return {part["name"]: part for part in document["comparison"]["parts"]}


def bpf_reason():
    result = bench("-n", "2", "--tier", "bpf", "--", "true", code=None)
    return result.stderr.strip() if result.returncode else None


NO_BPF = bpf_reason()
needs_bpf = unittest.skipIf(NO_BPF, "no bpf tier: %s" % NO_BPF)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)


@needs_bpf
class Differences(Folder):
    def test_a_lock_is_found_and_named_with_its_place(self):
        """Every run takes a mutex that another thread holds for a millisecond more, and ends soon after: mostly
        before the next look."""
        document = json.loads(bench("-n", "8", "-j", "--", WORK, "1", "--vs", WORK, "1", "lock", "1").stdout)
        futex = parts(document)["futex"]
        self.assertEqual((futex["owner"], futex["verdict"], futex["a"]), ("program", "more", 0))
        self.assertGreater(futex["low"], 0)
        self.assertLess(futex["high"], 500e6)
        self.assertEqual(parts(document)["threads"]["change"], 1)
        self.assertEqual(parts(document)["futex.count"]["verdict"], "more")
        self.assertIn("cache_get()", [place["function"] for place in document["comparison"]["places"]
                                      if place["cause"] == "futex"], document["sentence"])
        self.assertRegex(document["sentence"], r"^B differs from A: .*futex in \w+\(\)")

    def test_page_faults_are_counted(self):
        """Every run touches three more pages."""
        document = json.loads(bench("-n", "12", "-j", "--no-places", "--", WORK, "1", "pages", "1",
                                    "--vs", WORK, "1", "pages", "4").stdout)
        self.assertEqual(parts(document)["faults"]["verdict"], "more")
        self.assertTrue(2 <= parts(document)["faults"]["change"] <= 4, parts(document)["faults"])

    def test_work_is_found_and_fails_a_gate(self):
        """Half as much work again; the gate fails for what is certain alone."""
        base, xml_file, summary = self.path("base.json"), self.path("junit.xml"), self.path("summary.md")
        bench("-n", "10", "--save", base, "--", WORK, "4")
        result = bench("-n", "10", "--baseline", base, "--fail-if", "run>+10%", "--fail-if", "run>+90%", "--junit",
                       xml_file, "--markdown", summary, "--", WORK, "6", code=3)
        self.assertRegex(result.stdout, r"^this build differs from the baseline: \+[\d.]+m?s run")
        self.assertEqual(result.stderr, "prcb bench: --fail-if 'run>+10%' holds\n")
        suite = xml.etree.ElementTree.parse(xml_file).getroot()
        self.assertEqual([(case.get("name"), case.find("failure") is not None) for case in suite.iter("testcase")],
                         [("run>+10%", True), ("run>+90%", False)])
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        with open(summary) as file:
            self.assertIn("**fails:** run&#62;\\+10%", file.read())
        self.assertEqual(bench("-n", "10", "--baseline", base, "--fail-if", "run>+90%", "--", WORK, "4").returncode, 0)

    def test_parts_are_the_whole(self):
        """Of a program with one thread the parts sum to its time, in each run, and running is what
        the kernel charged it."""
        document = json.loads(bench("-n", "6", "-w", "0", "-j", "--", WORK, "5").stdout)
        runs = document["sides"][0]["runs"]
        self.assertEqual(len(runs), 6)
        for run in runs:
            causes = sum(value for name, value in run.items()
                         if not name.endswith(".count") and name not in
                         ("wall", "user", "system", "faults", "major-faults", "threads", "stolen", "reference"))
            self.assertAlmostEqual(causes, run["wall"], delta=1)
        # Two clocks (docs/figures.md), and what the child was before it was profiled; that may take long,
        # once.
        more = statistics.median((run["user"] + run["system"]) / (run["run"] + run.get("interrupted", 0))
                                 for run in runs)
        self.assertTrue(0.9 < more < 1.2, runs)

    def test_nothing_differs_beside_a_hog(self):
        hog = subprocess.Popen([WORK, "1000000"])
        try:
            text = bench("-n", "8", "--fail-if", "run>+20%", "--fail-if", "futex>0", "--", WORK, "3", "--vs", WORK, "3",
                         code=2)
            self.assertIn("futex is a time", text.stderr)
            bench("-n", "8", "--fail-if", "run>+20%", "--fail-if", "futex>0ms", "--", WORK, "3", "--vs", WORK, "3")
        finally:
            hog.kill()
            hog.wait()


class Everybody(Folder):
    """Without a privilege: run, ready and page faults remain."""

    def test_perf_tier(self):
        text = bench("-n", "4", "--tier", "perf", "-j", "--", WORK, "2", "--vs", WORK, "6").stdout
        self.assertEqual(parts(json.loads(text))["run"]["a"] > 0, True)
        text = bench("-n", "4", "--tier", "perf", "--", WORK, "2", "--vs", WORK, "6").stdout
        self.assertIn("This is the perf tier", text)

    def test_a_failing_command(self):
        result = bench("-n", "2", "--tier", "perf", "--", "false", code=1)
        self.assertRegex(result.stderr, r"'false', run 1, ended with exit status 1: .*-i counts such runs")
        bench("-n", "2", "--tier", "perf", "-i", "--", "false")
        bench("--tier", "perf", "--", self.path("nothing"), code=127)

    def test_few_runs_do_not_tell(self):
        text = bench("-n", "2", "--tier", "perf", "--", WORK, "1", "--vs", WORK, "1").stdout
        self.assertRegex(text, r"^2 runs are not enough to tell whether B differs from A by 2 %; about \d+ would do")
        # No interval is null, not 0. And -- may stand behind --vs, too.
        text = bench("-n", "2", "--tier", "perf", "-j", "--", WORK, "1", "--vs", "--", WORK, "1").stdout
        run = parts(json.loads(text))["run"]
        self.assertEqual((run["low"], run["high"], run["verdict"]), (None, None, "unknown"))

    def test_time_limit(self):
        document = json.loads(bench("--for", "0.3", "-j", "--tier", "perf", "--", "sleep", "0.05").stdout)
        self.assertTrue(2 <= len(document["sides"][0]["runs"]) <= 7)

    def test_files_that_cannot_be_written(self):
        """Nothing is run for a report that would be lost, and what is there stays as it is."""
        ran, there = self.path("ran"), self.path("there")
        with open(there, "w") as file:
            file.write("kept")
        for option in "-o", "--save", "--junit", "--markdown":
            other = "--junit" if option == "--save" else "--save"
            result = bench("-n", "2", "--tier", "perf", other, there, option, self.path("nothing/x"), "--",
                           "touch", ran, code=1)
            self.assertIn("No such file or directory", result.stderr)
            self.assertFalse(os.path.exists(ran), option)
        with open(there) as file:
            self.assertEqual(file.read(), "kept")

    def test_recordings_are_compared_as_runs(self):
        """prcb report --diff with --vs: the same words, document and conditions."""
        if "without SQLite" in subprocess.run([PRCB, "report", self.path("no")], stderr=subprocess.PIPE, text=True,
                                              check=False).stderr:
            self.skipTest("recordings are not built in")
        sides = []
        for side, steps in enumerate(("2", "20")):
            path = self.path("%d.db" % side)
            subprocess.run([PRCB, "record", "-o", path, "--", WORK, steps], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True)
            sides.append([shutil.copy(path, self.path("%d-%d.db" % (side, i))) for i in range(6)])

        def report(*args, code=0):
            result = subprocess.run([PRCB, "report", "--diff", *sides[0], "--vs", *args], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
            self.assertEqual(result.returncode, code, result.stderr)
            return result
        document = json.loads(report(*sides[1], "-j").stdout)
        run = parts(document)["run"]
        self.assertEqual((document["format"], run["verdict"], len(document["sides"][1]["runs"])),
                         ("prcb-bench", "more", 6))
        self.assertGreater(run["b"], 2 * run["a"])
        result = report(*sides[1], "--fail-if", "run>+50%", code=3)
        self.assertRegex(result.stdout, r"^B differs from A: \+[\d.]+ms run")
        self.assertEqual(result.stderr, "prcb report: --fail-if 'run>+50%' holds\n")
        self.assertRegex(report(*sides[0]).stdout, "^B does what A does")
        self.assertIn("two recordings or more", report(sides[1][0], code=2).stderr)

    def test_output_of_commands(self):
        self.assertNotIn("hello\n", bench("-n", "2", "--tier", "perf", "--", "echo", "hello").stdout)
        self.assertIn("hello\n", bench("-n", "2", "--tier", "perf", "--show-output", "--", "echo", "hello").stdout)

    def test_wrong_lines(self):
        for args, words in (
                ([], "no command"),
                (["--", "true", "--vs"], "one of them is missing"),
                (["--", "--vs", "true"], "one of them is missing"),
                (["--baseline", "a", "--", "true", "--vs", "true"], "compare with one of them"),
                (["--any-machine", "--", "true"], "goes with --baseline"),
                (["--fail-if", "run>1%", "--", "true"], "nothing to compare with"),
                (["--fail-if", "run=1%", "--", "true", "--vs", "true"], "FIGURE > or < CHANGE"),
                (["-n", "1", "--", "true"], "'1'")):
            result = bench(*args, code=2)
            self.assertIn(words, result.stderr)
            self.assertEqual((result.stdout, result.stderr.count("\n")), ("", 1), result.stderr)
        result = bench("-n", "2", "--tier", "perf", "--fail-if", "ready>1%", "--", "true", "--vs", "true", code=2)
        self.assertIn("the host's part", result.stderr)

    def test_baselines(self):
        base = self.path("base.json")
        bench("-n", "3", "--tier", "perf", "--save", base, "--", "true")
        with open(base) as file:
            good = json.load(file)
        self.assertEqual((good["format"], good["format_version"], good["comparison"]), ("prcb-bench", 1, None))

        def refused(document, words):
            with open(base, "w") as file:
                file.write(document if isinstance(document, str) else json.dumps(document))
            self.assertRegex(bench("-n", "2", "--tier", "perf", "--baseline", base, "--", "true", code=1).stderr, words)

        for change in ({"format": "x"}, {"format_version": 2}, {"sides": []}, {"machine": None},
                       {"sides": [{"command": "x", "runs": [{"wall": 1}]}]},
                       {"sides": [{"command": "x", "runs": [{"wall": -1}] * 3}]},
                       {"sides": [{"command": "x", "runs": [{"wall": 1e300}] * 3}]}):
            refused({**good, **change}, "no file that prcb bench --save wrote")
        for text in "", "{", "[]", json.dumps(good)[:200]:
            refused(text, "no file that prcb bench --save wrote")
        with open(base, "w") as file:
            json.dump({"version" if name == "format_version" else name: value for name, value in good.items()}, file)
        bench("-n", "2", "--tier", "perf", "--baseline", base, "--any-machine", "--", "true") # as they once were
        other = {**good, "machine": {**good["machine"], "model": "\x1b[31mAnother"}}
        refused(other, r"another machine \((?!.*\x1b)")
        text = bench("-n", "2", "--tier", "perf", "--baseline", base, "--any-machine", "--", "true").stdout
        self.assertIn("parts are compared as shares of the time", text)
        refused({**good, "machine": {**good["machine"], "tier": "bpf"}}, "bpf tier, and this is the perf tier")
        with open(base, "w") as file:
            json.dump({**good, "machine": {**good["machine"], "kernel": "6\x1b[31m\nA line"}}, file)
        text = bench("-n", "2", "--tier", "perf", "--baseline", base, "--", "true").stdout
        self.assertRegex(text, r"(?m)^The baseline was measured on Linux 6\?\[31m\?A line, this on ")
        os.remove(base)
        os.mkfifo(base)
        waiting = subprocess.Popen([PRCB, "bench", "--tier", "perf", "--baseline", base, "--", "true"])
        self.addCleanup(waiting.kill)
        writer = None
        while writer is None and waiting.poll() is None:
            with contextlib.suppress(OSError):  # nobody reads yet
                writer = os.open(base, os.O_WRONLY | os.O_NONBLOCK)
        waiting.terminate()
        self.assertEqual(waiting.wait(timeout=20), -signal.SIGTERM)
        os.close(writer)
        os.remove(base)
        self.assertIn("No such file", bench("--tier", "perf", "--baseline", base, "--", "true", code=1).stderr)

    def test_names_are_data(self):
        """What a command is called obeys nobody: XML, Markdown, terminals."""
        name = self.path("a\x1b[31m<b>&\"|`")
        shutil.copy(shutil.which("true"), name)
        junit, summary = self.path("j.xml"), self.path("s.md")
        text = bench("-n", "2", "--tier", "perf", "--junit", junit, "--markdown", summary, "--", name).stdout
        self.assertNotIn("\x1b", text)
        case = xml.etree.ElementTree.parse(junit).getroot().find("testcase")
        self.assertIn("<b>&\"|`", case.get("name"))


if __name__ == "__main__":
    unittest.main()
