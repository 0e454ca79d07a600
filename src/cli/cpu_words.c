/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum prcb_tier cpu_report_tier(const struct cpu_report *report)
{
    return report->nt ? prcb_nt_processors_tier() : prcb_processors_tier(report->samples->view);
}

void cpu_title_write(FILE *out, const struct cpu_samples *samples, enum prcb_tier tier)
{
    uint32_t online = 0, chosen = 0;

    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        chosen++;
        online += samples->now[i].flags & PRCB_CPU_ONLINE ? 1 : 0;
    }
    fprintf(out, "%" PRIu32 " processor%s, %" PRIu32 " online; %s tier: ", chosen,
            chosen == 1 ? "" : "s", online, prcb_tier_name(tier));
    if (tier >= PRCB_TIER_BPF)
        fputs("exact times\n", out);
    else
        fprintf(out, "times as sampled by the kernel's tick, in steps of %ld ms\n",
                1000 / sysconf(_SC_CLK_TCK));
}

/* Members with the names of JSON. */
static const struct {
    uint64_t bit;
    const char *name;
} members[] = {
    {PRCB_CPU_HAS_TIMES, "user, kernel, idle"}, {PRCB_CPU_HAS_DPC, "dpc"},
    {PRCB_CPU_HAS_INTERRUPT, "interrupt time"}, {PRCB_CPU_HAS_STEAL, "steal"},
    {PRCB_CPU_HAS_INTERRUPTS, "interrupts"},    {PRCB_CPU_HAS_SWITCHES, "switches"},
    {PRCB_CPU_HAS_MISSED, "missed_switches"},   {PRCB_CPU_HAS_IDLE_ENTRIES, "idle entries"},
    {PRCB_CPU_HAS_IDLE_STATES, "idle_states"},  {PRCB_CPU_HAS_MHZ, "mhz"},
    {PRCB_CPU_HAS_MAX_MHZ, "max_mhz"},          {PRCB_CPU_HAS_LIMIT_MHZ, "limit_mhz"},
    {PRCB_CPU_HAS_MIN_MHZ, "min_mhz"},          {PRCB_CPU_HAS_NOMINAL_MHZ, "nominal_mhz"},
    {PRCB_CPU_HAS_PERFORMANCE, "performance"},  {PRCB_CPU_HAS_THROTTLES, "throttles"},
};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

static const char *reason_of(const struct cpu_samples *samples, size_t member, uint64_t wanted)
{
    return wanted & members[member].bit
               ? prcb_processor_absent_reason(samples->view, members[member].bit)
               : NULL;
}

/* Members that are absent for one reason share a line. */
static void write_absent(FILE *out, const char *prefix, const struct cpu_samples *samples,
                         uint64_t wanted)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *reason = reason_of(samples, i, wanted);
        bool said = false;

        for (size_t k = 0; reason && !said && k < i; k++) {
            const char *earlier = reason_of(samples, k, wanted);

            said = earlier && !strcmp(earlier, reason);
        }
        if (!reason || said)
            continue;
        fprintf(out, "%sno %s", prefix, members[i].name);
        for (size_t k = i + 1; k < MEMBERS; k++) {
            const char *later = reason_of(samples, k, wanted);

            if (later && !strcmp(later, reason))
                fprintf(out, ", %s", members[k].name);
        }
        fprintf(out, ": %s\n", reason);
    }
}

static void write_missed(FILE *out, const char *prefix, const struct cpu_samples *samples)
{
    uint64_t missed = 0;

    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        struct prcb_processor p;

        cpu_samples_delta(samples, CPU_SINCE_START, i, &p);
        if (p.present & PRCB_CPU_HAS_MISSED)
            missed += p.missed_switches;
    }
    if (missed)
        fprintf(out,
                "%s%" PRIu64 " switch%s counted and not reported by the kernel; no time depends on "
                "them\n",
                prefix, missed, missed == 1 ? " was" : "es were");
}

static void write_ended(FILE *out, const char *prefix, const struct cpu_samples *samples)
{
    uint32_t any = cpu_samples_next(samples, 0);

    if (any < samples->count && samples->now[any].flags & PRCB_CPU_ORPHAN)
        fprintf(
            out,
            "%sprcbd gave its programs up, cleaned away or replaced by another version: figures "
            "stay as they were then\n",
            prefix);
}

static void write_tier(FILE *out, const char *prefix, const struct cpu_samples *samples,
                       enum prcb_tier tier, const char *reason)
{
    if (!reason)
        reason = samples->recorded ? "a recorded machine" : "asked for";
    if (tier < PRCB_TIER_BPF)
        fprintf(out, "%s%s tier: %s\n", prefix, prcb_tier_name(tier), reason);
}

void cpu_notes_write(FILE *out, const char *prefix, const struct cpu_samples *samples,
                     uint64_t wanted)
{
    write_tier(out, prefix, samples, prcb_processors_tier(samples->view),
               prcb_processors_tier_reason(samples->view));
    write_absent(out, prefix, samples, wanted);
    write_missed(out, prefix, samples);
    write_ended(out, prefix, samples);
}

void cpu_nt_notes_write(FILE *out, const char *prefix, const struct cpu_samples *samples)
{
    const struct prcb_nt_member *member;

    write_tier(out, prefix, samples, prcb_nt_processors_tier(), prcb_nt_processors_tier_reason());
    for (size_t i = 0; (member = cpu_nt_member(i)); i++) {
        const char *reason = cpu_nt_absent(member);

        if (reason)
            fprintf(out, "%sno %s: %s\n", prefix, member->name, reason);
    }
}
