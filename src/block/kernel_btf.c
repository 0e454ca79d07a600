/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_btf.h"

#include <stdio.h>

#include <bpf/btf.h>

int kernel_tracepoint_arguments(const struct btf *btf, const char *name)
{
    char type_name[64];
    const struct btf_type *type;
    int id;

    snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
    id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
    if (id < 0)
        return -1;
    type = btf__type_by_id(btf, btf__type_by_id(btf, (__u32)id)->type); /* the pointer */
    type = btf__type_by_id(btf, type->type);                            /* the function */
    return btf_vlen(type) - 1;
}
