# SPDX-License-Identifier: BSD-2-Clause
"""Tasks of asyncio that wait, and what the interpreter says of them: a line of JSON, then nothing moves."""
import asyncio
import collections
import gc
import json
import sys
import types


class Cache:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def get(self):
        async with self.lock:
            return 1


async def handle(cache):
    await cache.get()


async def fetch(cache, reader):
    async with cache.lock:
        await reader.readline()


async def numbers():
    for i in range(2):
        yield i
        await asyncio.sleep(1000)


async def listen():
    async for _ in numbers():
        pass


async def deep(left):
    if left:
        await deep(left - 1)
    else:
        await asyncio.get_running_loop().create_future()


@types.coroutine
def old():
    unused = iter([asyncio.sleep])
    yield from asyncio.Event().wait().__await__()
    del unused


async def größer():
    await old()


async def gathered():
    await asyncio.gather(größer(), größer())


class Own(asyncio.Task):
    pass


def as_the_interpreter_says(task):
    """The coroutines that await one another, innermost first."""
    frames = []
    at = task.get_coro()
    while at is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(at, kind + "_frame")), None)
        if kind is None:
            held = [] if isinstance(at, asyncio.Future) else gc.get_referents(at)
            at = next((held for held in held if hasattr(held, "cr_frame") or hasattr(held, "ag_frame")), None)
            continue
        frame = getattr(at, kind + "_frame")
        name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        frames.insert(0, (name, frame.f_code.co_filename, frame.f_lineno))
        at = getattr(at, kind + ("_yieldfrom" if kind == "gi" else "_await"))
    return tuple(frames)


async def main():
    cache, reader = Cache(), asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    kept = [loop.create_task(fetch(cache, reader))]
    kept += [loop.create_task(handle(cache)) for _ in range(100)]
    kept += [loop.create_task(work) for work in (listen(), deep(0), deep(20), deep(200), gathered())]
    kept.append(Own(deep(1), loop=loop))
    await asyncio.sleep(0.1)
    said = collections.Counter(as_the_interpreter_says(task) for task in asyncio.all_tasks()
                               if task is not asyncio.current_task())
    print(json.dumps([[frames, count] for frames, count in said.items()]), flush=True)
    await loop.create_future()

asyncio.run(main())
