#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A shop under gunicorn whose requests are slow for four reasons (tests/cases/requests): of the slowest hundredth of each
kind that was met, the first line of prcb why --spans names the reason. Witness: the customers' clocks, by span."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/cli"))
from cpu_cgroup import CpuCgroup  # noqa: E402

PRCB = os.environ["PRCB"]
CAUSES = {"price": "futex", "order": "fsync", "stock": "socket", "report": "throttled"}
SECONDS = 6


@unittest.skipUnless(os.geteuid() == 0 and os.environ.get("HAVE_BPF") == "1", "causes and quotas: needs root and eBPF")
@unittest.skipUnless(shutil.which("gunicorn"), "needs gunicorn")
class Requests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prcb-shop.")
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("shop.py", "buy.py"):
            shutil.copy(TREE / "tests/cases/requests" / name, self.folder)

    def run_beside(self, *command, **how):
        process = subprocess.Popen(command, cwd=self.folder, text=True, **how)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def serve(self, name, enter):
        server = self.run_beside("gunicorn", "--log-level", "error", "--threads", "5", "--bind", f"unix:{name}",
                                 "shop:application", preexec_fn=enter,
                                 env=dict(os.environ, PYTHONPATH=os.environ["PRCB_PYTHON"], PYTHONDONTWRITEBYTECODE="1"))
        children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children")
        end = time.monotonic() + 60
        while not (os.path.exists(f"{self.folder}/{name}") and children.read_text(encoding="ascii")):
            self.assertLess(time.monotonic(), end, "gunicorn has not started")
            time.sleep(0.02)
        return children.read_text(encoding="ascii").split()[0]

    def test_slowest_have_their_cause_first(self):
        group = CpuCgroup("shop")
        self.addCleanup(os.rmdir, group.path)
        group.set(("cpu.cfs_quota_us", "20000"), ("cpu.max", "20000 100000"))
        workers = [self.serve("shop.sock", None),
                   self.serve("held.sock", lambda: group.write(str(os.getpid()), group.processes))]
        buyers = [self.run_beside("/usr/bin/python3", "buy.py", name, str(SECONDS + 1), kinds, stdout=subprocess.PIPE)
                  for name, kinds in (("shop.sock", "price,order,stock"), ("held.sock", "report"))]
        text = subprocess.run([PRCB, "why", "--spans", "--for", str(SECONDS), "--budget", "20", "--top", "0", "--stacks", "1",
                               *(word for worker in workers for word in ("-p", worker))],
                              capture_output=True, text=True, check=True).stdout
        first = dict(re.findall(r"(?m)^  span (\w{16})  .*\n +(\S+) ", text))
        took = [line.split() for buyer in buyers for line in buyer.communicate()[0].splitlines()]
        for kind, cause in CAUSES.items():
            all_of_it = [(int(ms), first.get(span)) for span, sort, ms in took if sort == kind]
            named = [word for _, word in sorted(all_of_it, key=lambda row: -row[0]) if word]
            with self.subTest(kind, requests=len(all_of_it), named=named[:20]):
                slowest = named[:max(1, len(all_of_it) // 100)]
                self.assertIn(cause, named)
                # Others may have had the processor for longer than that: it is said, then.
                self.assertLessEqual(set(slowest), {cause, "ready"})


if __name__ == "__main__":
    unittest.main()
