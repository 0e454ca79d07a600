/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Carries out requests: the table has a row for each type. Nothing here waits: work that takes
 * the kernel long is given to the second thread, and the request is answered in a later turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "block_abi.h"
#include "error.h"
#include "log.h"
#include "now.h"
#include "privilege.h"
#include "server.h"
#include "shared.h"

#define SCOPES_PER_USER 2
#define LATER           1 /* there is no answer yet: look at the request again */
#define LOOK_AGAIN_MS   10

struct request {
    struct server *server;
    struct conn *conn;
    const struct wire_message *message;
    union {
        struct wire_open open;
        struct wire_profile profile;
        struct wire_scope scope;
        struct wire_release release;
        struct wire_release_some release_some;
        struct wire_kernel_stack kernel_stack;
        struct wire_programs programs;
    } ask; /* its payload, by its type */
};

static void refuse(const struct request *r, const struct prcb_error *err)
{
    conn_refuse(r->conn, r->message, err);
}

static void answer(const struct request *r, const void *payload, size_t size)
{
    conn_answer(r->conn, r->message, payload, size, NULL, 0);
}

/* The request is looked at again after a time: nothing reports that it can go on. */
static int later(const struct request *r)
{
    r->conn->not_before = now_ms() + LOOK_AGAIN_MS;
    return LATER;
}

static int do_hello(const struct request *r, struct prcb_error *err)
{
    const struct prcbd_config *config = r->server->config;
    struct wire_hello_answer reply = {
        .hello = {.magic = WIRE_MAGIC,
                  .major = WIRE_MAJOR,
                  .minor = WIRE_MINOR,
                  .name = PRCB_VERSION},
        .abi_major = PRCB_ABI_MAJOR,
        .abi_minor = PRCB_ABI_MINOR,
        .may = (r->conn->peer.all ? WIRE_MAY_PROFILE_ALL : 0) |
               (r->conn->peer.processors ? WIRE_MAY_PROCESSORS : 0),
        .accounts_default = (uint32_t)config->accounts_per_client,
        .accounts_most = (uint32_t)config->accounts_per_client_max,
    };
    struct wire_hello hello;
    int result = wire_answer(r->message, sizeof(hello), &hello, sizeof(hello));

    if (result || hello.magic != WIRE_MAGIC) {
        r->conn->closing = true;
        return prcb_fail(err, -EBADMSG, "this is prcbd: the first message must be hello");
    }
    if (hello.major != WIRE_MAJOR) {
        r->conn->closing = true;
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "prcbd %s speaks version %d of the protocol, the client %u: update the "
                         "older one",
                         PRCB_VERSION, WIRE_MAJOR, hello.major);
    }
    r->conn->greeted = true;
    answer(r, &reply, sizeof(reply));
    return 0;
}

/* Root may have changed it since the start. */
static int may_pass_maps(const struct request *r, struct prcb_error *err)
{
    return r->server->config->allow_unprivileged_bpf ? 0 : privilege_check_bpf(err);
}

bool server_processors_run(struct server *s)
{
    if (s->load == LOAD_NONE)
        s->load = LOAD_ASKED;
    return s->load == LOAD_DONE || s->load == LOAD_FAILED;
}

/* Descriptors as libraries expect them: behind the second one they look for the offset of the
 * clock, which is in the head of the session itself: what one client has nobody else has. Returns
 * how many there are, or -EMFILE: then *maps are closed. */
static int list_maps(struct kernel_client_fds *maps, int ret[3], struct prcb_error *err)
{
    ret[0] = maps->accounts;
    ret[1] = fcntl(maps->accounts, F_DUPFD_CLOEXEC, 0);
    ret[2] = maps->edges;
    if (ret[1] >= 0)
        return ret[2] < 0 ? 2 : 3;
    sessions_close_maps(maps);
    return prcb_fail(err, -EMFILE, "prcbd has no free descriptor; try again later");
}

/* Whether the session that is shared keeps edges, or is to. -EAGAIN: ask again later. */
static int has_shared_edges(const struct request *r, bool *ret)
{
    const struct server *s = r->server;
    const struct session *session = s->sessions->shared.session;
    bool wanted = shared_wants_edges(s->sessions);

    if (!session && wanted && !server_processors_run(r->server))
        return -EAGAIN;
    *ret = session ? s->sessions->shared.fds.edges >= 0 : wanted && s->load != LOAD_FAILED;
    return 0;
}

