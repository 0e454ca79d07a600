/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines what user space hands the account programs, besides the blocks: accounts.bpf.c and the
 * code that loads it share it, in one build. The format is not stable.
 */
#ifndef PRCB_ACCOUNTS_H
#define PRCB_ACCOUNTS_H

#include <linux/types.h>

#include "block_abi.h"

#define PRCB_PID_LEVELS    32 /* MAX_PID_NS_LEVEL */
#define PRCB_CGROUP_LEVELS 16

/* The configuration is constant once it is loaded. */
struct prcb_bpf_config {
    __u32 has_prev_state; /* sched_switch passes prev_state (5.18) */
    __u32 use_ktime;      /* stamp with CLOCK_MONOTONIC although the run-queue clock is there */
    __u32 pid_ns;         /* inode of the session's pid namespace */
    __u32 accounts;       /* how many there are */
    __u32 interrupted;    /* processor_map is the processor programs': keep interrupted_ns */
    __u32 registers;      /* keep user registers in accounts */
    __u32
        edges; /* of one process: edge_map is kept; the processor programs' blocks tell contexts */
    __u32 newborn;   /* prcb_newborn is attached: programs may miss an event (7.0) */
    __u32 chosen;    /* copy the stacks of waits chosen at random */
    __u32 owners;    /* of one process, with edges: who holds the kernel's locks */
    __u32 meanwhile; /* of one process, with edges: whose threads run while others are ready */
    __u32 objects;   /* of one process: keep what waits are for in accounts, and of chosen ones */
    __u32 tails; /* of one process: element of account_map where tails begin; 0: none are kept */
    __u32 processors; /* with tails or switch records: for how many there are some */
    __u32 switches;   /* of one process: elements of each ring of switch records, a power of two;
                         0: none are kept */
};

/* Waits are chosen at random (prcb.h, prcb_chosen); this is what the ring holds. A choice is
 * made with probability of the cause's mean wait over PRCB_CHOSEN_PERIOD_NS, so that a thread
 * has about one a period of waiting; at least one wait in PRCB_CHOSEN_MOST is chosen, and the
 * first few of each cause. */
#define PRCB_CHOSEN_PERIOD_NS 1000000u
#define PRCB_CHOSEN_MOST      1024u
#define PRCB_CHOSEN_FIRST     16u
#define PRCB_CHOSEN_BYTES     8192u /* of the stack */
#define PRCB_CHOSEN_RED_ZONE  128u  /* below the stack pointer, but a function's: x86-64 */
#define PRCB_CHOSEN_PAGE      4096u /* no page is smaller */

enum prcb_chosen_kind { PRCB_CHOSEN_OUT = 1, PRCB_CHOSEN_IN };

/* As of enum prcb_span_state; THERE: what the thread's variable led to was copied. */
enum prcb_chosen_span {
    PRCB_CHOSEN_SPAN_UNASKED,
    PRCB_CHOSEN_SPAN_UNREAD,
    PRCB_CHOSEN_SPAN_NONE,
    PRCB_CHOSEN_SPAN_THERE
};
#define PRCB_CHOSEN_SPAN_BYTES 28u

struct prcb_chosen_record {
    __u32 kind; /* enum prcb_chosen_kind */
    __u32 slot, generation;
    __u32 tid, pid;
    __u32 cause;
    __u64 switches; /* of the account, which with the key names the wait */
    __u64 began_ns; /* CLOCK_MONOTONIC */
    __u32 one_in;
    __u32 length; /* OUT: bytes of the stack that follow */
    __u64 ns;     /* IN: how long the wait was, ready time not included */
    struct prcb_user_registers user;
    /* OUT, with config.objects: */
    struct prcb_wait_object object;
    __u64 args[2]; /* of the system call */
    __s32 syscall; /* -1: none, or by the 32-bit table */
    __u32 mode; /* of the file that is open by the first argument; 0: an anonymous one, or none */
    char name[64]; /* the last part of its path */
    __u32 words;   /* of a futex, how many of these could be read */
    __u32 word[3];
    __u32 span_state; /* enum prcb_chosen_span */
    __u8 span[PRCB_CHOSEN_SPAN_BYTES];
};

struct prcb_chosen_stack {
    struct prcb_chosen_record record;
    __u8 bytes[PRCB_CHOSEN_BYTES];
};

/* Turns of a processor that it remembers, a power of two. */
#define PRCB_TURNS 2048

