/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "sampler.h"

int pool_take(struct pool *pool, uint64_t bytes, uint64_t align, bool is_buffer, uint64_t *ret)
{
    uint64_t at = 0;
    size_t i;

    if (bytes > pool->bytes)
        return -ENOSPC;
    if (array_reserve(pool->extents, pool->count, pool->room, 1))
        return -ENOMEM;
    for (i = 0; i < pool->count; i++) {
        if (at + bytes <= pool->extents[i].offset)
            break;
        at = pool->extents[i].offset + pool->extents[i].bytes;
        at = (at + align - 1) & ~(align - 1);
    }
    if (at + bytes > pool->bytes)
        return -ENOSPC;
    memmove(&pool->extents[i + 1], &pool->extents[i], (pool->count - i) * sizeof(pool->extents[0]));
    pool->extents[i] = (struct extent){.offset = at, .bytes = bytes, .is_buffer = is_buffer};
    pool->count++;
    *ret = at;
    return 0;
}

struct extent *pool_holding(struct pool *pool, uint64_t offset, uint64_t bytes)
{
    for (size_t i = 0; i < pool->count; i++) {
        struct extent *extent = &pool->extents[i];

        if (offset >= extent->offset && offset - extent->offset < extent->bytes &&
            bytes <= extent->bytes - (offset - extent->offset))
            return extent;
    }
    return NULL;
}

struct extent *pool_at(struct pool *pool, uint64_t offset)
{
    struct extent *extent = pool_holding(pool, offset, 1);

    return extent && extent->offset == offset ? extent : NULL;
}

void pool_give(struct pool *pool, struct extent *extent)
{
    size_t i = (size_t)(extent - pool->extents);

    pool->count--;
    memmove(extent, extent + 1, (pool->count - i) * sizeof(*extent));
}
