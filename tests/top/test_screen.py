#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`prcb top` on terminals: keys, mouse and sizes in tmux, every byte that it writes by pyte on a pty.

Screens are polled until they show what they must, with a deadline; nothing is waited for by time.
Replays are of the made-up machine of test_top.c; one case is live.
"""
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

try:
    import pyte
except ImportError:
    pyte = None

PRCB, MAKER = os.environ["PRCB"], os.environ["TOP_MAKER"]
SLOW = 4 if os.environ.get("SANITIZED") == "1" else 1
DEADLINE = 30 * SLOW
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SHELL": "/bin/sh", "LANG": "C.UTF-8", "TZ": "UTC0",
               **{key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")}}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "machine.db"
        subprocess.run([MAKER, "--write", str(self.file)], check=True, timeout=60, env=ENVIRONMENT)


def poll(look, what):
    """The first true answer of look()."""
    end, pause = time.monotonic() + DEADLINE, 0.01
    while time.monotonic() < end:
        answer = look()
        if answer:
            return answer
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2) # a look starts a process: what takes seconds is looked at less often
    raise AssertionError(what() if callable(what) else what)


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Tmux(Case):
    def tmux(self, *arguments, **options):
        return subprocess.run(["tmux", "-S", str(self.folder / "socket"), "-f", "/dev/null", *arguments],
                              capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False, **options)

    def start(self, *arguments, width=100, height=30, term="tmux-256color"):
        words = " ".join(f"'{word}'" for word in (PRCB, "top", *arguments))
        result = self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(self.folder),
                           f"TERM={term} {words}; echo left $?; exec cat")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.addCleanup(self.tmux, "kill-server")

    def screen(self):
        return self.tmux("capture-pane", "-p").stdout

    def see(self, pattern):
        seen = [""]

        def look():
            seen[0] = self.screen()
            return re.search(pattern, seen[0], re.M)
        return poll(look, lambda: f"{pattern!r} is not on the screen:\n{seen[0]}")

    def see_not(self, pattern):
        poll(lambda: not re.search(pattern, self.screen(), re.M), f"{pattern!r} stays on the screen")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def mouse(self, button, column, row):
        """A button pressed and let go there, from 1, as SGR bytes."""
        for end in "Mm":
            self.tmux("send-keys", "-l", f"\033[<{button};{column};{row}{end}")

    def place(self, text):
        """Column and row of a text, from 1."""
        lines = self.screen().split("\n")
        for row, line in enumerate(lines, 1):
            if text in line:
                return line.index(text) + 1, row
        raise AssertionError(f"{text} is not on the screen")

    def test_keys(self):
        self.start("-r", str(self.file))
        self.see(r"FILE .*10 threads")
        self.see(r"^F1Help")
        self.keys("g")
        self.see(r"^by processes")
        self.see(r"2210 postgres .* postgres: checkpointer")
        self.keys("g", "g", "g")
        self.see(r"^CAUSE .*MEANING")
        self.keys("F5")
        self.see(r"^by processes, tree")
        self.see(r"^ +3312   worker-7")
        self.keys("F5")
        self.see(r"worker-7 +futex")
        self.keys("\\")
        self.see(r"^filter:")
        self.keys("-l", "ready>15 run>50")
        self.keys("Enter")
        self.see_not("zstd")
        self.see("worker-5")
        self.keys("Escape")
        self.see("zstd")
        self.keys("F1")
        self.see(r"F10 q Ctrl-C +leave prcb top")
        self.keys("Escape")
        self.see("zstd")
        self.keys(":")
        self.keys("-l", "sort-ru")
        self.keys("Tab", "Enter")
        self.see(r"(?s)%WAIT.*?\n +4711 +4711 zstd")
        self.keys("q")
        self.see(r"^left 0")

    def test_time(self):
        self.start("-r", str(self.file))
        self.see("22:13:21 +FILE")
        self.keys("t")
        self.see("22:13:22 +FILE")
        self.keys("T")
        self.see("22:13:21 +FILE")
        self.keys("T")
        self.see("the history begins here")
        self.keys("b")
        self.keys("-l", "22:13:40")
        self.keys("Enter")
        self.see("22:13:40 +FILE")
        self.keys("J")
        self.keys("-l", "10s")
        self.keys("Enter")
        self.see("22:13:30 +FILE")
        self.keys("L")
        self.see("22:14:00 +FILE")

    def test_panes(self):
        self.start("-r", str(self.file))
        self.see("zstd")
        self.keys("/")
        self.keys("-l", "worker-7")
        self.keys("Enter", "Enter")
        self.see(r"^worker-7 \(3340\) of process 3312  /usr/bin/api-server")
        self.see(r"WHY \(of ")
        self.see("not in this recording")
        self.keys("z")
        self.see_not("THE LAST MINUTE")
        self.keys("Escape")
        self.see("THE LAST MINUTE")

    def test_mouse(self):
        self.start("-r", str(self.file), term="xterm-256color")
        self.see("zstd")
        self.mouse(0, *self.place("%RUN"))
        self.see(r"(?s)%WAIT.*?\n +4711 +4711 zstd")
        self.mouse(0, *self.place("%RUN"))  # again: inverted
        self.see(r"(?s)%WAIT.*?\n +5000 +5000")
        self.mouse(0, *self.place("F8Idle"))
        self.see("worker-6")
        place = self.place("worker-6")

        def opened():
            """By two clicks, which are not a double one where they come too far apart: then by two more."""
            if re.search(r"(?m)^worker-6 \(3339\)", self.screen()):
                return True
            for _ in range(2):
                self.mouse(0, *place)
            time.sleep(0.2) # to show it
            return False
        poll(opened, self.screen)

    def test_sizes(self):
        self.start("-r", str(self.file))
        self.see("zstd")
        for width, height in ((40, 10), (200, 60), (80, 24), (39, 9), (120, 40)):
            self.tmux("resize-window", "-x", str(width), "-y", str(height))
            if (width, height) == (39, 9):
                self.see("prcb top needs 40x10")
            else:
                self.see(r"FILE.*10 threads")
                poll(lambda w=width, h=height: "F1Help" in self.screen().split("\n")[h - 1] and
                     max(map(len, self.screen().split("\n"))) <= w, f"{width}x{height}:\n{self.screen()}")
        self.keys("q")
        self.see(r"^left 0")

    def test_stopped_and_continued(self):
        result = self.tmux("new-session", "-d", "-x", "100", "-y", "30", "PS1='shell> ' bash --norc --noprofile -i")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.addCleanup(self.tmux, "kill-server")
        self.see("shell>")
        self.keys("-l", f"'{PRCB}' top -r '{self.file}'")
        self.keys("Enter")
        self.see("zstd")
        self.keys("C-z")
        self.see("Stopped")
        self.keys("-l", "fg")
        self.keys("Enter")
        self.see("zstd")
        self.keys("g")
        self.see("by processes")
        self.keys("q")
        self.see_not("zstd")

    def test_live_beside_stat(self):
        """A thread that sleeps nine tenths of its time, in top and in the account of the same seconds."""
        sleeper = subprocess.Popen([sys.executable, "-c", """
