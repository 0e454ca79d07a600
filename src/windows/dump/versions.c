/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which of the catalog's versions a dump is read by. The build number names candidates (servicing
 * moved members inside one build); the debugger data's sizes and offsets, the processor's name and
 * the PerfActionDpc landmark refute them. What is left and agrees is used.
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LANDMARK_BUILD 7600 /* PerfActionDpc; before, PerfDpc, which only confirms */
#define TICK_SLACK           64   /* 1 s: the uptime is stamped a little before or after */

static enum prcb_arch arch_of(const struct prcb_dump *d)
{
    return d->machine == MACHINE_X86 ? PRCB_ARCH_X86 : PRCB_ARCH_X64;
}

static bool has_arch(const struct prcb_layout_version *v, enum prcb_arch arch)
{
    return arch == PRCB_ARCH_X86 ? v->x86 : v->x64;
}

/* Builds that are another's kernel with features switched on. */
static uint32_t same_kernel(uint32_t build)
{
    if (build == 18363)
        return 18362;
    return build >= 19042 && build <= 19045 ? 19041 : build;
}

/* Takes the versions of the build; if there is none, of the last build before it. */
static void by_build(struct prcb_dump *d)
{
    enum prcb_arch arch = arch_of(d);
    uint32_t wanted = same_kernel(d->header.minor), build = 0;
    struct prcb_layout_version v = {.size = sizeof(v)};

    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++) {
        if (has_arch(&v, arch) && v.build <= wanted && v.build > build)
            build = v.build;
    }
    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++) {
        if (v.build == build && has_arch(&v, arch) && d->version_count < VIEW_LAYOUTS)
            d->versions[d->version_count++] = i;
    }
    d->is_nearest = build != wanted;
}

/* ---- refuting ---- */

/* A member whose offset the debugger data give. */
static bool agrees(const struct prcb_layout *layout, const char *member, uint16_t offset)
{
    struct prcb_layout_field field;

    return !offset || prcb_layout_lookup(layout, member, &field, NULL) || field.offset == offset;
}

static bool fits_kdbg(const struct prcb_layout *l, const struct kdbg *k)
{
    return (!k->prcb_size || prcb_layout_size(l) == k->prcb_size) &&
           agrees(l, "VendorString", k->prcb_vendor) && agrees(l, "MHz", k->prcb_mhz) &&
           agrees(l, "CpuType", k->prcb_cpu_type) && agrees(l, "Number", k->prcb_number) &&
           agrees(l, "CurrentThread", k->prcb_current_thread);
}

/* A held VendorString must be the name of a processor: printable, at least 8 characters. */
static bool fits_vendor(const struct prcb_dump *d, const struct prcb_layout *layout)
{
    struct prcb_layout_field field;
    char name[8];

    if (prcb_layout_lookup(layout, "VendorString", &field, NULL))
        return true;
    for (size_t i = 0; i < d->source_count; i++) {
        if (memory_read(&d->memory, d->sources[i].address + field.offset, name, sizeof(name)))
            continue;
        for (size_t j = 0; j < sizeof(name); j++) {
            if (name[j] < 0x20 || name[j] > 0x7e)
                return false;
        }
        return true;
    }
    return true;
}

static const char *const kdpc_members[] = {"PowerState.PerfActionDpc", "PowerState.PerfDpc"};

static bool find_kdpc(const struct prcb_layout *layout, uint32_t *ret)
{
    struct prcb_layout_field field;

    for (size_t i = 0; i < ARRAY_SIZE(kdpc_members); i++) {
        if (!prcb_layout_lookup(layout, kdpc_members[i], &field, NULL)) {
            *ret = field.offset;
            return true;
        }
    }
    return false;
}

/* Counts in how many KPRCBs a KDPC at this offset carries its own KPRCB's address. */
static size_t count_landmarks(const struct prcb_dump *d, uint32_t offset, size_t *ret_held)
{
    size_t holds = 0;

    *ret_held = 0;
    for (size_t i = 0; i < d->source_count; i++) {
        uint64_t byte;

        if (d->sources[i].is_made_up ||
            memory_load(&d->memory, d->sources[i].address + offset, 1, &byte))
            continue;
        ++*ret_held;
        holds += landmark_holds(d, &d->sources[i], offset);
    }
    return holds;
}

/* Drops the versions that `keep` says no to, unless `all` would go and must not. */
struct sieve {
    struct prcb_dump *d;
    struct prcb_layout *layouts[VIEW_LAYOUTS];
};

