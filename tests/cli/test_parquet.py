#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb report --parquet: what is written, read by the format's description (a reader of this file's own, and libzstd),
adds up to what prcb report -j says of the same recording. The recordings are made up."""
import ctypes
import ctypes.util
import glob
import json
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import tarfile
import tempfile
import unittest

import made_recording
import test_push

PRCB = os.environ.get("PRCB", "prcb")
ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t


# ---- Thrift's compact protocol and Parquet's pages, as their documentation has them ---------------------------------

class Thrift:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def integer(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self.integer()
        if kind == 8:
            size = self.varint()
            self.at += size
            return self.data[self.at - size:self.at]
        if kind == 9:
            head = self.data[self.at]
            self.at += 1
            count = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15) for _ in range(count)]
        assert kind == 12, kind
        return self.struct()

    def struct(self):
        found, last = {}, 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if not head:
                return found
            assert head >> 4, "fields are near each other here"
            last += head >> 4
            found[last] = self.value(head & 15)


def unpack(page, size, codec):
    if codec == 0:
        return page
    assert codec == 6, codec
    out = ctypes.create_string_buffer(size)
    assert ZSTD.ZSTD_decompress(out, ctypes.c_size_t(size), page, ctypes.c_size_t(len(page))) == size
    return out.raw


def hybrid(data, bits, count):
    """Runs of equal numbers, and of packed ones."""
    reader, found = Thrift(data), []
    while len(found) < count:
        head = reader.varint()
        if head & 1:
            size = (head >> 1) * bits
            word = int.from_bytes(data[reader.at:reader.at + size], "little")
            reader.at += size
            found += [word >> i * bits & (1 << bits) - 1 for i in range((head >> 1) * 8)]
        else:
            found += [data[reader.at]] * (head >> 1)
            reader.at += 1
    return found[:count]


class Parquet:
    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        assert self.data[:4] == self.data[-4:] == b"PAR1"
        size = struct.unpack("<I", self.data[-8:-4])[0]
        self.end = Thrift(self.data, len(self.data) - 8 - size).struct()
        assert self.end[2][0][5] == len(self.end[2]) - 1
        self.names = [element[4].decode() for element in self.end[2][1:]]
        self.kinds = {element[4].decode(): element for element in self.end[2][1:]}
        assert sum(group[3] for group in self.end[4]) == self.end[3]

    def page(self, at, codec):
        reader = Thrift(self.data, at)
        head = reader.struct()
        body = self.data[reader.at:reader.at + head[3]]
        return head, unpack(body, head[2], codec), reader.at + head[3]

    def chunk(self, group, name):
        """The values of a column in a row group; what the end of the file says of it is checked."""
        meta = group[1][self.names.index(name)][3]
        assert meta[3] == [name.encode()] and meta[1] == self.kinds[name][1]
        words, at = [], meta.get(11, meta[9])
        if 11 in meta:
            head, body, at = self.page(at, meta[4])
            assert (head[1], head[7][2]) == (2, 0)
            place = 0
            for _ in range(head[7][1]):
                size = struct.unpack_from("<I", body, place)[0]
                words.append(body[place + 4:place + 4 + size])
                place += 4 + size
            assert place == len(body)
        assert at == meta[9]
        head, body, at = self.page(at, meta[4])
        assert at - meta.get(11, meta[9]) == meta[7]
        assert head[1] == 0 and head[5][1] == meta[5] == group[3] and head[5][2] == (8 if words or 11 in meta else 0)
        size = struct.unpack_from("<I", body)[0]
        there = hybrid(body[4:4 + size], 1, meta[5])
        count, body = sum(there), body[4 + size:]
        assert meta[12][3] == meta[5] - count
        if 11 in meta:
            values = [words[place] for place in hybrid(body[1:], body[0], count)]
        else:
            values = list(struct.unpack(f"<{count}q", body))
        if values and 5 in meta[12]:
            convert = (lambda b: b) if 11 in meta else (lambda b: struct.unpack("<q", b)[0])
            assert (min(values), max(values)) == (convert(meta[12][6]), convert(meta[12][5]))
        if 11 in meta:
            values = [value.decode() for value in values]
        values = iter(values)
        return [next(values) if is_there else None for is_there in there]

    def column(self, name):
        return [value for group in self.end[4] for value in self.chunk(group, name)]

    def rows(self):
        return [dict(zip(self.names, values)) for values in zip(*(self.column(name) for name in self.names))]


class Exported(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = self.folder + "/r.db"
        self.fleet = self.folder + "/fleet"

    def prcb(self, *args, status=0):
        result = subprocess.run([PRCB, "report", *args], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout + result.stderr

    def read(self, table):
        return [row for path in sorted(glob.glob(f"{self.fleet}/{table}/*.parquet")) for row in Parquet(path).rows()]

    def test_sums_and_rows(self):
        """Two hosts in one folder."""
        sums = {}
        for number in (1, 2):
            os.path.exists(self.path) and os.unlink(self.path)
            made_recording.make(self.path, 3000, host=f"host-{number}", boot=f"{number}abc-def", seed=number)
            self.assertEqual(self.prcb("--parquet", self.fleet, self.path), "")
            for row in json.loads(self.prcb("-j", self.path))["waits"]:
                key = f"host-{number}", row["state"], row["cause"]
                sums[key] = sums.get(key, 0) + row["ns"]
        found = {}
        stretches = self.read("stretches")
        for row in stretches:
            self.assertEqual(row["ended"] - row["began"], row["ns"])
            if row["state"] != "running":
                key = row["host"], row["state"], row["cause"]
                found[key] = found.get(key, 0) + row["ns"]
        self.assertEqual(found, sums)
        # Each wait that was in a span says so, and no other row does.
        spans = [(row["began"] + 1, row["thread"], row["trace_id"], row["span_id"])
                 for row in stretches if row["host"] == "host-2" and row["span_id"]]
        with sqlite3.connect(self.path) as db:
            self.assertEqual(sorted(spans), sorted(
                (ns + 1700000000 * 10**9 - 10**10, *more) for ns, *more in
                db.execute("SELECT time_ns, thread, trace_id, span_id FROM wait_stacks WHERE span_id NOT NULL")))
        self.assertGreater(len(spans), 10)
        self.assertEqual({row["process"] for row in stretches}, {"web-0", "worker-0", "db-0", "cron-0"})
        with sqlite3.connect(self.path) as db:
            self.assertEqual([(row["time"] - 1700000000 * 10**9 + 10**10, row["old_thread"], row["cause"], row["ready_ns"])
                              for row in self.read("switches") if row["host"] == "host-2"],
                             db.execute("SELECT time_ns, old_thread, cause, ready_ns FROM switches").fetchall())
            waits = db.execute("SELECT DISTINCT stack FROM wait_stacks").fetchall()
        frames = [row for row in self.read("frames") if row["host"] == "host-2"]
        self.assertEqual({row["stack"] for row in frames}, {stack for stack, in waits})
        self.assertLessEqual({row["stack"] for row in stretches if row["host"] == "host-2" and row["stack"]},
                             {row["stack"] for row in frames})
        # Eight frames each, the innermost first: stack 8 is what stack 1 has called.
        self.assertEqual([row["function"] for row in frames if row["stack"] == 8],
                         list(reversed(made_recording.FUNCTIONS)))
        self.assertEqual(sorted(os.listdir(self.fleet)), ["facts", "frames", "stretches", "switches", "threads"])
        self.assertEqual(sorted(os.listdir(self.fleet + "/facts")), ["1abc-2540be400.parquet", "2abc-2540be400.parquet"])

    def test_files_of_earlier_versions(self):
        """Without wakers and spans, whose columns they have not: the rest is what it was."""
        made_recording.make(self.path, 2000)
        self.prcb("--parquet", self.fleet, self.path)
        before = {table: self.read(table) for table in ("stretches", "switches", "frames")}
        with sqlite3.connect(self.path) as db:
            for column in ("trace_id", "span_id"):
                db.execute(f"ALTER TABLE wait_stacks DROP COLUMN {column}")
            for column in ("waker", "woken_ns", "woken_cpu"):
                db.execute(f"ALTER TABLE switches DROP COLUMN {column}")
            db.execute("DROP TABLE wakers")
        self.prcb("--parquet", self.fleet, self.path)
        for row in before["stretches"]:
            row["trace_id"] = row["span_id"] = None
        self.assertEqual({table: self.read(table) for table in before}, before)

    def test_groups_are_sorted(self):
        made_recording.make(self.path, 56000)
        self.prcb("--parquet", self.fleet, self.path)
        path, = glob.glob(self.fleet + "/stretches/*")
        file = Parquet(path)
        self.assertEqual([group[3] for group in file.end[4]][0], 131072)
        self.assertGreater(len(file.end[4]), 1)
        before = 0
        for group in file.end[4]:
            ended, began, ns = (file.chunk(group, name) for name in ("ended", "began", "ns"))
            self.assertTrue(all(a <= b for a, b in zip(ended, ended[1:])))
            self.assertTrue(all(a - b == c for a, b, c in zip(ended, began, ns)))
            self.assertGreater(ended[-1], before)
            before = ended[-1]
            self.assertEqual(set(file.chunk(group, "host")), {"host-1"})
            self.assertEqual(group[4], [{1: file.names.index("ended"), 2: False, 3: False}])
        self.assertEqual(file.kinds["ended"][10], {8: {1: True, 2: {3: {}}}})
        self.assertEqual((file.kinds["cause"][10], file.kinds["cause"][6]), ({1: {}}, 0))

    def test_questions_of_the_page(self):
        """docs/fleet-sql.md's, by SQLite; what some of them answer, in Python."""
        for number in (1, 2):
            os.path.exists(self.path) and os.unlink(self.path)
            made_recording.make(self.path, 1500, host=f"host-{number}", boot=f"{number}a", seed=number)
            self.prcb("--parquet", self.fleet, self.path)
        db = sqlite3.connect(":memory:")
        tables = {}
        for table in ("stretches", "frames", "threads", "facts"):
            rows = tables[table] = self.read(table)
            for row in rows if table == "stretches" else ():
                row["minute"] = row["ended"] // 60000000000
            db.execute(f"CREATE TABLE {table}({', '.join(rows[0])})")
            db.executemany(f"INSERT INTO {table} VALUES({', '.join('?' * len(rows[0]))})", [tuple(r.values()) for r in rows])
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/fleet-sql.md").read_text(encoding="utf-8")
        answers = [db.execute(question).fetchall() for question in re.findall(r"```sql\n(.*?)```", page, re.S)]
        db.close()
        self.assertEqual(len(answers), 10)
        self.assertTrue(all(answers[:9]))
        waits = {}
        for row in tables["stretches"]:
            if row["state"] == "waiting":
                waits[row["cause"]] = waits.get(row["cause"], 0) + row["ns"]
        self.assertEqual([(cause, ms) for cause, ms, _, _ in answers[0]],
                         sorted(((cause, ns // 1000000) for cause, ns in waits.items()), key=lambda r: -r[1]))
        locks = sum(row["ns"] for row in tables["stretches"] if row["stack"] and row["cause"] == "futex")
        self.assertAlmostEqual(sum(ms for _, _, ms, _ in answers[1]), locks / 1e6, delta=len(answers[1]))
        self.assertEqual([row for row in answers[3] if row[3] < answers[3][-1][3]], [])
        self.assertEqual({host for host, _, _ in answers[4]}, {"host-1", "host-2"})
        self.assertEqual(sum(times for _, times, _ in answers[6]), sum(r["state"] == "ready" for r in tables["stretches"]))

    def test_traces_have_the_wall_clock(self):
        """By it Perfetto merges traces of several hosts. Without the exact fact it is the second that the recording has."""
        def clocks():
            data = subprocess.run([PRCB, "report", "--perfetto", self.path], capture_output=True, timeout=60).stdout
            if not data:
                self.skipTest("built without protobuf-c")
            for packet in test_push.fields(data)[1]:
                for snapshot in test_push.fields(packet).get(6, []):
                    rows = [test_push.fields(row) for row in test_push.fields(snapshot)[1]]
                    return {row[1][0]: row[2][0] for row in rows}
        made_recording.make(self.path, 10)
        self.assertEqual(clocks(), {3: 10**10, 6: 10**10, 1: 1700000000 * 10**9})
        for row, wall in (("UPDATE facts SET name = 'started', value = '2026-11-27T10:00:00Z' WHERE name = 'wall_ns'",
                           1795773600 * 10**9), ("DELETE FROM facts WHERE name = 'started'", None)):
            with sqlite3.connect(self.path) as db:
                db.execute(row)
            self.assertEqual(clocks().get(1), wall)

    def test_slices_of_traces_have_their_spans(self):
        made_recording.make(self.path, 3000)
        data = subprocess.run([PRCB, "report", "--perfetto", self.path], capture_output=True, timeout=60).stdout
        if not data:
            self.skipTest("built without protobuf-c")
        found = []
        for packet in map(test_push.fields, test_push.fields(data)[1]):
            for event in map(test_push.fields, packet.get(11, [])):
                notes = {row[10][0]: row[6][0] for row in map(test_push.fields, event.get(4, []))}
                if b"span_id" in notes:
                    found.append((packet[8][0] + 1, notes[b"trace_id"].decode(), notes[b"span_id"].decode()))
        with sqlite3.connect(self.path) as db:
            self.assertEqual(sorted(found), sorted(db.execute(
                "SELECT time_ns, trace_id, span_id FROM wait_stacks WHERE span_id NOT NULL")))

    def test_waits_are_samples(self):
        """Of traces: with their stacks, the outermost frame first, and weights that sum to the time of waits."""
        made_recording.make(self.path, 3000)
        data = subprocess.run([PRCB, "report", "--perfetto", self.path], capture_output=True, timeout=60).stdout
        if not data:
            self.skipTest("built without protobuf-c")
        names, frames, sums = {}, {}, {}
        for packet in map(test_push.fields, test_push.fields(data)[1]):
            for interned in map(test_push.fields, packet.get(12, [])):
                names.update((row[1][0], row[2][0].decode()) for row in map(test_push.fields, interned.get(5, [])))
                frames.update((row[1][0], row[2][0]) for row in map(test_push.fields, interned.get(6, [])))
            for sample in map(test_push.fields, packet.get(135, [])):
                stack = tuple(names[frames[iid]] for iid in test_push.packed(test_push.fields(sample[5][0]), 2))
                sums[stack] = sums.get(stack, 0) + sample[11][0]
        report = json.loads(self.prcb("-j", self.path))
        self.assertEqual(sum(sums.values()), sum(row["ns"] for row in report["waits"] if row["state"] == "waiting"))
        stacks = [made_recording.FUNCTIONS[:n] for n in range(1, 9)]
        self.assertLessEqual(set(sums) - {("[too short]",)}, set(stacks))
        rows = [row for row in self.stretches() if row["stack"]]
        self.assertEqual(sum(ns for stack, ns in sums.items() if stack != ("[too short]",)), sum(row["ns"] for row in rows))

    def stretches(self):
        self.prcb("--parquet", self.fleet, self.path)
        return self.read("stretches")

    def test_archive_of_several_hosts(self):
        """By Python's tarfile: each trace as it is alone, and a manifest that names the machines."""
        hosts = ("a\x1b\"é", "twice", "twice", "")
        paths = []
        for number, host in enumerate(hosts):
            paths.append(f"{self.folder}/{number}.db")
            made_recording.make(paths[-1], 50, host=host, boot=f"{number}0abcdef0123-def", seed=number)
        archive = self.folder + "/all.tar"
        said = subprocess.run([PRCB, "report", "--perfetto", "-o", archive, *paths], capture_output=True, text=True, timeout=60)
        if "built without" in said.stderr:
            self.skipTest("built without protobuf-c")
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        with tarfile.open(archive, "r:") as file:
            members = {member.name: file.extractfile(member).read() for member in file.getmembers() if member.isfile()}
            self.assertEqual(len(file.getmembers()), 5)
        manifest = json.loads(members.pop("perfetto_manifest.json"))["perfetto_manifest"]
        names = [row["path"] for row in manifest["files"]]
        self.assertEqual(manifest["version"], 1)
        self.assertEqual(manifest["trace_time"], {"clock": "REALTIME", "file": names[0]})
        self.assertEqual(names, list(members))
        self.assertEqual([row["machine"]["name"] for row in manifest["files"]],
                         ["a\x1b\"é", "twice (boot 10abcdef)", "twice (boot 20abcdef)", names[3]])
        for name, path in zip(names, paths):
            self.assertEqual(members[name], subprocess.run([PRCB, "report", "--perfetto", path], capture_output=True,
                                                           timeout=60, check=True).stdout)
        self.assertEqual(subprocess.run(["tar", "tf", archive], capture_output=True, text=True, check=True).stdout.split(),
                         [*names, "perfetto_manifest.json"])
        self.assertIn("given twice", self.prcb("--perfetto", "-o", archive, paths[0], paths[0], status=1))
        self.assertIn("is a recording itself", self.prcb("--perfetto", "-o", paths[1], *paths, status=1))
        with sqlite3.connect(paths[0]) as db:
            db.execute("DELETE FROM facts WHERE name = 'wall_ns'")
        self.assertIn("time of day", self.prcb("--perfetto", "-o", archive, *paths, status=1))

    def test_hostile(self):
        names = ["../../x\x1b[31m", "a,\"b'\n", "\u202e", "x" * 200]
        made_recording.make(self.path, 500, host="../h\x1b", boot="../../../etc", names=names)
        with sqlite3.connect(self.path) as db:
            db.execute("UPDATE threads SET name = CAST(x'ff41' AS TEXT) WHERE id = 3")
            db.execute("UPDATE switches SET cause = 7, time_ns = time_ns WHERE rowid = 5")
        self.prcb("--parquet", self.fleet, self.path)
        self.assertEqual(sorted(os.listdir(self.folder)), ["fleet", "r.db"])
        for table in os.listdir(self.fleet):
            for path in os.listdir(f"{self.fleet}/{table}"):
                self.assertRegex(path, r"^[0-9a-f]+-[0-9a-f]+\.parquet$")
        self.assertIn("?A", {row["name"] for row in self.read("threads")})
        self.assertEqual({row["host"] for row in self.read("stretches")}, {"../h\x1b"})

    def test_mistakes(self):
        made_recording.make(self.path, 10)
        self.assertIn("r.db", self.prcb("--parquet", self.path, self.path, status=1))
        self.assertIn("goes with recordings alone", self.prcb("--parquet", self.fleet, "-o", "x", self.path, status=2))
        self.assertIn("empty", self.prcb("--parquet", "", self.path, status=2))
        self.assertFalse(os.path.exists(self.fleet))
        os.makedirs(self.fleet + "/threads")
        os.chmod(self.fleet + "/threads", 0o500)
        if os.geteuid():
            self.assertIn("threads", self.prcb("--parquet", self.fleet, self.path, status=1))
        self.prcb("--parquet", self.fleet, self.path, status=0 if not os.geteuid() else 1)
        self.assertEqual([name for name in glob.glob(self.fleet + "/*/*") if re.search(r"\.part$", name)], [])


if __name__ == "__main__":
    unittest.main()
