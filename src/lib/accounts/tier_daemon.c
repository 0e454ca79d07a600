/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The daemon tier: prcbd loads the programs and decides what may be profiled; it is asked over
 * a socket (client.h) and hands over maps, which are read here as the bpf tier reads its own
 * (mapped.c). A daemon that was restarted is found again at the next request; reading needs
 * none.
 */
#include "now.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "block_abi.h"
#include "cgroup.h"
#include "client.h"
#include "client_programs.h"
#include "processor_map.h"
#include "switch_rings.h"

#define CGROUP2_MAGIC 0x63677270
#define COMES_BACK_MS 3000 /* how long a daemon that is restarted is waited for */
#define LOOK_AGAIN_MS 20

struct daemon_state {
    struct client client;
    pid_t owner;
    uint8_t token[WIRE_TOKEN];
    struct cgroup_list cgroups;        /* those that are followed */
    uint64_t moved;                    /* processes moved into it that were looked for */
    struct processor_map processors;   /* with PRCB_OPEN_INTERRUPTED, where prcbd has them */
    char no_interrupted[256];          /* why not */
    bool shared;                       /* the session has other readers */
    uint32_t *hidden;                  /* mapped.hidden */
    struct wire_release_some released; /* that prcbd was not told of yet */
    struct client_programs programs, processor_programs;
    bool away; /* it was waited for and did not come back: questions no longer wait for it */
    bool late; /* the daemon did not answer in time when it was last asked for these */
};

static void begin_asking(struct prcb *p)
{
    client_start(&p->daemon->client);
    if (p->flags & PRCB_OPEN_HURRY)
        client_hurry(&p->daemon->client);
}

static int open_session(struct prcb *p, uint32_t accounts, struct wire_open_answer *ret,
                        struct client_arrival *arrival, struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    struct wire_open open = {.accounts = accounts};
    struct client_question q = {WIRE_OPEN, &open, sizeof(open), sizeof(*ret), ret, sizeof(*ret)};

    if (s->shared) {
        open.flags = WIRE_OPEN_SHARED | (p->flags & PRCB_OPEN_EDGES ? WIRE_OPEN_EDGES : 0);
        memcpy(open.token, s->token, sizeof(open.token));
        return client_closed(client_ask(&s->client, &q, arrival, err), err);
    }
    /* An earlier daemon refuses flags: the session then has no registers or edges, and says so. */
    if (p->flags & PRCB_OPEN_REGISTERS && s->client.hello.hello.minor >= 1)
        open.flags |= WIRE_OPEN_REGISTERS;
    if (p->flags & PRCB_OPEN_EDGES && s->client.hello.hello.minor >= 2)
        open.flags |= WIRE_OPEN_EDGES;
    if (p->flags & PRCB_OPEN_TAILS && s->client.hello.hello.minor >= 6)
        open.flags |= WIRE_OPEN_TAILS;
    if (p->flags & PRCB_OPEN_SWITCHES && s->client.hello.hello.minor >= 7)
        open.flags |= WIRE_OPEN_SWITCHES;
    if (p->flags & PRCB_OPEN_OBJECTS && s->client.hello.hello.minor >= 8)
        open.flags |= WIRE_OPEN_OBJECTS;
    if (p->flags & PRCB_OPEN_OWNERS && s->client.hello.hello.minor >= 9)
        open.flags |= WIRE_OPEN_OWNERS;
    if (p->flags & PRCB_OPEN_MEANWHILE && s->client.hello.hello.minor >= 11)
        open.flags |= WIRE_OPEN_MEANWHILE;
    memcpy(open.token, s->token, sizeof(open.token));
    return client_closed(client_ask(&s->client, &q, arrival, err), err);
}

