/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What it costs to learn what all processors do: prcb beside /proc/stat, read and parsed in the
 * ways of libuv, psutil and node_exporter, and mpstat; the slope per processor on blocks that are
 * made up; and what the attached programs cost everybody else.
 *
 *   bench_cpu            all of it, in nanoseconds
 *   bench_cpu work       one reading of each, in user-mode instructions and system calls, counted
 *                        by single steps: for machines whose time means nothing (emulated ones)
 */
#include "bench.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/processors.h>

#ifdef BENCH_BPF
#include "processor_map.h"
#include "processors_view.h"
#endif

#define ROUNDS  31
#define MOST    256
#define FIELDS  10
#define LONGEST 65536

extern char **environ;

static struct prcb_processors *view;
static struct prcb_processor_times times[MOST];
static uint32_t count;
static volatile double sink;

/* ---- ways of reading ---- */

static void by_times(void)
{
    prcb_processors_times(view, times, sizeof(*times), count);
    sink += (double)times[0].idle_ns;
}

static void by_records(void)
{
    for (uint32_t i = 0; i < count; i++) {
        struct prcb_processor r;

        r.size = sizeof(r);
        prcb_processor_read(view, i, &r);
        sink += (double)r.idle_ns;
    }
}

static void by_reading_alone(void)
{
    static char text[LONGEST];
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);

    sink += (double)read(fd, text, sizeof(text));
    close(fd);
}

/* libuv: a stream, a scan of each processor's line, and no further than these. */
static void as_libuv(void)
{
    unsigned long long user, nice, sys, idle, ignored, irq;
    FILE *file = fopen("/proc/stat", "re");
    char line[1024];
    unsigned number;

    if (!file || !fgets(line, sizeof(line), file))
        return;
    while (fscanf(file, "cpu%u %llu %llu %llu %llu %llu %llu", &number, &user, &nice, &sys, &idle,
                  &ignored, &irq) == 7) {
        sink += (double)(user + nice + sys + idle + irq);
        while (fgets(line, sizeof(line), file) && !strchr(line, '\n'))
            ;
    }
    fclose(file);
}

/* psutil: all lines, split into words, as numbers in seconds. */
static void as_psutil(void)
{
    FILE *file = fopen("/proc/stat", "re");
    size_t room = 0;
    char *line = NULL;

    while (file && getline(&line, &room, file) > 0) {
        char *words[FIELDS + 1], *rest = NULL;
        int got = 0;

        if (strncmp(line, "cpu", 3))
            continue;
        for (char *word = strtok_r(line, " \n", &rest); word && got <= FIELDS;
             word = strtok_r(NULL, " \n", &rest))
            words[got++] = word;
        for (int i = 1; i < got; i++)
            sink += strtod(words[i], NULL) / 100;
    }
    free(line);
    if (file)
        fclose(file);
}

