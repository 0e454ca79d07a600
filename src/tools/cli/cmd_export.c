/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb export` writes the figures for monitoring once. prcb-exporter serves them all the time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "exposition.h"
#include "metrics_rows.h"
#include "now.h"

#define FOR_NS 1000000000ull /* the default of --for */

struct export_options {
    struct cli_form form; /* enum exposition */
    struct metrics_options metrics;
    const char *output;
    uint64_t for_ns;
    bool verbose;
};

static int take_format(struct cli_parser *parser, void *target)
{
    struct export_options *options = target;

    if (!strcmp(parser->value, "text"))
        options->form.number = EXPOSITION_TEXT;
    else if (!strcmp(parser->value, "openmetrics"))
        options->form.number = EXPOSITION_OPENMETRICS;
    else
        return cli_usage_error(parser->command, "--format '%s': must be text or openmetrics",
                               parser->value);
    return CLI_OK;
}

#define AT(member) .at = offsetof(struct export_options, member)
/* clang-format off */
static const struct cli_option rows[] = {
    METRICS_ROWS(struct export_options, metrics),
    {0, "format", "FORMAT", "text (the default) or openmetrics", .take = take_format,
     .choices = "text openmetrics"},
    {0, "for", "SEC", "count for SEC seconds (default 1)", .take = cli_take_duration, AT(for_ns)},
    {0, "record", "FILE", "write each reading to FILE, too, for --replay", .kind = CLI_TEXT,
     AT(metrics.record), .what = "the file name is empty"},
    {0, "replay", "FILE", "print the last reading in FILE instead of this machine's", .kind = CLI_TEXT,
     AT(metrics.replay), .what = "the file name is empty"},
    {'o', "output", "FILE", "write to FILE", .kind = CLI_TEXT, AT(output),
     .what = "the file name is empty"},
    {0, "tier", "TIER", "use this source of figures and no other: daemon, bpf or perf",
     .take = cli_take_tier, AT(metrics.tier)},
    {'v', "verbose", NULL, "where the kernel refuses an eBPF program, its verifier's last lines", AT(verbose)},
    {0},
};
/* clang-format on */

static int record_written(const struct cli_command *self, const struct export_options *options,
                          int result, int status)
{
    return result ? cli_error(self, "%s: %s", options->metrics.record, strerror(-result)) : status;
}

static int export(const struct cli_command *self, struct export_options *options)
{
    uint64_t for_ns = options->for_ns ? options->for_ns : FOR_NS;
    struct metrics *m = NULL;
    struct prcb_error err = {0};
    struct output output;
    int result = metrics_open(&options->metrics, &m, &err), closed;
    if (options->verbose)
        cli_write_load_log(prcb_load_log());
    if (!result)
        result = options->metrics.replay ? metrics_look(m, &err)
                                         : metrics_look_until(m, now_ns() + for_ns, &err);
    if (result) {
        metrics_close(m);
        return cli_error(self, "%s", err.text);
    }
    if (metrics_no_ready(m))
        cli_warn(self, "no histogram of ready time: %s", metrics_no_ready(m));
    if (metrics_no_edges(m))
        cli_warn(self, "nothing of by whom: %s", metrics_no_edges(m));
    if (options->output) {
        result = exposition_write_file(options->output, (enum exposition)options->form.number, m);
        closed = metrics_close(m);
        if (result)
            return cli_error(self, "%s: %s", options->output, strerror(-result));
        return record_written(self, options, closed, CLI_OK);
    }
    if (cli_open_output(self, NULL, &output) != CLI_OK) {
        metrics_close(m);
        return CLI_FAILED;
    }
    output_begin(&output);
    exposition_write(output.stream, (enum exposition)options->form.number, m);
    closed = metrics_close(m);
    return record_written(self, options, closed, cli_close_output(self, &output, CLI_OK));
}

static int run_export(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
    struct export_options options = {0};
    int status;

    if (cli_take_options(&parser, &options, &status))
        return status;
    if (options.metrics.record && options.metrics.replay)
        return cli_usage_error(self, "--record and --replay exclude each other");
    return export(self, &options);
}

extern const struct cli_command cmd_export;
const struct cli_command cmd_export = {
    .name = "export",
    .synopsis = "[options]",
    .summary = "figures for monitoring, once: why threads of each container waited",
    .description =
        "Counts for a second (--for) and writes what Prometheus would scrape: times of the "
        "machine's\n"
        "processors, and of each cgroup's threads by what they waited for. Counters start at 0.",
    .options = rows,
    .examples = "  prcb export | promtool check metrics\n"
                "  prcb export --for 10 --per-cpu --format openmetrics\n"
                "  prcb export --names windows --names node -o machine.prom\n"
                "  prcb export --for 60 --record looks.ndjson   for prcb-exporter --replay\n",
    .run = run_export,
};
