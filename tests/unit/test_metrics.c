/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sums by group from made-up accounts: nothing is lost when threads end or move, no counter falls,
 * limits hold; the families as Prometheus reads them; and docs/metrics.md, which is made of the
 * rows (with PRCB_WRITE_METRICS=1 in the environment it is written anew).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "exposition.h"
#include "inside.h"

static const char *document;
static char root[] = "/tmp/prcb-metrics-XXXXXX";

static uint64_t make_cgroup(const char *path)
{
    char name[256];
    struct stat st;

    snprintf(name, sizeof(name), "%s%s", root, path);
    assert_true(!mkdir(name, 0755));
    assert_int_equal(stat(name, &st), 0);
    return st.st_ino;
}

static void remove_cgroup(const char *path)
{
    char name[256];

    snprintf(name, sizeof(name), "%s%s", root, path);
    assert_int_equal(rmdir(name), 0);
}

static struct metrics *fed(struct metrics_options options)
{
    struct prcb_error err;
    struct metrics *m;

    options.tier = PRCB_TIER_BPF;
    options.cgroup_root = root;
    assert_int_equal(metrics_open_fed(&options, &m, &err), 0);
    return m;
}

static struct prcb_account account(uint64_t key, uint64_t cgroup, uint64_t run)
{
    struct prcb_account a = {
        .size = sizeof(a),
        .key = key,
        .cgroup = cgroup,
        .run_ns = run,
        .present = PRCB_HAS_RUN | PRCB_HAS_READY | PRCB_HAS_WAITS | PRCB_HAS_SWITCHES |
                   PRCB_HAS_MIGRATIONS | PRCB_HAS_CGROUP | PRCB_HAS_OPEN,
        .comm = "worker",
        .flags = PRCB_ACCOUNT_RUNNING,
    };

    return a;
}

static void look(struct metrics *m, const struct prcb_account *accounts, size_t count)
{
    metrics_begin(m);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(metrics_add(m, &accounts[i]), 0);
    metrics_end(m, NULL, NULL);
}

/* *ret is the caller's to free. */
static void text_of(const struct metrics *m, enum exposition format, char **ret)
{
    size_t size;
    FILE *out = open_memstream(ret, &size);

    assert_non_null(out);
    exposition_write(out, format, m);
    assert_int_equal(fclose(out), 0);
}

/* The value of a series, in nanoseconds where it is seconds; fails where there is none. */
static double value(const struct metrics *m, const char *series)
{
    char *text, line[512], *at;
    double ret;

    text_of(m, EXPOSITION_TEXT, &text);
    snprintf(line, sizeof(line), "\n%s ", series);
    at = strstr(text, line);
    if (!at)
        print_error("%s is not in\n%s", series, text);
    assert_non_null(at);
    ret = strtod(at + strlen(line), NULL);
    free(text);
    return ret;
}

static bool has(const struct metrics *m, const char *part)
{
    char *text;
    bool ret;

    text_of(m, EXPOSITION_TEXT, &text);
    ret = strstr(text, part) != NULL;
    free(text);
    return ret;
}

#define SECOND 1000000000ull

static void ended_threads_stay(void **state)
{
    uint64_t a = make_cgroup("/a");
    struct metrics *m = fed((struct metrics_options){0});
    struct prcb_account accounts[2] = {account(1, a, 3 * SECOND), account(2, a, 4 * SECOND)};

    look(m, accounts, 2);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/a\"}") == 7);
    assert_true(value(m, "prcb_cgroup_threads{cgroup=\"/a\"}") == 2);
    accounts[1].flags = PRCB_ACCOUNT_EXITED;
    accounts[1].run_ns += SECOND;
    /* It is met again until it is given back, and counts once. */
    for (int i = 0; i < 3; i++) {
        look(m, accounts, 2);
        assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/a\"}") == 8);
        assert_true(value(m, "prcb_cgroup_threads{cgroup=\"/a\"}") == 1);
    }
    /* Its account is another thread's now: of another key. One that is met only when it has ended
     * counts as well. */
    accounts[1] = account(3, a, SECOND / 2);
    accounts[1].flags = PRCB_ACCOUNT_EXITED;
    look(m, accounts, 2);
    look(m, accounts, 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/a\"}") == 8.5);
    assert_true(value(m, "prcb_system_thread_seconds_total{state=\"run\"}") == 8.5);
    metrics_close(m);
    remove_cgroup("/a");
}

static void moved_threads_have_a_part_in_both(void **state)
{
    uint64_t a = make_cgroup("/a"), b = make_cgroup("/b");
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_NAME});
    struct prcb_account one = account(1, a, 3 * SECOND);

    one.waits[PRCB_CAUSE_FUTEX].ns = SECOND;
    look(m, &one, 1);
    one.cgroup = b;
    one.run_ns += SECOND; /* in either: it counts for the old */
    look(m, &one, 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/a\"}") == 4);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/b\"}") == 0);
    one.run_ns += 2 * SECOND;
    snprintf(one.comm, sizeof(one.comm), "renamed");
    look(m, &one, 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/b\"}") == 2);
    one.cgroup = a;
    one.flags = PRCB_ACCOUNT_EXITED;
    one.run_ns += SECOND;
    look(m, &one, 1);
    look(m, NULL, 0);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/a\"}") == 4);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/b\"}") == 3);
    assert_true(value(m, "prcb_cgroup_wait_seconds_total{cgroup=\"/a\",class=\"lock\"}") == 1);
    assert_true(value(m, "prcb_cgroup_wait_seconds_total{cgroup=\"/b\",class=\"lock\"}") == 0);
    assert_true(value(m, "prcb_system_thread_seconds_total{state=\"run\"}") == 7);
    assert_true(value(m, "prcb_name_run_seconds_total{name=\"worker\"}") == 6);
    assert_true(value(m, "prcb_name_run_seconds_total{name=\"renamed\"}") == 1);
    metrics_close(m);
    remove_cgroup("/a");
    remove_cgroup("/b");
}

