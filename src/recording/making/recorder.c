/* SPDX-License-Identifier: BSD-2-Clause */
#include "recorder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_source.h"
#include "caused.h"
#include "error.h"
#include "facts.h"
#include "first_line.h"
#include "found.h"
#include "now.h"
#include "pid_ns.h"
#include "ran.h"
#include "resolve.h"
#include "rings.h"
#include "schema.h"
#include "text.h"
#include "waits.h"
#include "wakers.h"
#include "world.h"
#include "writer.h"

#define NS_PER_S     1000000000ull
#define PASS_MIN_MS  5
#define DEFAULT_HZ   1000 /* samples a second */
#define PASS_MAX_MS  100
#define FULL_HIGH    25    /* percent of a ring: read it more often */
#define FULL_LOW     5     /* and less often */
#define CLOCK_NS_MIN 10000 /* the kernel's, for its clock events */
#define DEPTH_MAX    256   /* frames of a stack that are kept */

struct recorder {
    struct recorder_options options;
    struct rings *rings;
    struct bpf_source *bpf;                              /* NULL: not used */
    char reason[sizeof(((struct prcb_error *)0)->text)]; /* why not */
    char no_waits[sizeof(((struct prcb_error *)0)->text)];
    char log[4096];
    char no_wakers[sizeof(((struct prcb_error *)0)->text)];
    uint64_t lost_samples, lost_switches; /* by it, so far */
    struct prcb_processors *processors;
    struct waits *waits;   /* NULL: none may be had, or switches are left out */
    struct ran *ran;       /* NULL: stacks of samples are those of frame pointers */
    bool chooses;          /* threads are chosen: what is told of others is left out */
    bool by_prcbd;         /* switches come from the session */
    struct wakers *wakers; /* NULL: they are not recorded */
    struct writer *writer;
    struct world *world;
    struct recorder_progress progress;
    uint64_t start_ns, end_ns; /* of what is recorded */
    uint64_t last_times;       /* of the processors, that were written */
    int pass_ms;
    bool nested; /* in a pid namespace other than the first */
    bool started;
};

/* For a clock the kernel would accept a faster rate but tick more slowly, and each sample would
 * stand for more time than it says. */
static int check_rate(struct rings_options *how, struct prcb_error *err)
{
    uint64_t max = 0;

    first_number("/proc/sys/kernel/perf_event_max_sample_rate", &max);
    if (!how->rate) {
        how->frequency = true;
        how->rate = max && max < DEFAULT_HZ ? max : DEFAULT_HZ;
    }
    if (how->frequency && max && how->rate > max)
        return prcb_fail(err, -ERANGE,
                         "%llu samples a second are more than the %llu that "
                         "kernel.perf_event_max_sample_rate allows",
                         (unsigned long long)how->rate, (unsigned long long)max);
    if (!how->frequency && strstr(how->event, "-clock") && how->rate < CLOCK_NS_MIN)
        return prcb_fail(err, -ERANGE, "a period of %llu ns: clocks tick each %d ns at most",
                         (unsigned long long)how->rate, CLOCK_NS_MIN);
    return 0;
}

/* A recording goes without wakers if they are not available. */
static int open_source(struct recorder *r, const struct rings_options *how, bool samples,
                       struct prcb_error *err)
{
    const struct prcb_processors *wakers = r->options.wakers ? r->processors : NULL;
    bool chooses = !r->options.all && bpf_source_can_choose(how);
    struct prcb_error why = {0};
    int result = bpf_source_open(how, samples, chooses, wakers, &r->bpf, &why);

    r->chooses = chooses;
    if (result && wakers && !bpf_source_open(how, samples, chooses, NULL, &r->bpf, NULL)) {
        r->options.wakers = false;
        snprintf(r->no_wakers, sizeof(r->no_wakers), "%s", why.text);
        r->progress.no_wakers = r->no_wakers;
        return 0;
    }
    if (result && err)
        *err = why;
    return result;
}