static size_t read_whole(char *text, size_t room)
{
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got;

    while (fd >= 0 && (got = read(fd, text + used, room - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    text[used] = '\0';
    return used;
}

/* node_exporter: the whole file, every line into words, processors by a scan for floating point,
 * and all numbers of the interrupts as well. */
static void as_node_exporter(void)
{
    static char text[LONGEST];
    char *lines = NULL, *words = NULL;

    read_whole(text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        if (!strncmp(line, "cpu", 3)) {
            double v[FIELDS];
            char name[32];

            if (sscanf(line, "%31s %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf", name, &v[0], &v[1],
                       &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9]) > 4)
                sink += v[0] / 100;
            continue;
        }
        for (char *word = strtok_r(line, " ", &words); word; word = strtok_r(NULL, " ", &words)) {
            if (isdigit((unsigned char)*word))
                sink += (double)strtoull(word, NULL, 10);
        }
    }
}

/* The program, once: it prints the averages since the boot. */
static void by_mpstat(void)
{
    char *const command[] = {(char *)"mpstat", (char *)"-P", (char *)"ALL", NULL};
    posix_spawn_file_actions_t actions;
    int status;
    pid_t child;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!posix_spawnp(&child, "mpstat", &actions, NULL, command, environ))
        waitpid(child, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
}

static const struct way {
    const char *name;
    void (*read)(void);
    int calls;
} ways[] = {
    {"prcb_processors_times", by_times, 20000},
    {"prcb_processor_read of each", by_records, 10000},
    {"/proc/stat, open+read+close alone", by_reading_alone, 200},
    {"/proc/stat as libuv", as_libuv, 200},
    {"/proc/stat as psutil", as_psutil, 200},
    {"/proc/stat as node_exporter", as_node_exporter, 200},
    {"mpstat -P ALL, a process", by_mpstat, 2},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static double time_of(void (*fn)(void), int calls)
{
    uint64_t start = bench_now();

    for (int i = 0; i < calls; i++)
        fn();
    return (double)(bench_now() - start) / calls;
}

static void compare_ways(void)
{
    static double taken[WAYS][ROUNDS];
    double ours = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < WAYS; i++)
            taken[i][round] = time_of(ways[i].read, ways[i].calls);
    }
    printf("times of all %u processors, bpf tier, pinned, median of %d interleaved rounds\n\n"
           "%-40s %12s %10s\n",
           count, ROUNDS, "", "ns", "prcb is");
    for (size_t i = 0; i < WAYS; i++) {
        double ns = bench_median(taken[i], ROUNDS);

        if (!i)
            ours = ns;
        printf("%-40s %12.1f", ways[i].name, ns);
        if (i > 1)
            printf(" %8.0fx", ns / ours);
        printf("\n");
    }
}

/* ---- the slope ---- */

#ifdef BENCH_BPF
static struct prcb_processors made_up;
static struct processor_map made_map;
static uint32_t wanted;

static void of_made_up(void)
{
    prcb_processors_times(&made_up, times, sizeof(*times), wanted);
    sink += (double)times[0].idle_ns;
}

/* Blocks of processors of which each does something else. */
static int make_blocks(void)
{
    struct prcb_processor_head head = {
        .magic = PRCB_PROCESSOR_MAGIC,
        .abi_major = PRCB_PROCESSOR_MAJOR,
        .head_size = sizeof(head),
        .block_size = sizeof(struct prcb_processor_block),
        .block_stride = sizeof(struct prcb_processor_block),
        .count = MOST,
    };
    int fd = memfd_create("blocks", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (MOST + 1) * sizeof(head)) ||
        pwrite(fd, &head, sizeof(head), 0) < 0)
        return -1;
    for (uint32_t i = 0; i < MOST; i++) {
        struct prcb_processor_block block = {
            .state = PRCB_PROCESSOR_ONLINE,
            .beneath = i % 3 ? PRCB_PROCESSOR_IN_IDLE : 0,
            .stamp = bench_now(),
            .started = bench_now() - 3000000000,
            .idle_ns = 1000000000,
            .user_ns = 1500000000,
            .kernel_ns = 300000000,
            .busy_ns = 200000000,
            .user_share = 50000,
        };

        if (pwrite(fd, &block, sizeof(block), (i + 1) * (off_t)sizeof(block)) < 0)
            return -1;
    }
    return fd;
}

/* A view of blocks that nobody writes to. */
static int open_made_up(void)
{
    struct prcb_error err;
    int fd = make_blocks();

    if (fd < 0 || processor_map_open(fd, &made_map, &err))
        return -1;
    made_up.source = &processors_from_bpf;
    made_up.map = &made_map;
    made_up.count = MOST;
    made_up.times = calloc(MOST, sizeof(*made_up.times));
    made_up.slots = calloc(MOST, sizeof(*made_up.slots));
    pthread_mutex_init(&made_up.lock, NULL);
    clock_base_init(&made_up.clock_base);
    usleep(100000);
    return 0;
}

/* For counting steps: the real ones change with every step, and would be read again and again. */
static struct prcb_processors *made_up_view(void)
{
    return open_made_up() ? NULL : &made_up;
}

static void compare_counts(void)
{
    static const uint32_t counts[] = {2, 8, 32, 128, MOST};
    static double taken[5][ROUNDS];
    double medians[5];

    if (open_made_up())
        return;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 5; i++) {
            wanted = counts[i];
            taken[i][round] = time_of(of_made_up, 200000 / (int)wanted);
        }
    }
    printf("\nprcb_processors_times on a made-up map, median of %d interleaved rounds\n\n", ROUNDS);
    for (int i = 0; i < 5; i++) {
        medians[i] = bench_median(taken[i], ROUNDS);
        printf("%4u processors %10.1f ns\n", counts[i], medians[i]);
    }
    printf("each further processor %.1f ns\n", (medians[4] - medians[0]) / (MOST - 2));
}
#else
static struct prcb_processors *made_up_view(void)
{
    return NULL;
}

static void compare_counts(void)
{
}
#endif

/* ---- what everybody pays ---- */

static int udp = -1;
static struct sockaddr_in udp_address;

