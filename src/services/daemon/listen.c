/* SPDX-License-Identifier: BSD-2-Clause */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"

#define FIRST_PASSED 3 /* sd_listen_fds(3) */
#define BACKLOG      256

/* Returns -1 if no socket was passed. */
static int passed_socket(struct prcb_error *err)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    int type = 0, listening = 0;
    socklen_t size = sizeof(type), size2 = sizeof(listening);

    if (!pid || !count || strtol(pid, NULL, 10) != getpid())
        return -1;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    if (strtol(count, NULL, 10) != 1)
        return prcb_fail(err, -EINVAL,
                         "systemd passed %s sockets: prcbd.socket must have exactly one", count);
    if (getsockopt(FIRST_PASSED, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM ||
        getsockopt(FIRST_PASSED, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size2) || !listening)
        return prcb_fail(
            err, -EINVAL,
            "the descriptor from systemd is not a listening stream socket: use ListenStream=");
    fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC);
    fcntl(FIRST_PASSED, F_SETFL, O_NONBLOCK);
    return FIRST_PASSED;
}

/* Checks that only the owner of a directory, root or prcbd may change it; in one with the sticky
 * bit others add entries but cannot touch ours. */
static int check_one(int directory, const char *path, struct prcb_error *err)
{
    struct stat st;

    if (fstat(directory, &st))
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    if ((!st.st_uid || st.st_uid == geteuid()) && (st.st_mode & S_ISVTX || !(st.st_mode & 022)))
        return 0;
    return prcb_fail(
        err, -EPERM,
        "%s: others may write the directory, or one above it, and could put anything in "
        "the place of the socket: choose another, or make it root's with mode 0755",
        path);
}

/* Checks the directory and all above it. */
static int check_above(int directory, const char *path, struct prcb_error *err)
{
    int at = fcntl(directory, F_DUPFD_CLOEXEC, 0), result = at < 0 ? -errno : 0;
    bool root = false;

    while (!result && !root) {
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct stat here, above;

        result = check_one(at, path, err);
        if (!result && (up < 0 || fstat(at, &here) || fstat(up, &above)))
            result = prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
        root = !result && here.st_dev == above.st_dev && here.st_ino == above.st_ino;
        close(at);
        at = up;
    }
    if (at >= 0)
        close(at);
    return result;
}

/* Resolves the socket's path without symbolic links, since somebody else may own one: so only
 * root can change any part of it. The caller closes *ret_dir. */
static int find_place(const char *path, struct sockaddr_un *ret, int *ret_dir,
                      struct prcb_error *err)
{
    char copy[PRCBD_PATH_SIZE], link[32], directory[PATH_MAX];
    const char *name = strrchr(path, '/'), *parent;
    ssize_t length;
    int result;

    name = name ? name + 1 : path;
    snprintf(copy, sizeof(copy), "%s", path);
    parent = dirname(copy);
    mkdir(parent, 0755); /* open says it if this does not do */
    *ret_dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_dir < 0)
        return prcb_fail(err, -errno, "%s: %s", parent, strerror(errno));
    result = check_above(*ret_dir, parent, err);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", *ret_dir);
    length = readlink(link, directory, sizeof(directory) - 1);
    if (!result && length < 0)
        result = prcb_fail(err, -errno, "%s: %s", parent, strerror(errno));
    if (!result && (!*name || (size_t)length + 1 + strlen(name) >= sizeof(ret->sun_path)))
        result = prcb_fail(err, -ENAMETOOLONG, "%s: this is not the path of a socket", path);
    if (!result)
        snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s/%s", (int)length, directory, name);
    if (result)
        close(*ret_dir);
    return result;
}

/* Removes a socket that an earlier prcbd left, unless somebody still listens on it. Removes
 * nothing else. */
static int remove_stale(int directory, const char *name, const struct sockaddr_un *address,
                        struct prcb_error *err)
{
    struct stat st;
    int probe, result = 0;

    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT
                   ? 0
                   : prcb_fail(err, -errno, "%s: %s", address->sun_path, strerror(errno));
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
        return prcb_fail(err, -EEXIST,
                         "%s: this is not a socket of prcbd: remove it, or choose "
                         "another path",
                         address->sun_path);
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!connect(probe, (const struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN)
        result = prcb_fail(err, -EADDRINUSE, "%s: another prcbd listens there", address->sun_path);
    else if (errno == ECONNREFUSED)
        unlinkat(directory, name, 0);
    close(probe);
    return result;
}

static int give_to_group(int directory, const char *name, const char *group_name,
                         struct prcb_error *err)
{
    const struct group *group = *group_name ? getgrnam(group_name) : NULL;

    if (!*group_name)
        return 0;
    if (!group)
        return prcb_fail(err, -ENOENT, "socket_group: group %s does not exist", group_name);
    if (fchownat(directory, name, (uid_t)-1, group->gr_gid, AT_SYMLINK_NOFOLLOW))
        return prcb_fail(err, -errno, "%s: %s", name, strerror(errno));
    return 0;
}

/* Creates the socket with its final permissions: there is no moment in which they are changed by
 * its path. */
static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode,
                          struct prcb_error *err)
{
    mode_t before = umask(0777 & ~mode);
    int failed = bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;

    umask(before);
    return failed ? prcb_fail(err, -failed, "%s: %s", address->sun_path, strerror(failed)) : 0;
}

static int listen_at(const struct prcbd_config *config, int directory,
                     const struct sockaddr_un *address, struct prcb_error *err)
{
    const char *name = strrchr(address->sun_path, '/') + 1;
    int fd, result = remove_stale(directory, name, address, err);

    if (result)
        return result;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return prcb_fail(err, -errno, "a socket cannot be made: %s", strerror(errno));
    result = bind_with_mode(fd, address, (mode_t)config->socket_mode, err);
    if (!result)
        result = give_to_group(directory, name, config->socket_group, err);
    /* It listens only now, so that nobody can connect who may not. */
    if (!result && listen(fd, BACKLOG))
        result = prcb_fail(err, -errno, "%s: %s", address->sun_path, strerror(errno));
    if (result) {
        close(fd);
        return result;
    }
    return fd;
}

static int own_socket(const struct prcbd_config *config, struct prcb_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int directory, result = find_place(config->socket, &address, &directory, err);

    if (result)
        return result;
    result = listen_at(config, directory, &address, err);
    close(directory);
    return result;
}

void listen_remove(const struct prcbd_config *config)
{
    struct stat st;

    if (!lstat(config->socket, &st) && S_ISSOCK(st.st_mode))
        unlink(config->socket);
}

int listen_open(const struct prcbd_config *config, bool *ret_own, struct prcb_error *err)
{
    int fd = passed_socket(err);

    *ret_own = fd == -1;
    return *ret_own ? own_socket(config, err) : fd;
}

void listen_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    int fd;

    if (!length || length >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(fd);
}
