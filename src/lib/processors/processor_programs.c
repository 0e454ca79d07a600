/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Loads the processor programs, attaches them to what the kernel has, and starts them on each
 * processor. All writing to the blocks is theirs.
 */
#include "processor_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "bpf_load.h"
#include "bpf_run.h"
#include "error.h"
#include "processors.h"
#include "processors.skel.h"
#include "realtime.h"

/* The tracepoints at which a processor enters and leaves an interrupt that has a vector of its
 * own. Those that the kernel lacks are left out: which there are depends on how it is built. */
static const struct {
    const char *name;
    bool tick;
} vectors[] = {
    {"local_timer", true},           {"reschedule", false},     {"call_function", false},
    {"call_function_single", false}, {"irq_work", false},       {"x86_platform_ipi", false},
    {"thermal_apic", false},         {"threshold_apic", false}, {"deferred_error_apic", false},
    {"error_apic", false},           {"spurious_apic", false},  {"ipi", false}, /* arm64 */
};
#define VECTORS (sizeof(vectors) / sizeof(vectors[0]))

/* Words of x86's irq_cpustat_t that count interrupts, as rows of /proc/interrupts: members until
 * 7.1, then elements of its array counts, by number. Not: PMI, which NMI has counted; TLB, which
 * are among the function calls; RTR, which are no interrupts. */
static const char *const counting_words[] = {
    "IRQ_COUNT_NMI",
    "IRQ_COUNT_APIC_TIMER",
    "IRQ_COUNT_SPURIOUS",
    "IRQ_COUNT_IRQ_WORK",
    "IRQ_COUNT_X86_PLATFORM_IPI",
    "IRQ_COUNT_RESCHEDULE",
    "IRQ_COUNT_CALL_FUNCTION",
    "IRQ_COUNT_THERMAL_APIC",
    "IRQ_COUNT_THRESHOLD_APIC",
    "IRQ_COUNT_DEFERRED_ERROR",
    "IRQ_COUNT_HYPERVISOR_CALLBACK",
    "IRQ_COUNT_HYPERV_REENLIGHTENMENT",
    "IRQ_COUNT_HYPERV_STIMER0",
    "IRQ_COUNT_POSTED_INTR",
    "IRQ_COUNT_POSTED_INTR_NESTED",
    "IRQ_COUNT_POSTED_INTR_WAKEUP",
    "IRQ_COUNT_PERF_GUEST_MEDIATED_PMI",
    "__nmi_count",
    "apic_timer_irqs",
    "irq_spurious_count",
    "apic_irq_work_irqs",
    "x86_platform_ipis",
    "irq_resched_count",
    "irq_call_count",
    "irq_thermal_count",
    "irq_threshold_count",
    "irq_deferred_error_count",
    "irq_hv_callback_count",
    "irq_hv_reenlightenment_count",
    "hyperv_stimer0_count",
    "kvm_posted_intr_ipis",
    "kvm_posted_intr_wakeup_ipis",
    "kvm_posted_intr_nested_ipis",
    "posted_msi_notification_count",
    "perf_guest_mediated_pmis",
};

struct processor_programs {
    struct processors_bpf *skeleton;
    uint32_t count; /* processors */
    int map;        /* of their blocks, -1: one of its own */
    bool times;     /* ... are kept: see processor_programs_load */
    bool later;     /* the program at switches is left to be attached */
    struct bpf_link *vectors[2 * VECTORS];
    uint32_t features;
};

/* ---- what the kernel has ---- */

static bool has_tracepoint(const struct btf *btf, const char *name)
{
    return kernel_tracepoint_arguments(btf, name) >= 0;
}

/* Where a per-processor variable lies in its section; *ret_type its type. */
static uint64_t variable_offset(const struct btf *btf, const char *name,
                                const struct btf_type **ret)
{
    __s32 section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
    const struct btf_type *type = section > 0 ? btf__type_by_id(btf, (__u32)section) : NULL;
    const struct btf_var_secinfo *info = type ? btf_var_secinfos(type) : NULL;

    for (int i = 0; type && i < btf_vlen(type); i++) {
        const struct btf_type *variable = btf__type_by_id(btf, info[i].type);

        if (strcmp(btf__name_by_offset(btf, variable->name_off), name))
            continue;
        if (ret)
            *ret = btf__type_by_id(btf, (__u32)btf__resolve_type(btf, variable->type));
        return info[i].offset;
    }
    return PRCB_NO_OFFSET;
}

