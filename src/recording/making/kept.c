/* SPDX-License-Identifier: BSD-2-Clause */
#include "kept.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "error.h"
#include "looks.h"
#include "now.h"
#include "table.h"
#include "text.h"
#include "waits.h"

#define ROOM        32768    /* waits */
#define PERCENT     5        /* of a processor */
#define WAIT_NS     10000000 /* shorter waits are not read: there is time for the long ones */
#define SETTLED_NS  500000000ull
#define STACKS_MOST 8000 /* different ones of a reader, which keeps all of them */

struct entry {
    uint64_t key, switches; /* the wait */
    pid_t tid;
    uint64_t time_ns;    /* a moment within it */
    uint32_t reader;     /* number of the reader that has the frames */
    const char *missing; /* why there is no stack; NULL: there is one */
    bool again;          /* ... for lack of time: it is tried again */
    struct prcb_stack stack;
};

struct kept {
    struct prcb *session;
    uint32_t flags;
    struct looks *looks[2]; /* now, and the one before, whose names entries still point to */
    uint32_t reader;        /* the number of looks[0] */
    struct entry *entries;  /* the wait number n is at n % ROOM */
    uint64_t count;         /* waits so far; the first is number 1 */
    struct table last;      /* number of an account's last, by its key */
    struct entry **order;   /* for a file: those that there are, by thread and time */
    size_t order_count;
};

/* ---- keeping ---- */

