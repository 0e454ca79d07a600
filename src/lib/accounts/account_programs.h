/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The head of a map of accounts, and what the account programs are asked for once they are
 * loaded: for who loads them, the bpf tier and prcbd. No state.
 */
#ifndef PRCB_ACCOUNTS_ACCOUNT_PROGRAMS_H
#define PRCB_ACCOUNTS_ACCOUNT_PROGRAMS_H

#include <stdbool.h>

#include <prcb/error.h>

#include "accounts.h"
#include "block_abi.h"

/* Why programs that have a map of accounts were not loaded. */
int bpf_explain_accounts(int code, struct prcb_error *err);

/* The head of a map of accounts, before the programs are attached. features: what they told.
 * locks: those of lock contention are loaded. */
struct prcb_head_block bpf_account_head(uint32_t features, bool locks);

/* Waits, with *calibrating set, until the attached programs have found the clock's offset. */
int bpf_settle_clock(const struct prcb_head_block *head, uint32_t *calibrating,
                     struct prcb_error *err);

/* Asks the registrar, which puts its answer into *request, for pass 0, 1, ... number: asked->number
 * as the caller's pid namespace has it; 0: it has none. Sets asked->last for the last pass there
 * is. *ret_again: the walk has to be repeated, a little later. "Which threads" in threads.bpf.h
 * says why. */
int bpf_register_pass(bool *narrow, int program, struct prcb_bpf_request *request,
                      struct prcb_bpf_request *asked, __u32 number, unsigned pass, bool *ret_again);

#endif
