/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What looks at accounts add up to, by made-up accounts and readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include <prcb/prcb.h>

#include "why.h"

#define OBJECT 7

/* A wait that is over as soon as its stack was read. */
struct wait {
    bool over;
    bool had_stack; /* when somebody asked what it is for */
};

static int read_stack(void *ctx, const struct prcb_account *a, struct prcb_stack *ret)
{
    struct wait *wait = ctx;

    wait->over = true;
    return 0;
}

static struct object_wait find_object(void *ctx, const struct prcb_account *a,
                                      const struct prcb_stack *stack)
{
    struct wait *wait = ctx;

    wait->had_stack = stack;
    return (struct object_wait){.object = wait->over && !stack ? 0 : OBJECT};
}

/* What the report says of a wait of this cause. */
static uint32_t object_of(uint32_t cause, struct wait *wait)
{
    const struct why_source source = {.read = read_stack, .object = find_object, .ctx = wait};
    struct prcb_account a = {
        .size = sizeof(a),
        .present = cause ? PRCB_HAS_OPEN | PRCB_HAS_WAITS : 0,
        .key = 1,
        .tid = 2,
        .pid = 2,
        .switches = 1,
        .open = {.cause = cause, .ns = 1000},
        .wait_ns = 1000,
    };
    const struct why_cause *found;
    struct why_report report;
    uint32_t ret = 0;
    struct why *w;

    a.waits[cause].count = 1; /* its time is the open one */
    assert_int_equal(why_open(&source, &w), 0);
    assert_int_equal(why_account(w, &a, 1000), 0);
    a.wait_ns += 1000;
    a.open.ns += 1000;
    assert_int_equal(why_account(w, &a, 2000),
                     0); /* only now is it known to go on without a cause */
    assert_int_equal(why_report_make(w, &report), 0);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.processes[0].cause_count, 1);
    found = &report.processes[0].causes[0];
    for (size_t i = 0; i < found->object_count; i++)
        ret = ret ? ret : found->objects[i].wait.object;
    why_report_deinit(&report);
    why_close(w);
    return ret;
}

/* A stack takes long to read: what the wait is for is asked first. */
static void test_object_before_stack(void **state)
{
    struct wait wait = {0};

    assert_int_equal(object_of(PRCB_CAUSE_FSYNC, &wait), OBJECT);
    assert_true(wait.over && !wait.had_stack);
}

static void test_object_of_a_futex_by_its_stack(void **state)
{
    struct wait wait = {0};

    assert_int_equal(object_of(PRCB_CAUSE_FUTEX, &wait), OBJECT);
    assert_true(wait.over && wait.had_stack);
    wait = (struct wait){0};
    assert_int_equal(object_of(PRCB_CAUSE_NONE, &wait), OBJECT); /* as on the perf tier */
    assert_true(wait.over && wait.had_stack);
}

/* ---- what waits lead to ---- */

#define LOOK_NS 1000000
#define LOOKS   4
enum { CLIENT = 10, SERVER = 11 };

static int no_stack(void *ctx, const struct prcb_account *a, struct prcb_stack *ret)
{
    ret->kind = PRCB_STACK_BLOCKED;
    ret->id = (uint32_t)a->tid;
    return 0;
}

static int edges_of(void *ctx, uint64_t key, struct prcb_account *account, prcb_edge_fn fn,
                    void *fn_ctx)
{
    const struct prcb_edge *edge = ctx;

    return key == CLIENT ? fn(edge, fn_ctx) : 0;
}

/* The client waits for a pipe until the last look but one; the server sleeps all the time. */
static void look(struct why *w, pid_t tid, int number)
{
    uint32_t cause = tid == CLIENT ? PRCB_CAUSE_PIPE : PRCB_CAUSE_SLEEP;
    bool over = tid == CLIENT && number == LOOKS;
    struct prcb_account a = {
        .size = sizeof(a),
        .present = PRCB_HAS_OPEN | PRCB_HAS_WAITS,
        .flags = over ? PRCB_ACCOUNT_RUNNING : 0,
        .key = (uint64_t)tid,
        .tid = tid,
        .pid = CLIENT,
        .switches = 1 + over,
        .open = {.cause = over ? PRCB_CAUSE_NONE : cause, .ns = over ? 0 : number * LOOK_NS},
        .wait_ns = over ? LOOKS * LOOK_NS : 0,
    };

    strcpy(a.comm, tid == CLIENT ? "client" : "server");
    a.waits[cause].count = 1;
    a.waits[cause].ns = a.wait_ns;
    assert_int_equal(why_account(w, &a, 7 + (uint64_t)number * LOOK_NS), 0);
}

