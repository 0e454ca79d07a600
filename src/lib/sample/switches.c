/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The stream of switch records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf_run.h"
#include "present.h"
#include "samples.skel.h"
#include "sampler.h"

#define ROOM_DEFAULT (8u << 20)   /* some 70,000 records of 120 bytes */
#define ROOM_MOST    (1u << 30)   /* sizes are powers of two */
#define ROOM_LEAST   (512u << 10) /* of a processor, unless all ask for less */
#define LINKS        6

_Static_assert(offsetof(struct prcb_switch, old_comm) == 112, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, cpu) == 16, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, old_state) == 40, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, old_prio) == 48, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, cause) == 52, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, ready_ns) == 56, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, waker_by) == 54, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, samples) == 64, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, woken_cpu) == 80, "as the program writes it");
_Static_assert(offsetof(struct prcb_switch, waker_comm) == 96, "as the program writes it");

/* Belongs to its sampler, whose close ends it. */
struct prcb_switches {
    struct prcb_sampler *sampler;
    struct ring *rings; /* by processor */
    size_t count;
    int readable; /* an epoll of all of them */
    struct bpf_link *links[LINKS];
    uint64_t lost_before; /* by streams before this one */
};

static uint64_t lost_now(const struct prcb_sampler *s)
{
    uint64_t lost = 0;

    for (int cpu = 0; cpu < s->cpus; cpu++)
        lost += __atomic_load_n(&s->slots[cpu].switches_lost, __ATOMIC_RELAXED);
    return lost;
}

/* Locks come first: a wait that began before has no cause of its own. Wakings and moves come before
 * switches, so that no stretch that ends has lost its waker. */
static int attach(struct prcb_switches *w, struct prcb_error *err)
{
    struct samples_bpf *skeleton = w->sampler->skeleton;
    struct bpf_program *const programs[] = {
        skeleton->progs.prcb_record_contention_end, skeleton->progs.prcb_record_contention_begin,
        skeleton->progs.prcb_record_newtask,        skeleton->progs.prcb_record_move,
        skeleton->progs.prcb_record_waking,         skeleton->progs.prcb_switch_record};

    for (size_t i = 0; i < LINKS; i++) {
        /* Births of chosen threads are seen since the first was chosen. */
        if (!bpf_program__autoload(programs[i]) ||
            (w->sampler->only_chosen && programs[i] == skeleton->progs.prcb_record_newtask))
            continue;
        w->links[i] = bpf_attach_program(programs[i]);
        if (!w->links[i])
            return prcb_fail(err, -errno, "%s cannot be attached: %s",
                             bpf_program__name(programs[i]), strerror(errno));
    }
    return 0;
}

/* What is kept of threads before they switch. */
static int look_at_threads(struct prcb_switches *w, struct prcb_error *err)
{
    bool narrow = false;
    int program = bpf_program__fd(w->sampler->skeleton->progs.prcb_record_threads);
    int result = bpf_run_iterator(&narrow, program, 0, 0);

    return result ? prcb_fail(err, result, "the threads cannot be looked at: %s", strerror(-result))
                  : 0;
}

static int make_rings(struct prcb_switches *w, size_t bytes)
{
    int result = 0;

    w->readable = epoll_create1(EPOLL_CLOEXEC);
    if (w->readable < 0)
        return -errno;
    w->rings = calloc(w->count, sizeof(*w->rings));
    if (!w->rings)
        return -ENOMEM;
    for (size_t i = 0; i < w->count; i++)
        w->rings[i].fd = -1;
    for (size_t i = 0; i < w->count && !result; i++) {
        struct epoll_event event = {.events = EPOLLIN};

        result = ring_make(bytes, &w->rings[i]);
        if (!result && epoll_ctl(w->readable, EPOLL_CTL_ADD, w->rings[i].fd, &event))
            result = -errno;
    }
    return result;
}

