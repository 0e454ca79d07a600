/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From a block in mapped memory to a record: the copy under the sequence count,
 * the figures derived from it, and the rule that a handle never goes backwards.
 * Pure functions over memory; no session, no system call but one yield.
 */
#ifndef PRCB_ACCOUNTS_ACCOUNT_H
#define PRCB_ACCOUNTS_ACCOUNT_H

#include <prcb/prcb.h>

#include "block_abi.h"

/* Copies the first bytes (a multiple of 8) of an account, consistently. *passes
 * grows by the passes that were thrown away. -EAGAIN: inconsistent for 20 ms. */
int account_copy(const struct prcb_account_block *block, uint32_t bytes,
                 struct prcb_account_block *ret, uint32_t *retries);

/* Reads the first cache line, and what interrupts took. The rest of *ret stays as it was. */
int account_copy_times(const struct prcb_account_block *block, struct prcb_account_block *ret,
                       uint32_t *retries);

/* Thread number and name, which have a sequence count of their own. */
void account_identity(const struct prcb_account_block *block, struct prcb_account *ret);

/* This bit beside the features says that the writer is of an ABI before 1.9 and does not keep
 * unclear_wakes. */
#define ACCOUNT_FEATURE_OLD_WORD (1u << 31)

/* Fills a record from a copy, as of the moment now (the writer's clock).
 * features: of the head page. ticks_per_ns: 0 if cycles cannot be told. */
void account_convert(const struct prcb_account_block *copy, uint64_t now, uint32_t features,
                     double ticks_per_ns, struct prcb_account *ret);

/* Returns the cycles of its run time; they are never less than the record has. */
void account_cycles(double ticks_per_ns, struct prcb_account *ret);

/* Returns the time on a processor since the last closed stretch. */
uint64_t account_live_run(const struct prcb_account_block *copy, uint64_t now);

/* Of a hot line, and the guess of one that is unseen: whether its thread waits, or has ended. */
bool account_rests(const struct prcb_account_block *copy);

/* Makes a later record no smaller than an earlier one of the same account: where
 * the live part of run was estimated too high, what was returned stays and the
 * difference is taken from what grew instead, so that the sum law holds. */
void account_never_back(const struct prcb_account *earlier, struct prcb_account *later);

#endif
