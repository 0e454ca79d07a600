/* SPDX-License-Identifier: BSD-2-Clause */
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "debug_file.h"
#include "demangle.h"
#include "error.h"
#include "first_line.h"
#include "now.h"
#include "reach.h"
#include "sandbox.h"
#include "symbols.h"

#define LIST_MAX     (1 << 30)      /* bytes of a compiler's list */
#define MEMORY       (512ull << 20) /* beyond what this process has and the file's size */
#define MAPPED_MOST  (1ull << 30)   /* of a file's size: one with holes costs its owner nothing */
#define CPU_NS       5000000000ull  /* of a child; a second names a browser */
#define WALL_NS      60000000000ull /* on a busy machine, or a slow disk */
#define LOOK_MS      200            /* how often its processor time is looked at */
#define WASTE_NS     (2 * CPU_NS)   /* of one user's files */
#define ANSWER_BYTES (256ull << 20)
#define PART_BYTES   32768
#define LINE_MOST    4096

/* ---- what goes over the socket: a kind, then the rest of the message ---- */

enum part {
    PART_BYTES_OF_ANSWER = 1, /* child: some of the answer */
    PART_DEBUG, /* child: struct debug_wanted; parent: the same kind, a descriptor or none */
    PART_END,   /* child: struct end */
};

struct debug_wanted {
    char build_id[129], link[256]; /* one of the two */
};

struct end {
    int32_t result;
    char build_id[129];
};

struct message {
    uint32_t part;
    union {
        char bytes[PART_BYTES];
        struct debug_wanted debug;
        struct end end;
    };
};

#define HEAD offsetof(struct message, bytes)

/* ---- an answer: the number of each place, then names ---- */

/* Numbers are given out in the order of the places. */
static int write_answer(struct symbols *symbols, const uint64_t *places, size_t count, FILE *out)
{
    struct symbol **known = calloc(count + 1, sizeof(*known));
    char name[DEMANGLED_MAX];
    uint32_t last = 0;

    if (!known)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct symbol *symbol = symbols_find(symbols, places[i]);
        uint32_t number = 0;

        if (symbol && !symbol->tag) {
            symbol->tag = ++last;
            known[last] = symbol;
        }
        if (symbol)
            number = (uint32_t)symbol->tag;
        fwrite(&number, sizeof(number), 1, out);
    }
    for (uint32_t i = 1; i <= last; i++) {
        const char *text = demangle(known[i]->name, name);

        fwrite(text, 1, strlen(text) + 1, out);
    }
    free(known);
    return ferror(out) ? -ENOMEM : 0;
}

/* Does the same for lines: each place has a line of its own. */
static int write_lines(struct symbols *symbols, const uint64_t *places, size_t count, FILE *out)
{
    char *bytes = NULL, line[LINE_MOST];
    size_t size = 0;
    FILE *texts = open_memstream(&bytes, &size);
    uint32_t last = 0, number;

    if (!texts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        number = symbols_line(symbols, places[i], line, sizeof(line)) ? ++last : 0;
        if (number)
            fwrite(line, 1, strlen(line) + 1, texts);
        fwrite(&number, sizeof(number), 1, out);
    }
    if (fclose(texts)) {
        free(bytes);
        return -ENOMEM;
    }
    fwrite(bytes, 1, size, out);
    free(bytes);
    return ferror(out) ? -ENOMEM : 0;
}

/* Owns bytes from here on: `size` of them are the answer, and there is room for one more.
 * Nothing in the answer is believed. */
static int read_answer(char *bytes, size_t size, size_t places, struct names *ret)
{
    size_t head = places * sizeof(uint32_t), room = places + 1;
    struct names names = {.bytes = bytes, .count = 1};

    names.name = calloc(room + 1, sizeof(*names.name));
    names.number = calloc(places + 1, sizeof(*names.number));
    if (!names.name || !names.number || size < head) {
        names_free(&names);
        return size < head ? -EBADMSG : -ENOMEM;
    }
    memcpy(names.number, bytes, head);
    bytes[size] = '\0';
    for (char *at = bytes + head; at < bytes + size && names.count < room; at += strlen(at) + 1)
        names.name[names.count++] = at;
    for (size_t i = 0; i < places; i++) {
        if (names.number[i] >= names.count)
            names.number[i] = 0;
    }
    *ret = names;
    return 0;
}

void names_free(struct names *names)
{
    free(names->bytes);
    free(names->name);
    free(names->number);
    *names = (struct names){0};
}

/* ---- in the child ---- */

