/* SPDX-License-Identifier: BSD-2-Clause */
#include "looks.h"
#include "array.h"
#include "fair.h"
#include "now.h"
#include "reach.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_US     1000u
#define NS_PER_MS     1000000ull
#define LOOK_NS       (20 * NS_PER_MS)
#define PERF_NS       (100 * NS_PER_MS) /* perf tier: a look reads /proc for each thread */
#define LOOK_PART     40                /* a look takes at most one part in so many of the time */
#define QUIET_PART    400               /* and while no account changes in so many, */
#define QUIET_NS      (500 * NS_PER_MS) /* but looks again within this */
#define BUDGET_NS     (500 * NS_PER_MS) /* of processor time: at once, and then by share */
#define PEEK_NS       NS_PER_MS /* ... at chosen waits of interpreters' threads: see looks_next */
#define SLACK_NS      (300 * NS_PER_MS) /* with less of it left, not all chosen waits are read: */
#define SLACK_STEP_NS (20 * NS_PER_MS)  /* half as many for each so much less, */
#define SLACK_STEPS   6                 /* but not fewer than that often */
#define READ_NS       (200 * NS_PER_MS) /* for how long a look reads stacks: others may be due */
#define ROOM_PART     4                 /* accounts of ended threads go back at this share */
#define WALK_TRIES    50
#define GOING_ON      16384 /* chosen waits that are remembered until they end */
#define PROBES        8
#define STRIDE        7919 /* a prime: looks begin at accounts that are far from each other */
#define GRANT_NS      (500 * NS_PER_MS) /* for what the end of a report needs */

/* A chosen wait that goes on. */
struct going_on {
    uint64_t key, switches;
    uint64_t began_ns;
    uint32_t stands_for; /* so many chosen waits; 0: another one stands for it */
    int result;
    struct prcb_stack stack;
    struct object_wait wait;
};

struct looks {
    struct prcb *session;
    const struct looks_fns *fns; /* of the look */
    bool no_chosen;              /* the session chooses none */
    struct going_on *going_on; /* open addressing by key; what finds no place there is forgotten */
    struct prcb_stacks *stacks;
    struct objects *objects; /* NULL: nobody asks */
    uint64_t percent, start, now, next;
    uint64_t peek;          /* when chosen waits are read next; UINT64_MAX: with the next look */
    uint64_t own_ns;        /* processor time of the looks before, */
    uint64_t own_at;        /* and of the thread when this one began */
    bool spent;             /* so is the budget, for this look */
    uint64_t granted;       /* until then the budget does not matter; 0: it does */
    struct fair fair;       /* who used it up */
    pid_t last;             /* who was read for last; 0: nobody in this look, */
    uint64_t last_spent;    /* and what was spent before */
    uint64_t read_ns;       /* of this look, for reading stacks: that is the budget's */
    uint64_t cost_before;   /* of the look before, without these */
    uint64_t first, looked; /* when the first look began, and the one before; 0: there was none */
    uint64_t taken, told;   /* looks, and accounts that they told of */
    uint64_t uncopied;      /* waits of interpreters' threads, as of the last look: is_prompt */
    bool tight;             /* as of the look before: then all that had ended went back */
    bool ended;             /* every thread had, as of the look before */
    struct prcb_account *accounts; /* those of the look: stacks are read after the walk */
    size_t count, room;
};

int looks_open(struct prcb *session, uint64_t percent, uint32_t flags, struct looks **ret,
               struct prcb_error *err)
{
    const struct prcb_stacks_options how = {.size = sizeof(how), .flags = flags};
    struct looks *l = calloc(1, sizeof(*l));
    int result = l ? 0 : -ENOMEM;

    if (!result)
        result = prcb_stacks_open(session, &how, &l->stacks, err);
    else if (err)
        *err = (struct prcb_error){.code = result, .text = "out of memory"};
    if (result) {
        free(l);
        return result;
    }
    l->session = session;
    l->percent = percent;
    l->start = l->now = l->next = now_ns();
    l->peek = UINT64_MAX;
    *ret = l;
    return 0;
}

void looks_close(struct looks *l)
{
    if (!l)
        return;
    prcb_stacks_close(l->stacks);
    fair_free(&l->fair);
    free(l->accounts);
    free(l->going_on);
    free(l);
}

/* The walk holds the session's lock, under which no stack can be read. */
static int take_account(const struct prcb_account *a, void *ctx)
{
    struct looks *l = ctx;

    return array_add(l->accounts, l->count, l->room, *a);
}

/* since: 0: all accounts, else as prcb_walk_active. */
static int walk(struct looks *l, uint64_t since, struct prcb_error *err)
{
    int result = -EAGAIN;

    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++) {
        l->count = 0;
        result = prcb_walk_active(l->session, since, take_account, l, err);
    }
    return result;
}

