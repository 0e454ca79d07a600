/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The perf tier: accounts from /proc, for a process with no privilege. Nothing runs
 * between two looks; each refresh lists the threads of what is followed, takes on
 * the new ones, and brings every account up to date. A thread that comes and goes
 * between two looks is not seen, and status says so.
 *
 * What is coarser here than on the bpf tier, besides the members that are absent:
 * - run of another process's thread lags by up to a tick while it runs, and ready by
 *   the stretch it is queued for; both are complete once it waits (perf_figures.h).
 * - A followed thread starts with all it ever ran; its creation is known to the
 *   clock tick of /proc (10 ms) or the time since the look before, whichever is
 *   shorter, and taken to be in the middle: wall, and with it wait, is off by up to
 *   half of that.
 * - An ended thread that is not yet waited for (a zombie) is seen with its final
 *   figures, its wall ending at that look; one that is gone keeps what the last look
 *   found.
 * - Which thread created another cannot be seen: following one thread's threads
 *   follows all that its process creates from then on. A process whose parent ended
 *   counts as a child of the one that inherits it.
 */
#include "tier_perf.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "error.h"
#include "now.h"
#include "perf_look.h"
#include "perf_table.h"
#include "pid_ns.h"

/* The counter's rate is measured again until it was measured over this long. */
#define GOOD_RATE_NS 1000000000ull

/* Looks at the threads of a process that is to be profiled, while they find new ones. */
#define LIST_PASSES 3

struct perf_state {
    struct perf_source source;
    struct perf_table table;
    uint64_t tick_ns;
    int64_t boot_offset; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC at the last scan */
    uint64_t scan;       /* number of the scan under way, or of the last one */
    uint64_t since;      /* CLOCK_MONOTONIC when the first threads were chosen; 0: none yet */
    uint64_t last_scan;  /* the same clock when it began; before the first, since */
    uint64_t untracked;
    uint64_t rate_mono; /* when rate was measured */
    double rate;        /* cycles per nanosecond; 0: no trusted counter */
    bool all;
    bool follows;
    struct cgroup_list cgroups;
    /* Lists processes and their parents, for kernels without lists of children; the list is made
     * once for each scan or call that needs it. */
    struct pid_list family, parents;
    bool family_taken;
};

/* ---- opening ---- */

static int64_t measure_boot_offset(void)
{
    struct timespec boot, mono;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    return (int64_t)(boot.tv_sec - mono.tv_sec) * 1000000000 + (boot.tv_nsec - mono.tv_nsec);
}

int tier_perf_open_at(struct prcb *p, const char *root, bool live, struct prcb_error *err)
{
    int result;

    p->perf = calloc(1, sizeof(*p->perf));
    if (!p->perf)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->perf->source.live = live;
    p->perf->tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
    p->perf->boot_offset = measure_boot_offset();
    result = procfs_open(&p->perf->source.fs, root);
    if (result)
        return prcb_fail(err, result == -ENOENT ? -EOPNOTSUPP : result,
                         "%s cannot be opened (%s): mount it (mount -t proc proc /proc)", root,
                         strerror(-result));
    if (live) {
        result = check_proc_numbers(err);
        if (result)
            return result;
    }
    procfs_probe(&p->perf->source.fs, &p->perf->source.has);
    return 0;
}

static int perf_open(struct prcb *p, struct prcb_error *err)
{
    return tier_perf_open_at(p, "/proc", true, err);
}

static void perf_close(struct prcb *p)
{
    struct perf_state *s = p->perf;

    if (!s)
        return;
    procfs_close(&s->source.fs);
    perf_table_free(&s->table);
    cgroup_list_free(&s->cgroups);
    pid_list_free(&s->family);
    pid_list_free(&s->parents);
    free(s);
    p->perf = NULL;
}

/* ---- words ---- */

/* Whether a thread exists that /proc does not show. */
static bool is_hidden(const struct perf_state *s, pid_t tid)
{
    return s->source.live && (!kill(tid, 0) || errno == EPERM);
}

/* Whether it has ended and /proc still shows it: a zombie. */
static bool is_zombie(struct perf_state *s, pid_t tid)
{
    struct procfs_stat stat;

    return !procfs_read_stat(&s->source.fs, tid, tid, &stat) && perf_has_ended(stat.state);
}

