/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report for people. Columns are chosen first (as many causes as the width
 * has room for, the widest in front), then measured, then printed.
 */
#include "stat_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>

#include "format.h"
#include "text.h"
#include "stat_tails.h"

#define GAP           2
#define PERMILLE_MIN  1   /* causes below this share of thread time get no column of their own */
#define ENOUGH_CAUSES 2   /* fewer are worth leaving other columns out */
#define SHORT_NAME    8   /* of a name's characters, where there is no room for more */
#define LINE_WIDE     100 /* columns: a narrower interval's line leaves parts out, to name waits */
#define PAGE_LINES    20  /* intervals of one row between two headings */
#define LINE_CAUSES   3   /* waits named on an interval's line */
#define COMMAND_BYTES 300 /* of the command in the title; words begun before are finished */

enum column_kind {
    COL_TID,
    COL_PID,
    COL_THREADS,
    COL_NAME,
    COL_FIGURE, /* of account_figures */
    COL_WAIT,
    COL_CAUSE,
    COL_REST,
    COL_OPEN,
};

struct column {
    enum column_kind kind;
    const struct figure *figure;
    uint32_t cause;
    const char *heading;
    size_t width;
};

/* What is left out if the terminal is narrow; each step includes those before it. */
enum squeeze {
    SQUEEZE_NOTHING,
    SQUEEZE_PID,
    SQUEEZE_WALL,
    SQUEEZE_SWITCHES,
    SQUEEZE_OPEN, /* the cause of the open wait */
    SQUEEZE_NAME, /* all but its beginning */
    SQUEEZE_END
};

struct stat_table {
    const struct stat_report *report;
    struct column columns[PRCB_CAUSE_MAX + ACCOUNT_NUMBERS + 8];
    size_t count;
    uint32_t causes[PRCB_CAUSE_MAX]; /* worth a column, widest first */
    size_t cause_count, shown;       /* shown: the ones that have one */
    enum squeeze squeeze;
};

/* ---- cells --------------------------------------------------------------- */

static void time_cell(const struct account_row *row, uint64_t member, uint64_t ns, char *cell)
{
    if (row->now.present & member)
        format_time(ns, cell, FORMAT_CELL);
    else
        strcpy(cell, "-");
}

static void number_cell(uint64_t number, bool present, char *cell)
{
    if (present)
        snprintf(cell, FORMAT_CELL, "%" PRIu64, number);
    else
        strcpy(cell, "-");
}

static void figure_cell(const struct account_row *row, const struct figure *figure, char *cell)
{
    uint64_t value = row->now.numbers[figure->index];

    if (figure->unit == FIGURE_NS)
        time_cell(row, figure->present, value, cell);
    else
        number_cell(value, row->now.present & figure->present, cell);
}

static uint64_t cause_ns(const struct account_row *row, uint32_t cause)
{
    const struct wait_cell *cell = account_sums_cell(&row->now, cause);

    return cell ? cell->ns : 0;
}

static uint64_t rest_ns(const struct stat_table *table, const struct account_row *row)
{
    uint64_t rest = row->now.wait_ns;

    for (size_t i = 0; i < table->shown; i++)
        rest -= cause_ns(row, table->causes[i]);
    return rest;
}

/* Writes "+1.23s sleep": it is marked, since it is in no other column. */
/* Returns the one cause of a row's open waits; NONE: there are none, several, or it is not
 * known. */
static uint32_t open_cause(const struct account_row *row)
{
    uint32_t found = PRCB_CAUSE_NONE;

    for (uint32_t i = 0; i < row->now.cell_count; i++) {
        if (!row->now.cells[i].open_ns)
            continue;
        if (found)
            return PRCB_CAUSE_NONE;
        found = row->now.cells[i].cause;
    }
    return found;
}

