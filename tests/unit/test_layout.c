/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The layout engine: version selection, lookup, decode, encode and their errors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/layout.h>

#include "check.h"

static struct prcb_layout *must_find(const char *structure, const char *version,
                                     enum prcb_arch arch)
{
    struct prcb_layout *l = NULL;
    struct prcb_error err;

    if (prcb_layout_find(structure, version, arch, &l, &err))
        fail_msg("%s %s: %s", structure, version, err.text);
    return l;
}

/* ---- versions ---- */

struct version_case {
    const char *text;
    enum prcb_arch arch;
    const char *name; /* NULL: refused */
    const char *said; /* part of the note or of the error; NULL: nothing is said */
};

static const struct version_case version_cases[] = {
    /* names, versions, builds */
    {"XP SP3", PRCB_ARCH_X86, "5.1.2600 SP3", NULL},
    {"windows  xp sp3", PRCB_ARCH_X86, "5.1.2600 SP3", NULL},
    {"5.1-verylate", PRCB_ARCH_X86, "5.1.2600 SP3", NULL},
    {"early 5.1", PRCB_ARCH_X86, "5.1.2600 RTM..SP1", NULL},
    {"Server 2003 SP1", PRCB_ARCH_X64, "5.2.3790 SP1", NULL},
    {"early 6.0", PRCB_ARCH_X64, "6.0.6000", NULL},
    {"6.0 early", PRCB_ARCH_X64, "6.0.6000", NULL},
    {"Windows 11 22H2", PRCB_ARCH_X64, "10.0.22621", NULL},
    {"10.0.18362.295", PRCB_ARCH_X64, "10.0.18362.295", NULL},
    {"18362.295", PRCB_ARCH_X64, "10.0.18362.295", NULL},
    {"10.0.10240 RTM", PRCB_ARCH_X64, "10.0.10240 RTM", NULL},
    {"5.1.2600.2180", PRCB_ARCH_X86, "5.1.2600 SP2", NULL},
    {"5.2-verylate", PRCB_ARCH_X64, "5.2.3790 SP2", NULL},
    {"5.1.2600 SP1", PRCB_ARCH_X86, "5.1.2600 RTM..SP1", NULL},
    {"Windows 10, version 1809", PRCB_ARCH_X86, "10.0.17763.0", NULL},
    {"10.0-preview9841", PRCB_ARCH_X86, "6.4.9841", NULL},
    /* the last revision known, and said */
    {"6.1", PRCB_ARCH_X64, "6.1.7601.24540", "last revision known"},
    {"6.1", PRCB_ARCH_X86, "6.1.7601.24000", "last revision known"},
    {"Windows 7", PRCB_ARCH_X64, "6.1.7601.24540", "last revision known"},
    {"6.3", PRCB_ARCH_X64, "6.3.9600.21620", "last revision known"},
    {"10.0", PRCB_ARCH_X64, "10.0.10240.17770", "last revision known"},
    {"10.0.18362", PRCB_ARCH_X64, "10.0.18362.836", "last revision known"},
    {"10.0.18362", PRCB_ARCH_X86, "10.0.18362.418", "last revision known"},
    /* builds that are another's kernel */
    {"1909", PRCB_ARCH_X64, "10.0.18362.836", "shares the kernel of 18362"},
    {"Windows 10 22H2", PRCB_ARCH_X64, "10.0.19041.3570", "shares the kernel of 19041"},
    {"10.0.19045.2130", PRCB_ARCH_X64, "10.0.19041.2130", "shares the kernel of 19041"},
    {"20H2", PRCB_ARCH_X86, "10.0.19041.0", "not checked"},
    /* inferred */
    {"10.0.17000", PRCB_ARCH_X64, "10.0.16299", "lies between 10.0.16299 and 10.0.17134"},
    {"10.0.18362.500", PRCB_ARCH_X64, "10.0.18362.295", "lies between"},
    {"10.0.18362.9999", PRCB_ARCH_X64, "10.0.18362.836", "past 10.0.18362.836"},
    {"10.0.22000.1", PRCB_ARCH_X64, "10.0.22000.318", "before 10.0.22000.318"},
    {"10.0.99999", PRCB_ARCH_X64, "10.0.26100", "past 10.0.26100"},
    /* refused */
    {"Windows 11 22H2", PRCB_ARCH_X86, NULL, "64-bit processors only"},
    {"10.0.20348", PRCB_ARCH_X86, NULL, "64-bit processors only"},
    {"Windows 10", PRCB_ARCH_X64, NULL, "\"1809\""},
    {"5.1", PRCB_ARCH_X86, NULL, "\"XP SP3\""},
    {"5.2", PRCB_ARCH_X86, NULL, "\"Server 2003 SP1\""},
    {"6.0", PRCB_ARCH_X64, NULL, "\"Vista SP1\""},
    {"21H2", PRCB_ARCH_X64, NULL, "\"Windows 10 21H2\""},
    {"22H2", PRCB_ARCH_X64, NULL, "\"Windows 10 22H2\" or \"Windows 11 22H2\""},
    {"XP SP3", PRCB_ARCH_X64, NULL, "no x64 version before 5.2.3790 SP1"},
    {"5.1-verylate", PRCB_ARCH_X64, NULL, "no x64 version before 5.2.3790 SP1"},
    /* Windows 10 is none of these */
    {"Windows 10 23H2", PRCB_ARCH_X64, NULL, "not a version"},
    {"Windows 10 Windows 7", PRCB_ARCH_X64, NULL, "not a version"},
    {"10 XP SP3", PRCB_ARCH_X86, NULL, "not a version"},
    {"10 11", PRCB_ARCH_X64, NULL, "not a version"},
    {"4.0.1381", PRCB_ARCH_X86, NULL, "no x86 version before 5.0.2195"},
    {"", PRCB_ARCH_X64, NULL, "not a version of Windows: give"},
    {"-", PRCB_ARCH_X64, NULL, "not a version of Windows: give"},
    {"windows", PRCB_ARCH_X64, NULL, "not a version"},
    {"10.0.", PRCB_ARCH_X64, NULL, "not a version"},
    {"10.0.19041.1.1", PRCB_ARCH_X64, NULL, "not a version"},
    {"10.0.99999999999", PRCB_ARCH_X64, NULL, "not a version"},
    {"XP SP9", PRCB_ARCH_X86, NULL, "perhaps XP SP1, XP SP2 or XP SP3"},
};

