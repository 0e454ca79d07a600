/* SPDX-License-Identifier: BSD-2-Clause */
#include "report_ds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/pebs.h>

#include "output.h"
#include "read_file.h"

#define BYTES_MAX ((size_t)(1ull << (sizeof(size_t) > 4 ? 32 : 30)))

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
#define MEMBERS (sizeof(members) / sizeof(members[0]))

struct printing {
    const struct report_ds *how;
    FILE *out;
    uint64_t records;
};

static uint64_t value_of(const struct prcb_pebs_record *record, const struct member *member)
{
    uint64_t value;

    memcpy(&value, (const char *)record + member->offset, sizeof(value));
    return value;
}

/* "0x..." or a number; the marks are JSON's around what is no number to it. */
static void print_value(FILE *out, enum radix radix, uint64_t value, const char *mark)
{
    if (radix == DECIMAL)
        fprintf(out, "%" PRIu64, value);
    else
        fprintf(out, "%s0x%" PRIx64 "%s", mark, value, mark);
}

static void print_xmm(FILE *out, const uint8_t *bytes)
{
    fputs("0x", out);
    for (size_t i = 16; i-- > 0;)
        fprintf(out, "%02x", bytes[i]);
}

static size_t branches(const struct prcb_pebs_record *record)
{
    return record->has & PRCB_PEBS_HAS_LBR ? (record->groups >> 24) + 1 : 0;
}

/* ---- text ---------------------------------------------------------------------------- */

static void text_lists(FILE *out, const struct prcb_pebs_record *record)
{
    for (uint32_t i = 0; record->has & PRCB_PEBS_HAS_XMM && i < 16; i++) {
        fprintf(out, "  xmm%-10u  ", i);
        print_xmm(out, record->xmm[i]);
        fputc('\n', out);
    }
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
        print_value(out, members[i].radix, value_of(record, &members[i]), "");
        fputc('\n', out);
    }
    text_lists(out, record);
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void json_counters(FILE *out, const char *name, bool known, uint32_t mask,
                          const uint64_t *values)
{
    const char *between = "";

    if (!known) {
        fprintf(out, ",\"%s\":null", name);
        return;
    }
    fprintf(out, ",\"%s\":{", name);
    for (uint32_t i = 0; i < PRCB_PEBS_COUNTERS_MAX; i++) {
        if (!(mask & 1u << i))
            continue;
        fprintf(out, "%s\"%u\":%" PRIu64, between, i, values[i]);
        between = ",";
    }
    fputc('}', out);
}

static void json_lists(FILE *out, const struct prcb_pebs_record *record)
{
    bool has_counters = record->has & PRCB_PEBS_HAS_COUNTERS;

    fputs(",\"xmm\":", out);
    for (uint32_t i = 0; record->has & PRCB_PEBS_HAS_XMM && i < 16; i++) {
        fputs(i ? ",\"" : "[\"", out);
        print_xmm(out, record->xmm[i]);
        fputc('"', out);
    }
    fputs(record->has & PRCB_PEBS_HAS_XMM ? "],\"lbr\":" : "null,\"lbr\":", out);
    for (size_t i = 0; i < branches(record); i++)
        fprintf(out,
                "%s{\"from\":\"0x%" PRIx64 "\",\"to\":\"0x%" PRIx64 "\",\"info\":\"0x%" PRIx64
                "\"}",
                i ? "," : "[", record->lbr[i].from, record->lbr[i].to, record->lbr[i].info);
    fputs(branches(record) ? "]" : "null", out);
    json_counters(out, "counters", has_counters, record->counter_mask, record->counters);
    json_counters(out, "fixed", has_counters, record->fixed_mask, record->fixed);
}

static void print_json(struct printing *printing, const struct prcb_pebs_record *record)
{
    FILE *out = printing->out;

    fprintf(out, "%s\n{\"bytes\":%u", printing->records ? "," : "", record->length);
    if (record->has & PRCB_PEBS_HAS_RETIRE)
        fprintf(out, ",\"groups\":\"0x%x\",\"retire_latency\":%u", record->groups,
                record->retire_latency);
    for (size_t i = 0; i < MEMBERS; i++) {
        fprintf(out, ",\"%s\":", members[i].name);
        if (record->has & members[i].has)
            print_value(out, members[i].radix, value_of(record, &members[i]), "\"");
        else
            fputs("null", out);
    }
    json_lists(out, record);
    fputc('}', out);
}

/* ---- lines of values --------------------------------------------------------------------- */

static void print_csv(struct printing *printing, const struct prcb_pebs_record *record)
{
    FILE *out = printing->out;

    if (!printing->records) {
        fputs("bytes", out);
        for (size_t i = 0; i < MEMBERS; i++)
            fprintf(out, "%s%s", printing->how->separator, members[i].name);
        fputc('\n', out);
    }
    fprintf(out, "%u", record->length);
    for (size_t i = 0; i < MEMBERS; i++) {
        fputs(printing->how->separator, out);
        if (record->has & members[i].has)
            print_value(out, members[i].radix, value_of(record, &members[i]), "");
    }
    fputc('\n', out);
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
    const char *separator = printing->how->separator;
    FILE *out = printing->out;

    switch (printing->how->style) {
    case REPORT_DS_TEXT:
        fprintf(out, "0x%016" PRIx64 " -> 0x%016" PRIx64 "  flags 0x%" PRIx64 "\n", record->from,
                record->to, record->flags);
        break;
    case REPORT_DS_JSON:
        fprintf(out,
                "%s\n{\"from\":\"0x%" PRIx64 "\",\"to\":\"0x%" PRIx64 "\",\"flags\":\"0x%" PRIx64
                "\"}",
                printing->records ? "," : "", record->from, record->to, record->flags);
        break;
    case REPORT_DS_CSV:
        if (!printing->records)
            fprintf(out, "from%sto%sflags\n", separator, separator);
        fprintf(out, "0x%" PRIx64 "%s0x%" PRIx64 "%s0x%" PRIx64 "\n", record->from, separator,
                record->to, separator, record->flags);
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
    bool json = printing->how->style == REPORT_DS_JSON;
    int result;

    if (json)
        fputs("{\"records\":[", printing->out);
    if (printing->how->bts)
        result = print_branches(printing, bytes, length, err);
    else
        result = prcb_pebs_walk(printing->how->format, bytes, length, print_record, printing, err);
    if (json)
        fprintf(printing->out, "\n],\"complete\":%s}\n", result ? "false" : "true");
    return result;
}

int report_ds(const struct report_ds *how)
{
    struct printing printing = {.how = how};
    struct output output;
    struct prcb_error err = {0};
    size_t length = 0;
    char *bytes = NULL;
    int status, result = read_file(how->path, BYTES_MAX, &bytes, &length);

    if (result)
        return cli_error(how->command, "%s: %s", how->path, strerror(-result));
    status = cli_open_output(how->command, how->output, &output);
    if (status != CLI_OK) {
        free(bytes);
        return status;
    }
    output_begin(&output);
    printing.out = output.stream;
    if (print_all(&printing, bytes, length, &err))
        status =
            cli_error(how->command, "%s: at byte %" PRIu64 ": %s", how->path, err.offset, err.text);
    free(bytes);
    return cli_close_output(how->command, &output, status);
}
