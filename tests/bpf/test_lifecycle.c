/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who gets an account, for how long, and what becomes of it: processes with threads
 * present and future, children, exec, names, ends, releases, a full table, cgroups,
 * everything, two sessions, pid namespaces, and what the calls refuse. Compared with
 * /proc and with the rusage of wait4.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "accounts.h"
#include "block_abi.h"
#include "accounts.skel.h"

#define MANY 200

/* Shared with the children of a test; what each word means is the test's. */
struct board {
    uint32_t go;
    uint32_t count;
    uint32_t taken; /* of tids, by stay */
    uint32_t born;  /* by relay */
    pid_t tids[2 * MANY];
    uint64_t switches[2 * MANY];
};

static struct board *board;

static uint32_t count_up(void)
{
    return __atomic_fetch_add(&board->count, 1, __ATOMIC_ACQ_REL);
}

static uint32_t counted(void)
{
    return __atomic_load_n(&board->count, __ATOMIC_ACQUIRE);
}

static void clear_board(void)
{
    if (!board)
        board = shared_memory(sizeof(*board));
}

static int board_end(void **state)
{
    board = NULL;
    return test_end(state);
}

/* Says it is there, and waits for the end. */
static void *stay(void *arg)
{
    board->tids[__atomic_fetch_add(&board->taken, 1, __ATOMIC_RELAXED)] = gettid();
    count_up(); /* releases the number to who acquires the count */
    while (gate_get(&board->go) < 9)
        gate_wait_while(&board->go, gate_get(&board->go));
    return NULL;
}

static void create_staying(int threads)
{
    pthread_t thread;

    for (int i = 0; i < threads; i++) {
        if (pthread_create(&thread, NULL, stay, NULL))
            _exit(3);
        pthread_detach(thread);
    }
}

static int stay_until_end(void)
{
    while (gate_get(&board->go) < 9)
        gate_wait_while(&board->go, gate_get(&board->go));
    return 0;
}

static int sleeper(void *arg)
{
    return stay_until_end();
}

/* Asleep at its gate, and counted so. */
static bool waits_to_go(pid_t pid)
{
    return wait_for(kernel_state(pid, pid) == 'S' && kernel_off(pid, pid));
}

/* And all of the board's threads. */
static void all_wait(pid_t pid, uint32_t threads)
{
    assert_true(wait_for(counted() == threads));
    for (uint32_t i = 0; i < threads; i++)
        assert_true(
            wait_for(kernel_state(pid, board->tids[i]) == 'S' && kernel_off(pid, board->tids[i])));
    assert_true(waits_to_go(pid));
}

static pid_t start_sleeper(void)
{
    pid_t child;

    clear_board();
    child = child_start(sleeper, NULL);
    assert_true(waits_to_go(child));
    return child;
}

struct active {
    pid_t tid;
    bool seen;
    struct prcb_account account;
};

static int take_active(const struct prcb_account *a, void *ctx)
{
    struct active *active = ctx;

    if (a->tid == active->tid) {
        active->seen = true;
        active->account = *a;
    }
    return 0;
}

static bool is_active(struct prcb *p, pid_t tid, uint64_t since, struct prcb_account *ret)
{
    struct active active = {.tid = tid};

    assert_int_equal(prcb_walk_active(p, since, take_active, &active, NULL), 0);
    if (ret)
        *ret = active.account;
    return active.seen;
}

/* One that waits is left out, seen to switch or not; one that runs is not, and no switch is lost.
 */
static void test_walk_active(void **state)
{
    struct prcb *p = session_open(64);
    pid_t child = start_sleeper();
    struct prcb_account before, after;
    uint64_t since;

    must_profile_process(p, child, PRCB_FOLLOW_NONE);
    must_profile_thread(p, gettid(), PRCB_FOLLOW_NONE);
    for (uint32_t round = 1; round <= 3; round++) {
        assert_true(is_active(p, child, 0, NULL));
        assert_true(wait_for(!is_active(p, child, mono_ns(), NULL)));
        assert_true(is_active(p, gettid(), mono_ns(), NULL));
        before = must_find(p, child);
        since = mono_ns();
        gate_set(&board->go, round);
        assert_true(wait_for(must_find(p, child).switches > before.switches));
        assert_true(is_active(p, child, since, &after));
        assert_true(after.switches > before.switches);
        assert_laws(&after);
        assert_true(waits_to_go(child));
    }
    assert_true(wait_for(!is_active(p, child, mono_ns(), NULL)));
    since = mono_ns();
    gate_set(&board->go, 9);
    assert_int_equal(child_wait(child), 0);
    assert_true(wait_for(must_find(p, child).flags & PRCB_ACCOUNT_EXITED));
    assert_true(is_active(p, child, since, &after));
    assert_true(after.flags & PRCB_ACCOUNT_EXITED);
    assert_true(wait_for(!is_active(p, child, mono_ns(), NULL)));
}

static bool none_left(struct prcb *p)
{
    size_t count;

    prcb_release_exited(p, NULL);
    all_accounts(p, &count);
    return !count;
}

/* With room for 1024, and no accounts. */
static struct prcb *empty_session(void)
{
    struct prcb *p = session_shared();

    assert_true(wait_for(none_left(p)));
    return p;
}

static size_t accounts_of(struct prcb *p, pid_t pid)
{
    size_t count, own = 0;
    struct prcb_account *all = all_accounts(p, &count);

    for (size_t i = 0; i < count; i++)
        own += all[i].pid == pid;
    return own;
}

/* ---- present and future threads ---- */

static int stream_of_threads(void *arg)
{
    create_staying(MANY / 2);
    board->go = 1;
    create_staying(MANY / 2);
    return stay_until_end();
}

/* Which of the threads have none, and what the session says of it. */
static void print_missing(struct prcb *p)
{
    struct prcb_status status = {.size = sizeof(status)};
    struct prcb_account a;

    prcb_session_status(p, &status);
    printf("    %" PRIu64 " untracked\n", (uint64_t)status.untracked_threads);
    for (int i = 0; i < MANY; i++) {
        if (!find_account(p, board->tids[i], &a))
            printf("    thread %d of %d has no account\n", i, MANY);
    }
}

/* Threads keep coming while the process is being registered. */
static void test_threads_created_meanwhile(void **state)
{
    struct prcb *p = empty_session();
    size_t count;
    pid_t pid;

    for (int round = 0; round < (slowness() > 1 ? 2 : 5); round++) {
        clear_board();
        board->go = board->count = board->taken = 0;
        pid = child_start(stream_of_threads, NULL);
        while (counted() < (unsigned)(10 + 15 * round))
            ;
        must_profile_process(p, pid, PRCB_FOLLOW_THREADS);
        assert_true(wait_for(counted() == MANY));
        if (accounts_of(p, pid) != MANY + 1)
            print_missing(p);
        assert_int_equal(accounts_of(p, pid), MANY + 1);
        for (int i = 0; i < MANY; i++)
            must_find(p, board->tids[i]);
        must_find(p, pid);
        child_kill(pid);
        /* Who waits for a process may come before the last switch of the last of its threads. */
        ended_accounts(p, &count);
        assert_int_equal(count, MANY + 1);
        assert_int_equal(prcb_release_exited(p, NULL), MANY + 1);
    }
}

static uint32_t forkers(void)
{
    return slowness() > 1 ? 16 : MANY / 4;
}

