/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the file pmns of the agent's directory from its rows; the build runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "rows.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

/* Prints the block of a node, whose names begin with `prefix` (its own, followed by a dot), and
 * then those of its children that have children. Rows are sorted, so names below one node lie
 * together. */
static void print_node(const char *prefix)
{
    size_t length = strlen(prefix);
    char last[64] = "", child[128];

    printf("\nprcb%s%.*s {\n", length ? "." : "", length ? (int)length - 1 : 0, prefix);
    for (int pass = 0; pass < 2; pass++) {
        *last = '\0';
        for (size_t i = 0; i < row_count; i++) {
            const char *rest = rows[i].name + length;
            size_t own = strcspn(rest, ".");

            if (strncmp(rows[i].name, prefix, length))
                continue;
            if (pass == 0 && !rest[own]) {
                printf("    %s\tPRCB:%u:%u\n", rest, rows[i].cluster, rows[i].item);
            } else if (rest[own] && (strncmp(last, rest, own) || last[own])) {
                snprintf(last, sizeof(last), "%.*s", (int)own, rest);
                snprintf(child, sizeof(child), "%s%s.", prefix, last);
                if (pass == 0)
                    printf("    %s\n", last);
                else
                    print_node(child);
            }
        }
        if (pass == 0)
            printf("}\n");
    }
}

int main(void)
{
    rows_init();
    array_sort(rows, row_count, by_name);
    printf("/*\n * The metrics of prcb; made of src/services/pmda/rows.def.\n */\n");
    print_node("");
    return fflush(stdout) || ferror(stdout);
}
