/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Decides which requests are answered by a page that is served on this machine, from what a
 * browser tells of where a request comes from. The text comes from outside; there is no state.
 */
#ifndef PRCB_SERVE_GUARD_H
#define PRCB_SERVE_GUARD_H

#include <stdbool.h>

/* Accepts "localhost", "127.0.0.1" or "[::1]", with any port, for ssh may forward another one. A
 * name that somebody's server resolved to this machine (DNS rebinding) is none of them. */
bool guard_host(const char *host);

/* Checks the origin of the page that a request comes from: it is absent (NULL), or "http://" and
 * the host. */
bool guard_origin(const char *origin, const char *host);

/* Checks Sec-Fetch-Site: it is absent, of this page, or typed by the user; navigation: a link
 * that somebody else shows may open the page as well, if it has the token. */
bool guard_site(const char *site, bool navigation);

/* Compares all bytes, wherever they differ. NULL: false. */
bool guard_equal(const char *given, const char *secret);

#endif