/* Where a member of a per-processor variable lies in the section. */
static uint64_t member_offset(const struct btf *btf, const char *variable, const char *member)
{
    const struct btf_type *type = NULL;
    uint64_t offset = variable_offset(btf, variable, &type);
    const struct btf_member *members = type && btf_is_struct(type) ? btf_members(type) : NULL;

    for (int i = 0; members && i < btf_vlen(type); i++) {
        if (!strcmp(btf__name_by_offset(btf, members[i].name_off), member))
            return offset + btf_member_bit_offset(type, (__u32)i) / 8;
    }
    return PRCB_NO_OFFSET;
}

static uint32_t bit_if_counting(const struct btf *btf, uint32_t name_offset, uint64_t word)
{
    const char *name = btf__name_by_offset(btf, name_offset);

    for (size_t i = 0; i < sizeof(counting_words) / sizeof(counting_words[0]); i++) {
        if (!strcmp(name, counting_words[i]) && word < PRCB_IRQ_STAT_WORDS)
            return 1u << word;
    }
    return 0;
}

/* type is that of the variable irq_stat. */
static uint32_t find_counting_words(const struct btf *btf, const struct btf_type *type)
{
    const struct btf_member *members = type && btf_is_struct(type) ? btf_members(type) : NULL;
    __s32 id = btf__find_by_name_kind(btf, "irq_stat_counts", BTF_KIND_ENUM);
    const struct btf_type *numbers = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
    uint32_t words = 0, first = 0;

    for (int i = 0; members && i < btf_vlen(type); i++) {
        uint32_t word = btf_member_bit_offset(type, (__u32)i) / 32;

        words |= bit_if_counting(btf, members[i].name_off, word);
        if (!strcmp(btf__name_by_offset(btf, members[i].name_off), "counts"))
            first = word;
    }
    for (int i = 0; members && numbers && i < btf_vlen(numbers); i++)
        words |= bit_if_counting(btf, btf_enum(numbers)[i].name_off,
                                 (uint64_t)first + (uint32_t)btf_enum(numbers)[i].val);
    return words;
}

static int need(const struct btf *btf, const char *name, struct prcb_error *err)
{
    return has_tracepoint(btf, name)
               ? 0
               : prcb_fail(err, -EOPNOTSUPP, "the kernel has no tracepoint %s", name);
}

/* Says what the figures need. */
static int check_kernel(const struct btf *btf, const struct processors_bpf *skeleton,
                        struct prcb_error *err)
{
    static const char *const needed[] = {"sched_switch",     "cpu_idle",      "irq_handler_entry",
                                         "irq_handler_exit", "softirq_entry", "softirq_exit"};
    int result = 0;

    for (size_t i = 0; !result && i < sizeof(needed) / sizeof(needed[0]); i++)
        result = need(btf, needed[i], err);
    /* A task's run queue leads to the processor's own variables (processors.bpf.c). */
    if (!result && (!kernel_has_member(btf, "sched_entity", "cfs_rq") ||
                    !kernel_has_member(btf, "cfs_rq", "rq")))
        result =
            prcb_fail(err, -EOPNOTSUPP,
                      "the kernel was built without CONFIG_FAIR_GROUP_SCHED: its tick counters "
                      "are out of reach");
    if (!result && (skeleton->rodata->config.runqueues == PRCB_NO_OFFSET ||
                    skeleton->rodata->config.cpustat == PRCB_NO_OFFSET))
        result = prcb_fail(err, -EOPNOTSUPP,
                           "the kernel's BTF does not tell where its per-processor variables "
                           "runqueues and kernel_cpustat are");
    return result;
}

static int configure(struct processor_programs *p, uint32_t count, const struct btf *btf,
                     struct prcb_error *err)
{
    struct processors_bpf *skeleton = p->skeleton;
    const struct btf_type *irq_stat = NULL;
    bool hotplug;
    int result;