/* Opens the better source if that is allowed; the rings then need not deliver what it delivers. */
static int open_bpf(struct recorder *r, struct rings_options *how, struct prcb_error *err)
{
    struct prcb_error why;
    bool samples = bpf_source_can_sample(how);
    int result;

    if (r->options.tier == PRCB_TIER_BPF && !samples)
        return prcb_fail(err, -EOPNOTSUPP, "--tier bpf: %s come through the perf ring only",
                         how->stacks ? "samples with stacks (-g)"
                                     : "samples of other events than clocks at a frequency (-F)");
    if (r->options.tier == PRCB_TIER_PERF || r->options.tier == PRCB_TIER_DAEMON ||
        (!samples && !how->switches))
        return 0;
    result = open_source(r, how, samples, &why);
    if (result && r->options.tier == PRCB_TIER_BPF) {
        if (err)
            *err = why;
        return result;
    }
    if (result) {
        r->chooses = false;
        snprintf(r->reason, sizeof(r->reason), "%s", why.text);
        r->progress.reason = r->reason;
        return 0;
    }
    if (samples) {
        how->samples = false;
        r->progress.source = "eBPF";
    }
    if (how->switches) {
        how->switches = false;
        r->progress.switching = "eBPF";
    }
    return 0;
}

static bool is_command(const struct recorder_options *options)
{
    return !options->all && !options->pid_count && !options->thread_count;
}

/* A command has no threads that waited before. Without this session it is only unknown what they
 * did. If this process may not load programs, prcbd may keep records of the switches. */
static void open_waits(struct recorder *r)
{
    const struct waits_options how = {
        .tier = r->options.tier,
        .native = r->options.native,
        .spans = r->options.spans,
        .stacks = r->options.stacks,
        .samples = r->options.stack_bytes != 0,
        .switches = !r->bpf && r->options.tier != PRCB_TIER_PERF,
        .wakers = r->options.wakers,
    };
    bool command = is_command(&r->options);
    struct prcb_error why;

    if (!r->options.switches || (command && !how.stacks && !how.switches))
        return;
    if (waits_open(&how, &r->waits, &why)) {
        if (!how.stacks)
            return;
        snprintf(r->no_waits, sizeof(r->no_waits), "%s", why.text);
        r->progress.no_waits = r->no_waits;
    } else if (command && !how.stacks && !waits_has_switches(r->waits)) {
        waits_close(r->waits);
        r->waits = NULL;
    }
}

/* Keeps the log of the first program that was refused: opening the next one discards it. */
static void keep_log(struct recorder *r)
{
    const char *log = prcb_load_log();

    if (log && !*r->log)
        snprintf(r->log, sizeof(r->log), "%s", log);
    r->progress.load_log = *r->log ? r->log : NULL;
}

int recorder_open(const struct recorder_options *options, struct recorder **ret,
                  struct prcb_error *err)
{
    struct rings_options how = {
        .event = options->event,
        .frequency = options->frequency,
        .rate = options->rate,
        .samples = true,
        .stacks = options->stacks,
        .stack_bytes = options->stack_bytes,
        .switches = options->switches,
        .on_exec = is_command(options),
    };
    struct prcb_processors_options processors = {
        .size = sizeof(processors),
        .tier = options->tier,
    };
    struct recorder *r = calloc(1, sizeof(*r));
    int result;

    if (!r)
        return prcb_fail(err, -ENOMEM, "out of memory");
    r->options = *options;
    r->nested = !in_first_pid_ns();
    r->pass_ms = PASS_MAX_MS / 2;
    r->progress.source = "perf ring";
    r->progress.switching = options->switches ? "perf ring" : "none";
    result = check_rate(&how, err);
    r->options.frequency = how.frequency;
    r->options.rate = how.rate;
    if (!result)
        result = prcb_processors_open(&processors, &r->processors, err);
    keep_log(r);
    if (!result)
        result = open_bpf(r, &how, err);
    keep_log(r);
    if (!result)
        result = rings_open(&how, &r->rings, err);
    if (result) {
        recorder_close(r);
        return result;
    }
    open_waits(r);
    keep_log(r);
    if (options->stacks && options->stack_bytes)
        r->ran = ran_open(r->waits ? waits_session(r->waits) : NULL);
    r->progress.copies = r->ran;
    *ret = r;
    return 0;
}

