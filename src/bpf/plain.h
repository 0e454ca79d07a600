/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * A call that stands in the programs for bpf_rdonly_cast, until the loader puts that, or a plain
 * move, in its place: kernel.bpf.h and bpf_load.c, in one build. No helper has this number.
 */
#ifndef PRCB_PLAIN_H
#define PRCB_PLAIN_H

#define PRCB_PLAIN_CALL 0x70726362

#endif
