/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reading a counter in user mode: the page that the kernel maps for a perf event,
 * under its sequence count, and the processor's own counter. For the thread that is
 * counted only. Pure functions over the page but for the counter, which is handed in
 * as a function, so that recorded pages can be read as well.
 */
#ifndef PRCB_COUNTERS_COUNTER_PAGE_H
#define PRCB_COUNTERS_COUNTER_PAGE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t (*counter_pmc_fn)(uint32_t index);
typedef uint64_t (*counter_ticks_fn)(void);

/* What was read. Times are of this moment if live is set; else they are as of the
 * kernel's last update of the page (a switch, a rotation), so true ones are longer by
 * the same stretch, both. */
struct counter_reading {
    uint64_t value;
    uint64_t enabled_ns;
    uint64_t running_ns;
    uint32_t passes;
    bool live;
};

#define COUNTER_PAGE_PASSES 1000

/* Returns the low width bits of a counter as a signed number: the kernel starts a counter below
 * zero, so that page offset + this is the count on both sides of its wrap. */
static inline int64_t counter_sign_extend(uint64_t pmc, uint32_t width)
{
    uint32_t shift;

    if (width == 0 || width >= 64)
        return (int64_t)pmc;
    shift = 64 - width;
    return (int64_t)(pmc << shift) >> shift;
}

/* Nanoseconds since the page's times were true, from the processor's time counter. */
static inline uint64_t counter_page_elapsed(const volatile struct perf_event_mmap_page *page,
                                            uint64_t ticks)
{
    uint64_t mask, quotient, rest;

    if (page->cap_user_time_short) {
        mask = page->time_mask;
        ticks = page->time_cycles + ((ticks - page->time_cycles) & mask);
    }
    mask = (1ull << page->time_shift) - 1;
    quotient = ticks >> page->time_shift;
    rest = ticks & mask;
    return page->time_offset + quotient * page->time_mult +
           ((rest * page->time_mult) >> page->time_shift);
}

/* Returns false if the counter cannot be read this way now: it is not allowed, or not on the
 * processor (multiplexed out), or the page kept changing. Compiler barriers are enough, for the
 * kernel writes the page on the processor that the reader runs on. */
static inline bool counter_page_read(const volatile struct perf_event_mmap_page *page,
                                     counter_pmc_fn pmc, counter_ticks_fn ticks,
                                     struct counter_reading *ret)
{
    for (uint32_t pass = 1; pass <= COUNTER_PAGE_PASSES; pass++) {
        struct counter_reading reading = {.passes = pass};
        uint32_t seq = page->lock, index;

        __asm__ volatile("" ::: "memory");
        index = page->index;
        reading.enabled_ns = page->time_enabled;
        reading.running_ns = page->time_running;
        reading.value = (uint64_t)page->offset;
        if (!page->cap_user_rdpmc || !index)
            return false;
        if (page->cap_user_time) {
            uint64_t elapsed = counter_page_elapsed(page, ticks());

            reading.enabled_ns += elapsed;
            reading.running_ns += elapsed;
            reading.live = true;
        }
        reading.value += (uint64_t)counter_sign_extend(pmc(index - 1), page->pmc_width);
        __asm__ volatile("" ::: "memory");
        if (page->lock == seq && !(seq & 1)) {
            *ret = reading;
            return true;
        }
    }
    return false;
}

/* Reads the processor's counter of this number. */
static inline uint64_t counter_pmc(uint32_t index)
{
#if defined(__x86_64__) || defined(__i386__)
    uint32_t low, high;

    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t value = 0;

    /* Event counters are registers of their own, and 31 is the cycle counter. */
#define COUNTER_PMC_ROW(n)                                                                         \
    case n:                                                                                        \
        __asm__ volatile("mrs %0, pmevcntr" #n "_el0" : "=r"(value));                              \
        break;
    __asm__ volatile("isb" ::: "memory"); /* count what came before */
    switch (index) {
        COUNTER_PMC_ROW(0)
        COUNTER_PMC_ROW(1)
        COUNTER_PMC_ROW(2)
        COUNTER_PMC_ROW(3)
        COUNTER_PMC_ROW(4)
        COUNTER_PMC_ROW(5)
        COUNTER_PMC_ROW(6)
        COUNTER_PMC_ROW(7)
        COUNTER_PMC_ROW(8)
        COUNTER_PMC_ROW(9)
        COUNTER_PMC_ROW(10)
        COUNTER_PMC_ROW(11)
        COUNTER_PMC_ROW(12)
        COUNTER_PMC_ROW(13)
        COUNTER_PMC_ROW(14)
        COUNTER_PMC_ROW(15)
        COUNTER_PMC_ROW(16)
        COUNTER_PMC_ROW(17)
        COUNTER_PMC_ROW(18)
        COUNTER_PMC_ROW(19)
        COUNTER_PMC_ROW(20)
        COUNTER_PMC_ROW(21)
        COUNTER_PMC_ROW(22)
        COUNTER_PMC_ROW(23)
        COUNTER_PMC_ROW(24)
        COUNTER_PMC_ROW(25)
        COUNTER_PMC_ROW(26)
        COUNTER_PMC_ROW(27)
        COUNTER_PMC_ROW(28)
        COUNTER_PMC_ROW(29)
        COUNTER_PMC_ROW(30)
    case 31:
        __asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
        break;
    default:
        break;
    }
#undef COUNTER_PMC_ROW
    return value;
#else
    return 0; /* the kernel never gives an index */
#endif
}

#endif
