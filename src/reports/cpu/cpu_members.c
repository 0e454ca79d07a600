/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_report.h"

#include <string.h>

struct cpu_member cpu_member_at(const struct cpu_report *report, size_t index)
{
    const struct figure *figure = figures_shown(processor_figures, FIGURE_CPU);
    const struct prcb_nt_member *nt = report->nt ? cpu_nt_member(index) : NULL;

    if (report->nt)
        return (struct cpu_member){.name = nt ? nt->name : NULL, .nt = nt};
    while (index-- && figure->name)
        figure = figures_shown(figure + 1, FIGURE_CPU);
    return (struct cpu_member){.name = figure->name, .figure = figure};
}

const char *cpu_member_get(const struct cpu_report *report, const struct cpu_member *member,
                           const struct prcb_processor *delta, uint64_t *ret)
{
    const char *why;

    *ret = 0;
    if (processor_was_offline(delta))
        return "the processor was offline";
    if (member->nt) {
        *ret = cpu_nt_delta(report->nt, report->since, delta->number, member->nt);
        return cpu_nt_absent(member->nt);
    }
    if (delta->present & member->figure->present) {
        *ret = figure_get(member->figure, delta);
        return NULL;
    }
    why = prcb_processor_absent_reason(report->samples->view, member->figure->present);
    return why ? why : "this processor does not tell it";
}

static bool has_name(const struct cpu_states *states, const char *name)
{
    for (size_t i = 0; i < states->count; i++) {
        if (!strcmp(states->names[i], name))
            return true;
    }
    return false;
}

void cpu_states_collect(const struct cpu_samples *samples, struct cpu_states *ret)
{
    ret->count = 0;
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        const struct prcb_processor *p = &samples->start[i];

        for (uint32_t state = 0; state < p->idle_state_count; state++) {
            if (ret->count < CPU_STATES_MAX && !has_name(ret, p->idle_states[state].name))
                ret->names[ret->count++] = p->idle_states[state].name;
        }
    }
}

const struct prcb_idle_state *cpu_state_find(const struct prcb_processor *p, const char *name)
{
    for (uint32_t state = 0; state < p->idle_state_count; state++) {
        if (!strcmp(p->idle_states[state].name, name))
            return &p->idle_states[state];
    }
    return NULL;
}