/* The session goes on with a daemon that was restarted. */
static int reconnect(struct prcb *p, struct prcb_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    struct daemon_state *s = p->daemon;
    struct wire_open_answer answer;
    struct client_arrival arrival;
    int result = 0;

    for (int ms = 0; ms < COMES_BACK_MS && !(ms && client_late(&s->client)); ms += LOOK_AGAIN_MS) {
        result = client_connect(&s->client, err);
        if (!result || (result != -ENOENT && result != -ECONNREFUSED && !client_cut_off(result)))
            break;
        /* It was waited for once: a caller may have as many questions as threads that ended. */
        if (s->away)
            return result;
        nanosleep(&pause, NULL);
    }
    s->away = result != 0;
    if (!result)
        result = open_session(p, p->max_threads, &answer, &arrival, err);
    if (result) {
        client_disconnect(&s->client);
        return result;
    }
    client_close_fds(&arrival);
    return answer.resumed ? 0 : prcb_fail(err, -ESTALE, "prcbd no longer has the session");
}

static int ask(struct prcb *p, const struct client_question *q, struct client_arrival *arrival,
               struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    int result = -ENOTCONN;

    begin_asking(p);
    if (s->owner != getpid())
        return prcb_fail(err, -EBADF,
                         "the session belongs to process %d, which forked this one: open another",
                         (int)s->owner);
    s->late = false;
    if (s->client.socket >= 0)
        result = client_ask(&s->client, q, arrival, err);
    if (client_cut_off(result)) {
        result = reconnect(p, err);
        if (!result)
            result = client_ask(&s->client, q, arrival, err);
        if (client_cut_off(result))
            result = prcb_fail(err, result, "prcbd: %s: it closes the connection",
                               wire_type_name(q->type));
    }
    return result;
}

/* A question whose answer brings no descriptors. */
static int ask_plain(struct prcb *p, uint16_t type, const void *payload, size_t size, void *answer,
                     size_t answer_size, struct prcb_error *err)
{
    struct client_question q = {type, payload, size, answer_size, answer, answer_size};
    struct client_arrival arrival;
    int result = ask(p, &q, &arrival, err);

    if (!result)
        client_close_fds(&arrival);
    return result;
}

/* ---- ended threads of a shared session ---- */

static int tell_released(struct prcb *p, struct prcb_error *err)
{
    struct wire_release_some *released = &p->daemon->released;
    size_t size =
        offsetof(struct wire_release_some, keys) + released->count * sizeof(released->keys[0]);
    int result = 0;

    if (released->count)
        result = ask_plain(p, WIRE_RELEASE_SOME, released, size, NULL, 0, err);
    if (!result)
        released->count = 0;
    return result;
}

/* Hides the account from now on; prcbd is told later, with others. */
static int release_shared(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    struct wire_release_some *released = &p->daemon->released;
    uint32_t slot = (uint32_t)key, generation = (uint32_t)(key >> 32);
    const struct prcb_account_block *block;
    int result;

    if (slot >= mapped_used(&p->mapped) || mapped_is_hidden(&p->mapped, slot, generation))
        return prcb_fail(err, -ESTALE, "the account was released already");
    block = mapped_block(&p->mapped, slot);
    if (__atomic_load_n(&block->generation, __ATOMIC_RELAXED) != generation)
        return prcb_fail(err, -ESTALE, "the account was released already");
    if (__atomic_load_n(&block->state, __ATOMIC_RELAXED) != PRCB_STATE_EXITED)
        return prcb_fail(err, -EOPNOTSUPP,
                         "the session is shared: only accounts of ended threads are released");
    if (released->count == WIRE_KEYS) {
        result = tell_released(p, err);
        if (result)
            return result;
    }
    p->daemon->hidden[slot] = generation;
    released->keys[released->count++] = key;
    return 0;
}

/* Of all threads that have ended. How many, or -errno. */
static int release_ended(struct prcb *p, struct prcb_error *err)
{
    int count = 0;

    for (uint32_t slot = 0; slot < mapped_used(&p->mapped); slot++) {
        const struct prcb_account_block *block = mapped_block(&p->mapped, slot);
        uint32_t generation = __atomic_load_n(&block->generation, __ATOMIC_RELAXED);
        int result;

        if (__atomic_load_n(&block->state, __ATOMIC_RELAXED) != PRCB_STATE_EXITED || !generation ||
            mapped_is_hidden(&p->mapped, slot, generation))
            continue;
        result = release_shared(p, (uint64_t)generation << 32 | slot, err);
        if (result && result != -ESTALE && result != -EOPNOTSUPP)
            return result;
        count += !result;
    }
    return count;
}

