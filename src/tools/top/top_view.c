/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cause.h"
#include "format.h"
#include "top_panes.h"

#define NS          1000000000ull
#define PAST_HEIGHT 16 /* lower screens have no line of the past */
#define GAP_HEIGHT  20 /* and no empty line */
#define BAR_CAUSES  5

const char *top_cause_name(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    if (cause == TOP_ROW_RUN)
        return "run";
    if (cause == TOP_ROW_READY)
        return "ready";
    return info ? info->name : "wait";
}

void top_age(uint64_t ns, char *ret, size_t size)
{
    if (ns < 1000 * NS)
        format_time(ns, ret, size);
    else if (ns < 3600 * NS)
        snprintf(ret, size, "%um%02u", (unsigned)(ns / NS / 60), (unsigned)(ns / NS % 60));
    else if (ns < 100 * 3600 * NS)
        snprintf(ret, size, "%uh%02u", (unsigned)(ns / NS / 3600), (unsigned)(ns / NS / 60 % 60));
    else
        snprintf(ret, size, "%ud%02uh", (unsigned)(ns / NS / 86400 % 1000),
                 (unsigned)(ns / NS / 3600 % 24));
}

void top_count(double count, char *ret, size_t size)
{
    static const char units[] = " kMG";
    int unit = 0;

    for (; count >= 999.5 && unit < 3; unit++)
        count /= 1000;
    if (!unit)
        snprintf(ret, size, "%.0f", count);
    else
        snprintf(ret, size, count < 9.95 ? "%.1f%c" : "%.0f%c", count, units[unit]);
}

static void share_text(uint64_t part, uint64_t whole, char *ret, size_t size)
{
    if (!whole)
        snprintf(ret, size, "-");
    else if (!part)
        snprintf(ret, size, "0");
    else
        snprintf(ret, size, "%.1f", 100.0 * (double)part / (double)whole);
}

/* Gives run, ready and wait in tenths of a percent that sum to 1000: what rounding leaves goes
 * to those from which it took most. */
static void tenths(const struct top_row *row, unsigned ret[3])
{
    const uint64_t parts[3] = {row->run_ns, row->ready_ns, row->wait_ns};
    double whole = (double)row->run_ns + (double)row->ready_ns + (double)row->wait_ns, rest[3];
    unsigned sum = 0;

    for (int i = 0; i < 3; i++) {
        double exact = whole > 0 ? 1000.0 * (double)parts[i] / whole : 0;

        ret[i] = (unsigned)exact;
        rest[i] = exact - ret[i];
        sum += ret[i];
    }
    for (; whole > 0 && sum < 1000; sum++) {
        int most = 0;

        for (int i = 1; i < 3; i++)
            most = rest[i] > rest[most] ? i : most;
        ret[most]++;
        rest[most] = -1;
    }
}

/* ---- columns ---------------------------------------------------------------------- */

enum column_kind {
    COL_PID,
    COL_TID,
    COL_NAME,
    COL_THREADS,
    COL_NOW,
    COL_RUN,
    COL_READY,
    COL_WAIT,
    COL_MOST,
    COL_CAUSE,
    COL_REST,
    COL_SWITCHES,
    COL_FOR,
    COL_DETAIL,
    COL_TIME,
    COL_SHARE,
    COL_MEAN,
    COL_WHO,
};

#define OF(group) (1u << TOP_##group)
#define ALL       (OF(THREADS) | OF(PROCESSES) | OF(NAMES) | OF(CGROUPS))

/* The columns from left to right; `rank`: the order in which they get room; SORT_NONE: no order
 * is by it. The last takes what is left, at least its width. Causes come where COL_CAUSE stands,
 * the first two with its rank, the others after all ranks. */
