/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The bpf tier of the processors: loads the programs, starts them on each processor, and turns
 * their blocks into records. All writing is the programs'.
 */
#include "processor_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "kernel_btf.h"
#include "processors.h"
#include "processors.skel.h"

#define FIRST_PID_NS 4026531836u /* PROC_PID_INIT_INO: the inode of the first pid namespace */

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

/* Words of x86's irq_cpustat_t that count interrupts, as rows of /proc/interrupts. Not: PMI, which
 * NMI has counted; TLB, which are among the function calls; RTR, which are no interrupts. */
static const char *const counting_words[] = {
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
};

struct processor_programs {
    struct processors_bpf *skeleton;
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

static uint32_t find_counting_words(const struct btf *btf, const struct btf_type *type)
{
    const struct btf_member *members = type && btf_is_struct(type) ? btf_members(type) : NULL;
    uint32_t words = 0;

    for (int i = 0; members && i < btf_vlen(type); i++) {
        const char *name = btf__name_by_offset(btf, members[i].name_off);
        uint32_t word = btf_member_bit_offset(type, (__u32)i) / 32;

        for (size_t k = 0; k < sizeof(counting_words) / sizeof(counting_words[0]); k++) {
            if (!strcmp(name, counting_words[k]) && word < PRCB_IRQ_STAT_WORDS)
                words |= 1u << word;
        }
    }
    return words;
}

static int need(const struct btf *btf, const char *name, struct prcb_error *err)
{
    return has_tracepoint(btf, name)
               ? 0
               : prcb_fail(err, -EOPNOTSUPP, "the kernel has no tracepoint %s", name);
}

/* What figures cannot do without. */
static int check_kernel(const struct btf *btf, const struct processors_bpf *skeleton,
                        struct prcb_error *err)
{
    static const char *const needed[] = {"sched_switch",     "cpu_idle",      "irq_handler_entry",
                                         "irq_handler_exit", "softirq_entry", "softirq_exit"};
    int result = 0;