/* An hour's wait does not arrive as one spike; when it closes, a part of it turns out to have been
 * ready, and the cause does not fall. */
static void open_stretches_count_and_never_fall(void **state)
{
    struct metrics *m = fed((struct metrics_options){0});
    struct prcb_account one = account(1, 0, 0);
    const char *futex = "prcb_system_wait_seconds_total{cause=\"futex\"}";

    one.present &= ~(uint64_t)PRCB_HAS_CGROUP;
    one.flags = 0;
    for (unsigned i = 1; i <= 10; i++) {
        one.open = (struct prcb_open){.cause = PRCB_CAUSE_FUTEX, .ns = i * SECOND};
        look(m, &one, 1);
        assert_true(value(m, futex) == i);
    }
    one.open = (struct prcb_open){0};
    one.waits[PRCB_CAUSE_FUTEX].ns = 9 * SECOND;
    one.ready_ns = SECOND;
    look(m, &one, 1);
    assert_true(value(m, futex) == 10);
    assert_true(value(m, "prcb_system_thread_seconds_total{state=\"ready\"}") == 1);
    one.waits[PRCB_CAUSE_FUTEX].ns = 11 * SECOND;
    look(m, &one, 1);
    assert_true(value(m, futex) == 11);
    one.open = (struct prcb_open){.cause = PRCB_CAUSE_PREEMPTED, .ns = SECOND};
    look(m, &one, 1);
    assert_true(value(m, "prcb_system_thread_seconds_total{state=\"ready\"}") == 2);
    assert_true(value(m, "prcb_threads{state=\"ready\"}") == 1);
    assert_true(value(m, "prcb_cgroups_available") == 0);
    metrics_close(m);
}

/* First come, first served, and kept; what is beyond is one group, and is counted. */
static void limits_hold(void **state)
{
    struct metrics *m = fed((struct metrics_options){.max_cgroups = 2, .exclude = "^/secret"});
    struct prcb_account accounts[5];
    char path[16];

    for (uint64_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "/g%u", (unsigned)i);
        accounts[i] = account(i + 1, make_cgroup(path), SECOND);
    }
    accounts[4] = account(5, make_cgroup("/secret"), SECOND);
    look(m, &accounts[4], 1);
    look(m, accounts, 5);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/g0\"}") == 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/g1\"}") == 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}") == 3);
    assert_true(value(m, "prcb_groups_left_out{by=\"cgroup\"}") == 3);
    assert_false(has(m, "/g2"));
    assert_false(has(m, "secret"));
    /* One that ends there stays in the sum; one without a name is told apart. */
    accounts[3].flags = PRCB_ACCOUNT_EXITED;
    accounts[2].cgroup = 987654321;
    look(m, accounts, 5);
    look(m, accounts, 3);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}") == 3);
    accounts[2].run_ns += SECOND;
    look(m, accounts, 3);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(gone)\"}") == 1);
    metrics_close(m);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "/g%u", i);
        remove_cgroup(path);
    }
    remove_cgroup("/secret");
}

static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Threads that rename themselves take no memory beyond that of the names that are shown, and names
 * without threads make room for others. */
static void names_that_never_come_back(void **state)
{
    enum { THREADS = 500 };
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_NAME, .max_names = 20});
    struct prcb_account accounts[THREADS], late = account(THREADS + 1, 0, SECOND);
    const char *total = "prcb_system_thread_seconds_total{state=\"run\"}";
    const char *other = "prcb_name_run_seconds_total{name=\"(other)\"}";
    double before = 0;
    size_t first = 0;

    for (unsigned round = 0; round < 70; round++) {
        for (unsigned i = 0; i < THREADS; i++) {
            unsigned number = round * THREADS + i;

            accounts[i] = account(i + 1, 0, (round + 1) * SECOND);
            for (size_t digit = 0; digit < 8; digit++, number /= 26)
                accounts[i].comm[digit] = (char)('a' + number % 26);
            accounts[i].comm[8] = '\0';
        }
        look(m, accounts, THREADS);
        assert_true(value(m, total) == THREADS * (round + 1));
        assert_true(value(m, other) >= before);
        before = value(m, other);
        assert_true(value(m, "prcb_groups_left_out{by=\"name\"}") <= THREADS);
        first = round == 1 ? in_use() : first;
    }
    print_message("%zu bytes more\n", in_use() - first);
    assert_true(in_use() - first < 100000);
    m->keep_ns = 0; /* five minutes pass */
    for (unsigned i = 0; i < 64; i++)
        look(m, NULL, 0);
    assert_true(value(m, "prcb_groups_left_out{by=\"name\"}") == 0);
    strcpy(late.comm, "late");
    look(m, &late, 1);
    assert_true(value(m, "prcb_name_run_seconds_total{name=\"late\"}") == 1);
    metrics_close(m);
}

static double of_pod(const struct metrics *m, unsigned pod)
{
    char series[96];

    snprintf(series, sizeof(series), "prcb_cgroup_run_seconds_total{cgroup=\"/kube.slice/%u\"}",
             pod);
    return has(m, series) ? value(m, series) : -1;
}

/* Where there are more cgroups than names, those that run have them, whichever was found first; no
 * counter falls. */
