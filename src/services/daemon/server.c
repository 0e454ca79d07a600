/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"
#include "listen.h"
#include "log.h"
#include "now.h"
#include "shared.h"

#define GREETING_MS 5000   /* for the greeting, and for the rest of a request begun */
#define ANSWER_MS   10000  /* for an answer to be taken */
#define LOOK_MS     1000   /* time limits are looked at this often */
#define SETTLE_MS   20     /* what ended is gathered for so long */
#define LISTEN_MS   200    /* after a lack of descriptors */
#define ACCEPTS     16     /* a turn */
#define EXTRA_CONNS 16     /* of a user, beyond its sessions */
#define TURN_NS     250000 /* for a user's requests in one round; the last may take longer */
#define DEFERRED_MS 10

/* ---- connections ---- */

static void wait_for(struct server *s, struct conn *conn)
{
    uint32_t want = (conn->in < CONN_IN && !conn->out && !conn->ended ? EPOLLIN : 0) |
                    (conn->out ? EPOLLOUT : 0);
    struct epoll_event event = {.events = want, .data.ptr = conn};

    if (want == conn->waits_for)
        return;
    epoll_ctl(s->epoll, EPOLL_CTL_MOD, conn->fd, &event);
    conn->waits_for = want;
}

static struct user *find_user(const struct server *s, uid_t uid)
{
    struct user *user = s->users;

    while (user && user->uid != uid)
        user = user->next;
    return user;
}

static struct user *user_comes(struct server *s, uid_t uid)
{
    struct user *user = find_user(s, uid);

    if (!user) {
        user = calloc(1, sizeof(*user));
        if (!user)
            return NULL;
        user->uid = uid;
        user->next = s->users;
        s->users = user;
    }
    user->conns++;
    return user;
}

static void user_leaves(struct server *s, struct user *user)
{
    struct user **at = &s->users;

    if (--user->conns)
        return;
    while (*at != user)
        at = &(*at)->next;
    *at = user->next;
    free(user);
}

static void conn_drop(struct server *s, struct conn *conn)
{
    struct conn **at = &s->conns;

    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    s->conn_count--;
    conn_close_fds(conn);
    close(conn->fd); /* leaves the epoll set with it */
    if (conn->session && conn->shared)
        shared_leave(s->sessions, conn->member);
    else if (conn->session)
        sessions_close(s->sessions, conn->session);
    user_leaves(s, conn->user);
    free(conn);
}

/* Counts the whole requests in its buffer. */
static unsigned requests_in(const struct conn *conn)
{
    struct wire_message message;
    unsigned count = 0;
    size_t at = 0;
    int taken;

    while ((taken = wire_take(conn->in_bytes + at, conn->in - at, &message)) > 0) {
        at += (size_t)taken;
        count++;
    }
    return count;
}

static uint64_t in_flight(const struct server *s, uid_t uid)
{
    uint64_t count = 0;

    for (const struct conn *c = s->conns; c; c = c->next)
        count += c->peer.payer == uid ? requests_in(c) + (c->out ? 1 : 0) : 0;
    return count;
}

/* ---- accepting ---- */

/* Tells a client that gets no connection why, in the form of an answer to its greeting. */
static void turn_away(int fd, const struct prcb_error *err)
{
    uint8_t bytes[WIRE_MAX];
    size_t length = wire_make(bytes, WIRE_HELLO, 1, err->code, err->text, strlen(err->text));

    if (send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_client("refused a connection: %s", err->text);
    close(fd);
}

static int admit(struct server *s, int fd, struct peer *ret, struct prcb_error *err)
{
    uint64_t most = s->config->sessions_per_user + EXTRA_CONNS;
    const struct user *user;
    int result = peer_ask(s->kernel, fd, ret, err);

    if (result)
        return result;
    peer_apply(fd, s->config, &s->groups, ret);
    if (s->conn_count >= prcbd_config_room(s->config->connections_total, most, ret->root))
        return prcb_fail(err, -EBUSY,
                         "prcbd has %llu connections, as many as it may (connections_total in "
                         "prcbd.conf)",
                         (unsigned long long)s->conn_count);
    user = find_user(s, ret->payer);
    if (user && user->conns >= most)
        return prcb_fail(err, -EBUSY,
                         "your user has %llu connections, as many as one may (sessions_per_user in "
                         "prcbd.conf and %d)",
                         (unsigned long long)most, EXTRA_CONNS);
    return 0;
}

static void accept_one(struct server *s, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct conn *conn;
    struct prcb_error err = {0};
    struct peer peer;

    if (admit(s, fd, &peer, &err)) {
        turn_away(fd, &err);
        return;
    }
    conn = calloc(1, sizeof(*conn));
    event.data.ptr = conn;
    if (conn)
        conn->user = user_comes(s, peer.payer);
    if (!conn || !conn->user || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event)) {
        prcb_fail(&err, -ENOMEM, "prcbd is out of memory");
        turn_away(fd, &err);
        if (conn && conn->user)
            user_leaves(s, conn->user);
        free(conn);
        return;
    }
    conn->fd = fd;
    conn->peer = peer;
    conn->waits_for = EPOLLIN;
    conn->since = now_ms();
    conn->next = s->conns;
    s->conns = conn;
    s->conn_count++;
}

