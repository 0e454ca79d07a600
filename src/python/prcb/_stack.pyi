# SPDX-License-Identifier: BSD-2-Clause
from typing import Any, Literal, NamedTuple, final
from typing_extensions import Self

from ._prcb import Account, Session

class Frame(NamedTuple):
    function: str | None
    file: str | None
    address: int
    place: int
class Stack(NamedTuple):
    word: str | None
    kind: Literal["blocked", "idle", "either"] | None
    frames: list[Frame]
    complete: bool
    cut: bool
    id: int
    key: int
    switches: int
class StacksStatus(NamedTuple):
    asked: int
    remembered: int
    unwound: int
    moved: int
    cpu_ns: int
@final
class Stacks:
    def __new__(cls, session: Session, *, max_frames: int = 0, stack_bytes: int = 0) -> Self: ...
    def read(self, account: Account, /) -> Stack: ...
    def waiting(self) -> list[tuple[Account, Stack | None, str | None]]: ...
    def status(self) -> StacksStatus: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
