/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The JSON of an account and of a processor follows from the rows of figures; the rest of a look
 * is named here, once for the reader and once for the writer. JSON has text alone: a name that is
 * none is there twice, NAME as people read it and NAME_bytes as it is, in hexadecimal digits.
 */
#include "replay.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "cause.h"
#include "error.h"
#include "inside.h"
#include "now.h"
#include "text.h"

#define NS_PER_MS      UINT64_C(1000000)
#define PROCESSORS_MAX 4096

struct replay {
    FILE *in;
    char *path;
    double scale;
    uint64_t began; /* CLOCK_MONOTONIC, ns */
    unsigned line;
    struct json_object *next; /* the look that is not due yet; NULL: there is none */
    uint64_t first_ms, next_ms;
};

/* ---- reading ---- */

static bool number_in(struct json_object *object, const char *name, uint64_t *ret)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_int))
        return false;
    *ret = json_object_get_uint64(value);
    return true;
}

static const char *text_in(struct json_object *object, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : NULL;
}

static bool is_true(struct json_object *object, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(object, name, &value) &&
           json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

/* An element that is a list or an object; NULL: there is none of this type. */
static struct json_object *part_in(struct json_object *object, const char *name,
                                   enum json_type type)
{
    struct json_object *value;

    return json_object_object_get_ex(object, name, &value) && json_object_is_type(value, type)
               ? value
               : NULL;
}

static void copy_text(char *ret, size_t size, const char *text)
{
    if (text)
        snprintf(ret, size, "%s", text);
}

/* Reads as many bytes as there are pairs of digits and room for; "": none. */
static void copy_bytes(char *ret, size_t size, const char *digits)
{
    unsigned byte;

    while (size-- > 1 && isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1]) &&
           sscanf(digits, "%2x", &byte) == 1) {
        *ret++ = (char)byte;
        digits += 2;
    }
    *ret = '\0';
}

/* Reads the numbers of the rows. Returns the bits of those that are there. */
static uint64_t read_figures(struct json_object *from, const struct figure *rows, void *record)
{
    uint64_t present = 0, value;

    for (const struct figure *row = rows; row->name; row++) {
        uint32_t narrow;

        if (!row->width || !number_in(from, row->name, &value))
            continue;
        narrow = (uint32_t)value;
        memcpy((char *)record + row->offset, row->width == 4 ? (void *)&narrow : (void *)&value,
               row->width);
        present |= row->present;
    }
    return present;
}

/* The number at a place of a list; 0 where there is none. */
static uint64_t number_at(struct json_object *list, size_t place)
{
    struct json_object *value =
        json_object_is_type(list, json_type_array) ? json_object_array_get_idx(list, place) : NULL;

    return value && json_object_is_type(value, json_type_int) ? json_object_get_uint64(value) : 0;
}

static void read_account(struct json_object *from, struct prcb_account *ret)
{
    struct json_object *waits = part_in(from, "waits", json_type_object);
    uint64_t number;

    *ret = (struct prcb_account){.size = sizeof(*ret)};
    ret->present = read_figures(from, account_figures, ret);
    number_in(from, "key", &ret->key);
    if (number_in(from, "tid", &number))
        ret->tid = (pid_t)number;
    if (number_in(from, "pid", &number))
        ret->pid = (pid_t)number;
    copy_text(ret->comm, sizeof(ret->comm), text_in(from, "comm"));
    if (text_in(from, "comm_bytes"))
        copy_bytes(ret->comm, sizeof(ret->comm), text_in(from, "comm_bytes"));
    if (number_in(from, "cgroup", &ret->cgroup))
        ret->present |= PRCB_HAS_CGROUP;
    ret->flags = (is_true(from, "exited") ? PRCB_ACCOUNT_EXITED : 0u) |
                 (is_true(from, "running") ? PRCB_ACCOUNT_RUNNING : 0u) |
                 (is_true(from, "kernel") ? PRCB_ACCOUNT_KTHREAD : 0u);
    ret->open.cause = cause_by_name(text_in(from, "open"));
    if (!waits)
        return;
    ret->present |= PRCB_HAS_WAITS;
    json_object_object_foreach(waits, name, cell)
    {
        uint32_t cause = cause_by_name(name);

        if (cause)
            ret->waits[cause] = (struct prcb_wait){number_at(cell, 0), number_at(cell, 1)};
    }
}