static void *fork_when_told(void *arg)
{
    uint32_t me = count_up();
    pid_t child;

    gate_wait_while(&board->go, 0);
    child = fork();
    if (!child)
        _exit(0);
    board->tids[me] = child;
    waitpid(child, NULL, 0);
    count_up();
    return stay(NULL);
}

static int stream_of_forkers(void *arg)
{
    pthread_t thread;

    for (uint32_t i = 0; i < forkers(); i++) {
        if (pthread_create(&thread, NULL, fork_when_told, NULL))
            return 3;
    }
    return stay_until_end();
}

/* Whoever was created while the process was being registered is followed as well. */
static void test_children_of_threads_created_meanwhile(void **state)
{
    struct prcb *p = empty_session();
    pid_t pid;

    clear_board();
    board->taken = forkers(); /* where stay puts numbers */
    pid = child_start(stream_of_forkers, NULL);
    while (counted() < forkers() / 5)
        ;
    must_profile_process(p, pid, PRCB_FOLLOW_ALL);
    assert_true(wait_for(counted() >= forkers()));
    gate_set(&board->go, 1);
    assert_true(wait_for(counted() == 3 * forkers()));
    for (uint32_t i = 0; i < 2 * forkers(); i++)
        must_find(p, board->tids[i]);
    must_find(p, pid);
}

#define RELAYS     3
#define RELAY_MOST 3000 /* the session has room for more */

/* Creates its successor and ends; the last of them stays. */
static void *relay(void *arg)
{
    pthread_t thread;

    if (gate_get(&board->go) || __atomic_add_fetch(&board->born, 1, __ATOMIC_RELAXED) > RELAY_MOST)
        return stay(NULL);
    /* Refused while other tests' storms use up the machine's thread numbers. */
    while (pthread_create(&thread, NULL, relay, NULL))
        sleep_ns(1000000);
    pthread_detach(thread);
    return NULL;
}

static int relays(void *arg)
{
    pthread_t thread;

    for (int i = 0; i < RELAYS; i++) {
        while (pthread_create(&thread, NULL, relay, NULL))
            sleep_ns(1000000);
        pthread_detach(thread);
    }
    return stay_until_end();
}

/* The threads that the registrar goes by end, each just after it has created another. */
static void test_threads_hand_over_meanwhile(void **state)
{
    struct prcb *p = session_open(RELAY_MOST + 100);
    int rounds = slowness() > 1 ? 5 : (int)repeated(150);

    for (int round = 0; round < rounds; round++) {
        pid_t pid;

        clear_board();
        board->go = board->count = board->taken = board->born = 0;
        pid = child_start(relays, NULL);
        sleep_ns(3000000);
        must_profile_process(p, pid, PRCB_FOLLOW_THREADS);
        gate_set(&board->go, 1);
        assert_true(wait_for(counted() == RELAYS));
        for (int i = 0; i < RELAYS; i++)
            must_find(p, board->tids[i]);
        child_kill(pid);
        prcb_release_exited(p, NULL);
    }
}

/* ---- what is passed on ---- */

static int make_family(void *arg)
{
    pthread_t thread;
    pid_t child;

    gate_wait_while(&board->go, 0);
    if (pthread_create(&thread, NULL, stay, NULL))
        return 3;
    while (counted() < 1)
        ;
    child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        create_staying(1);
        while (counted() < 2)
            ;
        board->tids[2] = getpid();
        count_up();
        return stay_until_end();
    }
    return stay_until_end();
}

static void follows(unsigned follow, bool thread, bool child, bool childs_thread)
{
    struct prcb *p = empty_session();
    struct prcb_account a;
    pid_t pid, grandchild;
    size_t count;

    clear_board();
    pid = child_start(make_family, NULL);
    must_profile_process(p, pid, follow);
    gate_set(&board->go, 1);
    assert_true(wait_for(counted() == 3));
    grandchild = board->tids[2];
    assert_true(find_account(p, pid, &a));
    assert_int_equal(find_account(p, board->tids[0], &a), thread);
    assert_int_equal(find_account(p, grandchild, &a), child);
    all_accounts(p, &count);
    assert_int_equal(count, 1 + thread + child + childs_thread);
    kill(grandchild, SIGKILL);
}

static void test_follow_none(void **state)
{
    follows(PRCB_FOLLOW_NONE, false, false, false);
}

static void test_follow_threads(void **state)
{
    follows(PRCB_FOLLOW_THREADS, true, false, false);
}

static void test_follow_children(void **state)
{
    follows(PRCB_FOLLOW_CHILDREN, false, true, false);
}

static void test_follow_all(void **state)
{
    follows(PRCB_FOLLOW_ALL, true, true, true);
}

/* Asking again widens what is passed on. */
static void test_follow_widened(void **state)
{
    struct prcb *p = empty_session();
    struct prcb_account a;
    pid_t pid;

    clear_board();
    pid = child_start(make_family, NULL);
    must_profile_process(p, pid, PRCB_FOLLOW_NONE);
    must_profile_process(p, pid, PRCB_FOLLOW_THREADS);
    gate_set(&board->go, 1);
    assert_true(wait_for(counted() == 3));
    assert_true(find_account(p, board->tids[0], &a));
    assert_false(find_account(p, board->tids[2], &a));
    kill(board->tids[2], SIGKILL);
}

/* ---- ends ---- */

static void *short_life(void *arg)
{
    uint32_t me = count_up();

    for (uint32_t i = 0; i < me % 5; i++)
        sleep_ns(10000);
    return NULL;
}

static int short_lives(void *arg)
{
    pthread_t threads[20];

    gate_wait_while(&board->go, 0);
    for (int i = 0; i < MANY / 20; i++) {
        for (int j = 0; j < 20; j++) {
            if (pthread_create(&threads[j], NULL, short_life, NULL))
                return 3;
        }
        for (int j = 0; j < 20; j++)
            pthread_join(threads[j], NULL);
    }
    return 0;
}

/* Whether a thread can lose its processor in the middle of the kernel's code: models full, lazy and
 * rt. true where it cannot be found out. */
static bool kernel_is_preempted(void)
{
    char model[64] = "";
    struct utsname name;
    FILE *file = fopen("/sys/kernel/debug/sched/preempt", "re");

    if (file) {
        char *got = fgets(model, sizeof(model), file);

        fclose(file);
        return !got || !(strstr(model, "(none)") || strstr(model, "(voluntary)"));
    }
    return uname(&name) || strstr(name.version, "PREEMPT");
}

/* The kernel adds up the switches of a process's ended threads for wait4. It does so
 * for each just before the thread's last switch, and for the leader, which a parent
 * reaps, after it: so all accounts together have one more for each other thread. */
