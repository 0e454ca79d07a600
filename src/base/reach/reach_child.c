/* SPDX-License-Identifier: BSD-2-Clause */
#include "reach_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "perf_list.h"
#include "plain_file.h"
#include "read_file.h"
#include "sandbox.h"

/* ---- memory ---- */

#define PAGES_MOST 512
#define PRESENT    (1ull << 63) /* /proc/PID/pagemap */
#define SWAPPED    (1ull << 62)
#define PIECES     64
#define PAGE_LEAST 4096u
#define PART       4096 /* what procfs hands out at once */
#define LINE_MOST  (4096 + 128)

/* linux/fs.h, since Linux 6.11 */
struct procmap_query_ {
    uint64_t size, flags, address; /* in */
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
};
#define PROCMAP_QUERY_ _IOWR(0x66, 17, struct procmap_query_)
#define VMA_READABLE   1u
#define VMA_SHARED     8u

/* Does the same on an older kernel: from the whole list. */
static uint64_t anonymous_end_by_list(FILE *maps, uint64_t address)
{
    char line[LINE_MOST];

    while (fgets(line, sizeof(line), maps)) {
        uint64_t start, end, ino;
        char flags[5];

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64, &start, &end, flags,
                   &ino) != 4 ||
            address >= end)
            continue;
        return address >= start && !ino && flags[0] == 'r' && flags[3] == 'p' ? end : 0;
    }
    return 0;
}

/* Finds the end of the private anonymous memory that an address lies in: its pages are zeros if
 * they are not there yet, and nobody is asked for these. 0: it lies in none, or may not be read. */
static uint64_t anonymous_end(pid_t pid, uint64_t address)
{
    struct procmap_query_ query = {.size = sizeof(query), .address = address};
    char path[64];
    uint64_t end;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    if (!maps)
        return 0;
    if (!ioctl(fileno(maps), PROCMAP_QUERY_, &query))
        end = !query.inode && (query.vma_flags & (VMA_READABLE | VMA_SHARED)) == VMA_READABLE
                  ? query.end
                  : 0;
    else
        end = errno == ENOENT ? 0 : anonymous_end_by_list(maps, address);
    fclose(maps);
    return end;
}

/* Reads what is known of so many pages from `first` on, as /proc/PID/pagemap has it; 0: nothing. */
static void read_pages(pid_t pid, uint64_t first, uint64_t *ret, size_t pages)
{
    ssize_t got = 0;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = pread(fd, ret, pages * sizeof(*ret), (off_t)(first * sizeof(*ret)));
        close(fd);
    }
    got = got > 0 ? got / (ssize_t)sizeof(*ret) : 0;
    memset(ret + got, 0, (pages - (size_t)got) * sizeof(*ret));
}

/* Returns how many of the bytes can be read without waiting for another process, or its file
 * system: up to the last page that is there. A change between this look and the copy can cost
 * this process's life, and nobody else's time. */
static size_t at_hand(pid_t pid, uint64_t address, size_t size)
{
    uint64_t entries[PAGES_MOST], page = (uint64_t)sysconf(_SC_PAGESIZE), first = address / page;
    uint64_t pages = (address + size - 1) / page - first + 1, anonymous = 0, end;

    pages = pages < PAGES_MOST ? pages : PAGES_MOST;
    read_pages(pid, first, entries, (size_t)pages);
    while (pages && !(entries[pages - 1] & (PRESENT | SWAPPED)))
        pages--;
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t at = (first + i) * page;

        if (entries[i] & (PRESENT | SWAPPED) || at < anonymous)
            continue;
        anonymous = anonymous_end(pid, at);
        if (!anonymous)
            return at > address ? (size_t)(at - address) : 0;
    }
    end = (first + pages) * page;
    return !pages ? 0 : end - address < size ? (size_t)(end - address) : size;
}

/* A piece that is not mapped ends the copy, and a piece is copied whole or not at all: so pieces
 * end where pages do, and are no longer than it takes to name all. */
