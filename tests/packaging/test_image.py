#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The container image that tools/image.py makes of the build $BUILD: what an engine reads of it, and its programs in
containers: prcbd with the two capabilities of examples/kubernetes and no others, prcb-exporter as nobody. Containers
are systemd-nspawn's and chroot's; podman, where it is, loads the image."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD"])
NEEDED = ["CAP_BPF", "CAP_PERFMON"]
DEADLINE = 60


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {what} in {DEADLINE} s")


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="prcb-image-")))
        cls.folder.chmod(0o755)
        cls.tar = cls.folder / "image.tar"
        subprocess.run([ROOT / "tools/image.py", BUILD, cls.tar, "prcb:test"], check=True, stdout=subprocess.DEVNULL)
        cls.layout, cls.root = cls.folder / "layout", cls.folder / "root"
        for folder in cls.layout, cls.root:
            folder.mkdir(mode=0o755)
        subprocess.run(["tar", "-C", cls.layout, "-xf", cls.tar], check=True)
        [manifest] = json.loads((cls.layout / "index.json").read_text())["manifests"]
        cls.manifest = json.loads(cls.blob(manifest))
        [layer] = cls.manifest["layers"]
        subprocess.run(["tar", "-C", cls.root, "-xzpf", "-"], input=cls.blob(layer), check=True)

    @classmethod
    def blob(cls, descriptor):
        """What a descriptor names, which must be what it says."""
        data = (cls.layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        if (len(data), "sha256:" + hashlib.sha256(data).hexdigest()) != (descriptor["size"], descriptor["digest"]):
            raise AssertionError(f"{descriptor}: other bytes")
        return data

    def test_what_an_engine_reads(self):
        config = json.loads(self.blob(self.manifest["config"]))
        [layer] = self.manifest["layers"]
        tar = subprocess.run(["gzip", "-dc"], input=self.blob(layer), capture_output=True, check=True).stdout
        self.assertEqual(config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(tar).hexdigest()])
        [old] = json.loads((self.layout / "manifest.json").read_text())
        self.assertEqual(old["RepoTags"], ["prcb:test"])
        for name in [old["Config"], *old["Layers"]]:
            self.assertTrue((self.layout / name).is_file(), name)
        again = self.folder / "again.tar"
        subprocess.run([ROOT / "tools/image.py", BUILD, again, "prcb:test"], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(again.read_bytes(), self.tar.read_bytes())

    def test_podman_loads_it(self):
        if not shutil.which("podman") or os.geteuid():
            self.skipTest("needs podman and root")
        podman = ["podman", "--root", self.folder / "storage", "--runroot", self.folder / "run",
                  "--storage-driver", "vfs"]
        loaded = subprocess.run([*podman, "load", "-i", self.tar], capture_output=True, text=True, check=False)
        self.assertIn("prcb:test", loaded.stdout, loaded.stderr)
        config = json.loads(subprocess.run([*podman, "image", "inspect", "prcb:test"], capture_output=True,
                                           check=True).stdout)[0]
        self.assertEqual(config["Config"]["Cmd"][0], "/usr/sbin/prcbd")

    def test_programs_and_nothing_else(self):
        programs = sorted(str(path.relative_to(self.root)) for path in self.root.glob("usr/*bin/*"))
        self.assertEqual(programs, ["usr/bin/prcb", "usr/sbin/prcb-exporter", "usr/sbin/prcbd"])
        if os.geteuid():
            self.skipTest("needs root")
        for name in programs:
            said = subprocess.run(["chroot", self.root, "/" + name, "--version"], capture_output=True, text=True,
                                  env={"PATH": os.environ["PATH"]}, check=True, timeout=DEADLINE).stdout
            self.assertRegex(said, r"^prcb\S* \d")

    def start(self, command, **more):
        log = (self.folder / "log").open("a+")
        self.addCleanup(log.close)
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)

        def stop():
            program.terminate()
            program.wait(DEADLINE)
        self.addCleanup(stop)
        return program, lambda: (self.folder / "log").read_text(errors="replace")

    def test_prcbd_and_the_exporter_in_containers(self):
        if os.geteuid() or not shutil.which("systemd-nspawn") or not shutil.which("capsh"):
            self.skipTest("needs root, systemd-nspawn and capsh")
        bounding = re.search(r"Bounding set =(.*)", subprocess.run(
            ["capsh", "--print"], capture_output=True, text=True, check=True).stdout)[1].upper().split(",")
        if not set(NEEDED) <= set(bounding):
            self.skipTest("CAP_BPF or CAP_PERFMON is out of reach")
        pins, sockets = f"/sys/fs/bpf/prcb-image-{os.getpid()}", self.folder / "sockets"
        sockets.mkdir()
        (self.folder / "prcbd.conf").write_text(f"pin_directory = {pins}\nuser =\nsocket = /run/prcb/socket\n"
                                                "profile_all = all\nallow_unprivileged_bpf = yes\n")
        (self.root / "etc/os-release").touch() # which nspawn asks for
        self.addCleanup(subprocess.run, [BUILD / "src/services/daemon/prcbd", "--cleanup", "--pin-directory", pins],
                        stderr=subprocess.DEVNULL, check=False)
        daemon, said = self.start([
            "systemd-nspawn", "-q", "--register=no", "--keep-unit", "-D", self.root, "--console=pipe",
            "--capability=" + ",".join(NEEDED), "--system-call-filter=bpf perf_event_open",
            "--drop-capability=" + ",".join(name for name in bounding if name not in NEEDED), "--bind=/sys/fs/bpf",
            f"--bind={sockets}:/run/prcb", f"--bind-ro={self.folder}/prcbd.conf:/etc/prcb/prcbd.conf",
            "/usr/sbin/prcbd", "--foreground"], env={**os.environ, "SYSTEMD_NSPAWN_SHARE_NS_PID": "1"})
        wait_for(lambda: "serves" in said() or daemon.poll() is not None, "prcbd")
        if "serves" not in said() and "prcbd" not in said():
            self.skipTest("systemd-nspawn does not work here: " + said()[-300:])
        self.assertIn("serves", said())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        exporter, said = self.start([
            "unshare", "--mount", "sh", "-c", 'mount --rbind /proc "$1/proc" && mount --rbind /sys "$1/sys" && '
            'mount --bind "$2" "$1/run/prcb" && exec chroot --userspec=65534:65534 "$1" /usr/sbin/prcb-exporter '
            '--web.listen-address="127.0.0.1:$3"', "sh", self.root, sockets, str(port)])

        def metrics():
            if exporter.poll() is not None:
                raise AssertionError(said()[-600:])
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
            except OSError:
                return None
            return text if re.search(r"(?m)^prcb_up 1$", text) else None

        text = wait_for(metrics, "figures of the exporter: " + said()[-600:])
        self.assertRegex(text, r'(?m)^prcb_system_cpu_seconds_total\{mode="idle"\} \d')
        self.assertGreater(sum(float(value) for value in re.findall(r"(?m)^prcb_threads\S* (\d+)$", text)), 20)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