import time
while True:
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    time.sleep(0.09)
"""])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.start("-p", str(sleeper.pid), "-d", "2", "-K")
        self.see(rf"{sleeper.pid} +python3? ")
        shown, last = [], [None]

        def wait_shares():
            match = re.search(rf"{sleeper.pid} +{sleeper.pid} python\S* .*? (\d+\.\d) +(\d+\.\d) +(\d+\.\d)", self.screen())
            if match:
                shares = tuple(map(float, match.groups()))
                # Twice the same: tmux may have read half of a row.
                if shares == last[0] and (not shown or shown[-1] != shares):
                    shown.append(shares)
                last[0] = shares
            return len(shown) >= 4
        stat = subprocess.Popen([PRCB, "stat", "-j", "-p", str(sleeper.pid), "--for", "6"],
                                stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        poll(wait_shares, lambda: f"no four intervals: {shown}\n{self.screen()}")
        report = json.loads(stat.communicate(timeout=60)[0])
        thread = next(row for row in report["threads"] if row["tid"] == sleeper.pid)
        for run, ready, wait in shown:
            self.assertAlmostEqual(run + ready + wait, 100, delta=0.05)
        # The same thread in overlapping seconds: run is its own clock's in both, so it differs by as
        # much as the machine's load moved the length of its rounds.
        mine = [shares[0] for shares in shown]
        exact = 100 * thread["run_ns"] / thread["wall_ns"]
        self.assertLess(min(mine) - 3, exact)
        self.assertGreater(max(mine) + 3, exact)
        if thread.get("waits"):
            self.see(rf"{sleeper.pid} +{sleeper.pid} python\S* +(sleep|run|ready)")


    def test_files_written(self):
        """w writes what was seen since the start, e the row that is open; neither replaces a file."""
        self.start("-p", str(os.getpid()), "-i", "-d", "0.2", width=120)
        self.see(rf"LIVE(.|\n)*{os.getpid()}")
        self.keys("w")
        self.see(r"written: prcb-top-\S+\.db and prcb-top-\S+\.txt")
        self.keys("e")
        self.see("open the row first")
        self.keys("Enter")
        self.see("WHY")
        self.keys("e")
        self.see(r"written: prcb-top-\S+\.row\.txt")
        history, = self.folder.glob("prcb-top-*.db")
        screen, = (path for path in self.folder.glob("prcb-top-*.txt") if ".row." not in path.name)
        row, = self.folder.glob("prcb-top-*.row.txt")
        self.assertRegex(screen.read_text(), rf"(?s)prcb top .*{os.getpid()}")
        self.assertRegex(row.read_text(), r"(?s)WHY .*THE LAST MINUTE")
        for path in (history, screen, row):
            self.assertEqual(path.stat().st_mode & 0o777 & ~0o644, 0)
        replay = subprocess.run([PRCB, "top", "-b", "-i", "-r", str(history)], capture_output=True, text=True,
                                timeout=60, env=ENVIRONMENT, check=False)
        self.assertIn(str(os.getpid()), replay.stdout)

    def test_a_deadlock_is_not_sleep(self):
        """A mutex that its own thread has: shown with its word; the thread that joins it is not. Nor are sleepers,
        however long the walk over them takes before it comes to that thread."""
        source = self.folder / "dead.c"
        source.write_text("""#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *hold(void *ctx) { pthread_setname_np(pthread_self(), "dead");
    pthread_mutex_lock(&lock); pthread_mutex_lock(&lock); return ctx; }