static void the_busiest_have_names(void **state)
{
    enum { PODS = 30, MOST = 5, FIRST_BUSY = 20 };
    struct metrics *m = fed((struct metrics_options){.max_cgroups = MOST});
    struct prcb_account accounts[PODS];
    double before[PODS], other = 0;
    char path[64];

    make_cgroup("/kube.slice");
    for (unsigned i = 0; i < PODS; i++) {
        uint64_t seconds = i < FIRST_BUSY ? 0 : i < PODS - MOST ? 1 : 2;

        snprintf(path, sizeof(path), "/kube.slice/%u", i);
        accounts[i] = account(i + 1, make_cgroup(path), seconds * SECOND);
        before[i] = -1;
    }
    for (int round = 0; round < 4; round++) {
        look(m, accounts, PODS);
        for (unsigned i = 0; i < PODS; i++) {
            double now = of_pod(m, i);

            if (round) /* those that run most, among them */
                assert_int_equal(now >= 0, i >= PODS - MOST);
            assert_true(now < 0 || now >= before[i]);
            before[i] = now;
            accounts[i].run_ns += i >= PODS - MOST ? SECOND : 0;
        }
        assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}") >= other);
        other = value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}");
    }
    assert_true(value(m, "prcb_system_thread_seconds_total{state=\"run\"}") ==
                PODS - FIRST_BUSY + 4 * MOST);
    assert_true(of_pod(m, PODS - 1) == 2);
    assert_true(other == PODS - FIRST_BUSY + 2 * MOST); /* until they had names */
    assert_true(value(m, "prcb_groups_left_out{by=\"cgroup\"}") == PODS - MOST);
    /* What runs now instead waits its turn: series do not come and go. */
    for (int round = 0; round < 4; round++) {
        accounts[0].run_ns += 10 * SECOND;
        look(m, accounts, PODS);
        assert_true(of_pod(m, 0) < 0);
    }
    metrics_close(m);
    for (unsigned i = 0; i < PODS; i++) {
        snprintf(path, sizeof(path), "/kube.slice/%u", i);
        remove_cgroup(path);
    }
    remove_cgroup("/kube.slice");
}

/* Who has a part of one slice takes no more than that slice's share of the groups. */
static void a_slice_has_its_share(void **state)
{
    enum { MANY = 30, MOST = 10 };
    struct metrics *m =
        fed((struct metrics_options){.max_cgroups = MOST, .optional = METRICS_BY_NAME});
    struct prcb_account accounts[MANY + 3];
    char path[64];
    double before;

    make_cgroup("/user.slice");
    make_cgroup("/system.slice");
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/user.slice/%u", i);
        accounts[i] = account(i + 1, make_cgroup(path), SECOND);
    }
    look(m, accounts, MANY);
    assert_true(value(m, "prcb_groups_left_out{by=\"cgroup\"}") == MANY - MOST);
    before = value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}");
    accounts[MANY] = account(100, make_cgroup("/system.slice/a.service"), SECOND);
    accounts[MANY + 1] = account(101, make_cgroup("/system.slice/b.service"), SECOND);
    accounts[MANY + 2] = account(102, make_cgroup("/init.scope"), SECOND);
    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < MANY + 3; j++)
            accounts[j].run_ns += SECOND;
        look(m, accounts, MANY + 3);
        assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}") >= before);
        before = value(m, "prcb_cgroup_run_seconds_total{cgroup=\"(other)\"}");
    }
    assert_true(value(m, "prcb_groups_left_out{by=\"cgroup\"}") == MANY + 3 - MOST);
    /* What they did before they had a group was counted in "(other)". */
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/system.slice/a.service\"}") == 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/system.slice/b.service\"}") == 1);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/init.scope\"}") == 1);
    assert_true(value(m, "prcb_system_thread_seconds_total{state=\"run\"}") == 4 * (MANY + 3));
    /* Who came first keeps its group; nobody loses one again while nobody comes. */
    assert_true(has(m, "cgroup=\"/user.slice/0\""));
    assert_false(has(m, "cgroup=\"/user.slice/9\""));
    metrics_close(m);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/user.slice/%u", i);
        remove_cgroup(path);
    }
    remove_cgroup("/system.slice/a.service");
    remove_cgroup("/system.slice/b.service");
    remove_cgroup("/init.scope");
    remove_cgroup("/system.slice");
    remove_cgroup("/user.slice");
}

static void names_are_quoted(void **state)
{
    uint64_t odd = make_cgroup("/say \"a\\x2db\"");
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_NAME});
    struct prcb_account accounts[3] = {account(1, odd, SECOND), account(2, odd, SECOND),
                                       account(3, odd, SECOND)};

    strcpy(accounts[0].comm, "a\x01");
    strcpy(accounts[1].comm, "a\x02");
    strcpy(accounts[2].comm, "(other)");
    look(m, accounts, 3);
    assert_true(value(m, "prcb_cgroup_run_seconds_total{cgroup=\"/say \\\"a\\\\x2db\\\"\"}") == 3);
    assert_true(value(m, "prcb_name_run_seconds_total{name=\"a\ufffd"
                         "01\"}") == 1);
    assert_true(value(m, "prcb_name_run_seconds_total{name=\"a\ufffd"
                         "02\"}") == 1);
    assert_true(value(m, "prcb_name_run_seconds_total{name=\"(other)\"}") == 1);
    metrics_close(m);
    remove_cgroup("/say \"a\\x2db\"");
}

static void every_wait_has_a_class(void **state)
{
    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);
        bool wait = info && info->kind == PRCB_KIND_WAIT && cause != PRCB_CAUSE_THROTTLED;

        assert_int_equal(metrics_class_of(cause) != NULL, wait);
        /* What is filed under "other" is there by decision. */
        if (wait && !strcmp(metrics_class_of(cause), "other"))
            assert_true(cause == PRCB_CAUSE_OTHER || cause == PRCB_CAUSE_DEVICE ||
                        cause == PRCB_CAUSE_DRIVER);
    }
}

static size_t series(const struct metrics *m)
{
    char *text;
    size_t count = 0;

    text_of(m, EXPOSITION_TEXT, &text);
    for (const char *at = text; *at; at = strchr(at, '\n') + 1)
        count += *at != '#';
    free(text);
    return count;
}

