// SPDX-License-Identifier: BSD-2-Clause
/* The first thread ends and four others go on: one has a lock and waits for a pipe that nobody
 * writes to, one waits for that lock, one sleeps 5 ms at a time, and one computes, or pauses if
 * the argument is "quiet". Prints the number of the process, of the holder and of that one. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;
static int nothing[2];
static pid_t holding, computing;
static bool quiet;
static volatile unsigned long sum;

static __attribute__((noinline)) void hold_it(void)
{
    char c;

    pthread_mutex_lock(&ledger);
    pthread_barrier_wait(&begun);
    while (read(nothing[0], &c, 1) > 0)
        ;
    pthread_mutex_unlock(&ledger);
}

static void *holder(void *unused)
{
    pthread_setname_np(pthread_self(), "holder");
    holding = gettid();
    hold_it();
    return unused;
}

static __attribute__((noinline)) void want_it(void)
{
    pthread_mutex_lock(&ledger);
    pthread_mutex_unlock(&ledger);
}

static void *waiter(void *unused)
{
    pthread_setname_np(pthread_self(), "waiter");
    pthread_barrier_wait(&begun);
    want_it();
    return unused;
}

static void *napper(void *unused)
{
    pthread_setname_np(pthread_self(), "napper");
    pthread_barrier_wait(&begun);
    for (;;)
        usleep(5000);
    return unused;
}

static __attribute__((noinline)) void compute(void)
{
    for (;;)
        sum += 1;
}

static void *computer(void *unused)
{
    pthread_setname_np(pthread_self(), "computer");
    computing = gettid();
    pthread_barrier_wait(&begun);
    if (quiet)
        pause();
    compute();
    return unused;
}

int main(int argc, char **argv)
{
    void *(*const bodies[])(void *) = {holder, waiter, napper, computer};
    pthread_t thread;

    quiet = argc > 1 && !strcmp(argv[1], "quiet");
    if (pipe(nothing) || pthread_barrier_init(&begun, NULL, 5))
        return 1;
    for (unsigned int i = 0; i < 4; i++) {
        if (pthread_create(&thread, NULL, bodies[i], NULL))
            return 1;
    }
    pthread_barrier_wait(&begun);
    printf("%d %d %d\n", (int)getpid(), (int)holding, (int)computing);
    fflush(stdout);
    pthread_exit(NULL);
}
