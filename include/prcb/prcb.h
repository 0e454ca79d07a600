/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb: live accounts of threads, read without a system call.
 *
 * A session (struct prcb) keeps the kernel side alive: eBPF programs that write
 * one small block ("account") per profiled thread at each context switch, in
 * memory mapped into this process. Reading an account copies that block and adds
 * the stretch since the last switch; on the bpf tier it makes no system call.
 * Where eBPF may not be used, the same calls work from procfs (the perf tier)
 * with fewer members; each record says which members it holds.
 *
 * Units    Times are nanoseconds unless the name says otherwise.
 * Errors   Functions that can fail return 0 or -errno, fill *err when it is not
 *          NULL (one line: what failed, on what, what to do), and leave every
 *          result parameter unchanged.
 * Threads  A session may be used by several threads at once. A struct
 *          prcb_thread belongs to one thread at a time.
 * Sizes    Structures that callers pass start with their own size, so that
 *          programs and libraries of different versions work together: set it to
 *          sizeof and the rest to zero (-EINVAL: a size of 0). Options: missing
 *          members count as zero, unknown ones must be zero (-E2BIG), NULL is all
 *          zero. Results: filled up to the size of the structure; members that the
 *          library does not know are set to zero.
 * Reserves Elements of arrays (prcb_counter, prcb_layout_field, prcb_dump_value) and
 *          prcb_counter_event have no size of their own and never change theirs:
 *          programs step through arrays by what they were compiled with. Instead
 *          they end with a reserve, which the library sets to zero; members that
 *          come take from it, and zero means that they are not told.
 */
#ifndef PRCB_PRCB_H
#define PRCB_PRCB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/causes.h>
#include <prcb/error.h>
#include <prcb/numbers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sessions ----------------------------------------------------------- */

struct prcb; /* a session: opaque */

/* Where records come from, worst first. */
enum prcb_tier {
    PRCB_TIER_AUTO = 0,   /* in options only: the best this process may use */
    PRCB_TIER_PERF = 1,   /* procfs and getrusage: no privilege, fewer members */
    PRCB_TIER_BPF = 2,    /* eBPF programs of this process: root, or CAP_BPF + CAP_PERFMON */
    PRCB_TIER_DAEMON = 3, /* eBPF programs of prcbd(8): what its configuration allows; PRCB_SOCKET
                             in the environment, or /run/prcb/socket */
};

struct prcb_options {
    size_t size;          /* sizeof(struct prcb_options) */
    enum prcb_tier tier;  /* PRCB_TIER_AUTO, or force one */
    uint32_t max_threads; /* accounts to make room for; 0: 16384. 1 KiB each on the bpf tier */
    uint32_t flags;       /* enum prcb_open_flag bits */
    size_t switch_bytes;  /* bpf tier, with PRCB_OPEN_SWITCHES: room for the records of all
                             processors together, rounded down to 1 KiB times a power of two for
                             each; 0: 4 MiB for each */
};

