/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_report.h"

json_object *cpu_json_states(struct json_doc *b, const struct prcb_processor *p)
{
    json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < p->idle_state_count; i++) {
        const struct prcb_idle_state *state = &p->idle_states[i];
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "name", state->name);
        json_doc_put_number(b, object, "entries", state->entries);
        json_doc_put_number(b, object, "residency_ns", state->residency_ns);
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *make_processor(struct json_doc *b, const struct cpu_report *report,
                                   uint32_t number)
{
    json_object *object = json_object_new_object();
    struct cpu_member member;
    struct prcb_processor p;
    uint64_t value;

    cpu_samples_delta(report->samples, report->since, number, &p);
    json_doc_put_number(b, object, "number", number);
    json_doc_put_bool(b, object, "online", p.flags & PRCB_CPU_ONLINE);
    for (size_t i = 0; (member = cpu_member_at(report, i)).name; i++) {
        bool present = !cpu_member_get(report, &member, &p, &value);

        if (present && member.figure && member.figure->kind == FIGURE_LIST)
            json_doc_put(b, object, member.name, cpu_json_states(b, &p));
        else
            json_doc_put_member(b, object, member.name, value, present);
    }
    return object;
}

/* NULL: the processor has it. */
static const char *why_absent(const struct cpu_report *report, const struct cpu_member *member,
                              uint32_t number)
{
    struct prcb_processor p;
    uint64_t value;

    cpu_samples_delta(report->samples, report->since, number, &p);
    return cpu_member_get(report, member, &p, &value);
}

/* Writes consecutive numbers as -C takes them. */
static void write_range(FILE *out, uint32_t first, uint32_t last)
{
    fprintf(out, "%s%" PRIu32, ftell(out) ? "," : "", first);
    if (last > first)
        fprintf(out, "-%" PRIu32, last);
}

/* Writes the processors that lack a member for one reason: "0-2,5". NULL: out of memory. */
static json_object *list_lacking(const struct cpu_report *report, const struct cpu_member *member,
                                 const char *reason)
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
        const char *why = why_absent(report, member, i);

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

/* Adds a member's entries, one for each reason. */
static void put_lacking(struct json_doc *b, json_object *array, const struct cpu_report *report,
                        const struct cpu_member *member)
{
    const struct cpu_samples *samples = report->samples;
    const char *reasons[REASONS + 1] = {0};

    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        const char *why = why_absent(report, member, i);
        size_t k = 0;

        while (why && reasons[k] && strcmp(reasons[k], why))
            k++;
        if (why && k < REASONS)
            reasons[k] = why;
    }
    for (size_t k = 0; reasons[k]; k++) {
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "name", member->name);
        json_doc_put(b, object, "processors", list_lacking(report, member, reasons[k]));
        json_doc_put_text(b, object, "reason", reasons[k]);
        json_doc_append(b, array, object);
    }
}

static json_object *make_absent(struct json_doc *b, const struct cpu_report *report)
{
    json_object *array = json_object_new_array();
    struct cpu_member member;

    for (size_t i = 0; (member = cpu_member_at(report, i)).name; i++)
        put_lacking(b, array, report, &member);
    return array;
}

static json_object *make_programs(struct json_doc *b, const struct prcb_processors *view)
{
    json_object *array = json_object_new_array();
    struct prcb_program program = {.size = sizeof(program)};

    for (uint32_t i = 0; !prcb_processors_program(view, i, &program); i++) {
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "name", program.name);
        json_doc_put_member(b, object, "recursion_misses", program.recursion_misses,
                            program.recursion_misses != UINT64_MAX);
        json_doc_append(b, array, object);
    }
    return array;
}

int cpu_json_write(FILE *out, const struct cpu_report *report)
{
    const struct cpu_samples *samples = report->samples;
    struct json_doc b = {0};
    json_object *top = json_doc_new(&b, JSON_CPU), *processors = json_object_new_array();

    json_doc_put_text(&b, top, "tier", prcb_tier_name(cpu_report_tier(report)));
    json_doc_put_number(&b, top, "wall_ns", cpu_samples_wall(samples, report->since));
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1))
        json_doc_append(&b, processors, make_processor(&b, report, i));
    json_doc_put(&b, top, "processors", processors);
    json_doc_put_text(&b, top, "tier_reason",
                      report->nt ? prcb_nt_processors_tier_reason()
                                 : prcb_processors_tier_reason(samples->view));
    json_doc_put(&b, top, "absent", make_absent(&b, report));
    if (!report->nt)
        json_doc_put(&b, top, "programs", make_programs(&b, samples->view));
    return json_doc_write(&b, top, out);
}
