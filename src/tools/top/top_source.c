/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_source.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cgroup_names.h"
#include "error.h"
#include "living.h"
#include "now.h"
#include "reach.h"

#define WALK_TRIES  50 /* 20 ms each: a writer without a processor */
#define YOUNG       2  /* looks at /proc after a process was first seen */
#define DETAIL_SIZE 4096
#define WHOLE_EACH  10 /* one take in this many also looks at sleeping threads, for their names */

/* What an account held at the last look: closed time by cause, and the open stretch apart. */
struct past {
    uint64_t key;     /* 0: the place is free, or another thread's */
    uint64_t born_ns; /* CLOCK_MONOTONIC when wall_ns was 0 */
    uint64_t wall_ns, run_ns, ready_ns, wait_ns, switches, open_ns;
    uint32_t open_cause, flags;
    uint32_t take; /* the last that saw it */
    uint16_t count, room;
    struct past_cell {
        uint64_t ns, count;
        uint32_t cause;
    } * cells; /* ascending by cause */
};

struct details { /* of a process, by the model's index */
    pid_t pid;
    uint32_t looks;  /* that are left */
    uint64_t cgroup; /* the process has this one's path; 0: as /proc has it */
    char comm[16];   /* its first thread's when it was read: another name means another program */
};

struct top_source {
    struct prcb *session;
    struct prcb_processors *view;
    struct top_model *model;
    struct past *past; /* by the model's index of threads */
    struct details *details;
    uint32_t past_room, details_room;
    struct prcb_processor *processors; /* as of the last take */
    uint32_t processor_count;
    uint64_t last_ns;
    bool begun;
    uint64_t now_ns;
    uint64_t present; /* of this take's accounts, or the last that had any */
    uint32_t take;
    bool whole;                 /* the next take walks all accounts */
    struct cgroup_names *names; /* NULL: accounts tell of no cgroup, or of version 1 */
    uint64_t *ended;            /* keys of accounts that go back */
    uint32_t ended_count, ended_room;
    char text[DETAIL_SIZE];
};

int top_source_open(struct prcb *session, struct prcb_processors *view, struct top_model *model,
                    struct top_source **ret, struct prcb_error *err)
{
    struct top_source *s = calloc(1, sizeof(*s));

    if (!s)
        return prcb_fail(err, -ENOMEM, "out of memory");
    s->session = session;
    s->view = view;
    s->model = model;
    s->whole = true;
    s->processor_count = view ? prcb_processors_count(view) : 0;
    s->processors = calloc(s->processor_count + 1, sizeof(*s->processors));
    if (!s->processors || cgroup_names_open(NULL, &s->names, err)) {
        top_source_close(s);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    /* Version 1 says more, and only /proc has it. */
    if (cgroup_names_setup(s->names) != CGROUP_V2) {
        cgroup_names_close(s->names);
        s->names = NULL;
    }
    *ret = s;
    return 0;
}

void top_source_close(struct top_source *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->past_room; i++)
        free(s->past[i].cells);
    free(s->past);
    free(s->details);
    free(s->processors);
    free(s->ended);
    cgroup_names_close(s->names);
    free(s);
}

/* ---- what /proc has of a process --------------------------------------------------------- */

/* Returns a file of /proc/PID as one line of text; NULL: it cannot be read, or is empty. */
static const char *read_line(struct top_source *s, pid_t pid, const char *name)
{
    char path[64];
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)living_thread(pid), name);
    got = reach_read(pid, path, s->text, sizeof(s->text) - 1);
    while (got > 0 && (!s->text[got - 1] || s->text[got - 1] == '\n' || s->text[got - 1] == ' '))
        got--;
    for (ssize_t i = 0; i < got; i++)
        s->text[i] = s->text[i] ? s->text[i] : ' ';
    if (got <= 0)
        return NULL;
    s->text[got] = '\0';
    return s->text;
}

