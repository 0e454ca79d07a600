/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a profile for pprof. The whole message is never in memory: each of its rows is packed
 * alone, with the field's tag and length before it, and goes through zlib; so a message's parts
 * are written in any order and as often as they occur.
 */
#include <errno.h>

#include "error.h"
#include "export.h"

#ifdef HAVE_PPROF

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <protobuf-c/protobuf-c.h>
#include <sqlite3.h>
#include <zlib.h>

#include "offcpu.h"
#include "pack.h"
#include "profile.pb-c.h"

/* Numbers of those of Profile's fields that are written one by one. */
enum field { SAMPLE_TYPE = 1, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING };

#define TYPES 2 /* of samples: how many, and what they stand for; then one a cause of waiting */
#define RESTS 8 /* reasons why there is no stack */

struct profiling {
    const struct recording *recording;
    FILE *out;
    z_stream zip;
    struct packer packer;
    int64_t strings; /* how many were written */
    int64_t key_thread, key_tid, key_pid;
    int64_t *thread_names;                             /* their texts; 0: not written yet */
    uint64_t *locations;                               /* of a stack, innermost first */
    struct offcpu offcpu;                              /* empty: no stacks of waits */
    const char *causes[PRCB_CAUSE_MAX], *rests[RESTS]; /* of its rows */
    size_t cause_count, rest_count;
};

/* ---- bytes ----------------------------------------------------------------------- */

static void squeeze(struct profiling *p, const void *bytes, size_t count, int flush)
{
    uint8_t chunk[4096];

    p->zip.next_in = (z_const Bytef *)bytes;
    p->zip.avail_in = (uInt)count;
    do {
        p->zip.next_out = chunk;
        p->zip.avail_out = sizeof(chunk);
        deflate(&p->zip, flush);
        fwrite(chunk, 1, sizeof(chunk) - p->zip.avail_out, p->out);
    } while (!p->zip.avail_out);
}

/* Writes a field of bytes: tag, length, content. */
static void put_bytes(struct profiling *p, enum field field, const void *bytes, size_t count)
{
    uint8_t head[PACK_HEAD];

    squeeze(p, head, pack_head(field, count, head), Z_NO_FLUSH);
    squeeze(p, bytes, count, Z_NO_FLUSH);
}

static void put(struct profiling *p, enum field field, const ProtobufCMessage *message)
{
    size_t size;
    const uint8_t *bytes = pack_message(&p->packer, message, &size);

    if (bytes)
        put_bytes(p, field, bytes, size);
}

/* Writes a text and returns its place. Equal texts may be written again. */
static int64_t put_string(struct profiling *p, const char *text)
{
    char *clean = pack_text(text);

    if (!clean) {
        p->packer.failed = true;
        return 0;
    }
    put_bytes(p, STRING, clean, strlen(clean));
    free(clean);
    return p->strings++;
}

/* ---- rows ------------------------------------------------------------------------ */

static void put_functions(struct profiling *p)
{
    const struct recording *r = p->recording;

    for (size_t i = 0; i < r->function_count; i++) {
        Perftools__Profiles__Function row = PERFTOOLS__PROFILES__FUNCTION__INIT;

        row.id = i + 1;
        row.name = row.system_name = put_string(p, r->functions[i].name);
        row.filename = put_string(p, r->functions[i].file);
        put(p, FUNCTION, &row.base);
    }
}

static void put_mappings(struct profiling *p)
{
    const struct recording *r = p->recording;

    for (size_t i = 0; i < r->map_count; i++) {
        Perftools__Profiles__Mapping row = PERFTOOLS__PROFILES__MAPPING__INIT;

        row.id = i + 1;
        row.memory_start = r->maps[i].start;
        row.memory_limit = r->maps[i].start + r->maps[i].length;
        row.file_offset = r->maps[i].file_offset;
        row.filename = put_string(p, r->maps[i].file);
        row.build_id = put_string(p, r->maps[i].build_id);
        row.has_functions = true;
        put(p, MAPPING, &row.base);
    }
}

