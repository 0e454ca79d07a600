/* SPDX-License-Identifier: BSD-2-Clause
 *
 * PEBS and BTS records. Reading and writing walk the same description: one function names the
 * words of a record in their order, and a cursor moves each from or to the bytes.
 */
#include <prcb/pebs.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sized.h"

#define FIRST_ADAPTIVE  4
#define WITH_COUNTERS   6
#define LBR_SHIFT       24
#define SIZE_SHIFT      48
#define RETIRE_SHIFT    32
#define METRICS_PRESENT 3
#define GROUPS_BASIC    0x0fu /* of formats 4 and 5 */
#define GROUPS_COUNTERS 0x3fu
#define GROUP_BITS      0x00ffffffu /* what is above counts LBR entries */

/* Moves words between a record and bytes; past the room it only counts. */
struct cursor {
    uint8_t *bytes; /* read or written */
    size_t at, room;
    bool writing;
};

static void move_bytes(struct cursor *cursor, void *value, size_t count)
{
    if (cursor->at + count <= cursor->room && cursor->bytes) {
        if (cursor->writing)
            memcpy(cursor->bytes + cursor->at, value, count);
        else
            memcpy(value, cursor->bytes + cursor->at, count);
    }
    cursor->at += count;
}

static void move64(struct cursor *cursor, uint64_t *value)
{
    uint64_t word = htole64(*value);

    move_bytes(cursor, &word, sizeof(word));
    if (!cursor->writing)
        *value = le64toh(word);
}

static void move32(struct cursor *cursor, uint32_t *value)
{
    uint32_t word = htole32(*value);

    move_bytes(cursor, &word, sizeof(word));
    if (!cursor->writing)
        *value = le32toh(word);
}

/* ---- formats 0 to 3 -------------------------------------------------------------- */

static const struct {
    size_t bytes;
    uint32_t has;
} fixed_formats[FIRST_ADAPTIVE] = {
    {0x90, PRCB_PEBS_HAS_REGISTERS},
    {0xb0, PRCB_PEBS_HAS_REGISTERS | PRCB_PEBS_HAS_STATUS | PRCB_PEBS_HAS_MEMORY},
    {0xc0, PRCB_PEBS_HAS_REGISTERS | PRCB_PEBS_HAS_STATUS | PRCB_PEBS_HAS_MEMORY |
               PRCB_PEBS_HAS_EVENTING | PRCB_PEBS_HAS_TSX},
    {0xc8, PRCB_PEBS_HAS_REGISTERS | PRCB_PEBS_HAS_STATUS | PRCB_PEBS_HAS_MEMORY |
               PRCB_PEBS_HAS_EVENTING | PRCB_PEBS_HAS_TSX | PRCB_PEBS_HAS_TSC},
};

size_t prcb_pebs_record_size(uint32_t format)
{
    return format < FIRST_ADAPTIVE ? fixed_formats[format].bytes : 0;
}

static void move_fixed(struct cursor *cursor, struct prcb_pebs_record *record)
{
    move64(cursor, &record->flags);
    move64(cursor, &record->ip);
    for (size_t i = 0; i < PRCB_PEBS_REGISTERS; i++)
        move64(cursor, &record->registers[i]);
    if (record->format >= 1) {
        move64(cursor, &record->status);
        move64(cursor, &record->data_address);
        move64(cursor, &record->data_source);
        move64(cursor, &record->latency);
    }
    if (record->format >= 2) {
        move64(cursor, &record->eventing_ip);
        move64(cursor, &record->tsx);
    }
    if (record->format >= 3)
        move64(cursor, &record->tsc);
}

/* ---- formats 4 and up ------------------------------------------------------------ */

/* The group of registers has an order of its own. */
static void move_registers(struct cursor *cursor, struct prcb_pebs_record *record)
{
    static const uint8_t order[] = {PRCB_PEBS_AX, PRCB_PEBS_CX, PRCB_PEBS_DX, PRCB_PEBS_BX,
                                    PRCB_PEBS_SP, PRCB_PEBS_BP, PRCB_PEBS_SI, PRCB_PEBS_DI};

    move64(cursor, &record->flags);
    move64(cursor, &record->ip);
    for (size_t i = 0; i < sizeof(order); i++)
        move64(cursor, &record->registers[order[i]]);
    for (size_t i = PRCB_PEBS_R8; i < PRCB_PEBS_REGISTERS; i++)
        move64(cursor, &record->registers[i]);
}

static void move_values(struct cursor *cursor, uint32_t mask, uint64_t *values)
{
    for (size_t i = 0; i < PRCB_PEBS_COUNTERS_MAX; i++) {
        if (mask & 1u << i)
            move64(cursor, &values[i]);
    }
}

