/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Notes: what a person should know about a dump, each with the numbers it rests on. One function a
 * note, in the order they are shown; those about the file itself are made where it is read.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MOST   200
#define BEHIND_TICKS 128 /* 2 s: the others of the known dumps are within 0.2 s */
#define LIST_MOST    24  /* processors named in one note */

int notes_put(struct notes *n, const char *format, va_list args)
{
    char text[700], *copy;

    if (n->count >= NOTES_MOST)
        return 0;
    vsnprintf(text, sizeof(text), format, args);
    copy = strdup(text);
    if (!copy || array_append(n->texts, n->count, copy)) {
        free(copy);
        return -ENOMEM;
    }
    return 0;
}

int dump_note(struct prcb_dump *d, const char *format, ...)
{
    va_list args;
    int code;

    va_start(args, format);
    code = notes_put(&d->notes, format, args);
    va_end(args);
    return code;
}

void notes_free(struct notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        free(notes->texts[i]);
    free(notes->texts);
    *notes = (struct notes){0};
}

static const struct prcb_dump_value *item(const struct prcb_dump_processor *p, unsigned int i)
{
    return p->items[i].found_by ? &p->items[i] : NULL;
}

/* Kernel and user ticks together. */
static bool ticks_of(const struct prcb_dump_processor *p, uint64_t *ret)
{
    if (!item(p, PRCB_DUMP_KernelTime) || !item(p, PRCB_DUMP_UserTime))
        return false;
    *ret = p->items[PRCB_DUMP_KernelTime].value + p->items[PRCB_DUMP_UserTime].value;
    return true;
}

static bool most_ticks(const struct prcb_dump *d, uint64_t *ret, uint32_t *ret_number)
{
    bool any = false;
    uint64_t ticks;

    for (size_t i = 0; i < d->processor_count; i++) {
        if (!ticks_of(&d->processors[i], &ticks) || (any && ticks <= *ret))
            continue;
        *ret = ticks;
        *ret_number = d->processors[i].number;
        any = true;
    }
    return any;
}

static double seconds(const struct prcb_dump *d, uint64_t ticks)
{
    return (double)ticks * d->info.time_increment / 1e7;
}

/* ---- the notes ---- */

static int note_file(struct prcb_dump *d)
{
    int code = 0;

    if (d->triage.is_cut)
        code = dump_note(d, "the file is cut short: it has %llu bytes, its header says %u",
                         (unsigned long long)d->file.size, d->triage.size);
    if (!code && d->triage.missing)
        code = dump_note(d, "the table of memory blocks is cut: %zu of its entries are missing",
                         d->triage.missing);
    if (!code && d->triage.outside)
        code = dump_note(d, "%zu of %u blocks of memory reach past the end of the file",
                         d->triage.outside, d->triage.block_count);
    if (!code && d->memory.is_virtual && !d->memory.range_count)
        return code; /* header alone */
    if (!code && d->info.kdbg_encoded)
        code =
            dump_note(d, "the debugger data (KDBG) are encoded, as they are in a running kernel: "
                         "this dump was not written by a bug check. They are not decoded");
    else if (!code && !d->kdbg.is_known)
        code = dump_note(d, "the dump holds no debugger data (KDBG)%s",
                         d->source_count ? "; layouts could be checked by landmarks alone"
                                         : ", so no processor could be found");
    return code;
}

static int note_held(struct prcb_dump *d)
{
    size_t held = 0;

    for (size_t i = 0; i < d->processor_count; i++)
        held += d->processors[i].held;
    if (held == d->header.processors || !d->processor_count)
        return 0;
    return dump_note(d, "%zu of %u processors are in this dump", held, d->header.processors);
}

static int note_mxcsr(struct prcb_dump *d)
{
    for (size_t i = 0; i < d->source_count && d->machine == MACHINE_X64; i++) {
        uint64_t mxcsr;

        if (memory_load(&d->memory, d->sources[i].address, 4, &mxcsr) || mxcsr == 0x1f80)
            continue;
        return dump_note(
            d,
            "processor %u: MxCsr at the start of its KPRCB is 0x%llx, not 0x1f80: what "
            "is shown of it may be wrong",
            d->sources[i].number, (unsigned long long)mxcsr);
    }
    return 0;
}

static int note_landmark(struct prcb_dump *d)
{
    size_t confirmed = 0, held = 0;

    for (size_t i = 0; i < d->processor_count; i++) {
        held += d->processors[i].held && d->processors[i].has_kprcb;
        confirmed += d->processors[i].power_confirmed;
    }
    if (!d->has_power || !held || confirmed == held)
        return 0;
    return dump_note(
        d, "PowerState at 0x%x is confirmed by the KDPC landmark in %zu of %zu processors",
        d->power_offset, confirmed, held);
}

