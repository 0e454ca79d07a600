# SPDX-License-Identifier: BSD-2-Clause
"""Who, where and what: modules, registers, threads, DPCs, bug checks; synthetic dumps."""
import struct
import unittest

import mkdump
from common import DumpTest, run

KERNEL, EVIL, GONE = 0xfffff80000000000, 0xfffff80055000000, 0xfffff80066000000
MODULES = """
module.0 = ntoskrnl.exe 0xfffff80000000000 0x1000000 0x11223344 0x9abcd
module.1 = evil.sys 0xfffff80055000000 0x8000 0x5f5e1000 0x77
unloaded.0 = gone.sys 0xfffff80066000000 0x2000
stack.0 = 0xfffff80000012345
stack.8 = 7
stack.24 = 0xfffff80055000010
stack.32 = 0xfffff80055008000
stack.40 = 0xfffff80066000044
bugcheck = 0xd1
parameter.1 = 0x10
parameter.2 = 2
parameter.4 = 0xfffff80055001234
exception = 0xc0000005 0xfffff80055001234
crashing = 1
"""
CONTEXTS = """
context.1.rip = 0xfffff80055001230
context.1.rsp = 0xfffff80020001000
context.0.rip = 0xfffff80000000010
context.0.rax = 0xfffff80066000001
context.0.r15 = 0x123456789abcdef0
irql.0 = 15
irql.1 = 2
"""
MODULES_32 = """
module.0 = ntoskrnl.exe 0x80800000 0x200000 0x11223344 0x9abcd
module.1 = evil.sys 0x8f000000 0x8000 0x5f5e1000 0x77
unloaded.0 = gone.sys 0x91000000 0x2000
stack.0 = 0x80812345
stack.4 = 7
stack.12 = 0x8f000010
crashing = 1
"""
WHOLE = ("full64", "bitmap-kernel64", "ranges-kernel64")


def names(data):
    return [(m["name"], m["base"], m["size"], m["timestamp"], m["checksum"], m["unloaded"])
            for m in data["modules"]]


class Modules(DumpTest):
    WANTED = [("ntoskrnl.exe", hex(KERNEL), 0x1000000, 0x11223344, 0x9abcd, False),
              ("evil.sys", hex(EVIL), 0x8000, 0x5f5e1000, 0x77, False),
              ("gone.sys", hex(GONE), 0x2000, None, None, True)]

    def make64(self, container, more=""):
        return self.make("container = %s\nversion = 10.0.19041\nprocessors = 3\n" % container +
                         MODULES + more, "--modules", "--stack")

    def test_64(self):
        for container in ("triage64",) + WHOLE:
            with self.subTest(container):
                data = self.make64(container)
                self.assertEqual(names(data), self.WANTED)
                self.assertEqual(data["bugcheck"]["parameters_at"],
                                 [None, None, None, "evil.sys+0x1234"])
                self.assertEqual(data["exception"], {
                    "code": "0xc0000005", "name": "STATUS_ACCESS_VIOLATION",
                    "address": hex(EVIL + 0x1234), "at": "evil.sys+0x1234"})
                self.assertEqual([s["at"] for s in data["stack_scan"]],
                                 ["ntoskrnl.exe+0x12345", "evil.sys+0x10",
                                  "gone.sys+0x44 (unloaded)"])
                self.assertEqual(int(data["stack_scan"][1]["address"], 16) -
                                 int(data["stack_scan"][0]["address"], 16), 24)

    def test_32(self):
        for container in ("triage32", "full32"):
            with self.subTest(container):
                data = self.make("container = %s\nversion = 6.1.7601\nprocessors = 3\n" % container
                                 + MODULES_32, "--modules", "--stack")
                self.assertEqual(names(data), [
                    ("ntoskrnl.exe", "0x80800000", 0x200000, 0x11223344, 0x9abcd, False),
                    ("evil.sys", "0x8f000000", 0x8000, 0x5f5e1000, 0x77, False),
                    ("gone.sys", "0x91000000", 0x2000, None, None, True)])
                self.assertEqual([s["at"] for s in data["stack_scan"]],
                                 ["ntoskrnl.exe+0x12345", "evil.sys+0x10"])

    def test_text(self):
        path = self.write("container = triage64\nversion = 10.0.19041\n" + MODULES)
        out = run("--modules", "--stack", path).stdout.decode()
        self.assertIn("0xfffff80055000000 0x00008000 0x5f5e1000 0x00000077  2020-09-13  evil.sys\n", out)
        self.assertIn("gone.sys (unloaded)\n", out)
        self.assertIn("a scan for addresses in modules, no backtrace", out)
        self.assertIn("address of the code that referenced it  evil.sys+0x1234\n", out)
        self.assertIn("exception   0xc0000005 STATUS_ACCESS_VIOLATION at 0xfffff80055001234  evil.sys+0x1234\n", out)

    def test_without_lists(self):
        path = self.write("container = triage64\nversion = 10.0.19041")
        data = self.read(path, "--modules", "--stack")
        self.assertEqual((data["modules"], data["stack_scan"]), ([], []))
        out = run("--modules", "--stack", path).stdout.decode()
        self.assertIn("no list of them is in this dump", out)

    def test_hostile_names(self):
        """Paths, control and bidirectional characters, quotes, a name without an end."""
        for text, name in (("a\\u202eb\\x07\\x1b[2J\\n.sys", "a?b??[2J?.sys"),
                           ("\\\\SystemRoot\\\\drivers\\\\x.sys", "x.sys"),
                           ("../../e.sys", "e.sys"), ("\\ud800\\u00e9 x'.sys", "????x?.sys"[1:]),
                           ("y" * 3000, "y" * 63), ("a/b/", "?")):
            for container in ("triage64", "full64"):
                with self.subTest(name, container=container):
                    data = self.make64(container, "string.1 = \"%s\"" % text)
                    self.assertEqual(names(data)[1][0], name)
        out = run(self.path("test.dmp"), "--modules").stdout
        self.assertNotIn(b"\x1b", out)

    def test_list_that_loops(self):
        """From its last entry back to its first, never to the head: it ends, and says what it
        saw."""
        data = self.make64("full64", "list = loop")
        self.assertLess(len(data["modules"]), 12)
        self.assertEqual(names(data)[0][0], "ntoskrnl.exe")

    def test_counts_and_places_of_all_ones(self):
        for at in (0x18, 0x28, 0x2c, 0x30, 0x34, 0x48):
            data = self.make64("triage64", "poke.%d.4 = -1" % (0x2000 + at))
            self.assertLess(len(data["modules"]), 5000)


