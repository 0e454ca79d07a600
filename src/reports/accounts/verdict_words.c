/* SPDX-License-Identifier: BSD-2-Clause */
#include "verdict_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "cause.h"
#include "format.h"
#include "place.h"
#include "text.h"
#include "whom_words.h"

#define NAME_MOST  80 /* columns of a name from outside */
#define CHAIN_MOST 3  /* holders that hold up holders */

void verdict_put_name_of(FILE *out, const char *name, size_t columns)
{
    char shown[4096];

    text_copy(TEXT_MARKS, name, shown, sizeof(shown));
    format_cut(shown, columns);
    fputs(shown, out);
}

void verdict_put_name(FILE *out, const char *name)
{
    verdict_put_name_of(out, name, NAME_MOST);
}

void verdict_put_comm(FILE *out, const char *comm, size_t size, pid_t tid)
{
    char name[32];

    snprintf(name, sizeof(name), "%.*s", (int)(size < 31 ? size : 31), comm);
    verdict_put_name(out, name);
    if (tid)
        fprintf(out, " (%d)", (int)tid);
}

void verdict_put_time(FILE *out, uint64_t ns)
{
    char time[FORMAT_CELL];

    format_time(ns, time, sizeof(time));
    fputs(time, out);
}

void verdict_put_share(FILE *out, uint64_t ns, uint64_t of)
{
    char share[FORMAT_CELL];

    format_share(ns < of ? ns : of, of, share, sizeof(share));
    fputs(share, out);
}

/* "reporter (12)", "6 threads (worker-*)". */
void verdict_put_who(FILE *out, const struct making *m, const struct group *group)
{
    const struct why_process *process = group->process;
    size_t prefix = group->prefix;

    if (group->threads == 1) {
        verdict_put_comm(out, group->who->comm, sizeof(group->who->comm), group->who->tid);
    } else if (group->threads) {
        fprintf(out, "%" PRIu64 " threads", group->threads);
        if (prefix >= 2) {
            bool whole = prefix == strnlen(group->who->comm, sizeof(group->who->comm));

            fputs(" (", out);
            verdict_put_comm(out, group->who->comm, prefix, 0);
            fputs(whole ? ")" : "*)", out);
        }
    } else if (process->threads == 1) {
        verdict_put_comm(out, process->comm, sizeof(process->comm), process->pid);
        return;
    } else {
        fputs("threads", out);
    }
    if (group->processes > 1) {
        fprintf(out, " of %zu processes", group->processes);
        return;
    }
    if (m->several && process->pid && !process->ended &&
        (group->threads != 1 || group->who->tid != process->pid)) {
        fputs(" of ", out);
        verdict_put_comm(out, process->comm, sizeof(process->comm), process->pid);
    }
}

static void put_detail(FILE *out, const struct object *object)
{
    if (!object->detail)
        return;
    fputs(" (", out);
    verdict_put_name(out, object->detail);
    if (object->doing) {
        fputs("; ", out);
        verdict_put_name(out, object->doing);
    }
    fputs(")", out);
}

/* Who reads waits for data, who writes for room. */
static void put_end(FILE *out, const struct object *object)
{
    if (object->end)
        fputs(object->end == S_IWUSR ? "data in " : "room in ", out);
    fputs(object->kind == OBJECT_FIFO ? "FIFO " : "", out);
}

/* lock: a futex without a name is a lock, by the functions of the stack. */
static void put_object(FILE *out, const struct object *object, bool lock)
{
    const char *remote = verdict_remote_of(object);

    switch (object->kind) {
    case OBJECT_FUTEX:
    case OBJECT_LOCK:
        if (object->symbol) {
            verdict_put_name(out, object->symbol);
            return;
        }
        fputs(object->kind == OBJECT_LOCK ? "the kernel's lock "
              : lock                      ? "the lock "
                                          : "the futex ",
              out);
        verdict_put_name(out, object->name);
        return;
    case OBJECT_EPOLL:
    case OBJECT_POLL:
        verdict_put_name(out, object->detail ? object->detail : object->name);
        return;
    case OBJECT_SEMAPHORE:
        fputs("the semaphore ", out);
        break;
    case OBJECT_QUEUE:
        fputs("the message queue ", out);
        break;
    case OBJECT_PROCESS:
    case OBJECT_THREAD:
        verdict_put_comm(out, object->name, strlen(object->name), object->tid);
        put_detail(out, object);
        return;
    case OBJECT_PIPE:
    case OBJECT_FIFO:
        put_end(out, object);
        break;
    default:
        break;
    }
    verdict_put_name(out, remote ? remote : object->name);
    put_detail(out, object);
}

