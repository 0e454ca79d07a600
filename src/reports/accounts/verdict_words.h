/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The words of a verdict: who waits, for what, where, and who has it. Names from outside are made
 * safe to show. One thread.
 */
#ifndef PRCB_VERDICT_WORDS_H
#define PRCB_VERDICT_WORDS_H

#include <stdio.h>
#include <sys/types.h>

#include "verdict_groups.h"

void verdict_put_name(FILE *out, const char *name);
/* Does the same for one that may take so many columns. */
void verdict_put_name_of(FILE *out, const char *name, size_t columns);
/* tid 0: none is told. */
void verdict_put_comm(FILE *out, const char *comm, size_t size, pid_t tid);
void verdict_put_time(FILE *out, uint64_t ns);
void verdict_put_share(FILE *out, uint64_t ns, uint64_t of);
/* "reporter (12)", "6 threads (worker-*)". */
void verdict_put_who(FILE *out, const struct making *m, const struct group *group);
void verdict_put_verb(FILE *out, const struct making *m, const struct why_part *part, bool one);
/* The same of a group, which may wait for more than what its largest part is for. */
void verdict_put_wait(FILE *out, const struct making *m, const struct group *group, bool one);
void verdict_put_place(FILE *out, const struct why_part *part);
/* Says who holds what a part waits for, and who holds up that one. False: nobody is known. */
bool verdict_put_holders(FILE *out, const struct making *m, const struct why_process *process,
                         const struct why_part *part);
/* Whether somebody is known. */
bool verdict_has_holder(const struct why_process *process, const struct why_part *part);
/* Says who ended waits for a lock that does not tell its holder. */
void verdict_put_releaser(FILE *out, const struct making *m, const struct group *group);
void verdict_put_behind(FILE *out, const struct making *m, const struct group *group);

#endif