/* Nobody here knows the process of a thread outside of this pid namespace: it has no number. */
static bool is_inside(const struct prcb_account *a)
{
    return a->tid != 0;
}

static bool all_ended(const struct looks *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!(l->accounts[i].flags & PRCB_ACCOUNT_EXITED))
            return false;
    }
    return true;
}

/* Whether accounts of ended threads have to be given back, so that there is room for others. */
static bool is_tight(struct looks *l)
{
    struct prcb_status status = {.size = sizeof(status)};

    return !prcb_session_status(l->session, &status) &&
           (uint64_t)status.threads * ROOM_PART >= status.max_threads;
}

/* Chooses the accounts that the look tells of. Threads that waited when profiling began are
 * known to go on only from the second look on, so at first it tells of all. left: the look
 * before skipped stacks for lack of budget, which may be of any account. */
static int choose_accounts(struct looks *l, const struct looks_fns *fns, bool left,
                           struct prcb_error *err)
{
    bool rest = fns->settled_ns && l->looked > l->first + fns->settled_ns && !left &&
                prcb_session_tier(l->session) != PRCB_TIER_PERF && !(is_tight(l) && !l->tight);
    int result = walk(l, rest ? l->looked - fns->settled_ns : 0, err);

    if (!result && rest && !l->count)
        return 0;
    if (!result && rest && all_ended(l))
        result = walk(l, 0, err); /* do others sleep on? */
    l->ended = all_ended(l);
    return result;
}

/* Returns the pause until the next look. A look that is expensive once, as the first one, is no
 * reason for a long pause. */
static uint64_t pause_of(struct looks *l, uint64_t cost)
{
    uint64_t least = prcb_session_tier(l->session) == PRCB_TIER_PERF ? PERF_NS : LOOK_NS;
    uint64_t lesser = cost < l->cost_before ? cost : l->cost_before;
    uint64_t pause = lesser * LOOK_PART;

    if (!l->count && pause < QUIET_NS)
        pause = lesser * QUIET_PART < QUIET_NS ? lesser * QUIET_PART : QUIET_NS;
    l->cost_before = cost;
    return pause > least ? pause : least;
}

/* Returns the processor time of looking and reading so far: the budget pays for the child, whose
 * largest cost is new programs, and for the looks themselves. */
static uint64_t spent_ns(const struct looks *l)
{
    struct prcb_stacks_status status = {.size = sizeof(status)};
    uint64_t own = l->own_ns + now_by(CLOCK_THREAD_CPUTIME_ID) - l->own_at;

    return prcb_stacks_status(l->stacks, &status) ? UINT64_MAX : status.cpu_ns + own;
}

/* Charges who was read for last with what was spent since. */
static void charge(struct looks *l, uint64_t spent)
{
    if (l->last && spent > l->last_spent)
        fair_charge(&l->fair, l->last, (spent - l->last_spent) / NS_PER_US);
}

/* Returns the processor time that is left for a process, which is read for then: half of the budget
 * is not for who had more than a fair share. */
static uint64_t left_for(struct looks *l, pid_t pid)
{
    uint64_t now = now_ns(), spent = spent_ns(l);
    uint64_t budget = BUDGET_NS + (now - l->start) / 100 * l->percent;

    charge(l, spent);
    l->last = pid;
    l->last_spent = spent;
    l->spent = now - l->now >= READ_NS || spent >= budget;
    if (fair_is_greedy(&l->fair, pid, reach_user))
        budget /= 2;
    return !l->spent && spent < budget ? budget - spent : 0;
}

static bool is_granted(struct looks *l, pid_t pid)
{
    if (l->granted)
        return now_ns() < l->granted;
    return !l->spent && left_for(l, pid);
}

/* Does the same, and notes who was refused. */
static bool has_budget(struct looks *l, pid_t pid)
{
    bool granted = is_granted(l, pid);

    if (!granted)
        fair_refuse(&l->fair, pid, reach_user);
    return granted;
}

void looks_grant(struct looks *l)
{
    l->granted = now_ns() + GRANT_NS;
}

/* Finds the thread's place, or the first near it that is free or holds the oldest. */
static struct going_on *place_of(struct looks *l, uint64_t key)
{
    size_t home = (key * 0x9e3779b97f4a7c15u >> 32) % GOING_ON;
    struct going_on *best = &l->going_on[home];

    for (size_t i = 0; i < PROBES; i++) {
        struct going_on *at = &l->going_on[(home + i) % GOING_ON];

        if (at->key == key)
            return at;
        if (at->began_ns < best->began_ns)
            best = at;
    }
    return best;
}

/* Returns for how many chosen waits of a process one is read, so that what is left for it suffices:
 * then all of its time is known by fewer waits, and not a part of it by more. */
