#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pmdaprcb under PCP's own programs: dbpmda, pmcd and pminfo, pmlogger, pmrep, pmproxy, Redis. As
root it takes the bpf tier, and as nobody a prcbd of the test's own.

PMDA, PMNS, PRCBD name what was built; PCP_ROOT the unpacked package pcp."""
import collections
import csv
import decimal
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "daemon"), str(pathlib.Path(__file__).parent)]

import pcp  # noqa: E402

AGENT, PMNS, PRCBD = os.environ["PMDA"], os.environ["PMNS"], os.environ.get("PRCBD", "")
FILES = ROOT / "src/services/pmda"
NS = 1000000000


def names():
    """All metrics that the agent has, by the file pmns: {name: cluster:item}."""
    found, prefix = {}, ""
    for line in pathlib.Path(PMNS).read_text(encoding="utf-8").splitlines():
        if line.endswith("{"):
            prefix = line.split()[0] + "."
        elif "PRCB:" in line:
            name, number = line.split()
            found[prefix + name] = number[5:]
    return found


def no_bpf():
    if os.geteuid():
        return "needs root: the bpf tier"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "no eBPF: the kernel has no BTF"
    return None if PRCBD else "this build has no eBPF"


class Files(unittest.TestCase):
    """What is generated, without PCP running."""

    def test_names_and_numbers(self):
        metrics = names()
        self.assertGreater(len(metrics), 100)
        self.assertEqual(len(set(metrics.values())), len(metrics))
        for name in metrics:
            self.assertRegex(name, r"^prcb(\.[a-z][a-z0-9_]*)+$")

    def test_numbers_stay(self):
        """Archives hold them: what was there keeps its number."""
        metrics = names()
        for name, number in (("prcb.version", "0:0"), ("prcb.start", "0:3"),
                             ("prcb.missed_events", "0:13"),
                             ("prcb.all.cpu.idle", "1:0"), ("prcb.percpu.cpu.wall", "2:6"),
                             ("prcb.wait.time", "4:3"), ("prcb.cgroup.behind.time", "9:0"), ("prcb.cgroup.blocked.time", "9:2"), ("prcb.cgroup.run", "5:0"),
                             ("prcb.cgroup.wait.sleep", "5:16"),
                             ("prcb.cgroup.cause.time.futex", "6:6"),
                             ("prcb.cgroup.cause.count.futex", "6:262"),
                             ("prcb.percpu.missed_switches", "2:16"),
                             ("prcb.name.wait.other", "7:25"), ("prcb.thread.open.cause", "8:5")):
            self.assertEqual(metrics[name], number, name)

    @unittest.skipIf(pcp.missing(), pcp.missing())
    def test_pcp_takes_the_namespace(self):
        own = pcp.Pcp([AGENT], PMNS)
        self.addCleanup(own.stop)
        out = own.run("pminfo", "-n", own.namespace, "-m", "prcb")[1]
        self.assertEqual(set(re.findall(r"^(\S+)", out, re.M)), set(names()))


@unittest.skipIf(pcp.missing(), pcp.missing())
class Agent:
    """What holds whoever runs it. The class of a user has start()."""
    user = None

    @classmethod
    def setUpClass(cls):
        cls.started = []
        try:
            cls.pcp = cls.new()
            cls.pcp.pmcd()
            pcp.wait_for("figures", lambda: cls.pcp.values("prcb.up") == {("prcb.up", None): "1"})
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        for own in cls.started:
            own.stop()

    @classmethod
    def new(cls, **options):
        own = pcp.Pcp(cls.command(), PMNS, user=cls.user, environment=cls.environment(), **options)
        cls.started.append(own)
        return own

    @classmethod
    def environment(cls):
        return {}

    def load(self, own, keys, archives, question, answer, count):
        """Puts archives into Redis until the question has so many answers. pmseries may end while
        requests of its own are under way, which Redis then drops: loading again adds what lacks."""
        def ask():
            for archive in archives:
                own.run("pmseries", "-p", keys, "--load", f'{{source.path: "{archive}"}}')
            out = own.run("pmseries", "-p", keys, question)[1]
            self.assertLessEqual(len(re.findall(answer, out)), count, out)
            return len(re.findall(answer, out)) == count
        pcp.wait_for(f"{count} answers to {question}", ask, 60)

    def redis(self, own):
        """The port of a Redis of the test's own."""
        server = shutil.which("redis-server")
        if not server:
            self.skipTest("redis-server is not installed")
        keys = pcp.free_port()
        own.start(server, "--port", keys, "--save", "", "--bind", "127.0.0.1", "--dir", own.folder,
                  log="redis.out")
        pcp.wait_for("redis", lambda: subprocess.run(
            ["redis-cli", "-p", str(keys), "ping"], capture_output=True, check=False).stdout
            == b"PONG\n")
        return keys

    def test_dbpmda(self):
        out = self.pcp.dbpmda("getdesc on\ndesc prcb.all.cpu.idle\nfetch prcb.version\n"
                              "instance 460.0\ntext prcb.wait.time\ntext indom 460.3\n"
                              "instance 460.1\nfetch prcb.wait.time prcb.percpu.cpu.idle\n"
                              "label domain\nlabel instances 460.0")
        self.assertIn("Data Type: 64-bit unsigned int", out)
        self.assertIn("Units: nanosec", out)
        self.assertIn('"futex"', out)
        self.assertIn("Time that threads waited, by cause", out)
        self.assertNotIn("Error", out)

    def test_every_metric_has_help_and_a_description(self):
        out = self.pcp.run("pminfo", "-h", self.pcp.host, "-d", "-t", "-T", "prcb")[1]
        described = re.findall(r"(?m)^(prcb\S+)(?: \[(.*)\])?$", out)
        self.assertEqual({name for name, _ in described}, set(names()))
        for name, line in described:
            self.assertGreater(len(line), 5, name)
        self.assertNotIn("Error", out)
        self.assertEqual(out.count("Data Type:"), len(names()))

    def test_the_parts_add_up(self):
        """Of processors, to wall time; of threads, to what the figures of causes say."""
        v = self.pcp.values("prcb.all", "prcb.percpu", "prcb.wait")
        modes = [int(v[key]) for key in v if re.match(r"prcb\.all\.cpu\.(?!wall)", key[0])]
        self.assertEqual(sum(modes), int(v["prcb.all.cpu.wall", None]))
        cpus = [key[1] for key in v if key[0] == "prcb.percpu.cpu.idle"]
        self.assertEqual(len(cpus), os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertEqual(sum(int(v["prcb.percpu.cpu.wall", cpu]) for cpu in cpus),
                         int(v["prcb.all.cpu.wall", None]))
        waits = sum(int(text) for (name, _), text in v.items() if name == "prcb.wait.time")
        self.assertEqual(waits, int(v["prcb.all.thread.wait", None]))

    def test_wall_time_is_the_clocks(self):
        begin, before = time.monotonic_ns(), self.pcp.values("prcb.all.cpu.wall")
        begin_high = time.monotonic_ns()
        time.sleep(1)
        end, after = time.monotonic_ns(), self.pcp.values("prcb.all.cpu.wall")
        end_high = time.monotonic_ns()
        grown = int(after["prcb.all.cpu.wall", None]) - int(before["prcb.all.cpu.wall", None])
        online = os.sysconf("SC_NPROCESSORS_ONLN")
        # A snapshot is of up to 100 ms ago; processors are read one after the other.
        self.assertGreaterEqual(grown, (end - begin_high - 110000000) * online)
        self.assertLessEqual(grown, (end_high - begin + 110000000) * online)

    def test_a_cgroup_is_there(self):
        v = self.pcp.values("prcb.cgroup", "prcb.all.thread")
        runs = {key[1]: int(text) for key, text in v.items() if key[0] == "prcb.cgroup.run"}
        self.assertGreater(len(runs), 0)
        self.assertLessEqual(sum(runs.values()), int(v["prcb.all.thread.run", None]) + NS)

    def test_absent_is_no_value(self):
        """A machine without cpuidle states, say, has none; 0 is never shown instead."""
        v = self.pcp.values("prcb.percpu")
        have = collections.Counter(name for name, _ in v)
        for name in names():
            if name.startswith("prcb.percpu.") and not have[name]:
                out = self.pcp.run("pminfo", "-h", self.pcp.host, "-f", name)[1]
                self.assertIn("No value(s) available", out)

    def test_labels(self):
        out = self.pcp.run("pminfo", "-h", self.pcp.host, "-l", "prcb.wait.time")[1]
        self.assertRegex(out, r'or "futex"\] labels \{.*"reason":"WrPushLock|'
                              r'or "futex"\] labels \{.*"reason":"')
        out = self.pcp.run("pminfo", "-h", self.pcp.host, "-l", "prcb.percpu.cpu.idle")[1]
        self.assertRegex(out, r'or "cpu0"\] labels \{.*"cpu":0')

    def test_numbers_of_instances_stay(self):
        """A second agent gives processors, cgroups and names the numbers that the first gave."""
        script = "instance 460.1\ninstance 460.3\ninstance 460.4"
        first = self.pcp.dbpmda("fetch prcb.cgroup.run\n" + script)
        second = self.pcp.dbpmda("fetch prcb.cgroup.run\n" + script)
        a, b = ({name: number for number, name in re.findall(r'inst: (\d+) name: "(.*)"', out)}
                for out in (first, second))
        both = set(a) & set(b)
        self.assertGreater(len(both), 2, first)
        self.assertEqual({name: a[name] for name in both}, {name: b[name] for name in both})
        self.assertEqual((a["cpu0"], len(set(a.values()))), ("0", len(a)))

    def test_threads_are_for_those_who_are_known(self):
        # By TCP nobody is known; by the socket the kernel says who it is, and it is the agent's user.
        out = self.pcp.run("pminfo", "-h", self.pcp.host, "-f", "prcb.thread.run", check=False)[1]
        self.assertIn("No permission", out)
        v = self.pcp.values("prcb.thread", host=f"unix://{self.pcp.socket}")
        self.assertTrue(any(key[0] == "prcb.thread.run" and key[1].endswith(" pmcd") for key in v),
                        sorted(v)[:5])
        for (name, instance) in v:
            self.assertRegex(instance, r"^\d{6,} \S+$", name)

    def test_archive(self):
        """pmlogger's archive holds what pmcd said; pmval, pmrep and pmdumplog agree on it."""
        conf = self.pcp.folder / "log.conf"
        conf.write_text("log mandatory on 200 msec { prcb.all prcb.cgroup prcb.wait }\n",
                        encoding="utf-8")
        archive = self.pcp.folder / "archive/one"
        self.pcp.give()
        before = self.pcp.values("prcb.all.cpu.wall")
        self.pcp.run("pmlogger", "-h", self.pcp.host, "-c", conf, "-l",
                     self.pcp.folder / "pmlogger.log", "-s", "5", "-y", archive)
        after = self.pcp.values("prcb.all.cpu.wall")
        self.pcp.run("pmlogcheck", archive)
        dumped = self.pcp.run("pmdumplog", archive, "prcb.all.cpu.wall")[1]
        values = [int(text) for text in re.findall(r"prcb\.all\.cpu\.wall\): value (\d+)", dumped)]
        self.assertGreaterEqual(len(values), 4, dumped)
        self.assertEqual(values, sorted(values))
        self.assertLessEqual(int(before["prcb.all.cpu.wall", None]), values[0])
        self.assertLessEqual(values[-1], int(after["prcb.all.cpu.wall", None]))
        replayed = self.pcp.values("prcb.all.cpu.wall", archive=archive)
        self.assertIn(int(replayed["prcb.all.cpu.wall", None]), values)
        out = self.pcp.run("pmrep", "-z", "-a", archive, "-u", "-r", "-o", "csv",
                           "prcb.all.cpu.wall")[1]
        raw = {row[1] for row in csv.reader(io.StringIO(out))
               if len(row) == 2 and row[1].isdigit()}
        self.assertTrue(raw)
        self.assertLessEqual(raw, {str(value) for value in values})

    def test_views_of_pmrep(self):
        for view in ("prcb-cpu", "prcb-wait", "prcb-cgroup"):
            out = self.pcp.run("pmrep", "-h", self.pcp.host, "-c", FILES / "pmrep.conf", "-s", "2",
                               "-t", "0.5", "-o", "csv", f":{view}")[1]
            lines = list(csv.reader(io.StringIO(out)))
            self.assertGreaterEqual(len(lines), 2, out)
            self.assertTrue(any(re.fullmatch(r"[\d.]+", cell) for cell in lines[-1][1:]), out)

    def test_valgrind(self):
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not installed")
        log = self.pcp.folder / "valgrind"
        self.pcp.dbpmda("fetch prcb.cgroup.run\nfetch prcb.percpu.cpu.idle\nfetch prcb.wait.time\n"
                        "instance 460.3\ninstance 460.1\ntext prcb.up\nlabel instances 460.3\n"
                        "fetch prcb.name.run prcb.version prcb.tier\nfetch prcb.cgroup.run",
                        shutil.which("valgrind"), "-q", "--error-exitcode=99", f"--log-file={log}",
                        "--undef-value-errors=no", timeout=240)
        text = log.read_text(encoding="utf-8")
        # What PCP's own library and the looker's thread still hold at the end is no error.
        self.assertNotIn("Invalid", text)
        self.assertNotIn("definitely lost", text)

    def test_pmproxy_and_redis(self):
        port, keys = pcp.free_port(), self.redis(self.pcp)
        (self.pcp.folder / "pmproxy.conf").write_text(
            "[pmproxy]\npcp.enabled = true\nhttp.enabled = true\nredis.enabled = true\n"
            f"[redis]\nenabled = true\nservers = 127.0.0.1:{keys}\n[pmseries]\nenabled = true\n"
            "[pmsearch]\nenabled = false\n[discover]\nenabled = false\n", encoding="utf-8")
        self.pcp.give()
        self.pcp.start("pmproxy", "-f", "-A", "-U", self.pcp.user, "-c", "pmproxy.conf", "-p", port,
                       "-s", self.pcp.folder / "pmproxy.socket", "-l",
                       self.pcp.folder / "pmproxy.log")

        def get(what):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{what}", timeout=20) as answer:
                return answer.read().decode()

        def answers():
            try:
                return get(f"/metrics?names=prcb.all.cpu&hostspec={self.pcp.host}")
            except OSError:
                return None
        text = pcp.wait_for("pmproxy", answers)
        self.assertRegex(text, r"(?m)^prcb_all_cpu_idle(\{.*\})? \d+$")
        fetched = json.loads(get(f"/pmapi/fetch?names=prcb.wait.time&hostspec={self.pcp.host}"))
        self.assertEqual(fetched["values"][0]["name"], "prcb.wait.time")
        # An archive into a Redis that pmproxy does not know, and a question.
        keys = self.redis(self.pcp)
        conf = self.pcp.folder / "series.conf"
        conf.write_text("log mandatory on 200 msec { prcb.all }\n", encoding="utf-8")
        archive = self.pcp.folder / "archive/series"
        self.pcp.give()
        self.pcp.run("pmlogger", "-h", self.pcp.host, "-c", conf, "-l",
                     self.pcp.folder / "series.log", "-s", "6", "-y", archive)
        self.load(self.pcp, keys, [archive], "prcb.all.cpu.idle[count:2]",
                  r"(?m)^ +\[.*\] [\d.e+]+$", 2)

    def test_group_of_pmlogconf(self):
        """pmlogconf takes it where the agent is, and pmlogger takes the result."""
        groups, made = self.pcp.folder / "groups", self.pcp.folder / "made.conf"
        (groups / "tools").mkdir(parents=True)
        shutil.copy(FILES / "pmlogconf", groups / "tools/prcb")
        self.pcp.give()
        self.pcp.run("pmlogconf", "-q", "-c", "-d", groups, "-h", self.pcp.host, made)
        text = made.read_text(encoding="utf-8")
        self.assertIn("prcb.cgroup.ready", text)
        self.assertNotIn("prcb.thread", text)
        archive = self.pcp.folder / "archive/group"
        self.pcp.run("pmlogger", "-h", self.pcp.host, "-c", made, "-l",
                     self.pcp.folder / "group.log", "-T", "1sec", "-y", archive)

    def test_pmie_rules(self):
        out = self.pcp.run("pmie", "-C", "-h", self.pcp.host, "-c", FILES / "pmie.conf",
                           check=False)
        self.assertEqual(out[0], 0, out[1])


    def test_rules_of_pmieconf(self):
        """pmieconf makes rules of ours that pmie takes, for a host that has the agent."""
        rules = self.pcp.folder / "rules"
        shutil.copytree(pcp.path("/etc/pcp/pmieconf/global"), rules / "global")
        shutil.copytree(FILES / "pmieconf", rules / "prcb")
        made = self.pcp.folder / "rules.pmie"
        self.pcp.give()
        self.pcp.run("pmieconf", "-r", rules, "-f", made, "enable", "prcb")
        text = made.read_text(encoding="utf-8")
        for name in ("throttled", "ready", "untracked"):
            self.assertIn(f"prcb.{name} = ", text)
        out = self.pcp.run("pmie", "-C", "-h", self.pcp.host, "-c", made, check=False)
        self.assertEqual(out[0], 0, out[1])


UID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
CONTAINER = "3f4e5d6c7b8a9012345678901234567890123456789012345678901234567890"
POD = (f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/"
       f"cri-containerd-{CONTAINER}.scope")


def made_up_look():
    """One look of a machine that does not exist: what is in it is known, and stays as it is."""
    def account(number, cgroup, **figures):
        return {"key": number, "tid": 100 + number, "pid": 100 + number, "comm": "worker",
                "cgroup": cgroup, **figures}
    return json.dumps({
        "ms": 0, "started_ns": 10 ** 18, "tier": "daemon", "max_threads": 16384,
        "untracked_threads": 3, "recursion_misses": 11, "look_ns": 1234567, "hostname": "made-up", "system": "Linux",
        "release": "6.1", "cgroups": {"2": POD, "3": "/system.slice/ssh.service"},
        "processors": [{"number": cpu, "online": True, "wall_ns": 10 ** 10, "idle_ns": 6000000001,
                        "user_ns": 2000000003 + cpu, "kernel_ns": 1999999990 - cpu, "dpc_ns": 4,
                        "interrupt_ns": 2, "steal_ns": 0, "interrupts": 17, "dpcs": 19,
                        "switches": 1000003, "missed_switches": 7 + cpu, "idle_entries": 23,
                        "mhz": 3000, "idle_states": [["C1", 5, 6000000001]]} for cpu in range(2)],
        "accounts": [
            account(1, 2, wall_ns=10 ** 10, run_ns=1234567891, ready_ns=1000000007,
                    wait_ns=10 ** 10 - 2234567898, switches=12, voluntary_switches=9, migrations=5,
                    open="futex", waits={"futex": [8, 7000000001], "disk": [1, 765432101],
                                         "preempted": [3, 0]}),
            account(2, 3, wall_ns=10 ** 10, run_ns=1, ready_ns=0, wait_ns=10 ** 10 - 1, switches=2,
                    voluntary_switches=2, migrations=0, open="poll",
                    waits={"poll": [2, 10 ** 10 - 1]})]}) + "\n"


@unittest.skipIf(pcp.missing(), pcp.missing())
class Replayed(unittest.TestCase):
    """The same look by three doors: prcb export, prcb-exporter, and pmcd."""

    # What they are called: of PCP; of the exporter, with labels of which one names the instance.
    SAME = (
        ("prcb.all.cpu.idle", 'prcb_system_cpu_seconds_total{mode="idle"}', NS),
        ("prcb.all.cpu.user", 'prcb_system_cpu_seconds_total{mode="user"}', NS),
        ("prcb.all.cpu.kernel", 'prcb_system_cpu_seconds_total{mode="kernel"}', NS),
        ("prcb.all.switches", "prcb_system_context_switches_total", 1),
        ("prcb.all.thread.ready", 'prcb_system_thread_seconds_total{state="ready"}', NS),
        ("prcb.untracked_threads", "prcb_untracked_threads_total", 1),
        ("prcb.missed_events", "prcb_missed_events_total", 1),
        ("prcb.wait.time", 'prcb_system_wait_seconds_total{cause="%s"}', NS),
        ("prcb.wait.count", 'prcb_system_switches_total{cause="%s"}', 1),
        ("prcb.percpu.cpu.user", 'prcb_cpu_seconds_total{cpu="%s",mode="user"}', NS),
        ("prcb.percpu.missed_switches", 'prcb_cpu_missed_switches_total{cpu="%s"}', 1),
        ("prcb.cgroup.run", 'prcb_cgroup_run_seconds_total{cgroup="%s"}', NS),
        ("prcb.cgroup.ready", 'prcb_cgroup_ready_seconds_total{cgroup="%s"}', NS),
        ("prcb.cgroup.wait.lock", 'prcb_cgroup_wait_seconds_total{cgroup="%s",class="lock"}', NS),
        ("prcb.cgroup.cause.time.futex",
         'prcb_cgroup_cause_seconds_total{cgroup="%s",cause="futex"}', NS),
        ("prcb.cgroup.cause.count.futex",
         'prcb_cgroup_cause_switches_total{cgroup="%s",cause="futex"}', 1),
        ("prcb.cgroup.migrations", 'prcb_cgroup_migrations_total{cgroup="%s"}', 1),
    )

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prcb-replay-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.look = self.folder / "look.ndjson"
        self.look.write_text(made_up_look(), encoding="utf-8")

    def agent(self):
        own = pcp.Pcp([AGENT], PMNS, environment={"PRCB_REPLAY": str(self.look)})
        self.addCleanup(own.stop)
        own.pmcd()
        pcp.wait_for("figures", lambda: own.values("prcb.up") == {("prcb.up", None): "1"})
        return own

    @staticmethod
    def series(text):
        """{series: nanoseconds or count}, to the last digit."""
        return {line.rsplit(" ", 1)[0]: decimal.Decimal(line.rsplit(" ", 1)[1])
                for line in text.splitlines() if line and not line.startswith("#")}

    def exported(self):
        done = subprocess.run([os.environ["PRCB"], "export", "--replay", self.look, "--per-cpu",
                               "--cgroup-causes"], capture_output=True, text=True, timeout=60,
                              check=True)
        return self.series(done.stdout)

    def scraped(self):
        path = str(self.folder / "socket")
        with open(self.folder / "exporter.log", "w", encoding="utf-8") as log:
            # pylint: disable=consider-using-with
            server = subprocess.Popen(
                [os.environ["PRCB_EXPORTER"], "--replay", self.look, "--per-cpu", "--cgroup-causes",
                 "--web.listen-address=unix:" + path], stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)

        def ask():
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(path)
                except OSError:
                    return None
                s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                return b"".join(iter(lambda: s.recv(65536), b"")).decode()
        answer = pcp.wait_for("an answer of prcb-exporter", ask)
        return self.series(answer.split("\r\n\r\n", 1)[1])

    @unittest.skipUnless(os.environ.get("PRCB_EXPORTER"), "this build has no prcb-exporter")
    def test_the_doors_agree(self):
        own = self.agent()
        doors = {"export": self.exported(), "exporter": self.scraped()}
        for metric, series, unit in self.SAME:
            found = {instance: int(text) for (_, instance), text in own.values(metric).items()}
            self.assertTrue(found, metric)
            for instance, value in found.items():
                label = instance and re.sub(r"^cpu(?=\d+$)", "", instance)
                name = series % label if instance else series
                for door, values in doors.items():
                    # Causes that have not occurred have no series in a cgroup, and 0 here.
                    self.assertEqual(values.get(name, 0) * unit, value, (door, name))
        self.assertEqual(own.values("prcb.cgroup.cause.count.futex")
                         ["prcb.cgroup.cause.count.futex", POD], "8")
        self.assertEqual(own.values("prcb.cgroup.run")["prcb.cgroup.run", POD], "1234567891")
        # pmval asks pmcd as well, for one moment and one instance.
        out = own.run("pmval", "-h", own.host, "-s", "1", "-r", "prcb.untracked_threads")[1]
        self.assertRegex(out, r"(?m)^ *3 *$")

    def test_labels_of_containers(self):
        own = self.agent()
        own.values("prcb.cgroup.run")
        out = own.run("pminfo", "-h", own.host, "-l", "prcb.cgroup.run")[1]
        pod, service = (next(line for line in out.splitlines() if end in line and "inst [" in line)
                        for end in (".scope", "ssh.service"))
        for name, value in (("container_id", CONTAINER), ("pod_uid", UID)):
            self.assertIn(f'"{name}":"{value}"', pod)
        self.assertIn('"unit":"ssh.service"', service)
        self.assertNotIn("container", service)

    def test_bytes_of_an_archive(self):
        """What docs/fleet.md says of them is measured by a script: it runs, on two intervals."""
        out = subprocess.run([sys.executable, ROOT / "tools/pcp-bytes.py", "--replay", self.look,
                              "--records", "2"], capture_output=True, text=True, timeout=120,
                             check=False)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertRegex(out.stdout, r"\d+ bytes a record.*MB a day")


@unittest.skipIf(no_bpf(), no_bpf())
class Attacked(unittest.TestCase):
    """In a running pmcd, by another user of the machine. Witness: what pminfo prints, and /proc."""

    USER = 41000
    NAMES = (b"\x1b[31mred", b"two\nlines", b'"}{,', b"%s%n 50%", b"\xff\xfe", b"=cmd()", b"\xe2\x80\xaeright", b"a::b")
    RENAMES = """
import glob, os, random, sys, threading, time
stop = threading.Event()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=stop.wait).start()
fixed = [bytes.fromhex(word) for word in sys.argv[2:]]
print(flush=True)
while os.getppid() != 1:
    for i, path in enumerate(glob.glob("/proc/self/task/*/comm")):
        with open(path, "wb") as file:
            file.write(fixed[i] if i < len(fixed) else os.urandom(7).hex().encode())
    time.sleep(0.02)
os._exit(0)
"""

    @classmethod
    def setUpClass(cls):
        if pcp.missing() or os.geteuid():
            raise unittest.SkipTest(pcp.missing() or "needs root: it becomes another user")
        cls.pcp = pcp.Pcp([AGENT, "-t", "perf" if no_bpf() else "bpf"], PMNS, user="root")
        cls.addClassCleanup(cls.pcp.stop)
        cls.pcp.pmcd()
        pcp.wait_for("figures", lambda: cls.pcp.values("prcb.up") == {("prcb.up", None): "1"})
        threads = 2000 if os.environ.get("PRCB_ATTACK_TIMES") else 300

        def become():
            os.setgid(cls.USER)
            os.setuid(cls.USER)
        # pylint: disable=consider-using-with
        attacker = subprocess.Popen(["/usr/bin/python3", "-c", cls.RENAMES, str(threads), *(name.hex() for name in cls.NAMES)],
                                    stdout=subprocess.PIPE, preexec_fn=become)
        cls.addClassCleanup(attacker.stdout.close)
        cls.addClassCleanup(attacker.wait)
        cls.addClassCleanup(attacker.kill)
        attacker.stdout.readline()

    def agent(self):
        """The agent's own number, as pmcd started it."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == AGENT.encode() and str(self.pcp.folder).encode() in b" ".join(words):
                return int(path.parent.name)
        return None

    def memory(self):
        text = pathlib.Path(f"/proc/{self.agent()}/status").read_text(encoding="utf-8", errors="replace")
        return int(re.search(r"RssAnon:\s+(\d+)", text)[1])

    def test_names_are_text(self):
        """An instance is a line of pminfo, whatever a thread is called; so are the threads' own, which root may see."""
        for host in self.pcp.host, f"unix://{self.pcp.socket}":
            out = self.pcp.run("pminfo", "-h", host, "-f", "-l", "prcb.name.run", "prcb.thread.run", check=False)[1]
            for line in out.splitlines():
                self.assertRegex(line, r'^(prcb\.\w+\.run.*| +inst \[\d+ or "[ -~]*"\] (value \d+|labels \{.*\})'
                                       r"| +labels \{.*\}|Error: No permission.*|.*: No permission.*|)$")
            self.assertIn("%1b[31mred", out)
            for labels in re.findall(r"labels (\{.*\})", out):
                json.loads(labels)

    def test_names_without_end(self):
        """300 threads (2,000 by ./dev attack) that rename themselves: at most as many instances as there may be series,
        and memory stays, once all there may be are known; it grew by 10 KiB at each question, without end."""
        def growth(times):
            before = self.memory()
            self.pcp.run("pmval", "-h", self.pcp.host, "-t", "100msec", "-s", times, "prcb.name.run")
            return self.memory() - before
        growth(20)
        grown = [growth(60)]
        while grown[-1] >= 300 and len(grown) < 4:
            grown.append(growth(60))
        self.assertLess(grown[-1], 300, grown)
        self.assertLessEqual(len(self.pcp.values("prcb.name.run")), 202)

    def test_a_cgroup_with_a_name_of_its_own(self):
        root = next((line.split()[1] for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
                     if line.split()[2] == "cgroup2"), None)
        if not root or no_bpf():
            self.skipTest(no_bpf() or "no cgroups of version 2")
        path = pathlib.Path(root, 'prcb "x}{\\::\x1b[31m 50%')
        path.mkdir()
        process = subprocess.Popen(["/bin/sh", "-c", "while :; do sleep 0.1; done"])  # pylint: disable=consider-using-with
        self.addCleanup(lambda: (process.kill(), process.wait(), pcp.wait_for("an empty cgroup", lambda: (
            not (path / "cgroup.procs").read_text(encoding="ascii")) and (path.rmdir() or True))))
        (path / "cgroup.procs").write_text(str(process.pid), encoding="ascii")

        def seen():
            out = self.pcp.run("pminfo", "-h", self.pcp.host, "-f", "-l", "prcb.cgroup.run")[1]
            for labels in re.findall(r"labels (\{.*\})", out):
                json.loads(labels)
            self.assertNotRegex(out, r"[^\n -~]")
            return "%1b[31m%2050%25" in out
        pcp.wait_for("the cgroup", seen)

    def test_clients_that_say_nothing_more(self):
        """Others are answered while some have sent a part of a question."""
        for part in b"", b"\0\0", b"\0\0\0\x14\0\0\x70":
            s = socket.create_connection(("127.0.0.1", self.pcp.port), 10)
            self.addCleanup(s.close)
            s.send(part)
        self.assertGreater(len(self.pcp.values("prcb.percpu.cpu.idle")), 0)

    def test_the_agent_is_killed_while_it_is_asked(self):
        """pmcd's other figures stay, it starts the agent again, and instances have the numbers that they had."""
        def instances():
            out = self.pcp.run("pminfo", "-h", self.pcp.host, "-f", "prcb.percpu.cpu.idle", "prcb.cgroup.run", check=False)[1]
            return {name: number for number, name in re.findall(r'inst \[(\d+) or "(.*)"\] value', out)}
        before = instances()
        asking = self.pcp.start("pmval", "-h", self.pcp.host, "-t", "10msec", "prcb.name.run")
        time.sleep(0.3)
        killed = self.agent()
        os.kill(killed, signal.SIGKILL)
        self.assertIn(("pmcd.numagents", None), self.pcp.values("pmcd.numagents"))
        pcp.wait_for("another agent", lambda: self.agent() not in (None, killed))
        asking.kill()
        after = pcp.wait_for("its figures", instances)
        same = set(before) & set(after)
        self.assertGreater(len(same), 1)
        self.assertEqual({name: before[name] for name in same}, {name: after[name] for name in same})


class AsRoot(Agent, unittest.TestCase):
    user = "root"

    @classmethod
    def command(cls):
        return [AGENT, "-t", "bpf"]


class AsNobody(Agent, unittest.TestCase):
    """Through prcbd, with everything of PCP and the agent run by nobody."""
    user = "nobody"
    daemon = None

    @classmethod
    def setUpClass(cls):
        import wire
        reason = no_bpf() or (None if os.path.ismount("/sys/fs/bpf")
                              else "/sys/fs/bpf is not mounted")
        if reason:
            raise unittest.SkipTest(reason)
        cls.daemon = wire.Daemon(PRCBD, "profile_all = all")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        if cls.daemon:
            cls.daemon.stop()

    @classmethod
    def environment(cls):
        return {"PRCB_SOCKET": cls.daemon.socket}

    @classmethod
    def command(cls):
        return [AGENT]

    def agent_pid(self):
        for child in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                line = (child / "cmdline").read_bytes().split(b"\0")
                if line[0] == AGENT.encode() and str(self.pcp.folder).encode() in b" ".join(line):
                    return child.name
            except OSError:
                continue
        return self.fail("the agent is not there")

    def test_it_has_no_capability(self):
        status = pathlib.Path(f"/proc/{self.agent_pid()}/status").read_text(encoding="utf-8")
        self.assertRegex(status, r"CapEff:\s*0{16}\n")
        self.assertRegex(status, r"Uid:\s*65534\s")

    def test_a_stopped_prcbd_holds_up_nobody(self):
        """pmcd drops an agent after five seconds: figures are absent then, and come back."""
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(3):
                begin = time.monotonic()
                self.pcp.run("pminfo", "-h", self.pcp.host, "-f", "prcb.up", "prcb.wait.time",
                             "prcb.version")
                self.assertLess(time.monotonic() - begin, 4.5)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        pcp.wait_for("figures", lambda: self.pcp.values("prcb.up") == {("prcb.up", None): "1"})
        agents = self.pcp.values("pmcd.agent.status")
        self.assertEqual({text for (_, name), text in agents.items() if name == "prcb"}, {"0"})

    def test_without_prcbd_figures_are_absent(self):
        environment = {**self.environment(), "PRCB_SOCKET": "/nonexistent/socket"}
        own = pcp.Pcp(self.command(), PMNS, user=self.user, environment=environment)
        self.addCleanup(own.stop)
        own.pmcd()
        v = own.values("prcb")
        self.assertEqual(v.pop(("prcb.up", None)), "0")
        self.assertEqual({name for name, _ in v}, {"prcb.version"}, v)
        pcp.wait_for("the reason in the log", lambda: "prcbd" in own.logs())

    def test_three_hosts_in_one_question(self):
        hosts = []
        for i in range(3):
            own = self.new(hostname=f"made-up-{i}")
            own.pmcd()
            hosts.append(own)
        archives = []
        for own in hosts:
            pcp.wait_for("figures", lambda own=own: own.values("prcb.up").get(("prcb.up", None))
                         == "1")
            conf = own.folder / "log.conf"
            conf.write_text("log mandatory on 200 msec { prcb.all }\n", encoding="utf-8")
            archive = own.folder / "archive/host"
            own.give()
            own.run("pmlogger", "-h", own.host, "-c", conf, "-l", own.folder / "pmlogger.log", "-s",
                    "3", "-y", archive)
            archives.append(archive)
        labels = [own.run("pmdumplog", "-L", archive)[1] for own, archive in zip(hosts, archives)]
        self.assertEqual([re.search(r"host (\S+)", text).group(1) for text in labels],
                         ["made-up-0", "made-up-1", "made-up-2"])
        keys = self.redis(hosts[0])
        self.load(hosts[0], keys, archives, "prcb.all.cpu.idle", r"(?m)^[0-9a-f]{40}$", 3)


del Agent

if __name__ == "__main__":
    unittest.main(verbosity=2)
