/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_wait.h"
#include "array.h"
#include "now.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S      1000000000ull
#define NO_FD_POLL_NS 20000000ull    /* how often to look at a child that has no descriptor */
#define TERM_GRACE_NS (5 * NS_PER_S) /* from SIGTERM to SIGKILL */
#define BY_KILL       0x80           /* in a byte of the pipe: a process sent the signal */

/* Write end of the pipe, for the handlers. */
static volatile sig_atomic_t handler_fd = -1;

void stat_wait_advance(uint64_t *next, uint64_t period, uint64_t now)
{
    *next += period * ((now - *next) / period + 1);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    unsigned char byte = (unsigned char)(number | (info->si_code == SI_USER ? BY_KILL : 0));
    int saved = errno;

    if (write(handler_fd, &byte, 1) < 0) {
        /* the pipe is full of requests to end */
    }
    errno = saved;
}

static void on_sigpipe(int number)
{
    /* Writes fail with EPIPE instead, and what is executed gets the default back. */
}

static void install(int number)
{
    struct sigaction old, action = {.sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) || old.sa_handler == SIG_IGN)
        return;
    if (number == SIGPIPE) {
        action.sa_handler = on_sigpipe;
    } else {
        action.sa_flags |= SA_SIGINFO;
        action.sa_sigaction = on_signal;
    }
    sigaction(number, &action, NULL);
}

int stat_wait_init(struct stat_wait *wait)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -errno;
    *wait = (struct stat_wait){.pipe = ends[0], .child_fd = -1};
    handler_fd = ends[1];
    install(SIGINT);
    install(SIGTERM);
    install(SIGHUP); /* the terminal is gone: what there is by then is kept */
    install(SIGPIPE);
    return 0;
}

static void restore(int number)
{
    struct sigaction old;

    if (!sigaction(number, NULL, &old) && old.sa_handler != SIG_IGN)
        signal(number, SIG_DFL);
}

void stat_wait_restore(void)
{
    restore(SIGINT);
    restore(SIGTERM);
    restore(SIGHUP);
}

void stat_wait_forget_targets(struct stat_wait *wait)
{
    for (size_t i = 0; i < wait->target_count; i++) {
        if (wait->targets[i] >= 0)
            close(wait->targets[i]);
    }
    free(wait->targets);
    wait->targets = NULL;
    wait->target_count = 0;
}

void stat_wait_deinit(struct stat_wait *wait)
{
    stat_wait_restore();
    close(handler_fd);
    handler_fd = -1;
    close(wait->pipe);
    if (wait->child_fd >= 0)
        close(wait->child_fd);
    stat_wait_forget_targets(wait);
    memset(wait, 0, sizeof(*wait));
}

static int open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

void stat_wait_set_child(struct stat_wait *wait, pid_t child)
{
    wait->child = child;
    wait->child_fd = open_pid(child);
}

void stat_wait_add_target(struct stat_wait *wait, pid_t pid)
{
    int fd = open_pid(pid);

    if (fd >= 0 && array_append(wait->targets, wait->target_count, fd))
        close(fd);
}

static bool child_ended(const struct stat_wait *wait)
{
    siginfo_t info = {0};

    return wait->child && !waitid(P_PID, (id_t)wait->child, &info, WEXITED | WNOWAIT | WNOHANG) &&
           info.si_pid == wait->child;
}

static unsigned take_signals(const struct stat_wait *wait)
{
    unsigned events = 0;
    unsigned char byte;

    while (read(wait->pipe, &byte, 1) == 1) {
        if (!wait->child)
            events |= STAT_WAIT_SIGNAL;
        else if (byte & BY_KILL)
            kill(wait->child, byte & ~BY_KILL);
    }
    return events;
}

int stat_wait_pending(const struct stat_wait *wait)
{
    unsigned char byte;

    return read(wait->pipe, &byte, 1) == 1 ? byte & ~BY_KILL : 0;
}

static unsigned take_targets(struct stat_wait *wait, const struct pollfd *polled)
{
    unsigned events = 0;

    for (size_t i = 0; i < wait->target_count; i++) {
        if (wait->targets[i] < 0 || !polled[i].revents)
            continue;
        close(wait->targets[i]);
        wait->targets[i] = -1;
        events |= STAT_WAIT_TARGET;
    }
    return events;
}

/* Sleeps once, for at most this long. */
static unsigned sleep_once(struct stat_wait *wait, struct pollfd *polled, uint64_t ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nfds_t count = 2 + wait->target_count;
    unsigned events;
    int ready;

    polled[0] = (struct pollfd){.fd = wait->pipe, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = wait->child_fd, .events = POLLIN};
    for (size_t i = 0; i < wait->target_count; i++)
        polled[2 + i] = (struct pollfd){.fd = wait->targets[i], .events = POLLIN};
    ready = ppoll(polled, count, &timeout, NULL);
    events = take_signals(wait);
    if (ready > 0)
        events |= take_targets(wait, polled + 2);
    if (child_ended(wait))
        events |= STAT_WAIT_CHILD;
    return events;
}

unsigned stat_wait_until(struct stat_wait *wait, uint64_t until)
{
    struct pollfd few[8], *polled = few;
    unsigned events = 0;
    uint64_t now;

    if (2 + wait->target_count > sizeof(few) / sizeof(few[0])) {
        polled = calloc(2 + wait->target_count, sizeof(*polled));
        if (!polled)
            return STAT_WAIT_SIGNAL;
    }
    do {
        uint64_t left;

        now = now_ns();
        left = until > now ? until - now : 0;
        if (wait->child && wait->child_fd < 0 && left > NO_FD_POLL_NS)
            left = NO_FD_POLL_NS;
        events = sleep_once(wait, polled, left);
    } while (!events && now_ns() < until);
    if (polled != few)
        free(polled);
    return events;
}

void stat_wait_end_child(struct stat_wait *wait)
{
    uint64_t patience = now_ns() + TERM_GRACE_NS;

    kill(wait->child, SIGTERM);
    while (now_ns() < patience) {
        if (stat_wait_until(wait, patience) & STAT_WAIT_CHILD)
            return;
    }
    kill(wait->child, SIGKILL);
}

int stat_wait_reap(struct stat_wait *wait, struct rusage *ret_usage)
{
    int status = 0;

    while (wait4(wait->child, &status, 0, ret_usage) < 0 && errno == EINTR)
        ;
    if (wait->child_fd >= 0)
        close(wait->child_fd);
    wait->child_fd = -1;
    wait->child = 0;
    return status;
}
