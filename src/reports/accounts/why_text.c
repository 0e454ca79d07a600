/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report of `prcb why` for people, and as folded stacks.
 */
#include "why_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "format.h"
#include "held_words.h"
#include "libc_file.h"
#include "place.h"
#include "task_places.h"
#include "text.h"
#include "whom_words.h"

#define STACK_INDENT 16
#define WHOM_LEAD    "                " /* as wide */
#define NAME_MOST    60                 /* columns of a function's name */
#define FRAME_TEXT   (8 * NAME_MOST)    /* bytes of that and its line */
#define NOW_MOST     3                  /* threads that wait now, of each process */
#define IDLE_WORDS   4

const char *why_cause_name(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return info ? info->name : "wait";
}

/* Writes "cache_get", or "libfoo.so+0x1234" if the name is not known, or an address; lines: and
 * " (cache.c:12)". */
static size_t frame_text(const struct prcb_frame *frame, bool lines, char *ret, size_t size)
{
    char line[2 * NAME_MOST] = "";
    size_t used;

    char raw[512];
    const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

    if (frame->function)
        snprintf(raw, sizeof(raw), "%s", frame->function);
    else if (frame->file)
        snprintf(raw, sizeof(raw), "%s+0x%" PRIx64, slash ? slash + 1 : frame->file, frame->place);
    else
        snprintf(raw, sizeof(raw), "0x%" PRIx64, frame->address);
    text_copy(TEXT_MARKS, raw, ret, size);
    format_cut(ret, NAME_MOST);
    if (lines)
        place_line(frame, raw, sizeof(raw));
    if (lines && *raw) {
        text_copy(TEXT_MARKS, raw, line, sizeof(line));
        format_cut(line, NAME_MOST);
        used = strlen(ret);
        snprintf(ret + used, size - used, " (%s)", line);
    }
    return format_width(ret);
}

/* Skips the C library's part of the innermost frames, which says what the cause and the word say
 * already. */
static uint32_t first_frame(const struct prcb_stack *stack)
{
    uint32_t i = 0;

    while (i < stack->frame_count && is_libc_file(stack->frames[i].file))
        i++;
    return i < stack->frame_count ? i : 0;
}

void why_stack_line(const struct prcb_stack *stack, char *ret, size_t size)
{
    size_t used = 0;

    *ret = '\0';
    for (uint32_t i = first_frame(stack); i < stack->frame_count && used + 4 < size; i++) {
        char name[FRAME_TEXT];

        frame_text(&stack->frames[i], false, name, sizeof(name));
        used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? " < " : "", name);
    }
    /* A character may be cut in the middle: the next reader of the text marks that. */
}

/* Writes the innermost frame first, wrapped at the width; the line is indented already. */
static void write_stack(FILE *out, const struct why_output *output, const struct prcb_stack *stack)
{
    size_t used = STACK_INDENT;

    for (uint32_t i = first_frame(stack); i < stack->frame_count; i++) {
        char name[FRAME_TEXT];
        size_t width =
            frame_text(&stack->frames[i], !is_libc_file(stack->frames[i].file), name, sizeof(name));
        bool last = i + 1 == stack->frame_count;

        if (used > STACK_INDENT && used + width + 3 > output->columns) {
            fprintf(out, "\n%*s", STACK_INDENT, "");
            used = STACK_INDENT;
        } else if (used > STACK_INDENT) {
            fputc(' ', out);
            used++;
        }
        fprintf(out, "%s%s", name, last ? "" : " <");
        used += width + (last ? 0 : 2);
    }
    fprintf(out, "%s\n", stack->flags & PRCB_STACK_COMPLETE ? "" : " < ...");
}

static const char *part_word(const struct why_part *part)
{
    if (part->kind != WHY_STACK)
        return why_part_name(part->kind);
    return part->stack.word ? part->stack.word : "";
}