static void sieve_close(struct sieve *s)
{
    for (size_t i = 0; i < s->d->version_count; i++)
        prcb_layout_close(s->layouts[i]);
}

/* Takes in the KPRCB of each version; versions without one are dropped. */
static int sieve_open(struct sieve *s, struct prcb_dump *d)
{
    size_t kept = 0;

    s->d = d;
    for (size_t i = 0; i < d->version_count; i++) {
        int code =
            prcb_layout_find_id("KPRCB", d->versions[i], arch_of(d), &s->layouts[kept], NULL);

        if (code == -ENOMEM) {
            d->version_count = kept;
            sieve_close(s);
            return code;
        }
        if (!code)
            d->versions[kept++] = d->versions[i];
    }
    d->version_count = kept;
    return 0;
}

static void sieve_keep(struct sieve *s, const bool *keep)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->d->version_count; i++) {
        if (!keep[i]) {
            prcb_layout_close(s->layouts[i]);
            continue;
        }
        s->layouts[kept] = s->layouts[i];
        s->d->versions[kept++] = s->d->versions[i];
    }
    s->d->version_count = kept;
}

static void refute_by_facts(struct sieve *s)
{
    bool keep[VIEW_LAYOUTS];

    for (size_t i = 0; i < s->d->version_count; i++)
        keep[i] = fits_kdbg(s->layouts[i], &s->d->kdbg) && fits_vendor(s->d, s->layouts[i]);
    sieve_keep(s, keep);
}

/* Where one version's landmark holds, those whose does not are refuted. */
static void refute_by_landmark(struct sieve *s)
{
    bool keep[VIEW_LAYOUTS];
    bool any = false;

    for (size_t i = 0; i < s->d->version_count; i++) {
        uint32_t offset;
        size_t held;

        keep[i] = find_kdpc(s->layouts[i], &offset) && count_landmarks(s->d, offset, &held);
        any |= keep[i];
    }
    if (any)
        sieve_keep(s, keep);
}

static int refute(struct prcb_dump *d)
{
    struct sieve s;
    int code = sieve_open(&s, d);

    if (code)
        return code;
    refute_by_facts(&s);
    refute_by_landmark(&s);
    sieve_close(&s);
    return 0;
}

/* Called if all versions of the build are refuted: takes any other version that the debugger
 * data fit. */
static int by_any_build(struct prcb_dump *d)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    if (!d->kdbg.prcb_size || !d->kdbg.prcb_vendor)
        return 0;
    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++) {
        if (has_arch(&v, arch_of(d)) && d->version_count < VIEW_LAYOUTS)
            d->versions[d->version_count++] = i;
    }
    return refute(d);
}

/* ---- choosing ---- */

static int note_unknown_build(struct prcb_dump *d, const char *nearest)
{
    const char *release = d->info.release;

    return dump_note(d,
                     "the KPRCB layout of build %u (%s) is not known%s%s; only what the debugger "
                     "data and landmarks give is shown",
                     d->header.minor, release ? release : "release not known",
                     nearest ? ", and does not fit that of " : "", nearest ? nearest : "");
}

static int use_nearest(struct prcb_dump *d, const char *build_layout)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    prcb_layout_version_at(d->versions[0], &v);
    return dump_note(
        d,
        "the dump fits no layout of its build %u (%s); the debugger data fit %s, which "
        "is used",
        d->header.minor, build_layout, v.name);
}

/* A neighbour's layout is used only where both the debugger data and the landmark bear it out. */
static bool is_borne_out(const struct prcb_dump *d)
{
    struct sieve s;
    bool borne_out = false;

    if (!d->kdbg.prcb_size || sieve_open(&s, (struct prcb_dump *)d))
        return false;
    for (size_t i = 0; i < d->version_count; i++) {
        uint32_t offset;
        size_t held;

        borne_out |= find_kdpc(s.layouts[i], &offset) && count_landmarks(d, offset, &held);
    }
    sieve_close(&s);
    return borne_out;
}

static int choose_versions(struct prcb_dump *d)
{
    char first[64] = "none is known";
    struct prcb_layout_version v = {.size = sizeof(v)};
    int code;

    by_build(d);
    if (d->version_count && !prcb_layout_version_at(d->versions[d->version_count - 1], &v))
        strncpy(first, v.name, sizeof(first) - 1);
    code = refute(d);
    if (code)
        return code;
    if (d->is_nearest && d->version_count && is_borne_out(d))
        return dump_note(d,
                         "build %u is not in the catalog: %s's layout is used, which its debugger "
                         "data and the PerfActionDpc landmark bear out",
                         d->header.minor, first);
    if (d->version_count && !d->is_nearest)
        return 0;
    d->version_count = 0;
    code = by_any_build(d);
    if (code)
        return code;
    return d->version_count ? use_nearest(d, first)
                            : note_unknown_build(d, d->is_nearest ? first : NULL);
}