static void take_looks(const struct prcb_edge *edge, struct why_report *ret, struct why **ret_why)
{
    const struct why_source source = {.read = no_stack, .edges = edges_of, .ctx = (void *)edge};
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    assert_int_equal(why_paths_open(w, WHY_PATHS_PIECES, false), 0);
    for (int i = 1; i <= LOOKS; i++) {
        look(w, CLIENT, i);
        look(w, SERVER, i);
    }
    assert_int_equal(why_report_make(w, ret), 0);
    *ret_why = w;
}

static const struct why_path *path_by(const struct why_report *report, pid_t tid)
{
    for (size_t i = 0; i < report->processes[0].path_count; i++) {
        if (report->processes[0].paths[i].tid == tid)
            return &report->processes[0].paths[i];
    }
    return NULL;
}

/* All of the client's wait is the server's sleep, which the server's own is as well. */
static void test_a_wait_leads_to_who_ended_it(void **state)
{
    const struct prcb_edge edge = {.kind = PRCB_EDGE_WOKEN_BY,
                                   .cause = PRCB_CAUSE_PIPE,
                                   .by = PRCB_BY_THREAD,
                                   .tid = SERVER,
                                   .pid = CLIENT,
                                   .count = 1,
                                   .ns = LOOKS * LOOK_NS};
    struct why_report report;
    const struct why_path *path;
    struct why *w;

    take_looks(&edge, &report, &w);
    assert_int_equal(report.processes[0].path_count, 1);
    path = path_by(&report, SERVER);
    assert_non_null(path);
    assert_int_equal(path->state, WHY_WAITS);
    assert_int_equal(path->part.cause, PRCB_CAUSE_SLEEP);
    assert_int_equal(path->others_ns, LOOKS * LOOK_NS);
    assert_int_equal(path->ns, 2 * LOOKS * LOOK_NS);
    assert_int_equal(report.processes[0].path_ns, path->ns);
    why_report_deinit(&report);
    why_close(w);
}

/* An edge that is shorter than the wait was did not end it: the client's wait leads to nobody. */
static void test_an_edge_that_is_too_short_proves_nothing(void **state)
{
    const struct prcb_edge edge = {.kind = PRCB_EDGE_WOKEN_BY,
                                   .cause = PRCB_CAUSE_PIPE,
                                   .by = PRCB_BY_THREAD,
                                   .tid = SERVER,
                                   .pid = CLIENT,
                                   .count = 1,
                                   .ns = LOOK_NS};
    struct why_report report;
    struct why *w;

    take_looks(&edge, &report, &w);
    assert_non_null(path_by(&report, CLIENT));
    assert_int_equal(path_by(&report, CLIENT)->ns, LOOKS * LOOK_NS);
    assert_int_equal(path_by(&report, SERVER)->others_ns, 0);
    why_report_deinit(&report);
    why_close(w);
}

static bool is_server(void *ctx, const struct prcb_account *a)
{
    return a->tid == SERVER;
}

/* Of many waits the last ones are kept; who is aside has no path, nor any part of others' causes.
 */
