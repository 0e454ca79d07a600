/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread's descriptors are, as the kernel tells in /proc: the files themselves are not
 * asked, for they may be on a file system that hangs. Any number of threads may call.
 */
#ifndef PRCB_OBJECTS_DESCRIPTORS_H
#define PRCB_OBJECTS_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct descriptor {
    char link[4096]; /* "/path", "pipe:[123]", "anon_inode:[eventfd]" */
    uint64_t ino;    /* 0: not known (before Linux 5.14) */
    uint64_t mount;  /* number of the mount */
};

/* False: there is no such descriptor, or it may not be seen. */
bool descriptor_read(pid_t pid, pid_t tid, uint64_t fd, struct descriptor *ret);
bool descriptor_same(const struct descriptor *a, const struct descriptor *b);
/* "pipe:[123]", "socket:[123]": the number. False: it is none of these. */
bool descriptor_number(const char *link, const char *kind, uint64_t *ret);

/* Finds what a file lies on: "loop0", "nfs4 server:/x"; "": not known. *ret_device: as
 * prcb_object's; 0: not known. */
/* Names the device of a file system, by its number (major << 20 | minor): the block device, or
 * the two numbers. */
void descriptor_device(uint32_t device, char *ret, size_t size);
void descriptor_mount(pid_t pid, uint64_t mount, char *ret, size_t size, uint32_t *ret_device);

/* Lists the descriptors that an epoll descriptor watches, or that are in the lists of poll and
 * select, as they are now: "3: pipe:[123], 4: /dev/pts/0, 2 more". False: they cannot be read.
 * *ret_count: how many. */
bool descriptor_list_epoll(pid_t pid, pid_t tid, uint64_t fd, char *ret, size_t size,
                           unsigned *ret_count);
bool descriptor_list_poll(pid_t pid, pid_t tid, uint64_t list, uint64_t count, char *ret,
                          size_t size, unsigned *ret_count);
bool descriptor_list_select(pid_t pid, pid_t tid, const uint64_t args[6], char *ret, size_t size,
                            unsigned *ret_count);

/* Finds the mode of the other end of a pipe, if this end is open for reading only or writing
 * only: S_IWUSR or S_IRUSR; 0: not known. */
mode_t descriptor_other_end(pid_t pid, pid_t tid, uint64_t fd);
/* Writes "to unix /run/x", "to 10.0.0.1:80" for an address in a thread's memory; else *ret
 * stays. */
void descriptor_address(pid_t tid, uint64_t address, uint64_t length, char *ret, size_t size);

/* Whether the process has this one thread only. */
bool descriptor_is_alone(pid_t pid);

#endif
