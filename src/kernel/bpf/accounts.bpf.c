/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Keeps the thread accounts current: at each context switch of a profiled thread
 * its stretch on or off the processor is closed and written to its account.
 * Threads are found through task storage, so a reused pid is never mistaken.
 *
 * Who writes an account: the registrar or prcb_newtask before it is published
 * (its slot stored in the tag), from then on only prcb_switch, on the processor that makes
 * the switch: never two at once. Exceptions are marked [own] in block_abi.h.
 *
 * Compiled twice. As it is, for a session whose process loads the programs itself: one
 * array of accounts. With PRCB_CLIENTS, for the daemon: an array for each of its clients,
 * and a thread may have an account in several (clients.bpf.inc).
 */
#include "kernel.bpf.h"
#include "classify.bpf.h"
#include "accounts.h"
#include "block_abi.h"
#include "by_here.bpf.h"
#include "processor_abi.h"
#include "processor_map.bpf.h"
#include "seqcount_abi.h"
#include <prcb/edges.h>

char LICENSE[] SEC("license")
= "Dual BSD/GPL";

/* Set before load. */
const volatile struct prcb_bpf_config config = {};
/* PRCB_FEATURE_* that the kernel allows; prcb_tell_features fills it. */
__u32 kernel_features = 0;
/* Every switch samples the clock's offset, not just those of profiled threads: set
 * while a session is opened. */
__u32 calibrating = 0;
/* What user space asks the registrar to do, and its answer. */
struct prcb_bpf_request request = {};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_head_block);
} head_map SEC(".maps");

#ifdef PRCB_CLIENTS
#define PROFILES PRCB_CLIENT_PROFILES
/* Left a loop: what is in it is long, and the verifier is quicker so. */
#define PRCB_EACH_PROFILE _Pragma("clang loop unroll(disable)")
#else
#define PROFILES 1
#define PRCB_EACH_PROFILE
/* There was no room, and it was counted as untracked. PRCB_SLOT_NONE: nobody has looked yet. */
#define SLOT_FULL (PRCB_SLOT_NONE - 1)
#endif

/* By whom: of one stretch. */
struct who {
    __u64
        what; /* by << 16 | vector << 32: as the first word of a prcb_edge_cell, without the rest */
    __u64 thread; /* tid | start << 32: as the second */
    __u32 pid;
    __u32 again; /* of a waker: the one before it had not been taken yet */
    char comm[16];
#ifdef PRCB_CLIENTS
    __u64 viewer; /* the handle of the profile that it was found out for, and limited to what its
                     client may know; stored last: see is_told */
#endif
};

/* One profile of a task: in which account. */
struct profile {
#ifdef PRCB_CLIENTS
    __u64 handle; /* client, account and generation in one word: clients.bpf.inc; 0: free */
    __u32 pass;   /* PRCB_PASS_* */
    __u32 wants;  /* PRCB_WANT_*, as in the account, which the client might write to */
#else
    __u32 slot;        /* from SLOT_FULL on: none */
    __u32 generation;  /* of the account, when it was given */
    __u32 pass;        /* PRCB_PASS_* */
#endif
    /* Edges. The waker is stored by the one that wakes the task, under the task's pi_lock, before
     * the kernel queues it; the switch that takes it comes after that under its run queue's lock.
     */
    struct who waker; /* of its last waking since it was last switched in; what 0: none */
    struct who taker; /* who got its processor, when it could have gone on */
#ifdef PRCB_CLIENTS
    __u64
        woken_ns; /* with switch records: when that waking was, CLOCK_MONOTONIC, and where; told */
    __u32 woken_cpu; /* of with the waker */
#endif
};

/* What a task carries when it is profiled, or should be. */
struct tag {
    struct profile profiles[PROFILES];
    struct waited_lock waited;
    __u32 busy;    /* somebody is giving it an account */
    __u32 cause;   /* of its last switch out; read back at once: leave() */
    __u32 born;    /* prcb_newtask has seen it */
    __u32 restart; /* the last system call that it was switched out in, plus 1; 0: none */
    /* Of its last switch out, as the cause: */
    struct call_seen call;
    struct prcb_wait_object object; /* found out for the first who asks */
    __u32 object_noted;
    __u64 regs; /* address of its user registers; 0: it was not asked for yet */
    /* What was known of its queue when a quota took it off the processor. */
    __u64 throttled_queue; /* address of its cfs_rq; 0: it is not held back */
    __u64 throttled_group;
    __u64 throttled_before; /* throttled_time */
#ifdef PRCB_CLIENTS
    __u32 top;  /* no profile from here on was ever used */
    __u64 cred; /* its credentials when it was last looked at by who may profile whom */
#else
    __u32 chosen;      /* the wait it is in stands for so many; 0: it was not chosen */
    __u64 chosen_base; /* its cause's ns when it began */
    __u64 chosen_at;   /* when that was, CLOCK_MONOTONIC */
#endif
    /* Of the profiles that asked for it: who held the lock of `waited` when its contention began.
     */
    struct who holders[PROFILES];
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct tag);
} tags SEC(".maps");

/* Where most threads are not profiled. */
static __always_inline struct tag *tag_of(struct task_struct *task)
{
    return has_storage(task) ? bpf_task_storage_get(&tags, task, NULL, 0) : NULL;
}

/* registers_of, for which the kernel is asked once. */
static __always_inline struct pt_regs *registers_by(struct tag *tag, struct task_struct *task)
{
    if (!has_casts())
        return registers_of(task);
    if (!tag->regs)
        tag->regs = (__u64)registers_of(task);
    return (struct pt_regs *)tag->regs;
}

#ifdef PRCB_CLIENTS
#include "clients.bpf.inc"
#else
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, PRCB_ACCOUNTS_DEFAULT);
    __type(key, __u32);
    __type(value, struct prcb_account_block);
} account_map SEC(".maps");

/* With config.edges: of the accounts, with their indices. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_edge_block);
} edge_map SEC(".maps");

/* Which new threads are profiled whoever created them. */
struct prcb_bpf_scope scope = {};

/* Slots that were given back; first those that were never used are given out. */
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, PRCB_ACCOUNTS_DEFAULT);
    __type(value, __u32);
} free_slots SEC(".maps");

/* Of waits chosen at random; a page where none are asked for. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} chosen_ring SEC(".maps");
__u64 chosen_lost = 0; /* those that found no room there: atomic adds */

/* The account of a profile; NULL: there is none. */
static __always_inline struct prcb_account_block *account_of(struct profile *profile)
{
    __u32 slot = profile->slot;

    return bpf_map_lookup_elem(&account_map, &slot);
}

/* Whether it is still the account that was given: one of an ended thread may have been given
 * back, and to another thread since. */
static __always_inline bool is_still(struct profile *profile, struct prcb_account_block *account)
{
    return *(volatile __u32 *)&account->generation == profile->generation;
}

static __always_inline __u32 pid_ns_of(struct profile *profile)
{
    return config.pid_ns;
}

static __always_inline int top_of(struct tag *tag)
{
    return PROFILES;
}

static __always_inline bool is_profiled(struct tag *tag)
{
    return tag->profiles[0].slot < SLOT_FULL;
}

static __always_inline bool anyone_wants_owners(struct tag *tag)
{
    return config.owners;
}
#endif

/* Orders all stores and loads before it before all after it: an exchange of any word does
 * (seqcount_abi.h). Always true, which the verifier and the compiler do not know. */
static __always_inline bool all_ordered(void)
{
    __u64 order = 0;

    return __sync_lock_test_and_set(&order, 1) != 2;
}

#ifdef PRCB_CLIENTS
/* The same number, of which the verifier knows nothing any more. What a loop changes is nothing it
 * knows before, or it walks the body once for what it is then and again for what becomes of it.
 * any: where there is a number that it knows nothing of, loaded anew, for it knows more after a
 * comparison. */
static __always_inline __u64 forget(__u64 number, const __u64 *any)
{
    __asm__ volatile("%0 += %1\n"
                     "%0 -= %1"
                     : "+r"(number)
                     : "r"(*(const volatile __u64 *)any));
    return number;
}
#endif

/* Each processor's part in finding the clock's offset; see sample_offset. */
struct offset_window {
    __u64 next; /* when to sample again */
    __u64 end;  /* when the window may end */
    __u64 samples;
    __s64 least; /* smallest offset of these */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct offset_window);
} offset_windows SEC(".maps");

#define OFFSET_EVERY_NS  262144ull
#define OFFSET_WINDOW_NS 1000000000ull
#define OFFSET_SAMPLES   16 /* in a window, at least */

#define GUESSES 5    /* at what a thread that exists is doing */
#define ENDINGS 1000 /* looks at one that is about to leave its processor */

static const __u32 zero = 0;

/* ---- clock ---- */

static __always_inline struct prcb_head_block *head_block(void)
{
    return bpf_map_lookup_elem(&head_map, &zero);
}

/* The run-queue clock lags the monotonic one by a constant and by however long ago
 * the kernel last brought it up to date. The smallest difference seen in a window
 * is the constant, nearly. A lower one is taken at once, a higher one (clocks
 * drift) when a window ends that has so many samples that not all of them were late: a
 * virtual processor may be stopped for milliseconds between the two clocks. Torn by
 * nobody: one aligned word; two processors that store at once store nearly the same. */
static __noinline void sample_offset(__u64 clock)
{
    struct offset_window *window = bpf_map_lookup_elem(&offset_windows, &zero);
    struct prcb_head_block *head = head_block();
    __s64 offset;

    if (!window || !head || (clock < window->next && !calibrating))
        return;
    offset = bpf_ktime_get_ns() - clock;
    window->next = clock + OFFSET_EVERY_NS;
    if (!window->samples++) {
        window->end = clock + OFFSET_WINDOW_NS;
        window->least = offset;
    }
    if (offset < window->least)
        window->least = offset;
    if (offset < head->clock_offset)
        *(volatile __s64 *)&head->clock_offset = offset;
    if (clock < window->end || window->samples < OFFSET_SAMPLES)
        return;
    *(volatile __s64 *)&head->clock_offset = window->least;
    window->samples = 0;
}

/* The stamp of a switch on this processor. prev: the task that is leaving it. before:
 * the stamp that it will replace, which tells without a look at anything else that
 * the offset was sampled not long ago. */
static __always_inline __u64 switch_clock(struct task_struct *prev, __u64 before)
{
    __u64 clock;

    if (!has_rq_clock() || config.use_ktime)
        return bpf_ktime_get_ns();
    clock = plain(prev)->se.cfs_rq->rq->clock;
    if (clock / OFFSET_EVERY_NS != before / OFFSET_EVERY_NS)
        sample_offset(clock);
    return clock;
}

