#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb-exporter as Prometheus, node_exporter, users and attackers meet it. PRCB_EXPORTER and PRCBD
name the programs. What a test needs and the machine lacks is the reason of a skip."""

import base64
import contextlib
import gzip
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "daemon"))
import wire  # noqa: E402

EXPORTER = os.environ.get("PRCB_EXPORTER", "prcb-exporter")
PRCBD = os.environ.get("PRCBD", "prcbd")
PRCB = os.environ.get("PRCB")
SHORT_LIVES = os.environ.get("SHORT_LIVES")
DEADLINE = 60
# At least; else for some seconds.
SCRAPES = int(os.environ.get("PRCB_TEST_SCRAPES", "0")) * (10 if os.environ.get("PRCB_ATTACK_TIMES") else 1)
SANITIZED = os.environ.get("SANITIZED", "none") != "none"
SLOW = bool(os.environ.get("PRCB_TEST_SLOW"))
OPENMETRICS = ("application/openmetrics-text;version=1.0.0,"
               "application/openmetrics-text;version=0.0.1;q=0.75,"
               "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")


def wait_for(condition, what):
    deadline = time.monotonic() + DEADLINE
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError("not within %d s: %s" % (DEADLINE, what))
        time.sleep(.02)


class Over(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(self.path)


def samples(text):
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            assert series not in found, "twice: " + series
            found[series] = float(value)
    return found


class Exporter:
    """One on a unix socket; other addresses by arguments. program: that executes it."""

    def __init__(self, *args, tier="perf", program=(), **options):
        self.folder = tempfile.mkdtemp(prefix="prcb-exporter-")
        os.chmod(self.folder, 0o777)
        self.path = self.folder + "/socket"
        self.log = open(self.folder + "/log", "w+b")
        self.process = subprocess.Popen(
            [*program, EXPORTER, "--tier", tier, "--web.listen-address=unix:" + self.path, *args],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **options)
        try:
            wait_for(lambda: self.answers() or self.process.poll() is not None, "an answer")
            if self.process.poll() is not None:
                raise AssertionError("prcb-exporter ended: " + self.said())
        except BaseException:
            self.stop()
            raise

    def answers(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return not probe.connect_ex(self.path)

    def said(self):
        with open(self.folder + "/log", errors="replace") as file:
            return file.read()

    def get(self, path="/metrics", method="GET", headers=None, body=None):
        connection = Over(self.path)
        connection.request(method, path, headers=headers or {}, body=body)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response, data

    def samples(self):
        response, data = self.get()
        assert response.status == 200, response.status
        return samples(data.decode())

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Flight(unittest.TestCase):
    def test_asks_the_flight_recorder(self):
        """Over the unix socket alone: what is asked reaches the recorder, and nothing runs is said."""
        port = free_port()
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as recorder:
            place = folder + "/recorder"
            exporter = Exporter(f"--web.listen-address=127.0.0.1:{port}", env={**os.environ, "PRCB_FLIGHT_SOCKET": place})
            self.addCleanup(exporter.stop)
            asks = "/flight/save?reason=p99%20over%201%20s"
            self.assertEqual(exporter.get(asks, "POST")[0].status, 503)
            recorder.bind(place)
            recorder.setblocking(False)
            self.assertEqual(exporter.get(asks, "POST")[0].status, 202)
            self.assertEqual(recorder.recv(1000), b"0\n\np99 over 1 s")
            self.assertEqual(exporter.get(asks)[0].status, 404)
            self.assertEqual(exporter.get("/metrics", "POST")[0].status, 405)
            inet = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            self.addCleanup(inet.close)
            inet.request("POST", asks)
            self.assertEqual(inet.getresponse().status, 403)
            with self.assertRaises(BlockingIOError):
                recorder.recv(1)


class Case(unittest.TestCase):
    def start(self, *args, **options):
        exporter = Exporter(*args, **options)
        self.addCleanup(exporter.stop)
        return exporter

    def folder(self):
        folder = tempfile.mkdtemp(prefix="prcb-exporter-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        return folder

    def prometheus(self, folder, targets):
        """A Prometheus, in a folder, that scrapes these ports here, or addresses, each second. Returns
        its own port."""
        targets = ["127.0.0.1:%d" % t if isinstance(t, int) else t for t in targets]
        own = free_port()
        with open(folder + "/p.yml", "w") as file:
            file.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: prcb\n"
                       "  static_configs: [{targets: [%s]}]\n" %
                       ", ".join("'%s'" % target for target in targets))
        with open(folder + "/log", "w") as log:
            prometheus = subprocess.Popen(
                ["prometheus", "--config.file=" + folder + "/p.yml", "--storage.tsdb.path=" + folder +
                 "/data", "--web.listen-address=127.0.0.1:%d" % own, "--log.level=warn",
                 "--web.console.templates=" + folder, "--web.console.libraries=" + folder],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def stop():
            prometheus.kill()
            prometheus.wait()
        self.addCleanup(stop)
        return own

    def need(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest("no %s" % program)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Http(Case):
    def setUp(self):
        self.exporter = self.start()

    def test_pages(self):
        response, data = self.exporter.get("/")
        self.assertEqual(response.status, 200)
        self.assertIn(b'href="/metrics"', data)
        self.assertEqual(self.exporter.get("/-/healthy")[0].status, 200)
        self.assertEqual(self.exporter.get("/-/ready")[0].status, 200)
        self.assertEqual(self.exporter.get("/none")[0].status, 404)
        self.assertEqual(self.exporter.get("/metrics/../x")[0].status, 404)
        response, data = self.exporter.get(method="HEAD")
        self.assertEqual((response.status, data), (200, b""))

    def test_only_get_without_a_body(self):
        for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE":
            self.assertEqual(self.exporter.get(method=method)[0].status, 405, method)
        # The answer comes before the body, and the connection is closed.
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE)
            s.connect(self.exporter.path)
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
            self.assertIn(b" 400 ", s.recv(4096))

    def test_formats(self):
        for accept, kind in ((None, "text/plain; version=0.0.4"), ("*/*", "text/plain; version=0.0.4"),
                             ("application/json", "text/plain; version=0.0.4"),
                             (OPENMETRICS, "application/openmetrics-text; version=1.0.0")):
            response, data = self.exporter.get(headers={"Accept": accept} if accept else {})
            self.assertTrue(response.getheader("Content-Type").startswith(kind), accept)
            self.assertEqual(data.endswith(b"# EOF\n"), "openmetrics" in kind)

    def test_gzip(self):
        response, data = self.exporter.get(headers={"Accept-Encoding": "gzip"})
        self.assertEqual(response.getheader("Content-Encoding"), "gzip")
        self.assertIn(b"prcb_up 1", gzip.decompress(data))
        response, data = self.exporter.get(headers={"Accept-Encoding": "gzip;q=0"})
        self.assertIsNone(response.getheader("Content-Encoding"))

    def test_a_connection_is_kept(self):
        connection = Over(self.exporter.path)
        for _ in range(3):
            connection.request("GET", "/metrics")
            first = connection.sock
            self.assertEqual(connection.getresponse().read()[:1], b"#")
            self.assertIs(connection.sock, first)
        connection.close()

    def test_garbage_slow_ones_and_many(self):
        garbage = [b"\0" * 100, b"GET\n\n", b"GET / HTTP/9.9\r\n\r\n", b"\xff" * 70000,
                   b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 10000000,
                   b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]
        for text in garbage:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(DEADLINE)
                s.connect(self.exporter.path)
                try:
                    s.sendall(text)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
                except OSError:
                    pass
        held = []
        try:
            for _ in range(200):
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(1)
                held.append(s)
                try:
                    s.connect(self.exporter.path)
                    s.sendall(b"GET /met")
                except OSError:
                    break
        finally:
            for s in held:
                s.close()

        def served():
            try:
                return self.exporter.get()[0].status == 200
            except (OSError, http.client.HTTPException):
                return False  # the others' places are not free yet
        wait_for(served, "service after a flood")
        with open("/proc/%d/status" % self.exporter.process.pid) as file:
            resident = int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        if not SANITIZED:
            self.assertLess(resident, 200000)


class Crowds(Case):
    """Others on this machine, who keep connections."""

    def setUp(self):
        self.port = free_port()
        self.exporter = self.start("--web.listen-address=localhost:%d" % self.port)

        def listens():  # its other socket is first
            with socket.socket() as s:
                return not s.connect_ex(("127.0.0.1", self.port))
        wait_for(listens, "a socket that listens")
        self.held = []
        self.addCleanup(lambda: [s.close() for s in self.held])

    def hold(self, address, text):
        s = socket.socket()
        self.held.append(s)
        s.settimeout(DEADLINE)
        s.bind((address, 0))
        s.connect(("127.0.0.1", self.port))
        s.sendall(text)
        return s

    def scrape(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return s.recv(15)

    def test_names_that_are_not_this_machines(self):
        """As a browser on this machine asks for a page whose name leads here."""
        for host, status in ((None, 200), ("localhost", 200), ("LOCALHOST:1", 200), ("127.0.0.1:9", 200), ("[::1]:9", 200),
                             (socket.gethostname(), 200), ("evil.example", 421), ("evil.example:10042", 421),
                             ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 200)):
            with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE) as s:
                head = "" if host is None else "Host: %s\r\n" % host
                s.sendall(b"GET /metrics HTTP/1.%d\r\n%s\r\n" % (host is not None, head.encode()))
                self.assertEqual(s.recv(12)[9:], b"%d" % status, host)
        # Over another address the name is whoever's; so it is over a unix socket.
        self.assertEqual(self.exporter.get(headers={"Host": "evil.example"})[0].status, 200)

    def test_requests_that_never_end(self):
        # From addresses of their own, and from that of the one who scrapes.
        for address in *("127.0.0.%d" % i for i in range(2, 8)), "127.0.0.1", "127.0.0.1":
            for _ in range(16):
                self.hold(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
            self.assertEqual(self.scrape(), b"HTTP/1.1 200 OK")
        if os.environ.get("PRCB_ATTACK_TIMES"):  # takes ten seconds, however many bytes come
            last = self.held[-1]
            last.setblocking(False)

            def ended():
                try:
                    last.send(b"a")
                    return last.recv(1) == b""
                except BlockingIOError:
                    return False
                except OSError:
                    return True
            wait_for(ended, "the end of a request that takes too long")

    @unittest.skipIf(os.geteuid(), "needs root: it becomes another user")
    def test_another_user_in_bursts(self):
        """A user of this machine takes places of that user alone, not that of a scraper that is about to ask."""
        scraper = self.hold("127.0.0.1", b"GET /metrics HTTP/1.0\r\n")
        os.seteuid(41234)  # whose the sockets are
        try:
            held = [self.hold("127.0.0.1", b"") for _ in range(200)]
        finally:
            os.seteuid(0)
        self.assertTrue(wait_for(lambda: not held[0].recv(1), "an end of one of theirs"))
        scraper.sendall(b"\r\n")
        self.assertEqual(scraper.recv(15), b"HTTP/1.1 200 OK")

    def test_connections_that_are_kept(self):
        for _ in range(100):
            s = self.hold("127.0.0.1", b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b" 200 ", s.recv(100))
        self.assertEqual(self.scrape(), b"HTTP/1.1 200 OK")

    def test_answers_that_nobody_reads(self):
        for _ in range(100):
            self.hold("127.0.0.1", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4)
        self.assertEqual(self.scrape(), b"HTTP/1.1 200 OK")


class Profiles(Case):
    """/debug/pprof: by prcb itself, and by programs in its place that do what they should not."""

    def in_its_place(self, script):
        path = self.folder() + "/prcb"
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return path

    def test_go_reads_it(self):
        self.need("go")
        if not PRCB:
            self.skipTest("PRCB does not name prcb")
        port = free_port()
        self.start("--pprof", "2", "--pprof-program", PRCB, "--web.listen-address=127.0.0.1:%d" % port)
        target = subprocess.Popen(["sleep", "60"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        folder = self.folder()
        for page, kind, parts in (("wait", "off_cpu", ("ready", "wait")), ("profile", "cpu", ("run",))):
            result = subprocess.run(["go", "tool", "pprof", "-raw", "http://127.0.0.1:%d/debug/pprof/%s"
                                     "?seconds=1&comm=sleep" % (port, page)], capture_output=True, text=True,
                                    timeout=DEADLINE, env=os.environ | {"PPROF_TMPDIR": folder})
            if "built without" in result.stderr:
                self.skipTest(result.stderr)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("PeriodType: %s nanoseconds" % kind, result.stdout)
            totals = {name: int(ns) for name, ns in re.findall(r"(\w+)_ns=(\d+)", result.stdout)}
            rows = re.findall(r"(?m)^ +(\d+): [\d ]+$",
                              result.stdout.split("Samples:")[1].split("Locations")[0])
            self.assertEqual(sum(map(int, rows)), sum(totals[part] for part in parts), result.stdout)

    def test_off_unless_asked_for(self):
        self.assertEqual(self.start().get("/debug/pprof/wait")[0].status, 404)

    def test_what_is_asked_for_reaches_no_command_line(self):
        program = self.in_its_place('printf "%s\\n" "$@"')
        exporter = self.start("--pprof", "1", "--pprof-seconds", "20", "--pprof-program", program)
        for wrong in ("seconds=0", "seconds=21", "seconds=1e1", "seconds=-1", "seconds=", "comm=", "comm=-a",
                      "comm=1", "comm=/x", "comm=" + 16 * "x", "cgroup=x", "cgroup=", "cgroup=/a/../..",
                      "cgroup=/..", "cgroup=/a/../b", "cgroup=/a&comm=b", "cgroup=/" + 5000 * "a"):
            self.assertEqual(exporter.get("/debug/pprof/wait?" + wrong)[0].status, 400, wrong)
        response, data = exporter.get("/debug/pprof/wait?seconds=3&comm=%24%28x%29%3B%20y")
        self.assertEqual(response.status, 200)
        self.assertEqual(data.decode().splitlines(), ["why", "--pprof", "wait", "--for", "3", "--budget", "5",
                                                      "--tier", "perf", "$(x); y"])
        self.assertEqual(response.headers["Content-Type"], "application/octet-stream")
        data = exporter.get("/debug/pprof/lock?cgroup=/a%20b")[1].decode().splitlines()
        self.assertEqual((data[2], data[-2], data[-1][-4:]), ("lock", "--cgroup", "/a b"))
        self.assertEqual(exporter.get("/debug/pprof/profile")[1].decode().splitlines()[-1], "-a")
        self.assertEqual(exporter.get("/debug/pprof/wait", method="HEAD")[0].status, 404)

    def test_programs_that_fail(self):
        for script, status, said in (("echo no >&2; exit 3", 503, b"no profile: no\n"), ("exit 0", 503, b"no profile"),
                                     ("kill -9 $$", 503, b"no profile"),
                                     ("head -c 40000000 /dev/zero", 503, b"larger than")):
            response, data = self.start("--pprof", "1", "--pprof-program",
                                        self.in_its_place(script)).get("/debug/pprof/wait")
            self.assertEqual(response.status, status, script)
            self.assertIn(said, data)
        response, data = self.start("--pprof", "1", "--pprof-program", "/nonexistent").get("/debug/pprof/wait")
        self.assertEqual((response.status, b"does not start" in data), (503, True))

    def test_many_at_a_time(self):
        """Two are made, others are refused, and figures go on; a place is free again after each. At the
        end those that go on are ended with it."""
        folder = self.folder()
        fifo = folder + "/fifo"
        os.mkfifo(fifo)
        exporter = self.start("--pprof", "2", "--pprof-program",
                              self.in_its_place("echo $$ >> %s/pids; cat %s" % (folder, fifo)))

        def begin():
            connection = Over(exporter.path)
            connection.request("GET", "/debug/pprof/wait")
            self.addCleanup(connection.close)
            return connection

        def pids():
            path = pathlib.Path(folder + "/pids")
            return path.read_text().splitlines() if path.exists() else []

        def started(count):
            return len(pids()) == count

        first = [begin(), begin()]
        wait_for(lambda: started(2), "two programs")
        self.assertEqual(exporter.get("/debug/pprof/wait")[0].status, 429)
        self.assertEqual(exporter.get()[0].status, 200)
        with open(fifo, "w") as file:
            file.write("x")
        answers = sorted(c.getresponse().read() for c in first)
        self.assertEqual(b"".join(answers).count(b"x"), 1)
        begin()
        wait_for(lambda: started(3), "a third program")
        exporter.process.terminate()
        self.assertEqual(exporter.process.wait(DEADLINE), 0)
        last = int(pids()[-1])
        wait_for(lambda: not os.path.exists("/proc/%d" % last), "the program's end")


class Arguments(Case):
    def run_it(self, *args):
        return subprocess.run([EXPORTER, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=DEADLINE)

    def test_help_and_version(self):
        self.assertIn("--web.config.file", self.run_it("--help").stdout)
        self.assertRegex(self.run_it("--version").stdout, r"^prcb-exporter \d+\.\d+")

    def test_mistakes(self):
        for args in (["--none"], ["operand"], ["--max-cgroups", "0"], ["--tier", "x"],
                     ["--names", "apple"], ["--web.telemetry-path", "metrics"]):
            self.assertEqual(self.run_it(*args).returncode, 2, args)
        for args, word in ((["--web.listen-address", "nonsense"], "HOST:PORT"),
                           (["--web.config.file", "/none"], "/none"),
                           (["--web.systemd-socket"], "systemd passed no socket")):
            result = self.run_it(*args)
            self.assertEqual(result.returncode, 1, args)
            self.assertIn(word, result.stderr)

    def test_a_socket_of_somebody_else(self):
        """Only what a killed exporter of the same user left is replaced, and only its own removed."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = folder + "/socket"
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen()
            result = self.run_it("--tier", "perf", "--web.listen-address", "unix:" + path)
            self.assertEqual(result.returncode, 1)
            self.assertIn("in use", result.stderr)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
        if os.geteuid() == 0:
            os.chown(path, 1, 1)
            self.assertEqual(self.run_it("--tier", "perf", "--web.listen-address", "unix:" + path).returncode, 1)
            self.assertTrue(os.path.exists(path))
            os.chown(path, 0, 0)
        with subprocess.Popen([EXPORTER, "--tier", "perf", "--web.listen-address=unix:" + path],
                              stderr=subprocess.PIPE) as process:
            def answers():
                with socket.socket(socket.AF_UNIX) as probe:
                    return not probe.connect_ex(path)
            wait_for(answers, "an answer")
            os.unlink(path)
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(path)
                process.terminate()
                self.assertEqual(process.wait(DEADLINE), 0)
                self.assertTrue(os.path.exists(path))

    def test_systemd_socket(self):
        both = socket.has_dualstack_ipv6()  # as systemd listens by default: IPv4's addresses are IPv6's then
        with socket.create_server(("::" if both else "127.0.0.1", 0), dualstack_ipv6=both,
                                  family=socket.AF_INET6 if both else socket.AF_INET) as listener:
            port = listener.getsockname()[1]

            def pass_it():
                os.dup2(listener.fileno(), 3)
                os.set_inheritable(3, True)
            process = subprocess.Popen(
                ["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" --tier perf --web.systemd-socket',
                 EXPORTER], preexec_fn=pass_it, stdin=subprocess.DEVNULL,
                close_fds=False)
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            connection.request("GET", "/metrics")
            self.assertIn(b"prcb_up 1", connection.getresponse().read())
            connection.request("GET", "/metrics", headers={"Host": "evil.example"})
            self.assertEqual(connection.getresponse().status, 421)
            connection.close()
        finally:
            process.terminate()
            self.assertEqual(process.wait(DEADLINE), 0)


