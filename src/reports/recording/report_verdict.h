/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What held the threads of a recording up, in the sentences of prcb why (verdict.h), the most
 * important one first. Builds without stacks have none: NULL. One thread.
 */
#ifndef PRCB_REPORT_VERDICT_H
#define PRCB_REPORT_VERDICT_H

#include <stdio.h>

#include "json_doc.h"
#include "report.h"

struct verdict;

/* Makes the verdict, the caller's to free; without switches it has no sentence. 0 or -errno. */
int report_verdict_make(const struct report *report, struct verdict **ret);
void report_verdict_free(struct verdict *verdict); /* NULL is allowed */

/* Writes the sentences, and an empty line behind them; nothing if there are none. */
void report_verdict_print(const struct verdict *verdict, size_t columns, FILE *out);
/* Makes an array of {"rule", "ns", "of_ns", "text"}. NULL: there is no verdict. */
json_object *report_verdict_json(struct json_doc *b, const struct verdict *verdict);

#endif