static void accept_some(struct server *s)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct epoll_event none = {.data.ptr = &s->listener};

        if (fd >= 0) {
            accept_one(s, fd);
            continue;
        }
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
            return;
        /* A client that waits in line makes the socket readable all the time. */
        log_client("no descriptors for further connections: %s", strerror(errno));
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &none);
        s->listen_again = now_ms() + LISTEN_MS;
        return;
    }
}

/* ---- requests ---- */

/* Returns false if the connection is no more. */
static bool take_bytes(struct server *s, struct conn *conn)
{
    ssize_t got = recv(conn->fd, conn->in_bytes + conn->in, CONN_IN - conn->in, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got < 0) {
        conn_drop(s, conn);
        return false;
    }
    conn->ended = !got;
    if (!conn->in)
        conn->since = now_ms();
    conn->in += (size_t)got;
    return true;
}

/* Returns whether its next request has to wait: until the programs know its session, or until
 * its time. */
static bool deferred(const struct conn *conn, uint64_t now)
{
    return (conn->session && !sessions_settled(conn->session)) || now < conn->not_before;
}

static bool answer_or_refuse(struct server *s, struct conn *conn,
                             const struct wire_message *message)
{
    struct prcb_error err = {0};

    if (requests_in(conn) > 1 && in_flight(s, conn->peer.payer) > s->config->requests_in_flight) {
        prcb_fail(&err, -EBUSY,
                  "your user has more than %llu requests in flight (requests_in_flight in "
                  "prcbd.conf)",
                  (unsigned long long)s->config->requests_in_flight);
        conn_refuse(conn, message, &err);
        return true;
    }
    return answer_request(s, conn, message);
}

/* Returns false if the bytes are no message and the connection is no more. */
static bool take_request(struct server *s, struct conn *conn, int *sent)
{
    struct wire_message message;
    int taken = wire_take(conn->in_bytes, conn->in, &message);

    if (taken < 0) {
        log_client("user %u, process %d: sent an invalid message", conn->peer.uid,
                   (int)conn->peer.pid);
        conn_drop(s, conn);
        return false;
    }
    if (!taken && conn->ended)
        *sent = -ECONNRESET;
    if (!taken || !answer_or_refuse(s, conn, &message))
        return true;
    conn->in -= (size_t)taken;
    memmove(conn->in_bytes, conn->in_bytes + taken, conn->in);
    conn->since = now_ms();
    *sent = conn_flush(conn);
    return true;
}

/* Answers one request of one connection. *ret_more: there is another in its buffer. */
static void take_turn(struct server *s, struct conn *conn, uint64_t now, bool *ret_more)
{
    int sent = conn->out ? conn_flush(conn) : 1;

    if (sent > 0 && !conn->closing && !deferred(conn, now) && !take_request(s, conn, &sent))
        return;
    if (sent < 0 || (sent > 0 && conn->closing)) {
        conn_drop(s, conn);
        return;
    }
    *ret_more |= sent > 0 && !deferred(conn, now) && (requests_in(conn) || conn->ended);
    wait_for(s, conn);
}

/* ---- time ---- */

static bool overdue(const struct server *s, const struct conn *conn, uint64_t now)
{
    uint64_t idle = now - conn->since;

    if (conn->out)
        return idle > ANSWER_MS;
    if (conn->asked_at || deferred(conn, now))
        return false; /* it is we who are slow */
    if (!conn->greeted || conn->in)
        return idle > GREETING_MS;
    return !conn->session && s->config->idle_timeout_s && idle > s->config->idle_timeout_s * 1000;
}

