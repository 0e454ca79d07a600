/* SPDX-License-Identifier: BSD-2-Clause */
#include "descriptors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "living.h"
#include "reach.h"

#define NAMED_MOST 4   /* of a list */
#define LINK_MOST  80  /* bytes of a name in a list */
#define POLL_MOST  256 /* descriptors of a list that are looked at */

/* Reads the file; the caller frees the text; NULL: there is none. The kernel may wait for the
 * same as the file: it holds an epoll descriptor's lock while it asks what that watches. */
static char *read_info(pid_t pid, pid_t tid, uint64_t fd)
{
    char path[96], *text;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%" PRIu64, (int)pid, (int)tid, fd);
    reach_text(pid, path, &text);
    return text;
}

static bool read_link(pid_t pid, pid_t tid, uint64_t fd, char *ret, size_t size)
{
    char path[96];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%" PRIu64, (int)pid, (int)tid, fd);
    length = reach_link(pid, path, ret, size);
    return length >= 0;
}

bool descriptor_read(pid_t pid, pid_t tid, uint64_t fd, struct descriptor *ret)
{
    char *text = read_info(pid, tid, fd), *rest = text;
    const char *line;

    *ret = (struct descriptor){.ino = 0};
    while (rest && (line = strsep(&rest, "\n"))) {
        sscanf(line, "ino: %" SCNu64, &ret->ino);
        sscanf(line, "mnt_id: %" SCNu64, &ret->mount);
    }
    free(text);
    return text && read_link(pid, tid, fd, ret->link, sizeof(ret->link));
}

bool descriptor_same(const struct descriptor *a, const struct descriptor *b)
{
    return a->ino == b->ino && a->mount == b->mount && !strcmp(a->link, b->link);
}

bool descriptor_number(const char *link, const char *kind, uint64_t *ret)
{
    size_t length = strlen(kind);
    char *end;

    if (strncmp(link, kind, length) != 0 || link[length] != ':' || link[length + 1] != '[')
        return false;
    *ret = strtoull(link + length + 2, &end, 10);
    return *end == ']';
}

/* ---- mounts ---- */

/* Finds the kernel's name of a block device; false: it has none. */
static bool device_name(unsigned major_number, unsigned minor_number, char *ret, size_t size)
{
    char path[64], link[256];
    const char *slash;
    ssize_t length;

    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major_number, minor_number);
    length = readlink(path, link, sizeof(link) - 1);
    if (length < 0)
        return false;
    link[length] = '\0';
    slash = strrchr(link, '/');
    snprintf(ret, size, "%.64s", slash ? slash + 1 : link);
    return true;
}

void descriptor_device(uint32_t device, char *ret, size_t size)
{
    unsigned major_number = device >> 20, minor_number = device & 0xfffff;

    if (!device_name(major_number, minor_number, ret, size))
        snprintf(ret, size, "%u:%u", major_number, minor_number);
}

void descriptor_mount(pid_t pid, uint64_t mount, char *ret, size_t size, uint32_t *ret_device)
{
    char path[64], *line = NULL;
    size_t room = 0;
    FILE *in;

    *ret = '\0';
    *ret_device = 0;
    snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)living_thread(pid));
    in = fopen(path, "re");
    while (in && getline(&line, &room, in) > 0) {
        unsigned major_number, minor_number;
        const char *type = strstr(line, " - ");
        char name[32] = "", source[96] = "";
        uint64_t number;

        if (sscanf(line, "%" SCNu64 " %*d %u:%u", &number, &major_number, &minor_number) != 3 ||
            number != mount)
            continue;
        *ret_device = major_number << 20 | minor_number;
        if (!device_name(major_number, minor_number, ret, size) && type &&
            sscanf(type, " - %31s %95s", name, source) >= 1)
            snprintf(ret, size, "%s%s%s", name, *source && strcmp(name, source) ? " " : "",
                     strcmp(name, source) ? source : "");
        break;
    }
    free(line);
    if (in)
        fclose(in);
}

/* ---- lists ---- */

struct list {
    pid_t pid, tid;
    char *text;
    size_t size, used;
    unsigned count, named;
};

/* ino: the number of the wanted file; 0: any file. */
static void add_to_list(struct list *list, uint64_t fd, uint64_t ino)
{
    struct descriptor descriptor;

    list->count++;
    if (list->named == NAMED_MOST || list->used + LINK_MOST + 32 > list->size)
        return;
    list->named++;
    list->used += (size_t)snprintf(list->text + list->used, list->size - list->used, "%s%" PRIu64,
                                   list->used ? ", " : "", fd);
    if (descriptor_read(list->pid, list->tid, fd, &descriptor) &&
        (!ino || !descriptor.ino || descriptor.ino == ino))
        list->used += (size_t)snprintf(list->text + list->used, list->size - list->used, ": %.*s",
                                       LINK_MOST, descriptor.link);
}

