/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Bytes into values and back. Bounds are checked in locate and check_all, and nowhere else; load
 * and store are where the host's byte order and alignment are kept out.
 */
#include "layout.h"
#include "error.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t load(const uint8_t *p, uint32_t size)
{
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    switch (size) {
    case 1:
        return *p;
    case 2:
        memcpy(&u16, p, sizeof(u16));
        return le16toh(u16);
    case 4:
        memcpy(&u32, p, sizeof(u32));
        return le32toh(u32);
    default:
        memcpy(&u64, p, sizeof(u64));
        return le64toh(u64);
    }
}

static void store(uint8_t *p, uint32_t size, uint64_t value)
{
    uint64_t bytes = htole64(value); /* the lowest come first */

    switch (size) {
    case 1:
        *p = (uint8_t)value;
        break;
    case 2:
        memcpy(p, &bytes, 2);
        break;
    case 4:
        memcpy(p, &bytes, 4);
        break;
    default:
        memcpy(p, &bytes, 8);
    }
}

static uint32_t value_bits(const struct prcb_layout_field *f, uint32_t size)
{
    return f->bit_width ? f->bit_width : 8 * size;
}

static uint64_t mask(uint32_t bits)
{
    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t sign_extend(uint64_t value, uint32_t bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);

    return (value ^ sign) - sign;
}

/* Reads a scalar at p. size: of one element, 1, 2, 4 or 8. */
static uint64_t read_value(const struct prcb_layout_field *f, const uint8_t *p, uint32_t size)
{
    uint32_t bits = value_bits(f, size);
    uint64_t value = load(p, size) >> f->bit_first & mask(bits);

    return f->kind == PRCB_LAYOUT_SIGNED ? sign_extend(value, bits) : value;
}

/* Writes a scalar at p, the bits of its neighbours in the unit unchanged. */
static void write_value(const struct prcb_layout_field *f, uint8_t *p, uint32_t size,
                        uint64_t value)
{
    uint64_t bits = mask(value_bits(f, size)) << f->bit_first;
    uint64_t unit = load(p, size);

    store(p, size, (unit & ~bits) | (value << f->bit_first & bits));
}

static bool has_value(const struct prcb_layout_field *f)
{
    return f->kind == PRCB_LAYOUT_UNSIGNED || f->kind == PRCB_LAYOUT_SIGNED ||
           f->kind == PRCB_LAYOUT_POINTER || f->kind == PRCB_LAYOUT_ENUM;
}

static bool fits(const struct prcb_layout_field *f, uint32_t size, uint64_t value)
{
    uint32_t bits = value_bits(f, size);

    if (f->kind == PRCB_LAYOUT_SIGNED)
        return sign_extend(value & mask(bits), bits) == value;
    return (value & ~mask(bits)) == 0;
}

/* ---- checks ---- */

static int fail_short(const struct prcb_layout *l, const char *member, uint32_t offset,
                      uint32_t size, size_t length, struct prcb_error *err)
{
    prcb_fail(err, -ENODATA, "%s.%s at 0x%" PRIx32 " needs %" PRIu32 " bytes, the buffer has 0x%zx",
              l->type->name, member, offset, size, length);
    if (err)
        err->offset = offset;
    return -ENODATA;
}

static int fail_range(const struct prcb_layout *l, const struct prcb_layout_field *f, uint32_t size,
                      uint64_t value, struct prcb_error *err)
{
    prcb_fail(err, -ERANGE,
              "%s.%s at 0x%" PRIx32 ": 0x%" PRIx64 " does not fit into %" PRIu32 " bits",
              l->type->name, f->name, f->offset, value, value_bits(f, size));
    if (err)
        err->offset = f->offset;
    return -ERANGE;
}

/* The field has a value, the element exists and lies in the buffer: where, and how long. */
static int locate(const struct prcb_layout *l, const struct prcb_layout_field *f, uint32_t index,
                  size_t length, uint32_t *ret_offset, uint32_t *ret_size, struct prcb_error *err)
{
    uint32_t size, offset;

    if (!has_value(f))
        return prcb_fail(err, -EINVAL, "%s.%s is a %s and has no single value", l->type->name,
                         f->name, f->type);
    if (index >= f->count)
        return prcb_fail(err, -ERANGE, "%s.%s has %" PRIu32 " elements, not %" PRIu32,
                         l->type->name, f->name, f->count, index + 1);
    size = f->size / f->count;
    offset = f->offset + index * size;
    if ((size != 1 && size != 2 && size != 4 && size != 8) ||
        f->bit_first + f->bit_width > 8 * size)
        return prcb_fail(err, -EINVAL, "%s.%s: not a field of this library", l->type->name,
                         f->name);
    if (offset > length || size > length - offset)
        return fail_short(l, f->name, offset, size, length, err);
    *ret_offset = offset;
    *ret_size = size;
    return 0;
}

