#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcbd over a long life: clients of other ages, many of them, thousands of connections, and a start
that is cut short at each of its steps."""
import json
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import old_client  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
from wire import (FOLLOW_ALL, HELLO, NOBODY, OPEN, OPEN_EDGES, OPEN_MEANWHILE, PROCESS, PROCESSORS, PROFILE, Client,
                  Daemon, Refused, as_user, hello, used)

PRCBD = os.environ.get("PRCBD", "prcbd")
HOOKED = os.environ.get("PRCBD_HOOKED")  # built with PRCBD_TEST_HOOKS


def needs():
    if os.geteuid():
        return "needs root: it becomes other users"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "eBPF programs cannot be loaded: the kernel has no BTF"
    return None


def setUpModule():  # pylint: disable=invalid-name
    reason = needs()
    if reason:
        raise unittest.SkipTest(reason)


class OneDaemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(PRCBD)
        cls.addClassCleanup(cls.daemon.stop)
        cls.path = cls.daemon.socket


class Ages(OneDaemon):
    """Clients that are older or newer than the daemon."""

    def test_client_of_version_1_0(self):
        def work():
            return old_client.run(self.path, os.getpid()), os.getpid()
        found, process = as_user(NOBODY, work)
        # Lengths may have grown since; what was there stays where it was.
        for name, kind, number in (("hello", 1, 1), ("open", 2, 2), ("profile", 3, 3),
                                   ("released", 6, 4)):
            length, got, pad, got_number, status = struct.unpack_from("<IHHIi", found[name])
            self.assertGreaterEqual(length, len(found[name]), name)
            self.assertEqual((got, pad, got_number, status), (kind, 0, number, 0), name)
        self.assertEqual(found["hello"][16:22], bytes.fromhex("50524244" "0100"))
        self.assertEqual(found["open"][16:24], bytes.fromhex("08000000" "00000000"))
        self.assertNotEqual(found["open"][24:40], bytes(16))
        self.assertEqual(struct.unpack("<5I", found["profile"][16:36]), (1, 1, 0, 0, 0))
        self.assertEqual(found["released"][16:24], bytes(8))
        self.assertEqual(found["fds"], (0, 2, 0))
        magic, major, _, head_size, size, stride, count = struct.unpack_from("<IHHIIII",
                                                                             found["head"])
        self.assertEqual((magic, major, stride, count), (0x42435250, 1, 1024, 8))
        self.assertGreaterEqual(head_size, 128)
        self.assertGreaterEqual(size, 1024)
        self.assertEqual(found["clock"][:4], bytes.fromhex("50524342"))
        self.assertEqual(found["tid"], process)
        self.assertNotEqual(found["state"], 0)

    def test_newer_client(self):
        """Its greeting is longer, and so are its requests, with nothing in what we do not know."""
        client = Client(self.path, greet=False)
        client.ask(HELLO, hello(minor=7) + b"of a later age")
        client.ask(OPEN, struct.pack("=II", 4, 0) + bytes(16) + bytes(40))
        client.ask(PROFILE, struct.pack("=III", PROCESS, os.getpid(), FOLLOW_ALL) + bytes(8))
        self.assertEqual(len(used(self.map_of(client), 4)), 1)

    def map_of(self, client):
        client.accounts = 4
        return client.map()

    def test_what_a_newer_client_asks_and_we_do_not_know(self):
        client = Client(self.path).open(4)
        with self.assertRaisesRegex(Refused, "E2BIG.*update"):
            client.ask(PROFILE, struct.pack("=IIII", PROCESS, os.getpid(), 0, 1))
        with self.assertRaisesRegex(Refused, "type 77"):
            client.ask(77, b"something new")
        self.assertEqual(client.profile(PROCESS, os.getpid())[:2], (1, 1))

    def test_client_of_another_major_version(self):
        for major in (0, 2, 65535):
            client = Client(self.path, greet=False)
            with self.assertRaisesRegex(Refused, "version 1.*update the older one"):
                client.ask(HELLO, hello(major=major))
            with self.assertRaises(wire.Closed):
                client.ask(OPEN, bytes(24))


class Many(OneDaemon):
    """What is taken is given back."""

    def resident(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s*(\d+) kB", file.read())[1])

    def assert_no_more_than(self, resident):
        """The address sanitizer keeps what was freed for long; it looks for leaks itself."""
        if "ASAN_OPTIONS" not in os.environ:
            self.assertLess(self.resident(), resident + 256)

    def stable(self):
        """How many descriptors the daemon has when nobody is there."""
        count, since = self.daemon.descriptors(), time.monotonic()
        while time.monotonic() - since < 0.3:
            time.sleep(0.02)
            if self.daemon.descriptors() != count:
                count, since = self.daemon.descriptors(), time.monotonic()
        return count

    def settled(self, count):
        """The daemon has no more descriptors than that, soon."""
        deadline = time.monotonic() + 20
        while self.daemon.descriptors() > count and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.daemon.descriptors()

    def test_ten_thousand_connections(self):
        greeting = wire.message(HELLO, 1, hello())

        def work(rounds):
            for _ in range(rounds):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                    connection.connect(self.path)
                    connection.sendall(greeting)
                    assert len(connection.recv(1024)) >= 56
        as_user(NOBODY, work, 500)
        descriptors, resident = self.stable(), self.resident()
        as_user(NOBODY, work, 9500)
        self.assertLessEqual(self.settled(descriptors), descriptors)
        self.assert_no_more_than(resident)

    def test_sessions_come_and_go(self):
        def work(rounds):
            for i in range(rounds):
                client = Client(self.path).open(16 + i % 5)
                assert client.profile(PROCESS, os.getpid())[1] == 1
                client.close()
        as_user(NOBODY, work, 20)
        descriptors, resident = self.stable(), self.resident()
        as_user(NOBODY, work, 150)
        self.assertLessEqual(self.settled(descriptors), descriptors)
        self.assert_no_more_than(resident)

    def test_two_hundred_at_once(self):
        """With the default size, of four users: each sees itself and nothing else."""
        def memory_of(fd):
            with open(f"/proc/self/fdinfo/{fd}", encoding="utf-8") as file:
                return int(re.search(r"memlock:\s*(\d+)", file.read())[1])

        def work():
            clients = [Client(self.path).open() for _ in range(50)]
            pid = os.fork()
            if not pid:
                time.sleep(60)
                os._exit(0)
            seen = 0
            for number, client in enumerate(clients):
                # A thread has room for three ordinary clients.
                if number < 3:
                    assert client.profile(PROCESS, os.getpid())[1] == 1
                    seen += [a.tid for a in used(client.map(), client.accounts)] == [os.getpid()]
                else:
                    assert not used(client.map(), client.accounts)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.write(full[1], b"x")
            os.read(leave[0], 1)
            return seen, sum(memory_of(client.fds[0]) for client in clients)
        full, leave = os.pipe(), os.pipe()
        children, results = [], []
        for uid in range(40001, 40005):
            reader, writer = os.pipe()
            pid = os.fork()
            if not pid:
                try:
                    os.write(writer, repr(as_user(uid, work)).encode())
                except BaseException as error:  # pylint: disable=broad-except
                    print(error, file=sys.stderr)
                finally:
                    os._exit(0)
            os.close(writer)
            children.append((pid, reader))
        for _ in children:
            self.assertEqual(os.read(full[0], 1), b"x")
        os.write(leave[1], b"xxxx")
        for pid, reader in children:
            with os.fdopen(reader) as file:
                results.append(eval(file.read()))  # pylint: disable=eval-used
            os.waitpid(pid, 0)
        for fd in full + leave:
            os.close(fd)
        self.assertEqual([seen for seen, _ in results], [3] * 4)
        memory = sum(bytes_ for _, bytes_ in results)
        print(f"200 sessions: {memory / 1048576:.1f} MiB of maps", file=sys.stderr)
        self.assertLess(memory, 64 << 20)


@unittest.skipUnless(HOOKED, "PRCBD_HOOKED does not name a build with hooks")
class CutShort(unittest.TestCase):
    """What those need that end a daemon at a step of its start."""

    def start_until(self, daemon, step):
        """Exit status of a daemon that dies at the step; None: it had none such and serves."""
        process = subprocess.Popen([HOOKED, "--socket", daemon.socket, "--config", daemon.config],
                                   env=dict(os.environ, PRCBD_TEST_STEP=str(step)),
                                   stdin=subprocess.DEVNULL, stdout=daemon.log, stderr=daemon.log)
        while process.poll() is None:
            if step > 5 and self.serves(daemon):
                process.kill()
                process.wait(30)
                return None
            time.sleep(0.01)
        return process.returncode

    def serves(self, daemon):
        try:
            Client(daemon.socket, timeout=5).close()
            return True
        except (OSError, wire.Closed):
            return False

    def end_at_each_step(self, daemon):
        """What each leaves behind is what the next one finds. The number of steps."""
        steps = 0
        while (status := self.start_until(daemon, steps)) is not None:
            self.assertEqual(status, -signal.SIGKILL, daemon.said())
            steps += 1
        return steps


class Starts(CutShort):
    """The start, cut short at each of its steps."""

    def test_each_step(self):
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        daemon.process.terminate()
        daemon.process.wait(30)
        steps = self.end_at_each_step(daemon)
        self.assertGreater(steps, 12)
        print(f"{steps} steps", file=sys.stderr)
        daemon.start()
        as_user(NOBODY, lambda: Client(daemon.socket).open(4).profile(PROCESS, os.getpid()))
        # Nothing of the starts that failed is left: one set of programs, and no other folder.
        self.assertEqual(sorted(os.listdir(daemon.pins)), ["live"])

    def test_nothing_stays_after_an_orderly_end(self):
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        daemon.process.terminate()
        self.assertEqual(daemon.process.wait(30), 0, daemon.said())
        self.assertEqual(os.listdir(daemon.pins), [])

    def test_what_programs_missed(self):
        """As the kernel says it of the numbers of the programs, by the next daemon too."""
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        client = Client(daemon.socket).open(4)
        self.assertEqual(client.programs(2), {})  # nobody asked for the blocks yet
        client.ask(PROCESSORS)
        told = {**client.programs(), **client.programs(2)}
        for name in "prcb_switch", "prcb_newtask", "prcb_ended", "prcb_processor_switch", "prcb_soft_exit":
            self.assertIn(name, told)
        for name, (number, misses) in told.items():
            shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show", "id", str(number)],
                                              stdout=subprocess.PIPE, check=True).stdout)
            self.assertTrue(name.startswith(shown["name"][:15]), (name, shown))
            self.assertGreaterEqual(shown.get("recursion_misses", 0), misses)
        with self.assertRaisesRegex(Refused, "invalid value"):
            client.programs(3)
        daemon.kill()
        daemon.start()
        again = Client(daemon.socket)
        self.assertEqual({**again.programs(), **again.programs(2)}.keys(), told.keys())
        for name, (number, misses) in again.programs().items():
            self.assertEqual(number, told[name][0])
            self.assertGreaterEqual(misses, told[name][1])

    def maps(self, name):
        """The kernel's numbers of maps of this name."""
        listed = json.loads(subprocess.run(["bpftool", "-j", "map", "show"], stdout=subprocess.PIPE, check=True).stdout)
        return {one["id"] for one in listed if one.get("name") == name}

    def test_turns_are_noted_for_who_profiles_alone(self):
        """Who asks who ran while others were ready makes each switch of the machine note it: not before anybody is
        profiled, and not when the session is over."""
        before = self.maps("turn_map")
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        number, = self.maps("turn_map") - before

        def turns():
            shown = subprocess.run(["bpftool", "-j", "map", "lookup", "id", str(number), "key", *"0000"],
                                   stdout=subprocess.PIPE, check=True).stdout
            value = re.findall(rb'"(0x[0-9a-f]{2})"', shown.split(b'"value"')[1])
            return int.from_bytes(bytes(int(byte, 16) for byte in value[:8]), "little")

        def noted():
            """Whether a second of switches on the first processor notes any."""
            os.sched_setaffinity(0, {0})
            before, deadline = turns(), time.monotonic() + 1
            while turns() == before and time.monotonic() < deadline:
                time.sleep(0.001)
            return turns() != before
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        client = Client(daemon.socket).open(4, flags=OPEN_EDGES | OPEN_MEANWHILE)
        self.assertFalse(noted())
        client.profile(PROCESS, os.getpid())
        self.assertTrue(noted())
        client.close()
        deadline = time.monotonic() + 30
        while noted():
            self.assertLess(time.monotonic(), deadline, "turns are still noted")

    def test_an_orderly_end_keeps_open_sessions_for_the_next(self):
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        client = Client(daemon.socket).open(4)
        client.profile(PROCESS, os.getpid())
        memory = client.map()
        daemon.process.terminate()
        self.assertEqual(daemon.process.wait(30), 0, daemon.said())
        before = used(memory, 4)[0].switches
        for _ in range(5):
            time.sleep(0.005)
        self.assertGreaterEqual(used(memory, 4)[0].switches, before + 5)
        daemon.start()
        token = client.token
        again = Client(daemon.socket).open(4, token)
        self.assertEqual((again.resumed, again.fds), (1, []))
        self.assertEqual(again.profile(PROCESS, os.getpid()), (1, 0, 0, 0, 0))

    def test_an_orderly_end_keeps_a_session_that_has_just_begun(self):
        """The answer to open comes before the programs know of the session; those of the second are
        told when they know of the first."""
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        clients = []
        for _ in range(3):
            greeted = [Client(daemon.socket), Client(daemon.socket)]
            clients += [client.open(4) for client in greeted]
            daemon.process.terminate()
            self.assertEqual(daemon.process.wait(30), 0, daemon.said())
            daemon.start()
            for client in clients[-2:]:
                again = Client(daemon.socket).open(4, client.token)
                self.assertEqual((again.resumed, again.profile(PROCESS, os.getpid())[1]), (1, 1))
                self.assertEqual(len(used(client.map(), 4)), 1)
                again.close()

    def test_sessions_of_the_dead_end_with_the_next_daemon(self):
        daemon = Daemon(PRCBD, "sessions_per_user = 1\n")
        self.addCleanup(daemon.stop)

        def work():
            Client(daemon.socket).open(4).profile(PROCESS, os.getpid())
            os.kill(daemon.process.pid, signal.SIGKILL)
        as_user(0, work)
        daemon.process.wait(30)
        daemon.start()
        as_user(0, lambda: Client(daemon.socket).open(4).accounts)

    def test_with_the_rights_of_its_unit(self):
        """It starts, is killed, takes over and ends with the capabilities that its service has, after the unit's own
        steps; without these another user's pins are not reached."""
        unit = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/prcbd.service.in")
        with open(unit, encoding="utf-8") as file:
            lines = [line.strip().partition("=")[::2] for line in file if "=" in line and line[0] != "#"]
        rights = "".join(",+" + name[4:].lower() for key, names in lines if key == "CapabilityBoundingSet" for name in names.split())
        prefix = ["setpriv", "--no-new-privs", "--bounding-set=-all" + rights]
        if not shutil.which("setpriv") or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            self.skipTest("needs a setpriv that knows these capabilities")
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)

        def steps():
            for key, command in lines:
                if key == "ExecStartPre":
                    self.assertIn("/sys/fs/bpf/prcbd", command)
                    subprocess.run(command.lstrip("+").replace("/sys/fs/bpf/prcbd", daemon.pins).split(), check=True, timeout=30)
        daemon.prefix = prefix
        for end in signal.SIGKILL, signal.SIGTERM:
            client = Client(daemon.socket).open(4)
            client.profile(PROCESS, os.getpid())
            daemon.process.send_signal(end)
            daemon.process.wait(30)
            self.assertNotEqual(os.stat(daemon.pins).st_uid, 0)
            with self.assertRaisesRegex(RuntimeError, "Permission denied"):
                daemon.start()
            steps()
            daemon.start()
            again = Client(daemon.socket).open(4, client.token)
            self.assertEqual((again.resumed, again.profile(PROCESS, os.getpid())), (1, (1, 0, 0, 0, 0)))
            again.close()
        daemon.process.terminate()
        self.assertEqual(daemon.process.wait(30), 0, daemon.said())

    def test_two_on_the_same_pins(self):
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        second = subprocess.run([PRCBD, "--socket", daemon.socket + "2", "--config", daemon.config],
                                capture_output=True, text=True, check=False, timeout=30)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another prcbd", second.stderr)
        Client(daemon.socket).open(4)


