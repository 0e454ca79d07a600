/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What prcbd answers in a second: requests by one client that waits for each answer, and by
 * several at once; and what a session takes from its opening to its end.
 */
#include "bench.h"
#include "bench_daemon.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define SECONDS 2
#define CLIENTS 8

static int none(struct prcb *p)
{
    return prcb_release_exited(p, NULL) < 0;
}

static int again(struct prcb *p)
{
    return prcb_profile_thread(p, gettid(), PRCB_FOLLOW_NONE, NULL);
}

static int session(struct prcb *p)
{
    struct prcb *other = bench_daemon_session();
    int result = prcb_profile_thread(other, gettid(), PRCB_FOLLOW_NONE, NULL);

    prcb_close(other);
    return result;
}

static const struct {
    const char *name;
    int (*work)(struct prcb *p);
} rows[] = {
    {"giving back the accounts of ended threads: none", none},
    {"profiling a thread that is profiled already", again},
    {"a session: connect, open, profile, close", session},
};

static uint64_t run_one(int (*work)(struct prcb *p))
{
    struct prcb *p = bench_daemon_session();
    uint64_t end = bench_now() + SECONDS * 1000000000ull, done = 0;

    while (bench_now() < end) {
        if (work(p))
            exit(1);
        done++;
    }
    prcb_close(p);
    return done;
}

static uint64_t run_many(int (*work)(struct prcb *p), int clients)
{
    _Atomic uint64_t *done =
        mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;

    for (int i = 0; i < clients; i++) {
        if (fork())
            continue;
        *done += run_one(work);
        _exit(0);
    }
    for (int i = 0; i < clients; i++) {
        int status;

        wait(&status);
        bad |= status;
    }
    return bad ? 0 : *done;
}

int main(void)
{
    if (!bench_daemon_begin()) {
        fprintf(stderr, "bench_socket: prcbd does not start: root is needed\n");
        return 1;
    }
    printf("requests to prcbd, a second, each waited for\n\n%-52s %10s %10d\n", "clients", "1",
           CLIENTS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t one = run_many(rows[i].work, 1), many = run_many(rows[i].work, CLIENTS);

        printf("%-52s %10.0f %10.0f\n", rows[i].name, (double)one / SECONDS,
               (double)many / SECONDS);
        fflush(stdout);
    }
    bench_daemon_end();
    return 0;
}
