/* SPDX-License-Identifier: BSD-2-Clause
 *
 * By whom, without root: edges and switch records of one's own threads through prcbd, and who is
 * named in them. What /proc does not show to a user stands nowhere in the memory that the user
 * gets. Records are held against the accounts, which are written apart.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/edges.h>
#include <prcb/sample.h>

#include "daemon.h"

#define SECRET "zq-secret-zq"
#define ROUNDS (1000 / slowness())

/* In a child: says what is wrong and ends it with the line's number. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("    line %d: not so: %s (%s)\n", __LINE__, #condition, err.text);              \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Somebody who answers on a pipe, and a user whose thread waits for that. */
struct scene {
    uint32_t waker_uid, hides; /* not dumpable */
    uint32_t again;            /* the daemon is another one for the second half */
    int there[2], back[2];
    pid_t waker;
    uint32_t cause;          /* of the waits that are looked at */
    uint32_t word, returned; /* of a waker that is early: see wake_early */
    /* Of these waits, and of everything: */
    uint32_t ready, go, done;
    uint64_t waits, named, others, rest, unreported;
    uint32_t seen;    /* the waker's number or name stands somewhere */
    uint32_t cgroups; /* ... or the cgroup of somebody who ran */
};

static void be_waker(struct scene *s)
{
    if (s->waker_uid)
        become(s->waker_uid);
    prctl(PR_SET_NAME, SECRET);
    if (s->hides)
        prctl(PR_SET_DUMPABLE, 0);
    gate_set(&s->ready, 1);
}

/* Some answers take a moment: who asks may else be put off the processor by the one who answers,
 * each time, and find every answer there when it is back. */
static int answer(void *arg)
{
    struct scene *s = arg;
    unsigned answers = 0;
    char byte;

    be_waker(s);
    while (read(s->there[0], &byte, 1) == 1) {
        if (++answers % 16 == 0)
            usleep(200);
        if (write(s->back[1], &byte, 1) != 1)
            break;
    }
    return 0;
}

static void ask(const struct scene *s, unsigned rounds)
{
    struct prcb_error err = {0};
    char byte = 0;

    for (unsigned i = 0; i < rounds; i++)
        CHECK(write(s->there[1], &byte, 1) == 1 && read(s->back[0], &byte, 1) == 1);
}

struct law {
    struct scene *scene;
    struct holding *holding;
    uint64_t count[PRCB_CAUSE_MAX], ns[PRCB_CAUSE_MAX], ready;
    uint64_t held_count[PRCB_CAUSE_MAX], held_ns[PRCB_CAUSE_MAX]; /* held by */
    uint64_t meanwhile;
};

static void add_edge(struct law *law, const struct prcb_edge *e)
{
    if (e->kind == PRCB_EDGE_HELD_BY) {
        law->held_count[e->cause] += e->count;
        law->held_ns[e->cause] += e->ns;
        return;
    }
    if (e->kind == PRCB_EDGE_MEANWHILE) {
        law->meanwhile += e->ns;
        return;
    }
    if (e->kind != PRCB_EDGE_BEHIND)
        law->count[e->cause] += e->count;
    if (e->kind == PRCB_EDGE_WOKEN_BY)
        law->ns[e->cause] += e->ns;
    else
        law->ready += e->ns;
}

/* held: the session asked who held the kernel's locks. */
static void check_law(const struct law *law, const struct prcb_account *a, bool held)
{
    struct prcb_error err = {0};

    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);
        bool lock = held && i >= PRCB_CAUSE_RWSEM && i <= PRCB_CAUSE_KLOCK;

        if (info && info->kind != PRCB_KIND_END)
            CHECK(law->count[i] == a->waits[i].count && law->ns[i] == a->waits[i].ns);
        CHECK(law->held_count[i] == (lock ? a->waits[i].count : 0));
        CHECK(law->held_ns[i] == (lock ? a->waits[i].ns : 0));
    }
    CHECK(law->ready == a->ready_ns);
    CHECK(!law->meanwhile || law->meanwhile == a->ready_ns);
}

static int look_at(const struct prcb_edge *e, void *ctx)
{
    struct law *law = ctx;
    struct scene *s = law->scene;

    add_edge(law, e);
    if (!strncmp(e->comm, "zq", 2) || e->tid == s->waker || e->pid == s->waker)
        s->seen = 1;
    s->cgroups |= e->cgroup != 0;
    if (e->kind != PRCB_EDGE_WOKEN_BY || e->cause != s->cause)
        return 0;
    s->waits += e->count;
    if (e->by == PRCB_BY_THREAD && e->tid == s->waker && !strcmp(e->comm, SECRET))
        s->named += e->count;
    if (e->by == PRCB_BY_OTHERS && !e->tid && !e->pid && !e->comm[0])
        s->others += e->count;
    if (e->by == PRCB_BY_REST)
        s->rest += e->count;
    return 0;
}

