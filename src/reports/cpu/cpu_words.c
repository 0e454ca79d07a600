/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "misses.h"

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

struct wanted {
    const struct cpu_samples *samples;
    unsigned command;
};

static const char *reason_of(const void *ctx, const struct figure *figure)
{
    const struct wanted *wanted = ctx;

    return figure->shown & wanted->command
               ? prcb_processor_absent_reason(wanted->samples->view, figure->present)
               : NULL;
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

static int next_program(void *from, uint32_t i, struct prcb_program *ret)
{
    return prcb_processors_program(from, i, ret);
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
                     unsigned command)
{
    const struct wanted wanted = {samples, command};
    char no[64];

    write_tier(out, prefix, samples, prcb_processors_tier(samples->view),
               prcb_processors_tier_reason(samples->view));
    snprintf(no, sizeof(no), "%sno ", prefix);
    figures_write_absent(out, processor_figures, reason_of, &wanted, no, ": ");
    write_missed(out, prefix, samples);
    misses_write(out, prefix, next_program, samples->view,
                 "times may be counted to the state before");
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
