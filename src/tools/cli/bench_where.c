/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench_where.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "array.h"
#include "looks.h"
#include "now.h"
#include "place.h"
#include "why.h"

#define REPEATS     3      /* runs of each command */
#define BUDGET      25     /* percent of a processor */
#define MIN_WAIT_NS 200000 /* shorter waits are chosen at random */
#define LOOK_NS     1000000
#define PATIENCE_NS 5000000000u /* from SIGTERM to SIGKILL */
#define PLACES_MAX  4096
#define SHOWN       8
#define WORTH       0.05 /* of the difference of its cause: less is not worth a line */

struct places {
    struct bench_place *rows;
    size_t count;
    int side;
};

static int add(struct places *places, unsigned part, const char *function, double ns)
{
    struct bench_place row = {.part = part};

    for (size_t i = 0; i < places->count; i++) {
        if (places->rows[i].part == part && !strcmp(places->rows[i].function, function)) {
            places->rows[i].ns[places->side] += ns;
            return 0;
        }
    }
    if (places->count == PLACES_MAX)
        return 0;
    row.function = strdup(function);
    row.ns[places->side] = ns;
    if (!row.function || array_append(places->rows, places->count, row)) {
        free(row.function);
        return -ENOMEM;
    }
    return 0;
}

static void name_part(const struct why_part *part, char *ret, size_t size)
{
    place_text(part, ret, size);
    if (!*ret)
        snprintf(ret, size, "%s",
                 part->kind == WHY_STACK ? "[no names]" : why_part_name(part->kind));
}

static bool differs(const struct bench_comparison *comparison, unsigned part)
{
    const struct bench_row *row = bench_row_of(comparison, part);

    return row && row->verdict >= BENCH_MORE;
}

static int take_report(struct why *why, const struct bench_comparison *comparison,
                       struct places *places)
{
    struct why_report report;
    char name[256];
    int result = why_report_make(why, &report);

    if (result)
        return result;
    for (size_t i = 0; i < report.count; i++) {
        for (size_t k = 0; k < report.processes[i].cause_count; k++) {
            const struct why_cause *cause = &report.processes[i].causes[k];
            unsigned part = BENCH_FIXED + cause->cause;

            for (size_t p = 0; p < cause->part_count && differs(comparison, part) && !result; p++) {
                name_part(&cause->parts[p], name, sizeof(name));
                result = add(places, part, name, (double)cause->parts[p].ns / REPEATS);
            }
        }
    }
    why_report_deinit(&report);
    return result;
}

/* ---- looking -------------------------------------------------------------------- */

static int look_account(void *ctx, const struct prcb_account *a, uint64_t now)
{
    return why_account(ctx, a, now);
}

static int look_released(void *ctx, uint64_t key)
{
    return why_released(ctx, key);
}

static int look_chosen(void *ctx, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
                       int result, struct object_wait wait)
{
    return why_chosen(ctx, chosen, stack, result, wait);
}

/* ---- the command's last moment --------------------------------------------------- */

/* Nothing tells the functions of a process that has ended, and short ones end before anybody
 * looked. So the command is traced, and stops as it ends, with its memory still there. What it
 * starts is not. */
static int trace(pid_t child, void *ctx, struct prcb_error *err)
{
    if (ptrace(PTRACE_SEIZE, child, NULL, (long)PTRACE_O_TRACEEXIT)) {
        /* Somebody else traces it: without. */
    }
    return 0;
}

/* Whether the command has stopped for its tracer; *ret: what it is to go on with. */
static bool has_stopped(pid_t child, siginfo_t *ret)
{
    *ret = (siginfo_t){0};
    return !waitid(P_PID, (id_t)child, ret, WSTOPPED | WNOHANG) && ret->si_pid == child;
}

static void go_on(const siginfo_t *stop)
{
    int signal = stop->si_status & 0x7f, event = stop->si_status >> 8;
    bool stays = event == PTRACE_EVENT_STOP && signal != SIGTRAP;

    ptrace(stays ? PTRACE_LISTEN : PTRACE_CONT, stop->si_pid, NULL, (long)(event ? 0 : signal));
}

