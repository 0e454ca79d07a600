/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a verdict says of made-up figures, and that it says nothing that they do not prove.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <prcb/prcb.h>

#include "place.h"
#include "verdict.h"

#define MS    UINT64_C(1000000)
#define PARTS 8

static struct object objects[] = {
    {.kind = OBJECT_FUTEX,
     .name = (char[]){"0x1000 (orders+0x30a0)"},
     .symbol = (char[]){"stats_mutex"}},
    {.kind = OBJECT_THREAD, .name = (char[]){"reporter"}, .tid = 12},
    {.kind = OBJECT_SOCKET, .name = (char[]){"tcp 10.0.0.1:50000 -> 10.0.0.2:5432"}},
    {.kind = OBJECT_SOCKET, .name = (char[]){"tcp 10.0.0.1:50001 -> 10.0.0.2:5432"}},
    {.kind = OBJECT_FILE, .name = (char[]){"/var/led\nger"}, .detail = (char[]){"vda"}},
    {.kind = OBJECT_FUTEX, .name = (char[]){"0x2000 ([heap])"}},
    {.kind = OBJECT_THREAD, .name = (char[]){"indexer"}, .tid = 13},
    {.kind = OBJECT_PROCESS,
     .name = (char[]){"cc1"},
     .tid = 14,
     .detail = (char[]){"it sleeps in pipe_read"}},
    {.kind = OBJECT_PIPE,
     .name = (char[]){"pipe:[7]"},
     .detail = (char[]){"read by other (101)"},
     .doing = (char[]){"it runs"},
     .end = S_IRUSR,
     .other = 101},
};
enum { NO_OBJECT, STATS, REPORTER, DATABASE, DATABASE_TOO, LEDGER, HEAP, INDEXER, COMPILER, PIPE };

static const struct object *object_at(const void *ctx, uint32_t number)
{
    return &objects[number - 1];
}

static const struct why_who workers[] = {
    {1, 21, "worker-1"}, {2, 22, "worker-2"}, {3, 23, "worker-3"}};

static const struct prcb_frame in_libc = {1, "__lll_lock_wait", "/usr/lib/x/libc.so.6", 1};

/* A wait in a function that the C library's function was called by. */
struct made {
    struct prcb_frame frames[2];
};

static struct made stacks[32];
static size_t stack_count;

static struct why_part part(uint32_t cause, const char *word, enum prcb_stack_kind kind,
                            const char *function, uint64_t ms)
{
    struct made *made = &stacks[stack_count++];
    struct why_part ret = {.kind = WHY_STACK, .cause = cause, .ns = ms * MS, .count = 1};

    made->frames[0] = in_libc;
    made->frames[1] = (struct prcb_frame){2, function, "/srv/orders", 2};
    ret.stack = (struct prcb_stack){.id = (uint32_t)stack_count,
                                    .kind = kind,
                                    .word = word,
                                    .frame_count = 2,
                                    .frames = made->frames};
    ret.idle_ns = kind == PRCB_STACK_IDLE ? ret.ns : 0;
    ret.who = workers;
    ret.who_count = 1;
    return ret;
}

/* A process of one cause a part. */
struct world {
    struct why_process processes[2];
    struct why_cause causes[2][PARTS];
    struct why_part parts[2][PARTS];
    struct why_report report;
    struct verdict_figures figures;
    struct verdict verdict;
};

static void begin(struct world *w)
{
    memset(w, 0, sizeof(*w));
    stack_count = 0;
    w->report = (struct why_report){w->processes, 1};
    w->figures = (struct verdict_figures){.report = &w->report, .object = object_at};
    for (int i = 0; i < 2; i++) {
        w->processes[i].pid = 100 + i;
        strcpy(w->processes[i].comm, i ? "other" : "orders");
        w->processes[i].causes = w->causes[i];
    }
}

