#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb push: receivers of all moods, and sums that are the accounts'. What is sent is decoded here, by field numbers
of the published schemas. PRCB, PRCBD, PRCB_EXPORTER name the programs."""
import base64
import contextlib
import gzip
import http.server
import os
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../daemon"))
import wire  # noqa: E402

PRCB = os.environ.get("PRCB", "prcb")
PRCBD = os.environ.get("PRCBD")
EXPORTER = os.environ.get("PRCB_EXPORTER")
DEADLINE = 60
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable  # that another user may run
# Threads that wait, and one with a name that drives a terminal.
PROGRAM = ("import threading, time; l = threading.Lock(); l.acquire()\n"
           "open('/proc/thread-self/comm', 'wb').write(b'a\\xff;\\x1b\\n')\n"
           "[threading.Thread(target=l.acquire, daemon=True).start() for _ in range(3)]\n"
           "print('ready', flush=True)\n"
           "while True: time.sleep(.01)")


def wait_for(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE} s: {what}")
        time.sleep(.02)


# ---- protocol buffers, as their documentation has them --------------------------------------------------------------

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """{field: [values]}: numbers, or bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif tag & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        else:
            raise AssertionError(f"type {tag & 7}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def one(message, field, default=0):
    values = message.get(field, [default])
    assert len(values) == 1, (field, values)
    return values[0]


def packed(message, field):
    numbers = []
    for value in message.get(field, []):
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


class Otlp:
    """A request, its rules checked: opentelemetry-proto 1.10.0."""

    def __init__(self, body):
        request = fields(body)
        dictionary = fields(one(request, 2))
        self.strings = [text.decode() for text in dictionary[5]]
        tables = {name: [fields(row) for row in dictionary.get(number, [])] for number, name in
                  ((1, "mapping"), (2, "location"), (3, "function"), (4, "link"), (6, "attribute"), (7, "stack"))}
        for name, rows in tables.items():
            assert rows[0] == {}, name
        assert self.strings[0] == ""
        for number in (1, 2, 3, 4, 5, 6, 7):
            assert len(set(dictionary[number])) == len(dictionary[number]), f"a row of {number} is there twice"
        for function in tables["function"]:
            for field in (1, 2, 3):
                self.strings[one(function, field)]
        for location in tables["location"]:
            tables["mapping"][one(location, 1)]
            for line in location.get(3, []):
                tables["function"][one(fields(line), 1)]
        for stack in tables["stack"]:
            for place in packed(stack, 1):
                assert 0 < place < len(tables["location"])
        self.attributes = [self.attribute(row) for row in tables["attribute"]]
        resource = fields(one(request, 1))
        self.resource = {fields(row)[1][0].decode(): fields(fields(row)[2][0])[1][0].decode()
                         for row in fields(one(resource, 1))[1]}
        scope = fields(one(resource, 2))
        assert fields(one(scope, 1))[1] == [b"prcb"]
        self.profiles = [self.profile(fields(row), tables) for row in scope[2]]

    def attribute(self, row):
        value = fields(one(row, 2, b""))
        return self.strings[one(row, 1)], value[1][0].decode() if 1 in value else one(value, 3)

    def profile(self, row, tables):
        kind = fields(one(row, 1))
        assert one(row, 6) > 0 and one(row, 5) == one(row, 1) and len(one(row, 7)) == 16
        assert self.strings[one(kind, 2)] == "nanoseconds"
        samples = []
        for data in row[2]:
            sample = fields(data)
            stack = packed(tables["stack"][one(sample, 1)], 1)
            labels = dict(self.attributes[i] for i in packed(sample, 2))
            (value,) = packed(sample, 4)
            link = tables["link"][one(sample, 3)]
            if link:
                labels |= {"trace_id": one(link, 1).hex(), "span_id": one(link, 2).hex()}
            lines = [(self.strings[one(tables["function"][one(line, 1)], 3)], one(line, 2)) for place in stack
                     for line in map(fields, tables["location"][place].get(3, []))]
            samples.append((value, labels, len(stack), lines))
        notes = dict(self.attributes[i] for i in packed(row, 11))
        return {"type": self.strings[one(kind, 1)], "samples": samples, "from": one(row, 3), "lasts": one(row, 4),
                "totals": totals(notes["prcb.totals"]), "note": notes.get("prcb.note")}


def totals(text):
    return {name: int(ns) for name, ns in re.findall(r"(\w+)_ns=(\d+)", text)}


def pprof(data):
    """The same of a profile for pprof."""
    profile = fields(gzip.decompress(data))
    strings = [text.decode() for text in profile[6]]
    comments = [strings[i] for i in packed(profile, 13)]
    samples = []
    functions = {one(row, 1): strings[one(row, 4)] for row in map(fields, profile[5])}
    locations = {one(row, 1): [(functions[one(line, 1)], one(line, 2)) for line in map(fields, row.get(4, []))]
                 for row in map(fields, profile[4])}
    for row in profile[2]:
        sample = fields(row)
        labels = {strings[one(label, 1)]: strings[one(label, 2)] or one(label, 3)
                  for label in map(fields, sample.get(3, []))}
        stack = packed(sample, 1)
        samples.append((packed(sample, 2)[0], labels, len(stack), [line for place in stack for line in locations[place]]))
    return {"type": strings[one(fields(profile[1][0]), 1)], "samples": samples, "from": one(profile, 9),
            "lasts": one(profile, 10), "totals": totals(comments[0]),
            "note": comments[1] if len(comments) > 1 else None}


# ---- receivers ------------------------------------------------------------------------------------------------------

class Receiver:
    """mood(number of the request from 0, handler) answers; what came is in .seen: path, headers, body."""

    def __init__(self, mood=None, port=0, tls=None):
        self.seen, seen = [], []
        self.seen = seen

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                seen.append((self.path, self.headers, body))
                with contextlib.suppress(OSError):
                    if mood:
                        mood(len(seen) - 1, self)
                    else:
                        answer(self)
                self.close_connection = bool(mood)

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(.05,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def answer(handler, status=200, body=b"", **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        user = {"user": wire.NOBODY, "group": wire.NOBODY, "extra_groups": []} if not os.geteuid() else {}
        cls.target = subprocess.Popen([PYTHON, "-c", PROGRAM], stdout=subprocess.PIPE, **user)
        cls.addClassCleanup(cls.target.wait)
        cls.addClassCleanup(cls.target.stdout.close)
        cls.addClassCleanup(cls.target.kill)
        cls.target.stdout.readline()

    def receiver(self, mood=None, port=0):
        receiver = Receiver(mood, port)
        self.addCleanup(receiver.stop)
        return receiver

    def command(self, url, form, *args):
        return [PRCB, "push", "--to", url, "--as", form, "-p", str(self.target.pid), *args]

    def push(self, url, form, *args, status=0, **options):
        result = subprocess.run(self.command(url, form, *args), capture_output=True, text=True, timeout=DEADLINE,
                                **options)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def check_sums(self, profile):
        parts = ("run",) if profile["type"] == "cpu" else ("ready", "wait")
        self.assertEqual(sum(value for value, *_ in profile["samples"]), sum(profile["totals"][p] for p in parts))
        for _, labels, frames, _ in profile["samples"]:
            self.assertGreater(frames, 0)
            self.assertNotRegex(repr(sorted(labels.items())), r"\\x|\\u")

    def check_otlp(self, bodies):
        """Sums of each; no profile begins before the last one has ended."""
        before = {}
        for body in bodies:
            request = Otlp(body)
            self.assertEqual(request.resource["service.name"], "prcb")
            types = [profile["type"] for profile in request.profiles]
            self.assertIn("off_cpu", types)
            self.assertEqual(len(types), len(set(types)))
            for text in request.strings:
                self.assertNotRegex(text, r"[\x00-\x1f\x7f-\x9f\u202e]")
            for profile in request.profiles:
                self.check_sums(profile)
                self.assertGreaterEqual(profile["from"], before.get(profile["type"], 0))
                before[profile["type"]] = profile["from"] + profile["lasts"] - 5000000  # two clocks
            wait = request.profiles[types.index("off_cpu")]
            self.assertTrue(any(labels.get("process.pid") == self.target.pid for _, labels, *_ in wait["samples"]))
        return request


class Sums(Case):
    def test_otlp(self):
        receiver = self.receiver()
        said = self.push(receiver.url, "otlp", "--every", "0.4", "--for", "1")
        self.assertIn("OTLP profiles v1development, opentelemetry-proto 1.10.0", said)
        self.assertRegex(said, r"[23] requests were taken, \d+ bytes\n$")
        self.assertEqual({path for path, _, _ in receiver.seen}, {"/v1development/profiles"})
        self.check_otlp([body for _, _, body in receiver.seen])

    def test_pyroscope_and_parca(self):
        receiver = self.receiver()
        with tempfile.NamedTemporaryFile("w") as headers:
            headers.write("# a tenant\nX-Scope-OrgID: a b\n\nAuthorization: Bearer x\n")
            headers.flush()
            self.push(receiver.url, "pyroscope", "--for", "0.4", "--name", "shop.web", "--headers", headers.name)
        self.push(receiver.url + "/x/", "parca-pprof", "--for", "0.4")
        kinds = set()
        for path, sent, body in receiver.seen:
            if path.startswith("/ingest?"):
                self.assertRegex(path, r"^/ingest\?name=shop\.web%7Bhost%3D[\w.-]+%7D&from=\d+&until=\d+&format=pprof")
                self.assertEqual((sent["X-Scope-OrgID"], sent["Authorization"]), ("a b", "Bearer x"))
                self.assertIn(b'"off_cpu": {"units": "nanoseconds"', body)
                data = re.search(rb'name="profile".*?\r\n\r\n(.*?)\r\n--', body, re.S)[1]
            else:
                self.assertEqual(path, "/x")
                data = base64.b64decode(re.search(rb'"rawProfile":"([^"]+)"', body)[1], validate=True)
            profile = pprof(data)
            self.check_sums(profile)
            kinds.add((path[:2], profile["type"]))
        self.assertLessEqual({("/i", "off_cpu"), ("/x", "off_cpu")}, kinds)


class Spans(Case):
    """A program whose threads publish spans (tests/spans/publisher.c), compiled with debug information."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../spans/publisher.c")
        subprocess.run(["cc", "-O1", "-g", "-pthread", "-rdynamic", cls.source, "-o", folder + "/publisher"], check=True)
        cls.target = subprocess.Popen([folder + "/publisher"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for end in (cls.target.wait, cls.target.stdin.close, cls.target.stdout.close):
            cls.addClassCleanup(end)
        cls.target.stdout.readline()

    def check(self, profile, lines):
        """Three threads, a span each, for all of the time; the fourth's record is not valid."""
        self.check_sums(profile)
        spans = {}
        for ns, labels, *_ in profile["samples"]:
            if "span_id" in labels:
                self.assertEqual(labels["trace_id"], 2 * labels["span_id"])
                spans[labels["span_id"]] = spans.get(labels["span_id"], 0) + ns
        self.assertEqual(set(spans), {"01" * 8, "02" * 8, "03" * 8})
        for ns in spans.values():
            self.assertGreater(ns, profile["lasts"] // 2)
            self.assertLessEqual(ns, profile["lasts"] + 5000000)  # two clocks
        self.assertNotIn("prcb.span_id", repr(profile["samples"]))
        found = {line for *_, rows in profile["samples"] for file, line in rows if file.endswith("publisher.c")}
        self.assertEqual(bool(found), lines)
        with open(self.source, encoding="utf-8") as file:
            text = file.read().splitlines()
        if lines:
            self.assertTrue([line for line in found if "read(" in text[line - 1]], found)

    def test_pushed(self):
        receiver = self.receiver()
        self.push(receiver.url, "otlp", "--for", "0.6", "--spans", "--lines", "--budget", "50")
        self.check(next(p for p in Otlp(receiver.seen[0][2]).profiles if p["type"] == "off_cpu"), True)
        self.push(receiver.url, "parca-pprof", "--for", "0.6", "--spans", "--budget", "50")
        found = map(pprof, (base64.b64decode(re.search(rb'"rawProfile":"([^"]+)"', body)[1]) for _, _, body in receiver.seen[1:]))
        self.check(next(p for p in found if p["type"] == "off_cpu"), False)

    def test_not_asked_for(self):
        receiver = self.receiver()
        self.push(receiver.url, "otlp", "--for", "0.4")
        self.assertNotIn("span_id", repr(Otlp(receiver.seen[0][2]).profiles))


class Moods(Case):
    """The perf tier: what is measured does not matter."""

    def run_for(self, mood, form="otlp", seconds="0.9", *args):
        receiver = self.receiver(mood)
        return receiver, self.push(receiver.url, form, "--tier", "perf", "--every", "0.3", "--for", seconds, *args)

    def test_try_again(self):
        def mood(number, handler):
            if number == 0:
                answer(handler, 429, b"slow \x1b[31mdown\nx", Retry_After="1")
            else:
                answer(handler, 503 if number == 1 else 200)
        began = time.monotonic()
        receiver, said = self.run_for(mood)
        bodies = [body for _, _, body in receiver.seen]
        self.assertEqual(bodies[0], bodies[1])
        self.assertEqual(bodies[0], bodies[2])
        self.assertEqual(len(set(bodies)), len(bodies) - 2)
        self.assertGreater(time.monotonic() - began, 2)
        self.assertIn("answers 429; it is tried again: slow \\x1b[31mdown\n", said)
        self.assertIn("takes profiles again", said)
        self.assertEqual(said.count("tried again"), 1)
        self.assertNotIn("\x1b", said)

    def test_refused_is_a_gap(self):
        """500 is final for OTLP, and not for the others."""
        receiver, said = self.run_for(lambda number, handler: answer(handler, 200 if number else 500, b"no"))
        bodies = [body for _, _, body in receiver.seen]
        self.assertEqual(len(set(bodies)), len(bodies))
        self.assertIn("a profile is refused, the receiver answers 500: no\n", said)
        self.assertIn("1 were given up: that is a gap", said)
        notes = [profile["note"] for body in bodies for profile in Otlp(body).profiles]
        self.assertTrue(any(note and re.match(r"a gap: 1 profiles between 20\S+Z and 20\S+Z", note) for note in notes))
        receiver, said = self.run_for(lambda number, handler: answer(handler, 200 if number else 500, b"no"),
                                      "pyroscope", "0.3")
        self.assertIn("answers 500; it is tried again", said)
        self.assertNotIn("gap", said)

    def test_partial_success(self):
        body = bytes([0x0a, 0x07, 0x08, 0x01, 0x12, 0x03]) + b"b\x1bd"
        receiver, said = self.run_for(lambda _, handler: answer(handler, 200, body), "otlp", "0.3")
        self.assertEqual(len(receiver.seen), 1)
        self.assertIn("rejects 1 profiles of a request: b\\x1bd\n", said)
        for junk in (b"\xff" * 50, b"{}", b"\x0a\xff\xff\xff\xff\x0f"):
            receiver, said = self.run_for(lambda _, handler, junk=junk: answer(handler, 200, junk), "otlp", "0.3")
            self.assertIn("1 requests were taken", said)

    def test_redirections_are_not_followed(self):
        other = self.receiver()
        receiver, said = self.run_for(lambda _, handler: answer(handler, 307, Location=other.url + "/\x1b"), "otlp", "0.3")
        self.assertEqual((len(receiver.seen), other.seen), (1, []))
        self.assertIn("refused", said)
        self.assertIn("give that URL", said)
        self.assertNotIn("\x1b", said)

    def test_answers_without_end(self):
        def endless(_, handler):
            handler.send_response(200)
            handler.end_headers()
            while True:
                handler.wfile.write(b"x" * 65536)
        receiver, said = self.run_for(endless, "otlp", "0.3")
        self.assertEqual(len(receiver.seen), 1)
        self.assertIn("1 requests were taken", said)

        def headers(_, handler):
            while True:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 10000)
        receiver, said = self.run_for(headers, "otlp", "0.3", "--room", "1")
        self.assertIn("given up: that is a gap", said)

    def test_slow_dead_and_mute(self):
        """One that answers late gets all, in order. One that is not there gets all when it is. One that says nothing
        holds up neither measuring nor the end."""
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            stuck = subprocess.Popen(self.command("http://127.0.0.1:%d" % mute.getsockname()[1], "otlp", "--tier", "perf",
                                                  "--every", "0.3", "--for", "0.9"), stderr=subprocess.PIPE, text=True)
            self.addCleanup(stuck.stderr.close)
            self.addCleanup(stuck.kill)

            def late(_, handler):
                time.sleep(.5)
                answer(handler)
            receiver, said = self.run_for(late)
            self.assertIn("3 requests were taken", said)
            self.check_otlp([body for _, _, body in receiver.seen])
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            dead = subprocess.Popen(self.command(f"http://127.0.0.1:{port}", "otlp", "--tier", "perf", "--every", "0.3"),
                                    stderr=subprocess.PIPE, text=True)
            self.addCleanup(dead.stderr.close)
            self.addCleanup(dead.kill)
            while "does not answer; it is tried again" not in dead.stderr.readline():
                self.assertIsNone(dead.poll())
            receiver = self.receiver(port=port)
            wait_for(lambda: len(receiver.seen) >= 3, "three requests")
            dead.send_signal(signal.SIGTERM)
            said = dead.communicate(timeout=DEADLINE)[1]
            self.assertEqual(dead.returncode, 0)
            self.assertNotIn("gap", said)
            self.check_otlp([body for _, _, body in receiver.seen])
            said = stuck.communicate(timeout=DEADLINE)[1]
            self.assertEqual(stuck.returncode, 0)
            self.assertIn("0 requests were taken, 0 bytes; 3 were given up: that is a gap", said)

    def test_the_sender_has_no_rights(self):
        receiver = self.receiver()
        push = subprocess.Popen(self.command(receiver.url, "otlp", "--tier", "perf", "--every", "0.3"),
                                stderr=subprocess.DEVNULL)
        self.addCleanup(push.wait)
        self.addCleanup(push.kill)
        wait_for(lambda: receiver.seen, "a request")
        found = subprocess.run(["pgrep", "-x", "-P", str(push.pid), "prcb-push"], capture_output=True, text=True,
                               check=True)
        with open(f"/proc/{int(found.stdout)}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        self.assertEqual([int(status[name], 16) for name in ("CapEff", "CapPrm", "CapAmb")], [0, 0, 0])
        self.assertNotEqual(status["Uid"].split()[0], "0")
        self.assertEqual(status["NoNewPrivs"], "1")
        os.kill(int(found.stdout), signal.SIGKILL)
        self.assertEqual(push.wait(DEADLINE), 1)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_certificates(self):
        """A receiver's certificate that the system does not know, until --ca names it; of a file that only root reads."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            key, ca = os.path.join(folder, "key"), os.path.join(folder, "ca")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(ca, key)
            receiver = Receiver(tls=tls)
            self.addCleanup(receiver.stop)
            how = ("otlp", "--tier", "perf", "--every", "0.3", "--for", "0.3")
            self.assertIn("certificate", self.push(receiver.url, *how))
            self.assertEqual(receiver.seen, [])
            os.chmod(ca, 0o644)
            self.push(receiver.url, *how, "--ca", ca)
            self.assertTrue(receiver.seen)
            # libcurl with GnuTLS reads the file itself, as the sender's user, who is nobody: then it is said at once.
            os.chmod(ca, 0o600)
            command = self.command(receiver.url, *how, "--ca", ca)
            result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
            if result.returncode:
                self.assertIn("every user must be able to read it", result.stderr)
        self.assertIn("--ca /nonexistent: No such file", self.push(receiver.url, *how, "--ca", "/nonexistent", status=1))

    def test_what_is_gone_is_a_gap(self):
        """A process that ends, with another that takes its place in the cgroup or not: the service goes on."""
        receiver = self.receiver()
        target = subprocess.Popen(["sleep", "60"])
        push = subprocess.Popen([PRCB, "push", "--to", receiver.url, "--as", "otlp", "--tier", "perf", "--every", "0.2",
                                 "-p", str(target.pid)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(push.stderr.close)
        self.addCleanup(push.kill)
        wait_for(lambda: receiver.seen, "a request")
        target.kill()
        target.wait()
        while "nothing is measured" not in push.stderr.readline():
            self.assertIsNone(push.poll())
        push.send_signal(signal.SIGTERM)
        push.communicate(timeout=DEADLINE)
        self.assertEqual(push.returncode, 0)

    def test_mistakes(self):
        for args, words in ((("http://x", "otlp", "--name", "a\x1b"), "--name"), (("http://x", "x"), "--as"),
                            (("http://x", "otlp", "--room", "0"), "--room")):
            self.assertIn(words, self.push(*args, status=2))
        self.assertIn("where to?", subprocess.run([PRCB, "push", "-a"], capture_output=True, text=True).stderr)
        self.assertIn("no target", subprocess.run([PRCB, "push", "--to", "http://x", "--as", "otlp"], capture_output=True,
                                                  text=True).stderr)
        for args, words in ((("file:///etc/passwd", "otlp"), "must be http"), (("gopher://x", "otlp"), "must be http"),
                            (("http://x?y", "otlp"), "must be http"),
                            (("http://x", "otlp", "--headers", "/nonexistent"), "No such file")):
            self.assertIn(words, self.push(*args, "--tier", "perf", "--for", "0.2", status=1))


@unittest.skipIf(os.geteuid() or not PRCBD, "only root starts a daemon")
class AsNobody(Case):
    """By way of prcbd, without any right: what is pushed, and what is pulled."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            cls.daemon = wire.Daemon(PRCBD)
        except RuntimeError as e:
            raise unittest.SkipTest(str(e))
        cls.addClassCleanup(cls.daemon.stop)
        cls.user = {"user": wire.NOBODY, "group": wire.NOBODY, "extra_groups": [],
                    "env": os.environ | {"PRCB_SOCKET": cls.daemon.socket}}

    def test_push(self):
        receiver = self.receiver()
        said = self.push(receiver.url, "otlp", "--tier", "daemon", "--every", "0.4", "--for", "0.8", **self.user)
        self.assertIn("2 requests were taken", said)
        request = self.check_otlp([body for _, _, body in receiver.seen])
        wait = next(profile for profile in request.profiles if profile["type"] == "off_cpu")
        causes = {labels.get("prcb.cause") for _, labels, *_ in wait["samples"]}
        self.assertLessEqual({"futex", "sleep"}, causes)
        self.assertGreater(max(frames for _, labels, frames, _ in wait["samples"] if labels["prcb.cause"] == "futex"), 3)

    @unittest.skipUnless(EXPORTER, "no prcb-exporter")
    def test_pull(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o777)
        exporter = subprocess.Popen([EXPORTER, "--tier", "daemon", "--pprof", "1", "--pprof-program", PRCB,
                                     "--web.listen-address=unix:" + folder + "/socket"], stderr=subprocess.PIPE, **self.user)
        self.addCleanup(exporter.stderr.close)
        self.addCleanup(exporter.wait)
        self.addCleanup(exporter.terminate)
        with socket.socket(socket.AF_UNIX) as probe:
            wait_for(lambda: not probe.connect_ex(folder + "/socket") or exporter.poll() is not None, "an answer")
        with open(f"/proc/{self.target.pid}/comm", "rb") as file:
            name = urllib.parse.quote_from_bytes(file.read()[:-1])
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(DEADLINE)
            client.connect(folder + "/socket")
            client.sendall(b"GET /debug/pprof/wait?seconds=1&spans=1&comm=%s HTTP/1.0\r\n\r\n" % name.encode())
            data = b"".join(iter(lambda: client.recv(65536), b""))
        head, body = data.split(b"\r\n\r\n", 1)
        self.assertIn(b" 200 ", head.splitlines()[0], data)
        profile = pprof(body)
        self.check_sums(profile)
        self.assertLessEqual({"futex", "sleep"}, {labels.get("cause") for _, labels, *_ in profile["samples"]})
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(DEADLINE)
            client.connect(folder + "/socket")
            client.sendall(b"GET /debug/pprof/wait?spans=yes HTTP/1.0\r\n\r\n")
            data = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertIn(b" 400 ", data.splitlines()[0])
        self.assertIn(b"spans: must be 0 or 1", data)


if __name__ == "__main__":
    unittest.main()