static void open_cell(const struct account_row *row, char *cell)
{
    const char *name = "";
    char time[FORMAT_CELL / 2];

    cell[0] = '\0';
    if (!(row->now.present & PRCB_HAS_OPEN)) {
        strcpy(cell, "-");
        return;
    }
    if (!row->now.open_ns)
        return;
    for (uint32_t i = 0; i < row->now.cell_count; i++) {
        const struct wait_cell *open = &row->now.cells[i];

        if (open->open_ns)
            name = *name ? "(several)" : open->cause ? prcb_cause_info(open->cause)->name : "?";
    }
    format_time(row->now.open_ns, time, sizeof(time));
    snprintf(cell, FORMAT_CELL, "+%s%s%s", time, *name ? " " : "", name);
}

/* Keeps the end of a long name, which says most. */
static void cut_front(char *cell, size_t bytes)
{
    size_t length = strlen(cell), from = length - bytes;

    if (length <= bytes)
        return;
    while (((unsigned char)cell[from] & 0xc0) == 0x80) /* between characters */
        from++;
    memmove(cell + 3, cell + from, length - from + 1);
    memcpy(cell, "...", 3);
}

/* Ended threads that were summed by name stand for more than themselves. */
static void name_cell(const struct stat_report *report, const struct account_row *row, char *cell)
{
    char comm[FORMAT_CELL / 2], path[PATH_MAX];

    if (report->rows == STAT_CGROUPS) {
        text_copy(TEXT_MARKS, stat_row_name(report, row), path, sizeof(path));
        cut_front(path, FORMAT_CELL - 4);
        memcpy(cell, path, strlen(path) + 1);
        return;
    }
    text_copy(TEXT_MARKS, row->comm, comm, sizeof(comm));
    if (row->key || !row->released)
        snprintf(cell, FORMAT_CELL, "%s", comm);
    else
        snprintf(cell, FORMAT_CELL, "%s%s(%" PRIu64 " ended)", comm, *comm ? " " : "",
                 row->ended ? row->ended : row->threads);
}

static void make_cell(const struct stat_table *table, const struct column *column,
                      const struct account_row *row, char *cell)
{
    const struct account_sums *now = &row->now;

    switch (column->kind) {
    case COL_TID:
        number_cell((uint64_t)row->tid, row->tid != 0, cell);
        break;
    case COL_PID:
        number_cell((uint64_t)row->pid, row->pid != 0, cell);
        break;
    case COL_THREADS:
        number_cell(row->threads, true, cell);
        break;
    case COL_NAME:
        name_cell(table->report, row, cell);
        break;
    case COL_FIGURE:
        figure_cell(row, column->figure, cell);
        break;
    case COL_WAIT:
        time_cell(row, PRCB_HAS_WAIT, now->wait_ns, cell);
        break;
    case COL_CAUSE:
        time_cell(row, PRCB_HAS_WAITS, cause_ns(row, column->cause), cell);
        break;
    case COL_REST:
        time_cell(row, PRCB_HAS_WAITS, rest_ns(table, row), cell);
        break;
    case COL_OPEN:
        open_cell(row, cell);
        break;
    }
}

/* Writes the share of thread time; empty if a share says nothing. */
static void make_share(const struct stat_table *table, const struct column *column, char *cell)
{
    const struct account_row *total = &table->report->view->total;
    uint64_t part, member;

    cell[0] = '\0';
    switch (column->kind) {
    case COL_NAME:
        strcpy(cell, "share");
        return;
    case COL_FIGURE:
        if (column->figure->kind != FIGURE_PART)
            return;
        part = total->now.numbers[column->figure->index];
        member = column->figure->present;
        break;
    case COL_WAIT:
        part = total->now.wait_ns;
        member = PRCB_HAS_WAIT;
        break;
    case COL_CAUSE:
        part = cause_ns(total, column->cause);
        member = PRCB_HAS_WAITS;
        break;
    case COL_REST:
        part = rest_ns(table, total);
        member = PRCB_HAS_WAITS;
        break;
    case COL_OPEN:
        part = total->now.open_ns;
        member = PRCB_HAS_OPEN;
        if (!part)
            return;
        break;
    default:
        return;
    }
    if (total->now.present & member && total->now.present & PRCB_HAS_WALL && total->now.wall_ns)
        snprintf(cell, FORMAT_CELL, "%.1f%%", 100.0 * (double)part / (double)total->now.wall_ns);
    else
        strcpy(cell, "-");
}

