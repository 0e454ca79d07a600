/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The messages between `prcb serve` and the program that speaks HTTP for it (prcb-serve), over a
 * socket that keeps the boundaries of messages (sandbox.h). First comes a struct link_start,
 * answered by one byte, LINK_READY; then frames: each message is one byte of enum link_bits and
 * a part of a frame.
 */
#ifndef PRCB_SERVE_LINK_H
#define PRCB_SERVE_LINK_H

#include <stdint.h>

#include "http.h"

#define LINK_FD         3
#define LISTEN_FD       4
#define LINK_READY      1
#define LINK_MESSAGE    (32u << 10) /* bytes of one message */
#define LINK_FRAME_MOST (32u << 20) /* of one frame */

enum link_bits { LINK_LAST = 1, LINK_KEY = 2 };

struct link_start {
    char token[HTTP_TOKEN + 1];
    uint64_t history_frames;
};

#endif