static void move_counters(struct cursor *cursor, struct prcb_pebs_record *record)
{
    move32(cursor, &record->counter_mask);
    move32(cursor, &record->fixed_mask);
    move32(cursor, &record->metrics_word);
    move32(cursor, &record->counters_reserved);
    move_values(cursor, record->counter_mask, record->counters);
    move_values(cursor, record->fixed_mask, record->fixed);
    if (record->metrics_word == METRICS_PRESENT) {
        move64(cursor, &record->metrics_base);
        move64(cursor, &record->metrics_data);
    }
}

static size_t branches(const struct prcb_pebs_record *record)
{
    return (record->groups >> LBR_SHIFT) + 1;
}

/* What follows the first word. */
static void move_groups(struct cursor *cursor, struct prcb_pebs_record *record)
{
    move64(cursor, &record->eventing_ip);
    move64(cursor, &record->status);
    move64(cursor, &record->tsc);
    if (record->groups & PRCB_PEBS_GROUP_MEMORY) {
        move64(cursor, &record->data_address);
        move64(cursor, &record->data_source);
        move64(cursor, &record->latency);
        move64(cursor, &record->tsx);
    }
    if (record->groups & PRCB_PEBS_GROUP_GPR)
        move_registers(cursor, record);
    if (record->groups & PRCB_PEBS_GROUP_XMM)
        move_bytes(cursor, record->xmm, sizeof(record->xmm));
    for (size_t i = 0; record->groups & PRCB_PEBS_GROUP_LBR && i < branches(record); i++) {
        move64(cursor, &record->lbr[i].from);
        move64(cursor, &record->lbr[i].to);
        move64(cursor, &record->lbr[i].info);
    }
    if (record->groups & (PRCB_PEBS_GROUP_COUNTERS | PRCB_PEBS_GROUP_METRICS))
        move_counters(cursor, record);
}

static uint32_t has_of(const struct prcb_pebs_record *record)
{
    static const struct {
        uint32_t group, has;
    } rows[] = {
        {PRCB_PEBS_GROUP_MEMORY, PRCB_PEBS_HAS_MEMORY | PRCB_PEBS_HAS_TSX},
        {PRCB_PEBS_GROUP_GPR, PRCB_PEBS_HAS_REGISTERS},
        {PRCB_PEBS_GROUP_XMM, PRCB_PEBS_HAS_XMM},
        {PRCB_PEBS_GROUP_LBR, PRCB_PEBS_HAS_LBR},
        {PRCB_PEBS_GROUP_COUNTERS | PRCB_PEBS_GROUP_METRICS, PRCB_PEBS_HAS_COUNTERS},
    };
    uint32_t has =
        PRCB_PEBS_HAS_EVENTING | PRCB_PEBS_HAS_STATUS | PRCB_PEBS_HAS_TSC | PRCB_PEBS_HAS_RETIRE;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (record->groups & rows[i].group)
            has |= rows[i].has;
    }
    if (has & PRCB_PEBS_HAS_COUNTERS && record->metrics_word == METRICS_PRESENT)
        has |= PRCB_PEBS_HAS_METRICS;
    return has;
}

static int check_groups(uint32_t format, uint32_t groups, struct prcb_error *err)
{
    uint32_t known = format < WITH_COUNTERS ? GROUPS_BASIC : GROUPS_COUNTERS;
    uint32_t strange = groups & GROUP_BITS & ~known;

    if (strange)
        return prcb_fail(err, -EINVAL, "a record of PEBS format %u has no groups 0x%x", format,
                         strange);
    return 0;
}

/* ---- calls ----------------------------------------------------------------------- */

static int too_short(size_t length, size_t needed, struct prcb_error *err)
{
    return prcb_fail(err, -ENODATA, "a record of %zu bytes is cut after %zu", needed, length);
}

static int decode_adaptive(struct cursor *cursor, struct prcb_pebs_record *record,
                           struct prcb_error *err)
{
    uint64_t first = 0;
    size_t told;
    int result;

    if (cursor->room < 0x20)
        return too_short(cursor->room, 0x20, err);
    move64(cursor, &first);
    record->groups = (uint32_t)first;
    record->retire_latency = (uint16_t)(first >> RETIRE_SHIFT);
    told = (size_t)(first >> SIZE_SHIFT);
    result = check_groups(record->format, record->groups, err);
    if (result)
        return result;
    if (told > cursor->room)
        return too_short(cursor->room, told, err);
    /* Nothing is read beyond the record, whatever the masks of the counters say. */
    cursor->room = told;
    move_groups(cursor, record);
    if (cursor->at != told)
        return prcb_fail(err, -EINVAL,
                         "a record says that it has %zu bytes, and its groups take %zu", told,
                         cursor->at);
    record->has = has_of(record);
    return 0;
}

