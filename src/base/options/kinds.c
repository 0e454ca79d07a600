/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Kinds of arguments that prcbd, which begins as root, has none of: it is linked without them.
 */
#include "options.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "comm.h"
#include "number.h"
#include "pid_ns.h"

#define YEAR_NS (366ull * 86400 * 1000000000)

/* Units of durations. A bare number is of the unit that its option's argument is named after. */
static const struct {
    const char *suffix, *arg;
    uint64_t ns;
} units[] = {{"ns", NULL, 1},
             {"us", "US", 1000},
             {"ms", "MS", 1000000},
             {"s", "SEC", 1000000000},
             {"min", NULL, 60000000000},
             {"m", NULL, 60000000000},
             {"h", NULL, 3600000000000},
             {"d", "DAYS", 86400000000000}};

/* Returns the nanoseconds of a suffix; 0: it is none. */
static uint64_t unit_of(const char *suffix, uint64_t bare_ns)
{
    if (!*suffix)
        return bare_ns;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (!strcmp(units[i].suffix, suffix))
            return units[i].ns;
    }
    return 0;
}

/* A fraction has nine digits that count. */
int cli_parse_duration(const char *text, uint64_t bare_ns, uint64_t *ret_ns)
{
    size_t whole = strspn(text, "0123456789");
    size_t digits = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    uint64_t unit = unit_of(text + whole + (digits ? digits + 1 : 0), bare_ns), number = 0;
    double part = 0, place = 1;

    if (!unit || !(whole + digits))
        return -EINVAL;
    for (size_t i = 0; i < whole; i++) {
        number = number * 10 + (uint64_t)(text[i] - '0');
        if (number > UINT64_MAX / 100 / unit)
            return -ERANGE;
    }
    for (size_t i = 0; i < digits && i < 9; i++)
        part += (text[whole + 1 + i] - '0') * (place /= 10);
    *ret_ns = number * unit + (uint64_t)(part * (double)unit + 0.5);
    return 0;
}

static const char *bare_words(uint64_t ns)
{
    return ns == 1000             ? "microseconds"
           : ns == 1000000        ? "milliseconds"
           : ns == 86400000000000 ? "days"
                                  : "seconds";
}

/* Returns the largest unit of which the number is a multiple, for messages. */
static const char *shown_duration(uint64_t ns, char *ret, size_t size)
{
    for (size_t i = sizeof(units) / sizeof(*units); i-- > 0;) {
        if (units[i].arg && ns % units[i].ns == 0) {
            snprintf(ret, size, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].suffix);
            return ret;
        }
    }
    snprintf(ret, size, "%lluns", (unsigned long long)ns);
    return ret;
}

int cli_take_duration(struct cli_parser *parser, void *target)
{
    const struct cli_option *option = parser->option;
    uint64_t ns, bare = 1000000000, least = option->min ? option->min : 1;
    uint64_t most = option->max ? option->max : YEAR_NS;
    char name[CLI_SHOWN], from[32], to[32];

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        bare = units[i].arg && !strcmp(units[i].arg, option->arg) ? units[i].ns : bare;
    if (!cli_parse_duration(parser->value, bare, &ns) && ns >= least && ns <= most) {
        *(uint64_t *)target = ns;
        return CLI_OK;
    }
    return cli_usage_error(
        parser->command,
        "%s '%s': must be a time from %s to %s, such as 500ms, 10s, 5min; without "
        "a unit it is %s",
        cli_shown(option, name), parser->value, shown_duration(least, from, sizeof(from)),
        shown_duration(most, to, sizeof(to)), bare_words(bare));
}

int cli_take_tier(struct cli_parser *parser, void *target)
{
    static const char *const names[] = {
        [PRCB_TIER_DAEMON] = "daemon", [PRCB_TIER_BPF] = "bpf", [PRCB_TIER_PERF] = "perf"};
    const struct cli_option *option = parser->option;
    char shown[CLI_SHOWN];

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (names[i] && !strcmp(parser->value, names[i]) && (!option->max || i <= option->max)) {
            *(enum prcb_tier *)target = (enum prcb_tier)i;
            return CLI_OK;
        }
    }
    return cli_usage_error(parser->command, "%s '%s': must be %sbpf or perf",
                           cli_shown(option, shown), parser->value, option->max ? "" : "daemon, ");
}

