/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <prcb/prcb.h>
#include <prcb/processors.h>
#include <prcb/sample.h>

#include "read_file.h"

#define CAP_SYS_ADMIN_BIT 21
#define CAP_PERFMON_BIT   38
#define CAP_BPF_BIT       39
#define FILE_MOST         (64u << 20) /* the kernel's type information has ten */

/* ---- reading ---- */

static void path_of(const char *root, const char *name, char *ret, size_t size)
{
    snprintf(ret, size, "%s%s", root, name);
}

static bool exists(const char *root, const char *name)
{
    char path[512];

    path_of(root, name, path, sizeof(path));
    return !access(path, F_OK);
}

/* Reads a whole file, with a NUL behind it; the caller frees it. 0 or -errno. */
static int read_whole(const char *root, const char *name, char **ret, size_t *ret_size)
{
    char path[512];

    path_of(root, name, path, sizeof(path));
    return read_file(path, FILE_MOST, ret, ret_size);
}

/* Reads the first bytes of a small file, without the newline. 0 or -errno. */
static int read_line(const char *root, const char *name, char *ret, size_t size)
{
    char path[512];
    ssize_t got;

    path_of(root, name, path, sizeof(path));
    got = read_start(path, ret, size - 1);
    if (got < 0)
        return (int)got;
    ret[got] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return 0;
}

static int read_number(const char *root, const char *name, long *ret)
{
    char text[64], *end;
    long value;
    int result = read_line(root, name, text, sizeof(text));

    if (result)
        return result;
    value = strtol(text, &end, 10);
    if (end == text)
        return -EINVAL;
    *ret = value;
    return 0;
}

