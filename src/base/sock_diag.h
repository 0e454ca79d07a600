/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's sock_diag(7), for sockets of this process's network namespace: a socket to ask with,
 * and the attributes of an answer. Any number of threads may call.
 */
#ifndef PRCB_BASE_SOCK_DIAG_H
#define PRCB_BASE_SOCK_DIAG_H

#include <stddef.h>
#include <stdint.h>

/* A descriptor that takes messages from the kernel alone; -1: there is none. */
int sock_diag_open(void);

/* Finds the value of an attribute among those of a message, of which so many bytes are left; NULL:
 * it is not there, or cut. *ret_size: its bytes. The value need not be aligned. */
const void *sock_diag_attribute(const void *attributes, size_t left, uint16_t kind,
                                size_t *ret_size);

#endif
