/* SPDX-License-Identifier: BSD-2-Clause */
#include "sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "error.h"
#include "log.h"
#include "now.h"
#include "present.h"

#define HELD_WAIT_MS      20   /* for what was let go of a moment ago */
#define END_WAIT_MS       3000 /* for sessions that end */
#define LOOK_MS           5    /* all maps of the system are searched, so not more often */
#define FREE_AT_ONCE      256  /* accounts, some microseconds each */
#define SWITCHES_PER_USER 2    /* sessions with switch records, megabytes each */

/* The bytes of a map with this many accounts, and other elements after them, rounded as the
 * kernel does it. */
static uint64_t bytes_of(uint32_t accounts, uint32_t extra)
{
    return (((uint64_t)accounts + 1 + extra) * sizeof(struct prcb_account_block) + 4095) / 4096 *
           4096;
}

static uint32_t extra_of(const struct prcb_bpf_client *client)
{
    uint32_t ignored;

    return kernel_client_extra(client, &ignored);
}

/* The bytes of the edges of as many accounts, if there are any. */
static uint64_t edge_bytes_of(uint32_t accounts, bool edges)
{
    return edges ? ((uint64_t)accounts * sizeof(struct prcb_edge_block) + 4095) / 4096 * 4096 : 0;
}

/* ---- limits ---- */

struct usage {
    uint64_t sessions, user_sessions, user_switches, accounts, user_accounts, bytes, user_bytes;
};

static struct usage usage_of(const struct sessions *s, uid_t uid)
{
    struct usage ret = {0};

    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        const struct session *session = &s->all[i];
        uint64_t bytes;

        if (session->state == SESSION_FREE)
            continue;
        bytes = bytes_of(session->accounts, s->kernel->records[i].extra) +
                edge_bytes_of(session->accounts, s->kernel->records[i].edges);
        ret.sessions++;
        ret.bytes += bytes;
        ret.accounts += session->accounts;
        if (session->uid != uid)
            continue;
        ret.user_sessions++;
        ret.user_switches += s->kernel->records[i].switches != 0;
        ret.user_accounts += session->accounts;
        ret.user_bytes += bytes;
    }
    for (uint32_t i = 0; i < s->held.count; i++) {
        const struct held_map *map = &s->held.maps[i];

        ret.bytes += map->bytes;
        ret.accounts += map->accounts;
        ret.user_accounts += map->uid == uid ? map->accounts : 0;
        ret.user_bytes += map->uid == uid ? map->bytes : 0;
    }
    return ret;
}

static int check_limits(struct sessions *s, const struct peer *peer, uint32_t accounts,
                        const struct prcb_bpf_client *client, struct prcb_error *err)
{
    const struct prcbd_config *c = s->config;
    struct usage used = usage_of(s, peer->payer);
    uint64_t share = c->accounts_per_user;
    uint64_t bytes = bytes_of(accounts, extra_of(client)) + edge_bytes_of(accounts, client->edges);

    if (accounts > c->accounts_per_client_max || accounts > PRCB_CLIENT_ACCOUNTS - 1)
        return prcb_fail(err, -EDQUOT,
                         "a session may have %" PRIu64 " accounts, %u were asked for "
                         "(accounts_per_client_max in prcbd.conf)",
                         c->accounts_per_client_max, accounts);
    if (peer->payer != SHARED_UID && used.user_sessions >= c->sessions_per_user)
        return prcb_fail(err, -EDQUOT,
                         "your user has %" PRIu64 " sessions open, which is as many as one may "
                         "have (sessions_per_user in prcbd.conf)",
                         used.user_sessions);
    if (peer->payer != SHARED_UID && used.user_accounts + accounts > c->accounts_per_user)
        return prcb_fail(err, -EDQUOT,
                         "your user's sessions have %" PRIu64 " of %" PRIu64
                         " accounts: no %u more (accounts_per_user in prcbd.conf)",
                         used.user_accounts, c->accounts_per_user, accounts);
    if (peer->payer != SHARED_UID && used.user_bytes + bytes > c->memory_per_user)
        return prcb_fail(err, -EDQUOT,
                         "your user's sessions take %" PRIu64 " of %" PRIu64 " KiB: no %" PRIu64
                         " more (memory_per_user in prcbd.conf)",
                         used.user_bytes / 1024, c->memory_per_user / 1024, bytes / 1024);
    if (client->switches && used.user_switches >= SWITCHES_PER_USER)
        return prcb_fail(
            err, -EDQUOT,
            "%" PRIu64 " of your user's sessions keep switch records already, which is "
            "as many as one user's may; open one without (PRCB_OPEN_SWITCHES), or close "
            "another",
            used.user_switches);
    if (used.sessions >= prcbd_config_room(PRCB_CLIENT_COUNT - 1, c->sessions_per_user, peer->root))
        return prcb_fail(err, -ENOSPC, "%" PRIu64 " of %d sessions are in use, the rest is root's",
                         used.sessions, PRCB_CLIENT_COUNT - 1);
    if (used.accounts + accounts > prcbd_config_room(c->max_accounts_total, share, peer->root) ||
        used.bytes + bytes > prcbd_config_room(c->max_memory_total, c->memory_per_user, peer->root))
        return prcb_fail(err, -ENOSPC,
                         "all users' sessions together have no room for %u more accounts in "
                         "%" PRIu64 " KiB (max_accounts_total and max_memory_total in prcbd.conf)",
                         accounts, bytes / 1024);
    return 0;
}

