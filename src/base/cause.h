/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What programs have to know about a cause beside its row in prcb/causes.h: a row here for each.
 * Code that treats some causes differently from others asks for a trait; there is no list of
 * causes anywhere else. cause.c fails to compile if a row is missing, is there twice, or
 * contradicts itself.
 */
#ifndef PRCB_BASE_CAUSE_H
#define PRCB_BASE_CAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <prcb/causes.h>

/* The classes of waits by which monitoring sums them. */
enum cause_class {
    CAUSE_CLASS_LOCK,
    CAUSE_CLASS_DISK,
    CAUSE_CLASS_NET,
    CAUSE_CLASS_IPC,
    CAUSE_CLASS_EVENT,
    CAUSE_CLASS_SLEEP,
    CAUSE_CLASS_CHILD,
    CAUSE_CLASS_STOPPED,
    CAUSE_CLASS_KERNEL,
    CAUSE_CLASS_OTHER,
    CAUSE_CLASSES,
    CAUSE_CLASS_NONE /* no wait, or throttled, which has families of its own */
};
extern const char *const cause_class_names[CAUSE_CLASSES]; /* "lock", "disk", ... */

/* What a descriptor in the first argument of the system call must be, if the wait is for it. */
enum cause_object {
    CAUSE_OBJECT_ANY,  /* the cause does not say */
    CAUSE_OBJECT_NONE, /* the wait is for no object, whatever the call is */
    CAUSE_OBJECT_PIPE,
    CAUSE_OBJECT_SOCKET,
    CAUSE_OBJECT_EVENTFD,
    CAUSE_OBJECT_DESCRIPTOR, /* timerfd, signalfd, inotify, ... */
    CAUSE_OBJECT_DEVICE,
    CAUSE_OBJECT_FILE
};

enum cause_trait {
    /* Threads that have nothing to do wait in this way: time in it is no fault by itself. */
    CAUSE_MAY_IDLE = 1 << 0,
    /* Threads wait in this way for nothing else: the kernel's threads without work. */
    CAUSE_IDLES = 1 << 1,
    /* Something holds the thread: a wait that lasts for long may be a fault, and none is idling. */
    CAUSE_HELD = 1 << 2,
    /* The place in the kernel where the thread waits tells more than the cause. */
    CAUSE_WANTS_KERNEL_STACK = 1 << 3,
    /* The wait is for one of the kernel's own locks. */
    CAUSE_IS_KERNEL_LOCK = 1 << 4,
    /* It may be for memory that a program gives (userfaultfd), for all that the switch shows. */
    CAUSE_MAY_FAULT = 1 << 5,
};