static int explain(struct perf_state *s, int code, const char *what, pid_t number,
                   struct prcb_error *err)
{
    switch (code) {
    case -ESRCH:
        if (is_zombie(s, number))
            return prcb_fail(err, code,
                             "%s %d: it has ended, and its parent has not waited for it yet (a "
                             "zombie): there is nothing left to profile",
                             what, (int)number);
        if (!is_hidden(s, number))
            return prcb_fail(err, code, "%s %d: no such %s", what, (int)number, what);
        /* fallthrough */
    case -EPERM:
        return prcb_fail(err, -EPERM,
                         "%s %d: /proc hides it from this user (mounted with hidepid): run as "
                         "root or as the group that the mount names",
                         what, (int)number);
    case -ENOMEM:
        return prcb_fail(err, code, "out of memory");
    case -EBADMSG:
        return prcb_fail(err, code, "%s %d: cannot parse its files in /proc: unknown format", what,
                         (int)number);
    default:
        return prcb_fail(err, code, "%s %d: /proc cannot be read: %s", what, (int)number,
                         strerror(-code));
    }
}

static int no_room(struct prcb *p, struct prcb_error *err)
{
    return prcb_fail(err, -ENOSPC, "all %u accounts are in use: ask for more (max_threads)",
                     p->max_threads);
}

/* Threads that vanish or hide in the middle of a scan are no failure of it, nor are
 * those that find no account (they are counted). */
static bool is_failure(int code)
{
    return code && code != -ESRCH && code != -EPERM && code != -ENOSPC;
}

/* ---- accounts ---- */

static double cycle_rate(struct prcb *p)
{
    struct perf_state *s = p->perf;

    if (!s->rate_mono || s->rate_mono - p->clock.mono < GOOD_RATE_NS) {
        s->rate_mono = now_ns();
        s->rate = clock_tick_rate(&p->clock) / 1e9;
    }
    return s->rate;
}

/* Gives the account what a look found. */
static void describe(struct prcb *p, struct perf_account *account, const struct perf_look *look)
{
    const uint64_t parts = PRCB_HAS_RUN | PRCB_HAS_READY;
    double rate = cycle_rate(p);
    uint64_t cycles = (uint64_t)((double)account->figures.run_ns * rate);

    memcpy(account->comm, look->stat.comm, sizeof(account->comm));
    account->flags = (look->stat.flags & PROCFS_KTHREAD ? PRCB_ACCOUNT_KTHREAD : 0) |
                     (look->running ? PRCB_ACCOUNT_RUNNING : 0);
    account->present = look->sample.present | PRCB_HAS_WALL;
    if ((look->sample.present & parts) == parts)
        account->present |= PRCB_HAS_WAIT;
    if (rate > 0 && look->sample.present & PRCB_HAS_RUN)
        account->present |= PRCB_HAS_CYCLES;
    if (account->cycles < cycles)
        account->cycles = cycles;
    account->settled = look->quiet;
    if (look->ended)
        perf_table_end_account(account);
}

/* Says how a thread came to be profiled. */
enum coming {
    COMING_NAMED,  /* asked for: counts from now */
    COMING_BORN,   /* created by one that is followed: counts from its creation */
    COMING_LISTED, /* in a followed cgroup, or all are followed: created, or moved in */
};

static int open_account(struct prcb *p, struct perf_task *task, const struct perf_look *look,
                        const struct perf_span *born)
{
    struct perf_state *s = p->perf;
    int result = perf_table_open_account(&s->table, task, p->max_threads);

    if (result == -ENOSPC && !task->untracked) {
        task->untracked = true;
        s->untracked++;
    }
    if (result)
        return result;
    task->untracked = false;
    if (born)
        perf_figures_born(&task->account->figures, &look->sample, born->earliest, born->latest);
    else
        perf_figures_start(&task->account->figures, &look->sample);
    describe(p, task->account, look);
    return 0;
}

/* ---- what was there before ---- */

