/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "sip_hash.h"

#define ROOM_LEAST 16

uint64_t table_secret[2];

/* The kernel hands each program 16 random bytes when it starts: there is no call that can fail. */
__attribute__((constructor)) static void make_secret(void)
{
    const uint8_t *random = (const uint8_t *)getauxval(AT_RANDOM);

    if (!random)
        return;
    /* Only hashes of the bytes are used: other secrets are made from the bytes too, such as what
     * guards the stack. */
    table_secret[0] = sip_hash(random, "0", 1);
    table_secret[1] = sip_hash(random, "1", 1) | 1;
}

uint64_t table_hash(const void *bytes, size_t size)
{
    uint8_t key[16];

    memcpy(key, table_secret, sizeof(key));
    return sip_hash(key, bytes, size);
}

uint64_t table_hash_text(const char *text)
{
    return table_hash(text, strlen(text));
}

/* Puts it into the first free slot; there is one. */
static void place(struct table *t, struct table_slot slot)
{
    size_t at = table_home(t, slot.key);

    while (t->slots[at].number)
        at = (at + 1) & (t->room - 1);
    t->slots[at] = slot;
    t->count++;
}

static int grow(struct table *t)
{
    struct table larger = {.room = t->room ? 2 * t->room : ROOM_LEAST};

    larger.slots = larger.room ? calloc(larger.room, sizeof(*larger.slots)) : NULL;
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < t->room; i++) {
        if (t->slots[i].number)
            place(&larger, t->slots[i]);
    }
    free(t->slots);
    *t = larger;
    return 0;
}

static int put(struct table *t, struct table_slot slot)
{
    if (t->count >= t->room - t->room / 4 && grow(t))
        return -ENOMEM;
    place(t, slot);
    return 0;
}

int table_put(struct table *t, uint64_t key, void *item)
{
    return put(t, (struct table_slot){.key = key, .item = item});
}

int table_put_number(struct table *t, uint64_t key, size_t number)
{
    return put(t, (struct table_slot){.key = key, .number = number});
}

/* Slots behind it move up, unless that puts them before their home: so no search ends early. */
void table_remove_slot(struct table *t, struct table_slot *slot)
{
    size_t mask = t->room - 1, hole = (size_t)(slot - t->slots);

    for (size_t at = (hole + 1) & mask; t->slots[at].number; at = (at + 1) & mask) {
        if (((at - table_home(t, t->slots[at].key)) & mask) < ((at - hole) & mask))
            continue;
        t->slots[hole] = t->slots[at];
        hole = at;
    }
    t->slots[hole] = (struct table_slot){0};
    t->count--;
}

void table_remove(struct table *t, uint64_t key, const void *item)
{
    struct table_slot *slot = table_next(t, key, NULL);

    while (slot && item && slot->item != item)
        slot = table_next(t, key, slot);
    if (slot)
        table_remove_slot(t, slot);
}

void table_clear(struct table *t)
{
    if (t->room)
        memset(t->slots, 0, t->room * sizeof(*t->slots));
    t->count = 0;
}

void table_free(struct table *t)
{
    free(t->slots);
    *t = (struct table){0};
}

/* ---- rows ------------------------------------------------------------------------ */

struct numbered_row {
    size_t number, size;
    unsigned char bytes[];
};

size_t row_number(struct row_numbers *rows, const void *row, size_t size, bool *ret_new)
{
    uint64_t key = table_hash(row, size);
    const struct table_slot *slot = NULL;
    struct numbered_row *kept;

    if (ret_new)
        *ret_new = false;
    while ((slot = table_next(&rows->table, key, slot))) {
        kept = slot->item;
        if (kept->size == size && !memcmp(kept->bytes, row, size))
            return kept->number;
    }
    kept = malloc(sizeof(*kept) + size);
    if (!kept || table_put(&rows->table, key, kept)) {
        free(kept);
        return 0;
    }
    *kept = (struct numbered_row){.number = ++rows->count, .size = size};
    memcpy(kept->bytes, row, size);
    if (ret_new)
        *ret_new = true;
    return kept->number;
}

void row_numbers_free(struct row_numbers *rows)
{
    for (size_t i = 0; i < rows->table.room; i++)
        free(rows->table.slots[i].item);
    table_free(&rows->table);
    rows->count = 0;
}
