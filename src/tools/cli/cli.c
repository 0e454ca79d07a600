/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "first_line.h"
#include "pid_ns.h"
#include "text.h"

static const struct cli_option help_option = {'h', "help", NULL, "show this help", 'h'};

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

    printf("usage: prcb %s %s\n\n%s\n\noptions:\n", command->name, command->synopsis,
           command->description);
    for (option = command->options; option && option->name; option++)
        print_option(option);
    print_option(&help_option);
    if (command->examples)
        printf("\nexamples:\n%s", command->examples);
    printf("\nmanual: prcb-%s(1)\n", command->name);
}

static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t length, char letter)
{
    const struct cli_option *option;

    for (option = command->options; option && option->name; option++) {
        if (letter ? option->letter == letter
                   : strlen(option->name) == length && !strncmp(option->name, name, length))
            return option;
    }
    if (letter ? letter == 'h' : length == 4 && !strncmp(name, "help", 4))
        return &help_option;
    return NULL;
}

static int option_error(struct cli_parser *parser, const char *what, const char *text)
{
    cli_usage_error(parser->command, "%s '%s'; see prcb %s --help", what, text,
                    parser->command->name);
    return CLI_PARSE_ERROR;
}

/* Takes the option's argument: the rest of the word, or the next word. */
static int take_argument(struct cli_parser *parser, const struct cli_option *option,
                         const char *rest, const char *shown)
{
    parser->value = NULL;
    if (option == &help_option) {
        print_help(parser->command);
        return CLI_PARSE_HELP;
    }
    parser->option = option;
    if (!option->arg)
        return option->id ? option->id : CLI_ROW;
    parser->value = rest;
    if (!parser->value) {
        if (parser->index >= parser->argc)
            return option_error(parser, "an argument is missing behind", shown);
        parser->value = parser->argv[parser->index++];
    }
    return option->id ? option->id : CLI_ROW;
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
        return 0;
    parser->index++;
    parser->value = word;
    return CLI_WORD;
}

int cli_next(struct cli_parser *parser)
{
    const char *word;

    if (!parser->index)
        parser->index = 1;
    if (parser->index >= parser->argc)
        return 0;
    word = parser->argv[parser->index];
    if (parser->cluster)
        return next_short(parser, word);
    if (!parser->dashes && !strcmp(word, "--")) {
        parser->index++;
        parser->dashes = true;
        return parser->words ? cli_next(parser) : 0;
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

int cli_parse_result(int id)
{
    return id == CLI_PARSE_HELP ? CLI_OK : CLI_USAGE;
}

static void say(const struct cli_command *command, const char *format, va_list args)
{
    char *text;

    fflush(stdout);
    if (command)
        fprintf(stderr, "prcb %s: ", command->name);
    else
        fprintf(stderr, "prcb: ");
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

void cli_write_load_log(const char *log)
{
    if (log)
        fprintf(stderr, "the verifier's last lines:\n%s", log);
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

static int add_id(struct cli_ids *ids, pid_t id)
{
    pid_t *grown = realloc(ids->ids, (ids->count + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    ids->ids = grown;
    ids->ids[ids->count++] = id;
    return 0;
}

/* Processes whose name, as ps and pgrep have it, is the word; not this one. How many, or -errno. */
static int add_named(const char *word, struct cli_ids *ids, struct prcb_error *err)
{
    int found = check_proc_numbers(err);
    DIR *folder = found ? NULL : opendir("/proc");
    struct dirent *entry;

    while (folder && found >= 0 && (entry = readdir(folder))) {
        char path[300], name[32];
        uint64_t id;

        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        if (number_parse(entry->d_name, 1, INT_MAX, &id) || (pid_t)id == getpid() ||
            !first_line(path, name, sizeof(name)))
            continue;
        /* The kernel keeps 15 bytes of it. */
        if (!strncmp(name, word, 15) && (strlen(word) <= 15 ? !name[strlen(word)] : true))
            found = add_id(ids, (pid_t)id) ? -ENOMEM : found + 1;
    }
    if (folder)
        closedir(folder);
    return found;
}

/* Numbers, with commas, blanks or line ends between them, as pgrep prints them; of processes names
 * too. */
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
        uint64_t id;
        bool is_number = !number_parse(word, 1, INT_MAX, &id);

        if (is_number)
            found = add_id(ids, (pid_t)id) ? -ENOMEM : 1;
        else
            found =
                names && word[strspn(word, "-+.0123456789")] ? add_named(word, ids, &err) : -EINVAL;
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
        else
            ids->named |= !is_number;
    }
    free(copy);
    return status;
}

/* ---- options as their rows say ---- */

#define YEAR_NS (366ull * 86400 * 1000000000)

#define SHOWN 32

/* "-j", or "--json" where there is no letter. */
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

    if (result == -ERANGE)
        return cli_usage_error(parser->command, "%s '%s': must be from %" PRIu64 " to %" PRIu64,
                               shown(option, name), parser->value, option->min, option->max);
    if (result)
        return cli_usage_error(parser->command, "%s '%s': not a number", shown(option, name),
                               parser->value);
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
    case CLI_TEXT:
        *(const char **)at = value;
        return *value || !option->what ? CLI_OK
                                       : cli_usage_error(command, "%s: %s", name, option->what);
    case CLI_NUMBER:
        return cli_parse_number(parser, at);
    case CLI_SECONDS:
        if (cli_parse_seconds(value, at) || !*(uint64_t *)at || *(uint64_t *)at > YEAR_NS)
            return cli_usage_error(
                command, "%s '%s': not a number of seconds above 0 and below a year", name, value);
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

int cli_take_all(struct cli_parser *parser, void *target, int *ret_status)
{
    int id;

    parser->words = parser->take_word != NULL;
    *ret_status = CLI_OK;
    while (*ret_status == CLI_OK && (id = cli_next(parser)) != 0) {
        if (id < 0) {
            *ret_status = cli_parse_result(id);
            return -1;
        }
        *ret_status =
            id == CLI_WORD ? parser->take_word(parser, target) : take_option(parser, target);
    }
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

static int output_error(const struct cli_command *command, const char *path, int code)
{
    return cli_error(command, "cannot write to %s: %s", path ? path : "standard output",
                     strerror(-code));
}

int cli_open_output(const struct cli_command *command, const char *path, struct output *ret)
{
    int result = output_open(ret, path);

    return result ? output_error(command, path, result) : CLI_OK;
}

int cli_close_output(const struct cli_command *command, struct output *output, int status)
{
    int result = output_close(output);

    if (result == -EPIPE)
        return 128 + SIGPIPE;
    return result ? output_error(command, output->path, result) : status;
}

int cli_child_status(int wait_status, bool ended_early)
{
    int number;

    if (!WIFSIGNALED(wait_status))
        return WEXITSTATUS(wait_status);
    number = WTERMSIG(wait_status);
    return ended_early && (number == SIGTERM || number == SIGKILL) ? CLI_OK : 128 + number;
}

int cli_exec_status(int code)
{
    static const int cannot[] = {EACCES, EPERM, ENOEXEC, ENOTDIR, EISDIR,
                                 ELOOP,  E2BIG, ETXTBSY, ELIBBAD, ENAMETOOLONG};

    if (code == -ENOENT)
        return CLI_NOT_FOUND;
    for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++) {
        if (code == -cannot[i])
            return CLI_CANNOT_EXEC;
    }
    return CLI_FAILED;
}

void cli_allow_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

bool cli_colour(int fd)
{
    const char *no = getenv("NO_COLOR");

    return isatty(fd) && !(no && *no);
}