static void found(struct doctor_result *ret, enum doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void found(struct doctor_result *ret, enum doctor_state state, const char *format, ...)
{
    va_list args;

    ret->state = state;
    va_start(args, format);
    vsnprintf(ret->detail, sizeof(ret->detail), format, args);
    va_end(args);
}

static void unreadable(struct doctor_result *ret, const char *name, int error)
{
    found(ret, DOCTOR_UNKNOWN, "%s: %s", name, strerror(-error));
}

/* ---- the kernel ---- */

#define BTF "/sys/kernel/btf/vmlinux"

static void look_btf(const char *root, struct doctor_result *ret)
{
    char path[512];
    struct stat st;

    path_of(root, BTF, path, sizeof(path));
    if (stat(path, &st))
        found(ret, DOCTOR_ABSENT, BTF ": %s", strerror(errno));
    else
        found(ret, DOCTOR_PRESENT, BTF ", %.1f MiB", (double)st.st_size / 1048576.0);
}

/* Looks for a tracepoint's BTF name, with the NULs that surround it in the string section. */
static void look_contention(const char *root, struct doctor_result *ret)
{
    static const char name[] = "\0btf_trace_contention_begin";
    size_t size;
    char *btf;
    int result = read_whole(root, BTF, &btf, &size);

    if (result == -ENOENT) {
        found(ret, DOCTOR_UNKNOWN, "cannot be told without BTF");
    } else if (result) {
        unreadable(ret, BTF, result);
    } else {
        if (memmem(btf, size, name, sizeof(name)))
            found(ret, DOCTOR_PRESENT, "contention_begin is in the kernel's BTF");
        else
            found(ret, DOCTOR_ABSENT, "contention_begin is not in the kernel's BTF");
        free(btf);
    }
}

/* A thread's own run time is in the file only if the kernel keeps sched_info. */
static void look_ready_time(const char *root, struct doctor_result *ret)
{
    char text[128];
    int result = read_line(root, "/proc/self/schedstat", text, sizeof(text));

    if (result == -ENOENT)
        found(ret, DOCTOR_ABSENT, "no /proc/self/schedstat");
    else if (result)
        unreadable(ret, "/proc/self/schedstat", result);
    else if (strtoull(text, NULL, 10))
        found(ret, DOCTOR_PRESENT, "/proc/self/schedstat counts");
    else
        found(ret, DOCTOR_ABSENT, "/proc/self/schedstat stays 0");
}

static void look_lockdown(const char *root, struct doctor_result *ret)
{
    static const char name[] = "/sys/kernel/security/lockdown";
    char text[128];
    int result = read_line(root, name, text, sizeof(text));

    /* A mounted securityfs lists the security modules: if lockdown does not stand beside the
     * list, none is built in. */
    if (result == -ENOENT && exists(root, "/sys/kernel/security/lsm"))
        found(ret, DOCTOR_PRESENT, "this kernel has no lockdown");
    else if (result == -ENOENT)
        found(ret, DOCTOR_UNKNOWN, "securityfs is not mounted");
    else if (result)
        unreadable(ret, name, result);
    else if (strstr(text, "[confidentiality]"))
        found(ret, DOCTOR_ABSENT, "locked down: %s", text);
    else
        found(ret, DOCTOR_PRESENT, "%s", text);
}

static void look_realtime(const char *root, struct doctor_result *ret)
{
    static const char name[] = "/sys/kernel/realtime";
    char version[256] = "";
    long value = 0;
    int result = read_number(root, name, &value);

    /* uname -v says it too: kernels that are PREEMPT_RT without a patch have no such file. */
    if (!read_line(root, "/proc/sys/kernel/version", version, sizeof(version)) &&
        strstr(version, "PREEMPT_RT"))
        found(ret, DOCTOR_ABSENT, "this kernel is PREEMPT_RT: %s", version);
    else if (result == -ENOENT || (!result && !value))
        found(ret, DOCTOR_PRESENT, "this kernel is not PREEMPT_RT");
    else if (result)
        unreadable(ret, name, result);
    else
        found(ret, DOCTOR_ABSENT, "%s: this kernel is PREEMPT_RT", name);
}

/* ---- what this process may do ---- */

static bool initial_user_namespace(const char *root)
{
    unsigned long inner, outer, count;
    char text[256];

    return read_line(root, "/proc/self/uid_map", text, sizeof(text)) ||
           (sscanf(text, "%lu %lu %lu", &inner, &outer, &count) == 3 && !inner && !outer &&
            count == UINT32_MAX);
}

static int effective_capabilities(const char *root, uint64_t *ret)
{
    size_t size;
    char *status, *at;
    int result = read_whole(root, "/proc/self/status", &status, &size);

    if (result)
        return result;
    at = strstr(status, "\nCapEff:");
    if (at)
        *ret = strtoull(at + strlen("\nCapEff:"), NULL, 16);
    free(status);
    return at ? 0 : -EINVAL;
}

static void look_capabilities(const char *root, struct doctor_result *ret)
{
    uint64_t caps;
    int result = effective_capabilities(root, &caps);
    bool admin, bpf, perfmon;

    if (result) {
        unreadable(ret, "/proc/self/status", result);
        return;
    }
    admin = caps >> CAP_SYS_ADMIN_BIT & 1;
    bpf = admin || (caps >> CAP_BPF_BIT & 1);
    perfmon = admin || (caps >> CAP_PERFMON_BIT & 1);
    if (!bpf || !perfmon)
        found(ret, DOCTOR_ABSENT, "user %d, without%s%s", (int)geteuid(), bpf ? "" : " CAP_BPF",
              perfmon ? "" : " CAP_PERFMON");
    else if (!initial_user_namespace(root))
        found(ret, DOCTOR_ABSENT, "held only inside a user namespace, where eBPF ignores them");
    else
        found(ret, DOCTOR_PRESENT, "user %d, %s", (int)geteuid(),
              admin ? "CAP_SYS_ADMIN" : "CAP_BPF and CAP_PERFMON");
}

/* Returns whether there is a point in trying. */
static bool may_load(const char *root, struct doctor_result *ret)
{
    struct doctor_result capabilities;

    look_capabilities(root, &capabilities);
    if (*root)
        found(ret, DOCTOR_UNKNOWN, "programs are loaded on this machine only");
    else if (capabilities.state != DOCTOR_PRESENT)
        found(ret, DOCTOR_UNKNOWN, "not tried without the capabilities");
    return !*root && capabilities.state == DOCTOR_PRESENT;
}

static void add_line(char *text, size_t size, const char *line)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s", length ? "; " : "", line);
}

