/* SPDX-License-Identifier: BSD-2-Clause */
#include "report_sides.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"
#include "cli.h"
#include "diff_side.h"
#include "recording.h"

#define EXIT_CONDITION 3
#define ALPHA          0.005
#define MATTERS        0.02

struct comparing {
    const struct report_sides *how;
    struct bench_side sides[2];
    struct bench_machine machine;
    struct bench_comparison comparison;
    bool holds[REPORT_CONDITIONS_MAX], command;
};

static void take_fact(const struct recording *recording, const char *name, char *ret, size_t size)
{
    char *text = recording_fact(recording, name);

    snprintf(ret, size, "%s", text ? text : "not known");
    free(text);
}

static void describe(const struct recording *recording, struct bench_machine *ret)
{
    char processors[32];

    take_fact(recording, "processor_model", ret->model, sizeof(ret->model));
    take_fact(recording, "kernel", ret->kernel, sizeof(ret->kernel));
    take_fact(recording, "switch_source", ret->tier, sizeof(ret->tier));
    take_fact(recording, "processors", processors, sizeof(processors));
    ret->processors = (unsigned)strtoul(processors, NULL, 10);
}

/* Adds one recording. Those of commands and others are not compared with each other. */
static int add(struct comparing *c, size_t side, const char *path, bool first)
{
    struct recording recording;
    struct prcb_error err = {0};
    int status = c->how->open(c->how->ctx, path, &recording);
    bool command;

    if (status != CLI_OK)
        return status;
    command = diff_side_is_command(&recording);
    if (first) {
        describe(&recording, &c->machine);
        c->command = command;
    }
    if (command != c->command)
        status = cli_error(c->how->command,
                           "%s: recordings of commands and others are not comparable", path);
    else if (diff_side_add(&recording, &c->sides[side], &err))
        status = cli_error(c->how->command, "%s: %s", path, err.text);
    recording_close(&recording);
    return status;
}

static char *join(char *const *paths, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < count; i++)
        fprintf(out, "%s%s", i ? " " : "", paths[i]);
    if (out)
        fclose(out);
    return text;
}

static int take_sides(struct comparing *c)
{
    int status = CLI_OK;

    for (size_t side = 0; side < 2; side++) {
        c->sides[side].command = join(c->how->paths[side], c->how->counts[side]);
        if (!c->sides[side].command)
            return cli_error(c->how->command, "out of memory");
        for (size_t i = 0; i < c->how->counts[side] && status == CLI_OK; i++)
            status = add(c, side, c->how->paths[side][i], !side && !i);
    }
    return status;
}

static int compare(struct comparing *c)
{
    const struct bench_options how = {.alpha = ALPHA,
                                      .stages = 1,
                                      .matters = MATTERS,
                                      .apart = true,
                                      .shares = !c->command,
                                      .no_wall = !c->command};
    struct prcb_error err;
    int result = bench_compare(c->sides, &how, &c->comparison);

    if (result)
        return cli_error(c->how->command, "nothing to compare: %s", strerror(-result));
    for (size_t i = 0; i < c->how->condition_count; i++) {
        if (bench_check(&c->comparison, c->how->conditions[i], &c->holds[i], &err))
            return cli_usage_error(c->how->command, "%s", err.text);
    }
    return CLI_OK;
}

static int print(const struct comparing *c)
{
    static const char *const notes[] = {
        "Each recording is a run. Figures are shares of its time, and counts are by second."};
    const struct bench_report report = {
        .sides = c->sides,
        .side_count = 2,
        .names = {"A", "B"},
        .comparison = &c->comparison,
        .machine = &c->machine,
        .conditions = c->how->conditions,
        .holds = c->holds,
        .condition_count = c->how->condition_count,
        .notes = notes,
        .note_count = c->command ? 0 : 1,
    };
    struct output output;
    int status = cli_open_output(c->how->command, c->how->output, &output);

    if (status != CLI_OK)
        return status;
    output_begin(&output);
    if (!c->how->json)
        bench_write_text(&report, output.stream);
    else if (bench_write_json(&report, output.stream))
        status = cli_error(c->how->command, "out of memory");
    return cli_close_output(c->how->command, &output, status);
}

int report_sides(const struct report_sides *how)
{
    struct comparing c = {.how = how};
    int status = take_sides(&c);

    if (status == CLI_OK)
        status = compare(&c);
    if (status == CLI_OK)
        status = print(&c);
    for (size_t i = 0; i < how->condition_count && (status == CLI_OK || status == EXIT_CONDITION);
         i++) {
        if (!c.holds[i])
            continue;
        cli_warn(how->command, "--fail-if '%s' holds", how->conditions[i]);
        status = EXIT_CONDITION;
    }
    bench_comparison_deinit(&c.comparison);
    bench_side_deinit(&c.sides[0]);
    bench_side_deinit(&c.sides[1]);
    return status;
}
