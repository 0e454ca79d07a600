/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd's side of the protocol on anything: its real loop, buffers, answers and sessions, with
 * real sockets; only what asks the kernel's eBPF programs is made up. The input is cut into
 * connections: a byte that says which of three, and one that says how many bytes it sends next.
 * What comes back must be whole answers to what was asked, and nothing must be left behind.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "server.h"

#define CLIENTS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the kernel side, made up ---- */

static struct kernel_record records[PRCB_CLIENT_COUNT];
static struct prcb_bpf_client_scope scopes[PRCB_CLIENT_SCOPES];

int kernel_peer(struct kernel *k, int socket, struct prcb_bpf_peer *ret)
{
    *ret = (struct prcb_bpf_peer){.pid = (__u32)getpid(),
                                  .found = 1,
                                  .start = 1,
                                  .uid = geteuid(),
                                  .owner = geteuid(),
                                  .euid = geteuid(),
                                  .suid = geteuid(),
                                  .gid = getegid(),
                                  .egid = getegid(),
                                  .sgid = getegid()};
    return 0;
}

int kernel_start_of(struct kernel *k, pid_t pid, uint64_t *ret)
{
    *ret = 1;
    return 0;
}

int privilege_check_bpf(struct prcb_error *err)
{
    return 0;
}

uint32_t kernel_client_extra(const struct prcb_bpf_client *client, uint32_t *ret_switches)
{
    *ret_switches = client->switches ? 2 : 0;
    return *ret_switches + (client->tails ? 1 : 0);
}

int kernel_client_make(struct kernel *k, uint32_t number, const struct prcb_bpf_client *client,
                       struct kernel_client_fds *ret)
{
    assert(number && number < PRCB_CLIENT_COUNT && !records[number].used);
    ret->accounts = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ret->edges = client->edges ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    return 0;
}

/* Nobody took anything over. */
int kernel_client_fds(const struct kernel *k, uint32_t number, struct kernel_client_fds *ret)
{
    (void)k;
    (void)number;
    (void)ret;
    return -ENOENT;
}

/* As long as the programs do not know of a client, its record is not in use. */
int kernel_clients_change(struct kernel *k, const uint32_t *numbers,
                          const struct kernel_client_fds *maps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert(numbers[i] && numbers[i] < PRCB_CLIENT_COUNT);
        records[numbers[i]].used = maps[i].accounts >= 0;
    }
    return 0;
}

void kernel_tell_client(struct kernel *k, uint32_t number)
{
    for (int i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        if (scopes[i].client == number)
            scopes[i].client = 0;
    }
}

int kernel_register(struct kernel *k, struct prcb_bpf_request *request, bool same_pid_ns,
                    struct kernel_undone *ret)
{
    assert(records[request->client].used);
    assert(request->what >= PRCB_REGISTER_THREAD && request->what <= PRCB_REGISTER_ALL);
    assert(!(request->pass & ~(__u32)(PRCB_PASS_THREADS | PRCB_PASS_CHILDREN)));
    request->seen = 1;
    ret->count = request->number % 2;
    ret->keys[0] = request->number;
    return 0;
}

int kernel_give_up(struct kernel *k, uint32_t client, uint64_t key, bool *ret_live)
{
    assert(records[client].used);
    *ret_live = key & 1;
    return key >> 32 == 7 ? 0 : -ESTALE;
}

int kernel_wait(void)
{
    return 0;
}

int kernel_free(struct kernel *k, uint32_t client, uint32_t slot)
{
    return 0;
}

int kernel_free_exited(struct kernel *k, uint32_t client, uint32_t accounts, uint64_t *ret)
{
    assert(records[client].used);
    *ret = 0;
    return 0;
}

struct prcb_bpf_client_scope *kernel_scope(struct kernel *k, uint32_t client)
{
    struct prcb_bpf_client_scope *free = NULL;

    for (int i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        if (scopes[i].client == client)
            return &scopes[i];
        if (!scopes[i].client && !free)
            free = &scopes[i];
    }
    return free;
}

void kernel_scope_begin(struct kernel *k, struct prcb_bpf_client_scope *scope, uint32_t client,
                        bool all, uint64_t cgroup, bool v2)
{
    __u32 bit;

    *scope = (struct prcb_bpf_client_scope){.client = client, .all = all};
    if (cgroup)
        prcb_bpf_cgroups_add(&scope->cgroups, cgroup, v2, &bit);
}

void kernel_client_unmake(struct kernel *k, uint32_t number)
{
    assert(number < PRCB_CLIENT_COUNT);
}

int kernel_stack_of(struct kernel *k, uint32_t client, uint64_t key, pid_t tid, char *ret,
                    size_t size)
{
    assert(records[client].used && size > 8);
    memcpy(ret, "sleep\n", 7);
    return key >> 32 == 7 ? 0 : -ESRCH;
}

void kernel_events_read(const struct kernel_events *events, struct wire_programs_answer *ret)
{
    ret->count = 0;
}

int kernel_client_fd(const struct kernel *k, uint32_t number)
{
    return -ENOENT;
}

/* All threads have ended. */
const struct prcb_account_block *kernel_client_view(int fd, uint32_t accounts)
{
    struct prcb_account_block *blocks = calloc((size_t)accounts + 1, sizeof(*blocks));

    for (uint32_t i = 1; blocks && i <= accounts; i++) {
        blocks[i].state = PRCB_STATE_EXITED;
        blocks[i].generation = 7;
    }
    return blocks;
}

void kernel_client_unview(const struct prcb_account_block *blocks, uint32_t accounts)
{
    free((void *)(uintptr_t)blocks);
}