/* ---- rows ---------------------------------------------------------------- */

static bool left_aligned(const struct column *column)
{
    return column->kind == COL_NAME || column->kind == COL_OPEN;
}

/* Spaces are written in front of text only, so that no line ends with them. */
static void print_cell(FILE *out, const struct column *column, const char *cell, size_t *owed)
{
    size_t pad = column->width - format_width(cell);

    if (!*cell) {
        *owed += pad;
    } else if (left_aligned(column)) {
        fprintf(out, "%*s%s", (int)*owed, "", cell);
        *owed = pad;
    } else {
        fprintf(out, "%*s%s", (int)(*owed + pad), "", cell);
        *owed = 0;
    }
    *owed += GAP;
}

enum row_kind { ROW_HEADING, ROW_THREAD, ROW_OTHERS, ROW_TOTAL, ROW_SHARE };

/* Writes the text of one cell of one line of any kind. */
static void cell_text(const struct stat_table *table, const struct column *column,
                      enum row_kind kind, const struct account_row *row, char *cell)
{
    const struct account_view *view = table->report->view;

    cell[0] = '\0';
    if (kind == ROW_HEADING)
        snprintf(cell, FORMAT_CELL, "%s", column->heading);
    else if (kind == ROW_SHARE)
        make_share(table, column, cell);
    else if (kind == ROW_THREAD)
        make_cell(table, column, row, cell);
    else if (column->kind == COL_NAME)
        snprintf(cell, FORMAT_CELL, kind == ROW_TOTAL ? "total" : "(%zu more)", view->other_rows);
    else if (column->kind != COL_TID && column->kind != COL_PID)
        make_cell(table, column, row, cell);
    if (column->kind == COL_NAME && table->squeeze >= SQUEEZE_NAME)
        format_cut(cell, SHORT_NAME);
    if (column->kind == COL_OPEN && table->squeeze >= SQUEEZE_OPEN && kind != ROW_HEADING)
        cell[strcspn(cell, " ")] = '\0';
}

typedef void (*row_fn)(struct stat_table *table, enum row_kind kind, const struct account_row *row,
                       void *ctx);

/* Goes through every line of the table in order. */
static void each_row(struct stat_table *table, row_fn fn, void *ctx)
{
    const struct account_view *view = table->report->view;

    fn(table, ROW_HEADING, NULL, ctx);
    for (size_t i = 0; i < view->count; i++)
        fn(table, ROW_THREAD, view->rows[i], ctx);
    if (view->other_rows)
        fn(table, ROW_OTHERS, &view->others, ctx);
    fn(table, ROW_TOTAL, &view->total, ctx);
    fn(table, ROW_SHARE, NULL, ctx);
}

static void measure_row(struct stat_table *table, enum row_kind kind, const struct account_row *row,
                        void *ctx)
{
    for (size_t i = 0; i < table->count; i++) {
        char cell[FORMAT_CELL];

        cell_text(table, &table->columns[i], kind, row, cell);
        if (format_width(cell) > table->columns[i].width)
            table->columns[i].width = format_width(cell);
    }
}

static void print_row(struct stat_table *table, enum row_kind kind, const struct account_row *row,
                      void *ctx)
{
    size_t owed = 0;

    for (size_t i = 0; i < table->count; i++) {
        char cell[FORMAT_CELL];

        cell_text(table, &table->columns[i], kind, row, cell);
        print_cell(ctx, &table->columns[i], cell, &owed);
    }
    fputc('\n', ctx);
}

