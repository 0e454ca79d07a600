/* SPDX-License-Identifier: BSD-2-Clause */
#include "array.h"
#include "living.h"
#include "sockets.h"
#include "now.h"
#include "reach.h"
#include "table.h"
#include "unix_socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPACES 8 /* namespaces whose lists are kept */
#define FRESH_NS                                                                                   \
    1000000000ull                 /* for how long a list is believed: a socket keeps its peer,     \
                                     unless its program connects it again */
#define LEAST_NS     100000000ull /* it is read again no sooner than this, */
#define COST_TIMES   20           /* nor than so many times what it took of a processor */
#define SOCKETS_MOST (1u << 20)
#define OTHERS_MOST  1024  /* namespaces that are looked through for other ends, of the owner of */
#define STRANGE_MOST 64    /* the own one; of each other owner, */
#define STRANGERS    4     /* of whom there are so many */
#define KNOWN_MOST   65536 /* namespaces that are told apart */

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
    int diag;     /* of unix_socket.h; -1: none */
    uint64_t own; /* namespace, that diag speaks of; 0: none */
};

uint64_t sockets_netns(pid_t pid)
{
    char path[40] = "/proc/self/ns/net", link[64] = "";
    uint64_t ret = 0;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    if (reach_link(pid, path, link, sizeof(link)) < 0 || sscanf(link, "net:[%" SCNu64, &ret) != 1)
        return 0;
    return ret;
}

static void free_row(const struct socket_row *row)
{
    free(row->local);
    free(row->remote);
}

static void empty(struct space *space)
{
    for (size_t i = 0; i < space->count; i++)
        free_row(&space->rows[i]);
    free(space->rows);
    *space = (struct space){0};
}

