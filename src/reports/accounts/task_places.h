/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A runtime's tasks (goroutines) by what they are in and where in the program that is, as text,
 * JSON and as sentences say them. Names in texts are fit to be shown.
 */
#ifndef PRCB_REPORTS_TASK_PLACES_H
#define PRCB_REPORTS_TASK_PLACES_H

#include <stdbool.h>
#include <stdio.h>

#include "json_doc.h"
#include "why.h"

#define TASK_PLACES_MOST 64

/* Tasks that are in one state at one line. */
struct task_place {
    uint64_t count;
    const char *state;
    bool locked, own;            /* own: the line is the program's, no library's */
    const struct prcb_frame *at; /* NULL: they are running, or no function is known */
    const struct prcb_frame *by; /* the program's function that called it; NULL: none */
    struct prcb_stack stack;     /* of the most of them */
};

/* Returns how many there are, the largest first. */
size_t task_places(const struct prcb_tasks *tasks, struct task_place ret[TASK_PLACES_MOST]);

/* Whether there are more than were looked at, and than the total counts. */
bool task_places_more(const struct prcb_tasks *tasks);

/* Writes "IO wait at fetch.go:12 (main.fetch)". */
void task_place_text(const struct task_place *place, char *ret, size_t size);
/* Writes "main.fetch() (fetch.go:12), called by main.main()"; nothing if no function is known. */
void task_place_words(const struct task_place *place, char *ret, size_t size);

/* Returns the place that nearly all wait at, or at which half of them wait for a lock; NULL: none.
 */
const struct task_place *task_places_crowd(const struct prcb_tasks *tasks,
                                           const struct task_place *places, size_t count);

json_object *task_places_json(struct json_doc *b, const struct prcb_tasks *tasks);

#endif
