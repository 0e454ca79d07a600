/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process that ends at once, by the cheapest birth that there is: it shares its parent's memory,
 * and the parent sleeps until it has ended. For storms of processes.
 */
#ifndef PRCB_TESTS_SHORT_LIFE_H
#define PRCB_TESTS_SHORT_LIFE_H

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int short_life_child(void *unused)
{
    /* Not exit_group: it is one thread, and nothing of its parent's is to be undone. */
    syscall(SYS_exit, 0);
    return 1;
}

/* True: it could not be, or did not end well. For a process with one thread. */
static inline int short_life(void)
{
    static char stack[16384] __attribute__((aligned(16)));
    pid_t pid =
        clone(short_life_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)0);
    int status;

    return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

#endif