static void check_version_case(const struct version_case *c)
{
    struct prcb_layout_version v = {.size = sizeof(v), .name = "untouched"};
    char note[PRCB_LAYOUT_NOTE] = "untouched";
    struct prcb_error err = {0};
    int r = prcb_layout_version_parse(c->text, c->arch, &v, note, &err);

    CHECK((r == 0) == (c->name != NULL), "\"%s\": %d %s", c->text, r, err.text);
    CHECK(!strcmp(v.name, r || !c->name ? "untouched" : c->name), "\"%s\": %s", c->text, v.name);
    if (r)
        CHECK(strstr(err.text, c->said) && !strcmp(note, "untouched"), "\"%s\": %s", c->text,
              err.text);
    else
        CHECK(c->said ? strstr(note, c->said) != NULL : !*note, "\"%s\": %s", c->text, note);
}

static void test_versions(void **state)
{
    for (size_t i = 0; i < sizeof(version_cases) / sizeof(version_cases[0]); i++)
        check_version_case(&version_cases[i]);
    check_done();
}

static void test_arch(void **state)
{
    enum prcb_arch arch = PRCB_ARCH_X86;

    CHECK(!prcb_arch_parse("AMD64", &arch, NULL) && arch == PRCB_ARCH_X64, "AMD64");
    CHECK(!prcb_arch_parse("i386", &arch, NULL) && arch == PRCB_ARCH_X86, "i386");
    CHECK(prcb_arch_parse("arm64", &arch, NULL) == -EINVAL, "arm64");
    check_done();
}

