/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Areas in the steps that NT takes: memory first, then whose it is. Programs call
 * prcb_ds_area_alloc, which does both.
 */
#ifndef PRCB_SAMPLE_AREA_H
#define PRCB_SAMPLE_AREA_H

#include <stddef.h>

#include <prcb/sample.h>

/* Makes zeroed memory for an area of so many bytes (at most sizeof(struct prcb_ds_area)), of no
 * processor yet, and gives such back. */
int area_take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
              struct prcb_error *err);
void area_put_back(struct prcb_sampler *s, struct prcb_ds_area *area);

/* Makes it a processor's. *ret: the area that the processor has now; -EEXIST: had before. */
int area_install(struct prcb_sampler *s, int cpu, struct prcb_ds_area *area,
                 struct prcb_ds_area **ret);

#endif
