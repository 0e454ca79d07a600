#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands that README.md and the pages by task print in ```sh blocks, as they are printed.

    readme.py TREE PREFIX     beside the tree, against the copy installed under PREFIX
    readme.py TREE --fresh    in the tree of a fresh machine, everything (tests/roots/roots.sh)
    readme.py TREE --rows     runs none, looks whether each has its row

COMMANDS says of each line what it needs. A line of a page that has no row, or a row whose line
is gone, fails. Prints TAP.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(sys.argv[1]).resolve()
PREFIX = pathlib.Path(sys.argv[2]).resolve()
FRESH, ROWS = sys.argv[2] == "--fresh", sys.argv[2] == "--rows"

FIRST = ["README.md", *(f"docs/{name}.md" for name in (
    "why", "slow-service", "containers", "locks", "install"))] # the pages after it suppose it installed
PAGES = FIRST + sorted({f"docs/{path.name}" for path in (TREE / "docs").glob("*.md")} - {*FIRST})

# The line without its remark: what its output must match, and how it is run. "fresh": only on a
# fresh machine, with the reason; "never": neither, with who runs it. "endless": ended by Ctrl-C once it said
# that. "statuses": of a good end, where not 0 alone. "before": what has to be run first. "then": what shows that
# it did its work, by its output. "apart": options but on a fresh machine, that keep it off the machine's own or
# make it short. "look": what else has to be so while it runs.
# "needs": a program that a machine may lack.
SYSTEMD = "it needs a running systemd; ./dev deb --test boots one with the same units, users and folders"
TWO = "for name in before after; do prcb record -o $name.db -- make; done"
PINS = f"/sys/fs/bpf/prcb-readme-{os.getpid()}"
KEPT = 1 << 38 | 1 << 39  # CAP_PERFMON, CAP_BPF


