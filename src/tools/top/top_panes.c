/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_panes.h"

#include <inttypes.h>
#include <string.h>

#include "cause.h"
#include "format.h"
#include "top_view.h"

#define WIDE   76 /* narrower screens have the panes one below the other */
#define MINUTE 60

struct box {
    int y, x, height, width;
};

static const char *const titles[TOP_PANE_COUNT] = {"WHY", "BY WHOM", "WHERE", "CRITICAL PATH",
                                                   "THE LAST MINUTE"};

static void draw_title(const struct top_ui *ui, struct top_grid *grid, const struct box *box,
                       enum top_pane pane, const char *about)
{
    bool here = ui->pane == pane;

    top_paint(grid, box->y, box->x, box->width, TOP_BAR);
    top_putf(grid, box->y, box->x, box->width, here ? TOP_SORTED : TOP_BAR, "%s%s%s%s",
             titles[pane], *about ? " (" : "", about, *about ? ")" : "");
}

static void draw_reason(struct top_grid *grid, const struct box *box, const char *reason)
{
    int y = box->y + 1, end = box->y + box->height;

    top_put_lines(grid, y, box->x + 1, box->width - 1, end - y, TOP_DIM, reason);
}

/* ---- why ------------------------------------------------------------------------------- */

static uint64_t cause_ns(const struct top_row *row, uint32_t cause)
{
    return cause == TOP_ROW_RUN     ? row->run_ns
           : cause == TOP_ROW_READY ? row->ready_ns
                                    : row->ns[cause];
}

static void draw_why(struct top_ui *ui, struct top_grid *grid, const struct box *box)
{
    const struct top_row *row = &ui->subject;
    char about[FORMAT_CELL + 8], wall[FORMAT_CELL];
    int y = box->y + 2, first;

    top_age(row->wall_ns, wall, sizeof(wall));
    snprintf(about, sizeof(about), "of %s", wall);
    draw_title(ui, grid, box, TOP_WHY, about);
    top_put(grid, box->y + 1, box->x, box->width, TOP_DIM,
            "               %   total  count    mean");
    first = (int)ui->pane_cursor[TOP_WHY] - (box->height - 3);
    for (int i = first > 0 ? first : 0; i < (int)ui->pane_cause_count && y < box->y + box->height;
         i++, y++) {
        uint32_t cause = ui->pane_causes[i],
                 count = cause < PRCB_CAUSE_MAX ? row->counts[cause] : 0;
        uint64_t ns = cause_ns(row, cause);
        char total[FORMAT_CELL], mean[FORMAT_CELL] = "", number[FORMAT_CELL] = "";

        format_time(ns, total, sizeof(total));
        if (count) {
            format_time(ns / count, mean, sizeof(mean));
            if (count < 1000000)
                snprintf(number, sizeof(number), "%" PRIu32, count);
            else
                top_count(count, number, sizeof(number));
        }
        top_putf(grid, y, box->x, box->width,
                 cause == TOP_ROW_RUN               ? TOP_RUNNING
                 : cause == TOP_ROW_READY           ? TOP_READYING
                 : cause_has(cause, CAUSE_MAY_IDLE) ? TOP_IDLING
                                                    : TOP_HOLDING,
                 " %-9.9s %5.1f %7s %6s %7s", top_cause_name(cause),
                 row->wall_ns ? 100.0 * (double)ns / (double)row->wall_ns : 0.0, total, number,
                 mean);
        if (i == (int)ui->pane_cursor[TOP_WHY])
            top_paint(grid, y, box->x, box->width, ui->pane == TOP_WHY ? TOP_CURSOR : TOP_STRONG);
    }
    if (!ui->pane_cause_count)
        draw_reason(grid, box, "no time was measured yet");
}

/* ---- where, by whom ---------------------------------------------------------------------- */

#define SHARE_WIDTH 6 /* "  42% " */

/* Draws a piece over as many lines as it needs; returns the line below it. */
static int draw_piece(struct top_grid *grid, const struct box *box, int y,
                      const struct top_pieces *pieces, const struct top_piece *piece, bool cursor)
{
    int end = box->y + box->height, width = box->width - SHARE_WIDTH;
    const char *text = piece->text;
    bool first = true;

    do {
        size_t length = width > 20 ? format_fits(text, (size_t)width) : strlen(text);

        if (first)
            top_putf(grid, y, box->x, SHARE_WIDTH, TOP_PLAIN, "%4.0f%% ",
                     pieces->whole_ns ? 100.0 * (double)piece->ns / (double)pieces->whole_ns : 0.0);
        top_putf(grid, y, box->x + SHARE_WIDTH, width, TOP_PLAIN, "%.*s", (int)length, text);
        if (cursor)
            top_paint(grid, y, box->x, box->width, TOP_CURSOR);
        text += length;
        first = false;
    } while (++y < end && *text);
    return y;
}

