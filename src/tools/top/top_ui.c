/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_ui.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array.h"
#include "cause.h"

#define NS 1000000000ll

#define UNSEEN_MOST 5 /* intervals that a column stays for which no row on the screen has time */

int top_ui_init(struct top_ui *ui, struct top_model *model)
{
    memset(ui, 0, sizeof(*ui));
    ui->model = model;
    ui->choice.only_thread = TOP_NONE;
    ui->page = 10;
    memset(ui->column_unseen, UNSEEN_MOST, sizeof(ui->column_unseen));
    return 0;
}

void top_ui_deinit(struct top_ui *ui)
{
    top_rows_deinit(&ui->rows);
    free(ui->subject_threads);
    ui->subject_threads = NULL;
}

void top_ui_forget(struct top_ui *ui)
{
    top_rows_deinit(&ui->rows);
    ui->rows = (struct top_rows){0};
    ui->position = 0;
    ui->position_ns = 0;
    ui->mode = TOP_LIVE;
    ui->screen = TOP_LIST;
    ui->cursor = ui->scroll = 0;
    ui->cursor_id = 0;
    ui->follow = false;
    ui->tag_count = 0;
    ui->subject = (struct top_row){0};
    ui->subject_count = ui->pane_cause_count = 0;
    memset(ui->pane_thread_counts, 0, sizeof(ui->pane_thread_counts));
    ui->choice.only_thread = TOP_NONE;
}

void top_ui_say(struct top_ui *ui, bool wrong, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ui->message, sizeof(ui->message), format, args);
    va_end(args);
    ui->message_wrong = wrong;
}

void top_pieces_add(struct top_pieces *to, const struct top_piece *piece)
{
    uint32_t at = to->count < TOP_PIECES ? to->count : TOP_PIECES - 1;

    if (!piece->ns || (to->count == TOP_PIECES && to->pieces[at].ns >= piece->ns))
        return;
    for (; at && to->pieces[at - 1].ns < piece->ns; at--)
        to->pieces[at] = to->pieces[at - 1];
    to->pieces[at] = *piece;
    to->count += to->count < TOP_PIECES;
}

const struct top_row *top_ui_row(const struct top_ui *ui)
{
    return ui->cursor < ui->rows.count ? &ui->rows.rows[ui->cursor] : NULL;
}

uint32_t top_ui_cause(const struct top_ui *ui)
{
    uint32_t at = ui->pane_cursor[TOP_WHY];

    return at < ui->pane_cause_count ? ui->pane_causes[at] : TOP_NONE;
}

/* ---- what is shown ------------------------------------------------------------- */

/* Returns the index of the interval to be shown: the last, or the one that was chosen. */
static uint32_t find_position(const struct top_ui *ui)
{
    uint32_t count = ui->model->frame_count, low;

    if (!count)
        return 0;
    if (ui->mode == TOP_LIVE)
        return count - 1;
    low = (uint32_t)array_front(i, count,
                                top_model_frame(ui->model, (uint32_t)i)->end_ns < ui->position_ns);
    return low < count ? low : count - 1;
}

static void go_to(struct top_ui *ui, uint32_t index)
{
    if (index >= ui->model->frame_count)
        return;
    if (ui->mode == TOP_LIVE)
        ui->mode = TOP_PAUSED;
    ui->position = index;
    ui->position_ns = top_model_frame(ui->model, index)->end_ns;
}

/* A column in which each row on the screen has zero says nothing: there is none for it, once that
 * has been so for some intervals. */
static void look_at_columns(struct top_ui *ui)
{
    uint64_t end_ns = ui->model->frame_count ? top_model_frame(ui->model, ui->position)->end_ns : 0;
    bool later = end_ns != ui->column_ns;

    ui->column_ns = end_ns;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++)
        if (later && ui->column_unseen[i] < UNSEEN_MOST)
            ui->column_unseen[i]++;
    for (uint32_t i = ui->scroll; i < ui->rows.count && i < ui->scroll + ui->page; i++) {
        const struct top_row *row = &ui->rows.rows[i];
        uint64_t whole = row->run_ns + row->ready_ns + row->wait_ns;

        for (uint32_t k = 1; k < PRCB_CAUSE_MAX; k++) {
            if (row->ns[k] && row->ns[k] >= whole / 2000) /* less is shown as 0.0 */
                ui->column_unseen[k] = 0;
        }
    }
}

