/* SPDX-License-Identifier: BSD-2-Clause */
#include "child_end.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>

#include "now.h"

#define PAUSE_NS_FIRST 100000
#define PAUSE_NS_MOST  10000000

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t behind[CHILDREN_LEFT]; /* 0: free */

/* ECHILD: the program around us waits for every child, or it was another process's. */
static bool has_ended(pid_t pid, int *ret_status)
{
    pid_t ended;

    while ((ended = waitpid(pid, ret_status, WNOHANG)) < 0 && errno == EINTR)
        ;
    return ended;
}

unsigned children_left(void)
{
    unsigned count = 0;

    pthread_mutex_lock(&left_lock);
    for (size_t i = 0; i < CHILDREN_LEFT; i++) {
        if (behind[i] && has_ended(behind[i], NULL))
            behind[i] = 0;
        count += behind[i] != 0;
    }
    pthread_mutex_unlock(&left_lock);
    return count;
}

/* Remembers a child that is left. If more children began at the same time than there is room
 * for, whoever reaps what this process leaves reaps it. */
static void leave(pid_t pid)
{
    size_t i = 0;

    pthread_mutex_lock(&left_lock);
    while (i < CHILDREN_LEFT && behind[i])
        i++;
    if (i < CHILDREN_LEFT)
        behind[i] = pid;
    pthread_mutex_unlock(&left_lock);
}

bool child_end(pid_t pid, unsigned ms, int *ret_status)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS_FIRST};
    uint64_t deadline = now_ns() + ms * 1000000ull;
    int status = 1 << 8; /* of one that another reaped: it is not known to have succeeded */

    while (!has_ended(pid, &status)) {
        if (now_ns() >= deadline) {
            leave(pid);
            return false;
        }
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_NS_MOST)
            pause.tv_nsec *= 2;
    }
    if (ret_status)
        *ret_status = status;
    return true;
}
