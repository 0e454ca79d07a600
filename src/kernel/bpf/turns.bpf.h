/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Loops whose body the verifier walks once, and not once a turn: by bpf_loop, or before 5.17 by
 * bpf_for_each_map_elem (5.13), a turn an element of an array that is made there alone.
 *
 *   static long step(__u32 i, struct state *state);    1: it is done
 *   TURNS(step, struct state, most)                    behind step; most: of turns, at most
 *                                                      PRCB_TURNS_MAX, may name state
 *   REPEAT(count, step, &state)                        count: as most has it
 */
#ifndef PRCB_TURNS_BPF_H
#define PRCB_TURNS_BPF_H

#include "kernel.bpf.h"

#define PRCB_TURNS_MAX 1000

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, PRCB_TURNS_MAX);
    __type(key, __u32);
    __type(value, __u32);
} turns SEC(".maps");

#define TURNS(step, type, most)                                                                    \
    static __attribute__((unused)) long step##_turn(void *map, const __u32 *i, void *value,        \
                                                    type *state)                                   \
    {                                                                                              \
        return *i < (most) ? step(*i, state) : 1;                                                  \
    }

#define REPEAT(count, step, state)                                                                 \
    (HAS_HELPER(loop) ? bpf_loop(count, step, state, 0)                                            \
                      : bpf_for_each_map_elem(&turns, step##_turn, state, 0))

#endif