static const struct column_row {
    enum column_kind kind;
    unsigned groups;
    const char *heading;
    int width, rank;
    int sort; /* enum top_sort; -1: none */
    bool left;
} column_rows[] = {
    {COL_PID, OF(THREADS), "PID", 7, 6, TOP_BY_PID, false},
    {COL_PID, OF(PROCESSES), "PID", 7, 2, TOP_BY_PID, false},
    {COL_TID, OF(THREADS), "TID", 7, 2, TOP_BY_PID, false},
    {COL_NAME, ALL | OF(CAUSES), NULL, 15, 0, TOP_BY_NAME, true},
    {COL_THREADS, OF(NAMES) | OF(CGROUPS) | OF(CAUSES), "THR", 5, 2, -1, false},
    {COL_THREADS, OF(PROCESSES), "THR", 5, 6, -1, false},
    {COL_NOW, OF(THREADS), "NOW", 16, 3, TOP_BY_FOR, true},
    {COL_NOW, OF(PROCESSES), "NOW", 16, 8, TOP_BY_FOR, true},
    {COL_RUN, ALL, "%RUN", 5, 1, TOP_BY_RUN, false},
    {COL_READY, ALL, "%RDY", 5, 1, TOP_BY_READY, false},
    {COL_WAIT, ALL, "%WAIT", 5, 1, TOP_BY_WAIT, false},
    {COL_MOST, ALL, "MOST", 10, 7, -1, true},
    {COL_CAUSE, ALL, NULL, 6, 5, TOP_BY_CAUSE, false},
    {COL_REST, ALL, "rest", 5, 9, -1, false},
    {COL_SWITCHES, ALL, "SW/s", 5, 8, TOP_BY_SWITCHES, false},
    {COL_FOR, OF(THREADS), "FOR", 24, 10, -1, true},
    {COL_TIME, OF(CAUSES), "TIME", 7, 1, TOP_BY_WAIT, false},
    {COL_SHARE, OF(CAUSES), "%TIME", 5, 1, TOP_BY_WAIT, false},
    {COL_SWITCHES, OF(CAUSES), "SW/s", 5, 3, TOP_BY_SWITCHES, false},
    {COL_MEAN, OF(CAUSES), "MEAN", 7, 4, -1, false},
    {COL_WHO, OF(CAUSES), "MOST OF IT", 24, 5, -1, true},
    {COL_DETAIL, OF(PROCESSES) | OF(CAUSES), "COMMAND", 20, 5, -1, true},
    {COL_DETAIL, OF(THREADS), "COMMAND", 10, 11, -1, true},
};
#define COLUMN_ROWS (sizeof(column_rows) / sizeof(column_rows[0]))

struct column {
    const struct column_row *row;
    uint32_t cause;
    int x, width;
};

struct layout {
    struct column columns[COLUMN_ROWS + PRCB_CAUSE_MAX];
    int count;
    uint32_t causes; /* that have a column */
};

static int cause_width(uint32_t cause)
{
    int width = (int)strlen(top_cause_name(cause));

    return width < 5 ? 5 : width;
}

/* Names of threads and processes have 15 columns at most, those of cgroups half the screen. */
static int row_width(const struct top_ui *ui, const struct column_row *row, int width)
{
    if (row->kind == COL_NAME && ui->choice.group == TOP_CGROUPS)
        return width > 60 ? width / 2 : 15;
    return row->width;
}

static bool has_column(const struct top_ui *ui, const struct column_row *row)
{
    if (!(row->groups >> ui->choice.group & 1))
        return false;
    if (row->kind == COL_CAUSE || row->kind == COL_REST || row->kind == COL_MOST)
        return ui->rows.present & PRCB_HAS_WAITS;
    if (row->kind == COL_FOR)
        return ui->details.wait != NULL;
    return true;
}

/* Chooses which columns fit, by rank; *ret_causes: how many causes. */
static unsigned choose(const struct top_ui *ui, int width, uint32_t *ret_causes)
{
    unsigned chosen = 0;
    int left = width + 1;
    uint32_t causes = 0;

    for (int rank = 0; rank < 12; rank++) {
        for (size_t i = 0; i < COLUMN_ROWS; i++) {
            const struct column_row *row = &column_rows[i];
            int wide = row_width(ui, row, width);

            if (row->rank != rank || !has_column(ui, row))
                continue;
            if (row->kind == COL_CAUSE) {
                for (; causes < 2 && causes < ui->column_count &&
                       cause_width(ui->columns[causes]) + 1 <= left;
                     causes++)
                    left -= cause_width(ui->columns[causes]) + 1;
                chosen |= 1u << i;
            } else if (wide + 1 <= left) {
                left -= wide + 1;
                chosen |= 1u << i;
            }
        }
        /* The other causes come before columns that say less. */
        for (; rank == 8 && causes < ui->column_count && causes < 8 &&
               cause_width(ui->columns[causes]) + 1 <= left;
             causes++)
            left -= cause_width(ui->columns[causes]) + 1;
    }
    *ret_causes = causes;
    return chosen;
}

static void add_column(struct layout *layout, const struct column_row *row, uint32_t cause,
                       int width, int *x)
{
    layout->columns[layout->count++] = (struct column){row, cause, *x, width};
    *x += width + 1;
}

static void make_layout(struct top_ui *ui, int width, struct layout *ret)
{
    uint32_t causes;
    unsigned chosen = choose(ui, width, &causes);
    int x = 0;

    ret->count = 0;
    ret->causes = ui->column_shown = causes;
    for (size_t i = 0; i < COLUMN_ROWS; i++) {
        const struct column_row *row = &column_rows[i];

        if (!(chosen >> i & 1))
            continue;
        if (row->kind == COL_CAUSE) {
            for (uint32_t k = 0; k < causes; k++)
                add_column(ret, row, ui->columns[k], cause_width(ui->columns[k]), &x);
        } else if (row->kind == COL_DETAIL) {
            add_column(ret, row, 0, width - x, &x);
        } else {
            add_column(ret, row, 0, row_width(ui, row, width), &x);
        }
    }
}