static void add(struct world *w, int process, struct why_part one)
{
    struct why_process *to = &w->processes[process];
    size_t at = to->cause_count++;

    w->parts[process][at] = one;
    w->causes[process][at] = (struct why_cause){.cause = one.cause,
                                                .ns = one.ns,
                                                .idle_ns = one.idle_ns,
                                                .pairs = &w->parts[process][at],
                                                .pair_count = 1};
    to->wait_ns += one.ns;
    to->idle_ns += one.idle_ns;
    to->wall_ns += one.ns;
}

/* The sentences, a line each; the caller's until the next. */
static const char *said(struct world *w)
{
    static char ret[4096];

    assert_int_equal(verdict_make(&w->figures, &w->verdict), 0);
    *ret = '\0';
    for (size_t i = 0; i < w->verdict.count; i++) {
        strcat(ret, w->verdict.lines[i].text);
        strcat(ret, "\n");
    }
    verdict_free(&w->verdict);
    return ret;
}

static void test_nothing(void **state)
{
    struct world w;

    begin(&w);
    assert_string_equal(said(&w), "");
    w.report.count = 0;
    assert_string_equal(said(&w), "");
}

/* Where only the kernel's function is known, as of its mutexes before Linux 6.16, that is said;
 * what its functions say of a wait is said in place of the cause. */
static void test_in_the_kernel(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_OTHER_D, NULL, PRCB_STACK_BLOCKED, "store", 600));
    w.parts[0][0].wait = (struct object_wait){.object = LEDGER};
    assert_string_equal(said(&w), "100 % of the waiting: worker-1 (21) is waiting in the kernel, "
                                  "uninterruptible, no finer cause known in store().\n");
    stacks[stack_count - 1].frames[0] =
        (struct prcb_frame){.function = "pipe_write", .file = "[kernel]"};
    assert_string_equal(said(&w),
                        "100 % of the waiting: worker-1 (21) waits in the kernel, at pipe_write "
                        "(uninterruptible), for /var/led?ger (vda) in store().\n");
    add(&w, 0,
        part(PRCB_CAUSE_PAGE_FAULT, "handler of userfaultfd", PRCB_STACK_BLOCKED, "touch", 900));
    assert_non_null(strstr(said(&w),
                           "60 % of the waiting: worker-1 (21) waits for memory that a program "
                           "gives (userfaultfd) in touch().\n"));
}

/* Who waits for what in which function; who holds it, and what that one does. */
static void test_lock(void **state)
{
    struct why_doing doings[2];
    struct world w;

    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_FUTEX, "mutex", PRCB_STACK_BLOCKED, "record_order", 710));
    add(&w, 0, part(PRCB_CAUSE_SLEEP, "sleep", PRCB_STACK_EITHER, "pace", 2000));
    add(&w, 0, part(PRCB_CAUSE_FSYNC, NULL, PRCB_STACK_BLOCKED, "save", 290));
    w.parts[0][0].who_count = 3;
    w.parts[0][0].wait = (struct object_wait){.object = STATS};
    w.parts[0][2].wait = (struct object_wait){.object = LEDGER};
    assert_string_equal(said(&w),
                        "71 % of the waiting: 3 threads (worker-*) wait for stats_mutex in "
                        "record_order().\n"
                        "29 % of the waiting: worker-1 (21) waits for data to reach "
                        "storage: /var/led?ger (vda) in save().\n"
                        "67 % of all waiting: worker-1 (21) sleeps "
                        "in pace().\n");
    w.parts[0][0].wait.holder = REPORTER;
    assert_non_null(strstr(said(&w), "in record_order(); reporter (12) holds it.\n"));
    doings[0] = (struct why_doing){
        STATS,     REPORTER,
        WHY_WAITS, part(PRCB_CAUSE_FUTEX, "mutex", PRCB_STACK_BLOCKED, "build_report", 700),
        700 * MS,  1};
    w.processes[0].doings = doings;
    w.processes[0].doing_count = 1;
    doings[0].part.wait = (struct object_wait){.object = HEAP, .holder = INDEXER};
    assert_non_null(strstr(said(&w), "; reporter (12) holds it and waits for the lock 0x2000 "
                                     "([heap]) in build_report().\n"));
    /* Without a function that locks it is a futex. */
    doings[0].part.stack.word = NULL;
    assert_non_null(strstr(said(&w), "and waits for the futex 0x2000 ([heap]) in build_report"));
    doings[0].part.stack.word = "mutex";
    /* What the next one does is told where others waited for that. */
    add(&w, 0, doings[0].part);
    doings[1] = (struct why_doing){.object = HEAP, .holder = INDEXER, .state = WHY_RUNS, .ns = MS};
    w.processes[0].doing_count = 2;
    assert_non_null(strstr(said(&w), " in build_report(); indexer (13) holds it and runs "
                                     "meanwhile.\n"));
}

