#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb serve: who is let in, by raw sockets; frames, summed by a reader of the test's own; the page in
Chromium and once in Firefox."""
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# selenium is a package of the system's python, which need not be the first in PATH.
try:
    import selenium  # noqa: F401
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

import browsers

PRCB = os.path.abspath(os.environ["PRCB"])
PICTURES = os.environ.get("PAGE_PICTURES")
SANITIZED = os.environ.get("PAGE_SANITIZED") == "1"
DEADLINE = 60

# A program with threads that hold and wait for a lock, sleep, run, and have names that are markup.
WORKER = r"""
import ctypes, sys, threading, time
name = ctypes.CDLL(None).prctl
lock = threading.Lock()
def called(text, work):
    def run():
        name(15, text.encode(), 0, 0, 0)
        while True:
            work()
    threading.Thread(target=run, daemon=True).start()
def holder():
    with lock:
        time.sleep(0.05)
    time.sleep(0.001)
def waiter():
    with lock:
        pass
def burner():
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    time.sleep(0.02)
called("</script><b>x=1", holder)
called("\u202egnp.exe", waiter)
called("burner-7", burner)
called("sleeper-1", lambda: time.sleep(3600))
print("ready", flush=True)
sys.stdin.read()
"""


def pick_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def look(pid):
    """When it began and ended, and {tid: (ran, waited for a processor)} of /proc."""
    began, sums = time.monotonic(), {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            sums[int(tid)] = tuple(int(word) for word in file.read().split()[:2])
    return began, time.monotonic(), sums


class Served:
    """prcb serve on a program of ours, and that program."""

    def __init__(self, *args, worker=True):
        self.worker = None
        if worker:
            self.worker = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.worker.stdout.readline()
            self.first = look(self.worker.pid)  # before prcb serve began
            args = ("-p", str(self.worker.pid), *args)
        self.process = subprocess.Popen([PRCB, "serve", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first:
            raise RuntimeError(self.process.stderr.read())
        self.words = first + self.process.stdout.readline()
        self.url = re.search(r"http://\S+", self.words)[0]
        self.port, self.token = re.search(r":(\d+)/\?token=(\w+)$", self.url).groups()
        self.port = int(self.port)

    def server_pid(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            for pid in file.read().split():
                with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
                    if comm.read().strip() == "prcb-serve":
                        return int(pid)
        raise AssertionError("prcb-serve does not run")

    def close(self):
        if self.process.stdout.closed:
            return None
        self.process.terminate()
        status = self.process.wait(DEADLINE)
        words = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        if self.worker:
            self.worker.stdin.close()
            self.worker.wait(DEADLINE)
            self.worker.stdout.close()
        return status, words


def connect(where):
    if isinstance(where, str):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(DEADLINE)
        link.connect(where)
        return link
    return socket.create_connection(("127.0.0.1", where), timeout=DEADLINE)


def ask(where, raw):
    """The status and the headers of an answer to exactly these bytes."""
    with connect(where) as link:
        link.sendall(raw)
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = link.recv(65536)
            if not part:
                break
            answer += part
    head = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    if not head[0]:
        return 0, {}
    fields = dict(line.split(": ", 1) for line in head[1:])
    return int(head[0].split()[1]), fields


def request(path, method="GET", body=b"", **fields):
    lines = [f"{method} {path} HTTP/1.1"] + [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Frames:
    """A reader of events that knows docs/page.md and nothing of the page's scripts."""

    def __init__(self, served, **fields):
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=DEADLINE)
        self.connection.request("GET", "/events?token=" + served.token, headers=fields)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.status
        self.states, self.sums, self.current, self.names = None, {}, {}, {}
        self.number, self.frames, self.origin = None, [], 0

    def close(self):
        self.connection.close()

    def read(self):
        for line in iter(self.answer.readline, b""):
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        raise EOFError

    def take(self):
        frame = self.read()
        if self.number is None:
            assert frame["key"]
        else:
            assert frame["number"] == self.number + 1
        self.number = frame["number"]
        self.frames.append(frame)
        if frame["key"]:
            self.states = frame["states"]
        rows = {row[0]: row for row in frame["threads"]}
        begin = frame["end_ns"] - frame["ns"]
        if len(self.frames) == 1:
            self.origin = begin
        for thread, row in rows.items():
            self.names[thread] = (row[2], row[3])
            parts, wall = row[8], sum(row[8][2::3])
            state, until, absent = self.current.pop(thread, (0, max(begin, frame["end_ns"] - wall) if wall else begin, False))
            if absent or not wall:
                self.add(thread, state, begin - until)
                until = max(begin, until)
            for part, _, ns in zip(parts[::3], parts[1::3], parts[2::3]):
                self.add(thread, part, ns)
            if not row[7]:
                self.current[thread] = (row[5], until + wall, not wall)
        for thread, (state, until, _) in self.current.items():
            if thread not in rows:
                self.current[thread] = (state, until, True)
        return frame

    def finish(self):
        """Who lives goes on to the end of the last interval."""
        for thread, (state, until, _) in self.current.items():
            self.add(thread, state, self.frames[-1]["end_ns"] - until)

    def add(self, thread, state, ns):
        ns = max(0, ns)
        kind = self.states[state]["kind"]
        sums = self.sums.setdefault(thread, {"r": 0, "q": 0, "w": 0, "?": 0, "by": {}})
        sums[kind] += ns
        if kind == "w":
            cause = self.states[state].get("cause", "")
            sums["by"][cause] = sums["by"].get(cause, 0) + ns


