/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "all_time.h"
#include "array.h"
#include "error.h"
#include "export.h"
#include "offcpu.h"
#include "text.h"

/* Stacks differ by addresses; many of them have the same functions and become one line. */
struct line {
    char *text; /* thread and functions */
    uint64_t weight;
};

struct folding {
    const struct recording *recording;
    size_t *chain; /* stack indexes, innermost first */
    struct line *lines;
    size_t count;
    int error;
};

/* Semicolons separate frames, and a blank the number: a name may contain neither where a reader
 * would take it for a separator. */
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

static void print_thread(FILE *out, const struct recording *r, size_t thread)
{
    if (thread == SIZE_MAX || !*r->threads[thread].name)
        fputs("[unknown]", out);
    else
        print_name(out, r->threads[thread].name);
}

static void print_frames(FILE *out, struct folding *folding, size_t stack)
{
    const struct recording *r = folding->recording;
    size_t count = 0;

    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index)
        folding->chain[count++] = stack;
    if (!count)
        fputs(";[unknown]", out);
    while (count) {
        fputc(';', out);
        print_function(out, r, r->stacks[folding->chain[--count]].function);
    }
}

/* cause NULL: it ran. rest: why there is no stack, "": it could have none; NULL: there is. */
static int add_line(struct folding *folding, size_t thread, size_t stack, const char *cause,
                    const char *rest, uint64_t weight)
{
    struct line line = {.weight = weight};
    size_t bytes;
    FILE *text = open_memstream(&line.text, &bytes);

    if (!text)
        return folding->error = -ENOMEM;
    print_thread(text, folding->recording, thread);
    if (cause) {
        fputc(';', text);
        print_name(text, *cause ? cause : "wait");
    }
    if (rest && *rest)
        fprintf(text, ";%s", rest);
    else if (!rest)
        print_frames(text, folding, stack);
    if (fclose(text) || array_append(folding->lines, folding->count, line)) {
        free(line.text);
        return folding->error = -ENOMEM;
    }
    return 0;
}

static int fold(sqlite3_stmt *row, void *ctx)
{
    struct folding *folding = ctx;
    const struct recording *r = folding->recording;

    return add_line(folding, recording_thread(r, sqlite3_column_int64(row, 0)),
                    recording_stack(r, sqlite3_column_int64(row, 1)), NULL, NULL,
                    (uint64_t)sqlite3_column_int64(row, 2));
}

static int by_text(const void *left, const void *right)
{
    const struct line *a = left, *b = right;

    return strcmp(a->text, b->text);
}

static void print_lines(struct folding *folding, FILE *out)
{
    array_sort(folding->lines, folding->count, by_text);
    for (size_t i = 0, next; i < folding->count; i = next) {
        uint64_t weight = 0;

        for (next = i; next < folding->count && !by_text(&folding->lines[i], &folding->lines[next]);
             next++)
            weight += folding->lines[next].weight;
        fprintf(out, "%s %" PRIu64 "\n", folding->lines[i].text, weight);
    }
}

/* Adds the lines by add and prints them. */
static int print_all(const struct recording *recording,
                     int (*add)(struct folding *folding, void *ctx, struct prcb_error *err),
                     void *ctx, FILE *out, struct prcb_error *err)
{
    struct folding folding = {.recording = recording};
    int result;

    folding.chain = malloc((recording->stack_count + 1) * sizeof(*folding.chain));
    if (!folding.chain)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = add(&folding, ctx, err);
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

static int add_samples(struct folding *folding, void *ctx, struct prcb_error *err)
{
    (void)ctx;
    return recording_query(folding->recording,
                           "SELECT thread, stack, sum(weight) FROM samples "
                           "GROUP BY thread, stack",
                           fold, folding, err);
}

int export_folded(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    return print_all(recording, add_samples, NULL, out, err);
}

static int add_waits(struct folding *folding, void *ctx, struct prcb_error *err)
{
    const bool *idle = ctx;
    struct offcpu offcpu;
    int result = offcpu_make(folding->recording, &offcpu, err);

    if (result)
        return result;
    for (size_t i = 0; i < offcpu.count && !result; i++) {
        const struct offcpu_row *row = &offcpu.rows[i];

        if (*idle || !offcpu_is_idle(row))
            result = add_line(folding, row->thread, row->stack, row->cause, row->rest, row->ns);
    }
    offcpu_free(&offcpu);
    return result;
}

int export_folded_waits(const struct recording *recording, bool idle, FILE *out,
                        struct prcb_error *err)
{
    if (!recording->has_wait_stacks)
        return prcb_fail(err, -ENOENT,
                         "no stacks of waits were recorded: record with prcb record -g");
    return print_all(recording, add_waits, &idle, out, err);
}

static int add_all_time(struct folding *folding, void *ctx, struct prcb_error *err)
{
    struct all_time all;
    int result = all_time_make(folding->recording, &all, err);

    (void)ctx;
    if (result)
        return result;
    for (size_t i = 0; i < all.count && !result; i++) {
        const struct all_time_row *row = &all.rows[i];
        bool stackless = row->kind == ALL_TIME_READY || row->kind == ALL_TIME_UNKNOWN;
        char state[ALL_TIME_STATE];

        if (row->ns)
            result = add_line(folding, row->thread, row->stack, all_time_state(row, state),
                              stackless ? "" : row->rest, row->ns);
    }
    all_time_free(&all);
    return result;
}

int export_folded_all(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    return print_all(recording, add_all_time, NULL, out, err);
}