class Guarded(Case):
    def config(self, text):
        if not hasattr(self, "config_folder"):
            self.config_folder = self.folder()
            self.file = os.path.join(self.config_folder, "web.yml")
        beside = self.file + ".new"
        with open(beside, "w") as file:
            file.write(text)
        os.rename(beside, self.file)
        return "--web.config.file=" + self.file

    def user(self, name, password, cost=5):
        made = subprocess.run(["htpasswd", "-nbB", "-C%d" % cost, name, password], stdout=subprocess.PIPE,
                              text=True, check=True).stdout.strip()
        return "  %s: %s\n" % tuple(made.split(":", 1))

    @staticmethod
    def says(name, password):
        token = base64.b64encode(("%s:%s" % (name, password)).encode()).decode()
        return {"Authorization": "Basic " + token}

    def status(self, *who):
        return self.exporter.get(headers=self.says(*who) if who else {})[0].status

    def test_users(self):
        self.need("htpasswd")
        self.exporter = self.start(
            self.config("basic_auth_users:\n" + self.user("prom", "secret")))
        response, _ = self.exporter.get()
        self.assertEqual(response.status, 401)
        self.assertIn("Basic", response.getheader("WWW-Authenticate"))
        self.assertEqual(self.status("prom", "secret"), 200)
        for who in ("prom", "wrong"), ("nobody", "secret"), ("", ""):
            # Guesses are limited, too.
            self.assertIn(self.status(*who), (401, 503))
        for _ in range(50):
            self.assertEqual(self.status("prom", "secret"), 200)
        guesses = [self.status("prom", str(i)) for i in range(40)]
        self.assertIn(503, guesses)
        self.assertNotIn(200, guesses)
        for header in "Basic", "Basic !!!", "Bearer x", "Basic " + "A" * 5000:
            self.assertIn(self.exporter.get(headers={"Authorization": header})[0].status,
                          (401, 503, 431, 400))
        # Changed users count without a restart; a file that is broken changes nothing.
        self.config("basic_auth_users:\n" + self.user("prom", "other"))
        wait_for(lambda: self.status("prom", "other") == 200, "the new password")
        self.assertNotEqual(self.status("prom", "secret"), 200)
        self.config("basic_auth_user:\n  prom: x\n")
        wait_for(lambda: "basic_auth_user" in self.exporter.said(), "the error")
        self.assertEqual(self.status("prom", "other"), 200)
        self.assertEqual(self.exporter.get()[0].status, 401)

    def test_guesses_lock_nobody_out(self):
        """Two users are let in, however many guess meanwhile."""
        self.need("htpasswd")
        self.exporter = self.start(self.config(
            "basic_auth_users:\n" + self.user("one", "first") + self.user("two", "second")))
        for who in ("one", "first"), ("two", "second"):
            self.assertEqual(self.status(*who), 200)
        for i in range(40):
            self.assertIn(self.status("one", str(i)), (401, 503))
            self.assertEqual(self.status("one", "first"), 200)
            self.assertEqual(self.status("two", "second"), 200)
        # Who stays as she was is known after a reload.
        two = [line + "\n" for line in pathlib.Path(self.file).read_text().splitlines() if " two" in line]
        self.config("basic_auth_users:\n" + self.user("three", "x") + two[0])
        wait_for(lambda: "was reloaded" in self.exporter.said(), "the new users")
        self.assertEqual(self.status("two", "second"), 200)
        self.assertNotEqual(self.status("one", "first"), 200)

    @unittest.skipIf(SANITIZED, "times, of which a sanitizer says nothing")
    def test_time_tells_no_names(self):
        """A name that nobody has takes as long as one that somebody has."""
        self.need("htpasswd")
        self.exporter = self.start(self.config("basic_auth_users:\n" + self.user("prom", "secret", 12)))

        def took(name):
            while True:
                began = time.monotonic()
                status = self.status(name, "wrong")
                if status == 401:
                    return time.monotonic() - began
                self.assertEqual(status, 503)
                time.sleep(.05)
        # By turns, and the shortest of five: what a busy machine adds is no part of it.
        nobody, known = (min(times) for times in zip(*[(took("nobody"), took("prom")) for _ in range(5)]))
        self.assertGreater(nobody / known, .6)

    def certificate(self, name, *more, out="crt"):
        folder = self.config_folder
        subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        "%s/%s.key" % (folder, name), "-subj", "/CN=" + name, "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-out", "%s/%s.%s" % (folder, name, out), *more],
                       check=True, stderr=subprocess.DEVNULL, cwd=folder)

    def over_tls(self, client=None):
        context = ssl.create_default_context(cafile=self.config_folder + "/server.crt")
        # From Python 3.13 on extensions are asked for that these certificates do not have.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if client:
            context.load_cert_chain("%s/%s.crt" % (self.config_folder, client),
                                    "%s/%s.key" % (self.config_folder, client))
        # By its address: not every machine has a hosts file.
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context,
                                                 timeout=DEADLINE)
        try:
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def expired(self, name, ca):
        """A certificate of the ca that ended in 2001."""
        folder = self.config_folder
        for file in "index.txt", "index.txt.attr":
            pathlib.Path(folder, file).touch()
        pathlib.Path(folder, "ca.cnf").write_text(
            "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nrand_serial=yes\nnew_certs_dir=.\n"
            "default_md=sha256\npolicy=p\nunique_subject=no\ncopy_extensions=copy\n[p]\ncommonName=supplied\n")
        self.certificate(name, out="csr")
        subprocess.run(["openssl", "ca", "-batch", "-config", "ca.cnf", "-notext", "-cert", ca + ".crt",
                        "-keyfile", ca + ".key", "-in", name + ".csr", "-out", name + ".crt",
                        "-startdate", "20000101000000Z", "-enddate", "20010101000000Z"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)

    def late(self):
        """Whether the server is refused because its certificate has expired."""
        try:
            self.over_tls()
        except ssl.SSLCertVerificationError as error:
            return "expired" in str(error)
        except OSError:
            pass
        return False

    def test_tls(self):
        self.need("openssl")
        self.config("")
        self.certificate("server", "-x509", "-days", "2")
        self.certificate("stranger", "-x509", "-days", "2")
        self.certificate("ca", "-x509", "-days", "2")
        self.certificate("client", "-x509", "-days", "2", "-CA", "ca.crt", "-CAkey", "ca.key")
        self.expired("expired", "ca")
        self.expired("late", "server")
        self.port = free_port()
        tls = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
        self.exporter = self.start("--web.listen-address=localhost:%d" % self.port,
                                   self.config(tls + "  min_version: TLS13\n"))
        status, body = self.over_tls()
        self.assertEqual(status, 200)
        self.assertIn(b"prcb_up 1", body)
        with self.assertRaises(Exception):
            plain = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
            plain.request("GET", "/metrics")
            plain.getresponse()
        self.config(tls + "  client_ca_file: ca.crt\n"
                    "  client_auth_type: RequireAndVerifyClientCert\n")

        def asked():
            try:
                return self.over_tls()[0] == 403
            except OSError:
                return False
        wait_for(asked, "a demand for a certificate")
        self.assertEqual(self.over_tls("client")[0], 200)
        for who in "stranger", "expired":
            try:
                self.assertEqual(self.over_tls(who)[0], 403, who)
            except OSError:
                pass  # or the handshake fails
        # A server's own that has expired is served, for its clients refuse it, and others are there.
        self.config(tls.replace("server.", "late."))
        wait_for(self.late, "a server with an expired certificate")

    def test_a_certificate_that_does_not_fit_changes_nothing(self):
        self.need("openssl")
        self.exporter = self.start(self.config(""))
        self.certificate("server", "-x509", "-days", "2")
        self.certificate("stranger", "-x509", "-days", "2")
        self.config("tls_server_config:\n  cert_file: server.crt\n  key_file: stranger.key\n")
        wait_for(lambda: "may not fit together" in self.exporter.said(), "the error")
        self.assertEqual(self.exporter.get()[0].status, 200)
        # At the start it is a reason to end.
        result = subprocess.run([EXPORTER, "--tier", "perf", self.config(
            "tls_server_config:\n  cert_file: server.crt\n  key_file: stranger.key\n"),
            "--web.listen-address=localhost:%d" % free_port()], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=DEADLINE)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("may not fit together", result.stderr)

    def test_other_users_end_no_connection(self):
        self.need("htpasswd")
        self.exporter = self.start(self.config("basic_auth_users:\n" + self.user("prom", "one")))
        connection = Over(self.exporter.path)
        connection.connect()
        connection.sock.sendall(b"GET /metrics HTTP/1.1\r\n")
        self.config("basic_auth_users:\n" + self.user("prom", "two"))
        wait_for(lambda: "was reloaded" in self.exporter.said(), "the new users")
        connection.sock.sendall(b"Host: x\r\n\r\n")
        self.assertIn(b" 401 ", connection.sock.recv(100))
        connection.close()

    def test_what_is_not_known_is_an_error(self):
        for text, word in (("tls_server_config:\n  cert_fil: x\n", "cert_fil"),
                           ("http_server_config:\n  http2: true\n", "http_server_config"),
                           ("basic_auth_users:\n  x: plaintext\n", "bcrypt"),
                           ("basic_auth_users:\n  x: [1]\n", "bcrypt"),
                           ("tls_server_config:\n  cert_file: x\n", "key_file"),
                           ("tls_server_config:\n  cert_file: x\n  cert_file: y\n", "twice"),
                           ("- a\n", "mapping"), ("a: b: c", "line 1"), ("\t\0", "line")):
            result = subprocess.run([EXPORTER, self.config(text)], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, timeout=DEADLINE)
            self.assertEqual(result.returncode, 1, text)
            self.assertIn(word, result.stderr)


def host(number, cgroups, looks, step_ms=1000):
    """Looks of a machine that does not exist: each cgroup has one thread, which runs a part of the
    time that depends on host and cgroup, and else waits for a futex or a disk."""
    lines = []
    for look in range(looks):
        ns = (look + 1) * step_ms * 1000000
        accounts = []
        for i in range(cgroups):
            run = ns * ((number + i) % 50) // 100
            accounts.append({
                "key": i + 1, "tid": 100 + i, "pid": 100 + i, "comm": "worker", "cgroup": i + 2,
                "wall_ns": ns, "run_ns": run, "ready_ns": ns // 10, "wait_ns": ns - run - ns // 10,
                "switches": 10 * (look + 1), "voluntary_switches": 8 * (look + 1),
                "migrations": look, "open": "futex",
                "meanwhile": [[(i + 1) % cgroups + 2, run // 10, "cgroup"]],
                "waits": {"futex": [8 * (look + 1), ns // 4],
                          "disk": [1, ns - run - ns // 10 - ns // 4]}})
        lines.append(json.dumps({
            "ms": look * step_ms, "started_ns": 10 ** 18, "tier": "daemon", "max_threads": 16384,
            "untracked_threads": 0, "hostname": "host%d.example" % number, "system": "Linux",
            "release": "6.1", "processes": cgroups, "processes_limit": 32768, "booted_ns": 10 ** 18,
            "cgroups": {str(i + 2): "/pods/pod-%d" % i for i in range(cgroups)},
            "processors": [{"number": cpu, "online": True, "wall_ns": ns, "idle_ns": ns // 2,
                            "user_ns": ns // 4, "kernel_ns": ns // 4, "dpc_ns": 0, "interrupt_ns": 0,
                            "steal_ns": 0, "interrupts": look, "dpcs": look, "switches": look,
                            "mhz": 3000, "idle_entries": look,
                            "idle_states": [["C1", look, ns // 2]]} for cpu in range(4)],
            "accounts": accounts}))
    return "\n".join(lines) + "\n"


class Replayed(Case):
    def replay(self, text, *args):
        path = self.folder() + "/looks.ndjson"
        with open(path, "w") as file:
            file.write(text)
        return self.start("--replay", path, *args)

    def test_a_machine_that_does_not_exist(self):
        """Its last look at once, and all of it is its own."""
        values = self.replay(host(7, 3, 5), "--replay-scale", "0", "--names",
                             "prcb,windows").samples()
        self.assertEqual(values['prcb_cgroup_run_seconds_total{cgroup="/pods/pod-1"}'], 5 * .08)
        self.assertEqual(values['prcb_cgroup_wait_seconds_total{cgroup="/pods/pod-1",class="lock"}'],
                         1.25)
        self.assertEqual(values['prcb_system_cpu_seconds_total{mode="idle"}'], 10)
        self.assertEqual(values["prcb_start_time_seconds"], 10 ** 9)
        self.assertIn('windows_os_hostname{hostname="host7.example",domain="example",'
                      'fqdn="host7.example"}', values)
        self.assertEqual(values["windows_system_processes"], 3)
        self.assertEqual(values['windows_cpu_core_frequency_mhz{core="0,3"}'], 3000)

    def test_time_passes(self):
        exporter = self.replay(host(1, 1, 1000, 10))
        series = 'prcb_cgroup_ready_seconds_total{cgroup="/pods/pod-0"}'
        first = exporter.samples()[series]
        second = wait_for(lambda: (lambda v: v if v > first else None)(exporter.samples()[series]),
                          "another look")
        self.assertLess(second, 1)  # the last look's; the file is ten seconds

    def test_a_file_that_is_none(self):
        exporter = self.replay("nonsense\n")
        self.assertEqual(exporter.samples()["prcb_up"], 0)
        self.assertIn("line 1 is not a reading", exporter.said())


class Scraped(Case):
    def ask(self, port, path):
        try:
            with contextlib.closing(
                    http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
                connection.request("GET", path)
                return json.loads(connection.getresponse().read()).get("data")
        except (OSError, ValueError, http.client.HTTPException):
            return None

    def scraped(self, *args, **options):
        """An exporter and a Prometheus that has scraped it. Returns a function that asks."""
        self.need("prometheus")
        port, folder = free_port(), self.folder()
        self.start("--web.listen-address=127.0.0.1:%d" % port, "--names", "prcb,node,windows",
                   *args, **options)
        own = self.prometheus(folder, [port])

        errors = set()

        def up():
            targets = (self.ask(own, "/api/v1/targets") or {}).get("activeTargets") or [{}]
            errors.add(targets[0].get("lastError"))
            return targets[0].get("health") == "up"
        try:
            wait_for(up, "a scrape")
        except AssertionError as error:
            raise AssertionError(f"{error}: {errors}") from None
        return lambda path: self.ask(own, path)

    def test_dashboards(self):
        """Each expression of the dashboards, and of windows_exporter's and the Kubernetes mixin's for
        Windows, gives data of a Prometheus that scraped a machine that is played."""
        looks = self.folder() + "/looks"
        with open(looks, "w") as file:
            file.write(host(1, 10, 600))
        ask = self.scraped("--replay", looks, "--by-whom")
        expressions = [
            '100 - (avg by (instance) (irate(windows_cpu_time_total{job=~"$job",mode="idle"}[2m])) * 100)',
            'avg by (instance) (windows_cpu_core_frequency_mhz{job=~"$job"})',
            'windows_cpu_logical_processor{job=~"$job"} - 0',
            'time() - windows_system_boot_time_timestamp{job=~"$job"}',
            'windows_system_processes{job=~"$job"}', 'windows_system_threads{job=~"$job"}',
            'windows_os_hostname{job=~"$job"} - 0',
            '1 - avg(rate(windows_cpu_time_total{mode="idle"}[1m]))',
            'count by (instance) (sum by (instance, core) (windows_cpu_time_total))']
        dashboards = sorted((HERE.parent.parent / "examples/grafana").glob("*.json"))
        self.assertEqual(len(dashboards), 2)
        for path in dashboards:
            with open(path) as file:
                panels = json.load(file)["panels"]
            expressions += [t["expr"] for p in panels for t in p["targets"]]
        for expression in expressions:
            for name, value in (("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", "30s")):
                expression = expression.replace(name, value)
            self.assertNotIn("$", expression)
            query = "/api/v1/query?query=" + urllib.parse.quote(expression)
            wait_for(lambda: (ask(query) or {}).get("result"), expression)

    def test_rules(self):
        self.need("promtool")
        folder = HERE.parent.parent / "examples/prometheus"
        for command in (["check", "rules", "prcb-rules.yml"],
                        ["test", "rules", "prcb-rules-test.yml"]):
            result = subprocess.run(["promtool", *command], cwd=folder, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, timeout=DEADLINE)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_expressions_of_the_pages(self):
        self.need("promtool")
        shown = [block for path in sorted((HERE.parent.parent / "docs").glob("*.md"))
                 for block in re.findall(r"(?ms)^```promql\n(.*?)^```$", path.read_text(encoding="utf-8"))]
        self.assertGreater(len(shown), 1)
        rules = [{"record": f"shown:{number}", "expr": block} for number, block in enumerate(shown)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "docs", "rules": rules}]}, file)  # JSON is YAML
            file.flush()
            result = subprocess.run(["promtool", "check", "rules", file.name], stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, timeout=DEADLINE)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_prometheus(self):
        ask = self.scraped()

        def value(expression):
            result = ask("/api/v1/query?query=" + urllib.parse.quote(expression))
            return result and result["result"]
        self.assertEqual(wait_for(lambda: value("prcb_up"), "a figure")[0]["value"][1], "1")
        # Each by itself: of a machine that is too busy to answer one scrape in time there are none until the next.
        wait_for(lambda: value("prcb_system_cpu_seconds_total"), "processors")
        for expression in (
                "sum(node_cpu_seconds_total)",
                'sum without (mode) (rate(node_cpu_seconds_total{mode=~"idle|iowait|steal"}[1m]))',
                'count without (cpu, mode) (node_cpu_seconds_total{mode="idle"})',
                # windows_exporter's dashboard, and the mixin of Kubernetes
                '100 - (avg by (instance) (irate(windows_cpu_time_total{job=~"prcb",mode="idle"}[2m]))'
                ' * 100)', 'windows_cpu_logical_processor{job=~"prcb"} - 0',
                'time() - windows_system_boot_time_timestamp{job=~"prcb"}',
                "windows_system_processes", "windows_system_threads", "windows_os_hostname - 0",
                'label_replace(windows_os_hostname, "host", "$1", "hostname", "(.*)")',
                '1 - avg(rate(windows_cpu_time_total{mode="idle"}[1m]))',
                "count by (instance) (sum by (instance, core) (windows_cpu_time_total))"):
            wait_for(lambda: value(expression), expression)
        metadata = ask("/api/v1/metadata?metric=prcb_system_cpu_seconds_total") or \
            ask("/api/v1/metadata?metric=prcb_system_cpu_seconds")
        self.assertTrue(metadata)
        self.assertEqual(list(metadata.values())[0][0]["type"], "counter")

    def test_textfile_collector(self):
        self.need("prometheus-node-exporter")
        folder, port = self.folder(), free_port()
        os.chmod(folder, 0o755)
        self.start("--textfile", folder + "/prcb.prom", "--textfile-interval", "1")
        wait_for(lambda: os.path.exists(folder + "/prcb.prom"), "the file")
        first = os.stat(folder + "/prcb.prom").st_ino
        wait_for(lambda: os.stat(folder + "/prcb.prom").st_ino != first, "another file")
        self.assertEqual(os.listdir(folder), ["prcb.prom"])
        node = subprocess.Popen(
            ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
             "--collector.textfile.directory=" + folder,
             "--web.listen-address=127.0.0.1:%d" % port, "--web.disable-exporter-metrics"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

        def stop():
            node.kill()
            node.wait()
        self.addCleanup(stop)

        def read():
            try:
                with contextlib.closing(
                        http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
                    connection.request("GET", "/metrics")
                    return connection.getresponse().read().decode()
            except OSError:
                return None
        text = wait_for(read, "node_exporter")
        self.assertIn("node_textfile_scrape_error 0", text)
        self.assertIn("\nprcb_up 1\n", text)
        self.assertRegex(text, 'prcb_system_cpu_seconds_total{mode="idle"} ')

    def test_a_textfile_that_cannot_be_written_stops_nothing(self):
        exporter = self.start("--textfile", "/none/prcb.prom", "--textfile-interval", "1")
        wait_for(lambda: "/none/prcb.prom" in exporter.said(), "the error")
        self.assertEqual(exporter.get()[0].status, 200)


def daemon_reason():
    if os.geteuid():
        return "needs root: it starts prcbd"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "eBPF programs cannot be loaded: the kernel has no BTF"
    if not os.path.ismount("/sys/fs/bpf"):
        return "/sys/fs/bpf is not mounted"
    return None


@unittest.skipIf(daemon_reason(), daemon_reason())
class WithDaemon(Case):
    def setUp(self):
        self.daemon = wire.Daemon(PRCBD, "profile_all = group nogroup\nprocessors = all\n")
        self.addCleanup(self.daemon.stop)

    def client(self, *args):
        return self.start(*args, tier="daemon", user="nobody", group="nogroup", extra_groups=[],
                          env={**os.environ, "PRCB_SOCKET": self.daemon.socket})

    def test_no_privilege_and_no_proc(self):
        exporter = self.client()
        values = exporter.samples()
        self.assertEqual(values["prcb_up"], 1)
        self.assertGreater(sum(v for s, v in values.items() if s.startswith("prcb_threads")), 20)
        # A second one reads the same session: of its own neither could have so many accounts.
        beside = self.client()
        self.assertEqual(beside.samples()["prcb_up"], 1)
        for one in exporter, beside:
            states = {s: v for s, v in one.samples().items() if s.startswith("prcb_accounts{")}
            self.assertEqual(sum(states.values()), 16384, states)
        with open("/proc/%d/status" % exporter.process.pid) as file:
            status = file.read()
        for name in "CapInh", "CapPrm", "CapEff", "CapAmb":
            self.assertRegex(status, name + r":\s+0+\n")
        if not shutil.which("strace"):
            return
        trace = subprocess.Popen(["strace", "-f", "-e", "trace=openat,open", "-p",
                                  str(exporter.process.pid), "-o", exporter.folder + "/trace"],
                                 stderr=subprocess.PIPE, text=True)
        line = trace.stderr.readline()
        if "attached" not in line:
            trace.kill()
            trace.communicate()
            self.skipTest("strace: " + line)
        for _ in range(5):
            exporter.samples()
        trace.send_signal(signal.SIGINT)
        trace.communicate()
        with open(exporter.folder + "/trace") as file:
            self.assertNotRegex(file.read(), r'"/proc/\d')

    def test_the_daemon_goes_and_comes(self):
        exporter = self.client()
        before = exporter.samples()
        self.assertEqual(before["prcb_up"], 1)
        self.daemon.kill()
        os.unlink(self.daemon.socket)
        after = wait_for(lambda: (lambda v: v if v["prcb_up"] == 0 else None)(exporter.samples()),
                         "prcb_up 0")
        # Nothing is shown that is not of now.
        self.assertEqual([s for s in after if not s.startswith(("prcb_up", "prcb_build_info"))], [])
        self.assertEqual(exporter.get("/-/ready")[0].status, 503)
        self.assertIn("not reachable", exporter.said())
        self.daemon.start()
        wait_for(lambda: exporter.samples()["prcb_up"] == 1, "prcb_up 1")
        self.assertEqual(exporter.get("/-/ready")[0].status, 200)

    def test_a_daemon_goes_while_threads_end(self):
        """Prcbd is to be told of each thread that ended; that it is gone is waited for once."""
        # The shared session keeps no edges: the exporter has one of its own, and gives each account back.
        daemon = wire.Daemon(PRCBD, "profile_all = group nogroup\nby_whom = no\n")
        self.addCleanup(daemon.stop)
        self.daemon = daemon
        exporter = self.client("--by-whom")
        self.assertEqual(exporter.samples()["prcb_up"], 1)
        subprocess.run(["sh", "-c", "for i in $(seq 40); do sleep 0.1 & done; wait"], check=True)
        # It goes in the middle of a look.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        killer = threading.Timer(0.5, daemon.kill)
        killer.start()
        self.addCleanup(killer.join)
        began = time.monotonic()
        exporter.samples()
        # Three seconds for it to come back, and not for each of forty.
        self.assertLess(time.monotonic() - began, 10)
        wait_for(lambda: exporter.samples()["prcb_up"] == 0, "prcb_up 0")

    def test_a_daemon_that_refuses_is_said(self):
        daemon = wire.Daemon(PRCBD, "")
        self.addCleanup(daemon.stop)
        self.daemon = daemon
        exporter = self.client()
        self.assertEqual(exporter.samples()["prcb_up"], 0)
        self.assertIn("profile_all", exporter.said())


@unittest.skipIf(daemon_reason(), daemon_reason())
class Crowded(Case):
    """More threads than prcbd has accounts for."""
    THREADS = 150

    def setUp(self):
        reason = daemon_reason()
        if reason:
            self.skipTest(reason)

    def crowd(self, name):
        process = subprocess.Popen(
            [sys.executable, "-c", "import threading, time\ndef work():\n"
             "    open('/proc/thread-self/comm', 'w').write('%s')\n    time.sleep(1000)\n"
             "for _ in range(%d):\n    threading.Thread(target=work, daemon=True).start()\n"
             "print('ready', flush=True)\ntime.sleep(1000)" % (name, self.THREADS)],
            stdout=subprocess.PIPE, text=True)

        def stop():
            process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(stop)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return stop

    def test_a_session_of_its_own_is_as_large(self):
        """The shared session keeps no edges: the exporter has another, with room for all threads as well."""
        self.crowd("many")
        daemon = wire.Daemon(PRCBD, "profile_all = group nogroup\naccounts_per_client = 16\n"
                             "accounts_per_client_max = 4096\nby_whom = no\n")
        self.addCleanup(daemon.stop)
        exporter = self.start("--by-whom", tier="daemon", user="nobody", group="nogroup",
                              extra_groups=[], env={**os.environ, "PRCB_SOCKET": daemon.socket})
        samples = exporter.samples()
        states = ("live", "ended", "free")
        self.assertEqual(sum(samples['prcb_accounts{state="%s"}' % state] for state in states), 4096)
        self.assertEqual(samples["prcb_untracked_threads_total"], 0)

    def test_threads_without_room_are_taken_up_later(self):
        """Other programs' threads end at any time and leave room: then it is tried again."""
        for _ in range(5):
            stop = self.crowd("early")
            self.crowd("late")
            threads = self.too_many()
            if threads() < 2 * self.THREADS:
                break
            self.doCleanups()
        else:
            self.skipTest("threads of others ended and left room, five times")
        stop()
        wait_for(lambda: threads() == self.THREADS, "all threads of those that are left")

    def too_many(self):
        """An exporter behind a prcbd without room for half of a crowd; how many of both it has."""
        with open("/proc/loadavg") as file:
            there = int(file.read().split()[3].split("/")[1]) - 2 * self.THREADS
        daemon = wire.Daemon(PRCBD, "profile_all = group nogroup\naccounts_per_client_max = %d\n"
                             % (there + self.THREADS * 3 // 2))
        self.addCleanup(daemon.stop)
        exporter = self.start("--per-name", tier="daemon", user="nobody", group="nogroup",
                              extra_groups=[], env={**os.environ, "PRCB_SOCKET": daemon.socket})

        def threads():
            values = exporter.samples()
            return sum(values.get('prcb_name_threads{name="%s"}' % name, 0) for name in ("early", "late"))
        return threads


class Storms(Case):
    def cgroup(self, name):
        with open("/proc/self/mounts") as mounts:
            root = next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)
        if not root:
            self.skipTest("no cgroup2 is mounted")
        folder = "%s/%s-%d" % (root, name, os.getpid())
        try:
            os.mkdir(folder)
        except OSError as error:
            self.skipTest("%s: %s" % (folder, error.strerror))

        def remove():
            try:
                os.rmdir(folder)
                return True
            except OSError:
                return False
        self.addCleanup(lambda: wait_for(remove, "an empty cgroup"))
        return folder

    @staticmethod
    def room():
        """Accounts for all threads there are, and for a crowd of another test beside this one."""
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].split("/")[1]) + 14096

    def test_short_processes_are_not_lost(self):
        """Many more processes than there are accounts, as quickly as they come, through the session
        that prcbd shares: what the cgroup ran is what the kernel charged parents and children. The accounts are
        those of half a second, and of a crowd of another test beside this one."""
        count = 1000 if SLOW else 20000
        if not SHORT_LIVES:
            self.skipTest("SHORT_LIVES names no program")
        folder = self.cgroup("prcb-storm")
        room = self.room()
        daemon = wire.Daemon(PRCBD, "profile_all = group nogroup\naccounts_per_client_max = %d\n"
                             "accounts_per_user = %d\n" % (room, max(room, 16384)))
        self.addCleanup(daemon.stop)
        exporter = self.start("--cgroup-causes", tier="daemon", user="nobody", group="nogroup",
                              extra_groups=[], env={**os.environ, "PRCB_SOCKET": daemon.socket})
        storm = subprocess.Popen([SHORT_LIVES, folder, str(count)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        shown = {}
        path = "/" + os.path.basename(folder)
        threads = 'prcb_cgroup_threads{cgroup="%s"}' % path

        def ends(values):
            return values.get('prcb_cgroup_cause_switches_total{cgroup="%s",cause="exit"}' % path, 0)

        def untracked(values):
            return values["prcb_untracked_threads_total"]

        def switches_of(values):
            return sum(values['prcb_cgroup_context_switches_total{cgroup="%s",kind="%s"}' %
                              (path, kind)] for kind in ("voluntary", "involuntary"))

        def look():
            values = exporter.samples()
            for series, value in values.items():
                if "_total" in series:
                    self.assertGreaterEqual(value, shown.get(series, 0), series)
                    shown[series] = value
            return values
        try:
            # What it does until the look that sees its move counts for where it was.
            wait_for(lambda: exporter.samples().get(threads), "the move")
            before = look()
            storm.stdin.write("go\n")
            storm.stdin.flush()
            while not select_readable(storm.stdout):
                self.assertIsNone(storm.poll())
                look()
                time.sleep(.02)
            took, ran, switches = map(float, storm.stdout.readline().split())
            wait_for(lambda: (values := look()) and ends(values) + untracked(values) >= count + 2,
                     "the last of them")
            values = look()
            if untracked(values) and ends(values) < count + 2:
                self.skipTest("prcb had no processor in time: %d threads without an account" %
                              untracked(values))
            self.assertEqual(ends(values), count + 2)  # and the two parents
            self.assertEqual(values["prcb_up"], 1)
            name = 'prcb_cgroup_run_seconds_total{cgroup="%s"}' % path
            seen = values[name] - before[name]
            counted = switches_of(values) - switches_of(before)
            print("    %d processes, %.0f a second: run %.4f s, %.4f by getrusage; %d switches, %d" %
                  (count, count / took, seen, ran, counted, switches), file=sys.stderr)
            # What a child does after its parent was told, its last switch, is not in getrusage.
            self.assertGreater(seen, ran * .98)
            self.assertLess(seen, ran * 1.05 + .02)
            self.assertGreaterEqual(counted, switches)
            self.assertLess(counted, switches + count * 1.02 + 100)
        finally:
            storm.stdin.close()
            storm.wait(DEADLINE)
            storm.stdout.close()

    def test_a_cgroup_is_what_the_kernel_says_of_it(self):
        """Run and ready time of some threads: schedstat of each, and cpu.stat of their cgroup."""
        folder = self.cgroup("prcb-oracle")
        path = "/" + os.path.basename(folder)
        exporter = self.start("--max-threads", str(self.room()), tier="bpf")
        code = ("import os,sys,threading,time\n"
                "open(sys.argv[1]+'/cgroup.procs','w').write('0')\n"
                "begin,done=threading.Event(),threading.Barrier(4)\n"
                "def work():\n"
                "  begin.wait()\n"
                "  for i in range(%d): sum(range(20000)); time.sleep(.0005)\n"
                "  done.wait(); time.sleep(1000)\n"
                "def look():\n"
                "  sums=[0,0]\n"
                "  for tid in os.listdir('/proc/self/task'):\n"
                "    for i,n in enumerate(open('/proc/self/task/%%s/schedstat'%%tid).read().split()[:2]): sums[i]+=int(n)\n"
                "  usage=[int(l.split()[1]) for l in open(sys.argv[1]+'/cpu.stat') if l.startswith('usage_usec')]\n"
                "  return sums+[usage[0]*1000]\n"
                "for i in range(3): threading.Thread(target=work,daemon=True).start()\n"
                "print('ready', flush=True); sys.stdin.readline()\n"
                "before=look(); begin.set(); done.wait()\n"
                "print(*[b-a for a,b in zip(before,look())], flush=True); sys.stdin.read()\n"
                % (50 if SLOW else 500))
        worker = subprocess.Popen([sys.executable, "-c", code, folder], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

        def figure(name):
            return exporter.samples().get('prcb_cgroup_%s_seconds_total{cgroup="%s"}' % (name, path), 0)
        try:
            worker.stdout.readline()
            # What it did before the look that sees its move counts for where it was.
            wait_for(lambda: exporter.samples().get('prcb_cgroup_threads{cgroup="%s"}' % path) == 4, "the move")
            before = figure("run"), figure("ready")
            worker.stdin.write("go\n")
            worker.stdin.flush()
            ran, waited, usage = (int(word) / 1e9 for word in worker.stdout.readline().split())
            wait_for(lambda: figure("run") - before[0] >= ran * .98, "the last look")
            run, ready = figure("run") - before[0], figure("ready") - before[1]
            print("    run %.4f s: %.4f by schedstat, %.4f by cpu.stat; ready %.4f: %.4f" %
                  (run, ran, usage, ready, waited), file=sys.stderr)
            # The main thread's own work between the looks, and a tick for each thread.
            self.assertLess(abs(run - ran), ran * .02 + .05)
            self.assertLess(abs(run - usage), usage * .02 + .09)
            self.assertLess(abs(ready - waited), waited * .02 + .05)
        finally:
            worker.kill()
            worker.wait(DEADLINE)
            worker.stdin.close()
            worker.stdout.close()

    def test_no_series_falls_while_processes_move(self):
        """Beside processes that come and go, and one that is moved to and fro."""
        folders = [self.cgroup("prcb-move-%d" % i) for i in range(2)]
        exporter = self.start("--per-name", "--max-threads", str(self.room()), tier="bpf")
        code = ("import os,sys,select,threading,time\n"
                "def work():\n"
                "  while True: sum(range(2000)); time.sleep(.0005)\n"
                "for i in range(3): threading.Thread(target=work,daemon=True).start()\n"
                "i=0\n"
                "while not select.select([sys.stdin],[],[],.003)[0]:\n"
                "  open(sys.argv[1+i%2]+'/cgroup.procs','w').write('0'); i+=1\n"
                "  pid=os.fork()\n"
                "  if not pid: os._exit(0)\n"
                "  os.waitpid(pid,0)\n")
        shown, scrapes = {}, 0
        with subprocess.Popen([sys.executable, "-c", code, *folders], stdin=subprocess.PIPE) as mover:
            end = time.monotonic() + (1 if SLOW else 2)
            while scrapes < SCRAPES or time.monotonic() < end:
                values = exporter.samples()
                scrapes += 1
                for series, value in values.items():
                    if "_total" in series:
                        self.assertGreaterEqual(value, shown.get(series, 0), series)
                self.assertFalse([s for s in shown if s not in values and "_total" in s])
                shown = values
            mover.stdin.close()
        print("    %d scrapes" % scrapes, file=sys.stderr)
        self.assertGreater(scrapes, 20)
        run = [shown['prcb_cgroup_run_seconds_total{cgroup="/%s"}' % os.path.basename(f)]
               for f in folders]
        self.assertTrue(all(run), run)


@unittest.skipIf(daemon_reason(), daemon_reason())
class Contained(Case):
    """prcbd with the capabilities of examples/kubernetes and no others, in a container."""

    def test_two_capabilities_do(self):
        self.need("systemd-nspawn", "capsh")
        folder = self.folder()
        os.chmod(folder, 0o755)
        pins = "/sys/fs/bpf/prcb-contained-%d" % os.getpid()
        root, sockets = folder + "/root", folder + "/sockets"
        for name in "etc", "usr", "proc", "sys", "dev", "run", "tmp", "var":
            os.makedirs(os.path.join(root, name))
        os.mkdir(sockets)
        for name in "bin", "lib", "lib64", "sbin":
            os.symlink("usr/" + name, os.path.join(root, name))
        for name in "passwd", "group", "ld.so.cache":
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, root + "/etc")
        pathlib.Path(root + "/etc/os-release").touch()
        with open(folder + "/prcbd.conf", "w") as file:
            file.write("pin_directory = %s\nuser =\nprofile_all = all\n"
                       "allow_unprivileged_bpf = yes\n" % pins)
        text = subprocess.run(["capsh", "--print"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        bounding = re.search(r"Bounding set =(.*)", text).group(1).upper().split(",")
        needed = ["CAP_BPF", "CAP_PERFMON"]
        if not set(needed) <= set(bounding):
            self.skipTest("CAP_BPF or CAP_PERFMON is out of reach")
        top = str(pathlib.Path(PRCBD).resolve().parents[2])
        # The build is mounted where it lies, for its libraries are found by their path.
        command = [
            "systemd-nspawn", "-q", "--register=no", "--keep-unit", "-D", root, "--console=pipe",
            "--capability=" + ",".join(needed), "--system-call-filter=bpf perf_event_open",
            "--drop-capability=" + ",".join(c for c in bounding if c not in needed),
            "--bind-ro=/usr", "--bind=/sys/fs/bpf", "--bind=%s:/sock" % sockets,
            "--bind-ro=%s:/conf" % folder, "--bind-ro=" + top, "/bin/sh", "-c",
            "grep CapEff /proc/self/status; exec %s --foreground --socket /sock/socket "
            "--config /conf/prcbd.conf" % os.path.abspath(PRCBD)]
        log = open(folder + "/log", "w+")
        self.addCleanup(log.close)
        contained = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env={**os.environ, "SYSTEMD_NSPAWN_SHARE_NS_PID": "1"})

        def said():
            with open(folder + "/log", errors="replace") as file:
                return file.read()

        def stop():
            contained.terminate()
            contained.wait(DEADLINE)
            subprocess.run([PRCBD, "--cleanup", "--pin-directory", pins], stderr=subprocess.DEVNULL,
                           check=False)
        self.addCleanup(stop)
        wait_for(lambda: "serves" in said() or contained.poll() is not None, "prcbd")
        if "CapEff" not in said():
            self.skipTest("systemd-nspawn does not work here: " + said()[-300:])
        self.assertIn("CapEff:\t000000c000000000", said())
        self.assertIn("serves", said())
        exporter = self.start(tier="daemon", user="nobody", group="nogroup", extra_groups=[],
                              env={**os.environ, "PRCB_SOCKET": sockets + "/socket"})
        values = wait_for(lambda: (lambda v: v if v["prcb_up"] else None)(exporter.samples()),
                          "figures: " + exporter.said())
        self.assertGreater(sum(v for s, v in values.items() if s.startswith("prcb_threads")), 20)
        self.assertIn('prcb_system_cpu_seconds_total{mode="idle"}', values)

    def test_the_examples_are_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml: install python3-yaml")
        examples = HERE.parent.parent / "examples"
        with open(examples / "kubernetes/daemonset.yaml") as file:
            config, workload = yaml.safe_load_all(file)
        pod = workload["spec"]["template"]["spec"]
        daemon, exporter = pod["containers"]
        self.assertEqual(daemon["securityContext"]["capabilities"],
                         {"drop": ["ALL"], "add": ["BPF", "PERFMON"]})
        self.assertNotIn("add", exporter["securityContext"]["capabilities"])
        self.assertRegex(daemon["image"], r"^prcb:\d+\.\d+\.\d+$") # tools/image.py's
        self.assertEqual(daemon["image"], exporter["image"])
        volumes = {v["name"] for v in pod["volumes"]}
        for container in pod["containers"]:
            self.assertLessEqual({m["name"] for m in container["volumeMounts"]}, volumes)
        self.assertIn("profile_all", config["data"]["prcbd.conf"])
        with open(examples / "otel-collector.yaml") as file:
            pipelines = yaml.safe_load(file)["service"]["pipelines"]
        self.assertEqual(pipelines["metrics"]["receivers"], ["prometheus"])


class Fleet(Case):
    """Made-up machines in one Prometheus, and what happens to their exporters."""

    def asker(self, folder, targets):
        """Of a Prometheus that scrapes them: a function of an expression, its first value."""
        own = self.prometheus(folder, targets)

        def value(expression):
            try:
                with contextlib.closing(
                        http.client.HTTPConnection("127.0.0.1", own, timeout=5)) as connection:
                    connection.request("GET", "/api/v1/query?query=" + urllib.parse.quote(expression))
                    found = json.loads(connection.getresponse().read())["data"]["result"]
                    return float(found[0]["value"][1]) if found else None
            except (OSError, ValueError, http.client.HTTPException):
                return None
        return value

    def no_rate_is_negative(self, value):
        for name in ("ready_seconds", "run_seconds", "wait_seconds", "context_switches"):
            series = "rate(prcb_cgroup_%s_total[1m])" % name
            self.assertTrue(value("count(%s)" % series), series)
            self.assertIsNone(value("count(%s < 0)" % series), series)

    def network(self):
        """A network of its own, behind a link. Its name, its link here, and the address of its end."""
        if os.geteuid():
            self.skipTest("needs root: it makes a network namespace")
        self.need("ip", "tc")
        name, link, net = "prcb%d" % os.getpid(), "prcb%d" % (os.getpid() % 10 ** 6), os.getpid() % 250
        self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False,
                        stderr=subprocess.DEVNULL)
        inside = ["ip", "-n", name]
        for command in (["ip", "netns", "add", name],
                        ["ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name],
                        ["ip", "addr", "add", "10.213.%d.1/30" % net, "dev", link],
                        ["ip", "link", "set", link, "up"],
                        [*inside, "addr", "add", "10.213.%d.2/30" % net, "dev", "eth0"],
                        [*inside, "link", "set", "eth0", "up"]):
            done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                self.skipTest("%s: %s" % (" ".join(command), done.stderr.strip()))
        return name, link, "10.213.%d.2" % net

    def test_a_network_that_fails_and_one_that_loses_and_delays(self):
        self.need("prometheus")
        name, link, address = self.network()
        folder = self.folder()
        with open(folder + "/host", "w") as file:
            file.write(host(3, 20, 600))
        port = free_port()
        self.start("--replay", folder + "/host", "--web.listen-address=%s:%d" % (address, port),
                   program=["ip", "netns", "exec", name])
        value = self.asker(folder, ["%s:%d" % (address, port)])
        wait_for(lambda: value("up") == 1, "a scrape")
        wait_for(lambda: value("count_over_time(prcb_up[1m])") > 2, "some scrapes")
        # All is lost for a while: a gap, no figures meanwhile, and afterwards the same counters.
        subprocess.run(["ip", "link", "set", link, "down"], check=True)
        wait_for(lambda: value("up") == 0, "a gap")
        self.assertIsNone(value("prcb_cgroup_run_seconds_total"))
        subprocess.run(["ip", "link", "set", link, "up"], check=True)
        wait_for(lambda: value("up") == 1, "the end of the gap")
        self.assertEqual(value("max(resets(prcb_cgroup_run_seconds_total[1m]))"), 0)
        self.no_rate_is_negative(value)
        done = subprocess.run(["tc", "qdisc", "add", "dev", link, "root", "netem", "delay", "200ms",
                               "100ms", "loss", "15%"], check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest("delay and loss, the rest passed: netem: " + done.stderr.strip())
        scrapes = value("count_over_time(up[5m])")
        wait_for(lambda: value("count_over_time(up[5m])") >= scrapes + 15, "scrapes")
        wait_for(lambda: value("scrape_duration_seconds") > .2, "a scrape that is late")
        self.assertEqual(value("max(resets(prcb_cgroup_run_seconds_total[5m]))"), 0)
        self.no_rate_is_negative(value)
        subprocess.run(["tc", "qdisc", "del", "dev", link, "root"], check=True)
        wait_for(lambda: value("up") == 1 and value("scrape_duration_seconds") < .2, "a good network")

    def test_a_clock_that_is_set(self):
        """The time of day goes by an hour forward and by a day back: no counter and no length of
        anything is measured with it."""
        preload = os.environ.get("STEP_CLOCK_LIBRARY")
        if not preload or SANITIZED:
            self.skipTest("no library to preload, or a sanitizer that does not like one")
        step = self.folder() + "/step"
        with open(step, "w") as file:
            file.write("0")
        bpf = not daemon_reason()
        exporter = self.start("--names", "prcb,windows", tier="bpf" if bpf else "perf",
                              env={**os.environ, "LD_PRELOAD": preload, "STEP_CLOCK": step})

        def cpus(values):
            return sum(v for s, v in values.items() if s.startswith("prcb_system_cpu_seconds_total"))
        begin, before = time.monotonic(), exporter.samples()
        boot, shown = before["windows_system_boot_time_timestamp"], before
        for seconds in 3600, -86400, 0:
            with open(step + ".new", "w") as file:
                file.write(str(seconds))
            os.rename(step + ".new", step)
            # The one figure that is the time of day's says that the library works.
            values = wait_for(lambda: (lambda v: v if abs(
                v["windows_system_boot_time_timestamp"] - boot - seconds) < 60 else None)(
                    exporter.samples()), "another time of day")
            for series, value in values.items():
                if "_total" in series:
                    self.assertGreaterEqual(value, shown.get(series, 0), series)
            self.assertEqual(values["prcb_start_time_seconds"], before["prcb_start_time_seconds"])
            self.assertLess(values["prcb_look_duration_seconds"], 60)
            self.assertLessEqual(cpus(values) - cpus(before),
                                 (time.monotonic() - begin + .1) * os.cpu_count() * 1.01)
            shown = values
            time.sleep(.2)  # the next look is another: SHARED_NS of the exporter
        # Nothing of it could be in a stamp: there is none.
        text = exporter.get(headers={"Accept": OPENMETRICS})[1].decode()
        self.assertNotIn("_created", text)
        self.assertFalse([line for line in text.splitlines()
                          if line[0] != "#" and len(line.rsplit("}")[-1].split()) > 2])

    def test_a_host_that_is_renamed(self):
        if os.geteuid():
            self.skipTest("needs root: it names the host of a namespace")
        self.need("unshare", "nsenter", "hostname")
        exporter = self.start("--names", "prcb,windows",
                              program=["unshare", "--uts", "sh", "-c", 'hostname before && exec "$0" "$@"'])

        def names(values):
            return [s for s in values if s.startswith("windows_os_hostname{")]
        before = exporter.samples()
        self.assertEqual(names(before),
                         ['windows_os_hostname{hostname="before",domain="",fqdn="before"}'.replace(
                             'domain="",', "")])
        subprocess.run(["nsenter", "--uts", "-t", str(exporter.process.pid), "hostname", "after.example"],
                       check=True)
        after = wait_for(lambda: (lambda v: v if names(v) != names(before) else None)(exporter.samples()),
                         "another name")
        self.assertEqual(names(after), ['windows_os_hostname{hostname="after.example",domain="example",'
                                        'fqdn="after.example"}'])
        # The name is in no other series: none of them ends, and none falls.
        self.assertEqual(set(before) - set(after), set(names(before)))
        for series, value in before.items():
            if "_total" in series:
                self.assertGreaterEqual(after[series], value, series)

    def test_faults_make_gaps_and_resets_and_no_negative_rates(self):
        self.need("prometheus")
        folder, hosts = self.folder(), 8
        ports, running = [], []
        for number in range(hosts):
            path = "%s/host%d" % (folder, number)
            with open(path, "w") as file:
                file.write(host(number, 20, 60))
            ports.append(free_port())
            running.append(self.start("--replay", path,
                                      "--web.listen-address=127.0.0.1:%d" % ports[-1]))
        value = self.asker(folder, ports)
        wait_for(lambda: value("sum(up)") == hosts, "all hosts")
        # One is killed and comes back, one is stopped for a while.
        running[0].process.kill()
        running[0].process.wait()
        running[1].process.send_signal(signal.SIGSTOP)
        wait_for(lambda: value("sum(up)") == hosts - 2, "two gaps")
        running[1].process.send_signal(signal.SIGCONT)
        self.start("--replay", folder + "/host0", "--web.listen-address=127.0.0.1:%d" % ports[0])
        # A reader of one byte at a time holds nobody up.
        with socket.socket() as slow:
            slow.connect(("127.0.0.1", ports[2]))
            slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            slow.recv(1)
            wait_for(lambda: value("sum(up)") == hosts, "all hosts again")
        series = 'prcb_cgroup_ready_seconds_total{cgroup="/pods/pod-3",instance="127.0.0.1:%d"}'
        wait_for(lambda: value("resets(%s[1m])" % (series % ports[0])) == 1, "the reset")
        self.assertEqual(value("resets(%s[1m])" % (series % ports[1])), 0)
        self.no_rate_is_negative(value)
        wait_for(lambda: value("count(prcb_up)") == hosts, "all hosts' figures") # a scrape may be late

    def test_a_full_disk_under_the_textfile(self):
        if os.geteuid():
            self.skipTest("needs root: it mounts a tmpfs")
        folder = self.folder()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "none", folder],
                          check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no tmpfs can be mounted")
        self.addCleanup(subprocess.run, ["umount", folder], check=False)
        with open(folder + "/filler", "wb") as file:
            with contextlib.suppress(OSError):
                file.write(b"x" * 65536)
        looks = self.folder() + "/looks"
        with open(looks, "w") as file:
            file.write(host(1, 10, 60))
        exporter = self.start("--replay", looks, "--textfile", folder + "/prcb.prom",
                              "--textfile-interval", "1")
        wait_for(lambda: "No space left" in exporter.said(), "the error")
        self.assertNotIn("prcb.prom", os.listdir(folder))
        self.assertEqual(exporter.samples()["prcb_up"], 1)
        os.unlink(folder + "/filler")
        wait_for(lambda: os.path.exists(folder + "/prcb.prom"), "the file")
        self.assertEqual(os.listdir(folder), ["prcb.prom"])


def select_readable(stream):
    import select
    return bool(select.select([stream], [], [], 0)[0])


if __name__ == "__main__":
    unittest.main()
