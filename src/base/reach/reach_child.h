/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The work of reach.c's child: the code of each question, which may hang.
 */
#ifndef PRCB_REACH_CHILD_H
#define PRCB_REACH_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define REACH_TEXT (4096 + 64) /* a path in another process's root, or a message */

enum reach_what {
    REACH_MEMORY,
    REACH_READ,
    REACH_ROBUST,
    REACH_HAND_MEMORY,
    REACH_LINK,
    REACH_LINKS,
    REACH_OPEN,
    REACH_LIST,
    REACH_MAPPED,
    REACH_HAND
};

struct reach_ask {
    uint32_t what;
    int32_t pid;
    uint64_t address; /* MEMORY; READ: of a list of mappings, as far as this; 0: all */
    uint64_t size;    /* MEMORY, READ: at most; LIST: of bytes; HAND, HAND_MEMORY: of the message */
    uint64_t start;   /* MEMORY: bytes of the file before it, behind `size` in the area */
    uint32_t owner;   /* LIST */
    char text[REACH_TEXT]; /* a path, with its end; MEMORY: or none; HAND, HAND_MEMORY: the message
                            */
};
#define REACH_ASK_HEAD offsetof(struct reach_ask, text)

struct reach_answer {
    int64_t result; /* -errno, or how many bytes are in the area */
    int64_t start;  /* the same of MEMORY's file */
    struct stat about;
};

/* fds: HAND's place and socket, HAND_MEMORY's socket, MAPPED's place, which stay the caller's.
 * *ret_fd: of OPEN and LIST; else -1. */
void reach_perform(const struct reach_ask *ask, const int fds[2], unsigned char *area,
                   struct reach_answer *ret, int *ret_fd);

/* sandbox_serve_fn; ctx: the area. */
int reach_serve(int socket, void *ctx);

#endif
