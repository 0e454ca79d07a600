/* SPDX-License-Identifier: BSD-2-Clause */
#include "array.h"
#include "living.h"
#include "sockets.h"
#include "now.h"
#include "reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPACES 8 /* namespaces whose lists are kept */
#define FRESH_NS                                                                                   \
    1000000000ull                 /* for how long a list is believed: a socket keeps its peer,     \
                                     unless its program connects it again */
#define LEAST_NS     100000000ull /* it is read again no sooner than this, */
#define COST_TIMES   20           /* nor than so many times what it took of a processor */
#define SOCKETS_MOST (1u << 20)

struct socket_row {
    uint64_t inode;
    const char *protocol; /* "tcp", "unix", ... */
    char *local, *remote; /* unix: its path, or "" */
    bool listens;
};

struct space {
    uint64_t netns; /* 0: free */
    uint64_t read_ns, again_ns;
    struct socket_row *rows; /* by inode */
    size_t count, room;
};

struct sockets {
    struct space spaces[SPACES];
    size_t next;  /* that is given up for another */
    int diag;     /* -1: none */
    uint64_t own; /* namespace, that diag speaks of */
};

static uint64_t netns_of(pid_t pid, const char *process)
{
    char path[64], link[64] = "";
    uint64_t ret = 0;

    snprintf(path, sizeof(path), "/proc/%s/ns/net", process);
    if (reach_link(pid, path, link, sizeof(link)) < 0 || sscanf(link, "net:[%" SCNu64, &ret) != 1)
        return 0;
    return ret;
}

static void empty(struct space *space)
{
    for (size_t i = 0; i < space->count; i++) {
        free(space->rows[i].local);
        free(space->rows[i].remote);
    }
    free(space->rows);
    *space = (struct space){0};
}

int sockets_open(struct sockets **ret)
{
    struct sockets *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    s->own = netns_of(0, "self");
    *ret = s;
    return 0;
}

void sockets_close(struct sockets *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < SPACES; i++)
        empty(&s->spaces[i]);
    if (s->diag >= 0)
        close(s->diag);
    free(s);
}

/* ---- lists ---- */

static void add(struct space *space, const char *protocol, uint64_t inode, bool listens,
                const char *local, const char *remote)
{
    struct socket_row row = {.inode = inode, .protocol = protocol, .listens = listens};

    if (!inode || space->count == SOCKETS_MOST)
        return;
    row.local = strdup(local);
    row.remote = strdup(remote);
    if (!row.local || !row.remote || array_add(space->rows, space->count, space->room, row)) {
        free(row.local);
        free(row.remote);
    }
}

/* "0100007F:1F90": words as they lie in memory; *ret_none: no address. False: not understood. */
static bool parse_address(const char *text, char *ret, size_t size, bool *ret_none)
{
    uint32_t words[4] = {0};
    char address[INET6_ADDRSTRLEN];
    unsigned port;
    size_t digits = strcspn(text, ":"), count = digits / 8;
    bool six = count == 4;

    if ((count != 1 && !six) || sscanf(text + digits, ":%x", &port) != 1)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (sscanf(text + 8 * i, "%8" SCNx32, &words[i]) != 1)
            return false;
    }
    if (!inet_ntop(six ? AF_INET6 : AF_INET, words, address, sizeof(address)))
        return false;
    *ret_none = !port && !words[0] && !words[1] && !words[2] && !words[3];
    snprintf(ret, size, six ? "[%s]:%u" : "%s:%u", address, port);
    return true;
}

#define TCP_LISTEN_ 0x0a

static void read_inet(FILE *in, const char *protocol, struct space *space)
{
    char line[512], texts[2][64], local[80], remote[80];
    unsigned state;
    uint64_t inode;
    bool none;

    while (fgets(line, sizeof(line), in)) {
        if (sscanf(line, "%*s %63[0-9A-Fa-f:] %63[0-9A-Fa-f:] %x %*s %*s %*s %*s %*s %" SCNu64,
                   texts[0], texts[1], &state, &inode) == 4 &&
            parse_address(texts[0], local, sizeof(local), &none) &&
            parse_address(texts[1], remote, sizeof(remote), &none))
            add(space, protocol, inode, state == TCP_LISTEN_ && *protocol == 't', local,
                none ? "" : remote);
    }
}

#define UNIX_LISTENS_ 0x10000

static void read_unix(FILE *in, const char *protocol, struct space *space)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, in) > 0) {
        unsigned flags;
        uint64_t inode;
        int path = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%*s %*s %*s %x %*s %*s %" SCNu64 " %n", &flags, &inode, &path) == 2 &&
            path)
            add(space, protocol, inode, flags & UNIX_LISTENS_, line + path, "");
    }
    free(line);
}

