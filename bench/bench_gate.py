#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whether a gate on prcb bench fails for what the machine did, and finds what the program did: comparisons of
equal commands, and of commands with 5 % more work, a lock of 1 ms more, 3 page faults more, each beside a hog,
in a CPU quota, beside a disk that others write to; equal ones also in a guest whose emulated processor is taken
away, which it is not told. hyperfine and `perf stat -r` answer the same question in the
same conditions, each with 40 runs of either command, by Welch's test at the level of prcb bench; so does
prcb bench as nobody, on the perf tier. A cell is in how many of the comparisons a tool found a difference.

    bench_gate [CONDITION]...     hog, quota, disk, all; stolen, if it is named
    PRCB_GATE_SAME=200            comparisons of equal commands in each condition
    PRCB_GATE_MORE=40             comparisons of commands that differ, each kind
    PRCB_GATE_PEERS=40            how many of each kind the other tools do, too
    PRCB_GATE_FILE=FILE           results are added to those in FILE, so that a few can be made at a time
Root makes quotas and may be nobody; others leave that out."""
import collections
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PRCB = str(HERE / "../src/tools/cli/prcb")
WORK = str(HERE / "gate_work")
SAME = int(os.environ.get("PRCB_GATE_SAME", "200"))
MORE = int(os.environ.get("PRCB_GATE_MORE", "40"))
PEERS = int(os.environ.get("PRCB_GATE_PEERS", "40"))
KEPT = os.environ.get("PRCB_GATE_FILE")
RUNS = 40
LEVEL = 2.9          # of Welch's t, two samples of 40 runs: 0.5 %
NOBODY = 65534
PERIOD_US, QUOTA_US = 100000, 50000
TOOLS = ("prcb", "prcb, nobody", "hyperfine", "hyperfine, 5 %", "perf stat", "perf stat, 5 %")


def commands(kind, scratch):
    """A and B, as words."""
    sync = ["sync", scratch] if scratch else []
    a, b = {"same": (["1"], ["1"]), "work": (["12"], ["12.6"]), "lock": (["2"], ["2", "lock", "1"]),
            "faults": (["1", "pages", "10"], ["1", "pages", "13"])}[kind]
    return [WORK, *a, *sync], [WORK, *b, *sync]


def output_of(command, **how):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    if result.returncode:
        raise RuntimeError(f"{command[0]}: {result.stderr.strip() or result.returncode}")
    return result


# ---- tools: each says whether it found what is there; of equal commands, whether it found anything ----

def ask_prcb(kind, a, b, nobody):
    """Of a lock its place belongs to it, on the tiers that have places."""
    how = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if nobody else {}
    tier = "perf" if nobody else "bpf"
    document = json.loads(output_of([PRCB, "bench", "--tier", tier, "-j", *(["--no-places"] if kind != "lock" else []),
                                     "--", *a, "--vs", *b], **how).stdout)
    parts = {part["name"]: part for part in document["comparison"]["parts"]}
    own = [name for name, part in parts.items()
           if part["owner"] == "program" and part["verdict"] in ("more", "less")]
    if kind == "same":
        if own:
            print("false:", {name: parts[name] for name in own}, file=sys.stderr)
        return bool(own)
    name = {"work": "run", "lock": "wait" if nobody else "futex", "faults": "faults"}[kind]
    if name not in parts or parts[name]["verdict"] != "more":
        return False
    if kind == "faults":
        return 2 <= parts[name]["change"] <= 4
    return nobody or kind != "lock" or any(place["cause"] == "futex" and place["function"] == "cache_get()"
                                           for place in document["comparison"]["places"])


def differ(kind, sides):
    """Of means, and variances of the means: by Welch's test, and by more than 5 percent."""
    (mean_a, variance_a), (mean_b, variance_b) = sides
    change, error = mean_b - mean_a, math.sqrt(variance_a + variance_b)
    change = abs(change) if kind == "same" else change
    return change > LEVEL * error, change > 0.05 * mean_a


def ask_hyperfine(kind, a, b):
    """It has times from start to end."""
    with tempfile.NamedTemporaryFile() as file:
        output_of(["hyperfine", "-N", "--warmup", "1", "--runs", str(RUNS), "--export-json", file.name,
                   " ".join(a), " ".join(b)])
        results = json.load(file)["results"]
    return differ(kind, [(r["mean"], r["stddev"] ** 2 / RUNS) for r in results])


def ask_perf(kind, a, b):
    """Of each kind the event that has it: processor time, page faults, switches."""
    event = {"lock": "context-switches", "faults": "page-faults"}.get(kind, "task-clock")
    sides = []
    for command in a, b:
        result = output_of(["perf", "stat", "-r", str(RUNS), "-x", ";", "-e", event, "--", *command])
        fields = next(line for line in result.stderr.splitlines() if event in line).split(";")
        mean, percent = float(fields[0]), float(fields[3].rstrip("%"))
        sides.append((mean, (mean * percent / 100) ** 2))
    return differ(kind, sides)


# ---- conditions ----

