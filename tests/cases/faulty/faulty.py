# SPDX-License-Identifier: BSD-2-Clause
"""Slow for a reason that nobody sees from outside: faulty.py gil, or faulty.py asyncio."""
import asyncio
import sys
import threading
import time


def price_order():
    return sum(i * i for i in range(20000))


def serve_orders():
    while True:
        price_order()


def load_customer():
    time.sleep(0.05)


async def handle():
    while True:
        load_customer()
        await asyncio.sleep(0)


async def requests():
    await asyncio.gather(*[handle() for _ in range(4)])


print("ready", flush=True)
if sys.argv[1] == "gil":
    for _ in range(4):
        threading.Thread(target=serve_orders, daemon=True).start()
    time.sleep(600)
else:
    asyncio.run(requests())
