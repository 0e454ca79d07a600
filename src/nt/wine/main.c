/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb-wine: runs a Windows program in a farm of the installed Wine.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm.h"
#include "files.h"
#include "options.h"
#include "pe.h"
#include "read_file.h"

#define FAILED     125 /* as env(1) and others: not the program's own status */
#define CANNOT_RUN 126

static int failed(const struct prcb_error *err)
{
    fprintf(stderr, "prcb-wine: %s\n", err->text);
    return FAILED;
}

/* Beside this program in a build directory, else where it is installed. */
static int find_dll(char ret[PATH_MAX], struct prcb_error *err)
{
    char path[PATH_MAX + 32];
    ssize_t size = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    char *slash;

    ret[size > 0 ? size : 0] = '\0';
    slash = strrchr(ret, '/');
    if (slash) {
        *slash = '\0';
        snprintf(path, sizeof(path), "%s/prcb-nt.dll.so", ret);
        if (!access(path, R_OK))
            return 0;
    }
    snprintf(ret, PATH_MAX, "%s", PRCB_WINE_DIR);
    if (!access(PRCB_WINE_DIR "/prcb-nt.dll.so", R_OK))
        return 0;
    err->code = -ENOENT;
    snprintf(err->text, sizeof(err->text),
             "%s/prcb-nt.dll.so: %s: is prcb-wine installed as a whole?", PRCB_WINE_DIR,
             strerror(ENOENT));
    return -ENOENT;
}

/* A name that is no file here is passed to Wine: C:\..., winecfg. */
static bool is_for_32_bits(const char *program)
{
    unsigned char head[4096];
    ssize_t size = read_start(program, head, sizeof(head));

    return size > 0 && pe_machine(head, (size_t)size) == PE_MACHINE_I386;
}

static int run(const char *loader, char **argv)
{
    if (is_for_32_bits(argv[0])) {
        fprintf(stderr,
                "prcb-wine: %s is a 32-bit program, and 64-bit ones are served here: build it for "
                "64 bits, or run it with wine, without these figures\n",
                argv[0]);
        return CANNOT_RUN;
    }
    unsetenv("WINELOADER"); /* would lead out of the farm again */
    argv[-1] = (char *)loader;
    execv(loader, argv - 1);
    fprintf(stderr, "prcb-wine: %s: %s\n", loader, strerror(errno));
    return CANNOT_RUN;
}

struct choice {
    bool farm, rebuild, clean;
};

#define AT(member) .at = offsetof(struct choice, member)
static const struct cli_option rows[] = {
    {0, "farm", NULL, "print where the links and copies of Wine are, and make them", AT(farm)},
    {0, "rebuild", NULL, "remake them before the program is run", AT(rebuild)},
    {0, "clean", NULL, "remove them, of all versions of Wine, and do nothing else", AT(clean)},
    {0},
};

static const struct cli_command command = {
    .program = "prcb-wine",
    .synopsis = "[options] PROGRAM.EXE [ARGUMENT...]",
    .description =
        "Runs a 64-bit Windows program with the Wine that is installed, and with prcb's\n"
        "EnableThreadProfiling, NtQuerySystemInformation and their like in place of Wine's.\n"
        "\n"
        "PRCB_WINE: the loader of another Wine (wine64). WINEPREFIX and Wine's other variables\n"
        "mean what they mean to Wine. XDG_CACHE_HOME: where links and copies are kept.",
    .options = rows,
    .examples = "  prcb-wine probe.exe               run probe.exe\n"
                "  prcb stat -p $(pgrep probe.exe)   the same threads as Linux sees them\n",
    .manual = "prcb-wine(1)",
};

static int serve(const struct choice *choice, char **argv)
{
    char cache[PATH_MAX], dll[PATH_MAX], loader[PATH_MAX];
    const char *wanted = getenv("PRCB_WINE");
    struct prcb_error err = {0};
    struct wine wine;

    if (farm_cache(cache, &err))
        return failed(&err);
    if (choice->clean)
        return remove_tree(cache) ? FAILED : 0;
    if (find_dll(dll, &err) || wine_find(wanted && *wanted ? wanted : NULL, &wine, &err) ||
        farm_make(&wine, cache, dll, choice->rebuild, loader, &err))
        return failed(&err);
    if (choice->farm)
        return puts(loader) < 0 || fflush(stdout) ? FAILED : 0;
    if (prefix_prepare(dll, &err))
        return failed(&err);
    return run(loader, argv);
}

int main(int argc, char **argv)
{
    struct cli_parser parser = {.command = &command, .argc = argc, .argv = argv};
    struct choice choice = {0};
    int status;

    if (cli_take_all(&parser, &choice, &status))
        return status ? FAILED : 0;
    if (parser.index == argc && !choice.farm && !choice.clean) {
        cli_usage_error(&command, "no program is named; see prcb-wine --help");
        return FAILED;
    }
    return serve(&choice, argv + parser.index);
}
