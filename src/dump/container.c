/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The containers: which header goes with which loader. To add one, write its load function in a
 * file of its own and add its row here (HACKING.md).
 */
#include "inside.h"

#include <errno.h>

enum {
    TYPE_FULL = 1,
    TYPE_SUMMARY,
    TYPE_HEADER,
    TYPE_TRIAGE,
    TYPE_BITMAP_FULL,
    TYPE_BITMAP_KERNEL
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
#undef PROBE

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
};

/* Types that are recognised and not read. */
static const struct {
    uint32_t type;
    const char *what;
} named_types[] = {
    {TYPE_HEADER, "a dump of the header alone: it holds no processor"},
    {7, "an automatic memory dump of type 7"},
    {8, "a kernel memory dump of type 8 (live or Windows 10+)"},
    {9, "a kernel and user memory dump of type 9 (active memory)"},
    {10, "a complete memory dump of type 10"},
};

const struct container *container_find(const struct header *header, struct prcb_error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
        if (containers[i].probe(header))
            return &containers[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(named_types); i++) {
        if (named_types[i].type == header->type) {
            prcb_fail(err, -EOPNOTSUPP, "this is %s, %u-bit, which is recognised but not read",
                      named_types[i].what, header->bits);
            return NULL;
        }
    }
    prcb_fail(err, -EOPNOTSUPP,
              "a %u-bit Windows crash dump of type %u, which is not known; types 1, 2, 4, 5 and 6 "
              "are read",
              header->bits, header->type);
    return NULL;
}
