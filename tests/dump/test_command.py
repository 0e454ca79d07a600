# SPDX-License-Identifier: BSD-2-Clause
"""The command line of `prcb dump`: compression, several files, options, symbols, speed."""
import bz2
import gzip
import io
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import time
import unittest
import zipfile

import mkdump
from common import PRCB, SOURCE, DumpTest, run
from test_synthetic import TIMES

TRIAGE = TIMES + "container = triage64\nversion = 10.0.19041\n"


def zipped(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


class Compressed(DumpTest):
    def pack(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def test_each_format_by_content_not_name(self):
        raw = mkdump.make(TRIAGE)
        packed = {"a.dmp.xz": lzma.compress(raw), "a.dmp.gz": gzip.compress(raw),
                  "named_wrongly.dmp": lzma.compress(raw[:5000]) + lzma.compress(raw[5000:]),
                  "a.dmp.bz2": bz2.compress(raw),
                  "a.zip": zipped({"Memory.DMP": raw, "readme.txt": b"-"}),
                  "stored.zip": zipped({"report": raw}, zipfile.ZIP_STORED),
                  "two.dmp.bz2": bz2.compress(raw[:5000]) + bz2.compress(raw[5000:]),
                  "two.dmp.gz": gzip.compress(raw[:5000]) + gzip.compress(raw[5000:])}
        if shutil.which("zstd"):
            packed["a.dmp.zst"] = subprocess.run(["zstd", "-qc"], input=raw, check=True,
                                                 stdout=subprocess.PIPE).stdout
            # As long as a whole number of the pieces that are unpacked at a time.
            whole = mkdump.make(TRIAGE)
            whole += bytes(-len(whole) % (256 << 10))
            packed["whole.dmp.zst"] = subprocess.run(["zstd", "-qc"], input=whole, check=True,
                                                     stdout=subprocess.PIPE).stdout
        else:
            print("SKIPPED: .zst, there is no zstd program to pack with")
        for name, data in packed.items():
            with self.subTest(name):
                self.assertEqual(len(self.read(self.pack(name, data))["processors"]), 3)
                for cut in (len(data) // 2, len(data) - 3):
                    self.refused(self.pack("cut-" + name, data[:cut]), "damaged")

    def test_archives(self):
        raw = mkdump.make(TRIAGE)
        two = zipped({"1.dmp": raw, "2.dmp": raw})
        self.refused(self.pack("two.zip", two), "2 dumps")
        none = zipped({"a.txt": raw, "b.txt": raw})
        self.refused(self.pack("none.zip", none), "2 files", "*.dmp")
        self.refused(self.pack("lzma.zip", zipped({"a.dmp": raw}, zipfile.ZIP_LZMA)), "method 14")
        good = zipped({"a.dmp": raw})
        for at, words in ((good.index(b"PK\1\2") + 8, "encrypted"), (len(good) // 2, "damaged"),
                          (good.index(b"PK\1\2") + 16, "damaged"), (len(good) - 6, "damaged")):
            bad = bytearray(good)
            bad[at] ^= 1
            self.refused(self.pack("bad.zip", bytes(bad)), words)
        # Larger than 4 GiB, as its directory has it: in the extra field of ZIP64.
        entry = good.index(b"PK\1\2")
        end = good.index(b"PK\5\6")
        size = bytes.fromhex("ffffffff")
        extra = struct.pack("<HHQ", 1, 8, len(raw))
        name = struct.unpack_from("<H", good, entry + 28)[0]
        wide = (good[:entry + 24] + size + good[entry + 28:entry + 30] +
                struct.pack("<H", len(extra)) + good[entry + 32:entry + 46 + name] + extra +
                good[entry + 46 + name:end])
        wide += (struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1,
                             len(wide) - entry, entry) +
                 struct.pack("<4sIQI", b"PK\6\7", 0, len(wide), 1) + good[end:])
        self.assertEqual(len(self.read(self.pack("wide.zip", wide))["processors"]), 3)

    def test_damaged(self):
        data = bytearray(lzma.compress(mkdump.make(TRIAGE)))
        data[len(data) // 2] ^= 0x55
        self.refused(self.pack("bad.dmp.xz", bytes(data)), "damaged")

    def test_bomb(self):
        bomb = self.pack("bomb.dmp.xz", lzma.compress(bytes(64 << 20), preset=1))
        done = run("--unpack-limit", "16", bomb)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"more than 16 MiB", done.stderr)
        for name, data in (("b.bz2", bz2.compress(bytes(64 << 20))),
                           ("b.zip", zipped({"b.dmp": bytes(64 << 20)}))):
            done = run("--unpack-limit", "16", self.pack(name, data))
            self.assertEqual((done.returncode, b"more than 16 MiB" in done.stderr), (1, True), name)

    def test_leaves_no_file_behind(self):
        folder = self.path("tmp")
        os.mkdir(folder)
        path = self.pack("a.dmp.xz", lzma.compress(mkdump.make(TRIAGE)))
        done = subprocess.run([PRCB, "dump", path], env=dict(os.environ, TMPDIR=folder),
                              stdout=subprocess.PIPE)
        self.assertEqual((done.returncode, os.listdir(folder)), (0, []))


class Several(DumpTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("fleet/b"))
        for i, name in enumerate(("fleet/1.dmp", "fleet/2.DMP", "fleet/b/3.dmp")):
            self.write(TRIAGE + "bugcheck = %d" % (0x50 + i), name)
        with open(self.path("fleet/2bad.dmp"), "w") as out:
            out.write("no dump")
        with open(self.path("fleet/readme.txt"), "w") as out:
            out.write("not looked at")

    def test_directory_ndjson(self):
        for jobs in ("1", "2", "7"):
            done = run("--ndjson", "-J", jobs, self.path("fleet"))
            lines = [json.loads(x) for x in done.stdout.decode().splitlines()]
            self.assertEqual((done.returncode, done.stderr), (1, b""))
            self.assertEqual([os.path.basename(x["file"]) for x in lines],
                             ["1.dmp", "2.DMP", "2bad.dmp", "3.dmp"])
            self.assertEqual(["error" in x for x in lines], [False, False, True, False])
            self.assertIn("not a Windows kernel crash dump", lines[2]["error"])
            self.assertEqual(lines[3]["bugcheck"]["code"], 0x52)

    def test_text_and_json_of_several(self):
        done = run(self.path("fleet"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertIn(b"2bad.dmp", done.stderr)
        self.assertEqual(done.stdout.count(b"\ncontainer "), 3)
        done = run("-j", self.path("fleet"))
        data = json.loads(done.stdout)
        self.assertEqual([x["bugcheck"]["code"] if "bugcheck" in x else None for x in data],
                         [0x50, 0x51, None, 0x52])
        self.assertEqual(os.path.basename(data[2]["file"]), "2bad.dmp")
        self.assertIn("not a Windows kernel crash dump", data[2]["error"])
        self.assertEqual(run(self.path("fleet"), "-j").stdout, done.stdout)

    def test_file_names_that_are_not_utf8(self):
        name = os.fsencode(self.path("fleet/b")) + b"/\xff\xc3\xa9\"\n.dmp"
        os.rename(self.path("fleet/b/3.dmp"), name)
        line = run("--ndjson", self.path("fleet/b")).stdout.decode()  # strict UTF-8
        self.assertTrue(json.loads(line)["file"].endswith("/\ufffd\u00e9\"\n.dmp"))

    def test_all_good_is_success(self):
        os.unlink(self.path("fleet/2bad.dmp"))
        self.assertEqual(run("--ndjson", self.path("fleet")).returncode, 0)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PRCB, "dump", "--ndjson", self.path("fleet")], stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rb"\Aprcb dump: cannot write to standard output: .*\n\Z")

    def test_empty_directory(self):
        os.mkdir(self.path("none"))
        done = run(self.path("none"), self.path("fleet/1.dmp"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no *.dmp", done.stderr)
        self.assertIn(b"container", done.stdout)

    def test_missing_processor_is_an_error_line(self):
        done = run("--ndjson", "--cpu", "9", self.path("fleet/1.dmp"))
        line, = done.stdout.decode().splitlines()
        self.assertIn("processor 9 is not in this dump", json.loads(line)["error"])
        self.assertEqual(done.returncode, 1)


class Options(DumpTest):
    def test_usage(self):
        for args in ((), ("--cpu", "x", "f"), ("-J", "0", "f"), ("--nope",), ("f", "--nope")):
            done = run(*args)
            self.assertEqual((done.returncode, done.stdout), (2, b""), args)
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for word in (b"--struct", b"--time-increment", b"--symbols", b"--ndjson"):
            self.assertIn(word, done.stdout)

    def test_table(self):
        out = run(self.write(TRIAGE)).stdout.decode()
        row, = [x for x in out.splitlines() if x.startswith("   1*")]
        self.assertEqual(row.split()[:9], ["1*", "937.50", "93.8", "62.34", "6.2", "0.19", "0.0",
                                           "0.11", "0.0"])
        self.assertIn("tick        15.625 ms (assumed", out)
        raw = run("--raw", self.path("test.dmp")).stdout.decode()
        row, = [x for x in raw.splitlines() if x.startswith("   1*")]
        self.assertEqual(row.split()[:6], ["1*", "60000", "3990", "12", "7", "123456"])

    def test_absent_is_a_dash(self):
        out = run(self.write("container = triage64\nversion = none\nbuild = 30000\n"
                             "processors = 1\nkdbg = none")).stdout.decode()
        row, = [x for x in out.splitlines() if x.startswith("   0*")]
        self.assertEqual(set(row.split()[1:]), {"-"})

    def test_cpu_struct_thread_raw(self):
        path = self.write(TRIAGE + "cpu.2.PowerState.TargetIdleState = 2\n"
                          "thread.1.ContextSwitches = 4321\nthread.1.WaitReason = 6")
        out = run("--cpu", "2", path).stdout.decode()
        self.assertIn("KPRCB at 0xfffff80010040180", out)
        self.assertRegex(out, r"TargetIdleState +2 +catalog")
        self.assertRegex(out, r"\+0x0034 TargetIdleState +ULONG +2\n")
        out = run("--thread", path).stdout.decode()
        self.assertRegex(out, r"ThreadWaitReason +6 +catalog  UserRequest")
        self.assertIn("processor 1, the one that crashed", out)
        out = run("--struct", "_PROCESSOR_POWER_STATE", "--cpu", "2", "--raw", path)
        self.assertRegex(out.stdout.decode(), r"\+0x0030( 00){4} 02 00")
        done = run("--struct", "NO_SUCH", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"PROC_IDLE_ACCOUNTING", done.stderr)

    def test_symbols(self):
        """prcb layout --isf writes a symbol table; read back it finds what the catalog finds, under
        the same names: elements of arrays, and no structure beside its parts."""
        done = subprocess.run([PRCB, "layout", "KPRCB", "--version", "10.0.19041", "--isf"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        table = json.loads(done.stdout)
        fields = table["user_types"]["_KPRCB"]["fields"]
        fields["DpcWatchdogPeriod"] = {"offset": 0x100, "type": fields["KernelTime"]["type"]}
        fields["DpcWatchdogCount"] = {"offset": 0x104, "type": fields["KernelTime"]["type"]}
        with lzma.open(self.path("s.json.xz"), "wt") as out:
            json.dump(table, out)
        path = self.write(TRIAGE + "raw.1.0x100.4 = 500\nraw.1.0x104.4 = 500")
        plain, data = self.read(path), self.read(path, "--symbols", self.path("s.json.xz"))
        self.note(data, "DpcWatchdogCount 500 of DpcWatchdogPeriod 500")
        for a, b in zip(plain["processors"], data["processors"]):
            self.assertEqual(b["found_by"]["KernelTime"], "symbols")
            self.assertEqual(b["power_state"]["found_by"], "symbols")
            for name in ("KernelTime", "MHz", "IdleTimeTotal", "Parked", "kprcb"):
                self.assertEqual(a[name], b[name], name)
            self.assertEqual(a["power_state"]["members"], b["power_state"]["members"])
        paths = [set(re.findall(r"(?m)^ +(\+0x[0-9a-f]+ \S+)", run("--struct", "KPRCB", *more, path)
                                .stdout.decode())) - {"+0x0100 DpcWatchdogPeriod"}
                 for more in ((), ("--symbols", self.path("s.json.xz")))]
        self.assertIn("+0x8060 PowerState.PerfFeedback.Counters[0]", paths[0])
        self.assertEqual(paths[0] - paths[1], set())

    def test_symbols_for_a_build_nobody_knows(self):
        done = subprocess.run([PRCB, "layout", "KPRCB", "--version", "10.0.19041", "--isf"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with open(self.path("s.json"), "wb") as out:
            out.write(done.stdout)
        data = self.read(self.write(TRIAGE + "build = 40000"), "--symbols", self.path("s.json"))
        self.assertEqual(data["processors"][0]["KernelTime"], 60000)
        self.assertEqual(data["processors"][0]["found_by"]["KernelTime"], "symbols")

    def test_bad_symbols(self):
        path = self.write(TRIAGE)
        for text, words in (("{", b"nor JSON"), ("{}", b"not a symbol table"), ("[]", b"not a sym")):
            with open(self.path("s.json"), "w") as out:
                out.write(text)
            done = run("--symbols", self.path("s.json"), path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)


class Page(DumpTest):
    def test_the_session_is_what_is_printed(self):
        with open(os.path.join(SOURCE, "docs", "dumps.md")) as file:
            page = file.read()
        with open(os.path.join(SOURCE, "tests", "dump", "session.dump")) as file:
            self.write(file.read(), "session.dmp")
        sessions = re.findall(r"```\n\$ prcb dump ([^\n]*?)session.dmp[^\n]*\n(.*?)```", page, re.S)
        self.assertEqual(len(sessions), 2)
        for options, text in sessions:
            done = subprocess.run([PRCB, "dump", *options.split(), "session.dmp"],
                                  cwd=self.folder.name, stdout=subprocess.PIPE)
            self.assertIn(text, done.stdout.decode())
        self.assertTrue(sessions[0][1].startswith("file        session.dmp\n"))

    def test_options_are_in_the_manual(self):
        with open(os.path.join(SOURCE, "man", "prcb-dump.1.scd")) as file:
            page = file.read()
        for option in re.findall(r"--[a-z-]+", run("--help").stdout.decode()):
            self.assertIn("*%s*" % option, page)


class Large(DumpTest):
    def test_sparse_64_gib(self):
        """A full and a bitmap dump of a 64 GiB machine: read in seconds, not read whole."""
        for container in ("full64", "bitmap-full64"):
            path = self.write(TIMES + "container = %s\nversion = 10.0.19041\n%s" %
                              (container, "bits = 0x1000000" if container != "full64" else ""))
            try:
                os.truncate(path, 64 << 30)
            except OSError as err:
                self.skipTest("no sparse file of 64 GiB here: %s" % err)
            started = time.monotonic()
            self.assertEqual(len(self.read(path)["processors"]), 3)
            self.assertLess(time.monotonic() - started, 10)  # measured below 0.1; busy machines


if __name__ == "__main__":
    unittest.main(verbosity=2)
