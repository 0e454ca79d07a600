#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What pg_stat_prcb costs a server that answers the shortest queries, beside pg_stat_kcache and pg_wait_sampling.

    ./dev bench postgresql [SECONDS] [ROUNDS]

pgbench -S runs against a server of its own with pg_stat_statements alone, and with one more extension, by turns.
Compared is the server's processor time for each transaction, as its parent reaps it, which other load on the machine
moves less than the rate; the rate is printed beside it. Ratios are of neighbours in time, their median is shown."""

import os
import resource
import statistics
import subprocess
import sys

sys.path[:0] = ["@TESTS@/postgresql", "@TESTS@/daemon"]
from wire import Daemon  # noqa: E402
from server import Server, versions  # noqa: E402

BUILD = "@BUILD@"


def measure(server, seconds):
    """Processor time of the server in us a transaction, and transactions a second."""
    server.start()
    result = server.run("pgbench", "-S", "-n", "-c", "2", "-T", str(seconds), *server.address()[:4], "postgres")
    client = resource.getrusage(resource.RUSAGE_CHILDREN)
    server.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    count = int(next(line.split()[-1] for line in result.stdout.splitlines() if "actually processed" in line).split("/")[0])
    spent = after.ru_utime + after.ru_stime - client.ru_utime - client.ru_stime
    return 1e6 * spent / count, count / seconds


def main(seconds="3", rounds="5"):
    programs = versions()
    if not programs:
        sys.exit("bench postgresql: no PostgreSQL with pg_config --pgxs is installed")
    daemon = Daemon(BUILD + "/src/services/daemon/prcbd") if os.geteuid() == 0 else None
    sockets = {"pg_stat_prcb, prcbd": daemon.socket} if daemon else {}
    servers = {}
    for name, preload in (("alone", []), *((name, None) for name in (*sockets, "pg_stat_prcb, perf tier")),
                          ("pg_stat_kcache", ["pg_stat_kcache"]), ("pg_wait_sampling", ["pg_wait_sampling"])):
        servers[name] = Server(programs[-1], BUILD + "/src/lib", BUILD + "/meson-uninstalled",
                               {"PRCB_SOCKET": sockets.get(name, "")}, preload or [], preload is None,
                               "pg_stat_prcb.tier = perf\n" if "perf" in name else "")
        servers[name].start()
        servers[name].run("pgbench", "-i", "-q", "-n", "-s", "5", *servers[name].address()[:4], "postgres")
        servers[name].stop()
    costs, rates = {name: [] for name in servers}, {name: [] for name in servers}
    try:
        for _ in range(int(rounds)):
            for name, server in servers.items():
                cost, rate = measure(server, int(seconds))
                costs[name].append(cost)
                rates[name].append(rate)
    finally:
        for server in servers.values():
            server.remove()
        if daemon:
            daemon.stop()
    print("%-26s %10s %10s %8s %8s" % ("pg_stat_statements and", "us/query", "queries/s", "CPU", "rate"))
    for name in servers:
        print("%-26s %10.2f %10.0f %8.3f %8.3f"
              % (name, statistics.median(costs[name]), statistics.median(rates[name]),
                 statistics.median(a / b for a, b in zip(costs[name], costs["alone"])),
                 statistics.median(a / b for a, b in zip(rates[name], rates["alone"]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