/* Writes a part. whole: what the header of its cause shows. */
static void write_part(FILE *out, const struct why_output *output, uint64_t whole,
                       const struct why_part *part)
{
    char share[FORMAT_CELL];
    const char *word = part_word(part);

    format_share(part->ns, whole, share, sizeof(share));
    if (part->kind != WHY_STACK) {
        fprintf(out, "%14s  %s\n", share, word);
        return;
    }
    if (*word)
        fprintf(out, "%14s  %s%s\n%*s", share, word,
                part->stack.kind == PRCB_STACK_EITHER ? " (may be idle)" : "", STACK_INDENT, "");
    else
        fprintf(out, "%14s  ", share);
    write_stack(out, output, &part->stack);
}

static bool part_wanted(const struct why_output *output, const struct why_part *part)
{
    return output->idle || part->kind != WHY_STACK || part->stack.kind != PRCB_STACK_IDLE;
}

/* Whether the waits are for locks: the kernel's, or mutexes as far as known stacks say, which is
 * for nearly all of the time. */
static bool is_for_locks(const struct why_cause *cause)
{
    static const char *const words[] = {"mutex", "malloc arena", "stdio lock", "loader lock"};

    if (cause->cause != PRCB_CAUSE_FUTEX || cause->known_ns < cause->ns / 10 * 9)
        return cause_has(cause->cause, CAUSE_IS_KERNEL_LOCK);
    for (size_t i = 0; i < cause->part_count; i++) {
        size_t n = 0, count = sizeof(words) / sizeof(*words);

        while (n < count && strcmp(part_word(&cause->parts[i]), words[n]) != 0)
            n++;
        if (cause->parts[i].kind == WHY_STACK && cause->parts[i].ns && n == count)
            return false;
    }
    return true;
}

/* Returns how much of a cause is shown. */
static uint64_t shown_of(const struct why_output *output, const struct why_cause *cause)
{
    return cause->ns - (output->idle ? 0 : cause->idle_ns);
}

/* Whether who held the locks is known of most of the time: then who released them is not to
 * blame. */
static bool is_held(const struct why_cause *cause)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < cause->holder_count; i++)
        ns += cause->holders[i].wait.holder ? cause->holders[i].ns : 0;
    return ns > (cause->ns - cause->idle_ns) / 2;
}

static void write_cause(FILE *out, const struct why_output *output,
                        const struct why_process *process, const struct why_cause *cause)
{
    uint64_t shown = 0, left = 0, left_ns = 0, ns = shown_of(output, cause);
    char time[FORMAT_CELL], share[FORMAT_CELL], known[FORMAT_CELL], whole[FORMAT_CELL];

    if (!ns || cause_has(cause->cause, CAUSE_IDLES))
        return;
    format_time(ns, time, sizeof(time));
    format_share(ns, process->wall_ns, share, sizeof(share));
    format_share(cause->known_ns - (cause->ns - ns), ns, known, sizeof(known));
    fprintf(out, "  %8s %8s  %-14s ", time, share, why_cause_name(cause->cause));
    if (ns == cause->ns) {
        fprintf(out, "%" PRIu64 " time%s; ", cause->count, cause->count == 1 ? "" : "s");
    } else {
        format_time(cause->ns, whole, sizeof(whole));
        fprintf(out, "of %s in %" PRIu64 " time%s, the rest idles; ", whole, cause->count,
                cause->count == 1 ? "" : "s");
    }
    fprintf(out, "stack known for %s of it\n", known);
    for (size_t i = 0; i < cause->part_count; i++) {
        if (!part_wanted(output, &cause->parts[i]))
            continue;
        if (output->top_stacks && shown >= output->top_stacks &&
            cause->parts[i].kind == WHY_STACK) {
            left++;
            left_ns += cause->parts[i].ns;
            continue;
        }
        shown += cause->parts[i].kind == WHY_STACK;
        write_part(out, output, ns, &cause->parts[i]);
    }
    if (left) {
        format_share(left_ns, ns, share, sizeof(share));
        fprintf(out, "%14s  %" PRIu64 " more stack%s\n", share, left, left == 1 ? "" : "s");
    }
    if (output->objects)
        why_write_objects(out, output, cause, WHOM_LEAD);
    if (output->objects && is_held(cause))
        return;
    /* Who ended waits is only known for the sum of all. */
    if (output->whom && ns != cause->ns)
        fprintf(out, WHOM_LEAD "of all %s, idle waits included:\n", whole);
    if (output->whom && output->owners)
        whom_write_holders(out, output->whom, process->pid, cause->cause, WHOM_LEAD,
                           output->columns);
    /* The kernel's own timer ends what a quota holds back. */
    if (output->whom && cause->cause != HELD_BY_QUOTA)
        whom_write(out, output->whom, process->pid, cause->cause, is_for_locks(cause), WHOM_LEAD,
                   output->columns);
}

