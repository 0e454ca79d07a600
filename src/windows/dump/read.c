/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fills the processors' records: where each item is, once for the dump, then its value for each
 * processor. Also the walk over all members of one structure.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum base { BASE_KPRCB, BASE_POWER, BASE_IDLE, BASE_THREAD };

static const struct {
    const char *name, *path, *other;
    enum base base;
} items[PRCB_DUMP_ITEM_COUNT] = {
#define ROW(name, structure, path, other) {#name, path, other, BASE_##structure},
    PRCB_DUMP_ITEMS(ROW)
#undef ROW
};

static const char absent_layout[] = "its layout is not known";
static const char absent_member[] = "not in this version of Windows, or not in the catalog";
static const char absent_disputed[] = "the layouts that may fit disagree";
static const char absent_pointer[] = "its address is not in this dump";

/* An item's place, or why it has none. */
struct place {
    struct slot slot;
    const char *absent;
};

const char *prcb_dump_item_name(unsigned int item)
{
    return item < PRCB_DUMP_ITEM_COUNT ? items[item].name : NULL;
}

static const struct view *view_of(const struct prcb_dump *d, enum base base)
{
    if (base == BASE_KPRCB)
        return &d->kprcb;
    return base == BASE_POWER ? &d->power : &d->thread;
}

/* Members of a KPRCB that the debugger data or a landmark place. */
static bool place_otherwise(const struct prcb_dump *d, unsigned int item, struct slot *ret)
{
    uint32_t pointer = d->memory.pointer_size, times = d->times_offset, dog = d->watchdog_offset;
    const struct {
        unsigned int item;
        uint32_t offset, size;
        uint8_t found_by;
    } rows[] = {
        {PRCB_DUMP_MHz, d->kdbg.prcb_mhz, 4, PRCB_DUMP_BY_KDBG},
        {PRCB_DUMP_CurrentThread, d->kdbg.prcb_current_thread, pointer, PRCB_DUMP_BY_KDBG},
        {PRCB_DUMP_InterruptCount, times, 4, PRCB_DUMP_BY_LANDMARK},
        {PRCB_DUMP_KernelTime, times ? times + 4 : 0, 4, PRCB_DUMP_BY_LANDMARK},
        {PRCB_DUMP_UserTime, times ? times + 8 : 0, 4, PRCB_DUMP_BY_LANDMARK},
        {PRCB_DUMP_DpcTime, times ? times + 12 : 0, 4, PRCB_DUMP_BY_LANDMARK},
        /* on x86 a word lies between these two */
        {PRCB_DUMP_InterruptTime, times ? times + (pointer == 8 ? 16 : 20) : 0, 4,
         PRCB_DUMP_BY_LANDMARK},
        {PRCB_DUMP_DpcRoutineActive, d->kdbg.prcb_dpc_routine, 1, PRCB_DUMP_BY_KDBG},
        {PRCB_DUMP_DpcWatchdogPeriod, dog, 4, PRCB_DUMP_BY_LANDMARK},
        {PRCB_DUMP_DpcWatchdogCount, dog ? dog + 4 : 0, 4, PRCB_DUMP_BY_LANDMARK},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].item != item || !rows[i].offset)
            continue;
        *ret = (struct slot){.offset = rows[i].offset,
                             .size = rows[i].size,
                             .found_by = rows[i].found_by,
                             .is_pointer = item == PRCB_DUMP_CurrentThread};
        return true;
    }
    return false;
}

static const char *no_slot(const struct view *view, const char *path)
{
    struct prcb_layout_field field;

    if (!view->layout_count && !symbols_have(view->dump, view->name))
        return absent_layout;
    for (size_t i = 0; i < view->layout_count; i++) {
        if (!prcb_layout_lookup(view->layouts[i], path, &field, NULL) &&
            !(view->known_end && field.offset >= view->known_end))
            return absent_disputed;
    }
    return view->known_end ? absent_layout : absent_member;
}

static bool find_item(const struct view *view, unsigned int item, struct slot *ret)
{
    return !view_find(view, items[item].path, ret) ||
           (items[item].other && !view_find(view, items[item].other, ret));
}

static void place_item(const struct prcb_dump *d, unsigned int item, struct place *ret)
{
    const struct view *view = view_of(d, items[item].base);
    bool is_trusted = items[item].base != BASE_KPRCB || !d->distrust;

    *ret = (struct place){0};
    if (find_item(view, item, &ret->slot) &&
        (is_trusted || ret->slot.found_by == PRCB_DUMP_BY_SYMBOLS))
        return;
    if (place_otherwise(d, item, &ret->slot))
        return;
    ret->absent = is_trusted ? no_slot(view, items[item].path) : "the catalog's layout is refuted";
}

/* ---- one processor ---- */

static bool base_address(const struct prcb_dump *d, const struct source *source,
                         const struct prcb_dump_processor *p, enum base base, uint64_t *ret)
{
    const struct prcb_dump_value *pointer;

    switch (base) {
    case BASE_KPRCB:
        *ret = source->address;
        return true;
    case BASE_POWER:
        *ret = source->address + d->power_offset;
        return d->has_power;
    default:
        pointer = &p->items[base == BASE_IDLE ? PRCB_DUMP_IdleThread : PRCB_DUMP_CurrentThread];
        *ret = pointer->value;
        return pointer->found_by && pointer->value;
    }
}

