#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that an eBPF object for arm64 moves its sequence counts by exchanges.

    exchanges.py accounts.bpf.o
    exchanges.py processors.bpf.o

An exchange is the only ordered store that eBPF of this age has (seqcount_abi.h), and an
addition that fetches is as good. Each program that writes blocks must have two at least, as an
update begins and ends with one. Disassemblers of this age do not know the 32-bit exchange, so the
instructions are looked at here: code 0xc3 (32-bit atomic), immediate 0xe1 (exchange) or 0x01
(fetch and add; 0x00 would be an addition without order).
"""
import pathlib
import struct
import sys

# Sections of programs, by object. raw_tp has several: two at least all the same.
WRITERS = {
    "accounts.bpf.o": ["prcb_tp/sched_switch", "prcb_tp/task_newtask", "prcb_tp/task_rename",
                       "prcb_tp/sched_process_free", "prcb_iter/task", "syscall"],
    "processors.bpf.o": ["prcb_tp/sched_switch", "prcb_tp/cpu_idle", "prcb_tp/softirq_entry",
                         "prcb_tp/softirq_exit", "prcb_tp/irq_handler_entry",
                         "prcb_tp/irq_handler_exit", "prcb_tp/cpuhp_enter", "prcb_tp/cpuhp_exit",
                         "raw_tp"],
}


def sections(data):
    """Names and contents of a 64-bit little-endian ELF file's sections."""
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    start = headers[names][4]
    for name, _, _, _, offset, length in headers:
        end = data.index(b"\0", start + name)
        yield data[start + name:end].decode(), data[offset:offset + length]


def exchanges(code):
    found = 0
    for at in range(0, len(code) - 7, 8):
        opcode, _, _, immediate = struct.unpack_from("<BBhi", code, at)
        found += opcode == 0xC3 and immediate in (0xE1, 0x01)
    return found


def main(path):
    with open(path, "rb") as file:
        contents = dict(sections(file.read()))
    counts = {name: exchanges(contents.get(name, b"")) for name in WRITERS[pathlib.Path(path).name]}
    for name, count in counts.items():
        print(f"{name}: {count} exchanges")
    wrong = [name for name, count in counts.items() if count < 2]
    if wrong:
        sys.exit("sequence counts are not moved by exchanges in: " + ", ".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
