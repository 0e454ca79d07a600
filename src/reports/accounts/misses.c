/* SPDX-License-Identifier: BSD-2-Clause */
#include "misses.h"

#include <inttypes.h>

#include "text.h"

void misses_write(FILE *out, const char *prefix, misses_next next, void *from, const char *effect)
{
    struct prcb_program program = {.size = sizeof(program)};

    for (uint32_t i = 0; !next(from, i, &program); i++) {
        uint64_t misses = program.recursion_misses;

        if (!misses || misses == UINT64_MAX)
            continue;
        fprintf(out, "%s%" PRIu64 " time%s the kernel did not run the program ", prefix, misses,
                misses == 1 ? "" : "s");
        text_print(out, TEXT_ESCAPES, program.name);
        fprintf(out, ", being in the middle of it: %s\n", effect);
    }
}