/* For the bpf tier; ignored by others, except where they are named. */
enum prcb_open_flag {
    PRCB_OPEN_NO_LOCKS = 1 << 0,    /* leave the lock tracepoints alone: waits for kernel locks are
                                       then filed under their system call, or other-d */
    PRCB_OPEN_KTIME = 1 << 1,       /* stamp with CLOCK_MONOTONIC, not the run-queue clock: dearer,
                                       and the latency of waking an idle processor moves from run
                                       to wait (docs/figures.md) */
    PRCB_OPEN_INTERRUPTED = 1 << 2, /* keep interrupted_ns: attaches programs to the interrupts of
                                    the whole machine. Where the kernel does not allow it the
                                    member is absent, with the reason */
    PRCB_OPEN_REGISTERS = 1 << 3,   /* keep registers: what an unwinder starts from (prcb/stack.h).
                                       daemon tier: of one's own threads, whoever else's are
                                       profiled */
    PRCB_OPEN_EDGES = 1 << 4,       /* keep by whom threads are woken and preempted (prcb/edges.h):
                                       attaches programs to all wakeups and interrupts. 2 KiB more
                                       for each account. Not on the perf tier */
    PRCB_OPEN_CHOSEN = 1 << 5,      /* bpf tier: waits are chosen at random as they begin, and the
                                       stacks of these copied: prcb_chosen. Ignored elsewhere */
    PRCB_OPEN_SHARED = 1 << 6, /* daemon tier: with prcb_profile_all and nothing else, accounts that
                                  are shared with others who do the same, so that several such
                                  sessions cost a switch no more than one. They may have begun
                                  earlier, and keep no registers. Ignored elsewhere, and where
                                  prcbd does not let the caller share */
    PRCB_OPEN_TAILS = 1 << 7,  /* keep how long waits and ready time took, by cause (prcb/tails.h):
                                  48 KiB more for each processor. Not on the perf tier. daemon tier:
                                  a session that is shared has them where prcbd.conf says so */
    PRCB_OPEN_OWNERS = 1 << 8, /* with PRCB_OPEN_EDGES: edges tell who held the kernel's mutexes and
                                  semaphores as well. Ignored where there are no edges */
    PRCB_OPEN_SWITCHES = 1 << 9,   /* keep a record of each switch of the session's threads, the
                                    last ones: prcb_session_switches (prcb/sample.h). daemon tier:
                                    with PRCB_OPEN_EDGES also of who woke them; some megabytes, and
                                    two sessions of a user. bpf tier: of who woke them in any case,
                                    which attaches programs to all wakeups and interrupts. Ignored on
                                    the perf tier. With PRCB_OPEN_SHARED: those that prcbd keeps of
                                    all threads from its start on (flight in prcbd.conf), or none */
    PRCB_OPEN_OBJECTS = 1 << 10,   /* keep which file and, on the bpf tier, which of the kernel's
                                      locks waits are for (prcb_account.object, prcb_chosen). daemon
                                      tier: of one's own threads, whoever else's are profiled. Not on
                                      the perf tier */
    PRCB_OPEN_MEANWHILE = 1 << 12, /* with PRCB_OPEN_EDGES: edges tell whose threads ran while a
                                      thread was ready as well, by cgroup. daemon tier: for those
                                      who see all processes in /proc. Ignored where there are no
                                      edges */
    PRCB_OPEN_RAN =
        1 << 13, /* bpf tier, with PRCB_OPEN_CHOSEN: prcb_ran_program. Ignored elsewhere */
    PRCB_OPEN_HURRY = 1 << 11, /* daemon tier: each call gives prcbd 0.2 s to answer, not 10; for
                                  programs that have other work than to wait for it. Ignored
                                  elsewhere */
};

/* For how long a shared session sees the account of a thread that has ended, if it does not release
 * it before: prcb_walk is to be called more often than that. */
#define PRCB_SHARED_GRACE_NS 5000000000ull

/* Opens a session. opts may be NULL: everything default. The caller owns *ret
 * and closes it with prcb_close.
 * -EPERM      the forced tier needs a privilege that this process does not have
 * -EOPNOTSUPP the forced tier cannot work on this kernel or in this build
 * -ENOMEM, -EINVAL, -E2BIG */
PRCB_API int prcb_open(const struct prcb_options *opts, struct prcb **ret, struct prcb_error *err);

/* Ends a session: detaches the kernel side and frees all memory. Close thread
 * handles first; a handle outlived by its session must not be used again.
 * NULL is allowed. */
PRCB_API void prcb_close(struct prcb *p);

/* The tier in use, and its name: "daemon", "bpf" or "perf". */
PRCB_API enum prcb_tier prcb_session_tier(const struct prcb *p);
PRCB_API const char *prcb_tier_name(enum prcb_tier tier);

/* Why the session is not on a better tier: one line, borrowed until prcb_close;
 * NULL when it is on the best there is or when the caller forced it. */
PRCB_API const char *prcb_session_tier_reason(const struct prcb *p);

/* The kernel's last words about the first eBPF program that it refused to the calling thread since
 * this began to open its latest session, view of the processors or sampler: up to 16 lines of the
 * verifier's log, borrowed until the next is opened; NULL when none was refused. */
PRCB_API const char *prcb_load_log(void);

