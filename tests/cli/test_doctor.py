#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""prcb doctor: what it says about made-up machines, and about this one.

Made-up machines are folders handed over with --root; each test writes the files
that one check looks at and expects its state. About the real machine it must
agree with what this test reads for itself.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

PRCB = os.environ["PRCB"]
NOBODY = 65534

CHECKS = ["btf", "capabilities", "thread-programs", "thread-figures", "processor-programs",
          "record-programs", "no-lockdown", "no-realtime", "contention-tracepoints", "ready-time",
          "memlock", "bpffs", "no-unprivileged-bpf", "perf-events", "ptrace-scope", "pmu",
          "user-counter-reads",
          "invariant-tsc", "clocksource", "idle-states", "frequency", "delivered-performance",
          "daemon"]


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def doctor(*arguments, as_nobody=False):
    return subprocess.run([PRCB, "doctor", *arguments], capture_output=True, text=True,
                          timeout=60, preexec_fn=become_nobody if as_nobody else None)


def rows(document):
    return {row["name"]: row for row in document["checks"]}


class MadeUpMachine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)

    def state(self, name):
        return rows(json.loads(doctor("-j", "--root", str(self.root)).stdout))[name]["state"]

    def expect(self, name, path, cases):
        for content, state in cases.items():
            with self.subTest(check=name, content=content):
                self.write(path, content)
                self.assertEqual(self.state(name), state)

    def test_a_checkout_is_not_told_of_setcap(self):
        """Its program has its library beside it, where the loader does not look for one with capabilities."""
        self.write("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n")
        advice = lambda path: rows(json.loads(subprocess.run(
            [PRCB, "doctor", "-j", "--root", str(self.root)], capture_output=True, text=True, timeout=60,
            env={"PATH": path}).stdout))["capabilities"]["fix"]
        (self.root / "bin").mkdir()
        self.assertEqual(advice(str(self.root / "bin")).split(" ...")[0], "sudo " + os.path.realpath(PRCB))
        (self.root / "bin/prcb").symlink_to(os.path.realpath(PRCB))
        self.assertIn("sudo prcb ..., or: sudo setcap", advice("/nowhere:" + str(self.root / "bin")))

    def test_nothing_there(self):
        states = {name: row["state"] for name, row in
                  rows(json.loads(doctor("-j", "--root", str(self.root)).stdout)).items()}
        self.assertEqual(states["btf"], "absent")
        self.assertEqual(states["ready-time"], "absent")
        self.assertEqual(states["daemon"], "absent")
        for name in ("capabilities", "no-lockdown", "contention-tracepoints", "memlock", "bpffs",
                     "no-unprivileged-bpf", "perf-events", "pmu", "clocksource"):
            self.assertEqual(states[name], "unknown", name)

    def test_capabilities(self):
        self.write("proc/self/uid_map", "         0          0 4294967295\n")
        self.expect("capabilities", "proc/self/status", {
            "Name:\tx\nCapEff:\t0000000000000000\n": "absent",
            "Name:\tx\nCapEff:\t0000008000000000\n": "absent",     # CAP_BPF alone
            "Name:\tx\nCapEff:\t0000004000000000\n": "absent",     # CAP_PERFMON alone
            "Name:\tx\nCapEff:\t000000c000000000\n": "present",    # both
            "Name:\tx\nCapEff:\t0000000000200000\n": "present",    # CAP_SYS_ADMIN
        })

    def test_capabilities_of_a_user_namespace(self):
        self.write("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n")
        self.expect("capabilities", "proc/self/uid_map", {
            "         0       1000          1\n": "absent",
            "         0          0 4294967295\n": "present",
        })

    def test_contention_tracepoints(self):
        self.expect("contention-tracepoints", "sys/kernel/btf/vmlinux", {
            b"\0sched_switch\0btf_trace_contention_begin\0x\0": "present",
            b"\0sched_switch\0btf_trace_contention_beginning\0": "absent",
            b"\0" * 200000 + b"btf_trace_contention_begin\0": "present",
        })

    def test_lockdown(self):
        self.expect("no-lockdown", "sys/kernel/security/lockdown", {
            "[none] integrity confidentiality\n": "present",
            "none [integrity] confidentiality\n": "present",
            "none integrity [confidentiality]\n": "absent",
        })

    def test_realtime(self):
        self.assertEqual(self.state("no-realtime"), "present")
        self.expect("no-realtime", "sys/kernel/realtime", {
            "1\n": "absent",
            "0\n": "present",
            "": "unknown",
        })
        self.write("sys/kernel/realtime", "0\n")
        self.expect("no-realtime", "proc/sys/kernel/version", {
            "#1 SMP PREEMPT_RT Debian 7.3~rc7-1~exp1\n": "absent",
            "#1 SMP PREEMPT_DYNAMIC Debian 7.3.4-1\n": "present",
        })

    def test_programs_are_tried_on_this_machine_only(self):
        self.write("proc/self/uid_map", "         0          0 4294967295\n")
        self.write("proc/self/status", "Name:\tx\nCapEff:\t000000c000000000\n")
        for name in ("thread-programs", "thread-figures", "processor-programs", "record-programs"):
            self.assertEqual(self.state(name), "unknown")

    def test_lockdown_not_built_in(self):
        self.write("sys/kernel/security/lsm", "capability,yama")
        self.assertEqual(self.state("no-lockdown"), "present")

    def test_sysctls(self):
        self.expect("perf-events", "proc/sys/kernel/perf_event_paranoid",
                    {"-1\n": "present", "2\n": "present", "3\n": "absent", "x\n": "unknown"})
        self.assertEqual(self.state("ptrace-scope"), "present")
        self.expect("ptrace-scope", "proc/sys/kernel/yama/ptrace_scope",
                    {"0\n": "present", "1\n": "absent", "3\n": "absent", "x\n": "unknown"})
        self.expect("no-unprivileged-bpf", "proc/sys/kernel/unprivileged_bpf_disabled",
                    {"0\n": "absent", "1\n": "present", "2\n": "present"})

    def test_socket_of_another_daemon(self):
        """The one that programs would connect to."""
        with unittest.mock.patch.dict(os.environ, PRCB_SOCKET=str(self.root / "socket")):
            self.assertEqual(rows(json.loads(doctor("-j").stdout))["daemon"]["state"], "absent")
            self.write("socket", "")
            self.assertEqual(rows(json.loads(doctor("-j").stdout))["daemon"]["state"], "present")

    def test_ready_time(self):
        self.expect("ready-time", "proc/self/schedstat",
                    {"1234 5 6\n": "present", "0 0 0\n": "absent"})

    def test_memlock(self):
        line = "Max locked memory         {0}              {0}              bytes\n"
        head = "Limit                     Soft Limit           Hard Limit           Units\n"
        self.write("proc/sys/kernel/osrelease", "5.10.0-8-amd64\n")
        self.expect("memlock", "proc/self/limits", {
            head + line.format(65536): "absent",
            head + line.format("unlimited"): "present",
            head: "unknown",
        })
        self.write("proc/sys/kernel/osrelease", "6.1.0\n")
        self.write("proc/self/limits", head + line.format(65536))
        self.assertEqual(self.state("memlock"), "present")

    def test_bpffs(self):
        self.expect("bpffs", "proc/self/mounts", {
            "proc /proc proc rw 0 0\nbpf /sys/fs/bpf bpf rw,nosuid 0 0\n": "present",
            "bpf /sys/fs/bpf tmpfs rw 0 0\n": "absent",
        })

    def test_pmu_and_user_reads(self):
        devices = "sys/bus/event_source/devices/"
        self.write(devices + "software/type", "1\n")
        self.assertEqual(self.state("pmu"), "absent")
        self.assertEqual(self.state("user-counter-reads"), "absent")
        self.write(devices + "cpu/type", "4\n")
        self.assertEqual(self.state("pmu"), "present")
        self.assertEqual(self.state("user-counter-reads"), "unknown")
        self.expect("user-counter-reads", devices + "cpu/rdpmc", {"0\n": "absent", "1\n": "present"})

    def test_hybrid_pmus(self):
        for name in "cpu_core", "cpu_atom":
            self.write(f"sys/bus/event_source/devices/{name}/rdpmc", "1\n")
        self.assertEqual((self.state("pmu"), self.state("user-counter-reads")), ("present", "present"))
        for name in "cpu_core", "cpu_atom":
            self.expect("user-counter-reads", f"sys/bus/event_source/devices/{name}/rdpmc",
                        {"0\n": "absent", "1\n": "present"})

    def test_arm_pmu(self):
        self.write("sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n")
        self.assertEqual(self.state("pmu"), "present")
        self.expect("user-counter-reads", "proc/sys/kernel/perf_user_access",
                    {"0\n": "absent", "1\n": "present"})

    @unittest.skipIf(os.uname().machine == "aarch64", "arm64's counter is invariant by architecture")
    def test_invariant_tsc(self):
        self.expect("invariant-tsc", "proc/cpuinfo", {
            "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc sse\n": "present",
            "processor\t: 0\nflags\t\t: fpu nonstop_tsc constant_tsc\n": "present",
            "processor\t: 0\nflags\t\t: fpu constant_tsc sse\n": "absent",
            "processor\t: 0\nflags\t\t: fpu xconstant_tsc nonstop_tscx\n": "absent",
            "processor\t: 0\n": "unknown",
        })

    def test_processors(self):
        cpus = "sys/devices/system/cpu/"
        for name in ("idle-states", "frequency", "delivered-performance"):
            self.assertEqual(self.state(name), "absent", name)
        self.write(cpus + "cpu1/cpuidle/state0/name", "POLL\n")
        self.assertEqual(self.state("idle-states"), "present")
        self.write(cpus + "cpu0/cpufreq/scaling_cur_freq", "2400000\n")
        self.assertEqual(self.state("frequency"), "present")
        self.write(cpus + "cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n")
        detail = rows(json.loads(doctor("-j", "--root", str(self.root)).stdout))["frequency"]
        self.assertIn("acpi-cpufreq", detail["detail"])
        self.write("sys/bus/event_source/devices/msr/events/tsc", "event=0x00\n")
        self.write("sys/bus/event_source/devices/msr/events/aperf", "event=0x01\n")
        self.assertEqual(self.state("delivered-performance"), "absent", "mperf is not there")
        self.write("sys/bus/event_source/devices/msr/events/mperf", "event=0x02\n")
        self.assertEqual(self.state("delivered-performance"), "present")

    def test_clocksource(self):
        self.expect("clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource",
                    {"tsc\n": "present", "kvm-clock\n": "present", "hpet\n": "absent"})


