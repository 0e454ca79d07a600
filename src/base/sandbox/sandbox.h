/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A child process with nothing to lose, for reading what others wrote: programs, libraries, their
 * debug information. It has no rights beyond those of its user (of root's: of nobody), no
 * capability, no file but those it is handed, a short list of system calls, and limits; what it
 * answers is as untrusted as what it reads. Ending it ends whatever it was made to do.
 *
 * Messages go over a socket that keeps their boundaries, with descriptors.
 *
 * Threads  A sandbox by one thread at a time. Starting one forks: the child runs serve() with what
 *          was in memory then, and returns from nowhere else.
 */
#ifndef PRCB_SANDBOX_H
#define PRCB_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#define SANDBOX_FDS 64 /* descriptors in one message */

struct sandbox {
    pid_t pid;  /* 0: not started */
    int socket; /* the parent's end */
};

struct sandbox_limits {
    uint64_t memory; /* bytes of address space; 0: no limit */
    unsigned files;  /* open at once */
    bool serves;     /* takes connections from sockets that it has */
    bool trusted;    /* keeps rights and system calls: it runs what may wait for ever (reach.h) */
};

/* Runs in the child: answers until the socket ends, which it does when the parent ends. Its
 * return value is the exit status. */
typedef int (*sandbox_serve_fn)(int socket, void *ctx);

/* *ret is all zero on failure. -EPERM, -EAGAIN, -ENOMEM: the fork's; -EOPNOTSUPP: the child could
 * not be confined, and was ended before it served; -EBUSY: CHILDREN_LEFT (child_end.h)
 * were left already. */
int sandbox_start(const struct sandbox_limits *limits, sandbox_serve_fn serve, void *ctx,
                  struct sandbox *ret, struct prcb_error *err);
/* Ends the child. A child that does not end soon, for the kernel waits for its file, is left: it
 * ends when its wait does. If it was not started nothing happens. */
void sandbox_stop(struct sandbox *sandbox);
/* Returns the processor time the child has used; 0: not known. */
uint64_t sandbox_cpu_ns(const struct sandbox *sandbox);

/* Called in the child, which then ends by itself unless this is called again within the time; 0:
 * no limit any more. It is for work on a request, which its parent may not live to end. */
void sandbox_alarm(unsigned seconds);

/* Sends one message, with up to SANDBOX_FDS descriptors, which stay the caller's. Either side
 * may call it. 0 or -errno; -EPIPE: the other side has ended; -ETIMEDOUT: the child has taken
 * nothing for seconds. */
int sandbox_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count);

/* Receives one message, of at most size bytes. Descriptors that come with it are the caller's;
 * those beyond fd_room are closed. timeout_ms: -1 for ever. Returns its length; -EPIPE: the
 * other side has ended; -ETIMEDOUT; -EMSGSIZE: longer than size. ret_fds NULL: none are taken. */
ssize_t sandbox_receive(int socket, void *ret, size_t size, int *ret_fds, size_t fd_room,
                        size_t *ret_fd_count, int timeout_ms);

#endif
