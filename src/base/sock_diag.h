/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's sock_diag(7), for sockets of this process's network namespace: a socket to ask with,
 * questions for internet sockets, and the attributes of an answer. Any number of threads may call.
 */
#ifndef PRCB_BASE_SOCK_DIAG_H
#define PRCB_BASE_SOCK_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/inet_diag.h>

/* A descriptor that takes messages from the kernel alone; -1: there is none. */
int sock_diag_open(void);

/* Asks for one socket, or, with NLM_F_DUMP among the flags, for all of a kind. The kernel has
 * written its answer when this returns. False: the question was not taken. */
bool sock_diag_ask(int diag, uint16_t flags, const struct inet_diag_req_v2 *ask);

/* Finds the value of an attribute among those of a message, of which so many bytes are left; NULL:
 * it is not there, or cut. *ret_size: its bytes. The value need not be aligned. */
const void *sock_diag_attribute(const void *attributes, size_t left, uint16_t kind,
                                size_t *ret_size);

#endif
