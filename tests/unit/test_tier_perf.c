/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The perf tier: which threads it takes on and how it counts them, on made-up trees
 * where everything can be arranged; then on this process and its children, against
 * what the kernel's own system calls say.
 */
#include <errno.h>
#include <inttypes.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "session.h"
#include "tier_perf.h"

#define S 1000000000ull

/* ---- a made-up /proc ---- */

/* Creation times: long before any test, and so late that it is always after the last look. */
#define OLD 1
#define NEW 4000000000ull

struct made {
    pid_t pid, tid, ppid;
    char state;
    uint64_t start, run, ready;
    unsigned voluntary, involuntary;
};

static char root[64];

static void put(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *path, const char *format, ...)
{
    char whole[160];
    va_list args;
    FILE *file;

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        assert_true(!mkdir(whole, 0700) || errno == EEXIST);
        *at = '/';
    }
    file = fopen(whole, "w");
    assert_non_null(file);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    assert_int_equal(fclose(file), 0);
}

/* One file of a thread. */
#define PUT(m, name, ...)                                                                          \
    do {                                                                                           \
        char path_[96];                                                                            \
        snprintf(path_, sizeof(path_), "%d/task/%d/" name, (m)->pid, (m)->tid);                    \
        put(path_, __VA_ARGS__);                                                                   \
    } while (0)

static void make(const struct made *m)
{
    PUT(m, "stat", "%d (t%d) %c %d 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0\n", m->tid, m->tid,
        m->state ? m->state : 'S', m->ppid, (unsigned long long)m->start);
    PUT(m, "status", "Tgid:\t%d\nvoluntary_ctxt_switches:\t%u\nnonvoluntary_ctxt_switches:\t%u\n",
        m->pid, m->voluntary, m->involuntary);
    PUT(m, "schedstat", "%llu %llu %u\n", (unsigned long long)m->run, (unsigned long long)m->ready,
        m->voluntary + m->involuntary);
    PUT(m, "children", "%s", "");
}

