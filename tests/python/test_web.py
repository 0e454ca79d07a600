#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Middleware and asyncio; the examples under gunicorn and uvicorn, with ab and wrk for clients."""
import asyncio
import concurrent.futures
import ctypes
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

import prcb
import prcb.aio
import prcb.flight
import prcb.spans
import prcb.web

ROOT = pathlib.Path(__file__).resolve().parents[2]
MS = 1000000
CAUSES = prcb.default_session().tier != "perf"


class Context:
    def __init__(self, number):
        self.trace_id, self.span_id, self.trace_flags = number << 64 | 1, number, 1


class Traced:
    """A span as OpenTelemetry's SDK hands it to processors."""

    def __init__(self, number):
        self.context, self.attributes = Context(number), {}
        self.set_attributes = self.attributes.update

    def get_span_context(self):
        return self.context

    def is_recording(self):
        return True


def published():
    """This thread's span as its library's variable has it, by the specification: OTEP 4947."""
    at = ctypes.c_void_p.in_dll(ctypes.CDLL("libprcb.so.0"), "otel_thread_ctx_v1").value
    record = ctypes.string_at(at, 28) if at else bytes(28)
    return int.from_bytes(record[16:24], "big") if record[24] == 1 else None


class Spans(unittest.TestCase):
    def test_processor(self):
        processor, outer, inner = prcb.spans.SpanProcessor(), Traced(5), Traced(6)
        processor.on_start(outer)
        processor.on_start(inner)
        self.assertEqual(published(), 6)
        time.sleep(0.01)
        processor._on_ending(inner)
        processor.on_end(inner)
        self.assertEqual(published(), 5)
        self.assertGreater(inner.attributes["prcb.run_ns"], 0)
        if CAUSES:
            self.assertGreater(inner.attributes["prcb.wait.sleep_ns"], 9 * MS)
        processor.on_end(outer)
        self.assertIsNone(published())

    def test_one_ends_before_the_one_in_it(self):
        processor, outer, inner = prcb.spans.SpanProcessor(figures=False), Traced(5), Traced(6)
        processor.on_start(outer)
        processor.on_start(inner)
        processor.on_end(outer)
        self.assertEqual(published(), 6)
        processor.on_end(inner)
        self.assertIsNone(published())

    def test_threads_have_their_own(self):
        with prcb.spans.Span(b"t" * 16, b"s" * 8) as m:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                self.assertIsNone(pool.submit(published).result())
            self.assertEqual(published(), int.from_bytes(b"s" * 8, "big"))
        self.assertGreater(m.wall_ns, 0)
        self.assertIsNone(published())

    def test_zero_is_no_number(self):
        for trace, span in ((bytes(16), b"s" * 8), (b"t" * 16, bytes(8)), (b"t", b"s")):
            with self.assertRaises(ValueError), prcb.spans.Span(trace, span):
                pass