/* What the session as a whole has seen. */
struct prcb_status {
    size_t size;                /* sizeof(struct prcb_status), set by the caller */
    uint32_t max_threads;       /* accounts there is room for */
    uint32_t threads;           /* accounts in use, those of ended threads included */
    uint64_t untracked_threads; /* threads that should have been followed, had there been room */
    uint64_t missed_switches;   /* switches the kernel counted and did not report, all accounts */
    bool short_threads_missed;  /* perf tier: threads that live shorter than the time between
                                   two prcb_refresh calls are not seen */
    uint64_t recursion_misses;  /* times that the kernel did not run one of the session's programs,
                                   all programs, since a task that was in the middle of it had been
                                   preempted (Linux 7.0 and later). What each may have cost:
                                   docs/figures.md. UINT64_MAX: not known (the perf tier has no
                                   programs, an earlier or absent prcbd does not tell) */
};
PRCB_API int prcb_session_status(struct prcb *p, struct prcb_status *ret);

/* An eBPF program that the kernel runs for events. */
struct prcb_program {
    size_t size;               /* sizeof(struct prcb_program), set by the caller */
    char name[32];             /* "prcb_switch" */
    uint64_t recursion_misses; /* as in prcb_status, of this program. UINT64_MAX: the kernel does
                                  not count them, of this kind or at all */
};
/* The session's own programs, i from 0: with PRCB_OPEN_INTERRUPTED those of processors too.
 * On the daemon tier they are prcbd's, for all its clients, counted from the opening of the
 * session; i 0 asks prcbd, at most 0.2 s, and the others are of that answer. -ENOENT: there are no
 * more; on the perf tier there are none. */
PRCB_API int prcb_session_program(struct prcb *p, uint32_t i, struct prcb_program *ret);

/* What this kernel does not report on the session's tier beyond members that are absent:
 * causes that are coarser than docs/figures.md has them, each a line that names the effect and the
 * reason. i from 0; NULL: there are no more. Borrowed until prcb_close. */
PRCB_API const char *prcb_session_limit(const struct prcb *p, size_t i);

/* ---- choosing what to profile ------------------------------------------- */

/* Thread and process numbers are those of the caller's pid namespace.
 * Profiling a thread that is profiled already changes nothing but widens what it
 * passes on. A thread's account starts at zero when its profiling starts, and at
 * its creation where it was followed.
 *
 * -ESRCH  no such thread or process
 * -EPERM  the tier does not allow it (perf tier: another user's, see hidepid)
 * -ENOSPC every account is in use (prcb_status.untracked_threads has grown)
 * -EOPNOTSUPP the tier cannot (perf tier: cgroups it cannot list) */
PRCB_API int prcb_profile_thread(struct prcb *p, pid_t tid, unsigned follow,
                                 struct prcb_error *err);
/* All threads of the process, those it has and (with PRCB_FOLLOW_THREADS) those to come. */
PRCB_API int prcb_profile_process(struct prcb *p, pid_t pid, unsigned follow,
                                  struct prcb_error *err);
/* All threads in the cgroup directory and those below it, threads that are moved
 * into it later, and what these create. Several cgroups: one call each,
 * 16 at most on the bpf and the daemon tier. When a whole process
 * is moved in, its other threads follow at the next prcb_refresh (bpf tier: its
 * first thread at once). Threads that are moved out stay profiled. Threads that have no number in
 * the caller's pid namespace are left out. */
PRCB_API int prcb_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err);
/* Every thread of the system, kernel threads included, present and future. In a pid namespace of
 * its own: bpf and perf tier: every thread that has a number there; daemon tier: those of prcbd's
 * namespace, without a number (tid and pid 0) where they have none in the caller's. */
PRCB_API int prcb_profile_all(struct prcb *p, struct prcb_error *err);

/* Starts argv[0] (searched in PATH) as a child, profiled from before its exec.
 * Returns when the exec has succeeded: *ret is the child, for the caller to wait
 * for. -ENOENT, -EACCES or similar: the exec's own error; -EINVAL: argv names no
 * command. No child is left then. p NULL: it is started and not profiled. */
PRCB_API int prcb_spawn(struct prcb *p, char *const argv[], unsigned follow, pid_t *ret,
                        struct prcb_error *err);

/* The same, with a stop between fork and exec: before_exec sees the child while it
 * waits; if it returns not 0, no child is left and that is the result. hook may be
 * NULL; -EINVAL where its size or before_exec is not set. */
typedef int (*prcb_spawn_fn)(pid_t child, void *ctx, struct prcb_error *err);
struct prcb_spawn_hook {
    size_t size; /* sizeof(struct prcb_spawn_hook) */
    prcb_spawn_fn before_exec;
    void *ctx;
};
PRCB_API int prcb_spawn_hooked(struct prcb *p, char *const argv[], unsigned follow,
                               const struct prcb_spawn_hook *hook, pid_t *ret,
                               struct prcb_error *err);

