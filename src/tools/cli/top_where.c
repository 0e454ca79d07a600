/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_where.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "now.h"
#include "objects.h"
#include "stat_wait.h"
#include "why_report.h"

#define NS_PER_MS   1000000ll
#define LOOK_NS     (20 * NS_PER_MS)  /* how often the watched threads are looked at */
#define REPORT_NS   (250 * NS_PER_MS) /* how often the screen gets the results */
#define LEAST_NS    NS_PER_MS         /* shorter waits are not read */
#define BUDGET_NS   (500 * NS_PER_MS) /* of the unwinding child: at once, and then by share */
#define BUDGET_PART 20                /* one part in so many of a processor */
#define WAITS       1024              /* remembered, by key */
#define ASKED       128               /* not answered yet */
#define PIECES_MOST 8192              /* of threads' time, for paths */

struct answer {
    uint64_t key, age_ns;
    bool blocked; /* a word of the table says that it waits for a lock or the like */
    char text[160];
};

struct watched {
    uint64_t key;
    struct prcb_thread *thread;
    struct prcb_account base; /* when the watching began */
    bool aside;               /* for others' paths */
};

struct top_where {
    struct prcb *session;
    struct prcb_stacks *stacks;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted, over;
    /* Under the lock: */
    bool end, ended;
    uint64_t watch_keys[TOP_WHERE_MOST];
    uint32_t watch_count, watch_aside, watch_number; /* number: grows with each new set */
    struct answer waits[WAITS];
    struct {
        uint64_t key, age_ns;
    } asked[ASKED];
    uint32_t asked_count;
    bool news;                 /* an answer that no screen has shown */
    struct top_pieces *pieces; /* by cause, PRCB_CAUSE_MAX of them, and of the path */
    /* The thread's own: */
    struct why *why;
    struct watched watched[TOP_WHERE_MOST];
    uint32_t watched_count, watched_number;
    const struct watched *at;           /* that is being looked at, */
    const struct prcb_account *account; /* as it is, of the look that goes on */
    struct objects *objects;            /* what its waits are for; NULL: there is no memory */
    uint64_t start_ns, reported_ns, objects_ns;
    bool edges; /* the session keeps who ended waits */
};

/* ---- the reading thread ----------------------------------------------------------------- */

static bool has_budget(struct top_where *w)
{
    struct prcb_stacks_status status = {.size = sizeof(status)};

    return !prcb_stacks_status(w->stacks, &status) &&
           status.cpu_ns + w->objects_ns < BUDGET_NS + (now_ns() - w->start_ns) / BUDGET_PART;
}

/* why gets accounts less what they held at the beginning; a stack is read of the account as it
 * is: the one of this look, or, for a report, that of any of them, into the room given. NULL: it
 * is gone. */
static const struct prcb_account *as_it_is(const struct top_where *w, const struct prcb_account *a,
                                           struct prcb_account *room)
{
    if (w->account && w->account->key == a->key)
        return w->account;
    for (uint32_t i = 0; i < w->watched_count; i++) {
        if (w->watched[i].key == a->key)
            return prcb_thread_read(w->watched[i].thread, room) ? NULL : room;
    }
    return NULL;
}

static int read_stack(void *ctx, const struct prcb_account *a, struct prcb_stack *ret)
{
    struct top_where *w = ctx;
    struct prcb_account room = {.size = sizeof(room)};
    const struct prcb_account *now = has_budget(w) ? as_it_is(w, a, &room) : NULL;

    return now ? prcb_stacks_read(w->stacks, now, ret, NULL) : -EBUSY;
}

/* Who holds what is waited for is on the path. */
static struct object_wait read_object(void *ctx, const struct prcb_account *a,
                                      const struct prcb_stack *stack)
{
    struct object_wait ret = {.later = true};
    struct top_where *w = ctx;
    struct prcb_account room = {.size = sizeof(room)};
    const struct prcb_account *now = has_budget(w) ? as_it_is(w, a, &room) : NULL;
    uint64_t began;

    if (!now)
        return ret;
    began = now_by(CLOCK_THREAD_CPUTIME_ID);
    ret = objects_read(w->objects, now, stack);
    w->objects_ns += now_by(CLOCK_THREAD_CPUTIME_ID) - began;
    return ret;
}

static pid_t holder_of(void *ctx, uint32_t number)
{
    const struct top_where *w = ctx;

    return number ? objects_at(w->objects, number)->tid : 0;
}

static int edges_of(void *ctx, uint64_t key, struct prcb_account *account, prcb_edge_fn fn,
                    void *fn_ctx)
{
    const struct top_where *w = ctx;

    return prcb_edges_walk(w->session, key, account, fn, fn_ctx, NULL);
}

