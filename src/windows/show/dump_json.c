/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dump -j and --ndjson: one object a file, on one line. Numbers are as stored; addresses are
 * hex strings; what the dump does not hold is null.
 */
#include "dump_show.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <prcb/prcb.h>

#include "json_doc.h"
#include "json_stream.h"

static void put_known(struct json_stream *w, const char *name, uint64_t value)
{
    if (value)
        json_stream_number(w, name, value);
    else
        json_stream_null(w, name);
}

static void put_value(struct json_stream *w, const char *name, const struct prcb_dump_value *v,
                      bool is_address)
{
    if (!v->found_by)
        json_stream_null(w, name);
    else if (is_address)
        json_stream_address(w, name, v->value);
    else
        json_stream_number(w, name, v->value);
}

/* ---- members ---- */

static int put_member(const struct prcb_dump_member *m, void *ctx)
{
    struct json_stream *w = ctx;

    if (m->is_opaque)
        return 0;
    if (!m->is_held) {
        json_stream_null(w, m->path);
    } else if (m->is_pointer) {
        json_stream_address(w, m->path, m->value);
    } else if (m->is_signed) {
        json_stream_signed(w, m->path, dump_signed(m));
    } else {
        json_stream_number(w, m->path, m->value);
    }
    return 0;
}

static void put_power_state(struct json_stream *w, const struct prcb_dump *d, size_t index,
                            const struct prcb_dump_processor *p)
{
    if (!p->has_power_state) {
        json_stream_null(w, "power_state");
        return;
    }
    json_stream_open(w, "power_state", '{');
    json_stream_number(w, "offset", p->power_offset);
    json_stream_text(w, "found_by", prcb_dump_found_name(p->power_found));
    json_stream_bool(w, "landmark", p->power_confirmed);
    json_stream_text(w, "version", p->power_version);
    json_stream_open(w, "members", '{');
    prcb_dump_structure(d, index, "PROCESSOR_POWER_STATE", put_member, w, NULL, NULL);
    json_stream_close(w, '}');
    json_stream_close(w, '}');
}

/* Writes "name+0x10", or null. */
static void put_place(struct json_stream *w, const char *name, const struct prcb_dump *d,
                      uint64_t address)
{
    char text[128];

    json_stream_text(w, name, prcb_dump_address_text(d, address, text, sizeof(text)) ? NULL : text);
}

static void put_context(struct json_stream *w, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_context c = {.size = sizeof(c)};
    const char *name;
    uint64_t value;

    if (prcb_dump_context(d, index, &c) || !c.found_by) {
        json_stream_null(w, "context");
    } else {
        json_stream_open(w, "context", '{');
        json_stream_text(w, "found_by", prcb_dump_found_name(c.found_by));
        put_place(w, "at", d, c.program_counter);
        json_stream_open(w, "registers", '{');
        for (size_t i = 0; !prcb_dump_register(d, index, i, &name, &value); i++)
            json_stream_address(w, name, value);
        json_stream_close(w, '}');
        json_stream_close(w, '}');
    }
    if (c.irql_found_by)
        json_stream_number(w, "irql", c.irql);
    else
        json_stream_null(w, "irql");
}

struct dpc_writer {
    struct json_stream *w;
    const struct prcb_dump *d;
};

static int put_dpc(const struct prcb_dump_dpc *dpc, void *ctx)
{
    struct dpc_writer *p = ctx;

    json_stream_open(p->w, NULL, '{');
    json_stream_address(p->w, "address", dpc->address);
    json_stream_bool(p->w, "active", dpc->is_active);
    json_stream_bool(p->w, "threaded", dpc->is_threaded);
    if (dpc->is_held)
        json_stream_address(p->w, "routine", dpc->routine);
    else
        json_stream_null(p->w, "routine");
    put_place(p->w, "at", p->d, dpc->is_held ? dpc->routine : dpc->address);
    json_stream_close(p->w, '}');
    return 0;
}

static void put_dpcs(struct json_stream *w, const struct prcb_dump *d, size_t index)
{
    struct dpc_writer p = {w, d};

    json_stream_open(w, "dpcs", '[');
    prcb_dump_dpcs(d, index, put_dpc, &p);
    json_stream_close(w, ']');
}

