/* SPDX-License-Identifier: BSD-2-Clause */
#include "blame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "inside.h"

#define THREAD_NS  5000000000ull /* a thread that ended may be met in edges for so long */
#define MAKE_LOOKS 64            /* as often places are made: it may walk over the cgroups */
#define CELLS      64            /* of an account; a recording may say anything */

const char *const culprit_words[CULPRIT_WORDS] = {
    [CULPRIT_SELF] = "self",     [CULPRIT_KERNEL] = "(kernel)", [CULPRIT_IDLE] = "(idle)",
    [CULPRIT_OTHER] = "(other)", [CULPRIT_GONE] = "(gone)",
};

uint64_t blame_sum(const struct blame *blame)
{
    uint64_t sum = 0;

    for (size_t i = 0; blame && i < CULPRIT_WORDS; i++)
        sum += blame->word_ns[i];
    for (size_t i = 0; blame && i < blame->count; i++)
        sum += blame->named[i].ns;
    return sum;
}

void blame_free(struct blame *blame)
{
    for (size_t i = 0; blame && i < blame->count; i++)
        free(blame->named[i].path);
    free(blame);
}

/* ---- what an account was ready ---- */

int metrics_add_edge(struct metrics *m, uint64_t key, const struct prcb_edge *edge)
{
    struct blaming *b = &m->blaming;
    bool ready = edge->kind == PRCB_EDGE_PREEMPTED_BY || edge->kind == PRCB_EDGE_BEHIND;

    if (b->key != key)
        b->cell_count = 0;
    b->key = key;
    b->available = true;
    if (!ready || edge->by == PRCB_BY_REST || !edge->ns || b->cell_count >= CELLS)
        return 0;
    return array_add(b->cells, b->cell_count, b->cell_room,
                     (struct blame_cell){(uint32_t)edge->tid, (uint8_t)edge->kind,
                                         (uint8_t)edge->by, (uint16_t)edge->cause, edge->ns});
}

/* What a cell grew by. One that was given up meanwhile, and came about again, may have less than
 * before: then all it has is new. */
static uint64_t growth(const struct blamed *blamed, const struct blame_cell *cell)
{
    for (size_t i = 0; i < blamed->count; i++) {
        const struct blame_cell *before = &blamed->cells[i];

        if (before->tid == cell->tid && before->kind == cell->kind && before->by == cell->by &&
            before->cause == cell->cause)
            return cell->ns >= before->ns ? cell->ns - before->ns : cell->ns;
    }
    return cell->ns;
}

static int keep_cells(const struct blaming *b, struct blamed *blamed)
{
    if (array_reserve(blamed->cells, 0, blamed->room, b->cell_count))
        return -ENOMEM;
    array_copy(blamed->cells, b->cells, b->cell_count);
    blamed->count = b->cell_count;
    return 0;
}

/* Adds to the shares; there is room. */
static uint64_t give(struct blaming *b, struct blame_share share, uint64_t ns, uint64_t left)
{
    share.ns = ns < left ? ns : left;
    if (share.ns)
        b->shares[b->share_count++] = share;
    return left - share.ns;
}

int blame_account(struct metrics *m, struct blamed *blamed, struct blame **victim, bool left,
                  const struct prcb_account *account, uint64_t cgroup, uint64_t open_ns)
{
    struct blaming *b = &m->blaming;
    struct blame_share share = {.victim = victim, .cgroup = cgroup};
    uint64_t until = account->ready_ns + (left || m->baseline ? open_ns : 0), ready;
    bool told = b->key == account->key;

    b->key = 0;
    /* Without edges of this moment the time waits for those of the next look. */
    if (!told && !left && !(account->flags & PRCB_ACCOUNT_EXITED))
        return 0;
    ready = until > blamed->given_ns && !m->baseline ? until - blamed->given_ns : 0;
    if (array_reserve(b->shares, b->share_count, b->share_room, (told ? b->cell_count : 0) + 1))
        return -ENOMEM;
    for (size_t i = 0; told && ready && i < b->cell_count; i++) {
        share.tid = b->cells[i].tid;
        share.by = b->cells[i].by;
        ready = give(b, share, growth(blamed, &b->cells[i]), ready);
    }
    share.by = PRCB_BY_REST;
    give(b, share, ready, ready);
    if (until > blamed->given_ns)
        blamed->given_ns = until;
    return told ? keep_cells(b, blamed) : 0;
}

/* ---- whom threads stand for ---- */

int blame_note_thread(struct metrics *m, const struct prcb_account *account)
{
    uint64_t cgroup = account->present & PRCB_HAS_CGROUP ? account->cgroup : 0;
    struct blame_thread *thread;
    uint64_t tid = (uint32_t)account->tid;

    if (!tid)
        return 0;
    thread = table_find(&m->blaming.threads, tid);
    if (!thread) {
        thread = calloc(1, sizeof(*thread));
        if (!thread || table_put(&m->blaming.threads, tid, thread)) {
            free(thread);
            return -ENOMEM;
        }
        *thread = (struct blame_thread){.tid = tid, .cgroup = cgroup};
    } else if (account->flags & PRCB_ACCOUNT_EXITED && thread->seen_at == m->looked_at) {
        return 0; /* a living one has this number now */
    }
    if (thread->cgroup != cgroup) {
        thread->cgroup_before = thread->cgroup;
        thread->moved_at = m->looked_at;
    }
    thread->cgroup = cgroup;
    thread->kernel = (account->flags & PRCB_ACCOUNT_KTHREAD) != 0;
    thread->seen_at = m->looked_at;
    return 0;
}

