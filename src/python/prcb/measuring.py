# SPDX-License-Identifier: BSD-2-Clause
"""Decorators, slow calls, and figures in words."""
from __future__ import annotations

import functools
import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypeVar, overload

from ._prcb import Account, Measure, causes, measure

if TYPE_CHECKING:
    from .aio import Tally

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("prcb")


def milliseconds(ns: int) -> str:
    return f"{ns / 1e6:.1f} ms"


def parts(a: Account | Measure | Tally) -> list[tuple[str, int]]:
    """What a time was spent on, (words, ns), the largest first. The parts sum to wall_ns; a row
    "not accounted for" holds what no figure of this tier covers."""
    if isinstance(a, Measure):
        a = a.account()
    rows = [("running", a.run_ns or 0),
            ("ready, waiting for a processor", a.ready_ns or 0)]
    if a.waits is not None:
        rows += [(causes[name].words, wait.ns) for name, wait in a.waits.items()]
    if isinstance(a, Account) and a.wall_ns is not None:
        rows.append(("waiting, cause not known on this tier" if a.waits is None
                     else "not accounted for", a.wall_ns - sum(ns for _, ns in rows)))
    return sorted(((words, ns) for words, ns in rows if ns > 0), key=lambda row: -row[1])


def explain(a: Account | Measure, most: int = 4) -> str:
    """One line: "312.1 ms: 71 % waiting for a lock or condition (futex), 20 % running, ..."."""
    if isinstance(a, Measure):
        a = a.account()
    rows = parts(a)
    total = a.wall_ns if a.wall_ns is not None else sum(ns for _, ns in rows)
    if not total:
        return milliseconds(0)
    shown = [f"{100 * ns / total:.0f} % {words}" for words, ns in rows[:most]
             if ns * 200 >= total]
    rest = total - sum(ns for _, ns in rows[:len(shown)])
    if rest * 200 >= total:
        shown.append(f"{100 * rest / total:.0f} % other")
    return f"{milliseconds(total)}: {', '.join(shown)}"


@overload
def measured(function: F) -> F: ...
@overload
def measured(*, report: Callable[[str, Measure], object] | None = None,
             name: str | None = None) -> Callable[[F], F]: ...


def measured(function: Any = None, *, report: Callable[[str, Measure], object] | None = None,
             name: str | None = None) -> Any:
    """Decorator: measures each call and hands (name, measure) to report, also when the call
    raises. Without report, a line goes to the logger "prcb" at level DEBUG.

    For functions that return when they are done; a coroutine function or generator is refused,
    for its calls return before the work begins: see prcb.aio."""
    def decorate(call: Any) -> Any:
        refuse_lazy(call)
        label = name or call.__qualname__

        @functools.wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            m = measure()
            m.__enter__()
            try:
                return call(*args, **kwargs)
            finally:
                m.__exit__(None, None, None)
                if report:
                    report(label, m)
                elif log.isEnabledFor(logging.DEBUG):
                    log.debug("%s: %s", label, explain(m))
        return wrapper
    return decorate(function) if function is not None else decorate


def refuse_lazy(call: Any) -> None:
    import inspect
    if (inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call)
            or inspect.isasyncgenfunction(call)):
        raise TypeError(f"{call.__qualname__} returns before its work is done: measure inside of "
                        "it, or with prcb.aio where it is a coroutine")


class Slow(NamedTuple):
    """A call that took long."""
    name: str
    account: Account
    python_stack: str | None  # where it was when it became slow; None: not asked for

    def __str__(self) -> str:
        text = f"{self.name}: {explain(self.account)}"
        return f"{text}\n{self.python_stack}" if self.python_stack else text


class SlowCalls:
    """What slow() decorated: counts of all calls and the last slow ones."""

    def __init__(self, name: str, keep: int) -> None:
        self.name = name
        self.calls = 0     # all of them
        self.measured = 0  # of these, measured: one in `every`
        self.slow = 0      # of these, slow
        self.last: deque[Slow] = deque(maxlen=keep)


def slow(over: float, *, every: int = 1, keep: int = 16, stacks: bool = False,
         report: Callable[[Slow], object] | None = None, name: str | None = None
         ) -> Callable[[F], F]:
    """Decorator: measures one call in `every` and reports those that took longer than `over`
    seconds, to report or as a warning of the logger "prcb". The last `keep` are in
    function.slow_calls.last.

    With stacks, a watching thread takes the Python stack of a call at the moment that it becomes
    slow: the line that holds it up, not the ones before."""
    if every < 1:
        raise ValueError("every is 1 or more")
    limit = int(over * 1e9)

    def decorate(call: F) -> F:
        refuse_lazy(call)
        seen = SlowCalls(name or call.__qualname__, keep)

        @functools.wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            seen.calls += 1
            if seen.calls % every:
                return call(*args, **kwargs)
            seen.measured += 1
            watched = watcher.begin(over) if stacks else None
            m = measure()
            m.__enter__()
            try:
                return call(*args, **kwargs)
            finally:
                m.__exit__(None, None, None)
                stack = watcher.end(watched) if watched is not None else None
                if (m.wall_ns or 0) > limit:
                    seen.slow += 1
                    slow_one = Slow(seen.name, m.account(), stack)
                    seen.last.append(slow_one)
                    if report:
                        report(slow_one)
                    else:
                        log.warning("slow: %s", slow_one)
        wrapper.slow_calls = seen  # type: ignore[attr-defined]
        return wrapper  # type: ignore[return-value]
    return decorate


class Watched:
    __slots__ = ("thread", "deadline", "stack")

    def __init__(self, thread: int, deadline: float) -> None:
        self.thread = thread
        self.deadline = deadline
        self.stack: str | None = None


class Watcher:
    """One thread that takes Python stacks of calls that have become slow. It starts with the
    first call that is watched, and anew in a child after a fork."""

    def __init__(self) -> None:
        import os
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self.changed = threading.Condition()
        self.calls: set[Watched] = set()
        self.running = False

    def begin(self, over: float) -> Watched:
        import time
        watched = Watched(threading.get_ident(), time.monotonic() + over)
        with self.changed:
            self.calls.add(watched)
            if not self.running:
                self.running = True
                threading.Thread(target=self.watch, name="prcb-slow", daemon=True).start()
            self.changed.notify()
        return watched

    def end(self, watched: Watched) -> str | None:
        with self.changed:
            self.calls.discard(watched)
            return watched.stack

    def watch(self) -> None:
        import sys
        import time
        import traceback
        with self.changed:
            while True:
                now = time.monotonic()
                for call in [call for call in self.calls if call.deadline <= now]:
                    self.calls.discard(call)
                    frame = sys._current_frames().get(call.thread)
                    if frame is not None:
                        call.stack = "".join(traceback.format_stack(frame))
                    del frame
                self.changed.wait(min((call.deadline for call in self.calls),
                                      default=now + 3600) - now)


watcher = Watcher()
