/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Plays the processor's part in sampling by Debug Store: at each interrupt of the event
 * a PEBS record is written at the index of the processor's area, by DS's rules. And,
 * when asked for, leaves a record at each switch that holds that index.
 *
 * The area and the buffers are memory that a program may write at any time: every value
 * of the area is taken once and checked before it is used.
 */
#include "kernel.bpf.h"
#include "by_here.bpf.h"
#include "classify.bpf.h"
#include "interval.bpf.h"
#include "processor_map.bpf.h"
#include "sample_context.bpf.h"
#include "samples.h"
#include "turns.bpf.h"

char LICENSE[] SEC("license")
= "Dual BSD/GPL";

/* These are set before load. */
const volatile __u32 has_prev_state = 0; /* sched_switch passes prev_state (5.18) */
const volatile __u32 has_wakers = 0;     /* switch records tell who woke the new thread */
const volatile __u32 makes_anywhere = 0; /* task storage can be made under any lock (6.12) */
const volatile __u32 only_chosen = 0;    /* samples and records are of chosen threads */

/* What prcb_choose is asked for: the threads of a process, or (0) one thread; and what it found. */
struct {
    __u32 pid, tid;
    __u32 found, added, failed;
} choice = {};

struct chunk {
    __u8 bytes[PRCB_CHUNK_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct chunk);
} memory SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_sample_slot);
} slots SEC(".maps");

/* There is one ring for each processor that samples: a word in it is a threshold that was
 * reached. */
struct signal_ring {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536); /* a page, of whatever size; the real ones may be smaller */
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct signal_ring);
} signals SEC(".maps");

/* There is one ring of switch records for each processor that is there: none waits for another's.
 * All are empty while nobody asked for them. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct signal_ring);
} switch_rings SEC(".maps");

/* A record is put together here before it goes to its place. The spare is never used: the
 * verifier adds up what each part of a stack may have at most. */
struct scratch {
    __u64 words[PRCB_STRIDE_MAX / 8];
    __u64 spare[PRCB_FRAMES_MAX];
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

/* Counts the streams of switch records. */
__u32 stream = 0;

/* Describes how a thread left its processor; what it was off for is decided when it comes back. */
struct left {
    __u64 time_ns; /* when; 0: it was not seen to, or it came back */
    __u64 run_delay;
    __u32 cause;
    __s32 syscall;
};

/* Describes the last waking of a thread that has not got a processor since. It is stored by the
 * one that wakes it, under its pi_lock, `told` last. */
struct waking {
    __u64 time_ns;
    __u32 cpu, vector, tid, pid;
    __u32 by;
    __u32 told;
    char comm[16];
};

/* Holds what is kept of a thread between its switches. One that has none, for lack of memory, is
 * reported as if it had not been seen to leave. */
struct thread {
    __u32 stream; /* that saw it: between two streams it may have run unseen */
    __u32 chosen; /* in all streams */
    struct waited_lock lock;
    struct left left;
    struct away away;
    struct waking waking;
};
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

static const __u32 zero = 0;

/* The compiler shall compute it here, and not keep a copy from before a check or a call:
 * 6.1's verifier would not know that they are the same. */
#define HERE(value) __asm__ volatile("" : "+r"(value))

/* ---- what the interrupt saw ---- */

/* A precise event brings more, in the kernel's own structures: 6.2's cast makes them reachable. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
union perf_sample_weight {
    __u64 full;
};
union perf_mem_data_src {
    __u64 val;
};
struct perf_sample_data {
    union perf_sample_weight weight;
    union perf_mem_data_src data_src;
};
struct bpf_perf_event_data_kern {
    struct perf_sample_data *data;
};
#pragma clang attribute pop
extern void *bpf_cast_to_kern_ctx(void *) __ksym __weak;

struct seen {
    __u64 address, source, latency, tsc, now;
};

/* Converts CLOCK_MONOTONIC to ticks of the time-stamp counter, which programs cannot read. */
static __always_inline __u64 ticks_at(struct prcb_sample_slot *slot, __u64 now)
{
    __u64 delta = now - slot->mono_ns;

    if (!slot->tsc_mult || (__s64)delta < 0)
        return slot->tsc_mult ? slot->tsc : 0;
    return slot->tsc + ((delta >> 32) * slot->tsc_mult << 2) +
           ((delta & 0xffffffff) * slot->tsc_mult >> 30);
}

static __always_inline void look(struct sample_context *ctx, struct prcb_sample_slot *slot,
                                 bool precise, struct seen *seen)
{
    seen->now = bpf_ktime_get_ns();
    seen->tsc = ticks_at(slot, seen->now);
    if (!precise)
        return;
    seen->address = *(volatile __u64 *)&ctx->address;
    if (bpf_cast_to_kern_ctx) {
        struct bpf_perf_event_data_kern *kern = bpf_cast_to_kern_ctx(ctx);

        seen->latency = BPF_CORE_READ(kern, data, weight.full);
        seen->source = BPF_CORE_READ(kern, data, data_src.val);
    }
}

/* ---- records: the order of words is the contract of each format ---- */

#if defined(__TARGET_ARCH_x86)
#define OTHER(ctx, name) REGISTER(ctx, name)
#else
#define OTHER(ctx, name) 0
#define FLAGS            PSTATE
#endif

/* Formats 0 to 3 have 18 words, and 4, 2 and 1 more. All are put down; the size cuts off. */
static __always_inline void fixed_record(struct sample_context *ctx, __u64 *at,
                                         struct prcb_sample_slot *slot, const struct seen *seen)
{
    __u64 ip = REGISTER(ctx, IP);

