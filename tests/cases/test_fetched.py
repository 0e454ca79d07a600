#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""--debuginfod: functions and lines of a program without them, from a server that has its debug information.

Witness: the server, which is the test and notes each question, and the program's source."""
import http.server
import os
import re
import shutil
import subprocess
import threading
import unittest

from house import HERE, PRCB, ROOT, House, lacks


class Server(http.server.BaseHTTPRequestHandler):
    files, asked = {}, []

    def do_GET(self):  # pylint: disable=invalid-name
        self.asked.append(self.path)
        body = self.files.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


@unittest.skipUnless(ROOT and not lacks("bpf"), "needs root, and eBPF programs")
class Fetched(House):
    def setUp(self):
        missing = [name for name in ("objcopy", "readelf") if not shutil.which(name)]
        if missing:
            self.skipTest(f"needs {missing[0]}")
        folder = self.folder("bpf")
        self.plain = os.path.join(folder, "plain")
        debug = os.path.join(folder, "debug")
        subprocess.run(["objcopy", "--only-keep-debug", self.program("faulty"), debug], check=True)
        subprocess.run(["objcopy", "--strip-all", self.program("faulty"), self.plain], check=True)
        notes = subprocess.run(["readelf", "-n", self.plain], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
        if not build_id:
            self.skipTest("the linker writes no build ids")
        with open(debug, "rb") as file:
            Server.files, Server.asked = {f"/buildid/{build_id[1]}/debuginfo": file.read()}, []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        self.addCleanup(self.server.server_close)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.environment = os.environ | {"DEBUGINFOD_URLS": f"http://127.0.0.1:{self.server.server_port}",
                                         "DEBUGINFOD_CACHE_PATH": os.path.join(folder, "cache"), "no_proxy": "127.0.0.1"}
        self.waits = subprocess.Popen([self.plain, "convoy"], stdout=subprocess.PIPE)
        self.addCleanup(self.waits.stdout.close)
        self.addCleanup(self.waits.wait)
        self.addCleanup(self.waits.kill)
        self.waits.stdout.readline()

    def ask(self, *words):
        return subprocess.run([PRCB, "why", "--for", "0.5", "--budget", "60", *words], capture_output=True, text=True, timeout=100, check=False,
                              env=self.environment)

    def test_when_it_is_asked_for_alone(self):
        with open(os.path.join(HERE, "faulty", "faulty.c"), encoding="utf-8") as file:
            line = next(number for number, text in enumerate(file, 1) if "take_stats(); /* waits */" in text)
        self.assertNotIn("record_order", self.ask(str(self.waits.pid)).stdout)
        self.assertEqual(Server.asked, [])
        result = self.ask(str(self.waits.pid), "--debuginfod")
        if "needs elfutils' lib" in result.stderr:
            self.skipTest(result.stderr)
        self.assertRegex(result.stderr, r"debug information of \d+ files: 1 fetched")
        self.assertIn(f"record_order (faulty.c:{line})", result.stdout)
        self.assertIn("stats_mutex", result.stdout)
        self.assertIn(next(iter(Server.files)), Server.asked)
        # What was fetched stays where it is, and is used for who asks for it.
        Server.asked.clear()
        result = self.ask("--debuginfod", "--", self.plain, "convoy")
        self.assertIn(f"record_order (faulty.c:{line})", result.stdout)
        self.assertNotIn(next(iter(Server.files)), Server.asked)
        self.assertNotIn("record_order", self.ask(str(self.waits.pid)).stdout)

    def test_of_another_build(self):
        for path, body in Server.files.items():
            self.assertIn(bytes.fromhex(path.split("/")[2]), body)
            Server.files[path] = body.replace(bytes.fromhex(path.split("/")[2]), bytes(20))
        result = self.ask(str(self.waits.pid), "--debuginfod")
        if "needs elfutils' lib" in result.stderr:
            self.skipTest(result.stderr)
        self.assertRegex(result.stderr, r"debug information of \d+ files: 1 fetched")
        self.assertNotIn("record_order", result.stdout)

    def test_what_cannot_be(self):
        del self.environment["DEBUGINFOD_URLS"]
        for words, said in (((str(self.waits.pid),), "DEBUGINFOD_URLS names no server"), (("-a",), "is not for all of a machine")):
            result = self.ask(*words, "--debuginfod")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(said, result.stderr)


if __name__ == "__main__":
    unittest.main()
