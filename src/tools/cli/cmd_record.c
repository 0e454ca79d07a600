/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb record` samples a command, processes or the whole system into a file.
 */
#include "array.h"
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "cgroup.h"
#include "misses.h"
#include "names.h"
#include "now.h"
#include "pid_ns.h"
#include "procfs.h"
#include "program_path.h"
#include "recorder.h"
#include "stat_options.h"
#include "stat_wait.h"

#define DEFAULT_PATH    "prcb.db"
#define DEFAULT_EVENT   "cpu-clock"
#define MAX_HZ          1000000
#define STACK_BYTES     16384
#define STACK_BYTES_MAX 57344 /* a record of the perf ring has room for 64 KiB */
#define PROGRESS_NS     500000000ull

struct run {
    const struct cli_command *command;
    struct recorder_options options;
    struct stat_options targets;     /* of which pids, tids and cgroups */
    struct recorder_thread *threads; /* of these */
    size_t thread_count;
    char **argv; /* the command; NULL: none */
    uint64_t for_ns;
    struct recorder *recorder;
    struct stat_wait wait;
    uint64_t start, end; /* end: UINT64_MAX: none */
    uint64_t next_progress;
    int child_status;
    bool no_switches, no_wakers, had_child, ended_early, failed, terminal, verbose;
};

/* -F or -c. */
static int take_rate(struct cli_parser *parser, void *target)
{
    struct run *run = target;
    bool frequency = parser->option->letter == 'F';

    if (run->options.rate && run->options.frequency != frequency)
        return cli_usage_error(run->command, "-F and -c exclude each other");
    run->options.frequency = frequency;
    return cli_parse_number(parser, &run->options.rate);
}

static int take_stack_bytes(struct cli_parser *parser, void *target)
{
    struct run *run = target;
    uint64_t bytes = 0;
    int result = cli_parse_number(parser, &bytes);

    run->options.stack_bytes = (uint32_t)(bytes + 7) & ~7u; /* the kernel takes words */
    return result;
}

#define AT(member) .at = offsetof(struct run, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    {'p', "pid", "PID[,PID]", "record these processes, and all that they start",
     .take = cli_take_ids, AT(targets.pids), .what = "process", .choices = "@pid"},
    {'t', "tid", "TID[,TID]", "record these threads, and all that they start",
     .take = cli_take_ids, AT(targets.tids), .what = "thread", .choices = "@tid"},
    {0, "cgroup", "PATH", "record the threads that are in this cgroup directory and below it when\n"
                          "the recording begins, and all that they start; may be given several times",
     .take = stat_options_take_cgroup, AT(targets), .choices = "@folder"},
    {0, "unit", "UNIT", "the same of this unit of systemd", .take = stat_options_take_unit, AT(targets)},
    {0, "container", "NAME", "the same of this container: its name, or the beginning of its id",
     .take = stat_options_take_container, AT(targets)},
    {0, "pod", "NAME", "the same of this pod of Kubernetes: NAME, NAMESPACE/NAME or its uid",
     .take = stat_options_take_pod, AT(targets)},
    {'a', "all", NULL, "record the whole system", AT(options.all)},
    {'e', "event", "NAME", "sample this event (default cpu-clock); prcb list names those there are",
     .kind = CLI_TEXT, AT(options.event)},
    {'F', "freq", "HZ", "take HZ samples per second on each processor (default 1000)",
     .take = take_rate, .min = 1, .max = MAX_HZ},
    {'c', "count", "PERIOD", "take a sample each PERIOD events (of cpu-clock: nanoseconds)",
     .take = take_rate, .min = 1, .max = INT64_MAX},
    {'g', "stacks", NULL, "with stacks: of samples kernel and user, and of waits of a millisecond and\n"
                         "longer; complete without frame pointers", AT(options.stacks)},
    {0, "stack-bytes", "BYTES", "with -g: copy this much of the stack with each sample (default 16384, to\n"
                                "57344); 0: follow frame pointers instead, which costs less",
     .take = take_stack_bytes, .max = STACK_BYTES_MAX},
    {0, "native", NULL, "with -g: show an interpreter's own functions, not those of its program",
     AT(options.native)},
    {0, "spans", NULL, "with -g: and the span of a trace (request) that a thread waited in, of programs\n"
                       "that publish OpenTelemetry's thread context", AT(options.spans)},
    {'o', "output", "FILE", "record into FILE (default " DEFAULT_PATH ")",
     .kind = CLI_TEXT, AT(options.path)},
    {0, "for", "SEC", "end after SEC seconds (0.5 is fine); a command that still runs is\n"
                      "then ended with SIGTERM", .take = cli_take_duration, AT(for_ns)},
    {0, "no-switches", NULL, "leave out context switches", AT(no_switches)},
    {0, "no-wakers", NULL, "leave out who woke each thread", AT(no_wakers)},
    {0, "tier", "TIER", "use this source and no other: bpf or perf",
     .take = cli_take_tier, AT(options.tier), .max = PRCB_TIER_BPF},
    {'v', "verbose", NULL, "where the kernel refuses an eBPF program, its verifier's last lines", AT(verbose)},
    {0},
};
/* clang-format on */

#ifdef HAVE_RECORD

/* Returns CLI_OK, or -1 and *ret_status is the exit code. */
static int parse(struct run *run, int argc, char **argv, int *ret_status)
{
    struct cli_parser parser = {.command = run->command, .argc = argc, .argv = argv};

    if (cli_take_all(&parser, run, ret_status))
        return -1;
    if (parser.index < argc)
        run->argv = argv + parser.index;
    run->options.switches = !run->no_switches;
    run->options.wakers = !run->no_wakers;
    run->options.command = run->argv;
    stat_options_find_processes(run->command, &run->targets);
    run->options.pids = run->targets.pids.ids;
    run->options.pid_count = run->targets.pids.count;
    run->options.named = run->targets.pids.named;
    if (run->options.all && stat_options_have_targets(&run->targets))
        *ret_status =
            cli_usage_error(run->command, "-a records everything: leave -p, -t and --cgroup out");
    else if (!run->argv && !run->options.all && !stat_options_have_targets(&run->targets))
        *ret_status = cli_usage_error(run->command, "nothing to record: name a command, or -p PID, "
                                                    "-t TID, --cgroup PATH or -a");
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- the course ------------------------------------------------------------ */

static int fail(struct run *run, const struct prcb_error *err)
{
    run->failed = true;
    return cli_error(run->command, "%s", err->text);
}

/* ---- threads ---- */

/* Adds a thread, unless its process is recorded anyway. 0: the thread is there, or need not be. */
static int take_thread(struct run *run, struct procfs *files, pid_t tid)
{
    struct procfs_status status;
    int result = procfs_read_status(files, tid, tid, &status);

    if (result)
        return result;
    for (size_t i = 0; i < run->options.pid_count; i++) {
        if (run->options.pids[i] == status.tgid)
            return 0;
    }
    return array_append(run->threads, run->thread_count,
                        (struct recorder_thread){status.tgid, tid});
}

static int by_number(const void *left, const void *right)
{
    const struct recorder_thread *a = left, *b = right;

    return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid)
                            : (a->tid > b->tid) - (a->tid < b->tid);
}

/* Sorts the threads, and keeps each once. */
static void put_in_order(struct run *run)
{
    size_t kept = 0;

    array_sort(run->threads, run->thread_count, by_number);
    for (size_t i = 0; i < run->thread_count; i++) {
        if (!kept || run->threads[kept - 1].tid != run->threads[i].tid)
            run->threads[kept++] = run->threads[i];
    }
    run->thread_count = kept;
    run->options.threads = run->threads;
    run->options.thread_count = kept;
}

static int take_cgroup(struct run *run, struct procfs *files, const char *path)
{
    struct pid_list list = {0};
    struct prcb_error err;
    int result = cgroup_list_threads(files, path, &list, &err);
    int status = result ? cli_error(run->command, "%s", err.text) : CLI_OK;

    /* A thread that has ended meanwhile is no error. */
    for (size_t i = 0; i < list.count && !result; i++) {
        if (take_thread(run, files, list.items[i]) == -ENOMEM)
            result = status = cli_error(run->command, "out of memory");
    }
    if (!result && !list.count)
        status = cli_error(run->command, "cgroup %s: there are no threads in it", path);
    pid_list_free(&list);
    return status;
}

/* Returns CLI_OK, or the exit code. */
static int find_threads(struct run *run)
{
    const struct stat_options *targets = &run->targets;
    struct procfs files;
    int status = CLI_OK;

    if (!targets->tids.count && !targets->cgroup_count)
        return CLI_OK;
    if (procfs_open(&files, "/proc"))
        return cli_error(run->command, "/proc is not there: mount it (mount -t proc proc /proc)");
    for (size_t i = 0; i < targets->tids.count && status == CLI_OK; i++) {
        pid_t tid = targets->tids.ids[i];
        int result = take_thread(run, &files, tid);

        if (result)
            status = cli_error(run->command, "thread %d: %s", (int)tid,
                               result == -ENOMEM ? "out of memory" : "there is none");
    }
    for (size_t i = 0; i < targets->cgroup_count && status == CLI_OK; i++)
        status = take_cgroup(run, &files, targets->cgroups[i]);
    procfs_close(&files);
    put_in_order(run);
    return status;
}

static int before_exec(pid_t child, void *ctx, struct prcb_error *err)
{
    struct run *run = ctx;

    return recorder_start(run->recorder, child, err);
}

static int start(struct run *run)
{
    bool named = run->options.all || stat_options_have_targets(&run->targets);
    struct prcb_spawn_hook hook = {sizeof(hook), before_exec, run};
    struct prcb_error err = {0};
    pid_t child;
    int result;

    /* The recording ends with the last of these processes; a cgroup may get others. */
    for (size_t i = 0; i < run->options.pid_count && !run->targets.cgroup_count; i++)
        stat_wait_add_target(&run->wait, run->options.pids[i]);
    for (size_t i = 0; i < run->thread_count && !run->targets.cgroup_count; i++) {
        if (!i || run->threads[i].pid != run->threads[i - 1].pid)
            stat_wait_add_target(&run->wait, run->threads[i].pid);
    }
    if (named && recorder_start(run->recorder, 0, &err))
        return fail(run, &err);
    if (run->argv) {
        result = prcb_spawn_hooked(NULL, run->argv, 0, named ? NULL : &hook, &child, &err);
        if (result) {
            fail(run, &err);
            return strstr(err.text, run->argv[0]) == err.text ? cli_exec_status(result)
                                                              : CLI_FAILED;
        }
        stat_wait_set_child(&run->wait, child);
        run->had_child = true;
        result = stat_wait_pending(&run->wait);
        if (result)
            kill(child, result);
    }
    run->start = now_ns();
    run->end = run->for_ns ? run->start + run->for_ns : UINT64_MAX;
    return CLI_OK;
}

static void say_what(const struct run *run)
{
    struct recorder_progress now;

    recorder_look(run->recorder, &now);
    if (now.user_only)
        cli_warn(run->command, "user mode only: kernel.perf_event_paranoid does not let this user "
                               "sample the kernel");
    if (now.reason)
        cli_warn(run->command, "%s: samples %s", now.reason,
                 strcmp(now.switching, "prcbd")
                     ? "and switches by the perf ring, without wait reasons"
                     : "by the perf ring, switches by prcbd");
    if (now.no_wakers)
        cli_warn(run->command, "wakers are not recorded: %s", now.no_wakers);
    if (now.no_waits)
        cli_warn(run->command, "no stacks of waits: %s", now.no_waits);
    if (!run->had_child && isatty(STDERR_FILENO))
        cli_warn(run->command, "recording%s; Ctrl-C ends it",
                 run->options.all ? " the whole system" : "");
}

static void print_progress(struct run *run, const char *end)
{
    struct recorder_progress now;

    recorder_look(run->recorder, &now);
    fprintf(stderr,
            "\r%.1f s: %" PRIu64 " samples, %" PRIu64 " switches, %" PRIu64 " lost, %.1f MB%s",
            (double)(now_ns() - run->start) / 1e9, now.samples, now.switches, now.lost,
            (double)now.bytes / 1e6, end);
}

static void measure(struct run *run)
{
    struct prcb_error err;
    bool ended = false;

    while (!ended) {
        uint64_t until, now;
        unsigned events;
        int next_ms;

        if (recorder_work(run->recorder, &next_ms, &err)) {
            fail(run, &err);
            break;
        }
        until = now_ns() + (uint64_t)next_ms * 1000000;
        events = stat_wait_until(&run->wait, until < run->end ? until : run->end);
        now = now_ns();
        ended = events & (STAT_WAIT_CHILD | STAT_WAIT_SIGNAL);
        if (!ended && now >= run->end) {
            ended = true;
            run->ended_early = run->had_child;
        }
        if (events & STAT_WAIT_TARGET) {
            size_t living = 0;

            for (size_t i = 0; i < run->wait.target_count; i++)
                living += run->wait.targets[i] >= 0;
            ended = ended || (!living && !run->had_child);
        }
        if (run->terminal && now >= run->next_progress) {
            print_progress(run, "");
            run->next_progress = now + PROGRESS_NS;
        }
    }
}

/* The command runs to its end even without a recording. */
static void await_child(struct run *run)
{
    if (run->ended_early)
        stat_wait_end_child(&run->wait);
    while (run->failed && !(stat_wait_until(&run->wait, UINT64_MAX) & STAT_WAIT_CHILD))
        ;
    run->child_status = stat_wait_reap(&run->wait, NULL);
}

static int next_program(void *from, uint32_t i, struct prcb_program *ret)
{
    return recorder_program(from, i, ret);
}

/* How many of the samples have complete stacks; "": nothing is known of that. */
static const char *complete_text(const struct recorder_progress *now, char ret[32])
{
    *ret = '\0';
    if (now->copies && now->samples)
        snprintf(ret, 32, " (%.1f%% complete)",
                 100.0 * (double)now->complete / (double)now->samples);
    return ret;
}

static int finish(struct run *run)
{
    char complete[32];
    struct recorder_progress now;
    struct namer namer = {0};
    struct prcb_error err;
    int status = CLI_OK;

    if (run->had_child && !run->failed)
        await_child(run);
    if (!run->failed) {
        if (run->terminal)
            print_progress(run, "\n");
        if (recorder_finish(run->recorder, &err)) {
            fail(run, &err);
        } else {
            stat_wait_restore();
            if (recorder_name(run->recorder, &namer, &err))
                fail(run, &err);
            if (namer.left)
                cli_warn(run->command, "%u file%s left without names of functions: %s%s",
                         namer.left, namer.left == 1 ? "" : "s", namer.first,
                         namer.left == 1 ? "" : "; ...");
        }
        recorder_look(run->recorder, &now);
        if (!run->failed)
            cli_warn(run->command,
                     "%" PRIu64 " samples%s, %" PRIu64 " switches, %" PRIu64 " lost: %s",
                     now.samples, complete_text(&now, complete), now.switches, now.lost,
                     run->options.path);
        misses_write(stderr, "prcb record: ", next_program, run->recorder,
                     "switches, or what waits were for, may be missing");
    } else if (run->had_child) {
        await_child(run);
    }
    if (run->had_child)
        status = cli_child_status(run->child_status, run->ended_early);
    return status == CLI_OK && run->failed ? CLI_FAILED : status;
}

static int record(struct run *run)
{
    struct prcb_error err;
    char program[PATH_MAX];
    int status, result = run->argv ? program_find(run->argv[0], program) : 0;

    if (result) {
        cli_error(run->command, "%s: %s", run->argv[0],
                  result == -ENOENT ? "command not found" : strerror(-result));
        return cli_exec_status(result);
    }
    if (check_proc_numbers(&err))
        return cli_error(run->command, "%s", err.text);
    status = find_threads(run);
    if (status != CLI_OK)
        return status;
    if (stat_options_have_targets(&run->targets))
        cli_allow_descriptors(); /* it takes some per thread and processor */
    result = recorder_open(&run->options, &run->recorder, &err);
    if (run->verbose && run->recorder) {
        struct recorder_progress now;

        recorder_look(run->recorder, &now);
        cli_write_load_log(now.load_log);
    } else if (run->verbose) {
        cli_write_load_log(prcb_load_log());
    }
    if (result)
        return result == -EINVAL ? cli_usage_error(run->command, "-e: %s", err.text)
                                 : cli_error(run->command, "%s", err.text);
    result = stat_wait_init(&run->wait);
    if (result) {
        recorder_close(run->recorder);
        return cli_error(run->command, "pipe: %s", strerror(-result));
    }
    run->terminal = isatty(STDERR_FILENO);
    status = start(run);
    if (status == CLI_OK) {
        say_what(run);
        measure(run);
        status = finish(run);
    }
    recorder_close(run->recorder);
    stat_wait_deinit(&run->wait);
    return status;
}

static int run_record(const struct cli_command *self, int argc, char **argv)
{
    struct run run = {
        .command = self,
        .options = {.path = DEFAULT_PATH, .event = DEFAULT_EVENT, .stack_bytes = STACK_BYTES},
    };
    int status;

    if (!parse(&run, argc, argv, &status))
        status = record(&run);
    stat_options_deinit(&run.targets);
    free(run.threads);
    return status;
}

#else

static int run_record(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
    struct run run = {0};
    int status;

    if (cli_take_all(&parser, &run, &status))
        return status;
    return cli_error(self, "this prcb was built without SQLite, libdw or libelf, which recordings "
                           "need (meson option 'record')");
}

#endif

extern const struct cli_command cmd_record;
const struct cli_command cmd_record = {
    .name = "record",
    .synopsis = "[options] [--] COMMAND [ARGUMENT...]\n"
                "       prcb record [options] -p PID | -t TID | --cgroup PATH | -a "
                "[-- CMD...]",
    .summary = "samples and context switches, into a file for prcb report",
    .description =
        "Takes samples of where programs are, and a record each time a thread leaves or gets a\n"
        "processor, with what is mapped where and the processors' times, into an SQLite file.\n"
        "Records COMMAND with all its threads and children, or what -p, -t, --cgroup or -a name:\n"
        "until Ctrl-C, for the time of --for, or as long as COMMAND runs. The exit status is\n"
        "COMMAND's. prcb report reads the file; so does any SQLite program.",
    .options = option_rows,
    .examples = "  prcb record -- make                   a command, 1000 samples a second\n"
                "  prcb record -g -F 10000 -- ./program  more of them, with stacks\n"
                "  prcb record -p 1234 --for 10          a process, for ten seconds\n"
                "  prcb record -a -o system.db           the system, until Ctrl-C\n"
                "  prcb record -e page-faults -c 1 -- ls  where each page is first touched\n",
    .run = run_record,
};