static void children(pid_t tid, const char *list)
{
    char path[96];

    snprintf(path, sizeof(path), "%d/task/%d/children", tid, tid);
    put(path, "%s", list);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void unmake(const char *path)
{
    char whole[160];

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    assert_int_equal(nftw(whole, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The root with what a kernel with all features has. */
static int new_tree(void **state)
{
    strcpy(root, "/tmp/prcb-tier-XXXXXX");
    assert_non_null(mkdtemp(root));
    put("thread-self/schedstat", "1 1 1\n");
    put("thread-self/children", "%s", "");
    return 0;
}

static int delete_tree(void **state)
{
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static struct prcb *session(uint32_t max_threads)
{
    struct prcb *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->tier = &tier_perf;
    p->max_threads = max_threads;
    pthread_mutex_init(&p->lock, NULL);
    clock_base_init(&p->clock);
    assert_int_equal(tier_perf_open_at(p, root, false, NULL), 0);
    return p;
}

/* ---- looking at a session ---- */

struct seen {
    struct prcb_account records[64];
    size_t count;
};

static int collect(const struct prcb_account *a, void *ctx)
{
    struct seen *seen = ctx;

    assert_true(seen->count < 64);
    seen->records[seen->count++] = *a;
    return 0;
}

/* static: too large for a stack of many. */
static struct seen *walk(struct prcb *p)
{
    static struct seen seen;

    seen.count = 0;
    assert_int_equal(prcb_walk(p, collect, &seen, NULL), 0);
    return &seen;
}

/* The one record of a thread; NULL: none. */
static const struct prcb_account *record_of(struct prcb *p, pid_t tid)
{
    const struct prcb_account *found = NULL;
    struct seen *seen = walk(p);

    for (size_t i = 0; i < seen->count; i++) {
        if (seen->records[i].tid != tid)
            continue;
        assert_null(found);
        found = &seen->records[i];
    }
    return found;
}

static const struct prcb_account *need(struct prcb *p, pid_t tid)
{
    const struct prcb_account *a = record_of(p, tid);

    assert_non_null(a);
    return a;
}

static struct prcb_status status_of(struct prcb *p)
{
    struct prcb_status status = {.size = sizeof(status)};

    assert_int_equal(prcb_session_status(p, &status), 0);
    return status;
}

/* ---- tests on made-up trees ---- */

static void named_counts_from_now(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = NEW, .run = 500, .ready = 70};
    struct prcb *p = session(16);
    const struct prcb_account *a;

    m.voluntary = 5;
    m.involuntary = 2;
    make(&m);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    a = need(p, 10);
    assert_int_equal(a->run_ns + a->ready_ns + a->switches, 0);
    m.run = 800;
    m.ready = 90;
    m.voluntary = 6;
    m.involuntary = 4;
    make(&m);
    a = need(p, 10);
    assert_int_equal(a->run_ns, 300);
    assert_int_equal(a->ready_ns, 20);
    assert_int_equal(a->switches, 3);
    assert_int_equal(a->voluntary_switches, 1);
    assert_int_equal(a->run_ns + a->ready_ns + a->wait_ns, a->wall_ns);
    assert_string_equal(a->comm, "t10");
    assert_int_equal(a->pid, 10);
    assert_int_equal(a->tier, PRCB_TIER_PERF);
    assert_int_equal(a->flags, 0);
    assert_false(status_of(p).short_threads_missed);
    prcb_close(p);
}

/* Sums that lag, or that the kernel resets, never make an account go back. */
static void never_back(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 500, .ready = 70};
    struct prcb *p = session(16);
    struct prcb_account before;
    const struct prcb_account *a;

    make(&m);
    prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL);
    m.run = 900;
    m.ready = 100;
    make(&m);
    before = *need(p, 10);
    m.run = 600;
    m.ready = 80;
    make(&m);
    a = need(p, 10);
    assert_int_equal(a->run_ns, 400);
    assert_int_equal(a->ready_ns, 30);
    assert_true(a->wait_ns >= before.wait_ns && a->wall_ns >= before.wall_ns);
    prcb_close(p);
}

/* A thread that looks asleep, with its sums final, is counted as switched out a moment later:
 * longer than any number of looks where its virtual processor is stopped in between. */
static void last_switch_is_counted_late(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 100, .voluntary = 4};
    struct prcb *p = session(4);

    make(&m);
    PUT(&m, "schedstat", "100 0 5\n");
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(need(p, 10)->flags, PRCB_ACCOUNT_RUNNING);
    m.voluntary = 5;
    make(&m);
    for (int i = 0; i < 3; i++) {
        const struct prcb_account *a = need(p, 10);

        assert_int_equal(a->flags, 0);
        assert_int_equal(a->switches, 1);
        assert_int_equal(a->voluntary_switches, 1);
    }
    prcb_close(p);
}

static void new_threads_are_followed(void **state)
{
    struct made leader = {.pid = 10, .tid = 10, .start = OLD};
    struct made there = {.pid = 10, .tid = 11, .start = OLD, .run = 5};
    struct made later = {.pid = 10, .tid = 12, .start = NEW, .run = 5000, .ready = 30};
    struct prcb *p = session(16);
    const struct prcb_account *a;

    make(&leader);
    make(&there);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_THREADS, NULL), 0);
    assert_null(record_of(p, 11)); /* was there before */
    later.voluntary = 3;
    make(&later);
    a = need(p, 12);
    assert_int_equal(a->run_ns, 5000);
    assert_int_equal(a->ready_ns, 30);
    assert_int_equal(a->switches, 3);
    assert_true(a->wall_ns >= 5030);
    assert_true(a->wall_ns < 20000000); /* its creation is as late as can be */
    assert_null(record_of(p, 11));
    assert_true(status_of(p).short_threads_missed);
    /* Named after all, it counts from then. */
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_THREADS, NULL), 0);
    assert_int_equal(need(p, 11)->run_ns, 0);
    assert_int_equal(walk(p)->count, 3);
    prcb_close(p);
}

static void threads_not_followed(void **state)
{
    struct made leader = {.pid = 10, .tid = 10, .start = OLD};
    struct made later = {.pid = 10, .tid = 12, .start = NEW};
    struct prcb *p = session(16);

    make(&leader);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_CHILDREN, NULL), 0);
    make(&later);
    assert_int_equal(walk(p)->count, 1);
    prcb_close(p);
}

/* With the kernel's lists of children, and without. */
static void children_are_followed_by(bool lists)
{
    struct made parent = {.pid = 10, .tid = 10, .ppid = 1, .start = OLD};
    struct made there = {.pid = 20, .tid = 20, .ppid = 10, .start = OLD};
    struct made child = {.pid = 30, .tid = 30, .ppid = 10, .start = NEW, .run = 33};
    struct made thread = {.pid = 30, .tid = 31, .ppid = 10, .start = NEW, .run = 44};
    struct made grandchild = {.pid = 40, .tid = 40, .ppid = 30, .start = NEW, .run = 55};
    struct made stranger = {.pid = 50, .tid = 50, .ppid = 20, .start = NEW};
    struct prcb *p;

    if (!lists)
        unmake("thread-self/children");
    p = session(16);
    make(&parent);
    make(&there);
    children(10, lists ? "20" : "");
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    make(&child);
    make(&thread);
    make(&grandchild);
    make(&stranger);
    children(10, lists ? "20 30" : "");
    children(30, lists ? "40 " : "");
    children(20, lists ? "50 " : "");
    assert_int_equal(walk(p)->count, 4);
    assert_int_equal(need(p, 30)->run_ns, 33);
    assert_int_equal(need(p, 31)->run_ns, 44);
    assert_int_equal(need(p, 31)->pid, 30);
    assert_int_equal(need(p, 40)->run_ns, 55);
    prcb_close(p);
}

