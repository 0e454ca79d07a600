/* SPDX-License-Identifier: BSD-2-Clause */
#include "chain.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define WALK_TRIES 50

/* linux/futex.h, which libc's headers do not go with everywhere */
#define FUTEX_WAIT_        0
#define FUTEX_LOCK_PI_     6
#define FUTEX_WAIT_BITSET_ 9
#define FUTEX_LOCK_PI2_    13
#define FUTEX_OPERATION_   0x7fu
#define FUTEX_TID_         0x3fffffffu

/* glibc: pthread_mutex_t begins with the futex; 2: locked, and somebody waits */
#define MUTEX_OWNER_AT  8
#define MUTEX_CONTENDED 2u

/* ---- accounts ---- */

struct walk {
    struct chain *chain;
    size_t room;
};

static bool is_wait(const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    if (a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED))
        return false;
    return !(a->present & PRCB_HAS_OPEN) || (info && info->kind == PRCB_KIND_WAIT);
}

static int take_account(const struct prcb_account *a, void *ctx)
{
    struct walk *w = ctx;
    struct chain *c = w->chain;

    if (a->flags & PRCB_ACCOUNT_EXITED)
        return 0;
    if (c->count == w->room) {
        size_t room = w->room ? 2 * w->room : 256;
        struct chain_thread *grown = realloc(c->threads, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        c->threads = grown;
        w->room = room;
    }
    c->threads[c->count] = (struct chain_thread){
        .key = a->key,
        .switches = a->switches,
        .tid = a->tid,
        .pid = a->pid,
        .waits = is_wait(a),
        .cause = a->present & PRCB_HAS_OPEN ? a->open.cause : PRCB_CAUSE_NONE,
        .wait_ns = a->present & PRCB_HAS_OPEN ? a->open.ns : 0,
        .longer = a->open.ns == a->wall_ns,
        .next = CHAIN_NONE,
    };
    memcpy(c->threads[c->count++].comm, a->comm, sizeof(a->comm));
    return 0;
}

static int by_key(const void *left, const void *right)
{
    const struct chain_thread *a = left, *b = right;

    return a->key < b->key ? -1 : a->key > b->key;
}

/* The second look: whose wait is another by now has none that is known. */
static int compare_account(const struct prcb_account *a, void *ctx)
{
    const struct chain_thread wanted = {.key = a->key};
    struct chain *c = ctx;
    struct chain_thread *t = bsearch(&wanted, c->threads, c->count, sizeof(*t), by_key);

    if (t && t->waits && t->switches == a->switches && is_wait(a))
        t->loop = 1; /* seen again */
    return 0;
}

static int walk(struct prcb *session, prcb_walk_fn fn, struct walk *w, struct prcb_error *err)
{
    int result = -EAGAIN;

    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++) {
        if (fn == take_account)
            w->chain->count = 0;
        result = prcb_walk(session, fn, fn == take_account ? (void *)w : (void *)w->chain, err);
    }
    return result;
}

/* ---- what it waits for ---- */

/* As the library that this program runs with has it: the futex, and who holds it. */
static bool mutex_names_its_owner(void)
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

static FILE *open_of(const struct chain_thread *t, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)t->pid, (int)t->tid, name);
    return fopen(path, "re");
}

/* The system call that it is in, and its arguments. */
static bool read_call(const struct chain_thread *t, long *ret_number, uint64_t ret[6])
{
    FILE *in = open_of(t, "syscall");
    bool found =
        in && fscanf(in, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                     ret_number, &ret[0], &ret[1], &ret[2], &ret[3], &ret[4], &ret[5]) == 7;

    if (in)
        fclose(in);
    return found;
}

/* The number that the thread has for itself: of the innermost pid namespace. */
static pid_t own_number(const struct chain_thread *t)
{
    FILE *in = open_of(t, "status");
    char line[256];
    pid_t ret = 0;

    while (in && fgets(line, sizeof(line), in)) {
        const char *last = strrchr(line, '\t');

        if (!strncmp(line, "NSpid:", 6) && last)
            ret = (pid_t)strtol(last, NULL, 10);
    }
    if (in)
        fclose(in);
    return ret;
}

/* Where an address lies. The path is what the process chose to map. */
static void find_place(struct chain_thread *t)
{
    FILE *in = open_of(t, "maps");
    char *line = NULL;
    size_t room = 0;

    while (in && getline(&line, &room, in) > 0) {
        uint64_t from, to, offset;
        char path[256] = "";
        const char *slash;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %255[^\n]", &from, &to,
                   &offset, path) < 3 ||
            t->futex < from || t->futex >= to)
            continue;
        slash = strrchr(path, '/');
        if (*path == '/')
            snprintf(t->place, sizeof(t->place), "%.64s+0x%" PRIx64, slash + 1,
                     t->futex - from + offset);
        else
            snprintf(t->place, sizeof(t->place), "%.64s", *path ? path : "anonymous memory");
        break;
    }
    free(line);
    if (in)
        fclose(in);
}

static struct chain_thread *thread_of(struct chain *c, pid_t pid, pid_t own)
{
    for (size_t i = 0; i < c->count; i++) {
        struct chain_thread *t = &c->threads[i];

        if (t->pid != pid)
            continue;
        if (!t->own)
            t->own = own_number(t);
        if (t->own == own)
            return t;
    }
    return NULL;
}