int sockets_open(struct sockets **ret)
{
    struct sockets *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->diag = unix_socket_open();
    s->own = s->diag >= 0 ? sockets_netns(0) : 0;
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

/* False: there is no room. */
static bool add(struct space *space, const char *protocol, uint64_t inode, bool listens,
                const char *local, const char *remote)
{
    struct socket_row row = {.inode = inode, .protocol = protocol, .listens = listens};

    if (!inode)
        return true;
    if (space->count == SOCKETS_MOST)
        return false;
    row.local = strdup(local);
    row.remote = strdup(remote);
    if (row.local && row.remote && !array_add(space->rows, space->count, space->room, row))
        return true;
    free_row(&row);
    return false;
}

/* "0100007F:1F90": words as they lie in memory; *ret_none: no address. False: not understood. What
 * an IPv6 socket has of IPv4 is written as the other end, which may be one of IPv4, has it. */
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
    if (six && !words[0] && !words[1] && words[2] == htonl(0xffff)) {
        words[0] = words[3];
        words[2] = 0;
        six = false;
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

/* "sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode": the protocol, and the port. */
static void read_netlink(FILE *in, const char *protocol, struct space *space)
{
    static const char *const names[] = {
        [0] = "route",           [4] = "sock_diag", [6] = "xfrm",       [7] = "selinux",
        [9] = "audit",           [10] = "fib",      [11] = "connector", [12] = "netfilter",
        [15] = "kobject-uevent", [16] = "generic"};
    unsigned number, port;
    char line[512], name[64];
    uint64_t inode;

    while (fgets(line, sizeof(line), in)) {
        if (sscanf(line, "%*x %u %u %*s %*s %*s %*s %*s %*s %" SCNu64, &number, &port, &inode) != 3)
            continue;
        if (number < sizeof(names) / sizeof(*names) && names[number])
            snprintf(name, sizeof(name), "%s, port %u", names[number], port);
        else
            snprintf(name, sizeof(name), "protocol %u, port %u", number, port);
        add(space, protocol, inode, false, name, "");
    }
}

/* "sk RefCnt Type Proto Iface R Rmem User Inode": the protocol, and the interface's number. */
static void read_packet(FILE *in, const char *protocol, struct space *space)
{
    unsigned number, interface;
    char line[512], name[64];
    uint64_t inode;

    while (fgets(line, sizeof(line), in)) {
        if (sscanf(line, "%*x %*s %*s %x %u %*s %*s %*s %" SCNu64, &number, &interface, &inode) !=
            3)
            continue;
        snprintf(name, sizeof(name), interface ? "0x%04x, interface %u" : "0x%04x, any interface",
                 number, interface);
        add(space, protocol, inode, false, name, "");
    }
}

#define UNIX_LISTENS_ 0x10000

/* The kernel's columns as it writes them, and nothing else: names are written as they are, and one
 * with a newline may look like another socket's row. */
static bool parse_unix(char *line, uint64_t *ret_inode, bool *ret_listens, const char **ret_name)
{
    char number[20], again[128], *end = strchr(line, '\n');
    unsigned references, flags, type, state;
    size_t length;

    if (!end || sscanf(line, "%16[0-9a-f]: %x 00000000 %x %x %x %" SCNu64, number, &references,
                       &flags, &type, &state, ret_inode) != 6)
        return false;
    *end = '\0';
    length = (size_t)snprintf(again, sizeof(again), "%s: %08X 00000000 %08X %04X %02X %5" PRIu64,
                              number, references, flags, type, state, *ret_inode);
    if (strncmp(line, again, length) != 0 || (line[length] && line[length] != ' '))
        return false;
    *ret_listens = flags & UNIX_LISTENS_;
    *ret_name = line + length + (line[length] == ' ');
    return true;
}

/* All of them or none: of two rows with one inode the true one might be left out. */
static void read_unix(FILE *in, const char *protocol, struct space *space)
{
    size_t before = space->count;
    bool listens, whole = true;
    const char *name;
    uint64_t inode;
    char line[512];

    while (whole && fgets(line, sizeof(line), in))
        whole = !parse_unix(line, &inode, &listens, &name) ||
                add(space, protocol, inode, listens, name, "");
    while ((!whole || ferror(in)) && space->count > before)
        free_row(&space->rows[--space->count]);
}

static int by_inode(const void *left, const void *right)
{
    const struct socket_row *a = left, *b = right;

    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* Of rows with one inode, those of Unix sockets may be somebody's name. */
static void drop_doubtful(struct space *space)
{
    size_t kept = 0;
    uint64_t last = 0;

    for (size_t i = 0; i < space->count; i++) {
        struct socket_row row = space->rows[i];
        bool again =
            row.inode == last || (i + 1 < space->count && space->rows[i + 1].inode == row.inode);

        last = row.inode;
        if (again && !strcmp(row.protocol, "unix"))
            free_row(&row);
        else
            space->rows[kept++] = row;
    }
    space->count = kept;
}

/* is_own: it is this process's too, to which sock_diag tells of Unix sockets. */
static void read_lists(struct space *space, pid_t pid, uint64_t netns, bool is_own)
{
    static const struct {
        const char *file, *protocol;
        void (*read)(FILE *in, const char *protocol, struct space *space);
    } lists[] = {
        {"tcp", "tcp", read_inet},         {"tcp6", "tcp", read_inet},
        {"udp", "udp", read_inet},         {"udp6", "udp", read_inet},
        {"raw", "raw", read_inet},         {"raw6", "raw", read_inet},
        {"icmp", "icmp", read_inet},       {"netlink", "netlink", read_netlink},
        {"packet", "packet", read_packet}, {"unix", "unix", read_unix},
    };
    uint64_t began = now_by(CLOCK_THREAD_CPUTIME_ID), cost;

    empty(space);
    space->netns = netns;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        char path[64], process[16] = "self";
        FILE *in;

        if (is_own && lists[i].read == read_unix)
            continue;
        if (!is_own)
            snprintf(process, sizeof(process), "%d", (int)pid);
        snprintf(path, sizeof(path), "/proc/%s/net/%s", process, lists[i].file);
        in = fopen(path, "re");
        if (!in)
            continue;
        lists[i].read(in, lists[i].protocol, space);
        fclose(in);
    }
    array_sort(space->rows, space->count, by_inode);
    drop_doubtful(space);
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
    read_lists(&s->spaces[s->next], pid, netns, netns == s->own);
    return &s->spaces[s->next];
}

static const struct socket_row *row_of(const struct space *space, uint64_t inode)
{
    const struct socket_row wanted = {.inode = inode};

    return array_search(&wanted, space->rows, space->count, by_inode);
}

/* ---- other ends ---- */

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

/* ---- ends in other namespaces ---- */

bool sockets_take_name(const char *name, struct sockets_wanted *ret)
{
    return sscanf(name, "tcp %79s -> %79s", ret->local, ret->remote) == 2 &&
           strncmp(ret->local, "127.", 4) != 0 && strncmp(ret->local, "[::1]", 5) != 0;
}

static int by_remote(const void *left, const void *right)
{
    const struct sockets_wanted *a = left, *b = right;

    return strcmp(a->remote, b->remote);
}

struct elsewhere {
    pid_t pid; /* that is in it */
    uint64_t netns;
    uint64_t
        owner; /* the user namespace whose root rules it; 0: not known, as of one around ours */
};

/* Nobody's connection is another's because a namespace that he made says so: who made one has any
 * address there. It counts where its owner could have made the waiting socket's, or this process's.
 */
static bool may_hold_end(const struct elsewhere *space, const struct sockets_wanted *row,
                         uint64_t own)
{
    return space->netns != row->netns && space->owner &&
           (space->owner == own || space->owner == row->owner);
}

static void look_at_row(struct sockets_wanted *rows, size_t count, const struct elsewhere *space,
                        uint64_t own, const struct socket_row *row)
{
    size_t at = array_front(i, count, strcmp(rows[i].remote, row->local) < 0);

    for (; at < count && !strcmp(rows[at].remote, row->local); at++) {
        if (may_hold_end(space, &rows[at], own) && !strcmp(rows[at].local, row->remote))
            rows[at].peer = rows[at].found++ ? 0 : row->inode;
    }
}

static void look_through(struct sockets_wanted *rows, size_t count, const struct elsewhere *place,
                         uint64_t own)
{
    static const char *const files[] = {"tcp", "tcp6"};
    struct space space = {.netns = place->netns};

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[64];
        FILE *in;

        snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)place->pid, files[i]);
        in = fopen(path, "re");
        if (!in)
            continue;
        read_inet(in, "tcp", &space);
        fclose(in);
    }
    /* It may have gone into another meanwhile. */
    for (size_t i = 0; i < space.count && (i || sockets_netns(place->pid) == place->netns); i++)
        look_at_row(rows, count, place, own, &space.rows[i]);
    empty(&space);
}

