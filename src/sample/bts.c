/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Branch Trace Store.
 */
#include <errno.h>
#include <unistd.h>

#include "sampler.h"

int prcb_bts_start(struct prcb_sampler *s, int cpu, const struct prcb_sample_options *opts,
                   struct prcb_sample **ret, struct prcb_error *err)
{
    return prcb_fail(err, -EOPNOTSUPP, "this machine has no branch trace store (no PMU intel_bts)");
}
