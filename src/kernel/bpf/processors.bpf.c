/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Keeps the processor blocks current: at each change between hard interrupt, softirq, idle and task
 * the stretch that ends is closed and written to the block of the processor it happens on.
 *
 * Who writes a block: the programs that run on its processor. Hard interrupts come with
 * interrupts off and are not interrupted; the programs at softirqs and idleness can be, in the
 * middle of an update. A program that finds the count odd is the interrupter, and leaves all but
 * nested_ns alone (processor_abi.h). While a processor is off line, the one that takes it down or
 * up writes to its block (prcb_cpu_gone, prcb_cpu_coming).
 *
 * What is not seen stays in the state around it: interrupts without a tracepoint (NMIs, machine
 * checks, some of hypervisors), the entry and exit code around a tracepoint.
 */
#include "kernel.bpf.h"
#include "processors.h"
#include "processor_abi.h"
#include "processor_map.bpf.h"
#include "seqcount_abi.h"

char LICENSE[] SEC("license")
= "Dual BSD/GPL";

const volatile struct prcb_processors_config config = {};
/* PRCB_PROCESSOR_* that depend on what CO-RE found; prcb_tell_processor_features fills it. */
__u32 kernel_features = 0;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_processor_thread);
} thread_map SEC(".maps");

/* These are the kernel's tick counters of a processor, in nanoseconds: kernel_cpustat. */
#define CPUTIME_USER_   0
#define CPUTIME_NICE_   1
#define CPUTIME_SYSTEM_ 2
#define CPUTIME_STEAL_  7
#define CPUTIMES        8

/* Holds a processor's own notes, which nobody else needs to see. */
struct own {
    __u64 base; /* where its per-processor variables begin, in the kernel's memory; 0: not known */
    struct prcb_interrupts interrupts; /* the kernel's counters, at the last look */
    __u64 first_switches;              /* at the start */
    __u64 cpustat[CPUTIMES];           /* at the last tick */
    __u64 nested_start;                /* of an interrupt of a program */
    __u32 nested_depth;
    __u32 pad;
    __s64 least_offset; /* of the window that is open */
    __u64 window_end;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct own);
} own_map SEC(".maps");

#define OFFSET_WINDOW_NS 1000000000ull
#define PWR_EVENT_EXIT   0xffffffffu
#define TIMER_SOFTIRQ_   1
#define SCHED_SOFTIRQ_   7
#define IRQF_TIMER_      0x200
#define IRQF_PERCPU_     0x400
#define ARCH_TIM_        0x6d69745f68637261ull /* the first bytes of "arch_timer" */

static __always_inline struct prcb_processor_block *block_of(__u32 processor)
{
    __u32 key = processor + 1;

    return bpf_map_lookup_elem(&processor_map, &key);
}

static __always_inline void note_thread(__u32 processor, __u32 tid, __u64 since)
{
    struct prcb_processor_thread *thread = bpf_map_lookup_elem(&thread_map, &processor);

    if (!thread)
        return;
    thread->tid = tid;
    thread->since = since;
}

static __always_inline struct own *own_of(__u32 processor)
{
    return bpf_map_lookup_elem(&own_map, &processor);
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
    return a < b ? a : b;
}

static __always_inline __u64 growth(__u64 now, __u64 before)
{
    return now > before ? now - before : 0;
}

/* ---- the kernel's own figures ---- */

static __always_inline bool read_own(struct own *own, __u64 offset, void *ret, __u32 bytes)
{
    return own->base && offset != PRCB_NO_OFFSET &&
           !bpf_probe_read_kernel(ret, bytes, (const void *)(own->base + offset));
}

