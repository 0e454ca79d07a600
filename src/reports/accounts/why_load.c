/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the threads that make the load average without running: those in an uninterruptible
 * wait now, a line for each place in the kernel.
 */
#include "array.h"
#include "why_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "held_up.h"
#include "text.h"

#define FRAMES 3 /* that tell a place from others */
#define PLACES 10

struct place {
    char text[256];
    const struct why_now *longest;
    uint64_t threads, ns; /* ns: of the longest */
};

/* Writes the kernel's innermost functions; "": none is known. */
static void place_text(const struct why_now *now, char *ret, size_t size)
{
    size_t used = 0;

    *ret = '\0';
    for (uint32_t i = 0; now->has_stack && i < now->stack.frame_count && i < FRAMES; i++) {
        const struct prcb_frame *frame = &now->stack.frames[i];

        if (frame->address || !frame->function || used >= size)
            break;
        used +=
            (size_t)snprintf(ret + used, size - used, "%s%s", used ? " < " : "", frame->function);
    }
}

static bool is_load(const struct why_process *process, const struct why_now *now)
{
    struct held held;

    return !held_read(process->pid ? process->pid : now->tid, now->tid, &held) &&
           held.state == 'D' && !held.frozen;
}

static int by_threads(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    return a->threads != b->threads ? (a->threads < b->threads ? 1 : -1) : strcmp(a->text, b->text);
}

static int add(struct place **places, size_t *count, const struct why_process *process,
               const struct why_now *now)
{
    uint64_t ns = why_now_ns(process, now);
    char text[sizeof((*places)->text)];
    struct place *at;
    size_t i = 0;

    place_text(now, text, sizeof(text));
    if (!*text)
        snprintf(text, sizeof(text), "%s", why_cause_name(now->cause));
    while (i < *count && strcmp((*places)[i].text, text) != 0)
        i++;
    if (i == *count) {
        if (array_append(*places, *count, (struct place){.longest = now}))
            return -1;
        memcpy((*places)[i].text, text, sizeof(text));
    }
    at = &(*places)[i];
    at->threads++;
    at->longest = ns > at->ns ? now : at->longest;
    at->ns = ns > at->ns ? ns : at->ns;
    return 0;
}

static void write_place(FILE *out, const struct place *place)
{
    char text[4 * sizeof(place->text)], comm[64], time[FORMAT_CELL];

    text_copy(TEXT_MARKS, place->text, text, sizeof(text));
    text_copy(TEXT_MARKS, place->longest->comm, comm, sizeof(comm));
    format_time(place->ns, time, sizeof(time));
    fprintf(out, "%8" PRIu64 "  %s: %s (%d)%s %s%s\n", place->threads, text, comm,
            (int)place->longest->tid, place->threads > 1 ? " and others, the longest" : ",", "for ",
            time);
}

void why_write_load(FILE *out, const struct why_output *output)
{
    struct place *places = NULL;
    uint64_t threads = 0;
    size_t count = 0;

    for (size_t i = 0; i < output->report->count; i++) {
        const struct why_process *process = &output->report->processes[i];

        for (size_t k = 0; k < process->now_count; k++) {
            if (!is_load(process, &process->now[k]))
                continue;
            if (add(&places, &count, process, &process->now[k]))
                break;
            threads++;
        }
    }
    if (count) {
        array_sort(places, count, by_threads);
        fprintf(out, "\nblocked in the kernel now, in state D, %" PRIu64 " of the load average:\n",
                threads);
    }
    for (size_t i = 0; i < count && i < PLACES; i++)
        write_place(out, &places[i]);
    if (count > PLACES)
        fprintf(out, "%8s  %zu more place%s\n", "", count - PLACES, count - PLACES == 1 ? "" : "s");
    free(places);
}