static bool is_sorted(const struct top_ui *ui, const struct column *column)
{
    const struct top_order *order = &ui->choice.order;

    if (column->row->kind == COL_CAUSE)
        return order->key == TOP_BY_CAUSE && order->cause == column->cause;
    if (column->row->kind == COL_PID && ui->choice.group == TOP_THREADS)
        return false;
    return column->row->sort == (int)order->key;
}

static const char *heading_of(const struct top_ui *ui, const struct column *column)
{
    static const char *const names[TOP_GROUPS] = {"THREAD", "PROCESS", "NAME", "CGROUP", "CAUSE"};

    if (column->row->kind == COL_NAME)
        return names[ui->choice.group];
    if (column->row->kind == COL_CAUSE)
        return top_cause_name(column->cause);
    if (column->row->kind == COL_DETAIL && ui->choice.group == TOP_CAUSES)
        return "MEANING";
    return column->row->heading;
}

static void put_cell(struct top_grid *grid, int y, const struct column *column, enum top_role role,
                     const char *text)
{
    if (column->row->left)
        top_put(grid, y, column->x, column->width, role, text);
    else
        top_put_right(grid, y, column->x, column->width, role, text);
}

static void draw_heading(const struct top_ui *ui, struct top_grid *grid, int y,
                         const struct layout *layout)
{
    top_paint(grid, y, 0, grid->width, TOP_BAR);
    for (int i = 0; i < layout->count; i++) {
        const struct column *column = &layout->columns[i];

        put_cell(grid, y, column, is_sorted(ui, column) ? TOP_SORTED : TOP_BAR,
                 heading_of(ui, column));
        if (column->row->kind == COL_CAUSE)
            top_spot(grid, TOP_SPOT_CAUSE, y, column->x, column->x + column->width, column->cause);
        else if (column->row->sort >= 0)
            top_spot(grid, TOP_SPOT_SORT, y, column->x, column->x + column->width,
                     (uint32_t)column->row->sort);
    }
}

/* ---- rows ------------------------------------------------------------------------------ */

static enum top_role state_role(struct top_now now)
{
    switch (now.state) {
    case TOP_RUN:
        return TOP_RUNNING;
    case TOP_READY:
        return TOP_READYING;
    case TOP_WAIT:
        return cause_has(now.cause, CAUSE_MAY_IDLE) ? TOP_IDLING : TOP_HOLDING;
    default:
        return TOP_DIM;
    }
}

static void now_text(const struct top_ui *ui, const struct top_row *row, char *ret, size_t size)
{
    const struct top_frame *frame = top_model_frame(ui->model, ui->position);
    char age[FORMAT_CELL];

    *ret = '\0';
    switch (row->now.state) {
    case TOP_RUN:
        snprintf(ret, size, "run");
        return;
    case TOP_ENDED:
        if (row->threads > 1)
            snprintf(ret, size, "(%" PRIu32 " ended)", row->threads);
        else
            snprintf(ret, size, "(ended)");
        return;
    case TOP_READY:
    case TOP_WAIT:
        top_age(frame->end_ns > row->now.since_ns ? frame->end_ns - row->now.since_ns : 0, age,
                sizeof(age));
        snprintf(ret, size, "%-9s %6s",
                 row->now.state == TOP_READY ? "ready" : top_cause_name(row->now.cause),
                 row->now.since_ns ? age : "");
        return;
    default:
        snprintf(ret, size, "%s", row->threads > 1 ? "" : "-");
    }
}

static uint64_t rest_of(const struct layout *layout, const struct top_row *row)
{
    uint64_t rest = row->wait_ns;

    for (int i = 0; i < layout->count; i++) {
        const struct column *column = &layout->columns[i];
        uint64_t ns = column->row->kind == COL_CAUSE ? row->ns[column->cause] : 0;

        rest -= ns < rest ? ns : rest;
    }
    return rest;
}

static void name_text(const struct top_row *row, char *ret, size_t size)
{
    snprintf(ret, size, "%s%s%s", row->depth ? "  " : "", row->folded ? "+ " : "",
             row->name ? row->name : "");
}

static void number_text(uint64_t number, char *ret, size_t size)
{
    if (number)
        snprintf(ret, size, "%" PRIu64, number);
    else
        *ret = '\0';
}

static void per_second(const struct top_ui *ui, uint64_t count, char *ret, size_t size)
{
    const struct top_frame *frame = top_model_frame(ui->model, ui->position);

    top_count(frame->wall_ns ? (double)count * 1e9 / (double)frame->wall_ns : 0, ret, size);
}

