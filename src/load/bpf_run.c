/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_run.h"

#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "error.h"

/* ---- what libbpf says of a load ---- */

#define LAST_LINES 16

struct words {
    char program[64], map[64]; /* the one that was refused; "": none */
    char reason[200];
    char log[4096]; /* the verifier's last lines */
};

/* The calling thread's. Not _Thread_local: what the library has of that has to fit into the few
 * hundred bytes that are left where it is loaded while a program runs. */
static pthread_key_t words_key;
static pthread_once_t words_once = PTHREAD_ONCE_INIT;

static void make_words_key(void)
{
    pthread_key_create(&words_key, free);
}

static struct words *words(void)
{
    static struct words nobody; /* out of memory */
    struct words *ret;

    pthread_once(&words_once, make_words_key);
    ret = pthread_getspecific(words_key);
    if (!ret) {
        ret = calloc(1, sizeof(*ret));
        pthread_setspecific(words_key, ret);
    }
    return ret ? ret : &nobody;
}

const char *bpf_last_log(void)
{
    return words()->log[0] ? words()->log : NULL;
}

/* The name in quotes after a word: "prog 'NAME': ..." */
static void take_name(const char *text, const char *word, char *ret, size_t room)
{
    const char *at = strstr(text, word), *end;

    if (!at)
        return;
    at += strlen(word);
    end = strchr(at, '\'');
    if (end)
        snprintf(ret, room, "%.*s", (int)(end - at), at);
}

/* Lines that say nothing of a reason: the verifier's figures. */
static bool is_figure(const char *line)
{
    return !*line || *line == '\n' || !strncmp(line, "processed ", 10) ||
           !strncmp(line, "verification time", 17) || !strncmp(line, "stack depth", 11);
}

static void take_line_as_reason(const char *line)
{
    snprintf(words()->reason, sizeof(words()->reason), "%.*s", (int)strcspn(line, "\n"), line);
}

/* A member that the kernel has not, or in a form that cannot be read: libbpf puts the name of what
 * it looked for into the log. */
static bool take_member(const char *log)
{
    const char *at = strstr(log, "CO-RE relocation"), *name = at ? strstr(at, "struct ") : NULL;

    if (!name)
        return false;
    snprintf(words()->reason, sizeof(words()->reason), "this kernel has no %.*s as it is read here",
             (int)(7 + strcspn(name + 7, " \n(")), name);
    return true;
}

static void take_log(const char *log, const char *end)
{
    const char *line = end, *reason = NULL, *first = end;
    unsigned lines = 0;

    while (line > log && lines < LAST_LINES) {
        const char *before = line - 1;

        while (before > log && before[-1] != '\n')
            before--;
        if ((size_t)(end - before) >= sizeof(words()->log))
            break;
        line = first = before;
        lines++;
        if (!reason && !is_figure(line))
            reason = line;
    }
    snprintf(words()->log, sizeof(words()->log), "%.*s", (int)(end - first), first);
    if (reason && !take_member(words()->log))
        take_line_as_reason(reason);
}

static int take_words(enum libbpf_print_level level, const char *format, va_list args)
{
    static const char begin[] = "-- BEGIN PROG LOAD LOG --\n";
    char *text = NULL, *log;
    int length;

    if (level != LIBBPF_WARN || (length = vasprintf(&text, format, args)) < 0)
        return 0;
    log = strstr(text, begin);
    if (!words()->program[0] && !words()->map[0]) {
        take_name(text, "prog '", words()->program, sizeof(words()->program));
        take_name(text, "map '", words()->map, sizeof(words()->map));
    }
    if (log) {
        const char *end = strstr(log, "-- END PROG LOAD LOG --");

        take_log(log + sizeof(begin) - 1, end ? end : text + length);
    }
    free(text);
    return 0;
}

libbpf_print_fn_t bpf_listen(void)
{
    memset(words(), 0, sizeof(struct words));
    return libbpf_set_print(take_words);
}

bool bpf_lacked_memory(int code)
{
    return code == -ENOMEM && !words()->program[0];
}

