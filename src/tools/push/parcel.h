/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What `prcb push` and prcb-push, which sends, say to each other. Both come from one build.
 * Standard input: parcels, each a head and its body. Standard output: a text of PARCEL_GAP each
 * time that one was given up. Errors are said by either.
 */
#ifndef PRCB_PUSH_PARCEL_H
#define PRCB_PUSH_PARCEL_H

#include <stdint.h>

#define PARCEL_MAGIC 0x70726362u
#define PARCEL_MOST  (64u << 20)

struct parcel_head {
    uint32_t magic, size;       /* of the body */
    uint64_t from_ns, until_ns; /* since 1970 */
};

#define PARCEL_GAP "%" PRIu64 " %" PRIu64 "\n" /* from_ns until_ns */

enum push_form { PUSH_OTLP, PUSH_PYROSCOPE, PUSH_PARCA };

/* Arguments, in this order. */
enum push_argument {
    PUSH_PROGRAM,
    PUSH_URL,
    PUSH_FORM,    /* its number */
    PUSH_NAME,    /* letters, digits and ._-/ */
    PUSH_HOST,    /* the same */
    PUSH_ROOM,    /* bytes of parcels that are kept */
    PUSH_HEADERS, /* a file; "": none */
    PUSH_CA,      /* the same */
    PUSH_ARGUMENTS
};

#endif
