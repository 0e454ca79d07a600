/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A prcbd of the test's own, with a socket and pins of its own, so that tests and whatever
 * runs on the machine leave each other alone. For the test's main thread.
 */
#ifndef PRCB_TESTS_DAEMON_H
#define PRCB_TESTS_DAEMON_H

#include "../bpf/harness.h"

#define NOBODY  65534
#define SOMEONE 65533 /* a user that is nobody else */

/* Starts one and waits until it serves; PRCB_SOCKET is set to its socket. settings: lines of
 * its configuration, may be "". One at a time. */
void daemon_start(const char *settings);
/* The one that is there, or one with default settings; stays until daemon_end. */
void daemon_shared(void);
void daemon_configure(const char *settings); /* for daemon_again */
void daemon_kill(void);                      /* SIGKILL */
void daemon_again(void); /* after daemon_kill: another on the same socket and pins */
/* Ends it and removes everything; a test's teardown. */
int daemon_end(void **state);
/* Takes a program out of its place: what it was attached to is not reported any more. */
void daemon_detach(const char *program);
/* Whether it is attached: its link is pinned. */
bool daemon_has_attached(const char *program);
/* prcbd --cleanup on its pins. Exit status. */
int daemon_clean(void);

#define DAEMON_TEST(function) cmocka_unit_test_teardown(function, daemon_end)

/* The calling process (a child) becomes the user, with no groups besides the user's own. */
void become(unsigned uid);

/* A session on the daemon tier. NULL: *ret has the words. */
struct prcb *daemon_session(uint32_t max_threads, struct prcb_error *ret);

#endif