static bool says(const struct chain_thread *t, const char *word)
{
    return t->has_stack && t->stack.word && !strcmp(t->stack.word, word);
}

static bool says_mutex(const struct chain_thread *t)
{
    static const char *const words[] = {"mutex", "malloc arena", "stdio lock", "loader lock"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (says(t, words[i]))
            return true;
    }
    return false;
}

/* The holder in the thread's own numbers, by what stands at the futex; 0: it does not say. */
static pid_t holder_of(const struct chain *c, const struct chain_thread *t, unsigned operation)
{
    uint32_t words[3] = {0};
    const struct iovec to = {words, sizeof(words)};
    const struct iovec from = {(void *)(uintptr_t)t->futex, sizeof(words)};
    ssize_t got = process_vm_readv(t->pid, &to, 1, &from, 1, 0);

    if (got < (ssize_t)sizeof(words[0]))
        return 0;
    if (operation == FUTEX_LOCK_PI_ || operation == FUTEX_LOCK_PI2_)
        return (pid_t)(words[0] & FUTEX_TID_); /* the kernel's own rule */
    if (!says_mutex(t) && !says(t, "join"))
        return 0;
    if (words[0] == MUTEX_CONTENDED && !says(t, "join"))
        return got == sizeof(words) && !c->no_mutexes ? (pid_t)words[MUTEX_OWNER_AT / 4] : 0;
    return (pid_t)(words[0] & FUTEX_TID_);
}

static void look_at_futex(struct chain *c, struct chain_thread *t, const uint64_t call[6])
{
    unsigned operation = (unsigned)call[1] & FUTEX_OPERATION_;
    struct chain_thread *holder;
    pid_t own;

    if (operation != FUTEX_WAIT_ && operation != FUTEX_WAIT_BITSET_ &&
        operation != FUTEX_LOCK_PI_ && operation != FUTEX_LOCK_PI2_)
        return;
    t->futex = call[0];
    t->timed = call[3] != 0;
    find_place(t);
    own = holder_of(c, t, operation);
    holder = own > 0 ? thread_of(c, t->pid, own) : NULL;
    if (!holder || holder == t)
        return;
    t->holder = holder->tid;
    t->next = (size_t)(holder - c->threads);
}

static void look_at(struct chain *c, struct chain_thread *t, struct prcb *session,
                    struct prcb_stacks *stacks)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_thread *handle;
    uint64_t call[6];
    long number;

    if (prcb_thread_open_key(session, t->key, &handle, NULL))
        return;
    t->stack.size = sizeof(t->stack);
    t->has_stack = !prcb_thread_read(handle, &a) && a.switches == t->switches &&
                   !prcb_stacks_read(stacks, &a, &t->stack, NULL);
    prcb_thread_close(handle);
    if (read_call(t, &number, call) && number == SYS_futex)
        look_at_futex(c, t, call);
}

/* ---- loops ---- */

/* Each thread has one holder at most, so a walk along them ends or comes to where it was. */
static int find_loops(struct chain *c)
{
    size_t *seen = calloc(c->count ? c->count : 1, sizeof(*seen)); /* by which walk, from 1 */

    if (!seen)
        return -ENOMEM;
    for (size_t i = 0; i < c->count; i++) {
        size_t at = i;

        while (at != CHAIN_NONE && !seen[at]) {
            seen[at] = i + 1;
            at = c->threads[at].next;
        }
        if (at == CHAIN_NONE || seen[at] != i + 1 || c->threads[at].loop)
            continue;
        c->loops++;
        for (; !c->threads[at].loop; at = c->threads[at].next)
            c->threads[at].loop = c->loops;
    }
    free(seen);
    return 0;
}

/* Whoever was not in the same wait throughout waits for nobody. */
static void keep_confirmed(struct chain *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct chain_thread *t = &c->threads[i];

        if (!t->loop) {
            t->holder = 0;
            t->next = CHAIN_NONE;
            t->has_stack = false;
        }
        t->loop = 0;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (c->threads[i].next != CHAIN_NONE)
            c->threads[c->threads[i].next].waiters++;
    }
}

int chain_take(struct prcb *session, struct prcb_stacks *stacks, uint64_t min_wait_ns,
               struct chain *ret, struct prcb_error *err)
{
    struct walk w = {.chain = ret};
    int result;

    *ret = (struct chain){.no_mutexes = !mutex_names_its_owner()};
    result = walk(session, take_account, &w, err);
    if (!result)
        qsort(ret->threads, ret->count, sizeof(*ret->threads), by_key);
    for (size_t i = 0; i < ret->count && !result; i++) {
        if (ret->threads[i].waits &&
            (ret->threads[i].wait_ns >= min_wait_ns || !ret->threads[i].cause))
            look_at(ret, &ret->threads[i], session, stacks);
    }
    if (!result)
        result = walk(session, compare_account, &w, err);
    if (!result) {
        keep_confirmed(ret);
        result = find_loops(ret);
    }
    if (result)
        chain_deinit(ret);
    return result;
}

void chain_deinit(struct chain *c)
{
    free(c->threads);
    *c = (struct chain){0};
}
