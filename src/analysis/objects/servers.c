/* SPDX-License-Identifier: BSD-2-Clause */
#include "servers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "living.h"
#include "now.h"
#include "reach.h"

#define FRESH_NS 1000000000u

/* What such a descriptor is called, and which line of its fdinfo must have a number that is not 0,
 * or tells which it is. */
static const struct {
    const char *link, *line;
} kinds[] = {
    [SERVER_SECCOMP] = {"anon_inode:seccomp notify", NULL},
    [SERVER_USERFAULT] = {"anon_inode:[userfaultfd]", "\ntotal:"},
    [SERVER_PTY] = {"ptmx", "\ntty-index:"},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void add(struct servers *s, enum server_kind kind, pid_t pid, int number)
{
    if (s->count < SERVERS_MOST)
        s->rows[s->count++] = (struct server){kind, pid, number};
}

/* Takes what the descriptors of a process that has such ones tell. */
static void look_at_infos(struct servers *s, pid_t pid, bool wanted[KINDS])
{
    const struct dirent *file;
    char path[64], name[128], text[1024];
    DIR *files;

    snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
    files = opendir(path);
    while (files && (file = readdir(files))) {
        ssize_t length;

        if (*file->d_name == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%.40s", path, file->d_name);
        length = reach_read(pid, name, text, sizeof(text) - 1);
        text[length > 0 ? length : 0] = '\0';
        for (size_t i = 0; i < KINDS; i++) {
            const char *line = wanted[i] && kinds[i].line ? strstr(text, kinds[i].line) : NULL;
            int number = line ? (int)strtol(line + strlen(kinds[i].line), NULL, 10) : 0;

            if (line && (i == SERVER_PTY || number > 0))
                add(s, (enum server_kind)i, pid, i == SERVER_PTY ? number : 0);
        }
    }
    if (files)
        closedir(files);
}

static bool is_link(const char *link, const char *name)
{
    size_t length = strlen(link), ends = strlen(name);

    return length >= ends && !strcmp(link + length - ends, name);
}

static void look_at_process(struct servers *s, pid_t pid)
{
    bool wanted[KINDS] = {false};
    char path[64], *links;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)living_thread(pid));
    length = reach_links(pid, path, &links);
    for (const char *link = links; link && link < links + length; link += strlen(link) + 1) {
        link++; /* the digit of its mode */
        for (size_t i = 0; i < KINDS; i++)
            wanted[i] |= is_link(link, kinds[i].link);
    }
    free(links);
    if (wanted[SERVER_SECCOMP])
        add(s, SERVER_SECCOMP, pid, 0);
    if (wanted[SERVER_USERFAULT] || wanted[SERVER_PTY])
        look_at_infos(s, pid, wanted);
}

static void read_all(struct servers *s)
{
    const struct dirent *entry;
    DIR *processes = opendir("/proc");

    s->count = 0;
    while (processes && (entry = readdir(processes))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            look_at_process(s, pid);
    }
    if (processes)
        closedir(processes);
    s->until = now_ns() + FRESH_NS;
}

static bool is_like(const struct server *row, enum server_kind kind, int number)
{
    return row->kind == kind && row->number == number;
}

bool servers_find(struct servers *s, enum server_kind kind, int number, pid_t pid,
                  struct holder *ret)
{
    struct holder holder = {.pid = 0};
    unsigned others = 0;
    bool above = false;

    if (now_ns() >= s->until)
        read_all(s);
    for (size_t i = 0; i < s->count; i++) {
        const struct server *row = &s->rows[i];

        if (!is_like(row, kind, number) || row->pid == holder.pid)
            continue;
        others += holder.pid && holder.pid != pid && row->pid != pid;
        /* The process itself only if there is nobody else: children have what it has open. */
        if (!holder.pid || holder.pid == pid ||
            (row->pid != pid && !above && holder_descends(pid, row->pid)))
            holder.pid = row->pid;
        above = holder_descends(pid, holder.pid);
    }
    if (!holder.pid)
        return false;
    holder.tid = holder.pid;
    comm_read(holder.pid, holder.pid, holder.comm, sizeof(holder.comm));
    holder_activity(holder.pid, holder.detail, sizeof(holder.detail));
    if (others && !above)
        snprintf(holder.detail, sizeof(holder.detail), "or one of %u more that may be it", others);
    *ret = holder;
    return true;
}
