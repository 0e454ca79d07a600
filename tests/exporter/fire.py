#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real causes fire the shipped rules: prometheus scrapes prcb-exporter while a quota, neighbours, a disk and a lock
keep threads from running. Run by hand, as root, on a machine with prometheus; it takes two minutes and a processor:

    tests/exporter/fire.py build

The rules are those of examples/prometheus, with shorter times alone (5m is 20s, 10m and 15m are 10s, 1h is 30s).
Prints each alert, and when it fired; exits with 1 if one that was caused did not. Others may fire too."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORTER = {"1h": "30s", "15m": "10s", "10m": "10s", "5m": "20s"}
SECONDS = 90
HOG = "while True: pass"
WRITE = ("import mmap, os\nf = os.open('{}', os.O_CREAT | os.O_WRONLY | os.O_DIRECT | os.O_SYNC)\n"
         "while True: os.pwrite(f, mmap.mmap(-1, 65536), 0)")
WRITES = 20 # in a second, which the disk is told to allow
# What is caused in which cgroup, and the alert that it has to fire there.
CAUSED = {("PrcbCgroupThrottled", "quota"), ("PrcbCgroupStarved", "victim"),
          ("PrcbCgroupStarvedByNeighbour", "victim"), ("PrcbCgroupWaitsForDisk", "disk"),
          ("PrcbCgroupWaitsForKernelLock", "lock"), ("PrcbReadyTail", ""), ("PrcbThreadsUntracked", ""),
          ("PrcbDown", ""), ("PrcbExporterGone", "")}


def mounted(kind, option=""):
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, path, found, options = line.split()[:4]
        if found == kind and (not option or option in options.split(",")):
            return pathlib.Path(path)
    return None


def disk_of(folder):
    number = os.stat(folder).st_dev
    at = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    return ((at.parent if (at / "partition").exists() else at) / "dev").read_text().strip()


class Scene(contextlib.ExitStack):
    def group(self, name, base):
        path = base / f"prcb-fire-{name}"
        path.mkdir(exist_ok=True)
        self.callback(lambda: self.remove(path))
        return path

    @staticmethod
    def remove(path):
        for _ in range(100):
            with contextlib.suppress(OSError):
                path.rmdir()
                return
            time.sleep(0.05)

    def start(self, command, groups=(), cpu=None, **more):
        def enter():
            for group in groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
        child = subprocess.Popen(command, preexec_fn=enter, start_new_session=True, **more)
        self.callback(self.end, child)
        return child

    @staticmethod
    def end(child):
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def cause(scene, folder):
    v2, v1, v1_disk = mounted("cgroup2"), mounted("cgroup", "cpu"), mounted("cgroup", "blkio")
    groups = {name: scene.group(name, v2) for name in ("quota", "victim", "neighbour", "disk", "lock")}
    quota = scene.group("quota", v1) if v1 else groups["quota"]
    if v1:
        (quota / "cpu.cfs_quota_us").write_text("10000")
    else:
        (v2 / "cgroup.subtree_control").write_text("+cpu")
        (quota / "cpu.max").write_text("10000 100000")
    slow = scene.group("disk", v1_disk) if v1_disk else groups["disk"]
    if v1_disk:
        (slow / "blkio.throttle.write_iops_device").write_text(f"{disk_of(folder)} {WRITES}")
    else:
        (v2 / "cgroup.subtree_control").write_text("+io")
        (slow / "io.max").write_text(f"{disk_of(folder)} wiops={WRITES}")
    scene.start([sys.executable, "-c", HOG], {groups["quota"], quota})
    scene.start([sys.executable, "-c", HOG], [groups["victim"]], 0)
    for _ in range(40):
        scene.start([sys.executable, "-c", HOG], [groups["neighbour"]], 0)
    for number in range(2):
        scene.start([sys.executable, "-c", WRITE.format(folder / f"written-{number}")], {groups["disk"], slow}, 1)
    for _ in range(2):
        scene.start(["flock", folder / "lock", "sleep", str(10 * SECONDS)], [groups["lock"]])


def tell_targets(folder, count):
    new = folder / "targets.new"
    new.write_text(json.dumps([{"targets": [f"localhost:{19042 + i}" for i in range(count)]}]))
    new.rename(folder / "targets.json")


def serve(scene, build, folder):
    """Four exporters: one sees all, one has no prcbd, one has room for few threads, one will be gone."""
    exporter = build / "src/services/exporter/prcb-exporter"
    everything = ["--tier", "bpf", "--cgroup-causes", "--ready-histogram", "--by-whom"]
    options = [everything, ["--tier", "daemon"], ["--tier", "bpf", "--max-threads", "32"], ["--tier", "perf"]]
    children = [scene.start([exporter, f"--web.listen-address=localhost:{19042 + i}", *words])
                for i, words in enumerate(options)]
    rules = (ROOT / "examples/prometheus/prcb-rules.yml").read_text()
    rules = re.sub(r"\b(1h|15m|10m|5m)\b(?!:)", lambda match: SHORTER[match[1]], rules)
    (folder / "rules.yml").write_text(rules)
    tell_targets(folder, 4)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: [rules.yml]\nscrape_configs:\n"
        "  - job_name: prcb\n    file_sd_configs: [{files: [targets.json], refresh_interval: 2s}]\n")
    scene.start(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 "--web.listen-address=localhost:19090", "--log.level=error"])
    return children


def firing():
    with contextlib.suppress(OSError), urllib.request.urlopen("http://localhost:19090/api/v1/alerts", timeout=5) as got:
        for alert in json.load(got)["data"]["alerts"]:
            labels = alert["labels"]
            group = re.search(r"/prcb-fire-(\w+)$", labels.get("cgroup", ""))
            if alert["state"] == "firing":
                yield labels["alertname"], group[1] if group else "", labels.get("cgroup", ""), \
                    alert["annotations"]["summary"]


def main(build):
    seen, begin = {}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="prcb-fire-") as folder, Scene() as scene:
        folder = pathlib.Path(folder)
        children = serve(scene, pathlib.Path(build).resolve(), folder)
        cause(scene, folder)
        gone = False
        while time.monotonic() - begin < SECONDS and not CAUSED <= {key[:2] for key in seen}:
            if time.monotonic() - begin > SECONDS / 3 and not gone:
                gone = True
                scene.end(children[3])
                tell_targets(folder, 3)
            for name, group, cgroup, words in firing():
                if (name, group, cgroup) not in seen:
                    seen[name, group, cgroup] = words
                    print(f"{time.monotonic() - begin:5.0f} s  {name}: {words}", flush=True)
            time.sleep(1)
    missing = CAUSED - {key[:2] for key in seen}
    print("\n".join(f"not fired: {name} {group}" for name, group in sorted(missing)) or "all that were caused fired")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
