#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The C files of src/ as a 32-bit compiler sees them, warnings as errors: what has to be built there. Prints
TAP. Takes the options of build/, for which ./dev build writes them down, and makes nothing."""
import json
import pathlib
import platform
import re
import shlex
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
# meson leaves them out: see the message of meson.build. Of Python there are no headers for 32 bits.
LEFT_OUT = ("src/lib/sample", "src/analysis/stack", "src/analysis/objects", "src/services/daemon", "src/python")
NOT_THERE = ("-DPRCB_HAVE_BPF", "-DHAVE_STACK")
KERNEL = f"/usr/include/{platform.machine()}-linux-gnu"  # <asm/types.h>, the same for both


def compiler(options, file, **how):
    return subprocess.run(["gcc", "-m32", "-fsyntax-only", "-fdiagnostics-color=never", "-idirafter", KERNEL,
                           *options, file], capture_output=True, text=True, check=False, **how)


def why_not(database):
    if platform.machine() != "x86_64":
        return "-m32 is an x86-64 compiler's"
    if not database.exists():
        return "./dev build has not been run"
    if compiler(["-x", "c"], "-", input="#include <errno.h>\n").returncode:
        return "no headers for -m32: libc6-dev-i386 is not installed"
    return None


def files(database):
    """Each with the options that it is compiled with."""
    for row in json.loads(database.read_text(encoding="utf-8")):
        path = (pathlib.Path(row["directory"]) / row["file"]).resolve()
        name = str(path.relative_to(TREE)) if path.is_relative_to(TREE) else ""
        if not name.startswith("src/") or path.suffix != ".c" or str(pathlib.Path(name).parent) in LEFT_OUT or \
                re.search(r'"(\w+\.skel|tier_bpf)\.h"', path.read_text(encoding="utf-8")):
            continue
        yield path, name, [word for word in shlex.split(row["command"])[1:]
                           if word.startswith(("-I", "-D", "-W", "-std", "-f", "-isystem")) and
                           word not in NOT_THERE and not word.startswith("-fdiagnostics")]


def main():
    database = TREE / "build/compile_commands.json"
    reason = why_not(database)
    if reason:
        print(f"ok 1 - src/ for 32 bits # SKIP {reason}\n1..1")
        return 0
    seen, failed = set(), []
    for path, name, options in files(database):
        if name not in seen:
            seen.add(name)
            result = compiler([*options, "-Werror"], path, cwd=database.parent)
            failed += result.stderr.splitlines()[:20] if result.returncode else []
    good = not failed and len(seen) > 100
    print(f"{'ok' if good else 'not ok'} 1 - src/ for 32 bits: {len(seen)} files", *failed, sep="\n# ")
    print("1..1")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