/* Remembers a thread so that it is not taken for a new one later. */
static int exclude(struct perf_state *s, pid_t pid, pid_t tid)
{
    struct procfs_stat stat;
    struct perf_task *task;
    int result;

    if (perf_table_find(&s->table, tid))
        return 0;
    result = procfs_read_stat(&s->source.fs, pid, tid, &stat);
    if (!result)
        result = perf_table_add(&s->table, pid, tid, stat.start, &task);
    if (!result)
        task->outside = true;
    return is_failure(result) ? result : 0;
}

static int exclude_threads(struct perf_state *s, pid_t pid)
{
    struct pid_list list = {0};
    int result = procfs_list_threads(&s->source.fs, pid, &list);

    for (size_t i = 0; i < list.count && !result; i++)
        result = exclude(s, pid, list.items[i]);
    pid_list_free(&list);
    return result;
}

static int take_family(struct perf_state *s)
{
    int result;

    if (s->family_taken)
        return 0;
    s->family.count = s->parents.count = 0;
    result = procfs_list_processes(&s->source.fs, &s->family);
    for (size_t i = 0; i < s->family.count && !result; i++) {
        pid_t pid = s->family.items[i];
        struct procfs_stat stat = {0};

        /* One that is gone keeps its place, with a parent that nobody is. */
        result = procfs_read_stat(&s->source.fs, pid, pid, &stat);
        if (!is_failure(result))
            result = pid_list_add(&s->parents, stat.ppid);
    }
    s->family_taken = !result;
    return result;
}

/* Takes up processes that the thread created; where the kernel lists no children, those of its
 * process. */
static int list_children(struct perf_state *s, pid_t pid, pid_t tid, struct pid_list *list)
{
    int result;

    if (s->source.has.children)
        return procfs_list_children(&s->source.fs, pid, tid, list);
    result = take_family(s);
    for (size_t i = 0; i < s->family.count && !result; i++) {
        if (s->parents.items[i] == pid)
            result = pid_list_add(list, s->family.items[i]);
    }
    return result;
}

static int exclude_children(struct perf_state *s, pid_t pid, pid_t tid)
{
    struct pid_list list = {0};
    int result = list_children(s, pid, tid, &list);

    for (size_t i = 0; i < list.count && !result; i++)
        result = exclude(s, list.items[i], list.items[i]);
    pid_list_free(&list);
    return result;
}

/* ---- taking threads on ---- */

/* The entry of a process's first thread, which stands for the process. */
static int find_leader(struct perf_state *s, pid_t pid, struct perf_task **ret)
{
    int result;

    *ret = perf_table_find(&s->table, pid);
    if (*ret)
        return 0;
    result = exclude(s, pid, pid);
    if (result)
        return result;
    *ret = perf_table_find(&s->table, pid);
    return *ret ? 0 : -ESRCH;
}

/* Lets the task pass on what follow says. What is there already, and was not created
 * under our eyes, is remembered as not to be followed. */
static int widen(struct perf_state *s, struct perf_task *task, unsigned follow, enum coming coming)
{
    unsigned more = follow & ~task->follow;
    struct perf_task *leader;
    int result;

    if (!more)
        return 0;
    result = find_leader(s, task->pid, &leader);
    if (!result && more & PRCB_FOLLOW_THREADS && !leader->pass && coming != COMING_BORN && !s->all)
        result = exclude_threads(s, task->pid);
    if (!result && more & PRCB_FOLLOW_CHILDREN && coming != COMING_BORN && !s->all)
        result = exclude_children(s, task->pid, task->tid);
    if (result)
        return result;
    task->follow |= follow;
    if (task->follow & PRCB_FOLLOW_THREADS)
        leader->pass |= task->follow;
    s->follows = true;
    return 0;
}

/* Whether a thread that turned up was created under our eyes: else it counts from now. A list
 * shows what came since the look before, by creation or by being moved. Children may also be
 * older than the session: orphans go to init, or to whoever asked to inherit them. */
static bool is_new(const struct perf_state *s, enum coming coming, const struct perf_span *created)
{
    return (coming == COMING_BORN && created->latest >= s->since) ||
           (coming == COMING_LISTED && created->latest >= s->last_scan);
}

/* Takes on a thread that has no account: -ESRCH, -EPERM, -ENOSPC and what is_failure
 * says. A thread without a free account is kept in the table all the same: what it
 * creates must be counted too. */
