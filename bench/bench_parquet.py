#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a fleet of recordings costs in Parquet: bytes, and processor time to export, load and ask docs/fleet-sql.md's questions.

    bench/bench_parquet.py [--prcb PROGRAM] [--switches N] [--folder DIR] HOSTS...    for example: 10 40

Hosts are made up, with two templates. Questions go to DuckDB, by node and npm's @duckdb/node-api, which NODE_PATH or --modules
(the folder that has node_modules) finds; and to ClickHouse, by npm's chdb, with --chdb. Without node there are bytes alone.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cli"))
import made_recording  # noqa: E402

DUCKDB = """
import { createRequire } from 'module';
const { DuckDBInstance } = createRequire(process.argv[3] + '/x.js')('@duckdb/node-api');
const { readFileSync } = await import('fs');
const job = JSON.parse(readFileSync(process.argv[2]));
const db = await (await DuckDBInstance.create()).connect();
const out = [];
const run = async (name, sql) => {
    const began = process.cpuUsage();
    const rows = (await db.runAndReadAll(sql)).getRowsJson();
    const { user, system } = process.cpuUsage(began);
    out.push([name, (user + system) / 1e3, rows]);
};
await db.run(job.views);
await run('load', "CREATE TABLE loaded AS SELECT * FROM stretches");
await run('rows', "SELECT count(*), sum(ns) FROM loaded");
for (let i = 0; i < job.questions.length; i++) await run('question ' + (i + 1), job.questions[i].replace(/;\\s*$/, ''));
console.log(JSON.stringify(out));
"""
CHDB = """
import { createRequire } from 'module';
const { Session } = createRequire(process.argv[3] + '/x.js')('chdb');
const { readFileSync } = await import('fs');
const job = JSON.parse(readFileSync(process.argv[2]));
const db = new Session();
const out = [];
const run = (name, sql) => {
    const began = process.cpuUsage();
    const text = db.query(sql, 'JSONCompactEachRow');
    const { user, system } = process.cpuUsage(began);
    out.push([name, (user + system) / 1e3, text.trim().split('\\n').filter(x => x).map(x => JSON.parse(x))]);
};
for (const sql of job.tables) db.query(sql);
run('load', "INSERT INTO stretches SELECT * FROM file('" + job.fleet + "/stretches/*.parquet', Parquet)");
for (const table of ['frames', 'threads', 'facts'])
    db.query("INSERT INTO " + table + " SELECT * FROM file('" + job.fleet + "/" + table + "/*.parquet', Parquet)");
run('rows', "SELECT count(), sum(ns) FROM stretches");
for (let i = 0; i < job.questions.length; i++) run('question ' + (i + 1), job.questions[i].replace(/;\\s*$/, ''));
console.log(JSON.stringify(out));
"""


def questions():
    return re.findall(r"```sql\n(.*?)```", (ROOT / "docs/fleet-sql.md").read_text(encoding="utf-8"), re.S)


def statements(name):
    text = re.sub(r"--.*", "", (ROOT / "examples/fleet" / name).read_text(encoding="utf-8"))
    return [part.strip() for part in text.split(";") if part.strip()]


def ask(program, folder, fleet, modules):
    job = {"views": ";".join(statements("duckdb.sql")).replace("'fleet/", f"'{fleet}/"), "questions": questions(),
           "tables": statements("clickhouse.sql"), "fleet": str(fleet)}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    (folder / "ask.mjs").write_text(program, encoding="utf-8")
    result = subprocess.run(["node", folder / "ask.mjs", folder / "job.json", os.path.abspath(modules)], capture_output=True,
                            text=True, cwd=folder)
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def grow(args, folder, templates, fleet, hosts, before):
    """Exports hosts `before` to `hosts`; returns the processor seconds."""
    spent = -resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    for host in range(before, hosts):
        path = templates[host % len(templates)]
        with sqlite3.connect(path) as db:
            db.execute("UPDATE facts SET value = ? WHERE name = 'host'", (f"host-{host}",))
            db.execute("UPDATE facts SET value = ? WHERE name = 'boot_id'", (f"{host:08x}",))
        subprocess.run([args.prcb, "report", "--parquet", fleet, path], check=True)
    return spent + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prcb", default=str(ROOT / "build/src/tools/cli/prcb"))
    parser.add_argument("--switches", type=int, default=100000)
    parser.add_argument("--folder")
    parser.add_argument("--modules", default=os.environ.get("NODE_PATH", "."))
    parser.add_argument("--chdb", action="store_true")
    parser.add_argument("hosts", type=int, nargs="+")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="prcb-fleet-", dir=args.folder))
    try:
        templates = [folder / "a.db", folder / "b.db"]
        for seed, path in enumerate(templates):
            made_recording.make(path, args.switches, seed=seed)
        before, fleet = 0, folder / "fleet"
        for hosts in sorted(args.hosts):
            spent = grow(args, folder, templates, fleet, hosts, before)
            size = sum(path.stat().st_size for path in fleet.rglob("*.parquet"))
            print(f"{hosts} hosts: {size / hosts / 1e6:.2f} MB a host (SQLite {templates[0].stat().st_size / 1e6:.2f}), "
                  f"export {spent / (hosts - before):.2f} s of a processor a host")
            before = hosts
            for name, program in (("DuckDB", DUCKDB), ("ClickHouse", CHDB))[:1 + args.chdb]:
                if shutil.which("node"):
                    found = ask(program, folder, fleet, args.modules)
                    print(f"  {name}: " + ", ".join(f"{what} {ms:.0f} ms" for what, ms, _ in found if what != "rows"),
                          "; rows", next(rows for what, _, rows in found if what == "rows"))
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