static void test_paths_of_recent_waits(void **state)
{
    struct prcb_edge edge = {.kind = PRCB_EDGE_WOKEN_BY,
                             .cause = PRCB_CAUSE_PIPE,
                             .by = PRCB_BY_THREAD,
                             .tid = SERVER,
                             .pid = CLIENT};
    const struct why_source source = {
        .read = no_stack, .edges = edges_of, .aside = is_server, .ctx = &edge};
    struct why_report report;
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    assert_int_equal(why_paths_open(w, 9, true), 0);
    for (uint64_t i = 0; i < 100; i++) {
        bool waits = i % 2;
        struct prcb_account a = {.size = sizeof(a),
                                 .present = PRCB_HAS_OPEN | PRCB_HAS_WAITS,
                                 .flags = waits ? 0 : PRCB_ACCOUNT_RUNNING,
                                 .key = CLIENT,
                                 .tid = CLIENT,
                                 .pid = CLIENT,
                                 .comm = "client",
                                 .switches = i,
                                 .wait_ns = i / 2 * LOOK_NS};

        a.open.cause = waits ? PRCB_CAUSE_PIPE : PRCB_CAUSE_NONE;
        a.open.ns = waits ? LOOK_NS / 2 : 0;
        a.waits[PRCB_CAUSE_PIPE].count = edge.count = i / 2;
        a.waits[PRCB_CAUSE_PIPE].ns = edge.ns = i / 2 * LOOK_NS;
        assert_int_equal(why_account(w, &a, 7 + i * LOOK_NS), 0);
        a = (struct prcb_account){.size = sizeof(a),
                                  .present = PRCB_HAS_OPEN | PRCB_HAS_WAITS,
                                  .key = SERVER,
                                  .tid = SERVER,
                                  .pid = CLIENT,
                                  .comm = "server",
                                  .switches = 1,
                                  .open = {.cause = PRCB_CAUSE_SLEEP, .ns = (i + 1) * LOOK_NS}};
        assert_int_equal(why_account(w, &a, 7 + i * LOOK_NS), 0);
        if (i % 10 == 9) { /* as often as one likes */
            assert_int_equal(why_report_make(w, &report), 0);
            why_report_deinit(&report);
        }
    }
    assert_int_equal(why_report_make(w, &report), 0);
    assert_int_equal(report.count, 2);
    for (size_t i = 0; i < report.count; i++) {
        const struct why_process *process = &report.processes[i];

        assert_int_equal(process->threads, 1);
        assert_int_equal(process->path_count != 0, !process->aside);
        if (process->aside)
            continue;
        assert_int_equal(process->cause_count, 1);
        assert_int_equal(process->paths[0].tid, SERVER);
        assert_int_equal(process->paths[0].part.cause, PRCB_CAUSE_SLEEP);
        assert_true(process->paths[0].others_ns > process->path_ns / 2);
        assert_true(process->path_ns <= process->wait_ns);
    }
    why_report_deinit(&report);
    why_close(w);
}

/* ---- processes that have ended ---- */

static void end_one(struct why *w, pid_t pid, uint32_t flags, uint64_t wait_ns)
{
    struct prcb_account a = {
        .size = sizeof(a),
        .present = PRCB_HAS_OPEN | PRCB_HAS_WAITS,
        .flags = flags,
        .key = (uint64_t)pid,
        .tid = pid,
        .pid = pid,
        .comm = "cc",
        .switches = 1,
        .wall_ns = wait_ns + 5,
        .run_ns = 5,
        .wait_ns = wait_ns,
    };

    a.waits[PRCB_CAUSE_DISK].count = 1;
    a.waits[PRCB_CAUSE_DISK].ns = wait_ns;
    assert_int_equal(why_account(w, &a, 1000), 0);
}

/* ---- numbers that come again ---- */

struct met {
    uint64_t key;
    pid_t pid, tid;
    uint64_t wall_ns, now;
    uint32_t flags;
};

static void meet(struct why *w, struct met met)
{
    struct prcb_account a = {
        .size = sizeof(a),
        .present = PRCB_HAS_OPEN | PRCB_HAS_WAITS,
        .flags = met.flags,
        .key = met.key,
        .tid = met.tid,
        .pid = met.pid,
        .switches = 1,
        .wall_ns = met.wall_ns,
        .run_ns = met.wall_ns,
    };

    snprintf(a.comm, sizeof(a.comm), "of %d", (int)met.key);
    assert_int_equal(why_account(w, &a, met.now), 0);
}

/* The report has so many processes of this number: their time, one after the other. */
static void check_processes(struct why *w, pid_t pid, size_t count, const uint64_t *wall_ns)
{
    struct why_report report;
    size_t found = 0;
    uint64_t sum = 0, wanted = 0;

    assert_int_equal(why_report_make(w, &report), 0);
    for (size_t i = 0; i < report.count; i++) {
        bool known = false;

        for (size_t j = 0; j < count; j++)
            known |= report.processes[i].wall_ns == wall_ns[j];
        found += report.processes[i].pid == pid && known;
        sum += report.processes[i].wall_ns;
    }
    for (size_t j = 0; j < count; j++)
        wanted += wall_ns[j];
    assert_int_equal(found, count);
    assert_int_equal(sum, wanted);
    why_report_deinit(&report);
}

