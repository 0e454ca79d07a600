/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Many threads, short threads, storms: nothing missing, every count the kernel's
 * own, no account leaked. Sizes are for a small machine; PRCB_TEST_SLOW=1 (an
 * emulated guest) divides them, PRCB_TEST_MINUTES=N lengthens the churn.
 */
#include "harness.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "ends.skel.h"

#define STACK             (64 * 1024)
#define PROC_PID_INIT_INO 0xEFFFFFFCu /* the first pid namespace; linux/proc_ns.h */

/* ---- many threads that live ---- */

struct crowd {
    uint32_t threads; /* to create */
    uint32_t ready;   /* have written their tid */
    uint32_t leave;   /* 1: end */
    pid_t tids[10000];
};

static void *crowd_member(void *arg)
{
    struct crowd *crowd = arg;

    crowd->tids[__atomic_fetch_add(&crowd->ready, 1, __ATOMIC_ACQ_REL)] = gettid();
    while (!__atomic_load_n(&crowd->leave, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &crowd->leave, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
    return NULL;
}

static int crowd_run(void *arg)
{
    struct crowd *crowd = arg;
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    for (uint32_t i = 0; i < crowd->threads; i++) {
        if (pthread_create(&thread, &attr, crowd_member, crowd))
            return 1;
        pthread_detach(thread);
    }
    while (!__atomic_load_n(&crowd->leave, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &crowd->leave, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
    return 0;
}

static int by_tid(const void *a, const void *b)
{
    pid_t x = ((const struct prcb_account *)a)->tid, y = ((const struct prcb_account *)b)->tid;

    return (x > y) - (x < y);
}

static const struct prcb_account *account_of(const struct prcb_account *accounts, size_t count,
                                             pid_t tid)
{
    struct prcb_account key = {.tid = tid};

    return bsearch(&key, accounts, count, sizeof(key), by_tid);
}

static bool all_wait(struct prcb *p)
{
    size_t count;
    struct prcb_account *all = all_accounts(p, &count);

    for (size_t i = 0; i < count; i++) {
        if (all[i].flags & PRCB_ACCOUNT_RUNNING || all[i].open.cause != PRCB_CAUSE_FUTEX)
            return false;
    }
    return true;
}

/* 10,000 threads registered while they sleep, then woken and ended: each has its
 * account, each account its end. */
static void test_ten_thousand_threads(void **state)
{
    struct crowd *crowd = shared_memory(sizeof(*crowd));
    struct prcb *p = session_open(0);
    struct prcb_account *accounts;
    size_t count;
    pid_t child;

    crowd->threads = repeated(10000);
    child = child_start(crowd_run, crowd);
    if (!wait_for(__atomic_load_n(&crowd->ready, __ATOMIC_ACQUIRE) == crowd->threads))
        skip_because("only %u of %u threads could be created", crowd->ready, crowd->threads);
    must_profile_process(p, child, PRCB_FOLLOW_ALL);
    assert_true(wait_for(all_wait(p))); /* the last are on their way */
    accounts = all_accounts(p, &count);
    assert_int_equal(count, crowd->threads + 1);
    qsort(accounts, count, sizeof(*accounts), by_tid);
    for (uint32_t i = 0; i < crowd->threads; i++) {
        const struct prcb_account *a = account_of(accounts, count, crowd->tids[i]);

        assert_non_null(a);
        assert_true(laws_hold(a));
        assert_int_equal(a->open.cause, PRCB_CAUSE_FUTEX);
    }
    __atomic_store_n(&crowd->leave, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &crowd->leave, 1 /* FUTEX_WAKE */, 100000, NULL, NULL, 0);
    assert_int_equal(child_wait(child), 0);
    accounts = ended_accounts(p, &count);
    assert_int_equal(count, crowd->threads + 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(accounts[i].flags & PRCB_ACCOUNT_EXITED);
        assert_int_equal(accounts[i].waits[PRCB_CAUSE_EXIT].count, 1);
        assert_true(laws_hold(&accounts[i]));
    }
    assert_int_equal(prcb_release_exited(p, NULL), crowd->threads + 1);
}

/* ---- what the kernel counted of each thread, at its end ---- */

static struct ends_bpf *watching;

static int ends_forget(void **state)
{
    ends_bpf__destroy(watching);
    watching = NULL;
    return test_end(state);
}

static struct ends_bpf *ends_watch(pid_t pid)
{
    struct stat ns;

    watching = ends_bpf__open_and_load();
    assert_non_null(watching);
    watching->bss->watched = pid;
    assert_int_equal(ends_bpf__attach(watching), 0);
    assert_int_equal(stat("/proc/self/ns/pid", &ns), 0);
    if (ns.st_ino != PROC_PID_INIT_INO)
        skip_because("the kernel's numbers of threads are not those of this pid namespace");
    return watching;
}

static bool ends_switches(struct ends_bpf *ends, uint32_t tid, uint64_t *ret)
{
    return !bpf_map__lookup_elem(ends->maps.switches, &tid, sizeof(tid), ret, sizeof(*ret), 0);
}

/* ---- short threads ---- */

struct brief {
    pid_t tid;
    uint32_t pad;
    uint64_t switches; /* by getrusage just before its end */
};

struct burst {
    uint32_t threads;
    uint32_t go;
    struct brief briefs[5000];
};

static void *brief_member(void *arg)
{
    struct brief *brief = arg;

    if (gettid() % 3 == 0)
        sleep_ns(50000);
    else if (gettid() % 3 == 1)
        sched_yield();
    brief->switches = own_switches();
    __atomic_store_n(&brief->tid, gettid(), __ATOMIC_RELEASE);
    return NULL;
}

static int burst_run(void *arg)
{
    enum { AT_ONCE = 500 };
    struct burst *burst = arg;
    pthread_t threads[AT_ONCE];
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    gate_wait_while(&burst->go, 0);
    for (uint32_t done = 0; done < burst->threads; done += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            if (pthread_create(&threads[i], &attr, brief_member, &burst->briefs[done + i]))
                return 1;
        }
        for (uint32_t i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}

/* Followed from their first switch. What the kernel's own counters held when it gave the
 * thread's memory back is what the account must end with: the getrusage just before is a lower
 * bound of it, as a thread may be preempted or wait for a lock on its way out.
 *
 * A virtual machine may lose the tracepoint at which they are read: once in some 200 runs all
 * programs on it, whatever their kind, were called for none of some 50 to 250 threads whose
 * memory one processor gave back in one go, with no miss counted by the kernel. Such threads
 * have only the lower bound to be held against. */
static void test_burst_of_short_threads(void **state)
{
    struct burst *burst = shared_memory(sizeof(*burst));
    struct prcb *p = session_open(0);
    struct prcb_account *accounts;
    struct prcb_status status = {.size = sizeof(status)};
    uint64_t sum = 0, exact, end_sum = 0;
    struct ends_bpf *ends;
    uint32_t wrong = 0, unseen = 0;
    size_t count;
    pid_t child;

    burst->threads = repeated(5000);
    child = child_start(burst_run, burst);
    ends = ends_watch(child);
    must_profile_process(p, child, PRCB_FOLLOW_ALL);
    gate_set(&burst->go, 1);
    assert_int_equal(child_wait(child), 0);
    accounts = ended_accounts(p, &count);
    assert_int_equal(count, burst->threads + 1);
    (void)wait_for(__atomic_load_n(&ends->bss->ended, __ATOMIC_ACQUIRE) == count);
    qsort(accounts, count, sizeof(*accounts), by_tid);
    for (uint32_t i = 0; i < burst->threads; i++) {
        const struct prcb_account *a = account_of(accounts, count, burst->briefs[i].tid);

        assert_non_null(a);
        if ((a > accounts && a[-1].tid == a->tid) ||
            (a + 1 < accounts + count && a[1].tid == a->tid)) {
            unseen++; /* a number that came again: the kernel's word is of one of the two */
            continue;
        }
        assert_true(laws_hold(a));
        assert_true(a->flags & PRCB_ACCOUNT_EXITED);
        assert_int_equal(a->waits[PRCB_CAUSE_EXIT].count, 1);
        assert_true(a->switches >= burst->briefs[i].switches + 1);
        if (!ends_switches(ends, a->tid, &exact)) {
            unseen++;
            continue;
        }
        wrong += a->switches != exact;
        sum += a->switches;
        end_sum += exact;
    }
    printf("    %u threads, %" PRIu64 " switches, the kernel counted %" PRIu64 "\n", burst->threads,
           sum, end_sum);
    if (unseen)
        printf("    %u threads were given back without a word of the kernel, or had one number\n",
               unseen);
    assert_int_equal(wrong, 0);
    assert_int_equal(sum, end_sum);
    assert_true(unseen <= burst->threads / 10);
    assert_int_equal(prcb_session_status(p, &status), 0);
    assert_int_equal(status.untracked_threads, 0);
}

/* ---- forks ---- */

static int fork_tree(unsigned depth, unsigned width)
{
    for (unsigned i = 0; depth && i < width; i++) {
        pid_t child = fork();

        if (child < 0)
            return 1;
        if (!child)
            _exit(fork_tree(depth - 1, width));
    }
    for (int status; wait(&status) > 0;) {
        if (status)
            return 1;
    }
    return 0;
}

static unsigned fork_width(void)
{
    return slowness() > 1 ? 3 : 5;
}

static int fork_storm(void *go)
{
    gate_wait_while(go, 0);
    return fork_tree(4, fork_width());
}

static void test_fork_storm(void **state)
{
    uint32_t *go = shared_memory(sizeof(*go));
    struct prcb *p = session_open(0);
    struct prcb_account *accounts;
    pid_t child = child_start(fork_storm, go);
    size_t count, width = fork_width();

    must_profile_process(p, child, PRCB_FOLLOW_ALL);
    gate_set(go, 1);
    assert_int_equal(child_wait(child), 0);
    accounts = ended_accounts(p, &count);
    assert_int_equal(count, 1 + width * (1 + width * (1 + width * (1 + width))));
    for (size_t i = 0; i < count; i++) {
        assert_true(laws_hold(&accounts[i]));
        assert_true(accounts[i].flags & PRCB_ACCOUNT_EXITED);
    }
}

/* ---- churn ---- */

static int churn_run(void *arg)
{
    uint32_t *stop = arg;
    pthread_t threads[8];
    struct brief briefs[8];

    while (!gate_get(stop)) {
        for (int i = 0; i < 8; i++) {
            if (pthread_create(&threads[i], NULL, brief_member, &briefs[i]))
                return 1;
        }
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}

/* A table of 4096 through which many more threads pass: as long as the ended ones are
 * given back, none goes untracked, and at the end nothing is in use. */
static void test_churn_leaks_nothing(void **state)
{
    const char *minutes = getenv("PRCB_TEST_MINUTES");
    uint64_t seconds = minutes ? strtoull(minutes, NULL, 10) * 60 : slowness() > 1 ? 2 : 4;
    uint64_t deadline = mono_ns() + seconds * 1000000000;
    struct prcb_status status = {.size = sizeof(status)};
    uint32_t *stop = shared_memory(sizeof(*stop));
    struct prcb *p = session_open(4096);
    uint64_t released = 0;
    pid_t child = child_start(churn_run, stop);
    size_t count;

    must_profile_process(p, child, PRCB_FOLLOW_ALL);
    /* Until slots were used twice, however slow a busy machine is. */
    while (mono_ns() < deadline ||
           (slowness() == 1 && released <= 4096 && mono_ns() < deadline + 60000000000)) {
        int some = prcb_release_exited(p, NULL);

        assert_true(some >= 0);
        released += (uint64_t)some;
        sleep_ns(10000000);
    }
    gate_set(stop, 1);
    assert_int_equal(child_wait(child), 0);
    ended_accounts(p, &count);
    released += (uint64_t)prcb_release_exited(p, NULL);
    assert_int_equal(prcb_session_status(p, &status), 0);
    assert_int_equal(status.untracked_threads, 0);
    assert_int_equal(status.threads, 0);
    if (slowness() == 1)
        assert_true(released > 4096); /* or the slots were never used twice */
}

static int laws_of_each(const struct prcb_account *a, void *ctx)
{
    uint32_t *broken = ctx;

    if (!laws_hold(a)) {
        print_account("law broken", a);
        ++*broken;
    }
    return 0;
}

static void *nap(void *arg)
{
    sleep_ns(10000 * (uintptr_t)arg);
    return NULL;
}

static int naps_run(void *arg)
{
    uint32_t *stop = arg;
    pthread_t threads[8];

    while (!gate_get(stop)) {
        for (uintptr_t i = 0; i < 8; i++) {
            if (pthread_create(&threads[i], NULL, nap, (void *)i))
                return 1;
        }
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}

/* The registrar comes upon threads in the middle of everything: being created, going to
 * sleep, ending. No switch may be counted that the kernel's counters, copied a moment
 * before, held already (unfollowed threads, met over and over), and no thread may go
 * untracked because two wanted to give it an account (followed ones). A virtual processor may
 * be stopped in the middle of its writing for longer than a reader tries. */
static int walk_all(struct prcb *p, uint32_t *broken)
{
    int result, tries = 0;

    do
        result = prcb_walk(p, laws_of_each, broken, NULL);
    while (result == -EAGAIN && ++tries < 50);
    return result;
}

static void test_registering_in_a_storm(void **state)
{
    struct prcb_status status = {.size = sizeof(status)};
    uint32_t *stop = shared_memory(sizeof(*stop)), broken = 0;
    struct prcb *p = session_open(4096);
    pid_t child = child_start(naps_run, stop);

    for (unsigned i = 0; i < 2; i++) {
        uint64_t deadline = mono_ns() + (slowness() > 1 ? 1000000000 : 2000000000);

        while (mono_ns() < deadline) {
            must_profile_process(p, child, i ? PRCB_FOLLOW_ALL : PRCB_FOLLOW_NONE);
            assert_int_equal(walk_all(p, &broken), 0);
            assert_true(prcb_release_exited(p, NULL) >= 0);
        }
    }
    gate_set(stop, 1);
    assert_int_equal(child_wait(child), 0);
    assert_int_equal(broken, 0);
    assert_int_equal(prcb_session_status(p, &status), 0);
    assert_int_equal(status.untracked_threads, 0);
}

/* ---- a reader that is stopped ---- */

struct stopped {
    uint32_t reading;
    uint32_t stop;
    pid_t target;
};

static int stopped_reader(void *arg)
{
    struct stopped *shared = arg;
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_account now = {.size = sizeof(now)}, last = {0};
    struct prcb_thread *thread;
    struct prcb *p;
    int torn = 0;

    if (prcb_open(&options, &p, NULL) ||
        prcb_profile_thread(p, shared->target, PRCB_FOLLOW_NONE, NULL) ||
        prcb_thread_open(p, shared->target, &thread, NULL))
        return 1;
    while (!gate_get(&shared->stop)) {
        int result = prcb_thread_read(thread, &now);

        torn = result == -EAGAIN ? torn + 1 : 0;
        if (torn && torn < 50) /* see walk_all */
            continue;
        if (result)
            return 2;
        if (now.wall_ns < last.wall_ns || now.run_ns < last.run_ns ||
            now.switches < last.switches || now.ready_ns < last.ready_ns ||
            now.wait_ns < last.wait_ns)
            return 3;
        if (!laws_hold(&now))
            return 4;
        last = now;
        gate_set(&shared->reading, 1);
    }
    prcb_thread_close(thread);
    prcb_close(p);
    return 0;
}

static int busy_sleeper(void *unused)
{
    for (;;)
        sleep_ns(100000);
    return 0;
}

/* Stopped for longer than the clock's calibration lives, at any point of a read. */
static void test_stopped_reader(void **state)
{
    struct stopped *shared = shared_memory(sizeof(*shared));
    pid_t reader;

    shared->target = child_start(busy_sleeper, NULL);
    reader = child_start(stopped_reader, shared);
    assert_true(wait_for(gate_get(&shared->reading)));
    for (int i = 0; i < 3; i++) {
        kill(reader, SIGSTOP);
        sleep_ns(i == 1 ? 1500000000 : 100000000);
        kill(reader, SIGCONT);
        sleep_ns(50000000);
    }
    gate_set(&shared->stop, 1);
    assert_int_equal(child_wait(reader), 0);
}

/* ---- processors that come and go ---- */

struct stayer {
    uint32_t ready;
    uint32_t go;
    uint32_t stop;
    bool pinned; /* to processor 1, as long as it is there */
    bool busy;   /* running most of the time */
};

static int stay(void *arg)
{
    struct stayer *stayer = arg;

    if (stayer->pinned)
        pin_to(1);
    gate_set(&stayer->ready, 1);
    gate_wait_while(&stayer->go, 0);
    while (!gate_get(&stayer->stop)) {
        uint64_t until = mono_ns() + (stayer->busy ? 3000000 : 0);

        while (mono_ns() < until)
            ;
        sleep_ns(100000);
    }
    return 0;
}

static bool sleeps_at_gate(const struct stayer *stayer, pid_t pid)
{
    return gate_get(&stayer->ready) && kernel_state(pid, pid) == 'S' && kernel_off(pid, pid);
}

static struct prcb_account goes_on(struct prcb_thread *thread, const struct prcb_account *last)
{
    struct prcb_account now;

    assert_true(wait_for(must_read(thread).switches > last->switches));
    now = must_read(thread);
    assert_laws(&now);
    assert_true(now.run_ns >= last->run_ns && now.wall_ns >= last->wall_ns &&
                now.wait_ns >= last->wait_ns && now.ready_ns >= last->ready_ns);
    return now;
}

/* Nothing goes back meanwhile, and at the end every account has each switch that the kernel
 * counted. Only where nobody else is disturbed: a guest says so. */
static void test_hotplug(void **state)
{
    enum { STAYERS = 4 };
    struct stayer *stayers;
    struct prcb_account last[STAYERS] = {{0}};
    struct prcb_thread *threads[STAYERS];
    uint64_t before[STAYERS], all;
    pid_t pids[STAYERS];
    struct prcb *p;

    if (!getenv("PRCB_TEST_HOTPLUG"))
        skip_because("takes processor 1 down; set PRCB_TEST_HOTPLUG=1 in a guest");
    p = session_open(0);
    stayers = shared_memory(STAYERS * sizeof(*stayers));
    for (int i = 0; i < STAYERS; i++) {
        stayers[i].pinned = i & 1;
        stayers[i].busy = i & 2;
        pids[i] = child_start(stay, &stayers[i]);
        assert_true(wait_for(sleeps_at_gate(&stayers[i], pids[i])));
        assert_true(kernel_switches(pids[i], pids[i], NULL, &before[i]));
        must_profile_thread(p, pids[i], PRCB_FOLLOW_NONE);
        threads[i] = must_open(p, pids[i]);
        gate_set(&stayers[i].go, 1);
    }
    for (int round = 0; round < 40; round++) {
        if (round % 10 == 2 && !processor_1_online(false))
            skip_because("processor 1 cannot be taken down here");
        if (round % 10 == 7)
            assert_true(processor_1_online(true));
        sleep_ns(30000000);
        for (int i = 0; i < STAYERS; i++)
            last[i] = goes_on(threads[i], &last[i]);
    }
    for (int i = 0; i < STAYERS; i++) {
        gate_set(&stayers[i].stop, 1);
        assert_true(wait_for(kernel_state(pids[i], pids[i]) == 'Z' &&
                             (must_read(threads[i]).flags & PRCB_ACCOUNT_EXITED)));
        last[i] = must_read(threads[i]);
        assert_laws(&last[i]);
        assert_true(kernel_switches(pids[i], pids[i], NULL, &all));
        printf("    %" PRIu64 " switches, the kernel counted %" PRIu64 "\n", last[i].switches,
               all - before[i]);
        assert_int_equal(last[i].switches, all - before[i]);
        assert_int_equal(last[i].missed_switches, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BPF_TEST(test_ten_thousand_threads),
        cmocka_unit_test_teardown(test_burst_of_short_threads, ends_forget),
        BPF_TEST(test_fork_storm),
        BPF_TEST(test_churn_leaks_nothing),
        BPF_TEST(test_registering_in_a_storm),
        BPF_TEST(test_stopped_reader),
        BPF_TEST(test_hotplug),
    };

    return BPF_RUN("storms", tests);
}
