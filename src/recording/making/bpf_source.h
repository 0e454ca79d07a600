/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Samples and switches by eBPF programs: cheaper than the perf ring's, and switches with their
 * causes. The records are put among those of the rings, in the order of time.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_BPF_SOURCE_H
#define PRCB_RECORD_BPF_SOURCE_H

#include "rings.h"

struct bpf_source; /* opaque */

/* Whether the threads to be recorded can be chosen: events are those of every thread then, which
 * cost a thread nothing at its switches. Not where interrupts of the event cannot be masked. */
bool bpf_source_can_choose(const struct rings_options *options);

/* Loads the programs; switches begin at once, for the whole system, or (only_chosen) for the
 * threads that are chosen and those that they start. samples: also samples of options->event, once
 * a thread or all threads are added. wakers: a view that outlives the source, with which switches
 * tell who woke threads; NULL: they do not. */
int bpf_source_open(const struct rings_options *options, bool samples, bool only_chosen,
                    const struct prcb_processors *wakers, struct bpf_source **ret,
                    struct prcb_error *err);
void bpf_source_close(struct bpf_source *source); /* NULL is allowed */

/* Whether an event can be sampled so: its weight must be known beforehand. */
bool bpf_source_can_sample(const struct rings_options *options);

/* Chooses the threads of a process, or (pid 0) one thread. -ESRCH: there is none. */
int bpf_source_choose(struct bpf_source *source, pid_t pid, pid_t tid, struct prcb_error *err);
/* For rings_filter. */
int bpf_source_filter(const struct bpf_source *source);
/* As prcb_sampler_filter_then. */
void bpf_source_filter_then(struct bpf_source *source, int program);

/* Adds a thread; tid 0: every thread of the system. Samples of threads begin at once, or with
 * their exec if the options say so; threads that they create are sampled too. */
int bpf_source_add(struct bpf_source *source, pid_t tid, struct prcb_error *err);
void bpf_source_stop(struct bpf_source *source);

/* Hands over what there is. *ret_full: how full the fullest buffer was, in percent, or more if
 * it was more before. */
int bpf_source_read(struct bpf_source *source, struct rings *rings, unsigned *ret_full);
/* Returns how many records found no room since the source was opened. */
uint64_t bpf_source_lost_samples(const struct bpf_source *source);
uint64_t bpf_source_lost_switches(const struct bpf_source *source);

/* Does the same as prcb_sampler_program. */
int bpf_source_program(struct bpf_source *source, uint32_t i, struct prcb_program *ret);

#endif
