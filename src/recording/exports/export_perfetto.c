/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a trace for Perfetto, packet by packet: switches and wakings as the kernel's tracing
 * would have them, so that Perfetto draws processors, states of threads and who woke whom; waits
 * and ready time as slices of their threads, with their causes and stacks; samples with stacks and
 * weights, and each wait as one: these sum to the time of waits.
 *
 * The packets of a trace are in no order: Perfetto sorts them by their times. Only what packets
 * refer to by number has to come before them.
 */
#include <errno.h>

#include "error.h"
#include "export.h"

#ifdef HAVE_PPROF

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "offcpu.h"
#include "pack.h"
#include "text.h"
#include "perfetto.pb-c.h"
#include "stretches.h"

#define PACKET   1 /* the one field of a trace */
#define SEQUENCE 1 /* of packets: there is one */
#define CLEARED  1 /* sequence_flags: nothing was said before, */
#define NEEDS    2 /* and this needs what was */
#define PRIORITY 120

enum clock { REALTIME = 1, MONOTONIC = 3, BOOTTIME = 6 }; /* Perfetto's numbers */
enum event_type { SLICE_BEGIN = 1, SLICE_END, INSTANT };  /* TrackEvent.Type */
enum mode { USER_MODE = 1, KERNEL_MODE };                 /* StackSample.Mode */
enum unit { NANOSECONDS = 1, COUNT = 9 };                 /* StackSample.Unit */
enum state { RUNNABLE = 0, SLEEPING = 1, DEAD = 16 };     /* the kernel's */
enum told { AS_FRAME = 1, AS_STACK = 2 };                 /* what was written of it */
enum flag { IN_HARD = 0x08, IN_SOFT = 0x10 };             /* of a trace event's context */

#define RESTS 12 /* reasons why there is no stack */

struct tracing {
    const struct recording *recording;
    FILE *out;
    struct packer packer;
    char **threads, **functions, **files, **wakers; /* names, as UTF-8 */
    uint8_t *told;                                  /* of each stack: enum told */
    uint64_t *frames;                               /* of a stack */
    const char *rests[RESTS];                       /* each a frame behind those of stacks */
    size_t rest_count;
    char *event; /* of samples */
    bool counts_ns;
    uint64_t flows; /* arrows so far */
    bool begun;
};

static void put(struct tracing *t, Perfetto__Protos__TracePacket *packet)
{
    uint8_t head[PACK_HEAD];
    const uint8_t *bytes;
    size_t size;

    packet->trusted_packet_sequence_id = SEQUENCE;
    packet->sequence_flags = t->begun ? NEEDS : CLEARED;
    t->begun = true;
    bytes = pack_message(&t->packer, &packet->base, &size);
    if (!bytes)
        return;
    fwrite(head, 1, pack_head(PACKET, size, head), t->out);
    fwrite(bytes, 1, size, t->out);
}

/* ---- what there is -------------------------------------------------------------------- */

/* All times are of CLOCK_MONOTONIC. Perfetto takes those of the kernel's events for another
 * clock's; they have the same numbers, so both clocks are the same here. By the wall clock traces
 * of several hosts can be merged. */
static void put_clocks(struct tracing *t)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
    Perfetto__Protos__ClockSnapshot__Clock clocks[3], *places[3];
    const enum clock numbers[3] = {MONOTONIC, BOOTTIME, REALTIME};
    int64_t wall_ns = 0;
    bool known = recording_wall(t->recording, &wall_ns);

    for (int i = 0; i < 3; i++) {
        perfetto__protos__clock_snapshot__clock__init(&clocks[i]);
        clocks[i].clock_id = numbers[i];
        clocks[i].timestamp = t->recording->start_ns;
        places[i] = &clocks[i];
    }
    clocks[2].timestamp += (uint64_t)wall_ns;
    snapshot.n_clocks = known ? 3 : 2;
    snapshot.clocks = places;
    packet.timestamp = t->recording->start_ns;
    packet.clock_snapshot = &snapshot;
    put(t, &packet);
}