/* Brings the session up to date with threads that came and went. The bpf tier
 * looks only after a process was moved into the profiled cgroup; the perf tier
 * looks at /proc at each call, and a thread that starts and ends between two calls
 * is not seen. prcb_walk calls it. */
PRCB_API int prcb_refresh(struct prcb *p, struct prcb_error *err);

/* ---- records ------------------------------------------------------------ */

/* Which members of a record hold a value (prcb_account.present). A member whose
 * bit is not set is 0 and means nothing; prcb_absent_reason says why. */
enum prcb_member {
    PRCB_HAS_WALL = 1 << 0,
    PRCB_HAS_RUN = 1 << 1,
    PRCB_HAS_READY = 1 << 2,
    PRCB_HAS_SWITCHES = 1 << 3, /* switches, voluntary_switches */
    PRCB_HAS_MIGRATIONS = 1 << 4,
    PRCB_HAS_CYCLES = 1 << 5,
    PRCB_HAS_WAITS = 1 << 6,   /* waits[], missed_switches, unclear_wakes, and open.cause */
    PRCB_HAS_WAIT = 1 << 7,    /* wait_ns */
    PRCB_HAS_OPEN = 1 << 8,    /* open_ns */
    PRCB_HAS_SYSCALL = 1 << 9, /* last_syscall */
    PRCB_HAS_INTERRUPTED = 1 << 10,
    PRCB_HAS_REGISTERS = 1 << 11, /* of a thread that is off the processor */
    PRCB_HAS_CGROUP = 1 << 12,
    PRCB_HAS_OBJECT = 1 << 13, /* of a thread that is off the processor */
};

enum prcb_account_flag {
    PRCB_ACCOUNT_EXITED = 1 << 0,  /* the thread has made its last switch */
    PRCB_ACCOUNT_RUNNING = 1 << 1, /* it was on a processor at the time of the read */
    PRCB_ACCOUNT_KTHREAD = 1 << 2, /* a kernel thread */
    PRCB_ACCOUNT_ORPHAN = 1 << 3,  /* daemon tier: the daemon gave the session up (it was cleaned
                                      away, or replaced by a newer one that cannot go on with it):
                                      the record is of that moment and will not change */
};

/* One cause of not running. */
struct prcb_wait {
    uint64_t count; /* switches out for this cause; a wait that was already going on when
                       profiling started adds time but no count */
    uint64_t ns;    /* time waited, closed stretches only; 0 for causes of kind READY */
};

/* What is not over yet: the stretch since a thread that is not running was
 * switched out. It is in no total until it closes. */
struct prcb_open {
    uint32_t cause; /* enum prcb_cause; PRCB_CAUSE_NONE: none known, or the thread runs */
    uint32_t pad;
    uint64_t ns;
};

/* The user registers that an unwinder starts from, as of the last entry into the kernel. */
struct prcb_registers {
    uint64_t pc, sp;
    uint64_t fp; /* x86-64: rbp; arm64: x29 */
    uint64_t lr; /* arm64: x30; x86-64: 0 */
};

/* What a thread was switched out for. A member that is 0: none is known. */
struct prcb_object {
    uint64_t inode;  /* of the file that was open by the number in the first argument of its system
                        call: what it waits for, if that argument is a descriptor, */
    uint32_t device; /* and of its file system: the major number << 20 | the minor one */
    uint32_t descriptor; /* that number, where there is an inode */
    uint64_t lock;       /* address of the kernel's lock that it waits for; daemon tier: 0 */
};

/* A thread's account at one moment. Every figure counts from the start of its
 * profiling. Two laws hold within each record of the bpf tier:
 *   run_ns + ready_ns + wait_ns + open.ns == wall_ns
 *   switches == the kernel's voluntary + involuntary switches of the thread
 * docs/figures.md defines each member. */