int kernel_client_maps(struct kernel *k, uint32_t **ret, size_t *ret_count)
{
    *ret = NULL;
    *ret_count = 0;
    return 0;
}

void kernel_count_scopes(struct kernel *k)
{
}

int kernel_attach_processors(struct kernel *k, struct prcb_error *err)
{
    k->processors = 2;
    return 0;
}

int kernel_processors(struct kernel *k, bool threads, int *ret, struct prcb_error *err)
{
    for (int i = 0; i < 1 + threads; i++)
        ret[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return 1 + threads;
}

uint32_t kernel_scopes_used(const struct kernel *k, uint32_t client, uint32_t uid, uint32_t *ret)
{
    *ret = 0;
    return 0;
}

/* The second thread: what it is given is done at once, and its end told in the next round. */
int worker_start(struct worker *w, struct prcb_error *err)
{
    w->done = eventfd(0, EFD_CLOEXEC);
    assert(w->done >= 0);
    return 0;
}

void worker_give(struct worker *w, void (*job)(void *arg), void *arg)
{
    assert(!w->busy);
    job(arg);
    w->busy = true;
    assert(!eventfd_write(w->done, 1));
}

void worker_take(struct worker *w)
{
    eventfd_t count;

    if (w->busy)
        assert(!eventfd_read(w->done, &count));
    w->busy = false;
}

/* It is not for the fuzzer to read. */
void log_line(enum log_level level, const char *format, ...)
{
}

void log_client(const char *format, ...)
{
}

/* ---- its loop, a few rounds at a time ---- */

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);

/* Where it would wait it ends. */
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    int count = __real_epoll_wait(fd, events, most, 0);

    if (count || !timeout)
        return count;
    errno = ECANCELED;
    return -1;
}

static void run(struct server *s)
{
    struct prcb_error err = {0};

    assert(server_run(s, &err) == -ECANCELED);
}

/* ---- the clients ---- */

struct client {
    int fd; /* -1: not connected yet */
    uint8_t bytes[8 * WIRE_MAX];
    size_t have;
};

static int connect_to(const struct sockaddr_un *address, socklen_t length)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert(fd >= 0);
    assert(!connect(fd, (const struct sockaddr *)address, length));
    return fd;
}

/* All that came must be whole answers; what came of the last may be a part. Descriptors that
 * come with them are not taken: the kernel closes them. */
static void read_answers(struct client *c)
{
    struct wire_message message;
    ssize_t got;
    int taken;

    do {
        got = recv(c->fd, c->bytes + c->have, sizeof(c->bytes) - c->have, MSG_DONTWAIT);
        c->have += got > 0 ? (size_t)got : 0;
        while ((taken = wire_take(c->bytes, c->have, &message)) > 0) {
            assert(message.header.status <= 0);
            assert(message.header.status || wire_type_name(message.header.type));
            c->have -= (size_t)taken;
            memmove(c->bytes, c->bytes + taken, c->have);
        }
        assert(!taken);
    } while (got > 0);
}

static void play(struct server *s, const struct sockaddr_un *address, socklen_t length,
                 const uint8_t *data, size_t size)
{
    struct client clients[CLIENTS] = {{-1}, {-1}, {-1}};

    while (size >= 2) {
        struct client *c = &clients[data[0] % CLIENTS];
        size_t part = data[1] < size - 2 ? data[1] : size - 2;

        if (c->fd < 0)
            c->fd = connect_to(address, length);
        if (send(c->fd, data + 2, part, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            assert(errno == EPIPE || errno == EAGAIN || errno == ECONNRESET);
        if (data[0] & 0x40)
            shutdown(c->fd, SHUT_WR);
        run(s);
        if (!(data[0] & 0x80))
            read_answers(c);
        data += 2 + part;
        size -= 2 + part;
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].fd < 0)
            continue;
        read_answers(&clients[i]);
        close(clients[i].fd);
    }
    run(s);
}

static int next_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct prcbd_config config;
    static struct sessions sessions;
    struct kernel kernel = {.records = records, .live = -1, .empty = -1, .processors = -1};
    struct server s = {.kernel = &kernel, .sessions = &sessions, .config = &config};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t); /* the kernel chooses an abstract name */
    struct prcb_error err = {0};
    int before = next_descriptor();

    prcbd_config_default(&config);
    config.profile_all.who = PRCBD_EVERYBODY;
    memset(records, 0, sizeof(records));
    memset(scopes, 0, sizeof(scopes));
    kernel.maps[MAP_HEAD] = 2;
    sessions_start(&sessions, &kernel, &config);
    s.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert(!bind(s.listener, (const struct sockaddr *)&address, length));
    length = sizeof(address);
    assert(!getsockname(s.listener, (struct sockaddr *)&address, &length));
    assert(!listen(s.listener, 8));
    assert(!server_start(&s, &err));
    play(&s, &address, length, data, size);
    assert(!s.conns && !s.conn_count);
    server_settle(&s);
    while (sessions_unsettled(&sessions)) {
        sessions_free_some(&sessions);
        if (sessions_gather(&sessions))
            sessions_do_batch(&sessions.batch);
        sessions_batch_done(&sessions);
    }
    assert(!sessions.opening && !sessions.used && !sessions.waiting && !sessions.ending);
    for (int i = 0; i < PRCB_CLIENT_COUNT; i++)
        assert(!records[i].used);
    server_stop(&s);
    worker_take(&s.worker);
    close(s.worker.done);
    free(sessions.held.maps);
    assert(next_descriptor() == before);
    return 0;
}
