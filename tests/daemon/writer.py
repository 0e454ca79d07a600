# SPDX-License-Identifier: BSD-2-Clause
"""A BPF program that stores into a map whose descriptor one has, as anybody may load it who has
CAP_BPF, or where kernel.unprivileged_bpf_disabled is 0: a socket filter, put together by hand."""
import ctypes
import os
import struct

import wire

PROG_LOAD, TEST_RUN = 5, 10
SOCKET_FILTER = 1
CAP_BPF = 39


def _call(command, attributes):
    buffer = ctypes.create_string_buffer(attributes + bytes(144 - len(attributes)), 144)
    ctypes.set_errno(0)
    result = wire.libc.syscall(wire.NR_BPF, command, buffer, 144)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return result, buffer.raw


def _insn(code, to=0, source=0, offset=0, value=0):
    return struct.pack("<BBhI", code, to | source << 4, offset, value & 0xffffffff)


def _wide(to, value, source=0):
    return _insn(0x18, to, source, 0, value) + _insn(0, 0, 0, 0, value >> 32)


def load(fd, element, stores):
    """A program that stores 64-bit words, [(offset, value)], into an element of the map."""
    code = [_insn(0x62, 10, 0, -4, element), _insn(0xbf, 2, 10), _insn(0x07, 2, 0, 0, -4),
            _wide(1, fd, 1), _insn(0x85, 0, 0, 0, 1),  # r0 = bpf_map_lookup_elem(map, &element)
            _insn(0x55, 0, 0, 2), _insn(0xb7, 0, 0, 0, 7), _insn(0x95)]
    for offset, value in stores:
        code += [_wide(1, value), _insn(0x7b, 0, 1, offset)]
    code = b"".join(code + [_insn(0xb7), _insn(0x95)])
    kept = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    return _call(PROG_LOAD, struct.pack("=IIQQIIQII", SOCKET_FILTER, len(code) // 8,
                                        ctypes.addressof(kept[0]), ctypes.addressof(kept[1]), 0, 0,
                                        0, 0, 0))[0]


def run(program):
    packet = ctypes.create_string_buffer(64)
    _, answer = _call(TEST_RUN, struct.pack("=IIIIQQII", program, 0, 64, 0,
                                            ctypes.addressof(packet), 0, 1, 0))
    assert struct.unpack_from("=I", answer, 4)[0] == 0, "the map has no such element"


def store(fd, element, stores):
    program = load(fd, element, stores)
    try:
        run(program)
    finally:
        os.close(program)


def become_with_cap_bpf(uid):
    """An ordinary user with CAP_BPF and nothing else."""
    os.setgroups([])
    wire.libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    bits = 1 << CAP_BPF - 32
    header = struct.pack("=II", 0x20080522, 0)
    assert not wire.libc.capset(header, struct.pack("=IIIIII", 0, 0, 0, bits, bits, 0))
    wire.libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