static int adopt(struct prcb *p, pid_t pid, pid_t tid, unsigned follow, enum coming coming)
{
    struct perf_state *s = p->perf;
    struct perf_task *task = perf_table_find(&s->table, tid);
    struct perf_look look;
    struct perf_span created;
    bool born;
    int result = perf_look_at(&s->source, pid, tid, task ? task->start : 0, NULL, false, &look);

    if (result == -ESRCH && task)
        perf_table_remove(&s->table, task);
    if (result)
        return result;
    created = perf_creation(look.stat.start, s->tick_ns, s->boot_offset, s->last_scan,
                            look.sample.moment);
    born = is_new(s, coming, &created);
    if (!task)
        result = perf_table_add(&s->table, pid, tid, look.stat.start, &task);
    if (result)
        return result;
    task->seen = s->scan;
    task->outside = false;
    if (look.ended && coming == COMING_NAMED)
        return -ESRCH; /* in the table all the same: no later look takes it for a new one */
    result = widen(s, task, follow, coming);
    /* One that ended before it came in sight has no part in what is asked for. */
    if (result || (look.ended && !born))
        return result;
    return open_account(p, task, &look, born ? &created : NULL);
}

/* Another task has taken the thread's number by an exec: the account ends with what it
 * last had, and the new one counts from now. */
static int replace(struct prcb *p, struct perf_task *task)
{
    unsigned follow = task->follow, pass = task->pass;
    int result;

    perf_table_remove(&p->perf->table, task);
    result = adopt(p, task->pid, task->tid, follow, COMING_NAMED);
    task = perf_table_find(&p->perf->table, task->tid);
    if (task)
        task->pass |= pass;
    return result;
}

/* Brings one account up to date. A thread that is gone loses its task. */
static int update(struct prcb *p, struct perf_task *task)
{
    struct perf_state *s = p->perf;
    struct perf_account *account = task->account;
    struct perf_look look;
    int result = perf_look_at(&s->source, task->pid, task->tid, task->start, &account->figures.last,
                              account->settled, &look);

    if (result == -ESRCH) {
        perf_table_remove(&s->table, task);
        return 0;
    }
    if (result)
        return is_failure(result) ? result : 0;
    if (perf_figures_replaced(&account->figures, &look.sample)) {
        result = replace(p, task);
        return is_failure(result) ? result : 0;
    }
    perf_figures_update(&account->figures, &look.sample);
    describe(p, account, &look);
    return 0;
}

/* Looks at a task without an account, and only at whether it is still there. */
static int check_alive(struct perf_state *s, struct perf_task *task)
{
    struct procfs_stat stat;
    int result = procfs_read_stat(&s->source.fs, task->pid, task->tid, &stat);

    if (result == -ESRCH || (!result && stat.start != task->start))
        perf_table_remove(&s->table, task);
    return is_failure(result) ? result : 0;
}

/* ---- scanning ---- */

/* Handles a thread in a list: it is known, or is taken on. A thread that was left outside when its
 * process or parent was followed comes in by a list of a cgroup or of all. */
static int meet(struct prcb *p, pid_t pid, pid_t tid, unsigned follow, enum coming coming)
{
    struct perf_state *s = p->perf;
    struct perf_task *task = perf_table_find(&s->table, tid);
    int result;

    if (task) {
        task->seen = s->scan;
        if (!task->outside || coming == COMING_BORN)
            return 0;
    }
    result = adopt(p, pid, tid, follow, coming);
    return is_failure(result) ? result : 0;
}

static int meet_threads(struct prcb *p, pid_t pid, unsigned follow, enum coming coming)
{
    struct pid_list list = {0};
    int result = procfs_list_threads(&p->perf->source.fs, pid, &list);

    if (!is_failure(result))
        result = 0;
    for (size_t i = 0; i < list.count && !result; i++)
        result = meet(p, pid, list.items[i], follow, coming);
    pid_list_free(&list);
    return result;
}

static int meet_all(struct prcb *p)
{
    struct pid_list list = {0};
    int result = procfs_list_processes(&p->perf->source.fs, &list);

    for (size_t i = 0; i < list.count && !result; i++)
        result = meet_threads(p, list.items[i], PRCB_FOLLOW_ALL, COMING_LISTED);
    pid_list_free(&list);
    return result;
}

