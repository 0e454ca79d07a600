/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters of a command's threads, each one's own: inherited events, one per counter
 * and processor, whose inherit_stat makes every thread that ends write its part as a
 * record to the processor's buffer. A buffer needs an event of one processor, hence
 * so many of them; they share the buffer of the first.
 */
#include "counters.h"
#include "present.h"
#include "wide.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* With its head page what an ordinary user may lock per processor: 516 KiB. */
#define BUFFER_PAGES 128
#define FORMAT       (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)

struct event {
    int fd; /* -1: none on this processor */
    uint64_t id;
};

struct member {
    char name[COUNTER_NAME_MAX];
    const char *reason; /* why it is absent; NULL: it counts */
    int error;          /* -errno behind the reason */
    uint32_t source;
    bool user_only;
    struct event *events; /* owned: one per processor */
};

struct buffer {
    struct perf_event_mmap_page *head; /* NULL: no event on this processor */
    int fd;                            /* whose it is */
};

struct prcb_family {
    size_t page_size, buffer_bytes; /* the head page not counted */
    uint32_t count, cpus;
    bool has_parts;
    struct buffer *buffers; /* owned: one per processor */
    struct member members[];
};

struct read_values {
    uint64_t value, enabled_ns, running_ns, id;
};

struct read_record {
    struct perf_event_header header;
    uint32_t pid, tid;
    struct read_values values;
};

struct lost_record {
    struct perf_event_header header;
    uint64_t id, lost;
};

/* ---- opening ---- */

/* The kernel redirects records only between events of the same processor, hence a buffer for each.
 */
static int map_buffer(struct prcb_family *family, struct buffer *buffer, int fd)
{
    void *mapped;

    if (buffer->head)
        return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, buffer->fd) ? -errno : 0;
    mapped = mmap(NULL, family->page_size + family->buffer_bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    buffer->head = mapped;
    buffer->fd = fd;
    return 0;
}

static int open_on_cpu(struct prcb_family *family, struct member *member,
                       const struct counter_event *event, uint32_t cpu, pid_t child, int *leader,
                       unsigned extra)
{
    const unsigned flags = PRCB_COUNTERS_INHERIT | PRCB_COUNTERS_ON_EXEC | COUNTERS_STAT | extra;
    int fd = counter_open_fd(event, child, (int)cpu, *leader, flags, FORMAT, &member->user_only);
    int result;

    if (fd < 0)
        return fd;
    member->events[cpu].fd = fd;
    if (*leader < 0)
        *leader = fd;
    result = ioctl(fd, PERF_EVENT_IOC_ID, &member->events[cpu].id) ? -errno : 0;
    return result ? result : map_buffer(family, &family->buffers[cpu], fd);
}

/* An event that cannot count on one present processor counts on none. */
static void give_up(struct prcb_family *family, struct member *member,
                    const struct counter_event *event, int result)
{
    member->reason = counter_reason(event, result);
    member->error = result;
    for (uint32_t cpu = 0; cpu < family->cpus; cpu++) {
        if (member->events[cpu].fd >= 0 && member->events[cpu].fd != family->buffers[cpu].fd) {
            close(member->events[cpu].fd);
            member->events[cpu].fd = -1;
        }
    }
}

static bool is_hardware(const struct member *member)
{
    return member->source == PRCB_COUNTER_HARDWARE;
}

/* The order of opening is chosen with care. When the kernel switches between two threads
 * of the family it may swap their contexts and, for our sake, the counts in them, pair by
 * pair, in the order in which the events joined each context. A new thread's join by
 * processor, then by PMU, then by age, those that are pinned first: with events of several
 * PMUs side by side, counts would change places (seen on 6.18). So there is one group that
 * leads all others, with the software events as members of it, whatever PMU they have; and
 * what else there is are hardware events, each on its own.
 * The leading group is pinned where hardware leads it, so that software events, which
 * need no counter, never miss their turn. */
static void open_leading_group(struct prcb_family *family, const struct counter_event *events,
                               uint32_t first, uint32_t cpu, pid_t child)
{
    bool hardware = is_hardware(&family->members[first]);
    int leader = -1;

    for (uint32_t n = 0; n <= family->count; n++) {
        uint32_t i = n ? n - 1 : first;
        struct member *member = &family->members[i];
        int result;

        if (member->reason || (n && (i == first || is_hardware(member))))
            continue;
        result = open_on_cpu(family, member, &events[i], cpu, child, &leader,
                             hardware && !n ? COUNTERS_PINNED : 0);
        if (result == -ENODEV && leader < 0)
            return; /* the processor is off */
        if (result)
            give_up(family, member, &events[i], result);
    }
}