/* The default is small: 64 processors and 100 cgroups are fewer than 2000 series. */
static void the_default_is_small(void **state)
{
    struct prcb_processor *processors = calloc(64, sizeof(*processors));
    struct metrics *m = fed((struct metrics_options){0});
    struct prcb_account accounts[100];
    char path[160];

    assert_non_null(processors);
    for (uint32_t i = 0; i < 64; i++)
        processors[i] = (struct prcb_processor){
            .size = sizeof(*processors), .present = ~0ull, .number = i, .idle_state_count = 4};
    for (unsigned i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/cri-containerd-%064x.scope", i);
        accounts[i] = account(i + 1, make_cgroup(path), SECOND);
    }
    metrics_set_processors(m, processors, 64);
    look(m, accounts, 100);
    print_message("%zu series\n", series(m));
    assert_true(series(m) > 1500 && series(m) < 2000);
    assert_true(has(m, "prcb_cgroup_info{cgroup=\"/cri-containerd-"));
    metrics_close(m);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/cri-containerd-%064x.scope", i);
        remove_cgroup(path);
    }
    free(processors);
}

static void without_figures(void **state)
{
    char *text;

    text_of(NULL, EXPOSITION_OPENMETRICS, &text);
    assert_non_null(strstr(text, "\nprcb_up 0\n"));
    assert_non_null(strstr(text, "\nprcb_build_info{version="));
    assert_null(strstr(text, "seconds"));
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    free(text);
}

static void looks_come_sooner_in_storms(void **state)
{
    struct metrics *m = fed((struct metrics_options){0});
    struct prcb_status status = {.size = sizeof(status), .max_threads = 65536};
    uint64_t key = 1;

    metrics_set_status(m, &status);
    look(m, NULL, 0);
    assert_int_equal(metrics_wait_ms(m), 1000);
    /* 20,000 births a second may begin at any time. */
    status.max_threads = 16384;
    metrics_set_status(m, &status);
    assert_in_range(metrics_wait_ms(m), 300, 16384 / 2 / 20);
    for (int i = 0; i < 3; i++) {
        struct prcb_account accounts[200];

        for (size_t j = 0; j < 200; j++) {
            accounts[j] = account(key++, 0, 1);
            accounts[j].flags = PRCB_ACCOUNT_EXITED;
        }
        look(m, accounts, 200);
    }
    assert_true(metrics_wait_ms(m) < 1000 && metrics_wait_ms(m) >= 5);
    /* All accounts are used: a look of 4 ms each 200 ms finds what ended, and no more is to be had.
     */
    m->accounts_live = 16384;
    m->look_ns = 4000000;
    assert_int_equal(metrics_wait_ms(m), 200);
    m->look_ns = 1000;
    assert_int_equal(metrics_wait_ms(m), 5);
    metrics_close(m);
}

/* ---- by whom ---- */

#define THREADS 12

/* Threads that are ready while threads of these cgroups run, and the cells of their edges. */
struct crowd {
    struct prcb_account accounts[THREADS];
    uint64_t cgroups[THREADS + 1]; /* the last one: 0, the kernel */
    uint64_t cells[THREADS][THREADS + 1];
};

static void look_by_whom(struct metrics *m, const struct crowd *crowd, size_t count)
{
    metrics_begin(m);
    for (size_t i = 0; i < count; i++) {
        const struct prcb_account *a = &crowd->accounts[i];

        for (size_t k = 0; k <= THREADS; k++) {
            uint64_t cgroup = crowd->cgroups[k];
            struct prcb_edge edge = {.kind = PRCB_EDGE_MEANWHILE,
                                     .by = cgroup ? PRCB_BY_CGROUP : PRCB_BY_KERNEL,
                                     .cgroup = cgroup,
                                     .ns = crowd->cells[i][k]};

            assert_int_equal(metrics_add_edge(m, a->key, &edge), 0);
        }
        assert_int_equal(metrics_add(m, a), 0);
    }
    metrics_end(m, NULL, NULL);
}

static struct crowd crowd_of(const uint64_t *cgroups, size_t groups)
{
    struct crowd crowd = {0};

    for (size_t i = 0; i < groups; i++)
        crowd.cgroups[i] = cgroups[i];
    for (size_t i = 0; i < THREADS; i++) {
        crowd.accounts[i] = account(i + 1, cgroups[i % groups], 0);
        crowd.accounts[i].tid = (pid_t)(100 + i);
    }
    return crowd;
}

static void be_behind(struct crowd *crowd, size_t victim, size_t culprit, uint64_t ns)
{
    crowd->accounts[victim].ready_ns += ns;
    crowd->cells[victim][culprit] += ns;
}

struct parts {
    const char *cgroup;
    uint64_t sum;
};

static void add_part(void *ctx, const struct metrics_sample *sample)
{
    struct parts *parts = ctx;

    if (!parts->cgroup || !strcmp(sample->value[0], parts->cgroup))
        parts->sum += sample->number;
}

/* The sum of a family's samples in nanoseconds. cgroup: NULL: all. */
static uint64_t sum_of(const struct metrics *m, const char *family, const char *cgroup)
{
    struct parts parts = {cgroup, 0};

    for (const struct metrics_family *f = metrics_families; f->name; f++) {
        if (!strcmp(f->name, family))
            metrics_each(m, f, add_part, &parts);
    }
    return parts.sum;
}

