/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The answer first: what holds threads up, in sentences, the most important one first. A pure
 * function of figures: rules in rank order, of which those that fit speak. A sentence says what the
 * figures prove, and nothing else. Names in it are fit to be shown.
 */
#ifndef PRCB_REPORTS_VERDICT_H
#define PRCB_REPORTS_VERDICT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "around.h"
#include "held_words.h"
#include "json_doc.h"
#include "objects.h"
#include "unanswered.h"
#include "whom.h"
#include "why.h"

struct verdict_figures {
    const struct why_report *report;
    /* Returns the process of the report that a process is in (why_folded). NULL: nobody asks
     * whether a wait for a child is told by what that one does. */
    uint64_t (*folded)(uint64_t pid, void *ctx);
    void *folded_ctx;
    const struct object *(*object)(const void *ctx, uint32_t number); /* objects_at */
    const void *ctx;
    const struct whom *whom;             /* NULL: not known */
    const struct around *around;         /* NULL: not known */
    const struct unanswered *unanswered; /* NULL: not looked for */
    const struct held_threads *held;     /* NULL: nothing is stopped or frozen */
    const char *quota;  /* words of held_quota_write; NULL: none is known to hold anybody back */
    const char *ran_in; /* of a recording: "; 40 % of the samples are in f", or ""; else NULL */
};

#define VERDICT_MOST 6
struct verdict {
    struct verdict_line {
        const char *rule;   /* "deadlock", "throttled", "wait", ... */
        uint64_t ns, of_ns; /* the share that it speaks of; 0: of none */
        char *text;         /* one or two sentences */
    } lines[VERDICT_MOST];
    size_t count;
};

int verdict_make(const struct verdict_figures *figures, struct verdict *ret); /* 0 or -ENOMEM */
void verdict_free(struct verdict *verdict);

/* Writes a sentence behind lead, wrapped between words. */
void verdict_write_sentence(FILE *out, const char *lead, const char *text, size_t columns);
/* Makes an array of {"rule", "ns", "of_ns", "text"}. */
json_object *verdict_json(struct json_doc *b, const struct verdict *verdict);

#endif
