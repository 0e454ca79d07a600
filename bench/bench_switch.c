/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What it adds to a context switch to account for it: two threads on one processor
 * wake each other through pipes, then through a futex, first plain, then with an
 * empty eBPF program (the yardstick: what any program costs here), with prcb in
 * several ways, of which prcbd is one, and with the tools people use to learn why a thread is off
 * the processor. Each measurement lies between two plain ones of its own round; the figure is the
 * median of the differences. Peers that are not installed are left out, and said. bench_switch
 * --no-peers leaves all out, bench_switch WORD... takes the rows whose names have one of the words.
 *
 * bench_switch --pairs [WORD...]: what little an option adds to the program, which the table's rows
 * cannot show: a session with it and one without see the same switches, and the kernel counts the
 * time of both programs.
 */
#include "bench.h"
#include "bench_daemon.h"

#include <grp.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef BENCH_BPF
#include <bpf/bpf.h>

#include "empty.skel.h"
#endif

#include <prcb/prcb.h>

#define ROUNDS  21
#define PEERS   5
#define DAEMONS 11
#define TRIPS   10000

enum how { PIPE, FUTEX, HOWS };
static const char *const how_names[HOWS] = {"pipe", "futex"};

static int there[2], back[2];
static _Atomic uint32_t turn;
static enum how partner_how;
static pthread_barrier_t start;
static pid_t partner_tid;

static void pipe_wait(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 1)
        abort();
}

static void pipe_wake(int fd)
{
    if (write(fd, "x", 1) != 1)
        abort();
}

static void futex_pass(uint32_t mine, uint32_t theirs)
{
    turn = theirs;
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    while (turn != mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, theirs, NULL, NULL, 0);
}

