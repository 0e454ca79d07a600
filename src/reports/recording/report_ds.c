/* SPDX-License-Identifier: BSD-2-Clause */
#include "report_ds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/pebs.h>

#include "csv.h"
#include "json_doc.h"
#include "json_stream.h"

/* The members that are one number each, in the order of printing. */
enum radix { HEX, DECIMAL };
static const struct member {
    const char *name;
    size_t offset;
    uint32_t has;
    enum radix radix; /* decimal: a figure, in JSON a number */
} members[] = {
#define AT(member) offsetof(struct prcb_pebs_record, member)
#define REGISTER(name, index)                                                                      \
    {                                                                                              \
        name, AT(registers) + 8 * (index), PRCB_PEBS_HAS_REGISTERS, HEX                            \
    }
    {"eventing_ip", AT(eventing_ip), PRCB_PEBS_HAS_EVENTING, HEX},
    {"ip", AT(ip), PRCB_PEBS_HAS_REGISTERS, HEX},
    {"status", AT(status), PRCB_PEBS_HAS_STATUS, HEX},
    {"tsc", AT(tsc), PRCB_PEBS_HAS_TSC, DECIMAL},
    {"data_address", AT(data_address), PRCB_PEBS_HAS_MEMORY, HEX},
    {"data_source", AT(data_source), PRCB_PEBS_HAS_MEMORY, HEX},
    {"latency", AT(latency), PRCB_PEBS_HAS_MEMORY, HEX},
    {"tsx", AT(tsx), PRCB_PEBS_HAS_TSX, HEX},
    {"flags", AT(flags), PRCB_PEBS_HAS_REGISTERS, HEX},
    REGISTER("ax", PRCB_PEBS_AX),
    REGISTER("bx", PRCB_PEBS_BX),
    REGISTER("cx", PRCB_PEBS_CX),
    REGISTER("dx", PRCB_PEBS_DX),
    REGISTER("si", PRCB_PEBS_SI),
    REGISTER("di", PRCB_PEBS_DI),
    REGISTER("bp", PRCB_PEBS_BP),
    REGISTER("sp", PRCB_PEBS_SP),
    REGISTER("r8", 8),
    REGISTER("r9", 9),
    REGISTER("r10", 10),
    REGISTER("r11", 11),
    REGISTER("r12", 12),
    REGISTER("r13", 13),
    REGISTER("r14", 14),
    REGISTER("r15", 15),
    {"metrics_base", AT(metrics_base), PRCB_PEBS_HAS_METRICS, HEX},
    {"metrics_data", AT(metrics_data), PRCB_PEBS_HAS_METRICS, HEX},
};
#define XMM_TEXT 35 /* "0x" and 16 bytes */
#define MEMBERS  (sizeof(members) / sizeof(members[0]))

struct printing {
    const struct report_ds *how;
    FILE *out;
    struct json_stream json;
    struct csv csv;
    uint64_t records;
};

static uint64_t value_of(const struct prcb_pebs_record *record, const struct member *member)
{
    uint64_t value;

    memcpy(&value, (const char *)record + member->offset, sizeof(value));
    return value;
}

static void print_value(FILE *out, enum radix radix, uint64_t value)
{
    if (radix == DECIMAL)
        fprintf(out, "%" PRIu64, value);
    else
        fprintf(out, "0x%" PRIx64, value);
}

static const char *xmm_text(const uint8_t *bytes, char ret[XMM_TEXT])
{
    snprintf(ret, XMM_TEXT, "0x");
    for (size_t i = 0; i < 16; i++)
        snprintf(ret + 2 + 2 * i, 3, "%02x", bytes[15 - i]);
    return ret;
}

static size_t branches(const struct prcb_pebs_record *record)
{
    return record->has & PRCB_PEBS_HAS_LBR ? (record->groups >> 24) + 1 : 0;
}

/* ---- text ---------------------------------------------------------------------------- */