static void draw_pieces(struct top_ui *ui, struct top_grid *grid, const struct box *box,
                        enum top_pane pane, const struct top_pieces *pieces)
{
    int y = box->y + 1, end = box->y + box->height;
    char about[96], share[FORMAT_CELL];
    uint32_t cause = top_ui_cause(ui), first = ui->pane_cursor[pane];
    bool path = pane == TOP_PATH;

    snprintf(about, sizeof(about), "%s",
             path                ? "what waits lead to"
             : cause == TOP_NONE ? ""
                                 : top_cause_name(cause));
    if (pieces->count && pieces->whole_ns && !path) {
        format_share(pieces->known_ns, pieces->whole_ns, share, sizeof(share));
        snprintf(about + strlen(about), sizeof(about) - strlen(about), ", known for %s", share);
    }
    draw_title(ui, grid, box, pane, about);
    if (*pieces->now && y < end)
        top_putf(grid, y++, box->x, box->width, TOP_STRONG, "now: %s", pieces->now);
    if (*pieces->reason && !pieces->count) {
        struct box below = {y - 1, box->x, end - y + 1, box->width};

        draw_reason(grid, &below, pieces->reason);
        return;
    }
    for (uint32_t i = pane != TOP_WHERE || first >= pieces->count ? 0 : first;
         i < pieces->count && y < end; i++)
        y = draw_piece(grid, box, y, pieces, &pieces->pieces[i], ui->pane == pane && i == first);
}

/* Says why a pane can have nothing of the wait that is chosen; NULL: it can. */
static const char *lacks(const struct top_ui *ui, enum top_pane pane)
{
    uint32_t cause = top_ui_cause(ui);
    const char *why = pane == TOP_WHOM ? ui->details.whom_lacks : ui->details.where_lacks;
    bool there = pane == TOP_WHOM   ? ui->details.whom != NULL
                 : pane == TOP_PATH ? ui->details.path != NULL
                                    : ui->details.where != NULL;

    if (ui->mode == TOP_FILE)
        return "not in this recording";
    if (ui->mode == TOP_PAUSED)
        return "only of the present: L goes there";
    if (!there)
        return why ? why : "not available";
    if (pane == TOP_PATH)
        return NULL;
    if (cause == TOP_NONE)
        return "";
    return cause == TOP_ROW_RUN || (pane == TOP_WHERE && cause == TOP_ROW_READY)
               ? "only of waits: choose a cause of waiting in WHY"
               : NULL;
}

static void draw_details(struct top_ui *ui, struct top_grid *grid, const struct box *box,
                         enum top_pane pane)
{
    const char *reason = lacks(ui, pane);
    struct top_pieces pieces;
    uint32_t cause = top_ui_cause(ui);

    memset(&pieces, 0, sizeof(pieces));
    if (reason)
        snprintf(pieces.reason, sizeof(pieces.reason), "%s", reason);
    else if (pane == TOP_PATH)
        ui->details.path(ui->details.ctx, &ui->subject, &pieces);
    else
        (pane == TOP_WHOM ? ui->details.whom : ui->details.where)(ui->details.ctx, &ui->subject,
                                                                  cause, &pieces);
    ui->pane_thread_counts[pane] = pane == TOP_WHERE ? 0 : pieces.count;
    for (uint32_t i = 0; i < pieces.count; i++)
        ui->pane_threads[pane][i] = pieces.pieces[i].thread;
    draw_pieces(ui, grid, box, pane, &pieces);
}

/* ---- the last minute ----------------------------------------------------------------------- */

/* Returns what the subject's threads spent on a cause in an interval; *ret_wall: out of how
 * much. */
static uint64_t spent(const struct top_ui *ui, const struct top_frame *frame, uint32_t cause,
                      uint64_t *ret_wall)
{
    uint64_t ns = 0;

    *ret_wall = 0;
    for (uint32_t k = 0; k < ui->subject_count && k < 256; k++) {
        const struct top_thread *thread = &ui->model->threads[ui->subject_threads[k]];
        const struct top_delta *delta = top_frame_delta(frame, ui->subject_threads[k]);

        *ret_wall += delta ? delta->wall_ns : top_thread_lived(thread, frame) ? frame->wall_ns : 0;
        ns += !delta                   ? 0
              : cause == TOP_ROW_RUN   ? delta->run_ns
              : cause == TOP_ROW_READY ? delta->ready_ns
                                       : 0;
        for (uint32_t p = 0; delta && p < delta->part_count; p++)
            ns += frame->parts[delta->part_at + p].cause == cause
                      ? frame->parts[delta->part_at + p].ns
                      : 0;
    }
    return ns;
}

