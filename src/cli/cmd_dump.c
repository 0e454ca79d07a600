/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dump: Windows crash dumps. Options, and the work over several files: workers read files and
 * write each answer to memory, the first thread prints the answers in order.
 */
#include "dump_request.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNPACK_LIMIT (8ull << 30)
#define WORKERS_MOST 256
#define AHEAD_MOST   64 /* answers that wait to be printed */
#define MINUTE_TICK  10000000u

enum {
    OPT_CPU = CLI_LONG,
    OPT_STRUCT,
    OPT_THREAD,
    OPT_MODULES,
    OPT_STACK,
    OPT_RAW,
    OPT_NDJSON,
    OPT_INCREMENT,
    OPT_FREQUENCY,
    OPT_SYMBOLS,
    OPT_LIMIT,
};

static const struct cli_option options[] = {
    {0, "cpu", "N", "everything of processor N", OPT_CPU},
    {0, "struct", "NAME",
     "all members of a structure of one processor (--cpu, or the one that\n"
     "crashed): KPRCB, PROCESSOR_POWER_STATE, KTHREAD, ...",
     OPT_STRUCT},
    {0, "thread", NULL, "the crashing thread: switches, cycles, wait reason", OPT_THREAD},
    {0, "modules", NULL, "the kernel's modules, loaded and unloaded", OPT_MODULES},
    {0, "stack", NULL, "addresses inside modules on the crashing thread's stack (a scan)",
     OPT_STACK},
    {0, "raw", NULL, "numbers as stored (ticks, not seconds); with --struct its bytes", OPT_RAW},
    {'j', "json", NULL, "as JSON", 'j'},
    {0, "ndjson", NULL, "one line of JSON a file, also for files that cannot be read", OPT_NDJSON},
    {'J', "jobs", "N", "read N files at a time (default: 1)", 'J'},
    {0, "time-increment", "N", "length of a clock tick in 100 ns (default: the dump's, or 156250)",
     OPT_INCREMENT},
    {0, "qpc-frequency", "HZ",
     "of the performance counter, IdleTimeTotal's unit (default: the usual\n"
     "one where there is one)",
     OPT_FREQUENCY},
    {0, "symbols", "PATH",
     "the kernel's symbols: a PDB or volatility3 JSON, also compressed, or a\n"
     "directory of PDBs, of which each dump takes the one that fits",
     OPT_SYMBOLS},
    {0, "unpack-limit", "MIB", "most that a compressed file may unpack to (default: 8192)",
     OPT_LIMIT},
    {0},
};

/* "prcb dump: 12 of 200 files" on a terminal, rewritten twice a second, behind which nothing is
 * left. Only the thread that prints calls it. */
#define PROGRESS_NS 500000000ull

struct progress {
    bool is_on;
    uint64_t next; /* when to write again, CLOCK_MONOTONIC in ns */
    int width;     /* of what stands there */
};

static void progress_show(struct progress *p, size_t done, size_t count)
{
    struct timespec now;
    uint64_t ns;
    uint64_t unpacked = dump_unpacked();

    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (!p->is_on || ns < p->next)
        return;
    if (p->next) { /* not within the first half second */
        fprintf(stderr, "\r%*s\r", p->width, "");
        p->width = fprintf(stderr, "prcb dump: %zu of %zu files", done, count);
        if (unpacked)
            p->width += fprintf(stderr, ", %" PRIu64 " MiB unpacked", unpacked >> 20);
        fflush(stderr);
    }
    p->next = ns + PROGRESS_NS;
}

static void progress_clear(struct progress *p)
{
    if (p->width)
        fprintf(stderr, "\r%*s\r", p->width, "");
    p->width = 0;
}

/* One file's answer. */
struct answer {
    char *text; /* to print; NULL: none */
    size_t length;
    int code; /* 0 or -errno, with error */
    bool is_done;
    struct prcb_error error;
};

