/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who used how much of a budget that is for all: by process and by user, for a user can start as
 * many processes as he likes. Half of the budget is for who comes first; of the other half a user
 * gets nothing who had his fair share, and a process nothing that had its own of its user's.
 *
 * Users are told by number; those that nobody knows are one user. One thread.
 */
#ifndef PRCB_FAIR_H
#define PRCB_FAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "table.h"

struct fair_share {
    uint64_t used;   /* microseconds */
    uint64_t hungry; /* of a user: such processes */
    int64_t user;
    uint64_t key; /* of a process: of its first thread's account; 0: not known */
    bool refused; /* since the last count: it is hungry, as is who used a hundredth of the budget */
};

/* All zero: nobody used anything. */
struct fair {
    struct table by_process, by_user; /* numbers of these from 1 on */
    struct fair_share *processes, *users;
    size_t process_count, process_room, user_count, user_room;
    uint64_t hungry_users, budget;
};

void fair_free(struct fair *f);

/* Tells whose a process's number is now, by a key that is nobody else's: another one that had it
 * before leaves nothing. key 0: not known. */
void fair_meet(struct fair *f, pid_t pid, uint64_t key, int64_t (*user)(pid_t pid));

/* What a process used, after it was asked for. */
void fair_charge(struct fair *f, pid_t pid, uint64_t us);

/* Counts who is hungry, for what is asked from now on. budget: microseconds */
void fair_count(struct fair *f, uint64_t budget);

/* Whether this one has to leave the second half to others. user: finds a process's, once. A process
 * for which there is no memory is not greedy. */
bool fair_is_greedy(struct fair *f, pid_t pid, int64_t (*user)(pid_t pid));

/* It asked, and got nothing. */
void fair_refuse(struct fair *f, pid_t pid, int64_t (*user)(pid_t pid));

#endif
