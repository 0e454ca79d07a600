/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The hash table: finds what a 64-bit key stands for, a pointer or a number of the user's. A number
 * that identifies something is a key as it is; of bytes and texts table_hash makes one, and since
 * others may have the same, the user compares what table_next finds. Where slots lie depends on a
 * secret of the process: nobody can choose keys that collide. So do not print in the order of
 * slots.
 *
 * Items are the user's. All zero is an empty table. How many items there may be is the user's to
 * say, before adding. Threads may look at the same time, not change.
 */
#ifndef PRCB_BASE_TABLE_H
#define PRCB_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_slot {
    uint64_t key;
    union {
        size_t number; /* 0: the slot is free */
        void *item;
    };
};

struct table {
    struct table_slot *slots;
    size_t count, room; /* room: 0 or a power of two, a part of which is free */
};

/* It is made when the process starts; [1] is odd. */
extern uint64_t table_secret[2];

/* These return the SipHash-2-4 under the secret, of bytes and of a text. */
uint64_t table_hash(const void *bytes, size_t size);
uint64_t table_hash_text(const char *text);

/* Makes one key of two. Other pairs may have the same. */
static inline uint64_t table_mix(uint64_t a, uint64_t b)
{
    a = (a ^ table_secret[0]) * table_secret[1];
    return (a ^ a >> 32) * 0x9e3779b97f4a7c15u ^ b;
}

/* Adds an item, also where the key has one. 0 or -ENOMEM. */
int table_put(struct table *t, uint64_t key, void *item);
int table_put_number(struct table *t, uint64_t key, size_t number);

/* Frees a slot, into which another may move: a caller that goes through all slots looks at it
 * again, and may meet one item twice. */
void table_remove_slot(struct table *t, struct table_slot *slot);

/* Removes the item of a key. item: for a key that others may have; NULL: whatever it is. */
void table_remove(struct table *t, uint64_t key, const void *item);

/* These remove all items; clear keeps the memory, free does not. */
void table_clear(struct table *t);
void table_free(struct table *t);

/* Returns where the search for a key begins. */
static inline size_t table_home(const struct table *t, uint64_t key)
{
    key = (key ^ table_secret[0]) * table_secret[1];
    key = (key ^ key >> 32) * table_secret[1];
    return (size_t)(key >> 32) & (t->room - 1);
}

/* Returns the slot of this key behind `last`, the first one behind NULL; NULL: no more. */
static inline struct table_slot *table_next(const struct table *t, uint64_t key,
                                            const struct table_slot *last)
{
    size_t at;

    if (!t->count)
        return NULL;
    at = last ? (size_t)(last - t->slots) + 1 : table_home(t, key);
    for (at &= t->room - 1; t->slots[at].number; at = (at + 1) & (t->room - 1)) {
        if (t->slots[at].key == key)
            return &t->slots[at];
    }
    return NULL;
}

/* These return the item of a key that no other item has; NULL or 0: none. */
static inline void *table_find(const struct table *t, uint64_t key)
{
    const struct table_slot *slot = table_next(t, key, NULL);

    return slot ? slot->item : NULL;
}

static inline size_t table_find_number(const struct table *t, uint64_t key)
{
    const struct table_slot *slot = table_next(t, key, NULL);

    return slot ? slot->number : 0;
}

/* Numbers rows of bytes: equal rows have one number, from 1 on, in the order in which they came.
 * All zero: there is none yet. */
struct row_numbers {
    struct table table;
    size_t count;
};

/* Returns the number of a row, which is kept if it is new (*ret_new; NULL: nobody asks); 0: no
 * memory. */
size_t row_number(struct row_numbers *rows, const void *row, size_t size, bool *ret_new);
void row_numbers_free(struct row_numbers *rows);

#endif
