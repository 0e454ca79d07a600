/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Loads an object of eBPF programs by the few of the kernel's types that it needs, and tells why
 * it was refused. What libbpf said last is kept for each thread; a load belongs to one. Programs
 * of our objects stand in sections "prcb_tp/NAME" and "prcb_iter/NAME", which are libbpf's
 * tp_btf and iter but for what they cost to load.
 */
#ifndef PRCB_LOAD_BPF_LOAD_H
#define PRCB_LOAD_BPF_LOAD_H

#include <stdbool.h>

#include <bpf/libbpf.h>

#include <prcb/error.h>

#include "kernel_types.h"

/* A load goes from bpf_load_begin to bpf_load_end, whatever the result of what is between: open
 * the object with `options`, find the types, configure, load. */
struct bpf_load {
    struct bpf_object_open_opts options;
    struct kernel_types types; /* after bpf_load_find_types */
    libbpf_print_fn_t print;   /* whose turn it is again after it */
};

int bpf_load_begin(struct bpf_load *l, struct prcb_error *err);
/* Calls kernel_types_find, and checks what it found with kernel_check. */
int bpf_load_find_types(struct bpf_load *l, const struct bpf_object *object,
                        const char *const *names, enum kernel_for programs, struct prcb_error *err);
void bpf_load_end(struct bpf_load *l);

/* This is called before an attempt to load: what libbpf says goes nowhere but into what
 * bpf_explain_load says to the calling thread. Returns what to hand to libbpf_set_print after
 * it. */
libbpf_print_fn_t bpf_listen(void);
/* Returns the verifier's last lines about the first program of this thread that was refused
 * since it forgot (whoever opens something forgets, then makes several attempts); NULL: none. */
const char *bpf_last_log(void);
void bpf_forget_log(void);
/* Says why programs were not loaded: one sentence that names what was refused, and the reason. */
int bpf_explain_load(int code, struct prcb_error *err);
/* Tells whether it was a map that was refused, for lack of memory. */
bool bpf_lacked_memory(int code);

#endif
