/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording being made: what is sampled, from the events to the file.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_RECORDER_H
#define PRCB_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

struct recorder; /* opaque */

struct recorder_thread {
    pid_t pid, tid;
};

struct recorder_options {
    const char *path;
    const char *event;
    bool frequency; /* rate is per second; else one sample in so many events */
    uint64_t rate;  /* 0: 1000 a second, or what the kernel allows where that is less */
    bool stacks, switches;
    uint32_t stack_bytes; /* of the user's stack, copied with each sample; 0: frame pointers */
    bool native;          /* stacks of waits: an interpreter's own functions */
    bool spans;           /* stacks of waits: and the spans of traces that threads publish */
    bool wakers;          /* with switches, where these come from eBPF: who woke each thread */
    enum prcb_tier tier;
    bool all; /* the whole system; else these processes and threads, and what they start; nothing of
                 these: the child */
    const pid_t *pids;
    size_t pid_count;
    bool named; /* some of these were found by a name, and may have ended since */
    const struct recorder_thread *threads; /* sorted; of none of the processes */
    size_t thread_count;
    char *const *command; /* for the facts; NULL: none */
};

/* Checks the event's name; nothing runs and there is no file yet. The recorder keeps the
 * options. */
int recorder_open(const struct recorder_options *options, struct recorder **ret,
                  struct prcb_error *err);

/* Opens the events and then the file. child: a process before its exec, recorded from there on
 * (0: the options name what to record); the recorder's end does not affect it. */
int recorder_start(struct recorder *r, pid_t child, struct prcb_error *err);

/* Takes what there is; call it again before *ret_next_ms have passed. A failure ends the
 * recording: what the file holds stays. */
int recorder_work(struct recorder *r, int *ret_next_ms, struct prcb_error *err);

/* Takes the rest: from here on nothing can be lost. Do not call it after one of the above has
 * failed. */
int recorder_finish(struct recorder *r, struct prcb_error *err);
/* Call it after that: it names the functions, which may take a while, and closes the file. If
 * somebody ends the program meanwhile, the functions are named when the recording is read.
 * *namer is zero at first, and then says what could not be read (names.h). */
struct namer;
int recorder_name(struct recorder *r, struct namer *namer, struct prcb_error *err);

void recorder_close(struct recorder *r); /* NULL is allowed */

struct recorder_progress {
    uint64_t samples, switches, lost, bytes, wait_stacks;
    uint64_t complete;                   /* samples whose stacks are, */
    uint64_t interpreted, uninterpreted; /* waits_interpreted */
    bool copies;                         /* where they are unwound from copies */
    bool user_only;                      /* the kernel's own work may not be sampled */
    const char *source;                  /* of the samples */
    const char *switching;               /* source of the switches */
    const char *reason;                  /* why not a better source; NULL: none is */
    const char *no_wakers;               /* with them: why there are none; NULL: there are */
    const char *no_waits; /* with stacks: why there are none of waits; NULL: there are */
    const char *load_log; /* prcb_load_log, of the first program of all that was refused */
};
void recorder_look(const struct recorder *r, struct recorder_progress *ret);

/* Does the same as prcb_session_program, for all programs that the recording has; until
 * recorder_close. */
int recorder_program(struct recorder *r, uint32_t i, struct prcb_program *ret);

#endif
