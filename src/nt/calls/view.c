/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The process's view of the processors.
 */
#include "view.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "now.h"
#include "sized.h"

#define SECOND     1000000000ull
#define READ_TRIES 10

static struct {
    struct prcb_processors *view;
    uint32_t count, active;
    struct nt_cpu *cpus;
    struct prcb_processor *records; /* as told */
    struct prcb_processor *scratch; /* as being read */
    uint64_t switches_before;       /* of all processors, till the opening */
    uint64_t looked;                /* CLOCK_MONOTONIC, when that was done */
    struct procfs files;
} now = {.files.root = -1};

static struct prcb_processors_options options = {.size = sizeof(options)};
static char *options_root; /* what options.root points to */

void nt_view_forget(void)
{
    prcb_processors_close(now.view);
    procfs_close(&now.files);
    free(now.cpus);
    free(now.records);
    free(now.scratch);
    memset(&now, 0, sizeof(now));
    now.files.root = -1;
}

/* Programs for Windows do not try again. A hypervisor may keep a processor in the middle of an
 * update for longer than one read waits (20 ms). */
static int read_one(uint32_t number)
{
    int result = -EAGAIN;

    for (int i = 0; i < READ_TRIES && result == -EAGAIN; i++) {
        now.scratch[number].size = sizeof(now.scratch[number]);
        result = prcb_processor_read(now.view, number, &now.scratch[number]);
    }
    return result;
}

/* Changes are noticed only here: the set of active processors never shrinks. */
static int read_all(void)
{
    for (uint32_t i = 0; i < now.count; i++) {
        struct prcb_processor *record = &now.scratch[i];
        int result = read_one(i);

        if (result)
            return result;
        if (record->flags & PRCB_CPU_ONLINE && i >= now.active)
            now.active = i + 1;
    }
    return 0;
}

static uint64_t before(uint64_t whole, uint64_t measured)
{
    return whole > measured ? whole - measured : 0;
}

/* Computes a processor's figures up to the opening: the kernel's total now, less what the view has
 * measured already. */
static void begin_at_boot(struct nt_boot *boot, const struct prcb_processor *record)
{
    boot->idle_ns = before(boot->idle_ns, record->idle_ns);
    boot->user_ns = before(boot->user_ns, record->user_ns);
    boot->kernel_ns = before(boot->kernel_ns, record->kernel_ns);
    boot->dpc_ns = before(boot->dpc_ns, record->dpc_ns);
    boot->interrupt_ns = before(boot->interrupt_ns, record->interrupt_ns);
    boot->steal_ns = before(boot->steal_ns, record->steal_ns);
    boot->interrupts = before(boot->interrupts, record->interrupts);
    boot->dpcs = before(boot->dpcs, record->dpcs);
    for (uint32_t i = 0; i < boot->idle_state_count; i++) {
        const struct prcb_idle_state *state = &record->idle_states[i];

        boot->idle_states[i].entries = before(boot->idle_states[i].entries, state->entries);
        boot->idle_states[i].residency_ns =
            before(boot->idle_states[i].residency_ns, state->residency_ns);
    }
}

static int read_boot(struct prcb_error *err)
{
    struct nt_boot *boot = calloc(now.count, sizeof(*boot));
    uint64_t switches = 0;
    int result = boot ? 0 : -ENOMEM;

    if (!result)
        result = nt_boot_read(&now.files, now.count, boot, &switches, err);
    if (!result)
        result = read_all();
    for (uint32_t i = 0; i < now.count && !result; i++) {
        begin_at_boot(&boot[i], &now.scratch[i]);
        switches = before(switches, now.scratch[i].switches);
        now.cpus[i].boot = boot[i];
        now.cpus[i].rate_at = now.looked;
        now.cpus[i].rate_dpcs = boot[i].dpcs;
    }
    now.switches_before = switches;
    free(boot);
    return result;
}

static int fill(struct prcb_error *err)
{
    int result;

    now.count = prcb_processors_count(now.view);
    now.cpus = calloc(now.count, sizeof(*now.cpus));
    now.records = calloc(now.count, sizeof(*now.records));
    now.scratch = calloc(now.count, sizeof(*now.scratch));
    if (!now.cpus || !now.records || !now.scratch)
        return -ENOMEM;
    now.looked = now_ns();
    nt_cycles_begin();
    result = procfs_open(&now.files, options.root ? options.root : "/");
    return result ? result : read_boot(err);
}

static NTSTATUS open_view(void)
{
    struct prcb_error err = {0};
    int result = prcb_processors_open(&options, &now.view, &err);

    if (!result)
        result = fill(&err);
    now.looked = now_ns();
    if (!result && !now.active)
        result = -ENODEV;
    if (!result)
        return STATUS_SUCCESS;
    nt_view_forget();
    return nt_fail_errno(result, &err);
}

/* On that tier nothing is current unless it was just read. */
static bool in_files(void)
{
    return prcb_processors_tier(now.view) == PRCB_TIER_PERF;
}

/* Looks again on request, or if the last look was a second ago. */
static NTSTATUS look(bool fresh)
{
    struct prcb_error err = {0};
    int result = 0;

    if (!now.view)
        return open_view();
    if (!fresh && now_ns() - now.looked < SECOND)
        return STATUS_SUCCESS;
    if (fresh || in_files())
        result = prcb_processors_refresh(now.view, &err);
    if (!result)
        result = read_all();
    if (result)
        return nt_fail_errno(result, &err);
    now.looked = now_ns(); /* thousands of processors take longer than a second */
    if (!(now.scratch[0].flags & PRCB_CPU_ORPHAN))
        return STATUS_SUCCESS;
    /* Its writers are gone. From now on the open stretch continues from the kernel's totals. */
    nt_view_forget();
    return open_view();
}