static void put_ids(struct json_stream *w, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_thread t = {.size = sizeof(t)};

    prcb_dump_thread(d, index, &t);
    if (t.ids_found_by) {
        json_stream_number(w, "id", t.id);
        json_stream_number(w, "process_id", t.process_id);
    } else {
        json_stream_null(w, "id");
        json_stream_null(w, "process_id");
    }
    json_stream_text(w, "ids_found_by", prcb_dump_found_name(t.ids_found_by));
    if (t.process)
        json_stream_address(w, "process", t.process);
    else
        json_stream_null(w, "process");
    json_stream_text(w, "process_name", t.process_name);
    json_stream_text(w, "process_name_found_by", prcb_dump_found_name(t.name_found_by));
}

static void put_thread(struct json_stream *w, const struct prcb_dump *d, size_t index,
                       const struct prcb_dump_processor *p)
{
    static const struct {
        const char *name;
        unsigned int item;
        bool is_address;
    } rows[] = {
        {"State", PRCB_DUMP_ThreadState, false},
        {"WaitReason", PRCB_DUMP_ThreadWaitReason, false},
        {"ContextSwitches", PRCB_DUMP_ThreadContextSwitches, false},
        {"CycleTime", PRCB_DUMP_ThreadCycleTime, false},
        {"KernelTime", PRCB_DUMP_ThreadKernelTime, false},
        {"UserTime", PRCB_DUMP_ThreadUserTime, false},
        {"WaitTime", PRCB_DUMP_ThreadWaitTime, false},
        {"ThreadCounters", PRCB_DUMP_ThreadCounters, true},
    };
    const struct prcb_dump_value *state = &p->items[PRCB_DUMP_ThreadState];
    const struct prcb_dump_value *reason = &p->items[PRCB_DUMP_ThreadWaitReason];

    json_stream_open(w, "thread", '{');
    put_value(w, "address", &p->items[PRCB_DUMP_CurrentThread], true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        put_value(w, rows[i].name, &p->items[rows[i].item], rows[i].is_address);
    json_stream_text(w, "StateName", state->found_by ? dump_thread_state(state->value) : NULL);
    json_stream_text(w, "WaitReasonName",
                     reason->found_by ? prcb_wait_reason_name((uint32_t)reason->value) : NULL);
    put_ids(w, d, index);
    json_stream_close(w, '}');
}

static bool is_address_item(unsigned int item)
{
    return item == PRCB_DUMP_NextThread || item == PRCB_DUMP_IdleThread ||
           item == PRCB_DUMP_ProcessorProfileControlArea || item == PRCB_DUMP_IdleStates ||
           item == PRCB_DUMP_IdleAccounting || item == PRCB_DUMP_ActiveDpc;
}

/* Writes items of the KPRCB itself and its power state, in their order; the thread's have their
 * object. */
static void put_items(struct json_stream *w, const struct prcb_dump_processor *p)
{
    for (unsigned int i = 0; i < PRCB_DUMP_ITEM_COUNT; i++) {
        if (i == PRCB_DUMP_CurrentThread ||
            (i >= PRCB_DUMP_ThreadState && i <= PRCB_DUMP_ThreadCounters))
            continue;
        put_value(w, prcb_dump_item_name(i), &p->items[i], is_address_item(i));
    }
}

static void put_found(struct json_stream *w, const struct prcb_dump_processor *p)
{
    json_stream_open(w, "found_by", '{');
    for (unsigned int i = 0; i < PRCB_DUMP_ITEM_COUNT; i++)
        json_stream_text(w, prcb_dump_item_name(i), prcb_dump_found_name(p->items[i].found_by));
    json_stream_close(w, '}');
}

static int put_structure(struct json_stream *w, const struct prcb_dump *d, size_t index,
                         const char *name, struct prcb_error *err)
{
    struct prcb_dump_structure s = {.size = sizeof(s)};
    int code = prcb_dump_structure(d, index, name, NULL, NULL, &s, err);

    if (code)
        return code;
    json_stream_open(w, "structure", '{');
    json_stream_text(w, "name", s.name);
    if (s.has_address)
        json_stream_address(w, "address", s.address);
    else
        json_stream_null(w, "address");
    json_stream_text(w, "found_by", prcb_dump_found_name(s.found_by));
    json_stream_text(w, "version", s.version);
    json_stream_text(w, "source", s.is_inferred ? "inferred" : NULL);
    json_stream_open(w, "members", '{');
    prcb_dump_structure(d, index, name, put_member, w, NULL, NULL);
    json_stream_close(w, '}');
    json_stream_close(w, '}');
    return 0;
}

static int put_processor(struct json_stream *w, const struct prcb_dump *d, size_t index,
                         const char *structure, struct prcb_error *err)
{
    const struct prcb_dump_processor *p = prcb_dump_processor(d, index);
    int code = 0;

    json_stream_open(w, NULL, '{');
    json_stream_number(w, "number", p->number);
    if (p->has_kprcb)
        json_stream_address(w, "kprcb", p->kprcb);
    else
        json_stream_null(w, "kprcb");
    json_stream_bool(w, "crashing", p->crashing);
    put_items(w, p);
    json_stream_text(w, "vendor", p->vendor[0] ? p->vendor : NULL);
    put_power_state(w, d, index, p);
    put_thread(w, d, index, p);
    put_context(w, d, index);
    put_dpcs(w, d, index);
    put_found(w, p);
    if (structure)
        code = put_structure(w, d, index, structure, err);
    json_stream_close(w, '}');
    return code;
}

static int put_processors(struct json_stream *w, const struct prcb_dump *d,
                          const struct dump_show *show, struct prcb_error *err)
{
    size_t only = 0;
    bool is_one = show->has_cpu || show->thread || show->structure;
    int code = is_one ? dump_choose_cpu(d, show, &only, err) : 0;
    const char *structure = show->structure;

    if (show->thread && !structure)
        structure = "KTHREAD";
    json_stream_open(w, "processors", '[');
    for (size_t i = 0; !code && i < prcb_dump_processor_count(d); i++) {
        if (!is_one || i == only)
            code = put_processor(w, d, i, structure, err);
    }
    json_stream_close(w, ']');
    return code;
}

static void put_exception(struct json_stream *w, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);

    if (!info->exception_code) {
        json_stream_null(w, "exception");
        return;
    }
    json_stream_open(w, "exception", '{');
    json_stream_address(w, "code", info->exception_code);
    json_stream_text(w, "name", prcb_dump_exception_name(info->exception_code));
    json_stream_address(w, "address", info->exception_address);
    put_place(w, "at", d, info->exception_address);
    json_stream_close(w, '}');
}

