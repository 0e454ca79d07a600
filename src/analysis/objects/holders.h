/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds whom a wait is for, if the kernel or a lock has the number: the holder of a file lock,
 * the thread in a mutex's word that is not of the waiter's process, a child. It is as procfs
 * shows it now; a number that somebody else has by now is not named.
 */
#ifndef PRCB_OBJECTS_HOLDERS_H
#define PRCB_OBJECTS_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Somebody who is waited for. */
struct holder {
    pid_t pid, tid;
    char comm[32];    /* "": not known, as of one that has ended */
    char detail[160]; /* "": it lives, and there is no more to say */
};

/* Finds the thread whose number is in a lock's word, and which is not of process `pid`: it is of
 * another process that has the same memory, or of its parent as it was at fork, or it has ended.
 * shared: the word lies in memory that others may have, which is the file (device, inode).
 * False: it cannot be known. */
bool holder_elsewhere(pid_t pid, pid_t own, bool shared, uint64_t device, uint64_t inode,
                      struct holder *ret);

/* Finds the holder of the file lock that a process waits for. wanted: a descriptor's file, which
 * tells an open file's lock from those of others. False: /proc/locks does not say. */
bool holder_of_file_lock(pid_t pid, uint64_t inode, struct holder *ret);

/* Finds a thread by its number. False: there is none any more. */
bool holder_thread(pid_t tid, struct holder *ret);

/* Whether a process was made by another one, or by one that this made, and so on. */
bool holder_descends(pid_t pid, pid_t ancestor);

/* Says what a child does: "it sleeps in pipe_read", "it runs", "it is stopped". "": it is gone. */
void holder_activity(pid_t pid, char *ret, size_t size);

/* Finds a child that a thread has made: one that runs, or else the first. *ret_count: how many it
 * has. False: it has none. */
bool holder_children(pid_t pid, struct holder *ret, unsigned *ret_count);

#endif
