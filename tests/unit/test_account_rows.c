/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows of `prcb stat` and the words on them, from made-up accounts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stat_report.h"
#include "account_rows.h"
#include "whom.h"

#define ALL_MEMBERS 0x3ffull
#define MS          1000000ull

static struct prcb_account account(uint64_t key, pid_t tid, pid_t pid, const char *comm)
{
    struct prcb_account a = {
        .size = sizeof(a), .present = ALL_MEMBERS, .key = key, .tid = tid, .pid = pid};

    snprintf(a.comm, sizeof(a.comm), "%s", comm);
    return a;
}

/* Gives the account times that keep the sum law. */
static void spend(struct prcb_account *a, uint64_t run, uint64_t ready, uint32_t cause,
                  uint64_t waited, uint32_t open, uint64_t open_ns)
{
    a->run_ns += run;
    a->ready_ns += ready;
    a->waits[cause].count++;
    a->waits[cause].ns += waited;
    a->wait_ns += waited;
    a->switches++;
    a->open = (struct prcb_open){.cause = open, .ns = open_ns};
    a->wall_ns = a->run_ns + a->ready_ns + a->wait_ns + open_ns;
    a->flags = open_ns ? 0 : PRCB_ACCOUNT_RUNNING;
}

static void update(struct account_rows *rows, const struct prcb_account *a)
{
    assert_int_equal(account_rows_update(rows, a), 0);
}

static struct account_view view(const struct account_rows *rows, unsigned kind,
                                enum account_key key, uint64_t top)
{
    struct account_order order = {.key = key, .top = top};
    struct account_view ret;

    assert_int_equal(account_view_make(rows, kind, &order, &ret), 0);
    return ret;
}