class Guards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = Served("-d", "0.2")
        cls.addClassCleanup(cls.served.close)
        cls.host = f"127.0.0.1:{cls.served.port}"
        cls.good = "/?token=" + cls.served.token

    def status(self, raw):
        return ask(self.served.port, raw)[0]

    def test_page_and_headers(self):
        for host in (self.host, f"localhost:{self.served.port}", "[::1]:1", "LOCALHOST", "127.0.0.1:65535"):
            status, fields = ask(self.served.port, request(self.good, Host=host))
            self.assertEqual(status, 200, host)
        policy = fields["Content-Security-Policy"]
        for rule in ("default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'",
                     "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"):
            self.assertIn(rule, policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual((fields["X-Content-Type-Options"], fields["X-Frame-Options"], fields["Referrer-Policy"],
                          fields["Cache-Control"]), ("nosniff", "DENY", "no-referrer", "no-store"))
        self.assertFalse([name for name in fields if name.lower().startswith("access-control")])
        cookie = fields["Set-Cookie"]
        self.assertTrue(cookie.endswith("; Path=/; HttpOnly; SameSite=Strict"), cookie)
        self.assertNotIn(self.served.token, cookie)
        self.assertEqual(self.status(request("/", Host=self.host, Cookie=cookie.split(";")[0])), 200)
        self.assertEqual(self.status(request("/", Host=self.host, Cookie="other=1; " + cookie.split(";")[0])), 200)

    def test_methods(self):
        for method in ("POST", "HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "X"):
            status, fields = ask(self.served.port, request(self.good, method=method, Host=self.host))
            self.assertEqual((status, fields.get("Allow")), (405, "GET"), method)
        self.assertEqual(self.status(request(self.good, body=b"ab", Host=self.host, Content_Length=2)), 400)
        self.assertEqual(self.status(request(self.good, Host=self.host, Transfer_Encoding="chunked")), 400)

    def test_hosts(self):
        """A name that resolves to this machine is another site's: DNS rebinding."""
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1:", "127.0.0.1:x",
                     "127.0.0.1:123456", "127.0.0.2", "0.0.0.0", "localhost:80@evil", "[::1", "[::1]x", ""):
            self.assertIn(self.status(request(self.good, Host=host)), (400, 421), host)
        self.assertIn(self.status(request(self.good)), (400, 421))  # none at all
        self.assertIn(ask(self.served.port, f"GET {self.good} HTTP/1.0\r\n\r\n".encode())[0], (400, 421))

    def test_origins(self):
        for origin in ("http://evil.example", "null", "https://" + self.host, "http://127.0.0.1:1", "http://127.0.0.1", ""):
            for path in (self.good, "/events?token=" + self.served.token):
                self.assertEqual(self.status(request(path, Host=self.host, Origin=origin)), 403, origin)
        self.assertEqual(self.status(request(self.good, Host=self.host, Origin="http://" + self.host)), 200)
        events = "/events?token=" + self.served.token
        for site, expected in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            self.assertEqual(self.status(request(events, Host=self.host, Sec_Fetch_Site=site)), expected, site)
        self.assertEqual(self.status(request(self.good, Host=self.host, Sec_Fetch_Site="cross-site")), 200)

    def test_tokens(self):
        token = self.served.token
        self.assertRegex(token, "^[0-9a-f]{64}$")
        wrong = ("", token[:-1], token + "0", token.upper() if token.upper() != token else "x", "0" * 64, token[::-1])
        for path in ("/", "/events", "/favicon.ico", "/nothing", "/../etc/passwd"):
            self.assertEqual(self.status(request(path, Host=self.host)), 403, path)
            for one in wrong:
                self.assertEqual(self.status(request(f"{path}?token={one}", Host=self.host)), 403, one)
        self.assertEqual(self.status(request("/?token=", Host=self.host, Cookie=f"prcb_0={token}")), 403)
        self.assertEqual(self.status(request("/nothing?token=" + token, Host=self.host)), 404)

    def test_rubbish(self):
        for raw in (b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 5000 + b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", request(self.good, Host=self.host, X="y" * 60000),
                    request("/?" + "token=1&" * 2000, Host=self.host)):
            try:
                status = self.status(raw)
            except ConnectionError:
                status = 0
            self.assertTrue(status == 0 or status >= 400, (status, raw[:40]))
        self.assertEqual(self.status(request(self.good, Host=self.host)), 200)

    def test_process_has_nothing(self):
        """The one that speaks HTTP: no capability, no privilege to come, a filter, four kinds of descriptors."""
        pid = self.served.server_pid()
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            facts = dict(line.rstrip("\n").split(":\t", 1) for line in file)
        self.assertEqual((int(facts["CapEff"], 16), int(facts["CapPrm"], 16), facts["NoNewPrivs"]), (0, 0, "1"))
        if not SANITIZED:
            self.assertEqual(facts["Seccomp"], "2")
        if os.geteuid() == 0:
            self.assertNotIn("0", facts["Uid"].split())
            names = set()
            for fd in os.listdir(f"/proc/{pid}/fd"):
                try:
                    names.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
                except FileNotFoundError:
                    pass  # a connection that was closed
            self.assertFalse([name for name in names if name.startswith("/") and name != "/dev/null" and not SANITIZED])

    def test_states_say_in_which_nobody_idles(self):
        frames = Frames(self.served)
        frames.take()
        frames.close()
        held = {state["cause"] for state in frames.states if state.get("held")}
        self.assertLess({"stopped", "traced", "frozen", "throttled", "disk", "mutex", "other-d"}, held)
        self.assertFalse(held & {"epoll", "poll", "sleep", "futex", "pipe", "socket", "other", ""})

    def test_late_reader_goes_on(self):
        first = Frames(self.served)
        for _ in range(4):
            last = first.take()["number"]
        first.close()
        second = Frames(self.served, **{"Last-Event-ID": str(last)})
        self.assertEqual(second.read()["number"], last + 1)
        second.close()
        for wrong in ("x", str(10 ** 30), "-1", "999999"):
            third = Frames(self.served, **{"Last-Event-ID": wrong})
            self.assertTrue(third.read()["key"])
            third.close()


class Crowds(unittest.TestCase):
    def setUp(self):
        self.served = Served("-d", "0.2")
        self.addCleanup(self.served.close)

    def test_strangers(self):
        """Five hundred that keep a connection and show no token, and more that come meanwhile: others get
        in, and at once."""
        links = []
        for _ in range(500):
            try:
                link = connect(self.served.port)
                link.sendall(b"GET / HTTP/1.1\r\nX: ")
                links.append(link)
            except OSError:
                break
        stop = threading.Event()

        def drip():  # a byte now and then: not silent
            while not stop.wait(0.5):
                for link in links:
                    try:
                        link.send(b"a")
                    except OSError:
                        pass

        def knock():  # one after another, each of which says nothing
            while not stop.is_set():
                try:
                    links.append(connect(self.served.port))
                except OSError:
                    pass
                stop.wait(0.002)
        knocking = threading.Thread(target=knock)
        knocking.start()
        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            began = time.monotonic()
            frames = Frames(self.served)
            self.assertLess(time.monotonic() - began, 4)  # strangers' time is 5 s
            for _ in range(3):
                frames.take()
            frames.close()
        finally:
            stop.set()
            dripping.join()
            knocking.join()
            for link in links:
                link.close()

    def test_slow_pages(self):
        """A hundred that have the token and read nothing: as many as may get events, the others an answer; who reads
        goes on reading."""
        good = Frames(self.served)
        raw = request("/events?token=" + self.served.token, Host=f"127.0.0.1:{self.served.port}")
        links = [connect(self.served.port) for _ in range(100)]
        for link in links:
            link.sendall(raw)
        statuses = []
        for link in links:
            statuses.append(int(link.recv(12).split()[1]))
        self.assertEqual(statuses.count(200) + statuses.count(503), 100)
        self.assertEqual(statuses.count(200), 31)
        for _ in range(5):
            good.take()
        good.close()
        for link in links:
            link.close()
        self.assertIsNone(self.served.process.poll())

    def test_page_process_ends(self):
        """prcb serve notices, and says so."""
        os.kill(self.served.server_pid(), signal.SIGKILL)
        self.served.process.wait(DEADLINE)
        status, words = self.served.close()
        self.assertEqual(status, 1)
        self.assertIn("prcb-serve, which shows the page, has ended", words)


class Sockets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "page")

    def test_unix(self):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(self.path)
        served = Served("-d", "0.2", "--socket", self.path)
        try:
            self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
            self.assertIn(f"ssh -N -L {served.port}:{self.path} ", served.words)
            good = request("/?token=" + served.token, Host="localhost:8080")
            self.assertEqual(ask(self.path, good)[0], 200)
            self.assertEqual(ask(self.path, request("/", Host="localhost:8080"))[0], 403)
            self.assertEqual(ask(self.path, request("/?token=" + served.token, Host="evil"))[0], 421)
            second = subprocess.run([PRCB, "serve", "--socket", self.path], stderr=subprocess.PIPE, text=True, check=False,
                                    timeout=DEADLINE)
            self.assertEqual(second.returncode, 1)
            self.assertIn("in use", second.stderr)
            self.assertEqual(ask(self.path, good)[0], 200)
        finally:
            status, _ = served.close()
        self.assertEqual(status, 0)
        self.assertFalse(os.path.exists(self.path))

    def test_port(self):
        port = pick_port()
        served = Served("--port", str(port), "-d", "0.2")
        try:
            self.assertEqual(served.port, port)
            self.assertIn(f"ssh -N -L {port}:127.0.0.1:{port} ", served.words)
            second = subprocess.run([PRCB, "serve", "--port", str(port)], stderr=subprocess.PIPE, text=True, check=False,
                                    timeout=DEADLINE)
            self.assertEqual(second.returncode, 1)
            self.assertIn(f"127.0.0.1:{port}: Address already in use", second.stderr)
            with open("/proc/net/tcp", encoding="ascii") as file:
                listening = [line.split()[1] for line in file if line.split()[3] == "0A"]
            self.assertIn(f"0100007F:{port:04X}", listening)
        finally:
            served.close()

    def test_usage(self):
        for args in (["-a", "-p", "1"], ["-d", "0.01"], ["--socket", "x", "--port", "1"], ["--socket", "x", "--open"],
                     ["--port", "0"], ["--port", "65536"], ["--socket", ""], ["x"]):
            result = subprocess.run([PRCB, "serve", *args], stderr=subprocess.PIPE, text=True, check=False, timeout=DEADLINE)
            self.assertEqual(result.returncode, 2, args)
        long = subprocess.run([PRCB, "serve", "--socket", "/tmp/" + "x" * 200], stderr=subprocess.PIPE, text=True, check=False,
                              timeout=DEADLINE)
        self.assertEqual(long.returncode, 1)
        self.assertIn("at most 107 bytes", long.stderr)


