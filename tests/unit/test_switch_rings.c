/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rings of switch records, whose writer waits for nobody: what is read is whole and in order, what
 * was overwritten is counted, and whatever stands there leads to no place outside.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block_abi.h"
#include "switch_rings.h"

#define ELEMENTS   4
#define PLACES     (ELEMENTS * PRCB_SWITCHES_EACH)
#define PROCESSORS 2

static struct {
    struct prcb_switch_ring ring;
    struct prcb_switch_element elements[ELEMENTS];
} rings[PROCESSORS];

/* As the program does: the record, then the count. */
static void put(unsigned cpu, const struct prcb_switch_record *record)
{
    uint64_t at = rings[cpu].ring.written, words[sizeof(*record) / sizeof(uint64_t)];
    uint64_t *to = (uint64_t *)(void *)&rings[cpu]
                       .elements[at / PRCB_SWITCHES_EACH % ELEMENTS]
                       .records[at % PRCB_SWITCHES_EACH];

    memcpy(words, record, sizeof(words));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        __atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&rings[cpu].ring.written, at + 1, __ATOMIC_RELEASE);
}

static void put_out(unsigned cpu, uint64_t time, uint32_t tid)
{
    put(cpu, &(struct prcb_switch_record){.time_ns = time,
                                          .kind = PRCB_SWITCH_OUT,
                                          .tid = tid,
                                          .pid = tid,
                                          .cause = PRCB_CAUSE_PIPE,
                                          .syscall = 7,
                                          .by = 99 /* of another kind of record */});
}

static void put_in(unsigned cpu, uint64_t time, uint32_t tid)
{
    struct prcb_switch_record record = {.time_ns = time,
                                        .kind = PRCB_SWITCH_IN,
                                        .tid = tid,
                                        .pid = tid,
                                        .cause = 200,
                                        .by = 2,
                                        .waker_tid = 5,
                                        .ready_ns = 3};

    memset(record.comm, 'x', sizeof(record.comm)); /* without an end */
    put(cpu, &record);
}

/* As a session of one's own has it: both sides, or the one of who leaves. */
static void put_left(unsigned cpu, uint64_t time, uint32_t tid, uint32_t next)
{
    put(cpu, &(struct prcb_switch_record){
                 .time_ns = time,
                 .kind = PRCB_SWITCH_LEFT | (next ? PRCB_SWITCH_IN : 0),
                 .cause = next ? 200 : 99, /* that of another record */
                 .left_cause = PRCB_CAUSE_PIPE,
                 .flags = PRCB_SWITCH_NAMED | PRCB_SWITCH_USER,
                 .state = 2,
                 .syscall = 7,
                 .tid = next ? next : 99,
                 .pid = next ? next : 99,
                 .prio = 120,
                 .left_prio = 0, /* a deadline's: -1 */
                 .ready_ns = 3,
                 .by = 2,
                 .waker_tid = 5,
                 .came = "came",
                 .left_tid = tid,
                 .left_pid = tid,
                 .left = "left",
             });
}

struct seen {
    struct prcb_switch records[4 * PLACES];
    unsigned count, stop_at;
};

static int keep(const struct prcb_switch *record, void *ctx)
{
    struct seen *seen = ctx;

    assert_true(seen->count < 4 * PLACES);
    seen->records[seen->count++] = *record;
    return seen->count == seen->stop_at ? 17 : 0;
}

static struct switch_rings *open_rings(void)
{
    struct switch_rings *ret = NULL;

    memset(rings, 0, sizeof(rings));
    assert_int_equal(switch_rings_open(rings, PROCESSORS, ELEMENTS, true, &ret), 0);
    return ret;
}