static void test_process_total(void **state)
{
    struct prcb *p = empty_session();
    uint64_t sum = 0, preempted = 0, kernel, before;
    struct prcb_account *all;
    struct rusage usage;
    size_t count;
    int status;
    pid_t pid;

    clear_board();
    pid = child_start(short_lives, NULL);
    assert_true(waits_to_go(pid));
    assert_true(kernel_switches(pid, pid, NULL, &before));
    must_profile_process(p, pid, PRCB_FOLLOW_ALL);
    gate_set(&board->go, 1);
    assert_true(wait_for(kernel_state(pid, pid) == 'Z'));
    all = ended_accounts(p, &count);
    assert_int_equal(wait4(pid, &status, 0, &usage), pid);
    child_gone(pid);
    assert_int_equal(status, 0);
    assert_int_equal(count, MANY + 1);
    for (size_t i = 0; i < count; i++) {
        assert_laws(&all[i]);
        assert_true(all[i].flags & PRCB_ACCOUNT_EXITED);
        assert_int_equal(all[i].waits[PRCB_CAUSE_EXIT].count, 1);
        assert_int_equal(all[i].open.ns, 0);
        sum += all[i].switches;
        preempted += all[i].switches - all[i].voluntary_switches;
    }
    kernel = usage.ru_nvcsw + usage.ru_nivcsw + MANY;
    /* Where the kernel itself is preempted, a thread may be so after its switches were added. */
    if (kernel_is_preempted()) {
        assert_true(sum + before >= kernel);
        assert_true(sum + before - kernel <= preempted);
    } else {
        assert_int_equal(sum + before, kernel);
    }
}

static int some_switches(void *arg)
{
    gate_wait_while(&board->go, 0);
    for (int i = 0; i < 50; i++)
        sleep_ns(10000);
    return 0;
}

/* A list that is copied with a thread's waits is for the account that it was said for. */
static void test_chain_of_an_account_that_is_gone(void **state)
{
    struct prcb *p = session_open_flags(2, PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN);
    const struct prcb_chain chain = {
        .size = sizeof(chain), .hop = PRCB_CHAIN_NONE, .byte = PRCB_CHAIN_NONE};
    pid_t child = start_sleeper();
    struct prcb_error err;
    uint64_t key;

    must_profile_process(p, child, PRCB_FOLLOW_NONE);
    key = must_find(p, child).key;
    assert_int_equal(prcb_chosen_chain(p, key, &chain, &err), 0);
    assert_int_equal(prcb_chosen_chain(p, key + (1ull << 32), &chain, &err), -ESTALE);
    assert_int_equal(prcb_chosen_chain(p, key + 1, &chain, &err), -ESTALE);
    assert_int_equal(prcb_release(p, key, &err), 0);
    assert_int_equal(prcb_chosen_chain(p, key, &chain, &err), -ESTALE);
    child_kill(child);
}

/* A process that nobody has reaped still shows its counts in /proc. */
static void test_end_is_kept(void **state)
{
    struct prcb *p = session_open(1);
    struct prcb_thread *t;
    struct prcb_account a, b;
    uint64_t before, voluntary_before, all, voluntary;
    struct prcb_error err;
    pid_t pid, other;

    clear_board();
    pid = child_start(some_switches, NULL);
    assert_true(waits_to_go(pid));
    assert_true(kernel_switches(pid, pid, &voluntary_before, &before));
    must_profile_process(p, pid, PRCB_FOLLOW_NONE);
    t = must_open(p, pid);
    gate_set(&board->go, 1);
    assert_true(
        wait_for(kernel_state(pid, pid) == 'Z' && (must_read(t).flags & PRCB_ACCOUNT_EXITED)));
    assert_true(kernel_switches(pid, pid, &voluntary, &all));
    a = must_read(t);
    assert_laws(&a);
    assert_int_equal(a.switches, all - before);
    assert_int_equal(a.voluntary_switches, voluntary - voluntary_before);
    assert_false(a.flags & PRCB_ACCOUNT_RUNNING);

    /* Kept as it is, also when the number is gone. */
    assert_int_equal(child_wait(pid), 0);
    sleep_ns(2000000);
    b = must_read(t);
    assert_int_equal(b.wall_ns, a.wall_ns);
    assert_int_equal(b.switches, a.switches);
    assert_int_equal(must_find(p, pid).key, a.key);

    /* Given back, and the slot used again under another key. */
    assert_int_equal(prcb_release(p, a.key, &err), 0);
    assert_int_equal(prcb_thread_read(t, &b), -ESTALE);
    assert_int_equal(prcb_thread_times(t, &(struct prcb_times){.size = sizeof(struct prcb_times)}),
                     -ESTALE);
    assert_int_equal(prcb_release(p, a.key, &err), -ESTALE);
    assert_false(find_account(p, pid, &b));
    other = start_sleeper();
    must_profile_process(p, other, PRCB_FOLLOW_NONE);
    b = must_find(p, other);
    assert_true(b.key != a.key);
    assert_int_equal(b.switches, 0);
    assert_int_equal(prcb_thread_read(t, &b), -ESTALE);
    assert_int_equal(prcb_release(p, a.key, &err), -ESTALE);
    must_find(p, other);
}

static bool block_of(struct accounts_bpf *programs, pid_t tid, struct prcb_account_block *ret)
{
    for (uint32_t slot = 0; slot < MANY; slot++) {
        if (bpf_map__lookup_elem(programs->maps.account_map, &slot, sizeof(slot), ret, sizeof(*ret),
                                 0))
            return false;
        if (ret->state != PRCB_STATE_FREE && ret->tid == (uint32_t)tid)
            return true;
    }
    return false;
}

static uint8_t state_of(struct accounts_bpf *programs, pid_t tid)
{
    struct prcb_account_block block;

    return block_of(programs, tid, &block) ? block.state : PRCB_STATE_FREE;
}

/* The programs without a session; none is attached. */
static struct accounts_bpf *load_programs(void)
{
    struct accounts_bpf *programs = accounts_bpf__open();
    struct bpf_program *program;
    struct stat ns;

    assert_non_null(programs);
    assert_int_equal(stat("/proc/self/ns/pid", &ns), 0);
    programs->rodata->config.pid_ns = (uint32_t)ns.st_ino;
    programs->rodata->config.accounts = MANY;
    bpf_object__for_each_program(program, programs->obj)
        bpf_program__set_autoload(program, program == programs->progs.prcb_switch ||
                                               program == programs->progs.prcb_newtask ||
                                               program == programs->progs.prcb_newborn ||
                                               program == programs->progs.prcb_ended ||
                                               program == programs->progs.prcb_register);
    assert_int_equal(accounts_bpf__load(programs), 0);
    return programs;
}

static void register_by_hand(struct accounts_bpf *programs, pid_t tid, uint32_t pass)
{
    struct bpf_link *link = bpf_program__attach_iter(programs->progs.prcb_register, NULL);
    char nothing[8];
    int fd;

    assert_non_null(link);
    programs->bss->request = (struct prcb_bpf_request){
        .what = PRCB_REGISTER_THREAD, .number = (uint32_t)tid, .pass = pass, .last = 1};
    fd = bpf_iter_create(bpf_link__fd(link));
    assert_true(fd >= 0);
    while (read(fd, nothing, sizeof(nothing)) > 0)
        ;
    close(fd);
    bpf_link__destroy(link);
    assert_int_equal(programs->bss->request.added, 1);
}

/* Births that prcb_newtask was not run for, as happens where it can be preempted (7.0): made here
 * by the programs without it. */