static void children_are_followed(void **state)
{
    children_are_followed_by(true);
}

static void children_are_followed_by_parent(void **state)
{
    children_are_followed_by(false);
}

/* Long after it was remembered as outside, a child is still no new one. */
static void old_child_stays_outside(void **state)
{
    struct made parent = {.pid = 10, .tid = 10, .ppid = 1, .start = OLD};
    struct made other = {.pid = 10, .tid = 11, .start = OLD};
    struct made child = {.pid = 20, .tid = 20, .ppid = 10, .start = OLD};
    struct prcb *p = session(16);

    make(&parent);
    make(&other);
    make(&child);
    put("10/task/11/children", "20");
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(walk(p)->count, 2);
    /* The other thread runs again: its list is looked at again. */
    other.run = 100;
    make(&other);
    put("10/task/11/children", "20");
    assert_int_equal(walk(p)->count, 2);
    prcb_close(p);
}

static void ended_threads_keep_their_figures(void **state)
{
    struct made leader = {.pid = 10, .tid = 10, .start = OLD};
    struct made thread = {.pid = 10, .tid = 11, .start = OLD, .run = 10};
    struct prcb *p = session(16);
    struct prcb_account before;
    const struct prcb_account *a;
    struct prcb_thread *t;

    make(&leader);
    make(&thread);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    assert_int_equal(prcb_thread_open(p, 11, &t, NULL), 0);
    thread.run = 77;
    thread.voluntary = 2;
    make(&thread);
    before = *need(p, 11);
    unmake("10/task/11");
    a = need(p, 11);
    assert_int_equal(a->flags, PRCB_ACCOUNT_EXITED);
    assert_int_equal(a->key, before.key);
    assert_int_equal(a->run_ns, 67);
    assert_int_equal(a->switches, 2);
    assert_int_equal(a->wall_ns, before.wall_ns);
    assert_int_equal(a->wait_ns, before.wait_ns);
    assert_int_equal(prcb_thread_read(t, &before), -ESRCH);
    assert_int_equal(status_of(p).threads, 2);
    assert_int_equal(prcb_release_exited(p, NULL), 1);
    assert_int_equal(prcb_release_exited(p, NULL), 0);
    assert_null(record_of(p, 11));
    assert_int_equal(prcb_thread_read(t, &before), -ESTALE);
    assert_int_equal(prcb_release(p, before.key, NULL), -ESTALE);
    assert_int_equal(status_of(p).threads, 1);
    prcb_thread_close(t);
    prcb_close(p);
}

/* It ended long before anybody asked: it has no account, and no later look gives it one. */
static void an_old_zombie_is_nobodys(void **state)
{
    struct made old = {.pid = 10, .tid = 10, .start = OLD, .run = 10, .state = 'Z'};
    struct made alive = {.pid = 20, .tid = 20, .start = OLD, .run = 10};
    struct prcb *p = session(16);
    struct prcb_error err;

    make(&old);
    make(&alive);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, &err), -ESRCH);
    assert_non_null(strstr(err.text, "zombie"));
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, &err), -ESRCH);
    assert_non_null(strstr(err.text, "zombie"));
    assert_int_equal(prcb_profile_all(p, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(walk(p)->count, 1);
        assert_true(need(p, 20)->wall_ns < 10 * S);
    }
    prcb_close(p);
}

/* The same, in sight only by the second look: a list that is made while processes come and go may
 * leave one out. */
static void what_a_list_left_out_counts_from_now(void **state)
{
    struct made zombie = {.pid = 10, .tid = 10, .start = OLD, .run = 10, .state = 'Z'};
    struct made alive = {.pid = 20, .tid = 20, .start = OLD, .run = 10};
    struct prcb *p = session(16);

    assert_int_equal(prcb_profile_all(p, NULL), 0);
    make(&zombie);
    make(&alive);
    assert_int_equal(walk(p)->count, 1);
    assert_true(need(p, 20)->wall_ns < 10 * S);
    assert_int_equal(need(p, 20)->run_ns, 0);
    prcb_close(p);
}

/* An orphan that a followed process inherits is its child, and older than the session. */
static void inherited_children_count_from_now(void **state)
{
    struct made init = {.pid = 1, .tid = 1, .start = OLD};
    struct made orphan = {.pid = 20, .tid = 20, .ppid = 1, .start = OLD, .run = 10};
    struct made dead = {.pid = 30, .tid = 30, .ppid = 1, .start = OLD, .run = 10, .state = 'Z'};
    struct prcb *p = session(16);

    make(&init);
    assert_int_equal(prcb_profile_process(p, 1, PRCB_FOLLOW_ALL, NULL), 0);
    make(&orphan);
    make(&dead);
    children(1, "20 30");
    assert_int_equal(walk(p)->count, 2);
    assert_true(need(p, 20)->wall_ns < 10 * S);
    assert_int_equal(need(p, 20)->run_ns, 0);
    prcb_close(p);
}

