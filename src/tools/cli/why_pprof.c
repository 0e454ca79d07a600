/* SPDX-License-Identifier: BSD-2-Clause */
#include "why_pprof.h"

#include <errno.h>

#ifdef HAVE_PPROF

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "array.h"
#include "cause.h"
#include "cgroup_names.h"
#include "pprof.h"
#include "table.h"
#include "text.h"
#include "why_report.h"

#define NAME_BYTES 4096

enum label {
    CAUSE,
    WAY,
    IDLE,
    THREAD,
    PROCESS,
    PID,
    CGROUP,
    UNIT,
    CONTAINER,
    POD,
    TRACE,
    SPAN,
    LABELS
};
static const char *const label_names[LABELS] = {
    [CAUSE] = "cause",
    [WAY] = "way",
    [IDLE] = "idle",
    [THREAD] = "thread",
    [PROCESS] = "process",
    [PID] = "pid",
    [CGROUP] = "cgroup",
    [UNIT] = "unit",
    [CONTAINER] = "container",
    [POD] = "pod",
    [TRACE] = PPROF_TRACE_LABEL,
    [SPAN] = PPROF_SPAN_LABEL,
};

/* Their texts are compared as pointers: the reader of stacks keeps one copy of each. */
struct function {
    const char *name, *file;
};
struct location {
    const char *name, *file;
    uint64_t place, address;
};

struct profiling {
    struct pprof *out;
    struct cgroup_names *cgroups; /* NULL: no names */
    int64_t keys[LABELS];
    struct table names; /* of processes, by number */
    struct row_numbers texts, files, functions, locations;
    int64_t *places; /* of texts, by number */
    size_t place_count, place_room;
    bool spans;  /* they are asked for */
    bool failed; /* no memory */
};

/* Writes a name that others chose, fit to be shown by whoever reads the profile. */
static const char *shown(const char *name, char ret[NAME_BYTES])
{
    text_copy(TEXT_MARKS, name ? name : "", ret, NAME_BYTES);
    return ret;
}

/* ---- rows ------------------------------------------------------------------------ */

/* Returns the number of a row; 0: no memory. */
static size_t number_of(struct profiling *p, struct row_numbers *rows, const void *row, size_t size,
                        bool *ret_new)
{
    size_t number = row_number(rows, row, size, ret_new);

    p->failed |= !number;
    return number;
}

static int64_t text_of(struct profiling *p, const char *text)
{
    bool fresh;
    size_t number = number_of(p, &p->texts, text, strlen(text) + 1, &fresh);

    if (fresh && array_add(p->places, p->place_count, p->place_room, pprof_string(p->out, text)))
        p->failed = true;
    return number && number <= p->place_count ? p->places[number - 1] : 0;
}

static void put_function(struct profiling *p, uint64_t number, const char *name, const char *file)
{
    char clean[NAME_BYTES], clean_file[NAME_BYTES];

    pprof_function(p->out, number, shown(name, clean), shown(file, clean_file));
}

/* A function whose name is not known is one for each of its places: "libx.so+0x1234". */
static uint64_t function_of(struct profiling *p, const struct prcb_frame *frame)
{
    const struct function row = {frame->function, frame->file};
    const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
    char text[512];
    bool fresh;
    size_t number;

    if (frame->function) {
        number = number_of(p, &p->functions, &row, sizeof(row), &fresh);
        if (fresh)
            put_function(p, number, frame->function, frame->source ? frame->source : frame->file);
        return number;
    }
    if (frame->file)
        snprintf(text, sizeof(text), "%s+0x%" PRIx64, slash ? slash + 1 : frame->file,
                 frame->place);
    else
        snprintf(text, sizeof(text), "0x%" PRIx64, frame->address);
    put_function(p, ++p->functions.count, text, frame->file);
    return p->functions.count;
}

static uint64_t mapping_of(struct profiling *p, const char *file)
{
    char clean[NAME_BYTES];
    const struct pprof_mapping row = {.file = shown(file, clean), .build_id = ""};
    bool fresh;
    size_t number = number_of(p, &p->files, &file, sizeof(file), &fresh);

    if (fresh)
        pprof_mapping(p->out, number, &row);
    return number;
}

static uint64_t location_of(struct profiling *p, const struct prcb_frame *frame)
{
    const struct location row = {frame->function, frame->file, frame->place, frame->address};
    bool interpreted = !frame->address && frame->place, fresh;
    size_t number = number_of(p, &p->locations, &row, sizeof(row), &fresh);
    struct pprof_location location = {.line = (int64_t)(interpreted ? frame->place : frame->line)};

    if (!fresh)
        return number;
    if (!interpreted)
        location.address = frame->file ? frame->place : frame->address;
    if (!interpreted && frame->file)
        location.mapping = mapping_of(p, frame->file);
    location.function = function_of(p, frame);
    pprof_location(p->out, number, &location);
    return number;
}