void recorder_close(struct recorder *r)
{
    if (!r)
        return;
    rings_close(r->rings);
    bpf_source_close(r->bpf);
    ran_close(r->ran);
    waits_close(r->waits);
    world_close(r->world);
    wakers_close(r->wakers);
    prcb_processors_close(r->processors);
    writer_close(r->writer, NULL);
    free(r);
}

void recorder_look(const struct recorder *r, struct recorder_progress *ret)
{
    *ret = r->progress;
    if (r->writer)
        ret->bytes = writer_bytes(r->writer);
}

int recorder_program(struct recorder *r, uint32_t i, struct prcb_program *ret)
{
    struct prcb_program own = {.size = sizeof(own)};
    uint32_t count = 0;

    while (r->bpf && !bpf_source_program(r->bpf, count, &own)) {
        if (count++ < i)
            continue;
        *ret = own;
        return 0;
    }
    return r->waits ? waits_program(r->waits, i - count, ret) : -ENOENT;
}

/* ---- what comes ------------------------------------------------------------ */

/* Writes the frames of a chain, the outermost first. The kernel's marks, huge addresses, tell
 * where its own part ends. A caller's address is where the call returns to: the byte before it
 * belongs to the call. The user's part is unwound from the copy of the stack where that can be
 * done. *ret_missing as writer_sample has it. */
static int64_t stack_of(struct recorder *r, const struct ring_event *event,
                        const char **ret_missing)
{
    struct {
        uint64_t address;
        const struct prcb_frame *source; /* NULL: it has an address */
        bool kernel;
    } frames[DEPTH_MAX];
    uint64_t user[RAN_FRAMES];
    size_t user_count = 0;
    bool kernel = event->kernel;
    size_t count = 0;
    int64_t id = 0;

    *ret_missing = r->ran ? ran_unwind(r->ran, r->world, event, user, &user_count) : NULL;
    for (size_t i = 0; i < event->chain_count && count < DEPTH_MAX; i++) {
        uint64_t address = event->chain[i];

        if (address >= (uint64_t)PERF_CONTEXT_MAX) {
            kernel = address == (uint64_t)PERF_CONTEXT_KERNEL;
            continue;
        }
        if (!address || (user_count && !kernel))
            continue;
        frames[count].address = count ? address - 1 : address;
        frames[count].source = NULL;
        frames[count++].kernel = kernel;
    }
    for (size_t i = 0; i < user_count && count < DEPTH_MAX; i++) {
        frames[count].address = !i && count ? user[i] - 1 : user[i];
        frames[count].source = ring_frame(user[i]);
        frames[count++].kernel = false;
    }
    if (!count) {
        frames[0].address = event->ip;
        frames[0].source = NULL;
        frames[0].kernel = event->kernel;
        count = 1;
    }
    for (size_t i = count; i-- > 0;) {
        id = frames[i].source
                 ? world_source_frame(r->world, id, frames[i].source)
                 : world_frame(r->world, event->pid, id, frames[i].kernel, frames[i].address);
        if (!id)
            return 0;
    }
    return id;
}

static int on_sample(struct recorder *r, const struct ring_event *event)
{
    /* A command is sampled a moment before its exec is reported. The idle thread has no state:
     * its switches name nobody. */
    const char *state = event->tid > 0 ? "running" : NULL;
    int64_t thread = world_thread(r->world, event->pid, event->tid, event->time_ns, state);
    const char *missing = NULL;
    int64_t stack = thread ? stack_of(r, event, &missing) : 0;

    if (!stack)
        return -ENOMEM;
    r->progress.samples++;
    r->progress.complete += r->ran && !missing;
    return writer_sample(r->writer, event->time_ns, event->cpu, thread, stack, event->weight,
                         missing);
}

/* The idle thread counts as nobody. */
static int64_t thread_or_idle(struct recorder *r, int32_t pid, int32_t tid, uint64_t time_ns)
{
    return tid > 0 ? world_thread(r->world, pid, tid, time_ns, NULL) : 0;
}