/* ---- opening ---- */

/* Maps the first page of what was passed, if it is memory that this library reads. *ret_head is a
 * copy: what lies in the memory may be something else at the next look. */
static const struct prcb_head_block *map_head(int fd, struct prcb_head_block *ret_head,
                                              struct prcb_error *err)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    const struct prcb_head_block *head;

    if (client_check_map(fd, err))
        return NULL;
    head = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED) {
        prcb_fail(err, -errno, "the memory that prcbd passed cannot be mapped: %s",
                  strerror(errno));
        return NULL;
    }
    memcpy(ret_head, head, sizeof(*ret_head));
    if (ret_head->magic == PRCB_ABI_MAGIC && ret_head->abi_major == PRCB_ABI_MAJOR &&
        ret_head->account_size >= sizeof(struct prcb_account_block) &&
        ret_head->account_stride >= ret_head->account_size && !(ret_head->account_stride % 64))
        return head;
    prcb_fail(err, -EPROTONOSUPPORT,
              "the memory that prcbd passed has a format that this library cannot read");
    munmap((void *)head, bytes);
    return NULL;
}

#define PROCESSORS_MOST 65536

/* The accounts, and what comes behind them: tails, and rings of switch records. The kernel refuses
 * what it does not have. */
static int map_accounts(struct prcb *p, int fd, uint32_t accounts,
                        const struct prcb_head_block *head, struct prcb_error *err)
{
    /* A session that is shared has what others asked for. */
    uint32_t behind = head->features & PRCB_FEATURE_TAILS ? head->tail_processors : 0;
    uint32_t tails = p->flags & PRCB_OPEN_TAILS ? behind : 0;
    uint32_t rings = p->flags & PRCB_OPEN_SWITCHES && head->features & PRCB_FEATURE_SWITCHES
                         ? head->switch_processors
                         : 0;
    size_t first = (size_t)accounts + 1 + (size_t)behind * PRCB_CAUSE_MAX; /* of the rings */
    size_t elements = rings   ? first + rings * ((size_t)head->switch_elements + 1)
                      : tails ? first
                              : (size_t)accounts + 1;
    struct window *window = &p->mapped.accounts_window;
    int result = -EINVAL;

    if ((!tails && !rings) || (behind <= PROCESSORS_MOST && rings <= PROCESSORS_MOST &&
                               head->account_stride == sizeof(struct prcb_account_block)))
        result =
            window_open(fd, elements * sizeof(struct prcb_account_block), tails || rings, window);
    if (result)
        return prcb_fail(err, result, "the memory that prcbd passed cannot be mapped: %s",
                         strerror(-result));
    p->mapped.head = (const void *)window->at;
    p->mapped.tail_processors = tails;
    result = rings ? switch_rings_open(window->at + first * head->account_stride, rings,
                                       head->switch_elements, head->features & PRCB_FEATURE_READY,
                                       &p->mapped.switches)
                   : 0;
    return result ? prcb_fail(err, result, "the switch records that prcbd passed: %s",
                              strerror(-result))
                  : 0;
}

static int map_session(struct prcb *p, const struct wire_open_answer *answer,
                       const struct client_arrival *arrival, struct prcb_error *err)
{
    const struct prcb_head_block *first;
    struct prcb_head_block head;

    p->mapped.clock = map_head(arrival->fds[1], &head, err);
    if (!p->mapped.clock)
        return err->code;
    first = map_head(arrival->fds[0], &head, err);
    if (!first)
        return err->code;
    munmap((void *)first, (size_t)sysconf(_SC_PAGESIZE));
    if (map_accounts(p, arrival->fds[0], answer->accounts, &head, err))
        return err->code;
    if (!(p->flags & PRCB_OPEN_TAILS))
        head.features &= ~PRCB_FEATURE_TAILS;
    if (!(p->flags & PRCB_OPEN_SWITCHES))
        head.features &= ~PRCB_FEATURE_SWITCHES;
    if (!(p->flags & PRCB_OPEN_EDGES))
        head.features &= ~PRCB_FEATURE_EDGES;
    if (head.account_count >= p->mapped.accounts_window.bytes / head.account_stride)
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "the memory that prcbd passed is shorter than it says");
    /* In the first element is the head. */
    p->mapped.accounts = (const char *)p->mapped.head + head.account_stride;
    p->mapped.count = p->max_threads = head.account_count;
    p->mapped.stride = head.account_stride;
    p->mapped.features = head.features;
    if (head.abi_minor < 6) /* it was not told yet whether they are there */
        p->mapped.features |= PRCB_FEATURE_MIGRATIONS | PRCB_FEATURE_SYSCALLS | PRCB_FEATURE_FILES;
    if (head.abi_minor < 9)
        p->mapped.features |= ACCOUNT_FEATURE_OLD_WORD;
    return 0;
}

