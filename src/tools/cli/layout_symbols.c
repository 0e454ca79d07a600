/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb layout --symbols`: the structures that a user's own symbol file has, compared with the
 * catalog's where that has the version, and saved for `prcb dump` and `prcb power --as`. Also finds
 * what was saved before.
 */
#include "layout_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump_files.h"
#include "error.h"
#include "text.h"

#define UNPACK_MOST (1ull << 30)

int layout_saved_find(void *ctx, const char *structure, const char *version, enum prcb_arch arch,
                      struct prcb_layout **ret, struct prcb_error *err)
{
    (void)ctx;
    return version ? dump_saved_layout(structure, version, arch, ret, err) : -ENOENT;
}

/* ---- one file ---- */

static int make(const struct dump_symbols *table, const char *structure, const char *version,
                enum prcb_arch arch, struct prcb_layout **ret, struct prcb_error *err)
{
    return prcb_layout_from_symbols(structure, version, arch, table->rows, table->count,
                                    sizeof(*table->rows), ret, err);
}

/* That of arm64 is read as x64's, which has the same sizes of scalars. */
static enum prcb_arch arch_of(const struct dump_symbols *table)
{
    return table->machine && !strcmp(table->machine, "x86") ? PRCB_ARCH_X86 : PRCB_ARCH_X64;
}

int layout_symbols_load(const char *path, struct layout_symbols *ret, struct prcb_error *err)
{
    struct dump_tables *t = &ret->tables;
    int code;

    t->keeps_documents = true;
    code = dump_symbols_load(path, UNPACK_MOST, t, err);
    if (!code && t->is_directory)
        code = prcb_fail(err, -EISDIR, "%s is a directory: name the file", path);
    ret->table = t->tables;
    return code;
}

void layout_symbols_free(struct layout_symbols *symbols)
{
    dump_symbols_free(&symbols->tables);
}

int layout_symbols_find(const struct layout_symbols *symbols, const char *structure,
                        const char *version, enum prcb_arch arch, struct prcb_layout **ret,
                        struct prcb_error *err)
{
    const struct dump_symbols *t = symbols->table;

    if (t->machine && !strcmp(t->machine, "arm64"))
        return prcb_fail(err, -EINVAL,
                         "%s: it is of arm64, whose structures are not printed; saved, dumps are "
                         "read with it",
                         t->path);
    return arch_of(t) == arch ? make(t, structure, version, arch, ret, err) : -ENOENT;
}

/* ---- the list ---- */

/* A structure as the file and, for a version that it has, the catalog have it. */
struct entry {
    struct prcb_layout *own, *catalog; /* NULL: not there */
    size_t members, differences;
};

static void entry_free(struct entry *e)
{
    prcb_layout_close(e->own);
    prcb_layout_close(e->catalog);
}

/* The catalog's layout of this very version. */
static struct prcb_layout *find_catalog(const char *structure, const char *version,
                                        enum prcb_arch arch)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    struct prcb_layout *l;
    char note[PRCB_LAYOUT_NOTE];

    if (!version || prcb_layout_version_parse(version, arch, &v, note, NULL) || *note ||
        prcb_layout_find(structure, version, arch, &l, NULL))
        return NULL;
    return l;
}

/* -ENOENT: the file does not have it. */
static int take_entry(const struct dump_symbols *t, const char *structure, const char *version,
                      struct entry *ret, struct prcb_error *err)
{
    struct entry e = {0};
    int code = make(t, structure, version, arch_of(t), &e.own, err);

    if (code)
        return code;
    prcb_layout_members(e.own, &e.members);
    if (!t->machine || strcmp(t->machine, "arm64"))
        e.catalog = find_catalog(structure, version, arch_of(t));
    if (e.catalog)
        e.differences = layout_tell_differences(e.catalog, e.own, NULL);
    *ret = e;
    return 0;
}

static void print_entry(FILE *out, const struct entry *e)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    fprintf(out, "%-31s 0x%X bytes, %zu members", prcb_layout_name(e->own),
            prcb_layout_size(e->own), e->members);
    if (!e->catalog) {
        putc('\n', out);
        return;
    }
    prcb_layout_version(e->catalog, &v);
    if (!e->differences) {
        fprintf(out, "; as in the catalog (%s)\n", v.name);
        return;
    }
    fprintf(out, "; the catalog (%s, %s, 0x%X bytes) has %zu %s otherwise:\n", v.name,
            prcb_layout_source(e->catalog), prcb_layout_size(e->catalog), e->differences,
            e->differences == 1 ? "thing" : "things");
    layout_tell_differences(e->catalog, e->own, out);
}

static void add_entry(struct json_doc *b, json_object *array, const struct entry *e)
{
    json_object *o = json_object_new_object(), *catalog = NULL;
    struct prcb_layout_version v = {.size = sizeof(v)};

    if (e->catalog) {
        catalog = json_object_new_object();
        prcb_layout_version(e->catalog, &v);
        json_doc_put_text(b, catalog, "version", v.name);
        json_doc_put_text(b, catalog, "source", prcb_layout_source(e->catalog));
        json_doc_put_number(b, catalog, "size", prcb_layout_size(e->catalog));
        json_doc_put_number(b, catalog, "differences", e->differences);
        json_doc_put(b, catalog, "changes", layout_differences_json(b, e->catalog, e->own));
    }
    json_doc_put_text(b, o, "struct", prcb_layout_name(e->own));
    json_doc_put_number(b, o, "size", prcb_layout_size(e->own));
    json_doc_put_number(b, o, "members", e->members);
    json_doc_put_if(b, o, "catalog", e->catalog != NULL, catalog);
    json_doc_append(b, array, o);
}

static void guid_text(const struct dump_symbols *t, char *ret, size_t size)
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

    *ret = '\0';
    for (int i = 0; t->has_guid && i < 16; i++)
        snprintf(ret + 2 * i, size - 2 * (size_t)i, "%02X", t->guid[order[i]]);
}

static void print_file(FILE *out, const struct layout_symbols *symbols, const char *guid)
{
    const struct dump_symbols *t = symbols->table;

    text_print(out, TEXT_ESCAPES, t->path);
    fprintf(out, ": %s", t->machine ? t->machine : "machine not said");
    if (*guid)
        fprintf(out, ", GUID %s, age %u", guid, t->age);
    putc('\n', out);
    if (symbols->tables.count > 1)
        fprintf(out, "it defines KPRCB %zu times; the longest is taken\n", symbols->tables.count);
}

static void put_file(struct json_doc *b, json_object *root, const struct layout_symbols *symbols,
                     const char *guid)
{
    const struct dump_symbols *t = symbols->table;

    json_doc_put_text(b, root, "file", t->path);
    json_doc_put_text(b, root, "machine", t->machine);
    json_doc_put_text(b, root, "guid", *guid ? guid : NULL);
    json_doc_put_member(b, root, "age", t->age, *guid);
    json_doc_put_number(b, root, "kprcb_definitions", symbols->tables.count);
}

/* It has what is worth saving, and PowerState in the KPRCB and the structure of its name are of one
 * size. */
static int check_power(const struct dump_symbols *t, struct prcb_error *err)
{
    uint32_t inside = 0, alone = 0;
    bool has_kprcb = false;

    for (size_t i = 0; i < t->count; i++) {
        const struct prcb_dump_symbol *row = &t->rows[i];

        has_kprcb |= !strcmp(row->structure, "KPRCB");
        if (!strcmp(row->structure, "KPRCB") && !strcmp(row->member, "PowerState"))
            inside = row->size;
        if (!strcmp(row->structure, "PROCESSOR_POWER_STATE") && !*row->member)
            alone = row->size;
    }
    if (!alone && !has_kprcb)
        return prcb_fail(err, -EINVAL, "%s: no _KPRCB or PROCESSOR_POWER_STATE: not a kernel's",
                         t->path);
    if (inside && alone && inside != alone)
        return prcb_fail(err, -EINVAL,
                         "%s: PowerState has 0x%x bytes in the KPRCB, and PROCESSOR_POWER_STATE "
                         "0x%x: not saved",
                         t->path, inside, alone);
    return 0;
}

static int each_entry(const struct layout_symbols *symbols, const struct layout_request *r,
                      FILE *out, struct json_doc *b, json_object *array, struct prcb_error *err)
{
    const char *name;

    for (unsigned int i = 0; (name = dump_symbols_wanted(i)); i++) {
        struct entry e;
        int code = take_entry(symbols->table, name, r->version, &e, err);

        if (code == -ENOENT)
            continue;
        if (code)
            return code;
        if (array)
            add_entry(b, array, &e);
        else
            print_entry(out, &e);
        entry_free(&e);
    }
    return 0;
}

int layout_symbols_list(const struct layout_symbols *symbols, const struct layout_request *r,
                        FILE *out, struct prcb_error *err)
{
    struct json_doc b = {0};
    json_object *root = r->json ? json_doc_new(&b, JSON_LAYOUT_SYMBOLS) : NULL;
    json_object *array = r->json ? json_object_new_array() : NULL;
    char guid[40], *path = NULL;
    int code = check_power(symbols->table, err);

    guid_text(symbols->table, guid, sizeof(guid));
    if (r->json)
        put_file(&b, root, symbols, guid);
    else if (!code)
        print_file(out, symbols, guid);
    if (!code)
        code = each_entry(symbols, r, out, &b, array, err);
    if (!code && r->version)
        code = dump_saved_write(symbols->table, r->version, &path, err);
    if (r->json)
        json_doc_put(&b, root, "structs", array);
    if (r->json && !code) {
        json_doc_put_text(&b, root, "saved", path);
        code = layout_write_json(&b, root, out, err);
    } else if (r->json) {
        json_object_put(root);
    } else if (!code && path) {
        fputs("saved as ", out);
        text_print(out, TEXT_ESCAPES, path);
        putc('\n', out);
    } else if (!code) {
        fputs("not saved: which kernel's they are is not said (--version 10.0.26200.1742)\n", out);
    }
    free(path);
    return code;
}
