/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout --table: one structure across versions.
 *
 * A row of the table is a member with one definition, in all versions in which it keeps its place
 * among the others; the offset cells say where it was in which. A member that changes its type or
 * its place gets another row, and the two point to each other. Where two versions have less than
 * half of their members in common the structure was redesigned, and a new table begins.
 */
#include "layout_show.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define MEMBERS_MAX  256 /* of one layout; the widest has about 110 */
#define ROWS_MAX     1024
#define VERSIONS_MAX 128
#define CELL_SIZE    1024
#define ABSENT       (-1)

struct row {
    char name[64];
    char type[96];
    uint8_t bit_first, bit_width;
    int32_t offset[VERSIONS_MAX][2]; /* by version and architecture */
    bool present[VERSIONS_MAX];      /* on either */
    bool last_in[VERSIONS_MAX];      /* nothing comes behind it */
    struct row *before, *after;      /* rows of the same member, in time */
    bool superseded;                 /* the member has another row now */
    bool closed;                     /* takes no more versions */
    struct row *next;                /* in the order of printing */
};

struct table {
    FILE *out;
    const char *structure;
    struct row *rows;
    size_t count;
    struct row *head;         /* of the section at hand */
    bool known[VERSIONS_MAX]; /* versions of the section in which the structure is known */
    bool known_on[VERSIONS_MAX][2];
    unsigned int versions;
};

/* ---- gathering ---- */

static bool is_row_of(const struct row *row, const struct prcb_layout_field *f)
{
    char type[96];

    if (strcmp(row->name, f->name))
        return false;
    prcb_layout_type_text(f, type, sizeof(type));
    return !strcmp(row->type, type) && row->bit_first == f->bit_first &&
           row->bit_width == f->bit_width;
}

/* Offset in the newest, or oldest, version of the row. */
static int32_t edge_offset(const struct table *t, const struct row *row, enum prcb_arch arch,
                           bool newest)
{
    int32_t found = ABSENT;

    for (unsigned int v = 0; v < t->versions; v++)
        if (row->offset[v][arch] != ABSENT && (newest || found == ABSENT))
            found = row->offset[v][arch];
    return found;
}

static struct row *find_row(const struct table *t, const struct prcb_layout_field *f)
{
    for (struct row *row = t->head; row; row = row->next)
        if (!row->closed && is_row_of(row, f))
            return row;
    return NULL;
}

static struct row *last_row_named(const struct table *t, const char *name)
{
    struct row *found = NULL;

    for (struct row *row = t->head; row; row = row->next)
        if (!row->after && !strcmp(row->name, name))
            found = row;
    return found;
}

static bool goes_on(const struct table *t, const struct row *row, const struct prcb_layout *l)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++)
        if (!strcmp(row->name, f[i].name) && find_row(t, &f[i]) == row)
            return true;
    return false;
}

/* A new member of l comes behind the one before it, and behind what older versions had there. */
static struct row *place_behind(const struct table *t, const struct prcb_layout *l,
                                struct row *previous)
{
    struct row *next = previous ? previous->next : t->head;

    while (next && !goes_on(t, next, l)) {
        previous = next;
        next = next->next;
    }
    return previous;
}

static struct row *new_row(struct table *t, const struct prcb_layout_field *f, struct row *behind)
{
    struct row *row, *older = last_row_named(t, f->name);

    if (t->count == ROWS_MAX)
        return NULL;
    row = &t->rows[t->count++];
    memset(row, 0, sizeof(*row));
    snprintf(row->name, sizeof(row->name), "%s", f->name);
    prcb_layout_type_text(f, row->type, sizeof(row->type));
    row->bit_first = f->bit_first;
    row->bit_width = f->bit_width;
    memset(row->offset, 0xFF, sizeof(row->offset)); /* ABSENT */
    if (older) {
        older->after = row;
        row->before = older;
    }
    row->next = behind ? behind->next : t->head;
    if (behind)
        behind->next = row;
    else
        t->head = row;
    return row;
}

/* Puts one layout into the table. */
static void add_layout(struct table *t, const struct prcb_layout *l, unsigned int version)
{
    enum prcb_arch arch = prcb_layout_arch(l);
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);
    struct row *previous = NULL;

    for (size_t i = 0; i < count; i++) {
        struct row *row = find_row(t, &f[i]);

        if (!row)
            row = new_row(t, &f[i], place_behind(t, l, previous));
        if (!row)
            return;
        row->offset[version][arch] = (int32_t)f[i].offset;
        row->present[version] = true;
        previous = row;
    }
    if (previous && !prcb_layout_is_partial(l))
        previous->last_in[version] = true;
}