/* Reads a slot's number, bit field or not. */
static enum memory_absence load_slot(const struct prcb_dump *d, uint64_t base,
                                     const struct slot *slot, uint64_t *ret)
{
    size_t size = slot->size <= 8 ? slot->size : 8;
    enum memory_absence why = memory_load(&d->memory, base + slot->offset, size, ret);

    if (why == MEMORY_PRESENT && slot->bit_width)
        *ret = *ret >> slot->bit_first &
               (slot->bit_width < 64 ? (1ull << slot->bit_width) - 1 : UINT64_MAX);
    return why;
}

static void read_item(const struct prcb_dump *d, const struct source *source,
                      const struct prcb_dump_processor *p, unsigned int item,
                      const struct place *place, struct prcb_dump_value *v)
{
    enum memory_absence why;
    uint64_t base;

    v->absent = place->absent;
    if (v->absent)
        return;
    if (!base_address(d, source, p, items[item].base, &base)) {
        v->absent = items[item].base == BASE_POWER ? absent_layout : absent_pointer;
        return;
    }
    why = load_slot(d, base, &place->slot, &v->value);
    if (why == MEMORY_PRESENT)
        v->found_by = place->slot.found_by;
    else
        v->absent = memory_words(why);
}

static void read_implementer(const struct prcb_dump *d, uint64_t address, char *ret, size_t size)
{
    const char *name;
    uint64_t code;

    if (memory_load(&d->memory, address, 4, &code) || !code)
        return;
    name = implementer_name((uint32_t)code);
    if (name)
        snprintf(ret, size, "%s", name);
    else
        snprintf(ret, size, "0x%x", (uint32_t)code);
}

#define VENDOR_LENGTH 12

static void read_vendor(const struct prcb_dump *d, const struct source *source, char *ret,
                        size_t size)
{
    struct slot slot;
    size_t i = 0;

    if (d->distrust || view_find(&d->kprcb, "VendorString", &slot))
        slot = (struct slot){.offset = d->kdbg.prcb_vendor};
    if (!slot.offset)
        return;
    if (d->machine == MACHINE_ARM64) {
        read_implementer(d, source->address + slot.offset, ret, size);
        return;
    }
    if (memory_read(&d->memory, source->address + slot.offset, ret, VENDOR_LENGTH))
        return;
    while (i < VENDOR_LENGTH && ret[i] >= 0x20 && ret[i] <= 0x7e)
        i++;
    ret[i] = '\0';
}

static uint32_t read_number(const struct prcb_dump *d, const struct source *source, size_t index)
{
    struct slot slot;
    uint64_t number;

    if (source->has_number)
        return source->number;
    if (view_find(&d->kprcb, "Number", &slot) || d->distrust)
        slot = (struct slot){.offset = d->kdbg.prcb_number, .size = 4};
    if (slot.offset && !load_slot(d, source->address, &slot, &number))
        return (uint32_t)number;
    return (uint32_t)index;
}

static void read_power(const struct prcb_dump *d, const struct source *source,
                       struct prcb_dump_processor *p)
{
    if (!d->has_power)
        return;
    p->has_power_state = true;
    p->power_offset = d->power_offset;
    p->power_found = d->power_found;
    p->power_confirmed = d->power_kdpc && landmark_holds(d, source, d->power_kdpc);
    p->power_version = symbols_have(d, "PROCESSOR_POWER_STATE") ? "symbols" : d->power.version;
}

static int by_number(const void *a, const void *b)
{
    const struct prcb_dump_processor *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_source_number(const void *a, const void *b)
{
    const struct source *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

int processors_read(struct prcb_dump *d, struct prcb_error *err)
{
    struct place places[PRCB_DUMP_ITEM_COUNT];

    for (unsigned int i = 0; i < PRCB_DUMP_ITEM_COUNT; i++)
        place_item(d, i, &places[i]);
    d->processors = calloc(d->source_count + 1, sizeof(*d->processors));
    d->items = calloc((d->source_count + 1) * PRCB_DUMP_ITEM_COUNT, sizeof(*d->items));
    if (!d->processors || !d->items)
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    for (size_t i = 0; i < d->source_count; i++)
        d->sources[i].number = read_number(d, &d->sources[i], i);
    array_sort(d->sources, d->source_count, by_source_number);
    for (size_t i = 0; i < d->source_count; i++) {
        struct prcb_dump_processor *p = &d->processors[d->processor_count++];
        struct prcb_dump_value *values = d->items + i * PRCB_DUMP_ITEM_COUNT;
        const struct source *source = &d->sources[i];

        p->items = values;
        p->number = source->number;
        p->crashing = source->is_crashing;
        p->held = source->is_held;
        p->has_kprcb = !source->is_made_up;
        p->kprcb = source->is_made_up ? 0 : source->address;
        for (unsigned int item = 0; item < PRCB_DUMP_ITEM_COUNT; item++)
            read_item(d, source, p, item, &places[item], &values[item]);
        read_vendor(d, source, p->vendor, sizeof(p->vendor));
        read_power(d, source, p);
    }
    array_sort(d->processors, d->processor_count, by_number);
    return 0;
}
