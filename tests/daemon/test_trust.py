#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcbd against who has more than a socket: programs that keep a user's numbers and have more
rights, BPF programs that write into what is read-only, files put where prcbd looks. Each attack
succeeded once; docs/security.md tells what it could do. PRCB_ATTACK_TIMES makes those that depend on
luck longer: ./dev attack."""
import errno
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
import writer  # pylint: disable=wrong-import-position
from case import Case, end, receiver, sleeper  # pylint: disable=wrong-import-position
from wire import (ALL, ELEMENT, NOBODY, OTHER, PROCESS, PROCESSORS,  # pylint: disable=wrong-import-position
                  Client, Closed, Daemon, Refused, as_user, used)

def tell(path, value):
    """Into the file that is mounted, not another in its place."""
    with open(path, "w", encoding="ascii") as file:
        file.write(value + "\n")


TIMES = int(os.environ.get("PRCB_ATTACK_TIMES", "1"))
tearDownModule = case.stop_daemons  # pylint: disable=invalid-name

# Version 2, effective; CAP_SYS_ADMIN (21), CAP_PERFMON (38), CAP_BPF (39) permitted.
EVERYTHING = struct.pack("<IIIII", 0x02000001, 1 << 21, 0, 1 << 6 | 1 << 7, 0)


class Exec(Case):
    """Who one is and what one may are of one moment: that of connect(2)."""

    def connect_and_become(self, program):
        """As nobody: connects and becomes the program; a child keeps the socket, and greets when it
        gets a byte. Returns (pid, a pipe that ends when it is the program, the one to write to, the
        one to read what the child may)."""
        became, go, told = os.pipe(), os.pipe(), os.pipe()
        pid = os.fork()
        if pid:
            os.close(became[1])
            os.close(go[0])
            os.close(told[1])
            return pid, became[0], go[1], told[0]
        try:
            os.close(became[0])
            os.close(go[1])
            os.close(told[0])
            wire.become(NOBODY, NOBODY)
            client = Client(self.path, greet=False)
            if os.fork():
                client.socket.set_inheritable(True)
                os.execv(program, [program, "5"])
            os.close(became[1])
            os.read(go[0], 1)
            try:
                client.greet()
                os.write(told[1], bytes([client.may]))
            except (Closed, Refused):
                os.write(told[1], b"\0")
        finally:
            os._exit(0)

    def attempt(self, program, busy):
        """What nobody may after it. busy: the daemon comes to accept the connection when it has
        become the program."""
        if busy:
            self.daemon.process.send_signal(signal.SIGSTOP)
        pid, became, go, told = self.connect_and_become(program)
        try:
            if busy:
                os.read(became, 1)
                self.daemon.process.send_signal(signal.SIGCONT)
            os.write(go, b"x")
            return os.read(told, 1)[0]
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
            end(pid)
            for fd in (became, go, told):
                os.close(fd)

    def test_exec_of_a_program_with_capabilities_before_accept(self):
        program = self.program("everything", 0o755)
        os.setxattr(program, "security.capability", EVERYTHING)
        self.assertEqual([self.attempt(program, True) & 1 for _ in range(10)], [0] * 10)
        # 10 to 65 of a hundred got it without anything that keeps prcbd busy: 40 would show it 98 times
        # of a hundred.
        self.assertEqual(sum(self.attempt(program, False) & 1 for _ in range(40 * TIMES)), 0)

    def test_exec_of_a_set_user_id_program_that_keeps_the_users_number(self):
        """Its effective user is the caller's again, and the capabilities it may take back are
        root's."""
        helper = os.environ.get("PRCBD_KEEPS_USER")
        if not helper:
            self.skipTest("PRCBD_KEEPS_USER does not name the program")
        program = self.program("keeps-user", 0o4755, source=helper)
        self.assertEqual([self.attempt(program, True) & 1 for _ in range(10)], [0] * 10)

    def test_exec_while_no_account_is_free(self):
        """A thread that finds no free account is followed all the same: what it creates is counted
        as left out. Not when it has become root's program meanwhile."""
        helper = os.environ.get("PRCBD_KEEPS_USER")
        if not helper:
            self.skipTest("PRCBD_KEEPS_USER does not name the program")

        program = self.program("forks", 0o4755, source=helper)
        own = self.program("own", 0o755, source=helper)

        def work(program, times):
            client, followed, asked = Client(self.path).open(1), 0, 0
            client.profile(PROCESS, os.getpid())  # the only account
            memory = client.map()
            for _ in range(times):
                ready, go = os.pipe(), os.pipe()
                pid = os.fork()
                if not pid:
                    os.dup2(go[0], 0)
                    os.execv(program, [program, "0", "4"])
                os.close(ready[1])
                os.set_blocking(ready[0], False)
                became = False
                while not became:
                    client.profile(PROCESS, pid, 3)
                    asked += 1
                    became = select.select([ready[0]], [], [], 0)[0]
                before = struct.unpack_from("=Q", memory, 32)[0]
                os.write(go[1], b"x")
                os.waitpid(pid, 0)
                followed += struct.unpack_from("=Q", memory, 32)[0] - before
                for fd in (ready[0], *go):
                    os.close(fd)
            return followed, asked
        followed, _ = as_user(NOBODY, lambda: work(own, 4))
        self.assertEqual(followed, 4 * 4, "its own programs are not followed")
        followed, asked = as_user(NOBODY, lambda: work(program, 100 * TIMES))
        self.assertGreater(asked, 100)
        self.assertEqual(followed, 0)

    def test_what_connects_with_capabilities_has_them(self):
        """The rule is no refusal: who has the right at that moment has it."""
        self.assertEqual(as_user(0, lambda: Client(self.path).may), 3)


