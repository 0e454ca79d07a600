// SPDX-License-Identifier: BSD-2-Clause
/* A thread computes in a cgroup with a quota until so many seconds are over: quota CGROUP.PROCS CPU
 * SECONDS. Prints how long it ran by its own clock, in nanoseconds, and its number. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long long now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

static double seconds;
static unsigned long long ran;
static int number;

static void *limited(void *unused)
{
    unsigned long long end = now(CLOCK_MONOTONIC) + (unsigned long long)(seconds * 1e9);

    pthread_setname_np(pthread_self(), "limited");
    number = (int)gettid();
    while (now(CLOCK_MONOTONIC) < end)
        ;
    ran = now(CLOCK_THREAD_CPUTIME_ID);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    cpu_set_t set;
    FILE *group;

    if (argc != 4)
        return 2;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[2]), &set);
    seconds = atof(argv[3]);
    group = fopen(argv[1], "w");
    if (!group || fprintf(group, "%d\n", (int)getpid()) < 0 || fclose(group) ||
        sched_setaffinity(0, sizeof(set), &set) || pthread_create(&thread, NULL, limited, NULL) ||
        pthread_join(thread, NULL))
        return 1;
    printf("%llu %d\n", ran, number);
    return 0;
}