/* Reads the interrupts since boot: those that have a number, and those that have a vector. */
static __always_inline bool read_interrupts(struct own *own, struct prcb_interrupts *ret)
{
    __u32 words[PRCB_IRQ_STAT_WORDS], sum = 0;
    unsigned long numbered;
    int i;

    if (!read_own(own, config.irqs_sum, &numbered, sizeof(numbered)))
        return false;
    if (config.irq_stat_words) {
        if (!read_own(own, config.irq_stat, words, sizeof(words)))
            return false;
            /* The mask is known when the program is loaded: what is not counted costs nothing. */
#pragma unroll
        for (i = 0; i < PRCB_IRQ_STAT_WORDS; i++) {
            if (config.irq_stat_words & (1u << i))
                sum += words[i];
        }
    }
    ret->numbered = numbered;
    ret->vectors = sum;
    return true;
}

/* Under seq. */
static __always_inline void take_interrupts(struct prcb_processor_block *block, struct own *own,
                                            const struct prcb_interrupts *now)
{
    block->interrupts += prcb_interrupts_grown(&own->interrupts, now);
    own->interrupts = *now;
}

/* ---- stretches ---- */

static __always_inline void add_idle(struct prcb_processor_block *block, __u64 ns)
{
    __u64 state = block->idle_state;

    block->idle_ns += ns;
    __asm__ volatile("" : "+r"(state)); /* checked and used in one register, for the verifier */
    if (state < PRCB_PROCESSOR_IDLE_STATES)
        block->idle[state].ns += ns;
}

/* Files the present stretch under the state that ends now. */
static __always_inline void close_stretch(struct prcb_processor_block *block, __u64 now)
{
    __u64 elapsed = growth(now, block->stamp);
    __u64 pending = least(*(volatile __u64 *)&block->nested_ns - block->folded_ns, elapsed);
    __u64 ns = elapsed - pending;

    block->folded_ns += pending;
    block->interrupt_ns += pending;
    block->stamp += elapsed;
    if (block->hard_depth)
        block->interrupt_ns += ns;
    else if (block->beneath & PRCB_PROCESSOR_IN_SOFT)
        block->dpc_ns += ns;
    else if (block->beneath & PRCB_PROCESSOR_IN_IDLE)
        add_idle(block, ns);
    else
        block->busy_ns += ns;
}

/* The tick rule: what tasks ran since the last tick that hit one is theirs or the kernel's as the
 * kernel's tick counters moved, and the hypervisor's as far as it took it. A tick that hit
 * an interrupt or idleness says nothing about tasks: their time waits for one that does. */
static __always_inline void share_out(struct prcb_processor_block *block, struct own *own,
                                      const __u64 *cpustat)
{
    __u64 user = growth(cpustat[CPUTIME_USER_], own->cpustat[CPUTIME_USER_]) +
                 growth(cpustat[CPUTIME_NICE_], own->cpustat[CPUTIME_NICE_]);
    __u64 kernel = growth(cpustat[CPUTIME_SYSTEM_], own->cpustat[CPUTIME_SYSTEM_]);
    __u64 steal =
        least(growth(cpustat[CPUTIME_STEAL_], own->cpustat[CPUTIME_STEAL_]), block->busy_ns);
    __u64 busy = block->busy_ns - steal, part = busy, total;

    block->steal_ns += steal;
    block->busy_ns = busy;
    if (!user && !kernel)
        return;
    if (kernel)
        part = user ? busy / 1024 * (1024 * user / (user + kernel)) : 0;
    block->user_ns += part;
    block->kernel_ns += busy - part;
    block->busy_ns = 0;
    total = (block->user_ns + block->kernel_ns) >> 16;
    block->user_share = total ? least(block->user_ns / total, 65536) : 0;
}

/* The least difference of the clocks in a window is the truest: the run queue's lags by how long
 * ago the kernel brought it up to date. */