static int on_switch(struct recorder *r, const struct ring_event *event)
{
    int64_t self = thread_or_idle(r, event->pid, event->tid, event->time_ns);
    int64_t other =
        event->both ? thread_or_idle(r, event->other_pid, event->other_tid, event->time_ns) : 0;
    struct writer_switch row = {
        .time_ns = event->time_ns,
        .cpu = event->cpu,
        .reason = -1,
        .ready_ns = -1,
        .pebs_index = -1,
        .woken_cpu = -1,
    };

    /* If a record has both sides, each switch is reported twice, by the thread that goes and by
     * the one that comes. */
    if (event->both && !event->out)
        return 0;
    row.old_thread = event->out ? self : other;
    row.new_thread = event->out ? other : self;
    if (event->out && self)
        row.state = event->preempted ? "ready" : "waiting";
    if (!row.old_thread && !row.new_thread)
        return 0;
    r->progress.switches++;
    return writer_switch(r->writer, &row);
}

static int on_caused(struct recorder *r, const struct prcb_switch *record)
{
    struct caused caused = {r->writer, r->world, r->wakers, r->options.all, 0};
    int result = caused_write(&caused, record);

    r->progress.switches += caused.switches;
    return result;
}

static int on_wait(struct recorder *r, const struct ring_event *event)
{
    struct writer_wait row = {
        .time_ns = event->time_ns,
        .thread = world_known_thread(r->world, event->pid, event->tid),
        .missing = event->missing,
        .kind = event->wait_kind,
        .word = event->word,
        .one_in = event->one_in,
    };
    char trace[33], span[17];

    if (!row.thread)
        return 0;
    if (event->has_span) {
        row.trace_id = text_hex(event->span.trace_id, sizeof(event->span.trace_id), trace);
        row.span_id = text_hex(event->span.span_id, sizeof(event->span.span_id), span);
    }
    for (size_t i = event->chain_count; i-- > 0;) {
        const struct prcb_frame *frame = ring_frame(event->chain[i]);

        row.stack = frame ? world_source_frame(r->world, row.stack, frame)
                          : world_frame(r->world, event->pid, row.stack, false, event->chain[i]);
        if (!row.stack)
            return -ENOMEM;
    }
    for (size_t i = event->kernel_count; i-- > 0;) {
        row.stack = world_kernel_frame(r->world, row.stack, event->kernel_names[i]);
        if (!row.stack)
            return -ENOMEM;
    }
    r->progress.wait_stacks += row.stack != 0;
    return writer_wait(r->writer, &row);
}

static int on_map(struct recorder *r, const struct ring_event *event)
{
    struct writer_map map = {
        .pid = event->pid,
        .time_ns = event->time_ns,
        .start = event->start,
        .length = event->length,
        .file_offset = event->file_offset,
        .file = event->file,
        .device = event->device,
        .inode = event->inode,
    };
    char build_id[2 * 20 + 1];

    if (event->pid < 0)
        return 0; /* the kernel's own, or of a process that is gone */
    if (event->build_id)
        map.build_id = text_hex(event->build_id,
                                event->build_id_size < 20 ? event->build_id_size : 20, build_id);
    return world_map(r->world, &map);
}

static int on_lost(struct recorder *r, const struct ring_event *event)
{
    r->progress.lost += event->lost;
    return writer_loss(r->writer, event->time_ns, event->cpu, "ring", event->lost);
}

/* If the recorder is in a pid namespace of its own, the ring of a processor still reports every
 * thread. Threads outside have the number 0, which the idle thread has as well: they are not
 * recorded. */
static bool is_outside(const struct recorder *r, const struct ring_event *event)
{
    return r->nested && event->tid <= 0 &&
           (event->kind == RING_SAMPLE || event->kind == RING_MAP || event->kind == RING_NAME ||
            event->kind == RING_FORK || event->kind == RING_EXIT);
}

/* Where threads are chosen, the rings tell of all there are what does not depend on samples. */
static bool is_of_others(const struct recorder *r, const struct ring_event *event)
{
    if (!r->chooses)
        return false;
    switch (event->kind) {
    case RING_MAP:
        return !world_knows_process(r->world, event->pid);
    case RING_NAME:
        return !world_known_thread(r->world, event->pid, event->tid) &&
               !(event->exec && world_knows_process(r->world, event->pid));
    case RING_FORK:
        return !world_known_thread(r->world, event->parent_pid, event->parent_tid);
    default:
        return false;
    }
}

