/* SPDX-License-Identifier: BSD-2-Clause */
#include "csv.h"

#include <inttypes.h>
#include <stdarg.h>

#include "text.h"

void csv_next(struct csv *csv)
{
    if (csv->begun)
        fputs(csv->separator, csv->out);
    csv->begun = true;
}

void csv_text(struct csv *csv, const char *text)
{
    csv_next(csv);
    text_print_csv(csv->out, text, csv->separator);
}

void csv_print(struct csv *csv, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    csv_text(csv, text);
}

void csv_number(struct csv *csv, bool known, uint64_t value)
{
    csv_next(csv);
    if (known)
        fprintf(csv->out, "%" PRIu64, value);
}

void csv_signed(struct csv *csv, bool known, int64_t value)
{
    csv_next(csv);
    if (known)
        fprintf(csv->out, "%" PRId64, value);
}

void csv_end(struct csv *csv)
{
    fputc('\n', csv->out);
    csv->begun = false;
}

void csv_names(struct csv *csv, const char *const *names)
{
    for (; *names; names++)
        csv_text(csv, *names);
    csv_end(csv);
}