static void look_at_time(struct server *s)
{
    uint64_t now = now_ms();
    struct conn *next;

    for (struct conn *conn = s->conns; conn; conn = next) {
        next = conn->next;
        if (!overdue(s, conn, now))
            continue;
        log_client("user %u, process %d: connection closed, for it was silent too long",
                   conn->peer.uid, (int)conn->peer.pid);
        conn_drop(s, conn);
    }
    sessions_look_after_waiting(s->sessions);
    sessions_look_at_held(s->sessions);
    shared_look(s->sessions);
}

static void listen_again(struct server *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->listener};

    epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &event);
    s->listen_again = 0;
}

/* ---- signals ---- */

static void reload(struct server *s)
{
    struct peer_groups groups;
    struct prcbd_config config;
    struct prcb_error err = {0};
    const struct prcbd_setting *setting;
    size_t at = 0;
    int result;

    if (!s->config_file) {
        log_line(LOG_LINE_NOTICE, "there is no configuration file to reload");
        return;
    }
    listen_notify("RELOADING=1");
    result = prcbd_config_load(s->config_file, &config, &err);
    if (!result)
        result = peer_find_groups(&config, &groups, &err);
    if (result) {
        log_line(LOG_LINE_ERROR, "%s; the old settings remain in force", err.text);
        listen_notify("READY=1");
        return;
    }
    while ((setting = prcbd_config_needs_restart(s->config, &config, &at)))
        log_line(LOG_LINE_WARNING, "%s: changed in the file; restart prcbd to apply it",
                 setting->key);
    prcbd_config_reload(s->config, &config);
    s->groups = groups;
    for (struct conn *c = s->conns; c; c = c->next)
        peer_apply(c->fd, s->config, &s->groups, &c->peer);
    log_line(LOG_LINE_NOTICE, "settings reloaded; open sessions keep their rights");
    listen_notify("READY=1");
}

/* True: the end is asked for. */
static bool take_signal(struct server *s)
{
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != sizeof(info))
        return false;
    if (info.ssi_signo != SIGHUP)
        return true;
    reload(s);
    return false;
}

/* ---- the loop ---- */

static int watch(struct server *s, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int server_start(struct server *s, struct prcb_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->signals < 0 || s->epoll < 0 || watch(s, s->signals, &s->signals) ||
        watch(s, s->listener, &s->listener))
        return prcb_fail(err, -errno, "events cannot be waited for: epoll: %s", strerror(errno));
    s->load = s->kernel->processors < 0 ? LOAD_NONE : LOAD_DONE;
    if (worker_start(&s->worker, err))
        return err->code;
    if (watch(s, s->worker.done, &s->worker))
        return prcb_fail(err, -errno, "events cannot be waited for: epoll: %s", strerror(errno));
    return 0;
}

/* ---- the second thread ---- */

static void load(void *arg)
{
    struct server *s = arg;

    s->load_error = (struct prcb_error){0};
    kernel_attach_processors(s->kernel, &s->load_error);
}

static void take_work(struct server *s)
{
    worker_take(&s->worker);
    if (s->load != LOAD_RUNS) {
        sessions_batch_done(s->sessions);
        return;
    }
    s->load = s->load_error.code ? LOAD_FAILED : LOAD_DONE;
}

/* due: work has been gathered for long enough. */
static void give_work(struct server *s, bool due)
{
    if (s->worker.busy)
        return;
    if (s->load == LOAD_ASKED) {
        s->load = LOAD_RUNS;
        worker_give(&s->worker, load, s);
        return;
    }
    if ((sessions_hurry(s->sessions) || due) && sessions_gather(s->sessions))
        worker_give(&s->worker, sessions_do_batch, &s->sessions->batch);
}

/* Something happened on a connection: its bytes are taken, but no request is answered, so
 * that no other connection of the same round is dropped under the caller. */
static void take_event(struct server *s, const struct epoll_event *event)
{
    struct conn *conn = event->data.ptr;

    if (event->events & (EPOLLHUP | EPOLLERR)) {
        conn_drop(s, conn);
        return;
    }
    if (event->events & EPOLLIN && conn->in < CONN_IN)
        take_bytes(s, conn);
}