static void ready_time_is_divided_by_whom(void **state)
{
    uint64_t cgroups[3] = {make_cgroup("/a"), make_cgroup("/b"), make_cgroup("/c")};
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_WHOM});
    struct crowd crowd = crowd_of(cgroups, 3);
    const char *a_by_b = "prcb_cgroup_ready_behind_seconds_total{cgroup=\"/a\",by=\"/b\"}";

    be_behind(&crowd, 0, 1, 3 * SECOND);      /* a behind b */
    be_behind(&crowd, 0, 0, SECOND);          /* behind itself */
    be_behind(&crowd, 0, THREADS, SECOND);    /* behind the kernel */
    crowd.accounts[0].ready_ns += SECOND / 2; /* nobody knows */
    /* A quota is nobody's fault. */
    crowd.accounts[0].waits[PRCB_CAUSE_THROTTLED].ns = 7 * SECOND;
    look_by_whom(m, &crowd, 4);
    assert_true(value(m, a_by_b) == 3);
    assert_true(value(m, "prcb_cgroup_ready_behind_seconds_total{cgroup=\"/a\",by=\"self\"}") == 1);
    assert_true(value(m, "prcb_cgroup_ready_behind_seconds_total{cgroup=\"/a\",by=\"(kernel)\"}") ==
                1);
    assert_true(value(m, "prcb_cgroup_ready_behind_seconds_total{cgroup=\"/a\",by=\"(other)\"}") ==
                .5);
    assert_true(value(m, "prcb_cgroup_throttled_seconds_total{cgroup=\"/a\"}") == 7);
    /* A stretch that is not over has nobody yet. */
    crowd.accounts[0].flags = 0;
    crowd.accounts[0].open = (struct prcb_open){.cause = PRCB_CAUSE_PREEMPTED, .ns = SECOND};
    look_by_whom(m, &crowd, 4);
    assert_true(value(m, "prcb_cgroup_ready_open_seconds{cgroup=\"/a\"}") == 1);
    assert_true(value(m, a_by_b) == 3);
    /* The cell was given up, and came about again with less. */
    crowd.accounts[0].open = (struct prcb_open){0};
    crowd.accounts[0].ready_ns += 2 * SECOND;
    crowd.cells[0][1] = SECOND;
    look_by_whom(m, &crowd, 4);
    assert_true(value(m, a_by_b) == 4);
    assert_true(value(m, "prcb_cgroup_ready_behind_seconds_total{cgroup=\"/a\",by=\"(other)\"}") ==
                1.5);
    assert_true(value(m, "prcb_cgroup_ready_open_seconds{cgroup=\"/a\"}") == 0);
    metrics_close(m);
    remove_cgroup("/a");
    remove_cgroup("/b");
    remove_cgroup("/c");
}

static void look_at_locks(struct metrics *m, const struct prcb_account *accounts, size_t count,
                          const struct prcb_edge *edges, size_t edge_count)
{
    metrics_begin(m);
    for (size_t i = 0; i < count; i++) {
        const struct prcb_edge ready = {.kind = PRCB_EDGE_MEANWHILE, .by = PRCB_BY_REST};

        assert_int_equal(metrics_add_edge(m, accounts[i].key, &ready), 0);
        for (size_t k = 0; !i && k < edge_count; k++)
            assert_int_equal(metrics_add_edge(m, accounts[i].key, &edges[k]), 0);
        assert_int_equal(metrics_add(m, &accounts[i]), 0);
    }
    metrics_end(m, NULL, NULL);
}

#define BLOCKED(by) value(m, "prcb_cgroup_blocked_by_seconds_total{cgroup=\"/a\",by=\"" by "\"}")

static void locks_are_divided_by_who_held_them(void **state)
{
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_WHOM});
    uint64_t a = make_cgroup("/a"), b = make_cgroup("/b");
    struct prcb_account accounts[] = {account(1, a, 0), account(2, b, 0), account(3, a, 0),
                                      account(4, b, 0), account(5, a, 0), account(6, b, 0)};
    struct prcb_edge edges[] = {
        /* Two causes, one holder; who comes later in the look is known as well. */
        {.kind = PRCB_EDGE_HELD_BY, .cause = PRCB_CAUSE_MMAP_LOCK, .ns = 2 * SECOND, .tid = 102},
        {.kind = PRCB_EDGE_HELD_BY, .cause = PRCB_CAUSE_RWSEM, .ns = SECOND, .tid = 102},
        {.kind = PRCB_EDGE_HELD_BY, .cause = PRCB_CAUSE_MUTEX, .ns = SECOND, .tid = 103},
        {.kind = PRCB_EDGE_HELD_BY, .cause = PRCB_CAUSE_MUTEX, .ns = SECOND, .tid = 104},
        {.kind = PRCB_EDGE_HELD_BY, .cause = PRCB_CAUSE_MUTEX, .ns = SECOND, .tid = 105},
        {.kind = PRCB_EDGE_HELD_BY, .cause = PRCB_CAUSE_MUTEX, .ns = SECOND, .tid = 999}};

    for (size_t i = 0; i < 6; i++) {
        edges[i].by = PRCB_BY_THREAD;
        accounts[i].tid = (pid_t)(101 + i);
    }
    accounts[3].flags |= PRCB_ACCOUNT_KTHREAD;
    accounts[5].tid = 105; /* in another cgroup: which of the two it was nobody knows */
    accounts[0].waits[PRCB_CAUSE_MMAP_LOCK].ns = 2 * SECOND;
    accounts[0].waits[PRCB_CAUSE_RWSEM].ns = SECOND;
    accounts[0].waits[PRCB_CAUSE_MUTEX].ns = 5 * SECOND;
    accounts[0].waits[PRCB_CAUSE_FUTEX].ns = 50 * SECOND; /* is no lock of the kernel's */
    accounts[0].flags = 0;
    accounts[0].open = (struct prcb_open){.cause = PRCB_CAUSE_RWSEM, .ns = 4 * SECOND};
    look_at_locks(m, accounts, 6, edges, 6);
    for (int look = 0; look < 2; look++) {
        assert_true(BLOCKED("/b") == 3);
        assert_true(BLOCKED("self") == 1);
        assert_true(BLOCKED("(kernel)") == 1);
        assert_true(BLOCKED("(other)") == 3);
        assert_true(value(m, "prcb_cgroup_blocked_open_seconds{cgroup=\"/a\"}") == 4);
        assert_false(has(m, "prcb_cgroup_blocked_by_seconds_total{cgroup=\"/b\""));
        look_at_locks(m, accounts, 6, edges, 6); /* nothing more */
    }
    /* The open one closes; its holder has ended meanwhile, and is nobody that is known. */
    accounts[0].open = (struct prcb_open){0};
    accounts[0].waits[PRCB_CAUSE_RWSEM].ns += 4 * SECOND;
    edges[1].ns += 4 * SECOND;
    accounts[1].tid = 0;
    look_at_locks(m, accounts, 6, edges, 6);
    assert_true(BLOCKED("/b") == 3);
    assert_true(BLOCKED("(other)") == 7);
    assert_true(value(m, "prcb_cgroup_blocked_open_seconds{cgroup=\"/a\"}") == 0);
    metrics_close(m);
    remove_cgroup("/a");
    remove_cgroup("/b");
}