/* Returns the path in the unified hierarchy, or in the first that has one. */
static const char *read_cgroup(struct top_source *s, pid_t pid)
{
    char *line = (char *)read_line(s, pid, "cgroup"), *best = NULL, *rest;

    for (line = line ? strtok_r(line, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *path = strchr(line, '/');

        if (path && (!best || (!strncmp(line, "0::", 3) && strcmp(path, "/"))))
            best = path;
    }
    return best;
}

/* A static program cannot open the plug-ins by which the C library finds users elsewhere, in a
 * directory of the network say: it knows those of /etc/passwd. */
static bool find_user(uid_t uid, struct passwd *entry, char *space, size_t size)
{
    struct passwd *found = NULL;
#ifdef PRCB_STATIC
    FILE *file = fopen("/etc/passwd", "re");

    while (file && !fgetpwent_r(file, entry, space, size, &found) && found->pw_uid != uid)
        found = NULL;
    if (file)
        fclose(file);
    return found;
#else
    return !getpwuid_r(uid, entry, space, size, &found) && found;
#endif
}

static const char *read_user(struct top_source *s, pid_t pid)
{
    struct passwd entry;
    char path[64], space[1024];
    struct stat about;

    snprintf(path, sizeof(path), "/proc/%d", (int)living_thread(pid));
    if (stat(path, &about))
        return NULL;
    if (find_user(about.st_uid, &entry, space, sizeof(space)))
        snprintf(s->text, sizeof(s->text), "%s", entry.pw_name);
    else
        snprintf(s->text, sizeof(s->text), "%u", about.st_uid);
    return s->text;
}

static int read_details(struct top_source *s, uint32_t index)
{
    struct top_process *process = &s->model->processes[index];
    const char *text = read_line(s, process->pid, "cmdline");

    /* A process that has ended keeps what was known. */
    if ((text || !process->command) && top_model_set_text(&process->command, text))
        return -ENOMEM;
    text = s->details[index].cgroup ? NULL : read_cgroup(s, process->pid);
    if (text && top_model_set_cgroup(process, text))
        return -ENOMEM;
    text = process->user ? NULL : read_user(s, process->pid);
    return text ? top_model_set_text(&process->user, text) : 0;
}

/* Notes the cgroup that the kernel has for the process's first thread, which moves with the
 * rest. */
static int see_cgroup(struct top_source *s, const struct prcb_account *a, uint32_t index)
{
    const char *path = s->names ? cgroup_names_find(s->names, a->cgroup) : NULL;

    if (!path)
        return 0;
    s->details[index].cgroup = a->cgroup;
    return top_model_set_cgroup(&s->model->processes[index], path);
}

static int see_process(struct top_source *s, const struct prcb_account *a, uint32_t index)
{
    struct details *d;

    if (array_cover(s->details, s->details_room, index))
        return -ENOMEM;
    d = &s->details[index];
    if (d->pid != a->pid)
        *d = (struct details){.pid = a->pid, .looks = YOUNG};
    if (a->tid == a->pid && memcmp(d->comm, a->comm, sizeof(d->comm))) {
        memcpy(d->comm, a->comm, sizeof(d->comm));
        d->looks = d->looks ? d->looks : 1;
    }
    return a->present & PRCB_HAS_CGROUP && a->tid == a->pid && a->cgroup != d->cgroup
               ? see_cgroup(s, a, index)
               : 0;
}

/* Looks at young processes once a take. */
static int look_at_processes(struct top_source *s)
{
    for (uint32_t i = 0; i < s->model->process_count && i < s->details_room; i++) {
        const struct top_process *process = &s->model->processes[i];

        if (!process->threads || !process->pid || process->pid != s->details[i].pid ||
            !s->details[i].looks)
            continue;
        s->details[i].looks--;
        if (read_details(s, i))
            return -ENOMEM;
    }
    return 0;
}

void top_source_read_again(struct top_source *s)
{
    for (uint32_t i = 0; i < s->details_room; i++)
        s->details[i].looks = s->details[i].looks ? s->details[i].looks : 1;
    s->whole = true;
}

/* ---- accounts ------------------------------------------------------------------------------ */

static struct past *past_of(struct top_source *s, uint32_t index, uint64_t key)
{
    if (array_cover(s->past, s->past_room, index))
        return NULL;
    if (s->past[index].key != key) {
        free(s->past[index].cells);
        s->past[index] = (struct past){.key = key};
    }
    return &s->past[index];
}

/* start_ns: the start of the thread. A wait began at an age of the thread that no look changes,
 * however long after the take's moment the walk came to it. */
static struct top_now now_of(const struct prcb_account *a, uint64_t start_ns)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);
    struct top_now now = {.state = TOP_UNKNOWN};

    if (a->flags & PRCB_ACCOUNT_EXITED) {
        now.state = TOP_ENDED;
    } else if (a->flags & PRCB_ACCOUNT_RUNNING) {
        now.state = TOP_RUN;
    } else if (a->present & PRCB_HAS_OPEN) {
        now.state = info && info->kind == PRCB_KIND_READY ? TOP_READY : TOP_WAIT;
        now.cause = (uint8_t)a->open.cause;
        now.since_ns = a->wall_ns > a->open.ns ? start_ns + a->wall_ns - a->open.ns : start_ns;
    } else {
        now.state = TOP_WAIT; /* the tier knows neither the cause nor since when */
    }
    return now;
}

