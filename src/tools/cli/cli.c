/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void cli_write_load_log(const char *log)
{
    if (log)
        fprintf(stderr, "the verifier's last lines:\n%s", log);
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

void cli_find_program(const char *name, char *ret, size_t size)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    char *slash;

    own[length > 0 ? length : 0] = '\0';
    slash = strrchr(own, '/');
    if (slash) {
        *slash = '\0';
        snprintf(ret, size, "%s/../%s", own, name);
        if (!access(ret, X_OK))
            return;
    }
    snprintf(ret, size, "%s/%s", PRCB_LIBEXECDIR, strrchr(name, '/') + 1);
}
