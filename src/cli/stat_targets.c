/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* No room for all of it: what fits is profiled, the rest is counted. */
static int allow_partly(struct prcb *session, int result)
{
    struct prcb_status status = {.size = sizeof(status)};

    if (result != -ENOSPC || prcb_session_status(session, &status))
        return result;
    return status.threads && status.untracked_threads ? 0 : result;
}

int stat_targets_profile(struct prcb *session, const struct stat_options *options,
                         struct stat_wait *wait, struct prcb_error *err)
{
    int result = 0;

    for (size_t i = 0; !result && i < options->pids.count; i++) {
        stat_wait_add_target(wait, options->pids.ids[i]);
        result = allow_partly(
            session, prcb_profile_process(session, options->pids.ids[i], options->follow, err));
    }
    for (size_t i = 0; !result && i < options->tids.count; i++)
        result = allow_partly(
            session, prcb_profile_thread(session, options->tids.ids[i], options->follow, err));
    for (size_t i = 0; !result && i < options->cgroup_count; i++)
        result = allow_partly(session, prcb_profile_cgroup(session, options->cgroups[i], err));
    if (!result && options->all)
        result = allow_partly(session, prcb_profile_all(session, err));
    return result;
}

static int exec_status(int code)
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

/* The child: becomes the command, or sends up the pipe why not. */
static void become(char **command, int failed)
{
    int code;

    execvp(command[0], command);
    code = errno;
    if (write(failed, &code, sizeof(code)) != sizeof(code))
        _exit(CLI_CANNOT_EXEC);
    _exit(CLI_NOT_FOUND);
}

/* Waits for the exec: 0, or its -errno, and then no child is left. */
static int await_exec(pid_t child, int failed)
{
    int code = 0;
    ssize_t got;

    do
        got = read(failed, &code, sizeof(code));
    while (got < 0 && errno == EINTR);
    if (got != sizeof(code))
        return 0;
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return -code;
}

static int fork_command(char **command, pid_t *ret)
{
    int failed[2], result;
    pid_t child;

    if (pipe2(failed, O_CLOEXEC))
        return -errno;
    child = fork();
    if (!child)
        become(command, failed[1]);
    result = child < 0 ? -errno : 0;
    close(failed[1]);
    if (!result)
        result = await_exec(child, failed[0]);
    close(failed[0]);
    if (!result)
        *ret = child;
    return result;
}

/* A command that only says how long to profile others. */
static int start_plain(char **command, pid_t *ret, struct prcb_error *err)
{
    int result = fork_command(command, ret);

    if (result) {
        err->code = result;
        snprintf(err->text, sizeof(err->text), "%s: %s", command[0],
                 result == -ENOENT ? "command not found" : strerror(-result));
    }
    return result;
}

int stat_targets_start(struct prcb *session, const struct stat_options *options,
                       const struct prcb_spawn_hook *hook, pid_t *ret, int *ret_status,
                       struct prcb_error *err)
{
    int result;

    if (stat_options_have_targets(options))
        result = start_plain(options->command, ret, err);
    else
        result = prcb_spawn_hooked(session, options->command, options->follow, hook, ret, err);
    if (result)
        *ret_status = exec_status(result);
    return result;
}