static void text_lists(FILE *out, const struct prcb_pebs_record *record)
{
    char xmm[XMM_TEXT];

    for (uint32_t i = 0; record->has & PRCB_PEBS_HAS_XMM && i < 16; i++)
        fprintf(out, "  xmm%-10u  %s\n", i, xmm_text(record->xmm[i], xmm));
    for (size_t i = 0; i < branches(record); i++)
        fprintf(out, "  branch %-6zu  0x%" PRIx64 " -> 0x%" PRIx64 "  info 0x%" PRIx64 "\n", i,
                record->lbr[i].from, record->lbr[i].to, record->lbr[i].info);
    for (uint32_t i = 0; i < PRCB_PEBS_COUNTERS_MAX; i++) {
        if (record->counter_mask & 1u << i)
            fprintf(out, "  counter %-5u  %" PRIu64 "\n", i, record->counters[i]);
    }
    for (uint32_t i = 0; i < PRCB_PEBS_COUNTERS_MAX; i++) {
        if (record->fixed_mask & 1u << i)
            fprintf(out, "  fixed %-7u  %" PRIu64 "\n", i, record->fixed[i]);
    }
}

static void print_text(struct printing *printing, const struct prcb_pebs_record *record)
{
    FILE *out = printing->out;

    fprintf(out, "record %" PRIu64 ": %u bytes\n", printing->records, record->length);
    if (record->has & PRCB_PEBS_HAS_RETIRE)
        fprintf(out, "  %-13s  0x%x\n  %-13s  %u\n", "groups", record->groups, "retire",
                record->retire_latency);
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!(record->has & members[i].has))
            continue;
        fprintf(out, "  %-13s  ", members[i].name);
        print_value(out, members[i].radix, value_of(record, &members[i]));
        fputc('\n', out);
    }
    text_lists(out, record);
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void json_counters(struct json_stream *json, const char *name, bool known, uint32_t mask,
                          const uint64_t *values)
{
    char number[12];

    if (!known) {
        json_stream_null(json, name);
        return;
    }
    json_stream_open(json, name, '{');
    for (uint32_t i = 0; i < PRCB_PEBS_COUNTERS_MAX; i++) {
        snprintf(number, sizeof(number), "%u", i);
        if (mask & 1u << i)
            json_stream_number(json, number, values[i]);
    }
    json_stream_close(json, '}');
}

static void json_lists(struct json_stream *json, const struct prcb_pebs_record *record)
{
    bool has_counters = record->has & PRCB_PEBS_HAS_COUNTERS;
    size_t count = branches(record);
    char xmm[XMM_TEXT];

    if (record->has & PRCB_PEBS_HAS_XMM) {
        json_stream_open(json, "xmm", '[');
        for (size_t i = 0; i < 16; i++)
            json_stream_text(json, NULL, xmm_text(record->xmm[i], xmm));
        json_stream_close(json, ']');
    } else {
        json_stream_null(json, "xmm");
    }
    if (count) {
        json_stream_open(json, "lbr", '[');
        for (size_t i = 0; i < count; i++) {
            json_stream_open(json, NULL, '{');
            json_stream_address(json, "from", record->lbr[i].from);
            json_stream_address(json, "to", record->lbr[i].to);
            json_stream_address(json, "info", record->lbr[i].info);
            json_stream_close(json, '}');
        }
        json_stream_close(json, ']');
    } else {
        json_stream_null(json, "lbr");
    }
    json_counters(json, "counters", has_counters, record->counter_mask, record->counters);
    json_counters(json, "fixed", has_counters, record->fixed_mask, record->fixed);
}

static void print_json(struct printing *printing, const struct prcb_pebs_record *record)
{
    struct json_stream *json = &printing->json;

    json_stream_line(json);
    json_stream_open(json, NULL, '{');
    json_stream_number(json, "bytes", record->length);
    if (record->has & PRCB_PEBS_HAS_RETIRE) {
        json_stream_address(json, "groups", record->groups);
        json_stream_number(json, "retire_latency", record->retire_latency);
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!(record->has & members[i].has))
            json_stream_null(json, members[i].name);
        else if (members[i].radix == DECIMAL)
            json_stream_number(json, members[i].name, value_of(record, &members[i]));
        else
            json_stream_address(json, members[i].name, value_of(record, &members[i]));
    }
    json_lists(json, record);
    json_stream_close(json, '}');
}

/* ---- lines of values --------------------------------------------------------------------- */