static void zombies_have_ended(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 10, .state = 'R'};
    struct made late = {.pid = 20, .tid = 20, .ppid = 10, .start = NEW, .run = 5, .state = 'Z'};
    struct prcb *p = session(16);
    const struct prcb_account *a;
    uint64_t wall;

    make(&m);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    make(&late); /* came and went between two looks, but nobody has waited for it yet */
    children(10, "20");
    a = need(p, 20);
    assert_int_equal(a->flags, PRCB_ACCOUNT_EXITED);
    assert_int_equal(a->run_ns, 5);
    m.state = 'Z';
    m.run = 300;
    make(&m);
    a = need(p, 10);
    assert_int_equal(a->flags, PRCB_ACCOUNT_EXITED);
    assert_int_equal(a->run_ns, 290);
    assert_int_equal(a->run_ns + a->ready_ns + a->wait_ns, a->wall_ns);
    wall = a->wall_ns;
    usleep(1000);
    assert_int_equal(need(p, 10)->wall_ns, wall);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), -ESRCH);
    unmake("10");
    unmake("20");
    assert_int_equal(walk(p)->count, 2);
    prcb_close(p);
}

static void reused_number_is_another_thread(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 10};
    struct prcb *p = session(16);
    struct prcb_account first;
    const struct prcb_account *a;

    make(&m);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    first = *need(p, 10);
    m = (struct made){.pid = 10, .tid = 10, .start = NEW, .run = 10000, .voluntary = 50};
    make(&m);
    a = need(p, 10);
    assert_int_equal(a->flags, PRCB_ACCOUNT_EXITED);
    assert_int_equal(a->run_ns, 0);
    assert_int_equal(a->switches, 0);
    assert_int_equal(a->key, first.key);
    /* The new one may be named: it has an account of its own. */
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    assert_int_equal(walk(p)->count, 2);
    prcb_close(p);
}

/* The same without a look between the end of the one and the naming of the other. */
static void reused_number_is_named(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 10};
    struct prcb *p = session(16);
    struct seen *seen;

    make(&m);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    m.start = NEW;
    make(&m);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    seen = walk(p);
    assert_int_equal(seen->count, 2);
    assert_int_equal(seen->records[0].flags + seen->records[1].flags, PRCB_ACCOUNT_EXITED);
    assert_true(seen->records[0].key != seen->records[1].key);
    prcb_close(p);
}

/* A thread that execs takes its leader's number and creation time, not its counters. */
static void exec_by_another_thread(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 1000, .voluntary = 90};
    struct prcb *p = session(16);
    struct seen *seen;

    make(&m);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    m.voluntary = 95;
    make(&m);
    walk(p);
    m.voluntary = 3;
    make(&m);
    seen = walk(p);
    assert_int_equal(seen->count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(seen->records[i].switches,
                         seen->records[i].flags & PRCB_ACCOUNT_EXITED ? 5 : 0);
    /* It is still followed. */
    m = (struct made){.pid = 10, .tid = 12, .start = NEW};
    make(&m);
    assert_int_equal(walk(p)->count, 3);
    prcb_close(p);
}

static void no_room_is_counted_once(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD};
    struct prcb *p = session(2);
    struct prcb_error err;

    make(&m);
    for (m.tid = 11; m.tid < 15; m.tid++)
        make(&m);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "2 accounts"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(walk(p)->count, 2);
    assert_int_equal(status_of(p).untracked_threads, 3);
    m.tid = 20;
    m.start = NEW;
    make(&m);
    for (int i = 0; i < 3; i++)
        assert_int_equal(walk(p)->count, 2);
    assert_int_equal(status_of(p).untracked_threads, 4);
    assert_int_equal(status_of(p).threads, 2);
    assert_int_equal(status_of(p).max_threads, 2);
    prcb_close(p);
}

/* A slot is used again, a key never; a live thread that was released stays released. */
static void released_for_good(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD};
    struct made later = {.pid = 10, .tid = 11, .start = NEW};
    struct prcb *p = session(1);
    uint64_t key;

    make(&m);
    assert_int_equal(prcb_profile_process(p, 10, PRCB_FOLLOW_ALL, NULL), 0);
    key = need(p, 10)->key;
    assert_int_equal(prcb_release(p, key, NULL), 0);
    assert_int_equal(prcb_release(p, key, NULL), -ESTALE);
    make(&later);
    assert_int_equal(walk(p)->count, 0);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    assert_true(need(p, 10)->key != key);
    assert_int_equal(prcb_release(p, key, NULL), -ESTALE);
    assert_int_equal(prcb_release(p, key ^ 1, NULL), -ESTALE);
    prcb_close(p);
}

