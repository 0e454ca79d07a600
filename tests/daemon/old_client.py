# SPDX-License-Identifier: BSD-2-Clause
"""A client of version 1.0 of the protocol, frozen: the bytes it sends, and what it reads of the
answers, written out. Not to be changed when the protocol grows, and of x86-64's and arm64's byte
order, as recorded. It uses nothing of wire.py."""
import array
import mmap
import socket
import struct

HELLO = bytes.fromhex("28000000" "0100" "0000" "01000000" "00000000"
                      "50524244" "0100" "0000" "302e312e300000000000000000000000")
OPEN = bytes.fromhex("28000000" "0200" "0000" "02000000" "00000000"
                     "08000000" "00000000" "00000000000000000000000000000000")
PROFILE = bytes.fromhex("1c000000" "0300" "0000" "03000000" "00000000"
                        "02000000")  # then the process and, of follow, "03000000"
RELEASE_EXITED = bytes.fromhex("10000000" "0600" "0000" "04000000" "00000000")


def receive(connection):
    """The answer's bytes, whole, and its descriptors."""
    data, control, _, _ = connection.recvmsg(4096, 256)
    fds = array.array("i")
    for _, _, passed in control:
        fds.frombytes(passed)
    return data, list(fds)


def run(path, process):
    """Profiles a process. What it found, for the test to judge."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    connection.connect(path)
    connection.sendall(HELLO)
    hello, none = receive(connection)
    connection.sendall(OPEN)
    opened, fds = receive(connection)
    connection.sendall(PROFILE + struct.pack("<I", process) + bytes.fromhex("03000000"))
    profiled, also_none = receive(connection)
    memory = mmap.mmap(fds[0], 9 * 1024, mmap.MAP_SHARED, mmap.PROT_READ)
    head = mmap.mmap(fds[1], 4096, mmap.MAP_SHARED, mmap.PROT_READ)
    connection.sendall(RELEASE_EXITED)
    released, _ = receive(connection)
    connection.close()
    return {
        "hello": hello[:56], "open": opened[:40], "profile": profiled[:36],
        "released": released[:24], "fds": (len(none), len(fds), len(also_none)),
        "head": memory[:56], "clock": head[:8],
        "state": memory[1024 + 48], "tid": struct.unpack_from("<I", memory, 1024 + 136)[0],
    }