static void end_child(struct stat_wait *wait)
{
    uint64_t patience = now_ns() + PATIENCE_NS;
    siginfo_t stop;

    kill(wait->child, SIGTERM);
    while (!(stat_wait_until(wait, now_ns() + LOOK_NS) & STAT_WAIT_CHILD)) {
        if (now_ns() > patience)
            kill(wait->child, SIGKILL);
        if (has_stopped(wait->child, &stop))
            go_on(&stop);
    }
}

/* Runs a command to its end, looking. */
static int look_at(struct bench_runner *runner, char **argv, struct looks *looks, struct why *why,
                   struct prcb_error *err)
{
    const struct prcb_spawn_hook hook = {sizeof(hook), trace, NULL};
    struct looks_fns fns = {
        .account = look_account, .released = look_released, .chosen = look_chosen, .ctx = why};
    bool ended = false, child_ended = false;
    int status = bench_run_start(runner, argv, &hook, err), result = 0;
    siginfo_t stop;

    if (status != CLI_OK)
        return -EIO;
    while (!result && !child_ended) {
        bool stopped = has_stopped(runner->wait->child, &stop);

        result = looks_take(looks, &fns, &ended, err);
        if (stopped)
            go_on(&stop);
        child_ended = stat_wait_until(runner->wait, now_ns() + LOOK_NS) & STAT_WAIT_CHILD;
    }
    fns.last = true;
    if (!result)
        result = looks_take(looks, &fns, &ended, err);
    if (!child_ended)
        end_child(runner->wait);
    stat_wait_reap(runner->wait, NULL);
    return result;
}

static int look_once(const struct bench_runner *runner, char **argv,
                     const struct bench_comparison *comparison, struct places *places,
                     struct prcb_error *err)
{
    const struct prcb_options how = {.size = sizeof(how),
                                     .tier = prcb_session_tier(runner->session),
                                     .flags = PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN};
    struct why_source source = {.read = looks_read, .min_wait_ns = MIN_WAIT_NS};
    struct bench_runner other = *runner;
    struct looks *looks = NULL;
    struct why *why = NULL;
    int result = prcb_open(&how, &other.session, err);

    if (result)
        return result;
    result = looks_open(other.session, BUDGET, 0, &looks, err);
    source.ctx = looks;
    if (!result)
        result = why_open(&source, &why);
    if (!result)
        result = look_at(&other, argv, looks, why, err);
    if (!result)
        result = take_report(why, comparison, places);
    why_close(why);
    looks_close(looks);
    prcb_close(other.session);
    return result;
}

/* ---- places --------------------------------------------------------------------- */

static int by_difference(const void *left, const void *right)
{
    const struct bench_place *a = left, *b = right;
    double x = fabs(a->ns[1] - a->ns[0]), y = fabs(b->ns[1] - b->ns[0]);

    return x == y ? strcmp(a->function, b->function) : x > y ? -1 : 1;
}

/* Keeps those that explain their cause's difference. */
static void cut(const struct bench_comparison *comparison, struct places *places)
{
    size_t kept = 0;

    array_sort(places->rows, places->count, by_difference);
    for (size_t i = 0; i < places->count; i++) {
        const struct bench_place *place = &places->rows[i];
        double change = bench_row_of(comparison, place->part)->result.shift;
        double here = place->ns[1] - place->ns[0];

        if (kept < SHOWN && here * change > 0 && fabs(here) > WORTH * fabs(change))
            places->rows[kept++] = *place;
        else
            free(place->function);
    }
    places->count = kept;
}

int bench_where(const struct bench_runner *runner, char **const commands[2],
                const struct bench_comparison *comparison, struct bench_place **ret,
                size_t *ret_count, struct prcb_error *err)
{
    struct places places = {0};
    bool wanted = false;
    int result = 0;

    for (size_t i = 0; i < comparison->count; i++) {
        unsigned part = comparison->rows[i].part;

        wanted = wanted || (part >= BENCH_FIXED && !bench_part_counts(part) &&
                            comparison->rows[i].verdict >= BENCH_MORE);
    }
    for (int i = 0; i < 2 * REPEATS && wanted && !result; i++) {
        places.side = i & 1;
        result = look_once(runner, commands[i & 1], comparison, &places, err);
    }
    if (!result)
        cut(comparison, &places);
    *ret = places.rows;
    *ret_count = places.count;
    return result;
}
