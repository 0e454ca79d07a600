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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <prcb/edges.h>

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

/* Some kernels do not report each switch of a processor that was idle, nor each wakeup there; then
 * nobody is named. */
static uint64_t most_unreported(uint64_t count)
{
    return 2 + count / 20;
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

/* Whether all waits for the pipe were ended by this thread; the rest is what was not reported. */
static void assert_woken_by(struct prcb *p, uint64_t key, pid_t waker)
{
    struct seen seen;
    struct prcb_account a = read_edges(p, key, &seen);
    uint64_t waits = a.waits[PRCB_CAUSE_PIPE].count;
    struct prcb_wait by = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_PIPE, PRCB_BY_THREAD, waker);
    struct prcb_wait rest = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_PIPE, PRCB_BY_REST, 0);
    struct prcb_wait unknown = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_PIPE, PRCB_BY_UNKNOWN, 0);

    printf("    %" PRIu64 " waits, %" PRIu64 " ended by the other, %" PRIu64 " by nobody known\n",
           waits, by.count, rest.count);
    if (by.count + rest.count != waits || unknown.count)
        print_edges(&a, &seen);
    assert_int_equal(by.count + rest.count, waits);
    assert_int_equal(unknown.count, 0);
    assert_true(rest.count <= most_unreported(waits));
}

static void play(const struct pair *pair, unsigned rounds)
{
    char byte = 0;

    for (unsigned i = 0; i < rounds; i++) {
        if (write(pair->there[1], &byte, 1) != 1 || read(pair->back[0], &byte, 1) != 1)
            fail_msg("pipe: %s", strerror(errno));
    }
}

/* Two processes on two processors wake each other as fast as they can: a wake often comes between
 * "about to sleep" and the switch out. No waker is lost, and none but the other is named; nor on
 * one processor. */
static void test_a_million_wakes_have_their_wakers(void **state)
{
    struct prcb *p = open_edges();
    uint64_t self = must_read(must_open(p, 0)).key, other;
    struct pair pair;
    pid_t child;

    assert_false(pipe(pair.there) || pipe(pair.back));
    go_before_others(); /* so that a million does not take minutes on a busy machine */
    child = child_start(echo, &pair);
    must_profile_process(p, child, 0);
    other = must_find(p, child).key;
    pin_to(0);
    pin_thread(child, 1);
    play(&pair, ROUNDS);
    pin_thread(child, 0);
    play(&pair, rounds_on_one());
    assert_woken_by(p, self, child);
    assert_woken_by(p, other, getpid());
    close(pair.there[0]);
    close(pair.there[1]);
    close(pair.back[0]);
    close(pair.back[1]);
}

/* Traced beside 60 busy loops: the timer's cell was given up three times, with 2, 1 and 2 of its 5
 * waits, each time for one who had the processor before; the rest was these 5.
 *
 * A cell is pushed out only where as many others as an account has cells have more time, and one
 * that was begun is never free again: where there are fewer it was always there. */
static bool may_push_out(const struct seen *seen)
{
    uint64_t cells = 0;

    for (size_t i = 0; i < seen->count; i++)
        cells += seen->edges[i].by != PRCB_BY_REST;
    return cells > PRCB_EDGE_WAYS;
}

/* ---- wakes of a thread that has not slept ---- */

#define NEVER_SLEPT 50

/* Wakes who waits for the word as soon as there is somebody to wake, once for each number that it
 * has: often one who is about to sleep. */
static int wake_early(void *arg)
{
    uint32_t *word = arg, done = 0, now;

    while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != UINT32_MAX) {
        if (now != done && syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) == 1)
            done = now;
    }
    return 0;
}

/* A thread that is woken when it is about to sleep, and therefore does not, sleeps for a while
 * afterwards: a timer ends that, whoever woke it before. Witness: the kernel's count of its
 * switches. An emulator that runs one processor at a time changes to the other in that moment once
 * in half a minute of spinning, or never: it gets a tenth of the time that others get. */
