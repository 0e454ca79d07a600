# SPDX-License-Identifier: BSD-2-Clause
"""What the extension modules make: the exception, and the waits of a record."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._prcb import Wait


class Error(OSError):
    """A call of the library failed. `errno` is the system's number, `strerror` the library's
    words, `offset` the place in a file or buffer that they speak of (0 where there is none)."""

    offset: int

    def __init__(self, errno: int, strerror: str, offset: int = 0) -> None:
        super().__init__(errno, strerror)
        self.offset = offset

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> tuple[type[Error], tuple[int, str, int]]:
        return Error, (self.errno or 0, self.strerror or "", self.offset)


class Waits(dict[str, "Wait"]):
    """The waits of a record by cause. Iterating gives those that occurred; any other cause of
    `prcb.causes` reads as Wait(0, 0), and a name that is none is a KeyError."""

    def __missing__(self, cause: str) -> Wait:
        from ._prcb import Wait, causes
        if cause not in causes:
            raise KeyError(cause)
        return Wait((0, 0))