static void absent_members(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 10};
    const uint64_t never = PRCB_HAS_MIGRATIONS | PRCB_HAS_WAITS | PRCB_HAS_OPEN | PRCB_HAS_SYSCALL;
    const uint64_t sums = PRCB_HAS_RUN | PRCB_HAS_READY | PRCB_HAS_WAIT;
    const struct prcb_account *a;
    struct prcb *p = session(4);

    make(&m);
    prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL);
    a = need(p, 10);
    assert_int_equal(a->present & (sums | never), sums);
    assert_null(prcb_absent_reason(p, PRCB_HAS_RUN));
    assert_int_equal(!!(a->present & PRCB_HAS_CYCLES), !prcb_absent_reason(p, PRCB_HAS_CYCLES));
    prcb_close(p);

    put("thread-self/schedstat", "0 0 0\n");
    put("10/task/10/schedstat", "0 0 0\n");
    p = session(4);
    prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL);
    a = need(p, 10);
    assert_int_equal(a->present, PRCB_HAS_WALL | PRCB_HAS_SWITCHES);
    assert_int_equal(a->run_ns + a->wait_ns + a->ready_ns + a->tsc_cycles, 0);
    for (uint64_t member = 1; member <= PRCB_HAS_SYSCALL; member <<= 1)
        assert_int_equal(!prcb_absent_reason(p, member), !!(a->present & member));
    prcb_close(p);
}

static void no_such(void **state)
{
    struct made m = {.pid = 10, .tid = 11, .start = OLD};
    struct prcb *p = session(4);
    struct prcb_error err;

    make(&m);
    assert_int_equal(prcb_profile_thread(p, 99, PRCB_FOLLOW_NONE, &err), -ESRCH);
    assert_string_equal(err.text, "thread 99: no such thread");
    assert_int_equal(prcb_profile_process(p, 99, PRCB_FOLLOW_NONE, &err), -ESRCH);
    assert_string_equal(err.text, "process 99: no such process");
    assert_int_equal(status_of(p).threads, 0);
    prcb_close(p);
}

static void strange_text_is_an_error(void **state)
{
    struct made m = {.pid = 10, .tid = 10, .start = OLD, .run = 10};
    struct prcb *p = session(4);
    struct prcb_error err;

    make(&m);
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_NONE, NULL), 0);
    put("10/task/10/schedstat", "what?\n");
    assert_int_equal(prcb_refresh(p, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "/proc"));
    make(&m);
    assert_int_equal(prcb_refresh(p, &err), 0);
    assert_int_equal(need(p, 10)->flags, 0);
    prcb_close(p);
}

/* Both versions' files, directories below, threads that come by move and by creation. */
static void cgroups(void **state)
{
    struct made inside = {.pid = 10, .tid = 10, .start = OLD, .run = 100};
    struct made below = {.pid = 20, .tid = 20, .start = OLD};
    struct made moved = {.pid = 30, .tid = 30, .start = OLD, .run = 7777};
    struct made born = {.pid = 40, .tid = 40, .start = NEW, .run = 44};
    struct prcb *p = session(16);
    struct prcb_error err;
    char path[128];

    make(&inside);
    make(&below);
    make(&moved);
    put("group/cgroup.threads", "10\n0\n");
    put("group/sub/sub/tasks", "20\n");
    put("group/sub/tasks", "%s", "");
    put("plain/file", "%s", "");
    snprintf(path, sizeof(path), "%s/group", root);
    assert_int_equal(prcb_profile_cgroup(p, path, &err), 0);
    assert_int_equal(walk(p)->count, 2);
    put("group/cgroup.threads", "10\n30\n40\n99\n");
    make(&born);
    assert_int_equal(walk(p)->count, 4);
    assert_int_equal(need(p, 30)->run_ns, 0);
    assert_int_equal(need(p, 40)->run_ns, 44);
    /* Moved out, it stays; the cgroup removed, all stay. */
    put("group/cgroup.threads", "%s", "");
    assert_int_equal(need(p, 30)->flags, 0);
    unmake("group");
    assert_int_equal(walk(p)->count, 4);

    assert_int_equal(prcb_profile_cgroup(p, path, &err), -ENOENT);
    snprintf(path, sizeof(path), "%s/plain", root);
    assert_int_equal(prcb_profile_cgroup(p, path, &err), -ENOENT);
    assert_non_null(strstr(err.text, "not a cgroup directory"));
    prcb_close(p);
}

static void all_threads(void **state)
{
    struct made a = {.pid = 10, .tid = 10, .start = OLD, .run = 9};
    struct made b = {.pid = 10, .tid = 11, .start = OLD, .run = 9};
    struct made c = {.pid = 20, .tid = 20, .start = OLD, .run = 9};
    struct prcb *p = session(16);

    make(&a);
    make(&b);
    /* That one was left outside does not keep it outside of all. */
    assert_int_equal(prcb_profile_thread(p, 10, PRCB_FOLLOW_THREADS, NULL), 0);
    make(&c);
    assert_int_equal(walk(p)->count, 1);
    assert_int_equal(prcb_profile_all(p, NULL), 0);
    assert_int_equal(walk(p)->count, 3);
    assert_int_equal(need(p, 11)->run_ns + need(p, 20)->run_ns, 0);
    c = (struct made){.pid = 30, .tid = 30, .start = NEW, .run = 4};
    make(&c);
    assert_int_equal(need(p, 30)->run_ns, 4);
    prcb_close(p);
}

