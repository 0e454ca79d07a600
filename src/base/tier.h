/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words about tiers that accounts and processors share.
 */
#ifndef PRCB_BASE_TIER_H
#define PRCB_BASE_TIER_H

#include <prcb/prcb.h>

/* Says why there is no bpf tier in a build without PRCB_HAVE_BPF. */
#define PRCB_NO_BPF_TIER                                                                           \
    "this build of prcb has no bpf tier (configured with -Dbpf=disabled, or clang, bpftool or "    \
    "libbpf were missing)"

#endif
