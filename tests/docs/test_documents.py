#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is written by hand names the same things as the tables in the code."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(os.environ.get("PRCB_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PRCB = os.environ["PRCB"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def prcb(*arguments):
    return subprocess.run([PRCB, *arguments], capture_output=True, text=True, timeout=60,
                          check=False).stdout


def figures(name):
    """The rows of a table of figures: each a dictionary by its columns' names."""
    text = read(f"src/lib/figures/{name}_figures.def")
    shown = ["shown"] if name == "processor" else []
    number = ["name", "member", "present", "unit", "sum"] + shown + ["words", "heading", "meaning",
                                                                    "absent"]
    columns = {"LIST": ["name", "present"] + shown + ["words", "meaning", "absent"]}
    rows = []
    for kind, row in re.findall(r"(?ms)^(COUNTER|PART|GAUGE|LIST)\((.*?)\)$", text):
        values = [value.strip().strip('"') for value in re.split(r",\s*(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)",
                                                                 row)]
        rows.append({"kind": kind.lower(), "unit": "", "sum": "ADDS", "heading": "NULL",
                     **dict(zip(columns.get(kind, number), values, strict=True))})
    return rows


def figure_table(rows):
    """The table of a page: one line for each row."""
    units = {"NS": "ns", "COUNT": "", "CYCLES": "cycles", "MHZ": "MHz", "PERMILLE": "permille",
             "NUMBER": "", "": ""}
    return [f"| `{row['name']}` | {row['kind']} | {units[row['unit']]} | "
            f"{'yes' if row['sum'] == 'ADDS' else 'no'} | {row['meaning']} | "
            f"{'' if row['absent'] == 'NULL' else row['absent']} |" for row in rows]


def written_table(page):
    return re.findall(r"(?m)^\| `\w+` \| (?:counter|part|gauge|list) \|.*\|$", page)


def commands():
    return prcb("--completions").split()


def plain(scd):
    """scdoc text without its marks."""
    return re.sub(r"[*\\]", "", scd)