class Upgrades(CutShort):
    """Pins of another build, and of another version of the blocks."""

    def processors_ended(self):
        """The mark in the head of the processors' blocks (src/kernel/abi/processor_abi.h)."""
        magic, major, _ = struct.unpack_from("=IHH", self.processors, 0)
        self.assertEqual((magic, major), (0x50435250, 2))
        return struct.unpack_from("=Q", self.processors, 48)[0]

    def restart_changed(self, pretend):
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        client = Client(daemon.socket).open(4)
        client.profile(PROCESS, os.getpid())
        memory = client.map()
        client.ask(PROCESSORS)
        self.processors = mmap.mmap(client.fds[2], mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ)
        self.assertEqual(self.processors_ended(), 0)
        self.programs = client.programs()
        time.sleep(0.01)
        daemon.kill()
        pretend(daemon)
        daemon.start()
        return daemon, client, memory

    def test_programs_of_another_build_are_replaced(self):
        daemon, client, memory = self.restart_changed(Daemon.pretend_another_build)
        programs = Client(daemon.socket).programs()
        self.assertEqual(set(programs), set(self.programs))
        for name, (number, _) in programs.items():
            self.assertNotEqual(number, self.programs[name][0], name)
        self.assertIn("another build", daemon.said())
        self.assertLess(0, self.processors_ended())
        self.assertLessEqual(self.processors_ended(), time.monotonic_ns())
        before = used(memory, 4)[0].switches
        for _ in range(5):
            time.sleep(0.005)
        self.assertGreaterEqual(used(memory, 4)[0].switches, before + 5)
        self.assertEqual(struct.unpack_from("=Q", memory, 72)[0], 0)
        again = Client(daemon.socket).open(4, client.token)
        self.assertEqual(again.resumed, 1)

    def test_cut_short_at_each_step(self):
        """Sessions go on whenever one that replaces the programs is cut short: the next one finds
        their maps. Each finds programs of another build, or what the one before had begun."""
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        client = Client(daemon.socket).open(4)
        client.profile(PROCESS, os.getpid())
        memory = client.map()
        daemon.kill()
        step, status = 6, 0  # nothing that stands is touched before
        while status is not None:
            # It may have come to the end of what there was to replace.
            daemon.pretend_another_build()
            status = self.start_until(daemon, step)
            if status is not None:
                self.assertEqual(status, -signal.SIGKILL, daemon.said())
            step += 1 if step < 10 else 2  # from here on one program after another
        self.assertGreater(step, 16)
        daemon.start()
        again = Client(daemon.socket).open(4, client.token)
        self.assertEqual(again.resumed, 1, daemon.said())
        self.assertEqual(struct.unpack_from("=Q", memory, 72)[0], 0)  # the head's mark
        before = used(memory, 4)[0].switches
        for _ in range(5):
            time.sleep(0.005)
        self.assertGreaterEqual(used(memory, 4)[0].switches, before + 5)
        self.assertEqual(sorted(os.listdir(daemon.pins)), ["live"])

    def test_another_blocks_variables_are_not_used(self):
        """Programs whose variables took other room, as an earlier release's may: the daemon starts, sessions end."""
        daemon = Daemon(PRCBD)
        self.addCleanup(daemon.stop)
        client = Client(daemon.socket).open(4)
        client.profile(PROCESS, os.getpid())
        memory = client.map()
        daemon.kill()
        path = f"{daemon.pins}/live/map_bss"
        os.unlink(path)
        subprocess.run(["bpftool", "map", "create", path, "type", "array", "key", "4", "value", "4096", "entries", "1",
                        "name", "smaller", "flags", "0x400"], check=True)
        daemon.start()
        self.assertIn("of another block version", daemon.said())
        self.assertNotEqual(struct.unpack_from("=Q", memory, 72)[0], 0)
        again = Client(daemon.socket).open(4)
        again.profile(PROCESS, os.getpid())
        self.assertEqual(again.resumed, 0)

    def test_another_block_version_ends_sessions(self):
        daemon, client, memory = self.restart_changed(Daemon.pretend_other_blocks)
        self.assertIn("another block version", daemon.said())
        self.assertNotEqual(struct.unpack_from("=Q", memory, 72)[0], 0)  # the head's mark
        self.assertLess(0, self.processors_ended())
        kept = memory[:]
        time.sleep(0.01)
        self.assertEqual(memory[:], kept)
        with self.assertRaisesRegex(Refused, "ESTALE"):
            Client(daemon.socket).open(4, client.token)
        as_user(NOBODY, lambda: Client(daemon.socket).open(4).profile(PROCESS, os.getpid()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