static void wide_process(void **state)
{
    struct made m = {.pid = 1000, .tid = 1000, .start = OLD};
    struct prcb *p = session(1000);
    struct prcb_status status;

    for (int i = 0; i < 300; i++) {
        m.tid = 1000 + i;
        make(&m);
    }
    assert_int_equal(prcb_profile_process(p, 1000, PRCB_FOLLOW_ALL, NULL), 0);
    assert_int_equal(prcb_refresh(p, NULL), 0);
    unmake("1000");
    assert_int_equal(prcb_refresh(p, NULL), 0);
    status = status_of(p);
    assert_int_equal(status.threads, 300);
    assert_int_equal(prcb_release_exited(p, NULL), 300);
    assert_int_equal(status_of(p).threads, 0);
    prcb_close(p);
}

/* ---- the kernel in use ---- */

static struct prcb *live_session(void)
{
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_PERF};
    struct prcb *p;

    assert_int_equal(prcb_open(&options, &p, NULL), 0);
    assert_null(prcb_session_tier_reason(p));
    return p;
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

static uint64_t own_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* Every figure of the calling thread lies between what the kernel says before and after. */
static void own_thread_agrees(void **state)
{
    struct prcb *p = live_session();
    uint64_t switches[4], run[4], mono[4];
    struct prcb_account record = {.size = sizeof(record)}, earlier;
    struct prcb_times times = {.size = sizeof(times)};
    struct prcb_thread *t;

    switches[0] = own_switches();
    run[0] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    mono[0] = clock_ns(CLOCK_MONOTONIC);
    assert_int_equal(prcb_thread_open_self(p, &t, NULL), 0);
    mono[1] = clock_ns(CLOCK_MONOTONIC);
    run[1] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    switches[1] = own_switches();
    for (int i = 0; i < 20; i++) {
        earlier = record;
        usleep(1000);
        switches[2] = own_switches();
        run[2] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        mono[2] = clock_ns(CLOCK_MONOTONIC);
        assert_int_equal(prcb_thread_times(t, &times), 0);
        assert_int_equal(prcb_thread_read(t, &record), 0);
        mono[3] = clock_ns(CLOCK_MONOTONIC);
        run[3] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        switches[3] = own_switches();
        assert_in_range(record.switches, switches[2] - switches[1], switches[3] - switches[0]);
        assert_in_range(times.switches, switches[2] - switches[1], switches[3] - switches[0]);
        assert_in_range(record.run_ns, run[2] - run[1], run[3] - run[0]);
        assert_in_range(times.run_ns, run[2] - run[1], run[3] - run[0]);
        assert_in_range(record.wall_ns, mono[2] - mono[1], mono[3] - mono[0]);
        assert_true(record.flags & PRCB_ACCOUNT_RUNNING && times.flags & PRCB_ACCOUNT_RUNNING);
        assert_true(record.run_ns >= times.run_ns && record.run_ns >= earlier.run_ns);
        assert_true(record.wait_ns >= earlier.wait_ns && record.ready_ns >= earlier.ready_ns);
    }
    assert_true(record.voluntary_switches >= 20);
    /* 20 sleeps of 1 ms; being kept from a processor afterwards is no part of them. */
    assert_true(record.wait_ns >= 20000000);
    assert_true(record.run_ns + record.ready_ns <= record.wall_ns);
    prcb_thread_close(t);
    prcb_close(p);
}

struct sleeper {
    pthread_barrier_t barrier;
    pid_t tid;
    uint64_t before, after; /* its own switches around what it does */
};

static void *sleep_some(void *arg)
{
    struct sleeper *s = arg;

    s->tid = gettid();
    pthread_barrier_wait(&s->barrier); /* it exists */
    pthread_barrier_wait(&s->barrier); /* it is profiled */
    s->before = own_switches();
    for (int i = 0; i < 30; i++)
        usleep(1000);
    s->after = own_switches();
    pthread_barrier_wait(&s->barrier); /* it is done */
    pthread_barrier_wait(&s->barrier); /* it was read */
    return NULL;
}