static int note_candidates(struct prcb_dump *d)
{
    struct slot slot;

    if (d->version_count < 2 || !d->kprcb.layout_count ||
        (!view_find(&d->kprcb, "KernelTime", &slot) && !view_find(&d->kprcb, "PowerState", &slot)))
        return 0;
    return dump_note(d,
                     "%zu layouts (%s) fit this dump and disagree; members on which they do are "
                     "left out",
                     d->version_count, d->info.layout);
}

/* What is in the catalog, and was read in the versions around this one alone. */
static int note_inferred(struct prcb_dump *d)
{
    const struct view *const views[] = {&d->kprcb, &d->power, &d->thread};
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(views) && !code; i++)
        if (views[i]->is_inferred && !symbols_have(d, views[i]->name))
            code = dump_note(d,
                             "%s was not read in %s: its layout is inferred from the versions "
                             "around it",
                             views[i]->name, views[i]->version);
    return code;
}

static bool is_idle(const struct prcb_dump_processor *p)
{
    const struct prcb_dump_value *thread = item(p, PRCB_DUMP_CurrentThread);
    const struct prcb_dump_value *idle = item(p, PRCB_DUMP_IdleThread);

    return thread && idle && thread->value == idle->value;
}

/* Numbers of processors in a line: "6, 7, 8". */
struct list {
    char text[200];
    size_t count, length;
};

static void list_add(struct list *l, uint32_t number)
{
    if (l->count++ < LIST_MOST && l->length < sizeof(l->text))
        l->length += (size_t)snprintf(l->text + l->length, sizeof(l->text) - l->length, "%s%u",
                                      l->count > 1 ? ", " : "", number);
    else if (l->count == LIST_MOST + 1 && l->length < sizeof(l->text))
        l->length += (size_t)snprintf(l->text + l->length, sizeof(l->text) - l->length, ", ...");
}

/* An idle processor takes no clock interrupts, and its ticks are made up for when it wakes. */
static int note_idle_behind(struct prcb_dump *d, const struct list *idle, uint64_t most_behind)
{
    if (!idle->count)
        return 0;
    return dump_note(d,
                     "%zu idle processor%s up to %.2f s behind in clock ticks, which idle ones may "
                     "be: %s",
                     idle->count, idle->count == 1 ? " is" : "s are", seconds(d, most_behind),
                     idle->text);
}

static int note_behind(struct prcb_dump *d)
{
    uint64_t most = 0, ticks, idle_most = 0;
    struct list idle = {0};
    uint32_t ahead = 0;
    int code = 0;

    if (!most_ticks(d, &most, &ahead))
        return 0;
    for (size_t i = 0; !code && i < d->processor_count; i++) {
        const struct prcb_dump_processor *p = &d->processors[i];
        bool is_named = d->header.bugcheck_code == 0x101 && p->has_kprcb &&
                        d->header.bugcheck_parameters[2] == p->kprcb;

        if (!ticks_of(p, &ticks) || most - ticks < BEHIND_TICKS)
            continue;
        if (is_idle(p) && !is_named) {
            list_add(&idle, p->number);
            idle_most = most - ticks > idle_most ? most - ticks : idle_most;
            continue;
        }
        code = dump_note(d,
                         "processor %u is %.2f s behind processor %u in clock ticks (%llu of "
                         "%llu) and not idle: it stopped taking clock interrupts%s",
                         p->number, seconds(d, most - ticks), ahead, (unsigned long long)ticks,
                         (unsigned long long)most,
                         is_named ? "; parameter 3 of the bug check is its KPRCB" : "");
    }
    return code ? code : note_idle_behind(d, &idle, idle_most);
}

static int note_watchdog(struct prcb_dump *d)
{
    static const struct {
        unsigned int count, limit;
        const char *words;
    } rows[] = {
        {PRCB_DUMP_DpcWatchdogCount, PRCB_DUMP_DpcWatchdogPeriod,
         "has spent its DPC watchdog period at DISPATCH_LEVEL or above: DpcWatchdogCount %llu of "
         "DpcWatchdogPeriod %llu ticks (%.1f s)"},
        {PRCB_DUMP_DpcTimeCount, PRCB_DUMP_DpcTimeLimit,
         "has spent the time limit in one DPC: DpcTimeCount %llu of DpcTimeLimit %llu ticks "
         "(%.1f s)"},
    };
    int code = 0;

    for (size_t i = 0; !code && i < d->processor_count; i++) {
        const struct prcb_dump_processor *p = &d->processors[i];

        for (size_t j = 0; !code && j < ARRAY_SIZE(rows); j++) {
            const struct prcb_dump_value *count = item(p, rows[j].count);
            const struct prcb_dump_value *limit = item(p, rows[j].limit);
            char text[300];

            if (!count || !limit || !limit->value || count->value < limit->value)
                continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof(text), rows[j].words, (unsigned long long)count->value,
                     (unsigned long long)limit->value, seconds(d, limit->value));
#pragma GCC diagnostic pop
            code = dump_note(d, "processor %u %s", p->number, text);
        }
    }
    return code;
}

