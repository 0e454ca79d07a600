/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread that sleeps while it is still in its processor's queue (delayed dequeue, Linux 6.12) and
 * is moved to another processor there: from then on the kernel counts its sleep as run-queue delay.
 *
 *   moved_asleep ROUNDS MILLISECONDS
 *
 * Each round the thread computes beside one that never stops, on one processor, sleeps for so long,
 * and is moved in the first moments of it. Prints its number, and when all is over: how many of its
 * sleeps the kernel counted as delay; nanoseconds that it was off the processor while it was able
 * to run, by its own clocks, until it read them for the last time; the same until another thread
 * found it ended; nanoseconds that it asked to sleep for. All 0: there is one processor only.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS         1000000u
#define COMPUTE_NS (2 * MS)

static int processors[2];
static int rounds;
static uint64_t sleep_ns;
static _Atomic int sleeper, asleep, ended;
static int counted;
static uint64_t began_ns, ran_ns, able_ns, able_most_ns, asked_ns;

static uint64_t now(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void pin(pid_t tid, int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(tid, sizeof(set), &set))
        abort();
}

/* What the kernel has counted as the thread's run-queue delay. */
static uint64_t delay(void)
{
    unsigned long long run = 0, ret = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");

    if (file && fscanf(file, "%llu %llu", &run, &ret) != 2)
        ret = 0;
    if (file)
        fclose(file);
    return ret;
}

static void *compute_on(void *unused)
{
    prctl(PR_SET_NAME, "hog");
    pin(0, processors[0]);
    while (!ended)
        continue;
    return NULL;
}

static void *sleep_on(void *unused)
{
    prctl(PR_SET_NAME, "sleeper");
    /* A thread that has had more than its share stays in the queue when it goes to sleep. */
    if (setpriority(PRIO_PROCESS, (id_t)gettid(), 5))
        abort();
    prctl(PR_SET_TIMERSLACK, 1);
    sleeper = gettid();
    for (int i = 0; i < rounds; i++) {
        const struct timespec ts = {(time_t)(sleep_ns / 1000000000u),
                                    (long)(sleep_ns % 1000000000u)};
        uint64_t ran = now(CLOCK_THREAD_CPUTIME_ID), delayed, from, able;

        pin(0, processors[0]);
        while (now(CLOCK_THREAD_CPUTIME_ID) - ran < COMPUTE_NS)
            continue;
        delayed = delay();
        from = now(CLOCK_MONOTONIC);
        asleep = i + 1;
        /* For so long from when it is asleep on, not from a time that it reads before: it may lose
         * the processor in between, and would sleep for less. */
        clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
        able = now(CLOCK_MONOTONIC) - from - sleep_ns;
        counted += delay() - delayed > able + sleep_ns / 2;
    }
    able_ns = now(CLOCK_MONOTONIC) - began_ns - asked_ns;
    ran_ns = now(CLOCK_THREAD_CPUTIME_ID);
    able_ns -= ran_ns;
    ended = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    int found = 0;
    pthread_t threads[2];
    cpu_set_t set;

    rounds = argc > 1 ? atoi(argv[1]) : 10;
    sleep_ns = (argc > 2 ? (uint64_t)atoi(argv[2]) : 300) * MS;
    if (sched_getaffinity(0, sizeof(set), &set))
        abort();
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &set))
            processors[found++] = i;
    printf("%d\n", getpid());
    fflush(stdout);
    if (found == 2) {
        pin(0, processors[1]);
        pthread_create(&threads[0], NULL, compute_on, NULL);
        asked_ns = (uint64_t)rounds * sleep_ns;
        began_ns = now(CLOCK_MONOTONIC);
        pthread_create(&threads[1], NULL, sleep_on, NULL);
        for (int i = 0; i < rounds; i++) {
            while (asleep <= i)
                usleep(50);
            usleep(100);
            pin(sleeper, processors[1]);
        }
        pthread_join(threads[1], NULL);
        able_most_ns = now(CLOCK_MONOTONIC) - began_ns - asked_ns - ran_ns;
        pthread_join(threads[0], NULL);
    }
    printf("%d %llu %llu %llu\n", counted, (unsigned long long)able_ns,
           (unsigned long long)able_most_ns, (unsigned long long)asked_ns);
    return 0;
}
