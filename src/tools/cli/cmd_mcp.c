/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb mcp` serves the answers of other commands to a program that speaks the Model Context
 * Protocol: JSON-RPC, a line a message, on standard input and output. A tool is a command of this
 * program, started without a shell, and never for longer than a deadline.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_end.h"
#include "mcp_message.h"
#include "now.h"

#define OUTPUT_MOST 65536          /* bytes of a command's output that are kept */
#define EXTRA_NS    90000000000ull /* beyond the time that it is to look */
#define END_MS      2000           /* for a command to end that says no more */

struct reader {
    char bytes[MCP_LINE_MOST + 1];
    size_t count;
    bool skips; /* the rest of a line that was too long */
};

/* The child: nothing of the client's streams, and it ends with this process. */
static void become(const struct mcp_message *m, int output)
{
    char name[] = "prcb", *words[MCP_WORDS_MOST + 2] = {name};
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    for (size_t i = 0; i < m->count; i++)
        words[i + 1] = m->words[i];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(output, STDERR_FILENO) >= 0)
        execv("/proc/self/exe", words);
    _exit(CLI_CANNOT_EXEC);
}

/* Reads what a command writes until it ends, or its time is over. Returns how much that is. */
static size_t read_output(int from, uint64_t until, char *ret, bool *ret_late)
{
    size_t count = 0;
    uint64_t now;

    *ret_late = false;
    while ((now = now_ns()) < until) {
        struct pollfd poller = {.fd = from, .events = POLLIN};
        char rest[4096];
        ssize_t got;

        if (poll(&poller, 1, (int)((until - now) / 1000000) + 1) <= 0)
            continue;
        got = count < OUTPUT_MOST ? read(from, ret + count, OUTPUT_MOST - count)
                                  : read(from, rest, sizeof(rest));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return count;
        count += count < OUTPUT_MOST ? (size_t)got : 0;
    }
    *ret_late = true;
    return count;
}

static int run_tool(struct mcp_message *m)
{
    static char text[OUTPUT_MOST];
    size_t count;
    bool late;
    int ends[2], status = 0;
    pid_t child;

    if (children_left() >= CHILDREN_LEFT)
        return mcp_answer(m, "too many commands do not end", 28, true);
    if (pipe2(ends, O_CLOEXEC))
        return mcp_answer(m, "no pipe", 7, true);
    child = fork();
    if (!child)
        become(m, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return mcp_answer(m, "no process", 10, true);
    }
    setpgid(child, child);
    count = read_output(ends[0], now_ns() + m->seconds * 1000000000 + EXTRA_NS, text, &late);
    close(ends[0]);
    if (late)
        kill(-child, SIGKILL);
    if (!child_end(child, END_MS, &status)) { /* what it was killed in may last */
        kill(-child, SIGKILL);
        late = true;
    }
    if (late)
        return mcp_answer(m, "the command took too long", 25, true);
    return mcp_answer(m, text, count, !WIFEXITED(status) || WEXITSTATUS(status));
}

static int say(const struct cli_command *self, struct mcp_message *m)
{
    if (m->answer && (fputs(m->answer, stdout) < 0 || fflush(stdout)))
        return cli_error(self, "standard output: %s", strerror(errno));
    return CLI_OK;
}

/* Takes a message; length beyond MCP_LINE_MOST: it was too long. */
static int take_line(const struct cli_command *self, const char *line, size_t length)
{
    struct mcp_message m;
    int status, result = length > MCP_LINE_MOST ? mcp_too_long(&m) : mcp_take(line, length, &m);

    if (result)
        return cli_error(self, "out of memory");
    result = m.count ? run_tool(&m) : 0;
    status = result ? cli_error(self, "out of memory") : say(self, &m);
    mcp_free(&m);
    return status;
}

/* Takes the lines that are whole; the rest moves to the front. */
static int take_lines(const struct cli_command *self, struct reader *r)
{
    size_t from = 0;
    int status = CLI_OK;

    for (size_t i = 0; i < r->count && status == CLI_OK; i++) {
        if (r->bytes[i] != '\n')
            continue;
        if (!r->skips && i > from)
            status = take_line(self, r->bytes + from, i - from);
        r->skips = false;
        from = i + 1;
    }
    r->count -= from;
    memmove(r->bytes, r->bytes + from, r->count);
    if (status == CLI_OK && r->count > MCP_LINE_MOST) {
        if (!r->skips)
            status = take_line(self, NULL, r->count);
        r->skips = true;
        r->count = 0;
    }
    return status;
}

struct options {
    bool list;
};

static const struct cli_option option_rows[] = {
    {0, "list", NULL, "print the tools with their arguments, as a client gets them, and end",
     .at = offsetof(struct options, list)},
    {0},
};

static int list(const struct cli_command *self)
{
    static const char request[] = "{\"id\":0,\"method\":\"tools/list\"}";

    return take_line(self, request, sizeof(request) - 1);
}

static int run_mcp(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
    struct reader *r;
    struct options options = {.list = false};
    int status = CLI_OK;
    ssize_t got = 1;

    if (cli_take_options(&parser, &options, &status))
        return status;
    if (options.list)
        return list(self);
    r = calloc(1, sizeof(*r));
    if (!r)
        return cli_error(self, "out of memory");
    while (got && status == CLI_OK) {
        got = read(STDIN_FILENO, r->bytes + r->count, sizeof(r->bytes) - r->count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = cli_error(self, "standard input: %s", strerror(errno));
            break;
        }
        r->count += (size_t)got;
        status = take_lines(self, r);
    }
    free(r);
    return status;
}

extern const struct cli_command cmd_mcp;
const struct cli_command cmd_mcp = {
    .name = "mcp",
    .synopsis = "[--list]",
    .summary = "short answers for a client of the Model Context Protocol",
    .description =
        "Reads requests of the Model Context Protocol from standard input, a line each, and\n"
        "answers on standard output. Its tools are commands of prcb that only look: why, stat,\n"
        "chain, containers, report, critical_path, diff, and dump_triage where dumps are built "
        "in.\n"
        "An answer has at most 8 KiB.",
    .options = option_rows,
    .examples = "  prcb mcp   a client starts it so, and ends it by closing the pipe\n",
    .run = run_mcp,
};