static void open_rest(struct prcb_family *family, const struct counter_event *events,
                      uint32_t first, uint32_t cpu, pid_t child)
{
    if (!family->buffers[cpu].head)
        return;
    for (uint32_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        int leader = -1, result;

        if (member->reason || i == first || !is_hardware(member))
            continue;
        result = open_on_cpu(family, member, &events[i], cpu, child, &leader, 0);
        if (result)
            give_up(family, member, &events[i], result);
    }
}

/* Tries an event on the calling thread, so that one that cannot count is known before
 * anything depends on it. */
static void try_member(struct member *member, const struct counter_event *event)
{
    bool user_only;
    int fd =
        counter_open_fd(event, 0, -1, -1, PRCB_COUNTERS_INHERIT | COUNTERS_STOPPED, 0, &user_only);

    memcpy(member->name, event->name, sizeof(member->name));
    member->source = counter_event_source(event);
    if (fd >= 0) {
        close(fd);
        return;
    }
    member->error = fd;
    member->reason = counter_reason(event, fd);
}

/* The one that leads: the first hardware event, else the first of all; count: none. */
static uint32_t choose_leader(const struct prcb_family *family)
{
    uint32_t first = family->count;

    for (uint32_t i = 0; i < family->count; i++) {
        const struct member *member = &family->members[i];

        if (!member->reason && is_hardware(member))
            return i;
        if (!member->reason && first == family->count)
            first = i;
    }
    return first;
}

/* The event whose buffer the others share is closed last, with the buffer. */
static void close_member(struct prcb_family *family, struct member *member)
{
    for (uint32_t cpu = 0; member->events && cpu < family->cpus; cpu++) {
        if (member->events[cpu].fd >= 0 && member->events[cpu].fd != family->buffers[cpu].fd)
            close(member->events[cpu].fd);
    }
    free(member->events);
    member->events = NULL;
}

static struct prcb_family *make_family(uint32_t count)
{
    struct prcb_family *family = calloc(1, sizeof(*family) + count * sizeof(family->members[0]));

    if (!family)
        return NULL;
    family->count = count;
    family->cpus = numbered_processors();
    family->page_size = (size_t)sysconf(_SC_PAGESIZE);
    family->buffer_bytes = BUFFER_PAGES * family->page_size;
    family->buffers = calloc(family->cpus, sizeof(*family->buffers));
    if (!family->buffers) {
        free(family);
        return NULL;
    }
    for (uint32_t cpu = 0; cpu < family->cpus; cpu++)
        family->buffers[cpu].fd = -1;
    return family;
}

/* ---- whether the kernel writes records of threads that end ---- */

/* Starts a child that sends no signal at its end, so that the program's own handling of children
 * does not see it; otherwise like fork. */
static pid_t quiet_child(void)
{
#if defined(__aarch64__)
    return (pid_t)syscall(SYS_clone, 0, NULL, NULL, 0, NULL);
#else
    return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
#endif
}

