/* SPDX-License-Identifier: BSD-2-Clause */
#include "blame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "inside.h"

#define MAKE_LOOKS 64 /* as often places are made: it may walk over the cgroups */
#define CELLS      64 /* of an account; a recording may say anything */

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

/* ---- what an account has more ---- */

int metrics_add_edge(struct metrics *m, uint64_t key, const struct prcb_edge *edge)
{
    struct blaming *b = &m->blaming;
    bool holds = edge->kind == PRCB_EDGE_HELD_BY;
    struct blame_cells *of = &b->of[holds ? BLAME_LOCKS : BLAME_READY];
    struct blame_cell cell = {holds ? (uint64_t)edge->tid : edge->cgroup, edge->by, edge->ns};

    for (size_t i = 0; b->key != key && i < BLAMES; i++)
        b->of[i].count = 0;
    b->key = key;
    if (!holds && edge->kind != PRCB_EDGE_MEANWHILE)
        return 0;
    b->available |= !holds;
    if (edge->by == PRCB_BY_REST || !edge->ns || of->count >= CELLS)
        return 0;
    for (size_t i = 0; i < of->count; i++) {
        if (of->cells[i].who == cell.who && of->cells[i].by == cell.by) {
            of->cells[i].ns += cell.ns; /* of another cause */
            return 0;
        }
    }
    return array_add(of->cells, of->count, of->room, cell);
}

/* What a cell grew by. One that was given up meanwhile, and came about again, may have less than
 * before: then all it has is new. */
static uint64_t growth(const struct blamed *blamed, const struct blame_cell *cell)
{
    for (size_t i = 0; i < blamed->count; i++) {
        const struct blame_cell *before = &blamed->cells[i];

        if (before->who == cell->who && before->by == cell->by)
            return cell->ns >= before->ns ? cell->ns - before->ns : cell->ns;
    }
    return cell->ns;
}

static int keep_cells(const struct blame_cells *of, struct blamed *blamed)
{
    if (array_reserve(blamed->cells, 0, blamed->room, of->count))
        return -ENOMEM;
    array_copy(blamed->cells, of->cells, of->count);
    blamed->count = of->count;
    return 0;
}

/* Adds to the shares; there is room. */
static uint64_t give(struct blaming *b, struct blame_share share, uint64_t ns, uint64_t left)
{
    share.cell.ns = ns < left ? ns : left;
    if (share.cell.ns)
        b->shares[b->share_count++] = share;
    return left - share.cell.ns;
}

/* of: the account's edges; NULL: none of this moment are known, so that nobody can be named for
 * what they grow by until the next look. */
static int divide(struct metrics *m, struct blamed *blamed, struct blame_share share,
                  const struct blame_cells *of, const struct blame_time *time, bool left)
{
    struct blaming *b = &m->blaming;
    uint64_t until = time->closed_ns + (left || m->baseline ? time->open_ns : 0);
    uint64_t more = until > blamed->given_ns && !m->baseline ? until - blamed->given_ns : 0;

    if (array_reserve(b->shares, b->share_count, b->share_room, (of ? of->count : 0) + 1))
        return -ENOMEM;
    for (size_t i = 0; of && !blamed->unknown && more && i < of->count; i++) {
        share.cell = of->cells[i];
        more = give(b, share, growth(blamed, &of->cells[i]), more);
    }
    share.cell = (struct blame_cell){.by = PRCB_BY_REST};
    give(b, share, more, more);
    if (until > blamed->given_ns)
        blamed->given_ns = until;
    blamed->unknown = !of;
    return of ? keep_cells(of, blamed) : 0;
}

static void times_of(const struct prcb_account *a, struct blame_time ret[BLAMES])
{
    const struct prcb_cause_info *open = prcb_cause_info(a->open.cause);
    bool is_open = open && !(a->flags & PRCB_ACCOUNT_EXITED);

    ret[BLAME_READY].closed_ns = a->ready_ns;
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++)
        ret[BLAME_LOCKS].closed_ns +=
            cause_has(cause, CAUSE_IS_KERNEL_LOCK) ? a->waits[cause].ns : 0;
    if (is_open && open->kind == PRCB_KIND_READY)
        ret[BLAME_READY].open_ns = a->open.ns;
    if (is_open && cause_has(a->open.cause, CAUSE_IS_KERNEL_LOCK))
        ret[BLAME_LOCKS].open_ns = a->open.ns;
}

