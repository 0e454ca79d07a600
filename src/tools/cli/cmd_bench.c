/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb bench` runs one command or two by turns, splits each run exactly into the program's own
 * parts and the machine's, and says what is different. It is a gate for builds that a noisy
 * machine does not fail.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "bench_report.h"
#include "bench_run.h"
#include "bench_where.h"
#include "cli.h"
#include "first_line.h"
#include "now.h"
#include "stat_options.h"
#include "stat_targets.h"

#define EXIT_CONDITION 3 /* a --fail-if holds */
#define CONDITIONS_MAX 64
#define STAGE_RUNS     20 /* of the first stage; each has twice as many as the one before */
#define STAGES         3
#define STAGES_NS      60000000000u /* no stage is begun after that */
#define NOTES_MAX      8
#define ALPHA          0.005

enum { BENCH_TEXT, BENCH_JSON };

struct options {
    struct stat_options how; /* the tier, -v, -o and the form */
    uint64_t runs, warm_ups, for_ns, matters;
    unsigned stages; /* how often it may be found that there are not enough runs */
    bool ignore, show_output, no_places, any_machine;
    const char *baseline, *save, *junit, *markdown;
    const char *conditions[CONDITIONS_MAX];
    size_t condition_count;
    char **commands[2]; /* the second is NULL without --vs */
};

struct run {
    const struct cli_command *command;
    const struct options *options;
    struct bench_runner runner;
    struct stat_wait wait;
    struct bench_side sides[2]; /* with a baseline: it, and what is measured */
    size_t side_count;
    struct bench_machine machine, base; /* this one, and that of the baseline */
    struct bench_comparison comparison;
    bool compared, shares;
    struct bench_place *places;
    size_t place_count;
    bool holds[CONDITIONS_MAX];
    char notes[NOTES_MAX][512];
    const char *lines[NOTES_MAX];
    size_t note_count;
};

/* ---- the command line ----------------------------------------------------------- */

static int take_condition(struct cli_parser *parser, void *target)
{
    struct options *options = target;
    struct condition condition;
    struct prcb_error err;

    if (options->condition_count == CONDITIONS_MAX)
        return cli_usage_error(parser->command, "--fail-if: %d conditions at most", CONDITIONS_MAX);
    if (condition_parse(parser->value, true, &condition, &err))
        return cli_usage_error(parser->command, "%s", err.text);
    options->conditions[options->condition_count++] = parser->value;
    return CLI_OK;
}

#define AT(member) .at = offsetof(struct options, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    {'n', "runs", "N", "run each command N times (default: 20, and while that does not tell 40 and\n"
                       "80, but none after a minute)",
     .kind = CLI_NUMBER, AT(runs), .min = 2, .max = RANK_VALUES},
    {0, "for", "SEC", "run each command as often as it goes in SEC seconds, at least twice",
     .take = cli_take_duration, AT(for_ns)},
    {'w', "warmup", "N", "run each command N times before, uncounted (default 1)",
     .kind = CLI_NUMBER, AT(warm_ups), .max = RANK_VALUES},
    {0, "matters", "PERCENT", "what is the least difference to tell, in percent of the time (default 2)",
     .kind = CLI_NUMBER, AT(matters), .min = 1, .max = 100},
    {0, "baseline", "FILE", "compare with the runs that --save kept", .kind = CLI_TEXT, AT(baseline),
     .what = "the file name is empty"},
    {0, "any-machine", NULL, "accept a baseline of another machine, and compare shares of the time",
     .kind = CLI_FLAG, AT(any_machine)},
    {0, "save", "FILE", "keep the runs, for --baseline", .kind = CLI_TEXT, AT(save),
     .what = "the file name is empty"},
    {0, "fail-if", "CONDITION", "exit with 3 if it holds for certain, as 'run>+2%' or 'faults>10';\n"
                                "may be given again", .take = take_condition},
    {'j', "json", NULL, "one JSON document, with all runs", .take = cli_take_form, AT(how.form), .min = BENCH_JSON},
    {0, "junit", "FILE", "write the conditions as JUnit XML, too", .kind = CLI_TEXT, AT(junit),
     .what = "the file name is empty"},
    {0, "markdown", "FILE", "append a summary in Markdown, as to $GITHUB_STEP_SUMMARY", .kind = CLI_TEXT,
     AT(markdown), .what = "the file name is empty"},
    {'i', "ignore-failure", NULL, "count runs that end with another exit status than 0, too",
     .kind = CLI_FLAG, AT(ignore)},
    {0, "show-output", NULL, "show what the commands write to standard output", .kind = CLI_FLAG, AT(show_output)},
    {0, "no-places", NULL, "make no further runs to find where in the code waits differ",
     .kind = CLI_FLAG, AT(no_places)},
    {'o', "output", "FILE", "write the report to FILE", .kind = CLI_TEXT, AT(how.output),
     .what = "the file name is empty"},
    STAT_TIER_ROW(offsetof(struct options, how)),
    STAT_VERBOSE_ROW(offsetof(struct options, how)),
    STAT_MAX_THREADS_ROW(offsetof(struct options, how)),
    {0},
};
/* clang-format on */

/* Splits the words at --vs. */
static int take_commands(const struct cli_command *self, char **words, struct options *ret)
{
    if (!*words)
        return cli_usage_error(self, "no command: prcb bench -- COMMAND [--vs COMMAND]");
    ret->commands[0] = words;
    for (char **word = words; *word; word++) {
        if (strcmp(*word, "--vs"))
            continue;
        *word = NULL;
        ret->commands[1] = word + 1 + (word[1] && !strcmp(word[1], "--"));
        break;
    }
    if (!*words || (ret->commands[1] && !*ret->commands[1]))
        return cli_usage_error(self, "--vs stands between two commands: one of them is missing");
    if (ret->commands[1] && ret->baseline)
        return cli_usage_error(self, "--vs and --baseline: compare with one of them");
    if (ret->any_machine && !ret->baseline)
        return cli_usage_error(self, "--any-machine goes with --baseline");
    if (ret->condition_count && !ret->commands[1] && !ret->baseline)
        return cli_usage_error(self, "--fail-if: there is nothing to compare with; give --vs or "
                                     "--baseline");
    return CLI_OK;
}

static int parse(const struct cli_command *self, int argc, char **argv, struct options *ret,
                 int *ret_status)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};

    *ret = (struct options){.warm_ups = 1, .matters = 2};
    if (cli_take_all(&parser, ret, ret_status))
        return -1;
    ret->stages = ret->runs || ret->for_ns ? 1 : STAGES;
    if (!ret->runs)
        ret->runs = ret->for_ns ? RANK_VALUES : STAGE_RUNS;
    ret->how.follow = PRCB_FOLLOW_ALL;
    *ret_status = take_commands(self, argv + parser.index, ret);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

static char *join(char *const *words)
{
    size_t size = 1;
    char *text;

    for (char *const *word = words; *word; word++)
        size += strlen(*word) + 1;
    text = calloc(1, size);
    for (char *const *word = words; text && *word; word++) {
        strcat(text, *word);
        strcat(text, word[1] ? " " : "");
    }
    return text;
}

/* ---- the machine ---------------------------------------------------------------- */

static void note(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct run *run, const char *format, ...)
{
    va_list arguments;

    if (run->note_count == NOTES_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(run->notes[run->note_count], sizeof(run->notes[0]), format, arguments);
    va_end(arguments);
    run->lines[run->note_count] = run->notes[run->note_count];
    run->note_count++;
}

static void describe_machine(struct run *run)
{
    static const char *const tiers[] = {
        [PRCB_TIER_DAEMON] = "daemon", [PRCB_TIER_BPF] = "bpf", [PRCB_TIER_PERF] = "perf"};
    struct bench_machine *machine = &run->machine;
    struct utsname name;

    if (!line_after("/proc/cpuinfo", "model name", machine->model, sizeof(machine->model)))
        snprintf(machine->model, sizeof(machine->model), "not known");
    if (!uname(&name))
        snprintf(machine->kernel, sizeof(machine->kernel), "%.*s", (int)sizeof(machine->kernel) - 1,
                 name.release);
    snprintf(machine->tier, sizeof(machine->tier), "%s",
             tiers[prcb_session_tier(run->runner.session)]);
    machine->processors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Whether figures of a baseline can be compared with those of this machine. */
static int check_baseline(struct run *run)
{
    const struct bench_machine *here = &run->machine, *base = &run->base;
    bool other = strcmp(base->model, here->model) || base->processors != here->processors;

    if (strcmp(base->tier, here->tier))
        return cli_error(run->command,
                         "the baseline was measured on the %s tier, and this is the %s tier: they "
                         "know different parts; measure the baseline again, or use --tier %s",
                         base->tier, here->tier, base->tier);
    if (other && !run->options->any_machine)
        return cli_error(run->command,
                         "the baseline is of another machine (%s, %u processors; here %s, %u): "
                         "measure it here, or compare shares of the time by --any-machine",
                         base->model, base->processors, here->model, here->processors);
    run->shares = other;
    if (other)
        note(run, "The baseline is of another machine: parts are compared as shares of the time.");
    if (strcmp(base->kernel, here->kernel))
        note(run, "The baseline was measured on Linux %s, this on %s.", base->kernel, here->kernel);
    return CLI_OK;
}

/* ---- running -------------------------------------------------------------------- */

static void show_progress(const struct run *run, uint64_t done, uint64_t runs)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (!runs)
        fputs("\r\033[K", stderr);
    else if (run->options->for_ns)
        fprintf(stderr, "\rprcb bench: run %llu ", (unsigned long long)done);
    else
        fprintf(stderr, "\rprcb bench: run %llu of %llu ", (unsigned long long)done,
                (unsigned long long)runs);
}

/* Runs one of the commands. kept: the run counts. */
static int run_side(struct run *run, size_t side, bool kept)
{
    char **command = run->options->commands[run->options->commands[1] ? side : 0];
    struct bench_side *to = &run->sides[side];
    struct bench_run result;
    int ended = 0, signal = 0,
        status = bench_run_once(&run->runner, command, &result, &ended, &signal);

    if (status != CLI_OK)
        return status;
    if (signal) {
        cli_warn(run->command, "ended before the runs were done: no report");
        return 128 + signal;
    }
    if (ended && !run->options->ignore)
        return cli_error(run->command,
                         "'%s', run %zu, ended with %s %d: its times may not be those of the work; "
                         "-i counts such runs, too",
                         to->command, to->count + 1, WIFSIGNALED(ended) ? "signal" : "exit status",
                         WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
    if (kept && array_append(to->runs, to->count, result))
        return cli_error(run->command, "out of memory");
    return CLI_OK;
}

/* Runs each command once; every other time the second one first, so that what drifts hits both. */
static int run_turn(struct run *run, uint64_t turn, bool kept)
{
    bool both = run->options->commands[1] != NULL;
    size_t first = run->options->baseline ? 1 : both ? turn & 1 : 0;
    int status = run_side(run, first, kept);

    return status == CLI_OK && both ? run_side(run, !first, kept) : status;
}

static int run_stage(struct run *run, uint64_t runs, uint64_t end)
{
    int status = CLI_OK;

    for (uint64_t i = 0; i < runs && status == CLI_OK && (i < 2 || now_ns() < end); i++) {
        show_progress(run, i + 1, runs);
        status = run_turn(run, i, true);
    }
    show_progress(run, 0, 0);
    return status;
}

static int warm_up(struct run *run)
{
    int status = CLI_OK;

    for (uint64_t i = 0; i < run->options->warm_ups && status == CLI_OK; i++)
        status = run_turn(run, i, false);
    return status;
}

/* ---- the result ----------------------------------------------------------------- */

static int find_places(struct run *run)
{
    char **const commands[2] = {run->options->commands[0], run->options->commands[1]};
    struct prcb_error err = {0};

    if (!commands[1] || run->options->no_places ||
        prcb_session_tier(run->runner.session) == PRCB_TIER_PERF)
        return CLI_OK;
    if (bench_where(&run->runner, commands, &run->comparison, &run->places, &run->place_count,
                    &err))
        note(run, "Where waits differ was not found out: %s.", err.text);
    return CLI_OK;
}

static int compare(struct run *run)
{
    const struct bench_options how = {.alpha = ALPHA,
                                      .stages = run->options->stages,
                                      .matters = (double)run->options->matters / 100,
                                      .apart = run->options->baseline != NULL,
                                      .shares = run->shares};
    int result;

    bench_comparison_deinit(&run->comparison);
    result = bench_compare(run->sides, &how, &run->comparison);
    if (result)
        return cli_error(run->command, "nothing to compare: %s", strerror(-result));
    run->compared = true;
    return CLI_OK;
}

/* Whether more runs could tell more. */
static bool is_open(const struct run *run)
{
    for (size_t i = 0; i < run->comparison.count; i++) {
        if (bench_part_owner(run->comparison.rows[i].part) == BENCH_OWN &&
            run->comparison.rows[i].verdict >= BENCH_MORE)
            return false;
    }
    return run->comparison.enough != 0;
}

/* Runs and compares until there are enough runs, or no more stages or time. */
static int run_all(struct run *run)
{
    const struct options *options = run->options;
    uint64_t began = now_ns(), end = options->for_ns ? began + options->for_ns : UINT64_MAX;
    uint64_t runs = options->runs;
    int status = warm_up(run);

    for (unsigned stage = 0; stage < options->stages && status == CLI_OK; stage++) {
        status = run_stage(run, runs, end);
        if (status == CLI_OK && run->side_count == 2)
            status = compare(run);
        if (status != CLI_OK || run->side_count < 2 || !is_open(run) ||
            now_ns() > began + STAGES_NS)
            break;
        runs = run->sides[1].count;
    }
    return status;
}

static int check_conditions(struct run *run)
{
    struct prcb_error err;

    for (size_t i = 0; i < run->options->condition_count; i++) {
        if (bench_check(&run->comparison, run->options->conditions[i], &run->holds[i], &err))
            return cli_usage_error(run->command, "%s", err.text);
    }
    if (run->options->baseline && run->comparison.host_changed)
        note(run, "The machine was not as it was for the baseline: waits, which contain what other "
                  "threads of the program waited for, are not judged.");
    return find_places(run);
}

static void note_coverage(struct run *run)
{
    if (run->runner.untracked)
        note(run,
             "%llu threads had no account and are in no part but user and system: "
             "--max-threads makes room.",
             (unsigned long long)run->runner.untracked);
    if (run->runner.left)
        note(run, "Threads that a run left behind were counted to its end.");
    if (prcb_session_tier(run->runner.session) == PRCB_TIER_PERF)
        note(run, "This is the perf tier: no causes of waiting; threads that live for less than "
                  "20 ms are in run alone.");
}

static struct bench_report report_of(const struct run *run)
{
    return (struct bench_report){
        .sides = run->sides,
        .side_count = run->side_count,
        .names = {run->options->baseline ? "the baseline" : "A",
                  run->options->baseline ? "this build" : "B"},
        .comparison = run->compared ? &run->comparison : NULL,
        .machine = &run->machine,
        .places = run->places,
        .place_count = run->place_count,
        .warm_ups = (size_t)run->options->warm_ups,
        .conditions = run->options->conditions,
        .holds = run->holds,
        .condition_count = run->options->condition_count,
        .notes = run->lines,
        .note_count = run->note_count,
    };
}

/* The runs that were measured here, without what they were compared with. */
static int write_runs(const struct bench_report *report, FILE *out)
{
    struct bench_report alone = *report;

    alone.sides = report->sides + (report->side_count - 1);
    alone.side_count = 1;
    alone.names[0] = "A";
    alone.comparison = NULL;
    alone.place_count = alone.condition_count = 0;
    return bench_write_json(&alone, out);
}

static int write_report(const struct bench_report *report, FILE *out)
{
    bench_write_text(report, out);
    return 0;
}

/* ---- files ---------------------------------------------------------------------- */

enum { FILE_REPORT, FILE_SAVE, FILE_JUNIT, FILES };

/* What is written, in this order; all of it is opened before anything is run. */
struct files {
    struct output outputs[FILES];
    bool is_open[FILES];
    FILE *markdown; /* it is appended to */
};

static void abort_files(struct files *files)
{
    for (int i = 0; i < FILES; i++) {
        if (files->is_open[i])
            output_abort(&files->outputs[i]);
    }
    if (files->markdown)
        fclose(files->markdown);
}

static int open_files(const struct run *run, struct files *ret)
{
    const struct options *options = run->options;
    const char *const paths[FILES] = {options->how.output, options->save, options->junit};
    struct files files = {.markdown = NULL};
    int status = CLI_OK;

    for (int i = 0; i < FILES && status == CLI_OK; i++) {
        if (i != FILE_REPORT && !paths[i])
            continue;
        status = cli_open_output(run->command, paths[i], &files.outputs[i]);
        files.is_open[i] = status == CLI_OK;
    }
    if (status == CLI_OK && options->markdown) {
        files.markdown = fopen(options->markdown, "ae");
        if (!files.markdown)
            status = cli_error(run->command, "%s: %s", options->markdown, strerror(errno));
    }
    if (status == CLI_OK)
        *ret = files;
    else
        abort_files(&files);
    return status;
}

static int write_markdown(const struct run *run, const struct bench_report *report, FILE *out)
{
    bool failed = bench_write_markdown(report, out) || fflush(out) || ferror(out);

    return fclose(out) || failed
               ? cli_error(run->command, "%s: %s", run->options->markdown, strerror(errno))
               : CLI_OK;
}

/* Writes and closes all of them, whichever fails. */
static int write_files(const struct run *run, struct files *files)
{
    const bool json = run->options->how.form.number == BENCH_JSON;
    int (*const fns[FILES])(const struct bench_report *report, FILE *out) = {
        json ? bench_write_json : write_report, write_runs, bench_write_junit};
    const struct bench_report report = report_of(run);
    int status = CLI_OK, here;

    for (int i = 0; i < FILES; i++) {
        struct output *output = &files->outputs[i];

        if (!files->is_open[i])
            continue;
        output_begin(output);
        here = fns[i](&report, output->stream) ? cli_error(run->command, "out of memory") : CLI_OK;
        here = cli_close_output(run->command, output, here);
        status = status == CLI_OK ? here : status;
    }
    here = files->markdown ? write_markdown(run, &report, files->markdown) : CLI_OK;
    return status == CLI_OK ? here : status;
}

/* ---- the course of a run -------------------------------------------------------- */

static int open_session(struct run *run)
{
    struct prcb_options how = {.size = sizeof(how),
                               .tier = run->options->how.tier,
                               .max_threads = (uint32_t)run->options->how.max_threads,
                               .flags = PRCB_OPEN_INTERRUPTED};
    struct prcb_error err;
    int result = stat_targets_open(&how, &run->options->how, &run->runner.session, &err);

    if (run->options->how.verbose)
        cli_write_load_log(prcb_load_log());
    return result ? cli_error(run->command, "%s", err.text) : CLI_OK;
}

static int prepare(struct run *run)
{
    const struct options *options = run->options;

    run->side_count = options->commands[1] || options->baseline ? 2 : 1;
    describe_machine(run);
    for (size_t i = 0; i < run->side_count; i++) {
        if (options->baseline && !i)
            continue;
        run->sides[i].command = join(options->commands[options->baseline ? 0 : i]);
        if (!run->sides[i].command)
            return cli_error(run->command, "out of memory");
    }
    return options->baseline ? check_baseline(run) : CLI_OK;
}

static int run_opened(struct run *run)
{
    struct files files;
    int status = prepare(run), i;

    if (status == CLI_OK)
        status = open_files(run, &files);
    if (status != CLI_OK)
        return status;
    status = run_all(run);
    if (status == CLI_OK && run->side_count == 2)
        status = check_conditions(run);
    if (status != CLI_OK) {
        abort_files(&files);
        return status;
    }
    note_coverage(run);
    status = write_files(run, &files);
    for (i = 0; i < (int)run->options->condition_count; i++) {
        if (!run->holds[i])
            continue;
        cli_warn(run->command, "--fail-if '%s' holds", run->options->conditions[i]);
        status = status == CLI_OK ? EXIT_CONDITION : status;
    }
    return status;
}

static int run_with(const struct cli_command *self, const struct options *options)
{
    struct run run = {.command = self, .options = options};
    struct prcb_error err;
    int status, result;

    /* Before signals wait for a command: it may be a pipe that nobody writes to. */
    if (options->baseline && bench_read(options->baseline, &run.sides[0], &run.base, &err))
        return cli_error(self, "%s", err.text);
    result = stat_wait_init(&run.wait);
    if (result) {
        bench_side_deinit(&run.sides[0]);
        return cli_error(self, "pipe: %s", strerror(-result));
    }
    run.runner = (struct bench_runner){.command = self,
                                       .options = &options->how,
                                       .wait = &run.wait,
                                       .show_output = options->show_output};
    status = open_session(&run);
    if (status == CLI_OK)
        status = run_opened(&run);
    prcb_close(run.runner.session);
    stat_wait_deinit(&run.wait);
    for (size_t i = 0; i < run.place_count; i++)
        free(run.places[i].function);
    free(run.places);
    bench_comparison_deinit(&run.comparison);
    bench_side_deinit(&run.sides[0]);
    bench_side_deinit(&run.sides[1]);
    return status;
}

static int run_bench(const struct cli_command *self, int argc, char **argv)
{
    struct options options;
    int status, result = parse(self, argc, argv, &options, &status);

    if (result == CLI_OK)
        status = run_with(self, &options);
    stat_options_deinit(&options.how);
    return status;
}

extern const struct cli_command cmd_bench;
const struct cli_command cmd_bench = {
    .name = "bench",
    .synopsis = "[options] [--] COMMAND [ARGUMENT...] [--vs COMMAND...]",
    .summary = "is this build slower, and why? the program, or the machine",
    .description =
        "Runs COMMAND again and again, by turns with the one behind --vs, or to compare with the\n"
        "runs of --baseline. Each run is split exactly: running, page faults and each cause of\n"
        "waiting are the program's; waiting for a processor, a quota, interrupts and the\n"
        "hypervisor are the machine's, and fail nobody. A rank test finds what is different, and\n"
        "\"not enough runs\" is an answer.",
    .options = option_rows,
    .examples = "  prcb bench -- ./old --vs ./new               which parts are different?\n"
                "  prcb bench --save base.json -- ./work        keep the runs\n"
                "  prcb bench --baseline base.json --fail-if 'run>+2%' -- ./work    a gate\n"
                "  prcb bench -n 50 -j -- sort a --vs sort -S 1M a    for a program to read\n",
    .run = run_bench,
};