static void put_thread(struct tracing *t, int64_t pid, int64_t tid, char *name)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__ProcessTree tree = PERFETTO__PROTOS__PROCESS_TREE__INIT;
    Perfetto__Protos__ProcessTree__Process process = PERFETTO__PROTOS__PROCESS_TREE__PROCESS__INIT;
    Perfetto__Protos__ProcessTree__Process *processes[] = {&process};
    Perfetto__Protos__ProcessTree__Thread thread = PERFETTO__PROTOS__PROCESS_TREE__THREAD__INIT;
    Perfetto__Protos__ProcessTree__Thread *threads[] = {&thread};

    process.pid = (int32_t)pid;
    process.n_cmdline = 1;
    process.cmdline = &name;
    thread.tid = (int32_t)tid;
    thread.tgid = (int32_t)pid;
    thread.name = name;
    if (pid == tid) {
        tree.n_processes = 1;
        tree.processes = processes;
    }
    tree.n_threads = 1;
    tree.threads = threads;
    packet.timestamp = t->recording->start_ns;
    packet.process_tree = &tree;
    put(t, &packet);
}

/* A thread that executes another program has a row for each, and one track. */
static uint64_t track_of(const struct recorded_thread *thread)
{
    return ((uint64_t)thread->pid << 32 | (uint32_t)thread->tid) ^ 0x5052434200000000u;
}

static void put_track(struct tracing *t, size_t at)
{
    const struct recorded_thread *row = &t->recording->threads[at];
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
    Perfetto__Protos__ThreadDescriptor thread = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;

    thread.pid = (int32_t)row->pid;
    thread.tid = (int32_t)row->tid;
    thread.thread_name = t->threads[at];
    track.uuid = track_of(row);
    track.thread = &thread;
    packet.timestamp = row->start_ns;
    packet.track_descriptor = &track;
    put(t, &packet);
}

static void put_threads(struct tracing *t)
{
    const struct recording *r = t->recording;

    for (size_t i = 0; i < r->thread_count; i++) {
        put_thread(t, r->threads[i].pid, r->threads[i].tid, t->threads[i]);
        put_track(t, i);
    }
    for (size_t i = 0; i < r->waker_count; i++) {
        if (r->wakers[i].tid && r->wakers[i].thread == SIZE_MAX)
            put_thread(t, r->wakers[i].pid, r->wakers[i].tid, t->wakers[i]);
    }
}

/* ---- stacks --------------------------------------------------------------------------- */

static void put_interned(struct tracing *t, Perfetto__Protos__InternedData *data)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

    packet.interned_data = data;
    put(t, &packet);
}

static void set_string(Perfetto__Protos__InternedString *string, uint64_t iid, char *text)
{
    perfetto__protos__interned_string__init(string);
    string->iid = iid;
    string->str.data = (uint8_t *)text;
    string->str.len = strlen(text);
}

/* The index behind the last stands for what is not known. */
static void put_names(struct tracing *t)
{
    static char unknown[] = "[unknown]";
    const struct recording *r = t->recording;

    for (size_t i = 0; i <= r->function_count; i++) {
        Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
        Perfetto__Protos__InternedString name, *names[] = {&name};

        set_string(&name, i + 1, i < r->function_count ? t->functions[i] : unknown);
        data.n_function_names = 1;
        data.function_names = names;
        put_interned(t, &data);
    }
    for (size_t i = 0; i <= r->map_count; i++) {
        Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
        Perfetto__Protos__InternedString path, *paths[] = {&path};
        Perfetto__Protos__Mapping mapping = PERFETTO__PROTOS__MAPPING__INIT;
        Perfetto__Protos__Mapping *mappings[] = {&mapping};
        uint64_t iid = i + 1;

        set_string(&path, iid, i < r->map_count ? t->files[i] : unknown);
        mapping.iid = iid;
        mapping.n_path_string_ids = 1;
        mapping.path_string_ids = &iid;
        if (i < r->map_count) {
            mapping.start = r->maps[i].start;
            mapping.end = r->maps[i].start + r->maps[i].length;
            mapping.exact_offset = r->maps[i].file_offset;
        }
        data.n_mapping_paths = data.n_mappings = 1;
        data.mapping_paths = paths;
        data.mappings = mappings;
        put_interned(t, &data);
    }
}

static void put_interned_frame(struct tracing *t, Perfetto__Protos__Frame *frame)
{
    Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;

    data.n_frames = 1;
    data.frames = &frame;
    put_interned(t, &data);
}

