/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The HTTP side of prcb-exporter: sockets that listen, libmicrohttpd on them without threads of
 * its own, TLS and users as the web configuration says, which is read again when its files
 * change. A function supplies the content of the pages.
 *
 * One thread: the caller polls web_fds, and then calls web_run.
 */
#ifndef PRCB_EXPORTER_WEB_H
#define PRCB_EXPORTER_WEB_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "accept.h"
#include "profiles.h"

struct web;

#define WEB_SOCKETS_MAX 16
#define WEB_FDS_MAX     (WEB_SOCKETS_MAX + PROFILES_MAX)

struct web_options {
    const char *addresses[WEB_SOCKETS_MAX]; /* "host:port", ":port", "[::1]:port", "unix:PATH" */
    size_t address_count;
    bool systemd;               /* the sockets that systemd passed instead */
    const char *config_file;    /* NULL: neither TLS nor users */
    const char *telemetry_path; /* "/metrics" */
    struct profiles_options profiles;
    /* Returns the figures, in memory to be released by free; NULL: there are none, and
     * *ret_status is the HTTP status. */
    char *(*figures)(void *ctx, struct accept accept, size_t *ret_size, unsigned *ret_status);
    bool (*ready)(void *ctx);
    void (*log)(const char *text);
    void *ctx;
};

int web_open(const struct web_options *options, struct web **ret, struct prcb_error *err);
void web_close(struct web *web);
/* Returns how many of ret (WEB_FDS_MAX) are used. *timeout_ms is lowered to when web_run is
 * due. */
size_t web_fds(struct web *web, struct pollfd *ret, int *timeout_ms);
void web_run(struct web *web);
/* Checks whether the configuration or its certificates changed; a bad one is logged, and the old
 * one stays. */
void web_reload(struct web *web);

#endif