/* ---- opening ---- */

static uint32_t free_number(const struct sessions *s)
{
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        if (s->all[i].state == SESSION_FREE)
            return i;
    }
    return 0;
}

static struct prcb_bpf_client client_of(const struct sessions *s, const struct peer *peer,
                                        const struct wire_open *open)
{
    bool edges = open->flags & WIRE_OPEN_EDGES;
    bool by_processor = open->flags & (WIRE_OPEN_TAILS | WIRE_OPEN_SWITCHES);
    uint32_t processors = by_processor ? present_processors(s->kernel->possible) : 0;

    return (struct prcb_bpf_client){.caps = peer->caps,
                                    .pid_ns = peer->pid_ns,
                                    .user_ns = peer->user_ns,
                                    .uid = peer->uid,
                                    .gid = peer->gid,
                                    .all = peer->all,
                                    .edges = edges,
                                    .owners = edges && open->flags & WIRE_OPEN_OWNERS,
                                    .names = peer->names,
                                    .meanwhile = edges && peer->names && peer->same_pid_ns &&
                                                 open->flags & WIRE_OPEN_MEANWHILE,
                                    .processors = (__u16)processors,
                                    .tails = (open->flags & WIRE_OPEN_TAILS) != 0,
                                    .switches = (open->flags & WIRE_OPEN_SWITCHES) != 0,
                                    .registers = (open->flags & WIRE_OPEN_REGISTERS) != 0,
                                    .objects = (open->flags & WIRE_OPEN_OBJECTS) != 0};
}

#define NO_MAPS ((struct kernel_client_fds){-1, -1})

void sessions_close_maps(struct kernel_client_fds *maps)
{
    if (maps->accounts >= 0)
        close(maps->accounts);
    if (maps->edges >= 0)
        close(maps->edges);
    *maps = NO_MAPS;
}

struct kernel_client_fds sessions_duplicate(const struct kernel_client_fds *maps)
{
    struct kernel_client_fds ret = {.accounts = fcntl(maps->accounts, F_DUPFD_CLOEXEC, 0),
                                    .edges = -1};

    if (maps->edges >= 0)
        ret.edges = fcntl(maps->edges, F_DUPFD_CLOEXEC, 0);
    if (ret.accounts < 0 || (maps->edges >= 0 && ret.edges < 0))
        sessions_close_maps(&ret);
    return ret;
}

static bool something_is_on_its_way(const struct sessions *s, uint64_t waited_ms)
{
    if (s->held.count && (waited_ms < HELD_WAIT_MS || now_ms() - s->done_at < HELD_WAIT_MS))
        return waited_ms < END_WAIT_MS;
    return (s->ending || s->batch.count) && waited_ms < END_WAIT_MS;
}

