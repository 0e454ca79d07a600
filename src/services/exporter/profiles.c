/* SPDX-License-Identifier: BSD-2-Clause */
#include "profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cgroup_names.h"
#include "child_end.h"

#define SECONDS   10 /* if nobody says how long */
#define REAP_MS   20
#define END_MS    200 /* for a child that was killed to end */
#define NAME_MOST 15  /* bytes that the kernel keeps of a name */

extern char **environ;

/* ---- what is asked for ---- */

/* Returns the seconds, or 0. */
static uint64_t seconds_of(const struct profiles *p, const char *text)
{
    uint64_t most = p->options.seconds;
    char *end;
    long value;

    if (!text)
        return SECONDS < most ? SECONDS : most;
    value =
        strlen(text) < 6 && strspn(text, "0123456789") == strlen(text) ? strtol(text, &end, 10) : 0;
    return value > 0 && (uint64_t)value <= most ? (uint64_t)value : 0;
}

/* Nothing that goes up, so that no other folder than a cgroup is looked at. */
static bool is_group(const char *path)
{
    size_t length = strlen(path);

    return *path == '/' && length < PROFILES_GROUP && !strstr(path, "/../") &&
           (length < 3 || strcmp(path + length - 3, "/..") != 0);
}

/* It becomes a word of a command line, where it must not be an option, a number or a path. */
static bool is_name(const char *name)
{
    return *name && *name != '-' && strlen(name) <= NAME_MOST && !strchr(name, '/') &&
           strspn(name, "0123456789") != strlen(name);
}

static const char *mistake(const struct profiles *p, const struct profiles_request *request)
{
    if (!seconds_of(p, request->seconds))
        return "seconds: must be a whole number, and no more than --pprof-seconds allows";
    if (request->cgroup && request->comm)
        return "cgroup and comm exclude each other";
    if (request->cgroup && !is_group(request->cgroup))
        return "cgroup: must be a path as the label cgroup has it";
    if (request->spans && strcmp(request->spans, "0") != 0 && strcmp(request->spans, "1") != 0)
        return "spans: must be 0 or 1";
    if (request->comm && !is_name(request->comm))
        return "comm: must be the name of a process";
    return NULL;
}

/* ---- the child ---- */

static int spawn(const struct profiles *p, char *const *arguments, const int fds[2], pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, defaults;
    int result;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &defaults);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fds[0], 1);
    posix_spawn_file_actions_adddup2(&files, fds[1], 2);
    result = -posix_spawn(ret, p->options.program, &files, &how, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return result;
}

