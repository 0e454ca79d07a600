/* SPDX-License-Identifier: BSD-2-Clause */
#include "debug_fetch.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "child_end.h"
#include "debug_file.h"
#include "descendants.h"
#include "names.h"
#include "now.h"
#include "program_path.h"
#include "reach.h"

#define LIBRARY    "libdebuginfod.so.1"
#define FILES_MOST 128
#define ALL_MS     60000 /* for all files together */
#define ENDING_MS  2000  /* the library has a little less, so that it removes what it began */
#define FILE_BYTES (UINT64_C(2) << 30) /* what is read of a file is mapped: no larger ones */

/* A file that code is mapped from. */
struct file {
    char *path;
    uint64_t device, inode;
};

struct files {
    struct file *rows;
    size_t count;
};

/* ---- which files ---- */

static void add(struct files *files, const char *path, uint64_t device, uint64_t inode)
{
    struct file row = {NULL, device, inode};

    for (size_t i = 0; i < files->count; i++) {
        if (files->rows[i].device == device && files->rows[i].inode == inode)
            return;
    }
    row.path = files->count < FILES_MOST ? strdup(path) : NULL;
    if (row.path && array_append(files->rows, files->count, row))
        free(row.path);
}

static void add_process(struct files *files, pid_t pid)
{
    char path[64], *text, *rest;
    const char *line;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    reach_text(pid, path, &text);
    rest = text;
    while (rest && (line = strsep(&rest, "\n"))) {
        unsigned high, low;
        uint64_t inode;
        int at = 0;

        if (sscanf(line, "%*x-%*x %*2cx%*c %*x %x:%x %" SCNu64 " %n", &high, &low, &inode, &at) ==
                3 &&
            at && line[at] == '/')
            add(files, line + at, makedev(high, low), inode);
    }
    free(text);
}

static void add_program(struct files *files, const char *name)
{
    char path[PATH_MAX];
    struct stat about;

    if (!program_find(name, path) && !stat(path, &about))
        add(files, path, about.st_dev, about.st_ino);
}

static void add_targets(struct files *files, const struct stat_options *targets)
{
    const struct cli_ids *ids = &targets->pids;
    pid_t *below = NULL;
    size_t count = targets->below ? descendants_find(ids->ids, ids->count, &below) : 0;

    if (targets->command && !stat_options_have_targets(targets))
        add_program(files, targets->command[0]);
    for (size_t i = 0; i < ids->count; i++)
        add_process(files, ids->ids[i]);
    for (size_t i = 0; below && i < count; i++)
        add_process(files, below[i]);
    for (size_t i = 0; i < targets->tids.count; i++)
        add_process(files, targets->tids.ids[i]);
    for (size_t i = 0; i < targets->cgroup_count; i++) {
        char path[4096];
        FILE *procs;
        int pid;

        snprintf(path, sizeof(path), "%s/cgroup.procs", targets->cgroups[i]);
        procs = fopen(path, "re");
        while (procs && fscanf(procs, "%d", &pid) == 1)
            add_process(files, pid);
        if (procs)
            fclose(procs);
    }
    free(below);
}

/* ---- one file ---- */

/* The build id is read where symbols are: by a process that has nothing to lose. */
static bool read_build_id(struct namer *namer, const struct file *file, char *ret, size_t size)
{
    struct timespec now;
    struct names names;
    struct names_source source = {.kind = NAMES_ELF,
                                  .file = file->path,
                                  .build_id = "",
                                  .device = file->device,
                                  .inode = file->inode,
                                  .uid = -1};

    clock_gettime(CLOCK_REALTIME, &now);
    source.here_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (names_find(namer, &source, NULL, 0, &names))
        return false;
    snprintf(ret, size, "%s", names.build_id);
    names_free(&names);
    return *ret != '\0';
}

static bool is_here(const char *build_id)
{
    int place = debug_file_open(build_id, true);

    if (place >= 0)
        close(place);
    return place >= 0;
}

