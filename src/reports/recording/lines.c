/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "array.h"
#include "csv.h"
#include "error.h"
#include "json_doc.h"
#include "names.h"
#include "text.h"

/* The samples by the place of their innermost frame, one file after the other. Only a build id
 * says on which machine the file is. */
#define SELECT_PLACES(here, device, inode)                                                         \
    "SELECT m.file, m.build_id, k.address - m.start + m.file_offset, count(*), sum(s.weight), "    \
    "min(CASE WHEN m.build_id IS NOT NULL THEN " here " END), " device ", " inode " "              \
    "FROM samples s JOIN stacks k ON k.id = s.stack JOIN maps m ON m.id = k.map "                  \
    "WHERE NOT k.kernel AND substr(m.file, 1, 1) = '/' "                                           \
    "GROUP BY 1, 2, " here " IS NULL, 7, 8, 3 ORDER BY 1, 2, " here " IS NULL, 7, 8"

struct place {
    uint64_t at, samples, weight;
};

struct making {
    struct lines lines;
    char *file, *build_id;  /* of the places that wait */
    int64_t here_ns;        /* of the first of them; 0: not known */
    uint64_t device, inode; /* as names.h */
    struct place *places;
    size_t count, place_room;
    struct namer namer;
};

/* Owns the text from here on: "FILE\tNUMBER\tFUNCTION\tINLINED". -ENOMEM */
static int add_row(struct making *m, char *text, uint64_t samples, uint64_t weight)
{
    struct line row = {.text = text, .samples = samples, .weight = weight};
    char *rest = text;

    row.file = strsep(&rest, "\t");
    row.number = rest ? strtoull(strsep(&rest, "\t"), NULL, 10) : 0;
    row.function = rest ? strsep(&rest, "\t") : "";
    row.inlined = rest ? rest : "";
    if (array_append(m->lines.rows, m->lines.count, row)) {
        free(text);
        return -ENOMEM;
    }
    return 0;
}

/* Finds the lines of the places that wait; places without one stay for the rest. */
static int find_lines(struct making *m)
{
    const struct names_source source = {
        .kind = NAMES_ELF,
        .lines = true,
        .file = m->file,
        .build_id = m->build_id,
        .here_ns = m->here_ns,
        .device = m->device,
        .inode = m->inode,
        .uid = -1,
    };
    uint64_t *places = malloc((m->count + 1) * sizeof(*places));
    struct names names = {0};
    int result = 0;

    for (size_t i = 0; places && i < m->count; i++)
        places[i] = m->places[i].at;
    if (!places)
        result = -ENOMEM;
    else if (m->count && !names_find(&m->namer, &source, places, m->count, &names)) {
        for (size_t i = 0; i < m->count && !result; i++) {
            char *text = names.number[i] ? strdup(names.name[names.number[i]]) : NULL;

            if (text)
                result = add_row(m, text, m->places[i].samples, m->places[i].weight);
        }
    }
    names_free(&names);
    free(places);
    m->count = 0;
    return result;
}

static bool differs(const char *kept, const char *now)
{
    return !kept || strcmp(kept, now ? now : "") != 0;
}

static int add_place(sqlite3_stmt *statement, void *ctx)
{
    const char *file = (const char *)sqlite3_column_text(statement, 0);
    const char *build_id = (const char *)sqlite3_column_text(statement, 1);
    int64_t here_ns = sqlite3_column_int64(statement, 5);
    uint64_t device = (uint64_t)sqlite3_column_int64(statement, 6);
    uint64_t inode = (uint64_t)sqlite3_column_int64(statement, 7);
    struct making *m = ctx;

    if (differs(m->file, file) || differs(m->build_id, build_id) || !m->here_ns != !here_ns ||
        m->device != device || m->inode != inode) {
        int result = find_lines(m);

        if (result)
            return result;
        free(m->file);
        free(m->build_id);
        m->file = strdup(file ? file : "");
        m->build_id = strdup(build_id ? build_id : "");
        if (!m->file || !m->build_id)
            return -ENOMEM;
        m->here_ns = here_ns;
        m->device = device;
        m->inode = inode;
    }
    if (here_ns < m->here_ns)
        m->here_ns = here_ns;
    return array_add(m->places, m->count, m->place_room,
                     (struct place){
                         .at = (uint64_t)sqlite3_column_int64(statement, 2),
                         .samples = (uint64_t)sqlite3_column_int64(statement, 3),
                         .weight = (uint64_t)sqlite3_column_int64(statement, 4),
                     });
}

static int add_total(sqlite3_stmt *statement, void *ctx)
{
    struct lines *lines = ctx;

    lines->samples = (uint64_t)sqlite3_column_int64(statement, 0);
    lines->weight = (uint64_t)sqlite3_column_int64(statement, 1);
    return 0;
}

static int by_line(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    int order = strcmp(a->file, b->file);

    if (!order && a->number != b->number)
        order = a->number < b->number ? -1 : 1;
    if (!order)
        order = strcmp(a->function, b->function);
    return order ? order : strcmp(a->inlined, b->inlined);
}

static int by_weight(const void *left, const void *right)
{
    const struct line *a = left, *b = right;

    return a->weight == b->weight ? by_line(left, right) : a->weight > b->weight ? -1 : 1;
}