static int on_event(const struct ring_event *event, void *ctx)
{
    struct recorder *r = ctx;

    bool within = event->time_ns >= r->start_ns && event->time_ns <= r->end_ns;

    if (is_outside(r, event) || is_of_others(r, event))
        return 0;
    /* Threads and maps are followed as long as any records come. */
    if (!within && (event->kind == RING_SAMPLE || event->kind == RING_SWITCH ||
                    event->kind == RING_CAUSED || event->kind == RING_WAIT))
        return 0;
    switch (event->kind) {
    case RING_SAMPLE:
        return on_sample(r, event);
    case RING_SWITCH:
        return on_switch(r, event);
    case RING_MAP:
        return on_map(r, event);
    case RING_NAME:
        return world_name(r->world, event->pid, event->tid, event->name, event->exec,
                          event->time_ns);
    case RING_FORK:
        return world_fork(r->world, event->parent_pid, event->parent_tid, event->pid, event->tid,
                          event->time_ns);
    case RING_EXIT:
        return world_exit(r->world, event->pid, event->tid, event->time_ns);
    case RING_LOST:
        return on_lost(r, event);
    case RING_CAUSED:
        return on_caused(r, event->caused);
    case RING_WAIT:
        return on_wait(r, event);
    case RING_RAN:
        if (r->ran)
            ran_note(r->ran, event);
        return 0;
    }
    return 0;
}

/* ---- the course ------------------------------------------------------------ */

static int add_thread(struct recorder *r, pid_t tid, struct prcb_error *err)
{
    int result;

    if (r->chooses)
        return bpf_source_choose(r->bpf, 0, tid, err);
    result = rings_add_thread(r->rings, tid, err);
    return result || !r->bpf ? result : bpf_source_add(r->bpf, tid, err);
}

static int add_all(struct recorder *r, struct prcb_error *err)
{
    int result = rings_add_all(r->rings, err);

    return result || !r->bpf ? result : bpf_source_add(r->bpf, 0, err);
}

struct adding {
    struct recorder *r;
    struct prcb_error *err;
};

/* One that hangs in its end takes no samples; it waits all the same, and that can be seen. */
static int choose_process(struct recorder *r, pid_t pid, struct prcb_error *err)
{
    int result = bpf_source_choose(r->bpf, pid, 0, err);

    if (result == -ESRCH && r->waits)
        return 0;
    if (result == -ESRCH)
        return prcb_fail(err, -ESRCH, "process %d: no such process, or it has ended", pid);
    return result;
}

/* Adds every thread of a process; those that it creates meanwhile are found by another look. */
static int add_process(pid_t pid, void *ctx)
{
    struct recorder *r = ((struct adding *)ctx)->r;
    struct prcb_error *err = ((struct adding *)ctx)->err;
    struct dirent *entry;
    size_t added = 0;
    int result = 0;
    char path[64];
    DIR *tasks;

    if (r->chooses)
        return choose_process(r, pid, err);
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    tasks = opendir(path);
    if (!tasks)
        return prcb_fail(err, -ESRCH, "process %d: no such process", pid);
    while (!result && (entry = readdir(tasks))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        result = add_thread(r, atoi(entry->d_name), err);
        added += !result;
        if (result == -ESRCH)
            result = 0; /* it has just ended */
    }
    closedir(tasks);
    /* One that hangs in its end takes no samples; it waits all the same, and that can be seen. */
    if (!result && !added && !r->waits)
        result = prcb_fail(err, -ESRCH, "it has ended");
    if (result)
        prcb_error_prepend(err, "process %d: ", pid);
    return result;
}

/* Ends the looks at waits; the recording goes on without them. */
static void end_waits(struct recorder *r, const struct prcb_error *why)
{
    snprintf(r->no_waits, sizeof(r->no_waits), "%s", why->text);
    r->progress.no_waits = r->options.stacks ? r->no_waits : NULL;
    if (r->by_prcbd || r->ran) {
        waits_stop_looking(r->waits); /* their session goes on */
        return;
    }
    waits_close(r->waits);
    r->waits = NULL;
}

static int add_process_waits(pid_t pid, void *ctx)
{
    const struct adding *adding = ctx;

    return waits_add(adding->r->waits, pid, false, adding->err);
}