/* ---- columns ------------------------------------------------------------- */

static struct column *add_column(struct stat_table *table, enum column_kind kind,
                                 const char *heading)
{
    table->columns[table->count] = (struct column){.kind = kind, .heading = heading};
    return &table->columns[table->count++];
}

/* Adds the causes shown and the rest of waiting; without causes, waiting as one column. */
static void add_causes(struct stat_table *table, const struct account_row *total)
{
    for (size_t i = 0; i < table->shown; i++)
        add_column(table, COL_CAUSE, prcb_cause_info(table->causes[i])->name)->cause =
            table->causes[i];
    if (!table->shown && (!(total->now.present & PRCB_HAS_WAITS) || total->now.wait_ns))
        add_column(table, COL_WAIT, "WAIT");
    else if (table->shown && rest_ns(table, total))
        add_column(table, COL_REST, "rest");
}

static bool several_processes(const struct account_view *view)
{
    for (size_t i = 1; i < view->count; i++) {
        if (view->rows[i]->pid != view->rows[0]->pid)
            return true;
    }
    return false;
}

/* Makes the columns with `shown` causes among them. */
static void set_columns(struct stat_table *table, size_t shown)
{
    const struct stat_report *report = table->report;
    const struct account_row *total = &report->view->total;
    const struct stat_rows_kind *kind = &stat_rows_kinds[report->rows];

    table->count = 0;
    table->shown = shown;
    if (report->rows) {
        if (kind->id)
            add_column(table, COL_PID, kind->id);
        add_column(table, COL_NAME, kind->heading);
        add_column(table, COL_THREADS, "THREADS");
    } else {
        if (table->squeeze < SQUEEZE_PID && several_processes(report->view))
            add_column(table, COL_PID, "PID");
        add_column(table, COL_TID, kind->id);
        add_column(table, COL_NAME, kind->heading);
    }
    for (const struct figure *figure = account_figures; figure->name; figure++) {
        if (figure->present == PRCB_HAS_WAITS && figure->kind == FIGURE_LIST)
            add_causes(table, total);
        else if (figure->heading &&
                 (figure->present != PRCB_HAS_WALL || table->squeeze < SQUEEZE_WALL) &&
                 (figure->present != PRCB_HAS_SWITCHES || table->squeeze < SQUEEZE_SWITCHES))
            add_column(table, COL_FIGURE, figure->heading)->figure = figure;
    }
    if (!(total->now.present & PRCB_HAS_OPEN) || total->now.open_ns)
        add_column(table, COL_OPEN, "OPEN WAIT");
}

static size_t total_width(const struct stat_table *table)
{
    size_t width = (table->count - 1) * GAP;

    for (size_t i = 0; i < table->count; i++)
        width += table->columns[i].width;
    return width;
}

/* Collects the causes that are worth a column, widest first. It sorts by insertion, as there are
 * few. */
static void rank_causes(struct stat_table *table)
{
    const struct account_sums *total = &table->report->view->total.now;

    if (!(total->present & PRCB_HAS_WAITS))
        return;
    for (uint32_t i = 0; i < total->cell_count; i++) {
        const struct wait_cell *cell = &total->cells[i];
        size_t at = table->cause_count;

        if (!cell->cause || !cell->ns || cell->ns < total->wall_ns / 1000 * PERMILLE_MIN)
            continue;
        for (; at && account_sums_cell(total, table->causes[at - 1])->ns < cell->ns; at--)
            table->causes[at] = table->causes[at - 1];
        table->causes[at] = cell->cause;
        table->cause_count++;
    }
}

/* Chooses as many causes as there is room for; true if these are enough. */
static bool fit_causes(struct stat_table *table, size_t columns)
{
    size_t enough = table->cause_count < ENOUGH_CAUSES ? table->cause_count : ENOUGH_CAUSES;
    size_t shown = table->cause_count;

    do {
        set_columns(table, shown);
        each_row(table, measure_row, NULL);
    } while (total_width(table) > columns && shown--);
    return total_width(table) <= columns &&
           (table->shown >= enough || table->squeeze >= SQUEEZE_WALL);
}

