/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules of `prcb flight --on`: which stretch off the processor is reason enough to keep a moment,
 * or which pressure (PSI), of which the kernel itself tells.
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
    uint64_t ns;      /* longer than this; of a pressure: in FLIGHT_PSI_NS */
    char psi[8];      /* "cpu", "io", "memory": the rule is of this pressure; "": of stretches */
    char comm[16];    /* a pattern, as the shell has them; "": any */
    char cgroup[256]; /* threads in it and below; "": any */
};

#define FLIGHT_PSI_NS 2000000000ull /* whoever has no rights may ask for multiples of this only */

/* Reads "psi:RESOURCE>PERCENT%[,cgroup=PATH]" or "CAUSE>TIME[,comm=PATTERN][,cgroup=PATH]", TIME in
 * ns, us, ms or s. NULL, or what is wrong with it. The text stays the rule's. */
const char *flight_rule_parse(const char *text, struct flight_rule *ret);

/* Whether the stretch that ended with this switch is such a one; *ret_ns: how long it was. */
bool flight_rule_holds(const struct flight_rule *rule, const struct prcb_switch *s,
                       uint64_t *ret_ns);

/* Has the kernel tell of the rule's pressure: a descriptor on which poll(2) returns POLLPRI then,
 * at most once in FLIGHT_PSI_NS. -errno; -ENOENT: no pressure is kept, or there is no such cgroup.
 */
int flight_rule_open(const struct flight_rule *rule);

#endif