void top_ui_rank_columns(struct top_ui *ui)
{
    uint64_t ns[PRCB_CAUSE_MAX] = {0};

    look_at_columns(ui);
    for (uint32_t i = 0; i < ui->rows.count; i++) {
        const struct top_row *row = &ui->rows.rows[i];

        for (uint32_t k = 1; k < PRCB_CAUSE_MAX && !row->depth; k++)
            ns[k] += row->ns[k];
    }
    /* A cause that has a column keeps it until another has half as much again. Causes that are
     * idleness come last. */
    for (uint32_t i = 0; i < ui->column_shown && i < ui->column_count; i++)
        ns[ui->columns[i]] += ns[ui->columns[i]] / 2;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++)
        ns[i] += ns[i] && !cause_has(i, CAUSE_MAY_IDLE) ? UINT64_MAX / 4 : 0;
    ui->column_count = 0;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        uint32_t at = ui->column_count;

        if (!ns[i] || ui->column_unseen[i] >= UNSEEN_MOST)
            continue;
        for (; at && ns[ui->columns[at - 1]] < ns[i]; at--)
            ui->columns[at] = ui->columns[at - 1];
        ui->columns[at] = i;
        ui->column_count++;
    }
}

static void find_cursor(struct top_ui *ui)
{
    if (ui->follow || ui->mode != TOP_LIVE) {
        for (uint32_t i = 0; i < ui->rows.count; i++) {
            if (ui->rows.rows[i].id == ui->cursor_id)
                ui->cursor = i;
        }
    }
    if (ui->cursor >= ui->rows.count)
        ui->cursor = ui->rows.count ? ui->rows.count - 1 : 0;
    if (!ui->follow && ui->rows.count)
        ui->cursor_id = ui->rows.rows[ui->cursor].id;
}

static bool is_subject(const struct top_ui *ui, uint32_t index)
{
    return ui->model->threads[index].key &&
           top_row_id(ui->model, index, ui->subject_group) == ui->subject_id;
}

static int add_subject(struct top_ui *ui, uint32_t index)
{
    return array_add(ui->subject_threads, ui->subject_count, ui->subject_room, index);
}

/* Ranks the causes of the row, most time first, with ready and run among them. */
static void rank_pane(struct top_ui *ui)
{
    uint64_t ns[PRCB_CAUSE_MAX + 2];
    uint32_t chosen = top_ui_cause(ui);
    bool fresh = !ui->pane_cause_count;

    memcpy(ns, ui->subject.ns, sizeof(ui->subject.ns));
    ns[TOP_ROW_RUN] = ui->subject.run_ns;
    ns[TOP_ROW_READY] = ui->subject.ready_ns;
    ui->pane_cause_count = 0;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX + 2; i++) {
        uint32_t at = ui->pane_cause_count;

        if (!ns[i])
            continue;
        for (; at && ns[ui->pane_causes[at - 1]] < ns[i]; at--)
            ui->pane_causes[at] = ui->pane_causes[at - 1];
        ui->pane_causes[at] = i;
        ui->pane_cause_count++;
    }
    /* The cursor stays on its cause; at first it is on the longest wait. */
    for (uint32_t i = 0; i < ui->pane_cause_count; i++) {
        if (fresh ? ui->pane_causes[i] < PRCB_CAUSE_MAX : ui->pane_causes[i] == chosen) {
            ui->pane_cursor[TOP_WHY] = i;
            break;
        }
    }
    if (ui->pane_cursor[TOP_WHY] >= ui->pane_cause_count)
        ui->pane_cursor[TOP_WHY] = 0;
}

