/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb doctor` prints what doctor_checks.c finds, and opens a session to see which tier the
 * user really gets.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "doctor.h"
#include "json_doc.h"
#include "program_path.h"
#include "text.h"

#define FIX_SIZE (PATH_MAX + 100)

struct arguments {
    bool json, verbose;
    const char *root;
};

#define AT(member) .at = offsetof(struct arguments, member)
static const struct cli_option options[] = {
    {'j', "json", NULL, "print JSON", AT(json)},
    {'v', "verbose", NULL, "print cost and fix of available features, too", AT(verbose)},
    {0, "root", "DIR",
     "read the files below DIR instead of the machine's\n"
     "(the tier is always the machine's)",
     .kind = CLI_TEXT, AT(root), .choices = "@folder"},
    {0},
};

/* The tier that a session gets now. */
struct outcome {
    enum prcb_tier tier;                                 /* PRCB_TIER_AUTO: none at all */
    char reason[sizeof(((struct prcb_error *)0)->text)]; /* why not a better one; "": it is best */
};

static const char *state_name(enum doctor_state state)
{
    switch (state) {
    case DOCTOR_PRESENT:
        return "present";
    case DOCTOR_ABSENT:
        return "absent";
    default:
        return "unknown";
    }
}

static void try_session(struct outcome *ret)
{
    const struct prcb_options opts = {.size = sizeof(opts), .max_threads = 64};
    struct prcb_error err = {0};
    struct prcb *p;
    const char *reason;

    memset(ret, 0, sizeof(*ret));
    if (prcb_open(&opts, &p, &err)) {
        snprintf(ret->reason, sizeof(ret->reason), "%s", err.text);
        return;
    }
    ret->tier = prcb_session_tier(p);
    reason = prcb_session_tier_reason(p);
    snprintf(ret->reason, sizeof(ret->reason), "%s", reason ? reason : "");
    prcb_close(p);
}

static const char *tier_word(const struct outcome *outcome)
{
    return outcome->tier ? prcb_tier_name(outcome->tier) : "none";
}

/* Finds this program's own path, where the shell would start another one as `prcb` or none: in a
 * checkout, say. Returns false where it would start this one. */
static bool elsewhere(char *ret, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", ret, size - 1);
    char name[PATH_MAX];
    struct stat own, found;

    if (length <= 0 || stat("/proc/self/exe", &own))
        return false;
    ret[length] = '\0';
    return program_find("prcb", name) || stat(name, &found) || found.st_ino != own.st_ino ||
           found.st_dev != own.st_dev;
}

/* Returns a row's advice for this program. One of a checkout looks for its library beside itself,
 * which the loader refuses to programs with capabilities, so it is not to get any. */
static const char *fix_of(const struct doctor_check *check, char *ret, size_t size)
{
    char own[PATH_MAX];

    if (strncmp(check->fix, "sudo prcb", 9) || !elsewhere(own, sizeof(own)))
        return check->fix;
    snprintf(ret, size, "sudo %s ...; once it is installed setcap does, too: docs/install.md", own);
    return ret;
}

static void print_row(FILE *out, const struct doctor_check *check,
                      const struct doctor_result *result, bool verbose)
{
    char fix[FIX_SIZE];

    fprintf(out, "%-23s  %-7s  ", check->name, state_name(result->state));
    text_print(out, TEXT_ESCAPES, result->detail);
    fputc('\n', out);
    if (result->state == DOCTOR_PRESENT && !verbose)
        return;
    fprintf(out, "%-23s  costs: %s\n%-23s  fix:   ", "", check->cost, "");
    text_print(out, TEXT_ESCAPES, fix_of(check, fix, sizeof(fix)));
    fputc('\n', out);
}

static void print_table(FILE *out, const struct arguments *arguments, const struct outcome *outcome)
{
    struct utsname kernel;
    struct doctor_result result;

    uname(&kernel);
    fprintf(out, "prcb %s on %s %s %s\n\n", prcb_version(), kernel.sysname, kernel.release,
            kernel.machine);
    for (size_t i = 0; i < doctor_check_count; i++) {
        doctor_checks[i].look(arguments->root, &result);
        print_row(out, &doctor_checks[i], &result, arguments->verbose);
    }
    fprintf(out, "\ntier: %s%s%s\n", tier_word(outcome), outcome->reason[0] ? ": " : "",
            outcome->reason);
}

static json_object *json_row(struct json_doc *doc, const struct doctor_check *check,
                             const char *root)
{
    json_object *row = json_object_new_object();
    struct doctor_result result;
    char fix[FIX_SIZE];

    check->look(root, &result);
    json_doc_put_text(doc, row, "name", check->name);
    json_doc_put_text(doc, row, "state", state_name(result.state));
    json_doc_put_text(doc, row, "detail", result.detail);
    json_doc_put_text(doc, row, "cost", check->cost);
    json_doc_put_text(doc, row, "fix", fix_of(check, fix, sizeof(fix)));
    return row;
}

static int print_json(FILE *out, const char *root, const struct outcome *outcome)
{
    struct json_doc doc = {0};
    json_object *top = json_doc_new(&doc, JSON_DOCTOR), *rows = json_object_new_array();
    struct utsname kernel;

    uname(&kernel);
    for (size_t i = 0; i < doctor_check_count; i++)
        json_doc_append(&doc, rows, json_row(&doc, &doctor_checks[i], root));
    json_doc_put_text(&doc, top, "version", prcb_version());
    json_doc_put_text(&doc, top, "kernel", kernel.release);
    json_doc_put_text(&doc, top, "machine", kernel.machine);
    json_doc_put(&doc, top, "checks", rows);
    json_doc_put_text(&doc, top, "tier", outcome->tier ? prcb_tier_name(outcome->tier) : NULL);
    json_doc_put_text(&doc, top, "tier_reason", *outcome->reason ? outcome->reason : NULL);
    return json_doc_write_pretty(&doc, top, out);
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
    struct arguments arguments = {.root = ""};
    struct outcome outcome;
    struct output output;
    int status;

    if (cli_take_options(&parser, &arguments, &status))
        return status;
    status = cli_open_output(self, NULL, &output);
    if (status != CLI_OK)
        return status;
    try_session(&outcome);
    status = outcome.tier >= PRCB_TIER_BPF ? CLI_OK : CLI_FAILED;
    if (!arguments.json)
        print_table(output.stream, &arguments, &outcome);
    else if (print_json(output.stream, arguments.root, &outcome))
        status = cli_error(self, "out of memory");
    return cli_close_output(self, &output, status);
}

const struct cli_command cmd_doctor = {
    .name = "doctor",
    .synopsis = "[-j] [-v] [--root DIR]",
    .summary = "what this machine lacks, what that costs and how to fix it",
    .description =
        "Looks at what prcb builds on: one line each, present, absent or unknown. What is not\n"
        "present is followed by what that costs and how to fix it. The last line names the tier\n"
        "that a session gets now, found by opening one, and why no better one.\n"
        "Exit status: 0 when the daemon or the bpf tier works, 1 when not, 2 for a wrong command "
        "line.",
    .options = options,
    .examples = "  prcb doctor\n"
                "  sudo prcb doctor\n"
                "  prcb doctor -j | python3 -m json.tool\n",
    .run = run,
};
