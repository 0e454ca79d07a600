/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A line of values per processor and interval; what is absent is empty.
 */
#include "cpu_report.h"

#include <inttypes.h>

#include "text.h"

static void write_state_names(FILE *out, const char *separator, const struct cpu_states *states)
{
    char name[64];

    for (size_t i = 0; i < states->count; i++) {
        fputs(separator, out);
        snprintf(name, sizeof(name), "%s_entries", states->names[i]);
        text_print_csv(out, name, separator);
        fputs(separator, out);
        snprintf(name, sizeof(name), "%s_residency_ns", states->names[i]);
        text_print_csv(out, name, separator);
    }
}

static bool is_list(const struct cpu_member *member)
{
    return member->figure && member->figure->kind == FIGURE_LIST;
}

static void write_names(FILE *out, const struct cpu_report *report, const struct cpu_states *states)
{
    const char *separator = report->separator;
    struct cpu_member member;

    fprintf(out, "time_ns%swall_ns%snumber%sonline", separator, separator, separator);
    for (size_t i = 0; (member = cpu_member_at(report, i)).name; i++) {
        if (is_list(&member))
            write_state_names(out, separator, states);
        else
            fprintf(out, "%s%s", separator, member.name);
    }
    fputc('\n', out);
}

static void write_states(FILE *out, const struct cpu_report *report,
                         const struct cpu_states *states, const struct prcb_processor *p,
                         bool present)
{
    const char *separator = report->separator;

    for (size_t i = 0; i < states->count; i++) {
        const struct prcb_idle_state *state = present ? cpu_state_find(p, states->names[i]) : NULL;

        if (state)
            fprintf(out, "%s%" PRIu64 "%s%" PRIu64, separator, state->entries, separator,
                    state->residency_ns);
        else
            fprintf(out, "%s%s", separator, separator);
    }
}

static void write_row(FILE *out, const struct cpu_report *report, const struct cpu_states *states,
                      uint32_t number)
{
    const struct cpu_samples *samples = report->samples;
    const char *separator = report->separator;
    struct cpu_member member;
    struct prcb_processor p;
    uint64_t value;

    cpu_samples_delta(samples, report->since, number, &p);
    fprintf(out, "%" PRIu64 "%s", samples->now_ns - samples->start_ns, separator);
    if (!processor_was_offline(&p) && p.present & PRCB_CPU_HAS_TIMES)
        fprintf(out, "%" PRIu64,
                report->nt ? cpu_nt_wall(report->nt, report->since, number) : p.wall_ns);
    fprintf(out, "%s%" PRIu32 "%s%d", separator, number, separator,
            p.flags & PRCB_CPU_ONLINE ? 1 : 0);
    for (size_t i = 0; (member = cpu_member_at(report, i)).name; i++) {
        bool present = !cpu_member_get(report, &member, &p, &value);

        if (is_list(&member)) {
            write_states(out, report, states, &p, present);
            continue;
        }
        fputs(separator, out);
        if (present)
            fprintf(out, "%" PRIu64, value);
    }
    fputc('\n', out);
}

void cpu_csv_write(FILE *out, const struct cpu_report *report)
{
    const struct cpu_samples *samples = report->samples;
    struct cpu_states states;

    cpu_states_collect(samples, &states);
    if (report->first)
        write_names(out, report, &states);
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1))
        write_row(out, report, &states, i);
}
