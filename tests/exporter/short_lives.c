/* SPDX-License-Identifier: BSD-2-Clause
 *
 * short_lives CGROUP COUNT: enters the cgroup; after a line on standard input two processes have so
 * many children together, one after the other, that end at once. Prints the seconds that took, and
 * what all of them used: seconds of processors and switches, by getrusage. Ends with its input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "../bpf/short_life.h"

#define PARENTS 2

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int parent(unsigned long count)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (count--) {
        if (short_life())
            return 1;
    }
    return 0;
}

static void add(int who, double sign, double *run, double *switches)
{
    struct rusage used;

    getrusage(who, &used);
    *run += sign * ((double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
    *switches += sign * (double)(used.ru_nvcsw + used.ru_nivcsw);
}

int main(int argc, char **argv)
{
    unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    double begin, run = 0, switches = 0;
    char path[4096];
    FILE *file;

    if (!count)
        return 2;
    snprintf(path, sizeof(path), "%s/cgroup.procs", argv[1]);
    file = fopen(path, "we");
    if (!file || fputs("0", file) < 0 || fclose(file) || nice(5) == -1) /* its reader goes first */
        return 1;
    if (getchar() == EOF)
        return 0;
    begin = seconds();
    add(RUSAGE_SELF, -1, &run, &switches);
    for (int i = 0; i < PARENTS; i++) {
        pid_t pid = fork();

        if (!pid)
            _exit(parent(count / PARENTS));
        if (pid < 0)
            return 1;
    }
    for (int i = 0, status; i < PARENTS; i++) {
        if (wait(&status) < 0 || status)
            return 1;
    }
    add(RUSAGE_SELF, 1, &run, &switches);
    add(RUSAGE_CHILDREN, 1, &run, &switches);
    printf("%f %f %.0f\n", seconds() - begin, run, switches);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
