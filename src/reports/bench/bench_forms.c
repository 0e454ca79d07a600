/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A benchmark's result as programs around a build read it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench_report.h"
#include "format.h"
#include "text.h"

/* ---- JUnit ---------------------------------------------------------------------- */

/* Writes text between tags or quotes. */
static void write_xml(FILE *out, const char *text)
{
    char clean[2048];

    text_copy(TEXT_MARKS, text, clean, sizeof(clean));
    for (const char *at = clean; *at; at++) {
        const char *entity = *at == '<'   ? "&lt;"
                             : *at == '>' ? "&gt;"
                             : *at == '&' ? "&amp;"
                             : *at == '"' ? "&quot;"
                                          : NULL;

        if (entity)
            fputs(entity, out);
        else
            fputc(*at, out);
    }
}

static void write_case(FILE *out, const char *name, bool failed, const char *message)
{
    fputs("  <testcase classname=\"prcb.bench\" name=\"", out);
    write_xml(out, name);
    if (!failed) {
        fputs("\"/>\n", out);
        return;
    }
    fputs("\">\n    <failure message=\"", out);
    write_xml(out, message);
    fputs("\"/>\n  </testcase>\n", out);
}

int bench_write_junit(const struct bench_report *report, FILE *out)
{
    size_t failures = 0, cases = report->condition_count ? report->condition_count : 1;
    char *sentence = bench_sentence(report);

    if (!sentence)
        return -ENOMEM;
    for (size_t i = 0; i < report->condition_count; i++)
        failures += report->holds[i];
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"prcb bench\" tests=\"%zu\" failures=\"%zu\">\n",
            cases, failures);
    for (size_t i = 0; i < report->condition_count; i++)
        write_case(out, report->conditions[i], report->holds[i], sentence);
    if (!report->condition_count)
        write_case(out, report->sides[report->side_count - 1].command, false, NULL);
    fputs("  <system-out>", out);
    write_xml(out, sentence);
    fputs("</system-out>\n</testsuite>\n", out);
    free(sentence);
    return 0;
}

/* ---- Markdown ------------------------------------------------------------------- */

/* Writes text that Markdown or HTML shall not obey. */
static void write_plain(FILE *out, const char *text)
{
    char clean[2048];

    text_copy(TEXT_MARKS, text, clean, sizeof(clean));
    for (const char *at = clean; *at; at++) {
        if (*at == '<' || *at == '>' || *at == '&')
            fprintf(out, "&#%d;", *at);
        else if (*at > ' ' && *at < 127 && !((*at | 32) >= 'a' && (*at | 32) <= 'z') &&
                 !(*at >= '0' && *at <= '9') && !(*at == '.' || *at == ',' || *at == '%'))
            fprintf(out, "\\%c", *at);
        else
            fputc(*at, out);
    }
}

static void write_line(const struct bench_report *report, const struct bench_row *row, FILE *out)
{
    char cells[4][FORMAT_CELL];
    const double values[] = {row->result.shift, row->result.low, row->result.high};

    bench_format(report, row->part, row->result.median[0], false, cells[3], sizeof(cells[3]));
    for (int i = 0; i < 3; i++)
        bench_format(report, row->part, values[i], true, cells[i], sizeof(cells[i]));
    fprintf(out, "| %s%s | %s | %s | %s to %s |\n", bench_part_name(row->part),
            bench_part_owner(row->part) == BENCH_HOST ? " (the machine's)" : "", cells[3], cells[0],
            cells[1], cells[2]);
}

int bench_write_markdown(const struct bench_report *report, FILE *out)
{
    const struct bench_comparison *c = report->comparison;
    char *sentence = bench_sentence(report);

    if (!sentence)
        return -ENOMEM;
    fputs("### prcb bench\n\n", out);
    write_plain(out, sentence);
    free(sentence);
    fputs("\n\n", out);
    for (size_t i = 0; i < report->condition_count; i++) {
        fputs(report->holds[i] ? "* **fails:** " : "* passes: ", out);
        write_plain(out, report->conditions[i]);
        fputc('\n', out);
    }
    if (c)
        fprintf(out, "\n| part | %s | change | between |\n| --- | ---: | ---: | --- |\n",
                report->names[0]);
    for (size_t i = 0; c && i < c->count; i++) {
        if (c->rows[i].verdict >= BENCH_MORE)
            write_line(report, &c->rows[i], out);
    }
    fputc('\n', out);
    return 0;
}