int blame_account(struct metrics *m, struct blamed *blamed, struct group *victim, bool left,
                  const struct prcb_account *account, uint64_t cgroup)
{
    struct blaming *b = &m->blaming;
    struct blame_time times[BLAMES] = {0};
    bool told = b->key == account->key;
    int result = 0;

    b->key = 0;
    /* Without edges of this moment the time waits for those of the next look. What there was
     * before the first look is nobody's. */
    if (!told && !left && !m->baseline && !(account->flags & PRCB_ACCOUNT_EXITED))
        return 0;
    times_of(account, times);
    for (size_t i = 0; i < BLAMES && !result; i++)
        result =
            divide(m, &blamed[i],
                   (struct blame_share){.victim = victim, .of = (enum blame_of)i, .cgroup = cgroup},
                   told ? &b->of[i] : NULL, &times[i], left);
    return result;
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

/* What a thread was in, by the accounts of this look. Of two that had the number one after the
 * other nobody is named, but where both are in one cgroup. */
static struct blame_cell cell_of_thread(const struct metrics *m, struct blame_cell cell)
{
    const struct table_slot *slot = table_next(&m->blaming.threads, cell.who, NULL);
    const struct seen *seen = slot ? slot->item : NULL;

    cell.by = !seen ? PRCB_BY_REST : seen->kernel ? PRCB_BY_KERNEL : PRCB_BY_CGROUP;
    while (slot && (slot = table_next(&m->blaming.threads, cell.who, slot))) {
        const struct seen *other = slot->item;

        if (other->cgroup != seen->cgroup || other->kernel != seen->kernel)
            cell.by = PRCB_BY_REST;
    }
    cell.who = seen ? seen->cgroup : 0;
    return cell;
}

static uint64_t *ns_of(struct metrics *m, struct blame *blame, const struct blame_share *share)
{
    struct blame_cell cell = share->cell;

    if (cell.by == PRCB_BY_THREAD)
        cell = cell_of_thread(m, cell);
    switch (cell.by) {
    case PRCB_BY_CGROUP:
        return cell.who == share->cgroup ? &blame->word_ns[CULPRIT_SELF]
                                         : named_ns(m, blame, cell.who);
    case PRCB_BY_KERNEL:
        return &blame->word_ns[CULPRIT_KERNEL];
    case PRCB_BY_IDLE:
        return &blame->word_ns[CULPRIT_IDLE];
    default:
        return &blame->word_ns[CULPRIT_OTHER];
    }
}

uint64_t blame_left(const struct group *victim, enum blame_of of)
{
    uint64_t ns = of == BLAME_READY ? victim->shown.v[ACCOUNT_ready_ns] : 0;

    for (uint32_t cause = 1; of == BLAME_LOCKS && cause < PRCB_CAUSE_MAX; cause++)
        ns += cause_has(cause, CAUSE_IS_KERNEL_LOCK) ? victim->shown.v[VALUE_CAUSE_NS + cause] : 0;
    return ns - blame_sum(victim->blame[of]);
}

/* A wait of which a part turns out to have been before the first look takes that from the time of
 * the group's others, which then is nobody's. */
void blame_settle(struct metrics *m)
{
    struct blaming *b = &m->blaming;

    for (size_t i = 0; i < b->share_count; i++) {
        const struct blame_share *share = &b->shares[i];
        struct blame **blame = &share->victim->blame[share->of];
        uint64_t left = blame_left(share->victim, share->of);

        if (!*blame)
            *blame = calloc(1, sizeof(**blame));
        if (*blame) /* else it stays time that nobody has been found for */
            *ns_of(m, *blame, share) += share->cell.ns < left ? share->cell.ns : left;
    }
    b->share_count = 0;
}

void blame_deinit(struct blaming *b)
{
    free(b->shares);
    for (size_t i = 0; i < BLAMES; i++)
        free(b->of[i].cells);
    table_free(&b->threads);
}