class Writers(Case):
    """Maps that user space cannot write, in the hands of who may load BPF programs."""

    def as_writer(self, function, uid=NOBODY):
        return as_user(uid, function, how=writer.become_with_cap_bpf)

    def test_the_writer_can_write(self):
        """Else what follows would show nothing."""
        def work():
            client = Client(self.path).open(2)
            writer.store(client.fds[0], 1, [(512, 0x1234567890)])
            return struct.unpack_from("=Q", client.map(), ELEMENT + 512)[0]
        self.assertEqual(self.as_writer(work), 0x1234567890)

    def test_every_word_of_the_head(self):
        """Whatever stands there: threads of others stay theirs."""
        victims = sleeper(OTHER), sleeper(0)
        self.addCleanup(end, *victims)

        def tries(client):
            got = 0
            for what, number in [(PROCESS, pid) for pid in victims] + [(ALL, 0)]:
                try:
                    got += client.profile(what, number, 3)[1]
                except Refused:
                    pass
            return got

        def work():
            client = Client(self.path).open(8)
            assert client.profile(PROCESS, os.getpid())[1] == 1
            got, memory = {}, client.map()
            for offset in range(0, ELEMENT, 8):
                before = struct.unpack_from("=Q", memory, offset)[0]
                for value in (0, 0xffffffffffffffff, before | 1, before | 1 << 32,
                              OTHER << 32 | OTHER):
                    writer.store(client.fds[0], 0, [(offset, value)])
                    found = tries(client)
                    if found:
                        got[offset, value] = found
                    # Not to give out its account again and again.
                    writer.store(client.fds[0], 0, [(offset, before)])
            return got
        self.assertEqual(self.as_writer(work), {})
        self.served()

    def test_accounts_filled_with_anything(self):
        """The programs go on for everybody, and end with this session."""
        def work():
            client = Client(self.path).open(8)
            client.profile(PROCESS, os.getpid())
            for value in (0, 0xffffffffffffffff, 0x0101010101010101):
                for element in range(9):
                    writer.store(client.fds[0], element,
                                 [(offset, value) for offset in range(0, ELEMENT, 8)])
                time.sleep(0.01)
                try:
                    client.profile(PROCESS, os.getpid(), 3)
                    client.ask(wire.RELEASE_EXITED)
                except Refused:
                    pass
        self.as_writer(work)
        self.served()

    def test_registers_asked_for_in_the_account(self):
        """What an account is to have stands in it to be read. Who may profile all, but not see where
        others' programs lie or which files they have open, asks for registers and objects there."""
        victim, _ = receiver(OTHER)
        self.addCleanup(end, victim)
        daemon = Daemon(os.environ["PRCBD"], "profile_all = all")
        self.addCleanup(daemon.stop)

        def work():
            client = Client(daemon.socket).open(2, flags=wire.OPEN_OBJECTS)
            client.profile(PROCESS, victim)
            memory, wants = client.map(), 0xffff << 16
            before = struct.unpack_from("=Q", memory, ELEMENT + 40)[0]
            objects = set()
            for _ in range(100):
                word = struct.unpack_from("=Q", memory, ELEMENT + 48)[0]
                writer.store(client.fds[0], 1, [(48, word | wants)])
                time.sleep(0.001)
                objects.add(struct.unpack_from("=3Q", memory, ELEMENT + 232))
            after = struct.unpack_from("=Q", memory, ELEMENT + 40)[0]
            return after - before, struct.unpack_from("=4Q", memory, ELEMENT + 192), objects
        switches, registers, objects = self.as_writer(work)
        self.assertGreater(switches, 2)
        self.assertEqual(registers, (0, 0, 0, 0))
        self.assertEqual(objects, {(0, 0, 0)})

    def test_a_shared_session_is_not_for_who_may_write_it(self):
        """What many read, nobody may write: not who may profile all and has CAP_BPF either."""
        daemon = Daemon(os.environ["PRCBD"], "profile_all = all")
        self.addCleanup(daemon.stop)

        def joins():
            try:
                Client(daemon.socket).open(flags=wire.OPEN_SHARED)
            except Refused as refused:
                return refused.status, refused.text
            return 0, ""
        status, text = self.as_writer(joins)
        self.assertEqual((status, "CAP_BPF" in text), (-errno.EPERM, True), text)
        self.assertEqual(as_user(OTHER, joins), (0, ""))

    def test_anothers_head_and_clock(self):
        """What one client writes, another does not read."""
        ready, go = os.pipe(), os.pipe()
        seen = []

        def victim():
            client = Client(self.path).open(4)
            client.profile(PROCESS, os.getpid())
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            time.sleep(0.2)  # so that a switch brings it up to date
            return [bytes(wire.mmap.mmap(fd, 4096, wire.mmap.MAP_SHARED, wire.mmap.PROT_READ)[:128])
                    for fd in client.fds]

        def attacker():
            client = Client(self.path).open(4)
            for fd in client.fds:
                writer.store(fd, 0, [(offset, 0x6666666666666666) for offset in range(0, 128, 8)])
        thread = threading.Thread(target=lambda: seen.append(as_user(OTHER, victim)))
        thread.start()
        os.read(ready[0], 1)
        self.as_writer(attacker)
        os.write(go[1], b"x")
        thread.join()
        for fd in ready + go:
            os.close(fd)
        self.assertEqual(len(seen[0]), 2)
        for head in seen[0]:
            self.assertNotIn(b"\x66" * 8, head)

    def test_the_clock_of_everybody_else(self):
        """Sessions that are opened after."""
        def attacker():
            client = Client(self.path).open(4)
            client.profile(PROCESS, os.getpid())
            for fd in client.fds:
                writer.store(fd, 0, [(40, 1 << 60)])
            time.sleep(0.3)

        def offset():
            client = Client(self.path).open(4)
            page = wire.mmap.mmap(client.fds[1], 4096, wire.mmap.MAP_SHARED, wire.mmap.PROT_READ)
            return struct.unpack_from("=q", page, 40)[0]
        before = as_user(OTHER, offset)
        self.as_writer(attacker)
        self.assertLess(abs(as_user(OTHER, offset) - before), 10**9)

    def test_processors_are_not_for_who_may_write_them(self):
        def work():
            client = Client(self.path)
            try:
                client.ask(PROCESSORS)
            except Refused as refused:
                return refused.status, refused.text
            writer.store(client.fds[0], 0, [(0, 0)])
            return 0, "overwritten"
        status, text = self.as_writer(work)
        self.assertLess(status, 0, text)
        self.assertIn("CAP_BPF", text)

    def test_a_handle_of_the_session_before(self):
        """The number of a session that ended is given out again. Its threads' handles would mean
        something to who writes their generations into accounts of his own."""
        pid = sleeper(OTHER, ("/bin/sh", "-c", "while :; do sleep 0.01; done"))
        self.addCleanup(end, pid)

        def earlier():
            client = Client(self.path).open(2)
            assert client.profile(PROCESS, pid)[1] == 1
            return struct.unpack_from("=I", client.map(), ELEMENT + 4)[0]

        def work(last):
            client = Client(self.path).open(2)
            memory = client.map()
            for generation in range(max(1, last - 4), last + 8):
                for element in (1, 2):
                    writer.store(client.fds[0], element, [(0, generation << 32)])
                time.sleep(0.03)
                if any(account.switches or account.tid for account in used(memory, 2)):
                    return generation
            return 0
        for _ in range(3):
            last = as_user(OTHER, earlier)
            self.assertEqual(self.as_writer(lambda: work(last)), 0)  # pylint: disable=cell-var-from-loop