struct question {
    const struct names_source *source;
    const uint64_t *places;
    size_t count;
    int socket; /* the child's end */
};

/* There is one request at a time: the parent answers before anything else comes. */
static int fetch_debug(void *ctx, const char *build_id, const char *link)
{
    const struct question *q = ctx;
    struct message message = {.part = PART_DEBUG};
    size_t fds = 0;
    int fd = -1;

    snprintf(message.debug.build_id, sizeof(message.debug.build_id), "%s",
             build_id ? build_id : "");
    snprintf(message.debug.link, sizeof(message.debug.link), "%s", link ? link : "");
    if (sandbox_send(q->socket, &message, HEAD + sizeof(message.debug), NULL, 0) ||
        sandbox_receive(q->socket, &message, sizeof(message), &fd, 1, &fds, -1) < 0)
        return -1;
    return fds ? fd : -1;
}

static int read_source(struct question *q, int fd, struct symbols **ret)
{
    FILE *file;
    int result;

    if (q->source->kind == NAMES_ELF)
        return symbols_open_elf(fd, q->source->build_id, fetch_debug, q, ret);
    if (q->source->kind == NAMES_VARIABLES)
        return symbols_open_variables(fd, fetch_debug, q, ret);
    file = fdopen(fd, "r");
    if (!file)
        return -ENOMEM;
    result = symbols_read_perf_map(file, ret);
    fclose(file);
    return result;
}

static int send_answer(int socket, const char *bytes, size_t size)
{
    struct message message = {.part = PART_BYTES_OF_ANSWER};

    for (size_t at = 0; at < size; at += PART_BYTES) {
        size_t part = size - at < PART_BYTES ? size - at : PART_BYTES;
        int result;

        memcpy(message.bytes, bytes + at, part);
        result = sandbox_send(socket, &message, HEAD + part, NULL, 0);
        if (result)
            return result;
    }
    return 0;
}

static int serve(int socket, void *ctx)
{
    struct question *q = ctx;
    struct message message = {.part = PART_END};
    struct symbols *symbols = NULL;
    char *bytes = NULL;
    size_t size = 0, fds = 0;
    FILE *out;
    int fd = -1, result;

    q->socket = socket;
    sandbox_alarm(WALL_NS / 1000000000);
    if (sandbox_receive(socket, &message, sizeof(message), &fd, 1, &fds, -1) < 0 || !fds)
        return 1;
    message = (struct message){.part = PART_END};
    result = read_source(q, fd, &symbols);
    out = open_memstream(&bytes, &size);
    if (!result)
        result = !out               ? -ENOMEM
                 : q->source->lines ? write_lines(symbols, q->places, q->count, out)
                                    : write_answer(symbols, q->places, q->count, out);
    if (out && fclose(out) && !result)
        result = -ENOMEM;
    if (!result)
        result = send_answer(socket, bytes, size);
    message.end.result = result;
    if (symbols)
        memcpy(message.end.build_id, symbols_build_id(symbols), sizeof(message.end.build_id));
    return sandbox_send(socket, &message, HEAD + sizeof(message.end), NULL, 0) != 0;
}

/* ---- opening what is asked for ---- */

/* Opens debug information in the places that debuggers look at, but only those that nobody but
 * root can write to, unless what was fetched is asked for. */
static int open_debug(const struct names_source *source, const struct debug_wanted *wanted)
{
    char path[4096 + 512];
    const char *slash = strrchr(source->file, '/');
    struct stat about;
    int fd = -1;

    if (*wanted->build_id)
        return debug_file_open(wanted->build_id, source->fetched);
    if (!*wanted->link || strchr(wanted->link, '/') || !strcmp(wanted->link, "..") || !slash)
        return -1;
    snprintf(path, sizeof(path), DEBUG_FOLDER "%.*s/%s", (int)(slash - source->file), source->file,
             wanted->link);
    if (!strstr(source->file, "/../"))
        fd = reach_open(0, path, &about);
    if (fd < 0) {
        snprintf(path, sizeof(path), DEBUG_FOLDER "/%s", wanted->link);
        fd = reach_open(0, path, &about);
    }
    return fd;
}

/* Whether the file is the one that the kernel says is mapped. Btrfs and overlayfs show other
 * numbers of a file than of its mappings, so if they differ, it is mapped here. */
static bool is_what_is_mapped(const struct names_source *source, int place,
                              const struct stat *about)
{
    uint64_t device = about->st_dev, inode = about->st_ino;

    if (!source->inode)
        return false;
    if (source->device == device && source->inode == inode)
        return true;
    return !reach_mapped_as(place, &device, &inode) && source->device == device &&
           source->inode == inode;
}