static void mean_text(const struct top_row *row, char *ret, size_t size)
{
    if (row->switches && row->wait_ns)
        format_time(row->wait_ns / row->switches, ret, size);
    else
        snprintf(ret, size, "-");
}

static void most_text(const struct top_row *row, char *ret, size_t size)
{
    uint32_t most = top_row_most(row, true);

    snprintf(ret, size, "%s", most == TOP_NONE ? "-" : top_cause_name(most));
}

static void cell_text(const struct top_ui *ui, const struct layout *layout,
                      const struct column *column, const struct top_row *row, char *ret,
                      size_t size)
{
    const struct top_thread *thread = &ui->model->threads[row->thread];
    unsigned parts[3];

    *ret = '\0';
    switch (column->row->kind) {
    case COL_PID:
        number_text((uint64_t)row->pid, ret, size);
        break;
    case COL_TID:
        number_text((uint64_t)row->tid, ret, size);
        break;
    case COL_NAME:
        name_text(row, ret, size);
        break;
    case COL_THREADS:
        snprintf(ret, size, "%" PRIu32, row->threads);
        break;
    case COL_NOW:
        now_text(ui, row, ret, size);
        break;
    case COL_RUN:
    case COL_READY:
    case COL_WAIT:
        tenths(row, parts);
        if (row->wall_ns)
            snprintf(ret, size, "%u.%u", parts[column->row->kind - COL_RUN] / 10,
                     parts[column->row->kind - COL_RUN] % 10);
        else
            snprintf(ret, size, "-");
        break;
    case COL_MOST:
        most_text(row, ret, size);
        break;
    case COL_CAUSE:
        share_text(row->ns[column->cause], row->wall_ns, ret, size);
        break;
    case COL_REST:
        share_text(rest_of(layout, row), row->wall_ns, ret, size);
        break;
    case COL_SWITCHES:
        per_second(ui, row->switches, ret, size);
        break;
    case COL_FOR:
        if (ui->details.wait && row->threads == 1)
            ui->details.wait(ui->details.ctx, row, ret, size);
        break;
    case COL_DETAIL:
        snprintf(ret, size, "%s", row->detail ? row->detail : "");
        break;
    case COL_TIME:
        format_time(row->wait_ns, ret, size);
        break;
    case COL_SHARE:
        share_text(row->wait_ns, row->wall_ns, ret, size);
        break;
    case COL_MEAN:
        mean_text(row, ret, size);
        break;
    case COL_WHO:
        snprintf(ret, size, "%s (%d)", thread->comm, (int)thread->tid);
        break;
    }
}

static bool is_tagged(const struct top_ui *ui, uint64_t id)
{
    for (uint32_t i = 0; i < ui->tag_count; i++) {
        if (ui->tags[i] == id)
            return true;
    }
    return false;
}

static enum top_role cell_role(const struct column *column, const struct top_row *row,
                               const char *text)
{
    if (row->sleeps)
        return TOP_DIM;
    switch (column->row->kind) {
    case COL_NOW:
        return state_role(row->now);
    case COL_DETAIL:
    case COL_PID:
        return TOP_DIM;
    case COL_CAUSE:
    case COL_REST:
        return strcmp(text, "0") ? TOP_PLAIN : TOP_DIM;
    default:
        return TOP_PLAIN;
    }
}

static void draw_row(const struct top_ui *ui, struct top_grid *grid, int y,
                     const struct layout *layout, const struct top_row *row, bool selected)
{
    for (int i = 0; i < layout->count; i++) {
        char text[512];

        cell_text(ui, layout, &layout->columns[i], row, text, sizeof(text));
        put_cell(grid, y, &layout->columns[i], cell_role(&layout->columns[i], row, text), text);
    }
    if (is_tagged(ui, row->id))
        top_paint(grid, y, 0, grid->width, TOP_TAGGED);
    if (selected)
        top_paint(grid, y, 0, grid->width, TOP_CURSOR);
}

/* ---- the lines above ---------------------------------------------------------------------- */

static void clock_text(const struct top_ui *ui, const char *format, char *ret, size_t size)
{
    time_t seconds = 0;
    struct tm tm = {0};

    *ret = '\0';
    if (!ui->model->frame_count)
        return;
    seconds = (time_t)(top_model_frame(ui->model, ui->position)->clock_ns / (int64_t)NS);
    if (localtime_r(&seconds, &tm))
        strftime(ret, size, format, &tm);
}

