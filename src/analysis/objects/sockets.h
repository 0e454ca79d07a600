/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a socket is connected to, by the kernel's lists of a network namespace. They are read again
 * when a socket is not in them, no more often than what reading costs allows. Unix sockets of the
 * own namespace are asked for one by one (unix_socket.h); of another one the list is all there is:
 * what stands in it twice, or is written in another way than the kernel's, has no name.
 *
 * One thread.
 */
#ifndef PRCB_OBJECTS_SOCKETS_H
#define PRCB_OBJECTS_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sockets;

int sockets_open(struct sockets **ret); /* 0 or -ENOMEM */
void sockets_close(struct sockets *s);  /* NULL is allowed */

/* Returns which network namespace a process is in; 0: not known. pid 0: this process's. */
uint64_t sockets_netns(pid_t pid);

/* Writes "tcp 127.0.0.1:5 -> 127.0.0.1:80", "unix /run/x". -ENOENT: not in the lists; -EAGAIN:
 * the socket may be newer than the lists, and they cannot be read again yet: ask later. pid: a
 * process that is in the socket's namespace. *ret_netns: which namespace that is; *ret_peer:
 * inode of the other end; 0: not known, or on another machine. */
int sockets_name(struct sockets *s, pid_t pid, uint64_t inode, char *ret, size_t size,
                 uint64_t *ret_netns, uint64_t *ret_peer);

/* A connection whose other end is not in its own namespace. */
struct sockets_wanted {
    uint64_t netns;
    char local[80], remote[80]; /* as in its name */
    uint32_t number;            /* the caller's */
    uint64_t owner;             /* user namespace that owns netns; set here */
    uint64_t peer;              /* inode of the other end; 0: not found, or there are several */
    unsigned found;
};

/* Takes what a name of sockets_name says. False: it is no connection of TCP's that may lead to
 * another namespace of this machine. */
bool sockets_take_name(const char *name, struct sockets_wanted *ret);
/* Looks for the other ends in the lists of all network namespaces whose processes may be read, and
 * whose owner is this process's user namespace, or that of the namespace which has the first end:
 * in another one somebody else may have made a connection that looks so. Between them the kernel
 * may translate addresses: such ends are not found. Sorts the rows. */
void sockets_find_elsewhere(struct sockets_wanted *rows, size_t count);

#endif