/* What no phrase has: where in the kernel it is, if that is known, tells more than that its cause
 * is not. */
static void put_cause(FILE *out, const struct why_part *part, const struct object *object, bool one)
{
    const struct prcb_cause_info *info = prcb_cause_info(part->cause);
    const char *function = place_in_kernel(part);

    if (!function || (part->cause != PRCB_CAUSE_OTHER && part->cause != PRCB_CAUSE_OTHER_D)) {
        fprintf(out, "%s %s", one ? "is" : "are", info ? info->words : "waiting");
        return;
    }
    fprintf(out, "wait%s in the kernel, at ", one ? "s" : "");
    verdict_put_name(out, function);
    fputs(part->cause == PRCB_CAUSE_OTHER_D ? " (uninterruptible)" : "", out);
    if (object) {
        fputs(", for ", out);
        put_object(out, object, false);
    }
}

/* object: NULL: it is not told. more: what says that there are others. */
static void put_verb(FILE *out, const struct why_part *part, const struct object *object,
                     const char *more, bool one)
{
    const struct phrase *phrase = verdict_phrase_of(part);
    const char *text;

    if (!phrase) {
        put_cause(out, part, object, one);
        return;
    }
    text = object && phrase->known ? phrase->known : phrase->unknown;
    for (; *text; text++) {
        if (*text == '~') {
            fputs(one ? "s" : "", out);
        } else if (text[0] == '%' && text[1] == 's') {
            put_object(out, object, phrase->word != NULL);
            fputs(more, out);
            text++;
        } else {
            fputc(*text, out);
        }
    }
}

void verdict_put_verb(FILE *out, const struct making *m, const struct why_part *part, bool one)
{
    put_verb(out, part, verdict_object_of(m, part->wait.object), "", one);
}

/* What a small part is for does not tell what the group waits for. */
void verdict_put_wait(FILE *out, const struct making *m, const struct group *group, bool one)
{
    const struct object *object = verdict_object_of(m, group->most->wait.object);
    bool others = object && !verdict_remote_of(object) && group->others_ns > group->object_ns / 20;

    if (others && group->object_ns < group->others_ns / 10)
        object = NULL;
    put_verb(out, group->most, object, others ? " and others" : "", one);
}

static void put_function(FILE *out, const char *before, const struct prcb_frame *frame)
{
    char name[VERDICT_KEY_MOST], line[VERDICT_KEY_MOST];

    place_name(frame, name, sizeof(name));
    place_line(frame, line, sizeof(line));
    fputs(before, out);
    verdict_put_name(out, name);
    if (*line) {
        fputs(" (", out);
        verdict_put_name(out, line);
        fputs(")", out);
    }
}

void verdict_put_place(FILE *out, const struct why_part *part)
{
    const struct prcb_frame *by, *frame = place_of_part(part, &by);

    if (frame)
        put_function(out, " in ", frame);
    if (frame && by)
        put_function(out, ", called by ", by);
}

/* ---- who holds it, and what that does ---- */

struct holding {
    uint32_t holder;
    uint64_t ns;
};

/* Finds who held an object for the most of the time that a process waited for it, and how many
 * others did. */
static struct holding holder_of(const struct why_process *process, uint32_t object,
                                uint64_t *ret_known, size_t *ret_others)
{
    struct holding *all = NULL, most = {0};
    size_t count = 0;

    *ret_known = *ret_others = 0;
    for (size_t i = 0; i < process->cause_count && object; i++) {
        for (size_t k = 0; k < process->causes[i].pair_count; k++) {
            const struct why_part *part = &process->causes[i].pairs[k];
            size_t at = 0;

            if (part->wait.object != object || !part->wait.holder || !part->ns)
                continue;
            while (at < count && all[at].holder != part->wait.holder)
                at++;
            if (at == count && array_append(all, count, (struct holding){part->wait.holder, 0}))
                break;
            all[at].ns += part->ns;
            *ret_known += part->ns;
        }
    }
    for (size_t i = 0; i < count; i++)
        most = all[i].ns > most.ns ? all[i] : most;
    *ret_others = count ? count - 1 : 0;
    free(all);
    return most;
}

