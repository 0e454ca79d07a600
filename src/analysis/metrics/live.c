/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The source of the figures: a session for all threads and a view of the processors, which are
 * looked at when asked.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "first_line.h"
#include "inside.h"
#include "now.h"
#include "replay.h"

#define DAEMON_SOCKET "/run/prcb/socket"
#define NS_PER_MS     1000000ull
#define AGAIN_NS      5000000000ull
#define AGAIN_PART    64 /* of the accounts have to be free */
#define WALK_TRIES    5  /* 20 ms each: a writer without a processor */

static uint64_t processes(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    uint64_t count = 0;

    while (proc && (entry = readdir(proc)))
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
    if (proc)
        closedir(proc);
    return count;
}

static uint64_t booted_ns(void)
{
    return now_by(CLOCK_REALTIME) - now_by(CLOCK_BOOTTIME);
}

static uint64_t number_in(const char *path)
{
    uint64_t number = 0;

    first_number(path, &number);
    return number;
}

static void look_at_host(struct metrics *m)
{
    struct utsname name;

    if (!(m->options.names & METRICS_WINDOWS) && !m->writer)
        return;
    gethostname(m->host.name, sizeof(m->host.name) - 1);
    if (!uname(&name)) {
        snprintf(m->host.system, sizeof(m->host.system), "%s", name.sysname);
        snprintf(m->host.release, sizeof(m->host.release), "%s", name.release);
    }
    m->host.processes = processes();
    m->host.processes_limit = number_in("/proc/sys/kernel/pid_max");
    m->host.booted_ns = booted_ns() / 1000000000 * 1000000000;
}

int metrics_open_fed(const struct metrics_options *options, struct metrics **ret,
                     struct prcb_error *err)
{
    struct metrics *m = calloc(1, sizeof(*m));
    int result;

    if (!m)
        return prcb_fail(err, -ENOMEM, "out of memory");
    m->options = *options;
    if (!m->options.names)
        m->options.names = METRICS_PRCB;
    m->tier = options->tier;
    m->started = now_by(CLOCK_REALTIME);
    result = metrics_fold_init(m, err);
    if (!result)
        result = cgroup_names_open(options->cgroup_root, &m->names, err);
    if (!result && !options->replay)
        look_at_host(m);
    if (result) {
        metrics_close(m);
        return result;
    }
    *ret = m;
    return 0;
}

static int open_session(struct metrics *m, struct prcb_error *err)
{
    const struct prcb_options how = {
        .size = sizeof(how),
        .tier = m->options.tier,
        .max_threads = (uint32_t)m->options.max_threads, /* of a row that has a limit */
        .flags = PRCB_OPEN_SHARED | (m->options.optional & METRICS_READY ? PRCB_OPEN_TAILS : 0u) |
                 (m->options.optional & METRICS_BY_WHOM
                      ? PRCB_OPEN_EDGES | PRCB_OPEN_MEANWHILE | PRCB_OPEN_OWNERS
                      : 0u)};
    const struct prcb_processors_options view = {.size = sizeof(view), .tier = m->options.tier};
    int result = prcb_open(&how, &m->session, err);

    if (result)
        return result;
    m->tier = prcb_session_tier(m->session);
    m->baseline = m->tier == PRCB_TIER_DAEMON;
    result = prcb_profile_all(m->session, err);
    /* What fits is counted; the rest is in prcb_untracked_threads, until there is room. */
    m->left_out = result == -ENOSPC;
    m->asked_again = now_ns();
    if (result && result != -ENOSPC)
        return result;
    if (!prcb_processors_open(&view, &m->view, NULL)) {
        m->processors = calloc(prcb_processors_count(m->view), sizeof(*m->processors));
        if (!m->processors)
            return prcb_fail(err, -ENOMEM, "out of memory");
    }
    return 0;
}

int metrics_open(const struct metrics_options *options, struct metrics **ret,
                 struct prcb_error *err)
{
    struct metrics *m = NULL;
    int result = metrics_open_fed(options, &m, err);