static int check_format(uint32_t format, struct prcb_error *err)
{
    if (format >= PRCB_PEBS_FORMATS)
        return prcb_fail(err, -EINVAL, "unknown PEBS format %u: use 0 to %d", format,
                         PRCB_PEBS_FORMATS - 1);
    return 0;
}

/* Into a record that is all zero but for its format. */
static int decode(const void *bytes, size_t length, struct prcb_pebs_record *record,
                  struct prcb_error *err)
{
    struct cursor cursor = {.bytes = (uint8_t *)bytes, .room = length};
    int result = 0;

    if (record->format >= FIRST_ADAPTIVE) {
        result = decode_adaptive(&cursor, record, err);
    } else if (length < fixed_formats[record->format].bytes) {
        result = too_short(length, fixed_formats[record->format].bytes, err);
    } else {
        move_fixed(&cursor, record);
        record->has = fixed_formats[record->format].has;
    }
    record->length = (uint32_t)cursor.at;
    return result;
}

int prcb_pebs_decode(uint32_t format, const void *bytes, size_t length,
                     struct prcb_pebs_record *ret, struct prcb_error *err)
{
    struct prcb_pebs_record record = {.format = format};
    int result = check_format(format, err);

    if (!result)
        result = decode(bytes, length, &record, err);
    if (!result && sized_hand_out(&record, sizeof(record), ret))
        result = prcb_fail(err, -EINVAL, "prcb_pebs_record.size is not set");
    return result;
}

static void move_out(struct cursor *cursor, struct prcb_pebs_record *record, size_t length)
{
    uint64_t first = record->groups | (uint64_t)record->retire_latency << RETIRE_SHIFT |
                     (uint64_t)length << SIZE_SHIFT;

    if (record->format < FIRST_ADAPTIVE) {
        move_fixed(cursor, record);
    } else {
        move64(cursor, &first);
        move_groups(cursor, record);
    }
}

int prcb_pebs_encode(const struct prcb_pebs_record *record, void *bytes, size_t room,
                     size_t *ret_length, struct prcb_error *err)
{
    struct cursor count = {.writing = true};
    struct cursor cursor = {.bytes = bytes, .room = room, .writing = true};
    struct prcb_pebs_record copy;
    int result;

    if (record->size < sizeof(record->size))
        return prcb_fail(err, -EINVAL, "prcb_pebs_record.size is not set");
    sized_take_record(record, &copy, sizeof(copy));
    result = check_format(copy.format, err);
    if (!result && copy.format >= FIRST_ADAPTIVE)
        result = check_groups(copy.format, copy.groups, err);
    if (result)
        return result;
    move_out(&count, &copy, 0);
    *ret_length = count.at;
    if (count.at > room)
        return prcb_fail(err, -ENOSPC, "the record takes %zu bytes, and there are %zu", count.at,
                         room);
    move_out(&cursor, &copy, count.at);
    return 0;
}

int prcb_pebs_walk(uint32_t format, const void *bytes, size_t length, prcb_pebs_fn fn, void *ctx,
                   struct prcb_error *err)
{
    struct prcb_pebs_record *record = malloc(sizeof(*record));
    int result = record ? check_format(format, err) : prcb_fail(err, -ENOMEM, "out of memory");

    for (size_t at = 0; !result && at < length; at += record->length) {
        *record = (struct prcb_pebs_record){.size = sizeof(*record), .format = format};
        result = decode((const uint8_t *)bytes + at, length - at, record, err);
        if (result && err)
            err->offset = at;
        if (!result)
            result = fn(record, ctx);
    }
    free(record);
    return result;
}

/* ---- branch trace store ---------------------------------------------------------- */

static void move_branch(struct cursor *cursor, struct prcb_bts_record *record)
{
    move64(cursor, &record->from);
    move64(cursor, &record->to);
    move64(cursor, &record->flags);
}

void prcb_bts_decode(const void *bytes, struct prcb_bts_record *ret)
{
    struct cursor cursor = {.bytes = (uint8_t *)bytes, .room = PRCB_BTS_RECORD_SIZE};

    move_branch(&cursor, ret);
}

void prcb_bts_encode(const struct prcb_bts_record *record, void *bytes)
{
    struct cursor cursor = {.bytes = bytes, .room = PRCB_BTS_RECORD_SIZE, .writing = true};
    struct prcb_bts_record copy = *record;

    move_branch(&cursor, &copy);
}