    at[0] = REGISTER(ctx, FLAGS);
    at[1] = ip;
    at[2] = OTHER(ctx, AX);
    at[3] = OTHER(ctx, BX);
    at[4] = OTHER(ctx, CX);
    at[5] = OTHER(ctx, DX);
    at[6] = OTHER(ctx, SI);
    at[7] = OTHER(ctx, DI);
    at[8] = REGISTER(ctx, BP);
    at[9] = REGISTER(ctx, SP);
    at[10] = OTHER(ctx, R8);
    at[11] = OTHER(ctx, R9);
    at[12] = OTHER(ctx, R10);
    at[13] = OTHER(ctx, R11);
    at[14] = OTHER(ctx, R12);
    at[15] = OTHER(ctx, R13);
    at[16] = OTHER(ctx, R14);
    at[17] = OTHER(ctx, R15);
    at[18] = slot->counter;
    at[19] = seen->address;
    at[20] = seen->source;
    at[21] = seen->latency;
    at[22] = ip;
    at[23] = 0; /* no transaction */
    at[24] = seen->tsc;
}

/* The adaptive format's registers stand in another order. */
static __always_inline void adaptive_registers(struct sample_context *ctx, __u64 *at)
{
    at[0] = REGISTER(ctx, FLAGS);
    at[1] = REGISTER(ctx, IP);
    at[2] = OTHER(ctx, AX);
    at[3] = OTHER(ctx, CX);
    at[4] = OTHER(ctx, DX);
    at[5] = OTHER(ctx, BX);
    at[6] = REGISTER(ctx, SP);
    at[7] = REGISTER(ctx, BP);
    at[8] = OTHER(ctx, SI);
    at[9] = OTHER(ctx, DI);
    at[10] = OTHER(ctx, R8);
    at[11] = OTHER(ctx, R9);
    at[12] = OTHER(ctx, R10);
    at[13] = OTHER(ctx, R11);
    at[14] = OTHER(ctx, R12);
    at[15] = OTHER(ctx, R13);
    at[16] = OTHER(ctx, R14);
    at[17] = OTHER(ctx, R15);
}

static __always_inline void adaptive_record(struct sample_context *ctx, __u64 *at,
                                            struct prcb_sample_slot *slot, const struct seen *seen)
{
    __u32 flags = slot->flags;

