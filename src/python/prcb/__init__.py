# SPDX-License-Identifier: BSD-2-Clause
"""Why is my thread not running? Exact accounts of threads, read without a system call.

    import prcb

    with prcb.measure() as m:
        work()
    print(m.run_ns, m.ready_ns, m.waits["futex"].ns, m.switches)
    print(prcb.explain(m))

Times are nanoseconds. A figure that this machine or tier does not have is None, never 0;
Session.absent_reason says why. Calls of the library that fail raise prcb.Error with its words.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._prcb import (Account, Cause, IdleState, Measure, Open, Processor, Processors,
                    ProcessorTimes, Session, Status, Thread, Times, Wait, causes,
                    default_session, measure)
from ._prcb import version as __version__
from ._types import Error, Waits
from .measuring import SlowCalls, Slow, explain, measured, slow
from .waiting import Waiting, waiting

if TYPE_CHECKING:
    from ._stack import Frame, Stack, Stacks, StacksStatus
    from ._windows import (Dump, DumpContext, DumpDpc, DumpInfo, DumpMember, DumpModule,
                           DumpProcessor, DumpStructure, DumpThread, DumpValue, Field, Layout,
                           LayoutVersion, dump_structures, layout_structures, layout_versions)

session = Session
processors = Processors


def thread(tid: int | None = None) -> Thread:
    """A handle on the calling thread's account in the default session, or on another's that it
    profiles."""
    return default_session().thread(tid)


# Loaded when they are used: programs that only read accounts need none of it.
_LATER = {"dump": ("_windows", "Dump"), "layout": ("_windows", "Layout"),
          "stacks": ("_stack", "Stacks")}
_LATER.update({name: ("_windows", name) for name in (
    "Dump", "DumpContext", "DumpDpc", "DumpInfo", "DumpMember", "DumpModule", "DumpProcessor",
    "DumpStructure", "DumpThread", "DumpValue", "Field", "Layout", "LayoutVersion",
    "dump_structures", "layout_structures", "layout_versions")})
_LATER.update({name: ("_stack", name) for name in ("Frame", "Stack", "Stacks", "StacksStatus")})

if TYPE_CHECKING:
    dump = Dump
    layout = Layout
    stacks = Stacks
else:
    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module 'prcb' has no attribute '{name}'")
        import importlib
        module, attribute = _LATER[name]
        try:
            value = getattr(importlib.import_module("." + module, __name__), attribute)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{module}":
                raise
            raise ImportError(f"prcb.{name} is not in this build of prcb (Debian: python3-prcb-windows)",
                              name=error.name) from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})

__all__ = ["Account", "Cause", "Dump", "DumpContext", "DumpDpc", "DumpInfo", "DumpMember",
           "DumpModule", "DumpProcessor", "DumpStructure", "DumpThread", "DumpValue", "Error",
           "Field", "Frame", "IdleState", "Layout", "LayoutVersion", "Measure", "Open",
           "Processor", "ProcessorTimes", "Processors", "Session", "Slow", "SlowCalls", "Stack",
           "Stacks", "StacksStatus", "Status", "Thread", "Times", "Wait", "Waiting", "Waits",
           "__version__", "causes", "default_session", "dump", "dump_structures", "explain",
           "layout", "layout_structures", "layout_versions", "measure", "measured", "processors",
           "session", "slow", "stacks", "thread", "waiting"]
