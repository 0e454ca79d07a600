/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

/* ---- policy ---- */

static int find_group(const struct prcbd_access *access, const char *key, bool *ret_has, gid_t *ret,
                      struct prcb_error *err)
{
    const struct group *group;

    *ret_has = access->who == PRCBD_GROUP;
    if (!*ret_has)
        return 0;
    group = getgrnam(access->group);
    if (!group)
        return prcb_fail(err, -ENOENT, "%s: group %s does not exist", key, access->group);
    *ret = group->gr_gid;
    return 0;
}

int peer_find_groups(const struct prcbd_config *config, struct peer_groups *ret,
                     struct prcb_error *err)
{
    struct peer_groups found = {0};
    int result = find_group(&config->profile_all, "profile_all", &found.has_profile_all,
                            &found.profile_all, err);

    if (!result)
        result = find_group(&config->processors, "processors", &found.has_processors,
                            &found.processors, err);
    if (!result)
        *ret = found;
    return result;
}

static bool in_group(int socket, const struct peer *peer, gid_t group)
{
    socklen_t size = 0;
    bool found = peer->gid == group;
    gid_t *groups;

    if (found)
        return true;
    /* The first call tells how many there are. */
    getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &size);
    groups = size ? malloc(size) : NULL;
    if (!groups)
        return false;
    if (!getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size)) {
        for (size_t i = 0; !found && i < size / sizeof(*groups); i++)
            found = groups[i] == group;
    }
    free(groups);
    return found;
}

static bool allowed(int socket, const struct peer *peer, const struct prcbd_access *access,
                    bool has_group, gid_t group)
{
    switch (access->who) {
    case PRCBD_EVERYBODY:
        return true;
    case PRCBD_GROUP:
        return has_group && in_group(socket, peer, group);
    default:
        return false;
    }
}

uint32_t peer_own_ns(const char *which)
{
    char path[64] = "/proc/self/ns/";
    struct stat st;

    strncat(path, which, sizeof(path) - strlen(path) - 1);
    return stat(path, &st) ? 0 : (uint32_t)st.st_ino;
}

void peer_apply(int socket, const struct prcbd_config *config, const struct peer_groups *groups,
                struct peer *peer)
{
    /* "root" is a peer that could load the programs itself. Root as such does not count: in a
     * container it may have no more rights than anybody. */
    const uint64_t both = UINT64_C(1) << CAP_BPF | UINT64_C(1) << CAP_PERFMON;
    bool own = peer->user_ns == peer_own_ns("user");
    bool root = own && (peer->caps & UINT64_C(1) << CAP_SYS_ADMIN || (peer->caps & both) == both);

    peer->root = root;
    peer->writes_maps = own && !root && peer->caps & UINT64_C(1) << CAP_BPF;
    peer->all = root || allowed(socket, peer, &config->profile_all, groups->has_profile_all,
                                groups->profile_all);
    peer->processors = root || allowed(socket, peer, &config->processors, groups->has_processors,
                                       groups->processors);
}

/* ---- what /proc shows ---- */

/* Gets the options of the last mount on /proc that this process sees, cut to size. */
static bool proc_options(char *ret, size_t size)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;

    *ret = '\0';
    while (file && getline(&line, &room, file) > 0) {
        const char *options = strstr(line, " - proc ");

        if (strstr(line, " /proc ") && options && (options = strchr(options + 8, ' ')))
            snprintf(ret, size, ",%s", options + 1);
    }
    free(line);
    if (file)
        fclose(file);
    return *ret;
}

bool peer_sees_names(int socket, const struct peer *peer)
{
    char options[512];
    const char *hides, *group;

    if (peer->all)
        return true;
    if (!peer->same_pid_ns || !proc_options(options, sizeof(options)))
        return false;
    hides = strstr(options, ",hidepid=");
    if (!hides || !strncmp(hides + 9, "off", 3) || hides[9] == '0')
        return true;
    group = strstr(options, ",gid=");
    return group && strncmp(hides + 9, "ptraceable", 10) && hides[9] != '4' &&
           in_group(socket, peer, (gid_t)strtoul(group + 5, NULL, 10));
}

/* ---- identity ---- */

int peer_ask(struct kernel *k, int socket, struct peer *ret, struct prcb_error *err)
{
    struct prcb_bpf_peer seen;
    int result = kernel_peer(k, socket, &seen);

    if (result == -ESRCH)
        return prcb_fail(err, result, "the process that connected has ended");
    if (result)
        return prcb_fail(err, result, "cannot identify the process that connected: %s",
                         strerror(-result));
    if (!seen.pid)
        return prcb_fail(err, -EPERM, "your process is in a pid namespace that prcbd cannot see");
    /* A set-user-id program, which is another user's in part, counts as neither user's. Root's
     * counts as root's. */
    if (seen.euid && (seen.uid != seen.euid || seen.suid != seen.euid || seen.gid != seen.egid ||
                      seen.sgid != seen.egid))
        return prcb_fail(err, -EPERM, "real, effective and saved user or group differ");
    memset(ret, 0, sizeof(*ret));
    ret->uid = seen.euid;
    /* Users may create many other users in namespaces of their own, but get no further limits by
     * it. If root makes containers of them, that is root's decision. */
    ret->payer = seen.owner ? seen.owner : seen.euid;
    ret->gid = seen.egid;
    ret->pid = (pid_t)seen.pid;
    ret->start = seen.start;
    ret->caps = seen.caps;
    ret->pid_ns = seen.pid_ns;
    ret->user_ns = seen.user_ns;
    ret->same_pid_ns = seen.pid_ns == peer_own_ns("pid");
    return 0;
}