static const char *text_at(struct json_object *list, size_t place)
{
    struct json_object *value =
        json_object_is_type(list, json_type_array) ? json_object_array_get_idx(list, place) : NULL;

    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static uint32_t by_number(const char *name)
{
    uint32_t by = PRCB_BY_UNKNOWN;

    while (prcb_edge_by_name(by) && strcmp(prcb_edge_by_name(by), name))
        by++;
    return prcb_edge_by_name(by) ? by : PRCB_BY_UNKNOWN;
}

/* Adds edges of an account: behind whom its thread was ready, or who held locks. 0 or -ENOMEM. */
static int read_edges(struct json_object *from, const char *name, uint32_t kind, struct metrics *m,
                      uint64_t key)
{
    struct json_object *behind = part_in(from, name, json_type_array);
    const struct prcb_edge none = {.kind = kind, .by = PRCB_BY_REST};
    int result = behind ? metrics_add_edge(m, key, &none) : 0;

    for (size_t i = 0; behind && i < json_object_array_length(behind) && !result; i++) {
        struct json_object *cell = json_object_array_get_idx(behind, i);
        struct prcb_edge edge = {.kind = kind,
                                 .cgroup = number_at(cell, 0),
                                 .tid = (pid_t)number_at(cell, 0),
                                 .ns = number_at(cell, 1),
                                 .by = by_number(text_at(cell, 2))};

        result = metrics_add_edge(m, key, &edge);
    }
    return result;
}

static void read_processor(struct json_object *from, struct prcb_processor *ret)
{
    struct json_object *states = part_in(from, "idle_states", json_type_array);
    uint64_t number;

    *ret = (struct prcb_processor){.size = sizeof(*ret)};
    ret->present = read_figures(from, processor_figures, ret);
    if (number_in(from, "number", &number))
        ret->number = (uint32_t)number;
    ret->flags = is_true(from, "online") ? PRCB_CPU_ONLINE : 0u;
    if (!states)
        return;
    ret->present |= PRCB_CPU_HAS_IDLE_STATES;
    for (size_t i = 0; i < json_object_array_length(states) && i < PRCB_IDLE_STATES_MAX; i++) {
        struct json_object *state = json_object_array_get_idx(states, i);
        struct prcb_idle_state *to = &ret->idle_states[ret->idle_state_count++];
        struct json_object *name = json_object_is_type(state, json_type_array)
                                       ? json_object_array_get_idx(state, 0)
                                       : NULL;

        copy_text(to->name, sizeof(to->name),
                  json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "");
        to->entries = number_at(state, 1);
        to->residency_ns = number_at(state, 2);
    }
}

static void read_cgroups(struct json_object *look, struct metrics *m)
{
    struct json_object *cgroups = part_in(look, "cgroups", json_type_object);
    struct json_object *bytes = part_in(look, "cgroups_bytes", json_type_object);

    if (!cgroups)
        return;
    json_object_object_foreach(cgroups, id, path)
    {
        const char *digits = bytes ? text_in(bytes, id) : NULL;
        char name[PATH_MAX];

        if (digits)
            copy_bytes(name, sizeof(name), digits);
        if (json_object_is_type(path, json_type_string))
            cgroup_names_tell(m->names, strtoull(id, NULL, 10),
                              digits ? name : json_object_get_string(path));
    }
}

static void read_host(struct json_object *look, struct metrics *m)
{
    struct prcb_status status = {.size = sizeof(status)};
    const char *tier = text_in(look, "tier");
    uint64_t number;

    number_in(look, "started_ns", &m->started);
    for (int i = PRCB_TIER_AUTO; tier && i <= PRCB_TIER_DAEMON; i++) {
        if (!strcmp(tier, prcb_tier_name((enum prcb_tier)i)))
            m->tier = (enum prcb_tier)i;
    }
    number_in(look, "look_ns", &m->look_ns);
    number_in(look, "processes", &m->host.processes);
    number_in(look, "processes_limit", &m->host.processes_limit);
    number_in(look, "booted_ns", &m->host.booted_ns);
    copy_text(m->host.name, sizeof(m->host.name), text_in(look, "hostname"));
    copy_text(m->host.system, sizeof(m->host.system), text_in(look, "system"));
    copy_text(m->host.release, sizeof(m->host.release), text_in(look, "release"));
    if (number_in(look, "max_threads", &number))
        status.max_threads = (uint32_t)number;
    number_in(look, "untracked_threads", &status.untracked_threads);
    status.recursion_misses = UINT64_MAX;
    number_in(look, "recursion_misses", &status.recursion_misses);
    metrics_set_status(m, &status);
    read_cgroups(look, m);
}

static void read_ready(struct json_object *look, struct metrics *m)
{
    struct json_object *ready = part_in(look, "ready_latency", json_type_object), *buckets;

    if (!ready)
        return;
    m->has_ready = true;
    number_in(ready, "ns", &m->ready.ns);
    buckets = part_in(ready, "buckets", json_type_array);
    for (size_t i = 0; buckets && i < PRCB_TAIL_BUCKETS; i++)
        m->ready.buckets[i] = i < json_object_array_length(buckets) ? number_at(buckets, i) : 0;
}

static int make_look(struct json_object *look, struct metrics *m, struct prcb_error *err)
{
    struct json_object *accounts = part_in(look, "accounts", json_type_array);
    struct json_object *processors = part_in(look, "processors", json_type_array);
    size_t count = processors ? json_object_array_length(processors) : 0;
    struct prcb_processor *records = NULL;

    metrics_begin(m);
    read_host(look, m);
    for (size_t i = 0; accounts && i < json_object_array_length(accounts); i++) {
        struct json_object *from = json_object_array_get_idx(accounts, i);
        struct prcb_account account;

        if (!json_object_is_type(from, json_type_object))
            continue;
        read_account(from, &account);
        if (read_edges(from, "meanwhile", PRCB_EDGE_MEANWHILE, m, account.key) ||
            read_edges(from, "held", PRCB_EDGE_HELD_BY, m, account.key) || metrics_add(m, &account))
            return prcb_fail(err, -ENOMEM, "out of memory");
    }
    count = count < PROCESSORS_MAX ? count : PROCESSORS_MAX;
    if (count) {
        records = calloc(count, sizeof(*records));
        if (!records)
            return prcb_fail(err, -ENOMEM, "out of memory");
        for (size_t i = 0; i < count; i++) {
            struct json_object *from = json_object_array_get_idx(processors, i);

            if (json_object_is_type(from, json_type_object))
                read_processor(from, &records[i]);
        }
        metrics_set_processors(m, records, (uint32_t)count);
        free(records);
    }
    read_ready(look, m);
    metrics_end(m, NULL, NULL);
    number_in(look, "look_ns", &m->look_ns); /* of then */
    return 0;
}

/* Reads the next line, if there is one. A line whose time is not later than that of the line
 * before counts as of the same time. */
static int read_line(struct replay *replay, struct prcb_error *err)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length = getline(&line, &room, replay->in);
    uint64_t ms;

    json_object_put(replay->next);
    replay->next = NULL;
    replay->line++;
    if (length < 0) {
        free(line);
        return ferror(replay->in)
                   ? prcb_fail(err, -EIO, "%s: %s", replay->path, strerror(errno ? errno : EIO))
                   : 0;
    }
    replay->next = json_tokener_parse(line);
    free(line);
    if (!json_object_is_type(replay->next, json_type_object) ||
        !number_in(replay->next, "ms", &ms) ||
        !part_in(replay->next, "accounts", json_type_array)) {
        json_object_put(replay->next);
        replay->next = NULL;
        return prcb_fail(
            err, -EINVAL,
            "%s: line %u is not a reading: needs an object with \"ms\" and \"accounts\"",
            replay->path, replay->line);
    }
    if (ms > replay->next_ms)
        replay->next_ms = ms;
    return 0;
}

