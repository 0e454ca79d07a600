/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dump -j and --ndjson: one object a file, on one line. Numbers are as stored; addresses are
 * hex strings; what the dump does not hold is null.
 */
#include "dump_request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "text.h"

/* Writes JSON as it goes: a comma where one belongs is the only state. */
struct writer {
    FILE *out;
    bool comma;
};

static void write_string(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    text_print(out, TEXT_JSON, text);
    putc_unlocked('"', out);
}

static void key(struct writer *w, const char *name)
{
    if (w->comma)
        fputs_unlocked(", ", w->out);
    w->comma = true;
    if (!name)
        return;
    write_string(w->out, name);
    fputs_unlocked(": ", w->out);
}

static void open_scope(struct writer *w, const char *name, char bracket)
{
    key(w, name);
    putc_unlocked(bracket, w->out);
    w->comma = false;
}

static void close_scope(struct writer *w, char bracket)
{
    putc_unlocked(bracket, w->out);
    w->comma = true;
}

static void put_string(struct writer *w, const char *name, const char *text)
{
    key(w, name);
    if (text)
        write_string(w->out, text);
    else
        fputs("null", w->out);
}

static void put_number(struct writer *w, const char *name, uint64_t value)
{
    char text[24], *at = text + sizeof(text);

    key(w, name);
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    fwrite_unlocked(at, 1, (size_t)(text + sizeof(text) - at), w->out);
}

static void put_address(struct writer *w, const char *name, uint64_t value)
{
    key(w, name);
    fprintf(w->out, "\"0x%" PRIx64 "\"", value);
}

static void put_null(struct writer *w, const char *name)
{
    key(w, name);
    fputs("null", w->out);
}

static void put_known(struct writer *w, const char *name, uint64_t value)
{
    if (value)
        put_number(w, name, value);
    else
        put_null(w, name);
}

static void put_bool(struct writer *w, const char *name, bool value)
{
    key(w, name);
    fputs(value ? "true" : "false", w->out);
}

static void put_value(struct writer *w, const char *name, const struct prcb_dump_value *v,
                      bool is_address)
{
    if (!v->found_by)
        put_null(w, name);
    else if (is_address)
        put_address(w, name, v->value);
    else
        put_number(w, name, v->value);
}

/* ---- members ---- */

static int put_member(const struct prcb_dump_member *m, void *ctx)
{
    struct writer *w = ctx;

    if (m->is_opaque)
        return 0;
    if (!m->is_held) {
        put_null(w, m->path);
    } else if (m->is_pointer) {
        put_address(w, m->path, m->value);
    } else if (m->is_signed) {
        key(w, m->path);
        fprintf(w->out, "%" PRId64, dump_signed(m));
    } else {
        put_number(w, m->path, m->value);
    }
    return 0;
}

static void put_power_state(struct writer *w, const struct prcb_dump *d, size_t index,
                            const struct prcb_dump_processor *p)
{
    if (!p->has_power_state) {
        put_null(w, "power_state");
        return;
    }
    open_scope(w, "power_state", '{');
    put_number(w, "offset", p->power_offset);
    put_string(w, "found_by", prcb_dump_found_name(p->power_found));
    put_bool(w, "landmark", p->power_confirmed);
    put_string(w, "version", p->power_version);
    open_scope(w, "members", '{');
    prcb_dump_structure(d, index, "PROCESSOR_POWER_STATE", put_member, w, NULL, NULL);
    close_scope(w, '}');
    close_scope(w, '}');
}

/* "name+0x10", or null. */
static void put_place(struct writer *w, const char *name, const struct prcb_dump *d,
                      uint64_t address)
{
    char text[128];

    put_string(w, name, prcb_dump_address_text(d, address, text, sizeof(text)) ? NULL : text);
}

static void put_context(struct writer *w, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_context c = {.size = sizeof(c)};
    const char *name;
    uint64_t value;

    if (prcb_dump_context(d, index, &c) || !c.found_by) {
        put_null(w, "context");
    } else {
        open_scope(w, "context", '{');
        put_string(w, "found_by", prcb_dump_found_name(c.found_by));
        put_place(w, "at", d, c.program_counter);
        open_scope(w, "registers", '{');
        for (size_t i = 0; !prcb_dump_register(d, index, i, &name, &value); i++)
            put_address(w, name, value);
        close_scope(w, '}');
        close_scope(w, '}');
    }
    if (c.irql_found_by)
        put_number(w, "irql", c.irql);
    else
        put_null(w, "irql");
}

struct dpc_writer {
    struct writer *w;
    const struct prcb_dump *d;
};

static int put_dpc(const struct prcb_dump_dpc *dpc, void *ctx)
{
    struct dpc_writer *p = ctx;

    open_scope(p->w, NULL, '{');
    put_address(p->w, "address", dpc->address);
    put_bool(p->w, "active", dpc->is_active);
    put_bool(p->w, "threaded", dpc->is_threaded);
    if (dpc->is_held)
        put_address(p->w, "routine", dpc->routine);
    else
        put_null(p->w, "routine");
    put_place(p->w, "at", p->d, dpc->is_held ? dpc->routine : dpc->address);
    close_scope(p->w, '}');
    return 0;
}

