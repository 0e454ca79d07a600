/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli.h"
#include "near.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prcb/prcb.h>

static void print_commands(FILE *out)
{
    fprintf(out, "usage: prcb COMMAND [options]\n\n"
                 "Exact accounts of threads: why is my thread not running?\n\ncommands:\n");
    for (const struct cli_command *const *command = cli_commands; *command; command++)
        fprintf(out, "  %-10s  %s\n", (*command)->name, (*command)->summary);
    fprintf(out, "\n`prcb help COMMAND` explains one; `prcb --version` names the version.\n"
                 "manual: prcb(1)\n");
}

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *const *command = cli_commands; *command; command++) {
        if (!strcmp((*command)->name, name))
            return *command;
    }
    return NULL;
}

/* A command that failed has reported it. */
static int finish(const struct cli_command *command, int status)
{
    struct output output = {.stream = stdout};

    return status == CLI_OK ? cli_close_output(command, &output, status) : status;
}

static int no_command(const char *name)
{
    struct near near = {.count = 0};
    char perhaps[128];

    for (const struct cli_command *const *command = cli_commands; *command; command++)
        near_offer(&near, name, (*command)->name);
    return cli_usage_error(NULL, "no command '%s'%s; prcb --help lists them", name,
                           near_text(&near, perhaps, sizeof(perhaps)));
}

/* `prcb help`, and of a command what its --help prints. */
static int help(const char *name)
{
    char *arguments[] = {(char *)name, (char *)"--help", NULL};
    const struct cli_command *command = name ? find_command(name) : NULL;

    if (name && !command)
        return no_command(name);
    if (command)
        return finish(command, command->run(command, 2, arguments));
    print_commands(stdout);
    return finish(NULL, CLI_OK);
}

static bool is_one_of(const char *name, const char *letter, const char *word)
{
    return !strcmp(name, letter) || !strcmp(name, word);
}

/* Prints what an option's argument may be: words, and @pid and the like, which the shell fills
 * in. */
static void print_choices(const struct cli_command *command, const char *word)
{
    for (const struct cli_option *option = command->options; option && option->name; option++) {
        const char *name = word + strspn(word, "-");

        if (strcmp(name, option->name) && !(option->letter == *name && !name[1]))
            continue;
        if (option->take == cli_take_tier)
            puts(option->max ? "bpf perf" : "daemon bpf perf");
        else if (option->choices)
            puts(option->choices);
    }
}

/* Prints words for shell completion: the commands; the options of a command; the choices of an
 * option. */
static int print_completions(const char *name, const char *word)
{
    const struct cli_command *command = name ? find_command(name) : NULL;

    for (const struct cli_command *const *each = cli_commands; !name && *each; each++)
        puts((*each)->name);
    if (command && word) {
        print_choices(command, word);
    } else if (command) {
        for (const struct cli_option *option = command->options; option && option->name; option++)
            printf("--%s\n", option->name);
        puts("--help");
    }
    return CLI_OK;
}

/* Prints a word and the first line of what it is for, with a tab between, as fish takes it. */
static void print_described(const char *dashes, const char *word, const char *help)
{
    printf("%s%s\t%.*s\n", dashes, word, (int)strcspn(help, "\n"), help);
}

/* Does the same as print_completions for shells that show what a word is for. */
static int print_descriptions(const char *name)
{
    const struct cli_command *command = name ? find_command(name) : NULL;

    for (const struct cli_command *const *each = cli_commands; !name && *each; each++)
        print_described("", (*each)->name, (*each)->summary);
    if (command) {
        for (const struct cli_option *option = command->options; option && option->name; option++)
            print_described("--", option->name, option->help);
        print_described("--", "help", "show what there is");
    }
    return CLI_OK;
}

#ifndef HAVE_WINDOWS
/* Runs a command of the tree's other half, which is a program of its own. Returns where there is
 * none. */
static void run_windows(char **argv)
{
    static const char *const names[] = {"dump", "layout", "power"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(argv[1], names[i]))
            continue;
        execv(PRCB_BINDIR "/prcb-windows", argv);
        exit(cli_usage_error(NULL,
                             "%s is a command of prcb-windows, which is not installed (" PRCB_BINDIR
                             "/prcb-windows: %s)",
                             names[i], strerror(errno)));
    }
}
#endif

/* A standard descriptor that the caller closed would become the next file that is opened, a BPF
 * map for instance, and would be written to. It is held read-only, so that writes fail instead. */
static void hold_standard_files(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct cli_command *command;

    hold_standard_files();
    if (!name) {
        print_commands(stderr);
        return CLI_USAGE;
    }
    if (is_one_of(name, "-h", "--help"))
        return help(NULL);
    if (!strcmp(name, "help"))
        return help(argc > 2 ? argv[2] : NULL);
    if (is_one_of(name, "-V", "--version")) {
        printf("prcb %s\n", prcb_version());
        return finish(NULL, CLI_OK);
    }
    if (!strcmp(name, "--completions"))
        return finish(NULL,
                      print_completions(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL));
    if (!strcmp(name, "--descriptions"))
        return finish(NULL, print_descriptions(argc > 2 ? argv[2] : NULL));
    command = find_command(name);
    if (command)
        return finish(command, command->run(command, argc - 1, argv + 1));
#ifndef HAVE_WINDOWS
    run_windows(argv);
#endif
    return no_command(name);
}