static void test_holders_in_turn(void **state)
{
    struct world w;

    begin(&w);
    for (uint32_t i = 0; i < 3; i++) {
        add(&w, 0, part(PRCB_CAUSE_FUTEX, "mutex", PRCB_STACK_BLOCKED, "put", 100 + i));
        w.parts[0][i].wait = (struct object_wait){.object = STATS, .holder = i ? 2 * i : INDEXER};
    }
    w.parts[0][1].wait.holder = REPORTER;
    w.parts[0][2].wait.holder = COMPILER;
    assert_string_equal(said(&w), "100 % of the waiting: worker-1 (21) waits for stats_mutex in "
                                  "put(); 3 threads hold it in turn.\n");
}

static void test_deadlock_comes_first(void **state)
{
    struct why_part one, two;
    struct why_now now[2];
    struct world w;

    begin(&w);
    one = part(PRCB_CAUSE_FUTEX, "mutex", PRCB_STACK_BLOCKED, "transfer", 100);
    two = part(PRCB_CAUSE_FUTEX, "mutex", PRCB_STACK_BLOCKED, "back", 100);
    one.wait = (struct object_wait){.object = STATS, .holder = REPORTER};
    two.wait = (struct object_wait){.object = HEAP, .holder = INDEXER};
    add(&w, 0, one);
    add(&w, 0, two);
    add(&w, 0, part(PRCB_CAUSE_THROTTLED, NULL, PRCB_STACK_BLOCKED, "work", 100));
    now[0] = (struct why_now){13,   "indexer", PRCB_CAUSE_FUTEX, MS, true,
                              true, one.stack, one.wait,         12, 1};
    now[1] = (struct why_now){12,   "reporter", PRCB_CAUSE_FUTEX, MS, true,
                              true, two.stack,  two.wait,         13, 1};
    w.processes[0].now = now;
    w.processes[0].now_count = 2;
    assert_string_equal(
        said(&w), "Deadlock: indexer (13) waits for stats_mutex in transfer(), held by "
                  "reporter (12); reporter (12) waits for the lock 0x2000 ([heap]) in back(), "
                  "held by indexer (13).\n"
                  "33 % of the waiting: held back by a CPU quota.\n");
    now[0].loop = now[1].loop = 0;
    assert_null(strstr(said(&w), "Deadlock"));
}

static void test_from_outside(void **state)
{
    struct around around = {.group = "/box", .limit = 64 << 20};
    struct held_threads held = {.count = 0, .left = 2};
    struct world w;

    begin(&w);
    w.figures.around = &around;
    add(&w, 0, part(PRCB_CAUSE_THROTTLED, NULL, PRCB_STACK_BLOCKED, "work", 300));
    w.processes[0].ready_ns = 100 * MS;
    assert_string_equal(said(&w),
                        "75 % of the waiting: held back by a CPU quota.\n"
                        "25 % of the waiting: threads are ready and have no processor.\n");
    w.figures.quota = ": cgroup /box may run 10ms in each 100ms";
    assert_non_null(strstr(said(&w), "held back by a CPU quota: cgroup /box may run 10ms in each "
                                     "100ms.\n"));
    /* A limit that is reached hurts only where pages are missed. */
    around.limit_hits = 500;
    assert_null(strstr(said(&w), "memory limit"));
    around.refaults = 7000;
    assert_non_null(strstr(said(&w), "The memory limit of cgroup /box (64 MiB) was reached 500 "
                                     "times: 7000 pages were dropped and read again.\n"));
    around.limit = 0;
    assert_null(strstr(said(&w), "memory limit"));
    around.processors_ns = 1000 * MS;
    around.stolen_ns = 40 * MS;
    assert_null(strstr(said(&w), "hypervisor"));
    around.stolen_ns = 300 * MS;
    assert_non_null(
        strstr(said(&w), "The hypervisor took 30 % of the processors' time (steal).\n"));
    w.figures.held = &held;
    assert_ptr_equal(strstr(said(&w), "2 more threads are stopped or frozen.\n75 %"), said(&w));
}

