#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A thread that ends, or whose process's core is dumped, is in no system call, though its registers have the last one.

Witness: /proc/PID/stack, and the status that the parent got."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

from house import PROGRAMS, ROOT, House, await_true, on_tiers


class Ending(House):
    @unittest.skipUnless(ROOT, "needs root, which alone may make a pid namespace everywhere")
    @on_tiers("bpf")
    def test_the_first_process_of_a_namespace(self, tier):
        _, (first,) = self.start("ending", "init")
        if not first:
            self.skipTest("a pid namespace cannot be had here")
        await_true(lambda: "zap_pid_ns_processes" in pathlib.Path(f"/proc/{first}/stack").read_text(encoding="ascii"),
                   "it waits for its namespace's processes")
        row, = self.document(tier, "stat", "-p", first, "--for", 0.3)["threads"]
        self.assertEqual(row["open"]["cause"], "ending", row)
        now, = self.document(tier, "why", "-p", first, "--for", 0.3)["processes"][0]["now"]
        self.assertEqual(now["cause"], "ending", now)
        self.assertIn("zap_pid_ns_processes", [frame["function"] for frame in now["frames"]])

    @unittest.skipUnless(ROOT, "needs root, which alone may mount")
    @on_tiers("bpf")
    def test_sigkill_does_not_end_it(self, tier):
        """It waits for a FUSE server that says nothing to FLUSH. Its last call was epoll_wait."""
        _, (killed,) = self.start("kill9", self.folder("bpf"))
        if not killed:
            self.skipTest("a file system in user space cannot be had here")
        await_true(lambda: "fuse_flush" in pathlib.Path(f"/proc/{killed}/stack").read_text(encoding="ascii"),
                   "it waits for its file system")
        row, = self.document(tier, "stat", "-p", killed, "--for", 0.3)["threads"]
        self.assertEqual(row["open"]["cause"], "ending", row)
        now, = self.document(tier, "why", "-p", killed, "--for", 0.3)["processes"][0]["now"]
        self.assertEqual(now["cause"], "ending", now)
        self.assertIn("fuse_flush", [frame["function"] for frame in now["frames"]])
        said = self.prcb(tier, "why", "--tier", tier, "-p", killed, "--for", 0.3)
        self.assertRegex(said, r"killed-job \(\d+\) ends, and waits for a server of files \(FUSE\)\.")
        # It takes no samples any more, and the recording has what it waits for.
        waits = {row["cause"]: row["ns"] for row in self.recorded(tier, "-p", killed, "--", "sleep", "0.3")["waits"]}
        self.assertEqual(list(waits), ["ending"])
        self.assertGreater(waits["ending"], 0.2e9)
        self.assertRegex(self.top(tier, "-p", killed, "-i", "-n", 2, "-d", 0.2), r"(?m)killed-job.*ending")

    @on_tiers("bpf", "daemon")
    def test_the_threads_of_a_process_that_is_dumped(self, tier):
        folder = tempfile.mkdtemp(prefix="prcb-case-")
        self.addCleanup(shutil.rmtree, folder)
        if self.user_of(tier):
            os.chown(folder, self.user_of(tier), self.user_of(tier))
        output = self.prcb(tier, "stat", "-j", "--tier", tier, "--",
                           os.path.join(PROGRAMS, "ending"), "core", folder).splitlines()
        if output[0] == "0":
            self.skipTest("no core is dumped here: see core(5)")
        row = next(row for row in json.loads(output[-1])["threads"] if row["comm"] == "waiter")
        waits = {wait["cause"]: wait["ns"] for wait in row["waits"]}
        # It read from the pipe for as long as the other thread took to abort, and was dumped for the rest.
        self.assertGreater(waits.get("core-dump", 0), 10_000_000, row)
        self.assertGreater(waits["core-dump"] + waits["pipe"] + row["ready_ns"] + row["run_ns"],
                           0.9 * row["wall_ns"], row)


if __name__ == "__main__":
    unittest.main()