/* Threads of a cgroup are listed without their process. */
static int meet_listed(struct prcb *p, const struct pid_list *list, enum coming coming)
{
    struct perf_state *s = p->perf;
    int result = 0;

    for (size_t i = 0; i < list->count && !result; i++) {
        pid_t tid = list->items[i];
        struct perf_task *task = tid ? perf_table_find(&s->table, tid) : NULL;
        struct procfs_status status = {.tgid = task ? task->pid : 0};

        if (tid && !task)
            result = procfs_read_status(&s->source.fs, tid, tid, &status);
        if (tid && !result)
            result = meet(p, status.tgid, tid, PRCB_FOLLOW_ALL, coming);
        if (!is_failure(result))
            result = 0;
    }
    return result;
}

/* The last one has ended meanwhile: nothing is left to be followed in it. */
static int meet_cgroup(struct prcb *p, const char *path)
{
    struct pid_list list = {0};
    int result = cgroup_list_threads(&p->perf->source.fs, path, &list, NULL);

    result = result == -ENOENT || !is_failure(result) ? 0 : result;
    if (!result)
        result = meet_listed(p, &list, COMING_LISTED);
    pid_list_free(&list);
    return result;
}

/* New threads of a process in which one passes that on; once per scan. */
static int meet_new_threads(struct prcb *p, pid_t pid)
{
    struct perf_task *leader;
    int result = find_leader(p->perf, pid, &leader);

    if (result || leader->listed == p->perf->scan)
        return is_failure(result) ? result : 0;
    leader->listed = p->perf->scan;
    return meet_threads(p, pid, leader->pass, COMING_BORN);
}

static int meet_new_children(struct prcb *p, const struct perf_task *task)
{
    struct pid_list list = {0};
    unsigned follow = task->follow;
    int result = list_children(p->perf, task->pid, task->tid, &list);

    if (!is_failure(result))
        result = 0;
    for (size_t i = 0; i < list.count && !result; i++)
        result = meet(p, list.items[i], list.items[i], follow, COMING_BORN);
    pid_list_free(&list);
    return result;
}

/* Handles one task: what its process gained, its account, what it created. Tasks that are taken on
 * here stand at the end of the table and have their turn in the same scan. */
static int visit(struct prcb *p, struct perf_task *task)
{
    struct perf_state *s = p->perf;
    bool asleep;
    int result = 0;

    if (task->follow & PRCB_FOLLOW_THREADS && !s->all)
        result = meet_new_threads(p, task->pid);
    if (!result && task->account)
        result = update(p, task);
    else if (!result && (task->follow || task->seen != s->scan))
        result = check_alive(s, task);
    if (result || task->gone || s->all || !(task->follow & PRCB_FOLLOW_CHILDREN))
        return result;
    /* A thread that sleeps on has created nothing. A process's first thread inherits
     * what its other threads created when they end. */
    asleep = task->account && task->account->settled && task->tid != task->pid;
    return asleep ? 0 : meet_new_children(p, task);
}

static int scan(struct prcb *p)
{
    struct perf_state *s = p->perf;
    uint64_t began = now_ns();
    int failure = 0;

    s->scan++;
    s->family_taken = false;
    if (s->all)
        failure = meet_all(p);
    for (size_t i = 0; i < s->cgroups.count && !failure; i++)
        failure = meet_cgroup(p, s->cgroups.paths[i]);
    for (size_t i = 0; i < s->table.task_count; i++) {
        int result = s->table.tasks[i]->gone ? 0 : visit(p, s->table.tasks[i]);

        if (!failure)
            failure = result;
    }
    perf_table_sweep(&s->table);
    s->last_scan = began;
    s->boot_offset = measure_boot_offset();
    return failure;
}

static int perf_refresh(struct prcb *p, struct prcb_error *err)
{
    int result = scan(p);

    return result ? prcb_fail(err, result, "/proc cannot be read: %s",
                              result == -EBADMSG ? "it has a form that prcb does not know"
                                                 : strerror(-result))
                  : 0;
}

/* ---- choosing ---- */

static void begin_choosing(struct perf_state *s)
{
    if (!s->since)
        s->since = s->last_scan = now_ns();
    s->family_taken = false;
}

