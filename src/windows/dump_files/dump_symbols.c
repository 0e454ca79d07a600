/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dump --symbols: reads the structures that dumps need out of a symbol table in volatility3's
 * JSON form (ISF), or one that dump_pdb.c makes of a PDB, and flattens nested structures into
 * dotted paths.
 */
#include "array.h"
#include "dump_files.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define FILE_MOST   (1ull << 30)
#define JSON_MOST   (64u << 20) /* a kernel's has ten; read, it takes forty times its size */
#define DEPTH_MOST  5
#define ROWS_MOST   (1u << 18) /* of a kernel some 10,000 */
#define KPRCBS_MOST 4          /* definitions of it in one PDB */
#define TABLES_MOST 64         /* PDBs of a directory */
#define ARRAY_MOST  16         /* longer arrays of structures are left out */

struct loader {
    struct dump_symbols *symbols;
    struct json_object *user_types, *base_types, *enums;
    const char *structure;
    bool out_of_memory, too_many;
};

static struct json_object *get(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;

    if (json_object_is_type(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

static const char *get_text(struct json_object *object, const char *key)
{
    struct json_object *value = get(object, key);

    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static uint32_t get_number(struct json_object *object, const char *key)
{
    int64_t n = json_object_get_int64(get(object, key));

    return n < 0 || n > UINT32_MAX / 2 ? 0 : (uint32_t)n;
}

static const char *bare(const char *name)
{
    return name + (*name == '_');
}

static void add_row(struct loader *l, const struct prcb_dump_symbol *row, const char *path,
                    const char *type)
{
    struct dump_symbols *s = l->symbols;
    struct prcb_dump_symbol *rows;

    if (s->count >= ROWS_MOST) {
        l->too_many = true;
        return;
    }
    if (array_append(s->rows, s->count, *row)) {
        l->out_of_memory = true;
        return;
    }
    rows = &s->rows[s->count - 1];
    rows->structure = strdup(l->structure);
    rows->member = strdup(path);
    rows->type = strdup(type);
    if (!rows->structure || !rows->member || !rows->type)
        l->out_of_memory = true;
}

/* Returns the size of a type in bytes; 0 if the table does not say. */
static uint32_t type_size(struct loader *l, struct json_object *type, unsigned int depth)
{
    const char *kind = get_text(type, "kind"), *name = get_text(type, "name");

    if (depth > DEPTH_MOST)
        return 0;
    if (!strcmp(kind, "pointer") || !strcmp(kind, "function"))
        return get_number(get(l->base_types, "pointer"), "size");
    if (!strcmp(kind, "base"))
        return get_number(get(l->base_types, name), "size");
    if (!strcmp(kind, "enum"))
        return get_number(get(l->enums, name), "size");
    if (!strcmp(kind, "array")) {
        uint64_t size =
            (uint64_t)get_number(type, "count") * type_size(l, get(type, "subtype"), depth + 1);

        return size <= UINT32_MAX ? (uint32_t)size : 0;
    }
    if (!strcmp(kind, "bitfield"))
        return type_size(l, get(type, "type"), depth + 1);
    return get_number(get(l->user_types, name), "size");
}

static void add_fields(struct loader *l, const char *name, const char *prefix, uint64_t base,
                       unsigned int depth);

static bool is_structure(struct json_object *type)
{
    const char *kind = get_text(type, "kind");

    return !strcmp(kind, "struct") || !strcmp(kind, "union") || !strcmp(kind, "class");
}

static bool is_signed_base(struct loader *l, struct json_object *type)
{
    return json_object_get_boolean(get(get(l->base_types, get_text(type, "name")), "signed"));
}

/* Elements, as the catalog has them. */
static void add_array(struct loader *l, const char *path, struct json_object *type, uint64_t offset,
                      unsigned int depth)
{
    struct json_object *inner = get(type, "subtype");
    const char *kind = get_text(inner, "kind");
    uint32_t count = get_number(type, "count"), size = type_size(l, inner, 0);
    struct prcb_dump_symbol row = {.size = size,
                                   .is_pointer = !strcmp(kind, "pointer"),
                                   .is_signed = is_signed_base(l, inner)};
    char element[320];

    if (count > ARRAY_MOST || offset + (uint64_t)count * size > UINT32_MAX)
        return;
    for (uint32_t i = 0; is_structure(inner) && i < count; i++) {
        snprintf(element, sizeof(element), "%s[%u].", path, i);
        add_fields(l, get_text(inner, "name"), element, offset + (uint64_t)i * size, depth + 1);
    }
    for (uint32_t i = 0; !is_structure(inner) && strcmp(kind, "array") && size && i < count; i++) {
        snprintf(element, sizeof(element), "%s[%u]", path, i);
        row.offset = (uint32_t)(offset + (uint64_t)i * size);
        add_row(l, &row, element, row.is_pointer ? "pointer" : bare(get_text(inner, "name")));
    }
}

static void add_field(struct loader *l, const char *prefix, const char *name,
                      struct json_object *field, uint64_t base, unsigned int depth)
{
    struct json_object *type = get(field, "type");
    const char *kind = get_text(type, "kind");
    bool is_bits = !strcmp(kind, "bitfield");
    bool is_anonymous = json_object_get_boolean(get(field, "anonymous"));
    struct json_object *inner = is_bits ? get(type, "type") : type;
    uint64_t offset = base + get_number(field, "offset");
    char path[300];
    struct prcb_dump_symbol row = {
        .offset = offset <= UINT32_MAX ? (uint32_t)offset : 0,
        .size = type_size(l, type, 0),
        .bit_first = is_bits ? (uint8_t)get_number(type, "bit_position") : 0,
        .bit_width = is_bits ? (uint8_t)get_number(type, "bit_length") : 0,
        .is_pointer = !strcmp(kind, "pointer"),
        .is_signed = is_signed_base(l, inner),
    };

    if (snprintf(path, sizeof(path), "%s%s", prefix, name) >= (int)sizeof(path) - 16 ||
        offset > UINT32_MAX || !row.size)
        return;
    if (is_structure(type) && is_anonymous) {
        add_fields(l, get_text(type, "name"), prefix, offset, depth + 1);
        return;
    }
    while (!strcmp(get_text(inner, "kind"), "array") && get(inner, "subtype"))
        inner = get(inner, "subtype");
    add_row(l, &row, path, row.is_pointer ? "pointer" : bare(get_text(inner, "name")));
    if (is_structure(type)) {
        strcat(path, ".");
        add_fields(l, get_text(type, "name"), path, offset, depth + 1);
    } else if (!strcmp(kind, "array")) {
        add_array(l, path, type, offset, depth);
    }
}

static void add_fields(struct loader *l, const char *name, const char *prefix, uint64_t base,
                       unsigned int depth)
{
    struct json_object *fields = get(get(l->user_types, name), "fields");

    if (depth > DEPTH_MOST || !json_object_is_type(fields, json_type_object))
        return;
    json_object_object_foreach(fields, key, field)
    {
        add_field(l, prefix, key, field, base, depth);
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct prcb_dump_symbol *x = a, *y = b;
    int order = strcmp(x->structure, y->structure);

    if (order)
        return order;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return strcmp(x->member, y->member);
}

/* The structures that can be shown, and those that threads and DPCs are found by. */
const char *dump_symbols_wanted(unsigned int index)
{
    static const char *const others[] = {"ETHREAD", "EPROCESS", "KDPC"};
    unsigned int shown = 0;

    while (prcb_dump_structure_at(shown))
        shown++;
    if (index < shown)
        return prcb_dump_structure_at(index);
    return index - shown < sizeof(others) / sizeof(others[0]) ? others[index - shown] : NULL;
}

static int load_structures(struct json_object *root, const char *path, struct dump_symbols *ret,
                           struct prcb_error *err)
{
    struct loader l = {
        ret,  get(root, "user_types"), get(root, "base_types"), get(root, "enums"), NULL, false,
        false};
    const char *name;

    for (unsigned int i = 0; (name = dump_symbols_wanted(i)); i++) {
        char underscored[64];
        struct json_object *type;
        struct prcb_dump_symbol size = {0};

        snprintf(underscored, sizeof(underscored), "_%s", name);
        type = get(l.user_types, underscored);
        if (!type)
            type = get(l.user_types, name);
        if (!type)
            continue;
        l.structure = name;
        size.size = get_number(type, "size");
        add_row(&l, &size, "", "");
        add_fields(&l, get(l.user_types, underscored) ? underscored : name, "", 0, 0);
    }
    if (l.too_many)
        return prcb_fail(err, -E2BIG, "%s: structures of more than %u members: not a kernel's",
                         path, ROWS_MOST);
    if (l.out_of_memory)
        return prcb_fail(err, -ENOMEM, "%s: out of memory", path);
    if (!ret->count)
        return prcb_fail(err, -EINVAL,
                         "%s: no _KPRCB or PROCESSOR_POWER_STATE in its user_types: not a symbol "
                         "table (volatility3 ISF) of an NT kernel",
                         path);
    array_sort(ret->rows, ret->count, compare_rows);
    return 0;
}

static struct json_object *parse_json(const char *path, const uint8_t *bytes, size_t size,
                                      struct prcb_error *err)
{
    struct json_tokener *tokener;
    struct json_object *root;

    if (size > JSON_MOST) {
        prcb_fail(
            err, -E2BIG,
            "%s: no PDB, and larger than a kernel's symbols in JSON (%zu bytes; up to 64 MiB)",
            path, size);
        return NULL;
    }
    tokener = json_tokener_new();
    root = tokener ? json_tokener_parse_ex(tokener, (const char *)bytes, (int)size) : NULL;

    if (!root)
        prcb_fail(err, -EINVAL, "%s: neither a PDB nor JSON: %s", path,
                  tokener ? json_tokener_error_desc(json_tokener_get_error(tokener)) : "no memory");
    if (tokener)
        json_tokener_free(tokener);
    return root;
}

#define WANTED_MOST 32

/* Returns -ENOENT if the file has no nth KPRCB. */
static int parse(const char *path, int fd, unsigned int nth, struct json_object **ret,
                 struct prcb_error *err)
{
    const char *wanted[WANTED_MOST] = {NULL};
    struct stat st;
    uint8_t *bytes;
    int code = 0;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size || (uint64_t)st.st_size > FILE_MOST)
        return prcb_fail(err, -EINVAL, "%s: not a file of symbols (PDB or JSON, up to 1 GiB)",
                         path);
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return prcb_fail(err, -errno, "%s: cannot map the file: %s", path, strerror(errno));
    for (unsigned int i = 0; i < WANTED_MOST - 1 && dump_symbols_wanted(i); i++)
        wanted[i] = dump_symbols_wanted(i);
    if (dump_pdb_is(bytes, (size_t)st.st_size))
        code = dump_pdb_read(bytes, (size_t)st.st_size, path, wanted, nth, ret, err);
    else if (nth)
        code = -ENOENT;
    else
        *ret = parse_json(path, bytes, (size_t)st.st_size, err);
    munmap(bytes, (size_t)st.st_size);
    return code || *ret ? code : -EINVAL;
}

static void free_table(struct dump_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) {
        free((char *)symbols->rows[i].structure);
        free((char *)symbols->rows[i].member);
        free((char *)symbols->rows[i].type);
    }
    free(symbols->rows);
    free(symbols->path);
    json_object_put(symbols->document);
}

/* "3844DBB920174967BE7AA4A2C20430FA" into the bytes that an image has: three numbers, then eight
 * bytes. */
static bool take_guid(const char *text, uint8_t ret[16])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

    if (strlen(text) != 32 || strspn(text, "0123456789abcdefABCDEF") != 32)
        return false;
    for (int i = 0; i < 16; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};

        ret[order[i]] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

static void find_identity(struct json_object *root, struct dump_symbols *ret)
{
    struct json_object *pdb = get(get(get(root, "metadata"), "windows"), "pdb");
    uint32_t machine = get_number(pdb, "machine_type");
    uint32_t pointer = get_number(get(get(root, "base_types"), "pointer"), "size");

    ret->has_guid = take_guid(get_text(pdb, "GUID"), ret->guid);
    ret->age = get_number(pdb, "age");
    ret->machine = machine == 0x14c    ? "x86"
                   : machine == 0x8664 ? "x64"
                   : machine == 0xaa64 ? "arm64"
                   : pointer == 4      ? "x86"
                   : pointer == 8      ? "x64"
                                       : NULL;
}

/* Makes a table of the nth KPRCB. */
static int load_nth(const char *path, int fd, unsigned int nth, struct dump_tables *ret,
                    struct prcb_error *err)
{
    struct dump_symbols table = {0};
    struct json_object *root = NULL;
    int code = parse(path, fd, nth, &root, err);

    if (code)
        return code;
    table.path = strdup(path);
    code = load_structures(root, path, &table, err);
    find_identity(root, &table);
    table.document = ret->keeps_documents ? json_object_get(root) : NULL;
    json_object_put(root);
    if (!code && (!table.path || array_append(ret->tables, ret->count, table)))
        code = prcb_fail(err, -ENOMEM, "%s: out of memory", path);
    if (code)
        free_table(&table);
    return code;
}

/* Makes a table for each KPRCB in it: its debugger data tell which is the dump's. */
int dump_symbols_load_fd(int fd, const char *path, struct dump_tables *ret, struct prcb_error *err)
{
    int code = load_nth(path, fd, 0, ret, err);

    for (unsigned int nth = 1; !code && nth < KPRCBS_MOST; nth++)
        code = load_nth(path, fd, nth, ret, err);
    return code == -ENOENT ? 0 : code;
}

static int load_file(const char *path, uint64_t limit, struct dump_tables *ret,
                     struct prcb_error *err)
{
    int fd, code = dump_unpack(path, limit, &fd, err);

    if (code)
        return code;
    code = dump_symbols_load_fd(fd, path, ret, err);
    close(fd);
    return code;
}

/* Leaves out PDBs that have no KPRCB, which are other modules', and damaged ones, as long as one
 * PDB is left. */
static int load_directory(const char *path, uint64_t limit, struct dump_tables *ret,
                          struct prcb_error *err)
{
    static const char *const endings[] = {".pdb", ".pdb.xz", ".pdb.zst", ".pdb.gz", NULL};
    struct dump_files files = {0};
    int code = dump_files_below(&files, path, endings, err);

    ret->is_directory = true;
    for (size_t i = 0; !code && i < files.count && ret->count < TABLES_MOST; i++)
        load_file(files.paths[i], limit, ret, err);
    if (!code && !files.count)
        code = prcb_fail(err, -ENOENT, "%s: no *.pdb below it", path);
    else if (!code && !ret->count)
        code = prcb_fail(err, -EINVAL, "%s: no PDB below it is an NT kernel's; the last: %s", path,
                         strdupa(err->text));
    dump_files_free(&files);
    return code;
}

int dump_symbols_load(const char *path, uint64_t limit, struct dump_tables *ret,
                      struct prcb_error *err)
{
    struct stat st;

    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return load_directory(path, limit, ret, err);
    return load_file(path, limit, ret, err);
}

bool dump_symbols_same(const struct dump_symbols *a, const struct dump_symbols *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct prcb_dump_symbol *x = &a->rows[i], *y = &b->rows[i];

        if (strcmp(x->structure, y->structure) || strcmp(x->member, y->member) ||
            x->offset != y->offset || x->size != y->size || x->bit_first != y->bit_first ||
            x->bit_width != y->bit_width)
            return false;
    }
    return true;
}

void dump_symbols_free(struct dump_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        free_table(&tables->tables[i]);
    free(tables->tables);
    *tables = (struct dump_tables){0};
}