    at[0] = (__u64)slot->record_bytes << 48 | (flags & PRCB_SLOT_MEMORY ? 1 : 0) |
            (flags & PRCB_SLOT_GPR ? 2 : 0);
    at[1] = REGISTER(ctx, IP);
    at[2] = slot->counter;
    at[3] = seen->tsc;
    if (!(flags & PRCB_SLOT_MEMORY)) {
        if (flags & PRCB_SLOT_GPR)
            adaptive_registers(ctx, at + 4);
        return;
    }
    at[4] = seen->address;
    at[5] = seen->source;
    at[6] = seen->latency;
    at[7] = 0; /* no transaction */
    if (flags & PRCB_SLOT_GPR)
        adaptive_registers(ctx, at + 8);
}

/* Returns the frames that the kernel gives in bytes; less than 0 when there is no such stack. */
static __always_inline __u32 frames_of(long bytes)
{
    return bytes > 0 ? (__u32)bytes / 8 : 0;
}

/* Writes struct prcb_sample_tail, and the frames behind it. */
static __always_inline void write_tail(struct sample_context *ctx, struct scratch *scratch,
                                       struct prcb_sample_slot *slot, const struct seen *seen,
                                       bool stacks)
{
    __u32 at = slot->record_bytes, room = slot->depth, kernel = 0, user = 0;
    __u64 task = bpf_get_current_pid_tgid(), *tail;

    if (at > PRCB_RECORD_MAX || room > PRCB_FRAMES_MAX)
        return;
    tail = (void *)((__u8 *)scratch->words + at);
    if (stacks && slot->flags & PRCB_SLOT_STACK) {
        kernel = frames_of(bpf_get_stack(ctx, tail + 3, room * 8, 0));
        if (kernel < room) {
            __u32 left = (room - kernel) * 8;

            HERE(kernel);
            HERE(left);
            if (kernel <= PRCB_FRAMES_MAX && left <= PRCB_FRAMES_MAX * 8)
                user = frames_of(bpf_get_stack(ctx, tail + 3 + kernel, left, BPF_F_USER_STACK));
        }
    }
    tail[0] = seen->now;
    tail[1] = (__u32)task | (task >> 32) << 32;
    tail[2] = (in_kernel(ctx) ? 1 : 0) | (__u64)kernel << 32 | (__u64)user << 48;
}

/* ---- the rules of DS ---- */

static __always_inline struct chunk *chunk_at(__u64 offset)
{
    __u32 number = offset >> PRCB_CHUNK_SHIFT;

    return bpf_map_lookup_elem(&memory, &number);
}

/* Describes a record that lies across the border of two chunks. */
struct crossing {
    struct scratch *scratch;
    __u64 offset;
    __u32 words;
    __u32 failed;
};

static long copy_word(__u32 i, struct crossing *crossing)
{
    __u64 word = i, in = crossing->offset + word * 8;
    struct chunk *chunk = chunk_at(in);

    /* The number is checked in the register that is used, in all its bits: 6.1's verifier
     * follows no copies. */
    HERE(word);
    if (!chunk || word >= PRCB_STRIDE_MAX / 8) {
        crossing->failed = 1;
        return 1;
    }
    HERE(in);
    in &= (PRCB_CHUNK_BYTES - 1) & ~7ull;
    *(__u64 *)(chunk->bytes + in) = crossing->scratch->words[word];
    return 0;
}
TURNS(copy_word, struct crossing, state->words)

/* Copies its words one by one. */
static __noinline int copy_across(struct scratch *scratch, __u64 offset, __u32 bytes)
{
    struct crossing crossing = {.scratch = scratch, .offset = offset, .words = (bytes + 7) / 8};

    if (!scratch)
        return 0;
    REPEAT(crossing.words, copy_word, &crossing);
    return !crossing.failed;
}

/* offset: a multiple of 8 inside the buffer. Not inlined, so that what is checked stays in
 * the register that it was checked in: 6.1's verifier knows nothing of copies. */
static __noinline int copy_record(struct scratch *scratch, __u64 offset, __u64 bytes)
{
    __u64 in = offset & (PRCB_CHUNK_BYTES - 1);
    struct chunk *chunk;

    if (in > PRCB_CHUNK_BYTES - PRCB_STRIDE_MAX)
        return copy_across(scratch, offset, bytes);
    chunk = chunk_at(offset);
    if (!chunk || !scratch)
        return 0;
    HERE(in);
    HERE(bytes);
    if (in > PRCB_CHUNK_BYTES - PRCB_STRIDE_MAX || bytes > PRCB_STRIDE_MAX)
        return 0;
    return !bpf_probe_read_kernel(chunk->bytes + in, bytes, scratch->words);
}

/* Has the members of struct prcb_ds_area that count here. */
struct area {
    __u64 bts[4];
    __u64 base, index, maximum, threshold;
};

static __always_inline struct area *area_of(struct prcb_sample_slot *slot)
{
    struct chunk *chunk = chunk_at(slot->area);
    __u32 in = slot->area;

    if (!chunk)
        return NULL;
    HERE(in);
    in &= (PRCB_CHUNK_BYTES - 1) & ~63u; /* an area is aligned, and no longer than that */
    return (struct area *)(chunk->bytes + in);
}

static __always_inline void signal_threshold(struct prcb_sample_slot *slot, __u32 cpu)
{
    void *ring = bpf_map_lookup_elem(&signals, &cpu);
    __u64 word = slot->written;

    slot->thresholds++;
    /* A full ring is readable already. */
    if (ring)
        bpf_ringbuf_output(ring, &word, sizeof(word), BPF_RB_FORCE_WAKEUP);
}

enum put { PUT_DONE, PUT_MOVED, PUT_LOST };

/* Writes the record at the index and moves the index on. Whoever drains stores the index
 * too, on another processor: the compare-and-exchange, fully ordered, pairs with the one of
 * prcb_sample_drain. Whichever comes second sees that the index is not what it took, and
 * the record, which lies where nobody looks any more, is put again. */
static __always_inline enum put put_record(struct prcb_sample_slot *slot, struct scratch *scratch,
                                           __u32 cpu)
{
    struct area *area = area_of(slot);
    __u64 index, next, offset, base, end, threshold;

    if (!area)
        return PUT_LOST;
    index = *(volatile __u64 *)&area->index;
    base = *(volatile __u64 *)&area->base;
    end = *(volatile __u64 *)&area->maximum;
    threshold = *(volatile __u64 *)&area->threshold;
    offset = index - slot->memory;
    if (end > slot->memory + slot->end)
        end = slot->memory + slot->end;
    /* The offset of an index below the memory is huge. */
    if (offset < slot->first || offset > slot->end || offset & 7) {
        slot->lost_index++;
        return PUT_LOST;
    }
    next = index + slot->stride;
    if (next > end) {
        slot->lost_full++;
        return PUT_LOST;
    }
    if (!copy_record(scratch, offset, slot->stride)) {
        slot->lost_index++;
        return PUT_LOST;
    }
    if (__sync_val_compare_and_swap(&area->index, index, next) != index)
        return PUT_MOVED;
    slot->written++;
    if (next >= threshold && (index < threshold || index == base))
        signal_threshold(slot, cpu);
    return PUT_DONE;
}

static __always_inline int take_sample(struct sample_context *ctx, bool precise, bool stacks)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct prcb_sample_slot *slot = bpf_map_lookup_elem(&slots, &cpu);
    struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
    struct seen seen = {};

