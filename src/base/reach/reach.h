/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory, files and what /proc tells of other processes, without ever waiting for these. A page of
 * memory may be one of a file whose server never answers (FUSE, NFS) or be served by a program
 * (userfaultfd); /proc/PID/maps, syscall and auxv wait for locks that the process holds meanwhile;
 * a path may lead into such a file system. No signal ends some of these waits. So a child process
 * with this one's rights does all of it. When it gives no answer in time, it is killed and left
 * behind, and another takes its place; sandbox.h bounds how many may be left. A process that was
 * waited for in vain is not asked about again for a minute, nor are others of its user once a few
 * were; then -ETIMEDOUT is the answer at once.
 *
 * Files are opened as places (O_PATH), which nobody ever waits to close, and opened to be read by
 * the child alone, which hands them on to a sandbox's. Only plain files are (plain_file.h).
 *
 * Under Yama's ptrace_scope 1 a process may read its descendants' memory, and the child has none:
 * there, this process reads these itself.
 *
 * Threads  Any number; they take turns. In a forked process it begins anew.
 */
#ifndef PRCB_REACH_H
#define PRCB_REACH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define REACH_MOST (16u << 20) /* bytes of one answer; a file is cut there */

/* All functions return 0, a number of bytes or a descriptor, else -errno. -ETIMEDOUT: there is
 * no answer; -EBUSY: too many children are left behind, or none can be started; -ESRCH: there is
 * no such process. pid: who made what is asked for, to remember if it hangs; 0: not known. */

/* Reads memory from an address on, as far as this needs no waiting for others: pages that are
 * present or swapped, and those of private anonymous memory. -EFAULT: not even the first. */
ssize_t reach_memory(pid_t pid, uint64_t address, void *to, size_t size);

/* Does the same and also reads, before it, the start of a file of procfs, in one question.
 * *ret_start: how many bytes that is, or -errno. */
ssize_t reach_memory_after(pid_t pid, const char *path, void *start, size_t start_size,
                           ssize_t *ret_start, uint64_t address, void *to, size_t size);

/* Reads where a thread has its list of robust locks, 0: nowhere; as memory, it is the user's to
 * say. */
int reach_robust(pid_t tid, uint64_t *ret);

/* Reads a file of procfs from its start. */
ssize_t reach_read(pid_t pid, const char *path, void *to, size_t size);
/* Reads it whole, with a NUL behind it; the caller frees *ret, which is NULL on failure. */
ssize_t reach_text(pid_t pid, const char *path, char **ret);
/* Does the same for a list of mappings, as far as the first behind an address. */
ssize_t reach_maps(pid_t pid, const char *path, uint64_t address, char **ret);

/* Reads where a link of procfs leads, with its end: of at most size - 1 bytes. */
ssize_t reach_link(pid_t pid, const char *path, char *ret, size_t size);
/* Does the same for all links in a folder, behind each other, each behind a digit: the owner's
 * digit of the link's mode (4: opened to be read, 2: to be written); the caller frees *ret. */
ssize_t reach_links(pid_t pid, const char *folder, char **ret);

/* Finds the place of a plain file, and what it is. Its descriptor says nothing more: fstat(2)
 * would ask the file system. */
int reach_open(pid_t pid, const char *path, struct stat *ret);
/* Finds the place of a compiler's list, as perf_list.h. */
int reach_open_list(pid_t pid, uid_t owner, off_t most, struct stat *ret);
/* Finds which numbers the kernel shows of a place where it is mapped: on Btrfs and overlayfs they
 * are not those of the file. */
int reach_mapped_as(int place, uint64_t *ret_device, uint64_t *ret_inode);
/* Opens it for reading and sends that with a message on a sandbox's socket. */
int reach_hand(pid_t pid, int place, int socket, const void *message, size_t length);

/* Sends, in the same way, two descriptors by which the memory of a process can be read, and which
 * of its pages are there: /proc/PID/mem and /proc/PID/pagemap. */
int reach_hand_memory(pid_t pid, int socket, const void *message, size_t length);

/* Finds the process's user by its ids, not by the owner of its files in /proc: root owns these if
 * the process hides its memory. -1: root, or not known. */
int64_t reach_user(pid_t pid);

/* The child exists from the first question until nobody holds it any more. If a program never
 * holds it, it stays until the end of the process. */
void reach_hold(void);
void reach_release(void);

/* Returns the processor time of all children so far. */
uint64_t reach_cpu_ns(void);
/* Returns how many questions got no answer in time so far. */
unsigned reach_hangs(void);

#endif