NTSTATUS nt_view_look(bool fresh)
{
    return look(fresh || (now.view && in_files()));
}

NTSTATUS nt_view_glance(void)
{
    return look(false);
}

NTSTATUS nt_view_have(void)
{
    return now.view ? STATUS_SUCCESS : open_view();
}

uint32_t nt_view_active(void)
{
    return now.active;
}

uint32_t nt_current_group(void)
{
    int processor = sched_getcpu();

    return processor < 0 ? 0 : (uint32_t)processor / NT_GROUP_SIZE;
}

bool nt_group(uint32_t group, uint32_t *ret_first, uint32_t *ret_count)
{
    uint32_t active = nt_view_active(), first = group * NT_GROUP_SIZE;

    if (first >= active)
        return false;
    *ret_first = first;
    *ret_count = active - first < NT_GROUP_SIZE ? active - first : NT_GROUP_SIZE;
    return true;
}

static void carry_back(const struct prcb_processor *from, const struct nt_boot *boot,
                       struct prcb_processor *ret)
{
    *ret = *from;
    if (from->present & PRCB_CPU_HAS_TIMES) {
        ret->idle_ns += boot->idle_ns;
        ret->user_ns += boot->user_ns;
        ret->kernel_ns += boot->kernel_ns;
    }
    ret->dpc_ns += from->present & PRCB_CPU_HAS_DPC ? boot->dpc_ns : 0;
    ret->interrupt_ns += from->present & PRCB_CPU_HAS_INTERRUPT ? boot->interrupt_ns : 0;
    ret->steal_ns += from->present & PRCB_CPU_HAS_STEAL ? boot->steal_ns : 0;
    ret->interrupts += from->present & PRCB_CPU_HAS_INTERRUPTS ? boot->interrupts : 0;
    ret->dpcs += from->present & PRCB_CPU_HAS_DPCS ? boot->dpcs : 0;
    for (uint32_t i = 0; i < boot->idle_state_count && i < from->idle_state_count; i++) {
        ret->idle_states[i].entries += boot->idle_states[i].entries;
        ret->idle_states[i].residency_ns += boot->idle_states[i].residency_ns;
    }
}

NTSTATUS nt_view_read(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        int result = read_one(i);

        if (result)
            return nt_fail(nt_status(result), "processor %u: %s", i, strerror(-result));
    }
    for (uint32_t i = first; i < first + count; i++)
        carry_back(&now.scratch[i], &now.cpus[i].boot, &now.records[i]);
    return STATUS_SUCCESS;
}

void nt_view_fold(void)
{
    if (!now.view || nt_view_look(true) || nt_view_read(0, now.active))
        return;
    for (uint32_t i = 0; i < now.active; i++)
        nt_fold_ticks(&now.records[i], &now.cpus[i]);
}

const struct prcb_processor *nt_view_record(uint32_t number)
{
    return &now.records[number];
}

struct nt_cpu *nt_view_cpu(uint32_t number)
{
    return &now.cpus[number];
}

int nt_view_switches(uint64_t *ret)
{
    uint64_t switches = now.switches_before;

    for (uint32_t i = 0; i < now.active; i++) {
        if (!(now.records[i].present & PRCB_CPU_HAS_SWITCHES))
            return nt_boot_switches(&now.files, ret);
        switches += now.records[i].switches;
    }
    *ret = switches;
    return 0;
}

struct procfs *nt_view_files(void)
{
    return &now.files;
}

const char *nt_view_absent_reason(uint64_t member)
{
    return prcb_processor_absent_reason(now.view, member);
}

int prcb_nt_set_processors(const struct prcb_processors_options *opts)
{
    struct prcb_processors_options taken;
    char *root;
    int result = sized_take_options("prcb_processors_options", opts, &taken, sizeof(taken), NULL);

    if (result)
        return result;
    if (taken.flags || taken.tier > PRCB_TIER_DAEMON)
        return -EINVAL;
    root = taken.root ? strdup(taken.root) : NULL;
    if (taken.root && !root)
        return -ENOMEM;
    nt_enter();
    nt_view_forget();
    free(options_root);
    options_root = root;
    options =
        (struct prcb_processors_options){.size = sizeof(options), .tier = taken.tier, .root = root};
    nt_leave();
    return 0;
}

enum prcb_tier prcb_nt_processors_tier(void)
{
    enum prcb_tier tier = PRCB_TIER_AUTO;

    nt_enter();
    if (!nt_view_glance())
        tier = prcb_processors_tier(now.view);
    nt_leave();
    return tier;
}

const char *prcb_nt_processors_tier_reason(void)
{
    const char *reason = NULL;

    nt_enter();
    if (!nt_view_glance())
        reason = prcb_processors_tier_reason(now.view);
    nt_leave();
    return reason;
}

uint16_t prcb_KeQueryActiveGroupCount(void)
{
    uint32_t groups = 0;

    nt_enter();
    if (!nt_view_glance())
        groups = (now.active + NT_GROUP_SIZE - 1) / NT_GROUP_SIZE;
    nt_leave();
    return (uint16_t)groups;
}

uint32_t prcb_KeQueryActiveProcessorCountEx(uint16_t GroupNumber)
{
    uint32_t active = 0, first = GroupNumber * NT_GROUP_SIZE;

    nt_enter();
    if (!nt_view_glance())
        active = now.active;
    nt_leave();
    if (GroupNumber == PRCB_NT_ALL_GROUPS)
        return active;
    active = active > first ? active - first : 0;
    return active < NT_GROUP_SIZE ? active : NT_GROUP_SIZE;
}