static int prepare_panes(struct top_ui *ui)
{
    const struct top_thread *first;
    int result = 0;

    ui->subject_count = 0;
    for (uint32_t i = 0; i < ui->model->thread_count && !result; i++)
        result = is_subject(ui, i) ? add_subject(ui, i) : 0;
    if (result || !ui->subject_count) {
        ui->screen = TOP_LIST;
        if (!result)
            top_ui_say(ui, false, "what was shown is not in the history any more");
        return result;
    }
    top_rows_history(ui->model, ui->position, ui->subject_threads, ui->subject_count, &ui->subject);
    first = &ui->model->threads[ui->subject_threads[0]];
    ui->subject.thread = ui->subject_threads[0];
    ui->subject.id = ui->subject_id;
    ui->subject.name = ui->subject_group == TOP_CGROUPS ? ui->subject_name : first->comm;
    ui->subject.detail = ui->model->processes[first->process].command;
    ui->subject.pid =
        ui->subject_group == TOP_THREADS || ui->subject_group == TOP_PROCESSES ? first->pid : 0;
    ui->subject.tid = ui->subject_group == TOP_THREADS ? first->tid : 0;
    ui->subject.now = ui->subject_count == 1 ? first->shown : (struct top_now){0};
    rank_pane(ui);
    return 0;
}

int top_ui_prepare(struct top_ui *ui)
{
    int result;

    ui->position = find_position(ui);
    ui->choice.filter = ui->filter.count ? &ui->filter : NULL;
    ui->choice.user = *ui->user ? ui->user : NULL;
    ui->choice.closed = ui->closed;
    result = top_rows_make(ui->model, ui->position, &ui->choice, &ui->rows);
    if (result)
        return result;
    top_ui_rank_columns(ui);
    find_cursor(ui);
    return ui->screen == TOP_PANES ? prepare_panes(ui) : 0;
}

/* ---- time ------------------------------------------------------------------------ */

int top_parse_span(const char *text, int64_t *ret_ns)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1},     {"ms", 1e-3}, {"s", 1},    {"m", 60},
                 {"min", 60}, {"h", 3600},  {"d", 86400}};
    char *end;
    double value = strtod(text, &end);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (end != text && !strcmp(end, units[i].unit) && value > 0 && value < 1e6) {
            *ret_ns = (int64_t)(value * units[i].seconds * (double)NS);
            return 0;
        }
    }
    return -EINVAL;
}

int top_parse_clock(const char *text, int64_t day_ns, int64_t *ret_ns)
{
    time_t day = (time_t)(day_ns / NS);
    int hour, minute, second = 0, used = 0;
    struct tm tm;

    if (!localtime_r(&day, &tm))
        return -EINVAL;
    if ((sscanf(text, "%2d:%2d:%2d%n", &hour, &minute, &second, &used) < 3 &&
         (second = 0, sscanf(text, "%2d:%2d%n", &hour, &minute, &used) < 2)) ||
        text[used] || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 59)
        return -EINVAL;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    tm.tm_sec = second;
    tm.tm_isdst = -1;
    *ret_ns = (int64_t)mktime(&tm) * NS;
    return 0;
}

static int64_t shown_clock(const struct top_ui *ui)
{
    return ui->model->frame_count ? top_model_frame(ui->model, ui->position)->clock_ns : 0;
}

static void go_to_clock(struct top_ui *ui, int64_t clock_ns)
{
    struct top_model *m = ui->model;

    if (!m->frame_count)
        return;
    if ((clock_ns < top_model_frame(m, 0)->clock_ns ||
         clock_ns > top_model_frame(m, m->frame_count - 1)->clock_ns) &&
        ui->details.load)
        ui->details.load(ui->details.ctx, clock_ns);
    if (!m->frame_count)
        return;
    go_to(ui, top_model_at(m, clock_ns));
    if (clock_ns < top_model_frame(m, 0)->clock_ns)
        top_ui_say(ui, false, "the history begins here");
}

static void step(struct top_ui *ui, int by)
{
    struct top_model *m = ui->model;
    uint32_t at = ui->position;

    if (!m->frame_count)
        return;
    if (by > 0 ? at + 1 < m->frame_count : at > 0) {
        go_to(ui, by > 0 ? at + 1 : at - 1);
        return;
    }
    /* The file may have more than what is in memory. */
    if (ui->details.load && ui->details.load(ui->details.ctx, shown_clock(ui))) {
        at = find_position(ui);
        if (by > 0 ? at + 1 < m->frame_count : at > 0) {
            go_to(ui, by > 0 ? at + 1 : at - 1);
            return;
        }
    }
    go_to(ui, at);
    top_ui_say(ui, false, by > 0 ? "this is the last interval" : "the history begins here");
}

