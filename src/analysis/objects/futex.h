/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The futex that a thread waits for: where it lies and, if it is a mutex that says so, who holds
 * it. Holders are those of glibc's mutexes (believed after a trial on one of this process's own,
 * and where the stack shows a pthread mutex) and those whose word is the number of their holder
 * (priority inheritance, robust ones, musl's recursive and checked ones, a thread that is joined
 * with glibc). Any number of threads.
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

/* False: it is in none, it runs, or that is not to be told. */
bool object_call_read(pid_t pid, pid_t tid, struct object_call *ret);

struct futex {
    uint64_t address;
    unsigned operation; /* of futex(2), with FUTEX_PRIVATE_FLAG */
    bool timed;
};

/* False: it does not wait for one. */
bool futex_of_call(const struct object_call *call, struct futex *ret);

/* Its word is known to lie in memory of the process alone. */
bool futex_is_private(const struct futex *futex);

/* The number of the holder as the process itself has it (its own pid namespace); 0: not told.
 * tid: who waits for it. glibc: whether mutexes are as they are read here. */
pid_t futex_holder(pid_t tid, const struct futex *futex, const struct prcb_stack *stack,
                   bool glibc);

/* The same from a copy of the futex and the words behind it. */
pid_t futex_holder_in(const uint32_t word[3], unsigned words, unsigned operation,
                      const struct prcb_stack *stack, bool glibc);

/* As the library that this program runs with has it: the futex, and who holds it. */
bool futex_mutex_names_its_owner(void);

/* The number that a thread has for itself: of the innermost pid namespace; 0: not known. */
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