/* Adds the processes whose name, as ps and pgrep have it, is the word, without this one. Returns
 * how many, or -errno. */
static int add_named(const char *word, struct cli_ids *ids, struct prcb_error *err)
{
    int found = check_proc_numbers(err);
    DIR *folder = found ? NULL : opendir("/proc");
    struct dirent *entry;

    while (folder && found >= 0 && (entry = readdir(folder))) {
        char name[32];
        uint64_t id;

        if (number_parse(entry->d_name, 1, INT_MAX, &id) || (pid_t)id == getpid() ||
            !comm_read((pid_t)id, (pid_t)id, name, sizeof(name)))
            continue;
        /* The kernel keeps 15 bytes of it. */
        if (!strncmp(name, word, 15) && (strlen(word) <= 15 ? !name[strlen(word)] : true))
            found = array_append(ids->ids, ids->count, (pid_t)id) ? -ENOMEM : found + 1;
    }
    if (folder)
        closedir(folder);
    return found;
}

int cli_add_process(const char *word, struct cli_ids *ids, struct prcb_error *err)
{
    uint64_t id;
    int found;

    if (!number_parse(word, 1, INT_MAX, &id))
        return array_append(ids->ids, ids->count, (pid_t)id) ? -ENOMEM : 1;
    found = word[strspn(word, "-+.0123456789")] ? add_named(word, ids, err) : -EINVAL;
    ids->named |= found > 0;
    return found;
}

/* Numbers have commas, blanks or line ends between them, as pgrep prints them. */
int cli_take_ids(struct cli_parser *parser, void *target)
{
    const struct cli_command *command = parser->command;
    const char *what = parser->option->what, *text = parser->value;
    char *copy = strdup(text), *at = copy, *word, shown[CLI_SHOWN];
    const char *option = cli_shown(parser->option, shown);
    struct cli_ids *ids = target;
    bool names = !strcmp(what, "process");
    struct prcb_error err;
    int status = CLI_OK, found;

    if (!copy)
        return cli_error(command, "out of memory");
    while (*copy && strchr("\n ", copy[strlen(copy) - 1]))
        copy[strlen(copy) - 1] = '\0';
    while (status == CLI_OK && (word = strsep(&at, ", \n"))) {
        found =
            names || !word[strspn(word, "0123456789")] ? cli_add_process(word, ids, &err) : -EINVAL;
        if (found == -ENOMEM)
            status = cli_error(command, "out of memory");
        else if (found == -EINVAL)
            status = cli_usage_error(command, "%s '%s': '%s' is not a %s number%s", option, text,
                                     word, what, names ? " or name" : "");
        else if (found < 0)
            status = cli_error(command, "%s '%s': %s", option, text, err.text);
        else if (!found)
            status =
                cli_usage_error(command, "%s '%s': no process is called '%s'", option, text, word);
    }
    free(copy);
    return status;
}

int cli_take_form(struct cli_parser *parser, void *target)
{
    struct cli_form *ret = target;
    char before[CLI_SHOWN], now[CLI_SHOWN];

    if (ret->option && ret->number != parser->option->min)
        return cli_usage_error(parser->command, "%s and %s exclude each other: choose one",
                               cli_shown(ret->option, before), cli_shown(parser->option, now));
    ret->number = parser->option->min;
    ret->option = parser->option;
    return CLI_OK;
}

static int parse_separator(const char *text, const char **ret)
{
    if (!strcmp(text, "\\t"))
        text = "\t";
    if (!*text)
        return -EINVAL;
    for (const char *at = text; *at; at++) {
        if (isalnum((unsigned char)*at) || strchr("\"\n\r-_.", *at))
            return -EINVAL;
    }
    *ret = text;
    return 0;
}

int cli_take_values(struct cli_parser *parser, void *target)
{
    char shown[CLI_SHOWN];

    if (parse_separator(parser->value, &((struct cli_form *)target)->separator))
        return cli_usage_error(parser->command,
                               "%s '%s': cannot separate values; use for instance , or ; or '\\t'",
                               cli_shown(parser->option, shown), parser->value);
    return cli_take_form(parser, target);
}