static uint32_t thin_by(struct looks *l, pid_t pid)
{
    uint64_t left, steps;

    if (l->granted || !l->fns->estimates)
        return 1;
    left = l->spent ? 0 : left_for(l, pid);
    steps = left < SLACK_NS ? (SLACK_NS - left) / SLACK_STEP_NS : 0;
    return 1u << (steps < SLACK_STEPS ? steps : SLACK_STEPS);
}

static bool is_left_out(const struct prcb_chosen *chosen, uint32_t one_in)
{
    return table_mix(table_mix(chosen->key, chosen->switches), 0) >> 32 & (one_in - 1);
}

/* The stack is unwound as the wait begins: the copy is there only now. */
static void begin_chosen(struct looks *l, const struct prcb_chosen *chosen, struct going_on *ret)
{
    uint32_t one_in = thin_by(l, chosen->pid);
    bool budget;

    *ret = (struct going_on){
        .key = chosen->key,
        .switches = chosen->switches,
        .began_ns = chosen->began_ns,
        .stands_for = is_left_out(chosen, one_in) ? 0 : one_in,
        .stack = {.size = sizeof(ret->stack)},
    };
    if (!ret->stands_for)
        return;
    budget = has_budget(l, chosen->pid);
    ret->result = budget ? prcb_stacks_unwind(l->stacks, chosen, &ret->stack, NULL) : -EBUSY;
    if (budget && l->objects)
        ret->wait = objects_read_chosen(l->objects, chosen, ret->result ? NULL : &ret->stack);
}

static int take_chosen(const struct prcb_chosen *chosen, void *ctx)
{
    const struct object_wait unknown = {.object = 0};
    struct prcb_chosen all = *chosen;
    struct looks *l = ctx;
    struct going_on *at = place_of(l, chosen->key);

    if (!chosen->ended) {
        begin_chosen(l, chosen, at);
        return at->result == -ENOMEM ? -ENOMEM : 0;
    }
    if (at->key != chosen->key || at->switches != chosen->switches)
        return l->fns->chosen(l->fns->ctx, chosen, NULL, -ENOSPC, unknown);
    all.one_in *= at->stands_for;
    return l->fns->chosen(l->fns->ctx, &all, at->result ? NULL : &at->stack, at->result, at->wait);
}

static int read_chosen(struct looks *l, struct prcb_error *err)
{
    uint64_t lost;
    int result;

    if (!l->fns->chosen || l->no_chosen)
        return 0;
    if (!l->going_on)
        l->going_on = calloc(GOING_ON, sizeof(*l->going_on));
    if (!l->going_on)
        return -ENOMEM;
    result = prcb_chosen_read(l->session, take_chosen, l, &lost, err);
    l->no_chosen = result == -EOPNOTSUPP;
    return l->no_chosen ? 0 : result;
}

/* Ended threads' accounts go back when there are many, so that there is room for others. */
static int give_back(struct looks *l, const struct looks_fns *fns, struct prcb_error *err)
{
    int result = 0;

    l->tight = !fns->keep_ended && is_tight(l);
    if (!l->tight)
        return 0;
    for (size_t i = 0; i < l->count && !result; i++) {
        if (!(l->accounts[i].flags & PRCB_ACCOUNT_EXITED))
            continue;
        if (fns->released && is_inside(&l->accounts[i]))
            result = fns->released(fns->ctx, l->accounts[i].key);
        if (!result)
            result = prcb_release(l->session, l->accounts[i].key, err);
        if (result == -ESTALE)
            result = 0; /* it was given back before */
    }
    return result;
}

/* Whether threads of an interpreter were met since the look before whose frames are not copied as
 * their waits begin, or not yet. What they run can be read only while their waits last: chosen ones
 * have to be seen sooner than the next look. */
static bool is_prompt(struct looks *l)
{
    struct prcb_stacks_status status = {.size = sizeof(status)};
    uint64_t before = l->uncopied;

    if (l->no_chosen || !l->fns || !l->fns->chosen || prcb_stacks_status(l->stacks, &status))
        return false;
    l->uncopied = status.interpreted + status.uninterpreted - status.copied;
    return !l->spent && l->uncopied != before;
}

/* Between two looks: reads the waits that were chosen since, and no account. */
static int peek(struct looks *l, bool *ret_ended, struct prcb_error *err)
{
    int result = read_chosen(l, err);

    l->own_ns += now_by(CLOCK_THREAD_CPUTIME_ID) - l->own_at;
    l->peek = now_ns() + PEEK_NS;
    if (!result)
        *ret_ended = l->ended;
    return result;
}

static void meet_processes(struct looks *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct prcb_account *a = &l->accounts[i];

        if (a->tid == a->pid && is_inside(a) && !(a->flags & PRCB_ACCOUNT_EXITED))
            fair_meet(&l->fair, a->pid, a->key, reach_user);
    }
}

