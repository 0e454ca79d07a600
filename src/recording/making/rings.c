/* SPDX-License-Identifier: BSD-2-Clause */
#include "rings.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "error.h"
#include "now.h"
#include "present.h"

#define RING_BYTES_MAX (2u << 20)
#define COPY_BYTES_MAX (8u << 20)   /* with copies of stacks, */
#define COPY_BYTES_ALL (256u << 20) /* but no more than this for all processors */
#define RING_BYTES_MIN (32u << 10)
#define PARANOID       "kernel.perf_event_paranoid"

#define FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, 6.0: a read tells what found no room */

/* Registers by the kernel's numbers (asm/perf_regs.h), and where DWARF's numbers lie among those
 * that are asked for. */
#if defined(__x86_64__)
#define REGISTERS 0xff01ffull /* ax bx cx dx si di bp sp ip, r8 to r15 */
enum { REGISTER_PC = 8 };
static const uint8_t dwarf_places[] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16};
#elif defined(__aarch64__)
#define REGISTERS 0x1ffffffffull /* x0 to x30, sp, pc */
enum { REGISTER_PC = 32 };
static const uint8_t dwarf_places[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                       11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                       22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
#else
#define REGISTERS 0 /* of others no stack is unwound */
enum { REGISTER_PC = 0 };
static const uint8_t dwarf_places[] = {0};
#endif

/* In which a thread cannot begin or end twice: its number is not given again so soon. */
#define REPEATED_NS UINT64_C(1000000000)

#define ABI_64 2 /* PERF_SAMPLE_REGS_ABI_64 */

#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID
#define PERF_RECORD_MISC_MMAP_BUILD_ID (1 << 14)
#endif

/* Of a thread that begins or ends. */
struct task {
    int32_t pid, parent_pid, tid, parent_tid;
    uint64_t time; /* by the event's clock */
};

struct ring {
    uint32_t cpu;
    struct task begun, ended; /* the last ones */
    int fd;                   /* the event whose ring it is; -1: none yet */
    struct perf_event_mmap_page *page;
    uint8_t *data;
    size_t bytes;
};

#define RECORD_CAUSED 0xffffu /* types that the kernel has not: struct prcb_switch, */
#define RECORD_WAIT   0xfffeu /* struct wait, */
#define RECORD_RAN    0xfffdu /* and struct ran */

/* A wait among the records. */
struct wait {
    int32_t pid, tid;
    const char *missing, *kind, *word;
    uint64_t has_span;
    struct prcb_span_id span;
    uint64_t one_in, chain_count, kernel_count; /* the chain follows, then the kernel's names */
};

/* A list of an interpreter's frames among the records. */
struct ran {
    int32_t pid, tid;
    uint64_t pc;
    uint32_t node_count, whole; /* the nodes follow */
};

/* A record that was taken and not handed on yet. */
struct taken {
    uint64_t time;
    size_t offset, order; /* in the store; of arrival */
    uint32_t cpu;
};

struct rings {
    struct perf_event_attr attr;
    const char *event; /* borrowed */
    bool user_only;
    int filter; /* a program; -1: none */
    struct ring *rings;
    size_t count, ring_bytes; /* at most, of each */
    int *fds;                 /* of all events */
    size_t fd_count;
    int *file_fds; /* of those that only tell which files are mapped */
    size_t file_fd_count;
    bool no_files; /* there is no room for these */
    uint8_t *store;
    size_t used, room;
    struct taken *taken;
    size_t taken_count, taken_room, order;
    uint64_t settled; /* what is older than this has arrived */
    uint64_t lost;    /* as records told so far */
};

/* ---- opening --------------------------------------------------------------- */

static void set_attr(struct perf_event_attr *attr, const struct prcb_counter_event *event,
                     const struct rings_options *options)
{
    *attr = (struct perf_event_attr){
        .size = sizeof(*attr),
        .type = event->type,
        .config = event->config,
        .config1 = event->config1,
        .config2 = event->config2,
        .exclude_user = !!(event->flags & PRCB_COUNTER_EVENT_NO_USER),
        .exclude_kernel = !!(event->flags & PRCB_COUNTER_EVENT_NO_KERNEL),
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       PERF_SAMPLE_PERIOD,
        .sample_id_all = 1,
        .disabled = 1,
        .enable_on_exec = options->on_exec,
        .inherit = 1,
        .mmap = 1,
        .mmap2 = 1,
        .build_id = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .context_switch = options->switches,
        .exclude_guest = 1,
        .exclude_idle = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .read_format = FORMAT_LOST,
    };
    if (options->stacks)
        attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
    if (options->stacks && options->stack_bytes && REGISTERS != 0) {
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = REGISTERS;
        attr->sample_stack_user = options->stack_bytes;
    }
    if (!options->samples) {
        attr->type = PERF_TYPE_SOFTWARE;
        attr->config = PERF_COUNT_SW_DUMMY;
    } else if (options->frequency) {
        attr->freq = 1;
        attr->sample_freq = options->rate;
    } else {
        attr->sample_period = options->rate;
    }
}

static size_t most_bytes(const struct rings *rings)
{
    size_t bytes = rings->attr.sample_stack_user ? COPY_BYTES_MAX : RING_BYTES_MAX;
    struct rlimit locked;

    while (bytes > RING_BYTES_MAX && bytes * rings->count > COPY_BYTES_ALL)
        bytes /= 2;
    /* The first ones must not take what an ordinary user may lock for all. */
    while (geteuid() && bytes > RING_BYTES_MIN && !getrlimit(RLIMIT_MEMLOCK, &locked) &&
           bytes * rings->count > locked.rlim_cur)
        bytes /= 2;
    return bytes;
}

int rings_open(const struct rings_options *options, struct rings **ret, struct prcb_error *err)
{
    struct prcb_counter_event event = {0};
    uint32_t count = numbered_processors();
    struct rings *rings;
    int result = prcb_counter_event(options->event, &event, err);

    if (result)
        return result;
    rings = calloc(1, sizeof(*rings));
    if (rings)
        rings->rings = calloc((size_t)count, sizeof(*rings->rings));
    if (!rings || !rings->rings) {
        free(rings);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    rings->count = (size_t)count;
    rings->event = options->event;
    rings->filter = -1;
    for (size_t i = 0; i < rings->count; i++) {
        rings->rings[i].cpu = (uint32_t)i;
        rings->rings[i].fd = -1;
    }
    set_attr(&rings->attr, &event, options);
    rings->ring_bytes = most_bytes(rings);
    *ret = rings;
    return 0;
}

void rings_filter(struct rings *rings, int program)
{
    rings->filter = program;
}

void rings_leave_switches(struct rings *rings)
{
    rings->attr.context_switch = 0;
}

static void drop_file_events(struct rings *rings)
{
    while (rings->file_fd_count)
        close(rings->file_fds[--rings->file_fd_count]);
    free(rings->file_fds);
    rings->file_fds = NULL;
    rings->no_files = true;
}

void rings_close(struct rings *rings)
{
    if (!rings)
        return;
    for (size_t i = 0; i < rings->count; i++) {
        struct ring *ring = &rings->rings[i];

        if (ring->page)
            munmap(ring->page, ring->bytes + (size_t)sysconf(_SC_PAGESIZE));
    }
    for (size_t i = 0; i < rings->fd_count; i++)
        close(rings->fds[i]);
    drop_file_events(rings);
    free(rings->fds);
    free(rings->rings);
    free(rings->store);
    free(rings->taken);
    free(rings);
}

static int open_event(struct rings *rings, pid_t tid, uint32_t cpu)
{
    int fd =
        (int)syscall(SYS_perf_event_open, &rings->attr, tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Features that the kernel does not permit or does not know are left out, one after the other. */
static int open_as_allowed(struct rings *rings, pid_t tid, uint32_t cpu)
{
    int fd = open_event(rings, tid, cpu);

    if (fd == -EINVAL && rings->attr.read_format && !rings->fd_count) {
        rings->attr.read_format = 0;
        fd = open_event(rings, tid, cpu);
    }
    if ((fd == -EINVAL || fd == -E2BIG) && rings->attr.build_id && !rings->fd_count) {
        rings->attr.build_id = 0; /* before 5.12 */
        fd = open_event(rings, tid, cpu);
    }
    if ((fd == -EACCES || fd == -EPERM) && !rings->attr.exclude_kernel && !rings->fd_count) {
        rings->attr.exclude_kernel = 1;
        rings->user_only = true;
        fd = open_event(rings, tid, cpu);
    }
    if (fd == -EMFILE && rings->file_fd_count) {
        drop_file_events(rings);
        fd = open_event(rings, tid, cpu);
    }
    return fd;
}

/* The record of a mapping has room for the file's build id or for its numbers, so the numbers come
 * from a second event. Where it cannot be had, the files' numbers are not known. */
static void add_file_event(struct rings *rings, const struct ring *ring, pid_t tid)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .sample_id_all = 1,
        .disabled = 1,
        .enable_on_exec = rings->attr.enable_on_exec,
        .inherit = rings->attr.inherit,
        .mmap = 1,
        .mmap2 = 1,
        .exclude_kernel = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    int fd;

    if (!rings->attr.build_id || rings->no_files)
        return; /* the one event tells it */
    fd = (int)syscall(SYS_perf_event_open, &attr, tid, (int)ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0 && (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ||
                    array_append(rings->file_fds, rings->file_fd_count, fd)))
        close(fd);
}

static int open_error(const struct rings *rings, int error, struct prcb_error *err)
{
    switch (error) {
    case -EACCES:
    case -EPERM:
        return prcb_fail(err, error,
                         "sampling is not permitted: as root or with CAP_PERFMON, or set " PARANOID
                         " lower (2 allows one's own processes, 0 the whole system)");
    case -EINVAL:
        return prcb_fail(err, error,
                         "the kernel refuses to sample this: is the rate above "
                         "kernel.perf_event_max_sample_rate?");
    case -ENOENT:
    case -EOPNOTSUPP:
    case -ENODEV:
        return prcb_fail(err, -EOPNOTSUPP,
                         "%s cannot be sampled on this machine; cpu-clock always can",
                         rings->event);
    case -EMFILE:
        return prcb_fail(err, error,
                         "too many threads: one descriptor is needed for each thread "
                         "and processor (ulimit -n); with -a one for each processor is enough");
    default:
        return prcb_fail(err, error, "perf_event_open: %s", strerror(-error));
    }
}

static int map_ring(const struct rings *rings, struct ring *ring, int fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t bytes = rings->ring_bytes; bytes >= RING_BYTES_MIN; bytes /= 2) {
        void *at = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (at != MAP_FAILED) {
            ring->page = at;
            ring->data = (uint8_t *)at + page;
            ring->bytes = bytes;
            ring->fd = fd;
            return 0;
        }
        if (errno != EPERM && errno != ENOMEM)
            break;
    }
    return -errno;
}

static int keep_fd(struct rings *rings, int fd)
{
    return array_append(rings->fds, rings->fd_count, fd);
}

/* Adds one event with one ring: a new one, or the one that is there. */
static int add_event(struct rings *rings, struct ring *ring, pid_t tid, struct prcb_error *err)
{
    int fd = open_as_allowed(rings, tid, ring->cpu), result;

    if (fd == -ENODEV && rings->attr.type == PERF_TYPE_SOFTWARE)
        return 0; /* the processor is offline */
    if (fd < 0)
        return fd == -ESRCH ? fd : open_error(rings, fd, err);
    result = keep_fd(rings, fd);
    if (result) {
        close(fd);
        return prcb_fail(err, result, "out of memory");
    }
    if (rings->filter >= 0 && rings->attr.config != PERF_COUNT_SW_DUMMY &&
        ioctl(fd, PERF_EVENT_IOC_SET_BPF, rings->filter))
        return prcb_fail(err, -errno, "PERF_EVENT_IOC_SET_BPF: %s", strerror(errno));
    if (ring->fd < 0) {
        result = map_ring(rings, ring, fd);
        if (result)
            return prcb_fail(err, result,
                             "no memory for the ring of processor %u: %s "
                             "(kernel.perf_event_mlock_kb)",
                             ring->cpu, strerror(-result));
    } else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)) {
        return prcb_fail(err, -errno, "PERF_EVENT_IOC_SET_OUTPUT: %s", strerror(errno));
    }
    add_file_event(rings, ring, tid);
    return 0;
}

