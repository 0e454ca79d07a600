/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of an eBPF array, mapped to be read as far as it is in use. The kernel gives a mapping
 * all its pages at once, and they count as the process's: of room for 16,384 accounts most is
 * never used. Addresses do not change while it grows.
 *
 * Threads  window_reach may be called by several at once.
 */
#ifndef PRCB_ACCOUNTS_WINDOW_H
#define PRCB_ACCOUNTS_WINDOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct window {
    char *at; /* NULL: there is none */
    size_t bytes, reached;
    int fd; /* of its own; -1: all is reached */
    pthread_mutex_t lock;
};

/* Reserves `bytes`, of which there must be so many, and maps the first ones. whole: all of them. 0
 * or -errno, *ret as it was. */
int window_open(int fd, size_t bytes, bool whole, struct window *ret);
void window_close(struct window *w);
/* Makes the first `bytes` readable; returns how many are. */
size_t window_reach(struct window *w, size_t bytes);

#endif
