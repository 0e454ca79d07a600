/* SPDX-License-Identifier: BSD-2-Clause */
#include "account_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"

/* ---- sums ------------------------------------------------------------- */

const struct wait_cell *account_sums_cell(const struct account_sums *sums, uint32_t cause)
{
    for (uint32_t i = 0; i < sums->cell_count; i++) {
        if (sums->cells[i].cause == cause)
            return &sums->cells[i];
    }
    return NULL;
}

void account_sums_deinit(struct account_sums *sums)
{
    free(sums->cells);
    free(sums->counts);
    memset(sums, 0, sizeof(*sums));
}

static bool holds(const struct wait_cell *cell)
{
    return cell->count || cell->ns || cell->open_ns || cell->spent_ns || cell->idle_ns;
}

/* Replaces the cells by those of a full table that hold something. */
static int pack(struct account_sums *sums, const struct wait_cell *full)
{
    struct wait_cell *cells = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++)
        count += holds(&full[i]);
    if (count) {
        cells = realloc(sums->cells, count * sizeof(*cells));
        if (!cells)
            return -ENOMEM;
        sums->cells = cells;
    }
    sums->cell_count = 0;
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        if (!holds(&full[i]))
            continue;
        cells[sums->cell_count] = full[i];
        cells[sums->cell_count++].cause = i;
    }
    return 0;
}

/* Adds the cells to a full table. */
static void unpack(const struct account_sums *sums, struct wait_cell *full)
{
    for (uint32_t i = 0; i < sums->cell_count; i++) {
        const struct wait_cell *cell = &sums->cells[i];

        full[cell->cause].count += cell->count;
        full[cell->cause].ns += cell->ns;
        full[cell->cause].open_ns += cell->open_ns;
        full[cell->cause].spent_ns += cell->spent_ns;
        full[cell->cause].idle_ns += cell->idle_ns;
    }
}

static bool is_ready_cause(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return info && info->kind == PRCB_KIND_READY;
}

/* An open stretch that is ready time for sure is counted as such, and not as a wait. */
static int set_sums(struct account_sums *sums, const struct prcb_account *account)
{
    struct wait_cell full[PRCB_CAUSE_MAX] = {0};
    uint32_t open = account->open.cause < PRCB_CAUSE_MAX ? account->open.cause : PRCB_CAUSE_NONE;
    bool ready = account->present & PRCB_HAS_READY && is_ready_cause(open);
    int result;

    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        full[i].count = account->waits[i].count;
        full[i].ns = full[i].spent_ns = account->waits[i].ns;
    }
    full[open].open_ns = ready ? 0 : account->open.ns;
    full[open].spent_ns += full[open].open_ns;
    result = pack(sums, full);
    if (result)
        return result;
    sums->present = account->present;
    for (const struct figure *row = account_figures; row->name; row++) {
        if (row->kind != FIGURE_LIST)
            sums->numbers[row->index] = figure_get(row, account);
    }
    if (ready) {
        sums->ready_ns += account->open.ns;
        sums->open_ns = 0;
    }
    return 0;
}

static int add_counts(struct account_sums *to, const struct account_sums *from)
{
    if (!from->counts)
        return 0;
    if (!to->counts) {
        to->counts = calloc(from->count_count, sizeof(*to->counts));
        if (!to->counts)
            return -ENOMEM;
        to->count_count = from->count_count;
    }
    for (uint32_t i = 0; i < to->count_count; i++) {
        to->counts[i].value += from->counts[i].value;
        to->counts[i].enabled_ns += from->counts[i].enabled_ns;
        to->counts[i].running_ns += from->counts[i].running_ns;
        to->counts[i].counted += from->counts[i].counted;
        to->counts[i].idle += from->counts[i].idle;
        to->counts[i].lacking += from->counts[i].lacking;
    }
    return 0;
}

int account_sums_add(struct account_sums *to, const struct account_sums *from)
{
    struct wait_cell full[PRCB_CAUSE_MAX] = {0};
    int result;

    unpack(to, full);
    unpack(from, full);
    result = pack(to, full);
    if (!result)
        result = add_counts(to, from);
    if (result)
        return result;
    to->present &= from->present;
    for (const struct figure *row = account_figures; row->name; row++) {
        if (row->kind != FIGURE_LIST && row->sum == FIGURE_ADDS)
            to->numbers[row->index] += from->numbers[row->index];
    }
    return 0;
}

