/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb top` without a terminal: a made-up machine, what its rows add up to, and its screens, cell
 * by cell as they were when somebody looked at them (golden/). With TOP_WRITE_GOLDEN in the
 * environment they are written anew.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "top_file.h"
#include "top_view.h"

#define MS    1000000ull
#define S     1000000000ull
#define START (1000 * S)
#define CLOCK 1700000000000000000ll /* 2023-11-14 22:13:20 UTC */

static const char *golden; /* folder */

/* ---- the machine ---------------------------------------------------------------------------- */

struct made {
    const char *comm, *command, *cgroup;
    pid_t pid, tid;
    uint64_t run, ready;    /* ms of each second */
    uint32_t cause, cause2; /* waits: half each, where there are two */
    uint32_t switches;      /* 0: it sleeps */
    uint8_t state;
};

#define POD                                                                                        \
    "/kubepods.slice/kubepods-burstable.slice/"                                                    \
    "kubepods-burstable-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice/"                            \
    "cri-containerd-3f4e5d6c7b8a90123456789012345678901234567890123456789012345678ab.scope"

static const struct made machine[] = {
    {"postgres", "postgres: checkpointer", "/system.slice/pg", 2210, 2210, 21, 3, PRCB_CAUSE_DISK,
     0, 812, TOP_WAIT},
    {"postgres", "postgres: app shop [local] SELECT", "/system.slice/pg", 2211, 2211, 300, 100,
     PRCB_CAUSE_SOCKET, PRCB_CAUSE_DISK, 4000, TOP_RUN},
    {"postgres", "postgres: app shop [local] idle", "/system.slice/pg", 2212, 2212, 0, 0,
     PRCB_CAUSE_EPOLL, 0, 0, TOP_WAIT},
    {"api-server", "/usr/bin/api-server --port 8080", "/web.slice", 3312, 3312, 1, 0,
     PRCB_CAUSE_EPOLL, 0, 40, TOP_WAIT},
    {"worker-7", NULL, NULL, 3312, 3340, 380, 112, PRCB_CAUSE_FUTEX, PRCB_CAUSE_SOCKET, 9100,
     TOP_WAIT},
    {"worker-5", NULL, NULL, 3312, 3338, 714, 200, PRCB_CAUSE_FUTEX, 0, 7700, TOP_READY},
    {"worker-6", NULL, NULL, 3312, 3339, 0, 0, PRCB_CAUSE_FUTEX, 0, 0, TOP_WAIT},
    {"zstd", "zstd -T1 /backup/da\033]52;c;eA==\007ta", POD, 4711, 4711, 979, 21, 0, 0, 40,
     TOP_RUN},
    {"caf\303\251 \346\235\261\344\272\254", "caf\303\251", "/user.slice", 5000, 5000, 0, 0,
     PRCB_CAUSE_MUTEX, 0, 0, TOP_WAIT},
    {"kworker/0:1", NULL, NULL, 20, 20, 2, 1, PRCB_CAUSE_WORKER, 0, 30, TOP_WAIT},
};
#define MACHINE (sizeof(machine) / sizeof(machine[0]))

static void add_wait(const struct made *made, uint64_t wait, struct top_delta *delta,
                     struct top_part *parts)
{
    uint64_t half = made->cause2 ? wait / 2 : wait;

    delta->wait_ns = wait;
    if (made->cause && wait)
        parts[delta->part_count++] = (struct top_part){made->cause, made->switches, half};
    if (made->cause2)
        parts[delta->part_count++] = (struct top_part){made->cause2, made->switches, wait - half};
}

static void add_thread(struct top_model *m, const struct made *made, uint64_t now, bool first)
{
    struct top_delta delta = {.wall_ns = S,
                              .run_ns = made->run * MS,
                              .ready_ns = made->ready * MS,
                              .switches = made->switches};
    struct top_part parts[2];
    struct top_process *process;

    assert_int_equal(top_model_thread(m, (uint64_t)made->tid << 8, made->pid, made->tid, made->comm,
                                      now - S, &delta.thread),
                     0);
    process = &m->processes[m->threads[delta.thread].process];
    if (made->command)
        assert_int_equal(top_model_set_text(&process->command, made->command), 0);
    if (made->cgroup)
        assert_int_equal(top_model_set_cgroup(process, made->cgroup), 0);
    m->threads[delta.thread].kernel = made->pid == 20;
    delta.now = (struct top_now){.state = made->state,
                                 .cause = (uint8_t)made->cause,
                                 .since_ns = now - (made->switches ? 12 * MS : 500 * S)};
    if (!made->switches && !first)
        return;
    add_wait(made, S - delta.run_ns - delta.ready_ns, &delta, parts);
    assert_int_equal(top_model_add(m, &delta, parts), 0);
}

static void add_interval(struct top_model *m, int number)
{
    struct top_frame frame = {
        .end_ns = START + (uint64_t)number * S,
        .wall_ns = S,
        .clock_ns = CLOCK + number * (int64_t)S,
        .present = ~0ull,
        .processors = {.known = true, .online = 4, .exact = true, .switches = 182000}};

    frame.processors.parts[PROCESSOR_user_ns] = 1600 * MS;
    frame.processors.parts[PROCESSOR_kernel_ns] = 400 * MS;
    frame.processors.parts[PROCESSOR_idle_ns] = 2000 * MS;
    top_model_begin(m);
    for (size_t i = 0; i < MACHINE; i++) {
        struct made made = machine[i];

        made.ready += made.switches && made.ready && number % 4 == 0 ? 5 : 0;
        made.run -= made.run > 5 && number % 4 == 0 ? 5 : 0;
        add_thread(m, &made, frame.end_ns, number == 1);
    }
    assert_int_equal(top_model_end(m, &frame), 0);
}

struct top {
    struct top_model model;
    struct top_ui ui;
    struct top_grid grid;
};

static void some_wait(void *ctx, const struct top_row *row, char *ret, size_t size)
{
    snprintf(ret, size, "%s", row->tid == 3340 ? "mutex < cache_get" : "");
}

static void some_where(void *ctx, const struct top_row *row, uint32_t cause, struct top_pieces *ret)
{
    *ret = (struct top_pieces){.count = 2, .whole_ns = 100, .known_ns = 97};
    ret->pieces[0] = (struct top_piece){91, 5, TOP_NONE, "cache_get < handle_get < worker_main"};
    ret->pieces[1] = (struct top_piece){6, 1, TOP_NONE, "evil\033[2Jname"};
}

static void some_whom(void *ctx, const struct top_row *row, uint32_t cause, struct top_pieces *ret)
{
    struct top *t = ctx;

    *ret = (struct top_pieces){.count = 2, .whole_ns = 100, .known_ns = 100};
    ret->pieces[0] =
        (struct top_piece){44, 5, top_model_find(&t->model, 3338ull << 8), "worker-5 (3338)"};
    ret->pieces[1] = (struct top_piece){56, 1, TOP_NONE, "timer (timed out)"};
}

static void some_path(void *ctx, const struct top_row *row, struct top_pieces *ret)
{
    struct top *t = ctx;

    *ret = (struct top_pieces){.count = 2, .whole_ns = 100, .known_ns = 90};
    ret->pieces[0] = (struct top_piece){90, 1, TOP_NONE, "2 threads (worker) running"};
    ret->pieces[1] = (struct top_piece){10, 1, top_model_find(&t->model, 3338ull << 8),
                                        "worker-5 (3338) in sleep: nap < fetch_rates"};
}

static int set_up(void **state)
{
    struct top *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    top_model_init(&t->model);
    for (int i = 1; i <= 40; i++)
        add_interval(&t->model, i);
    top_ui_init(&t->ui, &t->model);
    snprintf(t->ui.setting.host, sizeof(t->ui.setting.host), "web-17");
    snprintf(t->ui.setting.tier, sizeof(t->ui.setting.tier), "tier bpf");
    t->ui.setting.interval_ns = S;
    t->ui.details = (struct top_details){
        .where = some_where, .whom = some_whom, .path = some_path, .wait = some_wait, .ctx = t};
    t->grid.unicode = true;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct top *t = *state;

    top_ui_deinit(&t->ui);
    top_grid_deinit(&t->grid);
    top_model_deinit(&t->model);
    free(t);
    return 0;
}

static void draw(struct top *t, int width, int height)
{
    assert_int_equal(top_grid_resize(&t->grid, width, height), 0);
    assert_int_equal(top_ui_prepare(&t->ui), 0);
    top_view_draw(&t->ui, &t->grid);
}

static bool shows(const struct top *t, const char *text)
{
    char line[2048];

    for (int y = 0; y < t->grid.height; y++) {
        top_grid_line(&t->grid, y, line, sizeof(line));
        if (strstr(line, text))
            return true;
    }
    return false;
}

static void type(struct top *t, const char *keys)
{
    for (; *keys; keys++) {
        top_ui_key(&t->ui, *keys == '\n' ? (uint32_t)TOP_KEY_ENTER : (unsigned char)*keys);
        assert_int_equal(top_ui_prepare(&t->ui), 0);
    }
}

/* ---- what it adds up to -----------------------------------------------------------------------
 */

static void parts_of_rows_sum_to_their_wall(void **state)
{
    struct top *t = *state;

    for (int group = TOP_THREADS; group < TOP_CAUSES; group++) {
        t->ui.choice.group = (enum top_group)group;
        for (int sleeping = 0; sleeping < 2; sleeping++) {
            uint64_t walls = 0;

            t->ui.choice.sleeping = sleeping;
            assert_int_equal(top_ui_prepare(&t->ui), 0);
            for (uint32_t i = 0; i < t->ui.rows.count; i++) {
                const struct top_row *row = &t->ui.rows.rows[i];
                uint64_t waits = 0;

                for (int k = 1; k < PRCB_CAUSE_MAX; k++)
                    waits += row->ns[k];
                assert_int_equal(row->run_ns + row->ready_ns + row->wait_ns, row->wall_ns);
                assert_int_equal(waits, row->wait_ns);
                walls += row->wall_ns;
            }
            if (sleeping)
                assert_int_equal(walls, t->ui.rows.total.wall_ns);
            assert_int_equal(t->ui.rows.total.wall_ns, MACHINE * S);
            assert_int_equal(t->ui.rows.threads, MACHINE);
        }
    }
}

static void sleepers_are_counted_and_locks_are_not_sleep(void **state)
{
    struct top *t = *state;

    assert_int_equal(top_ui_prepare(&t->ui), 0);
    assert_int_equal(t->ui.rows.sleeping, 2); /* epoll and futex; the kernel's mutex is shown */
    assert_int_equal(t->ui.rows.sleeping_processes, 2);
    assert_int_equal(t->ui.rows.count, MACHINE - 2);
    draw(t, 100, 30);
    assert_true(shows(t, "asleep: 2 threads of 2 processes"));
}

/* A sleeper whose stack says that it waits for a lock is no sleeper, as long as that wait goes on.
 */
static void a_lock_by_its_stack_is_not_sleep(void **state)
{
    struct top *t = *state;
    struct top_thread *thread;
    uint32_t at = 0;

    assert_int_equal(top_ui_prepare(&t->ui), 0);
    thread = top_model_next_unknown(&t->model, &at); /* epoll is idle, a kernel mutex is not */
    assert_non_null(thread);
    assert_int_equal(thread->tid, 3339);
    assert_null(top_model_next_unknown(&t->model, &at));
    thread->asked_ns = thread->blocked_ns = thread->shown.since_ns;
    at = 0;
    assert_null(top_model_next_unknown(&t->model, &at));
    assert_int_equal(top_ui_prepare(&t->ui), 0);
    assert_int_equal(t->ui.rows.sleeping, 1);
    draw(t, 100, 30);
    assert_true(shows(t, "worker-6"));
    thread->blocked_ns--; /* it was another wait */
    assert_int_equal(top_ui_prepare(&t->ui), 0);
    assert_int_equal(t->ui.rows.sleeping, 2);
}

static void order_is_by_time_neither_running_nor_idle(void **state)
{
    struct top *t = *state;
    uint64_t last = UINT64_MAX;

    assert_int_equal(top_ui_prepare(&t->ui), 0);
    for (uint32_t i = 0; i < t->ui.rows.count; i++) {
        assert_true(t->ui.rows.rows[i].busy_ns <= last);
        last = t->ui.rows.rows[i].busy_ns;
    }
    type(t, "P");
    assert_int_equal(t->ui.rows.rows[0].tid, 4711);
    type(t, "I");
    assert_int_equal(t->ui.rows.rows[t->ui.rows.count - 1].tid, 4711);
}

static void filters(void **state)
{
    static const struct {
        const char *filter;
        uint32_t rows;
    } cases[] = {{"postgres", 3},        {"cause:futex", 3},       {"ready>15 run>50", 1},
                 {"cgroup:web", 4},      {"pid:3312 futex>99", 1}, {"checkpointer", 1},
                 {"disk<1 pid:4711", 1}, {"nothing", 0},           {"cgroup:3f4e5d", 1},
                 {"cgroup:pod", 1},      {"kworker/0:1", 1},       {"postgres:", 3}};
    static const char *const wrong[] = {"caus:futex", "Cause:futex", "usr:root", "cgroups:web",
                                        "redy>5"};
    struct top *t = *state;
    char word[64];
    struct top_filter filter = {.count = 3};

    t->ui.choice.sleeping = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(top_filter_parse(cases[i].filter, &t->ui.filter, word, sizeof(word)), 0);
        assert_int_equal(top_ui_prepare(&t->ui), 0);
        if (t->ui.rows.count != cases[i].rows)
            fail_msg("%s: %u", cases[i].filter, t->ui.rows.count);
    }
    assert_int_equal(top_filter_parse("cause:none ready>5", &filter, word, sizeof(word)), -EINVAL);
    assert_string_equal(word, "cause:none");
    assert_int_equal(top_filter_parse("ready>x", &filter, word, sizeof(word)), -EINVAL);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(top_filter_parse(wrong[i], &filter, word, sizeof(word)), -EINVAL);
    assert_int_equal(filter.count, 3);
}

/* A container is called by its id, and its path stands in its panes. */
static void containers_have_names(void **state)
{
    struct top *t = *state;

    top_ui_prepare(&t->ui);
    for (int i = 0; i < TOP_CGROUPS; i++)
        type(t, "g");
    draw(t, 200, 30);
    assert_true(shows(t, "container 3f4e5d6c7b8a, pod 1b4e28ba"));
    assert_false(shows(t, "kubepods"));
    type(t, "/3f4e5d\n\n");
    draw(t, 400, 30);
    assert_int_equal(t->ui.screen, TOP_PANES);
    assert_int_equal(t->ui.subject_count, 1);
    assert_true(shows(t, "cgroup /kubepods.slice/kubepods-burstable.slice/"));
}

static void history_is_of_the_same_time(void **state)
{
    struct top *t = *state;

    draw(t, 100, 30);
    type(t, "/worker-7\n\n"); /* Enter: panes */
    draw(t, 100, 30);
    assert_int_equal(t->ui.screen, TOP_PANES);
    assert_int_equal(t->ui.subject.tid, 3340);
    assert_int_equal(t->ui.subject.wall_ns, 40 * S);
    assert_int_equal(t->ui.subject.run_ns + t->ui.subject.ready_ns + t->ui.subject.wait_ns, 40 * S);
    /* A sleeper's history is of its sleep. */
    top_ui_key(&t->ui, TOP_KEY_ESC);
    type(t, "i/worker-6\n\n");
    draw(t, 100, 30);
    assert_int_equal(t->ui.subject.ns[PRCB_CAUSE_FUTEX], 40 * S);
}

static void following_a_waker_is_enter(void **state)
{
    struct top *t = *state;

    draw(t, 100, 30);
    type(t, "/worker-7\n\n");
    draw(t, 100, 30);
    top_ui_key(&t->ui, TOP_KEY_TAB);
    draw(t, 100, 30);
    assert_int_equal(t->ui.pane, TOP_WHOM);
    type(t, "\n");
    draw(t, 100, 30);
    assert_int_equal(t->ui.subject.tid, 3338);
    assert_true(shows(t, "worker-5 (3338)"));
}

static void following_a_path_is_enter(void **state)
{
    struct top *t = *state;

    draw(t, 100, 30);
    type(t, "/worker-7\n\n");
    draw(t, 100, 30);
    assert_true(shows(t, "CRITICAL PATH (what waits lead to)"));
    assert_true(shows(t, "worker-5 (3338) in sleep: nap"));
    for (int i = 0; i < TOP_PATH; i++)
        top_ui_key(&t->ui, TOP_KEY_TAB);
    assert_int_equal(t->ui.pane, TOP_PATH);
    type(t, "\n"); /* two threads are no row to go to */
    assert_int_equal(t->ui.subject.tid, 3340);
    top_ui_key(&t->ui, TOP_KEY_DOWN);
    type(t, "\n");
    draw(t, 100, 30);
    assert_int_equal(t->ui.subject.tid, 3338);
    type(t, "T"); /* of the present alone */
    draw(t, 100, 30);
    assert_false(shows(t, "in sleep: nap"));
}

static void time_goes_back_and_on(void **state)
{
    struct top *t = *state;

    draw(t, 100, 30);
    assert_true(shows(t, "LIVE"));
    type(t, "TT");
    draw(t, 100, 30);
    assert_true(shows(t, "PAUSED -00:02"));
    assert_int_equal(t->ui.position, 37);
    add_interval(&t->model, 41); /* a paused screen stays */
    draw(t, 100, 30);
    assert_true(shows(t, "PAUSED -00:03"));
    type(t, "d500ms\n");
    assert_int_equal(t->ui.setting.interval_ns, 500000000);
    type(t, "d99ms\nd2h\ndsoon\nd\n");
    assert_int_equal(t->ui.setting.interval_ns, 500000000);
    type(t, ":interval 5s\n");
    assert_int_equal(t->ui.setting.interval_ns, 5000000000);
    type(t, "J10s\n");
    assert_int_equal(t->ui.position, 27);
    type(t, "j2\n");
    assert_int_equal(t->ui.position, 29);
    type(t, "bnever\n");
    assert_true(t->ui.message_wrong);
    type(t, "b22:13:25\n");
    assert_int_equal(t->ui.position, 4);
    type(t, "L");
    draw(t, 100, 30);
    assert_true(shows(t, "LIVE"));
    assert_int_equal(t->ui.position, 40);
    type(t, ":back-by 5s\n");
    assert_int_equal(t->ui.position, 35);
}

static void memory_is_bounded(void **state)
{
    struct top *t = *state;

    t->model.max_frames = 50;
    type(t, "Z"); /* paused at what will go */
    for (int i = 41; i < 5000; i++)
        add_interval(&t->model, i);
    assert_int_equal(t->model.frame_count, 50);
    draw(t, 100, 30);
    assert_true(shows(t, "PAUSED"));
    /* Threads that sleep since before the history began still do. */
    t->ui.choice.sleeping = true;
    draw(t, 100, 30);
    assert_true(shows(t, "worker-6"));
    /* Thousands of short threads leave no trace behind. */
    for (int i = 5000; i < 9000; i++) {
        struct made made = {"short", "short", NULL, i + 10000, i + 10000, 1, 0, 0, 0, 1, TOP_ENDED};
        struct top_frame frame = {
            .end_ns = START + (uint64_t)i * S, .wall_ns = S, .present = ~0ull};

        top_model_begin(&t->model);
        add_thread(&t->model, &made, frame.end_ns, false);
        t->model.threads[top_model_find(&t->model, (uint64_t)made.tid << 8)].end_ns = frame.end_ns;
        assert_int_equal(top_model_end(&t->model, &frame), 0);
    }
    assert_true(t->model.thread_count < 200);
    assert_true(t->model.process_count < 200);
}

/* Threads of a name that ended in an interval are one row: there is nobody to look at. */
static void ended_threads_are_one_row(void **state)
{
    static const char *const names[] = {"short", "other", "short", "short"};
    struct top *t = *state;
    struct top_frame frame = {.end_ns = START + 41ull * S, .wall_ns = S, .present = ~0ull};
    uint32_t found = 0;

    top_model_begin(&t->model);
    for (int i = 0; i < 4; i++) {
        struct made made = {names[i], "", NULL, i + 10000, i + 10000, 100, 0, 0, 0, 1, TOP_ENDED};

        add_thread(&t->model, &made, frame.end_ns, false);
        t->model.threads[top_model_find(&t->model, (uint64_t)made.tid << 8)].end_ns = frame.end_ns;
    }
    assert_int_equal(top_model_end(&t->model, &frame), 0);
    draw(t, 100, 30);
    for (uint32_t i = 0; i < t->ui.rows.count; i++) {
        const struct top_row *row = &t->ui.rows.rows[i];

        if (!row->ended)
            continue;
        found++;
        assert_int_equal(row->threads, strcmp(row->name, "short") ? 1 : 3);
    }
    assert_int_equal(found, 2);
    assert_true(shows(t, "(3 ended)"));
    assert_true(shows(t, "(ended)"));
}

/* What is written is what is read: rows and screens are the same. */
static void a_file_has_the_same_rows(void **state)
{
    struct top *t = *state, read = {.grid = {.unicode = true}};
    char path[] = "/tmp/test-top-XXXXXX";
    struct top_writer *writer;
    struct top_reader *reader;
    struct prcb_error err;
    bool changed;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    t->model.max_frames = 700;
    for (int i = 41; i <= 700; i++)
        add_interval(&t->model, i);
    if (top_writer_open(path, &writer, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < t->model.frame_count; i++)
        assert_int_equal(top_writer_add(writer, &t->model, i, &err), 0);
    assert_int_equal(top_writer_close(writer, &err), 0);
    if (top_reader_open(path, S, &reader, &err))
        fail_msg("%s", err.text);
    top_model_init(&read.model);
    read.model.max_frames = 70; /* less than the file has */
    top_ui_init(&read.ui, &read.model);
    read.ui.mode = t->ui.mode = TOP_FILE;
    t->ui.choice.sleeping = read.ui.choice.sleeping = true;
    for (uint32_t i = 0; i < t->model.frame_count; i += 7) {
        const struct top_frame *frame = top_model_frame(&t->model, i);

        assert_int_equal(top_reader_load(reader, &read.model, frame->clock_ns, &changed, &err), 0);
        t->ui.position_ns = read.ui.position_ns = frame->end_ns;
        assert_int_equal(top_ui_prepare(&t->ui), 0);
        assert_int_equal(top_ui_prepare(&read.ui), 0);
        assert_int_equal(read.ui.rows.count, t->ui.rows.count);
        for (uint32_t k = 0; k < t->ui.rows.count; k++) {
            const struct top_row *a = &t->ui.rows.rows[k], *b = &read.ui.rows.rows[k];

            assert_int_equal(a->tid, b->tid);
            assert_string_equal(a->name, b->name);
            assert_int_equal(a->now.state, b->now.state);
            assert_int_equal(a->now.cause, b->now.cause);
            assert_int_equal(a->now.since_ns, b->now.since_ns);
            assert_int_equal(a->wall_ns, b->wall_ns);
            assert_int_equal(a->run_ns, b->run_ns);
            assert_memory_equal(a->ns, b->ns, sizeof(a->ns));
            assert_memory_equal(a->counts, b->counts, sizeof(a->counts));
            assert_true(!a->detail == !b->detail && (!a->detail || !strcmp(a->detail, b->detail)));
        }
    }
    top_reader_close(reader);
    top_ui_deinit(&read.ui);
    top_model_deinit(&read.model);
    unlink(path);
}

/* What is in the directory: files, and their bytes. */
static unsigned survey(const char *path, uint64_t *ret_bytes)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    unsigned files = 0;

    *ret_bytes = 0;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        struct stat about;

        assert_int_equal(fstatat(dirfd(folder), entry->d_name, &about, 0), 0);
        *ret_bytes += S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
        files += entry->d_name[0] != '.';
    }
    closedir(folder);
    return files;
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    assert_int_equal(rmdir(path), 0);
}

/* Files of a directory are begun anew at their share of the room, and the oldest go; a file ends.
 */
static void a_directory_keeps_to_its_size(void **state)
{
    const uint64_t most = 1u << 20;
    char path[] = "/tmp/prcb-top-XXXXXX", file[64], day[128];
    struct top_history *history;
    struct top *t = *state;
    struct prcb_error err;
    uint64_t bytes, largest = 0;
    unsigned files;
    int result = 0, fd;
    struct stat about;

    assert_non_null(mkdtemp(path));
    assert_int_equal(top_history_open(path, 3, most, &history, &err), 0);
    for (int i = 0; i < 1600; i++) {
        add_interval(&t->model, 100 + i);
        assert_int_equal(top_history_add(history, &t->model, t->model.frame_count - 1, &err), 0);
        if (i % 64 == 0 && survey(path, &bytes) && bytes > largest)
            largest = bytes;
    }
    assert_int_equal(top_history_close(history, &err), 0);
    files = survey(path, &bytes);
    assert_in_range(files, 3, 5);
    assert_in_range(bytes, most / 2, most + most / 4);
    assert_in_range(largest, most / 2, most + most); /* with the log of the present file */
    remove_folder(path);

    /* A day that takes all there is leaves the others theirs. */
    assert_non_null(mkdtemp(strcpy(path, "/tmp/prcb-top-XXXXXX")));
    for (time_t i = 1; i <= 3; i++) {
        time_t when = time(NULL) - i * 86400;

        assert_int_not_equal(strftime(file, sizeof(file), "prcb-%Y-%m-%d.db", localtime(&when)), 0);
        snprintf(day, sizeof(day), "%s/%s", path, file);
        fd = open(day, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && !ftruncate(fd, most / 16));
        close(fd);
    }
    assert_int_equal(top_history_open(path, 7, most, &history, &err), 0);
    for (int i = 0; i < 1600; i++)
        assert_int_equal(top_history_add(history, &t->model, t->model.frame_count - 1, &err), 0);
    assert_int_equal(top_history_close(history, &err), 0);
    survey(path, &bytes);
    assert_in_range(bytes, most / 2, most + most / 4);
    assert_int_equal(access(day, F_OK), 0); /* of the first day */
    remove_folder(path);

    assert_non_null(mkdtemp(strcpy(path, "/tmp/prcb-top-XXXXXX")));
    snprintf(file, sizeof(file), "%s/one.db", path);
    assert_int_equal(top_history_open(file, 3, 1u << 18, &history, &err), 0);
    for (int i = 0; i < 1600 && !result; i++)
        result = top_history_add(history, &t->model, t->model.frame_count - 1, &err);
    assert_int_equal(result, -EFBIG);
    assert_non_null(strstr(err.text, "--max-size"));
    assert_int_equal(top_history_close(history, NULL), 0);
    assert_int_equal(stat(file, &about), 0);
    assert_in_range(about.st_size, 1u << 17, 1u << 18);
    remove_folder(path);
}

/* ---- what it looks like ------------------------------------------------------------------------
 */

static void compare(const struct top *t, const char *name)
{
    char path[512], line[4096], wanted[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.txt", golden, name);
    file = fopen(path, getenv("TOP_WRITE_GOLDEN") ? "w" : "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    for (int y = 0; y < t->grid.height; y++) {
        top_grid_line(&t->grid, y, line, sizeof(line));
        if (getenv("TOP_WRITE_GOLDEN")) {
            fprintf(file, "%s\n", line);
            continue;
        }
        if (!fgets(wanted, sizeof(wanted), file))
            fail_msg("%s has %d lines", path, y);
        wanted[strcspn(wanted, "\n")] = '\0';
        if (strcmp(line, wanted))
            fail_msg("%s, line %d:\n is '%s'\n not '%s'", path, y + 1, line, wanted);
    }
    fclose(file);
}

/* A cause has a column where a row on the screen has time in it, and for some intervals after. */
static void a_column_of_zeros_is_none(void **state)
{
    struct top *t = *state;
    uint32_t elsewhere = 0;

    memset(t->ui.column_unseen, 100, sizeof(t->ui.column_unseen));
    t->ui.choice.group = TOP_THREADS;
    t->ui.page = 2;
    assert_int_equal(top_ui_prepare(&t->ui), 0);
    for (uint32_t k = 1; k < PRCB_CAUSE_MAX; k++) {
        uint64_t shown = 0, all = 0;
        bool has = false;

        for (uint32_t i = 0; i < t->ui.rows.count; i++) {
            shown += i < t->ui.page ? t->ui.rows.rows[i].ns[k] : 0;
            all += t->ui.rows.rows[i].ns[k];
        }
        for (uint32_t i = 0; i < t->ui.column_count; i++)
            has |= t->ui.columns[i] == k;
        assert_true(!has || shown);
        elsewhere += all && !shown;
    }
    assert_true(t->ui.column_count && elsewhere);
}

static void screens(void **state)
{
    static const struct {
        int width, height;
    } sizes[] = {{40, 10}, {80, 24}, {100, 30}, {200, 60}};
    struct top *t = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int unicode = 0; unicode < 2; unicode++) {
            for (int group = 0; group < TOP_GROUPS + 3; group++) {
                char name[128];

                t->grid.unicode = unicode;
                t->ui.screen = TOP_LIST;
                t->ui.column_count = t->ui.column_shown = t->ui.cursor = t->ui.scroll = 0;
                t->ui.choice.group = group < TOP_GROUPS ? (enum top_group)group : TOP_THREADS;
                t->ui.choice.tree = group == TOP_GROUPS;
                if (t->ui.choice.tree)
                    t->ui.choice.group = TOP_PROCESSES;
                if (group == TOP_GROUPS + 2)
                    t->ui.screen = TOP_HELP;
                assert_int_equal(top_ui_prepare(&t->ui), 0);
                if (group == TOP_GROUPS + 1)
                    type(t, "/worker-7\n\n");
                draw(t, sizes[i].width, sizes[i].height);
                draw(t, sizes[i].width, sizes[i].height); /* twice the same */
                snprintf(name, sizeof(name), "%dx%d-%s-%s", sizes[i].width, sizes[i].height,
                         group < TOP_GROUPS        ? top_group_names[group]
                         : group == TOP_GROUPS     ? "tree"
                         : group == TOP_GROUPS + 1 ? "panes"
                                                   : "help",
                         unicode ? "utf8" : "ascii");
                compare(t, name);
            }
        }
    }
}

/* No cell holds a control, whatever names are made of; ASCII means ASCII. */
static void names_are_harmless(void **state)
{
    struct top *t = *state;

    t->ui.choice.sleeping = true;
    for (int unicode = 0; unicode < 2; unicode++) {
        for (int group = 0; group < TOP_GROUPS; group++) {
            t->grid.unicode = unicode;
            t->ui.choice.group = (enum top_group)group;
            draw(t, 200, 60);
            for (int i = 0; i < t->grid.width * t->grid.height; i++) {
                uint32_t code = t->grid.cells[i].code;

                assert_true(!code || (code >= ' ' && code < 0x7f) || (unicode && code >= 0xa0));
            }
        }
    }
}

static void too_small_says_so(void **state)
{
    struct top *t = *state;

    draw(t, 39, 10);
    assert_true(shows(t, "prcb top needs 40x10"));
    draw(t, 1, 1);
    draw(t, 200, 9);
    assert_true(shows(t, "prcb top needs 40x10"));
}

/* Ten thousand keys, clicks and sizes, in an order that is the same each time. */
static void any_keys(void **state)
{
    static const uint32_t special[] = {TOP_KEY_UP,   TOP_KEY_DOWN,     TOP_KEY_PGUP,  TOP_KEY_PGDN,
                                       TOP_KEY_HOME, TOP_KEY_END,      TOP_KEY_ENTER, TOP_KEY_TAB,
                                       TOP_KEY_ESC,  TOP_KEY_BACKSPACE};
    struct top *t = *state;
    uint32_t seed = 20231114, number = 41;

    t->model.max_frames = 60;
    for (int i = 0; i < 10000; i++) {
        uint32_t chance = (seed = seed * 1664525 + 1013904223) >> 8, kind = chance % 16;

        if (kind < 8)
            top_ui_key(&t->ui, chance / 16 % 128);
        else if (kind < 12)
            top_ui_key(&t->ui, special[chance / 16 % (sizeof(special) / sizeof(special[0]))]);
        else if (kind == 12)
            top_ui_key(&t->ui, TOP_KEY_F1 + chance / 16 % 12);
        else if (kind == 13)
            top_ui_click(&t->ui, &t->grid, (int)(chance / 16 % 60), (int)(chance / 1024 % 120),
                         chance & 1 << 20);
        else if (kind == 14)
            add_interval(&t->model, (int)number++);
        else
            top_ui_wheel(&t->ui, chance & 16 ? 1 : -1);
        t->ui.request = TOP_REQUEST_NONE;
        draw(t, 1 + (int)(chance / 64 % 150), 1 + (int)(chance / 4096 % 70));
    }
}

/* The made-up machine as a recording, for tests on terminals. */
static int write_machine(const char *path)
{
    struct top_writer *writer;
    struct prcb_error err;
    void *state;
    struct top *t;

    set_up(&state);
    t = state;
    if (top_writer_open(path, &writer, &err))
        return fprintf(stderr, "%s\n", err.text), 1;
    for (uint32_t i = 0; i < t->model.frame_count; i++) {
        if (top_writer_add(writer, &t->model, i, &err))
            return fprintf(stderr, "%s\n", err.text), 1;
    }
    top_writer_close(writer, &err);
    return tear_down(&state);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_of_rows_sum_to_their_wall, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sleepers_are_counted_and_locks_are_not_sleep, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_lock_by_its_stack_is_not_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(order_is_by_time_neither_running_nor_idle, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(filters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(containers_have_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(history_is_of_the_same_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(following_a_waker_is_enter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(following_a_path_is_enter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_goes_back_and_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ended_threads_are_one_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_has_the_same_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_directory_keeps_to_its_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_column_of_zeros_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(screens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_harmless, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_small_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(any_keys, set_up, tear_down),
    };

    if (argc < 2)
        return fprintf(stderr, "usage: test_top FOLDER | --write FILE\n"), 2;
    if (argc > 2)
        return write_machine(argv[2]);
    golden = argv[1];
    setenv("TZ", "UTC0", 1);
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
