/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Wine finds its parts by where its loader and its ntdll.so lie, so a farm has the directories of
 * the installed one beneath its root, with these two files copied into them and the rest linked.
 */
#include "farm.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "files.h"
#include "pe.h"

#define UNIX_DIR    "x86_64-unix"
#define WINDOWS_DIR "x86_64-windows"
#define DLL         "prcb-nt.dll"
#define DLL_UNIX    "prcb-nt.dll.so"
#define UNIX_NTDLL  "ntdll.so"

#define OURS(name)                                                                                 \
    {                                                                                              \
        name, "prcb-nt." name, NULL                                                                \
    }
#define INSTEAD(name)                                                                              \
    {                                                                                              \
        name, "prcb-nt.wine_" name, "prcb_wine_" name                                              \
    }
#define ZW(name)                                                                                   \
    {                                                                                              \
        "Zw" name, "prcb-nt.wine_Nt" name, NULL                                                    \
    }

/* What Wine's own would call is answered by the call in that one's place. */
#define AS(name, ours)                                                                             \
    {                                                                                              \
        name, "prcb-nt.wine_" ours, NULL                                                           \
    }

static const struct pe_forward kernel32_rows[] = {
    OURS("EnableThreadProfiling"),       OURS("DisableThreadProfiling"),
    OURS("QueryThreadProfiling"),        OURS("ReadThreadProfilingData"),
    OURS("QueryThreadCycleTime"),        OURS("QueryProcessCycleTime"),
    OURS("QueryIdleProcessorCycleTime"), OURS("QueryIdleProcessorCycleTimeEx"),
};
static const struct pe_forward kernelbase_rows[] = {
    OURS("QueryThreadCycleTime"),
    OURS("QueryProcessCycleTime"),
    OURS("QueryIdleProcessorCycleTime"),
    OURS("QueryIdleProcessorCycleTimeEx"),
};
static const struct pe_forward ntdll_rows[] = {
    OURS("RtlEnableThreadProfiling"),
    OURS("RtlDisableThreadProfiling"),
    OURS("RtlQueryThreadProfiling"),
    OURS("RtlReadThreadProfilingData"),
    INSTEAD("NtQuerySystemInformation"),
    ZW("QuerySystemInformation"),
    INSTEAD("NtQuerySystemInformationEx"),
    ZW("QuerySystemInformationEx"),
    INSTEAD("NtPowerInformation"),
    ZW("PowerInformation"),
    INSTEAD("NtQueryInformationThread"),
    ZW("QueryInformationThread"),
    INSTEAD("NtQueryInformationProcess"),
    ZW("QueryInformationProcess"),
    AS("RtlGetNativeSystemInformation", "NtQuerySystemInformation"),
};
static const struct pe_forward kernel_rows[] = {
    OURS("KeSetHardwareCounterConfiguration"),
    OURS("KeQueryHardwareCounterConfiguration"),
    OURS("HalAllocateHardwareCounters"),
    OURS("HalFreeHardwareCounters"),
};

/* hal.dll and ntoskrnl.exe may be lacking: they are for drivers. */
static const struct module {
    const char *name;
    const struct pe_forward *rows;
    size_t count;
    bool optional;
} rewritten[] = {
#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])
    {"kernel32.dll", ROWS(kernel32_rows), false}, {"kernelbase.dll", ROWS(kernelbase_rows), false},
    {"ntdll.dll", ROWS(ntdll_rows), false},       {"ntoskrnl.exe", ROWS(kernel_rows), true},
    {"hal.dll", ROWS(kernel_rows), true},
};
#define REWRITTEN (sizeof(rewritten) / sizeof(rewritten[0]))

static const struct module *find_module(const char *name)
{
    for (size_t i = 0; i < REWRITTEN; i++) {
        if (!strcmp(rewritten[i].name, name))
            return &rewritten[i];
    }
    return NULL;
}

/* ---- paths ---- */