/* Takes a thread on by its number, or widens what it passes on. */
static int name_thread(struct prcb *p, pid_t pid, pid_t tid, unsigned follow)
{
    struct perf_state *s = p->perf;
    struct perf_task *task = perf_table_find(&s->table, tid);
    int result = 0;

    if (task && task->account)
        result = update(p, task);
    if (result)
        return result;
    task = perf_table_find(&s->table, tid);
    if (task && task->account)
        return widen(s, task, follow, COMING_NAMED);
    result = adopt(p, pid, tid, follow, COMING_NAMED);
    /* The number may have passed on to another thread in the middle. */
    return result == -ESRCH && task && task->gone ? adopt(p, pid, tid, follow, COMING_NAMED)
                                                  : result;
}

static int perf_profile_thread(struct prcb *p, pid_t tid, unsigned follow, struct prcb_error *err)
{
    struct procfs_status status;
    int result = procfs_read_status(&p->perf->source.fs, tid, tid, &status);

    begin_choosing(p->perf);
    if (!result)
        result = name_thread(p, status.tgid, tid, follow);
    if (result == -ENOSPC)
        return no_room(p, err);
    return result ? explain(p->perf, result, "thread", tid, err) : 0;
}

/* One pass over the threads of a process. *ret_full: some found no account. */
static int name_threads(struct prcb *p, pid_t pid, unsigned follow, bool *ret_full)
{
    struct pid_list list = {0};
    int result = procfs_list_threads(&p->perf->source.fs, pid, &list);
    bool any = false;

    for (size_t i = 0; i < list.count && !is_failure(result); i++) {
        result = name_thread(p, pid, list.items[i], follow);
        any |= !result || result == -ENOSPC;
        *ret_full |= result == -ENOSPC;
    }
    pid_list_free(&list);
    return is_failure(result) || !any ? result : 0;
}

static int perf_profile_process(struct prcb *p, pid_t pid, unsigned follow, struct prcb_error *err)
{
    struct procfs_status status;
    uint32_t before;
    bool full = false;
    int result = procfs_read_status(&p->perf->source.fs, pid, pid, &status);

    if (!result && status.tgid != pid)
        return prcb_fail(err, -ESRCH, "process %d: no such process (a thread of process %d)",
                         (int)pid, (int)status.tgid);
    begin_choosing(p->perf);
    /* A list that is made while threads come and go may leave some out. Those created
     * meanwhile are the next scan's, if they are to be followed. */
    for (int pass = 0; pass < (follow & PRCB_FOLLOW_THREADS ? LIST_PASSES : 1); pass++) {
        before = perf_table_accounts(&p->perf->table);
        if (!result)
            result = name_threads(p, pid, follow, &full);
        if (result || perf_table_accounts(&p->perf->table) == before)
            break;
    }
    if (result)
        return explain(p->perf, result, "process", pid, err);
    return full ? no_room(p, err) : 0;
}

/* Threads that are in it now count from now. */
static int perf_profile_cgroup(struct prcb *p, const char *path, struct prcb_error *err)
{
    struct perf_state *s = p->perf;
    struct pid_list list = {0};
    char *whole = realpath(path, NULL);
    int result;

    if (!whole)
        return prcb_fail(err, errno == EACCES ? -EPERM : -errno, "cgroup %s: %s", path,
                         strerror(errno));
    begin_choosing(s);
    result = cgroup_list_threads(&s->source.fs, whole, &list, err);
    if (!result) {
        result = meet_listed(p, &list, COMING_NAMED);
        if (!result)
            result = cgroup_list_add(&s->cgroups, whole);
        if (result)
            prcb_fail(err, result, "cgroup %s: its threads cannot be profiled: %s", path,
                      strerror(-result));
        else
            s->follows = true;
    }
    pid_list_free(&list);
    free(whole);
    return result;
}

static int perf_profile_all(struct prcb *p, struct prcb_error *err)
{
    struct perf_state *s = p->perf;
    struct pid_list list = {0};
    int result;

    begin_choosing(s);
    result = procfs_list_processes(&s->source.fs, &list);
    s->all = true;
    s->follows = true;
    for (size_t i = 0; i < list.count && !result; i++)
        result = meet_threads(p, list.items[i], PRCB_FOLLOW_ALL, COMING_NAMED);
    pid_list_free(&list);
    return result ? prcb_fail(err, result, "/proc cannot be read: %s", strerror(-result)) : 0;
}