static void await_child(pid_t child)
{
    while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

/* When allowed, starts two children that end at once: whichever of the three ends with the
 * original events, another one leaves parts. */
static void probe_child(int go)
{
    char byte;

    while (read(go, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < 2; i++) {
        pid_t child = quiet_child();

        if (!child)
            _exit(0);
        await_child(child);
    }
    _exit(0);
}

static bool has_read_record(const struct perf_event_mmap_page *page, size_t page_size)
{
    const char *data = (const char *)page + page_size;
    /* This pairs with the kernel's write barrier between the records and its store of data_head
     * (perf_output_put_handle). */
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

    for (uint64_t at = 0; at + sizeof(struct perf_event_header) <= head && at < page_size;) {
        const struct perf_event_header *header = (const void *)(data + at);

        if (header->type == PERF_RECORD_READ)
            return true;
        if (!header->size)
            return false;
        at += header->size;
    }
    return false;
}

/* Tries it with the clock of a child, on any one of its processors: threads leave a part on each,
 * whether they ran there or not. */
static bool probe(pid_t child, int go, size_t page_size)
{
    const unsigned flags = PRCB_COUNTERS_INHERIT | COUNTERS_STAT;
    const struct counter_event clock = {
        .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .no_kernel = true};
    struct perf_event_mmap_page *page;
    int cpu = sched_getcpu(), fd;
    bool user_only, result;

    fd = counter_open_fd(&clock, child, cpu < 0 ? 0 : cpu, -1, flags, FORMAT, &user_only);
    page =
        fd < 0 ? MAP_FAILED : mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    result = page != MAP_FAILED && write(go, "g", 1) == 1;
    close(go);
    await_child(child);
    result = result && has_read_record(page, page_size);
    if (page != MAP_FAILED)
        munmap(page, 2 * page_size);
    if (fd >= 0)
        close(fd);
    return result;
}

static bool kernel_leaves_parts(size_t page_size)
{
    int go[2];
    pid_t child;
    bool result;

    if (pipe2(go, O_CLOEXEC))
        return false;
    child = quiet_child();
    if (!child) {
        close(go[1]);
        probe_child(go[0]);
    }
    if (child < 0) {
        close(go[0]);
        close(go[1]);
        return false;
    }
    result = probe(child, go[1], page_size);
    close(go[0]); /* after the write: a child that was killed must not make it a SIGPIPE */
    return result;
}

static int make_members(struct prcb_family *family, const struct counter_event *events)
{
    for (uint32_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];

        member->events = calloc(family->cpus, sizeof(*member->events));
        if (!member->events)
            return -ENOMEM;
        for (uint32_t cpu = 0; cpu < family->cpus; cpu++)
            member->events[cpu].fd = -1;
        try_member(member, &events[i]);
    }
    return 0;
}

/* Returns 0, or the reason why none of them counts. */
static int open_members(struct prcb_family *family, const struct counter_event *events, pid_t child,
                        struct prcb_error *err)
{
    uint32_t first = choose_leader(family);

    for (uint32_t cpu = 0; first < family->count && cpu < family->cpus; cpu++)
        open_leading_group(family, events, first, cpu, child);
    for (uint32_t cpu = 0; first < family->count && cpu < family->cpus; cpu++)
        open_rest(family, events, first, cpu, child);
    for (uint32_t i = 0; i < family->count; i++) {
        if (!family->members[i].reason)
            return 0;
    }
    return prcb_fail(err, family->members[0].error, "%s: %s", family->members[0].name,
                     family->members[0].reason);
}

int prcb_family_open(const char *names, pid_t child, struct prcb_family **ret,
                     struct prcb_error *err)
{
    struct counter_event events[PRCB_COUNTERS_MAX];
    struct prcb_family *family;
    size_t count;
    int result = counter_events_parse(names, events, &count, err);

    if (result)
        return result;
    family = make_family((uint32_t)count);
    if (!family || make_members(family, events)) {
        prcb_family_close(family);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    result = open_members(family, events, child, err);
    family->has_parts = !result && kernel_leaves_parts(family->page_size);
    if (result) {
        prcb_family_close(family);
        return result == -ENOENT || result == -EINVAL || result == -ENODEV ? -EOPNOTSUPP : result;
    }
    *ret = family;
    return 0;
}

void prcb_family_close(struct prcb_family *family)
{
    if (!family)
        return;
    for (uint32_t i = 0; i < family->count; i++)
        close_member(family, &family->members[i]);
    for (uint32_t cpu = 0; cpu < family->cpus; cpu++) {
        struct buffer *buffer = &family->buffers[cpu];

        if (buffer->head)
            munmap(buffer->head, family->page_size + family->buffer_bytes);
        if (buffer->fd >= 0)
            close(buffer->fd);
    }
    free(family->buffers);
    free(family);
}

/* ---- sums ---- */

size_t prcb_family_count(const struct prcb_family *family)
{
    return family->count;
}

/* Software events share no counter: they always run while they are enabled. */
static void scale(const struct member *member, struct prcb_counter *ret)
{
    ret->value = ret->raw;
    if (ret->enabled_ns < ret->running_ns || !is_hardware(member))
        ret->enabled_ns = ret->running_ns;
    /* The kernel's times of one event on several processors agree only to its last update of each:
     * a share that is nearly all is all. */
    if (ret->running_ns >= ret->enabled_ns - ret->enabled_ns / 64)
        return;
    ret->flags |= PRCB_COUNTER_SCALED;
    ret->value = wide_scale(ret->raw, ret->enabled_ns, ret->running_ns);
}

/* Each processor's event is enabled while the thread runs anywhere, so its times enabled
 * are alike; it runs while the thread is there, so its times running add up. */
static void read_member(const struct prcb_family *family, const struct member *member,
                        struct prcb_counter *ret)
{
    *ret = (struct prcb_counter){
        .name = member->name, .reason = member->reason, .source = member->source};
    if (member->reason)
        return;
    for (uint32_t cpu = 0; cpu < family->cpus; cpu++) {
        struct read_values values;

        if (member->events[cpu].fd < 0 ||
            read(member->events[cpu].fd, &values, sizeof(values)) != (ssize_t)sizeof(values))
            continue;
        ret->raw += values.value;
        ret->running_ns += values.running_ns;
        if (values.enabled_ns > ret->enabled_ns)
            ret->enabled_ns = values.enabled_ns;
    }
    if (!ret->running_ns) {
        ret->reason = "nothing has run yet that it could count";
        return;
    }
    ret->flags = PRCB_COUNTER_PRESENT | (member->user_only ? PRCB_COUNTER_USER_ONLY : 0u);
    scale(member, ret);
}

int prcb_family_read(struct prcb_family *family, size_t count, struct prcb_counter *ret)
{
    if (count > family->count)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        read_member(family, &family->members[i], &ret[i]);
    return 0;
}

/* ---- parts ---- */

bool prcb_family_has_parts(const struct prcb_family *family)
{
    return family->has_parts;
}

static void copy_out(const struct prcb_family *family, const struct buffer *buffer, uint64_t at,
                     void *to, size_t bytes)
{
    const char *data = (const char *)buffer->head + family->page_size;
    size_t start = (size_t)(at % family->buffer_bytes), first = family->buffer_bytes - start;

    first = first < bytes ? first : bytes;
    memcpy(to, data + start, first);
    memcpy((char *)to + first, data, bytes - first);
}

static bool find_index(const struct prcb_family *family, uint32_t cpu, uint64_t id, uint32_t *ret)
{
    for (uint32_t i = 0; i < family->count; i++) {
        if (family->members[i].events && family->members[i].events[cpu].id == id) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int hand_on(const struct prcb_family *family, uint32_t cpu, uint64_t at, uint32_t type,
                   prcb_family_part_fn fn, void *ctx, uint64_t *ret_lost)
{
    struct prcb_family_part part = {0};
    struct read_record record;
    struct lost_record lost;

    if (type == PERF_RECORD_LOST) {
        copy_out(family, &family->buffers[cpu], at, &lost, sizeof(lost));
        *ret_lost += lost.lost;
    }
    if (type != PERF_RECORD_READ)
        return 0;
    copy_out(family, &family->buffers[cpu], at, &record, sizeof(record));
    if (!find_index(family, cpu, record.values.id, &part.index))
        return 0;
    part.pid = (pid_t)record.pid;
    part.tid = (pid_t)record.tid;
    part.value = record.values.value;
    part.enabled_ns = record.values.enabled_ns;
    part.running_ns = record.values.running_ns;
    return fn(&part, ctx);
}

int prcb_family_collect(struct prcb_family *family, prcb_family_part_fn fn, void *ctx,
                        uint64_t *ret_lost)
{
    int result = 0;

    for (uint32_t cpu = 0; cpu < family->cpus && !result; cpu++) {
        struct perf_event_mmap_page *page = family->buffers[cpu].head;
        uint64_t head, tail;

        if (!page)
            continue;
        /* This pairs as in has_read_record. The tail is written by this side alone. */
        head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        tail = page->data_tail;
        while (tail < head && !result) {
            struct perf_event_header header;

            copy_out(family, &family->buffers[cpu], tail, &header, sizeof(header));
            result = hand_on(family, cpu, tail, header.type, fn, ctx, ret_lost);
            tail += header.size ? header.size : head - tail;
        }
        /* The kernel writes over what is before the tail: pairs with its load of data_tail, before
         * it finds room for a record (__perf_output_begin). */
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
    }
    return result;
}
