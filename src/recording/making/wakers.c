/* SPDX-License-Identifier: BSD-2-Clause */
#include "wakers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/edges.h>

#include "interrupt_name.h"

#define PLACES 1024 /* at first; a power of two */

struct waker {
    int64_t id; /* 0: a free place */
    int64_t thread;
    uint32_t by, vector, tid, pid;
};

struct wakers {
    struct writer *writer;
    struct waker *places;
    size_t count, room;
};

struct wakers *wakers_open(struct writer *writer)
{
    struct wakers *w = calloc(1, sizeof(*w));

    if (w)
        *w = (struct wakers){writer, calloc(PLACES, sizeof(*w->places)), 0, PLACES};
    if (w && !w->places) {
        free(w);
        return NULL;
    }
    return w;
}

void wakers_close(struct wakers *w)
{
    if (w)
        free(w->places);
    free(w);
}

static bool is_same(const struct waker *a, const struct waker *b)
{
    return a->thread == b->thread && a->by == b->by && a->vector == b->vector && a->tid == b->tid &&
           a->pid == b->pid;
}

/* Its place, or the free one that it would have. */
static struct waker *place_of(struct waker *places, size_t room, const struct waker *waker)
{
    uint64_t key = (uint64_t)waker->thread << 20 ^ (uint64_t)waker->by << 56 ^
                   (uint64_t)waker->vector << 24 ^ waker->tid;
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

    while (places[at].id && !is_same(&places[at], waker))
        at = (at + 1) & (room - 1);
    return &places[at];
}

static int grow(struct wakers *w)
{
    struct waker *grown = calloc(2 * w->room, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; i < w->room; i++) {
        if (w->places[i].id)
            *place_of(grown, 2 * w->room, &w->places[i]) = w->places[i];
    }
    free(w->places);
    w->places = grown;
    w->room *= 2;
    return 0;
}

static int write_row(struct wakers *w, const struct waker *waker, const char *comm)
{
    struct writer_waker row = {
        .id = waker->id,
        .by = prcb_edge_by_name(waker->by),
        .thread = waker->thread,
        .pid = waker->pid,
        .tid = waker->tid,
        .number = -1,
    };
    char name[64] = "";

    if (waker->by == PRCB_BY_THREAD)
        row.name = comm;
    else if (waker->by == PRCB_BY_SOFTIRQ)
        row.name = prcb_softirq_name(waker->vector);
    else if (waker->by == PRCB_BY_INTERRUPT && waker->vector != PRCB_INTERRUPT_UNKNOWN &&
             interrupt_name(INTERRUPTS, waker->vector, name, sizeof(name)))
        row.name = name;
    if (waker->by == PRCB_BY_SOFTIRQ ||
        (waker->by == PRCB_BY_INTERRUPT && waker->vector != PRCB_INTERRUPT_UNKNOWN))
        row.number = waker->vector;
    return writer_waker(w->writer, &row);
}

int wakers_row(struct wakers *w, const struct prcb_switch *record, int64_t thread, int64_t *ret)
{
    struct waker waker = {
        .id = 1,
        .thread = thread,
        .by = record->waker_by,
        .vector = record->waker_vector,
        .tid = record->waker_tid,
        .pid = record->waker_pid,
    };
    struct waker *place;
    char comm[sizeof(record->waker_comm)];
    int result;

    *ret = 0;
    if (!record->waker_by)
        return 0;
    if (2 * (w->count + 1) > w->room) {
        result = grow(w);
        if (result)
            return result;
    }
    place = place_of(w->places, w->room, &waker);
    if (!place->id) {
        waker.id = (int64_t)++w->count;
        memcpy(comm, record->waker_comm, sizeof(comm));
        comm[sizeof(comm) - 1] = '\0';
        result = write_row(w, &waker, comm);
        if (result)
            return result;
        *place = waker;
    }
    *ret = place->id;
    return 0;
}
