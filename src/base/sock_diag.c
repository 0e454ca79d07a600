/* SPDX-License-Identifier: BSD-2-Clause */
#include "sock_diag.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int sock_diag_open(void)
{
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    /* Connected, it takes messages from nobody else. */
    if (diag >= 0 && connect(diag, (const void *)&kernel, sizeof(kernel))) {
        close(diag);
        diag = -1;
    }
    return diag;
}

bool sock_diag_ask(int diag, uint16_t flags, const struct inet_diag_req_v2 *ask)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } request = {
        .head = {.nlmsg_len = sizeof(request),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
        .ask = *ask,
    };

    return send(diag, &request, sizeof(request), MSG_DONTWAIT) == sizeof(request);
}

/* Attributes: length, kind, value, each at a multiple of 4. */
const void *sock_diag_attribute(const void *attributes, size_t left, uint16_t kind,
                                size_t *ret_size)
{
    const char *at = attributes;
    struct nlattr head;

    while (left >= sizeof(head)) {
        size_t step;

        memcpy(&head, at, sizeof(head));
        if (head.nla_len < sizeof(head) || head.nla_len > left)
            return NULL;
        if (head.nla_type == kind) {
            *ret_size = head.nla_len - sizeof(head);
            return at + sizeof(head);
        }
        step = NLA_ALIGN(head.nla_len);
        if (step > left)
            return NULL;
        at += step;
        left -= step;
    }
    return NULL;
}
