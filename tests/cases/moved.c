// SPDX-License-Identifier: BSD-2-Clause
/* A thread is woken on processor A, where another of the class FIFO computes for 60 ms, and is set
 * to processor B after 40 ms, where a second one does the same: it is ready for 60 ms and runs
 * then. So often as told: moved A B TIMES. Prints by its own clock, in nanoseconds, how long the
 * thread was ready and how long it slept, from the first time that it slept on, and its number. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int processors[2], times;
static sem_t go, hold, rest;
static atomic_ullong woken, ended; /* ended: when both holders are done */
static atomic_int held;
static pid_t victim;
static unsigned long long ready, slept, other;

static unsigned long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

static int pin(pid_t tid, int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(tid, sizeof(set), &set);
}

static void *sleeper(void *unused)
{
    unsigned long long began = now();

    victim = gettid();
    pthread_setname_np(pthread_self(), "victim");
    for (int i = 0; i < times; i++) {
        unsigned long long left, came;

        sem_post(&rest);
        left = now();
        sem_wait(&go);
        came = now();
        ready += came - woken;
        slept += woken - left;
    }
    other = now() - began - ready - slept;
    return unused;
}

static void compute_until(unsigned long long when)
{
    while (now() < when)
        ;
}

/* On the other processor. */
static void *holder(void *unused)
{
    pthread_setname_np(pthread_self(), "holder");
    for (int i = 0; i < times; i++) {
        sem_wait(&hold);
        atomic_store(&held, 1);
        while (!atomic_load(&ended) || now() < atomic_load(&ended))
            ;
    }
    return unused;
}

static int create(pthread_t *thread, void *(*body)(void *), int cpu)
{
    const struct sched_param param = {.sched_priority = 10};

    return pthread_create(thread, NULL, body, NULL) ||
           (cpu >= 0 && pthread_setschedparam(*thread, SCHED_FIFO, &param));
}

static void play(void)
{
    unsigned long long began;

    atomic_store(&held, 0);
    atomic_store(&ended, 0);
    sem_post(&hold);
    while (!atomic_load(&held))
        usleep(1000); /* the holder may be behind this thread's processor */
    began = now();
    atomic_store(&ended, began + 60000000);
    atomic_store(&woken, began);
    sem_post(&go);
    compute_until(began + 40000000);
    pin(victim, processors[1]);
    compute_until(began + 60000000);
}

int main(int argc, char **argv)
{
    const struct sched_param param = {.sched_priority = 10};
    pthread_t threads[2];
    cpu_set_t second;

    if (argc != 4)
        return 2;
    for (int i = 0; i < 2; i++)
        processors[i] = atoi(argv[i + 1]);
    times = atoi(argv[3]);
    sem_init(&go, 0, 0);
    sem_init(&hold, 0, 0);
    sem_init(&rest, 0, 0);
    if (create(&threads[0], sleeper, -1) || create(&threads[1], holder, processors[1]) ||
        pin(0, processors[0]) || pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
        return 1;
    CPU_ZERO(&second);
    CPU_SET(processors[1], &second);
    if (pthread_setaffinity_np(threads[1], sizeof(second), &second))
        return 1;
    for (int i = 0; i < times; i++) {
        sem_wait(&rest);
        usleep(40000); /* the class FIFO has 95 % of the time, and it sleeps by then */
        pin(victim, processors[0]);
        play();
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%llu %llu %llu %d\n", ready, slept, other, (int)victim);
    return 0;
}
