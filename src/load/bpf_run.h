/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Running eBPF programs that are loaded, whichever: for who loads them. No state.
 */
#ifndef PRCB_LOAD_BPF_RUN_H
#define PRCB_LOAD_BPF_RUN_H

#include <stdbool.h>

#include <bpf/libbpf.h>

#include <prcb/prcb.h>

/* For libbpf_set_print: its own words go nowhere, ours name what failed. */
int bpf_no_print(enum libbpf_print_level level, const char *format, va_list args);
/* Why programs were not loaded. */
int bpf_explain_load(int code, struct prcb_error *err);

/* Attaches a program unless it is (then *link is set). */
int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err);

/* Runs a program of type syscall on a context. *ret: what it returned. */
int bpf_run_program(int program, void *context, unsigned bytes, int *ret);

/* Runs an iterator program over one task, one process, or (both 0) all. The programs filter
 * for themselves, so looking at more than needed is only slow. *narrow: whether the kernel
 * can point an iterator at one task (6.1); cleared when it cannot. */
int bpf_run_iterator(bool *narrow, int program, pid_t tid, pid_t pid);

/* What an iterator program over everything writes, up to `size` bytes. Returns how many. */
ssize_t bpf_read_iterator(int program, void *buffer, size_t size);

#endif