static void *sleep_on(void *ctx) { for (;;) pause(); }
int main(int argc, char **argv) {
    pthread_attr_t small; pthread_t t;
    pthread_attr_init(&small); pthread_attr_setstacksize(&small, 65536);
    for (int i = atoi(argv[1]); i; i--) if (pthread_create(&t, &small, sleep_on, 0)) return 77;
    pthread_create(&t, 0, hold, 0); return pthread_join(t, 0); }
""")
        program = self.folder / "dead"
        subprocess.run(["cc", "-g", "-pthread", "-o", program, source], check=True, timeout=60)
        for sleepers in 0, 12000:
            with self.subTest(sleepers=sleepers):
                held = subprocess.Popen([program, str(sleepers)])
                self.addCleanup(held.wait)
                self.addCleanup(held.kill)
                tasks = pathlib.Path(f"/proc/{held.pid}/task")
                poll(lambda: held.poll() is not None or len(os.listdir(tasks)) == sleepers + 2, "its threads")
                if held.poll() == 77:
                    self.skipTest(f"{sleepers} threads may not be created")
                self.start("-p", str(held.pid), "-d", "0.2", width=120)
                self.see(rf"LIVE +{sleepers + 2} threads")
                if "perf tier" in self.screen():
                    self.skipTest("no stacks on the perf tier")
                self.see(rf"^ +{held.pid} +\d+ dead +futex .* mutex")
                self.assertNotRegex(self.screen(), rf"(?m)^ +{held.pid} +{held.pid} dead")
                self.tmux("kill-server")
                held.kill()

    def test_critical_path(self):
        """Two readers of pipes, whom a third thread answers when it has slept: that is on their path, with its functions."""
        asked = subprocess.Popen([sys.executable, "-c", """
import ctypes, os, threading, time
name = ctypes.CDLL(None).prctl
pairs = [(os.pipe(), os.pipe()) for _ in range(2)]
def fetch_rates():
    time.sleep(0.05)
def render():
    name(15, b"the-renderer", 0, 0, 0)
    print(threading.get_native_id(), flush=True)
    while True:
        fetch_rates()
        for asked, answered in pairs:
            os.read(asked[0], 1)
            os.write(answered[1], b"x")
def handle(asked, answered):
    name(15, b"the-handler", 0, 0, 0)
    while True:
        os.write(asked[1], b"x")
        os.read(answered[0], 1)
