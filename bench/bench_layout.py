# SPDX-License-Identifier: BSD-2-Clause
"""The same values decoded by Python's struct and ctypes, for bench_layout: reads
"offset size signed" lines, prints nanoseconds for all values of one structure."""
import ctypes
import struct
import sys
import timeit

INTEGER = {(1, 0): "B", (2, 0): "H", (4, 0): "I", (8, 0): "Q",
           (1, 1): "b", (2, 1): "h", (4, 1): "i", (8, 1): "q"}
CTYPES = {"B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32, "Q": ctypes.c_uint64,
          "b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64}


def read_leaves():
    """Leaves in order of offset; of those that share bytes, the first."""
    end = 0
    for line in sys.stdin:
        offset, size, signed = map(int, line.split())
        if offset >= end:
            yield offset, size, INTEGER[size, signed]
            end = offset + size


def padded(leaves, pad, item):
    end, parts = 0, []
    for offset, size, letter in leaves:
        if offset > end:
            parts.append(pad(offset - end, end))
        parts.append(item(letter, offset))
        end = offset + size
    return parts


def report(name, function, number=20000):
    best = sorted(timeit.repeat(function, number=number, repeat=7))[3] / number * 1e9
    print(f"{best:12.1f} ns  {name}")


def main():
    leaves = list(read_leaves())
    data = b"\x5a" * 4096
    unpack = struct.Struct("<" + "".join(padded(leaves, lambda n, _: f"{n}x",
                                                lambda letter, _: letter))).unpack_from
    fields = padded(leaves, lambda n, at: (f"pad{at}", ctypes.c_uint8 * n),
                    lambda letter, at: (f"m{at}", CTYPES[letter]))

    class Layout(ctypes.LittleEndianStructure):
        _pack_ = 1
        _fields_ = fields

    names = [name for name, _ in fields if name.startswith("m")]

    def with_ctypes():
        decoded = Layout.from_buffer_copy(data)
        return [getattr(decoded, name) for name in names]

    report(f"Python struct.unpack_from, {len(leaves)} values", lambda: unpack(data))
    report(f"Python ctypes, {len(leaves)} values by name", with_ctypes)


main()
