/* SPDX-License-Identifier: BSD-2-Clause */
#include "pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "error.h"

#define BPF_FS  0xcafe4a11
#define BPF_DIR "/sys/fs/bpf"

static bool is_bpf_fs(const char *path)
{
    struct statfs fs;

    return !statfs(path, &fs) && fs.f_type == BPF_FS;
}

/* Mounts at the kernel's usual place if that is empty, or else at the directory itself. */
static int mount_for(const char *path, struct prcb_error *err)
{
    const char *at = strncmp(path, BPF_DIR "/", sizeof(BPF_DIR)) ? path : BPF_DIR;

    if (is_bpf_fs(at))
        return 0;
    if (at == path && mkdir(path, 0700) && errno != EEXIST)
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (mount("bpf", at, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700"))
        return prcb_fail(err, -errno, "a BPF file system cannot be mounted on %s: %s", at,
                         strerror(errno));
    return 0;
}

static int make_parents(const char *path, struct prcb_error *err)
{
    char part[PATH_MAX];

    for (size_t i = 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)i, path);
        if (mkdir(part, 0700) && errno != EEXIST)
            return prcb_fail(err, -errno, "%s: %s", part, strerror(errno));
    }
    return 0;
}

int pins_open(const char *path, struct prcb_error *err)
{
    char parent[PATH_MAX], *slash;
    int fd, result;

    snprintf(parent, sizeof(parent), "%s", path);
    slash = strrchr(parent, '/');
    if (slash)
        *slash = '\0';
    if (!is_bpf_fs(path) && !is_bpf_fs(parent)) {
        result = mount_for(path, err);
        if (result)
            return result;
    }
    result = make_parents(path, err);
    if (result)
        return result;
    if (mkdir(path, 0700) && errno != EEXIST)
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? prcb_fail(err, -errno, "%s: %s", path, strerror(errno)) : fd;
}

int pins_below(int dir, const char *name, bool make)
{
    int fd;

    if (make && mkdirat(dir, name, 0700))
        return -errno;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

/* bpf(2) takes paths only until 6.5. */
static const char *path_of(char *buffer, size_t size, int dir, const char *name)
{
    snprintf(buffer, size, "/proc/self/fd/%d/%s", dir, name);
    return buffer;
}

int pins_put(int dir, const char *name, int fd)
{
    char path[PATH_MAX];

    return bpf_obj_pin(fd, path_of(path, sizeof(path), dir, name)) ? -errno : 0;
}

int pins_get(int dir, const char *name)
{
    char path[PATH_MAX];
    int fd = bpf_obj_get(path_of(path, sizeof(path), dir, name));

    return fd < 0 ? -errno : fd;
}

int pins_each(int dir, const char *prefix, int (*fn)(int dir, const char *name, void *ctx),
              void *ctx)
{
    int fd = pins_below(dir, ".", false), result = 0; /* its own place in the list */
    struct dirent *entry;
    DIR *list;

    if (fd < 0)
        return fd;
    list = fdopendir(fd);
    if (!list) {
        close(fd);
        return -ENOMEM;
    }
    while (!result && (entry = readdir(list))) {
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            !strncmp(entry->d_name, prefix, strlen(prefix)))
            result = fn(dir, entry->d_name, ctx);
    }
    closedir(list);
    return result;
}

static int remove_pin(int dir, const char *name, void *ctx)
{
    int *result = ctx;

    if (unlinkat(dir, name, 0) && errno != ENOENT)
        *result = -errno;
    return 0; /* the others all the same */
}

int pins_empty(int dir, const char *name, const char *prefix)
{
    int fd = pins_below(dir, name, false), result = 0, walked;

    if (fd < 0)
        return fd;
    walked = pins_each(fd, prefix, remove_pin, &result);
    close(fd);
    return walked ? walked : result;
}

int pins_remove(int dir, const char *name)
{
    int result = pins_empty(dir, name, "");

    if (result == -ENOENT)
        return result;
    if (unlinkat(dir, name, AT_REMOVEDIR) && !result)
        result = -errno;
    return result;
}