static void pause_or_go(struct top_ui *ui)
{
    if (ui->mode == TOP_LIVE)
        go_to(ui, ui->position);
    else if (ui->mode == TOP_PAUSED)
        ui->mode = TOP_LIVE;
}

static void go_live(struct top_ui *ui)
{
    if (ui->mode == TOP_FILE)
        go_to_clock(ui, INT64_MAX);
    else
        ui->mode = TOP_LIVE;
}

/* ---- order ------------------------------------------------------------------------- */

/* Steps through the orders that have a column, from the left: the keys before CAUSE, then the
 * causes. */
static void sort_step(struct top_ui *ui, int by)
{
    static const enum top_sort fixed[] = {TOP_BY_BUSY, TOP_BY_PID,   TOP_BY_NAME, TOP_BY_FOR,
                                          TOP_BY_RUN,  TOP_BY_READY, TOP_BY_WAIT, TOP_BY_SWITCHES};
    uint32_t fixed_count = sizeof(fixed) / sizeof(fixed[0]);
    uint32_t count = fixed_count + ui->column_shown, at = 0;
    struct top_order *order = &ui->choice.order;

    for (uint32_t i = 0; i < count; i++) {
        bool same = i < fixed_count ? order->key == fixed[i]
                                    : order->key == TOP_BY_CAUSE &&
                                          order->cause == ui->columns[i - fixed_count];
        at = same ? i : at;
    }
    at = (at + count + (uint32_t)by) % count;
    order->key = at < fixed_count ? fixed[at] : TOP_BY_CAUSE;
    order->cause = at < fixed_count ? 0 : ui->columns[at - fixed_count];
    order->inverted = false;
}

static void sort_by(struct top_ui *ui, enum top_sort key, uint32_t cause)
{
    struct top_order *order = &ui->choice.order;

    order->inverted = order->key == key && order->cause == cause ? !order->inverted : false;
    order->key = key;
    order->cause = cause;
}

static void sort_cause(struct top_ui *ui)
{
    struct top_order *order = &ui->choice.order;
    uint32_t at = 0;

    if (!ui->column_shown) {
        top_ui_say(ui, false, "no cause has a column");
        return;
    }
    for (uint32_t i = 0; order->key == TOP_BY_CAUSE && i < ui->column_shown; i++)
        at = ui->columns[i] == order->cause ? (i + 1) % ui->column_shown : at;
    *order = (struct top_order){.key = TOP_BY_CAUSE, .cause = ui->columns[at]};
}

/* ---- rows --------------------------------------------------------------------------- */

static void move(struct top_ui *ui, int64_t by)
{
    int64_t most = ui->rows.count ? (int64_t)ui->rows.count - 1 : 0, at = (int64_t)ui->cursor + by;

    if (ui->screen == TOP_HELP) {
        int64_t scroll = (int64_t)ui->help_scroll + by;

        ui->help_scroll = (uint32_t)(scroll < 0 ? 0 : scroll > TOP_ACTIONS ? TOP_ACTIONS : scroll);
        return;
    }
    if (ui->screen == TOP_PANES) {
        uint32_t count = ui->pane == TOP_WHY ? ui->pane_cause_count
                         : ui->pane == TOP_WHOM || ui->pane == TOP_PATH
                             ? ui->pane_thread_counts[ui->pane]
                             : TOP_PIECES;

        at = (int64_t)ui->pane_cursor[ui->pane] + by;
        most = count ? (int64_t)count - 1 : 0;
        ui->pane_cursor[ui->pane] = (uint32_t)(at < 0 ? 0 : at > most ? most : at);
        return;
    }
    ui->cursor = (uint32_t)(at < 0 ? 0 : at > most ? most : at);
    ui->follow = false;
    if (ui->rows.count)
        ui->cursor_id = ui->rows.rows[ui->cursor].id;
}