static void add_waits(struct recorder *r, pid_t child)
{
    struct prcb_error why = {0};
    struct adding adding = {r, &why};
    int result = 0;

    if (!r->waits)
        return;
    if (r->options.all || child)
        result = waits_add(r->waits, child, child != 0, &why);
    if (!result)
        result = found_each(r->options.pids, r->options.pid_count, r->options.named,
                            add_process_waits, &adding);
    for (size_t i = 0; i < r->options.thread_count && !result; i++) {
        result = waits_add(r->waits, r->options.threads[i].tid, true, &why);
        if (result == -ESRCH)
            result = 0; /* it has just ended */
    }
    if (result)
        end_waits(r, &why);
}

/* Called once it is known whether prcbd lets its records be read for these threads. */
static void choose_switches(struct recorder *r)
{
    struct prcb_error why = {0};

    r->by_prcbd = r->waits && waits_has_switches(r->waits);
    if (r->by_prcbd) {
        rings_leave_switches(r->rings);
        r->progress.switching = "prcbd";
    }
    if (r->by_prcbd && r->options.wakers && !waits_has_wakers(r->waits, &why)) {
        snprintf(r->no_wakers, sizeof(r->no_wakers), "%s", why.text);
        r->progress.no_wakers = r->no_wakers;
    }
    r->options.wakers =
        r->options.wakers && r->options.switches && !r->no_wakers[0] && (r->bpf || r->by_prcbd);
}

static int add_threads(struct recorder *r, struct prcb_error *err)
{
    size_t added = 0;

    for (size_t i = 0; i < r->options.thread_count; i++) {
        int result = add_thread(r, r->options.threads[i].tid, err);

        if (result && result != -ESRCH) {
            prcb_error_prepend(err, "thread %d: ", (int)r->options.threads[i].tid);
            return result;
        }
        added += !result;
    }
    return added || !r->options.thread_count
               ? 0
               : prcb_fail(err, -ESRCH, "the threads that were to be recorded have ended");
}

/* Lets what interpreters' threads execute be copied with their samples, of events that are no
 * NMI's: where that cannot be done, these show the interpreter's own functions. */
static void copy_lists(struct recorder *r)
{
    int program = r->ran && r->waits && strstr(r->options.event, "-clock")
                      ? prcb_ran_program(waits_session(r->waits), NULL)
                      : -EOPNOTSUPP;

    if (program >= 0 && r->chooses)
        bpf_source_filter_then(r->bpf, program);
    else if (program >= 0)
        rings_filter(r->rings, program);
}

static int add_targets(struct recorder *r, pid_t child, struct prcb_error *err)
{
    struct adding adding = {r, err};
    int result;

    copy_lists(r);
    if (r->options.all)
        return add_all(r, err);
    if (is_command(&r->options))
        return add_thread(r, child, err);
    result =
        found_each(r->options.pids, r->options.pid_count, r->options.named, add_process, &adding);
    if (!result)
        result = add_threads(r, err);
    if (result || !r->chooses)
        return result;
    rings_filter(r->rings, bpf_source_filter(r->bpf));
    return add_all(r, err);
}

static int write_facts(struct recorder *r)
{
    const struct recorder_options *options = &r->options;
    struct writer *w = r->writer;
    char command[4096] = "";
    size_t used = 0;

    for (size_t i = 0; options->command && options->command[i] && used < sizeof(command); i++)
        used += (size_t)snprintf(command + used, sizeof(command) - used, "%s%s", i ? " " : "",
                                 options->command[i]);
    writer_fact(w, "prcb_version", "%s", PRCB_VERSION);
    writer_fact(w, "format_version", "%d", RECORD_VERSION);
    facts_write_machine(w);
    facts_write_clock(w, "started");
    writer_fact(w, "clock", "CLOCK_MONOTONIC");
    writer_fact(w, "event", "%s", options->event);
    writer_fact(w, options->frequency ? "frequency" : "period", "%llu",
                (unsigned long long)options->rate);
    writer_fact(w, "stacks", "%d", options->stacks);
    writer_fact(w, "scope", "%s",
                options->all            ? "system"
                : options->pid_count    ? "processes"
                : options->thread_count ? "threads"
                                        : "command");
    if (*command)
        writer_fact(w, "command", "%s", command);
    writer_fact(w, "user_only", "%d", r->progress.user_only);
    writer_fact(w, "sample_source", "%s", r->progress.source);
    writer_fact(w, "switch_source", "%s", r->progress.switching);
    writer_fact(w, "wakers", "%d", r->options.wakers);
    writer_fact(w, "sample_stack_bytes", "%u", r->ran ? options->stack_bytes : 0);
    writer_fact(w, "wait_stacks", "%d", r->waits && options->stacks);
    writer_fact(w, "processor_times_source", "%s",
                prcb_processors_tier(r->processors) == PRCB_TIER_BPF ? "eBPF" : "/proc/stat");
    return writer_fact(w, "complete", "0");
}