/* A wait that was going on at the first look counts from there on. A part of it may turn out to
 * have been ready by then: its group's sum has less than another's wait, which alone is divided. */
static void waits_before_the_first_look_are_nobodys(void **state)
{
    for (int known = 0; known < 2; known++) {
        struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_WHOM});
        uint64_t a = make_cgroup("/a"), b = make_cgroup("/b");
        struct prcb_account accounts[] = {account(1, a, 0), account(2, b, 0), account(3, a, 0)};
        struct prcb_edge edge = {.kind = PRCB_EDGE_HELD_BY,
                                 .cause = PRCB_CAUSE_RWSEM,
                                 .by = PRCB_BY_THREAD,
                                 .tid = 102,
                                 .ns = 12 * SECOND};

        m->baseline = true;
        for (int i = 0; i < 3; i++) {
            accounts[i].tid = (pid_t)(101 + i);
            accounts[i].flags = 0;
        }
        accounts[0].open = (struct prcb_open){.cause = PRCB_CAUSE_RWSEM, .ns = 5 * SECOND};
        accounts[2].open = (struct prcb_open){.cause = PRCB_CAUSE_RWSEM, .ns = 10 * SECOND};
        if (known)
            look_at_locks(m, accounts, 3, NULL, 0);
        else
            look(m, accounts, 3);
        accounts[0].open = accounts[2].open = (struct prcb_open){0};
        accounts[0].waits[PRCB_CAUSE_RWSEM].ns = 12 * SECOND;
        accounts[2].waits[PRCB_CAUSE_RWSEM].ns = 8 * SECOND;
        accounts[2].ready_ns = 2 * SECOND;
        look_at_locks(m, accounts, 3, &edge, 1);
        assert_true(BLOCKED("(other)") == (known ? 0 : 5));
        assert_true(sum_of(m, "prcb_cgroup_blocked_by_seconds", "/a") == 5 * SECOND);
        assert_true(value(m, "prcb_cgroup_blocked_open_seconds{cgroup=\"/a\"}") == 0);
        metrics_close(m);
        remove_cgroup("/a");
        remove_cgroup("/b");
    }
}

/* Whatever moves, begins and ends: in each cgroup the parts are its ready time to the nanosecond,
 * and no part falls. */
static void parts_add_up_while_threads_move(void **state)
{
    uint64_t cgroups[4] = {make_cgroup("/a"), make_cgroup("/b"), make_cgroup("/c"),
                           make_cgroup("/d")};
    static const char *const paths[] = {"/a", "/b", "/c", "/d"};
    struct metrics *m =
        fed((struct metrics_options){.optional = METRICS_BY_WHOM, .max_cgroups = 3});
    struct crowd crowd = crowd_of(cgroups, 4);
    uint64_t all = 0, before = 0, open = 0, random = 42, keys = THREADS;

    for (int round = 0; round < 300; round++) {
        open = 0;
        for (size_t i = 0; i < THREADS; i++) {
            struct prcb_account *a = &crowd.accounts[i];

            random = random * 6364136223846793005ull + 1442695040888963407ull;
            if (a->flags & PRCB_ACCOUNT_EXITED) {
                *a = account(++keys, cgroups[random >> 40 & 3], 0);
                a->tid = (pid_t)(100 + i);
                memset(crowd.cells[i], 0, sizeof(crowd.cells[i]));
            }
            /* What is open now closes in the next round. */
            a->ready_ns += a->open.ns;
            all += a->open.ns;
            crowd.cells[i][random >> 44 & 3] += a->open.ns;
            a->open = (struct prcb_open){0};
            be_behind(&crowd, i, random >> 50 & 3, random >> 33 & 0xffff);
            all += random >> 33 & 0xffff;
            if ((random >> 20 & 7) == 0)
                a->cgroup = cgroups[random >> 40 & 3];
            if ((random >> 23 & 7) == 1)
                crowd.cells[i][random >> 47 & 3] = 0;
            a->flags = (random >> 26 & 15) == 2 ? PRCB_ACCOUNT_EXITED : 0;
            if (!a->flags && (random >> 30 & 1))
                a->open = (struct prcb_open){.cause = PRCB_CAUSE_PREEMPTED, .ns = random >> 50};
            open += a->open.ns;
        }
        look_by_whom(m, &crowd, THREADS);
        for (size_t i = 0; i < 4; i++) {
            if (sum_of(m, "prcb_cgroup_ready_seconds", paths[i]))
                assert_int_equal(sum_of(m, "prcb_cgroup_ready_behind_seconds", paths[i]) +
                                     sum_of(m, "prcb_cgroup_ready_open_seconds", paths[i]),
                                 sum_of(m, "prcb_cgroup_ready_seconds", paths[i]));
        }
        assert_true(sum_of(m, "prcb_cgroup_ready_behind_seconds", NULL) >= before);
        before = sum_of(m, "prcb_cgroup_ready_behind_seconds", NULL);
        assert_true(before <= all + open);
    }
    assert_true(before > all / 2);
    metrics_close(m);
    for (size_t i = 0; i < 4; i++)
        remove_cgroup(paths[i]);
}

