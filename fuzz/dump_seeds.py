#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Seeds of the fuzz_dump_* targets: small dumps by tests/dump/mkdump.py. Usage: dump_seeds.py STAMP;
they go to seeds/ beside it. PRCB names the built prcb."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "dump"))
import mkdump  # noqa: E402

TIMES = "processors = 2\ncpu.*.KernelTime = 60000\ncpu.*.UserTime = 4000\nuptime = 10000000000\n"
SMALL_64, SMALL_32 = "version = 5.2.3790 SP1\n", "version = 6.0.6000\nmachine = x86\n"
NAMES = {"triage64": "triage64", "triage32": "triage32", "full64": "full64", "full32": "full32",
         "bitmap64": "bitmap-full64", "bitmap32": "bitmap-kernel32", "summary64": "kernel64",
         "ranges64": "ranges-full64", "guest": "qemu-elf64"}
# modules, a stack, registers, DPCs: small, and of both widths
WHERE = """
module.0 = nt 0x{b:x} 0x10000 1 2
module.1 = b.sys 0x{c:x} 0x1000
unloaded.0 = gone.sys 0x{d:x} 0x1000
stack.0 = 0x{b:x}
stack.16 = 0x{c:x}
"""
WHERE_64 = WHERE.format(b=0xfffff80000000000, c=0xfffff80001000000, d=0xfffff80002000000) + \
    "context.0.rip = 0xfffff80001000010\ncontext.0.place = inside\nirql.0 = 2\n" \
    "process.0 = System 4 8\n"
WHERE_32 = WHERE.format(b=0x80800000, c=0x8f000000, d=0x91000000)


def texts(container):
    is_64 = container.endswith("64") or container == "guest"
    small = SMALL_64 if is_64 else SMALL_32
    yield small
    yield small + (WHERE_64 if is_64 else WHERE_32)
    if container.startswith("triage"):
        yield small + "kdbg = none"
        yield small + "blocks = none"
        yield small + "increment = 156250"
        if is_64:
            yield "version = none\nmachine = arm64\nbuild = 26100\nsize = 0x9f00\nkdpc = 0x1508\n"
    else:
        yield small + "paging = " + ("x64-5" if is_64 else "pae")
        yield small + "entry.1.1 = transition"
        yield small + "smbios = 2"
        yield small + "smbios = 3"


def types():
    """A type stream: _KPRCB with a pointer, an array, a union, bits and an enumeration."""
    records = []

    def add(kind, data):
        data = struct.pack("<H", kind) + data
        data += b"\xf3\xf2\xf1"[3 - -len(data) % 4 if len(data) % 4 else 3:]
        records.append(struct.pack("<H", len(data)) + data)
        return 0x1000 + len(records) - 1

    def member(kind, offset, name):
        return struct.pack("<HHIH", 0x150d, 3, kind, offset) + name + b"\0"
    bits = add(0x1205, struct.pack("<IBB", 0x75, 5, 0))
    array = add(0x1503, struct.pack("<IIH", 0x73, 0x75, 6) + b"\0")
    values = add(0x1203, struct.pack("<HHH", 0x1502, 3, 7) + b"B\0")
    enum = add(0x1507, struct.pack("<HHII", 1, 0, 0x74, values) + b"E\0")
    inner = add(0x1203, member(0x77, 0, b"Whole") + member(bits, 0, b"Low"))
    union = add(0x1506, struct.pack("<HHIH", 2, 0, inner, 8) + b"<unnamed-tag>\0")
    pointer = add(0x1002, struct.pack("<II", union, 8 << 13))
    fields = add(0x1203, member(pointer, 0, b"Next") + member(array, 8, b"Words") +
                 member(union, 16, b"U") + member(enum, 24, b"Mode"))
    add(0x1505, struct.pack("<HHIIIH", 4, 0, fields, 0, 0, 32) + b"_KPRCB\0")
    body = b"".join(records)
    return struct.pack("<IIIII", 20040203, 56, 0x1000, 0x1000 + len(records), len(body)).ljust(
        56, b"\0") + body


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "seeds")
    for name, container in NAMES.items():
        folder = os.path.join(root, "fuzz_dump_" + name)
        os.makedirs(folder, exist_ok=True)
        for i, text in enumerate(texts(container)):
            with open(os.path.join(folder, "%d" % i), "wb") as out:
                out.write(mkdump.make("container = %s\n" % container +
                                      ("" if "version = none" in text else TIMES) + text))
    folder = os.path.join(root, "fuzz_dump_search")
    os.makedirs(folder, exist_ok=True)
    for version, build in (("5.2.3790 SP1", 3790), ("6.1.7601", 7601), ("10.0.19041", 19041)):
        machine = mkdump.Machine(mkdump.parse(
            "container = triage64\nversion = %s\n" % version + TIMES))
        kdbg = bytes(machine.regions[machine.kdbg]).ljust(0x400, b"\0")
        with open(os.path.join(folder, version.split()[0]), "wb") as out:
            out.write(struct.pack("<HH", build, 0) + kdbg + machine.regions[machine.kprcbs[0]])
    folder = os.path.join(root, "fuzz_dump_pdb")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "types"), "wb") as out:
        out.write(b"\0" + types())
    with open(sys.argv[1], "w") as stamp:
        stamp.write("seeds are in seeds/\n")


if __name__ == "__main__":
    main()