static void a_row_per_key(void **state)
{
    struct account_rows rows = {0};
    struct prcb_account a;
    struct account_view v;

    /* enough to make the table grow */
    for (uint64_t key = 1; key <= 5000; key++) {
        a = account(key << 32 | 7, (pid_t)key, 1, "t");
        spend(&a, key, 0, PRCB_CAUSE_SLEEP, 1, 0, 0);
        update(&rows, &a);
        update(&rows, &a);
    }
    assert_int_equal(rows.count, 5000);
    v = view(&rows, 0, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.count, 5000);
    assert_int_equal(v.rows[0]->tid, 5000);
    assert_int_equal(v.rows[4999]->tid, 1);
    assert_int_equal(v.total.threads, 5000);
    assert_int_equal(v.total.now.run_ns, 5000ull * 5001 / 2);
    assert_int_equal(account_sums_cell(&v.total.now, PRCB_CAUSE_SLEEP)->ns, 5000);
    assert_int_equal(account_sums_cell(&v.total.now, PRCB_CAUSE_SLEEP)->count, 5000);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void rows_cut_off_are_summed(void **state)
{
    struct account_rows rows = {0};
    struct account_view v;

    for (pid_t tid = 1; tid <= 10; tid++) {
        struct prcb_account a = account((uint64_t)tid, tid, 1, "t");

        spend(&a, (uint64_t)tid, 0, PRCB_CAUSE_FUTEX, 100, 0, 0);
        update(&rows, &a);
    }
    v = view(&rows, 0, ACCOUNT_BY_TID, 4);
    assert_int_equal(v.count, 4);
    assert_int_equal(v.rows[3]->tid, 4);
    assert_int_equal(v.other_rows, 6);
    assert_int_equal(v.others.threads, 6);
    assert_int_equal(v.others.now.run_ns, 5 + 6 + 7 + 8 + 9 + 10);
    assert_int_equal(v.total.now.wait_ns, 1000);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void a_sum_lacks_what_one_lacks(void **state)
{
    struct account_rows rows = {0};
    struct prcb_account a = account(1, 1, 1, "a"), b = account(2, 2, 1, "b");
    struct account_view v;

    b.present &= ~(uint64_t)PRCB_HAS_READY;
    update(&rows, &a);
    update(&rows, &b);
    v = view(&rows, 0, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.total.now.present, ALL_MEMBERS & ~(uint64_t)PRCB_HAS_READY);
    assert_int_equal(v.rows[0]->now.present, ALL_MEMBERS);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void ended_threads_keep_counting(void **state)
{
    struct account_rows rows = {.keep_released = 2};
    struct prcb_account a;
    struct account_view v;

    for (uint64_t key = 1; key <= 6; key++) {
        a = account(key, (pid_t)key, 1, key == 5 ? "odd" : "cc1");
        spend(&a, 10, 0, PRCB_CAUSE_DISK, 5, 0, 0);
        a.flags = PRCB_ACCOUNT_EXITED;
        update(&rows, &a);
    }
    for (size_t i = rows.count; i-- > 0;)
        assert_int_equal(account_rows_released(&rows, rows.rows[i]), 0);
    /* two of their own, one of "cc1", one of "odd" where that was not kept */
    v = view(&rows, 0, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.total.threads, 6);
    assert_int_equal(v.total.exited, 6);
    assert_int_equal(v.total.now.run_ns, 60);
    assert_int_equal(v.total.now.wait_ns, 30);
    assert_int_equal(v.rows[0]->key, 0);
    assert_int_equal(v.rows[0]->threads, 4);
    assert_int_equal(v.rows[0]->tid, 0);
    assert_string_equal(v.rows[0]->comm, "cc1");
    assert_int_equal(v.count, 3);
    assert_true(account_rows_all_exited(&rows));
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void names_of_sums_are_bounded(void **state)
{
    struct account_rows rows = {.keep_released = 1};
    struct account_view v;

    for (uint64_t key = 1; key <= ACCOUNT_KEEP_NAMES + 100; key++) {
        char comm[16];
        struct prcb_account a;

        snprintf(comm, sizeof(comm), "n%d", (int)key);
        a = account(key, (pid_t)key, 1, comm);
        spend(&a, 1, 0, PRCB_CAUSE_DISK, 0, 0, 0);
        a.flags = PRCB_ACCOUNT_EXITED;
        update(&rows, &a);
        for (size_t i = rows.count; i-- > 0;) {
            if (rows.rows[i]->key == key) {
                assert_int_equal(account_rows_released(&rows, rows.rows[i]), 0);
                break;
            }
        }
    }
    assert_int_equal(rows.count, 1 + ACCOUNT_KEEP_NAMES + 1);
    v = view(&rows, 0, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.total.threads, ACCOUNT_KEEP_NAMES + 100);
    assert_int_equal(v.rows[0]->threads, 99);
    assert_string_equal(v.rows[0]->comm, "");
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void intervals_are_changes(void **state)
{
    struct account_rows rows = {0};
    struct prcb_account a = account(1, 1, 1, "a"), idle = account(2, 2, 1, "b");
    const struct wait_cell *cell;
    struct account_view v;

    spend(&a, 10, 1, PRCB_CAUSE_SLEEP, 100, PRCB_CAUSE_FUTEX, 50);
    spend(&idle, 1, 1, PRCB_CAUSE_SLEEP, 1, 0, 0);
    idle.flags = PRCB_ACCOUNT_EXITED;
    update(&rows, &a);
    update(&rows, &idle);
    v = view(&rows, ACCOUNT_VIEW_INTERVAL, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.count, 2);
    assert_int_equal(v.rows[0]->now.wall_ns, 161);
    account_view_deinit(&v);
    assert_int_equal(account_rows_mark(&rows), 0);

    /* the futex wait closes after 80, of which 30 fall into this interval */
    spend(&a, 5, 2, PRCB_CAUSE_FUTEX, 80, PRCB_CAUSE_SLEEP, 7);
    update(&rows, &a);
    v = view(&rows, ACCOUNT_VIEW_INTERVAL, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.count, 1);
    assert_int_equal(v.rows[0]->tid, 1);
    assert_int_equal(v.rows[0]->now.run_ns, 5);
    assert_int_equal(v.rows[0]->now.wall_ns, 5 + 2 + 30 + 7);
    cell = account_sums_cell(&v.rows[0]->now, PRCB_CAUSE_FUTEX);
    assert_int_equal(cell->ns, 80);
    assert_int_equal(cell->count, 1);
    assert_int_equal(cell->spent_ns, 30);
    cell = account_sums_cell(&v.rows[0]->now, PRCB_CAUSE_SLEEP);
    assert_int_equal(cell->ns, 0);
    assert_int_equal(cell->spent_ns, 7);
    assert_int_equal(cell->open_ns, 7);
    assert_int_equal(account_sums_waited(&v.rows[0]->now), 37);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

/* Preempted from before the mark until into the interval after it. */
static void an_open_ready_stretch_is_ready_time(void **state)
{
    struct account_rows rows = {0};
    struct prcb_account a = account(1, 1, 1, "hog");
    struct account_view v;

    spend(&a, 10, 1, PRCB_CAUSE_SLEEP, 100, PRCB_CAUSE_PREEMPTED, 50);
    update(&rows, &a);
    v = view(&rows, ACCOUNT_VIEW_INTERVAL, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.rows[0]->now.ready_ns, 51);
    assert_int_equal(v.rows[0]->now.open_ns, 0);
    assert_int_equal(account_sums_waited(&v.rows[0]->now), 100);
    account_view_deinit(&v);
    assert_int_equal(account_rows_mark(&rows), 0);

    a.open.ns = 70;
    a.wall_ns += 20;
    update(&rows, &a);
    v = view(&rows, ACCOUNT_VIEW_INTERVAL, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.rows[0]->now.wall_ns, 20);
    assert_int_equal(v.rows[0]->now.ready_ns, 20);
    assert_null(account_sums_cell(&v.rows[0]->now, PRCB_CAUSE_PREEMPTED));
    account_view_deinit(&v);
    assert_int_equal(account_rows_mark(&rows), 0);

    /* it closes after 80: 10 of it, 3 of running and 40 of a wait fall into this interval */
    spend(&a, 3, 80, PRCB_CAUSE_FUTEX, 40, 0, 0);
    update(&rows, &a);
    v = view(&rows, ACCOUNT_VIEW_INTERVAL, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.rows[0]->now.ready_ns, 10);
    assert_int_equal(v.rows[0]->now.wall_ns, 53);
    assert_int_equal(account_sums_waited(&v.rows[0]->now), 40);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void processes_are_sums_named_by_their_first_thread(void **state)
{
    struct account_rows rows = {0};
    struct prcb_account a[] = {account(1, 11, 10, "worker"), account(2, 10, 10, "main"),
                               account(3, 20, 20, "other"), account(4, 12, 10, "worker")};
    struct account_view v;

    for (size_t i = 0; i < 4; i++) {
        spend(&a[i], 10 * (i + 1), 0, PRCB_CAUSE_PIPE, 1, 0, 0);
        update(&rows, &a[i]);
    }
    v = view(&rows, ACCOUNT_VIEW_PROCESSES, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.count, 2);
    assert_int_equal(v.rows[0]->pid, 10);
    assert_int_equal(v.rows[0]->tid, 0);
    assert_int_equal(v.rows[0]->threads, 3);
    assert_string_equal(v.rows[0]->comm, "main");
    assert_int_equal(v.rows[0]->now.run_ns, 10 + 20 + 40);
    assert_int_equal(v.total.threads, 4);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void orders_have_names(void **state)
{
    struct account_order order = {0};

    assert_int_equal(account_order_parse("switches", &order), 0);
    assert_int_equal(order.key, ACCOUNT_BY_SWITCHES);
    assert_int_equal(account_order_parse("page-fault", &order), 0);
    assert_int_equal(order.key, ACCOUNT_BY_CAUSE);
    assert_int_equal(order.cause, PRCB_CAUSE_PAGE_FAULT);
    assert_true(account_order_parse("", &order) < 0);
    assert_true(account_order_parse("beauty", &order) < 0);
    assert_int_equal(order.cause, PRCB_CAUSE_PAGE_FAULT);
}

/* ---- words --------------------------------------------------------------- */

static void expect_words(const struct prcb_account *accounts, size_t count, const char *expected)
{
    struct account_rows rows = {0};
    struct account_view v;
    struct stat_report report = {.view = &v};
    bool all[PRCB_CAUSE_MAX];
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    memset(all, true, sizeof(all));
    for (size_t i = 0; i < count; i++)
        update(&rows, &accounts[i]);
    v = view(&rows, 0, ACCOUNT_BY_RUN, 1);
    stat_words_write(out, &report, all);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void words_name_the_biggest_cost(void **state)
{
    struct prcb_account a[] = {account(1, 1, 1, "worker"), account(2, 2, 1, "worker"),
                               account(3, 3, 1, "main")};

    spend(&a[0], 55 * MS, 0, PRCB_CAUSE_SLEEP, 40 * MS, 0, 0);
    spend(&a[1], 55 * MS, 0, PRCB_CAUSE_SLEEP, 40 * MS, 0, 0);
    spend(&a[2], 6 * MS, 0, PRCB_CAUSE_SLEEP, 3 * MS, PRCB_CAUSE_SLEEP, MS);
    expect_words(a, 3,
                 "58 % of thread time (116ms) was spent running on a processor, mostly by worker "
                 "(2 threads).\n"
                 "42 % of thread time (84.0ms) was spent asleep (nanosleep), mostly by worker "
                 "(2 threads); 1.00ms of it in waits that had not ended.\n");
}

static void words_count_open_waits(void **state)
{
    struct prcb_account a = account(1, 1, 1, "server");

    spend(&a, 0, 0, PRCB_CAUSE_EPOLL, 0, PRCB_CAUSE_EPOLL, 500 * MS);
    expect_words(&a, 1,
                 "100 % of thread time (500ms) was spent waiting in epoll_wait; none of these "
                 "waits had ended.\n");
}

static void words_say_why_threads_were_ready(void **state)
{
    struct prcb_account a[] = {account(1, 1, 1, "hog"), account(2, 2, 1, "pig")};

    spend(&a[0], 20 * MS, 40 * MS, PRCB_CAUSE_PREEMPTED, 0, 0, 0);
    spend(&a[1], 20 * MS, 20 * MS, PRCB_CAUSE_QUANTUM, 0, PRCB_CAUSE_QUANTUM, 10 * MS);
    spend(&a[1], 0, 0, PRCB_CAUSE_QUANTUM, 0, PRCB_CAUSE_QUANTUM, 10 * MS);
    expect_words(a, 2,
                 "64 % of thread time (70.0ms) was spent ready to run, waiting for a processor "
                 "(out of time slice 2 times, preempted 1 time), mostly by hog (1 thread).\n"
                 "36 % of thread time (40.0ms) was spent running on a processor, mostly by hog "
                 "(1 thread).\n");
}

static void words_of_the_system_leave_kernel_threads_out(void **state)
{
    struct prcb_account a[] = {account(1, 2, 2, "kthreadd"), account(2, 100, 100, "app")};

    spend(&a[0], 0, 0, PRCB_CAUSE_KERNEL, 0, PRCB_CAUSE_KERNEL, 1000 * MS);
    a[0].flags |= PRCB_ACCOUNT_KTHREAD;
    spend(&a[1], 2 * MS, 0, PRCB_CAUSE_DISK, 98 * MS, 0, 0);
    expect_words(a, 2,
                 "98 % of thread time (98.0ms) was spent waiting for storage (block I/O).\n"
                 "(Thread time here is without the 1 kernel thread.)\n");
    expect_words(a, 1,
                 "100 % of thread time (1.00s) was spent idle in the kernel (kernel thread); "
                 "none of these waits had ended.\n");
}

static void words_without_causes(void **state)
{
    struct prcb_account a = account(1, 1, 1, "x");

    spend(&a, 10 * MS, 0, PRCB_CAUSE_DISK, 90 * MS, 0, 0);
    a.present = PRCB_HAS_WALL | PRCB_HAS_RUN | PRCB_HAS_WAIT;
    memset(a.waits, 0, sizeof(a.waits));
    expect_words(&a, 1,
                 "90 % of thread time (90.0ms) was spent waiting (for what is not known on this "
                 "tier).\n"
                 "10 % of thread time (10.0ms) was spent running on a processor.\n");
}

/* What a thread did before it was moved stays with the cgroup that it was in. */
static void cgroups_keep_what_was_done_in_them(void **state)
{
    struct account_rows rows = {.by_cgroup = true};
    struct prcb_account a = account(1, 1, 1, "mover"), b = account(2, 2, 2, "stays");
    struct account_view v;

    a.cgroup = 10;
    b.cgroup = 20;
    spend(&a, 100, 10, PRCB_CAUSE_DISK, 5, 0, 0);
    spend(&b, 7, 0, PRCB_CAUSE_DISK, 1, 0, 0);
    update(&rows, &a);
    update(&rows, &b);
    /* 50 more since, of which nobody can say where; then 30 in the new one, asleep now. */
    spend(&a, 50, 0, PRCB_CAUSE_DISK, 5, PRCB_CAUSE_FUTEX, 40);
    a.cgroup = 20;
    update(&rows, &a);
    assert_int_equal(account_rows_mark(&rows), 0);
    spend(&a, 30, 0, PRCB_CAUSE_FUTEX, 60, 0, 0);
    update(&rows, &a);
    v = view(&rows, ACCOUNT_VIEW_CGROUPS, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.count, 2);
    assert_int_equal(v.rows[0]->cgroup, 10);
    assert_int_equal(v.rows[0]->threads, 0);
    assert_int_equal(v.rows[0]->now.run_ns, 150);
    assert_int_equal(v.rows[0]->now.wall_ns, 170);
    assert_int_equal(v.rows[1]->threads, 2);
    assert_int_equal(v.rows[1]->now.run_ns, 37);
    assert_int_equal(account_sums_cell(&v.rows[1]->now, PRCB_CAUSE_FUTEX)->ns, 60);
    assert_int_equal(v.rows[1]->now.wall_ns, 30 + 60 + 8);
    account_view_deinit(&v);
    v = view(&rows, ACCOUNT_VIEW_CGROUPS | ACCOUNT_VIEW_INTERVAL, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.total.now.run_ns, 30);
    account_view_deinit(&v);
    /* And back again. */
    a.cgroup = 10;
    update(&rows, &a);
    spend(&a, 1, 0, PRCB_CAUSE_DISK, 0, 0, 0);
    update(&rows, &a);
    v = view(&rows, ACCOUNT_VIEW_CGROUPS, ACCOUNT_BY_RUN, 0);
    assert_int_equal(v.rows[0]->now.run_ns, 151);
    assert_int_equal(v.total.threads, 2);
    assert_int_equal(v.total.now.run_ns, 188);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void names_are_families(void **state)
{
    static const struct {
        const char *comm;
        bool kernel;
        const char *family;
    } cases[] = {
        {"kworker/0:1H", true, "kworker"},
        {"kworker/u8:2-events", true, "kworker"},
        {"ksoftirqd/12", true, "ksoftirqd"},
        {"jbd2/vda1-8", true, "jbd2/vda1-8"},
        {"pool/3", false, "pool/3"},
        {"cpuhp/", true, "cpuhp/"},
        {"/0", true, "/0"},
        {"abcdefghijklmn/", true, "abcdefghijklmn/"},
        {"", true, ""},
    };
    struct account_rows rows = {0};
    struct account_view v;
    char family[ACCOUNT_NAME];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct prcb_account a = account(i + 1, (pid_t)i + 1, 1, cases[i].comm);

        a.flags = cases[i].kernel ? PRCB_ACCOUNT_KTHREAD : 0;
        update(&rows, &a);
        account_family(cases[i].comm, cases[i].kernel, family);
        assert_string_equal(family, cases[i].family);
    }
    v = view(&rows, ACCOUNT_VIEW_NAMES, ACCOUNT_BY_COMM, 0);
    assert_int_equal(v.count, sizeof(cases) / sizeof(cases[0]) - 1);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

static void many_ended_ones_of_a_name_are_one(void **state)
{
    struct account_rows rows = {0};
    struct account_view v;
    uint64_t run = 0;

    for (pid_t tid = 1; tid <= 12; tid++) {
        struct prcb_account a = account((uint64_t)tid, tid, tid, tid % 3 ? "cc" : "as");

        a.flags = tid < 11 ? PRCB_ACCOUNT_EXITED : 0;
        a.cgroup = tid == 1 ? 7 : 0;
        run += tid % 3 && tid < 11 && tid != 1 ? a.run_ns : 0;
        update(&rows, &a);
    }
    /* Six of cc in a cgroup, one in another; three of as are too few; 11 and 12 live. */
    v = view(&rows, ACCOUNT_VIEW_ENDED, ACCOUNT_BY_TID, 0);
    assert_int_equal(v.count, 1 + 1 + 3 + 2);
    assert_int_equal(v.total.threads, 12);
    for (size_t i = 0; i < v.count; i++) {
        const struct account_row *row = v.rows[i];

        assert_int_equal(row->ended, row->tid ? 0 : 6);
        assert_int_equal(row->threads, row->tid ? 1 : 6);
        if (row->tid)
            continue;
        assert_string_equal(row->comm, "cc");
        assert_int_equal(row->now.run_ns, run);
    }
    account_view_deinit(&v);
    v = view(&rows, ACCOUNT_VIEW_ENDED | ACCOUNT_VIEW_PROCESSES, ACCOUNT_BY_TID, 0);
    assert_true(v.count < 12);
    account_view_deinit(&v);
    account_rows_deinit(&rows);
}

/* ---- by whom -------------------------------------------------------------- */

static void by(struct whom *w, uint64_t group, pid_t tid, uint64_t count, uint64_t ns)
{
    const struct prcb_edge edge = {.kind = PRCB_EDGE_WOKEN_BY,
                                   .cause = PRCB_CAUSE_FUTEX,
                                   .by = tid ? PRCB_BY_THREAD : PRCB_BY_REST,
                                   .tid = tid,
                                   .count = count,
                                   .ns = ns};

    assert_int_equal(whom_add(w, group, &edge), 0);
}

static const struct prcb_edge *one_by(const struct prcb_edge *edges, size_t count, pid_t tid)
{
    for (size_t i = 0; i < count; i++) {
        if (edges[i].tid == tid)
            return &edges[i];
    }
    return NULL;
}

static void by_whom_of_an_interval_sums_to_what_was_added(void **state)
{
    struct whom *before, *now, *grown;
    struct prcb_edge *edges;
    uint64_t ns = 0;
    size_t count;

    assert_int_equal(whom_open(&before) | whom_open(&now), 0);
    by(before, 7, 1, 10, 1000); /* goes on */
    by(before, 7, 2, 5, 500);   /* its cell is given up, and begun anew */
    by(before, 7, 3, 2, 200);   /* its cell is given up */
    by(before, 7, 0, 1, 50);
    by(before, 8, 1, 1, 1);
    by(now, 7, 1, 12, 1300);
    by(now, 7, 2, 1, 90);
    by(now, 7, 4, 1, 20);
    by(now, 7, 0, 9, 840);
    by(now, 8, 1, 1, 1);
    assert_int_equal(whom_since(now, before, &grown), 0);
    assert_int_equal(whom_rows(grown, 7, PRCB_CAUSE_FUTEX, &edges, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(one_by(edges, count, 1)->count, 2);
    assert_int_equal(one_by(edges, count, 1)->ns, 300);
    assert_int_equal(one_by(edges, count, 4)->ns, 20);
    /* Of 500 more ns; 180 that nothing is known of, the anew begun cell's among them. */
    assert_int_equal(edges[2].by, PRCB_BY_REST);
    assert_int_equal(edges[2].ns, 2250 - 1750 - 320);
    assert_int_equal(edges[2].count, 23 - 18 - 3);
    free(edges);
    assert_int_equal(whom_rows(grown, 8, PRCB_CAUSE_FUTEX, &edges, &count), 0);
    assert_int_equal(count, 0);
    free(edges);
    assert_int_equal(whom_rows(grown, WHOM_ALL, PRCB_CAUSE_FUTEX, &edges, &count), 0);
    for (size_t i = 0; i < count; i++)
        ns += edges[i].ns;
    assert_int_equal(ns, 500);
    free(edges);
    whom_close(grown);
    whom_close(before);
    whom_close(now);
}

/* A wait that was open at the beginning is the rest's then, and has a name at the end. */
static void by_whom_of_an_interval_counts_an_open_wait_once(void **state)
{
    struct whom *before, *now, *grown;
    struct prcb_edge *edges;
    size_t count;

    assert_int_equal(whom_open(&before) | whom_open(&now), 0);
    by(before, 7, 0, 1, 400);
    by(now, 7, 1, 1, 700);
    by(now, 7, 2, 1, 100);
    assert_int_equal(whom_since(now, before, &grown), 0);
    assert_int_equal(whom_rows(grown, 7, PRCB_CAUSE_FUTEX, &edges, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(one_by(edges, count, 1)->ns, 300);
    assert_int_equal(one_by(edges, count, 2)->ns, 100);
    assert_int_equal(edges[0].count + edges[1].count, 1);
    free(edges);
    whom_close(grown);
    whom_close(before);
    whom_close(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_per_key),
        cmocka_unit_test(rows_cut_off_are_summed),
        cmocka_unit_test(a_sum_lacks_what_one_lacks),
        cmocka_unit_test(many_ended_ones_of_a_name_are_one),
        cmocka_unit_test(ended_threads_keep_counting),
        cmocka_unit_test(names_of_sums_are_bounded),
        cmocka_unit_test(intervals_are_changes),
        cmocka_unit_test(an_open_ready_stretch_is_ready_time),
        cmocka_unit_test(processes_are_sums_named_by_their_first_thread),
        cmocka_unit_test(cgroups_keep_what_was_done_in_them),
        cmocka_unit_test(names_are_families),
        cmocka_unit_test(orders_have_names),
        cmocka_unit_test(by_whom_of_an_interval_sums_to_what_was_added),
        cmocka_unit_test(by_whom_of_an_interval_counts_an_open_wait_once),
        cmocka_unit_test(words_name_the_biggest_cost),
        cmocka_unit_test(words_count_open_waits),
        cmocka_unit_test(words_say_why_threads_were_ready),
        cmocka_unit_test(words_of_the_system_leave_kernel_threads_out),
        cmocka_unit_test(words_without_causes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