static void read_edges(struct prcb *p, uint64_t key, struct scene *s)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct law law = {.scene = s};
    struct prcb_error err = {0};

    s->waits = s->named = s->others = s->rest = s->seen = s->cgroups = 0;
    CHECK(!prcb_edges_walk(p, key, &a, look_at, &law, &err));
    check_law(&law, &a, false);
    CHECK(s->waits == a.waits[s->cause].count);
    printf("    %" PRIu64 " waits, %" PRIu64 " ended by the one who is named, %" PRIu64
           " by another user's process, %" PRIu64 " by the rest\n",
           s->waits, s->named, s->others, s->rest);
    fflush(stdout);
}

/* ---- the same in records ---- */

#define RECORDS 65536

struct records {
    struct prcb_switch *items;
    size_t count;
    uint64_t others; /* sides of threads that are none of the session's */
    pid_t tid;
};

static int keep_record(const struct prcb_switch *record, void *ctx)
{
    struct records *records = ctx;
    uint32_t tid = (uint32_t)records->tid;

    if (records->count == RECORDS)
        return 1;
    records->others +=
        (record->old_tid && record->old_tid != tid) || (record->new_tid && record->new_tid != tid);
    records->items[records->count++] = *record;
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct prcb_switch *a = left, *b = right;

    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* What they say of the account's thread. */
struct told {
    uint64_t outs, count[PRCB_CAUSE_MAX], ready, waits, named, others;
    uint64_t early;      /* of those named: woken before its switch out */
    uint64_t unreported; /* switches in that the kernel did not report: between two out */
};

static struct told told_by(struct records *records, const struct scene *s)
{
    struct told ret = {.outs = 0};
    uint64_t left = 0;
    uint8_t cause = 0;
    bool is_out = false;

    qsort(records->items, records->count, sizeof(*records->items), by_time);
    for (size_t i = 0; i < records->count; i++) {
        const struct prcb_switch *r = &records->items[i];
        bool named;

        if (r->new_tid) {
            ret.ready += r->ready_ns;
            ret.waits += cause == s->cause;
            named = cause == s->cause && r->waker_by == PRCB_BY_THREAD &&
                    r->waker_tid == (uint32_t)s->waker && !strcmp(r->waker_comm, SECRET) &&
                    r->woken_ns && r->woken_ns <= r->time_ns && r->woken_cpu != UINT32_MAX;
            ret.named += named;
            ret.early += named && r->woken_ns < left;
            ret.others += cause == s->cause && r->waker_by == PRCB_BY_OTHERS && !r->waker_tid &&
                          !r->waker_pid && !r->waker_comm[0] && r->woken_cpu == UINT32_MAX;
            is_out = false;
        }
        if (r->old_tid) {
            ret.unreported += is_out;
            is_out = true;
            ret.outs++;
            left = r->time_ns;
            ret.count[cause = r->cause]++;
        }
    }
    return ret;
}

/* Records and account of one moment: a thread that looks at itself may be switched between the two.
 * Records may lack its first switches, so they alone do not show that. */
static struct told take_records(struct prcb *p, struct prcb_thread *self, const struct scene *s,
                                struct records *records, struct prcb_account *a)
{
    struct prcb_switch_room room = {.size = sizeof(room)};
    struct prcb_account before = {.size = sizeof(before)};
    struct prcb_error err = {0};
    struct told told;
    int tries = 100;

    do {
        CHECK(tries--);
        CHECK(!prcb_thread_read(self, &before));
        records->tid = before.tid;
        CHECK(!prcb_session_switches(p, keep_record, records, &room, &err));
        CHECK(!room.lost);
        CHECK(!prcb_thread_read(self, a));
    } while (a->switches != before.switches);
    told = told_by(records, s);
    CHECK(told.outs + a->missed_switches <= a->switches);
    CHECK(!records->others);
    return told;
}

/* first: how long it was ready before its first record, which is no record's. */
static void read_records(struct prcb *p, struct prcb_thread *self, struct scene *s,
                         struct records *records, uint64_t first)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct told told = take_records(p, self, s, records, &a);
    struct prcb_error err = {0};

    for (uint32_t i = 1; i < PRCB_CAUSE_MAX && !a.missed_switches; i++)
        CHECK(told.count[i] == a.waits[i].count);
    /* The kernel does not report each switch in, also not to its own tracer (sched_switch). The
     * switch out behind it repairs the account, and the records have neither that ready time nor
     * who ended the wait. */
    CHECK(a.missed_switches ||
          (told.unreported ? told.ready + first <= a.ready_ns : told.ready + first == a.ready_ns));
    printf("    records: %" PRIu64 " waits for the pipe, %" PRIu64
           " ended by the one who is named, "
           "%" PRIu64 " by another user's process\n",
           told.waits, told.named, told.others);
    fflush(stdout);
    s->unreported = told.unreported;
    CHECK(told.waits && !(told.named && told.others));
    /* An edge that gave way to others may lack some. */
    CHECK(told.named + told.unreported >= s->named && told.others + told.unreported >= s->others);
    CHECK(told.named <= s->named + s->rest && told.others <= s->others + s->rest);
}