class Figures(unittest.TestCase):
    """Frames beside the kernel's own counters, of a program whose threads are known."""

    def test_sums(self):
        served = Served("-d", "0.2")
        try:
            frames = Frames(served)
            looks = [look(served.worker.pid)]  # the first interval has begun
            while len(frames.frames) < 12:
                frames.take()
                looks.append(look(served.worker.pid))
            frames.close()
        finally:
            served.close()
        frames.finish()
        span = sum(frame["ns"] for frame in frames.frames)
        # The last interval ended no earlier than this: the frames' clock begins with the server.
        end = served.first[1] + frames.frames[-1]["end_ns"] / 1e9
        inner = [one for one in looks if one[1] <= end] or looks[:1]
        by_name = {}
        for thread, sums in frames.sums.items():
            tid, name = frames.names[thread]
            by_name[name] = sums
            # A look at an account is some time behind the interval's end.
            self.assertLess(abs(sums["r"] + sums["q"] + sums["w"] + sums["?"] - span), 0.05 * span + 5e8, name)
            if tid in served.first[2]:
                most = looks[-1][2][tid][0] - served.first[2][tid][0]
                least = inner[-1][2][tid][0] - inner[0][2][tid][0]
                self.assertGreater(sums["r"], 0.9 * least - 5e7, name)
                self.assertLess(sums["r"], 1.1 * most + 5e7, name)
        self.assertLessEqual(span, (looks[-1][1] - served.first[0]) * 1e9)
        self.assertGreaterEqual(span, (inner[-1][0] - inner[0][1]) * 1e9)
        self.assertIn("</script><b>x=1", by_name)
        self.assertIn("?gnp.exe", by_name)  # the mark that turns text round is one no more
        self.assertGreater(by_name["burner-7"]["r"] + by_name["burner-7"]["q"], 0.1 * span)
        self.assertGreater(by_name["sleeper-1"]["w"], 0.95 * span)
        if frames.frames[0]["facts"]["causes"] == "1":
            waiter = by_name["?gnp.exe"]  # for the lock, and for the interpreter's
            self.assertGreater(waiter["w"], 0)
            self.assertGreater(waiter["by"]["futex"], 0.9 * waiter["w"])
        rows = [row for frame in frames.frames for row in frame["threads"]]
        for row in rows:  # stacks divide a cause's time and no more
            for state in set(row[9][::3]):
                part = sum(row[8][i + 2] for i in range(0, len(row[8]), 3) if row[8][i] == state)
                known = sum(row[9][i + 2] for i in range(0, len(row[9]), 3) if row[9][i] == state)
                self.assertLessEqual(known, part)
        stacks = {stack[0]: stack for frame in frames.frames for stack in frame["stacks"]}
        for row in rows:
            for stack in [row[6], *row[9][1::3]]:
                self.assertTrue(stack == 0 or stack in stacks)
        if frames.frames[0]["facts"]["stacks"] == "1" and frames.frames[0]["facts"]["causes"] == "1":
            self.assertTrue(any("lock" in " ".join(stack[3]) or "futex" in " ".join(stack[3]) for stack in stacks.values()))


