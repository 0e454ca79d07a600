/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The processors as the system information classes want them: one view for the process, opened
 * when first wanted, its figures carried back to the system's start; and what NT's arithmetic keeps
 * for each processor. All under the lock of inside.h.
 */
#ifndef PRCB_NT_VIEW_H
#define PRCB_NT_VIEW_H

#include <prcb/processors.h>

#include "inside.h"
#include "procfs.h"

/* ---- since the system's start: boot.c ---- */

struct nt_boot {
    uint64_t idle_ns, user_ns, kernel_ns, dpc_ns, interrupt_ns, steal_ns;
    uint64_t interrupts, dpcs;
    uint32_t idle_state_count; /* 0: no cpuidle, which would have counted */
    struct {
        uint64_t entries, residency_ns;
    } idle_states[PRCB_IDLE_STATES_MAX];
};

/* What /proc tells of processors 0 .. count - 1, zero where it has none. fs: opened on a root that
 * holds `proc`. -errno: no proc/stat, or not one. */
int nt_boot_read(struct procfs *fs, uint32_t count, struct nt_boot *ret, uint64_t *ret_switches,
                 struct prcb_error *err);

/* Reads the switches of all processors till now. */
int nt_boot_switches(struct procfs *fs, uint64_t *ret);

/* ---- frequencies.c ---- */

#define NT_FREQUENCIES_MAX 128

/* Holds cpufreq's time in each frequency, lowest first. */
struct nt_frequencies {
    uint32_t count; /* 0: not told */
    struct {
        uint32_t khz;
        uint64_t hits; /* USER_HZ ticks in it */
    } states[NT_FREQUENCIES_MAX];
};
void nt_frequencies_read(struct procfs *fs, uint32_t number, struct nt_frequencies *ret);
/* Of .../cpufreq/stats/time_in_state, up to a line that is none. */
void nt_frequencies_parse(const char *text, size_t length, struct nt_frequencies *ret);

/* ---- what is kept for a processor ---- */

enum nt_time { NT_IDLE, NT_KERNEL, NT_USER, NT_DPC, NT_INTERRUPT, NT_TIMES };

struct nt_cpu {
    struct nt_boot boot;
    /* With mode `ticks`, this is what was counted till KeSetTimeIncrement. */
    uint64_t from_ns[NT_TIMES];
    uint32_t ticks[NT_TIMES];
    /* These belong to DpcRate, as of the last query. */
    uint64_t rate_at; /* CLOCK_MONOTONIC */
    uint64_t rate_dpcs;
    double rate;
};

/* ---- the view ---- */

/* Opens the view or brings it up to date. On the bpf tier times, counts and who is on line are in
 * memory: for processors that have come on line, all are looked at there once a second. For the
 * rest, frequencies and everything on the perf tier, the system is asked: when fresh is true or the
 * tier is perf. */
NTSTATUS nt_view_look(bool fresh);

/* Serves callers that only count processors: the system is asked once a second, on the perf tier
 * too, whose files are many on a large machine. */
NTSTATUS nt_view_glance(void);
/* Opens the view if there is none: for what stays the same from then on. */
NTSTATUS nt_view_have(void);
/* As many processors are, or have been, online: 0 .. n - 1. */
uint32_t nt_view_active(void);
/* The group of processors that the caller runs in, which it may leave the moment after; no lock is
 * needed. */
uint32_t nt_current_group(void);
/* Returns false if no active processor is in it. */
bool nt_group(uint32_t group, uint32_t *ret_first, uint32_t *ret_count);
/* Reads active processors from `first` on: all of them, and only then are any stored. */
NTSTATUS nt_view_read(uint32_t first, uint32_t count);
/* Returns a record as of nt_view_read: totals since the system's start, but for switches and idle
 * entries, which count from the opening. */
const struct prcb_processor *nt_view_record(uint32_t number);
struct nt_cpu *nt_view_cpu(uint32_t number);
/* Sums switches of all processors since the system's start: of records that nt_view_read has
 * filled, or where these have none, by proc/stat. */
int nt_view_switches(uint64_t *ret);
/* Returns what is opened on the view's root. */
struct procfs *nt_view_files(void);
/* Says what prcb_processor_absent_reason says. */
const char *nt_view_absent_reason(uint64_t member);
/* Is called before the increment changes: it does nt_fold_ticks for every processor, if there is a
 * view. */
void nt_view_fold(void);
void nt_view_forget(void);

/* ---- times.c ---- */

/* In 100 ns, in the mode that is set. */
void nt_times(const struct prcb_processor *record, const struct nt_cpu *cpu, int64_t ret[NT_TIMES]);
/* Adds up what was counted so far with the present increment, before it changes. */
void nt_fold_ticks(const struct prcb_processor *record, struct nt_cpu *cpu);
/* Returns softirqs a tick: the mean of the rate before and what came since, once for each tick. */
uint32_t nt_dpc_rate(struct nt_cpu *cpu, uint64_t dpcs, uint64_t now);

/* ---- cycles.c ---- */

/* Cycles of the time-stamp counter, at a rate that is measured once in a process; nanoseconds where
 * there is no counter to be trusted. The first call takes 10 ms, unless nt_cycles_begin was called
 * so long before. Needs no view. */
void nt_cycles_begin(void);
uint64_t nt_cycles(uint64_t ns);

#endif