static ssize_t copy_memory(pid_t pid, uint64_t address, unsigned char *to, size_t want)
{
    struct iovec local = {to, want}, remote[PIECES];
    size_t pieces = 0, taken = 0;
    ssize_t got;

    while (taken < want && pieces < PIECES) {
        size_t step = pieces + 1 < PIECES ? PAGE_LEAST - (size_t)((address + taken) % PAGE_LEAST)
                                          : want - taken;

        if (step > want - taken)
            step = want - taken;
        remote[pieces++] = (struct iovec){(void *)(uintptr_t)(address + taken), step};
        taken += step;
    }
    got = process_vm_readv(pid, &local, 1, remote, pieces, 0);
    return got < 0 ? -errno : got;
}

/* Reads memory. If none can be read, it returns what is wrong with the process, or -EFAULT, by
 * asking for an address where no program has memory. */
static ssize_t read_memory(const struct reach_ask *ask, unsigned char *area)
{
    size_t want = ask->size ? at_hand(ask->pid, ask->address, (size_t)ask->size) : 0;

    return want ? copy_memory(ask->pid, ask->address, area, want)
                : copy_memory(ask->pid, UINT64_MAX - 2 * PAGE_LEAST, area, 1);
}

/* ---- questions ---- */

/* Reads the list of a process's memory, which is long if it has many threads, as far as a
 * mapping behind an address. */
static ssize_t read_maps(const struct reach_ask *ask, unsigned char *area)
{
    size_t have = 0, line = 0;
    int fd = open(ask->text, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -errno : 1;

    while (got > 0 && have < ask->size) {
        got = read(fd, area + have, (size_t)(ask->size - have < PART ? ask->size - have : PART));
        got = got < 0 ? -errno : got;
        have += got > 0 ? (size_t)got : 0;
        /* This finds the last line that begins here: what is read ends at a line's end, or
         * within a line. */
        for (size_t i = have; i > line + 1; i--) {
            if (area[i - 2] == '\n') {
                line = i - 1;
                break;
            }
        }
        area[have] = '\0';
        if (strtoull((const char *)area + line, NULL, 16) > ask->address)
            break;
    }
    if (fd >= 0)
        close(fd);
    return got < 0 ? got : (ssize_t)have;
}

/* Reads where the links of a folder lead, each behind a digit for what its owner may do with it,
 * and with its end. */
static ssize_t read_links(const struct reach_ask *ask, char *area)
{
    DIR *folder = opendir(ask->text);
    const struct dirent *entry;
    size_t have = 0;

    if (!folder)
        return -errno;
    while (ask->size - have > PATH_MAX + 1 && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, area + have + 1, PATH_MAX);
        struct stat about;

        if (length <= 0 || fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW))
            continue;
        area[have] = (char)('0' + (about.st_mode >> 6 & 7));
        have += (size_t)length + 1;
        area[have++] = '\0';
    }
    closedir(folder);
    return (ssize_t)have;
}

static int open_place(int place)
{
    char path[32];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* Writes the device and inode of the mapping that begins at an address of this process. */
static int find_own_mapping(const void *address, uint64_t ret[2])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[LINE_MOST];
    int result = -ENOENT;

    while (result && maps && fgets(line, sizeof(line), maps)) {
        unsigned int major_number, minor_number;
        uint64_t start, inode;

        if (sscanf(line, "%" SCNx64 "-%*x %*s %*x %x:%x %" SCNu64, &start, &major_number,
                   &minor_number, &inode) != 4 ||
            start != (uintptr_t)address)
            continue;
        ret[0] = makedev(major_number, minor_number);
        ret[1] = inode;
        result = 0;
    }
    if (maps)
        fclose(maps);
    return result;
}

