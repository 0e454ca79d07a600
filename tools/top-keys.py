#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the table of keys in man/prcb-top.1.scd from src/tools/top/top_actions.def: top-keys.py [--check]

A test calls it with --check: the page must be what this would write.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "man/prcb-top.1.scd"


def plain(text):
    """A text that scdoc takes as it is."""
    return re.sub(r"([\\*_#\[\]|~])", r"\\\1", text.replace("\\\\", "\\"))


def table():
    lines = ["[[ *Keys*", ":[ *Name*", ":[ *What they do*"]
    rows = re.findall(r'^ACTION\(\w+, *"([^"]+)", *"([^"]+)", *"[^"]+", *"([^"]+)"\)',
                      (ROOT / "src/tools/top/top_actions.def").read_text(encoding="utf-8"), re.M)
    for name, keys, help_ in rows:
        lines += [f"|  {', '.join('*' + plain(key) + '*' for key in keys.replace(chr(92) * 2, chr(92)).split())}",
                  f":  {plain(name)}", f":  {plain(help_)}"]
    return "\n".join(lines) + "\n"


def main():
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index("[[ *Keys*"), text.index("\n# SCREEN")
    wanted = text[:start] + table() + text[end:]
    if sys.argv[1:] == ["--check"]:
        if text != wanted:
            sys.exit("man/prcb-top.1.scd: the keys are not those of src/tools/top/top_actions.def: "
                     "run tools/top-keys.py")
        return
    PAGE.write_text(wanted, encoding="utf-8")


main()
