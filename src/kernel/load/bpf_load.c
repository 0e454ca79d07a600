/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_load.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "error.h"
#include "plain.h"

/* ---- what libbpf says of a load ---- */

#define LAST_LINES 16

struct words {
    char program[64], map[64]; /* the one that was refused; "": none */
    char reason[200];
    bool has_log;
    const struct kernel_types *types; /* by which programs are loaded; NULL: none are */
    char log[4096]; /* the verifier's last lines: of the first refusal since bpf_forget_log */
};

/* These words belong to the calling thread. They are not _Thread_local: such variables of the
 * library have to fit into the few hundred bytes that are left where it is loaded while a
 * program runs. */
static pthread_key_t words_key;
static pthread_once_t words_once = PTHREAD_ONCE_INIT;

static void make_words_key(void)
{
    pthread_key_create(&words_key, free);
}

/* Threads for which there is no memory share this one: the types are never theirs. */
static struct words nobody;

static struct words *words(void)
{
    struct words *ret;

    pthread_once(&words_once, make_words_key);
    ret = pthread_getspecific(words_key);
    if (!ret) {
        ret = calloc(1, sizeof(*ret));
        pthread_setspecific(words_key, ret);
    }
    return ret ? ret : &nobody;
}

void bpf_forget_log(void)
{
    words()->log[0] = '\0';
}

const char *bpf_last_log(void)
{
    return words()->log[0] ? words()->log : NULL;
}

/* Takes the name in quotes after a word: "prog 'NAME': ..." */
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

/* Lines of the verifier's figures give no reason. */
static bool is_figure(const char *line)
{
    return !*line || *line == '\n' || !strncmp(line, "processed ", 10) ||
           !strncmp(line, "verification time", 17) || !strncmp(line, "stack depth", 11);
}

static void take_line_as_reason(const char *line)
{
    snprintf(words()->reason, sizeof(words()->reason), "%.*s", (int)strcspn(line, "\n"), line);
}

/* Takes the name of a member that the kernel does not have, or has in a form that cannot be
 * read: libbpf puts the name of what it looked for into the log. */
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
    words()->has_log = true;
    if (!words()->log[0])
        snprintf(words()->log, sizeof(words()->log), "%.*s", (int)(end - first), first);
    if (reason && !take_member(first))
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
    memset(words(), 0, offsetof(struct words, log));
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

    if (code == -EPERM && !words()->has_log)
        return prcb_fail(err, -EPERM,
                         "eBPF programs may not be loaded: run as root, or with CAP_BPF and "
                         "CAP_PERFMON (prcb doctor tells more)");
    return prcb_fail(err, code == -EINVAL || code == -EACCES || code == -EPERM ? -EOPNOTSUPP : code,
                     "the kernel refused the eBPF %s%s: %s", kind, what,
                     words()->reason[0] ? words()->reason : strerror(-code));
}

/* ---- programs by the kernel's types ---- */

/* Replaces the calls of plain.h. One is what a program calls for a task that it reads pointers
 * from (kernel.bpf.h): bpf_rdonly_cast where the kernel has that, else nothing; the instruction
 * before sets its second argument. The other tells whether the kernel has it. */
static int replace_casts(struct bpf_program *program, const struct kernel_types *types)
{
    size_t count = bpf_program__insn_cnt(program);
    struct bpf_insn *all = malloc(count * sizeof(*all));
    bool casts = types && types->cast && types->task, found = false;
    int result = 0;

    if (!all)
        return -ENOMEM;
    memcpy(all, bpf_program__insns(program), count * sizeof(*all));
    for (size_t i = 1; i < count; i++) {
        struct bpf_insn *call = &all[i];

        if (call->code != (BPF_JMP | BPF_CALL) || call->src_reg ||
            (call->imm != PRCB_PLAIN_CALL && call->imm != PRCB_CASTS_CALL))
            continue;
        found = true;
        if (call->imm == PRCB_CASTS_CALL) {
            *call = (struct bpf_insn){
                .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = casts};
        } else if (casts) {
            call[-1].imm = (int)types->task;
            call->src_reg = BPF_PSEUDO_KFUNC_CALL;
            call->imm = (int)types->cast;
        } else {
            *call = (struct bpf_insn){
                .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1};
        }
    }
    if (found)
        result = bpf_program__set_insns(program, all, count);
    free(all);
    return result;
}

/* Sets what a program of one of our sections is attached to: the kernel's number of its type. */
static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *options, long kind)
{
    const char *name = strchr(bpf_program__section_name(program), '/');
    bool iterator = kind == BPF_TRACE_ITER;
    uint32_t id;
    int result;

    if (!name++)
        return -EINVAL;
    id = words()->types ? kernel_types_target(words()->types, name, iterator)
                        : kernel_type_number(name, iterator);
    if (!id) {
        snprintf(words()->reason, sizeof(words()->reason), "this kernel has no %s %s",
                 iterator ? "iterator" : "tracepoint", name);
        return -ESRCH;
    }
    options->attach_btf_id = id;
    result = replace_casts(program, words()->types);
    return result ? result : bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
}

/* libbpf reads and goes through all of the kernel's types for each object that has a program of
 * type TRACING, a fifth of what a start costs. Ours have another type until they are loaded. The
 * handlers are the process's, and libbpf keeps them without a lock: so before main, under names
 * that nobody else has. Where the library is there twice, the first one's serve both, without the
 * types of the other. */
__attribute__((constructor)) static void register_handlers(void)
{
    LIBBPF_OPTS(libbpf_prog_handler_opts, tracepoint, .prog_prepare_load_fn = prepare,
                .cookie = BPF_TRACE_RAW_TP);
    LIBBPF_OPTS(libbpf_prog_handler_opts, iterator, .prog_prepare_load_fn = prepare,
                .cookie = BPF_TRACE_ITER);

    libbpf_register_prog_handler("prcb_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP,
                                 &tracepoint);
    libbpf_register_prog_handler("prcb_iter+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER,
                                 &iterator);
}

int bpf_load_begin(struct bpf_load *l, struct prcb_error *err)
{
    memset(l, 0, sizeof(*l)); /* padding too, which libbpf refuses to take unless it is zero */
    l->print = bpf_listen();
    l->options.sz = sizeof(l->options);
    l->options.btf_custom_path = l->types.path;
    return kernel_types_init(&l->types, err);
}

int bpf_load_find_types(struct bpf_load *l, const struct bpf_object *object,
                        const char *const *names, enum kernel_for programs, struct prcb_error *err)
{
    struct bpf_map *turns = bpf_object__find_map_by_name(object, "turns");
    int result = kernel_types_find(&l->types, object, names, err);

    if (!result)
        result = kernel_check(l->types.btf, programs, err);
    if (!result && turns)
        bpf_map__set_autocreate(turns, !kernel_has_loop(l->types.btf));
    if (!result && words() != &nobody)
        words()->types = &l->types;
    return result;
}

void bpf_load_end(struct bpf_load *l)
{
    words()->types = NULL;
    kernel_types_free(&l->types);
    libbpf_set_print(l->print);
}