static void put_modules(struct json_stream *w, const struct prcb_dump *d)
{
    json_stream_open(w, "modules", '[');
    for (size_t i = 0; i < prcb_dump_module_count(d); i++) {
        struct prcb_dump_module m = {.size = sizeof(m)};
        char date[16];

        if (prcb_dump_module(d, i, &m))
            break;
        json_stream_open(w, NULL, '{');
        json_stream_text(w, "name", m.name);
        json_stream_address(w, "base", m.base);
        json_stream_number(w, "size", m.length);
        put_known(w, "timestamp", m.timestamp);
        put_known(w, "checksum", m.checksum);
        json_stream_text(w, "date",
                         dump_date_text(d, m.timestamp, date, sizeof(date)) ? date : NULL);
        json_stream_bool(w, "inbox", prcb_dump_is_inbox(m.name));
        json_stream_bool(w, "unloaded", m.is_unloaded);
        json_stream_close(w, '}');
    }
    json_stream_close(w, ']');
}

struct scan_writer {
    struct json_stream *w;
    const struct prcb_dump *d;
};

static int put_scanned(uint64_t address, uint64_t value, void *ctx)
{
    struct scan_writer *p = ctx;

    json_stream_open(p->w, NULL, '{');
    json_stream_address(p->w, "address", address);
    json_stream_address(p->w, "value", value);
    put_place(p->w, "at", p->d, value);
    json_stream_close(p->w, '}');
    return 0;
}

static void put_stack(struct json_stream *w, const struct prcb_dump *d)
{
    struct scan_writer p = {w, d};

    json_stream_open(w, "stack_scan", '[');
    prcb_dump_stack_scan(d, put_scanned, &p, NULL);
    json_stream_close(w, ']');
}

static void put_bugcheck(struct json_stream *w, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);

    json_stream_open(w, "bugcheck", '{');
    json_stream_number(w, "code", info->bugcheck_code);
    json_stream_address(w, "code_hex", info->bugcheck_code);
    json_stream_text(w, "name", info->bugcheck_name);
    json_stream_open(w, "parameters", '[');
    for (size_t i = 0; i < 4; i++)
        json_stream_address(w, NULL, info->bugcheck_parameters[i]);
    json_stream_close(w, ']');
    json_stream_open(w, "parameter_words", '[');
    for (size_t i = 0; i < 4; i++)
        json_stream_text(w, NULL, info->bugcheck_words[i]);
    json_stream_close(w, ']');
    json_stream_open(w, "parameters_at", '[');
    for (size_t i = 0; i < 4; i++)
        put_place(w, NULL, d, info->bugcheck_parameters[i]);
    json_stream_close(w, ']');
    json_stream_close(w, '}');
}

