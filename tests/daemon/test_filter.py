#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcbd's filter of system calls: that all threads have it; that it refuses what it should, asked by a
debugger that makes the daemon call; and that what a running daemon does goes on with it."""
import ctypes
import errno
import os
import platform
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # pylint: disable=wrong-import-position
# pylint: disable-next=wrong-import-position
from wire import NOBODY, PROCESS, PROCESSORS, Client, Daemon, Refused, as_user

PRCBD = os.environ.get("PRCBD", "prcbd")

ATTACH, DETACH, GETREGS, SETREGS, SINGLESTEP = 16, 17, 12, 13, 9  # of ptrace(2)
WALL = 0x40000000                                                 # of waitpid(2)
# What an interrupted call left: -EINTR, and the kernel's -ERESTARTSYS, NOINTR, NOHAND, RESTARTBLOCK.
INTERRUPTED = (-errno.EINTR, -512, -513, -514, -516)


class Registers(ctypes.Structure):  # pylint: disable=too-few-public-methods
    """struct user_regs_struct of x86-64."""
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
        "fs_base gs_base ds es fs gs").split()]


class Debugged:
    """A thread that waits in a system call; call() makes others in its place."""

    def __init__(self, tid):
        self.tid = tid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long

    def ptrace(self, request, data=None):
        if self.libc.ptrace(request, self.tid, None, data) < 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self):
        """The thread may be on its way into its wait, or out of it: only a call that the attaching
        interrupted can be made again."""
        deadline = time.monotonic() + 20
        self.saved = Registers()
        while True:
            self.ptrace(ATTACH)
            os.waitpid(self.tid, WALL)
            self.ptrace(GETREGS, ctypes.byref(self.saved))
            if self.saved.orig_rax >> 63 == 0 and self.saved.rax - 2 ** 64 in INTERRUPTED:
                break
            self.ptrace(DETACH)
            if time.monotonic() > deadline:
                raise AssertionError(f"thread {self.tid} does not wait in a system call")
            time.sleep(0.01)
        # The instruction before: it called, and calls again when this is over.
        self.saved.rip -= 2
        self.saved.rax = self.saved.orig_rax
        self.saved.orig_rax = 2 ** 64 - 1
        return self

    def __exit__(self, *unused):
        self.ptrace(SETREGS, ctypes.byref(self.saved))
        self.ptrace(DETACH)

    def call(self, number, *arguments):
        registers = Registers.from_buffer_copy(self.saved)
        registers.rax = number
        for name, value in zip(("rdi", "rsi", "rdx", "r10"), list(arguments) + [0] * 4):
            setattr(registers, name, value % 2 ** 64)
        self.ptrace(SETREGS, ctypes.byref(registers))
        self.ptrace(SINGLESTEP)
        _, status = os.waitpid(self.tid, WALL)
        assert os.WIFSTOPPED(status), status
        self.ptrace(GETREGS, ctypes.byref(registers))
        return registers.rax - 2 ** 64 if registers.rax >> 63 else registers.rax


class Case(unittest.TestCase):
    settings = ""

    @classmethod
    def setUpClass(cls):
        if os.geteuid():
            raise unittest.SkipTest("needs root: it starts a daemon")
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            raise unittest.SkipTest("eBPF programs cannot be loaded: the kernel has no BTF")
        cls.daemon = Daemon(PRCBD, cls.settings)
        cls.addClassCleanup(cls.daemon.stop)
        found = re.search("system calls are not filtered: .*", cls.daemon.said())
        if found:
            raise unittest.SkipTest(found[0])

    def threads(self):
        return [int(tid) for tid in os.listdir(f"/proc/{self.daemon.process.pid}/task")]

    def status(self, tid, key):
        with open(f"/proc/{self.daemon.process.pid}/task/{tid}/status", encoding="ascii") as file:
            return re.search(rf"^{key}:\s*(\d+)$", file.read(), re.M)[1]


class Filter(Case):
    def test_all_threads_have_it(self):
        self.assertEqual(len(self.threads()), 2)
        for tid in self.threads():
            self.assertEqual(self.status(tid, "Seccomp"), "2", tid)
            self.assertEqual(self.status(tid, "NoNewPrivs"), "1", tid)

    @unittest.skipUnless(platform.machine() == "x86_64", "written with x86-64's registers")
    def test_what_is_refused(self):
        """With arguments that do nothing, should one be let through."""
        here, nothing = -100, 0
        reading, writing, creating, cutting = os.O_RDONLY, os.O_WRONLY, os.O_CREAT, os.O_TRUNC
        refused = {
            "execve": (59, nothing), "execveat": (322, here, nothing), "fork": (57,),
            "clone": (56, 2 ** 40), "clone3": (435, nothing), "ptrace": (101, 99),
            "process_vm_writev": (311, 0), "kill": (62, 2 ** 22 + 1, 0), "setuid": (105, 2 ** 31),
            "capset": (126, nothing), "mount": (165, nothing), "umount2": (166, nothing),
            "chroot": (161, nothing), "init_module": (175, nothing), "kexec_load": (246, 0, 99),
            "mkdirat": (258, here, nothing), "renameat2": (316, here, nothing),
            "linkat": (265, here, nothing), "chmod": (90, nothing), "bind": (49, -1),
            "listen": (50, -1), "keyctl": (250, 99), "io_uring_setup": (425, 0, nothing),
            "userfaultfd": (323, 99), "getppid of x32": (0x40000000 + 110,),
            "socket of IPv4": (41, 2, 99, 99), "socket of netlink": (41, 16, 99, 99),
            "open to write": (2, nothing, writing), "open to create": (2, nothing, creating),
            "openat to write": (257, here, nothing, writing),
            "openat to read and write": (257, here, nothing, os.O_RDWR),
            "openat to cut": (257, here, nothing, cutting),
            "bpf to load a program": (321, 5, nothing, 2 ** 20),
            "bpf to load type information": (321, 18, nothing, 2 ** 20),
            "bpf to take a program by its number": (321, 13, nothing, 2 ** 20),
            "bpf to take a map by its number": (321, 14, nothing, 2 ** 20),
            "bpf of no number": (321, 999, nothing, 2 ** 20),
        }
        allowed = {
            "getpid": ((39,), self.daemon.process.pid),
            "openat to read": ((257, here, nothing, reading), -errno.EFAULT),
            "bpf to look into a map": ((321, 1, nothing, 2 ** 20), -errno.E2BIG),
            "bpf to run a program": ((321, 10, nothing, 2 ** 20), -errno.E2BIG),
            "socket of unix, of no type": ((41, 1, 99), -errno.EINVAL),
        }
        for tid in self.threads():
            try:
                debugged = Debugged(tid).__enter__()  # pylint: disable=unnecessary-dunder-call
            except PermissionError:
                self.skipTest("no debugger is allowed here")
            try:
                for name, call in refused.items():
                    self.assertEqual(debugged.call(*call), -errno.ENOSYS, name)
                for name, (call, result) in allowed.items():
                    self.assertEqual(debugged.call(*call), result, name)
            finally:
                debugged.__exit__()
        self.served()

    def served(self):
        def work():
            client = Client(self.daemon.socket).open(4)
            client.ask(PROCESSORS)
            return client.profile(PROCESS, os.getpid())[:2], len(client.fds)
        self.assertEqual(as_user(NOBODY, work), ((1, 1), 3))

    def test_what_it_does_goes_on(self):
        """The programs of processors are attached with it, settings and groups read again, and the
        next daemon takes over and has it as well."""
        self.served()

        def may():
            return Client(self.daemon.socket).may & 1
        self.assertEqual(as_user(NOBODY, may, gid=1), 0)
        for name, expected in (("daemon", 1), ("there-is-none", 1), ("root", 0)):
            said = len(self.daemon.said())
            self.daemon.configure(f"profile_all = group {name}")
            self.daemon.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 20
            while not re.search("settings reloaded|the old settings remain in force", self.daemon.said()[said:]):
                self.assertLess(time.monotonic(), deadline, "no word of the reload")
                time.sleep(0.01)
            self.assertEqual(as_user(NOBODY, may, gid=1), expected, name)
        client = Client(self.daemon.socket).open(4)
        client.ask(wire.RELEASE_EXITED)
        self.daemon.kill()
        self.daemon.start()
        self.assertIn("of an earlier prcbd continue", self.daemon.said())
        again = Client(self.daemon.socket).open(token=client.token)
        self.assertEqual((again.resumed, again.profile(PROCESS, os.getpid())[1]), (1, 1))
        for tid in self.threads():
            self.assertEqual(self.status(tid, "Seccomp"), "2", tid)
        self.served()

    def test_what_it_says_when_a_client_errs(self):
        """Refusals and the log go through it."""
        with self.assertRaisesRegex(Refused, "type 77"):
            Client(self.daemon.socket).ask(77)


class NoFilter(Case):
    settings = "system_call_filter = no"

    def test_none_has_it(self):
        with open("/proc/self/status", encoding="ascii") as file:
            outside = re.search(r"^Seccomp:\s*(\d+)$", file.read(), re.M)[1]
        for tid in self.threads():
            self.assertEqual(self.status(tid, "Seccomp"), outside, tid)


if __name__ == "__main__":
    unittest.main()
