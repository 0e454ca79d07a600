# SPDX-License-Identifier: BSD-2-Clause
"""A Performance Co-Pilot of a test's own: its programs out of the package pcp, installed or merely
unpacked (PCP_ROOT), everything that they write in a folder, no systemd. Root or not."""
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time

DOMAIN = 460
# Debian's package pcp, unpacked: it wants systemd to run when it is configured.
ROOT = pathlib.Path(os.environ.get("PCP_ROOT", "/nonexistent"))
UNPACKED = (ROOT / "usr/lib/pcp/bin/pmcd").exists()

def path(name):
    """A file of pcp's: in the unpacked package, else in the system."""
    return str(ROOT / name.lstrip("/")) if UNPACKED else name


def missing():
    """Why the tests cannot run; None: they can."""
    if not os.path.exists("/etc/pcp.conf"):
        return "pcp-conf is not installed"
    if not os.path.exists(path("/usr/lib/pcp/bin/pmcd")):
        return "pcp is not installed, nor unpacked in " + str(ROOT)
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"no {what} in {seconds} s")


class Pcp:
    """agent: the command of pmdaprcb; user: who runs everything (None: who runs the test)."""

    def __init__(self, agent, pmns, user=None, hostname=None, environment=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="prcb-pcp-"))
        self.user = user or pwd.getpwuid(os.geteuid()).pw_name
        self.hostname = hostname
        self.agent = list(agent)
        self.port = free_port()
        self.socket = str(self.folder / "pmcd.socket")
        self.processes = []
        own = {"RUN": "run", "LOG": "log", "TMP": "tmp", "TMPFILE": "tmpfile", "ARCHIVE": "archive",
               "VAR": "var"}
        conf = pathlib.Path("/etc/pcp.conf").read_text(encoding="utf-8")
        for name, folder in own.items():
            (self.folder / folder).mkdir(parents=True)
            conf = re.sub(rf"(?m)^PCP_{name}_DIR=.*$", f"PCP_{name}_DIR={self.folder / folder}",
                          conf)
        (self.folder / "var/config/pmda").mkdir(parents=True)
        (self.folder / "log/pmcd").mkdir()
        for name, folder in (("BINADM", "/usr/lib/pcp/bin"), ("SHARE", "/usr/share/pcp"),
                             ("SYSCONF", "/etc/pcp"), ("PMDAS", "/usr/lib/pcp/pmdas")):
            conf = re.sub(rf"(?m)^PCP_{name}_DIR=.*$", f"PCP_{name}_DIR={path(folder)}", conf)
        conf = re.sub(r"(?m)^(PCP_\w+=)(/etc/pcp/)", rf"\g<1>{path('/etc/pcp')}/", conf)
        (self.folder / "pcp.conf").write_text(conf, encoding="utf-8")
        self.namespace = self.folder / "namespace"
        metrics = pathlib.Path(pmns).read_text(encoding="utf-8").replace("PRCB:", f"{DOMAIN}:")
        # pmlogger asks pmcd for some of its own.
        pmcd = pathlib.Path(path("/usr/lib/pcp/pmns/root_pmcd")).read_text(encoding="utf-8")
        pmcd = re.sub(r"(?s)\Aroot \{.*?\}\n", "", re.sub(r"(?s)/\*.*?\*/", "", pmcd).lstrip())
        self.namespace.write_text("root { prcb pmcd }\n" + pmcd + metrics, encoding="utf-8")
        self.environment = {**os.environ, "PCP_CONF": str(self.folder / "pcp.conf"),
                            "PMCD_SOCKET": self.socket, "LC_ALL": "C.UTF-8",
                            "PCP_DERIVED_CONFIG": "", **dict(environment)}
        for variable in ("PYTHONPATH", "PYTHONHOME"):
            self.environment.pop(variable, None)
        self.give()

    def give(self):
        """Everything to the user."""
        if os.geteuid() == 0:
            entry = pwd.getpwnam(self.user)
            for at in [self.folder, *self.folder.rglob("*")]:
                os.chown(at, entry.pw_uid, entry.pw_gid)

    def command(self, name, *arguments, bare=False):
        """Its command line, with the file of the program and as the user; bare: as who runs this."""
        found = [at for at in (path("/usr/bin/" + name),
                               path("/usr/lib/pcp/bin/" + name)) if os.path.exists(at)]
        program = found[0] if found else name
        with open(program, "rb") as file:
            first = file.read(200)
        python = ["/usr/bin/python3"] if first.startswith(b"#!") and b"python" in first else []
        become = []
        if not bare and os.geteuid() == 0 and self.user != "root":
            become = ["setpriv", "--reuid", self.user, "--regid",
                      str(pwd.getpwnam(self.user).pw_gid), "--clear-groups"]
        return [*become, *python, program, *map(str, arguments)]

    def run(self, name, *arguments, timeout=60, check=True, bare=False, given=None):
        """(status, output of both kinds); an AssertionError where the status is not 0."""
        done = subprocess.run(self.command(name, *arguments, bare=bare), env=self.environment,
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=timeout, check=False,
                              input=given)
        if check and done.returncode:
            raise AssertionError(f"{name} {arguments}: {done.returncode}\n{done.stdout}\n"
                                 + self.logs())
        return done.returncode, done.stdout

    def start(self, name, *arguments, log=None):
        # pylint: disable=consider-using-with
        with open(self.folder / (log or f"{name}.out"), "w", encoding="utf-8") as out:
            process = subprocess.Popen(self.command(name, *arguments), env=self.environment,
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, start_new_session=True)
        self.processes.append(process)
        return process

    def pmcd(self):
        (self.folder / "pmcd.conf").write_text(
            f"pmcd 2 dso pmcd_init {path('/usr/lib/pcp/pmdas/pmcd/pmda_pmcd.so')}\n"
            f"prcb {DOMAIN} pipe binary {' '.join(self.agent)} -d {DOMAIN} -U {self.user} "
            f"-l {self.folder / 'prcb.log'}\n"
            '[access]\ndisallow ".*" : store;\ndisallow ":*" : store;\nallow "local:*" : all;\n',
            encoding="utf-8")
        self.give()
        name = ["-H", self.hostname] if self.hostname else []
        process = self.start("pmcd", "-f", "-A", "-U", self.user, "-c", "pmcd.conf", "-n",
                             self.namespace, "-p", self.port, "-s", self.socket, "-l",
                             self.folder / "pmcd.log", *name)

        def up():
            if process.poll() is not None:
                raise AssertionError(f"pmcd ended: {process.returncode}\n{self.logs()}")
            return self.run("pminfo", "-h", self.host, "-f", "pmcd.agent.status",
                            check=False)[0] == 0
        wait_for("pmcd", up)

    @property
    def host(self):
        return f"localhost:{self.port}"

    def dbpmda(self, script, *prefix, timeout=90):
        """What dbpmda answers to the lines of a script, with the agent as its child."""
        given = f"open pipe {' '.join([*prefix, *self.agent])} -d {DOMAIN} " \
                f"-U {self.user} -l {self.folder / 'dbpmda.log'}\n{script}\nquit\n"
        return self.run("dbpmda", "-e", "-f", "-n", self.namespace, timeout=timeout,
                        given=given)[1]

    def values(self, *metrics, host=None, archive=None):
        """{(metric, instance): text} of pminfo -f; metrics without values are not there. Among a metric's instances
        are messages on those that ended meanwhile: "pmNameIndom: ..."."""
        where = ["-a", archive] if archive else ["-h", host or self.host]
        out = self.run("pminfo", *where, "-f", *metrics)[1]
        result, metric = {}, None
        for line in out.splitlines():
            if re.fullmatch(r"[a-z][\w.]*", line):
                metric = line
            match = re.match(r' +inst \[\d+ or "(.*)"\] value (.*)$', line)
            if match:
                result[metric, match.group(1)] = match.group(2)
            match = re.match(r" +value (.*)$", line)
            if match:
                result[metric, None] = match.group(1)
        return result

    def logs(self):
        text = ""
        for log in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")):
            text += f"==== {log.name}\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:]
        return text

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
