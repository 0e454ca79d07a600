# SPDX-License-Identifier: BSD-2-Clause
"""The shop's customers, and the warehouse that it asks: buy.py SOCKET SECONDS [KIND,...].

Each request's trace says its kind by its last digit. Prints "SPAN KIND MS", the slowest first."""
import http.client
import os
import secrets
import socket
import sys
import threading
import time

KINDS = ["price", "order", "stock", "report"]
TOOK = []


def warehouse():
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("warehouse.sock")
        listener.listen(64)
        while True:
            link, _ = listener.accept()
            threading.Timer(0.12, lambda link=link: (link.send(b"7"), link.close())).start()


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])


def customer(number, end):
    while time.monotonic() < end:
        span, began = secrets.token_hex(8), time.monotonic()
        link = Unix("shop")
        link.request("GET", "/" + KINDS[number], headers={
            "traceparent": f"00-{secrets.token_hex(15)}0{number + 1}-{span}-01"})
        link.getresponse().read()
        link.close()
        TOOK.append((time.monotonic() - began, span, KINDS[number]))


wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else KINDS
if "stock" in wanted:
    threading.Thread(target=warehouse, daemon=True).start()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
customers = [threading.Thread(target=customer, args=(number, time.monotonic() + float(sys.argv[2])))
             for number in range(4) if KINDS[number] in wanted]
for each in customers:
    each.start()
for each in customers:
    each.join()
for took, span, kind in sorted(TOOK, reverse=True):
    print(span, kind, round(1000 * took))
