/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the commands of `prcb` share: the command table's row, options as rows,
 * messages. A command is one file, cmd_NAME.c, with one struct cli_command.
 */
#ifndef PRCB_CLI_H
#define PRCB_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "number.h"
#include "output.h"

/* Exit codes, as perf and the shell have them. */
#define CLI_OK          0
#define CLI_FAILED      1 /* the work could not be done */
#define CLI_USAGE       2 /* the command line is wrong */
#define CLI_CANNOT_EXEC 126
#define CLI_NOT_FOUND   127
/* a child ended by signal N: 128 + N */

struct cli_parser;

/* What an option's argument is, and what is found at its place. */
enum cli_kind {
    CLI_FLAG,    /* bool: true */
    CLI_TEXT,    /* const char *; with .what it may not be empty, and .what says what then is */
    CLI_NUMBER,  /* uint64_t: from .min to .max */
    CLI_SECONDS, /* uint64_t, nanoseconds: above 0, below a year */
    CLI_IDS,     /* struct cli_ids: numbers of .what, added */
    CLI_TIER,    /* enum prcb_tier: up to .max (0: any) */
    CLI_FORM,    /* struct cli_form: becomes .min; there is one form of output */
    CLI_VALUES,  /* the same, and the argument separates values */
    CLI_TAKE,    /* .take looks at parser->value: CLI_OK or a status, after the error */
};

/* One option: parsing, --help and shell completion all come from the row. */
struct cli_option {
    char letter;      /* 0: long form only */
    const char *name; /* long form, without the dashes; NULL ends the table */
    const char *arg;  /* name of its argument in the help; NULL: takes none */
    const char *help; /* one line; "\n" starts a continuation line */
    int id;           /* what cli_next returns: by habit the letter, or CLI_LONG + n; 0: CLI_ROW */
    enum cli_kind kind;
    size_t at; /* in the structure that cli_take_all fills */
    uint64_t min, max;
    const char *what;
    int (*take)(struct cli_parser *parser, void *target); /* target: what lies at `at` */
    const char *choices; /* for completion, blanks between; @pid, @tid, @cpu or @folder for those */
};
#define CLI_LONG 256

/* The form of output that was chosen. */
struct cli_form {
    uint64_t number;                 /* 0: the default */
    const struct cli_option *option; /* that chose it */
    const char *separator;           /* CLI_VALUES */
};

struct cli_command {
    const char *name;
    const char *synopsis;             /* after "prcb NAME " */
    const char *summary;              /* one line, for `prcb --help` */
    const char *description;          /* a paragraph or two, for `prcb NAME --help` */
    const struct cli_option *options; /* --help is added to every command */
    const char *examples;             /* lines, for the end of the help */
    int (*run)(const struct cli_command *self, int argc, char **argv);
};

/* Walks the options of a command line. Usage:
 *
 *     struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
 *     while ((id = cli_next(&parser)) > 0)
 *         switch (id) { case 'p': pids = parser.value; ... }
 *     if (id < 0)
 *         return cli_parse_result(id);    // help was printed, or the error was
 *     // argv[parser.index] is the first argument that is no option
 *
 * Options end at the first argument that is none, or behind "--" (then
 * parser.dashes is set), so a command line may follow. With .words, options and
 * words come in any order: each word is returned as CLI_WORD, and behind "--"
 * all are words. */
struct cli_parser {
    const struct cli_command *command;
    int argc;
    char **argv;
    int index;  /* next argument; 0 at the start means 1 */
    bool words; /* return them too */
    int (*take_word)(struct cli_parser *parser, void *target); /* of cli_take_all: .words */
    const char *value;               /* of the option just returned, or the word */
    bool dashes;                     /* "--" was seen */
    int cluster;                     /* position inside "-abc"; private */
    const struct cli_option *option; /* the option just returned */
};
int cli_next(struct cli_parser *parser);
#define CLI_WORD        (CLI_LONG - 1)
#define CLI_ROW         (CLI_LONG - 2)
#define CLI_PARSE_HELP  (-1)
#define CLI_PARSE_ERROR (-2)
int cli_parse_result(int id);
/* Takes all options as their rows say, into *target, and words by take_word. CLI_OK, or -1 and
 * *ret_status is the exit code: help was printed, or the error was. */
int cli_take_all(struct cli_parser *parser, void *target, int *ret_status);

/* What prcb_load_log says, on standard error; nothing for NULL. For -v. */
void cli_write_load_log(const char *log);

/* "prcb NAME: text" on standard error; returns CLI_USAGE or CLI_FAILED. */
int cli_usage_error(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int cli_error(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_warn(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Seconds with an optional fraction ("0.5"), as nanoseconds. 0 or -EINVAL / -ERANGE, *ret_ns
 * unchanged on failure. */
int cli_parse_seconds(const char *text, uint64_t *ret_ns);

/* The argument of the option just returned, by its row's bounds; for a .take. */
int cli_parse_number(const struct cli_parser *parser, uint64_t *ret);

/* "12,34": process or thread numbers; the array is the caller's to free. */
struct cli_ids {
    pid_t *ids;
    size_t count;
    bool named; /* some were found by a name, and may have ended since */
};

/* Opens a command's output, a file or (NULL) standard output: CLI_OK, or CLI_FAILED after the
 * error. */
int cli_open_output(const struct cli_command *command, const char *path, struct output *ret);
/* Closes it. The exit code: status; as of a command that SIGPIPE ended where the reader had seen
 * enough; or CLI_FAILED, after the error, where it could not be written. */
int cli_close_output(const struct cli_command *command, struct output *output, int status);

/* The exit code that a command's end means for us: its own, or 128 + the signal that ended
 * it, but for the one with which we ended it early. */
int cli_child_status(int wait_status, bool ended_early);
/* The exit code that tells of a command that could not be started (-errno of prcb_spawn):
 * 127 not found, 126 not executable, else 1. */
int cli_exec_status(int code);

/* Lets this program, and what it starts, have as many open files as it may ask for. */
void cli_allow_descriptors(void);

/* True when the stream is a terminal and NO_COLOR is not set. */
bool cli_colour(int fd);

/* The commands, NULL-terminated; commands.c. */
extern const struct cli_command *const cli_commands[];

#endif
