#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The JSON that commands print is what docs/prcb.schema.json says of it, each by its "format" and
"format_version", and holds no member at its top that is not there.

    PRCB=... test_formats.py --write    adds to the schema what is missing, of what the commands print"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import made_recording

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRCB = os.environ["PRCB"]
SCHEMA = ROOT / "docs/prcb.schema.json"
STRUCT = "PROCESSOR_POWER_STATE"
# By format: the arguments of prcb, of which each is printed and has to be of that format. In the folder: a.prcb and b.prcb,
# recordings; dump, a crash dump; bytes, a structure; ds, an empty buffer.
COMMANDS = {
    "bench": ["bench -n 3 -j -- true"],
    "chain": ["why --chain -j -p SELF"],
    "cpu": ["cpu -j 0.01", "cpu --ndjson 0.01 1"],
    "diff": ["report -j --diff a.prcb b.prcb"],
    "doctor": ["doctor -j"],
    "ds": ["report -j --ds ds --format 4"],
    "dump": ["dump -j dump", "dump --ndjson dump bytes", "dump --brief -j dump"],
    "layout": [f"layout {STRUCT} -j", f"layout {STRUCT} --all -j"],
    "layout-bytes": [f"layout {STRUCT} -j --decode bytes"],
    "layout-diff": [f"layout {STRUCT} -j --diff 1809 1909"],
    "layouts": ["layout -j"],
    "lines": ["report -j --lines a.prcb"],
    "list": ["list -j"],
    "neighbours": ["neighbours -j --for 0.1"],
    "power": ["power -j 0.01"],
    "report": ["report -j a.prcb"],
    "report-brief": ["report --brief a.prcb"],
    "stat": ["stat -j -- true", "stat --ndjson -- true", "stat -j --tier perf -- true", "stat -j --per-process -- true",
             "stat -j --by-whom -- true", "stat -j --per-cgroup --by-whom -- true"],
    "stat-brief": ["stat --brief -- true"],
    "why": ["why -j --for 0.1 -- sleep 0.2", "why -j --spans --for 0.1 -- sleep 0.2"],
    "why-brief": ["why --brief --for 0.1 -- sleep 0.2"],
}
# Which take a PDB, or a recording with who woke whom: tests/dump/test_pdb.py and test_record.py read them.
ELSEWHERE = {"critical", "layout-symbols"}


def formats():
    text = (ROOT / "src/base/output/documents.def").read_text()
    return {name: int(version) for name, version in re.findall(r'DOCUMENT\(\w+, "([\w-]+)", (\d+),', text)}


def types(value):
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
             type(None): "null"}
    name = names[type(value)]
    return {name, "number"} if name == "integer" else {name}


def faults(value, schema, path=""):
    """What of JSON Schema this one uses."""
    allowed = schema.get("type")
    if allowed and not types(value) & set([allowed] if isinstance(allowed, str) else allowed):
        yield f"{path or 'the document'} is {types(value)}, not {allowed}"
    if "const" in schema and value != schema["const"]:
        yield f"{path} is {value!r}, not {schema['const']!r}"
    if isinstance(value, dict):
        yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                yield from faults(value[name], inner, f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            yield from faults(each, schema["items"], f"{path}[{index}]")


def documents(folder, command):
    words = [str(os.getpid()) if word == "SELF" else word for word in command.split()]
    result = subprocess.run([PRCB, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=60, check=False)
    if re.search("the perf tier (keeps no edges|does not read the cgroup of each thread)", result.stderr):
        return
    if not result.stdout.strip():
        raise AssertionError(f"prcb {command}: {result.stderr}")
    decoder, at, text = json.JSONDecoder(), 0, result.stdout.strip()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        yield value


def prepare(folder):
    for name in "a.prcb", "b.prcb":
        made_recording.make(folder / name, 2000)
    subprocess.run([sys.executable, ROOT / "tests/dump/mkdump.py", "-", folder / "dump"],
                   input="container = triage64\nversion = 10.0.19041\n", text=True, check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "bytes").write_bytes(bytes(4096))
    (folder / "ds").write_bytes(b"")


class Formats(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="prcb-formats-") # pylint: disable=consider-using-with
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        prepare(self.folder)

    def test_all_have_a_command_and_a_schema(self):
        schema = json.loads(SCHEMA.read_text())
        self.assertEqual(set(formats()), set(COMMANDS) | ELSEWHERE)
        self.assertEqual({f"prcb-{name}" for name in formats()}, set(schema["$defs"]))
        self.assertEqual([each["$ref"] for each in schema["oneOf"]], [f"#/$defs/prcb-{name}" for name in sorted(formats())])

    def test_documents(self):
        schemas = json.loads(SCHEMA.read_text())["$defs"]
        for name, commands in COMMANDS.items():
            for command in commands:
                with self.subTest(command):
                    for document in documents(self.folder, command):
                        self.assertEqual(list(faults(document, schemas[f"prcb-{name}"])), [])
                        self.assertEqual((document["format"], document["format_version"]), (f"prcb-{name}", formats()[name]))
                        self.assertEqual(set(document) - set(schemas[f"prcb-{name}"]["properties"]), set())


# ---- writing ----

def schema_of(values, depth):
    kinds = sorted({"integer" if "integer" in types(value) else next(iter(types(value))) for value in values})
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    result = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    inner = [value for value in values if isinstance(value, dict)]
    if inner and depth:
        names = list(dict.fromkeys(name for value in inner for name in value))
        result["required"] = [name for name in names if all(name in value for value in inner)]
        result["properties"] = {name: schema_of([value[name] for value in inner if name in value], depth - 1) for name in names}
    inner = [each for value in values if isinstance(value, list) for each in value]
    if inner and depth:
        result["items"] = schema_of(inner, depth)
    return result


def write():
    old = json.loads(SCHEMA.read_text()) if SCHEMA.exists() else {"$defs": {}}
    with tempfile.TemporaryDirectory() as folder:
        prepare(pathlib.Path(folder))
        for name, commands in COMMANDS.items():
            if f"prcb-{name}" not in old["$defs"]:
                found = [document for command in commands for document in documents(folder, command)]
                new = old["$defs"][f"prcb-{name}"] = schema_of(found, 2)
                new["properties"]["format"] = {"const": f"prcb-{name}"}
                new["properties"]["format_version"] = {"const": formats()[name]}
    for name in ELSEWHERE - {name[5:] for name in old["$defs"]}:
        old["$defs"][f"prcb-{name}"] = {"type": "object", "required": ["format", "format_version"], "properties": {
            "format": {"const": f"prcb-{name}"}, "format_version": {"const": formats()[name]}}}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "JSON that prcb prints",
            "oneOf": [{"$ref": f"#/$defs/prcb-{name}"} for name in sorted(formats())]}
    text = json.dumps(head | {"$defs": dict(sorted(old["$defs"].items()))}, indent=1)
    # Short things in one line.
    text = re.sub(r"[\[{][^\[\]{}]{0,400}?[\]}]", lambda match: re.sub(r"\n\s*", " ", match[0]), text)
    SCHEMA.write_text(text + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
