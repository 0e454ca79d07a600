/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Programs that are slow for a reason that nobody sees from outside, one a word: faulty WORD
 * [FILE]. What prcb why says of them is shown in docs/why.md, and tested.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

static pthread_mutex_t stats_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER, savings = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long orders;
static const char *file;

static void nap(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static void start(void *(*fn)(void *), const char *name)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, fn, NULL))
        abort();
    pthread_setname_np(thread, name);
}

/* ---- a lock that one thread holds for long ---- */

KEEP static void build_report(void)
{
    nap(40);
    orders++;
}

/* The line of who waits is that of its call. */
static inline __attribute__((always_inline)) void take_stats(void)
{
    pthread_mutex_lock(&stats_mutex);
}

KEEP static void record_order(void)
{
    take_stats(); /* waits */
    orders++;
    pthread_mutex_unlock(&stats_mutex);
}

static void *work(void *unused)
{
    for (;;) {
        record_order();
        nap(1);
    }
    return unused;
}

static void *report(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&stats_mutex);
        build_report();
        pthread_mutex_unlock(&stats_mutex);
        nap(10);
    }
    return unused;
}

static void convoy(void)
{
    for (int i = 0; i < 6; i++)
        start(work, "worker");
    start(report, "reporter");
    pause();
}

/* ---- locks in opposite order ---- */

KEEP static void transfer(pthread_mutex_t *from, pthread_mutex_t *to)
{
    pthread_mutex_lock(from);
    nap(20);
    pthread_mutex_lock(to); /* waits */
    pthread_mutex_unlock(to);
    pthread_mutex_unlock(from);
}

static void *back(void *unused)
{
    transfer(&savings, &checking);
    return unused;
}

static void deadlock(void)
{
    start(back, "back");
    transfer(&checking, &savings);
}

/* ---- storage ---- */

KEEP static void save_order(int fd)
{
    if (pwrite(fd, "order", 5, 0) != 5 || fsync(fd))
        abort();
}

static void storage(void)
{
    int fd = open(file, O_RDWR | O_CREAT, 0600);

    for (;;)
        save_order(fd);
}

/* ---- a name server that does not answer ---- */

KEEP static void find_customer(void)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;

    if (!getaddrinfo("customers.example", "80", &wanted, &found))
        freeaddrinfo(found);
}

static void names(void)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    socklen_t size = sizeof(server);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&server, size) ||
        getsockname(fd, (struct sockaddr *)&server, &size) || res_init())
        abort();
    printf("%d\n", ntohs(server.sin_port));
    fflush(stdout);
    _res.nscount = 1;
    _res.nsaddr_list[0] = server;
    _res.retrans = 1;
    for (;;)
        find_customer();
}

/* ---- no processor ---- */

KEEP static void compute(void)
{
    for (int i = 0; i < 1000; i++)
        orders++;
}

/* On the first processor that it may have. */
static void busy(void)
{
    cpu_set_t may, one;
    int first = 0;

    sched_getaffinity(0, sizeof(may), &may);
    while (!CPU_ISSET(first, &may))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof(one), &one);
    for (;;)
        compute();
}

/* ---- work that one thread does for others, by a queue ---- */

static int requests[2];

KEEP static void fetch_rates(void)
{
    nap(30);
}

static void *render(void *unused)
{
    int reply;

    while (read(requests[0], &reply, sizeof(reply)) == sizeof(reply)) {
        fetch_rates();
        if (write(reply, "", 1) != 1)
            abort();
    }
    return unused;
}

KEEP static void ask_renderer(int from, int to)
{
    char answer;

    if (write(requests[1], &to, sizeof(to)) != sizeof(to) || read(from, &answer, 1) != 1)
        abort();
}

static void *handle(void *unused)
{
    int ends[2];

    if (pipe(ends))
        abort();
    for (;;)
        ask_renderer(ends[0], ends[1]);
    return unused;
}

static void relay(void)
{
    if (pipe(requests))
        abort();
    start(render, "renderer");
    for (int i = 0; i < 4; i++)
        start(handle, "handler");
    pause();
}

/* ---- too little memory: reads a file again that has no room in it ---- */

KEEP static void scan_catalog(int fd, size_t size)
{
    static char buffer[1 << 16];

    for (size_t at = 0; at < size; at += sizeof(buffer)) {
        if (pread(fd, buffer, sizeof(buffer), (off_t)at) < 0)
            abort();
        orders++;
    }
}

static void memory(void)
{
    int fd = open(file, O_RDONLY);
    off_t size = lseek(fd, 0, SEEK_END);

    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    for (;;)
        scan_catalog(fd, (size_t)size);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        void (*fn)(void);
    } faults[] = {{"convoy", convoy}, {"deadlock", deadlock}, {"storage", storage},
                  {"names", names},   {"busy", busy},         {"memory", memory},
                  {"relay", relay}};

    file = argc > 2 ? argv[2] : NULL;
    prctl(PR_SET_PDEATHSIG, 9);
    for (size_t i = 0; argc > 1 && i < sizeof(faults) / sizeof(*faults); i++) {
        if (strcmp(argv[1], faults[i].word) != 0)
            continue;
        if (strcmp(argv[1], "names") != 0)
            puts("ready");
        fflush(stdout);
        faults[i].fn();
    }
    return 2;
}
