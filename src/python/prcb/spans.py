# SPDX-License-Identifier: BSD-2-Clause
"""Spans of traces: what this request waited for, seen from inside and from outside.

    provider.add_span_processor(prcb.spans.SpanProcessor())      # OpenTelemetry's SDK

    with prcb.spans.Span(trace_id, span_id) as m:                # or without a tracer
        work()
    print(prcb.explain(m))

While a span is a thread's current one, `prcb why --spans` finds its numbers beside the thread's
stack, by OpenTelemetry's thread context (OTEP 4947). A thread has one current span at a time: of
coroutines that take turns on it, only the one that began a span last is seen."""
from __future__ import annotations

import threading
from typing import Any

from ._prcb import Measure, measure, publish_span
from .web import span_attributes


class Stack(threading.local):
    """The spans that the thread is in, innermost last."""

    def __init__(self) -> None:
        self.spans: list[tuple[bytes, bytes, int]] = []

    def begin(self, span: tuple[bytes, bytes, int]) -> None:
        publish_span(*span)
        self.spans.append(span)

    def end(self, span: tuple[bytes, bytes, int]) -> None:
        if span in self.spans:
            self.spans.remove(span)
            if self.spans:
                publish_span(*self.spans[-1])
            else:
                publish_span()


stack = Stack()


def numbers(span: Any) -> tuple[bytes, bytes, int]:
    context = span.get_span_context()
    return (context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big"),
            int(context.trace_flags))


class Span:
    """Publishes and measures a span; trace_id: 16 bytes, span_id: 8, neither all zero."""

    def __init__(self, trace_id: bytes, span_id: bytes, flags: int = 1) -> None:
        self.span = (trace_id, span_id, flags)
        self.measure = measure()

    def __enter__(self) -> Measure:
        stack.begin(self.span)
        try:
            return self.measure.__enter__()
        except BaseException:
            stack.end(self.span)
            raise

    def __exit__(self, *exception: Any) -> None:
        stack.end(self.span)
        self.measure.__exit__(*exception)


class SpanProcessor:
    """For TracerProvider.add_span_processor. A span is the current one of the thread that starts
    it until it ends on that thread. Where the SDK says so before a span ends (_on_ending), it gets
    the attributes prcb.run_ns, prcb.wait.futex_ns and so on of that thread."""

    def __init__(self, figures: bool = True) -> None:
        self.figures = figures
        self.open: dict[tuple[bytes, bytes, int], Measure] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        stack.begin(numbers(span))
        if self.figures and span.is_recording():
            try:
                self.open[numbers(span)] = measure().__enter__()
            except OSError:
                self.figures = False  # no session is to be had

    def _on_ending(self, span: Any) -> None:
        m = self.open.pop(numbers(span), None)
        if m is None:
            return
        try:
            m.__exit__(None, None, None)
        except RuntimeError:
            return  # it ends on another thread: that one's figures are not the span's
        span.set_attributes(span_attributes(m))

    def on_end(self, span: Any) -> None:
        self.open.pop(numbers(span), None)
        stack.end(numbers(span))

    def shutdown(self) -> None:
        self.open.clear()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True