class Manuals(unittest.TestCase):
    def test_each_command_has_a_page_and_is_in_the_main_one(self):
        self.assertIn("doctor", commands())
        for command in commands():
            self.assertTrue((ROOT / f"man/prcb-{command}.1.scd").exists(), command)
            self.assertRegex(read("man/prcb.1.scd"), rf"(?m)^\*{command}\*$")

    def test_news_opens_with_this_release(self):
        release = re.search(r"(?m)^## (\S+)$", read("NEWS.md")).group(1)
        self.assertEqual(prcb("--version").split()[1], release)
        self.assertIn(f"version: '{release}'", read("meson.build"))
        self.assertTrue(read("packaging/debian/changelog").startswith(f"prcb ({release}-"))
        self.assertRegex(read("packaging/rpm/prcb.spec"), rf"(?m)^Version: +{re.escape(release)}$")

    def test_pages_are_built(self):
        listed = set(re.findall(r"'([\w.-]+\.\d)'", read("man/meson.build")))
        self.assertEqual({path.name[:-4] for path in (ROOT / "man").glob("*.scd")}, listed)

    def test_each_member_of_nt_is_in_the_page(self):
        """Every member that src/nt/calls fills in or lacks, in the section of its class; those that
        are never filled in are called absent there."""
        text = re.sub(r"\\\n", "", read("src/nt/calls/members.c"))
        rows = re.findall(r"(HAVE|LACKS)\((0x\w+|LEVEL\(11\)), \w+, (\w+),", text)
        self.assertGreater(len(rows), 60)
        system = read("man/NtQuerySystemInformation.3.scd").split("\n## ")
        power = read("man/NtPowerInformation.3.scd")
        for kind, number, member in rows:
            wanted = number.upper().replace("0X", "0x")
            section = power if "LEVEL" in number else next(
                part for part in system if wanted in part.split("\n")[0])
            item = re.search(rf"(?m)^\*[^\n]*\b{member}\*.*\n(?:\*.*\n)*((?:\t.*\n)+)", section)
            with self.subTest(member=f"{number} {member}"):
                self.assertTrue(item, "not in the page")
                if kind == "LACKS":
                    self.assertIn("Absent", item.group(1))

    def test_options_of_page_and_program_are_the_same(self):
        for command in commands():
            page = plain(read(f"man/prcb-{command}.1.scd"))
            options = set(prcb("--completions", command).split()) - {"--help"}
            described = set(re.findall(r"(?m)^(?:-\w, |)(--[a-z-]+)", page)) - {"--help"}
            with self.subTest(command=command):
                self.assertEqual(options - described, set(), "not in the page")
                self.assertEqual(described - options, set(), "only in the page")

    def test_letters_of_page_and_program_are_the_same(self):
        for command in commands():
            page = plain(read(f"man/prcb-{command}.1.scd"))
            in_help = set(re.findall(r"(?m)^  -(\w), --([a-z-]+)", prcb(command, "--help")))
            in_page = set(re.findall(r"(?m)^-(\w)[^,\n]*, --([a-z-]+)", page))
            with self.subTest(command=command):
                self.assertEqual(in_page - {("h", "help")}, in_help - {("h", "help")})

    def test_every_call_is_in_libprcb(self):
        header = re.sub(r"/\*.*?\*/", "", read("include/prcb/prcb.h"), flags=re.S)
        calls = set(re.findall(r"PRCB_API[^;]*?\b(prcb_\w+)\(", header))
        self.assertGreater(len(calls), 20)
        page = set(re.findall(r"\bprcb_\w+\b(?!\(3\))", plain(read("man/libprcb.3.scd"))))
        self.assertEqual(calls - page, set())
        types = set(re.findall(r"\b(?:struct|enum) (prcb_\w+)", header)) | {"prcb_walk_fn"}
        self.assertEqual(page - calls - types, set(), "only in the page")

    def test_every_call_is_in_a_page(self):
        """The others: some page names each."""
        pages = {word for path in (ROOT / "man").glob("*.3.scd")
                 for word in re.findall(r"\w+", plain(path.read_text(encoding="utf-8")))}
        for path in (ROOT / "include/prcb").glob("*.h"):
            header = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
            calls = set(re.findall(r"PRCB_API[^;{]*?\b(prcb_\w+)\(", header))
            self.assertEqual({call for call in calls if call not in pages}, set(), path.name)

    def test_doctor_checks_are_in_its_page(self):
        page = read("man/prcb-doctor.1.scd")
        checks = page[page.index("# CHECKS"):page.index("# EXIT STATUS")]
        self.assertEqual(re.findall(r"(?m)^\*([\w-]+)\*$", checks),
                         [row["name"] for row in json.loads(prcb("doctor", "-j"))["checks"]])

    def test_sources_of_power_members_are_in_their_page(self):
        code = read("src/nt/power/power_members.c")
        words = dict(re.findall(r'power_source (\w+) = \{\s*"([^"]+)"', code))
        in_code = {(member, words[source]) for member, source in
                   re.findall(r'(?m)^    \{"([^"]+)", &(\w+), NULL\}', code)}
        page = plain(read("man/prcb-power.1.scd"))
        rows = re.findall(r"(?m)^\|  (.+)\n:  (.+)$", page[page.index("# AS NT HAS IT"):])
        in_page = {(member, text) for members, text in rows for member in members.split(", ")}
        self.assertGreater(len(in_code), 20)
        self.assertEqual(in_page, in_code)


