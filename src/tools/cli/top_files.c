/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Handles the files of `prcb top`: recordings that it writes and shows, and screens that are
 * saved.
 */
#include "top_run.h"

#include <errno.h>
#ifdef HAVE_RECORD
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <prcb/sample.h>

#include "array.h"
#include "moment.h"
#include "top_file.h"

#define KEEP_DAYS  7
#define DAY_NS     86400000000000ull
#define MAX_MIB    1024
#define FILE_BYTES (1u << 30) /* of a recording's intervals, in memory */

int top_run_open_history(struct top_run *run, struct prcb_error *err)
{
    const struct top_run_options *options = run->options;

    return options->write
               ? top_history_open(
                     options->write, options->keep_ns ? options->keep_ns / DAY_NS : KEEP_DAYS,
                     (options->max_mib ? options->max_mib : MAX_MIB) << 20, &run->history, err)
               : 0;
}

int top_run_write_history(struct top_run *run, struct prcb_error *err)
{
    return run->history
               ? top_history_add(run->history, &run->model, run->model.frame_count - 1, err)
               : 0;
}

void top_run_close_files(struct top_run *run)
{
    struct prcb_error err;

    if (top_history_close(run->history, &err))
        run->status = cli_error(run->command, "%s", err.text);
    top_reader_close(run->reader);
}

static bool load(void *ctx, int64_t clock_ns)
{
    struct top_run *run = ctx;
    struct prcb_error err;
    bool changed;

    if (!top_reader_load(run->reader, &run->model, clock_ns, &changed, &err))
        return changed;
    top_ui_say(&run->ui, true, "%s", err.text);
    return false;
}

int top_run_open_reader(struct top_run *run, struct prcb_error *err)
{
    char path[4096];
    bool changed;
    int result = top_history_file(run->options->read, path, sizeof(path), err);

    if (!result)
        result = top_reader_open(path, run->options->delay_ns, &run->reader, err);

    if (result)
        return result;
    run->model.max_bytes = FILE_BYTES;
    snprintf(run->ui.setting.host, sizeof(run->ui.setting.host), "%s",
             top_reader_host(run->reader));
    run->ui.setting.file = true;
    run->ui.mode = TOP_FILE;
    run->ui.details = (struct top_details){.load = load, .ctx = run};
    result = top_reader_load(run->reader, &run->model, 0, &changed, err);
    if (!result && run->model.frame_count)
        run->ui.position_ns = top_model_frame(&run->model, 0)->end_ns;
    return result;
}

/* Makes a name that no file in this directory has: prcb-top-TIME.ENDING. */
static void file_name(const char *ending, char *ret, size_t size)
{
    time_t now = time(NULL);
    char moment[32] = "";
    struct tm tm;

    if (localtime_r(&now, &tm))
        strftime(moment, sizeof(moment), "%Y%m%d-%H%M%S", &tm);
    snprintf(ret, size, "prcb-top-%s.%s", moment, ending);
}

/* Writes the grid as text, into a file that must not exist yet. */
static int save_text(const struct top_grid *grid, const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    size_t size = (size_t)grid->width * 4 + 1;
    char *line = malloc(size);
    int result = file && line ? 0 : -errno;

    for (int y = 0; !result && y < grid->height; y++) {
        top_grid_line(grid, y, line, size);
        fprintf(file, "%s\n", line);
    }
    if (file && fclose(file))
        result = -errno;
    else if (!file && fd >= 0)
        close(fd);
    free(line);
    return result;
}

/* Saves the history in memory and the screen. */
void top_run_save(struct top_run *run)
{
    char name[64], text[64];
    struct top_writer *writer;
    struct prcb_error err;
    int result;

    file_name("db", name, sizeof(name));
    file_name("txt", text, sizeof(text));
    if (run->reader) {
        top_ui_say(&run->ui, true, "the history is a file already");
        return;
    }
    if (access(name, F_OK) == 0) {
        snprintf(err.text, sizeof(err.text), "%s is there already", name);
        result = -EEXIST;
    } else {
        result = top_writer_open(name, &writer, &err);
    }
    if (!result) {
        for (uint32_t i = 0; i < run->model.frame_count && !result; i++)
            result = top_writer_add(writer, &run->model, i, &err);
        result = result ? (top_writer_close(writer, NULL), result) : top_writer_close(writer, &err);
    }
    if (result)
        top_ui_say(&run->ui, true, "%s", err.text);
    else if (save_text(&run->grid, text))
        top_ui_say(&run->ui, true, "%s: %s", text, strerror(errno));
    else
        top_ui_say(&run->ui, false, "written: %s and %s", name, text);
}

