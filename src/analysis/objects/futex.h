/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The futex that a thread waits for: where it lies and, if it is a mutex that tells it, who
 * holds it. Holders are known for glibc's mutexes (believed after a trial on one of this
 * process's own, and where the stack shows a pthread mutex) and for futexes whose word is the
 * number of their holder (priority inheritance, robust ones, musl's recursive and checked ones,
 * a thread that is joined with glibc). Any number of threads may call.
 */
#ifndef PRCB_OBJECTS_FUTEX_H
#define PRCB_OBJECTS_FUTEX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/stack.h>

/* A system call that a thread is in. */
struct object_call {
    long number;
    uint64_t args[6];
    uint64_t sp, pc;
};

/* False: it is in none, it runs, or this cannot be known. */
bool object_call_read(pid_t pid, pid_t tid, struct object_call *ret);

struct futex {
    uint64_t address;
    unsigned operation; /* of futex(2), with FUTEX_PRIVATE_FLAG */
    bool timed;
};

/* False: it does not wait for one. */
bool futex_of_call(const struct object_call *call, struct futex *ret);

/* Whether its word is known to lie in memory that only this process has. */
bool futex_is_private(const struct futex *futex);

/* Returns the number of the holder in the process's own pid namespace; 0: not known. tid: the
 * thread that waits for it. glibc: whether mutexes are as they are read here. */
pid_t futex_holder(pid_t tid, const struct futex *futex, const struct prcb_stack *stack,
                   bool glibc);

/* Whether the stack waits for an interpreter's lock, which says its holder in other memory. */
bool futex_says_interpreter(const struct prcb_stack *stack);

/* Does the same from a copy of the futex and the words behind it. */
pid_t futex_holder_in(const uint32_t word[3], unsigned words, unsigned operation,
                      const struct prcb_stack *stack, bool glibc);

/* Whether mutexes of the library that this program runs with have the futex, and who holds it,
 * where they are read here. */
bool futex_mutex_names_its_owner(void);

/* Returns the number that a thread has for itself: that of the innermost pid namespace; 0: not
 * known. */
pid_t futex_own_number(pid_t pid, pid_t tid);

/* Where an address lies. */
struct futex_place {
    char name[96];       /* "libx.so+0x4040", "[heap]", "anonymous memory"; "": nowhere */
    char path[4096];     /* of the file that is mapped there, or right before; "": none */
    uint64_t start, end; /* of a mapping of that file, */
    uint64_t dev, ino;   /* which it is, */
    uint64_t base;       /* and where its first page is mapped */
};
void futex_find_place(pid_t pid, pid_t tid, uint64_t address, struct futex_place *ret);

#endif