struct prcb_account {
    size_t size;                 /* sizeof(struct prcb_account), set by the caller */
    uint64_t present;            /* enum prcb_member bits */
    uint64_t key;                /* names this account in its session, never used again for
                                    another thread */
    uint32_t tier;               /* enum prcb_tier that filled the record */
    uint32_t flags;              /* enum prcb_account_flag bits */
    pid_t tid, pid;              /* in the caller's pid namespace; 0: not visible there */
    char comm[16];               /* thread name, NUL-terminated */
    uint64_t wall_ns;            /* since profiling of it started; to its end once it has exited */
    uint64_t run_ns;             /* on a processor, the live stretch included */
    uint64_t ready_ns;           /* able to run, waiting for a processor */
    uint64_t wait_ns;            /* sum of waits[].ns */
    uint64_t switches;           /* context switches away from it */
    uint64_t voluntary_switches; /* of these, the ones it asked for by waiting */
    uint64_t migrations;         /* moves to another processor, as the kernel counts them */
    uint64_t tsc_cycles;         /* run_ns in cycles of the time-stamp counter */
    uint64_t missed_switches;    /* switches the kernel counted and did not report: their causes
                                    are not in waits[], their time is repaired */
    struct prcb_open open;
    int32_t last_syscall; /* number of the system call it last switched out in; -1: none */
    uint32_t retries;     /* passes beyond the first that this read needed */
    struct prcb_wait waits[PRCB_CAUSE_MAX]; /* by enum prcb_cause */
    uint64_t interrupted_ns;                /* of run_ns: hard interrupts and softirqs during it */
    struct prcb_registers registers;        /* at the last switch out */
    uint64_t cgroup; /* number of the directory of its cgroup of version 2 (the inode number that
                        stat(2) tells), as of the last switch out; 1: the root */
    struct prcb_object object; /* as of the last switch out */
    uint64_t unclear_wakes; /* waits whose end is not known, for the kernel moved the thread while
                               it slept: ready time after them is in waits[] */
};

/* The part of an account that costs least to read (one cache line). */
struct prcb_times {
    size_t size;      /* sizeof(struct prcb_times), set by the caller */
    uint64_t present; /* enum prcb_member bits */
    uint64_t switches;
    uint64_t run_ns; /* the live stretch included */
    uint32_t flags;  /* enum prcb_account_flag bits */
    uint32_t retries;
    uint64_t interrupted_ns; /* as of struct prcb_account */
};

struct prcb_thread; /* a handle on one account: opaque */

/* Opens a handle on a profiled thread's account. prcb_thread_open_self starts
 * profiling the calling thread (with follow none) if it is not profiled yet.
 * -ESRCH: the thread is not profiled by this session. -EAGAIN: as prcb_thread_read. Close with
 * prcb_thread_close (NULL allowed). */
PRCB_API int prcb_thread_open(struct prcb *p, pid_t tid, struct prcb_thread **ret,
                              struct prcb_error *err);
PRCB_API int prcb_thread_open_self(struct prcb *p, struct prcb_thread **ret,
                                   struct prcb_error *err);
/* The account that a record names by its key; takes the same time however many there are.
 * -ESTALE: it was released. -ESRCH: perf tier, the thread has ended. */
PRCB_API int prcb_thread_open_key(struct prcb *p, uint64_t key, struct prcb_thread **ret,
                                  struct prcb_error *err);
PRCB_API void prcb_thread_close(struct prcb_thread *t);

/* Reads the account. What a handle has returned never goes backwards. On the
 * bpf tier neither function makes a system call (but one yield when the writer's
 * processor was itself descheduled in the middle of an update).
 * -ESTALE the account was released
 * -EAGAIN the block stayed inconsistent for 20 ms (writer descheduled); try again
 * -ESRCH  perf tier: the thread ended; its last record stays in prcb_walk */
PRCB_API int prcb_thread_read(struct prcb_thread *t, struct prcb_account *ret);
PRCB_API int prcb_thread_times(struct prcb_thread *t, struct prcb_times *ret);

/* Calls fn for every account of the session, ended threads' included, in no
 * particular order; stops at the first non-zero return and returns it. The
 * record is valid during the call only. fn is called under the session's lock: it
 * must not call the session. */
typedef int (*prcb_walk_fn)(const struct prcb_account *a, void *ctx);
PRCB_API int prcb_walk(struct prcb *p, prcb_walk_fn fn, void *ctx, struct prcb_error *err);
/* As prcb_walk, without threads that have done nothing but wait since since_ns (CLOCK_MONOTONIC),
 * or that ended before: of a thousand threads that sleep it reads a cache line each. What an
 * earlier walk said of them holds, with open.ns and wall_ns grown; a new name is not seen. May
 * call fn for some of them all the same; on the perf tier it does for all. */