@contextlib.contextmanager
def process(*command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()


def disk_noise(folder):
    """Writes to the disk, for ever."""
    path = os.path.join(folder, "noise")
    return [sys.executable, "-c", "import os\nwhile True:\n"
            f"    fd = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n"
            "    for _ in range(8):\n        os.write(fd, bytes(262144))\n        os.fsync(fd)\n    os.close(fd)"]


@contextlib.contextmanager
def quota():
    """Half of a processor for this program and all that it starts."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text(encoding="ascii").splitlines()]
    old = [fields[1] for fields in mounts if fields[2] == "cgroup" and "cpu" in fields[3].split(",")]
    root = old or [fields[1] for fields in mounts if fields[2] == "cgroup2"]
    group = pathlib.Path(root[0], f"prcb-gate-{os.getpid()}")
    group.mkdir()
    try:
        if old:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US), encoding="ascii")
        else:
            (group / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}", encoding="ascii")
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        pathlib.Path(root[0], "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        group.rmdir()


@contextlib.contextmanager
def condition(name, folder):
    with contextlib.ExitStack() as stack:
        if name in ("hog", "all"):
            stack.enter_context(process(WORK, "100000000"))
        if name in ("disk", "all"):
            stack.enter_context(process(*disk_noise(folder)))
        if name in ("quota", "all"):
            stack.enter_context(quota())
        yield


def tools_of(number):
    if number >= PEERS:
        return ["prcb"]
    return ["prcb", *(["nobody"] if not os.geteuid() else []),
            *(tool for tool in ("hyperfine", "perf") if shutil.which(tool))]


def compare(name, kind, number, folder, results):
    a, b = commands(kind, os.path.join(folder, "own") if name in ("disk", "all") else None)
    for tool in tools_of(number):
        if tool in ("prcb", "nobody"):
            found = {"prcb" if tool == "prcb" else "prcb, nobody": ask_prcb(kind, a, b, tool == "nobody")}
        else:
            label = {"hyperfine": "hyperfine", "perf": "perf stat"}[tool]
            found = dict(zip((label, label + ", 5 %"), (ask_hyperfine if tool == "hyperfine" else ask_perf)(kind, a, b)))
        for label, yes in found.items():
            results[name, kind, label, "found"] += int(yes)
            results[name, kind, label, "of"] += 1


def stolen(results):
    """Equal commands in an emulated machine of one processor, for which a hog of this machine waits, too."""
    guest = HERE / "../../tests/guest/guest.sh"
    loop = (f"n=0; while [ $n -lt {SAME} ]; do n=$((n+1)); /t/prcb bench --no-places -n 20 -- /t/gate_work 0.5 "
            "--vs /t/gate_work 0.5 | head -n 1; done")
    with process("taskset", "-c", "0", WORK, "100000000"):
        said = output_of(["taskset", "-c", "0", guest, "-t", str(60 * SAME), "-p", "1", "-f", PRCB, "-f", WORK, "x86_64",
                          "--", "sh", "-c", loop]).stdout.splitlines()
    sentences = [line for line in said if re.search(r"\bB\b", line) and not line.startswith("==")]
    results["stolen", "same", "prcb", "of"] += len(sentences)
    results["stolen", "same", "prcb", "found"] += sum(line.startswith("B differs") for line in sentences)


def show(results):
    names = sorted({key[0] for key in results})
    for kind, words in (("same", "equal commands: a difference is false"), ("work", "5 % more work"),
                        ("lock", "a lock of 1 ms more; prcb: with its place"), ("faults", "3 page faults more")):
        print(f"\n{words:44}" + "".join(f"{name:>12}" for name in names))
        for tool in TOOLS:
            cells = [f"{results[name, kind, tool, 'found']} of {results[name, kind, tool, 'of']}"
                     if (name, kind, tool, "of") in results else "-" for name in names]
            print(f"    {tool:40}" + "".join(f"{cell:>12}" for cell in cells))


def kept():
    if not KEPT or not os.path.exists(KEPT):
        return collections.Counter()
    with open(KEPT, encoding="utf-8") as file:
        return collections.Counter({tuple(key): number for key, number in json.load(file)})


def main(names):
    results = kept()
    with tempfile.TemporaryDirectory(dir=os.environ.get("PRCB_GATE_FOLDER", "/var/tmp")) as folder:
        if not os.geteuid():
            os.chown(folder, NOBODY, NOBODY)
        for name in names or ("hog", "quota", "disk"):
            if name == "stolen":
                stolen(results)
                continue
            if name in ("quota", "all") and os.geteuid():
                print(f"{name}: needs root", file=sys.stderr)
                continue
            with condition(name, folder):
                for kind, count in (("same", SAME), ("work", MORE), ("lock", MORE), ("faults", MORE)):
                    for number in range(count):
                        compare(name, kind, number, folder, results)
    if KEPT:
        with open(KEPT, "w", encoding="utf-8") as file:
            json.dump([[list(key), number] for key, number in sorted(results.items())], file)
    show(results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