static int by_inode(const void *left, const void *right)
{
    const struct socket_row *a = left, *b = right;

    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

static void read_lists(struct space *space, pid_t pid, uint64_t netns)
{
    static const struct {
        const char *file, *protocol;
        void (*read)(FILE *in, const char *protocol, struct space *space);
    } lists[] = {
        {"tcp", "tcp", read_inet},  {"tcp6", "tcp", read_inet},  {"udp", "udp", read_inet},
        {"udp6", "udp", read_inet}, {"unix", "unix", read_unix},
    };
    uint64_t began = now_by(CLOCK_THREAD_CPUTIME_ID), cost;

    empty(space);
    space->netns = netns;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        char path[64];
        FILE *in;

        snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, lists[i].file);
        in = fopen(path, "re");
        if (!in)
            continue;
        lists[i].read(in, lists[i].protocol, space);
        fclose(in);
    }
    array_sort(space->rows, space->count, by_inode);
    space->read_ns = now_ns();
    cost = COST_TIMES * (now_by(CLOCK_THREAD_CPUTIME_ID) - began);
    space->again_ns = space->read_ns + (cost > LEAST_NS ? cost : LEAST_NS);
}

static struct space *space_of(struct sockets *s, pid_t pid, uint64_t netns)
{
    for (size_t i = 0; i < SPACES; i++) {
        if (s->spaces[i].netns == netns)
            return &s->spaces[i];
    }
    s->next = (s->next + 1) % SPACES;
    read_lists(&s->spaces[s->next], pid, netns);
    return &s->spaces[s->next];
}

static const struct socket_row *row_of(const struct space *space, uint64_t inode)
{
    const struct socket_row wanted = {.inode = inode};

    return array_search(&wanted, space->rows, space->count, by_inode);
}

/* ---- other ends ---- */

/* Finds the other end of a Unix socket; 0: not known. */
static uint64_t unix_peer(const struct sockets *s, uint64_t inode)
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
                .udiag_show = UDIAG_SHOW_PEER,
                .udiag_cookie = {~0u, ~0u}},
    };
    _Alignas(struct nlmsghdr) char answer[1024];
    const struct nlmsghdr *head = (const void *)answer;
    const struct unix_diag_msg *about = NLMSG_DATA(answer);
    uint32_t peer = 0;
    ssize_t got;
    size_t at = NLMSG_LENGTH(sizeof(*about));

    if (s->diag < 0 || inode > UINT32_MAX ||
        send(s->diag, &request, sizeof(request), 0) != sizeof(request))
        return 0;
    got = recv(s->diag, answer, sizeof(answer), 0);
    if (got < (ssize_t)at || head->nlmsg_type != SOCK_DIAG_BY_FAMILY || about->udiag_ino != inode)
        return 0;
    /* Attributes: length, kind, value, each at a multiple of 4. */
    while (at + 4 <= (size_t)got) {
        uint16_t length, kind;

        memcpy(&length, answer + at, sizeof(length));
        memcpy(&kind, answer + at + 2, sizeof(kind));
        if (length < 4 || at + length > (size_t)got)
            break;
        if (kind == UNIX_DIAG_PEER && length >= 8)
            memcpy(&peer, answer + at + 4, sizeof(peer));
        at += (length + 3u) & ~3u;
    }
    return peer;
}

static uint64_t inet_peer(const struct space *space, const struct socket_row *row)
{
    if (!*row->remote)
        return 0;
    for (size_t i = 0; i < space->count; i++) {
        const struct socket_row *other = &space->rows[i];

        if (other != row && other->protocol == row->protocol &&
            !strcmp(other->local, row->remote) && !strcmp(other->remote, row->local))
            return other->inode;
    }
    return 0;
}

static void write_unix(const struct space *space, const struct socket_row *row, uint64_t peer,
                       char *ret, size_t size)
{
    const struct socket_row *other = peer ? row_of(space, peer) : NULL;
    const char *path = *row->local ? row->local : other ? other->local : "";

    snprintf(ret, size, "unix %s%s", *path ? path : "without a name",
             row->listens ? " (listens)" : "");
}

int sockets_name(struct sockets *s, pid_t pid, uint64_t inode, char *ret, size_t size,
                 uint64_t *ret_netns, uint64_t *ret_peer)
{
    const struct socket_row *row;
    struct space *space;
    uint64_t netns, now = now_ns();
    char process[16];
    bool is_unix;

    pid = living_thread(pid);
    snprintf(process, sizeof(process), "%d", (int)pid);
    netns = netns_of(pid, process);
    if (!netns)
        return -ENOENT;
    space = space_of(s, pid, netns);
    row = row_of(space, inode);
    if (now > space->read_ns + (row ? FRESH_NS : 0)) {
        if (now <= space->again_ns)
            return -EAGAIN;
        read_lists(space, pid, netns);
        row = row_of(space, inode);
    }
    if (!row)
        return -ENOENT;
    is_unix = !strcmp(row->protocol, "unix");
    *ret_netns = netns;
    *ret_peer = !is_unix ? inet_peer(space, row) : netns == s->own ? unix_peer(s, inode) : 0;
    if (is_unix)
        write_unix(space, row, *ret_peer, ret, size);
    else
        snprintf(ret, size, "%s %s%s%s", row->protocol, row->local,
                 *row->remote   ? " -> "
                 : row->listens ? " (listens)"
                                : "",
                 row->remote);
    return 0;
}
