/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs eBPF programs of any kind that are loaded, for whoever loads them (bpf_load.h). It has no
 * state.
 */
#ifndef PRCB_LOAD_BPF_RUN_H
#define PRCB_LOAD_BPF_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include <prcb/error.h>

struct prcb_program;

/* Attaches a program that is loaded to what its section says; NULL, with errno: it cannot be. */
struct bpf_link *bpf_attach_program(struct bpf_program *program);
/* Does the same unless it is attached (then *link is set). */
int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err);

/* Returns how often the kernel did not run a program for an event, because it was in the middle
 * of it on that processor; UINT64_MAX: it does not say, or does not count it of programs on perf
 * events. ret_id: the program's number in the kernel, which no other gets later; NULL: not
 * wanted. */
uint64_t bpf_misses_of(int program, uint32_t *ret_id);
/* Returns the i-th (from 0) of the object's programs that are loaded and that the kernel runs
 * for events. NULL, or -ENOENT: there are no more. */
const struct bpf_program *bpf_event_program_at(const struct bpf_object *object, uint32_t i);
int bpf_event_program(const struct bpf_object *object, uint32_t i, struct prcb_program *ret);

/* Runs a program of type syscall on a context. *ret: what it returned; NULL: not wanted. */
int bpf_run_program(int program, void *context, unsigned bytes, int *ret);

/* Waits until every program that was running has ended. */
int bpf_wait_for_programs(void);

/* Runs an iterator program over one task, one process, or (both 0) all. The programs filter
 * for themselves, so looking at more than needed is only slow. *narrow: whether the kernel
 * can point an iterator at one task (6.1); cleared when it cannot. */
int bpf_run_iterator(bool *narrow, int program, pid_t tid, pid_t pid);

/* Reads what an iterator program over one task, or (0) everything, writes, up to `size` bytes.
 * Returns how many. -EOPNOTSUPP: the kernel cannot point an iterator at one task (6.1); -ESRCH:
 * there is none. */
ssize_t bpf_read_iterator(int program, pid_t tid, void *buffer, size_t size);
/* Makes what prcb_kernel_stack has written of a thread the text of prcb_kernel_stack of prcb.h:
 * names alone. Returns the length that it has in the same buffer, its end included. */
size_t bpf_kernel_names(char *text, size_t length);

#endif
