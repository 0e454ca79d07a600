/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A module's export table gets forwarders, whatever the module. What is made of one is one, and is
 * not taken a second time. All begin with "MZ", which the seeds leave out: they are no programs.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pe_forward rows[] = {{"NtQuery", "ours.Query", "kept_NtQuery"},
                                             {"Enable", "ours.Enable", NULL}};
    struct prcb_error err;
    size_t made_size, again_size;
    void *made, *again;
    uint8_t *image = size < 2 ? NULL : malloc(size);
    int result;

    if (!image)
        return 0;
    memcpy(image, data, size);
    memcpy(image, "MZ", 2);
    result = pe_add_forwards(image, size, rows, 2, &made, &made_size, &err);
    free(image);
    if (result)
        return 0;
    assert(made_size > size && pe_machine(made, made_size) == PE_MACHINE_AMD64);
    assert(pe_add_forwards(made, made_size, rows, 2, &again, &again_size, &err) < 0);
    free(made);
    return 0;
}