static void search(struct top_ui *ui, uint32_t from)
{
    for (uint32_t i = 0; *ui->search && i < ui->rows.count; i++) {
        uint32_t at = (from + i) % ui->rows.count;

        if (top_row_has_text(&ui->rows.rows[at], ui->search)) {
            ui->cursor = at;
            ui->cursor_id = ui->rows.rows[at].id;
            return;
        }
    }
    top_ui_say(ui, true, *ui->search ? "no row contains '%s'" : "nothing was searched for%s",
               ui->search);
}

static void tag(struct top_ui *ui)
{
    const struct top_row *row = top_ui_row(ui);

    if (!row)
        return;
    for (uint32_t i = 0; i < ui->tag_count; i++) {
        if (ui->tags[i] == row->id) {
            ui->tags[i] = ui->tags[--ui->tag_count];
            return;
        }
    }
    if (ui->tag_count < sizeof(ui->tags) / sizeof(ui->tags[0]))
        ui->tags[ui->tag_count++] = row->id;
    move(ui, 1);
}

static void set_closed(struct top_ui *ui, pid_t pid, bool closed)
{
    for (size_t i = 0; i < ui->choice.closed_count; i++) {
        if (ui->closed[i] == pid) {
            if (!closed)
                ui->closed[i] = ui->closed[--ui->choice.closed_count];
            return;
        }
    }
    if (closed && ui->choice.closed_count < sizeof(ui->closed) / sizeof(ui->closed[0]))
        ui->closed[ui->choice.closed_count++] = pid;
}

static void fold(struct top_ui *ui, bool closed)
{
    const struct top_row *row = top_ui_row(ui);

    if (!ui->choice.tree)
        top_ui_say(ui, false, "F5 shows the tree of processes and threads");
    else if (row && row->pid)
        set_closed(ui, row->pid, closed);
}

static void fold_all(struct top_ui *ui)
{
    bool close = !ui->choice.closed_count;

    ui->choice.closed_count = 0;
    for (uint32_t i = 0; close && i < ui->rows.count; i++) {
        if (!ui->rows.rows[i].depth)
            set_closed(ui, ui->rows.rows[i].pid, true);
    }
}

static void set_group(struct top_ui *ui, enum top_group group)
{
    ui->choice.group = group;
    ui->choice.tree = false;
    ui->cursor = ui->scroll = 0;
    ui->follow = false;
    ui->screen = TOP_LIST;
}

static void set_filter(struct top_ui *ui, const char *text)
{
    char word[64];

    if (top_filter_parse(text, &ui->filter, word, sizeof(word))) {
        top_ui_say(ui, true, "filter: '%s' must be text, cause:NAME, cgroup:, user:, pid:, ready>5",
                   word);
        return;
    }
    snprintf(ui->filter_text, sizeof(ui->filter_text), "%s", text);
}

/* ---- panes -------------------------------------------------------------------------- */

static void open_panes(struct top_ui *ui, enum top_group group, uint64_t id, const char *name)
{
    ui->screen = TOP_PANES;
    ui->subject_group = group;
    ui->subject_id = id;
    snprintf(ui->subject_name, sizeof(ui->subject_name), "%s", name);
    memset(ui->pane_cursor, 0, sizeof(ui->pane_cursor));
    ui->pane_cause_count = 0;
    ui->pane = TOP_WHY;
    ui->zoom = false;
}

static void enter(struct top_ui *ui)
{
    const struct top_row *row = top_ui_row(ui);
    uint32_t at = ui->pane_cursor[ui->pane];

    if (ui->screen == TOP_PANES) {
        if (at >= ui->pane_thread_counts[ui->pane] || ui->pane_threads[ui->pane][at] == TOP_NONE)
            top_ui_say(ui, false,
                       "Enter in BY WHOM or CRITICAL PATH goes to a thread that is measured");
        else
            open_panes(ui, TOP_THREADS, ui->model->threads[ui->pane_threads[ui->pane][at]].key, "");
        return;
    }
    if (!row)
        return;
    if (ui->choice.group == TOP_CAUSES) {
        char text[64];

        snprintf(text, sizeof(text), "%s>0", row->name);
        set_filter(ui, text);
        if (row->id < PRCB_CAUSE_MAX)
            ui->choice.order = (struct top_order){.key = TOP_BY_CAUSE, .cause = (uint32_t)row->id};
        else
            ui->choice.order.key = row->id == TOP_ROW_RUN ? TOP_BY_RUN : TOP_BY_READY;
        set_group(ui, TOP_THREADS);
        return;
    }
    open_panes(ui, row->depth ? TOP_THREADS : ui->choice.group, row->id, row->name);
}