/* The routine of the DPC that runs, if its KDPC is in the dump. */
static int take_active(const struct prcb_dump_dpc *dpc, void *ctx)
{
    if (!dpc->is_active || !dpc->is_held)
        return 0;
    *(uint64_t *)ctx = dpc->routine;
    return 1;
}

/* Bug checks of watchdogs: which processors were in a DPC, and whose. */
static int note_dpcs(struct prcb_dump *d)
{
    uint32_t bugcheck = d->header.bugcheck_code & ~0x10000000u;
    int code = 0;

    for (size_t i = 0; !code && i < d->processor_count && (bugcheck == 0x101 || bugcheck == 0x133);
         i++) {
        const struct prcb_dump_processor *p = &d->processors[i];
        const struct prcb_dump_value *running = item(p, PRCB_DUMP_DpcRoutineActive);
        const struct prcb_dump_value *active = item(p, PRCB_DUMP_ActiveDpc);
        const struct prcb_dump_value *depth = item(p, PRCB_DUMP_DpcQueueDepth);
        char place[160] = "", queue[64] = "";
        uint64_t routine = 0;

        if (!(running && running->value) && !(active && active->value))
            continue;
        if (prcb_dump_dpcs(d, i, take_active, &routine) > 0 &&
            prcb_dump_address_text(d, routine, place, sizeof(place)))
            snprintf(place, sizeof(place), "0x%llx", (unsigned long long)routine);
        if (depth && depth->value)
            snprintf(queue, sizeof(queue), "; %llu more %s queued",
                     (unsigned long long)depth->value, depth->value == 1 ? "was" : "were");
        code = dump_note(d, "processor %u was running DPCs%s%s%s", p->number,
                         *place ? ": the routine of the active one is " : "", place, queue);
    }
    return code;
}

static int note_parked(struct prcb_dump *d)
{
    struct list parked = {0};
    size_t known = 0;

    for (size_t i = 0; i < d->processor_count; i++) {
        const struct prcb_dump_processor *p = &d->processors[i];

        known += item(p, PRCB_DUMP_Parked) != NULL;
        if (item(p, PRCB_DUMP_Parked) && p->items[PRCB_DUMP_Parked].value)
            list_add(&parked, p->number);
    }
    if (!parked.count)
        return 0;
    return dump_note(d, "%zu of %zu processors %s parked: %s", parked.count, known,
                     parked.count == 1 ? "was" : "were", parked.text);
}

static int note_slept(struct prcb_dump *d)
{
    uint64_t most = 0, uptime = d->info.uptime_100ns, ran;
    uint32_t number = 0;

    if (!uptime || !most_ticks(d, &most, &number))
        return 0;
    ran = most * d->info.time_increment;
    if (uptime < ran || uptime - ran < 20000000)
        return 0;
    return dump_note(d,
                     "the uptime is %.2f s, the clock ticks of processor %u make %.2f s: %.2f s "
                     "passed without ticks, the machine slept%s",
                     (double)uptime / 1e7, number, (double)ran / 1e7, (double)(uptime - ran) / 1e7,
                     d->info.time_increment_source == PRCB_DUMP_FROM_DUMP
                         ? ""
                         : ", or the tick length is not the one used");
}

static int note_assumptions(struct prcb_dump *d)
{
    struct prcb_dump_info *info = &d->info;
    int code = 0;

    if (!d->processor_count)
        return 0;
    if (info->time_increment_source == PRCB_DUMP_ASSUMED)
        code = dump_note(d,
                         "the length of a clock tick is not in this dump: %u x 100 ns assumed "
                         "(--time-increment)",
                         info->time_increment);
    if (!code && info->qpc_source == PRCB_DUMP_ASSUMED)
        code = dump_note(d,
                         "the performance counter's frequency is not in this dump: %.1f MHz "
                         "assumed for IdleTimeTotal (--qpc-frequency)",
                         (double)info->qpc_frequency / 1e6);
    return code;
}

int notes_make(struct prcb_dump *d)
{
    static int (*const notes[])(struct prcb_dump *) = {
        note_file,   note_held,     note_mxcsr, note_landmark, note_candidates, note_inferred,
        note_behind, note_watchdog, note_dpcs,  note_parked,   note_slept,      note_assumptions,
    };
    int code = 0;

    for (size_t i = 0; !code && i < ARRAY_SIZE(notes); i++)
        code = notes[i](d);
    return code;
}