/* A group has eight by name, the first ones; the others are one. */
static void culprits_have_a_limit(void **state)
{
    uint64_t cgroups[THREADS];
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_WHOM});
    struct crowd crowd;
    char path[32];

    for (size_t i = 0; i < THREADS; i++) {
        snprintf(path, sizeof(path), "/c%zu", i);
        cgroups[i] = make_cgroup(path);
    }
    crowd = crowd_of(cgroups, THREADS);
    for (int round = 1; round <= 3; round++) {
        for (size_t i = 1; i < THREADS; i++)
            be_behind(&crowd, 0, i, SECOND);
        look_by_whom(m, &crowd, THREADS);
        for (size_t i = 1; i < THREADS; i++) {
            snprintf(path, sizeof(path), "{cgroup=\"/c0\",by=\"/c%zu\"} %d.", i, round);
            assert_true(has(m, path) == (i <= CULPRITS));
        }
        assert_int_equal(
            value(m, "prcb_cgroup_ready_behind_seconds_total{cgroup=\"/c0\",by=\"(other)\"}"),
            round * (THREADS - 1 - CULPRITS));
    }
    metrics_close(m);
    for (size_t i = 0; i < THREADS; i++) {
        snprintf(path, sizeof(path), "/c%zu", i);
        remove_cgroup(path);
    }
}

#define MANY        500
#define MANY_EACH   10 /* threads of a cgroup; with an edge for each of so many others: */
#define MANY_OTHERS 50

struct counted {
    size_t series;
    uint64_t sum;
};

static void count_sample(void *ctx, const struct metrics_sample *sample)
{
    struct counted *counted = ctx;

    counted->series++;
    counted->sum += sample->number;
}

static struct counted counted_of(const struct metrics *m, const char *family)
{
    struct counted ret = {0};

    for (const struct metrics_family *f = metrics_families; f->name; f++) {
        if (!strcmp(f->name, family))
            metrics_each(m, f, count_sample, &ret);
    }
    return ret;
}

/* 500 cgroups, each behind all 500, so a quarter of a million pairs: the law holds to the
 * nanosecond, and neither series nor memory grow with the pairs, or with time. */
static void many_neighbours_stay_bounded(void **state)
{
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_BY_WHOM});
    static uint64_t cgroups[MANY];
    char path[32];
    size_t after_one = 0;

    for (size_t i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/c%zu", i);
        cgroups[i] = make_cgroup(path);
    }
    for (uint64_t round = 1; round <= 4; round++) {
        uint64_t ready = 0;

        metrics_begin(m);
        for (size_t i = 0; i < (size_t)MANY * MANY_EACH; i++) {
            struct prcb_account a = account(i + 1, cgroups[i / MANY_EACH], 0);

            a.tid = (pid_t)(i + 1);
            for (size_t k = 0; k < MANY_OTHERS; k++) {
                const struct prcb_edge edge = {
                    .kind = PRCB_EDGE_MEANWHILE,
                    .by = PRCB_BY_CGROUP,
                    .cgroup = cgroups[(i % MANY_EACH * MANY_OTHERS + k + round) % MANY],
                    .ns = round * (i + 7 * k + 1)};

                a.ready_ns += edge.ns;
                assert_int_equal(metrics_add_edge(m, a.key, &edge), 0);
            }
            a.ready_ns += round * 1000000;
            ready += a.ready_ns;
            assert_int_equal(metrics_add(m, &a), 0);
        }
        metrics_end(m, NULL, NULL);
        assert_int_equal(counted_of(m, "prcb_cgroup_ready_behind_seconds").sum, ready);
        assert_int_equal(counted_of(m, "prcb_cgroup_ready_seconds").sum, ready);
        assert_int_equal(counted_of(m, "prcb_cgroup_ready_open_seconds").sum, 0);
        assert_in_range(counted_of(m, "prcb_cgroup_ready_behind_seconds").series, MANY * CULPRITS,
                        MANY * (CULPRITS + CULPRIT_WORDS));
        if (round == 1)
            after_one = in_use();
    }
    assert_in_range(in_use(), 0, after_one + after_one / 8);
    metrics_close(m);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/c%zu", i);
        remove_cgroup(path);
    }
}

/* ---- memory ---- */

