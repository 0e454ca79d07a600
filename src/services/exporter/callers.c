/* SPDX-License-Identifier: BSD-2-Clause */
#include "callers.h"
#include "sock_diag.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define USER        1 /* no family of addresses here has this number: unix sockets are by user */
#define ANSWER_MOST 1024

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_storage room;
};

static void at_ipv4(const void *bytes, unsigned char *ret)
{
    if (*(const unsigned char *)bytes == 127)
        return;
    ret[0] = AF_INET;
    memcpy(ret + 1, bytes, sizeof(struct in_addr));
}

void caller_at(const struct sockaddr *address, unsigned char *ret)
{
    memset(ret, 0, CALLER_BYTES);
    if (address && address->sa_family == AF_INET) {
        at_ipv4(&((const struct sockaddr_in *)address)->sin_addr, ret);
    } else if (address && address->sa_family == AF_INET6) {
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

        if (IN6_IS_ADDR_V4MAPPED(in6)) {
            at_ipv4(in6->s6_addr + 12, ret);
        } else if (!IN6_IS_ADDR_LOOPBACK(in6)) {
            ret[0] = AF_INET6;
            memcpy(ret + 1, in6, 8);
        }
    }
}

static void by_user(uint32_t user, unsigned char *ret)
{
    memset(ret, 0, CALLER_BYTES);
    ret[0] = USER;
    memcpy(ret + 1, &user, sizeof(user));
}

/* A socket's end as the kernel's question has it. */
static void end_of(const union address *address, __be32 *ret_address, __be16 *ret_port)
{
    if (address->any.sa_family == AF_INET6) {
        memcpy(ret_address, &address->in6.sin6_addr, sizeof(address->in6.sin6_addr));
        *ret_port = address->in6.sin6_port;
    } else {
        *ret_address = address->in.sin_addr.s_addr;
        *ret_port = address->in.sin_port;
    }
}

/* Asks for the socket with these two ends. False: there is none here, or nobody has it any more
 * (the kernel calls it root's then). */
static bool ask(int diag, const union address *theirs, const union address *ours, uint32_t *ret)
{
    struct inet_diag_req_v2 request = {.sdiag_family = (uint8_t)ours->any.sa_family,
                                       .sdiag_protocol = IPPROTO_TCP};
    struct inet_diag_sockid *id = &request.id;
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg is;
        char more[ANSWER_MOST];
    } answer;
    ssize_t got;

    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (ours->any.sa_family == AF_INET6)
        id->idiag_if = theirs->in6.sin6_scope_id;
    end_of(theirs, id->idiag_src, &id->idiag_sport);
    end_of(ours, id->idiag_dst, &id->idiag_dport);
    if (!sock_diag_ask(diag, 0, &request))
        return false;
    got = recv(diag, &answer, sizeof(answer), MSG_DONTWAIT);
    if (got < (ssize_t)(sizeof(answer.head) + sizeof(answer.is)) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || !answer.is.idiag_inode ||
        answer.is.id.idiag_sport != id->idiag_sport || answer.is.id.idiag_dport != id->idiag_dport)
        return false;
    *ret = answer.is.idiag_uid;
    return true;
}

void caller_of(int diag, int fd, unsigned char *ret)
{
    union address theirs = {.any = {.sa_family = AF_UNSPEC}}, ours = theirs;
    socklen_t length = sizeof(theirs), our_length = sizeof(ours);
    struct ucred peer;
    uint32_t user;

    if (getpeername(fd, &theirs.any, &length) || getsockname(fd, &ours.any, &our_length))
        theirs.any.sa_family = AF_UNSPEC;
    caller_at(&theirs.any, ret);
    length = sizeof(peer);
    if (theirs.any.sa_family == AF_UNIX) {
        if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
            by_user(peer.uid, ret);
    } else if (theirs.any.sa_family != AF_UNSPEC && diag >= 0 && ask(diag, &theirs, &ours, &user)) {
        by_user(user, ret);
    }
}