/* A session that has ended counts until the kernel has let go of its memory. Nobody is refused
 * because of it, and nobody gets more by opening and closing quickly: the caller waits for it. */
static int find_room(struct sessions *s, const struct peer *peer, uint32_t accounts,
                     const struct prcb_bpf_client *client, uint64_t waited_ms,
                     struct prcb_error *err)
{
    int result = check_limits(s, peer, accounts, client, err);

    if (!result)
        return 0;
    if (now_ms() - s->looked_at >= LOOK_MS)
        sessions_look_at_held(s);
    result = check_limits(s, peer, accounts, client, err);
    return result && something_is_on_its_way(s, waited_ms) ? -EAGAIN : result;
}

int sessions_make(struct sessions *s, const struct peer *peer, const struct prcb_bpf_client *client,
                  uint32_t accounts, uint64_t waited_ms, struct session **ret,
                  struct kernel_client_fds *ret_fds, struct prcb_error *err)
{
    struct kernel_record *record;
    struct session *session;
    uint32_t number;
    int result = find_room(s, peer, accounts, client, waited_ms, err);

    if (result)
        return result;
    number = free_number(s);
    record = &s->kernel->records[number];
    record->accounts = accounts;
    record->uid = peer->payer;
    record->pid = (uint32_t)peer->pid;
    record->start = peer->start;
    if (getrandom(record->token, sizeof(record->token), 0) != sizeof(record->token))
        return prcb_fail(err, -EIO, "the kernel gives no random numbers: try again later");
    result = kernel_client_make(s->kernel, number, client, ret_fds);
    if (result)
        return prcb_fail(err, result, "a map for %u accounts cannot be made: %s", accounts,
                         strerror(-result));
    session = &s->all[number];
    *session = (struct session){.state = SESSION_USED,
                                .number = number,
                                .uid = peer->payer,
                                .accounts = accounts,
                                .same_pid_ns = peer->same_pid_ns,
                                .maps = sessions_duplicate(ret_fds),
                                .pidfd = -1};
    if (session->maps.accounts < 0) {
        kernel_client_unmake(s->kernel, number);
        sessions_close_maps(ret_fds);
        *session = (struct session){.maps = NO_MAPS, .pidfd = -1};
        return prcb_fail(err, -EMFILE, "prcbd has no free descriptor; try again later");
    }
    s->used++;
    s->opening++;
    *ret = session;
    return 0;
}

int sessions_open(struct sessions *s, const struct peer *peer, const struct wire_open *open,
                  uint64_t waited_ms, struct session **ret, struct kernel_client_fds *ret_fds,
                  uint8_t token[16], struct prcb_error *err)
{
    const struct prcb_bpf_client client = client_of(s, peer, open);
    uint32_t accounts = open->accounts ? open->accounts : (uint32_t)s->config->accounts_per_client;
    int result = sessions_make(s, peer, &client, accounts, waited_ms, ret, ret_fds, err);

    if (!result)
        memcpy(token, s->kernel->records[(*ret)->number].token, 16);
    return result;
}

bool sessions_same_token(const uint8_t *a, const uint8_t *b)
{
    uint8_t differs = 0;

    /* The comparison takes the same time wherever the two differ. */
    for (int i = 0; i < 16; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}

int sessions_resume(struct sessions *s, const struct peer *peer, const uint8_t token[16],
                    struct session **ret, struct prcb_error *err)
{
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        struct session *session = &s->all[i];
        const struct kernel_record *record = &s->kernel->records[i];

        if (session->state != SESSION_WAITS || !sessions_same_token(record->token, token))
            continue;
        if (record->uid != peer->payer || record->pid != (uint32_t)peer->pid ||
            record->start != peer->start)
            break;
        session->state = SESSION_USED;
        session->same_pid_ns = peer->same_pid_ns;
        if (session->pidfd >= 0)
            close(session->pidfd);
        session->pidfd = -1;
        s->waiting--;
        s->used++;
        *ret = session;
        return 0;
    }
    return prcb_fail(
        err, -ESTALE,
        "prcbd has no session to resume for you: it was removed by prcbd --cleanup, or "
        "prcbd was replaced by one that cannot resume it; open another session");
}