static void put_frame(struct tracing *t, size_t stack)
{
    const struct recorded_stack *row = &t->recording->stacks[stack];
    const struct recorded_map *map = row->map == SIZE_MAX ? NULL : &t->recording->maps[row->map];
    Perfetto__Protos__Frame frame = PERFETTO__PROTOS__FRAME__INIT;

    frame.iid = stack + 1;
    frame.function_name_id =
        (row->function == SIZE_MAX ? t->recording->function_count : row->function) + 1;
    frame.mapping_id = (map ? row->map : t->recording->map_count) + 1;
    frame.rel_pc = map ? row->address - map->start + map->file_offset : row->address;
    put_interned_frame(t, &frame);
}

/* Returns the number of the frame that says why there is no stack. */
static uint64_t rest_frame(struct tracing *t, const char *rest)
{
    Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
    Perfetto__Protos__InternedString name, *names[] = {&name};
    Perfetto__Protos__Frame frame = PERFETTO__PROTOS__FRAME__INIT;
    size_t i = 0;

    while (i < t->rest_count && strcmp(t->rests[i], rest) != 0)
        i++;
    frame.iid = t->recording->stack_count + i + 1;
    if (i < t->rest_count || i == RESTS)
        return frame.iid;
    t->rests[t->rest_count++] = rest;
    frame.function_name_id = t->recording->function_count + i + 2;
    frame.mapping_id = t->recording->map_count + 1;
    set_string(&name, frame.function_name_id, (char *)rest);
    data.n_function_names = 1;
    data.function_names = names;
    put_interned(t, &data);
    put_interned_frame(t, &frame);
    return frame.iid;
}

/* Sets t->frames to a stack's, the outermost first; they are written where they were not. Returns
 * how many there are. */
static size_t find_frames(struct tracing *t, size_t stack)
{
    const struct recording *r = t->recording;
    size_t depth = 0, left;

    for (size_t at = stack; at != SIZE_MAX; at = r->stacks[at].caller_index)
        depth++;
    left = depth;
    for (size_t at = stack; at != SIZE_MAX; at = r->stacks[at].caller_index) {
        if (!(t->told[at] & AS_FRAME))
            put_frame(t, at);
        t->told[at] |= AS_FRAME;
        t->frames[--left] = at + 1;
    }
    return depth;
}

/* Returns the number by which slices refer to a stack, which is written when it is first asked for;
 * 0: there is none. */
static uint64_t callstack(struct tracing *t, size_t stack)
{
    Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
    Perfetto__Protos__Callstack row = PERFETTO__PROTOS__CALLSTACK__INIT, *rows[] = {&row};

    if (stack == SIZE_MAX || t->told[stack] & AS_STACK)
        return stack == SIZE_MAX ? 0 : stack + 1;
    t->told[stack] |= AS_STACK;
    row.iid = stack + 1;
    row.n_frame_ids = find_frames(t, stack);
    row.frame_ids = t->frames;
    data.n_callstacks = 1;
    data.callstacks = rows;
    put_interned(t, &data);
    return stack + 1;
}

/* A sample of a thread: of t->frames, with what it stands for. */
struct weighed {
    size_t thread, frame_count;
    char *counter;
    enum unit unit;
    uint64_t time_ns, weight;
    Perfetto__Protos__StackSample__ExecutionContext *where; /* NULL: on no processor */
};

static void put_weighed(struct tracing *t, const struct weighed *of)
{
    const struct recorded_thread *thread = &t->recording->threads[of->thread];
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__StackSample sample = PERFETTO__PROTOS__STACK_SAMPLE__INIT;
    Perfetto__Protos__StackSample__TaskContext task =
        PERFETTO__PROTOS__STACK_SAMPLE__TASK_CONTEXT__INIT;
    Perfetto__Protos__StackSample__CounterDescriptor counter =
        PERFETTO__PROTOS__STACK_SAMPLE__COUNTER_DESCRIPTOR__INIT;
    Perfetto__Protos__Callstack stack = PERFETTO__PROTOS__CALLSTACK__INIT;

    task.pid = (uint32_t)thread->pid;
    task.tid = (uint32_t)thread->tid;
    counter.name = of->counter;
    counter.unit = of->unit;
    stack.n_frame_ids = of->frame_count;
    stack.frame_ids = t->frames;
    sample.task_context = &task;
    sample.execution_context = of->where;
    sample.callstack = &stack;
    sample.primary_descriptor = &counter;
    sample.primary_weight = of->weight;
    packet.timestamp = of->time_ns;
    packet.stack_sample = &sample;
    put(t, &packet);
}

