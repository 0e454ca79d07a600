/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb cpu` shows what the processors do, interval by interval.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cpu_nt.h"
#include "cpu_report.h"
#include "cpu_samples.h"
#include "now.h"
#include "output.h"
#include "stat_wait.h"

#define DEFAULT_INTERVAL_NS 1000000000ull

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_NDJSON };

struct run {
    const struct cli_command *command;
    struct cpu_choice choice;
    struct cli_form form; /* enum format */
    bool nt;              /* shows NT's members: nt_answers has them; samples says who is on line */
    bool interval_given;
    uint64_t interval_ns;
    uint64_t count; /* 0: until a signal */
    struct output output;
    struct stat_wait wait;
    struct cpu_samples samples;
    struct cpu_nt nt_answers;
    uint64_t reports;
    bool failed;
};

/* ---- the command line ---------------------------------------------------- */

#define AT(member) .at = offsetof(struct run, member)
/* clang-format off */
static const struct cli_option options[] = {
    CPU_CHOICE_OPTIONS,
    {0, "nt", NULL, "the members of SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION, in 100 ns", AT(nt)},
    {'x', "csv", "SEP", "a line of values per processor, with SEP between them ('\\t': a tab)",
     .take = cli_take_values, AT(form), .min = FORMAT_CSV},
    {'j', "json", NULL, "one JSON document, of one interval",
     .take = cli_take_form, AT(form), .min = FORMAT_JSON},
    {0, "ndjson", NULL, "JSON, one line per interval", .take = cli_take_form, AT(form), .min = FORMAT_NDJSON},
    {0},
};
/* clang-format on */

/* Takes the interval, then the count. */
static int take_word(struct cli_parser *parser, void *target)
{
    struct run *run = target;
    const char *word = parser->value;

    if (!run->interval_given) {
        run->interval_given = true;
        return cpu_interval_parse(run->command, word, &run->interval_ns);
    }
    if (run->count)
        return cli_usage_error(run->command, "'%s': nothing follows the count", word);
    if (number_parse(word, 1, UINT64_MAX, &run->count))
        return cli_usage_error(run->command, "count '%s': must be a number above 0", word);
    return CLI_OK;
}

static int check(struct run *run)
{
    if (run->form.number == FORMAT_JSON && run->count > 1)
        return cli_usage_error(run->command,
                               "-j writes one document: for several intervals use --ndjson");
    if (!run->interval_given || run->form.number == FORMAT_JSON)
        run->count = 1;
    return cpu_choice_check(run->command, &run->choice);
}

/* Returns CLI_OK, or -1 and *ret_status is the exit code. */
static int parse(struct run *run, int argc, char **argv, int *ret_status)
{
    struct cli_parser parser = {
        .command = run->command, .argc = argc, .argv = argv, .take_word = take_word};

    if (cli_take_all(&parser, run, ret_status))
        return -1;
    *ret_status = check(run);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- reports ------------------------------------------------------------- */

static void report(struct run *run, enum cpu_since since)
{
    const struct cpu_report report = {.samples = &run->samples,
                                      .since = since,
                                      .nt = run->nt ? &run->nt_answers : NULL,
                                      .first = !run->reports++,
                                      .separator = run->form.separator};
    FILE *out = run->output.stream;

    if (run->form.number == FORMAT_TABLE) {
        cpu_table_write(out, &report);
    } else if (run->form.number == FORMAT_CSV) {
        cpu_csv_write(out, &report);
    } else if (cpu_json_write(out, &report)) {
        run->failed = true;
        cli_error(run->command, "out of memory");
    }
    output_flush(&run->output);
}

static bool look(struct run *run)
{
    struct prcb_error err;

    if (!cpu_samples_take(&run->samples, &err) &&
        (!run->nt || !cpu_nt_take(&run->nt_answers, &err)))
        return true;
    run->failed = true;
    cli_error(run->command, "%s", err.text);
    return false;
}

static void note(const struct run *run, FILE *out, const char *prefix)
{
    if (run->nt)
        cpu_nt_notes_write(out, prefix, &run->samples);
    else
        cpu_notes_write(out, prefix, &run->samples, FIGURE_CPU);
}

/* The part of an interval that a signal cut short is not lost: a table's average has it, the
 * other forms get a last, shorter interval. */
static void finish(struct run *run, bool cut)
{
    if (cut && look(run) && run->form.number != FORMAT_TABLE)
        report(run, CPU_SINCE_MARK);
    if (run->failed)
        return;
    if (run->form.number == FORMAT_TABLE) {
        if (cut || run->reports > 1)
            report(run, CPU_SINCE_START);
        fputc('\n', run->output.stream);
        note(run, run->output.stream, "");
    } else if (run->form.number == FORMAT_CSV) {
        note(run, stderr, "prcb cpu: ");
    }
}

static void measure(struct run *run)
{
    uint64_t next = run->samples.start_ns + run->interval_ns, done = 0;
    bool cut = false;

    while (!cut && !run->failed && !run->output.error && (!run->count || done < run->count)) {
        cut = stat_wait_until(&run->wait, next) != 0;
        if (cut || !look(run))
            break;
        report(run, CPU_SINCE_MARK);
        cpu_samples_mark(&run->samples);
        if (run->nt)
            cpu_nt_mark(&run->nt_answers);
        done++;
        stat_wait_advance(&next, run->interval_ns, now_ns());
    }
    if (!run->failed && !run->output.error)
        finish(run, cut);
}

static int run_opened(struct run *run)
{
    int status = cli_open_output(run->command, NULL, &run->output);

    if (status != CLI_OK)
        return status;
    measure(run);
    return cli_close_output(run->command, &run->output, run->failed ? CLI_FAILED : CLI_OK);
}

/* The NT calls have a view of their own, of the requested tier: then ours only needs to look at
 * who is on line. */
static int open_views(struct run *run)
{
    struct cpu_choice choice = run->choice;
    struct prcb_error err;
    int status;

    if (run->nt)
        choice.tier = PRCB_TIER_PERF;
    status = cpu_samples_open(run->command, &choice, &run->samples);
    if (status != CLI_OK || !run->nt)
        return status;
    status = cpu_nt_open(run->command, &run->choice, run->samples.count, &run->nt_answers);
    /* Loading the view's programs took a while: the time starts now. */
    if (status == CLI_OK && cpu_samples_start(&run->samples, &err))
        status = cli_error(run->command, "%s", err.text);
    return status;
}

static int run_cpu(const struct cli_command *self, int argc, char **argv)
{
    struct run run = {.command = self, .interval_ns = DEFAULT_INTERVAL_NS};
    int status, result;

    if (parse(&run, argc, argv, &status) != CLI_OK)
        return status;
    result = stat_wait_init(&run.wait);
    if (result)
        return cli_error(self, "pipe: %s", strerror(-result));
    status = open_views(&run);
    if (status == CLI_OK)
        status = run_opened(&run);
    cpu_nt_close(&run.nt_answers);
    cpu_samples_close(&run.samples);
    stat_wait_deinit(&run.wait);
    return status;
}

extern const struct cli_command cmd_cpu;
const struct cli_command cmd_cpu = {
    .name = "cpu",
    .synopsis = "[options] [INTERVAL [COUNT]]",
    .summary = "what the processors do: user, kernel, interrupts, steal, idle",
    .description =
        "Says of each processor, and of all together, which share of its time went where, how\n"
        "many interrupts, switches and idle entries it had, in which idle states it was and how\n"
        "fast it ran. Reports every INTERVAL seconds (0.5 is fine), COUNT times or until Ctrl-C,\n"
        "and then the average; without INTERVAL one second, once.",
    .options = options,
    .examples = "  prcb cpu                 one second\n"
                "  prcb cpu 1               each second, until Ctrl-C\n"
                "  prcb cpu -C 0,2-3 5 12   three processors for a minute\n"
                "  prcb cpu -j | jq '.processors[].idle_ns'\n"
                "  prcb cpu --nt 1 1        as NtQuerySystemInformation has it\n",
    .run = run_cpu,
};
