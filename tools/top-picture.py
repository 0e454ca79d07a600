#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the pictures of prcb top in README.md: top-picture.py PRCB (as root, or with prcbd running)

Starts a few programs that contend for a lock, compress and sleep, runs prcb top on them in a terminal
that pyte keeps, and writes what it shows as docs/prcb-top.svg and, with Enter on a row,
docs/prcb-top-row.svg. Needs python3-pyte and xz.
"""
import fcntl
import html
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
WIDTH, HEIGHT, CELL, LINE = 110, 22, 8.4, 18
COLOURS = {"default": "#d0d0d0", "black": "#1c1c1c", "red": "#ff6b68", "green": "#7ccf7c", "brown": "#e0c060",
           "yellow": "#e0c060", "blue": "#7aa2f7", "magenta": "#c792ea", "cyan": "#3fa7b0", "white": "#e8e8e8"}
BACK = "#16181d"

WORKERS = """
import ctypes, threading, time
name = ctypes.CDLL(None).prctl
lock = threading.Lock()

def work(number):
    name(15, b"worker-%d" % number)
    while True:
        with lock:
            end = time.thread_time() + 0.004
            while time.thread_time() < end:
                pass
        time.sleep(0.002)

for number in range(1, 4):
    threading.Thread(target=work, args=(number,), daemon=True).start()
name(15, b"api-server")
time.sleep(1000)
"""


def svg(screen):
    """The cells as text, a run of one look at a time."""
    parts = []
    for y in range(HEIGHT):
        x = 0
        while x < WIDTH:
            cell, start, text = screen.buffer[y][x], x, ""
            look = (cell.fg, cell.bg, cell.bold, cell.reverse, cell.underscore)
            while x < WIDTH and look == (lambda c: (c.fg, c.bg, c.bold, c.reverse, c.underscore))(screen.buffer[y][x]):
                text += screen.buffer[y][x].data
                x += 1
            front, back = COLOURS.get(cell.fg, COLOURS["default"]), COLOURS.get(cell.bg) if cell.bg != "default" else None
            if cell.reverse:
                front, back = back or BACK, front
            if back:
                parts.append(f'<rect x="{start * CELL:.1f}" y="{y * LINE}" width="{(x - start) * CELL:.1f}" height="{LINE}" '
                             f'fill="{back}"/>')
            if text.strip():
                parts.append(f'<text x="{start * CELL:.1f}" y="{y * LINE + 13}" fill="{front}" '
                             f'textLength="{(x - start) * CELL:.1f}"{" font-weight=" + chr(34) + "bold" + chr(34) if cell.bold else ""}>'
                             f'{html.escape(text).replace(chr(32), chr(160))}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {WIDTH * CELL + 16:.0f} {HEIGHT * LINE + 16}" '
            f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">'
            f'<rect x="-8" y="-8" width="100%" height="100%" rx="6" fill="{BACK}"/>\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    demo = [subprocess.Popen([sys.executable, "-c", WORKERS]),
            subprocess.Popen(["sh", "-c", "while :; do tar -C /usr/share -cf - doc 2>/dev/null | head -c 20000000 | xz -1 -T2 >/dev/null; done"],
                             start_new_session=True)]
    time.sleep(1)
    pid, fd = pty.fork()
    if not pid: # its size first: a program that starts in another one draws twice
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.execv(sys.argv[1], [sys.argv[1], "top", "--by-whom", "-p", ",".join(str(process.pid) for process in demo)])
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.ByteStream(screen)

    def show(seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                try:
                    stream.feed(os.read(fd, 65536))
                except OSError:
                    return

    def show_anew(seconds):
        """Whole, not as what changed: the terminal's shortcuts are not all pyte's."""
        show(seconds - 0.3)
        screen.reset()
        os.write(fd, b"\x0c")
        show(0.3)

    try:
        show_anew(25.7)
        (DOCS / "prcb-top.svg").write_text(svg(screen), encoding="utf-8")
        os.write(fd, b"/worker-2\r\r")
        show_anew(9.6)
        (DOCS / "prcb-top-row.svg").write_text(svg(screen), encoding="utf-8")
        os.write(fd, b"q")
        show(0.5)
    finally:
        demo[0].kill()
        os.killpg(demo[1].pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