/* Whether the file under a program's path is the program; the reader compares the build id. A
 * user can set no time of change. The kernel writes this behind a path when its file is gone. */
static bool is_the_program(const struct names_source *source, int place, const struct stat *about)
{
    static const char gone[] = " (deleted)";
    size_t length = strlen(source->file);
    bool is_gone = length >= strlen(gone) && !strcmp(source->file + length - strlen(gone), gone);
    bool is_ours = !about->st_uid || about->st_uid == geteuid();

    if (source->here_ns && !is_gone &&
        (int64_t)about->st_ctim.tv_sec * 1000000000 + about->st_ctim.tv_nsec <= source->here_ns &&
        (is_ours || is_what_is_mapped(source, place, about)))
        return true;
    return *source->build_id && is_ours;
}

static int open_program(const struct names_source *source, struct stat *ret)
{
    int fd = reach_open(0, source->file, ret);

    if (fd < 0 || is_the_program(source, fd, ret))
        return fd;
    close(fd);
    return -ESTALE;
}

/* Opens the place; the descriptor is the caller's. */
static int open_source(const struct names_source *source, struct stat *ret)
{
    uid_t owner = source->uid < 0 ? geteuid() : (uid_t)source->uid;

    if (source->kind == NAMES_PERF_MAP)
        return reach_open_list(source->pid, owner, LIST_MAX, ret);
    if (source->kind == NAMES_VARIABLES)
        return fcntl(source->place, F_DUPFD_CLOEXEC, 0);
    return open_program(source, ret);
}

/* ---- asking ---- */

struct asking {
    struct sandbox child;
    const struct names_source *source;
    uint64_t deadline;
    char *bytes;
    size_t size, room;
    struct end end;
};

static int keep_bytes(struct asking *a, const char *bytes, size_t size)
{
    if (a->size + size > ANSWER_BYTES)
        return -EFBIG;
    if (array_reserve(a->bytes, a->size, a->room, size + 1))
        return -ENOMEM;
    memcpy(a->bytes + a->size, bytes, size);
    a->size += size;
    return 0;
}

static int answer_debug(struct asking *a, struct debug_wanted *wanted)
{
    const uint32_t part = PART_DEBUG;
    int fd, result;

    wanted->build_id[sizeof(wanted->build_id) - 1] = wanted->link[sizeof(wanted->link) - 1] = '\0';
    fd = open_debug(a->source, wanted);
    result = fd < 0 ? fd : reach_hand(0, fd, a->child.socket, &part, sizeof(part));
    if (fd >= 0)
        close(fd);
    return result ? sandbox_send(a->child.socket, &part, sizeof(part), NULL, 0) : 0;
}

/* The next message, while there is time. */
static ssize_t next_message(struct asking *a, struct message *ret)
{
    ssize_t got;

    do {
        if (sandbox_cpu_ns(&a->child) > CPU_NS || now_ns() > a->deadline)
            return -ETIMEDOUT;
        got = sandbox_receive(a->child.socket, ret, sizeof(*ret), NULL, 0, NULL, LOOK_MS);
    } while (got == -ETIMEDOUT);
    return got;
}

/* 1: the answer is complete. */
static int take_message(struct asking *a)
{
    struct message message;
    ssize_t got = next_message(a, &message);

    if (got < (ssize_t)HEAD)
        return got < 0 ? (int)got : -EBADMSG;
    switch (message.part) {
    case PART_BYTES_OF_ANSWER:
        return keep_bytes(a, message.bytes, (size_t)got - HEAD);
    case PART_DEBUG:
        return (size_t)got < HEAD + sizeof(message.debug) ? -EBADMSG
                                                          : answer_debug(a, &message.debug);
    case PART_END:
        if ((size_t)got < HEAD + sizeof(message.end))
            return -EBADMSG;
        a->end = message.end;
        a->end.build_id[sizeof(a->end.build_id) - 1] = '\0';
        return 1;
    default:
        return -EBADMSG;
    }
}

