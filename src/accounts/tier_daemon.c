/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The daemon tier: prcbd loads the programs and decides what may be profiled; it is asked over
 * a socket (wire.h) and hands over maps, which are read here as the bpf tier reads its own
 * (mapped.c). A daemon that was restarted is found again at the next request; reading needs
 * none.
 */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "block_abi.h"
#include "cgroup.h"
#include "processor_map.h"
#include "tier_daemon.h"
#include "wire.h"

#define CGROUP2_MAGIC 0x63677270
#define ANSWER_S      10   /* a daemon that takes longer does not work */
#define COMES_BACK_MS 3000 /* how long a daemon that is restarted is waited for */
#define LOOK_AGAIN_MS 20

struct daemon_state {
    int socket; /* -1: none */
    pid_t owner;
    uint32_t id;
    uint8_t token[WIRE_TOKEN];
    size_t mapped_bytes;
    char *cgroup;   /* path of the cgroup that is followed; NULL: none */
    uint64_t moved; /* processes moved into it that were looked for */
    struct wire_hello_answer hello;
    struct processor_map processors; /* with PRCB_OPEN_INTERRUPTED, where prcbd has them */
    char no_interrupted[256];        /* why not */
};

/* A message that came, its bytes and descriptors. */
struct arrival {
    uint8_t bytes[WIRE_MAX];
    struct wire_message message;
    int fds[WIRE_MAX_FDS]; /* -1: none */
};

static const char *socket_path(void)
{
    const char *path = secure_getenv("PRCB_SOCKET");

    return path && *path ? path : WIRE_DEFAULT_PATH;
}

/* ---- one request, one answer ---- */

static bool cut_off(int code)
{
    return code == -EPIPE || code == -ECONNRESET || code == -ENOTCONN;
}

static int send_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static void close_fds(struct arrival *arrival)
{
    for (int i = 0; i < WIRE_MAX_FDS; i++) {
        if (arrival->fds[i] >= 0)
            close(arrival->fds[i]);
        arrival->fds[i] = -1;
    }
}

/* Descriptors come with the first byte of a message; more than fit are closed by the
 * kernel. */
static void take_fds(struct msghdr *header, struct arrival *arrival)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(arrival->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    }
}

static size_t length_of(const uint8_t *bytes)
{
    struct wire_header header;

    memcpy(&header, bytes, sizeof(header));
    return header.length;
}

static int receive(int fd, struct arrival *ret)
{
    size_t have = 0;
    int taken;

    for (int i = 0; i < WIRE_MAX_FDS; i++)
        ret->fds[i] = -1;
    while (!(taken = wire_take(ret->bytes, have, &ret->message))) {
        union {
            struct cmsghdr align;
            char room[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
        } control;
        /* No more than this message: the next one's descriptors are the next one's. */
        size_t want = sizeof(struct wire_header);
        struct iovec part = {.iov_base = ret->bytes + have};
        struct msghdr header = {.msg_iov = &part,
                                .msg_iovlen = 1,
                                .msg_control = control.room,
                                .msg_controllen = sizeof(control.room)};
        ssize_t got;

        if (have >= want)
            want = length_of(ret->bytes);
        part.iov_len = want - have;
        got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);

        if (got < 0 && errno == EINTR)
            continue;
        if (got > 0)
            take_fds(&header, ret);
        if (got <= 0) {
            close_fds(ret);
            return got ? (errno == EAGAIN ? -ETIMEDOUT : -errno) : -ECONNRESET;
        }
        have += (size_t)got;
    }
    if (taken < 0)
        close_fds(ret);
    return taken < 0 ? taken : 0;
}

/* What the daemon refused, in its words. */
static int refusal(const struct wire_message *message, struct prcb_error *err)
{
    return prcb_fail(err, message->header.status, "%.*s", (int)message->size,
                     (const char *)message->payload);
}

struct question {
    uint16_t type;
    const void *payload;
    size_t size;
    size_t least; /* of the answer */
    void *answer;
    size_t answer_size;
};

/* On an open connection. Negative with words in *err, or cut_off without. */
static int ask_once(struct daemon_state *s, const struct question *q, struct arrival *arrival,
                    struct prcb_error *err)
{
    uint8_t bytes[WIRE_MAX];
    size_t length = wire_make(bytes, q->type, ++s->id, 0, q->payload, q->size);
    int result = send_all(s->socket, bytes, length);

