/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The sequence count under fire: a writer in user space, by the same header as the
 * eBPF programs, against the library's own reader. Each update fills every word of the
 * block with values that name the update, so a copy that mixes two shows. Built with the
 * thread sanitizer (suite tsan) it also shows any access to the block that is not atomic;
 * without (suite unit) it runs at full speed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "account.h"
#include "block_abi.h"
#include "seqcount_abi.h"

#define WORDS     (sizeof(struct prcb_account_block) / 8)
#define HOT_WORDS 8
#define READERS   2

static struct prcb_account_block block __attribute__((aligned(64)));
static atomic_bool stop;

static uint64_t mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t value_of(uint64_t update, size_t word)
{
    return update << 8 | word;
}

/* The count is in the low half of word 0 and the generation in its high half. */
static void write_update(uint64_t update, bool pause_inside)
{
    uint64_t *words = (uint64_t *)&block;
    uint32_t even = __atomic_load_n(&block.seq, __ATOMIC_RELAXED);

    prcb_seq_begin(&block.seq, even);
    __atomic_store_n(&block.generation, (uint32_t)update, __ATOMIC_RELAXED);
    for (size_t i = 1; i < WORDS; i++) {
        __atomic_store_n(&words[i], value_of(update, i), __ATOMIC_RELAXED);
        if (pause_inside && i == WORDS / 2)
            sched_yield();
    }
    prcb_seq_end(&block.seq, even);
}

/* Bursts and pauses: a reader must get through, and must meet updates under way. */
static void *writer(void *arg)
{
    uint32_t random = 1;

    for (uint64_t update = 1; !stop; update++) {
        random = random * 1664525 + 1013904223;
        write_update(update, (random >> 20) % 1024 == 0);
        for (uint32_t i = (random >> 24) * 8; i && !stop; i--)
            prcb_seq_barrier();
    }
    return NULL;
}

struct reading {
    size_t words;
    _Atomic uint64_t copies, retries; /* added to by the reader alone */
    uint64_t unresolved;
    uint64_t torn, backwards;
};

static bool is_one_update(const struct prcb_account_block *copy, size_t words, uint64_t *ret)
{
    const uint64_t *word = (const uint64_t *)copy;
    uint64_t update = word[1] >> 8;

    if (copy->seq & 1 || copy->generation != (uint32_t)update)
        return false;
    for (size_t i = 1; i < words; i++) {
        if (word[i] != value_of(update, i))
            return false;
    }
    *ret = update;
    return true;
}

/* No read-modify-write: it would order the accesses around it. */
static void add(_Atomic uint64_t *count, uint64_t more)
{
    uint64_t now = atomic_load_explicit(count, memory_order_relaxed);

    atomic_store_explicit(count, now + more, memory_order_relaxed);
}

static void *reader(void *arg)
{
    struct reading *reading = arg;
    uint64_t last = 0, update = 0;

    while (!stop) {
        struct prcb_account_block copy;
        uint32_t retries = 0;

        if (account_copy(&block, (uint32_t)reading->words * 8, &copy, &retries)) {
            reading->unresolved++;
            continue;
        }
        add(&reading->copies, 1);
        add(&reading->retries, retries);
        if (!is_one_update(&copy, reading->words, &update))
            reading->torn++;
        else if (update < last)
            reading->backwards++;
        last = update;
    }
    return NULL;
}

/* Readers got through, and did meet the writer. */
static bool have_met(struct reading *readings)
{
    uint64_t copies = 0, retries = 0;

    for (int i = 0; i < READERS; i++) {
        copies += readings[i].copies;
        retries += readings[i].retries;
    }
    return copies > 1000 && retries > 10;
}

/* For a second, and on until something was tried: on a busy machine, and where processors are
 * emulated in turn, it takes longer until one is interrupted at the right place. */
static void race(size_t words)
{
    struct reading readings[READERS] = {{.words = words}, {.words = words}};
    pthread_t writer_thread, readers[READERS];
    uint64_t begun = mono_ns(), passed = 0;

    stop = false;
    write_update(0, false);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, reader, &readings[i]), 0);
    assert_int_equal(pthread_create(&writer_thread, NULL, writer, NULL), 0);
    while (passed < 1000000000 || (!have_met(readings) && passed < 30000000000)) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        passed = mono_ns() - begun;
    }
    stop = true;
    pthread_join(writer_thread, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
        printf("    %zu words: %llu copies, %llu retries, %llu unresolved, %llu torn\n", words,
               (unsigned long long)readings[i].copies, (unsigned long long)readings[i].retries,
               (unsigned long long)readings[i].unresolved, (unsigned long long)readings[i].torn);
        assert_int_equal(readings[i].torn, 0);
        assert_int_equal(readings[i].backwards, 0);
    }
    assert_true(have_met(readings)); /* or nothing was tried */
}

static void test_whole_block(void **state)
{
    race(WORDS);
}

static void test_hot_line(void **state)
{
    race(HOT_WORDS);
}

/* ---- the name, which has a count of its own ---- */

static void *renamer(void *arg)
{
    for (uint32_t round = 0; !stop; round++) {
        uint64_t letters = 0x0101010101010101ull * ('a' + round % 26);

        __atomic_fetch_add(&block.comm_seq, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&block.tid, round, __ATOMIC_RELAXED);
        __atomic_store_n((uint64_t *)block.comm, letters, __ATOMIC_RELAXED);
        __atomic_store_n((uint64_t *)block.comm + 1, letters, __ATOMIC_RELAXED);
        __atomic_fetch_add(&block.comm_seq, 1, __ATOMIC_SEQ_CST);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return NULL;
}

/* A writer that is held up inside may leave half a name after many tries (account.c): a
 * rare thing here, and never an unended one. */
static void test_name(void **state)
{
    uint64_t deadline = mono_ns() + 500000000, reads = 0, mixed = 0;
    pthread_t thread;

    memset(&block, 0, sizeof(block));
    memset(block.comm, 'a', sizeof(block.comm));
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, renamer, NULL), 0);
    while (mono_ns() < deadline || reads <= 1000) {
        struct prcb_account a = {.size = sizeof(a)};
        size_t same;

        account_identity(&block, &a);
        same = strspn(a.comm, (char[]){a.comm[0], '\0'});
        assert_int_equal(strlen(a.comm), 15);
        mixed += same != 15;
        reads++;
    }
    stop = true;
    pthread_join(thread, NULL);
    /* Where processors are emulated in turn, the writer may be held up for a whole turn. */
    assert_true(mixed * (getenv("PRCB_TEST_SLOW") ? 4 : 100) <= reads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_block),
        cmocka_unit_test(test_hot_line),
        cmocka_unit_test(test_name),
    };

    return cmocka_run_group_tests_name("sequence count", tests, NULL, NULL);
}
