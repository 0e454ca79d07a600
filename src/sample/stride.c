/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_size.h"
#include "samples.h"

_Static_assert(sizeof(struct prcb_sample_tail) == PRCB_TAIL_BYTES, "as the program writes it");

size_t prcb_sample_stride_of(const struct prcb_sample_options *opts)
{
    size_t record = sample_record_size(opts->format, opts->groups);

    if (!record || sample_depth(opts) > PRCB_FRAMES_MAX)
        return 0;
    if (!(opts->flags & PRCB_SAMPLE_THREAD))
        return opts->flags & PRCB_SAMPLE_STACK ? 0 : record;
    return record + sizeof(struct prcb_sample_tail) + 8 * sample_depth(opts);
}