class Async(unittest.TestCase):
    def run_measured(self, coroutine):
        tally = prcb.aio.Tally()

        async def main():
            return await prcb.aio.run(coroutine, tally)
        return asyncio.run(main()), tally

    def test_suspension_is_not_waiting(self):
        async def work():
            await asyncio.sleep(0.05)
            time.sleep(0.02)
            return 5
        result, tally = self.run_measured(work())
        self.assertEqual((result, tally.steps), (5, 2))
        self.assertGreaterEqual(tally.suspended_ns, 49 * MS)
        self.assertGreaterEqual(tally.longest_step_ns, 19 * MS)
        self.assertLessEqual(tally.stepped_ns, tally.wall_ns)
        if CAUSES:
            # Not asyncio's. A thread that has no processor for as long is not asleep.
            self.assertLessEqual(tally.waits["sleep"].count, 1)
            self.assertGreaterEqual(tally.waits["sleep"].ns + tally.ready_ns + tally.run_ns, 19 * MS)
            self.assertEqual(tally.waits["epoll"], (0, 0))  # the loop's own

    def test_other_tasks_are_not_ones_own(self):
        async def other():
            for _ in range(20):
                sum(range(50000))
                await asyncio.sleep(0)

        async def quiet():
            tally = prcb.aio.Tally()
            task = asyncio.create_task(other())
            busy = time.thread_time_ns()
            await prcb.aio.run(asyncio.sleep(0.001), tally)
            await task
            return tally, time.thread_time_ns() - busy
        tally, busy = asyncio.run(quiet())
        self.assertLess(tally.run_ns, busy)

    def test_exceptions_and_cancelling_come_through(self):
        async def fails():
            await asyncio.sleep(0)
            raise KeyError("mine")
        with self.assertRaises(KeyError):
            self.run_measured(fails())
        seen = []

        async def cancelled():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        async def main():
            tally = prcb.aio.Tally()
            task = asyncio.create_task(self.as_coroutine(prcb.aio.run(cancelled(), tally)))
            await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return tally
        tally = asyncio.run(main())
        self.assertEqual((seen, tally.steps), (["cancelled"], 2))

    @staticmethod
    async def as_coroutine(awaitable):
        return await awaitable

    def test_decorator(self):
        seen = []

        @prcb.aio.measured(over=0.01, report=lambda name, tally: seen.append(tally))
        async def work(seconds):
            await asyncio.sleep(seconds)
        asyncio.run(work(0))
        quick = len(seen)
        asyncio.run(work(0.03))
        self.assertEqual(len(seen), quick + 1)
        self.assertIn("suspended", seen[-1].explain())