/* The cost of a look is its processor time, not its duration. It may wait for the child:
 * otherwise a user with a program that takes long to read would choose when the next look is. */
int looks_take(struct looks *l, const struct looks_fns *fns, bool *ret_ended,
               struct prcb_error *err)
{
    bool left = l->spent;
    uint64_t began = now_ns(), cost;
    int result;

    if (err)
        *err = (struct prcb_error){.code = -ENOMEM, .text = "out of memory"};
    l->fns = fns;
    l->now = began;
    l->own_at = now_by(CLOCK_THREAD_CPUTIME_ID);
    l->read_ns = 0;
    l->spent = false;
    l->last = 0;
    if (began < l->next && !fns->last)
        return peek(l, ret_ended, err);
    fair_count(&l->fair, (BUDGET_NS + (l->now - l->start) / 100 * l->percent) / NS_PER_US);
    result = read_chosen(l, err);
    if (!result)
        result = choose_accounts(l, fns, left, err);
    l->count = result ? 0 : l->count;
    meet_processes(l);
    for (size_t i = 0; i < l->count && !result && fns->divided; i++) {
        if (is_inside(&l->accounts[i]))
            result = fns->divided(fns->ctx, &l->accounts[i]);
    }
    l->now = now_ns();
    /* Others come first in each look: the time for stacks may not suffice for all. */
    for (size_t i = 0; i < l->count && !result; i++) {
        const struct prcb_account *a = &l->accounts[(i + l->taken * STRIDE) % l->count];

        if (is_inside(a))
            result = fns->account(fns->ctx, a, l->now);
    }
    l->taken++;
    l->told += l->count;
    l->first = l->first ? l->first : began;
    l->looked = began;
    if (!result)
        result = give_back(l, fns, err);
    cost = now_by(CLOCK_THREAD_CPUTIME_ID) - l->own_at;
    l->own_ns += cost;
    cost -= l->read_ns;
    l->next = began + pause_of(l, cost);
    l->peek = is_prompt(l) ? now_ns() + PEEK_NS : UINT64_MAX;
    if (!result)
        *ret_ended = l->ended;
    return result;
}

uint64_t looks_next(const struct looks *l)
{
    return l->peek < l->next ? l->peek : l->next;
}

int looks_read(void *ctx, const struct prcb_account *a, struct prcb_stack *ret)
{
    struct looks *l = ctx;
    uint64_t began;
    int result;

    if (!has_budget(l, a->pid))
        return -EBUSY;
    began = now_by(CLOCK_THREAD_CPUTIME_ID);
    result = prcb_stacks_read(l->stacks, a, ret, NULL);
    l->read_ns += now_by(CLOCK_THREAD_CPUTIME_ID) - began;
    return result;
}

uint64_t looks_count(const struct looks *l, uint64_t *ret_accounts)
{
    *ret_accounts = l->told;
    return l->taken;
}

void looks_set_objects(struct looks *l, struct objects *objects)
{
    l->objects = objects;
}

struct object_wait looks_object(void *ctx, const struct prcb_account *a,
                                const struct prcb_stack *stack)
{
    struct object_wait ret = {.later = true};
    struct looks *l = ctx;
    uint64_t began;

    if (!has_budget(l, a->pid))
        return ret;
    began = now_by(CLOCK_THREAD_CPUTIME_ID);
    ret = objects_read(l->objects, a, stack);
    l->read_ns += now_by(CLOCK_THREAD_CPUTIME_ID) - began;
    return ret;
}

pid_t looks_holder(void *ctx, uint32_t number)
{
    const struct looks *l = ctx;

    return number ? objects_at(l->objects, number)->tid : 0;
}

bool looks_still(void *ctx, const struct prcb_account *a)
{
    struct prcb_times times = {.size = sizeof(times)};
    const struct looks *l = ctx;
    struct prcb_thread *t;
    bool same;

    if (prcb_thread_open_key(l->session, a->key, &t, NULL))
        return false;
    same = !prcb_thread_times(t, &times) && times.switches == a->switches &&
           !((times.flags ^ a->flags) & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED));
    prcb_thread_close(t);
    return same;
}

int looks_edges(void *ctx, uint64_t key, struct prcb_account *account, prcb_edge_fn fn,
                void *fn_ctx)
{
    const struct looks *l = ctx;

    return prcb_edges_walk(l->session, key, account, fn, fn_ctx, NULL);
}

uint64_t looks_cost(const struct looks *l)
{
    struct prcb_stacks_status status = {.size = sizeof(status)};

    return l->own_ns + (prcb_stacks_status(l->stacks, &status) ? 0 : status.cpu_ns);
}

struct prcb_stacks *looks_stacks(const struct looks *l)
{
    return l->stacks;
}
