#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A process whose answer is with others that ran before prcb did: children, the other ends of pipes, who is asked.

Witness: the programs, of which one computes or is asked and never answers; the numbers that the kernel gave."""
import json
import os
import socket
import subprocess
import sys
import unittest

from house import ROOT, House, await_true, lacks

ASKS = """import select, socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
loop = select.epoll()
loop.register(server, select.EPOLLIN)
server.sendall(b"question")
print(flush=True)
loop.poll()
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()


@unittest.skipUnless(ROOT and not lacks("bpf"), "needs root, and eBPF programs")
class Children(House):
    doomed = None  # a cgroup, which goes with its processes

    def run_shell(self, text, *words):
        """A shell in a group of its own, which ends with the test."""
        shell = subprocess.Popen(["sh", "-c", text + "; true", "sh", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 text=True, start_new_session=True)

        def end():
            os.killpg(shell.pid, 9)
            shell.wait()
            shell.stdout.close()
            if self.doomed:
                with open(self.doomed + "/cgroup.procs", encoding="ascii") as file:
                    await_true(lambda: not file.seek(0) and not file.read(), "the cgroup is empty")
                os.rmdir(self.doomed)
        self.addCleanup(end)
        return shell

    def ask(self, *words):
        document = json.loads(self.prcb("bpf", "why", "-j", "--for", "0.7", *words).splitlines()[-1])
        return [line["text"] for line in document["verdict"]], document

    def started(self, shell, name):
        """The number of a child of the shell, once it is the program of this name."""
        found = []

        def is_there():
            found[:] = [pid for pid in children(shell.pid) if comm(pid) == name]
            return found
        await_true(is_there, f"{name} runs")
        return found[0]

    def test_a_pipeline(self):
        """The shell waits for it, its first program for the second, and that computes."""
        shell = self.run_shell("cat /dev/zero | gzip -9 >/dev/null")
        gzip, cat = self.started(shell, "gzip"), self.started(shell, "cat")
        verdict, document = self.ask(str(shell.pid))
        self.assertEqual({row["pid"] for row in document["processes"]}, {shell.pid, gzip, cat})
        self.assertRegex(verdict[0], rf"by gzip \({gzip}\)|gzip \({gzip}\) is ready and has no processor")
        for text in verdict:
            self.assertNotRegex(text, "waits for (a child process|room in pipe)")
        verdict, document = self.ask("-p", str(shell.pid))
        self.assertEqual({row["pid"] for row in document["processes"]}, {shell.pid})
        self.assertRegex(" ".join(verdict), rf"waits for a child process to end: (gzip|cat) \(({gzip}|{cat})\) \(it runs; or one of 1 more\)")
        verdict, _ = self.ask("-p", str(cat))
        # On a busy machine it may be gzip's turn to wait when it is looked at.
        self.assertRegex(" ".join(verdict),
                         rf"cat \({cat}\) waits for room in pipe:\[\d+\] \(read by gzip \({gzip}\); it (runs|sleeps)")

    def asking(self):
        """A shell, and a loop below it that has asked a server which never answers."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        shell = self.run_shell(f"{sys.executable} -c '{ASKS}' $1", str(server.getsockname()[1]))
        server.accept()[0].detach()  # open until the test ends
        shell.stdout.readline()
        return shell, server.getsockname()[1]

    def test_who_is_asked(self):
        shell, port = self.asking()
        words = rf"waited for work, or for others: at \d+ of \d+ looks a connection to 127\.0\.0\.1:{port} had sent something and got no answer yet"
        self.assertRegex(self.ask(str(shell.pid))[0][0], words)
        self.doomed = self.make_cgroup("", shell.pid, *children(shell.pid))
        self.assertRegex(self.ask("--cgroup", self.doomed)[0][0], words)


if __name__ == "__main__":
    unittest.main()