SUMS = """return page.model.threads.map(thread => {
    const totals = totalsOf(page.model, [thread]);
    return [thread.tid, thread.name, totals.run, totals.ready, totals.wait];
})"""


class Chromium(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = browsers.why_no_chromium() or ("a page of a sanitizer's build" if SANITIZED else None)
        if reason:
            raise unittest.SkipTest(reason)
        cls.served = Served("-d", "0.1")
        cls.addClassCleanup(cls.served.close)
        cls.driver = browsers.chromium("--window-size=1280,900", browsers.LOOPBACK)
        cls.addClassCleanup(cls.driver.quit)
        cls.driver.get(cls.served.url)
        cls.wait(cls, "return document.body.dataset.ready")

    def wait(self, script, *args, seconds=30):
        deadline = time.monotonic() + seconds
        while not (value := self.driver.execute_script(script, *args)):
            if time.monotonic() > deadline:
                raise AssertionError(script)
            time.sleep(0.02)
        return value

    def run_script(self, script, *args):
        return self.driver.execute_script(script, *args)

    def frames(self, more):
        number = int(self.run_script("return document.body.dataset.frame"))
        self.wait("return Number(document.body.dataset.frame) >= arguments[0]", number + more)

    def setUp(self):
        self.run_script("select({from: null, to: null, only: null}); chooseView('summary')")
        self.run_script("if (live.paused) document.getElementById('live-pause').click()")

    def tearDown(self):
        self.assertEqual(self.driver.get_log("browser"), [])
        names = self.run_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
        self.assertEqual({name for name in names if not name.endswith("/events")}, set())
        self.assertIsNone(self.run_script("return window.hacked || null"))

    def test_address(self):
        """The token is gone from it, no script can read the cookie, and a reload stays."""
        self.assertEqual(self.driver.current_url.split("#")[0], f"http://127.0.0.1:{self.served.port}/")
        self.assertEqual(self.run_script("return document.cookie"), "")
        self.driver.refresh()
        self.wait("return document.body.dataset.ready")
        self.assertEqual(self.run_script("return document.getElementById('live-state').textContent"), "Live")

    def test_views_go_on(self):
        for view, what in (("summary", "#causes tbody tr"), ("threads", "#thread-table tbody tr"), ("timeline", "#timeline-canvas"),
                           ("flame", "#flame-canvas"), ("tails", "#tails p")):
            self.run_script("chooseView(arguments[0])", view)
            self.frames(2)
            self.assertTrue(self.run_script("return document.querySelectorAll(arguments[0]).length", what), view)
            if PICTURES:
                os.makedirs(PICTURES, exist_ok=True)
                self.driver.save_screenshot(os.path.join(PICTURES, f"live-{view}.png"))

    def test_numbers(self):
        """The table's, from the page's frames, are those of another reader of the same frames."""
        frames = Frames(self.served)
        self.addCleanup(frames.close)
        self.driver.refresh()
        self.wait("return document.body.dataset.ready")
        self.frames(2)
        first, last = self.run_script(
            "document.getElementById('live-pause').click(); rebuild(); redraw(); chooseView('threads');"
            "return [live.frames[0].number, live.frames[live.frames.length - 1].number]")
        while frames.number is None or frames.number < last:
            frames.take()
        if frames.frames[0]["number"] != first:  # the server dropped a group meanwhile
            self.skipTest("the windows differ")
        frames.finish()
        expected = {frames.names[thread][0]: sums for thread, sums in frames.sums.items()}
        shown = {row[0]: row[2:] for row in self.run_script(SUMS)}
        self.assertEqual(set(shown), set(expected))
        for tid, sums in expected.items():
            self.assertEqual(shown[tid], [sums["r"], sums["q"], sums["w"]], tid)
        cells = self.run_script("""return [...document.querySelectorAll('#thread-table tbody tr:not(.detail)')].map(row =>
            [...row.cells].slice(3, 7).map(cell => Number(cell.dataset.value)))""")
        self.assertEqual(sorted(row[0] for row in cells), sorted(shown))
        for tid, *values in cells:
            self.assertEqual(values, shown[tid])

    def test_range_is_of_whole_intervals(self):
        self.frames(5)
        self.run_script("document.getElementById('live-pause').click()")
        ends = self.run_script("return page.model.ends")
        self.run_script("select({from: arguments[0], to: arguments[1]})", ends[0] + 5, ends[2] - 5)
        self.assertEqual(self.run_script("return [selection.from, selection.to]"), [ends[0], ends[2]])
        sums = self.run_script(SUMS)
        for tid, name, run, ready, wait in sums:
            self.assertLess(abs(run + ready + wait - (ends[2] - ends[0])), 0.03 * (ends[2] - ends[0]) + 5e8, (tid, name))

    def test_pause(self):
        self.run_script("document.getElementById('live-pause').click()")
        self.assertEqual(self.run_script("return document.getElementById('live-state').textContent"), "Paused")
        before = self.run_script("return [document.body.dataset.frame, page.model.span_ns]")
        number = self.run_script("return live.number")
        self.wait("return live.number >= arguments[0]", number + 3)
        self.assertEqual(self.run_script("return [document.body.dataset.frame, page.model.span_ns]"), before)
        self.run_script("document.getElementById('live-pause').click()")
        self.wait("return Number(document.body.dataset.frame) >= arguments[0]", number + 3)

    def test_person_is_not_disturbed(self):
        """What is opened stays open, what is typed stays typed."""
        self.run_script("chooseView('threads')")
        self.wait("return document.querySelector('#thread-table button.open')")
        self.run_script("document.querySelector('#thread-table button.open').click()")
        key = self.run_script("return document.querySelector('#thread-table tr.chosen button.open').dataset.key")
        self.frames(3)
        self.assertEqual(self.run_script("return document.querySelector('#thread-table tr.chosen button.open').dataset.key"), key)
        self.run_script("document.getElementById('filter').focus()")
        self.driver.switch_to.active_element.send_keys("burn")
        number = self.run_script("return live.number")
        self.wait("return live.number >= arguments[0]", number + 3)
        self.assertEqual(self.run_script("return [document.activeElement.id, document.activeElement.value]"), ["filter", "burn"])
        self.run_script("document.activeElement.blur(); threadView.filter = ''; threadView.table.open.clear()")
        self.frames(2)

    def test_hostile_names(self):
        self.run_script("chooseView('threads')")
        self.frames(1)
        texts = self.run_script("return [...document.querySelectorAll('#thread-table td.name')].map(cell => cell.textContent)")
        self.assertIn("</script><b>x=1", texts)
        self.assertEqual(self.run_script("return document.querySelectorAll('#thread-table b').length"), 0)


class Ends(unittest.TestCase):
    def test_ends(self):
        """Its memory is bounded: the oldest intervals go. Then prcb serve ends, and what is there stays."""
        reason = browsers.why_no_chromium() or ("a page of a sanitizer's build" if SANITIZED else None)
        if reason:
            self.skipTest(reason)
        served = Served("-d", "0.1", "--history", "1")
        driver = browsers.chromium(browsers.LOOPBACK)
        try:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                   {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
            driver.get(served.url)
            deadline = time.monotonic() + DEADLINE
            while not driver.execute_script("return document.body.dataset.ready") and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertLessEqual(driver.execute_script("return document.documentElement.scrollWidth"), 390)
            while driver.execute_script("return live.frames[0].number") < 10:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            self.assertLess(driver.execute_script("return live.frames.length"), 30)
            self.assertTrue(driver.execute_script("return live.frames[0].key"))
            late = Frames(served)
            self.assertGreaterEqual(late.read()["number"], 10)
            late.close()
            served.close()
            while driver.execute_script("return document.body.dataset.live") not in ("lost", "ended"):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            self.assertTrue(driver.execute_script("return document.querySelectorAll('#causes tr').length"))
        finally:
            driver.quit()
            served.close()


class Firefox(unittest.TestCase):
    def test_page(self):
        if SANITIZED or subprocess.run(["which", "firefox-esr"], stdout=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("firefox-esr is not installed" if not SANITIZED else "a page of a sanitizer's build")
        served = Served("-d", "0.2")
        firefox = browsers.Firefox()
        try:
            firefox.get(served.url)
            deadline = time.monotonic() + DEADLINE
            while not firefox.run("return Number(document.body.dataset.frame || 0) > 3"):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            self.assertEqual(firefox.run("return document.body.dataset.live"), "open")
            self.assertGreater(firefox.run("return document.querySelectorAll('#causes tbody tr').length"), 1)
        finally:
            firefox.close()
            served.close()


if __name__ == "__main__":
    unittest.main()
