/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb dump` reads Windows crash dumps. This file has its options, and the work over several
 * files: workers read files and write each answer to memory, the first thread prints the answers
 * in order.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dump_files.h"
#include "dump_show.h"
#include "now.h"

#define UNPACK_LIMIT 8192 /* MiB */
#define WORKERS_MOST 256
#define AHEAD_MOST   64 /* answers that wait to be printed */
#define MINUTE_TICK  10000000u

/* ---- options ---- */

struct arguments {
    struct dump_source source;
    struct dump_show show;
    bool json, ndjson;
    const char *symbols;
    uint64_t jobs, limit_mib, time_increment;
    int words; /* dumps and directories: the first of argv */
};

static int take_cpu(struct cli_parser *parser, void *target)
{
    struct arguments *a = target;
    uint64_t n = 0;
    int status = cli_parse_number(parser, &n);

    a->show.has_cpu = true;
    a->show.cpu = (uint32_t)n;
    return status;
}

#define AT(member) .at = offsetof(struct arguments, member)
#define NUMBER(least, most, member)                                                                \
    .kind = CLI_NUMBER, .min = least, .max = most, .at = offsetof(struct arguments, member)
/* clang-format off */
static const struct cli_option options[] = {
    {0, "cpu", "N", "everything of processor N",
     .take = take_cpu, .max = UINT32_MAX},
    {0, "struct", "NAME",
     "all members of a structure of one processor (--cpu, or the one that\n"
     "crashed): KPRCB, PROCESSOR_POWER_STATE, KTHREAD, ...", .kind = CLI_TEXT, AT(show.structure)},
    {0, "thread", NULL, "the crashing thread: switches, cycles, wait reason", AT(show.thread)},
    {0, "modules", NULL, "the kernel's modules, loaded and unloaded", AT(show.modules)},
    {0, "stack", NULL, "addresses inside modules on the crashing thread's stack (a scan)", AT(show.stack)},
    {0, "brief", NULL, "the machine and the cause, no processors", AT(show.brief)},
    {0, "raw", NULL, "numbers as stored (ticks, not seconds); with --struct its bytes", AT(show.raw)},
    {'j', "json", NULL, "as JSON", AT(json)},
    {0, "ndjson", NULL, "one line of JSON a file, also for files that cannot be read", AT(ndjson)},
    {'J', "jobs", "N", "read N files at a time (default: 1)", NUMBER(1, WORKERS_MOST, jobs)},
    {0, "time-increment", "N", "length of a clock tick in 100 ns (default: the dump's, or 156250)",
     NUMBER(1, MINUTE_TICK, time_increment)},
    {0, "qpc-frequency", "HZ",
     "of the performance counter, IdleTimeTotal's unit (default: the usual\n"
     "one where there is one)", NUMBER(1, UINT64_MAX, source.options.qpc_frequency)},
    {0, "symbols", "PATH",
     "the kernel's symbols: a PDB or volatility3 JSON, also compressed, or a\n"
     "directory of PDBs, of which each dump takes the one that fits", .kind = CLI_TEXT, AT(symbols)},
    {0, "unpack-limit", "MIB", "most that a compressed file may unpack to (default: 8192)",
     NUMBER(1, 1u << 24, limit_mib)},
    {0},
};
/* clang-format on */

/* ---- the files ---- */

/* Shows "prcb dump: 12 of 200 files" on a terminal, rewritten twice a second, and leaves nothing
 * behind. Only the thread that prints calls it. */
#define PROGRESS_NS 500000000ull

struct progress {
    bool is_on;
    uint64_t next; /* when to write again, CLOCK_MONOTONIC in ns */
    int width;     /* of what stands there */
};

static void progress_show(struct progress *p, size_t done, size_t count)
{
    uint64_t ns = now_ns(), unpacked = dump_unpacked();

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
    const struct arguments *arguments;
    const struct dump_files *files;
    struct output output;
    struct answer *answers;
    size_t next, printed; /* files taken, answers printed */
    bool is_stopped;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static bool is_array(const struct work *w)
{
    return w->arguments->json && !w->arguments->ndjson && w->files->count > 1;
}

/* In lines and arrays, a file that cannot be read has an entry with its name and error. */
static bool writes_errors(const struct work *w)
{
    return w->arguments->ndjson || is_array(w);
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
    ret->code = dump_open(path, &w->arguments->source, &d, &ret->error);
    if (!ret->code) {
        ret->code = (w->arguments->json ? dump_json : dump_text)(d, path, &w->arguments->show, out,
                                                                 &ret->error);
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
static int print_answer(struct work *w, size_t index)
{
    struct answer *a = &w->answers[index];
    bool has_text = a->length && (!a->code || writes_errors(w));
    FILE *out = w->output.stream;

    if (a->code && !w->arguments->ndjson)
        cli_error(w->command, "%s", a->error.text);
    if (is_array(w) && !index)
        fputc('[', out);
    if (has_text) {
        if (is_array(w) && index)
            fputs(", ", out);
        else if (!w->arguments->json && index)
            fputc('\n', out);
        fwrite(a->text, 1, a->length, out);
    }
    if (is_array(w) && index + 1 == w->files->count)
        fputs("]\n", out);
    if (w->arguments->ndjson)
        output_flush(&w->output);
    return a->code;
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

/* Even without -J there is one worker, so there is one path to test. */
static int run_files(struct work *w)
{
    pthread_t threads[WORKERS_MOST];
    unsigned int started = 0;
    int status;

    w->answers = calloc(w->files->count, sizeof(*w->answers));
    if (!w->answers)
        return cli_error(w->command, "out of memory");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    while (started < w->arguments->jobs && !pthread_create(&threads[started], NULL, worker, w))
        started++;
    status = started ? print_all(w) : cli_error(w->command, "cannot start a thread");
    for (unsigned int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->answers);
    return status;
}

/* ---- the command ---- */

/* Files are read by several threads. */
static void warn(void *ctx, const char *text)
{
    cli_warn(ctx, "%s", text);
}

static int run_with_symbols(const struct cli_command *self, struct arguments *a,
                            const struct dump_files *files)
{
    struct dump_tables symbols = {0};
    struct prcb_error err = {0};
    struct work work = {.command = self, .arguments = a, .files = files};
    int status;

    if (a->symbols && dump_symbols_load(a->symbols, a->source.unpack_limit, &symbols, &err)) {
        dump_symbols_free(&symbols);
        return cli_error(self, "%s", err.text);
    }
    a->source.symbols = a->symbols ? &symbols : NULL;
    a->source.saved = a->symbols ? NULL : dump_saved_start();
    status = cli_open_output(self, NULL, &work.output);
    if (status == CLI_OK)
        status = cli_close_output(self, &work.output, run_files(&work));
    dump_saved_end(a->source.saved);
    dump_symbols_free(&symbols);
    return status;
}

static int take_word(struct cli_parser *parser, void *target)
{
    struct arguments *a = target;

    parser->argv[a->words++] = (char *)parser->value; /* no word moves behind its old place */
    return CLI_OK;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {
        .command = self, .argc = argc, .argv = argv, .take_word = take_word};
    struct arguments a = {.source = {.options = {.size = sizeof(a.source.options)},
                                     .warn = warn,
                                     .ctx = (void *)self},
                          .limit_mib = UNPACK_LIMIT,
                          .jobs = 1};
    struct dump_files files = {0};
    struct prcb_error err = {0};
    int status;

    if (cli_take_all(&parser, &a, &status))
        return status;
    if (!a.words)
        return cli_usage_error(self, "which dump? see prcb dump --help");
    a.json |= a.ndjson;
    a.source.unpack_limit = a.limit_mib << 20;
    a.source.options.time_increment = (uint32_t)a.time_increment;
    for (int i = 0; i < a.words; i++) {
        if (dump_files_add(&files, argv[i], &err))
            status = cli_error(self, "%s", err.text);
    }
    if (files.count) {
        int result = run_with_symbols(self, &a, &files);

        status = result ? result : status;
    }
    dump_files_free(&files);
    return status;
}

const struct cli_command cmd_dump = {
    .name = "dump",
    .synopsis = "[options] FILE|DIRECTORY...",
    .summary = "read Windows crash dumps: what each processor was doing",
    .description =
        "Reads Windows kernel crash dumps and shows what each processor was doing: kernel, user,\n"
        "DPC and interrupt time, power state, current thread. Compressed dumps (.xz, .zst, .gz, "
        ".bz2, .zip)\n"
        "are read as they are; of a directory, all *.dmp files below it.",
    .options = options,
    .examples = "  prcb dump MEMORY.DMP\n"
                "  prcb dump --cpu 2 --struct PROCESSOR_POWER_STATE 102622-12000-01.dmp\n"
                "  prcb dump --ndjson -J 4 fleet/minidumps > fleet.ndjson\n",
    .run = run,
};
