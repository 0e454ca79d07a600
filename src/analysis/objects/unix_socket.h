/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What Unix sockets of this process's network namespace are, by the kernel's sock_diag(7): the list
 * in /proc/net/unix has names as they are, of which one with a newline looks like another's row.
 * Nothing is waited for: the kernel answers before send(2) returns.
 */
#ifndef PRCB_OBJECTS_UNIX_SOCKET_H
#define PRCB_OBJECTS_UNIX_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

struct unix_socket {
    char name[112]; /* "": none; an abstract one begins with @, which also stands for its NULs */
    uint64_t peer;  /* inode; 0: none, or not known */
    bool listens;
};

/* A descriptor to ask with; -1: this kernel does not tell. */
int unix_socket_open(void);
/* False: the namespace has no such Unix socket, or there is no answer. */
bool unix_socket_read(int diag, uint64_t inode, struct unix_socket *ret);

#endif