/* Writes what the process idles in, the most of it first. */
static void write_idle(FILE *out, const struct why_output *output,
                       const struct why_process *process)
{
    struct {
        const char *word;
        uint64_t ns;
    } words[32] = {{0}};
    char time[FORMAT_CELL], share[FORMAT_CELL];
    size_t count = 0;

    if (!process->idle_ns)
        return;
    for (size_t i = 0; i < process->cause_count; i++) {
        for (size_t k = 0; k < process->causes[i].part_count; k++) {
            const struct why_part *part = &process->causes[i].parts[k];
            bool stack = part->kind == WHY_STACK && part->stack.kind == PRCB_STACK_IDLE;
            bool kernel = cause_has(part->cause, CAUSE_IDLES);
            const char *word = kernel ? "kernel thread" : part->stack.word;
            size_t at = 0;

            if (!stack && !kernel)
                continue;
            while (at < count && strcmp(words[at].word, word) != 0)
                at++;
            if (at == sizeof(words) / sizeof(*words))
                continue;
            words[at].word = word;
            words[at].ns += part->ns;
            count += at == count;
        }
    }
    format_time(process->idle_ns, time, sizeof(time));
    format_share(process->idle_ns, process->wall_ns, share, sizeof(share));
    fprintf(out, "  %8s %8s  %-14s ", time, share, "idle by design");
    for (size_t i = 0; i < count && i < IDLE_WORDS; i++) {
        size_t most = i;

        for (size_t k = i + 1; k < count; k++)
            most = words[k].ns > words[most].ns ? k : most;
        format_time(words[most].ns, time, sizeof(time));
        fprintf(out, "%s%s %s", i ? ", " : "", words[most].word, time);
        words[most] = words[i];
    }
    fprintf(out, "%s%s\n", count > IDLE_WORDS ? ", ..." : "",
            output->idle ? "" : " (--idle shows where)");
}

void why_find_held(const struct why_report *report, struct held_threads *ret)
{
    *ret = (struct held_threads){.count = 0};
    for (size_t i = 0; i < report->count; i++) {
        const struct why_process *process = &report->processes[i];

        for (size_t k = 0; k < process->now_count && process->pid; k++) {
            const struct why_now *now = &process->now[k];

            if (held_cause(now->cause, now->has_stack ? now->stack.word : NULL))
                held_threads_add(ret, process->pid, now->tid, now->comm, now->ns, now->before);
        }
    }
}

/* Finds a thread that a quota holds back, or may: of the process that lost the most to it. */
static pid_t throttled_thread(const struct why_report *report, pid_t *ret_pid)
{
    uint64_t most = 0;
    pid_t tid = 0;

    for (size_t i = 0; i < report->count; i++) {
        const struct why_process *process = &report->processes[i];
        bool known = process->cause_count && process->causes[0].cause != PRCB_CAUSE_NONE;
        uint64_t ns = known ? 0 : process->ready_ns;

        for (size_t k = 0; k < process->cause_count; k++)
            ns += process->causes[k].cause == HELD_BY_QUOTA ? process->causes[k].ns : 0;
        if (!process->pid || ns <= most)
            continue;
        most = ns;
        *ret_pid = tid = process->pid;
        for (size_t k = 0; k < process->now_count; k++)
            tid = process->now[k].cause == HELD_BY_QUOTA ? process->now[k].tid : tid;
    }
    return tid;
}

