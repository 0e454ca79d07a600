/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb-exporter: serves the figures of src/analysis/metrics to Prometheus. A client of prcbd as any
 * other, and without a capability: it looks at mapped memory, sums up, and answers. One thread, one
 * loop.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "now.h"
#include "text.h"
#include "tier.h"
#include "web.h"

#define DEFAULT_ADDRESS "localhost:10042"
#define SHARED_NS       100000000ull  /* scrapes so close together share a look */
#define RETRY_NS        1000000000ull /* prcbd is away: how often it is looked for */
#define RELOAD_NS       1000000000ull /* how often the web configuration is looked at */
#define TEXTFILE_S      15

struct exporter {
    struct metrics_options options;
    struct metrics *metrics; /* NULL: prcbd is not reachable */
    struct web *web;
    uint64_t looked, next_look, next_reload;
    const char *textfile;
    uint64_t textfile_every, next_textfile;
    bool textfile_failed;
    char said[sizeof(((struct prcb_error *)0)->text)]; /* what was logged last of prcbd */
};

static void say(const char *text)
{
    fputs("prcb-exporter: ", stderr);
    text_print(stderr, TEXT_ESCAPES, text);
    fputc('\n', stderr);
}

/* ---- figures ---- */

/* A state that lasts is said once. */
static void say_once(struct exporter *e, const char *text)
{
    if (!strcmp(e->said, text))
        return;
    snprintf(e->said, sizeof(e->said), "%s", text);
    say(*text ? text : "prcbd is there");
}

/* Figures that are not of now are given up: nothing old is shown as if it were new. */
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
    if (e->metrics && metrics_no_ready(e->metrics)) {
        char text[384];

        snprintf(text, sizeof(text), "no histogram of ready time: %s",
                 metrics_no_ready(e->metrics));
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

/* Until SIGINT or SIGTERM. */
static int serve(struct exporter *e, int signal_fd)
{
    for (;;) {
        struct pollfd fds[WEB_SOCKETS_MAX + 1] = {{.fd = signal_fd, .events = POLLIN}};
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
            info.ssi_signo !=
                SIGHUP) /* that is no reason to end: the configuration is read anyway */
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
    }
}

/* ---- the command line ---- */

enum {
    OPT_LISTEN = 256,
    OPT_SYSTEMD,
    OPT_CONFIG,
    OPT_PATH,
    OPT_NAMES,
    OPT_PER_CPU,
    OPT_PER_NAME,
    OPT_CAUSES,
    OPT_MAX_CGROUPS,
    OPT_MAX_NAMES,
    OPT_INCLUDE,
    OPT_EXCLUDE,
    OPT_TEXTFILE,
    OPT_TEXTFILE_EVERY,
    OPT_TIER,
    OPT_MAX_THREADS,
    OPT_CGROUP_ROOT,
    OPT_READY,
    OPT_REPLAY,
    OPT_REPLAY_SCALE,
    OPT_VERSION,
};

static const struct row {
    const char *name, *arg, *help;
    int id;
} rows[] = {
    {"web.listen-address", "ADDRESS",
     "HOST:PORT, :PORT or unix:PATH; may be given more than once\n(default " DEFAULT_ADDRESS ")",
     OPT_LISTEN},
    {"web.systemd-socket", NULL, "listen on the sockets that systemd passes", OPT_SYSTEMD},
    {"web.config.file", "FILE", "TLS and users, as other exporters have them", OPT_CONFIG},
    {"web.telemetry-path", "PATH", "where the figures are (default /metrics)", OPT_PATH},
    {"names", "NAMES", "prcb (the default), node, windows; several with commas", OPT_NAMES},
    {"per-cpu", NULL, "each processor separately, too", OPT_PER_CPU},
    {"per-name", NULL, "threads by name, too", OPT_PER_NAME},
    {"cgroup-causes", NULL, "the waits of each cgroup by cause, not only by class", OPT_CAUSES},
    {"ready-histogram", NULL, "a histogram of ready times, too", OPT_READY},
    {"max-cgroups", "N", "series for at most N cgroups (default 500)", OPT_MAX_CGROUPS},
    {"max-names", "N", "series for at most N names (default 200)", OPT_MAX_NAMES},
    {"cgroup-include", "REGEX", "only cgroups whose path matches", OPT_INCLUDE},
    {"cgroup-exclude", "REGEX", "no cgroups whose path matches", OPT_EXCLUDE},
    {"cgroup-root", "PATH", "where cgroup version 2 is mounted", OPT_CGROUP_ROOT},
    {"textfile", "FILE", "write the figures to FILE, for node_exporter", OPT_TEXTFILE},
    {"textfile-interval", "SEC", "every SEC seconds (default 15)", OPT_TEXTFILE_EVERY},
    {"tier", "TIER", "daemon (the default), bpf or perf", OPT_TIER},
    {"max-threads", "N", "room for N threads at one time", OPT_MAX_THREADS},
    {"replay", "FILE", "serve the readings in a file of `prcb export --record`", OPT_REPLAY},
    {"replay-scale", "FACTOR",
     "play FACTOR seconds of the file per second (default 1; 0: its\nlast reading at once)",
     OPT_REPLAY_SCALE},
    {"help", NULL, "this help", 'h'},
    {"version", NULL, "the version", OPT_VERSION},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void help(void)
{
    puts("Usage: prcb-exporter [options]\n\n"
         "Serves to Prometheus why the threads of each container do not run. Needs prcbd, which "
         "has\n"
         "to allow it to profile all threads (profile_all in prcbd.conf), and no privilege.\n");
    for (size_t i = 0; i < ROWS; i++) {
        char left[64];
        const char *text = rows[i].help;

        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].arg ? "=" : "",
                 rows[i].arg ? rows[i].arg : "");
        printf("  %-32s ", left);
        for (; *text; text++) {
            putchar(*text);
            if (*text == '\n')
                printf("%35s", "");
        }
        putchar('\n');
    }
}

