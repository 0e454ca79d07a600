/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread waits for: the file, pipe, socket, futex or kernel lock behind a wait that goes on.
 * The system call that the thread is in and its arguments say which descriptor or address it is;
 * the thread does not run meanwhile, which its account's switch count proves, before and after.
 *
 * A descriptor's number may have been given to another file since the wait began. So a name is
 * believed where the account says which file it was at the switch (prcb_account.object), or where
 * the process has one thread only, which cannot have changed it. Else the name says "now".
 *
 * Objects are kept once each. Names are what others chose: they are printed by src/base/text.h.
 * Nothing is asked of the file itself: a file system that hangs hangs its own threads only.
 *
 * Access is the kernel's ptrace rule, as of prcb/stack.h. One thread.
 */
#ifndef PRCB_OBJECTS_H
#define PRCB_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/stack.h>

enum object_kind {
    OBJECT_FILE,
    OBJECT_FIFO,
    OBJECT_DEVICE,
    OBJECT_PIPE,
    OBJECT_SOCKET,
    OBJECT_EVENTFD,
    OBJECT_DESCRIPTOR, /* timerfd, signalfd, inotify, ... */
    OBJECT_EPOLL,
    OBJECT_POLL,
    OBJECT_FUTEX,
    OBJECT_LOCK, /* the kernel's */
    OBJECT_SEMAPHORE,
    OBJECT_QUEUE,
    OBJECT_THREAD,  /* a holder */
    OBJECT_PROCESS, /* a child */
};
const char *object_kind_name(enum object_kind kind); /* "file", "pipe", ... */

struct object {
    enum object_kind kind;
    char *key;        /* what tells it from others */
    char *name;       /* "/var/lib/x", "pipe:[123]", "tcp 10.0.0.1:5 -> 10.0.0.2:80", "0x7f..." */
    char *detail;     /* what else is known: a device, who has the other end; NULL: nothing */
    char *symbol;     /* of a futex or lock in static memory; NULL: none */
    bool now;         /* the name is of what the descriptor is now: it may have been another's */
    pid_t tid;        /* of a thread */
    pid_t pid;        /* of the process that was seen to wait for it first */
    uint64_t inode;   /* of a descriptor's file; 0: not known */
    uint64_t address; /* of a futex or lock; else 0 */
    uint64_t netns;   /* of a socket: inode of its namespace; 0: not known */
    uint64_t peer;    /* of a socket: inode of the other end; 0: not known */
    pid_t other;      /* of a pipe or socket: the only process that was seen to have its other end;
                         0: not known, as long as objects_find_ends was not called */
    mode_t end;       /* of a pipe or FIFO: S_IRUSR or S_IWUSR, which end is waited for; 0: not
                         known */
    char *doing;      /* what `other` did then: "it runs"; NULL: not known */
    int file;         /* of a futex: of what is mapped there, an index of objects_file; -1: none */
    uint64_t place;   /* then, its address from where that file's first page is mapped */
};

/* What a wait is for. The numbers are those of objects_at; 0: not known. */
struct object_wait {
    uint32_t object;
    uint32_t holder; /* of the lock, as it says itself */
    bool later;      /* not looked for yet, or not named: ask again */
};

struct objects;

int objects_open(struct prcb *session, struct objects **ret); /* 0 or -ENOMEM */
void objects_close(struct objects *o);                        /* NULL is allowed */

/* Reads what the wait is for that a record (not a difference) shows. stack: the stack of that
 * wait, which tells a mutex from other futexes; NULL: not known. What cannot be found stays 0.
 * For a wait that is over by now, or whose thread is ready, only what the account has of it is
 * known: a kernel lock, or a descriptor's file. */
struct object_wait objects_read(struct objects *o, const struct prcb_account *a,
                                const struct prcb_stack *stack);

/* Whether a stack tells what the wait is for, whatever the call: as of node's execSync, which has
 * an event loop to wait for one child. */
bool objects_by_stack(const struct prcb_stack *stack);

/* Does the same for a wait that was chosen at random, and that has not ended as far as its
 * record tells. The record tells what a descriptor was; the whole path of a file is known if the
 * descriptor still is that file. Nothing is known of poll(2) and select(2): their lists may be
 * others by now. */
struct object_wait objects_read_chosen(struct objects *o, const struct prcb_chosen *chosen,
                                       const struct prcb_stack *stack);

const struct object *objects_at(const struct objects *o, uint32_t number);
uint32_t objects_count(const struct objects *o); /* numbers are from 1 to this */

/* Finds who has the other ends of pipes and sockets, in one walk over /proc. Call it once, at
 * the end. */
void objects_find_ends(struct objects *o);

#define OBJECTS_NO_FILE (-2)
/* Returns the place (reach.h) of a file that futexes lie in; -1: it was not found. Numbers begin
 * at 0 and end before the first that is OBJECTS_NO_FILE. */
int objects_file(const struct objects *o, int number);
/* Sets the name that the caller found; a copy is kept. */
void objects_set_symbol(struct objects *o, uint32_t number, const char *symbol);

#endif
