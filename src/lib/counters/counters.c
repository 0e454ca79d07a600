/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sets of perf events on a thread. Software events form one group, read by one
 * system call. A hardware event is its own leader, so that one which never finds
 * a free counter cannot keep the others off the processor; it is read in user mode
 * where the kernel allows that, else by a system call.
 */
#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "counter_page.h"
#include "wide.h"

#define GROUP_MAX PRCB_COUNTERS_MAX
#define TIMES     (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

struct counter {
    char name[COUNTER_NAME_MAX];
    const char *reason; /* why it is absent; NULL: it is open */
    int fd;
    int place; /* in the group; -1: read by itself */
    uint32_t source;
    bool user_only;
    const volatile struct perf_event_mmap_page *page; /* NULL: not readable in user mode */
};

struct prcb_counters {
    pthread_t owner; /* who may read in user mode */
    bool own;        /* owner is the thread that is counted */
    int leader;      /* of the group; -1: no software event */
    uint32_t grouped;
    uint32_t count;
    long page_size;
    struct counter counters[];
};

/* ---- opening ---- */

/* An event that occurs only in kernel mode would read 0 if that is not counted, and 0 is no
 * value. cgroup-switches came with Linux 5.13, after the headers that prcb builds with. */
static bool is_kernel_only(const struct counter_event *event)
{
    return event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
                                                 event->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
                                                 event->config == 11 /* cgroup-switches */);
}

int counter_open_fd(const struct counter_event *event, pid_t pid, int cpu, int group,
                    unsigned flags, uint64_t read_format, bool *ret_user_only)
{
    struct perf_event_attr attr = {
        .type = event->type,
        .size = sizeof(attr),
        .config = event->config,
        .read_format = read_format,
        .exclude_user = event->no_user,
        .exclude_kernel = event->no_kernel,
        .exclude_hv = event->no_kernel,
        .inherit = !!(flags & PRCB_COUNTERS_INHERIT),
        .pinned = !!(flags & COUNTERS_PINNED),
        .inherit_stat = !!(flags & COUNTERS_STAT),
        .disabled = !!(flags & (PRCB_COUNTERS_ON_EXEC | COUNTERS_STOPPED)) && group < 0,
        .enable_on_exec = !!(flags & PRCB_COUNTERS_ON_EXEC) && group < 0,
    };
    int fd;

    attr.config1 = event->config1;
    attr.config2 = event->config2;
    *ret_user_only = false;
#if defined(__aarch64__)
    /* Asks for a counter that user mode may read; the kernel refuses where it may not. */
    if (event->type != PERF_TYPE_SOFTWARE && pid >= 0 && cpu < 0 &&
        !(flags & PRCB_COUNTERS_INHERIT)) {
        attr.config1 |= 2;
        fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0)
            return fd;
        attr.config1 = event->config1;
    }
#endif
    fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
    /* kernel.perf_event_paranoid 2, the kernel's default, refuses ordinary users only the kernel's
     * part of an event. */
    if (fd < 0 && (errno == EACCES || errno == EPERM) && !event->no_kernel && !event->no_user) {
        attr.exclude_kernel = attr.exclude_hv = 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
        *ret_user_only = fd >= 0;
    }
    if (fd < 0)
        return -errno;
    if ((*ret_user_only || event->no_kernel) && is_kernel_only(event)) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

const char *counter_reason(const struct counter_event *event, int error)
{
    switch (-error) {
    case EPERM:
        if (is_kernel_only(event))
            return "it happens in kernel mode, which may not be counted: run as root, with "
                   "CAP_PERFMON, or lower kernel.perf_event_paranoid";
        __attribute__((fallthrough));
    case EACCES:
        return "not permitted: run as root, with CAP_PERFMON, or lower "
               "kernel.perf_event_paranoid";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case EINVAL:
        return counter_event_source(event) == PRCB_COUNTER_HARDWARE
                   ? "this machine's processor does not count it, or hides it (virtual machine)"
                   : "this kernel does not count it";
    case ESRCH:
        return "the thread has ended";
    case EMFILE:
    case ENFILE:
        return "too many open files: raise the limit (ulimit -n)";
    case EBUSY:
        return "another program holds the counters";
    case ENOMEM:
        return "out of memory";
    case ENOSYS:
        return "this kernel has no perf events";
    default:
        return "the kernel refused it";
    }
}