char *why_find_quota(const struct why_report *report)
{
    pid_t pid = 0, tid = throttled_thread(report, &pid);
    char *text = NULL;
    size_t size;
    FILE *out = tid ? open_memstream(&text, &size) : NULL;
    bool found = out && held_quota_write(out, pid, tid);

    if (!out || fclose(out) || !found) {
        free(text);
        return NULL;
    }
    return text;
}

uint64_t why_now_ns(const struct why_process *process, const struct why_now *now)
{
    uint64_t off;

    if (!now->before || held_threads_off(process->pid ? process->pid : now->tid, now->tid, &off))
        return now->ns;
    return off > now->ns ? off : now->ns;
}

static void write_now(FILE *out, const struct why_output *output, const struct why_process *process)
{
    for (size_t i = 0; i < process->now_count && i < NOW_MOST; i++) {
        const struct why_now *now = &process->now[i];
        char time[FORMAT_CELL], comm[64], object[400];

        format_time(why_now_ns(process, now), time, sizeof(time));
        text_copy(TEXT_MARKS, now->comm, comm, sizeof(comm));
        fprintf(out, "  now: %s (%d) has been in %s for %s%s%s%s\n", comm, (int)now->tid,
                why_cause_name(now->cause), time, now->has_stack && now->stack.word ? " (" : "",
                now->has_stack && now->stack.word ? now->stack.word : "",
                now->has_stack && now->stack.word ? ")" : "");
        if (output->objects && now->wait.object) {
            why_object_text(output->objects, now->wait.object, object, sizeof(object));
            fprintf(out, "%*swaits for %s\n", STACK_INDENT, "", object);
        }
        if (output->objects && now->wait.holder) {
            why_object_text(output->objects, now->wait.holder, object, sizeof(object));
            fprintf(out, "%*sheld by %s\n", STACK_INDENT, "", object);
        }
        if (now->has_stack) {
            fprintf(out, "%*s", STACK_INDENT, "");
            write_stack(out, output, &now->stack);
        }
    }
    if (process->now_count > NOW_MOST)
        fprintf(out, "  now: %zu more thread%s\n", process->now_count - NOW_MOST,
                process->now_count - NOW_MOST == 1 ? " waits" : "s wait");
}

static void write_tasks(FILE *out, const struct why_output *output,
                        const struct why_process *process)
{
    const struct prcb_tasks *tasks = &process->tasks;
    struct task_place places[TASK_PLACES_MOST];
    size_t count, most = output->top_stacks ? (size_t)output->top_stacks : TASK_PLACES_MOST;
    uint64_t left = tasks->beyond;

    if (!process->has_tasks)
        return;
    if (tasks->unread) {
        fprintf(out, "  %s are not seen (%s): %s\n", tasks->kind, tasks->runtime, tasks->unread);
        return;
    }
    fprintf(out, "  %s (%s): %" PRIu64, tasks->kind, tasks->runtime, tasks->total - tasks->own);
    if (tasks->own)
        fprintf(out, ", and %" PRIu64 " of the runtime's", tasks->own);
    fputs(task_places_more(tasks) ? "; there are more, which were not looked at\n" : "\n", out);
    count = task_places(tasks, places);
    for (size_t i = 0; i < count; i++) {
        char text[1024];

        if (i >= most) {
            left += places[i].count;
            continue;
        }
        task_place_text(&places[i], text, sizeof(text));
        fprintf(out, "%14" PRIu64 "  %s\n", places[i].count, text);
        if (!places[i].stack.frame_count)
            continue;
        fprintf(out, "%*s", STACK_INDENT, "");
        write_stack(out, output, &places[i].stack);
    }
    if (left)
        fprintf(out, "%14" PRIu64 "  elsewhere\n", left);
    if (tasks->moved)
        fprintf(out, "%14" PRIu64 "  ran while they were looked at\n", tasks->moved);
}