/* Writes a wait as a sample, at its end. */
static void put_wait(struct tracing *t, const struct stretch *stretch,
                     const struct recorded_wait *where)
{
    static char counter[] = "off_cpu";
    struct weighed row = {.thread = stretch->thread,
                          .counter = counter,
                          .unit = NANOSECONDS,
                          .time_ns = stretch->end_ns,
                          .weight = stretch->end_ns - stretch->start_ns};

    if (where && where->stack != SIZE_MAX) {
        row.frame_count = find_frames(t, where->stack);
    } else {
        t->frames[0] = rest_frame(t, offcpu_rest(t->recording, where));
        row.frame_count = 1;
    }
    put_weighed(t, &row);
}

/* ---- switches and wakings ---------------------------------------------------------------- */

static void put_ftrace(struct tracing *t, uint32_t cpu, Perfetto__Protos__FtraceEvent *event)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
    Perfetto__Protos__FtraceEventBundle bundle = PERFETTO__PROTOS__FTRACE_EVENT_BUNDLE__INIT;
    Perfetto__Protos__FtraceEvent *events[] = {event};

    bundle.cpu = cpu;
    bundle.n_event = 1;
    bundle.event = events;
    packet.ftrace_events = &bundle;
    put(t, &packet);
}

/* Returns the flag of a trace event's context if that was not a thread; else 0. */
static uint32_t context_of(const char *by)
{
    if (!strcmp(by, "softirq"))
        return IN_SOFT;
    return !strcmp(by, "interrupt") || !strcmp(by, "timer") ? IN_HARD : 0;
}

/* The thread that an interrupt struck has no part in the waking: its number is not written. */
static void put_waking(struct tracing *t, size_t woken, size_t by, uint64_t woken_ns, uint32_t cpu,
                       uint32_t target)
{
    const struct recorded_waker *waker = &t->recording->wakers[by];
    Perfetto__Protos__FtraceEvent event = PERFETTO__PROTOS__FTRACE_EVENT__INIT;
    Perfetto__Protos__SchedWakingFtraceEvent waking =
        PERFETTO__PROTOS__SCHED_WAKING_FTRACE_EVENT__INIT;

    waking.comm = t->threads[woken];
    waking.pid = (int32_t)t->recording->threads[woken].tid;
    waking.prio = PRIORITY;
    waking.success = 1;
    waking.target_cpu = (int32_t)target;
    event.timestamp = woken_ns;
    event.pid = (uint32_t)waker->tid;
    event.common_flags = context_of(waker->by);
    event.sched_waking = &waking;
    put_ftrace(t, cpu, &event);
}

/* Writes a switch. A side that is not recorded shows as idle. */
static int put_switch(sqlite3_stmt *row, void *ctx)
{
    static char idle[] = "swapper";
    struct tracing *t = ctx;
    const struct recording *r = t->recording;
    Perfetto__Protos__FtraceEvent event = PERFETTO__PROTOS__FTRACE_EVENT__INIT;
    Perfetto__Protos__SchedSwitchFtraceEvent move =
        PERFETTO__PROTOS__SCHED_SWITCH_FTRACE_EVENT__INIT;
    size_t old = recording_thread(r, sqlite3_column_int64(row, 2));
    size_t new = recording_thread(r, sqlite3_column_int64(row, 3));
    size_t waker = recording_waker(r, sqlite3_column_int64(row, 5));
    const char *state = (const char *)sqlite3_column_text(row, 4);
    uint32_t cpu = (uint32_t)sqlite3_column_int64(row, 1);

    if (new != SIZE_MAX && waker != SIZE_MAX)
        put_waking(t, new, waker, (uint64_t)sqlite3_column_int64(row, 6),
                   (uint32_t)sqlite3_column_int64(row, 7), cpu);
    move.prev_comm = old == SIZE_MAX ? idle : t->threads[old];
    move.prev_pid = old == SIZE_MAX ? 0 : (int32_t)r->threads[old].tid;
    move.next_comm = new == SIZE_MAX ? idle : t->threads[new];
    move.next_pid = new == SIZE_MAX ? 0 : (int32_t)r->threads[new].tid;
    move.prev_prio = move.next_prio = PRIORITY;
    if (old != SIZE_MAX && state)
        move.prev_state = !strcmp(state, "waiting") ? SLEEPING
                          : !strcmp(state, "ended") ? DEAD
                                                    : RUNNABLE;
    event.timestamp = (uint64_t)sqlite3_column_int64(row, 0);
    event.pid = (uint32_t)move.prev_pid;
    event.sched_switch = &move;
    put_ftrace(t, cpu, &event);
    return t->packer.failed ? -ENOMEM : 0;
}