/* Closes one thing at a time: what was opened last. */
static void back(struct top_ui *ui)
{
    if (ui->screen == TOP_PANES && ui->zoom)
        ui->zoom = false;
    else if (ui->screen != TOP_LIST)
        ui->screen = TOP_LIST;
    else if (*ui->filter_text)
        set_filter(ui, "");
    else if (*ui->user)
        *ui->user = '\0';
    else
        *ui->search = '\0';
}

/* ---- prompts --------------------------------------------------------------------------- */

static void ask(struct top_ui *ui, enum top_prompt prompt, const char *text)
{
    ui->prompt = prompt;
    snprintf(ui->input, sizeof(ui->input), "%s", text);
}

static void run_command(struct top_ui *ui, const char *text)
{
    char name[32], rest[96] = "";
    enum top_action action;

    if (sscanf(text, " %31s %95[^\n]", name, rest) < 1)
        return;
    action = top_action_named(name);
    if (action == TOP_ACT_NONE) {
        top_ui_say(ui, true, "unknown command '%s'; F1 lists the commands", name);
        return;
    }
    top_ui_do(ui, action);
    /* The text that the action would ask for may stand behind its name. */
    if (ui->prompt && *rest) {
        snprintf(ui->input, sizeof(ui->input), "%s", rest);
        top_ui_key(ui, TOP_KEY_ENTER);
    }
}

static void answer_time(struct top_ui *ui, enum top_prompt prompt, const char *text)
{
    int64_t ns;

    if (prompt == TOP_ASK_TIME) {
        if (top_parse_clock(text, shown_clock(ui), &ns))
            top_ui_say(ui, true, "'%s' is not a time of day such as 14:03 or 14:03:22", text);
        else
            go_to_clock(ui, ns);
        return;
    }
    if (top_parse_span(text, &ns))
        top_ui_say(ui, true, "'%s' is not a duration such as 30s or 5m", text);
    else
        go_to_clock(ui, shown_clock(ui) + (prompt == TOP_ASK_BACK ? -ns : ns));
}

/* From the next interval on: those that were measured keep their length. */
static void set_interval(struct top_ui *ui, const char *text)
{
    int64_t ns;

    if (ui->mode == TOP_FILE)
        top_ui_say(ui, true, "a recording has the intervals that it was made with");
    else if (top_parse_span(text, &ns) || ns < TOP_INTERVAL_MIN_NS || ns > TOP_INTERVAL_MAX_NS)
        top_ui_say(ui, true, "'%s' is not a time from 100ms to an hour, such as 5s or 500ms", text);
    else
        ui->setting.interval_ns = (uint64_t)ns;
}

static void answer(struct top_ui *ui)
{
    enum top_prompt prompt = ui->prompt;
    char text[sizeof(ui->input)];

    memcpy(text, ui->input, sizeof(text));
    ui->prompt = TOP_NO_PROMPT;
    switch (prompt) {
    case TOP_ASK_SEARCH:
        snprintf(ui->search, sizeof(ui->search), "%.63s", text);
        search(ui, ui->cursor);
        break;
    case TOP_ASK_FILTER:
        set_filter(ui, text);
        break;
    case TOP_ASK_USER:
        snprintf(ui->user, sizeof(ui->user), "%.63s", text);
        break;
    case TOP_ASK_COMMAND:
        run_command(ui, text);
        break;
    case TOP_ASK_BACK:
    case TOP_ASK_ON:
    case TOP_ASK_TIME:
        if (*text)
            answer_time(ui, prompt, text);
        break;
    case TOP_ASK_INTERVAL:
        if (*text)
            set_interval(ui, text);
        break;
    case TOP_NO_PROMPT:
        break;
    }
}

