/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables of causes.h as arrays.
 */
#include <prcb/prcb.h>

#define X(number, name) [number] = #name,
static const char *const reason_names[] = {PRCB_WAIT_REASONS(X)};
#undef X
#define REASONS (sizeof(reason_names) / sizeof(reason_names[0]))

#define X(number, NAME, name, kind, reason, words)                                                 \
    [number] = {name, words, PRCB_KIND_##kind, reason},
static const struct prcb_cause_info causes[PRCB_CAUSE_MAX] = {PRCB_CAUSES(X)};
#undef X

const struct prcb_cause_info *prcb_cause_info(uint32_t cause)
{
    return cause < PRCB_CAUSE_MAX && causes[cause].name ? &causes[cause] : NULL;
}

const char *prcb_wait_reason_name(uint32_t reason)
{
    return reason < REASONS ? reason_names[reason] : NULL;
}
