/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From the words people use for a version of Windows to a row of catalog/versions.def.
 */
#include "layout.h"
#include "error.h"
#include "near.h"
#include "sized.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a text asks for in numbers. */
struct wanted {
    uint32_t number[4]; /* major, minor, build, revision */
    bool has_revision;
};

int prcb_arch_parse(const char *text, enum prcb_arch *ret, struct prcb_error *err)
{
    static const struct {
        const char *name;
        enum prcb_arch arch;
    } names[] = {
        {"x86", PRCB_ARCH_X86},   {"i386", PRCB_ARCH_X86},   {"ia32", PRCB_ARCH_X86},
        {"i686", PRCB_ARCH_X86},  {"32", PRCB_ARCH_X86},     {"x64", PRCB_ARCH_X64},
        {"amd64", PRCB_ARCH_X64}, {"x86_64", PRCB_ARCH_X64}, {"x86-64", PRCB_ARCH_X64},
        {"64", PRCB_ARCH_X64},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcasecmp(text, names[i].name)) {
            *ret = names[i].arch;
            return 0;
        }
    }
    return prcb_fail(err, -EINVAL, "\"%s\" is not a processor architecture: x86 or x64", text);
}

const char *prcb_arch_name(enum prcb_arch arch)
{
    return arch == PRCB_ARCH_X86 ? "x86" : "x64";
}

int prcb_layout_version_at(unsigned int id, struct prcb_layout_version *ret)
{
    const struct version_row *row;
    struct prcb_layout_version version = {.size = sizeof(version)};

    if (id >= V_COUNT)
        return -ENOENT;
    row = &catalog_versions[id];
    version = (struct prcb_layout_version){
        .id = id,
        .name = row->name,
        .key = row->key,
        .release = row->release,
        .major = row->major,
        .minor = row->minor,
        .build = row->build,
        .revision = row->revision,
        .x86 = row->archs & ARCH_X86,
        .x64 = row->archs & ARCH_X64,
    };
    return sized_hand_out(&version, sizeof(version), ret);
}

/* ---- words ---- */

#define WORDS_MAX  8
#define WORDS_SIZE 96

/* Holds a text in words. Case, the order of words and noise do not count: "late 5.1" is
 * "5.1-late". */
struct words {
    char text[WORDS_SIZE];
    const char *word[WORDS_MAX]; /* in text */
    size_t count;
};

static bool is_noise(const char *word)
{
    static const char *const noise[] = {"windows",    "win", "microsoft", "version",
                                        "enterprise", "iot", "pro",       "home"};

    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
        if (!strcasecmp(word, noise[i]))
            return true;
    return false;
}

/* "Win10" is "10", "WinXP" "XP". */
static const char *without_win(const char *word)
{
    return strncasecmp(word, "win", 3) || !word[3] || is_noise(word) ? word : word + 3;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '.';
}

