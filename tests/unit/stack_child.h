/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts stack_waiter for a test of stacks, and ends it. After cmocka.h.
 */
#ifndef PRCB_TESTS_STACK_CHILD_H
#define PRCB_TESTS_STACK_CHILD_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct child {
    pid_t pid, tid;
    int in; /* it ends when this does */
};

/* deep: bytes of stack between two of its functions. */
static struct child child_start(const char *waiter, const char *way, const char *deep)
{
    int to[2], from[2];
    struct child child;
    char line[64] = "";
    FILE *stream;

    assert_int_equal(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
    child.pid = fork();
    if (!child.pid) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl(waiter, waiter, way, deep, NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    child.in = to[1];
    stream = fdopen(from[0], "r");
    assert_non_null(stream);
    assert_non_null(fgets(line, sizeof(line), stream));
    assert_int_equal(sscanf(line, "%*d %d", &child.tid), 1);
    fclose(stream);
    return child;
}

static void child_end(struct child *child)
{
    close(child->in);
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#endif
