/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_report.h"

json_object *cpu_json_states(struct cli_json *b, const struct prcb_processor *p)
{
    json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < p->idle_state_count; i++) {
        const struct prcb_idle_state *state = &p->idle_states[i];
        json_object *object = json_object_new_object();

        cli_json_put_text(b, object, "name", state->name);
        cli_json_put_number(b, object, "entries", state->entries);
        cli_json_put_number(b, object, "residency_ns", state->residency_ns);
        cli_json_append(b, array, object);
    }
    return array;
}

static void put_nt(struct cli_json *b, json_object *object, const struct cpu_report *report,
                   const struct prcb_processor *p)
{
    const struct prcb_nt_member *member;

    for (size_t i = 0; (member = cpu_nt_member(i)); i++) {
        bool present = !cpu_was_offline(p) && !cpu_nt_absent(member);

        cli_json_put_member(b, object, member->name,
                            cpu_nt_delta(report->nt, report->since, p->number, member), present);
    }
}

static json_object *make_processor(struct cli_json *b, const struct cpu_report *report,
                                   uint32_t number)
{
    json_object *object = json_object_new_object();
    struct prcb_processor p;

    cpu_samples_delta(report->samples, report->since, number, &p);
    cli_json_put_number(b, object, "number", number);
    cli_json_put_bool(b, object, "online", p.flags & PRCB_CPU_ONLINE);
    if (report->nt) {
        put_nt(b, object, report, &p);
        return object;
    }
    for (const struct cpu_column *column = cpu_columns; column->name; column++) {
        bool present = cpu_column_present(column, &p);

        if (!column->value && present)
            cli_json_put(b, object, column->name, cpu_json_states(b, &p));
        else
            cli_json_put_member(b, object, column->name, present ? column->value(&p) : 0, present);
    }
    return object;
}

/* The report's members, by number; NULL past the last. */
static const char *member_name(const struct cpu_report *report, size_t index)
{
    const struct prcb_nt_member *member;

    if (!report->nt)
        return cpu_columns[index].name;
    member = cpu_nt_member(index);
    return member ? member->name : NULL;
}

/* NULL: the processor has it. */
static const char *why_absent(const struct cpu_report *report, size_t index, uint32_t number)
{
    const struct cpu_column *column = &cpu_columns[index];
    struct prcb_processor p;
    const char *why;

    cpu_samples_delta(report->samples, report->since, number, &p);
    if (cpu_was_offline(&p))
        return "the processor was offline";
    if (report->nt)
        return cpu_nt_absent(cpu_nt_member(index));
    if (cpu_column_present(column, &p))
        return NULL;
    why = prcb_processor_absent_reason(report->samples->view, column->members);
    return why ? why : "this processor does not tell it";
}

/* Consecutive numbers as -C takes them. */
static void write_range(FILE *out, uint32_t first, uint32_t last)
{
    fprintf(out, "%s%" PRIu32, ftell(out) ? "," : "", first);
    if (last > first)
        fprintf(out, "-%" PRIu32, last);
}

/* The processors that lack a member for one reason: "0-2,5". NULL: out of memory. */
static json_object *list_lacking(const struct cpu_report *report, size_t index, const char *reason)
{
    const struct cpu_samples *samples = report->samples;
    uint32_t first = 0, next = 0; /* the range so far; next 0: none */
    json_object *list = NULL;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        const char *why = why_absent(report, index, i);

        if (!why || strcmp(why, reason))
            continue;
        if (next && i != next)
            write_range(out, first, next - 1);
        first = next && i == next ? first : i;
        next = i + 1;
    }
    write_range(out, first, next - 1);
    if (!fclose(out))
        list = json_object_new_string(text);
    free(text);
    return list;
}

#define REASONS 4 /* of one member, at most */

/* A member's entries, one for each reason. */
static void put_lacking(struct cli_json *b, json_object *array, const struct cpu_report *report,
                        size_t index)
{
    const struct cpu_samples *samples = report->samples;
    const char *reasons[REASONS + 1] = {0};

    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        const char *why = why_absent(report, index, i);
        size_t k = 0;

        while (why && reasons[k] && strcmp(reasons[k], why))
            k++;
        if (why && k < REASONS)
            reasons[k] = why;
    }
    for (size_t k = 0; reasons[k]; k++) {
        json_object *object = json_object_new_object();

        cli_json_put_text(b, object, "name", member_name(report, index));
        cli_json_put(b, object, "processors", list_lacking(report, index, reasons[k]));
        cli_json_put_text(b, object, "reason", reasons[k]);
        cli_json_append(b, array, object);
    }
}

static json_object *make_absent(struct cli_json *b, const struct cpu_report *report)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; member_name(report, i); i++)
        put_lacking(b, array, report, i);
    return array;
}

int cpu_json_write(FILE *out, const struct cpu_report *report)
{
    const struct cpu_samples *samples = report->samples;
    json_object *top = json_object_new_object(), *processors = json_object_new_array();
    struct cli_json b = {0};

    cli_json_put_text(&b, top, "tier", prcb_tier_name(cpu_report_tier(report)));
    cli_json_put_number(&b, top, "wall_ns", cpu_samples_wall(samples, report->since));
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1))
        cli_json_append(&b, processors, make_processor(&b, report, i));
    cli_json_put(&b, top, "processors", processors);
    cli_json_put_text(&b, top, "tier_reason",
                      report->nt ? prcb_nt_processors_tier_reason()
                                 : prcb_processors_tier_reason(samples->view));
    cli_json_put(&b, top, "absent", make_absent(&b, report));
    return cli_json_write(&b, top, out);
}
