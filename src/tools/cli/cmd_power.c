/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb power` shows the power state of each processor, and the same as a version of Windows has
 * it in its PROCESSOR_POWER_STATE.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu_json.h"
#include "cpu_report.h"
#include "cpu_samples.h"
#include "layout_symbols.h"
#include "power_image.h"
#include "power_state.h"
#include "output.h"
#include "format.h"
#include "stat_wait.h"

#define DEFAULT_INTERVAL_NS 1000000000ull
#define STRUCTURE           "PROCESSOR_POWER_STATE"

struct run {
    const struct cli_command *command;
    struct cpu_choice choice;
    const char *version; /* NULL: Linux's own figures */
    bool arch_given;
    enum prcb_arch arch;
    bool raw, json;
    bool interval_given;
    uint64_t interval_ns;
    struct prcb_layout *layout; /* with --as */
    struct output output;
    struct stat_wait wait;
    struct cpu_samples samples;
};

/* ---- the command line ---------------------------------------------------- */

static int take_arch(struct cli_parser *parser, void *target)
{
    struct run *run = target;
    struct prcb_error err;

    run->arch_given = true;
    return prcb_arch_parse(parser->value, &run->arch, &err)
               ? cli_usage_error(parser->command, "--arch: %s", err.text)
               : CLI_OK;
}

#define AT(member) .at = offsetof(struct run, member)
/* clang-format off */
static const struct cli_option options[] = {
    CPU_CHOICE_OPTIONS,
    {0, "as", "VERSION", "as this version of Windows has it in " STRUCTURE ":\n"
                         "\"XP SP3\", 6.1, \"Windows 11 22H2\", 10.0.18362.295",
     .kind = CLI_TEXT, AT(version)},
    {0, "arch", "A", "x86 or x64 (default: x64 where there is one)",
     .take = take_arch, .choices = "x86 x64"},
    {0, "raw", NULL, "with --as: the bytes, one structure after the other", AT(raw)},
    {'j', "json", NULL, "one JSON document; with --as all members and their offsets", AT(json)},
    {0},
};
/* clang-format on */

/* Takes the interval. */
static int take_word(struct cli_parser *parser, void *target)
{
    struct run *run = target;

    if (run->interval_given)
        return cli_usage_error(run->command, "'%s': nothing follows the interval", parser->value);
    run->interval_given = true;
    return cpu_interval_parse(run->command, parser->value, &run->interval_ns);
}

static int check(const struct run *run)
{
    if (!run->version && (run->raw || run->arch_given))
        return cli_usage_error(run->command, "%s needs --as VERSION",
                               run->raw ? "--raw" : "--arch");
    if (run->raw && run->json)
        return cli_usage_error(run->command, "--raw and -j contradict each other: choose one");
    if (run->raw && isatty(STDOUT_FILENO))
        return cli_usage_error(run->command,
                               "--raw writes bytes, which are nothing for a terminal: put them "
                               "into a file or a pipe");
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

/* Chooses x86 if no architecture was asked for and the version has no x64. */
static int find_layout(struct run *run)
{
    struct prcb_error err;
    int result = layout_saved_find(NULL, STRUCTURE, run->version, run->arch, &run->layout, &err);

    if (result == -ENOENT)
        result = prcb_layout_find(STRUCTURE, run->version, run->arch, &run->layout, &err);
    if (result == -ENOENT && !run->arch_given &&
        !prcb_layout_find(STRUCTURE, run->version, PRCB_ARCH_X86, &run->layout, NULL))
        result = 0;
    if (result)
        return result == -EINVAL || result == -ENOENT
                   ? cli_usage_error(run->command, "--as: %s", err.text)
                   : cli_error(run->command, "%s", err.text);
    if (*prcb_layout_note(run->layout))
        cli_warn(run->command, "%s", prcb_layout_note(run->layout));
    return CLI_OK;
}

/* Returns the state of a processor since the first look. */
static struct power_state state_of(const struct cpu_samples *samples, uint32_t number)
{
    struct power_state s = {.view = samples->view, .now_ns = samples->now_ns};

    cpu_samples_delta(samples, CPU_SINCE_START, number, &s.p);
    return s;
}

/* ---- tables -------------------------------------------------------------- */

#define ROW(name) .row = &processor_figures[PROCESSOR_ROW_##name]

/* A figure with its names in the table and in JSON, which its row may have as well. */
static const struct column {
    const char *title; /* NULL, and a row without heading: in JSON alone */
    const char *key;
    enum figure_unit unit;
    power_figure *get; /* NULL: what the row says */
    const struct figure *row;
} columns[] = {
    {"parked", "parked", FIGURE_NUMBER, power_parked},
    {"idle", ROW(idle_ns)},
    {"entries", "transitions", ROW(idle_entries)},
    {"%busy", "busy_permille", FIGURE_PERMILLE, power_busy},
    {.get = power_performance, ROW(performance_permille)},
    {"%utility", "utility_permille", FIGURE_PERMILLE, power_utility},
    {ROW(mhz)},
    {ROW(limit_mhz)},
    {"max", ROW(max_mhz)},
    {ROW(min_mhz)},
    {ROW(nominal_mhz)},
    {"%throttle", "throttle_permille", FIGURE_PERMILLE, power_throttle},
    {NULL, "limit_permille", FIGURE_PERMILLE, power_limit},
    {ROW(throttles)},
    {ROW(idle_state)},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static bool is_listed(const struct figure *row)
{
    size_t i = 0;

    while (i < COLUMNS && columns[i].row != row)
        i++;
    return i < COLUMNS;
}

/* Returns a row that this command shows and no column has; after the last, the end of the table. */
static const struct figure *other_row(size_t index)
{
    const struct figure *row = figures_shown(processor_figures, FIGURE_POWER);

    while (row->name && (row->kind == FIGURE_LIST || is_listed(row) || index--))
        row = figures_shown(row + 1, FIGURE_POWER);
    return row;
}

/* Returns the columns in their order, then those of other rows; one without a key is the end. */
static struct column column_at(size_t index)
{
    struct column column = {0};

    if (index < COLUMNS)
        column = columns[index];
    else
        column.row = other_row(index - COLUMNS);
    if (column.row) {
        column.title = column.title ? column.title : column.row->heading;
        column.key = column.key ? column.key : column.row->name;
        column.unit = column.row->unit;
    }
    return column;
}

static struct power_value value_of(const struct column *column, const struct power_state *s)
{
    return column->get ? column->get(s)
                       : power_of(s, (enum processor_row)(column->row - processor_figures));
}

static void write_cell(FILE *out, const struct column *column, const struct power_state *s)
{
    struct power_value value = value_of(column, s);
    char cell[FORMAT_CELL] = "-";

    if (value.reason)
        ;
    else if (column->unit == FIGURE_NS)
        format_time(value.value, cell, sizeof(cell));
    else if (column->unit == FIGURE_PERMILLE)
        snprintf(cell, sizeof(cell), "%.1f", (double)value.value / 10.0);
    else if (column->get == power_parked)
        snprintf(cell, sizeof(cell), "%s", value.value ? "yes" : "no");
    else
        snprintf(cell, sizeof(cell), "%" PRIu64, value.value);
    fprintf(out, "%10s", cell);
}

static void write_states(FILE *out, const struct power_state *s)
{
    for (uint32_t i = 0; i < s->p.idle_state_count; i++) {
        const struct prcb_idle_state *state = &s->p.idle_states[i];
        char time[FORMAT_CELL], share[FORMAT_CELL];

        format_time(state->residency_ns, time, sizeof(time));
        format_share(state->residency_ns, s->p.wall_ns, share, sizeof(share));
        fprintf(out, "%5" PRIu32 "  %-16s%10" PRIu64 "%12s%14s\n", s->p.number, state->name,
                state->entries, time, share);
    }
}

static void write_table(struct run *run)
{
    const struct cpu_samples *samples = &run->samples;
    FILE *out = run->output.stream;
    struct power_state s;
    struct column column;
    bool heading = false;
    char time[FORMAT_CELL];

    cpu_title_write(out, samples, prcb_processors_tier(samples->view));
    format_time(cpu_samples_wall(samples, CPU_SINCE_START), time, sizeof(time));
    fprintf(out, "over %s\n\n%5s", time, "CPU");
    for (size_t i = 0; (column = column_at(i)).key; i++) {
        if (column.title)
            fprintf(out, "%10s", column.title);
    }
    fputc('\n', out);
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        s = state_of(samples, i);
        fprintf(out, "%5" PRIu32, i);
        for (size_t k = 0; (column = column_at(k)).key; k++) {
            if (column.title)
                write_cell(out, &column, &s);
        }
        fputc('\n', out);
    }
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        s = state_of(samples, i);
        if (power_levels(&s).reason)
            continue;
        if (!heading)
            fprintf(out, "\n%5s  %-16s%10s%12s%14s\n", "CPU", "idle state", "entries", "residency",
                    "of the time");
        heading = true;
        write_states(out, &s);
    }
    fputc('\n', out);
    cpu_notes_write(out, "", samples, FIGURE_POWER);
}

/* ---- JSON ---------------------------------------------------------------- */

static json_object *make_processor(struct json_doc *b, const struct run *run, uint32_t number)
{
    json_object *object = json_object_new_object(), *absent = json_object_new_object();
    struct power_value states;
    struct column column;
    struct power_state s = state_of(&run->samples, number);

    json_doc_put_number(b, object, "number", number);
    json_doc_put_bool(b, object, "online", s.p.flags & PRCB_CPU_ONLINE);
    for (size_t i = 0; (column = column_at(i)).key; i++) {
        struct power_value value = value_of(&column, &s);

        if (value.reason)
            json_doc_put_text(b, absent, column.key, value.reason);
        if (column.get == power_parked)
            json_doc_put_bool(b, object, column.key, value.value != 0);
        else
            json_doc_put_member(b, object, column.key, value.value, !value.reason);
    }
    json_doc_put_text(b, object, "performance_source", power_performance_source(&s));
    states = power_levels(&s);
    if (states.reason) {
        json_doc_put_null(b, object, "idle_states");
        json_doc_put_text(b, absent, "idle_states", states.reason);
    } else {
        json_doc_put(b, object, "idle_states", cpu_json_states(b, &s.p));
    }
    json_doc_put(b, object, "absent", absent);
    return object;
}

static json_object *make_image(struct json_doc *b, const struct run *run, uint32_t number)
{
    json_object *object = json_object_new_object();
    struct power_image image;
    struct power_state s = state_of(&run->samples, number);

    json_doc_put_number(b, object, "number", number);
    json_doc_put_bool(b, object, "online", s.p.flags & PRCB_CPU_ONLINE);
    if (power_image_make(run->layout, &s, &image)) {
        b->failed = true;
        return object;
    }
    json_doc_put(b, object, "members", power_image_json(b, &image));
    json_doc_put(b, object, "bytes", json_doc_hex(image.bytes, image.length));
    power_image_deinit(&image);
    return object;
}

static void put_layout(struct json_doc *b, json_object *top, const struct prcb_layout *layout)
{
    struct prcb_layout_version version = {.size = sizeof(version)};

    prcb_layout_version(layout, &version);
    json_doc_put_text(b, top, "struct", prcb_layout_name(layout));
    json_doc_put_text(b, top, "version", version.name);
    json_doc_put_text(b, top, "arch", prcb_arch_name(prcb_layout_arch(layout)));
    json_doc_put_number(b, top, "size", prcb_layout_size(layout));
    json_doc_put_text(b, top, "source", prcb_layout_source(layout));
    if (*prcb_layout_note(layout))
        json_doc_put_text(b, top, "note", prcb_layout_note(layout));
}

static int write_json(struct run *run)
{
    const struct cpu_samples *samples = &run->samples;
    json_object *top = json_object_new_object(), *processors = json_object_new_array();
    struct json_doc b = {0};

    if (run->layout)
        put_layout(&b, top, run->layout);
    json_doc_put_text(&b, top, "tier", prcb_tier_name(prcb_processors_tier(samples->view)));
    json_doc_put_text(&b, top, "tier_reason", prcb_processors_tier_reason(samples->view));
    json_doc_put_number(&b, top, "wall_ns", cpu_samples_wall(samples, CPU_SINCE_START));
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1))
        json_doc_append(&b, processors,
                        run->layout ? make_image(&b, run, i) : make_processor(&b, run, i));
    json_doc_put(&b, top, "processors", processors);
    return json_doc_write(&b, top, run->output.stream);
}

/* ---- the structure of a version ------------------------------------------ */

static void write_heading(FILE *out, const struct run *run, uint32_t number)
{
    struct prcb_layout_version version = {.size = sizeof(version)};
    char time[FORMAT_CELL];

    prcb_layout_version(run->layout, &version);
    format_time(cpu_samples_wall(&run->samples, CPU_SINCE_START), time, sizeof(time));
    fprintf(out,
            "%sprocessor %" PRIu32 ", %s tier, over %s: " STRUCTURE ", %s (%s), %s, 0x%X bytes%s\n",
            number == cpu_samples_next(&run->samples, 0) ? "" : "\n", number,
            prcb_tier_name(prcb_processors_tier(run->samples.view)), time, version.name,
            version.release, prcb_arch_name(prcb_layout_arch(run->layout)),
            prcb_layout_size(run->layout),
            strcmp(prcb_layout_source(run->layout), "inferred") ? "" : ", inferred");
}

static int write_images(struct run *run)
{
    const struct cpu_samples *samples = &run->samples;
    FILE *out = run->output.stream;

    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        struct power_image image;
        struct power_state s = state_of(samples, i);

        if (power_image_make(run->layout, &s, &image))
            return -ENOMEM;
        if (run->raw) {
            fwrite(image.bytes, 1, image.length, out);
        } else {
            write_heading(out, run, i);
            power_image_print(out, &image);
        }
        power_image_deinit(&image);
    }
    return 0;
}

/* ---- the course of a run ------------------------------------------------- */

static int write_all(struct run *run)
{
    int result = 0;

    if (run->json)
        result = write_json(run);
    else if (run->layout)
        result = write_images(run);
    else
        write_table(run);
    return result ? cli_error(run->command, "%s", strerror(-result)) : CLI_OK;
}

static int run_opened(struct run *run)
{
    int status = cli_open_output(run->command, NULL, &run->output);
    struct prcb_error err;

    if (status != CLI_OK)
        return status;
    stat_wait_until(&run->wait, run->samples.start_ns + run->interval_ns);
    if (cpu_samples_take(&run->samples, &err))
        return cli_error(run->command, "%s", err.text);
    status = write_all(run);
    return cli_close_output(run->command, &run->output, status);
}

static int run_measuring(struct run *run)
{
    int result = stat_wait_init(&run->wait), status;

    if (result)
        return cli_error(run->command, "pipe: %s", strerror(-result));
    status = cpu_samples_open(run->command, &run->choice, &run->samples);
    if (status == CLI_OK) {
        status = run_opened(run);
        cpu_samples_close(&run->samples);
    }
    stat_wait_deinit(&run->wait);
    return status;
}

static int run_power(const struct cli_command *self, int argc, char **argv)
{
    struct run run = {.command = self, .arch = PRCB_ARCH_X64, .interval_ns = DEFAULT_INTERVAL_NS};
    int status;

    if (parse(&run, argc, argv, &status) != CLI_OK)
        return status;
    status = run.version ? find_layout(&run) : CLI_OK;
    if (status == CLI_OK)
        status = run_measuring(&run);
    prcb_layout_close(run.layout);
    return status;
}

extern const struct cli_command cmd_power;
const struct cli_command cmd_power = {
    .name = "power",
    .synopsis = "[options] [INTERVAL]",
    .summary = "idle states, performance, throttle of each processor; as NT has them, too",
    .description =
        "Says of each processor, over INTERVAL seconds (one if it is not given), how long it was\n"
        "idle and in which states, what performance it delivered, what limits it, and whether it\n"
        "is parked. With --as VERSION the same as bytes or members of the PROCESSOR_POWER_STATE\n"
        "of that version of Windows; members that Linux cannot fill are absent, with the reason.",
    .options = options,
    .examples = "  prcb power\n"
                "  prcb power 10\n"
                "  prcb power -C 0 --as \"Windows 11 22H2\"\n"
                "  prcb power -C 0 --as 6.1 --arch x86 --raw > state\n"
                "  prcb layout PROCESSOR_POWER_STATE --version 6.1 --arch x86 --decode state\n",
    .run = run_power,
};