/* Makes the first connection that got no turn the first of the next round. */
static void rotate(struct server *s, const struct conn *first)
{
    struct conn **at = &s->conns, *head = s->conns, *last;

    if (!first || head == first)
        return;
    while (*at != first)
        at = &(*at)->next;
    s->conns = *at;
    *at = NULL;
    for (last = s->conns; last->next; last = last->next)
        ;
    last->next = head;
}

/* Gives one turn to every connection that has something to do, except those of a user whose time
 * is used up. *ret_soon: somebody has to wait a while. */
static bool take_turns(struct server *s, bool *ret_soon)
{
    uint64_t before = now_ns(), after;
    const struct conn *left = NULL;
    struct conn *next;
    bool more = false;

    *ret_soon = false;
    for (struct user *user = s->users; user; user = user->next)
        user->spent = 0;
    for (struct conn *conn = s->conns; conn; conn = next) {
        uid_t uid = conn->peer.payer;
        struct user *user;

        next = conn->next;
        if (!conn->in && !conn->out && !conn->ended && !conn->closing)
            continue;
        if (conn->user->spent > TURN_NS) {
            left = left ? left : conn;
            continue;
        }
        take_turn(s, conn, before / 1000000, &more);
        after = now_ns();
        user = find_user(s, uid); /* who may have left with it */
        if (user)
            user->spent += after - before;
        before = after;
    }
    for (const struct conn *conn = s->conns; conn; conn = conn->next)
        *ret_soon |= before / 1000000 < conn->not_before;
    rotate(s, left);
    return more || left;
}

/* The switches that are kept for whoever asks for them (flight in prcbd.conf). */
static void keep_switches(struct server *s)
{
    if (shared_lacks_switches(s->sessions) && server_processors_run(s))
        shared_keep_switches(s->sessions, s->load != LOAD_FAILED);
}

static int time_to_wait(const struct server *s, bool more, bool soon)
{
    bool idle = !s->conns && !s->sessions->waiting && !s->listen_again &&
                !s->sessions->held.count && !s->sessions->shared.session;

    if (more)
        return 0;
    if (soon)
        return DEFERRED_MS;
    if (sessions_unsettled(s->sessions) || shared_lacks_switches(s->sessions))
        return SETTLE_MS;
    return s->listen_again ? LISTEN_MS : idle ? -1 : LOOK_MS;
}

/* True: the end is asked for. */
static bool take_events(struct server *s, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == &s->signals) {
            if (take_signal(s))
                return true;
        } else if (events[i].data.ptr == &s->listener) {
            accept_some(s);
        } else if (events[i].data.ptr == &s->worker) {
            take_work(s);
        } else {
            take_event(s, &events[i]);
        }
    }
    return false;
}

int server_run(struct server *s, struct prcb_error *err)
{
    uint64_t looked = now_ms(), since = looked; /* what can be gathered is there */
    bool more = false, soon = false;

    for (;;) {
        struct epoll_event events[64];
        bool unsettled = sessions_unsettled(s->sessions), to_free;
        int count = epoll_wait(s->epoll, events, 64, time_to_wait(s, more, soon));
        uint64_t now = now_ms();

        if (count < 0 && errno != EINTR)
            return prcb_fail(err, -errno, "epoll_wait: %s", strerror(errno));
        if (take_events(s, events, count))
            return 0;
        keep_switches(s);
        more = take_turns(s, &soon);
        if (s->listen_again && now >= s->listen_again)
            listen_again(s);
        to_free = sessions_free_some(s->sessions);
        more |= to_free;
        if (!to_free) {
            bool free = !s->worker.busy;

            give_work(s, now - since >= SETTLE_MS);
            since = (free && s->worker.busy) || !unsettled ? now : since;
        }
        if (now - looked >= LOOK_MS) {
            look_at_time(s);
            looked = now;
        }
    }
}

void server_settle(struct server *s)
{
    if (s->worker.busy)
        take_work(s);
    while (sessions_free_some(s->sessions))
        ;
    if (!sessions_gather(s->sessions))
        return;
    sessions_do_batch(&s->sessions->batch);
    sessions_batch_done(s->sessions);
    while (sessions_free_some(s->sessions))
        ;
}

void server_stop(struct server *s)
{
    while (s->conns)
        conn_drop(s, s->conns);
    server_settle(s);
    close(s->epoll);
    close(s->signals);
    close(s->listener);
}