    if (!slot || !scratch || !*(volatile __u32 *)&slot->active)
        return 0;
    look(ctx, slot, precise, &seen);
    if (slot->format < 4)
        fixed_record(ctx, scratch->words, slot, &seen);
    else
        adaptive_record(ctx, scratch->words, slot, &seen);
    if (slot->flags & PRCB_SLOT_TAIL)
        write_tail(ctx, scratch, slot, &seen, stacks);
    if (put_record(slot, scratch, cpu) == PUT_MOVED &&
        put_record(slot, scratch, cpu) == PUT_MOVED && put_record(slot, scratch, cpu) == PUT_MOVED)
        slot->lost_moved++;
    return 0;
}

/* Tells of the current thread whether it was chosen. Not in an NMI: the storage has locks. */
static __always_inline bool is_chosen_here(void)
{
    struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

    return thread && thread->chosen;
}

/* What goes on with them; empty where nothing does. */
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} after_filter SEC(".maps");

/* Lets the samples of chosen threads alone through: of others the kernel makes none. */
SEC("perf_event")
int prcb_filter(struct sample_context *ctx)
{
    if (!is_chosen_here())
        return 0;
    bpf_tail_call(ctx, &after_filter, 0);
    return 1;
}

SEC("perf_event")
int prcb_sample(struct sample_context *ctx)
{
    if (only_chosen && !is_chosen_here())
        return 0;
    return take_sample(ctx, false, false);
}