static void *partner(void *unused)
{
    partner_tid = gettid();
    bench_pin(0);
    pthread_barrier_wait(&start);
    for (;;) {
        pthread_barrier_wait(&start);
        if (partner_how == PIPE) {
            for (int i = 0; i < TRIPS; i++) {
                pipe_wait(there[0]);
                pipe_wake(back[1]);
            }
        } else {
            while (turn != 1)
                syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
            for (int i = 1; i < TRIPS; i++)
                futex_pass(1, 0);
            turn = 0;
            syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
        pthread_barrier_wait(&start);
    }
    return NULL;
}

/* Of both threads: what others take of the processor, and a hypervisor, is not in it. */
static uint64_t processor_time(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds of the processor per context switch: a round trip is two. */
static double measure(enum how how)
{
    uint64_t begin;

    partner_how = how;
    turn = 0;
    pthread_barrier_wait(&start);
    begin = processor_time();
    if (how == PIPE) {
        for (int i = 0; i < TRIPS; i++) {
            pipe_wake(there[1]);
            pipe_wait(back[0]);
        }
    } else {
        for (int i = 0; i < TRIPS; i++)
            futex_pass(0, 1);
    }
    begin = processor_time() - begin;
    pthread_barrier_wait(&start);
    return (double)begin / TRIPS / 2;
}

/* One way to have switches accounted for; begin and end bracket a measurement. */
struct variant {
    const char *name;
    int rounds;
    uint32_t flags; /* prcb: enum prcb_open_flag */
    enum { EMPTY, ADDITIONS, ATTACHED, PROFILED, DAEMON, SHARED, PEER } kind;
    int clients; /* DAEMON: that profile the threads; SHARED: members of the session of all, which
                    with PRCB_OPEN_EDGES keeps by whom */
    const char *argv[16]; /* PEER; "@PID" stands for this process */
};

#define BPFTRACE_OFFCPU(stack)                                                                     \
    "tracepoint:sched:sched_switch { @start[args->prev_pid] = nsecs; "                             \
    "$s = @start[args->next_pid]; if ($s) { @off[" stack "args->next_comm] = sum(nsecs - $s); } }"

static const struct variant variants[] = {
    {"an empty eBPF program", ROUNDS, 0, EMPTY, 0, {0}},
    {"one at switches and one at wakes", ROUNDS, PRCB_OPEN_EDGES, EMPTY, 0, {0}},
    {"a fleet: prcbd, all threads", DAEMONS, 0, SHARED, 1, {0}},
    {"a fleet: prcbd, all threads, by whom", DAEMONS, PRCB_OPEN_EDGES, SHARED, 1, {0}},
    {"a program of 2,000 additions", ROUNDS, 0, ADDITIONS, 0, {0}},
    {"prcb attached, threads not profiled", ROUNDS, 0, ATTACHED, 0, {0}},
    {"prcb, profiled, no lock hooks", ROUNDS, PRCB_OPEN_NO_LOCKS, PROFILED, 0, {0}},
    {"prcb, profiled, everything on", ROUNDS, 0, PROFILED, 0, {0}},
    {"the same with ktime stamps", ROUNDS, PRCB_OPEN_KTIME, PROFILED, 0, {0}},
    {"and with what interrupts take", ROUNDS, PRCB_OPEN_INTERRUPTED, PROFILED, 0, {0}},
    {"prcb, profiled, with registers", ROUNDS, PRCB_OPEN_REGISTERS, PROFILED, 0, {0}},
    {"prcb, profiled, with short waits' stacks",
     ROUNDS,
     PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN,
     PROFILED,
     0,
     {0}},
    {"prcb, profiled, by whom", ROUNDS, PRCB_OPEN_EDGES, PROFILED, 0, {0}},
    {"prcb, profiled, by whom, by cgroup",
     ROUNDS,
     PRCB_OPEN_EDGES | PRCB_OPEN_MEANWHILE | PRCB_OPEN_OWNERS,
     PROFILED,
     0,
     {0}},
    {"prcb, profiled, by whom, registers",
     ROUNDS,
     PRCB_OPEN_EDGES | PRCB_OPEN_REGISTERS,
     PROFILED,
     0,
     {0}},
    {"prcb, profiled, by whom, owners",
     ROUNDS,
     PRCB_OPEN_EDGES | PRCB_OPEN_OWNERS,
     PROFILED,
     0,
     {0}},
    {"prcb, profiled, with objects", ROUNDS, PRCB_OPEN_OBJECTS, PROFILED, 0, {0}},
    {"prcb, profiled, with tails", ROUNDS, PRCB_OPEN_TAILS, PROFILED, 0, {0}},
    {"prcb, profiled, switches kept", ROUNDS, PRCB_OPEN_SWITCHES, PROFILED, 0, {0}},
    {"prcb, profiled, all of this always on",
     ROUNDS,
     PRCB_OPEN_EDGES | PRCB_OPEN_REGISTERS | PRCB_OPEN_INTERRUPTED | PRCB_OPEN_TAILS,
     PROFILED,
     0,
     {0}},
    {"by whom, threads not profiled", ROUNDS, PRCB_OPEN_EDGES, ATTACHED, 0, {0}},
    {"owners, threads not profiled", ROUNDS, PRCB_OPEN_EDGES | PRCB_OPEN_OWNERS, ATTACHED, 0, {0}},
    {"prcbd running, threads not profiled", DAEMONS, 0, DAEMON, 0, {0}},
    {"prcbd, profiled by one client", DAEMONS, 0, DAEMON, 1, {0}},
    {"prcbd, one client, with edges", DAEMONS, PRCB_OPEN_EDGES, DAEMON, 1, {0}},
    {"prcbd, one client, with objects", DAEMONS, PRCB_OPEN_OBJECTS, DAEMON, 1, {0}},
    {"prcbd, one client, with switch records", DAEMONS, PRCB_OPEN_SWITCHES, DAEMON, 1, {0}},
    {"prcbd, profiled by three clients", DAEMONS, 0, DAEMON, 3, {0}},
    {"prcbd, the shared session, two members", DAEMONS, 0, SHARED, 2, {0}},
    {"perf stat -e context-switches -p",
     PEERS,
     0,
     PEER,
     0,
     {"perf", "stat", "-e", "context-switches", "-p", "@PID"}},
    {"perf stat -a -e sched:sched_switch",
     PEERS,
     0,
     PEER,
     0,
     {"perf", "stat", "-a", "-e", "sched:sched_switch"}},
    {"perf record -a -e sched:sched_switch",
     PEERS,
     0,
     PEER,
     0,
     {"perf", "record", "-a", "-e", "sched:sched_switch", "-o", "/dev/null"}},
    {"perf record -g -a -e sched:sched_switch",
     PEERS,
     0,
     PEER,
     0,
     {"perf", "record", "-g", "-a", "-e", "sched:sched_switch", "-o", "/dev/null"}},
    {"perf sched record", PEERS, 0, PEER, 0, {"perf", "sched", "record", "-o", "/dev/null"}},
    {"cpudist -O (libbpf-tools)", PEERS, 0, PEER, 0, {"cpudist", "-O"}},
    {"runqlat (libbpf-tools)", PEERS, 0, PEER, 0, {"runqlat"}},
    {"bpftrace off-CPU time by thread", PEERS, 0, PEER, 0, {"bpftrace", "-e", BPFTRACE_OFFCPU("")}},
    {"bpftrace off-CPU time with stacks",
     PEERS,
     0,
     PEER,
     0,
     {"bpftrace", "-e", BPFTRACE_OFFCPU("kstack, ustack, ")}},
};
#define VARIANTS (int)(sizeof(variants) / sizeof(variants[0]))

/* What a variant holds while it is measured. */
struct running {
    struct prcb *session;
    struct prcb *clients[3];
    bool daemon;
    pid_t members[3]; /* processes: only who has no CAP_BPF may share */
    pid_t peer;
#ifdef BENCH_BPF
    struct empty_bpf *empty;
#endif
};

static struct prcb *begin_prcb(const struct variant *variant)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_BPF, .max_threads = 64, .flags = variant->flags};
    struct prcb_error err = {0};
    struct prcb *p;

    if (prcb_open(&options, &p, &err) ||
        (variant->kind == PROFILED && prcb_profile_process(p, getpid(), PRCB_FOLLOW_NONE, &err))) {
        fprintf(stderr, "bench_switch: %s\n", err.text);
        exit(1);
    }
    return p;
}