static void test_a_wake_of_a_thread_that_never_slept_is_not_kept(void **state)
{
    uint32_t *word = shared_memory(sizeof(*word));
    struct prcb *p = open_edges();
    uint64_t key = must_read(must_open(p, 0)).key, until = mono_ns() + 3000000000ull / slowness();
    struct prcb_wait timer, rest;
    unsigned never = 0, round = 0;
    struct prcb_account a;
    struct seen seen;
    pid_t child;

    if (cpu_number(0) == cpu_number(1))
        skip_because("one processor: who is about to sleep is not woken meanwhile");
    child = child_start(wake_early, word);
    go_before_others(); /* but not the child, which spins */
    pin_to(0);
    pin_thread(child, 1);
    while (never < NEVER_SLEPT && mono_ns() < until) {
        uint64_t before = own_switches();

        __atomic_store_n(word, ++round, __ATOMIC_RELEASE);
        if (syscall(SYS_futex, word, FUTEX_WAIT, round, NULL, NULL, 0))
            fail_msg("futex: %s", strerror(errno)); /* nobody else changes the word */
        if (own_switches() != before)
            continue;
        sleep_ns(20000);
        never++;
    }
    __atomic_store_n(word, UINT32_MAX, __ATOMIC_RELEASE);
    a = read_edges(p, key, &seen);
    timer = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SLEEP, PRCB_BY_TIMER, 0);
    rest = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SLEEP, PRCB_BY_REST, 0);
    printf("    woken %u times before it slept; of %" PRIu64 " sleeps %" PRIu64
           " ended by the timer\n",
           never, a.waits[PRCB_CAUSE_SLEEP].count, timer.count);
    if (!never)
        skip_because("nobody was woken before it slept");
    if (timer.count + rest.count != a.waits[PRCB_CAUSE_SLEEP].count)
        print_edges(&a, &seen);
    assert_int_equal(of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SLEEP, PRCB_BY_THREAD, 0).count, 0);
    assert_int_equal(timer.count + rest.count, a.waits[PRCB_CAUSE_SLEEP].count);
    if (rest.count > 2 + timer.count / 4 && may_push_out(&seen))
        skip_because("few sleeps: others who had the processor pushed the timer's cell out");
    assert_true(rest.count <= 2 + timer.count / 4);
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
 * known, whatever else the machine does. */
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
    bool guard, held;
    struct locker *first;
    unsigned arrived;
    bool go;
    struct locker lockers[LOCKERS];
};

