/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules of `prcb flight --on`: which stretch off the processor is reason enough to keep a moment.
 */
#ifndef PRCB_CLI_FLIGHT_RULES_H
#define PRCB_CLI_FLIGHT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/sample.h>

struct flight_rule {
    const char *text; /* as given: borrowed */
    uint32_t cause;   /* enum prcb_cause; PRCB_CAUSE_NONE: ready */
    uint64_t ns;      /* longer than this */
    char comm[16];    /* a pattern, as the shell has them; "": any */
    char cgroup[256]; /* threads in it and below; "": any */
};

/* Reads "CAUSE>TIME[,comm=PATTERN][,cgroup=PATH]", TIME in ns, us, ms or s. NULL, or what is wrong
 * with it. The text stays the rule's. */
const char *flight_rule_parse(const char *text, struct flight_rule *ret);

/* Whether the stretch that ended with this switch is such a one; *ret_ns: how long it was. */
bool flight_rule_holds(const struct flight_rule *rule, const struct prcb_switch *s,
                       uint64_t *ret_ns);

#endif