/* The growth of a cause's time, closed and open, and its count. */
struct growth {
    int64_t ns[PRCB_CAUSE_MAX];
    uint32_t counts[PRCB_CAUSE_MAX];
};

static void find_growth(const struct past *past, const struct prcb_account *a, struct growth *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        ret->ns[i] = (int64_t)a->waits[i].ns;
        ret->counts[i] = (uint32_t)a->waits[i].count;
    }
    for (uint32_t i = 0; i < past->count; i++) {
        ret->ns[past->cells[i].cause] -= (int64_t)past->cells[i].ns;
        ret->counts[past->cells[i].cause] -= (uint32_t)past->cells[i].count;
    }
    if (a->open.cause < PRCB_CAUSE_MAX)
        ret->ns[a->open.cause] += (int64_t)a->open.ns;
    ret->ns[past->open_cause] -= (int64_t)past->open_ns;
}

static int keep_cells(struct past *past, const struct prcb_account *a)
{
    uint16_t count = 0;

    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++)
        count = (uint16_t)(count + (a->waits[i].ns || a->waits[i].count));
    if (count > past->room) {
        struct past_cell *grown = realloc(past->cells, count * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        past->cells = grown;
        past->room = count;
    }
    past->count = 0;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        if (a->waits[i].ns || a->waits[i].count)
            past->cells[past->count++] = (struct past_cell){a->waits[i].ns, a->waits[i].count, i};
    }
    return 0;
}

/* A thread that the walks left out went on waiting: as of the last take it had waited until
 * then. */
static void catch_up(struct past *past, const struct prcb_account *a, uint64_t last_ns)
{
    uint64_t wall = last_ns > past->born_ns ? last_ns - past->born_ns : 0;

    wall = wall < a->wall_ns ? wall : a->wall_ns;
    if (wall <= past->wall_ns || past->flags & PRCB_ACCOUNT_RUNNING)
        return;
    past->open_ns += wall - past->wall_ns;
    past->wall_ns = wall;
}

static int keep(struct past *past, const struct prcb_account *a)
{
    past->wall_ns = a->wall_ns;
    past->run_ns = a->run_ns;
    past->ready_ns = a->ready_ns;
    past->wait_ns = a->wait_ns;
    past->open_ns = a->open.ns;
    past->open_cause = a->open.cause < PRCB_CAUSE_MAX ? a->open.cause : 0;
    past->flags = a->flags;
    if (past->switches == a->switches && past->count)
        return 0;
    past->switches = a->switches;
    return keep_cells(past, a);
}