/* ---- the power state ---- */

/* The versions whose PROCESSOR_POWER_STATE is tried where a landmark has to find it. */
static void power_versions(const struct prcb_dump *d, unsigned int *versions, size_t *ret_count)
{
    struct prcb_dump nearest = {.header = d->header, .machine = d->machine};

    if (d->version_count) {
        memcpy(versions, d->versions, d->version_count * sizeof(*versions));
        *ret_count = d->version_count;
        return;
    }
    by_build(&nearest);
    memcpy(versions, nearest.versions, nearest.version_count * sizeof(*versions));
    *ret_count = nearest.version_count;
}

static int init_power(struct prcb_dump *d)
{
    unsigned int versions[VIEW_LAYOUTS];
    size_t count;

    power_versions(d, versions, &count);
    return view_init(&d->power, d, "PROCESSOR_POWER_STATE", versions, count);
}

/* Without a catalog for the machine, only the members before the first that is known to differ
 * are used. */
static void limit_to_landmarks(struct prcb_dump *d)
{
    struct slot slot;

    d->power.found_by = PRCB_DUMP_BY_LANDMARK;
    if (d->machine == MACHINE_ARM64 && !view_find(&d->power, "PerfFeedback", &slot))
        d->power.known_end = slot.offset;
}

/* Places the power state by the KDPC in its middle. */
static int place_power_by_landmark(struct prcb_dump *d, uint32_t kdpc)
{
    struct slot slot;

    d->has_power = false;
    if (d->machine == MACHINE_ARM64) {
        if (!landmark_power(d, kdpc, &d->power_offset))
            return 0;
    } else if (view_find(&d->power, "PerfActionDpc", &slot) || slot.offset > kdpc) {
        return 0;
    } else {
        d->power_offset = kdpc - slot.offset;
    }
    d->power_kdpc = kdpc;
    d->power_found = PRCB_DUMP_BY_LANDMARK;
    d->has_power = true;
    limit_to_landmarks(d);
    return 0;
}

/* The catalog (or the symbols) and the landmark disagree: the bytes are believed. */
static int disagree(struct prcb_dump *d, uint32_t expected, uint32_t kdpc)
{
    uint32_t catalog = d->power_offset;
    int code;

    if (expected == kdpc)
        return 0;
    if (d->power_found != PRCB_DUMP_BY_SYMBOLS)
        d->distrust = true;
    code = place_power_by_landmark(d, kdpc);
    if (!code && !d->has_power)
        return dump_note(d,
                         "PowerState: the catalog puts it at 0x%x of the KPRCB, which the "
                         "PerfActionDpc landmark contradicts: it is left out",
                         catalog);
    return code ? code
                : dump_note(d,
                            "PowerState: %s puts it at 0x%x of the KPRCB, the PerfActionDpc "
                            "landmark at 0x%x; the landmark is believed, and other members of the "
                            "KPRCB only where the debugger data or a landmark give them",
                            d->distrust ? "the catalog" : "the symbol file", catalog,
                            d->power_offset);
}

static int place_power(struct prcb_dump *d)
{
    const char *member = "PerfActionDpc";
    struct slot state, kdpc;
    uint32_t found;
    size_t held;

    if (view_find(&d->kprcb, "PowerState", &state))
        return landmark_find(d, &found) ? place_power_by_landmark(d, found) : 0;
    d->has_power = true;
    d->power_offset = state.offset;
    d->power_found = state.found_by;
    if (view_find(&d->power, member, &kdpc) && view_find(&d->power, "PerfDpc", &kdpc))
        return 0;
    d->power_kdpc = state.offset + kdpc.offset;
    if (count_landmarks(d, d->power_kdpc, &held) || !held ||
        d->header.minor < FIRST_LANDMARK_BUILD || !landmark_find(d, &found))
        return 0;
    return disagree(d, d->power_kdpc, found);
}