static __always_inline void sample_offset(struct prcb_processor_block *block, struct own *own,
                                          __u64 now)
{
    __s64 offset;
    __u64 clock;

    if (!has_rq_clock() ||
        !read_own(own, config.runqueues + bpf_core_field_offset(struct rq, clock), &clock,
                  sizeof(clock)))
        return;
    offset = (__s64)(now - clock);
    if (now >= own->window_end) {
        if (own->window_end)
            block->clock_offset = own->least_offset;
        own->window_end = now + OFFSET_WINDOW_NS;
        own->least_offset = offset;
    }
    if (offset < own->least_offset)
        own->least_offset = offset;
    if (offset < block->clock_offset)
        block->clock_offset = offset;
}

static __always_inline bool read_cpustat(struct own *own, __u64 *ret)
{
    return read_own(own, config.cpustat, ret, CPUTIMES * sizeof(*ret));
}

/* Brings up to date what moves with the kernel's tick. Under seq, all closed up to now. */
static __always_inline void take_tick(struct prcb_processor_block *block, struct own *own,
                                      __u64 now)
{
    __u64 cpustat[CPUTIMES];
    int i;

    if (read_cpustat(own, cpustat)) {
        share_out(block, own, cpustat);
#pragma unroll
        for (i = 0; i < CPUTIMES; i++)
            own->cpustat[i] = cpustat[i];
    }
    sample_offset(block, own, now);
}

/* ---- hard interrupts ---- */

/* irq: for prcb_processor_block.irq. It is stored before the count is looked at: that a program was
 * interrupted in the middle of an update shows by the odd count, and by what by this. */