/* Who has a value is as in the later one. */
static int sub_counts(const struct account_sums *later, const struct account_sums *earlier,
                      struct account_sums *ret)
{
    ret->counts = NULL;
    ret->count_count = 0;
    if (add_counts(ret, later))
        return -ENOMEM;
    for (uint32_t i = 0; earlier->counts && i < ret->count_count; i++) {
        struct event_count *count = &ret->counts[i];
        const struct event_count *old = &earlier->counts[i];

        count->value = figure_growth(count->value, old->value);
        count->enabled_ns = figure_growth(count->enabled_ns, old->enabled_ns);
        count->running_ns = figure_growth(count->running_ns, old->running_ns);
    }
    return 0;
}

int account_sums_sub(const struct account_sums *later, const struct account_sums *earlier,
                     struct account_sums *ret)
{
    struct wait_cell full[PRCB_CAUSE_MAX] = {0}, old[PRCB_CAUSE_MAX] = {0};
    struct account_sums sums = *later;
    int result;

    unpack(later, full);
    unpack(earlier, old);
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        full[i].count = figure_growth(full[i].count, old[i].count);
        full[i].ns = figure_growth(full[i].ns, old[i].ns);
        full[i].spent_ns = figure_growth(full[i].spent_ns, old[i].spent_ns);
    }
    sums.cells = NULL;
    result = sub_counts(later, earlier, &sums);
    if (!result)
        result = pack(&sums, full);
    if (result) {
        free(sums.counts);
        return result;
    }
    for (const struct figure *row = account_figures; row->name; row++) {
        if (row->kind == FIGURE_COUNTER || row->kind == FIGURE_PART)
            sums.numbers[row->index] =
                figure_growth(later->numbers[row->index], earlier->numbers[row->index]);
    }
    *ret = sums;
    return 0;
}

uint64_t account_sums_waited(const struct account_sums *sums)
{
    uint64_t sum = 0;

    if (!(sums->present & PRCB_HAS_WAITS))
        return sums->wait_ns;
    for (uint32_t i = 0; i < sums->cell_count; i++)
        sum += is_ready_cause(sums->cells[i].cause) ? 0 : sums->cells[i].spent_ns;
    return sum;
}

/* ---- the table of rows --------------------------------------------------- */

/* Rows are found by key; those with key 0 by name, and by cgroup where rows are of one each. */
static uint64_t place_of(const struct account_rows *rows, uint64_t key, const char *comm,
                         uint64_t cgroup)
{
    return key ? key : table_hash_text(comm) ^ (rows->by_cgroup ? cgroup : 0);
}

static struct account_row *find(const struct account_rows *rows, uint64_t key, const char *comm,
                                uint64_t cgroup)
{
    uint64_t place = place_of(rows, key, comm, cgroup);
    const struct table_slot *slot = NULL;

    while ((slot = table_next(&rows->places, place, slot))) {
        struct account_row *row = slot->item;

        if (row->key == key &&
            (key || (!strcmp(row->comm, comm) && (!rows->by_cgroup || row->cgroup == cgroup))))
            return row;
    }
    return NULL;
}

static int add(struct account_rows *rows, uint64_t key, const char *comm, uint64_t cgroup,
               struct account_row **ret)
{
    struct account_row *row = calloc(1, sizeof(*row));

    if (!row || array_reserve(rows->rows, rows->count, rows->room, 1) ||
        table_put(&rows->places, place_of(rows, key, comm, cgroup), row)) {
        free(row);
        return -ENOMEM;
    }
    row->key = key;
    row->cgroup = cgroup;
    memcpy(row->comm, comm, strnlen(comm, sizeof(row->comm) - 1));
    row->place = rows->count;
    rows->rows[rows->count++] = row;
    *ret = row;
    return 0;
}

static void deinit_row(struct account_row *row)
{
    account_sums_deinit(&row->now);
    account_sums_deinit(&row->before);
    account_sums_deinit(&row->base);
}

static void drop(struct account_rows *rows, struct account_row *row)
{
    table_remove(&rows->places, place_of(rows, row->key, row->comm, row->cgroup), row);
    rows->rows[row->place] = rows->rows[--rows->count];
    rows->rows[row->place]->place = row->place;
    deinit_row(row);
    free(row);
}