static void test_births_without_newtask(void **state)
{
    struct accounts_bpf *programs;
    struct utsname kernel;
    int major, minor;
    pid_t pids[20];

    /* From 6.4 on they do, by the allocator of eBPF programs; from 6.19 by kmalloc_nolock. */
    if (uname(&kernel) || sscanf(kernel.release, "%d.%d", &major, &minor) != 2 ||
        major * 1000 + minor < 6004)
        skip_because("programs of this kernel get no memory under a run queue's lock");
    programs = load_programs();
    clear_board();
    programs->links.prcb_newborn = bpf_program__attach_trace(programs->progs.prcb_newborn);
    programs->links.prcb_switch = bpf_program__attach_trace(programs->progs.prcb_switch);
    assert_true(programs->links.prcb_newborn && programs->links.prcb_switch);
    programs->bss->scope.all = 1; /* of others, too: not for long, for there is little room */
    pids[0] = child_start(some_switches, NULL);
    programs->bss->scope.all = 0;
    register_by_hand(programs, gettid(), PRCB_PASS_CHILDREN);
    for (size_t i = 1; i < 20; i++)
        pids[i] = child_start(some_switches, NULL);
    for (size_t i = 0; i < 20; i++) {
        assert_true(waits_to_go(pids[i]));
        assert_int_equal(state_of(programs, pids[i]), PRCB_STATE_OFF);
    }
    gate_set(&board->go, 1);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(child_wait(pids[i]), 0);
        assert_true(wait_for(state_of(programs, pids[i]) == PRCB_STATE_EXITED));
    }
    accounts_bpf__destroy(programs);
}

/* A last switch that no program told of, made here by the programs without the one of the
 * switches: the end is seen all the same. */
static void test_end_without_a_switch(void **state)
{
    struct accounts_bpf *programs = load_programs();
    pid_t pid;

    clear_board();
    programs->links.prcb_newtask = bpf_program__attach_trace(programs->progs.prcb_newtask);
    programs->links.prcb_ended = bpf_program__attach_trace(programs->progs.prcb_ended);
    assert_true(programs->links.prcb_newtask && programs->links.prcb_ended);
    register_by_hand(programs, gettid(), PRCB_PASS_CHILDREN);
    pid = child_start(some_switches, NULL);
    assert_true(waits_to_go(pid));
    assert_int_equal(state_of(programs, pid), PRCB_STATE_OFF);
    gate_set(&board->go, 1);
    assert_int_equal(child_wait(pid), 0);
    assert_true(wait_for(state_of(programs, pid) == PRCB_STATE_EXITED));
    accounts_bpf__destroy(programs);
}

/* ---- releases ---- */

static int switch_on(void *arg)
{
    while (getppid() > 1)
        sleep_ns(20000);
    return 0;
}

/* A thread that lives: its account is gone at once, a new one starts at zero, and the
 * next to get the slot is not disturbed by the first one's switches. */
static void test_release_of_the_living(void **state)
{
    struct prcb *p = session_open(1);
    struct prcb_thread *t;
    struct prcb_account a, b;
    struct prcb_error err;
    uint64_t key = 0;
    pid_t busy, quiet;

    busy = child_start(switch_on, NULL);
    for (int i = 0; i < (slowness() > 1 ? 5 : 20); i++) {
        must_profile_process(p, busy, PRCB_FOLLOW_NONE);
        t = must_open(p, busy);
        assert_true(wait_for(must_read(t).switches > 20));
        a = must_read(t);
        assert_true(a.key != key);
        key = a.key;
        assert_int_equal(prcb_release(p, key, &err), 0);
        assert_int_equal(prcb_thread_read(t, &b), -ESTALE);
        assert_false(find_account(p, busy, &b));
    }
    quiet = start_sleeper();
    must_profile_process(p, quiet, PRCB_FOLLOW_NONE);
    sleep_ns(5000000);
    a = must_find(p, quiet);
    assert_laws(&a);
    assert_int_equal(a.switches, 0);
    assert_int_equal(a.open.cause, PRCB_CAUSE_FUTEX);
}

/* Registered at whatever point of its life: next to never is a switch lost between the
 * copy of its counters and the first one that is seen. (Two are, when the machine stops the
 * registrar's processor in between.) */
static void test_registered_while_it_switches(void **state)
{
    struct prcb *p = empty_session();
    struct prcb_account a;
    struct prcb_error err;
    pid_t busy = child_start(switch_on, NULL);
    unsigned missed = 0;

    for (unsigned i = 0; i < (slowness() > 1 ? 40 : repeated(150)); i++) {
        must_profile_process(p, busy, PRCB_FOLLOW_NONE);
        assert_true(wait_for(must_find(p, busy).switches > 3));
        a = must_find(p, busy);
        assert_laws(&a);
        missed += a.missed_switches > 0;
        assert_int_equal(prcb_release(p, a.key, &err), 0);
    }
    assert_true(missed <= 2);
}

static int switches_once_then_stays(void *arg)
{
    while (!gate_get(&board->go))
        ;
    sleep_ns(1000);
    count_up();
    while (gate_get(&board->go) == 1)
        ;
    return stay_until_end();
}

/* One switch off and on after the copy of the counters and before any is seen. false: the
 * machine made it more. */
static bool left_and_came_back(struct accounts_bpf *programs)
{
    struct prcb_account_block block;
    uint64_t before, then, sum = 0;
    bool tried;
    pid_t pid;

    clear_board();
    board->go = board->count = 0;
    pid = child_start(switches_once_then_stays, NULL);
    assert_true(wait_for(kernel_state(pid, pid) == 'R'));
    register_by_hand(programs, pid, 0);
    assert_true(block_of(programs, pid, &block));
    before = block.base_nvcsw + block.base_nivcsw;
    gate_set(&board->go, 1);
    assert_true(wait_for(counted() == 1));
    programs->links.prcb_switch = bpf_program__attach_trace(programs->progs.prcb_switch);
    assert_non_null(programs->links.prcb_switch);
    assert_true(kernel_switches(pid, pid, NULL, &then));
    tried = then == before + 1;
    gate_set(&board->go, 2);
    assert_true(waits_to_go(pid));
    assert_true(block_of(programs, pid, &block));
    if (tried) {
        assert_int_equal(block.nvcsw + block.nivcsw - before, block.own_switches);
        for (int i = 0; i < PRCB_CAUSE_MAX; i++)
            sum += block.waits[i].count;
        assert_int_equal(sum, block.own_switches);
    }
    bpf_link__destroy(programs->links.prcb_switch);
    programs->links.prcb_switch = NULL;
    child_kill(pid);
    return tried;
}

/* Registration takes a microsecond, in which the thread may leave and come back. Made here by
 * a program of the switches that is attached late. */
static void test_switched_while_registered(void **state)
{
    struct accounts_bpf *programs = load_programs();
    int made = 0;

    programs->links.prcb_ended = bpf_program__attach_trace(programs->progs.prcb_ended);
    assert_non_null(programs->links.prcb_ended);
    for (int i = 0; i < MANY - 1 && made < (slowness() > 1 ? 1 : 3); i++)
        made += left_and_came_back(programs);
    accounts_bpf__destroy(programs);
    if (!made)
        skip_because("a thread that only computes is switched all the time");
}

/* ---- a full table ---- */

static int six_threads_then_more(void *arg)
{
    create_staying(6);
    gate_wait_while(&board->go, 0);
    create_staying(5);
    return stay_until_end();
}

