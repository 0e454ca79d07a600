#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs on kernels that lack a member: this one with other types in the place of its own, in a
mount namespace. prcbd refuses each that says who somebody is, by its name, and does without the rest;
`prcb doctor` and `prcb stat` say the same of what is missing. test_members.c has the library's part."""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wire import NOBODY, PROCESS, Client, Daemon, as_user, used  # pylint: disable=wrong-import-position

VMLINUX = "/sys/kernel/btf/vmlinux"
PRCB = os.environ.get("PRCB")
PRCBD = os.environ.get("PRCBD")
MEMBERS = os.environ.get("MEMBERS")

# Without these nobody could be told from somebody else.
NEEDED = ["sock.sk_peer_cred", "cred.cap_permitted", "bpf_map.id"]  # all: test_members.c
# prcbd serves without, as the library does.
SERVED = ["sched_entity.nr_migrations", "css_set.dfl_cgrp", "task_struct.in_iowait", "task_struct.prio",
          "task_struct.nameidata", "bpf_func_id.BPF_FUNC_loop"]


def setUpModule():  # pylint: disable=invalid-name
    if os.geteuid():
        raise unittest.SkipTest("needs root: it mounts")
    if not os.access(VMLINUX, os.R_OK):
        raise unittest.SkipTest("the kernel has no BTF")


