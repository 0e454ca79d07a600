/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts what `prcb serve` needs: the socket that its page is on, and prcb-serve, which answers
 * there.
 */
#ifndef PRCB_CLI_SERVE_START_H
#define PRCB_CLI_SERVE_START_H

#include <stdbool.h>
#include <stdint.h>

#include <prcb/prcb.h>

#include "frames.h"
#include "sandbox.h"
#include "socket_place.h"

struct serve_address {
    uint64_t port;             /* 0: any that is free; then the one that it is */
    const char *path;          /* of a Unix socket; NULL: 127.0.0.1 */
    struct socket_place place; /* the socket there, once it listens; the caller's to leave */
};

/* Opens a socket that listens. Returns 0 or -errno, words in *err. */
int serve_listen(struct serve_address *address, int *ret, struct prcb_error *err);

/* Starts prcb-serve on it; the token is random and has HTTP_TOKEN characters and '\0'. The
 * caller ends it by sandbox_stop. */
int serve_start(int listening, uint64_t history_frames, char *ret_token, struct sandbox *ret,
                struct prcb_error *err);

/* Sends a frame. -EPIPE, -ETIMEDOUT: prcb-serve accepts nothing any more. */
int serve_send(const struct sandbox *server, const struct frame *frame);

/* Shows the page in a browser, by a file that only the user may read and that leads there:
 * everybody could see an address among a program's arguments. *ret_path: the file, which the
 * caller removes and frees. */
int serve_open_browser(const char *address, char **ret_path, struct prcb_error *err);

#endif
