/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Command lines of all programs: options as rows, from which parsing, --help, completion and the
 * comparison with the manual come; and messages about them. A message names what was given, the
 * problem and the remedy.
 */
#ifndef PRCB_BASE_OPTIONS_H
#define PRCB_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/error.h>

/* Exit codes, as perf and the shell have them. */
#define CLI_OK     0
#define CLI_FAILED 1 /* the work could not be done */
#define CLI_USAGE  2 /* the command line is wrong */

struct cli_parser;

/* The type of an option's argument, and of the variable at its place; others have a .take. */
enum cli_kind {
    CLI_FLAG,   /* bool: true */
    CLI_BITS,   /* unsigned: the bits .min are set */
    CLI_TEXT,   /* const char *: at most .max bytes (0: any); with .what it may not be empty, and
                   .what says what then is */
    CLI_NUMBER, /* uint64_t: from .min to .max */
};

/* One option: parsing, --help and shell completion all come from the row. */
struct cli_option {
    char letter;      /* 0: long form only */
    const char *name; /* long form, without the dashes; NULL ends the table */
    const char *arg;  /* name of its argument in the help; NULL: takes none */
    const char *help; /* --help breaks it at 80 columns; "\n" is a blank */
    enum cli_kind kind;
    size_t at; /* in the structure that cli_take_all fills */
    uint64_t min, max;
    const char *what;
    /* Takes parser->value in place of .kind; target: what lies at `at`. Returns CLI_OK or, after
     * the error, a status. */
    int (*take)(struct cli_parser *parser, void *target);
    const char *choices; /* for completion, blanks between; @pid, @tid, @cpu or @folder for those */
};

/* The form of output that was chosen. */
struct cli_form {
    uint64_t number;                 /* 0: the default */
    const struct cli_option *option; /* that chose it */
    const char *separator;           /* of cli_take_values */
};

struct cli_command {
    const char *program;              /* NULL: prcb */
    const char *name;                 /* of the command; NULL: the program has none */
    const char *synopsis;             /* after "prcb NAME " */
    const char *summary;              /* one line, for `prcb --help` */
    const char *description;          /* a paragraph or two, for --help */
    const struct cli_option *options; /* --help is added to all, --version to those of programs */
    const char *examples;             /* lines, for the end of the help */
    const char *manual;               /* NULL: prcb-NAME(1) */
    int (*run)(const struct cli_command *self, int argc, char **argv);
};

/* A command line while it is read:
 *
 *     struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
 *     if (cli_take_all(&parser, &target, &status))
 *         return status;    // help was printed, or the error was
 *     // argv[parser.index] is the first argument that is no option
 *
 * Options end at the first argument that is none, or behind "--" (then
 * parser.dashes is set), so a command line may follow. With .take_word, options
 * and words come in any order, and behind "--" all are words. */
struct cli_parser {
    const struct cli_command *command;
    int argc;
    char **argv;
    int index;                                                 /* next argument; 0: the first */
    int (*take_word)(struct cli_parser *parser, void *target); /* of .value; NULL: see above */
    const char *value;               /* of the option that is being taken, or the word */
    bool dashes;                     /* "--" was seen */
    const struct cli_option *option; /* the one that is being taken */
    bool words;                      /* private, and the next */
    int cluster;                     /* position inside "-abc" */
};
/* Takes all options as their rows say, into *target, and words by take_word. Returns CLI_OK, or
 * -1 and *ret_status is the exit code: help was printed, or the error was. */
int cli_take_all(struct cli_parser *parser, void *target, int *ret_status);
/* Does the same for a command line that has only options: any word is an error. */
int cli_take_options(struct cli_parser *parser, void *target, int *ret_status);

/* Prints "prcb NAME: text" on standard error (command NULL: "prcb: text"); returns CLI_USAGE or
 * CLI_FAILED. */
int cli_usage_error(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int cli_error(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_warn(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ways to take an argument, for .take, and the variable at its place. */
/* uint64_t, nanoseconds: from .min (0: 1) to .max (0: a year); 10s, 100ms and the like; a bare
 * number is of the unit that .arg names: SEC, MS, US or DAYS. */
int cli_take_duration(struct cli_parser *, void *);
int cli_take_ids(struct cli_parser *, void *);    /* struct cli_ids: numbers of .what, added */
int cli_take_tier(struct cli_parser *, void *);   /* enum prcb_tier: up to .max (0: any) */
int cli_take_form(struct cli_parser *, void *);   /* struct cli_form: becomes .min; there is one */
int cli_take_values(struct cli_parser *, void *); /* the same; the argument separates values */

/* Writes the option as users do: "-j", or "--json" if there is no letter. Returns ret. */
#define CLI_SHOWN 32
const char *cli_shown(const struct cli_option *option, char *ret);

/* Reads a time with an optional fraction and unit ("0.5", "100ms", "1.5min"), as nanoseconds; a
 * number without a unit is of bare_ns each. 0 or -EINVAL / -ERANGE, *ret_ns unchanged on failure.
 */
int cli_parse_duration(const char *text, uint64_t bare_ns, uint64_t *ret_ns);

/* Reads the argument of the option that is being taken, by its row's bounds; for a .take. */
int cli_parse_number(const struct cli_parser *parser, uint64_t *ret);

/* Process or thread numbers, as in "12,34"; the caller frees the array. */
struct cli_ids {
    pid_t *ids;
    size_t count;
    bool named; /* some were found by a name, and may have ended since */
};

/* Adds a process by its number, or all that have a name. Returns how many; 0: none is called so;
 * -EINVAL: it is neither; -ENOMEM; else with *err: /proc is not of this pid namespace. */
int cli_add_process(const char *word, struct cli_ids *ids, struct prcb_error *err);

#endif