static uint64_t owner_of(pid_t pid, uint64_t netns)
{
    char path[64];
    struct stat space = {0}, owner = {0};
    int at, by = -1;

    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    at = open(path, O_RDONLY | O_CLOEXEC);
    if (at >= 0 && !fstat(at, &space) && space.st_ino == netns)
        by = ioctl(at, NS_GET_USERNS);
    if (by < 0 || fstat(by, &owner))
        owner.st_ino = 0;
    if (by >= 0)
        close(by);
    if (at >= 0)
        close(at);
    return owner.st_ino;
}

/* All namespaces, with a process in each: a user may have thousands of his own, also at the lowest
 * numbers. */
struct spaces {
    struct elsewhere *rows;
    size_t count;
    struct table by_netns;
};

static void find_spaces(struct spaces *ret)
{
    const struct dirent *entry;
    DIR *folder = opendir("/proc");
    bool room = true;

    while (folder && room && ret->count < KNOWN_MOST && (entry = readdir(folder))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        uint64_t netns = pid > 0 ? sockets_netns(pid) : 0;

        if (!netns || table_find_number(&ret->by_netns, netns))
            continue;
        room = !array_append(ret->rows, ret->count,
                             ((struct elsewhere){pid, netns, owner_of(pid, netns)})) &&
               !table_put_number(&ret->by_netns, netns, ret->count);
    }
    if (folder)
        closedir(folder);
}