/* A list in a thread's own memory, of whose nodes some words are copied with each of its waits that
 * is chosen: what an interpreter executes; and its variable that leads to its span of a trace. All
 * but the addresses are offsets. */
#define PRCB_CHAIN_ABSENT 0xffffffffu
struct prcb_bpf_chain {
    __u32 generation;  /* of the slot's account */
    __u32 proof_at;    /* in the head: */
    __u64 head, proof; /* what is there as long as the head is the thread's; head 0: no list */
    __u32 hop;         /* in the head: what has the list in its place; ABSENT: it has it itself */
    __u32 first;       /* in that: the first node */
    __u32 next;        /* in a node */
    __u32 words[2];    /* the same: what is copied, */
    __u32 byte;        /* and one byte; ABSENT: 0 in its place */
    __u64 lock_at;     /* as of prcb_stack */
    __u32 lock_number;
    __u32 slot;    /* the account's, by which it is found */
    __u64 span_at; /* the variable; 0: none */
};

struct prcb_chosen_node {
    __u64 words[2];
    __u64 byte;
};

struct prcb_chosen_list {
    __u32 count;
    __u32 whole;  /* the last node is the list's */
    __u64 holder; /* who has the lock; 0: nobody, or there is none */
    struct prcb_chosen_node nodes[PRCB_CHAIN_NODES];
};

struct prcb_chosen_chain {
    struct prcb_chosen_stack stack;
    struct prcb_chosen_list list;
};

/* The list of a thread that runs, as an event of perf's interrupts it. */
struct prcb_ran_record {
    __u64 time_ns; /* CLOCK_MONOTONIC, close to the event's own */
    __u64 pc;      /* that was interrupted */
    __u32 tid, pid;
    struct prcb_chosen_list list;
};

/* Names the thread whose stack in the kernel prcb_kernel_stack writes, one function a line.
 * There is one at a time: the session's lock, or the daemon's one loop, sees to it. */
#define PRCB_KERNEL_FRAMES 64
struct prcb_bpf_kernel_stack {
    __u64 account; /* its key; with clients: the handle */
    __u64 frames[PRCB_KERNEL_FRAMES];
};

/* The registrar is asked at most this often for one answer. */
#define PRCB_REGISTER_PASSES 10

enum prcb_bpf_what { PRCB_REGISTER_THREAD = 1, PRCB_REGISTER_PROCESS, PRCB_REGISTER_ALL };

/* Holds one question to an iterator and its answer. There is one at a time: the session's lock
 * sees to it. */
struct prcb_bpf_request {
    __u32 what;   /* enum prcb_bpf_what */
    __u32 number; /* thread, process, or (unregister) slot */
    __u32 pass;   /* PRCB_PASS_* */
    __u32 seen;   /* out: tasks that matched */
    __u32 added;  /* out: of these, given an account */
    __u32 full;   /* out: of these, left without one */
    __u32 again;  /* out: tasks that were being created or looked at elsewhere, or that now pass
                     on more than before: ask again */
    __u32 last;   /* it will not be asked again: tasks being created count too */
    __u32 cut;    /* out, of the threads of one process: the last one that the walk came to was
                     not the last there was. Says nothing of a walk over all tasks */
    /* With clients: */
    __u32 client;
    __u32 refused; /* out: of those seen, not this client's to profile */
    __u32 crowded; /* out: ... which as many others profile as can */
    __u32 undo;    /* out: accounts to be released: their thread changed hands meanwhile */
    __u64 undo_key;
};

/* Lists the cgroups that a session follows. */
#define PRCB_SCOPE_CGROUPS 16
struct prcb_bpf_cgroups {
    __u32 used, v2;                /* bits: which of these there are, and which are of version 2 */
    __u64 ids[PRCB_SCOPE_CGROUPS]; /* inodes of the cgroups' directories */
};

/* Says which new threads are profiled whoever creates them. */
struct prcb_bpf_scope {
    __u32 all;
    __u32 pad;
    struct prcb_bpf_cgroups cgroups;
    __u64 moved; /* out: processes that were moved into one */
};

/* Names an account to be given back. */
struct prcb_bpf_slot {
    __u32 slot;
    __u32 generation;
};

/* ---- with clients: the daemon ---- */

#define PRCB_CLIENT_PROFILES 4    /* clients that can profile one thread */
#define PRCB_CLIENT_COUNT    1024 /* of the outer map; 0 is no client */
#define PRCB_CLIENT_ACCOUNTS ((1u << 22) - 1)
#define PRCB_CLIENT_SCOPES   8
#define PRCB_SWEEP_STEP      64