/* Adds one row's counts and sums to another's; what differs becomes 0. */
static int merge(struct account_row *to, const struct account_row *from)
{
    int result;

    if (!to->threads && !to->now.present) {
        to->now.present = ~0ull;
        to->before.present = ~0ull;
    }
    result = account_sums_add(&to->now, &from->now);
    if (!result && from->began)
        result = account_sums_add(&to->before, &from->before);
    if (result)
        return result;
    to->began |= from->began;
    to->threads += from->threads;
    to->running += from->running;
    to->exited += from->exited;
    to->kernel += from->kernel;
    return 0;
}

/* The row of ended threads of one name, made where there is none; of any name where there are too
 * many. *ret is counted among the released ones. */
static int find_sum(struct account_rows *rows, const char *comm, uint64_t cgroup,
                    struct account_row **ret)
{
    size_t keep = rows->keep_released ? rows->keep_released : ACCOUNT_KEEP_RELEASED;
    struct account_row *sum = find(rows, 0, comm, cgroup);
    int result = 0;

    if (!sum && rows->released >= keep + ACCOUNT_KEEP_NAMES) {
        sum = find(rows, 0, "", cgroup);
        if (!sum)
            result = add(rows, 0, "", cgroup, &sum);
    } else if (!sum) {
        result = add(rows, 0, comm, cgroup, &sum);
        rows->released += !result;
    }
    if (result)
        return result;
    sum->released = true;
    *ret = sum;
    return 0;
}

/* Takes the stretch that is open, which goes on elsewhere, out of sums. */
static void leave_open(struct account_sums *sums)
{
    sums->wall_ns -= sums->open_ns;
    sums->open_ns = 0;
    for (uint32_t i = 0; i < sums->cell_count; i++) {
        sums->cells[i].spent_ns -= sums->cells[i].open_ns;
        sums->cells[i].open_ns = 0;
    }
}

/* Its thread was moved: what the row has goes to the old cgroup, and the row starts again. */
static int leave_cgroup(struct account_rows *rows, struct account_row *row,
                        const struct prcb_account *account)
{
    struct account_row left = *row, *sum;
    struct account_sums base = {0};
    int result = set_sums(&base, account);

    left.threads = left.running = left.exited = left.kernel = 0;
    left.now.counts = left.before.counts = NULL; /* counters stay with the thread */
    leave_open(&left.now);
    leave_open(&base);
    if (!result)
        result = find_sum(rows, row->comm, row->cgroup, &sum);
    if (!result)
        result = merge(sum, &left);
    if (result) {
        account_sums_deinit(&base);
        return result;
    }
    deinit_row(row);
    row->base = base;
    row->began = false;
    return 0;
}

static int set_row_sums(struct account_row *row, const struct prcb_account *account)
{
    struct account_sums all = {0};
    int result;

    if (!row->base.present)
        return set_sums(&row->now, account);
    result = set_sums(&all, account);
    if (!result) {
        account_sums_deinit(&row->now);
        result = account_sums_sub(&all, &row->base, &row->now);
    }
    account_sums_deinit(&all);
    return result;
}

int account_rows_update(struct account_rows *rows, const struct prcb_account *account)
{
    struct account_row *row = find(rows, account->key, "", 0);
    int result = 0;

    if (!row)
        result = add(rows, account->key, "", account->cgroup, &row);
    if (!result)
        result = set_row_sums(row, account);
    if (!result && rows->by_cgroup && row->cgroup != account->cgroup) {
        result = leave_cgroup(rows, row, account);
        if (!result)
            result = set_row_sums(row, account);
    }
    if (result)
        return result;
    row->tid = account->tid;
    row->pid = account->pid;
    row->cgroup = account->cgroup;
    memcpy(row->comm, account->comm, sizeof(row->comm));
    row->threads = 1;
    row->running = account->flags & PRCB_ACCOUNT_RUNNING ? 1 : 0;
    row->exited = account->flags & PRCB_ACCOUNT_EXITED ? 1 : 0;
    row->kernel = account->flags & PRCB_ACCOUNT_KTHREAD ? 1 : 0;
    return 0;
}

int account_rows_released(struct account_rows *rows, struct account_row *row)
{
    size_t keep = rows->keep_released ? rows->keep_released : ACCOUNT_KEEP_RELEASED;
    struct account_row *sum;
    int result;

    row->released = true;
    if (rows->released < keep) {
        rows->released++;
        return 0;
    }
    result = find_sum(rows, row->comm, row->cgroup, &sum);
    if (!result)
        result = merge(sum, row);
    if (result)
        return result;
    drop(rows, row);
    return 0;
}

