#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The file of `prcb report --html`: one script, one style, a policy with their hashes, and data that
say the same as `prcb report -j`. The reader here is written from docs/page.md."""
import base64
import bisect
import collections
import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import unittest
import zlib

import made

HERE = os.path.dirname(os.path.abspath(__file__))
PRCB = os.path.abspath(os.environ["PRCB"])


def prcb(*args, **options):
    return subprocess.run([PRCB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=120, **options)


def numbers(data, count):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    assert len(values) == count and not shift
    return values


class Page:
    def __init__(self, text, block="data"):
        match = re.search(rf'<script type="application/octet-stream" id="{block}">([A-Za-z0-9+/=]*)</script>', text)
        self.bytes = zlib.decompress(base64.b64decode(match.group(1)), wbits=-15)
        length, = struct.unpack_from("<I", self.bytes)
        self.head = json.loads(self.bytes[4:4 + length])
        at = 4 + length
        self.columns = {}
        for name, count, size in self.head["columns"]:
            self.columns[name] = numbers(self.bytes[at:at + size], count)
            at += size
        assert at == len(self.bytes)

    def stretches(self):
        """{thread's index: [(state's index, start, end, processor)]}"""
        result, at, runs = {}, 0, iter(self.columns["stretch_cpu"])
        for thread, count in enumerate(self.columns["thread_stretches"]):
            moment, rows = 0, []
            for _ in range(count):
                state, ns = self.columns["stretch_state"][at], self.columns["stretch_ns"][at]
                cpu = next(runs) if self.head["states"][state]["kind"] == "r" else None
                rows.append((state, moment, moment + ns, cpu))
                moment += ns
                at += 1
            result[thread] = rows
        return result


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.db = os.path.join(self.folder, "made.db")

    def report(self, *args):
        result = prcb("report", *args, self.db)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def html(self, *args):
        path = os.path.join(self.folder, "page.html")
        self.report("--html", "-o", path, *args)
        with open(path, encoding="utf-8") as file:
            return file.read()


class Data(Folder):
    def test_sums_are_those_of_the_json(self):
        made.Made(self.db)
        page, report = Page(self.html()), json.loads(self.report("-j"))
        for name in ("unit", "span_ns", "samples", "weight", "complete"):
            self.assertEqual(page.head[name], report[name])
        states = page.head["states"]
        kinds, waits = {"r": "run_ns", "q": "ready_ns", "w": "wait_ns"}, collections.Counter()
        rows = {(row["pid"], row["tid"]): row for row in report["threads"]}
        for thread in page.head["threads"]:
            sums = collections.Counter()
            for state, count, ns, _ in thread["sums"]:
                sums[kinds[states[state]["kind"]]] += ns
                if states[state]["kind"] != "r":
                    key = ("ready" if states[state]["kind"] == "q" else "waiting", states[state]["cause"])
                    waits[key + ("ns",)] += ns
                    waits[key + ("count",)] += count
            row = rows.pop((thread["pid"], thread["tid"]))
            for name in kinds.values():
                self.assertEqual(sums[name], row[name])
            self.assertEqual((thread["samples"], thread["weight"]), (row["samples"], row["weight"]))
        self.assertEqual(rows, {})
        for row in report["waits"]:
            key = (row["state"], row["cause"])
            self.assertEqual((waits[key + ("ns",)], waits[key + ("count",)]), (row["ns"], row["count"]))
        self.assertEqual([{k: v for k, v in row.items() if k != "timeline"} for row in report["processors"]],
                         page.head["processors"])

    def test_timeline_is_that_of_the_recording(self):
        recording = made.Made(self.db)
        page = Page(self.html())
        kinds = {"r": "run", "q": "ready", "w": "wait"}
        for thread, rows in page.stretches().items():
            got = [(kinds[page.head["states"][state]["kind"]], start, end)
                   for state, start, end, _ in rows if state]
            wanted = [(kind, start, end) for kind, _, start, end in recording.stretches[thread + 1] if end > start]
            self.assertEqual(got, wanted)

    def test_samples_and_functions(self):
        made.Made(self.db)
        page, report = Page(self.html()), json.loads(self.report("-j"))
        callers = [0] + [i + 1 - back for i, back in enumerate(page.columns["node_caller"])]
        functions = [None] + page.columns["node_function"]
        own, total = collections.Counter(), collections.Counter()
        for node, weight in zip(page.columns["sample_node"], page.columns["sample_weight"]):
            own[functions[node] // 2] += weight
            seen = set()
            while node:
                seen.add(functions[node] // 2)
                node = callers[node]
            for function in seen:
                total[function] += weight
        got = sorted((*page.head["functions"][i], own[i], total[i]) for i in total)
        self.assertEqual(len(got), len(report["functions"]))
        marks = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
        self.assertEqual(got, sorted((marks.sub("?", row["function"]), marks.sub("?", row["file"] or ""), row["self"],
                                      row["total"]) for row in report["functions"]))

    def test_stacks_of_waits(self):
        """Rows are those of the JSON, and sum to the causes' time; those of single waits are part of them."""
        made.Made(self.db)
        page, report = Page(self.html()), json.loads(self.report("-j"))
        by_thread, by_cause, single = collections.Counter(), collections.Counter(), collections.Counter()
        columns = page.columns
        for row in zip(*(columns["wait_" + name] for name in ("thread", "state", "place", "word", "ns", "count"))):
            thread, cause = page.head["threads"][row[0]], page.head["states"][row[1]]["cause"]
            by_thread[thread["tid"], cause, row[2] % 2, page.head["words"][row[3]], row[2] > 1, row[4], row[5]] += 1
            by_cause[cause] += row[4]
        wanted = collections.Counter((row["tid"], row["cause"], int(row["kind"] == "idle"), row["rest"] or row["word"] or "",
                                      row["stack"] is not None, row["ns"], row["count"]) for row in report["wait_stacks"])
        self.assertEqual(by_thread, wanted)
        self.assertEqual(by_cause, {row["cause"]: row["ns"] for row in report["waits"] if row["state"] == "waiting"})
        places, at, idle = iter(columns["stretch_place"]), 0, set()
        for state, ns in zip(columns["stretch_state"], columns["stretch_ns"]):
            if page.head["states"][state]["kind"] == "w":
                place = next(places)
                single[place > 1] += ns
                idle |= {page.head["states"][state]["cause"]} if place % 2 else set()
                at += 1
        self.assertEqual(single[True], report["wait_known_ns"])
        # Who waits for a disk does not idle, though the stack is an event loop's.
        self.assertEqual(idle, {"epoll", "futex", "sleep", "socket"})
        self.assertEqual(sum(single.values()), report["wait_ns"])

    def test_spans(self):
        """What the recording says of each, and the JSON."""
        recording = made.Made(self.db)
        page, report = Page(self.html()), json.loads(self.report("-j"))
        shown = collections.Counter()
        for span, trace, _, _, _, ns, _ in page.head["spans"]:
            shown[trace, span] += ns
        self.assertLess(len(page.head["spans"]), 500)  # of more the longest are shown
        self.assertEqual(shown, recording.spanned)
        self.assertEqual({(row["trace_id"], row["span_id"]): row["ns"] for row in report["spans"]}, recording.spanned)
        for row in report["spans"]:
            self.assertEqual(sum(wait["ns"] for wait in row["waits"]), row["ns"])
        first = report["spans"][0]
        self.assertRegex(self.report("--table", "spans"), r"(?m)^ *[\d.]+\w+ +[\d.]+%% +%(span_id)s %(trace_id)s$" % first)
        lines = self.report("--table", "spans", "-x", ",").splitlines()
        self.assertEqual(sum(int(line.split(",")[9]) for line in lines[1:]), sum(recording.spanned.values()))

    def test_folded_timeline(self):
        """Below a size the timeline has cells; the sums of threads stay, and time is neither lost nor
        made: each thread's row is as long as before, within a cell."""
        made.Made(self.db, switches=20000, times=20)
        whole = self.html()
        limit = len(whole.encode()) * 2 // 3
        folded = self.html("--html-max", str(limit))
        self.assertLessEqual(len(folded.encode()), limit)
        page, before = Page(folded), Page(whole)
        self.assertGreater(page.head["fold_ns"], 0)
        self.assertEqual(before.head["fold_ns"], 0)
        self.assertEqual(page.head["threads"], before.head["threads"])
        self.assertEqual(sum(page.columns["sample_weight"]), page.head["weight"])
        self.assertEqual(sum(page.columns["sample_count"]), page.head["samples"])
        self.assertEqual(page.columns["run_thread"], [])
        rows = before.stretches()
        for thread, cells in page.stretches().items():
            self.assertAlmostEqual(cells[-1][2], rows[thread][-1][2], delta=page.head["fold_ns"])
            states, starts, ends, _ = zip(*rows[thread])
            for state, start, end, _ in cells:
                self.assertEqual(start % page.head["fold_ns"], 0)
                # The state of the cell is one that the thread had in it, or nothing was known.
                within = states[bisect.bisect_right(ends, start):bisect.bisect_left(starts, end)]
                self.assertTrue(state in within or not state)

    def test_without_any_timeline(self):
        made.Made(self.db, switches=20000)
        least = len(self.html("--html-max", "200k").encode())
        for size in range(110000, 200000, 5000):
            result = prcb("report", "--html", "--html-max", str(size), self.db)
            if result.returncode == 0:
                page = Page(result.stdout.decode())
                self.assertLessEqual(len(result.stdout), size)
                self.assertEqual(sum(page.columns["sample_weight"]), page.head["weight"])
        self.assertLessEqual(least, 200 * 1024)
        result = prcb("report", "--html", "--html-max", "20k", self.db)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"raise --html-max", result.stderr)

    def test_nothing_recorded(self):
        for facts in ({}, {"complete": 0}, {"switch_source": "none"}):
            with self.subTest(facts=facts):
                made.Made(self.db, switches=0, facts=facts)
                page = Page(self.html())
                self.assertEqual(page.head["has_switches"], "switch_source" not in facts)
                self.assertEqual(page.columns["sample_time"], [])
                os.unlink(self.db)

    def test_switches_that_no_record_tells_of(self):
        """Of three threads it is taken out that they came: they leave all the same, and what they did is not known."""
        made.Made(self.db, times=10, seed=5)
        self.assertEqual(json.loads(self.report("-j"))["missed_switches"], 0)
        self.assertNotIn("missed", self.report().splitlines()[0])
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            rows = [row for row, in db.execute("""SELECT a.rowid FROM switches a WHERE a.new_thread = (
                SELECT old_thread FROM switches b WHERE b.cpu = a.cpu AND b.rowid > a.rowid ORDER BY rowid LIMIT 1)""")]
            taken = [rows[len(rows) * part // 4] for part in (1, 2, 3)]
            db.executemany("UPDATE switches SET new_thread = NULL, ready_ns = NULL WHERE rowid = ?",
                           [(row,) for row in taken])
            db.commit()
        report = json.loads(self.report("-j"))
        self.assertEqual(report["missed_switches"], len(taken))
        self.assertGreater(sum(row["unknown_ns"] for row in report["threads"]), 0)
        self.assertIn(", 3 switches missed", self.report().split("\n\n")[1])


class Difference(Folder):
    def setUp(self):
        super().setUp()
        self.base = os.path.join(self.folder, "base.db")
        self.a, self.b = made.Made(self.base, times=50, seed=2), made.Made(self.db, times=80, seed=3)

    def diff(self, *args):
        return prcb("report", "--diff", *args, self.base, self.db)

    def figures(self):
        """{name: (rate in a, in b)}, ns per second, from the stretches."""
        rates = []
        for recording in (self.a, self.b):
            sums = collections.Counter()
            for thread, stretches in recording.stretches.items():
                pair = re.sub("[0-9]+", "#", recording.names[thread])
                for kind, cause, start, end in stretches:
                    kind = {"run": "running", "wait": "waiting"}.get(kind, kind)
                    for name in (kind, f"{kind}@{pair}", *([cause] if kind == "waiting" else [])):
                        sums[name] += (end - start) / recording.span * 1e9
            rates.append(sums)
        return {name: (rates[0][name], rates[1][name]) for name in rates[0] | rates[1]}

    def test_json_is_that_of_the_stretches(self):
        result = self.diff("-j")
        report, figures = json.loads(result.stdout), self.figures()
        shown = {row["name"]: row for row in report["totals"] + report["causes"]}
        shown.update({f"{row['figure']}@{row['name']}": row for row in report["threads"]})
        for name, (a, b) in figures.items():
            name = re.sub("[\x00-\x1f\x7f-\x9f\u202e\u2066]", lambda m: m.group(), name)
            if name in shown:
                self.assertAlmostEqual(shown[name]["a_per_s"], a, delta=2)
                self.assertAlmostEqual(shown[name]["b_per_s"], b, delta=2)
        self.assertLessEqual({"running", "ready", "waiting", "futex", "ready@worker-#"}, set(shown) & set(figures))
        mine, theirs = json.loads(self.report("-j")), report["functions"]
        self.assertEqual(sum(row["b"] for row in theirs), mine["weight"])

    def test_what_each_is_of(self):
        for scope, command, said in (("system", None, "the whole machine"), ("processes", None, "the processes of -p"),
                                     ("threads", None, "the threads of -t or --cgroup"), (None, None, "the recording"),
                                     ("processes", "sleep 1", "sleep 1")):
            with self.subTest(scope=scope, command=command), contextlib.closing(sqlite3.connect(self.base)) as db, db:
                db.execute("DELETE FROM facts WHERE name IN ('scope', 'command')")
                db.executemany("INSERT INTO facts(name, value) SELECT ?1, ?2 WHERE ?2 NOT NULL",
                               (("scope", scope), ("command", command)))
                db.commit()
                self.assertIn(f" of {said}, ", self.diff().stdout.decode().splitlines()[0])

    def test_conditions(self):
        """Just below and just above what the change is."""
        for name, (a, b) in self.figures().items():
            if re.sub("[a-z0-9@#-]", "", name):
                continue
            percent, ms = 100 * (b - a) / a, (b - a) / 1e6
            for condition, holds in ((f"{name}>{percent - 0.01:+.4f}%", True), (f"{name}>{percent + 0.01:+.4f}%", False),
                                     (f"{name}<{percent + 0.01:.4f}%", True), (f"{name}<{percent - 0.01:.4f}%", False),
                                     (f"{name}>{ms - 0.001:.5f}ms", True), (f"{name}>{(ms + 0.001) * 1000:+.2f}us", False)):
                with self.subTest(condition=condition):
                    result = self.diff("--fail-if", condition)
                    self.assertEqual(result.returncode, 3 if holds else 0, result.stderr)
                    self.assertEqual(b"holds" in result.stderr, holds)
                    self.assertIn(b"WAITING FOR", result.stdout)
        # A cause that neither has did not grow.
        self.assertEqual(self.diff("--fail-if", "fsync>0%").returncode, 0)
        self.assertEqual(self.diff("--fail-if", "fsync>0%", "--fail-if", "running>-99%").returncode, 3)

    def test_wrong_ones(self):
        for args in (["--fail-if", "ready"], ["--fail-if", "ready>"], ["--fail-if", ">5%"], ["--fail-if", "ready>5"],
                     ["--fail-if", "ready>nan%"], ["--fail-if", "nonsense>5%"], ["--fail-if", "ready@nobody>5%"],
                     ["--fail-if", "ready@>1%"], ["--fail-if", "@x>1%"], ["--fail-if", "x" * 500 + ">1%"],
                     ["--fail-if", "ready@" + "x" * 500 + ">1%"], ["--table", "waits"], ["--folded"]):
            with self.subTest(args=args):
                result = self.diff(*args)
                self.assertEqual((result.returncode, result.stdout), (2, b""), result.stderr)
        for args in ([self.db], [self.db, self.base, self.db]):
            self.assertEqual(prcb("report", "--diff", *args).returncode, 2)
        self.assertEqual(prcb("report", self.db, self.base).returncode, 2)
        self.assertEqual(prcb("report", "--fail-if", "ready>1%", self.db).returncode, 2)
        self.assertEqual(prcb("report", "--diff", self.db, "/dev/null").returncode, 1)

    def test_unknown_is_no_zero(self):
        """Without switches in one of them nothing is said of waits."""
        os.unlink(self.base)
        made.Made(self.base, switches=0, facts={"switch_source": "none"})
        result = self.diff()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"functions only", result.stdout)
        self.assertNotIn(b"WAITING FOR", result.stdout)
        self.assertEqual(self.diff("--fail-if", "ready>1%").returncode, 2)

    def test_text_and_lines(self):
        text = self.diff("--top", "3").stdout.decode()
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]")
        lines = self.diff("-x", ",").stdout.decode().splitlines()
        self.assertEqual(lines[0], "kind,name,figure,a,b,a_per_s,b_per_s")
        self.assertIn("total,running,,", "\n".join(lines))

    def test_page_has_both(self):
        text = self.diff("--html").stdout.decode()
        self.assertEqual(Page(text, "base").head["span_ns"], self.a.span)
        self.assertEqual(Page(text).head["span_ns"], self.b.span)