static uint64_t mapped_bytes(void)
{
    uint64_t pages = 0;

    first_number("/proc/self/statm", &pages);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* *ret_cpu: what the child used. */
static int ask(struct question *q, int fd, const struct stat *about, struct names *ret,
               uint64_t *ret_cpu)
{
    const struct sandbox_limits limits = {
        .memory = mapped_bytes() + MEMORY +
                  ((uint64_t)about->st_size < MAPPED_MOST ? (uint64_t)about->st_size : MAPPED_MOST),
        .files = 16,
    };
    struct asking a = {.source = q->source, .deadline = now_ns() + WALL_NS};
    const uint32_t part = 0;
    int result = sandbox_start(&limits, serve, q, &a.child, NULL);

    if (result)
        return result;
    result = reach_hand(q->source->kind == NAMES_PERF_MAP ? q->source->pid : 0, fd, a.child.socket,
                        &part, sizeof(part));
    while (!result)
        result = take_message(&a);
    *ret_cpu = sandbox_cpu_ns(&a.child);
    sandbox_stop(&a.child);
    if (result == 1)
        result = a.end.result <= 0 ? a.end.result : -EBADMSG;
    if (!result)
        result = keep_bytes(&a, "", 0);
    if (!result)
        result = read_answer(a.bytes, a.size, q->count, ret);
    else
        free(a.bytes);
    if (!result)
        memcpy(ret->build_id, a.end.build_id, sizeof(ret->build_id));
    return result;
}

/* ---- who is asked about ---- */

static uint64_t *wasted_by(struct namer *namer, uid_t uid)
{
    size_t i = 0;

    while (i < namer->wasted_count && namer->wasted[i].uid != uid)
        i++;
    if (i == NAMES_USERS)
        return &namer->wasted[--i].ns; /* those for whom there is no room are one */
    if (i == namer->wasted_count) {
        namer->wasted[i].uid = uid;
        namer->wasted[namer->wasted_count++].ns = 0;
    }
    return &namer->wasted[i].ns;
}

/* Says what is wrong with a file that has no names, if it is the file's fault. */
static const char *why_not(int result)
{
    switch (result) {
    case -ETIMEDOUT:
        return "reading it took too long, or its file system does not answer";
    case -ENOMEM:
    case -EFBIG:
        return "reading it took too much memory";
    case -EPIPE:
    case -EBADMSG:
    case -EMSGSIZE:
        return "its reader crashed";
    case -EDQUOT:
        return "too much time was spent on files of its owner";
    case -EBUSY:
    case -EOPNOTSUPP:
    case -EAGAIN:
        return "no process can be started to read it";
    default:
        return NULL;
    }
}

static void note(struct namer *namer, const struct names_source *source, int result)
{
    const char *why = why_not(result);

    if (!why)
        return;
    if (!namer->left++) {
        if (source->kind != NAMES_PERF_MAP)
            snprintf(namer->first, sizeof(namer->first), "%.180s: %s", source->file, why);
        else
            snprintf(namer->first, sizeof(namer->first), "/tmp/perf-%d.map: %s", source->pid, why);
    }
}

static int find_in_file(struct namer *namer, struct question *q, struct names *ret)
{
    struct stat about = {0};
    int fd = open_source(q->source, &about), result;
    uint64_t *wasted, cpu = 0;

    if (fd < 0)
        return fd;
    wasted = wasted_by(namer, about.st_uid);
    result = *wasted > WASTE_NS ? -EDQUOT : ask(q, fd, &about, ret, &cpu);
    close(fd);
    if (result)
        *wasted += cpu;
    note(namer, q->source, result);
    return result;
}

/* The kernel's own. */
static int find_here(const struct question *q, struct names *ret)
{
    struct symbols *symbols = NULL;
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    int result = !out                              ? -ENOMEM
                 : q->source->kind == NAMES_KERNEL ? symbols_open_kernel(&symbols)
                                                   : symbols_open_vdso(&symbols);

    if (!result)
        result = write_answer(symbols, q->places, q->count, out);
    symbols_close(symbols);
    if (out && fclose(out) && !result)
        result = -ENOMEM;
    if (!result)
        return read_answer(bytes, size, q->count, ret);
    free(bytes);
    return result;
}

int names_find(struct namer *namer, const struct names_source *source, const uint64_t *places,
               size_t count, struct names *ret)
{
    struct question q = {.source = source, .places = places, .count = count};

    if (source->kind == NAMES_KERNEL || source->kind == NAMES_VDSO)
        return find_here(&q, ret);
    return find_in_file(namer, &q, ret);
}

bool names_is_anonymous(const char *file)
{
    return !strncmp(file, "//anon", 6) || !strncmp(file, "/memfd:", 7) ||
           !strncmp(file, "[anon", 5) || !strcmp(file, "[heap]") || !strncmp(file, "/dev/", 5);
}