PRCB_API int prcb_walk_active(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                              struct prcb_error *err);

/* A wait that was chosen at random, among those of its thread and cause one in so many, as it began
 * (a copy of the stack) or as it ended (how long it was). Over all that were chosen, the sum of
 * ns * one_in is about the time of all waits. */
struct prcb_node {
    uint64_t words[2]; /* as struct prcb_chain has them */
    uint64_t byte;
};
struct prcb_chosen {
    size_t size;  /* sizeof(struct prcb_chosen) */
    uint64_t key; /* with switches: the wait, as of struct prcb_account */
    uint64_t switches;
    pid_t tid, pid;
    uint32_t cause;    /* enum prcb_cause */
    uint32_t one_in;   /* about a millisecond over the cause's mean wait, 1 to 1024 */
    uint64_t began_ns; /* CLOCK_MONOTONIC */
    bool ended;        /* ns is set; else registers and stack are */
    uint64_t ns;       /* how long it waited; being ready is not counted */
    struct prcb_registers registers;
    uint64_t stack_at;  /* address of the copy's first byte, at or below the stack pointer */
    const void *stack;  /* borrowed during the call */
    size_t stack_bytes; /* 0: the memory could not be read */
    /* With PRCB_OPEN_OBJECTS, and ended is not set: what the wait is for. */
    struct prcb_object object;
    uint64_t args[2]; /* of the system call, the first two */
    int32_t syscall;  /* its number; -1: none, or a 32-bit one */
    uint32_t mode;    /* of the object's file, as of stat(2); 0: an anonymous file, or none */
    char name[64];    /* the last part of its path, or as much of that as has room; "": none */
    uint32_t words;   /* of a futex: how many words could be read there as the wait began, */
    uint32_t word[3]; /* and these */
    /* With prcb_chosen_chain, and ended is not set: the list, first to last, as the wait began. */
    uint32_t node_count;           /* 0: it was not copied, or is empty */
    uint32_t whole;                /* 1: the last node is the list's */
    const struct prcb_node *nodes; /* borrowed during the call */
    pid_t lock_holder; /* who had its lock then, by its own process's number; 0: nobody */
    /* With prcb_chain.span_at, and ended is not set: the span of a trace as the wait began. */
    uint32_t span_state;           /* enum prcb_span_state, of prcb/stack.h; there: */
    unsigned char span_record[28]; /* what the variable led to, by OTEP 4947 to its attributes */
};
typedef int (*prcb_chosen_fn)(const struct prcb_chosen *chosen, void *ctx);

/* Hands on what was chosen since the last call, in the order it came; to be called some 50 times a
 * second. Stops at the first non-zero return and returns it. *ret_lost: how many records found no
 * room, since the session was opened. fn may call the session. -EOPNOTSUPP: the session chooses
 * none. */
PRCB_API int prcb_chosen_read(struct prcb *p, prcb_chosen_fn fn, void *ctx, uint64_t *ret_lost,
                              struct prcb_error *err);

/* A list in a thread's memory: a head, which may lead by one more pointer to what has the address
 * of the first node. Members but for addresses are offsets. */
#define PRCB_CHAIN_NONE UINT32_MAX
struct prcb_chain {
    size_t size;   /* sizeof(struct prcb_chain) */
    uint64_t head; /* its address; 0: there is no list */
    uint64_t
        proof; /* the word at proof_at in it while it is this thread's: else nothing is copied */
    uint32_t proof_at;
    uint32_t hop;      /* in the head, to what has the list; PRCB_CHAIN_NONE: it has it itself */
    uint32_t first;    /* in that: the pointer to the first node */
    uint32_t next;     /* in a node: the pointer to the next; NULL in the last */
    uint32_t words[2]; /* in a node: two words, */
    uint32_t byte;     /* and a byte, that are copied; PRCB_CHAIN_NONE: 0 */
    uint64_t lock_at;  /* a lock that the thread may wait for, as of struct prcb_stack; 0: none */
    uint32_t lock_number;
    uint64_t span_at; /* the thread's variable that publishes its span (prcb/span.h); 0: none */
};

