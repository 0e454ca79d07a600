// SPDX-License-Identifier: BSD-2-Clause
// Two threads that take two mutexes in opposite order, for docs/locks.md: a deadlock.
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER, checking = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static long moved;

__attribute__((noinline)) static void transfer(pthread_mutex_t *from, pthread_mutex_t *to)
{
    pthread_mutex_lock(from);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(to);
    moved++;
    pthread_mutex_unlock(to);
    pthread_mutex_unlock(from);
}

static void *back(void *unused)
{
    pthread_setname_np(pthread_self(), "back");
    transfer(&checking, &savings);
    return unused;
}

int main(void)
{
    pthread_t thread;

    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, back, NULL))
        return 1;
    transfer(&savings, &checking);
    return pthread_join(thread, NULL);
}