/* Starts a peer and gives it time to attach; 0: it is not there, or ended. */
static pid_t begin_peer(const struct variant *variant)
{
    char own[16];
    pid_t pid;

    snprintf(own, sizeof(own), "%d", (int)getpid());
    pid = fork();
    if (!pid) {
        char *argv[16];

        for (int i = 0; i < 16; i++)
            argv[i] = variant->argv[i] && !strcmp(variant->argv[i], "@PID")
                          ? own
                          : (char *)variant->argv[i];
        setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
        bench_pin(1); /* its reader, not its hooks: those run where the switch is */
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    sleep(2);
    return waitpid(pid, NULL, WNOHANG) == pid ? 0 : pid;
}

#ifdef BENCH_PRCBD
#define NOBODY 65534

/* A process that shares the session of all threads until it is killed; 0: it may not. */
static pid_t begin_member(void)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_DAEMON, .flags = PRCB_OPEN_SHARED};
    struct prcb *p;
    int ready[2];
    char byte;
    pid_t pid;

    if (pipe(ready))
        return 0;
    pid = fork();
    if (!pid) {
        bench_pin(1);
        close(ready[0]);
        if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY) ||
            prcb_open(&options, &p, NULL) || prcb_profile_all(p, NULL) ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (pid > 0 && read(ready[0], &byte, 1) != 1) {
        waitpid(pid, NULL, 0);
        pid = 0;
    }
    close(ready[0]);
    return pid > 0 ? pid : 0;
}

static bool begin_daemon(const struct variant *variant, struct running *running)
{
    if (!bench_daemon_begin_with(
            variant->kind == SHARED && variant->flags & PRCB_OPEN_EDGES ? "by_whom = yes\n" : ""))
        return false;
    running->daemon = true;
    for (int i = 0; variant->kind == SHARED && i < variant->clients; i++) {
        running->members[i] = begin_member();
        if (!running->members[i])
            return false;
    }
    if (variant->kind == SHARED)
        return true;
    for (int i = 0; i < variant->clients; i++) {
        running->clients[i] = bench_daemon_session_flags(variant->flags);
        if (!running->clients[i] ||
            prcb_profile_process(running->clients[i], getpid(), PRCB_FOLLOW_NONE, NULL))
            return false;
    }
    return true;
}
#endif

static bool begin(const struct variant *variant, struct running *running)
{
    memset(running, 0, sizeof(*running));
    switch (variant->kind) {
    case EMPTY:
    case ADDITIONS:
#ifdef BENCH_BPF
        running->empty = empty_bpf__open();
        if (!running->empty)
            return false;
        bpf_program__set_autoload(running->empty->progs.bench_empty, variant->kind == EMPTY);
        bpf_program__set_autoload(running->empty->progs.bench_additions,
                                  variant->kind == ADDITIONS);
        bpf_program__set_autoload(running->empty->progs.bench_empty_waking,
                                  variant->flags & PRCB_OPEN_EDGES);
        return !empty_bpf__load(running->empty) && !empty_bpf__attach(running->empty);
#else
        return false;
#endif
    case DAEMON:
    case SHARED:
#ifdef BENCH_PRCBD
        return begin_daemon(variant, running);
#else
        return false;
#endif
    case PEER:
        running->peer = begin_peer(variant);
        return running->peer;
    default:
        running->session = begin_prcb(variant);
        return true;
    }
}