class ThisMachine(unittest.TestCase):
    def agree(self, document, status):
        """What any answer must satisfy, whoever asked."""
        self.assertEqual([row["name"] for row in document["checks"]], CHECKS)
        for row in document["checks"]:
            self.assertEqual(set(row), {"name", "state", "detail", "cost", "fix"})
            self.assertIn(row["state"], ("present", "absent", "unknown"))
            for key in ("detail", "cost", "fix"):
                self.assertTrue(row[key].strip(), f"{row['name']}: {key} is empty")
                self.assertNotIn("\n", row[key])
        self.assertEqual(status, 0 if document["tier"] == "bpf" else 1)
        if document["tier"] != "bpf":
            self.assertTrue(document["tier_reason"])
        found = rows(document)
        self.assertEqual(found["btf"]["state"] == "present",
                         os.path.exists("/sys/kernel/btf/vmlinux"))
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            self.assertEqual(found["perf-events"]["state"] == "present", int(file.read()) <= 2)

    def test_json(self):
        result = doctor("-j")
        self.agree(json.loads(result.stdout), result.returncode)
        self.assertEqual(result.stderr, "")

    @unittest.skipIf(os.geteuid(), "only root can become nobody")
    def test_nobody_gets_an_answer(self):
        result = doctor("-j", as_nobody=True)
        document = json.loads(result.stdout)
        self.agree(document, result.returncode)
        self.assertEqual(rows(document)["capabilities"]["state"], "absent")
        self.assertNotEqual(document["tier"], "bpf")
        self.assertEqual(result.returncode, 1)

    def test_table_says_the_same(self):
        document = json.loads(doctor("-j").stdout)
        table = doctor().stdout
        for row in document["checks"]:
            self.assertRegex(table, rf"(?m)^{row['name']} +{row['state']} ")
            if row["state"] != "present":
                self.assertIn("costs: " + row["cost"], table)
                self.assertIn("fix:   " + row["fix"], table)
        self.assertIn("\ntier: " + (document["tier"] or "none"), table)

    def test_verbose_lists_every_mend(self):
        document = json.loads(doctor("-j").stdout)
        table = doctor("-v").stdout
        for row in document["checks"]:
            self.assertIn(row["fix"], table)

    def test_wrong_command_lines(self):
        for arguments in (["-x"], ["word"], ["--root"]):
            with self.subTest(arguments=arguments):
                result = doctor(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_full_output_is_an_error(self):
        """Of each command that needs nothing, and of help."""
        for command in ("doctor", "doctor -j", "list", "list -j", "layout", "layout -j",
                        "layout KDPC --all", "stat --help", "--help", "--version"):
            with self.subTest(command), open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([PRCB, *command.split()], stdout=full, text=True,
                                        stderr=subprocess.PIPE, timeout=60, check=False)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r"^prcb.*: cannot write to standard output: "
                                                r"No space left on device\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