static bool is_aside(void *ctx, const struct prcb_account *a)
{
    (void)a;
    return ((const struct top_where *)ctx)->at->aside;
}

static void forget(struct top_where *w)
{
    for (uint32_t i = 0; i < w->watched_count; i++)
        prcb_thread_close(w->watched[i].thread);
    w->watched_count = 0;
    why_close(w->why);
    w->why = NULL;
    objects_close(w->objects);
    w->objects = NULL;
}

static void begin_watch(struct top_where *w, const uint64_t *keys, uint32_t count, uint32_t aside)
{
    struct why_source source = {.read = read_stack,
                                .ctx = w,
                                .min_wait_ns = LEAST_NS,
                                .aside = is_aside,
                                .edges = w->edges ? edges_of : NULL};

    forget(w);
    if (count && !objects_open(w->session, &w->objects)) {
        source.object = read_object;
        source.holder = holder_of;
    }
    if (!count || why_open(&source, &w->why))
        return;
    if (why_paths_open(w->why, PIECES_MOST, true)) {
        forget(w);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct watched *watched = &w->watched[w->watched_count];

        *watched = (struct watched){
            .key = keys[i], .base = {.size = sizeof(watched->base)}, .aside = i + aside >= count};
        if (prcb_thread_open_key(w->session, keys[i], &watched->thread, NULL))
            continue;
        if (prcb_thread_read(watched->thread, &watched->base))
            prcb_thread_close(watched->thread);
        else
            w->watched_count++;
    }
}

static void look(struct top_where *w)
{
    uint64_t now = now_ns();

    for (uint32_t i = 0; i < w->watched_count; i++) {
        struct prcb_account a = {.size = sizeof(a)}, since = {.size = sizeof(since)};

        if (prcb_thread_read(w->watched[i].thread, &a))
            continue;
        prcb_account_sub(&a, &w->watched[i].base, &since);
        w->account = &a;
        w->at = &w->watched[i];
        if (why_account(w->why, &since, now))
            break;
    }
    w->account = NULL; /* it was this look's */
}

static void add_piece(struct top_pieces *to, const struct why_part *part)
{
    struct top_piece piece = {.ns = part->ns, .count = part->count, .thread = TOP_NONE};
    char line[200];

    if (part->kind == WHY_STACK) {
        why_stack_line(&part->stack, line, sizeof(line));
        snprintf(piece.text, sizeof(piece.text), "%s%s%s", part->stack.word ? part->stack.word : "",
                 part->stack.word ? ": " : "", line);
    } else {
        snprintf(piece.text, sizeof(piece.text), "%s", why_part_name(part->kind));
    }
    top_pieces_add(to, &piece);
}

/* Adds what waits lead to, which is known where other threads are among it: known_ns is theirs. */
static void add_paths(struct top_pieces *to, const struct why_process *process)
{
    to->whole_ns += process->path_ns;
    for (size_t i = 0; i < process->path_count; i++) {
        const struct why_path *path = &process->paths[i];
        struct top_piece piece = {.ns = path->ns,
                                  .count = 1,
                                  .thread = TOP_NONE,
                                  .tid = path->threads == 1 ? path->tid : 0};
        size_t used;

        why_path_words(path, piece.text, sizeof(piece.text) / 2);
        used = strlen(piece.text);
        if (path->state == WHY_WAITS && path->part.kind == WHY_STACK) {
            snprintf(piece.text + used, sizeof(piece.text) - used, ": ");
            why_stack_line(&path->part.stack, piece.text + used + 2, sizeof(piece.text) - used - 2);
        }
        to->known_ns += path->others_ns;
        top_pieces_add(to, &piece);
    }
}

/* Reports on all processes of the watched threads. */
static void report(struct top_where *w)
{
    struct top_pieces *pieces;
    struct why_report report;

    if (!w->why || why_report_make(w->why, &report))
        return;
    pieces = calloc(PRCB_CAUSE_MAX + 1, sizeof(*pieces));
    for (size_t i = 0; pieces && i < report.count; i++) {
        const struct why_process *process = &report.processes[i];

        if (process->aside)
            continue;
        add_paths(&pieces[PRCB_CAUSE_MAX], process);
        for (size_t k = 0; k < process->cause_count; k++) {
            const struct why_cause *cause = &process->causes[k];
            struct top_pieces *to = &pieces[cause->cause < PRCB_CAUSE_MAX ? cause->cause : 0];

            to->whole_ns += cause->ns;
            to->known_ns += cause->known_ns;
            for (size_t n = 0; n < cause->part_count; n++)
                add_piece(to, &cause->parts[n]);
        }
        for (size_t k = 0; k < process->now_count && process->now[k].has_stack; k++) {
            struct top_pieces *to = &pieces[process->now[k].cause % PRCB_CAUSE_MAX];

            if (!*to->now)
                why_stack_line(&process->now[k].stack, to->now, sizeof(to->now));
        }
    }
    why_report_deinit(&report);
    if (!pieces)
        return;
    pthread_mutex_lock(&w->lock);
    free(w->pieces);
    w->pieces = pieces;
    pthread_mutex_unlock(&w->lock);
}