static void end(struct running *running)
{
    if (running->peer) {
        kill(running->peer, SIGINT);
        waitpid(running->peer, NULL, 0);
    }
#ifdef BENCH_BPF
    empty_bpf__destroy(running->empty);
#endif
    prcb_close(running->session);
#ifdef BENCH_PRCBD
    for (int i = 0; i < 3; i++) {
        prcb_close(running->clients[i]);
        if (running->members[i]) {
            kill(running->members[i], SIGKILL);
            waitpid(running->members[i], NULL, 0);
        }
    }
    if (running->daemon)
        bench_daemon_end();
#endif
}

static double plain[HOWS][ROUNDS];

/* One variant: false if it cannot be had here. */
static bool measure_variant(const struct variant *variant)
{
    double added[HOWS][ROUNDS];

    for (int round = 0; round < variant->rounds; round++) {
        double before[HOWS], with[HOWS];
        struct running running;

        for (int how = 0; how < HOWS; how++)
            before[how] = measure(how);
        if (!begin(variant, &running)) {
            end(&running);
            return false;
        }
        for (int how = 0; how < HOWS; how++)
            with[how] = measure(how);
        end(&running);
        for (int how = 0; how < HOWS; how++) {
            added[how][round] = with[how] - (before[how] + measure(how)) / 2;
            plain[how][round] = before[how];
        }
    }
    printf("%-44s %+9.0f %+9.0f   of %.0f, %.0f\n", variant->name,
           bench_median(added[PIPE], variant->rounds), bench_median(added[FUTEX], variant->rounds),
           bench_median(plain[PIPE], variant->rounds), bench_median(plain[FUTEX], variant->rounds));
    fflush(stdout);
    return true;
}

#ifdef BENCH_BPF
static __u32 last_program(void)
{
    __u32 id = 0;

    while (!bpf_prog_get_next_id(id, &id))
        ;
    return id;
}

static void report_program(__u32 id)
{
    struct bpf_prog_info info = {0};
    __u32 size = sizeof(info);
    int fd = bpf_prog_get_fd_by_id(id);

    if (fd < 0)
        return;
    if (!bpf_obj_get_info_by_fd(fd, &info, &size) && info.run_cnt > TRIPS &&
        (!strncmp(info.name, "prcb_", 5) || !strncmp(info.name, "bench_", 6)))
        printf("  %-24s %10llu runs %6.0f ns each\n", info.name, (unsigned long long)info.run_cnt,
               (double)info.run_time_ns / (double)info.run_cnt);
    close(fd);
}

/* The kernel's own account of our programs, the yardsticks among them: of what was loaded since. */
static void report_bpf_stats(const struct variant *variant)
{
    int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
    __u32 id = last_program();
    struct running running;

    if (stats >= 0 && begin(variant, &running)) {
        for (int i = 0; i < 5; i++)
            for (int how = 0; how < HOWS; how++)
                measure(how);
        printf("%s\n", variant->name);
        while (!bpf_prog_get_next_id(id, &id))
            report_program(id);
        end(&running);
    }
    close(stats);
}
#endif

/* ---- pairs --------------------------------------------------------------------------------- */

#ifdef BENCH_BPF
#define PAIRS 41

static const struct pair {
    const char *name;
    uint32_t without, with;
} pairs[] = {
    {"registers", 0, PRCB_OPEN_REGISTERS},
    {"short waits' stacks", PRCB_OPEN_REGISTERS, PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN},
    {"by whom", 0, PRCB_OPEN_EDGES},
    {"objects", 0, PRCB_OPEN_OBJECTS},
    {"tails", 0, PRCB_OPEN_TAILS},
    {"switches kept", 0, PRCB_OPEN_SWITCHES},
    {"switches kept, beside by whom", PRCB_OPEN_EDGES, PRCB_OPEN_EDGES | PRCB_OPEN_SWITCHES},
    {"all of this, and interrupts", 0,
     PRCB_OPEN_EDGES | PRCB_OPEN_REGISTERS | PRCB_OPEN_INTERRUPTED | PRCB_OPEN_TAILS},
};

