/* SPDX-License-Identifier: BSD-2-Clause */
#include "socket_place.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void socket_place_clear(const struct sockaddr_un *at, int type)
{
    struct stat st;
    int fd;

    if (lstat(at->sun_path, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
        return;
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) && errno == ECONNREFUSED)
        unlink(at->sun_path);
    if (fd >= 0)
        close(fd);
}

struct socket_place socket_place_of(const char *path)
{
    struct stat st;

    if (lstat(path, &st))
        return (struct socket_place){.inode = 0};
    return (struct socket_place){st.st_dev, st.st_ino};
}

void socket_place_leave(const char *path, const struct socket_place *place)
{
    struct socket_place now = socket_place_of(path);

    if (place->inode && now.device == place->device && now.inode == place->inode)
        unlink(path);
}