SEC("perf_event")
int prcb_sample_stacks(struct sample_context *ctx)
{
    return take_sample(ctx, false, true);
}

/* These two are for precise events. A program that asks for stacks is refused on one that does
 * not make them itself, hence two of each. */
SEC("perf_event")
int prcb_precise(struct sample_context *ctx)
{
    return take_sample(ctx, true, false);
}

SEC("perf_event")
int prcb_precise_stacks(struct sample_context *ctx)
{
    return take_sample(ctx, true, true);
}

/* ---- switch records ---- */

/* This is struct prcb_switch of prcb/sample.h; the library asserts that they are the same. */
struct switch_record {
    __u64 time_ns;
    __u64 pebs_index;
    __u32 cpu, flags;
    __u32 old_tid, old_pid, new_tid, new_pid;
    __u32 old_state;
    __s32 old_syscall;
    __s16 old_prio, new_prio;
    __u8 cause, reason, waker_by, pad;
    __u64 ready_ns;
    __u64 samples;
    __u64 woken_ns;
    __u32 woken_cpu, waker_vector;
    __u32 waker_tid, waker_pid;
    char waker_comm[16];
};

/* Without wakers records end where theirs begin. */
#define RECORD_WITHOUT_WAKER __builtin_offsetof(struct switch_record, woken_ns)

#define SWITCH_INDEX     1u
#define SWITCH_USER_MODE 2u
#define SWITCH_READY     4u