/* ---- members that changed places ----
 * Of the members that two versions share, those outside a longest sequence that both have in the
 * same order have moved. */

static size_t position_in(const struct prcb_layout *l, const struct prcb_layout_field *wanted)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++)
        if (!strcmp(f[i].name, wanted->name))
            return i;
    return SIZE_MAX;
}

struct common {
    const struct prcb_layout_field *field[MEMBERS_MAX]; /* of the new layout, in its order */
    size_t old_place[MEMBERS_MAX];
    size_t count;
};

static void find_common(const struct prcb_layout *old, const struct prcb_layout *new,
                        struct common *ret)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(new, &count);

    ret->count = 0;
    for (size_t i = 0; i < count && ret->count < MEMBERS_MAX; i++) {
        size_t place = position_in(old, &f[i]);

        if (place == SIZE_MAX || f[i].in_union || f[i].is_inner)
            continue;
        ret->field[ret->count] = &f[i];
        ret->old_place[ret->count++] = place;
    }
}

/* Marks a longest ascending sequence of old places. */
static void mark_in_order(const struct common *c, bool *in_order)
{
    size_t length[MEMBERS_MAX], from[MEMBERS_MAX], best = 0;

    for (size_t i = 0; i < c->count; i++) {
        length[i] = 1;
        from[i] = i;
        in_order[i] = false;
        for (size_t j = 0; j < i; j++) {
            if (c->old_place[j] < c->old_place[i] && length[j] + 1 > length[i]) {
                length[i] = length[j] + 1;
                from[i] = j;
            }
        }
        best = length[i] > length[best] ? i : best;
    }
    for (size_t i = best; c->count; i = from[i]) {
        in_order[i] = true;
        if (from[i] == i)
            break;
    }
}

static void close_moved(struct table *t, const struct common *c)
{
    bool in_order[MEMBERS_MAX];

    mark_in_order(c, in_order);
    for (size_t i = 0; i < c->count; i++) {
        struct row *row = find_row(t, c->field[i]);

        if (row && !in_order[i])
            row->closed = true;
    }
}

/* A member that was defined otherwise in between goes on with its old row only where it was: early
 * 5.2 is as early 5.1, but a later "Reserved" may be another. */
static void close_returned(struct table *t, const struct prcb_layout *l)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++) {
        struct row *row = find_row(t, &f[i]);
        int32_t before = row ? edge_offset(t, row, prcb_layout_arch(l), true) : ABSENT;

        if (row && row->superseded && before != ABSENT && before != (int32_t)f[i].offset)
            row->closed = true;
    }
}

static void mark_superseded(struct table *t, unsigned int version)
{
    for (struct row *row = t->head; row; row = row->next)
        row->superseded = row->after && !row->present[version];
}

static bool redesigned(const struct prcb_layout *old, const struct prcb_layout *new,
                       const struct common *c)
{
    size_t count_old, count_new;

    prcb_layout_members(old, &count_old);
    prcb_layout_members(new, &count_new);
    return !prcb_layout_is_partial(new) &&
           2 * c->count < (count_old < count_new ? count_old : count_new);
}

/* ---- cells ---- */

struct cell {
    char text[CELL_SIZE];
    size_t used;
};

static void cell_add(struct cell *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void cell_add(struct cell *c, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(c->text + c->used, CELL_SIZE - c->used, format, args);
    va_end(args);
    if (n > 0)
        c->used += (size_t)n < CELL_SIZE - c->used ? (size_t)n : CELL_SIZE - c->used - 1;
}

/* Which versions a span can begin and end with: those of one architecture, or of both. */
enum { BOTH = -1 };

static bool counts(unsigned int version, int arch)
{
    return arch == BOTH || layout_version_has(version, (enum prcb_arch)arch);
}

static bool same_group(unsigned int a, unsigned int b, bool by_minor)
{
    struct prcb_layout_version va = {.size = sizeof(va)}, vb = {.size = sizeof(vb)};

    if (prcb_layout_version_at(a, &va) || prcb_layout_version_at(b, &vb))
        return false;
    if (by_minor)
        return va.major == vb.major && va.minor == vb.minor;
    return !strcmp(va.key, vb.key);
}

/* No other version of the same key, or of the same major.minor, lies beyond in that direction. */
static bool is_edge(unsigned int version, int direction, bool by_minor, int arch)
{
    unsigned int next = version + (unsigned int)direction;

    while (next < layout_version_count() && !counts(next, arch))
        next += (unsigned int)direction;
    return next >= layout_version_count() || !same_group(version, next, by_minor);
}

/* The key's label if the span has all of its versions in that direction, else the build. */
static const char *edge_label(unsigned int version, int direction, int arch, char *buffer,
                              size_t size)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    if (is_edge(version, direction, false, arch))
        return layout_version_label(version, buffer, size);
    prcb_layout_version_at(version, &v);
    snprintf(buffer, size, "%s", v.name);
    return buffer;
}