/* Who ended and got a victim's number has none of its time, and gives it none. */
static void test_a_process_number_that_comes_again(void **state)
{
    const struct why_source source = {.read = no_stack};
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    meet(w, (struct met){1, 20, 20, 500, 1000});
    meet(w, (struct met){2, 20, 21, 400, 1000});
    /* The new one's threads are met before the account of who had the number, which ended. */
    meet(w, (struct met){3, 20, 20, 300, 2000});
    meet(w, (struct met){4, 20, 22, 200, 2000});
    meet(w, (struct met){1, 20, 20, 700, 2000, PRCB_ACCOUNT_EXITED});
    meet(w, (struct met){2, 20, 21, 600, 2000, PRCB_ACCOUNT_EXITED});
    check_processes(w, 20, 2, (uint64_t[]){1300, 500});
    assert_int_equal(why_released(w, 1), 0);
    assert_int_equal(why_released(w, 2), 0);
    meet(w, (struct met){3, 20, 20, 400, 3000, PRCB_ACCOUNT_EXITED});
    meet(w, (struct met){4, 20, 22, 300, 3000, PRCB_ACCOUNT_EXITED});
    /* Here, another one's second thread is the first that is met. */
    meet(w, (struct met){6, 20, 23, 50, 4000});
    meet(w, (struct met){5, 20, 20, 60, 4000});
    check_processes(w, 20, 3, (uint64_t[]){1300, 700, 110});
    why_close(w);
}

static pid_t holder_of(void *ctx, uint32_t number)
{
    return (pid_t)number;
}

static bool is_still(void *ctx, const struct prcb_account *a)
{
    return true;
}

static struct object_wait held_by_21(void *ctx, const struct prcb_account *a,
                                     const struct prcb_stack *stack)
{
    return (struct object_wait){.object = OBJECT, .holder = 21};
}

/* A thread that executes a program becomes its process's first: the same process, and nobody has
 * its former number. */
static void test_a_thread_takes_the_number_of_its_process(void **state)
{
    const struct why_source source = {
        .read = no_stack, .object = held_by_21, .holder = holder_of, .still = is_still};
    struct prcb_account a = {.size = sizeof(a),
                             .present = PRCB_HAS_OPEN | PRCB_HAS_WAITS,
                             .key = 4,
                             .pid = 20,
                             .tid = 24,
                             .switches = 1,
                             .wall_ns = 100,
                             .wait_ns = 100,
                             .open = {.cause = PRCB_CAUSE_FUTEX, .ns = 100}};
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    meet(w, (struct met){1, 20, 20, 500, 1000});
    meet(w, (struct met){2, 20, 21, 400, 1000});
    meet(w, (struct met){1, 20, 20, 600, 2000, PRCB_ACCOUNT_EXITED});
    meet(w, (struct met){2, 20, 20, 1400, 2000});
    check_processes(w, 20, 1, (uint64_t[]){2000});
    /* One that was not met before it did that, but began beside the first one. */
    meet(w, (struct met){3, 20, 20, 1500, 3000});
    check_processes(w, 20, 1, (uint64_t[]){3500});
    meet(w, (struct met){2, 20, 20, 2000, 4000, PRCB_ACCOUNT_EXITED});
    assert_int_equal(why_released(w, 2), 0);
    a.waits[PRCB_CAUSE_FUTEX].count = 1;
    assert_int_equal(why_account(w, &a, 5000), 0); /* waits for a lock whose word has that number */
    assert_int_equal(why_confirm(w), 0);
    check_processes(w, 20, 1, (uint64_t[]){4200});
    why_close(w);
}

/* Four that ended are one, with the sums of all; one that lives, and has the name, is another. */
static void test_ended_processes_of_one_name_are_one(void **state)
{
    const struct why_source source = {.read = no_stack};
    const struct why_process *ended, *alive;
    struct why_report report;
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    end_one(w, 20, PRCB_ACCOUNT_EXITED, 100);
    end_one(w, 21, PRCB_ACCOUNT_RUNNING, 10);
    end_one(w, 22, PRCB_ACCOUNT_EXITED, 300);
    end_one(w, 23, PRCB_ACCOUNT_EXITED, 50);
    end_one(w, 24, PRCB_ACCOUNT_EXITED, 50);
    assert_int_equal(why_released(w, 22), 0);
    assert_int_equal(why_fold_ended(w, false), 0);
    assert_int_equal(why_report_make(w, &report), 0);
    assert_int_equal(report.count, 2);
    ended = &report.processes[0];
    alive = &report.processes[1];
    assert_int_equal(ended->ended, 4);
    assert_int_equal(ended->threads, 4);
    assert_int_equal(ended->wall_ns, 520);
    assert_int_equal(ended->run_ns, 20);
    assert_int_equal(ended->cause_count, 1);
    assert_int_equal(ended->causes[0].ns, 500);
    assert_int_equal(ended->causes[0].count, 4);
    assert_int_equal(alive->ended, 0);
    assert_int_equal(alive->pid, 21);
    assert_int_equal(why_folded(20, w), why_folded(22, w));
    assert_int_equal(why_folded(21, w), 21);
    why_report_deinit(&report);
    why_close(w);
}