/* ---- reading ---- */

static void fill_record(const struct perf_account *account, struct prcb_account *ret)
{
    const struct perf_figures *f = &account->figures;
    bool waits = account->present & PRCB_HAS_WAIT;

    *ret = (struct prcb_account){
        .size = sizeof(*ret),
        .present = account->present,
        .key = perf_account_key(account),
        .tier = PRCB_TIER_PERF,
        .flags = account->flags,
        .tid = account->tid,
        .pid = account->pid,
        .wall_ns = f->wall_ns,
        .run_ns = f->run_ns,
        .ready_ns = f->ready_ns,
        .wait_ns = waits ? f->wait_ns : 0,
        .switches = f->voluntary + f->involuntary,
        .voluntary_switches = f->voluntary,
        .tsc_cycles = account->present & PRCB_HAS_CYCLES ? account->cycles : 0,
    };
    memcpy(ret->comm, account->comm, sizeof(ret->comm));
}

/* Finds the task of a handle, by its key where it has one. NULL: it has ended, or never was. */
static struct perf_task *task_of(struct prcb *p, const struct prcb_thread *t)
{
    const struct perf_table *table = &p->perf->table;
    struct perf_account *account;

    if (!t->key)
        return perf_table_find(table, t->tid);
    account = perf_table_account(table, t->key);
    return account ? account->task : NULL;
}

static int perf_thread_open(struct prcb *p, struct prcb_thread *t, struct prcb_error *err)
{
    struct perf_task *task = task_of(p, t);
    int result = task && task->account ? update(p, task) : 0;

    if (result)
        return explain(p->perf, result, "thread", t->tid, err);
    if (t->key && !perf_table_account(&p->perf->table, t->key))
        return prcb_fail(err, -ESTALE, "the account was released");
    task = task_of(p, t);
    if (!task || !task->account)
        return t->key
                   ? prcb_fail(err, -ESRCH, "the thread has ended")
                   : prcb_fail(err, -ESRCH, "thread %d: not profiled by this session", (int)t->tid);
    t->key = perf_account_key(task->account);
    t->tid = task->account->tid;
    return 0;
}

/* The handle's account, if its thread lives. */
static int live_account(struct prcb_thread *t, struct perf_account **ret)
{
    struct perf_account *account = perf_table_account(&t->session->perf->table, t->key);

    if (!account)
        return -ESTALE;
    if (!account->task)
        return -ESRCH;
    *ret = account;
    return 0;
}

static int update_handle(struct prcb_thread *t, struct perf_account **ret)
{
    int result = live_account(t, ret);

    if (!result)
        result = update(t->session, (*ret)->task);
    return result ? result : live_account(t, ret);
}

static int perf_read(struct prcb_thread *t)
{
    struct perf_account *account;
    int result;

    pthread_mutex_lock(&t->session->lock);
    result = update_handle(t, &account);
    if (!result)
        fill_record(account, &t->last);
    pthread_mutex_unlock(&t->session->lock);
    return result;
}

static bool is_own(struct perf_state *s, const struct perf_account *account)
{
    pid_t tid = gettid();

    return s->source.live && account->tid == tid &&
           account->task->start == perf_own_start(&s->source, tid);
}

static void times_of(const struct perf_account *account, struct prcb_times *ret)
{
    const uint64_t members = PRCB_HAS_RUN | PRCB_HAS_SWITCHES;

    ret->present = account->present & members;
    ret->switches = account->figures.voluntary + account->figures.involuntary;
    ret->run_ns = account->figures.run_ns;
    ret->flags = account->flags;
}

/* Its own thread asks the kernel twice and /proc never. */
static int perf_read_times(struct prcb_thread *t, struct prcb_times *ret)
{
    struct perf_account *account;
    struct perf_sample sample;
    int result;

    pthread_mutex_lock(&t->session->lock);
    result = live_account(t, &account);
    if (!result && is_own(t->session->perf, account)) {
        perf_look_at_self(&sample);
        perf_figures_peek(&account->figures, &sample);
        account->flags |= PRCB_ACCOUNT_RUNNING;
    } else if (!result) {
        result = update_handle(t, &account);
    }
    if (!result)
        times_of(account, ret);
    pthread_mutex_unlock(&t->session->lock);
    return result;
}