#ifdef PRCB_CLIENTS
/* A client's head has an offset of its own, for nobody else is to see what its client may write
 * there (accounts.h). It is brought up to date by the client's own threads, some times a second: by
 * each where its stretch reaches from one of these parts of time into another. */
#define TELL_EVERY 27 /* bits: 134 ms */

static __noinline int tell_clock_of(__u32 number)
{
    struct prcb_client_block *client = client_block(client_map(number));
    struct prcb_head_block *head = head_block();

    if (client && head)
        *(volatile __s64 *)&client->head.clock_offset = *(volatile __s64 *)&head->clock_offset;
    return 0;
}
#endif

static __always_inline void tell_clock(struct profile *profile, __u64 before, __u64 now)
{
#ifdef PRCB_CLIENTS
    if (before >> TELL_EVERY != now >> TELL_EVERY && has_rq_clock() && !config.use_ktime)
        tell_clock_of(client_of(profile->handle));
#endif
}

/* The clock of sched_info's stamps, at the same moment. */
static __always_inline __u64 queue_clock(struct task_struct *prev, __u64 now)
{
    return config.use_ktime && has_rq_clock() ? plain(prev)->se.cfs_rq->rq->clock : now;
}

/* The clock of the stamps, away from a switch. */
static __always_inline __u64 clock_now(struct prcb_head_block *head)
{
    return bpf_ktime_get_ns() - *(volatile __s64 *)&head->clock_offset;
}

/* ---- closing stretches ---- */

/* The two that follow are of times and counts, far below 2^63, and have no branch: the verifier
 * would go on with each way by itself, and here they multiply. */

/* All ones where the number is negative, else 0. The compiler would make a branch of it. */
static __always_inline __u64 sign_of(__u64 number)
{
    __asm__ volatile("%0 s>>= 63" : "+r"(number));
    return number;
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
    return b + ((a - b) & sign_of(a - b));
}

/* Growth of a counter that may have been reset or read a moment too early. */
static __always_inline __u64 growth(__u64 now, __u64 before)
{
    return (now - before) & ~sign_of(now - before);
}

static __always_inline struct prcb_wait_cell *wait_cell(struct prcb_account_block *account,
                                                        __u64 cause)
{
    /* The compiler must not check one register and index with another: the verifier
     * would not see that they are the same. */
    __asm__ volatile("" : "+r"(cause));
    return cause < PRCB_CAUSE_MAX ? &account->waits[cause] : NULL;
}

static __always_inline void add_wait(struct prcb_account_block *account, __u64 cause, __u64 ns)
{
    struct prcb_wait_cell *cell = wait_cell(account, cause);

    if (cell)
        cell->ns += ns;
}

/* The cause of the stretch off the processor that is open: the account's, or the
 * registrar's guess while no switch has been seen. */
static __always_inline __u8 open_cause(struct prcb_account_block *account)
{
    __u32 guess;

    if (account->state == PRCB_STATE_OFF)
        return account->cause;
    guess = *(volatile __u32 *)&account->guess;
    /* A thread that was guessed to have ended, and is seen to make its last switch now: that
     * it ends is not what it waited for before. */
    if (account->state == PRCB_STATE_UNSEEN && (guess & 0xff) == PRCB_STATE_OFF &&
        guess >> 8 != PRCB_CAUSE_EXIT)
        return guess >> 8;
    return PRCB_CAUSE_OTHER;
}

/* What was added for a stretch off the processor when it was closed. */
struct closed {
    __u64 wait, ready;
    __u8 cause;
    bool counted; /* the account counts the switch out that began it */
};

/* Shares out a stretch of which only the kernel's own sums are known, because a
 * switch in it was not reported: run of it is what the kernel charged, ready what
 * it counted, the rest was waiting. */
static __always_inline void close_unreported(struct prcb_account_block *account, __u64 elapsed,
                                             __u64 run, __u64 ready, __u8 cause, struct closed *ret)
{
    ret->cause = cause;
    ret->counted = account->state == PRCB_STATE_OFF && account->own_switches;
    run = least(run, elapsed);
    ready = least(ready + ((__u64)cause_is_ready(cause) << 62), elapsed - run);
    account->run_ns += run;
    account->ready_ns += ready;
    add_wait(account, cause, elapsed - run - ready);
    ret->ready = ready;
    ret->wait = elapsed - run - ready;
}

/* Of a stretch in which a quota held the thread back for so long: the kernel counts all of it as
 * delay, but only what comes after is waiting for a processor. */
static __always_inline __u64 after_quota(__u64 elapsed, __u64 throttled)
{
    return throttled < elapsed ? elapsed - throttled : 0;
}

/* throttled: for how much of it a quota held the thread back. */
static __always_inline void close_running(struct prcb_account_block *account,
                                          struct task_struct *task, __u64 now, __u64 throttled,
                                          struct closed *ret)
{
    __u64 elapsed = now - account->stamp, ready = 0, run;
    __u8 cause;

    if (account->state == PRCB_STATE_RUNNING) {
        account->run_ns += elapsed;
        return;
    }
    /* Its switch in was not reported, or came before profiling: last_arrival is when
     * it was. Without the kernel's stamps in our clock, charge what the kernel did. */
    if (has_sched_info() && has_rq_clock() && !config.use_ktime)
        run = growth(now, task->sched_info.last_arrival);
    else
        run = growth(task_sum_exec(task), account->sum_exec);
    if (account->state == PRCB_STATE_OFF)
        account->repaired++;
    cause = open_cause(account);
    if (cause == PRCB_CAUSE_THROTTLED)
        ready = after_quota(elapsed, throttled);
    else if (has_sched_info())
        ready = growth(task->sched_info.run_delay, account->run_delay);
    close_unreported(account, elapsed, run, ready, cause, ret);
}

/* A thread that went to sleep after its counters were copied and before its account was
 * published, a microsecond or two: the guess says why. */
static __always_inline void count_unseen(struct prcb_account_block *account,
                                         struct task_struct *task, __u8 cause)
{
    struct prcb_wait_cell *cell;

    if (task->nvcsw + task->nivcsw != account->nvcsw + account->nivcsw + 1)
        return;
    account->own_switches++;
    account->nvcsw = task->nvcsw;
    account->nivcsw = task->nivcsw;
    cell = wait_cell(account, cause);
    if (cell)
        cell->count++;
}

/* throttled: as for close_running. */
static __always_inline void close_off(struct prcb_account_block *account, struct task_struct *task,
                                      __u64 now, __u64 clock, __u64 throttled, struct closed *ret)
{
    __u64 elapsed = now - account->stamp, ready = 0, run = 0;
    __u8 cause = open_cause(account);

    if (has_sched_info()) {
        ready = growth(task->sched_info.run_delay, account->run_delay);
        /* run_delay is brought up to date after this tracepoint. */
        if (has_rq_clock() && task->sched_info.last_queued)
            ready += growth(clock, task->sched_info.last_queued);
    }
    if (cause == PRCB_CAUSE_THROTTLED)
        ready = after_quota(elapsed, throttled);
    if (account->nvcsw + account->nivcsw != task->nvcsw + task->nivcsw) {
        /* It ran and was switched out unreported since. */
        if (account->state == PRCB_STATE_UNSEEN) {
            count_unseen(account, task, cause);
        } else {
            run = growth(task_sum_exec(task), account->sum_exec);
            account->repaired++;
        }
    }
    close_unreported(account, elapsed, run, ready, cause, ret);
}

/* ---- interrupts ---- */

/* What interrupts and softirqs have taken of this processor. None is going on where tasks
 * are switched. */
static __always_inline __u64 interrupted_here(void)
{
    __u32 key = bpf_get_smp_processor_id() + 1;
    struct prcb_processor_block *block = bpf_map_lookup_elem(&processor_map, &key);

    if (!block || block->state != PRCB_PROCESSOR_ONLINE)
        return PRCB_BASE_UNKNOWN;
    return block->interrupt_ns + block->dpc_ns + block->nested_ns - block->folded_ns;
}

static __always_inline void note_interrupts(struct prcb_account_block *account)
{
    if (!config.interrupted)
        return;
    account->run_cpu = bpf_get_smp_processor_id();
    account->interrupt_base = interrupted_here();
}

static __always_inline void charge_interrupts(struct prcb_account_block *account)
{
    if (!config.interrupted || account->interrupt_base == PRCB_BASE_UNKNOWN)
        return;
    account->interrupted_ns += growth(interrupted_here(), account->interrupt_base);
    account->interrupt_base = PRCB_BASE_UNKNOWN;
}

/* ---- by whom ---- */

#define PID_NS_FIRST_ 0xeffffffcu /* inode of the first pid namespace */

__noinline __u32 number_of(__u64 address, __u32 pid_ns);

static __always_inline void who_of_task(struct task_struct *task, __u32 pid_ns, struct who *ret)
{
    __u64 start = task->start_boottime >> 20, tid;

    ret->what = (__u64)(task->pid ? PRCB_BY_THREAD : PRCB_BY_IDLE) << 16;
    if (pid_ns == PID_NS_FIRST_ || !task->pid) {
        tid = task->pid;
        ret->pid = task->tgid;
    } else {
        tid = number_of((__u64)BPF_CORE_READ(task, thread_pid), pid_ns);
        ret->pid = number_of((__u64)BPF_CORE_READ(task, group_leader, thread_pid), pid_ns);
    }
    /* Idle tasks of all processors are one. */
    ret->thread = task->pid ? tid | start << 32 : 0;
    /* Two loads, and no call of a helper. */
    ((__u64 *)ret->comm)[0] = ((const __u64 *)task->comm)[0];
    ((__u64 *)ret->comm)[1] = ((const __u64 *)task->comm)[1];
}

/* The same of a task that may end meanwhile, but is not given back while this program runs. */
static __always_inline void who_of_address(__u64 address, __u32 pid_ns, struct who *ret)
{
    const struct task_struct *task = (const void *)address;
    __u64 tid = BPF_CORE_READ(task, pid), start = BPF_CORE_READ(task, start_boottime) >> 20;

    ret->pid = BPF_CORE_READ(task, tgid);
    if (pid_ns != PID_NS_FIRST_) {
        tid = number_of((__u64)BPF_CORE_READ(task, thread_pid), pid_ns);
        ret->pid = number_of((__u64)BPF_CORE_READ(task, group_leader, thread_pid), pid_ns);
    }
    ret->thread = tid | start << 32;
    bpf_probe_read_kernel(
        ret->comm, sizeof(ret->comm),
        (const void *)(address + bpf_core_field_offset(struct task_struct, comm)));
    ret->what = (__u64)PRCB_BY_THREAD << 16;
}

