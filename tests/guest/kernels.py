#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels for guests: which there are, and one of them.

    kernels.py FOLDER ARCH                 lists: name, package, version, suite
    kernels.py FOLDER ARCH NAME VMLINUZ    fetches one to the file VMLINUZ, unless it is that one already

ARCH is x86_64 or arm64. All of Debian's suites are looked at, whatever this machine's own are: with a
configuration of apt's that lies in FOLDER and touches nothing outside it. GUEST_MIRROR is where
they are got from (http://deb.debian.org).
"""
import os
import re
import subprocess
import sys
import time

MIRROR = os.environ.get("GUEST_MIRROR", "http://deb.debian.org")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITES = {suite: path for path, suites in {
    "debian": ("bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid"),
    "debian-security": ("bookworm-security", "trixie-security"),
}.items() for suite in suites}
# In the order of docs/kernels.md: name, releases that it is looked for in, suites, the newest. A name
# that ends in -16k: the flavour with pages of that size, which arm64 has; in -rt: the one that is PREEMPT_RT.
TWELVE = ("bookworm", "bookworm-security", "bookworm-backports")
BACKPORTS = ("trixie-backports",)  # has earlier ones beside its newest, for a while
KERNELS = (
    ("debian11", r"5\.10\.", ("bullseye",), True),  # too old for eBPF: ./dev static --test alone
    ("oldest", r"6\.1\.", TWELVE, False),
    ("6.1", r"6\.1\.", TWELVE, True),
    ("6.12", r"6\.12\.", TWELVE, True),
    ("debian13", r"6\.12\.", ("trixie", "trixie-security"), True),
    ("debian13-rt", r"6\.12\.", ("trixie", "trixie-security"), True),
    *((release, re.escape(release) + r"\.", BACKPORTS, True) for release in ("6.16", "6.17", "6.19", "7.0", "7.1")),
    ("backport", r"", BACKPORTS, True),
    ("unstable", r"", ("sid",), True),
    ("newest", r"", tuple(SUITES), True),
    ("unstable-16k", r"", ("sid",), True),
)
# A released kernel's package; from 6.19 on the image is in one of its own.
PACKAGE = r"linux-(?:image|binary)-(\d[^ ]*)-%s(-16k)?(?:-unsigned)?"
DAY = 86400


class Archive:
    def __init__(self, folder, arch):
        self.folder = os.path.abspath(folder)
        self.arch = {"x86_64": "amd64"}.get(arch, arch)
        self.environment = {**os.environ, "APT_CONFIG": self.path("apt.conf")}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def apt(self, *command, folder=None):
        return subprocess.run(command, env=self.environment, cwd=folder, check=True,
                              stdout=subprocess.PIPE, text=True, errors="replace").stdout

    def prepare(self):
        """The lists, a day old at most."""
        for name in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(self.path(name), exist_ok=True)
        open(self.path("state/status"), "a", encoding="utf-8").close()
        with open(self.path("sources.list"), "w", encoding="utf-8") as out:
            for suite, path in SUITES.items():
                out.write(f"deb [signed-by={KEYS}] {MIRROR}/{path} {suite} main\n")
        with open(self.path("apt.conf"), "w", encoding="utf-8") as out:
            out.write(f'Dir::Etc::sourcelist "{self.path("sources.list")}";\n'
                      'Dir::Etc::sourceparts "/dev/null";\n'
                      f'Dir::State "{self.path("state")}";\n'
                      f'Dir::State::status "{self.path("state/status")}";\n'
                      f'Dir::Cache "{self.path("cache")}";\n'
                      'APT::Sandbox::User "root";\n'
                      f'APT::Architecture "{self.arch}";\nAPT::Architectures {{"{self.arch}";}};\n'
                      'Acquire::Languages "none";\n')
        stamp = self.path("updated")
        if not os.path.exists(stamp) or time.time() - os.path.getmtime(stamp) > DAY:
            self.apt("apt-get", "-qq", "update")
            with open(stamp, "w", encoding="utf-8"):
                pass

    def packages(self):
        """Suite, package and version of each kernel."""
        wanted = re.compile(PACKAGE % self.arch)
        rows = self.apt("apt-get", "indextargets", "--format", "$(RELEASE) $(FILENAME)",
                        "Created-By: Packages").splitlines()
        for row in rows:
            suite, name = row.split(" ", 1)
            text = self.apt("/usr/lib/apt/apt-helper", "cat-file", name)
            for stanza in text.split("\n\n"):
                fields = dict(re.findall(r"^(Package|Version|Size): (.*)$", stanza, re.M))
                match = wanted.fullmatch(fields.get("Package", ""))
                # Those that only depend on others are small; other flavours are other kernels.
                if match and "-cloud" not in match.group(1) and \
                        int(fields["Size"]) > 5e6:
                    yield suite, fields["Package"], fields["Version"]


def parts(version):
    return [int(number) for number in re.findall(r"\d+", version)]


def choose(packages):
    """A row per kernel there is: name, package, version, suite."""
    for name, release, suites, newest in KERNELS:
        fitting = [row for row in packages if row[0] in suites and re.match(release, row[2]) and
                   all(name.endswith(flavour) == (flavour in row[1]) for flavour in ("-16k", "-rt"))]
        fitting.sort(key=lambda row: parts(row[2]))
        if fitting:
            suite, package, version = fitting[-1 if newest else 0]
            yield name, package, version, suite


def fetch(archive, package, version, out):
    folder = archive.path("download")
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        os.unlink(os.path.join(folder, old))
    archive.apt("apt-get", "-qq", "download", f"{package}={version}", folder=folder)
    deb, = os.listdir(folder)
    with open(out + ".part", "wb") as image:
        tar = subprocess.Popen(["dpkg", "--fsys-tarfile", os.path.join(folder, deb)],
                               stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-O", "--wildcards", "*/vmlinuz*"], stdin=tar.stdout,
                       stdout=image, check=True)
        tar.communicate()
    os.unlink(os.path.join(folder, deb))
    os.rename(out + ".part", out)
    with open(out + ".version", "w", encoding="utf-8") as told:
        told.write(f"{package} {version}")


def is_there(package, version, out):
    """Whether an earlier call fetched the same."""
    try:
        with open(out + ".version", encoding="utf-8") as told:
            return told.read() == f"{package} {version}" and os.path.getsize(out) > 0
    except OSError:
        return False


def main(folder, arch, name=None, out=None):
    archive = Archive(folder, arch)
    archive.prepare()
    rows = list(choose(list(archive.packages())))
    if not name:
        for row in rows:
            print(*row, sep="\t")
        return 0
    for row in rows:
        if row[0] == name:
            if not is_there(row[1], row[2], out):
                fetch(archive, row[1], row[2], out)
            return 0
    print(f"kernels: the archive has no '{name}'", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