/* More ticks than there was time: the members are not where the catalog says. */
static int check_ticks(struct prcb_dump *d)
{
    uint64_t most = d->info.uptime_100ns / d->info.time_increment + TICK_SLACK;
    struct slot kernel, user;
    size_t wrong = 0, held = 0;

    if (!d->info.uptime_100ns || view_find(&d->kprcb, "KernelTime", &kernel) ||
        view_find(&d->kprcb, "UserTime", &user))
        return 0;
    for (size_t i = 0; i < d->source_count; i++) {
        uint64_t k, u;

        if (memory_load(&d->memory, d->sources[i].address + kernel.offset, 4, &k) ||
            memory_load(&d->memory, d->sources[i].address + user.offset, 4, &u))
            continue;
        held++;
        wrong += k + u > most;
    }
    if (!wrong || wrong * 2 < held)
        return 0;
    d->distrust = true;
    return dump_note(d,
                     "%zu of %zu processors would have more ticks of kernel and user time than the "
                     "%llu that the uptime has: the layout or the tick length is wrong, and their "
                     "times are left out",
                     wrong, held, (unsigned long long)(most - TICK_SLACK));
}

/* Where both are known, the GUID decides. The age counts changes of a file, which leave its types
 * alone, and makers of symbol tables take it from one of two places: a difference is said. */
static int check_guid(struct prcb_dump *d)
{
    bool same = !memcmp(d->codeview.guid, d->options.symbol_guid, sizeof(d->codeview.guid));
    char own[GUID_TEXT], theirs[GUID_TEXT];

    codeview_guid_text(d->codeview.guid, d->codeview.age, own, sizeof(own));
    codeview_guid_text(d->options.symbol_guid, d->options.symbol_age, theirs, sizeof(theirs));
    if (!strcmp(own, theirs))
        return 0;
    if (same)
        return dump_note(d,
                         "the symbol file has the kernel's GUID, and another age (%u, the kernel "
                         "%u): it is used",
                         d->options.symbol_age, d->codeview.age);
    d->options.symbol_count = 0;
    return dump_note(d,
                     "the symbol file is another kernel's and is not used: its GUID and age are "
                     "%s, the dump's kernel has %s",
                     theirs, own);
}

int versions_check_symbols(struct prcb_dump *d)
{
    uint32_t size = symbols_size(d, "KPRCB");
    struct slot vendor = {0};
    int code;

    if (!d->options.symbol_count)
        return 0;
    if (d->options.symbol_guid && d->codeview.is_known) {
        code = check_guid(d);
        if (code || !d->options.symbol_count)
            return code;
    }
    d->kprcb = (struct view){.name = "KPRCB", .dump = d};
    view_find(&d->kprcb, "VendorString", &vendor);
    if ((!size || !d->kdbg.prcb_size || size == d->kdbg.prcb_size) &&
        (!vendor.size || !d->kdbg.prcb_vendor || vendor.offset == d->kdbg.prcb_vendor))
        return 0;
    code =
        dump_note(d,
                  "the symbol file is another kernel's and is not used: its KPRCB has 0x%x bytes "
                  "and VendorString at 0x%x, the dump's 0x%x and 0x%x",
                  size, vendor.offset, d->kdbg.prcb_size, d->kdbg.prcb_vendor);
    d->options.symbol_count = 0;
    return code;
}

static int find_by_landmarks(struct prcb_dump *d)
{
    struct slot slot;
    bool has_times = !d->distrust && !view_find(&d->kprcb, "KernelTime", &slot);
    uint32_t times;

    if (!has_times) {
        if (landmark_times(d, &d->times_offset) && !d->source_count)
            d->times_offset = 0;
        times = d->times_offset;
    } else {
        times = slot.offset;
    }
    if (times && view_find(&d->kprcb, "DpcWatchdogPeriod", &slot))
        landmark_watchdog(d, times, &d->watchdog_offset);
    return 0;
}

int versions_choose(struct prcb_dump *d, struct prcb_error *err)
{
    int code = 0;

    if (d->machine != MACHINE_ARM64)
        code = choose_versions(d);
    else if (!symbols_have(d, "KPRCB") && !arm64_is_known(d))
        code = dump_note(
            d, "no layouts are known for this build on arm64: times and power state are found by "
               "landmarks, the rest by the debugger data");
    if (!code)
        code = view_init(&d->kprcb, d, "KPRCB", d->versions, d->version_count);
    if (!code)
        code = view_init(&d->thread, d, "KTHREAD", d->versions, d->version_count);
    if (!code)
        code = init_power(d);
    if (!code)
        code = place_power(d);
    if (!code)
        code = check_ticks(d);
    if (!code)
        code = find_by_landmarks(d);
    return code ? prcb_fail(err, code, "%s: out of memory", d->name) : 0;
}
