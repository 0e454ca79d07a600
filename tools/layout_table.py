# SPDX-License-Identifier: BSD-2-Clause
"""One structure across all versions, as Markdown, for power-state-page.py.

A row of the table is a member with one definition, in all versions in which it keeps its place
among the others; the offset cells say where it was in which. A member that changes its type or
its place gets another row, and the two point to each other. Where two versions have less than
half of their members in common the structure was redesigned, and a new table begins.
"""
ARCHES = "x86", "x64"


class Versions:
    """The catalog's versions, in order: a version is its place here."""
    def __init__(self, rows):
        self.rows = rows

    def counts(self, place, arch):
        """Whether a span of offsets of one architecture, or of both (None), can end there."""
        return arch is None or self.rows[place][arch]

    def minor(self, place):
        return self.rows[place]["version"].split(".")[:2]

    def key(self, place):
        return self.rows[place]["key"]

    def label(self, place):
        """"early 5.1", "6.1", "1809", "11 22H2": one name for all builds of a key."""
        key, release = self.key(place), self.rows[place]["release"]
        if key.startswith("10.0"):
            return release.removeprefix("Windows ").removeprefix("10 ")
        number, _, when = key.partition("-")
        return f"{when.replace('verylate', 'very late')} {number}".strip()

    def is_edge(self, place, step, group, arch):
        """No other version of the same group lies beyond in that direction."""
        beyond = place + step
        while 0 <= beyond < len(self.rows) and not self.counts(beyond, arch):
            beyond += step
        return not 0 <= beyond < len(self.rows) or group(beyond) != group(place)

    def edge(self, place, step, arch):
        """The key's label if the span has all of its versions in that direction, else the build."""
        if self.is_edge(place, step, self.key, arch):
            return self.label(place)
        return self.rows[place]["version"]

    def minor_label(self, place):
        minor = self.minor(place)
        if int(minor[0]) >= 10 or "-" not in self.key(place):
            return self.label(place)
        return ".".join(minor)

    def span(self, first, last, arch=None):
        """"6.1", "6.2 to 6.3", "early 6.0": from one version to another."""
        if self.is_edge(first, -1, self.minor, arch) and self.is_edge(last, 1, self.minor, arch):
            ends = self.minor_label(first), self.minor_label(last)
        else:
            ends = self.edge(first, -1, arch), self.edge(last, 1, arch)
        return " to ".join(dict.fromkeys(ends))


def what(member):
    return member["name"], member["type"], tuple(member.get("bits", ()))


def outer(members):
    """Members that share no bytes with others, as those of unions do, and are not inside others."""
    spans = [(m["offset"], m["offset"] + m["size"]) for m in members]
    for number, (member, (start, end)) in enumerate(zip(members, spans)):
        shared = any(a < end and start < b for other, (a, b) in enumerate(spans) if other != number)
        if "." not in member["name"] and ("bits" in member or not shared):
            yield member


def in_order(places):
    """Which of these form a longest ascending sequence."""
    best = []  # of each: length, the one before
    for i, place in enumerate(places):
        before = [(best[j][0] + 1, -j) for j in range(i) if places[j] < place]
        length, j = max(before, default=(1, 0))
        best.append((length, -j if length > 1 else None))
    found, i = set(), max(range(len(best)), key=lambda i: best[i][0], default=None)
    while i is not None:
        found.add(i)
        i = best[i][1]
    return found


class Row:
    def __init__(self, member, before):
        self.what = what(member)
        self.offsets = {}       # by version and architecture
        self.versions = set()
        self.last_in = set()    # versions in which nothing comes behind it
        self.before, self.after = before, None  # rows of the same member, in time
        self.superseded = False  # the member has another row now
        self.closed = False      # takes no more versions
        if before:
            before.after = self

    def edge(self, arch, newest):
        found = [place for place, of in self.offsets if of == arch]
        return self.offsets[(max if newest else min)(found), arch] if found else None