/* The third descriptor, where the daemon has edges. */
static int map_edges(struct prcb *p, const struct client_arrival *arrival, struct prcb_error *err)
{
    size_t bytes = (size_t)p->mapped.count * sizeof(struct prcb_edge_block);
    int result;

    if (!(p->mapped.features & PRCB_FEATURE_EDGES) || arrival->fds[2] < 0)
        return 0;
    if (client_check_map(arrival->fds[2], err))
        return err->code;
    result = window_open(arrival->fds[2], bytes, false, &p->mapped.edges_window);
    return result ? prcb_fail(err, result, "the edges that prcbd passed cannot be mapped: %s",
                              strerror(-result))
                  : 0;
}

/* What the library leaves out for this session: accounts of threads that ended and were released,
 * while other readers have not. What ended before the session was opened is none of it. */
static int hide_released(struct prcb *p, struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;

    s->hidden = calloc(p->mapped.count, sizeof(*s->hidden));
    if (!s->hidden)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->mapped.hidden = s->hidden;
    return release_ended(p, err) < 0 ? err->code : 0;
}

/* One of its own, with as much room as the one for all threads would have, where there is so much,
 * if the caller named no number. */
static int open_roomy(struct prcb *p, struct wire_open_answer *ret, struct client_arrival *arrival,
                      struct prcb_error *err)
{
    const struct wire_hello_answer *limits = &p->daemon->client.hello;
    uint32_t room = limits->accounts_most;
    int result;

    do {
        result = open_session(p, room, ret, arrival, err);
        room /= 2;
    } while ((result == -EDQUOT || result == -ENOSPC) && room > limits->accounts_default);
    return result == -EDQUOT || result == -ENOSPC ? open_session(p, 0, ret, arrival, err) : result;
}

/* The session that is shared, where there is one for this client; else one of its own. */
static int open_either(struct prcb *p, struct wire_open_answer *ret, struct client_arrival *arrival,
                       struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    bool all = p->flags & PRCB_OPEN_SHARED && s->client.hello.may & WIRE_MAY_PROFILE_ALL;
    int result = -EPERM;

    s->shared = all && s->client.hello.hello.minor >= (p->flags & PRCB_OPEN_EDGES ? 10 : 5);
    if (s->shared)
        result = open_session(p, 0, ret, arrival, err);
    if (s->shared && !client_refused(result))
        return result;
    s->shared = false;
    /* Those that prcbd keeps for all are meant: one's own are not worth their memory. */
    if (p->flags & PRCB_OPEN_SHARED)
        p->flags &= ~(uint32_t)PRCB_OPEN_SWITCHES;
    return all && !p->max_asked ? open_roomy(p, ret, arrival, err)
                                : open_session(p, p->max_asked, ret, arrival, err);
}

/* Sessions do without where this cannot be had, and say so. */
static void map_processors(struct prcb *p)
{
    struct daemon_state *s = p->daemon;
    struct prcb_error why = {0};
    int fd;

    if (!(p->mapped.features & PRCB_FEATURE_INTERRUPTED)) {
        p->mapped.no_interrupted = "prcbd does not count what interrupts take of a thread's run "
                                   "(interrupted in prcbd.conf)";
        return;
    }
    fd = client_processors_map(NULL, &why);
    if (fd >= 0 && !processor_map_open(fd, &s->processors, &why))
        p->mapped.processors = &s->processors;
    if (fd >= 0)
        close(fd);
    if (p->mapped.processors) {
        client_ask_programs(&s->client, WIRE_OF_PROCESSORS, &s->processor_programs);
        return;
    }
    memcpy(s->no_interrupted, why.text, sizeof(s->no_interrupted) - 1);
    p->mapped.no_interrupted = s->no_interrupted;
}

