/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processors that are as a test says, in place of the library's: include it in one file of the
 * test's program. Any number of them, any values, errors.
 */
#ifndef PRCB_TEST_FAKE_PROCESSORS_H
#define PRCB_TEST_FAKE_PROCESSORS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/processors.h>

#define FAKE_MOST 300
#define FAKE_ALL  ((1ull << 20) - 1) /* every enum prcb_processor_member */

static struct fake {
    uint32_t count;
    enum prcb_tier tier;
    struct prcb_processor cpus[FAKE_MOST];
    uint64_t lacking; /* members that no record has */
    int open_error, read_error, refresh_error;
    unsigned stuck_reads; /* not 0: so many fail with read_error, then none */
    unsigned opens, closes, refreshes, reads;
} fake;

struct prcb_processors {
    char nothing;
};

/* Totals that differ in every member and processor, and are no round numbers of 100 ns. */
static inline void fake_fill(uint32_t count)
{
    static const char *const names[] = {"POLL", "C1", "C1E", "C6"};

    memset(&fake, 0, sizeof(fake));
    fake.count = count;
    fake.tier = PRCB_TIER_BPF;
    for (uint32_t i = 0; i < count; i++) {
        struct prcb_processor *cpu = &fake.cpus[i];
        uint64_t unit = 1000 * (i + 1);

        *cpu = (struct prcb_processor){
            .present = FAKE_ALL,
            .number = i,
            .flags = PRCB_CPU_ONLINE,
            .idle_ns = 1000003 * unit + 99,
            .user_ns = 200017 * unit + 77,
            .kernel_ns = 30011 * unit + 50,
            .dpc_ns = 4001 * unit + 50,
            .interrupt_ns = 503 * unit + 49,
            .steal_ns = 61 * unit + 1,
            .interrupts = 0x100000007 + i,
            .dpcs = 0x200000100 + 3 * i,
            .switches = 0x300001000 + 5 * i,
            .idle_entries = 0x400010000 + 7 * i,
            .mhz = 1800,
            .max_mhz = 3600,
            .limit_mhz = 2700,
            .min_mhz = 900,
            .nominal_mhz = 3000,
            .idle_state = 2,
            .idle_state_count = 4,
        };
        for (unsigned s = 0; s < 4; s++) {
            strcpy(cpu->idle_states[s].name, names[s]);
            cpu->idle_states[s].entries = 0x500000000 + 10 * s + i;
            cpu->idle_states[s].residency_ns = (s + 1) * 7000 * unit + 42;
        }
    }
}

int prcb_processors_open(const struct prcb_processors_options *opts, struct prcb_processors **ret,
                         struct prcb_error *err)
{
    fake.opens++;
    if (fake.open_error) {
        if (err) {
            err->code = fake.open_error;
            strcpy(err->text, "the test says no");
        }
        return fake.open_error;
    }
    *ret = malloc(sizeof(**ret));
    return 0;
}

void prcb_processors_close(struct prcb_processors *v)
{
    fake.closes += v != NULL;
    free(v);
}

enum prcb_tier prcb_processors_tier(const struct prcb_processors *v)
{
    return fake.tier;
}

const char *prcb_processors_tier_reason(const struct prcb_processors *v)
{
    return NULL;
}

uint32_t prcb_processors_count(const struct prcb_processors *v)
{
    return fake.count;
}

int prcb_processors_refresh(struct prcb_processors *v, struct prcb_error *err)
{
    fake.refreshes++;
    return fake.refresh_error;
}

int prcb_processor_read(struct prcb_processors *v, uint32_t number, struct prcb_processor *ret)
{
    fake.reads++;
    if (number >= fake.count || ret->size != sizeof(*ret))
        abort();
    if (fake.stuck_reads && --fake.stuck_reads == 0)
        fake.read_error = 0;
    if (fake.read_error)
        return fake.read_error;
    *ret = fake.cpus[number];
    ret->size = sizeof(*ret);
    ret->present &= ~fake.lacking;
    return 0;
}

int prcb_processors_times(struct prcb_processors *v, struct prcb_processor_times *ret, size_t size,
                          uint32_t count)
{
    abort(); /* nothing here wants it */
}

void prcb_processor_sub(const struct prcb_processor *later, const struct prcb_processor *earlier,
                        struct prcb_processor *ret)
{
    abort(); /* nothing here wants it */
}

const char *prcb_processor_absent_reason(const struct prcb_processors *v, uint64_t member)
{
    return fake.lacking & member ? "the test took it away" : NULL;
}

#endif
