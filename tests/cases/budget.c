// SPDX-License-Identifier: BSD-2-Clause
/* A thread that computes without end and has a budget.
 *
 *   budget MILLISECONDS USER [TASKS]
 *
 * TASKS: it joins the cgroup whose file this is, and is of SCHED_FIFO there; without, it is of
 * SCHED_DEADLINE, 5 ms of each 20. Then it becomes USER. Prints its number, and when the time is
 * over the nanoseconds that it ran and those that went by. The number is 0 where the kernel
 * refuses.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static uint64_t now(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int of_deadline(void)
{
    struct attributes a = {.size = sizeof(a),
                           .policy = 6,
                           .runtime = 5000000,
                           .deadline = 20000000,
                           .period = 20000000};

    return (int)syscall(SYS_sched_setattr, 0, &a, 0);
}

static int of_group(const char *tasks)
{
    struct sched_param param = {.sched_priority = 1};
    int fd = open(tasks, O_WRONLY);

    if (fd < 0 || dprintf(fd, "%d", getpid()) < 0)
        return -1;
    close(fd);
    return sched_setscheduler(0, SCHED_FIFO, &param);
}

/* To where it is: real-time threads are pushed to other processors, and wait there for what their
 * group may use there. */
static void stay(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        abort();
}

int main(int argc, char **argv)
{
    uint64_t length = (uint64_t)atoi(argv[1]) * 1000000u, began;
    uid_t user = (uid_t)atoi(argv[2]);

    if (argc > 3)
        stay();
    if (argc > 3 ? of_group(argv[3]) : of_deadline()) {
        puts("0");
        return 0;
    }
    if (user && (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user) ||
                 prctl(PR_SET_DUMPABLE, 1)))
        abort();
    printf("%d\n", getpid());
    fflush(stdout);
    began = now(CLOCK_MONOTONIC);
    while (now(CLOCK_MONOTONIC) - began < length)
        continue;
    printf("%llu %llu\n", (unsigned long long)now(CLOCK_PROCESS_CPUTIME_ID),
           (unsigned long long)(now(CLOCK_MONOTONIC) - began));
    return 0;
}
