#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lines of documents have at most 100 columns: Markdown, and the manual pages' scdoc. A tab is four.

Without limit are tables, what stands between fences, and a line that has no place to be broken: a
URL, or code in backquotes, which is read better in one line. --mend breaks the others: from the
first long line of a paragraph to its end, as the words before them flow into them."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 100
# What means something else at the beginning of a line: a list, a heading, a quotation, a table.
MARK = {".md": re.compile(r"([-+*>|]|#+|\d+[.)]|[=-]{2,})(\s|$)|\|"),
        ".scd": re.compile(r"[-.#|:;\[\]]")}
ITEM = {".md": re.compile(r"(\s*)([-+*>]|\d+[.)])\s+"), ".scd": re.compile(r"(\s*)([-.])\s+")}
ALONE = {".md": re.compile(r"\s*(\||#|<)"), ".scd": re.compile(r"\s*[|#:;\[\]]")}


def width(line):
    return len(line.expandtabs(4))


def words(text):
    """The words of text; with code in backquotes, and what is joined to it, as one."""
    return re.findall(r"(?:`[^`]*`|\S)+", text)


def indented(line, ending):
    """How the lines that follow this one in its paragraph begin."""
    item = ITEM[ending].match(line)
    return item[1] + "  " if item and ending == ".scd" else \
        " " * len(item[0]) if item else re.match(r"\s*", line)[0]


def broken(line, indent, ending):
    """Line as one that fits and the rest; the rest is empty where there is no place to break it."""
    begin = ITEM[ending].match(line) or re.match(r"\s*", line)
    fits, rest = begin[0], words(line[begin.end():])
    while rest and (fits == begin[0] or width(f"{fits} {rest[0]}") <= MOST):
        fits += ("" if fits == begin[0] else " ") + rest.pop(0)
    while rest and MARK[ending].match(rest[0]) and " " in fits.strip():
        fits, word = fits.rsplit(" ", 1)
        rest.insert(0, word)
    return fits, indent + " ".join(rest) if rest else ""


def continues(line, indent, ending):
    """Whether line is of the paragraph whose later lines are indented so."""
    return line.strip() and re.match(r"\s*", line)[0] == indent and "```" not in line \
        and not ITEM[ending].match(line) and not ALONE[ending].match(line)


def mended(lines, ending):
    """The lines, with those that are too long broken; and the numbers of these."""
    out, long, fence, code, at = [], [], False, False, 0
    lines = list(lines)
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        fence ^= line.lstrip().startswith("```")
        # A block of code is also what is indented by four behind an empty line.
        code = ending == ".md" and line.startswith("    ") and not ITEM[ending].match(line) \
            and (code or not out or not out[-1].strip())
        if fence or code or width(line) <= MOST or ALONE[ending].match(line):
            out.append(line)
            continue
        indent = indented(line, ending)
        fits, rest = broken(line, indent, ending)
        out.append(fits if rest else line)
        if not rest:
            continue
        long.append(number)
        if at < len(lines) and continues(lines[at], indent, ending) and not re.search(r"(\+\+|\\|  )$", rest):
            lines[at] = f"{rest} {lines[at].strip()}"
        else:
            lines.insert(at, rest)
    return out, long


def main():
    names = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "*.md", "*.scd"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()
    failed = False
    for path in (ROOT / name for name in names):
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        lines, long = mended(text.split("\n"), path.suffix)
        if long and "--mend" in sys.argv:
            path.write_text("\n".join(lines), encoding="utf-8")
        elif long:
            failed = True
            print(f"{path.relative_to(ROOT)}: {len(long)} lines are longer than {MOST} columns,"
                  f" line {long[0]} first: run tests/style/columns.py --mend")
    return failed


if __name__ == "__main__":
    sys.exit(main())