    if (!result && options->record)
        result = replay_writer_open(options->record, &m->writer, err);
    if (!result)
        result = options->replay
                     ? replay_open(options->replay, options->replay_scale, &m->replay, err)
                     : open_session(m, err);
    if (result) {
        metrics_close(m);
        return result;
    }
    m->started = now_by(CLOCK_REALTIME);
    *ret = m;
    return 0;
}

int metrics_close(struct metrics *m)
{
    int result;

    if (!m)
        return 0;
    result = replay_writer_close(m->writer);
    replay_close(m->replay);
    metrics_fold_deinit(m);
    cgroup_names_close(m->names);
    prcb_processors_close(m->view);
    prcb_close(m->session);
    free(m->processors);
    free(m);
    return result;
}

/* ---- a look ---- */

/* Memory that prcbd passed stays readable after prcbd has ended. Whether prcbd is there is asked
 * here, at once, and not by a request, which would wait for a prcbd that restarts. */
static int daemon_is_there(struct prcb_error *err)
{
    const char *path = getenv("PRCB_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, result = 0;

    path = path && *path ? path : DAEMON_SOCKET;
    if (strlen(path) >= sizeof(address.sun_path))
        return prcb_fail(err, -ENOTCONN, "prcbd: the path of its socket is too long: %s", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    /* EAGAIN: so many clients connect that prcbd has to catch up. */
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno != EAGAIN)
        result =
            prcb_fail(err, -ENOTCONN, "prcbd is not reachable at %s: %s", path, strerror(errno));
    close(fd);
    return result;
}

struct edges_to {
    struct metrics *m;
    uint64_t key;
};

static int add_edge(const struct prcb_edge *edge, void *ctx)
{
    const struct edges_to *to = ctx;

    return metrics_add_edge(to->m, to->key, edge);
}

/* Reads an account once more, together with its edges. Returns the one that is to be added: what
 * has no edges now counts as it was. */
static const struct prcb_account *with_edges(struct metrics *m, const struct prcb_account *account,
                                             struct prcb_account *room)
{
    struct edges_to to = {m, account->key};
    const struct prcb_edge none = {.by = PRCB_BY_REST};

    *room = (struct prcb_account){.size = sizeof(*room)};
    if (!(m->options.optional & METRICS_BY_WHOM) || m->no_edges.code)
        return account;
    switch (prcb_edges_walk(m->session, account->key, room, add_edge, &to, &m->no_edges)) {
    case 0:
        m->no_edges.code = 0;
        metrics_add_edge(m, account->key, &none); /* it is known that there are no more */
        return room;
    case -ESTALE:
    case -EAGAIN:
    case -ENOMEM:
        m->no_edges.code = 0;
    }
    return account;
}

static int add_account(const struct prcb_account *account, void *ctx)
{
    struct metrics *m = ctx;
    struct prcb_account room;

    account = with_edges(m, account, &room);
    if (m->writer)
        replay_writer_add(m->writer, m, account);
    return metrics_add(m, account);
}

static void begin(struct metrics *m)
{
    metrics_begin(m);
    if (m->writer)
        replay_writer_begin(m->writer);
}

static void give_back(void *ctx, uint64_t key)
{
    struct metrics *m = ctx;
    struct prcb_error err;

    /* An account that was not given back is met again, and then it is not counted again. */
    if (!m->orphan)
        prcb_release(m->session, key, &err);
}

static bool read_tails(struct metrics *m, struct prcb_tail *ret)
{
    *ret = (struct prcb_tail){.size = sizeof(*ret)};
    return m->options.optional & METRICS_READY &&
           !prcb_tail_read(m->session, PRCB_CAUSE_NONE, ret, &m->no_ready);
}

/* As with accounts: if others began the session, what was there at the first look does not
 * count. */
static void set_tails(struct metrics *m, const struct prcb_tail *now)
{
    if (m->baseline)
        m->ready_base = *now;
    m->ready = *now;
    m->ready.ns -= m->ready_base.ns;
    for (size_t i = 0; i < PRCB_TAIL_BUCKETS; i++)
        m->ready.buckets[i] -= m->ready_base.buckets[i];
}

static void look_at_processors(struct metrics *m)
{
    uint32_t count = m->view ? prcb_processors_count(m->view) : 0;

    if (!m->view || prcb_processors_refresh(m->view, NULL))
        return;
    m->processor_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct prcb_processor *processor = &m->processors[m->processor_count];

        *processor = (struct prcb_processor){.size = sizeof(*processor)};
        if (!prcb_processor_read(m->view, i, processor) && !(processor->flags & PRCB_CPU_ABSENT))
            m->processor_count++;
        m->orphan |= (processor->flags & PRCB_CPU_ORPHAN) != 0;
    }
}

