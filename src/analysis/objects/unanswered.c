/* SPDX-License-Identifier: BSD-2-Clause */
#include "unanswered.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "array.h"
#include "descriptors.h"
#include "now.h"
#include "reach.h"
#include "sock_diag.h"
#include "sockets.h"

#define LEAST_NS     UINT64_C(50000000) /* between two looks */
#define COST_TIMES   100
#define FILES_MOST   16384 /* descriptors of all processes that are looked at */
#define ENDS_MOST    4096
#define ANSWER_BYTES 65536

enum { ESTABLISHED = 1, LISTEN = 10 };

static int by_number(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* What a descriptor is called the kernel says; no file system is asked, but a process in exec may
 * have the lock that procfs takes. */
static void add_sockets(pid_t pid, unsigned *left, uint64_t **inodes, size_t *count)
{
    char path[40], *links = NULL;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    length = *left ? reach_links(pid, path, &links) : 0;
    for (const char *link = links; link && link < links + length && *left;
         link += strlen(link) + 1, (*left)--) {
        uint64_t inode;

        if (descriptor_number(++link, "socket", &inode) && array_append(*inodes, *count, inode))
            break;
    }
    free(links);
}

/* Finds the times of a connection among the attributes of its message. */
static bool read_times(const char *at, size_t left, struct tcp_info *ret)
{
    size_t size;
    const void *value = sock_diag_attribute(at, left, INET_DIAG_INFO, &size);

    if (!value || size < offsetof(struct tcp_info, tcpi_pmtu))
        return false;
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, value, size < sizeof(*ret) ? size : sizeof(*ret));
    return true;
}

static bool has_inode(const uint64_t *inodes, size_t count, uint64_t inode)
{
    return array_search(&inode, inodes, count, by_number) != NULL;
}

static int add_end(struct unanswered_found *found, const struct inet_diag_msg *about,
                   uint32_t sent_ms)
{
    struct unanswered_end end = {.local_port = ntohs(about->id.idiag_sport), .sent_ms = sent_ms};
    bool is_6 = about->idiag_family == AF_INET6;
    char address[INET6_ADDRSTRLEN];

    if (found->count == ENDS_MOST ||
        !inet_ntop(about->idiag_family, about->id.idiag_dst, address, sizeof(address)))
        return 0;
    snprintf(end.remote, sizeof(end.remote), is_6 ? "[%s]:%u" : "%s:%u", address,
             (unsigned)ntohs(about->id.idiag_dport));
    return array_append(found->ends, found->count, end);
}

/* A connection that was just made has the same times for both, as has who asks again as soon as an
 * answer is there, within a tick: then it has sent more often. */
static bool owes(const struct tcp_info *info)
{
    return info->tcpi_last_data_sent < info->tcpi_last_data_recv ||
           (info->tcpi_last_data_sent == info->tcpi_last_data_recv &&
            info->tcpi_data_segs_out > info->tcpi_data_segs_in) ||
           (info->tcpi_data_segs_out && !info->tcpi_data_segs_in);
}

static int take(struct unanswered_found *found, const uint64_t *inodes, size_t inode_count,
                const char *body, size_t length)
{
    struct inet_diag_msg about;
    struct tcp_info times;

    if (length < sizeof(about))
        return 0;
    memcpy(&about, body, sizeof(about));
    if (about.idiag_state == LISTEN) {
        uint16_t port = ntohs(about.id.idiag_sport);

        found->listens[port / 8] |= (uint8_t)(1u << port % 8);
        return 0;
    }
    if (about.idiag_state != ESTABLISHED || !has_inode(inodes, inode_count, about.idiag_inode) ||
        !read_times(body + sizeof(about), length - sizeof(about), &times) || !owes(&times))
        return 0;
    return add_end(found, &about, times.tcpi_last_data_sent);
}

int unanswered_parse(struct unanswered_found *found, const uint64_t *inodes, size_t inode_count,
                     const void *answer, size_t length)
{
    const char *at = answer;

    while (length >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr head;
        size_t step;
        int result;

        memcpy(&head, at, sizeof(head));
        if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > length ||
            head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
            return -ENODATA;
        result = take(found, inodes, inode_count, at + NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN);
        if (result)
            return result;
        step = NLMSG_ALIGN(head.nlmsg_len);
        if (step >= length)
            return 0;
        at += step;
        length -= step;
    }
    return 0;
}

/* Asks for all of a family. */
static void list(struct unanswered_found *found, const uint64_t *inodes, size_t inode_count,
                 uint8_t family)
{
    const struct inet_diag_req_v2 request = {.sdiag_family = family,
                                             .sdiag_protocol = IPPROTO_TCP,
                                             .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                                             .idiag_states = 1u << ESTABLISHED | 1u << LISTEN};
    int diag = sock_diag_open();
    char *answer = malloc(ANSWER_BYTES);
    ssize_t got;

    if (diag >= 0 && answer && sock_diag_ask(diag, NLM_F_DUMP, &request)) {
        do
            got = recv(diag, answer, ANSWER_BYTES, MSG_DONTWAIT);
        while (got > 0 && !unanswered_parse(found, inodes, inode_count, answer, (size_t)got));
    }
    free(answer);
    if (diag >= 0)
        close(diag);
}

static struct unanswered_row *row_of(struct unanswered *u, const char *remote)
{
    for (size_t i = 0; i < u->count; i++) {
        if (!strcmp(u->rows[i].remote, remote))
            return &u->rows[i];
    }
    if (u->count == UNANSWERED_MOST)
        return NULL;
    u->rows[u->count] = (struct unanswered_row){.connections = 0};
    snprintf(u->rows[u->count].remote, sizeof(u->rows[u->count].remote), "%s", remote);
    return &u->rows[u->count++];
}

static void add_look(struct unanswered *u, const struct unanswered_found *found)
{
    u->looks++;
    for (size_t i = 0; i < found->count; i++) {
        const struct unanswered_end *end = &found->ends[i];
        struct unanswered_row *row;

        if (found->listens[end->local_port / 8] & 1u << end->local_port % 8)
            continue;
        row = row_of(u, end->remote);
        if (!row)
            continue;
        if (row->last_look != u->looks) {
            row->last_look = u->looks;
            row->looks++;
            row->now = 0;
        }
        row->now++;
        row->connections = row->now > row->connections ? row->now : row->connections;
        row->longest_ms = end->sent_ms > row->longest_ms ? end->sent_ms : row->longest_ms;
    }
}

bool unanswered_is_due(const struct unanswered *u)
{
    return now_ns() >= u->again_ns;
}

void unanswered_look(struct unanswered *u, const pid_t *pids, size_t count)
{
    uint64_t now = now_ns(), cost;
    struct unanswered_found *found;
    uint64_t *inodes = NULL;
    size_t inode_count = 0;
    unsigned left = FILES_MOST;
    uint64_t own;

    if (now < u->again_ns)
        return;
    own = sockets_netns(0);
    found = calloc(1, sizeof(*found));
    for (size_t i = 0; i < count && found; i++)
        if (left && own && sockets_netns(pids[i]) == own)
            add_sockets(pids[i], &left, &inodes, &inode_count);
    if (inode_count) {
        array_sort(inodes, inode_count, by_number);
        list(found, inodes, inode_count, AF_INET);
        list(found, inodes, inode_count, AF_INET6);
    }
    if (found) {
        add_look(u, found);
        free(found->ends);
    }
    free(found);
    free(inodes);
    cost = COST_TIMES * (now_ns() - now);
    u->again_ns = now + (cost > LEAST_NS ? cost : LEAST_NS);
}
