/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a client says it takes: the headers Accept and Accept-Encoding. Anything at all may be in
 * them; what is not understood counts as not said. Pure functions.
 */
#ifndef PRCB_EXPORTER_ACCEPT_H
#define PRCB_EXPORTER_ACCEPT_H

#include <stdbool.h>

#include "exposition.h"

struct accept {
    enum exposition format;
    const char *version; /* of OpenMetrics: "1.0.0" or "0.0.1" */
};

/* header NULL: there is none. OpenMetrics where it is named, in a version that is spoken, and not
 * ranked below the text format; else the text format. */
struct accept accept_parse(const char *header);
bool accept_gzip(const char *header);

#endif