class Programs(unittest.TestCase):
    """Those beside prcb; their rows are what --help shows."""
    pages = {"prcbd": "prcbd.8", "prcb-exporter": "prcb-exporter.8", "prcb-wine": "prcb-wine.1", "pmdaprcb": "pmdaprcb.1"}

    def test_options_of_page_and_program_are_the_same(self):
        programs = os.environ["PRCB_PROGRAMS"].split()
        if not programs:
            self.skipTest("none of them is built")
        for program in programs:
            said = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertLessEqual(max(map(len, said.splitlines())), 80, program)
            page = plain(read(f"man/{self.pages[os.path.basename(program)]}.scd"))
            page = page[page.index("# OPTIONS\n") + 1:]
            items = re.findall(r"(?m)^-.*$", page[:page.index("\n# ")])
            with self.subTest(program=program):
                options = re.findall(r"(?m)^  (?:-\w, |    )(--[a-z.-]+)", said)
                self.assertGreater(len(options), 4)
                self.assertEqual(sorted(re.findall(r"--[a-z.-]+", " ".join(items))), sorted(options))
                self.assertEqual({match.groups() for match in
                                  (re.match(r"-(\w)[^,\n]*, --([a-z.-]+)", item) for item in items) if match},
                                 set(re.findall(r"(?m)^  -(\w), --([a-z.-]+)", said)))

    def test_messages_name_option_and_remedy(self):
        """The same parser in all of them."""
        for program in os.environ["PRCB_PROGRAMS"].split():
            name = os.path.basename(program)
            for option, word in (("--no-such-option", "unknown option"), ("--help=x", "no argument goes with")):
                ended = subprocess.run([program, option], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(ended.returncode, 125 if name == "prcb-wine" else 2)
                self.assertEqual(ended.stderr, f"{name}: {word} '{option}'; see {name} --help\n")
            version = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertEqual(version, f"{name} {prcb('--version').split()[1]}\n")


class Configurations(unittest.TestCase):
    def test_prcbd_takes_what_the_pages_show(self):
        """Blocks of "key = value" in pages and manuals, and the one in the example for Kubernetes."""
        prcbd = [name for name in os.environ["PRCB_PROGRAMS"].split() if os.path.basename(name) == "prcbd"]
        if not prcbd:
            self.skipTest("prcbd is not built")
        blocks = [(path.name, block) for folder, kind in (("docs", "*.md"), ("man", "*.scd"), (".", "README.md"))
                  for path in sorted((ROOT / folder).glob(kind))
                  for block in re.findall(r"(?ms)^```\w*\n(.*?)^```$", path.read_text())]
        manifest = read("examples/kubernetes/daemonset.yaml")
        blocks.append(("daemonset.yaml", textwrap.dedent(re.search(r"(?s)prcbd.conf: \|\n(.*?)\n---", manifest)[1])))
        keys = set(re.findall(r"(?m)^#?(\w+) =", read("packaging/prcbd.conf")))
        shown = []
        for name, block in blocks:
            lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
            if not lines or not all(re.match(r"\w+\s*=", line) for line in lines) or \
                    not keys & {line.split("=")[0].strip() for line in lines}:
                continue
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(block)
                file.flush()
                ended = subprocess.run([prcbd[0], "--check-config", "--config", file.name], capture_output=True,
                                       text=True, timeout=60, check=False)
            self.assertEqual(ended.returncode, 0, f"{name}: {ended.stderr}\n{block}")
            shown.append(name)
        self.assertLessEqual({"fleet.md", "prcbd.conf.5.scd", "daemonset.yaml"}, set(shown))


class Security(unittest.TestCase):
    def test_tests_that_the_security_page_names_exist(self):
        words = {word for folder in ("tests", "fuzz", "src") for path in (ROOT / folder).rglob("*")
                 if path.suffix in (".py", ".c", ".h") for word in re.findall(r"\w+", path.read_text(errors="replace"))}
        page = read("docs/security.md")
        named = re.findall(r"`(?:[A-Z]\w+\.)?(test_\w+)`", page)
        self.assertGreater(len(named), 10)
        # Of tests in C, and what else has such a name.
        named += re.findall(r"`([a-z]+(?:_[a-z0-9]+){2,})`", page)
        self.assertEqual([name for name in named if name not in words], [])

    @unittest.skipUnless(platform.machine() == "x86_64", "the page lists the files of x86-64")
    def test_files_that_are_trusted(self):
        """What tools/trusted-lines.py finds in this build: the same files, nearly as many lines."""
        build = pathlib.Path(PRCB).parents[3]
        if not (build / "src/services/daemon/prcbd").exists():
            self.skipTest("prcbd is not built: no eBPF")
        made = subprocess.run([ROOT / "tools/trusted-lines.py", build], stdout=subprocess.PIPE,
                              text=True, timeout=60, check=True).stdout
        page = read("docs/security.md").split("trusted-lines.py -->\n\n")[1].split("\n<!--")[0]
        remedy = "write it again: tools/trusted-lines.py --write"
        files, lines = r"([\w-]+\.[\w.]+|`[\w/]+`)", r"Together ([\d,]+) lines"
        self.assertEqual(re.findall(files, made), re.findall(files, page), remedy)
        now, then = (int(re.search(lines, text).group(1).replace(",", "")) for text in (made, page))
        self.assertLess(abs(now - then), 300, remedy)


class Causes(unittest.TestCase):
    def test_no_list_of_causes_is_anywhere_else(self):
        """What is different about some causes is a trait in src/base/cause.h. The eBPF programs assign causes."""
        for path in (ROOT / "src").rglob("*.[ch]"):
            name = str(path.relative_to(ROOT))
            if name.startswith("src/kernel/bpf/") or name == "src/base/cause.h":
                continue
            named = set(re.findall(r"PRCB_CAUSE_([A-Z_]+)\b", path.read_text(encoding="utf-8"))) - {"MAX", "NONE"}
            self.assertLess(len(named), 3, f"{name}: {sorted(named)}: a trait in src/base/cause.h?")

    def test_the_page_has_the_colours(self):
        style = read("src/tools/page/style.css")
        rows = re.findall(r'(?m)^    T\((\w+),.*"(\w+)",', read("src/base/cause.h"))
        self.assertGreater(len(rows), 39)
        for cause, colour in rows:
            self.assertIn(f"--{colour}:", style, cause)


class Processors(unittest.TestCase):
    def test_every_figure_is_defined(self):
        page = read("docs/processors.md")
        names = {row["name"] for row in figures("processor") if row["shown"] != "NEITHER"}
        power = read("src/reports/power/power_report.c")
        names |= set(re.findall(r'(?m)^    \{(?:"[^"]+"|NULL), "(\w+)", (?:\w+, power_\w+|ROW.*)\}',
                                power))
        names |= set(re.findall(r"(?m)^    \{.*ROW\((\w+)\)\}", power))
        self.assertGreater(len(names), 20)
        for name in sorted(names):
            self.assertIn(name, page)
        self.assertEqual(written_table(page), figure_table(figures("processor")))

    def test_columns_of_cpu_are_in_its_page(self):
        """Heading, name and meaning of each figure that has a column."""
        page = plain(read("man/prcb-cpu.1.scd"))
        table = re.findall(r"(?m)^\|  (\S+)\n:  (\w+)\n:  (.+)$", page)
        self.assertEqual(table, [(row["heading"], row["name"], row["meaning"])
                                 for row in figures("processor")
                                 if row["heading"] != "NULL" and row["shown"] in ("CPU", "BOTH")])
        names = [row["name"] for row in figures("processor") if row["shown"] in ("CPU", "BOTH")]
        keys = re.findall(r'"(\w+)"', page[page.index("# JSON"):page.index("tier_reason")])
        self.assertEqual([key for key in keys if key in names], names)


def package_of(library):
    """The folder of the source package that a library is in."""
    return "debian-windows" if library in ("libprcb-layout", "libprcb-nt") else "debian"


class Exports(unittest.TestCase):
    """A call is exported when its library's map names it, and then the package's list does."""
    libraries = {
        "libprcb-layout": ("src/windows/dump/libprcb-layout.map", ["dump", "layout"]),
        "libprcb-stack": ("src/analysis/stack/libprcb-stack.map", ["stack"]),
        "libprcb": ("src/lib/libprcb.map", None),
    }

    def declared(self, header):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        return set(re.findall(r"PRCB_API[^;(]*?\b(prcb_\w+)\(", text))

    def test_maps_and_packages_list_what_headers_declare(self):
        left = {path.stem: path for path in (ROOT / "include/prcb").glob("*.h")}
        for library, (file, headers) in self.libraries.items():
            calls = set()
            for header in headers if headers else list(left):
                calls |= self.declared(left.pop(header))
            self.assertEqual(set(re.findall(r"(?m)^    (prcb_\w+);$", read(file))), calls, file)
            symbols = f"packaging/{package_of(library)}/{library}0.symbols"
            self.assertEqual(set(re.findall(r"(?m)^ (prcb_\w+)@", read(symbols))), calls, symbols)
        self.assertFalse(left)

    def test_plain_names(self):
        """libprcb-nt's, of NT and Win32: what its files define to be exported."""
        calls = set()
        for path in (ROOT / "src/nt/compat").glob("*.c"):
            calls |= set(re.findall(r"(?m)^EXPORT [^;(]*?\b(\w+)\(", path.read_text(encoding="utf-8")))
        self.assertEqual(set(re.findall(r"(?m)^    (\w+);$", read("src/nt/compat/libprcb-nt.map"))), calls)
        self.assertEqual(set(re.findall(r"(?m)^ (\w+)@PRCB_0 ",
                                        read("packaging/debian-windows/libprcb-nt0.symbols"))),
                         calls | {"PRCB_0"})


class Figures(unittest.TestCase):
    page = read("docs/figures.md")

    def test_cause_table(self):
        header = read("include/prcb/causes.h")
        causes, reasons = header.split("#define PRCB_WAIT_REASONS")
        names = dict(re.findall(r"X\(\s*(\d+), (\w+)\)", reasons))
        rows = re.findall(r'X\(\s*\d+, *\w+, *"([\w-]+)", *(\w+), *(\d+), *"(.*?)"\)', causes)
        self.assertGreater(len(rows), 30)
        wanted = [f"| {name} | {kind.lower()} | {reason} {names[reason]} | {words} |"
                  for name, kind, reason, words in rows]
        written = re.findall(r"(?m)^\| [\w-]+ \| (?:ready|wait|end) \|.*\|$", self.page)
        self.assertEqual(written, wanted)
        manual = read("man/prcb-stat.1.scd").split("# CAUSES\n")[1].split("\n# ")[0]
        self.assertEqual(re.findall(r"(?m)^\*([\w-]+)\*\n\t(.*)$", manual), [(name, words) for name, _, _, words in rows])

    def test_table_of_figures(self):
        self.assertEqual(written_table(self.page), figure_table(figures("account")))

    def test_pages_of_stat_have_every_figure(self):
        page = plain(read("man/prcb-stat.1.scd"))
        names = [row["name"] for row in figures("account")]
        self.assertGreater(len(names), 10)
        for name in names:
            self.assertIn(name, page)

    def test_every_figure_of_a_record_is_defined(self):
        header = read("include/prcb/prcb.h")
        record = re.search(r"struct prcb_account \{(.*?)\n\};", header, re.S).group(1)
        members = re.findall(r"\buint64_t (\w+);", re.sub(r"/\*.*?\*/", "", record, flags=re.S))
        self.assertIn("run_ns", members)
        for member in members + ["open.ns", "open.cause", "retries", "last_syscall"]:
            if member != "key":
                self.assertTrue(f"`{member}`" in self.page, f"{member} is not defined")


class Kernels(unittest.TestCase):
    """docs/kernels.md against what tests/guest/check.sh runs in each guest."""

    @unittest.skipUnless(shutil.which("dpkg"), "check.sh asks dpkg for this machine's architecture")
    def test_table_says_what_is_run(self):
        run = {arch: subprocess.run([os.path.join(ROOT, "tests/guest/check.sh"), arch, "--list"],
                                    stdout=subprocess.PIPE, text=True, check=True).stdout.split()
               for arch in ("x86_64", "arm64")}
        rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")]
                for line in read("docs/kernels.md").splitlines() if "| `test_" in line]
        self.assertGreater(len(rows), 10)
        for what, test, _, *guests in rows:
            for arch, said in zip(run, guests):
                with self.subTest(what=what, arch=arch):
                    if said == "not run":
                        self.assertNotIn(test.strip("`"), run[arch])
                    else:
                        self.assertIn(test.strip("`"), run[arch])
        for test in {word for words in run.values() for word in words if word.startswith("test_")}:
            self.assertIn(f"`{test}`", [row[1] for row in rows])


