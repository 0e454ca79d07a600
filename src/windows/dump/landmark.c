/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the bytes themselves tell, with no layout: patterns that hold in each KPRCB of a dump.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

#define KDPC_TYPE       0x13
#define KDPC_LENGTH     0x40
#define WATCHDOG_PERIOD 7680   /* ticks: 120 s */
#define TICK            156250 /* 100 ns: what the landmarks were seen with */
#define SAMPLES         16     /* KPRCBs that a search looks at */

/* Holds bytes of KPRCBs: in the file where they lie in one piece there, else a copy in which what
 * is not held is 0. */
struct sample {
    const uint8_t *bytes[SAMPLES];
    uint8_t *copies[SAMPLES];
    uint64_t address[SAMPLES];
    size_t count;
    uint32_t length;
};

uint32_t kprcb_length(const struct prcb_dump *d)
{
    const struct triage *t = &d->triage;
    const uint32_t others[] = {t->process, t->thread, t->kdbg, t->blocks, (uint32_t)d->file.size};
    uint32_t length = symbols_size(d, "KPRCB");

    if (!length)
        length = d->kdbg.prcb_size;
    if (length)
        return length < KPRCB_MOST ? length : KPRCB_MOST;
    if (!t->prcb)
        return d->memory.pointer_size == 8 ? 0x10000 : 0x8000;
    length = KPRCB_MOST; /* up to what follows it in the file */
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (others[i] > t->prcb && others[i] - t->prcb < length)
            length = others[i] - t->prcb;
    }
    return length;
}

static uint32_t context_offset(const struct prcb_dump *d)
{
    return d->memory.pointer_size == 8 ? 0x20 : 0x10;
}

bool landmark_holds(const struct prcb_dump *d, const struct source *source, uint32_t offset)
{
    uint64_t type, context, kdpc = source->address + offset;

    return !source->is_made_up && !memory_load(&d->memory, kdpc, 1, &type) && type == KDPC_TYPE &&
           !memory_pointer(&d->memory, kdpc + context_offset(d), &context) &&
           context == source->address;
}

uint64_t landmark_owner(const struct prcb_dump *d, const uint8_t *bytes, uint64_t length)
{
    const struct machine_row *row = &machine_rows[d->machine];
    uint64_t found = 0;

    for (uint64_t at = 0; at + KDPC_LENGTH <= length; at += row->pointer_size) {
        uint64_t context;

        if (bytes[at] != KDPC_TYPE)
            continue;
        context = load_le(bytes + at + context_offset(d), row->pointer_size);
        if (context < row->kernel_base || (context & (PAGE_SIZE - 1)) != row->kprcb_in_page)
            continue;
        if (found && context != found)
            return 0;
        found = context;
    }
    return found;
}

/* Copies what is held, page by page. */
static void copy_held(const struct prcb_dump *d, uint64_t address, uint8_t *to, uint32_t length)
{
    uint32_t done = 0;

    while (done < length) {
        uint64_t left = 0;
        enum memory_absence why;
        const uint8_t *bytes = memory_at(&d->memory, address + done, &left, &why);

        if (!bytes) {
            done += PAGE_SIZE - (uint32_t)((address + done) & (PAGE_SIZE - 1));
            continue;
        }
        if (left > length - done)
            left = length - done;
        memcpy(to + done, bytes, (size_t)left);
        done += (uint32_t)left;
    }
}

static void sample_free(struct sample *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->copies[i]);
    s->count = 0;
}

static bool sample_add(const struct prcb_dump *d, struct sample *s, const struct source *source)
{
    uint64_t left = 0;
    enum memory_absence why;
    const uint8_t *bytes = memory_at(&d->memory, source->address, &left, &why);

    s->copies[s->count] = NULL;
    if (!bytes || left < s->length) {
        s->copies[s->count] = calloc(1, s->length);
        if (!s->copies[s->count])
            return false;
        copy_held(d, source->address, s->copies[s->count], s->length);
        bytes = s->copies[s->count];
    }
    s->address[s->count] = source->is_made_up ? 0 : source->address;
    s->bytes[s->count++] = bytes;
    return true;
}

static bool sample_take(const struct prcb_dump *d, struct sample *ret)
{
    *ret = (struct sample){.length = kprcb_length(d)};
    for (size_t i = 0; i < d->source_count && ret->count < SAMPLES; i++) {
        if (d->sources[i].is_held && !sample_add(d, ret, &d->sources[i]))
            break;
    }
    return ret->count > 0;
}

