/* SPDX-License-Identifier: BSD-2-Clause */
#include "wakers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/edges.h>

#include "array.h"
#include "interrupt_name.h"
#include "table.h"

struct waker {
    int64_t thread;
    uint32_t by, vector, tid, pid;
};

struct wakers {
    struct writer *writer;
    struct waker *wakers; /* a row's id is its place from 1 */
    size_t count;
    struct table ids;
};

struct wakers *wakers_open(struct writer *writer)
{
    struct wakers *w = calloc(1, sizeof(*w));

    if (w)
        w->writer = writer;
    return w;
}

void wakers_close(struct wakers *w)
{
    if (!w)
        return;
    table_free(&w->ids);
    free(w->wakers);
    free(w);
}

static bool is_same(const struct waker *a, const struct waker *b)
{
    return a->thread == b->thread && a->by == b->by && a->vector == b->vector && a->tid == b->tid &&
           a->pid == b->pid;
}

static uint64_t key_of(const struct waker *waker)
{
    return table_mix(table_mix((uint64_t)waker->thread, (uint64_t)waker->vector << 32 | waker->tid),
                     waker->by);
}

static int write_row(struct wakers *w, const struct waker *waker, int64_t id, const char *comm)
{
    struct writer_waker row = {
        .id = id,
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
        .thread = thread,
        .by = record->waker_by,
        .vector = record->waker_vector,
        .tid = record->waker_tid,
        .pid = record->waker_pid,
    };
    const struct table_slot *slot = NULL;
    char comm[sizeof(record->waker_comm)];
    uint64_t key = key_of(&waker);
    int result;

    *ret = 0;
    if (!record->waker_by)
        return 0;
    while ((slot = table_next(&w->ids, key, slot))) {
        if (is_same(&w->wakers[slot->number - 1], &waker)) {
            *ret = (int64_t)slot->number;
            return 0;
        }
    }
    memcpy(comm, record->waker_comm, sizeof(comm));
    comm[sizeof(comm) - 1] = '\0';
    result = write_row(w, &waker, (int64_t)w->count + 1, comm);
    if (result)
        return result;
    if (array_append(w->wakers, w->count, waker) || table_put_number(&w->ids, key, w->count))
        return -ENOMEM;
    *ret = (int64_t)w->count;
    return 0;
}
