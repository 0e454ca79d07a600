#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb-wine as a user meets it: Windows programs built by mingw run under the Wine that is
installed, and what they are told is compared with what Linux tells of the same threads and
processors (prcb stat, /proc). As root on the bpf tier, as nobody on the perf tier and with a prcbd
of its own; as another user on what there is.

PRCB_WINE_EXE names prcb-wine, PRCB prcb, PRCBD prcbd. Skips, with the reason, where Wine or mingw
is not installed."""
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "daemon"))
PRCB_WINE = os.environ.get("PRCB_WINE_EXE", "prcb-wine")
PRCB = os.environ.get("PRCB", "prcb")
PRCBD = os.environ.get("PRCBD", "prcbd")
ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody").pw_uid
TIMEOUT = 120
MINGW = "x86_64-w64-mingw32-gcc"
MINGW_32 = "i686-w64-mingw32-gcc"
UNKNOWN = 1 << 63  # PRCB_WAIT_REASON_UNKNOWN

SUCCESS, LENGTH, VIOLATION, CLASS = 0, 0xc0000004, 0xc0000005, 0xc0000003
NOT_SUPPORTED = 0xc00000bb


def missing():
    if not any(os.access(path, os.X_OK) for path in ("/usr/lib/wine/wine64", "/usr/bin/wine64",
                                                    os.environ.get("PRCB_WINE", "/none"))):
        return "Wine is not installed: apt install wine64"
    if not shutil.which(MINGW):
        return "mingw is not installed: apt install gcc-mingw-w64-x86-64"
    return None


class User:
    """Somebody with a prefix and a cache of his own, made once."""

    def __init__(self, uid, name, socket=None):
        self.uid = uid
        self.name = name
        self.home = tempfile.mkdtemp(prefix="prcb-wine-test-")
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": self.home, "XDG_CACHE_HOME": self.home + "/cache",
            "WINEPREFIX": self.home + "/prefix", "WINEDEBUG": "-all",
            # Nothing that opens windows; a debugger would hang where there is none to look.
            "WINEDLLOVERRIDES": "winedbg.exe,mshtml,mscoree=d",
            "PRCB_SOCKET": socket or self.home + "/no-socket"}
        if "LD_LIBRARY_PATH" in os.environ:
            self.environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        for program in PROGRAMS.iterdir():
            shutil.copy(program, self.home)
        for path in [self.home, *pathlib.Path(self.home).iterdir()]:
            os.chown(path, uid, uid if uid == os.geteuid() else pwd.getpwuid(uid).pw_gid)
        result = self.run("probe.exe", "none")
        if result.returncode != 3:
            raise RuntimeError(f"no prefix for {name}: {result.stdout}{result.stderr}")

    def command(self, *args):
        if self.uid == os.geteuid():
            return [PRCB_WINE, *args]
        return ["setpriv", f"--reuid={self.uid}", f"--regid={pwd.getpwuid(self.uid).pw_gid}",
                "--clear-groups", PRCB_WINE, *args]

    def run(self, *args, **more):
        return subprocess.run(self.command(*args), cwd=self.home, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                              env={**self.environment, **more}, check=False)

    def start(self, *args):
        return subprocess.Popen(self.command(*args), cwd=self.home, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=self.environment)

    def stop(self):
        """Wine's server and services outlive programs."""
        for server in ("/usr/lib/wine/wineserver64", "/usr/lib/wine/wineserver",
                       "/usr/bin/wineserver"):
            if os.access(server, os.X_OK):
                command = [server, "-k"]
                if self.uid != os.geteuid():
                    command = self.command()[:-1] + command
                subprocess.run(command, env=self.environment, check=False, timeout=TIMEOUT,
                               stderr=subprocess.DEVNULL)
                break
        shutil.rmtree(self.home, ignore_errors=True)


PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix="prcb-wine-probe-"))
USERS = {}


