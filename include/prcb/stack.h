/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb: where a thread waits. The stack of a thread that is off the processor, read while it
 * waits: without stopping it, without ptrace, complete also for code built without frame pointers.
 *
 * A thread that waits does not change its stack, and its account counts its switches: where the
 * count is the same before and after the reading, registers and memory belong to one wait, the one
 * that the account names. The pair (key, switches) names that wait; a stack that was read once for
 * it stays right for as long as the pair is the same, so a thread that sleeps on costs nothing.
 *
 * Access   The kernel's ptrace rule for the calling process itself: its user's own processes,
 *          under Yama's ptrace_scope 1 only its descendants. prcbd reads no memory; it names
 *          the functions in the kernel of threads that the caller may profile.
 * Trust    Programs and libraries of other processes are read and unwound by a child process
 *          that has no rights, within limits of memory and time.
 * Link     -lprcb-stack, pkg-config libprcb-stack.
 * Threads  A reader belongs to one thread at a time. Errors, sizes and units are as in prcb.h.
 */
#ifndef PRCB_STACK_H
#define PRCB_STACK_H

#include <prcb/prcb.h>
#include <prcb/span.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prcb_stacks; /* reads stacks of a session's threads: opaque */

struct prcb_stacks_options {
    size_t size;          /* sizeof(struct prcb_stacks_options) */
    uint32_t max_frames;  /* per stack; 0: 256 */
    uint32_t stack_bytes; /* of the stack that are read at first; 0: 16 KiB. Four times as many, up
                             to 1 MiB, where that was not enough */
    uint32_t flags;       /* enum prcb_stacks_flag bits */
};

enum prcb_stacks_flag {
    PRCB_STACKS_NATIVE = 1 << 0, /* an interpreter's own functions, not those that it runs */
    PRCB_STACKS_SPANS =
        1 << 1, /* the span of a trace that the thread is in, too: prcb_stack.span */
    PRCB_STACKS_FETCHED =
        1 << 2, /* debug information that debuginfod's client has fetched before, too */
};

/* Opens a reader. Close it before the session. Sessions opened with PRCB_OPEN_REGISTERS give it
 * better registers; without, /proc/PID/task/TID/syscall has them, but for the frame pointer.
 * -EOPNOTSUPP: this build has no libdw, the processor is neither x86-64 nor arm64, or /proc belongs
 * to another pid namespace. */
PRCB_API int prcb_stacks_open(struct prcb *p, const struct prcb_stacks_options *opts,
                              struct prcb_stacks **ret, struct prcb_error *err);
PRCB_API void prcb_stacks_close(struct prcb_stacks *s); /* NULL is allowed */

/* One frame. Strings are borrowed until prcb_stacks_close. */
struct prcb_frame {
    uint64_t address;     /* of the call: inside the instruction, not behind it; 0: the kernel's,
                             or a function that an interpreter runs, which has a line */
    const char *function; /* demangled; NULL: not known */
    const char *file;     /* as the process sees it; NULL: in no file (compiled at run time);
                             "[kernel]", "[ext4]": the kernel's, a module's; an interpreter's: the
                             source, as its program names it */
    uint64_t place;       /* offset in the file; an interpreter's: the line; 0: the kernel's */
    const char *source;   /* as its compiler named it, where prcb_stacks_lines found it; or NULL */
    uint64_t line;        /* of the source */
};

enum prcb_stack_flag {
    PRCB_STACK_COMPLETE = 1 << 0, /* the outermost frame is the last */
    PRCB_STACK_CUT = 1 << 1,      /* there are more than max_frames, or more than 1 MiB */
};

/* What kind of waiting the stack shows, as far as a table of known functions says. A wait that its
 * cause says is none for work (the thread is stopped, frozen, held back by a quota, waits for
 * storage or a kernel lock), or whose thread /proc shows stopped, traced, frozen or blocked, is
 * PRCB_STACK_BLOCKED, whatever the stack shows. */