/* ---- taking over ---- */

static bool still_there(struct kernel *k, const struct kernel_record *record, int pidfd)
{
    struct pollfd ask = {.fd = pidfd, .events = POLLIN};
    uint64_t start;

    return !kernel_start_of(k, (pid_t)record->pid, &start) && start == record->start &&
           !poll(&ask, 1, 0);
}

static void take_over(struct sessions *s, uint32_t number)
{
    const struct kernel_record *record = &s->kernel->records[number];
    struct session *session = &s->all[number];

    if (record->uid == SHARED_UID) {
        *session = (struct session){.state = SESSION_USED,
                                    .number = number,
                                    .uid = record->uid,
                                    .accounts = record->accounts,
                                    .maps = NO_MAPS,
                                    .pidfd = -1};
        s->used++;
        return;
    }
    *session = (struct session){.state = SESSION_WAITS,
                                .number = number,
                                .uid = record->uid,
                                .accounts = record->accounts,
                                .maps = NO_MAPS,
                                .pidfd = (int)syscall(SYS_pidfd_open, (pid_t)record->pid, 0)};
    s->waiting++;
    if (session->pidfd >= 0 && still_there(s->kernel, record, session->pidfd))
        return;
    s->waiting--;
    s->used++;
    sessions_close(s, session);
}

void sessions_start(struct sessions *s, struct kernel *k, const struct prcbd_config *config)
{
    memset(s, 0, sizeof(*s));
    s->kernel = k;
    s->config = config;
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        s->all[i].maps = NO_MAPS;
        s->all[i].pidfd = -1;
        if (__atomic_load_n(&k->records[i].used, __ATOMIC_ACQUIRE)) /* see kernel_client_make */
            take_over(s, i);
        else
            kernel_client_unmake(k, i); /* that the prcbd before did not come to begin */
    }
    if (s->waiting)
        log_line(LOG_LINE_NOTICE, "%u sessions of an earlier prcbd continue", s->waiting);
}

void sessions_look_after_waiting(struct sessions *s)
{
    for (uint32_t i = 1; s->waiting && i < PRCB_CLIENT_COUNT; i++) {
        struct session *session = &s->all[i];
        struct pollfd ask = {.fd = session->pidfd, .events = POLLIN};

        if (session->state != SESSION_WAITS || !poll(&ask, 1, 0))
            continue;
        s->waiting--;
        s->used++;
        sessions_close(s, session);
    }
}

/* ---- giving back ---- */

static bool in_batch(const struct sessions *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->batch.count; i++) {
        if (s->batch.numbers[i] == number)
            return true;
    }
    return false;
}

void sessions_close(struct sessions *s, struct session *session)
{
    if (session->maps.accounts >= 0 && !in_batch(s, session->number))
        s->opening--;
    session->state = SESSION_ENDING;
    s->used--;
    s->ending++;
}

int sessions_release(struct sessions *s, struct session *session, uint64_t key)
{
    bool live = false;
    int result = kernel_give_up(s->kernel, session->number, key, &live);

    if (result || !live)
        return result;
    if (!array_add(session->given_up, session->given_up_count, session->given_up_room,
                   (uint32_t)key))
        return 0;
    result = kernel_wait(); /* without memory at once */
    return result ? result : kernel_free(s->kernel, session->number, (uint32_t)key);
}

static void forget(struct session *session)
{
    if (session->pidfd >= 0)
        close(session->pidfd);
    sessions_close_maps(&session->maps);
    free(session->given_up);
    *session = (struct session){.maps = NO_MAPS, .pidfd = -1};
}

/* ---- in one go ---- */

bool sessions_settled(const struct session *session)
{
    return session->maps.accounts < 0;
}

static bool gather_given_up(struct sessions *s)
{
    bool any = false;

    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        struct session *session = &s->all[i];

        /* If a session ends, all its accounts go with it. */
        session->given_up_due = session->state == SESSION_USED ? session->given_up_count : 0;
        session->given_up_freed = 0;
        any |= session->given_up_due != 0;
    }
    return any;
}

