/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Why are my threads not running? Profiles its own process, starts a few threads
 * that each wait for something else, and prints every account.
 *
 *     cc threads.c $(pkg-config --cflags --libs libprcb) -pthread
 *     sudo ./a.out
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <prcb/prcb.h>

static void *sleeper(void *arg)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (int i = 0; i < 20; i++)
        nanosleep(&pause, NULL);
    return NULL;
}

static void *computer(void *arg)
{
    struct timespec ts;
    volatile unsigned x = 0;

    do {
        for (int i = 0; i < 1000000; i++)
            x = x + 1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    } while (ts.tv_nsec < 150000000 && !ts.tv_sec);
    return NULL;
}

/* Waits until main writes. */
static void *waiter(void *arg)
{
    uint64_t value;

    return read(*(int *)arg, &value, sizeof(value)) == sizeof(value) ? NULL : arg;
}

static void print_longest_wait(const struct prcb_account *a)
{
    uint32_t longest = PRCB_CAUSE_NONE;

    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        if (a->waits[cause].ns > a->waits[longest].ns)
            longest = cause;
    }
    if (longest != PRCB_CAUSE_NONE)
        printf("  %.1f ms %s", (double)a->waits[longest].ns / 1e6, prcb_cause_info(longest)->words);
    printf("\n");
}

static int print_account(const struct prcb_account *a, void *ctx)
{
    printf("%-10s %7d %8.1f %8.1f", a->comm, (int)a->tid, (double)a->wall_ns / 1e6,
           (double)a->run_ns / 1e6);
    if (a->present & PRCB_HAS_READY)
        printf(" %8.1f", (double)a->ready_ns / 1e6);
    else
        printf(" %8s", "-");
    printf(" %8" PRIu64, a->switches);
    print_longest_wait(a);
    return 0;
}

static void start(pthread_t *thread, const char *name, void *(*work)(void *), void *arg)
{
    pthread_create(thread, NULL, work, arg);
    pthread_setname_np(*thread, name);
}

int main(void)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const uint64_t one = 1;
    int event = eventfd(0, 0);
    struct prcb_error err;
    pthread_t threads[3];
    struct prcb *p;

    if (prcb_open(NULL, &p, &err) || prcb_profile_process(p, getpid(), PRCB_FOLLOW_THREADS, &err)) {
        fprintf(stderr, "threads: %s\n", err.text);
        return 1;
    }
    start(&threads[0], "sleeper", sleeper, NULL);
    start(&threads[1], "computer", computer, NULL);
    start(&threads[2], "waiter", waiter, &event);
    nanosleep(&pause, NULL);
    prcb_refresh(p, &err); /* the perf tier sees threads only when it looks */
    if (write(event, &one, sizeof(one)) != sizeof(one))
        perror("threads: eventfd");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("tier %s, times in milliseconds\n%-10s %7s %8s %8s %8s %8s  longest wait\n",
           prcb_tier_name(prcb_session_tier(p)), "thread", "tid", "wall", "run", "ready",
           "switches");
    if (prcb_walk(p, print_account, NULL, &err) < 0)
        fprintf(stderr, "threads: %s\n", err.text);
    prcb_close(p);
    return 0;
}
