#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Seeds of fuzz_stack: the library of stack_seed.c, behind registers and stacks that point into it. And
those of go_seeds.c.

usage: stack_seeds.py LIBRARY GO_SEEDS STAMP: seeds go to seeds/fuzz_stack/ and seeds/fuzz_go_table/
beside STAMP."""

import pathlib
import struct
import subprocess
import sys

BASE = 0x400000  # as in fuzz_stack.c
STACK = 0x7ffc0000


def functions(library):
    """Of the library's own functions, address and size."""
    text = subprocess.run(['nm', '-S', '--defined-only', library], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return [(int(row[0], 16), int(row[1], 16)) for row in rows
            if len(row) == 4 and row[2] == 'T']


def seed(elf, pc, word, length, fp=STACK + 64):
    words = b''.join(struct.pack('<Q', word(i)) for i in range(length // 8))
    return struct.pack('<4QH', pc, STACK, fp, BASE + 0x1000, len(words)) + words + elf


def main():
    library, go_seeds, stamp = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    tables = stamp.parent / 'seeds' / 'fuzz_go_table'
    folder = stamp.parent / 'seeds' / 'fuzz_stack'
    elf = pathlib.Path(library).read_bytes()
    places = functions(library)
    if not places:
        sys.exit(f'{library}: no functions')
    folder.mkdir(parents=True, exist_ok=True)
    tables.mkdir(parents=True, exist_ok=True)
    subprocess.run([pathlib.Path(go_seeds).resolve(), tables, folder], check=True)
    for number, (start, size) in enumerate(places):
        for part, at in enumerate((0, size // 2, size - 1)):
            returns = [BASE + s + n // 2 for s, n in places]
            stack = seed(elf, BASE + start + at, lambda i: returns[i % len(returns)], 256)
            (folder / f'returns-{number}-{part}').write_bytes(stack)
            stack = seed(elf, BASE + start + at, lambda i: STACK + 8 * i + 16, 256)
            (folder / f'frames-{number}-{part}').write_bytes(stack)
            # a frame pointer that is not known: frames' places beside what they return to
            stack = seed(elf, BASE + start + at,
                         lambda i: returns[i // 2 % len(returns)] if i % 2 else STACK + 8 * i + 16, 256, 0)
            (folder / f'lost-{number}-{part}').write_bytes(stack)
    stamp.write_text('')


main()