/* Opens an event where the set wants it. 0 or -errno with counter->reason set. */
static int open_counter(struct prcb_counters *set, struct counter *counter,
                        const struct counter_event *event, pid_t tid, unsigned flags)
{
    /* As perf_event_open(2) says, inherited events cannot be read as a group. */
    bool grouped = counter->source == PRCB_COUNTER_SOFTWARE && !(flags & PRCB_COUNTERS_INHERIT);
    int fd = counter_open_fd(event, tid, -1, grouped ? set->leader : -1, flags,
                             TIMES | (grouped ? PERF_FORMAT_GROUP : 0), &counter->user_only);

    if (fd < 0) {
        counter->reason = counter_reason(event, fd);
        return fd;
    }
    counter->fd = fd;
    if (grouped) {
        if (set->leader < 0)
            set->leader = fd;
        counter->place = (int)set->grouped++;
    }
    return 0;
}

/* A page counts against the user's limit of locked memory (kernel.perf_event_mlock_kb); without
 * one the counter is read by the system call. */
static void map_page(struct prcb_counters *set, struct counter *counter)
{
    struct perf_event_mmap_page *page =
        mmap(NULL, (size_t)set->page_size, PROT_READ, MAP_SHARED, counter->fd, 0);

    if (page == MAP_FAILED)
        return;
    if (page->cap_user_rdpmc)
        counter->page = page;
    else
        munmap(page, (size_t)set->page_size);
}

int counters_open_events(const struct counter_event *events, size_t count, pid_t tid,
                         unsigned flags, struct prcb_counters **ret, struct prcb_error *err)
{
    struct prcb_counters *set = calloc(1, sizeof(*set) + count * sizeof(set->counters[0]));
    bool own = tid == 0 && !(flags & PRCB_COUNTERS_INHERIT);
    int first_error = 0;
    size_t open = 0;

    if (!set)
        return prcb_fail(err, -ENOMEM, "out of memory");
    set->leader = -1;
    set->owner = pthread_self();
    set->own = own;
    set->count = (uint32_t)count;
    set->page_size = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < count; i++) {
        struct counter *counter = &set->counters[i];
        int result;

        memcpy(counter->name, events[i].name, sizeof(counter->name));
        counter->fd = counter->place = -1;
        counter->source = counter_event_source(&events[i]);
        result = open_counter(set, counter, &events[i], tid, flags | COUNTERS_STOPPED);
        if (result && !first_error) {
            first_error = result;
            prcb_fail(err, result, "%s: %s", counter->name, counter->reason);
        }
        if (!result && own && counter->source == PRCB_COUNTER_HARDWARE)
            map_page(set, counter);
        open += !result;
    }
    if (!open) {
        prcb_counters_close(set);
        /* perf_event_open answers so for events that the processor or the kernel does not have. */
        if (first_error == -ENOENT || first_error == -ENODEV || first_error == -EINVAL ||
            first_error == 0)
            first_error = -EOPNOTSUPP;
        if (err)
            err->code = first_error;
        return first_error;
    }
    if (!(flags & (COUNTERS_STOPPED | PRCB_COUNTERS_ON_EXEC)))
        counters_start(set);
    *ret = set;
    return 0;
}

int prcb_counters_open(const char *names, pid_t tid, unsigned flags, struct prcb_counters **ret,
                       struct prcb_error *err)
{
    struct counter_event events[PRCB_COUNTERS_MAX];
    size_t count;
    int result;

    if (flags & ~(unsigned)(PRCB_COUNTERS_INHERIT | PRCB_COUNTERS_ON_EXEC))
        return prcb_fail(err, -EINVAL, "flags 0x%x have unknown bits", flags);
    if (tid < 0)
        return prcb_fail(err, -EINVAL, "thread %d: not a thread number", (int)tid);
    result = counter_events_parse(names, events, &count, err);
    return result ? result : counters_open_events(events, count, tid, flags, ret, err);
}

void prcb_counters_close(struct prcb_counters *set)
{
    if (!set)
        return;
    for (uint32_t i = set->count; i-- > 0;) {
        struct counter *counter = &set->counters[i];

        if (counter->page)
            munmap((void *)counter->page, (size_t)set->page_size);
        if (counter->fd >= 0)
            close(counter->fd);
    }
    free(set);
}

/* Members of a group count while their leader does. */
void counters_start(struct prcb_counters *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct counter *counter = &set->counters[i];

        if (counter->fd >= 0 && (counter->place < 0 || counter->fd == set->leader))
            ioctl(counter->fd, PERF_EVENT_IOC_ENABLE, 0);
    }
}

size_t prcb_counters_count(const struct prcb_counters *set)
{
    return set->count;
}

int prcb_counter_check(const char *name, uint32_t *ret_source, struct prcb_error *err)
{
    struct prcb_counters *set = NULL;
    struct counter_event event;
    int result = counter_event_find(name, &event, err);

    if (!result)
        result = counters_open_events(&event, 1, 0, 0, &set, err);
    if (result)
        return result;
    if (ret_source)
        *ret_source = counter_event_source(&event);
    prcb_counters_close(set);
    return 0;
}

