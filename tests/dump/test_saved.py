# SPDX-License-Identifier: BSD-2-Clause
"""Layouts of a user's own symbols: listed, compared with the catalog, saved, and used by dumps and
`prcb power`. The symbol files are the catalog's own, of one version, under another name."""
import json
import multiprocessing
import os
import pathlib
import stat
import subprocess
import unittest

from common import PRCB, DumpTest, run
from test_synthetic import TIMES

OWN = "10.0.26200.1742"  # a build that the catalog does not have
GUID = "3844DBB920174967BE7AA4A2C20430FA"


def layout(*args, **env):
    return subprocess.run([PRCB, "layout", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, env=dict(os.environ, **env))


def save_many(path, count):
    for _ in range(count):
        if layout("--symbols", path, "--version", OWN).returncode:
            os._exit(1)


class Saved(DumpTest):
    def setUp(self):
        super().setUp()
        os.environ["XDG_DATA_HOME"] = self.path("data")
        self.addCleanup(os.environ.__setitem__, "XDG_DATA_HOME", "/nonexistent")
        self.saved = self.path("data/prcb/layouts")

    def isf(self, version="10.0.22631", name="nt.json", edit=None, structure="KPRCB"):
        data = json.loads(layout(structure, "--version", version, "--isf").stdout)
        if edit:
            edit(data)
        return self.file(name, json.dumps(data).encode())

    def fails(self, words, *args, **env):
        done = layout(*args, **env)
        self.assertEqual((done.returncode, b"saved" in done.stdout), (1, False), done)
        self.assertIn(words, done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_list_and_compare(self):
        path = self.isf()
        done = json.loads(layout("--symbols", path, "-j").stdout)
        self.assertEqual((done["machine"], done["guid"], done["saved"]), ("x64", None, None))
        self.assertFalse(os.path.exists(self.saved))
        done = json.loads(layout("--symbols", path, "--version", "10.0.22631.0", "-j").stdout)
        sizes = {s["struct"]: s["size"] for s in done["structs"]}
        self.assertEqual((sizes["KPRCB"], sizes["PROCESSOR_POWER_STATE"]), (0xbf00, 0x238))
        self.assertEqual([s["catalog"] for s in done["structs"]], [None] * len(sizes))

        def edit(data):
            fields = data["user_types"]["_PROCESSOR_POWER_STATE"]["fields"]
            fields["Parked"]["offset"] += 1
            del fields["TotalTime"]
        for version in ("10.0.22631", "10.0.19041.329"):
            same = json.loads(layout("--symbols", self.isf(version), "--version", version, "-j").stdout)
            self.assertEqual({s["catalog"]["differences"] for s in same["structs"]}, {0}, version)
        done = layout("--symbols", self.isf(edit=edit), "--version", "10.0.22631").stdout.decode()
        self.assertRegex(done, r"PROCESSOR_POWER_STATE .* has 2 things otherwise")
        self.assertRegex(done, r"(?m)^moved +Parked +0x1CC.* -> 0x1CD")
        self.assertRegex(done, r"(?m)^removed +TotalTime ")
        self.assertRegex(done, r"(?m)^moved +PowerState.Parked ")
        self.assertRegex(done, r"(?m)^KTHREAD .*; as in the catalog")

    def test_every_version_comes_back(self):
        """Each layout of the catalog, by way of a symbol file, is the same bytes for bytes."""
        for version in ("6.1.7601.24540", "10.0.10240 RTM", "10.0.18362.295", "10.0.26100"):
            for structure in ("PROCESSOR_POWER_STATE", "KPRCB", "KTHREAD"):
                path = self.isf(version, structure=structure)
                there = json.loads(layout(structure, "--version", version, "-j").stdout)
                back = json.loads(layout(structure, "--symbols", path, "-j").stdout)
                self.assertEqual(back["source"], "symbols")
                for data in (there, back):
                    data["places"] = {(m["name"], m["offset"], m["size"], str(m.get("bits")))
                                      for m in data["members"] if m["type"] not in ("union", "struct")}
                self.assertEqual(there["places"], back["places"], (version, structure))
                self.assertEqual(there["size"], back["size"])

    def test_saved_is_used(self):
        path = self.isf()
        text = TIMES + "container = triage64\nversion = 10.0.22631\nbuild = 26200\n" \
            "cpu.0.PowerState.Parked = 1\n"
        dump = self.write(text)
        before = json.loads(run("-j", dump).stdout)
        self.assertIsNone(before["symbols"])
        done = layout("--symbols", path, "--version", OWN)
        self.assertEqual(done.returncode, 0, done.stderr)
        where = os.path.join(self.saved, OWN + "-x64.json")
        self.assertIn(("saved as " + where).encode(), done.stdout)
        self.assertEqual(stat.S_IMODE(os.stat(self.saved).st_mode), 0o700)
        data = self.read(dump)
        self.assertEqual((data["symbols"], data["processors"][0]["found_by"]["KernelTime"]),
                         (where, "symbols"))
        self.assertEqual((data["processors"][0]["KernelTime"], data["processors"][0]["Parked"]),
                         (60000, 1))
        self.assertIn(("by symbols (" + where + ")").encode(), run(dump).stdout)
        # of another size or build they are not used, and nothing is said
        for other in (text.replace("22631", "26100").replace("26200", "26100"),
                      text.replace("version = 10.0.22631", "version = 10.0.19041")):
            self.assertIsNone(json.loads(run("-j", self.write(other, "other.dmp")).stdout)["symbols"])
        out = layout("PROCESSOR_POWER_STATE", "--version", OWN)
        self.assertEqual(out.stderr, b"")
        self.assertIn(b"10.0.26200.1742 (by symbols of your own), x64: 0x238 bytes", out.stdout)
        for words in (OWN, "26200.1742"):
            out = subprocess.run([PRCB, "power", "--as", words, "--tier", "perf", "-j", "0.01"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((out.returncode, out.stderr), (0, b""))
            self.assertIn(b'"10.0.26200.1742"', out.stdout)

    def test_guid(self):
        def edit(data):
            data["metadata"]["windows"] = {"pdb": {"GUID": GUID.lower(), "age": 2, "machine_type": 34404}}
        path = self.isf(edit=edit)
        self.assertEqual(json.loads(layout("--symbols", path, "-j").stdout)["guid"], GUID)
        text = TIMES + "container = bitmap-kernel64\nversion = 10.0.22631\ncodeview = ntkrnlmp.pdb %s %d\n"
        data = self.read(self.write(text % (GUID, 2)), "--symbols", path)
        self.assertEqual((data["kernel_pdb"], data["symbols"]),
                         ("ntkrnlmp.pdb/%s2/ntkrnlmp.pdb" % GUID, path))
        self.no_note(data, "GUID")
        data = self.read(self.write(text % (GUID, 3)), "--symbols", path)
        self.note(data, "another age", "it is used")
        self.assertEqual(data["symbols"], path)
        plain = self.read(self.write(text % (GUID[::-1], 2)))
        data = self.read(self.write(text % (GUID[::-1], 2)), "--symbols", path)
        self.note(data, "another kernel's and is not used", GUID + "2", GUID[::-1] + "2")
        self.assertIsNone(data["symbols"])
        self.assertEqual(data["processors"], plain["processors"])
        # two revisions of a build, saved: the one of the dump's GUID is taken
        other = self.isf(name="other.json", edit=lambda data: (edit(data), data["metadata"]["windows"][
            "pdb"].__setitem__("GUID", GUID[::-1])))
        for name, revision in ((path, 1), (other, 2)):
            layout("--symbols", name, "--version", "10.0.22631.%d" % revision)
        for guid, revision in ((GUID, 1), (GUID[::-1], 2)):
            data = self.read(self.write(text % (guid, 2)))
            self.assertIn("10.0.22631.%d-x64" % revision, data["symbols"])

    def test_folder(self):
        path = self.isf()
        os.makedirs(self.path("elsewhere"))
        os.makedirs(self.path("data/prcb"))
        os.symlink(self.path("elsewhere"), self.saved)
        dump = self.write(TIMES + "container = triage64\nversion = 10.0.22631\n")
        self.fails("a link", "--symbols", path, "--version", OWN)
        self.assertEqual(os.listdir(self.path("elsewhere")), [])
        self.assertIn(b"a link", run("-j", dump).stderr)
        os.unlink(self.saved)
        os.mkdir(self.saved)
        os.chmod(self.saved, 0o777)
        self.fails("may be written by others", "--symbols", path, "--version", OWN)
        self.assertIn(b"not used", run("-j", dump).stderr)
        os.chmod(self.saved, 0o700)
        if os.getuid() == 0:
            os.chown(self.saved, 65534, -1)
            self.fails("another user's", "--symbols", path, "--version", OWN)
            os.chown(self.saved, 0, -1)
        self.fails("set XDG_DATA_HOME", "--symbols", path, "--version", OWN, XDG_DATA_HOME="", HOME="")
        # what is no file of ours there, links and pipes, is left alone
        for name, make in (("10.0.22631.1-x64.json", lambda p: os.symlink(path, p)),
                           ("10.0.22631.1-x64.json", lambda p: os.mkfifo(p)),
                           ("10.0.22631.1-x64.json", lambda p: pathlib.Path(p).write_text("[" * 100000))):
            make(os.path.join(self.saved, name))
            done = run("-j", dump)
            self.assertEqual((done.returncode, done.stderr.count(b"\n")), (0, 1), done.stderr)
            self.assertIsNone(json.loads(done.stdout)["symbols"])
            os.unlink(os.path.join(self.saved, name))

    def test_two_writers(self):
        path = self.isf()
        writers = [multiprocessing.Process(target=save_many, args=(path, 5)) for _ in range(2)]
        for w in writers:
            w.start()
        for w in writers:
            w.join()
        self.assertEqual([w.exitcode for w in writers], [0, 0])
        self.assertEqual(os.listdir(self.saved), [OWN + "-x64.json"])

    def test_what_is_no_kernels(self):
        for edit, words in (
                (lambda d: d["user_types"]["_KPRCB"]["fields"]["PowerState"].update(offset=0xbef0), "outside"),
                (lambda d: d["user_types"]["_KTHREAD"].update(size=1 << 30), "bytes: not a kernel's"),
                (lambda d: d["user_types"]["_KPRCB"].update(size=0), "KPRCB has 0x0 bytes"),
                (lambda d: d.update(user_types={}), "no _KPRCB")):
            self.fails(words, "--symbols", self.isf(edit=edit), "--version", OWN)
            self.assertFalse(os.path.exists(self.saved))
        self.fails("is no build", "--symbols", self.isf(), "--version", "Windows 11 22H2")
        self.fails("JSON", "--symbols", self.file("deep.json", b"[" * 3000000))
        with open(self.path("large.json"), "wb") as out:
            out.truncate(65 << 20)
        self.fails("larger than a kernel's symbols", "--symbols", self.path("large.json"))
        self.fails("JSON", "--symbols", self.file("deep.json", b'{"user_types":' * 300000))


if __name__ == "__main__":
    unittest.main(verbosity=2)
