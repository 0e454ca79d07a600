# SPDX-License-Identifier: BSD-2-Clause
"""prcbd's protocol as an attacker would write it, from docs/protocol.md and not from the library:
raw messages, and the system calls on what comes back. A daemon of one's own in a private folder."""
import array
import ctypes
import errno
import mmap
import os
import pickle
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import traceback

HELLO, OPEN, PROFILE, SCOPE, RELEASE, RELEASE_EXITED, REFRESH, PROCESSORS = range(1, 9)
PROGRAMS = 10
THREAD, PROCESS, ALL = 1, 2, 3
OPEN_SHARED = 4
OPEN_EDGES, OPEN_OBJECTS, OPEN_OWNERS, OPEN_MEANWHILE = 2, 32, 64, 128
FOLLOW_ALL = 3
MAGIC = 0x44425250
MAX = 1024
HEADER = struct.Struct("=IHHIi")

NOBODY = 65534
OTHER = 23456  # no user of this system; numbers are enough for the kernel

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NR_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
BPF_MAP_LOOKUP, BPF_MAP_UPDATE, BPF_MAP_DELETE, BPF_OBJ_PIN = 1, 2, 3, 6
ELEMENT = 1024  # bytes of an element of a client's map


class Refused(Exception):
    """An answer with a negative status."""

    def __init__(self, status, text):
        super().__init__(f"{errno.errorcode.get(-status, status)}: {text}")
        self.status = status
        self.text = text


class Closed(Exception):
    """The daemon ended the connection."""


def message(kind, number, payload=b""):
    return HEADER.pack(HEADER.size + len(payload), kind, 0, number, 0) + payload


def hello(major=1, minor=0, magic=MAGIC):
    return struct.pack("=IHH16s", magic, major, minor, b"attacker")


class Client:
    """One connection. Methods raise Refused or Closed."""

    def __init__(self, path, greet=True, timeout=10):
        self.number = 0
        self.fds = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Blocking, so that a full line is waited in: with a timeout of python's it is an error.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                               struct.pack("=qq", timeout, 0))
        self.socket.connect(path)
        self.socket.settimeout(timeout)
        if greet:
            self.greet()

    def __del__(self):
        self.close()

    def close(self):
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def send(self, kind, payload=b""):
        self.number += 1
        try:
            self.socket.sendall(message(kind, self.number, payload))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed() from error

    def receive(self):
        """(type, id, payload); descriptors are kept."""
        data = self._exactly(HEADER.size)
        length, kind, _, number, status = HEADER.unpack(data)
        payload = self._exactly(length - HEADER.size)
        if status < 0:
            raise Refused(status, payload.decode(errors="replace"))
        return kind, number, payload

    def _exactly(self, want):
        data = b""
        while len(data) < want:
            try:
                part, control, _, _ = self.socket.recvmsg(want - len(data),
                                                          socket.CMSG_SPACE(16 * 4))
            except ConnectionResetError as error:
                raise Closed() from error
            for level, kind, fds in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    got = array.array("i")
                    got.frombytes(fds[:len(fds) - len(fds) % got.itemsize])
                    self.fds.extend(got)
            if not part:
                raise Closed()
            data += part
        return data

    def ask(self, kind, payload=b""):
        self.send(kind, payload)
        got, number, answer = self.receive()
        assert (got, number) == (kind, self.number), (got, number)
        return answer

    def greet(self):
        answer = self.ask(HELLO, hello())
        _, _, _, _, _, _, self.may, self.default, self.most = struct.unpack("=IHH16sHHIII",
                                                                            answer[:40])

    def open(self, accounts=0, token=bytes(16), flags=0):
        """A session; the descriptors are in self.fds."""
        answer = self.ask(OPEN, struct.pack("=II", accounts, flags) + token)
        self.accounts, self.resumed = struct.unpack("=II", answer[:8])
        self.token = answer[8:24]
        return self

    def programs(self, which=1):
        """{name: (id, misses)}"""
        answer = self.ask(PROGRAMS, struct.pack("=I", which))
        count, _ = struct.unpack_from("=II", answer)
        assert len(answer) == 8 + 40 * count, answer
        rows = [struct.unpack_from("=QI28s", answer, 8 + 40 * i) for i in range(count)]
        return {name.rstrip(b"\0").decode(): (number, misses) for misses, number, name in rows}

    def profile(self, what, number=0, follow=0):
        """(seen, added, full, refused, crowded)"""
        return struct.unpack("=IIIII", self.ask(PROFILE, struct.pack("=III", what, number,
                                                                     follow))[:20])

    def scope(self, everything=0, cgroup=0, v2=0):
        return self.ask(SCOPE, struct.pack("=IIQ", everything, v2, cgroup))

    def map(self):
        """The session's map, readable."""
        return mmap.mmap(self.fds[0], (self.accounts + 1) * ELEMENT, mmap.MAP_SHARED,
                         mmap.PROT_READ)


class Account:
    """One account, as far as the tests look at it (src/kernel/abi/block_abi.h)."""

    def __init__(self, memory, slot):
        self.memory, self.at = memory, (slot + 1) * ELEMENT

    def _get(self, form, offset):
        return struct.unpack_from(form, self.memory, self.at + offset)[0]

    @property
    def state(self):
        return self._get("=B", 48)

    @property
    def switches(self):
        return self._get("=Q", 40)

    @property
    def tid(self):
        return self._get("=I", 136)

    @property
    def comm(self):
        return self._get("=16s", 152).split(b"\0")[0].decode()


