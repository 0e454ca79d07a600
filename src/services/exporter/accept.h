/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Parses what a client says it accepts: the headers Accept and Accept-Encoding. They may hold
 * anything; what is not understood counts as not said. Pure functions.
 */
#ifndef PRCB_EXPORTER_ACCEPT_H
#define PRCB_EXPORTER_ACCEPT_H

#include <stdbool.h>

#include "exposition.h"

struct accept {
    enum exposition format;
    const char *version; /* of OpenMetrics: "1.0.0" or "0.0.1" */
};

/* header NULL: there is none. Chooses OpenMetrics if it is named, in a version that is
 * supported, and not ranked below the text format; else the text format. */
struct accept accept_parse(const char *header);
bool accept_gzip(const char *header);

#endif
