/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Windows' numbers of processors: the number of the NUMA node, and the place among its processors.
 */
#ifndef PRCB_HOST_CORES_H
#define PRCB_HOST_CORES_H

#include <stdbool.h>
#include <stdint.h>

struct core {
    uint32_t node, index;
    bool known; /* there is such a processor */
};

/* Finds the nodes of the processors below `count`, as sysfs below `root` ("": this machine) has
 * them. A processor of no node is of node 0. */
void cores_read(const char *root, struct core *ret, uint32_t count);

#endif
