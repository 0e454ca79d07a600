#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The pictures of docs/page.md: pictures.py PRCB FOLDER. Records a small web service of Python's with
clients, which needs eBPF, and photographs the views of its page in Chromium; then shows the service, while it
runs, with prcb serve and photographs the live page."""
import os
import re
import subprocess
import sys
import tempfile
import time

import browsers

SERVICE = """
import hashlib, http.server, sys, threading, urllib.request

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with lock:
            body = hashlib.pbkdf2_hmac("sha256", b"a", b"b", 3000).hex().encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

def ask():
    for _ in range(int(sys.argv[1])):
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()

lock = threading.Lock()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
clients = [threading.Thread(target=ask) for _ in range(4)]
[client.start() for client in clients]
[client.join() for client in clients]
"""


def picture(driver, address, path):
    driver.get("about:blank")
    driver.get(address)
    while not driver.execute_script("return document.body.dataset.ready"):
        time.sleep(0.05)
    driver.execute_script("const b = document.querySelector('#thread-table button.open'); if (b) b.click(); "
                          "window.scrollTo(0, 0)")
    driver.save_screenshot(path)


def live_picture(driver, prcb, service, path):
    """Of the timeline, once it holds twenty intervals."""
    with subprocess.Popen(["/usr/bin/python3", service, "1000000"]) as served:
        with subprocess.Popen([prcb, "serve", "-d", "0.25", "-p", str(served.pid)], stdout=subprocess.PIPE, text=True) as page:
            driver.get(re.search(r"http://\S+", page.stdout.readline())[0])
            while not driver.execute_script("return Number(document.body.dataset.frame || 0) >= 20"):
                time.sleep(0.05)
            driver.execute_script("chooseView('timeline'); window.scrollTo(0, 0)")
            driver.save_screenshot(path)
            page.terminate()
        served.kill()


def main():
    prcb, folder = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as place:
        db, html, service = (os.path.join(place, name) for name in ("service.db", "service.html", "service.py"))
        with open(service, "w", encoding="ascii") as file:
            file.write(SERVICE)
        subprocess.run([prcb, "record", "-g", "-o", db, "--", "/usr/bin/python3", "service.py", "60"],
                       cwd=place, check=True)
        subprocess.run([prcb, "report", "--html", "-o", html, db], check=True)
        driver = browsers.chromium("--window-size=1000,640", browsers.LOOPBACK)
        try:
            for view, more in (("threads", ""), ("timeline", ""), ("flame", "&source=waits")):
                picture(driver, f"file://{html}#view={view}{more}", os.path.join(folder, f"page-{view}.png"))
            live_picture(driver, prcb, service, os.path.join(folder, "page-live.png"))
        finally:
            driver.quit()


main()