class Wakeups(Case):
    """When a thread of somebody else's runs is not for everybody, though all may read the
    processors' times."""

    def test_from_the_processors_blocks(self):
        """36 of 40 were seen within 200 microseconds."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor: who looks is what runs")
        others = os.sched_getaffinity(0)
        cpu, told = max(others), os.pipe()
        victim = os.fork()
        if not victim:
            try:
                wire.become(OTHER, OTHER)
                os.sched_setaffinity(0, {cpu})
                os.write(told[1], b"x")
                while True:
                    time.sleep(0.01)
                    for _ in range(3000):
                        pass
            finally:
                os._exit(0)
        self.addCleanup(end, victim)
        os.read(told[0], 1)
        for fd in told:
            os.close(fd)

        def came():
            """How many times the victim has been away and back."""
            with open(f"/proc/{victim}/status", encoding="ascii") as status:
                return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

        def watch(seconds=1, enough=None):
            """How many times the victim was seen to come, and the descriptors one gets."""
            os.sched_setaffinity(0, others - {cpu})
            client = Client(self.path)
            client.ask(PROCESSORS)
            # Wherever it may stand: the number, in any word of any map.
            maps = [wire.mmap.mmap(fd, size, wire.mmap.MAP_SHARED, wire.mmap.PROT_READ)
                    for fd, size in zip(client.fds, (512 * (cpu + 2), 64 * (cpu + 1)))]
            number, seen, there = struct.pack("=I", victim), 0, False
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and (enough is None or seen <= enough):
                now = any(memory.find(number) >= 0 for memory in maps)
                seen += now and not there
                there = now
            return seen, len(client.fds)
        before = came()
        seen, descriptors = as_user(NOBODY, watch)
        times = came() - before
        self.assertEqual(descriptors, 1)
        # Any counter may come past its number, a few times a second.
        self.assertLess(seen, 5 + times / 4, f"it came {times} times")
        seen, descriptors = as_user(0, watch, 30, 5)
        self.assertGreater(seen, 5, "who may see it does not")
        self.assertEqual(descriptors, 2)


class Files(Case):
    """Where the socket is made, others may have been before."""

    def folder(self, owner=0, mode=0o755):
        path = tempfile.mkdtemp(prefix="prcbd-test-")
        self.addCleanup(shutil.rmtree, path, True)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def start(self, path):
        """It ends soon after its socket, for there is no place for its pins. (status, words)"""
        done = subprocess.run([case.PRCBD, "--foreground", "--socket", path, "--pin-directory",
                               "/proc/nowhere", "--config", "/dev/null"], check=False, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True)
        return done.returncode, done.stderr.decode(errors="replace")

    def test_a_socket_swapped_for_a_symbolic_link(self):
        """In a directory of somebody else's: the file it leads to got the socket's mode."""
        folder = self.folder(OTHER)
        secret = os.path.join(self.folder(), "secret")
        with open(secret, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
        swapper = os.fork()
        if not swapper:
            try:
                wire.become(OTHER, OTHER)
                os.chdir(folder)
                while True:
                    os.symlink(secret, "link")
                    while not os.path.lexists("socket"):
                        pass
                    os.rename("link", "socket")
                    os.unlink("socket")
            finally:
                os._exit(0)
        self.addCleanup(end, swapper)
        for _ in range(20 * TIMES):
            status, words = self.start(folder + "/socket")
            self.assertNotEqual(status, 0)
            self.assertEqual(os.stat(secret).st_mode & 0o777, 0o600)
        self.assertIn("others may write the directory", words)

    def test_directories_that_others_may_write(self):
        above = self.folder(0, 0o777)
        os.mkdir(above + "/below", 0o755)
        os.symlink(self.folder(), os.path.join(self.folder(), "link"))
        for path in (self.folder(OTHER), self.folder(0, 0o775), above, above + "/below"):
            status, words = self.start(path + "/socket")
            self.assertNotEqual(status, 0)
            self.assertIn("others may write the directory", words)
            self.assertFalse(os.path.exists(path + "/socket"))

    def test_what_stands_in_the_sockets_place(self):
        folder = self.folder(0, 0o1777)

        def bound(path):
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path)
        for name, make in (("file", lambda path: open(path, "w", encoding="ascii").close()),
                           ("link", lambda path: os.symlink(folder + "/file", path)),
                           ("fifo", os.mkfifo), ("directory", os.mkdir),
                           ("others", lambda path: as_user(OTHER, bound, path))):
            path = os.path.join(folder, name)
            make(path)
            before = os.lstat(path)
            status, words = self.start(path)
            self.assertNotEqual(status, 0)
            self.assertIn("remove it", words)
            self.assertEqual(os.lstat(path).st_ino, before.st_ino, name)
        # A socket that prcbd left is replaced.
        bound(folder + "/ours")
        _, words = self.start(folder + "/ours")
        self.assertNotIn("remove it", words)

    def test_the_sockets_mode(self):
        for mode in (0o666, 0o600, 0o660):
            path = os.path.join(self.folder(), "prcbd.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"socket_mode = {mode:o}\nsocket_group = daemon\n")
            made = os.path.join(os.path.dirname(path), "socket")
            subprocess.run([case.PRCBD, "--foreground", "--socket", made, "--pin-directory",
                            "/proc/nowhere", "--config", path], check=False, timeout=60,
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.assertEqual(os.stat(made).st_mode & 0o777, mode)
            self.assertNotEqual(os.stat(made).st_gid, 0)


class Together(Case):
    """Several users take all they can get, of everything that there is a total of: root can still
    look what they do."""
    settings = "\n".join(("sessions_per_user = 6", "connections_total = 60",
                          "accounts_per_client = 16", "accounts_per_client_max = 400",
                          "accounts_per_user = 400", "max_accounts_total = 2000",
                          "max_memory_total = 2M"))

    def root_is_served(self):
        client = Client(self.path).open(100)
        self.addCleanup(client.close)
        self.assertGreater(client.profile(PROCESS, self.daemon.process.pid)[1], 0)

    def hold_all(self, function):
        return [self.hold(function, uid) for uid in range(OTHER, OTHER + 8)]

    def test_connections(self):
        def work():
            kept = []
            try:
                while len(kept) < 100:
                    kept.append(Client(self.path, timeout=2))
            except (OSError, Refused, Closed):
                pass
            return kept, len(kept)
        taken = self.hold_all(work)
        self.assertGreater(sum(taken), 30)
        self.root_is_served()

    def test_accounts_and_memory(self):
        def work():
            kept = []
            for size in (400, 200, 100, 50, 25, 12, 6, 3, 1, 1):
                try:
                    kept.append(Client(self.path).open(size))
                except (OSError, Refused, Closed):
                    pass
            return kept, sum(client.accounts for client in kept)
        taken = self.hold_all(work)
        self.assertGreater(sum(taken), 1000)
        self.root_is_served()


class Words(Case):
    """What stands in files and on the command line is said again, and does nothing to a terminal."""

    def test_in_the_configuration(self):
        folder = tempfile.mkdtemp(prefix="prcbd-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        name = os.path.join(folder, "c\x1b[2Jonf\u009b")
        for text in (b"so\x1b[2Jcket = /a", b"socket = /a\x1b]0;x\x07", b"profile_all = \x9bx",
                     b"user = \xc2\x9b2J", b"socket = /a\xe2\x80\xaeb", b"\x1b\x1b"):
            with open(name, "wb") as file:
                file.write(text + b"\n")
            done = subprocess.run([case.PRCBD, "--check-config", "--config", name], check=False,
                                  timeout=60, stdin=subprocess.DEVNULL, capture_output=True)
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, 2, said)
            self.assertTrue(said)
            self.assertEqual([byte for byte in said.replace(b"\n", b"") if byte < 32], [], said)
            for sequence in (b"\xc2\x9b", b"\xe2\x80\xae"):
                self.assertNotIn(sequence, said)


class Release(unittest.TestCase):
    def test_nothing_of_tests_is_in_it(self):
        with open(case.PRCBD, "rb") as file:
            self.assertNotIn(b"PRCBD_TEST", file.read())


class Unprivileged(Case):
    """Where every user may load BPF programs: prcbd is told so by a file of the test's, in a mount
    namespace of its own."""

    def start(self, value, settings="allow_unprivileged_bpf = no"):
        folder = tempfile.mkdtemp(prefix="prcbd-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        path = os.path.join(folder, "unprivileged_bpf_disabled")
        tell(path, value)
        daemon = Daemon(case.PRCBD, settings, prefix=[
            # The root's mount is left alone: a chroot's root is none.
            "unshare", "-m", "--propagation", "unchanged", "sh", "-c",
            "mount --make-private /proc && mount --bind \"$0\" "
            "/proc/sys/kernel/unprivileged_bpf_disabled && exec \"$@\"", path])
        self.addCleanup(daemon.stop)
        return daemon, path

    def test_prcbd_does_not_start(self):
        with self.assertRaisesRegex(RuntimeError, "sysctl -w kernel.unprivileged_bpf_disabled=2"):
            self.start("0")

    def test_it_is_changed_later(self):
        daemon, path = self.start("2")
        Client(daemon.socket).open(2).close()
        tell(path, "0")
        with self.assertRaises(Refused) as caught:
            Client(daemon.socket).open(2)
        self.assertIn("kernel.unprivileged_bpf_disabled", caught.exception.text)
        with self.assertRaises(Refused):
            Client(daemon.socket).ask(PROCESSORS)
        tell(path, "1")
        Client(daemon.socket).open(2).close()

    def test_it_is_allowed(self):
        daemon, _ = self.start("0", "allow_unprivileged_bpf = yes")
        Client(daemon.socket).open(2).close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