bool sessions_gather(struct sessions *s)
{
    struct sessions_batch *b = &s->batch;
    uint32_t opening = 0;

    *b = (struct sessions_batch){.kernel = s->kernel};
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        const struct session *session = &s->all[i];
        bool ends = session->state == SESSION_ENDING;

        if (!ends && session->maps.accounts < 0)
            continue;
        b->maps[b->count] = ends ? NO_MAPS : session->maps;
        b->numbers[b->count++] = i;
        opening += !ends;
        if (ends)
            kernel_tell_client(s->kernel, i);
    }
    kernel_count_scopes(s->kernel);
    s->opening -= opening;
    s->ending -= b->count - opening;
    b->given_up = gather_given_up(s);
    return b->count || b->given_up;
}

void sessions_do_batch(void *batch)
{
    struct sessions_batch *b = batch;

    b->result = b->count ? kernel_clients_change(b->kernel, b->numbers, b->maps, b->count) : 0;
    if (!b->result && b->given_up)
        b->result = kernel_wait();
}

/* Notes that the programs know of a session's map, or know of it no more. */
static void settle_one(struct sessions *s, uint32_t number, bool begun)
{
    const struct kernel_record *record = &s->kernel->records[number];
    struct session *session = &s->all[number];

    if (begun) {
        sessions_close_maps(&session->maps);
        return;
    }
    held_add(&s->held, &(struct held_map){.id = record->map_id,
                                          .uid = session->uid,
                                          .accounts = session->accounts,
                                          .bytes = bytes_of(session->accounts, record->extra)});
    if (record->edges)
        held_add(&s->held, &(struct held_map){.id = record->edges_id,
                                              .uid = session->uid,
                                              .accounts = session->accounts,
                                              .bytes = edge_bytes_of(session->accounts, true)});
    forget(session);
}

void sessions_batch_done(struct sessions *s)
{
    struct sessions_batch *b = &s->batch;

    s->failed = b->result;
    s->done_at = now_ms();
    if (b->result)
        log_client("%u sessions could not begin or end: %s", b->count, strerror(-b->result));
    for (uint32_t i = 0; i < b->count; i++) {
        if (!b->result) {
            settle_one(s, b->numbers[i], b->maps[i].accounts >= 0);
            continue;
        }
        /* These go with the next batch; a session that was to begin may have to end by then. */
        if (s->all[b->numbers[i]].state == SESSION_ENDING)
            s->ending += b->maps[i].accounts < 0;
        else
            s->opening++;
    }
    b->count = 0;
    s->to_free = b->given_up && !b->result;
    b->given_up = false;
}

bool sessions_hurry(const struct sessions *s)
{
    return s->opening && !s->failed;
}

bool sessions_unsettled(const struct sessions *s)
{
    if (s->ending || s->opening)
        return true;
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        if (s->all[i].given_up_count)
            return true;
    }
    return false;
}

/* Drops the accounts that were due; others were given up meanwhile. */
static void drop_freed(struct session *session)
{
    session->given_up_count -= session->given_up_due;
    memmove(session->given_up, session->given_up + session->given_up_due,
            session->given_up_count * sizeof(*session->given_up));
    session->given_up_due = session->given_up_freed = 0;
}

bool sessions_free_some(struct sessions *s)
{
    uint32_t most = FREE_AT_ONCE;

    for (uint32_t i = 1; s->to_free && i < PRCB_CLIENT_COUNT; i++) {
        struct session *session = &s->all[i];

        if (!session->given_up_due || session->state == SESSION_ENDING)
            continue;
        for (; session->given_up_freed < session->given_up_due; session->given_up_freed++) {
            if (!most--)
                return true;
            kernel_free(s->kernel, i, session->given_up[session->given_up_freed]);
        }
        drop_freed(session);
    }
    s->to_free = false;
    return false;
}

void sessions_look_at_held(struct sessions *s)
{
    s->looked_at = now_ms();
    held_look(&s->held, s->kernel);
}
