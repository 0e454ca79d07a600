/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb neighbours` counts for a while and shows which cgroups had the processors while threads of
 * others were ready.
 */
#include <errno.h>
#include <string.h>

#include "cli.h"
#include "error.h"
#include "metrics.h"
#include "neighbours.h"
#include "now.h"

#define FOR_NS 3000000000ull /* the default of --for */
#define TOP    16            /* that of --top: with the lines around them a screen of 24 */

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

struct neighbours_options {
    struct cli_form form;
    struct metrics_options metrics;
    uint64_t for_ns, top;
    const char *output;
    bool verbose;
};

#define AT(member) .at = offsetof(struct neighbours_options, member)
/* clang-format off */
static const struct cli_option rows[] = {
    {0, "for", "SEC", "count for SEC seconds (default 3)", .take = cli_take_duration, AT(for_ns)},
    {0, "top", "N", "show N cgroups (default 16)", .kind = CLI_NUMBER, AT(top), .min = 1, .max = 1000000},
    {0, "cgroup-include", "REGEX", "only cgroups whose path matches; the rest is (other)", .kind = CLI_TEXT,
     AT(metrics.include), .what = "the expression is empty"},
    {0, "cgroup-exclude", "REGEX", "no cgroups whose path matches", .kind = CLI_TEXT,
     AT(metrics.exclude), .what = "the expression is empty"},
    {0, "replay", "FILE", "the last reading in FILE (prcb export --by-whom --record)", .kind = CLI_TEXT,
     AT(metrics.replay), .what = "the file name is empty"},
    {'x', "csv", "SEP", "a line of values per pair, with SEP between them ('\\t': a tab)",
     .take = cli_take_values, AT(form), .min = FORMAT_CSV},
    {'j', "json", NULL, "one JSON document", .take = cli_take_form, AT(form), .min = FORMAT_JSON},
    {'o', "output", "FILE", "write to FILE", .kind = CLI_TEXT, AT(output), .what = "the file name is empty"},
    {0, "tier", "TIER", "use this source of figures and no other: daemon or bpf", .take = cli_take_tier,
     AT(metrics.tier)},
    {'v', "verbose", NULL, "where the kernel refuses an eBPF program, its verifier's last lines", AT(verbose)},
    {0},
};
/* clang-format on */

static int measure(struct metrics *m, const struct neighbours_options *options, uint64_t *ret_ns,
                   struct prcb_error *err)
{
    uint64_t began = now_ns(), for_ns = options->for_ns ? options->for_ns : FOR_NS;
    int result =
        options->metrics.replay ? metrics_look(m, err) : metrics_look_until(m, began + for_ns, err);

    *ret_ns = options->metrics.replay ? 0 : now_ns() - began;
    if (!result && metrics_no_edges(m))
        return prcb_fail(err, -EOPNOTSUPP, "%s", metrics_no_edges(m));
    return result;
}

static int print(const struct cli_command *self, const struct neighbours_options *options,
                 const struct metrics *m, uint64_t ns, struct output *output)
{
    const struct neighbours_view view = {ns, options->top ? options->top : TOP};
    int result;

    output_begin(output);
    if (options->form.number == FORMAT_JSON)
        result = neighbours_json(output->stream, m, &view);
    else if (options->form.number == FORMAT_CSV)
        result = neighbours_csv(output->stream, m, options->form.separator);
    else
        result = neighbours_table(output->stream, m, &view);
    return cli_close_output(self, output, result ? cli_error(self, "out of memory") : CLI_OK);
}

static int run_neighbours(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
    struct neighbours_options options = {.metrics.optional = METRICS_BY_WHOM};
    struct prcb_error err = {0};
    struct metrics *m = NULL;
    struct output output;
    uint64_t ns;
    int status;

    if (cli_take_options(&parser, &options, &status))
        return status;
    status = cli_open_output(self, options.output, &output);
    if (status != CLI_OK)
        return status;
    if (metrics_open(&options.metrics, &m, &err) || measure(m, &options, &ns, &err)) {
        output_abort(&output);
        status = cli_error(self, "%s", err.text);
    } else {
        status = print(self, &options, m, ns, &output);
    }
    if (options.verbose)
        cli_write_load_log(prcb_load_log());
    metrics_close(m);
    return status;
}

extern const struct cli_command cmd_neighbours;
const struct cli_command cmd_neighbours = {
    .name = "neighbours",
    .synopsis = "[options]",
    .summary = "who starves whom: which containers had the processors meanwhile",
    .description =
        "Counts for three seconds (--for), and shows for each cgroup how long its threads were\n"
        "ready (able to run, without a processor) and who had the processors then: itself, the\n"
        "kernel, other cgroups. What a quota took is apart: nobody else causes that.",
    .options = rows,
    .examples = "  prcb neighbours\n"
                "  prcb neighbours --for 10 --cgroup-include kubepods\n"
                "  prcb neighbours -j | jq '.cgroups[] | select(.ready_ns > 1e9)'\n",
    .run = run_neighbours,
};