static void mode_text(const struct top_ui *ui, char *ret, size_t size)
{
    const struct top_model *m = ui->model;
    uint64_t behind = 0;

    if (m->frame_count)
        behind = (top_model_frame(m, m->frame_count - 1)->end_ns -
                  top_model_frame(m, ui->position)->end_ns) /
                 NS;
    if (ui->mode == TOP_PAUSED)
        snprintf(ret, size, "PAUSED -%02u:%02u", (unsigned)(behind / 60), (unsigned)(behind % 60));
    else
        snprintf(ret, size, "%s", ui->mode == TOP_FILE ? "FILE" : "LIVE");
}

/* Puts a word into the first line, if it fits with two blanks behind it. */
static int put_word(struct top_grid *grid, int x, int end, enum top_role role, const char *text)
{
    if (!*text || x + (int)format_width(text) > end)
        return x;
    return x + top_put(grid, 0, x, end - x, role, text) + 2;
}

void top_draw_title(const struct top_ui *ui, struct top_grid *grid)
{
    char clock[32], mode[32], threads[FORMAT_CELL], cpus[FORMAT_CELL] = "", every[FORMAT_CELL + 8],
                                                    time[FORMAT_CELL];
    const struct top_frame *frame =
        ui->model->frame_count ? top_model_frame(ui->model, ui->position) : NULL;
    int needed, x = 0, end = grid->width;

    clock_text(ui, ui->mode == TOP_FILE && grid->width >= 80 ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S",
               clock, sizeof(clock));
    mode_text(ui, mode, sizeof(mode));
    format_count(ui->rows.threads, "thread", "threads", threads, sizeof(threads));
    if (frame && frame->processors.known)
        format_count(frame->processors.online, "cpu", "cpus", cpus, sizeof(cpus));
    format_time(frame ? frame->wall_ns : ui->setting.interval_ns, time, sizeof(time));
    snprintf(every, sizeof(every), "over %s", time);
    /* Time and mode are always there; the rest gets the room before them. */
    needed = (int)(strlen(clock) + 2 + strlen(mode) + 2 + strlen(threads));
    x = put_word(grid, x, end - needed - 2, TOP_STRONG, "prcb top");
    x = put_word(grid, x, end - needed - 2, TOP_PLAIN, ui->setting.host);
    x = put_word(grid, x, end - needed - 2, TOP_PLAIN, cpus);
    x = put_word(grid, x, end - needed - 2, TOP_PLAIN, every);
    x = put_word(grid, x, end - needed - 2, TOP_PLAIN, ui->setting.tier);
    x = put_word(grid, x, end, TOP_PLAIN, clock);
    x = put_word(grid, x, end, ui->mode == TOP_LIVE ? TOP_MODE : TOP_PAST, mode);
    put_word(grid, x, end, TOP_PLAIN, threads);
}

static void draw_processors(const struct top_ui *ui, struct top_grid *grid, int y)
{
    static const struct {
        const char *word;
        enum processor_part part;
    } parts[] = {
        {"user", PROCESSOR_user_ns},   {"kernel", PROCESSOR_kernel_ns},
        {"softirq", PROCESSOR_dpc_ns}, {"irq", PROCESSOR_interrupt_ns},
        {"steal", PROCESSOR_steal_ns}, {"idle", PROCESSOR_idle_ns},
    };
    const struct top_frame *frame = top_model_frame(ui->model, ui->position);
    uint64_t whole = 0;
    char text[32];
    int x = top_put(grid, y, 0, grid->width, TOP_STRONG, "cpu") + 2;

    for (int i = 0; i < PROCESSOR_PARTS; i++)
        whole += frame->processors.parts[i];
    if (!frame->processors.known || !whole) {
        top_put(grid, y, x, grid->width, TOP_DIM, "times of the processors are not known here");
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        share_text(frame->processors.parts[parts[i].part], whole, text, sizeof(text));
        if (x + (int)strlen(parts[i].word) + 6 > grid->width)
            break;
        x += top_putf(grid, y, x, grid->width, TOP_DIM, "%s ", parts[i].word);
        x += top_put(grid, y, x, grid->width, TOP_PLAIN, text) + 2;
    }
    if (frame->processors.switches && x + 16 <= grid->width) {
        per_second(ui, frame->processors.switches, text, sizeof(text));
        x += top_putf(grid, y, x, grid->width, TOP_PLAIN, "%s switches/s", text) + 2;
    }
    if (!frame->processors.exact && x + 12 <= grid->width)
        top_put(grid, y, x, grid->width, TOP_DIM, "(/proc/stat)");
}

struct stretch {
    const char *name;
    enum top_role role;
    uint64_t ns;
};