/* Returns what is kept of a thread; NULL: nothing is. make: there shall be something. */
static __always_inline struct thread *thread_of(struct task_struct *task, bool make)
{
    struct thread *thread;

    if (!make && !has_storage(task))
        return NULL;
    thread = bpf_task_storage_get(&threads, task, NULL, make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
    if (thread && thread->stream != stream) {
        thread->lock.lock = 0;
        thread->left.time_ns = 0;
        thread->away.marks = 0;
        thread->waking.told = 0;
        thread->stream = stream;
    }
    return thread;
}

/* thread: what is kept of it; NULL: nothing. */
static __always_inline bool is_recorded(const struct thread *thread)
{
    return !only_chosen || (thread && thread->chosen);
}

/* Whether what is kept of a thread may be made where it switches or is woken. */
static __always_inline bool makes_here(void)
{
    return makes_anywhere && !only_chosen;
}

/* Returns the clock of sched_info's stamps. old: the task that is leaving this processor. */
static __always_inline __u64 queue_clock(struct task_struct *old, __u64 now)
{
    return has_rq_clock() ? plain(old)->se.cfs_rq->rq->clock : now;
}

static __always_inline void note_leave(struct thread *thread, struct task_struct *old,
                                       const struct call_seen *call, __u32 cause, __u32 state,
                                       __u64 now)
{
    thread->left.time_ns = now;
    thread->left.run_delay = has_sched_info() ? old->sched_info.run_delay : 0;
    thread->left.cause = cause;
    thread->left.syscall = call->number;
    thread->away.marks = 0;
    if (cause == PRCB_CAUSE_THROTTLED)
        begin_throttled(&thread->away, old, queue_clock(old, now));
    begin_queued(&thread->away, old, state);
}

/* Finds how long the thread that comes was ready, of the time that it was off; false: that is
 * not known. thread: NULL: nothing is kept of it. */
static __always_inline bool note_come(struct thread *thread, struct task_struct *old,
                                      struct task_struct *new, __u64 now, __u64 *ret)
{
    struct interval interval = {.ns = now, .limits = no_limits()};
    __u64 clock = queue_clock(old, now);

    if (!has_sched_info() || !has_rq_clock())
        return false;
    interval.run_delay = new->sched_info.run_delay;
    if (thread && thread->away.marks)
        end_away(&thread->away, new, clock, now, &interval.limits);
    if (thread && thread->left.time_ns) {
        interval.cause = thread->left.cause;
        interval.run_delay = thread->left.run_delay;
        interval.ns = now - thread->left.time_ns;
        thread->left.time_ns = 0;
    } else if (!new->sched_info.last_queued) {
        return false;
    }
    close_interval(&interval, new, clock);
    *ret = interval.ready;
    return !is_unclear(&interval);
}

/* Describes a switch, before there is room for its record, or where there is none: the next one
 * of a thread is told by what is noted of this one. */
struct switch_seen {
    __u64 now;
    __u64 ready;
    __u32 cause;
    struct call_seen call;
    bool ready_known;
};

/* thread, came: thread_of, of the old and the new one. */
static __always_inline void see_switch(struct switch_seen *seen, struct task_struct *old,
                                       struct task_struct *new, struct thread *thread,
                                       struct thread *came, __u32 state)
{
    __u32 restart = 0;

    seen->now = bpf_ktime_get_ns();
    seen->call.number = -1;
    seen->cause = PRCB_CAUSE_NONE;
    if (old->pid && is_recorded(thread))
        seen->cause = classify(old, registers_of(old), new, state, thread ? &thread->lock : NULL,
                               &restart, &seen->call);
    if (thread) {
        note_leave(thread, old, &seen->call, seen->cause, state, seen->now);
        /* One that could go on did not sleep: a wake that it had meanwhile ended no wait. That of
         * a sleep may come before its switch out, and is kept. */
        if (state == TASK_RUNNING_)
            thread->waking.told = 0;
    }
    seen->ready_known = new->pid &&note_come(came, old, new, seen->now, &seen->ready);
}

static __always_inline void describe_threads(struct switch_record *record,
                                             const struct switch_seen *seen,
                                             struct task_struct *old, struct task_struct *new,
                                             __u32 state)
{
    record->old_tid = old->pid;
    record->old_pid = old->tgid;
    record->old_prio = task_prio(old);
    record->old_state = state;
    record->old_syscall = seen->call.number;
    record->cause = seen->cause;
    record->new_tid = new->pid;
    record->new_pid = new->tgid;
    record->new_prio = task_prio(new);
    record->ready_ns = seen->ready;
    record->flags = seen->ready_known ? SWITCH_READY : 0;
    if (old->pid && !(old->flags & PF_KERNELS_))
        record->flags |= SWITCH_USER_MODE;
}

static __always_inline void describe_samples(struct switch_record *record,
                                             struct prcb_sample_slot *slot)
{
    struct area *area;

    record->pebs_index = 0;
    record->samples = 0;
    if (!slot->active)
        return;
    area = area_of(slot);
    if (!area)
        return;
    record->pebs_index = *(volatile __u64 *)&area->index;
    record->samples = slot->written;
    record->flags |= SWITCH_INDEX;
}

/* came: thread_of, of the new thread. */
static __always_inline void describe_waker(struct switch_record *record, struct thread *came)
{
    record->waker_by = 0;
    if (!has_wakers)
        return;
    if (!came || !came->waking.told) {
        record->woken_ns = 0;
        record->woken_cpu = record->waker_vector = record->waker_tid = record->waker_pid = 0;
        __builtin_memset(record->waker_comm, 0, sizeof(record->waker_comm));
        return;
    }
    record->waker_by = came->waking.by;
    record->woken_ns = came->waking.time_ns;
    record->woken_cpu = came->waking.cpu;
    record->waker_vector = came->waking.vector;
    record->waker_tid = came->waking.tid;
    record->waker_pid = came->waking.pid;
    __builtin_memcpy(record->waker_comm, came->waking.comm, sizeof(record->waker_comm));
    came->waking.told = 0;
}

SEC("prcb_tp/sched_switch")
int prcb_switch_record(__u64 *ctx)
{
    struct task_struct *old = (void *)ctx[1], *new = (void *)ctx[2];
    __u32 state = (bool)ctx[0] ? TASK_RUNNING_ : has_prev_state ? (__u32)ctx[3] : old->__state;
    __u32 cpu = bpf_get_smp_processor_id();
    struct prcb_sample_slot *slot = bpf_map_lookup_elem(&slots, &cpu);
    void *ring = bpf_map_lookup_elem(&switch_rings, &cpu);
    struct thread *thread = old->pid ? thread_of(old, makes_here()) : NULL;
    struct thread *came = new->pid ? thread_of(new, false) : NULL;
    struct switch_seen seen = {};
    struct switch_record *record;
    __u64 size;

    if (!is_recorded(thread) && !is_recorded(came))
        return 0;
    see_switch(&seen, old, new, thread, came, state);
    if (!slot)
        return 0;
    if (!ring) { /* of a processor that came after the stream began */
        slot->switches_lost++;
        return 0;
    }
    record = has_wakers ? bpf_ringbuf_reserve(ring, sizeof(*record), 0)
                        : bpf_ringbuf_reserve(ring, RECORD_WITHOUT_WAKER, 0);
    if (!record) {
        slot->switches_lost++;
        return 0;
    }
    record->time_ns = seen.now;
    record->cpu = cpu;
    record->reason = 0; /* the library's: from the cause */
    record->pad = 0;
    describe_threads(record, &seen, old, new, state);
    describe_samples(record, slot);
    describe_waker(record, came);
    size = bpf_ringbuf_query(ring, BPF_RB_RING_SIZE);
    /* Waking the reader makes switches of its own, so it is not done before a quarter is in use. */
    bpf_ringbuf_submit(record, bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= size / 4
                                   ? BPF_RB_FORCE_WAKEUP
                                   : BPF_RB_NO_WAKEUP);
    return 0;
}

/* Task storage may be made here: the task that waits is the one that runs. */
SEC("prcb_tp/contention_begin")
int prcb_record_contention_begin(__u64 *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    __u64 lock = ctx[0];
    __u32 flags = (__u32)ctx[1];
    struct thread *thread;

    if (flags & LCB_F_SPIN_)
        return 0;
    thread = thread_of(task, !only_chosen);
    if (thread && is_recorded(thread))
        meet_lock(&thread->lock, task, lock, cause_of_lock(flags, is_own_mmap_lock(task, lock)));
    return 0;
}

SEC("prcb_tp/contention_end")
int prcb_record_contention_end(__u64 *ctx)
{
    struct thread *thread = thread_of(bpf_get_current_task_btf(), false);

    if (thread && thread->lock.lock == ctx[0])
        thread->lock.lock = 0;
    return 0;
}

/* Runs in the waker's context, before the kernel looks where the task is to run. */
SEC("prcb_tp/sched_waking")
int prcb_record_waking(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0], *here = bpf_get_current_task_btf();
    __u32 cpu = bpf_get_smp_processor_id(), key = cpu + 1;
    struct prcb_processor_block *block;
    struct waking *waking;
    struct thread *thread;

    /* Nobody ends a sleep of his own. */
    if (task == here)
        return 0;
    thread = thread_of(task, makes_here());
    if (!thread || !is_recorded(thread))
        return 0;
    waking = &thread->waking;
    waking->told = 0;
    waking->time_ns = bpf_ktime_get_ns();
    waking->cpu = cpu;
    waking->tid = waking->pid = 0;
    block = bpf_map_lookup_elem(&processor_map, &key);
    waking->by = by_here(block, here, &waking->vector);
    __builtin_memset(waking->comm, 0, sizeof(waking->comm));
    if (waking->by == PRCB_BY_THREAD) {
        waking->tid = here->pid;
        waking->pid = here->tgid;
        ((__u64 *)waking->comm)[0] = ((const __u64 *)here->comm)[0];
        ((__u64 *)waking->comm)[1] = ((const __u64 *)here->comm)[1];
    }
    if (is_move_noted(&thread->away, false))
        note_move(&thread->away, false, waking->time_ns);
    /* The exchange orders what is above before it. */
    __sync_lock_test_and_set(&waking->told, 1);
    return 0;
}