    if (!result)
        result = receive(s->socket, arrival);
    if (cut_off(result))
        return result;
    if (!result && (arrival->message.header.type != q->type || arrival->message.header.id != s->id))
        result = -EBADMSG;
    if (result)
        return prcb_fail(err, result, "prcbd: %s: %s", wire_type_name(q->type),
                         result == -EBADMSG ? "it answered something else" : strerror(-result));
    if (arrival->message.header.status < 0)
        result = refusal(&arrival->message, err);
    else if (wire_answer(&arrival->message, q->least, q->answer, q->answer_size))
        result =
            prcb_fail(err, -EBADMSG, "prcbd: %s: its answer is too short", wire_type_name(q->type));
    if (result)
        close_fds(arrival);
    return result;
}

/* ---- connecting ---- */

static int connect_once(struct daemon_state *s, struct prcb_error *err)
{
    const char *path = socket_path();
    const struct timeval most = {.tv_sec = ANSWER_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return prcb_fail(err, -ENAMETOOLONG, "PRCB_SOCKET: a socket's path has at most %zu bytes",
                         sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (s->socket >= 0)
        close(s->socket);
    s->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->socket < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    setsockopt(s->socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    setsockopt(s->socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (!connect(s->socket, (const struct sockaddr *)&address, sizeof(address)))
        return 0;
    if (errno == ENOENT || errno == ECONNREFUSED)
        return prcb_fail(err, -errno, "prcbd does not run: nobody listens on %s", path);
    return prcb_fail(err, -errno, "prcbd cannot be reached on %s: %s", path, strerror(errno));
}

static int say_hello(struct daemon_state *s, struct prcb_error *err)
{
    struct wire_hello hello = {
        .magic = WIRE_MAGIC, .major = WIRE_MAJOR, .minor = WIRE_MINOR, .name = PRCB_VERSION};
    struct question q = {WIRE_HELLO,       &hello,    sizeof(hello),
                         sizeof(s->hello), &s->hello, sizeof(s->hello)};
    struct arrival arrival;
    int result = ask_once(s, &q, &arrival, err);

    if (cut_off(result))
        return prcb_fail(err, result, "prcbd closed the connection");
    if (result)
        return result;
    close_fds(&arrival);
    if (s->hello.hello.magic != WIRE_MAGIC || s->hello.hello.major != WIRE_MAJOR)
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "prcbd speaks version %u of the protocol, this library %u: update the "
                         "older one",
                         s->hello.hello.major, WIRE_MAJOR);
    if (s->hello.abi_major != PRCB_ABI_MAJOR)
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "prcbd writes blocks of version %u, this library reads %u: update the "
                         "older one",
                         s->hello.abi_major, PRCB_ABI_MAJOR);
    return 0;
}

static int open_session(struct prcb *p, uint32_t accounts, struct wire_open_answer *ret,
                        struct arrival *arrival, struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    struct wire_open open = {.accounts = accounts};
    struct question q = {WIRE_OPEN, &open, sizeof(open), sizeof(*ret), ret, sizeof(*ret)};
    int result;

    memcpy(open.token, s->token, sizeof(open.token));
    result = ask_once(s, &q, arrival, err);
    return cut_off(result) ? prcb_fail(err, result, "prcbd closed the connection") : result;
}

/* The session goes on with a daemon that was restarted. */
static int reconnect(struct prcb *p, struct prcb_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    struct daemon_state *s = p->daemon;
    struct wire_open_answer answer;
    struct arrival arrival;
    int result = 0;

    for (int ms = 0; ms < COMES_BACK_MS; ms += LOOK_AGAIN_MS) {
        result = connect_once(s, err);
        if (!result)
            result = say_hello(s, err);
        if (!result || (result != -ENOENT && result != -ECONNREFUSED && !cut_off(result)))
            break;
        nanosleep(&pause, NULL);
    }
    if (!result)
        result = open_session(p, p->max_threads, &answer, &arrival, err);
    if (result) {
        close(s->socket);
        s->socket = -1;
        return result;
    }
    close_fds(&arrival);
    return answer.resumed ? 0 : prcb_fail(err, -ESTALE, "prcbd does not know the session any more");
}

static int ask(struct prcb *p, const struct question *q, struct arrival *arrival,
               struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    int result = -ENOTCONN;

    if (s->owner != getpid())
        return prcb_fail(err, -EBADF,
                         "the session belongs to process %d, which forked this one: open another",
                         (int)s->owner);
    if (s->socket >= 0)
        result = ask_once(s, q, arrival, err);
    if (cut_off(result)) {
        result = reconnect(p, err);
        if (!result)
            result = ask_once(s, q, arrival, err);
        if (cut_off(result))
            result = prcb_fail(err, result, "prcbd: %s: it closes the connection",
                               wire_type_name(q->type));
    }
    return result;
}

/* A question whose answer brings no descriptors. */
static int ask_plain(struct prcb *p, uint16_t type, const void *payload, size_t size, void *answer,
                     size_t answer_size, struct prcb_error *err)
{
    struct question q = {type, payload, size, answer_size, answer, answer_size};
    struct arrival arrival;
    int result = ask(p, &q, &arrival, err);

    if (!result)
        close_fds(&arrival);
    return result;
}

/* ---- opening ---- */

static const struct prcb_head_block *map_head(int fd, size_t bytes, struct prcb_error *err)
{
    const struct prcb_head_block *head = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

    if (head == MAP_FAILED) {
        prcb_fail(err, -errno, "the memory that prcbd passed cannot be mapped: %s",
                  strerror(errno));
        return NULL;
    }
    if (head->magic == PRCB_ABI_MAGIC && head->abi_major == PRCB_ABI_MAJOR &&
        head->account_size >= sizeof(struct prcb_account_block) &&
        head->account_stride >= head->account_size)
        return head;
    prcb_fail(err, -EPROTONOSUPPORT, "the memory that prcbd passed is not what this library reads");
    munmap((void *)head, bytes);
    return NULL;
}

static int map_session(struct prcb *p, const struct wire_open_answer *answer,
                       const struct arrival *arrival, struct prcb_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = ((size_t)answer->accounts + 1) * sizeof(struct prcb_account_block);
    const struct prcb_head_block *head;

    if (arrival->fds[0] < 0 || arrival->fds[1] < 0)
        return prcb_fail(err, -EBADMSG, "prcbd passed no memory");
    bytes = (bytes + page - 1) / page * page;
    p->mapped.clock = map_head(arrival->fds[1], page, err);
    if (!p->mapped.clock)
        return err->code;
    head = map_head(arrival->fds[0], bytes, err);
    if (!head)
        return err->code;
    p->mapped.head = head;
    p->daemon->mapped_bytes = bytes;
    if ((uint64_t)(head->account_count + 1) * head->account_stride > bytes)
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "the memory that prcbd passed is shorter than it says");
    /* In the first element is the head. */
    p->mapped.accounts = (const char *)head + head->account_stride;
    p->max_threads = head->account_count;
    return 0;
}

/* Sessions do without where this cannot be had, and say so. */
static void map_processors(struct prcb *p)
{
    struct daemon_state *s = p->daemon;
    struct prcb_error why = {0};
    int fd;

    if (!(p->mapped.head->features & PRCB_FEATURE_INTERRUPTED)) {
        p->mapped.no_interrupted = "prcbd does not count what interrupts take of a thread's run "
                                   "(interrupted in prcbd.conf)";
        return;
    }
    fd = daemon_processors_map(&why);
    if (fd >= 0 && !processor_map_open(fd, &s->processors, &why))
        p->mapped.processors = &s->processors;
    if (fd >= 0)
        close(fd);
    if (p->mapped.processors)
        return;
    memcpy(s->no_interrupted, why.text, sizeof(s->no_interrupted) - 1);
    p->mapped.no_interrupted = s->no_interrupted;
}

static int daemon_open(struct prcb *p, struct prcb_error *err)
{
    struct prcb_error unwanted;
    struct wire_open_answer answer;
    struct arrival arrival;
    int result;

    err = err ? err : &unwanted;
    p->daemon = calloc(1, sizeof(*p->daemon));
    if (!p->daemon)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->daemon->socket = -1;
    p->daemon->owner = getpid();
    result = connect_once(p->daemon, err);
    if (!result)
        result = say_hello(p->daemon, err);
    if (!result)
        result = open_session(p, p->max_asked, &answer, &arrival, err);
    if (result)
        return result;
    memcpy(p->daemon->token, answer.token, sizeof(p->daemon->token));
    result = map_session(p, &answer, &arrival, err);
    close_fds(&arrival);
    if (!result && p->flags & PRCB_OPEN_INTERRUPTED)
        map_processors(p);
    return result;
}

static void daemon_close(struct prcb *p)
{
    struct daemon_state *s = p->daemon;

    if (!s)
        return;
    if (p->mapped.head)
        munmap((void *)p->mapped.head, s->mapped_bytes);
    if (p->mapped.clock)
        munmap((void *)p->mapped.clock, (size_t)sysconf(_SC_PAGESIZE));
    memset(&p->mapped, 0, sizeof(p->mapped));
    processor_map_close(&s->processors);
    if (s->socket >= 0)
        close(s->socket);
    free(s->cgroup);
    free(s);
    p->daemon = NULL;
}

/* ---- the processors ---- */

int daemon_processors_map(struct prcb_error *err)
{
    struct daemon_state s = {.socket = -1};
    const struct question q = {.type = WIRE_PROCESSORS};
    struct prcb_error unwanted;
    struct arrival arrival;
    int result;

    err = err ? err : &unwanted;
    result = connect_once(&s, err);
    if (!result)
        result = say_hello(&s, err);
    if (!result)
        result = ask_once(&s, &q, &arrival, err);
    if (s.socket >= 0)
        close(s.socket); /* what was passed stays */
    if (cut_off(result))
        return prcb_fail(err, result, "prcbd closed the connection");
    if (result)
        return result;
    result = arrival.fds[0];
    arrival.fds[0] = -1;
    close_fds(&arrival);
    return result < 0 ? prcb_fail(err, -EBADMSG, "prcbd passed no memory") : result;
}

/* ---- what is profiled ---- */

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
        return session_not_seen(what, number, err);
    if (answer->refused)
        return prcb_fail(err, -EPERM,
                         "%s %d: not yours to profile: it runs as another user, or a program that "
                         "is set-user-id, has capabilities or may not be read",
                         what, (int)number);
    if (answer->crowded)
        return prcb_fail(err, -EBUSY, "%s %d: as many others profile it already as can", what,
                         (int)number);
    return answer->full ? session_no_room(p, err) : 0;
}