static __always_inline void who_of_vector(__u64 by, __u64 vector, struct who *ret)
{
    ret->what = by << 16 | vector << 32;
    ret->thread = 0;
    ret->pid = 0;
    __builtin_memset(ret->comm, 0, sizeof(ret->comm));
}

#ifdef PRCB_CLIENTS
/* Makes of a thread one of others' where the client may not know which it is. A global function, as
 * number_of. */
__noinline int limit_who(struct who *who, __u64 task, __u32 client);

static __always_inline bool wants_edges(const struct profile *profile)
{
    return profile->wants & PRCB_WANT_EDGES;
}

static __always_inline bool wants_registers(const struct profile *profile)
{
    return profile->wants & PRCB_WANT_REGISTERS;
}

static __always_inline bool wants_tails(const struct profile *profile)
{
    return profile->wants & PRCB_WANT_TAILS;
}

static __always_inline bool wants_switches(const struct profile *profile)
{
    return profile->wants & PRCB_WANT_SWITCHES;
}

static __always_inline bool wants_objects(const struct profile *profile)
{
    return profile->wants & PRCB_WANT_OBJECTS;
}

static __always_inline bool wants_owners(const struct profile *profile)
{
    return profile->wants & PRCB_WANT_OWNERS;
}

static __always_inline __u64 handle_of(const struct profile *profile)
{
    return *(volatile __u64 *)&profile->handle;
}

/* Whoever wakes a task tells each of its profiles by itself, and may be at it while another client
 * gets the profile. Nobody is told what was found out for another: `viewer` is no handle of theirs
 * while the rest is written, or ever after. Stores stay in their order on x86. */
static __always_inline bool in_order(void)
{
#if defined(__TARGET_ARCH_x86)
    prcb_seq_barrier();
    return true;
#else
    return all_ordered();
#endif
}

static __always_inline bool begin_telling(struct who *who)
{
    *(volatile __u64 *)&who->viewer = 0; /* seen before the rest: is_told */
    return in_order();
}

static __always_inline void end_telling(struct who *who, __u64 handle)
{
    if (in_order())
        *(volatile __u64 *)&who->viewer = handle; /* seen after the rest: is_told */
}

/* Loads the viewer before the caller loads the rest. */
static __always_inline bool is_told(const struct profile *profile, const struct who *who)
{
    return *(volatile __u64 *)&who->viewer == handle_of(profile) && in_order() && who->what;
}

/* Who a thread is to the client of a handle. */
static __always_inline void tell_task(__u64 handle, struct task_struct *task, struct who *ret)
{
    __u64 address = 0;

    who_of_task(task, PID_NS_FIRST_, ret);
    /* The verifier lets no global function have a pointer as a number, but one that was read. */
    bpf_probe_read_kernel(&address, sizeof(address), &task);
    if (task->pid)
        limit_who(ret, address, client_of(handle));
}

static __always_inline void tell_owner(__u64 handle, __u64 owner, struct who *ret)
{
    who_of_address(owner, PID_NS_FIRST_, ret);
    limit_who(ret, owner, client_of(handle));
}
#else
static __always_inline bool wants_edges(const struct profile *profile)
{
    return config.edges;
}

static __always_inline bool wants_registers(const struct profile *profile)
{
    return config.registers;
}

static __always_inline bool wants_tails(const struct profile *profile)
{
    return config.tails;
}

static __always_inline bool wants_objects(const struct profile *profile)
{
    return config.objects;
}

static __always_inline bool wants_owners(const struct profile *profile)
{
    return config.owners;
}

/* There is one client, who may know everything. */
static __always_inline __u64 handle_of(const struct profile *profile)
{
    return 1;
}

static __always_inline bool begin_telling(struct who *who)
{
    return true;
}

static __always_inline void end_telling(struct who *who, __u64 handle)
{
}

static __always_inline bool is_told(const struct profile *profile, const struct who *who)
{
    return who->what;
}

static __always_inline void tell_task(__u64 handle, struct task_struct *task, struct who *ret)
{
    who_of_task(task, config.pid_ns, ret);
}

static __always_inline void tell_owner(__u64 handle, __u64 owner, struct who *ret)
{
    who_of_address(owner, config.pid_ns, ret);
}
#endif

#ifndef PRCB_CLIENTS
static __always_inline struct prcb_edge_block *edges_of(struct profile *profile)
{
    __u32 slot = profile->slot;

    return bpf_map_lookup_elem(&edge_map, &slot);
}
#endif

/* Where a cell of this key and thread is looked for first. */
static __always_inline __u64 first_cell(__u64 key, __u64 thread)
{
    return ((key ^ thread * 31) * 0x9e3779b97f4a7c15ull) >> 59 & (PRCB_EDGE_SETS - 1);
}

static __always_inline bool is_edge(const struct prcb_edge_cell *cell, __u64 key, __u64 thread)
{
    return *(__u64 *)cell == key && *(__u64 *)&cell->tid == thread;
}

/* Adds a stretch to the cell of who. Where there is none and none is free, that with the least time
 * is given up, to the rest. A global function, which the verifier looks at once: by each way that
 * leads here it walked more than a million instructions on Linux 7.3. */
__noinline int add_edge_anywhere(struct prcb_edge_block *edges, const struct who *who, __u64 what,
                                 __u64 count, __u64 ns)
{
    struct prcb_edge_cell *cell = NULL;
    __u64 key, first, least_ns = ~0ull;
    int i;

    if (!edges || !who)
        return 0;
    key = what | who->what;
    first = first_cell(key, who->thread);
#pragma unroll
    for (i = 0; i < PRCB_EDGE_WAYS; i++) {
        struct prcb_edge_cell *at = &edges->cells[first + i];

        if (is_edge(at, key, who->thread)) {
            at->count += count;
            at->ns += ns;
            return 0;
        }
        if (at->kind == PRCB_EDGE_NONE) {
            cell = at;
            break;
        }
        if (at->ns < least_ns) {
            least_ns = at->ns;
            cell = at;
        }
    }
    if (!cell)
        return 0;
    *(__u64 *)cell = key;
    *(__u64 *)&cell->tid = who->thread;
    cell->pid = who->pid;
    cell->count = count;
    cell->ns = ns;
    __builtin_memcpy(cell->comm, who->comm, sizeof(cell->comm));
    return 0;
}

/* The same, without a call where it is the first cell that is looked at, as most are: returns from
 * functions are what costs most in a switch. */
static __always_inline void add_edge(struct prcb_edge_block *edges, const struct who *who,
                                     __u64 what, __u64 count, __u64 ns)
{
    __u64 key = what | who->what;
    struct prcb_edge_cell *cell = &edges->cells[first_cell(key, who->thread)];

    if (is_edge(cell, key, who->thread)) {
        cell->count += count;
        cell->ns += ns;
    } else {
        add_edge_anywhere(edges, who, what, count, ns);
    }
}

static __always_inline void own_edges(struct prcb_edge_block *edges, __u32 generation)
{
    int i;

    if (edges->generation == generation)
        return;
#pragma unroll
    for (i = 0; i < PRCB_EDGES; i++)
        *(__u64 *)&edges->cells[i] = PRCB_EDGE_NONE;
    edges->generation = generation;
}

/* Files a stretch that was closed. before: who had the processor when the thread got it; NULL: not
 * known. Under the account's seq. */
static __always_inline void note_edges(struct prcb_edge_block *edges, __u32 generation,
                                       const struct closed *closed, struct profile *profile,
                                       const struct who *before)
{
    __u64 cause = (__u64)closed->cause << 8;

    own_edges(edges, generation);
    if (cause_is_ready(closed->cause)) {
        if (is_told(profile, &profile->taker))
            add_edge(edges, &profile->taker, PRCB_EDGE_PREEMPTED_BY | cause, closed->counted,
                     closed->ready);
        return;
    }
    if (closed->cause != PRCB_CAUSE_THROTTLED && is_told(profile, &profile->waker))
        add_edge(edges, &profile->waker, PRCB_EDGE_WOKEN_BY | cause, closed->counted, closed->wait);
    if (before && closed->ready)
        add_edge(edges, before, PRCB_EDGE_BEHIND, 1, closed->ready);
}

/* Files who held the lock that the stretch was for. As note_edges, and after it. Not static: of
 * such a function, whose result nobody uses, clang may return any register, and the verifier
 * refuses one that points to the stack. */
__hidden __noinline int note_holder(struct prcb_edge_block *edges, const struct closed *closed,
                                    const struct tag *tag, const struct profile *profile,
                                    const struct who *holder)
{
    const struct waited_lock *waited = &tag->waited;

    if (waited->lock && !waited->again && waited->cause == closed->cause &&
        is_told(profile, holder))
        add_edge(edges, holder, PRCB_EDGE_HELD_BY | (__u64)closed->cause << 8, closed->counted,
                 closed->wait);
    return 0;
}

/* Who is at work on this processor. task: the current one. */
static __always_inline void who_is_here(__u64 handle, struct task_struct *task, struct who *ret)
{
    __u32 key = bpf_get_smp_processor_id() + 1, by, vector;
    struct prcb_processor_block *block = bpf_map_lookup_elem(&processor_map, &key);

    by = by_here(block, task, &vector);
    if (by == PRCB_BY_THREAD)
        tell_task(handle, task, ret);
    else
        who_of_vector(by, vector, ret);
}

static __always_inline void note_waking(struct profile *profile)
{
#ifdef PRCB_CLIENTS
    if (!wants_switches(profile))
        return;
    profile->woken_ns = bpf_ktime_get_ns();
    profile->woken_cpu = profile->waker.what == (__u64)PRCB_BY_OTHERS << 16
                             ? PRCB_CPU_UNKNOWN
                             : bpf_get_smp_processor_id();
#endif
}

/* Runs in the waker's context, before the kernel looks where the task is to run: a wake that comes
 * before its sleeper's switch out is seen here as well, and kept, for wakers are forgotten at the
 * switch in alone. That of a thread which then did not sleep is replaced by the next. */
SEC("prcb_tp/sched_waking")
int prcb_waking(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0], *current;
    struct tag *tag = tag_of(task);
    int i;

    if (!tag)
        return 0;
    current = bpf_get_current_task_btf();
    /* Nobody ends a sleep of his own. */
    if (task == current)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES && i < top_of(tag); i++) {
        struct profile *profile = &tag->profiles[i];
        __u64 handle = handle_of(profile);
        bool again = is_told(profile, &profile->waker);

        if (!wants_edges(profile) || !begin_telling(&profile->waker))
            continue;
        who_is_here(handle, current, &profile->waker);
        profile->waker.again = again;
        note_waking(profile);
        end_telling(&profile->waker, handle);
    }
    return 0;
}

/* ---- how long ---- */