static void another_thread_agrees(void **state)
{
    struct prcb *p = live_session();
    struct prcb_account record = {.size = sizeof(record)};
    struct prcb_thread *t;
    struct sleeper s;
    pthread_t thread;

    pthread_barrier_init(&s.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, sleep_some, &s), 0);
    pthread_barrier_wait(&s.barrier);
    assert_int_equal(prcb_profile_thread(p, s.tid, PRCB_FOLLOW_NONE, NULL), 0);
    assert_int_equal(prcb_thread_open(p, s.tid, &t, NULL), 0);
    pthread_barrier_wait(&s.barrier);
    pthread_barrier_wait(&s.barrier);
    assert_int_equal(prcb_thread_read(t, &record), 0);
    /* At most the barriers before and after, each a wait and a preemption or a few. */
    assert_true(record.switches >= s.after - s.before);
    assert_true(record.voluntary_switches >= 30);
    assert_true(record.wait_ns >= 30000000);
    assert_true(record.run_ns > 0);
    pthread_barrier_wait(&s.barrier);
    pthread_join(thread, NULL);
    /* The kernel lets a joiner go before the thread has quite left. */
    for (int i = 0; i < 5000 && !prcb_thread_read(t, &record); i++)
        usleep(1000);
    assert_int_equal(prcb_thread_read(t, &record), -ESRCH);
    prcb_thread_close(t);
    assert_int_equal(need(p, s.tid)->flags, PRCB_ACCOUNT_EXITED);
    prcb_close(p);
}

static uint64_t switches_in_usage(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_nvcsw + usage->ru_nivcsw);
}

static uint64_t run_in_usage(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * S +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

/* Whether it runs, or others have its processor and it is to go on; false where nobody says. */
static bool is_to_run(pid_t pid)
{
    char path[64], text[16] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    return !strncmp(text, "running", 7);
}

/* A zombie is one before it has left its processor for the last time: until the kernel says that it
 * has, and what it ran stands still for some milliseconds, in which a hypervisor might have had its
 * processor. */
static void wait_until_off(pid_t zombie)
{
    unsigned long run = 0, before = 1;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/schedstat", zombie);
    for (int still = 0; still < 10; still = run == before && !is_to_run(zombie) ? still + 1 : 0) {
        FILE *file = fopen(path, "r");

        before = run;
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%lu", &run), 1);
        fclose(file);
        usleep(1000);
    }
}

/* A child that sleeps and spins, looked at as a zombie: its account is what it did since it
 * was profiled, which is what wait4 says less what it had then. */
static void child_agrees(void **state)
{
    struct prcb *p = live_session();
    int go[2];
    struct rusage usage;
    struct prcb_account record;
    uint64_t run, run_before = UINT64_MAX, ready, arrivals, had_switches, expected;
    char path[64];
    bool asleep;
    pid_t child;
    FILE *file;

    assert_int_equal(pipe(go), 0);
    child = fork();
    if (!child) {
        char byte;
        uint64_t until;

        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 20000000;
        while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
            ;
        for (int i = 0; i < 10; i++)
            usleep(2000);
        _exit(0);
    }
    /* Asleep in the pipe: switched in as often as out, so its counters stand still. */
    do {
        char text[512] = "";
        unsigned long nvcsw = 0, nivcsw = 0;
        char doing = 0;

        snprintf(path, sizeof(path), "/proc/%d/schedstat", child);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64, &run, &ready, &arrivals),
                         3);
        fclose(file);
        snprintf(path, sizeof(path), "/proc/%d/status", child);
        file = fopen(path, "r");
        assert_non_null(file);
        while (fgets(text, sizeof(text), file)) {
            sscanf(text, "State: %c", &doing);
            sscanf(text, "voluntary_ctxt_switches: %lu", &nvcsw);
            sscanf(text, "nonvoluntary_ctxt_switches: %lu", &nivcsw);
        }
        fclose(file);
        had_switches = nvcsw + nivcsw;
        asleep = doing == 'S' && had_switches == arrivals && run == run_before;
        run_before = run;
        usleep(1000);
    } while (!asleep);
    assert_int_equal(prcb_profile_process(p, child, PRCB_FOLLOW_ALL, NULL), 0);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    wait_until_off(child);
    record = *need(p, child);
    assert_int_equal(wait4(child, NULL, 0, &usage), child);

    assert_int_equal(record.flags, PRCB_ACCOUNT_EXITED);
    assert_int_equal(record.switches, switches_in_usage(&usage) - had_switches);
    assert_true(record.voluntary_switches >= 10);
    /* wait4 counts in microseconds, user and system apart. */
    expected = run_in_usage(&usage) - run;
    assert_in_range(record.run_ns, expected - 2000, expected + 2000);
    assert_true(record.run_ns >= 20000000);
    assert_true(record.wait_ns >= 20000000);
    assert_int_equal(record.run_ns + record.ready_ns + record.wait_ns, record.wall_ns);
    assert_true(need(p, child)->flags & PRCB_ACCOUNT_EXITED);
    close(go[0]);
    close(go[1]);
    prcb_close(p);
}

/* A burst of threads and processes that all live while they are looked at: none is missed,
 * each counts from its creation, and the wall time of each is right to a clock tick. */
#define BURST 40

static void *wait_for_end(void *arg)
{
    pthread_barrier_wait(arg);
    pthread_barrier_wait(arg);
    return NULL;
}

