/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Keys, as numbers that depend on no terminal library, and their actions: the rows of
 * top_actions.def. There is no state.
 */
#ifndef PRCB_TOP_KEYS_H
#define PRCB_TOP_KEYS_H

#include <stddef.h>
#include <stdint.h>

/* A character's key is its code; these are beyond all characters. */
enum top_key {
    TOP_KEY_F1 = 0x110001, /* .. F12 */
    TOP_KEY_UP = 0x110020,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PGUP,
    TOP_KEY_PGDN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_TAB,
    TOP_KEY_ESC,
    TOP_KEY_BACKSPACE,
};

enum top_action {
    TOP_ACT_NONE,
#define ACTION(ID, ...) TOP_ACT_##ID,
#include "top_actions.def"
    TOP_ACTIONS
};

struct top_action_row {
    const char *name, *keys, *section, *help;
};
extern const struct top_action_row top_actions[TOP_ACTIONS]; /* by enum top_action; [0] is empty */

/* Returns what a key does in the list and the panes; NONE: nothing. */
enum top_action top_key_action(uint32_t key);
/* Returns the action of a name; NONE: there is none. */
enum top_action top_action_named(const char *name);
/* Returns the number of "F3", "Ctrl-C", "PgUp", "x"; 0: the word names no key. */
uint32_t top_key_number(const char *word, size_t length);

#endif