enum prcb_stack_kind {
    PRCB_STACK_BLOCKED = 0, /* something keeps it from work that it has; also: not known */
    PRCB_STACK_IDLE = 1,    /* by design: it has nothing to do */
    PRCB_STACK_EITHER = 2,  /* a way of waiting that serves both */
};

/* Whose wait it is, as the program publishes it by OpenTelemetry's thread context (prcb/span.h). */
enum prcb_span_state {
    PRCB_SPAN_UNASKED = 0, /* PRCB_STACKS_SPANS is not set, or nothing there publishes spans */
    PRCB_SPAN_UNREAD = 1,  /* it publishes them, and this thread's could not be read */
    PRCB_SPAN_NONE = 2,    /* the thread is in none */
    PRCB_SPAN_THERE = 3,
};

struct prcb_stack {
    size_t size;       /* sizeof(struct prcb_stack), set by the caller */
    uint64_t key;      /* the account ... */
    uint64_t switches; /* ... and its count: together the wait */
    uint32_t id;       /* from 1; the same for equal stacks of one reader */
    uint32_t flags;    /* enum prcb_stack_flag bits */
    uint32_t kind;     /* enum prcb_stack_kind */
    uint32_t frame_count;
    const char *word;                /* "mutex", "event loop"; NULL: the table has none */
    const struct prcb_frame *frames; /* innermost first; borrowed until prcb_stacks_close */
    uint64_t lock_at;     /* with the word "GIL": the address where its interpreter has the lock's
                             holder, a pointer, and behind it an int that is not 0 while it is held;
                             0: not known */
    uint32_t lock_number; /* how far behind that pointer the holding thread's number lies, which is
                             that of its own pid namespace */
    uint32_t span_state;  /* enum prcb_span_state */
    struct prcb_span_id span;
};

/* Reads what a process has mapped before a stack of it is asked for, which takes longest for the
 * first one. Of the threads of its interpreter that the session profiles by now, frames are copied
 * with each wait from now on (prcb_chosen_chain). Errors as of prcb_stacks_read. */
PRCB_API int prcb_stacks_meet(struct prcb_stacks *s, pid_t pid, struct prcb_error *err);

/* The stack of the wait that a record (of prcb_thread_read or prcb_walk) shows. A wait that was
 * asked for before is answered from memory. Where the cause does not say where in the kernel it is
 * (storage, kernel locks, devices), the functions in the kernel come first, as of
 * prcb_kernel_stack, if the session has that. -EAGAIN  the thread has run since, or runs -EPERM no
 * ptrace access to the process -ESRCH, -ESTALE it has ended, its account was given back -ENOTSUP it
 * is a kernel thread of which no kernel functions are known, or a 32-bit program -EIO     its files
 * could not be unwound within the limits of memory and time, or what is kept of stacks and names
 * has reached its limit (256 MiB) */
PRCB_API int prcb_stacks_read(struct prcb_stacks *s, const struct prcb_account *a,
                              struct prcb_stack *ret, struct prcb_error *err);

/* The stack of a wait that was chosen at random, from the copy that came with it (ended is false).
 * The copy is of that very moment, so there is nothing to prove; a stack deeper than the
 * copy is PRCB_STACK_CUT. Errors as of prcb_stacks_read; -ESRCH: the process had ended, or become
 * another program, before any stack of it was read; -EFAULT: the copy is empty. */
PRCB_API int prcb_stacks_unwind(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                                struct prcb_stack *ret, struct prcb_error *err);

/* Where a thread ran: its registers in user mode and the top of its stack, copied at one moment, as
 * perf_event_open(2) does (PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER). */
struct prcb_running {
    size_t size; /* sizeof(struct prcb_running) */
    pid_t pid, tid;
    uint64_t pc;
    uint64_t registers[32]; /* by their numbers in DWARF: x86-64 0 to 15, arm64 0 to 31 */
    uint64_t stack_at;      /* address of the copy's first byte: the stack pointer */
    const void *stack;
    size_t stack_bytes;
    /* As of struct prcb_ran, of the same moment; node_count 0: none. */
    uint32_t node_count, whole;
    const struct prcb_node *nodes;
    uint64_t time_ns;
};

