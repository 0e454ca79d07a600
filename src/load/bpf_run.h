/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Running eBPF programs that are loaded, whichever: for who loads them. No state but
 * what libbpf said last in each thread.
 */
#ifndef PRCB_LOAD_BPF_RUN_H
#define PRCB_LOAD_BPF_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include <prcb/prcb.h>

/* Before an attempt to load: what libbpf says goes nowhere but into what bpf_explain_load says to
 * the calling thread. Returns what to hand to libbpf_set_print after it. */
libbpf_print_fn_t bpf_listen(void);
/* The verifier's last lines about what was refused in it; NULL: none. */
const char *bpf_last_log(void);
/* Why programs were not loaded: one sentence that names what was refused, and the reason. */
int bpf_explain_load(int code, struct prcb_error *err);
/* Whether it was a map, for which there was no memory. */
bool bpf_lacked_memory(int code);

/* Attaches a program unless it is (then *link is set). */
int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err);

/* How often the kernel did not run a program for an event, because it was in the middle of it on
 * that processor; UINT64_MAX: it does not say, or does not count it of programs on perf events. */
uint64_t bpf_misses_of(int program);
/* The object's programs that are loaded and that the kernel runs for events. -ENOENT: no more. */
int bpf_event_program(const struct bpf_object *object, uint32_t i, struct prcb_program *ret);

/* Runs a program of type syscall on a context. *ret: what it returned. */
int bpf_run_program(int program, void *context, unsigned bytes, int *ret);

/* Runs an iterator program over one task, one process, or (both 0) all. The programs filter
 * for themselves, so looking at more than needed is only slow. *narrow: whether the kernel
 * can point an iterator at one task (6.1); cleared when it cannot. */
int bpf_run_iterator(bool *narrow, int program, pid_t tid, pid_t pid);

/* What an iterator program over everything writes, up to `size` bytes. Returns how many. */
ssize_t bpf_read_iterator(int program, void *buffer, size_t size);

#endif
