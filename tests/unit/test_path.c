/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The critical path among pieces that are written down here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path.h"

enum { CLIENT, SERVER, OTHER };

/* Takes the pieces, and finds the path of the client. */
static struct path_step *find(const struct path_piece *pieces, size_t count, uint64_t to,
                              struct path **ret_path, size_t *ret_count)
{
    struct path_piece *copy = calloc(count, sizeof(*copy));
    struct path_step *steps = NULL;

    assert_non_null(copy);
    memcpy(copy, pieces, count * sizeof(*copy));
    assert_int_equal(path_open(copy, count, ret_path), 0);
    assert_int_equal(path_find(*ret_path, CLIENT, 0, to, &steps, ret_count), 0);
    return steps;
}

static void check(const struct path_step *step, enum path_kind kind, size_t thread, uint64_t start,
                  uint64_t end, unsigned depth)
{
    assert_int_equal(step->kind, kind);
    assert_int_equal(step->thread, thread);
    assert_int_equal(step->start_ns, start);
    assert_int_equal(step->end_ns, end);
    assert_int_equal(step->depth, depth);
}

#define PIECE(whose, doing, from, to) WAIT(whose, doing, from, to, 0, PATH_NONE, PATH_NO_CPU)
#define WAIT(whose, doing, from, to, at, by_whom, where)                                           \
    {                                                                                              \
        .thread = whose, .kind = doing, .start_ns = from, .end_ns = to, .woken_ns = at,            \
        .waker = by_whom, .cpu = where                                                             \
    }

/* What the server did while the client waited for it, and nothing else of it. */
static void test_goes_to_the_waker_and_back(void **state)
{
    const struct path_piece pieces[] = {
        PIECE(SERVER, PATH_RUNS, 40, 70),
        PIECE(CLIENT, PATH_RUNS, 0, 20),
        WAIT(CLIENT, PATH_WAITS, 20, 100, 90, SERVER, PATH_NO_CPU),
        PIECE(SERVER, PATH_WAITS, 0, 40),
        PIECE(SERVER, PATH_WAITS, 70, 95),
        PIECE(CLIENT, PATH_RUNS, 100, 110),
    };
    struct path *path;
    size_t count;
    struct path_step *steps = find(pieces, 6, 110, &path, &count);

    assert_int_equal(count, 6);
    check(&steps[0], PATH_RUNS, CLIENT, 0, 20, 0);
    check(&steps[1], PATH_WAITS, SERVER, 20, 40, 1);
    check(&steps[2], PATH_RUNS, SERVER, 40, 70, 1);
    check(&steps[3], PATH_WAITS, SERVER, 70, 90, 1);
    check(&steps[4], PATH_READY, CLIENT, 90, 100, 0);
    check(&steps[5], PATH_RUNS, CLIENT, 100, 110, 0);
    free(steps);
    path_close(path);
}

/* A worker that had no work is not what its waker waited for until then. */
static void test_a_worker_without_work(void **state)
{
    struct path_piece pieces[] = {
        WAIT(CLIENT, PATH_WAITS, 20, 100, 100, SERVER, PATH_NO_CPU),
        PIECE(SERVER, PATH_WAITS, 0, 90),
        PIECE(SERVER, PATH_RUNS, 90, 120),
    };
    struct path *path;
    struct path_step *steps;
    size_t count;

    pieces[1].idle = true;
    steps = find(pieces, 3, 100, &path, &count);
    assert_int_equal(count, 3);
    check(&steps[0], PATH_UNKNOWN, CLIENT, 0, 20, 0);
    check(&steps[1], PATH_WAITS, CLIENT, 20, 90, 0);
    assert_int_equal(steps[1].piece->waker, SERVER);
    check(&steps[2], PATH_RUNS, SERVER, 90, 100, 1);
    free(steps);
    path_close(path);
}

/* Two that are said to have ended each other's waits at one moment lead to nobody, and end. */
static void test_a_circle_ends(void **state)
{
    const struct path_piece pieces[] = {
        WAIT(CLIENT, PATH_WAITS, 0, 50, 50, SERVER, PATH_NO_CPU),
        WAIT(SERVER, PATH_WAITS, 0, 50, 50, CLIENT, PATH_NO_CPU),
    };
    struct path *path;
    size_t count;
    struct path_step *steps = find(pieces, 2, 50, &path, &count);

    assert_int_equal(count, 1);
    assert_int_equal(steps[0].kind, PATH_WAITS);
    assert_int_equal(steps[0].end_ns - steps[0].start_ns, 50);
    free(steps);
    path_close(path);
}

static void test_who_had_the_processor(void **state)
{
    const struct path_piece pieces[] = {
        PIECE(CLIENT, PATH_READY, 10, 50),
        WAIT(CLIENT, PATH_RUNS, 50, 60, 0, PATH_NONE, 3),
        WAIT(OTHER, PATH_RUNS, 0, 45, 0, PATH_NONE, 3),
        WAIT(SERVER, PATH_RUNS, 0, 50, 0, PATH_NONE, 4),
    };
    struct path *path;
    size_t count;
    struct path_step *steps = find(pieces, 4, 60, &path, &count);

    assert_int_equal(count, 3);
    check(&steps[0], PATH_UNKNOWN, CLIENT, 0, 10, 0);
    assert_null(steps[0].piece);
    check(&steps[1], PATH_READY, CLIENT, 10, 50, 0);
    assert_int_equal(steps[1].other, OTHER);
    free(steps);
    path_close(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_to_the_waker_and_back),
        cmocka_unit_test(test_a_worker_without_work),
        cmocka_unit_test(test_a_circle_ends),
        cmocka_unit_test(test_who_had_the_processor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