/* The tail of a cause on this processor; of a client's map, by its number. */
static __always_inline struct prcb_tail_block *tail_of(__u32 client, __u32 cause)
{
    __u32 row = bpf_get_smp_processor_id() * PRCB_CAUSE_MAX + cause;
#ifdef PRCB_CLIENTS
    __u32 first = client_by(client)->tails;
    void *map = first ? client_map(client) : NULL;
#else
    __u32 first = config.tails;
    void *map = first ? &account_map : NULL;
#endif

    /* The compiler would leave an argument that is not used unset, which the verifier refuses. */
    __asm__ volatile("" : : "r"(client));
    row += first;
    return map ? bpf_map_lookup_elem(map, &row) : NULL;
}

/* Of a number that is not 0, by halves: eBPF has no instruction for it. */
static __always_inline __u32 log2_of(__u32 number)
{
    __u32 ret = 0, step;

#pragma unroll
    for (step = 16; step; step /= 2) {
        if (number >> step) {
            number >>= step;
            ret += step;
        }
    }
    return ret;
}

/* Adds a stretch. Nobody else writes here: interrupts are off in a switch. A global function, which
 * the verifier looks at once. */
__noinline int add_tail(__u32 client, __u32 cause, __u64 ns)
{
    struct prcb_tail_block *tail = tail_of(client, cause);
    /* The bound itself belongs to the bucket. */
    __u64 us = ns ? (ns - 1) / 1000 : 0;
    __u32 bucket = PRCB_TAIL_BUCKETS - 1;

    if (!tail)
        return 0;
    tail->ns += ns;
    if (ns > tail->max_ns)
        tail->max_ns = ns;
    if (us < 4) {
        bucket = us;
    } else if (us < 1u << 27) {
        __u32 octave = log2_of(us);

        bucket = (octave - 1) * 4 + (us >> (octave - 2) & 3);
    }
    /* The compiler knows that it is in the array; the verifier has to see it. */
    __asm__ volatile("" : "+r"(bucket));
    if (bucket < PRCB_TAIL_BUCKETS)
        tail->buckets[bucket]++;
    return 0;
}

/* Files a stretch that was closed. */
static __always_inline void note_tails(struct profile *profile, const struct closed *closed)
{
#ifdef PRCB_CLIENTS
    __u32 client = client_of(profile->handle);
#else
    __u32 client = 0;
#endif

    if (!cause_is_ready(closed->cause))
        add_tail(client, closed->cause, closed->wait);
    add_tail(client, PRCB_CAUSE_NONE, closed->ready);
}

/* ---- the switch ---- */

/* How many switches the first one that is seen counts as. The kernel counts a switch before it
 * reports it. The registrar, on another processor, may have copied its counters in between:
 * then this switch is one of those before profiling, of which the time after it counts, but not
 * the switch. Or the thread left and came back after the copy and before its account was
 * published: that one counts here, its cause is the one its time was given. */
static __noinline __u32 first_switch(struct prcb_account_block *account, struct task_struct *prev)
{
    __u64 since = prev->nvcsw + prev->nivcsw - account->nvcsw - account->nivcsw;
    struct prcb_wait_cell *cell;

    if (since == 2) {
        account->own_switches++;
        cell = wait_cell(account, open_cause(account));
        if (cell)
            cell->count++;
    }
    return since != 0;
}

/* Compared first: it hardly ever changes, and its cache line stays clean. */
static __always_inline void note_cgroup(struct prcb_account_block *account, __u64 cgroup)
{
    if (account->cgroup != cgroup)
        account->cgroup = cgroup;
}

/* Finds out what the wait that begins is for, of the task that leaves, the current one. A wait
 * whose call has no descriptor for its first argument has the file of some other one: who reads it
 * knows the calls. The thread has a reference to the file for as long as it waits. Clients are not
 * told where a lock lies, and so where the kernel does. */
static __always_inline void find_object(struct tag *tag)
{
    __u64 file, inode, super;

    tag->object_noted = true;
    tag->object = (struct prcb_wait_object){};
    if (cause_is_ready(tag->cause))
        return;
#ifndef PRCB_CLIENTS
    if (tag->waited.cause == tag->cause)
        tag->object.lock = tag->waited.lock;
#endif
    if (!has_inodes() || tag->call.number < 0)
        return;
    if (!tag->call.file)
        tag->call.file = (__u64)file_of_fd(bpf_get_current_task_btf(), (__u32)tag->call.arg);
    file = tag->call.file;
    if (!file)
        return;
    tag->object.descriptor = tag->call.arg;
    inode = kernel_word(file + bpf_core_field_offset(struct file, f_inode));
    tag->object.inode = kernel_word(inode + bpf_core_field_offset(struct inode, i_ino));
    super = kernel_word(inode + bpf_core_field_offset(struct inode, i_sb));
    tag->object.device = kernel_word(super + bpf_core_field_offset(struct super_block, s_dev));
}

/* Under the account's seq. Found out for the first who asks. A global function, as number_of. */
__noinline int note_object(struct prcb_account_block *account, struct tag *tag)
{
    if (!account || !tag)
        return 0;
    if (!tag->object_noted)
        find_object(tag);
    account->object = tag->object;
    return 0;
}

static __always_inline void switch_out(struct prcb_account_block *account, struct task_struct *prev,
                                       struct pt_regs *regs, __u8 cause, __s32 last_syscall,
                                       __u64 cgroup, __u64 now, __u64 throttled, struct tag *tag,
                                       struct profile *profile, struct prcb_edge_block *edges)
{
    struct prcb_wait_cell *cell;
    struct closed closed;
    __u32 seq = account->seq;
    __u32 count = 1;

    prcb_seq_begin(&account->seq, seq);
    now = now > account->stamp ? now : account->stamp;
    if ((edges || wants_tails(profile)) && account->state != PRCB_STATE_RUNNING) {
        close_running(account, prev, now, throttled, &closed);
        /* Its switch in was not reported. Of two wakers one may be of the sleep that begins now. */
        if (edges && account->state == PRCB_STATE_OFF && !profile->waker.again)
            note_edges(edges, account->generation, &closed, profile, NULL);
        /* One that was profiled while it ran has none behind it. */
        if (wants_tails(profile) &&
            (account->state == PRCB_STATE_OFF || closed.wait || closed.ready))
            note_tails(profile, &closed);
    } else {
        close_running(account, prev, now, throttled, &closed);
    }
    if (account->state == PRCB_STATE_UNSEEN)
        count = first_switch(account, prev);
    charge_interrupts(account);
    account->stamp = now;
    account->state = cause == PRCB_CAUSE_EXIT ? PRCB_STATE_EXITED : PRCB_STATE_OFF;
    account->cause = cause;
    account->cpu = bpf_get_smp_processor_id();
    account->nvcsw = prev->nvcsw;
    account->nivcsw = prev->nivcsw;
    account->own_switches += count;
    account->sum_exec = task_sum_exec(prev);
    if (has_sched_info())
        account->run_delay = prev->sched_info.run_delay;
    account->migrations = task_migrations(prev);
    account->last_syscall = last_syscall;
    if (wants_registers(profile))
        task_user_registers(prev, regs, &account->user);
    if (wants_objects(profile))
        note_object(account, tag);
    note_cgroup(account, cgroup);
    cell = wait_cell(account, cause);
    if (cell)
        cell->count += count;
    prcb_seq_end(&account->seq, seq);
}

/* clock: queue_clock. throttled: see close_running. */
static __always_inline void switch_in(struct prcb_account_block *account, struct task_struct *next,
                                      __u64 now, __u64 clock, __u64 throttled, struct tag *tag,
                                      struct profile *profile, const struct who *holder,
                                      struct prcb_edge_block *edges, struct task_struct *prev,
                                      struct closed *closed)
{
    struct who before = {};
    __u32 seq = account->seq;

    prcb_seq_begin(&account->seq, seq);
    now = now > account->stamp ? now : account->stamp;
    close_off(account, next, now, clock, throttled, closed);
    if (edges) {
        tell_task(handle_of(profile), prev, &before);
        note_edges(edges, account->generation, closed, profile, &before);
        if (wants_owners(profile))
            note_holder(edges, closed, tag, profile, holder);
    }
    if (wants_tails(profile))
        note_tails(profile, closed);
    account->stamp = now;
    account->state = PRCB_STATE_RUNNING;
    account->migrations = task_migrations(next);
    note_interrupts(account);
    prcb_seq_end(&account->seq, seq);
}

/* A quota takes the task off its processor. */
static __noinline int begin_throttled(struct tag *tag, struct task_struct *task, __u64 clock)
{
    __u64 queue;

    if (!has_task_group())
        return 0;
    queue = (__u64)BPF_CORE_READ(task, se.cfs_rq);
    tag->throttled_queue = queue;
    tag->throttled_group = (__u64)BPF_CORE_READ(task, se.cfs_rq, tg);
    tag->throttled_before = throttled_time(queue, clock);
    return 0;
}

/* For how long a quota held the task back since begin_throttled; all of the time where that is not
 * known. Of the queue that it was in then: it may have been moved to another processor since, but
 * while its group is the same, the queue is still there. */
static __noinline __u64 end_throttled(struct tag *tag, struct task_struct *task, __u64 clock)
{
    __u64 queue = tag->throttled_queue, after;

    tag->throttled_queue = 0;
    if (!has_task_group() || (__u64)BPF_CORE_READ(task, se.cfs_rq, tg) != tag->throttled_group)
        return ~0ull;
    after = throttled_time(queue, clock);
    if (after == PRCB_BASE_UNKNOWN || tag->throttled_before == PRCB_BASE_UNKNOWN)
        return ~0ull;
    return growth(after, tag->throttled_before);
}

/* A switch, as seen by the thread that leaves and by the one that comes. */
struct switching {
    struct tag *tag; /* of that thread */
    struct task_struct *prev, *next;
    struct pt_regs *regs; /* registers_by, of prev, where it has a tag */
    __u64 now;            /* its stamp; 0: not taken yet, for nobody profiles either */
    __u64 cgroup;
    __u64 throttled; /* see close_running */
    __u32 state;     /* of prev */
    __u32 cause;     /* why prev leaves, found out once, however many profile it */
#ifdef PRCB_CLIENTS
    __u64 mono; /* CLOCK_MONOTONIC, of switch records; 0: not taken yet, for nobody wants them */
#endif
};

#ifndef PRCB_CLIENTS

/* ---- waits chosen at random ---- */

/* One in how many waits of this cause is chosen. */
static __always_inline __u32 chosen_of(struct prcb_wait_cell *cell)
{
    __u64 count = cell->count, ns = cell->ns, one_in;

    if (count <= PRCB_CHOSEN_FIRST)
        return 1;
    one_in = ns ? count * PRCB_CHOSEN_PERIOD_NS / ns : PRCB_CHOSEN_MOST;
    return one_in < 1 ? 1 : one_in > PRCB_CHOSEN_MOST ? PRCB_CHOSEN_MOST : (__u32)one_in;
}

