/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb flight` keeps the last switches of all threads in memory, and `prcb flight save` has it
 * write them into a file. What it does meanwhile: nothing, but for rules (--on), for which it looks
 * at the new switches ten times a second.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <prcb/flight.h>
#include <prcb/prcb.h>
#include <prcb/sample.h>

#include "array.h"
#include "error.h"
#include "flight_address.h"
#include "now.h"
#include "socket_place.h"
#include "stat_options.h"
#include "stat_targets.h"
#include "text.h"

#ifdef HAVE_RECORD
#include "flight_files.h"
#include "flight_rules.h"
#include "kept.h"
#include "moment.h"
#endif

#define NS_PER_S     1000000000ull
#define NS_PER_MS    1000000ull
#define DEFAULT_MB   64
#define DEFAULT_LAST (10 * NS_PER_S)
#define DEFAULT_REST (10 * NS_PER_S) /* from one file to the next */
#define DEFAULT_KEEP 20
#define AFTER_NS     NS_PER_S          /* what comes after a trigger belongs to it */
#define JUDGE_NS     (100 * NS_PER_MS) /* with rules: looks at the new switches */
#define RELEASE_NS   NS_PER_S
#define OWN_NS       (5 * NS_PER_S) /* without targets: looks for processes of this user */
#define RULES_MAX    16
#define MESSAGE_MAX  4096
#define ANSWER_S     60

struct flight {
    const struct cli_command *command;
    struct stat_options targets;
    const char *folder, *socket, *reason;
    uint64_t megabytes, keep, keep_megabytes, last_ns, rest_ns;
    const char *rule_texts[RULES_MAX];
    size_t rule_count;
    bool save, open, verbose, stacks, spans;
#ifdef HAVE_RECORD
    struct flight_rule rules[RULES_MAX];
    struct pollfd
        wait_for[2 + RULES_MAX]; /* questions, signals, and what the rules' pressures tell */
    bool judges;                 /* some rules are of stretches */
    struct prcb *session;
    struct kept *kept; /* NULL: no stacks */
    uint64_t next_look;
    struct stat_wait wait;
    int listening, signals;
    struct socket_place place; /* of the socket that listens */
    bool all;                  /* threads there are; else those named, or this user's */
    bool prcbds;               /* the session is that which prcbd has of all threads */
    uint64_t began;            /* before that nothing was kept; 0: that is not known */
    bool own;                  /* of these, all the user's */
    uint64_t last_released, last_own;
    bool lost; /* there is no session, which was said */
    /* The last file that a rule, a signal, this user or root asked for, and [1] the last that
     * another user did: strangers do not take the time between files from the others. */
    uint64_t last_saved[2];
    char last_path[4096];
    uint64_t suppressed; /* that came too soon after the last file */
    /* A trigger that waits for what comes after it; due_ns 0: none. */
    uint64_t due_ns;
    struct moment_reason due;
#endif
};

static int take_rule(struct cli_parser *parser, void *target)
{
    struct flight *f = target;

    if (f->rule_count == RULES_MAX)
        return cli_usage_error(f->command, "--on: at most %d rules", RULES_MAX);
    f->rule_texts[f->rule_count++] = parser->value;
    return CLI_OK;
}

static int take_word(struct cli_parser *parser, void *target)
{
    struct flight *f = target;

    if (f->save || strcmp(parser->value, "save"))
        return cli_usage_error(f->command, "'%s': the only word there may be is 'save'",
                               parser->value);
    f->save = true;
    return CLI_OK;
}

#define AT(member) .at = offsetof(struct flight, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    STAT_TARGET_ROWS(offsetof(struct flight, targets), "keep the switches of", "keep the switches of the threads"),
    {'a', "all", NULL, "keep the switches of all threads (default, with prcbd\nof the user's own where it allows no more)",
     AT(targets.all)},
    {'o', "output", "PATH", "keep files in this folder; with save: write to this file", .kind = CLI_TEXT,
     AT(folder), .what = "the name is empty"},
    {'g', "stacks", NULL, "keep the stacks of waits of 10 ms and more, too", AT(stacks)},
    {0, "spans", NULL, "with --stacks: and the span of a trace that a thread was in", AT(spans)},
    {0, "size", "MB", "memory for the switches, in megabytes (default 64)", .kind = CLI_NUMBER, AT(megabytes),
     .min = 1, .max = 1u << 20},
    {0, "last", "SEC", "a file has the last SEC seconds (default 10)", .take = cli_take_duration, AT(last_ns)},
    {0, "on", "RULE", "keep a file when a thread was ready, or waited, for long: 'ready>5ms',\n"
                      "'futex>100ms,comm=worker*', 'throttled>20ms,cgroup=/x';\n"
                      "or under pressure: 'psi:cpu>20%'; several times",
     .take = take_rule, .at = 0},
    {0, "rest", "SEC", "at most one file in SEC seconds (default 10)", .take = cli_take_duration, AT(rest_ns)},
    {0, "keep", "N", "keep the N newest files (default 20)", .kind = CLI_NUMBER, AT(keep), .min = 1, .max = 100000},
    {0, "keep-size", "MB", "and as many of them as have MB megabytes together", .kind = CLI_NUMBER,
     AT(keep_megabytes), .min = 1, .max = 1u << 30},
    {0, "reason", "TEXT", "with save: what the file shall say why it was kept", .kind = CLI_TEXT, AT(reason), .max = 100},
    {0, "socket", "PATH", "where prcb flight is asked (default " PRCB_FLIGHT_SOCKET ",\n"
                          "without root $XDG_RUNTIME_DIR/prcb-flight.socket)",
     .kind = CLI_TEXT, AT(socket), .max = 100, .what = "the name is empty"},
    {0, "open", NULL, "let every user ask for a file, which only this one may read", AT(open)},
    STAT_MAX_THREADS_ROW(offsetof(struct flight, targets)),
    {0, "tier", "TIER", "use this source of figures and no other: daemon or bpf", .take = cli_take_tier, AT(targets.tier)},
    STAT_VERBOSE_ROW(offsetof(struct flight, targets)),
    {0},
};
/* clang-format on */

/* Where to listen, and where to ask: in this order. 0: too long a name. */
static size_t addresses_of(const struct flight *f, struct sockaddr_un ret[FLIGHT_ADDRESSES])
{
    return f->socket ? flight_address(&ret[0], "%s", f->socket) : flight_addresses(ret);
}

/* ---- prcb flight save ---- */

/* The file's name is told whole: the one who writes it may be in another folder. */
static int whole_name(const char *name, char *ret, size_t size)
{
    char here[4096];

    if (!name || *name == '/')
        return (size_t)snprintf(ret, size, "%s", name ? name : "") < size ? 0 : -ENAMETOOLONG;
    if (!getcwd(here, sizeof(here)))
        return -errno;
    return (size_t)snprintf(ret, size, "%s/%s", here, name) < size ? 0 : -ENAMETOOLONG;
}

/* Connects before the socket has a name: nobody else's answer is taken. */
static int reach(const struct flight *f, int fd, struct sockaddr_un *ret)
{
    struct sockaddr_un to[FLIGHT_ADDRESSES];
    size_t count = addresses_of(f, to);

    for (size_t i = 0; i < count; i++) {
        *ret = to[i];
        if (!connect(fd, (struct sockaddr *)ret, sizeof(*ret)))
            return 0;
    }
    return count ? -errno : -ENAMETOOLONG;
}

static int save_prcbds(struct flight *f, const char *path, const char *asked, int result);

static int ask(struct flight *f)
{
    struct sockaddr_un to = {0}, own = {.sun_family = AF_UNIX};
    char message[MESSAGE_MAX], path[MESSAGE_MAX - 256];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), result;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ssize_t got;

    result = whole_name(f->folder, path, sizeof(path));
    if (result)
        return cli_error(f->command, "-o %s: %s", f->folder, strerror(-result));
    if (fd < 0)
        return cli_error(f->command, "socket: %s", strerror(errno));
    result = reach(f, fd, &to);
    /* Bound to a name that the kernel chooses: that of who gets the answer. */
    if (!result && bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family)))
        return cli_error(f->command, "socket: %s", strerror(errno));
    snprintf(message, sizeof(message), "%" PRIu64 "\n%s\n%s", f->last_ns, path,
             f->reason ? f->reason : "prcb flight save");
    if (result || send(fd, message, strlen(message), 0) < 0) {
        result = result ? result : -errno;
        close(fd);
        return save_prcbds(f, path, to.sun_path, result);
    }
    for (int i = 0; poll(&wait, 1, 1000) != 1; i++) {
        if (i == ANSWER_S)
            return cli_error(f->command, "prcb flight did not answer for %d s", ANSWER_S);
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
            return cli_error(f->command, "prcb flight has ended meanwhile");
    }
    got = recv(fd, message, sizeof(message) - 1, 0);
    close(fd);
    if (got < 1)
        return cli_error(f->command, "prcb flight gave no answer");
    message[got] = '\0';
    if (message[0] != '+')
        return cli_error(f->command, "%s", message + 1);
    puts(message + 1);
    return CLI_OK;
}

#ifdef HAVE_RECORD

/* ---- files ---- */

/* path "": one of the folder's. asked: by another user. */
static int save(struct flight *f, const struct moment_reason *reason, bool asked, const char *path,
                uint64_t last_ns, struct prcb_error *err)
{
    struct moment_options how = {.path = f->last_path,
                                 .last_ns = last_ns,
                                 .began_ns = f->began,
                                 .all = f->all,
                                 .kept = f->kept,
                                 .reason = *reason};
    struct moment moment;
    char shown[256];
    int result;

    if (!f->session)
        return prcb_fail(err, -ESTALE, "no switches are kept at present");
    if (!*path)
        flight_file_name(f->folder, asked, f->last_path, sizeof(f->last_path));
    else
        snprintf(f->last_path, sizeof(f->last_path), "%s", path);
    result = moment_write(f->session, &how, &moment, err);
    f->last_saved[asked] = now_ns(); /* one that failed, too: a full disk stays so for a while */
    if (result)
        return result;
    flight_remove_oldest(f->folder, f->last_path, f->keep, f->keep_megabytes << 20);
    text_copy(TEXT_ESCAPES, reason->text, shown, sizeof(shown));
    cli_warn(f->command, "%s: %" PRIu64 " switches of %.1f s in %s", shown, moment.switches,
             (double)(moment.to_ns - moment.from_ns) / 1e9, f->last_path);
    if (f->suppressed)
        cli_warn(f->command,
                 "%" PRIu64 " more came within %.0f s of a file: they have none of their own",
                 f->suppressed, (double)f->rest_ns / 1e9);
    f->suppressed = 0;
    return 0;
}

static bool is_too_soon(const struct flight *f, bool asked, uint64_t now)
{
    return f->last_saved[asked] && now < f->last_saved[asked] + f->rest_ns;
}

/* ---- triggers ---- */

static void pull(struct flight *f, const struct moment_reason *reason)
{
    uint64_t now = now_ns();

    if (f->due_ns || is_too_soon(f, false, now)) {
        f->suppressed++;
        return;
    }
    f->due = *reason;
    f->due_ns = now + AFTER_NS;
}

static int judge(const struct prcb_switch *s, void *ctx)
{
    struct flight *f = ctx;

    for (size_t i = 0; i < f->rule_count; i++) {
        struct moment_reason reason = {
            .pid = (pid_t)s->new_pid,
            .tid = (pid_t)s->new_tid,
            .cause = f->rules[i].cause,
            .time_ns = s->time_ns,
        };

        if (!flight_rule_holds(&f->rules[i], s, &reason.ns))
            continue;
        snprintf(reason.text, sizeof(reason.text), "%s", f->rules[i].text);
        memcpy(reason.comm, s->new_comm, sizeof(reason.comm));
        pull(f, &reason);
        return 0;
    }
    return 0;
}

/* Whether the sender may name a file: it is of this user, or root, who may write here anyway. */
static bool may_name(struct msghdr *message)
{
    struct cmsghdr *part = CMSG_FIRSTHDR(message);
    struct ucred who;

    if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&who, CMSG_DATA(part), sizeof(who));
    return who.uid == geteuid() || who.uid == 0;
}

/* Does what "LAST\nPATH\nREASON" asks for, of anybody who may write to the socket. Returns the mark
 * of the answer, '+' or '-', and its text. */
static char obey(struct flight *f, bool named, char *question, char *ret, size_t size)
{
    char *path = strchr(question, '\n'), *reason = path ? strchr(path + 1, '\n') : NULL;
    struct moment_reason why = {.time_ns = now_ns()};
    uint64_t last_ns = strtoull(question, NULL, 10);
    struct prcb_error err = {0};
    bool saved = false;

    if (!reason) {
        prcb_fail(&err, -EINVAL, "that is no question");
    } else if (path[1] != '\n' && !named) {
        prcb_fail(&err, -EPERM, "only the user of prcb flight may name the file");
    } else if (is_too_soon(f, !named, why.time_ns)) {
        f->suppressed += named;
        prcb_fail(&err, -EAGAIN, "there is one file in %.0f s at most; the last is %.1f s old",
                  (double)f->rest_ns / 1e9, (double)(why.time_ns - f->last_saved[!named]) / 1e9);
    } else {
        *path++ = *reason++ = '\0';
        snprintf(why.text, sizeof(why.text), "%s", reason);
        last_ns = named && last_ns && last_ns < 1000 * NS_PER_S ? last_ns : f->last_ns;
        saved = !save(f, &why, !named, path, last_ns, &err);
        if (!saved)
            cli_warn(f->command, "not saved: %s; the switches are kept", err.text);
    }
    snprintf(ret, size, "%s", saved ? f->last_path : err.text);
    return saved ? '+' : '-';
}

static void receive(struct flight *f)
{
    char text[MESSAGE_MAX], line[MESSAGE_MAX + 1], control[CMSG_SPACE(sizeof(struct ucred))];
    struct sockaddr_un who;
    struct iovec part = {text, sizeof(text) - 1};
    struct msghdr message = {
        .msg_name = &who,
        .msg_namelen = sizeof(who),
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    ssize_t got = recvmsg(f->listening, &message, MSG_DONTWAIT);

    if (got < 0)
        return;
    text[got] = '\0';
    line[0] = obey(f, may_name(&message), text, line + 1, sizeof(line) - 1);
    if (message.msg_namelen > sizeof(sa_family_t)) /* else it wants no answer */
        sendto(f->listening, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL, &who,
               message.msg_namelen);
}

/* Returns false: the end was asked for. */
static bool take_signal(struct flight *f)
{
    const struct moment_reason by_signal = {.text = "signal SIGUSR1", .time_ns = now_ns()};
    struct signalfd_siginfo about;

    while (read(f->signals, &about, sizeof(about)) == sizeof(about)) {
        if (about.ssi_signo != SIGUSR1)
            return false;
        pull(f, &by_signal);
    }
    return true;
}

/* ---- the course ---- */

static int listen_at(struct flight *f)
{
    struct sockaddr_un found[FLIGHT_ADDRESSES], address;
    int one = 1, result = 0;
    mode_t before;

    if (!addresses_of(f, found))
        return cli_error(f->command, "the path of the socket is too long");
    address = found[0];
    f->listening = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->listening < 0)
        return cli_error(f->command, "socket: %s", strerror(errno));
    if (!connect(f->listening, (struct sockaddr *)&address, sizeof(address)))
        return cli_error(f->command, "%s: prcb flight runs already", address.sun_path);
    socket_place_clear(&address, SOCK_DGRAM);
    before = umask(f->open ? 0111 : 0177);
    if (setsockopt(f->listening, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) ||
        bind(f->listening, (struct sockaddr *)&address, sizeof(address)))
        result = cli_error(f->command, "%s: %s", address.sun_path, strerror(errno));
    umask(before);
    if (!result)
        f->place = socket_place_of(address.sun_path);
    return result;
}

static int listen_for_signals(struct flight *f)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    f->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return f->signals < 0 ? cli_error(f->command, "signalfd: %s", strerror(errno)) : CLI_OK;
}

#ifdef HAVE_STACK

static int open_stacks(struct flight *f, struct prcb_error *err)
{
    return f->stacks ? kept_open(f->session, f->spans, &f->kept, err) : 0;
}

static void close_stacks(struct flight *f)
{
    kept_close(f->kept);
    f->kept = NULL;
}

static void look(struct flight *f)
{
    struct prcb_error err;
    int result = f->kept ? kept_look(f->kept, false, &f->next_look, &err) : 0;

    if (result && result != -EAGAIN) {
        cli_warn(f->command, "no more stacks are kept: %s", err.text);
        close_stacks(f);
    }
}

#else

static int open_stacks(struct flight *f, struct prcb_error *err)
{
    return f->stacks ? prcb_fail(err, -EOPNOTSUPP, "--stacks: this build cannot read stacks") : 0;
}

static void look(struct flight *f)
{
}

static void close_stacks(struct flight *f)
{
}

#endif

static int skip_switch(const struct prcb_switch *s, void *ctx)
{
    return 0;
}

/* The switches that prcbd keeps of all threads, from before this, too. */
static int open_prcbds(struct flight *f, struct prcb_error *err)
{
    const struct prcb_options how = {.size = sizeof(how),
                                     .tier = PRCB_TIER_DAEMON,
                                     .flags = PRCB_OPEN_SHARED | PRCB_OPEN_SWITCHES};
    int result = prcb_open(&how, &f->session, err);

    if (result)
        return result;
    /* No rule is for what was before. */
    result = prcb_session_switches(f->session, skip_switch, NULL, NULL, err);
    if (result) {
        prcb_close(f->session);
        f->session = NULL;
    }
    f->all = f->prcbds = !result;
    return result;
}

/* Whether prcbd's own are as good as what is asked for. */
static bool may_be_prcbds(const struct flight *f)
{
    return !f->stacks && !f->megabytes && !f->targets.max_threads &&
           f->targets.tier != PRCB_TIER_BPF &&
           (f->targets.all || !stat_options_have_targets(&f->targets));
}

/* Programs of its own have as much room as is asked for; prcbd gives some megabytes. */
static int open_session(struct flight *f, struct prcb_error *err)
{
    struct prcb_options how = {
        .size = sizeof(how),
        .tier = f->targets.tier ? f->targets.tier : PRCB_TIER_BPF,
        .flags = PRCB_OPEN_SWITCHES | (f->stacks ? PRCB_OPEN_REGISTERS : 0u),
        .max_threads = (uint32_t)f->targets.max_threads,
        .switch_bytes = (size_t)(f->megabytes ? f->megabytes : DEFAULT_MB) << 20,
    };
    int result = 0;

    f->began = 0;
    f->own = false;
    if (may_be_prcbds(f) && !open_prcbds(f, err))
        return 0;
    if (how.tier != PRCB_TIER_DAEMON)
        result = stat_targets_open(&how, &f->targets, &f->session, err);
    if (how.tier == PRCB_TIER_DAEMON || (result && !f->targets.tier)) {
        struct prcb_error why;

        how.tier = PRCB_TIER_DAEMON;
        how.flags |= PRCB_OPEN_EDGES;
        result = stat_targets_open(&how, &f->targets, &f->session, f->targets.tier ? err : &why);
    }
    if (!result)
        result = prcb_session_switches_rewind(f->session, err);
    if (!result && f->targets.all)
        result = stat_targets_profile(f->session, &f->targets, &f->wait, err);
    else if (!result)
        result = stat_targets_profile_visible(f->session, &f->targets, &f->wait, &f->own, err);
    if (!result)
        result = open_stacks(f, err);
    f->all = f->targets.all || (!f->own && !stat_options_have_targets(&f->targets));
    f->began = f->last_own = now_ns();
    return result;
}

static void close_session(struct flight *f)
{
    close_stacks(f);
    prcb_close(f->session);
    f->session = NULL;
    stat_wait_forget_targets(&f->wait);
}

static void say_what_is_kept(const struct flight *f)
{
    cli_warn(f->command, "keeping the last switches%s; `prcb flight save` writes them to %s",
             f->prcbds                                          ? ", as prcbd does"
             : f->all || stat_options_have_targets(&f->targets) ? ""
                                                                : " of your own processes",
             f->folder);
}

static int tell_orphan(const struct prcb_account *a, void *ctx)
{
    return a->flags & PRCB_ACCOUNT_ORPHAN ? -ESTALE : 1;
}

/* prcbd may have given the session up: another one that cannot go on with it took its place, or it
 * was cleaned away. Then there is another, now or later. */
static void look_after_session(struct flight *f)
{
    struct prcb_error err;

    if (f->session && prcb_walk(f->session, tell_orphan, NULL, &err) == -ESTALE) {
        cli_warn(f->command, "prcbd gave up the memory for switches: what was kept is gone");
        close_session(f);
    }
    if (f->session)
        return;
    if (!open_session(f, &err)) {
        f->lost = false;
        say_what_is_kept(f);
        return;
    }
    close_session(f);
    if (!f->lost)
        cli_warn(f->command, "no switches are kept: %s; it is tried again each second", err.text);
    f->lost = true;
}

/* Takes up what began elsewhere, as by a login: it is none of what is followed. */
static void look_for_own(struct flight *f, uint64_t now)
{
    if (!f->own || now < f->last_own + OWN_NS)
        return;
    f->last_own = now;
    stat_targets_profile_visible(f->session, &f->targets, &f->wait, &f->own, NULL);
}

static void work(struct flight *f)
{
    struct prcb_error err;
    uint64_t now = now_ns();

    if (f->judges && f->session && prcb_session_switches(f->session, judge, f, NULL, &err))
        cli_warn(f->command, "the switches cannot be read: %s", err.text);
    look(f);
    if (f->due_ns && now >= f->due_ns) {
        f->due_ns = 0;
        if (save(f, &f->due, false, "", f->last_ns + AFTER_NS, &err))
            cli_warn(f->command, "not saved: %s; the switches are kept", err.text);
    }
    if (now >= f->last_released + RELEASE_NS) {
        f->last_released = now;
        look_after_session(f);
        if (f->session) {
            prcb_release_exited(f->session, NULL);
            look_for_own(f, now);
        }
    }
}

/* What the kernel told of pressures since. A cgroup that is gone tells nothing more. */
static void feel_pressure(struct flight *f)
{
    for (size_t i = 0; i < f->rule_count; i++) {
        struct pollfd *wait = &f->wait_for[2 + i];
        struct moment_reason reason = {.time_ns = now_ns()};

        if (wait->fd >= 0 && wait->revents & POLLERR) {
            cli_warn(f->command, "--on '%s': the cgroup is gone", f->rules[i].text);
            close(wait->fd);
            wait->fd = -1;
        } else if (wait->fd >= 0 && wait->revents & POLLPRI) {
            snprintf(reason.text, sizeof(reason.text), "%s", f->rules[i].text);
            pull(f, &reason);
        }
    }
}

static int open_pressures(struct flight *f)
{
    for (size_t i = 0; i < f->rule_count; i++) {
        struct pollfd *wait = &f->wait_for[2 + i];

        *wait = (struct pollfd){.fd = -1, .events = POLLPRI};
        f->judges |= !*f->rules[i].psi;
        if (*f->rules[i].psi)
            wait->fd = flight_rule_open(&f->rules[i]);
        if (*f->rules[i].psi && wait->fd < 0)
            return cli_error(f->command, "--on '%s': %s: %s", f->rules[i].text,
                             wait->fd == -EPERM || wait->fd == -EACCES
                                 ? "the kernel does not tell you of this pressure"
                                 : "the kernel keeps no such pressure",
                             strerror(-wait->fd));
    }
    return CLI_OK;
}

static void keep(struct flight *f)
{
    uint64_t each = f->judges ? JUDGE_NS : RELEASE_NS;

    f->wait_for[0] = (struct pollfd){.fd = f->listening, .events = POLLIN};
    f->wait_for[1] = (struct pollfd){.fd = f->signals, .events = POLLIN};
    for (;;) {
        uint64_t now = now_ns(), until = now + each;

        if (f->due_ns && f->due_ns < until)
            until = f->due_ns > now ? f->due_ns : now;
        if (f->kept && f->next_look < until)
            until = f->next_look > now ? f->next_look : now;
        poll(f->wait_for, 2 + f->rule_count, (int)((until - now) / NS_PER_MS) + 1);
        if (f->wait_for[1].revents && !take_signal(f))
            return;
        if (f->wait_for[0].revents)
            receive(f);
        feel_pressure(f);
        work(f);
    }
}

static int run_keeper(struct flight *f)
{
    struct sockaddr_un address[FLIGHT_ADDRESSES];
    struct prcb_error err;
    const char *unfit;
    int status;

    if (f->spans && !f->stacks)
        return cli_usage_error(f->command, "--spans needs --stacks (-g)");
    if (f->targets.tier == PRCB_TIER_PERF)
        return cli_usage_error(f->command, "--tier perf: it keeps no switches");
    if (stat_options_check_all(f->command, &f->targets, "keeps the switches of"))
        return CLI_USAGE;
    for (size_t i = 0; i < f->rule_count; i++) {
        const char *wrong = flight_rule_parse(f->rule_texts[i], &f->rules[i]);

        if (wrong)
            return cli_usage_error(f->command, "--on '%s': %s", f->rule_texts[i], wrong);
    }
    if (!f->folder)
        return cli_usage_error(f->command, "-o FOLDER is missing: where files are kept");
    unfit = flight_folder_unfit(f->folder);
    if (unfit)
        return cli_error(f->command, "%s: %s", f->folder, unfit);
    f->wait = (struct stat_wait){.pipe = -1, .child_fd = -1};
    status = open_pressures(f);
    if (status == CLI_OK)
        status = listen_at(f);
    if (status == CLI_OK)
        status = listen_for_signals(f);
    if (status != CLI_OK)
        return status;
    flight_remove_parts(f->folder);
    if (open_session(f, &err)) {
        status = cli_error(f->command, "%s", err.text);
    } else {
        say_what_is_kept(f);
        keep(f);
    }
    if (f->targets.verbose)
        cli_write_load_log(prcb_load_log());
    close_session(f);
    if (addresses_of(f, address))
        socket_place_leave(address[0].sun_path, &f->place);
    return status;
}

#else

static int run_keeper(struct flight *f)
{
    return cli_error(f->command, "this prcb was built without SQLite, libdw or libelf, which "
                                 "recordings need (meson option 'record')");
}

#endif

/* Where no recorder runs: what prcbd keeps, into a file of this user's. */
static int save_prcbds(struct flight *f, const char *path, const char *asked, int result)
{
    struct prcb_error err = {0};

#ifdef HAVE_RECORD
    struct moment_options how = {.path = f->last_path,
                                 .last_ns = f->last_ns ? f->last_ns : DEFAULT_LAST,
                                 .all = true,
                                 .reason = {.time_ns = now_ns()}};
    struct moment moment;

    snprintf(how.reason.text, sizeof(how.reason.text), "%s",
             f->reason ? f->reason : "prcb flight save");
    if (*path)
        snprintf(f->last_path, sizeof(f->last_path), "%s", path);
    else
        flight_file_name(".", false, f->last_path, sizeof(f->last_path));
    if (!f->socket && !open_prcbds(f, &err)) {
        result = moment_write(f->session, &how, &moment, &err);
        prcb_close(f->session);
        if (result)
            return cli_error(f->command, "%s", err.text);
        puts(f->last_path);
        return CLI_OK;
    }
#else
    snprintf(err.text, sizeof(err.text), "this prcb was built without SQLite");
#endif
    return cli_error(f->command, "%s: %s: prcb flight does not run, or not for this user%s%s",
                     asked, strerror(-result),
                     f->socket ? "" : "; nor has prcbd any: ", f->socket ? "" : err.text);
}

static int run_flight(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {
        .command = self, .argc = argc, .argv = argv, .take_word = take_word};
    struct flight f = {
        .command = self,
        .keep = DEFAULT_KEEP,
        .rest_ns = DEFAULT_REST,
        .last_ns = 0,
    };
    int status;

    if (cli_take_all(&parser, &f, &status))
        return status;
    if (f.save) {
        status = ask(&f);
    } else {
        f.last_ns = f.last_ns ? f.last_ns : DEFAULT_LAST;
        status = run_keeper(&f);
    }
    stat_options_deinit(&f.targets);
    return status;
}

extern const struct cli_command cmd_flight;
const struct cli_command cmd_flight = {
    .name = "flight",
    .synopsis = "[options] -o FOLDER\n"
                "       prcb flight save [--last SEC] [--reason TEXT] [-o FILE]",
    .summary = "a flight recorder: the seconds before an incident, on request",
    .description =
        "Keeps the last context switches of all threads in memory, over and over: nothing is read\n"
        "or written until a moment is to be kept. Then the last seconds become a recording, for\n"
        "prcb report: prcb flight save asks for it, SIGUSR1, a program (prcb_flight_save), or a\n"
        "rule (--on). Each file says why it was kept.",
    .options = option_rows,
    .examples = "  prcb flight -o /var/log --on 'ready>20ms' --on 'futex>100ms,comm=worker*'\n"
                "  prcb flight save --last 5 --reason 'slow page'\n"
                "  prcb report /var/log/flight-20261127T221504.120Z.db\n",
    .run = run_flight,
};