struct work {
    const struct cli_command *command;
    const struct dump_request *request;
    const struct dump_files *files;
    struct answer *answers;
    size_t next, printed; /* files taken, answers printed */
    bool is_stopped;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static bool is_array(const struct work *w)
{
    return w->request->json && !w->request->ndjson && w->files->count > 1;
}

/* In lines and arrays a file that cannot be read stands by name with its error. */
static bool writes_errors(const struct work *w)
{
    return w->request->ndjson || is_array(w);
}

static void read_file(const struct work *w, const char *path, struct answer *ret)
{
    FILE *out = open_memstream(&ret->text, &ret->length);
    struct prcb_dump *d;

    if (!out) {
        ret->code = -ENOMEM;
        snprintf(ret->error.text, sizeof(ret->error.text), "%s: out of memory", path);
        return;
    }
    ret->code = dump_open(path, w->request, &d, &ret->error);
    if (!ret->code) {
        ret->code =
            (w->request->json ? dump_json : dump_text)(d, path, w->request, out, &ret->error);
        prcb_dump_close(d);
    }
    if (ret->code && writes_errors(w)) { /* whatever was written before */
        rewind(out);
        fflush(out);
        dump_json_error(path, &ret->error, out);
        fflush(out);
        ret->length = (size_t)ftell(out);
    }
    fclose(out);
}

static void *worker(void *ctx)
{
    struct work *w = ctx;
    size_t i;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->is_stopped && w->next < w->files->count && w->next >= w->printed + AHEAD_MOST)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->is_stopped || w->next >= w->files->count)
            break;
        i = w->next++;
        pthread_mutex_unlock(&w->lock);
        read_file(w, w->files->paths[i], &w->answers[i]);
        pthread_mutex_lock(&w->lock);
        w->answers[i].is_done = true;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Prints an answer; several files in JSON form an array. */
static int print_answer(const struct work *w, size_t index)
{
    struct answer *a = &w->answers[index];
    bool has_text = a->length && (!a->code || writes_errors(w));

    if (a->code && !w->request->ndjson)
        cli_error(w->command, "%s", a->error.text);
    if (is_array(w) && !index)
        putchar('[');
    if (has_text) {
        if (is_array(w) && index)
            fputs(", ", stdout);
        else if (!w->request->json && index)
            putchar('\n');
        fwrite(a->text, 1, a->length, stdout);
    }
    if (is_array(w) && index + 1 == w->files->count)
        puts("]");
    if (w->request->ndjson)
        fflush(stdout);
    return ferror(stdout) ? -EPIPE : a->code;
}

static int print_all(struct work *w)
{
    struct progress progress = {.is_on = isatty(STDERR_FILENO)};
    int status = CLI_OK;

    for (size_t i = 0; i < w->files->count; i++) {
        pthread_mutex_lock(&w->lock);
        while (!w->answers[i].is_done) {
            struct timespec until;

            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec++;
            pthread_cond_timedwait(&w->changed, &w->lock, &until);
            progress_show(&progress, i, w->files->count);
        }
        pthread_mutex_unlock(&w->lock);
        progress_clear(&progress);
        if (print_answer(w, i))
            status = CLI_FAILED;
        free(w->answers[i].text);
        w->answers[i].text = NULL;
        pthread_mutex_lock(&w->lock);
        w->printed = i + 1;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
    }
    return status;
}

/* Without -J, one worker all the same: one path to test. */
static int run_files(struct work *w, unsigned int jobs)
{
    pthread_t threads[WORKERS_MOST];
    unsigned int started = 0;
    int status;

    w->answers = calloc(w->files->count, sizeof(*w->answers));
    if (!w->answers)
        return cli_error(w->command, "out of memory");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    while (started < jobs && !pthread_create(&threads[started], NULL, worker, w))
        started++;
    status = started ? print_all(w) : cli_error(w->command, "cannot start a thread");
    for (unsigned int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->answers);
    return status;
}

/* ---- options ---- */

struct arguments {
    struct dump_request request;
    const char *symbols;
    uint64_t jobs;
};

static int number(const struct cli_command *self, const char *option, const char *text,
                  uint64_t min, uint64_t max, uint64_t *ret)
{
    if (!cli_parse_u64(text, min, max, ret))
        return 0;
    cli_usage_error(self, "--%s takes a number from %llu to %llu, not '%s'", option,
                    (unsigned long long)min, (unsigned long long)max, text);
    return -EINVAL;
}

