/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The place of a unix socket that a program listens at: a socket of others stays there, whether
 * somebody answers or not, and so does one that took the program's place. Others who may write to
 * its folder can take both away all the same. Any number of threads may call.
 */
#ifndef PRCB_BASE_SOCKET_PLACE_H
#define PRCB_BASE_SOCKET_PLACE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_place {
    dev_t device;
    ino_t inode; /* 0: none was there */
};

/* Removes what a program of this user left there when it was killed: nobody answers. type:
 * SOCK_STREAM, SOCK_DGRAM. */
void socket_place_clear(const struct sockaddr_un *at, int type);
/* Notes which socket is there, after bind(2). */
struct socket_place socket_place_of(const char *path);
/* Removes the socket, if it is still this one. */
void socket_place_leave(const char *path, const struct socket_place *place);

#endif
