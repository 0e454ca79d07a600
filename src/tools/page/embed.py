#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Puts the page's files together as strings of C: embed.py OUTPUT page.html style.css SCRIPT..."""
import base64
import hashlib
import sys

POLICY = ("default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
          "base-uri 'none'; form-action 'none'")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def literal(name, text):
    lines = [f"const char {name}[] ="]
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        # No trigraphs, and nothing but ASCII in the C file.
        lines.append('    "' + "".join(c if " " <= c <= "~" else "".join(
            f"\\{byte:03o}" for byte in c.encode()) for c in escaped) + '"')
    return "\n".join(lines + ['    "";'])


def main():
    output, page, style, *scripts = sys.argv[1:]
    style = "\n" + read(style)
    script = '\n"use strict";\n' + "\n".join(read(path) for path in scripts)
    assert "</style" not in style and "</script" not in script and "<!--" not in script
    head, rest = read(page).split("<!-- policy -->\n")
    before_style, rest = rest.split("<!-- style -->\n")
    before_data, tail = rest.split("<!-- data -->\n")
    end_of_body, end = tail.split("<!-- script -->\n")
    hashes = {"script": digest(script), "style": digest(style)}
    parts = {
        "page_part_head": head,
        "page_part_policy": POLICY.format(**hashes),
        "page_part_middle": before_style + f"<style>{style}</style>\n" + before_data,
        "page_part_tail": end_of_body + f"<script>{script}</script>\n" + end,
    }
    with open(output, "w", encoding="ascii") as file:
        file.write("/* Made by embed.py. */\n#include \"parts.h\"\n\n")
        for name, text in parts.items():
            file.write(literal(name, text) + "\n\n")


main()