static void put_locations(struct profiling *p)
{
    const struct recording *r = p->recording;

    for (size_t i = 0; i < r->stack_count; i++) {
        Perftools__Profiles__Location row = PERFTOOLS__PROFILES__LOCATION__INIT;
        Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT, *lines[] = {&line};

        row.id = i + 1;
        row.mapping_id = r->stacks[i].map == SIZE_MAX ? 0 : r->stacks[i].map + 1;
        row.address = r->stacks[i].address;
        if (r->stacks[i].function != SIZE_MAX) {
            line.function_id = r->stacks[i].function + 1;
            row.n_line = 1;
            row.line = lines;
        }
        put(p, LOCATION, &row.base);
    }
}

static void set_label(Perftools__Profiles__Label *label, int64_t key, int64_t text, int64_t number)
{
    perftools__profiles__label__init(label);
    label->key = key;
    label->str = text;
    label->num = number;
}

/* Writes a stack of a thread with its values; rest: the number, from 1, of the reason why there
 * is none. */
static int put_stack(struct profiling *p, size_t thread, size_t stack, size_t rest, int64_t *values)
{
    const struct recording *r = p->recording;
    Perftools__Profiles__Sample row = PERFTOOLS__PROFILES__SAMPLE__INIT;
    Perftools__Profiles__Label labels[3], *places[] = {&labels[0], &labels[1], &labels[2]};

    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index)
        p->locations[row.n_location_id++] = stack + 1;
    if (rest)
        p->locations[row.n_location_id++] = r->stack_count + rest;
    row.location_id = p->locations;
    row.n_value = TYPES + p->cause_count;
    row.value = values;
    if (thread != SIZE_MAX) {
        if (!p->thread_names[thread])
            p->thread_names[thread] = put_string(p, r->threads[thread].name);
        set_label(&labels[0], p->key_thread, p->thread_names[thread], 0);
        set_label(&labels[1], p->key_tid, 0, r->threads[thread].tid);
        set_label(&labels[2], p->key_pid, 0, r->threads[thread].pid);
        row.n_label = 3;
        row.label = places;
    }
    put(p, SAMPLE, &row.base);
    return p->packer.failed ? -ENOMEM : 0;
}

static int put_sample(sqlite3_stmt *statement, void *ctx)
{
    struct profiling *p = ctx;
    int64_t values[TYPES + PRCB_CAUSE_MAX] = {sqlite3_column_int64(statement, 2),
                                              sqlite3_column_int64(statement, 3)};

    return put_stack(p, recording_thread(p->recording, sqlite3_column_int64(statement, 0)),
                     recording_stack(p->recording, sqlite3_column_int64(statement, 1)), 0, values);
}

/* Returns the text's number in a list, to which a new text is added; `most` if that is full. */
static size_t number_of(const char **texts, size_t *count, size_t most, const char *text)
{
    size_t i = 0;

    while (i < *count && strcmp(texts[i], text) != 0)
        i++;
    if (i == *count && i < most)
        texts[(*count)++] = text;
    return i;
}

static int put_waits(struct profiling *p)
{
    int result = 0;

    for (size_t i = 0; i < p->offcpu.count && !result; i++) {
        const struct offcpu_row *row = &p->offcpu.rows[i];
        int64_t values[TYPES + PRCB_CAUSE_MAX] = {0};
        size_t cause = number_of(p->causes, &p->cause_count, p->cause_count, row->cause);
        size_t rest = row->rest ? number_of(p->rests, &p->rest_count, RESTS, row->rest) + 1 : 0;

        if (cause == p->cause_count || rest > RESTS)
            continue;
        values[TYPES + cause] = (int64_t)row->ns;
        result = put_stack(p, row->thread, row->stack, rest, values);
    }
    return result;
}

/* Writes a function and a location for each reason why there is no stack. */
static void put_rests(struct profiling *p)
{
    for (size_t i = 0; i < p->rest_count; i++) {
        Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT;
        Perftools__Profiles__Location row = PERFTOOLS__PROFILES__LOCATION__INIT;
        Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT, *lines[] = {&line};

        function.id = line.function_id = p->recording->function_count + i + 1;
        function.name = function.system_name = put_string(p, p->rests[i]);
        put(p, FUNCTION, &function.base);
        row.id = p->recording->stack_count + i + 1;
        row.n_line = 1;
        row.line = lines;
        put(p, LOCATION, &row.base);
    }
}

