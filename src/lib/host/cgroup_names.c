/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroup_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "error.h"
#include "table.h"

#define PATH_BYTES 4096
#define LEVELS     64  /* the kernel's own limit is higher; nobody nests so deep */
#define FEW        256 /* names that are kept whatever became of them */
#define HEX_DIGITS 64

/* ---- how the machine has them ---- */

enum cgroup_setup cgroup_setup(const char *mounts, char *mount, size_t size)
{
    char line[PATH_BYTES], where[1024], type[64];
    FILE *in = fopen(mounts, "re");
    bool v1 = false, v2 = false;

    *mount = '\0';
    while (in && fgets(line, sizeof(line), in)) {
        if (sscanf(line, "%*s %1023s %63s", where, type) != 2)
            continue;
        v1 |= !strcmp(type, "cgroup");
        if (v2 || strcmp(type, "cgroup2"))
            continue;
        v2 = true;
        snprintf(mount, size, "%s", where);
    }
    if (in)
        fclose(in);
    return v2 ? (v1 ? CGROUP_HYBRID : CGROUP_V2) : v1 ? CGROUP_V1 : CGROUP_NONE;
}

const char *cgroup_setup_words(enum cgroup_setup setup)
{
    switch (setup) {
    case CGROUP_V2:
        return "cgroup version 2";
    case CGROUP_HYBRID:
        return "cgroup version 1 with version 2 beside it: threads are grouped by their cgroup "
               "of "
               "version 2, which container engines may not set here";
    case CGROUP_V1:
        return "cgroup version 1 only: all threads are in one group; boot with "
               "systemd.unified_cgroup_hierarchy=1";
    default:
        return "no cgroup hierarchy is mounted: all threads are in one group";
    }
}

/* ---- names by number ---- */

struct name {
    uint64_t cgroup;
    char *path;    /* owned; NULL: not found */
    uint64_t walk; /* number of the last walk that found it */
};

struct cgroup_names {
    enum cgroup_setup setup;
    char root[PATH_BYTES];
    struct table names; /* by number */
    size_t left;        /* by the last drop */
    uint64_t walks;
    bool walked; /* in this look */
    bool told;   /* there is nothing to walk over */
};

int cgroup_names_open(const char *root, struct cgroup_names **ret, struct prcb_error *err)
{
    struct cgroup_names *names = calloc(1, sizeof(*names));

    if (!names)
        return prcb_fail(err, -ENOMEM, "out of memory");
    names->setup = cgroup_setup("/proc/self/mounts", names->root, sizeof(names->root));
    if (root)
        snprintf(names->root, sizeof(names->root), "%s", root);
    *ret = names;
    return 0;
}

static void free_name(struct name *name)
{
    if (name)
        free(name->path);
    free(name);
}

void cgroup_names_close(struct cgroup_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->names.room; i++)
        free_name(names->names.slots[i].item);
    table_free(&names->names);
    free(names);
}

const char *cgroup_names_root(const struct cgroup_names *names)
{
    return names->root;
}

enum cgroup_setup cgroup_names_setup(const struct cgroup_names *names)
{
    return names->setup;
}

static struct name *add(struct cgroup_names *names, uint64_t cgroup)
{
    struct name *name = calloc(1, sizeof(*name));

    if (!name || table_put(&names->names, cgroup, name)) {
        free(name);
        return NULL;
    }
    name->cgroup = cgroup;
    return name;
}

static void note(struct cgroup_names *names, uint64_t cgroup, const char *path)
{
    struct name *name = table_find(&names->names, cgroup);

    if (!name)
        name = add(names, cgroup);
    if (!name)
        return;
    if (!name->path)
        name->path = strdup(path);
    name->walk = names->walks;
}

/* Walks the directory and those below it. Owns dir from here on. path is that of this directory, in
 * PATH_BYTES; it is restored. */
static void walk_tree(struct cgroup_names *names, int dir, char *path, int level)
{
    DIR *entries = fdopendir(dir);
    size_t length = strlen(path);
    struct dirent *entry;
    struct stat st;

    if (!entries) {
        close(dir);
        return;
    }
    if (!fstat(dir, &st))
        note(names, st.st_ino, *path ? path : "/");
    while (level < LEVELS && (entry = readdir(entries))) {
        size_t more = strlen(entry->d_name);
        int below;

        if (entry->d_type != DT_DIR || is_dots(entry->d_name) || length + more + 2 > PATH_BYTES)
            continue;
        below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            continue;
        path[length] = '/';
        memcpy(path + length + 1, entry->d_name, more + 1);
        walk_tree(names, below, path, level + 1);
        path[length] = '\0';
    }
    closedir(entries);
}

