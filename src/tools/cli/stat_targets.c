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
#include "descendants.h"
#include "first_line.h"
#include "found.h"

#define ROOM_LEAST   256  /* what prcbd gives by default to a client that names no number */
#define ROOM_COMMAND 1024 /* of one that is not running yet */

/* Returns the number of threads of a process; 0: it is not known. */
static size_t threads_of(pid_t pid)
{
    size_t count = 0;
    char path[64];
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count < 2 ? 0 : count - 2; /* "." and ".." */
}

static size_t threads_of_all(void)
{
    char text[128];
    size_t count = 0;

    if (first_line("/proc/loadavg", text, sizeof(text)) && strchr(text, '/'))
        count = strtoul(strchr(text, '/') + 1, NULL, 10);
    return count;
}

static size_t threads_below(const struct stat_options *options)
{
    pid_t *below;
    size_t threads = 0, count = descendants_find(options->pids.ids, options->pids.count, &below);

    for (size_t i = 0; below && i < count; i++)
        threads += threads_of(below[i]);
    free(below);
    return threads;
}

/* Returns the room for the threads that the targets have now, and for those that these may
 * start. */
static size_t room_for(const struct stat_options *options)
{
    size_t threads = options->tids.count;

    if (options->all || options->cgroup_count)
        threads += threads_of_all();
    for (size_t i = 0; i < options->pids.count; i++)
        threads += threads_of(options->pids.ids[i]);
    threads += options->below ? threads_below(options) : 0;
    return threads                              ? ROOM_LEAST + 2 * threads
           : stat_options_have_targets(options) ? ROOM_LEAST
                                                : ROOM_COMMAND;
}

int stat_targets_open(const struct prcb_options *how, const struct stat_options *options,
                      struct prcb **ret, struct prcb_error *err)
{
    bool daemon = how->tier == PRCB_TIER_AUTO || how->tier == PRCB_TIER_DAEMON;
    struct prcb_options roomy = *how;
    struct prcb_error refused;
    int result = -EDQUOT;

    roomy.tier = PRCB_TIER_DAEMON;
    for (size_t room = how->max_threads || !daemon ? 0 : room_for(options);
         room > ROOM_LEAST && (result == -EDQUOT || result == -ENOSPC); room /= 2) {
        roomy.max_threads = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
        result = prcb_open(&roomy, ret, &refused);
        if (!result)
            return 0;
    }
    return prcb_open(how, ret, err);
}

/* Accepts that there is no room for all threads: those that fit are profiled, the rest are
 * counted. */
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

/* Profiles those that may be; who makes more of them is profiled by now, and so are these. */
static void profile_below(const struct profiling *p)
{
    pid_t *below;
    size_t count = descendants_find(p->options->pids.ids, p->options->pids.count, &below);
    struct prcb_error ignored;

    for (size_t i = 0; below && i < count; i++)
        prcb_profile_process(p->session, below[i], p->options->follow, &ignored);
    free(below);
}

int stat_targets_profile(struct prcb *session, const struct stat_options *options,
                         struct stat_wait *wait, struct prcb_error *err)
{
    struct profiling p = {session, options, wait, err};
    int result = found_each(options->pids.ids, options->pids.count, options->pids.named,
                            profile_process, &p);

    if (!result && options->below)
        profile_below(&p);
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

    /* If there are other targets, a command only determines how long they are profiled. */
    if (stat_options_have_targets(options))
        result = prcb_spawn(NULL, options->command, 0, ret, err);
    else
        result = prcb_spawn_hooked(session, options->command, options->follow, hook, ret, err);
    if (result)
        *ret_status = cli_exec_status(result);
    return result;
}
