/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb power` shows the power state of each processor, and the same as a version of Windows has
 * it in its PROCESSOR_POWER_STATE.
 */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu_samples.h"
#include "layout_symbols.h"
#include "output.h"
#include "power_report.h"
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

/* ---- the course of a run ------------------------------------------------- */

static int write_all(struct run *run)
{
    int result = 0;

    if (run->json)
        result = power_json_write(run->output.stream, &run->samples, run->layout);
    else if (run->layout)
        result = power_images_write(run->output.stream, &run->samples, run->layout, run->raw);
    else
        power_table_write(run->output.stream, &run->samples);
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
    .summary = "idle states, performance, throttle of each processor",
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
