/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb-exporter serves the figures of src/analysis/metrics to Prometheus. It is a client of
 * prcbd as any other, without a capability: it looks at mapped memory, sums up, and answers. It
 * has one thread and one loop.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "metrics_rows.h"
#include "now.h"
#include "text.h"
#include "web.h"

#define DEFAULT_ADDRESS "localhost:10042"
#define SHARED_NS       100000000ull /* scrapes so close together share a look */
#define NS_PER_S        1000000000ull
#define RETRY_NS        1000000000ull /* how often a missing prcbd is looked for */
#define RELOAD_NS       1000000000ull /* how often the web configuration is looked at */
#define TRIM_NS         30000000000ull
#define TEXTFILE_S      15
#define PROFILE_S       60
#define PROFILE_PERCENT 5

struct exporter {
    struct metrics_options options;
    struct metrics *metrics; /* NULL: prcbd is not reachable */
    struct web *web;
    uint64_t looked, next_look, next_reload, next_trim;
    const char *textfile;
    uint64_t textfile_every, next_textfile;
    bool textfile_failed;
    struct web_options web_options;
    char said[sizeof(((struct prcb_error *)0)->text)]; /* what was logged last of prcbd */
};

static void say(const char *text)
{
    fputs("prcb-exporter: ", stderr);
    text_print(stderr, TEXT_ESCAPES, text);
    fputc('\n', stderr);
}

/* ---- figures ---- */

/* Logs a state that lasts only once. */
static void say_once(struct exporter *e, const char *text)
{
    if (!strcmp(e->said, text))
        return;
    snprintf(e->said, sizeof(e->said), "%s", text);
    say(*text ? text : "prcbd is there");
}

/* Drops figures that are not of now: nothing old is shown as if it were new. */
static void look(struct exporter *e)
{
    struct prcb_error err = {0};
    bool again;
    int result = 0;

    do {
        again = false;
        if (!e->metrics)
            result = metrics_open(&e->options, &e->metrics, &err);
        else
            again = true;
        if (!result)
            result = metrics_look(e->metrics, &err);
        /* A session that was lost is opened again, at once and once. */
        if (result) {
            bool lost = result == -ESTALE;

            if (result != -EAGAIN) {
                metrics_close(e->metrics);
                e->metrics = NULL;
            }
            say_once(e, err.text);
            again = again && lost;
            result = 0;
        } else {
            again = false;
        }
    } while (again);
    e->looked = now_ns();
    if (e->metrics && (metrics_no_ready(e->metrics) || metrics_no_edges(e->metrics))) {
        const char *ready = metrics_no_ready(e->metrics);
        char text[384];

        snprintf(text, sizeof(text), "%s: %s",
                 ready ? "no histogram of ready time" : "nothing of by whom",
                 ready ? ready : metrics_no_edges(e->metrics));
        say_once(e, text);
    } else if (e->metrics) {
        say_once(e, "");
    }
    e->next_look =
        e->looked + (e->metrics ? (uint64_t)metrics_wait_ms(e->metrics) * 1000000 : RETRY_NS);
}

static char *figures(void *ctx, struct accept accept, size_t *ret_size, unsigned *ret_status)
{
    struct exporter *e = ctx;
    char *text = NULL;
    FILE *out;

    if (now_ns() - e->looked > SHARED_NS)
        look(e);
    out = open_memstream(&text, ret_size);
    if (!out) {
        *ret_status = 503;
        return NULL;
    }
    exposition_write(out, accept.format, e->metrics);
    if (fclose(out)) {
        free(text);
        *ret_status = 503;
        return NULL;
    }
    return text;
}

static bool ready(void *ctx)
{
    return ((struct exporter *)ctx)->metrics != NULL;
}

static void write_textfile(struct exporter *e, uint64_t now)
{
    char text[512];
    int result;

    if (now - e->looked > SHARED_NS)
        look(e);
    result = exposition_write_file(e->textfile, EXPOSITION_TEXT, e->metrics);
    if (result && !e->textfile_failed) {
        snprintf(text, sizeof(text), "%s: %s", e->textfile, strerror(-result));
        say(text);
    }
    e->textfile_failed = result != 0;
    e->next_textfile = now + e->textfile_every;
}