/* Writes "mutex < cache_get", or the innermost functions outside of the C library. */
static void wait_text(const struct prcb_stack *stack, char *ret, size_t size)
{
    char line[96];

    why_stack_line(stack, line, sizeof(line));
    snprintf(ret, size, "%s%s%s", stack->word ? stack->word : "", stack->word ? ": " : "", line);
}

/* Returns whether the wait that began at that age goes on. Ages of one moment may differ by what
 * was learned of the clock meanwhile. */
static bool same_wait(const struct prcb_account *a, uint64_t age_ns)
{
    int64_t apart = (int64_t)(a->wall_ns - a->open.ns - age_ns);

    return !(a->flags & PRCB_ACCOUNT_RUNNING) && apart < NS_PER_MS && apart > -NS_PER_MS;
}

/* Without a budget for the stack there is no answer: the next screen asks again. */
static void answer_one(struct top_where *w, uint64_t key, uint64_t age_ns)
{
    struct answer answer = {.key = key, .age_ns = age_ns};
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_thread *thread;
    bool waits;

    if (prcb_thread_open_key(w->session, key, &thread, NULL))
        return;
    waits = !prcb_thread_read(thread, &a) && same_wait(&a, age_ns);
    prcb_thread_close(thread);
    if (waits && !has_budget(w))
        return;
    if (waits && !prcb_stacks_read(w->stacks, &a, &stack, NULL)) {
        wait_text(&stack, answer.text, sizeof(answer.text));
        answer.blocked = stack.word && stack.kind == PRCB_STACK_BLOCKED;
    }
    pthread_mutex_lock(&w->lock);
    w->waits[key % WAITS] = answer;
    w->news = w->news || *answer.text;
    pthread_mutex_unlock(&w->lock);
}

static void wait_until(struct top_where *w, uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};

    pthread_cond_timedwait(&w->wanted, &w->lock, &until);
}

