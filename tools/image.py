#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a container image of prcbd, prcb-exporter and prcb out of a build folder, without a container engine:

    image.py BUILD OUT.tar [NAME:TAG]

The programs, the libraries that they are linked with, a passwd with root and nobody, and nothing else: no shell and
no package manager. OUT.tar is an OCI layout that has Docker's manifest.json too: `podman load`, `docker load`, `ctr
images import` and `skopeo copy oci-archive:OUT.tar` take it. The same build makes the same bytes."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile

PROGRAMS = {"src/services/daemon/prcbd": "usr/sbin/prcbd", "src/services/exporter/prcb-exporter": "usr/sbin/prcb-exporter",
            "src/tools/cli/prcb": "usr/bin/prcb"}
FILES = {"etc/passwd": "root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n",
         "etc/group": "root:x:0:\nnogroup:x:65534:\n", "etc/nsswitch.conf": "passwd: files\ngroup: files\n"}
FOLDERS = ["etc", "etc/prcb", "run", "run/prcb", "proc", "sys", "dev", "tmp"]


def libraries(program):
    """Files that the loader maps for a program, and the loader itself, as paths of a root."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    if "not found" in listed:
        sys.exit(f"image.py: {program}: {re.search('.*not found', listed)[0].strip()}")
    return re.findall(r"(?:=> )?(/\S+) \(0x", listed)


def contents(build):
    """{path in the root: file on this machine}, all that are linked once."""
    files = {}
    for source, place in PROGRAMS.items():
        files[place] = build / source
        found = libraries(build / source)
        folder = next(os.path.dirname(library) for library in found if os.path.basename(library) == "libc.so.6")
        for library in found: # where the loader looks by itself; the loader where programs name it
            target = library if "/ld-" in library else os.path.join(folder, os.path.basename(library))
            files[target.lstrip("/")] = pathlib.Path(library).resolve()
    return files


def entry(name, kind=tarfile.REGTYPE, mode=0o755, size=0):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size = kind, mode, size
    return info


def layer(build):
    """The root's tar: owned by root, of the epoch."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        files = contents(build)
        folders = set(FOLDERS) | {str(parent) for name in [*files, *FILES] for parent in pathlib.PurePath(name).parents
                                  if str(parent) != "."}
        for name in sorted(folders):
            tar.addfile(entry(name, tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755))
        for name, text in sorted(FILES.items()):
            tar.addfile(entry(name, mode=0o644, size=len(text)), io.BytesIO(text.encode()))
        for name, source in sorted(files.items()):
            data = stripped(source)
            tar.addfile(entry(name, size=len(data)), io.BytesIO(data))
    return out.getvalue()


def stripped(source):
    done = subprocess.run(["strip", "-o", "/dev/stdout", str(source)], check=False, capture_output=True)
    return done.stdout if done.returncode == 0 and done.stdout else source.read_bytes()


def image(build, name):
    """{path in the archive: bytes}"""
    tar = layer(build)
    packed = gzip.compress(tar, 6, mtime=0)
    parts = {}

    def blob(data, media):
        digest = hashlib.sha256(data).hexdigest()
        parts[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    config = blob(json.dumps({
        "architecture": machine, "os": "linux", "created": "1970-01-01T00:00:00Z",
        "config": {"Env": ["PATH=/usr/sbin:/usr/bin"],
                   "Cmd": ["/usr/sbin/prcbd", "--foreground", "--user="],
                   "Labels": {"org.opencontainers.image.licenses": "BSD-2-Clause", "org.opencontainers.image.title": "prcb"}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
    }).encode(), "application/vnd.oci.image.config.v1+json")
    packed_layer = blob(packed, "application/vnd.oci.image.layer.v1.tar+gzip")
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": config, "layers": [packed_layer]}).encode(),
                    "application/vnd.oci.image.manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
    path = "blobs/sha256/{}".format
    parts["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    parts["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    parts["manifest.json"] = json.dumps([{"Config": path(config["digest"][7:]), "RepoTags": [name],
                                          "Layers": [path(packed_layer["digest"][7:])]}]).encode()
    return parts


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    build, out = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    parts = image(build, sys.argv[3] if len(sys.argv) == 4 else "prcb:latest")
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in "blobs", "blobs/sha256":
            tar.addfile(entry(folder, tarfile.DIRTYPE))
        for name, data in sorted(parts.items()):
            tar.addfile(entry(name, mode=0o644, size=len(data)), io.BytesIO(data))
    print(f"{out}: {os.path.getsize(out)} bytes")


if __name__ == "__main__":
    main()
