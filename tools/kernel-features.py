#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the eBPF programs use of the kernel: src/kernel/load/features.def against the built objects and the sources,
and as the table of docs/kernels.md.

    kernel-features.py --write             writes the table
    kernel-features.py --check BUILD       compares: the table; what the objects of that build folder call"""
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/kernels.md"
BEGIN, END = "<!-- kernel-features.py: begin -->\n", "<!-- kernel-features.py: end -->\n"
OBJECTS = {"accounts": "ACCOUNTS", "clients": "CLIENTS", "processors": "PROCESSORS", "samples": "SAMPLES"}
SETS = {"THREADS": {"ACCOUNTS", "CLIENTS"}, "SWITCHES": {"ACCOUNTS", "CLIENTS", "SAMPLES"},
        "ALL": set(OBJECTS.values()), "0": set()}
CALL, PLAIN_CALLS = 0x85, 1 << 16 # calls of plain.h, which the loader replaces, have greater numbers


def rows():
    """(kind, words in the table, name, release, programs, what it costs)"""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src/kernel/load/features.def").read_text(), flags=re.S)
    for kind, inside in re.findall(r"(?m)^([A-Z]+)\((.*)\)$", text):
        fields = [field.strip().replace('\\"', '"').strip('"') if not field.strip().startswith('"') else
                  field.strip()[1:-1].replace('\\"', '"')
                  for field in re.findall(r'\s*((?:"(?:\\.|[^"\\])*"|[^,"])+)', inside)]
        if kind == "OTHER":
            yield fields[0], fields[1], fields[1], fields[2], None, fields[3]
            continue
        programs = set().union(*(SETS.get(word.strip(), {word.strip()}) for word in fields[-2].split("|")))
        name, words = {"HELPER": (fields[0], f"`bpf_{fields[0]}`"),
                       "MAP": (fields[0], f"`BPF_MAP_TYPE_{fields[0]}`"),
                       "PROGRAM": (fields[0], f"`BPF_PROG_TYPE_{fields[0]}`"),
                       "MEMBER": (f"{fields[0]}.{fields[1]}", f"`{fields[0]}.{fields[1]}`")}[kind]
        yield {"HELPER": "helper", "MAP": "map", "PROGRAM": "program type", "MEMBER": "member"}[kind], words, name, \
            fields[-3], programs, fields[-1]


def table():
    new = [row for row in rows() if row[3]]
    new.sort(key=lambda row: [int(part) for part in re.match(r"(\d+)\.(\d+)", row[3]).groups()])
    lines = ["| what | kind | since | without it |", "|---|---|---|---|"]
    for kind, words, _, release, _, cost in new:
        words = f"`{words}`" if re.fullmatch(r"\w+_\w+", words) else words
        lines.append(f"| {words} | {kind} | {release} | {cost} |")
    for kind in "helper", "map", "program type", "flag", "member":
        old = sorted(row[1].strip("`") for row in rows() if row[0] == kind and not row[3])
        lines.append("| " + ", ".join(f"`{name}`" for name in old) + f" | {kind} | before 5.5 | refused |")
    return "\n".join(lines) + "\n"


def called(path):
    """Numbers of the helpers that an object's instructions call."""
    data, found = path.read_bytes(), set()
    sections, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    for index in range(count):
        kind, flags, _, offset, size = struct.unpack_from("<IQQQQ", data, sections + 64 * index + 4)
        if kind == 1 and flags & 4: # PROGBITS, EXECINSTR
            for at in range(offset, offset + size, 8):
                code, registers, _, number = struct.unpack_from("<BBhi", data, at)
                if code == CALL and registers >> 4 == 0 and number < PLAIN_CALLS:
                    found.add(number)
    return found


def helper_names():
    """By number, of <linux/bpf.h>: FN(name), or from Linux 6.2 on FN(name, number, context)."""
    text = pathlib.Path("/usr/include/linux/bpf.h").read_text()
    text = text[text.index("___BPF_FUNC_MAPPER(FN" if "___BPF_FUNC_MAPPER(FN" in text else "__BPF_FUNC_MAPPER(FN"):]
    names = re.findall(r"FN\((\w+)(?:, (\d+), \w+)?(?:, ##ctx)?\)", text)
    return {int(number) if number else place: name for place, (name, number) in enumerate(names)}


def used_words():
    """Maps and flags, of the sources; iterators; each in the form of rows' names."""
    text = "".join(path.read_text() for folder in ("kernel/bpf", "kernel/load", "lib", "services/daemon")
                   for path in (ROOT / "src" / folder).rglob("*.[chi]*"))
    return {("map", name) for name in re.findall(r"\bBPF_MAP_TYPE_(\w+)", text)} | \
           {("flag", name) for name in re.findall(r"\b(BPF_F_\w+)", text)} | \
           {("iterator", name) for name in re.findall(r'SEC\("prcb_iter/(\w+)"\)', text)}


def differences(build):
    page = PAGE.read_text()
    if page[page.index(BEGIN) + len(BEGIN):page.index(END)] != table():
        yield "docs/kernels.md: the table is not of these rows: run tools/kernel-features.py --write"
    everything, names = list(rows()), helper_names()
    needed, unused = {row[2]: row for row in everything if row[0] == "helper"}, set()
    unused.update(needed)
    for name, program in OBJECTS.items():
        for number in called(build / f"src/kernel/bpf/{name}.bpf.o"):
            helper = names.get(number, str(number))
            unused.discard(helper)
            if helper not in needed:
                yield f"{name}.bpf.o calls bpf_{helper}: features.def has no row HELPER({helper}, ...)"
            elif needed[helper][4] and program not in needed[helper][4]:
                yield f"{name}.bpf.o calls bpf_{helper}, and its row does not name {program}"
    yield from (f"nothing calls bpf_{helper}, which has a row" for helper in sorted(unused))
    have = {(row[0], row[2]) for row in everything if row[0] in ("map", "flag", "iterator")}
    yield from (f"{kind} {name}: used without a row, or a row without a use" for kind, name in sorted(have ^ used_words()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        text = PAGE.read_text()
        PAGE.write_text(text[:text.index(BEGIN) + len(BEGIN)] + table() + text[text.index(END):])
    elif len(sys.argv) == 3 and sys.argv[1] == "--check":
        found = list(differences(pathlib.Path(sys.argv[2])))
        print("\n".join(found))
        sys.exit(bool(found))
    else:
        sys.exit(__doc__)