static void choose_columns(struct stat_table *table, size_t columns)
{
    rank_causes(table);
    for (table->squeeze = SQUEEZE_NOTHING; table->squeeze < SQUEEZE_END; table->squeeze++) {
        if (fit_causes(table, columns))
            return;
    }
}

/* ---- around the table ---------------------------------------------------- */

static void write_ids(FILE *out, const char *what, const pid_t *ids, size_t count,
                      const char **before)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s%s%d", i ? "," : *before, i ? "" : what, (int)ids[i]);
        *before = ", ";
    }
}

/* Returns how many bytes were written. */
static size_t write_text(FILE *out, const char *text)
{
    char safe[256];

    size_t length = text_copy(TEXT_MARKS, text, safe, sizeof(safe));

    fputs(safe, out);
    return length;
}

/* The title says which command it was; thousands of arguments would say nothing more. */
static void write_command(FILE *out, char *const *command)
{
    size_t written = 0;

    for (char *const *word = command; *word; word++) {
        fputs(word == command ? "" : " ", out);
        if (written > COMMAND_BYTES) {
            fputs("...", out);
            return;
        }
        written += 1 + write_text(out, *word);
    }
}

/* Writes what was measured, and for how long. */
static void write_title(FILE *out, const struct stat_report *report)
{
    const struct stat_profiled *profiled = &report->profiled;
    const struct account_row *total = &report->view->total;
    const char *before = "";
    char threads[FORMAT_CELL], time[FORMAT_CELL];

    fputs("\n ", out);
    if (profiled->all)
        fputs("all threads", out);
    write_ids(out, "process ", profiled->pids, profiled->pid_count, &before);
    write_ids(out, "thread ", profiled->tids, profiled->tid_count, &before);
    for (size_t i = 0; i < profiled->cgroup_count; i++) {
        fprintf(out, "%scgroup ", before);
        write_text(out, profiled->cgroups[i]);
        before = ", ";
    }
    if (profiled->command) {
        fputs(profiled->all || *before ? " while running: " : "", out);
        write_command(out, profiled->command);
    }
    format_count(total->threads, "thread", "threads", threads, sizeof(threads));
    format_time(report->wall_ns, time, sizeof(time));
    fprintf(out, ": %s in %s\n\n", threads, time);
}

/* Whether a cause is in the table: it has a column, or a row names it as its open wait. */
static bool cause_shown(const struct stat_table *table, uint32_t cause)
{
    const struct account_view *view = table->report->view;

    for (size_t i = 0; i < table->shown; i++) {
        if (table->causes[i] == cause)
            return true;
    }
    for (size_t i = 0; i < view->count && table->squeeze < SQUEEZE_OPEN; i++) {
        if (open_cause(view->rows[i]) == cause)
            return true;
    }
    return false;
}

#define NOTE "note: "

/* Writes the sentences, or the notes, wrapped at the width. */
static void write_lines(FILE *out, const struct stat_table *table, bool notes)
{
    bool shown[PRCB_CAUSE_MAX];
    char *text = NULL, *line, *rest;
    size_t size;
    FILE *words = open_memstream(&text, &size);

    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++)
        shown[cause] = !table->shown || cause_shown(table, cause);
    if (!words)
        return;
    if (notes)
        stat_notes_write(words, NOTE, table->report);
    else
        stat_words_write(words, table->report, shown);
    fclose(words);
    for (line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        format_lines(out, line, notes ? strlen(NOTE) : 0, format_columns(out));
    free(text);
}

/* Writes each cause that was named: NT's name, left out on a narrow terminal, and the plain
 * words. */
