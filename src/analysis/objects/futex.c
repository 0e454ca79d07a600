/* SPDX-License-Identifier: BSD-2-Clause */
#include "futex.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "reach.h"

/* these are of linux/futex.h, which does not go with libc's headers everywhere */
#define FUTEX_WAIT_        0
#define FUTEX_LOCK_PI_     6
#define FUTEX_WAIT_BITSET_ 9
#define FUTEX_LOCK_PI2_    13
#define FUTEX_OPERATION_   0x7fu
#define FUTEX_PRIVATE_     0x80u
#define FUTEX_TID_         0x3fffffffu
#define FUTEX_WAITERS_     0x80000000u

/* glibc: pthread_mutex_t begins with the futex; 2: locked, and somebody waits */
#define MUTEX_OWNER_AT  8
#define MUTEX_CONTENDED 2u
/* musl: a mutex of the default type keeps this error in the place of its owner. A thread may
 * have the same number, above all in a container: the number is believed if the library is seen
 * to be glibc. */
#define MUTEX_BUSY 16u

bool futex_mutex_names_its_owner(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint32_t before, held[3], after[3];

    if (sizeof(mutex) < sizeof(held))
        return false;
    memcpy(&before, &mutex, sizeof(before));
    pthread_mutex_lock(&mutex);
    memcpy(held, &mutex, sizeof(held));
    pthread_mutex_unlock(&mutex);
    memcpy(after, &mutex, sizeof(after));
    return !before && held[0] == 1 && held[MUTEX_OWNER_AT / 4] == (uint32_t)gettid() && !after[0] &&
           !after[MUTEX_OWNER_AT / 4];
}

bool object_call_read(pid_t pid, pid_t tid, struct object_call *ret)
{
    char path[64], text[256];
    struct object_call call;
    ssize_t length;
    bool found;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    length = reach_read(pid, path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    found = sscanf(text,
                   "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                   " %" SCNx64 " %" SCNx64,
                   &call.number, &call.args[0], &call.args[1], &call.args[2], &call.args[3],
                   &call.args[4], &call.args[5], &call.sp, &call.pc) == 9;
    if (found)
        *ret = call;
    return found;
}

bool futex_of_call(const struct object_call *call, struct futex *ret)
{
    unsigned told = (unsigned)call->args[1] & (FUTEX_OPERATION_ | FUTEX_PRIVATE_);
    unsigned operation = told & FUTEX_OPERATION_;

    if (call->number != SYS_futex || (operation != FUTEX_WAIT_ && operation != FUTEX_WAIT_BITSET_ &&
                                      operation != FUTEX_LOCK_PI_ && operation != FUTEX_LOCK_PI2_))
        return false;
    *ret = (struct futex){call->args[0], told, call->args[3] != 0};
    return true;
}

bool futex_is_private(const struct futex *futex)
{
    return futex->operation & FUTEX_PRIVATE_;
}

pid_t futex_own_number(pid_t pid, pid_t tid)
{
    char path[64], line[256];
    pid_t ret = 0;
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    in = fopen(path, "re");
    while (in && fgets(line, sizeof(line), in)) {
        const char *last = strrchr(line, '\t');

        if (!strncmp(line, "NSpid:", 6) && last)
            ret = (pid_t)strtol(last, NULL, 10);
    }
    if (in)
        fclose(in);
    return ret;
}

static bool says(const struct prcb_stack *stack, const char *word)
{
    return stack && stack->word && !strcmp(stack->word, word);
}

static bool starts(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

static bool is_glibc(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;

    return slash && (starts(slash, "/libc.so.") || starts(slash, "/libpthread"));
}

/* Finds the frame of a call of a pthread mutex; NULL: it is none, judged by who called the
 * library's function that waits. Rust's mutexes have the same word, as have the library's own
 * locks, of malloc's arenas and of streams, but where mutexes keep their owner these have
 * something else. The lock that the loader takes is a pthread mutex. */
static const struct prcb_frame *mutex_frame(const struct prcb_stack *stack)
{
    static const char *const ways[] = {"lll_", "futex_", "timedwait", "syscall"};

    if (!says(stack, "mutex") && !says(stack, "loader lock"))
        return NULL;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const char *name = stack->frames[i].function;
        const char *file = stack->frames[i].file;
        size_t way = 0, count = sizeof(ways) / sizeof(*ways);

        if (!name || (!stack->frames[i].address && file && *file == '['))
            continue; /* the kernel's, which a wait that lasts has in front */
        name += strspn(name, "_");
        name += starts(name, "GI_") ? 3 + strspn(name + 3, "_") : 0; /* glibc's name inside */
        if (starts(name, "pthread_mutex_") || starts(name, "pthread_cond_"))
            return &stack->frames[i];
        while (way < count && !starts(name, ways[way]))
            way++;
        if (way == count)
            return NULL;
    }
    return NULL;
}

/* A waiter sets the topmost bit of a mutex that holds its owner's number; a mutex without that
 * bit has been released since, or is another kind of lock. To join a thread, glibc waits at the
 * thread's number, which the kernel clears and which so is not private; musl waits at a state. */
pid_t futex_holder_in(const uint32_t word[3], unsigned words, unsigned operation,
                      const struct prcb_stack *stack, bool glibc)
{
    unsigned way = operation & FUTEX_OPERATION_;
    uint32_t own = words ? word[0] & FUTEX_TID_ : 0;
    const struct prcb_frame *frame;

    if (way == FUTEX_LOCK_PI_ || way == FUTEX_LOCK_PI2_)
        return (pid_t)own; /* the kernel's own rule */
    if (says(stack, "join"))
        return operation & FUTEX_PRIVATE_ ? 0 : (pid_t)own;
    frame = own ? mutex_frame(stack) : NULL;
    if (!frame)
        return 0;
    if (word[0] == MUTEX_CONTENDED)
        return words == 3 && glibc ? (pid_t)word[MUTEX_OWNER_AT / 4] : 0;
    if (own == MUTEX_BUSY && !is_glibc(frame->file))
        return 0;
    return word[0] & FUTEX_WAITERS_ ? (pid_t)own : 0;
}

/* An interpreter's lock says its holder in memory of its own. */
static pid_t holder_of_interpreter(pid_t tid, const struct prcb_stack *stack)
{
    struct {
        uint64_t holder;
        uint32_t held, rest;
    } lock;
    uint64_t number;

    if (reach_memory(tid, stack->lock_at, &lock, sizeof(lock)) != sizeof(lock) || !lock.held ||
        !lock.holder ||
        reach_memory(tid, lock.holder + stack->lock_number, &number, sizeof(number)) !=
            sizeof(number) ||
        number > INT32_MAX)
        return 0;
    return (pid_t)number;
}

bool futex_says_interpreter(const struct prcb_stack *stack)
{
    return says(stack, "GIL");
}

pid_t futex_holder(pid_t tid, const struct futex *futex, const struct prcb_stack *stack, bool glibc)
{
    uint32_t words[3] = {0};
    ssize_t got;

    if (futex_says_interpreter(stack) && stack->lock_at)
        return holder_of_interpreter(tid, stack);
    got = reach_memory(tid, futex->address, words, sizeof(words));
    return got < 0 ? 0
                   : futex_holder_in(words, (unsigned)got / sizeof(words[0]), futex->operation,
                                     stack, glibc);
}

/* ---- places ---- */

/* A line of /proc/PID/maps. */
struct mapping {
    uint64_t start, end, offset, dev, ino;
    const char *path; /* "", "[heap]", "/usr/lib/x.so" */
};

static bool parse_mapping(char *line, struct mapping *ret)
{
    unsigned int major_number, minor_number;
    int path = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %x:%x %" SCNu64 " %n", &ret->start,
               &ret->end, &ret->offset, &major_number, &minor_number, &ret->ino, &path) < 6 ||
        !path)
        return false;
    ret->dev = makedev(major_number, minor_number);
    ret->path = line + path;
    return true;
}