static void run_burst(int ready, int end)
{
    pthread_barrier_t barrier;
    pthread_t threads[BURST];
    char byte;

    pthread_barrier_init(&barrier, NULL, BURST + 1);
    for (int i = 0; i < BURST; i++)
        pthread_create(&threads[i], NULL, wait_for_end, &barrier);
    if (!fork()) {
        if (write(ready, "c", 1) != 1 || read(end, &byte, 1) < 0)
            _exit(1);
        _exit(0);
    }
    pthread_barrier_wait(&barrier);
    if (write(ready, "p", 1) != 1 || read(end, &byte, 1) < 0)
        _exit(1);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < BURST; i++)
        pthread_join(threads[i], NULL);
    wait(NULL);
    _exit(0);
}

static bool all_add_up(const struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        const struct prcb_account *a = &seen->records[i];

        if (a->run_ns + a->ready_ns + a->wait_ns != a->wall_ns)
            return false;
    }
    return true;
}

/* Who came last to the first barrier did not wait there, and may not be at the second one yet. */
static bool all_have_waited(const struct seen *seen, pid_t but)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->records[i].tid != but && !seen->records[i].voluntary_switches)
            return false;
    }
    return true;
}

static void followed_from_creation(void **state)
{
    struct prcb *p = live_session();
    int go[2], ready[2], end[2];
    uint64_t began, ended, tick = S / (uint64_t)sysconf(_SC_CLK_TCK);
    struct seen *seen;
    char byte;
    pid_t child;

    assert_int_equal(pipe(go) + pipe(ready) + pipe(end), 0);
    child = fork();
    if (!child) {
        close(end[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        run_burst(ready[1], end[0]);
    }
    close(end[0]);
    assert_int_equal(prcb_profile_process(p, child, PRCB_FOLLOW_ALL, NULL), 0);
    began = clock_ns(CLOCK_MONOTONIC);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    usleep(30000);
    seen = walk(p);
    for (int i = 0; i < 10000 && !all_have_waited(seen, child); i++) {
        usleep(1000);
        seen = walk(p);
    }
    ended = clock_ns(CLOCK_MONOTONIC);
    assert_int_equal(seen->count, BURST + 2);
    for (size_t i = 0; i < seen->count; i++) {
        const struct prcb_account *a = &seen->records[i];

        assert_false(a->flags & PRCB_ACCOUNT_EXITED);
        if (a->tid == child)
            continue;
        assert_true(a->wall_ns >= 30000000 - tick);
        assert_true(a->wall_ns <= ended - began + tick);
        assert_true(a->run_ns > 0 && a->voluntary_switches > 0);
        assert_true(a->run_ns + a->ready_ns + a->wait_ns <= a->wall_ns);
    }
    /* All will be asleep, on a busy machine not at once; then nothing is left over. */
    for (int i = 0; i < 10000 && !all_add_up(seen); i++) {
        usleep(1000);
        seen = walk(p);
    }
    assert_true(all_add_up(seen));
    close(end[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    seen = walk(p);
    assert_int_equal(seen->count, BURST + 2);
    for (size_t i = 0; i < seen->count; i++)
        assert_true(seen->records[i].flags & PRCB_ACCOUNT_EXITED);
    close(go[0]);
    close(go[1]);
    close(ready[0]);
    close(ready[1]);
    prcb_close(p);
}

/* Every thread that /proc shows, kernel threads among them where there are any. */
static void all_of_this_system(void **state)
{
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_PERF};
    struct prcb_status status;
    struct prcb *p;

    assert_int_equal(prcb_open(&options, &p, NULL), 0);
    assert_int_equal(prcb_profile_all(p, NULL), 0);
    assert_int_equal(prcb_refresh(p, NULL), 0);
    status = status_of(p);
    assert_true(status.threads >= 1);
    assert_true(status.short_threads_missed);
    assert_int_equal(status.untracked_threads, 0);
    prcb_close(p);
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, new_tree, delete_tree)
#define LIVE(test) cmocka_unit_test(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MADE(named_counts_from_now),
        MADE(never_back),
        MADE(last_switch_is_counted_late),
        MADE(new_threads_are_followed),
        MADE(threads_not_followed),
        MADE(children_are_followed),
        MADE(children_are_followed_by_parent),
        MADE(old_child_stays_outside),
        MADE(ended_threads_keep_their_figures),
        MADE(zombies_have_ended),
        MADE(an_old_zombie_is_nobodys),
        MADE(what_a_list_left_out_counts_from_now),
        MADE(inherited_children_count_from_now),
        MADE(reused_number_is_another_thread),
        MADE(reused_number_is_named),
        MADE(exec_by_another_thread),
        MADE(no_room_is_counted_once),
        MADE(released_for_good),
        MADE(absent_members),
        MADE(no_such),
        MADE(strange_text_is_an_error),
        MADE(cgroups),
        MADE(all_threads),
        MADE(wide_process),
        LIVE(own_thread_agrees),
        LIVE(another_thread_agrees),
        LIVE(child_agrees),
        LIVE(followed_from_creation),
        LIVE(all_of_this_system),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