/* What the wait is for. A futex's words say who holds it, where the lock is of a kind that does. */
static __always_inline void describe_object(struct prcb_chosen_record *record,
                                            const struct prcb_wait_object *object,
                                            const struct call_seen *call, struct pt_regs *regs)
{
    const struct file *file = (const void *)call->file;

    record->object = *object;
    record->syscall = call->compat ? -1 : call->number;
    record->args[0] = call->arg;
    record->args[1] = second_argument(regs, call->compat);
    record->mode = 0;
    record->name[0] = '\0';
    record->words = 0;
    if (record->cause == PRCB_CAUSE_FUTEX)
        record->words =
            bpf_probe_read_user(record->word, sizeof(record->word), (const void *)call->arg)
                ? 0
                : sizeof(record->word) / sizeof(record->word[0]);
    if (!file || !has_file_names())
        return;
    record->mode = BPF_CORE_READ(file, f_inode, i_mode);
    if (bpf_probe_read_kernel_str(record->name, sizeof(record->name),
                                  BPF_CORE_READ(file, f_path.dentry, d_name.name)) < 0)
        record->name[0] = '\0';
}

static __always_inline void describe(struct prcb_chosen_record *record, struct tag *tag,
                                     struct prcb_account_block *account, __u32 kind)
{
    record->kind = kind;
    record->slot = tag->profiles[0].slot;
    record->generation = account->generation;
    record->tid = account->tid;
    record->pid = account->pid;
    record->cause = account->cause;
    record->switches =
        account->nvcsw - account->base_nvcsw + account->nivcsw - account->base_nivcsw;
    record->began_ns = tag->chosen_at;
    record->length = 0;
    record->ns = 0;
}

static __always_inline __u32 copy_bytes(struct prcb_chosen_stack *to, const void *from, __u64 bytes)
{
    /* The compiler knows that it is no more; the verifier has to see it. */
    __asm__ volatile("" : "+r"(bytes));
    if (bytes > PRCB_CHOSEN_BYTES)
        return 0;
    return bpf_probe_read_user(to->bytes, bytes, from) ? 0 : (__u32)bytes;
}

/* The top of the stack, as much of it as is in memory: all that is asked for, or up to the end of
 * one of the pages before. */
static __always_inline __u32 copy_stack(struct prcb_chosen_stack *to)
{
    const void *from = (const void *)(to->record.user.sp - PRCB_CHOSEN_RED_ZONE);
    __u64 first = PRCB_CHOSEN_PAGE - ((__u64)from & (PRCB_CHOSEN_PAGE - 1));
    __u32 bytes = copy_bytes(to, from, PRCB_CHOSEN_BYTES);

    if (!bytes)
        bytes = copy_bytes(to, from, first + PRCB_CHOSEN_PAGE);
    return bytes ? bytes : copy_bytes(to, from, first);
}

/* The thread is still the current one, so its user memory is in reach. */
static __noinline int choose(struct tag *tag, struct prcb_account_block *account,
                             struct switching *s)
{
    struct task_struct *task = s->prev;
    struct prcb_chosen_stack *chosen;
    __u64 cause = account->cause;
    struct prcb_wait_cell *cell;
    __u32 one_in;

    tag->chosen = 0;
    if (account->state != PRCB_STATE_OFF || cause_is_ready(cause) || cause >= PRCB_CAUSE_MAX ||
        task->flags & (PF_KTHREAD_ | PF_IO_WORKER_))
        return 0;
    /* The address after the check, for the verifier. */
    __asm__ volatile("" : "+r"(cause));
    cell = &account->waits[cause];
    one_in = chosen_of(cell);
    if (one_in > 1 && bpf_get_prandom_u32() % one_in)
        return 0;
    tag->chosen_at = bpf_ktime_get_ns();
    chosen = bpf_ringbuf_reserve(&chosen_ring, sizeof(*chosen), 0);
    if (!chosen) {
        __sync_fetch_and_add(&chosen_lost, 1);
    } else {
        describe(&chosen->record, tag, account, PRCB_CHOSEN_OUT);
        chosen->record.one_in = one_in;
        task_user_registers(task, s->regs, &chosen->record.user);
        if (config.objects)
            describe_object(&chosen->record, &tag->object, &tag->call, s->regs);
        chosen->record.length = chosen->record.user.sp ? copy_stack(chosen) : 0;
        bpf_ringbuf_submit(chosen, BPF_RB_NO_WAKEUP);
    }
    tag->chosen = one_in;
    tag->chosen_base = cell->ns;
    return 0;
}

/* Its wait is closed. One that the ring had no room for is told of all the same: it stands for
 * others. */
static __noinline int end_chosen(struct tag *tag, struct prcb_account_block *account)
{
    struct prcb_chosen_record *record;
    __u64 cause = account->cause;
    struct prcb_wait_cell *cell;

    if (cause >= PRCB_CAUSE_MAX)
        return 0;
    __asm__ volatile("" : "+r"(cause));
    cell = &account->waits[cause];
    if (cell->ns > tag->chosen_base) {
        record = bpf_ringbuf_reserve(&chosen_ring, sizeof(*record), 0);
        if (record) {
            describe(record, tag, account, PRCB_CHOSEN_IN);
            record->one_in = tag->chosen;
            record->user = (struct prcb_user_registers){};
            record->ns = cell->ns - tag->chosen_base;
            bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
        } else {
            __sync_fetch_and_add(&chosen_lost, 1);
        }
    }
    tag->chosen = 0;
    return 0;
}
#endif

/* Of a stretch off the processor that begins. unreported: the switch in before it was. */
static __always_inline void leave_edges(struct profile *profile, struct task_struct *next,
                                        __u8 cause, bool unreported)
{
    if (unreported && !profile->waker.again)
        profile->waker.what = 0;
    profile->waker.again = 0;
    profile->taker.what = 0;
    if (!cause_is_ready(cause))
        return;
    tell_task(handle_of(profile), next, &profile->taker);
    end_telling(&profile->taker, handle_of(profile));
}

#ifdef PRCB_CLIENTS
/* ---- switch records ----
 *
 * Of a client's threads, into a ring of this processor's in the client's own map (block_abi.h).
 * What the client might have written there leads to no place outside of that ring. */

/* Where the next record goes, and the head of this processor's ring; NULL: there is none. Not
 * inlined: what leads to either is of no account to the verifier then. */
static __noinline struct prcb_switch_record *next_record(__u32 number,
                                                         struct prcb_switch_ring **ret_ring)
{
    const struct prcb_bpf_client *client = client_by(number);
    __u32 first = client->switches, elements = client->switch_elements, row, at;
    void *map = first ? client_map(number) : NULL;
    struct prcb_switch_element *element;
    struct prcb_switch_ring *ring;
    __u64 position;

    if (!map)
        return NULL;
    row = first + bpf_get_smp_processor_id() * (elements + 1);
    ring = bpf_map_lookup_elem(map, &row);
    if (!ring)
        return NULL;
    position = *(volatile __u64 *)&ring->written;
    at = position % PRCB_SWITCHES_EACH;
    row += 1 + ((__u32)(position / PRCB_SWITCHES_EACH) & (elements - 1));
    element = bpf_map_lookup_elem(map, &row);
    *ret_ring = ring;
    /* The count that was stored last before the bytes of this record: a reader that sees any of
     * these in a copy of the record that lay here sees it too. Pairs with the reader's second look
     * at `written` (switch_rings.c). */
    return element && in_order() ? &element->records[at] : NULL;
}

static __always_inline void fill_out(struct prcb_switch_record *record, struct switching *s)
{
    record->kind = PRCB_SWITCH_OUT;
    record->cause = s->cause;
    record->flags = s->prev->flags & (PF_KTHREAD_ | PF_IO_WORKER_) ? 0 : PRCB_SWITCH_USER;
    record->state = s->state;
    record->syscall = s->tag->call.number;
    record->prio = task_prio(s->prev);
}

static __always_inline void fill_in(struct prcb_switch_record *record, struct switching *s,
                                    struct profile *profile, const struct closed *closed)
{
    const struct who *waker = &profile->waker;

    record->kind = PRCB_SWITCH_IN;
    record->by = 0;
    record->prio = task_prio(s->next);
    record->ready_ns = closed->ready;
    if (cause_is_ready(closed->cause) || closed->cause == PRCB_CAUSE_THROTTLED ||
        !wants_edges(profile) || !is_told(profile, waker))
        return;
    record->by = waker->what >> 16;
    record->vector = waker->what >> 32;
    record->waker_tid = waker->thread;
    record->waker_pid = waker->pid;
    __builtin_memcpy(record->comm, waker->comm, sizeof(record->comm));
    record->woken_ns = profile->woken_ns;
    record->woken_cpu = profile->woken_cpu;
}

/* closed: of the thread that comes; NULL: it leaves. */
static __always_inline void record_switch(struct switching *s, struct profile *profile,
                                          struct prcb_account_block *account,
                                          const struct closed *closed)
{
    struct prcb_switch_ring *ring;
    struct prcb_switch_record *record = next_record(client_of(handle_of(profile)), &ring);

    if (!record)
        return;
    if (!s->mono)
        s->mono = bpf_ktime_get_ns();
    record->time_ns = s->mono;
    record->tid = account->tid;
    record->pid = account->pid;
    if (closed)
        fill_in(record, s, profile, closed);
    else
        fill_out(record, s);
    /* The record before the count that announces it: pairs with the reader's first look at it. */
    if (in_order())
        *(volatile __u64 *)&ring->written = ring->written + 1;
}
#endif

static long leave(__u32 i, struct switching *s)
{
    struct tag *tag = s->tag;
    struct task_struct *prev = s->prev;
    struct prcb_account_block *account;
    struct prcb_edge_block *edges;
    struct profile *profile;
    bool unreported;

    if (i >= PROFILES)
        return 1;
    profile = &tag->profiles[i];
    account = account_of(profile);
    if (!account)
        return 0;
    if (!s->now) {
        s->now = switch_clock(prev, account->stamp);
        if (tag->throttled_queue) /* its switch in was not reported */
            s->throttled = end_throttled(tag, prev, queue_clock(prev, s->now));
        /* By way of memory: the verifier would go on with every cause there is by itself. */
        *(volatile __u32 *)&tag->cause =
            classify(prev, s->regs, s->next, s->state, &tag->waited, &tag->restart, &tag->call);
        prcb_seq_barrier();
        s->cause = *(volatile __u32 *)&tag->cause;
        tag->object_noted = false;
        if (s->cause == PRCB_CAUSE_THROTTLED)
            begin_throttled(tag, prev, queue_clock(prev, s->now));
    }
    tell_clock(profile, account->stamp, s->now);
    edges = wants_edges(profile) ? edges_of(profile) : NULL;
    unreported = account->state == PRCB_STATE_OFF;
    switch_out(account, prev, s->regs, s->cause, tag->call.number, s->cgroup, s->now, s->throttled,
               tag, profile, edges);
    if (edges)
        leave_edges(profile, s->next, s->cause, unreported);
#ifdef PRCB_CLIENTS
    if (wants_switches(profile))
        record_switch(s, profile, account, NULL);
#else
    if (config.chosen)
        choose(tag, account, s);
#endif
    return 0;
}

