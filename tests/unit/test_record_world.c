/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads and mappings as a recording keeps them: which mapping an address is in after
 * later ones were laid over it, after forks and execs, and what is written of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "world.h"

struct fixture {
    char path[64];
    struct writer *writer;
    struct world *world;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct prcb_error err;
    int fd;

    snprintf(f->path, sizeof(f->path), "/tmp/prcb-world-XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(writer_create(f->path, &f->writer, &err), 0);
    assert_int_equal(world_open(f->writer, &f->world), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    world_close(f->world);
    assert_int_equal(writer_close(f->writer, NULL), 0);
    unlink(f->path);
    free(f);
    return 0;
}

static int64_t number(struct fixture *f, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t value;

    assert_int_equal(sqlite3_prepare_v2(writer_handle(f->writer), sql, -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void map(struct fixture *f, int64_t pid, uint64_t start, uint64_t end, uint64_t offset)
{
    const struct writer_map row = {
        .pid = pid, .start = start, .length = end - start, .file_offset = offset, .file = "/f"};

    assert_int_equal(world_map(f->world, &row), 0);
}

static void record_of(struct fixture *f, const char *build_id, uint64_t inode)
{
    const struct writer_map row = {.pid = 8,
                                   .start = 0x1000,
                                   .length = 0x1000,
                                   .file = "/f",
                                   .build_id = build_id,
                                   .device = inode ? 5 : 0,
                                   .inode = inode};

    assert_int_equal(world_map(f->world, &row), 0);
}

/* Two records of one mapping, in either order, are one row; those of the next one are another. */
static void test_two_records_of_a_map(void **state)
{
    static const char *const whole = "SELECT count(*) FROM maps WHERE pid = 8 AND device = 5 AND "
                                     "inode = CAST(substr(build_id, 2) AS INTEGER)";
    static const char *const all = "SELECT count(*) FROM maps WHERE pid = 8";
    struct fixture *f = *state;

    record_of(f, "b10", 0);
    record_of(f, NULL, 10);
    record_of(f, NULL, 11);
    record_of(f, "b11", 0);
    assert_int_equal(number(f, whole), 2);
    assert_int_equal(number(f, all), 2);
    record_of(f, NULL, 12); /* without a build id both say the same */
    record_of(f, NULL, 12);
    assert_int_equal(number(f, all), 3);
    record_of(f, "b13", 0); /* of a pair the other is lost */
    record_of(f, "b14", 0);
    assert_int_equal(number(f, all), 5);
}

/* The offset that the mapping of an address was made with; -1: it is in none. */
static int64_t at(struct fixture *f, int32_t pid, uint64_t address)
{
    char sql[256];
    int64_t frame = world_frame(f->world, pid, 0, false, address);

    assert_true(frame > 0);
    snprintf(sql, sizeof(sql),
             "SELECT ifnull((SELECT file_offset FROM maps WHERE id = map), -1) FROM stacks "
             "WHERE id = %lld",
             (long long)frame);
    return number(f, sql);
}

static void test_maps_over_maps(void **state)
{
    struct fixture *f = *state;

    map(f, 7, 0x1000, 0x5000, 1);
    map(f, 7, 0x8000, 0x9000, 2);
    assert_int_equal(at(f, 7, 0xfff), -1);
    assert_int_equal(at(f, 7, 0x1000), 1);
    assert_int_equal(at(f, 7, 0x4fff), 1);
    assert_int_equal(at(f, 7, 0x5000), -1);
    map(f, 7, 0x2000, 0x3000, 3); /* in the middle: both ends stay */
    assert_int_equal(at(f, 7, 0x1fff), 1);
    assert_int_equal(at(f, 7, 0x2000), 3);
    assert_int_equal(at(f, 7, 0x3000), 1);
    map(f, 7, 0x2800, 0x8800, 4); /* over three, and part of the last */
    assert_int_equal(at(f, 7, 0x27ff), 3);
    assert_int_equal(at(f, 7, 0x2801), 4);
    assert_int_equal(at(f, 7, 0x4000), 4);
    assert_int_equal(at(f, 7, 0x87ff), 4);
    assert_int_equal(at(f, 7, 0x8801), 2);
    map(f, 7, 0, 0x10000, 5); /* over all */
    assert_int_equal(at(f, 7, 0x1001), 5);
    assert_int_equal(at(f, 7, 0x8802), 5);
    assert_int_equal(at(f, 8, 0x1000), -1); /* another process */
}

static void test_forks_and_execs(void **state)
{
    struct fixture *f = *state;

    assert_true(world_thread(f->world, 10, 10, 1, "running") > 0);
    map(f, 10, 0x1000, 0x2000, 1);
    assert_int_equal(world_fork(f->world, 10, 10, 11, 11, 2), 0); /* a process */
    assert_int_equal(world_fork(f->world, 11, 11, 11, 12, 3), 0); /* its thread */
    assert_int_equal(at(f, 11, 0x1000), 1);
    map(f, 11, 0x1000, 0x2000, 2); /* the child's own: not its parent's */
    assert_int_equal(at(f, 11, 0x1001), 2);
    assert_int_equal(at(f, 10, 0x1001), 1);
    assert_int_equal(number(f, "SELECT parent_pid FROM threads WHERE tid = 11"), 10);
    assert_int_equal(number(f, "SELECT parent_pid IS NULL FROM threads WHERE tid = 12"), 1);
    assert_int_equal(world_name(f->world, 11, 11, "other", true, 4), 0);
    assert_int_equal(at(f, 11, 0x1002), -1); /* nothing is mapped after an exec */
    assert_int_equal(number(f, "SELECT count(*) FROM threads WHERE tid = 11"), 2);
    assert_int_equal(number(f, "SELECT min(end_ns) FROM threads WHERE tid = 11"), 4);
    /* What is known of one that a sample was taken of, a forked one and one that executes. */
    assert_int_equal(number(f, "SELECT start_state = 'running' FROM threads WHERE tid = 10"), 1);
    assert_int_equal(number(f, "SELECT start_state = 'ready' FROM threads WHERE tid = 11"), 1);
    assert_int_equal(number(f, "SELECT start_state = 'running' FROM threads WHERE start_ns = 4"),
                     1);
    map(f, 11, 0x1000, 0x2000, 3);
    assert_int_equal(at(f, 11, 0x1003), 3);
}

static void test_ends(void **state)
{
    const uint64_t second = 1000000000;
    struct fixture *f = *state;
    int64_t first = world_thread(f->world, 20, 20, second, NULL);

    map(f, 20, 0x1000, 0x2000, 1);
    assert_int_equal(world_exit(f->world, 20, 20, 2 * second), 0);
    /* Just after its end it may still be sampled. */
    assert_int_equal(world_thread(f->world, 20, 20, 2 * second + 1, NULL), first);
    assert_int_equal(at(f, 20, 0x1000), 1);
    assert_true(world_thread(f->world, 30, 30, 9 * second, NULL) > first);
    assert_int_equal(world_known_thread(f->world, 20, 20), 0);
    assert_int_equal(at(f, 20, 0x1001), -1);
    /* The number again, by a thread of another process. */
    assert_true(world_thread(f->world, 30, 20, 10 * second, NULL) > first);
    assert_int_equal(number(f, "SELECT end_ns FROM threads WHERE id = 1"), 2 * second);
}

static void test_names_with_line_ends(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(prctl(PR_SET_NAME, "two\nlines"), 0);
    assert_int_equal(world_look_at_thread(f->world, getpid(), gettid(), false, 1), 0);
    assert_int_equal(
        number(f, "SELECT count(*) FROM threads WHERE name = 'two' || char(10) || 'lines'"), 1);
}

static void test_frames_are_written_once(void **state)
{
    struct fixture *f = *state;
    int64_t outer, inner;

    outer = world_frame(f->world, 1, 0, false, 0x1000);
    inner = world_frame(f->world, 1, outer, true, UINT64_MAX - 5);
    assert_int_equal(world_frame(f->world, 1, 0, false, 0x1000), outer);
    assert_int_equal(world_frame(f->world, 1, outer, true, UINT64_MAX - 5), inner);
    assert_true(world_frame(f->world, 1, inner, true, UINT64_MAX - 5) > inner);
    assert_int_equal(number(f, "SELECT count(*) FROM stacks"), 3);
    assert_int_equal(number(f, "SELECT address FROM stacks WHERE id = 2"), -6);
    assert_int_equal(number(f, "SELECT map FROM stacks WHERE id = 2"), 1);
    /* More than there is room for at first: none is lost or mixed up. */
    for (uint64_t i = 0; i < 100000; i++)
        assert_true(world_frame(f->world, 1, 0, false, 0x100000 + i) > inner);
    assert_int_equal(number(f, "SELECT count(DISTINCT address) FROM stacks"), 100002);
    assert_int_equal(world_frame(f->world, 1, 0, false, 0x1000), outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_maps_over_maps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_records_of_a_map, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_forks_and_execs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_with_line_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_frames_are_written_once, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