static int usage(const char *what, const char *word)
{
    char text[512];

    snprintf(text, sizeof(text), "%s '%s'; see prcb-exporter --help", what, word);
    say(text);
    return 2;
}

/* 0: none. */
static uint64_t number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    return *text >= '0' && *text <= '9' && !*end && value <= UINT32_MAX ? value : 0;
}

static bool real(const char *text, double *ret)
{
    char *end;
    double value = strtod(text, &end);

    if (!(*text >= '0' && *text <= '9') || *end || !(value >= 0 && value <= 1e6))
        return false;
    *ret = value;
    return true;
}

static int take(struct exporter *e, struct web_options *web, int id)
{
    uint64_t count = optarg ? number(optarg) : 0;

    switch (id) {
    case OPT_LISTEN:
        if (web->address_count == WEB_SOCKETS_MAX)
            return usage("one address too many:", optarg);
        web->addresses[web->address_count++] = optarg;
        return 0;
    case OPT_SYSTEMD:
        web->systemd = true;
        return 0;
    case OPT_CONFIG:
        web->config_file = *optarg ? optarg : NULL;
        return 0;
    case OPT_PATH:
        /* It stands in a page. */
        if (*optarg != '/' || strpbrk(optarg, "<>&\"'? "))
            return usage("no path:", optarg);
        web->telemetry_path = optarg;
        return 0;
    case OPT_NAMES:
        return metrics_parse_names(optarg, &e->options.names)
                   ? usage("not prcb, node or windows:", optarg)
                   : 0;
    case OPT_PER_CPU:
        e->options.optional |= METRICS_PER_CPU;
        return 0;
    case OPT_PER_NAME:
        e->options.optional |= METRICS_BY_NAME;
        return 0;
    case OPT_CAUSES:
        e->options.optional |= METRICS_CGROUP_CAUSES;
        return 0;
    case OPT_READY:
        e->options.optional |= METRICS_READY;
        return 0;
    case OPT_INCLUDE:
        e->options.include = optarg;
        return 0;
    case OPT_EXCLUDE:
        e->options.exclude = optarg;
        return 0;
    case OPT_CGROUP_ROOT:
        e->options.cgroup_root = optarg;
        return 0;
    case OPT_REPLAY:
        e->options.replay = optarg;
        return 0;
    case OPT_REPLAY_SCALE:
        return real(optarg, &e->options.replay_scale) ? 0 : usage("not a factor:", optarg);
    case OPT_TEXTFILE:
        e->textfile = optarg;
        return 0;
    case OPT_TIER:
        e->options.tier = !strcmp(optarg, "daemon") ? PRCB_TIER_DAEMON
                          : !strcmp(optarg, "bpf")  ? PRCB_TIER_BPF
                          : !strcmp(optarg, "perf") ? PRCB_TIER_PERF
                                                    : PRCB_TIER_AUTO;
        return e->options.tier ? 0 : usage("not daemon, bpf or perf:", optarg);
    default:
        break;
    }
    if (!count)
        return usage("not a number above 0:", optarg);
    switch (id) {
    case OPT_MAX_CGROUPS:
        e->options.max_cgroups = (uint32_t)count;
        break;
    case OPT_MAX_NAMES:
        e->options.max_names = (uint32_t)count;
        break;
    case OPT_MAX_THREADS:
        e->options.max_threads = (uint32_t)count;
        break;
    case OPT_TEXTFILE_EVERY:
        e->textfile_every = count * 1000000000;
        break;
    }
    return 0;
}

/* -1: go on; else the exit status. */
static int parse(struct exporter *e, struct web_options *web, int argc, char **argv)
{
    struct option options[ROWS + 1] = {{0}};
    int id;

    for (size_t i = 0; i < ROWS; i++)
        options[i] = (struct option){rows[i].name, rows[i].arg ? required_argument : no_argument,
                                     NULL, rows[i].id};
    while ((id = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
        int status = 0;

        if (id == '?')
            return 2;
        if (id == 'h') {
            help();
            return 0;
        }
        if (id == OPT_VERSION) {
            puts("prcb-exporter " PRCB_VERSION);
            return 0;
        }
        status = take(e, web, id);
        if (status)
            return status;
    }
    if (optind < argc)
        return usage("there are no operands:", argv[optind]);
    if (!web->address_count && !web->systemd)
        web->addresses[web->address_count++] = DEFAULT_ADDRESS;
    return -1;
}

int main(int argc, char **argv)
{
    struct exporter e = {.options.tier = PRCB_TIER_DAEMON,
                         .options.replay_scale = 1,
                         .textfile_every = TEXTFILE_S * 1000000000ull};
    struct web_options web = {
        .telemetry_path = "/metrics", .figures = figures, .ready = ready, .log = say, .ctx = &e};
    struct prcb_error err = {0};
    int status = parse(&e, &web, argc, argv), signal_fd;

    if (status >= 0)
        return status;
    signal_fd = signals();
    if (signal_fd < 0) {
        say("no descriptor is free");
        return 1;
    }
    if (web_open(&web, &e.web, &err)) {
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