/* ---- the loop ---- */

static int signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int until(uint64_t then, uint64_t now)
{
    return then <= now ? 0 : (int)((then - now + 999999) / 1000000);
}

/* Names that come and go leave holes between what stays, and the heap would grow for hours. */
static void give_back(struct exporter *e, uint64_t now)
{
    if (now < e->next_trim)
        return;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    e->next_trim = now + TRIM_NS;
}

/* Serves until SIGINT or SIGTERM. */
static int serve(struct exporter *e, int signal_fd)
{
    for (;;) {
        struct pollfd fds[WEB_FDS_MAX + 1] = {{.fd = signal_fd, .events = POLLIN}};
        uint64_t now = now_ns();
        int timeout = until(e->next_look < e->next_reload ? e->next_look : e->next_reload, now);
        struct signalfd_siginfo info;
        size_t count;

        if (e->textfile && until(e->next_textfile, now) < timeout)
            timeout = until(e->next_textfile, now);
        count = web_fds(e->web, fds + 1, &timeout);
        if (poll(fds, count + 1, timeout) < 0 && errno != EINTR)
            return 1;
        if (fds[0].revents && read(signal_fd, &info, sizeof(info)) == sizeof(info) &&
            info.ssi_signo != SIGHUP) /* SIGHUP does not end it: the configuration is read anyway */
            return 0;
        web_run(e->web);
        now = now_ns();
        if (now >= e->next_look)
            look(e);
        if (now >= e->next_reload) {
            web_reload(e->web);
            e->next_reload = now + RELOAD_NS;
        }
        if (e->textfile && now >= e->next_textfile)
            write_textfile(e, now);
        give_back(e, now);
    }
}

/* ---- the command line ---- */

static int take_address(struct cli_parser *parser, void *target)
{
    struct web_options *web = target;

    if (web->address_count == WEB_SOCKETS_MAX)
        return cli_usage_error(parser->command,
                               "--web.listen-address '%s': is one too many: give at most %d",
                               parser->value, WEB_SOCKETS_MAX);
    web->addresses[web->address_count++] = parser->value;
    return CLI_OK;
}

/* The path becomes part of a page. */
static int take_path(struct cli_parser *parser, void *target)
{
    const char *path = parser->value;

    if (*path != '/')
        return cli_usage_error(parser->command, "--web.telemetry-path '%s': must begin with /",
                               path);
    if (strpbrk(path, "<>&\"'? "))
        return cli_usage_error(
            parser->command,
            "--web.telemetry-path '%s': must not contain a blank or any of < > & ? ' \"", path);
    *(const char **)target = path;
    return CLI_OK;
}

static int take_scale(struct cli_parser *parser, void *target)
{
    const char *text = parser->value;
    char *end;
    double value = strtod(text, &end);

    if (!(*text >= '0' && *text <= '9') || *end || !(value >= 0 && value <= 1e6))
        return cli_usage_error(parser->command,
                               "--replay-scale '%s': must be a number from 0 to 1000000", text);
    *(double *)target = value;
    return CLI_OK;
}

static int take_profile_time(struct cli_parser *parser, void *target)
{
    uint64_t ns, *ret_seconds = target;
    int status = cli_take_duration(parser, &ns);

    if (status == CLI_OK)
        *ret_seconds = ns / NS_PER_S;
    return status;
}