static void look_thread_programs(const char *root, struct doctor_result *ret)
{
    struct prcb_options opts = {.size = sizeof(opts), .tier = PRCB_TIER_BPF, .max_threads = 64};
    struct prcb_error err = {0};
    struct prcb *p;

    if (!may_load(root, ret))
        return;
    if (prcb_open(&opts, &p, &err)) {
        found(ret, DOCTOR_ABSENT, "%s", err.text);
        return;
    }
    prcb_close(p);
    opts.flags = PRCB_OPEN_EDGES | PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN; /* as prcb why */
    if (prcb_open(&opts, &p, &err)) {
        found(ret, DOCTOR_PRESENT, "this kernel takes them, but not what prcb why asks for: %s",
              err.text);
        return;
    }
    prcb_close(p);
    found(ret, DOCTOR_PRESENT, "this kernel takes the eBPF programs for threads");
}

/* Looks for figures that the kernel's types do not allow, though the programs load. */
static void look_thread_figures(const char *root, struct doctor_result *ret)
{
    static const uint64_t figures[] = {PRCB_HAS_READY, PRCB_HAS_MIGRATIONS, PRCB_HAS_SYSCALL,
                                       PRCB_HAS_CGROUP, PRCB_HAS_REGISTERS};
    const struct prcb_options opts = {.size = sizeof(opts),
                                      .tier = PRCB_TIER_BPF,
                                      .max_threads = 64,
                                      .flags = PRCB_OPEN_REGISTERS};
    char text[sizeof(ret->detail)] = "";
    struct prcb_error err = {0};
    const char *line;
    struct prcb *p;

    if (!may_load(root, ret))
        return;
    if (prcb_open(&opts, &p, &err)) {
        found(ret, DOCTOR_UNKNOWN, "the programs for threads do not load");
        return;
    }
    for (size_t i = 0; (line = prcb_session_limit(p, i)); i++)
        add_line(text, sizeof(text), line);
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        line = prcb_absent_reason(p, figures[i]);
        if (line)
            add_line(text, sizeof(text), line);
    }
    prcb_close(p);
    found(ret, *text ? DOCTOR_ABSENT : DOCTOR_PRESENT, "%s",
          *text ? text : "every figure of threads, and every cause of waits");
}

static void look_processor_programs(const char *root, struct doctor_result *ret)
{
    const struct prcb_processors_options opts = {.size = sizeof(opts), .tier = PRCB_TIER_BPF};
    struct prcb_processors *p;
    struct prcb_error err = {0};

    if (!may_load(root, ret))
        return;
    if (prcb_processors_open(&opts, &p, &err)) {
        found(ret, DOCTOR_ABSENT, "%s", err.text);
        return;
    }
    prcb_processors_close(p);
    found(ret, DOCTOR_PRESENT, "this kernel takes the eBPF programs for processors");
}

/* Includes the program that tells who woke a thread, which needs the programs for processors; a
 * recording does without it. */
static void look_record_programs(const char *root, struct doctor_result *ret)
{
    struct prcb_sampler_options opts = {.size = sizeof(opts), .memory = 1 << 20};
    struct prcb_processors *view = NULL;
    struct prcb_error err = {0}, no_wakers = {0};
    struct prcb_sampler *s = NULL;

    if (!may_load(root, ret))
        return;
    if (!prcb_processors_open(NULL, &view, &no_wakers)) {
        opts.wakers = view;
        prcb_sampler_open(&opts, &s, &no_wakers);
    }
    opts.wakers = NULL;
    if (s)
        found(ret, DOCTOR_PRESENT, "this kernel takes the eBPF programs of recordings");
    else if (!prcb_sampler_open(&opts, &s, &err))
        found(ret, DOCTOR_PRESENT, "this kernel takes them, but wakers are not recorded: %s",
              no_wakers.text);
    else
        found(ret, DOCTOR_ABSENT, "%s", err.text);
    prcb_sampler_close(s);
    prcb_processors_close(view);
}