static int take(const struct cli_command *self, int id, const char *value, struct arguments *a)
{
    struct dump_request *r = &a->request;
    uint64_t n = 0;
    int code = 0;

    switch (id) {
    case OPT_CPU:
        code = number(self, "cpu", value, 0, UINT32_MAX, &n);
        r->has_cpu = true;
        r->cpu = (uint32_t)n;
        break;
    case OPT_STRUCT:
        r->structure = value;
        break;
    case OPT_THREAD:
        r->thread = true;
        break;
    case OPT_MODULES:
        r->modules = true;
        break;
    case OPT_STACK:
        r->stack = true;
        break;
    case OPT_RAW:
        r->raw = true;
        break;
    case OPT_NDJSON:
        r->ndjson = r->json = true;
        break;
    case 'j':
        r->json = true;
        break;
    case 'J':
        code = number(self, "jobs", value, 1, WORKERS_MOST, &a->jobs);
        break;
    case OPT_INCREMENT:
        code = number(self, "time-increment", value, 1, MINUTE_TICK, &n);
        r->options.time_increment = (uint32_t)n;
        break;
    case OPT_FREQUENCY:
        code = number(self, "qpc-frequency", value, 1, UINT64_MAX, &r->options.qpc_frequency);
        break;
    case OPT_SYMBOLS:
        a->symbols = value;
        break;
    default:
        code = number(self, "unpack-limit", value, 1, 1u << 24, &n);
        r->unpack_limit = n << 20;
        break;
    }
    return code;
}

static int run_with_symbols(const struct cli_command *self, struct arguments *a,
                            const struct dump_files *files)
{
    struct dump_tables symbols = {0};
    struct prcb_error err = {0};
    struct work work = {.command = self, .request = &a->request, .files = files};
    int status;

    if (a->symbols && dump_symbols_load(a->symbols, a->request.unpack_limit, &symbols, &err)) {
        dump_symbols_free(&symbols);
        return cli_error(self, "%s", err.text);
    }
    a->request.command = self;
    a->request.symbols = a->symbols ? &symbols : NULL;
    status = run_files(&work, (unsigned int)a->jobs);
    dump_symbols_free(&symbols);
    return status;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv, .words = true};
    struct arguments a = {
        .request = {.options = {.size = sizeof(a.request.options)}, .unpack_limit = UNPACK_LIMIT},
        .jobs = 1};
    struct dump_files files = {0};
    struct prcb_error err = {0};
    int id, words = 0, status = CLI_OK;

    while ((id = cli_next(&parser)) > 0) {
        if (id == CLI_WORD)
            argv[words++] = (char *)parser.value; /* none comes after the place it was at */
        else if (take(self, id, parser.value, &a))
            return CLI_USAGE;
    }
    if (id < 0)
        return cli_parse_result(id);
    if (!words)
        return cli_usage_error(self, "which dump? see prcb dump --help");
    for (int i = 0; i < words; i++) {
        if (dump_files_add(&files, argv[i], &err))
            status = cli_error(self, "%s", err.text);
    }
    if (files.count && run_with_symbols(self, &a, &files))
        status = CLI_FAILED;
    dump_files_free(&files);
    return status;
}

const struct cli_command cmd_dump = {
    .name = "dump",
    .synopsis = "[options] FILE|DIRECTORY...",
    .summary = "read Windows crash dumps: what each processor was doing",
    .description =
        "Reads Windows kernel crash dumps and shows what each processor was doing: kernel, user,\n"
        "DPC and interrupt time, power state, current thread. Compressed dumps (.xz, .zst, .gz)\n"
        "are read as they are; of a directory, all *.dmp files below it.",
    .options = options,
    .examples = "  prcb dump MEMORY.DMP\n"
                "  prcb dump --cpu 2 --struct PROCESSOR_POWER_STATE 102622-12000-01.dmp\n"
                "  prcb dump --ndjson -J 4 fleet/minidumps > fleet.ndjson\n",
    .run = run,
};