/* All eBPF maps that are mapped here, bytes as they are. */
static bool stands_in_maps(const char *text)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[512];
    bool ret = false;

    while (in && fgets(line, sizeof(line), in)) {
        uintptr_t from, to;

        if (strstr(line, "bpf-map") && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2)
            ret |= memmem((const void *)from, to - from, text, strlen(text)) != NULL;
    }
    if (in)
        fclose(in);
    return ret;
}

static struct prcb *open_edges(uint32_t flags, struct prcb_error *err)
{
    struct prcb_options options = {.size = sizeof(options),
                                   .tier = PRCB_TIER_DAEMON,
                                   .flags = PRCB_OPEN_EDGES | flags,
                                   .max_threads = 16};
    struct prcb *p = NULL;

    prcb_open(&options, &p, err);
    return p;
}

static int wait_for_answers(void *arg)
{
    struct records records = {.items = calloc(RECORDS, sizeof(*records.items))};
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_error err = {0};
    struct prcb_thread *self;
    struct scene *s = arg;
    struct told told;
    struct prcb *p;
    uint64_t first;

    CHECK(records.items);
    become(NOBODY);
    p = open_edges(PRCB_OPEN_SWITCHES | PRCB_OPEN_MEANWHILE, &err);
    CHECK(p);
    CHECK(!prcb_thread_open_self(p, &self, &err));
    /* With its first switch away it is counted how long it was ready on the way here, where that
     * was not seen; and an answer may be there before it would wait for it. */
    do {
        ask(s, 1);
        told = take_records(p, self, s, &records, &a);
    } while (!told.outs);
    first = a.ready_ns - told.ready;
    ask(s, ROUNDS / 2);
    if (s->again) {
        gate_set(&s->go, 1);
        gate_wait_while(&s->done, 0);
    }
    ask(s, ROUNDS / 2);
    CHECK(!prcb_thread_read(self, &a));
    read_edges(p, a.key, s);
    read_records(p, self, s, &records, first);
    free(records.items);
    s->seen |= (uint32_t)stands_in_maps(SECRET) << 1;
    prcb_thread_close(self);
    prcb_close(p);
    return 0;
}

static struct scene *make_scene_of(uint32_t cause, int (*waker)(void *arg), uint32_t waker_uid,
                                   bool hides)
{
    struct scene *s = shared_memory(sizeof(*s));

    *s = (struct scene){.waker_uid = waker_uid, .hides = hides, .cause = cause};
    assert_false(pipe(s->there) || pipe(s->back));
    s->waker = child_start(waker, s);
    gate_wait_while(&s->ready, 0);
    return s;
}

static struct scene *make_scene(uint32_t waker_uid, bool hides)
{
    return make_scene_of(PRCB_CAUSE_PIPE, answer, waker_uid, hides);
}

static void end_scene(struct scene *s)
{
    child_kill(s->waker);
    for (int i = 0; i < 2; i++) {
        close(s->there[i]);
        close(s->back[i]);
    }
}

/* Some kernels do not report each switch of a processor that was idle: of such a one the wait
 * before it has no waker, and that after it may have two. The wait that is open is of the rest. */
static uint64_t most_unreported(const struct scene *s)
{
    return 2 + 2 * s->unreported;
}

static void assert_named(const struct scene *s)
{
    assert_true(s->waits > 0);
    assert_int_equal(s->named + s->rest, s->waits);
    assert_true(s->rest <= most_unreported(s));
}

static void assert_hidden(const struct scene *s)
{
    assert_true(s->waits > 0);
    assert_int_equal(s->others + s->rest, s->waits);
    assert_true(s->rest <= most_unreported(s));
    assert_int_equal(s->seen, 0);
    assert_int_equal(s->cgroups, 0);
}

static void run_scene(uint32_t waker_uid, bool hides, bool named)
{
    struct scene *s = make_scene(waker_uid, hides);

    assert_int_equal(child_wait(child_start(wait_for_answers, s)), 0);
    if (named)
        assert_named(s);
    else
        assert_hidden(s);
    end_scene(s);
}

/* ---- the session of all threads ---- */

static struct prcb *open_all(uint32_t flags)
{
    /* Room for all that run here beside this test. */
    const struct prcb_options options = {.size = sizeof(options),
                                         .tier = PRCB_TIER_DAEMON,
                                         .flags = PRCB_OPEN_SHARED | flags,
                                         .max_threads = 4096};
    struct prcb_error err = {0};
    struct prcb *p = NULL;