static void guard(struct lock *lock)
{
    while (__atomic_test_and_set(&lock->guard, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void take(struct locker *self)
{
    struct lock *lock = self->lock;
    struct locker **last = &lock->first;
    struct watch watch;
    unsigned from;

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

/* Shares of the time that each waited for each, by their own counts and by edges. */
static void compare_lockers(struct prcb *p, struct lock *lock)
{
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
}

static void test_lock(void **state)
{
    struct lock *lock = shared_memory(sizeof(*lock));
    struct prcb *p = open_edges();

    go_before_others(); /* time between two clocks is nobody's share */
    for (unsigned i = 0; i < LOCKERS; i++) {
        lock->lockers[i] = (struct locker){.lock = lock, .number = i};
        pthread_create(&lock->lockers[i].thread, NULL, lock_and_hold, &lock->lockers[i]);
    }
    assert_true(wait_for(__atomic_load_n(&lock->arrived, __ATOMIC_ACQUIRE) == LOCKERS));
    must_profile_process(p, getpid(), PRCB_FOLLOW_THREADS);
    __atomic_store_n(&lock->go, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < LOCKERS; i++)
        pthread_join(lock->lockers[i].thread, NULL);
    compare_lockers(p, lock);
}

/* ---- who holds the kernel's locks ---- */

#define HOLDERS 2
#define TURNS   12

/* Threads that write to a pipe from a page that is not there: each holds the pipe's mutex until the
 * test supplies the page, while another thread waits for the mutex. */
struct holding {
    int pipe[2], faults; /* userfaultfd */
    char *page;
    uint32_t holder_turn[HOLDERS], waiter_turn; /* gates: 1: go, 0: done */
    pid_t holders[HOLDERS], waiter;
    uint64_t waited[HOLDERS]; /* by the waiter's own count */
    unsigned turn;            /* whose */
};

static struct holding holding;

static void *hold_pipe(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;

    __atomic_store_n(&holding.holders[number], gettid(), __ATOMIC_RELEASE);
    for (unsigned i = 0; i < TURNS / HOLDERS; i++) {
        gate_wait_while(&holding.holder_turn[number], 0);
        if (write(holding.pipe[1], holding.page, 1) != 1)
            abort();
        gate_set(&holding.holder_turn[number], 0);
    }
    return NULL;
}

static void *wait_for_pipe(void *unused)
{
    __atomic_store_n(&holding.waiter, gettid(), __ATOMIC_RELEASE);
    for (unsigned i = 0; i < TURNS; i++) {
        struct watch watch;

        gate_wait_while(&holding.waiter_turn, 0);
        watch = watch_start();
        if (write(holding.pipe[1], "x", 1) != 1)
            abort();
        holding.waited[holding.turn] += watch_end(&watch);
        gate_set(&holding.waiter_turn, 0);
    }
    return NULL;
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

/* One holds the mutex for so long, while the other waits for it. */
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
    assert_int_equal(read(holding.pipe[0], bytes, 2), 2);
}

/* Shares of the time that the waiter waited for each holder, by its own count and by edges. */
static void test_kernel_mutex(void **state)
{
    struct prcb_wait by[HOLDERS], woken[HOLDERS], rest;
    pthread_t threads[HOLDERS], waiter;
    uint64_t edges = 0, own = 0;
    struct prcb_account a;
    struct seen seen;
    struct prcb *p;

    memset(&holding, 0, sizeof(holding));
    open_faults();
    go_before_others();
    p = session_open_flags(64, PRCB_OPEN_EDGES | PRCB_OPEN_OWNERS);
    assert_int_equal(pipe2(holding.pipe, O_CLOEXEC), 0);
    for (unsigned i = 0; i < HOLDERS; i++)
        pthread_create(&threads[i], NULL, hold_pipe, (void *)(uintptr_t)i);
    pthread_create(&waiter, NULL, wait_for_pipe, NULL);
    assert_true(wait_for(__atomic_load_n(&holding.waiter, __ATOMIC_ACQUIRE) &&
                         __atomic_load_n(&holding.holders[0], __ATOMIC_ACQUIRE) &&
                         __atomic_load_n(&holding.holders[1], __ATOMIC_ACQUIRE)));
    must_profile_process(p, getpid(), PRCB_FOLLOW_THREADS);
    for (unsigned i = 0; i < TURNS; i++)
        take_turn(i % HOLDERS, i % HOLDERS ? 30000000 : 10000000);
    a = read_edges(p, key_of(p, holding.waiter), &seen);
    for (unsigned i = 0; i < HOLDERS; i++) {
        by[i] = of(&seen, PRCB_EDGE_HELD_BY, PRCB_CAUSE_MUTEX, PRCB_BY_THREAD, holding.holders[i]);
        woken[i] =
            of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_MUTEX, PRCB_BY_THREAD, holding.holders[i]);
        own += holding.waited[i];
        edges += by[i].ns;
    }
    if (!a.waits[PRCB_CAUSE_MUTEX].count)
        skip_because("this kernel tells of no contended mutex");
    print_edges(&a, &seen);
    /* Nobody else had it; of a wait whose end the kernel did not report the waker alone is told. */
    rest = of(&seen, PRCB_EDGE_HELD_BY, PRCB_CAUSE_MUTEX, PRCB_BY_REST, 0);
    assert_int_equal(edges + rest.ns, a.waits[PRCB_CAUSE_MUTEX].ns);
    assert_true(rest.count <= most_unreported(TURNS));
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
    close(holding.pipe[0]);
    close(holding.pipe[1]);
    close(holding.faults);
    munmap(holding.page, (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- what is no thread ---- */

static void test_timer(void **state)
{
    struct prcb *p = open_edges();
    struct prcb_account a, before = must_read(must_open(p, 0));
    struct prcb_wait by, rest;
    struct seen seen;
    uint64_t most;

    /* Each who had the processor before it would need one of its cells, which are few: those of a
     * busy machine would push out the one that is looked at. */
    go_before_others();
    for (int i = 0; i < 200; i++)
        sleep_ns(300000);
    a = read_edges(p, before.key, &seen);
    by = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SLEEP, PRCB_BY_TIMER, 0);
    rest = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SLEEP, PRCB_BY_REST, 0);
    /* Where others may push it out, a quarter of the time is what they need to be more. */
    most = may_push_out(&seen) ? by.count / 4 : most_unreported(a.waits[PRCB_CAUSE_SLEEP].count);
    if (by.count + rest.count != a.waits[PRCB_CAUSE_SLEEP].count || rest.count > most)
        print_edges(&a, &seen);
    assert_int_equal(by.count + rest.count, a.waits[PRCB_CAUSE_SLEEP].count);
    assert_true(rest.count <= most);
    assert_int_equal(of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_SLEEP, PRCB_BY_THREAD, 0).count, 0);
}

/* Half of the waits on one futex are ended by a thread, half by their timeouts. */
static void *wake_by_turns(void *arg)
{
    uint32_t *words = arg;

    for (uint32_t i = 1; i <= 50; i++) {
        gate_wait_while(&words[0], i - 1);
        sleep_ns(1000000);
        gate_set(&words[1], i);
    }
    return NULL;
}

static void test_timeouts(void **state)
{
    struct prcb *p = open_edges();
    struct prcb_account a, before = must_read(must_open(p, 0));
    uint32_t *words = shared_memory(2 * sizeof(*words));
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct prcb_wait timed, woken;
    struct seen seen;
    pthread_t waker;

    go_before_others();
    pthread_create(&waker, NULL, wake_by_turns, words);
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 1; i <= 50; i++) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&cond, &mutex, &until);
        gate_set(&words[0], i);
        gate_wait_while(&words[1], i - 1);
    }
    pthread_mutex_unlock(&mutex);
    pthread_join(waker, NULL);
    a = read_edges(p, before.key, &seen);
    timed = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_FUTEX, PRCB_BY_TIMER, 0);
    woken = of(&seen, PRCB_EDGE_WOKEN_BY, PRCB_CAUSE_FUTEX, PRCB_BY_THREAD, 0);
    /* On a slow machine some moments are past before it would sleep. */
    if (timed.count > 50 || timed.count < 30 || woken.count < 40)
        print_edges(&a, &seen);
    assert_in_range(timed.count, 30, 50);
    assert_true(woken.count >= 40);
    assert_true(timed.count + woken.count + most_unreported(100) >=
                a.waits[PRCB_CAUSE_FUTEX].count);
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
    struct prcb *p = open_edges();
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
    struct prcb *p = session_open_flags(4096, PRCB_OPEN_EDGES);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BPF_TEST(test_without),
        BPF_TEST(test_a_million_wakes_have_their_wakers),
        BPF_TEST(test_a_wake_of_a_thread_that_never_slept_is_not_kept),
        BPF_TEST(test_lock),
        BPF_TEST(test_timer),
        BPF_TEST(test_timeouts),
        BPF_TEST(test_network),
        BPF_TEST(test_neighbour),
        BPF_TEST(test_law),
        BPF_TEST(test_kernel_mutex),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return BPF_RUN("edges", tests);
}