/* Writes the cause: findings in words, and the module that is likely to blame. */
static void put_verdict(struct json_stream *w, const struct prcb_dump *d)
{
    struct prcb_dump_culprit c = {.size = sizeof(c)};
    const char *text;

    json_stream_open(w, "findings", '[');
    for (size_t i = 0; (text = prcb_dump_finding(d, i)); i++)
        json_stream_text(w, NULL, text);
    json_stream_close(w, ']');
    if (prcb_dump_culprit(d, &c)) {
        json_stream_null(w, "probably_caused_by");
        return;
    }
    json_stream_open(w, "probably_caused_by", '{');
    json_stream_text(w, "module", c.module);
    json_stream_text(w, "found_by", c.found_by);
    if (c.of_frames) {
        json_stream_number(w, "stack_addresses", c.frames);
        json_stream_number(w, "of_stack_addresses", c.of_frames);
    } else {
        json_stream_null(w, "stack_addresses");
        json_stream_null(w, "of_stack_addresses");
    }
    json_stream_bool(w, "unloaded", c.is_unloaded);
    json_stream_bool(w, "inbox", c.is_inbox);
    json_stream_close(w, '}');
}

static const char *source_name(uint8_t source)
{
    static const char *const names[] = {NULL, "dump", "option", "assumed"};

    return names[source];
}

static void begin(struct json_stream *w, const char *path)
{
    json_stream_open(w, NULL, '{');
    json_stream_text(w, "format", json_formats[JSON_DUMP].name);
    json_stream_number(w, "format_version", json_formats[JSON_DUMP].version);
    json_stream_text(w, "file", path);
}

static void put_info(struct json_stream *w, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);
    char time[40] = "";

    json_stream_text(w, "container", info->container);
    json_stream_text(w, "machine", info->machine);
    json_stream_number(w, "build", info->build);
    json_stream_text(w, "release", info->release);
    json_stream_text(w, "layout", info->layout);
    json_stream_text(w, "symbols", info->symbols);
    json_stream_text(w, "kernel_pdb", info->kernel_pdb);
    json_stream_text(w, "computer", info->computer);
    json_stream_text(w, "firmware", info->firmware);
    put_bugcheck(w, d);
    put_exception(w, d);
    put_verdict(w, d);
    put_known(w, "uptime_100ns", info->uptime_100ns);
    put_known(w, "crash_filetime", info->crash_time);
    if (info->crash_time)
        dump_time_text(info->crash_time, time, sizeof(time));
    json_stream_text(w, "crash_time_utc", time[0] ? time : NULL);
    json_stream_number(w, "processor_count", info->header_processors);
    json_stream_number(w, "time_increment_100ns", info->time_increment);
    json_stream_text(w, "time_increment_from", source_name(info->time_increment_source));
    put_known(w, "qpc_hz", info->qpc_frequency);
    json_stream_text(w, "qpc_from", source_name(info->qpc_source));
}

int dump_json(const struct prcb_dump *d, const char *path, const struct dump_show *show, FILE *out,
              struct prcb_error *err)
{
    struct json_stream w = {.out = out};
    const char *note;
    int code = 0;

    begin(&w, path);
    put_info(&w, d);
    if (!show->brief)
        code = put_processors(&w, d, show, err);
    if (show->modules)
        put_modules(&w, d);
    if (show->stack)
        put_stack(&w, d);
    json_stream_open(&w, "notes", '[');
    for (size_t i = 0; (note = prcb_dump_note(d, i)); i++)
        json_stream_text(&w, NULL, note);
    json_stream_close(&w, ']');
    json_stream_close(&w, '}');
    putc('\n', out);
    return code;
}

void dump_json_error(const char *path, const struct prcb_error *error, FILE *out)
{
    struct json_stream w = {.out = out};

    begin(&w, path);
    json_stream_text(&w, "error", error->text);
    json_stream_close(&w, '}');
    putc('\n', out);
}