/* Makes the parts of an interval of one thread; they sum to its wall time. An open stretch
 * counts as its cause until it closes, when the end of it turns out to have been ready time;
 * such a cause would shrink: what it lacks was counted before, and ready has that much too much. */
static void add_up(const struct past *past, const struct prcb_account *a, struct top_delta *delta,
                   struct top_part *parts)
{
    int64_t ready = (int64_t)(a->ready_ns - past->ready_ns), wait = 0;
    struct growth growth;

    find_growth(past, a, &growth);
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (growth.ns[i] < 0 || (info && info->kind == PRCB_KIND_READY)) {
            ready += growth.ns[i];
            growth.ns[i] = 0;
        }
        wait += growth.ns[i];
        if (growth.ns[i] || growth.counts[i])
            parts[delta->part_count++] =
                (struct top_part){i, growth.counts[i], (uint64_t)growth.ns[i]};
    }
    if (!(a->present & PRCB_HAS_WAITS))
        wait = (int64_t)(a->wait_ns - past->wait_ns);
    delta->ready_ns = ready > 0 ? (uint64_t)ready : 0;
    delta->wait_ns = (uint64_t)wait;
}

/* Returns whether a thread did nothing but go on with its wait. */
static bool slept(const struct past *past, const struct prcb_account *a)
{
    return past->switches == a->switches && !((past->flags | a->flags) & PRCB_ACCOUNT_RUNNING) &&
           past->flags == a->flags && past->run_ns == a->run_ns &&
           past->open_cause == a->open.cause && past->ready_ns == a->ready_ns &&
           past->wait_ns == a->wait_ns;
}

static bool in_ready(const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    return info && info->kind == PRCB_KIND_READY;
}

static int take_account(const struct prcb_account *a, void *ctx)
{
    struct top_part parts[PRCB_CAUSE_MAX];
    struct top_source *s = ctx;
    struct top_delta delta = {0};
    bool known = top_model_find(s->model, a->key) != TOP_NONE;
    struct past *past;

    /* A thread that had ended before the first look has no place in any interval, nor has one
     * from outside of this pid namespace, which has no number. */
    if (!known && a->flags & PRCB_ACCOUNT_EXITED && (!s->begun || !a->tid))
        return array_add(s->ended, s->ended_count, s->ended_room, a->key);
    if (!known && !a->tid)
        return 0;
    if (top_model_thread(s->model, a->key, a->pid, a->tid, a->comm,
                         s->now_ns > a->wall_ns ? s->now_ns - a->wall_ns : 1, &delta.thread))
        return -ENOMEM;
    delta.now = now_of(a, s->model->threads[delta.thread].start_ns);
    past = past_of(s, delta.thread, a->key);
    if (!past || see_process(s, a, s->model->threads[delta.thread].process))
        return -ENOMEM;
    s->present &= a->present;
    if (past->take == s->take) /* this take's walk started again */
        return 0;
    if (known && past->take + 1 != s->take)
        catch_up(past, a, s->last_ns);
    past->take = s->take;
    past->born_ns = now_ns() - a->wall_ns;
    if (a->flags & PRCB_ACCOUNT_EXITED && !s->model->threads[delta.thread].end_ns) {
        s->model->threads[delta.thread].end_ns = s->now_ns;
    } else if (known && slept(past, a) && !in_ready(a)) {
        past->wall_ns = a->wall_ns;
        past->open_ns = a->open.ns;
        return a->flags & PRCB_ACCOUNT_EXITED
                   ? array_add(s->ended, s->ended_count, s->ended_room, a->key)
                   : 0;
    }
    s->model->threads[delta.thread].kernel = a->flags & PRCB_ACCOUNT_KTHREAD;
    if (!s->begun) /* what was before is no interval's */
        return keep(past, a) || top_model_add(s->model, &delta, parts) ? -ENOMEM : 0;
    delta.wall_ns = a->wall_ns - past->wall_ns;
    delta.run_ns = a->run_ns - past->run_ns;
    delta.switches = (uint32_t)(a->switches - past->switches);
    add_up(past, a, &delta, parts);
    if (keep(past, a) || top_model_add(s->model, &delta, parts))
        return -ENOMEM;
    return a->flags & PRCB_ACCOUNT_EXITED
               ? array_add(s->ended, s->ended_count, s->ended_room, a->key)
               : 0;
}

