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

/* Bytes of KPRCBs: in the file where they lie in one piece there, else a copy in which what is not
 * held is 0. */
struct sample {
    const uint8_t *bytes[SAMPLES];
    uint8_t *copies[SAMPLES];
    uint64_t address[SAMPLES];
    size_t count;
    uint32_t length;
};

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
        memcpy(to + done, bytes, left);
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

static bool holds_in_all(const struct prcb_dump *d, const struct sample *s, uint32_t at)
{
    for (size_t i = 0; i < s->count; i++) {
        const uint8_t *bytes = s->bytes[i] + at;

        if (!s->address[i] || bytes[0] != KDPC_TYPE ||
            load_le(bytes + context_offset(d), d->memory.pointer_size) != s->address[i])
            return false;
    }
    return true;
}

bool landmark_find(const struct prcb_dump *d, uint32_t *ret)
{
    struct sample s;
    uint32_t found = 0;
    size_t count = 0;

    if (!sample_take(d, &s))
        return false;
    for (uint32_t at = 0; at + KDPC_LENGTH <= s.length; at += d->memory.pointer_size) {
        if (holds_in_all(d, &s, at)) {
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

/* InterruptCount at `at`, then kernel, user, DPC and interrupt ticks. A processor may lag, none may
 * be ahead, the best must be within half a second, and most within ten. Interrupts are not rarer
 * than one in eight ticks (an idle processor takes none), DPC and interrupt time is kernel time. */
static bool times_fit(const struct sample *s, uint32_t at, uint64_t ticks)
{
    uint64_t best = UINT64_MAX, interrupts = 0, sums = 0;
    size_t near = 0;

    for (size_t i = 0; i < s->count; i++) {
        const uint8_t *b = s->bytes[i] + at;
        uint64_t kernel = load_le(b + 4, 4), sum = kernel + load_le(b + 8, 4), behind;

        if (sum > ticks + 1 || load_le(b + 12, 4) + load_le(b + 16, 4) > kernel)
            return false;
        interrupts += load_le(b, 4);
        sums += sum;
        behind = sum > ticks ? 0 : ticks - sum;
        best = behind < best ? behind : best;
        near += behind <= 640;
    }
    return best <= 32 && near * 2 > s->count && interrupts >= sums / 8;
}

bool landmark_times(const struct prcb_dump *d, uint32_t *ret)
{
    uint64_t ticks = d->header.uptime / TICK;
    struct sample s;
    uint32_t found = 0;
    size_t count = 0;

    /* a young machine's ticks are like many other small numbers */
    if (ticks < 128 || !sample_take(d, &s))
        return false;
    for (uint32_t at = 0; at + 20 <= s.length; at += 4) {
        if (times_fit(&s, at, ticks)) {
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

bool landmark_watchdog(const struct prcb_dump *d, uint32_t times, uint32_t *ret)
{
    struct sample s;
    uint32_t found = 0;
    size_t count = 0;

    if (!sample_take(d, &s))
        return false;
    for (uint32_t at = 0; at + 8 <= times && at + 8 <= s.length; at += 4) {
        bool fits = true;

        for (size_t i = 0; fits && i < s.count; i++)
            fits = load_le(s.bytes[i] + at, 4) == WATCHDOG_PERIOD &&
                   load_le(s.bytes[i] + at + 4, 4) <= WATCHDOG_PERIOD;
        if (fits) {
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