static int join_shared(const struct request *r, uint32_t flags, struct wire_open_answer *reply,
                       int fds[3], struct prcb_error *err)
{
    struct sessions *sessions = r->server->sessions;
    struct conn *conn = r->conn;
    struct kernel_client_fds maps;
    bool edges;
    int result = has_shared_edges(r, &edges);

    if (result)
        return result;
    if (flags & WIRE_OPEN_EDGES && !edges)
        return prcb_fail(err, -EOPNOTSUPP,
                         "the shared session does not keep by whom (by_whom in prcbd.conf)");
    result = shared_join(sessions, &conn->peer, edges, now_ms() - conn->asked_at, &maps,
                         reply->token, &conn->member, err);
    if (result)
        return result;
    if (!(flags & WIRE_OPEN_EDGES) && maps.edges >= 0) {
        close(maps.edges);
        maps.edges = -1;
    }
    result = list_maps(&maps, fds, err);
    if (result < 0)
        shared_leave(sessions, conn->member);
    return result;
}

/* If token is NULL, the client joins the session; else it resumes it. */
static int open_shared(const struct request *r, uint32_t flags, const uint8_t *token,
                       struct prcb_error *err)
{
    struct sessions *sessions = r->server->sessions;
    struct wire_open_answer reply = {.resumed = token != NULL};
    struct conn *conn = r->conn;
    int fds[3], result;

    if (token) {
        result = shared_rejoin(sessions, &conn->peer, token, &conn->member, err);
        memcpy(reply.token, token, sizeof(reply.token));
    } else {
        result = join_shared(r, flags, &reply, fds, err);
    }
    if (result < 0)
        return result == -EAGAIN ? later(r) : result;
    conn->session = sessions->shared.session;
    conn->shared = true;
    reply.accounts = conn->session->accounts;
    conn_answer(conn, r->message, &reply, sizeof(reply), fds, token ? 0 : result);
    return 0;
}

static int do_open(const struct request *r, struct prcb_error *err)
{
    static const uint8_t none[WIRE_TOKEN];
    struct conn *conn = r->conn;
    struct wire_open_answer reply = {0};
    struct wire_open open = r->ask.open;
    struct kernel_client_fds maps;
    int fds[3], result;

    if (conn->session)
        return prcb_fail(err, -EISCONN, "this connection has a session already");
    result = may_pass_maps(r, err);
    if (result)
        return result;
    if (open.flags &
            ~(WIRE_OPEN_REGISTERS | WIRE_OPEN_EDGES | WIRE_OPEN_SHARED | WIRE_OPEN_TAILS |
              WIRE_OPEN_SWITCHES | WIRE_OPEN_OBJECTS | WIRE_OPEN_OWNERS | WIRE_OPEN_MEANWHILE) ||
        (open.flags & WIRE_OPEN_SHARED && open.flags & ~(WIRE_OPEN_SHARED | WIRE_OPEN_EDGES)))
        return prcb_fail(err, -EINVAL, "open: flags 0x%x have unknown bits", open.flags);
    if (!conn->asked_at)
        conn->asked_at = now_ms();
    if (open.flags & WIRE_OPEN_SHARED)
        return open_shared(r, open.flags,
                           memcmp(open.token, none, sizeof(none)) ? open.token : NULL, err);
    if (memcmp(open.token, none, sizeof(none))) {
        result = sessions_resume(r->server->sessions, &conn->peer, open.token, &conn->session, err);
        if (result)
            return result;
        memcpy(reply.token, open.token, sizeof(reply.token));
        reply.resumed = 1;
        reply.accounts = conn->session->accounts;
        answer(r, &reply, sizeof(reply));
        return 0;
    }
    if (open.flags & WIRE_OPEN_EDGES) {
        /* The processors' blocks tell what runs at a wakeup. */
        if (!server_processors_run(r->server))
            return later(r);
        if (r->server->load == LOAD_FAILED)
            open.flags &= ~WIRE_OPEN_EDGES;
        conn->peer.names = peer_sees_names(conn->fd, &conn->peer);
    }
    result = sessions_open(r->server->sessions, &conn->peer, &open, now_ms() - conn->asked_at,
                           &conn->session, &maps, reply.token, err);
    if (result)
        return result == -EAGAIN ? later(r) : result;
    result = list_maps(&maps, fds, err);
    if (result < 0) {
        sessions_close(r->server->sessions, conn->session);
        conn->session = NULL;
        return result;
    }
    reply.accounts = conn->session->accounts;
    conn_answer(conn, r->message, &reply, sizeof(reply), fds, result);
    return 0;
}