/* Threads without accounts are forgotten. */
static void drop_threads(struct metrics *m)
{
    struct table *threads = &m->blaming.threads;

    for (size_t i = 0; i < threads->room;) {
        struct blame_thread *thread = threads->slots[i].item;

        if (thread && m->looked_at - thread->seen_at > THREAD_NS) {
            free(thread);
            table_remove_slot(threads, &threads->slots[i]);
        } else {
            i++;
        }
    }
}

/* ---- the shares ---- */

/* Finds a place that a removed cgroup leaves; what it had is "(gone)". NULL: there is none. */
static struct culprit *make_place(struct metrics *m, struct blame *blame)
{
    for (unsigned i = 0; i < blame->count && !(m->looks % MAKE_LOOKS); i++) {
        struct culprit *culprit = &blame->named[i];

        if (m->looked_at - culprit->grew_at <= m->keep_ns ||
            cgroup_names_alive(m->names, culprit->cgroup))
            continue;
        blame->word_ns[CULPRIT_GONE] += culprit->ns;
        free(culprit->path);
        *culprit = (struct culprit){0};
        return culprit;
    }
    return NULL;
}

/* A cgroup that was made again, as of a service that was restarted, goes on where it was. */
static struct culprit *find_culprit(struct blame *blame, uint64_t cgroup, const char *path)
{
    for (unsigned i = 0; i < blame->count; i++) {
        struct culprit *culprit = &blame->named[i];

        if (culprit->cgroup == cgroup || (path && !strcmp(culprit->path, path)))
            return culprit;
    }
    return NULL;
}

static uint64_t *named_ns(struct metrics *m, struct blame *blame, uint64_t cgroup)
{
    const char *path = cgroup_names_find(m->names, cgroup);
    struct culprit *culprit = find_culprit(blame, cgroup, path);
    char *copy;

    if (!culprit && path) {
        bool full = blame->count == CULPRITS;

        copy = strdup(path);
        culprit = full ? make_place(m, blame) : &blame->named[blame->count];
        if (copy && culprit) {
            culprit->path = copy;
            blame->count += !full;
        } else {
            free(copy);
            culprit = NULL;
        }
    }
    if (!culprit)
        return &blame->word_ns[CULPRIT_OTHER];
    culprit->cgroup = cgroup;
    culprit->grew_at = m->looked_at;
    return &culprit->ns;
}

/* What a thread did since the last look may have been in its old cgroup or the new one; as in all
 * sums it counts for the old one. */
static uint64_t *thread_ns(struct metrics *m, struct blame *blame, const struct blame_share *share)
{
    const struct blame_thread *thread = table_find(&m->blaming.threads, share->tid);
    uint64_t cgroup = 0;

    if (thread && thread->kernel)
        return &blame->word_ns[CULPRIT_KERNEL];
    if (thread)
        cgroup = thread->moved_at == m->looked_at ? thread->cgroup_before : thread->cgroup;
    if (!cgroup)
        return &blame->word_ns[CULPRIT_OTHER];
    return cgroup == share->cgroup ? &blame->word_ns[CULPRIT_SELF] : named_ns(m, blame, cgroup);
}

static uint64_t *ns_of(struct metrics *m, struct blame *blame, const struct blame_share *share)
{
    switch (share->by) {
    case PRCB_BY_THREAD:
        return thread_ns(m, blame, share);
    case PRCB_BY_TIMER:
    case PRCB_BY_INTERRUPT:
    case PRCB_BY_SOFTIRQ:
        return &blame->word_ns[CULPRIT_KERNEL];
    case PRCB_BY_IDLE:
        return &blame->word_ns[CULPRIT_IDLE];
    default:
        return &blame->word_ns[CULPRIT_OTHER];
    }
}

void blame_settle(struct metrics *m)
{
    struct blaming *b = &m->blaming;

    for (size_t i = 0; i < b->share_count; i++) {
        const struct blame_share *share = &b->shares[i];
        struct blame **victim = share->victim;

        if (!*victim)
            *victim = calloc(1, sizeof(**victim));
        if (*victim) /* else it stays time that nobody has been found for */
            *ns_of(m, *victim, share) += share->ns;
    }
    b->share_count = 0;
    drop_threads(m);
}

void blame_deinit(struct blaming *b)
{
    for (size_t i = 0; i < b->threads.room; i++)
        free(b->threads.slots[i].item);
    table_free(&b->threads);
    free(b->shares);
    free(b->cells);
}
