/* SPDX-License-Identifier: BSD-2-Clause */
#include "blame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
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

/* ---- what an account was ready ---- */

int metrics_add_edge(struct metrics *m, uint64_t key, const struct prcb_edge *edge)
{
    struct blaming *b = &m->blaming;
    if (b->key != key)
        b->cell_count = 0;
    b->key = key;
    if (edge->kind != PRCB_EDGE_MEANWHILE)
        return 0;
    b->available = true;
    if (edge->by == PRCB_BY_REST || !edge->ns || b->cell_count >= CELLS)
        return 0;
    return array_add(b->cells, b->cell_count, b->cell_room,
                     (struct blame_cell){edge->cgroup, edge->by, edge->ns});
}

/* What a cell grew by. One that was given up meanwhile, and came about again, may have less than
 * before: then all it has is new. */
static uint64_t growth(const struct blamed *blamed, const struct blame_cell *cell)
{
    for (size_t i = 0; i < blamed->count; i++) {
        const struct blame_cell *before = &blamed->cells[i];

        if (before->cgroup == cell->cgroup && before->by == cell->by)
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
    share.cell.ns = ns < left ? ns : left;
    if (share.cell.ns)
        b->shares[b->share_count++] = share;
    return left - share.cell.ns;
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
        share.cell = b->cells[i];
        ready = give(b, share, growth(blamed, &b->cells[i]), ready);
    }
    share.cell = (struct blame_cell){.by = PRCB_BY_REST};
    give(b, share, ready, ready);
    if (until > blamed->given_ns)
        blamed->given_ns = until;
    return told ? keep_cells(b, blamed) : 0;
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

static uint64_t *ns_of(struct metrics *m, struct blame *blame, const struct blame_share *share)
{
    switch (share->cell.by) {
    case PRCB_BY_CGROUP:
        return share->cell.cgroup == share->cgroup ? &blame->word_ns[CULPRIT_SELF]
                                                   : named_ns(m, blame, share->cell.cgroup);
    case PRCB_BY_KERNEL:
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
            *ns_of(m, *victim, share) += share->cell.ns;
    }
    b->share_count = 0;
}

void blame_deinit(struct blaming *b)
{
    free(b->shares);
    free(b->cells);
}
