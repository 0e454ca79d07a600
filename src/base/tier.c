/* SPDX-License-Identifier: BSD-2-Clause */
#include "tier.h"

const char *prcb_tier_name(enum prcb_tier tier)
{
    switch (tier) {
    case PRCB_TIER_PERF:
        return "perf";
    case PRCB_TIER_BPF:
        return "bpf";
    case PRCB_TIER_DAEMON:
        return "daemon";
    default:
        return "auto";
    }
}