/* Returns NULL if this machine has none, or this prcb opens no libraries. */
static void *open_library(void)
{
#ifdef PRCB_STATIC
    return NULL;
#else
    return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
#endif
}

typedef void *(*begin_fn)(void);
typedef int (*find_fn)(void *client, const unsigned char *id, int length, char **ret_path);

static void *function(void *library, const char *name, void *ret)
{
    void *found = library ? dlsym(library, name) : NULL;

    memcpy(ret, &found, sizeof(found));
    return found;
}

/* So that no server can fill the disk: writing more fails, and the library removes the file. */
static bool limit_file(void)
{
    const struct rlimit most = {FILE_BYTES, FILE_BYTES};

    return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && !setrlimit(RLIMIT_FSIZE, &most);
}

static bool limit_time(uint64_t ms)
{
    char seconds[24];

    snprintf(seconds, sizeof(seconds), "%" PRIu64, ms / 1000 + 1);
    return !setenv("DEBUGINFOD_MAXTIME", seconds, 0);
}

/* Fetches one file, in a child. Returns its exit status. */
static int fetch(const char *build_id, uint64_t ms)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    void *library = open_library();
    begin_fn begin;
    find_fn find;
    char *path;
    void *client;

    if (!function(library, "debuginfod_begin", &begin) ||
        !function(library, "debuginfod_find_debuginfo", &find) || !limit_file() ||
        !limit_time(ms) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_capset, &head, none))
        return 1;
    client = begin();
    return !client || find(client, (const unsigned char *)build_id, 0, &path) < 0;
}

/* Returns false when the time is over. */
static bool fetch_in_child(const char *build_id, uint64_t deadline)
{
    uint64_t now = now_ns(), ms = now < deadline ? (deadline - now) / 1000000 + 1 : 0;
    pid_t pid = ms ? fork() : -1;
    bool ended;

    if (!pid)
        _exit(fetch(build_id, ms));
    ended = pid > 0 && child_end(pid, (unsigned)ms + ENDING_MS, NULL);
    if (pid > 0 && !ended) {
        kill(pid, SIGKILL);
        child_end(pid, 1000, NULL);
    }
    return ended && now_ns() < deadline;
}

/* ---- all ---- */

int debug_fetch_check(const struct cli_command *command)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    char folder[4096];
    void *library;

    if (!urls || !urls[strspn(urls, " ")])
        return cli_usage_error(command, "--debuginfod: DEBUGINFOD_URLS names no server (sudo keeps "
                                        "it with --preserve-env=DEBUGINFOD_URLS)");
    if (!debug_file_cache(folder, sizeof(folder)))
        return cli_usage_error(command, "--debuginfod: there is no folder to keep what is fetched: "
                                        "set DEBUGINFOD_CACHE_PATH or HOME");
    library = open_library();
    if (!library)
        return cli_error(command, "--debuginfod needs elfutils' " LIBRARY
                                  " (Debian: libdebuginfod1), and a prcb that opens libraries");
    dlclose(library);
    return CLI_OK;
}

void debug_fetch(const struct cli_command *command, const struct stat_options *targets)
{
    uint64_t deadline = now_ns() + ALL_MS * UINT64_C(1000000);
    struct namer namer = {.wasted_count = 0};
    struct files files = {.count = 0};
    size_t here = 0, fetched = 0;
    char build_id[129];
    bool in_time = true;

    add_targets(&files, targets);
    for (size_t i = 0; i < files.count; i++) {
        if (!in_time || !read_build_id(&namer, &files.rows[i], build_id, sizeof(build_id)))
            continue;
        if (is_here(build_id)) {
            here++;
            continue;
        }
        in_time = fetch_in_child(build_id, deadline);
        fetched += is_here(build_id);
    }
    cli_warn(command, "debug information of %zu files: %zu fetched, %zu were there%s", files.count,
             fetched, here, in_time ? "" : "; the servers took too long");
    for (size_t i = 0; i < files.count; i++)
        free(files.rows[i].path);
    free(files.rows);
}