class Table:
    def __init__(self, structure, versions, layouts):
        self.structure, self.versions, self.layouts = structure, versions, layouts
        self.rows, self.known = [], set()
        self.text = []

    def find(self, member):
        return next((row for row in self.rows if not row.closed and row.what == what(member)), None)

    def place_behind(self, members, previous):
        """A new member comes behind the one before it, and what older versions had there."""
        going_on = [self.find(member) for member in members]
        at = self.rows.index(previous) + 1 if previous else 0
        while at < len(self.rows) and self.rows[at] not in going_on:
            at += 1
        return at

    def add_layout(self, layout, place):
        previous = None
        for member in layout["members"]:
            row = self.find(member)
            if not row:
                older = [row for row in self.rows if not row.after and row.what[0] == member["name"]]
                at = self.place_behind(layout["members"], previous)
                row = Row(member, older[-1] if older else None)
                self.rows.insert(at, row)
            row.offsets[place, layout["arch"]] = member["offset"]
            row.versions.add(place)
            previous = row
        if previous and not layout.get("partial"):
            previous.last_in.add(place)

    def close_moved(self, old, new):
        """Of the members that two versions share, those outside a longest sequence that both have
        in the same order have moved. False: it was redesigned."""
        places = {member["name"]: i for i, member in reversed(list(enumerate(old["members"])))}
        common = [member for member in outer(new["members"]) if member["name"] in places]
        if not new.get("partial") and \
           2 * len(common) < min(len(old["members"]), len(new["members"])):
            return False
        ordered = in_order([places[member["name"]] for member in common])
        for number, member in enumerate(common):
            row = self.find(member)
            if row and number not in ordered:
                row.closed = True
        return True

    def close_returned(self, layout):
        """A member that was defined otherwise in between goes on with its old row only where it
        was: early 5.2 is as early 5.1, but a later "Reserved" may be another."""
        for member in layout["members"]:
            row = self.find(member)
            if row and row.superseded and \
               row.edge(layout["arch"], True) not in (None, member["offset"]):
                row.closed = True

    def add_version(self, place, previous):
        """Both architectures of a version; of the order of members, x64 decides."""
        version = self.versions.rows[place]["version"]
        layouts = [self.layouts[version, arch] for arch in reversed(ARCHES)
                   if (version, arch) in self.layouts]
        if not layouts:
            return previous
        if previous and not self.close_moved(previous, layouts[0]):
            self.end_section()
        self.known.add(place)
        for layout in layouts:
            self.close_returned(layout)
        for layout in layouts:
            self.add_layout(layout, place)
        for row in self.rows:
            row.superseded = row.after is not None and place not in row.versions
        return layouts[0]

    def spans(self, places):
        """First and last of each run of these versions; those that are not known do not part it."""
        runs = []
        for place in sorted(self.known):
            if place not in places:
                runs.append(None)
            elif runs and runs[-1]:
                runs[-1] = runs[-1][0], place
            else:
                runs.append((place, place))
        return filter(None, runs)

    def versions_cell(self, row):
        newest = len(self.versions.rows) - 1
        return "; ".join(f"{self.versions.edge(first, -1, None)} and higher" if last == newest
                         else self.versions.span(first, last)
                         for first, last in self.spans(row.versions))

    def offset_cell(self, row, arch):
        """"0x10 (6.1); 0x18 (6.2); 0x10": the last stands for all versions that follow."""
        runs = []
        for place, offset in sorted((place, offset) for (place, of), offset in row.offsets.items()
                                    if of == arch):
            if runs and runs[-1][0] == offset:
                runs[-1][2] = place
            else:
                runs.append([offset, place, place])
        cells = [f"0x{offset:02X} ({self.versions.span(first, last, arch)})"
                 for offset, first, last in runs]
        return "; ".join(cells[:-1] + [f"0x{runs[-1][0]:02X}"]) if runs else ""

    def remarks(self, row):
        if row.what[2]:
            yield f"from bit {row.what[2][0]}"
        for other, word, newest in ((row.before, "previously", True), (row.after, "next", False)):
            if other:
                offsets = dict.fromkeys(other.edge(arch, newest) for arch in ARCHES)
                yield f"{word} at " + " and ".join(f"0x{offset:02X}" for offset in offsets
                                                   if offset is not None)
        for first, last in self.spans(row.last_in):
            yield "last member in " + self.versions.span(first, last)

    def end_section(self):
        self.text += [f"{self.structure}, {self.versions.span(min(self.known), max(self.known))}",
                      "", "| Offset (x86) | Offset (x64) | Definition | Versions | Remarks |",
                      "|---|---|---|---|---|"]
        for row in self.rows:
            name, kind, bits = row.what
            plain, bracket, count = kind.partition("[")
            definition = plain + ("" if plain.endswith("*") else " ") + name + bracket + count
            cells = [self.offset_cell(row, arch) for arch in ARCHES]
            cells += [f"`{definition}{f' : {bits[1]}' if bits else ''}`", self.versions_cell(row),
                      "; ".join(self.remarks(row))]
            self.text.append("| " + " | ".join(cells) + " |")
        self.text.append("")
        self.rows, self.known = [], set()


def make(structure, versions, layouts):
    """versions as `prcb layout -j` has them, layouts of --all -j by version and architecture."""
    table = Table(structure, Versions(versions), layouts)
    previous = None
    for place in range(len(versions)):
        previous = table.add_version(place, previous)
    table.end_section()
    return "\n".join(table.text) + "\n"