/* Writes the panes of the selected row, large enough to show all of it. */
void top_run_export(struct top_run *run)
{
    struct top_grid grid = {.unicode = run->grid.unicode};
    char name[64];

    file_name("row.txt", name, sizeof(name));
    if (run->ui.screen != TOP_PANES) {
        top_ui_say(&run->ui, false, "open the row first (Enter)");
        return;
    }
    if (top_grid_resize(&grid, 200, 60))
        return;
    top_view_draw(&run->ui, &grid);
    if (save_text(&grid, name))
        top_ui_say(&run->ui, true, "%s: %s", name, strerror(errno));
    else
        top_ui_say(&run->ui, false, "written: %s", name);
    top_grid_deinit(&grid);
}

/* ---- the time before ---- */

struct living {
    struct living_thread {
        pid_t tid;
        uint64_t key;
    } * threads;
    size_t count, room;
};

static int by_tid(const void *left, const void *right)
{
    const struct living_thread *a = left, *b = right;

    return (a->tid > b->tid) - (a->tid < b->tid);
}

static int take_living(const struct prcb_account *a, void *ctx)
{
    struct living *living = ctx;
    const struct living_thread thread = {a->tid, a->key};

    return a->flags & PRCB_ACCOUNT_EXITED || !a->tid
               ? 0
               : array_add(living->threads, living->count, living->room, thread);
}

static uint64_t key_of(void *ctx, pid_t tid)
{
    struct living *living = ctx;
    const struct living_thread of = {.tid = tid};
    struct living_thread *thread = array_search(&of, living->threads, living->count, by_tid);
    uint64_t key = thread ? thread->key : 0;

    if (thread)
        thread->key = 0;
    return key;
}

static int load_before(struct top_run *run, const char *path, struct prcb_error *err)
{
    const struct moment_options how = {
        .path = path, .last_ns = run->options->history_ns, .all = true};
    uint32_t frames = run->model.max_frames;
    struct top_reader *reader = NULL;
    struct living living = {0};
    struct moment moment;
    bool changed;
    int result = moment_write(run->session, &how, &moment, err);

    if (!result)
        result = prcb_walk(run->session, take_living, &living, err);
    array_sort(living.threads, living.count, by_tid);
    if (!result)
        result = top_reader_open(path, run->ui.setting.interval_ns, &reader, err);
    if (!result)
        result = top_reader_set_keys(reader, key_of, &living);
    if (!result)
        result = top_reader_load(reader, &run->model, INT64_MAX, &changed, err);
    run->model.max_frames = frames;
    top_reader_close(reader);
    free(living.threads);
    return result;
}

int top_run_look_back(struct top_run *run, struct prcb_error *err)
{
    const char *place = getenv("TMPDIR");
    char folder[4000], path[4096];
    int result;

    /* Tables are of what is to come. */
    if ((run->options->batch && !run->history) || prcb_session_switches_rewind(run->session, NULL))
        return 0;
    snprintf(folder, sizeof(folder), "%s/prcb-top-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder)) {
        top_ui_say(&run->ui, true, "%s: %s: no history before now", folder, strerror(errno));
        return 0;
    }
    snprintf(path, sizeof(path), "%s/before.db", folder);
    result = load_before(run, path, err);
    unlink(path);
    rmdir(folder);
    if (result) {
        top_model_clear(&run->model);
        top_ui_say(&run->ui, true, "no history before now: %s", err->text);
    }
    for (uint32_t i = 0; i < run->model.frame_count && run->history; i++) {
        if (top_history_add(run->history, &run->model, i, err))
            return err->code;
    }
    return 0;
}
#else
int top_run_look_back(struct top_run *run, struct prcb_error *err)
{
    return 0;
}
int top_run_open_history(struct top_run *run, struct prcb_error *err)
{
    return 0;
}
int top_run_write_history(struct top_run *run, struct prcb_error *err)
{
    return 0;
}
void top_run_close_files(struct top_run *run)
{
}
int top_run_open_reader(struct top_run *run, struct prcb_error *err)
{
    return -EOPNOTSUPP;
}
void top_run_save(struct top_run *run)
{
    top_ui_say(&run->ui, true, "this build writes no recordings");
}
void top_run_export(struct top_run *run)
{
    top_ui_say(&run->ui, true, "this build writes no recordings");
}
#endif