static void name_place(const struct mapping *at, uint64_t address, char *ret, size_t size)
{
    const char *slash = strrchr(at->path, '/');

    if (*at->path == '/')
        snprintf(ret, size, "%.64s+0x%" PRIx64, slash + 1, address - at->start + at->offset);
    else
        snprintf(ret, size, "%.64s", *at->path ? at->path : "anonymous memory");
}

/* The parts of one file follow each other, the first page first, and memory that starts as zeros
 * follows its last part with no gap. */
static void note_file(struct futex_place *place, const struct mapping *at, uint64_t *last_end)
{
    bool same = at->dev == place->dev && at->ino == place->ino;

    if (at->ino && !at->offset && (!same || !*place->path || at->start != *last_end)) {
        place->base = at->start;
        place->dev = at->dev;
        place->ino = at->ino;
        snprintf(place->path, sizeof(place->path), "%s", at->path);
    } else if (at->ino ? !same : *at->path || at->start != *last_end) {
        place->path[0] = '\0';
        return;
    }
    if (at->ino) {
        place->start = at->start;
        place->end = at->end;
    }
    *last_end = at->end;
}

/* The path is what the process chose to map. */
void futex_find_place(pid_t pid, pid_t tid, uint64_t address, struct futex_place *ret)
{
    struct futex_place place = {.base = 0};
    char path[64], *text, *rest, *line;
    uint64_t last_end = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", (int)pid, (int)tid);
    reach_maps(pid, path, address ? address : 1, &text);
    rest = text;
    while (rest && !*place.name && (line = strsep(&rest, "\n"))) {
        struct mapping at;

        if (!parse_mapping(line, &at))
            continue;
        note_file(&place, &at, &last_end);
        if (address < at.start)
            break;
        if (address < at.end)
            name_place(&at, address, place.name, sizeof(place.name));
    }
    if (!*place.name || !last_end || address >= last_end)
        place.path[0] = '\0';
    *ret = place;
    free(text);
}
