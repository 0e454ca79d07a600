/* SPDX-License-Identifier: BSD-2-Clause
 *
 * PDBs. With an odd first byte the rest is a whole file; with an even one it is a type stream,
 * around which a right container is put, so that the fuzzer gets to the types. A file may as well
 * be JSON. What is read is made into layouts, and these are printed.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/layout.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump_files.h"

#define BLOCK 4096u
#define MOST  (64u * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set32(uint8_t *bytes, size_t value)
{
    for (unsigned int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

/* The same file as prcb layout --symbols takes it, which may as well be JSON. */
static void make_layouts(const uint8_t *bytes, size_t size)
{
    struct dump_tables tables = {.keeps_documents = true};
    int fd = memfd_create("symbols", MFD_CLOEXEC);
    const char *name;

    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    dump_symbols_load_fd(fd, "input", &tables, NULL);
    for (unsigned int i = 0; tables.count && (name = dump_symbols_wanted(i)); i++) {
        const struct dump_symbols *t = tables.tables;
        struct prcb_layout *l;
        FILE *out;

        if (prcb_layout_from_symbols(name, i & 1 ? "10.0.26200.1742" : NULL, i % 3 % 2, t->rows,
                                     t->count, sizeof(*t->rows), &l, NULL))
            continue;
        out = fopen("/dev/null", "w");
        prcb_layout_print(l, out);
        prcb_layout_print_header(l, out);
        fclose(out);
        prcb_layout_close(l);
    }
    dump_symbols_free(&tables);
    close(fd);
}

static void read_pdb(const uint8_t *bytes, size_t size)
{
    static const char *const wanted[] = {"KPRCB", "KTHREAD", NULL};
    struct json_object *root = NULL;
    struct prcb_error err;

    if (!dump_pdb_read(bytes, size, "input", wanted, 0, &root, &err) && !root)
        abort();
    json_object_put(root);
    root = NULL;
    if (!dump_pdb_read(bytes, size, "input", wanted, 1, &root, &err) && !root)
        abort();
    json_object_put(root);
    make_layouts(bytes, size);
}

/* Block 0 the header, 1 the map of the directory, 2 the directory, 3 and on the types. */
static void wrap(const uint8_t *types, size_t size)
{
    size_t blocks = (size + BLOCK - 1) / BLOCK;
    uint8_t *bytes = calloc(3 + blocks, BLOCK);

    if (!bytes)
        return;
    memcpy(bytes, "Microsoft C/C++ MSF 7.00\r\n\032DS\0\0\0", 32);
    set32(bytes + 0x20, BLOCK);
    set32(bytes + 0x28, 3 + blocks);
    set32(bytes + 0x2c, 16 + 4 * blocks);
    set32(bytes + 0x34, 1);
    set32(bytes + BLOCK, 2);
    set32(bytes + 2 * BLOCK, 3);
    set32(bytes + 2 * BLOCK + 12, size);
    for (size_t i = 0; i < blocks; i++)
        set32(bytes + 2 * BLOCK + 16 + 4 * i, 3 + i);
    memcpy(bytes + 3 * BLOCK, types, size);
    read_pdb(bytes, (3 + blocks) * BLOCK);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MOST)
        return 0;
    if (data[0] & 1)
        read_pdb(data + 1, size - 1);
    else
        wrap(data + 1, size - 1);
    return 0;
}