/* T(NAME, class, object, colour, traits); colour: the role in the page's style.css, of waits. */
/* clang-format off */
#define CAUSE_TRAITS(T)                                                                           \
    T(QUANTUM,    NONE,    ANY,        "other",   0)                                              \
    T(PREEMPTED,  NONE,    ANY,        "other",   0)                                              \
    T(YIELD,      NONE,    ANY,        "other",   0)                                              \
    T(THROTTLED,  NONE,    NONE,       "more",    CAUSE_HELD)                                     \
    T(SLEEP,      SLEEP,   ANY,        "idle",    CAUSE_MAY_IDLE)                                 \
    T(FUTEX,      LOCK,    ANY,        "lock",    0)                                              \
    T(POLL,       EVENT,   ANY,        "idle",    CAUSE_MAY_IDLE)                                 \
    T(EPOLL,      EVENT,   ANY,        "idle",    CAUSE_MAY_IDLE)                                 \
    T(PIPE,       IPC,     PIPE,       "network", 0)                                              \
    T(SOCKET,     NET,     SOCKET,     "network", 0)                                              \
    T(EVENTFD,    EVENT,   EVENTFD,    "network", 0)                                              \
    T(FD,         EVENT,   DESCRIPTOR, "network", 0)                                              \
    T(DEVICE,     OTHER,   DEVICE,     "network", CAUSE_WANTS_KERNEL_STACK | CAUSE_MAY_FAULT)     \
    T(DISK,       DISK,    FILE,       "storage", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(FSYNC,      DISK,    FILE,       "storage", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(FILE,       DISK,    FILE,       "storage", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK | CAUSE_MAY_FAULT) \
    T(PAGE_FAULT, DISK,    ANY,        "storage", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK | CAUSE_MAY_FAULT) \
    T(FILE_LOCK,  LOCK,    ANY,        "lock",    CAUSE_HELD)                                     \
    T(CHILD,      CHILD,   ANY,        "idle",    CAUSE_MAY_IDLE)                                 \
    T(VFORK,      CHILD,   ANY,        "other",   CAUSE_HELD)                                     \
    T(SIGNAL,     EVENT,   ANY,        "idle",    CAUSE_MAY_IDLE)                                 \
    T(SEMAPHORE,  LOCK,    ANY,        "lock",    0)                                              \
    T(MSGQUEUE,   IPC,     ANY,        "network", 0)                                              \
    T(IO_URING,   EVENT,   ANY,        "storage", CAUSE_WANTS_KERNEL_STACK)                       \
    T(AIO,        EVENT,   ANY,        "storage", 0)                                              \
    T(STOPPED,    STOPPED, NONE,       "other",   CAUSE_HELD)                                     \
    T(TRACED,     STOPPED, NONE,       "other",   CAUSE_HELD)                                     \
    T(FROZEN,     STOPPED, NONE,       "other",   CAUSE_HELD)                                     \
    T(EXIT,       NONE,    ANY,        "other",   0)                                              \
    T(RWSEM,      LOCK,    ANY,        "lock",    CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK | CAUSE_IS_KERNEL_LOCK) \
    T(MMAP_LOCK,  LOCK,    ANY,        "lock",    CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK | CAUSE_IS_KERNEL_LOCK) \
    T(MUTEX,      LOCK,    ANY,        "lock",    CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK | CAUSE_IS_KERNEL_LOCK) \
    T(KLOCK,      LOCK,    ANY,        "lock",    CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK | CAUSE_IS_KERNEL_LOCK) \
    T(RCU,        LOCK,    ANY,        "lock",    CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(KERNEL,     KERNEL,  ANY,        "idle",    CAUSE_MAY_IDLE | CAUSE_IDLES)                   \
    T(WORKER,     KERNEL,  ANY,        "idle",    CAUSE_MAY_IDLE | CAUSE_IDLES)                   \
    T(OTHER_D,    KERNEL,  ANY,        "other",   CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(OTHER,      OTHER,   ANY,        "other",   CAUSE_WANTS_KERNEL_STACK | CAUSE_MAY_FAULT)     \
    T(DRIVER,     OTHER,   ANY,        "network", CAUSE_WANTS_KERNEL_STACK | CAUSE_MAY_FAULT)     \
    T(RECLAIM,    DISK,    NONE,       "storage", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(ENDING,     KERNEL,  NONE,       "other",   CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(CORE_DUMP,  KERNEL,  NONE,       "storage", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(CLOSE,      KERNEL,  NONE,       "network", CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(EXEC,       KERNEL,  NONE,       "other",   CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)          \
    T(SUPERVISOR, IPC,     ANY,        "other",   CAUSE_HELD | CAUSE_WANTS_KERNEL_STACK)
/* clang-format on */

struct cause_traits {
    enum cause_class class;
    enum cause_object object;
    const char *colour;
    unsigned traits;
};

/* Returns the traits, never NULL: a cause without a row has no trait, class OTHER, and any
 * object. */
const struct cause_traits *cause_traits(uint32_t cause);

static inline bool cause_has(uint32_t cause, enum cause_trait trait)
{
    return cause_traits(cause)->traits & trait;
}

/* Whether a wait of a cause may be for work that somebody brings. A thread that is ready, stopped,
 * frozen, held back, or that waits for storage, for a lock of the kernel or for memory is not idle,
 * whatever its stack shows: it would go on if it were let. */
static inline bool cause_may_idle(uint32_t cause)
{
    return !cause_has(cause, CAUSE_HELD) && (cause_traits(cause)->class != CAUSE_CLASS_NONE);
}

/* Returns the cause of this name, which may be NULL; PRCB_CAUSE_NONE: there is none. */
static inline uint32_t cause_by_name(const char *cause)
{
#define X(number, NAME, name, kind, reason, words)                                                 \
    if (cause && !strcmp(cause, name))                                                             \
        return number;
    PRCB_CAUSES(X)
#undef X
    return PRCB_CAUSE_NONE;
}

/* Does the same by name, for recordings; it is true for a name that is not known. */
static inline bool cause_name_may_idle(const char *name)
{
    uint32_t cause = cause_by_name(name);

    return cause == PRCB_CAUSE_NONE || cause_may_idle(cause);
}

#endif
