#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that an eBPF object for arm64 moves its sequence counts by exchanges.

    exchanges.py accounts.bpf.o
    exchanges.py processors.bpf.o

An exchange is the only ordered store that eBPF of this age has (seqcount_abi.h), and an
addition that fetches is as good. Each program that writes blocks must have two at least, as an
update begins and ends with one, in the program itself or in a function that it calls. Disassemblers of this age do not know the 32-bit exchange, so the
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


class Object:
    """Code of a 64-bit little-endian ELF file: sections, functions, and who calls whom."""

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            sys.exit("not a 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQII", data, table + i * size) for i in range(count)]
        self.contents = [data[h[4]:h[4] + h[5]] if h[1] != 8 else b"" for h in headers]
        strings = self.contents[names]
        self.names = [strings[h[0]:strings.index(b"\0", h[0])].decode() for h in headers]
        self.functions = {}  # (section, offset): length
        self.calls = {}  # (section, offset of the instruction): (section, offset) that it is relocated to
        symbols = next(i for i, h in enumerate(headers) if h[1] == 2)
        self.symbols = [struct.unpack_from("<IBBHQQ", self.contents[symbols], at)
                        for at in range(0, len(self.contents[symbols]), 24)]
        for _, info, _, section, value, length in self.symbols:
            if info & 15 == 2:
                self.functions[section, value] = length
        for h, content in zip(headers, self.contents):
            for at in range(0, len(content) if h[1] == 9 else 0, 16):
                offset, info = struct.unpack_from("<QQ", content, at)
                symbol = self.symbols[info >> 32]
                self.calls[h[7], offset] = symbol[3], symbol[4]

    def exchanges(self, section, start, end, seen):
        """Counts those of a piece of code and of all functions that it calls."""
        code, found = self.contents[section], 0
        for at in range(start, end, 8):
            opcode, registers, _, immediate = struct.unpack_from("<BBhi", code, at)
            found += opcode == 0xC3 and immediate in (0xE1, 0x01)
            if opcode == 0x85 and registers >> 4 == 1:
                target, base = self.calls.get((section, at), (section, at + 8))
                called = target, base + 8 * (immediate + 1 if (section, at) in self.calls else immediate)
                if called not in seen:
                    seen.add(called)
                    found += self.exchanges(target, called[1], called[1] + self.functions[called], seen)
        return found

    def exchanges_of(self, name):
        if name not in self.names:
            return 0
        section = self.names.index(name)
        return self.exchanges(section, 0, len(self.contents[section]), set())


def main(path):
    with open(path, "rb") as file:
        code = Object(file.read())
    counts = {name: code.exchanges_of(name) for name in WRITERS[pathlib.Path(path).name]}
    for name, count in counts.items():
        print(f"{name}: {count} exchanges")
    wrong = [name for name, count in counts.items() if count < 2]
    if wrong:
        sys.exit("sequence counts are not moved by exchanges in: " + ", ".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