/* What a pattern is looked for with. */
struct pattern {
    const struct prcb_dump *d;
    uint64_t ticks;       /* since the boot: of times */
    uint32_t step;        /* from one offset that is tried to the next */
    uint32_t length, end; /* bytes it takes, and where they end at the latest */
    bool (*fits)(const struct pattern *p, const struct sample *s, uint32_t at);
};

/* The one offset at which a pattern fits all KPRCBs: where several do, none tells anything. */
static bool find_one(const struct pattern *p, uint32_t *ret)
{
    struct sample s;
    uint32_t found = 0;
    size_t count = 0;

    if (!sample_take(p->d, &s))
        return false;
    for (uint32_t at = 0; at + p->length <= s.length && at + p->length <= p->end; at += p->step) {
        if (p->fits(p, &s, at)) {
            found = at;
            count++;
        }
    }
    sample_free(&s);
    if (count != 1)
        return false;
    *ret = found;
    return true;
}

static bool kdpc_fits(const struct pattern *p, const struct sample *s, uint32_t at)
{
    for (size_t i = 0; i < s->count; i++) {
        const uint8_t *bytes = s->bytes[i] + at;

        if (!s->address[i] || bytes[0] != KDPC_TYPE ||
            load_le(bytes + context_offset(p->d), p->d->memory.pointer_size) != s->address[i])
            return false;
    }
    return true;
}

bool landmark_find(const struct prcb_dump *d, uint32_t *ret)
{
    const struct pattern kdpc = {.d = d,
                                 .end = UINT32_MAX,
                                 .step = d->memory.pointer_size,
                                 .length = KDPC_LENGTH,
                                 .fits = kdpc_fits};

    return find_one(&kdpc, ret);
}

/* InterruptCount at `at`, then kernel, user, DPC and interrupt ticks. A processor may lag, none may
 * be ahead, the best must be within half a second, and most within ten. Interrupts are not rarer
 * than one in eight ticks (an idle processor takes none), DPC and interrupt time is kernel time. */
static bool times_fit(const struct pattern *p, const struct sample *s, uint32_t at)
{
    uint64_t best = UINT64_MAX, interrupts = 0, sums = 0;
    size_t near = 0;

    for (size_t i = 0; i < s->count; i++) {
        const uint8_t *b = s->bytes[i] + at;
        uint64_t kernel = load_le(b + 4, 4), sum = kernel + load_le(b + 8, 4), behind;

        if (sum > p->ticks + 1 || load_le(b + 12, 4) + load_le(b + 16, 4) > kernel)
            return false;
        interrupts += load_le(b, 4);
        sums += sum;
        behind = sum > p->ticks ? 0 : p->ticks - sum;
        best = behind < best ? behind : best;
        near += behind <= 640;
    }
    return best <= 32 && near * 2 > s->count && interrupts >= sums / 8;
}

bool landmark_times(const struct prcb_dump *d, uint32_t *ret)
{
    const struct pattern times = {.d = d,
                                  .ticks = d->header.uptime / TICK,
                                  .end = UINT32_MAX,
                                  .step = 4,
                                  .length = 20,
                                  .fits = times_fit};

    /* a young machine's ticks are like many other small numbers */
    return times.ticks >= 128 && find_one(&times, ret);
}

static bool watchdog_fits(const struct pattern *p, const struct sample *s, uint32_t at)
{
    for (size_t i = 0; i < s->count; i++) {
        if (load_le(s->bytes[i] + at, 4) != WATCHDOG_PERIOD ||
            load_le(s->bytes[i] + at + 4, 4) > WATCHDOG_PERIOD)
            return false;
    }
    return true;
}

bool landmark_watchdog(const struct prcb_dump *d, uint32_t times, uint32_t *ret)
{
    const struct pattern watchdog = {
        .d = d, .end = times, .step = 4, .length = 8, .fits = watchdog_fits};

    return find_one(&watchdog, ret);
}

static bool is_kernel(const struct prcb_dump *d, uint64_t address)
{
    return address >= machine_rows[d->machine].kernel_base && address < UINT64_MAX - PAGE_SIZE;
}

bool landmark_power(const struct prcb_dump *d, uint32_t kdpc, uint32_t *ret)
{
    unsigned int size = d->memory.pointer_size;
    struct sample s;
    uint32_t at;
    bool found = false;

    if (!sample_take(d, &s))
        return false;
    for (at = kdpc & ~63u; !found && at >= 64 && kdpc - at <= 0x200; at -= 64) {
        found = true;
        for (size_t i = 0; found && i < s.count; i++)
            found = at + 16 <= s.length && is_kernel(d, load_le(s.bytes[i] + at, size)) &&
                    is_kernel(d, load_le(s.bytes[i] + at + size, size));
        if (found)
            *ret = at;
    }
    sample_free(&s);
    return found;
}