def started_by(pid):
    """Processes that this one started, and they: sudo has them in a session of their own."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def keeps_no_root(pid):
    """Of prcbd, whoever started it; what is wrong, or None."""
    for process in started_by(pid):
        try:
            text = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        except OSError:  # it has ended
            continue
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if status["Name"] != "prcbd":
            continue
        sets = {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
        if "0" in status["Uid"].split() or any(value & ~KEPT for value in sets.values()):
            return f"prcbd has Uid {status['Uid']} and {sets}"
        return None
    return "prcbd does not run"


COMMANDS = {
    "./dev run": (r"% of thread time \(.*\) was spent", {"apart": " 8000000"}), # bytes
    "./dev check": (None, {"never": "it runs this test"}),
    "export DEBUGINFOD_URLS=https://debuginfod.debian.net": (None, {"never": "cases-fetched, with a server of its own"}),
    "sudo --preserve-env=DEBUGINFOD_URLS prcb why 1234 --debuginfod": (None, {"never": "cases-fetched, with a server of its own"}),
    "sudo ./dev prcb stat -- make -j4": ("SWITCHES", {}),
    "sudo ./dev prcb stat -p 1234 --for 10": ("sleep", {}),
    "sudo ./dev prcb stat -a --top 10 -I 1000": ("SWITCHES", {"endless": True}),
    "sudo ./dev prcb stat -a --per-cgroup --for 10": ("CGROUP", {}),
    "sudo ./dev prcb export": ("prcb_system_thread_seconds_total", {}),
    "sudo ./dev prcb why 1234": ("stack known for", {"apart": " --for 1"}),
    "sudo ./dev prcb why -p 1234 --chain": ("wait", {}),
    "sudo ./dev prcb why -p 1234 --for 10": ("stack known for", {}),
    "sudo ./dev prcb why -p 1234 --for 10 --owners": ("stack known for", {}),
    "sudo ./dev prcb stat -a --by-whom --top 10 --for 10": ("SWITCHES", {}),
    "sudo ./dev prcb top": ("terminal", {"statuses": (1, 2)}), # there is none here, and it says so
    "sudo ./dev prcb top -b -n 3 -g cgroups --top 20": ("by cgroups", {}),
    "sudo ./dev prcb top -q -w history.db -n 5": ("", {}),
    "./dev prcb doctor": ("tier", {"statuses": (0, 1)}),
    "meson setup build-release --buildtype=release && sudo meson install -C build-release":
        ("prcb", {"fresh": "the group that runs this has built and installed a copy"}),
    "cc program.c $(pkg-config --cflags --libs libprcb)":
        (r"^the work to be measured\nran \d+ ns, was ready \d+ ns$", {"then": "./a.out"}),
    "sudo ./dev prcbd": ("serves", {
        "endless": True, "look": keeps_no_root,
        "apart": f" --socket $PWD/socket --config <(echo) --pin-directory {PINS}"}),
    'sqlite3 prcb.db "SELECT function, sum(weight) / 1e6 AS ms FROM sampled GROUP BY 1 ORDER BY 2 DESC"':
        ("[0-9]", {"before": "prcb record -F 500 -o prcb.db -- ./dev prcb --version"}),
    "export PKG_CONFIG_PATH=build/meson-uninstalled LD_LIBRARY_PATH=build/src/lib:build/src/nt/compat":
        ("", {}),
    "cc tests/nt/cpu_times.c -o cpu_times $(pkg-config --cflags --libs prcb-nt)": ("", {}),
    "(echo; sleep 1; echo) | ./cpu_times | grep viewer": ("viewer", {}),
    './dev prcb layout PROCESSOR_POWER_STATE --version "Windows 11 22H2"': ("IdleTimeTotal", {}),
    "./dev prcb layout PROCESSOR_POWER_STATE --diff 6.1 6.2": ("[+-]", {}),
    "./dev prcb dump MEMORY.DMP": ("processor", {}),
    "./dev prcb dump --modules --stack MEMORY.DMP": ("processor", {}),
    "./dev prcb dump --ndjson -J 2 fleet/minidumps/": ('^{"', {}),
    "./dev deb && sudo apt install ./build-deb/{prcb,prcb-windows,prcbd,lib*0,lib*-dev}_0.1.0-1_*.deb":
        ("Setting up prcb", {"fresh": "./dev deb --test installs the packages in a root of its own"}),
    "sudo systemctl start prcbd.socket": (None, {"never": "./dev deb --test boots a system for it"}),
    "prcb stat -- make": ("SWITCHES", {}),
    "sudo systemd-sysusers && sudo systemd-tmpfiles --create prcbd.conf": (None, {"never": SYSTEMD}),
    "sudo systemctl daemon-reload && sudo ldconfig": (None, {"never": SYSTEMD}),
    "sudo systemctl enable --now prcbd.socket": (None, {"never": SYSTEMD}),
    "sudo systemctl disable --now prcbd.socket prcbd prcb-exporter prcb-history prcb-push": (None, {"never": SYSTEMD}),
    "sudo ninja -C build-release uninstall": (None, {"never": SYSTEMD}),
    "sudo userdel prcbd; sudo userdel prcb-exporter; sudo groupdel prcb-observers; sudo rm -r /usr/local/etc/prcb":
        (None, {"never": SYSTEMD}),
    "prcb record -g -o prcb.db -- make -j4": ("", {}),
    "prcb report --html -o report.html prcb.db": ("", {"then": "grep -c '<html' report.html"}),
    "prcb serve": (r"http://\S+", {"endless": True}),
    "prcb report --diff before.db after.db": ("ready", {"before": TWO}),
    "prcb report --diff --fail-if 'ready>+10%' before.db after.db": ("ready", {"before": TWO, "statuses": (0, 3)}),
    "prcb report --diff --html -o diff.html before.db after.db": ("", {"before": TWO}),
    "meson test -C build --suite page": (None, {"never": "./dev check does"}),
    "python3 tests/page/pictures.py build/src/tools/cli/prcb docs/pictures":
        (None, {"never": "it takes pictures with a browser; the suite page opens the same pages"}),
    "prcb export | promtool check metrics": ("", {"needs": "promtool"}),
    "go tool pprof 'http://localhost:10042/debug/pprof/wait?seconds=10&cgroup=/system.slice/postgresql.service'":
        (None, {"never": "tests/exporter does, with an exporter of its own"}),
    "prcb push --to http://pyroscope:4040 --as pyroscope -a": (None, {"never": "tests/cli/test_push.py does, with a receiver"}),
    "cd /var/lib/pcp/pmdas/prcb && ./Install": (None, {"never": "tests/pmda does, in a pmcd of its own"}),
    "pminfo -f prcb.up": (None, {"never": "tests/pmda does"}),
    "pmrep :prcb-cpu": (None, {"never": "tests/pmda does"}),
    "prcb report --parquet fleet web-1.db": ("", {"before": TWO + "; cp after.db web-1.db"}),
    "prcb report --parquet fleet web-2.db": ("", {"before": TWO + "; cp after.db web-2.db", "then": "ls fleet"}),
    "python3 -m venv venv && venv/bin/pip install .": (None, {"never": "tests/install/wheel.sh does"}),
    "./dev build": (None, {"never": "this tree is built"}),
    "PYTHONPATH=build/src/python /usr/bin/python3": ("", {}),
    "sudo apt install postgresql-server-dev-all make gcc": (None, {"never": "./dev check does, where it may install"}),
    "make -C src/services/postgresql": (None, {"never": "tests/postgresql does"}),
    "sudo make -C src/services/postgresql install": (None, {"never": "tests/postgresql does"}),
    "apt install wine64 prcb-wine": (None, {"never": "./dev check does, where it may install"}),
    "prcb-wine probe.exe": (None, {"never": "tests/wine does, with programs of its own"}),
    "prcb-wine game.exe &": (None, {"never": "tests/wine does, with programs of its own"}),
    "prcb stat -p $(pgrep -f game.exe)": (None, {"never": "there is no such program"}),
    "prcb record -p $(pgrep -f game.exe) -- sleep 10": (None, {"never": "there is no such program"}),
}
INLINE = ["cc program.c $(pkg-config --cflags --libs libprcb)"]
NOT_OURS = {"docs/porting.md": ["cc program.c $(pkg-config --cflags --libs prcb-nt)",
                                "c++ program.cpp $(pkg-config --cflags --libs prcb-nt)"]} # the reader's own program

number = failures = 0


def report(good, name, output=""):
    global number, failures
    number += 1
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    if not good:
        failures += 1
        print("".join(f"# {line}\n" for line in output.splitlines()[-40:]), end="", flush=True)


def skip(name, reason):
    global number
    number += 1
    print(f"ok {number} - {name} # SKIP {reason}", flush=True)


def lines_of_pages():
    """The lines of the sh blocks, without remarks, each with its page; the pages' texts."""
    texts = {page: (TREE / page).read_text(encoding="utf-8") for page in PAGES}
    lines = {}
    for page, text in texts.items():
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
            for line in block.splitlines():
                line = re.sub(r"\s+# .*", "", line)
                if line and line not in NOT_OURS.get(page, ()):
                    lines.setdefault(line, page)
        lines.update({line: page for line in INLINE if f"`{line}`" in text})
    return lines, texts


