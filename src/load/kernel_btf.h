/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the kernel's own type information tells before programs are loaded.
 */
#ifndef PRCB_LOAD_KERNEL_BTF_H
#define PRCB_LOAD_KERNEL_BTF_H

#include <stdbool.h>

struct btf;

/* Number of arguments of a raw tracepoint, its leading context pointer not
 * counted; -1: the kernel has no such tracepoint. */
int kernel_tracepoint_arguments(const struct btf *btf, const char *name);

/* Whether the kernel's struct of this name has such a member. */
bool kernel_has_member(const struct btf *btf, const char *type_name, const char *member);

#endif
