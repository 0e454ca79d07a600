/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Draws the screen of `prcb top` as a grid: the list, the help, the panes of a row. It is pure:
 * the same choice of the same history gives the same grid.
 */
#ifndef PRCB_TOP_VIEW_H
#define PRCB_TOP_VIEW_H

#include "top_ui.h"

#define TOP_LEAST_WIDTH  40
#define TOP_LEAST_HEIGHT 10

/* Draws what top_ui_prepare made ready, and tells the ui how many rows a page has. */
void top_view_draw(struct top_ui *ui, struct top_grid *grid);

/* Draws the list alone, from row `first` on, without what only a screen needs; for batch output.
 * Returns how many lines of the grid are used. */
int top_view_batch(struct top_ui *ui, struct top_grid *grid, uint32_t most);

/* Writes an age as "12ms", "3.4s", "2h05m", in at most six columns. */
void top_age(uint64_t ns, char *ret, size_t size);
/* Writes a count as "812", "9.1k", "182k". */
void top_count(double count, char *ret, size_t size);
/* Returns the name of a cause, of run or of ready; "wait" if the tier knows none. */
const char *top_cause_name(uint32_t cause);

#endif
