/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which requests a page that is served on this machine answers: what a browser tells of where a
 * request comes from. Text from outside; no state.
 */
#ifndef PRCB_SERVE_GUARD_H
#define PRCB_SERVE_GUARD_H

#include <stdbool.h>

/* "localhost", "127.0.0.1" or "[::1]", with any port, for ssh may forward another one. A name that
 * somebody's server resolved to this machine (DNS rebinding) is none of them. */
bool guard_host(const char *host);

/* Of the page that a request comes from: absent (NULL), or "http://" and the host. */
bool guard_origin(const char *origin, const char *host);

/* Sec-Fetch-Site: absent, of this page, or typed by the user; navigation: a link that somebody else
 * shows may open the page as well, if it has the token. */
bool guard_site(const char *site, bool navigation);

/* Compares all of it, whatever differs. NULL: false. */
bool guard_equal(const char *given, const char *secret);

#endif
