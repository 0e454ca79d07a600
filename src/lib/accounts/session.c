/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The public calls: arguments checked, the tier chosen, records fitted to the
 * caller's size. What a tier does is in tier_daemon.c, tier_bpf.c and tier_perf.c.
 */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block_abi.h"
#ifdef PRCB_HAVE_BPF
#include "bpf_load.h"
#endif
#include "client.h"
#include "figures.h"
#include "sized.h"
#include "switch_rings.h"
#include "tier.h"

#define MAX_ACCOUNTS (1u << 22)

static const struct tier *const tiers[] = {
    &tier_daemon,
#ifdef PRCB_HAVE_BPF
    &tier_bpf,
#endif
    &tier_perf,
};
#define TIERS (sizeof(tiers) / sizeof(tiers[0]))

const char *prcb_version(void)
{
    return PRCB_VERSION;
}

static uint32_t own_pid_ns(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) ? 0 : (uint32_t)st.st_ino;
}

/* Without it nobody knows which thread a number means, on any tier. */
static int check_proc(struct prcb_error *err)
{
    if (!access("/proc/self/stat", F_OK))
        return 0;
    return prcb_fail(err, -EOPNOTSUPP, "/proc is not mounted: mount -t proc proc /proc");
}

static const struct tier *find_tier(enum prcb_tier number)
{
    for (size_t i = 0; i < TIERS; i++) {
        if (tiers[i]->number == number)
            return tiers[i];
    }
    return NULL;
}

/* The best tier comes first; the reason why the first did not do is kept. */
static int open_best(struct prcb *p, struct prcb_error *err)
{
    uint32_t max_threads = p->max_threads;
    struct prcb_error why = {0};
    int result = -EOPNOTSUPP;

    for (size_t i = 0; i < TIERS; i++) {
        p->tier = tiers[i];
        result = p->tier->open(p, &why);
        if (!result)
            break;
        p->tier->close(p);
        p->max_threads = max_threads;
        if (!p->reason[0] && (p->tier != &tier_daemon || client_refused(result)))
            memcpy(p->reason, why.text, sizeof(p->reason) - 1);
    }
#ifndef PRCB_HAVE_BPF
    snprintf(p->reason, sizeof(p->reason), "%s", PRCB_NO_BPF_TIER);
#endif
    if (result && err)
        *err = why;
    return result;
}

static int open_forced(struct prcb *p, enum prcb_tier number, struct prcb_error *err)
{
    int result;

    p->tier = find_tier(number);
    if (!p->tier)
        return prcb_fail(err, -EOPNOTSUPP, "the %s tier is not in this build of prcb",
                         prcb_tier_name(number));
    result = p->tier->open(p, err);
    if (result)
        p->tier->close(p);
    return result;
}

int prcb_open(const struct prcb_options *opts, struct prcb **ret, struct prcb_error *err)
{
    struct prcb_options options;
    struct prcb *p;
    int result = sized_take_options("prcb_options", opts, &options, sizeof(options), err);

    if (result)
        return result;
    if (options.tier > PRCB_TIER_DAEMON)
        return prcb_fail(err, -EINVAL, "unknown tier %d", (int)options.tier);
    if (options.max_threads > MAX_ACCOUNTS)
        return prcb_fail(err, -EINVAL, "max_threads %u is above the maximum of %u",
                         options.max_threads, MAX_ACCOUNTS);
    if (options.flags &
        ~(uint32_t)(PRCB_OPEN_NO_LOCKS | PRCB_OPEN_KTIME | PRCB_OPEN_INTERRUPTED |
                    PRCB_OPEN_REGISTERS | PRCB_OPEN_EDGES | PRCB_OPEN_CHOSEN | PRCB_OPEN_SHARED |
                    PRCB_OPEN_TAILS | PRCB_OPEN_OWNERS | PRCB_OPEN_SWITCHES | PRCB_OPEN_OBJECTS |
                    PRCB_OPEN_HURRY | PRCB_OPEN_MEANWHILE | PRCB_OPEN_RAN))
        return prcb_fail(err, -EINVAL, "prcb_options.flags 0x%x has unknown bits", options.flags);
    result = check_proc(err);
    if (result)
        return result;
    p = calloc(1, sizeof(*p));
    if (!p)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->max_threads = options.max_threads ? options.max_threads : PRCB_ACCOUNTS_DEFAULT;
    p->max_asked = options.max_threads;
    p->flags = options.flags;
    p->switch_bytes = options.switch_bytes;
    p->pid_ns = own_pid_ns();
    pthread_mutex_init(&p->lock, NULL);
    clock_base_init(&p->clock);
#ifdef PRCB_HAVE_BPF
    bpf_forget_log();
#endif
    result = options.tier ? open_forced(p, options.tier, err) : open_best(p, err);
    if (result) {
        pthread_mutex_destroy(&p->lock);
        free(p);
        return result;
    }
    *ret = p;
    return 0;
}

