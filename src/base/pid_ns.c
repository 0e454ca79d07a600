/* SPDX-License-Identifier: BSD-2-Clause */
#include "pid_ns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"

#define FIRST_PID_NS 0xeffffffcu /* PROC_PID_INIT_INO: its inode on every kernel */

bool in_first_pid_ns(void)
{
    struct stat about;

    return !stat("/proc/self/ns/pid", &about) && about.st_ino == FIRST_PID_NS;
}

/* The line is "NSpid:\t1234\t7": the process's number in the namespace of this /proc, and in
 * each below that one, to its own. If the /proc is of a namespace that is not above the
 * process's, the process has no number in it, and there is no such file. */
int check_proc_numbers(struct prcb_error *err)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    bool other = !file && errno == ENOENT;

    while (file && fgets(line, sizeof(line), file))
        other |= !strncmp(line, "NSpid:", 6) && strchr(line, '\t') != strrchr(line, '\t');
    if (file)
        fclose(file);
    return !other ? 0
                  : prcb_fail(err, -EOPNOTSUPP,
                              "/proc belongs to another pid namespace: mount one for this "
                              "namespace (mount -t proc proc /proc)");
}
