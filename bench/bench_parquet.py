#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a fleet of recordings costs in Parquet: bytes, and processor time to export, load and ask docs/fleet-sql.md's questions.

    bench/bench_parquet.py [--prcb PROGRAM] [--switches N] [--folder DIR] HOSTS...    for example: 10 40

Hosts are made up: eight are exported, of as many seeds, and the others are copies of their files in which the names of host and
recording, which have one length, are others. Questions go to DuckDB, by node and npm's @duckdb/node-api, which NODE_PATH or --modules
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

TEMPLATES, HOST, BOOT = 8, "host-%04d", "%08x"
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cli"))
import made_recording  # noqa: E402

DUCKDB = """
import { createRequire } from 'module';
const { DuckDBInstance } = createRequire(process.argv[3] + '/x.js')('@duckdb/node-api');
const { readFileSync } = await import('fs');
const job = JSON.parse(readFileSync(process.argv[2]));
const db = await (await DuckDBInstance.create(job.database, { memory_limit: '6GB', threads: '2', preserve_insertion_order: 'false' })).connect();
const out = [];
const run = async (name, sql) => {
    const began = process.cpuUsage();
    const rows = (await db.runAndReadAll(sql)).getRowsJson();
    const { user, system } = process.cpuUsage(began);
    out.push([name, (user + system) / 1e3, rows]);
};
await db.run(job.views);
await run('load', "CREATE TABLE loaded AS SELECT * FROM stretches");
await run('rows', "SELECT count(*), sum(ns), count(DISTINCT host), count(DISTINCT recording) FROM loaded");
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
           "tables": statements("clickhouse.sql"), "fleet": str(fleet), "database": str(folder / "fleet.duckdb")}
    (folder / "fleet.duckdb").unlink(missing_ok=True)
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    (folder / "ask.mjs").write_text(program, encoding="utf-8")
    result = subprocess.run(["node", folder / "ask.mjs", folder / "job.json", os.path.abspath(modules)], capture_output=True,
                            text=True, cwd=folder)
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def export(args, folder):
    """Exports the templates; returns what was written, as {table: [bytes of each]}, and the processor seconds of one."""
    path, out = folder / "a.db", folder / "templates"
    spent = -resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    for seed in range(TEMPLATES):
        path.unlink(missing_ok=True)
        made_recording.make(path, args.switches, host=HOST % seed, boot=BOOT % seed + "-x", seed=seed)
        subprocess.run([args.prcb, "report", "--parquet", out, path], check=True)
    spent += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    return {table.name: [file.read_bytes() for file in sorted(table.iterdir())] for table in out.iterdir()}, spent / TEMPLATES


def grow(templates, fleet, before, hosts):
    """Writes the files of hosts `before` to `hosts`. Dictionaries have a name once, as it is, and ends of files twice."""
    for table, files in templates.items():
        (fleet / table).mkdir(parents=True, exist_ok=True)
        for host in range(before, hosts):
            seed = host % TEMPLATES
            data = files[seed]
            for name in (HOST, BOOT):
                if not data.count((name % seed).encode()):
                    sys.exit(f"bench_parquet: {table} does not have the name {name % seed} as it is")
                data = data.replace((name % seed).encode(), (name % host).encode())
            (fleet / table / f"{BOOT % host}.parquet").write_bytes(data)


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
        templates, spent = export(args, folder)
        before, fleet = 0, folder / "fleet"
        for hosts in sorted(args.hosts):
            grow(templates, fleet, before, hosts)
            size = sum(path.stat().st_size for path in fleet.rglob("*.parquet"))
            print(f"{hosts} hosts: {size / hosts / 1e6:.2f} MB a host (SQLite {(folder / 'a.db').stat().st_size / 1e6:.2f}), "
                  f"export {spent:.2f} s of a processor a host")
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
