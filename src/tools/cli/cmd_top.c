/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb top` shows what threads run and wait for, as a screen that is kept open, or as tables
 * (-b). src/tools/top has what it knows and shows; this file has the options and the course of a
 * run.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "now.h"
#include "pid_ns.h"
#include "stat_targets.h"
#include "top_curses.h"
#include "top_run.h"

#define NS_PER_S     1000000000ull
#define MIN_DELAY_NS (NS_PER_S / 10)
#define DELAY_NS     NS_PER_S
#define AGAIN_NS     (100 * 1000000ull) /* by then stacks are there that a screen asked for */
#define LOOK_EACH    5  /* takes between two looks for threads that are not followed */
#define ROOM_PART    64 /* of the accounts are free before these are taken up */
#define DAY_NS       (86400 * NS_PER_S)
#define HISTORY_NS   (600 * NS_PER_S)
#define LEARN_NS     (NS_PER_S / 4)  /* of a table: for stacks that tell a lock from sleep */
#define REFRESH_NS   (NS_PER_S / 20) /* perf tier: looks for threads between two intervals */

/* ---- options ------------------------------------------------------------------------------ */

static int take_group(struct cli_parser *parser, void *target)
{
    struct top_run_options *options = target;

    for (int i = 0; i < TOP_GROUPS; i++) {
        if (!strcmp(parser->value, top_group_names[i])) {
            options->group = (enum top_group)i;
            return CLI_OK;
        }
    }
    return cli_usage_error(parser->command,
                           "--group '%s': must be threads, processes, names, cgroups or causes",
                           parser->value);
}

static int take_order(struct cli_parser *parser, void *target)
{
    struct top_run_options *options = target;

    for (uint32_t i = 0; i < TOP_BY_CAUSE; i++) {
        if (!strcmp(parser->value, top_sort_names[i])) {
            options->order = (struct top_order){.key = (enum top_sort)i};
            return CLI_OK;
        }
    }
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        if (prcb_cause_info(i) && !strcmp(parser->value, prcb_cause_info(i)->name)) {
            options->order = (struct top_order){.key = TOP_BY_CAUSE, .cause = i};
            return CLI_OK;
        }
    }
    return cli_usage_error(
        parser->command,
        "--sort '%s': must be busy, run, ready, wait, switches, for, pid, name or "
        "the name of a cause",
        parser->value);
}

#define AT(member) .at = offsetof(struct top_run_options, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    STAT_TARGET_ROWS(offsetof(struct top_run_options, targets), "only", "only threads"),
    {'a', "all", NULL, "every thread of the system, or nothing: fail where that is not allowed", AT(targets.all)},
    {'d', "delay", "SEC", "length of an interval (default 1; 0.1 and more)", .take = cli_take_duration, AT(delay_ns), .min = MIN_DELAY_NS},
    {'g', "group", "GROUP", "rows are threads, processes, names, cgroups or causes",
     .take = take_group, .choices = "threads processes names cgroups causes"},
    {0, "sort", "KEY", "busy (the default), run, ready, wait, switches, for, pid, name, or a cause",
     .take = take_order, .choices = "busy run ready wait switches for pid name"},
    {'f', "filter", "WORDS", "only rows with all of these words: text, cause:futex, ready>5,\n"
                             "cgroup:TEXT, user:NAME, pid:N", .kind = CLI_TEXT, AT(filter), .what = "the filter is empty"},
    {'u', "user", "USER", "only processes of this user", .kind = CLI_TEXT, AT(user), .what = "the user's name is empty"},
    {'i', "idle", NULL, "show threads that sleep through an interval, too", AT(sleeping)},
    {'K', "no-kernel", NULL, "no kernel threads", AT(no_kernel)},
    {0, "by-whom", NULL, "record which threads wake and preempt others, for the pane BY WHOM; attaches\n"
                      "programs to each wakeup and interrupt of the machine", AT(whom)},
    {'b', "batch", NULL, "tables on standard output, no screen; for scripts and tickets", AT(batch)},
    {'n', "count", "N", "end after N intervals", .kind = CLI_NUMBER, AT(count), .min = 1, .max = UINT32_MAX},
    {0, "top", "N", "with -b: the first N rows only (0: all)", .kind = CLI_NUMBER, AT(rows), .max = UINT32_MAX},
    {0, "history", "SEC", "keep intervals of so long in memory, 64 MiB at most (default 600)",
     .take = cli_take_duration, AT(history_ns)},
#ifdef HAVE_RECORD
    {'w', "write", "FILE", "append each interval to a recording; FILE is replaced. A directory: a file a\n"
                           "day, prcb-YYYY-MM-DD.db", .kind = CLI_TEXT, AT(write), .what = "the file name is empty"},
    {'r', "read", "FILE", "show a recording of prcb top -w or prcb record; of a directory\n"
                          "of -w the last one",
     .kind = CLI_TEXT, AT(read), .what = "the file name is empty"},
    {0, "keep", "DAYS", "with -w DIRECTORY: keep the files of DAYS days\n"
                        "before the last (default 7)",
     .take = cli_take_duration, AT(keep_ns), .min = DAY_NS, .max = 3650 * DAY_NS},
    {0, "max-size", "MIB", "with -w: of the file, or of all of the directory's; the oldest go first\n"
                           "(default 1024)", .kind = CLI_NUMBER, AT(max_mib), .min = 1, .max = 1u << 20},
    {'q', "quiet", NULL, "with -w: no screen and no tables", AT(quiet)},
#endif
    {'C', "no-color", NULL, "no colours; as NO_COLOR in the environment", AT(no_colour)},
    {'U', "no-unicode", NULL, "ASCII only", AT(no_unicode)},
    {'M', "no-mouse", NULL, "leave the mouse to the terminal", AT(no_mouse)},
    {'o', "output", "FILE", "with -b: write the tables to FILE",
     .kind = CLI_TEXT, AT(targets.output), .what = "the file name is empty"},
    STAT_TIER_ROW(offsetof(struct top_run_options, targets)),
    STAT_VERBOSE_ROW(offsetof(struct top_run_options, targets)),
    STAT_MAX_THREADS_ROW(offsetof(struct top_run_options, targets)),
    {0},
};
/* clang-format on */

static int check(const struct cli_command *self, struct top_run_options *options)
{
    struct top_filter filter;
    char word[64];

    if (stat_options_check_all(self, &options->targets, "shows"))
        return CLI_USAGE;
    if (options->filter && top_filter_parse(options->filter, &filter, word, sizeof(word)))
        return cli_usage_error(self,
                               "-f: '%s' must be text, cause:NAME, cgroup:TEXT, user:NAME, pid:N "
                               "or ready>5",
                               word);
    if (options->read && (options->write || options->targets.all || options->quiet ||
                          stat_options_have_targets(&options->targets)))
        return cli_usage_error(self, "-r shows a recording: leave -w, -p, -t, --cgroup and -a out");
    if (options->quiet && (!options->write || options->batch))
        return cli_usage_error(self, options->write ? "-b and -q contradict each other: choose one"
                                                    : "-q shows nothing: add -w");
    if (!options->batch && (options->rows || options->targets.output))
        return cli_usage_error(self, "%s is for tables: add -b", options->rows ? "--top" : "-o");
    return CLI_OK;
}

static int parse(const struct cli_command *self, int argc, char **argv, struct top_run_options *ret,
                 int *ret_status)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};

    *ret = (struct top_run_options){.history_ns = HISTORY_NS};
    if (cli_take_all(&parser, ret, ret_status))
        return -1;
    ret->targets.follow = PRCB_FOLLOW_ALL;
    if (parser.index < argc)
        *ret_status = cli_usage_error(self, "'%s': prcb top starts no command", argv[parser.index]);
    else
        *ret_status = check(self, ret);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- what is measured ---------------------------------------------------------------------- */

/* Sets the notes on what the tier lacks, a line each, and the tier's name for the first line. */
static void set_notes(struct top_run *run)
{
    struct top_setting *setting = &run->ui.setting;
    const char *reason = prcb_session_tier_reason(run->session);

    snprintf(setting->tier, sizeof(setting->tier), "tier %s%s",
             prcb_tier_name(prcb_session_tier(run->session)), run->own ? " (own threads)" : "");
    if (run->perf)
        snprintf(setting->notes[0], sizeof(setting->notes[0]),
                 "perf tier: no causes of waiting%s%s", reason ? ": " : "", reason ? reason : "");
}

/* Counts threads that found no room since the last time; true: there are some. */
static bool count_untracked(struct top_run *run, struct prcb_status *ret)
{
    uint64_t before = run->untracked;

    *ret = (struct prcb_status){.size = sizeof(*ret)};
    if (prcb_session_status(run->session, ret))
        return false;
    run->untracked = ret->untracked_threads;
    return run->untracked != before;
}

/* Takes up threads that found no room, when there is some, and says what is missing until then. */
static void look_for_missing(struct top_run *run)
{
    struct top_setting *setting = &run->ui.setting;
    struct prcb_status status;

    run->left_out |= count_untracked(run, &status);
    if (run->left_out && !run->perf &&
        status.threads + status.max_threads / ROOM_PART < status.max_threads) {
        stat_targets_profile_visible(run->session, &run->options->targets, &run->wait, &run->own,
                                     NULL);
        run->left_out = count_untracked(run, &status);
    }
    if (run->left_out)
        snprintf(
            setting->missing, sizeof(setting->missing),
            "threads are missing: there is room for %u (--max-threads); %llu found none so far",
            status.max_threads, (unsigned long long)status.untracked_threads);
    else
        *setting->missing = '\0';
}

static int open_all(struct top_run *run, struct prcb_error *err)
{
    const struct stat_options *targets = &run->options->targets;
    const struct prcb_options how = {
        .size = sizeof(how),
        .tier = targets->tier,
        .max_threads = (uint32_t)targets->max_threads,
        .flags = (run->options->quiet ? 0u : PRCB_OPEN_REGISTERS) |
                 (run->whom ? PRCB_OPEN_EDGES | PRCB_OPEN_MEANWHILE : 0u) |
                 (targets->all || !stat_options_have_targets(targets)
                      ? PRCB_OPEN_SHARED | PRCB_OPEN_SWITCHES
                      : 0u),
    };
    int result = check_proc_numbers(err);

    if (!result)
        result = stat_targets_open(&how, targets, &run->session, err);
    if (targets->verbose)
        cli_write_load_log(prcb_load_log());
    if (result)
        return result;
    run->perf = prcb_session_tier(run->session) == PRCB_TIER_PERF;
    result = stat_targets_profile_visible(run->session, targets, &run->wait, &run->own, err);
    if (!result) {
        run->view = stat_targets_view(targets);
        result = top_run_look_back(run, err);
    }
    if (!result) {
        result = top_source_open(run->session, run->view, &run->model, &run->source, err);
    }
    if (!result) {
        set_notes(run);
        look_for_missing(run);
    }
    if (!result && run->whom && !run->perf) {
        run->ui.details.whom = top_run_whom_pieces;
        run->ui.details.ctx = run;
    } else if (run->perf) {
        run->ui.details.whom_lacks = "the perf tier records no wakers";
    }
    return result;
}

/* Ends an interval, if it is time. *ret: there is another one. Returns -errno after the error. */
static int take(struct top_run *run, bool *ret)
{
    struct prcb_error err;
    uint64_t now = now_ns(), interval = run->ui.setting.interval_ns;
    int result = 0;

    *ret = false;
    if (run->reader)
        return 0;
    if (run->next > now + interval) /* a key made it shorter */
        run->next = now + interval;
    if (run->perf && now >= run->next_refresh) {
        result = prcb_refresh(run->session, &err);
        stat_wait_advance(&run->next_refresh, REFRESH_NS + 16 * (now_ns() - now), now);
    }
    if (!result && now >= run->next) {
        result = top_source_take(run->source, ret, &err);
        stat_wait_advance(&run->next, interval, now);
        if (++run->takes % LOOK_EACH == 0)
            look_for_missing(run);
    }
    if (!result && *ret)
        result = top_run_write_history(run, &err);
    if (result)
        run->status = cli_error(run->command, "%s", err.text);
    return result;
}

static uint64_t next_moment(const struct top_run *run)
{
    if (run->reader)
        return now_ns() + NS_PER_S;
    return run->perf && run->next_refresh < run->next ? run->next_refresh : run->next;
}

/* ---- tables ------------------------------------------------------------------------------------
 */

static void print_grid(struct top_run *run, int lines)
{
    size_t size = (size_t)run->grid.width * 4 + 1;
    char *line = malloc(size);

    for (int y = 0; line && y < lines; y++) {
        top_grid_line(&run->grid, y, line, size);
        fprintf(run->output.stream, "%s\n", line);
    }
    fputc('\n', run->output.stream);
    free(line);
}

static int write_table(struct top_run *run)
{
    int result = top_ui_prepare(&run->ui);

    if (result)
        return cli_error(run->command, "out of memory");
    print_grid(run, top_view_batch(&run->ui, &run->grid, (uint32_t)run->options->rows));
    output_flush(&run->output);
    return CLI_OK;
}

/* Shows all intervals of a recording, one after the other. */
static void run_file_batch(struct top_run *run)
{
    for (uint64_t written = 1; !run->output.error; written++) {
        struct top_ui *ui = &run->ui;

        run->status = write_table(run);
        if (run->status != CLI_OK || written == run->options->count)
            return;
        top_ui_do(ui, TOP_ACT_NEXT);
        if (*ui->message) /* there is no next */
            return;
    }
}

/* Threads that slept through an interval in a wait that may be for a lock are asked where they wait
 * before a table says that they are asleep. */
static void learn_sleepers(struct top_run *run)
{
    uint64_t half = run->ui.setting.interval_ns / 2;
    uint64_t end = now_ns() + (half < LEARN_NS ? half : LEARN_NS);
    uint32_t at = 0;

    if (!run->where || top_ui_prepare(&run->ui))
        return;
    top_run_ask_sleepers(run);
    while (now_ns() < end && top_model_next_unknown(&run->model, &at)) {
        if (stat_wait_until(&run->wait, now_ns() + LEARN_NS / 50) & STAT_WAIT_SIGNAL) {
            run->ended = true;
            return;
        }
        top_run_ask_sleepers(run);
        at = 0;
    }
}

static void run_batch(struct top_run *run)
{
    uint64_t written = 0;
    bool added;

    if (run->reader) {
        run_file_batch(run);
        return;
    }
    while (!run->ended && !run->output.error) {
        if (take(run, &added))
            return;
        if (added) {
            learn_sleepers(run);
            run->status = run->options->quiet ? CLI_OK : write_table(run);
            run->ended = run->status != CLI_OK || ++written == run->options->count;
        }
        if (!run->ended && stat_wait_until(&run->wait, next_moment(run)) & STAT_WAIT_SIGNAL)
            run->ended = true;
    }
}

/* ---- a screen -----------------------------------------------------------------------------------
 */

static void draw(struct top_run *run, bool anew)
{
    int width, height;

    top_curses_size(&width, &height);
    if ((width != run->grid.width || height != run->grid.height) &&
        top_grid_resize(&run->grid, width, height))
        return;
    if (top_ui_prepare(&run->ui))
        return;
    top_run_watch(run);
    top_run_ask_sleepers(run);
    top_view_draw(&run->ui, &run->grid);
    top_curses_draw(&run->grid, anew);
}

/* Profiles anew, with who wakes and preempts whom. What was chosen stays; the history begins again,
 * since its threads are known by the accounts that end here. */
static void record_whom(struct top_run *run)
{
    uint32_t frames = run->model.max_frames;
    struct top_ui *ui = &run->ui;
    struct prcb_error err;

    if (!run->source || run->whom || run->perf || run->history) {
        top_ui_say(ui, !run->whom, "%s",
                   run->whom      ? "by whom is recorded already"
                   : run->perf    ? "the perf tier records no wakers"
                   : run->history ? "not while -w writes a history: start with --by-whom"
                                  : "a recording of prcb top has no wakers");
        return;
    }
    run->whom = true;
    top_source_close(run->source);
    run->source = NULL;
    prcb_processors_close(run->view);
    run->view = NULL;
    if (top_run_close_stacks(run)) /* else the end of the program closes it */
        prcb_close(run->session);
    run->session = NULL;
    run->where = NULL;
    top_ui_forget(ui);
    top_model_deinit(&run->model);
    top_model_init(&run->model);
    run->model.max_frames = frames;
    run->untracked = 0;
    run->left_out = false;
    if (open_all(run, &err)) {
        run->status = cli_error(run->command, "%s", err.text);
        run->ended = true;
        return;
    }
    top_run_open_stacks(run);
    run->next = run->next_refresh = now_ns();
    top_ui_say(ui, false, "by whom is recorded from here on; the history begins again");
}

static void answer_request(struct top_run *run)
{
    enum top_request request = run->ui.request;

    run->ui.request = TOP_REQUEST_NONE;
    switch (request) {
    case TOP_REQUEST_QUIT:
        run->ended = true;
        break;
    case TOP_REQUEST_REDRAW:
        if (run->source)
            top_source_read_again(run->source);
        draw(run, true);
        break;
    case TOP_REQUEST_SAVE:
        top_run_save(run);
        break;
    case TOP_REQUEST_EXPORT:
        top_run_export(run);
        break;
    case TOP_REQUEST_WHOM:
        record_whom(run);
        break;
    case TOP_REQUEST_NONE:
        break;
    }
}

/* Handles the keys and clicks that are there; returns whether there was any. */
static bool take_events(struct top_run *run)
{
    bool any = false;

    for (;;) {
        struct top_event event = top_curses_event();

        if (event.kind == TOP_EVENT_NONE)
            return any;
        any = true;
        if (event.kind == TOP_EVENT_KEY)
            top_ui_key(&run->ui, event.key);
        else if (event.kind == TOP_EVENT_CLICK)
            top_ui_click(&run->ui, &run->grid, event.y, event.x, event.twice);
        else if (event.kind == TOP_EVENT_WHEEL)
            top_ui_wheel(&run->ui, event.turn);
        answer_request(run);
        if (run->ended || top_ui_prepare(&run->ui))
            return any;
    }
}

/* Waits for a key, a signal, or the next interval. */
static void wait_for(struct top_run *run)
{
    struct pollfd what[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = run->wait.pipe, .events = POLLIN}};
    uint64_t now = now_ns(), next = next_moment(run);
    uint64_t until = run->again < next ? run->again : next;
    int ms = until > now ? (int)((until - now) / 1000000) + 1 : 0;

    if (poll(what, 2, ms) > 0) {
        /* The terminal went away, or a signal asks for the end. */
        if (what[0].revents & (POLLHUP | POLLERR | POLLNVAL) || what[1].revents)
            run->ended = true;
    }
}

static void run_screen(struct top_run *run)
{
    uint64_t shown = 0;
    bool added;

    run->again = UINT64_MAX;
    draw(run, true);
    while (!run->ended) {
        bool events = take_events(run);

        if (run->ended || take(run, &added))
            return;
        if (added || events || (now_ns() >= run->again && top_run_has_news(run)))
            draw(run, false);
        run->again = added && run->where      ? now_ns() + AGAIN_NS
                     : now_ns() >= run->again ? UINT64_MAX
                                              : run->again;
        if (added && ++shown == run->options->count)
            return;
        wait_for(run);
    }
}

static void run_on_terminal(struct top_run *run)
{
    const struct top_curses_options how = {
        .colour = !run->options->no_colour && cli_colour(STDOUT_FILENO),
        .mouse = !run->options->no_mouse,
    };
    struct prcb_error err;

    if (top_curses_open(&how, &err)) {
        run->status = cli_usage_error(run->command, "%s", err.text);
        return;
    }
    if (run->session)
        top_run_open_stacks(run);
    run_screen(run);
    top_curses_close();
}

/* ---- a run
 * ----------------------------------------------------------------------------------------- */

static bool speaks_unicode(const struct top_run_options *options)
{
    setlocale(LC_CTYPE, "");
    return !options->no_unicode && !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static void set_up(struct top_run *run)
{
    const struct top_run_options *options = run->options;
    uint64_t frames = options->history_ns / options->delay_ns;
    struct top_ui *ui = &run->ui;
    char word[64];

    run->model.max_frames = frames < 2 ? 2 : frames > 100000 ? 100000 : (uint32_t)frames;
    run->grid.unicode = speaks_unicode(options);
    gethostname(ui->setting.host, sizeof(ui->setting.host) - 1);
    ui->setting.interval_ns = options->delay_ns;
    ui->choice.group = options->group;
    ui->choice.order = options->order;
    ui->choice.sleeping = options->sleeping;
    ui->choice.no_kernel = options->no_kernel;
    ui->details.where_lacks = "this build reads no stacks";
    ui->details.whom_lacks =
        "not recorded: E records it from then on (as --by-whom does from the start)";
    run->whom = options->whom;
    if (options->filter) {
        snprintf(ui->filter_text, sizeof(ui->filter_text), "%s", options->filter);
        top_filter_parse(options->filter, &ui->filter, word, sizeof(word));
    }
    if (options->user)
        snprintf(ui->user, sizeof(ui->user), "%s", options->user);
}

/* The terminal is asked before the kernel side is put in place: that takes a moment, and root. */
static bool lacks_terminal(const struct top_run *run)
{
    const char *term = getenv("TERM");

    return !run->options->batch && !run->options->quiet &&
           (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !*term ||
            !strcmp(term, "dumb"));
}

static int run_with(struct top_run *run)
{
    struct prcb_error err;
    int status = cli_open_output(run->command, run->options->targets.output, &run->output);

    if (status != CLI_OK)
        return status;
    if (run->options->read ? top_run_open_reader(run, &err)
                           : top_run_open_history(run, &err) || open_all(run, &err)) {
        top_run_close_files(run);
        output_abort(&run->output);
        return cli_error(run->command, "%s", err.text);
    }
    output_begin(&run->output);
    run->next = run->next_refresh = now_ns();
    if (run->options->batch || run->options->quiet) {
        run->grid.width = (int)format_columns(run->output.stream);
        if (run->session && !run->options->quiet && !run->perf)
            top_run_open_stacks(run);
        run_batch(run);
    } else {
        run_on_terminal(run);
    }
    top_run_close_files(run);
    return cli_close_output(run->command, &run->output, run->status);
}

static int run_top(const struct cli_command *self, int argc, char **argv)
{
    struct top_run_options options;
    struct top_run run = {.command = self, .options = &options};
    int status, result = parse(self, argc, argv, &options, &status);

    if (result == CLI_OK && lacks_terminal(&run)) {
        status = cli_usage_error(self, "%s: use prcb top -b",
                                 isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)
                                     ? "TERM names a terminal that cannot show a screen"
                                     : "no terminal");
        result = -1;
    }
    if (result == CLI_OK) {
        options.delay_ns = options.delay_ns ? options.delay_ns : DELAY_NS;
        status = CLI_FAILED;
        top_model_init(&run.model);
        if (stat_wait_init(&run.wait)) {
            cli_error(self, "out of memory");
        } else {
            top_ui_init(&run.ui, &run.model);
            set_up(&run);
            status = run_with(&run);
            top_source_close(run.source);
            prcb_processors_close(run.view);
            if (top_run_close_stacks(&run)) /* else the end of the program closes it */
                prcb_close(run.session);
            cgroup_names_close(run.cgroups);
            top_ui_deinit(&run.ui);
            top_grid_deinit(&run.grid);
            stat_wait_deinit(&run.wait);
        }
        top_model_deinit(&run.model);
    }
    stat_options_deinit(&options.targets);
    return status;
}

extern const struct cli_command cmd_top;
const struct cli_command cmd_top = {
    .name = "top",
    .synopsis = "[options]",
    .summary = "what threads run and wait for, live, with a history",
    .description =
        "Shows threads by the time that they neither ran nor slept: what each does now and since\n"
        "when, how much of the interval it ran, was ready without a processor, and waited, by\n"
        "cause. Enter on a row says why, where and by whom; T goes back in time; F1 lists the "
        "keys.\n"
        "Without -p, -t, --cgroup: every thread, or where that is not allowed one's own.",
    .options = option_rows,
    .examples = "  prcb top                               everything there may be seen\n"
                "  prcb top -p $(pgrep -d, postgres)      some processes\n"
                "  prcb top -g cgroups --sort ready       who has no processor, by container\n"
                "  prcb top -f 'cause:futex ready>5'      rows that pass a filter\n"
                "  prcb top -b -n 3 -g processes --top 20 tables for a ticket\n"
                "  prcb top -w history.db                 keep it for prcb top -r history.db\n",
    .run = run_top,
};
