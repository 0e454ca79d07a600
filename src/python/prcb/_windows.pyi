# SPDX-License-Identifier: BSD-2-Clause
import os
from typing import Any, Literal, NamedTuple, final
from typing_extensions import Self

Found = Literal["catalog", "kdbg", "landmark", "symbols", "header"]

class Field(NamedTuple):
    name: str
    type: str
    kind: Literal["unsigned", "signed", "pointer", "enum", "nested", "inline", "opaque"]
    offset: int
    size: int
    count: int  # type: ignore[assignment]
    bits: tuple[int, int] | None
    source: str
class LayoutVersion(NamedTuple):
    id: int
    name: str
    key: str
    release: str
    major: int
    minor: int
    build: int
    revision: int
    x86: bool
    x64: bool
@final
class Layout:
    def __new__(cls, structure: str, version: str, arch: str = "x64") -> Self: ...
    def __len__(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def arch(self) -> Literal["x64", "x86"]: ...
    @property
    def version(self) -> LayoutVersion: ...
    @property
    def note(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def partial(self) -> bool: ...
    @property
    def members(self) -> list[Field]: ...
    @property
    def leaves(self) -> list[Field]: ...
    def lookup(self, path: str, /) -> Field: ...
    def get(self, data: bytes | bytearray | memoryview, path: str, /) -> int: ...
    def put(self, data: bytearray | memoryview, path: str, value: int, /) -> None: ...
    def decode(self, data: bytes | bytearray | memoryview, /) -> dict[str, int]: ...
    def definition(self) -> str: ...
    def header(self) -> str: ...

def layout_versions() -> list[LayoutVersion]: ...
def layout_structures() -> list[str]: ...
def dump_structures() -> list[str]: ...

class DumpValue(NamedTuple):
    value: int | None
    found_by: Found | None
    absent: str | None
class DumpInfo(NamedTuple):
    container: str
    container_words: str
    machine: str
    major: int
    build: int
    release: str | None
    layout: str | None
    layout_found: Found | None
    bugcheck_code: int
    bugcheck_name: str | None
    bugcheck_parameters: tuple[int, int, int, int]
    bugcheck_words: tuple[str | None, str | None, str | None, str | None]
    exception_code: int | None
    exception_address: int | None
    uptime_100ns: int | None
    crash_time: int | None
    header_processors: int
    time_increment: int
    qpc_frequency: int | None
    kdbg_encoded: bool
class DumpProcessor(NamedTuple):
    number: int
    crashing: bool
    held: bool
    kprcb: int | None
    vendor: str
    items: dict[str, DumpValue]
class DumpModule(NamedTuple):
    name: str
    base: int
    length: int
    timestamp: int | None
    checksum: int | None
    unloaded: bool
    found_by: Found | None
class DumpContext(NamedTuple):
    program_counter: int | None
    stack_pointer: int | None
    registers: dict[str, int]
    irql: int | None
    irql_name: str | None
    absent: str | None
class DumpThread(NamedTuple):
    address: int | None
    process: int | None
    process_name: str | None
    id: int | None
    process_id: int | None
class DumpDpc(NamedTuple):
    address: int
    routine: int | None
    threaded: bool
    active: bool
class DumpMember(NamedTuple):
    path: str
    type: str
    value: int | None
    value_name: str | None
    offset: int
    size: int
    bits: tuple[int, int] | None
    address: int
    held: bool
class DumpStructure(NamedTuple):
    name: str
    version: str
    address: int | None
    length: int | None
    found_by: Found | None
    members: list[DumpMember]
@final
class Dump:
    def __new__(cls, path: str | bytes | os.PathLike[str], *, time_increment: int = 0,
                qpc_frequency: int = 0) -> Self: ...
    @property
    def info(self) -> DumpInfo: ...
    @property
    def processors(self) -> list[DumpProcessor]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def modules(self) -> list[DumpModule]: ...
    def context(self, index: int, /) -> DumpContext: ...
    def thread(self, index: int, /) -> DumpThread: ...
    def dpcs(self, index: int, /) -> list[DumpDpc]: ...
    def structure(self, index: int, name: str, /) -> DumpStructure: ...
    def stack_scan(self) -> list[tuple[int, int]]: ...
    def address_text(self, address: int, /) -> str | None: ...
    def read(self, address: int, length: int, /) -> bytes: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