int account_rows_mark(struct account_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct account_row *row = rows->rows[i];
        struct account_sums copy = {.present = ~0ull};

        if (row->released && row->began && row->before.wall_ns == row->now.wall_ns)
            continue;
        if (account_sums_add(&copy, &row->now))
            return -ENOMEM;
        account_sums_deinit(&row->before);
        row->before = copy;
        row->began = true;
    }
    return 0;
}

bool account_rows_all_exited(const struct account_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i]->exited < rows->rows[i]->threads)
            return false;
    }
    return true;
}

void account_rows_deinit(struct account_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        deinit_row(rows->rows[i]);
        free(rows->rows[i]);
    }
    free(rows->rows);
    table_free(&rows->places);
    memset(rows, 0, sizeof(*rows));
}

/* ---- views --------------------------------------------------------------- */

static const struct {
    const char *name;
    enum account_key key;
} keys[] = {
    {"run", ACCOUNT_BY_RUN},   {"ready", ACCOUNT_BY_READY}, {"wait", ACCOUNT_BY_WAIT},
    {"wall", ACCOUNT_BY_WALL}, {"open", ACCOUNT_BY_OPEN},   {"switches", ACCOUNT_BY_SWITCHES},
    {"tid", ACCOUNT_BY_TID},   {"comm", ACCOUNT_BY_COMM},
};

int account_order_parse(const char *text, struct account_order *ret)
{
    uint32_t cause;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!strcmp(keys[i].name, text)) {
            ret->key = keys[i].key;
            return 0;
        }
    }
    cause = cause_by_name(text);
    if (cause == PRCB_CAUSE_NONE)
        return -EINVAL;
    ret->key = ACCOUNT_BY_CAUSE;
    ret->cause = cause;
    return 0;
}

/* Returns the time in a cause; of causes that carry no time, the count. */
static uint64_t cause_weight(const struct account_sums *sums, uint32_t cause)
{
    const struct wait_cell *cell = account_sums_cell(sums, cause);
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    if (!cell)
        return 0;
    return info && info->kind == PRCB_KIND_WAIT ? cell->spent_ns : cell->count;
}

static uint64_t weight(const struct account_row *row, const struct account_order *order)
{
    switch (order->key) {
    case ACCOUNT_BY_RUN:
        return row->now.run_ns;
    case ACCOUNT_BY_READY:
        return row->now.ready_ns;
    case ACCOUNT_BY_WAIT:
        return account_sums_waited(&row->now);
    case ACCOUNT_BY_WALL:
        return row->now.wall_ns;
    case ACCOUNT_BY_OPEN:
        return row->now.open_ns;
    case ACCOUNT_BY_SWITCHES:
        return row->now.switches;
    case ACCOUNT_BY_CAUSE:
        return cause_weight(&row->now, order->cause);
    case ACCOUNT_BY_TID:
    case ACCOUNT_BY_COMM:
        break;
    }
    return 0;
}

static int compare(const void *left, const void *right, void *ctx)
{
    const struct account_row *a = *(struct account_row *const *)left;
    const struct account_row *b = *(struct account_row *const *)right;
    const struct account_order *order = ctx;
    uint64_t weight_a = weight(a, order), weight_b = weight(b, order);

    if (weight_a != weight_b)
        return weight_a > weight_b ? -1 : 1;
    if (order->key == ACCOUNT_BY_COMM && strcmp(a->comm, b->comm))
        return strcmp(a->comm, b->comm);
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return strcmp(a->comm, b->comm);
}

static void deinit_sums(struct account_row *sums, size_t count)
{
    for (size_t i = 0; i < count; i++)
        deinit_row(&sums[i]);
    free(sums);
}

/* Makes rows of what changed since the mark, a new one for each that lived since then. */
static int make_changes(const struct account_rows *rows, struct account_row **ret,
                        size_t *ret_count)
{
    struct account_row *sums = calloc(rows->count + 1, sizeof(*sums));
    size_t count = 0;

    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; i < rows->count; i++) {
        const struct account_row *row = rows->rows[i];

        sums[count] = *row;
        memset(&sums[count].now, 0, sizeof(sums[count].now));
        memset(&sums[count].before, 0, sizeof(sums[count].before));
        memset(&sums[count].base, 0, sizeof(sums[count].base));
        if (account_sums_sub(&row->now, &row->before, &sums[count].now)) {
            deinit_sums(sums, count);
            return -ENOMEM;
        }
        if (sums[count].now.wall_ns || sums[count].now.switches || !row->began)
            count++;
        else
            account_sums_deinit(&sums[count].now);
    }
    *ret = sums;
    *ret_count = count;
    return 0;
}

