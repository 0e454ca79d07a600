/* SPDX-License-Identifier: BSD-2-Clause */
#include "alike.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"

#define SETS 512 /* by place of the stack, */
#define WAYS 4   /* to which so many ways may lead */

struct row {
    struct alike_key key;
    struct frozen_registers at;
    const void *kept; /* NULL: there is none */
    uint32_t count;
    bool used_fp;
    struct stack_word words[STACK_WORDS];
};

struct alike {
    struct row *rows[SETS][WAYS];
    uint8_t next[SETS]; /* which one goes first */
};

/* Processes that were forked share their identity, and where their stacks are. */
static size_t set_of(struct alike_key key, const struct frozen_registers *at)
{
    uint64_t hash = table_mix(table_mix(key.identity ^ key.reading, at->pc), at->sp);

    return (table_mix(hash, 0) >> 32) % SETS;
}

static bool has_registers(const struct row *row, const struct frozen_registers *at)
{
    return row->at.pc == at->pc && row->at.sp == at->sp && row->at.lr == at->lr &&
           (row->at.fp == at->fp || !row->used_fp);
}

static bool has_words(const struct row *row, const struct frozen *frozen)
{
    for (uint32_t i = 0; i < row->count; i++) {
        uint64_t at = row->words[i].address - frozen->low;

        if (row->words[i].address < frozen->low || at >= frozen->length ||
            frozen->length - at < sizeof(row->words[i].value) ||
            memcmp(frozen->bytes + at, &row->words[i].value, sizeof(row->words[i].value)) != 0)
            return false;
    }
    return true;
}

const void *alike_find(const struct alike *alike, struct alike_key key, const struct frozen *frozen)
{
    struct row *const *set = alike ? alike->rows[set_of(key, &frozen->at)] : NULL;

    for (size_t i = 0; set && i < WAYS && set[i]; i++) {
        if (set[i]->key.identity == key.identity && set[i]->key.reading == key.reading &&
            has_registers(set[i], &frozen->at) && has_words(set[i], frozen))
            return set[i]->kept;
    }
    return NULL;
}

void alike_keep(struct alike **alike, struct alike_key key, const struct frozen *frozen,
                const struct alike_words *by, const void *kept)
{
    struct row **row;
    size_t set;

    if (!*alike)
        *alike = calloc(1, sizeof(**alike));
    if (!*alike || by->count > STACK_WORDS)
        return;
    set = set_of(key, &frozen->at);
    row = &(*alike)->rows[set][(*alike)->next[set]++ % WAYS];
    if (!*row)
        *row = malloc(sizeof(**row));
    if (!*row)
        return;
    (*row)->key = key;
    (*row)->at = frozen->at;
    (*row)->kept = kept;
    (*row)->count = (uint32_t)by->count;
    (*row)->used_fp = by->used_fp;
    memcpy((*row)->words, by->words, by->count * sizeof(*by->words));
}

void alike_free(struct alike *alike)
{
    for (size_t i = 0; alike && i < SETS * WAYS; i++)
        free(alike->rows[i / WAYS][i % WAYS]);
    free(alike);
}
