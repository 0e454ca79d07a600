/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The daemon and the bpf tier of the processors: makes records of the blocks, whoever loaded the
 * programs that write them.
 */
#include "processor_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "client_programs.h"
#include "pid_ns.h"
#include "processors_view.h"

/* ---- records ---- */

static void say_what_lacks(struct prcb_processors *v)
{
    if (!(v->map->features & PRCB_PROCESSOR_INTERRUPTS))
        processors_lack(v, PRCB_CPU_HAS_INTERRUPTS,
                        "the kernel's BTF does not tell where its interrupt counters are");
    if (!(v->map->features & PRCB_PROCESSOR_SWITCHES))
        processors_lack(v, PRCB_CPU_HAS_MISSED,
                        "the kernel has no rq.nr_switches as it is read here");
    if (!v->map->threads)
        processors_lack(v, PRCB_CPU_HAS_THREAD | PRCB_CPU_HAS_RUNNING,
                        "prcbd tells which thread runs only to users who may profile all threads "
                        "(profile_all in prcbd.conf)");
    else if (!v->threads_have_numbers)
        processors_lack(v, PRCB_CPU_HAS_THREAD,
                        "threads are known by their numbers in the first pid namespace, and this "
                        "process is in another");
}

static int make_map(struct prcb_processors *v, struct prcb_error *err)
{
    v->map = calloc(1, sizeof(*v->map));
    if (!v->map)
        return prcb_fail(err, -ENOMEM, "out of memory");
    v->threads_have_numbers = in_first_pid_ns();
    return 0;
}

static void close_map(struct prcb_processors *v)
{
    if (v->map)
        processor_map_close(v->map);
    free(v->map);
    v->map = NULL;
}

static void daemon_close(struct prcb_processors *v)
{
    close_map(v);
    free(v->missed);
    v->missed = NULL;
}

static int daemon_open(struct prcb_processors *v, struct prcb_error *err)
{
    int fd, threads, result = make_map(v, err);

    if (result)
        return result;
    fd = client_processors_map(&threads, err);
    if (fd < 0)
        return fd;
    result = processor_map_open(fd, v->map, err);
    close(fd);
    if (threads >= 0) {
        if (!result)
            result = processor_map_add_threads(v->map, threads, err);
        close(threads);
    }
    if (!result && v->map->count < v->count)
        result = prcb_fail(err, -EPROTO, "prcbd has blocks of %u processors, this machine has %u",
                           v->map->count, v->count);
    if (!result && !(v->missed = calloc(1, sizeof(*v->missed))))
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (result)
        return result;
    client_ask_processor_programs(v->missed); /* they count from here on */
    say_what_lacks(v);
    return 0;
}

#ifdef PRCB_HAVE_BPF
static int bpf_open(struct prcb_processors *v, struct prcb_error *err)
{
    int result = make_map(v, err);

    if (!result)
        result = processor_programs_open(v->count, true, &v->programs, v->map, err);
    if (!result)
        say_what_lacks(v);
    return result;
}

static void bpf_close(struct prcb_processors *v)
{
    close_map(v);
    processor_programs_close(v->programs);
    v->programs = NULL;
}
#endif

/* Never before a moment that was answered for, and never after the programs were stopped. */
static uint64_t bpf_now(struct prcb_processors *v)
{
    bool fresh = false;
    uint64_t now = clock_now(&v->clock, &v->clock_base, &fresh),
             ended = processor_map_ended(v->map);

    if (ended && now > ended)
        now = ended;
    if (now < v->last_now)
        now = v->last_now;
    v->last_now = now;
    return now;
}

static uint32_t flags_of(const struct prcb_processors *v, const struct prcb_processor_block *copy)
{
    uint32_t online = copy->state == PRCB_PROCESSOR_ONLINE ? PRCB_CPU_ONLINE : 0;

    if (processor_map_ended(v->map))
        return online | PRCB_CPU_ORPHAN;
    if (!online)
        return 0;
    return PRCB_CPU_ONLINE |
           (!copy->hard_depth && copy->beneath == PRCB_PROCESSOR_IN_IDLE ? PRCB_CPU_IDLE : 0);
}

static int bpf_times(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *ret,
                     enum part *live, uint32_t *flags)
{
    struct prcb_processor_block copy;
    uint32_t retries = 0;
    int result = processor_block_copy(v->map, number, PROCESSOR_TIMES_BYTES, &copy, &retries);

    if (result)
        return result;
    processor_block_times(&copy, now, ret, live);
    *flags = flags_of(v, &copy);
    return 0;
}