/* A client must not change what others read. */
static int refuse_shared(struct prcb_error *err)
{
    return prcb_fail(err, -EOPNOTSUPP, "the session is shared: it has all threads, and no others");
}

static __u32 pass_bits(uint32_t follow)
{
    return (follow & PRCB_FOLLOW_THREADS ? PRCB_PASS_THREADS : 0) |
           (follow & PRCB_FOLLOW_CHILDREN ? PRCB_PASS_CHILDREN : 0);
}

static int do_profile(const struct request *r, struct prcb_error *err)
{
    static const __u32 what[] = {[WIRE_THREAD] = PRCB_REGISTER_THREAD,
                                 [WIRE_PROCESS] = PRCB_REGISTER_PROCESS,
                                 [WIRE_ALL] = PRCB_REGISTER_ALL};
    struct prcb_bpf_request ask = {0};
    struct wire_profile_answer reply = {0};
    struct kernel_undone undone;
    struct wire_profile profile = r->ask.profile;
    int result;

    if (profile.what < WIRE_THREAD || profile.what > WIRE_ALL ||
        profile.follow & ~(uint32_t)PRCB_FOLLOW_ALL ||
        (profile.what != WIRE_ALL && !profile.number))
        return prcb_fail(err, -EINVAL, "profile: what %u, number %u, follow 0x%x: invalid values",
                         profile.what, profile.number, profile.follow);
    if (r->conn->shared && profile.what != WIRE_ALL)
        return refuse_shared(err);
    if (profile.what == WIRE_ALL && !r->conn->peer.all)
        return prcb_fail(err, -EPERM,
                         "you may not profile every thread (profile_all in prcbd.conf)");
    ask.what = what[profile.what];
    ask.number = profile.number;
    ask.pass = pass_bits(profile.follow);
    ask.client = r->conn->session->number;
    result = kernel_register(r->server->kernel, &ask, r->conn->session->same_pid_ns, &undone);
    for (unsigned i = 0; i < undone.count; i++)
        sessions_release(r->server->sessions, r->conn->session, undone.keys[i]);
    if (result)
        return prcb_fail(err, result, "the task iterator failed: %s", strerror(-result));
    reply.seen = ask.seen;
    reply.added = ask.added;
    reply.full = ask.full;
    reply.refused = ask.refused;
    reply.crowded = ask.crowded;
    answer(r, &reply, sizeof(reply));
    return 0;
}

/* Scopes are few, for each costs time whenever a thread is created: a user may have two, and the
 * last is kept for those who may profile all. */
static int may_have_scope(const struct request *r, struct prcb_error *err)
{
    const struct kernel *k = r->server->kernel;
    uint32_t used,
        own = kernel_scopes_used(k, r->conn->session->number, r->conn->peer.payer, &used);

    if (r->conn->peer.all)
        return 0;
    if (own >= SCOPES_PER_USER)
        return prcb_fail(err, -EDQUOT,
                         "%u of your user's sessions follow a cgroup already, which is the limit",
                         own);
    if (used >= PRCB_CLIENT_SCOPES - 1)
        return prcb_fail(err, -EBUSY, "%u sessions follow a cgroup already, which is the limit",
                         used);
    return 0;
}

static int do_scope(const struct request *r, struct prcb_error *err)
{
    struct prcb_bpf_client_scope *scope;
    struct wire_count reply = {0};
    struct wire_scope ask = r->ask.scope;
    int result;
    bool add;
    __u32 bit;

    if (r->conn->shared && !ask.all)
        return refuse_shared(err);
    if (ask.all && !r->conn->peer.all)
        return prcb_fail(err, -EPERM,
                         "you may not profile every thread (profile_all in prcbd.conf)");
    result = ask.all || ask.cgroup ? may_have_scope(r, err) : 0;
    if (result)
        return result;
    scope = kernel_scope(r->server->kernel, r->conn->session->number);
    if (!scope)
        return prcb_fail(
            err, -EBUSY,
            "%d sessions follow a cgroup or the whole system already, which is the limit",
            PRCB_CLIENT_SCOPES);
    add = ask.add && scope->client == r->conn->session->number;
    if (add && prcb_bpf_cgroups_add(&scope->cgroups, ask.cgroup, ask.cgroup_v2 != 0, &bit) < 0)
        return prcb_fail(err, -EBUSY, "this session follows %d cgroups already, which is the limit",
                         PRCB_SCOPE_CGROUPS);
    /* Programs do not see a half filled scope: the client's number is stored last, and removed
     * first. */
    if (!add)
        __atomic_store_n(&scope->client, 0, __ATOMIC_RELEASE);
    if (!add && (ask.all || ask.cgroup))
        kernel_scope_begin(r->server->kernel, scope, r->conn->session->number, ask.all != 0,
                           ask.cgroup, ask.cgroup_v2 != 0);
    if (ask.all || ask.cgroup)
        reply.count = scope->moved;
    kernel_count_scopes(r->server->kernel);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* (a) of "which threads" in threads.bpf.h */
    answer(r, &reply, sizeof(reply));
    return 0;
}

