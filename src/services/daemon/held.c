/* SPDX-License-Identifier: BSD-2-Clause */
#include "held.h"

#include <stdbool.h>
#include <stdlib.h>

#include "array.h"
#include "kernel.h"
#include "log.h"

void held_add(struct held *held, const struct held_map *map)
{
    if (array_add(held->maps, held->count, held->room, *map))
        log_client("out of memory: a map that is still held is not counted");
}

static bool is_among(uint32_t id, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

void held_look(struct held *held, struct kernel *k)
{
    uint32_t *ids = NULL, left = 0;
    size_t count = 0;

    if (!held->count || kernel_client_maps(k, &ids, &count))
        return;
    for (uint32_t i = 0; i < held->count; i++) {
        if (is_among(held->maps[i].id, ids, count))
            held->maps[left++] = held->maps[i];
    }
    held->count = left;
    free(ids);
}
