/* SPDX-License-Identifier: BSD-2-Clause */
#include "living.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read_file.h"

/* The line is "State:\tZ (zombie)"; a newline in a name is escaped. It is not read from stat,
 * which waits for a process that executes a program to be done with that (since Linux 6.18),
 * including its closing of files for others. */
static bool has_ended(pid_t pid, pid_t tid)
{
    char path[64], text[256];
    const char *state;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    length = read_start(path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    state = strstr(text, "\nState:\t");
    return length <= 0 || (state && (state[8] == 'Z' || state[8] == 'X'));
}

pid_t status_number(pid_t tid, const char *name)
{
    char path[64], text[2048], line[32];
    const char *at;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    length = read_start(path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    snprintf(line, sizeof(line), "\n%s:\t", name);
    at = strstr(text, line);
    return at ? (pid_t)strtol(at + strlen(line), NULL, 10) : 0;
}

pid_t living_thread(pid_t pid)
{
    const struct dirent *entry;
    pid_t ret = pid;
    char path[64];
    DIR *tasks;

    if (!has_ended(pid, pid))
        return pid;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && ret == pid && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (tid > 0 && tid != pid && !has_ended(pid, tid))
            ret = tid;
    }
    if (tasks)
        closedir(tasks);
    return ret;
}
