#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which files run in the kernel or as prcbd, and their lines: the table of docs/security.md.

    tools/trusted-lines.py [BUILD]           prints it, as of the programs in BUILD (build)
    tools/trusted-lines.py --write [BUILD]   writes it into docs/security.md

The files are those that the build says: the eBPF objects that prcbd has in it and what they
include; the objects that the linker took for prcbd and what they include. Headers of the system
and generated ones are left out. Lines are all lines of a file, with comments and blank ones; how
many hold code is in the sum.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/security.md"
BEGIN, END = "<!-- made by tools/trusted-lines.py -->\n", "<!-- until here -->\n"
PRCBD = "src/services/daemon/prcbd"
GOAL = 15000


def said(build, *command):
    return subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout


def linked(build):
    """The objects in prcbd: those of its own, and those that the linker took out of archives."""
    command = said(build, "ninja", "-t", "commands", PRCBD).splitlines()[-1].split()
    command[command.index("-o") + 1] = os.devnull
    link_map = said(build, *command, "-Wl,-M")
    own = [word for word in command if word.endswith(".o")]
    return own + re.findall(r"(?m)^(\S+\.o)$", link_map.partition("\n\n")[2].partition("\n\n")[0])


def read_by(build, objects):
    """The files of the tree that these objects were compiled from."""
    files = set()
    for block in said(build, "ninja", "-t", "deps", *objects).split("\n\n"):
        if block and "#deps" not in block.splitlines()[0]:
            sys.exit(f"trusted-lines: ninja knows nothing of {block.splitlines()[0]}: build it first")
        for line in block.splitlines()[1:]:
            path = pathlib.Path(os.path.normpath(build / line.strip()))
            if path.is_relative_to(ROOT) and not path.is_relative_to(build):
                files.add(path.relative_to(ROOT))
    return files


def trusted(build):
    """{"kernel": files, "prcbd": files}, a file of both in the first."""
    objects = linked(build)
    skeletons = {line.strip() for line in said(build, "ninja", "-t", "deps", *objects).splitlines()
                 if line.endswith(".skel.h")}
    programs = [re.sub(r"\.skel\.h$", ".bpf.o", skeleton) for skeleton in sorted(skeletons)]
    kernel = read_by(build, programs)
    return {"kernel": kernel, "prcbd": read_by(build, objects) - kernel}


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8").count("\n")


def code(path):
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.S)
    return sum(1 for line in text.splitlines() if line.strip())


def table(build):
    """The rows of the table, each with its room, files and lines."""
    rows = []
    for where, files in trusted(build).items():
        for room in sorted({path.parent for path in files}):
            names = sorted(path for path in files if path.parent == room)
            rows.append((where, f"{room}/", [path.name for path in names], sum(map(lines, names))))
    return rows


def text(rows):
    out = []
    for where, title in (("kernel", "in the kernel, as eBPF programs"),
                         ("prcbd", "as prcbd, which begins as root")):
        part = [row for row in rows if row[0] == where]
        out.append(f"- {sum(row[3] for row in part):,} lines run {title}:")
        for _, room, names, count in part:
            line = f"  - `{room}`, {count:,}:"
            for name in names:
                if len(line) + len(name) > 96:
                    out.append(line)
                    line = "   "
                line += f" {name}"
            out.append(line)
    total = sum(row[3] for row in rows)
    difference = f"{abs(total - GOAL):,} {'more' if total > GOAL else 'fewer'}"
    of_code = sum(code(pathlib.Path(room) / name) for _, room, names, _ in rows for name in names)
    out.append(f"\nTogether {total:,} lines, {difference} than the goal of {GOAL:,}; without comments and"
               f"\nblank lines {of_code:,}.")
    return "\n".join(out) + "\n"


def main():
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    made = text(table(pathlib.Path(arguments[0] if arguments else ROOT / "build").resolve()))
    if "--write" not in sys.argv:
        print(made, end="")
        return
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + made + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