static void print_csv(struct printing *printing, const struct prcb_pebs_record *record)
{
    struct csv *csv = &printing->csv;

    if (!printing->records) {
        csv_text(csv, "bytes");
        for (size_t i = 0; i < MEMBERS; i++)
            csv_text(csv, members[i].name);
        csv_end(csv);
    }
    csv_number(csv, true, record->length);
    for (size_t i = 0; i < MEMBERS; i++) {
        csv_next(csv);
        if (record->has & members[i].has)
            print_value(csv->out, members[i].radix, value_of(record, &members[i]));
    }
    csv_end(csv);
}

static int print_record(const struct prcb_pebs_record *record, void *ctx)
{
    static void (*const printers[])(struct printing *, const struct prcb_pebs_record *) = {
        [REPORT_DS_TEXT] = print_text,
        [REPORT_DS_JSON] = print_json,
        [REPORT_DS_CSV] = print_csv,
    };
    struct printing *printing = ctx;

    printers[printing->how->style](printing, record);
    printing->records++;
    return 0;
}

/* ---- branch trace store -------------------------------------------------------------------- */

static void print_branch(struct printing *printing, const struct prcb_bts_record *record)
{
    static const char *const names[] = {"from", "to", "flags", NULL};
    struct json_stream *json = &printing->json;

    switch (printing->how->style) {
    case REPORT_DS_TEXT:
        fprintf(printing->out, "0x%016" PRIx64 " -> 0x%016" PRIx64 "  flags 0x%" PRIx64 "\n",
                record->from, record->to, record->flags);
        break;
    case REPORT_DS_JSON:
        json_stream_line(json);
        json_stream_open(json, NULL, '{');
        json_stream_address(json, "from", record->from);
        json_stream_address(json, "to", record->to);
        json_stream_address(json, "flags", record->flags);
        json_stream_close(json, '}');
        break;
    case REPORT_DS_CSV:
        if (!printing->records)
            csv_names(&printing->csv, names);
        csv_print(&printing->csv, "0x%" PRIx64, record->from);
        csv_print(&printing->csv, "0x%" PRIx64, record->to);
        csv_print(&printing->csv, "0x%" PRIx64, record->flags);
        csv_end(&printing->csv);
    }
    printing->records++;
}

static int print_branches(struct printing *printing, const char *bytes, size_t length,
                          struct prcb_error *err)
{
    size_t at = 0;

    for (; length - at >= PRCB_BTS_RECORD_SIZE; at += PRCB_BTS_RECORD_SIZE) {
        struct prcb_bts_record record;

        prcb_bts_decode(bytes + at, &record);
        print_branch(printing, &record);
    }
    if (at == length)
        return 0;
    err->code = -ENODATA;
    err->offset = at;
    snprintf(err->text, sizeof(err->text), "a record of %d bytes is cut after %zu",
             PRCB_BTS_RECORD_SIZE, length - at);
    return -ENODATA;
}

/* ---- the file ------------------------------------------------------------------------------- */

static int print_all(struct printing *printing, const char *bytes, size_t length,
                     struct prcb_error *err)
{
    struct json_stream *json = &printing->json;
    bool is_json = printing->how->style == REPORT_DS_JSON;
    int result;

    if (is_json) {
        json_stream_open(json, NULL, '{');
        json_stream_text(json, "format", json_formats[JSON_DS].name);
        json_stream_number(json, "format_version", json_formats[JSON_DS].version);
        json_stream_open(json, "records", '[');
    }
    if (printing->how->bts)
        result = print_branches(printing, bytes, length, err);
    else
        result = prcb_pebs_walk(printing->how->format, bytes, length, print_record, printing, err);
    if (is_json) {
        fputc('\n', printing->out);
        json_stream_close(json, ']');
        json_stream_bool(json, "complete", !result);
        json_stream_close(json, '}');
        fputc('\n', printing->out);
    }
    return result;
}

int report_ds(const struct report_ds *how, const char *bytes, size_t length, FILE *out,
              struct prcb_error *err)
{
    struct printing printing = {
        .how = how,
        .out = out,
        .json = {.out = out, .dense = true},
        .csv = {.out = out, .separator = how->separator},
    };

    return print_all(&printing, bytes, length, err);
}
