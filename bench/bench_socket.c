/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What prcbd answers in a second: requests by one client that waits for each answer, and by
 * several at once; and what a session takes from its opening to its end. Then how long one client
 * waits for its answer while others, of another user, do their worst.
 */
#include "bench.h"
#include "bench_daemon.h"

#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define SECONDS   2
#define CLIENTS   8
#define OTHER     65534 /* the user of those who do their worst */
#define THREADS   1000  /* of a process of theirs */
#define LOOKS_MAX 1000000

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

/* ---- others who do their worst ---- */

static _Atomic uint64_t *worst; /* how often they did */

static struct prcb *other_session(unsigned accounts)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_DAEMON, .max_threads = accounts};
    struct prcb *p = NULL;

    prcb_open(&options, &p, NULL);
    return p;
}

static void end_session(struct prcb *p)
{
    if (!p) {
        fprintf(stderr, "bench_socket: no session for another user\n");
        _exit(1);
    }
    prcb_close(p);
}

static void *wait_on(void *unused)
{
    for (;;)
        pause();
    return NULL;
}

static void many_threads(void)
{
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, &small, wait_on, NULL);
}

static void open_and_close(void)
{
    for (;; (*worst)++)
        end_session(other_session(1));
}

/* A child keeps the map that the closed session had, which goes on counting: there is no room for
 * the next. */
static void ask_for_too_much(void)
{
    for (;; (*worst)++) {
        struct prcb *p = other_session(4000);

        if (p && !fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close_range(3, ~0u, 0); /* the connection with them, which would keep the session */
            wait_on(NULL);
        }
        prcb_close(p);
    }
}

static void open_big(void)
{
    for (;; (*worst)++)
        end_session(other_session(1500));
}

static void profile_many(void)
{
    struct prcb *p = other_session(THREADS + 1);
    struct prcb_error err;

    many_threads();
    while (!prcb_profile_process(p, getpid(), PRCB_FOLLOW_ALL, &err))
        (*worst)++;
    fprintf(stderr, "bench_socket: %s\n", err.text);
    _exit(1);
}

static void profile_and_release(void)
{
    struct prcb *p = other_session(16);
    struct prcb_account account = {.size = sizeof(account)};
    struct prcb_thread *t;

    for (;; (*worst)++) {
        if (prcb_profile_thread(p, gettid(), PRCB_FOLLOW_NONE, NULL) ||
            prcb_thread_open(p, gettid(), &t, NULL))
            continue;
        if (!prcb_thread_read(t, &account))
            prcb_release(p, account.key, NULL);
        prcb_thread_close(t);
    }
}

static void release_big(void)
{
    struct prcb *p = other_session(2000);

    for (;; (*worst)++)
        prcb_release_exited(p, NULL);
}

static const struct {
    const char *name;
    void (*work)(void); /* never ends; NULL: nobody is there */
} others[] = {
    {"nobody else", NULL},
    {"open and close sessions", open_and_close},
    {"open and close sessions of 1500 accounts", open_big},
    {"hold their maps, and ask for more than they may have", ask_for_too_much},
    {"profile processes of 1000 threads", profile_many},
    {"profile threads and release them", profile_and_release},
    {"give back 2000 accounts, none of them used", release_big},
};

static void others_start(void (*work)(void), pid_t *ret)
{
    for (int i = 0; i < CLIENTS; i++) {
        ret[i] = fork();
        if (ret[i])
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (nice(19) < 0 || setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) ||
            setresuid(OTHER, OTHER, OTHER))
            _exit(1);
        prctl(PR_SET_DUMPABLE, 1);
        work();
    }
}

static void others_end(const pid_t *pids)
{
    for (int i = 0; i < CLIENTS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

static void wait_among(const char *name, void (*work)(void))
{
    static double us[LOOKS_MAX];
    struct prcb *p = bench_daemon_session();
    pid_t pids[CLIENTS];
    uint64_t end, done;
    int count = 0;

    if (work) {
        others_start(work, pids);
        usleep(300000);
    }
    *worst = 0;
    end = bench_now() + SECONDS * 1000000000ull;
    while (bench_now() < end && count < LOOKS_MAX) {
        uint64_t start = bench_now();

        if (none(p))
            exit(1);
        us[count++] = (double)(bench_now() - start) / 1000;
        usleep(200);
    }
    done = *worst / SECONDS;
    if (work)
        others_end(pids);
    qsort(us, (size_t)count, sizeof(*us), bench_compare);
    printf("%-52s %9.0f %9.0f %9.0f %9llu\n", name, us[count / 2], us[count * 99 / 100],
           us[count - 1], (unsigned long long)done);
    fflush(stdout);
    prcb_close(p);
    usleep(300000);
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
    worst = mmap(NULL, sizeof(*worst), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("\nmicroseconds that a request of no work takes, while %d of another user ...\n\n"
           "%-52s %9s %9s %9s %9s\n",
           CLIENTS, "", "median", "99 %", "longest", "of theirs");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        wait_among(others[i].name, others[i].work);
    bench_daemon_end();
    return 0;
}
