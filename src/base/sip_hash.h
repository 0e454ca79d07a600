/* SPDX-License-Identifier: BSD-2-Clause
 *
 * SipHash-2-4: a hash under a key. Without the key nobody can tell or choose the hash. No state.
 */
#ifndef PRCB_BASE_SIP_HASH_H
#define PRCB_BASE_SIP_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t sip_hash(const uint8_t key[16], const void *data, size_t length);

#endif
