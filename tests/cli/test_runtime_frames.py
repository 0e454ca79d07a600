#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions and tasks of runtimes other than Python's.

Witness: what the runtime itself says of the same threads and tasks, which do not move: the list of
goroutines that Go writes when it is told to quit, the threads that a JVM writes then.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PRCB = os.environ["PRCB"]
HERE = pathlib.Path(__file__).resolve().parent
ROOT = os.geteuid() == 0


def report_of(pid, *options):
    said = subprocess.run([PRCB, "why", "-p", str(pid), "--for", "0.3", *options], capture_output=True,
                          text=True, timeout=60, check=True).stdout
    return json.loads(said) if "-j" in options else said


def is_runtime(function):
    return function.startswith(("runtime.", "internal/runtime", "runtime/"))


def go_says(dump):
    """How many goroutines there are by state and frames, without the runtime's functions."""
    found = collections.Counter()
    for text in re.split(r"\n\n", dump):
        head = re.match(r"goroutine (\d+).*\[([^],]+)", text)
        if not head or head[1] == "0":
            continue
        frames = [(function, file, int(line)) for function, file, line
                  in re.findall(r"^(\S.*)\(.*\)\n\t(\S+):(\d+)", text, re.M) if not function.startswith("created by")]
        began = [frame[0] for frame in frames if frame[0] != "runtime.goexit"]
        if began and (not is_runtime(began[-1]) or began[-1] == "runtime.main"):
            found[head[2], tuple(frame for frame in frames if not is_runtime(frame[0]))] += 1
    return found


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
@unittest.skipUnless(shutil.which("go"), "needs Go's compiler")
class Goroutines(unittest.TestCase):
    maxDiff = None
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        shutil.copy(HERE / "go_waiter.go", cls.folder.name)
        subprocess.run(["go", "build", "-o", "waiter", "go_waiter.go"], check=True, cwd=cls.folder.name,
                       env={**os.environ, "GOCACHE": cls.folder.name + "/cache", "GO111MODULE": "off"})
        subprocess.run(["strip", "-o", "stripped", "waiter"], check=True, cwd=cls.folder.name)

    def start(self, name):
        process = subprocess.Popen([f"{self.folder.name}/{name}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "GOTRACEBACK": "all"})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def compare(self, name):
        """What prcb says, and a moment later the runtime."""
        process = self.start(name)
        tasks = next(row["tasks"] for row in report_of(process.pid, "-j")["processes"])
        process.send_signal(3)
        said = go_says(process.communicate()[1])
        found = collections.Counter()
        for group in tasks["groups"]:
            frames = tuple((frame["function"], frame["file"], frame["line"]) for frame in group["frames"]
                           if not is_runtime(frame["function"]))
            found[group["state"], frames] += group["count"]
        return found, said, tasks

    def test_as_the_runtime_says(self):
        """On a busy machine a goroutine may still be on its way to its wait: then it is tried again."""
        for name in "waiter", "stripped":
            with self.subTest(name):
                for _ in range(4):
                    found, said, tasks = self.compare(name)
                    if found == said and not tasks["moved"]:
                        break
                self.assertEqual((found - said, said - found), (collections.Counter(),) * 2)
                self.assertEqual(tasks["total"] - tasks["own"], sum(said.values()))
                self.assertEqual((tasks["moved"], tasks["beyond"]), (0, 0))

    def test_first_sentence(self):
        said = " ".join(report_of(self.start("waiter").pid).split("\n\n")[0].split())
        self.assertRegex(said, r"^100 of 110 goroutines wait for a lock \(\S+\) in main.\(\*Cache\).Get\(\) "
                               r"\(go_waiter.go:21\), called by main.handle\(\); of the others 1 is in IO wait in "
                               r"main.fetch\(\) \(go_waiter.go:31\)")

    def test_unknown_version(self):
        path = pathlib.Path(self.folder.name, "unknown")
        path.write_bytes(pathlib.Path(self.folder.name, "waiter").read_bytes()
                         .replace(b"\xff Go buildinf:", b"\xff No buildinf:"))
        path.chmod(0o755)
        said = report_of(self.start("unknown").pid)
        self.assertIn("goroutines are not seen (Go): the program does not say its version", said)
        self.assertIn("Go scheduler, goroutines are not seen (may be idle)", said)


def java_says(dump):
    """The frames of the threads that are the test's, innermost first: function and line, 1 where none is known."""
    found = set()
    for text in dump.split("\n\n"):
        if text.lstrip().startswith('"w-'):
            found.add(tuple((function, int(line or 1)) for function, line in
                            re.findall(r"^\tat (?:[^\s(]*//)?(?:[a-z.]+/)?(\S+)\((?:.*:(\d+)|.*)\)$", text, re.M)))
    return found


def java_version():
    if not shutil.which("java"):
        return None
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return re.search(r'"(\d+)', said)[1]


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
@unittest.skipUnless(os.uname().machine == "x86_64" and java_version() in ("17", "21") and shutil.which("javac"), "needs a JDK 17 or 21")
class Java(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen(["java", "-Xmx64m", "-XX:+UseSerialGC", str(HERE / "JavaWaiter.java")],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, "LC_ALL": "C.UTF-8"})
        cls.addClassCleanup(cls.process.communicate)
        cls.addClassCleanup(cls.process.kill)
        assert cls.process.stdout.readline() == "ready\n"

    def test_as_the_vm_says(self):
        rows = report_of(self.process.pid, "-j", "--idle")["processes"]
        parts = [part for row in rows for cause in row["causes"] for part in cause["stacks"] if part.get("frames")]
        found = {tuple((frame["function"], frame["line"]) for frame in part["frames"]
                       if "line" in frame and frame["function"] != "call_stub") for part in parts}
        self.process.send_signal(3)
        dump = []
        while "JNI global refs" not in (dump or [""])[-1]:
            dump.append(self.process.stdout.readline())
        said = java_says("".join(dump))
        self.assertEqual(len(said), 6)
        for frames in said:
            self.assertIn(frames, found)
        for part in parts:
            # A short wait, chosen at random, may be in the middle of what the compiler made.
            self.assertTrue(part["complete"] or part["ns"] < 10000000, part)
            # What the VM waits with for objects that nobody uses any more is no fault of the program's.
            if any(frame["function"] == "java.lang.ref.ReferenceQueue.remove" for frame in part["frames"]):
                self.assertEqual(part["kind"], "idle", part)

    def test_places(self):
        said = " ".join(report_of(self.process.pid, "--stacks", "0").split())
        for place in (r"< JavaWaiter\.größer \(JavaWaiter\.java:\d+\) <", r"waits for a Java monitor in JavaWaiter\.enter\(\)",
                      r"JavaWaiter\.inner \S+ < JavaWaiter\.hot \S+ < JavaWaiter\.compiled \S+ <"):
            self.assertRegex(said, place)


def ruby_version():
    said = subprocess.run(["ruby", "-e", "print RUBY_VERSION"], capture_output=True, text=True, check=False).stdout \
        if shutil.which("ruby") else ""
    return said.rpartition(".")[0]


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
@unittest.skipUnless(os.uname().machine == "x86_64" and ruby_version() == "3.1", "needs Ruby 3.1")
class Ruby(unittest.TestCase):
    def test_as_the_interpreter_says(self):
        process = subprocess.Popen(["ruby", str(HERE / "ruby_waiter.rb")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        said = [tuple((function, file, int(line)) for function, file, line in
                      (frame.split("\t") for frame in text.rstrip("\n").split("\v")))
                for text in iter(process.stdout.readline, "ready\n")]
        self.assertEqual(len(said), 10)
        report = report_of(process.pid, "-j", "--idle")
        parts = [part for row in report["processes"] for cause in row["causes"] for part in cause["stacks"] if part.get("frames")]
        found = {tuple((frame["function"], frame["file"], frame["line"]) for frame in part["frames"] if "line" in frame)
                 for part in parts}
        for frames in said:
            self.assertIn(frames, found)
        self.assertEqual(report["reader"]["uninterpreted"], 0)
        text = " ".join(report_of(process.pid).split())
        self.assertRegex(text, r"waits for a Ruby mutex in get\(\) \(ruby_waiter\.rb:14\)")


def node_says():
    """Whether Node exports where V8's objects have what; 18 and 20 are tried."""
    said = subprocess.run(["node", "-p", "process.versions.node"], capture_output=True, text=True, check=False).stdout \
        if shutil.which("node") else ""
    return said.split(".")[0] in ("18", "20")


@unittest.skipUnless(ROOT, "needs root: causes of others' waits")
@unittest.skipUnless(shutil.which("node"), "needs Node")
class Node(unittest.TestCase):
    def start(self, *command, **options):
        process = subprocess.Popen(["node", *command], text=True, start_new_session=True, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(os.killpg, process.pid, 9)
        return process

    @unittest.skipUnless(node_says(), "needs a Node 18 or 20 that exports V8's words for debuggers")
    def test_as_the_vm_says(self):
        process = self.start("--no-opt", str(HERE / "node_waiter.js"), stdout=subprocess.PIPE)
        said = [tuple(tuple(frame) for frame in frames) for frames in json.loads(process.stdout.readline())]
        self.assertEqual(len(said), 5)
        for _ in range(4):  # on a busy machine a thread may still be on its way to its wait
            report = report_of(process.pid, "-j", "--idle")
            parts = [part for row in report["processes"] for cause in row["causes"] for part in cause["stacks"]
                     if part.get("frames")]
            found = {tuple((frame["function"], frame["file"], frame["line"]) for frame in part["frames"]
                           if "line" in frame and not frame["file"].endswith((".c", ".cc", ".h"))) for part in parts}
            if found.issuperset(said):
                break
        for frames in said:
            self.assertIn(frames, found)
        self.assertEqual(report["reader"]["uninterpreted"], 0)

    @unittest.skipUnless(node_says(), "needs a Node 18 or 20 that exports V8's words for debuggers")
    def test_a_step_that_was_taken(self):
        program = "const word = new Int32Array(new SharedArrayBuffer(4));\n" \
                  "function nap(value) { Atomics.wait(word, 0, value, 1e8); return value; }\n" \
                  "function outer(value) { return nap(value) + 1; }\n" \
                  "for (let i = 0; i < 200000; i++) outer(1);\n" \
                  "console.log('ready');\nouter(0);"
        for step in (), ("--no-turbo-inlining",):
            process = self.start(*step, "-e", program, stdout=subprocess.PIPE)
            process.stdout.readline()
            reader = report_of(process.pid, "-j", "--idle")["reader"]
            self.assertEqual("--no-turbo-inlining" in str(reader["unread"]), not step)
            self.assertEqual(reader["uninterpreted"] == 0, bool(step))

    def test_first_sentence(self):
        program = "function load() { require('child_process').execSync('echo ready >&2; exec sleep 1000', " \
                  "{stdio: ['ignore', 'ignore', 'inherit']}); }\n" \
                  "function handle() { load(); }\nhandle();\n"
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "server.js").write_text(program, encoding="ascii")
            process = subprocess.Popen(["node", "--perf-basic-prof", "--interpreted-frames-native-stack", "server.js"],
                                       cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
            try:
                self.assertEqual(process.stderr.readline(), "ready\n")
                said = " ".join(report_of(process.pid).split())
            finally:
                os.killpg(process.pid, 9)
                process.communicate()
                pathlib.Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
        self.assertRegex(said, r"waits for a child process to end: .* in load\(\) \(server\.js:1\), called by handle\(\)")


if __name__ == "__main__":
    unittest.main()