/* Divides the time of all threads: run, ready, the causes that hold most, the rest, asleep. */
static int find_stretches(const struct top_ui *ui, struct stretch *ret)
{
    const struct top_row *total = &ui->rows.total;
    uint64_t idle = 0, other = 0;
    int count = 0, causes = 0;

    ret[count++] = (struct stretch){"run", TOP_RUNNING, total->run_ns};
    ret[count++] = (struct stretch){"ready", TOP_READYING, total->ready_ns};
    for (uint32_t i = 0; i < ui->rows.cause_count; i++) {
        uint32_t cause = ui->rows.causes[i];
        uint64_t asleep = ui->rows.asleep_ns[cause], awake = total->ns[cause] - asleep;

        idle += cause_has(cause, CAUSE_MAY_IDLE) ? total->ns[cause] : asleep;
        if (cause_has(cause, CAUSE_MAY_IDLE) || !awake)
            continue;
        if (causes++ < BAR_CAUSES)
            ret[count++] = (struct stretch){top_cause_name(cause), TOP_HOLDING, awake};
        else
            other += awake;
    }
    if (other)
        ret[count++] = (struct stretch){"other", TOP_HOLDING, other};
    ret[count++] = (struct stretch){"asleep", TOP_IDLING, idle};
    return count;
}

static void draw_bar(const struct top_ui *ui, struct top_grid *grid, int y)
{
    static const char marks[TOP_ROLES] = {
        [TOP_RUNNING] = '#', [TOP_READYING] = '=', [TOP_HOLDING] = '+', [TOP_IDLING] = '.'};
    struct stretch stretches[BAR_CAUSES + 4];
    uint64_t whole = ui->rows.total.wall_ns;
    int count = find_stretches(ui, stretches), x;
    int room = grid->width - 6 - 14 * count;

    x = top_put(grid, y, 0, grid->width, TOP_STRONG, "time") + 1;
    if (!(ui->rows.present & PRCB_HAS_WAITS))
        count = 2;
    for (int i = 0; i < count && whole; i++) {
        int bars =
            room > 0 ? (int)((double)room * (double)stretches[i].ns / (double)whole + 0.5) : 0;
        char text[32];

        snprintf(text, sizeof(text), " %.0f%%", 100.0 * (double)stretches[i].ns / (double)whole);
        if ((double)stretches[i].ns * 200 < (double)whole && i > 1)
            continue;
        if (x + (int)(strlen(stretches[i].name) + strlen(text)) + 1 > grid->width)
            break;
        x += top_put(grid, y, x, grid->width, TOP_PLAIN, stretches[i].name);
        x += bars > 0;
        for (int k = 0; k < bars && x < grid->width; k++)
            x += top_putf(grid, y, x, 1, stretches[i].role, "%c", marks[stretches[i].role]);
        x += top_put(grid, y, x, grid->width, TOP_PLAIN, text) + 1;
    }
}

/* Draws what kept threads from work, column by column: being ready, and waiting for what is not
 * idleness. */
static void draw_past(const struct top_ui *ui, struct top_grid *grid, int y)
{
    static const char *const levels[2] = {" .:-=+*#%@", " ▁▂▃▄▅▆▇█"};
    const struct top_model *m = ui->model;
    int room = grid->width - 5 - 26, columns = room < 10 ? grid->width - 5 : room;
    uint32_t each = m->frame_count > (uint32_t)columns
                        ? (m->frame_count + (uint32_t)columns - 1) / (uint32_t)columns
                        : 1;
    double values[512], most = 0;
    int count = 0;
    char text[FORMAT_CELL];

    top_put(grid, y, 0, 5, TOP_STRONG, "past");
    for (uint32_t at = 0; at < m->frame_count && count < 512; at += each, count++) {
        uint64_t ns = 0, wall = 0;

        for (uint32_t i = at; i < at + each && i < m->frame_count; i++) {
            ns += top_model_frame(m, i)->ready_ns;
            wall += top_model_frame(m, i)->wall_ns;
        }
        values[count] = wall ? (double)ns / (double)wall : 0;
        most = values[count] > most ? values[count] : most;
    }
    for (int i = 0; i < count; i++) {
        uint32_t first = (uint32_t)i * each;
        bool here = ui->position >= first && ui->position < first + each;
        int steps = grid->unicode ? 8 : 9;
        int level = most > 0 ? (int)(values[i] / most * steps + 0.5) : 0;

        if (grid->unicode) {
            char mark[4] = " ";

            if (level)
                memcpy(mark, levels[1] + 1 + 3 * (level - 1), 3), mark[3] = '\0';
            top_put(grid, y, 5 + i, 1, here ? TOP_CURSOR : TOP_READYING, mark);
        } else {
            top_putf(grid, y, 5 + i, 1, here ? TOP_CURSOR : TOP_READYING, "%c", levels[0][level]);
        }
        top_spot(grid, TOP_SPOT_PAST, y, 5 + i, 6 + i, first);
    }
    if (columns == room && m->frame_count) {
        format_time(top_model_frame(m, ui->position)->wall_ns * each, text, sizeof(text));
        top_putf(grid, y, 6 + count, 26, TOP_DIM, "ready; a column is %s", text);
    }
}