static void test_swap(void **state)
{
    struct world w;

    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_PAGE_FAULT, NULL, PRCB_STACK_BLOCKED, "work", 300));
    assert_null(strstr(said(&w), "swap"));
    stacks[0].frames[0] = (struct prcb_frame){0, "do_swap_page", "[kernel]", 0};
    assert_ptr_equal(strstr(said(&w), "100 % of the waiting: memory is read back from swap.\n"),
                     said(&w));
}

/* The perf tier knows no causes: a quota's time is in the ready time. */
static void test_quota_without_causes(void **state)
{
    struct world w;

    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_NONE, NULL, PRCB_STACK_IDLE, "serve", 100));
    w.processes[0].ready_ns = 100 * MS;
    assert_null(strstr(said(&w), "quota"));
    w.figures.quota = ": cgroup /box may run 10ms in each 100ms";
    assert_string_equal(said(&w), "100 % of the waiting: ready or held back by a CPU quota: cgroup "
                                  "/box may run 10ms in each 100ms.\n");
}

/* Sockets with one other end are one thing, those of two processes are two. */
static void test_other_ends(void **state)
{
    struct world w;

    begin(&w);
    for (int i = 0; i < 2; i++) {
        add(&w, 0, part(PRCB_CAUSE_SOCKET, NULL, PRCB_STACK_BLOCKED, i ? "ask" : "put", 100 + i));
        w.parts[0][i].wait.object = i ? DATABASE : DATABASE_TOO;
        w.parts[0][i].who = &workers[i];
    }
    assert_string_equal(said(&w), "100 % of the waiting: 2 threads (worker-*) wait for "
                                  "10.0.0.2:5432 in ask().\n");
    w.report.count = 2;
    add(&w, 1, w.parts[0][0]);
    assert_string_equal(said(&w),
                        "67 % of the waiting: 2 threads (worker-*) of orders (100) wait for "
                        "10.0.0.2:5432 in ask().\n"
                        "33 % of the waiting: worker-1 (21) of other (101) waits for 10.0.0.2:5432 "
                        "in put().\n");
}

/* What is waited for is told as all of it only where it is. */
static void test_several_objects(void **state)
{
    struct world w;

    begin(&w);
    for (int i = 0; i < 3; i++) {
        add(&w, 0, part(PRCB_CAUSE_PIPE, NULL, PRCB_STACK_BLOCKED, "put", i ? 20 : 1000));
        w.parts[0][i].wait.object = i == 1 ? COMPILER : PIPE;
    }
    assert_string_equal(said(&w), "100 % of the waiting: worker-1 (21) waits for room in pipe:[7] "
                                  "(read by other (101); it runs) in put().\n");
    w.parts[0][1].ns = 200 * MS;
    assert_string_equal(said(&w), "100 % of the waiting: worker-1 (21) waits for room in pipe:[7] "
                                  "(read by other (101); it runs) and others in put().\n");
    w.parts[0][0].ns = 210 * MS;
    w.parts[0][2].ns = 4000 * MS;
    w.parts[0][2].wait.object = 0;
    assert_string_equal(said(&w), "100 % of the waiting: worker-1 (21) waits for room in pipe:[7] "
                                  "(read by other (101); it runs) and others in put().\n");
}

