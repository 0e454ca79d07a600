#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Waits whose system call alone does not say what they are for, in stat, why, top and record.

Witness: the program, which made those waits, and /proc/PID/task/TID/stack, which root may read."""
import os
import pathlib
import pty
import re
import signal
import subprocess
import time
import unittest
import unittest.mock

from house import ROOT, House, await_true, mount_of, on_tiers, state_of, wire

# How, the cause, and a function of the kernel on the way to the wait, if there is one to be seen.
PLACES = {
    "client": ("socket", None),
    "writer": ("pipe", None),
    "linger": ("close", "tcp_close"),
    "supervisor": ("supervisor", "seccomp"),
    "exec": ("exec", "begin_new_exec|de_thread|load_elf_binary"),
    "fault": ("page-fault", "handle_userfault"),
    "read": ("device", "handle_userfault"),
}
# What the kernel's functions say, of those.
WORDS = {"linger": "linger: data to be taken by the peer", "supervisor": "supervisor (seccomp)",
         "fault": "handler of userfaultfd", "read": "handler of userfaultfd"}


def place_of(pid):
    with open(f"/proc/{pid}/stack", encoding="ascii") as stack:
        return stack.read()


class Places(House):
    def begin(self, tier):
        """The numbers of the one that waits and of who is waited for, by how."""
        begun = {}
        for how in PLACES:
            _, numbers = self.start("places", how, *([self.user_of(tier)] if self.user_of(tier) else []))
            if numbers:  # else the kernel lacks what it needs
                begun[how] = numbers
        for how, (waiter, _) in begun.items():
            await_true(lambda pid=waiter: state_of(pid) in ("S", "D"), f"{how}: it waits")
        time.sleep(0.3)  # until it is that wait: these have no other sign
        return begun

    @on_tiers("bpf", "daemon")
    def test_causes(self, tier):
        begun = self.begin(tier)
        self.assertIn("supervisor", begun)
        pids = ",".join(str(waiter) for waiter, _ in begun.values())
        report = self.document(tier, "why", "--objects", "-p", pids, "--for", 0.3, "--top", 0)
        stat = self.document(tier, "stat", "-p", pids, "--for", 0.3)
        top = self.top(tier, "-n", 1, "-d", 0.3, "--idle", "-p", pids)
        threads = {row["tid"]: row for row in stat["threads"]}
        processes = {row["pid"]: row for row in report["processes"]}
        for how, (waiter, _) in begun.items():
            with self.subTest(how=how):
                self.check(how, waiter, threads[waiter], processes[waiter], top)

    def check(self, how, waiter, thread, process, top):
        cause, function = PLACES[how]
        waits = {row["cause"]: row["ns"] for row in thread["waits"]}
        opened = thread["open"] or {"cause": None, "ns": 0}
        waits[opened["cause"]] = waits.get(opened["cause"], 0) + opened["ns"]
        self.assertEqual(max(waits, key=waits.get), cause, waits)
        causes = {row["cause"]: row for row in process["causes"]}
        self.assertGreater(causes[cause]["ns"], 0.2e9, causes)
        row = next((line for line in top.splitlines() if re.match(rf" *{waiter} +{waiter} ", line)), top)
        self.assertIn(f" {cause} ", row)
        names = [frame["function"] or ""
                 for part in causes[cause]["stacks"] for frame in part.get("frames") or []]
        words = {part.get("word") for part in causes[cause]["stacks"]}
        if how in WORDS:
            self.assertIn(WORDS[how], words)
        if function:
            self.assertTrue(re.search(function, " ".join(names)), names)

    @on_tiers("bpf", "daemon")
    def test_who(self, tier):
        begun = self.begin(tier)
        pids = ",".join(str(waiter) for waiter, _ in begun.values())
        report = self.document(tier, "why", "-p", pids, "--for", 0.3, "--top", 0)
        objects = {row["pid"]: [part["object"] for cause in row["causes"] for part in cause["objects"] if part["object"]]
                   for row in report["processes"]}
        chain = {row["tid"]: row for row in self.document(tier, "why", "--chain", "-p", pids)["threads"]}
        for how, (waiter, other) in begun.items():
            texts = [f"{row['kind']} {row['name']} {row['detail']}" for row in objects[waiter]]
            if how in ("client", "writer"):
                word = {"client": "peer: client", "writer": "written by writer"}[how]
                self.assertTrue(any(f"{word} ({other})" in text for text in texts), texts)
            elif how in ("supervisor", "fault", "read"):
                name = "supervisor" if how == "supervisor" else "handler"
                self.assertTrue(any(text.startswith(f"process {name} ") for text in texts), texts)
                if how == "supervisor":
                    self.assertIn(chain[waiter]["held_by"], (None, other))  # None: it got its answer meanwhile

    @unittest.skipUnless(ROOT, "needs root, which alone makes cgroups")
    @on_tiers("bpf", "daemon")
    def test_memory_of_a_cgroup(self, tier):
        """It has no more, and its controller (version 1) kills nobody. Witness: memory.oom_control."""
        mount = mount_of("memory")
        if not mount:
            self.skipTest("no controller of memory of version 1 is mounted")
        group = pathlib.Path(mount, f"prcb-places-{tier}-{os.getpid()}")
        group.mkdir()

        def remove():
            (group / "memory.oom_control").write_text("0", encoding="ascii")
            await_true(lambda: not (group / "cgroup.procs").read_text(encoding="ascii"), "the cgroup is empty")
            group.rmdir()
        self.addCleanup(remove)
        for name in "memory.limit_in_bytes", "memory.memsw.limit_in_bytes":
            if (group / name).exists():
                (group / name).write_text(str(16 << 20), encoding="ascii")
        (group / "memory.oom_control").write_text("1", encoding="ascii")
        _, numbers = self.start("places", "memory", group / "cgroup.procs")
        waiter = numbers[0]
        await_true(lambda: "under_oom 1" in (group / "memory.oom_control").read_text(encoding="ascii") and
                   "oom" in place_of(waiter), "it gets no more")
        asks = {"daemon": None} if tier == "daemon" else {}
        with unittest.mock.patch.object(self, "user_of", lambda tier: asks.get(tier)):  # root, as its threads are
            report, = self.document(tier, "why", "-p", waiter, "--for", 0.3)["processes"]
            stat, = self.document(tier, "stat", "-p", waiter, "--for", 0.3)["threads"]
            recorded = self.recorded(tier, "-p", waiter, "--", "sleep", "0.3")
            top = self.top(tier, "-n", 1, "-d", 0.3, "-p", waiter)
        cause, = report["causes"]
        self.assertEqual((cause["cause"], cause["idle_ns"]), ("other-d", 0))
        self.assertEqual(cause["stacks"][0]["word"], "memory of its cgroup")
        self.assertRegex(report["verdict"][0]["text"], "waits for memory of a cgroup that is at its limit in ")
        self.assertEqual(stat["open"]["cause"], "other-d")
        self.assertEqual([row["cause"] for row in recorded["waits"]], ["other-d"])
        self.assertRegex(top, r"big .* other-d ")

    @on_tiers("bpf")  # as who runs the test, whose terminal it is
    def test_a_terminal(self, tier):
        pid, master = pty.fork()
        if not pid:
            os.execlp("cat", "cat")
        self.addCleanup(os.close, master)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        await_true(lambda: state_of(pid) == "S" and "n_tty_read" in place_of(pid), "it reads")
        text = self.prcb(tier, "why", "--tier", tier, "-p", pid, "--for", 0.2)
        self.assertRegex(text, rf"waits for /dev/pts/\d+ \(its master: \S+ \({os.getpid()}\)\)")

    @on_tiers("bpf", "daemon")
    def test_names_of_sockets(self, tier):
        sockets = {"16, socket.SOCK_RAW, 15": ("netlink kobject-uevent, port", "s.bind((0, 1))")}
        if tier == "bpf":
            sockets["17, socket.SOCK_RAW, 0"] = ("packet 0x0000, any interface", "")
            sockets["2, socket.SOCK_RAW, 253"] = ("raw 0.0.0.0:253", "")
        user = self.user_of(tier)
        for call, (name, bind) in sockets.items():
            with subprocess.Popen(["/usr/bin/python3", "-c",
                                   f"import socket; s = socket.socket({call}); {bind or 0}; s.recv(1)"],
                                  preexec_fn=(lambda: wire.become(user, user)) if user else None) as process:
                self.addCleanup(process.kill)
                await_true(lambda pid=process.pid: "recv" in place_of(pid), "it receives")
                text = self.prcb(tier, "why", "--tier", tier, "-p", process.pid, "--for", 0.2)
                process.kill()
                self.assertRegex(text, f"waits for {re.escape(name)}")

    @on_tiers("bpf", "daemon")
    def test_recordings(self, tier):
        for how in ("supervisor", "writer"):
            with self.subTest(how=how):
                user = [self.user_of(tier)] if self.user_of(tier) else []
                _, (waiter, _) = self.start("places", how, *user)
                await_true(lambda pid=waiter: state_of(pid) == "S", "it waits")
                report = self.recorded(tier, "-p", waiter, "--", "sleep", "0.4")
                waits = {row["cause"]: row["ns"] for row in report["waits"] if row["state"] == "waiting"}
                self.assertEqual(max(waits, key=waits.get), PLACES[how][0], waits)


if __name__ == "__main__":
    unittest.main()
