/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines the blocks in mapped memory: a head page and the thread accounts, as the eBPF programs
 * write them and the library reads them. There are fixed-width kernel types only; every size and
 * offset is asserted here, so both compilers check them.
 *
 * A reader takes sizes and strides from the head page, not from sizeof, and refuses another
 * major version: an old reader works with a newer writer that appended members.
 *
 * Stamps are nanoseconds of the writer's clock (head.features says which): the run-queue clock
 * where the kernel has it in reach, else CLOCK_MONOTONIC.
 */
#ifndef PRCB_BLOCK_ABI_H
#define PRCB_BLOCK_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif
#include <prcb/causes.h>
#include <prcb/numbers.h>

#define PRCB_ABI_MAGIC 0x42435250u /* "PRCB" */
#define PRCB_ABI_MAJOR 1
#define PRCB_ABI_MINOR 10

#define PRCB_ACCOUNTS_DEFAULT 16384
#define PRCB_OFFSET_UNKNOWN   0x7fffffffffffffffll /* head.clock_offset before the first switch */
#define PRCB_SLOT_NONE        0xffffffffu
#define PRCB_BASE_UNKNOWN     0xffffffffffffffffull /* account.interrupt_base */

/* account.state */
#define PRCB_STATE_FREE    0 /* belongs to nobody */
#define PRCB_STATE_UNSEEN  1 /* profiled, no switch seen yet: account.guess says what it does */
#define PRCB_STATE_RUNNING 2
#define PRCB_STATE_OFF     3 /* off the processor; account.cause says why */
#define PRCB_STATE_EXITED  4 /* made its last switch */

/* account.guess: a thread that sleeps was moved while it did, and counts as delayed since */
#define PRCB_GUESS_MOVED (1u << 16)

/* account.thread_flags */
#define PRCB_THREAD_KTHREAD 1
#define PRCB_THREAD_BORN    2 /* followed from its creation */

/* account.wants: what this account's session asked for beyond the rest */
#define PRCB_WANT_REGISTERS 1  /* user, at each switch out */
#define PRCB_WANT_EDGES     2  /* by whom: prcb_edge_block. Since 1.5 */
#define PRCB_WANT_TAILS     4  /* how long: prcb_tail_block. Since 1.7 */
#define PRCB_WANT_SWITCHES  8  /* a record of each: prcb_switch_record. Since 1.8 */
#define PRCB_WANT_OBJECTS   16 /* what waits are for, at each switch out. Since 1.8 */
#define PRCB_WANT_OWNERS    32 /* edges of who held the kernel's locks. Since 1.8 */

#define PRCB_WANT_MEANWHILE 64 /* edges of whose threads ran while it was ready. Since 1.10 */

/* These say what a profiled thread passes on, and why it is profiled: they stand in storage, not
 * in the account. */
#define PRCB_PASS_THREADS  1
#define PRCB_PASS_CHILDREN 2

/* head.features */
#define PRCB_FEATURE_RQ_CLOCK    (1u << 0) /* stamps are the run-queue clock */
#define PRCB_FEATURE_READY       (1u << 1) /* ready time is known (sched_info) */
#define PRCB_FEATURE_LOCKS       (1u << 2) /* contention tracepoints attached */
#define PRCB_FEATURE_THROTTLED   (1u << 3) /* CPU-quota throttling can be told */
#define PRCB_FEATURE_INTERRUPTED (1u << 4) /* interrupted_ns is kept */
#define PRCB_FEATURE_REGISTERS   (1u << 5) /* user registers are kept at each switch out */
#define PRCB_FEATURE_CGROUP      (1u << 6) /* the cgroup is kept */
#define PRCB_FEATURE_EDGES       (1u << 7) /* edges are kept */
/* Since 1.6: */
#define PRCB_FEATURE_MIGRATIONS (1u << 8) /* migrations are counted */
#define PRCB_FEATURE_SYSCALLS   (1u << 9) /* the system call that a thread waits in is known */
#define PRCB_FEATURE_FILES      (1u << 10) /* ... and what it waits for in read, write and the like */
/* Since 1.7: */
#define PRCB_FEATURE_TAILS (1u << 11) /* tails are kept */
/* Since 1.8: */
#define PRCB_FEATURE_SWITCHES (1u << 12) /* switch records are kept */
#define PRCB_FEATURE_OBJECTS  (1u << 13) /* what waits are for is kept */
#define PRCB_FEATURE_OWNERS   (1u << 14) /* edges tell who held the kernel's locks */
/* Since 1.10: */
#define PRCB_FEATURE_MEANWHILE (1u << 15) /* edges tell whose threads ran while it was ready */