static void walk(struct cgroup_names *names)
{
    char path[PATH_BYTES] = "";
    int dir;

    if (names->walked || names->told)
        return;
    names->walked = true;
    names->walks++;
    if (!*names->root) {
        note(names, 1, "/"); /* version 1 only: the root of version 2 exists, unmounted */
        return;
    }
    dir = open(names->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        walk_tree(names, dir, path, 0);
}

void cgroup_names_tell(struct cgroup_names *names, uint64_t cgroup, const char *path)
{
    names->told = true;
    note(names, cgroup, path);
}

void cgroup_names_refresh(struct cgroup_names *names)
{
    names->walked = false;
}

const char *cgroup_names_find(struct cgroup_names *names, uint64_t cgroup)
{
    struct name *name = table_find(&names->names, cgroup);

    if (!name) {
        walk(names);
        name = table_find(&names->names, cgroup);
    }
    /* Remembers that the number was not found: it will not come back. */
    if (!name)
        name = add(names, cgroup);
    return name ? name->path : NULL;
}

bool cgroup_names_alive(struct cgroup_names *names, uint64_t cgroup)
{
    struct name *name;

    walk(names);
    name = table_find(&names->names, cgroup);
    return name && name->path && name->walk == names->walks;
}

/* A user who may make cgroups may make and remove them for ever. */
void cgroup_names_drop(struct cgroup_names *names)
{
    if (names->told || names->names.count < FEW + 2 * names->left)
        return;
    walk(names);
    for (size_t i = 0; i < names->names.room;) {
        struct name *name = names->names.slots[i].item;

        if (name && (!name->path || name->walk != names->walks)) {
            free_name(name);
            table_remove_slot(&names->names, &names->names.slots[i]);
        } else {
            i++;
        }
    }
    names->left = names->names.count;
}

/* ---- what a path says ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Finds the container's id in one part of a path: "docker-ID.scope", "ID", "cri-containerd-ID". */
static bool take_container(const char *part, size_t length, char *ret)
{
    for (size_t at = 0; at + HEX_DIGITS <= length; at++) {
        size_t digits = 0;

        if (at && part[at - 1] != '-' && part[at - 1] != ':')
            continue;
        while (at + digits < length && is_hex(part[at + digits]))
            digits++;
        if (digits != HEX_DIGITS || (at + digits < length && part[at + digits] != '.'))
            continue;
        memcpy(ret, part + at, HEX_DIGITS);
        ret[HEX_DIGITS] = '\0';
        return true;
    }
    return false;
}

static bool ends_with(const char *part, size_t length, const char *end)
{
    size_t more = strlen(end);

    return length >= more && !memcmp(part + length - more, end, more);
}

static bool begins_with(const char *part, size_t length, const char *with)
{
    return length >= strlen(with) && !memcmp(part, with, strlen(with));
}

/* Copies a name; as_unit: with systemd's \xHH in it, for '-' and what else a unit's may not have.
 * false: there is none, or it is too long for one. */
static bool copy_name(const char *from, size_t length, bool as_unit, char *ret, size_t size)
{
    size_t used = 0;
    unsigned code;

    for (size_t i = 0; i < length; i++) {
        char digits[3] = "";
        bool escaped = as_unit && from[i] == '\\' && i + 3 < length && from[i + 1] == 'x' &&
                       is_hex(from[i + 2]) && is_hex(from[i + 3]);

        if (used + 1 >= size)
            return false;
        if (escaped) {
            memcpy(digits, from + i + 2, 2);
            code = (unsigned)strtoul(digits, NULL, 16);
            i += 3;
        }
        ret[used++] = escaped ? (char)code : from[i];
    }
    ret[used] = '\0';
    return used && strlen(ret) == used && !strchr(ret, '/');
}

/* Finds the name of a container in one part of a path: of LXC's "lxc.payload.NAME" at the top, or
 * "NAME" in the folder "lxc", and of systemd's "machine-NAME.scope" and
 * "systemd-nspawn@NAME.service". */
static bool take_machine(const char *part, size_t length, const char *folder, char ret[65])
{
    static const struct {
        const char *folder, *before, *behind;
    } forms[] = {{"", "lxc.payload.", ""},
                 {"lxc/", "", ""},
                 {"machine.slice/", "machine-", ".scope"},
                 {"machine.slice/", "systemd-nspawn@", ".service"}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t before = strlen(forms[i].before), behind = strlen(forms[i].behind);
        char name[65];

        if (begins_with(part, length, forms[i].before) &&
            ends_with(part, length, forms[i].behind) && before + behind < length &&
            begins_with(folder, strlen(folder), forms[i].folder) &&
            (*forms[i].folder ? folder + strlen(forms[i].folder) : folder) == part &&
            copy_name(part + before, length - before - behind, *forms[i].behind, name,
                      sizeof(name))) {
            memcpy(ret, name, sizeof(name));
            return true;
        }
    }
    return false;
}

/* Finds the pod's uid: "kubepods-burstable-podUID.slice" with '_' for '-', or "podUID". */
static bool take_pod(const char *part, size_t length, char *ret)
{
    const size_t digits = 36;
    const char *at = memmem(part, length, "pod", 3);
    char uid[37];

    /* "kubepods" has one as well. */
    while (at && at != part && at[-1] != '-')
        at = memmem(at + 1, (size_t)(part + length - at) - 1, "pod", 3);
    if (!at || (size_t)(part + length - at) < 3 + digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        char c = at[3 + i];

        if (dash ? c != '-' && c != '_' : !is_hex(c))
            return false;
        uid[i] = dash ? '-' : c;
    }
    uid[digits] = '\0';
    memcpy(ret, uid, sizeof(uid));
    return true;
}

/* By systemd's rule slices are folders and not cgroups of units; the manager of a user has the
 * user's units below it. */
static bool take_unit(const char *part, size_t length, char *ret, size_t size)
{
    static const char *const kinds[] = {".service", ".scope", ".socket", ".mount", ".swap"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!ends_with(part, length, kinds[i]) || length >= size)
            continue;
        memcpy(ret, part, length);
        ret[length] = '\0';
        return true;
    }
    return false;
}