void prcb_close(struct prcb *p)
{
    if (!p)
        return;
    p->tier->close(p);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

enum prcb_tier prcb_session_tier(const struct prcb *p)
{
    return p->tier->number;
}

const char *prcb_session_tier_reason(const struct prcb *p)
{
    return p->reason[0] ? p->reason : NULL;
}

const char *prcb_load_log(void)
{
#ifdef PRCB_HAVE_BPF
    return bpf_last_log();
#else
    return NULL;
#endif
}

/* Returns UINT64_MAX if that is not known of one, or there are none. */
static uint64_t all_misses(struct prcb *p)
{
    struct prcb_program program;
    uint64_t sum = UINT64_MAX;

    for (uint32_t i = 0; p->tier->program && !p->tier->program(p, i, &program); i++) {
        if (program.recursion_misses == UINT64_MAX)
            return UINT64_MAX;
        sum = (i ? sum : 0) + program.recursion_misses;
    }
    return sum;
}

int prcb_session_status(struct prcb *p, struct prcb_status *ret)
{
    struct prcb_status status = {.size = sizeof(status), .max_threads = p->max_threads};

    pthread_mutex_lock(&p->lock);
    p->tier->status(p, &status);
    status.recursion_misses = all_misses(p);
    pthread_mutex_unlock(&p->lock);
    return sized_hand_out(&status, sizeof(status), ret);
}

int prcb_session_program(struct prcb *p, uint32_t i, struct prcb_program *ret)
{
    struct prcb_program program = {.size = sizeof(program)};
    int result = -ENOENT;

    pthread_mutex_lock(&p->lock);
    if (p->tier->program)
        result = p->tier->program(p, i, &program);
    pthread_mutex_unlock(&p->lock);
    return result ? result : sized_hand_out(&program, sizeof(program), ret);
}

static int check_follow(unsigned follow, struct prcb_error *err)
{
    if (follow & ~(unsigned)PRCB_FOLLOW_ALL)
        return prcb_fail(err, -EINVAL, "follow 0x%x has unknown bits", follow);
    return 0;
}

int prcb_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err)
{
    int result = check_follow(follow, err);

    if (!result && tid <= 0)
        result = prcb_fail(err, -EINVAL, "thread %d: not a thread number", (int)tid);
    if (result)
        return result;
    pthread_mutex_lock(&p->lock);
    result = p->tier->profile_thread(p, tid, follow, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

int prcb_profile_process(struct prcb *p, pid_t pid, unsigned follow, struct prcb_error *err)
{
    int result = check_follow(follow, err);

    if (!result && pid <= 0)
        result = prcb_fail(err, -EINVAL, "process %d: not a process number", (int)pid);
    if (result)
        return result;
    pthread_mutex_lock(&p->lock);
    result = p->tier->profile_process(p, pid, follow, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

int prcb_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&p->lock);
    result = p->tier->profile_cgroup(p, path, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

int prcb_profile_all(struct prcb *p, struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&p->lock);
    result = p->tier->profile_all(p, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

int prcb_refresh(struct prcb *p, struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&p->lock);
    result = p->tier->refresh(p, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

/* Finds it by its key; key 0: by tid. */
static int open_handle(struct prcb *p, pid_t tid, uint64_t key, struct prcb_thread **ret,
                       struct prcb_error *err)
{
    struct prcb_thread *t = calloc(1, sizeof(*t));
    int result;

    if (!t)
        return prcb_fail(err, -ENOMEM, "out of memory");
    t->session = p;
    t->tid = tid;
    t->key = key;
    pthread_mutex_lock(&p->lock);
    result = p->tier->thread_open(p, t, err);
    pthread_mutex_unlock(&p->lock);
    if (result) {
        free(t);
        return result;
    }
    *ret = t;
    return 0;
}

int prcb_thread_open(struct prcb *p, pid_t tid, struct prcb_thread **ret, struct prcb_error *err)
{
    return open_handle(p, tid, 0, ret, err);
}

int prcb_thread_open_key(struct prcb *p, uint64_t key, struct prcb_thread **ret,
                         struct prcb_error *err)
{
    return key ? open_handle(p, 0, key, ret, err)
               : prcb_fail(err, -EINVAL, "key 0 names no account");
}

int prcb_thread_open_self(struct prcb *p, struct prcb_thread **ret, struct prcb_error *err)
{
    int result = prcb_profile_thread(p, gettid(), PRCB_FOLLOW_NONE, err);

    return result ? result : prcb_thread_open(p, gettid(), ret, err);
}

void prcb_thread_close(struct prcb_thread *t)
{
    free(t);
}

int prcb_thread_read(struct prcb_thread *t, struct prcb_account *ret)
{
    int result = t->session->tier->read(t);

    return result ? result : sized_hand_out(&t->last, sizeof(t->last), ret);
}

int prcb_thread_times(struct prcb_thread *t, struct prcb_times *ret)
{
    struct prcb_times times = {.size = sizeof(times)};
    int result = t->session->tier->read_times(t, &times);

    return result ? result : sized_hand_out(&times, sizeof(times), ret);
}

int prcb_walk(struct prcb *p, prcb_walk_fn fn, void *ctx, struct prcb_error *err)
{
    return prcb_walk_active(p, 0, fn, ctx, err);
}

int prcb_walk_active(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                     struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&p->lock);
    result = p->tier->refresh(p, err);
    if (!result)
        result = p->tier->walk(p, since_ns, fn, ctx, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

int prcb_release(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&p->lock);
    result = p->tier->release(p, key, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

/* Returns 0 or -EOPNOTSUPP. */
static int check_chooses(const struct prcb *p, struct prcb_error *err)
{
    if (p->tier->chosen_read && p->flags & PRCB_OPEN_CHOSEN)
        return 0;
    return prcb_fail(err, -EOPNOTSUPP, "this session chooses no waits: %s",
                     p->tier->chosen_read ? "it was not opened with PRCB_OPEN_CHOSEN"
                                          : "only the bpf tier does");
}

int prcb_chosen_read(struct prcb *p, prcb_chosen_fn fn, void *ctx, uint64_t *ret_lost,
                     struct prcb_error *err)
{
    int result = check_chooses(p, err);

    return result ? result : p->tier->chosen_read(p, fn, ctx, ret_lost, err);
}

int prcb_chosen_chain(struct prcb *p, uint64_t key, const struct prcb_chain *chain,
                      struct prcb_error *err)
{
    struct prcb_chain own;
    int result = check_chooses(p, err);

    if (result)
        return result;
    sized_take_record(chain, &own, sizeof(own));
    return p->tier->chosen_chain(p, key, &own, err);
}

/* Returns 0 or -EOPNOTSUPP. */
static int check_ran(const struct prcb *p, struct prcb_error *err)
{
    return p->tier->ran_read && p->flags & PRCB_OPEN_CHOSEN && p->flags & PRCB_OPEN_RAN
               ? 0
               : prcb_fail(err, -EOPNOTSUPP, "this session copies no lists of threads that run");
}

int prcb_ran_program(struct prcb *p, struct prcb_error *err)
{
    int result = check_ran(p, err);

    return result ? result : p->tier->ran_program(p);
}

int prcb_ran_read(struct prcb *p, prcb_ran_fn fn, void *ctx, struct prcb_error *err)
{
    int result = check_ran(p, err);

    return result ? result : p->tier->ran_read(p, fn, ctx, err);
}

static const char *no_switches(const struct prcb *p)
{
    if (p->tier->number == PRCB_TIER_PERF)
        return "the perf tier has none";
    if (p->flags & PRCB_OPEN_SHARED)
        return "prcbd has none, or not for this user (flight and profile_all in prcbd.conf)";
    return p->flags & PRCB_OPEN_SWITCHES ? "prcbd is too old for it"
                                         : "it was not opened with PRCB_OPEN_SWITCHES";
}

int prcb_session_switches_rewind(struct prcb *p, struct prcb_error *err)
{
    if (!p->mapped.switches)
        return prcb_fail(err, -EOPNOTSUPP, "this session keeps no switch records: %s",
                         no_switches(p));
    switch_rings_rewind(p->mapped.switches);
    return 0;
}

int prcb_session_switches(struct prcb *p, prcb_switch_fn fn, void *ctx,
                          struct prcb_switch_room *ret, struct prcb_error *err)
{
    struct prcb_switch_room room = {.size = sizeof(room)};
    int result;

    if (!p->mapped.switches)
        return prcb_fail(err, -EOPNOTSUPP, "this session keeps no switch records: %s",
                         no_switches(p));
    if (ret && ret->size < sizeof(ret->size))
        return prcb_fail(err, -EINVAL, "prcb_switch_room.size is not set");
    result = switch_rings_read(p->mapped.switches, fn, ctx, &room);
    if (ret)
        sized_hand_out(&room, sizeof(room), ret);
    return result;
}

int prcb_kernel_stack(struct prcb *p, uint64_t key, pid_t tid, char *ret, size_t size,
                      struct prcb_error *err)
{
    char text[KERNEL_STACK_BYTES];
    size_t used = 0;
    int result;

    if (!size || tid <= 0)
        return prcb_fail(err, -EINVAL, "no thread, or no room for its stack");
    if (!p->tier->kernel_stack)
        return prcb_fail(err, -EOPNOTSUPP, "the %s tier has no stacks in the kernel",
                         p->tier->name);
    pthread_mutex_lock(&p->lock);
    result = p->tier->kernel_stack(p, key, tid, text, err);
    pthread_mutex_unlock(&p->lock);
    if (result)
        return result;
    for (const char *end; (end = strchr(text + used, '\n')); used = (size_t)(end - text) + 1) {
        if ((size_t)(end - text) + 2 > size)
            break;
    }
    memcpy(ret, text, used);
    ret[used] = '\0';
    return 0;
}

int prcb_release_exited(struct prcb *p, struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&p->lock);
    result = p->tier->release_exited(p, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

const char *prcb_session_limit(const struct prcb *p, size_t i)
{
    return p->tier->limit ? p->tier->limit(p, i) : NULL;
}

const char *prcb_absent_reason(const struct prcb *p, uint64_t member)
{
    return p->tier->absent_reason(p, member);
}

void account_sub(struct prcb_account *later, const struct prcb_account *earlier)
{
    later->present &= earlier->present;
    figures_sub(account_figures, later, earlier);
    for (int i = 0; i < PRCB_CAUSE_MAX; i++) {
        later->waits[i].count = figure_growth(later->waits[i].count, earlier->waits[i].count);
        later->waits[i].ns = figure_growth(later->waits[i].ns, earlier->waits[i].ns);
    }
}

void prcb_account_sub(const struct prcb_account *later, const struct prcb_account *earlier,
                      struct prcb_account *ret)
{
    struct prcb_account result, old;

    sized_take_record(later, &result, sizeof(result));
    if (earlier) {
        sized_take_record(earlier, &old, sizeof(old));
        account_sub(&result, &old);
    }
    ret->size = later->size;
    sized_hand_out(&result, sizeof(result), ret);
}