/* "5.1": for the versions that have early and late forms. */
static const char *minor_label(unsigned int version, char *buffer, size_t size)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    prcb_layout_version_at(version, &v);
    if (v.major >= 10 || !strchr(v.key, '-'))
        return layout_version_label(version, buffer, size);
    snprintf(buffer, size, "%u.%u", (unsigned int)v.major, (unsigned int)v.minor);
    return buffer;
}

/* "6.1", "6.2 to 6.3", "early 6.0": from one version to another. */
static void cell_span(struct cell *c, unsigned int first, unsigned int last, int arch)
{
    char a[64], b[64];

    if (is_edge(first, -1, true, arch) && is_edge(last, 1, true, arch)) {
        minor_label(first, a, sizeof(a));
        minor_label(last, b, sizeof(b));
    } else {
        edge_label(first, -1, arch, a, sizeof(a));
        edge_label(last, 1, arch, b, sizeof(b));
    }
    if (strcmp(a, b))
        cell_add(c, "%s to %s", a, b);
    else
        cell_add(c, "%s", a);
}

static unsigned int last_known(const struct table *t)
{
    unsigned int v = t->versions - 1;

    while (v > 0 && !t->known[v])
        v--;
    return v;
}

/* "5.0 to 5.2", "6.2; 1507 and higher": the versions of a row, as long as the section lasts. */
static void versions_cell(const struct table *t, const struct row *row, struct cell *ret)
{
    unsigned int first = 0, last = 0;
    bool open = false;

    for (unsigned int v = 0; v <= t->versions; v++) {
        bool gap = v == t->versions || (t->known[v] && !row->present[v]);
        char label[64];

        if (v < t->versions && row->present[v]) {
            first = open ? first : v;
            last = v;
            open = true;
        }
        if (!gap || !open)
            continue;
        cell_add(ret, "%s", ret->used ? "; " : "");
        if (last == t->versions - 1)
            cell_add(ret, "%s and higher", edge_label(first, -1, BOTH, label, sizeof(label)));
        else
            cell_span(ret, first, last, BOTH);
        open = false;
    }
}

/* "0x10 (6.1); 0x18 (6.2); 0x10": the last stands for all versions that follow. */
static void offset_cell(const struct table *t, const struct row *row, enum prcb_arch arch,
                        struct cell *ret)
{
    int32_t run = ABSENT;
    unsigned int first = 0, last = 0;

    for (unsigned int v = 0; v < t->versions; v++) {
        int32_t offset = row->offset[v][arch];

        if (offset == ABSENT)
            continue;
        if (run != ABSENT && offset != run) {
            cell_add(ret, "0x%02X (", (unsigned int)run);
            cell_span(ret, first, last, arch);
            cell_add(ret, "); ");
        }
        if (offset != run)
            first = v;
        run = offset;
        last = v;
    }
    if (run != ABSENT)
        cell_add(ret, "0x%02X", (unsigned int)run);
}

/* "previously at 0x20": where the member was or will be under another row. */
static void neighbour_remark(const struct table *t, const struct row *row, const char *word,
                             bool newest, struct cell *ret)
{
    int32_t x86, x64;

    if (!row)
        return;
    x86 = edge_offset(t, row, PRCB_ARCH_X86, newest);
    x64 = edge_offset(t, row, PRCB_ARCH_X64, newest);
    cell_add(ret, "%s%s at ", ret->used ? "; " : "", word);
    if (x86 != ABSENT)
        cell_add(ret, "0x%02X", (unsigned int)x86);
    if (x86 != ABSENT && x64 != ABSENT && x64 != x86)
        cell_add(ret, " and ");
    if (x64 != ABSENT && x64 != x86)
        cell_add(ret, "0x%02X", (unsigned int)x64);
}