static void test_full_table(void **state)
{
    struct prcb_status status = {.size = sizeof(status)};
    struct prcb *p = session_open(4);
    struct prcb_error err = {0};
    uint64_t before[4], all;
    struct prcb_account *accounts;
    struct prcb_thread *none;
    size_t count;
    pid_t pid;

    clear_board();
    pid = child_start(six_threads_then_more, NULL);
    all_wait(pid, 6);
    assert_int_equal(prcb_profile_process(p, pid, PRCB_FOLLOW_THREADS, &err), -ENOSPC);
    assert_true(strlen(err.text) > 0);
    prcb_session_status(p, &status);
    assert_int_equal(status.max_threads, 4);
    assert_int_equal(status.threads, 4);
    assert_int_equal(status.untracked_threads, 3);
    assert_int_equal(prcb_thread_open(p, getpid(), &none, &err), -ESRCH);
    assert_non_null(strstr(err.text, "room for 4 threads and lacked it for 3"));
    accounts = all_accounts(p, &count);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(kernel_switches(pid, accounts[i].tid, NULL, &before[i]));
        before[i] -= accounts[i].switches;
    }

    /* Whoever its creator is, tracked or not, a new thread is counted. */
    gate_set(&board->go, 1);
    all_wait(pid, 11);
    prcb_session_status(p, &status);
    assert_int_equal(status.threads, 4);
    assert_int_equal(status.untracked_threads, 8);
    accounts = all_accounts(p, &count);
    for (size_t i = 0; i < 4; i++) {
        assert_laws(&accounts[i]);
        assert_true(kernel_switches(pid, accounts[i].tid, NULL, &all));
        assert_int_equal(accounts[i].switches, all - before[i]);
    }
}

/* A thread that found no room gets an account when it asks again and there is some. */
static void test_room_again(void **state)
{
    struct prcb *p = session_open(1);
    pid_t first = start_sleeper(), second = start_sleeper();
    struct prcb_error err = {0};
    struct prcb_account a;

    must_profile_process(p, first, PRCB_FOLLOW_NONE);
    assert_int_equal(prcb_profile_process(p, second, PRCB_FOLLOW_NONE, &err), -ENOSPC);
    assert_int_equal(prcb_release(p, must_find(p, first).key, &err), 0);
    must_profile_process(p, second, PRCB_FOLLOW_NONE);
    a = must_find(p, second);
    assert_int_equal(a.open.cause, PRCB_CAUSE_FUTEX);
}

/* ---- exec and names ---- */

static void *exec_something(void *arg)
{
    board->tids[0] = gettid();
    execl("/bin/sleep", "sleep", "100", NULL);
    _exit(4);
}

static int exec_in_a_thread(void *arg)
{
    pthread_t thread;

    gate_wait_while(&board->go, 0);
    if (pthread_create(&thread, NULL, exec_something, NULL))
        return 3;
    pthread_join(thread, NULL);
    return 3;
}

static bool has_ended(struct prcb *p, uint64_t key)
{
    size_t count;
    struct prcb_account *all = all_accounts(p, &count);

    for (size_t i = 0; i < count; i++) {
        if (all[i].key == key)
            return all[i].flags & PRCB_ACCOUNT_EXITED;
    }
    return false;
}

/* The thread that execs goes on under the number of its leader, whose account ends. */
static void test_exec_by_another_thread(void **state)
{
    struct prcb *p = empty_session();
    struct prcb_account a;
    uint64_t key, kernel;
    size_t count;
    pid_t pid;

    clear_board();
    pid = child_start(exec_in_a_thread, NULL);
    must_profile_process(p, pid, PRCB_FOLLOW_ALL);
    key = must_find(p, pid).key;
    gate_set(&board->go, 1);
    assert_true(wait_for(find_account(p, pid, &a) && !strcmp(a.comm, "sleep") &&
                         a.open.cause == PRCB_CAUSE_SLEEP));
    assert_true(a.key != key);
    assert_int_equal(a.pid, pid);
    assert_laws(&a);
    assert_true(wait_for(has_ended(p, key))); /* its last switch may be to come */
    all_accounts(p, &count);
    assert_int_equal(count, 2);
    /* Born and followed, it has all its switches. */
    assert_true(kernel_switches(pid, pid, NULL, &kernel));
    assert_int_equal(must_find(p, pid).switches, kernel);
}

static int rename_itself(void *arg)
{
    gate_wait_while(&board->go, 0);
    prctl(PR_SET_NAME, "fifteen letters");
    gate_set(&board->go, 2);
    return stay_until_end();
}

static void test_names(void **state)
{
    struct prcb *p = empty_session();
    char name[16];
    pid_t pid;

    clear_board();
    prctl(PR_GET_NAME, name);
    pid = child_start(rename_itself, NULL);
    must_profile_process(p, pid, PRCB_FOLLOW_NONE);
    assert_string_equal(must_find(p, pid).comm, name);
    gate_set(&board->go, 1);
    assert_true(wait_for(gate_get(&board->go) == 2));
    assert_string_equal(must_find(p, pid).comm, "fifteen letters");
}

