#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb export`: what it writes is read by promtool and by the strict OpenMetrics parser of
python3-prometheus-client, and compared with what the kernel says of the same cgroup. Tests that
lack one of these are skipped."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PRCB = os.path.abspath(os.environ.get("PRCB_EXE") or os.environ.get("PRCB") or
                       os.path.join(SOURCE, "build/src/tools/cli/prcb"))
TIMEOUT = 120
ALL = ["--per-cpu", "--per-name", "--cgroup-causes", "--ready-histogram", "--by-whom", "--containers", "--memory", "--names", "prcb,node,windows"]


def run(*args, **options):
    return subprocess.run([PRCB, "export", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=TIMEOUT, **options)


def bpf_reason():
    result = run("--tier", "bpf", "--for", "0.01")
    return result.stderr.strip() if result.returncode else None


NO_BPF = bpf_reason()
needs_bpf = unittest.skipIf(NO_BPF, "no bpf tier: %s" % NO_BPF)


def samples(text):
    """{'name{labels}': value} of the text format."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            assert series not in found, "twice: " + series
            found[series] = float(value)
    return found


class Formats(unittest.TestCase):
    def test_promtool_is_silent(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("no promtool: install prometheus")
        for options in [], ALL:
            text = run("--for", "0.1", *options)
            self.assertEqual(text.returncode, 0, text.stderr)
            check = subprocess.run([promtool, "check", "metrics"], input=text.stdout, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((check.returncode, check.stdout), (0, ""))

    def test_the_strict_parser_takes_openmetrics(self):
        text = run("--for", "0.1", "--format", "openmetrics", *ALL)
        self.assertEqual(text.returncode, 0, text.stderr)
        code = ("import sys\n"
                "try: from prometheus_client.openmetrics import parser\n"
                "except ImportError: sys.exit(77)\n"
                "for f in parser.text_string_to_metric_families(sys.stdin.read()):\n"
                "  for s in f.samples: print(s.name, f.type, f.unit)\n")
        check = subprocess.run(["/usr/bin/python3", "-c", code], input=text.stdout, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if check.returncode == 77:
            self.skipTest("no prometheus_client: install python3-prometheus-client")
        self.assertEqual(check.returncode, 0, check.stderr)
        self.assertIn("prcb_system_cpu_seconds_total counter seconds", check.stdout)
        self.assertIn("prcb_build_info info", check.stdout)

    def test_each_family_has_its_lines_once_and_together(self):
        text = run("--for", "0.1", *ALL).stdout
        families = re.findall(r"^# TYPE (\S+) ", text, re.M)
        self.assertEqual(len(families), len(set(families)))
        # A histogram's samples have names of their own.
        seen = [re.sub(r"(_latency_seconds)_(bucket|sum|count)$", r"\1", line.split("{")[0].split()[0])
                for line in text.splitlines() if not line.startswith("#")]
        order = [name for i, name in enumerate(seen) if not i or seen[i - 1] != name]
        self.assertEqual(order, families)

    def test_usage(self):
        for args, word in ((["--format", "xml"], "xml"), (["--names", "prcb,apple"], "apple"),
                           (["operand"], "operand")):
            result = run(*args)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(word, result.stderr)
        result = run("--cgroup-include", "(")
        self.assertEqual(result.returncode, 1)
        self.assertIn('regular expression "("', result.stderr)

    def test_a_file_is_renamed_into_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prcb.prom")
            self.assertEqual(run("--for", "0.05", "-o", path).returncode, 0)
            with open(path) as file:
                self.assertIn("\nprcb_up 1\n", file.read())
            self.assertEqual(os.listdir(folder), ["prcb.prom"])
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o644)
            result = run("--for", "0.05", "-o", os.path.join(folder, "none", "x"))
            self.assertEqual(result.returncode, 1)

    def test_looks_that_were_recorded_are_the_same_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "looks.ndjson")
            # Names that are no text: of a thread, and of a cgroup where one can be made.
            named = os.path.join(folder.encode(), b"n\xffo\xed\xa0\x80t")
            os.symlink(shutil.which("sleep"), named)
            sleeper = subprocess.Popen([named, "1000"])
            self.addCleanup(sleeper.wait)
            self.addCleanup(sleeper.kill)
            recorded = [option for option in ALL if option != "--memory"]  # those files are read when asked
            live = run("--for", "0.1", *recorded, "--record", path)
            again = run("--replay", path, *recorded)
            self.assertEqual((live.returncode, again.returncode), (0, 0), again.stderr)
            self.assertIn("n\ufffdffo\ufffded\ufffda0\ufffd80t", again.stdout)
            # Cores are named by this machine's topology, which is not in the file.
            self.assertEqual(*({s: v for s, v in samples(text.stdout).items() if "core=" not in s}
                               for text in (live, again)))
            with open(path, "ab") as file:
                file.write(b'{"ms":1000,"accounts":1}\n')
            result = run("--replay", path)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"line \d+ is not a reading")
            for text in "", "[]\n", '{"ms":"1","accounts":[]}\n':
                with open(path, "w") as file:
                    file.write(text)
                self.assertEqual(run("--replay", path).returncode, 1, text)
        self.assertEqual(run("--replay", "a", "--record", "b").returncode, 2)
        result = run("--for", "0.05", "--record", "/dev/full")
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)

    def test_a_full_disk_is_said(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PRCB, "export", "--for", "0.05"], stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)

    def test_the_perf_tier_leaves_out_what_it_does_not_know(self):
        result = run("--tier", "perf", "--for", "0.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("prcb_system_wait_seconds", result.stdout)
        self.assertNotIn("prcb_cgroup_run", result.stdout)
        self.assertIn('\nprcb_system_cpu_seconds_total{mode="idle"} ', result.stdout)
        self.assertIn('tier="perf"', result.stdout)


@needs_bpf
class Figures(unittest.TestCase):
    @needs_bpf
    def test_the_histogram_is_the_ready_time(self):
        found = samples(run("--tier", "bpf", "--for", "0.5", "--ready-histogram").stdout)
        buckets = [found[series] for series in found if "ready_latency_seconds_bucket" in series]
        self.assertEqual(len(buckets), 23)
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual(buckets[-1], found["prcb_ready_latency_seconds_count"])
        self.assertGreater(buckets[-1], 0)
        # What is not over yet is in the counter of ready time only.
        self.assertLessEqual(found["prcb_ready_latency_seconds_sum"],
                             found['prcb_system_thread_seconds_total{state="ready"}'] + 1e-8)  # rounded

    def test_who_had_the_processors(self):
        found = samples(run("--tier", "bpf", "--for", "0.5", "--by-whom").stdout)
        sums = {}
        for series, value in found.items():
            if "_ready_behind_seconds" in series or "_ready_open_seconds" in series:
                cgroup = re.search(r'cgroup="([^"]*)"', series).group(1)
                sums[cgroup] = sums.get(cgroup, 0) + value
        self.assertTrue(sums)
        for cgroup, value in sums.items():
            self.assertAlmostEqual(
                value, found['prcb_cgroup_ready_seconds_total{cgroup="%s"}' % cgroup], places=6)
        result = run("--tier", "perf", "--for", "0.1", "--by-whom")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("ready_behind", result.stdout)
        self.assertIn("nothing of by whom: the perf tier", result.stderr)

    def test_no_histogram_is_said(self):
        result = run("--tier", "perf", "--for", "0.1", "--ready-histogram")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("ready_latency", result.stdout)
        self.assertIn("no histogram of ready time: the perf tier", result.stderr)

    def test_modes_add_up_to_wall(self):
        values = samples(run("--for", "1").stdout)
        processors = os.sysconf("SC_NPROCESSORS_ONLN")
        modes = sum(v for s, v in values.items() if s.startswith("prcb_system_cpu_seconds_total"))
        self.assertGreater(modes, processors * 1.0)
        states = {s: v for s, v in values.items()
                  if s.startswith("prcb_system_thread_seconds_total")}
        self.assertEqual(len(states), 3)
        causes = sum(v for s, v in values.items() if s.startswith("prcb_system_wait_seconds_total"))
        self.assertAlmostEqual(causes, states['prcb_system_thread_seconds_total{state="wait"}'],
                               places=6)
        self.assertAlmostEqual(
            sum(v for s, v in values.items() if s.startswith("prcb_cgroup_run_seconds_total")),
            states['prcb_system_thread_seconds_total{state="run"}'], places=6)


if __name__ == "__main__":
    unittest.main()
