/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Running eBPF programs that are loaded, and what the account programs must be told of
 * this kernel before they are: for who loads them, the bpf tier and prcbd. No state.
 */
#ifndef PRCB_LOAD_BPF_RUN_H
#define PRCB_LOAD_BPF_RUN_H

#include <stdbool.h>

#include <bpf/libbpf.h>

#include <prcb/prcb.h>

#include "accounts.h"
#include "block_abi.h"

/* What this kernel reports. */
struct bpf_facts {
    bool prev_state; /* sched_switch passes the state (5.18) */
    bool locks;      /* the tracepoints of lock contention (5.19) */
};
int bpf_find_facts(struct bpf_facts *ret, struct prcb_error *err);

/* For libbpf_set_print: its own words go nowhere, ours name what failed. */
int bpf_no_print(enum libbpf_print_level level, const char *format, va_list args);
/* Why programs were not loaded; the second for those that have a map of accounts. */
int bpf_explain_load(int code, struct prcb_error *err);
int bpf_explain_accounts(int code, struct prcb_error *err);

/* The head of a map of accounts, before the programs are attached. features: what they told.
 * locks: those of lock contention are loaded. */
struct prcb_head_block bpf_account_head(uint32_t features, bool locks);

/* Waits, with *calibrating set, until the attached programs have found the clock's offset. */
int bpf_settle_clock(const struct prcb_head_block *head, uint32_t *calibrating,
                     struct prcb_error *err);

/* Runs a program of type syscall on a context. *ret: what it returned. */
int bpf_run_program(int program, void *context, unsigned bytes, int *ret);

/* Runs an iterator program over one task, one process, or (both 0) all. The programs filter
 * for themselves, so looking at more than needed is only slow. *narrow: whether the kernel
 * can point an iterator at one task (6.1); cleared when it cannot. */
int bpf_run_iterator(bool *narrow, int program, pid_t tid, pid_t pid);

/* Pass 0, 1, ... of the registrar, which puts its answer into *request. number: asked->number as
 * the caller's pid namespace has it; 0: it has none. Sets asked->last for the last pass there is.
 * *ret_again: the walk has to be repeated, a little later. Why: "which threads" in
 * accounts.bpf.c. */
int bpf_register_pass(bool *narrow, int program, struct prcb_bpf_request *request,
                      struct prcb_bpf_request *asked, __u32 number, unsigned pass, bool *ret_again);

/* What an iterator program over everything writes, up to `size` bytes. Returns how many. */
ssize_t bpf_read_iterator(int program, void *buffer, size_t size);

#endif