/* A futex of a thread's own does not tell locks apart. */
static void test_own_futexes(void **state)
{
    struct world w;

    begin(&w);
    for (int i = 0; i < 2; i++) {
        add(&w, 0, part(PRCB_CAUSE_FUTEX, "Java monitor", PRCB_STACK_BLOCKED, "want", 100));
        w.parts[0][i].wait.object = i ? STATS : HEAP;
        w.parts[0][i].who = &workers[i];
    }
    assert_string_equal(said(&w), "100 % of the waiting: 2 threads (worker-*) wait for a Java "
                                  "monitor in want().\n");
}

static void test_ready_behind(void **state)
{
    struct prcb_edge edge = {.kind = PRCB_EDGE_BEHIND,
                             .by = PRCB_BY_THREAD,
                             .tid = 77,
                             .pid = 77,
                             .comm = "noise",
                             .count = 1,
                             .ns = 90 * MS};
    struct whom *whom;
    struct world w;

    begin(&w);
    assert_int_equal(whom_open(&whom), 0);
    assert_int_equal(whom_add(whom, 100, &edge), 0);
    w.figures.whom = whom;
    w.processes[0].ready_ns = 100 * MS;
    w.processes[0].wall_ns = 100 * MS;
    w.processes[0].threads = 1;
    assert_string_equal(said(&w), "100 % of the waiting: orders (100) is ready and has no "
                                  "processor, behind noise (77) for 100 % of that.\n");
    whom_close(whom);
}

static void test_idle_and_running(void **state)
{
    struct world w;

    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_EPOLL, "event loop", PRCB_STACK_IDLE, "serve", 990));
    w.processes[0].run_ns = 10 * MS;
    w.processes[0].wall_ns = 1000 * MS;
    assert_string_equal(said(&w), "Nothing holds it up: it waited for work for 99 % of its time, "
                                  "and ran for 1.0 %.\n");
    w.processes[0].run_ns = 3000 * MS;
    w.processes[0].wall_ns = 4000 * MS;
    add(&w, 0, part(PRCB_CAUSE_CHILD, NULL, PRCB_STACK_BLOCKED, "compile", 1000));
    w.parts[0][1].wait.object = COMPILER;
    assert_string_equal(
        said(&w), "It runs rather than waits: 75 % of the time that it did not idle was spent "
                  "on a processor (3.00s); prcb record -g says in which functions.\n"
                  "100 % of the waiting: worker-1 (21) waits for a child process to end: cc1 "
                  "(14) (it sleeps in pipe_read) in compile().\n");
}

/* An event loop with an answer to come is not idle. */
static void test_unanswered(void **state)
{
    struct unanswered u = {
        .rows = {{.remote = "10.0.0.2:80", .connections = 1, .looks = 9, .longest_ms = 187},
                 {.remote = "10.0.0.3:80", .connections = 2, .looks = 1}},
        .count = 2,
        .looks = 10};
    struct world w;

    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_EPOLL, "event loop", PRCB_STACK_IDLE, "serve", 990));
    w.processes[0].run_ns = 10 * MS;
    w.processes[0].wall_ns = 1000 * MS;
    w.figures.unanswered = &u;
    assert_string_equal(said(&w),
                        "It waited for work, or for others: at 9 of 10 looks a connection to "
                        "10.0.0.2:80 had sent something and got no answer yet, for up "
                        "to 187ms; it ran for 1.0 % of its time.\n");
    u.rows[0].longest_ms = 0;
    assert_non_null(strstr(said(&w), "no answer yet, for less than 1"));
    u.rows[0].looks = 2;
    assert_non_null(strstr(said(&w), "Nothing holds it up"));
}

static uint64_t folded(uint64_t pid, void *ctx)
{
    return pid == 14 ? 101 : pid;
}

