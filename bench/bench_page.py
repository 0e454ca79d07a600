#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How soon Chromium shows the page of a recording with a million switches, from the address to the first view, beside the
page of an empty recording (the browser's own share) and beside a page that only reads the same stretches as JSON.
Rounds are interleaved; a row is the least and the median, and the least as a multiple of the empty page's."""
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PRCB = os.path.join(HERE, "../src/tools/cli/prcb")
SWITCHES, ROUNDS = 1000000, 5
sys.path.insert(0, "@TESTS@")

try:
    import selenium  # noqa: F401
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

import browsers  # noqa: E402
import made  # noqa: E402


def write_page(folder, name, switches):
    db, html = os.path.join(folder, name + ".db"), os.path.join(folder, name + ".html")
    made.make_many(db, switches)
    subprocess.run([PRCB, "report", "--html", "--html-max", "40M", "-o", html, db], check=True)
    return db, html


def write_json_page(folder, db):
    """The switches as rows of JSON in a script element: what a page must read at the least that has no columns."""
    html = os.path.join(folder, "json.html")
    with sqlite3.connect(db) as rows, open(html, "w", encoding="ascii") as file:
        file.write('<!doctype html><body><script type="application/json" id="data">[')
        for i, row in enumerate(rows.execute("SELECT time_ns, cpu, old_thread, new_thread, state, cause, reason, ready_ns FROM switches")):
            file.write((",\n" if i else "") + json.dumps(row))
        file.write("]</script><script>window.rows = JSON.parse(document.getElementById('data').textContent);"
                   "document.body.dataset.ready = 1</script>")
    return html


def measure(driver, html):
    driver.get("about:blank")
    begin = time.monotonic()
    driver.get("file://" + html)
    while not driver.execute_script("return document.body.dataset.ready"):
        if time.monotonic() > begin + 60:
            raise TimeoutError(html)
        time.sleep(0.005)
    return time.monotonic() - begin


def main():
    reason = browsers.why_no_chromium()
    if reason:
        print(reason)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        db, many = write_page(folder, "many", SWITCHES)
        pages = {"page of an empty recording": write_page(folder, "empty", 0)[1],
                 f"page of {SWITCHES} switches": many, "the same switches as JSON, not shown": write_json_page(folder, db)}
        times = {name: [] for name in pages}
        driver = browsers.chromium("--window-size=1280,900")
        try:
            for _ in range(ROUNDS):
                for name, html in pages.items():
                    times[name].append(measure(driver, html))
            measure(driver, many)
            used = browsers.heap_bytes(driver)
        finally:
            driver.quit()
        least = min(next(iter(times.values())))
        print(f"{'seconds to the first view':38}{'MB':>7}{'least':>9}{'median':>9}{'ratio':>8}")
        for name, values in times.items():
            size = os.path.getsize(pages[name]) / 1e6
            print(f"{name:38}{size:7.1f}{min(values):9.3f}{statistics.median(values):9.3f}{min(values) / least:8.1f}")
        print(f"in use after a collection: {used / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
