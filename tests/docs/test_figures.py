#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A figure is one row, and the outputs of prcb follow (tests/cli/test_made_up.py). Python, Prometheus and
PCP have rows of their own, with names and numbers that stay: each figure has one there, or a reason here."""
import re
import unittest

from test_documents import ROOT, figures

MADE_UP = ROOT / "tests/cli"
PYTHON = {"account": "src/python/module.c", "processor": "src/python/processors.c"}

# Why a figure has no row of its own there, or the family that has it in another form. Where there is nothing in
# Prometheus there is nothing in PCP: its metrics are made of the families.
SUM = "its parts are there, and sum to it"
LEFT_OUT = {
    ("account", "wall_ns"): {"prometheus": SUM},
    ("account", "wait_ns"): {"prometheus": "prcb_system_thread_seconds"},
    ("account", "waits"): {"prometheus": "prcb_system_wait_seconds"},
    ("account", "open_ns"): {"python": "open has it, with its cause",
                             "prometheus": "counted into the waits as far as they go"},
    ("account", "switches"): {"prometheus": "prcb_system_switches"},
    ("account", "voluntary_switches"): {"prometheus": "prcb_cgroup_context_switches"},
    ("account", "tsc_cycles"): {"prometheus": "run time in another unit, with no meaning over processors that differ"},
    ("account", "missed_switches"): {"prometheus": "prcb_missed_switches"},
    ("account", "unclear_wakes"): {"prometheus": "a mark on the waits of one session, too small for a graph"},
    ("account", "interrupted_ns"): {"prometheus": "asked for by sessions that the exporter does not open"},
    ("processor", "wall_ns"): {"prometheus": SUM},
    ("processor", "idle_states"): {"prometheus": "prcb_cpu_idle_state_seconds"},
    ("processor", "max_mhz"): {"prometheus": "a constant: the ratios are of it"},
    ("processor", "min_mhz"): {"prometheus": "a constant"},
    ("processor", "nominal_mhz"): {"prometheus": "a constant"},
    ("processor", "tid"): {"prometheus": "of one moment: who runs is no figure of a minute"},
    ("processor", "idle_state"): {"prometheus": "of one moment: prcb_cpu_idle_state_seconds has the times"},
    ("processor", "running_ns"): {"prometheus": "of one moment"},
}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def families():
    """{name: (what makes its samples, of what)} of our own families."""
    return {name: (emit, what) for name, emit, what in re.findall(
        r'(?m)^F\("(prcb_\w+)", \w+, \w+, PRCB, \w+, (\w+), ([^"]+?), "', read("src/analysis/metrics/families.def"))}


def families_of(kind, row):
    token = re.compile(rf"\b{'ACCOUNT' if kind == 'account' else 'PROCESSOR_ROW'}_{row['name']}\b")
    return {name for name, (emit, what) in families().items()
            if token.search(what) or (emit == "emit_modes" and kind == "processor" and row["kind"] == "part")}


def in_pcp(row, names):
    """Metrics of PCP: the whole family, or the mode that is the figure's."""
    found = re.findall(r'(?m)^R\(\w+, \d+, "[\w.]+", "(\w+)", (?:NULL|"(\w+|\*)"), (?:NULL|"(\w+)")',
                       read("src/services/pmda/rows.def"))
    mode = {"dpc_ns": "softirq"}.get(row["name"], row["name"].removesuffix("_ns"))
    return any(family in names and label != "*" and (label != "mode" or value == mode) for family, label, value in found)


def missing(kind, row):
    """The places that lack a figure, each with what to add."""
    names = families_of(kind, row)
    places = {}
    if not re.search(rf'{{"{row["name"]}", FIELD_', read(PYTHON[kind])) or \
            not re.search(rf'\b{row["name"]}\b', read("src/python/prcb/_prcb.pyi")):
        places["python"] = f"a row in {PYTHON[kind]} and a line in src/python/prcb/_prcb.pyi"
    if not names:
        places["prometheus"] = "a row in src/analysis/metrics/families.def"
    elif not in_pcp(row, names):
        places["pcp"] = "a row in src/services/pmda/rows.def"
    return places


class Figures(unittest.TestCase):
    def test_each_is_in_python_prometheus_and_pcp(self):
        known = families()
        self.assertGreater(len(known), 40)
        for kind in PYTHON:
            for row in figures(kind):
                lacks, reasons = missing(kind, row), LEFT_OUT.get((kind, row["name"]), {})
                with self.subTest(figure=f"{row['name']} of {kind}s"):
                    self.assertEqual({place: what for place, what in lacks.items() if place not in reasons}, {},
                                     "add it, or the reason to LEFT_OUT of tests/docs/test_figures.py")
                    self.assertEqual(set(reasons) - set(lacks), set(), "it is there: LEFT_OUT has no reason to name it")
                    for reason in reasons.values():
                        if reason.startswith("prcb_"):
                            self.assertIn(reason, known)

    def test_reasons_are_of_figures(self):
        rows = {(kind, row["name"]) for kind in PYTHON for row in figures(kind)}
        self.assertEqual(set(LEFT_OUT) - rows, set())

    def test_made_up_figures_are_missing(self):
        """Those of test_made_up.py are nowhere: the test above would name each place."""
        text = {kind: (MADE_UP / f"made_up_{kind}.def").read_text() for kind in PYTHON}
        rows = {kind: re.findall(r"(?m)^(COUNTER|PART)\((\w+),", text[kind]) for kind in PYTHON}
        self.assertEqual(len(rows["account"]) + len(rows["processor"]), 5)
        for kind, found in rows.items():
            for what, name in found:
                lacks = missing(kind, {"name": name, "kind": what.lower()})
                # A part of a processor's time is a mode of Prometheus by itself, but not a metric of PCP.
                self.assertEqual(set(lacks), {"python", "pcp" if what == "PART" else "prometheus"}, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
