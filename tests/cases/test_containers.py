#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Containers that podman, LXC and systemd-nspawn make, of nothing but sleep(1): prcb finds each by its name.

Witness: the process, which the test finds by the time that it sleeps for. Each is skipped where its program is missing, or
does not work here; the reason is printed."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

PRCB = os.environ["PRCB"]
SLEEP = f"60.{os.getpid()}"  # nobody else sleeps for as long
BPF = not os.geteuid() and os.path.exists("/sys/kernel/btf/vmlinux")


def mount_of(kind):
    with open("/proc/mounts", encoding="utf-8") as file:
        return next((words[1] for words in map(str.split, file) if words[2] == kind), None)


def pid_of_sleeper():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == f"/bin/sleep\0{SLEEP}\0".encode():
                    return int(pid)
        except OSError:
            pass
    return None


class Containers(unittest.TestCase):
    def setUp(self):
        if os.geteuid():
            self.skipTest("needs root")
        self.folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = os.path.join(self.folder, "root")
        for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr", "var"):
            os.makedirs(os.path.join(self.root, name))
        libraries = subprocess.run(["ldd", "/bin/sleep"], capture_output=True, text=True, check=False).stdout.split()
        for path in ["/bin/sleep", *(word for word in libraries if word.startswith("/"))]:
            os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
            shutil.copy(path, self.root + path)
        for name in ("os-release", "passwd"):
            with open(os.path.join(self.root, "etc", name), "w", encoding="ascii"):
                pass

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")

    def inside(self, script):
        """A shell in a mount namespace of its own, which makes a container and says when it runs; it ends with its input."""
        shell = subprocess.Popen(["unshare", "-m", "sh", "-ec", script + "\necho made; read line || :; exec \"$@\"", "sh", "true"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder)
        self.addCleanup(shell.communicate, timeout=30)
        said = []
        for line in shell.stdout:
            if line == "made\n":
                return shell
            said.append(line)
        self.skipTest("it does not work here: " + "".join(said)[-300:])

    def sleeper(self):
        deadline = time.monotonic() + 20
        while not pid_of_sleeper():
            if time.monotonic() > deadline:
                self.skipTest("the container does not begin here")
            time.sleep(0.05)
        return pid_of_sleeper()

    def check(self, name, namespace=None):
        """By its name; namespace: of mounts, a process that has it."""
        pid = self.sleeper()
        command = ["nsenter", "-m", "-t", str(namespace)] if namespace else []
        for words in ("why", "--container", name), ("why", name):
            result = subprocess.run([*command, PRCB, words[0], "-j", "--tier", "perf", "--for", "0.1", *words[1:]],
                                    capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([row["pid"] for row in json.loads(result.stdout)["processes"]], [pid])

    def test_podman(self):
        self.need("podman")
        podman = "podman --cgroup-manager cgroupfs"
        hybrid = mount_of("cgroup2") and mount_of("cgroup")
        shell = self.inside(
            "mkdir -p /var/lib/containers /run/containers; mount -t tmpfs none /var/lib/containers; mount -t tmpfs none /run/containers\n"
            # crun refuses a machine that has both versions.
            + (f"umount {mount_of('cgroup2')}\n" if hybrid else "")
            + f"tar -C root -c . | {podman} import - case:1 2>import || {{ cat import; exit 1; }}\n"
            f"{podman} run -d --network none --ulimit nofile=256:256 --ulimit nproc=256:256 --name case-podman-{os.getpid()} "
            f"case:1 /bin/sleep {SLEEP}")
        try:
            self.check(f"case-podman-{os.getpid()}", shell.pid)
        finally:
            subprocess.run(["nsenter", "-m", "-t", str(shell.pid), *podman.split(), "rm", "-f", "-t", "0", f"case-podman-{os.getpid()}"],
                           capture_output=True, timeout=60, check=False)

    def test_lxc(self):
        self.need("lxc-start")
        name = f"case-lxc-{os.getpid()}"
        with open(os.path.join(self.folder, "config"), "w", encoding="ascii") as file:
            file.write(f"lxc.uts.name = {name}\nlxc.rootfs.path = dir:{self.root}\nlxc.net.0.type = empty\n"
                       f"lxc.apparmor.profile = unconfined\nlxc.init.cmd = /bin/sleep {SLEEP}\n")
        shell = self.inside("mkdir -p /var/lib/lxc; mount -t tmpfs none /var/lib/lxc\n"
                            f"mkdir /var/lib/lxc/{name}; cp config /var/lib/lxc/{name}; lxc-start -n {name}")
        try:
            self.check(name, shell.pid)
            if BPF and mount_of("cgroup2"):
                text = subprocess.run(["nsenter", "-m", "-t", str(shell.pid), PRCB, "export", "--tier", "bpf", "--for", "0.1", "--containers"],
                                      stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
                self.assertRegex(text, rf'prcb_container_info{{cgroup="/lxc.payload.{name}",container="{name}",'
                                       rf'file="/var/lib/lxc/{name}/config"}} 1')
                self.assertIn(f'prcb_cgroup_info{{cgroup="/lxc.payload.{name}",machine="{name}"}} 1', text)
        finally:
            subprocess.run(["nsenter", "-m", "-t", str(shell.pid), "lxc-stop", "-k", "-n", name], capture_output=True, timeout=60, check=False)

    def test_nspawn(self):
        """In a cgroup as systemd-machined makes it: here may be no systemd that could."""
        self.need("systemd-nspawn")
        mount = mount_of("cgroup2")
        if not mount:
            self.skipTest("cgroups of version 2 are not mounted")
        name = f"case-nspawn-{os.getpid()}"
        scope = os.path.join(mount, "machine.slice", "machine-" + name.replace("-", "\\x2d") + ".scope")
        os.makedirs(scope)

        def clean():
            try:
                with open(scope + "/cgroup.kill", "w", encoding="ascii") as file:
                    file.write("1")
            except OSError:
                pass
            for folder in (*(os.path.join(scope, below) for below in ("payload", "supervisor")), scope, os.path.dirname(scope)):
                deadline = time.monotonic() + 10
                while os.path.isdir(folder) and time.monotonic() < deadline:
                    try:
                        os.rmdir(folder)
                    except OSError as error:
                        if folder == os.path.dirname(scope) and error.errno != 16:
                            break  # others have theirs in it
                        time.sleep(0.05)
        self.addCleanup(clean)

        def enter():
            with open(scope + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")
        container = subprocess.Popen(["systemd-nspawn", "-q", "--register=no", "--keep-unit", "-D", self.root, "--console=pipe",
                                      f"--machine={name}", "/bin/sleep", SLEEP], preexec_fn=enter, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            pid = self.sleeper()
            result = subprocess.run([PRCB, "stat", "-j", "--tier", "perf", "--for", "0.1", "--container", name], capture_output=True,
                                    text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(pid, [row["pid"] for row in json.loads(result.stdout)["threads"]])
        finally:
            container.kill()
            container.wait()


if __name__ == "__main__":
    unittest.main()