void why_path_words(const struct why_path *path, char *ret, size_t size)
{
    const char *word = path->part.kind == WHY_STACK ? path->part.stack.word : NULL;
    char who[96], comm[64];

    text_copy(TEXT_MARKS, path->comm, comm, sizeof(comm));
    if (path->threads > 1)
        snprintf(who, sizeof(who), "%" PRIu64 " threads (%s)", path->threads, comm);
    else
        snprintf(who, sizeof(who), "%s (%d)", comm, (int)path->tid);
    if (path->seen && path->state == WHY_WAITS)
        snprintf(ret, size, "%s in %s%s%s%s", who, why_cause_name(path->part.cause),
                 word ? " (" : "", word ? word : "", word ? ")" : "");
    else
        snprintf(ret, size, "%s%s", who,
                 !path->seen                ? ", which was not seen"
                 : path->state == WHY_READY ? " ready, no processor"
                                            : " running");
}

/* Writes what threads do for which others wait; where waits lead to nobody else, the causes have
 * said it all. */
static void write_paths(FILE *out, const struct why_output *output,
                        const struct why_process *process)
{
    char time[FORMAT_CELL], share[FORMAT_CELL], words[256];
    uint64_t others = 0;

    for (size_t i = 0; i < process->path_count; i++)
        others += process->paths[i].others_ns;
    if (others < process->path_ns / 20 || !others)
        return;
    format_time(process->path_ns, time, sizeof(time));
    format_share(process->path_ns, process->wall_ns, share, sizeof(share));
    fprintf(out, "  %8s %8s  %-14s what these waits lead to, by %" PRIu64 " looks\n", time, share,
            "critical path", output->looks);
    for (size_t i = 0; i < process->path_count && i < WHY_PATHS_SHOWN; i++) {
        const struct why_path *path = &process->paths[i];

        format_share(path->ns, process->path_ns, share, sizeof(share));
        why_path_words(path, words, sizeof(words));
        fprintf(out, "%14s  %s\n", share, words);
        if (path->state == WHY_WAITS && path->part.kind == WHY_STACK) {
            fprintf(out, "%*s", STACK_INDENT, "");
            write_stack(out, output, &path->part.stack);
        }
    }
}

static void write_row(FILE *out, const struct why_process *process, uint64_t ns, const char *name)
{
    char time[FORMAT_CELL], share[FORMAT_CELL];

    if (!ns)
        return;
    format_time(ns, time, sizeof(time));
    format_share(ns, process->wall_ns, share, sizeof(share));
    fprintf(out, "  %8s %8s  %s\n", time, share, name);
}

static void write_ready(FILE *out, const struct why_output *output,
                        const struct why_process *process)
{
    write_row(out, process, process->ready_ns, "ready, no processor");
    if (output->whom && process->ready_ns)
        whom_write(out, output->whom, (uint64_t)process->pid, PRCB_CAUSE_NONE, false, WHOM_LEAD,
                   output->columns);
}

#define OWN_LINES 2 /* of a process among others */