/* ---- slices ------------------------------------------------------------------------------ */

static void put_event(struct tracing *t, uint64_t time_ns, size_t thread,
                      Perfetto__Protos__TrackEvent *event, enum event_type type)
{
    Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

    event->type = type;
    event->track_uuid = track_of(&t->recording->threads[thread]);
    packet.timestamp = time_ns;
    packet.track_event = event;
    put(t, &packet);
}

static void annotate(Perfetto__Protos__TrackEvent *event,
                     Perfetto__Protos__DebugAnnotation *annotation, char *name, const char *value)
{
    if (!value || !*value)
        return;
    perfetto__protos__debug_annotation__init(annotation);
    annotation->name = name;
    annotation->string_value = (char *)value;
    event->debug_annotations[event->n_debug_annotations++] = annotation;
}

/* Draws an arrow from where the waker was to where the thread became ready. */
static uint64_t put_arrow(struct tracing *t, const struct stretch *stretch, char *name)
{
    const struct recorded_waker *waker = &t->recording->wakers[stretch->waker];
    Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
    uint64_t flow = ++t->flows;

    if (waker->thread == SIZE_MAX)
        return 0;
    event.name = name;
    event.n_flow_ids = 1;
    event.flow_ids = &flow;
    put_event(t, stretch->woken_ns, waker->thread, &event, INSTANT);
    return flow;
}

static int put_stretch(const struct stretch *stretch, void *ctx)
{
    static char by_name[] = "woken by", in_name[] = "in", ready[] = "ready", wait[] = "wait",
                wakes[] = "wakes", waiting[] = "waiting", trace_name[] = "trace_id",
                span_name[] = "span_id";
    struct tracing *t = ctx;
    const struct recording *r = t->recording;
    Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
    Perfetto__Protos__TrackEvent end = PERFETTO__PROTOS__TRACK_EVENT__INIT;
    Perfetto__Protos__DebugAnnotation annotations[4], *places[4];
    const struct recorded_wait *where;
    char waker[64], *clean = NULL, *category = wait, *word = NULL, *cause;
    char *trace = NULL, *span = NULL;
    uint64_t flow = 0;

    if (stretch->kind == STRETCH_RUNNING)
        return 0;
    cause = text_utf8(stretch->cause);
    event.debug_annotations = places;
    event.n_categories = 1;
    event.categories = &category;
    event.name = cause && *cause ? cause : waiting;
    if (stretch->waker != SIZE_MAX) {
        recording_waker_name(r, stretch->waker, waker, sizeof(waker));
        clean = text_utf8(waker);
        annotate(&event, &annotations[0], by_name, clean);
    }
    if (stretch->kind == STRETCH_READY) {
        category = event.name = ready;
        flow = stretch->waker == SIZE_MAX ? 0 : put_arrow(t, stretch, wakes);
        event.n_terminating_flow_ids = flow != 0;
        event.terminating_flow_ids = &flow;
    } else {
        where = recording_wait(r, stretch->thread, stretch->start_ns, stretch->end_ns);
        event.callstack_iid = where ? callstack(t, where->stack) : 0;
        if (r->has_wait_stacks)
            put_wait(t, stretch, where);
        word = text_utf8(where ? where->word : "");
        annotate(&event, &annotations[1], in_name, word);
        trace = text_utf8(where ? where->trace_id : "");
        span = text_utf8(where ? where->span_id : "");
        annotate(&event, &annotations[2], trace_name, trace);
        annotate(&event, &annotations[3], span_name, span);
    }
    put_event(t, stretch->start_ns, stretch->thread, &event, SLICE_BEGIN);
    put_event(t, stretch->end_ns, stretch->thread, &end, SLICE_END);
    free(span);
    free(trace);
    free(word);
    free(clean);
    free(cause);
    return t->packer.failed || !cause ? -ENOMEM : 0;
}

