// SPDX-License-Identifier: BSD-2-Clause
/* Threads that wait in one way each, again and again, and have the cause's name: sleep, futex,
 * pipe, epoll, poll. Prints its number when all of them run; ends when it is killed. */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 5000000

static int word, ends[2], event[2]; /* event: for epoll, for poll */
static pthread_barrier_t begun;

static void begin(const char *name)
{
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&begun);
}

static void doze(void)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};

    nanosleep(&period, NULL);
}

static void *by_sleep(void *unused)
{
    begin("sleep");
    for (;;)
        doze();
    return NULL;
}

static void *by_futex(void *unused)
{
    begin("futex");
    for (;;) {
        int seen = __atomic_load_n(&word, __ATOMIC_ACQUIRE);

        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    return NULL;
}

static void *by_pipe(void *unused)
{
    char byte;

    begin("pipe");
    while (read(ends[0], &byte, 1) == 1)
        continue;
    return NULL;
}

static void *by_epoll(void *unused)
{
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLET}, found;
    int epoll = epoll_create1(0);

    epoll_ctl(epoll, EPOLL_CTL_ADD, event[0], &wanted);
    begin("epoll");
    for (;;)
        epoll_wait(epoll, &found, 1, -1);
    return NULL;
}

static void *by_poll(void *unused)
{
    struct pollfd wanted = {.fd = event[1], .events = POLLIN};
    uint64_t count;

    begin("poll");
    for (;;) {
        if (poll(&wanted, 1, -1) > 0 && read(event[1], &count, sizeof(count)) < 0)
            return NULL;
    }
}

int main(void)
{
    void *(*const ways[])(void *) = {by_sleep, by_futex, by_pipe, by_epoll, by_poll};
    const uint64_t one = 1;
    pthread_t thread;

    if (pipe(ends) || (event[0] = eventfd(0, EFD_NONBLOCK)) < 0 ||
        (event[1] = eventfd(0, EFD_NONBLOCK)) < 0)
        return 1;
    pthread_barrier_init(&begun, NULL, 6);
    for (int i = 0; i < 5; i++)
        pthread_create(&thread, NULL, ways[i], NULL);
    pthread_barrier_wait(&begun);
    printf("%d\n", getpid());
    fflush(stdout);
    for (;;) {
        doze();
        __atomic_fetch_add(&word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        if (write(ends[1], "x", 1) < 0 || write(event[0], &one, sizeof(one)) < 0 ||
            write(event[1], &one, sizeof(one)) < 0)
            return 1;
    }
}