#define AT(member) .at = offsetof(struct exporter, member)
/* clang-format off */
static const struct cli_option rows[] = {
    {0, "web.listen-address", "ADDRESS", "HOST:PORT, :PORT or unix:PATH; may be given more than once\n"
     "(default " DEFAULT_ADDRESS ")", AT(web_options), .take = take_address},
    {0, "web.systemd-socket", NULL, "listen on the sockets that systemd passes", AT(web_options.systemd)},
    {0, "web.config.file", "FILE", "TLS and users, as other exporters have them", .kind = CLI_TEXT,
     AT(web_options.config_file)},
    {0, "web.telemetry-path", "PATH", "where the figures are (default /metrics)",
     AT(web_options.telemetry_path), .take = take_path},
    {0, "pprof", "N", "serve profiles below /debug/pprof, N at a time at most (default 0: none)",
     .kind = CLI_NUMBER, AT(web_options.profiles.most), .max = PROFILES_MAX},
    {0, "pprof-seconds", "SEC", "of one profile, at most (default 60)",
     .take = take_profile_time, AT(web_options.profiles.seconds), .min = NS_PER_S, .max = 600 * NS_PER_S},
    {0, "pprof-budget", "PERCENT", "of one processor, for reading the stacks of one profile (default 5)",
     .kind = CLI_NUMBER, AT(web_options.profiles.percent), .min = 1, .max = 100},
    {0, "pprof-program", "FILE", "the program prcb, which makes them", .kind = CLI_TEXT,
     AT(web_options.profiles.program), .what = "the file name is empty"},
    METRICS_ROWS(struct exporter, options),
    {0, "cgroup-root", "PATH", "where cgroup version 2 is mounted", .kind = CLI_TEXT, AT(options.cgroup_root)},
    {0, "textfile", "FILE", "write the figures to FILE, for node_exporter", .kind = CLI_TEXT, AT(textfile),
     .what = "the file name is empty"},
    {0, "textfile-interval", "SEC", "every SEC seconds (default 15)", .take = cli_take_duration, AT(textfile_every)},
    {0, "tier", "TIER", "daemon (the default), bpf or perf", .take = cli_take_tier, AT(options.tier)},
    {0, "replay", "FILE", "serve the readings in a file of `prcb export --record`", .kind = CLI_TEXT,
     AT(options.replay), .what = "the file name is empty"},
    {0, "replay-scale", "FACTOR", "play FACTOR seconds of the file per second (default 1; 0: its\n"
     "last reading at once)", AT(options.replay_scale), .take = take_scale},
    {0},
};
/* clang-format on */

static const struct cli_command command = {
    .program = "prcb-exporter",
    .synopsis = "[options]",
    .description =
        "Serves to Prometheus why the threads of each container do not run. Needs prcbd, which "
        "has\n"
        "to allow it to profile all threads (profile_all in prcbd.conf), and no privilege.",
    .options = rows,
    .manual = "prcb-exporter(8)",
};

int main(int argc, char **argv)
{
    struct exporter e = {.options.tier = PRCB_TIER_DAEMON,
                         .options.replay_scale = 1,
                         .textfile_every = TEXTFILE_S * 1000000000ull,
                         .web_options = {.telemetry_path = "/metrics",
                                         .profiles = {.seconds = PROFILE_S,
                                                      .percent = PROFILE_PERCENT,
                                                      .program = PRCB_BINDIR "/prcb"},
                                         .figures = figures,
                                         .ready = ready,
                                         .log = say,
                                         .ctx = &e}};
    struct cli_parser parser = {.command = &command, .argc = argc, .argv = argv};
    struct web_options *web = &e.web_options;
    struct prcb_error err = {0};
    int status, signal_fd;

    if (cli_take_options(&parser, &e, &status))
        return status;
    if (!web->address_count && !web->systemd)
        web->addresses[web->address_count++] = DEFAULT_ADDRESS;
    if (web->config_file && !*web->config_file)
        web->config_file = NULL;
    web->profiles.tier = e.options.tier;
    web->profiles.cgroup_root = e.options.cgroup_root;
    signal_fd = signals();
    if (signal_fd < 0) {
        say("no descriptor is free");
        return 1;
    }
    if (web_open(web, &e.web, &err)) {
        say(err.text);
        return 1;
    }
    look(&e);
    status = serve(&e, signal_fd);
    web_close(e.web);
    metrics_close(e.metrics);
    close(signal_fd);
    return status;
}
