# SPDX-License-Identifier: BSD-2-Clause
"""A PostgreSQL server of the test's own, with the extension built for it and not installed."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "../../src/services/postgresql")
WITNESSES = ["pg_stat_kcache"]
LONG = 60  # seconds that only something that hangs takes


def versions():
    """Folders of programs of all servers that are installed together with what extensions are built with."""
    return [folder for folder in sorted(glob.glob("/usr/lib/postgresql/*/bin"))
            if os.path.exists(folder + "/postgres") and
            os.path.exists(subprocess.run([folder + "/pg_config", "--pgxs"], capture_output=True, text=True,
                                          check=False).stdout.strip())]


def user():
    """Who runs the server: it refuses root."""
    return "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def wait_for(condition, what):
    """Returns what the condition said at last: asked again it may say something else."""
    end = time.monotonic() + LONG
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError("not within %d s: %s" % (LONG, what))
        time.sleep(0.02)
    return found


class Server:
    """environment: of the server, PRCB_SOCKET for one; preload: further libraries, those of WITNESSES that are
    installed where it says nothing."""

    def __init__(self, programs, library_folder, pkg_config_path, environment=(), preload=None,
                 with_prcb=True, settings=""):
        self.programs = programs
        self.folder = tempfile.mkdtemp(prefix="prcb-postgresql-")
        os.chmod(self.folder, 0o711)
        shutil.copytree(SOURCE, self.folder + "/source")
        self.make(pkg_config_path)
        self.library = self.folder + "/source/pg_stat_prcb.so"
        libraries = self.output("pg_config", "--pkglibdir")
        self.preload = [name for name in WITNESSES if os.path.exists("%s/%s.so" % (libraries, name))] \
            if preload is None else list(preload)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=library_folder, LC_ALL="C", **dict(environment))
        self.data = self.folder + "/home/data"
        os.mkdir(self.folder + "/home")
        if os.geteuid() == 0:
            shutil.chown(self.folder + "/home", user())
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        with open(self.data + "/postgresql.conf", "a") as file:
            file.write("listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = 16MB\n"
                       "max_connections = 40\nautovacuum = off\npg_stat_prcb.max = 200\nlog_min_messages = log\n"
                       "shared_preload_libraries = '%s'\n"
                       % (self.folder + "/home", ",".join(["pg_stat_statements", *self.preload, *[self.library] * with_prcb])) + settings)
        self.process = None

    def make(self, pkg_config_path):
        result = subprocess.run(["make", "-C", self.folder + "/source", "-s", "with_llvm=no", "PRCB_TREE=" + os.path.join(HERE, "../.."),
                                 "PG_CONFIG=" + self.programs + "/pg_config", "COPT=-Werror"],
                                env=dict(os.environ, PKG_CONFIG_PATH=pkg_config_path), capture_output=True, text=True,
                                check=False)
        if result.returncode:
            raise AssertionError(result.stderr)

    def output(self, program, *args):
        return subprocess.run([self.programs + "/" + program, *args], capture_output=True, text=True,
                              check=True).stdout.strip()

    def who(self):
        return {"user": user(), "group": pwd.getpwnam(user()).pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def run(self, program, *args, check=True, **options):
        return subprocess.run([self.programs + "/" + program, *args], cwd="/", check=check,
                              env=options.pop("env", self.environment), capture_output=True, text=True, timeout=2 * LONG, **self.who(), **options)

    def start(self):
        with open(self.folder + "/log", "ab") as log:
            self.process = subprocess.Popen([self.programs + "/postgres", "-D", self.data], env=self.environment,
                                            cwd="/", stdout=log, stderr=log, **self.who())
        wait_for(lambda: self.run("pg_isready", "-q", "-h", self.folder + "/home", check=False).returncode == 0,
                 "the server answers: " + self.log())

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(LONG)
            self.process = None

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)

    def log(self):
        with open(self.folder + "/log") as file:
            return file.read()

    def address(self):
        return ["-h", self.folder + "/home", "-U", "postgres", "-d", "postgres"]

    def client(self, patient):
        return self.environment if patient else dict(self.environment, PGOPTIONS="-c pg_stat_prcb.patient=off")

    def psql(self, *commands, check=True, patient=True):
        """The rows that the last command prints, columns as text. Each command is sent by itself. patient: as the
        server's settings have it."""
        args = [part for command in commands for part in ("-c", command)]
        result = self.run("psql", "-X", "-A", "-t", "-q", "-F", "\t", "-v", "ON_ERROR_STOP=0", *self.address(), *args,
                          check=False, env=self.client(patient))
        if check and (result.returncode or "ERROR" in result.stderr):
            raise AssertionError(result.stderr)
        return [line.split("\t") for line in result.stdout.splitlines()]

    def psql_begin(self, *commands):
        args = [part for command in commands for part in ("-c", command)]
        return subprocess.Popen([self.programs + "/psql", "-X", "-q", *self.address(), *args], env=self.environment,
                                cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.who())

    def create_extension(self):
        """CREATE EXTENSION wants files among the server's own: its script is run without them."""
        with open(SOURCE + "/pg_stat_prcb--1.0.sql") as file:
            script = "".join(line for line in file if not line.startswith("\\echo"))
        self.psql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        for name in self.preload:
            self.psql("CREATE EXTENSION IF NOT EXISTS " + name)
        for command in script.replace("MODULE_PATHNAME", self.library).split(";\n"):
            if command.strip():
                self.psql(command)
