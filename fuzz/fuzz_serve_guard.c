/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a request says of where it comes from, four lines of any bytes: only loopback hosts pass,
 * and only pages of that host.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_loopback(const char *host)
{
    return !strncasecmp(host, "localhost", 9) || !strncmp(host, "127.0.0.1", 9) ||
           !strncmp(host, "[::1]", 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text, *host, *origin, *site, *token;

    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    host = strsep(&rest, "\n");
    origin = strsep(&rest, "\n");
    site = strsep(&rest, "\n");
    token = strsep(&rest, "\n");
    if (guard_host(host))
        assert(is_loopback(host) && !strpbrk(host, "@/ ?#\t\r"));
    if (origin && guard_origin(origin, host))
        assert(!strncmp(origin, "http://", 7) && !strcasecmp(origin + 7, host));
    if (site && guard_site(site, false))
        assert(!strcmp(site, "same-origin") || !strcmp(site, "none"));
    assert(guard_site(site, true));
    assert(!token || guard_equal(token, host) == !strcmp(token, host));
    assert(!guard_equal(NULL, host));
    free(text);
    return 0;
}