int replay_open(const char *path, double scale, struct replay **ret, struct prcb_error *err)
{
    struct replay *replay = calloc(1, sizeof(*replay));
    int result = 0;

    if (!replay || !(replay->path = strdup(path))) {
        free(replay);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    replay->scale = scale;
    replay->in = fopen(path, "re");
    if (!replay->in)
        result = prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    else
        result = read_line(replay, err);
    if (!result && !replay->next)
        result = prcb_fail(err, -EINVAL, "%s: contains no reading", path);
    if (result) {
        replay_close(replay);
        return result;
    }
    *ret = replay;
    return 0;
}

int replay_look(struct replay *replay, struct metrics *m, struct prcb_error *err)
{
    uint64_t now = now_ns();
    double passed = HUGE_VAL;
    int result = 0;

    /* Time starts with the first look, at that look's own time. */
    if (!replay->began) {
        replay->began = now;
        replay->first_ms = replay->next_ms;
    }
    if (replay->scale > 0)
        passed = (double)replay->first_ms +
                 (double)(now - replay->began) / (double)NS_PER_MS * replay->scale;
    while (!result && replay->next && (double)replay->next_ms <= passed) {
        result = make_look(replay->next, m, err);
        if (!result)
            result = read_line(replay, err);
    }
    return result;
}

void replay_close(struct replay *replay)
{
    if (!replay)
        return;
    json_object_put(replay->next);
    if (replay->in)
        fclose(replay->in);
    free(replay->path);
    free(replay);
}

/* ---- writing ---- */

struct replay_writer {
    FILE *out;
    uint64_t began;
    char *text; /* accounts of the look that is being made */
    size_t size;
    FILE *accounts; /* into text */
    int failed;     /* -errno */
};

int replay_writer_open(const char *path, struct replay_writer **ret, struct prcb_error *err)
{
    struct replay_writer *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return prcb_fail(err, -ENOMEM, "out of memory");
    writer->out = fopen(path, "we");
    if (!writer->out) {
        int result = prcb_fail(err, -errno, "%s: %s", path, strerror(errno));

        free(writer);
        return result;
    }
    *ret = writer;
    return 0;
}

static void write_text(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\"%s\":\"", name);
    text_print(out, TEXT_JSON, text);
    fputc('"', out);
}

