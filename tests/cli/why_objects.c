/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread for each thing that can be waited for, and says what they are: "WAY TID IDENTITY" a
 * line, then "ready". It ends when its standard input does. With the argument "reused", one that
 * reads from a descriptor whose number becomes another file's while it waits; with "kernel", one
 * that waits for a mutex of the kernel that another thread holds, until a line comes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static long page_bytes;

/* In .bss and in .data. */
pthread_mutex_t zero_mutex;
pthread_mutex_t data_mutexes[2] = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                   PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
static pthread_mutex_t *heap_mutex, robust_mutex, pi_mutex;
static pthread_t joined;

struct way {
    const char *name;
    void *(*run)(void *);
    int fd;
    int32_t tid;
    void *page;
    char identity[160];
};

static void *by_read(void *ctx)
{
    struct way *way = ctx;
    uint64_t bytes; /* an eventfd's */

    way->tid = gettid();
    if (read(way->fd, &bytes, sizeof(bytes)) < 0)
        abort();
    return NULL;
}

static void *by_epoll(void *ctx)
{
    struct way *way = ctx;
    struct epoll_event event;

    way->tid = gettid();
    epoll_wait(way->fd, &event, 1, -1);
    return NULL;
}

static void *by_poll(void *ctx)
{
    struct way *way = ctx;
    struct pollfd polled = {.fd = way->fd, .events = POLLIN};

    way->tid = gettid();
    poll(&polled, 1, -1);
    return NULL;
}

static void *by_lock(void *ctx)
{
    struct way *way = ctx;
    pthread_mutex_t *mutex = !strcmp(way->name, "bss")      ? &zero_mutex
                             : !strcmp(way->name, "data")   ? &data_mutexes[1]
                             : !strcmp(way->name, "robust") ? &robust_mutex
                             : !strcmp(way->name, "pi")     ? &pi_mutex
                                                            : heap_mutex;

    way->tid = gettid();
    pthread_mutex_lock(mutex);
    return NULL;
}

static void *by_join(void *ctx)
{
    struct way *way = ctx;

    way->tid = gettid();
    pthread_join(joined, NULL);
    return NULL;
}

static int pipe_of(char *identity, size_t size)
{
    int pipes[2];
    struct stat about;

    if (pipe(pipes) || fstat(pipes[0], &about))
        abort();
    snprintf(identity, size, "pipe:[%ju]", (uintmax_t)about.st_ino);
    return pipes[0];
}

static int fifo_of(char *identity, size_t size)
{
    int fd;

    snprintf(identity, size, "/tmp/why_objects-%d", (int)getpid());
    if (mkfifo(identity, 0600))
        abort();
    fd = open(identity, O_RDWR);
    if (fd < 0)
        abort();
    unlink(identity);
    return fd;
}

static int tcp_of(char *identity, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof(address);
    uint16_t port;

    if (bind(listening, (void *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &length) || connect(fd, (void *)&address, length))
        abort();
    port = ntohs(address.sin_port);
    if (getsockname(fd, (void *)&address, &length) || accept(listening, NULL, NULL) < 0)
        abort();
    snprintf(identity, size, "tcp 127.0.0.1:%d -> 127.0.0.1:%d", ntohs(address.sin_port), port);
    return fd;
}

static int unix_of(char *identity, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/why_objects-%d.sock", (int)getpid());
    unlink(address.sun_path);
    if (bind(listening, (void *)&address, sizeof(address)) || listen(listening, 1) ||
        connect(fd, (void *)&address, sizeof(address)) || accept(listening, NULL, NULL) < 0)
        abort();
    unlink(address.sun_path);
    snprintf(identity, size, "unix %s", address.sun_path);
    return fd;
}

static int epoll_of(char *identity, size_t size)
{
    int fd = epoll_create1(0), watched = pipe_of(identity, size);
    struct epoll_event event = {.events = EPOLLIN};

    if (epoll_ctl(fd, EPOLL_CTL_ADD, watched, &event))
        abort();
    return fd;
}

static void take_mutexes(void)
{
    pthread_mutexattr_t kind;

    heap_mutex = calloc(1, sizeof(*heap_mutex));
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust_mutex, &kind);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&pi_mutex, &kind);
    pthread_mutex_lock(&zero_mutex);
    pthread_mutex_lock(&data_mutexes[1]);
    pthread_mutex_lock(heap_mutex);
    pthread_mutex_lock(&robust_mutex);
    pthread_mutex_lock(&pi_mutex);
}

#define WAY(way, how)                                                                              \
    {                                                                                              \
        .name = way, .run = how                                                                    \
    }
static struct way ways[] = {
    WAY("pipe", by_read),  WAY("fifo", by_read),   WAY("unix", by_read),   WAY("tcp", by_read),
    WAY("event", by_read), WAY("epoll", by_epoll), WAY("poll", by_poll),   WAY("bss", by_lock),
    WAY("data", by_lock),  WAY("heap", by_lock),   WAY("robust", by_lock), WAY("pi", by_lock),
    WAY("join", by_join),
};