class Entrances(unittest.TestCase):
    def test_dev_commands_exist(self):
        usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, timeout=30,
                               check=True).stdout
        known = set(re.findall(r"(?m)^  ([a-z]+) ", usage))
        self.assertIn("check", known)
        for name in ("README.md", "ARCHITECTURE.md", "docs/figures.md", "docs/processors.md"):
            for used in re.findall(r"\./dev ([a-z]+)", read(name)):
                self.assertIn(used, known, name)

    def test_unknown_dev_command(self):
        result = subprocess.run([ROOT / "dev", "no-such"], capture_output=True, text=True,
                                timeout=30, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("usage:", result.stderr)

    def test_files_named_in_documents_exist(self):
        names = ["README.md", "ARCHITECTURE.md",
                 *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
                 *(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("README.md"))]
        for name in names:
            text = re.sub(r"```.*?```", "", read(name), flags=re.S)
            for path in re.findall(r"`((?:src|include|tests|docs|man|examples|bench|completion|fuzz"
                                   r"|tools|packaging)/[\w./-]*)`", text):
                if not re.search(r"NAME|PACKAGE|\b(test|fuzz)_x\b", path):
                    self.assertTrue((ROOT / path).exists(), f"{name}: {path}")
            for path in re.findall(r"\]\(([\w./-]+)\)", text):
                self.assertTrue((ROOT / name).parent.joinpath(path).exists(), f"{name}: {path}")

    def test_every_alert_has_a_page_that_names_it(self):
        alerts = re.findall(r"- alert: (\w+)\n(?:(?!- alert).*\n)*?.*runbook: (docs/[\w-]+\.md)",
                            read("examples/prometheus/prcb-rules.yml"))
        self.assertEqual(len(alerts), read("examples/prometheus/prcb-rules.yml").count("- alert:"))
        for name, page in alerts:
            self.assertIn(f"`{name}`", read(page))
        self.assertIn("README.md docs", read("packaging/debian/rules"), "packages have the pages")

    def test_pages_that_are_referred_to_exist(self):
        pages = {path.name[:-4] for path in (ROOT / "man").glob("*.scd")}
        ours = re.compile(r"prcb|libprcb|(Nt|Ke|Hal|Enable|Disable|Query|Read)[A-Z]")
        seen = 0
        for path in [*(ROOT / "man").glob("*.scd"), *(ROOT / "docs").glob("*.md"),
                     ROOT / "README.md"]:
            for name, section in re.findall(r"([\w.-]+)[*_`]{0,2}\((\d)\)",
                                            path.read_text(encoding="utf-8")):
                if ours.match(name):
                    seen += 1
                    self.assertIn(f"{name}.{section}", pages, path.name)
        self.assertGreater(seen, 50)

    def test_commands_in_sentences_are_as_the_programs_have_them(self):
        """`prcb stat -p 1234` in a sentence: the command is one, its options are, up to what it runs."""
        seen = 0
        for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "HACKING.md"]:
            text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
            for words in re.findall(r"`(?:sudo )?(?:\./dev )?prcb ([a-z]+(?: [^`]*)?)`", text):
                command, *rest = words.split()
                self.assertIn(command, commands(), path.name)
                rest = rest[:rest.index("--")] if "--" in rest else rest
                options = {word.partition("=")[0] for word in rest if re.match(r"--?[A-Za-z]", word)}
                known = re.findall(r"(?m)^  (-\w|  )(?:, |  )(--[a-z-]+)", prcb(command, "--help"))
                self.assertLessEqual(options, {name for row in known for name in row}, f"{path.name}: {words}")
                seen += 1
        self.assertGreater(seen, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