/* Looks at one sysctl that is good within bounds. */
static void look_sysctl(const char *root, const char *path, const char *name, long least, long most,
                        struct doctor_result *ret)
{
    long value;
    int result = read_number(root, path, &value);

    if (result == -ENOENT)
        found(ret, DOCTOR_UNKNOWN, "no %s", path);
    else if (result)
        unreadable(ret, path, result);
    else
        found(ret, value >= least && value <= most ? DOCTOR_PRESENT : DOCTOR_ABSENT, "%s = %ld",
              name, value);
}

static void look_perf_events(const char *root, struct doctor_result *ret)
{
    look_sysctl(root, "/proc/sys/kernel/perf_event_paranoid", "kernel.perf_event_paranoid",
                LONG_MIN, 2, ret);
}

/* A kernel without Yama has no such file, and no such rule. */
static void look_yama(const char *root, struct doctor_result *ret)
{
    static const char path[] = "/proc/sys/kernel/yama/ptrace_scope";
    long scope;

    if (read_number(root, path, &scope) == -ENOENT)
        found(ret, DOCTOR_PRESENT, "no Yama: users may inspect all their own processes");
    else
        look_sysctl(root, path, "kernel.yama.ptrace_scope", LONG_MIN, 0, ret);
}

static void look_no_unprivileged_bpf(const char *root, struct doctor_result *ret)
{
    look_sysctl(root, "/proc/sys/kernel/unprivileged_bpf_disabled",
                "kernel.unprivileged_bpf_disabled", 1, LONG_MAX, ret);
}

/* Since 5.11 eBPF memory is charged to the cgroup, not to this limit. */
static void look_memlock(const char *root, struct doctor_result *ret)
{
    static const char label[] = "\nMax locked memory";
    const uint64_t enough = 64 << 20;
    unsigned major = 0, minor = 0;
    char release[128] = "", *limits, *at, soft[32];
    size_t size;
    int result = read_whole(root, "/proc/self/limits", &limits, &size);

    if (result) {
        unreadable(ret, "/proc/self/limits", result);
        return;
    }
    at = strstr(limits, label);
    if (!at || sscanf(at + strlen(label), "%31s", soft) != 1)
        snprintf(soft, sizeof(soft), "?");
    free(limits);
    read_line(root, "/proc/sys/kernel/osrelease", release, sizeof(release));
    if (sscanf(release, "%u.%u", &major, &minor) != 2)
        major = 0;
    if (major > 5 || (major == 5 && minor >= 11))
        found(ret, DOCTOR_PRESENT, "%s bytes; not applied to eBPF since Linux 5.11", soft);
    else if (!strcmp(soft, "unlimited") || strtoull(soft, NULL, 10) >= enough)
        found(ret, DOCTOR_PRESENT, "%s bytes", soft);
    else
        found(ret, soft[0] == '?' ? DOCTOR_UNKNOWN : DOCTOR_ABSENT, "%s bytes", soft);
}

static void look_bpffs(const char *root, struct doctor_result *ret)
{
    char *mounts, *line, *save = NULL, where[256], type[64];
    size_t size;
    int result = read_whole(root, "/proc/self/mounts", &mounts, &size);

    if (result) {
        unreadable(ret, "/proc/self/mounts", result);
        return;
    }
    found(ret, DOCTOR_ABSENT, "no mounted bpf file system");
    for (line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%*s %255s %63s", where, type) == 2 && !strcmp(type, "bpf")) {
            found(ret, DOCTOR_PRESENT, "mounted at %.120s", where);
            break;
        }
    }
    free(mounts);
}

/* ---- the processor ---- */

#define PMUS "/sys/bus/event_source/devices"

static bool is_core_pmu(const char *name)
{
    static const char *const prefixes[] = {"armv8_", "armv7_", "riscv_pmu"};

    if (!strcmp(name, "cpu") || !strcmp(name, "cpu_core") || !strcmp(name, "cpu_atom"))
        return true;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    }
    return false;
}

