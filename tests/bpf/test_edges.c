/* SPDX-License-Identifier: BSD-2-Clause
 *
 * By whom: edges of accounts against what programs of the test's own know. Each wait is ended, and
 * each processor taken, by somebody the test has chosen; and whatever goes on, edges and rest are
 * the account's counts and times, exactly.
 */
#include "block_abi.h"
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <prcb/edges.h>
#include <prcb/processors.h>
#include <prcb/sample.h>

/* ---- reading ---- */

struct seen {
    struct prcb_edge edges[128];
    size_t count;
};

static int keep(const struct prcb_edge *edge, void *ctx)
{
    struct seen *seen = ctx;

    assert_true(seen->count < 128);
    seen->edges[seen->count++] = *edge;
    return 0;
}

/* The third law. */
static void assert_edges(const struct prcb_account *a, const struct seen *seen)
{
    uint64_t count[PRCB_CAUSE_MAX] = {0}, ns[PRCB_CAUSE_MAX] = {0}, ready = 0;
    uint64_t held_count[PRCB_CAUSE_MAX] = {0}, held_ns[PRCB_CAUSE_MAX] = {0};
    uint64_t meanwhile = 0;
    bool has_holders = false;

    for (size_t i = 0; i < seen->count; i++) {
        const struct prcb_edge *e = &seen->edges[i];

        assert_non_null(prcb_edge_kind_name(e->kind));
        assert_non_null(prcb_edge_by_name(e->by));
        if (e->kind == PRCB_EDGE_HELD_BY) {
            held_count[e->cause] += e->count;
            held_ns[e->cause] += e->ns;
            has_holders = true;
            continue;
        }
        if (e->kind == PRCB_EDGE_MEANWHILE) {
            assert_int_equal(e->cgroup != 0, e->by == PRCB_BY_CGROUP);
            meanwhile += e->ns;
            continue;
        }
        if (e->kind != PRCB_EDGE_BEHIND)
            count[e->cause] += e->count;
        if (e->kind == PRCB_EDGE_WOKEN_BY)
            ns[e->cause] += e->ns;
        else
            ready += e->ns;
    }
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (!info || info->kind == PRCB_KIND_END)
            continue;
        assert_int_equal(count[i], a->waits[i].count);
        assert_int_equal(ns[i], a->waits[i].ns);
    }
    assert_int_equal(ready, a->ready_ns);
    if (meanwhile)
        assert_int_equal(meanwhile, a->ready_ns);
    for (uint32_t i = PRCB_CAUSE_RWSEM; has_holders && i <= PRCB_CAUSE_MUTEX; i++) {
        assert_int_equal(held_count[i], a->waits[i].count);
        assert_int_equal(held_ns[i], a->waits[i].ns);
    }
}

static struct prcb_account read_edges(struct prcb *p, uint64_t key, struct seen *ret)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_error err = {0};
    int result;

    do { /* a processor that writes may be stopped for longer than a walk waits */
        ret->count = 0;
        result = prcb_edges_walk(p, key, &a, keep, ret, &err);
    } while (result == -EAGAIN);
    if (result)
        fail_msg("%s", err.text);
    assert_edges(&a, ret);
    return a;
}

/* What an account has of one kind and cause, by whom: tid 0 any. */
static struct prcb_wait of(const struct seen *seen, enum prcb_edge_kind kind, uint32_t cause,
                           uint32_t by, pid_t tid)
{
    struct prcb_wait sum = {0};

    for (size_t i = 0; i < seen->count; i++) {
        const struct prcb_edge *e = &seen->edges[i];

        if (e->kind != kind || e->cause != cause || e->by != by || (tid && e->tid != tid))
            continue;
        sum.count += e->count;
        sum.ns += e->ns;
    }
    return sum;
}

static struct prcb *open_edges(void)
{
    return session_open_flags(1024, PRCB_OPEN_EDGES);
}

/* Who wakes is told by the processors' programs, which say what is an interrupt's. */
static struct prcb *open_wakers(void)
{
    struct prcb *p = open_edges();
    const char *reason = prcb_absent_reason(p, PRCB_HAS_INTERRUPTED);

    if (reason && strstr(reason, "PREEMPT_RT"))
        skip_because("%s", reason);
    return p;
}

static void print_edges(const struct prcb_account *a, const struct seen *seen)
{
    print_account("account", a);
    for (size_t i = 0; i < seen->count; i++) {
        const struct prcb_edge *e = &seen->edges[i];

        printf("        %s %s: %s %" PRIu32 " %d %.16s %" PRIu64 " times %" PRIu64 " ns\n",
               e->cause ? prcb_cause_info(e->cause)->name : "", prcb_edge_kind_name(e->kind),
               prcb_edge_by_name(e->by), e->vector, (int)e->tid, e->comm, e->count, e->ns);
    }
}

/* ---- what the kernel does not report ----
 *
 * Some kernels do not report each switch from an idle processor, nor each wakeup there, and that
 * many times in a row; then nobody is named. They count these switches all the same, by processor.
 * So a test looks before and after, and expects of what lies between no more than that explains. */

static struct prcb_processors *view;

/* Switches of the first one or two processors that the test may use which were not reported up to
 * now. A processor tells of them at its next switch that is: to another thread, which moves the
 * calling one away. That is on the first one afterwards. */
static uint64_t unreported_on(unsigned processors)
{
    struct prcb_processor now = {.size = sizeof(now)};
    struct prcb_error err = {0};
    uint64_t sum = 0;

    if (!view && prcb_processors_open(NULL, &view, &err))
        fail_msg("%s", err.text);
    pin_to(1);
    pin_to(0);
    for (unsigned i = 0; i < processors; i++) {
        int result;

        if (i && cpu_number(i) == cpu_number(i - 1))
            break;
        do
            result = prcb_processor_read(view, cpu_number(i), &now);
        while (result == -EAGAIN);
        assert_int_equal(result, 0);
        sum += now.missed_switches;
    }
    return sum;
}

struct look {
    struct prcb_account account;
    struct seen seen;
    uint64_t unreported;
};

static struct look look_at(struct prcb *p, uint64_t key, unsigned processors)
{
    struct look ret = {.unreported = unreported_on(processors)};

    ret.account = read_edges(p, key, &ret.seen);
    return ret;
}

/* Who should have ended waits of a cause. */
struct whose {
    uint32_t cause, by;
    pid_t tid;
};

/* Of the waits between two looks. Where the cell was given up, `named` may be less than none. */
struct ended {
    uint64_t waits, named, rest, unreported;
    bool given_up; /* the cell may have been, with what it had */
};

#define TO_STAY_NS 100000000 /* time with which a cell stays: more than others get in a test */