static void write_process(FILE *out, const struct why_output *output,
                          const struct why_process *process)
{
    const struct verdict *own =
        output->verdicts ? &output->verdicts[process - output->report->processes] : NULL;
    bool ready = !process->ready_ns;
    char comm[64], threads[FORMAT_CELL], wall[FORMAT_CELL], sum[FORMAT_CELL];

    text_copy(TEXT_MARKS, process->comm, comm, sizeof(comm));
    format_count(process->threads, "thread", "threads", threads, sizeof(threads));
    format_time(output->wall_ns, wall, sizeof(wall));
    format_time(process->wall_ns, sum, sizeof(sum));
    fprintf(out, "%s", comm);
    if (process->ended)
        fprintf(out, " (%" PRIu64 " ended)", process->ended);
    else if (process->pid)
        fprintf(out, " (%d)", (int)process->pid);
    fprintf(out, ", %s, %s: %s of thread time\n", threads, wall, sum);
    for (size_t i = 0; own && i < own->count && i < OWN_LINES; i++)
        verdict_write_sentence(out, "  ", own->lines[i].text, output->columns);
    for (size_t i = 0; i < process->cause_count; i++) {
        if (!ready && shown_of(output, &process->causes[i]) < process->ready_ns) {
            write_ready(out, output, process);
            ready = true;
        }
        write_cause(out, output, process, &process->causes[i]);
    }
    if (!ready)
        write_ready(out, output, process);
    write_row(out, process, process->run_ns, "running");
    write_idle(out, output, process);
    write_tasks(out, output, process);
    write_paths(out, output, process);
    write_now(out, output, process);
}

/* Sums the time of all rows of one kind. */
static uint64_t time_of(const struct why_report *report, enum why_part_kind kind)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < report->count; i++) {
        const struct why_process *process = &report->processes[i];

        for (size_t k = 0; k < process->cause_count; k++) {
            for (size_t n = 0; n < process->causes[k].part_count; n++) {
                const struct why_part *part = &process->causes[k].parts[n];

                ns += part->kind == kind ? part->ns : 0;
            }
        }
    }
    return ns;
}

/* What is not looked at unless it is asked for: who held the kernel's own locks. */
static void write_offer(FILE *out, const struct why_output *output)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < output->report->count; i++) {
        const struct why_process *process = &output->report->processes[i];

        for (size_t k = 0; k < process->cause_count; k++)
            ns += cause_has(process->causes[k].cause, CAUSE_IS_KERNEL_LOCK) ? process->causes[k].ns
                                                                            : 0;
    }
    if (ns && !output->owners && output->whom)
        fputs("who held the kernel's own locks: --owners\n", out);
}

/* Says what interpreters' functions are known of. */
static void write_interpreters(FILE *out, const struct prcb_stacks_status *stacks)
{
    uint64_t all = stacks->interpreted + stacks->uninterpreted;
    char share[FORMAT_CELL];

    if (all) {
        format_share(stacks->interpreted, all, share, sizeof(share));
        fprintf(out, "an interpreter's functions are all known for %s of %" PRIu64 " waits read\n",
                share, all);
    }
    if (stacks->unread) {
        char text[512];

        text_copy(TEXT_MARKS, stacks->unread, text, sizeof(text));
        fprintf(out, "process %d: %s\n", (int)stacks->unread_pid, text);
    }
}

static void write_notes(FILE *out, const struct why_output *output)
{
    const char *reason = prcb_session_tier_reason(output->session);
    enum prcb_tier tier = prcb_session_tier(output->session);
    uint64_t wait = 0, known = 0, ns;
    char share[FORMAT_CELL], own[FORMAT_CELL];

    for (size_t i = 0; i < output->report->count; i++) {
        wait += output->report->processes[i].wait_ns;
        known += output->report->processes[i].known_ns;
    }
    format_share(known, wait, share, sizeof(share));
    format_time(output->cost_ns, own, sizeof(own));
    if (wait)
        fprintf(out,
                "\nstack known for %s of the waiting time; %" PRIu64
                " stack%s unwound; looking took %s of processor time\n",
                share, output->stacks->unwound, output->stacks->unwound == 1 ? "" : "s", own);
    else
        fprintf(out, "\nnothing waited; looking took %s of processor time\n", own);
    write_interpreters(out, output->stacks);
    ns = time_of(output->report, WHY_BUDGET);
    if (ns) {
        format_share(ns, wait, share, sizeof(share));
        fprintf(out,
                "for %s of it no stack was read: looking may take %" PRIu64
                " %% of a processor (--budget)\n",
                share, output->percent);
    }
    ns = time_of(output->report, WHY_DENIED);
    if (ns) {
        format_share(ns, wait, share, sizeof(share));
        fprintf(out,
                "for %s of it the stacks may not be read: another user's process, or "
                "kernel.yama.ptrace_scope\nallows descendants only: run prcb as root (prcb doctor "
                "tells more)\n",
                share);
    }
    if (output->status->untracked_threads)
        fprintf(out, "%" PRIu64 " thread%s not followed: no room (--max-threads)\n",
                output->status->untracked_threads,
                output->status->untracked_threads == 1 ? " was" : "s were");
    if (*output->no_whom)
        fprintf(out, "wakers and preemptors are unknown: %s\n", output->no_whom);
    if (tier == PRCB_TIER_PERF)
        fprintf(out, "perf tier%s%s: causes are not known, only where threads waited\n",
                reason ? ": " : "", reason ? reason : "");
}

