# SPDX-License-Identifier: BSD-2-Clause
"""Threads that wait in functions of their own, and what the interpreter itself says of where they
are: one line of JSON, {thread's number: [[function, file, line], ...]}, innermost first.

Runs on every version that is read: nothing newer than 3.9 here.
"""
import functools
import json
import os
import queue
import sys
import threading

DEPTH = 200


class Cache:
    def __init__(self):
        self.lock = threading.Lock()

    def get(self):
        with self.lock:
            return 1

    @staticmethod
    def wait(event):
        event.wait()


def traced(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@traced
def decorated(event):
    event.wait()


def deep(left, event):
    if left:
        return deep(left - 1, event)
    return event.wait()


def numbers(source):
    while True:
        yield source.get()


def consume(source):
    for number in numbers(source):
        print(number)


def sorts(event):
    # C's code between two functions of Python.
    return sorted([1, 2], key=lambda number: event.wait() or number)


def naïve_größe_数(event):
    event.wait()


def executed(event):
    made = compile("def made(event):\n\n    event.wait()\n\nmade(event)\n", "<made of text>", "exec")
    exec(made, {"event": event})


class Coroutine:
    """Two that await each other, and no loop: what the innermost does blocks the thread."""
    async def inner(self, event):
        event.wait()

    async def outer(self, event):
        await self.inner(event)

    def run(self, event):
        try:
            self.outer(event).send(None)
        except StopIteration:
            pass


def names_of(frame):
    found = []
    while frame:
        code = frame.f_code
        found.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found


def is_parked(tid):
    with open("/proc/self/task/%d/syscall" % tid) as file:
        return file.read().split()[0] in ("202", "98")


def report(threads):
    while not all(is_parked(thread.native_id) for thread in threads):
        pass
    frames = sys._current_frames()
    print(json.dumps({thread.native_id: names_of(frames[thread.ident]) for thread in threads}), flush=True)


def main():
    event, cache = threading.Event(), Cache()
    cache.lock.acquire()
    targets = [(cache.get,), (Cache.wait, event), (decorated, event), (deep, DEPTH, event),
               (consume, queue.Queue()), (sorts, event), (naïve_größe_数, event), (executed, event),
               (Coroutine().run, event)]
    threads = [threading.Thread(target=target[0], args=target[1:], daemon=True) for target in targets]
    if "fork" in sys.argv and os.fork():
        os.wait()
        return
    for thread in threads:
        thread.start()
    report(threads)
    sys.stdin.read()


main()
