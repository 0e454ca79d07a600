/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where Go's runtime keeps what is read of it: a row a release. Offsets are of 64-bit processors.
 */
#ifndef PRCB_RUNTIMES_GO_LAYOUTS_H
#define PRCB_RUNTIMES_GO_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

struct go_layout {
    uint32_t minor;
    /* moduledata */
    uint32_t text, bss, bss_end, extra;
    /* g */
    uint32_t sp, pc, self, syscall_sp, syscall_pc, status, id, reason, size;
    /* Words of waitReason. */
    const char *const *reasons;
    size_t reason_count;
};

/* NULL: not known */
const struct go_layout *go_layout_of(uint32_t minor);

#endif
