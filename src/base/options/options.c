/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "near.h"
#include "number.h"
#include "text.h"

/* The kinds of words that next() finds. */
enum { PARSE_ERROR = -2, PARSE_HELP, PARSE_END, PARSE_OPTION, PARSE_WORD };

#define HELP_AT      28 /* column at which what an option does begins */
#define HELP_COLUMNS 80

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

/* Returns how many bytes of the text fit into the columns: to the last blank, or the first word. */
static size_t fitting(const char *text, size_t columns)
{
    size_t end = strcspn(text, " \n"), fits = end;

    while (end && text[end] && text[end + 1] != '\n' && end <= columns) {
        fits = end;
        end += 1 + strcspn(text + end + 1, " \n");
    }
    return end <= columns ? end : fits;
}

/* Prints a text in lines of at most 80 columns, all but the first from column `at` on. "\n" is a
 * blank, an empty line stays one. */
static void print_wrapped(const char *text, int at)
{
    for (int indent = 0; *text; indent = at) {
        size_t width = fitting(text, (size_t)(HELP_COLUMNS - at));

        printf("%*s", width ? indent : 0, "");
        for (size_t i = 0; i < width; i++)
            putchar(text[i] == '\n' ? ' ' : text[i]);
        putchar('\n');
        text += width + (text[width] != '\0');
    }
}

static void print_option(const struct cli_option *option)
{
    char head[64];
    int length;

    length = option->letter ? snprintf(head, sizeof(head), "  -%c, ", option->letter)
                            : snprintf(head, sizeof(head), "      ");
    snprintf(head + length, sizeof(head) - (size_t)length, "--%s%s%s", option->name,
             option->arg ? " " : "", option->arg ? option->arg : "");
    if (strlen(head) + 2 > HELP_AT)
        printf("%s\n%*s", head, HELP_AT, "");
    else
        printf("%-*s", HELP_AT, head);
    print_wrapped(option->help, HELP_AT);
}

static void print_help(const struct cli_command *command)
{
    const struct cli_option *option;

    printf("usage: %s%s%s %s\n\n", program(command), between(command), name(command),
           command->synopsis);
    print_wrapped(command->description, 0);
    printf("\noptions:\n");
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

static int option_error(struct cli_parser *parser, const char *what, const char *text,
                        const char *perhaps)
{
    const struct cli_command *command = parser->command;

    cli_usage_error(command, "%s '%s'%s; see %s%s%s --help", what, text, perhaps, program(command),
                    between(command), name(command));
    return PARSE_ERROR;
}

static int unknown_option(struct cli_parser *parser, const char *word)
{
    const struct cli_option *option = parser->command->options;
    struct near near = {.count = 0};
    char perhaps[192], typed[64];

    snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (; option && option->name; option++)
        near_offer(&near, typed, option->name);
    near_offer(&near, typed, help_option.name);
    return option_error(parser, "unknown option", word, near_text(&near, perhaps, sizeof(perhaps)));
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
            return option_error(parser, "an argument is missing behind", shown, "");
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
        return unknown_option(parser, word);
    if (equal && !option->arg)
        return option_error(parser, "no argument goes with", word, "");
    return take_argument(parser, option, equal ? equal + 1 : NULL, word);
}

static int next_short(struct cli_parser *parser, const char *word)
{
    char shown[3] = {'-', word[parser->cluster], '\0'};
    const struct cli_option *option = find_option(parser->command, NULL, 0, shown[1]);
    const char *rest = word + parser->cluster + 1;

    if (!option)
        return option_error(parser, "unknown option", shown, "");
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

/* ---- options as their rows say ---- */

const char *cli_shown(const struct cli_option *option, char *ret)
{
    if (option->letter)
        snprintf(ret, CLI_SHOWN, "-%c", option->letter);
    else
        snprintf(ret, CLI_SHOWN, "--%s", option->name);
    return ret;
}

int cli_parse_number(const struct cli_parser *parser, uint64_t *ret)
{
    const struct cli_option *option = parser->option;
    int result = number_parse(parser->value, option->min, option->max, ret);
    char name[CLI_SHOWN];

    if (result)
        return cli_usage_error(parser->command,
                               "%s '%s': must be a number from %" PRIu64 " to %" PRIu64,
                               cli_shown(option, name), parser->value, option->min, option->max);
    return CLI_OK;
}

static int take_option(struct cli_parser *parser, void *target)
{
    const struct cli_option *option = parser->option;
    const struct cli_command *command = parser->command;
    const char *value = parser->value;
    void *at = (char *)target + option->at;
    char name[CLI_SHOWN];

    if (option->take)
        return option->take(parser, at);
    cli_shown(option, name);
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
        break;
    }
    return cli_parse_number(parser, at);
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
