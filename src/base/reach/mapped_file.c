/* SPDX-License-Identifier: BSD-2-Clause */
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "array.h"
#include "living.h"
#include "reach.h"

void mapped_find_served(pid_t pid, struct mapped_served *ret)
{
    char path[64], *line = NULL;
    size_t room = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)living_thread(pid));
    file = fopen(path, "re");
    ret->known = file;
    while (ret->known && getline(&line, &room, file) > 0) {
        unsigned int major_number, minor_number;
        const char *type = strstr(line, " - ");

        if (type && !strncmp(type + 3, "fuse", 4) &&
            sscanf(line, "%*d %*d %u:%u", &major_number, &minor_number) == 2)
            ret->known = !array_append(ret->devs, ret->count, makedev(major_number, minor_number));
    }
    if (file && ferror(file))
        ret->known = false;
    free(line);
    if (file)
        fclose(file);
}

static bool is_served_by_program(const struct mapped_served *served, uint64_t dev)
{
    bool found = !served->known; /* not known: as if it were */

    for (size_t i = 0; !found && i < served->count; i++)
        found = served->devs[i] == dev;
    return found;
}

/* Opens a plain file; if ino is not 0, only the file with that number. */
static int open_plain(pid_t pid, const char *path, uint64_t ino, struct stat *ret)
{
    int fd = reach_open(pid, path, ret);

    if (fd < 0 || !ino || ret->st_ino == ino)
        return fd;
    close(fd);
    return -ESTALE;
}

void mapped_free_served(struct mapped_served *served)
{
    free(served->devs);
    *served = (struct mapped_served){0};
}

int mapped_file_place(pid_t pid, const struct mapped_served *served, const struct mapped_file *file,
                      struct stat *ret)
{
    char path[4096 + 64];
    pid_t by = living_thread(pid);
    int fd;

    if (is_served_by_program(served, file->dev))
        return -EREMOTE;
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)by, file->start,
             file->end);
    fd = open_plain(pid, path, 0, ret);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)by, file->path);
    fd = open_plain(pid, path, file->ino, ret);
    /* The kernel writes the path as we see it if the process has another root that we can reach. */
    return fd < 0 ? open_plain(pid, file->path, file->ino, ret) : fd;
}
