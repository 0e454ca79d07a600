/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the two files of the bpf tier share: its state.
 * Everything here is called under the session's lock.
 */
#ifndef PRCB_ACCOUNTS_TIER_BPF_H
#define PRCB_ACCOUNTS_TIER_BPF_H

#include "session.h"

#include "accounts.h"
#include "block_abi.h"
#include "cgroup.h"
#include "processor_map.h"
#include "accounts.skel.h"

struct bpf_state {
    struct accounts_bpf *skeleton;
    struct accounts_bpf *cgroup_programs;  /* on the same maps; NULL: no cgroup is followed */
    struct processor_programs *processors; /* with PRCB_OPEN_INTERRUPTED; NULL: not to be had */
    struct processor_map processor_map;
    char no_interrupted[256];       /* why not */
    struct cgroup_list cgroups;     /* those that are followed */
    __u64 moved;                    /* processes moved into it that were looked for */
    struct ring_buffer *chosen;     /* NULL: none are asked for */
    struct ring_buffer *ran;        /* the same */
    struct window switches_window;  /* rings of switch records */
    struct chosen_reading *reading; /* during bpf_chosen_read */
    bool iter_by_task;              /* the kernel can point an iterator at one task (6.1) */
};

/* The tier's calls of these names. */
int bpf_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err);
int bpf_profile_process(struct prcb *p, pid_t pid, unsigned follow, struct prcb_error *err);
int bpf_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err);
int bpf_profile_all(struct prcb *p, struct prcb_error *err);
/* From here on prcb_cgroup_attach runs. */
int bpf_follow_cgroups(struct prcb *p, struct prcb_error *err);
int bpf_refresh(struct prcb *p, struct prcb_error *err);
int bpf_open_chosen(struct prcb *p, struct prcb_error *err);
int bpf_chosen_chain(struct prcb *p, uint64_t key, const struct prcb_chain *chain,
                     struct prcb_error *err);
int bpf_ran_program(const struct prcb *p);
int bpf_ran_read(struct prcb *p, prcb_ran_fn fn, void *ctx, struct prcb_error *err);
int bpf_chosen_read(struct prcb *p, prcb_chosen_fn fn, void *ctx, uint64_t *ret_lost,
                    struct prcb_error *err);

#endif
