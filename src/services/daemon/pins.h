/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A directory of a BPF file system: what stands in it keeps running and keeps its memory with
 * nobody there. Held by its descriptor, so that it can still be emptied by a process that may
 * no longer walk to it.
 */
#ifndef PRCB_DAEMON_PINS_H
#define PRCB_DAEMON_PINS_H

#include <sys/types.h>

#include <stdbool.h>

#include <prcb/error.h>

/* Opens a directory for pins, made with its parents where it is missing; mounts a BPF file
 * system where the path leads to none. Returns a descriptor. */
int pins_open(const char *path, struct prcb_error *err);

/* A directory below, or -errno. make: it is made, and must not be there. */
int pins_below(int dir, const char *name, bool make);

int pins_put(int dir, const char *name, int fd);
int pins_get(int dir, const char *name); /* a descriptor, or -errno */

/* Calls fn with the name of each pin in a directory that begins so. Stops at a result that is not 0
 * and returns it. */
int pins_each(int dir, const char *prefix, int (*fn)(int dir, const char *name, void *ctx),
              void *ctx);

/* Removes the pins in a directory whose names begin so. */
int pins_empty(int dir, const char *name, const char *prefix);

/* Removes a directory of pins with all in it; -ENOENT: there is none. */
int pins_remove(int dir, const char *name);

#endif