/* A cell is given up only for want of a free one among PRCB_EDGE_WAYS, and when it has the least
 * time of these: all others there have more than it had at the first look. They keep it: to push
 * them out, the cell would have to gather as much once more.
 *
 * Traced beside 60 busy loops: the timer's cell was given up three times, with 2, 1 and 2 of its 5
 * waits, each time for one who had the processor before; the rest was these 5. */
static bool may_be_given_up(const struct look *from, const struct look *to,
                            const struct whose *whose)
{
    uint64_t had = of(&from->seen, PRCB_EDGE_WOKEN_BY, whose->cause, whose->by, whose->tid).ns;
    unsigned others = 0;

    for (size_t i = 0; i < to->seen.count; i++) {
        const struct prcb_edge *e = &to->seen.edges[i];

        others += e->by != PRCB_BY_REST && e->ns >= had &&
                  !(e->kind == PRCB_EDGE_WOKEN_BY && e->cause == whose->cause &&
                    e->by == whose->by && (!whose->tid || e->tid == whose->tid));
    }
    return others >= PRCB_EDGE_WAYS - 1;
}

static uint64_t more_of(const struct look *from, const struct look *to, const struct whose *whose)
{
    return of(&to->seen, PRCB_EDGE_WOKEN_BY, whose->cause, whose->by, whose->tid).count -
           of(&from->seen, PRCB_EDGE_WOKEN_BY, whose->cause, whose->by, whose->tid).count;
}

/* The waits that others are said to have ended, as may be where switches were not reported. */
static uint64_t of_others(const struct look *look, const struct whose *whose)
{
    uint32_t cause = whose->cause;

    return look->account.waits[cause].count -
           of(&look->seen, PRCB_EDGE_WOKEN_BY, cause, whose->by, whose->tid).count -
           of(&look->seen, PRCB_EDGE_WOKEN_BY, cause, PRCB_BY_REST, 0).count;
}

static struct ended between(const struct look *from, const struct look *to,
                            const struct whose *whose)
{
    const struct whose rest = {whose->cause, PRCB_BY_REST, 0};
    uint64_t before = of_others(from, whose), after = of_others(to, whose);
    uint32_t cause = whose->cause;

    return (struct ended){
        .waits = to->account.waits[cause].count - from->account.waits[cause].count,
        .named = more_of(from, to, whose),
        /* What was in others' cells that were given up is in the rest now, and was before. */
        .rest = more_of(from, to, &rest) - (before > after ? before - after : 0),
        .unreported = to->unreported - from->unreported,
        .given_up = may_be_given_up(from, to, whose),
    };
}

static void print_ended(struct prcb *p, const struct look *to, const struct ended *ended)
{
    struct prcb_status status = {.size = sizeof(status)};

    printf("    %" PRIu64 " waits, %" PRIu64 " ended by whom they should be, %" PRIu64
           " the rest; %" PRIu64 " switches were not reported\n",
           ended->waits, ended->named, ended->rest, ended->unreported);
    print_edges(&to->account, &to->seen);
    if (!prcb_session_status(p, &status))
        printf("    of all accounts %" PRIu64
               " switches were not reported; programs were not run %" PRIu64 " times\n",
               status.missed_switches, status.recursion_misses);
}

/* Nobody else is named, and the rest is what was not reported: of such a switch the wait before it
 * has no waker, and that after it may have two. Returns whether it says something that all was. The
 * looks themselves explain two: a wait that is open is of the rest, at the first look or at the
 * second, so that there may even be one less than none. */
static bool assert_ended(struct prcb *p, const struct look *to, const struct ended *ended)
{
    bool right = ended->named + ended->rest == ended->waits &&
                 (ended->given_up || (int64_t)ended->rest <= 2 + 2 * (int64_t)ended->unreported);

    if (!right)
        print_ended(p, to, ended);
    assert_true(right);
    return !ended->given_up && !ended->unreported;
}

/* ---- waits that a thread ends ---- */

#define ROUNDS repeated(60000) /* on two processors, each with two wakes */

/* ... and on one, where each takes a quarter of the time: with those a million, but where it takes
 * long. */
static unsigned rounds_on_one(void)
{
    return ROUNDS < 60000 ? ROUNDS : 500000 - ROUNDS;
}

struct pair {
    int there[2], back[2];
};

static int echo(void *arg)
{
    struct pair *pair = arg;
    char byte;

    for (;;) {
        if (read(pair->there[0], &byte, 1) != 1 || write(pair->back[1], &byte, 1) != 1)
            return 1;
    }
}

static void play(const struct pair *pair, unsigned rounds)
{
    char byte = 0;

    for (unsigned i = 0; i < rounds; i++) {
        if (write(pair->there[1], &byte, 1) != 1 || read(pair->back[0], &byte, 1) != 1)
            fail_msg("pipe: %s", strerror(errno));
    }
}

#define PARTS 12

/* Plays so many rounds, each part of them for itself: that of a hundred early wakes one is lost
 * shows in a part, where it is more than what goes with looking. Returns how many parts say that
 * nothing is. */
static unsigned play_parts(struct prcb *p, const struct pair *pair, const uint64_t keys[2],
                           const struct whose wakers[2], unsigned rounds)
{
    struct look from[2], to[2] = {{.unreported = 0}};
    uint64_t waits = 0;
    unsigned judged = 0;

    for (unsigned part = 0; part <= PARTS; part++) {
        for (int i = 0; i < 2; i++) {
            struct ended ended;

            from[i] = to[i];
            to[i] = look_at(p, keys[i], 2);
            if (!part)
                continue;
            ended = between(&from[i], &to[i], &wakers[i]);
            judged += assert_ended(p, &to[i], &ended);
            waits += ended.waits;
        }
        if (part < PARTS)
            play(pair, rounds / PARTS);
    }
    printf("    %" PRIu64 " waits, %u of %u parts judged\n", waits, judged, 2 * PARTS);
    return judged;
}

/* Two processes on two processors wake each other as fast as they can: a wake often comes between
 * "about to sleep" and the switch out. No waker is lost, and none but the other is named; nor on
 * one processor. */
static int play_on(void *arg)
{
    const struct pair *pair = arg;

    while (pair)
        play(pair, 1000);
    return 1;
}

static void test_a_million_wakes_have_their_wakers(void **state)
{
    struct whose wakers[2] = {{PRCB_CAUSE_PIPE, PRCB_BY_THREAD, 0},
                              {PRCB_CAUSE_PIPE, PRCB_BY_THREAD, getpid()}};
    struct prcb *p = open_wakers();
    uint64_t keys[2] = {must_read(must_open(p, 0)).key};
    struct pair pair;
    pid_t child;
    bool judged;

    assert_false(pipe(pair.there) || pipe(pair.back));
    go_before_others(); /* so that a million does not take minutes on a busy machine */
    child = child_start(echo, &pair);
    must_profile_process(p, child, 0);
    keys[1] = must_find(p, child).key;
    wakers[0].tid = child;
    pin_to(0);
    pin_thread(child, 1);
    play(&pair, ROUNDS / PARTS); /* that the cells have their time */
    judged = play_parts(p, &pair, keys, wakers, ROUNDS) > 0;
    pin_thread(child, 0);
    judged &= play_parts(p, &pair, keys, wakers, rounds_on_one()) > 0;
    close(pair.there[0]);
    close(pair.there[1]);
    close(pair.back[0]);
    close(pair.back[1]);
    if (!judged)
        skip_because("in no part each switch was reported and the wakers kept their cells");
}