static bool end_list(struct list *list, unsigned *ret_count)
{
    if (list->count > list->named)
        snprintf(list->text + list->used, list->size - list->used, "%s%u more",
                 list->used ? ", " : "", list->count - list->named);
    *ret_count = list->count;
    return true;
}

bool descriptor_list_epoll(pid_t pid, pid_t tid, uint64_t fd, char *ret, size_t size,
                           unsigned *ret_count)
{
    struct list list = {.pid = pid, .tid = tid, .text = ret, .size = size};
    char *text = read_info(pid, tid, fd), *rest = text;
    const char *line;

    *ret = '\0';
    while (rest && (line = strsep(&rest, "\n"))) {
        const char *ino = strstr(line, " ino:");
        uint64_t number;

        if (sscanf(line, "tfd: %" SCNu64, &number) == 1)
            add_to_list(&list, number, ino ? strtoull(ino + 5, NULL, 16) : 0);
    }
    free(text);
    if (!text)
        return false;
    return end_list(&list, ret_count);
}

static bool copy(pid_t tid, uint64_t from, void *to, size_t bytes)
{
    return reach_memory(tid, from, to, bytes) == (ssize_t)bytes;
}

bool descriptor_list_poll(pid_t pid, pid_t tid, uint64_t list_at, uint64_t count, char *ret,
                          size_t size, unsigned *ret_count)
{
    struct list list = {.pid = pid, .tid = tid, .text = ret, .size = size};
    struct pollfd polls[POLL_MOST];

    *ret = '\0';
    if (count > POLL_MOST || (count && !copy(tid, list_at, polls, count * sizeof(*polls))))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (polls[i].fd >= 0)
            add_to_list(&list, (uint64_t)polls[i].fd, 0);
    }
    return end_list(&list, ret_count);
}

/* The kernel writes the sets only when the call ends. */
bool descriptor_list_select(pid_t pid, pid_t tid, const uint64_t args[6], char *ret, size_t size,
                            unsigned *ret_count)
{
    struct list list = {.pid = pid, .tid = tid, .text = ret, .size = size};
    unsigned char sets[3][FD_SETSIZE / 8] = {{0}};
    uint64_t count = (uint32_t)args[0];
    /* The sets are read in whole words, as the kernel reads them. */
    size_t bytes = (size_t)((count + 63) / 64 * 8);

    *ret = '\0';
    if (count > FD_SETSIZE)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (args[i + 1] && bytes && !copy(tid, args[i + 1], sets[i], bytes))
            return false;
    }
    for (size_t fd = 0; fd < count; fd++) {
        if ((sets[0][fd / 8] | sets[1][fd / 8] | sets[2][fd / 8]) >> fd % 8 & 1)
            add_to_list(&list, fd, 0);
    }
    return end_list(&list, ret_count);
}

bool descriptor_is_alone(pid_t pid)
{
    unsigned threads = 0;
    char path[64], line[256];
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    in = fopen(path, "re");
    while (in && !threads && fgets(line, sizeof(line), in))
        sscanf(line, "Threads: %u", &threads);
    if (in)
        fclose(in);
    return threads == 1;
}

mode_t descriptor_other_end(pid_t pid, pid_t tid, uint64_t fd)
{
    struct stat about;
    char path[96];
    mode_t mode;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%" PRIu64, (int)pid, (int)tid, fd);
    if (lstat(path, &about))
        return 0;
    mode = about.st_mode & (S_IRUSR | S_IWUSR);
    return mode == S_IRUSR ? S_IWUSR : mode == S_IWUSR ? S_IRUSR : 0;
}

void descriptor_address(pid_t tid, uint64_t address, uint64_t length, char *ret, size_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to = {.any = {0}};
    const size_t room = sizeof(to) - 1, want = length < room ? length : room;
    char text[INET6_ADDRSTRLEN];

    if (want < sizeof(to.any.sa_family) || !copy(tid, address, &to, want))
        return;
    if (to.any.sa_family == AF_UNIX && want > offsetof(struct sockaddr_un, sun_path)) {
        bool abstract = !to.local.sun_path[0]; /* its name has no end but the length's */
        int bytes = (int)(want - offsetof(struct sockaddr_un, sun_path)) - abstract;

        snprintf(ret, size, "to unix %s%.*s", abstract ? "@" : "", bytes,
                 to.local.sun_path + abstract);
    } else if (to.any.sa_family == AF_INET && want >= sizeof(to.v4) &&
               inet_ntop(AF_INET, &to.v4.sin_addr, text, sizeof(text))) {
        snprintf(ret, size, "to %s:%u", text, ntohs(to.v4.sin_port));
    } else if (to.any.sa_family == AF_INET6 && want >= sizeof(to.v6) &&
               inet_ntop(AF_INET6, &to.v6.sin6_addr, text, sizeof(text))) {
        snprintf(ret, size, "to [%s]:%u", text, ntohs(to.v6.sin6_port));
    }
}
