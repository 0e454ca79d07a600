/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_btf.h"

#include <stdio.h>
#include <string.h>

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

bool kernel_has_member(const struct btf *btf, const char *type_name, const char *member)
{
    int id = btf__find_by_name_kind(btf, type_name, BTF_KIND_STRUCT);
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;

    for (int i = 0; type && i < btf_vlen(type); i++) {
        if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), member))
            return true;
    }
    return false;
}
