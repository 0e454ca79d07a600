/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb push` sends profiles of waiting and running to where others keep theirs, every ten
 * seconds. This program measures, and starts prcb-push, which has no rights, to send.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "error.h"
#include "now.h"
#include "otlp.h"
#include "parcel.h"
#include "push_measure.h"
#include "stat_options.h"

#define EVERY_NS    10000000000ull
#define ROOM_MIB    32
#define TAKE_MS     5000 /* the sender takes what comes within this, or something is wrong */
#define NAME_MOST   128
#define NAME_LETTER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"

extern char **environ;

struct options {
    struct stat_options targets;
    const char *url, *name, *headers, *ca;
    uint64_t form, every_ns, room, budget, min_us; /* form: enum push_form, plus 1 */
    bool spans, lines;
};

struct run {
    const struct cli_command *command;
    const struct options *options;
    struct stat_wait wait;
    pid_t sender;
    int to, from; /* its standard input, and its output */
    char host[HOST_NAME_MAX + 1];
    char told[512]; /* of the sender's output, a line that is not complete */
    size_t told_size;
    uint64_t gaps, gap_from_ns, gap_until_ns; /* since the last profile that tells of them */
    bool failing, said_tier, stop;
};

static const struct {
    const char *name, *words;
} forms[] = {
    [PUSH_OTLP] = {"otlp", OTLP_PROFILES},
    [PUSH_PYROSCOPE] = {"pyroscope", "pprof to Pyroscope's /ingest"},
    [PUSH_PARCA] = {"parca-pprof", "pprof to Parca's /profiles/writeraw"},
};

static int take_as(struct cli_parser *parser, void *target)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (!strcmp(parser->value, forms[i].name)) {
            *(uint64_t *)target = i + 1;
            return CLI_OK;
        }
    }
    return cli_usage_error(parser->command, "--as '%s': must be otlp, pyroscope or parca-pprof",
                           parser->value);
}

static int take_name(struct cli_parser *parser, void *target)
{
    size_t length = strlen(parser->value);

    if (!length || length > NAME_MOST || parser->value[strspn(parser->value, NAME_LETTER)])
        return cli_usage_error(parser->command,
                               "--name '%s': must be letters, digits and . _ - /, at most %d",
                               parser->value, NAME_MOST);
    *(const char **)target = parser->value;
    return CLI_OK;
}

#define AT(member) .at = offsetof(struct options, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    {0, "to", "URL", "the receiver, http://HOST:PORT or https://HOST; a path replaces the usual one",
     .kind = CLI_TEXT, AT(url), .what = "the URL is empty"},
    {0, "as", "FORM", "otlp, pyroscope or parca-pprof", .take = take_as, AT(form),
     .choices = "otlp pyroscope parca-pprof"},
    STAT_TARGET_ROWS(offsetof(struct options, targets), "profile", "profile every thread"),
    {'a', "all", NULL, "profile every thread of the system", AT(targets.all)},
    {0, "every", "SEC", "a profile of each SEC seconds (default 10)", .take = cli_take_duration, AT(every_ns)},
    {0, "for", "SEC", "end after SEC seconds (default: at a signal)", .take = cli_take_duration, AT(targets.for_ns)},
    {0, "name", "NAME", "of the service, as the receiver shows it (default prcb)", .take = take_name, AT(name)},
    {0, "headers", "FILE", "further headers of each request, one a line: tokens, tenants",
     .kind = CLI_TEXT, AT(headers), .what = "the file name is empty"},
    {0, "ca", "FILE", "certificates to trust, PEM (default: the system's)",
     .kind = CLI_TEXT, AT(ca), .what = "the file name is empty"},
    {0, "room", "MIB", "keep so much while the receiver takes nothing (default 32); then the oldest\n"
                       "is given up", .kind = CLI_NUMBER, AT(room), .min = 1, .max = 4096},
    {0, "spans", NULL, "the span of a trace that each wait was in, of programs that publish\n"
                       "OpenTelemetry's thread context", AT(spans)},
    {0, "lines", NULL, "lines of source, where debug information is installed", AT(lines)},
    {0, "min", "US", "read the stacks of waits of US microseconds and longer (default 1000)",
     .kind = CLI_NUMBER, AT(min_us), .min = 1, .max = 60000000},
    {0, "budget", "PERCENT", "of one processor, for reading stacks (default 5); when little is\n"
                             "left, fewer short waits are read and stand for the others, and waits\n"
                             "beyond it count as [not read]", .kind = CLI_NUMBER, AT(budget), .min = 1, .max = 100},
    STAT_TIER_ROW(offsetof(struct options, targets)),
    STAT_VERBOSE_ROW(offsetof(struct options, targets)),
    STAT_MAX_THREADS_ROW(offsetof(struct options, targets)),
    {0},
};
/* clang-format on */

static int check(const struct cli_command *self, struct options *options)
{
    if (!options->url || !options->form)
        return cli_usage_error(self, "where to? give --to URL and --as otlp, pyroscope or "
                                     "parca-pprof; see prcb push --help");
    if (!stat_options_have_targets(&options->targets))
        return cli_usage_error(self, "no target: give -p, -t, --cgroup, --unit, --container, "
                                     "--pod or -a; see prcb push --help");
    return stat_options_check_all(self, &options->targets, "includes");
}

static int parse(const struct cli_command *self, int argc, char **argv, struct options *ret,
                 int *ret_status)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};

    *ret = (struct options){.name = "prcb",
                            .headers = "",
                            .ca = "",
                            .every_ns = EVERY_NS,
                            .room = ROOM_MIB,
                            .budget = 5,
                            .min_us = 1000};
    if (cli_take_options(&parser, ret, ret_status))
        return -1;
    ret->targets.follow = PRCB_FOLLOW_ALL;
    *ret_status = check(self, ret);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- the sender ------------------------------------------------------------------ */

static void find_host(struct run *run)
{
    if (gethostname(run->host, sizeof(run->host) - 1))
        snprintf(run->host, sizeof(run->host), "unknown");
    for (char *at = run->host; *at; at++) {
        if (!strchr(NAME_LETTER, *at))
            *at = '_';
    }
}

static int spawn_sender(struct run *run, const char *program, int in, int out)
{
    const struct options *options = run->options;
    char form[24], room[24];
    char *arguments[PUSH_ARGUMENTS + 1] = {
        [PUSH_PROGRAM] = (char *)"prcb-push",
        [PUSH_URL] = (char *)options->url,
        [PUSH_FORM] = form,
        [PUSH_NAME] = (char *)options->name,
        [PUSH_HOST] = run->host,
        [PUSH_ROOM] = room,
        [PUSH_HEADERS] = (char *)options->headers,
        [PUSH_CA] = (char *)options->ca,
    };
    posix_spawn_file_actions_t files;
    int result;

    snprintf(form, sizeof(form), "%u", (unsigned)options->form - 1);
    snprintf(room, sizeof(room), "%" PRIu64, options->room << 20);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    result = -posix_spawn(&run->sender, program, &files, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    return result;
}

static int start_sender(struct run *run, struct prcb_error *err)
{
    char program[PATH_MAX + 32];
    int in[2], out[2], result;

    find_host(run);
    cli_find_program("push/prcb-push", program, sizeof(program));
    if (pipe2(in, O_CLOEXEC))
        return prcb_fail(err, -errno, "pipe: %s", strerror(errno));
    if (pipe2(out, O_CLOEXEC)) {
        result = -errno;
        close(in[0]);
        close(in[1]);
        return prcb_fail(err, result, "pipe: %s", strerror(-result));
    }
    result = spawn_sender(run, program, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    run->to = in[1];
    run->from = out[0];
    fcntl(run->to, F_SETFL, O_NONBLOCK);
    fcntl(run->from, F_SETFL, O_NONBLOCK);
    if (result) {
        run->sender = 0;
        return prcb_fail(err, result, "%s: %s: it is installed with prcb", program,
                         strerror(-result));
    }
    return 0;
}

/* Lets it send what it has, and ends. */
static int end_sender(struct run *run)
{
    struct pollfd from = {.fd = run->from, .events = POLLIN};
    char ignored[256];
    int status = 0;

    if (run->to >= 0)
        close(run->to);
    run->to = -1;
    /* What it gives up at the end is said by it: a full pipe would keep it from ending. */
    while (
        run->from >= 0 &&
        (poll(&from, 1, -1) < 0 ? errno == EINTR : read(run->from, ignored, sizeof(ignored)) > 0))
        ;
    if (run->sender)
        waitpid(run->sender, &status, 0);
    run->sender = 0;
    if (run->from >= 0)
        close(run->from);
    run->from = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int give(struct run *run, const void *bytes, size_t size)
{
    const char *at = bytes;
    struct pollfd fd = {.fd = run->to, .events = POLLOUT};

    while (size) {
        ssize_t done = write(run->to, at, size);

        if (done < 0 && errno == EAGAIN) {
            int ready = poll(&fd, 1, TAKE_MS);

            if (!ready)
                return -ETIMEDOUT;
            continue;
        }
        if (done < 0 && errno != EINTR)
            return -errno;
        at += done < 0 ? 0 : done;
        size -= done < 0 ? 0 : (size_t)done;
    }
    return 0;
}

static void note_gap(struct run *run, uint64_t from_ns, uint64_t until_ns)
{
    if (!run->gaps || from_ns < run->gap_from_ns)
        run->gap_from_ns = from_ns;
    if (!run->gaps || until_ns > run->gap_until_ns)
        run->gap_until_ns = until_ns;
    run->gaps++;
}

/* Takes what the sender gave up. */
static void read_gaps(struct run *run)
{
    ssize_t got;

    while ((got = read(run->from, run->told + run->told_size,
                       sizeof(run->told) - 1 - run->told_size)) > 0) {
        char *at = run->told, *end;
        uint64_t from_ns, until_ns;

        run->told_size += (size_t)got;
        run->told[run->told_size] = '\0';
        while ((end = strchr(at, '\n'))) {
            if (sscanf(at, "%" SCNu64 " %" SCNu64, &from_ns, &until_ns) == 2)
                note_gap(run, from_ns, until_ns);
            at = end + 1;
        }
        run->told_size -= (size_t)(at - run->told);
        memmove(run->told, at, run->told_size);
    }
}

/* ---- profiles -------------------------------------------------------------------- */

static void write_time(uint64_t ns, char ret[40])
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm utc;

    gmtime_r(&seconds, &utc);
    strftime(ret, 40, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Says in the next profile what is missing before it. Returns NULL: nothing is. */
static const char *gap_note(struct run *run, char *ret, size_t size)
{
    char from[40], until[40];

    read_gaps(run);
    if (!run->gaps)
        return NULL;
    write_time(run->gap_from_ns, from);
    write_time(run->gap_until_ns, until);
    snprintf(ret, size, "a gap: %" PRIu64 " profiles between %s and %s are missing", run->gaps,
             from, until);
    return ret;
}

static int send_one(struct run *run, const struct push_measured *measured, const void *bytes,
                    size_t size)
{
    const struct parcel_head head = {.magic = PARCEL_MAGIC,
                                     .size = (uint32_t)size,
                                     .from_ns = measured->from_ns,
                                     .until_ns = measured->until_ns};
    int result;

    if (size > PARCEL_MOST) {
        note_gap(run, measured->from_ns, measured->until_ns);
        cli_warn(run->command, "a profile is larger than %u MiB and was not sent",
                 PARCEL_MOST >> 20);
        return 0;
    }
    result = give(run, &head, sizeof(head));
    return result ? result : give(run, bytes, size);
}

static int send_otlp(struct run *run, const struct push_measured *measured)
{
#ifdef HAVE_PUSH
    struct otlp_profile profiles[2];
    struct otlp_request request = {profiles, 0, run->host, run->options->name};
    size_t size = 0;
    char *bytes = NULL;
    int result;

    if (measured->wait.bytes)
        profiles[request.count++] =
            (struct otlp_profile){measured->wait.bytes, measured->wait.size};
    if (measured->run.bytes)
        profiles[request.count++] = (struct otlp_profile){measured->run.bytes, measured->run.size};
    if (!request.count)
        return 0;
    result = otlp_make(&request, &bytes, &size);
    if (!result)
        result = send_one(run, measured, bytes, size);
    free(bytes);
    return result;
#else
    (void)run;
    (void)measured;
    return -EOPNOTSUPP;
#endif
}

static int send_both(struct run *run, const struct push_measured *measured)
{
    int result = 0;

    if (run->options->form == PUSH_OTLP + 1)
        return send_otlp(run, measured);
    if (measured->wait.bytes)
        result = send_one(run, measured, measured->wait.bytes, measured->wait.size);
    if (!result && measured->run.bytes)
        result = send_one(run, measured, measured->run.bytes, measured->run.size);
    return result;
}

static void say_tier(struct run *run, const struct push_measured *measured)
{
    if (measured->tier == PRCB_TIER_PERF && !run->said_tier &&
        run->options->targets.tier != PRCB_TIER_PERF)
        cli_warn(run->command, "tier perf: waits have no causes, for neither prcbd nor eBPF is to "
                               "be had (prcb doctor)");
    run->said_tier = true;
}

/* What cannot be measured now, for its process has ended or prcbd is started anew, is a gap. */
static void fail_measure(struct run *run, uint64_t from_ns, uint64_t end, struct prcb_error *err)
{
    uint64_t began = now_ns(), until = began + run->options->every_ns;

    if (!run->failing)
        cli_warn(run->command, "nothing is measured: %s", err->text);
    run->failing = true;
    until = until < end ? until : end;
    while (now_ns() < until && !run->stop)
        run->stop = stat_wait_until(&run->wait, until) & STAT_WAIT_SIGNAL;
    note_gap(run, from_ns, from_ns + (now_ns() - began));
}

/* Measures once, and hands it to the sender. */
static int push_once(struct run *run, uint64_t end)
{
    char note[160];
    uint64_t now = now_ns(), from_ns = now_by(CLOCK_REALTIME);
    const struct push_measure how = {
        .targets = &run->options->targets,
        .wait = &run->wait,
        .budget = run->options->budget,
        .min_us = run->options->min_us,
        .for_ns = end - now < run->options->every_ns ? end - now : run->options->every_ns,
        .plain = run->options->form == PUSH_OTLP + 1,
        .spans = run->options->spans,
        .lines = run->options->lines,
        .note = gap_note(run, note, sizeof(note)),
    };
    struct push_measured measured;
    struct prcb_error err = {0};
    int result = push_measure(&how, &measured, &err);

    if (result == -ENOMEM)
        return result;
    if (result) {
        fail_measure(run, from_ns, end, &err);
        return 0;
    }
    if (run->failing)
        cli_warn(run->command, "it is measured again");
    run->failing = false;
    say_tier(run, &measured);
    run->stop = measured.signalled;
    if (measured.wait.bytes || measured.run.bytes)
        run->gaps = 0; /* the note is in them */
    result = send_both(run, &measured);
    free(measured.wait.bytes);
    free(measured.run.bytes);
    return result;
}

static int push(struct run *run)
{
    const struct options *options = run->options;
    uint64_t end = options->targets.for_ns ? now_ns() + options->targets.for_ns : UINT64_MAX;
    struct prcb_error err = {0};
    int result = start_sender(run, &err), status;

    if (result)
        return cli_error(run->command, "%s", err.text);
    cli_warn(run->command, "%s, to %s, every %.3g s", forms[options->form - 1].words, options->url,
             (double)options->every_ns / 1e9);
    while (!result && !run->stop && now_ns() < end)
        result = push_once(run, end);
    status = end_sender(run);
    if (result == -EPIPE && status)
        return CLI_FAILED; /* it has said why */
    if (result)
        return cli_error(run->command, "%s",
                         result == -ETIMEDOUT ? "prcb-push does not take what it shall send"
                                              : strerror(-result));
    return status ? CLI_FAILED : CLI_OK;
}

static int run_push(const struct cli_command *self, int argc, char **argv)
{
    struct options options;
    struct run run = {.command = self, .options = &options, .to = -1, .from = -1};
    int status, result = parse(self, argc, argv, &options, &status);

#ifndef HAVE_PUSH
    if (result == CLI_OK) {
        status = cli_error(self, "this prcb was built without libcurl, protobuf-c or zlib (meson "
                                 "option 'push'); prcb-exporter --pprof can be asked for profiles");
        result = -1;
    }
#endif
    if (result == CLI_OK) {
        result = stat_wait_init(&run.wait);
        status = result ? cli_error(self, "pipe: %s", strerror(-result)) : push(&run);
        if (!result)
            stat_wait_deinit(&run.wait);
    }
    stat_options_deinit(&options.targets);
    return status;
}

extern const struct cli_command cmd_push;
const struct cli_command cmd_push = {
    .name = "push",
    .synopsis = "--to URL --as otlp|pyroscope|parca-pprof [options]",
    .summary = "send profiles to Pyroscope, Parca or OpenTelemetry",
    .description =
        "Measures as prcb why does, and every ten seconds sends two profiles of exact\n"
        "nanoseconds: off_cpu, with stacks, and cpu. Nothing listens, and sending has no rights.\n"
        "What cannot be sent is kept for a while and then given up: a gap, which is said.",
    .options = option_rows,
    .examples = "  prcb push --to http://localhost:4040 --as pyroscope -a\n"
                "  prcb push --to https://otel:4318 --as otlp --headers /etc/prcb/token -a\n"
                "  prcb push --to http://parca:7070 --as parca-pprof --unit postgresql.service\n",
    .run = run_push,
};