static void write_in(const char *cgroup, const char *file, const char *text)
{
    char name[512];
    FILE *out;

    snprintf(name, sizeof(name), "%s%s/%s", root, cgroup, file);
    out = fopen(name, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void remove_files(const char *cgroup)
{
    static const char *const files[] = {"memory.max", "memory.events", "memory.stat"};
    char name[512];

    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s/%s", root, cgroup, files[i]);
        unlink(name);
    }
    remove_cgroup(cgroup);
}

/* The kernel counts where the limit is, which may be above the threads. */
static void limits_of_memory_are_told(void **state)
{
    struct metrics *m = fed((struct metrics_options){.optional = METRICS_MEMORY});
    uint64_t leaf, other;
    const char *max = "prcb_cgroup_memory_events_total{cgroup=\"/pod/box\",event=\"max\"}";

    make_cgroup("/pod");
    make_cgroup("/pod/box");
    leaf = make_cgroup("/pod/box/payload");
    other = make_cgroup("/pod/box/other");
    write_in("/pod", "memory.max", "max\n");
    write_in("/pod", "memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n");
    write_in("/pod/box", "memory.max", "16777216\n");
    write_in("/pod/box", "memory.events", "low 0\nhigh 3\nmax 7\noom 2\noom_kill 1\n");
    write_in("/pod/box/payload", "memory.stat",
             "anon 4096\nworkingset_refault_anon 5\nworkingset_refault_file 60\n"
             "workingset_refault_file_x 1\npgsteal_kswapd 8\npgsteal_direct 90\n");
    look(m, (struct prcb_account[]){account(1, leaf, 0), account(2, other, 0)}, 2);
    assert_true(value(m, max) == 7);
    assert_true(
        value(m, "prcb_cgroup_memory_events_total{cgroup=\"/pod/box\",event=\"oom_kill\"}") == 1);
    assert_false(has(m, "memory_events_total{cgroup=\"/pod\""));
    assert_false(has(m, "memory_events_total{cgroup=\"/pod/box/payload\""));
    assert_true(value(m, "prcb_cgroup_memory_refaults_total{cgroup=\"/pod/box/payload\","
                         "type=\"file\"}") == 60);
    assert_true(value(m, "prcb_cgroup_memory_reclaimed_pages_total{cgroup=\"/pod/box/payload\","
                         "by=\"direct\"}") == 90);
    assert_false(has(m, "memory_refaults_total{cgroup=\"/pod/box/other\""));
    metrics_close(m);
    remove_files("/pod/box/payload");
    remove_files("/pod/box/other");
    remove_files("/pod/box");
    remove_files("/pod");
}

/* ---- the document ---- */

static const char *type_word(const struct metrics_family *f)
{
    static const char *const words[] = {[METRICS_COUNTER] = "counter",
                                        [METRICS_GAUGE] = "gauge",
                                        [METRICS_INFO] = "info",
                                        [METRICS_HISTOGRAM] = "histogram"};

    return words[f->type];
}

static void write_document(FILE *out)
{
    static const struct {
        unsigned names, optional;
        const char *title;
    } sections[] = {
        {METRICS_PRCB, 0, "Always"},
        {METRICS_PRCB, METRICS_PER_CPU, "With `--per-cpu`"},
        {METRICS_PRCB, METRICS_READY, "With `--ready-histogram`"},
        {METRICS_PRCB, METRICS_CGROUP_CAUSES, "With `--cgroup-causes`"},
        {METRICS_PRCB, METRICS_BY_WHOM, "With `--by-whom`"},
        {METRICS_PRCB, METRICS_MEMORY, "With `--memory`"},
        {METRICS_PRCB, METRICS_CONTAINERS, "With `--containers`"},
        {METRICS_PRCB, METRICS_BY_NAME, "With `--per-name`"},
        {METRICS_NODE, 0, "With `--names node`"},
        {METRICS_WINDOWS, 0, "With `--names windows`"},
    };

    fputs(
        "# Metrics\n\n"
        "The metrics of `prcb export` and `prcb-exporter`. [fleet.md](fleet.md) describes how to "
        "use "
        "them.\nThe test `unit-metrics` makes this page from `src/analysis/metrics/families.def`. "
        "Names are those of\nPrometheus: counters end in `_total`. Times are seconds with nine "
        "digits. A figure that a machine\ndoes not have is absent.\n",
        out);
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        fprintf(out, "\n## %s\n\n| Name | Type | Labels | What it is |\n|---|---|---|---|\n",
                sections[i].title);
        for (const struct metrics_family *f = metrics_families; f->name; f++) {
            if (f->names != sections[i].names || f->optional != sections[i].optional)
                continue;
            fprintf(out, "| `%s%s` | %s | %s | %s |\n", f->name,
                    f->type == METRICS_COUNTER ? "_total"
                    : f->type == METRICS_INFO  ? "_info"
                                               : "",
                    type_word(f), f->labels, f->help);
        }
    }
    fputs("\n## Classes of waits\n\n| Class | Causes |\n|---|---|\n", out);
    for (uint32_t first = 1; first < PRCB_CAUSE_MAX; first++) {
        const char *class = metrics_class_of(first), *before = "";
        bool seen = false;

        for (uint32_t i = 1; class && i < first; i++)
            seen |= metrics_class_of(i) && !strcmp(metrics_class_of(i), class);
        if (!class || seen)
            continue;
        fprintf(out, "| `%s` | ", class);
        for (uint32_t i = first; i < PRCB_CAUSE_MAX; i++) {
            if (!metrics_class_of(i) || strcmp(metrics_class_of(i), class))
                continue;
            fprintf(out, "%s%s", before, prcb_cause_info(i)->name);
            before = ", ";
        }
        fputs(" |\n", out);
    }
    fputs(
        "\nCauses are defined in [figures.md](figures.md). `throttled` has families of its own.\n",
        out);
}

static void the_document_is_made_of_the_rows(void **state)
{
    char *made = NULL, *there = NULL;
    size_t size, room = 1 << 20, length;
    FILE *out = open_memstream(&made, &size), *file;

    if (!document)
        skip();
    write_document(out);
    assert_int_equal(fclose(out), 0);
    if (getenv("PRCB_WRITE_METRICS")) {
        file = fopen(document, "we");
        assert_non_null(file);
        fputs(made, file);
        assert_int_equal(fclose(file), 0);
    }
    file = fopen(document, "re");
    assert_non_null(file);
    there = calloc(1, room);
    assert_non_null(there);
    length = fread(there, 1, room - 1, file);
    fclose(file);
    there[length] = '\0';
    assert_string_equal(made, there);
    free(made);
    free(there);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ended_threads_stay),
        cmocka_unit_test(moved_threads_have_a_part_in_both),
        cmocka_unit_test(open_stretches_count_and_never_fall),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(names_that_never_come_back),
        cmocka_unit_test(a_slice_has_its_share),
        cmocka_unit_test(the_busiest_have_names),
        cmocka_unit_test(names_are_quoted),
        cmocka_unit_test(ready_time_is_divided_by_whom),
        cmocka_unit_test(limits_of_memory_are_told),
        cmocka_unit_test(many_neighbours_stay_bounded),
        cmocka_unit_test(locks_are_divided_by_who_held_them),
        cmocka_unit_test(waits_before_the_first_look_are_nobodys),
        cmocka_unit_test(parts_add_up_while_threads_move),
        cmocka_unit_test(culprits_have_a_limit),
        cmocka_unit_test(every_wait_has_a_class),
        cmocka_unit_test(the_default_is_small),
        cmocka_unit_test(without_figures),
        cmocka_unit_test(looks_come_sooner_in_storms),
        cmocka_unit_test(the_document_is_made_of_the_rows),
    };
    int failed;

    document = argc > 1 ? argv[1] : NULL;
    if (!mkdtemp(root))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(root);
    return failed;
}