class Rings:
    """The rings of switch records behind the accounts, as docs/protocol.md has them."""

    SWITCHES = 16  # the flag of open

    def __init__(self, client):
        head = client.map()
        self.processors, self.elements = struct.unpack_from("=II", head, 84)
        self.first = (client.accounts + 1) * ELEMENT
        self.bytes = self.first + self.processors * (self.elements + 1) * ELEMENT
        self.memory = mmap.mmap(client.fds[0], self.bytes, mmap.MAP_SHARED, mmap.PROT_READ)

    def records(self):
        """[(time, kind, cause, by, tid, pid, waker's tid, its name)] of each that is there."""
        found = []
        for processor in range(self.processors):
            at = self.first + processor * (self.elements + 1) * ELEMENT
            written = struct.unpack_from("=Q", self.memory, at)[0]
            for number in range(max(0, written - self.elements * 8), written):
                record = at + ELEMENT + number % (self.elements * 8) * 128
                time_ns, kind, cause, by, _, _, tid, pid = struct.unpack_from("=QBBBBIII",
                                                                              self.memory, record)
                waker, _, comm = struct.unpack_from("=II16s", self.memory, record + 56)
                found.append((time_ns, kind, cause, by, tid, pid, waker, comm.split(b"\0")[0]))
        return sorted(found)


STATE_FREE, STATE_EXITED = 0, 4


def used(memory, count):
    accounts = [Account(memory, slot) for slot in range(count)]
    return [account for account in accounts if account.state != STATE_FREE]


def bpf(command, attributes):
    """bpf(2): 0 or the error's number."""
    buffer = ctypes.create_string_buffer(attributes + bytes(128 - len(attributes)), 128)
    ctypes.set_errno(0)
    return 0 if libc.syscall(NR_BPF, command, buffer, 128) >= 0 else ctypes.get_errno()


def become(uid, gid):
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, which a change of user takes away


def as_user(uid, function, *arguments, gid=None, how=None):
    """What the function returns in a process of that user; exceptions come through. how: becomes
    the user."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reader)
            if how:
                how(uid)
            else:
                become(uid, uid if gid is None else gid)
            result = ("ok", function(*arguments))
        except BaseException as error:  # pylint: disable=broad-except
            result = ("error", f"{error!r}\n{traceback.format_exc()}")
        try:
            with os.fdopen(writer, "wb") as file:
                pickle.dump(result, file)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    if not data:
        raise RuntimeError("the other process died")
    kind, value = pickle.loads(data)
    if kind == "error":
        raise AssertionError(value)
    return value


def unprivileged_bpf():
    """Whether every user may load BPF programs here: prcbd would not start."""
    with open("/proc/sys/kernel/unprivileged_bpf_disabled", encoding="ascii") as file:
        return file.read().strip() == "0"


class Daemon:
    """prcbd with a socket and a pin directory of its own. It starts where users may load BPF
    programs too, unless its settings say otherwise: most tests are not about that."""

    def __init__(self, program, settings="", prefix=()):
        self.program = program
        self.prefix = list(prefix)
        self.folder = tempfile.mkdtemp(prefix="prcbd-test-")
        os.chmod(self.folder, 0o755)
        self.socket = self.folder + "/socket"
        self.pins = f"/sys/fs/bpf/prcbd-test-{os.getpid()}-{os.path.basename(self.folder)[-6:]}"
        self.config = self.folder + "/prcbd.conf"
        self.configure(settings)
        self.process = None
        self.log = open(self.folder + "/log", "w+b")  # pylint: disable=consider-using-with
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def configure(self, settings):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"pin_directory = {self.pins}\nuser = daemon\n{settings}\n")
            if "allow_unprivileged_bpf" not in settings and unprivileged_bpf():
                file.write("allow_unprivileged_bpf = yes\n")

    def start(self):
        self.process = subprocess.Popen(self.prefix + [self.program, "--foreground", "--socket",
                                                       self.socket, "--config", self.config],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                Client(self.socket).close()
                return
            except (OSError, Closed):
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        raise RuntimeError("prcbd did not start:\n" + self.said())

    def said(self):
        with open(self.folder + "/log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def pretend(self, offset, form, value):
        """Changes a word of the first record, where prcbd keeps what its pins are of."""
        path = f"{self.pins}/live/map_records"
        listed = subprocess.run(["bpftool", "-j", "map", "lookup", "pinned", path, "key", "0", "0",
                                 "0", "0"], capture_output=True, check=True)
        old = [int(byte, 16) for byte in re.findall(rb'"(0x[0-9a-f]{2})"',
                                                    listed.stdout.split(b'"value"')[1])]
        new = bytearray(old)
        struct.pack_into(form, new, offset, value)
        subprocess.run(["bpftool", "map", "update", "pinned", path, "key", "0", "0", "0", "0",
                        "value"] + [str(byte) for byte in new], check=True)

    def pretend_another_build(self):
        self.pretend(8, "=Q", 12345)

    def pretend_other_blocks(self):
        self.pretend(4, "=H", 7)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        subprocess.run([self.program, "--cleanup", "--config", self.config], check=False,
                       stdout=self.log, stderr=self.log, timeout=60)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