/* Says what the writer could not do, in its words; otherwise memory ran out. */
static int explain(struct recorder *r, int result, struct prcb_error *err)
{
    const struct prcb_error *why = writer_error(r->writer);

    if (!why->code)
        return prcb_fail(err, result, "%s", strerror(-result));
    if (err)
        *err = *why;
    return why->code;
}

/* Everything found here existed when the recording began. */
static int look_around(struct recorder *r)
{
    int result = 0;

    if (r->options.all)
        return world_look(r->world, 0, r->start_ns);
    for (size_t i = 0; i < r->options.pid_count && !result; i++)
        result = world_look(r->world, r->options.pids[i], r->start_ns);
    for (size_t i = 0; i < r->options.thread_count && !result; i++) {
        const struct recorder_thread *thread = &r->options.threads[i];

        result = world_look_at_thread(r->world, thread->pid, thread->tid,
                                      !i || thread[-1].pid != thread->pid, r->start_ns);
    }
    return result;
}

/* Writes what the threads do that were found. Without stacks accounts are of no further use. */
static void look_at_waits(struct recorder *r)
{
    struct prcb_error why;

    if (r->waits && waits_begin(r->waits, r->world, &why))
        end_waits(r, &why);
    if (!r->options.stacks && !r->by_prcbd) {
        waits_close(r->waits);
        r->waits = NULL;
    }
}

static int write_times(struct recorder *r)
{
    r->last_times = now_ns();
    return facts_write_times(r->writer, r->processors, r->last_times);
}

/* The recording begins here. */
static int begin(struct recorder *r)
{
    int result;

    r->start_ns = now_ns();
    result = writer_fact(r->writer, "wall_ns", "%llu", (unsigned long long)now_by(CLOCK_REALTIME));
    if (!result)
        result = writer_fact(r->writer, "start_ns", "%llu", (unsigned long long)r->start_ns);
    return result;
}

int recorder_start(struct recorder *r, pid_t child, struct prcb_error *err)
{
    int result;

    r->end_ns = UINT64_MAX;
    add_waits(r, child);
    choose_switches(r);
    result = add_targets(r, child, err);
    if (result)
        return result;
    r->progress.user_only = rings_user_only(r->rings);
    result = writer_create(r->options.path, &r->writer, err);
    if (result)
        return result;
    result = world_open(r->writer, &r->world);
    if (!result && r->options.wakers) {
        r->wakers = wakers_open(r->writer);
        result = r->wakers ? 0 : -ENOMEM;
    }
    if (!result)
        result = write_facts(r);
    if (!result)
        result = begin(r);
    if (!result)
        result = write_times(r);
    /* Events are started before /proc is read: what happens in between is told twice, which does
     * no harm. */
    if (!child)
        rings_start(r->rings);
    if (!result)
        result = look_around(r);
    if (!result && !child)
        look_at_waits(r);
    if (!result)
        result = writer_commit(r->writer);
    if (!result)
        writer_sync_apart(r->writer);
    r->started = true;
    return result ? explain(r, result, err) : 0;
}

static int count_lost(struct recorder *r, const char *what, uint64_t lost, uint64_t *before)
{
    uint64_t more = lost - *before;

    if (!more)
        return 0;
    *before = lost;
    r->progress.lost += more;
    return writer_loss(r->writer, now_ns(), 0, what, more);
}