/* From now on the list is copied with each wait of this account's thread that is chosen, as it
 * begins, up to 128 nodes: with it an interpreter's frames are known of waits that are over when
 * they are read. Replaces what was said before. -EOPNOTSUPP: as prcb_chosen_read; -ESTALE: there
 * is no such account. */
PRCB_API int prcb_chosen_chain(struct prcb *p, uint64_t key, const struct prcb_chain *chain,
                               struct prcb_error *err);

/* A moment at which a thread ran, and what its list (prcb_chosen_chain) was then. */
struct prcb_ran {
    size_t size; /* sizeof(struct prcb_ran) */
    pid_t tid, pid;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t pc;      /* the instruction that was interrupted, as of the event's own sample */
    uint32_t node_count;
    uint32_t whole;                /* as of struct prcb_chosen */
    const struct prcb_node *nodes; /* borrowed during the call */
};
typedef int (*prcb_ran_fn)(const struct prcb_ran *ran, void *ctx);

/* A program for events of the clocks (PERF_EVENT_IOC_SET_BPF): the list of a thread of the session
 * is copied each time the event interrupts it. Returns its descriptor, borrowed. The event's own
 * sample of the moment has the same thread and instruction, and a time that differs by what the
 * kernel does in between, some microseconds, one way or the other. -EOPNOTSUPP: the session was
 * opened without PRCB_OPEN_RAN. */
PRCB_API int prcb_ran_program(struct prcb *p, struct prcb_error *err);
/* Hands on what was copied since the last call, in the order it came. What found no room is left
 * out. Stops at the first non-zero return and returns it. */
PRCB_API int prcb_ran_read(struct prcb *p, prcb_ran_fn fn, void *ctx, struct prcb_error *err);

/* The kernel's part of the stack of a thread that waits: the names of its functions, innermost
 * first, each with a newline ("io_schedule\n", "ext4_map_blocks [ext4]\n"). Where the thread sleeps
 * for a mutex or reader-writer lock of the kernel, "held by 123\n", the number of the thread that
 * holds it, may be the last line (Linux 6.16). key and tid are those of its record. Whether the
 * thread has waited all along the caller finds out by its switch count, read before and after. Cut
 * at a line's end where size (512 and more are sensible) is too small. -EOPNOTSUPP: the tier or the
 * kernel (before 6.1) cannot; -ESRCH: the thread runs, has ended, or may no longer be profiled. */
PRCB_API int prcb_kernel_stack(struct prcb *p, uint64_t key, pid_t tid, char *ret, size_t size,
                               struct prcb_error *err);

/* Gives the account with this key back; a thread that still lives is no longer
 * profiled. -ESTALE: it is gone already. */
PRCB_API int prcb_release(struct prcb *p, uint64_t key, struct prcb_error *err);
/* Gives the accounts of all ended threads back; returns how many. */
PRCB_API int prcb_release_exited(struct prcb *p, struct prcb_error *err);

/* *ret = later - earlier, for two records of one account: totals are
 * subtracted, names, flags and the open stretch are later's. earlier may be NULL.
 * present is what both hold. ret may be the same as later; it gets later's size
 * and needs room for it. */
PRCB_API void prcb_account_sub(const struct prcb_account *later, const struct prcb_account *earlier,
                               struct prcb_account *ret);

/* Why records of this session lack a member (one enum prcb_member bit): one
 * line, borrowed until prcb_close; NULL if it is not lacking. */
PRCB_API const char *prcb_absent_reason(const struct prcb *p, uint64_t member);

/* ---- tables ------------------------------------------------------------- */

enum prcb_cause_kind { PRCB_KIND_READY, PRCB_KIND_WAIT, PRCB_KIND_END };

struct prcb_cause_info {
    const char *name;          /* one word, as in JSON: "futex" */
    const char *words;         /* finishes "time was spent ..." */
    enum prcb_cause_kind kind; /* see causes.h */
    uint32_t reason;           /* KWAIT_REASON number; prcb_wait_reason_name spells it */
};

/* The row of a cause (enum prcb_cause), static; NULL if there is none. */
PRCB_API const struct prcb_cause_info *prcb_cause_info(uint32_t cause);
/* NT's name of a KWAIT_REASON number, static; NULL if there is none. */
PRCB_API const char *prcb_wait_reason_name(uint32_t reason);

/* The library's version: "0.1.0". */
PRCB_API const char *prcb_version(void);

#ifdef __cplusplus
}
#endif
#endif
