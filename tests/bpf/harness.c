/* SPDX-License-Identifier: BSD-2-Clause */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sanitized.h"

#define MOST_SESSIONS 4
#define MOST_CHILDREN 64
#define MOST_MEMORY   16

static struct prcb *sessions[MOST_SESSIONS];
static struct prcb_thread *handles[256];
static pid_t children[MOST_CHILDREN];
static struct {
    void *at;
    size_t bytes;
} memory[MOST_MEMORY];
static struct prcb_account *accounts;
static cpu_set_t allowed; /* processors this program was started on */

/* ---- running ---- */

/* Loads the smallest program of a kind that needs the same privilege as prcb's. */
static bool may_load_programs(void)
{
    static const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
                           .insn_cnt = 2,
                           .insns = (uintptr_t)code,
                           .license = (uintptr_t) "GPL"};
    int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* NULL: eBPF can be used here, so anything that fails is a failure. */
static const char *why_not(void)
{
    if (access("/sys/kernel/btf/vmlinux", R_OK))
        return "the kernel has no BTF (/sys/kernel/btf/vmlinux)";
    if (!may_load_programs())
        return "eBPF programs may not be loaded (run as root)";
    return NULL;
}

int bpf_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
    const char *reason = why_not();

    setvbuf(stdout, NULL, _IOLBF, 0);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    if (reason) {
        printf("%s skipped: %s\n", name, reason);
        return 77;
    }
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}

/* Of real time; 0: none. */
static void set_priority(int priority)
{
    sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER,
                       &(struct sched_param){.sched_priority = priority});
}

int test_end(void **state)
{
    for (size_t i = 0; i < MOST_CHILDREN; i++) {
        if (children[i])
            child_kill(children[i]);
    }
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        prcb_thread_close(handles[i]);
        handles[i] = NULL;
    }
    for (size_t i = 0; i < MOST_SESSIONS; i++) {
        prcb_close(sessions[i]);
        sessions[i] = NULL;
    }
    for (size_t i = 0; i < MOST_MEMORY; i++) {
        if (memory[i].at)
            munmap(memory[i].at, memory[i].bytes);
        memory[i].at = NULL;
    }
    free(accounts);
    accounts = NULL;
    unpin();
    set_priority(0);
    return 0;
}

/* ---- sessions ---- */

struct prcb *session_open_flags(uint32_t max_threads, uint32_t flags)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_BPF, .max_threads = max_threads, .flags = flags};
    struct prcb_error err = {0};

    for (size_t i = 0; i < MOST_SESSIONS; i++) {
        if (sessions[i])
            continue;
        if (prcb_open(&options, &sessions[i], &err))
            fail_msg("prcb_open: %s", err.text);
        return sessions[i];
    }
    fail_msg("too many sessions in one test");
    return NULL;
}

struct prcb *session_open(uint32_t max_threads)
{
    return session_open_flags(max_threads, 0);
}

struct prcb *session_shared(void)
{
    static struct prcb *kept;
    struct prcb_error err = {0};

    if (slowness() == 1)
        return session_open(1024);
    if (!kept && prcb_open(&(struct prcb_options){.size = sizeof(struct prcb_options),
                                                  .tier = PRCB_TIER_BPF,
                                                  .max_threads = 1024},
                           &kept, &err))
        fail_msg("prcb_open: %s", err.text);
    if (prcb_release_exited(kept, &err) < 0)
        fail_msg("prcb_release_exited: %s", err.text);
    return kept;
}

void must_profile_process(struct prcb *p, pid_t pid, unsigned follow)
{
    struct prcb_error err = {0};

    if (prcb_profile_process(p, pid, follow, &err))
        fail_msg("prcb_profile_process: %s", err.text);
}

void must_profile_thread(struct prcb *p, pid_t tid, unsigned follow)
{
    struct prcb_error err = {0};

    if (prcb_profile_thread(p, tid, follow, &err))
        fail_msg("prcb_profile_thread: %s", err.text);
}