class Cause(DumpTest):
    """What a bug check means and who is probably to blame."""

    def cause(self, text, container="triage64"):
        data = self.make("container = %s\nversion = 10.0.19041\nprocessors = 3\n" % container + text,
                         "--brief")
        self.assertNotIn("processors", data)
        return data["findings"], data["probably_caused_by"]

    def test_named_by_a_parameter(self):
        for container in ("triage64",) + WHOLE:
            findings, culprit = self.cause(MODULES, container)
            self.assertEqual(findings, [
                "evil.sys+0x1234 tried to read 0x10 at DISPATCH_LEVEL, where a page fault is not "
                "allowed", "STATUS_ACCESS_VIOLATION at evil.sys+0x1234"])
            self.assertEqual(culprit, {
                "module": "evil.sys", "found_by": "the bug check names its code",
                "stack_addresses": 1, "of_stack_addresses": 3, "unloaded": False, "inbox": False})

    def test_exception_in_parameters(self):
        text = MODULES.replace("bugcheck = 0xd1", "bugcheck = 0x1e")
        for access, words in ((0, ": read of 0x289"), (1, ": write to 0x289"),
                              (8, ": execution of 0x289"), (5, "")):
            findings, culprit = self.cause(
                text + "parameter.1 = 0xffffffffc0000005\nparameter.2 = %#x\nparameter.3 = %d\n"
                "parameter.4 = 0x289\n" % (EVIL + 0x77, access))
            self.assertEqual(findings, ["STATUS_ACCESS_VIOLATION at evil.sys+0x77" + words])
            self.assertEqual((culprit["module"], culprit["found_by"]),
                             ("evil.sys", "the exception is in its code"))

    def test_by_the_stack(self):
        """Not the kernel, and Windows' own drivers only where there is no other."""
        stack = ("bugcheck = 0x139\nparameter.1 = 3\nparameter.4 = 0\n"
                 "stack.8 = 0xfffff80055000010\nstack.48 = 0xfffff80055000020\n")
        text = MODULES.replace("exception = 0xc0000005 0xfffff80055001234\n", "") + stack
        findings, culprit = self.cause(text)
        self.assertEqual(findings, ["a LIST_ENTRY is corrupt: an entry was removed twice, or freed "
                                    "while in the list"])
        self.assertEqual((culprit["module"], culprit["stack_addresses"],
                          culprit["of_stack_addresses"]), ("evil.sys", 3, 5))
        findings, culprit = self.cause(text.replace("evil.sys", "NDIS.SYS"))
        self.assertEqual((culprit["module"], culprit["unloaded"]), ("gone.sys", True))
        findings, culprit = self.cause(text.replace("evil.sys", "NDIS.SYS").replace("gone", "tcpip"))
        self.assertEqual((culprit["module"], culprit["inbox"]), ("NDIS.SYS", True))
        findings, culprit = self.cause(text.replace("evil.sys", "hal.dll").replace("gone.sys",
                                                                                   "hal.dll"))
        self.assertIsNone(culprit)

    def test_own_breakpoint(self):
        text = MODULES.replace("exception = 0xc0000005", "exception = 0x80000003")
        self.assertEqual(len(self.cause(text)[0]), 1)
        out = run("--brief", self.write("container = triage64\nversion = 10.0.19041\n" + text))
        self.assertNotIn(b"exception", out.stdout)
        self.assertIn(b"probably    caused by evil.sys: the bug check names its code (1 of 3 "
                      b"addresses there)", out.stdout)

    def test_words_of_a_value(self):
        for code, value, words in ((0x1a, 0x41792, "faulty memory"), (0x9f, 3, "power IRP"),
                                   (0x124, 0, "machine check"), (0x133, 1, "DISPATCH_LEVEL")):
            findings, _ = self.cause("bugcheck = %#x\nparameter.1 = %#x\n" % (code, value))
            self.assertIn(words, findings[0])
        self.assertEqual(self.cause("bugcheck = 0x1a\nparameter.1 = 0x99999\n")[0], [])