/* The user registers that an unwinder starts from are those of the thread's last entry into the
 * kernel. All are 0 if it has none (a kernel thread), or none were kept. */
struct prcb_user_registers {
    __u64 pc, sp;
    __u64 fp; /* x86-64: rbp; arm64: x29 */
    __u64 lr; /* arm64: x30; x86-64: 0 */
};

/* The object that a thread was switched out for. All 0: nothing is known, or nothing was kept. */
struct prcb_wait_object {
    __u64 inode;  /* of the file that is open by the number in its system call's first argument, */
    __u32 device; /* and of its file system, as the kernel has it: 12 bits major, 20 minor */
    __u32 descriptor; /* that number, where there is an inode */
    __u64 lock;       /* address of the kernel's lock */
};

struct prcb_wait_cell {
    __u64 count; /* switches out for this cause */
    __u64 ns;    /* closed time */
};

/* Holds one thread's account. It is written by the processor that switches the thread, under
 * seq; members marked [once] are written before the account is published and do not change;
 * [own] have an ordering of their own, said there. A reader relies on it: while the hot line is
 * the same, so is everything that is not [own]. */
struct prcb_account_block {
    /* -- hot line: all that a switch must touch -- */
    __u32 seq;        /* sequence count: odd while being written (seqcount_abi.h) */
    __u32 generation; /* [once] how often this slot was given out */
    __u64 run_ns;     /* closed stretches on a processor */
    __u64 stamp;      /* when the present stretch began */
    __u64 nvcsw;      /* the kernel's own counters at the last switch out, absolute */
    __u64 nivcsw;
    __u64 own_switches; /* switches out this account has seen */
    __u8 state;         /* PRCB_STATE_* */
    __u8 cause;         /* enum prcb_cause of the last switch out */
    __u16 wants;        /* [once] PRCB_WANT_*; in the hot line: asked at every switch. Since 1.3 */
    __u32 cpu;          /* processor of the last switch out */
    __u64 ready_ns;     /* closed stretches able to run */
    /* -- cold: switch bookkeeping -- */
    __u64 run_delay;    /* the kernel's sched_info.run_delay at the last switch out */
    __u64 sum_exec;     /* the kernel's se.sum_exec_runtime at the last switch out */
    __u64 migrations;   /* the kernel's se.nr_migrations at the last switch, absolute */
    __u64 repaired;     /* switches in that were not reported and were made good */
    __s32 last_syscall; /* at the last switch out; -1: none */
    __u32 guess; /* [own] while UNSEEN: state | cause << 8 | PRCB_GUESS_*, one word, rewritten by
                    the registrar */
    /* -- cold: identity -- */
    __u64 enabled;    /* [once] stamp at which the account starts */
    __u64 base_nvcsw; /* [once] the kernel's counters at that moment */
    __u64 base_nivcsw;
    __u64 base_migrations;
    __u32 tid;          /* [own] in the session's pid namespace; changes when a thread execs */
    __u32 pid;          /* [once] thread group */
    __u32 thread_flags; /* [once] PRCB_THREAD_* */
    __u32 comm_seq;     /* [own] sequence count over comm and tid, written by task_rename */
    char comm[16];      /* [own] */
    union {
        __u32 next_free;     /* [own] while FREE, in a map of the daemon's */
        __u32 unclear_wakes; /* else, since 1.9: waits whose end is not known: ready time after
                                them is counted as theirs */
    };
    /* -- interrupts, since 1.2; with PRCB_FEATURE_INTERRUPTED -- */
    __u32 run_cpu;        /* processor of the last switch in */
    __u64 interrupted_ns; /* of run_ns: hard interrupts and softirqs, closed stretches */
    __u64 interrupt_base; /* what they had taken of that processor by then, processor_abi.h;
                             PRCB_BASE_UNKNOWN while off the processor, or not seen coming */
    /* -- since 1.3; with PRCB_FEATURE_REGISTERS: at the last switch out -- */
    struct prcb_user_registers user;
    /* -- since 1.4; with PRCB_FEATURE_CGROUP -- */
    __u64 cgroup; /* of version 2: number of its directory, as of the last switch out; before the
                     first, as of the start */
    /* -- since 1.8; with PRCB_WANT_OBJECTS: of the last switch out -- */
    struct prcb_wait_object object;
    /* -- cold: one cell per cause -- */
    struct prcb_wait_cell waits[PRCB_CAUSE_MAX];
};

