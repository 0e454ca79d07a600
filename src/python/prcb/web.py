# SPDX-License-Identifier: BSD-2-Clause
"""WSGI and ASGI middleware: a Server-Timing header, which browsers show in their network panel,
and a log line for slow requests.

    application = prcb.web.WSGI(application, slow=0.1)     # gunicorn, uwsgi, mod_wsgi
    app = prcb.web.ASGI(app, slow=0.1)                     # uvicorn, hypercorn

The header holds what was known when the response began; the log line and the attributes of an
OpenTelemetry span, where that package is installed, hold the whole request. Under WSGI a request
is its thread's; under ASGI it is what its task did between suspensions: see prcb.aio. Figures say
much about a server: `header=False` keeps them from clients."""
from __future__ import annotations

import importlib
import logging
from typing import Any, Awaitable, Callable, Iterable, Iterator

from ._prcb import Account, Measure, causes, measure
from .aio import Tally, run
from .flight import save
from .measuring import explain

log = logging.getLogger("prcb.web")


def figures(a: Account | Measure | Tally) -> list[tuple[str, str, int]]:
    """(name, words, ns) of what is known and is not 0: "run", "ready", causes, "suspended"."""
    if isinstance(a, Measure):
        a = a.account()
    rows = [("run", "running", a.run_ns or 0),
            ("ready", "ready, waiting for a processor", a.ready_ns or 0)]
    if a.waits is not None:
        rows += [(name, causes[name].words, wait.ns) for name, wait in a.waits.items()]
    if isinstance(a, Tally):
        rows.append(("suspended", "awaiting, or in the loop's queue", a.suspended_ns))
    return [row for row in rows if row[2]]


def server_timing(a: Account | Measure | Tally) -> str:
    """The value of a Server-Timing header; durations are milliseconds."""
    return ", ".join(f'prcb-{name};dur={ns / 1e6:.3f};desc="{words}"'
                     for name, words, ns in figures(a))


def span_attributes(a: Account | Measure | Tally) -> dict[str, int]:
    """Attributes for a span: prcb.run_ns, prcb.ready_ns, prcb.wait.futex_ns, prcb.switches."""
    if isinstance(a, Measure):
        a = a.account()
    attributes = {f"prcb.wait.{name}_ns" if name in causes else f"prcb.{name}_ns": ns
                  for name, _, ns in figures(a)}
    if a.switches is not None:
        attributes["prcb.switches"] = a.switches
    return attributes


def annotate_span(a: Account | Measure | Tally) -> None:
    """Sets them on OpenTelemetry's current span, where that package is installed."""
    try:
        trace = importlib.import_module("opentelemetry.trace")
    except ImportError:
        return
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attributes(span_attributes(a))


def request_name(method: object, path: object) -> str:
    # Both come from the client: what is not printable is escaped, for they go into a log.
    return f"{method} {path}".encode("unicode_escape").decode("ascii")


class Body:
    """The body of a response; when the server closes it, the request is over."""

    def __init__(self, body: Iterable[bytes], done: Callable[[], None]) -> None:
        self.body = body
        self.done = done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.body)

    def close(self) -> None:
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.done()


class WSGI:
    """slow: seconds from which a request is logged; None: never. flight: and the last seconds kept,
    where prcb flight runs."""

    def __init__(self, application: Callable[..., Iterable[bytes]], slow: float | None = None,
                 header: bool = True, spans: bool = True, flight: bool = False) -> None:
        self.application = application
        self.slow = slow
        self.header = header
        self.spans = spans
        self.flight = flight

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]
                 ) -> Iterable[bytes]:
        m = measure()
        m.__enter__()

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, ("Server-Timing", server_timing(m))], *more)

        def done() -> None:
            try:
                m.__exit__(None, None, None)
            except RuntimeError as error:
                log.debug("%s: %s", environ.get("PATH_INFO"), error)
                return
            if self.spans:
                annotate_span(m)
            if self.slow is not None and (m.wall_ns or 0) > self.slow * 1e9:
                name = request_name(environ.get("REQUEST_METHOD"), environ.get("PATH_INFO"))
                if self.flight:
                    save(f"slow request: {name}")
                log.warning("slow request: %s: %s", name, explain(m))
        try:
            body = self.application(environ, start if self.header else start_response)
        except BaseException:
            done()
            raise
        return Body(body, done)


class ASGI:
    """slow: seconds from which a request is logged; None: never. flight: and the last seconds kept,
    where prcb flight runs."""

    def __init__(self, application: Callable[..., Awaitable[None]], slow: float | None = None,
                 header: bool = True, spans: bool = True, flight: bool = False) -> None:
        self.application = application
        self.slow = slow
        self.header = header
        self.spans = spans
        self.flight = flight

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any],
                       send: Callable[..., Any]) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        tally = Tally()

        async def sending(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                value = server_timing(tally.so_far()).encode("ascii")
                message = {**message, "headers": [*message.get("headers", ()),
                                                  (b"server-timing", value)]}
            await send(message)
        try:
            await run(self.application(  # type: ignore[arg-type]
                scope, receive, sending if self.header else send), tally)
        finally:
            if self.spans:
                annotate_span(tally)
            if self.slow is not None and tally.wall_ns > self.slow * 1e9:
                name = request_name(scope.get("method"), scope.get("path"))
                if self.flight:
                    save(f"slow request: {name}")
                log.warning("slow request: %s: %s", name, tally.explain())
