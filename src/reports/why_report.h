/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the writers of `prcb why` print, and how: text, JSON, folded stacks.
 */
#ifndef PRCB_REPORTS_WHY_REPORT_H
#define PRCB_REPORTS_WHY_REPORT_H

#include <stdio.h>

#include "chain.h"
#include "json_doc.h"
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
    bool idle;                /* show idling too */
    size_t columns;
};

/* "futex"; "wait" where the tier knows no cause. */
const char *why_cause_name(uint32_t cause);

/* A stack on one line, innermost first, cut where the buffer ends. */
void why_stack_line(const struct prcb_stack *stack, char *ret, size_t size);

void why_write_text(FILE *out, const struct why_output *output);
int why_write_json(FILE *out, const struct why_output *output); /* 0 or -ENOMEM */
/* Members of an object that a stack is: "word", "kind", "complete", "frames". */
void why_put_stack(struct json_doc *b, json_object *row, const struct prcb_stack *stack);

/* Who waits for whom. */
void why_write_chain(FILE *out, const struct chain *chain);
int why_write_chain_json(FILE *out, const struct chain *chain); /* 0 or -ENOMEM */

/* "comm;cause;outermost;...;innermost NS" a line. */
void why_write_folded(FILE *out, const struct why_output *output);

#endif