    skeleton->rodata->config.runqueues = variable_offset(btf, "runqueues", NULL);
    skeleton->rodata->config.cpustat = member_offset(btf, "kernel_cpustat", "cpustat");
    skeleton->rodata->config.irqs_sum = member_offset(btf, "kstat", "irqs_sum");
    skeleton->rodata->config.irq_stat = variable_offset(btf, "irq_stat", &irq_stat);
    skeleton->rodata->config.irq_stat_words = find_counting_words(btf, irq_stat);
    result = check_kernel(btf, skeleton, err);
    hotplug = has_tracepoint(btf, "cpuhp_enter") && has_tracepoint(btf, "cpuhp_exit") &&
              kernel_has_constant(btf, "cpuhp_state", "CPUHP_BRINGUP_CPU") &&
              kernel_has_constant(btf, "cpuhp_state", "CPUHP_TEARDOWN_CPU");
    if (result)
        return result;
    p->features = PRCB_PROCESSOR_HARD | PRCB_PROCESSOR_SOFT | PRCB_PROCESSOR_CPUSTAT;
    p->features |= hotplug ? PRCB_PROCESSOR_HOTPLUG : 0;
#if defined(__x86_64__)
    if (skeleton->rodata->config.irqs_sum != PRCB_NO_OFFSET &&
        skeleton->rodata->config.irq_stat_words)
        p->features |= PRCB_PROCESSOR_INTERRUPTS;
#else
    if (skeleton->rodata->config.irqs_sum != PRCB_NO_OFFSET)
        p->features |= PRCB_PROCESSOR_INTERRUPTS;
#endif
    bpf_program__set_autoload(skeleton->progs.prcb_cpu_gone, hotplug);
    bpf_program__set_autoload(skeleton->progs.prcb_cpu_coming, hotplug);
    bpf_map__set_max_entries(skeleton->maps.processor_map, count + 1);
    bpf_map__set_max_entries(skeleton->maps.own_map, count);
    bpf_map__set_max_entries(skeleton->maps.thread_map, count);
    return 0;
}

/* ---- loading ---- */

/* Variables and tracepoints that the kernel's types describe. */
static const char *const names[] = {"runqueues",
                                    "kernel_cpustat",
                                    "kstat",
                                    "irq_stat",
                                    "irq_stat_counts",
                                    "kernel_stat",
                                    "task_struct",
                                    "bpf_map_type",
                                    "bpf_func_id",
                                    "bpf_prog_type",
                                    "btf_trace_sched_switch",
                                    "btf_trace_cpu_idle",
                                    "btf_trace_irq_handler_entry",
                                    "btf_trace_irq_handler_exit",
                                    "btf_trace_softirq_entry",
                                    "btf_trace_softirq_exit",
                                    "btf_trace_cpuhp_enter",
                                    "btf_trace_cpuhp_exit",
                                    NULL};

static int load(struct processor_programs *p, struct prcb_error *err)
{
    struct bpf_load l;
    int result = bpf_load_begin(&l, err);

    if (!result) {
        p->skeleton = processors_bpf__open_opts(&l.options);
        result = p->skeleton
                     ? bpf_load_find_types(&l, p->skeleton->obj, names, KERNEL_FOR_PROCESSORS, err)
                     : bpf_explain_load(-errno, err);
    }
    if (!result)
        result = configure(p, p->count, l.types.btf, err);
    if (!result)
        bpf_program__set_autoload(p->skeleton->progs.prcb_processor_switch, p->times);
    if (!result && p->map >= 0 && bpf_map__reuse_fd(p->skeleton->maps.processor_map, p->map))
        result =
            prcb_fail(err, -errno, "the processor blocks cannot be shared: %s", strerror(errno));
    if (!result) {
        result = processors_bpf__load(p->skeleton);
        if (!result)
            result = bpf_run_program(
                bpf_program__fd(p->skeleton->progs.prcb_tell_processor_features), NULL, 0, NULL);
        if (result)
            result = bpf_explain_load(result, err);
    }
    if (!result)
        p->features |= p->skeleton->bss->kernel_features;
    bpf_load_end(&l);
    return result;
}