    for (size_t i = 0; !result && i < sizeof(needed) / sizeof(needed[0]); i++)
        result = need(btf, needed[i], err);
    if (!result && (skeleton->rodata->config.runqueues == PRCB_NO_OFFSET ||
                    skeleton->rodata->config.kernel_cpustat == PRCB_NO_OFFSET))
        result = prcb_fail(err, -EOPNOTSUPP,
                           "the kernel's BTF does not tell where its per-processor variables "
                           "runqueues and kernel_cpustat are");
    return result;
}

static int configure(struct processor_programs *p, uint32_t count, struct prcb_error *err)
{
    struct processors_bpf *skeleton = p->skeleton;
    struct btf *btf = btf__load_vmlinux_btf();
    const struct btf_type *irq_stat = NULL;
    bool hotplug;
    int result;

    if (!btf)
        return prcb_fail(err, -EOPNOTSUPP,
                         "the kernel has no BTF (/sys/kernel/btf/vmlinux): it must be built with "
                         "CONFIG_DEBUG_INFO_BTF");
    skeleton->rodata->config.runqueues = variable_offset(btf, "runqueues", NULL);
    skeleton->rodata->config.kernel_cpustat = variable_offset(btf, "kernel_cpustat", NULL);
    skeleton->rodata->config.kstat = variable_offset(btf, "kstat", NULL);
    skeleton->rodata->config.irq_stat = variable_offset(btf, "irq_stat", &irq_stat);
    skeleton->rodata->config.irq_stat_words = find_counting_words(btf, irq_stat);
    result = check_kernel(btf, skeleton, err);
    hotplug = has_tracepoint(btf, "cpuhp_enter") && has_tracepoint(btf, "cpuhp_exit");
    btf__free(btf);
    if (result)
        return result;
    p->features = PRCB_PROCESSOR_HARD | PRCB_PROCESSOR_SOFT | PRCB_PROCESSOR_CPUSTAT |
                  PRCB_PROCESSOR_RQ_CLOCK | PRCB_PROCESSOR_SWITCHES;
    p->features |= hotplug ? PRCB_PROCESSOR_HOTPLUG : 0;
#if defined(__x86_64__)
    if (skeleton->rodata->config.kstat != PRCB_NO_OFFSET && skeleton->rodata->config.irq_stat_words)
        p->features |= PRCB_PROCESSOR_INTERRUPTS;
#else
    if (skeleton->rodata->config.kstat != PRCB_NO_OFFSET)
        p->features |= PRCB_PROCESSOR_INTERRUPTS;
#endif
    bpf_program__set_autoload(skeleton->progs.prcb_cpu_gone, hotplug);
    bpf_program__set_autoload(skeleton->progs.prcb_cpu_coming, hotplug);
    bpf_map__set_max_entries(skeleton->maps.processor_map, count + 1);
    bpf_map__set_max_entries(skeleton->maps.own_map, count);
    return 0;
}

/* ---- loading ---- */

static int no_print(enum libbpf_print_level level, const char *format, va_list args)
{
    return 0;
}

static int explain(int code, struct prcb_error *err)
{
    if (code == -EPERM)
        return prcb_fail(err, -EPERM,
                         "eBPF programs may not be loaded: run as root, or with CAP_BPF and "
                         "CAP_PERFMON (prcb doctor tells more)");
    return prcb_fail(err, code == -EINVAL || code == -EACCES ? -EOPNOTSUPP : code,
                     "the kernel refused the eBPF programs (%s); prcb doctor says what it lacks",
                     strerror(-code));
}

static int load(struct processor_programs *p, uint32_t count, struct prcb_error *err)
{
    int result;

    p->skeleton = processors_bpf__open();
    result = p->skeleton ? configure(p, count, err) : explain(-errno, err);
    if (result)
        return result;
    result = processors_bpf__load(p->skeleton);
    return result ? explain(result, err) : 0;
}

static int write_head(struct processor_programs *p, uint32_t count, struct prcb_error *err)
{
    struct prcb_processor_head head = {
        .magic = PRCB_PROCESSOR_MAGIC,
        .abi_major = PRCB_PROCESSOR_MAJOR,
        .abi_minor = PRCB_PROCESSOR_MINOR,
        .head_size = sizeof(struct prcb_processor_head),
        .block_size = sizeof(struct prcb_processor_block),
        .block_stride = sizeof(struct prcb_processor_block),
        .count = count,
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
    struct bpf_program *program = !end              ? skeleton->progs.prcb_hard_entry
                                  : vectors[i].tick ? skeleton->progs.prcb_tick_exit
                                                    : skeleton->progs.prcb_hard_exit;
    char name[48];

    snprintf(name, sizeof(name), "%s_%s", vectors[i].name, end ? "exit" : "entry");
    return bpf_program__attach_raw_tracepoint(program, name);
}

/* The end first: an end without its beginning is let pass, the reverse would not be. */
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
    int result;

    attach_vectors(p);
    result = processors_bpf__attach(p->skeleton);
    if (result)
        return prcb_fail(err, result, "the processor programs cannot be attached: %s",
                         strerror(-result));
    return 0;
}

/* Runs the starting program on each processor: those that sleep would otherwise not be seen before
 * they wake up. One that is off line (-ENXIO) starts when it comes up. */
static int start_all(struct processor_programs *p, uint32_t count, struct prcb_error *err)
{
    int fd = bpf_program__fd(p->skeleton->progs.prcb_start);

    for (uint32_t i = 0; i < count; i++) {
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

/* libbpf's own words go nowhere: ours name what failed and what to do. */
static int load_and_attach(struct processor_programs *p, uint32_t count, struct prcb_error *err)
{
    libbpf_print_fn_t print = libbpf_set_print(no_print);
    int result = load(p, count, err);

    if (!result)
        result = attach(p, err);
    libbpf_set_print(print);
    return result;
}

int processor_programs_open(uint32_t count, struct processor_programs **ret,
                            struct processor_map *ret_map, struct prcb_error *err)
{
    struct processor_programs *p = calloc(1, sizeof(*p));
    int result;

    if (!p)
        return prcb_fail(err, -ENOMEM, "out of memory");
    *ret = p;
    result = load_and_attach(p, count, err);
    if (!result)
        result = write_head(p, count, err);
    if (!result)
        result = processor_map_open(processor_programs_map_fd(p), ret_map, err);
    if (!result)
        result = start_all(p, count, err);
    if (!result)
        result = check_started(ret_map, err);
    return result;
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

int processor_programs_map_fd(const struct processor_programs *p)
{
    return bpf_map__fd(p->skeleton->maps.processor_map);
}

static bool in_first_pid_ns(void)
{
    struct stat st;

    return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NS;
}

/* ---- records ---- */

static void say_what_lacks(struct prcb_processors *v)
{
    if (!(v->map->features & PRCB_PROCESSOR_INTERRUPTS))
        processors_lack(v, PRCB_CPU_HAS_INTERRUPTS,
                        "the kernel's BTF does not tell where its interrupt counters are");
    if (!v->threads_have_numbers)
        processors_lack(v, PRCB_CPU_HAS_THREAD,
                        "threads are known by their numbers in the first pid namespace, and this "
                        "process is in another");
}

static int bpf_open(struct prcb_processors *v, struct prcb_error *err)
{
    int result;

    v->map = calloc(1, sizeof(*v->map));
    if (!v->map)
        return prcb_fail(err, -ENOMEM, "out of memory");
    v->threads_have_numbers = in_first_pid_ns();
    result = processor_programs_open(v->count, &v->programs, v->map, err);
    if (!result)
        say_what_lacks(v);
    return result;
}

static void bpf_close(struct prcb_processors *v)
{
    if (v->map)
        processor_map_close(v->map);
    free(v->map);
    v->map = NULL;
    processor_programs_close(v->programs);
    v->programs = NULL;
}

/* Never before a moment that was answered for. */
static uint64_t bpf_now(struct prcb_processors *v)
{
    bool fresh = false;
    uint64_t now = clock_now(&v->clock, &v->clock_base, &fresh);

    if (now < v->last_now)
        now = v->last_now;
    v->last_now = now;
    return now;
}

static uint32_t flags_of(const struct prcb_processor_block *copy)
{
    if (copy->state != PRCB_PROCESSOR_ONLINE)
        return 0;
    return PRCB_CPU_ONLINE |
           (!copy->hard_depth && copy->beneath == PRCB_PROCESSOR_IN_IDLE ? PRCB_CPU_IDLE : 0);
}

static int bpf_times(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *ret,
                     enum part *live, uint32_t *flags)
{
    struct prcb_processor_block copy;
    uint32_t retries = 0;
    int result = processor_block_copy(v->map, number, PROCESSOR_TIMES_BYTES, &copy, &retries);

    if (result)
        return result;
    processor_block_times(&copy, now, ret, live);
    *flags = flags_of(&copy);
    return 0;
}

/* Names are cpuidle's. Without it the kernel has one way to be idle, which its tracepoint calls 1,
 * and 0 when it was told to poll. */
static void idle_states(const struct prcb_processor_block *copy, const struct cpu_sysfs *sysfs,
                        uint64_t live, struct prcb_processor *ret)
{
    uint32_t count = sysfs->idle_state_count, state = copy->idle_state;

    for (uint32_t i = 0; i < PRCB_PROCESSOR_IDLE_STATES; i++) {
        uint32_t to = count ? i : 0;

        ret->idle_states[to].entries += copy->idle[i].entries;
        ret->idle_states[to].residency_ns += copy->idle[i].ns + (i == state ? live : 0);
    }
    for (uint32_t i = 0; i < count; i++)
        memcpy(ret->idle_states[i].name, sysfs->idle_states[i].name, CPU_FILES_NAME);
    if (!count)
        memcpy(ret->idle_states[0].name, "idle", 5);
    ret->idle_state_count = count ? count : 1;
    if (ret->flags & PRCB_CPU_IDLE && state != PRCB_IDLE_STATE_UNKNOWN) {
        ret->idle_state = count ? state : 0;
        ret->present |= PRCB_CPU_HAS_IDLE_STATE;
    }
}

static void thread_of(const struct prcb_processors *v, const struct prcb_processor_block *copy,
                      uint64_t now, struct prcb_processor *ret)
{
    uint64_t since = copy->since + (uint64_t)copy->clock_offset;

    if (copy->state != PRCB_PROCESSOR_ONLINE)
        return;
    ret->tid = copy->tid;
    /* The idle task has the same number everywhere. */
    if (v->threads_have_numbers || !copy->tid)
        ret->present |= PRCB_CPU_HAS_THREAD;
    if (copy->clock_offset == PRCB_OFFSET_UNKNOWN)
        return;
    ret->running_ns = now > since ? now - since : 0;
    ret->present |= PRCB_CPU_HAS_RUNNING;
}

static int bpf_record(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *parts,
                      enum part *live, struct prcb_processor *ret)
{
    struct prcb_processor_block copy;
    int result = processor_block_copy(v->map, number, sizeof(copy), &copy, &ret->retries);

    if (result)
        return result;
    processor_block_times(&copy, now, parts, live);
    ret->flags = flags_of(&copy);
    ret->present = PRCB_CPU_HAS_TIMES | PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT |
                   PRCB_CPU_HAS_STEAL | PRCB_CPU_HAS_DPCS | PRCB_CPU_HAS_SWITCHES |
                   PRCB_CPU_HAS_MISSED | PRCB_CPU_HAS_IDLE_ENTRIES | PRCB_CPU_HAS_IDLE_STATES;
    if (v->map->features & PRCB_PROCESSOR_INTERRUPTS)
        ret->present |= PRCB_CPU_HAS_INTERRUPTS;
    ret->interrupts = copy.interrupts;
    ret->dpcs = copy.dpcs;
    ret->switches = copy.switches;
    ret->missed_switches = copy.switches > copy.seen ? copy.switches - copy.seen : 0;
    ret->idle_entries = copy.idle_entries;
    idle_states(&copy, &v->slots[number].facts.sysfs,
                *live == PART_IDLE ? parts->ns[PART_IDLE] - copy.idle_ns : 0, ret);
    thread_of(v, &copy, now, ret);
    return 0;
}

/* The blocks are current. */
static int bpf_refresh(struct prcb_processors *v, struct prcb_error *err)
{
    return 0;
}

const struct processor_source processors_from_bpf = {
    .number = PRCB_TIER_BPF,
    .open = bpf_open,
    .close = bpf_close,
    .now = bpf_now,
    .times = bpf_times,
    .record = bpf_record,
    .refresh = bpf_refresh,
};