struct prcb_thread *must_open(struct prcb *p, pid_t tid)
{
    struct prcb_error err = {0};
    size_t i = 0;

    while (i < sizeof(handles) / sizeof(handles[0]) && handles[i])
        i++;
    assert_true(i < sizeof(handles) / sizeof(handles[0]));
    if (tid ? prcb_thread_open(p, tid, &handles[i], &err)
            : prcb_thread_open_self(p, &handles[i], &err))
        fail_msg("prcb_thread_open: %s", err.text);
    return handles[i];
}

struct prcb_account must_read(struct prcb_thread *t)
{
    struct prcb_account a = {.size = sizeof(a)};
    int result;

    do
        result = prcb_thread_read(t, &a);
    while (result == -EAGAIN);
    if (result)
        fail_msg("prcb_thread_read: %s", strerror(-result));
    return a;
}

/* Whether it came to its end: a processor that writes may be stopped for longer than a walk waits.
 */
static bool walked(struct prcb *p, prcb_walk_fn fn, void *ctx)
{
    struct prcb_error err = {0};
    int result = prcb_walk(p, fn, ctx, &err);

    if (result && result != -EAGAIN)
        fail_msg("prcb_walk: %s", err.text);
    return !result;
}

struct search {
    pid_t tid;
    bool found;
    struct prcb_account account;
};

static int match(const struct prcb_account *a, void *ctx)
{
    struct search *search = ctx;

    if (a->tid != search->tid)
        return 0;
    /* A live thread before an ended one of the same number, then the later generation. */
    if (search->found && (a->flags & PRCB_ACCOUNT_EXITED) &&
        (!(search->account.flags & PRCB_ACCOUNT_EXITED) || a->key < search->account.key))
        return 0;
    search->found = true;
    search->account = *a;
    return 0;
}

bool find_account(struct prcb *p, pid_t tid, struct prcb_account *ret)
{
    struct search search;

    do
        search = (struct search){.tid = tid};
    while (!walked(p, match, &search));
    if (search.found)
        *ret = search.account;
    return search.found;
}

struct prcb_account must_find(struct prcb *p, pid_t tid)
{
    struct prcb_account a;

    if (!find_account(p, tid, &a))
        fail_msg("thread %d has no account", (int)tid);
    return a;
}

struct collection {
    size_t count, room;
};

static int collect(const struct prcb_account *a, void *ctx)
{
    struct collection *c = ctx;

    if (c->count == c->room) {
        c->room = c->room ? c->room * 2 : 256;
        accounts = realloc(accounts, c->room * sizeof(*accounts));
        if (!accounts)
            return -ENOMEM;
    }
    accounts[c->count++] = *a;
    return 0;
}

struct prcb_account *all_accounts(struct prcb *p, size_t *ret_count)
{
    struct collection c;

    do {
        free(accounts);
        accounts = NULL;
        c = (struct collection){0};
    } while (!walked(p, collect, &c));
    *ret_count = c.count;
    return accounts;
}

bool all_ended(struct prcb *p, size_t *ret_count)
{
    all_accounts(p, ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        if (!(accounts[i].flags & PRCB_ACCOUNT_EXITED))
            return false;
    }
    return true;
}

struct prcb_account *ended_accounts(struct prcb *p, size_t *ret_count)
{
    assert_true(wait_for(all_ended(p, ret_count)));
    return accounts;
}

/* ---- laws ---- */

static uint64_t sum_of_waits(const struct prcb_account *a)
{
    uint64_t sum = 0;

    for (int i = 0; i < PRCB_CAUSE_MAX; i++)
        sum += a->waits[i].ns;
    return sum;
}

static uint64_t sum_of_counts(const struct prcb_account *a)
{
    uint64_t sum = 0;

    for (int i = 0; i < PRCB_CAUSE_MAX; i++)
        sum += a->waits[i].count;
    return sum;
}