/* Of two chosen waits that were over before a look met them, one stands for both. */
/* Who starts processes without end, each of another name, makes no report of as many rows. */
static void test_processes_without_end(void **state)
{
    const struct why_source source = {.read = no_stack};
    struct why_report report;
    const pid_t first = 100, living = 50;
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    end_one(w, living, PRCB_ACCOUNT_RUNNING, 10);
    for (pid_t pid = first; pid < first + WHY_ROWS_MOST; pid++) {
        meet(w, (struct met){(uint64_t)pid, pid, pid, 5, 1000, PRCB_ACCOUNT_EXITED});
        assert_int_equal(why_released(w, (uint64_t)pid), 0);
        if (pid == first + 100) {
            assert_int_equal(why_fold_ended(w, true), 0); /* there is no need yet */
            assert_int_equal(why_folded((uint64_t)first + 1, w), first + 1);
        }
    }
    assert_int_equal(why_fold_ended(w, true), 0);
    assert_int_equal(why_report_make(w, &report), 0);
    assert_int_equal(report.count, 2);
    assert_int_equal(report.processes[0].ended + report.processes[1].ended, WHY_ROWS_MOST);
    assert_int_equal(report.processes[0].wall_ns + report.processes[1].wall_ns,
                     5 * WHY_ROWS_MOST + 15);
    assert_int_equal(why_folded((uint64_t)first, w), why_folded((uint64_t)first + 7, w));
    assert_int_equal(why_folded((uint64_t)living, w), living);
    why_report_deinit(&report);
    why_close(w);
}

static void test_a_chosen_wait_that_stands_for_others(void **state)
{
    const struct why_source source = {.read = no_stack};
    const struct prcb_account a = {.size = sizeof(a), .key = 3, .tid = 3, .pid = 3, .switches = 9};
    struct prcb_chosen chosen = {.size = sizeof(chosen),
                                 .key = 3,
                                 .tid = 3,
                                 .pid = 3,
                                 .cause = PRCB_CAUSE_PIPE,
                                 .switches = 1,
                                 .ns = 50};
    struct prcb_account after = a;
    struct why_report report;
    struct why *w;

    assert_int_equal(why_open(&source, &w), 0);
    after.present = PRCB_HAS_OPEN | PRCB_HAS_WAITS;
    after.flags = PRCB_ACCOUNT_RUNNING;
    assert_int_equal(why_account(w, &after, 1000), 0);
    assert_int_equal(why_chosen(w, &chosen, NULL, 0, (struct object_wait){0}), 0); /* left out */
    chosen.switches = 3;
    chosen.one_in = 2;
    assert_int_equal(why_chosen(w, &chosen, NULL, -ENOSPC, (struct object_wait){0}), 0);
    after.switches = 11;
    after.wait_ns = after.waits[PRCB_CAUSE_PIPE].ns = 100;
    after.waits[PRCB_CAUSE_PIPE].count = 2;
    assert_int_equal(why_account(w, &after, 2000), 0);
    assert_int_equal(why_report_make(w, &report), 0);
    assert_int_equal(report.processes[0].causes[0].part_count, 1);
    assert_int_equal(report.processes[0].causes[0].parts[0].kind, WHY_NO_ROOM);
    assert_int_equal(report.processes[0].causes[0].parts[0].ns, 100);
    why_report_deinit(&report);
    why_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_before_stack),
        cmocka_unit_test(test_object_of_a_futex_by_its_stack),
        cmocka_unit_test(test_a_wait_leads_to_who_ended_it),
        cmocka_unit_test(test_an_edge_that_is_too_short_proves_nothing),
        cmocka_unit_test(test_paths_of_recent_waits),
        cmocka_unit_test(test_a_process_number_that_comes_again),
        cmocka_unit_test(test_a_thread_takes_the_number_of_its_process),
        cmocka_unit_test(test_ended_processes_of_one_name_are_one),
        cmocka_unit_test(test_processes_without_end),
        cmocka_unit_test(test_a_chosen_wait_that_stands_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
