/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The place of a file that another process has mapped: the file that is mapped, and no other, and
 * none on a file system that a user's program serves (FUSE: it may never answer). Contents are not
 * looked at.
 *
 * Threads  Any number; a list of file systems by one at a time.
 */
#ifndef PRCB_BASE_MAPPED_FILE_H
#define PRCB_BASE_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The file systems of a process that a program serves, by device number. The kernel's list tells
 * them: a question to such a file system itself may never be answered. The list is read once for
 * a process, however many files it has: a user may mount tens of thousands in namespaces of his
 * own. */
struct mapped_served {
    bool known;
    uint64_t *devs;
    size_t count;
};

void mapped_find_served(pid_t pid, struct mapped_served *ret);
void mapped_free_served(struct mapped_served *served);

/* As /proc/PID/maps has it. */
struct mapped_file {
    uint64_t start, end; /* of the mapping */
    uint64_t dev, ino;
    const char *path;
};

/* Opens the file by the mapping itself if that is allowed (CAP_SYS_ADMIN or
 * CAP_CHECKPOINT_RESTORE): this finds the right file even if it was replaced or removed. Else it
 * opens it by its path as the process sees it, or as we do. Returns a descriptor (O_PATH) for
 * reach_hand, and what it is, or -errno; -EREMOTE: a program serves it. By a path a process may
 * lead to a file of another file system that has the same number: only st_dev tells, and on Btrfs
 * and overlayfs it is never the mapping's. */
int mapped_file_place(pid_t pid, const struct mapped_served *served, const struct mapped_file *file,
                      struct stat *ret);

#endif