/* This is attached where the kernel moves tasks that sleep (6.12). */
SEC("prcb_tp/sched_migrate_task")
int prcb_record_move(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    bool asleep = task_delayed(task);
    struct thread *thread = thread_of(task, asleep && !only_chosen);

    if (!thread)
        return 0;
    asleep = asleep && !is_moving_itself(task, thread->left.syscall);
    if (!is_move_noted(&thread->away, asleep))
        return 0;
    thread->away.moves++;
    note_move(&thread->away, asleep, bpf_ktime_get_ns());
    return 0;
}

/* Runs over all threads when a stream begins: marks those that the kernel moved while they sleep,
 * and makes room for all where that cannot be done at their switches. */
SEC("prcb_iter/task")
int prcb_record_threads(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread *thread;
    bool moved;

    if (!task || !task->pid)
        return 0;
    moved = has_moved_asleep(task, task->__state);
    if (!moved && (makes_anywhere || only_chosen))
        return 0;
    thread = thread_of(task, !only_chosen);
    if (thread && moved)
        note_move(&thread->away, true, 0);
    return 0;
}

/* The threads that a chosen one starts are chosen. Either this sees that the creator is, or
 * prcb_choose, which comes to the creator first, sees the new one on the kernel's lists: on both
 * sides an exchange orders the store before the load. */
static __always_inline void follow(struct task_struct *child)
{
    struct thread *parent = thread_of(bpf_get_current_task_btf(), false);
    struct thread *thread = NULL;

    if (parent && __sync_fetch_and_or(&parent->chosen, 0))
        thread = thread_of(child, true);
    if (thread)
        thread->chosen = 1;
}

/* This is attached where there is no room made at switches, and where threads are chosen. */
SEC("prcb_tp/task_newtask")
int prcb_record_newtask(__u64 *ctx)
{
    if (only_chosen)
        follow((void *)ctx[0]);
    else
        thread_of((void *)ctx[0], true);
    return 0;
}

/* Runs until it has nothing to add: what was started meanwhile by a thread that it had not come to
 * is found by its next run. */
SEC("prcb_iter/task")
int prcb_choose(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct thread *thread;

    if (!task || !task->pid || (choice.pid ? task->tgid != choice.pid : task->pid != choice.tid) ||
        NUMBER(task_struct, task, exit_state))
        return 0;
    thread = thread_of(task, true);
    if (!thread) {
        choice.failed++;
        return 0;
    }
    choice.found++;
    choice.added += !__sync_lock_test_and_set(&thread->chosen, 1);
    return 0;
}
