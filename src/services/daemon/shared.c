/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "log.h"
#include "now.h"
#include "present.h"

#define SHARED_GRACE_MS 10000 /* twice PRCB_SHARED_GRACE_NS, which libraries count on */
#define LONELY_MS       10000 /* for members to come back after a restart */
#define MEMBERS         64
#define BLOCK           sizeof(struct prcb_account_block)

/* Notes about an account whose thread has ended. */
struct shared_slot {
    uint32_t generation; /* of the account that the other members describe */
    uint32_t since;      /* ms, when that was noticed */
    uint64_t released;   /* by whom: bits */
};

static int no_memory(struct prcb_error *err)
{
    return prcb_fail(err, -ENOMEM, "prcbd is out of memory; try again later");
}

static int may_join(const struct peer *peer, struct prcb_error *err)
{
    if (!peer->all)
        return prcb_fail(err, -EPERM,
                         "you may not profile every thread (profile_all in prcbd.conf)");
    /* All members would read what such a client could write. */
    if (peer->writes_maps)
        return prcb_fail(err, -EPERM,
                         "you may not share a session: with CAP_BPF you could write it, for all "
                         "who read it");
    if (!peer->same_pid_ns)
        return prcb_fail(err, -EPERM,
                         "the shared session has numbers of threads as prcbd sees them, in "
                         "another pid namespace");
    return 0;
}

/* Owns fds from here on. */
static int begin(struct sessions *s, struct session *session, struct kernel_client_fds fds)
{
    struct shared *shared = &s->shared;

    shared->blocks = kernel_client_view(fds.accounts, session->accounts);
    shared->slots = calloc(session->accounts, sizeof(*shared->slots));
    if (!shared->blocks || !shared->slots) {
        kernel_client_unview(shared->blocks, session->accounts);
        free(shared->slots);
        *shared = (struct shared){0};
        sessions_close_maps(&fds);
        return -ENOMEM;
    }
    shared->session = session;
    shared->fds = fds;
    shared->lonely_since = now_ms();
    return 0;
}

void shared_forget(struct sessions *s)
{
    struct shared *shared = &s->shared;

    if (!shared->session)
        return;
    kernel_client_unview(shared->blocks, shared->session->accounts);
    free(shared->slots);
    sessions_close_maps(&shared->fds);
    *shared = (struct shared){0};
}

static void end(struct sessions *s)
{
    struct session *session = s->shared.session;

    shared_forget(s);
    sessions_close(s, session);
}

static int add_member(struct sessions *s, uint32_t *ret, struct prcb_error *err)
{
    uint64_t free = ~s->shared.members;

    if (!free)
        return prcb_fail(err, -EBUSY, "%d clients share the session already, which is the limit",
                         MEMBERS);
    *ret = (uint32_t)__builtin_ctzll(free);
    s->shared.members |= 1ull << *ret;
    s->shared.late &= ~(1ull << *ret);
    return 0;
}

static struct prcb_bpf_client client_for_all(const struct sessions *s, bool edges)
{
    const uint64_t flight = s->shared.none ? 0 : s->config->flight;

    return (struct prcb_bpf_client){.caps = ~0ull,
                                    .pid_ns = peer_own_ns("pid"),
                                    .user_ns = peer_own_ns("user"),
                                    .all = 1,
                                    .processors = (__u16)present_processors(s->kernel->possible),
                                    .tails = s->config->tails != 0,
                                    .switches = flight != 0,
                                    .switch_elements = (__u32)((flight + BLOCK - 1) / BLOCK),
                                    /* Who may profile all may know all. */
                                    .names = 1,
                                    .edges = edges,
                                    .owners = edges,
                                    .meanwhile = edges};
}

static int make(struct sessions *s, bool edges, uint64_t waited_ms, struct prcb_error *err)
{
    /* The session belongs to nobody: to no process, and to no user whose limits it counts for. */
    const struct peer nobody = {.payer = SHARED_UID, .root = true, .same_pid_ns = true};
    const struct prcb_bpf_client client = client_for_all(s, edges);
    struct kernel_client_fds fds;
    struct session *session;
    int result;

    result = sessions_make(s, &nobody, &client, (uint32_t)s->config->accounts_per_client_max,
                           waited_ms, &session, &fds, err);
    if (result)
        return result;
    if (begin(s, session, fds)) {
        sessions_close(s, session);
        return no_memory(err);
    }
    return 0;
}

