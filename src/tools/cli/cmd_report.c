/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb report` shows what a recording says, and writes its exports.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "error.h"
#include "read_file.h"
#include "report_ds.h"
#include "report_sides.h"
#include "output.h"
#include "format.h"

#ifdef HAVE_RECORD
#include "archive.h"
#include "critical.h"
#include "diff.h"
#include "export.h"
#include "lines.h"
#include "report.h"
#include "report_verdict.h"
#include "switch_rows.h"
#endif
#ifdef HAVE_PAGE
#include "page.h"
#endif

#define DEFAULT_PATH    "prcb.db"
#define DEFAULT_TOP     20
#define TOP_NONE        UINT64_MAX
#define TIMELINE_MARGIN 6
#define CONDITIONS_MAX  REPORT_CONDITIONS_MAX
#define SIDE_MAX        64        /* recordings */
#define TABLE_SWITCHES  (1u << 7) /* behind the tables of a report */
#define BUFFER_MAX      ((size_t)(1ull << (sizeof(size_t) > 4 ? 32 : 30)))
#define EXIT_CONDITION  3 /* a --fail-if holds */

enum format {
    FORMAT_TEXT,
    FORMAT_JSON,
    FORMAT_CSV,
    FORMAT_BRIEF,
    FORMAT_FOLDED,
    FORMAT_FIREFOX,
    FORMAT_PPROF,
    FORMAT_PERFETTO,
    FORMAT_HTML,
    FORMAT_PARQUET
};

struct run {
    const struct cli_command *command;
    const char *path, *output;
    const char *second; /* of --diff */
    char *words[2][SIDE_MAX];
    size_t word_counts[2];
    bool vs;            /* words belong to the second side */
    const char *names;  /* of columns; NULL: prcb's own */
    const char *folder; /* of --parquet */
    bool diff;
    const char *conditions[CONDITIONS_MAX];
    size_t condition_count;
    struct cli_form form; /* enum format */
    unsigned tables;
    uint64_t top;      /* TOP_NONE: not given */
    uint64_t html_max; /* bytes; 0: not given */
    bool redact;
    const char *ds_path; /* NULL: a recording */
    struct report_ds ds;
    bool ds_format_given, waits, all_time, idle, lines;
    struct {
        int64_t tid;             /* 0: not asked for */
        uint64_t from_ns, to_ns; /* since the recording began */
    } critical;
};

static int take_tables(struct cli_parser *parser, void *target)
{
    static const char *const names[] = {"functions", "threads", "waits", "processors",
                                        "timeline",  "stacks",  "spans", "switches"};
    const char *text = parser->value;
    struct run *run = target;

    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), i;

        for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (strlen(names[i]) == length && !strncmp(names[i], at, length))
                break;
        }
        if (i == sizeof(names) / sizeof(names[0]))
            return cli_usage_error(run->command,
                                   "--table '%s': must be functions, threads, waits, processors, "
                                   "timeline, stacks, spans or switches, with commas between",
                                   text);
        run->tables |= 1u << i;
        at += length;
        if (!*at)
            return CLI_OK;
    }
}

static int take_ds_format(struct cli_parser *parser, void *target)
{
    const char *value = parser->value;
    struct run *run = target;
    uint64_t number = 0;

    run->ds_format_given = true;
    run->ds.bts = !strcmp(value, "bts");
    if (!run->ds.bts && number_parse(value, 0, 6, &number))
        return cli_usage_error(run->command, "--format '%s': must be 0 to 6, or bts", value);
    run->ds.format = (uint32_t)number;
    return CLI_OK;
}

/* Takes a number of bytes; k, M or G may follow for their multiples. */
static int take_size(struct cli_parser *parser, void *target)
{
    static const char units[] = "kMG";
    const char *value = parser->value, *unit;
    struct run *run = target;
    size_t count = strspn(value, "0123456789");
    unsigned shift = 0;
    uint64_t number = count && count < 19 ? strtoull(value, NULL, 10) : 0;

    unit = value[count] ? strchr(units, value[count]) : NULL;
    if (unit)
        shift = 10 * (unsigned)(unit - units + 1);
    if (!number || number > UINT64_MAX >> shift || strlen(value) != count + (unit ? 1 : 0))
        return cli_usage_error(run->command,
                               "--html-max '%s': must be a number of bytes, as 500k or 20M", value);
    run->html_max = number << shift;
    return CLI_OK;
}

/* Reads seconds as nanoseconds, up to a character or the end; false: the text is no such number. */
static bool take_seconds(const char **at, uint64_t *ret)
{
    char *end;
    double value = strtod(*at, &end);

    if (end == *at || !(value >= 0 && value < 1e9))
        return false;
    *at = end;
    *ret = (uint64_t)(value * 1e9 + 0.5);
    return true;
}

/* PID[:FROM-TO] */
static int take_critical(struct cli_parser *parser, void *target)
{
    const char *at = parser->value;
    struct run *run = target;
    size_t digits = strspn(at, "0123456789");
    bool good = digits && digits < 10;

    run->critical.tid = good ? atoll(at) : 0;
    run->critical.from_ns = 0;
    run->critical.to_ns = UINT64_MAX;
    at += digits;
    if (good && *at == ':') {
        at++;
        good = (*at == '-' || take_seconds(&at, &run->critical.from_ns)) && *at++ == '-' &&
               (!*at || take_seconds(&at, &run->critical.to_ns)) &&
               run->critical.from_ns < run->critical.to_ns;
    }
    if (!good || *at || !run->critical.tid)
        return cli_usage_error(run->command,
                               "--critical '%s': must be a process or thread, and seconds of the "
                               "recording, as 1234 or 1234:0.5-2",
                               parser->value);
    return CLI_OK;
}

static int take_parquet(struct cli_parser *parser, void *target)
{
    struct run *run = target;

    if (!*parser->value)
        return cli_usage_error(run->command, "--parquet: the name of the folder is empty");
    run->folder = parser->value;
    return cli_take_form(parser, &run->form);
}

static int take_condition(struct cli_parser *parser, void *target)
{
    struct run *run = target;

    if (run->condition_count == CONDITIONS_MAX)
        return cli_usage_error(run->command, "--fail-if: %d conditions at most", CONDITIONS_MAX);
    run->conditions[run->condition_count++] = parser->value;
    return CLI_OK;
}

/* Checks that the options go with two recordings. */
static int check_sides(const struct run *run)
{
    if (!run->diff || run->word_counts[0] < 2 || run->word_counts[1] < 2)
        return cli_usage_error(run->command, "--vs needs --diff, and two recordings or more in "
                                             "front of it and behind");
    if (run->tables || run->ds_path || run->top != TOP_NONE || run->form.number > FORMAT_JSON)
        return cli_usage_error(run->command, "--vs goes with --diff, -j, --fail-if and -o only");
    return CLI_OK;
}

/* Traces of several recordings are an archive. */
static bool is_archive(const struct run *run)
{
    return run->form.number == FORMAT_PERFETTO && run->word_counts[0] > 1 && !run->diff;
}

static int check_archive(const struct run *run)
{
    if (run->tables || run->ds_path || run->top != TOP_NONE || run->condition_count)
        return cli_usage_error(run->command, "--perfetto of several recordings goes with -o only");
    if (!run->output && isatty(STDOUT_FILENO))
        return cli_usage_error(run->command, "an archive is not for a terminal: -o FILE");
    return CLI_OK;
}

static int check_diff(struct run *run)
{
    if (run->vs)
        return check_sides(run);
    if (is_archive(run))
        return check_archive(run);
    if (run->word_counts[0] > 2)
        return cli_usage_error(run->command,
                               "'%s': two recordings are enough; several a side go with --vs",
                               run->words[0][2]);
    run->path = run->words[0][0];
    run->second = run->words[0][1];
    if (run->diff && !run->second)
        return cli_usage_error(run->command, "--diff needs two recordings: --diff A.db B.db");
    if (!run->diff && run->second)
        return cli_usage_error(run->command, "'%s': one recording is enough; two go with --diff",
                               run->second);
    if (!run->diff && run->condition_count)
        return cli_usage_error(run->command, "--fail-if goes with --diff");
    if (run->diff && (run->tables || run->ds_path ||
                      (run->form.number > FORMAT_CSV && run->form.number != FORMAT_HTML)))
        return cli_usage_error(run->command, "--diff goes with -j, -x, --html, --top and -o only");
    return CLI_OK;
}

/* Checks which options go with a buffer and which with a recording. */
static int check_ds(struct run *run)
{
    static const enum report_ds_style styles[] = {[FORMAT_TEXT] = REPORT_DS_TEXT,
                                                  [FORMAT_JSON] = REPORT_DS_JSON,
                                                  [FORMAT_CSV] = REPORT_DS_CSV};

    if (!run->ds_path != !run->ds_format_given)
        return cli_usage_error(run->command, "--ds and --format go together");
    if (!run->ds_path)
        return CLI_OK;
    if (run->form.number > FORMAT_CSV || run->tables || run->top != TOP_NONE || run->path)
        return cli_usage_error(run->command, "--ds goes with -j, -x and -o only");
    run->ds.separator = run->form.separator;
    run->ds.style = styles[run->form.number];
    return CLI_OK;
}

static int take_word(struct cli_parser *parser, void *target)
{
    struct run *run = target;
    size_t side = run->vs;

    if (run->word_counts[side] == SIDE_MAX)
        return cli_usage_error(run->command, "'%s': %d recordings at most", parser->value,
                               SIDE_MAX);
    run->words[side][run->word_counts[side]++] = (char *)parser->value;
    return CLI_OK;
}

#define AT(member)   .at = offsetof(struct run, member)
#define FORM(number) .take = cli_take_form, AT(form), .min = number
/* clang-format off */
static const struct cli_option option_rows[] = {
    {0, "table", "NAME[,NAME]", "these tables only: functions, threads, waits, processors, timeline,\n"
                                   "stacks (of waits), spans; or with -x: switches, each with who woke the thread",
     .take = take_tables, .choices = "functions threads waits processors timeline stacks spans switches"},
    {0, "top", "N", "the first N rows of a table (default 20 in tables, else all; 0: all)",
     .kind = CLI_NUMBER, AT(top), .max = UINT32_MAX},
    {'j', "json", NULL, "one JSON document", FORM(FORMAT_JSON)},
    {0, "brief", NULL, "a JSON document of at most 8 KiB: what held threads up, the largest waits, stacks\n"
                       "and functions, and what the recording cannot say", FORM(FORMAT_BRIEF)},
    {'x', "csv", "SEP", "a line of values per row, with SEP between them ('\\t': a tab)",
     .take = cli_take_values, AT(form), .min = FORMAT_CSV},
    {0, "names", "WHOSE", "with --table switches: columns and units of Windows Performance Analyzer (wpa)",
     .kind = CLI_TEXT, AT(names), .choices = "wpa"},
    {0, "lines", NULL, "samples by line of source, with inlined functions, where debug information is\n"
                       "installed", AT(lines)},
    {0, "folded", NULL, "export stacks, a line each, for flame graphs", FORM(FORMAT_FOLDED)},
    {0, "waits", NULL, "with --folded: where threads waited, in nanoseconds, not where they ran",
     AT(waits)},
    {0, "all-time", NULL, "with --folded: all time of threads: running, ready and waiting, by cause",
     AT(all_time)},
    {0, "idle", NULL, "with stacks of waits: those of threads that idle by design, too", AT(idle)},
    {0, "perfetto", NULL, "export threads and processors over time for ui.perfetto.dev: with stacks, and\n"
                          "arrows from wakers", FORM(FORMAT_PERFETTO)},
    {0, "pprof", NULL, "export a profile for pprof (gzip)", FORM(FORMAT_PPROF)},
    {0, "firefox", NULL, "export threads with samples and waits for profiler.firefox.com", FORM(FORMAT_FIREFOX)},
    {0, "parquet", "DIR", "export all tables as Parquet files below DIR, for DuckDB, ClickHouse and the\n"
                          "like: recordings of many hosts go into one DIR", .take = take_parquet, .min = FORMAT_PARQUET},
    {0, "html", NULL, "one HTML file that needs nothing but a browser", FORM(FORMAT_HTML)},
    {0, "html-max", "SIZE", "its largest size (default 20M): the timeline is made coarser",
     .take = take_size},
    {0, "redact", NULL, "hash names in it, leave machine and command out", .kind = CLI_FLAG, AT(redact)},
    {0, "critical", "PID[:FROM-TO]", "what the time of this thread was spent on: its own work, or that of those\n"
                                     "it waited for; between these seconds of the recording",
     .take = take_critical},
    {0, "diff", NULL, "what changed from the first recording to the second, per second of each", .kind = CLI_FLAG, AT(diff)},
    {0, "vs", NULL, "with --diff: several recordings in front of it and behind, compared as prcb bench\n"
                    "compares runs", .kind = CLI_FLAG, AT(vs)},
    {0, "fail-if", "CONDITION", "with --diff: exit with 3 if it holds, as 'ready>+10%' or 'futex>5ms';\n"
                                "may be given again", .take = take_condition},
    {0, "ds", "BUFFER", "decode a Debug Store buffer that was saved instead", .kind = CLI_TEXT, AT(ds_path)},
    {0, "format", "N", "its records: PEBS format 0 to 6, or bts",
     .take = take_ds_format, .choices = "0 1 2 3 4 5 6 bts"},
    {'o', "output", "FILE", "write to FILE", .kind = CLI_TEXT, AT(output)},
    {0},
};
/* clang-format on */

/* Returns CLI_OK, or -1 and *ret_status is the exit code. */
static int parse(struct run *run, int argc, char **argv, int *ret_status)
{
    struct cli_parser parser = {
        .command = run->command, .argc = argc, .argv = argv, .take_word = take_word};

    if (cli_take_all(&parser, run, ret_status))
        return -1;
    if (run->folder && (run->output || run->tables || run->top != TOP_NONE || run->critical.tid))
        *ret_status = cli_usage_error(run->command, "--parquet DIR goes with recordings alone");
    else if (run->form.number >= FORMAT_PPROF && !run->folder && !run->output &&
             isatty(STDOUT_FILENO))
        *ret_status = cli_usage_error(run->command, "--%s is not for a terminal: -o FILE",
                                      run->form.option->name);
    else if (run->form.number == FORMAT_BRIEF && (run->tables || run->top != TOP_NONE))
        *ret_status = cli_usage_error(run->command, "--brief chooses what it shows: --table and "
                                                    "--top do not go with it");
    else if (run->waits && run->form.number != FORMAT_FOLDED)
        *ret_status = cli_usage_error(run->command, "--waits goes with --folded");
    else if (run->all_time && (run->form.number != FORMAT_FOLDED || run->waits))
        *ret_status =
            cli_usage_error(run->command, "--all-time goes with --folded, without --waits");
    else if ((run->html_max || run->redact) && run->form.number != FORMAT_HTML)
        *ret_status = cli_usage_error(run->command, "--html-max and --redact go with --html");
    else if (run->tables & TABLE_SWITCHES &&
             (run->tables != TABLE_SWITCHES || run->form.number != FORMAT_CSV))
        *ret_status = cli_usage_error(run->command, "--table switches goes alone, and with -x");
    else if (run->names && strcmp(run->names, "wpa") != 0)
        *ret_status = cli_usage_error(run->command, "--names '%s': must be wpa", run->names);
    else if (run->names && !(run->tables & TABLE_SWITCHES))
        *ret_status = cli_usage_error(run->command, "--names goes with --table switches");
    else if (run->critical.tid &&
             (run->form.number > FORMAT_CSV || run->tables || run->diff || run->ds_path))
        *ret_status =
            cli_usage_error(run->command, "--critical goes with -j, -x, --top and -o only");
    else if (run->lines && (run->form.number > FORMAT_CSV || run->tables || run->diff ||
                            run->ds_path || run->critical.tid))
        *ret_status = cli_usage_error(run->command, "--lines goes with -j, -x, --top and -o only");
    else if ((*ret_status = check_diff(run)) == CLI_OK)
        *ret_status = check_ds(run);
    if (!run->path)
        run->path = DEFAULT_PATH;
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

#ifdef HAVE_RECORD

/* For people, a timeline is as long as a line of their terminal has room behind the processor's
 * number. */
static size_t timeline_cells(const struct run *run, FILE *out)
{
    size_t columns = format_columns(out);

    if (run->form.number != FORMAT_TEXT || columns >= REPORT_CELLS + TIMELINE_MARGIN)
        return REPORT_CELLS;
    return columns - TIMELINE_MARGIN;
}

static int print_critical(const struct run *run, const struct recording *recording, FILE *out,
                          struct prcb_error *err)
{
    uint64_t zero = recording->start_ns, to = run->critical.to_ns;
    struct critical critical;
    int result = critical_make(recording, run->critical.tid, zero + run->critical.from_ns,
                               to < UINT64_MAX - zero ? zero + to : UINT64_MAX, &critical, err);

    if (result)
        return result;
    if (run->form.number == FORMAT_JSON)
        critical_print_json(&critical, out);
    else if (run->form.number == FORMAT_CSV)
        critical_print_csv(&critical, run->form.separator, out);
    else
        critical_print_text(&critical, run->top != TOP_NONE ? (size_t)run->top : DEFAULT_TOP, out);
    critical_free(&critical);
    return 0;
}

static int print_lines(const struct run *run, const struct recording *recording, FILE *out,
                       struct prcb_error *err)
{
    size_t top = run->top != TOP_NONE              ? (size_t)run->top
                 : run->form.number == FORMAT_TEXT ? DEFAULT_TOP
                                                   : 0;
    struct lines lines;
    int result = lines_make(recording, &lines, err);

    if (result)
        return result;
    if (run->form.number == FORMAT_JSON)
        result = lines_print_json(&lines, top, out);
    else if (run->form.number == FORMAT_CSV)
        lines_print_csv(&lines, top, run->form.separator, out);
    else
        lines_print_text(&lines, top, out);
    lines_free(&lines);
    return result ? prcb_fail(err, result, "out of memory") : 0;
}

static int print_tables(const struct run *run, const struct recording *recording, FILE *out,
                        struct prcb_error *err)
{
    struct report_style style = {
        .tables = run->tables ? run->tables : REPORT_ALL,
        .top = run->top != TOP_NONE              ? (size_t)run->top
               : run->form.number == FORMAT_TEXT ? DEFAULT_TOP
                                                 : 0,
        .idle = run->idle,
        .separator = run->form.separator,
    };
    struct report report;
    struct verdict *verdict = NULL;
    int result;

    if (run->tables & TABLE_SWITCHES)
        return switch_rows_print_csv(recording, run->names ? SWITCH_NAMES_WPA : SWITCH_NAMES_OWN,
                                     style.top, run->form.separator, out, err);
    result = report_make(recording, timeline_cells(run, out), &report, err);
    if (result)
        return result;
    if (!run->tables && run->form.number != FORMAT_CSV && report_verdict_make(&report, &verdict)) {
        report_free(&report);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    style.verdict = verdict;
    if (run->form.number == FORMAT_JSON)
        result = report_print_json(&report, &style, out);
    else if (run->form.number == FORMAT_BRIEF)
        result = report_print_brief(&report, verdict, out);
    else if (run->form.number == FORMAT_CSV)
        report_print_csv(&report, &style, out);
    else
        report_print_text(&report, &style, out);
    report_verdict_free(verdict);
    report_free(&report);
    return result ? prcb_fail(err, result, "out of memory") : 0;
}

static int print_html(const struct run *run, const struct recording *recording,
                      const struct recording *base, FILE *out, struct prcb_error *err)
{
#ifdef HAVE_PAGE
    struct page_options options = {.max_bytes = run->html_max ? run->html_max : PAGE_DEFAULT_MAX,
                                   .redact = run->redact};

    return page_write(recording, base, &options, out, err);
#else
    return prcb_fail(err, -EOPNOTSUPP, "this prcb was built without zlib, which --html needs");
#endif
}

static int print(const struct run *run, const struct recording *recording, FILE *out,
                 struct prcb_error *err)
{
    if (run->critical.tid)
        return print_critical(run, recording, out, err);
    if (run->lines)
        return print_lines(run, recording, out, err);
    switch (run->form.number) {
    case FORMAT_FOLDED:
        return run->all_time ? export_folded_all(recording, out, err)
               : run->waits  ? export_folded_waits(recording, run->idle, out, err)
                             : export_folded(recording, out, err);
    case FORMAT_PERFETTO:
        return export_perfetto(recording, out, err);
    case FORMAT_PPROF:
        return export_pprof(recording, out, err);
    case FORMAT_FIREFOX:
        return export_firefox(recording, out, err);
    case FORMAT_HTML:
        return print_html(run, recording, NULL, out, err);
    default:
        return print_tables(run, recording, out, err);
    }
}

/* Returns whether the report would overwrite the recording that it is made of. */
static bool is_same_file(const char *recording, const char *output)
{
    struct stat from, to;

    return output && !stat(recording, &from) && !stat(output, &to) && from.st_dev == to.st_dev &&
           from.st_ino == to.st_ino;
}

/* Returns CLI_OK, or the exit code after the error. */
static int open_recording(const struct run *run, const char *path, struct recording *ret)
{
    struct prcb_error err = {0};

    if (is_same_file(path, run->output))
        return cli_error(run->command, "%s is the recording itself: choose another file with -o",
                         run->output);
    if (recording_open(path, ret, &err))
        return cli_error(run->command, "%s", err.text);
    if (ret->has_history) {
        recording_close(ret);
        return cli_error(run->command,
                         "%s is a history of prcb top, without samples: prcb top -r %s shows it, "
                         "with -b as tables",
                         path, path);
    }
    if (ret->namer.left)
        cli_warn(run->command, "%u file%s left without names of functions: %s%s", ret->namer.left,
                 ret->namer.left == 1 ? "" : "s", ret->namer.first,
                 ret->namer.left == 1 ? "" : "; ...");
    return CLI_OK;
}

static int print_diff(const struct run *run, const struct recording *recordings,
                      const struct diff *diff, FILE *out, struct prcb_error *err)
{
    size_t top = run->top != TOP_NONE              ? (size_t)run->top
                 : run->form.number == FORMAT_TEXT ? DEFAULT_TOP
                                                   : 0;

    switch (run->form.number) {
    case FORMAT_HTML:
        return print_html(run, &recordings[1], &recordings[0], out, err);
    case FORMAT_JSON:
        return diff_print_json(diff, top, out) ? prcb_fail(err, -ENOMEM, "out of memory") : 0;
    case FORMAT_CSV:
        diff_print_csv(diff, top, run->form.separator, out);
        return 0;
    default:
        diff_print_text(diff, top, out);
        return 0;
    }
}

/* Returns CLI_OK, EXIT_CONDITION, or the exit code after the error. */
static int check_conditions(const struct run *run, const struct diff *diff)
{
    struct prcb_error err = {0};
    int status = CLI_OK;

    for (size_t i = 0; i < run->condition_count; i++) {
        bool holds;

        if (diff_check(diff, run->conditions[i], &holds, &err))
            return cli_usage_error(run->command, "%s", err.text);
        if (!holds)
            continue;
        cli_warn(run->command, "--fail-if '%s' holds", run->conditions[i]);
        status = EXIT_CONDITION;
    }
    return status;
}

static int report_diff(const struct run *run)
{
    struct recording recordings[2] = {0};
    struct prcb_error err = {0};
    struct diff diff = {0};
    struct output output;
    int status = open_recording(run, run->path, &recordings[0]), verdict;

    if (status == CLI_OK)
        status = open_recording(run, run->second, &recordings[1]);
    if (status == CLI_OK && diff_make(&recordings[0], &recordings[1], &diff, &err))
        status = cli_error(run->command, "%s", err.text);
    verdict = status == CLI_OK ? check_conditions(run, &diff) : status;
    if (verdict == CLI_USAGE)
        status = verdict;
    if (status == CLI_OK)
        status = cli_open_output(run->command, run->output, &output);
    if (status == CLI_OK) {
        output_begin(&output);
        if (print_diff(run, recordings, &diff, output.stream, &err))
            status = cli_error(run->command, "%s", err.text);
        status = cli_close_output(run->command, &output, status);
    }
    diff_free(&diff);
    recording_close(&recordings[1]);
    recording_close(&recordings[0]);
    return status == CLI_OK ? verdict : status;
}

static int open_for_side(const void *ctx, const char *path, struct recording *ret)
{
    return open_recording(ctx, path, ret);
}

static int compare_sides(const struct run *run)
{
    const struct report_sides sides = {
        .command = run->command,
        .paths = {run->words[0], run->words[1]},
        .counts = {run->word_counts[0], run->word_counts[1]},
        .conditions = run->conditions,
        .condition_count = run->condition_count,
        .output = run->output,
        .json = run->form.number == FORMAT_JSON,
        .open = open_for_side,
        .ctx = run,
    };

    return report_sides(&sides);
}

static int report_parquet(const struct run *run, const struct recording *recording)
{
    struct prcb_error err = {0};

    return export_parquet(recording, run->folder, &err) ? cli_error(run->command, "%s", err.text)
                                                        : CLI_OK;
}

/* One recording at a time is open. */
static int archive_one(const struct run *run, const char *path, struct archive *archive)
{
    struct prcb_error err = {0};
    struct recording recording;
    int status = open_recording(run, path, &recording);

    if (status != CLI_OK)
        return status;
    if (archive_add(archive, &recording, &err))
        status = cli_error(run->command, "%s: %s", path, err.text);
    recording_close(&recording);
    return status;
}

static int report_archive(const struct run *run)
{
    struct output output;
    struct archive archive = {.out = NULL};
    int status = CLI_OK;

    for (size_t i = 0; i < run->word_counts[0] && status == CLI_OK; i++) {
        if (is_same_file(run->words[0][i], run->output))
            status = cli_error(
                run->command, "%s is a recording itself: choose another file with -o", run->output);
    }
    if (status == CLI_OK)
        status = cli_open_output(run->command, run->output, &output);
    if (status != CLI_OK)
        return status;
    output_begin(&output);
    archive.out = output.stream;
    for (size_t i = 0; i < run->word_counts[0] && status == CLI_OK; i++)
        status = archive_one(run, run->words[0][i], &archive);
    if (status == CLI_OK && archive_end(&archive))
        status = cli_error(run->command, "out of memory");
    archive_free(&archive);
    return cli_close_output(run->command, &output, status);
}

static int report(const struct run *run)
{
    struct output output;
    struct recording recording;
    struct prcb_error err = {0};
    int status = open_recording(run, run->path, &recording);

    if (status != CLI_OK)
        return status;
    if (run->folder) {
        status = report_parquet(run, &recording);
        recording_close(&recording);
        return status;
    }
    status = cli_open_output(run->command, run->output, &output);
    if (status != CLI_OK) {
        recording_close(&recording);
        return status;
    }
    output_begin(&output);
    if (print(run, &recording, output.stream, &err))
        status = cli_error(run->command, "%s", err.text);
    recording_close(&recording);
    return cli_close_output(run->command, &output, status);
}

#else

static int report(const struct run *run)
{
    return cli_error(run->command, "this prcb was built without SQLite, libdw or libelf, which "
                                   "recordings need (meson option 'record')");
}

static int report_diff(const struct run *run)
{
    return report(run);
}

static int report_archive(const struct run *run)
{
    return report(run);
}

static int compare_sides(const struct run *run)
{
    return report(run);
}

#endif

static int report_buffer(const struct run *run)
{
    struct output output;
    struct prcb_error err = {0};
    size_t length = 0;
    char *bytes = NULL;
    int status, result = read_file(run->ds_path, BUFFER_MAX, &bytes, &length);

    if (result)
        return cli_error(run->command, "%s: %s", run->ds_path, strerror(-result));
    status = cli_open_output(run->command, run->output, &output);
    if (status != CLI_OK) {
        free(bytes);
        return status;
    }
    output_begin(&output);
    if (report_ds(&run->ds, bytes, length, output.stream, &err))
        status = cli_error(run->command, "%s: at byte %" PRIu64 ": %s", run->ds_path, err.offset,
                           err.text);
    free(bytes);
    return cli_close_output(run->command, &output, status);
}

static int run_report(const struct cli_command *self, int argc, char **argv)
{
    struct run run = {.command = self, .top = TOP_NONE};
    int status;

    if (parse(&run, argc, argv, &status))
        return status;
    if (run.vs)
        return compare_sides(&run);
    if (is_archive(&run))
        return report_archive(&run);
    return run.ds_path ? report_buffer(&run) : run.diff ? report_diff(&run) : report(&run);
}

extern const struct cli_command cmd_report;
const struct cli_command cmd_report = {
    .name = "report",
    .synopsis = "[options] [FILE]\n"
                "       prcb report --diff [--fail-if CONDITION]... [options] A.db B.db\n"
                "       prcb report --diff [options] A1.db A2.db... --vs B1.db B2.db...\n"
                "       prcb report --perfetto -o ALL.tar A.db B.db...\n"
                "       prcb report --ds BUFFER --format N [-j | -x SEP] [-o FILE]",
    .summary = "what a recording says: functions, threads, waits; exports",
    .description =
        "Reads a recording of prcb record (default " DEFAULT_PATH ") and says what held the\n"
        "threads up; then which functions and threads had the processors, what threads waited "
        "for,\n"
        "what the processors did, and who ran when; or exports it for other programs.",
    .options = option_rows,
    .examples = "  prcb report                              the tables\n"
                "  prcb report -j system.db | jq .waits     for a program to read\n"
                "  prcb report --html -o report.html        a page to open, or to send\n"
                "  prcb report --diff --fail-if 'ready>+10%' before.db after.db   for CI\n"
                "  prcb report --folded | flamegraph.pl     a flame graph\n"
                "  prcb report --folded --waits | flamegraph.pl  the same of waits, by cause\n"
                "  prcb report --perfetto -o trace.pftrace  for ui.perfetto.dev\n"
                "  prcb report --perfetto -o all.tar a.db b.db    several hosts on one timeline\n"
                "  prcb report --pprof -o profile.pb.gz     for pprof\n"
                "  prcb report --firefox -o profile.json    for profiler.firefox.com\n"
                "  prcb report --parquet fleet              for SQL over many hosts\n"
                "  prcb report --table switches --names=wpa -x,  as WPA has them\n"
                "  prcb report --critical 1234:0.5-2        why it took so long\n"
                "  prcb report --ds buffer --format 4 -j    records of a processor\n",
    .run = run_report,
};
