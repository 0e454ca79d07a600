/* SPDX-License-Identifier: BSD-2-Clause */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "text.h"

const uint8_t *pack_message(struct packer *packer, const ProtobufCMessage *message, size_t *ret)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    if (array_reserve(packer->bytes, (size_t)0, packer->room,
                      size + 1)) { /* also of an empty one */
        packer->failed = true;
        return NULL;
    }
    *ret = protobuf_c_message_pack(message, packer->bytes);
    return packer->bytes;
}

size_t pack_head(unsigned field, size_t length, uint8_t ret[PACK_HEAD])
{
    size_t used = 0;

    ret[used++] = (uint8_t)(field << 3 | 2);
    for (; length >= 0x80; length >>= 7)
        ret[used++] = (uint8_t)(length | 0x80);
    ret[used++] = (uint8_t)length;
    return used;
}
