/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What holds a thread up from outside of it, as procfs and cgroups say at this moment: a stop
 * signal, a tracer, the freezer. Files of the kernel are read, which never wait. Any thread.
 */
#ifndef PRCB_BASE_HELD_UP_H
#define PRCB_BASE_HELD_UP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct held {
    char state;      /* R S D T t Z X I ...; as it is in /proc */
    pid_t tracer;    /* 0: none, or one that is out of sight */
    bool frozen;     /* it is asleep, and a cgroup of it is frozen */
    char group[256]; /* that cgroup; empty: none is */
};

/* 0, or -errno: -ESRCH: there is no such thread. */
int held_read(pid_t pid, pid_t tid, struct held *ret);
/* Returns "stopped", "traced", "frozen", "blocked in the kernel"; NULL: nothing holds it: it
 * sleeps, or was woken a moment ago. */
const char *held_word(const struct held *held);
/* Whether a thread is in state D; nothing else is read. */
bool held_blocked(pid_t pid, pid_t tid);
/* Finds for how long a thread has had no processor, including waits that began before anybody
 * looked. It uses the kernel's own stamp, of a clock that leaves out the interrupts of the
 * thread's last processor. stat: its file of that name, which may be waited for (reach.h).
 * -EOPNOTSUPP: the kernel tells no such stamp, or that processor is not available. */
int held_off_ns(pid_t pid, pid_t tid, const char *stat, uint64_t *ret);

/* Whether this machine can freeze threads where they sleep, which no switch tells of: the freezer
 * of cgroup version 1 is mounted. */
bool held_in_place(void);
/* Whether a cgroup of this process, as its first thread has them, is frozen at this moment. */
bool held_process_frozen(pid_t pid);

#endif
