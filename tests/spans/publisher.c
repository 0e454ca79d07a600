/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Publishes spans as OTEP 4947 says, by its bytes alone, with nothing of prcb. With LIBRARY, the
 * variable is this file's where it is compiled as a library, and the program gets its address.
 *
 *     publisher [LIBRARY.so]   four threads, each in a span of its own that waits in its own way:
 *                              1 sleeps, 2 waits for a futex, 3 reads from a pipe, the record of 4
 *                              is not valid. Prints "ready" and waits for its input.
 *
 * One thread:
 *
 *     publisher work           sleeps 400 ms in span 1, 200 ms in span 2, 200 ms in none
 *     publisher ready          in span 1 it sleeps for 10 ms and runs for 5 ms, 40 times
 *     publisher brief          sleeps 3 ms in span 1, 1 ms in span 2, 2 ms in none, 200 times.
 *                              Prints its pid and how long this took in the first two, in ns
 *     publisher changes        changes its span a million times, and sleeps in the midst of it
 *
 * The trace of n is sixteen bytes n, its span eight.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct record {
    unsigned char trace_id[16], span_id[8], valid, flags;
    uint16_t attributes;
};

#ifndef NO_VARIABLE
__thread struct record *otel_thread_ctx_v1;
struct record **own_variable(void);
struct record **own_variable(void)
{
    return &otel_thread_ctx_v1;
}
#endif

#ifndef LIBRARY
#ifdef DLOPEN
#include <dlfcn.h>
static struct record **(*variable)(void);
#elif defined(NO_VARIABLE)
struct record **own_variable(void);
#define variable own_variable
#else
#define variable own_variable
#endif

static struct record records[5];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static void set(struct record *record, int n)
{
    memset(record->trace_id, n, sizeof(record->trace_id));
    memset(record->span_id, n, sizeof(record->span_id));
}

static void work(void)
{
    for (int n = 1; n <= 3; n++) {
        set(&records[n], n);
        records[n].valid = 1;
        *variable() = n < 3 ? &records[n] : NULL;
        usleep(n == 1 ? 400000 : 200000);
    }
}

static void wake_up(void)
{
    struct timespec now;

    set(&records[1], 1);
    records[1].valid = 1;
    *variable() = &records[1];
    for (int i = 0; i < 40; i++) {
        usleep(10000);
        do
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        while (now.tv_nsec / 5000000 <= i);
    }
}

static uint64_t monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void brief(void)
{
    static const useconds_t us[] = {2000, 3000, 1000};
    uint64_t ns[3] = {0}, began;

    for (int n = 1; n <= 2; n++) {
        set(&records[n], n);
        records[n].valid = 1;
    }
    for (int i = 0; i < 600; i++) {
        *variable() = i % 3 ? &records[i % 3] : NULL;
        began = monotonic();
        usleep(us[i % 3]);
        ns[i % 3] += monotonic() - began;
    }
    printf("%d took %llu %llu\n", (int)getpid(), (unsigned long long)ns[1],
           (unsigned long long)ns[2]);
}

/* Half of a span is no span: that is what `valid` is for. */
static void change(void)
{
    volatile struct record *record = &records[1];

    *variable() = &records[1];
    for (int i = 0; i < 1000000; i++) {
        int n = i % 255 + 1;

        record->valid = 0;
        for (int k = 0; k < 16; k++)
            record->trace_id[k] = (unsigned char)n;
        if (i % 10000 == 3)
            usleep(2000);
        for (int k = 0; k < 8; k++)
            record->span_id[k] = (unsigned char)n;
        record->valid = 1;
        if (i % 10000 == 7)
            usleep(2000);
    }
}

static void *wait_in_span(void *number)
{
    long n = (long)(intptr_t)number;
    struct record *record = &records[n];
    char byte;

    set(record, (int)n);
    record->valid = n != 4;
    *variable() = record;
    if (n == 1 || n == 4)
        sleep(1000);
    else if (n == 2)
        pthread_mutex_lock(&lock);
    else
        (void)!read(ends[0], &byte, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    char byte;

#ifdef DLOPEN
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

    *(void **)&variable = library ? dlsym(library, "own_variable") : NULL;
    if (!variable)
        return fprintf(stderr, "%s\n", dlerror()), 1;
#else
    if (argc > 1)
        return (*argv[1] == 'w'   ? work
                : *argv[1] == 'r' ? wake_up
                : *argv[1] == 'b' ? brief
                                  : change)(),
               0;
#endif
    if (pipe(ends) || pthread_mutex_lock(&lock))
        return 1;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, wait_in_span, (void *)(intptr_t)(i + 1));
    puts("ready");
    fflush(stdout);
    (void)!read(0, &byte, 1);
    return 0;
}
#endif
