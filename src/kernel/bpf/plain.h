/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * These calls stand in the programs until the loader puts something else in their places: one
 * for bpf_rdonly_cast, or a plain move where the kernel has none, and one for whether it has.
 * kernel.bpf.h and bpf_load.c share them, in one build. No helpers have these numbers.
 */
#ifndef PRCB_PLAIN_H
#define PRCB_PLAIN_H

#define PRCB_PLAIN_CALL 0x70726362
#define PRCB_CASTS_CALL 0x70726363

#endif
