/* SPDX-License-Identifier: BSD-2-Clause */
#include "sip_hash.h"

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static uint64_t little_endian(const uint8_t *at, size_t count)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

uint64_t sip_hash(const uint8_t key[16], const void *data, size_t length)
{
    const uint8_t *at = data;
    uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8), word;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                     k1 ^ 0x7465646279746573};

    for (size_t left = length;; left -= 8, at += 8) {
        word = little_endian(at, left < 8 ? left : 8);
        if (left < 8)
            word |= (uint64_t)length << 56;
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
        if (left < 8)
            break;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
