# SPDX-License-Identifier: BSD-2-Clause
"""Where the threads of a process wait now: the kernel's cause, the word for it ("GIL"), the stack."""
from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from ._prcb import Account, Session, causes

if TYPE_CHECKING:
    from ._stack import Stack


INTERPRETER = re.compile(r"/(lib)?python3[.\d]*(\.so[.\d]*|d?)$")


def waits_for_gil(stack: Stack) -> bool:
    """Distributions strip the name of the interpreter's take_gil. It is the only function of the
    interpreter that waits for a condition with a timeout: locks of Python wait in
    PyThread_acquire_lock_timed, whose name is kept."""
    frames = iter(stack.frames)
    for frame in frames:
        if frame.function == "take_gil":
            return True
        if frame.function and frame.function.startswith("pthread_cond_timedwait"):
            caller = next(frames, None)
            return bool(caller and caller.file and INTERPRETER.search(caller.file)
                        and caller.function in (None, "take_gil"))
    return False


class Waiting(NamedTuple):
    """A thread that waits."""
    account: Account
    stack: Stack | None  # None: it could not be read; `reason` says why
    reason: str | None

    @property
    def word(self) -> str | None:
        """What it waits for, in a word: "GIL", "mutex", "event loop"; None: not known."""
        if self.stack is None:
            return None
        return "GIL" if waits_for_gil(self.stack) else self.stack.word

    def __str__(self) -> str:
        a = self.account
        words = causes[a.open.cause].words if a.open and a.open.cause else "waiting"
        line = f"{a.comm} ({a.tid}): {words}"
        if self.word:
            line += f" [{self.word}]"
        if a.open:
            line += f", for {a.open.ns / 1e6:.1f} ms"
        if self.stack:
            named = [frame.function for frame in self.stack.frames if frame.function]
            line += "".join(f"\n    {name}" for name in named)
        elif self.reason:
            line += f"\n    no stack: {self.reason}"
        return line


def waiting(session: Session | None = None, pid: int | None = None) -> list[Waiting]:
    """The threads that are off the processor now, each with the stack of its wait: of the
    session that is given, else of the process `pid`, by default one's own. Needs the ptrace
    right to the process (one's own, and on most systems one's children)."""
    from ._stack import Stacks
    if session is None:
        with Session(registers=True) as own:
            own.profile_process(os.getpid() if pid is None else pid, "threads")
            return waiting(own, pid)
    with Stacks(session) as reader:
        return [found for found in map(Waiting._make, reader.waiting())
                if pid is None or found.account.pid == pid]