/* Never connects again, and waits a moment only: a session goes on without its daemon. */
static void look_at_programs(struct prcb *p)
{
    struct daemon_state *s = p->daemon;
    int result = -ENOTCONN;

    s->programs.current = s->processor_programs.current = false;
    if (s->client.socket < 0 || s->owner != getpid() || s->late)
        return;
    client_start(&s->client);
    client_hurry(&s->client);
    result = client_ask_programs(&s->client, WIRE_OF_ACCOUNTS, &s->programs);
    if (!result && p->mapped.processors)
        result = client_ask_programs(&s->client, WIRE_OF_PROCESSORS, &s->processor_programs);
    s->late = result == -ETIMEDOUT;
}

static int daemon_program(struct prcb *p, uint32_t i, struct prcb_program *ret)
{
    struct daemon_state *s = p->daemon;

    if (!i)
        look_at_programs(p);
    return i < s->programs.count
               ? client_program(&s->programs, i, ret)
               : client_program(&s->processor_programs, i - s->programs.count, ret);
}

static int daemon_open(struct prcb *p, struct prcb_error *err)
{
    struct prcb_error unwanted;
    struct wire_open_answer answer;
    struct client_arrival arrival;
    int result;

    err = err ? err : &unwanted;
    p->daemon = calloc(1, sizeof(*p->daemon));
    if (!p->daemon)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->daemon->client.socket = -1;
    p->daemon->owner = getpid();
    begin_asking(p);
    result = client_connect(&p->daemon->client, err);
    /* What was missed counts from here on. Before the session: what is asked after that waits until
     * the programs know of it. */
    if (!result)
        client_ask_programs(&p->daemon->client, WIRE_OF_ACCOUNTS, &p->daemon->programs);
    if (!result)
        result = client_named(open_either(p, &answer, &arrival, err), err);
    if (result)
        return result;
    memcpy(p->daemon->token, answer.token, sizeof(p->daemon->token));
    result = map_session(p, &answer, &arrival, err);
    if (!result)
        result = map_edges(p, &arrival, err);
    client_named(result, err);
    client_close_fds(&arrival);
    if (!result && p->flags & PRCB_OPEN_INTERRUPTED)
        map_processors(p);
    if (!result && p->daemon->shared)
        result = hide_released(p, err);
    return result;
}

static void daemon_close(struct prcb *p)
{
    struct daemon_state *s = p->daemon;

    if (!s)
        return;
    switch_rings_close(p->mapped.switches);
    window_close(&p->mapped.edges_window);
    window_close(&p->mapped.accounts_window);
    if (p->mapped.clock)
        munmap((void *)p->mapped.clock, (size_t)sysconf(_SC_PAGESIZE));
    memset(&p->mapped, 0, sizeof(p->mapped));
    processor_map_close(&s->processors);
    client_disconnect(&s->client);
    cgroup_list_free(&s->cgroups);
    free(s->hidden);
    free(s);
    p->daemon = NULL;
}

/* ---- what is profiled ---- */

/* Threads are asked for until none is new. A daemon that has more of them after this time is not
 * counting. */
#define PASSES_NS 60000000000ull

static int endless(uint64_t began, struct prcb_error *err)
{
    if (now_ns() - began < PASSES_NS)
        return 0;
    return prcb_fail(err, -ETIMEDOUT,
                     "prcbd keeps finding new threads: the process creates them too fast");
}

static int profile(struct prcb *p, enum wire_what what, pid_t number, unsigned follow,
                   struct wire_profile_answer *ret, struct prcb_error *err)
{
    struct wire_profile request = {.what = what, .number = (uint32_t)number, .follow = follow};

    return ask_plain(p, WIRE_PROFILE, &request, sizeof(request), ret, sizeof(*ret), err);
}