/* Splits a text into its words; none if it has more than any name has. */
static void split(const char *text, struct words *ret)
{
    char *save = NULL;

    ret->count = 0;
    if (strlen(text) >= sizeof(ret->text))
        return;
    strcpy(ret->text, text);
    for (char *p = ret->text; *p; p++)
        *p = is_word(*p) ? *p : ' ';
    for (char *word = strtok_r(ret->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (is_noise(word))
            continue;
        if (ret->count == WORDS_MAX) {
            ret->count = 0;
            return;
        }
        ret->word[ret->count++] = without_win(word);
    }
}

/* Which of the words equals the first `length` bytes of text; count if none does. */
static size_t find_word(const struct words *w, const char *text, size_t length)
{
    size_t i = 0;

    while (i < w->count && (strncasecmp(w->word[i], text, length) || w->word[i][length]))
        i++;
    return i;
}

/* The words and a name of versions.def are the same, in any order. */
static bool same_words(const struct words *w, const char *name)
{
    unsigned int seen = 0;
    size_t count = 0;

    while (*name) {
        size_t length = 0, which;

        while (is_word(name[length]))
            length++;
        if (length) {
            which = find_word(w, name, length);
            if (which == w->count || seen & (1U << which))
                return false;
            seen |= 1U << which;
            count++;
        }
        name += length + (name[length] != '\0');
    }
    return count == w->count;
}

/* Finds the row of versions.def for a name; NULL if there is none. */
static const struct version_name *find_name(const struct words *w)
{
    for (const struct version_name *n = catalog_version_names; w->count && n->name; n++)
        if (same_words(w, n->name))
            return n;
    return NULL;
}

/* ---- numbers ---- */

size_t layout_parse_numbers(const char *text, uint32_t ret[4])
{
    size_t count = 0;
    const char *p = text;

    while (count < 4 && isdigit((unsigned char)*p)) {
        char *end;
        unsigned long long number = strtoull(p, &end, 10);

        if (number > UINT32_MAX || end - p > 10)
            return 0;
        ret[count++] = (uint32_t)number;
        if (!*end)
            return count;
        if (*end != '.')
            return 0;
        p = end + 1;
    }
    return 0;
}

/* Build numbers alone are taken from 10.0 on; before, the known ones only. */
static bool build_alone(uint32_t build, uint32_t *ret_major, uint32_t *ret_minor)
{
    *ret_major = 10;
    *ret_minor = 0;
    if (build > 9999)
        return true;
    for (unsigned int i = 0; i < V_COUNT; i++) {
        if (catalog_versions[i].build == build) {
            *ret_major = catalog_versions[i].major;
            *ret_minor = catalog_versions[i].minor;
            return true;
        }
    }
    return false;
}

/* Parses major.minor.build[.revision] or build[.revision]. */
static bool parse_build(const char *text, struct wanted *ret)
{
    uint32_t n[4] = {0};
    size_t count = layout_parse_numbers(text, n);
    struct wanted w = {0};

    if (count == 0)
        return false;
    if (count <= 2) {
        if (!build_alone(n[0], &w.number[0], &w.number[1]))
            return false;
        w.number[2] = n[0];
        w.number[3] = n[1];
        w.has_revision = count == 2;
    } else {
        memcpy(w.number, n, sizeof(n));
        w.has_revision = count == 4;
    }
    *ret = w;
    return true;
}

/* "Windows 10 1909" is "1909"; "Windows 10 23H2" is nothing, its last build is 19045. */
static const struct version_name *find_windows_10_name(struct words *w)
{
    size_t which = find_word(w, "10", 2);
    const struct version_name *name;
    struct wanted build;

    if (which == w->count)
        return NULL;
    w->word[which] = w->word[--w->count];
    name = find_name(w);
    if (!name || name->choice || !parse_build(name->version, &build) || build.number[0] != 10 ||
        build.number[2] > 19045)
        return NULL;
    return name;
}

static int compare_numbers(const struct version_row *row, const uint32_t number[4])
{
    const uint32_t have[4] = {row->major, row->minor, row->build, row->revision};

    for (int i = 0; i < 4; i++)
        if (have[i] != number[i])
            return have[i] < number[i] ? -1 : 1;
    return 0;
}

static bool same_build(const struct version_row *row, const uint32_t number[4])
{
    return row->major == number[0] && row->minor == number[1] && row->build == number[2];
}

/* Holds the neighbours of a number among the versions known for a processor; NULL where there is
 * none. */
struct neighbours {
    const struct version_row *before; /* or equal */
    const struct version_row *after;
};

static struct neighbours find_neighbours(const uint32_t number[4], unsigned int archs)
{
    struct neighbours n = {0};

    for (unsigned int i = 0; i < V_COUNT; i++) {
        const struct version_row *row = &catalog_versions[i];

        if (!(row->archs & archs))
            continue;
        if (compare_numbers(row, number) > 0) {
            n.after = row;
            return n;
        }
        n.before = row;
    }
    return n;
}

/* ---- choosing ---- */

/* Adds words to a note, behind "; " where there are some. */
static void note_add(char *note, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note_add(char *note, const char *format, ...)
{
    size_t used = strlen(note);
    va_list args;

    if (used && used + 2 < PRCB_LAYOUT_NOTE) {
        strcpy(note + used, "; ");
        used += 2;
    }
    va_start(args, format);
    vsnprintf(note + used, PRCB_LAYOUT_NOTE - used, format, args);
    va_end(args);
}

/* How a version was chosen. */
struct choice {
    bool assumed; /* a guess by its neighbours */
    char note[PRCB_LAYOUT_NOTE];
};

/* The builds that are another's kernel: 19045 is 19041. */
static void resolve_same(struct wanted *w, unsigned int archs, struct choice *c)
{
    for (const struct same_build *s = catalog_same_builds; s->build; s++) {
        if (w->number[0] == 10 && w->number[1] == 0 && w->number[2] == s->build) {
            c->assumed |= !(s->archs & archs);
            note_add(c->note, "build %u shares the kernel of %u%s", s->build, s->of,
                     s->archs & archs ? "" : ", which was not checked for this processor");
            w->number[2] = s->of;
            return;
        }
    }
}

/* Chooses for a revision between or beyond the known ones of its build. */
static const struct version_row *choose_revision(const char *text, const struct wanted *w,
                                                 struct neighbours n, struct choice *c)
{
    bool before = n.before && same_build(n.before, w->number);
    bool after = n.after && same_build(n.after, w->number);

    if (before && compare_numbers(n.before, w->number) == 0)
        return n.before;
    c->assumed = true;
    if (before && after)
        note_add(c->note, "%s lies between %s and %s, which are known: inferred from the first",
                 text, n.before->name, n.after->name);
    else if (before)
        note_add(c->note, "%s is past %s, the last revision known: inferred from that", text,
                 n.before->name);
    else
        note_add(c->note, "%s is before %s, the first revision known: inferred from that", text,
                 n.after->name);
    return before ? n.before : n.after;
}

/* A build that is not known. */
static const struct version_row *choose_build(const char *text, struct neighbours n,
                                              struct choice *c)
{
    c->assumed = true;
    if (n.after)
        note_add(c->note, "%s lies between %s and %s, which are known: inferred from the first",
                 text, n.before->name, n.after->name);
    else
        note_add(c->note, "%s is past %s, the last build known: inferred from that", text,
                 n.before->name);
    return n.before;
}

/* Servicing of this build is known, so that its number alone leaves something open. */
static bool has_revisions(const struct version_row *last, unsigned int archs)
{
    for (const struct version_row *row = catalog_versions; row < last; row++)
        if (row->major == last->major && row->build == last->build && row->archs & archs)
            return true;
    return false;
}

static const struct version_row *choose(const char *text, struct wanted w, enum prcb_arch arch,
                                        struct choice *c)
{
    struct neighbours n;

    resolve_same(&w, 1U << arch, c);
    if (!w.has_revision)
        w.number[3] = UINT32_MAX;
    n = find_neighbours(w.number, 1U << arch);
    if (w.has_revision && ((n.before && same_build(n.before, w.number)) ||
                           (n.after && same_build(n.after, w.number))))
        return choose_revision(text, &w, n, c);
    if (!n.before)
        return NULL;
    if (!same_build(n.before, w.number))
        return choose_build(text, n, c);
    if (has_revisions(n.before, 1U << arch))
        note_add(c->note, "%s is taken as %s, the last revision known", text, n.before->name);
    return n.before;
}

/* Finds "5.1.2600 SP2", "5.1.2600 RTM": a row whose name has a service pack. */
static const struct version_row *find_service_pack(const char *text)
{
    size_t length = strlen(text);

    for (unsigned int i = 0; strchr(text, ' ') && i < V_COUNT; i++) {
        const char *name = catalog_versions[i].name;

        if (!strncasecmp(name, text, length) && (!name[length] || name[length] == '.'))
            return &catalog_versions[i];
    }
    return NULL;
}

static int fail_choice(const char *text, const struct version_name *name, struct prcb_error *err)
{
    return prcb_fail(err, -EINVAL, "\"%s\" fits several layouts: say %s", text, name->version);
}

static int fail_unknown(const char *text, struct prcb_error *err)
{
    struct near near = {0};
    char names[128];

    for (const struct version_name *n = catalog_version_names; n->name; n++)
        near_offer(&near, text, n->name);
    if (near.count)
        return prcb_fail(err, -EINVAL, "\"%.64s\" is not a version of Windows%s", text,
                         near_text(&near, names, sizeof(names)));
    return prcb_fail(err, -EINVAL,
                     "\"%.64s\" is not a version of Windows: give a name (\"XP SP3\", \"1909\", "
                     "\"Windows 11 22H2\"), a version (6.1) or a build (10.0.19041.329)",
                     text);
}

static int fail_too_old(const char *text, enum prcb_arch arch, struct prcb_error *err)
{
    for (unsigned int i = 0; i < V_COUNT; i++)
        if (catalog_versions[i].archs & (1U << arch))
            return prcb_fail(err, -ENOENT, "%s: no %s version before %s (%s) is known", text,
                             prcb_arch_name(arch), catalog_versions[i].name,
                             catalog_versions[i].release);
    return prcb_fail(err, -ENOENT, "%s: not known", text);
}

#define LAST_32_BIT 19045 /* Windows 10 22H2 */

/* Windows 11 and the servers from 2008 R2 on were never released for x86. */
static bool was_released(const struct version_name *name, const char *target, enum prcb_arch arch)
{
    struct wanted w;

    if (arch != PRCB_ARCH_X86)
        return true;
    return !(name && name->is_64) &&
           !(parse_build(target, &w) && w.number[0] == 10 && w.number[2] > LAST_32_BIT);
}

/* The version a text stands for: through the table of names if it is one. */
static int resolve(const char *text, enum prcb_arch arch, const struct version_row **ret,
                   struct choice *c, struct prcb_error *err)
{
    const struct version_name *name;
    const struct version_row *row;
    const char *target = text;
    struct words words;
    struct wanted w;

    split(text, &words);
    name = find_name(&words);
    if (!name)
        name = find_windows_10_name(&words);
    if (name && name->choice)
        return fail_choice(text, name, err);
    if (name)
        target = name->version;
    if (!was_released(name, target, arch))
        return prcb_fail(err, -ENOENT, "%s: was released for 64-bit processors only, not for x86",
                         text);
    row = find_service_pack(target);
    if (!row) {
        if (!parse_build(target, &w))
            return fail_unknown(text, err);
        row = choose(text, w, arch, c);
    }
    if (!row || !(row->archs & (1U << arch)))
        return fail_too_old(text, arch, err);
    *ret = row;
    return 0;
}

int layout_version_resolve(const char *text, enum prcb_arch arch, unsigned int *ret,
                           bool *ret_assumed, char *note, struct prcb_error *err)
{
    const struct version_row *row = NULL;
    struct choice c = {0};
    int r = resolve(text, arch, &row, &c, err);

    if (r)
        return r;
    if (note)
        memcpy(note, c.note, sizeof(c.note));
    *ret = (unsigned int)(row - catalog_versions);
    *ret_assumed = c.assumed;
    return 0;
}

int prcb_layout_version_parse(const char *text, enum prcb_arch arch,
                              struct prcb_layout_version *ret, char *note, struct prcb_error *err)
{
    char words[PRCB_LAYOUT_NOTE];
    unsigned int id = 0;
    bool assumed;
    int r = layout_version_resolve(text, arch, &id, &assumed, words, err);

    if (!r)
        r = prcb_layout_version_at(id, ret);
    if (!r && note)
        memcpy(note, words, sizeof(words));
    return r;
}
