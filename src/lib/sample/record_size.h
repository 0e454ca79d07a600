/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long the records are that the sampling programs write.
 */
#ifndef PRCB_SAMPLE_RECORD_SIZE_H
#define PRCB_SAMPLE_RECORD_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include <prcb/sample.h>

/* Returns 0 if it is not a format that they write. */
static inline size_t sample_record_size(uint32_t format, uint32_t groups)
{
    static const size_t sizes[] = {0x90, 0xb0, 0xc0, 0xc8};

    if (format < 4)
        return sizes[format];
    if (format > 6)
        return 0;
    return 0x20 + (groups & PRCB_SAMPLE_MEMORY ? 0x20u : 0) +
           (groups & PRCB_SAMPLE_GPR ? 0x90u : 0);
}

/* Frames of a stack that have room in a tail. */
static inline uint32_t sample_depth(const struct prcb_sample_options *opts)
{
    if (!(opts->flags & PRCB_SAMPLE_STACK))
        return 0;
    return opts->depth ? opts->depth : 64;
}

#endif