/* Completes a command's name if only one begins like this. */
static void complete(struct top_ui *ui)
{
    const char *found = NULL;

    for (int i = 1; i < TOP_ACTIONS; i++) {
        if (strncmp(top_actions[i].name, ui->input, strlen(ui->input)))
            continue;
        if (found)
            return;
        found = top_actions[i].name;
    }
    if (found)
        snprintf(ui->input, sizeof(ui->input), "%s", found);
}

static void prompt_key(struct top_ui *ui, uint32_t key)
{
    size_t length = strlen(ui->input);

    if (key == TOP_KEY_ENTER) {
        answer(ui);
    } else if (key == TOP_KEY_ESC || key == ('C' & 0x1f)) {
        ui->prompt = TOP_NO_PROMPT;
    } else if (key == TOP_KEY_BACKSPACE) {
        ui->input[length ? length - 1 : 0] = '\0';
    } else if (key == ('U' & 0x1f)) {
        *ui->input = '\0';
    } else if (key == TOP_KEY_TAB && ui->prompt == TOP_ASK_COMMAND) {
        complete(ui);
    } else if (key >= ' ' && key <= '~' && length + 1 < sizeof(ui->input)) {
        ui->input[length] = (char)key;
        ui->input[length + 1] = '\0';
    }
}

/* ---- actions --------------------------------------------------------------------------- */

static void do_moving(struct top_ui *ui, enum top_action action)
{
    switch (action) {
    case TOP_ACT_UP:
    case TOP_ACT_DOWN:
        move(ui, action == TOP_ACT_UP ? -1 : 1);
        break;
    case TOP_ACT_PAGE_UP:
    case TOP_ACT_PAGE_DOWN:
        move(ui, action == TOP_ACT_PAGE_UP ? -(int64_t)ui->page : (int64_t)ui->page);
        break;
    case TOP_ACT_FIRST:
    case TOP_ACT_LAST:
        move(ui, action == TOP_ACT_FIRST ? -INT32_MAX : INT32_MAX);
        break;
    case TOP_ACT_ENTER:
        enter(ui);
        break;
    case TOP_ACT_TAB:
        ui->pane = (enum top_pane)((ui->pane + 1u) % TOP_PANE_COUNT);
        break;
    case TOP_ACT_ZOOM:
        ui->zoom = !ui->zoom;
        break;
    case TOP_ACT_AGAIN:
        search(ui, ui->cursor + 1);
        break;
    case TOP_ACT_FOLLOW:
        ui->follow = !ui->follow;
        top_ui_say(ui, false, ui->follow ? "following the row" : "not following any more");
        break;
    case TOP_ACT_TAG:
        tag(ui);
        break;
    case TOP_ACT_UNTAG:
        ui->tag_count = 0;
        break;
    default:
        break;
    }
}

static void do_rows(struct top_ui *ui, enum top_action action)
{
    switch (action) {
    case TOP_ACT_GROUP:
        set_group(ui, (enum top_group)((ui->choice.group + 1u) % TOP_GROUPS));
        break;
    case TOP_ACT_TREE: {
        bool tree = !ui->choice.tree;

        set_group(ui, tree ? TOP_PROCESSES : TOP_THREADS);
        ui->choice.tree = tree;
        break;
    }
    case TOP_ACT_FOLD:
    case TOP_ACT_UNFOLD:
        fold(ui, action == TOP_ACT_FOLD);
        break;
    case TOP_ACT_FOLD_ALL:
        fold_all(ui);
        break;
    case TOP_ACT_SLEEPING:
        ui->choice.sleeping = !ui->choice.sleeping;
        break;
    case TOP_ACT_KERNEL:
        ui->choice.no_kernel = !ui->choice.no_kernel;
        top_ui_say(ui, false,
                   ui->choice.no_kernel ? "kernel threads are hidden" : "kernel threads are shown");
        break;
    case TOP_ACT_SORT_NEXT:
    case TOP_ACT_SORT_LAST:
        sort_step(ui, action == TOP_ACT_SORT_NEXT ? 1 : -1);
        break;
    case TOP_ACT_INVERT:
        ui->choice.order.inverted = !ui->choice.order.inverted;
        break;
    case TOP_ACT_SORT_BUSY:
        sort_by(ui, TOP_BY_BUSY, 0);
        break;
    case TOP_ACT_SORT_RUN:
        sort_by(ui, TOP_BY_RUN, 0);
        break;
    case TOP_ACT_SORT_READY:
        sort_by(ui, TOP_BY_READY, 0);
        break;
    case TOP_ACT_SORT_WAIT:
        sort_by(ui, TOP_BY_WAIT, 0);
        break;
    case TOP_ACT_SORT_PID:
        sort_by(ui, TOP_BY_PID, 0);
        break;
    case TOP_ACT_SORT_CAUSE:
        sort_cause(ui);
        break;
    default:
        do_moving(ui, action);
    }
}