/* ---- the lines below ------------------------------------------------------------------------ */

static void draw_functions(struct top_grid *grid, int y)
{
    static const struct {
        const char *key, *word;
        enum top_action action;
    } functions[] = {
        {"F1", "Help", TOP_ACT_HELP},      {"F3", "Search", TOP_ACT_SEARCH},
        {"F4", "Filter", TOP_ACT_FILTER},  {"F5", "Tree", TOP_ACT_TREE},
        {"F6", "Sort", TOP_ACT_SORT_NEXT}, {"F7", "Group", TOP_ACT_GROUP},
        {"F8", "Idle", TOP_ACT_SLEEPING},  {"Spc", "Pause", TOP_ACT_PAUSE},
        {"T", "Back", TOP_ACT_BEFORE},     {"F10", "Quit", TOP_ACT_QUIT},
    };
    int x = 0;

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        int start = x, wide = (int)(strlen(functions[i].key) + strlen(functions[i].word)) + 1;

        if (x + wide > grid->width)
            break;
        x += top_put(grid, y, x, grid->width, TOP_STRONG, functions[i].key);
        x += top_put(grid, y, x, grid->width, TOP_BAR, functions[i].word);
        top_spot(grid, TOP_SPOT_ACTION, y, start, x, functions[i].action);
        x++;
    }
}

/* Draws the last line: what is being asked, what is to be said, or the function keys. */
void top_draw_footer(const struct top_ui *ui, struct top_grid *grid)
{
    static const char *const questions[] = {
        [TOP_ASK_SEARCH] = "search: ",
        [TOP_ASK_FILTER] = "filter: ",
        [TOP_ASK_USER] = "user: ",
        [TOP_ASK_COMMAND] = ":",
        [TOP_ASK_BACK] = "back by (30s, 5m): ",
        [TOP_ASK_ON] = "on by (30s, 5m): ",
        [TOP_ASK_TIME] = "to (14:03, 14:03:22): ",
        [TOP_ASK_INTERVAL] = "interval (5s, 500ms): ",
    };
    int y = grid->height - 1, x = 0;

    if (ui->prompt) {
        x = top_put(grid, y, 0, grid->width, TOP_STRONG, questions[ui->prompt]);
        x += top_put(grid, y, x, grid->width - x, TOP_PLAIN, ui->input);
        top_put(grid, y, x, 1, TOP_CURSOR, " ");
    } else if (*ui->message) {
        top_put(grid, y, 0, grid->width, ui->message_wrong ? TOP_WRONG : TOP_STRONG, ui->message);
    } else {
        draw_functions(grid, y);
    }
}

static void sleepers_text(const struct top_ui *ui, char *ret, size_t size)
{
    char threads[FORMAT_CELL], processes[FORMAT_CELL];

    format_count(ui->rows.sleeping, "thread", "threads", threads, sizeof(threads));
    format_count(ui->rows.sleeping_processes, "process", "processes", processes, sizeof(processes));
    snprintf(ret, size, " ... asleep: %s of %s (i shows them)", threads, processes);
}

/* Writes what was chosen: group, filter, user. */
static void choice_text(const struct top_ui *ui, char *ret, size_t size)
{
    size_t length = 0;

    *ret = '\0';
    if (ui->choice.group != TOP_THREADS)
        length += (size_t)snprintf(ret, size, "by %s%s", top_group_names[ui->choice.group],
                                   ui->choice.tree ? ", tree" : "");
    if (*ui->filter_text && length < size)
        length += (size_t)snprintf(ret + length, size - length, "%sfilter: %s", length ? "  " : "",
                                   ui->filter_text);
    if (*ui->user && length < size)
        snprintf(ret + length, size - length, "%suser: %s", length ? "  " : "", ui->user);
}

/* ---- the list ---------------------------------------------------------------------------------
 */

static int draw_top(struct top_ui *ui, struct top_grid *grid, bool past, bool gap)
{
    int y = 1;

    top_draw_title(ui, grid);
    draw_processors(ui, grid, y++);
    draw_bar(ui, grid, y++);
    if (past)
        draw_past(ui, grid, y++);
    if (gap) {
        char text[256];

        choice_text(ui, text, sizeof(text));
        top_put(grid, y, 0, grid->width, TOP_STRONG, *text ? text : ui->setting.notes[0]);
        if (!*text)
            top_paint(grid, y, 0, grid->width, TOP_DIM);
        y++;
    }
    if (*ui->setting.missing)
        top_put(grid, y++, 0, grid->width, TOP_WRONG, ui->setting.missing);
    return y;
}