def setUpModule():
    reason = missing()
    if reason:
        raise unittest.SkipTest(reason)
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type",
             "-Wno-unused-parameter", "-D_WIN32_WINNT=0x0A00"]
    subprocess.run([MINGW, *flags, str(HERE / "probe.c"), "-o", str(PROGRAMS / "probe.exe"),
                    "-lntdll"], check=True, timeout=TIMEOUT)


def tearDownModule():
    for user in USERS.values():
        user.stop()
    shutil.rmtree(PROGRAMS, ignore_errors=True)


def lines(text):
    return {name: int(value) for name, _, value in (line.partition(" ")
                                                    for line in text.splitlines())
            if value.lstrip("-").isdigit()}


def switches_of(tid):
    status = pathlib.Path(f"/proc/{tid}/status").read_text(encoding="ascii")
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


class Stat:
    """prcb stat of one thread while the block runs, then its sums."""

    def __init__(self, tid):
        self.sums = {"switches": 0, "run_ns": 0}
        self.reasons = set()
        self.process = subprocess.Popen([PRCB, "stat", "--ndjson", "-I", "100", "-t", str(tid)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        self.take(self.process.stdout.readline())
        return self

    def take(self, line):
        record = json.loads(line)
        self.tier = record["tier"]
        for thread in record["threads"]:
            for name in self.sums:
                self.sums[name] += thread[name]
            self.reasons |= {wait["number"] for wait in thread["waits"] or ()}

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        for line in self.process.communicate(timeout=TIMEOUT)[0].splitlines():
            self.take(line)


class Programs:
    """The same for each user."""
    tier = None

    @classmethod
    def setUpClass(cls):
        cls.user = cls.make()

    @staticmethod
    def make():
        raise NotImplementedError

    def probe(self, *args):
        result = self.user.run("probe.exe", *args)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return lines(result.stdout)

    def test_threads_are_counted_as_linux_counts_them(self):
        process = self.user.start("probe.exe", "profile")
        self.addCleanup(process.communicate, timeout=TIMEOUT)
        told = lines("".join(process.stdout.readline() for _ in range(3)))
        self.assertEqual((told["enable"], told["enabled"]), (0, 1))
        with Stat(told["tid"]) as stat:
            before = switches_of(told["tid"])
            process.stdin.write("go\n")
            process.stdin.flush()
            told |= lines("".join(process.stdout.readline() for _ in range(3)))
            after = switches_of(told["tid"])
        process.stdin.write("end\n")
        process.stdin.flush()
        told |= lines(process.stdout.read())
        # Fifty sleeps at least; Linux' counts have besides those of its waits for the line and of
        # what it printed, each some exchanges with Wine's server.
        self.assertGreaterEqual(told["switches"], 50)
        for name, counted in (("/proc", after - before), ("prcb stat", stat.sums["switches"])):
            self.assertLessEqual(told["switches"], counted, name)
            self.assertLess(counted - told["switches"], 60, name)
        # At the least it spun for most of 200 ms of one processor; what it ran is prcb stat's too.
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            known = "tsc" in file.read()
        if known and stat.tier != "perf":
            rate = self.rate()
            self.assertLess(abs(told["cycles"] / rate - stat.sums["run_ns"] / 1e9), 0.05)
        if self.tier == "perf":
            self.assertEqual(told["reasons"], UNKNOWN)
        else:
            reasons = {bit for bit in range(63) if told["reasons"] >> bit & 1}
            self.assertTrue(reasons)
            if stat.tier != "perf":
                self.assertLessEqual(reasons, stat.reasons | {30, 31, 32, 33, 38})
        self.assertEqual((told["disable"], told["twice"], told["bad"], told["pointer"]),
                         (0, 6, 87, 998))

    def rate(self):
        """Cycles of the time-stamp counter in a second, by a spinning thread of prcb's own."""
        result = subprocess.run([PRCB, "stat", "-j", "--", sys.executable, "-I", "-S", "-c",
                                 "import time\nend=time.monotonic()+0.3\n"
                                 "while time.monotonic()<end: pass"], stdout=subprocess.PIPE,
                                check=True, timeout=TIMEOUT)
        total = json.loads(result.stdout)["total"]
        return total["tsc_cycles"] / (total["run_ns"] / 1e9)

    def test_software_events_count(self):
        told = self.probe("counters")
        if told["configured"] == NOT_SUPPORTED:
            self.skipTest("events may not be counted by this user: kernel.perf_event_paranoid")
        self.assertEqual((told["configured"], told["enable"], told["counters"]), (0, 0, 1))
        self.assertLessEqual(400, told["faults"])
        self.assertLess(told["faults"], 600)

    def test_threads_are_found_by_windows_numbers(self):
        told = self.probe("threads")
        tids = [told[name] for name in ("own", "first", "second")]
        self.assertEqual(len(set(tids)), 3)
        self.assertNotIn(0, tids)
        self.assertEqual((told["nobody"], told["ended"]), (0, 0))
        self.assertEqual((told["first_enabled"], told["second_enabled"]), (0, 1))
        self.assertEqual((told["another"], told["no_handle"]), (87, 6))
        self.assertEqual((told["cycles_told"], told["process_told"]), (1, 1))
        self.assertGreater(told["cycles"], 1000000)
        self.assertGreater(told["process"], told["cycles"])

    def test_ends_of_threads_hold_no_lock(self):
        self.assertEqual(self.probe("ends")["stopped"], 200)

    def test_classes(self):
        told = self.probe("classes")
        for name in ("native_2a", "native_8d", "native_0", "class_2a", "class_53", "class_6c",
                     "class_8d", "class_0", "direct_17",
                     "direct_17_length", "power", "thread_basic", "thread_cycles", "idle_short"):
            self.assertEqual(told[name], SUCCESS, name)
        self.assertEqual(told["class_8_odd"], LENGTH)
        self.assertEqual(told["class_8_pointer"], VIOLATION)
        self.assertEqual(told["class_none"], CLASS)
        self.assertEqual(told["random"], 1)
        self.assertEqual((told["idle_cycles"], told["idle_length"]), (1, 8 * told["processors"]))
        self.assertEqual(told["idle_error"], 122)
        self.assertGreater(told["current_mhz"], 0)
        self.assertGreaterEqual(told["max_mhz"], told["current_mhz"] // 2)

    def test_processor_times_are_linux_times(self):
        """A second of load: all time passes, and what it is of agrees with /proc/stat."""
        process = self.user.start("probe.exe", "processors")
        self.addCleanup(process.communicate, timeout=TIMEOUT)

        def moment(ask=True):
            """What it says, and Linux' times before and after: it may be slow to say it."""
            before = jiffies(), time.monotonic()
            if ask:
                process.stdin.write("\n")
                process.stdin.flush()
            text = []
            while not text or text[-1] != "done\n":
                text.append(process.stdout.readline())
                self.assertTrue(text[-1], "it ended")
            return lines("".join(text)), before, (jiffies(), time.monotonic())

        moment(ask=False)
        first, *around_first = moment()
        load = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1M"],
                                stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
        finally:
            load.kill()
            load.wait()
        second, *around_second = moment()
        processors = first["processors"]
        self.assertEqual(processors, len(os.sched_getaffinity(1 if ROOT else 0)))
        passed = {name: (second[name] - first[name]) / 1e7 for name in
                  ("idle", "kernel", "user", "dpc", "interrupt", "system_idle", "system_kernel",
                   "system_user")}
        least, most = (processors * (around_second[i][1] - around_first[1 - i][1]) for i in (0, 1))
        for kind in "", "system_":
            self.assertGreater(passed[kind + "kernel"] + passed[kind + "user"], 0.9 * least)
            self.assertLess(passed[kind + "kernel"] + passed[kind + "user"], 1.1 * most)
        wall = passed["kernel"] + passed["user"]
        for name in "user", "idle":
            least, most = (around_second[i][0][name] - around_first[1 - i][0][name] for i in (0, 1))
            self.assertGreater(passed[name], least - 0.15 * wall)
            self.assertLess(passed[name], most + 0.15 * wall)
        self.assertLess(abs(passed["system_idle"] - passed["idle"]), 0.05 * wall)
        if self.tier != "perf":
            # exact there; Wine's own are 0 for good
            self.assertGreater(passed["dpc"], 0)
            self.assertGreater(passed["interrupt"], 0)
        self.assertGreater(second["interrupts"], first["interrupts"])


def jiffies():
    with open("/proc/stat", encoding="ascii") as file:
        values = [int(value) / os.sysconf("SC_CLK_TCK") for value in file.readline().split()[1:]]
    return {"user": values[0] + values[1], "idle": values[3] + values[4]}


def user(name, uid, socket=None):
    if name not in USERS:
        USERS[name] = User(uid, name, socket)
    return USERS[name]


def bpf_reason():
    result = subprocess.run([PRCB, "stat", "--tier", "bpf", "-o", os.devnull, "--", "true"],
                            stderr=subprocess.PIPE, text=True, check=False)
    return None if result.returncode == 0 else result.stderr.strip()


class Own(Programs, unittest.TestCase):
    """Whoever runs the tests: root, on the bpf tier where it can be had."""

    @classmethod
    def make(cls):
        cls.tier = "perf" if bpf_reason() else "bpf"
        return user("own", os.geteuid())


@unittest.skipUnless(ROOT, "needs root: it becomes nobody")
class Nobody(Programs, unittest.TestCase):
    tier = "perf"

    @classmethod
    def make(cls):
        return user("nobody", NOBODY)


@unittest.skipUnless(ROOT, "needs root: it starts prcbd")
class NobodyWithDaemon(Programs, unittest.TestCase):
    tier = "daemon"

    @classmethod
    def make(cls):
        import case  # pylint: disable=import-outside-toplevel
        import wire  # pylint: disable=import-outside-toplevel
        reason = case.needs()
        if reason:
            raise unittest.SkipTest(reason)
        cls.daemon = wire.Daemon(PRCBD, "processors = all\n")
        cls.addClassCleanup(cls.daemon.stop)
        nobody = user("nobody", NOBODY)
        nobody.environment["PRCB_SOCKET"] = cls.daemon.socket
        return nobody

    @classmethod
    def tearDownClass(cls):
        cls.user.environment["PRCB_SOCKET"] = cls.user.home + "/no-socket"


class Command(unittest.TestCase):
    """The command itself: status, farms, what it refuses."""

    @classmethod
    def setUpClass(cls):
        cls.user = user("own", os.geteuid())

    def test_status_and_arguments_are_the_programs(self):
        result = self.user.run("probe.exe", "none", "with spaces")
        self.assertEqual((result.returncode, result.stdout), (3, "arguments 3 with spaces\n"))

    def test_help_and_version(self):
        self.assertIn("usage: prcb-wine", self.user.run("--help").stdout)
        self.assertRegex(self.user.run("--version").stdout, r"^prcb-wine \d")
        self.assertEqual(self.user.run().returncode, 125)
        self.assertEqual(self.user.run("--nonsense").returncode, 125)

    def farms(self):
        return sorted(os.listdir(self.user.home + "/cache/prcb-wine"))

    def test_farm_is_made_once_and_anew(self):
        loader = self.user.run("--farm").stdout.strip()
        self.assertTrue(os.access(loader, os.X_OK))
        self.assertEqual(len(self.farms()), 1)
        made = os.stat(loader).st_mtime_ns
        self.assertEqual(self.user.run("--farm").stdout.strip(), loader)
        self.assertEqual(os.stat(loader).st_mtime_ns, made)
        self.user.run("--rebuild", "--farm")
        self.assertNotEqual(os.stat(loader).st_mtime_ns, made)
        self.assertEqual(len(self.farms()), 1)

    def test_two_at_once_make_one(self):
        cache = {"XDG_CACHE_HOME": self.user.home + "/at-once"}
        both = [subprocess.Popen(self.user.command("--farm"), stdout=subprocess.PIPE, text=True,
                                 env={**self.user.environment, **cache}) for _ in range(4)]
        told = {process.communicate(timeout=TIMEOUT)[0] for process in both}
        self.assertEqual({process.returncode for process in both}, {0})
        self.assertEqual(len(told), 1)
        self.assertEqual(len(os.listdir(cache["XDG_CACHE_HOME"] + "/prcb-wine")), 1)
        self.assertEqual(self.user.run("--clean", **cache).returncode, 0)
        self.assertFalse(os.path.exists(cache["XDG_CACHE_HOME"] + "/prcb-wine"))

    def refused(self, words, *args, **more):
        result = self.user.run(*(args or ("probe.exe",)), **more)
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertRegex(result.stderr, words)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_caches_that_others_can_write_to_are_refused(self):
        cache = self.user.home + "/open"
        os.makedirs(cache + "/prcb-wine")
        os.chmod(cache + "/prcb-wine", 0o777)
        self.refused("no other user may write", XDG_CACHE_HOME=cache)
        os.rmdir(cache + "/prcb-wine")
        os.symlink("/tmp", cache + "/prcb-wine")
        self.refused("must be a directory", XDG_CACHE_HOME=cache)
        self.refused("XDG_CACHE_HOME says where", XDG_CACHE_HOME="/proc/none")

    def odd_wine(self, **files):
        """A Wine of few files: the loader is any program."""
        root = tempfile.mkdtemp(dir=self.user.home)
        for place, content in {"bin/wine64": None, **files}.items():
            path = pathlib.Path(root, place)
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                shutil.copy("/bin/true", path)
            else:
                path.write_bytes(content)
        return root + "/bin/wine64"

    def test_odd_wines_are_refused(self):
        self.refused("not a 64-bit program", PRCB_WINE="/etc/passwd")
        self.refused("No such file", PRCB_WINE="/none/wine64")
        self.refused("x86_64-unix/ntdll.so", PRCB_WINE=self.odd_wine())
        modules = {"lib/wine/x86_64-unix/ntdll.so": b"", "lib/wine/x86_64-windows/ntdll.dll": b"MZ"}
        self.refused("kernel32.dll is missing", PRCB_WINE=self.odd_wine(**modules))
        modules |= {f"lib/wine/x86_64-windows/{name}": b"MZ" + bytes(200)
                    for name in ("kernel32.dll", "kernelbase.dll")}
        self.refused("not a 64-bit Windows module, or a damaged one",
                     PRCB_WINE=self.odd_wine(**modules))
        self.assertEqual(len(self.farms()), 1, "what failed leaves nothing")

    @unittest.skipUnless(shutil.which(MINGW_32), f"{MINGW_32} is not installed")
    def test_32_bit_programs_are_refused_by_name(self):
        source = pathlib.Path(self.user.home, "narrow.c")
        source.write_text("int main(void) { return 0; }\n", encoding="ascii")
        subprocess.run([MINGW_32, str(source), "-o", self.user.home + "/narrow.exe"], check=True,
                       timeout=TIMEOUT)
        result = self.user.run("narrow.exe")
        self.assertEqual(result.returncode, 126)
        self.assertIn("narrow.exe is a 32-bit program", result.stderr)

    def test_a_prefix_of_plain_wine_is_prepared(self):
        """And the DLL that is put into it is put back when it is gone."""
        dll = pathlib.Path(self.user.environment["WINEPREFIX"],
                           "drive_c/windows/system32/prcb-nt.dll")
        self.assertTrue(dll.exists())
        dll.unlink()
        self.assertEqual(self.user.run("probe.exe", "none").returncode, 3)
        self.assertTrue(dll.exists())

    def test_builtin_programs_run(self):
        result = self.user.run("cmd.exe", "/c", "echo here")
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "here"))


if __name__ == "__main__":
    unittest.main()