/* Edges tell by whom stretches off the processor ended, or were kept up. They are a second array
 * beside the accounts, with the same indices and the same writer, written under the account's
 * seq. Since 1.5. */

/* prcb_edge_cell.kind is enum prcb_edge_kind, or */
#define PRCB_EDGE_NONE 0 /* a free cell */

#define PRCB_VECTOR_UNKNOWN 0xffffffffu /* prcb_edge_cell.vector */

#define PRCB_EDGE_SETS 32 /* a cell is looked for from one of so many places on, ... */
#define PRCB_EDGE_WAYS 5  /* ... in so many cells */
#define PRCB_EDGES     (PRCB_EDGE_SETS + PRCB_EDGE_WAYS - 1)

/* A cell is for one of those by whom. What all cells of a cause lack to the account's own count
 * and time is the rest, which nobody stores: what was in cells that others needed, and what
 * nothing is known of. */
struct prcb_edge_cell {
    __u8 kind;  /* enum prcb_edge_kind */
    __u8 cause; /* of the stretch; behind, meanwhile: 0 */
    __u8 by;    /* enum prcb_edge_by */
    __u8 pad1;
    __u32 vector; /* number of the interrupt, or softirq; PRCB_VECTOR_UNKNOWN; of a thread: 0 */
    /* Of a cgroup both are its number, the lower half first. */
    __u32 tid;   /* thread, in the session's pid namespace; 0: not visible there, or none */
    __u32 start; /* when it began: nanoseconds since boot >> 20, of which the lower 32 bits */
    __u32 pid;
    __u32 pad2;
    __u64 count; /* stretches */
    __u64 ns;
    char comm[16]; /* of the thread, when the cell was begun */
};

struct prcb_edge_block {
    __u32 generation; /* of the account that the cells are of: another has none yet */
    __u32 pad[7];
    struct prcb_edge_cell cells[PRCB_EDGES];
};

/* Tails tell how long stretches were, of all threads of a session. After the last account come,
 * for each processor, PRCB_CAUSE_MAX of these, each as far apart as accounts: that of ready time
 * first, then those of the waits, by cause. Each has one writer, the switches of its processor.
 * There is no sequence count: a stretch may be seen in one member and not yet in another. Since
 * 1.7. */
struct prcb_tail_block {
    __u64 ns;     /* sum of all */
    __u64 max_ns; /* the longest */
    /* In the first block of all, this counts what ended on processors that have no blocks, for
     * they came later: a wait and the ready time after it are one each. Atomic adds. They are
     * missing here. Since 1.9 */
    __u64 elsewhere;
    __u64 pad[5];
    __u64 buckets[PRCB_TAIL_BUCKETS];
    __u64 pad1[16];
};

/*
 * Switch records tell of each switch of a session's threads. After the tails comes, for each
 * processor, a ring: one element as large as an account with its head, and head.switch_elements,
 * a power of two, with records. Each ring has one writer, the switches of its processor, which
 * waits for nobody: record number n (from 0) lies at the place n has modulo their count, over
 * the one that lay there.
 *
 * `written` is stored after the record's bytes, and before those of the next one. So a reader
 * that sees n < written has record n, unless `written`, looked at again after it was copied,
 * says that the writer may be at its place: written - n is the count of places, or more. Since
 * 1.8.
 */
#define PRCB_SWITCH_OUT 1 /* the thread leaves a processor */
#define PRCB_SWITCH_IN  2 /* ... or gets one */
/* In sessions of one's own, alone or with PRCB_SWITCH_IN: `left` and others tell of the thread that
 * leaves, and the switch is one record. prcbd writes two. */
#define PRCB_SWITCH_LEFT 4

#define PRCB_SWITCH_USER  1 /* flags, OUT: it waits for its own program's sake */
#define PRCB_SWITCH_NAMED 2 /* flags: the thread's name is there, of IN also wait_ns. Since 1.9 */

#define PRCB_CPU_UNKNOWN 0xffffffffu