/* ---- finding ---- */

static void test_find(void **state)
{
    struct prcb_layout *l = NULL;
    struct prcb_error err;

    CHECK(prcb_layout_find("PROCESSOR_POWER_STAT", "6.1", PRCB_ARCH_X64, &l, &err) == -ENOENT &&
              strstr(err.text, "PROCESSOR_POWER_STATE"),
          "%s", err.text);
    CHECK(prcb_layout_find("PROC_FEEDBACK", "6.1", PRCB_ARCH_X64, &l, &err) == -ENOENT &&
              strstr(err.text, "only from 6.2.9200"),
          "%s", err.text);
    CHECK(prcb_layout_find_id("KDPC", 100000, PRCB_ARCH_X64, &l, &err) == -EINVAL, "%s", err.text);
    CHECK(!l, "a result on failure");
    l = must_find("_PROCESSOR_POWER_STATE", "6.1", PRCB_ARCH_X86);
    CHECK(prcb_layout_size(l) == 0xC8 && !strcmp(prcb_layout_source(l), "symbols"), "6.1 x86");
    prcb_layout_close(l);
    l = must_find("KPRCB", "6.1", PRCB_ARCH_X86);
    CHECK(prcb_layout_is_partial(l), "KPRCB");
    prcb_layout_close(l);
    l = must_find("KTIMER", "11 24H2", PRCB_ARCH_X64);
    CHECK(!strcmp(prcb_layout_source(l), "inferred") && strstr(prcb_layout_note(l), "inferred"),
          "%s", prcb_layout_note(l));
    prcb_layout_close(l);
    prcb_layout_close(NULL);
    check_done();
}

/* Servicing inside one build is selected by revision. */
static void test_revisions(void **state)
{
    static const struct {
        const char *structure, *version, *member;
        uint32_t offset;
    } cases[] = {
        {"KPRCB", "6.1.7601.23418", "PowerState", 0x4800},
        {"KPRCB", "6.1.7601.24000", "PowerState", 0x5000},
        {"KPRCB", "6.3.9600.18340", "PowerState", 0x5400},
        {"KPRCB", "6.3.9600.19913", "PowerState", 0x5C00},
        {"PROCESSOR_POWER_STATE", "10.0.18362.30", "Reserved", 0x33},
        {"PROCESSOR_POWER_STATE", "10.0.18362.295", "SoftParked", 0x33},
        {"KPRCB", "10.0.19041.2006", "CoresPerPhysicalProcessor", 0x8E},
        {"KPRCB", "10.0.19041.2130", "CoresPerPhysicalProcessor", 0x98},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct prcb_layout *l = must_find(cases[i].structure, cases[i].version, PRCB_ARCH_X64);
        struct prcb_layout_field f = {0};
        struct prcb_error err = {0};

        CHECK(!prcb_layout_lookup(l, cases[i].member, &f, &err) && f.offset == cases[i].offset,
              "%s %s 0x%x %s", cases[i].version, cases[i].member, f.offset, err.text);
        prcb_layout_close(l);
    }
    check_done();
}

/* ---- lookup ---- */

struct path_case {
    const char *structure, *version, *path;
    int result;
    uint32_t offset, size; /* or, for errors, nothing */
};