static void write_legend(FILE *out, const struct stat_table *table)
{
    size_t columns = format_columns(out), indent = 14;
    bool any = false;

    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);

        if (!info || !cause_shown(table, cause))
            continue;
        fprintf(out, "%s  %-10s  ", any ? "" : "\n", info->name);
        if (table->report->nt)
            fprintf(out, "%-17s  ", prcb_wait_reason_name(info->reason));
        format_lines(out, info->words, table->report->nt ? indent + 19 : indent, columns);
        any = true;
    }
}

#define WHOM_CAUSES      5
#define LINE_WHOM_CAUSES 2

void stat_table_write(FILE *out, const struct stat_report *report)
{
    struct stat_table table = {.report = report};

    write_title(out, report);
    if (!report->view->total.threads) {
        fputs("  no thread was seen\n", out);
    } else {
        choose_columns(&table, format_columns(out));
        each_row(&table, print_row, out);
        if (report->view->other_rows)
            fputs(" (--top 0 shows all rows)\n", out);
        if (report->counters)
            stat_counters_write(out, report);
        fputc('\n', out);
        write_lines(out, &table, false);
        if (report->whom) {
            fputc('\n', out);
            stat_whom_write(out, report, WHOM_CAUSES);
        }
        if (report->tails)
            stat_tails_write(out, report->tails);
        write_legend(out, &table);
    }
    if (report->ended_early)
        fputs("\nThe command was still running and was ended (--for).\n", out);
    fputc('\n', out);
    write_lines(out, &table, true);
}

/* ---- interval lines ------------------------------------------------------ */

/* Writes "sleep 61%, futex 3%": shares of the interval's time, open waits included. */
static void write_top_waits(FILE *out, const struct account_row *row, size_t room)
{
    const struct account_sums *now = &row->now;
    bool named[PRCB_CAUSE_MAX] = {0};
    const char *before = "";
    char text[FORMAT_CELL];

    for (int n = 0; n < LINE_CAUSES && now->wall_ns; n++) {
        const struct wait_cell *best = NULL;

        for (uint32_t i = 0; i < now->cell_count; i++) {
            const struct wait_cell *cell = &now->cells[i];

            if (!named[cell->cause] && (!best || cell->spent_ns > best->spent_ns))
                best = cell;
        }
        if (!best || best->spent_ns * 200 < now->wall_ns)
            break;
        named[best->cause] = true;
        snprintf(text, sizeof(text), "%s%s %.0f%%", before,
                 best->cause ? prcb_cause_info(best->cause)->name : "?",
                 100.0 * (double)best->spent_ns / (double)now->wall_ns);
        if (strlen(text) > room)
            break;
        fputs(text, out);
        room -= strlen(text);
        before = ", ";
    }
}

/* Chooses the widths of a line's parts. Rows of several processes name theirs. On a narrow
 * terminal the time is in the heading, there are no switches, and names lose their end: the rest
 * of the line is for the waits. */
struct line_shape {
    int time, pid, name;
    bool switches;
    size_t waits;
};

static struct line_shape line_shape(FILE *out, const struct stat_report *report)
{
    size_t columns = format_columns(out), used;
    struct line_shape shape = {10, 0, 15, true, 0};

    if (columns < LINE_WIDE)
        shape = (struct line_shape){0, 0, SHORT_NAME, false, 0};
    if (!report->rows && several_processes(report->view))
        shape.pid = 7;
    /* There are four cells of 7, the switches' of 8, and a gap behind each. */
    used = (size_t)shape.time + (shape.time ? GAP : 0) + (size_t)shape.pid + (shape.pid ? GAP : 0) +
           (size_t)shape.name + 4 * 7 + 5 * GAP + (shape.switches ? 8 + GAP : 0);
    shape.waits = columns > used ? columns - used : 0;
    return shape;
}

static void interval_time(const struct stat_report *report, char *ret, size_t size)
{
    snprintf(ret, size, "%" PRIu64 ".%03" PRIu64, report->time_ns / 1000000000,
             report->time_ns / 1000000 % 1000);
}

