/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_looks.h"

#include <string.h>

uint32_t cpu_samples_next(const struct cpu_samples *s, uint32_t number)
{
    while (number < s->count && (!s->chosen[number] || s->now[number].flags & PRCB_CPU_ABSENT))
        number++;
    return number;
}

void cpu_samples_delta(const struct cpu_samples *s, enum cpu_since since, uint32_t number,
                       struct prcb_processor *ret)
{
    const struct prcb_processor *earlier = since == CPU_SINCE_START ? s->start : s->mark;

    ret->size = sizeof(*ret);
    prcb_processor_sub(&s->now[number], &earlier[number], ret);
}

uint64_t cpu_samples_wall(const struct cpu_samples *s, enum cpu_since since)
{
    return s->now_ns - (since == CPU_SINCE_START ? s->start_ns : s->mark_ns);
}

/* ---- as NT has them ---- */

const struct prcb_nt_member *cpu_nt_member(size_t index)
{
    const struct prcb_nt_member *member;

    for (size_t i = 0; (member = prcb_nt_member(SystemProcessorPerformanceInformation, i)); i++) {
        if (strncmp(member->name, "Spare", 5) && !index--)
            return member;
    }
    return NULL;
}

static uint64_t value(const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *element,
                      const struct prcb_nt_member *member)
{
    uint64_t number = 0;

    memcpy(&number, (const char *)element + member->offset, member->size);
    return number;
}

/* Counts wrap at the size of their member. */
uint64_t cpu_nt_delta(const struct cpu_nt *nt, enum cpu_since since, uint32_t number,
                      const struct prcb_nt_member *member)
{
    const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *from =
        since == CPU_SINCE_START ? nt->start : nt->mark;
    uint64_t grown = value(&nt->now[number], member) - value(&from[number], member);

    return member->size < sizeof(grown) ? (uint32_t)grown : grown;
}

uint64_t cpu_nt_wall(const struct cpu_nt *nt, enum cpu_since since, uint32_t number)
{
    const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *from =
        &(since == CPU_SINCE_START ? nt->start : nt->mark)[number];
    const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *now = &nt->now[number];

    return 100 * (uint64_t)(now->KernelTime.QuadPart - from->KernelTime.QuadPart +
                            now->UserTime.QuadPart - from->UserTime.QuadPart);
}

const char *cpu_nt_absent(const struct prcb_nt_member *member)
{
    return prcb_nt_absent(SystemProcessorPerformanceInformation, member->offset);
}
