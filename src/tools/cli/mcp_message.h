/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Model Context Protocol as far as `prcb mcp` speaks it: a line of JSON-RPC comes in, and is
 * either answered or becomes a command line of prcb's. Tools and their arguments are rows; nothing
 * else of what a client sends gets into a command line. No process, no stream. One thread.
 */
#ifndef PRCB_MCP_MESSAGE_H
#define PRCB_MCP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MCP_LINE_MOST  65536 /* bytes of a message */
#define MCP_TEXT_MOST  8192  /* bytes of a tool's answer */
#define MCP_WORDS_MOST 24    /* of a command line */

struct json_object;

struct mcp_message {
    char *answer; /* a line with its end; NULL: nothing is to be said now */
    /* A command that the answer is made of (mcp_answer); NULL: none. */
    char *words[MCP_WORDS_MOST + 1]; /* behind "prcb"; NULL-terminated */
    size_t count;
    uint64_t seconds; /* for which it is to look */
    struct json_object *id;
};

/* Takes a message; 0 or -ENOMEM. */
int mcp_take(const char *line, size_t length, struct mcp_message *ret);
/* Answers a message that was longer than MCP_LINE_MOST. */
int mcp_too_long(struct mcp_message *ret);
/* Makes the answer of a command that wrote this text, which is cut behind a line where it is too
 * long; failed: it ended with an error, which the text tells. */
int mcp_answer(struct mcp_message *m, const char *text, size_t length, bool failed);
void mcp_free(struct mcp_message *m);

#endif