static void test_spawn(void **state)
{
    struct prcb *p = empty_session();
    static char sh[] = "sh", c[] = "-c", script[] = "sleep 0.5; exit 7", /* it waits by then */
        missing[] = "/no/such/program", tmp[] = "/tmp";
    char *argv[] = {sh, c, script, NULL}, *none[] = {missing, NULL}, *directory[] = {tmp, NULL};
    struct prcb_account *all;
    struct prcb_error err = {0};
    pid_t child = -5;
    size_t count;
    int status;

    assert_int_equal(prcb_spawn(p, none, PRCB_FOLLOW_ALL, &child, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such/program"));
    assert_int_equal(prcb_spawn(p, directory, PRCB_FOLLOW_ALL, &child, &err), -EACCES);
    assert_int_equal(child, -5);
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* no child is left */
    ended_accounts(p, &count);                           /* their last switches may be to come */
    prcb_release_exited(p, NULL);

    assert_int_equal(prcb_spawn(p, argv, PRCB_FOLLOW_ALL, &child, &err), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
    all = ended_accounts(p, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_laws(&all[i]);
        assert_true(all[i].flags & PRCB_ACCOUNT_EXITED);
        assert_string_equal(all[i].comm, all[i].tid == child ? "sh" : "sleep");
        assert_int_equal(all[i].waits[PRCB_CAUSE_SLEEP].count, all[i].tid == child ? 0 : 1);
        assert_true(all[i].tid != child || all[i].waits[PRCB_CAUSE_CHILD].count >= 1);
        /* Where it waited for its account to be made is not in the account. */
        assert_int_equal(all[i].waits[PRCB_CAUSE_PIPE].ns, 0);
    }
}

/* ---- asleep already ---- */

static void ignore(int signal)
{
    (void)signal;
}

/* Waits until a signal comes, however late that is. */
static void begin_wait(void)
{
    const struct sigaction action = {.sa_handler = ignore};

    sigaction(SIGUSR1, &action, NULL);
}

static int in_poll(void *arg)
{
    begin_wait();
    syscall(SYS_ppoll, NULL, 0, NULL, NULL, 8);
    return stay_until_end();
}

static int in_sleep(void *arg)
{
    const struct timespec ts = {.tv_sec = 1000};

    begin_wait();
    nanosleep(&ts, NULL);
    return stay_until_end();
}

static int in_wait(void *arg)
{
    pid_t own = getpid(), child;

    begin_wait();
    child = fork();
    if (!child) {
        /* With its parent, which may be gone before this. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == own)
            pause();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return stay_until_end();
}

/* The wait that goes on when profiling starts is known, and gives time but no count. */
static void test_registered_asleep(void **state)
{
    static const struct {
        int (*fn)(void *arg);
        enum prcb_cause cause;
    } waits[] = {
        {in_poll, PRCB_CAUSE_POLL}, {in_sleep, PRCB_CAUSE_SLEEP}, {in_wait, PRCB_CAUSE_CHILD}};

    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        struct prcb *p = session_shared();
        struct prcb_account a;
        pid_t pid;

        clear_board();
        pid = child_start(waits[i].fn, NULL);
        assert_true(waits_to_go(pid));
        must_profile_process(p, pid, PRCB_FOLLOW_NONE);
        a = must_find(p, pid);
        assert_int_equal(a.open.cause, waits[i].cause);
        assert_int_equal(a.wait_ns, 0);
        assert_int_equal(a.switches, 0);
        sleep_ns(2000000);
        kill(pid, SIGUSR1);
        assert_true(wait_for(must_find(p, pid).open.cause == PRCB_CAUSE_FUTEX));
        a = must_find(p, pid);
        assert_laws(&a);
        if (a.waits[waits[i].cause].count || a.waits[waits[i].cause].ns < 1000000)
            print_account(prcb_cause_info(waits[i].cause)->name, &a);
        assert_int_equal(a.waits[waits[i].cause].count, 0);
        assert_in_range(a.waits[waits[i].cause].ns, 1000000, a.wall_ns);
        assert_int_equal(a.waits[PRCB_CAUSE_FUTEX].count, 1);
        assert_int_equal(a.missed_switches, 0);
        board_end(NULL);
    }
}

/* ---- two sessions ---- */

static void test_two_sessions(void **state)
{
    struct prcb *first = empty_session(), *second;
    struct prcb_account a, b;
    uint64_t before, later, all;
    pid_t pid;

    clear_board();
    pid = child_start(some_switches, NULL);
    assert_true(waits_to_go(pid));
    assert_true(kernel_switches(pid, pid, NULL, &before));
    must_profile_process(first, pid, PRCB_FOLLOW_NONE);
    second = session_open(64);
    assert_false(find_account(second, pid, &b));
    assert_true(kernel_switches(pid, pid, NULL, &later));
    must_profile_process(second, pid, PRCB_FOLLOW_NONE);
    gate_set(&board->go, 1);
    assert_true(wait_for(kernel_state(pid, pid) == 'Z'));
    /* Of both: their programs run one after the other. */
    assert_true(wait_for(must_find(first, pid).flags & PRCB_ACCOUNT_EXITED));
    assert_true(wait_for(must_find(second, pid).flags & PRCB_ACCOUNT_EXITED));
    assert_true(kernel_switches(pid, pid, NULL, &all));
    a = must_find(first, pid);
    b = must_find(second, pid);
    assert_laws(&a);
    assert_laws(&b);
    assert_int_equal(a.switches, all - before);
    assert_int_equal(b.switches, all - later);
    assert_int_equal(a.waits[PRCB_CAUSE_SLEEP].count, b.waits[PRCB_CAUSE_SLEEP].count);
    assert_true(a.wall_ns > b.wall_ns);
}

/* ---- cgroups ---- */

static char cgroup_root[256], cgroup_path[300];

static bool enter(const char *path, pid_t pid)
{
    char file[360], number[16];
    int fd, length = snprintf(number, sizeof(number), "%d", (int)pid);
    bool done;

    snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    fd = open(file, O_WRONLY | O_CLOEXEC);
    done = fd >= 0 && write(fd, number, (size_t)length) == length;
    if (fd >= 0)
        close(fd);
    return done;
}

static bool find_cgroup_root(const char *type)
{
    char line[1024], where[256], kind[64];
    bool found = false;
    FILE *in = fopen("/proc/self/mounts", "re");

    while (in && !found && fgets(line, sizeof(line), in)) {
        found = sscanf(line, "%*s %255s %63s", where, kind) == 2 && !strcmp(kind, type);
        if (found)
            snprintf(cgroup_root, sizeof(cgroup_root), "%s", where);
    }
    if (in)
        fclose(in);
    return found;
}

static int thread_when_told(void *arg)
{
    gate_wait_while(&board->go, 0);
    create_staying(1);
    return stay_until_end();
}

static void cgroup_follows(const char *type)
{
    struct prcb *p = session_open(256);
    struct prcb_error err = {0};
    struct prcb_account a;
    char below[320];
    pid_t inside, under, outside, moved;
    size_t count;

    if (!find_cgroup_root(type))
        skip_because("no %s is mounted", type);
    snprintf(cgroup_path, sizeof(cgroup_path), "%s/prcb-test-%d", cgroup_root, (int)getpid());
    snprintf(below, sizeof(below), "%s/below", cgroup_path);
    if (mkdir(cgroup_path, 0755) || mkdir(below, 0755))
        skip_because("%s: %s", cgroup_path, strerror(errno));
    clear_board();
    inside = start_sleeper();
    under = child_start(thread_when_told, NULL);
    outside = start_sleeper();
    moved = child_start(thread_when_told, NULL);
    assert_true(enter(cgroup_path, inside) && enter(below, under));

    assert_int_equal(prcb_profile_cgroup(p, cgroup_path, &err), 0);
    all_accounts(p, &count);
    assert_int_equal(count, 2);
    assert_true(find_account(p, inside, &a) && find_account(p, under, &a));
    assert_false(find_account(p, outside, &a));

    assert_true(enter(below, moved));
    assert_true(find_account(p, moved, &a));
    gate_set(&board->go, 1);
    assert_true(wait_for(counted() == 2));
    all_accounts(p, &count);
    assert_int_equal(count, 5); /* and their new threads */
    for (int i = 0; i < 2; i++)
        assert_true(find_account(p, board->tids[i], &a));

    /* Moved out: stays. */
    assert_true(enter(cgroup_root, inside));
    assert_true(find_account(p, inside, &a));
    assert_int_equal(prcb_profile_cgroup(p, "/tmp", &err) == 0, false);
    assert_int_equal(prcb_profile_cgroup(p, "/no/such/cgroup", &err), -ENOENT);
}

/* Moves a process into the cgroup each time it is told. */
static int mover(void *arg)
{
    for (uint32_t turn = 1;; turn += 2) {
        gate_wait_while(&board->count, turn - 1);
        if (!enter(cgroup_path, board->tids[0]))
            return 4;
        gate_set(&board->count, turn + 1);
    }
}

/* A process that is moved into the cgroup and registered at once gets one account, in a table
 * that has no room for two. */
static void test_moved_and_registered(void **state)
{
    struct prcb *p = session_open(1);
    struct prcb_error err = {0};
    uint64_t takes = 100000;
    pid_t pid;

    if (!find_cgroup_root("cgroup2"))
        skip_because("no cgroup2 is mounted");
    snprintf(cgroup_path, sizeof(cgroup_path), "%s/prcb-test-%d", cgroup_root, (int)getpid());
    if (mkdir(cgroup_path, 0755))
        skip_because("%s: %s", cgroup_path, strerror(errno));
    assert_int_equal(prcb_profile_cgroup(p, cgroup_path, &err), 0);
    pid = start_sleeper();
    board->tids[0] = pid;
    child_start(mover, NULL);
    for (uint32_t round = 0; round < (slowness() > 1 ? 8 : 60); round++) {
        uint64_t begin = mono_ns(), until = begin + takes / 16 * (round % 32);
        size_t count;

        gate_set(&board->count, 2 * round + 1);
        while (mono_ns() < until)
            ;
        must_profile_process(p, pid, PRCB_FOLLOW_NONE);
        assert_true(wait_for(counted() == 2 * round + 2));
        if (round % 32 == 0)
            takes = mono_ns() - begin;
        all_accounts(p, &count);
        assert_int_equal(count, 1);
        assert_int_equal(prcb_release(p, must_find(p, pid).key, &err), 0);
        assert_true(enter(cgroup_root, pid));
    }
}

static int cgroup_end(void **state)
{
    char below[320];

    board_end(state);
    snprintf(below, sizeof(below), "%s/below", cgroup_path);
    wait_for(!rmdir(below) || errno == ENOENT);
    wait_for(!rmdir(cgroup_path) || errno == ENOENT);
    return 0;
}

static void test_cgroup_v1(void **state)
{
    cgroup_follows("cgroup");
}

static void test_cgroup_v2(void **state)
{
    cgroup_follows("cgroup2");
}

static int napper(void *arg)
{
    while (board)
        sleep_ns(1000000);
    return 0;
}

static bool has_cgroup(struct prcb *p, pid_t tid, const char *path)
{
    struct prcb_account a = must_find(p, tid);
    struct stat st;

    assert_true(a.present & PRCB_HAS_CGROUP);
    return !stat(path, &st) && a.cgroup == st.st_ino;
}

/* The account knows the cgroup of version 2: at the start, after a move, and of a thread that is
 * born there. */
static void test_account_has_cgroup(void **state)
{
    struct prcb *p = session_open(16);
    pid_t pid, born;

    if (!find_cgroup_root("cgroup2"))
        skip_because("no cgroup2 is mounted");
    snprintf(cgroup_path, sizeof(cgroup_path), "%s/prcb-test-%d", cgroup_root, (int)getpid());
    if (mkdir(cgroup_path, 0755))
        skip_because("%s: %s", cgroup_path, strerror(errno));
    clear_board();
    pid = child_start(napper, NULL);
    assert_true(enter(cgroup_root, pid));
    must_profile_process(p, pid, PRCB_FOLLOW_ALL);
    assert_true(has_cgroup(p, pid, cgroup_root));
    assert_true(enter(cgroup_path, pid));
    assert_true(wait_for(has_cgroup(p, pid, cgroup_path)));
    assert_true(enter(cgroup_root, pid));
    assert_true(wait_for(has_cgroup(p, pid, cgroup_root)));

    born = child_start(thread_when_told, NULL);
    assert_true(enter(cgroup_path, born));
    must_profile_process(p, born, PRCB_FOLLOW_ALL);
    gate_set(&board->go, 1);
    assert_true(wait_for(counted() == 1));
    assert_true(has_cgroup(p, board->tids[0], cgroup_path));
    assert_true(enter(cgroup_root, born));
}

/* ---- everything ---- */

struct tid_list {
    pid_t tids[20000];
    size_t count;
};

static void list_tids(struct tid_list *ret)
{
    struct dirent *process, *thread;
    DIR *processes = opendir("/proc"), *threads;
    char path[64];

    ret->count = 0;
    while (processes && (process = readdir(processes))) {
        if (process->d_name[0] < '1' || process->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%.20s/task", process->d_name);
        threads = opendir(path);
        while (threads && (thread = readdir(threads)) && ret->count < 20000) {
            if (thread->d_name[0] != '.')
                ret->tids[ret->count++] = atoi(thread->d_name);
        }
        if (threads)
            closedir(threads);
    }
    if (processes)
        closedir(processes);
}

static bool is_of_first(pid_t tid)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/1/task/%d", (int)tid);
    return !access(path, F_OK);
}

/* Some machines' kernels keep the first process from being seen by eBPF programs: then
 * it cannot be profiled at all, and says so. */
static void test_everything(void **state)
{
    static struct tid_list list;
    struct prcb *p = session_open(0);
    struct prcb_error err = {0};
    struct prcb_account a, *all;
    size_t count, missing = 0, kernel_threads = 0;
    bool hidden_first;
    pid_t born;
    int looks = 0;

    hidden_first = prcb_profile_process(p, 1, 0, &err) == -ESRCH;
    assert_int_equal(prcb_profile_all(p, &err), 0);
    clear_board();
    born = start_sleeper();
    /* Of a thread that was ending when all were profiled, and is listed still, nothing is there a
     * moment later: then once more. */
    do {
        missing = 0;
        list_tids(&list);
        all = all_accounts(p, &count);
        assert_true(list.count > 1); /* a container has few */
        for (size_t i = 0; i < list.count; i++) {
            char kernel = kernel_state(list.tids[i], list.tids[i]);
            bool found = kernel == 'Z'; /* it had ended before */

            for (size_t j = 0; j < count && !found; j++)
                found = all[j].tid == list.tids[i];
            if (found || (hidden_first && is_of_first(list.tids[i])))
                continue;
            printf("    no account: thread %d, %c\n", (int)list.tids[i], kernel ? kernel : '-');
            assert_int_equal(kernel, 0);
            missing++;
        }
    } while (missing && ++looks < 5);
    assert_int_equal(missing, 0);
    for (size_t i = 0; i < count; i++) {
        assert_laws(&all[i]);
        kernel_threads += all[i].flags & PRCB_ACCOUNT_KTHREAD ? 1 : 0;
    }
    if (is_first_pid_ns()) {
        assert_true(kernel_threads > 3);
        assert_true(find_account(p, 2, &a) && (a.flags & PRCB_ACCOUNT_KTHREAD)); /* kthreadd */
    }
    assert_true(find_account(p, born, &a) && !(a.flags & PRCB_ACCOUNT_KTHREAD));
    assert_true(find_account(p, getpid(), &a));
}

/* ---- what is refused ---- */

static void test_bad_arguments(void **state)
{
    struct prcb *p = session_open(16), *none = NULL;
    struct prcb_error err = {0};
    struct prcb_thread *t = NULL;
    struct {
        struct prcb_options options;
        uint64_t more;
    } longer = {.options = {.size = sizeof(longer), .tier = PRCB_TIER_BPF, .max_threads = 16}};
    struct prcb_options options = {.size = sizeof(options)};
    struct {
        struct prcb_account account;
        uint64_t more;
    } account;
    static const pid_t wrong[] = {0, -1, INT32_MIN};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(prcb_profile_thread(p, wrong[i], 0, &err), -EINVAL);
        assert_int_equal(prcb_profile_process(p, wrong[i], 0, &err), -EINVAL);
        assert_true(prcb_thread_open(p, wrong[i], &t, &err) < 0);
    }
    assert_int_equal(prcb_profile_thread(p, INT32_MAX, 0, &err), -ESRCH);
    assert_int_equal(prcb_profile_process(p, INT32_MAX, 0, &err), -ESRCH);
    assert_int_equal(err.code, -ESRCH);
    assert_non_null(strstr(err.text, "2147483647"));
    assert_int_equal(prcb_profile_thread(p, getpid(), 4, &err), -EINVAL);
    assert_int_equal(prcb_thread_open(p, getpid(), &t, &err), -ESRCH); /* not profiled */
    assert_null(t);
    assert_int_equal(prcb_release(p, 0, &err), -ESTALE);
    assert_int_equal(prcb_release(p, UINT64_MAX, &err), -ESTALE);
    assert_int_equal(prcb_profile_thread(p, INT32_MAX, 0, NULL), -ESRCH); /* no words wanted */

    options.tier = 9;
    assert_int_equal(prcb_open(&options, &none, &err), -EINVAL);
    options.tier = PRCB_TIER_BPF;
    options.max_threads = UINT32_MAX;
    assert_int_equal(prcb_open(&options, &none, &err), -EINVAL);
    options.max_threads = 16;
    options.size = 0;
    assert_int_equal(prcb_open(&options, &none, &err), -EINVAL);
    options.size = 4;
    assert_int_equal(prcb_open(&options, &none, &err), -EINVAL);
    longer.more = 1;
    assert_int_equal(prcb_open(&longer.options, &none, &err), -E2BIG);
    assert_null(none);
    longer.more = 0;
    assert_int_equal(prcb_open(&longer.options, &none, &err), 0);
    prcb_close(none);
    prcb_close(NULL);
    prcb_thread_close(NULL);

    /* Results of another age: shorter is filled as far as it goes, longer has zeros. */
    t = must_open(p, 0);
    memset(&account, 0xaa, sizeof(account));
    account.account.size = offsetof(struct prcb_account, wall_ns);
    assert_int_equal(prcb_thread_read(t, &account.account), 0);
    assert_int_equal(account.account.tid, gettid());
    assert_int_equal(account.account.wall_ns, 0xaaaaaaaaaaaaaaaa);
    account.account.size = sizeof(account);
    assert_int_equal(prcb_thread_read(t, &account.account), 0);
    assert_true(account.account.wall_ns != 0xaaaaaaaaaaaaaaaa);
    assert_int_equal(account.more, 0);
    assert_int_equal(account.account.size, sizeof(account));
    account.account.size = 0;
    assert_int_equal(prcb_thread_read(t, &account.account), -EINVAL);
}

/* ---- pid namespaces ---- */

struct inside {
    unsigned count, without_number;
};

static int count_inside(const struct prcb_account *a, void *arg)
{
    struct inside *inside = arg;

    inside->count++;
    inside->without_number += !a->tid || !a->pid;
    return 0;
}

/* As the first process of a new namespace: sees the numbers of that namespace, and its threads. */
static int inside_namespace(void *arg)
{
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_account a = {.size = sizeof(a)};
    struct inside inside = {0};
    struct prcb_thread *t;
    struct prcb_error err;
    struct prcb *p;
    pid_t child;
    int result, tries = 0;

    if (getpid() != 1)
        return 20;
    if (prcb_open(&options, &p, &err))
        return 21;
    if (prcb_thread_open_self(p, &t, &err) || prcb_thread_read(t, &a))
        return 22;
    if (a.tid != 1 || a.pid != 1)
        return 23;
    if (prcb_profile_process(p, 4242, 0, &err) != -ESRCH)
        return 24;
    if (prcb_profile_all(p, &err))
        return 25;
    gate_set(&board->count, 1);
    gate_wait_while(&board->count, 1);
    child = fork();
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    do
        inside = (struct inside){0};
    while ((result = prcb_walk(p, count_inside, &inside, &err)) == -EAGAIN && ++tries < 50);
    if (result)
        return 26;
    if (inside.count != 2 || inside.without_number) {
        printf("    %u threads, %u of them without a number\n", inside.count,
               inside.without_number);
        return 27;
    }
    prcb_thread_close(t);
    prcb_close(p);
    return 0;
}

static int enter_namespace(void *arg)
{
    int status;
    pid_t child;

    if (unshare(CLONE_NEWPID))
        return 77;
    child = fork();
    if (!child)
        _exit(arg ? stay_until_end() : inside_namespace(NULL));
    board->tids[0] = child;
    gate_set(&board->go, 1);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 30;
}

static int end_at_once(void *unused)
{
    return 0;
}

/* All threads are those of the namespace: also where others begin outside of it. */
static void test_inside_a_pid_namespace(void **state)
{
    int result;
    pid_t outer;

    clear_board();
    outer = child_start(enter_namespace, NULL);
    wait_for(counted() || kernel_state(outer, outer) == 'Z');
    for (int i = 0; i < 3; i++)
        assert_int_equal(child_wait(child_start(end_at_once, NULL)), 0);
    gate_set(&board->count, 2);
    result = child_wait(outer);
    if (result == 77)
        skip_because("no pid namespace can be made");
    assert_int_equal(result, 0);
}

/* From outside, threads of another namespace have the numbers we know them by. */
static void test_pid_namespace_from_outside(void **state)
{
    struct prcb *p = session_open(16);
    pid_t outer, inner;

    clear_board();
    outer = child_start(enter_namespace, &outer);
    assert_true(wait_for(gate_get(&board->go) == 1));
    inner = board->tids[0];
    must_profile_process(p, inner, PRCB_FOLLOW_ALL);
    assert_int_equal(must_find(p, inner).pid, inner);
    kill(inner, SIGKILL);
}

#define LIFE_TEST(function) cmocka_unit_test_teardown(function, board_end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LIFE_TEST(test_threads_created_meanwhile),
        LIFE_TEST(test_children_of_threads_created_meanwhile),
        LIFE_TEST(test_threads_hand_over_meanwhile),
        LIFE_TEST(test_follow_none),
        LIFE_TEST(test_follow_threads),
        LIFE_TEST(test_follow_children),
        LIFE_TEST(test_follow_all),
        LIFE_TEST(test_follow_widened),
        LIFE_TEST(test_process_total),
        LIFE_TEST(test_chain_of_an_account_that_is_gone),
        LIFE_TEST(test_end_is_kept),
        LIFE_TEST(test_births_without_newtask),
        LIFE_TEST(test_end_without_a_switch),
        LIFE_TEST(test_release_of_the_living),
        LIFE_TEST(test_registered_while_it_switches),
        LIFE_TEST(test_switched_while_registered),
        LIFE_TEST(test_full_table),
        LIFE_TEST(test_room_again),
        LIFE_TEST(test_exec_by_another_thread),
        LIFE_TEST(test_names),
        LIFE_TEST(test_spawn),
        LIFE_TEST(test_registered_asleep),
        LIFE_TEST(test_walk_active),
        LIFE_TEST(test_two_sessions),
        cmocka_unit_test_teardown(test_cgroup_v1, cgroup_end),
        cmocka_unit_test_teardown(test_cgroup_v2, cgroup_end),
        cmocka_unit_test_teardown(test_moved_and_registered, cgroup_end),
        cmocka_unit_test_teardown(test_account_has_cgroup, cgroup_end),
        LIFE_TEST(test_everything),
        LIFE_TEST(test_bad_arguments),
        LIFE_TEST(test_inside_a_pid_namespace),
        LIFE_TEST(test_pid_namespace_from_outside),
    };

    struct CMUnitTest wanted[sizeof(tests) / sizeof(tests[0])];
    size_t count = 0;

    /* Arguments are patterns of names; none: all. */
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        int k = 1;

        while (k < argc && fnmatch(argv[k], tests[i].name, 0))
            k++;
        if (k < argc || argc == 1)
            wanted[count++] = tests[i];
    }
    return bpf_run("lifecycle", wanted, count);
}
