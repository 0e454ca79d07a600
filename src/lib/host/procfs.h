/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What /proc says about threads. Parsers take text and do no I/O; readers take an
 * opened root ("/proc", or a recorded tree in tests) and hand the text to a
 * parser. No judgement on what the figures mean: that is tier_perf.c's.
 *
 * Errors   0 or -errno, results unchanged on failure. Parsers: -EBADMSG for text
 *          that is not what the kernel writes. Readers also: -ESRCH for a thread
 *          that is not there (or that hidepid=2 hides), -EPERM for one that may not
 *          be looked at, -EMFILE and the like from open.
 * Threads  Parsers are pure. A struct procfs belongs to one caller at a time.
 */
#ifndef PRCB_HOST_PROCFS_H
#define PRCB_HOST_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- parsers ---- */

/* These come from /proc/PID/task/TID/stat. */
struct procfs_stat {
    pid_t tid;
    char comm[16]; /* cut off after 15 bytes (names of kernel workers are longer there) */
    char state;    /* R S D T t Z X I ... */
    pid_t ppid;    /* the process that created its process; 0: the kernel, or out of sight */
    uint32_t flags;
    uint64_t user, kernel; /* time it ran, in clock ticks (10 ms) */
    uint64_t start;        /* when it was created, in clock ticks since boot */
};
#define PROCFS_KTHREAD 0x00200000u /* flags: a kernel thread */

int procfs_parse_stat(const char *text, size_t length, struct procfs_stat *ret);

/* These come from .../status. */
struct procfs_status {
    pid_t tgid;
    uint64_t voluntary; /* context switches since its creation */
    uint64_t involuntary;
};

int procfs_parse_status(const char *text, size_t length, struct procfs_status *ret);

/* These come from .../schedstat. */
struct procfs_schedstat {
    uint64_t run_ns;   /* on a processor; up to a tick behind while it is on one */
    uint64_t ready_ns; /* waited for a processor; complete up to its last switch in */
    uint64_t arrivals; /* switches in */
};

int procfs_parse_schedstat(const char *text, size_t length, struct procfs_schedstat *ret);

/* The next number of a list separated by white space (children, cgroup.threads,
 * cgroup.procs, tasks); 0 stands there for a thread of another pid namespace.
 * Moves *at on. 1: *ret is a number; 0: the text has ended; -EBADMSG. */
int procfs_parse_pid(const char **at, const char *end, pid_t *ret);

/* ---- lists of thread numbers ---- */

/* Zero-initialised is empty. */
struct pid_list {
    pid_t *items;
    size_t count, room;
};

int pid_list_add(struct pid_list *list, pid_t pid); /* 0 or -ENOMEM */
void pid_list_free(struct pid_list *list);          /* and leaves it empty */

/* ---- readers ---- */

/* An opened root and the buffer its files are read into. */
struct procfs {
    int root;
    char *buffer;
    size_t room;
};

int procfs_open(struct procfs *fs, const char *root);
void procfs_close(struct procfs *fs); /* accepts one that failed to open */

/* Reads any file beneath the root into fs->buffer: *ret bytes of it. */
int procfs_read(struct procfs *fs, const char *name, size_t *ret);

/* What this kernel's /proc can tell, tried on the calling thread. */
struct procfs_features {
    bool schedstat; /* false: built without CONFIG_SCHED_INFO, or it counts nothing */
    bool children;  /* false: built without CONFIG_PROC_CHILDREN */
};
void procfs_probe(struct procfs *fs, struct procfs_features *ret);

/* Reads a thread's files. pid: its thread group, or the tid again, which /proc understands as
 * well. */
int procfs_read_stat(struct procfs *fs, pid_t pid, pid_t tid, struct procfs_stat *ret);
int procfs_read_status(struct procfs *fs, pid_t pid, pid_t tid, struct procfs_status *ret);
int procfs_read_schedstat(struct procfs *fs, pid_t pid, pid_t tid, struct procfs_schedstat *ret);

/* These add to *list. Children are processes that this thread created and that live. The kernel may
 * leave some out while others end: look again later. */
int procfs_list_children(struct procfs *fs, pid_t pid, pid_t tid, struct pid_list *list);
int procfs_list_processes(struct procfs *fs, struct pid_list *list);
int procfs_list_threads(struct procfs *fs, pid_t pid, struct pid_list *list);

/* Lists the numbers in one file, relative to directory dir. -ENOENT: there is no such file. */
int procfs_list_file(struct procfs *fs, int dir, const char *name, struct pid_list *list);

#endif
