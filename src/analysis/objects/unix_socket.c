/* SPDX-License-Identifier: BSD-2-Clause */
#include "unix_socket.h"
#include "sock_diag.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_MOST 1024 /* bytes: a head, a name of at most 108, a peer */

int unix_socket_open(void)
{
    int diag = sock_diag_open();
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct unix_socket is;
    struct stat about;

    /* A kernel without unix_diag answers as if there were no socket: it has to know one that is
     * there. */
    if (diag >= 0 &&
        (probe < 0 || fstat(probe, &about) || !unix_socket_read(diag, about.st_ino, &is))) {
        close(diag);
        diag = -1;
    }
    if (probe >= 0)
        close(probe);
    return diag;
}

/* As procfs writes it. A path has its NUL with it. */
static void take_name(struct unix_socket *to, const char *name, size_t length)
{
    if (length && *name)
        length = strnlen(name, length);
    if (length >= sizeof(to->name))
        length = sizeof(to->name) - 1;
    for (size_t i = 0; i < length; i++)
        to->name[i] = name[i] ? name[i] : '@';
    to->name[length] = '\0';
}

static void take_attributes(struct unix_socket *to, const char *at, size_t left)
{
    const void *value;
    uint32_t peer;
    size_t size;

    value = sock_diag_attribute(at, left, UNIX_DIAG_NAME, &size);
    if (value)
        take_name(to, value, size);
    value = sock_diag_attribute(at, left, UNIX_DIAG_PEER, &size);
    if (value && size == sizeof(peer)) {
        memcpy(&peer, value, sizeof(peer));
        to->peer = peer;
    }
}

bool unix_socket_read(int diag, uint64_t inode, struct unix_socket *ret)
{
    struct {
        struct nlmsghdr head;
        struct unix_diag_req ask;
    } request = {
        .head = {.nlmsg_len = sizeof(request),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .ask = {.sdiag_family = AF_UNIX,
                .udiag_states = ~0u,
                .udiag_ino = (uint32_t)inode,
                .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
                .udiag_cookie = {~0u, ~0u}},
    };
    _Alignas(struct nlmsghdr) char answer[ANSWER_MOST];
    const struct nlmsghdr *head = (const void *)answer;
    const struct unix_diag_msg *about = NLMSG_DATA(answer);
    const size_t least = NLMSG_LENGTH(sizeof(*about));
    ssize_t got;

    if (diag < 0 || !inode || inode > UINT32_MAX ||
        send(diag, &request, sizeof(request), MSG_DONTWAIT) != sizeof(request))
        return false;
    got = recv(diag, answer, sizeof(answer), MSG_DONTWAIT);
    if (got < (ssize_t)least || head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        head->nlmsg_len < least || head->nlmsg_len > (size_t)got || about->udiag_ino != inode)
        return false;
    *ret = (struct unix_socket){.listens = about->udiag_state == TCP_LISTEN};
    take_attributes(ret, answer + least, head->nlmsg_len - least);
    return true;
}
