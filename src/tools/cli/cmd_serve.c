/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb serve` shows the page of `prcb report --html` live. This program measures and makes
 * frames; prcb-serve, a process without any right, shows them to browsers.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prcb/processors.h>

#include "cli.h"
#include "http.h"
#include "now.h"
#include "pid_ns.h"
#include "serve_start.h"
#include "stat_options.h"
#include "stat_targets.h"
#include "stat_wait.h"

#define NS_PER_S     1000000000ull
#define MIN_DELAY_NS (NS_PER_S / 10)
#define DELAY_NS     NS_PER_S
#define HISTORY_NS   (600 * NS_PER_S)
#define KEY_EVERY    60
#define REFRESH_NS   (NS_PER_S / 20) /* perf tier: looks for threads between two intervals */

struct options {
    struct stat_options targets;
    uint64_t delay_ns, history_ns;
    struct serve_address address;
    bool open, no_stacks;
};

struct run {
    const struct cli_command *command;
    const struct options *options;
    struct serve_address address;
    struct prcb *session;
    struct prcb_processors *view;
    struct frames *frames;
    struct sandbox server;
    struct stat_wait wait;
    char *browser_file;
    uint64_t end, next, next_refresh;
    bool own, perf;
};

#define AT(member) .at = offsetof(struct options, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    STAT_TARGET_ROWS(offsetof(struct options, targets), "only", "only threads"),
    {'a', "all", NULL, "every thread of the system, or nothing: fail where that is not allowed", AT(targets.all)},
    {'d', "delay", "SEC", "length of an interval (default 1; 0.1 and more)", .take = cli_take_duration, AT(delay_ns), .min = MIN_DELAY_NS},
    {0, "history", "SEC", "the page shows the last SEC seconds (default 600)", .take = cli_take_duration, AT(history_ns)},
    {0, "for", "SEC", "end after SEC seconds", .take = cli_take_duration, AT(targets.for_ns)},
    {0, "port", "PORT", "of 127.0.0.1 (default: any that is free)",
     .kind = CLI_NUMBER, AT(address.port), .min = 1, .max = 65535},
    {0, "socket", "PATH", "a Unix socket that only you can reach, and no port",
     .kind = CLI_TEXT, AT(address.path), .what = "the path is empty"},
    {0, "open", NULL, "show the page in your browser", AT(open)},
    {0, "no-stacks", NULL, "leave out where threads wait: no stack is read", AT(no_stacks)},
    STAT_TIER_ROW(offsetof(struct options, targets)),
    STAT_VERBOSE_ROW(offsetof(struct options, targets)),
    STAT_MAX_THREADS_ROW(offsetof(struct options, targets)),
    {0},
};
/* clang-format on */

static int check(const struct cli_command *self, struct options *options)
{
    struct stat_options *targets = &options->targets;

    if (stat_options_check_all(self, targets, "shows"))
        return CLI_USAGE;
    if (options->address.path && (options->address.port || options->open))
        return cli_usage_error(self, "a browser reaches --socket through ssh only: leave %s out",
                               options->open ? "--open" : "--port");
    return CLI_OK;
}

static int parse(const struct cli_command *self, int argc, char **argv, struct options *ret,
                 int *ret_status)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};

    *ret = (struct options){.history_ns = HISTORY_NS};
    if (cli_take_all(&parser, ret, ret_status))
        return -1;
    ret->targets.follow = PRCB_FOLLOW_ALL;
    if (parser.index < argc)
        *ret_status =
            cli_usage_error(self, "'%s': prcb serve starts no command", argv[parser.index]);
    else
        *ret_status = check(self, ret);
    ret->delay_ns = ret->delay_ns ? ret->delay_ns : DELAY_NS;
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- measuring --------------------------------------------------------------------------------
 */

static uint64_t history_frames(const struct options *options)
{
    uint64_t frames = options->history_ns / options->delay_ns;

    return frames < 2 ? 2 : frames > 100000 ? 100000 : frames;
}

static int open_frames(struct run *run, struct prcb_error *err)
{
    const struct stat_options *targets = &run->options->targets;
    uint64_t history = history_frames(run->options);
    const struct prcb_options how = {
        .size = sizeof(how),
        .tier = targets->tier,
        .max_threads = (uint32_t)targets->max_threads,
        .flags = run->options->no_stacks ? 0 : PRCB_OPEN_REGISTERS,
    };
    struct frames_options options = {
        .stacks = !run->options->no_stacks,
        .key_every = history < KEY_EVERY ? (unsigned)history : KEY_EVERY,
        .history_frames = history,
    };
    int result = check_proc_numbers(err);

    if (!result)
        result = stat_targets_open(&how, targets, &run->session, err);
    if (targets->verbose)
        cli_write_load_log(prcb_load_log());
    if (result)
        return result;
    run->perf = prcb_session_tier(run->session) == PRCB_TIER_PERF;
    result = stat_targets_profile_visible(run->session, targets, &run->wait, &options.own, err);
    if (result)
        return result;
    options.all = !options.own && !stat_options_have_targets(targets);
    run->view = stat_targets_view(targets);
    return frames_open(run->session, run->view, &options, &run->frames, err);
}

static int end_interval(struct run *run, struct prcb_error *err)
{
    struct frame frame;
    int result = frames_take(run->frames, &frame, err);

    if (!result && frame.text && serve_send(&run->server, &frame)) {
        snprintf(err->text, sizeof(err->text), "prcb-serve, which shows the page, has ended");
        result = -EPIPE;
    }
    if (!result)
        free(frame.text);
    return result;
}

/* Does what is due; returns -errno after the error. */
static int work(struct run *run, struct prcb_error *err)
{
    uint64_t now = now_ns();
    int result = 0;

    if (run->perf && now >= run->next_refresh) {
        result = prcb_refresh(run->session, err);
        stat_wait_advance(&run->next_refresh, REFRESH_NS + 16 * (now_ns() - now), now);
    }
    if (!result && now >= run->next) {
        result = end_interval(run, err);
        stat_wait_advance(&run->next, run->options->delay_ns, now);
    } else if (!result && now >= frames_next_look(run->frames)) {
        result = frames_look(run->frames, err);
    }
    return result;
}

static uint64_t next_moment(const struct run *run)
{
    uint64_t next = run->end < run->next ? run->end : run->next;
    uint64_t look = frames_next_look(run->frames);

    next = look < next ? look : next;
    return run->perf && run->next_refresh < next ? run->next_refresh : next;
}

static int measure(struct run *run)
{
    uint64_t start = now_ns();
    struct prcb_error err = {0};

    run->next = run->next_refresh = start;
    run->end = run->options->targets.for_ns ? start + run->options->targets.for_ns : UINT64_MAX;
    while (now_ns() < run->end) {
        if (work(run, &err))
            return cli_error(run->command, "%s", err.text);
        if (stat_wait_until(&run->wait, next_moment(run)) & STAT_WAIT_SIGNAL)
            break;
    }
    return CLI_OK;
}

/* ---- a run ------------------------------------------------------------------------------------
 */

/* Prints the address, and how it is reached from elsewhere. False: nobody can know it. */
static bool print_address(const struct run *run, const char *token, char *ret, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    char host[65] = "HOST";
    unsigned port = run->address.path ? 8080 : (unsigned)run->address.port;

    gethostname(host, sizeof(host) - 1);
    snprintf(ret, size, "http://127.0.0.1:%u/?token=%s", port, token);
    if (run->address.path) {
        printf("From your own machine: ssh -N -L %u:%s %s@%s\nthen open %s\n", port,
               run->address.path, user ? user->pw_name : "USER", host, ret);
    } else {
        printf("%s\nFrom another machine, first: ssh -N -L %u:127.0.0.1:%u %s@%s\n", ret, port,
               port, user ? user->pw_name : "USER", host);
    }
    printf("Whoever has the address sees what you see. Ctrl-C ends it.\n");
    return !fflush(stdout) && !ferror(stdout);
}

static int run_opened(struct run *run, int listening)
{
    char token[HTTP_TOKEN + 1], address[128];
    struct prcb_error err;
    int result = serve_start(listening, history_frames(run->options), token, &run->server, &err);

    close(listening);
    if (result)
        return cli_error(run->command, "%s", err.text);
    if (!print_address(run, token, address, sizeof(address)) && !run->options->open)
        return cli_error(run->command, "cannot write to standard output: %s", strerror(errno));
    explicit_bzero(token, sizeof(token));
    if (run->options->open && serve_open_browser(address, &run->browser_file, &err))
        cli_warn(run->command, "%s", err.text);
    explicit_bzero(address, sizeof(address));
    return measure(run);
}

static void close_all(struct run *run)
{
    sandbox_stop(&run->server);
    if (run->browser_file)
        unlink(run->browser_file);
    free(run->browser_file);
    if (run->address.path)
        socket_place_leave(run->address.path, &run->address.place);
    frames_close(run->frames);
    prcb_processors_close(run->view);
    prcb_close(run->session);
}

/* The socket comes first: a port that is taken is found out before the kernel side is put in
 * place. */
static int run_with(struct run *run)
{
    struct prcb_error err;
    int listening, status;

    if (serve_listen(&run->address, &listening, &err))
        return cli_error(run->command, "%s", err.text);
    if (open_frames(run, &err)) {
        status = cli_error(run->command, "%s", err.text);
        close(listening);
    } else {
        status = run_opened(run, listening);
    }
    close_all(run);
    return status;
}

static int run_serve(const struct cli_command *self, int argc, char **argv)
{
    struct options options;
    struct run run = {.command = self, .options = &options};
    int status, result = parse(self, argc, argv, &options, &status);

    if (result == CLI_OK) {
        run.address = options.address;
        result = stat_wait_init(&run.wait);
        if (result) {
            status = cli_error(self, "pipe: %s", strerror(-result));
        } else {
            status = run_with(&run);
            stat_wait_deinit(&run.wait);
        }
    }
    stat_options_deinit(&options.targets);
    return status;
}

extern const struct cli_command cmd_serve;
const struct cli_command cmd_serve = {
    .name = "serve",
    .synopsis = "[options]",
    .summary = "the page of prcb report --html, live in your browser",
    .description =
        "Shows in a browser what threads run and wait for, and where, as it happens: the page of\n"
        "prcb report --html, with a new interval each second and a history of ten minutes.\n"
        "Prints an address with a secret in it, which works on this machine and through ssh\n"
        "only. Needs no privilege: it shows what prcb top would show you.\n"
        "Without -p, -t, --cgroup: every thread, or where that is not allowed one's own.",
    .options = option_rows,
    .examples = "  prcb serve                             everything there may be seen\n"
                "  prcb serve -p $(pgrep -d, postgres)    some processes\n"
                "  prcb serve --open                      and show it in your browser\n"
                "  prcb serve --socket ~/prcb.sock        for ssh -L, without a port\n",
    .run = run_serve,
};
