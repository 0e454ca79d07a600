/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "error.h"
#include "export.h"

struct folding {
    const struct recording *recording;
    FILE *out;
    size_t *chain; /* stack indexes, innermost first */
};

/* Frames are parted by semicolons and the number by a blank: neither may be in a name
 * where a reader would take it for one. */
static void print_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputc(*name == ';' || (unsigned char)*name < ' ' || *name == 0x7f ? ':' : *name, out);
}

static int fold(sqlite3_stmt *row, void *ctx)
{
    struct folding *folding = ctx;
    const struct recording *r = folding->recording;
    size_t thread = recording_thread(r, sqlite3_column_int64(row, 0));
    size_t stack = recording_stack(r, sqlite3_column_int64(row, 1)), count = 0;

    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index)
        folding->chain[count++] = stack;
    if (thread == SIZE_MAX || !*r->threads[thread].name)
        fputs("[unknown]", folding->out);
    else
        print_name(folding->out, r->threads[thread].name);
    if (!count)
        fputs(";[unknown]", folding->out);
    while (count) {
        size_t function = r->stacks[folding->chain[--count]].function;

        fputc(';', folding->out);
        if (function == SIZE_MAX) {
            fputs("[unknown]", folding->out);
            continue;
        }
        print_name(folding->out, r->functions[function].name);
        if (!strcmp(r->functions[function].name, "[unknown]") && *r->functions[function].file) {
            fputc(' ', folding->out);
            print_name(folding->out, r->functions[function].file);
        }
    }
    fprintf(folding->out, " %" PRId64 "\n", (int64_t)sqlite3_column_int64(row, 2));
    return 0;
}

int export_folded(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct folding folding = {.recording = recording, .out = out};
    int result;

    folding.chain = malloc((recording->stack_count + 1) * sizeof(*folding.chain));
    if (!folding.chain)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = recording_query(recording,
                             "SELECT thread, stack, sum(weight) FROM samples "
                             "GROUP BY thread, stack ORDER BY thread, stack",
                             fold, &folding, err);
    free(folding.chain);
    return result;
}
