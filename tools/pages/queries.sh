# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# A PostgreSQL server with pg_stat_prcb behind a prcbd of its own, and four queries that are slow for different reasons:
# one computes, one waits for a heavyweight lock that another connection has, one for its commit, one runs in parallel
# workers.
cat >server.py <<'END'
import os, signal, sys
sys.path[:0] = [os.environ["TREE"] + "/tests/" + name for name in ("postgresql", "daemon")]
from server import Server, versions, wait_for
from wire import Daemon
build = os.environ["BUILD"]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
daemon = Daemon(build + "/src/services/daemon/prcbd")
server = Server(versions()[-1], build + "/src/lib", build + "/meson-uninstalled",
                {"PRCB_SOCKET": daemon.socket})
try:
    server.start()
    server.create_extension()
    server.psql("CREATE TABLE accounts AS SELECT i AS id, 100 AS balance FROM generate_series(1, 500000) i",
                "CREATE UNIQUE INDEX ON accounts (id)", "ANALYZE", "SELECT pg_stat_prcb_reset(), pg_stat_statements_reset()")
    holder = server.psql_begin("BEGIN; UPDATE accounts SET balance = 0 WHERE id = 1; SELECT pg_sleep(1); COMMIT")
    wait_for(lambda: server.psql("SELECT count(*) FROM pg_locks WHERE mode = 'RowExclusiveLock'")[0][0] != "0", "the lock")
    server.psql("UPDATE accounts SET balance = balance - 1 WHERE id = 1")
    holder.wait()
    server.psql("SELECT sum(sqrt(i)) FROM generate_series(1, 3000000) i",
                *["INSERT INTO accounts VALUES (%d, 1)" % i for i in range(1000000, 1000200)],
                "SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0",
                "SELECT count(*) FROM accounts WHERE md5(id::text) LIKE 'a%'")
    with open("where", "w") as file:
        file.write("%s %s\n" % (server.programs, server.folder + "/home"))
    os.rename("where", "ready")
    signal.pause()
finally:
    server.remove()
    daemon.stop()
END
python3 server.py &
until_it '[[ -e ready ]]'
read -r programs folder <ready
psql() { "$programs/psql" -X -h "$folder" -U postgres postgres "$@"; }
part queries
cat >slowest.sql <<'END'
SELECT calls, workers, wall_time::int AS wall, run_time::int AS run, ready_time::int AS ready, latch_time::int AS latch,
       disk_time::int AS disk, commit_time::int AS commit, left(query, 40) AS query
FROM pg_stat_prcb WHERE query ~ '^(UPDATE|INSERT|SELECT (sum|count))' ORDER BY wall_time DESC LIMIT 5
END
show "cat slowest.sql"
show "psql -f slowest.sql"