static uint64_t location_of_word(struct profiling *p, const char *word)
{
    const struct prcb_frame frame = {.function = word};

    return location_of(p, &frame);
}

/* ---- labels ---------------------------------------------------------------------- */

/* The labels of one row of the report; those of a part follow. */
struct labels {
    struct pprof_label rows[LABELS];
    size_t count;
};

static void put_text(struct profiling *p, struct labels *to, enum label label, const char *text)
{
    char clean[NAME_BYTES];

    if (text && *text)
        to->rows[to->count++] =
            (struct pprof_label){p->keys[label], text_of(p, shown(text, clean)), 0};
}

static void label_process(struct profiling *p, const struct why_process *process,
                          struct labels *ret)
{
    const char *name = table_find(&p->names, (uint32_t)process->pid);
    const char *path =
        p->cgroups && process->cgroup ? cgroup_names_find(p->cgroups, process->cgroup) : NULL;
    struct cgroup_identity is = {.unit = ""};
    char text[sizeof(process->comm) + 1];

    *ret = (struct labels){.count = 0};
    snprintf(text, sizeof(text), "%.*s", (int)sizeof(process->comm), process->comm);
    put_text(p, ret, THREAD, text);
    snprintf(text, sizeof(text), "%.*s", (int)sizeof(process->comm), name ? name : "");
    put_text(p, ret, PROCESS, process->pid ? text : "kernel threads");
    if (process->pid)
        ret->rows[ret->count++] = (struct pprof_label){p->keys[PID], 0, process->pid};
    if (path)
        cgroup_identify(path, &is);
    put_text(p, ret, CGROUP, path);
    put_text(p, ret, UNIT, is.unit);
    put_text(p, ret, CONTAINER, *is.container ? is.container : is.machine);
    put_text(p, ret, POD, is.pod);
}

/* By these, backends lead from a trace to its profile and back. */
static void label_span(struct profiling *p, struct labels *to, const struct prcb_stack *stack)
{
    char trace[2 * sizeof(stack->span.trace_id) + 1], span[2 * sizeof(stack->span.span_id) + 1];

    if (stack->span_state != PRCB_SPAN_THERE)
        return;
    text_hex(stack->span.trace_id, sizeof(stack->span.trace_id), trace);
    text_hex(stack->span.span_id, sizeof(stack->span.span_id), span);
    put_text(p, to, TRACE, trace);
    put_text(p, to, SPAN, span);
}

static void put_sample(struct profiling *p, struct labels *labels, uint64_t *locations,
                       size_t count, uint64_t ns)
{
    int64_t value = (int64_t)ns;
    const struct pprof_sample sample = {.locations = locations,
                                        .location_count = count,
                                        .values = &value,
                                        .value_count = 1,
                                        .labels = labels->rows,
                                        .label_count = labels->count};

    if (ns && pprof_sample(p->out, &sample))
        p->failed = true;
}

/* Writes time without a stack. */
static void put_word(struct profiling *p, const struct labels *of, const char *cause,
                     const char *word, uint64_t ns)
{
    struct labels labels = *of;
    uint64_t location = location_of_word(p, word);

    put_text(p, &labels, CAUSE, cause);
    put_sample(p, &labels, &location, 1, ns);
}

static void put_part(struct profiling *p, const struct labels *of, const struct why_part *part)
{
    const char *cause = why_cause_name(part->cause);
    const struct prcb_stack *stack = &part->stack;
    struct labels labels = *of;
    uint64_t *locations;

    if (part->kind != WHY_STACK && part->idle_ns)
        put_text(p, &labels, IDLE, "by design");
    if (part->kind != WHY_STACK || !stack->frame_count) {
        put_word(p, &labels, cause,
                 part->kind == WHY_STACK ? why_part_name(WHY_UNREADABLE)
                                         : why_part_name(part->kind),
                 part->ns);
        return;
    }
    locations = malloc(stack->frame_count * sizeof(*locations));
    if (!locations) {
        p->failed = true;
        return;
    }
    for (uint32_t i = 0; i < stack->frame_count; i++)
        locations[i] = location_of(p, &stack->frames[i]);
    put_text(p, &labels, CAUSE, cause);
    put_text(p, &labels, WAY, stack->word);
    put_text(p, &labels, IDLE,
             stack->kind == PRCB_STACK_IDLE     ? "by design"
             : stack->kind == PRCB_STACK_EITHER ? "perhaps"
                                                : "");
    if (p->spans)
        label_span(p, &labels, stack);
    put_sample(p, &labels, locations, stack->frame_count, part->ns);
    free(locations);
}

