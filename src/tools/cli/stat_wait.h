/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sleeps until something happens: a moment comes, the command ends, a profiled process ends, or
 * a signal asks for the end. There is one instance per program, since signal handlers are the
 * program's.
 *
 * SIGINT and SIGTERM: without a command they ask for the end. With one, the command must obey
 * them: the terminal's Ctrl-C reaches it by itself (same process group), a signal that was sent
 * to prcb alone is handed on, and the command decides when it ends. Signals that were ignored
 * when the program started stay ignored.
 */
#ifndef PRCB_CLI_STAT_WAIT_H
#define PRCB_CLI_STAT_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct stat_wait {
    int pipe;     /* where the handlers' bytes arrive */
    pid_t child;  /* 0: none */
    int child_fd; /* -1: the kernel gives none, or there is no child */
    int *targets; /* owned: descriptors of profiled processes; -1: ended */
    size_t target_count;
};

enum stat_wait_event {
    STAT_WAIT_CHILD = 1,  /* the command has ended; it is not reaped yet */
    STAT_WAIT_TARGET = 2, /* a profiled process has ended */
    STAT_WAIT_SIGNAL = 4, /* a signal asked for the end */
};

/* Moves *next to the next point of a fixed raster; points that have passed are left out.
 * Requires now >= *next. */
void stat_wait_advance(uint64_t *next, uint64_t period, uint64_t now);

/* Installs the handlers; call it before any child is started. 0 or -errno. */
int stat_wait_init(struct stat_wait *wait);
/* Makes SIGINT, SIGTERM and SIGHUP end the program again. */
void stat_wait_restore(void);
/* The same, and frees. */
void stat_wait_deinit(struct stat_wait *wait);

/* Takes a signal that came and was not acted on yet: returns its number; 0: there is none. */
int stat_wait_pending(const struct stat_wait *wait);

void stat_wait_set_child(struct stat_wait *wait, pid_t child);
/* Watches a process for its end; does nothing if the kernel does not allow it. */
void stat_wait_add_target(struct stat_wait *wait, pid_t pid);

/* Watches none any more. */
void stat_wait_forget_targets(struct stat_wait *wait);

/* Sleeps until now_ns() >= until or an event; returns the events. */
unsigned stat_wait_until(struct stat_wait *wait, uint64_t until);

/* Ends the child with SIGTERM, and with SIGKILL if that does not do. */
void stat_wait_end_child(struct stat_wait *wait);
/* Reaps the child, which has ended. Returns the status of waitpid; *ret_usage: what it and those it
 * reaped used; NULL: nobody asks. */
int stat_wait_reap(struct stat_wait *wait, struct rusage *ret_usage);

#endif