/* Makes one pass over all sources. *ret_full as rings_drain has it. */
static int drain(struct recorder *r, bool last, unsigned *ret_full)
{
    int result = 0;

    if (r->bpf) {
        result = bpf_source_read(r->bpf, r->rings, ret_full);
        if (!result)
            result = count_lost(r, "samples", bpf_source_lost_samples(r->bpf), &r->lost_samples);
        if (!result)
            result = count_lost(r, "switches", bpf_source_lost_switches(r->bpf), &r->lost_switches);
    }
    if (r->by_prcbd && !result) {
        result = waits_switches(r->waits, r->rings, ret_full);
        if (!result)
            result = count_lost(r, "switches", waits_lost_switches(r->waits), &r->lost_switches);
    }
    if (r->ran && r->waits && !result)
        result = waits_ran(r->waits, r->rings);
    return result ? result : rings_drain(r->rings, last, on_event, r, ret_full);
}

int recorder_work(struct recorder *r, int *ret_next_ms, struct prcb_error *err)
{
    unsigned full = 0;
    int result = drain(r, false, &full);
    uint64_t now = now_ns();
    struct prcb_error why;
    /* This leaves something in the file even if the recording is killed in its first second. */
    bool commit = now < r->start_ns + NS_PER_S;

    if (full > FULL_HIGH && r->pass_ms > PASS_MIN_MS)
        r->pass_ms /= 2;
    else if (full < FULL_LOW && r->pass_ms < PASS_MAX_MS)
        r->pass_ms *= 2;
    if (!result && now >= r->last_times + NS_PER_S) {
        result = write_times(r);
        commit = true;
    }
    if (!result && commit)
        result = writer_commit(r->writer);
    *ret_next_ms = r->pass_ms;
    if (!result && r->waits && waits_look(r->waits, r->rings, false, ret_next_ms, &why))
        end_waits(r, &why);
    return result ? explain(r, result, err) : 0;
}

/* Writes the misses of each program for which the kernel counts them. */
static int write_misses(struct recorder *r)
{
    struct prcb_program program = {.size = sizeof(program)};
    char name[sizeof(RECORD_MISSES) + sizeof(program.name)];
    int result = 0;

    for (uint32_t i = 0; !result && !recorder_program(r, i, &program); i++) {
        snprintf(name, sizeof(name), RECORD_MISSES "%s", program.name);
        if (program.recursion_misses != UINT64_MAX)
            result =
                writer_fact(r->writer, name, "%llu", (unsigned long long)program.recursion_misses);
    }
    return result;
}

static int write_interpreted(struct recorder *r)
{
    struct recorder_progress *now = &r->progress;
    int result;

    if (r->waits)
        waits_interpreted(r->waits, &now->interpreted, &now->uninterpreted);
    if (!now->interpreted && !now->uninterpreted)
        return 0;
    result =
        writer_fact(r->writer, "interpreted_waits", "%llu", (unsigned long long)now->interpreted);
    return result ? result
                  : writer_fact(r->writer, "uninterpreted_waits", "%llu",
                                (unsigned long long)now->uninterpreted);
}

int recorder_finish(struct recorder *r, struct prcb_error *err)
{
    struct prcb_error why;
    unsigned full = 0;
    int result, next_ms = 0;

    r->end_ns = now_ns();
    result = facts_write_times(r->writer, r->processors, r->end_ns);
    /* Waits of the last milliseconds would be called too short to be read. */
    if (!result && r->waits && waits_look(r->waits, r->rings, true, &next_ms, &why))
        end_waits(r, &why);
    rings_stop(r->rings);
    if (!result)
        result = drain(r, true, &full);
    if (r->bpf)
        bpf_source_stop(r->bpf);
    if (!result)
        result = writer_fact(r->writer, "end_ns", "%llu", (unsigned long long)r->end_ns);
    if (!result)
        result = write_misses(r);
    if (!result)
        result = write_interpreted(r);
    if (!result)
        result = writer_commit(r->writer);
    return result ? explain(r, result, err) : 0;
}

int recorder_name(struct recorder *r, struct namer *namer, struct prcb_error *err)
{
    int result;

    writer_sync_here(r->writer);
    result = resolve_functions(writer_handle(r->writer), false, namer, err);

    if (!result)
        result = writer_fact(r->writer, "complete", "1");
    if (!result)
        result = writer_close(r->writer, err);
    else
        writer_close(r->writer, NULL);
    r->writer = NULL;
    return result;
}