/* Names are cpuidle's. Without it the kernel has one way to be idle, which its tracepoint calls 1,
 * and 0 when it was told to poll. */
static void idle_states(const struct prcb_processor_block *copy, const struct cpu_sysfs *sysfs,
                        uint64_t live, struct prcb_processor *ret)
{
    uint32_t count = sysfs->idle_state_count, state = copy->idle_state;

    for (uint32_t i = 0; i < PRCB_PROCESSOR_IDLE_STATES; i++) {
        uint32_t to = count ? i : 0;

        ret->idle_states[to].entries += copy->idle[i].entries;
        ret->idle_states[to].residency_ns += copy->idle[i].ns + (i == state ? live : 0);
    }
    for (uint32_t i = 0; i < count; i++)
        memcpy(ret->idle_states[i].name, sysfs->idle_states[i].name, CPU_FILES_NAME);
    if (!count)
        memcpy(ret->idle_states[0].name, "idle", 5);
    ret->idle_state_count = count ? count : 1;
    if (ret->flags & PRCB_CPU_IDLE && state != PRCB_IDLE_STATE_UNKNOWN) {
        ret->idle_state = count ? state : 0;
        ret->present |= PRCB_CPU_HAS_IDLE_STATE;
    }
}

static void thread_of(const struct prcb_processors *v, const struct prcb_processor_block *copy,
                      const struct prcb_processor_thread *thread, uint64_t now,
                      struct prcb_processor *ret)
{
    uint64_t since = thread->since + (uint64_t)copy->clock_offset;

    if (copy->state != PRCB_PROCESSOR_ONLINE || ret->flags & PRCB_CPU_ORPHAN || !v->map->threads)
        return;
    ret->tid = thread->tid;
    /* The idle task has the same number everywhere. */
    if (v->threads_have_numbers || !thread->tid)
        ret->present |= PRCB_CPU_HAS_THREAD;
    if (copy->clock_offset == PRCB_OFFSET_UNKNOWN)
        return;
    ret->running_ns = now > since ? now - since : 0;
    ret->present |= PRCB_CPU_HAS_RUNNING;
}

static int bpf_record(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *parts,
                      enum part *live, struct prcb_processor *ret)
{
    struct prcb_processor_thread thread = {0};
    struct prcb_processor_block copy;
    int result = processor_block_copy_with_thread(v->map, number, &copy, &thread, &ret->retries);

    if (result)
        return result;
    processor_block_times(&copy, now, parts, live);
    ret->flags = flags_of(v, &copy);
    ret->present = PRCB_CPU_HAS_TIMES | PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT |
                   PRCB_CPU_HAS_STEAL | PRCB_CPU_HAS_DPCS | PRCB_CPU_HAS_SWITCHES |
                   PRCB_CPU_HAS_IDLE_ENTRIES | PRCB_CPU_HAS_IDLE_STATES;
    if (v->map->features & PRCB_PROCESSOR_SWITCHES)
        ret->present |= PRCB_CPU_HAS_MISSED;
    if (v->map->features & PRCB_PROCESSOR_INTERRUPTS)
        ret->present |= PRCB_CPU_HAS_INTERRUPTS;
    ret->interrupts = copy.interrupts;
    ret->dpcs = copy.dpcs;
    ret->switches = copy.switches;
    ret->missed_switches = copy.switches > copy.seen ? copy.switches - copy.seen : 0;
    ret->idle_entries = copy.idle_entries;
    idle_states(&copy, &v->slots[number].facts.sysfs,
                *live == PART_IDLE ? parts->ns[PART_IDLE] - copy.idle_ns : 0, ret);
    thread_of(v, &copy, &thread, now, ret);
    return 0;
}

/* The blocks are always current. */
static int bpf_refresh(struct prcb_processors *v, struct prcb_error *err)
{
    return 0;
}

const struct processor_source processors_from_daemon = {
    .number = PRCB_TIER_DAEMON,
    .open = daemon_open,
    .close = daemon_close,
    .now = bpf_now,
    .times = bpf_times,
    .record = bpf_record,
    .refresh = bpf_refresh,
};

#ifdef PRCB_HAVE_BPF
const struct processor_source processors_from_bpf = {
    .number = PRCB_TIER_BPF,
    .open = bpf_open,
    .close = bpf_close,
    .now = bpf_now,
    .times = bpf_times,
    .record = bpf_record,
    .refresh = bpf_refresh,
};

int processors_programs_map(const struct prcb_processors *view)
{
    return view->programs ? processor_programs_map_fd(view->programs) : -1;
}
#endif