static void prepare(struct way *way)
{
    char *identity = way->identity;
    size_t size = sizeof(way->identity);

    if (!strcmp(way->name, "pipe") || !strcmp(way->name, "poll"))
        way->fd = pipe_of(identity, size);
    else if (!strcmp(way->name, "fifo"))
        way->fd = fifo_of(identity, size);
    else if (!strcmp(way->name, "unix"))
        way->fd = unix_of(identity, size);
    else if (!strcmp(way->name, "tcp"))
        way->fd = tcp_of(identity, size);
    else if (!strcmp(way->name, "event"))
        way->fd = eventfd(0, 0);
    else if (!strcmp(way->name, "epoll"))
        way->fd = epoll_of(identity, size);
    else
        snprintf(identity, size, "%p",
                 !strcmp(way->name, "bss")      ? (void *)&zero_mutex
                 : !strcmp(way->name, "data")   ? (void *)&data_mutexes[1]
                 : !strcmp(way->name, "robust") ? (void *)&robust_mutex
                 : !strcmp(way->name, "pi")     ? (void *)&pi_mutex
                                                : (void *)heap_mutex);
}

/* Until the thread is in one of these. */
static void await_state(pid_t tid, const char *states)
{
    char path[64], text[512], *state = NULL;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    do {
        FILE *in = fopen(path, "r");

        usleep(1000);
        state = in && fgets(text, sizeof(text), in) ? strrchr(text, ')') : NULL;
        if (in)
            fclose(in);
    } while (!state || !strchr(states, state[2]));
}

static pid_t start(struct way *way, pthread_t *ret)
{
    if (pthread_create(ret, NULL, way->run, way))
        abort();
    while (!*(volatile int32_t *)&way->tid)
        usleep(1000);
    return way->tid;
}

static void wait_for_end(void)
{
    char bytes[64];

    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
        ;
    _exit(0);
}

/* The thread goes on to wait for the pipe, and the number is that of another one by then. */
static void reuse(void)
{
    char other[64];
    struct way way = {.name = "reused", .run = by_read};
    pthread_t thread;
    int fd;

    way.fd = pipe_of(way.identity, sizeof(way.identity));
    printf("starting\n");
    fflush(stdout);
    if (getchar() != '\n') /* prcb follows this process by now */
        _exit(1);
    start(&way, &thread);
    await_state(way.tid, "S");
    fd = pipe_of(other, sizeof(other));
    if (dup2(fd, way.fd) != way.fd)
        abort();
    printf("%s %d %s\n", way.name, way.tid, other);
    printf("first %d %s\n", way.tid, way.identity);
    wait_for_end();
}

/* A thread that writes a page to a pipe holds the pipe's mutex until the page is there, which is
 * when the main thread says so. */
static void *write_page(void *ctx)
{
    struct way *way = ctx;

    way->tid = gettid();
    if (write(way->fd, way->page, (size_t)page_bytes) != page_bytes)
        abort();
    return NULL;
}

static int served_page(void **ret)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register area = {.range = {.len = (size_t)page_bytes},
                                   .mode = UFFDIO_REGISTER_MODE_MISSING};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    *ret =
        mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    area.range.start = (uintptr_t)*ret;
    return fd < 0 || *ret == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
                   ioctl(fd, UFFDIO_REGISTER, &area)
               ? -1
               : fd;
}

static int hold_kernel_mutex(void)
{
    struct way holder = {.name = "holder"}, waiter = {.name = "waiter"};
    struct uffdio_zeropage zero = {.range = {.len = (size_t)page_bytes}};
    pthread_t threads[2];
    int pipes[2], fd = served_page(&holder.page);

    if (fd < 0) {
        printf("no userfaultfd: %s\n", strerror(errno));
        return 77;
    }
    if (pipe(pipes))
        abort();
    waiter.page = calloc(1, (size_t)page_bytes);
    holder.fd = waiter.fd = pipes[1];
    holder.run = waiter.run = write_page;
    start(&holder, &threads[0]);
    await_state(holder.tid, "DS");
    start(&waiter, &threads[1]);
    await_state(waiter.tid, "D");
    printf("holder %d -\nwaiter %d -\nready\n", holder.tid, waiter.tid);
    fflush(stdout);
    getchar();
    zero.range.start = (uintptr_t)holder.page;
    if (ioctl(fd, UFFDIO_ZEROPAGE, &zero))
        abort();
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    page_bytes = sysconf(_SC_PAGESIZE);
    if (argc > 1 && !strcmp(argv[1], "reused"))
        reuse();
    if (argc > 1 && !strcmp(argv[1], "kernel"))
        return hold_kernel_mutex();
    take_mutexes();
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        prepare(&ways[i]);
        start(&ways[i], &thread);
        if (i == 0)
            joined = thread;
        await_state(ways[i].tid, "S");
        printf("%s %d %s\n", ways[i].name, ways[i].tid, *ways[i].identity ? ways[i].identity : "-");
    }
    wait_for_end();
}
