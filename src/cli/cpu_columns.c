/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_report.h"

#include <string.h>

#define NS_PER_NT 100 /* NT's unit of time is 100 ns */

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

static uint64_t nt_idle(const struct prcb_processor *p)
{
    return p->idle_ns / NS_PER_NT;
}

/* NT charges a tick to the kernel first, and then once more to what of it was idle, a DPC or an
 * interrupt. What the hypervisor took has no place of its own there. */
static uint64_t nt_kernel(const struct prcb_processor *p)
{
    return (p->kernel_ns + p->idle_ns + p->dpc_ns + p->interrupt_ns + p->steal_ns) / NS_PER_NT;
}

static uint64_t nt_user(const struct prcb_processor *p)
{
    return p->user_ns / NS_PER_NT;
}

static uint64_t nt_dpc(const struct prcb_processor *p)
{
    return p->dpc_ns / NS_PER_NT;
}

static uint64_t nt_interrupt(const struct prcb_processor *p)
{
    return p->interrupt_ns / NS_PER_NT;
}

/* A ULONG in the structure. */
static uint64_t nt_interrupts(const struct prcb_processor *p)
{
    return (uint32_t)p->interrupts;
}

const struct cpu_column cpu_nt_columns[] = {
    {"IdleTime", PRCB_CPU_HAS_TIMES, nt_idle},
    {"KernelTime", PRCB_CPU_HAS_TIMES, nt_kernel},
    {"UserTime", PRCB_CPU_HAS_TIMES, nt_user},
    {"DpcTime", PRCB_CPU_HAS_DPC, nt_dpc},
    {"InterruptTime", PRCB_CPU_HAS_INTERRUPT, nt_interrupt},
    {"InterruptCount", PRCB_CPU_HAS_INTERRUPTS, nt_interrupts},
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