static void put_dpcs(struct writer *w, const struct prcb_dump *d, size_t index)
{
    struct dpc_writer p = {w, d};

    open_scope(w, "dpcs", '[');
    prcb_dump_dpcs(d, index, put_dpc, &p);
    close_scope(w, ']');
}

static void put_ids(struct writer *w, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_thread t = {.size = sizeof(t)};

    prcb_dump_thread(d, index, &t);
    if (t.ids_found_by) {
        put_number(w, "id", t.id);
        put_number(w, "process_id", t.process_id);
    } else {
        put_null(w, "id");
        put_null(w, "process_id");
    }
    put_string(w, "ids_found_by", prcb_dump_found_name(t.ids_found_by));
    if (t.process)
        put_address(w, "process", t.process);
    else
        put_null(w, "process");
    put_string(w, "process_name", t.process_name);
    put_string(w, "process_name_found_by", prcb_dump_found_name(t.name_found_by));
}

static void put_thread(struct writer *w, const struct prcb_dump *d, size_t index,
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

    open_scope(w, "thread", '{');
    put_value(w, "address", &p->items[PRCB_DUMP_CurrentThread], true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        put_value(w, rows[i].name, &p->items[rows[i].item], rows[i].is_address);
    put_string(w, "StateName", state->found_by ? dump_thread_state(state->value) : NULL);
    put_string(w, "WaitReasonName",
               reason->found_by ? prcb_wait_reason_name((uint32_t)reason->value) : NULL);
    put_ids(w, d, index);
    close_scope(w, '}');
}

static bool is_address_item(unsigned int item)
{
    return item == PRCB_DUMP_NextThread || item == PRCB_DUMP_IdleThread ||
           item == PRCB_DUMP_ProcessorProfileControlArea || item == PRCB_DUMP_IdleStates ||
           item == PRCB_DUMP_IdleAccounting || item == PRCB_DUMP_ActiveDpc;
}

/* Items of the KPRCB itself and its power state, in their order; the thread's have their object. */
static void put_items(struct writer *w, const struct prcb_dump_processor *p)
{
    for (unsigned int i = 0; i < PRCB_DUMP_ITEM_COUNT; i++) {
        if (i == PRCB_DUMP_CurrentThread ||
            (i >= PRCB_DUMP_ThreadState && i <= PRCB_DUMP_ThreadCounters))
            continue;
        put_value(w, prcb_dump_item_name(i), &p->items[i], is_address_item(i));
    }
}

static void put_found(struct writer *w, const struct prcb_dump_processor *p)
{
    open_scope(w, "found_by", '{');
    for (unsigned int i = 0; i < PRCB_DUMP_ITEM_COUNT; i++)
        put_string(w, prcb_dump_item_name(i), prcb_dump_found_name(p->items[i].found_by));
    close_scope(w, '}');
}

static int put_structure(struct writer *w, const struct prcb_dump *d, size_t index,
                         const char *name, struct prcb_error *err)
{
    struct prcb_dump_structure s = {.size = sizeof(s)};
    int code = prcb_dump_structure(d, index, name, NULL, NULL, &s, err);

    if (code)
        return code;
    open_scope(w, "structure", '{');
    put_string(w, "name", s.name);
    if (s.has_address)
        put_address(w, "address", s.address);
    else
        put_null(w, "address");
    put_string(w, "found_by", prcb_dump_found_name(s.found_by));
    put_string(w, "version", s.version);
    open_scope(w, "members", '{');
    prcb_dump_structure(d, index, name, put_member, w, NULL, NULL);
    close_scope(w, '}');
    close_scope(w, '}');
    return 0;
}

static int put_processor(struct writer *w, const struct prcb_dump *d, size_t index,
                         const char *structure, struct prcb_error *err)
{
    const struct prcb_dump_processor *p = prcb_dump_processor(d, index);
    int code = 0;

    open_scope(w, NULL, '{');
    put_number(w, "number", p->number);
    if (p->has_kprcb)
        put_address(w, "kprcb", p->kprcb);
    else
        put_null(w, "kprcb");
    put_bool(w, "crashing", p->crashing);
    put_items(w, p);
    put_string(w, "vendor", p->vendor[0] ? p->vendor : NULL);
    put_power_state(w, d, index, p);
    put_thread(w, d, index, p);
    put_context(w, d, index);
    put_dpcs(w, d, index);
    put_found(w, p);
    if (structure)
        code = put_structure(w, d, index, structure, err);
    close_scope(w, '}');
    return code;
}

static int put_processors(struct writer *w, const struct prcb_dump *d,
                          const struct dump_request *request, struct prcb_error *err)
{
    size_t only = 0;
    bool is_one = request->has_cpu || request->thread || request->structure;
    int code = is_one ? dump_choose_cpu(d, request, &only, err) : 0;
    const char *structure = request->structure;

    if (request->thread && !structure)
        structure = "KTHREAD";
    open_scope(w, "processors", '[');
    for (size_t i = 0; !code && i < prcb_dump_processor_count(d); i++) {
        if (!is_one || i == only)
            code = put_processor(w, d, i, structure, err);
    }
    close_scope(w, ']');
    return code;
}

static void put_exception(struct writer *w, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);

    if (!info->exception_code) {
        put_null(w, "exception");
        return;
    }
    open_scope(w, "exception", '{');
    put_address(w, "code", info->exception_code);
    put_address(w, "address", info->exception_address);
    put_place(w, "at", d, info->exception_address);
    close_scope(w, '}');
}