class Where(DumpTest):
    def make64(self, more="", container="triage64"):
        return self.make("container = %s\nversion = 10.0.19041\nprocessors = 3\n" % container +
                         MODULES + CONTEXTS + more)

    def test_registers(self):
        for container in ("triage64", "full64"):
            with self.subTest(container):
                p = self.make64("", container)["processors"]
                self.assertEqual([x["context"] and x["context"]["at"] for x in p],
                                 ["ntoskrnl.exe+0x10", "evil.sys+0x1230", None])
                self.assertEqual([x["context"] and x["context"]["found_by"] for x in p],
                                 ["kdbg", "header", None])
                self.assertEqual(p[0]["context"]["registers"]["rax"], hex(GONE + 1))
                self.assertEqual(p[0]["context"]["registers"]["r15"], "0x123456789abcdef0")
                self.assertEqual([x["irql"] for x in p], [15, 2, None])

    def test_context_inside_the_kprcb(self):
        p = self.make64("context.2.rip = 0xfffff80000000020\ncontext.2.place = inside")
        self.assertEqual(p["processors"][2]["context"]["at"], "ntoskrnl.exe+0x20")

    def test_x86(self):
        data = self.make("container = full32\nversion = 6.1.7601\nprocessors = 2\n" + MODULES_32 +
                         "context.0.eip = 0x8f000123\ncontext.0.place = inside\n"
                         "context.0.eax = 5")
        self.assertEqual(data["processors"][0]["context"]["at"], "evil.sys+0x123")
        self.assertEqual(data["processors"][0]["context"]["registers"]["eax"], "0x5")

    def test_text(self):
        path = self.write("container = triage64\nversion = 10.0.19041\nprocessors = 3\n" +
                          MODULES + CONTEXTS)
        out = run("--cpu", "0", path).stdout.decode()
        self.assertIn("  rip     0xfffff80000000010  ntoskrnl.exe+0x10\n", out)
        self.assertIn("  IRQL    15  HIGH_LEVEL\n", out)
        out = run("--cpu", "2", path).stdout.decode()
        self.assertIn("registers: ", out)
        self.assertIn("(0 switches) at evil.sys+0x1230\n", run(path).stdout.decode())

    def test_pointer_to_itself_and_to_nowhere(self):
        for value in ("0", "0xfffff80010000180", "0xffffffffffffffff", "0x1000"):
            data = self.make64("raw.0.0x85c0.8 = " + value)
            self.assertIsNone(data["processors"][0]["context"])


class Threads(DumpTest):
    PROCESS = "process.1 = svchost.exe 1232 5676\nprocess.0 = System 4 8\n"

    def test_process_and_thread(self):
        for container in ("triage64", "full64"):
            with self.subTest(container):
                data = self.make("container = %s\nversion = 10.0.19041\ncrashing = 1\n" % container +
                                 self.PROCESS)
                t = data["processors"][1]["thread"]
                self.assertEqual((t["process_name"], t["process_id"], t["id"], t["ids_found_by"],
                                  t["process_name_found_by"]),
                                 ("svchost.exe", 1232, 5676, "kdbg", "catalog"))

    def test_name_by_landmark(self):
        """A build without a known place: the one place that looks like a name."""
        data = self.make("container = triage64\nversion = 10.0.19041\nbuild = 40000\n"
                         "crashing = 1\n" + self.PROCESS)
        t = data["processors"][1]["thread"]
        self.assertEqual((t["process_name"], t["process_name_found_by"]),
                         ("svchost.exe", "landmark"))

    def test_ids_that_are_none(self):
        data = self.make("container = triage64\nversion = 10.0.19041\ncrashing = 1\n"
                         "process.1 = svchost.exe 1233 5676\n")
        self.assertEqual([data["processors"][1]["thread"][k] for k in ("id", "process_id")],
                         [None, None])