static void scroll_to_cursor(struct top_ui *ui, uint32_t page)
{
    ui->page = page ? page : 1;
    if (ui->cursor < ui->scroll)
        ui->scroll = ui->cursor;
    if (ui->cursor >= ui->scroll + ui->page)
        ui->scroll = ui->cursor - ui->page + 1;
    if (ui->scroll + ui->page > ui->rows.count)
        ui->scroll = ui->rows.count > ui->page ? ui->rows.count - ui->page : 0;
}

static void draw_list(struct top_ui *ui, struct top_grid *grid)
{
    struct layout layout;
    int y = draw_top(ui, grid, grid->height >= PAST_HEIGHT, grid->height >= GAP_HEIGHT);
    int end = grid->height - 1 - (ui->rows.sleeping > 0);

    make_layout(ui, grid->width, &layout);
    draw_heading(ui, grid, y++, &layout);
    scroll_to_cursor(ui, end > y ? (uint32_t)(end - y) : 1);
    for (uint32_t i = ui->scroll; i < ui->rows.count && y < end; i++, y++) {
        draw_row(ui, grid, y, &layout, &ui->rows.rows[i], i == ui->cursor);
        top_spot(grid, TOP_SPOT_ROW, y, 0, grid->width, i);
    }
    if (!ui->rows.count && y < end)
        top_put(grid, y++, 0, grid->width, TOP_DIM,
                *ui->filter_text ? " no row passes the filter" : " nothing but sleepers");
    if (ui->rows.sleeping) {
        char text[192];

        sleepers_text(ui, text, sizeof(text));
        top_put(grid, y, 0, grid->width, TOP_DIM, text);
        top_spot(grid, TOP_SPOT_ACTION, y, 0, grid->width, TOP_ACT_SLEEPING);
    }
    top_draw_footer(ui, grid);
}

static void draw_help(struct top_ui *ui, struct top_grid *grid)
{
    const char *section = "";
    int y = 1, skip = (int)ui->help_scroll;

    top_put(grid, 0, 0, grid->width, TOP_STRONG, "prcb top: keys (F1 or Esc leaves this list)");
    for (int i = 1; i < TOP_ACTIONS && y < grid->height - 1; i++) {
        const struct top_action_row *row = &top_actions[i];

        if (strcmp(section, row->section)) {
            section = row->section;
            if (skip-- <= 0)
                top_put(grid, y++, 0, grid->width, TOP_STRONG, section);
        }
        if (skip-- > 0 || y >= grid->height - 1)
            continue;
        top_put(grid, y, 2, 15, TOP_PLAIN, row->keys);
        y += top_put_lines(grid, y, 18, grid->width - 18, grid->height - 1 - y, TOP_PLAIN,
                           row->help);
    }
    top_draw_footer(ui, grid);
}

void top_view_draw(struct top_ui *ui, struct top_grid *grid)
{
    top_grid_clear(grid);
    if (grid->width < TOP_LEAST_WIDTH || grid->height < TOP_LEAST_HEIGHT) {
        top_putf(grid, 0, 0, grid->width, TOP_WRONG, "prcb top needs %dx%d", TOP_LEAST_WIDTH,
                 TOP_LEAST_HEIGHT);
    } else if (ui->screen == TOP_HELP) {
        draw_help(ui, grid);
    } else if (!ui->model->frame_count) {
        top_draw_title(ui, grid);
        top_put(grid, 2, 0, grid->width, TOP_DIM, " the first interval is being measured");
        top_draw_footer(ui, grid);
    } else if (ui->screen == TOP_PANES) {
        top_panes_draw(ui, grid);
    } else {
        draw_list(ui, grid);
    }
}

int top_view_batch(struct top_ui *ui, struct top_grid *grid, uint32_t most)
{
    struct layout layout;
    uint32_t count = most && most < ui->rows.count ? most : ui->rows.count;
    char text[256];
    int y;

    if (top_grid_resize(grid, grid->width, (int)(count + 12)))
        return 0;
    y = draw_top(ui, grid, false, false);
    choice_text(ui, text, sizeof(text));
    if (*text)
        top_put(grid, y++, 0, grid->width, TOP_PLAIN, text);
    y++;
    make_layout(ui, grid->width, &layout);
    draw_heading(ui, grid, y++, &layout);
    for (uint32_t i = 0; i < count; i++)
        draw_row(ui, grid, y++, &layout, &ui->rows.rows[i], false);
    if (count < ui->rows.count)
        top_putf(grid, y++, 0, grid->width, TOP_PLAIN, " ... %" PRIu32 " more",
                 ui->rows.count - count);
    if (ui->rows.sleeping) {
        format_count(ui->rows.sleeping, "thread", "threads", text, sizeof(text));
        top_putf(grid, y++, 0, grid->width, TOP_PLAIN, " ... asleep: %s (--idle shows them)", text);
    }
    return y;
}
