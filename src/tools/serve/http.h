/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The HTTP side of `prcb serve`: it serves the page, and frames as server-sent events. Frames
 * are kept as they come in, up to a limit; each reader has a place in them, and no memory beyond
 * that.
 *
 * One thread: the caller polls http_fd, and then calls http_run.
 */
#ifndef PRCB_SERVE_HTTP_H
#define PRCB_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_TOKEN 64 /* characters: hexadecimal digits */

struct http; /* opaque */

/* Accepts connections from a socket that listens, whose descriptor it owns from here on. -errno */
int http_open(int listening, const char *token, uint64_t history_frames, struct http **ret);
void http_close(struct http *h); /* NULL is allowed */

/* Adds a frame; it owns the text from here on. -ENOMEM */
int http_add(struct http *h, char *text, size_t size, bool key);

int http_fd(const struct http *h);
/* Returns in how many milliseconds http_run is due; -1: the descriptor says when. */
int http_timeout(const struct http *h);
void http_run(struct http *h);

#endif