/* Finds the name of the first processor PMU after another ("": of all), in alphabetical order:
 * hybrid machines have one for each kind of processor. 0, -ENOENT, or the folder's error. */
static int find_pmu(const char *root, const char *after, char *ret, size_t size)
{
    char path[512];
    struct dirent *entry;
    DIR *dir;
    int result = -ENOENT;

    path_of(root, PMUS, path, sizeof(path));
    dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? -ENODEV : -errno;
    while ((entry = readdir(dir))) {
        if (is_core_pmu(entry->d_name) && strcmp(entry->d_name, after) > 0 &&
            (result || strcmp(entry->d_name, ret) < 0)) {
            snprintf(ret, size, "%s", entry->d_name);
            result = 0;
        }
    }
    closedir(dir);
    return result;
}

static void look_pmu(const char *root, struct doctor_result *ret)
{
    char name[256];
    int result = find_pmu(root, "", name, sizeof(name));

    if (!result)
        found(ret, DOCTOR_PRESENT, PMUS "/%s", name);
    else if (result == -ENOENT)
        found(ret, DOCTOR_ABSENT, "none in " PMUS);
    else
        unreadable(ret, PMUS, result);
}

static void look_user_counters(const char *root, struct doctor_result *ret)
{
    char name[256] = "", after[256], path[320];
    bool has_file = false;
    long value;

    found(ret, DOCTOR_ABSENT, "no hardware PMU");
    do {
        memcpy(after, name, sizeof(after));
        if (find_pmu(root, after, name, sizeof(name)))
            break;
        snprintf(path, sizeof(path), PMUS "/%s/rdpmc", name);
        has_file = !read_number(root, path, &value);
        if (has_file)
            found(ret, value ? DOCTOR_PRESENT : DOCTOR_ABSENT, "%s/rdpmc = %ld", name, value);
    } while (has_file && value); /* the first one without a value decides for all */
    if (!*name || has_file)
        return;
    if (!read_number(root, "/proc/sys/kernel/perf_user_access", &value))
        found(ret, value ? DOCTOR_PRESENT : DOCTOR_ABSENT, "kernel.perf_user_access = %ld", value);
    else
        found(ret, DOCTOR_UNKNOWN, "neither %s/rdpmc nor kernel.perf_user_access", name);
}

/* The files that cpuidle and cpufreq have on the first processor that is there. */
#define CPUS "/sys/devices/system/cpu"

/* Looks at the driver behind a feature of the processors: the file that the feature has, and the
 * file that names the driver. */
static void look_driver(const char *root, const char *file, const char *driver,
                        struct doctor_result *ret)
{
    char path[512], name[64];
    int result = -ENOENT;

    for (int number = 0; number < 2 && result == -ENOENT; number++) {
        snprintf(path, sizeof(path), CPUS "/cpu%d/%s", number, file);
        result = read_line(root, path, name, sizeof(name));
    }
    if (result == -ENOENT || result == -ENOTDIR) {
        found(ret, DOCTOR_ABSENT, "no " CPUS "/cpu0/%s", file);
    } else if (result) {
        unreadable(ret, path, result);
    } else {
        result = read_line(root, driver, name, sizeof(name));
        found(ret, DOCTOR_PRESENT, "driver %s", result ? "unknown" : name);
    }
}

static void look_idle_states(const char *root, struct doctor_result *ret)
{
    look_driver(root, "cpuidle/state0/name", CPUS "/cpuidle/current_driver", ret);
}

static void look_frequency(const char *root, struct doctor_result *ret)
{
    look_driver(root, "cpufreq/scaling_cur_freq", CPUS "/cpu0/cpufreq/scaling_driver", ret);
}

static void look_delivered(const char *root, struct doctor_result *ret)
{
    bool aperf = exists(root, PMUS "/msr/events/aperf"),
         mperf = exists(root, PMUS "/msr/events/mperf");

    if (aperf && mperf)
        found(ret, DOCTOR_PRESENT, PMUS "/msr counts aperf and mperf");
    else
        found(ret, DOCTOR_ABSENT, "no aperf and mperf in " PMUS "/msr");
}