/* A client's map has this in element 0, and an account in each of the others. The client maps it
 * read-only, but a BPF program of its own can write it: nothing here is believed further than it
 * harms the client itself. */
struct prcb_client_block {
    struct prcb_head_block head;
    __u64 free; /* stack of accounts given back: how often changed << 32 | topmost element */
};

/* Says who a client is and what it may do. It stands in the programs' own memory, of which no
 * client ever holds a descriptor, and is constant from before its map is known to the programs
 * until after it is not. */
struct prcb_bpf_client {
    __u64 caps;            /* its permitted capabilities */
    __u32 pid_ns;          /* inode of its pid namespace */
    __u32 user_ns;         /* of its user namespace */
    __u32 uid, gid;        /* as the kernel has them: in no namespace's numbers */
    __u16 all;             /* may profile whom it likes */
    __u16 registers;       /* keeps registers of threads that are its own */
    __u16 objects;         /* keeps what waits of threads that are its own are for */
    __u16 edges;           /* has a map of edges */
    __u16 owners;          /* with edges: who held the kernel's locks */
    __u16 names;           /* may know of every process in its pid namespace which it is */
    __u16 meanwhile;       /* with edges: whose threads ran while others were ready, by cgroup */
    __u16 processors;      /* for how many there are tails and rings of switch records */
    __u32 tails;           /* element of its map where tails begin; 0: none are kept */
    __u32 switches;        /* element where the rings of switch records begin; 0: none are kept */
    __u32 switch_elements; /* of each ring, after its head: a power of two */
    __u32 epoch; /* differs from that of the client that had its number before; 0: no client */
};

/* Holds what prcb_peer tells of who connected: the credentials are those of that moment, which
 * the socket keeps, and not what the process has become. */
struct prcb_bpf_peer {
    __u64 start; /* of the process, nanoseconds since boot */
    __u64 caps;  /* permitted */
    __u32 pid;   /* as the daemon sees it; 0: it does not */
    __u32 found;
    __u32 pid_ns, user_ns;
    __u32 uid, gid, euid, egid, suid, sgid;
    __u32 owner; /* who made the outermost user namespace that it is in; in none: euid */
    __u32 pad;
};

/* Holds what prcb_look tells of a process. */
struct prcb_bpf_look {
    __u64 start; /* nanoseconds since boot */
    __u32 pid;   /* in: as the daemon sees it */
    __u32 found;
};

/* Says which new threads a client profiles whoever creates them. */
struct prcb_bpf_client_scope {
    __u32 client; /* 0: unused */
    __u32 epoch;
    __u32 all;
    __u32 pad;
    struct prcb_bpf_cgroups cgroups;
    __u64 moved; /* out */
};

/* Names an account to be given back, in two steps: first nobody writes it any more, and when no
 * program can still be at it, it is free. */
struct prcb_bpf_give_back {
    __u32 client;
    __u32 slot;
    __u32 generation;
    __u32 from;     /* of a client's accounts, from here on: those that have ended */
    __u32 released; /* out */
    __u32 live;     /* out: the thread lives: the second step has to wait */
};

#ifndef __BPF__
/* Finds its bit, and returns 0: it was there, 1: it is new, -1: there is no room. The programs
 * look at bits first and see no number that is not there yet as another's: what they miss
 * meanwhile is found by the walk that comes after ("which threads" in threads.bpf.h). */
static inline int prcb_bpf_cgroups_add(struct prcb_bpf_cgroups *list, __u64 id, int v2, __u32 *ret)
{
    for (__u32 i = 0; i < PRCB_SCOPE_CGROUPS; i++) {
        *ret = 1u << i;
        if (list->used & *ret && list->ids[i] == id)
            return 0;
    }
    for (__u32 i = 0; i < PRCB_SCOPE_CGROUPS; i++) {
        *ret = 1u << i;
        if (list->used & *ret)
            continue;
        list->ids[i] = id;
        /* The number is stored before the bits that announce it. This pairs with the programs,
         * which load the bits first and then the numbers (is_listed in threads.bpf.h). */
        __atomic_store_n(&list->v2, (list->v2 & ~*ret) | (v2 ? *ret : 0), __ATOMIC_RELEASE);
        __atomic_store_n(&list->used, list->used | *ret, __ATOMIC_RELEASE);
        return 1;
    }
    return -1;
}
#endif

#endif