def script(path, text):
    path.write_text("#!/bin/sh\n" + text + "\n", encoding="utf-8")
    path.chmod(0o755)


def stage(folder, texts, prcb):
    """What the lines name besides prcb: a job for make, crash dumps, the printed program."""
    program = re.search(r"^```c\n(.*?)^```$", texts["docs/measure.md"], re.M | re.S)
    (folder / "program.c").write_text(program.group(1), encoding="utf-8")
    (folder / "Makefile").write_text("all:\n\tsleep 0.2\n", encoding="utf-8")
    (folder / "fleet/minidumps").mkdir(parents=True, exist_ok=True)
    for name in "MEMORY.DMP", "fleet/minidumps/one.dmp", "fleet/minidumps/two.dmp":
        subprocess.run([sys.executable, TREE / "tests/dump/mkdump.py", "-", folder / name],
                       input="container = triage64\nversion = 10.0.19041\n", text=True, check=True,
                       env={**os.environ, "PRCB": str(prcb)})


def stage_beside(folder):
    """A folder that looks like the tree and is none, with programs that a machine may lack."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    script(folder / "dev", f'exec "{TREE}/dev" "$@"')
    for name in "tests", "build":
        (folder / name).symlink_to(TREE / name)
    (bin_folder / "prcb").symlink_to(PREFIX / "bin/prcb")
    if os.geteuid() == 0:
        script(bin_folder / "sudo", '[ "$1" != -n ] || shift\nexec "$@"')
    if not shutil.which("make"):
        script(bin_folder / "make", "exec sleep 0.2")
    if not shutil.which("sqlite3"):
        (bin_folder / "sqlite3").write_text(
            "#!/usr/bin/env python3\nimport sqlite3, sys\n"
            "for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]):\n"
            "    print(*row, sep='|')\n", encoding="utf-8")
        (bin_folder / "sqlite3").chmod(0o755)
    return {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig")}


def interrupt(process, line):
    """Ctrl-C; sudo is root's and hands it on."""
    words = ["sh", "-c", f"kill -INT -{process.pid}"]
    subprocess.run(["sudo", *words] if "sudo " in line and os.geteuid() else words, check=False)