/* How rows are put together: those that a comparison finds equal, which also brings the row that
 * lends the group its name to the front. */
struct grouping {
    unsigned kind; /* enum account_view_kind */
    int (*compare)(const void *left, const void *right);
    bool (*same)(const struct account_row *a, const struct account_row *b);
    void (*name)(const struct account_row *first, struct account_row *group);
};

static int by_process(const void *left, const void *right)
{
    const struct account_row *a = *(struct account_row *const *)left;
    const struct account_row *b = *(struct account_row *const *)right;

    /* Puts the first thread of a process in front: it lends the process its name. */
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (!a->pid && strcmp(a->comm, b->comm))
        return strcmp(a->comm, b->comm);
    if ((a->tid == a->pid) != (b->tid == b->pid))
        return a->tid == a->pid ? -1 : 1;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Threads whose process is not known stay together by name. */
static bool same_process(const struct account_row *a, const struct account_row *b)
{
    return a->pid == b->pid && (a->pid || !strcmp(a->comm, b->comm));
}

static void name_process(const struct account_row *first, struct account_row *group)
{
    group->pid = first->pid;
    group->key = (uint64_t)first->pid;
    memcpy(group->comm, first->comm, sizeof(group->comm));
}

static int by_cgroup(const void *left, const void *right)
{
    const struct account_row *a = *(struct account_row *const *)left;
    const struct account_row *b = *(struct account_row *const *)right;

    return a->cgroup < b->cgroup ? -1 : a->cgroup > b->cgroup;
}

static bool same_cgroup(const struct account_row *a, const struct account_row *b)
{
    return a->cgroup == b->cgroup;
}

static void name_cgroup(const struct account_row *first, struct account_row *group)
{
    group->key = group->cgroup = first->cgroup;
}

void account_family(const char *comm, bool kernel, char ret[ACCOUNT_NAME])
{
    size_t length = strnlen(comm, ACCOUNT_NAME - 1);

    for (size_t i = 1; kernel && i < length; i++) {
        size_t digit = i + 1 + (comm[i + 1] == 'u'); /* "kworker/u8:1": of no one processor */

        if (comm[i] == '/' && comm[digit] >= '0' && comm[digit] <= '9')
            length = i;
    }
    memset(ret, 0, ACCOUNT_NAME);
    memcpy(ret, comm, length);
}

static int compare_families(const struct account_row *a, const struct account_row *b)
{
    char left[ACCOUNT_NAME], right[ACCOUNT_NAME];

    account_family(a->comm, a->kernel, left);
    account_family(b->comm, b->kernel, right);
    return strcmp(left, right);
}

static int by_name(const void *left, const void *right)
{
    return compare_families(*(struct account_row *const *)left,
                            *(struct account_row *const *)right);
}

static bool same_name(const struct account_row *a, const struct account_row *b)
{
    return !compare_families(a, b);
}

static void name_name(const struct account_row *first, struct account_row *group)
{
    account_family(first->comm, first->kernel, group->comm);
}

static const struct grouping groupings[] = {
    {ACCOUNT_VIEW_PROCESSES, by_process, same_process, name_process},
    {ACCOUNT_VIEW_CGROUPS, by_cgroup, same_cgroup, name_cgroup},
    {ACCOUNT_VIEW_NAMES, by_name, same_name, name_name},
};

static int make_groups(const struct grouping *grouping, struct account_row **from,
                       size_t from_count, struct account_row **ret, size_t *ret_count)
{
    struct account_row *sums = calloc(from_count + 1, sizeof(*sums));
    size_t count = 0;

    if (!sums)
        return -ENOMEM;
    array_sort(from, from_count, grouping->compare);
    for (size_t i = 0; i < from_count; i++) {
        if (!i || !grouping->same(from[i - 1], from[i]))
            grouping->name(from[i], &sums[count++]);
        if (merge(&sums[count - 1], from[i])) {
            deinit_sums(sums, count);
            return -ENOMEM;
        }
    }
    *ret = sums;
    *ret_count = count;
    return 0;
}

/* There are no more sums than rows. */
static void point_at(struct account_row *sums, size_t count, struct account_view *view)
{
    deinit_sums(view->sums, view->sum_count);
    view->sums = sums;
    view->sum_count = count;
    view->count = count;
    for (size_t i = 0; i < count; i++)
        view->rows[i] = &sums[i];
}

static int by_ended(const void *left, const void *right)
{
    const struct account_row *a = *(struct account_row *const *)left;
    const struct account_row *b = *(struct account_row *const *)right;
    int order = (a->exited < a->threads) - (b->exited < b->threads);

    order = order ? order : memcmp(a->comm, b->comm, sizeof(a->comm));
    return order ? order : by_cgroup(left, right);
}

/* The ended ones come first; those of a name and cgroup stand side by side. */
static size_t same_ended(struct account_row *const *rows, size_t count)
{
    size_t same = 1;

    if (rows[0]->exited < rows[0]->threads || !rows[0]->threads)
        return 1;
    while (same < count && !by_ended(&rows[0], &rows[same]))
        same++;
    return same;
}

static int fold(struct account_row *const *rows, size_t count, struct account_row *ret)
{
    *ret = (struct account_row){.cgroup = rows[0]->cgroup, .released = true};
    memcpy(ret->comm, rows[0]->comm, sizeof(ret->comm));
    for (size_t i = 0; i < count; i++) {
        ret->ended += rows[i]->key ? 1 : rows[i]->threads;
        if (merge(ret, rows[i]))
            return -ENOMEM;
    }
    return 0;
}

static int fold_ended(struct account_view *view)
{
    size_t kept = 0, same;
    int result = 0;

    view->folds = calloc(view->count / ACCOUNT_FOLD_LEAST + 1, sizeof(*view->folds));
    if (!view->folds)
        return -ENOMEM;
    array_sort(view->rows, view->count, by_ended);
    for (size_t i = 0; i < view->count && !result; i += same) {
        same = same_ended(&view->rows[i], view->count - i);
        if (same < ACCOUNT_FOLD_LEAST) {
            memmove(&view->rows[kept], &view->rows[i], same * sizeof(struct account_row *));
            kept += same;
            continue;
        }
        result = fold(&view->rows[i], same, &view->folds[view->fold_count]);
        view->rows[kept++] = &view->folds[view->fold_count++];
    }
    view->count = kept;
    return result;
}

static int make_rows(const struct account_rows *rows, unsigned kind, struct account_view *view)
{
    struct account_row *sums;
    size_t count;
    int result;

    view->rows = calloc(rows->count + 1, sizeof(struct account_row *));
    if (!view->rows)
        return -ENOMEM;
    array_copy(view->rows, rows->rows, rows->count);
    view->count = rows->count;
    if (kind & ACCOUNT_VIEW_INTERVAL) {
        result = make_changes(rows, &sums, &count);
        if (result)
            return result;
        point_at(sums, count, view);
    }
    for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); i++) {
        if (!(kind & groupings[i].kind))
            continue;
        result = make_groups(&groupings[i], view->rows, view->count, &sums, &count);
        if (result)
            return result;
        point_at(sums, count, view);
    }
    return kind & ACCOUNT_VIEW_ENDED ? fold_ended(view) : 0;
}

static int sum_up(const struct account_order *order, struct account_view *view)
{
    size_t wanted = order->top && order->top < view->count ? (size_t)order->top : view->count;

    for (size_t i = 0; i < view->count; i++) {
        if (merge(&view->total, view->rows[i]) ||
            (i >= wanted && merge(&view->others, view->rows[i])))
            return -ENOMEM;
    }
    view->other_rows = view->count - wanted;
    view->count = wanted;
    return 0;
}

int account_view_make(const struct account_rows *rows, unsigned kind,
                      const struct account_order *order, struct account_view *ret)
{
    struct account_order copy = *order;
    struct account_view view = {0};
    int result = make_rows(rows, kind, &view);

    if (!result) {
        array_sort_r(view.rows, view.count, compare, &copy);
        result = sum_up(order, &view);
    }
    if (result) {
        account_view_deinit(&view);
        return result;
    }
    *ret = view;
    return 0;
}

void account_view_deinit(struct account_view *view)
{
    deinit_row(&view->others);
    deinit_row(&view->total);
    deinit_sums(view->sums, view->sum_count);
    deinit_sums(view->folds, view->fold_count);
    free(view->rows);
    memset(view, 0, sizeof(*view));
}