static void both_sides_of_a_switch_are_one_record(void **state)
{
    struct switch_rings *r = open_rings();
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct seen seen = {.count = 0};

    put_out(1, 10, 1);
    put_in(1, 10, 2);
    put_out(1, 20, 2); /* to one that is not the session's */
    put_in(1, 30, 1);  /* from one */
    put_out(1, 40, 1);
    put_in(0, 40, 1); /* elsewhere, at the same time */
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, 5);
    assert_int_equal(seen.records[0].cpu, 0);
    assert_int_equal(seen.records[0].old_tid, 0);
    assert_int_equal(seen.records[0].old_syscall, -1);
    assert_int_equal(seen.records[1].old_tid, 1);
    assert_int_equal(seen.records[1].new_tid, 2);
    assert_int_equal(seen.records[1].cause, PRCB_CAUSE_PIPE);
    assert_int_equal(seen.records[1].waker_by, 2);
    assert_int_equal(seen.records[1].waker_tid, 5);
    assert_int_equal(strnlen(seen.records[1].waker_comm, 16), 15);
    assert_int_equal(seen.records[2].old_tid, 2);
    assert_int_equal(seen.records[2].new_tid, 0);
    assert_int_equal(seen.records[2].waker_by, 0);
    assert_int_equal(seen.records[3].old_tid, 0);
    assert_int_equal(seen.records[3].cause, 0);
    assert_int_equal(seen.records[2].flags & PRCB_SWITCH_READY, 0);
    assert_int_equal(seen.records[3].flags & PRCB_SWITCH_READY, PRCB_SWITCH_READY);
    assert_int_equal(seen.records[3].ready_ns, 3);
    assert_int_equal(seen.records[4].new_tid, 0);
    assert_int_equal(room.lost, 0);
    assert_int_equal(room.full, 5 * 100 / PLACES);
    switch_rings_close(r);
}

static void one_record_has_both_sides(void **state)
{
    struct switch_rings *r = open_rings();
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct seen seen = {.count = 0};

    put_left(0, 10, 1, 2);
    put_left(0, 20, 2, 0);
    put_in(0, 20, 3); /* at the same time, and no part of it */
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, 3);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(seen.records[i].old_tid, i + 1);
        assert_int_equal(seen.records[i].old_pid, i + 1);
        assert_int_equal(seen.records[i].cause, PRCB_CAUSE_PIPE);
        assert_int_equal(seen.records[i].old_state, 2);
        assert_int_equal(seen.records[i].old_syscall, 7);
        assert_int_equal(seen.records[i].old_prio, -1);
        assert_string_equal(seen.records[i].old_comm, "left");
        assert_int_equal(seen.records[i].flags & PRCB_SWITCH_USER_MODE, PRCB_SWITCH_USER_MODE);
    }
    assert_int_equal(seen.records[0].new_tid, 2);
    assert_int_equal(seen.records[0].new_prio, 120);
    assert_int_equal(seen.records[0].new_cause, PRCB_CAUSE_OTHER);
    assert_int_equal(seen.records[0].ready_ns, 3);
    assert_int_equal(seen.records[0].waker_tid, 5);
    assert_string_equal(seen.records[0].new_comm, "came");
    assert_int_equal(seen.records[1].new_tid, 0);
    assert_int_equal(seen.records[1].waker_by, 0);
    assert_int_equal(seen.records[1].ready_ns, 0);
    assert_int_equal(seen.records[2].old_tid, 0);
    assert_int_equal(seen.records[2].new_tid, 3);
    switch_rings_close(r);
}

static void who_stops_goes_on_after_that_record(void **state)
{
    struct switch_rings *r = open_rings();
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct seen seen = {.stop_at = 2};

    for (unsigned i = 1; i <= 5; i++)
        put_out(0, i, i);
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 17);
    seen.stop_at = 0;
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(seen.records[i].old_tid, i + 1);
    switch_rings_close(r);
}

