/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "comm.h"
#include "number.h"
#include "pid_ns.h"
#include "text.h"

/* The kinds of words that next() finds. */
enum { PARSE_ERROR = -2, PARSE_HELP, PARSE_END, PARSE_OPTION, PARSE_WORD };

static const struct cli_option help_option = {'h', "help", NULL, "show this help"};
static const struct cli_option version_option = {'V', "version", NULL, "show the version"};

static const char *program(const struct cli_command *command)
{
    return command && command->program ? command->program : "prcb";
}

/* Returns what lies between the program's name and that of its command. */
static const char *between(const struct cli_command *command)
{
    return command && command->name ? " " : "";
}

static const char *name(const struct cli_command *command)
{
    return command && command->name ? command->name : "";
}

static void print_option(const struct cli_option *option)
{
    char head[64];
    const char *line = option->help;
    int length;

    length = option->letter ? snprintf(head, sizeof(head), "  -%c, ", option->letter)
                            : snprintf(head, sizeof(head), "      ");
    snprintf(head + length, sizeof(head) - (size_t)length, "--%s%s%s", option->name,
             option->arg ? " " : "", option->arg ? option->arg : "");
    while (line) {
        const char *end = strchr(line, '\n');
        int width = end ? (int)(end - line) : (int)strlen(line);

        printf("%-28s%s%.*s\n", head, strlen(head) >= 28 ? "  " : "", width, line);
        head[0] = '\0';
        line = end ? end + 1 : NULL;
    }
}

static void print_help(const struct cli_command *command)
{
    const struct cli_option *option;

    printf("usage: %s%s%s %s\n\n%s\n\noptions:\n", program(command), between(command),
           name(command), command->synopsis, command->description);
    for (option = command->options; option && option->name; option++)
        print_option(option);
    print_option(&help_option);
    if (command->program)
        print_option(&version_option);
    if (command->examples)
        printf("\nexamples:\n%s", command->examples);
    if (command->manual)
        printf("\nmanual: %s\n", command->manual);
    else
        printf("\nmanual: prcb-%s(1)\n", command->name);
}

static bool is_called(const struct cli_option *option, const char *name, size_t length, char letter)
{
    return letter ? option->letter == letter
                  : strlen(option->name) == length && !strncmp(option->name, name, length);
}

static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t length, char letter)
{
    const struct cli_option *option;

    for (option = command->options; option && option->name; option++) {
        if (is_called(option, name, length, letter))
            return option;
    }
    if (is_called(&help_option, name, length, letter))
        return &help_option;
    if (command->program && is_called(&version_option, name, length, letter))
        return &version_option;
    return NULL;
}

static int option_error(struct cli_parser *parser, const char *what, const char *text)
{
    const struct cli_command *command = parser->command;

    cli_usage_error(command, "%s '%s'; see %s%s%s --help", what, text, program(command),
                    between(command), name(command));
    return PARSE_ERROR;
}

/* Takes the option's argument: the rest of the word, or the next word. */
static int take_argument(struct cli_parser *parser, const struct cli_option *option,
                         const char *rest, const char *shown)
{
    parser->value = NULL;
    if (option == &help_option) {
        print_help(parser->command);
        return PARSE_HELP;
    }
    if (option == &version_option) {
        printf("%s %s\n", program(parser->command), PRCB_VERSION);
        return PARSE_HELP;
    }
    parser->option = option;
    if (!option->arg)
        return PARSE_OPTION;
    parser->value = rest;
    if (!parser->value) {
        if (parser->index >= parser->argc)
            return option_error(parser, "an argument is missing behind", shown);
        parser->value = parser->argv[parser->index++];
    }
    return PARSE_OPTION;
}

static int next_long(struct cli_parser *parser, const char *word)
{
    const char *equal = strchr(word, '=');
    size_t length = equal ? (size_t)(equal - word) : strlen(word);
    const struct cli_option *option = find_option(parser->command, word + 2, length - 2, 0);

    if (!option)
        return option_error(parser, "unknown option", word);
    if (equal && !option->arg)
        return option_error(parser, "no argument goes with", word);
    return take_argument(parser, option, equal ? equal + 1 : NULL, word);
}

static int next_short(struct cli_parser *parser, const char *word)
{
    char shown[3] = {'-', word[parser->cluster], '\0'};
    const struct cli_option *option = find_option(parser->command, NULL, 0, shown[1]);
    const char *rest = word + parser->cluster + 1;

    if (!option)
        return option_error(parser, "unknown option", shown);
    if (option->arg || !*rest) {
        parser->cluster = 0;
        parser->index++;
        return take_argument(parser, option, *rest ? rest : NULL, shown);
    }
    parser->cluster++;
    return take_argument(parser, option, NULL, shown);
}

static int next_word(struct cli_parser *parser, const char *word)
{
    if (!parser->words)
        return PARSE_END;
    parser->index++;
    parser->value = word;
    return PARSE_WORD;
}

static int next(struct cli_parser *parser)
{
    const char *word;

    if (!parser->index)
        parser->index = 1;
    if (parser->index >= parser->argc)
        return PARSE_END;
    word = parser->argv[parser->index];
    if (parser->cluster)
        return next_short(parser, word);
    if (!parser->dashes && !strcmp(word, "--")) {
        parser->index++;
        parser->dashes = true;
        return parser->words ? next(parser) : PARSE_END;
    }
    if (parser->dashes || word[0] != '-' || !word[1])
        return next_word(parser, word);
    if (word[1] == '-') {
        parser->index++;
        return next_long(parser, word);
    }
    parser->cluster = 1;
    return next_short(parser, word);
}

