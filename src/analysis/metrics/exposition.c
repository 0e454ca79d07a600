/* SPDX-License-Identifier: BSD-2-Clause */
#include "exposition.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

struct writer {
    FILE *out;
    enum exposition format;
    const struct metrics_family *family;
    bool headed; /* a family without samples has no lines */
};

const char *exposition_type(enum exposition format, const char *version)
{
    if (format == EXPOSITION_TEXT)
        return "text/plain; version=0.0.4; charset=utf-8";
    return version && !strcmp(version, "0.0.1")
               ? "application/openmetrics-text; version=0.0.1; charset=utf-8"
               : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

static const char *suffix(const struct metrics_family *family)
{
    return family->type == METRICS_COUNTER ? "_total" : family->type == METRICS_INFO ? "_info" : "";
}

/* In the text format an info is a gauge of 1. */
static const char *type_word(const struct writer *w)
{
    switch (w->family->type) {
    case METRICS_COUNTER:
        return "counter";
    case METRICS_INFO:
        return w->format == EXPOSITION_OPENMETRICS ? "info" : "gauge";
    case METRICS_HISTOGRAM:
        return "histogram";
    default:
        return "gauge";
    }
}

static const char *unit_word(enum metrics_unit unit)
{
    static const char *const words[] = {
        [METRICS_SECONDS] = "seconds", [METRICS_HERTZ] = "hertz", [METRICS_RATIO] = "ratio"};

    return words[unit];
}

/* \n and \ alone are escaped in a help of the text format, and " too in OpenMetrics. */
static void write_help(const struct writer *w)
{
    for (const char *at = w->family->help; *at; at++) {
        if (*at == '\\' || (*at == '"' && w->format == EXPOSITION_OPENMETRICS))
            fputc('\\', w->out);
        fputc(*at, w->out);
    }
    fputc('\n', w->out);
}

static void write_head(struct writer *w)
{
    bool open = w->format == EXPOSITION_OPENMETRICS;
    const char *name = w->family->name, *more = open ? "" : suffix(w->family);

    if (w->headed)
        return;
    w->headed = true;
    if (open) {
        fprintf(w->out, "# TYPE %s %s\n", name, type_word(w));
        if (w->family->unit)
            fprintf(w->out, "# UNIT %s %s\n", name, unit_word(w->family->unit));
    }
    fprintf(w->out, "# HELP %s%s ", name, more);
    write_help(w);
    if (!open)
        fprintf(w->out, "# TYPE %s%s %s\n", name, more, type_word(w));
}

static void write_sample(void *ctx, const struct metrics_sample *sample)
{
    struct writer *w = ctx;
    const char *before = "{";

    write_head(w);
    fprintf(w->out, "%s%s", w->family->name, sample->suffix ? sample->suffix : suffix(w->family));
    for (int i = 0; i < METRICS_LABELS; i++) {
        if (!sample->label[i] || !sample->value[i] || !*sample->value[i])
            continue;
        fprintf(w->out, "%s%s=\"", before, sample->label[i]);
        text_print(w->out, TEXT_LABEL, sample->value[i]);
        fputc('"', w->out);
        before = ",";
    }
    fputs(*before == ',' ? "} " : " ", w->out);
    if (sample->kind == METRICS_NS)
        fprintf(w->out, "%" PRIu64 ".%09" PRIu64 "\n", sample->number / 1000000000,
                sample->number % 1000000000);
    else if (sample->kind == METRICS_INTEGER)
        fprintf(w->out, "%" PRIu64 "\n", sample->number);
    else
        fprintf(w->out, "%.6f\n", sample->real);
}

void exposition_write(FILE *out, enum exposition format, const struct metrics *m)
{
    struct writer w = {.out = out, .format = format};

    for (const struct metrics_family *family = metrics_families; family->name; family++) {
        if (!metrics_wanted(m, family))
            continue;
        w.family = family;
        w.headed = false;
        metrics_each(m, family, write_sample, &w);
    }
    if (format == EXPOSITION_OPENMETRICS)
        fputs("# EOF\n", out);
}

int exposition_write_file(const char *path, enum exposition format, const struct metrics *m)
{
    char beside[PATH_MAX];
    FILE *out = NULL;
    int fd, result = 0;

    if ((size_t)snprintf(beside, sizeof(beside), "%s.XXXXXX", path) >= sizeof(beside))
        return -ENAMETOOLONG;
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* The file is read by another user: node_exporter. */
    if (!fchmod(fd, 0644))
        out = fdopen(fd, "w");
    if (!out) {
        result = -errno;
        close(fd);
    } else {
        exposition_write(out, format, m);
        if (fflush(out) || ferror(out))
            result = errno ? -errno : -EIO;
        if (fclose(out) && !result)
            result = -errno;
    }
    if (!result && rename(beside, path))
        result = -errno;
    if (result)
        unlink(beside);
    return result;
}
