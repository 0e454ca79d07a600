/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_size.h"
#include "samples.h"
#include "sized.h"

_Static_assert(sizeof(struct prcb_sample_tail) == PRCB_TAIL_BYTES, "as the program writes it");

size_t prcb_sample_stride_of(const struct prcb_sample_options *opts)
{
    struct prcb_sample_options known;
    size_t record;

    if (sized_take_options("prcb_sample_options", opts, &known, sizeof(known), NULL))
        return 0;
    record = sample_record_size(known.format, known.groups);
    if (!record || sample_depth(&known) > PRCB_FRAMES_MAX)
        return 0;
    if (!(known.flags & PRCB_SAMPLE_THREAD))
        return known.flags & PRCB_SAMPLE_STACK ? 0 : record;
    return record + sizeof(struct prcb_sample_tail) + 8 * sample_depth(&known);
}