/* A wait for a child is told by what that one does, where it is in the report and busy. */
static void test_children(void **state)
{
    struct world w;

    begin(&w);
    w.report.count = 2;
    w.figures.folded = folded;
    add(&w, 0, part(PRCB_CAUSE_CHILD, NULL, PRCB_STACK_BLOCKED, "compile", 1000));
    w.parts[0][0].wait.object = COMPILER;
    add(&w, 1, part(PRCB_CAUSE_SLEEP, "sleep", PRCB_STACK_EITHER, "nap", 900));
    w.processes[1].run_ns = 10 * MS;
    assert_non_null(strstr(said(&w), "worker-1 (21) of orders (100) waits for a child process"));
    w.processes[1].run_ns = 900 * MS;
    w.processes[1].wall_ns += 900 * MS;
    assert_string_equal(
        said(&w), "They run rather than wait: 100 % of the time that they did not idle was spent "
                  "on a processor (900ms, 100 % of it by other (101)); prcb record -g says in "
                  "which functions.\n"
                  "100 % of the waiting: worker-1 (21) of other (101) sleeps in nap().\n");
    w.figures.folded = NULL;
    assert_non_null(strstr(said(&w), "waits for a child process"));
}

/* But where an interpreter's function waits for it, that is the answer: a server should not. */
static void test_children_of_interpreters(void **state)
{
    static const struct prcb_frame frames[] = {{0, "thumbnail", "/srv/s.js", 3},
                                               {0, "answer", "/srv/s.js", 4}};
    struct world w;

    begin(&w);
    w.report.count = 2;
    w.figures.folded = folded;
    add(&w, 0, part(PRCB_CAUSE_EPOLL, "child process (sync)", PRCB_STACK_BLOCKED, "x", 700));
    w.parts[0][0].wait.object = COMPILER;
    w.parts[0][0].stack.frames = frames;
    w.processes[0].wall_ns += 300 * MS;
    w.processes[0].run_ns = 300 * MS;
    w.processes[1].run_ns = w.processes[1].wall_ns = 700 * MS;
    assert_non_null(strstr(said(&w),
                           "70 % of the time that it did not idle orders (100) waits for a "
                           "child process to end: cc1 (14) (it sleeps in pipe_read) in "
                           "thumbnail() (s.js:3), called by answer() (s.js:4).\n"
                           "They run rather than wait: "));
    w.processes[0].wall_ns += 3000 * MS;
    w.processes[0].run_ns += 3000 * MS;
    assert_null(strstr(said(&w), "of the time that it did not idle orders"));
}

/* A call under a lock: what others wait for the lock is said to lead to it. */
static void test_waits_that_lead_to_one(void **state)
{
    struct why_path path = {.seen = true,
                            .state = WHY_WAITS,
                            .pid = 100,
                            .threads = 6,
                            .ns = 950 * MS,
                            .others_ns = 800 * MS};
    struct world w;

    begin(&w);
    add(&w, 0, part(PRCB_CAUSE_FSYNC, NULL, PRCB_STACK_BLOCKED, "save", 200));
    add(&w, 0, part(PRCB_CAUSE_FUTEX, "Python lock", PRCB_STACK_EITHER, "handle", 800));
    path.part = w.parts[0][0];
    w.processes[0].paths = &path;
    w.processes[0].path_count = 1;
    w.processes[0].path_ns = 1000 * MS;
    assert_non_null(strstr(said(&w), "100 % of the waiting: worker-1 (21) waits for data to reach "
                                     "storage in save(); 95 % of the waiting leads to that.\n"));
    path.others_ns = 100 * MS;
    assert_non_null(strstr(said(&w), " in save().\n"));
}

/* So is a wait for who has a pipe's other end, and of a child that waits for neither. */
static void test_pipes(void **state)
{
    struct world w;

    begin(&w);
    w.report.count = 2;
    w.figures.folded = folded;
    add(&w, 0, part(PRCB_CAUSE_PIPE, NULL, PRCB_STACK_BLOCKED, "pack", 1000));
    w.parts[0][0].wait.object = PIPE;
    add(&w, 1, part(PRCB_CAUSE_SLEEP, "sleep", PRCB_STACK_EITHER, "nap", 900));
    assert_non_null(strstr(said(&w), "worker-1 (21) of orders (100) waits for room in pipe:[7] "
                                     "(read by other (101); it runs) in pack()."));
    w.parts[1][0] = part(PRCB_CAUSE_FSYNC, NULL, PRCB_STACK_BLOCKED, "save", 900);
    w.causes[1][0].cause = PRCB_CAUSE_FSYNC;
    assert_string_equal(said(&w), "100 % of the waiting: worker-1 (21) of other (101) waits for "
                                  "data to reach storage in save().\n");
}