void why_write_text(FILE *out, const struct why_output *output)
{
    uint64_t shown = 0;

    for (size_t i = 0; i < output->verdict->count; i++)
        verdict_write_sentence(out, "", output->verdict->lines[i].text, output->columns);
    if (output->verdict->count)
        fputc('\n', out);

    for (size_t i = 0; i < output->report->count; i++) {
        if (output->top && shown == output->top)
            break;
        if (shown++)
            fputc('\n', out);
        write_process(out, output, &output->report->processes[i]);
    }
    if (shown < output->report->count)
        fprintf(out, "\n%zu more process%s (--top 0 shows all)\n",
                (size_t)(output->report->count - shown),
                output->report->count - shown == 1 ? "" : "es");
    why_write_load(out, output);
    write_notes(out, output);
    write_offer(out, output);
}

/* ---- folded ------------------------------------------------------------------------------- */

/* What separates frames and numbers must not be in a name. */
static void write_folded_name(FILE *out, const char *name)
{
    char clean[1024];

    text_copy(TEXT_MARKS, name, clean, sizeof(clean));
    for (char *at = clean; *at; at++)
        *at = *at == ';' ? ':' : *at;
    fputs(clean, out);
}

static void write_folded_part(FILE *out, const struct why_output *output,
                              const struct why_process *process, const struct why_part *part)
{
    char object[400];

    write_folded_name(out, process->comm);
    fprintf(out, ";%s", why_cause_name(part->cause));
    if (part->kind != WHY_STACK)
        fprintf(out, ";%s", why_part_name(part->kind));
    for (uint32_t i = part->kind == WHY_STACK ? part->stack.frame_count : 0; i-- > 0;) {
        char name[4 * NAME_MOST + 1];

        fputc(';', out);
        if (part->stack.frames[i].function) {
            write_folded_name(out, part->stack.frames[i].function);
        } else {
            frame_text(&part->stack.frames[i], false, name, sizeof(name));
            write_folded_name(out, name);
        }
    }
    if (output->objects && part->wait.object) {
        why_object_text(output->objects, part->wait.object, object, sizeof(object));
        fputc(';', out);
        write_folded_name(out, object);
    }
    fprintf(out, " %" PRIu64 "\n", part->ns);
}

void why_write_folded(FILE *out, const struct why_output *output)
{
    for (size_t i = 0; i < output->report->count; i++) {
        const struct why_process *process = &output->report->processes[i];

        for (size_t k = 0; k < process->cause_count; k++) {
            const struct why_cause *cause = &process->causes[k];
            const struct why_part *parts = cause->pairs ? cause->pairs : cause->parts;
            size_t count = cause->pairs ? cause->pair_count : cause->part_count;

            for (size_t n = 0; n < count; n++) {
                if (part_wanted(output, &parts[n]) && parts[n].ns)
                    write_folded_part(out, output, process, &parts[n]);
            }
        }
    }
}