/* Makes one row for each line, and one for all samples without a line. */
static int sum_up(struct making *m)
{
    struct lines *lines = &m->lines;
    uint64_t samples = 0, weight = 0;
    size_t kept = 0;
    char *text;

    array_sort(lines->rows, lines->count, by_line);
    for (size_t i = 0; i < lines->count; i++) {
        samples += lines->rows[i].samples;
        weight += lines->rows[i].weight;
        if (kept && !by_line(&lines->rows[kept - 1], &lines->rows[i])) {
            lines->rows[kept - 1].samples += lines->rows[i].samples;
            lines->rows[kept - 1].weight += lines->rows[i].weight;
            free(lines->rows[i].text);
        } else {
            lines->rows[kept++] = lines->rows[i];
        }
    }
    lines->count = kept;
    if (samples < lines->samples) {
        text = strdup("");
        if (!text || add_row(m, text, lines->samples - samples, lines->weight - weight))
            return -ENOMEM;
    }
    array_sort(lines->rows, lines->count, by_weight);
    return 0;
}

int lines_make(const struct recording *recording, struct lines *ret, struct prcb_error *err)
{
    struct making m = {.lines.weight_is_ns = recording_counts_ns(recording)};
    int result = recording_query(recording, "SELECT count(*), sum(weight) FROM samples", add_total,
                                 &m.lines, err);

    if (!result)
        result = recording_query(
            recording,
            recording_query(recording, "SELECT inode FROM maps LIMIT 0", add_place, &m, NULL)
                ? SELECT_PLACES("NULL", "NULL", "NULL") /* of an earlier version */
                : SELECT_PLACES("m.here_ns", "m.device", "m.inode"),
            add_place, &m, err);
    if (!result && m.count)
        result = find_lines(&m);
    if (!result)
        result = sum_up(&m);
    free(m.file);
    free(m.build_id);
    free(m.places);
    if (result) {
        lines_free(&m.lines);
        return result == -ENOMEM ? prcb_fail(err, result, "out of memory") : result;
    }
    *ret = m.lines;
    return 0;
}

void lines_free(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->rows[i].text);
    free(lines->rows);
    *lines = (struct lines){0};
}

/* ---- printing ---------------------------------------------------------------------------------
 */

static size_t shown(const struct lines *lines, size_t top)
{
    return top && top < lines->count ? top : lines->count;
}

static void print_place(const struct line *row, enum text_form form, FILE *out)
{
    if (!row->number && !*row->file) {
        fputs("[no line is known]", out);
        return;
    }
    text_print(out, form, row->file);
    fprintf(out, ":%" PRIu64, row->number);
}

void lines_print_text(const struct lines *lines, size_t top, FILE *out)
{
    fprintf(out, "%7s  %9s  %s\n", "SHARE", "SAMPLES", "LINE  FUNCTION < INTO WHICH IT WAS PUT");
    for (size_t i = 0; i < shown(lines, top); i++) {
        const struct line *row = &lines->rows[i];

        fprintf(out, "%5.1f %%  %9" PRIu64 "  ",
                lines->weight ? 100.0 * (double)row->weight / (double)lines->weight : 0.0,
                row->samples);
        print_place(row, TEXT_MARKS, out);
        fputs(*row->function ? "  " : "", out);
        if (*row->inlined) {
            text_print(out, TEXT_MARKS, row->inlined);
            fputs(" < ", out);
        }
        text_print(out, TEXT_MARKS, row->function);
        fputc('\n', out);
    }
    if (shown(lines, top) < lines->count)
        fprintf(out, "%*s... %zu more (--top 0: all)\n", 20, "", lines->count - shown(lines, top));
}

void lines_print_csv(const struct lines *lines, size_t top, const char *separator, FILE *out)
{
    static const char *const names[] = {"file",    "line",   "function", "inlined",
                                        "samples", "weight", NULL};
    struct csv csv = {.out = out, .separator = separator};

    csv_names(&csv, names);
    for (size_t i = 0; i < shown(lines, top); i++) {
        const struct line *row = &lines->rows[i];

        csv_text(&csv, row->file);
        csv_number(&csv, true, row->number);
        csv_text(&csv, row->function);
        csv_text(&csv, row->inlined);
        csv_number(&csv, true, row->samples);
        csv_number(&csv, true, row->weight);
        csv_end(&csv);
    }
}

int lines_print_json(const struct lines *lines, size_t top, FILE *out)
{
    struct json_doc doc = {0};
    json_object *document = json_doc_new(&doc, JSON_LINES), *array = json_object_new_array();

    json_doc_put_text(&doc, document, "unit", lines->weight_is_ns ? "ns" : "events");
    json_doc_put_number(&doc, document, "samples", lines->samples);
    json_doc_put_number(&doc, document, "weight", lines->weight);
    for (size_t i = 0; i < shown(lines, top); i++) {
        const struct line *row = &lines->rows[i];
        json_object *object = json_object_new_object();

        json_doc_put_text(&doc, object, "file", *row->file ? row->file : NULL);
        json_doc_put_member(&doc, object, "line", row->number, row->number != 0);
        json_doc_put_text(&doc, object, "function", *row->function ? row->function : NULL);
        json_doc_put_text(&doc, object, "inlined", *row->inlined ? row->inlined : NULL);
        json_doc_put_number(&doc, object, "samples", row->samples);
        json_doc_put_number(&doc, object, "weight", row->weight);
        json_doc_append(&doc, array, object);
    }
    json_doc_put(&doc, document, "lines", array);
    return json_doc_write_pretty(&doc, document, out);
}