/* ---- the whole ------------------------------------------------------------------- */

static bool is_lock(const struct why_cause *cause)
{
    return cause_traits(cause->cause)->class == CAUSE_CLASS_LOCK;
}

static void put_cause(struct profiling *p, const struct labels *labels,
                      const struct why_cause *cause, enum why_profile profile)
{
    if (profile == WHY_PROFILE_LOCK && !is_lock(cause))
        return;
    for (size_t i = 0; i < cause->part_count; i++) {
        if (profile == WHY_PROFILE_WAIT || !cause->parts[i].idle_ns)
            put_part(p, labels, &cause->parts[i]);
    }
}

static void put_process(struct profiling *p, const struct why_process *process,
                        enum why_profile profile)
{
    struct labels labels;

    label_process(p, process, &labels);
    if (profile == WHY_PROFILE_RUN) {
        put_word(p, &labels, NULL, "[running]", process->run_ns);
        return;
    }
    if (profile == WHY_PROFILE_WAIT)
        put_word(p, &labels, "ready", "[ready]", process->ready_ns);
    for (size_t i = 0; i < process->cause_count; i++)
        put_cause(p, &labels, &process->causes[i], profile);
}

static void put_head(struct profiling *p, const struct why_pprof *output)
{
    bool run = output->profile == WHY_PROFILE_RUN;
    struct timespec now;
    struct pprof_head head = {.period = 1, .duration_ns = (int64_t)output->wall_ns};

    clock_gettime(CLOCK_REALTIME, &now);
    head.time_ns = now.tv_sec * 1000000000 + now.tv_nsec - head.duration_ns;
    head.type = pprof_type(p->out, run ? "cpu" : "off_cpu", "nanoseconds");
    pprof_head(p->out, &head);
}

/* Says what the accounts have, so that a reader can compare its sums. */
static void put_totals(struct profiling *p, const struct why_report *report)
{
    uint64_t run = 0, ready = 0, wait = 0, idle = 0, lock = 0;
    char text[256];

    for (size_t i = 0; i < report->count; i++) {
        run += report->processes[i].run_ns;
        ready += report->processes[i].ready_ns;
        wait += report->processes[i].wait_ns;
        idle += report->processes[i].idle_ns;
        for (size_t k = 0; k < report->processes[i].cause_count; k++) {
            const struct why_cause *cause = &report->processes[i].causes[k];

            lock += is_lock(cause) ? cause->ns - cause->idle_ns : 0;
        }
    }
    snprintf(text, sizeof(text),
             "prcb " PRCB_VERSION ": run_ns=%" PRIu64 " ready_ns=%" PRIu64 " wait_ns=%" PRIu64
             " idle_ns=%" PRIu64 " lock_ns=%" PRIu64,
             run, ready, wait, idle, lock);
    pprof_comment(p->out, text);
}

static void put_all(struct profiling *p, const struct why_pprof *output)
{
    const struct why_report *report = output->report;

    for (size_t i = 0; i < LABELS; i++)
        p->keys[i] = pprof_string(p->out, label_names[i]);
    for (size_t i = 0; i < report->count; i++) {
        if (report->processes[i].first && report->processes[i].pid &&
            table_put(&p->names, (uint32_t)report->processes[i].pid, report->processes[i].comm))
            p->failed = true;
    }
    put_head(p, output);
    put_totals(p, report);
    if (output->note)
        pprof_comment(p->out, output->note);
    for (size_t i = 0; i < report->count; i++)
        put_process(p, &report->processes[i], output->profile);
}

int why_write_pprof(FILE *out, const struct why_pprof *output)
{
    struct profiling p = {.spans = output->spans};
    struct prcb_error err;

    if (pprof_open(out, output->plain, &p.out))
        return -ENOMEM;
    if (cgroup_names_open(NULL, &p.cgroups, &err))
        p.failed = true;
    else
        put_all(&p, output);
    p.failed |= pprof_close(p.out) != 0;
    cgroup_names_close(p.cgroups);
    row_numbers_free(&p.texts);
    free(p.places);
    row_numbers_free(&p.files);
    row_numbers_free(&p.functions);
    row_numbers_free(&p.locations);
    table_free(&p.names);
    return p.failed ? -ENOMEM : 0;
}

bool why_has_pprof(void)
{
    return true;
}

#else

int why_write_pprof(FILE *out, const struct why_pprof *output)
{
    (void)out;
    (void)output;
    return -EOPNOTSUPP;
}

bool why_has_pprof(void)
{
    return false;
}

#endif
