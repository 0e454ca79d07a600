#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""While something is measured the time of day is set an hour forward and a day back, and the machine is suspended for an
hour (made up: by a library in front of the C library's clocks). No figure is measured with these clocks: none is
negative, and none has the hour. Witness: CLOCK_MONOTONIC, which neither moves."""
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PRCB, LIBRARY = os.environ["PRCB"], os.environ["STEP_CLOCK_LIBRARY"]
MOST = 30 * 10**9  # what a test here may take, and less than any step
STEPS = "3600 0", "-86400 0", "-86400 3600", "0 7200"
HAS_BPF = not os.environ.get("NO_BPF") and not os.geteuid() and os.path.exists("/sys/kernel/btf/vmlinux")
TIERS = ("perf", "bpf") if HAS_BPF else ("perf",)


class Clocks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prcb-clock-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path, self.step = os.path.join(self.folder, "file"), os.path.join(self.folder, "step")
        self.set("0 0")
        self.environment = os.environ | {"LD_PRELOAD": LIBRARY, "STEP_CLOCK": self.step}
        self.target = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])  # pylint: disable=consider-using-with
        self.addCleanup(self.target.wait)
        self.addCleanup(self.target.kill)

    def set(self, words):
        with open(self.step + ".new", "w", encoding="ascii") as file:
            file.write(words)
        os.rename(self.step + ".new", self.step)

    def start(self, *arguments):
        process = subprocess.Popen([PRCB, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for end in process.stdout, process.stderr:
            self.addCleanup(end.close)
        return process

    def run_steps(self, *arguments):
        """Its output, and how long it ran at most, while the clocks are set."""
        began = time.monotonic_ns()
        process = self.start(*arguments)
        for words in STEPS:
            time.sleep(0.3)
            self.set(words)
        out, said = process.communicate(timeout=60)
        self.set("0 0")
        self.assertEqual(process.returncode, 0, (arguments, said))
        return out, time.monotonic_ns() - began

    def prcb(self, *arguments):
        result = subprocess.run([PRCB, *arguments], capture_output=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def figures(self, value, at=""):
        """Every number of a document that is a length of time."""
        if isinstance(value, dict):
            for key, one in value.items():
                if key != "facts":  # of when it was
                    yield from self.figures(one, key)
        elif isinstance(value, list):
            for one in value:
                yield from self.figures(one, at)
        elif isinstance(value, (int, float)) and at.endswith("_ns") and not re.match(r"(start|end|begin|began|since|from)", at):
            yield at, value

    def check_lengths(self, document, most):
        found = list(self.figures(document))
        self.assertGreater(len(found), 3)
        for name, value in found:
            self.assertGreaterEqual(value, 0, name)
            self.assertLessEqual(value, most * 64, name)  # of some threads together; an hour is more
        return found

    def test_stat(self):
        for tier in TIERS:
            out, most = self.run_steps("stat", "-j", "--tier", tier, "-p", str(self.target.pid), "--for", "1.5")
            document = json.loads(out)
            self.check_lengths(document, most)
            total = document["total"]
            self.assertLessEqual(total["wall_ns"], most)
            self.assertGreaterEqual(total["wall_ns"], 1400000000)
            self.assertEqual(total["run_ns"] + total["ready_ns"] + total["wait_ns"] +
                             ((total["open"] or {}).get("ns", 0) if tier == "bpf" else 0), total["wall_ns"])

    def test_record(self):
        for tier in TIERS:
            _, most = self.run_steps("record", "--tier", tier, "-o", self.path, "--", "sh", "-c",
                                     "for i in 1 2 3 4 5 6 7 8; do sleep 0.2; done")
            document = json.loads(self.prcb("report", "-j", self.path))
            self.check_lengths(document, most)
            self.assertLessEqual(document["span_ns"], most)
            self.assertGreaterEqual(document["span_ns"], 1500000000)
            with contextlib.closing(sqlite3.connect(self.path)) as db:
                for table, column in ("threads", "start_ns"), ("threads", "end_ns"):
                    with contextlib.suppress(sqlite3.OperationalError):
                        low, high = db.execute(f"SELECT min({column}), max({column}) FROM {table} WHERE {column} > 0").fetchone()
                        if low is not None:
                            self.assertLessEqual(high - low, most)

    def test_top(self):
        for tier in TIERS:
            for place in self.path, self.folder:
                _, most = self.run_steps("top", "-q", "--tier", tier, "-w", place, "-p", str(self.target.pid), "-d", "0.1",
                                         "-n", "16")
            files = [os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.endswith(".db")]
            for path in self.path, *files:
                with contextlib.closing(sqlite3.connect(path)) as db:
                    intervals = db.execute("SELECT wall_ns FROM intervals").fetchall()
                    self.assertGreater(min(ns for ns, in intervals), 0)
                    self.assertLessEqual(sum(ns for ns, in intervals), most)
                self.assertIn(str(self.target.pid).encode(), self.prcb("top", "-b", "-i", "-r", path))
            self.assertGreater(len(files), 0)
            for path in files:
                os.unlink(path)

    def test_push(self):
        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                seen.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.run_steps("push", "--tier", "perf", "--to", f"http://127.0.0.1:{server.server_port}", "--as", "pyroscope", "-p",
                       str(self.target.pid), "--every", "0.5", "--for", "1.6")
        lengths = [int(until) - int(since) for since, until in re.findall(r"from=(\d+)&until=(\d+)", " ".join(seen))]
        self.assertGreater(len(lengths), 1, seen)
        self.assertGreater(min(lengths), 0)
        self.assertLess(max(lengths), 4)

    @unittest.skipUnless(HAS_BPF, "needs root and eBPF")
    def test_flight(self):
        """Each moment that is asked for has a file, and of two the later one stays."""
        folder, place = os.path.join(self.folder, "moments"), os.path.join(self.folder, "socket")
        os.mkdir(folder, 0o700)
        process = self.start("flight", "-p", str(self.target.pid), "-o", folder, "--socket", place, "--rest", "0.01", "--keep", "1")
        self.assertIn(b"keeping the last switches", process.stderr.readline())
        for words in ("0 0", *STEPS):
            self.set(words)
            deadline = time.monotonic() + 30
            before = set(os.listdir(folder))
            while not {name for name in os.listdir(folder) if name.endswith(".db")} - before:
                process.send_signal(signal.SIGUSR1)
                self.assertLess(time.monotonic(), deadline, words)
                time.sleep(0.3)
            name, = {name for name in os.listdir(folder) if name.endswith(".db")} - before
            document = json.loads(self.prcb("report", "-j", os.path.join(folder, name)))
            self.assertLess(document["span_ns"], MOST)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), 0, process.stderr.read())


if __name__ == "__main__":
    unittest.main()
