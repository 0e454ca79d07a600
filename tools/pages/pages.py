#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the outputs that docs/*.md show, from scenes that anyone can run again.

    pages.py PRCB [SCENE]...     run the scenes (all), write their outputs into the pages
    pages.py --check             compare the pages' markers with the scenes; run nothing

A scene is tools/pages/SCENE.sh. It starts what it needs and calls `part NAME`, then `show COMMAND`
for each command that readers see. A page has the marker "<!-- made by tools/pages/SCENE.sh: NAME -->" before the
block that takes the part's output. Scenes need root, and the programs that they name.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
BLOCK = re.compile(r"(<!-- made by tools/pages/([\w-]+)\.sh: ([\w-]+) -->\n```console\n)(.*?)(^```$)", re.M | re.S)
MARKER = re.compile(r"<!-- made by tools/pages/([\w-]+)\.sh: ([\w-]+) -->")
BEGIN = "@part "
SHELL = r"""
set -euo pipefail
part() { echo "@part $1"; }
show() { echo "\$ $1"; eval "$1" 2>&1 || true; echo; } # the command as readers would type it
until_it() { local i; for i in $(seq 300); do if eval "$1" >/dev/null 2>&1; then return; fi; sleep 0.1; done
    echo "waited 30 s for: $1" >&2; exit 1; }
finish() { trap - EXIT; [[ -z $(jobs -p) ]] || kill $(jobs -p) 2>/dev/null || true; wait || true; }
trap finish EXIT
"""


def pages():
    return {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}


def scenes():
    return {path.stem: set(re.findall(r"^\s*part ([\w-]+)", path.read_text(encoding="utf-8"), re.M))
            for path in HERE.glob("*.sh")}


def check():
    """What is wrong between pages and scenes: nothing, or lines that say it."""
    wanted = {(scene, part) for scene, parts in scenes().items() for part in parts}
    markers = [mark for text in pages().values() for mark in MARKER.findall(text)]
    blocks = [(scene, part) for text in pages().values() for _, scene, part, _, _ in BLOCK.findall(text)]
    return ([f"{scene}.sh: {part}: no page shows it" for scene, part in sorted(wanted - set(markers))]
            + [f"{scene}.sh: {part}: there is no such part" for scene, part in sorted(set(markers) - wanted)]
            + [f"{scene}.sh: {part}: no block follows the marker" for scene, part in sorted(set(markers) - set(blocks))])


def run(prcb, scene):
    """The outputs of a scene's parts, by name."""
    with tempfile.TemporaryDirectory(prefix="prcb-page-") as folder:
        os.chmod(folder, 0o755)
        os.mkdir(folder + "/bin")
        os.symlink(prcb, folder + "/bin/prcb")
        done = subprocess.run(["bash", "-c", SHELL + f'source "{HERE}/{scene}.sh"'], cwd=folder, check=False, text=True,
                              stdout=subprocess.PIPE, errors="replace",
                              env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "COLUMNS": "110",
                                   "TREE": str(HERE.parents[1]), "BUILD": str(prcb.parents[3])})
    if done.returncode:
        raise SystemExit(f"pages.py: {scene}.sh ended with status {done.returncode}")
    parts = {}
    for piece in ("\n" + done.stdout).split("\n" + BEGIN)[1:]:
        name, _, text = piece.partition("\n")
        parts[name] = "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"
    return parts


def main():
    wrong = check()
    if wrong or sys.argv[1:] == ["--check"]:
        print("\n".join(wrong) or "each part has its place")
        return 1 if wrong else 0
    prcb = pathlib.Path(sys.argv[1]).resolve()
    for scene in sys.argv[2:] or sorted(scenes()):
        parts = run(prcb, scene)

        def made(found, scene=scene, parts=parts):
            return found[1] + parts[found[3]] + found[5] if found[2] == scene else found[0]
        for path, text in pages().items():
            path.write_text(BLOCK.sub(made, text), encoding="utf-8")
        print(f"{scene}: {', '.join(parts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
