/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A processor's time, by the states that share it.
 */
#ifndef PRCB_PROCESSORS_PROCESSOR_PARTS_H
#define PRCB_PROCESSORS_PROCESSOR_PARTS_H

#include <stdint.h>

#define MOST_PROCESSORS 8192 /* processors: the most a kernel can be built for */

/* The states that share a processor's time: in a consistent set their sum is its wall time. */
enum part {
    PART_IDLE,
    PART_USER,
    PART_KERNEL,
    PART_DPC,
    PART_INTERRUPT,
    PART_STEAL,
    PARTS,
};

struct parts {
    uint64_t wall;
    uint64_t ns[PARTS];
};

#endif
