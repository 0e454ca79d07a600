#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The systemd units, as the build writes them: systemd can read them, they name files that are
installed, and what the sandbox forbids stays forbidden. Needs systemd's tools, not systemd."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("PRCB_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
ANALYZE = shutil.which("systemd-analyze")
UNITS = ("prcbd.service", "prcbd.socket", "prcb-history.service", "prcb-exporter.service", "prcb-push.service")


def settings(unit):
    """Its lines, as a list of (key, value)."""
    return re.findall(r"(?m)^(\w+)=(.*)$", (ROOT / "packaging" / (unit + ".in")).read_text())


def defaults():
    return dict(re.findall(r"(?m)^#?(\w+) =[ ]?(.*)$", (ROOT / "packaging/prcbd.conf").read_text()))


class Units(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for unit in UNITS:
            text = (ROOT / "packaging" / (unit + ".in")).read_text()
            # /bin/true is there, wherever prcbd will be.
            text = re.sub(r"@s?bindir@/prcb(d|-exporter)?\b", "/bin/true", text).replace("@sysconfdir@", "/etc")
            self.assertNotIn("@", re.sub(r"SystemCallFilter=.*", "", text))
            (self.folder / unit).write_text(text)
        for unit in ("prcb-exporter.socket", "prcb-flight.service"):
            text = (ROOT / "examples/systemd" / unit).read_text()
            (self.folder / unit).write_text(text.replace("/usr/bin/prcb ", "/bin/true "))

    def analyze(self, *arguments):
        return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=60,
                              check=False, env={**os.environ, "SYSTEMD_PAGER": "cat",
                                                "SYSTEMD_LOG_LEVEL": "warning"})

    @unittest.skipUnless(ANALYZE, "systemd-analyze is not installed")
    def test_systemd_reads_them(self):
        result = self.analyze("verify", "--man=no", *[str(path) for path in self.folder.iterdir()])
        # What it says of other units of this machine is not ours.
        own = [line for line in result.stderr.splitlines() if "prcb" in line]
        self.assertEqual(own, [])
        self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipUnless(ANALYZE, "systemd-analyze is not installed")
    def test_a_mistake_would_be_seen(self):
        with open(self.folder / "prcbd.service", "a", encoding="utf-8") as file:
            file.write("[Service]\nProtectEverything=yes\n")
        result = self.analyze("verify", "--man=no", str(self.folder / "prcbd.service"))
        self.assertIn("ProtectEverything", result.stderr)

    @unittest.skipUnless(ANALYZE, "systemd-analyze is not installed")
    def test_exposure_stays_low(self):
        # systemd's own scale, in tenths: 0 is closed, 100 an ordinary service started as root.
        for unit in UNITS:
            if not unit.endswith(".service"):
                continue
            # prcbd loads eBPF programs as root, before it becomes another user. prcb push reads other users' stacks
            # and sends over the network, and has no filter of system calls for its libraries' sake.
            most = {"prcbd.service": 20, "prcb-exporter.service": 15, "prcb-push.service": 35}.get(unit, 30)
            result = self.analyze("security", "--offline=true", f"--threshold={most}",
                                  str(self.folder / unit))
            if "unrecognized option" in result.stderr:
                self.skipTest("this systemd-analyze cannot judge files")
            self.assertEqual(result.returncode, 0, result.stdout[-1500:] + result.stderr)

    def test_history_is_kept_for_a_week_and_starts_with_nobodys_package(self):
        command = dict(settings("prcb-history.service"))["ExecStart"]
        self.assertRegex(command, r"prcb top -q -a -w %S/prcb-history .*--keep 7 --max-size \d+")
        self.assertIn("dh_installsystemd -pprcb --no-enable --no-start",
                      (ROOT / "packaging/debian/rules").read_text())

    def test_the_exporter_has_no_capability(self):
        service = dict(settings("prcb-exporter.service"))
        self.assertEqual((service["CapabilityBoundingSet"], service["AmbientCapabilities"]), ("", ""))

    def test_socket_is_where_clients_look(self):
        socket = dict(settings("prcbd.socket"))
        self.assertEqual(socket["ListenStream"], defaults()["socket"])
        self.assertEqual(socket["SocketMode"], defaults()["socket_mode"])

    def test_user_is_the_one_of_the_configuration(self):
        self.assertIn(f"\nu {defaults()['user']} - ",
                      (ROOT / "packaging/sysusers.conf").read_text())

    def test_folder_of_the_socket_is_made(self):
        folder = os.path.dirname(defaults()["socket"])
        self.assertRegex((ROOT / "packaging/tmpfiles.conf").read_text(),
                         rf"(?m)^d {folder} 0755 root root -$")

    def test_pins_are_within_what_is_writable(self):
        """And nothing else is."""
        service = dict(settings("prcbd.service"))
        self.assertEqual(service["ReadWritePaths"], "-" + defaults()["pin_directory"])
        self.assertEqual(service["ExecStartPre"].split()[-1], defaults()["pin_directory"])

    def test_what_it_cannot_do(self):
        service = dict(settings("prcbd.service"))
        for key, value in (("IPAddressDeny", "any"), ("DevicePolicy", "closed"), ("LimitCORE", "0"), ("TasksMax", "8"),
                           ("NoNewPrivileges", "yes"), ("PrivateNetwork", "yes")):
            self.assertEqual(service[key], value, key)
        self.assertNotIn("ProtectProc", service)  # it would take all users' /proc for such a one
        most = int(service["MemoryMax"].rstrip("M"))
        self.assertGreater(most, int(defaults()["max_memory_total"].rstrip("M")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