threading.Thread(target=render).start()
for pair in pairs:
    threading.Thread(target=handle, args=pair).start()
"""], stdout=subprocess.PIPE, text=True)
        self.addCleanup(asked.stdout.close)
        self.addCleanup(asked.wait)
        self.addCleanup(asked.kill)
        renderer = int(asked.stdout.readline())
        self.start("-p", str(asked.pid), "-d", "0.3", "-i", "--by-whom", width=200)
        self.see(r"the-handler|perf tier")
        if "perf tier" in self.screen():
            self.skipTest("no wakers on the perf tier")
        self.keys("/")
        self.keys("-l", "the-handler")
        self.keys("Enter", "Enter")
        self.see(rf"CRITICAL PATH \(what waits lead to\)\s+(\S.*)?[89]\d% the-renderer \({renderer}\) in sleep")
        self.keys("Tab", "Tab", "Tab", "Enter")
        self.see(rf"^the-renderer \({renderer}\)")

    def test_by_whom_of_a_cgroup(self):
        """Its ready time is by the cgroups that had the processor."""
        with open("/proc/mounts", encoding="ascii") as file:
            mount = next((words[1] for words in map(str.split, file) if words[2] == "cgroup2"), None)
        if not mount or os.geteuid():
            self.skipTest("no cgroup2 is mounted, or this is not root")
        base = f"/prcb-top-{os.getpid()}"
        for folder in (base, base + "/victim", base + "/other"):
            try:
                os.mkdir(mount + folder)
            except OSError as error:
                self.skipTest(f"no cgroup can be made here: {error}")
            self.addCleanup(os.rmdir, mount + folder)

        def hog(folder, nice):
            def become():
                pathlib.Path(f"{mount}{folder}/cgroup.procs").write_text("0")
                os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
                os.nice(nice)
            process = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=become)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        hog(base + "/victim", 5)
        hog(base + "/other", 0)
        self.start("--cgroup", mount + base, "-g", "cgroups", "-d", "0.3", "--by-whom", "--sort", "ready", width=160)
        self.see(rf"{base}/victim|perf tier")
        if "perf tier" in self.screen():
            self.skipTest("no wakers on the perf tier")
        self.keys("/")
        self.keys("-l", "victim")
        self.keys("Enter", "Enter")
        self.see(rf"BY WHOM \(ready.*(.|\n)*{base}/other")

    def test_by_whom(self):
        """A reader of a pipe, whom its child wakes up: Enter goes from one to the other."""
        pair = subprocess.Popen([sys.executable, "-c", """
import os, time
r, w = os.pipe()
if not os.fork():
    open("/proc/self/comm", "w").write("the-writer")
    while os.getppid() > 1:
        os.write(w, b"x")
        time.sleep(0.01)
    os._exit(0)
while True:
    os.read(r, 1)
