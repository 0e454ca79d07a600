/* SPDX-License-Identifier: BSD-2-Clause */
#include "push_measure.h"

#include <errno.h>
#include <stdlib.h>

#include "error.h"
#include "looks.h"
#include "now.h"

#define SETTLED_NS 1000000000u /* plus twice the shortest wait: looks.h */
#define FREE_NS    500000000u

struct measuring {
    const struct push_measure *how;
    struct prcb *session;
    struct looks *looks;
    struct why *why;
};

static int on_account(void *ctx, const struct prcb_account *a, uint64_t now)
{
    return why_account(((struct measuring *)ctx)->why, a, now);
}

static int on_released(void *ctx, uint64_t key)
{
    return why_released(((struct measuring *)ctx)->why, key);
}

static int on_chosen(void *ctx, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
                     int result, struct object_wait wait)
{
    return why_chosen(((struct measuring *)ctx)->why, chosen, stack, result, wait);
}

static int look(struct measuring *m, bool last, bool *ret_ended, struct prcb_error *err)
{
    const struct looks_fns fns = {
        .account = on_account,
        .released = on_released,
        .chosen = on_chosen,
        .estimates = true,
        .settled_ns = last ? 0 : SETTLED_NS + 2 * m->how->min_us * 1000,
        .last = last,
        .ctx = m,
    };
    int result = looks_take(m->looks, &fns, ret_ended, err);

    return !result && why_looked(m->why) ? prcb_fail(err, -ENOMEM, "out of memory") : result;
}

/* Each session reads stacks for half a second before its share counts (looks.h): what that is of
 * the time is no part of the share any more. */
static uint64_t share(const struct push_measure *how)
{
    uint64_t free_percent = FREE_NS * 100 / (how->for_ns ? how->for_ns : 1);

    return how->budget > free_percent ? how->budget - free_percent : 0;
}

static int open_all(struct measuring *m, struct prcb_error *err)
{
    const struct stat_options *targets = m->how->targets;
    const struct prcb_options how = {
        .size = sizeof(how),
        .tier = targets->tier,
        .max_threads = (uint32_t)targets->max_threads,
        .flags = PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN,
    };
    struct why_source source = {
        .read = looks_read,
        .min_wait_ns = m->how->min_us * 1000,
        .by_name = true,
        .by_span = m->how->spans,
    };
    int result = stat_targets_open(&how, targets, &m->session, err);

    if (!result)
        result = looks_open(m->session, share(m->how), m->how->spans ? PRCB_STACKS_SPANS : 0,
                            &m->looks, err);
    source.ctx = m->looks;
    if (!result && why_open(&source, &m->why))
        result = prcb_fail(err, -ENOMEM, "out of memory");
    return result;
}

static int write_one(const struct why_pprof *profile, struct push_profile *ret)
{
    FILE *out = open_memstream(&ret->bytes, &ret->size);
    int result = out ? why_write_pprof(out, profile) : -ENOMEM;

    if (out && fclose(out) && !result)
        result = -ENOMEM;
    if (result) {
        free(ret->bytes);
        *ret = (struct push_profile){NULL, 0};
    }
    return result;
}

/* Finds the lines of source of all stacks. */
static void find_lines(const struct measuring *m, const struct why_process *process)
{
    for (size_t i = 0; i < process->cause_count; i++) {
        for (size_t k = 0; k < process->causes[i].part_count; k++) {
            const struct why_part *part = &process->causes[i].parts[k];

            if (part->kind == WHY_STACK)
                prcb_stacks_lines(looks_stacks(m->looks), &part->stack);
        }
    }
}

static int write_both(struct measuring *m, uint64_t wall_ns, struct push_measured *ret)
{
    struct why_report report;
    struct why_pprof profile = {.report = &report,
                                .profile = WHY_PROFILE_WAIT,
                                .wall_ns = wall_ns,
                                .note = m->how->note,
                                .plain = m->how->plain,
                                .spans = m->how->spans};
    bool waits = false, runs = false; /* receivers refuse profiles without a sample */
    int result = why_report_make(m->why, &report);

    if (result)
        return result;
    for (size_t i = 0; i < report.count; i++) {
        waits |= report.processes[i].ready_ns || report.processes[i].wait_ns;
        runs |= report.processes[i].run_ns != 0;
        if (m->how->lines)
            find_lines(m, &report.processes[i]);
    }
    if (waits)
        result = write_one(&profile, &ret->wait);
    profile.profile = WHY_PROFILE_RUN;
    if (!result && runs)
        result = write_one(&profile, &ret->run);
    why_report_deinit(&report);
    return result;
}

static int measure(struct measuring *m, struct push_measured *ret, struct prcb_error *err)
{
    uint64_t start = now_ns(), end = start + m->how->for_ns, next;
    bool ended = false;
    int result = stat_targets_profile(m->session, m->how->targets, m->how->wait, err);

    ret->from_ns = now_by(CLOCK_REALTIME);
    ret->tier = prcb_session_tier(m->session);
    while (!result && now_ns() < end && !ret->signalled) {
        result = look(m, false, &ended, err);
        next = looks_next(m->looks);
        if (!result && stat_wait_until(m->how->wait, next < end ? next : end) & STAT_WAIT_SIGNAL)
            ret->signalled = true;
    }
    if (!result)
        result = look(m, true, &ended, err);
    if (result)
        return result;
    end = now_ns() - start;
    ret->until_ns = ret->from_ns + end; /* also if the time of day was set meanwhile */
    result = write_both(m, end, ret);
    return result ? prcb_fail(err, result, "out of memory") : 0;
}

int push_measure(const struct push_measure *how, struct push_measured *ret, struct prcb_error *err)
{
    struct measuring m = {.how = how};
    int result;

    *ret = (struct push_measured){.from_ns = 0};
    result = open_all(&m, err);
    if (!result)
        result = measure(&m, ret, err);
    if (result) {
        free(ret->wait.bytes);
        free(ret->run.bytes);
        ret->wait.bytes = ret->run.bytes = NULL;
    }
    stat_wait_forget_targets(how->wait);
    why_close(m.why);
    looks_close(m.looks);
    prcb_close(m.session);
    return result;
}
