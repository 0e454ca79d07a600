/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_targets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "found.h"

/* No room for all of it: what fits is profiled, the rest is counted. */
static int allow_partly(struct prcb *session, int result)
{
    struct prcb_status status = {.size = sizeof(status)};

    if (result != -ENOSPC || prcb_session_status(session, &status))
        return result;
    return status.threads && status.untracked_threads ? 0 : result;
}

struct profiling {
    struct prcb *session;
    const struct stat_options *options;
    struct stat_wait *wait;
    struct prcb_error *err;
};

static int profile_process(pid_t pid, void *ctx)
{
    const struct profiling *p = ctx;

    stat_wait_add_target(p->wait, pid);
    return allow_partly(p->session,
                        prcb_profile_process(p->session, pid, p->options->follow, p->err));
}

int stat_targets_profile(struct prcb *session, const struct stat_options *options,
                         struct stat_wait *wait, struct prcb_error *err)
{
    struct profiling p = {session, options, wait, err};
    int result = found_each(options->pids.ids, options->pids.count, options->pids.named,
                            profile_process, &p);

    for (size_t i = 0; !result && i < options->tids.count; i++)
        result = allow_partly(
            session, prcb_profile_thread(session, options->tids.ids[i], options->follow, err));
    for (size_t i = 0; !result && i < options->cgroup_count; i++)
        result = allow_partly(session, prcb_profile_cgroup(session, options->cgroups[i], err));
    if (!result && options->all)
        result = allow_partly(session, prcb_profile_all(session, err));
    return result;
}

static int profile_own(struct prcb *session, struct prcb_error *err)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;

    for (; folder && (entry = readdir(folder));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        struct stat about;

        if (pid <= 0 || fstatat(dirfd(folder), entry->d_name, &about, 0) ||
            about.st_uid != geteuid())
            continue;
        count += !prcb_profile_process(session, pid, PRCB_FOLLOW_ALL, err);
    }
    if (folder)
        closedir(folder);
    return count ? 0 : -ESRCH;
}

int stat_targets_profile_visible(struct prcb *session, const struct stat_options *options,
                                 struct stat_wait *wait, bool *ret_own, struct prcb_error *err)
{
    int result;

    *ret_own = false;
    if (stat_options_have_targets(options))
        return stat_targets_profile(session, options, wait, err);
    result = prcb_profile_all(session, err);
    if (!result || result == -ENOSPC)
        return 0;
    *ret_own = true;
    return profile_own(session, err);
}

struct prcb_processors *stat_targets_view(const struct stat_options *options)
{
    const struct prcb_processors_options see = {.size = sizeof(see), .tier = options->tier};
    struct prcb_processors *view = NULL;
    struct prcb_error ignored;

    if (prcb_processors_open(&see, &view, &ignored) && prcb_processors_open(NULL, &view, &ignored))
        return NULL;
    return view;
}

int stat_targets_start(struct prcb *session, const struct stat_options *options,
                       const struct prcb_spawn_hook *hook, pid_t *ret, int *ret_status,
                       struct prcb_error *err)
{
    int result;

    /* Beside other targets a command only says how long they are profiled. */
    if (stat_options_have_targets(options))
        result = prcb_spawn(NULL, options->command, 0, ret, err);
    else
        result = prcb_spawn_hooked(session, options->command, options->follow, hook, ret, err);
    if (result)
        *ret_status = cli_exec_status(result);
    return result;
}