/* Who owns the namespaces that are looked through, and how many of them were. */
struct owners {
    uint64_t own; /* this process's user namespace */
    uint64_t owner[STRANGERS];
    size_t count[STRANGERS], own_count;
};

/* Nobody's namespaces take the places of others'. */
static bool has_place(struct owners *o, uint64_t owner)
{
    size_t i = 0;

    if (owner == o->own)
        return o->own_count++ < OTHERS_MOST;
    while (i < STRANGERS && o->owner[i] && o->owner[i] != owner)
        i++;
    if (i == STRANGERS)
        return false;
    o->owner[i] = owner;
    return o->count[i]++ < STRANGE_MOST;
}

static bool owns_first_end(const struct sockets_wanted *rows, size_t count, uint64_t owner)
{
    size_t i = 0;

    while (i < count && rows[i].owner != owner)
        i++;
    return i < count;
}

void sockets_find_elsewhere(struct sockets_wanted *rows, size_t count)
{
    struct spaces spaces = {0};
    struct owners owners = {0};
    struct stat own;

    if (!stat("/proc/self/ns/user", &own))
        owners.own = own.st_ino;
    if (count)
        find_spaces(&spaces);
    array_sort(rows, count, by_remote);
    for (size_t i = 0; i < count; i++) {
        size_t number = table_find_number(&spaces.by_netns, rows[i].netns);

        rows[i].owner = number ? spaces.rows[number - 1].owner : rows[i].owner;
    }
    for (size_t k = 0; k < spaces.count; k++) {
        const struct elsewhere *at = &spaces.rows[k];

        if (at->owner && (at->owner == owners.own || owns_first_end(rows, count, at->owner)) &&
            has_place(&owners, at->owner))
            look_through(rows, count, at, owners.own);
    }
    table_free(&spaces.by_netns);
    free(spaces.rows);
}

/* ---- names ---- */

static void write_unix(const char *name, bool listens, char *ret, size_t size)
{
    snprintf(ret, size, "unix %s%s", *name ? name : "without a name", listens ? " (listens)" : "");
}

/* One of the own namespace, by its name or its peer's. */
static bool name_own_unix(const struct sockets *s, uint64_t inode, char *ret, size_t size,
                          uint64_t *ret_peer)
{
    struct unix_socket is, peer;
    const char *name = is.name;

    if (!unix_socket_read(s->diag, inode, &is))
        return false;
    if (!*name && unix_socket_read(s->diag, is.peer, &peer))
        name = peer.name;
    write_unix(name, is.listens, ret, size);
    *ret_peer = is.peer;
    return true;
}

int sockets_name(struct sockets *s, pid_t pid, uint64_t inode, char *ret, size_t size,
                 uint64_t *ret_netns, uint64_t *ret_peer)
{
    const struct socket_row *row;
    struct space *space;
    uint64_t netns, now = now_ns();
    bool is_unix;

    pid = living_thread(pid);
    netns = sockets_netns(pid);
    if (!netns)
        return -ENOENT;
    space = space_of(s, pid, netns);
    row = row_of(space, inode);
    if (!row && netns == s->own && name_own_unix(s, inode, ret, size, ret_peer)) {
        *ret_netns = netns;
        return 0;
    }
    if (now > space->read_ns + (row ? FRESH_NS : 0)) {
        if (now <= space->again_ns)
            return -EAGAIN;
        read_lists(space, pid, netns, netns == s->own);
        row = row_of(space, inode);
    }
    if (!row)
        return -ENOENT;
    is_unix = !strcmp(row->protocol, "unix");
    *ret_netns = netns;
    *ret_peer = is_unix ? 0 : inet_peer(space, row);
    if (is_unix)
        write_unix(row->local, row->listens, ret, size);
    else
        snprintf(ret, size, "%s %s%s%s", row->protocol, row->local,
                 *row->remote   ? " -> "
                 : row->listens ? " (listens)"
                                : "",
                 row->remote);
    return 0;
}