static int write_head(struct processor_programs *p, struct prcb_error *err)
{
    struct prcb_processor_head head = {
        .magic = PRCB_PROCESSOR_MAGIC,
        .abi_major = PRCB_PROCESSOR_MAJOR,
        .abi_minor = PRCB_PROCESSOR_MINOR,
        .head_size = sizeof(struct prcb_processor_head),
        .block_size = sizeof(struct prcb_processor_block),
        .block_stride = sizeof(struct prcb_processor_block),
        .count = p->count,
        .features = p->features,
        .writer_pid = (__u32)getpid(),
        .writer = PRCB_VERSION,
    };
    __u32 zero = 0;

    if (bpf_map_update_elem(bpf_map__fd(p->skeleton->maps.processor_map), &zero, &head, BPF_ANY))
        return prcb_fail(err, -errno, "the head of the processor blocks cannot be written: %s",
                         strerror(errno));
    return 0;
}

static struct bpf_link *attach_vector(struct processors_bpf *skeleton, size_t i, bool end)
{
    bool tick = vectors[i].tick;
    struct bpf_program *program = tick && end ? skeleton->progs.prcb_tick_exit
                                  : tick      ? skeleton->progs.prcb_tick_entry
                                  : end       ? skeleton->progs.prcb_hard_exit
                                              : skeleton->progs.prcb_hard_entry;
    char name[48];

    snprintf(name, sizeof(name), "%s_%s", vectors[i].name, end ? "exit" : "entry");
    return bpf_program__attach_raw_tracepoint(program, name);
}

/* Attaches the end first: an end without its beginning is ignored, and the reverse would not be. */
static void attach_vectors(struct processor_programs *p)
{
    for (size_t i = 0; i < VECTORS; i++) {
        p->vectors[2 * i + 1] = attach_vector(p->skeleton, i, true);
        if (!p->vectors[2 * i + 1])
            continue;
        p->vectors[2 * i] = attach_vector(p->skeleton, i, false);
        p->features |= PRCB_PROCESSOR_VECTORS;
    }
}

/* The skeleton's programs last, and sched_switch the last but for hotplug's: with it blocks begin
 * to be written. */
static int attach(struct processor_programs *p, struct prcb_error *err)
{
    const struct bpf_object_skeleton *all = p->skeleton->skeleton;
    libbpf_print_fn_t print = bpf_listen();
    int result = 0;

    attach_vectors(p);
    for (int i = 0; !result && i < all->prog_cnt; i++) {
        const struct bpf_prog_skeleton *at =
            (const void *)((const char *)all->progs + i * all->prog_skel_sz);

        if (p->later && *at->prog == p->skeleton->progs.prcb_processor_switch)
            continue;
        if (bpf_program__autoload(*at->prog) &&
            bpf_program__type(*at->prog) == BPF_PROG_TYPE_TRACING)
            result = bpf_attach(*at->prog, at->link, err);
    }
    libbpf_set_print(print);
    return result;
}

/* Runs the starting program on each processor: those that sleep would otherwise not be seen before
 * they wake up. One that is off line (-ENXIO) starts when it comes up. */
static int start_all(struct processor_programs *p, struct prcb_error *err)
{
    int fd = bpf_program__fd(p->skeleton->progs.prcb_start);

    for (uint32_t i = 0; i < p->count; i++) {
        LIBBPF_OPTS(bpf_test_run_opts, options, .cpu = i, .flags = BPF_F_TEST_RUN_ON_CPU);

        if (bpf_prog_test_run_opts(fd, &options) && errno != ENXIO)
            return prcb_fail(err, -errno, "a program cannot be run on processor %u: %s", i,
                             strerror(errno));
    }
    return 0;
}