static void by_udp(void)
{
    char bytes[64] = "";

    sendto(udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&udp_address, sizeof(udp_address));
    sink += (double)recv(udp, bytes, sizeof(bytes), 0);
}

static void by_call(void)
{
    sink += (double)syscall(SYS_gettid);
}

static void by_sleep(void)
{
    struct timespec shortest = {.tv_nsec = 1};

    nanosleep(&shortest, NULL);
}

static int open_udp(void)
{
    socklen_t length = sizeof(udp_address);

    udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    udp_address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return udp < 0 || bind(udp, (struct sockaddr *)&udp_address, sizeof(udp_address)) ||
           getsockname(udp, (struct sockaddr *)&udp_address, &length);
}

static int open_view(void)
{
    struct prcb_processors_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_error err;

    if (!prcb_processors_open(&options, &view, &err))
        return 0;
    fprintf(stderr, "bench_cpu: %s\n", err.text);
    return -1;
}

static const struct way loads[] = {
    {"empty system call (gettid)", by_call, 100000},
    {"UDP datagram to oneself", by_udp, 10000},
    {"nanosleep of 1 ns", by_sleep, 500},
};
#define LOADS  (sizeof(loads) / sizeof(loads[0]))
#define ATTACH 21

static int compare_loads(void)
{
    static double plain[LOADS][ATTACH], added[LOADS][ATTACH];

    if (open_udp())
        return -1;
    for (int round = 0; round < ATTACH; round++) {
        double without[LOADS];

        for (size_t i = 0; i < LOADS; i++)
            without[i] = time_of(loads[i].read, loads[i].calls);
        if (open_view())
            return -1;
        for (size_t i = 0; i < LOADS; i++)
            added[i][round] = time_of(loads[i].read, loads[i].calls);
        prcb_processors_close(view);
        for (size_t i = 0; i < LOADS; i++) {
            /* On both sides of it, for a machine that drifts. */
            plain[i][round] = (without[i] + time_of(loads[i].read, loads[i].calls)) / 2;
            added[i][round] -= plain[i][round];
        }
    }
    printf("\nwith the processor programs attached: ns added, medians of %d rounds\n\n%-40s %10s "
           "%10s\n",
           ATTACH, "", "added", "plain");
    for (size_t i = 0; i < LOADS; i++)
        printf("%-40s %+10.1f %10.1f\n", loads[i].name, bench_median(added[i], ATTACH),
               bench_median(plain[i], ATTACH));
    return 0;
}

/* ---- work instead of time ---- */

/* The instruction at the traced process's next step, if it is a system call. */
static bool at_syscall(pid_t child)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;
    long word;

    if (ptrace(PTRACE_GETREGS, child, NULL, &regs))
        return false;
    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, child, (void *)regs.rip, NULL);
    return !errno && (word & 0xffff) == 0x050f;
#else
    return false;
#endif
}

/* Steps through one reading of a child, from its first stop to its second. */
static void count_work(const struct way *way)
{
    uint64_t instructions = 0, calls = 0;
    int status;
    pid_t child = fork();

    if (!child) {
        way->read(); /* all pages touched, all streams made */
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        way->read();
        raise(SIGUSR1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGUSR1) {
        calls += at_syscall(child);
        instructions++;
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) || waitpid(child, &status, 0) < 0)
            break;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    /* raise makes three calls itself. */
    printf("%-40s %12llu %10llu\n", way->name, (unsigned long long)instructions,
           (unsigned long long)calls);
}

static void by_nothing(void)
{
}

static int compare_work(void)
{
    static const struct way nothing = {"nothing (the counting itself)", by_nothing, 1};

    view = made_up_view();
    if (!view)
        return 1;
    printf("one reading of %u processors: user-mode instructions, system calls\n\n", count);
    count_work(&nothing);
    for (size_t i = 0; i < WAYS; i++) {
        /* Minutes of steps, where there are many and the machine is emulated. */
        if (ways[i].read == by_mpstat || (count > 8 && ways[i].read == as_node_exporter))
            continue;
        count_work(&ways[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (open_view())
        return 0;
    count = prcb_processors_count(view);
    count = count < MOST ? count : MOST;
    usleep(100000);
    if (argc > 1 && !strcmp(argv[1], "work")) {
        prcb_processors_close(view);
        return compare_work();
    }
    bench_pin(0);
    compare_ways();
    prcb_processors_close(view);
    compare_counts();
    return compare_loads() ? 1 : 0;
}