static void put_modules(struct writer *w, const struct prcb_dump *d)
{
    open_scope(w, "modules", '[');
    for (size_t i = 0; i < prcb_dump_module_count(d); i++) {
        struct prcb_dump_module m = {.size = sizeof(m)};

        if (prcb_dump_module(d, i, &m))
            break;
        open_scope(w, NULL, '{');
        put_string(w, "name", m.name);
        put_address(w, "base", m.base);
        put_number(w, "size", m.length);
        put_known(w, "timestamp", m.timestamp);
        put_known(w, "checksum", m.checksum);
        put_bool(w, "unloaded", m.is_unloaded);
        close_scope(w, '}');
    }
    close_scope(w, ']');
}

struct scan_writer {
    struct writer *w;
    const struct prcb_dump *d;
};

static int put_scanned(uint64_t address, uint64_t value, void *ctx)
{
    struct scan_writer *p = ctx;

    open_scope(p->w, NULL, '{');
    put_address(p->w, "address", address);
    put_address(p->w, "value", value);
    put_place(p->w, "at", p->d, value);
    close_scope(p->w, '}');
    return 0;
}

static void put_stack(struct writer *w, const struct prcb_dump *d)
{
    struct scan_writer p = {w, d};

    open_scope(w, "stack_scan", '[');
    prcb_dump_stack_scan(d, put_scanned, &p, NULL);
    close_scope(w, ']');
}

static void put_bugcheck(struct writer *w, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);

    open_scope(w, "bugcheck", '{');
    put_number(w, "code", info->bugcheck_code);
    put_address(w, "code_hex", info->bugcheck_code);
    put_string(w, "name", info->bugcheck_name);
    open_scope(w, "parameters", '[');
    for (size_t i = 0; i < 4; i++)
        put_address(w, NULL, info->bugcheck_parameters[i]);
    close_scope(w, ']');
    open_scope(w, "parameter_words", '[');
    for (size_t i = 0; i < 4; i++)
        put_string(w, NULL, info->bugcheck_words[i]);
    close_scope(w, ']');
    open_scope(w, "parameters_at", '[');
    for (size_t i = 0; i < 4; i++)
        put_place(w, NULL, d, info->bugcheck_parameters[i]);
    close_scope(w, ']');
    close_scope(w, '}');
}

static const char *source_name(uint8_t source)
{
    static const char *const names[] = {NULL, "dump", "option", "assumed"};

    return names[source];
}

static void put_info(struct writer *w, const struct prcb_dump *d, const char *path)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);
    char time[40] = "";

    put_string(w, "file", path);
    put_string(w, "container", info->container);
    put_string(w, "machine", info->machine);
    put_number(w, "build", info->build);
    put_string(w, "release", info->release);
    put_string(w, "layout", info->layout);
    put_bugcheck(w, d);
    put_exception(w, d);
    put_known(w, "uptime_100ns", info->uptime_100ns);
    put_known(w, "crash_filetime", info->crash_time);
    if (info->crash_time)
        dump_time_text(info->crash_time, time, sizeof(time));
    put_string(w, "crash_time_utc", time[0] ? time : NULL);
    put_number(w, "processor_count", info->header_processors);
    put_number(w, "time_increment_100ns", info->time_increment);
    put_string(w, "time_increment_from", source_name(info->time_increment_source));
    put_known(w, "qpc_hz", info->qpc_frequency);
    put_string(w, "qpc_from", source_name(info->qpc_source));
}

int dump_json(const struct prcb_dump *d, const char *path, const struct dump_request *request,
              FILE *out, struct prcb_error *err)
{
    struct writer w = {.out = out};
    const char *note;
    int code;

    open_scope(&w, NULL, '{');
    put_info(&w, d, path);
    code = put_processors(&w, d, request, err);
    if (request->modules)
        put_modules(&w, d);
    if (request->stack)
        put_stack(&w, d);
    open_scope(&w, "notes", '[');
    for (size_t i = 0; (note = prcb_dump_note(d, i)); i++)
        put_string(&w, NULL, note);
    close_scope(&w, ']');
    close_scope(&w, '}');
    putc('\n', out);
    return code;
}

void dump_json_error(const char *path, const struct prcb_error *error, FILE *out)
{
    struct writer w = {.out = out};

    open_scope(&w, NULL, '{');
    put_string(&w, "file", path);
    put_string(&w, "error", error->text);
    close_scope(&w, '}');
    putc('\n', out);
}
