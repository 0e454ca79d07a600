/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The files that a process has mapped to run code from, as places (reach.h). They are somebody
 * else's: only plain files are opened, never a device or a pipe, none on a file system that a
 * user's program serves (FUSE: it may never answer), and a file by its path only if it is the
 * one that is mapped. The contents are not looked at.
 *
 * Threads  One list by one thread at a time.
 */
#ifndef PRCB_STACK_PROCESS_H
#define PRCB_STACK_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_FILES 512 /* at most; what is beyond is not unwound through */

/* What tells a file from others, whatever path they have: each user may have files of his own
 * under any path, in a mount namespace of his own. A device's and a file's number may come again,
 * the time of the last change does not. */
struct process_file_id {
    uint64_t dev, ino;
    int64_t changed_ns; /* CLOCK_REALTIME; 0: the file was not opened */
};

/* A mapping with code in it, and the file behind it. */
struct process_file {
    uint64_t start, end; /* of the mapping */
    uint64_t offset;     /* of its first byte in the file */
    uint64_t base;       /* where the file's first page is mapped, or would be */
    uint64_t dev, ino;
    struct process_file_id id; /* of the file that was opened, else as it is mapped */
    int fd;                    /* O_PATH; -1: it was not found */
    int error;                 /* then, why: -errno; -EREMOTE: FUSE */
    char *path; /* as the process sees it; "[vdso]", "" for code that no file holds */
};

struct process_files {
    struct process_file *rows; /* by start */
    size_t count;
    int list; /* what its just-in-time compiler wrote (perf_list.h), -1: nothing, or released */
    bool has_list; /* there was one */
};

/* -ESRCH it has ended; -EPERM no ptrace access to it; -ENOMEM; -ETIMEDOUT, -EBUSY as reach.h */
int process_files_open(pid_t pid, struct process_files *ret);
void process_files_close(struct process_files *files);
/* Closes the descriptors; the list of mappings stays. */
void process_files_release(struct process_files *files);

/* Finds the mapping that an address lies in; NULL: none with code. */
const struct process_file *process_files_at(const struct process_files *files, uint64_t address);

#endif
