# SPDX-License-Identifier: BSD-2-Clause
"""A program that knows who ends its waits, for tests of edges on every tier."""


def asker(rounds, answer, patience):
    """Asks its child, which answers after so many seconds, so often; then it waits 20 times, each as long as its
    patience, for a lock that nobody releases. It prints its number and its child's, and in how many of its questions
    and of its waits for the lock the kernel counted a voluntary switch."""
    return f"""
import os, resource, threading, time
there, back = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.close(there[1])
    while os.read(there[0], 1):
        time.sleep({answer})
        os.write(back[1], b"x")
    os._exit(0)

def waits():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw

def counted(rounds, step):
    return sum(waits() < (step(), waits())[1] for _ in range(rounds))

answered = counted({rounds}, lambda: (os.write(there[1], b"x"), os.read(back[0], 1)))
lock = threading.Lock()
lock.acquire()
timed_out = counted(20, lambda: lock.acquire(timeout={patience}))
os.close(there[1])
os.wait()
print(os.getpid(), child, answered, timed_out, flush=True)
os._exit(0)
"""