static int do_refresh(const struct request *r, struct prcb_error *err)
{
    const struct prcb_bpf_client_scope *scope;
    struct wire_count reply = {0};

    scope = kernel_scope(r->server->kernel, r->conn->session->number);
    if (scope && scope->client == r->conn->session->number)
        reply.count = scope->moved;
    answer(r, &reply, sizeof(reply));
    return 0;
}

static int do_release(const struct request *r, struct prcb_error *err)
{
    int result;

    if (r->conn->shared)
        return refuse_shared(err);
    result = sessions_release(r->server->sessions, r->conn->session, r->ask.release.key);
    if (result == -ESTALE)
        return prcb_fail(err, result, "the account was released already");
    if (result)
        return prcb_fail(err, result, "the account was not released: %s", strerror(-result));
    answer(r, NULL, 0);
    return 0;
}

static int do_release_some(const struct request *r, struct prcb_error *err)
{
    const struct wire_release_some *ask = &r->ask.release_some;

    if (!r->conn->shared)
        return prcb_fail(err, -EOPNOTSUPP, "the session is not shared: release one by one");
    if (ask->count > WIRE_KEYS)
        return prcb_fail(err, -EINVAL, "release: %u accounts at once, and at most %d are allowed",
                         ask->count, WIRE_KEYS);
    for (uint32_t i = 0; i < ask->count; i++)
        shared_release(r->server->sessions, r->conn->member, ask->keys[i]);
    answer(r, NULL, 0);
    return 0;
}

static int do_release_exited(const struct request *r, struct prcb_error *err)
{
    struct wire_count reply = {0};
    int result;

    if (r->conn->shared)
        return refuse_shared(err);
    result = kernel_free_exited(r->server->kernel, r->conn->session->number,
                                r->conn->session->accounts, &reply.count);
    if (result)
        return prcb_fail(err, result, "the accounts were not released: %s", strerror(-result));
    answer(r, &reply, sizeof(reply));
    return 0;
}

static int do_processors(const struct request *r, struct prcb_error *err)
{
    struct server *s = r->server;
    int fds[2], result;

    if (!r->conn->peer.processors)
        return prcb_fail(err, -EPERM,
                         "you may not read the processors' figures (processors in prcbd.conf)");
    /* All who read the blocks share one map. */
    if (r->conn->peer.writes_maps)
        return prcb_fail(err, -EPERM,
                         "you may not read the processors' figures: with CAP_BPF you could write "
                         "them, for all who read them; ask without it, or with CAP_PERFMON too");
    result = may_pass_maps(r, err);
    if (result)
        return result;
    if (!server_processors_run(s))
        return later(r);
    if (s->load == LOAD_FAILED) {
        *err = s->load_error;
        return err->code;
    }
    /* Only those who may profile a thread may see when it wakes up. */
    result = kernel_processors(s->kernel, r->conn->peer.all, fds, err);
    if (result < 0)
        return result;
    conn_answer(r->conn, r->message, NULL, 0, fds, result);
    return 0;
}