/* The place that the writer may be at is not believed: of PLACES one less can be read. */
static void what_was_overwritten_is_counted(void **state)
{
    struct switch_rings *r = open_rings();
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct seen seen = {.count = 0};

    for (unsigned i = 1; i <= PLACES - 1; i++)
        put_out(0, i, i);
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, PLACES - 1);
    assert_int_equal(room.lost, 0);
    for (unsigned i = 1; i <= 3 * PLACES; i++)
        put_out(0, i, i);
    seen.count = 0;
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, PLACES - 1);
    assert_int_equal(seen.records[0].old_tid, 2 * PLACES + 2);
    assert_int_equal(room.lost, 2 * PLACES + 1);
    assert_int_equal(room.full, 100);
    switch_rings_close(r);
}

static void whatever_stands_there(void **state)
{
    struct switch_rings *r = open_rings();
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct seen seen = {.count = 0};

    memset(rings, 0xff, sizeof(rings));
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, PROCESSORS * (PLACES - 1));
    assert_int_equal(seen.records[0].cause, PRCB_CAUSE_OTHER);
    /* Back in time: nothing is new. */
    rings[0].ring.written = 3;
    seen.count = 0;
    assert_int_equal(switch_rings_read(r, keep, &seen, &room), 0);
    assert_int_equal(seen.count, 0);
    switch_rings_close(r);
    assert_int_equal(switch_rings_open(rings, 0, ELEMENTS, true, &r), -EPROTONOSUPPORT);
    assert_int_equal(switch_rings_open(rings, 1, 0, true, &r), -EPROTONOSUPPORT);
    assert_int_equal(switch_rings_open(rings, 1, 3, true, &r), -EPROTONOSUPPORT);
    assert_int_equal(switch_rings_open(rings, 1, 1u << 31, true, &r), -EPROTONOSUPPORT);
}

/* ---- a writer at the same time ---- */

#define RECORDS 300000u

static void *write_on(void *arg)
{
    for (unsigned i = 1; i <= RECORDS; i++) {
        struct prcb_switch_record record = {.time_ns = i,
                                            .kind = i % 2 ? PRCB_SWITCH_IN
                                                          : PRCB_SWITCH_IN | PRCB_SWITCH_LEFT,
                                            .left_tid = i,
                                            .left_pid = i,
                                            .tid = i,
                                            .pid = i,
                                            .ready_ns = i,
                                            .by = 2,
                                            .waker_tid = i,
                                            .woken_ns = i};

        put(0, &record);
        if (!(i % (2 * PLACES / 3)))
            sched_yield(); /* else the reader would hardly ever keep up */
    }
    return arg;
}

struct order {
    uint64_t last, count;
};

static int in_order(const struct prcb_switch *record, void *ctx)
{
    struct order *order = ctx;
    uint32_t n = (uint32_t)record->time_ns;

    assert_true(record->time_ns > order->last);
    assert_true(record->new_tid == n && record->new_pid == n && record->ready_ns == n &&
                record->waker_tid == n && record->woken_ns == n &&
                record->old_tid == (n % 2 ? 0 : n) && record->old_pid == record->old_tid);
    order->last = record->time_ns;
    order->count++;
    return 0;
}

static void a_writer_that_waits_for_nobody(void **state)
{
    struct switch_rings *r = open_rings();
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct order order = {0, 0};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, write_on, NULL), 0);
    while (order.last < RECORDS)
        assert_int_equal(switch_rings_read(r, in_order, &order, &room), 0);
    pthread_join(thread, NULL);
    print_message("    %llu records read, %llu overwritten\n", (unsigned long long)order.count,
                  (unsigned long long)room.lost);
    assert_int_equal(order.count + room.lost, RECORDS);
    switch_rings_close(r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_of_a_switch_are_one_record),
        cmocka_unit_test(one_record_has_both_sides),
        cmocka_unit_test(who_stops_goes_on_after_that_record),
        cmocka_unit_test(what_was_overwritten_is_counted),
        cmocka_unit_test(whatever_stands_there),
        cmocka_unit_test(a_writer_that_waits_for_nobody),
    };

    return cmocka_run_group_tests_name("switch_rings", tests, NULL, NULL);
}
