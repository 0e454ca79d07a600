/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of functions for places in a program, a library or a compiler's code. The files are other
 * people's, so a child that has nothing to lose reads them (sandbox.h), one for each file: it is
 * handed what is open, has limits of memory and time, and answers names. What it answers is as
 * hostile as the file. A file that does not fit these limits has no names, and is remembered.
 *
 * Which files are opened, by reach.h, is decided here: none but plain ones; installed debug
 * information in /usr/lib/debug alone; a list of a compiler (/tmp/perf-PID.map, in the process's
 * own mount namespace while it lives) only if it belongs to the process's user and no symbolic link
 * leads to it; and what is under a program's path only if it is the program. A user may have
 * another file under that path, in a mount namespace of his own or once the program is removed, and
 * with the same build id. So either the process saw our files, and this one has not changed since
 * it was mapped; or it has the build id, and belongs to root or to us. Time alone does
 * not tell of strangers' files: a file that comes there with its folder keeps its time of change,
 * and that is as coarse as the clock's tick. Those must be the one that the kernel says is mapped.
 *
 * Threads  A namer by one thread at a time.
 */
#ifndef PRCB_RECORD_NAMES_H
#define PRCB_RECORD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NAMES_USERS 64

enum names_kind { NAMES_KERNEL, NAMES_VDSO, NAMES_ELF, NAMES_VARIABLES, NAMES_PERF_MAP };

struct names_source {
    enum names_kind kind;
    const char *file;       /* NAMES_ELF: its path */
    int place;              /* NAMES_VARIABLES: where it is (reach.h), which stays the caller's */
    const char *build_id;   /* NAMES_ELF: the file must have this one; "": not known */
    int64_t here_ns;        /* NAMES_ELF: it was mapped under its path here then; 0: not known */
    uint64_t device, inode; /* NAMES_ELF: as the kernel says what is mapped; inode 0: not known */
    pid_t pid;              /* NAMES_PERF_MAP: whose code it is */
    int64_t uid;            /* and his user; negative: not known, and then this process's */
    bool fetched;           /* debug information that debuginfod's client has fetched, too */
    bool lines; /* NAMES_ELF: lines of source in place of names, as symbols_line writes them */
};

struct namer {
    /* Processor time that users' files took in vain. A user who goes on writing such files is
     * not asked about any more; others are. */
    struct {
        uid_t uid;
        uint64_t ns;
    } wasted[NAMES_USERS];
    size_t wasted_count;
    unsigned left;   /* sources whose names are missing for that */
    char first[256]; /* the first of them, and why */
};

struct names {
    char *bytes;        /* owned: the names, each ended by NUL */
    const char **name;  /* of number 1 and up; [0] is NULL */
    uint32_t count;     /* numbers below this */
    uint32_t *number;   /* a place's; 0: it has no name */
    char build_id[129]; /* of the file that was read; "" */
};

/* Reads the names of places. Places are offsets in the file for NAMES_ELF and NAMES_VDSO,
 * addresses from where the file's first page is mapped for NAMES_VARIABLES, else addresses. 0 or
 * -errno; *ret unchanged. */
int names_find(struct namer *namer, const struct names_source *source, const uint64_t *places,
               size_t count, struct names *ret);
void names_free(struct names *names);

/* Whether code that is mapped under this name is a just-in-time compiler's and has no file. */
bool names_is_anonymous(const char *file);

#endif