class Dpcs(DumpTest):
    QUEUE = """
crashing = 0
dpc.1.0 = 0xffffd00000000100 0xfffff80055000020
dpc.1.1 = 0xffffd00000000200 0xfffff80000000444
dpc.1.2 = 0xffffd00000000300 0xfffff80000000555
DpcRoutineActive = 0x312a
raw.1.0x312a.1 = 1
raw.1.0x30d8.4 = 3
raw.1.0x30dc.4 = 777
"""

    def make64(self, more="", bugcheck="0x133", version="10.0.19041"):
        return self.make("container = triage64\nversion = %s\n" % version +
                         MODULES.replace("0xd1", bugcheck) + self.QUEUE + more)

    def test_queue_and_counts(self):
        p = self.make64("dpc.1.active = 0xffffd00000000400 0xfffff80055000abc")["processors"][1]
        self.assertEqual([(d["active"], d["at"]) for d in p["dpcs"]], [
            (True, "evil.sys+0xabc"), (False, "evil.sys+0x20"), (False, "ntoskrnl.exe+0x444"),
            (False, "ntoskrnl.exe+0x555")])
        self.assertEqual((p["DpcQueueDepth"], p["DpcCount"], p["DpcRoutineActive"]), (3, 777, 1))
        self.assertEqual(p["found_by"]["DpcRoutineActive"], "kdbg")

    def test_notes_of_watchdogs(self):
        active = "dpc.1.active = 0xffffd00000000400 0xfffff80055000abc"
        for bugcheck in ("0x133", "0x101"):
            note = self.note(self.make64(active, bugcheck), "was running DPCs")
            self.assertIn("processor 1 was running DPCs: the routine of the active one is "
                          "evil.sys+0xabc; 3 more were queued", note)
        self.no_note(self.make64(active, "0xd1"), "was running DPCs")

    def test_queue_that_loops(self):
        self.assertLess(len(self.make64("dpcs = loop")["processors"][1]["dpcs"]), 16)

    def test_old_form_of_the_queue(self):
        """A ring of LIST_ENTRYs, up to Windows 8."""
        data = self.make("container = triage64\nversion = 6.2.9200\n" + MODULES +
                         "crashing = 0\ndpc.1.0 = 0xffffd00000000100 0xfffff80055000020\n")
        self.assertEqual([d["at"] for d in data["processors"][1]["dpcs"]], ["evil.sys+0x20"])


class Bugchecks(DumpTest):
    def test_words(self):
        data = self.make("container = triage64\nversion = 10.0.19041\nbugcheck = 0x1000007e")
        self.assertEqual(data["bugcheck"]["code_hex"], "0x1000007e")
        self.assertEqual(data["bugcheck"]["name"], "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED_M")
        self.assertEqual(data["bugcheck"]["parameter_words"][1], "address at which it occurred")

    def test_product(self):
        for product, release in ((1, "Windows 10 1809"), (2, "Windows Server 2019"),
                                 (3, "Windows Server 2019"),
                                 (9, "Windows 10 1809 or Windows Server 2019")):
            for container in ("triage64", "triage32"):
                data = self.make("container = %s\nversion = 10.0.17763\nproduct = %d" %
                                 (container, product))
                self.assertEqual(data["release"], release)

    def test_header_of_types(self):
        data = self.make("container = header64\nversion = 10.0.19041\nbugcheck = 0x9f\n"
                         "uptime = 30000000000")
        self.assertEqual((data["container"], data["uptime_100ns"]), ("header", 30000000000))
        data = self.make("container = automatic64\nversion = 10.0.19041\n"
                         "cpu.*.KernelTime = 5\nuptime = 10000000")
        self.assertEqual([p["KernelTime"] for p in data["processors"]], [5, 5])

    def test_page_ranges_that_do_not_agree(self):
        text = "container = ranges-full64\nversion = 10.0.19041\n"
        raw = mkdump.make(text)
        for at, value, words in ((0x2010, 16, "do not agree"), (0x2018, 0x2000, "do not agree"),
                                 (0x2038, 1 << 60, "range 0"), (0x2000, 7, "no header")):
            bad = bytearray(raw)
            struct.pack_into("<Q", bad, at, value)
            with open(self.path("bad.dmp"), "wb") as out:
                out.write(bad)
            self.refused(self.path("bad.dmp"), words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