static int judge(struct prcb *p, const struct wire_profile_answer *answer, const char *what,
                 pid_t number, struct prcb_error *err)
{
    if (!answer->seen)
        return mapped_not_seen(what, number, err);
    if (answer->refused)
        return prcb_fail(err, -EPERM,
                         "%s %d: not yours to profile: it runs as another user, or a program that "
                         "is set-user-id, has capabilities or may not be read",
                         what, (int)number);
    if (answer->crowded)
        return prcb_fail(err, -EBUSY, "%s %d: as many others profile it already as can", what,
                         (int)number);
    return answer->full ? mapped_no_room(p, err) : 0;
}

static int daemon_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err)
{
    struct wire_profile_answer answer;
    int result = profile(p, WIRE_THREAD, tid, follow, &answer, err);

    return result ? result : judge(p, &answer, "thread", tid, err);
}

/* It asks more than once, as bpf_profile_process does. */
static int daemon_profile_process(struct prcb *p, pid_t pid, unsigned follow,
                                  struct prcb_error *err)
{
    struct wire_profile_answer answer;
    uint64_t began = now_ns();
    bool seen = false;

    do {
        int result = profile(p, WIRE_PROCESS, pid, follow, &answer, err);

        if (!result)
            result = endless(began, err);
        if (result)
            return result;
        seen |= answer.seen > 0;
    } while (answer.added && !answer.refused && follow & PRCB_FOLLOW_THREADS);
    if (seen && !answer.seen)
        return 0; /* it has ended meanwhile */
    return judge(p, &answer, "process", pid, err);
}

static int set_scope(struct prcb *p, const struct wire_scope *scope, struct prcb_error *err)
{
    struct wire_count answer;
    int result = ask_plain(p, WIRE_SCOPE, scope, sizeof(*scope), &answer, sizeof(answer), err);

    if (!result)
        p->daemon->moved = answer.count;
    return result;
}

static int daemon_profile_all(struct prcb *p, struct prcb_error *err)
{
    const struct wire_scope scope = {.all = 1};
    struct wire_profile_answer answer = {0};
    uint64_t began = now_ns();
    int result = set_scope(p, &scope, err);

    if (result)
        return result;
    do {
        result = profile(p, WIRE_ALL, 0, PRCB_FOLLOW_ALL, &answer, err);
        if (!result)
            result = endless(began, err);
    } while (!result && answer.added);
    return result;
}

/* Does what register_cgroup of the bpf tier does. Threads of others are left out. */
static int register_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct procfs files = {.root = -1}; /* a buffer for reading lists */
    struct pid_list list = {0};
    unsigned added, refused = 0, seen;
    uint64_t began = now_ns();
    int result;

    do {
        added = seen = refused = 0;
        list.count = 0;
        result = cgroup_list_threads(&files, path, &list, err);
        for (size_t i = 0; !result && i < list.count; i++) {
            struct wire_profile_answer answer;

            result = profile(p, WIRE_THREAD, list.items[i], PRCB_FOLLOW_ALL, &answer, err);
            if (!result)
                result = endless(began, err);
            if (result)
                break;
            added += answer.added;
            seen += answer.seen;
            refused += answer.refused;
        }
    } while (!result && added);
    pid_list_free(&list);
    procfs_close(&files);
    if (!result && refused)
        result = prcb_fail(err, -EPERM, "cgroup %s: %u of its %u threads are not yours to profile",
                           path, refused, seen);
    return result;
}

/* Follows the cgroup instead of those before, or beside them. */
static int scope_cgroup(struct prcb *p, const char *path, bool add, struct prcb_error *err)
{
    struct wire_scope scope = {.add = add};
    struct statfs fs;
    struct stat st;

    if (stat(path, &st) || statfs(path, &fs))
        return prcb_fail(err, -errno, "cgroup %s: %s", path, strerror(errno));
    scope.cgroup = st.st_ino;
    scope.cgroup_v2 = fs.f_type == CGROUP2_MAGIC;
    return set_scope(p, &scope, err);
}