def run(line, pattern, folder, environment, statuses, look=lambda pid: None):
    """Whether it did what it should, and its output. statuses: of a good end; none: it has no end. look: says
    of one that runs what is wrong with it."""
    log = folder / "output"
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
            ["bash", "-c", line], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        def said():
            return re.search(pattern, log.read_text(encoding="utf-8", errors="replace"), re.M)

        give_up = time.monotonic() + 900
        while process.poll() is None and time.monotonic() < give_up and (statuses or not said()):
            time.sleep(0.05)
        wrong = None
        if process.poll() is None:
            wrong = look(process.pid)
            interrupt(process, line)
        status = process.wait(timeout=60)
        text = log.read_text(encoding="utf-8", errors="replace")
        good = bool(said()) and not wrong and (not statuses or status in statuses)
        return good, f"exit status {status}\n{text}" + (f"{wrong}\n" if wrong else "")


def run_lines(lines, texts, folder, environment, pid):
    may_sudo = not subprocess.run(["sh", "-c", "sudo -n true"], env=environment, check=False,
                                  stderr=subprocess.DEVNULL).returncode
    exports = []
    for line, page in lines.items():
        pattern, how = COMMANDS.get(line, ("", {"never": "no row"}))
        name = f"{page}: {line}"
        if "never" in how or "fresh" in how and not FRESH:
            skip(name, how.get("never") or how["fresh"])
            continue
        if not shutil.which(how.get("needs", "sh")):
            skip(name, f"there is no {how['needs']}")
            continue
        if "sudo " in line and not may_sudo:
            skip(name, "sudo is not there, or asks for a password")
            continue
        if line.startswith("export "):
            exports = [line]
            continue
        words = line.replace("-p 1234", f"-p {pid}").replace("why 1234", f"why {pid}")
        if not FRESH:
            words = words.replace("--for 10", "--for 1") + how.get("apart", "")
        before = [how["before"] + " >/dev/null"] if "before" in how else []
        # An export is for the lines after it in its block.
        block = texts[page].partition(exports[0])[2].partition("```")[0] if exports else ""
        then = [how["then"] if FRESH else f"LD_LIBRARY_PATH={PREFIX}/lib {how['then']}"] if "then" in how else []
        steps = (exports if line in block else []) + before + [words] + then
        good, output = run(" && ".join(steps), pattern, folder, environment,
                           () if "endless" in how else how.get("statuses", (0,)),
                           how.get("look", lambda pid: None))
        report(good, name, output)


def main():
    lines, texts = lines_of_pages()
    said = set(lines)
    report(said == set(COMMANDS), "each command of the pages has a row here, each row its line",
           "\n".join(sorted(said ^ set(COMMANDS))))
    if ROWS:
        print(f"1..{number}")
        return 1 if failures else 0
    with tempfile.TemporaryDirectory(prefix="prcb-readme-") as temporary:
        folder = TREE if FRESH else pathlib.Path(temporary)
        environment = os.environ if FRESH else stage_beside(folder)
        stage(folder, texts, TREE / "build/src/tools/cli/prcb")
        with subprocess.Popen(["sleep", "3600"]) as sleeper:
            try:
                run_lines(lines, texts, folder, environment, sleeper.pid)
            finally:
                sleeper.kill()
                if os.path.isdir(PINS):  # prcbd may no longer remove it from root's folder
                    os.rmdir(PINS)
    print(f"1..{number}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