/* The programs check that the account is the thread's and that the thread is still the client's. */
static int do_kernel_stack(const struct request *r, struct prcb_error *err)
{
    struct wire_kernel_stack_answer reply = {{0}};
    struct wire_kernel_stack ask = r->ask.kernel_stack;
    int result;

    /* The threads of a shared session belong to no single client. */
    if (r->conn->shared)
        return prcb_fail(err, -EOPNOTSUPP, "a shared session has no stacks in the kernel");
    if (!ask.tid || (uint32_t)ask.key >= r->conn->session->accounts)
        return prcb_fail(err, -ESTALE, "kernel-stack: the account does not exist");
    if (!r->conn->session->same_pid_ns)
        return prcb_fail(err, -EOPNOTSUPP,
                         "stacks in the kernel are for clients of prcbd's own pid namespace");
    result = kernel_stack_of(r->server->kernel, r->conn->session->number, ask.key, (pid_t)ask.tid,
                             reply.text, sizeof(reply.text));
    if (result == -EOPNOTSUPP)
        return prcb_fail(err, result,
                         "this kernel cannot read the stack of a single thread: needs Linux 6.1");
    if (result)
        return prcb_fail(err, result, "kernel-stack: the thread has ended, or runs");
    answer(r, &reply, strlen(reply.text) + 1);
    return 0;
}

static int do_programs(const struct request *r, struct prcb_error *err)
{
    const struct server *s = r->server;
    struct wire_programs_answer reply = {0};

    switch (r->ask.programs.of) {
    case WIRE_OF_ACCOUNTS:
        kernel_events_read(&s->kernel->account_events, &reply);
        break;
    case WIRE_OF_PROCESSORS:
        if (!r->conn->peer.processors)
            return prcb_fail(err, -EPERM,
                             "you may not read the processors' figures (processors in prcbd.conf)");
        if (s->load == LOAD_DONE) /* otherwise the second thread may be adding to them */
            kernel_events_read(&s->kernel->processor_events, &reply);
        break;
    default:
        return prcb_fail(err, -EINVAL, "programs: of %u: invalid value", r->ask.programs.of);
    }
    answer(r, &reply,
           offsetof(struct wire_programs_answer, items) + reply.count * sizeof(reply.items[0]));
    return 0;
}

static const struct call {
    int (*run)(const struct request *r, struct prcb_error *err);
    size_t size, least; /* the payload's, and that of its first version; 0: none is read */
    bool in_session;
} calls[] = {
#define PAYLOAD(type) sizeof(struct type), sizeof(struct type)
    [WIRE_HELLO] = {do_hello},
    [WIRE_OPEN] = {do_open, PAYLOAD(wire_open)},
    [WIRE_PROFILE] = {do_profile, PAYLOAD(wire_profile), true},
    [WIRE_SCOPE] = {do_scope, sizeof(struct wire_scope), offsetof(struct wire_scope, add), true},
    [WIRE_RELEASE] = {do_release, PAYLOAD(wire_release), true},
    [WIRE_RELEASE_EXITED] = {do_release_exited, .in_session = true},
    [WIRE_REFRESH] = {do_refresh, .in_session = true},
    [WIRE_PROCESSORS] = {do_processors},
    [WIRE_KERNEL_STACK] = {do_kernel_stack, PAYLOAD(wire_kernel_stack), true},
    [WIRE_PROGRAMS] = {do_programs, PAYLOAD(wire_programs)},
    [WIRE_RELEASE_SOME] = {do_release_some, sizeof(struct wire_release_some),
                           offsetof(struct wire_release_some, keys), true},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static int call(const struct call *what, struct request *r, struct prcb_error *err)
{
    const char *name = wire_type_name(r->message->header.type);
    int result = what->size ? wire_request(r->message, what->least, &r->ask, what->size) : 0;

    if (result == -E2BIG)
        return prcb_fail(err, result, "%s: prcbd (%s) is too old for this request: update it", name,
                         PRCB_VERSION);
    if (result)
        return prcb_fail(err, result, "%s: the request is too short", name);
    if (what->in_session && !r->conn->session)
        return prcb_fail(err, -ENOTCONN, "open a session first");
    return what->run(r, err);
}

bool answer_request(struct server *s, struct conn *conn, const struct wire_message *message)
{
    struct request r = {s, conn, message};
    struct prcb_error err = {0};
    uint16_t type = message->header.type;
    int result = -EOPNOTSUPP;

    if (!conn->greeted && type != WIRE_HELLO) {
        conn->closing = true;
        prcb_fail(&err, -EBADMSG, "this is prcbd: the first message must be hello");
    } else if (type >= CALLS || !calls[type].run) {
        prcb_fail(&err, -EOPNOTSUPP, "prcbd (%s) does not support requests of type %u",
                  PRCB_VERSION, type);
    } else {
        result = call(&calls[type], &r, &err);
    }
    if (result == LATER)
        return false;
    conn->asked_at = conn->not_before = 0;
    if (result)
        refuse(&r, &err);
    return true;
}