/* ---- wakes of a thread that has not slept ---- */

#define NEVER_SLEPT 50

struct early {
    uint32_t word;     /* the round; UINT32_MAX: it is over */
    uint32_t returned; /* the round that the waker's call has returned from */
};

/* Wakes who waits for the word as soon as there is somebody to wake, once for each number that it
 * has: often one who is about to sleep. The first it lets wait: so its cell stays. */
static int wake_early(void *arg)
{
    struct early *early = arg;
    uint32_t done = 0, now;

    wait_for(gate_get(&early->word));
    sleep_ns(TO_STAY_NS);
    while ((now = __atomic_load_n(&early->word, __ATOMIC_ACQUIRE)) != UINT32_MAX) {
        if (now == done || syscall(SYS_futex, &early->word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
            continue;
        done = now;
        __atomic_store_n(&early->returned, done, __ATOMIC_RELEASE);
    }
    return 0;
}

/* Waits for the word, which is woken at once; whether that was before the thread slept. */
static bool is_woken_early(struct early *early, uint32_t round)
{
    uint64_t before = own_switches();

    __atomic_store_n(&early->word, round, __ATOMIC_RELEASE);
    if (syscall(SYS_futex, &early->word, FUTEX_WAIT, round, NULL, NULL, 0))
        fail_msg("futex: %s", strerror(errno)); /* nobody else changes the word */
    /* The kernel takes a waiter off the futex's queue first and wakes it afterwards. One that is
     * back by then would have the sleep that follows ended by that wake, and by right. */
    while (__atomic_load_n(&early->returned, __ATOMIC_ACQUIRE) != round)
        ;
    return own_switches() == before;
}

/* Adds the sleeps between two looks, where these say something: if neither the end of a sleep nor
 * the timer's waking was reported, the last wake there was is taken for its end. */
static void add_sleeps(const struct look *from, const struct look *to, struct ended *sum)
{
    static const struct whose timer = {PRCB_CAUSE_SLEEP, PRCB_BY_TIMER, 0};
    struct ended ended = between(from, to, &timer);

    if (ended.unreported || ended.given_up)
        return;
    sum->waits += ended.waits;
    sum->named += ended.named;
    sum->rest += ended.rest;
}

/* A thread that is woken when it is about to sleep, and therefore does not, sleeps for a while
 * afterwards: a timer ends that, whoever woke it before. Witness: the kernel's count of its
 * switches. An emulator that runs one processor at a time changes to the other in that moment once
 * in half a minute of spinning, or never: it gets a tenth of the time that others get. */
static void test_a_wake_of_a_thread_that_never_slept_is_not_kept(void **state)
{
    struct early *early = shared_memory(sizeof(*early));
    struct prcb *p = open_wakers();
    uint64_t key = must_read(must_open(p, 0)).key, until = mono_ns() + 3000000000ull / slowness();
    unsigned never = 0, round = 0;
    struct ended sum = {0};
    struct look from, to;
    pid_t child;

    if (cpu_number(0) == cpu_number(1))
        skip_because("one processor: who is about to sleep is not woken meanwhile");
    child = child_start(wake_early, early);
    go_before_others(); /* but not the child, which spins */
    pin_to(0);
    pin_thread(child, 1);
    sleep_ns(TO_STAY_NS);
    to = look_at(p, key, 1);
    while (never < NEVER_SLEPT && mono_ns() < until) {
        if (!is_woken_early(early, ++round))
            continue;
        sleep_ns(20000);
        never++;
        from = to;
        to = look_at(p, key, 1);
        add_sleeps(&from, &to, &sum);
    }
    __atomic_store_n(&early->word, UINT32_MAX, __ATOMIC_RELEASE);
    printf("    woken %u times before it slept; of %" PRIu64 " sleeps with all reported %" PRIu64
           " ended by the timer\n",
           never, sum.waits, sum.named);
    if (!never)
        skip_because("nobody was woken before it slept");
    if (!sum.waits)
        skip_because("switches were not reported around each such sleep");
    assert_ended(p, &to, &sum);
}

#define WOKEN_EARLY 2000

/* Nearly all wakes of such a waker come between "about to sleep" and the switch out (a program that
 * left out one in a hundred of those on this machine lacked 20 of 2000): none is lost. */
static void test_a_wake_before_the_switch_out_is_not_lost(void **state)
{
    struct early *early = shared_memory(sizeof(*early));
    struct whose waker = {PRCB_CAUSE_FUTEX, PRCB_BY_THREAD, 0};
    struct prcb *p = open_wakers();
    uint64_t key = must_read(must_open(p, 0)).key, until = mono_ns() + 3000000000ull;
    unsigned never = 0, round = 0, judged = 0;
    struct look from, to;

    if (cpu_number(0) == cpu_number(1))
        skip_because("one processor: who is about to sleep is not woken meanwhile");
    waker.tid = child_start(wake_early, early);
    go_before_others(); /* but not the child, which spins */
    pin_to(0);
    pin_thread(waker.tid, 1);
    is_woken_early(early, ++round);
    to = look_at(p, key, 1);
    while (judged < PARTS && mono_ns() < until) {
        struct ended ended;

        from = to;
        for (unsigned i = 0; i < WOKEN_EARLY && mono_ns() < until; i++)
            never += is_woken_early(early, ++round);
        to = look_at(p, key, 1);
        ended = between(&from, &to, &waker);
        judged += assert_ended(p, &to, &ended);
    }
    __atomic_store_n(&early->word, UINT32_MAX, __ATOMIC_RELEASE);
    printf("    %u times woken, %u of them before it slept, %u parts judged\n", round, never,
           judged);
    if (!judged)
        skip_because("in no part each switch was reported and the waker kept its cell");
}

/* ---- a thread's own count of its waits ---- */

/* The kernel's clock, less what it says that the thread ran and was ready: however long somebody
 * else has the processor, or an emulated one stands still, that is no wait. */
struct watch {
    uint64_t wall, run;
    struct kernel_times times;
};

/* The clock is the first that is read, and the last: what goes on between two of the readings is
 * added, and never taken away. */
static struct watch watch_start(void)
{
    struct watch watch;

    watch.wall = mono_ns();
    watch.run = own_run();
    kernel_times(getpid(), gettid(), &watch.times);
    return watch;
}

static uint64_t watch_end(const struct watch *watch)
{
    struct kernel_times now = {0};
    uint64_t spent, wall;

    kernel_times(getpid(), gettid(), &now);
    spent = own_run() - watch->run + now.ready_ns - watch->times.ready_ns;
    wall = mono_ns() - watch->wall;
    return wall > spent ? wall - spent : 0;
}

/* ---- a lock ---- */

#define LOCKERS      4
#define LOCKER_TURNS 150

/* Handed over from one to the next in the order of coming, so that who released it to whom is
 * known, whatever else the machine does. An ordinary mutex would not tell: whoever comes may take
 * it before the one that was woken runs, and release it again, and then the one that had it last is
 * not the one who woke. One that inherits priority is handed over by the kernel, as this is. */
struct locker {
    pthread_t thread;
    struct lock *lock;
    struct locker *next;
    unsigned number;
    uint32_t from; /* gate: who handed it over, plus 1 */
    pid_t tid;
    uint64_t waited[LOCKERS]; /* until it was released by ... */
};

struct lock {
    pthread_mutex_t *mutex; /* NULL: of gates, by the following three */
    bool guard, held;
    struct locker *first;
    unsigned last; /* who had the mutex before, under it */
    unsigned arrived;
    bool go;
    struct locker lockers[LOCKERS];
};

static void guard(struct lock *lock)
{
    while (__atomic_test_and_set(&lock->guard, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void take_mutex(struct locker *self)
{
    uint64_t switches = own_switches();
    struct watch watch = watch_start();

    if (pthread_mutex_lock(self->lock->mutex))
        abort();
    if (own_switches() != switches)
        self->waited[self->lock->last] += watch_end(&watch);
}

static void take(struct locker *self)
{
    struct lock *lock = self->lock;
    struct locker **last = &lock->first;
    struct watch watch;
    unsigned from;

    if (lock->mutex) {
        take_mutex(self);
        return;
    }
    guard(lock);
    if (!lock->held) {
        lock->held = true;
        __atomic_clear(&lock->guard, __ATOMIC_RELEASE);
        return;
    }
    watch = watch_start();
    while (*last)
        last = &(*last)->next;
    *last = self;
    self->next = NULL;
    __atomic_clear(&lock->guard, __ATOMIC_RELEASE);
    gate_wait_while(&self->from, 0);
    from = self->from - 1;
    self->from = 0;
    self->waited[from] += watch_end(&watch);
}

static void release(struct locker *self)
{
    struct lock *lock = self->lock;
    struct locker *next;

    if (lock->mutex) {
        lock->last = self->number;
        pthread_mutex_unlock(lock->mutex);
        return;
    }
    guard(lock);
    next = lock->first;
    lock->first = next ? next->next : NULL;
    lock->held = next != NULL;
    __atomic_clear(&lock->guard, __ATOMIC_RELEASE);
    if (next)
        gate_set(&next->from, self->number + 1);
}

static void *lock_and_hold(void *arg)
{
    struct locker *self = arg;

    self->tid = gettid();
    __atomic_add_fetch(&self->lock->arrived, 1, __ATOMIC_ACQ_REL);
    /* Asleep, so that the only futexes it waits for are the lock's: a barrier's last comer ends the
     * waits of all others. */
    while (!__atomic_load_n(&self->lock->go, __ATOMIC_ACQUIRE))
        sleep_ns(1000000);
    for (unsigned i = 0; i < LOCKER_TURNS; i++) {
        take(self);
        sleep_ns(1000000 * (self->number + 1)); /* its hold time */
        release(self);
        sleep_ns(500000 * (1 + (mono_ns() & 7))); /* so that they come in changing orders */
    }
    return NULL;
}

static uint64_t key_of(struct prcb *p, pid_t tid)
{
    return must_find(p, tid).key;
}

/* How far shares may be apart: what a waiter's own count has more than the edges may be of any
 * share. */
static double share_bound(uint64_t own, uint64_t edges)
{
    return .02 + (own > edges ? (double)(own - edges) / (double)own : 0);
}

/* Shares of the time that each waited for each, by their own counts and by edges. unreported: of
 * the processor that they ran on. */
static void compare_lockers(struct prcb *p, struct lock *lock, uint64_t unreported)
{
    uint64_t lacking = 0;

    for (unsigned i = 0; i < LOCKERS; i++) {
        struct locker *waiter = &lock->lockers[i];
        struct prcb_wait by[LOCKERS];
        uint64_t own = 0, edges = 0;
        struct seen seen;
        double bound;

        read_edges(p, key_of(p, waiter->tid), &seen);
        for (unsigned k = 0; k < LOCKERS; k++) {
            by[k] = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_FUTEX, PRCB_BY_THREAD,
                       lock->lockers[k].tid);
            own += waiter->waited[k];
            edges += by[k].ns;
        }
        lacking += of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_FUTEX, PRCB_BY_REST, 0).count;
        assert_true(own && edges); /* each has waited, and was seen to */
        bound = share_bound(own, edges);
        for (unsigned k = 0; k < LOCKERS; k++) {
            double share = (double)by[k].ns / (double)edges;
            double witness = (double)waiter->waited[k] / (double)own;

            printf("    %u waited for %u: %.1f %%, by its own count %.1f %%\n", i, k, 100 * share,
                   100 * witness);
            assert_true(share - witness < bound && witness - share < bound);
        }
    }
    printf("    %" PRIu64 " waits have no waker, %" PRIu64 " switches were not reported\n", lacking,
           unreported);
    assert_true(lacking <= unreported);
}

/* mutex: NULL, or what is taken instead of gates. */
static void play_lock(pthread_mutex_t *mutex)
{
    struct lock *lock = shared_memory(sizeof(*lock));
    struct prcb *p = open_wakers();
    uint64_t unreported;

    lock->mutex = mutex;
    go_before_others(); /* time between two clocks is nobody's share */
    pin_to(0);          /* on one, others' switches that were not reported explain nothing */
    for (unsigned i = 0; i < LOCKERS; i++) {
        lock->lockers[i] = (struct locker){.lock = lock, .number = i};
        pthread_create(&lock->lockers[i].thread, NULL, lock_and_hold, &lock->lockers[i]);
    }
    assert_true(wait_for(__atomic_load_n(&lock->arrived, __ATOMIC_ACQUIRE) == LOCKERS));
    must_profile_process(p, getpid(), PRCB_FOLLOW_THREADS);
    unreported = unreported_on(1);
    __atomic_store_n(&lock->go, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < LOCKERS; i++)
        pthread_join(lock->lockers[i].thread, NULL);
    compare_lockers(p, lock, unreported_on(1) - unreported);
}

static void test_lock(void **state)
{
    play_lock(NULL);
}

static void test_pthread_mutex(void **state)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    if (pthread_mutex_init(&mutex, &attributes))
        skip_because("no mutexes that inherit priority");
    play_lock(&mutex);
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attributes);
}

/* ---- who holds the kernel's locks ---- */

#define HOLDERS 2
#define TURNS   12

/* Threads that write from a page that is not there: each holds the lock of what it writes to, a
 * pipe's mutex or the semaphore of a file in memory, until the test supplies the page, while
 * another thread waits for the lock. */
struct holding {
    bool is_file;
    int from, to; /* descriptors */
    int faults;   /* userfaultfd */
    char *page;
    uint32_t holder_turn[HOLDERS], waiter_turn; /* gates: 1: go, 0: done */
    pid_t holders[HOLDERS], waiter;
    uint64_t waited[HOLDERS]; /* by the waiter's own count */
    unsigned turn;            /* whose */
};

static struct holding holding;

static void write_byte(const char *at)
{
    if ((holding.is_file ? pwrite(holding.to, at, 1, 0) : write(holding.to, at, 1)) != 1)
        abort();
}

static void *hold_lock(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;

    __atomic_store_n(&holding.holders[number], gettid(), __ATOMIC_RELEASE);
    for (unsigned i = 0; i < TURNS / HOLDERS; i++) {
        gate_wait_while(&holding.holder_turn[number], 0);
        write_byte(holding.page);
        gate_set(&holding.holder_turn[number], 0);
    }
    return NULL;
}

static void *wait_for_lock(void *unused)
{
    __atomic_store_n(&holding.waiter, gettid(), __ATOMIC_RELEASE);
    for (unsigned i = 0; i < TURNS; i++) {
        struct watch watch;

        gate_wait_while(&holding.waiter_turn, 0);
        watch = watch_start();
        write_byte("x");
        holding.waited[holding.turn] += watch_end(&watch);
        gate_set(&holding.waiter_turn, 0);
    }
    return NULL;
}

static void open_target(bool is_file)
{
    int pipe[2];

    memset(&holding, 0, sizeof(holding));
    holding.is_file = is_file;
    if (is_file) {
        holding.from = holding.to = memfd_create("prcb-test", MFD_CLOEXEC);
        assert_true(holding.to >= 0);
        return;
    }
    assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
    holding.from = pipe[0];
    holding.to = pipe[1];
}

static void open_faults(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    long size = sysconf(_SC_PAGESIZE);

    holding.faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (holding.faults < 0 || ioctl(holding.faults, UFFDIO_API, &api))
        skip_because("no userfaultfd: %s", strerror(errno));
    holding.page =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(holding.page, MAP_FAILED);
    range.range.start = (uintptr_t)holding.page;
    range.range.len = (uint64_t)size;
    if (ioctl(holding.faults, UFFDIO_REGISTER, &range))
        skip_because("userfaultfd cannot be registered: %s", strerror(errno));
}

/* One holds the lock for so long, while the other waits for it. */
static void take_turn(unsigned number, uint64_t ns)
{
    struct uffdio_zeropage zero = {.range.start = (uintptr_t)holding.page,
                                   .range.len = (uint64_t)sysconf(_SC_PAGESIZE)};
    struct uffd_msg message;
    char bytes[2];

    assert_int_equal(madvise(holding.page, zero.range.len, MADV_DONTNEED), 0);
    holding.turn = number;
    gate_set(&holding.holder_turn[number], 1);
    assert_int_equal(read(holding.faults, &message, sizeof(message)), sizeof(message));
    gate_set(&holding.waiter_turn, 1);
    assert_true(wait_for(kernel_state(getpid(), holding.waiter) == 'D'));
    sleep_ns(ns);
    assert_int_equal(ioctl(holding.faults, UFFDIO_ZEROPAGE, &zero), 0);
    gate_wait_while(&holding.holder_turn[number], 1);
    gate_wait_while(&holding.waiter_turn, 1);
    if (!holding.is_file)
        assert_int_equal(read(holding.from, bytes, 2), 2);
}

/* Shares of the time that the waiter waited for each holder, by its own count and by edges. */
static void compare_holders(bool is_file, uint32_t cause)
{
    struct prcb_wait by[HOLDERS], woken[HOLDERS], rest;
    pthread_t threads[HOLDERS], waiter;
    uint64_t edges = 0, own = 0, unreported;
    struct prcb_account a;
    struct seen seen;
    struct prcb *p;

    open_target(is_file);
    open_faults();
    go_before_others();
    p = session_open_flags(64, PRCB_OPEN_EDGES | PRCB_OPEN_OWNERS);
    pin_to(1);
    for (unsigned i = 0; i < HOLDERS; i++)
        pthread_create(&threads[i], NULL, hold_lock, (void *)(uintptr_t)i);
    pin_to(0);
    pthread_create(&waiter, NULL, wait_for_lock, NULL);
    assert_true(wait_for(__atomic_load_n(&holding.waiter, __ATOMIC_ACQUIRE) &&
                         __atomic_load_n(&holding.holders[0], __ATOMIC_ACQUIRE) &&
                         __atomic_load_n(&holding.holders[1], __ATOMIC_ACQUIRE)));
    must_profile_process(p, getpid(), PRCB_FOLLOW_THREADS);
    unreported = unreported_on(1); /* the waiter's */
    for (unsigned i = 0; i < TURNS; i++)
        take_turn(i % HOLDERS, i % HOLDERS ? 30000000 : 10000000);
    unreported = unreported_on(1) - unreported;
    a = read_edges(p, key_of(p, holding.waiter), &seen);
    for (unsigned i = 0; i < HOLDERS; i++) {
        by[i] = of(&seen, PRCB_EDGE_HELD_BY, cause, PRCB_BY_THREAD, holding.holders[i]);
        woken[i] = of(&seen, PRCB_EDGE_WOKEN_BY, cause, PRCB_BY_THREAD, holding.holders[i]);
        own += holding.waited[i];
        edges += by[i].ns;
    }
    if (!a.waits[cause].count)
        skip_because("this kernel tells of no contended lock");
    print_edges(&a, &seen);
    /* Nobody else had it; of a wait whose end the kernel did not report the waker alone is told. */
    rest = of(&seen, PRCB_EDGE_HELD_BY, cause, PRCB_BY_REST, 0);
    assert_int_equal(edges + rest.ns, a.waits[cause].ns);
    assert_true(rest.count <= unreported && rest.count <= TURNS / 2);
    for (unsigned i = 0; i < HOLDERS; i++) {
        double share = (double)by[i].ns / (double)edges;
        double witness = (double)holding.waited[i] / (double)own;

        printf("    held by %u: %.1f %%, by its own count %.1f %%\n", i, 100 * share,
               100 * witness);
        assert_true(share - witness < share_bound(own, edges) &&
                    witness - share < share_bound(own, edges));
        /* Who held it has let it go. */
        assert_in_range(by[i].count, TURNS / HOLDERS - rest.count, TURNS / HOLDERS);
        assert_in_range(woken[i].ns, by[i].ns, by[i].ns + rest.ns);
    }
    for (unsigned i = 0; i < HOLDERS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(waiter, NULL);
    close(holding.from);
    if (!is_file)
        close(holding.to);
    close(holding.faults);
    munmap(holding.page, (size_t)sysconf(_SC_PAGESIZE));
}

static void test_kernel_mutex(void **state)
{
    compare_holders(false, PRCB_CAUSE_MUTEX);
}

static void test_kernel_semaphore(void **state)
{
    compare_holders(true, PRCB_CAUSE_RWSEM);
}

/* ---- what is no thread ---- */

#define MOST_ROUNDS 20

static void test_timer(void **state)
{
    static const struct whose timer = {PRCB_CAUSE_SLEEP, PRCB_BY_TIMER, 0};
    struct prcb *p = open_wakers();
    uint64_t key = must_read(must_open(p, 0)).key, until = mono_ns() + 10000000000ull;
    unsigned judged = 0;
    struct look from, to;

    /* Each who had the processor before it would need one of its cells, which are few: those of a
     * busy machine would push out the one that is looked at. */
    go_before_others();
    pin_to(0);
    sleep_ns(TO_STAY_NS);
    to = look_at(p, key, 1);
    for (unsigned i = 0; i < MOST_ROUNDS && judged < 3 && mono_ns() < until; i++) {
        struct ended ended;

        from = to;
        for (int k = 0; k < 200; k++)
            sleep_ns(300000);
        to = look_at(p, key, 1);
        ended = between(&from, &to, &timer);
        judged += assert_ended(p, &to, &ended);
    }
    if (!judged)
        skip_because("switches were not reported in any round, or the timer's cell was given up");
}

/* Half of the waits on one futex are ended by a thread, half by their timeouts. The first two are
 * long: with them the cells that the two need are theirs. */
#define TIMEOUTS 50

static uint64_t length_of(uint32_t turn)
{
    return turn ? 1000000 : TO_STAY_NS;
}

static void *wake_by_turns(void *arg)
{
    uint32_t *words = arg;

    pin_to(1);
    for (uint32_t i = 0; i <= TIMEOUTS; i++) {
        gate_wait_while(&words[0], i);
        sleep_ns(length_of(i));
        gate_set(&words[1], i + 1);
    }
    return NULL;
}

static void wait_until_timeout(uint64_t ns)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec until;

    pthread_mutex_lock(&mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&cond, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void test_timeouts(void **state)
{
    static const struct whose timer = {PRCB_CAUSE_FUTEX, PRCB_BY_TIMER, 0},
                              thread = {PRCB_CAUSE_FUTEX, PRCB_BY_THREAD, 0};
    struct prcb *p = open_wakers();
    uint64_t key = must_read(must_open(p, 0)).key, timed, woken;
    uint32_t *words = shared_memory(2 * sizeof(*words));
    struct look from, to;
    struct ended ended;
    pthread_t waker;

    go_before_others();
    pin_to(0);
    pthread_create(&waker, NULL, wake_by_turns, words);
    for (uint32_t i = 0; i <= TIMEOUTS; i++) {
        if (i == 1)
            from = look_at(p, key, 1);
        wait_until_timeout(length_of(i));
        gate_set(&words[0], i + 1);
        gate_wait_while(&words[1], i);
    }
    to = look_at(p, key, 1);
    pthread_join(waker, NULL);
    timed = more_of(&from, &to, &timer);
    woken = more_of(&from, &to, &thread);
    ended = between(&from, &to, &timer);
    ended.named = timed + woken;
    ended.given_up |= may_be_given_up(&from, &to, &thread);
    assert_ended(p, &to, &ended);
    if (ended.given_up)
        skip_because("others who had the processor pushed a cell out");
    /* On a slow machine some moments are past before it would sleep. */
    if (timed > TIMEOUTS || timed < 30 || woken < 40)
        print_ended(p, &to, &ended);
    assert_in_range(timed, 30, TIMEOUTS);
    assert_true(woken >= 40);
}

/* A datagram by way of the loopback device is handed over by a softirq, whoever it struck. */
static int send_datagrams(void *arg)
{
    int *fds = arg;
    char byte = 0;

    for (;;) {
        sleep_ns(1000000);
        if (send(fds[1], &byte, 1, 0) != 1)
            return 1;
    }
}

static void test_network(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct prcb *p = open_wakers();
    struct prcb_account a, before = must_read(must_open(p, 0));
    struct prcb_wait by = {0};
    socklen_t length = sizeof(address);
    struct seen seen;
    int fds[2];
    char byte;

    fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    fds[1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fds[0] < 0 || fds[1] < 0 || bind(fds[0], (void *)&address, sizeof(address)) ||
        getsockname(fds[0], (void *)&address, &length) ||
        connect(fds[1], (void *)&address, sizeof(address)))
        skip_because("no loopback network: %s", strerror(errno));
    go_before_others();
    child_start(send_datagrams, fds);
    for (int i = 0; i < 100; i++)
        assert_int_equal(recv(fds[0], &byte, 1, 0), 1);
    a = read_edges(p, before.key, &seen);
    for (size_t i = 0; i < seen.count; i++) {
        const struct prcb_edge *e = &seen.edges[i];

        if (e->kind == PRCB_EDGE_WOKEN_BY && e->cause == PRCB_CAUSE_SOCKET &&
            e->by == PRCB_BY_SOFTIRQ && !strcmp(prcb_softirq_name(e->vector), "net_rx"))
            by.count += e->count;
    }
    /* A slow machine finds some datagrams there already. */
    if (by.count < a.waits[PRCB_CAUSE_SOCKET].count * 8 / 10)
        print_edges(&a, &seen);
    assert_true(a.waits[PRCB_CAUSE_SOCKET].count > 50);
    assert_true(by.count >= a.waits[PRCB_CAUSE_SOCKET].count * 8 / 10);
    assert_int_equal(of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SOCKET, PRCB_BY_THREAD, 0).count, 0);
    close(fds[0]);
    close(fds[1]);
}

/* ---- who has the processor ---- */

static void be_real_time(pid_t tid, int priority)
{
    struct sched_param param = {.sched_priority = priority};

    if (sched_setscheduler(tid, SCHED_FIFO, &param))
        skip_because("no real-time scheduling: %s", strerror(errno));
}

static void spin(uint64_t ns)
{
    for (uint64_t until = mono_ns() + ns; mono_ns() < until;)
        ;
}

static int neighbour(void *arg)
{
    for (;;) {
        spin(2000000);
        sleep_ns(2000000);
    }
    return 0;
}

/* How often the kernel says that the calling thread was made to leave its processor. */
static uint64_t own_preemptions(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nivcsw;
}

/* A real-time thread on the same processor, so that others have no part in it: it is to blame for
 * what the thread, real-time as well, was ready, once who moved it there has done so. By so many
 * turns and not for a time: an emulator that has no processor for long is in somebody's turn. */
static void test_neighbour(void **state)
{
    struct prcb *p = open_edges();
    struct sched_param normal = {0};
    struct prcb_wait preempted, behind;
    struct prcb_account a, before;
    uint64_t since;
    struct seen seen;
    pid_t child;

    child = child_start(neighbour, NULL);
    pin_to(0);
    pin_thread(child, 0);
    be_real_time(child, 2);
    be_real_time(0, 1);
    before = must_read(must_open(p, 0));
    since = own_preemptions();
    assert_true(wait_for((spin(3000000), own_preemptions() >= since + 60)));
    sched_setscheduler(0, SCHED_OTHER, &normal);
    a = read_edges(p, before.key, &seen);
    preempted = of(&seen, PRCB_EDGE_PREEMPTED_BY, PRCB_CAUSE_PREEMPTED, PRCB_BY_THREAD, child);
    behind = of(&seen, PRCB_EDGE_BEHIND, PRCB_CAUSE_NONE, PRCB_BY_THREAD, child);
    printf("    ready %" PRIu64 " us, of that preempted by the neighbour %" PRIu64
           " us, behind it %" PRIu64 " us\n",
           a.ready_ns / 1000, preempted.ns / 1000, behind.ns / 1000);
    if (preempted.ns + behind.ns < a.ready_ns / 2)
        print_edges(&a, &seen);
    assert_true(preempted.count > 10);
    assert_true(preempted.ns + behind.ns >= a.ready_ns / 2);
    child_kill(child);
}

/* ---- the law, whatever goes on ---- */

static bool rest_now;

static void *restless(void *arg)
{
    struct pair *pair = arg;
    char byte = 0;

    for (int i = 0; !__atomic_load_n(&rest_now, __ATOMIC_RELAXED); i++) {
        if (i % 7 == 0)
            sleep_ns(50000);
        if (i % 5 == 0)
            sched_yield();
        if (write(pair->there[1], &byte, 1) != 1 || read(pair->there[0], &byte, 1) != 1)
            break;
    }
    return NULL;
}

/* All threads of the machine, read again and again by many more threads than an account has cells
 * for; each copy keeps the law. */
static void test_law(void **state)
{
    struct prcb *p = session_open_flags(0, PRCB_OPEN_EDGES | PRCB_OPEN_MEANWHILE);
    struct prcb_error err = {0};
    pthread_t threads[60];
    struct pair pair;
    unsigned copies = 0;

    assert_false(pipe(pair.there));
    rest_now = false;
    if (prcb_profile_all(p, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 60; i++)
        pthread_create(&threads[i], NULL, restless, &pair);
    for (uint64_t until = mono_ns() + 1000000000ull * (slowness() > 1 ? 3 : 1);
         mono_ns() < until;) {
        struct prcb_account *all;
        size_t count;

        all = all_accounts(p, &count);
        for (size_t i = 0; i < count; i++, copies++) {
            struct seen seen;

            read_edges(p, all[i].key, &seen);
        }
    }
    __atomic_store_n(&rest_now, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 60; i++)
        pthread_join(threads[i], NULL);
    printf("    %u copies\n", copies);
    close(pair.there[0]);
    close(pair.there[1]);
}

static void test_without(void **state)
{
    struct prcb *p = session_open(64);
    struct prcb_account a = must_read(must_open(p, 0));
    struct prcb_error err = {0};
    struct seen seen = {.count = 0};

    assert_int_equal(prcb_edges_walk(p, a.key, NULL, keep, &seen, &err), -EOPNOTSUPP);
    assert_non_null(strstr(err.text, "PRCB_OPEN_EDGES"));
    p = open_edges();
    assert_int_equal(prcb_edges_walk(p, 77, NULL, keep, &seen, &err), -ESTALE);
    assert_int_equal(seen.count, 0);
}

/* ---- switch records ---- */

/* What a reader expects of two threads that wait for each other in pipes. */
struct read_switches {
    pid_t tids[2];
    char comm[16];
    uint64_t outs[2], records, strange, woken;
    uint64_t written;   /* of each switch one or two */
    uint64_t last[256]; /* stamps, by processor */
};

static bool is_sound(struct read_switches *seen, const struct prcb_switch *s)
{
    bool in_order = s->cpu < 256 && s->time_ns >= seen->last[s->cpu];

    if (s->cpu < 256)
        seen->last[s->cpu] = s->time_ns;
    for (unsigned i = 0; i < 2; i++) {
        seen->outs[i] += s->old_tid == (uint32_t)seen->tids[i];
        seen->woken += s->new_tid == (uint32_t)seen->tids[i] &&
                       s->waker_tid == (uint32_t)seen->tids[!i] && s->woken_ns <= s->time_ns;
    }
    return in_order && (s->old_tid || s->new_tid) &&
           (!s->old_tid || (!strcmp(s->old_comm, seen->comm) && prcb_cause_info(s->cause))) &&
           (!s->new_tid || (!strcmp(s->new_comm, seen->comm) && prcb_cause_info(s->new_cause))) &&
           (!s->waker_by || prcb_edge_by_name(s->waker_by));
}

static int read_switch(const struct prcb_switch *s, void *ctx)
{
    struct read_switches *seen = ctx;

    seen->records++;
    seen->written += !!s->old_tid + !!s->new_tid;
    seen->strange += !is_sound(seen, s);
    return 0;
}

static struct prcb *open_switches(size_t bytes, pid_t child, struct read_switches *seen)
{
    const struct prcb_options options = {
        .size = sizeof(options),
        .tier = PRCB_TIER_BPF,
        .flags = PRCB_OPEN_SWITCHES,
        .max_threads = 64,
        .switch_bytes = bytes,
    };
    struct prcb_error err = {0};
    struct prcb *p = NULL;

    if (prcb_open(&options, &p, &err))
        fail_msg("%s", err.text);
    *seen = (struct read_switches){.tids = {gettid(), child}};
    assert_int_equal(prctl(PR_GET_NAME, seen->comm), 0);
    must_profile_thread(p, gettid(), 0);
    must_profile_thread(p, child, 0);
    return p;
}

/* Every switch that the kernel counts has its record, with its thread's name, and each wait who
 * ended it, though nobody reads meanwhile. */
static void test_switch_records_are_the_kernels(void **state)
{
    struct pair pair;
    struct read_switches seen;
    struct prcb_switch_room room = {.size = sizeof(room)};
    uint64_t before, after, first, kernel, unreported;
    struct prcb_error err = {0};
    struct prcb *p;
    pid_t child;

    assert_false(pipe(pair.there) || pipe(pair.back));
    child = child_start(echo, &pair);
    pin_to(0);
    pin_thread(child, 1);
    p = open_switches(64u << 20, child, &seen);
    unreported = unreported_on(2);
    pin_to(0);
    do { /* whatever switches while records are read is read, too */
        first = own_switches();
        assert_int_equal(prcb_session_switches(p, read_switch, &seen, NULL, &err), 0);
    } while (own_switches() != first);
    before = seen.outs[0];
    play(&pair, repeated(20000));
    do {
        kernel = own_switches() - first;
        assert_int_equal(prcb_session_switches(p, read_switch, &seen, &room, &err), 0);
    } while (own_switches() - first != kernel);
    after = seen.outs[0];
    unreported = unreported_on(2) - unreported;
    printf("    %" PRIu64 " switches of the kernel's, %" PRIu64 " records of them, %" PRIu64
           " not reported\n",
           kernel, after - before, unreported);
    assert_int_equal(room.lost, 0);
    assert_int_equal(seen.strange, 0);
    assert_true(kernel - (after - before) <= unreported);
    assert_true(seen.woken > kernel && seen.outs[1] > 0);
    /* Read again, from the beginning. */
    assert_int_equal(room.from_ns, 0);
    before = seen.records;
    memset(seen.last, 0, sizeof(seen.last));
    assert_int_equal(prcb_session_switches_rewind(p, &err), 0);
    assert_int_equal(prcb_session_switches(p, read_switch, &seen, &room, &err), 0);
    assert_true(seen.records >= 2 * before && !room.from_ns && !seen.strange);
    prcb_close(p);
}

/* A processor goes off line and comes back: its ring stays, and is gone on with. */
static void test_switch_records_over_hotplug(void **state)
{
    const char *allowed = getenv("PRCB_TEST_HOTPLUG");
    struct pair pair;
    struct read_switches seen;
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct prcb_error err = {0};
    uint64_t kernel, unreported;
    struct prcb *p;
    pid_t child;

    if (!allowed || *allowed != '1' || access("/sys/devices/system/cpu/cpu1/online", W_OK))
        skip_because("takes processor 1 down; set PRCB_TEST_HOTPLUG=1 in a guest");
    assert_false(pipe(pair.there) || pipe(pair.back));
    child = child_start(echo, &pair);
    pin_to(0);
    p = open_switches(64u << 20, child, &seen);
    unreported = unreported_on(2);
    pin_to(0);
    assert_int_equal(prcb_session_switches(p, read_switch, &seen, NULL, &err), 0);
    seen.outs[0] = 0;
    kernel = own_switches();
    for (int i = 0; i < 3; i++) {
        pin_thread(child, 1);
        play(&pair, 1000);
        assert_true(processor_1_online(false));
        play(&pair, 1000);
        assert_true(processor_1_online(true));
    }
    assert_int_equal(prcb_session_switches(p, read_switch, &seen, &room, &err), 0);
    kernel = own_switches() - kernel;
    unreported = unreported_on(2) - unreported;
    printf("    %" PRIu64 " switches of the kernel's, %" PRIu64 " records\n", kernel, seen.outs[0]);
    assert_int_equal(room.lost + seen.strange, 0);
    /* It may lose its processor while the records are read. */
    assert_in_range(seen.outs[0] + unreported + 10, kernel, kernel + 20 + unreported);
    prcb_close(p);
}

enum { TORN_BYTES = 8u << 10 };

/* Until its player has switched more often than all rings of TORN_BYTES have records: a reader
 * that keeps pace, as one does in an emulated machine, would never see one overwritten. */
static void overwrite(struct prcb *p, pid_t player)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    size_t elements = TORN_BYTES / sizeof(struct prcb_switch_element);
    uint64_t first = must_find(p, player).switches;

    if (processors > (long)elements) /* each has one at least */
        elements = (size_t)processors;
    while (must_find(p, player).switches - first <= elements * PRCB_SWITCHES_EACH)
        sched_yield();
}

/* Overwritten again and again beside its reader, a ring shows no record that was not written.
 * PRCB_TORN=N: until N records were written, with a pair that switches on each of two processors.
 */
static void test_no_switch_record_is_torn(void **state)
{
    const char *asked = getenv("PRCB_TORN");
    uint64_t most = asked ? strtoull(asked, NULL, 10) : 0;
    struct pair pair, other;
    struct read_switches seen;
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct prcb_error err = {0};
    uint64_t until;
    struct prcb *p;
    pid_t child, player;

    assert_false(pipe(pair.there) || pipe(pair.back));
    child = child_start(echo, &pair);
    player = child_start(play_on, &pair);
    p = open_switches(most ? 2u << 20 : TORN_BYTES, child, &seen);
    must_profile_thread(p, player, 0);
    seen.tids[0] = player;
    if (most) {
        const pid_t more[] = {pipe(other.there) || pipe(other.back) ? 0 : child_start(echo, &other),
                              child_start(play_on, &other)};

        for (int i = 0; i < 2; i++) {
            must_profile_thread(p, more[i], 0);
            pin_thread(more[i], 1);
        }
        pin_thread(child, 0);
        pin_thread(player, 0);
    }
    until = mono_ns() + 1000000000ull * slowness();
    do {
        if (!most)
            overwrite(p, player);
        assert_int_equal(prcb_session_switches(p, read_switch, &seen, &room, &err), 0);
    } while (mono_ns() < until || seen.written + room.lost < most);
    printf("    %" PRIu64 " records read, %" PRIu64 " overwritten, %" PRIu64 " torn\n",
           seen.written, room.lost, seen.strange);
    assert_true(room.lost > 0 && seen.records > 0);
    memset(seen.last, 0, sizeof(seen.last));
    assert_int_equal(prcb_session_switches_rewind(p, &err), 0);
    assert_int_equal(prcb_session_switches(p, read_switch, &seen, &room, &err), 0);
    assert_true(room.from_ns > until - 1000000000ull * slowness());
    assert_int_equal(seen.strange, 0);
    prcb_close(p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BPF_TEST(test_without),
        BPF_TEST(test_a_million_wakes_have_their_wakers),
        BPF_TEST(test_a_wake_of_a_thread_that_never_slept_is_not_kept),
        BPF_TEST(test_a_wake_before_the_switch_out_is_not_lost),
        BPF_TEST(test_lock),
        BPF_TEST(test_pthread_mutex),
        BPF_TEST(test_timer),
        BPF_TEST(test_timeouts),
        BPF_TEST(test_network),
        BPF_TEST(test_neighbour),
        BPF_TEST(test_law),
        BPF_TEST(test_kernel_mutex),
        BPF_TEST(test_kernel_semaphore),
        BPF_TEST(test_switch_records_are_the_kernels),
        BPF_TEST(test_no_switch_record_is_torn),
        BPF_TEST(test_switch_records_over_hotplug),
    };

    int result;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    result = BPF_RUN("edges", tests);
    prcb_processors_close(view);
    return result;
}
