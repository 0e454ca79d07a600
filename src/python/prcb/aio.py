# SPDX-License-Identifier: BSD-2-Clause
"""asyncio, measured at task switches.

A task is no thread: while it awaits, its thread runs other tasks. `run` measures each step of a
coroutine, from where the loop resumes it to its next suspension, and adds the steps up. In steps,
every figure is exact and the task's own: time on the processor, and waits that block the loop, by
cause. Between steps there is one figure, suspended_ns, which this module does not divide: what the
task awaited and its time in the loop's queue behind other tasks are both in it. Work that the task
hands to threads or other tasks is theirs.
"""
from __future__ import annotations

import functools
import logging
import time
import types
from typing import Any, Awaitable, Callable, Coroutine, Generator, TypeVar

from ._prcb import Measure, measure
from ._types import Waits
from .measuring import log, milliseconds, parts

T = TypeVar("T")

SUMS = ("run_ns", "ready_ns", "wait_ns", "switches", "voluntary_switches")


class Tally:
    """The steps of one coroutine. A figure that the tier does not have is None."""

    run_ns: int | None
    ready_ns: int | None
    wait_ns: int | None
    switches: int | None
    voluntary_switches: int | None

    def __init__(self) -> None:
        self.steps = 0
        self.waits: Waits | None = None
        for name in SUMS:
            setattr(self, name, None)
        self.stepped_ns = 0  # wall time of the steps
        self.longest_step_ns = 0  # for which the loop served no other task
        self._start = time.monotonic_ns()
        self._end: int | None = None
        self._open: Measure | None = None

    @property
    def wall_ns(self) -> int:
        """Since the coroutine was started; to its end once it has ended."""
        return (time.monotonic_ns() if self._end is None else self._end) - self._start

    @property
    def suspended_ns(self) -> int:
        """Between steps: awaiting, or in the loop's queue."""
        return max(0, self.wall_ns - self.stepped_ns)

    def _add(self, m: Measure) -> None:
        from ._prcb import Wait
        a = m.account()
        wall = a.wall_ns or 0
        self.steps += 1
        self.stepped_ns += wall
        self.longest_step_ns = max(self.longest_step_ns, wall)
        for name in SUMS:
            value = getattr(a, name)
            if value is not None:
                setattr(self, name, (getattr(self, name) or 0) + value)
        if a.waits is not None:
            if self.waits is None:
                self.waits = Waits()
            for cause, wait in a.waits.items():
                before = self.waits[cause]
                self.waits[cause] = Wait((before.count + wait.count, before.ns + wait.ns))

    def so_far(self) -> Tally:
        """A copy with the step that is going on; from within the coroutine."""
        copy = Tally()
        copy.__dict__.update(self.__dict__)
        copy.waits = None if self.waits is None else Waits(self.waits)
        copy._end = time.monotonic_ns()
        if self._open is not None:
            copy._open = None
            copy._add(self._open)
        return copy

    def parts(self) -> list[tuple[str, int]]:
        """What the time was spent on, (words, ns), the largest first; they sum to wall_ns, but
        for the clocks' difference between two steps."""
        rows = parts(self)
        rows.append(("suspended: awaiting, or in the loop's queue", self.suspended_ns))
        return sorted((row for row in rows if row[1]), key=lambda row: -row[1])

    def explain(self, most: int = 4) -> str:
        total = self.wall_ns
        shown = [f"{100 * ns / total:.0f} % {words}" for words, ns in self.parts()[:most]
                 if ns * 200 >= total]
        return (f"{milliseconds(total)} in {self.steps} steps, the longest "
                f"{milliseconds(self.longest_step_ns)}: {', '.join(shown)}")


@types.coroutine
def run(coroutine: Coroutine[Any, Any, T], tally: Tally) -> Generator[Any, Any, T]:
    """Awaits a coroutine and adds its steps to the tally: `await prcb.aio.run(work(), tally)`."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            m = measure()
            m.__enter__()
            tally._open = m
            try:
                if error is None:
                    awaited = coroutine.send(value)
                else:
                    awaited = coroutine.throw(error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                tally._open = None
                m.__exit__(None, None, None)
                tally._add(m)
            value = error = None
            try:
                value = yield awaited
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as thrown:  # the loop cancels, or a future failed
                error = thrown
    finally:
        tally._end = time.monotonic_ns()


C = TypeVar("C", bound=Callable[..., Awaitable[Any]])


def measured(*, over: float = 0, report: Callable[[str, Tally], object] | None = None,
             name: str | None = None) -> Callable[[C], C]:
    """Decorator for coroutine functions: hands (name, tally) of calls that took longer than
    `over` seconds to report; without it, a warning of the logger "prcb"."""
    def decorate(function: C) -> C:
        label = name or function.__qualname__

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            tally = Tally()
            try:
                return await run(function(*args, **kwargs), tally)  # type: ignore[arg-type]
            finally:
                if tally.wall_ns > over * 1e9:
                    if report:
                        report(label, tally)
                    elif log.isEnabledFor(logging.WARNING):
                        log.warning("slow: %s: %s", label, tally.explain())
        return wrapper  # type: ignore[return-value]
    return decorate