static void last_remark(const struct table *t, const struct row *row, struct cell *ret)
{
    unsigned int first = 0, last = 0;
    bool open = false;

    for (unsigned int v = 0; v <= t->versions; v++) {
        bool is_last = v < t->versions && row->last_in[v];

        if (is_last) {
            first = open ? first : v;
            last = v;
            open = true;
        } else if (open && (v == t->versions || t->known[v])) {
            cell_add(ret, "%slast member in ", ret->used ? "; " : "");
            cell_span(ret, first, last, BOTH);
            open = false;
        }
    }
}

/* "ULONG Spare1[2]", "VOID *IdleState", "USHORT Flags.PStateDomain : 1" */
static void definition_cell(const struct row *row, struct cell *ret)
{
    size_t length = strcspn(row->type, "[");

    cell_add(ret, "%.*s", (int)length, row->type);
    cell_add(ret, "%s%s%s", length && row->type[length - 1] == '*' ? "" : " ", row->name,
             row->type + length);
    if (row->bit_width)
        cell_add(ret, " : %u", (unsigned int)row->bit_width);
}

static void print_row(const struct table *t, const struct row *row)
{
    struct cell x86 = {0}, x64 = {0}, definition = {0}, versions = {0}, remarks = {0};

    offset_cell(t, row, PRCB_ARCH_X86, &x86);
    offset_cell(t, row, PRCB_ARCH_X64, &x64);
    definition_cell(row, &definition);
    versions_cell(t, row, &versions);
    if (row->bit_width)
        cell_add(&remarks, "from bit %u", (unsigned int)row->bit_first);
    neighbour_remark(t, row->before, "previously", true, &remarks);
    neighbour_remark(t, row->after, "next", false, &remarks);
    last_remark(t, row, &remarks);
    fprintf(t->out, "| %s | %s | `%s` | %s | %s |\n", x86.text, x64.text, definition.text,
            versions.text, remarks.text);
}

static void print_section(const struct table *t)
{
    unsigned int first = 0;
    struct cell span = {0};

    while (first < t->versions && !t->known[first])
        first++;
    if (first == t->versions)
        return;
    cell_span(&span, first, last_known(t), BOTH);
    fprintf(t->out, "%s, %s\n\n", t->structure, span.text);
    fputs("| Offset (x86) | Offset (x64) | Definition | Versions | Remarks |\n"
          "|---|---|---|---|---|\n",
          t->out);
    for (const struct row *row = t->head; row; row = row->next)
        print_row(t, row);
    fputc('\n', t->out);
}

/* ---- the table ---- */

static void next_section(struct table *t)
{
    print_section(t);
    t->count = 0;
    t->head = NULL;
    memset(t->known, 0, sizeof(t->known));
}

/* Both architectures of a version; of the order of members, x64 decides. */
static struct prcb_layout *add_version(struct table *t, unsigned int version,
                                       struct prcb_layout *previous)
{
    struct prcb_layout *x64 = layout_at(t->structure, version, PRCB_ARCH_X64);
    struct prcb_layout *x86 = layout_at(t->structure, version, PRCB_ARCH_X86);
    struct prcb_layout *main = x64 ? x64 : x86;
    struct common common;

    if (!main)
        return previous;
    if (previous) {
        find_common(previous, main, &common);
        if (redesigned(previous, main, &common))
            next_section(t);
        else
            close_moved(t, &common);
    }
    t->known[version] = true;
    if (x64)
        close_returned(t, x64);
    if (x86)
        close_returned(t, x86);
    if (x64)
        add_layout(t, x64, version);
    if (x86)
        add_layout(t, x86, version);
    mark_superseded(t, version);
    prcb_layout_close(previous);
    if (x64)
        prcb_layout_close(x86);
    return main;
}

int layout_table(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    struct table t = {.out = out, .versions = layout_version_count()};
    struct prcb_layout *newest, *previous = NULL;
    int code = layout_open(r, NULL, &newest, err);

    if (code)
        return code;
    t.structure = prcb_layout_name(newest);
    t.rows = calloc(ROWS_MAX, sizeof(*t.rows));
    if (!t.rows) {
        code = prcb_fail(err, -ENOMEM, "out of memory");
    } else if (t.versions > VERSIONS_MAX) {
        code = prcb_fail(err, -E2BIG, "%u versions are more than there is room for", t.versions);
    } else {
        for (unsigned int v = 0; v < t.versions; v++)
            previous = add_version(&t, v, previous);
        print_section(&t);
    }
    prcb_layout_close(previous);
    free(t.rows);
    prcb_layout_close(newest);
    return code;
}
