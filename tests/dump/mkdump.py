#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes small synthetic Windows crash dumps from "key = value" lines.

    mkdump.py [FILE.dump|-] OUTPUT        PRCB names the built prcb (for `prcb layout -j`)

Offsets of KPRCB and KTHREAD members come from the catalog; everything about containers, debugger
data and page tables is written down here, apart from the reader. Lines:

    container = triage64    full64 bitmap-full64 bitmap-kernel64 kernel64, and the same with 32;
                            qemu-elf64: a guest's memory
    version = 10.0.19041    whose layouts the KPRCBs have; "none": no layout, bytes by "raw"
    build = 19041           in the header (default: of the version)
    machine = x64           x86 x64 arm64
    processors = 2          KPRCBs written; header_processors: what the header says
    bugcheck = 0x101        and parameter.1 .. parameter.4
    uptime = 1000000000     100 ns
    crashing = 1            whose copy is at PrcbOffset, whose context the header has
    kdbg = plain            encoded, none, or short (without the offsets that 5.2 added)
    paging = x64            x64-5 x86 pae
    large = 1               KPRCBs in large pages
    smbios = 2              physical memory has SMBIOS 2's entry point, or 3's, and the tables;
                            smbios.computer = TEXT: of its row;  smbios.poke.OFFSET = byte: of the entry
                            point (0x10000 on: of the tables)
    increment = 156250      KeTimeIncrement (absent: not in the dump)
    landmark = 1            0: no KDPC landmark
    shift = 0x40            moves the landmark's KDPC away from where the catalog has it
    blocks = all            triage: KPRCBs as blocks; "none": only the copy at PrcbOffset
    cpu.N.MEMBER = value    a KPRCB member of processor N, or of all for N = *
    thread.N.MEMBER = value a KTHREAD member of its current thread;  idle.N.MEMBER: of its idle one
    raw.N.OFFSET.SIZE = v   bytes of processor N's KPRCB
    area.N.SIZE = value     a profile control area of processor N, held, filled with a byte
    entry.N.PAGE = kind     page PAGE of KPRCB N: transition, prototype, absent, missing (mapped,
                            but left out of the dump)
    module.N = NAME BASE SIZE [STAMP CHECKSUM]   N from 0: loaded modules;  unloaded.N: unloaded
    string.N = "TEXT"       the name of module N as UTF-16 units as they are (\\uXXXX understood)
    list = loop             PsLoadedModuleList (not triage) leads from its last entry to its first
    stack.OFFSET = value    a word of the crashing thread's stack
    context.N.REGISTER = v  in the CONTEXT of processor N (with N = crashing: the header's)
    context.N.place = inside    its CONTEXT lies in the KPRCB, no pointer leads to it
    irql.N = 2              CR8 of processor N (x64)
    process.N = NAME PID TID    of the current thread of processor N
    dpc.N.I = ADDRESS ROUTINE   I'th queued DPC of processor N;  dpc.N.active: the one that runs
    dpcs = loop             the last queued DPC leads to the first
    product = 3             ProductType
    guest.rip = ADDRESS     qemu-elf64: of processor 0; the others are 0x100 apart
    guest.mode = user       qemu-elf64: the last processor runs a program;  shadow: with the tables
                            that hide the kernel, as all do; none: no tables
    guest.exports = 0       qemu-elf64: the kernel exports nothing;  guest.note = header: VMCOREINFO
    codeview = NAME GUID AGE    the symbol file that the kernel's image names, as a server writes it
    exception = CODE ADDRESS    of the header
    cut = 0x5000            cuts the file
    poke.OFFSET.SIZE = v    last: bytes of the file
Values are numbers or "text".
"""
import json
import os
import struct
import subprocess
import sys
import uuid

PAGE = 4096
_layouts = {}


def layout(name, version, arch):
    """name -> (offset, size) of all members with a path of one step; "" -> size."""
    key = (name, version, arch)
    if key not in _layouts:
        out = subprocess.run([os.environ["PRCB"], "layout", name, "--version", version, "--arch",
                              arch, "-j"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        _layouts[key] = None if out.returncode else _rows(json.loads(out.stdout))
    return _layouts[key]


def _rows(data):
    rows = {m["name"]: (m["offset"], m["size"]) for m in data["members"]}
    rows[""] = (0, data["size"])
    rows["version"] = data["version"]
    return rows


def know_all(*names):
    """Asks for these structures as every version has them, with one start of prcb each."""
    for name in names:
        out = subprocess.run([os.environ["PRCB"], "layout", name, "--all", "-j"], stdout=subprocess.PIPE,
                             check=True)
        for data in map(json.loads, out.stdout.splitlines()):
            _layouts[name, data["version"], data["arch"]] = _rows(data)


def parse(text):
    spec = {}
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if line:
            key, value = line.split("=", 1)
            spec[key.strip()] = value.strip()
    return spec


def number(value):
    return int(value, 0)


def encode(value, size):
    if value.startswith('"'):
        return value.strip('"').encode()[:size]
    return (number(value) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


class Machine:
    """Kernel memory: address -> bytes, and where things are."""

    def __init__(self, spec):
        self.spec = spec
        self.arch = spec.get("machine", "x86" if spec["container"].endswith("32") else "x64")
        self.bits = 32 if self.arch == "x86" else 64
        self.pointer = self.bits // 8
        self.version = spec.get("version", "none")
        self.count = number(spec.get("processors", "2"))
        self.layout = layout("KPRCB", self.version, self.arch) if self.version != "none" else None
        self.threads = layout("KTHREAD", self.version, self.arch) if self.layout else None
        self.power = layout("PROCESSOR_POWER_STATE", self.version, self.arch) if self.layout \
            else None
        self.regions = {}
        self.contexts, self.inside = {}, set()
        if self.bits == 64:
            self.kdbg, self.array, self.tick = (0xfffff80000400b20, 0xfffff80000401000,
                                                0xfffff80000402000)
            self.first, self.step = 0xfffff80010000000, 0x20000
            self.thread_base, self.area_base = 0xffffe00000000000, 0xffffb00000000000
        else:
            self.kdbg, self.array, self.tick = 0x80540b20, 0x80541000, 0x80542000
            self.first, self.step = 0x82000000, 0x10000
            self.thread_base, self.area_base = 0x85000000, 0x86000000
        self.in_page = {"x86": 0x120, "x64": 0x180, "arm64": 0x980}[self.arch]
        self.size = self.layout[""][1] if self.layout else number(spec.get("size", "0x9680"))
        self.kprcbs = [self.first + i * self.step + self.in_page for i in range(self.count)]
        self.build()

    def put(self, at, offset, data):
        region = self.regions[at]
        if offset + len(data) > len(region):
            raise ValueError("0x%x is outside of a region of 0x%x" % (offset, len(region)))
        region[offset:offset + len(data)] = data

    def member(self, rows, at, name, value):
        if name not in rows:
            raise KeyError("%s has no %s" % (self.version, name))
        offset, size = rows[name]
        self.put(at, offset, encode(value, size))

    def kdpc(self):
        """Offset of the landmark's KDPC in the KPRCB, or None."""
        if "kdpc" in self.spec:
            return number(self.spec["kdpc"])
        if not self.power:
            return None
        name = "PerfActionDpc" if "PerfActionDpc" in self.power else "PerfDpc"
        return self.layout["PowerState"][0] + self.power[name][0] + \
            number(self.spec.get("shift", "0"))

    def build_kprcb(self, i, at):
        self.regions[at] = bytearray(self.size)
        thread, idle = self.thread_base + i * 0x2000, self.thread_base + i * 0x2000 + 0x1000
        context = 0x20 if self.bits == 64 else 0x10
        if self.arch == "x64":
            self.put(at, 0, struct.pack("<I", 0x1f80))
        if self.kdpc() is not None and self.spec.get("landmark", "1") != "0":
            self.put(at, self.kdpc(), b"\x13")
            self.put(at, self.kdpc() + context, at.to_bytes(self.pointer, "little"))
        if not self.layout:
            self.put(at, self.pointer, thread.to_bytes(self.pointer, "little"))
            self.put(at, 0x24, struct.pack("<I", i))
            return
        for name, value in (("CurrentThread", thread), ("IdleThread", idle), ("Number", i)):
            self.member(self.layout, at, name, str(value))
        self.member(self.layout, at, "MHz", "2000")
        self.member(self.layout, at, "VendorString", '"GenuineIntel"')
        for offset, base in ((0, thread), (0x1000, idle)):
            self.regions[base] = bytearray(self.threads[""][1] if self.threads else 0x600)

    def context(self, i):
        """Stack pointer and program counter of processor i."""
        return (0xfffff80020000000 + i * 0x1000, 0xfffff80030000000 + i * 0x10) \
            if self.bits == 64 else (0x87000000 + i * 0x1000, 0x80800000 + i * 0x10)

    @property
    def context_at(self):
        """ProcessorState.ContextFrame, where no member of the catalog is; KDBG says where."""
        return 0x1f0 if self.bits == 64 else 0x18

    def put_context(self, i, at):
        sp, pc = self.context(i)
        for offset, value in zip((0x98, 0xf8) if self.bits == 64 else (0xc4, 0xb8), (sp, pc)):
            where = self.context_at + offset
            if self.layout and any(o < where + 8 and where < o + s for k, v in self.layout.items()
                                   if k not in ("", "version") for o, s in [v]):
                return  # a member is there: this kernel's context is not told apart
            self.put(at, where, value.to_bytes(self.pointer, "little"))

    # CONTEXT: where registers are, and the flags of one that is filled
    REGISTERS = {
        "x86": {"eip": (0xb8, 4), "esp": (0xc4, 4), "ebp": (0xb4, 4), "eax": (0xb0, 4)},
        "x64": {"rip": (0xf8, 8), "rsp": (0x98, 8), "rbp": (0xa0, 8), "rax": (0x78, 8),
                "r15": (0xf0, 8)},
        "arm64": {"pc": (0x108, 8), "sp": (0x100, 8), "lr": (0xf8, 8), "x28": (0xe8, 8)}}
    CONTEXT_FLAGS = {"x86": (0, 0x1003f), "x64": (0x30, 0x10001f), "arm64": (0, 0x400007)}

    def context_bytes(self, i):
        data = bytearray(0x4d0)
        at, flags = self.CONTEXT_FLAGS[self.arch]
        struct.pack_into("<I", data, at, flags)
        for name, value in self.contexts[i].items():
            at, size = self.REGISTERS[self.arch][name]
            data[at:at + size] = encode(value, size)
        return data

    SPECIAL, POINTER = 0x100, 0x85c0  # of a KPRCB of 19041; KDBG says where, in others too

    def build_contexts(self):
        for key, value in self.spec.items():
            parts = key.split(".")
            if parts[0] == "context" and parts[2] == "place":
                self.inside.add(number(parts[1]))
            elif parts[0] == "context":
                self.contexts.setdefault(number(parts[1]), {})[parts[2]] = value
            elif parts[0] == "irql":
                at = self.kprcbs[number(parts[1])] + 0
                self.put(at, self.SPECIAL, struct.pack("<Q", 0x80050033))
                self.put(at, self.SPECIAL + 0xa0, struct.pack("<Q", number(value)))
        for i in self.contexts:
            data, at = self.context_bytes(i), self.kprcbs[i]
            if i in self.inside:
                self.put(at, self.context_at, data)
            elif self.bits == 64:
                where = 0xffffc00000000340 + i * 0x4000
                self.regions[where] = data
                self.put(at, self.POINTER, struct.pack("<Q", where))

    def build_processes(self):
        cid, process_at, name_at = (0x478, 0xb8, 0x5a8) if self.bits == 64 else (0x1ec, 0x44, 0x174)
        for key, value in self.spec.items():
            if not key.startswith("process."):
                continue
            i = number(key.split(".")[1])
            name, pid, tid = value.split()
            thread, process = self.thread_base + i * 0x2000, self.area_base + 0x100000 * (i + 1)
            region = self.regions[thread]
            region.extend(bytes(0x700 - len(region)) if len(region) < 0x700 else b"")
            word = "<Q" if self.bits == 64 else "<I"
            struct.pack_into(word, region, cid, number(pid))
            struct.pack_into(word, region, cid + self.pointer, number(tid))
            struct.pack_into(word, region, process_at, process)
            self.regions[process] = bytearray(0xa40)
            self.regions[process][name_at:name_at + len(name)] = name.encode()

    def build_dpcs(self):
        link, routine = (8, 0x18) if self.bits == 64 else (4, 0xc)
        queue = self.layout["DpcData"][0] if self.layout and "DpcData" in self.layout else 0
        for i in range(self.count):
            rows = [(k.split(".")[2], [number(x) for x in v.split()])
                    for k, v in self.spec.items() if k.startswith("dpc.%d." % i)]
            for name, (address, code) in rows:
                self.regions[address] = bytearray(0x40)
                self.regions[address][routine:routine + self.pointer] = code.to_bytes(
                    self.pointer, "little")
                if name == "active":
                    self.put(self.kprcbs[i], queue + 0x20, address.to_bytes(8, "little"))
            chain = [a for n, (a, c) in rows if n != "active"]
            if chain:
                self.put(self.kprcbs[i], queue, (chain[0] + link).to_bytes(self.pointer, "little"))
            if chain and self.spec.get("dpcs") == "loop":
                chain.append(chain[0])
            for a, b in zip(chain, chain[1:]):
                self.regions[a][link:link + self.pointer] = (b + link).to_bytes(self.pointer,
                                                                               "little")

    # ---- modules

    def module_rows(self, kind):
        rows = sorted((number(k.split(".")[1]), v.split()) for k, v in self.spec.items()
                      if k.startswith(kind + "."))
        return [(r[0], [number(x) for x in r[1:]]) for i, r in rows]

    def name_units(self, kind, i, name):
        if kind == "module" and "string.%d" % i in self.spec:
            name = self.spec["string.%d" % i].strip('"').encode().decode("unicode_escape")
        return name.encode("utf-16-le", "surrogatepass")

    def ldr_entry(self, base, size, checksum=0, stamp=0):
        """KLDR_DATA_TABLE_ENTRY up to the checksum, and the stamp of its form in triage dumps."""
        if self.bits == 64:
            data = bytearray(0x88)
            struct.pack_into("<QQI", data, 0x30, base, base + 0x1000, size)
            struct.pack_into("<I4xI", data, 0x78, checksum, stamp)
        else:
            data = bytearray(0x48)
            struct.pack_into("<III", data, 0x18, base, base + 0x1000, size)
            struct.pack_into("<II", data, 0x40, checksum, stamp)
        return data

    def unicode_string(self, length, buffer):
        return struct.pack("<HHIQ" if self.bits == 64 else "<HHI",
                           *((length, length, 0, buffer) if self.bits == 64 else
                             (length, length, buffer)))

    def build_modules(self):
        """PsLoadedModuleList and MmUnloadedDrivers in memory, for dumps that hold memory."""
        rows = self.module_rows("module")
        start = self.area_base + 0x40000000 if self.bits == 64 else 0x88000000
        if self.spec["container"] == "qemu-elf64":  # the head is the kernel's
            start = (self.kdbg & ~0xfffff) + 0x80000
        word = "<QQ" if self.bits == 64 else "<II"
        entries = [start + 0x1000 * (i + 1) for i in range(len(rows))]
        self.module_list = start if rows else self.array
        if not rows:
            return
        ring = [start] + entries
        for i, at in enumerate(ring):
            after, before = ring[(i + 1) % len(ring)], ring[i - 1]
            if self.spec.get("list") == "loop" and i == len(ring) - 1:
                after = ring[1]
            if i == 0:
                self.regions[at] = bytearray(struct.pack(word, after, before))
                continue
            name, (base, size, *more) = rows[i - 1]
            units = self.name_units("module", i - 1, "\\SystemRoot\\" + name)
            data = self.ldr_entry(base, size)
            data[0:2 * self.pointer] = struct.pack(word, after, before)
            text = self.unicode_string(len(units), at + 0x200)
            place = 0x58 if self.bits == 64 else 0x2c
            data[place:place + len(text)] = text
            self.regions[at] = data
            self.regions[at + 0x200] = bytearray(units)
            if more:  # its PE header
                image = bytearray(0x200)
                image[0:2], image[0x3c], image[0x80:0x84] = b"MZ", 0x80, b"PE\0\0"
                struct.pack_into("<I", image, 0x88, more[0])
                struct.pack_into("<I", image, 0x80 + 0x58, more[1])
                self.regions[base] = image
        gone = self.module_rows("unloaded")
        table = start + 0x100000
        self.unloaded = start + 0x200000
        self.regions[self.unloaded] = bytearray(struct.pack(word[:2], table))
        size = 40 if self.bits == 64 else 24
        data = bytearray(size * 50)
        for i, (name, (base, length)) in enumerate(gone):
            units = name.encode("utf-16-le")
            where = table + 0x10000 + 0x100 * i
            self.regions[where] = bytearray(units)
            text = self.unicode_string(len(units), where)
            data[size * i:size * i + len(text)] = text
            struct.pack_into(word, data, size * i + len(text), base, base + length)
        self.regions[table] = data

    def build_codeview(self):
        """The kernel's image: headers, a debug directory, in it first an entry of another type."""
        if "codeview" not in self.spec:
            return
        name, guid, age = self.spec["codeview"].split()
        image, wide = bytearray(0x600), self.bits == 64
        image[0:2], image[0x3c], image[0x80:0x84] = b"MZ", 0x80, b"PE\0\0"
        struct.pack_into("<H", image, 0x98, 0x20b if wide else 0x10b)
        rows = 0x98 + (0x70 if wide else 0x60)
        struct.pack_into("<I", image, rows - 4, 16)
        struct.pack_into("<II", image, rows + 6 * 8, 0x300, 2 * 28)
        record = b"RSDS" + uuid.UUID(guid).bytes_le + struct.pack("<I", number(age)) + \
            name.encode() + b"\0"
        struct.pack_into("<III", image, 0x300 + 12, 13, 0x10, 0x500)
        struct.pack_into("<III", image, 0x31c + 12, 2, len(record), 0x400)
        image[0x400:0x400 + len(record)] = record
        self.regions[self.kdbg & ~0xfffff] = image

    SHARED = 0xfffff78000000000

    def build_guest(self):
        """What a running kernel has and a crash dump's header replaces: the page shared with programs, a
        table of interrupts, KPCRs, exports."""
        if self.spec["container"] != "qemu-elf64":
            return
        self.spec.setdefault("codeview", "ntkrnlmp.pdb 11112222333344445555666677778888 1")
        self.build_codeview()
        base = self.kdbg & ~0xfffff
        image = self.regions[base]
        struct.pack_into("<I", image, 0x98 + 0x38, 0x100000)
        struct.pack_into("<I", image, 0x98 + 0x70, 0x10000)
        names = sorted({"NtBuildNumber": 0x11000, "PsLoadedModuleList": self.module_list - base,
                        "KiBugCheckData": 0x11010, "ExAllocatePool": 0x12000}.items())
        if self.spec.get("guest.exports") == "0":
            names = []
        table = bytearray(0x800)
        struct.pack_into("<IIIIIIII", table, 0x0c, 0x10700, 1, len(names), len(names), 0x10100,
                         0x10200, 0x10300, 0)
        table[0x700:0x70d] = b"ntoskrnl.exe\0"
        for i, (name, place) in enumerate(names):
            ordinal = len(names) - 1 - i
            struct.pack_into("<I", table, 0x100 + 4 * ordinal, place & 0xffffffff)
            struct.pack_into("<I", table, 0x200 + 4 * i, 0x10400 + 0x20 * i)
            struct.pack_into("<H", table, 0x300 + 2 * i, ordinal)
            table[0x400 + 0x20 * i:0x401 + 0x20 * i + len(name)] = name.encode() + b"\0"
        self.regions[base + 0x10000] = table
        build = number(self.spec.get("build") or self.version.split()[0].split(".")[2])
        data = bytearray(0x100)
        struct.pack_into("<I", data, 0, 0xf0000000 | build)
        struct.pack_into("<QQQQQ", data, 0x10, number(self.spec.get("bugcheck", "0")),
                         *(number(self.spec.get("parameter.%d" % i, "0")) for i in range(1, 5)))
        self.regions[base + 0x11000] = data
        self.regions[0xfffff80000700000] = bytearray(struct.pack(
            "<HHBBHII", 0x1234, 0x10, 0, 0x8e, (base + 0x31234) >> 16 & 0xffff, base >> 32, 0) * 256)
        major, minor = (int(x) for x in self.version.split(".")[:2])
        shared = bytearray(0x400)
        struct.pack_into("<Q", shared, 8, number(self.spec.get("uptime", "10000000000")))
        struct.pack_into("<Q", shared, 0x14, number(self.spec.get("time", "133112964376024400")))
        struct.pack_into("<III", shared, 0x260, build if major == 10 else 0,
                         number(self.spec.get("product", "1")), 1)
        struct.pack_into("<II", shared, 0x26c, major, minor)
        self.regions[self.SHARED] = shared
        for at in self.kprcbs:
            kpcr = bytearray(0x180)
            struct.pack_into("<QQ", kpcr, 0x18, at - 0x180, at)
            self.regions[at - 0x180] = kpcr

    def stack(self):
        words = {number(k.split(".")[1]): number(v) for k, v in self.spec.items()
                 if k.startswith("stack.")}
        data = bytearray(max(words) + 2 * self.pointer if words else 0)
        for at, value in words.items():
            data[at:at + self.pointer] = value.to_bytes(self.pointer, "little")
        return data

    def build_kdbg(self):
        kind = self.spec.get("kdbg", "plain")
        if kind == "none":
            return
        size = 0x290 if kind == "short" else 0x380
        data = bytearray(size)
        data[0x10:0x14] = b"KDBG"
        struct.pack_into("<I", data, 0x14, size)
        def q(offset, value):
            if self.bits == 32:
                value |= 0xffffffff00000000  # as the debugger writes them: sign-extended
            struct.pack_into("<Q", data, offset, value)
        q(0x18, self.kdbg & ~0xfffff)
        q(0x78, self.tick)
        q(0x218, self.array)
        if kind != "short":
            rows = self.layout or {}
            def offset_of(name, default):
                return rows[name][0] if name in rows else number(
                    self.spec.get("kdbg." + name, str(default)))
            for at, value in ((0x2b0, self.size), (0x2b4, offset_of("CurrentThread", self.pointer)),
                              (0x2b6, offset_of("MHz", 0)), (0x2b8, offset_of("CpuType", 0)),
                              (0x2ba, offset_of("VendorString", 0)), (0x2bc, self.context_at),
                              (0x2be, offset_of("Number", 0x24)),
                              (0x2c0, self.threads[""][1] if self.threads else 0x600),
                              (0x2a0, 0xb8 if self.bits == 64 else 0x44), (0x2a8, 0xa40)):
                struct.pack_into("<H", data, at, value & 0xffff)
            q(0x220, self.unloaded)
            if self.contexts or any(k.startswith("irql.") for k in self.spec):
                struct.pack_into("<H", data, 0x2f2, self.SPECIAL if self.bits == 64 else 0)
                struct.pack_into("<H", data, 0x338, self.POINTER if self.contexts and
                                 self.bits == 64 else 0)
            if any(k.startswith("process.") for k in self.spec):
                struct.pack_into("<H", data, 0x2c0, 0x700)
                struct.pack_into("<I", data, 0x34c, 0x4b0 if self.bits == 64 else 0x20c)
            if "DpcRoutineActive" in self.spec:
                struct.pack_into("<H", data, 0x2b2, number(self.spec["DpcRoutineActive"]))
        if kind == "encoded":
            data = bytearray(b ^ 0xa5 for b in data)
        self.regions[self.kdbg] = data

    def build(self):
        for i, at in enumerate(self.kprcbs):
            self.build_kprcb(i, at)
            self.put_context(i, at)
        self.unloaded = 0
        self.build_contexts()
        self.build_processes()
        self.build_dpcs()
        self.build_modules()
        if not self.spec["container"].startswith("triage") and self.stack():
            self.regions[self.context(number(self.spec.get("crashing", "0")))[0]] = self.stack()
        self.build_kdbg()
        self.build_codeview()
        self.build_guest()
        self.regions[self.array] = bytearray(b"".join(
            a.to_bytes(self.pointer, "little") for a in self.kprcbs).ljust(8 * self.pointer, b"\0"))
        if "increment" in self.spec:
            self.regions[self.tick] = bytearray(struct.pack("<I", number(self.spec["increment"])))
        for key, value in self.spec.items():
            self.apply(key, value)

    def apply(self, key, value):
        parts = key.split(".", 2)
        if parts[0] not in ("cpu", "thread", "idle", "raw", "area") or len(parts) < 3:
            return
        for i in range(self.count) if parts[1] == "*" else [number(parts[1])]:
            at = self.kprcbs[i]
            thread = self.thread_base + i * 0x2000 + (0x1000 if parts[0] == "idle" else 0)
            if parts[0] == "raw":
                offset, size = parts[2].split(".")
                self.put(at, number(offset), encode(value, number(size)))
            elif parts[0] == "area":
                area = self.area_base + i * 0x1000
                self.regions[area] = bytearray([number(value)]) * number(parts[2])
                self.member(self.layout, at, "ProcessorProfileControlArea", str(area))
            elif parts[0] != "cpu":
                self.member(self.threads, thread, parts[2], value)
            elif parts[2].startswith("PowerState."):
                offset, size = self.power[parts[2][11:]]
                self.put(at, self.layout["PowerState"][0] + offset, encode(value, size))
            else:
                self.member(self.layout, at, parts[2], value)


# ---- containers ----

TYPES = {"full": 1, "kernel": 2, "header": 3, "triage": 4, "bitmap-full": 5, "bitmap-kernel": 6,
         "automatic": 7, "ranges-kernel": 8, "ranges-active": 9, "ranges-full": 10}
IMAGES = {"x86": 0x14c, "x64": 0x8664, "arm64": 0xaa64}


def header(m, spec, kind, root):
    is_64 = m.bits == 64
    head = bytearray(b"PAGE" * (0x800 if is_64 else 0x400))
    word = "<Q" if is_64 else "<I"

    def put(at32, at64, fmt, value):
        struct.pack_into(fmt, head, at64 if is_64 else at32, value)
    head[0:8] = b"PAGEDU64" if is_64 else b"PAGEDUMP"
    put(8, 8, "<I", 15)
    build = spec.get("build")
    if not build:
        build = m.version.split()[0].split(".")[2] if m.version.count(".") >= 2 else "0"
    put(0xc, 0xc, "<I", number(build))
    put(0x10, 0x10, word, root)
    put(0x18, 0x20, word, m.module_list)
    put(0x1c, 0x28, word, m.array)
    put(0x20, 0x30, "<I", IMAGES[m.arch])
    put(0x24, 0x34, "<I", number(spec.get("header_processors", str(m.count))))
    put(0x28, 0x38, "<I", number(spec.get("bugcheck", "0xe2")))
    for i in range(4):
        value = number(spec.get("parameter.%d" % (i + 1), "0"))
        put(0x2c + 4 * i, 0x40 + 8 * i, word, value & (2 ** m.bits - 1))
    put(0x5c, 0, "<B", spec.get("paging") == "pae") if not is_64 else None
    put(0x60, 0x80, word, m.kdbg if spec.get("kdbg") != "none" else 0)
    put(0xf88, 0xf98, "<I", number(spec.get("type", str(TYPES[kind]))))
    put(0xfb8, 0x1030, "<Q", number(spec.get("uptime", "10000000000")))
    put(0xfc0, 0xfa8, "<Q", number(spec.get("time", "133112964376024400")))
    crashing = number(spec.get("crashing", "0"))
    sp, pc = m.context(crashing)
    put(0x320 + 0xc4, 0x348 + 0x98, word, sp)
    put(0x320 + 0xb8, 0x348 + 0xf8, word, pc)
    if crashing in m.contexts:
        at = 0x348 if is_64 else 0x320
        context = m.context_bytes(crashing)
        head[at:at + 0x2cc] = context[:0x2cc]
    if "product" in spec:
        put(0xf94, 0x1040, "<I", number(spec["product"]))
    if "exception" in spec:
        code, address = spec["exception"].split()
        put(0x7d0, 0xf00, "<I", number(code))
        put(0x7dc, 0xf10, word, number(address))
    return head


def base_of(m):
    """Where the triage header is."""
    return 0x2000 if m.bits == 64 else 0x1000


def triage(m, spec):
    """Header, triage header, copies, block table, blocks."""
    is_64 = m.bits == 64
    out = header(m, spec, "triage", 0x1ad000)
    base = len(out)
    out += bytes(0x100)
    crashing = number(spec.get("crashing", "0"))
    fields = {}

    def append(data):
        at = len(out)
        out.extend(data)
        out.extend(bytes(-len(out) % 8))
        return at
    fields[0x1c] = append(m.regions[m.kprcbs[crashing]])
    rows, gone = m.module_rows("module"), m.module_rows("unloaded")
    if rows:
        names = []
        for i, (name, numbers) in enumerate(rows):
            units = m.name_units("module", i, name)
            names.append(append(struct.pack("<I", len(units) // 2) + units + b"\0\0"))
        entries = b""
        for name, (_, (start, size, *more)) in zip(names, rows):
            stamp, checksum = more or (0, 0)
            entries += struct.pack("<II" if is_64 else "<I", *((name, 0) if is_64 else (name,)))
            entries += m.ldr_entry(start, size, checksum, stamp)
        fields[0x30], fields[0x34] = append(entries), len(rows)
    if gone:
        data = struct.pack("<Q" if is_64 else "<I", len(gone))
        for name, (start, length) in gone:
            units = name.encode("utf-16-le")
            data += m.unicode_string(len(units), 0) + units[:24].ljust(24, b"\0")
            data += struct.pack("<QQ" if is_64 else "<II", start, start + length)
        fields[0x18] = append(data)
    stack = m.stack()
    if stack:
        fields[0x28], fields[0x2c] = append(stack), len(stack)
        struct.pack_into("<Q" if is_64 else "<I", out, base_of(m) + 0x48, m.context(crashing)[0])
    thread = m.thread_base + crashing * 0x2000
    if thread in m.regions:
        fields[0x24] = append(m.regions[thread])
    if m.kdbg in m.regions:
        fields[0x70 if is_64 else 0x58] = append(m.regions[m.kdbg])
        fields[0x74 if is_64 else 0x5c] = len(m.regions[m.kdbg])
    else:  # so that the KPRCB's end is seen
        fields[0x20] = append(bytes(16))
    want = spec.get("blocks", "all")
    blocks = [(a, d) for a, d in sorted(m.regions.items()) if a not in (m.kdbg, thread) and
              (want == "all" or not (a in m.kprcbs or a == m.array))]
    if want == "kprcb":
        blocks = [(a, d) for a, d in blocks if a in m.kprcbs]
    table = append(bytes(16 * len(blocks)))
    fields[0x78 if is_64 else 0x60] = table
    fields[0x7c if is_64 else 0x64] = len(blocks)
    for i, (address, data) in enumerate(blocks):
        if not is_64:
            address |= 0xffffffff00000000
        struct.pack_into("<QII", out, table + 16 * i, address, append(data), len(data))
    fields[0x08] = append(b"TRGD")
    fields[0x04] = len(out)
    fields[0x44] = 0xffffffff if want == "all" else 0x41
    for at, value in fields.items():
        struct.pack_into("<I", out, base + at, value)
    return out


class Physical:
    """Pages with page tables over them."""
    SHAPES = {"x64": ((39, 30, 21, 12), 9, 8), "x64-5": ((48, 39, 30, 21, 12), 9, 8),
              "pae": ((30, 21, 12), 9, 8), "x86": ((22, 12), 10, 4)}

    def __init__(self, m, spec):
        self.m, self.spec = m, spec
        self.shape, self.bits, self.entry = self.SHAPES[
            spec.get("paging", "x64" if m.bits == 64 else "x86")]
        self.pages = {}
        self.left_out = set()
        self.next_table, self.next_page, self.next_large = 0x10, 0x100, 0x4000
        self.larges = {}
        self.root = self.table()
        self.fill()
        if "smbios" in spec:
            self.smbios()

    def table(self):
        page = self.next_table
        self.next_table += 1
        self.pages[page] = bytearray(PAGE)
        return page

    def index(self, address, level):
        shift = self.shape[level]
        bits = 2 if len(self.shape) == 3 and level == 0 else self.bits
        return (address >> shift) & ((1 << bits) - 1)

    def entry_at(self, page, index, value=None):
        fmt = "<Q" if self.entry == 8 else "<I"
        if value is not None:
            struct.pack_into(fmt, self.pages[page], index * self.entry, value)
        return struct.unpack_from(fmt, self.pages[page], index * self.entry)[0]

    def leaf(self, address, large):
        """The table and index of the entry that maps an address."""
        page = self.root
        last = len(self.shape) - (2 if large else 1)
        for level in range(last):
            i = self.index(address, level)
            entry = self.entry_at(page, i)
            if not entry & 1:
                entry = self.table() << 12 | 1
                self.entry_at(page, i, entry)
            page = entry >> 12
        return page, self.index(address, last)

    def map(self, address, large):
        size = 1 << self.shape[-2] if large else PAGE
        table, i = self.leaf(address, large)
        entry = self.entry_at(table, i)
        if not entry & 1:
            if large:
                page = self.next_large
                self.next_large += size // PAGE
            else:
                page = self.next_page
                self.next_page += 1
            entry = page << 12 | 1 | (0x80 if large else 0)
            self.entry_at(table, i, entry)
        return (entry >> 12 & 0xfffffffff) + ((address & (size - 1)) >> 12)

    def fill(self):
        large = self.spec.get("large", "0") != "0"
        for address, data in sorted(self.m.regions.items()):
            is_kprcb = address in self.m.kprcbs or address + self.m.in_page in self.m.kprcbs
            for at in range(address & ~(PAGE - 1), address + len(data), PAGE):
                page = self.map(at, large and is_kprcb)
                self.pages.setdefault(page, bytearray(PAGE))
                start, end = max(at, address), min(at + PAGE, address + len(data))
                self.pages[page][start - at:end - at] = data[start - address:end - address]
        for key, kind in self.spec.items():
            if key.startswith("entry."):
                _, cpu, index = key.split(".")
                self.spoil((self.m.kprcbs[number(cpu)] & ~(PAGE - 1)) + number(index) * PAGE, kind)
        if self.spec.get("loop"):  # every entry of the root leads back to the root
            for i in range(PAGE // self.entry):
                self.entry_at(self.root, i, self.root << 12 | 1)

    def smbios(self):
        """The tables of System Management BIOS at 0xe5ff0, their entry point in the last 64 KiB below 1 MiB."""
        computer = self.spec.get("smbios.computer", "Standard PC (Q35 + ICH9, 2009)").encode()
        tables = bytearray(
            struct.pack("<BBHBBHBB", 0, 0x18, 0, 1, 2, 0xe800, 3, 0).ljust(0x18, b"\0") +
            b"SeaBIOS\0" b"1.16.2\0" b"04/01/2014\0\0" +
            struct.pack("<BBHBBBB", 3, 0x15, 1, 1, 1, 0, 0).ljust(0x15, b"\0") + b"chassis\0\0" +
            struct.pack("<BBHBBBB", 1, 0x1b, 2, 1, 2, 3, 0).ljust(0x1b, b"\0") +
            b"QEMU\0" + computer + b"\0pc-q35\0\0" + struct.pack("<BBH", 127, 4, 3) + b"\0\0")
        at = 0xe5ff0
        if self.spec["smbios"] == "3":
            entry = bytearray(struct.pack("<5sBBBBBBBIQ", b"_SM3_", 0, 0x18, 3, 0, 0, 1, 0, len(tables), at))
        else:
            entry = bytearray(struct.pack("<4sBBBBHB5s5sBHIHB", b"_SM_", 0, 0x1f, 2, 8, 0x40, 0, b"", b"_DMI_", 0,
                                          len(tables), at, 4, 0x28))
        for key, value in self.spec.items():
            if key.startswith("smbios.poke."):
                place = number(key.split(".")[2])
                (tables if place >= 0x10000 else entry)[place & 0xffff] = number(value)
        entry[5 if self.spec["smbios"] == "3" else 4] = -sum(entry) & 0xff if "smbios.sum" not in self.spec else 1
        for page in range(0xe5, 0x100):
            self.pages[page] = bytearray(PAGE)
        for where, data in ((at, tables), (0xf5ad0, entry)):
            for i, byte in enumerate(data):
                self.pages[(where + i) >> 12][(where + i) & 0xfff] = byte

    def spoil(self, address, kind):
        table, i = self.leaf(address, False)
        entry = self.entry_at(table, i)
        if kind == "missing":
            self.left_out.add(entry >> 12)
        else:
            self.entry_at(table, i, {"transition": entry & ~1 | 0x800, "prototype": 0x400,
                                     "absent": 0}[kind])

    def present(self):
        return sorted(p for p in self.pages if p not in self.left_out)


def full(m, spec):
    p = Physical(m, spec)
    pages = p.present()
    out = header(m, spec, "full", p.root << 12)
    runs = []
    for page in pages:
        if runs and runs[-1][0] + runs[-1][1] == page:
            runs[-1][1] += 1
        else:
            runs.append([page, 1])
    at, word = (0x88, 8) if m.bits == 64 else (0x64, 4)
    fmt = "<QQ" if word == 8 else "<II"
    assert len(runs) <= 42
    struct.pack_into("<IIQ" if word == 8 else "<II", out, at,
                     *((len(runs), 0, len(pages)) if word == 8 else (len(runs), len(pages))))
    for i, run in enumerate(runs):
        struct.pack_into(fmt, out, at + 2 * word * (i + 1), *run)
    for page in pages:
        out += p.pages[page]
    return out


def bitmap(m, spec, kind):
    p = Physical(m, spec)
    pages = p.present()
    out = header(m, spec, kind, p.root << 12)
    bits = number(spec.get("bits", str(max(pages) + 1)))
    bitmap_bytes = bytearray((bits + 7) // 8)
    for page in pages:
        bitmap_bytes[page // 8] |= 1 << page % 8
    old = kind == "kernel"
    skip = (0x28 if m.bits == 64 else 0x20) if old else 0x38
    first = (len(out) + skip + len(bitmap_bytes) + PAGE - 1) & ~(PAGE - 1)
    head = bytearray(skip)
    head[0:8] = b"SDMPDUMP" if kind != "bitmap-full" else b"FDMPDUMP"
    if old:
        struct.pack_into("<IIIII", head, 8, 0, first, bits, len(pages), bits)
    else:
        struct.pack_into("<QQQ", head, 0x20, first, len(pages), bits)
    out += head + bitmap_bytes
    out += bytes(first - len(out))
    for page in pages:
        out += p.pages[page]
    return out


def ranges(m, spec, kind):
    """Types 8, 9 and 10: "RDMP", page ranges, the pages."""
    p = Physical(m, spec)
    pages = p.present()
    out = header(m, spec, kind, p.root << 12)
    runs = []
    for page in pages:
        if runs and runs[-1][0] + runs[-1][1] == page:
            runs[-1][1] += 1
        else:
            runs.append([page, 1])
    table = b"".join(struct.pack("<QQ", *r) for r in runs) + bytes(16)
    first = (0x2030 + len(table) + PAGE - 1) & ~(PAGE - 1)
    complete = kind == "ranges-full"
    out += struct.pack("<I4s4sIQQIIQ", 0x40, b"RDMP", b"DUMP", 0, first - 0x2020, first,
                       len(runs) if complete else 0, 0, len(pages) if complete else 0)
    out += table
    out += bytes(first - len(out))
    for page in pages:
        out += p.pages[page]
    return out


def qemu_state(m, i, root):
    """QEMUCPUState: the fields that say where the kernel is, and where the processor was."""
    user = m.spec.get("guest.mode") == "shadow" or (m.spec.get("guest.mode") == "user" and i == m.count - 1)
    data, kpcr = bytearray(440), m.kprcbs[i] - 0x180
    struct.pack_into("<II8Q", data, 0, 1, 440, 1, 2, 3, 4, 5, 6, 0xfffff80020000000 + i, 8)
    struct.pack_into("<Q", data, 136, 0x7ff600001000 if user else
                     number(m.spec.get("guest.rip", "0xfffff80000412345")) + 0x100 * i)
    struct.pack_into("<I", data, 152, 0x33 if user else 0x10)
    struct.pack_into("<Q", data, 264, 0x1000 if user else kpcr)
    struct.pack_into("<Q", data, 384, 0xfffff80000700000)
    struct.pack_into("<Q", data, 416, root << 12 | 2)
    struct.pack_into("<Q", data, 424, 0x1000 if m.spec.get("paging") == "x64-5" else 0x20)
    struct.pack_into("<Q", data, 432, kpcr if user else 0x1000)
    return bytes(data)


def elf_note(name, kind, data):
    name += b"\0"
    return struct.pack("<III", len(name), len(data), kind) + name + bytes(-len(name) % 4) + data


def qemu_elf(m, spec):
    if spec.get("guest.mode") == "shadow":  # the real tables are noted in each KPCR
        for at in m.kprcbs:
            m.put(at, 0x9000 - 0x180, struct.pack("<Q", 0x10 << 12))
    p = Physical(m, spec)
    root = p.root
    if spec.get("guest.mode") in ("shadow", "none"):
        root = p.table()
    if spec.get("guest.mode") == "shadow":
        i = p.index(m.first, 0)
        p.entry_at(root, i, p.entry_at(p.root, i))
    notes = b"".join(elf_note(b"CORE", 1, bytes(336)) for i in range(m.count))
    notes += b"".join(elf_note(b"QEMU", 0, qemu_state(m, i, root)) for i in range(m.count))
    if spec.get("guest.note") == "header":
        notes += elf_note(b"VMCOREINFO", 0, bytes(header(m, spec, "full", p.root << 12)))
    runs = []
    for page in p.present():
        if runs and runs[-1][0] + runs[-1][1] == page:
            runs[-1][1] += 1
        else:
            runs.append([page, 1])
    first = (0x40 + 0x38 * (1 + len(runs)) + len(notes) + PAGE - 1) & ~(PAGE - 1)
    out = bytearray(b"\x7fELF\2\1\1".ljust(16, b"\0"))
    out += struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 0x40, 0, 0, 0x40, 0x38, 1 + len(runs), 0, 0, 0)
    out += struct.pack("<IIQQQQQQ", 4, 0, 0x40 + 0x38 * (1 + len(runs)), 0, 0, len(notes), 0, 0)
    at = first
    for page, count in runs:
        out += struct.pack("<IIQQQQQQ", 1, 0, at, 0, page << 12, count << 12, count << 12, 0)
        at += count << 12
    out += notes
    out += bytes(first - len(out))
    for page in p.present():
        out += p.pages[page]
    return out


def make(text):
    spec = parse(text)
    spec.setdefault("container", "triage64")
    m = Machine(spec)
    kind = spec["container"][:-2]
    if kind == "triage":
        out = triage(m, spec)
    elif kind == "qemu-elf":
        out = qemu_elf(m, spec)
    elif kind == "full":
        out = full(m, spec)
    elif kind == "header":
        out = header(m, spec, kind, 0x1ad000)
    elif kind.startswith("ranges"):
        out = ranges(m, spec, kind)
    else:
        out = bitmap(m, spec, kind)
    if "cut" in spec:
        del out[number(spec["cut"]):]
    for key, value in spec.items():
        if key.startswith("poke."):
            _, offset, size = key.split(".")
            out[number(offset):number(offset) + number(size)] = encode(value, number(size))
    return bytes(out)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with (sys.stdin if sys.argv[1] == "-" else open(sys.argv[1])) as source:
        data = make(source.read())
    with open(sys.argv[2], "wb") as out:
        out.write(data)


if __name__ == "__main__":
    main()