/* The next program of that name after *id, as far as it ran; false: there is none. */
static bool next_program(__u32 *id, const char *name, struct bpf_prog_info *ret)
{
    while (!bpf_prog_get_next_id(*id, id)) {
        __u32 size = sizeof(*ret);
        int fd = bpf_prog_get_fd_by_id(*id);
        bool found;

        *ret = (struct bpf_prog_info){0};
        found = fd >= 0 && !bpf_obj_get_info_by_fd(fd, ret, &size) && !strcmp(ret->name, name);
        if (fd >= 0)
            close(fd);
        if (found)
            return true;
    }
    return false;
}

/* The programs' own time, of two sessions at once: both see the same switches, so load disturbs
 * both. */
static double measure_programs(const uint32_t flags[2])
{
    struct bpf_prog_info info;
    struct running running[2];
    double ns[2] = {0};
    __u32 id = last_program();
    int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

    for (int i = 0; i < 2; i++) {
        const struct variant variant = {.kind = PROFILED, .flags = flags[i]};

        if (!begin(&variant, &running[i]))
            exit(1);
    }
    for (int how = 0; how < HOWS; how++)
        measure(how);
    for (int i = 0; i < 2 && next_program(&id, "prcb_switch", &info); i++)
        ns[i] = info.run_cnt ? (double)info.run_time_ns / (double)info.run_cnt : 0;
    for (int i = 0; i < 2; i++)
        end(&running[i]);
    close(stats);
    return ns[1] - ns[0];
}

/* Who is first changes: what grows or falls slowly adds nothing, nor do caches that the first
 * fills. */
static void measure_pair(const struct pair *pair)
{
    double added[PAIRS], median;

    for (int i = 0; i < PAIRS; i++)
        added[i] = (measure_programs((uint32_t[]){pair->without, pair->with}) -
                    measure_programs((uint32_t[]){pair->with, pair->without})) /
                   2;
    median = bench_median(added, PAIRS); /* it sorts */
    printf("%-28s  %+6.1f  (%+.1f .. %+.1f)\n", pair->name, median, added[PAIRS / 4],
           added[3 * PAIRS / 4]);
    fflush(stdout);
}
#endif

static bool is_named(const char *name, int argc, char **argv)
{
    bool words = false;

    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--", 2))
            continue;
        words = true;
        if (strstr(name, argv[i]))
            return true;
    }
    return !words;
}

static bool has_option(const char *option, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], option))
            return true;
    }
    return false;
}

static void measure_pairs(int argc, char **argv)
{
#ifdef BENCH_BPF
    printf("ns that an option adds to a run of prcb_switch, %d pairs: median (half of them lie "
           "within)\n",
           PAIRS);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (is_named(pairs[i].name, argc, argv))
            measure_pair(&pairs[i]);
    }
#else
    fprintf(stderr, "bench_switch: built without eBPF\n");
#endif
}

static bool is_wanted(const struct variant *variant, int argc, char **argv)
{
    return is_named(variant->name, argc, argv) &&
           !(variant->kind == PEER && has_option("--no-peers", argc, argv));
}

int main(int argc, char **argv)
{
    pthread_t thread;

    pthread_barrier_init(&start, NULL, 2);
    if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    bench_pin(0);
    pthread_barrier_wait(&start);
    if (has_option("--pairs", argc, argv)) {
        measure_pairs(argc, argv);
        return 0;
    }
    printf("context switches, two threads on one processor: ns added per switch, medians of %d "
           "rounds (peers: %d)\n\n%-44s %9s %9s   plain\n",
           ROUNDS, PEERS, "", how_names[PIPE], how_names[FUTEX]);
    for (int v = 0; v < VARIANTS; v++) {
        if (!is_wanted(&variants[v], argc, argv))
            continue;
        if (!measure_variant(&variants[v]))
            printf("%-44s not available here\n", variants[v].name);
    }
#ifdef BENCH_BPF
    printf("\nthe kernel's own statistics (each run includes about 30 ns of their own):\n");
    for (int v = 0; v < VARIANTS; v++) {
        if (is_wanted(&variants[v], argc, argv) && variants[v].kind != PEER)
            report_bpf_stats(&variants[v]);
    }
#endif
    return 0;
}
