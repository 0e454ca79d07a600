/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Decoding: structure, version and path from the first bytes, the rest is the buffer. Whatever it
 * holds, nothing outside it is touched, and what is decoded can be encoded back to the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include <prcb/layout.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "path\0": a lookup of anything, a decode of what it found. */
static void look_up(const struct prcb_layout *l, const char *path, const uint8_t *bytes,
                    size_t length)
{
    struct prcb_layout_field field;
    struct prcb_error err;
    uint64_t value;

    if (!prcb_layout_lookup(l, path, &field, &err))
        prcb_layout_decode(l, &field, field.count - 1, bytes, length, &value, &err);
    prcb_layout_get(l, bytes, length, path, &value, &err);
}

static void round_trip(const struct prcb_layout *l, const uint8_t *bytes, size_t length)
{
    size_t count;
    uint8_t *copy = malloc(length + 1);
    uint64_t *values;

    prcb_layout_leaves(l, &count);
    values = calloc(count + 1, sizeof(*values));
    if (copy && values && length)
        memcpy(copy, bytes, length);
    if (copy && values && !prcb_layout_decode_all(l, bytes, length, values, count, NULL)) {
        if (prcb_layout_encode_all(l, values, count, copy, length, NULL) ||
            memcmp(copy, bytes, length))
            abort();
    }
    free(values);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *structure;
    struct prcb_layout *l;
    char path[64];
    size_t length;

    if (size < 3 + sizeof(path))
        return 0;
    structure = prcb_layout_structure_at(data[0]);
    if (!structure || prcb_layout_find_id(structure, data[1],
                                          data[2] & 1 ? PRCB_ARCH_X64 : PRCB_ARCH_X86, &l, NULL))
        return 0;
    memcpy(path, data + 3, sizeof(path));
    path[sizeof(path) - 1] = '\0';
    data += 3 + sizeof(path);
    length = size - 3 - sizeof(path);
    look_up(l, path, data, length);
    round_trip(l, data, length);
    prcb_layout_close(l);
    return 0;
}
