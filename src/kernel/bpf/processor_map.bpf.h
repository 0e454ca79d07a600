/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * This map holds the processors' blocks. The programs of processors.bpf.c write them; other
 * objects are given their map when they are loaded, and where nobody does so it is one that
 * nobody writes.
 */
#ifndef PRCB_PROCESSOR_MAP_BPF_H
#define PRCB_PROCESSOR_MAP_BPF_H

#include "kernel.bpf.h"
#include "processor_abi.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_processor_block);
} processor_map SEC(".maps");

#endif
