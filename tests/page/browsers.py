# SPDX-License-Identifier: BSD-2-Clause
"""Chromium by chromedriver and selenium, and Firefox by its own Marionette, for which Debian has no
driver. Both cut off from any network."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

OFFLINE = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking",
           "--host-resolver-rules=MAP * ~NOTFOUND", "--force-device-scale-factor=1", "--hide-scrollbars"]

# For prcb serve: of all hosts this one only.
LOOPBACK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


def why_no_chromium():
    if not webdriver:
        return "python3-selenium is not installed"
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return None


def chromium(*more):
    options = webdriver.ChromeOptions()
    for argument in (*OFFLINE, *more):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_script_timeout(60)
    return driver


def heap_bytes(driver):
    """What a page uses after a collection, arrays included."""
    driver.execute_cdp_cmd("HeapProfiler.enable", {})
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    heap = driver.execute_cdp_cmd("Runtime.getHeapUsage", {})
    return heap["usedSize"] + heap.get("embedderHeapUsedSize", 0) + heap.get("backingStorageSize", 0)


class Firefox:
    """A client of Marionette: one command at a time, "LENGTH:[0,id,name,parameters]"."""

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(os.path.join(self.profile, "user.js"), "w", encoding="ascii") as file:
            file.write(f'user_pref("marionette.port", {port});\n'
                       'user_pref("network.proxy.type", 1);\nuser_pref("network.proxy.http", "127.0.0.1");\n'
                       'user_pref("network.proxy.http_port", 9);\nuser_pref("network.proxy.ssl", "127.0.0.1");\n'
                       'user_pref("network.proxy.ssl_port", 9);\nuser_pref("browser.shell.checkDefaultBrowser", false);\n'
                       'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n')
        with open(os.path.join(self.profile, "log"), "wb") as log:
            self.process = subprocess.Popen(
                ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", self.profile],
                stdout=log, stderr=log, env={**os.environ, "HOME": self.profile, "MOZ_DISABLE_AUTO_SAFE_MODE": "1"})
        deadline = time.monotonic() + 90
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.1)
        self.count = 0
        self.read()  # its greeting
        self.call("WebDriver:NewSession", {})

    def read(self):
        digits = b""
        while not digits.endswith(b":"):
            digits += self.socket.recv(1)
        left, parts = int(digits[:-1]), []
        while left:
            part = self.socket.recv(left)
            if not part:
                raise EOFError("Firefox closed the connection")
            parts.append(part)
            left -= len(part)
        return json.loads(b"".join(parts))

    def call(self, name, parameters):
        self.count += 1
        text = json.dumps([0, self.count, name, parameters]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, result = self.read()
        if error:
            raise RuntimeError(error)
        return result

    def get(self, url):
        self.call("WebDriver:Navigate", {"url": url})

    def run(self, script):
        return self.call("WebDriver:ExecuteScript", {"script": script, "args": []})["value"]

    def close(self):
        if hasattr(self, "socket"):
            self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