/* Causes of kind READY and END carry no time, and nothing is filed under NONE or
 * under a number that has no row. */
static bool kinds_hold(const struct prcb_account *a)
{
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (!info && (a->waits[i].count || a->waits[i].ns))
            return false;
        if (info && info->kind != PRCB_KIND_WAIT && a->waits[i].ns)
            return false;
    }
    return true;
}

bool laws_hold(const struct prcb_account *a)
{
    return a->run_ns + a->ready_ns + a->wait_ns + a->open.ns == a->wall_ns &&
           sum_of_waits(a) == a->wait_ns && sum_of_counts(a) + a->missed_switches == a->switches &&
           a->voluntary_switches <= a->switches && kinds_hold(a);
}

void print_account(const char *label, const struct prcb_account *a)
{
    printf("    %s: tid %d %s flags %x wall %" PRIu64 " run %" PRIu64 " ready %" PRIu64
           " wait %" PRIu64 " open %u/%" PRIu64 " switches %" PRIu64 " voluntary %" PRIu64
           " missed %" PRIu64 "\n",
           label, (int)a->tid, a->comm, a->flags, a->wall_ns, a->run_ns, a->ready_ns, a->wait_ns,
           a->open.cause, a->open.ns, a->switches, a->voluntary_switches, a->missed_switches);
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (a->waits[i].count || a->waits[i].ns)
            printf("        %-10s %6" PRIu64 " times %12" PRIu64 " ns\n",
                   info ? info->name : "(no row)", a->waits[i].count, a->waits[i].ns);
    }
}

void assert_laws(const struct prcb_account *a)
{
    if (!laws_hold(a)) {
        print_account("law broken", a);
        printf("    sum of parts - wall: %" PRId64 ", counts + missed - switches: %" PRId64 "\n",
               (int64_t)(a->run_ns + a->ready_ns + a->wait_ns + a->open.ns - a->wall_ns),
               (int64_t)(sum_of_counts(a) + a->missed_switches - a->switches));
        fail();
    }
}

/* ---- the kernel's own figures ---- */

static bool read_proc(pid_t pid, pid_t tid, const char *file, char *text, size_t room)
{
    char path[96];
    FILE *in;
    size_t got;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
    in = fopen(path, "re");
    if (!in)
        return false;
    got = fread(text, 1, room - 1, in);
    text[got] = '\0';
    fclose(in);
    return got > 0;
}

bool kernel_switches(pid_t pid, pid_t tid, uint64_t *ret_voluntary, uint64_t *ret_all)
{
    char text[4096];
    const char *v, *n;
    uint64_t voluntary;

    if (!read_proc(pid, tid, "status", text, sizeof(text)))
        return false;
    v = strstr(text, "\nvoluntary_ctxt_switches:");
    n = strstr(text, "\nnonvoluntary_ctxt_switches:");
    if (!v || !n)
        return false;
    voluntary = strtoull(strchr(v, ':') + 1, NULL, 10);
    if (ret_voluntary)
        *ret_voluntary = voluntary;
    if (ret_all)
        *ret_all = voluntary + strtoull(strchr(n, ':') + 1, NULL, 10);
    return true;
}

uint64_t own_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

bool kernel_times(pid_t pid, pid_t tid, struct kernel_times *ret)
{
    char text[128];

    return read_proc(pid, tid, "schedstat", text, sizeof(text)) &&
           sscanf(text, "%" SCNu64 " %" SCNu64, &ret->run_ns, &ret->ready_ns) == 2;
}