static int join(char ret[PATH_MAX], struct prcb_error *err, const char *a, const char *b,
                const char *c)
{
    int size = snprintf(ret, PATH_MAX, "%s%s%s%s", a, b, c ? "/" : "", c ? c : "");

    return size < PATH_MAX ? 0 : prcb_fail(err, -ENAMETOOLONG, "%s: the path is too long", a);
}

static int fail_path(struct prcb_error *err, const char *path)
{
    int code = -errno;

    return prcb_fail(err, code, "%s: %s", path, strerror(-code));
}

static int link_to(const char *target, const char *path, struct prcb_error *err)
{
    return symlink(target, path) ? fail_path(err, path) : 0;
}

/* ---- one file ---- */

static int copy(const char *from, const char *to, mode_t mode, struct prcb_error *err)
{
    void *bytes;
    size_t size;
    int result = file_read(from, &bytes, &size, err);

    if (result)
        return result;
    result = file_write(to, bytes, size, mode, err);
    free(bytes);
    return result;
}

static int rewrite(const char *from, const char *to, const struct module *module,
                   struct prcb_error *err)
{
    void *bytes, *made = NULL;
    size_t size, made_size;
    int result = file_read(from, &bytes, &size, err);

    if (result)
        return result;
    result = pe_add_forwards(bytes, size, module->rows, module->count, &made, &made_size, err);
    if (result)
        prcb_error_prepend(err, "%s: ", from);
    else
        result = file_write(to, made, made_size, 0600, err);
    free(bytes);
    free(made);
    return result;
}

/* ---- directories: each entry of the installed one is linked, but for some ---- */

typedef int (*entry_fn)(const char *name, const char *from, const char *to, struct prcb_error *err);

static int each_entry(const char *from, const char *to, entry_fn fn, struct prcb_error *err)
{
    DIR *dir = opendir(from);
    struct dirent *entry;
    int result;

    if (!dir)
        return fail_path(err, from);
    result = make_directories(to, err);
    while (!result && (entry = readdir(dir))) {
        char source[PATH_MAX], target[PATH_MAX];

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        result = join(source, err, from, "", entry->d_name);
        if (!result)
            result = join(target, err, to, "", entry->d_name);
        if (!result)
            result = fn(entry->d_name, source, target, err);
    }
    closedir(dir);
    return result;
}

/* Of a directory of programs, which may hold all programs of the system, only those that Wine
 * itself starts are linked. */
static int grow_program(const char *name, const char *from, const char *to, struct prcb_error *err)
{
    if (!strcmp(name, "wine64") || !strcmp(name, "wine"))
        return copy(from, to, 0700, err);
    return strncmp(name, "wine", 4) ? 0 : link_to(from, to, err);
}

static int grow_unix(const char *name, const char *from, const char *to, struct prcb_error *err)
{
    if (!strcmp(name, UNIX_NTDLL))
        return copy(from, to, 0600, err);
    return strcmp(name, DLL_UNIX) ? link_to(from, to, err) : 0;
}

static int grow_windows(const char *name, const char *from, const char *to, struct prcb_error *err)
{
    const struct module *module = find_module(name);

    if (module)
        return rewrite(from, to, module, err);
    return strcmp(name, DLL) ? link_to(from, to, err) : 0;
}

static int grow_module(const char *name, const char *from, const char *to, struct prcb_error *err)
{
    if (!strcmp(name, UNIX_DIR))
        return each_entry(from, to, grow_unix, err);
    if (!strcmp(name, WINDOWS_DIR))
        return each_entry(from, to, grow_windows, err);
    return link_to(from, to, err);
}

static int grow_data(const char *root, const char *data, struct prcb_error *err)
{
    char to[PATH_MAX], *name;
    int result = join(to, err, root, data, NULL);

    if (result)
        return result;
    name = strrchr(to, '/');
    *name = '\0';
    result = make_directories(to, err);
    *name = '/';
    return result ? result : link_to(data, to, err);
}

