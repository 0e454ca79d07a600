/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A screen as a grid of cells: each is a character with a role, which says what it means, not
 * how it looks. Text from outside is made harmless on its way in. Places that can be clicked are
 * spots.
 *
 * The grid owns its cells. One thread.
 */
#ifndef PRCB_TOP_GRID_H
#define PRCB_TOP_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum top_role {
    TOP_PLAIN,
    TOP_DIM,    /* what matters less */
    TOP_STRONG, /* headings within the screen */
    TOP_BAR,    /* the line of column headings, of function keys */
    TOP_SORTED, /* the heading that the order is by */
    TOP_MODE,   /* LIVE */
    TOP_PAST,   /* PAUSED, FILE */
    TOP_CURSOR, /* the selected row */
    TOP_TAGGED,
    TOP_RUNNING, /* time by what it was */
    TOP_READYING,
    TOP_HOLDING, /* waiting, not idle */
    TOP_IDLING,
    TOP_WRONG, /* an error */
    TOP_ROLES
};

struct top_cell {
    uint32_t code; /* 0: the right half of a wide character */
    uint8_t role;
};

/* Something that can be clicked: an action, a row, a column. */
enum top_spot_kind { TOP_SPOT_ACTION, TOP_SPOT_ROW, TOP_SPOT_SORT, TOP_SPOT_CAUSE, TOP_SPOT_PAST };
struct top_spot {
    enum top_spot_kind kind;
    int y, x, end;
    uint32_t value;
};
#define TOP_SPOTS 512

struct top_grid {
    int width, height;
    struct top_cell *cells; /* owned */
    bool unicode;           /* else what is not ASCII becomes '?' */
    struct top_spot spots[TOP_SPOTS];
    int spot_count;
};

int top_grid_resize(struct top_grid *grid, int width, int height); /* 0 or -ENOMEM; blank */
void top_grid_deinit(struct top_grid *grid);
void top_grid_clear(struct top_grid *grid);

/* Puts text at a place, at most `room` columns of it; returns the columns used. What is beyond
 * the grid is cut. */
int top_put(struct top_grid *grid, int y, int x, int room, enum top_role role, const char *text);
/* Does the same, at the right end of `room`. */
void top_put_right(struct top_grid *grid, int y, int x, int room, enum top_role role,
                   const char *text);
/* Draws a text over as many lines as it needs, `most` at most; returns their number. */
int top_put_lines(struct top_grid *grid, int y, int x, int room, int most, enum top_role role,
                  const char *text);
int top_putf(struct top_grid *grid, int y, int x, int room, enum top_role role, const char *format,
             ...) __attribute__((format(printf, 6, 7)));
/* Gives a stretch of a line another role. */
void top_paint(struct top_grid *grid, int y, int x, int room, enum top_role role);
void top_spot(struct top_grid *grid, enum top_spot_kind kind, int y, int x, int end,
              uint32_t value);
const struct top_spot *top_spot_at(const struct top_grid *grid, int y, int x);

/* Writes the text of a line in UTF-8 without blanks at its end, for batch output and tests.
 * size: 4 bytes a column, plus one. */
void top_grid_line(const struct top_grid *grid, int y, char *ret, size_t size);

#endif