#if defined(__aarch64__)
static void look_invariant_tsc(const char *root, struct doctor_result *ret)
{
    found(ret, DOCTOR_PRESENT, "the virtual counter's rate is fixed by the architecture");
}
#else
static bool has_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    const char *at = line;

    while ((at = strstr(at, word))) {
        if (at > line && at[-1] == ' ' && (at[length] == ' ' || !at[length]))
            return true;
        at += length;
    }
    return false;
}

static void look_invariant_tsc(const char *root, struct doctor_result *ret)
{
    size_t size;
    char *info, *flags, *end;
    bool constant, nonstop;
    int result = read_whole(root, "/proc/cpuinfo", &info, &size);

    if (result) {
        unreadable(ret, "/proc/cpuinfo", result);
        return;
    }
    flags = strstr(info, "\nflags");
    if (!flags) {
        found(ret, DOCTOR_UNKNOWN, "/proc/cpuinfo lists no flags");
        free(info);
        return;
    }
    end = strchr(flags + 1, '\n');
    if (end)
        *end = '\0';
    constant = has_word(flags, "constant_tsc");
    nonstop = has_word(flags, "nonstop_tsc");
    free(info);
    found(ret, constant && nonstop ? DOCTOR_PRESENT : DOCTOR_ABSENT,
          "constant_tsc: %s, nonstop_tsc: %s", constant ? "yes" : "no", nonstop ? "yes" : "no");
}
#endif