static const struct path_case path_cases[] = {
    {"PROCESSOR_POWER_STATE", "6.1", "PerfActionDpc.DeferredContext", 0, 0x88, 8},
    {"PROCESSOR_POWER_STATE", "6.0.6001", "Flags.PStateDomain", 0, 0x4A, 2},
    {"PROCESSOR_POWER_STATE", "6.0.6001", "Flags.PStartDomainIdleAccounting", 0, 0x4A, 2},
    {"PROCESSOR_POWER_STATE", "6.0.6001", "Flags", 0, 0x4A, 2},
    {"PROCESSOR_POWER_STATE", "6.0.6001", "Native.IdleTransitionTime", 0, 0x18, 8},
    {"PROCESSOR_POWER_STATE", "6.2", "OverUtilitized", 0, 0x1B3, 1},
    {"KPRCB", "6.2", "PowerState.OverUtilitized", 0, 0x55B3, 1},
    {"PROCESSOR_POWER_STATE", "6.3", "Utility[2].Total", 0, 0x1D8, 4},
    {"PROCESSOR_POWER_STATE", "6.3", "Utility", 0, 0x1B8, 36},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters[3].Total", 0, 0x98, 8},
    {"THREAD_PERFORMANCE_DATA", "6.1", "CycleTime.Start", 0, 0x30, 8},
    {"PROC_PERF_DOMAIN", "10.0.26100", "QosPolicies[6]", 0, 728, 32},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters[16].Total", -ERANGE, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters[99999999999999999999]", -ERANGE, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters[-1]", -EINVAL, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters[]", -EINVAL, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters[1", -EINVAL, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "HwCounters.Total", -EINVAL, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "Size[0]", -EINVAL, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "Size.Low", -ENOENT, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "CycleTime.", -ENOENT, 0, 0},
    {"THREAD_PERFORMANCE_DATA", "6.1", "", -ENOENT, 0, 0},
    {"PROCESSOR_POWER_STATE", "6.1", "IdleFunction", -ENOENT, 0, 0},
};

static void test_lookup(void **state)
{
    for (size_t i = 0; i < sizeof(path_cases) / sizeof(path_cases[0]); i++) {
        const struct path_case *c = &path_cases[i];
        struct prcb_layout *l = must_find(c->structure, c->version, PRCB_ARCH_X64);
        struct prcb_layout_field f = {0};
        struct prcb_error err = {0};
        int r = prcb_layout_lookup(l, c->path, &f, &err);

        CHECK(r == c->result && f.offset == c->offset && f.size == c->size, "%s %s: %d 0x%x %u %s",
              c->structure, c->path, r, f.offset, f.size, err.text);
        prcb_layout_close(l);
    }
    check_done();
}

static void test_lookup_words(void **state)
{
    struct prcb_layout *l = must_find("PROCESSOR_POWER_STATE", "6.2", PRCB_ARCH_X64);
    struct prcb_layout_field f;
    struct prcb_error err;

    CHECK(prcb_layout_lookup(l, "IdleTimeLsat", &f, &err) == -ENOENT &&
              strstr(err.text, "IdleTimeLast"),
          "%s", err.text);
    CHECK(prcb_layout_lookup(l, "IdleFunction", &f, &err) == -ENOENT &&
              strstr(err.text, "other versions"),
          "%s", err.text);
    prcb_layout_close(l);
    check_done();
}

/* The leaves and the lookup of their names agree. */
static void test_leaves(void **state)
{
    static const char *const structures[] = {"PROCESSOR_POWER_STATE", "KPRCB", "PROC_PERF_DOMAIN",
                                             "THREAD_PERFORMANCE_DATA", "PROC_PERF_CHECK"};

    for (size_t s = 0; s < sizeof(structures) / sizeof(structures[0]); s++) {
        struct prcb_layout *l = must_find(structures[s], "10.0.20348", PRCB_ARCH_X64);
        size_t count;
        const struct prcb_layout_field *leaf = prcb_layout_leaves(l, &count);

        for (size_t i = 0; i < count; i++) {
            struct prcb_layout_field f = {0};
            struct prcb_error err = {0};

            CHECK(!prcb_layout_lookup(l, leaf[i].name, &f, &err) && f.offset == leaf[i].offset &&
                      f.size == leaf[i].size && f.count == 1,
                  "%s %s", leaf[i].name, err.text);
        }
        prcb_layout_close(l);
    }
    check_done();
}

/* ---- values ---- */

static void test_decode(void **state)
{
    struct prcb_layout *l = must_find("PROCESSOR_POWER_STATE", "6.0.6001", PRCB_ARCH_X64);
    uint8_t bytes[0x118] = {
        [0x00] = 0x88,  [0x01] = 0x77,  [0x07] = 0xFF,  [0x4A] = 0x06, [0x4B] = 0x80,
        [0x110] = 0xFE, [0x111] = 0xFF, [0x112] = 0xFF, [0x113] = 0xFF};
    static const struct {
        const char *path;
        uint64_t value;
    } cases[] = {
        {"IdleStates", 0xFF00000000007788U}, {"Flags.AsUSHORT", 0x8006},
        {"Flags.PStateDomain", 0},           {"Flags.PStateDomainIdleAccounting", 1},
        {"Flags.Reserved", 0x2001},          {"WmiInterfaceEnabled", (uint64_t)-2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t value = 0;
        struct prcb_error err = {0};

        CHECK(!prcb_layout_get(l, bytes, sizeof(bytes), cases[i].path, &value, &err) &&
                  value == cases[i].value,
              "%s 0x%llx %s", cases[i].path, (unsigned long long)value, err.text);
    }
    prcb_layout_close(l);
    check_done();
}

static void test_encode(void **state)
{
    struct prcb_layout *l = must_find("PPM_IDLE_SYNCHRONIZATION_STATE", "6.3", PRCB_ARCH_X64);
    uint8_t bytes[4] = {0xFF, 0xFF, 0xFF, 0xFF};
    struct prcb_error err;
    uint64_t value = 0;

    CHECK(!prcb_layout_put(l, bytes, 4, "RefCount", (uint64_t)-3, &err), "%s", err.text);
    CHECK(!memcmp(bytes, "\xFD\xFF\xFF\xFF", 4), "neighbouring bits");
    CHECK(!prcb_layout_put(l, bytes, 4, "State", 0x12, &err), "%s", err.text);
    CHECK(!memcmp(bytes, "\xFD\xFF\xFF\x12", 4), "State");
    CHECK(!prcb_layout_get(l, bytes, 4, "RefCount", &value, &err) && (int64_t)value == -3, "sign");
    CHECK(prcb_layout_put(l, bytes, 4, "State", 0x100, &err) == -ERANGE, "%s", err.text);
    CHECK(prcb_layout_put(l, bytes, 4, "RefCount", 0x800000, &err) == -ERANGE, "%s", err.text);
    CHECK(!memcmp(bytes, "\xFD\xFF\xFF\x12", 4), "changed on failure");
    prcb_layout_close(l);
    check_done();
}

/* Every length that is too short is refused, and the error says where. */
static void test_bounds(void **state)
{
    struct prcb_layout *l = must_find("PROCESSOR_POWER_STATE", "10.0.19041", PRCB_ARCH_X64);
    size_t count;
    const struct prcb_layout_field *leaf = prcb_layout_leaves(l, &count);

    for (size_t i = 0; i < count; i++) {
        size_t length = leaf[i].offset + leaf[i].size - 1U;
        uint8_t *bytes = malloc(length + 1); /* the sanitizer watches its end */
        struct prcb_error err = {0};
        uint64_t value = 42;
        int r = prcb_layout_decode(l, &leaf[i], 0, bytes, length, &value, &err);

        CHECK(r == -ENODATA || leaf[i].kind == PRCB_LAYOUT_OPAQUE, "%s: %d", leaf[i].name, r);
        CHECK(value == 42, "%s: changed on failure", leaf[i].name);
        if (r == -ENODATA)
            CHECK(err.offset == leaf[i].offset && strstr(err.text, leaf[i].name) &&
                      strstr(err.text, "PROCESSOR_POWER_STATE"),
                  "%s", err.text);
        CHECK(prcb_layout_encode(l, &leaf[i], 0, 0, bytes, length, NULL) < 0, "%s", leaf[i].name);
        free(bytes);
    }
    prcb_layout_close(l);
    check_done();
}

/* A field made by hand, or of another layout, cannot lead outside the buffer either. */
static void test_hostile_fields(void **state)
{
    struct prcb_layout *l = must_find("KDPC", "6.1", PRCB_ARCH_X64);
    struct prcb_layout_field f = {
        .name = "x", .type = "ULONG", .offset = UINT32_MAX, .size = 4, .count = 1};
    uint8_t byte = 0;
    uint64_t value;
    size_t count;

    CHECK(prcb_layout_decode(l, &f, 0, &byte, 1, &value, NULL) == -ENODATA, "offset");
    f.offset = 0;
    CHECK(prcb_layout_decode(l, &f, 1, &byte, 1, &value, NULL) == -ERANGE, "index");
    f.size = 16;
    CHECK(prcb_layout_decode(l, &f, 0, &byte, 1, &value, NULL) == -EINVAL, "size");
    f.size = 1;
    f.bit_first = 7;
    f.bit_width = 2;
    CHECK(prcb_layout_decode(l, &f, 0, &byte, 1, &value, NULL) == -EINVAL, "bits");
    prcb_layout_leaves(l, &count);
    CHECK(prcb_layout_decode_all(l, &byte, 1, &value, count + 1, NULL) == -EINVAL, "count");
    prcb_layout_close(l);
    check_done();
}

/* Even tail padding must be there: a buffer that ends early is truncated. */
static void test_short_by_padding(void **state)
{
    struct prcb_layout *l = must_find("PROCESSOR_POWER_STATE", "6.0.6001", PRCB_ARCH_X64);
    uint8_t bytes[0x117] = {0};
    uint64_t values[64];
    struct prcb_error err = {0};
    size_t count;

    prcb_layout_leaves(l, &count);
    CHECK(prcb_layout_decode_all(l, bytes, sizeof(bytes), values, count, &err) == -ENODATA &&
              strstr(err.text, "PROCESSOR_POWER_STATE at 0x0 needs 0x118"),
          "%s", err.text);
    prcb_layout_close(l);
    check_done();
}

static void test_no_value(void **state)
{
    struct prcb_layout *l = must_find("PROCESSOR_POWER_STATE", "6.0.6001", PRCB_ARCH_X64);
    uint8_t bytes[0x118] = {0};
    uint64_t value;

    CHECK(prcb_layout_get(l, bytes, sizeof(bytes), "PerfDpc", &value, NULL) == -EINVAL, "nested");
    CHECK(prcb_layout_get(l, bytes, sizeof(bytes), "Flags", &value, NULL) == -EINVAL, "inline");
    CHECK(prcb_layout_get(l, bytes, sizeof(bytes), "PerfTimer.Header", &value, NULL) == -EINVAL,
          "opaque");
    prcb_layout_close(l);
    check_done();
}

static void test_enums(void **state)
{
    struct prcb_layout *l = must_find("PROCESSOR_POWER_STATE", "6.1", PRCB_ARCH_X64);
    struct prcb_layout_field f;

    assert_int_equal(prcb_layout_lookup(l, "Hypervisor", &f, NULL), 0);
    assert_string_equal(prcb_layout_enum_name(l, &f, 2), "ProcHypervisorPower");
    assert_null(prcb_layout_enum_name(l, &f, 3)); /* from 10.0 */
    prcb_layout_close(l);
}

static void test_functions(void **state)
{
    struct prcb_layout_function f = {.size = sizeof(f)};

    for (unsigned int i = 0; !prcb_layout_function_at(i, &f); i++)
        CHECK(!strcmp(f.convention, "FASTCALL") && f.source, "%s", f.name);
    assert_int_equal(prcb_layout_function_at(0, &f), 0);
    assert_string_equal(f.name, "PPROCESSOR_IDLE_FUNCTION");
    check_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_arch),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_revisions),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_lookup_words),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_hostile_fields),
        cmocka_unit_test(test_no_value),
        cmocka_unit_test(test_short_by_padding),
        cmocka_unit_test(test_enums),
        cmocka_unit_test(test_functions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