int kept_open(struct prcb *session, bool spans, struct kept **ret, struct prcb_error *err)
{
    struct kept *k = calloc(1, sizeof(*k));
    int result;

    if (k)
        k->entries = calloc(ROOM, sizeof(*k->entries));
    if (!k || !k->entries) {
        free(k);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    k->session = session;
    k->flags = spans ? PRCB_STACKS_SPANS : 0;
    k->reader = 1;
    result = looks_open(session, PERCENT, k->flags, &k->looks[0], err);
    if (result)
        kept_close(k);
    else
        *ret = k;
    return result;
}

void kept_close(struct kept *k)
{
    if (!k)
        return;
    looks_close(k->looks[0]);
    looks_close(k->looks[1]);
    table_free(&k->last);
    free(k->entries);
    free(k->order);
    free(k);
}

/* An account's last wait, if it is this one; NULL: it is not kept. */
static struct entry *find(const struct kept *k, uint64_t key, uint64_t switches)
{
    uint64_t number = table_find_number(&k->last, key);
    struct entry *e = number && number + ROOM > k->count ? &k->entries[number % ROOM] : NULL;

    return e && e->key == key && e->switches == switches && e->reader + 1 >= k->reader ? e : NULL;
}

/* What is overwritten is found by nobody any more. */
static int remember(struct kept *k, const struct entry *entry)
{
    struct entry *e = &k->entries[++k->count % ROOM];

    if (k->count > ROOM && table_find_number(&k->last, e->key) == k->count - ROOM)
        table_remove(&k->last, e->key, NULL);
    *e = *entry;
    table_remove(&k->last, e->key, NULL);
    return table_put_number(&k->last, e->key, (size_t)k->count);
}

static bool is_short(const struct prcb_account *a)
{
    return a->present & PRCB_HAS_OPEN && a->open.ns < WAIT_NS;
}

static int look_account(void *ctx, const struct prcb_account *a, uint64_t now)
{
    struct kept *k = ctx;
    struct entry *known = find(k, a->key, a->switches);
    struct entry entry = {.key = a->key,
                          .switches = a->switches,
                          .tid = a->tid,
                          .time_ns = now,
                          .reader = k->reader,
                          .stack = {.size = sizeof(entry.stack)}};
    int result;

    if (!a->tid || !waits_is_wait(a) || is_short(a) || (known && !known->again))
        return 0;
    result = looks_read(k->looks[0], a, &entry.stack);
    if (result == -ENOMEM)
        return result;
    if (result == -EAGAIN || result == -ESRCH || result == -ESTALE)
        return 0; /* it is over */
    entry.again = result == -EBUSY;
    entry.missing = result ? waits_missing(a, result) : NULL;
    if (!known)
        return remember(k, &entry);
    *known = entry;
    return 0;
}

/* A reader keeps what it has read: another one takes its place before that is too much, and what
 * only the one before that knew is forgotten. */
static void renew(struct kept *k)
{
    struct looks *looks;

    if (k->entries[k->count % ROOM].stack.id < STACKS_MOST ||
        looks_open(k->session, PERCENT, k->flags, &looks, NULL))
        return;
    looks_close(k->looks[1]);
    k->looks[1] = k->looks[0];
    k->looks[0] = looks;
    k->reader++;
}

int kept_look(struct kept *k, bool last, uint64_t *ret_ns, struct prcb_error *err)
{
    const struct looks_fns fns = {
        .account = look_account, .last = last, .settled_ns = last ? 0 : SETTLED_NS, .ctx = k};
    int result = 0;
    bool ended;

    if (last || now_ns() >= looks_next(k->looks[0])) {
        result = looks_take(k->looks[0], &fns, &ended, err);
        renew(k);
    }
    *ret_ns = looks_next(k->looks[0]);
    return result;
}

/* ---- into a file ---- */

static int by_thread(const void *left, const void *right)
{
    const struct entry *a = *(struct entry *const *)left, *b = *(struct entry *const *)right;

    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

int kept_begin(struct kept *k)
{
    uint64_t first = k->count > ROOM ? k->count - ROOM + 1 : 1;

    if (!k->order)
        k->order = calloc(ROOM, sizeof(*k->order));
    if (!k->order)
        return -ENOMEM;
    k->order_count = 0;
    for (uint64_t i = first; i <= k->count; i++) {
        if (k->entries[i % ROOM].reader + 1 >= k->reader)
            k->order[k->order_count++] = &k->entries[i % ROOM];
    }
    array_sort(k->order, k->order_count, by_thread);
    return 0;
}

/* A file has names instead of addresses: it has no mappings. The kernel's frames have a name alone.
 */
static int64_t write_frame(struct world *world, int64_t caller, const struct prcb_frame *frame)
{
    struct prcb_frame named = *frame;

    if (!frame->address && !frame->place)
        return frame->function ? world_kernel_frame(world, caller, frame->function) : caller;
    named.place = frame->address ? 0 : frame->place;
    named.function = frame->function ? frame->function : "[unknown]";
    return world_source_frame(world, caller, &named);
}

static int write_entry(const struct entry *e, struct world *world, struct writer *writer,
                       int64_t thread, uint64_t from_ns)
{
    struct writer_wait row = {
        .time_ns = e->time_ns > from_ns ? e->time_ns : from_ns,
        .thread = thread,
        .missing = e->missing,
        .one_in = 1,
    };
    char trace[33], span[17];

    if (!e->missing) {
        row.kind = waits_kind(&e->stack);
        row.word = e->stack.word;
    }
    if (!e->missing && e->stack.span_state == PRCB_SPAN_THERE) {
        row.trace_id = text_hex(e->stack.span.trace_id, sizeof(e->stack.span.trace_id), trace);
        row.span_id = text_hex(e->stack.span.span_id, sizeof(e->stack.span.span_id), span);
    }
    for (size_t i = e->missing ? 0 : e->stack.frame_count; i-- > 0;) {
        row.stack = write_frame(world, row.stack, &e->stack.frames[i]);
        if (!row.stack)
            return -ENOMEM;
    }
    if (!row.stack && !row.missing)
        row.missing = "kernel";
    return writer_wait(writer, &row);
}

int kept_write(const struct kept *k, struct world *world, struct writer *writer, int64_t thread,
               pid_t tid, uint64_t began_ns, uint64_t ended_ns, uint64_t from_ns)
{
    size_t at = array_front(i, k->order_count,
                            k->order[i]->tid < tid ||
                                (k->order[i]->tid == tid && k->order[i]->time_ns < began_ns));
    const struct entry *e = at < k->order_count ? k->order[at] : NULL;

    if (!e || e->tid != tid || e->time_ns > ended_ns)
        return 0;
    return write_entry(e, world, writer, thread, from_ns);
}

int kept_write_open(const struct kept *k, struct world *world, struct writer *writer,
                    int64_t thread, uint64_t key, uint64_t switches, uint64_t from_ns)
{
    const struct entry *e = find(k, key, switches);

    return e ? write_entry(e, world, writer, thread, from_ns) : 0;
}