static int check_started(const struct processor_map *map, struct prcb_error *err)
{
    for (uint32_t i = 0; i < map->count; i++) {
        struct prcb_processor_block copy;
        uint32_t retries = 0;

        if (processor_block_copy(map, i, PROCESSOR_TIMES_BYTES, &copy, &retries))
            continue;
        if (copy.state == PRCB_PROCESSOR_ONLINE)
            return 0;
    }
    return prcb_fail(err, -EIO,
                     "the processor programs do not run: is BPF held back by the kernel "
                     "(kernel.ftrace_enabled, lockdown)?");
}

/* Blocks are written by one program at a time, as hard interrupts alone can come between, which are
 * told apart. On PREEMPT_RT softirqs are threads' work that others preempt: one may come between as
 * well, and a softirq's time is no stretch that begins and ends on one processor. */
static int check_preemption(struct prcb_error *err)
{
    if (!kernel_is_realtime(""))
        return 0;
    return prcb_fail(err, -EOPNOTSUPP,
                     "the kernel is PREEMPT_RT, where softirqs are preempted: processors' times "
                     "are not measured there");
}

int processor_programs_load(uint32_t count, int map, bool times, struct processor_programs **ret,
                            struct prcb_error *err)
{
    struct processor_programs *p;
    int result = check_preemption(err);

    if (result)
        return result;
    p = calloc(1, sizeof(*p));
    if (!p)
        return prcb_fail(err, -ENOMEM, "out of memory");
    *ret = p;
    p->count = count;
    p->map = map;
    p->times = times;
    return load(p, err);
}

int processor_programs_attach(struct processor_programs *p, struct processor_map *ret_map,
                              struct prcb_error *err)
{
    int result = attach(p, err);

    if (!result)
        result = write_head(p, err);
    if (!result)
        result = processor_map_open(processor_programs_map_fd(p), ret_map, err);
    if (!result)
        result = processor_map_add_threads(ret_map, processor_programs_threads_fd(p), err);
    if (!result)
        result = start_all(p, err);
    if (!result)
        result = check_started(ret_map, err);
    return result;
}

int processor_programs_open(uint32_t count, bool times, struct processor_programs **ret,
                            struct processor_map *ret_map, struct prcb_error *err)
{
    int result = processor_programs_load(count, -1, times, ret, err);

    return result ? result : processor_programs_attach(*ret, ret_map, err);
}

void processor_programs_switches_later(struct processor_programs *p)
{
    p->later = true;
}

void processor_programs_close(struct processor_programs *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < 2 * VECTORS; i++)
        bpf_link__destroy(p->vectors[i]);
    processors_bpf__destroy(p->skeleton);
    free(p);
}

const void *processor_programs_elf(size_t *ret_bytes)
{
    return processors_bpf__elf_bytes(ret_bytes);
}

int processor_programs_map_fd(const struct processor_programs *p)
{
    return bpf_map__fd(p->skeleton->maps.processor_map);
}

int processor_programs_threads_fd(const struct processor_programs *p)
{
    return bpf_map__fd(p->skeleton->maps.thread_map);
}

int processor_programs_end_fd(const struct processor_programs *p)
{
    return bpf_program__fd(p->skeleton->progs.prcb_processors_end);
}

int processor_programs_links(const struct processor_programs *p, int (*keep)(int fd, void *ctx),
                             void *ctx)
{
    const struct bpf_object_skeleton *all = p->skeleton->skeleton;
    int result = 0;

    for (size_t i = 0; !result && i < 2 * VECTORS; i++) {
        if (p->vectors[i])
            result = keep(bpf_link__fd(p->vectors[i]), ctx);
    }
    for (int i = 0; !result && i < all->prog_cnt; i++) {
        if (*all->progs[i].link)
            result = keep(bpf_link__fd(*all->progs[i].link), ctx);
    }
    return result;
}

int processor_programs_events(const struct processor_programs *p,
                              int (*keep)(int fd, const char *name, void *ctx), void *ctx)
{
    const struct bpf_program *program;
    int result = 0;

    for (uint32_t i = 0; !result && (program = bpf_event_program_at(p->skeleton->obj, i)); i++)
        result = keep(bpf_program__fd(program), bpf_program__name(program), ctx);
    return result;
}

const struct bpf_object *processor_programs_object(const struct processor_programs *p)
{
    return p->skeleton->obj;
}
