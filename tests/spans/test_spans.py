#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb why --spans beside programs that publish records by the specification's bytes: all ways in
which code gets to a thread's variable, gdb as the witness, records that are being written, sums."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

PRCB = os.environ["PRCB"]
LIBRARY = os.environ["PRCB_LIBRARY"]
TREE = pathlib.Path(__file__).resolve().parents[2]
SOURCE = pathlib.Path(__file__).with_name("publisher.c")
ROOT = os.geteuid() == 0
BPF = ROOT and os.environ.get("HAVE_BPF") == "1"
MS = 1000000

# Names of programs: their library, how that is compiled, and how the program is.
LIBRARIES = {"gnu": ["-mtls-dialect=gnu"], "desc": ["-mtls-dialect=gnu2"],
             "initial": ["-ftls-model=initial-exec"]}
PROGRAMS = {"exported": ["-rdynamic"], "hidden": [], "fixed": ["-no-pie"], "static": ["-static"],
            "static-pie": ["-static-pie", "-fPIE"]}
if os.uname().machine == "aarch64":
    LIBRARIES.update(gnu=["-mtls-dialect=trad"], desc=["-mtls-dialect=desc"])


def spans(*arguments, user=(), tier="perf", **how):
    result = subprocess.run([*user, PRCB, "why", "--tier", tier, "--spans", "-j", *arguments],
                            capture_output=True, text=True, check=True, **how)
    return json.loads(result.stdout[result.stdout.index("{"):])


def waits(row, cause):
    return sum(wait["ns"] for wait in row["waits"] if wait["cause"] == cause)


