#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pg_stat_prcb in every PostgreSQL that is installed here. Witnesses: pg_stat_statements' own clock, the
kernel's statistics of backends, EXPLAIN ANALYZE, and queries whose waits are known."""

import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../daemon")]
from case import needs  # noqa: E402
from server import LONG, Server, versions, wait_for  # noqa: E402
from wire import Daemon as Prcbd  # noqa: E402

LIBRARY = os.environ["PRCB_LIBRARY"]
PKG_CONFIG = os.environ["PRCB_PKG_CONFIG"]
PRCBD = os.environ.get("PRCBD", "")
PARTS = ["run", "ready", "throttled", "disk", "lock", "latch", "net", "ipc", "page_fault", "sleep", "other", "unsplit"]
VERSIONS = versions()
CLIENTS, SECONDS = os.environ.get("PRCB_CLIENTS", "4"), os.environ.get("PRCB_SECONDS", "6")  # while prcbd goes and comes


def setUpModule():
    if not VERSIONS:
        raise unittest.SkipTest("no PostgreSQL with pg_config --pgxs is installed")


class Common:
    """One server for all tests of a class."""

    daemon = None
    environment = {"PRCB_SOCKET": "/nonexistent/socket"}
    settings = "pg_stat_prcb.patient = on\n"  # a busy machine lets prcbd be later than a fifth of a second

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.programs, LIBRARY, PKG_CONFIG, cls.environment, settings=cls.settings)
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.create_extension()

    def setUp(self):
        self.server.psql("SELECT pg_stat_prcb_reset(), pg_stat_statements_reset()")

    def row(self, like, toplevel=True):
        """The row of the query whose text is like this, times in ns."""
        columns = ["calls", "errors", "workers", "measured", "wall", *PARTS, "commit", "switches"]
        rows = self.server.psql(
            "SELECT %s, s.total_exec_time * 1e6 FROM pg_stat_prcb() p JOIN pg_stat_statements s "
            "USING (userid, dbid, queryid, toplevel) WHERE s.query LIKE '%s' AND toplevel = %s"
            % (", ".join("p." + name for name in columns), like.replace("'", "''"), toplevel))
        self.assertEqual(len(rows), 1, (like, rows, self.server.log()))
        return {name: None if text == "" else int(float(text)) for name, text in zip([*columns, "exec"], rows[0])}

    def check_law(self):
        for numbers in self.server.psql("SELECT coalesce(wall, 0), coalesce(commit, 0), %s FROM pg_stat_prcb()"
                                        % ", ".join("coalesce(%s, 0)" % part for part in PARTS)):
            wall, commit, *parts = map(int, numbers)
            self.assertEqual(wall, sum(parts))
            self.assertLessEqual(commit, wall)
            self.assertTrue(all(part >= 0 for part in parts), numbers)

    # ---- on every tier

    def test_sleep(self):
        self.server.psql("SELECT pg_sleep(0.2)", "SELECT pg_sleep(0.1)")
        row = self.row("SELECT pg_sleep(%")
        self.assertEqual((row["calls"], row["errors"], row["workers"], row["measured"]), (2, 0, 0, 2))
        self.assertLess(abs(row["wall"] - row["exec"]), 5e6)
        self.assertGreaterEqual(row["wall"] - row["run"] - row["ready"], 295e6)
        self.check_law()

    def test_running(self):
        """What the kernel says that the backend ran; and pg_stat_kcache, of this very query."""
        rows = self.server.psql("SELECT pg_read_file('/proc/self/schedstat')",
                                "SELECT sum(sqrt(i)) FROM generate_series(1, 1000000) i",
                                "SELECT pg_read_file('/proc/self/schedstat')")
        before, after = (int(rows[i][0].split()[0]) for i in (0, -2))
        row = self.row("SELECT sum(sqrt(%")
        self.assertGreater(row["run"], 0.9 * (after - before))
        # The kernel's sum of a thread that runs is as old as the last tick.
        self.assertLess(row["run"], after - before + 10e6)
        self.assertLess(abs(row["wall"] - row["exec"]), 0.02 * row["exec"] + 5e6)
        if self.server.preload:
            ran = float(self.server.psql("SELECT exec_user_time + exec_system_time FROM pg_stat_kcache_detail "
                                         "WHERE query LIKE 'SELECT sum(sqrt(%' AND top")[0][0])
            self.assertLess(abs(row["run"] - 1e9 * ran), 0.01 * row["run"] + 1e6)

    def test_failures(self):
        self.server.psql("SELECT pg_sleep(0.1), 1 / (random() * 0)::int", check=False)
        self.server.psql("SET statement_timeout = '100ms'", "SELECT pg_sleep(20), 'late'", check=False)
        row = self.failed_row()
        self.assertEqual(row["errors"], 2)
        self.assertGreaterEqual(row["wall"], 195e6)
        self.server.psql("SELECT pg_sleep(0.01), 'late'")
        self.assertEqual(self.row("SELECT pg_sleep($1), $2")["calls"], 1)
        self.check_law()

    def failed_row(self):
        """pg_stat_statements has no rows of queries that fail."""
        rows = self.server.psql("SELECT sum(errors), sum(wall) FROM pg_stat_prcb() WHERE errors > 0")
        return {"errors": int(rows[0][0]), "wall": int(rows[0][1])}

    def test_nested(self):
        self.server.psql("CREATE OR REPLACE FUNCTION outer_one() RETURNS void LANGUAGE plpgsql AS $$"
                         "BEGIN PERFORM pg_sleep(0.1) AS inner_one; BEGIN PERFORM 1 / (random() * 0)::int; "
                         "EXCEPTION WHEN division_by_zero THEN NULL; END; END $$",
                         "SET pg_stat_prcb.track = 'all'", "SET pg_stat_statements.track = 'all'", "SELECT outer_one()")
        outer, inner = self.row("SELECT outer_one()"), self.row("SELECT pg_sleep($1) AS inner_one", False)
        self.assertEqual((outer["calls"], inner["calls"]), (1, 1))
        self.assertGreaterEqual(outer["wall"], inner["wall"])
        self.assertEqual(self.server.psql("SELECT count(*) FROM pg_stat_prcb() WHERE NOT toplevel AND errors = 1"),
                         [["1"]])
        self.server.psql("SELECT outer_one()")
        self.assertEqual(self.row("SELECT pg_sleep($1) AS inner_one", False)["calls"], 1)
        self.check_law()

    def test_parallel(self):
        """Workers' time is their leader's query's."""
        rows = self.server.psql(
            "CREATE TABLE IF NOT EXISTS many AS SELECT i, repeat('x', 200) AS text FROM generate_series(1, 200000) i",
            "ANALYZE many", "SET parallel_setup_cost = 0", "SET parallel_tuple_cost = 0",
            "SET min_parallel_table_scan_size = 0", "SELECT pg_stat_prcb_reset()",
            "EXPLAIN (ANALYZE) SELECT count(*) FROM many WHERE length(md5(text)) = 32")
        launched = next(int(row[0].split()[-1]) for row in rows if "Workers Launched" in row[0])
        self.assertGreater(launched, 0)
        self.assertEqual(self.server.psql("SELECT sum(workers) FROM pg_stat_prcb()")[0][0], "0")  # EXPLAIN is at level 0
        self.server.psql("SET parallel_setup_cost = 0", "SET parallel_tuple_cost = 0",
                         "SET min_parallel_table_scan_size = 0",
                         "SELECT count(*) FROM many WHERE length(md5(text)) = 32")
        row = self.row("SELECT count(*) FROM many WHERE length(md5(text)) = $1")
        self.assertEqual((row["calls"], row["workers"]), (1, launched))
        self.assertGreater(row["wall"], row["exec"])  # it is of several processes
        self.check_law()

    def test_workers_that_start_late(self):
        """While the query that their own one calls runs, in parallel as well: who starts them is stopped until then."""
        fast = ["SET parallel_setup_cost = 0", "SET parallel_tuple_cost = 0", "SET min_parallel_table_scan_size = 0",
                "SET max_parallel_workers_per_gather = 2", "SET pg_stat_prcb.track = 'all'",
                "SET pg_stat_statements.track = 'all'"]
        self.server.psql(
            "CREATE TABLE IF NOT EXISTS few AS SELECT i, repeat('x', 2000) AS text FROM generate_series(1, 2000) i",
            "ANALYZE few", "CREATE OR REPLACE FUNCTION called() RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS "
            "$$DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM few WHERE length(md5(repeat(text, 100))) = 32; "
            "RETURN n; END $$", *fast, "SELECT pg_stat_prcb_reset()")
        asks = self.server.psql_begin(*fast, "SELECT pg_sleep(0.5)", "SELECT called() AS late FROM few WHERE i = 1")

        def leaders():
            found = subprocess.run(["pgrep", "-P", str(self.server.process.pid), "-f", "SELECT$"],
                                   capture_output=True, text=True, check=False).stdout.split()
            return [pid for pid in found if ticks(pid) is not None]

        def ticks(pid):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    return int(file.read().rsplit(")", 1)[1].split()[11])
            except OSError:
                return None
        pid = wait_for(leaders, "the server has forked for it")[0]
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            before = ticks(pid)
            wait_for(lambda: ticks(pid) is None or ticks(pid) >= before + 20, "the query that is called runs")
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(asks.wait(LONG), 0)
        outer = self.row("SELECT called() AS late FROM few WHERE i = $1")
        inner = self.row("%FROM few WHERE length(md5(repeat(%", False)
        self.assertEqual((outer["calls"], inner["calls"]), (1, 1))
        self.assertEqual(outer["workers"], 2)
        self.check_law()

    def test_utility_and_commit(self):
        self.server.psql("CREATE TABLE IF NOT EXISTS written (i int)", "INSERT INTO written VALUES (1)",
                         "DO $$ BEGIN PERFORM pg_sleep(0.05); END $$", "PREPARE p AS SELECT pg_sleep(0.05) AS prepared",
                         "EXECUTE p", "VACUUM written")
        for like in ("DO %", "VACUUM %"):
            self.assertEqual(self.row(like)["calls"], 1)
        self.assertEqual(self.row("%AS prepared")["calls"], 1)
        self.assertGreaterEqual(self.row("DO %")["wall"], 50e6)
        self.assertEqual(self.row("INSERT %")["calls"], 1)
        self.check_law()

    def test_who_may_see(self):
        self.server.psql("DROP ROLE IF EXISTS somebody", "CREATE ROLE somebody LOGIN", "SELECT 'a secret'")
        rows = self.server.psql("SET ROLE somebody", "SELECT count(*), count(queryid) FROM pg_stat_prcb() "
                                "WHERE userid <> 'somebody'::regrole")
        self.assertTrue(int(rows[0][0]) > 0 and rows[0][1] == "0", rows)
        result = self.server.run("psql", *self.server.address(), "-c", "SET ROLE somebody", "-c",
                                 "SELECT pg_stat_prcb_reset()", check=False)
        self.assertIn("permission denied", result.stderr)

    def test_room(self):
        """More queries than there is room for: the least used go, and nothing fails."""
        maximum = int(self.server.psql("SHOW pg_stat_prcb.max")[0][0])
        self.server.psql(*["SELECT " + ", ".join(["1"] * i) for i in range(1, maximum + 50)])
        count = int(self.server.psql("SELECT count(*) FROM pg_stat_prcb()")[0][0])
        self.assertTrue(0.9 * maximum < count <= maximum, count)

    def test_restart(self):
        path = self.server.data + "/pg_stat/pg_stat_prcb.stat"
        self.server.psql("SELECT pg_sleep(0.01) AS kept")
        before = self.row("%AS kept")
        self.server.stop()
        with open(path, "rb") as file:
            content = file.read()
        self.server.start()
        self.assertFalse(os.path.exists(path))
        self.assertEqual(self.row("%AS kept"), before)
        for damage in (content[:len(content) // 2], b"", b"x" * 4096, content[:8] + b"\xff" * 8 + content[16:]):
            self.server.stop()
            with open(path, "wb") as file:
                file.write(damage)
            self.server.start()
            self.assertIn("is damaged", self.server.log())
            self.server.psql("SELECT * FROM pg_stat_prcb()")


class Perf(Common):
    settings = "pg_stat_prcb.tier = perf\n"

    def test_tier(self):
        self.assertEqual(self.server.psql("SELECT tier, reason FROM pg_stat_prcb_tier()"), [["perf", ""]])
        self.server.psql("SELECT pg_sleep(0.02)")
        row = self.row("SELECT pg_sleep(%")
        self.assertEqual([row[part] for part in PARTS[2:-1]], [None] * (len(PARTS) - 3))
        self.assertEqual(row["unsplit"], row["wall"] - row["run"] - row["ready"])

    def test_no_daemon(self):
        """Queries are counted; what is not known is NULL, and the reason is told."""
        server = Server(self.programs, LIBRARY, PKG_CONFIG, self.environment)
        self.addCleanup(server.remove)
        server.start()
        server.create_extension()
        server.psql("SELECT pg_sleep(0.01)")
        self.assertEqual(server.psql("SELECT p.calls, measured, wall, run, unsplit, commit FROM pg_stat_prcb() p JOIN "
                                     "pg_stat_statements USING (queryid) WHERE query LIKE 'SELECT pg_sleep%'"),
                         [["1", "0", "", "", "", ""]])
        self.assertRegex(server.psql("SELECT tier || ': ' || reason FROM pg_stat_prcb_tier()")[0][0],
                         "none: .*/nonexistent/socket")


class Daemon(Common):
    @classmethod
    def setUpClass(cls):
        if needs() or not PRCBD:
            raise unittest.SkipTest(needs() or "this build has no prcbd")
        cls.daemon = Prcbd(PRCBD)
        cls.addClassCleanup(cls.daemon.stop)
        cls.environment = {"PRCB_SOCKET": cls.daemon.socket}
        super().setUpClass()

    def setUp(self):
        wait_for(lambda: self.server.psql("SELECT tier FROM pg_stat_prcb_tier()") == [["daemon"]], "a prcbd that answers")
        super().setUp()

    def test_causes(self):
        self.server.psql("SELECT pg_sleep(0.1)")
        row = self.row("SELECT pg_sleep(%")
        self.assertGreaterEqual(row["latch"], 99e6)
        self.assertLess(row["unsplit"], 1e6)

    def test_locks_between_two(self):
        holder = self.server.psql_begin("SELECT pg_advisory_lock(7)", "SELECT pg_sleep(0.3)")
        wait_for(lambda: self.server.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")[0][0] == "1",
                 "somebody has the lock")
        self.server.psql("SELECT pg_advisory_lock(7), 'waits'")
        holder.wait(30)
        row = self.row("SELECT pg_advisory_lock($1), $2")
        self.assertGreaterEqual(row["latch"], 100e6)
        self.assertLess(abs(row["wall"] - row["exec"]), 5e6)

    def test_disk(self):
        """What a transaction waits for at its end is its query's."""
        self.server.psql("CREATE TABLE IF NOT EXISTS synced (i int)", *["INSERT INTO synced VALUES (1)"] * 10)
        row = self.row("INSERT INTO synced%")
        self.assertEqual(row["calls"], 10)
        if not row["commit"]:
            self.skipTest("nobody waits for this file system's fsync")
        self.assertGreater(row["disk"], 0)

    def test_daemon_hangs(self):
        """A connection does not wait for a prcbd that does not answer: 10 s it would be otherwise, each time."""
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            for _ in range(3):
                self.assertEqual(self.server.psql("SELECT tier FROM pg_stat_prcb_tier()", patient=False), [["none"]])
            self.assertLess(time.monotonic() - begin, 9)
        finally:
            os.kill(self.daemon.process.pid, signal.SIGCONT)

    def test_daemon_is_late(self):
        """A connection that was left without is measured once prcbd answers."""
        pid = self.daemon.process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            self.server.psql("SELECT 1, 2 AS left_without", "\\! kill -CONT %d" % pid,
                             *["SELECT pg_sleep(0.2)", "SELECT 1 AS goes_on"] * 40, patient=False)
        finally:
            os.kill(pid, signal.SIGCONT)
        row = self.row("SELECT $1, $2 AS left_without")
        self.assertEqual((row["calls"], row["measured"], row["wall"]), (1, 0, None))
        row = self.row("SELECT $1 AS goes_on")
        self.assertEqual(row["calls"], 40)
        self.assertGreater(row["measured"], 0)

    def test_daemon_goes_and_comes(self):
        """No query fails, whatever prcbd does."""
        bench = subprocess.Popen([self.programs + "/pgbench", "-n", "-c", CLIENTS, "-T", SECONDS, "-C", "-f", "-",
                                  *self.server.address()[:4], "postgres"], env=self.server.client(patient=False), cwd="/",
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 **self.server.who())
        bench.stdin.write("SELECT 1 AS counted;\n")
        bench.stdin.close()
        bench.stdin = None
        while bench.poll() is None:
            self.daemon.kill()
            time.sleep(0.3)
            self.daemon.start()
            os.kill(self.daemon.process.pid, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(self.daemon.process.pid, signal.SIGCONT)
            time.sleep(0.6)
        output, errors = bench.communicate()
        self.assertEqual(bench.returncode, 0, errors)
        self.assertIn("number of failed transactions: 0", output)
        self.assertEqual(self.server.psql("SELECT sum(errors) FROM pg_stat_prcb()")[0][0], "0")
        done = int(next(line.split()[-1] for line in output.splitlines() if "actually processed" in line).split("/")[0])
        self.assertEqual(self.row("SELECT $1 AS counted")["calls"], done)
        self.check_law()


for programs in VERSIONS:
    version = programs.split("/")[-2]
    for base in (Perf, Daemon):
        name = "%s%s" % (base.__name__, version)
        globals()[name] = type(name, (base, unittest.TestCase), {"programs": programs})

if __name__ == "__main__":
    unittest.main(verbosity=2)
