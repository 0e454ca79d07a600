/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a line of values per processor and interval; what is absent is empty.
 */
#include "cpu_report.h"

#include "csv.h"

static void write_state_names(struct csv *csv, const struct cpu_states *states)
{
    for (size_t i = 0; i < states->count; i++) {
        csv_print(csv, "%s_entries", states->names[i]);
        csv_print(csv, "%s_residency_ns", states->names[i]);
    }
}

static bool is_list(const struct cpu_member *member)
{
    return member->figure && member->figure->kind == FIGURE_LIST;
}

static void write_names(struct csv *csv, const struct cpu_report *report,
                        const struct cpu_states *states)
{
    struct cpu_member member;

    csv_text(csv, "time_ns");
    csv_text(csv, "wall_ns");
    csv_text(csv, "number");
    csv_text(csv, "online");
    for (size_t i = 0; (member = cpu_member_at(report, i)).name; i++) {
        if (is_list(&member))
            write_state_names(csv, states);
        else
            csv_text(csv, member.name);
    }
    csv_end(csv);
}

static void write_states(struct csv *csv, const struct cpu_states *states,
                         const struct prcb_processor *p, bool present)
{
    for (size_t i = 0; i < states->count; i++) {
        const struct prcb_idle_state *state = present ? cpu_state_find(p, states->names[i]) : NULL;

        csv_number(csv, state, state ? state->entries : 0);
        csv_number(csv, state, state ? state->residency_ns : 0);
    }
}

static void write_row(struct csv *csv, const struct cpu_report *report,
                      const struct cpu_states *states, uint32_t number)
{
    const struct cpu_samples *samples = report->samples;
    struct cpu_member member;
    struct prcb_processor p;
    uint64_t value = 0;
    bool timed;

    cpu_samples_delta(samples, report->since, number, &p);
    timed = !processor_was_offline(&p) && p.present & PRCB_CPU_HAS_TIMES;
    csv_number(csv, true, samples->now_ns - samples->start_ns);
    csv_number(csv, timed,
               timed && report->nt ? cpu_nt_wall(report->nt, report->since, number) : p.wall_ns);
    csv_number(csv, true, number);
    csv_number(csv, true, p.flags & PRCB_CPU_ONLINE ? 1 : 0);
    for (size_t i = 0; (member = cpu_member_at(report, i)).name; i++) {
        bool present = !cpu_member_get(report, &member, &p, &value);

        if (is_list(&member))
            write_states(csv, states, &p, present);
        else
            csv_number(csv, present, value);
    }
    csv_end(csv);
}

void cpu_csv_write(FILE *out, const struct cpu_report *report)
{
    const struct cpu_samples *samples = report->samples;
    struct csv csv = {.out = out, .separator = report->separator};
    struct cpu_states states;

    cpu_states_collect(samples, &states);
    if (report->first)
        write_names(&csv, report, &states);
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1))
        write_row(&csv, report, &states, i);
}
