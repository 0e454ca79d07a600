/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The programs that run for events, as the library tells of them.
 */
#include <errno.h>
#include <stdio.h>

#include <prcb/prcb.h>

#include "bpf_run.h"

int bpf_event_program(const struct bpf_object *object, uint32_t i, struct prcb_program *ret)
{
    const struct bpf_program *program = bpf_event_program_at(object, i);

    if (!program)
        return -ENOENT;
    snprintf(ret->name, sizeof(ret->name), "%s", bpf_program__name(program));
    ret->recursion_misses = bpf_misses_of(bpf_program__fd(program), NULL);
    return 0;
}