class Middleware(unittest.TestCase):
    def call(self, application, **options):
        started = []
        wrapped = prcb.web.WSGI(application, **options)
        body = wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/a\nb"},
                       lambda status, headers, *more: started.append((status, dict(headers))))
        data = b"".join(body)
        body.close()
        return started[0], data

    def test_header_and_log_line(self):
        def application(environ, start_response):
            time.sleep(0.03)
            start_response("200 OK", [("X", "y")])
            return [b"a", b"b"]
        with self.assertLogs("prcb.web", "WARNING") as logs:
            (status, headers), data = self.call(application, slow=0.01)
        self.assertEqual((status, headers["X"], data), ("200 OK", "y", b"ab"))
        self.assertIn("slow request: GET /a\\nb: ", logs.output[0])  # no second line
        for part in headers["Server-Timing"].split(", prcb")[0:]:
            self.assertRegex(part, r'^(prcb)?-?[\w-]+;dur=\d+\.\d{3};desc="[^"]+"$')
        if CAUSES:
            durations = re.findall(r"prcb-(?:sleep|ready|run);dur=([\d.]+)", headers["Server-Timing"])
            self.assertGreaterEqual(sum(map(float, durations)), 29)
        with self.assertNoLogs("prcb.web", "WARNING"):
            self.assertNotIn("Server-Timing", self.call(application, header=False)[0][1])

    def test_slow_requests_are_told_to_the_flight_recorder(self):
        def application(environ, start_response):
            start_response("200 OK", [])
            return []
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as keeper, \
                mock.patch.dict(os.environ, {"PRCB_FLIGHT_SOCKET": os.path.join(folder, "socket")}), \
                self.assertLogs("prcb.web", "WARNING"):
            self.assertFalse(prcb.flight.save("nobody listens"))
            keeper.bind(os.environ["PRCB_FLIGHT_SOCKET"])
            self.call(application, slow=0, flight=True)
            self.call(application, slow=0)
            self.assertTrue(prcb.flight.save("x" * 1000))
            keeper.setblocking(False)
            self.assertEqual([keeper.recv(5000), keeper.recv(5000)],
                             [b"0\n\nslow request: GET /a\\nb", b"0\n\n" + b"x" * 100])
            with self.assertRaises(BlockingIOError):
                keeper.recv(1)

    def test_slow_requests_of_asgi_are_told_too(self):
        async def application(scope, receive, send):
            await send({"type": "http.response.start", "status": 200})

        async def ignore(*_):
            pass
        scope = {"type": "http", "method": "GET", "path": "/x"}
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as keeper, \
                mock.patch.dict(os.environ, {"PRCB_FLIGHT_SOCKET": os.path.join(folder, "socket")}), \
                self.assertLogs("prcb.web", "WARNING"):
            keeper.bind(os.environ["PRCB_FLIGHT_SOCKET"])
            keeper.setblocking(False)
            for how in ({"flight": True}, {"flight": False}, {"flight": True, "slow": 1000}):
                asyncio.run(prcb.web.ASGI(application, **{"slow": 0, **how})(scope, ignore, ignore))
            self.assertEqual(keeper.recv(5000), b"0\n\nslow request: GET /x")
            with self.assertRaises(BlockingIOError):
                keeper.recv(1)

    def test_where_the_flight_recorder_is(self):
        # pylint: disable=protected-access
        run = {"PRCB_FLIGHT_SOCKET": "", "XDG_RUNTIME_DIR": "/run/x"}
        with mock.patch.dict(os.environ, run), mock.patch("os.geteuid", return_value=7):
            self.assertEqual(prcb.flight._addresses(), ["/run/x/prcb-flight.socket", prcb.flight.SOCKET])
            os.environ["XDG_RUNTIME_DIR"] = "relative"
            self.assertEqual(prcb.flight._addresses(), ["/run/user/7/prcb-flight.socket", prcb.flight.SOCKET])
        with mock.patch.dict(os.environ, run), mock.patch("os.geteuid", return_value=0):
            self.assertEqual(prcb.flight._addresses(), [prcb.flight.SOCKET])

    def test_an_application_that_raises(self):
        def application(environ, start_response):
            raise KeyError("mine")
        with self.assertLogs("prcb.web", "WARNING"), self.assertRaises(KeyError):
            self.call(application, slow=0)

    def test_span_attributes(self):
        span = mock.Mock()
        span.is_recording.return_value = True
        trace = types.SimpleNamespace(get_current_span=lambda: span)
        with mock.patch.dict(sys.modules, {"opentelemetry": types.ModuleType("opentelemetry"),
                                           "opentelemetry.trace": trace}):
            with prcb.measure() as m:
                time.sleep(0.001)
            prcb.web.annotate_span(m)
        attributes = span.set_attributes.call_args[0][0]
        self.assertEqual(attributes["prcb.run_ns"], m.run_ns)
        self.assertEqual(attributes["prcb.switches"], m.switches)
        if CAUSES:
            self.assertEqual(attributes.get("prcb.wait.sleep_ns", 0), m.waits["sleep"].ns)

    def test_span_attributes_of_a_real_package(self):
        try:
            from opentelemetry import trace  # noqa: F401
            from opentelemetry.sdk.trace import TracerProvider
        except ImportError:
            self.skipTest("python3-opentelemetry-sdk is not installed; Debian 12 has none")
        with TracerProvider().get_tracer("test").start_as_current_span("request") as span:
            with prcb.measure() as m:
                pass
            prcb.web.annotate_span(m)
        self.assertEqual(span.attributes["prcb.run_ns"], m.run_ns)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Servers(unittest.TestCase):
    """The examples, as their texts say."""

    def serve(self, name, *command):
        program = shutil.which(name)
        if not program:
            self.skipTest(f"{name} is not installed")
        port = free_port()
        log = tempfile.NamedTemporaryFile("w+")  # pylint: disable=consider-using-with
        self.addCleanup(log.close)
        # The server's own python is in the first line of its script.
        server = subprocess.Popen([sys.executable, program] +
                                  [word.replace("PORT", str(port)) for word in command],
                                  cwd=ROOT / "examples" / "python", stdout=log, stderr=log,
                                  start_new_session=True)

        def stop():
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
        self.addCleanup(stop)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                self.get(port, "/none")
                return port, log
            except OSError:
                if server.poll() is not None:
                    break
                time.sleep(0.05)
        log.seek(0)
        self.fail(f"{name} did not start:\n{log.read()}")

    @staticmethod
    def get(port, path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            return response
        finally:
            connection.close()

    def client(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def lines(self, log, pattern):
        # Opened anew: the server writes where a shared one was read to.
        with open(log.name, encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if re.search(pattern, line)]

    def test_gunicorn_under_ab(self):
        port, log = self.serve("gunicorn", "--threads", "4", "-b", "127.0.0.1:PORT",
                               "requests_wsgi:application")
        self.assertEqual(self.get(port, "/none").status, 404)
        timing = self.get(port, "/sleep").getheader("Server-Timing")
        self.assertIn("prcb-run;dur=", timing)
        out = self.client("ab", "-q", "-n", "20", "-c", "4", f"http://127.0.0.1:{port}/lock")
        self.assertRegex(out, r"Complete requests: +20\n")
        slow = self.lines(log, "slow request: GET /lock")
        self.assertEqual(len(slow), 20)
        if CAUSES:
            self.assertIn("prcb-sleep;dur=", timing)
            # Four at a time, each holds the lock for 30 ms: most wait for it longest.
            self.assertTrue(any("waiting for a lock or condition (futex)" in line
                                for line in slow), slow[:3])

    def test_uvicorn_under_wrk(self):
        port, log = self.serve("uvicorn", "--port", "PORT", "--no-access-log",
                               "requests_asgi:app")
        timing = self.get(port, "/await").getheader("Server-Timing")
        self.assertIn("prcb-suspended;dur=", timing)
        out = self.client("wrk", "-d", "1", "-c", "4", "-t", "1",
                          f"http://127.0.0.1:{port}/block")
        self.assertRegex(out, r"[1-9]\d* requests in")
        self.assertTrue(self.lines(log, r"slow request: GET /await: .*% suspended"))
        blocked = self.lines(log, "slow request: GET /block")
        self.assertTrue(blocked)
        if CAUSES:
            # But for a switch that the kernel does not report, or a timeout that is over before the thread sleeps.
            others = [line for line in blocked if "asleep" not in line]
            self.assertLessEqual(len(others), 1 + len(blocked) // 20, others)


class Typed(unittest.TestCase):
    def test_mypy(self):
        mypy = shutil.which("mypy")
        if not mypy:
            self.skipTest("mypy is not installed")
        done = subprocess.run([mypy, "--strict", "--no-incremental", "--cache-dir", "/dev/null",
                               str(ROOT / "src" / "python" / "prcb")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_stubs_have_what_the_modules_have(self):
        for name in ("_prcb", "_stack", "_windows"):
            if name == "_stack" and not (pathlib.Path(prcb.__file__).parent /
                                         "_stack.abi3.so").exists():
                continue  # a build without libdw
            module = __import__("prcb." + name, fromlist=[name])
            stub = (ROOT / "src/python/prcb" / (name + ".pyi")).read_text(encoding="utf-8")
            for kind in vars(module).values():
                if not isinstance(kind, type):
                    continue
                body = re.search(rf"^class {kind.__name__}\(.*?\n((?:    .*\n)*)|"
                                 rf"^class {kind.__name__}:\n((?:    .*\n)*)", stub, re.M)
                self.assertIsNotNone(body, kind)
                text = body.group(1) or body.group(2) or ""
                if kind.__name__ == "Wait":
                    continue
                if issubclass(kind, tuple):
                    names = list(kind.__match_args__)
                    self.assertEqual(re.findall(r"^    (\w+):", text, re.M), names, kind)
                else:
                    names = {n for n in vars(kind) if not n.startswith("_")}
                    self.assertEqual({n for n in re.findall(r"def (\w+)", text)
                                      if not n.startswith("_")}, names, kind)


if __name__ == "__main__":
    unittest.main(verbosity=2)