/* Its stack, unwound like that of a wait. Frames are not named, but for the last and an
 * interpreter's, and belong to the reader until the next call of this function; the stack has no
 * id and no kernel's frames, and an interpreter's only where their list is there: a thread that ran
 * on has left these behind. With a session of PRCB_OPEN_RAN lists are copied from the first time on
 * that a thread of a process was asked for. What the process has mapped is
 * read now: the caller has to know whether it ran the same program at that moment, and had the
 * frames' files mapped at their places. No session is needed: the reader may have been opened with
 * p = NULL, and then has this function alone. Errors as of prcb_stacks_unwind. */
PRCB_API int prcb_stacks_ran(struct prcb_stacks *s, const struct prcb_running *ran,
                             struct prcb_stack *ret, struct prcb_error *err);

/* Finds the lines of source of a stack that this reader handed out: afterwards its frames have them
 * where the program, or what is installed in /usr/lib/debug, has debug information. The process may
 * have ended. Each place is looked for once; what takes more than two seconds in all is left out.
 * -EINVAL: it is not this reader's. */
PRCB_API int prcb_stacks_lines(struct prcb_stacks *s, const struct prcb_stack *stack);

/* Tasks of a runtime that switches between them by itself (goroutines) and that are in the same
 * state at the same place. */
struct prcb_task_group {
    uint64_t count;
    const char *state; /* as the runtime says it: "semacquire", "IO wait", "running" */
    uint32_t locked;   /* 1: they wait for a lock */
    uint32_t complete; /* 1: the outermost frame is the last */
    uint32_t frame_count;
    const struct prcb_frame *frames; /* innermost first, as those of an interpreter */
};

struct prcb_tasks {
    size_t size;         /* sizeof(struct prcb_tasks), set by the caller */
    const char *runtime; /* "Go 1.19.8" */
    const char *unread;  /* why there are none; NULL: they were read */
    uint64_t total;      /* how many there are */
    uint64_t own;        /* of these, the runtime's own, which are in no group */
    uint64_t moved;      /* that ran while they were read, and are in no group */
    uint64_t beyond;     /* that are in no group, for there are too many */
    uint32_t group_count;
    const struct prcb_task_group *groups; /* largest first; borrowed until prcb_stacks_close */
    const char *kind;                     /* "goroutines", "tasks of asyncio" */
};

/* Reads the tasks of a process where they wait. They are not stopped: each is read twice, and is in
 * a group if both times show the same. -ENOENT: it has no such runtime; else as prcb_stacks_read.
 */
PRCB_API int prcb_stacks_tasks(struct prcb_stacks *s, pid_t pid, struct prcb_tasks *ret,
                               struct prcb_error *err);

/* What the reader has done so far. */
struct prcb_stacks_status {
    size_t size;         /* sizeof(struct prcb_stacks_status), set by the caller */
    uint64_t asked;      /* calls of prcb_stacks_read */
    uint64_t remembered; /* of these, answered from memory */
    uint64_t unwound;    /* of these, read and unwound */
    uint64_t moved;      /* of these, given up: the thread ran meanwhile */
    uint64_t cpu_ns;     /* processor time of the children that read and unwind */
    uint64_t
        unanswered; /* questions to processes, for memory and files, without an answer in time */
    uint64_t interpreted;   /* waits of interpreters' threads whose frames were read to the last */
    uint64_t uninterpreted; /* and of which not, or the thread ran meanwhile */
    const char *unread;     /* what was not read of an interpreter met last, and what makes it
                               readable; NULL: nothing. Until prcb_stacks_close */
    int32_t unread_pid;     /* whose */
    uint64_t copied;        /* waits among the interpreted whose frames were copied as they began */
};
PRCB_API int prcb_stacks_status(struct prcb_stacks *s, struct prcb_stacks_status *ret);

#ifdef __cplusplus
}
#endif
#endif
