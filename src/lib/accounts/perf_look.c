/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_look.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "now.h"

#define ZOMBIE_TRIES 10

/* The clock that pthread_getcpuclockid would give: time on a processor of a thread
 * of this process, brought up to date by the question. */
static int thread_clock(pid_t tid, uint64_t *ret)
{
    clockid_t id = (clockid_t)((~(unsigned)tid << 3) | 6);
    struct timespec ts;

    if (clock_gettime(id, &ts))
        return -errno;
    *ret = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
    return 0;
}

static void own_switches(struct perf_sample *ret)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    ret->voluntary = (uint64_t)usage.ru_nvcsw;
    ret->involuntary = (uint64_t)usage.ru_nivcsw;
    ret->present |= PRCB_HAS_SWITCHES;
}

static int look_at_times(struct perf_source *source, pid_t pid, pid_t tid, bool own_process,
                         struct perf_sample *ret)
{
    struct procfs_schedstat schedstat;
    int result;

    if (source->has.schedstat) {
        result = procfs_read_schedstat(&source->fs, pid, tid, &schedstat);
        if (result)
            return result;
        ret->run_ns = schedstat.run_ns;
        ret->ready_ns = schedstat.ready_ns;
        ret->arrivals = schedstat.arrivals;
        ret->present |= PRCB_HAS_RUN | PRCB_HAS_READY;
    }
    if (own_process && !thread_clock(tid, &ret->run_ns))
        ret->present |= PRCB_HAS_RUN;
    return 0;
}

static bool is_quiet(const struct perf_source *source, const struct perf_sample *before,
                     const struct perf_sample *now)
{
    return before && source->has.schedstat && !now->runnable && !before->runnable &&
           now->run_ns == before->run_ns && now->ready_ns == before->ready_ns &&
           now->arrivals == before->arrivals;
}

static int look_at_switches(struct perf_source *source, pid_t pid, pid_t tid,
                            struct perf_sample *ret)
{
    struct procfs_status status;
    int result = procfs_read_status(&source->fs, pid, tid, &status);

    if (result)
        return result;
    ret->voluntary = status.voluntary;
    ret->involuntary = status.involuntary;
    ret->present |= PRCB_HAS_SWITCHES;
    return 0;
}

bool perf_has_ended(char state)
{
    return state == 'Z' || state == 'X' || state == 'x';
}

static int look_once(struct perf_source *source, pid_t pid, pid_t tid, uint64_t start,
                     const struct perf_sample *before, bool settled, struct perf_look *ret)
{
    bool own_process = source->live && pid == getpid();
    bool own_thread = own_process && tid == gettid();
    struct perf_look look = {.sample.moment = now_ns()};
    int result = procfs_read_stat(&source->fs, pid, tid, &look.stat);

    if (!result && start && look.stat.start != start)
        result = -ESRCH;
    look.sample.runnable = look.stat.state == 'R';
    look.ended = perf_has_ended(look.stat.state);
    if (!result)
        result = look_at_times(source, pid, tid, own_process, &look.sample);
    if (result)
        return result;
    look.quiet = is_quiet(source, before, &look.sample);
    if (own_thread) {
        own_switches(&look.sample);
    } else if (look.quiet && settled) {
        look.sample.voluntary = before->voluntary;
        look.sample.involuntary = before->involuntary;
        look.sample.present |= before->present & PRCB_HAS_SWITCHES;
    } else {
        result = look_at_switches(source, pid, tid, &look.sample);
    }
    if (result)
        return result;
    look.running = own_thread || perf_sample_running(&look.sample);
    /* It is out of its queue, its sums are final, and it is not counted as switched out yet: a
     * virtual processor that is stopped just there stays so for many looks, and that count is still
     * to come. */
    look.quiet = look.quiet && !look.running;
    *ret = look;
    return 0;
}

static bool is_same(const struct perf_sample *a, const struct perf_sample *b)
{
    return a->run_ns == b->run_ns && a->voluntary == b->voluntary &&
           a->involuntary == b->involuntary;
}

int perf_look_at(struct perf_source *source, pid_t pid, pid_t tid, uint64_t start,
                 const struct perf_sample *before, bool settled, struct perf_look *ret)
{
    const struct timespec pause = {.tv_nsec = 50000};
    struct perf_look first;
    int result = look_once(source, pid, tid, start, before, settled, ret);

    /* A zombie's last switch comes a moment after it can be seen as one: wait for its
     * final figures, but not for long. */
    for (int tries = 0; !result && ret->ended && tries < ZOMBIE_TRIES; tries++) {
        first = *ret;
        if (first.running)
            nanosleep(&pause, NULL);
        result = look_once(source, pid, tid, start, NULL, false, ret);
        if (!result && !ret->running && is_same(&first.sample, &ret->sample))
            break;
    }
    return result;
}

void perf_look_at_self(struct perf_sample *ret)
{
    *ret = (struct perf_sample){.moment = now_ns(), .present = PRCB_HAS_RUN, .runnable = true};
    ret->run_ns = now_by(CLOCK_THREAD_CPUTIME_ID);
    own_switches(ret);
}

uint64_t perf_own_start(struct perf_source *source, pid_t tid)
{
    /* A fork copies this: the number says whose it is. */
    static __thread struct procfs_stat own;
    struct procfs_stat stat;

    if (own.tid != tid) {
        if (procfs_read_stat(&source->fs, tid, tid, &stat))
            return 0;
        own = stat;
    }
    return own.start;
}
