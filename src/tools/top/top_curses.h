/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Shows a grid on a terminal by ncurses, and reports its keys and clicks as events. The terminal
 * is restored on every way out: by top_curses_close, and if a signal ends the program. There is
 * one per program.
 */
#ifndef PRCB_TOP_CURSES_H
#define PRCB_TOP_CURSES_H

#include <prcb/prcb.h>

#include "top_grid.h"

struct top_curses_options {
    bool colour, mouse;
};

enum top_event_kind {
    TOP_EVENT_NONE,
    TOP_EVENT_KEY,
    TOP_EVENT_CLICK,
    TOP_EVENT_WHEEL,
    TOP_EVENT_RESIZE
};
struct top_event {
    enum top_event_kind kind;
    uint32_t key; /* top_keys.h */
    int y, x, turn;
    bool twice;
};

/* Opens the terminal. -ENOTTY: standard input or output is no terminal, or one that cannot move
 * its cursor. */
int top_curses_open(const struct top_curses_options *options, struct prcb_error *err);
void top_curses_close(void);
void top_curses_size(int *ret_width, int *ret_height);
void top_curses_draw(const struct top_grid *grid, bool anew);
/* Returns the event that came, without waiting; NONE: there is none. */
struct top_event top_curses_event(void);

#endif
