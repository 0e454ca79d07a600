/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "first_line.h"
#include "now.h"

#define YOUNGEST_BASE_NS 50000000ull
#define LIFE_NS          1000000000ull

/* The kernel keeps time by the counter only after checking that it runs alike on
 * every processor; a clock source with another name means it does not trust it. */
static bool kernel_trusts_counter(void)
{
    static const char *const good[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                       "arch_sys_counter"};
    char name[64];

    if (!first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                    sizeof(name)))
        return false;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (!strcmp(name, good[i]))
            return true;
    }
    return false;
}

static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#elif defined(__aarch64__)
    return true; /* the architecture says so */
#else
    return false;
#endif
}

/* Reads both clocks at one moment: the tightest of a few tries. */
static void sample(uint64_t *ret_ticks, uint64_t *ret_mono)
{
    uint64_t tightest = UINT64_MAX;

    *ret_ticks = *ret_mono = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t before = clock_ticks();
        uint64_t mono = now_ns();
        uint64_t width = clock_ticks() - before;

        if (width < tightest) {
            tightest = width;
            *ret_ticks = before + width / 2;
            *ret_mono = mono;
        }
    }
}

void clock_base_init(struct clock_base *base)
{
    base->kernel_uses = kernel_trusts_counter();
    base->use_ticks = base->kernel_uses && counter_is_invariant();
    sample(&base->ticks, &base->mono);
}

void clock_calibrate(struct clock *clock, const struct clock_base *base)
{
    uint64_t ticks, mono, age;

    sample(&ticks, &mono);
    age = mono - base->mono;
    clock->ticks = ticks;
    clock->mono = mono;
    clock->mult = 0;
    clock->life = 0;
    if (age < YOUNGEST_BASE_NS || ticks <= base->ticks)
        return;
    clock->mult = wide_scale(age, 1ull << 32, ticks - base->ticks);
    clock->life = wide_scale(ticks - base->ticks, LIFE_NS, age);
}

double clock_tick_rate(const struct clock_base *base)
{
    uint64_t ticks, mono;

    if (!base->use_ticks)
        return 0;
    sample(&ticks, &mono);
    if (mono <= base->mono)
        return 0;
    return (double)(ticks - base->ticks) * 1e9 / (double)(mono - base->mono);
}