/* Threads that found no room are taken up when there is some, but only as often as it costs
 * little: this goes over all threads of the machine. */
static void take_up(struct metrics *m, uint64_t untracked_before)
{
    uint64_t now = now_ns();

    m->left_out |= m->status.untracked_threads != untracked_before;
    if (!m->left_out || now - m->asked_again < AGAIN_NS ||
        m->accounts_live + m->status.max_threads / AGAIN_PART >= m->status.max_threads)
        return;
    m->asked_again = now;
    m->left_out = prcb_profile_all(m->session, NULL) != 0;
}

int metrics_look(struct metrics *m, struct prcb_error *err)
{
    struct prcb_tail ready;
    uint64_t untracked;
    int result;

    if (m->replay)
        return replay_look(m->replay, m, err);
    result = m->tier == PRCB_TIER_DAEMON ? daemon_is_there(err) : 0;
    if (result)
        return result;
    /* Threads may have ended unseen: their accounts are kept for so long. */
    if (m->tier == PRCB_TIER_DAEMON && m->looks && now_ns() - m->looked_at > PRCB_SHARED_GRACE_NS)
        return prcb_fail(err, -ESTALE, "the last reading is too old: counters restart");
    /* Tails are read before the accounts, whose ready time they then never exceed. The tails
     * that do not count (the baseline) are read after the accounts. */
    m->has_ready = !m->baseline && read_tails(m, &ready);
    result = -EAGAIN;
    begin(m);
    /* A walk that was cut short is repeated, and meets again what it added before. */
    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++) {
        if (i)
            begin(m);
        result = prcb_walk(m->session, add_account, m, err);
    }
    if (result)
        return result;
    look_at_processors(m);
    if (m->orphan)
        return prcb_fail(err, -ESTALE,
                         "prcbd gave the session up: it was replaced or cleaned away");
    if (m->baseline)
        m->has_ready = read_tails(m, &ready);
    if (m->has_ready)
        set_tails(m, &ready);
    metrics_end(m, give_back, m);
    untracked = m->status.untracked_threads;
    m->status.size = sizeof(m->status);
    prcb_session_status(m->session, &m->status);
    take_up(m, untracked);
    look_at_host(m);
    if (m->writer)
        replay_writer_end(m->writer, m);
    return 0;
}

int metrics_look_until(struct metrics *m, uint64_t until, struct prcb_error *err)
{
    for (;;) {
        uint64_t began = now_ns(), now, ms;
        int result = metrics_look(m, err);

        if (result || began >= until)
            return result;
        now = now_ns();
        ms = now < until ? (until - now + NS_PER_MS - 1) / NS_PER_MS : 0;
        poll(NULL, 0, (int)(ms < metrics_wait_ms(m) ? ms : metrics_wait_ms(m)));
    }
}

const char *metrics_no_ready(const struct metrics *m)
{
    return m->options.optional & METRICS_READY && !m->has_ready && m->no_ready.text[0]
               ? m->no_ready.text
               : NULL;
}

const char *metrics_no_edges(const struct metrics *m)
{
    if (!(m->options.optional & METRICS_BY_WHOM) || m->blaming.available || !m->session)
        return NULL;
    return m->no_edges.text[0] ? m->no_edges.text
                               : "prcbd does not tell whose threads run: it is an earlier version";
}

struct prcb *metrics_session(const struct metrics *m)
{
    return m->session;
}