class OtherKernel(unittest.TestCase):
    def without(self, name, how="--without"):
        """What to put before a command so that it runs on a kernel without the member, or where it lies
        "--beyond" its structure; None: this one has none."""
        file = tempfile.NamedTemporaryFile(prefix="prcb-btf-")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        os.chmod(file.name, 0o644)
        if subprocess.run([MEMBERS, how, *name.split(".")], stdout=file, check=False).returncode:
            print(f"{name}: this kernel has none", file=sys.stderr)
            return None
        # The root's mount is left alone: a chroot's root is none.
        return ["unshare", "-m", "--propagation", "unchanged", "sh", "-c",
                f'mount --make-private /sys && mount --bind {file.name} {VMLINUX} && exec "$@"', "sh"]

    def test_needed(self):
        for name in NEEDED:
            prefix = self.without(name)
            if not prefix:
                continue
            with self.subTest(name), self.assertRaises(RuntimeError) as caught:
                daemon = Daemon(PRCBD, prefix=prefix)
                daemon.stop()
            self.assertIn(name, str(caught.exception).replace("struct ", ""))

    def test_served(self):
        for name in SERVED:
            prefix = self.without(name)
            if not prefix:
                continue
            with self.subTest(name):
                self.serves(prefix)

    def serves(self, prefix):
        daemon = Daemon(PRCBD, prefix=prefix)
        try:
            self.assertEqual(as_user(NOBODY, self.see_switches, daemon.socket), (1, 1, 0, 0, 0))
        finally:
            daemon.stop()

    @staticmethod
    def see_switches(path):
        client = Client(path).open(4)
        seen = client.profile(PROCESS, os.getpid())
        memory = client.map()
        before = used(memory, 4)[0].switches
        while used(memory, 4)[0].switches == before:
            time.sleep(0.001)
        return seen

    def doctor(self, name):
        output = subprocess.run([*self.without(name), PRCB, "doctor", "-j"], stdout=subprocess.PIPE,
                                check=False, timeout=60).stdout
        return {row["name"]: (row["state"], row["detail"]) for row in json.loads(output)["checks"]}

    def test_doctor(self):
        rows = self.doctor("task_struct.nvcsw")
        self.assertEqual((rows["thread-programs"][0], rows["thread-figures"][0]), ("absent", "unknown"))
        self.assertIn("nvcsw", rows["thread-programs"][1])
        if rows["processor-programs"][0] == "present": # not on PREEMPT_RT
            self.assertEqual(rows["record-programs"][0], "present", rows)
        rows = self.doctor("cfs_rq.rq")  # what the programs for processors need
        self.assertEqual((rows["processor-programs"][0], rows["record-programs"][0]), ("absent", "present"))
        self.assertIn("wakers are not recorded: wakers: ", rows["record-programs"][1])
        rows = self.doctor("task_struct.__state")
        self.assertEqual(rows["record-programs"][0], "absent")
        self.assertIn("__state", rows["record-programs"][1])
        for name, words in (("sched_entity.nr_migrations", "nr_migrations"), ("files_struct.fdt", "fdtable")):
            rows = self.doctor(name)
            self.assertEqual((rows["thread-programs"][0], rows["thread-figures"][0]),
                             ("present", "absent"), rows)
            self.assertIn(words, rows["thread-figures"][1])

    def test_stat_says_what_doctor_says(self):
        result = subprocess.run([*self.without("files_struct.fdt"), PRCB, "stat", "-j", "--", "true"],
                                stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=True, timeout=60)
        limits = json.loads(result.stdout or result.stderr)["limits"]
        self.assertEqual(len(limits), 1)
        self.assertIn(limits[0], self.doctor("files_struct.fdt")["thread-figures"][1])

    def test_refused_by_the_verifier(self):
        """One sentence that names a program and the verifier's reason; its last lines with -v only, those
        of the program that was refused first: `why` loads the processors' programs before the threads'."""
        prefix = self.without("task_struct.pid", "--beyond")
        reason = (r"the kernel refused the eBPF program [a-z_]+: "
                  r"access beyond struct task_struct at off 32000 size 4")
        threads, processors = "(prcb_register|prcb_waking)", "prcb_start"
        for command, program in ((["stat", "--tier", "bpf", "--", "true"], threads),
                                  (["why", "--tier", "bpf", "--", "true"], threads),
                                 (["top", "-b", "-n", "1", "--tier", "bpf"], threads),
                                 (["serve", "--tier", "bpf", "--for", "0.1"], threads),
                                 (["export", "--tier", "bpf"], threads),
                                 (["cpu", "--tier", "bpf"], processors),
                                 (["power", "--tier", "bpf"], processors)):
            with self.subTest(command):
                plain, verbose = (subprocess.run(
                    [*prefix, PRCB, command[0], *more, *command[1:]], stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE, text=True, check=False, timeout=60) for more in ([], ["-v"]))
                self.assertEqual((plain.returncode, verbose.returncode), (1, 1))
                self.assertRegex(plain.stderr, rf"\Aprcb {command[0]}: {reason}\n\Z")
                self.assertRegex(plain.stderr, program)
                said = verbose.stderr.splitlines()
                self.assertEqual((said[0], said[-1]),
                                 ("the verifier's last lines:", plain.stderr.rstrip("\n")))
                self.assertTrue(any(re.match(r"\d+: \([0-9a-f]{2}\) ", line) for line in said), said)
                self.assertIn("access beyond struct task_struct at off 32000 size 4", said)
                self.assertLess(len(said), 20)

    def test_recordings_say_what_was_refused_first(self):
        """They go on by the perf ring, and open other programs after those that were refused."""
        prefix = self.without("task_struct.tgid", "--beyond")
        with tempfile.TemporaryDirectory() as folder:
            plain, verbose = (subprocess.run(
                [*prefix, PRCB, "record", *more, "-o", f"{folder}/{len(more)}", "--", "true"],
                stderr=subprocess.PIPE, text=True, check=False, timeout=60) for more in ([], ["-v"]))
        self.assertEqual((plain.returncode, verbose.returncode), (0, 0), plain.stderr + verbose.stderr)
        self.assertNotIn("verifier", plain.stderr)
        self.assertTrue(verbose.stderr.startswith("the verifier's last lines:\n"), verbose.stderr)
        self.assertIn("\naccess beyond struct task_struct", verbose.stderr)

    def test_prcbd_is_refused_by_the_verifier(self):
        prefix = self.without("task_struct.pid", "--beyond")
        with tempfile.TemporaryDirectory() as folder, open(f"{folder}/conf", "w+", encoding="utf-8") as settings:
            settings.write(f"pin_directory = /sys/fs/bpf/prcbd-test-{os.getpid()}\nuser =\n"
                           "allow_unprivileged_bpf = yes\n")
            settings.flush()
            plain, verbose = (subprocess.run(
                [*prefix, PRCBD, *more, "--config", settings.name, "--socket", f"{folder}/socket"],
                stderr=subprocess.PIPE, text=True, check=False, timeout=60) for more in ([], ["-v"]))
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(f"/sys/fs/bpf/prcbd-test-{os.getpid()}")
        self.assertRegex(plain.stderr, r"\Aprcbd: the kernel refused the eBPF program [a-z_]+: "
                         r"access beyond struct task_struct at off 32000 size 4\n\Z")
        self.assertEqual(verbose.stderr.splitlines()[:2], [*plain.stderr.splitlines(), "the verifier's last lines:"])
        self.assertIn("\naccess beyond struct task_struct", verbose.stderr)

    def test_waits_that_nobody_ended(self):
        """Without the programs for processors a session knows no wakers, and says so."""
        prefix = self.without("cfs_rq.rq")
        for command, limits in ((["stat", "-j", "--by-whom", "--", "true"], 1), (["stat", "-j", "--", "true"], 0)):
            result = subprocess.run([*prefix, PRCB, *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                    check=True, timeout=60)
            document = json.loads(result.stdout or result.stderr)
            self.assertEqual(document["tier"], "bpf")
            self.assertEqual(len([line for line in document["limits"] if "who ended the waits" in line]), limits)

    def test_log_is_of_the_first_program(self):
        """Both objects are refused: a view's program first, whose instructions the log has."""
        prefix = self.without("task_struct.pid", "--beyond")
        logs = [subprocess.run([*prefix, PRCB, *command], stdout=subprocess.DEVNULL, text=True,
                               stderr=subprocess.PIPE, check=False, timeout=60).stderr.splitlines()[1:-1]
                for command in (["why", "-v", "--tier", "bpf", "--", "true"], ["cpu", "-v", "--tier", "bpf"],
                                ["why", "-v", "--no-whom", "--tier", "bpf", "--", "true"])]
        self.assertEqual(logs[0], logs[1])
        self.assertNotEqual(logs[0], logs[2])

    def test_why_a_worse_tier(self):
        prefix = self.without("task_struct.pid", "--beyond")
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        for command in (["stat", "--", "true"], ["why", "--", "true"],
                        ["record", "-o", f"{folder.name}/x.db", "--", "true"]):
            with self.subTest(command):
                result = subprocess.run([*prefix, PRCB, *command], capture_output=True, text=True, check=False,
                                        timeout=60)
                words = result.stdout + result.stderr
                self.assertEqual(words.count("the kernel refused the eBPF program"), 1, words)
                self.assertNotIn("verifier", words)


if __name__ == "__main__":
    sys.exit(unittest.main())