class Redacted(Folder):
    def test_no_name_is_left(self):
        recording = made.Made(self.db, facts={"host": "secrethost", "boot_id": "secretboot"},
                              names=["secret-worker", "secret-worker", "other-secret-1"])
        page = Page(self.html("--redact"))
        for word in (b"secret", b"work(int)", b"/usr/bin", b"hacked", b"made", b"syscall"):
            self.assertFalse(word in page.bytes, word)
        self.assertTrue(page.head["redacted"])
        names = [thread["name"] for thread in page.head["threads"]]
        self.assertEqual(len(set(names)), 2)
        self.assertEqual(names[0], names[1])
        for name in names:
            self.assertRegex(name, "^n[0-9a-f]{12}$")
        self.assertIn(["[unknown]", ""], page.head["functions"])
        # Another page's hashes are others: nobody can look names up.
        self.assertFalse(set(names) & {t["name"] for t in Page(self.html("--redact")).head["threads"]})
        self.assertEqual(len(recording.names), len(names))


class Viewers(Folder):
    """Formats of others, by their published descriptions: tables of one length each, indexes that exist, times
    and weights of the JSON."""

    def stretches_of(self, recording):
        return {recording.names[t]: [(kind, cause, start, end) for kind, cause, start, end in rows if end > start]
                for t, rows in recording.stretches.items()}

    def test_firefox_schema(self):
        """By a schema of the test's own, written from the profiler's types: it publishes none."""
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        with open(os.path.join(HERE, "firefox-profile-47.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        validator = jsonschema.Draft7Validator(schema)
        validator.check_schema(schema)
        for facts in ({}, {"event": "cycles"}, {"switch_source": "none"}):
            made.Made(self.db, facts=facts)
            profile = json.loads(self.report("--firefox"))
            self.assertEqual([str(error) for error in validator.iter_errors(profile)], [])
            os.unlink(self.db)
        thread = profile["threads"][0]
        for where, name, wrong in ((profile["meta"], "preprocessedProfileVersion", 48), (thread, "pid", 1),
                                   (thread["samples"], "weightType", "ns"), (thread["frameTable"], "func", [None]),
                                   (thread["stackTable"], "prefix", [-1]), (thread, "libs", [])):
            kept = where.get(name)
            where[name] = wrong
            self.assertFalse(validator.is_valid(profile), name)
            where[name] = kept
            if kept is None:
                del where[name]

    def test_firefox(self):
        recording = made.Made(self.db)
        profile, report = json.loads(self.report("--firefox")), json.loads(self.report("-j"))
        meta = profile["meta"]
        self.assertEqual(meta["preprocessedProfileVersion"], 47)
        self.assertIn("grey", [category["color"] for category in meta["categories"]])
        rows = {row["tid"]: row for row in report["threads"]}
        known = 0
        for thread in profile["threads"]:
            for name in ("samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"):
                table = thread[name]
                for column, values in table.items():
                    if isinstance(values, list):
                        self.assertEqual(len(values), table["length"], (name, column))
            stacks, frames, functions = (thread[name] for name in ("stackTable", "frameTable", "funcTable"))
            for i, prefix in enumerate(stacks["prefix"]):
                self.assertTrue(prefix is None or prefix < i)
            self.assertTrue(all(0 <= i < frames["length"] for i in stacks["frame"]))
            self.assertTrue(all(0 <= i < functions["length"] for i in frames["func"]))
            self.assertTrue(all(0 <= i < len(thread["stringArray"]) for i in functions["name"] + thread["markers"]["name"]))
            self.assertTrue(all(0 <= i < len(meta["categories"]) for i in stacks["category"] + thread["markers"]["category"]))
            self.assertTrue(all(i is None or 0 <= i < stacks["length"] for i in thread["samples"]["stack"]))
            self.assertEqual(thread["samples"]["time"], sorted(thread["samples"]["time"]))
            row = rows.pop(thread["tid"])
            self.assertEqual(thread["pid"], str(row["pid"]))
            self.assertEqual(round(sum(thread["samples"]["weight"]) * 1e6), row["weight"])
            markers = thread["markers"]
            got = [(round(start * 1e6), round(end * 1e6), data["why"]) for start, end, data in
                   zip(markers["startTime"], markers["endTime"], markers["data"])]
            wanted = [(start, end, cause or "not known") for kind, cause, start, end in
                      recording.stretches[thread["tid"] - 1000] if end > start and kind != "run"]
            self.assertEqual(got, wanted)
            self.assertTrue(all(data["type"] == "off" for data in markers["data"]))
            for start, end, data in zip(markers["startTime"], markers["endTime"], markers["data"]):
                if "cause" in data:
                    self.assertLess(data["cause"]["stack"], stacks["length"])
                    known += round((end - start) * 1e6)
        self.assertEqual(rows, {})
        self.assertAlmostEqual(known, report["wait_known_ns"], delta=len(report["wait_stacks"]) * 2)

    def test_hostile_names_and_little(self):
        made.Made(self.db)
        self.assertFalse(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
                                   self.report("--firefox")))
        os.unlink(self.db)
        made.Made(self.db, switches=0, facts={"switch_source": "none"})
        self.assertEqual(json.loads(self.report("--firefox"))["threads"], [])


class Security(Folder):
    def test_policy_has_the_hashes_of_the_only_script_and_style(self):
        made.Made(self.db)
        text = self.html()
        policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text).group(1)
        for tag in ("script", "style"):
            parts = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
            self.assertEqual(len(parts), 1)
            digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
            self.assertIn(f"{tag}-src 'sha256-{digest}'", policy)
        self.assertTrue(policy.startswith("default-src 'none';"))
        self.assertNotIn("unsafe", policy)
        self.assertLess(text.index("http-equiv"), text.index("<style>"))
        # Nothing of the recording is outside of the data.
        self.assertFalse("hacked" in text)
        self.assertEqual(re.findall(r"(?i)(?:src|href|url|@import)\s*[=(]", re.sub(r"<script>.*?</script>", "", text, flags=re.S)),
                         [])

    def test_names_have_no_controls(self):
        made.Made(self.db)
        text = json.dumps(Page(self.html()).head, ensure_ascii=False)
        self.assertTrue("</script><img src=x onerror=window.hacked=1>" in text)
        for bad in ("\u202e", "\u2066", "\x1b", "\x9b", "\\u202e", "\\u001b", "\\u009b"):
            self.assertFalse(bad in text, repr(bad))


class Arguments(Folder):
    def test_wrong_ones(self):
        made.Made(self.db)
        for args, words in ((["--html-max", "1M"], "go with --html"), (["--redact"], "go with --html"),
                            (["--html", "--html-max", "x"], "--html-max 'x'"), (["--html", "--html-max", "1X"], "1X"), (["a", "b"], "recordings are enough"),
                            (["--html", "--html-max", "0"], "--html-max '0'"), (["--html", "-j"], "--html"),
                            (["--html", "--html-max", "99999999999G"], "--html-max")):
            result = prcb("report", *args, self.db)
            with self.subTest(args=args):
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(words, result.stderr.decode())

    def test_failure_leaves_the_file(self):
        made.Made(self.db)
        path = os.path.join(self.folder, "kept.html")
        result = prcb("report", "--html", "-o", path, "/dev/null")
        self.assertEqual(result.returncode, 1)
        self.assertFalse(os.path.exists(path))
        full = prcb("report", "--html", "-o", "/dev/full", self.db)
        self.assertEqual(full.returncode, 1)
        self.assertIn(b"/dev/full", full.stderr)


if __name__ == "__main__":
    unittest.main()
