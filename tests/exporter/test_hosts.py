#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A hundred made-up hosts, replayed: the shipped rules name the containers that something is wrong with, and no others.

Each host's threads grow by a constant rate, so two readings of a replay tell the series between; promtool evaluates the
rules over all of them. Nothing is measured, nothing waits."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

PRCB = os.environ["PRCB"]
RULES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples/prometheus/prcb-rules.yml")
S = 10 ** 9
HOSTS = 100
MINUTES = 20
PER_MINUTE = 60 * S
CGROUPS = {"1": "/web", "2": "/batch", "3": "/db"}
# Of each minute, in hundredths: of the web's two threads. A host has one of these by its number.
FINE = {"ready": 10, "behind": 5, "throttled": 2}
STARVED = {"ready": 120, "behind": 110, "throttled": 0}
SELF = {"ready": 120, "behind": 0, "throttled": 0}
THROTTLED = {"ready": 10, "behind": 2, "throttled": 120}


def kind_of(host):
    return STARVED if host % 14 == 3 else THROTTLED if host % 20 == 5 else SELF if host % 25 == 8 else FINE


def look(host, minutes):
    """What the exporter of a host reads after so many minutes."""
    kind, base = kind_of(host), 1000 * host

    def parts(hundredths):
        return hundredths * minutes * PER_MINUTE // 100
    accounts = []
    for thread in (1, 2):
        ready, behind = parts(kind["ready"]) // 2, parts(kind["behind"]) // 2
        own = (ready - behind) // 2
        accounts.append({"key": base + thread, "tid": base + thread, "pid": base + 1, "comm": "web", "cgroup": 1, "ready_ns": ready,
                         "run_ns": parts(60) // 2, "waits": {"throttled": [10 * minutes, parts(kind["throttled"]) // 2]},
                         "meanwhile": [[2, behind, "cgroup"], [1, own, "cgroup"]]})
    accounts.append({"key": base + 3, "tid": base + 3, "pid": base + 3, "comm": "batch", "cgroup": 2, "ready_ns": parts(10), "run_ns": parts(80),
                     "waits": {"sleep": [1, parts(1)]}, "meanwhile": [[3, parts(6), "cgroup"]]})
    accounts.append({"key": base + 4, "tid": base + 4, "pid": base + 4, "comm": "db", "cgroup": 3, "ready_ns": parts(5), "run_ns": parts(20),
                     "waits": {"sleep": [1, parts(75)]}, "meanwhile": [[2, parts(4), "cgroup"]]})
    return {"ms": 0, "accounts": accounts, "cgroups": CGROUPS}


def series(text):
    """The values of a page that the rules read, in nanoseconds, by series."""
    lines = (line.rpartition(" ") for line in text.splitlines()
             if line.startswith(("prcb_cgroup_run_", "prcb_cgroup_ready_", "prcb_cgroup_throttled_")))
    return {name: round(float(value) * S) for name, _, value in lines}


class Hosts(unittest.TestCase):
    def page(self, folder, host, minutes):
        path = os.path.join(folder, f"{host}-{minutes}")
        with open(path, "w", encoding="ascii") as file:
            json.dump(look(host, minutes), file)
        return series(subprocess.run([PRCB, "export", "--replay", path, "--by-whom"], stdout=subprocess.PIPE, text=True, timeout=60,
                                     check=True).stdout)

    def test_rules_name_who_is_starved_and_who_is_throttled(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        inputs, expected = [], {"PrcbCgroupStarvedByNeighbour": [], "PrcbCgroupStarved": [], "PrcbCgroupThrottled": []}
        with tempfile.TemporaryDirectory() as folder:
            for host in range(HOSTS):
                first, last = self.page(folder, host, 1), self.page(folder, host, MINUTES)
                self.assertEqual(first.keys(), last.keys())
                for cgroup in CGROUPS.values():
                    parts = sum(value for name, value in last.items()
                                if f'{{cgroup="{cgroup}"' in name and ("ready_behind" in name or "ready_open" in name))
                    self.assertEqual(parts, last[f'prcb_cgroup_ready_seconds_total{{cgroup="{cgroup}"}}'])
                for name, value in last.items():
                    rate = (value - first[name]) // (MINUTES - 1)
                    self.assertEqual(rate * MINUTES, value, name)
                    labelled = name.replace("{", f'{{instance="host{host:02}",')
                    inputs.append({"series": labelled, "values": f"0+{rate / S}x{MINUTES + 10}"})
                for alert, wrong in (("PrcbCgroupStarvedByNeighbour", kind_of(host) is STARVED),
                                     ("PrcbCgroupStarved", kind_of(host) in (STARVED, SELF)),
                                     ("PrcbCgroupThrottled", kind_of(host) is THROTTLED)):
                    if wrong:
                        labels = {"severity": "warning", "instance": f"host{host:02}", "cgroup": "/web"}
                        expected[alert].append({**labels, **({"by": "/batch"} if "Neighbour" in alert else {})})
            annotations = {
                "PrcbCgroupStarvedByNeighbour": {"summary": "/batch has the processors while 1.1 threads of /web are ready",
                                                 "runbook": "docs/alert-starved.md"},
                "PrcbCgroupStarved": {"summary": "threads of /web wait longer for a processor than they run", "runbook": "docs/alert-starved.md"},
                "PrcbCgroupThrottled": {"summary": "a CPU quota takes 63.16% of the time in which /web wants to run",
                                        "runbook": "docs/alert-throttled.md"}}
            tests = [{"eval_time": f"{MINUTES}m", "alertname": alert,
                      "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations[alert]} for labels in rows]}
                     for alert, rows in expected.items()]
            self.assertEqual([len(rows) for rows in expected.values()], [7, 11, 4])
            path = os.path.join(folder, "test.yml")
            with open(path, "w", encoding="ascii") as file:  # JSON is YAML
                json.dump({"rule_files": [RULES], "evaluation_interval": "1m",
                           "tests": [{"interval": "1m", "input_series": inputs, "alert_rule_test": tests}]}, file)
            result = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual(result.returncode, 0, (result.stdout + result.stderr)[-3000:])
            print(f"    {HOSTS} hosts, {len(inputs)} series")


if __name__ == "__main__":
    unittest.main()