static long enter(__u32 i, struct switching *s)
{
    struct tag *tag = s->tag;
    struct prcb_account_block *account;
    struct prcb_edge_block *edges;
    struct profile *profile;
    struct closed closed;
    __u64 clock;

    if (i >= PROFILES)
        return 1;
    profile = &tag->profiles[i];
    account = account_of(profile);
    if (!account)
        return 0;
    if (!s->now)
        s->now = switch_clock(s->prev, account->stamp);
    tell_clock(profile, account->stamp, s->now);
    clock = queue_clock(s->prev, s->now);
    if (tag->throttled_queue)
        s->throttled = end_throttled(tag, s->next, clock);
    edges = wants_edges(profile) ? edges_of(profile) : NULL;
    switch_in(account, s->next, s->now, clock, s->throttled, tag, profile, &tag->holders[i], edges,
              s->prev, &closed);
#ifdef PRCB_CLIENTS
    if (wants_switches(profile))
        record_switch(s, profile, account, &closed);
#endif
    if (edges)
        profile->waker.what = 0;
#ifndef PRCB_CLIENTS
    if (config.chosen && tag->chosen)
        end_chosen(tag, account);
#endif
    return 0;
}

#ifdef PRCB_CLIENTS
/* By bpf_loop (5.17): the verifier walks what is done for one profile once, and not once for each
 * that there may be. From 6.0 on the kernel makes a plain loop of it. */
#define EACH_PROFILE(tag, step, s) bpf_loop(top_of(tag), step, s, 0)
#else
#define EACH_PROFILE(tag, step, s) step(0, s)
#endif

#ifdef PRCB_CLIENTS
static __noinline int look_again(struct tag *tag, struct task_struct *task);

/* Each exec changes credentials for others, of the same content or not. What prcb_exec was not run
 * for (7.0, see "which threads") is made good here, before the switch is written. */
static __always_inline void look_at_credentials(struct tag *tag, struct task_struct *task)
{
    if (config.newborn && tag->cred != (__u64)plain(task)->real_cred)
        look_again(tag, task);
}
#endif

static __always_inline void forget_what_changes(struct switching *s, const __u64 *any)
{
#ifdef PRCB_CLIENTS
    s->now = forget(s->now, any);
    s->throttled = forget(s->throttled, any);
    s->mono = forget(s->mono, any);
    s->cause = forget(s->cause, any);
#endif
}

SEC("prcb_tp/sched_switch")
int prcb_switch(__u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
    /* The argument is there from 5.18; before, the task's own state, which a waker may
     * change at any time. A task that is preempted stays able to run, whatever state it
     * was about to sleep in. */
    __u32 state = (bool)ctx[0]            ? TASK_RUNNING_
                  : config.has_prev_state ? (__u32)ctx[3]
                                          : prev->__state;
    struct switching s = {.prev = prev, .next = next, .state = state};

    if (calibrating && has_rq_clock() && !config.use_ktime)
        sample_offset(BPF_CORE_READ(prev, se.cfs_rq, rq, clock));
    s.tag = tag_of(prev);
    s.throttled = ~0ull;
    if (s.tag) {
        forget_what_changes(&s, ctx);
#ifdef PRCB_CLIENTS
        look_at_credentials(s.tag, prev);
#endif
        /* Read before anything is decided: each place that follows pointers costs the verifier
         * milliseconds. */
        s.cgroup = task_cgroup(prev);
        s.regs = registers_by(s.tag, prev);
        EACH_PROFILE(s.tag, leave, &s);
    }
    s.tag = tag_of(next);
    if (s.tag) {
        s.throttled = ~0ull;
        forget_what_changes(&s, ctx);
        EACH_PROFILE(s.tag, enter, &s);
    }
    return 0;
}

/* ---- kernel locks ---- */

/* Who holds the lock that the current task, of this tag, is about to wait for. Now, while it is
 * certain that the lock is there: its address may be stale at the switch out, where its end was not
 * reported (struct waited_lock), and what lies there then would be taken for a task. */
static __noinline int tell_owners(struct tag *tag)
{
    __u64 owner = lock_owner(tag->waited.lock, tag->waited.owned);
    int i;

    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES && i < top_of(tag); i++) {
        struct profile *profile = &tag->profiles[i];
        struct who *holder = &tag->holders[i];
        __u64 handle = handle_of(profile);

        if (!handle || !wants_owners(profile) || !begin_telling(holder))
            continue;
        holder->what = 0;
        if (owner)
            tell_owner(handle, owner, holder);
        end_telling(holder, handle);
    }
    return 0;
}

SEC("prcb_tp/contention_begin")
int prcb_contention_begin(__u64 *ctx)
{
    __u64 lock = ctx[0];
    __u32 flags = (__u32)ctx[1];
    struct task_struct *task;
    struct tag *tag;

    /* A spinner does not leave the processor; a spin lock inside a sleeping lock's slow
     * path must not hide the sleeping lock. */
    if (flags & LCB_F_SPIN_)
        return 0;
    task = bpf_get_current_task_btf();
    tag = tag_of(task);
    if (!tag || !is_profiled(tag))
        return 0;
    tag->waited.owned = owned_by_flags(flags);
    meet_lock(&tag->waited, task, lock, cause_of_lock(flags, is_own_mmap_lock(task, lock)));
    if (anyone_wants_owners(tag))
        tell_owners(tag);
    return 0;
}

SEC("prcb_tp/contention_end")
int prcb_contention_end(__u64 *ctx)
{
    struct tag *tag = tag_of(bpf_get_current_task_btf());

    /* Ends of locks inside the one waited for leave it alone. */
    if (tag && tag->waited.lock == ctx[0])
        tag->waited.lock = 0;
    return 0;
}

/* ---- giving out accounts ---- */

struct number_search {
    __u64 numbers; /* address of the pid's first */
    __u32 pid_ns;
    __u32 found;
};

static long number_at(__u32 i, struct number_search *search)
{
    struct upid upid;
    const void *at = (const char *)search->numbers + i * bpf_core_type_size(struct upid);

    if (bpf_probe_read_kernel(&upid, sizeof(upid), at))
        return 1;
    if (BPF_CORE_READ(upid.ns, ns.inum) != search->pid_ns)
        return 0;
    search->found = upid.nr;
    return 1;
}

/* A thread's number in a session's pid namespace; 0: not visible there. address: of its struct
 * pid. A global function, and the helper's loop: the verifier looks at it once, and not at each
 * call or in each pass. */
__noinline __u32 number_of(__u64 address, __u32 pid_ns)
{
    const struct pid *pid = (const void *)address;
    struct number_search search = {.pid_ns = pid_ns};
    __u32 levels;

    if (!pid)
        return 0;
    search.numbers = address + bpf_core_field_offset(struct pid, numbers);
    levels = BPF_CORE_READ(pid, level) + 1;
    bpf_loop(levels < PRCB_PID_LEVELS ? levels : PRCB_PID_LEVELS, number_at, &search, 0);
    return search.found;
}

static __always_inline __u32 number_in(struct task_struct *task, __u32 pid_ns)
{
    return number_of((__u64)BPF_CORE_READ(task, thread_pid), pid_ns);
}

/* Whether the thread has a number in a pid namespace. A walk over all tasks comes to those of the
 * walker's namespace alone, and a cgroup's list has those of the reader's, so without this threads
 * from outside would be counted if they came later, and only these. */
static __always_inline bool is_inside(struct task_struct *task, __u32 pid_ns)
{
    return pid_ns == PID_NS_FIRST_ || number_in(task, pid_ns);
}

/* Of its process. */
static __always_inline __u32 process_in(struct task_struct *task, __u32 pid_ns)
{
    return number_of((__u64)BPF_CORE_READ(task, group_leader, thread_pid), pid_ns);
}

/* One writer at a time: task_rename is called under the task's lock, and before an
 * account is published it has one owner. */
static __always_inline void write_identity(struct prcb_account_block *account,
                                           struct task_struct *task, const void *comm, __u32 pid_ns)
{
    __u32 tid = number_in(task, pid_ns), seq = account->comm_seq;

    prcb_seq_begin(&account->comm_seq, seq);
    account->tid = tid;
    bpf_probe_read_kernel_str(account->comm, sizeof(account->comm), comm);
    prcb_seq_end(&account->comm_seq, seq);
}

/* A global function, as number_of. */
__noinline int clear_waits(struct prcb_account_block *account)
{
    int i;

    if (!account)
        return 0;
    for (i = 0; i < PRCB_CAUSE_MAX; i++)
        account->waits[i].count = account->waits[i].ns = 0;
    return 0;
}

/* Fills an account that nobody else knows of yet. */
static __always_inline void init_account(struct prcb_account_block *account,
                                         struct task_struct *task, __u64 now, bool born,
                                         __u32 generation, __u32 pid_ns, __u16 wants)
{
    __u32 seq = account->seq & ~1u;

    prcb_seq_begin(&account->seq, seq);
    account->generation = generation;
    account->run_ns = account->ready_ns = account->own_switches = account->repaired = 0;
    clear_waits(account);
    account->stamp = account->enabled = now;
    account->nvcsw = account->base_nvcsw = born ? 0 : task->nvcsw;
    account->nivcsw = account->base_nivcsw = born ? 0 : task->nivcsw;
    account->migrations = account->base_migrations = born ? 0 : task_migrations(task);
    account->sum_exec = born ? 0 : task_sum_exec(task);
    account->run_delay = !born && has_sched_info() ? task->sched_info.run_delay : 0;
    account->last_syscall = -1;
    account->cpu = 0;
    account->interrupted_ns = 0;
    account->interrupt_base = PRCB_BASE_UNKNOWN;
    /* A thread that starts its own account. */
    if (task == bpf_get_current_task_btf())
        note_interrupts(account);
    account->pid = process_in(task, pid_ns);
    account->thread_flags =
        (task->flags & PF_KTHREAD_ ? PRCB_THREAD_KTHREAD : 0) | (born ? PRCB_THREAD_BORN : 0);
    account->wants = wants;
    account->user = (struct prcb_user_registers){};
    account->object = (struct prcb_wait_object){};
    account->cgroup = task_cgroup_read(task);
    write_identity(account, task, task->comm, pid_ns);
    /* A newborn is able to run from its creation on. */
    account->cause = born ? PRCB_CAUSE_PREEMPTED : PRCB_CAUSE_NONE;
    account->state = born ? PRCB_STATE_OFF : PRCB_STATE_UNSEEN;
    account->guess = 0;
    prcb_seq_end(&account->seq, seq);
}

