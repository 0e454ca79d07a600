/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Kinds of arguments that prcbd, which begins as root, has none of: it is linked without them.
 */
#include "options.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "comm.h"
#include "number.h"
#include "pid_ns.h"

#define YEAR_NS (366ull * 86400 * 1000000000)

int cli_parse_seconds(const char *text, uint64_t *ret_ns)
{
    uint64_t ns = 0, unit = 1000000000;
    const char *at = text;

    if (!isdigit((unsigned char)*at) && *at != '.')
        return -EINVAL;
    for (; isdigit((unsigned char)*at); at++) {
        ns = ns * 10 + (uint64_t)(*at - '0') * 1000000000;
        if (ns > UINT64_MAX / 100)
            return -ERANGE;
    }
    if (*at == '.') {
        if (!isdigit((unsigned char)at[1]))
            return -EINVAL;
        for (at++; isdigit((unsigned char)*at); at++) {
            unit /= 10;
            ns += (uint64_t)(*at - '0') * unit;
        }
    }
    if (*at)
        return -EINVAL;
    *ret_ns = ns;
    return 0;
}

int cli_take_seconds(struct cli_parser *parser, void *target)
{
    char shown[CLI_SHOWN];
    uint64_t *ret = target;

    if (!cli_parse_seconds(parser->value, ret) && *ret && *ret <= YEAR_NS)
        return CLI_OK;
    return cli_usage_error(parser->command,
                           "%s '%s': must be a number of seconds above 0 and below a year",
                           cli_shown(parser->option, shown), parser->value);
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