/* Called with the lock held: sleeps until there is something to do, and takes it out. */
static void *read_stacks(void *ctx)
{
    struct top_where *w = ctx;
    uint64_t next = 0;

    pthread_mutex_lock(&w->lock);
    while (!w->end) {
        if (w->watch_number != w->watched_number) {
            uint64_t keys[TOP_WHERE_MOST];
            uint32_t count = w->watch_count, aside = w->watch_aside;

            memcpy(keys, w->watch_keys, sizeof(keys));
            w->watched_number = w->watch_number;
            free(w->pieces);
            w->pieces = NULL;
            pthread_mutex_unlock(&w->lock);
            begin_watch(w, keys, count, aside);
            pthread_mutex_lock(&w->lock);
        } else if (w->watched_count && now_ns() >= next) {
            pthread_mutex_unlock(&w->lock);
            look(w);
            next = now_ns() + LOOK_NS;
            if (next - w->reported_ns >= REPORT_NS) {
                w->reported_ns = next;
                report(w);
            }
            pthread_mutex_lock(&w->lock);
        } else if (w->asked_count) {
            uint64_t key = w->asked[--w->asked_count].key, age = w->asked[w->asked_count].age_ns;

            pthread_mutex_unlock(&w->lock);
            answer_one(w, key, age);
            pthread_mutex_lock(&w->lock);
        } else if (w->watched_count) {
            wait_until(w, next);
        } else {
            pthread_cond_wait(&w->wanted, &w->lock);
        }
    }
    w->ended = true;
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the screen's side ------------------------------------------------------------------------
 */

int top_where_open(struct prcb *session, struct top_where **ret, struct prcb_error *err)
{
    struct top_where *w = calloc(1, sizeof(*w));
    pthread_condattr_t monotonic;
    int result = w ? prcb_stacks_open(session, NULL, &w->stacks, err) : -ENOMEM;

    if (result) {
        free(w);
        return result;
    }
    w->session = session;
    w->edges = prcb_edges_walk(session, 0, NULL, NULL, NULL, NULL) != -EOPNOTSUPP;
    w->start_ns = now_ns();
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wanted, &monotonic);
    pthread_cond_init(&w->over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    result = -pthread_create(&w->thread, NULL, read_stacks, w);
    if (result) {
        prcb_stacks_close(w->stacks);
        free(w);
        return result;
    }
    *ret = w;
    return 0;
}

bool top_where_close(struct top_where *w)
{
    uint64_t until = now_ns() + 200 * NS_PER_MS;
    struct timespec limit = {.tv_sec = (time_t)(until / 1000000000),
                             .tv_nsec = (long)(until % 1000000000)};
    bool ended;

    if (!w)
        return true;
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_cond_signal(&w->wanted);
    while (!w->ended && !pthread_cond_timedwait(&w->over, &w->lock, &limit))
        ;
    ended = w->ended;
    pthread_mutex_unlock(&w->lock);
    if (!ended) {
        pthread_detach(w->thread);
        return false;
    }
    pthread_join(w->thread, NULL);
    forget(w);
    prcb_stacks_close(w->stacks);
    free(w->pieces);
    free(w);
    return true;
}

void top_where_watch(struct top_where *w, const uint64_t *keys, uint32_t count, uint32_t aside)
{
    uint32_t most = count < TOP_WHERE_MOST ? count : TOP_WHERE_MOST, own;

    aside = aside > count - most ? aside - (count - most) : 0;
    own = most - aside;
    pthread_mutex_lock(&w->lock);
    if (w->watch_count - w->watch_aside != own ||
        memcmp(w->watch_keys, keys, own * sizeof(*keys))) {
        memcpy(w->watch_keys, keys, most * sizeof(*keys));
        w->watch_count = most;
        w->watch_aside = aside;
        w->watch_number++;
        pthread_cond_signal(&w->wanted);
    }
    pthread_mutex_unlock(&w->lock);
}

static void take_pieces(struct top_where *w, uint32_t number, struct top_pieces *ret)
{
    memset(ret, 0, sizeof(*ret));
    pthread_mutex_lock(&w->lock);
    if (w->pieces && number <= PRCB_CAUSE_MAX)
        *ret = w->pieces[number];
    pthread_mutex_unlock(&w->lock);
}

void top_where_pieces(struct top_where *w, uint32_t cause, struct top_pieces *ret)
{
    take_pieces(w, cause < PRCB_CAUSE_MAX ? cause : PRCB_CAUSE_MAX + 1, ret);
    if (!ret->count)
        snprintf(ret->reason, sizeof(ret->reason), "no such wait since this row was opened");
}

void top_where_path(struct top_where *w, struct top_pieces *ret)
{
    take_pieces(w, PRCB_CAUSE_MAX, ret);
    if (ret->known_ns >= ret->whole_ns / 20 && ret->known_ns)
        return;
    ret->count = 0;
    snprintf(ret->reason, sizeof(ret->reason),
             "no wait leads to another thread, as far as is known%s",
             w->edges ? "" : "; E records who ends waits, too");
}

bool top_where_news(struct top_where *w)
{
    bool news;

    pthread_mutex_lock(&w->lock);
    news = w->news;
    w->news = false;
    pthread_mutex_unlock(&w->lock);
    return news;
}

/* Called with the lock held. */
static const struct answer *find_answer(struct top_where *w, uint64_t key, uint64_t age_ns)
{
    const struct answer *answer = &w->waits[key % WAITS];
    bool asked = w->asked_count == ASKED;

    if (answer->key == key && answer->age_ns == age_ns)
        return answer;
    for (uint32_t i = 0; i < w->asked_count && !asked; i++)
        asked = w->asked[i].key == key;
    if (!asked) {
        w->asked[w->asked_count].key = key;
        w->asked[w->asked_count++].age_ns = age_ns;
        pthread_cond_signal(&w->wanted);
    }
    return NULL;
}

void top_where_wait(struct top_where *w, uint64_t key, uint64_t age_ns, char *ret, size_t size)
{
    const struct answer *answer;

    pthread_mutex_lock(&w->lock);
    answer = find_answer(w, key, age_ns);
    snprintf(ret, size, "%s", answer ? answer->text : "");
    pthread_mutex_unlock(&w->lock);
}

bool top_where_blocked(struct top_where *w, uint64_t key, uint64_t age_ns, bool *ret)
{
    const struct answer *answer;

    pthread_mutex_lock(&w->lock);
    answer = find_answer(w, key, age_ns);
    if (answer)
        *ret = answer->blocked;
    pthread_mutex_unlock(&w->lock);
    return answer;
}