static int grow_dll(const char *modules, const char *dll, const char *arch, const char *file,
                    struct prcb_error *err)
{
    char from[PATH_MAX], dir[PATH_MAX], to[PATH_MAX];
    int result = join(from, err, dll, "", file);

    if (!result)
        result = join(dir, err, modules, "", arch);
    if (!result)
        result = join(to, err, dir, "", file);
    return result ? result : link_to(from, to, err);
}

static int check_modules(const char *modules, struct prcb_error *err)
{
    for (size_t i = 0; i < REWRITTEN; i++) {
        char dir[PATH_MAX], path[PATH_MAX];
        int result = join(dir, err, modules, "", WINDOWS_DIR);

        if (!result)
            result = join(path, err, dir, "", rewritten[i].name);
        if (result)
            return result;
        if (!rewritten[i].optional && access(path, F_OK))
            return prcb_fail(err, -ENOENT, "%s/%s/%s is missing: Wine 7.0 or later is wanted",
                             modules, WINDOWS_DIR, rewritten[i].name);
    }
    return 0;
}

static int grow(const struct wine *wine, const char *root, const char *dll, struct prcb_error *err)
{
    char bin[PATH_MAX], modules[PATH_MAX];
    int result = check_modules(wine->modules, err);

    if (!result)
        result = join(bin, err, root, wine->bin, NULL);
    if (!result)
        result = join(modules, err, root, wine->modules, NULL);
    if (!result)
        result = each_entry(wine->bin, bin, grow_program, err);
    if (!result)
        result = each_entry(wine->modules, modules, grow_module, err);
    if (!result && wine->data[0])
        result = grow_data(root, wine->data, err);
    if (!result)
        result = grow_dll(modules, dll, UNIX_DIR, DLL_UNIX, err);
    return result ? result : grow_dll(modules, dll, WINDOWS_DIR, DLL, err);
}

/* ---- which farm: its name tells what it was made of ---- */

#define FNV_START 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static void mix(uint64_t *key, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *key = (*key ^ ((const unsigned char *)bytes)[i]) * FNV_PRIME;
}

/* Packages set times and sizes again with each version. */
static int mix_file(uint64_t *key, const char *dir, const char *name, bool optional,
                    struct prcb_error *err)
{
    char path[PATH_MAX];
    struct stat stat;
    int64_t facts[4] = {0};
    int result = join(path, err, dir, "", name);

    if (result)
        return result;
    if (!lstat(path, &stat) && S_ISLNK(stat.st_mode))
        result = access(path, F_OK);
    if (result || lstat(path, &stat)) {
        if (!optional)
            return fail_path(err, path);
    } else {
        facts[0] = stat.st_size;
        facts[1] = stat.st_mtim.tv_sec;
        facts[2] = stat.st_mtim.tv_nsec;
        facts[3] = (int64_t)stat.st_ino;
    }
    mix(key, path, strlen(path));
    mix(key, facts, sizeof(facts));
    return 0;
}

static void mix_rows(uint64_t *key, const struct module *module)
{
    for (size_t i = 0; i < module->count; i++) {
        mix(key, module->rows[i].name, strlen(module->rows[i].name));
        mix(key, module->rows[i].target, strlen(module->rows[i].target));
    }
}

static int find_key(const struct wine *wine, const char *dll, uint64_t *ret, struct prcb_error *err)
{
    char windows[PATH_MAX];
    int result = join(windows, err, wine->modules, "", WINDOWS_DIR);

    *ret = FNV_START;
    mix(ret, PRCB_VERSION, sizeof(PRCB_VERSION));
    mix(ret, wine->loader, strlen(wine->loader));
    for (size_t i = 0; i < REWRITTEN; i++)
        mix_rows(ret, &rewritten[i]);
    if (!result)
        result = mix_file(ret, wine->bin, strrchr(wine->loader, '/') + 1, false, err);
    if (!result)
        result = mix_file(ret, wine->modules, UNIX_DIR "/" UNIX_NTDLL, false, err);
    for (size_t i = 0; i < REWRITTEN && !result; i++)
        result = mix_file(ret, windows, rewritten[i].name, true, err);
    if (!result)
        result = mix_file(ret, dll, DLL_UNIX, false, err);
    return result ? result : mix_file(ret, dll, DLL, false, err);
}