static __always_inline void mark_free(struct prcb_account_block *account)
{
    __u32 seq = account->seq;

    prcb_seq_begin(&account->seq, seq);
    account->state = PRCB_STATE_FREE;
    prcb_seq_end(&account->seq, seq);
}

static __always_inline void count_untracked(struct prcb_head_block *head)
{
    __sync_fetch_and_add(&head->untracked, 1);
}

/* ---- threads that exist already ---- */

/* What an existing thread is doing, as far as can be seen from outside. leaving: one that
 * is on a processor, but not to run on, is taken to have left. Not inlined: it is called
 * often. */
static __noinline __u32 guess_of(struct task_struct *task, bool leaving)
{
    __u32 state = task->__state;
    struct call_seen call;
    __u32 restart = 0;
    __u8 cause;

    leaving = leaving && task_on_cpu(task) && state != TASK_RUNNING_;
    if (task_on_cpu(task) && !leaving)
        return PRCB_STATE_RUNNING;
    if (state == TASK_RUNNING_ || (!leaving && task_queued(task)))
        cause = PRCB_CAUSE_PREEMPTED;
    else
        cause = classify(task, registers_of(task), task, state, NULL, &restart, &call);
    return PRCB_STATE_OFF | (__u32)cause << 8;
}

struct ending {
    struct task_struct *task;
    bool has_ended;
};

static long look_for_end(__u32 i, struct ending *ending)
{
    bool is_dead = ending->task->__state & TASK_DEAD_;

    ending->has_ended = is_dead && !task_on_cpu(ending->task);
    return !is_dead || ending->has_ended;
}

/* Off the processor for good. A task that is about to be is waited for, a microsecond
 * or two: between its last switch's tracepoint and the switch itself nobody could
 * tell whether the program has seen it. One whose virtual processor is stopped just there
 * is left to prcb_ended. */
static __always_inline bool has_ended(struct task_struct *task)
{
    struct ending ending = {.task = task};

    bpf_loop(ENDINGS, look_for_end, &ending, 0);
    return ending.has_ended;
}

/* For an account that no switch writes any more. */
static __always_inline void mark_ended(struct prcb_account_block *account)
{
    __u32 seq = account->seq;

    prcb_seq_begin(&account->seq, seq);
    account->state = PRCB_STATE_EXITED;
    account->cause = PRCB_CAUSE_EXIT;
    prcb_seq_end(&account->seq, seq);
}

/* The task's memory is about to be given back, its last switch long past. Whoever gave it an
 * account did so before the kernel took it off its lists, and a grace period has gone by since. */
SEC("prcb_tp/sched_process_free")
int prcb_ended(__u64 *ctx)
{
    struct tag *tag = bpf_task_storage_get(&tags, (struct task_struct *)ctx[0], NULL, 0);
    int i;

    if (!tag)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES; i++) {
        struct prcb_account_block *account = account_of(&tag->profiles[i]);
        __u8 then;

        if (!account)
            continue;
        /* The state first: where it is that of a thread which was given the account since, so
         * is the generation, which init_account stores before it. */
        then = *(volatile __u8 *)&account->state;
        if (!all_ordered())
            break;
        if (then != PRCB_STATE_EXITED && then != PRCB_STATE_FREE &&
            is_still(&tag->profiles[i], account))
            mark_ended(account);
    }
    return 0;
}

struct guess {
    struct prcb_account_block *account;
    struct task_struct *task;
};

/* Guesses once; 1: it holds. Else it may be from before a switch that is under way. The last guess
 * is made for a virtual processor that was stopped in the middle of a switch, which stays there for
 * long: if the switch's tracepoint is still to come, it writes the account whatever is guessed
 * here; if it is past, the thread is off. */
static long guess_once(__u32 i, struct guess *guess)
{
    struct task_struct *task = guess->task;
    __u64 before = task->nvcsw + task->nivcsw;

    *(volatile __u32 *)&guess->account->guess = guess_of(task, i == GUESSES - 1);
    /* On a processor, but not to run on: its switch may be behind it already. */
    return task->nvcsw + task->nivcsw == before &&
           !(task_on_cpu(task) && *(volatile unsigned int *)&task->__state);
}

/* The account is published before its first switch, so the guess and the counters
 * may be from before a switch nobody saw: look again until they agree. The guess
 * is one word of its own, so the switch program never waits for this. */
static __always_inline void guess_until_settled(struct prcb_account_block *account,
                                                struct task_struct *task)
{
    struct guess guess = {.account = account, .task = task};

    /* Made its last switch before it was published: no program writes this account. */
    if (has_ended(task)) {
        if (account->state == PRCB_STATE_UNSEEN)
            mark_ended(account);
        return;
    }
    /* The helper's loop, whose body the verifier looks at once, and not once a pass. */
    bpf_loop(GUESSES, guess_once, &guess, 0);
}

/* ---- which threads ----
 *
 * Why no thread of a process that is being registered is missed. Its threads come about in
 * clone, which first puts the new thread on the kernel's lists (at the end of its process's)
 * and then runs prcb_newtask, on the creator's processor. prcb_newtask looks for the
 * creator's tag; the registrar tags a thread and then goes on along the list.
 *
 * (a) Either prcb_newtask sees the tag, or the registrar sees the new thread on the list: on
 *     both sides an exchange orders the store (list; tag) before the load (tag; list).
 * (b) A thread that is on the list but not able to run yet may still have its prcb_newtask
 *     before it: the registrar leaves it alone and the walk is repeated. The last walk there
 *     is takes it all the same; both may give it its account, one of them does (busy).
 * (c) The kernel's walk over one process ends where the thread that it has come to ends
 *     meanwhile. So it counts as complete when the last thread it came to was the last of the
 *     list then (request.cut), and is repeated otherwise; at last over all tasks by number,
 *     which nothing cuts short.
 * (d) The walk is repeated until one gives out nothing and widens no tag. Of each thread that
 *     the last walk came to, everything it created is tagged, or is behind it on the list and
 *     came along in the same walk.
 *
 * From 7.0 on, tracepoints can be preempted, and a program that is preempted is not run for another
 * task on the same processor meanwhile (recursion_misses). Not so where interrupts are off. So what
 * prcb_newtask was not run for is made good by prcb_newborn, before the new thread's first switch:
 * the creator wakes it up, with interrupts off and its run queue locked. A birth is not lost, then,
 * and (a) to (d) hold but for the thread's not being TASK_NEW any more, for a moment: the registrar
 * may take it for one that existed.
 *
 * Threads on the list come in the order of their creation, but for exec, by which a thread
 * takes over its leader's number and place: then the leader's end cuts the walk.
 *
 * Where all are to be followed, or a cgroup of version 2, prcb_newtask looks at the scope. User
 * space stores that before the walk with a fence in between, as (a).
 */

struct cgroup_search {
    __u64 cgroup; /* address of the one that is looked at; 0: no more */
    const struct prcb_bpf_cgroups *list;
    __u32 among; /* bits: which of these */
    bool found;
};

/* A global function, as number_of. among: bits, which of the list. */
__noinline int is_listed(const struct prcb_bpf_cgroups *list, __u32 among, __u64 id)
{
    int i;

    if (!list)
        return 0;
    for (i = 0; i < PRCB_SCOPE_CGROUPS; i++) {
        if (among >> i & 1 && list->ids[i] == id)
            return 1;
    }
    return 0;
}

static long cgroup_at(__u32 i, struct cgroup_search *search)
{
    struct cgroup *cgroup = (void *)search->cgroup;
    struct cgroup_subsys_state *parent;

    if (!cgroup)
        return 1;
    if (is_listed(search->list, search->among, BPF_CORE_READ(cgroup, kn, id))) {
        search->found = true;
        return 1;
    }
    parent = BPF_CORE_READ(cgroup, self.parent);
    search->cgroup = parent ? (__u64)BPF_CORE_READ(parent, cgroup) : 0;
    return 0;
}

/* In one of these or below it. */
static __always_inline bool in_cgroups(__u64 cgroup, const struct prcb_bpf_cgroups *list,
                                       __u32 among)
{
    struct cgroup_search search = {.cgroup = cgroup, .list = list, .among = among};

    if (!among || !has_cgroups())
        return false;
    bpf_loop(PRCB_CGROUP_LEVELS, cgroup_at, &search, 0);
    return search.found;
}

#ifdef PRCB_CLIENTS
#include "registrar.bpf.inc"
#else

/* A slot that belongs to nobody: one that was given back, or one never used. */
static __always_inline bool take_slot(struct prcb_head_block *head, __u32 *ret)
{
    __u64 fresh;

    if (!bpf_map_pop_elem(&free_slots, ret))
        return true;
    if (*(volatile __u64 *)&head->account_used >= config.accounts)
        return false;
    fresh = __sync_fetch_and_add(&head->account_used, 1);
    *ret = fresh;
    return fresh < config.accounts;
}

/* The task's tag, made where there is none; a task that finds no free account has one all the
 * same: what it creates must be counted too. NULL: there is no memory. last: nobody tries again. */