int bpf_explain_load(int code, struct prcb_error *err)
{
    const char *what = words()->program[0] ? words()->program : words()->map;
    const char *kind = words()->program[0] ? "program " : words()->map[0] ? "map " : "programs";

    if (code == -EPERM && !words()->log[0])
        return prcb_fail(err, -EPERM,
                         "eBPF programs may not be loaded: run as root, or with CAP_BPF and "
                         "CAP_PERFMON (prcb doctor tells more)");
    return prcb_fail(err, code == -EINVAL || code == -EACCES || code == -EPERM ? -EOPNOTSUPP : code,
                     "the kernel refused the eBPF %s%s: %s", kind, what,
                     words()->reason[0] ? words()->reason : strerror(-code));
}

uint64_t bpf_misses_of(int program)
{
    struct bpf_prog_info info = {0};
    __u32 size = sizeof(info);

    if (bpf_obj_get_info_by_fd(program, &info, &size) || info.type == BPF_PROG_TYPE_PERF_EVENT ||
        size < offsetof(struct bpf_prog_info, recursion_misses) + sizeof(info.recursion_misses))
        return UINT64_MAX;
    return info.recursion_misses;
}

static bool is_for_events(const struct bpf_program *program)
{
    switch (bpf_program__type(program)) {
    case BPF_PROG_TYPE_RAW_TRACEPOINT:
    case BPF_PROG_TYPE_PERF_EVENT:
        return true;
    case BPF_PROG_TYPE_TRACING:
        return bpf_program__expected_attach_type(program) == BPF_TRACE_RAW_TP;
    default:
        return false;
    }
}

int bpf_event_program(const struct bpf_object *object, uint32_t i, struct prcb_program *ret)
{
    struct bpf_program *program;

    bpf_object__for_each_program(program, object)
    {
        if (bpf_program__fd(program) < 0 || !is_for_events(program) || i--)
            continue;
        snprintf(ret->name, sizeof(ret->name), "%s", bpf_program__name(program));
        ret->recursion_misses = bpf_misses_of(bpf_program__fd(program));
        return 0;
    }
    return -ENOENT;
}

int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err)
{
    if (*link)
        return 0;
    *link = bpf_program__attach(program);
    if (!*link)
        return prcb_fail(err, -errno, "%s cannot be attached: %s", bpf_program__name(program),
                         strerror(errno));
    return 0;
}

int bpf_run_program(int program, void *context, unsigned bytes, int *ret)
{
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = bytes);
    int result = bpf_prog_test_run_opts(program, &options);

    if (result)
        return result;
    *ret = (int)options.retval;
    return 0;
}

static int make_link(int program, const union bpf_iter_link_info *info)
{
    struct bpf_link_create_opts options;

    /* Not LIBBPF_OPTS: that assigns a whole structure, whose padding at the end compilers
     * need not clear, and libbpf refuses what is not zero there. */
    memset(&options, 0, sizeof(options));
    options.sz = sizeof(options);
    if (info) {
        options.iter_info = (union bpf_iter_link_info *)info;
        options.iter_info_len = sizeof(*info);
    }
    return bpf_link_create(program, 0, BPF_TRACE_ITER, &options);
}

/* Reads until the iterator has gone over everything. */
static int run_through(int link)
{
    int fd = bpf_iter_create(link), result = 0;
    char nothing[64];
    ssize_t got;

    if (fd < 0)
        return fd;
    while ((got = read(fd, nothing, sizeof(nothing))) > 0 ||
           (got < 0 && (errno == EAGAIN || errno == EINTR)))
        ;
    if (got < 0)
        result = -errno;
    close(fd);
    return result;
}

int bpf_run_iterator(bool *narrow, int program, pid_t tid, pid_t pid)
{
    union bpf_iter_link_info info = {.task = {.tid = (__u32)tid, .pid = (__u32)pid}};
    bool one = *narrow && (tid || pid);
    int link = make_link(program, one ? &info : NULL), result;

    if (one && (link == -EINVAL || link == -E2BIG)) {
        *narrow = false;
        link = make_link(program, NULL);
    }
    if (link < 0)
        return link;
    result = run_through(link);
    close(link);
    return result;
}

ssize_t bpf_read_iterator(int program, void *buffer, size_t size)
{
    int link = make_link(program, NULL), fd = link < 0 ? link : bpf_iter_create(link);
    size_t have = 0;
    ssize_t got = 1;

    while (fd >= 0 && have < size && got) {
        got = read(fd, (char *)buffer + have, size - have);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    got = fd < 0 ? fd : got < 0 ? -errno : (ssize_t)have;
    if (fd >= 0)
        close(fd);
    if (link >= 0)
        close(link);
    return got;
}