struct prcb_switch_record {
    __u64 time_ns; /* CLOCK_MONOTONIC: both records of one switch have the same */
    __u8 kind;     /* PRCB_SWITCH_*: others' members mean nothing */
    __u8 cause;    /* OUT: enum prcb_cause; IN, PRCB_SWITCH_NAMED: of what it comes back from */
    __u8 by;       /* IN: who ended its wait, enum prcb_edge_by; 0: nobody, or not known */
    __u8 flags;
    __u32 state;    /* OUT, LEFT: the kernel's */
    __u32 tid, pid; /* in the session's pid namespace */
    __s32 syscall;  /* OUT, LEFT: number of the system call that it is in; -1: none */
    __s16 prio;     /* the kernel's */
    __u8 left_cause;
    __u8 left_prio; /* the kernel's and 1 */
    __u64 ready_ns; /* IN: how long it had been able to run; 0: not known, or not at all */
    union {
        struct {             /* IN, and `by` is not 0: */
            __u64 woken_ns;  /* when, CLOCK_MONOTONIC */
            __u32 woken_cpu; /* where; PRCB_CPU_UNKNOWN: that is another user's */
            __u32 vector;    /* as in prcb_edge_cell, and so are those below */
        };
        char name[16]; /* OUT: the thread's, in the first line of the cache, as all of an OUT */
    };
    __u32 waker_tid, waker_pid;
    char comm[16];
    __u64 wait_ns; /* IN: how long it had been off but for ready_ns */
    char came[16]; /* IN: the thread's name */
    __u32 left_tid, left_pid;
    char left[16]; /* the name of the thread that leaves */
};

#define PRCB_SWITCHES_EACH 8 /* in an element */

struct prcb_switch_element {
    struct prcb_switch_record records[PRCB_SWITCHES_EACH];
};

struct prcb_switch_ring {
    __u64 written; /* records, ever */
    /* In the first ring, this counts the records of processors that have no ring, for they came
     * later; atomic adds. Since 1.9 */
    __u64 elsewhere;
    __u64 last_ns; /* in a session of one's own: the last record's stamp. Since 1.9 */
    __u64 pad[125];
};

/* The first page is written before any program is attached, but for the counters (atomic adds). */
struct prcb_head_block {
    __u32 magic;
    __u16 abi_major;
    __u16 abi_minor;
    __u32 head_size; /* sizeof, here and below: what the writer knows */
    __u32 account_size;
    __u32 account_stride; /* bytes from one account to the next */
    __u32 account_count;
    __u32 features;   /* PRCB_FEATURE_* */
    __u32 writer_pid; /* who loaded the programs */
    __u64 untracked;  /* threads that found no free account: atomic adds */
    /* This is CLOCK_MONOTONIC minus the writer's clock: the smallest difference seen in about a
     * second (a stamp is never ahead of its clock, so the smallest is the truest). It is one
     * word, stored by any processor; 0 when stamps are CLOCK_MONOTONIC itself. */
    __s64 clock_offset;
    /* Slots below this have been given out at least once; the rest have never been touched. It
     * grows by atomic adds and may overshoot account_count. */
    __u64 account_used;
    char writer[16]; /* library version */
    /* This is the stamp at which the writer gave these accounts up; 0: it has not. They stay as
     * they were then. It is one word, stored once. Since 1.1. */
    __u64 ended;
    __u32 tail_processors;   /* for how many there are tails; 0: none are kept. Since 1.7 */
    __u32 switch_processors; /* for how many there are rings of switch records. Since 1.8 */
    __u32 switch_elements;   /* of each, after its head. Since 1.8 */
    __u32 pad;
    __u64 pad1[4];
};