/* ---- one value ---- */

int prcb_layout_decode(const struct prcb_layout *layout, const struct prcb_layout_field *field,
                       uint32_t index, const void *bytes, size_t length, uint64_t *ret,
                       struct prcb_error *err)
{
    uint32_t offset = 0, size = 0;
    int r = locate(layout, field, index, length, &offset, &size, err);

    if (r)
        return r;
    *ret = read_value(field, (const uint8_t *)bytes + offset, size);
    return 0;
}

int prcb_layout_encode(const struct prcb_layout *layout, const struct prcb_layout_field *field,
                       uint32_t index, uint64_t value, void *bytes, size_t length,
                       struct prcb_error *err)
{
    uint32_t offset = 0, size = 0;
    int r = locate(layout, field, index, length, &offset, &size, err);

    if (r)
        return r;
    if (!fits(field, size, value))
        return fail_range(layout, field, size, value, err);
    write_value(field, (uint8_t *)bytes + offset, size, value);
    return 0;
}

int prcb_layout_get(const struct prcb_layout *layout, const void *bytes, size_t length,
                    const char *path, uint64_t *ret, struct prcb_error *err)
{
    struct prcb_layout_field field;
    int r = prcb_layout_lookup(layout, path, &field, err);

    if (r)
        return r;
    field.name = path; /* errors name the whole path */
    return prcb_layout_decode(layout, &field, 0, bytes, length, ret, err);
}

int prcb_layout_put(const struct prcb_layout *layout, void *bytes, size_t length, const char *path,
                    uint64_t value, struct prcb_error *err)
{
    struct prcb_layout_field field;
    int r = prcb_layout_lookup(layout, path, &field, err);

    if (r)
        return r;
    field.name = path;
    return prcb_layout_encode(layout, &field, 0, value, bytes, length, err);
}

/* ---- all values ---- */

static int check_all(const struct prcb_layout *l, size_t length, size_t count,
                     struct prcb_error *err)
{
    uint32_t needed = prcb_layout_is_partial(l) ? l->leaf_end : l->size->size;

    if (count != l->leaf_count)
        return prcb_fail(err, -EINVAL, "%s has %zu values, not %zu", l->type->name, l->leaf_count,
                         count);
    if (needed <= length)
        return 0;
    for (size_t i = 0; i < l->leaf_count; i++) {
        const struct prcb_layout_field *f = &l->leaves[i];

        if (f->offset > length || f->size > length - f->offset)
            return fail_short(l, f->name, f->offset, f->size, length, err);
    }
    return prcb_fail(err, -ENODATA, "%s at 0x0 needs 0x%" PRIx32 " bytes, the buffer has 0x%zx",
                     l->type->name, needed, length);
}

int prcb_layout_decode_all(const struct prcb_layout *layout, const void *bytes, size_t length,
                           uint64_t *values, size_t count, struct prcb_error *err)
{
    int r = check_all(layout, length, count, err);

    if (r)
        return r;
    for (size_t i = 0; i < count; i++) {
        const struct prcb_layout_field *f = &layout->leaves[i];

        values[i] = has_value(f) ? read_value(f, (const uint8_t *)bytes + f->offset, f->size) : 0;
    }
    return 0;
}

int prcb_layout_encode_all(const struct prcb_layout *layout, const uint64_t *values, size_t count,
                           void *bytes, size_t length, struct prcb_error *err)
{
    int r = check_all(layout, length, count, err);

    if (r)
        return r;
    for (size_t i = 0; i < count; i++)
        if (has_value(&layout->leaves[i]) &&
            !fits(&layout->leaves[i], layout->leaves[i].size, values[i]))
            return fail_range(layout, &layout->leaves[i], layout->leaves[i].size, values[i], err);
    for (size_t i = 0; i < count; i++) {
        const struct prcb_layout_field *f = &layout->leaves[i];

        if (has_value(f))
            write_value(f, (uint8_t *)bytes + f->offset, f->size, values[i]);
    }
    return 0;
}