/* ---- the cache ---- */

static int cache_parent(char ret[PATH_MAX], struct prcb_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const struct passwd *user;

    if (cache && *cache == '/') /* the specification says to ignore any other */
        return join(ret, err, cache, "", NULL);
    if (!home || *home != '/') {
        user = getpwuid(geteuid());
        home = user && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
    }
    if (!home)
        return prcb_fail(err, -ENOENT,
                         "no home directory: set XDG_CACHE_HOME to a directory that "
                         "links and copies of Wine may be kept in");
    return join(ret, err, home, "/.cache", NULL);
}

int farm_cache(char ret[PATH_MAX], struct prcb_error *err)
{
    char parent[PATH_MAX];
    struct stat stat;
    int result = cache_parent(parent, err);

    if (!result)
        result = join(ret, err, parent, "", "prcb-wine");
    if (!result && (result = make_directories(ret, err)))
        prcb_error_prepend(err, "cannot keep a farm (XDG_CACHE_HOME says where): ");
    if (result)
        return result;
    /* Programs there are run, so nobody else may write to it. */
    if (lstat(ret, &stat))
        return fail_path(err, ret);
    if (!S_ISDIR(stat.st_mode) || stat.st_uid != geteuid() || stat.st_mode & 022)
        return prcb_fail(err, -EPERM,
                         "%s must be a directory of yours that no other user may write "
                         "to: what lies there is run. Remove it, or set XDG_CACHE_HOME",
                         ret);
    return 0;
}

/* Farms of the same Wine and the same DLL that were made of other versions of them. */
static void remove_older(const char *cache, const char *kind, const char *name)
{
    DIR *dir = opendir(cache);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[PATH_MAX];

        if (!strncmp(entry->d_name, kind, strlen(kind)) && strcmp(entry->d_name, name) &&
            !strchr(entry->d_name, '~') && !join(path, NULL, cache, "", entry->d_name))
            remove_tree(path);
    }
    if (dir)
        closedir(dir);
}

static int make_new(const struct wine *wine, const char *root, const char *dll,
                    struct prcb_error *err)
{
    char draft[PATH_MAX];
    int result = join(draft, err, root, "~XXXXXX", NULL);

    if (result)
        return result;
    if (!mkdtemp(draft))
        return fail_path(err, draft);
    result = grow(wine, draft, dll, err);
    /* Another process was faster and has made the same. */
    if (!result && rename(draft, root) && errno != EEXIST && errno != ENOTEMPTY)
        result = fail_path(err, root);
    remove_tree(draft);
    return result;
}

int farm_make(const struct wine *wine, const char *cache, const char *dll, bool again,
              char ret_loader[PATH_MAX], struct prcb_error *err)
{
    uint64_t key = 0, kind = FNV_START;
    char name[64], prefix[32], root[PATH_MAX];
    int result = find_key(wine, dll, &key, err);

    if (result)
        return result;
    mix(&kind, wine->loader, strlen(wine->loader));
    mix(&kind, dll, strlen(dll));
    snprintf(prefix, sizeof(prefix), "%016llx-", (unsigned long long)kind);
    snprintf(name, sizeof(name), "%s%016llx", prefix, (unsigned long long)key);
    result = join(root, err, cache, "", name);
    if (!result && again)
        remove_tree(root);
    if (!result && access(root, F_OK)) {
        result = make_new(wine, root, dll, err);
        if (!result)
            remove_older(cache, prefix, name);
    }
    return result ? result : join(ret_loader, err, root, wine->loader, NULL);
}
