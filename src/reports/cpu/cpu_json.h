/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What `prcb cpu` and `prcb power` have in common in JSON.
 */
#ifndef PRCB_REPORTS_CPU_JSON_H
#define PRCB_REPORTS_CPU_JSON_H

#include <prcb/processors.h>

#include "json_doc.h"

/* Makes [{"name","entries","residency_ns"}]. */
json_object *cpu_json_states(struct json_doc *b, const struct prcb_processor *p);

#endif