"""])
        self.addCleanup(pair.wait)
        self.addCleanup(pair.kill)
        children = pathlib.Path(f"/proc/{pair.pid}/task/{pair.pid}/children")
        writer = poll(lambda: children.read_text().split(), "no child")[0]
        # With a key, which is the option from then on, and keeps what was chosen.
        self.start("-p", f"{pair.pid},{writer}", "-d", "0.3", "--sort", "wait", width=140)
        self.see(rf"{pair.pid} +{pair.pid} python\S* ")
        self.keys("E")
        self.see(r"by whom is recorded from here on|records no wakers")
        self.see(rf"{pair.pid} +{pair.pid} python\S* ")
        self.keys("E")
        self.see(r"by whom is recorded already|records no wakers")
        self.keys("/")
        self.keys("-l", str(pair.pid))
        self.keys("Enter", "Enter")
        self.see(rf"^python\S* \({pair.pid}\)")
        self.see(r"BY WHOM(.|\n)*(the-writer|records no wakers)")
        if "records no wakers" in self.screen():
            self.skipTest("by whom is not kept here: only the bpf tier does")
        self.see(r"BY WHOM \(pipe, known for (9\d|100)")
        self.keys("Tab", "Enter")
        self.see(rf"^the-writer \({writer}\)")


class Terminal:
    """A program on a pty of its own; everything that it wrote, and the screen that this gives."""

    def __init__(self, arguments, width=100, height=30, **environment):
        go = os.pipe()
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.close(go[1])
            os.read(go[0], 1)  # its end, once the terminal is as it shall find it
            signal.signal(signal.SIGHUP, signal.SIG_DFL) # nohup's children ignore it
            os.execvpe(arguments[0], arguments, {**ENVIRONMENT, "TERM": "xterm-256color", **environment})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.before = termios.tcgetattr(self.fd)
        for end in go:
            os.close(end)
        self.bytes = b""
        self.screen = pyte.Screen(width, height)
        self.stream = pyte.ByteStream(self.screen)
        self.status = None

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.bytes += data
            self.stream.feed(data)
        return True

    def see(self, text):
        poll(lambda: self.read() and any(text in line for line in self.screen.display),
             lambda: f"{text!r} is not on the screen:\n" + "\n".join(self.screen.display))

    def end(self):
        """Its wait status, after all that it wrote."""
        def ended():
            self.read()
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.status = status if pid else None
            return self.status is not None
        poll(ended, lambda: "it does not end:\n" + "\n".join(self.screen.display))
        self.read()
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@unittest.skipUnless(pyte, "python3-pyte is not installed")
class Pty(Case):
    def start(self, *arguments, **options):
        terminal = Terminal([PRCB, "top", "-r", str(self.file), *arguments], **options)
        self.addCleanup(terminal.close)
        return terminal

    def restored(self, terminal):
        self.assertIn(b"\033[?1049h", terminal.bytes)
        self.assertGreater(terminal.bytes.rindex(b"\033[?1049l"), terminal.bytes.rindex(b"\033[?1049h"))
        self.assertGreater(terminal.bytes.rindex(b"\033[?25h"), terminal.bytes.rindex(b"\033[?25l"))

    def test_no_byte_of_a_name_is_obeyed(self):
        terminal = self.start("-g", "processes", "-i", width=200, height=60)
        terminal.see("zstd -T1 /backup/da?")
        for key in b"ggggg\r\x1b":
            os.write(terminal.fd, bytes([key]))
        terminal.see("zstd")
        os.write(terminal.fd, b"q")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"\033]52", terminal.bytes)
        self.assertNotIn(b"\a", terminal.bytes)
        text = re.sub(rb"\033(\[[0-9;?<>]*[A-Za-z]|[()][0-9A-B]|[=>78M])", b"", terminal.bytes)
        self.assertEqual(set(byte for byte in text if byte < 32) - set(b"\r\n\b"), set())

    def test_no_color(self):
        terminal = self.start(NO_COLOR="1")
        terminal.see("zstd")
        os.write(terminal.fd, b"q")
        terminal.end()
        for parameters in re.findall(rb"\033\[([0-9;]*)m", terminal.bytes):
            for number in parameters.split(b";"):
                self.assertFalse(number and (30 <= int(number) < 50 and int(number) not in (39, 49) or
                                             int(number) >= 90), parameters)
        coloured = self.start()
        coloured.see("zstd")
        self.assertRegex(coloured.bytes, rb"\033\[[0-9;]*3[0-7]")

    def test_ascii(self):
        terminal = self.start("-U", "-i")
        terminal.see("caf? ??")
        os.write(terminal.fd, b"q")
        terminal.end()
        self.assertLess(max(terminal.bytes), 128)

    def test_every_way_out_restores(self):
        for way in ("q", "\x03", signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(way=way):
                terminal = self.start()
                terminal.see("zstd")
                if isinstance(way, str):
                    os.write(terminal.fd, way.encode())
                else:
                    os.kill(terminal.pid, way)
                status = terminal.end()
                self.restored(terminal)
                if way in (signal.SIGSEGV, signal.SIGABRT) and os.environ.get("SANITIZED") != "1":
                    self.assertEqual(os.WTERMSIG(status), way)
                try:
                    self.assertEqual(termios.tcgetattr(terminal.fd)[3], terminal.before[3])
                except termios.error:
                    pass  # the other end is closed: nobody is left to mind

    def test_ten_thousand_keys(self):
        chance = random.Random(20231114)
        keys = [bytes([code]) for code in range(1, 127) if bytes([code]) not in (b"q", b"\x03", b"\x1a", b"w", b"e", b"\x1c",
                                                                                 b"\x13", b"\x11", b":")]
        keys += [b"\033[A", b"\033[B", b"\033[5~", b"\033[6~", b"\033OP", b"\033[15~", b"\033[18~", b"\033[19~",
                 b"\033[<0;5;5M", b"\033[<0;40;7M", b"\033[<64;5;9M", b"\033[<0;300;300M", b"\033[<", b"\xff", b"\xc3\xa9"]
        terminal = self.start(width=90, height=25)
        terminal.see("zstd")
        for i in range(10000 // (1 if SLOW == 1 else 2)):
            os.write(terminal.fd, chance.choice(keys))
            if i % 50 == 0:
                self.assertTrue(terminal.read(), "it has ended")
                fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ,
                            struct.pack("HHHH", chance.randrange(1, 60), chance.randrange(1, 160), 0, 0))
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 90, 0, 0))
        poll(lambda: terminal.read() and not select.select([terminal.fd], [], [], 0.2)[0], "it does not settle")
        for _ in range(3):
            os.write(terminal.fd, b"\x1b")
            poll(lambda: terminal.read() and not select.select([terminal.fd], [], [], 0.2)[0], "it does not settle")
        os.write(terminal.fd, b"q")
        self.assertEqual(terminal.end(), 0, terminal.bytes[-3000:])
        self.restored(terminal)


class Batch(Case):
    def run_top(self, *arguments, **environment):
        return subprocess.run([PRCB, "top", *arguments], capture_output=True, text=True, timeout=60 * SLOW,
                              env={**ENVIRONMENT, "COLUMNS": "100", **environment}, check=False)

    def test_replay(self):
        result = self.run_top("-b", "-r", str(self.file))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("prcb top "), 40)
        self.assertRegex(result.stdout, r"(?m)^ +4711 +4711 zstd +run")
        self.assertNotRegex(result.stdout, r"[\x00-\x09\x0b-\x1f]")

    def test_count_top_and_group(self):
        result = self.run_top("-b", "-n", "2", "--top", "1", "-g", "causes", "-r", str(self.file))
        self.assertEqual(result.stdout.count("prcb top "), 2)
        self.assertRegex(result.stdout, r"(?m)^disk ")
        self.assertRegex(result.stdout, r" \.\.\. \d+ more")

    def test_without_a_terminal(self):
        result = self.run_top("-r", str(self.file))
        self.assertEqual(result.returncode, 2)
        self.assertIn("use prcb top -b", result.stderr)

    @unittest.skipUnless(pyte, "python3-pyte is not installed")
    def test_dumb_terminals(self):
        for term in ("dumb", "", "unknown-terminal"):
            # What ncurses keeps of a terminal that it does not know is not ours.
            terminal = Terminal([PRCB, "top", "-r", str(self.file)], TERM=term, ASAN_OPTIONS="detect_leaks=0")
            self.addCleanup(terminal.close)
            self.assertEqual(os.WEXITSTATUS(terminal.end()), 2)
            self.assertIn(b"use prcb top -b", terminal.bytes)

    def test_live(self):
        result = self.run_top("-b", "-n", "2", "-d", "0.3", "-p", str(os.getpid()), "-i")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("LIVE"), 2)
        self.assertIn(str(os.getpid()), result.stdout)

    def test_says_what_is_missing(self):
        """As long as threads have no account: they get one when others have ended."""
        code = ("import threading, time\nend = threading.Event()\n"
                "for i in range(6): threading.Thread(target=(end.wait if i < 5 else time.sleep), args=(60,), "
                "daemon=True).start()\nprint('ready', flush=True)\ninput()\nend.set()\ntime.sleep(60)")
        target = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.addCleanup(lambda: (target.kill(), target.communicate()))
        target.stdout.readline()
        top = subprocess.Popen([PRCB, "top", "-b", "-i", "-d", "0.1", "--max-threads", "4", "-p", str(target.pid)],
                               stdout=subprocess.PIPE, text=True, env={**ENVIRONMENT, "COLUMNS": "100"})
        self.addCleanup(lambda: (top.kill(), top.communicate()))
        missing = "threads are missing: there is room for 4 (--max-threads); 3 found none so far"
        if "tier perf" in self.read_table(top, lambda table: missing in table):
            return  # it takes none up, and goes on saying so
        target.stdin.write(b"\n")
        target.stdin.flush()
        self.read_table(top, lambda table: "are missing" not in table and "2 threads" in table)

    def read_table(self, top, is_it):
        """The first of the tables that come which is what is asked for."""
        deadline, table = time.monotonic() + 30 * SLOW, ""
        while time.monotonic() < deadline:
            line = top.stdout.readline()
            if line.startswith("prcb top") or not line:
                if table and is_it(table):
                    return table
                self.assertTrue(line, "it has ended")
                table = ""
            table += line
        self.fail("it never came: " + table)

    def test_written_and_read(self):
        path = self.folder / "own.db"
        result = self.run_top("-q", "-w", str(path), "-n", "3", "-d", "0.2", "-p", str(os.getpid()))
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        result = self.run_top("-b", "-i", "-r", str(path))
        self.assertEqual(result.stdout.count("FILE"), 3)
        self.assertIn(str(os.getpid()), result.stdout)

    def test_a_directory_keeps_to_its_size(self):
        days = self.folder / "days"
        days.mkdir()
        week = [days / f"prcb-2020-01-0{day}.db" for day in range(1, 9)]
        old = week[1]
        other = days / "prcb-notes.db"
        for path in week:
            path.write_bytes(b"x")
        other.write_bytes(b"x")
        result = self.run_top("-q", "-w", str(days), "-n", "2", "-d", "0.2", "-p", str(os.getpid()))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([path.exists() for path in week], [False] * 2 + [True] * 6)  # those of the last seven days
        self.assertTrue(other.exists())
        for path in week[2:]:
            path.unlink()
        ours = [path for path in days.iterdir() if re.fullmatch(r"prcb-\d{4}-\d\d-\d\d\.db", path.name)]
        self.assertEqual(len(ours), 1)
        # The directory is read as its last file; one without any is no recording.
        old.write_bytes(b"x")
        os.utime(old, (1, 1))
        self.assertEqual(self.run_top("-b", "-i", "-r", str(days)).stdout, self.run_top("-b", "-i", "-r", str(ours[0])).stdout)
        self.assertIn(str(os.getpid()), self.run_top("-b", "-i", "-r", str(days)).stdout)
        (self.folder / "empty").mkdir()
        result = self.run_top("-b", "-r", str(self.folder / "empty"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no file of prcb top -w", result.stderr)

    def test_recordings_of_switches(self):
        """What prcb record wrote: the spinner's run time, and the processors' line, of the same second."""
        path = self.folder / "switches.db"
        result = subprocess.run([PRCB, "record", "-o", str(path), "--", sys.executable, "-c",
                                 "import time\nwhile time.thread_time() < 0.5: pass"], capture_output=True, text=True,
                                timeout=60 * SLOW, env=ENVIRONMENT, check=False)
        if result.returncode:
            self.skipTest(result.stderr.strip())
        result = self.run_top("-b", "-i", "-d", "60", "-r", str(path))
        if "neither intervals nor switches" in result.stderr:
            self.skipTest("no switches are recorded here")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^cpu +user +\d+\.\d +kernel +\d+\.\d ")
        shares = [float(share) for share in re.findall(r" (?:user|kernel|softirq|irq|steal|idle) +(\d+(?:\.\d)?)",
                                                       result.stdout.split("\n")[1])]
        self.assertAlmostEqual(sum(shares), 100, delta=0.4)
        self.assertRegex(result.stdout, r"(?m)^ +\d+ +\d+ python")

    def test_report_names_the_reader_of_a_history(self):
        result = subprocess.run([PRCB, "report", str(self.file)], capture_output=True, text=True, timeout=60,
                                env=ENVIRONMENT, check=False)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"prcb top -r {self.file} shows it", result.stderr)

    def test_damaged_recordings(self):
        whole = self.file.read_bytes()
        chance = random.Random(7)
        for _ in range(30):
            data = bytearray(whole)
            for _ in range(20):
                data[chance.randrange(100, len(data))] = chance.randrange(256)
            path = self.folder / "damaged.db"
            path.write_bytes(data)
            result = self.run_top("-b", "-i", "-r", str(path), "-g", chance.choice(["threads", "processes", "causes"]))
            self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertNotIn("Sanitizer", result.stderr)

    def test_wrong_lines(self):
        for arguments, words in ((["-d", "0.01"], "must be a time from 100ms"), (["-f", "cause:none", "-b"], "cause:none"),
                                 (["--group", "x"], "must be threads, processes"), (["--sort", "x"], "must be busy, run"),
                                 (["-q"], "add -w"), (["-r", "x", "-w", "y"], "leave -w"), (["make"], "starts no command"),
                                 (["--top", "3"], "add -b"), (["-a", "-p", "1"], "leave -p")):
            result = self.run_top(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main()
