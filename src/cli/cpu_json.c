/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_json.h"

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
    return cli_json_write(&b, top, out);
}
