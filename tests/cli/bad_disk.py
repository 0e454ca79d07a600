# SPDX-License-Identifier: BSD-2-Clause
"""A file system of a test's own (FUSE, spoken to by /dev/fuse): it keeps files in memory, and fails as it is told from
a moment on. Needs root, for the mount."""
import ctypes
import errno
import os
import stat
import struct
import threading

NODES = 1  # number of the root
HEAD, REPLY = struct.Struct("=IIQQIIIHH"), struct.Struct("=IiQ")
ATTR = struct.Struct("=QQQQQQIIIIIIIIII")
WRITES = (4, 8, 9, 10, 11, 12, 16, 35, 43, 45)  # operations that change something
LIBC = ctypes.CDLL(None, use_errno=True)


class Node:
    def __init__(self, mode):
        self.mode, self.data, self.children = mode, bytearray(), {}


class BadDisk:
    """way: "eio", "nospc" or "rofs", of each write after so many; "short", each write takes a part only; "sync", what
    was written is not kept, says fsync(2); "read", nothing can be read."""

    def __init__(self, folder, way="", after=0):
        self.folder, self.way, self.left = folder, way, after
        self.nodes, self.last, self.failed = {NODES: Node(stat.S_IFDIR | 0o755)}, NODES, 0
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"bad-disk", os.fsencode(folder), b"fuse", 0, options.encode()):
            os.close(self.device)
            raise OSError(ctypes.get_errno(), "mount")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def close(self):
        LIBC.umount2(os.fsencode(self.folder), 2)
        self.thread.join(30)
        os.close(self.device)

    def fail(self, way, after=0):
        self.way, self.left, self.failed = way, after, 0

    def serve(self):
        while True:
            try:
                message = os.read(self.device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return  # unmounted
            length, what, unique, node = HEAD.unpack_from(message)[:4]
            try:
                answer = self.answer(what, node, message[HEAD.size:length])
                if answer is None:
                    continue
                code = 0
            except OSError as error:
                answer, code = b"", -error.errno
            except KeyError:
                answer, code = b"", -errno.ENOENT
            try:
                os.write(self.device, REPLY.pack(REPLY.size + len(answer), code, unique) + answer)
            except OSError:
                pass  # who asked is gone

    def check(self, what):
        """The disk's state, at each operation."""
        code = {"eio": errno.EIO, "nospc": errno.ENOSPC, "rofs": errno.EROFS}.get(self.way)
        if what in (20, 30) and self.way == "sync":
            self.failed += 1
            raise OSError(errno.EIO, "")
        if what == 15 and self.way == "read":
            self.failed += 1
            raise OSError(errno.EIO, "")
        if code and (what in (8, 16) or self.way == "rofs" and what in WRITES):
            self.left -= 1
            if self.left < 0:
                self.failed += 1
                raise OSError(code, "")

    def attr(self, number):
        node = self.nodes[number]
        return ATTR.pack(number, len(node.data), (len(node.data) + 511) // 512, 0, 0, 0, 0, 0, 0, node.mode, 1, 0, 0, 0,
                         4096, 0)

    def entry(self, number):
        return struct.pack("=QQQQII", number, 0, 0, 0, 0, 0) + self.attr(number)

    def make(self, parent, name, mode):
        self.last += 1
        self.nodes[self.last] = Node(mode)
        self.nodes[parent].children[name] = self.last
        return self.last

    def answer(self, what, node, body):
        self.check(what)
        name = body.split(b"\0")[0]
        if what == 26:
            return struct.pack("=IIIIHHIIHHI7I", 7, 31, 65536, 0, 16, 12, 131072, 1, 0, 0, 0, *[0] * 7)
        if what == 1:
            return self.entry(self.nodes[node].children[name])
        if what == 3:
            return struct.pack("=QII", 0, 0, 0) + self.attr(node)
        if what == 4:
            valid, _, _, size = struct.unpack_from("=IIQQ", body)
            if valid & 8:
                data = self.nodes[node].data
                data[size:] = bytes(max(0, size - len(data)))
            if valid & 1:
                mode, = struct.unpack_from("=I", body, 68)
                self.nodes[node].mode = mode
            return struct.pack("=QII", 0, 0, 0) + self.attr(node)
        if what == 8:
            return self.entry(self.make(node, body[16:].split(b"\0")[0], struct.unpack_from("=I", body)[0]))
        if what == 9:
            return self.entry(self.make(node, body[8:].split(b"\0")[0], stat.S_IFDIR | 0o755))
        if what in (10, 11):
            del self.nodes[node].children[name]  # the node stays, for who has it open
            return b""
        if what in (12, 45):
            to, names = struct.unpack_from("=Q", body)[0], body[8 if what == 12 else 16:].split(b"\0")
            self.nodes[to].children[names[1]] = self.nodes[node].children.pop(names[0])
            return b""
        if what in (14, 27):
            return struct.pack("=QII", 1, 2, 0)  # what the kernel has of the file it keeps: programs run from there
        if what == 35:
            flags, mode = struct.unpack_from("=II", body)
            number = self.make(node, body[16:].split(b"\0")[0], mode)
            return self.entry(number) + struct.pack("=QII", 1, 0, 0)
        if what == 15:
            _, at, size = struct.unpack_from("=QQI", body)
            return bytes(self.nodes[node].data[at:at + size])
        if what == 16:
            _, at, size = struct.unpack_from("=QQI", body)
            if self.way == "short" and size > 1:
                size //= 2
                self.failed += 1
            data = self.nodes[node].data
            data.extend(bytes(max(0, at - len(data))))
            data[at:at + size] = body[40:40 + size]
            return struct.pack("=II", size, 0)
        if what == 17:
            return struct.pack("=QQQQQIIII6I", 1 << 20, 1 << 20, 1 << 20, 1000, 1000, 4096, 255, 4096, 0, *[0] * 6)
        if what == 28:
            at = struct.unpack_from("=QQI", body)[1]
            out = b""
            for i, (own, number) in enumerate(list(self.nodes[node].children.items())[at:], at + 1):
                out += struct.pack("=QQII", number, i, len(own), self.nodes[number].mode >> 12) + own
                out += bytes(-len(out) % 8)
            return out[:4096]
        if what in (18, 20, 25, 29, 30):
            return b""
        if what in (2, 36, 42):
            return None
        raise OSError(errno.ENOSYS, "")