static int perf_walk(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                     struct prcb_error *err)
{
    const struct perf_table *table = &p->perf->table;
    struct prcb_account record;

    (void)since_ns;
    for (uint32_t slot = 0; slot < table->slot_count; slot++) {
        int result;

        if (!table->accounts[slot])
            continue;
        fill_record(table->accounts[slot], &record);
        result = fn(&record, ctx);
        if (result)
            return result;
    }
    return 0;
}

/* ---- giving back ---- */

static int perf_release(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    struct perf_account *account = perf_table_account(&p->perf->table, key);

    if (!account)
        return prcb_fail(err, -ESTALE, "the account was released already");
    /* The task stays known, so that no scan takes it for a new one. */
    if (account->task)
        account->task->follow = 0;
    perf_table_release_account(&p->perf->table, account);
    return 0;
}

static int perf_release_exited(struct prcb *p, struct prcb_error *err)
{
    struct perf_table *table = &p->perf->table;
    int released = 0;

    for (uint32_t slot = 0; slot < table->slot_count; slot++) {
        struct perf_account *account = table->accounts[slot];

        if (!account || account->task)
            continue;
        perf_table_release_account(table, account);
        released++;
    }
    return released;
}

static void perf_status(struct prcb *p, struct prcb_status *ret)
{
    ret->threads = perf_table_accounts(&p->perf->table);
    ret->untracked_threads = p->perf->untracked;
    ret->short_threads_missed = p->perf->follows;
}

static const char *perf_absent_reason(const struct prcb *p, uint64_t member)
{
    const struct procfs_features *has = &p->perf->source.has;

    switch (member) {
    case PRCB_HAS_RUN:
    case PRCB_HAS_READY:
    case PRCB_HAS_WAIT:
        return has->schedstat ? NULL
                              : "/proc/PID/schedstat is missing or empty (a kernel without "
                                "CONFIG_SCHED_INFO)";
    case PRCB_HAS_CYCLES:
        if (!has->schedstat)
            return "run time is not known: /proc/PID/schedstat is missing or empty (a kernel "
                   "without CONFIG_SCHED_INFO)";
        return p->clock.use_ticks ? NULL
                                  : "the processor's time-stamp counter is not invariant, or the "
                                    "kernel does not keep time by it";
    case PRCB_HAS_WAITS:
        return "/proc does not say what a thread waited for: only the bpf tier sees each switch";
    case PRCB_HAS_INTERRUPTED:
        return "/proc does not say which thread an interrupt hit: only the bpf tier sees them";
    case PRCB_HAS_REGISTERS:
    case PRCB_HAS_OBJECT:
        return "only the bpf tier sees each switch";
    case PRCB_HAS_CGROUP:
        return "the perf tier does not read the cgroup of each thread";
    case PRCB_HAS_OPEN:
        return "/proc does not say since when a thread has been off the processor: only the bpf "
               "tier sees each switch";
    case PRCB_HAS_MIGRATIONS:
        return "the files in /proc that every kernel has do not count migrations: the bpf tier "
               "reads them from the scheduler";
    case PRCB_HAS_SYSCALL:
        return "/proc does not say in which system call a thread was switched out: only the bpf "
               "tier sees each switch";
    default:
        return NULL;
    }
}

const struct tier tier_perf = {
    .number = PRCB_TIER_PERF,
    .name = "perf",
    .open = perf_open,
    .close = perf_close,
    .profile_thread = perf_profile_thread,
    .profile_process = perf_profile_process,
    .profile_cgroup = perf_profile_cgroup,
    .profile_all = perf_profile_all,
    .refresh = perf_refresh,
    .thread_open = perf_thread_open,
    .read = perf_read,
    .read_times = perf_read_times,
    .walk = perf_walk,
    .release = perf_release,
    .release_exited = perf_release_exited,
    .status = perf_status,
    .absent_reason = perf_absent_reason,
};