/* ---- the last switches ---- */

/* Whether the session keeps as many as it is to. */
static bool keeps_switches(const struct sessions *s)
{
    const struct prcb_bpf_client client = client_for_all(s, false);
    const struct session *session = s->shared.session;
    uint32_t elements;

    kernel_client_extra(&client, &elements);
    return elements && session && s->kernel->records[session->number].switches == elements;
}

static void end_unless_needed(struct sessions *s)
{
    if (!s->shared.members && !keeps_switches(s))
        end(s);
}

bool shared_wants_edges(const struct sessions *s)
{
    return s->config->by_whom || s->config->flight;
}

bool shared_lacks_switches(const struct sessions *s)
{
    return s->config->flight && !s->shared.all && !s->shared.none;
}

/* All threads that there are, and those to come. */
static void take_all_threads(struct sessions *s)
{
    const struct session *session = s->shared.session;
    struct prcb_bpf_client_scope *scope = kernel_scope(s->kernel, session->number);
    struct prcb_bpf_request ask = {.what = PRCB_REGISTER_ALL,
                                   .pass = PRCB_PASS_THREADS | PRCB_PASS_CHILDREN,
                                   .client = session->number};
    struct kernel_undone undone;
    int result = -EBUSY;

    if (scope) {
        kernel_scope_begin(s->kernel, scope, session->number, true, 0, false);
        kernel_count_scopes(s->kernel);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* (a) of "which threads" in threads.bpf.h */
        result = kernel_register(s->kernel, &ask, true, &undone);
        for (unsigned i = 0; i < undone.count; i++)
            sessions_release(s, s->shared.session, undone.keys[i]);
    }
    if (result || ask.full)
        log_line(LOG_LINE_WARNING, "flight: not all threads' switches are kept: %s",
                 result ? strerror(-result) : "there are more than accounts_per_client_max");
}

void shared_keep_switches(struct sessions *s, bool edges)
{
    struct shared *shared = &s->shared;
    struct prcb_error err;
    int result = 0;

    /* The one before, of another size, may have to go first. */
    if (!shared->lacking_since)
        shared->lacking_since = now_ms();
    if (!shared->session)
        result = make(s, edges, now_ms() - shared->lacking_since, &err);
    if (result && result != -EAGAIN) {
        log_line(LOG_LINE_ERROR, "flight: no switches are kept: %s", err.text);
        shared->none = true;
    }
    if (result || !sessions_settled(shared->session))
        return;
    if (!keeps_switches(s))
        log_line(LOG_LINE_WARNING, "flight: the session of an earlier prcbd has other memory for "
                                   "switches; this size is for the next, when nobody shares it");
    take_all_threads(s);
    shared->all = true;
}

/* ---- members ---- */

int shared_join(struct sessions *s, const struct peer *peer, bool edges, uint64_t waited_ms,
                struct kernel_client_fds *ret_fds, uint8_t token[16], uint32_t *ret_member,
                struct prcb_error *err)
{
    struct kernel_client_fds fds;
    int result = may_join(peer, err);

    if (!result && !s->shared.session)
        result = make(s, edges, waited_ms, err);
    if (result)
        return result;
    fds = sessions_duplicate(&s->shared.fds);
    result = fds.accounts < 0
                 ? prcb_fail(err, -EMFILE, "prcbd has no free descriptor; try again later")
                 : add_member(s, ret_member, err);
    if (result) {
        sessions_close_maps(&fds);
        end_unless_needed(s);
        return result;
    }
    memcpy(token, s->kernel->records[s->shared.session->number].token, 16);
    *ret_fds = fds;
    return 0;
}

int shared_rejoin(struct sessions *s, const struct peer *peer, const uint8_t token[16],
                  uint32_t *ret_member, struct prcb_error *err)
{
    int result = may_join(peer, err);

    if (result)
        return result;
    if (!s->shared.session ||
        !sessions_same_token(s->kernel->records[s->shared.session->number].token, token))
        return prcb_fail(err, -ESTALE,
                         "the session no longer exists: it ended, or prcbd was replaced");
    return add_member(s, ret_member, err);
}