static int open_child(const struct profiles *p, char *const *arguments, struct profile *ret)
{
    int ends[2], said = memfd_create("prcb-profile", MFD_CLOEXEC), result;
    pid_t pid = 0;

    if (said < 0 || pipe2(ends, O_CLOEXEC)) {
        result = -errno;
        if (said >= 0)
            close(said);
        return result;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    result = spawn(p, arguments, (int[]){ends[1], said}, &pid);
    close(ends[1]);
    if (result) {
        close(ends[0]);
        close(said);
        return result;
    }
    ret->pid = pid;
    ret->out = ends[0];
    ret->said = said;
    return 0;
}

static int start(const struct profiles *p, const struct profiles_request *request,
                 struct profile *ret)
{
    char seconds[24], percent[24], kind[16], group[PROFILES_GROUP + 512], mount[512] = "";
    char program[] = "prcb", why[] = "why", pprof[] = "--pprof", lasts[] = "--for",
         budget[] = "--budget", tier[] = "--tier", all[] = "-a", cgroup[] = "--cgroup",
         spans[] = "--spans";
    char tier_name[16], name[NAME_MOST + 1];
    char *arguments[16] = {program, why,    pprof,   kind, lasts,
                           seconds, budget, percent, tier, tier_name};
    size_t count = 10;

    snprintf(kind, sizeof(kind), "%s", request->kind);
    snprintf(seconds, sizeof(seconds), "%u", (unsigned)seconds_of(p, request->seconds));
    snprintf(percent, sizeof(percent), "%u", (unsigned)p->options.percent);
    snprintf(tier_name, sizeof(tier_name), "%s", prcb_tier_name(p->options.tier));
    if (request->spans && *request->spans == '1')
        arguments[count++] = spans;
    if (request->cgroup) {
        if (p->options.cgroup_root)
            snprintf(mount, sizeof(mount), "%s", p->options.cgroup_root);
        else
            cgroup_setup("/proc/self/mounts", mount, sizeof(mount));
        snprintf(group, sizeof(group), "%s%s", mount, request->cgroup);
        arguments[count++] = cgroup;
        arguments[count++] = group;
    } else if (request->comm) {
        snprintf(name, sizeof(name), "%s", request->comm);
        arguments[count++] = name;
    } else {
        arguments[count++] = all;
    }
    return open_child(p, arguments, ret);
}

int profiles_start(struct profiles *p, const struct profiles_request *request, uint64_t now,
                   struct profile **ret, const char **ret_why)
{
    struct profile *profile = NULL;
    size_t used = 0;
    int result;

    *ret_why = mistake(p, request);
    if (*ret_why)
        return -EINVAL;
    for (size_t i = 0; i < PROFILES_MAX; i++) {
        used += p->profile[i].used;
        profile = p->profile[i].used ? profile : &p->profile[i];
    }
    if (!profile || used >= p->options.most || children_left() >= CHILDREN_LEFT)
        return -EBUSY;
    *profile = (struct profile){.out = -1, .said = -1};
    result = start(p, request, profile);
    if (result)
        return result;
    profile->used = true;
    profile->kill_at = now + seconds_of(p, request->seconds) * 1000 + PROFILES_LATE;
    *ret = profile;
    return 0;
}

/* Its own children end when their parent is gone. */
static void end_child(struct profile *profile)
{
    if (profile->pid) {
        kill(-profile->pid, SIGKILL);
        child_end(profile->pid, END_MS, NULL); /* nobody else is to wait for it */
    }
    profile->pid = 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void profile_free(struct profile *profile)
{
    end_child(profile);
    close_fd(&profile->out);
    close_fd(&profile->said);
    free(profile->bytes);
    *profile = (struct profile){.out = -1, .said = -1};
}

/* ---- while it works ---- */

static void fail(struct profile *profile, const char *text)
{
    end_child(profile);
    close_fd(&profile->out);
    snprintf(profile->text, sizeof(profile->text), "%s", text);
    profile->done = profile->failed = true;
}

/* Takes what is there. */
static void take(struct profile *profile)
{
    while (profile->out >= 0) {
        ssize_t got;

        if (array_reserve(profile->bytes, profile->size, profile->room, 65536)) {
            fail(profile, "out of memory");
            return;
        }
        got = read(profile->out, profile->bytes + profile->size, 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            close_fd(&profile->out);
        else
            profile->size += (size_t)got;
        if (profile->size > PROFILES_BYTES)
            fail(profile, "the profile is larger than 32 MiB");
    }
}

/* Its output is complete: waits for its end, without waiting. */
static void finish(struct profile *profile)
{
    int status;
    ssize_t got;

    if (waitpid(profile->pid, &status, WNOHANG) != profile->pid)
        return;
    profile->pid = 0;
    profile->done = true;
    profile->failed = !WIFEXITED(status) || WEXITSTATUS(status) || !profile->size;
    got = pread(profile->said, profile->text, sizeof(profile->text) - 1, 0);
    profile->text[got > 0 ? got : 0] = '\0';
}

void profiles_run(struct profiles *p, uint64_t now)
{
    for (size_t i = 0; i < PROFILES_MAX; i++) {
        struct profile *profile = &p->profile[i];

        if (!profile->used || profile->done)
            continue;
        take(profile);
        if (!profile->done && profile->out < 0)
            finish(profile);
        if (!profile->done && now >= profile->kill_at)
            fail(profile, "it took too long");
    }
}

size_t profiles_fds(const struct profiles *p, struct pollfd *ret, int *timeout_ms)
{
    size_t count = 0;

    for (size_t i = 0; i < PROFILES_MAX; i++) {
        const struct profile *profile = &p->profile[i];

        if (!profile->used || profile->done)
            continue;
        if (profile->out >= 0)
            ret[count++] = (struct pollfd){.fd = profile->out, .events = POLLIN};
        else if (*timeout_ms > REAP_MS)
            *timeout_ms = REAP_MS;
        if (*timeout_ms > 1000)
            *timeout_ms = 1000;
    }
    return count;
}