    CHECK(!prcb_open(&options, &p, &err));
    CHECK(!prcb_profile_all(p, &err));
    return p;
}

static uint64_t own_key(struct prcb *p)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_error err = {0};
    struct prcb_thread *self;

    CHECK(!prcb_thread_open(p, getpid(), &self, &err) && !prcb_thread_read(self, &a));
    prcb_thread_close(self);
    return a.key;
}

/* s->again: the session that is shared keeps edges. */
static int share_edges(void *arg)
{
    struct scene *s = arg;
    struct prcb_error err = {0};
    struct prcb *plain, *p;

    become(NOBODY);
    plain = open_all(0);
    p = open_all(PRCB_OPEN_EDGES | PRCB_OPEN_MEANWHILE);
    CHECK((own_key(p) == own_key(plain)) == s->again);
    ask(s, ROUNDS);
    read_edges(p, own_key(p), s);
    /* Who does not ask gets none. */
    CHECK(prcb_edges_walk(plain, own_key(plain), NULL, look_at, NULL, &err) == -EOPNOTSUPP);
    prcb_close(plain);
    prcb_close(p);
    return 0;
}

static void who_wakes_all_threads(void **state)
{
    for (uint32_t kept = 0; kept < 2; kept++) {
        struct scene *s;

        daemon_start(kept ? "profile_all = all\nby_whom = yes\n" : "profile_all = all\n");
        s = make_scene(SOMEONE, true);
        s->again = kept;
        assert_int_equal(child_wait(child_start(share_edges, s)), 0);
        s->unreported = ROUNDS; /* not counted here */
        assert_named(s);
        assert_true(s->named > s->waits / 2);
        end_scene(s);
        daemon_end(NULL);
    }
}

/* ---- /proc shows everybody ---- */

static bool proc_hides(void)
{
    FILE *in = fopen("/proc/mounts", "re");
    char line[512];
    bool ret = false;

    while (in && fgets(line, sizeof(line), in))
        ret |= strstr(line, " /proc ") && strstr(line, "hidepid=");
    if (in)
        fclose(in);
    return ret;
}

static void who_wakes_ones_threads(void **state)
{
    daemon_shared();
    if (proc_hides())
        skip_because("/proc hides processes here");
    run_scene(NOBODY, false, true);
    run_scene(SOMEONE, false, true);
    run_scene(0, false, true);
    /* Nobody asks any more. */
    assert_true(wait_for(!daemon_has_attached("prcb_waking")));
}

static void the_daemon_is_another_meanwhile(void **state)
{
    struct scene *s;
    pid_t child;

    daemon_start("");
    s = make_scene(NOBODY, false);
    s->again = true;
    child = child_start(wait_for_answers, s);
    gate_wait_while(&s->go, 0);
    assert_true(daemon_has_attached("prcb_waking"));
    daemon_kill();
    daemon_again();
    assert_true(daemon_has_attached("prcb_waking"));
    gate_set(&s->done, 1);
    assert_int_equal(child_wait(child), 0);
    assert_named(s);
    end_scene(s);
    assert_true(wait_for(!daemon_has_attached("prcb_waking")));
}

#define EARLY_WAKES 4000

/* Wakes who waits for the word as soon as there is somebody to wake, once for each number that it
 * has: nearly always between "about to sleep" and the switch out. */