static bool is_text(const char *name)
{
    uint32_t code;
    size_t length;

    while (*name && (length = text_character(name, &code)))
        name += length;
    return !*name;
}

static void write_bytes(FILE *out, const char *name)
{
    while (*name)
        fprintf(out, "%02x", (unsigned char)*name++);
}

static void write_number(FILE *out, const char *name, uint64_t number)
{
    fprintf(out, ",\"%s\":%" PRIu64, name, number);
}

static void write_figures(FILE *out, const struct figure *rows, const void *record,
                          uint64_t present)
{
    for (const struct figure *row = rows; row->name; row++) {
        if (row->width && present & row->present)
            write_number(out, row->name, figure_get(row, record));
    }
}

void replay_writer_begin(struct replay_writer *writer)
{
    if (writer->accounts)
        fclose(writer->accounts);
    free(writer->text);
    writer->text = NULL;
    writer->accounts = open_memstream(&writer->text, &writer->size);
    if (!writer->accounts)
        writer->failed = -ENOMEM;
}

/* Who ran while it was ready, or held its locks: cgroup or thread, nanoseconds, by. */
static void write_edges(FILE *out, const char *name, const struct blame_cells *of)
{
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < of->count; i++) {
        const struct blame_cell *cell = &of->cells[i];

        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",\"%s\"]", i ? "," : "", cell->who, cell->ns,
                prcb_edge_by_name(cell->by));
    }
    fputc(']', out);
}

void replay_writer_add(struct replay_writer *writer, const struct metrics *m,
                       const struct prcb_account *a)
{
    const struct prcb_cause_info *open = prcb_cause_info(a->open.cause);
    FILE *out = writer->accounts;
    const char *before = "";

    if (!out)
        return;
    fprintf(out, "%s{\"key\":%" PRIu64, ftell(out) ? "," : "", a->key);
    write_number(out, "tid", (uint64_t)a->tid);
    write_number(out, "pid", (uint64_t)a->pid);
    write_text(out, "comm", a->comm);
    if (!is_text(a->comm)) {
        fputs(",\"comm_bytes\":\"", out);
        write_bytes(out, a->comm);
        fputc('"', out);
    }
    if (a->present & PRCB_HAS_CGROUP)
        write_number(out, "cgroup", a->cgroup);
    fputs(a->flags & PRCB_ACCOUNT_EXITED    ? ",\"exited\":true"
          : a->flags & PRCB_ACCOUNT_RUNNING ? ",\"running\":true"
                                            : "",
          out);
    fputs(a->flags & PRCB_ACCOUNT_KTHREAD ? ",\"kernel\":true" : "", out);
    write_figures(out, account_figures, a, a->present);
    if (open && a->open.cause)
        write_text(out, "open", open->name);
    if (a->present & PRCB_HAS_WAITS) {
        fputs(",\"waits\":{", out);
        for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
            const struct prcb_wait *wait = &a->waits[cause];

            if (!prcb_cause_info(cause) || (!wait->count && !wait->ns))
                continue;
            fprintf(out, "%s\"%s\":[%" PRIu64 ",%" PRIu64 "]", before, prcb_cause_info(cause)->name,
                    wait->count, wait->ns);
            before = ",";
        }
        fputc('}', out);
    }
    if (m->blaming.key == a->key) {
        write_edges(out, "meanwhile", &m->blaming.of[BLAME_READY]);
        write_edges(out, "held", &m->blaming.of[BLAME_LOCKS]);
    }
    fputc('}', out);
}

