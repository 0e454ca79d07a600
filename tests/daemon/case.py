# SPDX-License-Identifier: BSD-2-Clause
"""What the attacks on prcbd share: a daemon for each set of settings, and processes of other
users'."""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import struct
import time
import unittest

import wire
from wire import NOBODY, OTHER, PROCESS, Client, Daemon, as_user, used

PRCBD = os.environ.get("PRCBD", "prcbd")
DAEMONS = {}  # by their settings: loading the programs takes longer than most tests


def stop_daemons():
    for daemon in DAEMONS.values():
        daemon.stop()


def needs():
    if os.geteuid():
        return "needs root: it becomes other users"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "eBPF programs cannot be loaded: the kernel has no BTF"
    if not os.path.ismount("/sys/fs/bpf"):
        return "/sys/fs/bpf is not mounted"
    return None


def sleeper(uid, program=("/bin/sleep", "60"), before=None):
    """A process of that user; it sleeps in the program when this returns."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.set_inheritable(writer, False)
            wire.become(uid, uid)
            if before:
                before()
            os.execv(program[0], list(program))
        finally:
            os._exit(127)
    os.close(writer)
    with os.fdopen(reader) as file:
        file.read()  # ends when the exec closes it
    return pid


def receiver(uid):
    """A process of that user that waits for a socket, a hundred times a second, and that socket's number."""
    told = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            wire.become(uid, uid)
            wire.libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as after an exec
            ends = socket.socketpair()
            ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, 10000))
            os.write(told[1], str(os.fstat(ends[0].fileno()).st_ino).encode())
            while True:
                try:
                    ends[0].recv(1)
                except BlockingIOError:
                    pass
        finally:
            os._exit(127)
    os.close(told[1])
    with os.fdopen(told[0], "rb", buffering=0) as file:
        return pid, int(file.read(20))


def before_exec(program, pause=0):
    """A child of one's own that waits, and what lets it execute the program, after a pause in seconds:
    it returns when the exec is done."""
    go, ready = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go[1])
        os.close(ready[0])
        os.set_inheritable(ready[1], False)
        os.read(go[0], 1)
        if pause:
            time.sleep(pause)
        os.execv(program[0], program)
    os.close(go[0])
    os.close(ready[1])

    def execute():
        os.write(go[1], b"x")
        os.read(ready[0], 1)  # ends with the exec
    return pid, execute


def end(*pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def errno_of(call, *arguments):
    ctypes.set_errno(0)
    result = call(*arguments)
    failed = result in (-1, ctypes.c_void_p(-1).value)
    return ctypes.get_errno() if failed else 0


class Case(unittest.TestCase):
    settings = ""

    @classmethod
    def setUpClass(cls):
        reason = needs()
        if reason:
            raise unittest.SkipTest(reason)
        if cls.settings not in DAEMONS:
            DAEMONS[cls.settings] = Daemon(PRCBD, cls.settings)
        cls.daemon = DAEMONS[cls.settings]
        cls.path = cls.daemon.socket

    def served(self, uid=OTHER):
        """Somebody else gets a session, profiles himself and is counted."""
        def work():
            client = Client(self.path).open(4)
            client.profile(PROCESS, os.getpid())
            return len(used(client.map(), 4))
        self.assertEqual(as_user(uid, work), 1)

    def hold(self, function, uid=NOBODY):
        """function() in a process of that user's, which keeps what it got until the test ends.
        Returns what it returned."""
        out, stay = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            try:
                os.close(stay[1])
                wire.become(uid, uid)
                kept, result = function()
                os.write(out[1], repr(result).encode() + b"\n")
                os.close(out[1])
                os.read(stay[0], 1)
                del kept
            finally:
                os._exit(0)
        os.close(out[1])
        os.close(stay[0])
        self.addCleanup(end, pid)
        self.addCleanup(os.close, stay[1])
        with os.fdopen(out[0]) as file:
            return eval(file.readline())  # pylint: disable=eval-used

    def program(self, name, mode, owner=0, source="/bin/sleep"):
        """A copy in a folder where set-user-id and capabilities count."""
        folder = pathlib.Path("/usr/local/lib") / f"prcbd-test-{os.getpid()}"
        folder.mkdir(exist_ok=True)
        os.chmod(folder, 0o755)
        self.addCleanup(shutil.rmtree, folder, True)
        copy = folder / name
        shutil.copy(source, copy)
        os.chown(copy, owner, owner)
        os.chmod(copy, mode)
        return str(copy)