uint64_t own_run(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

char kernel_state(pid_t pid, pid_t tid)
{
    char text[512];
    const char *close_paren;

    if (!read_proc(pid, tid, "stat", text, sizeof(text)))
        return 0;
    close_paren = strrchr(text, ')');
    return close_paren && close_paren[1] ? close_paren[2] : '\0';
}

uint64_t stolen_ns(void)
{
    FILE *file = fopen("/proc/stat", "re");
    uint64_t ticks = 0;

    if (file && fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
        ticks = 0;
    if (file)
        fclose(file);
    return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool kernel_off(pid_t pid, pid_t tid)
{
    char text[256];

    return read_proc(pid, tid, "syscall", text, sizeof(text)) && strncmp(text, "running", 7) != 0;
}

bool is_first_pid_ns(void)
{
    char name[64] = "";

    return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) < 0 ||
           !strcmp(name, "pid:[4026531836]");
}

/* ---- time, processors ---- */

bool kernel_uses_counter(char name[64])
{
    static const char *const clocks[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                         "arch_sys_counter"};
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    bool found = false;

    snprintf(name, 64, "unknown");
    if (file && fscanf(file, "%63s", name) != 1)
        name[0] = '\0';
    if (file)
        fclose(file);
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
        found |= !strcmp(name, clocks[i]);
    return found;
}

unsigned slowness(void)
{
    const char *slow = getenv("PRCB_TEST_SLOW");

    return slow && *slow == '1' ? 10 : 1;
}

unsigned repeated(unsigned times)
{
    unsigned part = SANITIZED ? 10 : slowness();

    return times > part ? times / part : 1;
}

uint64_t mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

    while (nanosleep(&ts, &ts) && errno == EINTR)
        ;
}

unsigned cpu_number(unsigned cpu)
{
    unsigned found = 0;

    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed))
            continue;
        found = i;
        if (!cpu--)
            break;
    }
    return found;
}

void pin_thread(pid_t tid, unsigned cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu_number(cpu), &one);
    sched_setaffinity(tid, sizeof(one), &one);
}

void pin_to(unsigned cpu)
{
    pin_thread(0, cpu);
}

void unpin(void)
{
    sched_setaffinity(0, sizeof(allowed), &allowed);
}

bool processor_1_online(bool on)
{
    int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, on ? "1" : "0", 1) == 1;

    if (fd >= 0)
        close(fd);
    return done;
}

void go_before_others(void)
{
    set_priority(1);
}

bool wait_switched_out(pid_t pid, pid_t tid, uint64_t before)
{
    uint64_t voluntary;

    return wait_for(!kernel_switches(pid, tid, &voluntary, NULL) || voluntary > before);
}

/* ---- children ---- */

pid_t child_start(int (*fn)(void *arg), void *arg)
{
    pid_t parent = getpid(), child;
    size_t i = 0;

    while (i < MOST_CHILDREN && children[i])
        i++;
    assert_true(i < MOST_CHILDREN);
    fflush(NULL);
    child = fork();
    if (!child) {
        static const int caught[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};

        /* cmocka's handlers would go on with the tests in here. */
        for (i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
            signal(caught[i], SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        _exit(fn(arg));
    }
    assert_true(child > 0);
    children[i] = child;
    return child;
}

void child_gone(pid_t child)
{
    for (size_t i = 0; i < MOST_CHILDREN; i++) {
        if (children[i] == child)
            children[i] = 0;
    }
}

int child_wait(pid_t child)
{
    int status;

    while (waitpid(child, &status, __WALL) < 0) {
        if (errno != EINTR)
            return -1;
    }
    if (WIFSTOPPED(status))
        return -WSTOPSIG(status);
    child_gone(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void child_kill(pid_t child)
{
    kill(child, SIGKILL);
    kill(child, SIGCONT);
    while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
        ;
    child_gone(child);
}

void *shared_memory(size_t bytes)
{
    size_t i = 0;
    void *at;

    while (i < MOST_MEMORY && memory[i].at)
        i++;
    assert_true(i < MOST_MEMORY);
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    memset(at, 0, bytes);
    memory[i].at = at;
    memory[i].bytes = bytes;
    return at;
}

uint32_t gate_get(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void gate_wait_while(uint32_t *word, uint32_t value)
{
    while (gate_get(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void gate_set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