static void write_processor(FILE *out, const struct prcb_processor *p, const char *before)
{
    fprintf(out, "%s{\"number\":%u,\"online\":%s", before, p->number,
            p->flags & PRCB_CPU_ONLINE ? "true" : "false");
    write_figures(out, processor_figures, p, p->present);
    if (p->present & PRCB_CPU_HAS_IDLE_STATES) {
        fputs(",\"idle_states\":[", out);
        for (uint32_t i = 0; i < p->idle_state_count && i < PRCB_IDLE_STATES_MAX; i++) {
            fputs(i ? ",[\"" : "[\"", out);
            text_print(out, TEXT_JSON, p->idle_states[i].name);
            fprintf(out, "\",%" PRIu64 ",%" PRIu64 "]", p->idle_states[i].entries,
                    p->idle_states[i].residency_ns);
        }
        fputc(']', out);
    }
    fputc('}', out);
}

static void write_cgroup(void *ctx, uint64_t cgroup, const char *path)
{
    FILE *out = ctx;

    fprintf(out, ",\"%" PRIu64 "\":\"", cgroup);
    text_print(out, TEXT_JSON, path);
    fputc('"', out);
}

static void write_cgroup_bytes(void *ctx, uint64_t cgroup, const char *path)
{
    FILE *out = ctx;

    if (is_text(path))
        return;
    fprintf(out, ",\"%" PRIu64 "\":\"", cgroup);
    write_bytes(out, path);
    fputc('"', out);
}

static void write_ready(FILE *out, const struct prcb_tail *ready)
{
    fprintf(out, ",\"ready_latency\":{\"ns\":%" PRIu64 ",\"buckets\":[", ready->ns);
    for (size_t i = 0; i < PRCB_TAIL_BUCKETS; i++)
        fprintf(out, "%s%" PRIu64, i ? "," : "", ready->buckets[i]);
    fputs("]}", out);
}

void replay_writer_end(struct replay_writer *writer, const struct metrics *m)
{
    FILE *out = writer->out;
    const struct metrics_host *host = &m->host;

    if (!writer->accounts || fclose(writer->accounts)) {
        writer->accounts = NULL;
        return;
    }
    writer->accounts = NULL;
    writer->began = writer->began ? writer->began : m->looked_at;
    fprintf(out, "{\"ms\":%" PRIu64, (m->looked_at - writer->began) / NS_PER_MS);
    write_number(out, "started_ns", m->started);
    write_number(out, "look_ns", m->look_ns);
    write_text(out, "tier", prcb_tier_name(m->tier));
    write_number(out, "max_threads", m->status.max_threads);
    write_number(out, "untracked_threads", m->status.untracked_threads);
    if (m->status.recursion_misses != UINT64_MAX)
        write_number(out, "recursion_misses", m->status.recursion_misses);
    write_text(out, "hostname", host->name);
    write_text(out, "system", host->system);
    write_text(out, "release", host->release);
    write_number(out, "processes", host->processes);
    write_number(out, "processes_limit", host->processes_limit);
    write_number(out, "booted_ns", host->booted_ns);
    if (m->has_ready)
        write_ready(out, &m->ready);
    fputs(",\"cgroups\":{\"0\":\"\"", out); /* 0 is no cgroup: so each comes behind a comma */
    metrics_known_cgroups(m, write_cgroup, out);
    fputs("},\"cgroups_bytes\":{\"0\":\"\"", out);
    metrics_known_cgroups(m, write_cgroup_bytes, out);
    fputs("},\"processors\":[", out);
    for (uint32_t i = 0; i < m->processor_count; i++)
        write_processor(out, &m->processors[i], i ? "," : "");
    fprintf(out, "],\"accounts\":[%s]}\n", writer->text);
}

int replay_writer_close(struct replay_writer *writer)
{
    int result;

    if (!writer)
        return 0;
    if (writer->accounts)
        fclose(writer->accounts);
    free(writer->text);
    result = writer->failed;
    if (ferror(writer->out))
        result = errno ? -errno : -EIO;
    if (fclose(writer->out) && !result)
        result = errno ? -errno : -EIO;
    free(writer);
    return result;
}
