/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Draws what Enter shows of a row: why, by whom, where, the last minute. Part of top_view.h.
 */
#ifndef PRCB_TOP_PANES_H
#define PRCB_TOP_PANES_H

#include "top_ui.h"

void top_panes_draw(struct top_ui *ui, struct top_grid *grid);

/* top_view.c */
void top_draw_title(const struct top_ui *ui, struct top_grid *grid);
void top_draw_footer(const struct top_ui *ui, struct top_grid *grid);

#endif
