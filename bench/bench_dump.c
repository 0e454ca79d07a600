/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Crash dumps: a triage dump to full output, a fleet of them, and a sparse 64 GiB bitmap dump to
 * full output. The dumps are synthetic (tests/dump/mkdump.py, 16 processors). Figures are those of
 * warm files; medians, and the best and worst beside them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prcb/dump.h>

#define RUNS  31
#define FILES 2000
#define TEXT                                                                                       \
    "version = 10.0.19041\nprocessors = 16\ncpu.*.KernelTime = 60000\ncpu.*.UserTime = 4000\n"     \
    "uptime = 10000000000\n"

static char folder[] = "/tmp/prcb-bench-dump-XXXXXX";

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_dump: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Runs a program with its output thrown away. */
static void run(const char *const argv[])
{
    pid_t child = fork();
    int status, null;

    if (child < 0)
        fail("fork");
    if (!child) {
        null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (waitpid(child, &status, 0) < 0 || status) {
        fprintf(stderr, "bench_dump: %s %s failed\n", argv[0], argv[1]);
        exit(1);
    }
}

static void make(const char *name, const char *text, char *ret, size_t size)
{
    char spec[300];
    FILE *out;

    snprintf(spec, sizeof(spec), "%s/spec", folder);
    snprintf(ret, size, "%s/%s", folder, name);
    out = fopen(spec, "w");
    if (!out || fputs(text, out) < 0 || fclose(out))
        fail(spec);
    run((const char *[]){"python3", BENCH_SOURCE "/../tests/dump/mkdump.py", spec, ret, NULL});
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void report(const char *what, double *seconds, size_t count)
{
    qsort(seconds, count, sizeof(*seconds), compare);
    printf("%-52s %8.2f ms  (%.2f .. %.2f)\n", what, seconds[count / 2] * 1e3, seconds[0] * 1e3,
           seconds[count - 1] * 1e3);
}

static void bench_command(const char *what, const char *const argv[])
{
    double seconds[RUNS];

    run(argv);
    for (size_t i = 0; i < RUNS; i++) {
        double start = now();

        run(argv);
        seconds[i] = now() - start;
    }
    report(what, seconds, RUNS);
}

static void bench_open(const char *what, const char *path)
{
    double seconds[RUNS];

    for (size_t i = 0; i < RUNS; i++) {
        struct prcb_error err;
        struct prcb_dump *d;
        double start = now();

        if (prcb_dump_open(path, NULL, &d, &err)) {
            fprintf(stderr, "bench_dump: %s\n", err.text);
            exit(1);
        }
        prcb_dump_close(d);
        seconds[i] = now() - start;
    }
    report(what, seconds, RUNS);
}

static void bench_fleet(const char *path, const char *jobs)
{
    char name[300];
    double start;

    snprintf(name, sizeof(name), "%s/fleet", folder);
    if (mkdir(name, 0700) && errno != EEXIST)
        fail(name);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "%s/fleet/%d.dmp", folder, i);
        if (link(path, name) && errno != EEXIST)
            fail(name);
    }
    snprintf(name, sizeof(name), "%s/fleet", folder);
    start = now();
    run((const char *[]){BENCH_PRCB, "dump", "--ndjson", "-J", jobs, name, NULL});
    printf("%d triage files to NDJSON, -J %-22s %8.0f files a minute\n", FILES, jobs,
           FILES * 60 / (now() - start));
}

int main(void)
{
    char triage[300], large[300];

    setenv("PRCB", BENCH_PRCB, 1);
    if (!mkdtemp(folder))
        fail(folder);
    make("triage.dmp", "container = triage64\n" TEXT, triage, sizeof(triage));
    make("large.dmp", "container = bitmap-full64\nbits = 0x1000000\n" TEXT, large, sizeof(large));
    if (truncate(large, 64ll << 30))
        fail(large);
    bench_command("starting the process alone: prcb --version",
                  (const char *[]){BENCH_PRCB, "--version", NULL});
    bench_open("triage dump, prcb_dump_open and close", triage);
    bench_command("triage dump, prcb dump", (const char *[]){BENCH_PRCB, "dump", triage, NULL});
    bench_command("triage dump, prcb dump -j",
                  (const char *[]){BENCH_PRCB, "dump", "-j", triage, NULL});
    bench_command("sparse 64 GiB bitmap dump, prcb dump",
                  (const char *[]){BENCH_PRCB, "dump", large, NULL});
    bench_fleet(triage, "1");
    bench_fleet(triage, "2");
    run((const char *[]){"rm", "-r", folder, NULL});
    return 0;
}
