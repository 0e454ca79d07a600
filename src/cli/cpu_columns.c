/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_report.h"

#include <string.h>

#define GET(member)                                                                                \
    static uint64_t get_##member(const struct prcb_processor *p)                                   \
    {                                                                                              \
        return p->member;                                                                          \
    }
GET(user_ns)
GET(kernel_ns)
GET(dpc_ns)
GET(interrupt_ns)
GET(steal_ns)
GET(idle_ns)
GET(interrupts)
GET(switches)
GET(missed_switches)
GET(mhz)
GET(max_mhz)

const struct cpu_column cpu_columns[] = {
    {"user_ns", PRCB_CPU_HAS_TIMES, get_user_ns},
    {"kernel_ns", PRCB_CPU_HAS_TIMES, get_kernel_ns},
    {"dpc_ns", PRCB_CPU_HAS_DPC, get_dpc_ns},
    {"interrupt_ns", PRCB_CPU_HAS_INTERRUPT, get_interrupt_ns},
    {"steal_ns", PRCB_CPU_HAS_STEAL, get_steal_ns},
    {"idle_ns", PRCB_CPU_HAS_TIMES, get_idle_ns},
    {"interrupts", PRCB_CPU_HAS_INTERRUPTS, get_interrupts},
    {"switches", PRCB_CPU_HAS_SWITCHES, get_switches},
    {"missed_switches", PRCB_CPU_HAS_MISSED, get_missed_switches},
    {"idle_states", PRCB_CPU_HAS_IDLE_STATES, NULL},
    {"mhz", PRCB_CPU_HAS_MHZ, get_mhz},
    {"max_mhz", PRCB_CPU_HAS_MAX_MHZ, get_max_mhz},
    {0},
};

bool cpu_column_present(const struct cpu_column *column, const struct prcb_processor *delta)
{
    return !cpu_was_offline(delta) && (delta->present & column->members) == column->members;
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
