/* SPDX-License-Identifier: BSD-2-Clause */
#include "guard.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define PORT_DIGITS 5

bool guard_host(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; host && i < sizeof(names) / sizeof(*names); i++) {
        size_t length = strlen(names[i]), digits;

        if (strncasecmp(host, names[i], length))
            continue;
        if (!host[length])
            return true;
        digits = host[length] == ':' ? strspn(host + length + 1, "0123456789") : 0;
        return digits && digits <= PORT_DIGITS && !host[length + 1 + digits];
    }
    return false;
}

bool guard_origin(const char *origin, const char *host)
{
    static const char scheme[] = "http://";

    return !origin || (host && !strncmp(origin, scheme, sizeof(scheme) - 1) &&
                       !strcasecmp(origin + sizeof(scheme) - 1, host));
}

bool guard_site(const char *site, bool navigation)
{
    return !site || navigation || !strcmp(site, "same-origin") || !strcmp(site, "none");
}

bool guard_equal(const char *given, const char *secret)
{
    size_t length = strlen(secret);
    volatile unsigned char differ = 0;

    if (!given || strlen(given) != length) /* the length is no secret */
        return false;
    for (size_t i = 0; i < length; i++)
        differ |= (unsigned char)(given[i] ^ secret[i]);
    return !differ;
}
