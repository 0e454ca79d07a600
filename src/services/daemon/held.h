/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Maps whose session has ended and which somebody still holds: a client may keep its map open or
 * mapped as long as it likes, and the memory is not free before the client lets go. Until then
 * they count as if the session were open.
 */
#ifndef PRCB_DAEMON_HELD_H
#define PRCB_DAEMON_HELD_H

#include <stdint.h>
#include <sys/types.h>

struct kernel;

struct held_map {
    uint32_t id; /* the kernel's number, which is never used again */
    uid_t uid;
    uint32_t accounts;
    uint64_t bytes;
};

struct held {
    struct held_map *maps;
    uint32_t count, room;
};

void held_add(struct held *held, const struct held_map *map);

/* Drops the maps that are gone. */
void held_look(struct held *held, struct kernel *k);

#endif