/* clang-format off */
#if defined(__cplusplus)
#define PRCB_ABI_ASSERT(cond, text) static_assert(cond, text)
#else
#define PRCB_ABI_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define PRCB_ABI_AT(type, member, offset)                                                         \
    PRCB_ABI_ASSERT(__builtin_offsetof(struct type, member) == (offset), #type "." #member)
#define PRCB_ABI_SIZE(type, size) PRCB_ABI_ASSERT(sizeof(struct type) == (size), #type)

PRCB_ABI_SIZE(prcb_account_block, 1024);
PRCB_ABI_AT(prcb_account_block, generation, 4);
PRCB_ABI_AT(prcb_account_block, run_ns, 8);
PRCB_ABI_AT(prcb_account_block, stamp, 16);
PRCB_ABI_AT(prcb_account_block, nvcsw, 24);
PRCB_ABI_AT(prcb_account_block, nivcsw, 32);
PRCB_ABI_AT(prcb_account_block, own_switches, 40);
PRCB_ABI_AT(prcb_account_block, state, 48);
PRCB_ABI_AT(prcb_account_block, cause, 49);
PRCB_ABI_AT(prcb_account_block, cpu, 52);
PRCB_ABI_AT(prcb_account_block, ready_ns, 56);
PRCB_ABI_AT(prcb_account_block, run_delay, 64);
PRCB_ABI_AT(prcb_account_block, migrations, 80);
PRCB_ABI_AT(prcb_account_block, repaired, 88);
PRCB_ABI_AT(prcb_account_block, last_syscall, 96);
PRCB_ABI_AT(prcb_account_block, guess, 100);
PRCB_ABI_AT(prcb_account_block, enabled, 104);
PRCB_ABI_AT(prcb_account_block, base_nvcsw, 112);
PRCB_ABI_AT(prcb_account_block, base_nivcsw, 120);
PRCB_ABI_AT(prcb_account_block, base_migrations, 128);
PRCB_ABI_AT(prcb_account_block, tid, 136);
PRCB_ABI_AT(prcb_account_block, pid, 140);
PRCB_ABI_AT(prcb_account_block, thread_flags, 144);
PRCB_ABI_AT(prcb_account_block, comm_seq, 148);
PRCB_ABI_AT(prcb_account_block, comm, 152);
PRCB_ABI_AT(prcb_account_block, next_free, 168);
PRCB_ABI_AT(prcb_account_block, unclear_wakes, 168);
PRCB_ABI_AT(prcb_account_block, run_cpu, 172);
PRCB_ABI_AT(prcb_account_block, interrupted_ns, 176);
PRCB_ABI_AT(prcb_account_block, interrupt_base, 184);
PRCB_ABI_AT(prcb_account_block, user, 192);
PRCB_ABI_AT(prcb_account_block, cgroup, 224);
PRCB_ABI_AT(prcb_account_block, object, 232);
PRCB_ABI_AT(prcb_account_block, waits, 256);

PRCB_ABI_AT(prcb_account_block, sum_exec, 72);

PRCB_ABI_SIZE(prcb_edge_cell, 56);
PRCB_ABI_AT(prcb_edge_cell, tid, 8);
PRCB_ABI_AT(prcb_edge_cell, count, 24);
PRCB_ABI_AT(prcb_edge_cell, comm, 40);
PRCB_ABI_SIZE(prcb_edge_block, 2048);
PRCB_ABI_AT(prcb_edge_block, cells, 32);

PRCB_ABI_SIZE(prcb_head_block, 128);
PRCB_ABI_AT(prcb_head_block, head_size, 8);
PRCB_ABI_AT(prcb_head_block, account_stride, 16);
PRCB_ABI_AT(prcb_head_block, features, 24);
PRCB_ABI_AT(prcb_head_block, untracked, 32);
PRCB_ABI_AT(prcb_head_block, clock_offset, 40);
PRCB_ABI_AT(prcb_head_block, account_used, 48);
PRCB_ABI_AT(prcb_head_block, writer, 56);
PRCB_ABI_AT(prcb_head_block, ended, 72);
PRCB_ABI_AT(prcb_head_block, tail_processors, 80);
PRCB_ABI_AT(prcb_head_block, switch_processors, 84);
PRCB_ABI_AT(prcb_head_block, switch_elements, 88);

PRCB_ABI_SIZE(prcb_tail_block, 1024);
PRCB_ABI_AT(prcb_tail_block, elsewhere, 16);
PRCB_ABI_AT(prcb_tail_block, buckets, 64);

PRCB_ABI_SIZE(prcb_switch_record, 128);
PRCB_ABI_AT(prcb_switch_record, state, 12);
PRCB_ABI_AT(prcb_switch_record, prio, 28);
PRCB_ABI_AT(prcb_switch_record, woken_ns, 40);
PRCB_ABI_AT(prcb_switch_record, comm, 64);
PRCB_ABI_AT(prcb_switch_record, left_tid, 104);
PRCB_ABI_SIZE(prcb_switch_element, 1024);
PRCB_ABI_SIZE(prcb_switch_ring, 1024);
PRCB_ABI_AT(prcb_switch_ring, elsewhere, 8);
/* clang-format on */

#endif
