/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Holds what the person in front of `prcb top` chose: order, filter, the place in time, the row,
 * the panes. Keys and clicks change it (top_ui_key, top_ui_click), top_view.h draws it. There is
 * no terminal and no session.
 *
 * One thread. Borrows the model.
 */
#ifndef PRCB_TOP_UI_H
#define PRCB_TOP_UI_H

#include "top_grid.h"
#include "top_keys.h"
#include "top_rows.h"

enum top_mode { TOP_LIVE, TOP_PAUSED, TOP_FILE };
enum top_screen { TOP_LIST, TOP_HELP, TOP_PANES };
enum top_pane { TOP_WHY, TOP_WHOM, TOP_WHERE, TOP_PATH, TOP_MINUTE, TOP_PANE_COUNT };
#define TOP_INTERVAL_MIN_NS 100000000ll
#define TOP_INTERVAL_MAX_NS 3600000000000ll

enum top_prompt {
    TOP_NO_PROMPT,
    TOP_ASK_SEARCH,
    TOP_ASK_FILTER,
    TOP_ASK_USER,
    TOP_ASK_COMMAND,
    TOP_ASK_BACK,
    TOP_ASK_ON,
    TOP_ASK_TIME,
    TOP_ASK_INTERVAL,
};

/* What the program is asked to do; it sets NONE again. */
enum top_request {
    TOP_REQUEST_NONE,
    TOP_REQUEST_QUIT,
    TOP_REQUEST_REDRAW,
    TOP_REQUEST_SAVE,
    TOP_REQUEST_EXPORT,
    TOP_REQUEST_WHOM,
};

/* A part of a cause's time, by its stack or by who ended the wait. */
struct top_piece {
    uint64_t ns, count;
    uint32_t thread; /* index of who it was; TOP_NONE: no thread */
    char text[256];
    pid_t tid; /* of a part of a path: the thread; 0: not one */
};
#define TOP_PIECES 16
struct top_pieces {
    struct top_piece pieces[TOP_PIECES];
    uint32_t count;
    uint64_t whole_ns, known_ns;
    char now[256];    /* of the wait that goes on; "": nothing */
    char reason[160]; /* why there is nothing; "": there is */
};

/* Puts a piece in its place, most time first; the least is dropped if there is no room. */
void top_pieces_add(struct top_pieces *to, const struct top_piece *piece);

/* Functions from which the panes get what the model does not hold. One that is NULL has nothing;
 * `cause` is as in rows. They are called while drawing, and must not wait. */
struct top_details {
    void (*where)(void *ctx, const struct top_row *row, uint32_t cause, struct top_pieces *ret);
    void (*whom)(void *ctx, const struct top_row *row, uint32_t cause, struct top_pieces *ret);
    /* What the row's waits lead to, whatever their cause. */
    void (*path)(void *ctx, const struct top_row *row, struct top_pieces *ret);
    /* Tells what a thread's wait is for, in a word or two; "" if nobody knows. */
    void (*wait)(void *ctx, const struct top_row *row, char *ret, size_t size);
    /* Fills the model with intervals around a moment; returns whether it has others now. */
    bool (*load)(void *ctx, int64_t clock_ns);
    void *ctx;
    const char *where_lacks, *whom_lacks; /* why the function is NULL */
};

/* Settings that do not change while it runs. */
struct top_setting {
    char host[65];
    char tier[96];      /* "tier bpf", "own threads" */
    char notes[4][160]; /* what the tier lacks; "": no more */
    char missing[160];  /* threads that are not shown, and why; "": none. The one that changes */
    uint64_t interval_ns;
    bool file; /* a recording is played */
};

struct top_ui {
    struct top_model *model;
    struct top_details details;
    struct top_setting setting;
    struct top_choice choice;
    struct top_filter filter;
    char filter_text[128], search[64], user[64];
    struct top_rows rows; /* of the interval that is shown */
    uint32_t position;    /* its index */
    uint64_t position_ns; /* its end, where it does not move on */
    enum top_mode mode;
    enum top_screen screen;
    uint32_t cursor, scroll, page; /* rows */
    uint64_t cursor_id;
    bool follow;
    uint64_t tags[64];
    uint32_t tag_count;
    uint32_t columns[PRCB_CAUSE_MAX]; /* causes in the order of their columns */
    uint32_t column_count, column_shown;
    uint8_t column_unseen[PRCB_CAUSE_MAX]; /* intervals since a row on the screen had time in it */
    uint64_t column_ns;                    /* the interval's end by which these are counted */
    pid_t closed[256];
    /* panes */
    enum top_pane pane;
    bool zoom;
    enum top_group subject_group;
    uint64_t subject_id;
    char subject_name[256];
    struct top_row subject; /* sum of history; subject.now as shown */
    uint32_t *subject_threads;
    uint32_t subject_count, subject_room;
    uint32_t pane_cursor[TOP_PANE_COUNT];
    uint32_t pane_causes[PRCB_CAUSE_MAX + 2], pane_cause_count;
    /* threads that Enter goes to, in BY WHOM and CRITICAL PATH; TOP_NONE: not measured */
    uint32_t pane_threads[TOP_PANE_COUNT][TOP_PIECES], pane_thread_counts[TOP_PANE_COUNT];
    /* prompts */
    enum top_prompt prompt;
    char input[128];
    char message[160];
    bool message_wrong;
    uint32_t help_scroll;
    enum top_request request;
};

/* Returns 0 or -ENOMEM. The owner fills in setting and details. */
int top_ui_init(struct top_ui *ui, struct top_model *model);
void top_ui_deinit(struct top_ui *ui);
/* Leaves what refers to the model, which is about to be emptied; what was chosen stays. */
void top_ui_forget(struct top_ui *ui);

/* Makes the rows of what is to be shown; call it after the model or the choice changed. 0 or
 * -ENOMEM. */
int top_ui_prepare(struct top_ui *ui);

void top_ui_key(struct top_ui *ui, uint32_t key);
void top_ui_do(struct top_ui *ui, enum top_action action);
/* Handle a click, once or twice, and a turn of the wheel (-1 up, 1 down). */
void top_ui_click(struct top_ui *ui, const struct top_grid *grid, int y, int x, bool twice);
void top_ui_wheel(struct top_ui *ui, int turn);
void top_ui_say(struct top_ui *ui, bool wrong, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the row under the cursor; NULL: there are none. */
const struct top_row *top_ui_row(const struct top_ui *ui);
/* Returns the cause under the cursor of the pane WHY, or TOP_NONE. */
uint32_t top_ui_cause(const struct top_ui *ui);
/* Puts the causes that the columns show into order: most time first, without needless changes. */
void top_ui_rank_columns(struct top_ui *ui);
/* Parse "30s", "5m", "2h" as ns, and "14:03", "14:03:22" as a time of the day of `day_ns`, since
 * 1970. 0 or -EINVAL. */
int top_parse_span(const char *text, int64_t *ret_ns);
int top_parse_clock(const char *text, int64_t day_ns, int64_t *ret_ns);

#endif
