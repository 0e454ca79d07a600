/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where did the time of my slowest requests go?
 *
 * A server thread answers requests of a few kinds, sent by client threads of the
 * same program so that it runs by itself. It reads its own account before and
 * after each request: tens of nanoseconds on the bpf tier, so nothing speaks
 * against doing it for every request. At the end it prints, for the slowest ones,
 * what a stop watch cannot tell: how much was computing, how much was waiting for
 * a processor, how much was each kind of wait.
 *
 *     cc request.c $(pkg-config --cflags --libs libprcb) -pthread
 *     sudo ./a.out [REQUESTS]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <prcb/prcb.h>

#define CLIENTS 3
#define SHOWN   12 /* slowest requests that are printed */

enum kind { COMPUTE, SLEEP, LOCK, STORE, KINDS };
static const char *const kind_names[KINDS] = {"compute", "sleep", "lock", "store"};

/* One answered request. */
struct sample {
    enum kind kind;
    unsigned number;
    struct prcb_account cost; /* the account's growth from edge to edge */
};

static int server_end, client_end, store;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static volatile bool finished;

/* ---- the work ---- */

static void pause_for(long microseconds)
{
    const struct timespec ts = {.tv_sec = microseconds / 1000000,
                                .tv_nsec = microseconds % 1000000 * 1000};

    nanosleep(&ts, NULL);
}

static volatile uint64_t sink; /* keeps the compiler from leaving the computing out */

static void compute(unsigned rounds)
{
    uint64_t x = rounds;

    for (unsigned i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
}

static void write_and_sync(void)
{
    static char page[64 * 1024];

    if (pwrite(store, page, sizeof(page), 0) < 0 || fsync(store))
        perror("request: store");
}

static void answer(enum kind kind)
{
    switch (kind) {
    case COMPUTE:
        compute(2000000);
        break;
    case SLEEP:
        pause_for(3000);
        break;
    case LOCK:
        pthread_mutex_lock(&shared);
        compute(10000);
        pthread_mutex_unlock(&shared);
        break;
    default:
        write_and_sync();
    }
}

/* ---- those around the server ---- */

static void *client(void *arg)
{
    unsigned *left = arg;
    unsigned seed = *left;
    char kind, done;

    while ((*left)--) {
        kind = (char)(rand_r(&seed) % KINDS);
        if (send(client_end, &kind, 1, 0) != 1 || recv(client_end, &done, 1, 0) != 1)
            break;
        pause_for(rand_r(&seed) % 2000);
    }
    return NULL;
}

/* Holds the lock that LOCK requests want, one millisecond in three. */
static void *lock_holder(void *arg)
{
    while (!finished) {
        pthread_mutex_lock(&shared);
        pause_for(1000);
        pthread_mutex_unlock(&shared);
        pause_for(2000);
    }
    return NULL;
}

/* Computes half of the time: with one on each processor, the server has to wait
 * for one now and then. */
static void *neighbour(void *arg)
{
    while (!finished) {
        compute(20000000);
        pause_for(20000);
    }
    return NULL;
}

/* ---- the server ---- */

static void serve(struct prcb_thread *self, struct sample *samples, unsigned count)
{
    struct prcb_account before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    char kind;

    for (unsigned i = 0; i < count; i++) {
        if (recv(server_end, &kind, 1, 0) != 1)
            break;
        prcb_thread_read(self, &before);
        answer((enum kind)kind);
        prcb_thread_read(self, &after);
        samples[i].kind = (enum kind)kind;
        samples[i].number = i;
        prcb_account_sub(&after, &before, &samples[i].cost);
        if (send(server_end, &kind, 1, 0) != 1)
            break;
    }
}

/* ---- the report ---- */

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void print_waits(const struct prcb_account *cost)
{
    if (!(cost->present & PRCB_HAS_WAITS))
        printf("  -");
    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_wait *wait = &cost->waits[cause];

        if (wait->ns)
            printf("  %s %.3f (%" PRIu64 "x)", prcb_cause_info(cause)->name, ms(wait->ns),
                   wait->count);
    }
    /* Now and then the kernel does not report that the thread runs again; where the time
     * since its last switch goes is then known at its next one. */
    if (cost->open.ns)
        printf("  %.3f not settled yet", ms(cost->open.ns));
    printf("\n");
}

static int slower(const void *a, const void *b)
{
    const struct sample *left = a, *right = b;

    return left->cost.wall_ns < right->cost.wall_ns ? 1 : -1;
}

static void report(struct prcb *p, struct sample *samples, unsigned count)
{
    const char *reason = prcb_session_tier_reason(p);

    qsort(samples, count, sizeof(samples[0]), slower);
    printf("%u requests, tier %s%s%s\n\n", count, prcb_tier_name(prcb_session_tier(p)),
           reason ? ": " : "", reason ? reason : "");
    printf("the slowest, in milliseconds:\nrequest  kind        wall      run    ready  waits\n");
    for (unsigned i = 0; i < count && i < SHOWN; i++) {
        const struct prcb_account *cost = &samples[i].cost;

        printf("%7u  %-7s %8.3f %8.3f", samples[i].number, kind_names[samples[i].kind],
               ms(cost->wall_ns), ms(cost->run_ns));
        if (cost->present & PRCB_HAS_READY)
            printf(" %8.3f", ms(cost->ready_ns));
        else
            printf(" %8s", "-");
        print_waits(cost);
    }
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void report_read_cost(struct prcb_thread *self)
{
    struct prcb_account account = {.size = sizeof(account)};
    uint64_t start = now();

    for (int i = 0; i < 1000; i++)
        prcb_thread_read(self, &account);
    printf("\none read of the whole account: %" PRIu64 " ns\n", (now() - start) / 1000);
}

/* ---- putting it together ---- */

static int set_up(void)
{
    char name[] = "request-XXXXXX"; /* in this directory: /tmp may be memory, which has no fsync */
    int ends[2];

    store = mkstemp(name);
    if (store < 0) {
        perror("request: a file in this directory");
        return -1;
    }
    unlink(name);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) {
        perror("request: socketpair");
        return -1;
    }
    server_end = ends[0];
    client_end = ends[1];
    return 0;
}

static void run(struct prcb_thread *self, struct sample *samples, unsigned count)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned left[CLIENTS];
    pthread_t clients[CLIENTS], others[64];
    int other_count = 0;

    pthread_create(&others[other_count++], NULL, lock_holder, NULL);
    while (other_count <= processors && other_count < 64)
        pthread_create(&others[other_count++], NULL, neighbour, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        left[i] = count / CLIENTS;
        pthread_create(&clients[i], NULL, client, &left[i]);
    }
    serve(self, samples, count);
    for (unsigned i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    finished = true;
    for (int i = 0; i < other_count; i++)
        pthread_join(others[i], NULL);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 300;
    struct prcb_thread *self;
    struct prcb_error err;
    struct sample *samples;
    struct prcb *p;

    count -= count % CLIENTS;
    if (!count || count > 1000000) {
        fprintf(stderr, "usage: request [REQUESTS]   (%d to 1000000)\n", CLIENTS);
        return 2;
    }
    samples = calloc(count, sizeof(samples[0]));
    if (!samples || set_up())
        return 1;
    if (prcb_open(NULL, &p, &err) || prcb_thread_open_self(p, &self, &err)) {
        fprintf(stderr, "request: %s\n", err.text);
        return 1;
    }
    run(self, samples, count);
    report(p, samples, count);
    report_read_cost(self);
    prcb_thread_close(self);
    prcb_close(p);
    free(samples);
    return 0;
}