static int daemon_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err)
{
    struct wire_profile_answer answer;
    int result = profile(p, WIRE_THREAD, tid, follow, &answer, err);

    return result ? result : judge(p, &answer, "thread", tid, err);
}

/* More than once, as in bpf_profile_process. */
static int daemon_profile_process(struct prcb *p, pid_t pid, unsigned follow,
                                  struct prcb_error *err)
{
    struct wire_profile_answer answer;
    bool seen = false;

    do {
        int result = profile(p, WIRE_PROCESS, pid, follow, &answer, err);

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
    int result = set_scope(p, &scope, err);

    if (result)
        return result;
    do {
        result = profile(p, WIRE_ALL, 0, PRCB_FOLLOW_ALL, &answer, err);
    } while (!result && answer.added);
    return result;
}

/* As register_cgroup of the bpf tier. Threads of others are left out. */
static int register_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct procfs files = {.root = -1}; /* a buffer for reading lists */
    struct pid_list list = {0};
    unsigned added, refused = 0, seen;
    int result;

    do {
        added = seen = refused = 0;
        list.count = 0;
        result = cgroup_list_threads(&files, path, &list, err);
        for (size_t i = 0; !result && i < list.count; i++) {
            struct wire_profile_answer answer;

            result = profile(p, WIRE_THREAD, list.items[i], PRCB_FOLLOW_ALL, &answer, err);
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

static int daemon_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct wire_scope scope = {0};
    struct statfs fs;
    struct stat st;
    int result;

    if (stat(path, &st) || statfs(path, &fs))
        return prcb_fail(err, -errno, "cgroup %s: %s", path, strerror(errno));
    if (p->daemon->cgroup && strcmp(p->daemon->cgroup, path))
        return prcb_fail(err, -EBUSY, "cgroup %s: this session follows another cgroup already",
                         path);
    scope.cgroup = st.st_ino;
    scope.cgroup_v2 = fs.f_type == CGROUP2_MAGIC;
    result = set_scope(p, &scope, err);
    if (result)
        return result;
    result = register_cgroup(p, path, err);
    if (!result && !p->daemon->cgroup) {
        p->daemon->cgroup = strdup(path);
        result = p->daemon->cgroup ? 0 : prcb_fail(err, -ENOMEM, "out of memory");
    }
    if (result) {
        const struct wire_scope none = {0};

        set_scope(p, &none, NULL);
    }
    return result;
}

static int daemon_refresh(struct prcb *p, struct prcb_error *err)
{
    struct daemon_state *s = p->daemon;
    struct wire_count moved;
    int result;

    if (!s->cgroup)
        return 0;
    result = ask_plain(p, WIRE_REFRESH, NULL, 0, &moved, sizeof(moved), err);
    if (result || moved.count == s->moved)
        return result;
    s->moved = moved.count;
    return register_cgroup(p, s->cgroup, err);
}

/* ---- giving back ---- */

static int daemon_release(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    struct wire_release request = {.key = key};

    return ask_plain(p, WIRE_RELEASE, &request, sizeof(request), NULL, 0, err);
}

static int daemon_release_exited(struct prcb *p, struct prcb_error *err)
{
    struct wire_count released;
    int result = ask_plain(p, WIRE_RELEASE_EXITED, NULL, 0, &released, sizeof(released), err);

    return result ? result : (int)released.count;
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
    .walk = mapped_walk,
    .release = daemon_release,
    .release_exited = daemon_release_exited,
    .status = mapped_status,
    .absent_reason = mapped_absent_reason,
};