static void write_line(FILE *out, const struct stat_report *report, const struct account_row *row,
                       char *name, bool sum)
{
    struct line_shape shape = line_shape(out, report);
    const struct account_sums *now = &row->now;
    char time[FORMAT_CELL], pid[FORMAT_CELL], id[FORMAT_CELL], run[FORMAT_CELL], ready[FORMAT_CELL],
        wait[FORMAT_CELL];
    char switches[FORMAT_CELL];
    pid_t number = report->rows ? row->pid : row->tid;

    number_cell((uint64_t)number, number != 0, id);
    time_cell(row, PRCB_HAS_RUN, now->run_ns, run);
    time_cell(row, PRCB_HAS_READY, now->ready_ns, ready);
    time_cell(row, PRCB_HAS_WAIT, account_sums_waited(now), wait);
    number_cell(now->switches, now->present & PRCB_HAS_SWITCHES, switches);
    interval_time(report, time, sizeof(time));
    number_cell((uint64_t)row->pid, row->pid != 0, pid);
    format_cut(name, (size_t)shape.name);
    if (shape.time)
        fprintf(out, "%*s  ", shape.time, time);
    if (shape.pid)
        fprintf(out, "%*s  ", shape.pid, sum ? "" : pid);
    fprintf(out, "%7s  %s%*s  %7s  %7s  %7s  ", sum ? "" : id, name,
            shape.name - (int)format_width(name), "", run, ready, wait);
    if (shape.switches)
        fprintf(out, "%8s  ", switches);
    if (now->present & PRCB_HAS_WAITS)
        write_top_waits(out, row, shape.waits);
    if (report->counters) {
        fputs("  ", out);
        stat_counters_write_line(out, report->counters, row);
    }
    fputc('\n', out);
}

/* Writes the heading in front of each interval that has several rows, with an empty line; for
 * one row, once a page. */
static void write_line_heading(FILE *out, const struct stat_report *report)
{
    const struct stat_rows_kind *kind = &stat_rows_kinds[report->rows];
    bool several = report->view->count + report->view->other_rows > 1;
    struct line_shape shape = line_shape(out, report);
    char time[FORMAT_CELL];

    if (!report->first && !several && report->number % PAGE_LINES)
        return;
    fputs(report->first ? "" : "\n", out);
    interval_time(report, time, sizeof(time));
    if (shape.time)
        fprintf(out, "%*s  ", shape.time, "TIME");
    if (shape.pid)
        fprintf(out, "%*s  ", shape.pid, "PID");
    fprintf(out, "%7s  %-*s  %7s  %7s  %7s%s", kind->id ? kind->id : "", shape.name, kind->heading,
            "RUN", "READY", "WAIT", shape.switches ? "  SWITCHES" : "");
    if (shape.waits >= strlen("WAITS"))
        fputs("  WAITS", out);
    if (!shape.time && shape.waits >= strlen("WAITS at 1000.000 s"))
        fprintf(out, " at %s s", time);
    fputc('\n', out);
}

void stat_lines_write(FILE *out, const struct stat_report *report)
{
    const struct account_view *view = report->view;
    char name[FORMAT_CELL];

    write_line_heading(out, report);
    for (size_t i = 0; i < view->count; i++) {
        name_cell(report, view->rows[i], name);
        write_line(out, report, view->rows[i], name, false);
    }
    if (view->other_rows) {
        snprintf(name, sizeof(name), "(%zu more)", view->other_rows);
        write_line(out, report, &view->others, name, true);
    }
    if (view->count + view->other_rows > 1)
        write_line(out, report, &view->total, strcpy(name, "total"), true);
    if (report->whom && view->count)
        stat_whom_write(out, report, LINE_WHOM_CAUSES);
    if (report->tails && view->count)
        stat_tails_write(out, report->tails);
}
