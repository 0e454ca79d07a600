#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""-p with a thread's number means its process, and a zombie in a list does not end the command; both are said.

Witness: the numbers that the kernel gave (Tgid in /proc, Popen)."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from house import PRCB, ROOT, House, await_true, mount_of, state_of


class Targets(House):
    def ask(self, command, targets):
        arguments = {"stat": ["-j", "--for", "0.1"], "why": ["-j", "--for", "0.1"], "top": ["-b", "--idle", "-n", "1", "-d", "0.1"]}[command]
        return subprocess.run([PRCB, command, "-p", targets, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def setUp(self):
        self.end = threading.Event()
        self.zombie = subprocess.Popen([sys.executable, "-c", ""])
        self.addCleanup(self.zombie.wait)
        self.thread = threading.Thread(target=self.end.wait)
        self.thread.start()
        self.addCleanup(self.thread.join)
        self.addCleanup(self.end.set)
        await_true(lambda: state_of(self.zombie.pid) == "Z", "it has ended")

    def test_a_number_of_a_thread(self):
        for command in ("stat", "why", "top"):
            result = self.ask(command, str(self.thread.native_id))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"{self.thread.native_id} is a thread of process {os.getpid()} (", result.stderr)
            self.assertIn(str(os.getpid()), result.stdout)

    def test_a_zombie_among_others(self):
        for command in ("stat", "why", "top"):
            result = self.ask(command, f"{self.zombie.pid},{os.getpid()}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"process {self.zombie.pid} has ended and waits to be reaped: it is left out", result.stderr)
            result = self.ask(command, str(self.zombie.pid))
            self.assertNotEqual(result.returncode, 0)

    def ask_word(self, *words):
        return subprocess.run([PRCB, "why", "-j", *words], capture_output=True, text=True, timeout=60, check=False)

    def test_a_word_names_what_runs(self):
        """A number, a name with options behind it, a cgroup; and a command where nothing is called so."""
        name = f"t{os.getpid()}"
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        os.symlink(shutil.which("sleep"), os.path.join(folder, name))
        slept = subprocess.Popen([os.path.join(folder, name), "60"])
        self.addCleanup(slept.wait)
        self.addCleanup(slept.kill)
        await_true(lambda: state_of(slept.pid) == "S", "it sleeps")
        for words in (str(slept.pid), "--for", "0.1"), ("--for", "0.1", name), (name, "--for", "0.1"), (name, "--", "true"):
            result = self.ask_word(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept.pid])
        # A name with words behind it that are no options is a command's.
        result = self.ask_word(os.path.join(folder, name), "0.1")
        self.assertNotEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept.pid])
        for words in (name + "x",), (name + "x", "--for", "1"), ("0",):
            result = self.ask_word(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"no process, unit or container is called '{words[0]}'; to start it as a command: prcb why -- {words[0]}", result.stderr)
        both = self.ask_word(f"{os.getpid()},{name}", "--for", "0.1")
        self.assertEqual({row["pid"] for row in json.loads(both.stdout)["processes"]} & {os.getpid(), slept.pid}, {os.getpid(), slept.pid})
        result = self.ask_word(f"{slept.pid},{name}x")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"no process is called '{name}x'", result.stderr)
        result = self.ask_word("12", "13")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'12' and '13': several processes are one word, with commas between them", result.stderr)
        self.assertEqual(self.ask_word(name, "--for", "1", "more").returncode, 2)
        self.assertEqual(self.ask_word("--unit", name).returncode, 1)

    @unittest.skipUnless(ROOT, "needs root, to make a cgroup")
    def test_a_cgroup_by_its_path_and_as_a_unit(self):
        group, slept = None, subprocess.Popen(["sleep", "60"])
        try:
            group = self.make_cgroup(".service", slept.pid)
            name = os.path.basename(group)
            for words in ("/" + name,), (group,), (name,), ("--unit", name), ("--unit", name[:-len(".service")]), ("--cgroup", group):
                result = self.ask_word(*words, "--for", "0.1")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept.pid])
        finally:
            slept.kill()
            slept.wait()
            if group:
                os.rmdir(group)

    def test_what_nothing_is_called(self):
        for words, said in ((("--unit", "nope"), "--unit 'nope': no unit of this name runs"),
                            (("--container", "nope"), "--container 'nope': no container runs that has this name, or an id that begins so"),
                            (("--pod", "nope/x"), "--pod 'nope/x': no pod runs that has this name, or this uid"),
                            (("--cgroup", "/nope"), "cgroup /nope: No such file or directory"),
                            (("/nope",), "there is no cgroup and no program '/nope'")):
            result = self.ask_word(*words, "--for", "0.1")
            self.assertIn(result.returncode, (1, 2))
            self.assertIn(said, result.stderr)
            self.assertEqual(result.stdout, "")

    @unittest.skipUnless(ROOT, "needs root, to make cgroups and mounts")
    def test_containers_and_pods(self):
        """Cgroups as Docker, Podman and Kubernetes make them, and the files in which these programs keep their names."""
        mount = mount_of("cgroup2") or mount_of("pids")
        if not mount:
            self.skipTest("no cgroups are mounted")
        ids = [f"{os.getpid():08x}" + str(n) * 56 for n in range(4)]
        pod = f"{os.getpid():08x}-31a4-4d2f-9c1e-0a1b2c3d4e5f"
        top = f"prcb{os.getpid()}.slice"
        pod_folder = f"{top}/kubepods-burstable-pod{pod.replace('-', '_')}.slice"
        groups = [f"{top}/docker-{ids[0]}.scope", f"{top}/libpod-{ids[1]}.scope", f"{pod_folder}/cri-containerd-{ids[2]}.scope"]
        files = {f"/var/lib/docker/containers/{ids[0]}/config.v2.json": json.dumps({"Name": "/case-web"}),
                 f"/var/lib/docker/containers/{ids[3]}/config.v2.json": json.dumps({"Name": "/case-off"}),
                 "/var/lib/containers/storage/overlay-containers/containers.json":
                     json.dumps([{"id": ids[1], "names": ["case-db"]}]),
                 f"/var/log/containers/shop-1_case_api-{ids[2]}.log": "",
                 f"/var/log/pods/case_shop-1_{pod}/log": ""}
        made = "".join(f"mkdir -p {os.path.dirname(path)}; echo {shlex.quote(text)} >{path}; " for path, text in files.items())

        def ask(*words):
            return subprocess.run(["unshare", "-m", "sh", "-c", f'mount -t tmpfs none /var/lib && mount -t tmpfs none /var/log && {made} exec "$@"',
                                   "sh", PRCB, "why", "-j", "--for", "0.1", *words], capture_output=True, text=True, timeout=60, check=False)
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/var/log"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespace can be made here")
        slept = {}
        try:
            for group in groups:
                os.makedirs(os.path.join(mount, group))
                slept[group] = subprocess.Popen(["sleep", "60"])
                with open(os.path.join(mount, group, "cgroup.procs"), "w", encoding="ascii") as file:
                    file.write(str(slept[group].pid))
            for words, group in ((("--container", "case-web"), 0), (("case-web",), 0), (("--container", ids[0][:12]), 0), (("--container", "case-db"), 1),
                                 (("--container", "api"), 2), (("--pod", "shop-1"), 2), (("--pod", "case/shop-1"), 2), (("--pod", pod), 2),
                                 (("/" + groups[2],), 2)):
                with self.subTest(words):
                    result = ask(*words)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [slept[groups[group]].pid])
            result = ask("--container", "case-off")
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"it does not run, or has no cgroup of its own: there is none for {ids[3][:12]}", result.stderr)
            result = ask("--container", f"{os.getpid():08x}")
            self.assertEqual(result.returncode, 2)
            self.assertIn("the ids of 3 containers begin so", result.stderr)
        finally:
            for process in slept.values():
                process.kill()
                process.wait()
            for group in [*groups, pod_folder, top]:
                if os.path.isdir(os.path.join(mount, group)):
                    os.rmdir(os.path.join(mount, group))

    @unittest.skipUnless(ROOT, "needs root, for eBPF")
    def test_what_stays_running(self):
        """The live page and the recorder: until they are told to end."""
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        for command in ["serve"], ["flight", "-o", folder]:
            with subprocess.Popen([PRCB, *command, "-p", f"{self.thread.native_id},{self.zombie.pid}"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                said = [process.stderr.readline() for _ in range(2)]
                process.terminate()
                process.communicate(timeout=60)
            self.assertIn(f"{self.thread.native_id} is a thread of process {os.getpid()} (", said[0])
            self.assertIn(f"process {self.zombie.pid} has ended and waits to be reaped: it is left out", said[1])

    def test_record(self):
        """What it records of a thread's number was nothing, and no failure."""
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "recording")
        result = subprocess.run([PRCB, "record", "-p", f"{self.thread.native_id},{self.zombie.pid}", "-o", path, "--",
                                 sys.executable, "-c", ""], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"is a thread of process {os.getpid()} (", result.stderr)
        self.assertIn("it is left out", result.stderr)
        text = subprocess.run([PRCB, "report", "-j", path], capture_output=True, text=True, check=True).stdout
        self.assertIn(f'"pid": {os.getpid()}', text.replace('"pid":', '"pid": ').replace(":  ", ": "))


if __name__ == "__main__":
    unittest.main()