/* An ended thread was read to its end: its account goes back. */
static int give_back(struct top_source *s, struct prcb_error *err)
{
    for (uint32_t i = 0; i < s->ended_count; i++) {
        int result = prcb_release(s->session, s->ended[i], err);

        if (result && result != -ESTALE)
            return result;
    }
    s->ended_count = 0;
    return 0;
}

/* ---- processors ------------------------------------------------------------------------------ */

static void take_processors(struct top_source *s, struct top_processors *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (uint32_t i = 0; i < s->processor_count; i++) {
        struct prcb_processor now = {.size = sizeof(now)}, change = {.size = sizeof(change)};

        if (prcb_processor_read(s->view, i, &now))
            continue;
        prcb_processor_sub(&now, s->processors[i].size ? &s->processors[i] : NULL, &change);
        s->processors[i] = now;
        ret->known = true;
        ret->online += !!(now.flags & PRCB_CPU_ONLINE);
        ret->switches += change.switches;
        for (const struct figure *row = processor_figures; row->name; row++) {
            if (row->kind == FIGURE_PART)
                ret->parts[row->index] += figure_get(row, &change);
        }
    }
    ret->exact = s->view && prcb_processors_tier(s->view) != PRCB_TIER_PERF;
}

static uint64_t end_of(const struct top_model *m)
{
    return top_model_frame(m, m->frame_count - 1)->end_ns;
}

int top_source_take(struct top_source *s, bool *ret_added, struct prcb_error *err)
{
    struct top_frame frame = {.present = 0};
    struct prcb_error ignored;
    uint64_t before = s->present;
    int result = -EAGAIN;

    /* The refresh tells who is on line; it reads frequencies as well, which nobody shows. */
    if (s->view && (s->whole || prcb_processors_tier(s->view) == PRCB_TIER_PERF))
        prcb_processors_refresh(s->view, &ignored);
    prcb_fail(err, -ENOMEM, "out of memory");
    if (s->names)
        cgroup_names_refresh(s->names);
    top_model_begin(s->model);
    s->take++;
    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++) {
        s->present = ~0ull;
        s->now_ns = now_ns();
        result = prcb_walk_active(s->session, s->whole ? 0 : s->last_ns, take_account, s, err);
    }
    s->whole = result || s->take % WHOLE_EACH == 0;
    s->present = s->present == ~0ull ? before : s->present;
    if (!result)
        result = look_at_processes(s);
    if (!result)
        result = give_back(s, err);
    take_processors(s, &frame.processors);
    *ret_added = false;
    if (!result && (s->begun || s->model->frame_count)) {
        /* From earlier intervals to its own first look it knows nothing but what threads are in. */
        frame.end_ns = s->now_ns;
        frame.wall_ns = s->now_ns - (s->begun ? s->last_ns : end_of(s->model));
        frame.clock_ns = (int64_t)now_by(CLOCK_REALTIME);
        frame.present = s->begun ? s->present : 0;
        result = top_model_end(s->model, &frame);
        *ret_added = !result && s->begun;
    } else if (!result) {
        /* Time before the first interval counts for nobody, but the threads' present states
         * count. */
        top_model_set_base(s->model);
    }
    s->last_ns = s->now_ns;
    s->begun = s->begun || !result;
    return result;
}