static int wake_early(void *arg)
{
    struct scene *s = arg;
    uint32_t done = 0, now;

    be_waker(s);
    for (;;) {
        now = gate_get(&s->word);
        if (now == done || syscall(SYS_futex, &s->word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
            continue;
        done = now;
        __atomic_store_n(&s->returned, done, __ATOMIC_RELEASE);
    }
    return 0;
}

static void be_woken_early(struct scene *s, unsigned rounds)
{
    struct prcb_error err = {0};

    for (unsigned i = 0; i < rounds; i++) {
        uint32_t now = s->word + 1;

        __atomic_store_n(&s->word, now, __ATOMIC_RELEASE);
        CHECK(!syscall(SYS_futex, &s->word, FUTEX_WAIT, now, NULL, NULL, 0));
        /* A wake that is still on its way would be one of the wait that follows. */
        while (gate_get(&s->returned) != now)
            ;
    }
}

static int wait_until_woken_early(void *arg)
{
    struct records records = {.items = calloc(RECORDS, sizeof(*records.items))};
    uint64_t until = mono_ns() + 5000000000ull * slowness();
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_error err = {0};
    struct told told = {.outs = 0};
    struct prcb_thread *self;
    struct scene *s = arg;
    struct prcb *p;

    CHECK(records.items);
    become(NOBODY);
    pin_to(0);
    p = open_edges(PRCB_OPEN_SWITCHES, &err);
    CHECK(p);
    CHECK(!prcb_thread_open_self(p, &self, &err));
    while (told.waits < EARLY_WAKES && records.count < RECORDS / 2 && mono_ns() < until) {
        be_woken_early(s, 100);
        told = take_records(p, self, s, &records, &a);
    }
    s->waits = told.waits;
    s->named = told.named;
    s->others = told.early;
    s->unreported = told.unreported;
    free(records.items);
    prcb_thread_close(self);
    prcb_close(p);
    return 0;
}

/* None is lost, whether one of them was seen or not: a program that lost them all would not have
 * seen one. */
static void a_wake_before_the_switch_out_is_not_lost(void **state)
{
    struct scene *s;

    daemon_shared();
    if (proc_hides())
        skip_because("/proc hides processes here");
    if (cpu_number(0) == cpu_number(1))
        skip_because("one processor: who is about to sleep is not woken meanwhile");
    s = make_scene_of(PRCB_CAUSE_FUTEX, wake_early, NOBODY, false);
    pin_thread(s->waker, 1);
    assert_int_equal(child_wait(child_start(wait_until_woken_early, s)), 0);
    printf("    %" PRIu64 " waits, %" PRIu64 " ended by the one who is named, %" PRIu64
           " of these before the switch out; %" PRIu64 " switches were not reported\n",
           s->waits, s->named, s->others, s->unreported);
    end_scene(s);
    assert_true(s->waits > 0);
    assert_true(s->waits - s->named <= most_unreported(s));
    if (!s->others)
        skip_because("no wake came before its sleeper's switch out");
}

static int in_pid_namespace(void *arg)
{
    pid_t child;
    int status;

    if (unshare(CLONE_NEWPID))
        return 3;
    child = fork(); /* not child_start: who is in there has no parent to see */
    if (!child)
        _exit(wait_for_answers(arg));
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

/* Its /proc has no process from outside. */
static void from_outside_of_the_pid_namespace(void **state)
{
    struct scene *s;

    daemon_shared();
    s = make_scene(0, false);
    assert_int_equal(child_wait(child_start(in_pid_namespace, s)), 0);
    assert_hidden(s);
    end_scene(s);
}

/* ---- /proc hides others' processes ---- */

/* A daemon that has such a /proc: what prcb sees of it is what its users see. */
static void start_hiding(void)
{
    char script[] = "/tmp/prcbd-hides-XXXXXX";
    const char *program = getenv("PRCBD");
    FILE *out;
    int fd = mkstemp(script);

    assert_true(fd >= 0);
    out = fdopen(fd, "w");
    assert_non_null(out);
    fprintf(out,
            "#!/bin/sh\n"
            /* The root's mount is left alone: a chroot's root is none. */
            "exec unshare -m --propagation unchanged sh -c 'mount --make-private /proc && "
            "mount -t proc -o hidepid=2 proc /proc && exec \"$0\" \"$@\"' "
            "%s \"$@\"\n",
            program ? program : PRCBD);
    assert_int_equal(fchmod(fd, 0755), 0);
    assert_int_equal(fclose(out), 0);
    setenv("PRCBD", script, 1);
    daemon_start("");
    if (program)
        setenv("PRCBD", program, 1);
    else
        unsetenv("PRCBD");
    unlink(script);
}

static void others_are_not_named_where_proc_hides_them(void **state)
{
    struct prcb_error err = {0};
    struct prcb_account a;
    struct scene *s;
    struct prcb *p;
    pid_t child;

    start_hiding();
    run_scene(NOBODY, false, true);
    run_scene(NOBODY, true, false); /* its own user's, but not its to look into */
    run_scene(SOMEONE, false, false);
    run_scene(0, false, false);
    /* Of one thread: its user is not told what root is told at the same time. */
    s = make_scene(0, false);
    s->again = true;
    child = child_start(wait_for_answers, s);
    gate_wait_while(&s->go, 0);
    /* Now: what is mapped here the child would have as well. */
    p = open_edges(PRCB_OPEN_SWITCHES, &err);
    assert_non_null(p);
    assert_int_equal(prcb_profile_process(p, child, 0, &err), 0);
    gate_set(&s->done, 1);
    assert_int_equal(child_wait(child), 0);
    assert_hidden(s);
    assert_true(find_account(p, child, &a));
    read_edges(p, a.key, s);
    assert_named(s);
    prcb_close(p);
    end_scene(s);
}

/* ---- who holds the kernel's locks ---- */

#define TURNS      5
#define UNREPORTED 2              /* of these, at most */
#define BEFORE     "zq-before-zq" /* the holder's name, before it execs another program */

/* A process that holds a pipe's mutex when it is told to (holds_lock.c), and a user whose thread
 * waits for that. */
struct holding {
    uint32_t uid, hides;
    char program[64]; /* that the holder execs, and the waiter's child; "": none */
    int pipe[2], go[2], told[2];
    pid_t holder, waiter;
    uint32_t ready; /* gates: the waiter is profiled; */
    uint32_t turn;  /* its turn, 1: to wait for the lock; 0: it has; 2: to end; */
    uint32_t known; /* its number stands here */
    /* Of the waits for the mutex: */
    uint64_t waits, named, named_before, others, rest;
    uint32_t seen; /* the name stands somewhere */
};

static int become_holder(void *arg)
{
    static char program[] = HOLDS_LOCK, elsewhere[] = "holds_lock", secret[] = SECRET,
                before[] = BEFORE;
    struct holding *h = arg;
    char numbers[4][12], hides[2] = {h->hides ? '1' : '0', 0};
    bool execs = h->program[0];
    char *const argv[] = {access(program, X_OK) ? elsewhere : program,
                          numbers[0],
                          numbers[1],
                          numbers[2],
                          execs ? before : secret,
                          numbers[3],
                          hides,
                          h->program,
                          secret,
                          NULL};
    const int fds[] = {h->pipe[1], h->go[0], h->told[1]};

    for (int i = 0; i < 3; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%d", dup(fds[i]));
    snprintf(numbers[3], sizeof(numbers[3]), "%u", h->uid);
    execvp(argv[0], argv);
    return 1;
}

static void tell_holder(const struct holding *h, char what)
{
    assert_int_equal(write(h->go[1], &what, 1), 1);
}

static char hear_holder(const struct holding *h)
{
    char what;

    assert_int_equal(read(h->told[0], &what, 1), 1);
    return what;
}

/* program: that it execs later; NULL: none. */
static struct holding *make_holding(uint32_t uid, bool hides, const char *program)
{
    struct holding *h = shared_memory(sizeof(*h));

    *h = (struct holding){.uid = uid, .hides = hides};
    if (program)
        snprintf(h->program, sizeof(h->program), "%s", program);
    assert_false(pipe2(h->pipe, O_CLOEXEC) || pipe2(h->go, O_CLOEXEC) || pipe2(h->told, O_CLOEXEC));
    h->holder = child_start(become_holder, h);
    return h;
}

static void end_holding(struct holding *h)
{
    child_kill(h->holder);
    for (int i = 0; i < 2; i++) {
        close(h->pipe[i]);
        close(h->go[i]);
        close(h->told[i]);
    }
}

/* Whether the thread waits in its call of write, and cannot be interrupted there. State D alone may
 * be that of a page that it reads in before. */
static bool waits_for_lock(pid_t tid)
{
    char path[64];
    long call = SYS_write;
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tid);
    in = fopen(path, "re");
    if (in && fscanf(in, "%ld", &call) != 1) /* "running" */
        call = -1;
    if (in)
        fclose(in);
    return call == SYS_write && kernel_state(tid, tid) == 'D';
}

/* The waiter waits while the other holds the lock. */
static void hold_once(struct holding *h, uint32_t *turn, const pid_t *waiter)
{
    char bytes[2], held;

    tell_holder(h, 'g');
    held = hear_holder(h);
    if (held == 'n')
        skip_because("no userfaultfd");
    assert_int_equal(held, 'h');
    gate_set(turn, 1);
    assert_true(wait_for(waits_for_lock(*waiter)));
    tell_holder(h, ' ');
    assert_int_equal(hear_holder(h), 'd');
    assert_int_equal(read(h->pipe[0], &bytes[0], 1), 1);
    assert_int_equal(read(h->pipe[0], &bytes[1], 1), 1);
}

static int look_at_holder(const struct prcb_edge *e, void *ctx)
{
    struct law *law = ctx;
    struct holding *h = law->holding;
    bool thread = e->by == PRCB_BY_THREAD && e->tid == h->holder && e->pid == h->holder;

    add_edge(law, e);
    if (!strcmp(e->comm, SECRET) || (thread && strcmp(e->comm, BEFORE)))
        h->seen = 1;
    if (e->kind != PRCB_EDGE_HELD_BY || e->cause != PRCB_CAUSE_MUTEX)
        return 0;
    h->waits += e->count;
    if (thread && !strcmp(e->comm, SECRET))
        h->named += e->count;
    if (thread && !strcmp(e->comm, BEFORE))
        h->named_before += e->count;
    if (e->by == PRCB_BY_OTHERS && !e->tid && !e->pid && !e->comm[0])
        h->others += e->count;
    if (e->by == PRCB_BY_REST)
        h->rest += e->count;
    return 0;
}

static void read_holders(struct prcb *p, uint64_t key, struct holding *h)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct law law = {.holding = h};
    struct prcb_error err = {0};

    h->waits = h->named = h->named_before = h->others = h->rest = h->seen = 0;
    CHECK(!prcb_edges_walk(p, key, &a, look_at_holder, &law, &err));
    check_law(&law, &a, true);
    printf("    %" PRIu64 " waits for the lock, %" PRIu64 " while the one held it who is named, "
           "%" PRIu64 " under its name before, %" PRIu64
           " while another user's process did, %" PRIu64 " the rest\n",
           h->waits, h->named, h->named_before, h->others, h->rest);
    fflush(stdout);
}

static int wait_for_lock(void *arg)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_error err = {0};
    struct prcb_thread *self;
    struct holding *h = arg;
    struct prcb *p;

    become(NOBODY);
    p = open_edges(PRCB_OPEN_OWNERS, &err);
    CHECK(p);
    CHECK(!prcb_thread_open_self(p, &self, &err));
    /* Whose lock it is is no reason to profile it. */
    if (h->uid != NOBODY)
        CHECK(prcb_profile_thread(p, h->holder, 0, &err));
    gate_set(&h->ready, 1);
    for (;;) {
        gate_wait_while(&h->turn, 0);
        if (h->turn == 2)
            break;
        CHECK(write(h->pipe[1], "x", 1) == 1);
        gate_set(&h->turn, 0);
    }
    CHECK(!prcb_thread_read(self, &a));
    read_holders(p, a.key, h);
    h->seen |= (uint32_t)stands_in_maps(SECRET) << 1;
    prcb_thread_close(self);
    prcb_close(p);
    return 0;
}

static void hold_some_times(struct holding *h)
{
    for (int i = 0; i < TURNS; i++) {
        hold_once(h, &h->turn, &h->waiter);
        gate_wait_while(&h->turn, 1);
    }
}

static void end_waiter(struct holding *h, pid_t child)
{
    gate_set(&h->turn, 2);
    assert_int_equal(child_wait(child), 0);
    if (!h->waits)
        skip_because("this kernel tells of no contended mutex");
}

static void start_waiter(struct holding *h)
{
    h->waiter = child_start(wait_for_lock, h);
    gate_wait_while(&h->ready, 0);
}

/* Of a wait whose switch in the kernel did not report the holder is in the rest. */
static void assert_held(const struct holding *h, uint64_t found)
{
    assert_in_range(found, TURNS - UNREPORTED, TURNS);
    assert_true(found + h->rest >= TURNS);
}

static void assert_holder(const struct holding *h, bool named)
{
    assert_true(h->waits >= TURNS);
    assert_held(h, named ? h->named : h->others);
    assert_int_equal(named ? h->others : h->named, 0);
    assert_true(named ? h->seen : !h->seen);
}

static void run_holding(uint32_t uid, bool hides, bool named)
{
    struct holding *h = make_holding(uid, hides, NULL);

    start_waiter(h);
    hold_some_times(h);
    end_waiter(h, h->waiter);
    assert_holder(h, named);
    end_holding(h);
}

static void who_held_ones_locks(void **state)
{
    daemon_shared();
    if (proc_hides())
        skip_because("/proc hides processes here");
    run_holding(NOBODY, false, true);
    run_holding(SOMEONE, false, true);
    run_holding(0, false, true);
}

static int lock_in_pid_namespace(void *arg)
{
    struct holding *h = arg;
    pid_t child;
    int status;

    if (unshare(CLONE_NEWPID))
        return 3;
    child = fork(); /* as in_pid_namespace */
    if (!child)
        _exit(wait_for_lock(h));
    gate_wait_while(&h->ready, 0);
    h->waiter = child;
    gate_set(&h->known, 1);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

static void holders_outside_of_the_pid_namespace(void **state)
{
    struct holding *h;
    pid_t child;

    daemon_shared();
    h = make_holding(SOMEONE, false, NULL);
    child = child_start(lock_in_pid_namespace, h);
    gate_wait_while(&h->known, 0);
    hold_some_times(h);
    end_waiter(h, child);
    assert_holder(h, false);
    end_holding(h);
}

static void holders_are_not_named_where_proc_hides_them(void **state)
{
    struct prcb_error err = {0};
    struct prcb_account a;
    struct holding *h;
    struct prcb *p;

    start_hiding();
    run_holding(NOBODY, false, true);
    run_holding(NOBODY, true, false); /* its own user's, but not its to look into */
    run_holding(SOMEONE, false, false);
    run_holding(0, false, false);
    /* Of one thread: its user is not told what root is told at the same time. */
    h = make_holding(0, false, NULL);
    start_waiter(h);
    p = open_edges(PRCB_OPEN_OWNERS, &err);
    assert_non_null(p);
    assert_int_equal(prcb_profile_process(p, h->waiter, 0, &err), 0);
    hold_some_times(h);
    end_waiter(h, h->waiter);
    assert_holder(h, false);
    assert_true(find_account(p, h->waiter, &a));
    read_holders(p, a.key, h);
    assert_holder(h, true);
    prcb_close(p);
    end_holding(h);
}

/* ---- and become another user's meanwhile ---- */

/* A set-user-id copy of holds_lock, or NULL. */
static const char *make_set_user_id(char folder[32], char program[64])
{
    char command[256];

    strcpy(folder, "/tmp/prcbd-holds-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(program, 64, "%s/holds_lock", folder);
    snprintf(command, sizeof(command),
             "cp $(command -v " HOLDS_LOCK " || command -v holds_lock) %s && chmod 4755 %s",
             program, program);
    return system(command) ? NULL : program;
}

/* What its holder was called while it was the user's own is told, and nothing of what it has
 * become. */
static void a_holder_that_executes_a_set_user_id_program(void **state)
{
    char folder[32], program[64];
    struct holding *h;

    start_hiding();
    assert_non_null(make_set_user_id(folder, program));
    h = make_holding(NOBODY, false, program);
    start_waiter(h);
    hold_some_times(h);
    tell_holder(h, 'x');
    hold_some_times(h);
    end_waiter(h, h->waiter);
    unlink(program);
    rmdir(folder);
    assert_in_range(h->named_before, TURNS - UNREPORTED, TURNS);
    assert_in_range(h->others, TURNS - UNREPORTED, TURNS);
    assert_true(h->named_before + h->others + h->rest >= 2 * TURNS);
    assert_int_equal(h->named, 0);
    assert_false(h->seen);
    end_holding(h);
}

/* A child of the waiter's, profiled as its own, that waits for the lock once, and once as a
 * set-user-id program. */
struct becoming {
    struct holding *h;
    char program[64];
    uint32_t turn, go;
    pid_t child;
};

static int write_and_exec(struct becoming *b)
{
    char number[12];
    char *const argv[] = {b->program, number, NULL};

    gate_wait_while(&b->turn, 0);
    if (write(b->h->pipe[1], "x", 1) != 1)
        return 1;
    gate_set(&b->turn, 0);
    gate_wait_while(&b->go, 0);
    snprintf(number, sizeof(number), "%d", dup(b->h->pipe[1]));
    execv(argv[0], argv);
    return 1;
}

static int follow_what_becomes(void *arg)
{
    struct becoming *b = arg;
    struct prcb_error err = {0};
    struct prcb_account a;
    struct prcb *p;
    pid_t child;
    int status;

    become(NOBODY);
    p = open_edges(PRCB_OPEN_OWNERS, &err);
    CHECK(p);
    CHECK(!prcb_profile_process(p, getpid(), PRCB_FOLLOW_ALL, &err));
    child = fork();
    if (!child)
        _exit(write_and_exec(b));
    __atomic_store_n(&b->child, child, __ATOMIC_RELEASE);
    CHECK(waitpid(child, &status, 0) == child && !status);
    CHECK(find_account(p, child, &a) && a.flags & PRCB_ACCOUNT_EXITED);
    read_holders(p, a.key, b->h);
    prcb_close(p);
    return 0;
}

static void a_waiter_that_executes_a_set_user_id_program(void **state)
{
    struct becoming *b = shared_memory(sizeof(*b));
    char folder[32];
    pid_t child;

    daemon_shared();
    if (proc_hides())
        skip_because("/proc hides processes here");
    assert_non_null(make_set_user_id(folder, b->program));
    b->h = make_holding(SOMEONE, false, NULL);
    child = child_start(follow_what_becomes, b);
    assert_true(wait_for(__atomic_load_n(&b->child, __ATOMIC_ACQUIRE)));
    hold_once(b->h, &b->turn, &b->child);
    gate_wait_while(&b->turn, 1);
    hold_once(b->h, &b->go, &b->child);
    assert_int_equal(child_wait(child), 0);
    unlink(b->program);
    rmdir(folder);
    if (!b->h->waits)
        skip_because("this kernel tells of no contended mutex");
    assert_int_equal(b->h->named, 1);
    assert_int_equal(b->h->others, 0);
    end_holding(b->h);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BPF_TEST(who_wakes_ones_threads),
        DAEMON_TEST(who_wakes_all_threads),
        BPF_TEST(a_wake_before_the_switch_out_is_not_lost),
        BPF_TEST(from_outside_of_the_pid_namespace),
        DAEMON_TEST(the_daemon_is_another_meanwhile),
        DAEMON_TEST(others_are_not_named_where_proc_hides_them),
        BPF_TEST(who_held_ones_locks),
        BPF_TEST(holders_outside_of_the_pid_namespace),
        BPF_TEST(a_waiter_that_executes_a_set_user_id_program),
        DAEMON_TEST(holders_are_not_named_where_proc_hides_them),
        DAEMON_TEST(a_holder_that_executes_a_set_user_id_program),
    };
    int result;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    result = BPF_RUN("daemon_edges", tests);
    daemon_end(NULL);
    return result;
}