static void say(const struct cli_command *command, const char *format, va_list args)
{
    char *text;

    fflush(stdout);
    fprintf(stderr, "%s%s%s: ", program(command), between(command), name(command));
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    text_print(stderr, TEXT_ESCAPES, text ? text : "out of memory");
    fputc('\n', stderr);
    free(text);
}

int cli_usage_error(const struct cli_command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(command, format, args);
    va_end(args);
    return CLI_USAGE;
}

int cli_error(const struct cli_command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(command, format, args);
    va_end(args);
    return CLI_FAILED;
}

void cli_warn(const struct cli_command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(command, format, args);
    va_end(args);
}

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

static int parse_tier(const char *text, enum prcb_tier *ret)
{
    if (!strcmp(text, "daemon"))
        *ret = PRCB_TIER_DAEMON;
    else if (!strcmp(text, "bpf"))
        *ret = PRCB_TIER_BPF;
    else if (!strcmp(text, "perf"))
        *ret = PRCB_TIER_PERF;
    else
        return -EINVAL;
    return 0;
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

/* Takes numbers, with commas, blanks or line ends between them, as pgrep prints them; for
 * processes also names. */
static int parse_ids(const struct cli_command *command, const char *option, const char *what,
                     const char *text, struct cli_ids *ids)
{
    char *copy = strdup(text), *at = copy, *word;
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

/* ---- options as their rows say ---- */

#define YEAR_NS (366ull * 86400 * 1000000000)

#define SHOWN 32

/* Writes "-j", or "--json" if there is no letter. */
static const char *shown(const struct cli_option *option, char *ret)
{
    if (option->letter)
        snprintf(ret, SHOWN, "-%c", option->letter);
    else
        snprintf(ret, SHOWN, "--%s", option->name);
    return ret;
}

int cli_parse_number(const struct cli_parser *parser, uint64_t *ret)
{
    const struct cli_option *option = parser->option;
    int result = number_parse(parser->value, option->min, option->max, ret);
    char name[SHOWN];

    if (result)
        return cli_usage_error(parser->command,
                               "%s '%s': must be a number from %" PRIu64 " to %" PRIu64,
                               shown(option, name), parser->value, option->min, option->max);
    return CLI_OK;
}

static int take_form(struct cli_parser *parser, struct cli_form *ret)
{
    char before[SHOWN], now[SHOWN];

    if (ret->option && ret->number != parser->option->min)
        return cli_usage_error(parser->command, "%s and %s exclude each other: choose one",
                               shown(ret->option, before), shown(parser->option, now));
    ret->number = parser->option->min;
    ret->option = parser->option;
    return CLI_OK;
}

static int take_option(struct cli_parser *parser, void *target)
{
    const struct cli_option *option = parser->option;
    const struct cli_command *command = parser->command;
    const char *value = parser->value;
    void *at = (char *)target + option->at;
    char name[SHOWN];

    shown(option, name);
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)at = true;
        return CLI_OK;
    case CLI_BITS:
        *(unsigned *)at |= (unsigned)option->min;
        return CLI_OK;
    case CLI_TEXT:
        *(const char **)at = value;
        if (!*value && option->what)
            return cli_usage_error(command, "%s: %s", name, option->what);
        if (option->max && strlen(value) > option->max)
            return cli_usage_error(command,
                                   "%s '%s': is too long: at most %" PRIu64 " bytes are allowed",
                                   name, value, option->max);
        return CLI_OK;
    case CLI_NUMBER:
        return cli_parse_number(parser, at);
    case CLI_SECONDS:
        if (cli_parse_seconds(value, at) || !*(uint64_t *)at || *(uint64_t *)at > YEAR_NS)
            return cli_usage_error(command,
                                   "%s '%s': must be a number of seconds above 0 and below a year",
                                   name, value);
        return CLI_OK;
    case CLI_IDS:
        return parse_ids(command, name, option->what, value, at);
    case CLI_TIER:
        if (parse_tier(value, at) || (option->max && *(enum prcb_tier *)at > option->max))
            return cli_usage_error(command, "%s '%s': must be %sbpf or perf", name, value,
                                   option->max ? "" : "daemon, ");
        return CLI_OK;
    case CLI_VALUES:
        if (parse_separator(value, &((struct cli_form *)at)->separator))
            return cli_usage_error(
                command, "%s '%s': cannot separate values; use for instance , or ; or '\\t'", name,
                value);
        return take_form(parser, at);
    case CLI_FORM:
        return take_form(parser, at);
    case CLI_TAKE:
        break;
    }
    return option->take(parser, at);
}

/* Returns the exit code after help or the version was printed: a failure only if it could not be
 * written, unless the reader is gone. */
static int printed(const struct cli_command *command)
{
    if (!fflush(stdout) || errno == EPIPE)
        return CLI_OK;
    return cli_error(command, "cannot write to standard output: %s", strerror(errno));
}

int cli_take_all(struct cli_parser *parser, void *target, int *ret_status)
{
    int id;

    parser->words = parser->take_word != NULL;
    *ret_status = CLI_OK;
    while (*ret_status == CLI_OK && (id = next(parser)) != PARSE_END) {
        if (id < 0) {
            *ret_status = id == PARSE_HELP ? printed(parser->command) : CLI_USAGE;
            return -1;
        }
        *ret_status =
            id == PARSE_WORD ? parser->take_word(parser, target) : take_option(parser, target);
    }
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

int cli_take_options(struct cli_parser *parser, void *target, int *ret_status)
{
    const struct cli_command *command = parser->command;

    if (cli_take_all(parser, target, ret_status))
        return -1;
    if (parser->index == parser->argc)
        return CLI_OK;
    *ret_status =
        cli_usage_error(command, "'%s': %s%s%s takes no operands", parser->argv[parser->index],
                        program(command), between(command), name(command));
    return -1;
}
