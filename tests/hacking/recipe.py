# SPDX-License-Identifier: BSD-2-Clause
"""HACKING.md and docs/hacking/*.md: their blocks and commands, and the changes that these make.

A block that changes a file opens with ```diff FILE. Its lines that begin with "-" are taken out of
the file and are there once; those that begin with "+" come in their place, or behind the context
line above them, or before the one below. A context line is the beginning, but for blanks, of one
line of the file.
"""
import re


def blocks(page):
    """[(kind, file or "", lines)] of a page, without the indentation of a list."""
    found = []
    for indent, kind, name, text in re.findall(r"(?ms)^( *)```(\w+)(?: (\S+))?\n(.*?)^\1```$", page):
        found.append((kind, name, [line[len(indent):] for line in text.splitlines()]))
    return found


def changes(page):
    return [(name, lines) for kind, name, lines in blocks(page) if kind == "diff"]


def commands(page):
    """Lines of ```sh blocks without their remarks."""
    return [re.sub(r"\s+# .*", "", line) for kind, _, lines in blocks(page) if kind == "sh"
            for line in lines if line.strip()]


def place(text, wanted, whole, name):
    """The number of the one line that wanted is, or is the beginning of."""
    found = [number for number, line in enumerate(text)
             if (line == wanted if whole else line.strip().startswith(wanted.strip()))]
    if len(found) != 1:
        raise AssertionError(f"{name} has {len(found)} lines of which a page says {wanted!r}")
    return found[0]


def changed(text, lines, name):
    """The text of a file after a block."""
    text = text.splitlines()
    taken = [line[1:] for line in lines if line.startswith("-")]
    added = [line[1:] for line in lines if line.startswith("+")]
    context = [line for line in lines if line and line[0] not in "+-"]
    assert len(context) + bool(taken) == 1 and added, f"{name}: a block has one place"
    if taken:
        at = place(text, taken[0], True, name)
        assert text[at:at + len(taken)] == taken, f"{name}: {taken}"
        del text[at:at + len(taken)]
    else:
        at = place(text, context[0], False, name) + (lines[0] == context[0])
    text[at:at] = added
    return "\n".join(text) + "\n"