static void set_type(struct profiling *p, Perftools__Profiles__ValueType *type, const char *name,
                     const char *unit)
{
    perftools__profiles__value_type__init(type);
    type->type = put_string(p, name);
    type->unit = put_string(p, unit);
}

/* Returns when the recording was begun: seconds since 1970, from the fact in words. */
static int64_t started(const struct recording *r)
{
    char *text = recording_fact(r, "started");
    struct tm parts = {0};
    int64_t seconds = 0;

    if (text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts))
        seconds = timegm(&parts);
    free(text);
    return seconds;
}

/* Writes the fields that are not lists as a message of their own: parts of a message that are
 * written one behind the other are one message. */
static void put_head(struct profiling *p, const Perftools__Profiles__ValueType *type)
{
    const struct recording *r = p->recording;
    Perftools__Profiles__Profile head = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__ValueType period = *type;
    char *hz = recording_fact(r, "frequency"), *each = recording_fact(r, "period");
    const uint8_t *bytes;
    size_t size;

    head.time_nanos = started(r) * 1000000000;
    head.duration_nanos = (int64_t)(r->end_ns - r->start_ns);
    head.default_sample_type = type->type;
    head.period_type = &period;
    if (each)
        head.period = atoll(each);
    else if (hz && atoll(hz) > 0)
        head.period = 1000000000 / atoll(hz);
    bytes = pack_message(&p->packer, &head.base, &size);
    if (bytes)
        squeeze(p, bytes, size, Z_NO_FLUSH);
    free(hz);
    free(each);
}

static int put_all(struct profiling *p, struct prcb_error *err)
{
    const struct recording *r = p->recording;
    char *event = recording_fact(r, "event");
    bool clock = recording_counts_ns(r);
    Perftools__Profiles__ValueType types[TYPES];
    int result;

    for (size_t i = 0; i < p->offcpu.count; i++)
        number_of(p->causes, &p->cause_count, PRCB_CAUSE_MAX, p->offcpu.rows[i].cause);
    put_string(p, "");
    set_type(p, &types[0], "samples", "count");
    set_type(p, &types[1],
             clock   ? "cpu"
             : event ? event
                     : "events",
             clock ? "nanoseconds" : "count");
    free(event);
    put(p, SAMPLE_TYPE, &types[0].base);
    put(p, SAMPLE_TYPE, &types[1].base);
    for (size_t i = 0; i < p->cause_count; i++) {
        Perftools__Profiles__ValueType wait;
        char name[64];

        snprintf(name, sizeof(name), "wait%s%s", *p->causes[i] ? "_" : "", p->causes[i]);
        set_type(p, &wait, name, "nanoseconds");
        put(p, SAMPLE_TYPE, &wait.base);
    }
    put_head(p, &types[1]);
    p->key_thread = put_string(p, "thread");
    p->key_tid = put_string(p, "tid");
    p->key_pid = put_string(p, "pid");
    put_mappings(p);
    put_functions(p);
    put_locations(p);
    result = recording_query(r,
                             "SELECT thread, stack, count(*), sum(weight) FROM samples "
                             "GROUP BY thread, stack",
                             put_sample, p, err);
    if (!result)
        result = put_waits(p);
    put_rests(p);
    return result;
}

int export_pprof(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct profiling p = {.recording = recording, .out = out};
    int result = 0;

    p.thread_names = calloc(recording->thread_count + 1, sizeof(*p.thread_names));
    p.locations = malloc((recording->stack_count + 2) * sizeof(*p.locations));
    if (!p.thread_names || !p.locations ||
        deflateInit2(&p.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16 /* gzip */, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(p.thread_names);
        free(p.locations);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    if (recording->has_wait_stacks)
        result = offcpu_make(recording, &p.offcpu, err);
    if (!result)
        result = put_all(&p, err);
    if (!result && p.packer.failed)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    squeeze(&p, "", 0, Z_FINISH);
    deflateEnd(&p.zip);
    offcpu_free(&p.offcpu);
    free(p.packer.bytes);
    free(p.thread_names);
    free(p.locations);
    return result;
}

#else

int export_pprof(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    return prcb_fail(err, -EOPNOTSUPP,
                     "this prcb was built without protobuf-c or zlib, which --pprof needs (meson "
                     "option 'pprof')");
}

#endif