static int add(struct rings *rings, pid_t tid, struct prcb_error *err)
{
    int result = 0;

    for (size_t i = 0; i < rings->count && !result; i++)
        result = add_event(rings, &rings->rings[i], tid, err);
    return result;
}

int rings_add_thread(struct rings *rings, pid_t tid, struct prcb_error *err)
{
    return add(rings, tid, err);
}

int rings_add_all(struct rings *rings, struct prcb_error *err)
{
    rings->attr.inherit = 0;
    return add(rings, -1, err);
}

bool rings_user_only(const struct rings *rings)
{
    return rings->user_only;
}

void rings_start(struct rings *rings)
{
    for (size_t i = 0; i < rings->file_fd_count; i++)
        ioctl(rings->file_fds[i], PERF_EVENT_IOC_ENABLE, 0);
    for (size_t i = 0; i < rings->fd_count; i++)
        ioctl(rings->fds[i], PERF_EVENT_IOC_ENABLE, 0);
}

void rings_stop(struct rings *rings)
{
    for (size_t i = 0; i < rings->fd_count; i++)
        ioctl(rings->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

/* ---- from bytes to records ------------------------------------------------- */

/* The end of every record but a sample: sample_id_all's TID, TIME, CPU. */
struct tail {
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, pad;
};

static uint64_t time_of(const struct perf_event_header *head)
{
    uint64_t time;

    if (head->type == PERF_RECORD_SAMPLE) /* header, ip, pid and tid, time */
        memcpy(&time, (const uint8_t *)head + sizeof(*head) + 16, sizeof(time));
    else
        memcpy(&time,
               (const uint8_t *)head + head->size - sizeof(struct tail) +
                   offsetof(struct tail, time),
               sizeof(time));
    return time;
}

uint64_t rings_registers(const uint64_t *registers, uint64_t ret[32])
{
    memset(ret, 0, 32 * sizeof(*ret));
    for (size_t i = 0; i < sizeof(dwarf_places); i++)
        ret[i] = registers[dwarf_places[i]];
    return registers[REGISTER_PC];
}

/* words: what follows the chain: the registers' kind, and these if there are any; how many bytes of
 * stack were asked for, the bytes, and how many of them there are. */
static void decode_copy(const uint64_t *words, size_t count, struct ring_event *ret)
{
    const size_t registers = sizeof(dwarf_places) + 1;
    size_t at = 1, bytes;

    if (!count)
        return;
    ret->kernel_only = !words[0];
    if (words[0] != ABI_64 || count < at + registers + 1)
        return;
    ret->registers = words + at;
    at += registers;
    bytes = (size_t)words[at++];
    if (!bytes || bytes % 8 || bytes / 8 >= count - at)
        return;
    ret->stack = (const uint8_t *)(words + at);
    ret->stack_bytes = (size_t)words[at + bytes / 8];
    if (ret->stack_bytes > bytes)
        ret->stack_bytes = 0;
}

static bool decode_sample(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct {
        uint64_t ip;
        int32_t pid, tid;
        uint64_t time;
        uint32_t cpu, pad;
        uint64_t period;
        uint64_t chain_count;
        uint64_t chain[];
    } *sample = (const void *)(head + 1);
    size_t bytes = head->size - sizeof(*head);

    if (bytes < 40)
        return false;
    ret->kind = RING_SAMPLE;
    ret->ip = sample->ip;
    ret->pid = sample->pid;
    ret->tid = sample->tid;
    ret->weight = sample->period;
    ret->cpu = sample->cpu;
    ret->kernel = (head->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    if (bytes >= 48 && sample->chain_count <= (bytes - 48) / 8) {
        ret->chain = sample->chain;
        ret->chain_count = (size_t)sample->chain_count;
        decode_copy(sample->chain + sample->chain_count,
                    (bytes - 48) / 8 - (size_t)sample->chain_count, ret);
    }
    return true;
}

/* Whether a record has its fixed part and, before the tail behind it, text that ends. */
static bool holds_text(const struct perf_event_header *head, size_t fixed)
{
    size_t before = sizeof(*head) + fixed + sizeof(struct tail);

    return head->size > before &&
           memchr((const uint8_t *)(head + 1) + fixed, '\0', head->size - before);
}

static bool decode_map(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct {
        int32_t pid, tid;
        uint64_t start, length, offset;
        union {
            struct {
                uint32_t major, minor;
                uint64_t inode, generation;
            };
            struct {
                uint8_t size, zero[3];
                uint8_t id[20];
            } build;
        };
        uint32_t protection, flags;
        char file[];
    } *map = (const void *)(head + 1);

    if (!holds_text(head, offsetof(__typeof__(*map), file)))
        return false;
    ret->kind = RING_MAP;
    ret->pid = map->pid;
    ret->tid = map->tid;
    ret->start = map->start;
    ret->length = map->length;
    ret->file_offset = map->offset;
    ret->file = map->file;
    if (head->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && map->build.size <= 20 && map->build.size) {
        ret->build_id = map->build.id;
        ret->build_id_size = map->build.size;
    } else {
        ret->device = makedev(map->major, map->minor);
        ret->inode = map->inode;
    }
    return true;
}

static bool decode_name(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct {
        int32_t pid, tid;
        char name[];
    } *comm = (const void *)(head + 1);

    if (!holds_text(head, offsetof(__typeof__(*comm), name)))
        return false;
    ret->kind = RING_NAME;
    ret->pid = comm->pid;
    ret->tid = comm->tid;
    ret->name = comm->name;
    ret->exec = head->misc & PERF_RECORD_MISC_COMM_EXEC;
    return true;
}

static bool decode_task(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct task *task = (const void *)(head + 1);

    if (head->size < sizeof(*head) + sizeof(*task))
        return false;
    ret->kind = head->type == PERF_RECORD_FORK ? RING_FORK : RING_EXIT;
    ret->pid = task->pid;
    ret->tid = task->tid;
    ret->parent_pid = task->parent_pid;
    ret->parent_tid = task->parent_tid;
    return true;
}

static bool decode_switch(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct {
        int32_t pid, tid;
    } *other = (const void *)(head + 1);

    ret->kind = RING_SWITCH;
    ret->out = head->misc & PERF_RECORD_MISC_SWITCH_OUT;
    ret->preempted = head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    if (head->type == PERF_RECORD_SWITCH_CPU_WIDE) {
        ret->both = true;
        ret->other_pid = other->pid;
        ret->other_tid = other->tid;
    }
    return true;
}

/* PERF_RECORD_LOST has the event's id before the count, PERF_RECORD_LOST_SAMPLES not. */
static bool decode_lost(const struct perf_event_header *head, struct ring_event *ret)
{
    const uint64_t *words = (const void *)(head + 1);

    ret->kind = RING_LOST;
    ret->lost = words[head->type == PERF_RECORD_LOST];
    return true;
}

static bool decode_caused(const struct perf_event_header *head, struct ring_event *ret)
{
    ret->kind = RING_CAUSED;
    ret->caused = (const void *)(head + 1);
    ret->cpu = ret->caused->cpu;
    return true;
}

/* False: nobody here wants the record. */
static bool decode_wait(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct wait *wait = (const void *)(head + 1);

    ret->kind = RING_WAIT;
    ret->pid = wait->pid;
    ret->tid = wait->tid;
    ret->missing = wait->missing;
    ret->wait_kind = wait->kind;
    ret->word = wait->word;
    ret->has_span = wait->has_span;
    ret->span = wait->span;
    ret->one_in = wait->one_in;
    ret->chain = (const void *)(wait + 1);
    ret->chain_count = (size_t)wait->chain_count;
    ret->kernel_names = (const void *)(ret->chain + ret->chain_count);
    ret->kernel_count = (size_t)wait->kernel_count;
    return true;
}

static bool decode_ran(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct ran *ran = (const void *)(head + 1);

    ret->kind = RING_RAN;
    ret->pid = ran->pid;
    ret->tid = ran->tid;
    ret->ip = ran->pc;
    ret->node_count = ran->node_count;
    ret->whole = ran->whole;
    ret->nodes = (const void *)(ran + 1);
    return true;
}

static bool decode(const struct perf_event_header *head, struct ring_event *ret)
{
    const struct tail *tail = (const void *)((const uint8_t *)head + head->size - sizeof(*tail));

    if (head->type == PERF_RECORD_SAMPLE)
        return decode_sample(head, ret);
    if (head->type == RECORD_CAUSED)
        return decode_caused(head, ret);
    if (head->type == RECORD_WAIT)
        return decode_wait(head, ret);
    if (head->type == RECORD_RAN)
        return decode_ran(head, ret);
    ret->pid = (int32_t)tail->pid;
    ret->tid = (int32_t)tail->tid;
    switch (head->type) {
    case PERF_RECORD_MMAP2:
        return decode_map(head, ret);
    case PERF_RECORD_COMM:
        return decode_name(head, ret);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return decode_task(head, ret);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return decode_switch(head, ret);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        return decode_lost(head, ret);
    default:
        return false;
    }
}

/* ---- taking and ordering --------------------------------------------------- */

static int make_room(struct rings *rings, size_t bytes)
{
    if (array_reserve(rings->store, rings->used, rings->room, bytes))
        return -ENOMEM;
    return array_reserve(rings->taken, rings->taken_count, rings->taken_room, 1);
}

/* Copies out of a ring, around its end if needed. */
static void copy_out(const struct ring *ring, uint64_t at, void *to, size_t bytes)
{
    size_t from = (size_t)at & (ring->bytes - 1), first = ring->bytes - from;

    if (first > bytes)
        first = bytes;
    memcpy(to, ring->data + from, first);
    memcpy((uint8_t *)to + first, ring->data, bytes - first);
}

/* Tells whether a record says once more that a thread has begun or ended: the kernel tells it to
 * every event that is told of mappings, to one directly behind the other and into the same ring. */
static bool is_repeated(const struct rings *rings, struct ring *ring,
                        const struct perf_event_header *head)
{
    struct task *last = head->type == PERF_RECORD_FORK ? &ring->begun : &ring->ended, task;
    bool same;

    if ((head->type != PERF_RECORD_FORK && head->type != PERF_RECORD_EXIT) ||
        !rings->file_fd_count || head->size < sizeof(*head) + sizeof(task))
        return false;
    memcpy(&task, head + 1, sizeof(task));
    same = task.pid == last->pid && task.tid == last->tid && task.parent_pid == last->parent_pid &&
           task.parent_tid == last->parent_tid && task.time - last->time < REPEATED_NS;
    *last = same ? (struct task){.pid = 0} : task;
    return same;
}

static int take(struct rings *rings, struct ring *ring, unsigned *ret_full)
{
    /* Pairs with the kernel's store of data_head behind the records. */
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t at = ring->page->data_tail;
    unsigned full = (unsigned)((head - at) * 100 / ring->bytes);
    int result = 0;

    if (full > *ret_full)
        *ret_full = full;
    while (at < head) {
        struct perf_event_header record;

        copy_out(ring, at, &record, sizeof(record));
        if (record.size < sizeof(record) + sizeof(struct tail)) {
            at += record.size >= sizeof(record) ? record.size : head - at;
            continue;
        }
        result = make_room(rings, record.size);
        if (result)
            break;
        copy_out(ring, at, rings->store + rings->used, record.size);
        at += record.size;
        if (is_repeated(rings, ring, (const void *)(rings->store + rings->used)))
            continue;
        rings->taken[rings->taken_count++] = (struct taken){
            .time = time_of((const void *)(rings->store + rings->used)),
            .offset = rings->used,
            .order = rings->order++,
            .cpu = ring->cpu,
        };
        rings->used += record.size;
    }
    /* Pairs with the kernel's load of data_tail before it writes over what was read. */
    __atomic_store_n(&ring->page->data_tail, at, __ATOMIC_RELEASE);
    return result;
}

static int put(struct rings *rings, const struct perf_event_header *head, const void *body,
               uint64_t time_ns)
{
    int result = make_room(rings, head->size);

    if (result)
        return result;
    memcpy(rings->store + rings->used, head, sizeof(*head));
    memcpy(rings->store + rings->used + sizeof(*head), body, head->size - sizeof(*head));
    rings->taken[rings->taken_count++] =
        (struct taken){.time = time_ns, .offset = rings->used, .order = rings->order++};
    rings->used += head->size;
    return 0;
}

int rings_put_sample(struct rings *rings, const struct ring_event *event)
{
    const struct {
        uint64_t ip;
        int32_t pid, tid;
        uint64_t time;
        uint32_t cpu, pad;
        uint64_t period;
    } body = {event->ip, event->pid, event->tid, event->time_ns, event->cpu, 0, event->weight};
    const struct perf_event_header head = {
        .type = PERF_RECORD_SAMPLE,
        .misc = event->kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
        .size = sizeof(head) + sizeof(body),
    };

    return put(rings, &head, &body, event->time_ns);
}

int rings_put_switch(struct rings *rings, const struct prcb_switch *record)
{
    const struct perf_event_header head = {
        .type = RECORD_CAUSED,
        .size = sizeof(head) + sizeof(*record),
    };

    return put(rings, &head, record, record->time_ns);
}

int rings_put_wait(struct rings *rings, const struct ring_event *event)
{
    struct {
        struct wait wait;
        unsigned char rest[RINGS_FRAMES * (sizeof(uint64_t) + sizeof(const char *))];
    } body = {{event->pid, event->tid, event->missing, event->wait_kind, event->word,
               event->has_span, event->span, event->one_in, event->chain_count,
               event->kernel_count}};
    size_t chain = event->chain_count * sizeof(*event->chain);
    size_t names = event->kernel_count * sizeof(const char *);
    const struct perf_event_header head = {
        .type = RECORD_WAIT,
        .size = (uint16_t)(sizeof(head) + sizeof(body.wait) + chain + names),
    };

    if (chain)
        memcpy(body.rest, event->chain, chain);
    if (names)
        memcpy(body.rest + chain, event->kernel_names, names);
    return put(rings, &head, &body, event->time_ns);
}

int rings_put_ran(struct rings *rings, const struct prcb_ran *ran)
{
    struct {
        struct ran ran;
        struct prcb_node nodes[PRCB_CHAIN_NODES];
    } body = {.ran = {ran->pid, ran->tid, ran->pc, ran->node_count, ran->whole}};
    const size_t bytes = ran->node_count * sizeof(*ran->nodes);
    const struct perf_event_header head = {
        .type = RECORD_RAN,
        .size = (uint16_t)(sizeof(head) + sizeof(body.ran) + bytes),
    };

    if (ran->node_count > PRCB_CHAIN_NODES)
        return 0;
    memcpy(body.nodes, ran->nodes, bytes);
    return put(rings, &head, &body, ran->time_ns - RINGS_RAN_NS);
}

static int by_time(const void *left, const void *right)
{
    const struct taken *a = left, *b = right;

    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Drops the first records, moving the rest to the beginning of the store. */
static void drop(struct rings *rings, size_t handed)
{
    size_t used = 0;

    if (!handed)
        return; /* of a store that nothing was put into, too */
    /* The rest is in the order of time; its bytes are moved in the order they lie. */
    memmove(rings->taken, rings->taken + handed,
            (rings->taken_count - handed) * sizeof(*rings->taken));
    rings->taken_count -= handed;
    if (rings->taken_count) {
        uint8_t *fresh = malloc(rings->room);

        if (!fresh)
            return; /* the bytes stay where they are; the next time will do */
        for (size_t i = 0; i < rings->taken_count; i++) {
            const struct perf_event_header *head =
                (const void *)(rings->store + rings->taken[i].offset);

            memcpy(fresh + used, head, head->size);
            rings->taken[i].offset = used;
            used += ((const struct perf_event_header *)(const void *)(fresh + used))->size;
        }
        free(rings->store);
        rings->store = fresh;
    }
    rings->used = used;
}

/* Counts the records that found no room and that no record told of: the kernel writes one when
 * there is room again, which may not have happened by the end. */
static uint64_t untold_losses(const struct rings *rings)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < rings->fd_count && rings->attr.read_format; i++) {
        uint64_t words[2];

        if (read(rings->fds[i], words, sizeof(words)) == sizeof(words))
            lost += words[1];
    }
    return lost > rings->lost ? lost - rings->lost : 0;
}

static int tell_losses(struct rings *rings, int (*fn)(const struct ring_event *, void *), void *ctx)
{
    struct ring_event event = {.kind = RING_LOST, .lost = untold_losses(rings)};

    if (!event.lost)
        return 0;
    event.time_ns = rings->settled;
    return fn(&event, ctx);
}

int rings_drain(struct rings *rings, bool last, int (*fn)(const struct ring_event *, void *),
                void *ctx, unsigned *ret_full)
{
    uint64_t begun = now_ns(), settled = last ? UINT64_MAX : rings->settled;
    size_t i;
    int result = 0;

    for (i = 0; i < rings->count && !result; i++) {
        if (rings->rings[i].page)
            result = take(rings, &rings->rings[i], ret_full);
    }
    array_sort(rings->taken, rings->taken_count, by_time);
    for (i = 0; i < rings->taken_count && rings->taken[i].time <= settled && !result; i++) {
        struct ring_event event = {.time_ns = rings->taken[i].time, .cpu = rings->taken[i].cpu};

        if (!decode((const void *)(rings->store + rings->taken[i].offset), &event))
            continue;
        if (event.kind == RING_LOST)
            rings->lost += event.lost;
        result = fn(&event, ctx);
    }
    drop(rings, i);
    /* A record with an earlier stamp can only have been written while this pass began: the next
     * pass will have it. */
    rings->settled = begun;
    if (last && !result)
        result = tell_losses(rings, fn, ctx);
    return result;
}
