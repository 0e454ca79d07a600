/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_list.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "living.h"
#include "plain_file.h"

/* Returns the process's number in its own namespace: the last of "NSpid:\t1234\t7". */
static pid_t inner_pid(pid_t pid)
{
    char path[64], line[256];
    pid_t inner = pid;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *last = strrchr(line, '\t');

        if (!strncmp(line, "NSpid:", 6) && last)
            inner = atoi(last + 1);
    }
    if (file)
        fclose(file);
    return inner;
}

/* /tmp as the process sees it. Links in its file system lead to nowhere outside of it. */
static int open_its_tmp(pid_t pid)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    char path[64];
    int root, tmp;

    snprintf(path, sizeof(path), "/proc/%d/root", (int)living_thread(pid));
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    tmp = (int)syscall(SYS_openat2, root, "tmp", &how, sizeof(how));
    tmp = tmp < 0 ? -errno : tmp;
    close(root);
    return tmp;
}

static int place_in(int folder, pid_t number, uid_t owner, off_t most, struct stat *ret)
{
    char name[32];
    int fd;

    if (folder < 0)
        return folder;
    snprintf(name, sizeof(name), "perf-%d.map", number);
    fd = plain_file_place(folder, name, O_NOFOLLOW, ret);
    close(folder);
    if (fd >= 0 && (ret->st_uid != owner || ret->st_size > most)) {
        close(fd);
        return ret->st_uid != owner ? -EPERM : -EFBIG;
    }
    return fd;
}

int perf_list_place(pid_t pid, uid_t owner, off_t most, struct stat *ret)
{
    int fd = place_in(open_its_tmp(pid), inner_pid(pid), owner, most, ret);

    if (fd < 0) /* it has ended, or somebody outside of it writes its list */
        fd = place_in(open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC), pid, owner, most, ret);
    return fd;
}
