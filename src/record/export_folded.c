/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "error.h"
#include "export.h"
#include "text.h"

/* Stacks differ by addresses; by functions many of them are one. */
struct line {
    char *text; /* thread and functions */
    uint64_t weight;
};

struct folding {
    const struct recording *recording;
    size_t *chain; /* stack indexes, innermost first */
    struct line *lines;
    size_t count, room;
    int error;
};

/* Frames are parted by semicolons and the number by a blank: neither may be in a name
 * where a reader would take it for one. */
static void print_name(FILE *out, const char *name)
{
    char *copy = strdup(name);

    for (char *at = copy; at && (at = strchr(at, ';'));)
        *at = ':';
    text_print(out, TEXT_MARKS, copy ? copy : "?");
    free(copy);
}

static void print_function(FILE *out, const struct recording *r, size_t function)
{
    if (function == SIZE_MAX) {
        fputs("[unknown]", out);
        return;
    }
    print_name(out, r->functions[function].name);
    if (!strcmp(r->functions[function].name, "[unknown]") && *r->functions[function].file) {
        fputc(' ', out);
        print_name(out, r->functions[function].file);
    }
}

static void print_stack(FILE *out, struct folding *folding, size_t thread, size_t stack)
{
    const struct recording *r = folding->recording;
    size_t count = 0;

    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index)
        folding->chain[count++] = stack;
    if (thread == SIZE_MAX || !*r->threads[thread].name)
        fputs("[unknown]", out);
    else
        print_name(out, r->threads[thread].name);
    if (!count)
        fputs(";[unknown]", out);
    while (count) {
        fputc(';', out);
        print_function(out, r, r->stacks[folding->chain[--count]].function);
    }
}

/* Room for one more line. */
static bool make_room(struct folding *folding)
{
    if (folding->count == folding->room) {
        size_t room = folding->room ? 2 * folding->room : 256;
        struct line *grown = realloc(folding->lines, room * sizeof(*grown));

        if (!grown)
            return false;
        folding->lines = grown;
        folding->room = room;
    }
    return true;
}

static int fold(sqlite3_stmt *row, void *ctx)
{
    struct folding *folding = ctx;
    const struct recording *r = folding->recording;
    struct line line = {.weight = (uint64_t)sqlite3_column_int64(row, 2)};
    size_t bytes;
    FILE *text = make_room(folding) ? open_memstream(&line.text, &bytes) : NULL;

    if (!text)
        return folding->error = -ENOMEM;
    print_stack(text, folding, recording_thread(r, sqlite3_column_int64(row, 0)),
                recording_stack(r, sqlite3_column_int64(row, 1)));
    if (fclose(text)) {
        free(line.text);
        return folding->error = -ENOMEM;
    }
    folding->lines[folding->count++] = line;
    return 0;
}

static int by_text(const void *left, const void *right)
{
    const struct line *a = left, *b = right;

    return strcmp(a->text, b->text);
}

static void print_lines(struct folding *folding, FILE *out)
{
    if (folding->count)
        qsort(folding->lines, folding->count, sizeof(*folding->lines), by_text);
    for (size_t i = 0, next; i < folding->count; i = next) {
        uint64_t weight = 0;

        for (next = i; next < folding->count && !by_text(&folding->lines[i], &folding->lines[next]);
             next++)
            weight += folding->lines[next].weight;
        fprintf(out, "%s %" PRIu64 "\n", folding->lines[i].text, weight);
    }
}

int export_folded(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct folding folding = {.recording = recording};
    int result;

    folding.chain = malloc((recording->stack_count + 1) * sizeof(*folding.chain));
    if (!folding.chain)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = recording_query(recording,
                             "SELECT thread, stack, sum(weight) FROM samples "
                             "GROUP BY thread, stack",
                             fold, &folding, err);
    if (folding.error)
        result = prcb_fail(err, folding.error, "out of memory");
    if (!result)
        print_lines(&folding, out);
    for (size_t i = 0; i < folding.count; i++)
        free(folding.lines[i].text);
    free(folding.lines);
    free(folding.chain);
    return result;
}