/* Only those that were followed before. */
static void scope_again(struct prcb *p)
{
    const struct cgroup_list *cgroups = &p->daemon->cgroups;
    const struct wire_scope none = {0};

    set_scope(p, &none, NULL);
    for (size_t i = 0; i < cgroups->count; i++)
        scope_cgroup(p, cgroups->paths[i], i > 0, NULL);
}

static int daemon_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    bool add = s->cgroups.count && !cgroup_list_has(&s->cgroups, path);
    int result;

    if (add && s->client.hello.hello.minor < 6)
        return prcb_fail(err, -EBUSY,
                         "cgroup %s: this session follows another cgroup already, and prcbd is too "
                         "old for several",
                         path);
    if (s->client.hello.abi_minor >= 4 && !(p->mapped.features & PRCB_FEATURE_CGROUP))
        return mapped_no_cgroups(path, err);
    result = s->cgroups.count && !add ? 0 : scope_cgroup(p, path, add, err);
    if (result)
        return result;
    result = register_cgroup(p, path, err);
    if (!result && cgroup_list_add(&s->cgroups, path))
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (result)
        scope_again(p);
    return result;
}

static int daemon_refresh(struct prcb *p, struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    struct wire_count moved;
    int result;

    if (!s->cgroups.count)
        return 0;
    result = ask_plain(p, WIRE_REFRESH, NULL, 0, &moved, sizeof(moved), err);
    if (result || moved.count == s->moved)
        return result;
    s->moved = moved.count;
    for (size_t i = 0; i < s->cgroups.count && !result; i++)
        result = register_cgroup(p, s->cgroups.paths[i], err);
    return result;
}

/* ---- giving back ---- */

static int daemon_release(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    if (p->daemon->shared)
        return release_shared(p, key, err);
    struct wire_release request = {.key = key};

    return ask_plain(p, WIRE_RELEASE, &request, sizeof(request), NULL, 0, err);
}

static int daemon_release_exited(struct prcb *p, struct prcb_error *err)
{
    struct wire_count released;
    int result;

    if (p->daemon->shared)
        return release_ended(p, err);
    result = ask_plain(p, WIRE_RELEASE_EXITED, NULL, 0, &released, sizeof(released), err);

    return result ? result : (int)released.count;
}

static int daemon_kernel_stack(struct prcb *p, uint64_t key, pid_t tid,
                               char ret[KERNEL_STACK_BYTES], struct prcb_error *err)
{
    const struct wire_kernel_stack request = {.key = key, .tid = (uint32_t)tid};
    struct wire_kernel_stack_answer answer;
    struct client_question q = {WIRE_KERNEL_STACK, &request,           sizeof(request), 1,
                                answer.text,       sizeof(answer.text)};
    struct client_arrival arrival;
    int result;

    if (p->daemon->client.hello.hello.minor < 3)
        return prcb_fail(err, -EOPNOTSUPP, "this prcbd has no stacks in the kernel: update it");
    result = ask(p, &q, &arrival, err);
    if (result)
        return result;
    client_close_fds(&arrival);
    answer.text[sizeof(answer.text) - 1] = '\0';
    memcpy(ret, answer.text, sizeof(answer.text));
    return 0;
}

/* What was released since the last walk prcbd is told in one message or a few. */
static int daemon_walk(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                       struct prcb_error *err)
{
    int result = p->daemon->shared ? tell_released(p, err) : 0;

    return result ? result : mapped_walk(p, since_ns, fn, ctx, err);
}

const struct tier tier_daemon = {
    .number = PRCB_TIER_DAEMON,
    .name = "daemon",
    .open = daemon_open,
    .close = daemon_close,
    .profile_thread = daemon_profile_thread,
    .profile_process = daemon_profile_process,
    .profile_cgroup = daemon_profile_cgroup,
    .profile_all = daemon_profile_all,
    .refresh = daemon_refresh,
    .thread_open = mapped_thread_open,
    .read = mapped_read,
    .read_times = mapped_read_times,
    .walk = daemon_walk,
    .release = daemon_release,
    .release_exited = daemon_release_exited,
    .status = mapped_status,
    .absent_reason = mapped_absent_reason,
    .program = daemon_program,
    .limit = mapped_limit,
    .kernel_stack = daemon_kernel_stack,
};