static int open_stream(struct prcb_switches *w, size_t bytes, struct prcb_error *err)
{
    struct prcb_sampler *s = w->sampler;
    int result;

    if (s->switches)
        return prcb_fail(err, -EBUSY, "this sampler has a stream of switch records already");
    result = make_rings(w, bytes);
    if (result)
        return prcb_fail(err, result, "no %zu rings of %zu bytes for switch records: %s", w->count,
                         bytes, strerror(-result));
    w->lost_before = lost_now(s);
    /* Waits that an earlier stream saw begin have a number of another stream: between the two their
     * thread may have run unseen. */
    s->skeleton->bss->stream++;
    s->switches = w;
    for (__u32 cpu = 0; cpu < w->count; cpu++) {
        if (bpf_map_update_elem(bpf_map__fd(s->skeleton->maps.switch_rings), &cpu,
                                &w->rings[cpu].fd, BPF_ANY))
            return prcb_fail(err, -errno, "a ring for switch records cannot be set: %s",
                             strerror(errno));
    }
    result = attach(w, err);
    return result ? result : look_at_threads(w, err);
}

/* A processor's room: of one that is busier than the others, too. */
static size_t room_each(size_t bytes, size_t count)
{
    size_t least = bytes < ROOM_LEAST ? bytes : ROOM_LEAST;
    size_t wanted = bytes / count < least ? least : bytes / count;
    size_t room = (size_t)sysconf(_SC_PAGESIZE);

    while (room < wanted)
        room *= 2;
    return room;
}

int prcb_switches_open(struct prcb_sampler *s, size_t bytes, struct prcb_switches **ret,
                       struct prcb_error *err)
{
    size_t count = present_processors((uint32_t)s->cpus);
    struct prcb_switches *w;
    int result;

    if (bytes > ROOM_MOST)
        return prcb_fail(err, -ENOMEM, "a ring of %zu bytes: at most %u", bytes, ROOM_MOST);
    w = calloc(1, sizeof(*w));
    if (!w)
        return prcb_fail(err, -ENOMEM, "out of memory");
    w->sampler = s;
    w->count = count;
    w->readable = -1;
    pthread_mutex_lock(&s->lock);
    result = open_stream(w, room_each(bytes ? bytes : ROOM_DEFAULT, count), err);
    if (result)
        switches_close_locked(w);
    pthread_mutex_unlock(&s->lock);
    if (!result)
        *ret = w;
    return result;
}

void switches_close_locked(struct prcb_switches *w)
{
    struct prcb_sampler *s = w->sampler;

    /* The programs go first: none finds a ring that is being closed. */
    for (size_t i = LINKS; i-- > 0;)
        bpf_link__destroy(w->links[i]);
    if (s->switches == w) {
        for (__u32 cpu = 0; cpu < w->count; cpu++)
            bpf_map_delete_elem(bpf_map__fd(s->skeleton->maps.switch_rings), &cpu);
        s->switches = NULL;
    }
    for (size_t i = 0; w->rings && i < w->count; i++)
        ring_close(&w->rings[i]);
    if (w->readable >= 0)
        close(w->readable);
    free(w->rings);
    free(w);
}

void prcb_switches_close(struct prcb_switches *w)
{
    struct prcb_sampler *s;

    if (!w)
        return;
    s = w->sampler;
    pthread_mutex_lock(&s->lock);
    switches_close_locked(w);
    pthread_mutex_unlock(&s->lock);
}

int prcb_switches_fd(const struct prcb_switches *w)
{
    return w->readable;
}

struct reader {
    prcb_switch_fn fn;
    void *ctx;
};

static int hand_out(const void *data, size_t bytes, void *ctx)
{
    const struct reader *reader = ctx;
    const struct prcb_cause_info *info;
    struct prcb_switch record = {0};

    memcpy(&record, data, bytes < sizeof(record) ? bytes : sizeof(record));
    info = prcb_cause_info(record.cause);
    record.reason = info ? (uint8_t)info->reason : 0;
    return reader->fn(&record, reader->ctx);
}

int prcb_switches_read(struct prcb_switches *w, prcb_switch_fn fn, void *ctx, uint64_t *ret_lost)
{
    struct reader reader = {.fn = fn, .ctx = ctx};
    int result = 0;

    for (size_t i = 0; i < w->count && !result; i++)
        result = ring_read(&w->rings[i], hand_out, &reader);

    if (ret_lost)
        *ret_lost = lost_now(w->sampler) - w->lost_before;
    return result;
}
