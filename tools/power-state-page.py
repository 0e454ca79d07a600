#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes docs/processor-power-state.md from the catalog: power-state-page.py PRCB > PAGE

The words between the tables are here, every offset, size and version is asked of
the program. tests/layout/test_page.py fails when the page is not what this prints.
"""
import json
import re
import subprocess
import sys

import layout_table

STRUCTURE = "PROCESSOR_POWER_STATE"
ARCHES = "x86", "x64"

HEAD = """\
# PROCESSOR_POWER_STATE, version by version

<!-- Made by tools/power-state-page.py from the catalog: change that, not this. -->

Since Windows 2000 the kernel has kept what it knows of a processor's power management in a
PROCESSOR_POWER_STATE, by value in the processor's KPRCB. Microsoft published its definition once,
for Windows 2000 (NTPOAPI.H, "win2k only", in every driver kit since), and then treated it as
internal: there is hardly a release that did not change it. This page is the history as the public
symbol files tell it; [layout-sources.md](layout-sources.md) names the sources, and where they
correct the article that this page follows in form.

`prcb layout PROCESSOR_POWER_STATE --version V` prints any one version, `--diff V1 V2` compares two.

*early*, *late* and *very late*: early 5.1 is Windows XP before SP2, late 5.1 is SP2, very late 5.1
is SP3; early 5.2 is Server 2003 before SP1, late 5.2 SP1, very late 5.2 SP2; early 6.0 is Vista
before SP1, late 6.0 is SP1 and SP2.

## Size
"""

POINTERS = """\
## The function pointers

    {functions}

**IdleFunction** was called by the kernel's idle loop each time it found no thread to run, and by
nothing else. The function halted the processor in the idle state of its choice and returned to the
loop. Early 6.0 still has the pointer, now before IdleStates; in late 6.0 it is gone, and what is
behind IdleStates drives the idle loop.

**PerfSetThrottle** (5.1 and 5.2) set the throttle of the processor it was called on. Its one
argument is taken to be per cent, as the throttle members around it are. **AbortThrottle** (5.0) is
typed as a plain pointer and known by its name alone. From 6.0 on the structure points to tables of
performance states instead: PerfStates, then Domain and PerfConstraint.

FASTCALL means that on x86 the first argument travels in ecx; on x64 there is but one convention.

## Members

An offset with a version in parentheses holds for that version, the one without for all that
follow. "x and higher" goes up to {newest}, the last version that was read.
"""

SERVICING = """\
## Changes within one build

Cumulative updates changed the structure without changing the build number. Seen in serviced x64
kernels:
"""


class Catalog:
    def __init__(self, program):
        self.program = program
        self.versions = json.loads(self.run("-j"))["versions"]
        lines = self.run(STRUCTURE, "--all", "-j").splitlines()
        self.layouts = {(layout["version"], layout["arch"]): layout
                        for layout in map(json.loads, lines)}

    def run(self, *arguments):
        return subprocess.run([self.program, "layout", *arguments], capture_output=True,
                              text=True, check=True).stdout

    def size(self, version, arch):
        layout = self.layouts.get((version["version"], arch))
        return f"0x{layout['size']:X}" if layout else ""


def size_table(catalog):
    """A row for each run of releases with the same sizes."""
    rows = []
    for version in catalog.versions:
        sizes = tuple(catalog.size(version, arch) for arch in ARCHES)
        # a build read on one processor only says nothing of the other
        if rows and all(a == b or not a for a, b in zip(sizes, rows[-1][2])):
            rows[-1][1] = version
            continue
        rows.append([version, version, sizes])
    yield "| From | To | x86 | x64 |"
    yield "|---|---|---|---|"
    for first, last, sizes in rows:
        yield f"| {first['release']} | {last['release']} | {sizes[0]} | {sizes[1]} |"


def functions(catalog):
    text = "".join(catalog.run(STRUCTURE, "--version", version, "--arch", "x86")
                   for version in ("5.0", "XP SP3"))
    return list(dict.fromkeys(re.findall(r"^typedef .*;$", text, re.M)))


def tables(catalog):
    text = layout_table.make(STRUCTURE, catalog.versions, catalog.layouts)
    return re.sub(rf"^{STRUCTURE}, (.*)$", r"### \1", text, flags=re.M).rstrip("\n")


def servicing(catalog):
    previous = {}
    for version in catalog.versions:
        build = version["version"].rsplit(".", 1)[0]
        layout = catalog.layouts.get((version["version"], "x64"))
        if layout and version["version"].count(".") == 3 and build in previous:
            before = previous[build]
            if [before["size"], before["members"]] != [layout["size"], layout["members"]]:
                diff = catalog.run(STRUCTURE, "--arch", "x64", "--diff", before["version"],
                                   layout["version"])
                yield "    " + diff.rstrip("\n").replace("\n", "\n    ")
        if layout:
            previous[build if version["version"].count(".") == 3
                     else version["version"]] = layout


def main():
    catalog = Catalog(sys.argv[1])
    print(HEAD)
    print("\n".join(size_table(catalog)))
    print()
    print(POINTERS.format(functions="\n    ".join(functions(catalog)),
                          newest=catalog.versions[-1]["release"]))
    print(tables(catalog))
    print()
    print(SERVICING)
    print("\n\n".join(servicing(catalog)))


main()
