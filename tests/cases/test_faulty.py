#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Thirteen programs that are slow for a reason nobody sees from outside: the first sentence of prcb why names it.

Witness: the programs, which are written to have that fault and no other; the cgroups' own counts."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import unittest

from house import HERE, ROOT, House, await_true, lacks, mount_of
from cpu_cgroup import CpuCgroup  # house.py says where it is

SOURCES = os.path.join(HERE, "faulty")
PYTHON = "/usr/bin/python3"


def at(mark):
    """Where in faulty.c the one line with this text is, as prcb says it."""
    with open(os.path.join(SOURCES, "faulty.c"), encoding="utf-8") as file:
        numbers = [number for number, line in enumerate(file, 1) if mark in line]
    assert len(numbers) == 1, (mark, numbers)
    return rf"\(faulty\.c:{numbers[0]}\)"


def first_sentence(verdict):
    """The first one that is not about other programs of a busy machine."""
    return next((line["text"] for line in verdict if "no processor" not in line["text"]), str(verdict))


@unittest.skipUnless(ROOT and not lacks("bpf"), "needs root, and eBPF programs")
class Faulty(House):
    def setUp(self):
        self.folder_here = self.folder("bpf")
        os.chmod(self.folder_here, 0o755)

    def launch(self, *command, **options):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder_here, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def faulty(self, word, *arguments, **options):
        return self.launch(self.program("faulty"), word, *arguments, **options)

    def made(self, name, *command):
        """What a compiler makes of a program here; None: it is not there, or cannot."""
        if not shutil.which(command[0]):
            return None
        result = subprocess.run([*command, os.path.join(SOURCES, name)], cwd=self.folder_here, capture_output=True,
                                check=False, env=os.environ | {"GOCACHE": self.folder_here + "/cache", "GO111MODULE": "off"})
        return None if result.returncode else self.folder_here

    @staticmethod
    def node_is_read():
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
        return said.startswith("v20.")

    @staticmethod
    def java_is_read():
        said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
        return os.uname().machine == "x86_64" and '"17.' in said

    def verdicts(self, *arguments):
        document = json.loads(self.prcb("bpf", "why", "-j", *arguments).splitlines()[-1])
        return {row["pid"]: row["verdict"] for row in document["processes"]}, document

    def check(self, wanted, seconds):
        """Asks about programs at once, and compares the first sentence about each with what it has to say."""
        numbers = ",".join(str(process.pid) for process in wanted)
        said, document = self.verdicts("-p", numbers, "--for", seconds, "--budget", "60")
        for process, words in wanted.items():
            with self.subTest(" ".join(os.path.basename(word) for word in process.args)):
                sentence = first_sentence(said[process.pid])
                row = next(row for row in document["processes"] if row["pid"] == process.pid)
                slow = sum(cause["ns"] for cause in row["causes"] if cause["cause"] == "fsync") > 200_000_000
                if "storage" in process.args and not slow:
                    self.skipTest("storage is quick here")
                if row["ready_ns"] > 0.6 * (row["ready_ns"] + row["wait_ns"] - row["idle_ns"]):
                    self.skipTest(f"the machine is too busy: {sentence}")
                self.assertRegex(sentence, words)

    def test_what_they_wait_for(self):
        names, port = self.faulty("names")
        # Who waited once, as the reporter and Python's first thread at the start, is counted as well.
        wanted = {
            self.faulty("convoy")[0]: rf"[67] threads \(worker\) wait for stats_mutex in record_order\(\) {at('take_stats(); /* waits */')}, "
                                      rf"called by work\(\) {at('        record_order();')}; reporter \(\d+\) holds it and sleeps in "
                                      rf"nap\(\) \S+, called by build_report\(\) {at('nap(40);')}",
            self.faulty("deadlock")[0]: rf"^Deadlock: .* waits for (savings|checking) in transfer\(\) {at('lock(to); /* waits */')}, .* held by ",
            self.faulty("storage", "data")[0]: r"waits for data to reach storage: \S+/data \(.*in save_order\(\)",
            self.faulty("relay")[0]: rf"^\d+ % of the waiting is for renderer \(\d+\), which sleeps in nap\(\) \S+, "
                                     rf"called by fetch_rates\(\) {at('nap(30);')}",
            names: rf"waits for a name server's answer: 127\.0\.0\.1:{port} in find_customer\(\)",
        }
        if shutil.which("node"):
            wanted[self.launch("node", os.path.join(SOURCES, "faulty.js"))[0]] = \
                r"node \(\d+\) waits for a child process to end: sleep \(\d+\)" + \
                (r".* in makeThumbnail\(\) \(faulty\.js:\d+\)" if self.node_is_read() else "")
        self.check(wanted, 1.5)

    def test_top_shows_a_deadlock_in_tables(self):
        """Its threads never run again; that they wait for a mutex only their stacks say, and it is no sleep."""
        process, _ = self.faulty("deadlock")
        text = self.prcb("bpf", "top", "-b", "--tier", "bpf", "-n", "3", "-d", "0.5", "-p", process.pid)
        last = text.rsplit(" THREAD ", 1)[1].splitlines()
        self.assertEqual(len([row for row in last if row.split()[3:4] == ["futex"]]), 2, text)

    def test_python(self):
        if not os.access(PYTHON, os.X_OK):
            self.skipTest(f"needs {PYTHON}")
        script = os.path.join(SOURCES, "faulty.py")
        self.check({self.launch(PYTHON, script, "asyncio")[0]: r"python3 \(\d+\) blocks asyncio's event loop by sleeping in load_customer\(\)",
                    self.launch(PYTHON, script, "gil")[0]: r"[45] threads .*wait for Python's GIL.* in price_order"}, 1.5)

    def test_runtimes(self):
        wanted = {}
        if self.made("faulty.go", "go", "build", "-o", "faulty-go"):
            wanted[self.launch("./faulty-go")[0]] = \
                r"(1\d|20) of 21 goroutines .*wait for a lock \(\S+\) in main\.lookUp\(\) \(faulty\.go:\d+\), called by main\.serve\(\)"
            wanted[self.launch("./faulty-go", "network")[0]] = \
                r"\d of 21 goroutines .*wait for a lock \(\S+\) in main\.price\(\) \(faulty\.go:\d+\).*1 is in \S.* in main\.fetchRate\(\)"
        if shutil.which("java") and self.made("Faulty.java", "javac", "-d", "."):
            wanted[self.launch("java", "-Xint", "-cp", ".", "Faulty")[0]] = \
                r"20 threads \(request-\*\) park" + (r" in Faulty\.borrowConnection\(\) \(Faulty\.java:10\), called by Faulty\.serve\(\)"
                                                  if self.java_is_read() else "")
        if not wanted:
            self.skipTest("needs Go or Java")
        self.check(wanted, 2)

    def test_a_quota(self):
        group = CpuCgroup("faulty")
        self.addCleanup(group.remove)
        group.set(("cpu.cfs_quota_us", "20000"), ("cpu.max", "20000 100000"))
        process, _ = self.faulty("busy", preexec_fn=lambda: group.write(str(os.getpid()), group.processes))
        await_true(lambda: group.throttled()[1], "the quota holds it back")
        said, _ = group.look(lambda: self.verdicts(str(process.pid), "--for", "1"))
        self.assertRegex(first_sentence(said[process.pid]),
                         rf"held back by a CPU quota: cgroup /{os.path.basename(group.path)} may run 20\.0ms in each 100ms")
        process.kill()
        process.wait()

    def test_a_neighbour(self):
        process, noise = self.faulty("busy")[0], self.faulty("busy")[0]
        said, _ = self.verdicts(str(process.pid), "--for", "1")
        text = said[process.pid][0]["text"]
        self.assertRegex(text, r"ha(s|ve) no processor, behind ")
        if "faulty" not in text.split("behind")[1]:
            self.skipTest(f"others have the processor, too: {text}")
        self.assertRegex(text, rf"behind .*faulty \({noise.pid}\) for")

    def test_a_memory_limit(self):
        mount = mount_of("memory")
        if not mount:
            self.skipTest("no controller of memory of version 1 is mounted")
        group = os.path.join(mount, f"prcb-faulty-{os.getpid()}")
        os.mkdir(group)

        def remove():
            with open(group + "/cgroup.procs", encoding="ascii") as file:
                await_true(lambda: not file.seek(0) and not file.read(), "the cgroup is empty")
            os.rmdir(group)
        self.addCleanup(remove)
        with open(group + "/memory.limit_in_bytes", "w", encoding="ascii") as file:
            file.write(str(16 << 20))
        with open(os.path.join(self.folder_here, "big"), "wb") as file:
            file.write(os.urandom(1 << 20) * 48)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # else they are this process's

        def enter():
            with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        process, _ = self.faulty("memory", "big", preexec_fn=enter)

        def refaults():
            with open(group + "/memory.stat", encoding="ascii") as file:
                return int(dict(line.split() for line in file)["total_workingset_refault_file"])
        with contextlib.suppress(KeyError):
            await_true(lambda: refaults() > 1000, "it reads pages again")
        said, _ = self.verdicts(str(process.pid), "--for", "1")
        self.assertRegex(first_sentence(said[process.pid]),
                         rf"^The memory limit of cgroup /{os.path.basename(group)} \(16 MiB\) was reached \d+ times: \d+ "
                         r"pages were dropped and read again")


if __name__ == "__main__":
    unittest.main()
