/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The containers: which header goes with which loader. To add one, write its load function in a
 * file of its own and add its row here (docs/hacking/26-dump-format.md).
 */
#include "inside.h"

#include <errno.h>

enum {
    TYPE_FULL = 1,
    TYPE_SUMMARY,
    TYPE_HEADER,
    TYPE_TRIAGE,
    TYPE_BITMAP_FULL,
    TYPE_BITMAP_KERNEL,
    TYPE_AUTOMATIC,
    TYPE_KERNEL,
    TYPE_KERNEL_AND_USER,
    TYPE_COMPLETE
};

#define PROBE(name, bits_, type_)                                                                  \
    static bool name(const struct header *h)                                                       \
    {                                                                                              \
        return h->bits == (bits_) && h->type == (type_);                                           \
    }
PROBE(is_full64, 64, TYPE_FULL)
PROBE(is_full32, 32, TYPE_FULL)
PROBE(is_summary64, 64, TYPE_SUMMARY)
PROBE(is_summary32, 32, TYPE_SUMMARY)
PROBE(is_triage64, 64, TYPE_TRIAGE)
PROBE(is_triage32, 32, TYPE_TRIAGE)
PROBE(is_bitmap_full64, 64, TYPE_BITMAP_FULL)
PROBE(is_bitmap_full32, 32, TYPE_BITMAP_FULL)
PROBE(is_bitmap_kernel64, 64, TYPE_BITMAP_KERNEL)
PROBE(is_bitmap_kernel32, 32, TYPE_BITMAP_KERNEL)
PROBE(is_ranges_kernel64, 64, TYPE_KERNEL)
PROBE(is_ranges_active64, 64, TYPE_KERNEL_AND_USER)
PROBE(is_ranges_full64, 64, TYPE_COMPLETE)
#undef PROBE

/* It is the same for both widths. */
static bool is_header_only(const struct header *h)
{
    return h->type == TYPE_HEADER;
}

static bool is_automatic(const struct header *h)
{
    return h->type == TYPE_AUTOMATIC;
}

/* Of the newer types only 64-bit files are described. */
static bool is_newer(const struct header *h)
{
    return h->type >= TYPE_KERNEL && h->type <= TYPE_COMPLETE;
}

static const struct container containers[] = {
    {"triage64", "triage dump (minidump), 64-bit", 64, is_triage64, load_triage},
    {"bitmap-full64", "complete memory dump with bitmap, 64-bit", 64, is_bitmap_full64,
     load_bitmap},
    {"bitmap-kernel64", "kernel memory dump with bitmap, 64-bit", 64, is_bitmap_kernel64,
     load_bitmap},
    {"full64", "complete memory dump, 64-bit", 64, is_full64, load_runs},
    {"kernel64", "kernel memory dump (summary), 64-bit", 64, is_summary64, load_summary},
    {"triage32", "triage dump (minidump), 32-bit", 32, is_triage32, load_triage},
    {"full32", "complete memory dump, 32-bit", 32, is_full32, load_runs},
    {"bitmap-full32", "complete memory dump with bitmap, 32-bit", 32, is_bitmap_full32,
     load_bitmap},
    {"bitmap-kernel32", "kernel memory dump with bitmap, 32-bit", 32, is_bitmap_kernel32,
     load_bitmap},
    {"kernel32", "kernel memory dump (summary), 32-bit", 32, is_summary32, load_summary},
    {"ranges-kernel64", "kernel memory dump by page ranges (type 8), 64-bit", 64,
     is_ranges_kernel64, load_ranges},
    {"ranges-active64", "kernel and user memory dump by page ranges (type 9), 64-bit", 64,
     is_ranges_active64, load_ranges},
    {"ranges-full64", "complete memory dump by page ranges (type 10), 64-bit", 64, is_ranges_full64,
     load_ranges},
    {"automatic", "automatic memory dump (type 7)", 0, is_automatic, load_automatic},
    {"header", "dump of the header alone (type 3)", 0, is_header_only, load_header},
    {"header", "memory dump by page ranges (types 8 to 10), 32-bit", 32, is_newer, load_header},
};

const struct container *container_find(const struct header *header, struct prcb_error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
        if (containers[i].probe(header))
            return &containers[i];
    }
    prcb_fail(err, -EOPNOTSUPP,
              "a %u-bit Windows crash dump of unknown type %u; types 1 to 10 are supported",
              header->bits, header->type);
    return NULL;
}
