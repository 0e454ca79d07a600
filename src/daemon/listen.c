/* SPDX-License-Identifier: BSD-2-Clause */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"

#define FIRST_PASSED 3 /* sd_listen_fds(3) */
#define BACKLOG      256

/* -1: none was passed. */
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
        return prcb_fail(err, -EINVAL, "systemd passed %s sockets, one is wanted", count);
    if (getsockopt(FIRST_PASSED, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM ||
        getsockopt(FIRST_PASSED, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size2) || !listening)
        return prcb_fail(err, -EINVAL,
                         "what systemd passed is no listening stream socket (ListenStream=)");
    fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC);
    fcntl(FIRST_PASSED, F_SETFL, O_NONBLOCK);
    return FIRST_PASSED;
}

static void make_parent(const char *path)
{
    char copy[PRCBD_PATH_SIZE];

    memcpy(copy, path, sizeof(copy));
    mkdir(dirname(copy), 0755); /* bind says it if this does not do */
}

static int give_to_group(const struct prcbd_config *config, struct prcb_error *err)
{
    const struct group *group;

    if (chmod(config->socket, (mode_t)config->socket_mode))
        return prcb_fail(err, -errno, "%s: %s", config->socket, strerror(errno));
    if (!config->socket_group[0])
        return 0;
    group = getgrnam(config->socket_group);
    if (!group)
        return prcb_fail(err, -ENOENT, "socket_group: there is no group %s", config->socket_group);
    if (chown(config->socket, (uid_t)-1, group->gr_gid))
        return prcb_fail(err, -errno, "%s: %s", config->socket, strerror(errno));
    return 0;
}

/* One of ours from before, unless somebody still listens. */
static int remove_stale(int fd, const struct sockaddr_un *address, struct prcb_error *err)
{
    if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN)
        return prcb_fail(err, -EADDRINUSE, "%s: another prcbd listens there", address->sun_path);
    if (errno == ECONNREFUSED)
        unlink(address->sun_path);
    return 0;
}

static int own_socket(const struct prcbd_config *config, struct prcb_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, probe, result;

    memcpy(address.sun_path, config->socket, sizeof(address.sun_path));
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    result = remove_stale(probe, &address, err);
    close(probe);
    if (result)
        return result;
    make_parent(config->socket);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)))
        result = prcb_fail(err, -errno, "%s: %s", config->socket, strerror(errno));
    if (!result)
        result = give_to_group(config, err);
    /* Only now, so that who can connect at all is who may. */
    if (!result && listen(fd, BACKLOG))
        result = prcb_fail(err, -errno, "%s: %s", config->socket, strerror(errno));
    if (result) {
        close(fd);
        return result;
    }
    return fd;
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
