/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The headers Accept and Accept-Encoding, any bytes: always one of the two formats, in a version
 * that is spoken.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "accept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct accept accept;

    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    accept = accept_parse(text);
    assert(accept.format == EXPOSITION_TEXT || strcasestr(text, "application/openmetrics-text"));
    assert(!strcmp(accept.version, "1.0.0") || !strcmp(accept.version, "0.0.1"));
    assert(!accept_gzip(text) || strcasestr(text, "gzip") || strchr(text, '*'));
    free(text);
    return 0;
}