/* ---- who made it ---- */

static bool is_one_of(const char *part, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == length && !memcmp(part, names[i], length))
            return true;
    }
    return false;
}
#define IS_ONE_OF(part, length, names)                                                             \
    is_one_of(part, length, names, sizeof(names) / sizeof((names)[0]))

/* Where only root makes cgroups, and runtimes put their containers: slices but those of users, and
 * the folders of runtimes that do without systemd. */
static bool is_folder(const char *part, size_t length, bool top)
{
    static const char *const folders[] = {"docker",     "kubepods",      "burstable",
                                          "besteffort", "libpod_parent", "machine",
                                          "k8s.io",     "ecs",           "lxc"};
    char pod[37];

    if (ends_with(part, length, ".slice"))
        return !top || length != strlen("user.slice") || memcmp(part, "user.slice", length) != 0;
    return IS_ONE_OF(part, length, folders) ||
           (length == 39 && !memcmp(part, "pod", 3) && take_pod(part, length, pod));
}

/* Runtimes that have their containers in their own service's cgroup, as "SLICE:RUNTIME:ID". */
static bool is_runtime(const char *part, size_t length)
{
    static const char *const runtimes[] = {
        "containerd.service", "crio.service",        "docker.service",    "k3s.service",
        "k3s-agent.service",  "rke2-server.service", "rke2-agent.service"};

    return IS_ONE_OF(part, length, runtimes);
}

/* A job of Slurm: "job_NUMBER" in the scope of its daemon, or in the folder of version 1. */
static void identify_job(const char *path, struct cgroup_identity *ret)
{
    bool slurm = false;

    path += strspn(path, "/");
    for (bool top = true; *path; top = false) {
        size_t length = strcspn(path, "/");
        bool job = slurm && begins_with(path, length, "job_");

        if (job && strspn(path + 4, "0123456789") == length - 4)
            snprintf(ret->job, sizeof(ret->job), "%.*s",
                     length - 4 < sizeof(ret->job) ? (int)length - 4 : 0, path + 4);
        if (job || (slurm && !begins_with(path, length, "uid_")))
            return;
        if (!slurm) {
            slurm = ends_with(path, length, "slurmstepd.scope") ||
                    (top && begins_with(path, length, "slurm"));
            if (!slurm && !is_folder(path, length, top))
                return;
        }
        path += length + (path[length] == '/');
    }
}

/* The container is the outermost: what is made within it is its own, whatever it is called. So is
 * what a user makes, or a service to whom its cgroup was handed over: there nothing is a container
 * or a pod. */
static void identify_container(const char *path, struct cgroup_identity *ret)
{
    const char *from = path + strspn(path, "/");
    bool runtime = false, top = true;

    while (*path) {
        size_t length = strcspn(path, "/");
        bool folder = is_folder(path, length, top);

        /* In a runtime's service, nothing but its containers. */
        if (length && runtime && !memchr(path, ':', length))
            return;
        if (length && !folder && is_runtime(path, length)) {
            runtime = true;
        } else if (length) {
            if (!folder && !take_container(path, length, ret->container)) {
                take_machine(path, length, from, ret->machine);
                return;
            }
            if (!*ret->pod)
                take_pod(path, length, ret->pod);
            if (!folder)
                return;
        }
        top &= !length;
        path += length + (path[length] == '/');
    }
}

void cgroup_identify(const char *path, struct cgroup_identity *ret)
{
    const char *from = path;
    bool done = false;

    memset(ret, 0, sizeof(*ret));
    while (*path && !done) {
        size_t length = strcspn(path, "/");
        char unit[sizeof(ret->unit)];

        if (length && take_unit(path, length, unit, sizeof(unit))) {
            memcpy(ret->unit, unit, sizeof(unit));
            done = strncmp(unit, "user@", 5) != 0;
        }
        path += length + (path[length] == '/');
    }
    identify_container(from, ret);
    identify_job(from, ret);
}