static int put_sample(sqlite3_stmt *row, void *ctx)
{
    struct tracing *t = ctx;
    const struct recording *r = t->recording;
    Perfetto__Protos__StackSample__ExecutionContext where =
        PERFETTO__PROTOS__STACK_SAMPLE__EXECUTION_CONTEXT__INIT;
    size_t stack = recording_stack(r, sqlite3_column_int64(row, 3));
    struct weighed of = {.thread = recording_thread(r, sqlite3_column_int64(row, 2)),
                         .counter = t->event,
                         .unit = t->counts_ns ? NANOSECONDS : COUNT,
                         .time_ns = (uint64_t)sqlite3_column_int64(row, 0),
                         .weight = (uint64_t)sqlite3_column_int64(row, 4),
                         .where = &where};

    if (of.thread == SIZE_MAX || stack == SIZE_MAX)
        return 0;
    where.cpu = (uint32_t)sqlite3_column_int64(row, 1);
    where.mode = r->stacks[stack].kernel ? KERNEL_MODE : USER_MODE;
    of.frame_count = find_frames(t, stack);
    put_weighed(t, &of);
    return t->packer.failed ? -ENOMEM : 0;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int put_all(struct tracing *t, struct prcb_error *err)
{
    const struct recording *r = t->recording;
    int result;

    put_clocks(t);
    put_threads(t);
    put_names(t);
    result = recording_query(r,
                             r->has_wakers
                                 ? "SELECT time_ns, cpu, old_thread, new_thread, state, waker, "
                                   "woken_ns, woken_cpu FROM switches ORDER BY time_ns, rowid"
                                 : "SELECT time_ns, cpu, old_thread, new_thread, state, NULL "
                                   "FROM switches ORDER BY time_ns, rowid",
                             put_switch, t, err);
    if (!result)
        result = stretches_walk(r, put_stretch, t, err);
    if (!result)
        result = recording_query(
            r, "SELECT time_ns, cpu, thread, stack, weight FROM samples ORDER BY time_ns, rowid",
            put_sample, t, err);
    return result;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

int export_perfetto(const struct recording *r, FILE *out, struct prcb_error *err)
{
    char *event = recording_fact(r, "event");
    struct tracing t = {
        .recording = r,
        .out = out,
        .threads = calloc(r->thread_count + 1, sizeof(char *)),
        .functions = calloc(r->function_count + 1, sizeof(char *)),
        .files = calloc(r->map_count + 1, sizeof(char *)),
        .wakers = calloc(r->waker_count + 1, sizeof(char *)),
        .told = calloc(r->stack_count + 1, sizeof(uint8_t)),
        .frames = calloc(r->stack_count + 1, sizeof(uint64_t)),
        .event = event ? text_utf8(event) : strdup("events"),
        .counts_ns = recording_counts_ns(r),
    };
    bool good = t.threads && t.functions && t.files && t.wakers && t.told && t.frames && t.event;
    int result = -ENOMEM;

    for (size_t i = 0; good && i < r->thread_count; i++)
        good = (t.threads[i] = text_utf8(r->threads[i].name)) != NULL;
    for (size_t i = 0; good && i < r->function_count; i++)
        good = (t.functions[i] = text_utf8(r->functions[i].name)) != NULL;
    for (size_t i = 0; good && i < r->map_count; i++)
        good = (t.files[i] = text_utf8(r->maps[i].file)) != NULL;
    for (size_t i = 0; good && i < r->waker_count; i++)
        good = (t.wakers[i] = text_utf8(r->wakers[i].name)) != NULL;
    if (good)
        result = put_all(&t, err);
    if (!good || t.packer.failed)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    free_texts(t.threads, r->thread_count);
    free_texts(t.functions, r->function_count);
    free_texts(t.files, r->map_count);
    free_texts(t.wakers, r->waker_count);
    free(t.told);
    free(t.frames);
    free(t.event);
    free(event);
    free(t.packer.bytes);
    return result;
}

#else

int export_perfetto(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    return prcb_fail(
        err, -EOPNOTSUPP,
        "this prcb was built without protobuf-c or zlib, which --perfetto needs (meson "
        "option 'pprof')");
}

#endif