class Publishers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="prcb-spans."))
        cls.folder.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.build("exported", *PROGRAMS["exported"])

    @classmethod
    def build(cls, name, *flags, compiler="cc"):
        to = cls.folder / name
        if not to.exists():
            subprocess.run([compiler, "-O1", "-g", "-pthread", SOURCE, *flags, "-o", to], check=True,
                           cwd=cls.folder)
        return str(to)

    def start(self, *argv, user=()):
        process = subprocess.Popen([*user, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process.pid

    def everybody(self):
        """Each way to link the variable, as (name, command)."""
        for name, flags in PROGRAMS.items():
            yield name, [self.build(name, *flags)]
        for name, flags in LIBRARIES.items():
            library = f"lib{name}.so"
            self.build(library, "-DLIBRARY", "-shared", "-fPIC", *flags)
            yield f"linked {name}", [self.build(f"linked-{name}", "-DNO_VARIABLE", "-L.",
                                                f"-l:{library}", "-Wl,-rpath,$ORIGIN")]
            yield f"loaded {name}", [self.build("loads", "-DDLOPEN"), str(self.folder / library)]

    def check_all(self, user=()):
        self.check_these({name: self.start(*command, user=user) for name, command in self.everybody()}, user=user)

    def check_these(self, pids, **how):
        report = spans("--for", "0.6", "--budget", "50",
                       *(word for pid in pids.values() for word in ("-p", str(pid))), **how)
        for name, pid in pids.items():
            rows = [row for row in report["spans"]["rows"] if row["pid"] == pid]
            with self.subTest(name):
                self.assertEqual({row["span_id"] for row in rows}, {"01" * 8, "02" * 8, "03" * 8})
                self.assertTrue(all(row["trace_id"] == 2 * row["span_id"] for row in rows))

    def test_all_linkages(self):
        self.check_all()

    @unittest.skipUnless(ROOT, "nobody is root's to become")
    def test_all_linkages_as_nobody(self):
        self.check_all(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])

    @unittest.skipUnless(BPF and shutil.which("musl-gcc"), "needs musl-gcc, and eBPF")
    def test_musl(self):
        flags = {name: how for name, how in PROGRAMS.items() if name != "static-pie"}
        commands = {name: [self.build("musl-" + name, *how, compiler="musl-gcc")] for name, how in flags.items()}
        self.build("libmusl.so", "-DLIBRARY", "-shared", "-fPIC", compiler="musl-gcc")
        commands["linked"] = [self.build("musl-linked", "-DNO_VARIABLE", "-L.", "-l:libmusl.so", "-Wl,-rpath,$ORIGIN",
                                         compiler="musl-gcc")]
        commands["loaded"] = [self.build("musl-loads", "-DDLOPEN", compiler="musl-gcc"), str(self.folder / "libmusl.so")]
        self.check_these({name: self.start(*command) for name, command in commands.items()}, tier="bpf")

    @unittest.skipUnless(shutil.which("gdb"), "needs gdb")
    def test_gdb_reads_the_same(self):
        pid = self.start(self.build("exported", *PROGRAMS["exported"]))
        rows = {row["tid"]: row["trace_id"] + row["span_id"] for row in
                spans("--for", "0.3", "-p", str(pid))["spans"]["rows"]}
        said = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex",
                               "thread apply all -s x/25xb otel_thread_ctx_v1"],
                              capture_output=True, text=True, check=False).stdout
        found = {}
        for part in re.split(r"(?m)^Thread ", said)[1:]:
            tid = int(re.search(r"LWP (\d+)", part)[1])
            record = "".join(re.findall(r"\t0x(\w\w)", part))
            if record.endswith("01"):  # valid
                found[tid] = record[:48]
        self.assertEqual(len(found), 3, said)
        self.assertEqual(rows, found)

    @unittest.skipUnless(BPF, "waits of 2 ms: needs eBPF")
    def test_records_that_are_being_written(self):
        report = spans("--min", "1", "--budget", "50", "--", self.build("exported"), "changes",
                       tier="bpf")
        rows = report["spans"]["rows"]
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["trace_id"], 2 * row["span_id"])
            self.assertEqual(row["span_id"], 8 * row["span_id"][:2])
        self.assertGreater(report["spans"]["none"]["ns"], 0)  # asleep with half of a record

    def check_sums(self, report):
        rows = [*report["spans"]["rows"], report["spans"]["none"], report["spans"]["unknown"]]
        processes = report["processes"]
        for member in ("run_ns", "ready_ns"):
            self.assertEqual(sum(row[member] for row in rows),
                             sum(process[member] for process in processes))
        causes = {cause["cause"] for process in processes for cause in process["causes"]}
        for cause in causes:
            self.assertEqual(sum(waits(row, cause) for row in rows),
                             sum(row["ns"] for process in processes for row in process["causes"]
                                 if row["cause"] == cause), cause)

    def test_sums_are_those_of_accounts(self):
        pid = self.start(self.build("exported"))
        self.check_sums(spans("--for", "0.3", "-p", str(pid)))

    @unittest.skipUnless(BPF, "the end of a wait: needs eBPF")
    def test_times_are_those_of_accounts(self):
        report = spans("--", self.build("exported"), "work", tier="bpf")
        rows = {row["span_id"][:2]: row for row in report["spans"]["rows"]}
        self.assertEqual(set(rows), {"01", "02"})
        self.check_sums(report)
        self.assertGreaterEqual(waits(rows["01"], "sleep"), 400 * MS)
        self.assertGreaterEqual(waits(rows["02"], "sleep"), 200 * MS)
        self.assertLess(waits(rows["02"], "sleep"), 400 * MS)
        self.assertGreaterEqual(waits(report["spans"]["none"], "sleep"), 200 * MS)

    @unittest.skipUnless(BPF, "who had the processor: needs eBPF")
    def test_ready_behind(self):
        pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        hog = subprocess.Popen([*pinned, "sh", "-c", "while :; do :; done"])
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        report = spans("--", *pinned, self.build("exported"), "ready", tier="bpf")
        self.check_sums(report)
        row = report["spans"]["rows"][0]
        self.assertEqual(row["span_id"], "01" * 8)
        self.assertEqual(sum(edge["ns"] for edge in row["ready_behind"]), row["ready_ns"])
        by = {edge["pid"]: edge["ns"] for edge in row["ready_behind"] if edge["by"] == "thread"}
        self.assertGreater(row["ready_ns"], 10 * MS)
        self.assertGreater(by.get(hog.pid, 0), 0, row)  # others may want the processor, too
        self.assertNotIn(row["pid"], by)

    def brief(self):
        """A shell command: programs that wait for 1 to 3 ms, by their own variable and by a library's."""
        for name, flags in LIBRARIES.items():
            self.build(f"lib{name}.so", "-DLIBRARY", "-shared", "-fPIC", *flags)
            self.build(f"linked-{name}", "-DNO_VARIABLE", "-L.", f"-l:lib{name}.so", "-Wl,-rpath,$ORIGIN")
        return ["sh", "-c", 'cd "$0"; ./exported brief & ./linked-gnu brief & ./linked-desc brief; wait', self.folder]

    def check_brief(self, said, waited):
        """Most of it is known, and no more than the program itself says. waited: pid, span, ns"""
        took = re.findall(r"(?m)^(\d+) took (\d+) (\d+)$", said)
        self.assertEqual(len(took), 3, said)
        for pid, *both in took:
            for span, ns in zip(("01" * 8, "02" * 8), map(int, both)):
                with self.subTest(pid=pid, span=span):
                    self.assertTrue(0.4 * ns < waited[int(pid), span] <= ns, (ns, waited))

    @unittest.skipUnless(BPF, "waits between looks: needs eBPF")
    def test_waits_between_looks(self):
        output = subprocess.run([PRCB, "why", "--tier", "bpf", "--spans", "-j", "--budget", "100", "--", *self.brief()],
                                capture_output=True, text=True, check=True).stdout
        report = json.loads(output[output.index("{"):])
        self.check_sums(report)
        self.check_brief(output, {(row["pid"], row["span_id"]): waits(row, "sleep") for row in report["spans"]["rows"]})
        self.assertGreater(waits(report["spans"]["none"], "sleep"), 3 * 100 * MS)

    @unittest.skipUnless(BPF, "needs eBPF")
    def test_waits_between_looks_are_recorded(self):
        path = str(self.folder / "brief.db")
        said = subprocess.run([PRCB, "record", "-g", "--spans", "-o", path, "--", *self.brief()],
                              capture_output=True, text=True, check=True).stdout
        report = subprocess.run([PRCB, "report", "-j", path], capture_output=True, text=True, check=True).stdout
        self.check_brief(said, {(wait["pid"], row["span_id"]): wait["ns"]
                                for row in json.loads(report)["spans"] for wait in row["waits"]})

    @unittest.skipUnless(BPF, "needs eBPF")
    def test_recordings(self):
        path = str(self.folder / "work.db")
        subprocess.run([PRCB, "record", "-g", "--spans", "-o", path, "--", self.build("exported"),
                        "work"], capture_output=True, check=True)
        with contextlib.closing(sqlite3.connect(path)) as db:
            rows = set(db.execute("SELECT trace_id, span_id FROM wait_stacks WHERE stack NOT NULL"))
        self.assertEqual(rows, {("01" * 16, "01" * 8), ("02" * 16, "02" * 8), (None, None)})
        said = subprocess.run([PRCB, "report", "--table", "spans", path], capture_output=True,
                              text=True, check=True).stdout
        self.assertRegex(said, r"(?m)^ *4\d\d\S*ms +[\d.]+%% +%s %s\n +4\d\d\S*ms sleep in work"
                         % ("01" * 8, "01" * 16))

    def test_text_and_brief(self):
        pid = self.start(self.build("exported"))
        text = subprocess.run([PRCB, "why", "--tier", "perf", "--spans", "--for", "0.3", str(pid)],
                              capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"(?m)^trace (03){16} ")
        self.assertRegex(text, r"(?m)^  span (02){8} .*\n +\w+ .*in wait_in_span\(\), for futex")
        brief = subprocess.run([PRCB, "why", "--tier", "perf", "--spans", "--brief", "--for", "0.3",
                                str(pid)], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual(len(brief), 8192)
        self.assertEqual(len(json.loads(brief)["spans"]["rows"]), 3)


class FromInside(unittest.TestCase):
    """Programs that say their spans by libprcb."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="prcb-spans.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def build(self, *command):
        path = self.folder + "/program"
        subprocess.run([*command, "-L", LIBRARY, "-o", path], check=True)
        return path

    @unittest.skipUnless(shutil.which("c++"), "needs a C++ compiler")
    def test_scopes_of_cpp(self):
        program = self.build("c++", "-std=c++98", "-Wall", "-Wextra", "-Werror", "-I", TREE / "include",
                             SOURCE.with_name("scopes.cc"), "-l:libprcb.so.0")
        result = subprocess.run([program], env=dict(os.environ, LD_LIBRARY_PATH=LIBRARY),
                                stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    @unittest.skipUnless(shutil.which("rustc"), "needs rustc (Debian's package rustc)")
    def test_example_in_rust(self):
        program = self.build("rustc", "-O", TREE / "examples/span.rs", "-l", "prcb")
        with tempfile.NamedTemporaryFile("r") as said:
            report = spans("--", "sh", "-c", 'exec "$0" >"$1"', program, said.name,
                           env=dict(os.environ, LD_LIBRARY_PATH=LIBRARY))
            text = said.read()
        waited = int(re.search(r"ran \d+ ns, ready \d+ ns, waited (\d+) ns", text)[1])
        self.assertGreaterEqual(waited, 400 * MS)
        row = next(row for row in report["spans"]["rows"] if row["span_id"] == "07" * 8)
        self.assertEqual(row["trace_id"], "07" * 16)
        outside = sum(wait["ns"] for wait in row["waits"])
        self.assertTrue(100 * MS < outside <= waited + 100 * MS, (outside, waited))


if __name__ == "__main__":
    unittest.main()