static void do_general(struct top_ui *ui, enum top_action action)
{
    switch (action) {
    case TOP_ACT_HELP:
        ui->screen = ui->screen == TOP_HELP ? TOP_LIST : TOP_HELP;
        ui->help_scroll = 0;
        break;
    case TOP_ACT_QUIT:
        ui->request = TOP_REQUEST_QUIT;
        break;
    case TOP_ACT_BACK:
        back(ui);
        break;
    case TOP_ACT_REDRAW:
        ui->request = TOP_REQUEST_REDRAW;
        break;
    case TOP_ACT_SAVE:
        ui->request = TOP_REQUEST_SAVE;
        break;
    case TOP_ACT_BY_WHOM:
        ui->request = TOP_REQUEST_WHOM;
        break;
    case TOP_ACT_EXPORT:
        ui->request = TOP_REQUEST_EXPORT;
        break;
    case TOP_ACT_PAUSE:
        pause_or_go(ui);
        break;
    case TOP_ACT_NEXT:
    case TOP_ACT_BEFORE:
        step(ui, action == TOP_ACT_NEXT ? 1 : -1);
        break;
    case TOP_ACT_LIVE:
        go_live(ui);
        break;
    default:
        do_rows(ui, action);
    }
}

void top_ui_do(struct top_ui *ui, enum top_action action)
{
    static const struct {
        enum top_action action;
        enum top_prompt prompt;
    } questions[] = {
        {TOP_ACT_COMMAND, TOP_ASK_COMMAND}, {TOP_ACT_SEARCH, TOP_ASK_SEARCH},
        {TOP_ACT_FILTER, TOP_ASK_FILTER},   {TOP_ACT_USER, TOP_ASK_USER},
        {TOP_ACT_JUMP_BACK, TOP_ASK_BACK},  {TOP_ACT_JUMP_ON, TOP_ASK_ON},
        {TOP_ACT_JUMP_TO, TOP_ASK_TIME},    {TOP_ACT_INTERVAL, TOP_ASK_INTERVAL},
    };

    *ui->message = '\0';
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        if (questions[i].action == action) {
            ask(ui, questions[i].prompt, action == TOP_ACT_FILTER ? ui->filter_text : "");
            return;
        }
    }
    do_general(ui, action);
}

void top_ui_key(struct top_ui *ui, uint32_t key)
{
    *ui->message = '\0';
    if (ui->prompt)
        prompt_key(ui, key);
    else
        top_ui_do(ui, top_key_action(key));
}

void top_ui_wheel(struct top_ui *ui, int turn)
{
    move(ui, 3 * turn);
}

void top_ui_click(struct top_ui *ui, const struct top_grid *grid, int y, int x, bool twice)
{
    const struct top_spot *spot = top_spot_at(grid, y, x);

    *ui->message = '\0';
    if (!spot)
        return;
    switch (spot->kind) {
    case TOP_SPOT_ACTION:
        top_ui_do(ui, (enum top_action)spot->value);
        break;
    case TOP_SPOT_ROW:
        move(ui, (int64_t)spot->value - (int64_t)ui->cursor);
        if (twice)
            enter(ui);
        break;
    case TOP_SPOT_SORT:
        sort_by(ui, (enum top_sort)spot->value, 0);
        break;
    case TOP_SPOT_CAUSE:
        sort_by(ui, TOP_BY_CAUSE, spot->value);
        break;
    case TOP_SPOT_PAST:
        go_to(ui, spot->value);
        break;
    }
}
