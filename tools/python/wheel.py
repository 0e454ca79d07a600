# SPDX-License-Identifier: BSD-2-Clause
"""pip's way to the package prcb of a checkout (PEP 517): meson builds and installs into a folder,
and the modules go into a wheel with the libraries of prcb that they need beside them. Other
libraries (libbpf, libpfm4, libdw) are the system's. It needs no package of Python's, so it works
without a network."""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Libraries are looked for where the modules are.
OPTIONS = ["-Dprefix=/usr", "-Dlibdir=lib", "-Dpython=enabled", f"-Dpython_path={sys.executable}",
           "-Dpython_dir=site", "-Dtests=disabled", "-Dexamples=false", "-Dbench=false",
           "-Dman=disabled", "-Dwine=disabled", "-Dtop=disabled", "-Drecord=disabled", "-Dserve=disabled", "-Dpush=disabled",
           "-Dexporter=disabled", "-Dpmda=disabled", "-Dbpf_objects=", "-Dbuildtype=release"]
LIBRARIES = ("libprcb.so.0", "libprcb-layout.so.0", "libprcb-stack.so.0")


def run(*command, **environment):
    subprocess.run(command, check=True, env={**os.environ, **environment}, stdout=sys.stderr)


def installed(more):
    """The folder with what `meson install` makes, with more options of meson."""
    for tool in ("meson", "ninja", "pkg-config"):
        if not shutil.which(tool):
            sys.exit(f"prcb: {tool} is not installed; './dev build' installs what a build needs "
                     "on Debian")
    build, into = ROOT / "build-wheel", ROOT / "build-wheel" / "installed"
    if (build / "build.ninja").exists():
        run("meson", "configure", str(build), *OPTIONS, *more)
    else:
        run("meson", "setup", str(build), str(ROOT), *OPTIONS, *more, LDFLAGS="-Wl,-rpath,$ORIGIN")
    shutil.rmtree(into, ignore_errors=True)
    run("meson", "compile", "-C", str(build))
    run("meson", "install", "-C", str(build), "--no-rebuild", "--destdir", str(into))
    return into / "usr"


def metadata():
    """(name, version, text of METADATA)"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = re.search(r"^ *version: '(.*)',$", (ROOT / "meson.build").read_text("utf-8"),
                        re.M).group(1)
    return project["name"], version, (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
        f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n"
        "License: BSD-2-Clause\nDescription-Content-Type: text/markdown\n\n"
        + (ROOT / project["readme"]).read_text("utf-8"))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, version, text = metadata()
    more = (config_settings or {}).get("setup-args", []) # as other builders with meson call it
    usr = installed([more] if isinstance(more, str) else more)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"cp311-abi3-{platform}"
    info = f"{name}-{version}.dist-info"
    files = {f"{info}/METADATA": text.encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: prcb\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n".encode()}
    for path in sorted((usr / "site" / name).iterdir()):
        files[f"{name}/{path.name}"] = path.read_bytes()
    for library in LIBRARIES:  # a build without libdw has no libprcb-stack
        if (usr / "lib" / library).exists():
            files[f"{name}/{library}"] = (usr / "lib" / library).read_bytes()
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, wheel), "w",
                         zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("prcb is built from a checkout: there is no source package")
