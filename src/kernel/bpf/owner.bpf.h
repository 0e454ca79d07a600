/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Says who owns the accounts: the process that loads the programs (own.bpf.inc), or, with
 * PRCB_CLIENTS, each client of the daemon its own (clients.bpf.inc). Both have the same
 * functions.
 */
#ifndef PRCB_OWNER_BPF_H
#define PRCB_OWNER_BPF_H

#include "globals.bpf.h"
#include "who.bpf.h"
#include "tag.bpf.h"
#include "clock.bpf.h"
#include "processor_abi.h"
#include "seqcount_abi.h"

#ifdef PRCB_CLIENTS
#include "clients.bpf.inc"
#else
#include "own.bpf.inc"
#endif

#endif
