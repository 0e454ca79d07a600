/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Protocol buffers written a message at a time: for exports that are never whole in memory.
 */
#ifndef PRCB_RECORD_PACK_H
#define PRCB_RECORD_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

struct packer {
    uint8_t *bytes; /* the message that was packed last; owned */
    size_t room;
    bool failed; /* no memory: sticks */
};

/* Returns the bytes of a message, which last until the next call; NULL: no memory. */
const uint8_t *pack_message(struct packer *packer, const ProtobufCMessage *message, size_t *ret);

#define PACK_HEAD 16
/* Writes what stands before a field of so many bytes: tag and length. Returns its length. */
size_t pack_head(unsigned field, size_t length, uint8_t ret[PACK_HEAD]);

#endif