bool verdict_has_holder(const struct why_process *process, const struct why_part *part)
{
    uint64_t known;
    size_t others;

    return holder_of(process, part->wait.object, &known, &others).holder != 0;
}

/* Returns what the holder did for most of the time; NULL: that is not known. holder 0: any. */
static const struct why_doing *doing_of(const struct why_process *process, uint32_t object,
                                        uint32_t holder)
{
    const struct why_doing *most = NULL;

    for (size_t i = 0; i < process->doing_count; i++) {
        const struct why_doing *at = &process->doings[i];

        if (at->object == object && (!holder || at->holder == holder) && at->ns &&
            (!most || at->ns > most->ns))
            most = at;
    }
    return most;
}

static void put_doing(FILE *out, const struct making *m, const struct why_doing *doing, bool one)
{
    if (doing->state == WHY_RUNS) {
        fprintf(out, " and run%s meanwhile", one ? "s" : "");
    } else if (doing->state == WHY_READY) {
        fprintf(out, " and ha%s no processor meanwhile", one ? "s" : "ve");
    } else {
        fputs(" and ", out);
        verdict_put_verb(out, m, &doing->part, one);
        verdict_put_place(out, &doing->part);
    }
}

/* Says who holds what a part waits for, and who holds up that one. False: nobody is known. */
bool verdict_put_holders(FILE *out, const struct making *m, const struct why_process *process,
                         const struct why_part *part)
{
    uint32_t object = part->wait.object;
    bool found = false;

    for (int i = 0; i < CHAIN_MOST && object; i++) {
        uint64_t known;
        size_t others;
        const struct holding most = holder_of(process, object, &known, &others);
        const struct why_doing *doing;
        const struct object *holder;
        bool one = most.ns >= known / 2;

        if (!most.holder)
            break;
        found = true;
        holder = verdict_object_of(m, most.holder);
        doing = doing_of(process, object, one ? most.holder : 0);
        fputs("; ", out);
        if (one) {
            put_object(out, holder, false);
            fprintf(out, " hold%s it", holder->detail ? "s, or held," : "s");
        } else {
            fprintf(out, "%zu threads hold it in turn", others + 1);
        }
        if (one && others && most.ns < known - known / 100) {
            fputs(", for ", out);
            verdict_put_share(out, most.ns, known);
            fputs(doing ? " of that," : " of that", out);
        }
        if (!doing)
            break;
        put_doing(out, m, doing, one);
        object = doing->state == WHY_WAITS && doing->part.wait.holder &&
                         doing->part.wait.object != object
                     ? doing->part.wait.object
                     : 0;
    }
    return found;
}

/* Says who ended waits for a lock that does not tell its holder. */
void verdict_put_releaser(FILE *out, const struct making *m, const struct group *group)
{
    struct prcb_edge *rows;
    char name[128];
    size_t count;

    if (!m->f->whom || cause_traits(group->cause)->class != CAUSE_CLASS_LOCK ||
        !verdict_word_of(group->most) || group->most->stack.kind != PRCB_STACK_BLOCKED ||
        whom_rows(m->f->whom, (uint64_t)group->process->pid, group->cause, &rows, &count))
        return;
    if (count && rows[0].by == PRCB_BY_THREAD) {
        whom_name(&rows[0], name, sizeof(name));
        fprintf(out, "; its holder is not known, %s ended most of these waits", name);
    }
    free(rows);
}

void verdict_put_behind(FILE *out, const struct making *m, const struct group *group)
{
    uint64_t whole = 0, rest = 0;
    struct prcb_edge *rows;
    size_t count, shown = 0;
    char name[128];

    if (!m->f->whom ||
        whom_rows(m->f->whom, (uint64_t)group->process->pid, PRCB_CAUSE_NONE, &rows, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        whole += rows[i].ns;
        rest += rows[i].by == PRCB_BY_REST ? rows[i].ns : 0;
    }
    for (size_t i = 0; i < count && shown < 3; i++) {
        if (rows[i].by == PRCB_BY_REST || rows[i].ns < whole / 10)
            continue;
        whom_name(&rows[i], name, sizeof(name));
        fprintf(out, "%s%s for ", shown++ ? ", " : ", behind ", name);
        verdict_put_share(out, rows[i].ns, whole);
    }
    fputs(shown ? " of that" : "", out);
    if (!shown && whole && count)
        fputs(!m->f->ran_in || rest < whole / 2 ? ", behind many others"
                                                : ", behind what is not in the recording",
              out);
    free(rows);
}
