# SPDX-License-Identifier: BSD-2-Clause
"""A shop with four kinds of slow requests, each request a span by its traceparent header:

    gunicorn --threads 4 --bind unix:shop.sock shop:application

/price waits for a lock, /order for the disk, /stock for another server, /report for its quota."""
import os
import socket
import threading
import time

import prcb.spans

LINES = b"1 apple\n" * (1 << 17)
prices = threading.Lock()


def refresh_prices():
    while True:
        with prices:
            time.sleep(0.15)
        time.sleep(0.05)


def price():
    with prices:
        return


def order():
    with open("orders.log", "ab", buffering=0) as log:
        for _ in range(8):
            log.write(LINES)
            os.fsync(log.fileno())


def stock():
    with socket.socket(socket.AF_UNIX) as warehouse:
        warehouse.connect("warehouse.sock")
        warehouse.recv(16)


def report():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass


KINDS = {"/price": price, "/order": order, "/stock": stock, "/report": report}


def application(environ, start_response):
    _, trace, span, flags = environ["HTTP_TRACEPARENT"].split("-")
    with prcb.spans.Span(bytes.fromhex(trace), bytes.fromhex(span), int(flags, 16)):
        KINDS[environ["PATH_INFO"]]()
    start_response("200 OK", [("Content-Length", "0")])
    return [b""]


threading.Thread(target=refresh_prices, name="refresh", daemon=True).start()