static __always_inline struct tag *make_tag(struct task_struct *task, __u32 pass, bool last)
{
    struct tag fresh = {.profiles = {{.slot = PRCB_SLOT_NONE, .pass = pass}}};
    struct tag *tag = bpf_task_storage_get(&tags, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
    struct prcb_head_block *head;

    /* When two create it at once it is refused to the second. Then it is there by now. */
    if (!tag)
        tag = bpf_task_storage_get(&tags, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
    head = head_block();
    if (!tag && head && last)
        count_untracked(head);
    return tag;
}

/* For who holds the tag's busy word. The exchange orders the account's stores before the
 * slot's, and its result is used so that it stays one. */
static __always_inline struct prcb_account_block *
fill_and_publish(struct task_struct *task, struct profile *profile, bool born)
{
    struct prcb_head_block *head = head_block();
    struct prcb_account_block *account;
    __u32 slot;

    if (!head)
        return NULL;
    if (!take_slot(head, &slot)) {
        if (profile->slot == PRCB_SLOT_NONE)
            count_untracked(head);
        profile->slot = SLOT_FULL;
        return NULL;
    }
    account = bpf_map_lookup_elem(&account_map, &slot);
    if (!account)
        return NULL;
    init_account(account, task, clock_now(head), born, account->generation + 1, config.pid_ns,
                 (config.registers ? PRCB_WANT_REGISTERS : 0) |
                     (config.edges ? PRCB_WANT_EDGES : 0) | (config.tails ? PRCB_WANT_TAILS : 0) |
                     (config.objects ? PRCB_WANT_OBJECTS : 0));
    profile->generation = account->generation;
    return __sync_lock_test_and_set(&profile->slot, slot) >= SLOT_FULL ? account : NULL;
}

enum adoption {
    ADOPTED,
    ADOPTED_BEFORE,
    ADOPTION_FULL,
    ADOPTION_BUSY, /* somebody else is at it at this moment */
};

/* Gives a task that has none an account. The registrar, prcb_newtask and prcb_cgroup_attach may
 * come at once for one task: who takes the busy word gives it, and no other account is even
 * begun. All that came before is ordered before all that comes after. */
static __always_inline enum adoption adopt(struct task_struct *task, struct tag *tag, bool born,
                                           struct prcb_account_block **ret)
{
    struct profile *profile = &tag->profiles[0];
    enum adoption result = ADOPTED_BEFORE;

    if (__sync_lock_test_and_set(&tag->busy, 1))
        return profile->slot < SLOT_FULL ? ADOPTED_BEFORE : ADOPTION_BUSY;
    if (profile->slot >= SLOT_FULL) {
        *ret = fill_and_publish(task, profile, born);
        result = *ret ? ADOPTED : ADOPTION_FULL;
    }
    /* Pairs with the exchange above of the next: it sees the slot. */
    __sync_lock_test_and_set(&tag->busy, 0);
    return result;
}

/* What is passed on becomes at least this. false: it was before. */
static __always_inline bool widen(struct tag *tag, __u32 pass)
{
    return (__sync_fetch_and_or(&tag->profiles[0].pass, pass) & pass) != pass;
}

/* The creator is current. */
static __always_inline void follow(struct task_struct *child, bool thread, bool last)
{
    struct prcb_account_block *account;
    struct tag *parent, *tag;
    __u32 pass = 0;

    /* The child is on the lists before its parent's tag and the scope are looked at: (a). */
    if (!all_ordered())
        return;
    parent = bpf_task_storage_get(&tags, bpf_get_current_task_btf(), NULL, 0);
    if (parent && (parent->profiles[0].pass & (thread ? PRCB_PASS_THREADS : PRCB_PASS_CHILDREN)))
        pass = parent->profiles[0].pass;
    else if ((scope.all || (scope.cgroups.v2 &&
                            in_cgroups(cgroup_of(child), &scope.cgroups, scope.cgroups.v2))) &&
             is_inside(child, config.pid_ns))
        pass = PRCB_PASS_THREADS | PRCB_PASS_CHILDREN;
    tag = pass ? make_tag(child, pass, last) : NULL;
    if (!tag)
        return;
    /* The registrar may have been here, for a task whose creation took too long to wait for. */
    widen(tag, pass);
    adopt(child, tag, true, &account);
    tag->born = 1;
}

static __always_inline bool is_requested(struct task_struct *task)
{
    switch (request.what) {
    case PRCB_REGISTER_THREAD:
        return number_in(task, config.pid_ns) == request.number;
    case PRCB_REGISTER_PROCESS:
        return process_in(task, config.pid_ns) == request.number;
    case PRCB_REGISTER_ALL:
        return true;
    default:
        return false;
    }
}

static __always_inline void register_task(struct task_struct *task)
{
    struct prcb_account_block *account = NULL;
    struct tag *tag = bpf_task_storage_get(&tags, task, NULL, 0);

    /* Not able to run yet: (b). */
    if (!tag && !request.last && task->__state & TASK_NEW_) {
        request.again++;
        return;
    }
    request.seen++;
    if (!tag)
        tag = make_tag(task, request.pass, true);
    if (!tag) {
        request.full++;
        return;
    }
    if (widen(tag, request.pass))
        request.again++;
    switch (adopt(task, tag, false, &account)) {
    case ADOPTED:
        request.added++;
        break;
    case ADOPTION_FULL:
        request.full++;
        break;
    case ADOPTION_BUSY:
        request.again++;
        break;
    case ADOPTED_BEFORE:
        break;
    }
    if (account)
        guess_until_settled(account, task);
}

SEC("prcb_iter/task")
int prcb_register(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;

    if (!task)
        return 0;
    if (request.what == PRCB_REGISTER_PROCESS)
        request.cut = !is_last_thread(task);
    if (task->pid && !NUMBER(task_struct, task, exit_state) && is_requested(task))
        register_task(task);
    return 0;
}

/* Ends the profiling of threads that live. A switch may be in the middle of using
 * the account: user space waits for that before the slot is used again. */
SEC("prcb_iter/task")
int prcb_unregister(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct tag *tag;

    if (!task)
        return 0;
    tag = bpf_task_storage_get(&tags, task, NULL, 0);
    if (tag && tag->profiles[0].slot == request.number) {
        /* The kernel refuses it where somebody on this processor is in the middle of a task's
         * storage. The account is the thread's no more even so. */
        if (bpf_task_storage_delete(&tags, task)) {
            tag->profiles[0].pass = 0;
            *(volatile __u32 *)&tag->profiles[0].slot = PRCB_SLOT_NONE;
        }
    }
    return 0;
}

SEC("prcb_tp/cgroup_attach_task")
int prcb_cgroup_attach(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[2];
    struct prcb_account_block *account = NULL;
    struct tag *tag;

    if (!in_cgroups(ctx[0], &scope.cgroups, scope.cgroups.used) || !is_inside(task, config.pid_ns))
        return 0;
    /* A process that moves is reported by its leader alone; the other threads cannot be
     * reached from here. User space looks for them at its next refresh. */
    if (ctx[3])
        scope.moved++;
    tag = make_tag(task, PRCB_PASS_THREADS | PRCB_PASS_CHILDREN, true);
    if (!tag)
        return 0;
    widen(tag, PRCB_PASS_THREADS | PRCB_PASS_CHILDREN);
    adopt(task, tag, false, &account);
    if (account)
        guess_until_settled(account, task);
    return 0;
}

/* User space never writes to the blocks: it asks for an account to be marked free, and
 * then puts the slot on the queue itself, for in 6.1 a syscall program may not use
 * queues. The generation must still be the one it knows. */
SEC("syscall")
int prcb_free_slot(struct prcb_bpf_slot *asked)
{
    __u32 slot = asked->slot;
    struct prcb_account_block *account = bpf_map_lookup_elem(&account_map, &slot);

    if (!account || account->state == PRCB_STATE_FREE || account->generation != asked->generation)
        return 1;
    mark_free(account);
    return 0;
}
#endif

/* ---- the kernel's part of a stack ---- */

struct prcb_bpf_kernel_stack kernel_stack = {};

/* Whether the account asked for is the task's, and its client may still profile it. */
static __always_inline bool is_account_of(struct task_struct *task, struct tag *tag)
{
#ifdef PRCB_CLIENTS
    bool found = false;
    int i;

    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES; i++)
        found |= *(volatile __u64 *)&tag->profiles[i].handle == kernel_stack.account;
    return found && may_profile(client_by(client_of(kernel_stack.account)), task);
#else
    return (tag->profiles[0].slot | (__u64)tag->profiles[0].generation << 32) ==
           kernel_stack.account;
#endif
}

/* Of a task that waits, by name: addresses would tell where the kernel lies. What can be told only
 * as an address the reader leaves out. */
SEC("prcb_iter/task")
int prcb_kernel_stack(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct tag *tag;
    long bytes;
    int i;

    if (!task || task->__state == TASK_RUNNING_)
        return 0;
    tag = bpf_task_storage_get(&tags, task, NULL, 0);
    if (!tag || !is_account_of(task, tag))
        return 0;
    bytes = bpf_get_task_stack(task, kernel_stack.frames, sizeof(kernel_stack.frames), 0);
    for (i = 0; i < PRCB_KERNEL_FRAMES; i++) {
        if ((i + 1) * (long)sizeof(kernel_stack.frames[0]) > bytes)
            break;
        BPF_SEQ_PRINTF(ctx->meta->seq, "%pB\n", (void *)kernel_stack.frames[i]);
    }
    return 0;
}

/* ---- births ---- */

SEC("prcb_tp/task_newtask")
int prcb_newtask(__u64 *ctx)
{
    follow((void *)ctx[0], ctx[1] & CLONE_THREAD_, !config.newborn);
    return 0;
}

/* Run by the creator as well, a little later, where interrupts are off: see "which threads". */
SEC("prcb_tp/sched_wakeup_new")
int prcb_newborn(__u64 *ctx)
{
    struct task_struct *child = (void *)ctx[0];
    struct tag *tag = bpf_task_storage_get(&tags, child, NULL, 0);

    if (!tag || !tag->born)
        follow(child, child->pid != child->tgid, true);
    return 0;
}

/* Only the programs know what CO-RE found in this kernel. */
SEC("syscall")
int prcb_tell_features(void *ctx)
{
    if (has_rq_clock() && !config.use_ktime)
        kernel_features |= PRCB_FEATURE_RQ_CLOCK;
    /* Its stamps are of the run-queue clock. */
    if (has_sched_info() && has_rq_clock())
        kernel_features |= PRCB_FEATURE_READY;
    if (has_throttled())
        kernel_features |= PRCB_FEATURE_THROTTLED;
    if (has_cgroups())
        kernel_features |= PRCB_FEATURE_CGROUP;
    if (has_migrations())
        kernel_features |= PRCB_FEATURE_MIGRATIONS;
    if (has_syscalls())
        kernel_features |= PRCB_FEATURE_SYSCALLS;
    if (has_files())
        kernel_features |= PRCB_FEATURE_FILES;
    if (has_inodes())
        kernel_features |= PRCB_FEATURE_OBJECTS;
    if (has_user_registers())
        kernel_features |= PRCB_FEATURE_REGISTERS;
    return 0;
}

/* ---- names ---- */

/* A new program or name. A thread that execs takes over its leader's number just
 * before. */
SEC("prcb_tp/task_rename")
int prcb_rename(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    struct tag *tag = bpf_task_storage_get(&tags, task, NULL, 0);
    int i;

    if (!tag)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES && i < top_of(tag); i++) {
        struct prcb_account_block *account = account_of(&tag->profiles[i]);

        if (account)
            write_identity(account, task, (const void *)ctx[1], pid_ns_of(&tag->profiles[i]));
    }
    return 0;
}
