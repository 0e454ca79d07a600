/* SPDX-License-Identifier: BSD-2-Clause */
#include "layout_show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "read_file.h"

/* ---- versions ---- */

unsigned int layout_version_count(void)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    unsigned int n = 0;

    while (!prcb_layout_version_at(n, &v))
        n++;
    return n;
}

bool layout_version_has(unsigned int version, enum prcb_arch arch)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    if (prcb_layout_version_at(version, &v))
        return false;
    return arch == PRCB_ARCH_X86 ? v.x86 : v.x64;
}

struct prcb_layout *layout_at(const char *structure, unsigned int version, enum prcb_arch arch)
{
    struct prcb_layout *l;

    if (!layout_version_has(version, arch) ||
        prcb_layout_find_id(structure, version, arch, &l, NULL))
        return NULL;
    return l;
}

static const char *without_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(text, prefix, length) ? text : text + length;
}

const char *layout_version_label(unsigned int version, char *buffer, size_t size)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    const char *dash;

    prcb_layout_version_at(version, &v);
    dash = strchr(v.key, '-');
    if (!strncmp(v.key, "10.0", 4))
        snprintf(buffer, size, "%s", without_prefix(without_prefix(v.release, "Windows "), "10 "));
    else if (!dash)
        snprintf(buffer, size, "%s", v.key);
    else if (!strcmp(dash, "-verylate"))
        snprintf(buffer, size, "very late %.*s", (int)(dash - v.key), v.key);
    else
        snprintf(buffer, size, "%s %.*s", dash + 1, (int)(dash - v.key), v.key);
    return buffer;
}

/* ---- opening ---- */

/* The newest version the structure is known in, for an architecture or any. */
static struct prcb_layout *find_newest(const struct layout_request *r)
{
    for (unsigned int v = layout_version_count(); v-- > 0;) {
        struct prcb_layout *l = NULL;

        if (!r->arch_given || r->arch == PRCB_ARCH_X64)
            l = layout_at(r->structure, v, PRCB_ARCH_X64);
        if (!l && (!r->arch_given || r->arch == PRCB_ARCH_X86))
            l = layout_at(r->structure, v, PRCB_ARCH_X86);
        if (l)
            return l;
    }
    return NULL;
}

/* Chooses the architecture for the version asked for: x64, or x86 if there is no x64. */
static int find_version(const struct layout_request *r, const char *version,
                        struct prcb_layout **ret, struct prcb_error *err)
{
    int result = -ENOENT;

    if (r->find)
        result = r->find(r->ctx, r->structure, version, r->arch, ret, err);
    if (r->find && result == -ENOENT && !r->arch_given)
        result = r->find(r->ctx, r->structure, version, PRCB_ARCH_X86, ret, err);
    if (result != -ENOENT || !version)
        return result;
    result = prcb_layout_find(r->structure, version, r->arch, ret, err);
    if (result == -ENOENT && !r->arch_given &&
        !prcb_layout_find(r->structure, version, PRCB_ARCH_X86, ret, NULL))
        return 0;
    return result;
}

int layout_open(const struct layout_request *r, const char *version, struct prcb_layout **ret,
                struct prcb_error *err)
{
    struct prcb_layout_version newest = {.size = sizeof(newest)};
    struct prcb_layout *l = NULL;
    int code;

    if (!version && r->find) {
        code = find_version(r, NULL, ret, err);
        if (code != -ENOENT)
            return code;
    }
    if (!version)
        l = find_newest(r);
    if (!version && !l) { /* no version has it: the words of the newest will do */
        prcb_layout_version_at(layout_version_count() - 1, &newest);
        version = newest.name;
    }
    code = l ? 0 : find_version(r, version, &l, err);
    if (code)
        return code;
    if (*prcb_layout_note(l))
        r->note(r->ctx, prcb_layout_note(l));
    *ret = l;
    return 0;
}

/* ---- files ---- */

/* Skips `offset` bytes of a stream that may be a pipe; past its end there is nothing to read. */
static void skip(FILE *in, uint64_t offset)
{
    char buffer[4096];
    size_t n = 1;

    if (offset <= INT64_MAX && !fseeko(in, (off_t)offset, SEEK_SET))
        return;
    for (; offset > 0 && n > 0; offset -= n)
        n = fread(buffer, 1, offset < sizeof(buffer) ? (size_t)offset : sizeof(buffer), in);
}

int layout_read_file(const char *file, uint64_t offset, size_t limit, uint8_t **ret,
                     size_t *ret_length, struct prcb_error *err)
{
    FILE *in = strcmp(file, "-") ? fopen(file, "rb") : stdin;
    int result;

    if (!in)
        return prcb_fail(err, -errno, "%s: %s", file, strerror(errno));
    skip(in, offset);
    result = read_stream(in, limit, (char **)ret, ret_length);
    if (in != stdin)
        fclose(in);
    return result ? prcb_fail(err, result, "%s: %s", file, strerror(-result)) : 0;
}

int layout_write_json(struct json_doc *b, json_object *document, FILE *out, struct prcb_error *err)
{
    int code = json_doc_write(b, document, out);

    return code ? prcb_fail(err, code, "out of memory") : 0;
}