static ssize_t map_place(int place, unsigned char *area)
{
    int fd = open_place(place), result;
    uint64_t numbers[2];
    void *at;

    if (fd < 0)
        return fd;
    at = mmap(NULL, PAGE_LEAST, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return -errno;
    result = find_own_mapping(at, numbers);
    munmap(at, PAGE_LEAST);
    if (result)
        return result;
    memcpy(area, numbers, sizeof(numbers));
    return sizeof(numbers);
}

static int hand(const struct reach_ask *ask, const int fds[2])
{
    int fd = open_place(fds[0]), result;

    if (fd < 0)
        return fd;
    result = sandbox_send(fds[1], ask->text, (size_t)ask->size, &fd, 1);
    close(fd);
    return result;
}

/* Sends the memory of a process and what is known of its pages, as files. */
static int hand_memory(const struct reach_ask *ask, int socket)
{
    static const char *const names[] = {"mem", "pagemap"};
    int fds[2] = {-1, -1}, result = 0;
    char path[64];

    for (int i = 0; i < 2 && !result; i++) {
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)ask->pid, names[i]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        result = fds[i] < 0 ? -errno : 0;
    }
    if (!result)
        result = sandbox_send(socket, ask->text, (size_t)ask->size, fds, 2);
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return result;
}

/* Writes where a thread's list of robust locks is. */
static int read_robust(pid_t tid, unsigned char *area)
{
    void *head = NULL;
    size_t length = 0;
    uint64_t address;

    if (syscall(SYS_get_robust_list, tid, &head, &length))
        return -errno;
    address = (uintptr_t)head;
    memcpy(area, &address, sizeof(address));
    return sizeof(address);
}

void reach_perform(const struct reach_ask *ask, const int fds[2], unsigned char *area,
                   struct reach_answer *ret, int *ret_fd)
{
    *ret = (struct reach_answer){0};
    *ret_fd = -1;
    switch (ask->what) {
    case REACH_MEMORY:
        if (ask->start)
            ret->start = read_start(ask->text, area + ask->size, (size_t)ask->start);
        ret->result = read_memory(ask, area);
        break;
    case REACH_READ:
        ret->result =
            ask->address ? read_maps(ask, area) : read_start(ask->text, area, (size_t)ask->size);
        break;
    case REACH_ROBUST:
        ret->result = read_robust(ask->pid, area);
        break;
    case REACH_HAND_MEMORY:
        ret->result = hand_memory(ask, fds[0]);
        break;
    case REACH_LINK:
        ret->result = readlink(ask->text, (char *)area, (size_t)ask->size);
        ret->result = ret->result < 0 ? -errno : ret->result;
        break;
    case REACH_LINKS:
        ret->result = read_links(ask, (char *)area);
        break;
    case REACH_OPEN:
        ret->result = plain_file_place(AT_FDCWD, ask->text, 0, &ret->about);
        break;
    case REACH_LIST:
        ret->result = perf_list_place(ask->pid, ask->owner, (off_t)ask->size, &ret->about);
        break;
    case REACH_MAPPED:
        ret->result = map_place(fds[0], area);
        break;
    case REACH_HAND:
        ret->result = hand(ask, fds);
        break;
    default:
        ret->result = -EINVAL;
    }
    if ((ask->what == REACH_OPEN || ask->what == REACH_LIST) && ret->result >= 0) {
        *ret_fd = (int)ret->result;
        ret->result = 0;
    }
}

int reach_serve(int socket, void *ctx)
{
    struct reach_ask ask = {.what = 0};

    /* The child ends with its parent: killed while it waits for a lock or an answer, it ends as
     * well. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "prcb-reach");
    for (;;) {
        struct reach_answer answer;
        int fds[2] = {-1, -1}, fd = -1, result;
        size_t count = 0;

        if (sandbox_receive(socket, &ask, sizeof(ask), fds, 2, &count, -1) <
            (ssize_t)REACH_ASK_HEAD)
            return 0;
        reach_perform(&ask, fds, ctx, &answer, &fd);
        result = sandbox_send(socket, &answer, sizeof(answer), &fd, fd >= 0);
        if (fd >= 0)
            close(fd);
        while (count)
            close(fds[--count]);
        if (result)
            return 0;
    }
}
