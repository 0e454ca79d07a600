#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Nobody makes root wait: processes whose memory, files or locks never answer, beside one that does.

Witness: the clock, and the program that answers, whose functions are named as ever."""
import http.client
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

import house
from house import PRCB, House

MOST = 15  # seconds, of which a second at most is waited for each of a few answers


def functions(stack):
    return [frame["function"] for frame in stack.get("frames", [])]


def readers():
    """The processes that prcb reads by and that still live, by what the kernel calls them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                lines = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        except OSError:
            continue
        if lines["Name"] == "prcb-reach" and not lines["State"].startswith("Z"):
            found.append(int(pid))
    return found


@unittest.skipUnless(house.ROOT and os.path.exists("/dev/fuse") and os.uname().machine in ("x86_64", "aarch64"),
                     "needs root, /dev/fuse, and a processor that the program knows")
class Hangs(House):
    def begin(self, way, folder=None):
        if not folder:
            folder = tempfile.mkdtemp(prefix="prcb-hangs-")
            self.addCleanup(os.rmdir, folder)
        _, numbers = self.start("hangs", way, folder)
        if not numbers:
            self.skipTest(f"{way}: the kernel lacks what it needs")
        _, (honest, _, _) = self.start("zombie_leader", "quiet")
        time.sleep(0.2)
        return numbers[0], honest

    def prcb(self, tier, *arguments):
        began = time.monotonic()
        text = super().prcb(tier, *arguments)
        self.assertLess(time.monotonic() - began, MOST)
        return text

    def check(self, way, folder=None, seconds=0.3):
        before = readers()
        hanging, honest = self.begin(way, folder)
        pids = f"{hanging},{honest}"
        report = self.document("bpf", "why", "--objects", "-p", pids, "--for", seconds, "--top", 0, "--stacks", 0)
        named = {name for process in report["processes"] if process["pid"] == honest
                 for cause in process["causes"] for part in cause["stacks"] for name in functions(part)}
        self.assertLessEqual({"hold_it", "want_it"}, named)
        chain = self.document("bpf", "why", "--chain", "-p", pids)
        self.assertIn("want_it", [name for row in chain["threads"] for name in functions(row.get("stack") or row)])
        if way in ("stack", "lock"):
            self.prcb("bpf", "stat", "-p", pids, "--for", 0.2)
            self.top("bpf", "-n", 1, "-d", 0.2, "-p", pids)
        if way in ("stack", "fault", "tmp"):  # for an exec with locks held, record waits: docs/security.md
            self.record(pids)
            self.serve(pids)
        self.assertLessEqual(len(set(readers()) - set(before)), 16)
        return report

    def record(self, pids):
        with tempfile.NamedTemporaryFile(suffix=".db") as file:
            self.prcb("bpf", "record", "-p", pids, "--for", 0.3, "-o", file.name)
            report = self.prcb("bpf", "report", file.name)
        self.assertIn("zombie_leader", report)

    def serve(self, pids):
        """A browser that asks for the page and its first interval, until a signal ends it."""
        with subprocess.Popen([PRCB, "serve", "-p", pids, "-d", "0.2", "--tier", "bpf"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            try:
                url = re.search(r"http://(\S+?:\d+)(/\S*)", process.stdout.readline() + process.stdout.readline())
                connection = http.client.HTTPConnection(url[1], timeout=MOST)
                self.addCleanup(connection.close)
                connection.request("GET", url[2])
                self.assertEqual(connection.getresponse().status // 100, 2)
                time.sleep(1)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(MOST), 0)
            finally:
                process.kill()

    def test_a_stack_in_a_file_that_is_not_answered_for(self):
        report = self.check("stack")
        self.assertEqual(report["reader"]["unanswered"], 0)  # it is not even asked for

    def test_a_stack_that_a_program_serves(self):
        report = self.check("fault", seconds=2)
        self.assertEqual(report["reader"]["unanswered"], 1)

    def test_the_word_of_a_futex(self):
        self.check("word")

    def test_the_list_of_a_poll(self):
        self.check("list")

    def test_an_epoll_descriptor_whose_lock_is_held(self):
        self.check("epoll", seconds=2)

    def test_a_process_in_exec_with_the_lock_that_procfs_takes(self):
        report = self.check("lock", seconds=2)
        self.assertGreater(report["reader"]["unanswered"], 0)

    def test_a_folder_of_compilers_lists(self):
        report = self.check("tmp", "/tmp", 2)
        self.assertGreater(report["reader"]["unanswered"], 0)

    def pane(self, pid, thread, *wanted):
        """What Enter on a thread's row shows in top, as bytes, until it has all that is wanted; then q ends it."""
        number, screen = pty.fork()
        if not number:
            os.environ.update({"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "30"})
            os.execv(PRCB, [PRCB, "top", "-p", str(pid), "-d", "0.2", "-i", "--tier", "bpf"])
        shown = b""

        def see(text):
            nonlocal shown
            deadline = time.monotonic() + MOST
            while text not in shown:
                self.assertLess(time.monotonic(), deadline, (text, shown[-3000:]))
                if select.select([screen], [], [], 0.1)[0]:
                    shown += os.read(screen, 65536)
        try:
            see(thread)
            os.write(screen, b"/" + thread + b"\r")
            see(b"\x1b")
            os.write(screen, b"\r")
            shown = b""
            for text in wanted:
                see(text)
            os.write(screen, b"qq")
            began = time.monotonic()
            while os.waitpid(number, os.WNOHANG) == (0, 0):
                self.assertLess(time.monotonic() - began, MOST)
                if select.select([screen], [], [], 0.1)[0]:
                    try:
                        shown += os.read(screen, 65536)
                    except OSError:
                        pass  # it has ended
        finally:
            os.close(screen)  # hangs it up, if it has not ended
        return shown

    def test_the_pane_of_top(self):
        """It shows what is known of the thread, nothing of another one's stack, and the other's when it is asked."""
        for way in "stack", "fault":
            hanging, honest = self.begin(way)
            shown = self.pane(hanging, b"hanging", b"WHERE", b"now: ", b"pause")
            self.assertNotIn(b"main", shown[shown.index(b"WHERE"):])  # the first thread's
            self.pane(honest, b"waiter", b"WHERE", b"want_it")

    def test_a_signal_ends_it_at_once(self):
        hanging, _ = self.begin("fault")
        with subprocess.Popen([PRCB, "why", "-p", str(hanging), "--for", "60"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(0.7)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(MOST), 0)


if __name__ == "__main__":
    unittest.main()