static __always_inline int enter_hard(__u32 irq)
{
    __u32 processor = bpf_get_smp_processor_id(), seq;
    struct prcb_processor_block *block = block_of(processor);
    struct own *own;
    __u64 now;

    if (!block || block->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    *(volatile __u32 *)&block->irq = irq;
    seq = *(volatile __u32 *)&block->seq;
    now = bpf_ktime_get_ns();
    if (seq & 1) {
        own = own_of(processor);
        if (own && !own->nested_depth++)
            own->nested_start = now;
        return 0;
    }
    prcb_seq_begin(&block->seq, seq);
    close_stretch(block, now);
    block->hard_depth++;
    prcb_seq_end(&block->seq, seq);
    return 0;
}

static __always_inline void leave_nested(struct prcb_processor_block *block, struct own *own)
{
    if (own->nested_depth && !--own->nested_depth)
        *(volatile __u64 *)&block->nested_ns += growth(bpf_ktime_get_ns(), own->nested_start);
}

/* The kernel has counted the interrupt by now. */
static __always_inline int leave_hard(bool tick)
{
    __u32 processor = bpf_get_smp_processor_id(), seq;
    struct prcb_processor_block *block = block_of(processor);
    struct own *own = own_of(processor);
    struct prcb_interrupts interrupts = {0};
    __u64 now;
    bool counted;

    if (!block || !own || block->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    seq = *(volatile __u32 *)&block->seq;
    if (seq & 1) {
        leave_nested(block, own);
        return 0;
    }
    counted = read_interrupts(own, &interrupts);
    now = bpf_ktime_get_ns();
    prcb_seq_begin(&block->seq, seq);
    close_stretch(block, now);
    if (block->hard_depth)
        block->hard_depth--;
    if (counted)
        take_interrupts(block, own, &interrupts);
    if (tick)
        take_tick(block, own, now);
    prcb_seq_end(&block->seq, seq);
    return 0;
}

/* These four are attached to as many tracepoints as the kernel has: the table is in the loader.
 * Raw, for one program then serves several of different arguments. */
SEC("raw_tp")
int prcb_hard_entry(void *ctx)
{
    return enter_hard(PRCB_IRQ_VECTOR);
}

SEC("raw_tp")
int prcb_tick_entry(void *ctx)
{
    return enter_hard(PRCB_IRQ_TICK);
}

SEC("raw_tp")
int prcb_hard_exit(void *ctx)
{
    return leave_hard(false);
}

SEC("raw_tp")
int prcb_tick_exit(void *ctx)
{
    return leave_hard(true);
}

/* Tells whether the action is the timer's; arm64's, of each processor, does not say so by its
 * flags. */
static __always_inline bool is_timer(struct irqaction *action)
{
    __u32 flags = action ? NUMBER(irqaction, action, flags) : 0;
    __u64 name = 0;

    if (flags & IRQF_TIMER_)
        return true;
    if (!(flags & IRQF_PERCPU_) || !HAS(irqaction, name))
        return false;
    bpf_probe_read_kernel(&name, sizeof(name), action->name);
    return name == ARCH_TIM_;
}

SEC("prcb_tp/irq_handler_entry")
int prcb_handler_entry(__u64 *ctx)
{
    struct irqaction *action = (void *)ctx[1];

    return enter_hard(is_timer(action) ? PRCB_IRQ_TICK : (__u32)ctx[0]);
}

/* This is the end of a device's handler, or of the timer's where that has an interrupt number
 * (arm64). */
SEC("prcb_tp/irq_handler_exit")
int prcb_handler_exit(__u64 *ctx)
{
    struct irqaction *action = (void *)ctx[1];

    return leave_hard(is_timer(action));
}

/* ---- softirqs ---- */

SEC("prcb_tp/softirq_entry")
int prcb_soft_entry(__u64 *ctx)
{
    struct prcb_processor_block *block = block_of(bpf_get_smp_processor_id());
    __u32 seq;
    __u64 now;

    if (!block || block->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    *(volatile __u32 *)&block->soft_vector = ctx[0];
    seq = *(volatile __u32 *)&block->seq;
    if (seq & 1)
        return 0;
    seq = prcb_seq_begin_shared(&block->seq);
    now = bpf_ktime_get_ns();
    close_stretch(block, now);
    block->hard_depth = 0;
    block->beneath |= PRCB_PROCESSOR_IN_SOFT;
    block->dpcs++;
    prcb_seq_end(&block->seq, seq);
    return 0;
}

SEC("prcb_tp/softirq_exit")
int prcb_soft_exit(__u64 *ctx)
{
    __u32 processor = bpf_get_smp_processor_id(), seq, vector = ctx[0];
    struct prcb_processor_block *block = block_of(processor);
    struct own *own = own_of(processor);
    __u64 now;

    if (!block || !own || block->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    seq = *(volatile __u32 *)&block->seq;
    if (seq & 1)
        return 0;
    seq = prcb_seq_begin_shared(&block->seq);
    now = bpf_ktime_get_ns();
    close_stretch(block, now);
    block->beneath &= ~PRCB_PROCESSOR_IN_SOFT;
    /* The tick raises these: it is looked at again where its own interrupt has no tracepoint. */
    if (vector == TIMER_SOFTIRQ_ || vector == SCHED_SOFTIRQ_)
        take_tick(block, own, now);
    prcb_seq_end(&block->seq, seq);
    return 0;
}

/* ---- starting ---- */

/* Starts a processor that has not been seen yet; current runs on it from here on. */
static __always_inline void start(__u32 processor, struct prcb_processor_block *block,
                                  struct own *own, struct task_struct *current)
{
    struct prcb_interrupts interrupts = {0};
    __u64 cpustat[CPUTIMES];
    __u32 seq = block->seq & ~1u;
    int i;

    if (has_rq() && config.runqueues != PRCB_NO_OFFSET)
        own->base = (__u64)BPF_CORE_READ(current, se.cfs_rq, rq) - config.runqueues;
    if (has_rq_switches())
        own->first_switches = BPF_CORE_READ(current, se.cfs_rq, rq, nr_switches);
    if (read_interrupts(own, &interrupts))
        own->interrupts = interrupts;
    if (read_cpustat(own, cpustat)) {
#pragma unroll
        for (i = 0; i < CPUTIMES; i++)
            own->cpustat[i] = cpustat[i];
    }
    prcb_seq_begin(&block->seq, seq);
    block->started = block->stamp = bpf_ktime_get_ns();
    block->clock_offset = has_rq_clock() ? PRCB_OFFSET_UNKNOWN : 0;
    note_thread(processor, current->pid,
                has_rq_clock() ? BPF_CORE_READ(current, se.cfs_rq, rq, clock) : block->stamp);
    /* An idle one is asleep, or about to be, and says so when it wakes up. */
    block->beneath = current->pid ? 0 : PRCB_PROCESSOR_IN_IDLE;
    block->idle_state = PRCB_IDLE_STATE_UNKNOWN;
    block->state = PRCB_PROCESSOR_ONLINE;
    prcb_seq_end(&block->seq, seq);
}

/* Does what prcb_tell_features of the accounts does. */
SEC("syscall")
int prcb_tell_processor_features(void *unused)
{
    if (has_rq_clock())
        kernel_features |= PRCB_PROCESSOR_RQ_CLOCK;
    if (has_rq_switches())
        kernel_features |= PRCB_PROCESSOR_SWITCHES;
    return 0;
}

/* This is run on each processor once all else is attached. */
SEC("raw_tp")
int prcb_start(void *ctx)
{
    __u32 processor = bpf_get_smp_processor_id();
    struct prcb_processor_block *block = block_of(processor);
    struct own *own = own_of(processor);

    if (block && own && block->state == PRCB_PROCESSOR_UNSEEN)
        start(processor, block, own, bpf_get_current_task_btf());
    return 0;
}

/* ---- idle ---- */

static __always_inline void go_idle(struct prcb_processor_block *block, __u32 state)
{
    __u64 index = state;

    block->hard_depth = 0;
    block->beneath = PRCB_PROCESSOR_IN_IDLE;
    block->idle_state = state;
    block->idle_entries++;
    __asm__ volatile("" : "+r"(index)); /* see add_idle */
    if (index < PRCB_PROCESSOR_IDLE_STATES)
        block->idle[index].entries++;
}

SEC("prcb_tp/cpu_idle")
int prcb_idle(__u64 *ctx)
{
    __u32 processor = bpf_get_smp_processor_id(), state = ctx[0], seq;
    struct prcb_processor_block *block = block_of(processor);
    struct own *own = own_of(processor);
    struct prcb_interrupts interrupts = {0};
    bool counted = false;

    if (!block || !own)
        return 0;
    /* It came on line, and nobody said so. It is started where it falls asleep, for interrupts
     * are off there: as an interrupt prcb_start may come. */
    if (block->state == PRCB_PROCESSOR_UNSEEN && state != PWR_EVENT_EXIT)
        start(processor, block, own, bpf_get_current_task_btf());
    if (block->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    seq = *(volatile __u32 *)&block->seq;
    if (seq & 1)
        return 0;
    /* Those without a tracepoint would otherwise stay unseen for as long as it sleeps. */
    if (state != PWR_EVENT_EXIT)
        counted = read_interrupts(own, &interrupts);
    /* Interrupts are off where it falls asleep, and on where it wakes up before 6.3. */
    seq = prcb_seq_begin_shared(&block->seq);
    close_stretch(block, bpf_ktime_get_ns());
    if (state == PWR_EVENT_EXIT)
        block->beneath &= ~PRCB_PROCESSOR_IN_IDLE;
    else
        go_idle(block, state);
    if (counted)
        take_interrupts(block, own, &interrupts);
    prcb_seq_end(&block->seq, seq);
    return 0;
}

/* ---- switches ---- */

static __always_inline void note_switch(__u32 processor, struct prcb_processor_block *block,
                                        struct own *own, struct task_struct *prev,
                                        struct task_struct *next)
{
    block->seen++;
    note_thread(processor, next->pid,
                has_rq_clock() ? plain(prev)->se.cfs_rq->rq->clock : bpf_ktime_get_ns());
    block->switches = has_rq_switches()
                          ? plain(prev)->se.cfs_rq->rq->nr_switches - own->first_switches
                          : block->seen;
}

SEC("prcb_tp/sched_switch")
int prcb_processor_switch(__u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
    __u32 processor = bpf_get_smp_processor_id(), seq;
    struct prcb_processor_block *block = block_of(processor);
    struct own *own = own_of(processor);

    if (!block || !own)
        return 0;
    if (block->state != PRCB_PROCESSOR_ONLINE) {
        /* It came on line, and nobody said so. */
        if (block->state == PRCB_PROCESSOR_UNSEEN)
            start(processor, block, own, next);
        return 0;
    }
    seq = block->seq;
    prcb_seq_begin(&block->seq, seq);
    /* Neither interrupts nor idleness are switched away from: an end was not reported. Softirqs
     * are, where the kernel is PREEMPT_RT: what is left of one is the task's. */
    if (block->hard_depth || block->beneath) {
        close_stretch(block, bpf_ktime_get_ns());
        block->hard_depth = 0;
        block->beneath = 0;
    }
    note_switch(processor, block, own, prev, next);
    prcb_seq_end(&block->seq, seq);
    return 0;
}

/* ---- hotplug ---- */

/* These are relocated: their values differ between kernels. */
enum cpuhp_state { CPUHP_BRINGUP_CPU, CPUHP_TEARDOWN_CPU };

static __always_inline int go_offline(__u32 processor)
{
    struct prcb_processor_block *block = block_of(processor);
    __u32 seq;

    if (!block || block->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    seq = block->seq & ~1u;
    prcb_seq_begin(&block->seq, seq);
    close_stretch(block, bpf_ktime_get_ns());
    block->hard_depth = 0;
    block->beneath = 0;
    note_thread(processor, 0, 0);
    block->state = PRCB_PROCESSOR_OFFLINE;
    prcb_seq_end(&block->seq, seq);
    return 0;
}

/* The programs are going: readers are told, who cannot see it from the blocks. */
SEC("syscall")
int prcb_processors_end(void *unused)
{
    __u32 zero = 0;
    struct prcb_processor_head *head = bpf_map_lookup_elem(&processor_map, &zero);

    if (!head)
        return 1;
    /* Readers load it relaxed: a block that is copied before the store is as good as one before
     * the programs went. */
    *(volatile __u64 *)&head->ended = bpf_ktime_get_ns();
    return 0;
}

/* The processor is dead when this step has been taken, without an error. */
SEC("prcb_tp/cpuhp_exit")
int prcb_cpu_gone(__u64 *ctx)
{
    __u32 step = ctx[2];
    int error = (int)ctx[3];

    if (step == bpf_core_enum_value(enum cpuhp_state, CPUHP_TEARDOWN_CPU) && !error)
        return go_offline(ctx[0]);
    /* It did not come up. */
    if (step == bpf_core_enum_value(enum cpuhp_state, CPUHP_BRINGUP_CPU) && error)
        return go_offline(ctx[0]);
    return 0;
}

/* This is the step before its first instruction. The same is passed on the way down, to a lower
 * target. */
SEC("prcb_tp/cpuhp_enter")
int prcb_cpu_coming(__u64 *ctx)
{
    struct prcb_processor_block *block = block_of(ctx[0]);
    __u64 now = bpf_ktime_get_ns();
    __u32 target = ctx[1], step = ctx[2], seq;

    if (target < step || step != bpf_core_enum_value(enum cpuhp_state, CPUHP_BRINGUP_CPU) ||
        !block || block->state != PRCB_PROCESSOR_OFFLINE)
        return 0;
    seq = block->seq & ~1u;
    prcb_seq_begin(&block->seq, seq);
    block->offline_ns += growth(now, block->stamp);
    block->stamp = now > block->stamp ? now : block->stamp;
    block->state = PRCB_PROCESSOR_ONLINE;
    prcb_seq_end(&block->seq, seq);
    return 0;
}