/* ---- reading ---- */

struct figures {
    uint64_t value, enabled_ns, running_ns;
};

struct group {
    uint64_t count;
    uint64_t enabled_ns, running_ns;
    uint64_t values[GROUP_MAX];
};

static bool read_group(const struct prcb_counters *set, struct group *ret)
{
    size_t bytes = sizeof(uint64_t) * (3 + set->grouped);

    return read(set->leader, ret, bytes) == (ssize_t)bytes && ret->count == set->grouped;
}

static bool read_one(const struct counter *counter, struct figures *ret)
{
    return read(counter->fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
}

/* The instruction reads the counter of the processor that it runs on, which holds the counts of
 * the thread running there. So no thread can read another's counter this way. */
static bool may_read_user(const struct prcb_counters *set)
{
    return set->own && pthread_equal(set->owner, pthread_self());
}

/* Where there are more events than counters the kernel lets them take turns: the estimate assumes
 * that the event came as often while it was not counted, as perf stat does. */
static uint64_t scaled(const struct figures *figures)
{
    if (figures->running_ns >= figures->enabled_ns || !figures->running_ns)
        return figures->value;
    return wide_scale(figures->value, figures->enabled_ns, figures->running_ns);
}

/* The group is read once, when the first of its counters is asked for. */
static bool read_figures(const struct prcb_counters *set, const struct counter *counter,
                         struct group *group, int *group_state, struct figures *ret)
{
    if (counter->place < 0)
        return read_one(counter, ret);
    if (!*group_state)
        *group_state = read_group(set, group) ? 1 : -1;
    if (*group_state < 0)
        return false;
    *ret = (struct figures){group->values[counter->place], group->enabled_ns, group->running_ns};
    return true;
}

/* Reads it without a system call. False: that cannot be, or the counter was multiplexed, and only
 * the kernel can tell its share up to this moment. */
static bool read_user(const struct counter *counter, struct figures *ret)
{
    struct counter_reading reading;

    if (!counter->page || !counter_page_read(counter->page, counter_pmc, clock_ticks, &reading) ||
        (!reading.live && reading.enabled_ns != reading.running_ns))
        return false;
    *ret = (struct figures){reading.value, reading.enabled_ns, reading.running_ns};
    return true;
}

void counters_values(struct prcb_counters *set, uint64_t *ret, uint64_t *ret_present)
{
    bool user = may_read_user(set);
    struct group group;
    int group_state = 0;

    *ret_present = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct counter *counter = &set->counters[i];
        struct figures figures;

        ret[i] = 0;
        if (counter->reason)
            continue;
        if (!(user && read_user(counter, &figures)) &&
            (!read_figures(set, counter, &group, &group_state, &figures) || !figures.running_ns))
            continue;
        ret[i] = scaled(&figures);
        *ret_present |= 1ull << i;
    }
}

static void fill(const struct counter *counter, const struct figures *figures,
                 struct prcb_counter *ret)
{
    ret->flags |= PRCB_COUNTER_PRESENT;
    ret->flags |= counter->user_only ? PRCB_COUNTER_USER_ONLY : 0;
    ret->flags |= figures->running_ns < figures->enabled_ns ? PRCB_COUNTER_SCALED : 0;
    ret->value = scaled(figures);
    ret->raw = figures->value;
    ret->enabled_ns = figures->enabled_ns;
    ret->running_ns = figures->running_ns;
}

static void read_record(const struct prcb_counters *set, const struct counter *counter, bool user,
                        struct group *group, int *group_state, struct prcb_counter *ret)
{
    struct figures figures;

    *ret = (struct prcb_counter){
        .name = counter->name, .reason = counter->reason, .source = counter->source};
    if (counter->reason)
        return;
    if (user && read_user(counter, &figures)) {
        ret->flags = PRCB_COUNTER_READ_USER;
        fill(counter, &figures, ret);
    } else if (!read_figures(set, counter, group, group_state, &figures)) {
        ret->reason = "the kernel gives no value";
    } else if (figures.running_ns) {
        fill(counter, &figures, ret);
    } else {
        ret->enabled_ns = figures.enabled_ns;
        ret->reason = figures.enabled_ns
                          ? "it never got one of the processor's counters: count fewer events"
                          : "the thread has not run since";
    }
}

int prcb_counters_read(struct prcb_counters *set, size_t count, struct prcb_counter *ret)
{
    bool user = may_read_user(set);
    struct group group;
    int group_state = 0;

    if (count > set->count)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        read_record(set, &set->counters[i], user, &group, &group_state, &ret[i]);
    return 0;
}