static void look_clocksource(const char *root, struct doctor_result *ret)
{
    static const char name[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    static const char *const by_counter[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                             "arch_sys_counter"};
    char text[64];
    int result = read_line(root, name, text, sizeof(text));

    if (result) {
        unreadable(ret, "current_clocksource", result);
        return;
    }
    found(ret, DOCTOR_ABSENT, "%s", text);
    for (size_t i = 0; i < sizeof(by_counter) / sizeof(by_counter[0]); i++) {
        if (!strcmp(text, by_counter[i]))
            ret->state = DOCTOR_PRESENT;
    }
}

/* ---- the rest ---- */

static void look_daemon(const char *root, struct doctor_result *ret)
{
    const char *own = *root ? NULL : secure_getenv("PRCB_SOCKET");
    const char *path = own && *own ? own : "/run/prcb/socket";

    if (exists(root, path))
        found(ret, DOCTOR_PRESENT, "%s is there", path);
    else
        found(ret, DOCTOR_ABSENT, "no %s: prcbd does not run", path);
}

/* clang-format off */
const struct doctor_check doctor_checks[] = {
    {"btf", look_btf,
     "the bpf tier: no waits by cause, no other users' threads, short-lived threads missed",
     "run a kernel built with CONFIG_DEBUG_INFO_BTF=y: sudo apt install linux-image-$(dpkg --print-architecture)"},
    {"capabilities", look_capabilities,
     "the bpf tier: no waits by cause, no other users' threads, short-lived threads missed",
     "sudo prcb ..., or: sudo setcap cap_bpf,cap_perfmon+ep \"$(readlink -f \"$(command -v prcb)\")\""},
    {"thread-programs", look_thread_programs,
     "the bpf tier: no waits by cause, no other users' threads, short-lived threads missed",
     "another kernel: docs/kernels.md names those that were tried; prcb stat -v --tier bpf -- true shows the verifier's words"},
    {"thread-figures", look_thread_figures,
     "what is named: a figure, or waits that are filed under a coarser cause",
     "another kernel: docs/kernels.md names those that were tried"},
    {"processor-programs", look_processor_programs,
     "prcb cpu, prcb power: processors' times are the tick's; what interrupts took of threads and who ended their waits is not told",
     "another kernel: docs/kernels.md names those that were tried; prcb cpu -v --tier bpf shows the verifier's words"},
    {"record-programs", look_record_programs,
     "prcb record: samples and switches come through the perf ring, which costs more and tells no causes of waits",
     "another kernel: docs/kernels.md names those that were tried; prcb record -v -o /tmp/prcb.db -- true shows the verifier's words"},
    {"no-lockdown", look_lockdown,
     "the bpf tier: a kernel locked down to confidentiality lets no program read its memory",
     "boot without lockdown=confidentiality; to look: sudo mount -t securityfs securityfs /sys/kernel/security"},
    {"no-realtime", look_realtime,
     "prcb cpu, prcb power: processors' times are the tick's; what interrupts took of threads and who ended their waits is not told",
     "boot a kernel that is built without CONFIG_PREEMPT_RT"},
    {"contention-tracepoints", look_contention,
     "waits for kernel locks (rwsem, mmap-lock, mutex, klock) are filed under their system call or other-d",
     "run Linux 5.19 or later: sudo apt install linux-image-$(dpkg --print-architecture)"},
    {"ready-time", look_ready_time,
     "ready time: time spent able to run but waiting for a processor is not told from waiting",
     "run a kernel built with CONFIG_SCHED_INFO (by CONFIG_SCHEDSTATS=y or CONFIG_TASK_DELAY_ACCT=y)"},
    {"memlock", look_memlock,
     "the bpf tier on Linux before 5.11: eBPF maps count against this limit",
     "ulimit -l unlimited"},
    {"bpffs", look_bpffs,
     "nothing: prcbd, which keeps its programs there, mounts it where it is missing",
     "sudo mount -t bpf bpf /sys/fs/bpf"},
    {"no-unprivileged-bpf", look_no_unprivileged_bpf,
     "the daemon: prcbd does not serve where every user may load programs that write its memory",
     "sudo sysctl kernel.unprivileged_bpf_disabled=2"},
    {"perf-events", look_perf_events,
     "counters (prcb_counters_*, NT profiling) for users without CAP_PERFMON; accounts need none",
     "sudo sysctl kernel.perf_event_paranoid=2"},
    {"ptrace-scope", look_yama,
     "stacks of processes (prcb why -p, prcb record -g -p) that are not descendants, for users "
     "without CAP_SYS_PTRACE; those of a command that prcb starts can be read",
     "sudo sysctl kernel.yama.ptrace_scope=0"},
    {"pmu", look_pmu,
     "hardware counters (instructions, cycles, cache misses, ...); software events count all the same",
     "use hardware with a PMU, or let the hypervisor pass it on (QEMU with KVM: -cpu host,pmu=on)"},
    {"user-counter-reads", look_user_counters,
     "speed: each read of hardware counters is a system call",
     "x86: echo 1 | sudo tee " PMUS "/cpu/rdpmc; arm64: sudo sysctl kernel.perf_user_access=1"},
    {"invariant-tsc", look_invariant_tsc,
     "speed and tsc_cycles: \"now\" is asked of the vDSO clock instead of the time-stamp counter",
     "none by command: it is the processor's, or the hypervisor's to show (QEMU: -cpu host,+invtsc)"},
    {"clocksource", look_clocksource,
     "speed: the kernel does not trust the time-stamp counter, so neither does prcb",
     "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {"idle-states", look_idle_states,
     "prcb cpu, prcb power: idle time is not divided by idle state",
     "in a guest the hypervisor must expose them (QEMU with KVM: -overcommit cpu-pm=on); else boot without cpuidle.off=1 and idle=poll"},
    {"frequency", look_frequency,
     "prcb cpu, prcb power: MHz, limits, throttle, and with them performance and utility",
     "guests: the hypervisor's to show; else: sudo modprobe acpi-cpufreq"},
    {"delivered-performance", look_delivered,
     "prcb power: performance is the frequency that cpufreq tells, not what was delivered",
     "none by command: it is the processor's, or the hypervisor's to show"},
    {"daemon", look_daemon,
     "the daemon tier: users without capabilities get the perf tier",
     "sudo systemctl enable --now prcbd.socket, or: sudo prcbd (where there is no user prcbd: sudo prcbd --user nobody)"},
};
/* clang-format on */
const size_t doctor_check_count = sizeof(doctor_checks) / sizeof(doctor_checks[0]);
