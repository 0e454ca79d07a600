# SPDX-License-Identifier: BSD-2-Clause
"""Why are my slowest requests slow? A WSGI application with four ways of being slow.

    gunicorn --threads 4 requests_wsgi:application &
    wrk -d 5 http://127.0.0.1:8000/lock
    curl -si http://127.0.0.1:8000/sleep | grep Server-Timing

The server logs each request of more than 20 ms, with where its time went."""
import logging
import threading
import time

import prcb.web

logging.basicConfig(format="%(message)s")
lock = threading.Lock()


def compute():
    sum(i * i for i in range(400000))


def hold():
    with lock:
        time.sleep(0.03)


WAYS = {"/": lambda: None, "/sleep": lambda: time.sleep(0.03), "/compute": compute, "/lock": hold}


def plain(environ, start_response):
    way = WAYS.get(environ["PATH_INFO"])
    if way:
        way()
    start_response("200 OK" if way else "404 Not Found", [("Content-Type", "text/plain")])
    return [b"done\n" if way else b"no such way of being slow\n"]


application = prcb.web.WSGI(plain, slow=0.02)
