/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The writers of `prcb why`, and what they print: text, JSON, folded stacks.
 */
#ifndef PRCB_REPORTS_WHY_REPORT_H
#define PRCB_REPORTS_WHY_REPORT_H

#include <stdio.h>

#include "chain.h"
#include "json_doc.h"
#include "objects.h"
#include "verdict.h"
#include "whom.h"
#include "why.h"

struct why_output {
    const struct why_report *report;
    struct prcb *session;
    const struct prcb_status *status;
    const struct prcb_stacks_status *stacks;
    uint64_t wall_ns;
    uint64_t cost_ns;         /* processor time of looking */
    uint64_t looks, accounts; /* how many looks there were, and of how many accounts they told */
    uint64_t percent;         /* of a processor, which that may be */
    uint64_t top;             /* processes; 0: all */
    uint64_t top_stacks;      /* of each cause; 0: all */
    const struct whom *whom;  /* NULL: not asked for, or not to be had */
    const char *no_whom;      /* why not */
    const struct objects *objects; /* NULL: not asked for */
    bool owners;                   /* whom has who held the kernel's locks */
    const struct verdict *verdict;
    const struct verdict *verdicts; /* of each process alone; NULL: there is one process */
    const struct why_spans *spans;  /* NULL: not asked for */
    bool idle;                      /* show idling too */
    size_t columns;
};

/* Finds the threads that are stopped, traced or frozen now. */
void why_find_held(const struct why_report *report, struct held_threads *ret);

/* Returns what is known of the quota that holds threads back, or may, as held_quota_write writes
 * it, the caller's to free; NULL: nothing. */
char *why_find_quota(const struct why_report *report);

/* Returns "futex"; "wait" if the tier knows no cause. */
const char *why_cause_name(uint32_t cause);

/* Returns for how long a thread has been in its wait; if that began before the thread was
 * profiled, the kernel tells it. */
uint64_t why_now_ns(const struct why_process *process, const struct why_now *now);

/* Writes a stack on one line, innermost first, cut where the buffer ends. */
void why_stack_line(const struct prcb_stack *stack, char *ret, size_t size);

void why_write_text(FILE *out, const struct why_output *output);
int why_write_json(FILE *out, const struct why_output *output);  /* 0 or -ENOMEM */
int why_write_brief(FILE *out, const struct why_output *output); /* 0 or -ENOMEM */
/* Makes the array of a stack's frames. */
json_object *why_frames_json(struct json_doc *b, const struct prcb_stack *stack);
/* Adds the members of a stack's object: "word", "kind", "complete", "frames". */
void why_put_stack(struct json_doc *b, json_object *row, const struct prcb_stack *stack);

/* Writes "futex cache_lock 0x7f.. (x+0x40)", "/var/lib/x (loop0)", fit to be shown; "": number
 * 0. */
void why_object_text(const struct objects *objects, uint32_t number, char *ret, size_t size);
/* Writes what a cause's waits were for and who held it, indented by lead; nothing if none is
 * known. */
void why_write_objects(FILE *out, const struct why_output *output, const struct why_cause *cause,
                       const char *lead);
/* Adds members of a cause: "objects", "held_by". */
void why_put_objects(struct json_doc *b, json_object *row, const struct why_output *output,
                     pid_t process, const struct why_cause *cause);
/* Makes the member "object" of what waits for an object; or null. */
json_object *why_object_json(struct json_doc *b, const struct object *object);

#define WHY_PATHS_SHOWN 3
/* Says who does what on a path: "reporter (12) in sleep", "3 threads (worker) running". */
void why_path_words(const struct why_path *path, char *ret, size_t size);
/* Makes the member "critical_path" of a process, of so many rows at most; stacks: with these. */
json_object *why_paths_json(struct json_doc *b, const struct why_output *output,
                            const struct why_process *process, size_t most, bool stacks);

/* Writes what spans of traces waited for. */
void why_write_spans(FILE *out, const struct why_output *output);
/* Makes the member "spans", of so many spans; SIZE_MAX: with all stacks. */
json_object *why_spans_json(struct json_doc *b, const struct why_output *output, size_t most);

/* Writes the threads in an uninterruptible wait now, by place; nothing if there are none. */
void why_write_load(FILE *out, const struct why_output *output);

/* Writes who waits for whom. */
void why_write_chain(FILE *out, const struct chain *chain, const struct objects *objects);
/* 0 or -ENOMEM */
int why_write_chain_json(FILE *out, const struct chain *chain, const struct objects *objects);

/* Writes lines of "comm;cause;outermost;...;innermost NS". */
void why_write_folded(FILE *out, const struct why_output *output);

#endif