void shared_leave(struct sessions *s, uint32_t member)
{
    s->shared.members &= ~(1ull << member);
    end_unless_needed(s);
}

void shared_take_over(struct sessions *s)
{
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        struct session *session = &s->all[i];
        struct kernel_client_fds fds;

        if (session->state != SESSION_USED || session->uid != SHARED_UID)
            continue;
        if (s->shared.session || kernel_client_fds(s->kernel, session->number, &fds) ||
            begin(s, session, fds))
            sessions_close(s, session);
        else
            s->shared.unsure_until = now_ms() + LONELY_MS;
    }
}

/* ---- accounts of threads that have ended ---- */

/* The first element holds the head. */
static const struct prcb_account_block *block_of(const struct shared *shared, uint32_t slot)
{
    return &shared->blocks[slot + 1];
}

/* Reads what the programs keep in the account, which nobody else can write: the thread made its
 * last switch. Acquire: pairs with prcb_seq_end of that switch; the generation is read after it,
 * and checked once more by the program that frees. */
static bool has_ended(const struct prcb_account_block *block)
{
    return !(__atomic_load_n(&block->seq, __ATOMIC_ACQUIRE) & 1) &&
           __atomic_load_n(&block->state, __ATOMIC_RELAXED) == PRCB_STATE_EXITED &&
           __atomic_load_n(&block->generation, __ATOMIC_RELAXED);
}

/* Returns the slot's notes, about the account that is in it now. now: the caller passes it, for
 * what is noted here must not be later than what it is compared with. */
static struct shared_slot *slot_of(struct shared *shared, uint32_t number, uint64_t now)
{
    struct shared_slot *slot = &shared->slots[number];
    uint32_t generation = __atomic_load_n(&block_of(shared, number)->generation, __ATOMIC_RELAXED);

    if (slot->generation != generation)
        *slot = (struct shared_slot){.generation = generation, .since = (uint32_t)now};
    return slot;
}

static void give_up(struct sessions *s, uint32_t number, uint32_t generation)
{
    bool live = false;

    /* The account is of an ended thread: nobody writes it any more, so there is no need to wait. */
    if (!kernel_give_up(s->kernel, s->shared.session->number, (uint64_t)generation << 32 | number,
                        &live) &&
        live)
        kernel_free(s->kernel, s->shared.session->number, number);
}

/* Returns whether a member has not released it and is waited for. */
static bool is_awaited(const struct shared *shared, const struct shared_slot *slot)
{
    return shared->members & ~shared->late & ~slot->released || now_ms() < shared->unsure_until;
}

void shared_release(struct sessions *s, uint32_t member, uint64_t key)
{
    struct shared *shared = &s->shared;
    uint32_t number = (uint32_t)key, generation = (uint32_t)(key >> 32);
    struct shared_slot *slot;

    shared->late &= ~(1ull << member);
    if (number >= shared->session->accounts || !has_ended(block_of(shared, number)))
        return;
    slot = slot_of(shared, number, now_ms());
    if (slot->generation != generation)
        return;
    slot->released |= 1ull << member;
    if (!is_awaited(shared, slot))
        give_up(s, number, generation);
}

void shared_look(struct sessions *s)
{
    struct shared *shared = &s->shared;
    uint64_t now = now_ms();

    if (!shared->session || !sessions_settled(shared->session))
        return;
    if (shared->members || keeps_switches(s))
        shared->lonely_since = now;
    if (now - shared->lonely_since > LONELY_MS) {
        end(s);
        return;
    }
    for (uint32_t i = 0; i < shared->session->accounts; i++) {
        struct shared_slot *slot;

        if (!has_ended(block_of(shared, i)))
            continue;
        slot = slot_of(shared, i, now);
        if (is_awaited(shared, slot) && (uint32_t)now - slot->since < SHARED_GRACE_MS)
            continue;
        shared->late |= shared->members & ~slot->released;
        give_up(s, i, slot->generation);
    }
}