/* Workers of a server, each a process, that wait in one way are one sentence. */
static void test_workers(void **state)
{
    struct world w;

    begin(&w);
    w.report.count = 2;
    strcpy(w.processes[1].comm, "orders");
    for (int i = 0; i < 2; i++) {
        add(&w, i, part(PRCB_CAUSE_EPOLL, "PostgreSQL lock", PRCB_STACK_BLOCKED, "LockTuple", 500));
        w.parts[i][0].who = &workers[i];
    }
    assert_string_equal(said(&w), "100 % of the waiting: 2 threads (worker-*) of 2 processes wait "
                                  "for a lock of PostgreSQL (of a row, table or transaction) in "
                                  "LockTuple().\n");
    w.processes[1].cgroup = 7;
    assert_non_null(strstr(said(&w), "50 % of the waiting: worker-2 (22) of orders (101) waits"));
}

static void test_places(void **state)
{
    static const struct {
        const char *function, *file, *name;
    } cases[] = {
        {"record_order", "/srv/orders", "record_order()"},
        {"Cache::get(std::string const&, int)", "/srv/orders", "Cache::get()"},
        {"(anonymous namespace)::get(int)", "/srv/orders", "(anonymous namespace)::get()"},
        {"Call::operator()(int) const", "/srv/orders", "Call::operator()()"},
        {"main.(*Cache).Get", "/srv/orders", "main.(*Cache).Get()"},
        {NULL, "/srv/orders", "orders+0x2"},
        {NULL, NULL, "0x2"},
    };
    char name[128];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct prcb_frame frame = {2, cases[i].function, cases[i].file, 2};

        place_name(&frame, name, sizeof(name));
        assert_string_equal(name, cases[i].name);
    }
}

/* The program's own function, and not those of the libraries that wait for it. */
static void test_own_function(void **state)
{
    static const struct prcb_frame frames[] = {
        {0, "futex_wait", "[kernel]", 0},
        {1, "__lll_lock_wait", "/lib/x/libc.so.6", 1},
        {1, "take_gil", "/usr/bin/python3.11", 1},
        {1, "std::mutex::lock()", "/srv/orders", 1},
        {1, "SSL_read", "/usr/lib/x/libssl.so.3", 1},
        {1, "record_order", "/srv/orders", 1},
        {1, "work", "/srv/orders", 1},
        {1, "main", "/srv/orders", 1},
    };
    struct prcb_stack stack = {.frame_count = 8, .frames = frames};
    const struct prcb_frame *by;

    assert_ptr_equal(place_of(&stack, &by), &frames[5]);
    assert_ptr_equal(by, &frames[6]);
    stack.frame_count = 5;
    assert_ptr_equal(place_of(&stack, &by), &frames[4]);
    assert_null(by);
    stack.frame_count = 3;
    assert_null(place_of(&stack, &by));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_in_the_kernel),
        cmocka_unit_test(test_holders_in_turn),
        cmocka_unit_test(test_deadlock_comes_first),
        cmocka_unit_test(test_from_outside),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_quota_without_causes),
        cmocka_unit_test(test_other_ends),
        cmocka_unit_test(test_several_objects),
        cmocka_unit_test(test_own_futexes),
        cmocka_unit_test(test_ready_behind),
        cmocka_unit_test(test_idle_and_running),
        cmocka_unit_test(test_unanswered),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_children_of_interpreters),
        cmocka_unit_test(test_waits_that_lead_to_one),
        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_own_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