/* Draws a character for each interval: how much of it was of this kind. */
static void draw_line(const struct top_ui *ui, struct top_grid *grid, int y, const struct box *box,
                      uint32_t cause)
{
    int columns = box->width - 11 < MINUTE ? box->width - 11 : MINUTE;

    top_putf(grid, y, box->x, 10, TOP_PLAIN, " %-9.9s", top_cause_name(cause));
    for (int i = 0; i < columns && (uint32_t)i <= ui->position; i++) {
        const struct top_frame *frame = top_model_frame(ui->model, ui->position - (uint32_t)i);
        uint64_t wall, ns = spent(ui, frame, cause, &wall);
        int level = wall ? (int)(9.0 * (double)ns / (double)wall + 0.99) : 0;

        if (ns)
            top_putf(grid, y, box->x + 10 + columns - i, 1, TOP_PLAIN, "%c",
                     ".:-=+*#%@@"[level > 9 ? 9 : level]);
    }
}

static void draw_minute(struct top_ui *ui, struct top_grid *grid, const struct box *box)
{
    int y = box->y + 1;

    char about[FORMAT_CELL + 16], time[FORMAT_CELL];

    format_time(top_model_frame(ui->model, ui->position)->wall_ns, time, sizeof(time));
    snprintf(about, sizeof(about), "a column is %s", time);
    draw_title(ui, grid, box, TOP_MINUTE, about);
    for (uint32_t i = 0; i < ui->pane_cause_count && y < box->y + box->height; i++)
        draw_line(ui, grid, y++, box, ui->pane_causes[i]);
}

/* ---- all --------------------------------------------------------------------------------------
 */

static void draw_pane(struct top_ui *ui, struct top_grid *grid, enum top_pane pane,
                      const struct box *box)
{
    if (box->height < 2)
        return;
    if (pane == TOP_WHY)
        draw_why(ui, grid, box);
    else if (pane == TOP_MINUTE)
        draw_minute(ui, grid, box);
    else
        draw_details(ui, grid, box, pane);
}

static void draw_subject(const struct top_ui *ui, struct top_grid *grid, int y)
{
    const struct top_row *row = &ui->subject;
    const struct top_process *process =
        &ui->model->processes[ui->model->threads[row->thread].process];
    int x = top_put(grid, y, 0, grid->width, TOP_STRONG, row->name ? row->name : "") + 1;

    if (row->tid || row->pid)
        x += top_putf(grid, y, x, grid->width - x, TOP_PLAIN, "(%d)",
                      (int)(row->tid ? row->tid : row->pid)) +
             1;
    if (row->tid && row->pid && row->tid != row->pid)
        x += top_putf(grid, y, x, grid->width - x, TOP_PLAIN, "of process %d", (int)row->pid) + 1;
    if (ui->subject_count > 1)
        x += top_putf(grid, y, x, grid->width - x, TOP_PLAIN, "%u threads", ui->subject_count) + 1;
    if (row->detail)
        x += top_put(grid, y, x + 1, grid->width - x - 1, TOP_DIM, row->detail) + 2;
    if (process->container && ui->subject_group != TOP_CGROUPS)
        x += top_putf(grid, y, x + 1, grid->width - x - 1, TOP_DIM, "%s", process->container) + 2;
    if (process->cgroup)
        top_putf(grid, y, x + 1, grid->width - x - 1, TOP_DIM, "cgroup %s", process->cgroup);
}

void top_panes_draw(struct top_ui *ui, struct top_grid *grid)
{
    int top = 2, height = grid->height - top - 1, half, width = (grid->width - 1) / 2;

    top_draw_title(ui, grid);
    draw_subject(ui, grid, 1);
    if (ui->zoom) {
        /* The other panes are not drawn, but BY WHOM must know what its cursor is on. */
        draw_pane(ui, grid, ui->pane, &(struct box){top, 0, height, grid->width});
    } else if (grid->width >= WIDE) {
        int below = height - height / 2, path = (below + 1) / 2, right = grid->width - width - 1;

        half = height / 2;
        draw_pane(ui, grid, TOP_WHY, &(struct box){top, 0, half, width});
        draw_pane(ui, grid, TOP_WHOM, &(struct box){top, width + 1, half, right});
        draw_pane(ui, grid, TOP_WHERE, &(struct box){top + half, 0, below, width});
        draw_pane(ui, grid, TOP_PATH, &(struct box){top + half, width + 1, path, right});
        draw_pane(ui, grid, TOP_MINUTE,
                  &(struct box){top + half + path, width + 1, below - path, right});
    } else {
        half = height / TOP_PANE_COUNT > 2 ? height / TOP_PANE_COUNT : height >= 10 ? 2 : 0;
        for (int i = 0; i < TOP_PANE_COUNT && half; i++)
            draw_pane(ui, grid, (enum top_pane)i,
                      &(struct box){top + i * half, 0,
                                    i + 1 == TOP_PANE_COUNT ? height - i * half : half,
                                    grid->width});
        if (!half)
            draw_pane(ui, grid, ui->pane, &(struct box){top, 0, height, grid->width});
    }
    top_draw_footer(ui, grid);
}
