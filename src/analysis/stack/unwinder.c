/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwinder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <prcb/stack.h>

#include "debug_file.h"
#include "demangle.h"
#include "error.h"
#include "living.h"
#include "made_code.h"
#include "now.h"
#include "reach.h"
#include "sandbox.h"
#include "text.h"
#include "vdso.h"

/* The limit has room for a large program's symbols and call frame information, mapped and
 * sorted. */
#define MEMORY        (4ull << 30)
#define FILES         4096
#define ANSWER_MS     5000 /* for one answer; the first of a large program is the longest */
#define ANSWER_S      10   /* ... after which the child ends by itself */
#define BUILD_ID_MOST 64
#define FILE_NAME     64

enum what {
    ASK_IMAGE,   /* begin a new image */
    ASK_FILE,    /* with a descriptor */
    ASK_LIST,    /* with the descriptor of a compiler's list */
    ASK_READY,   /* answered */
    ASK_UNWIND,  /* answered; the stack and its frames are in shared memory */
    ASK_NAME,    /* answered */
    ASK_LINE,    /* answered */
    ASK_TASKS,   /* answered; the tasks are in shared memory */
    ASK_THREADS, /* answered; so are a runtime's threads */
};

struct ask {
    uint32_t what, image;
    int32_t tid;          /* UNWIND: whose interpreter is read; 0: none */
    uint32_t spans;       /* UNWIND: so is its span, */
    uint64_t robust;      /* by this */
    char name[FILE_NAME]; /* FILE: the end of its path */
    uint64_t address;     /* FILE: where it is mapped; NAME, LINE */
    struct frozen_registers at;
    uint64_t low, length;
    uint64_t began_ns;
    uint32_t node_count, whole; /* UNWIND: of its interpreter's frames, in shared memory */
    uint32_t ran;               /* UNWIND: these are known, too */
    uint64_t registers[FROZEN_REGISTERS];
};

/* What is to be sent before there is an answer. */
enum wants {
    WANTS_NOTHING,
    WANTS_DEBUG,  /* a file by its build id, or nothing */
    WANTS_MEMORY, /* the memory of the image's process, or nothing */
};

struct answer {
    int32_t result;
    uint32_t wants;                  /* enum wants */
    uint32_t has_runtime, has_spans; /* READY */
    uint32_t count, end;             /* UNWIND */
    uint32_t word_count, used_fp;    /* the same; above STACK_WORDS: the words are not known */
    uint32_t line;                   /* LINE; 0: not known */
    uint32_t id_length;
    unsigned char id[BUILD_ID_MOST];
    char name[UNWINDER_NAME];
};

/* Both see it: the parent copies stacks here, the child puts frames here. The parent believes
 * nothing in it. */
struct shared {
    uint64_t frames[UNWINDER_FRAMES];
    struct stack_word words[STACK_WORDS];
    struct runtime_answer runtime;
    struct runtime_node nodes[PRCB_CHAIN_NODES];
    struct span_answer span;
    struct tasks_answer tasks;
    struct runtime_threads threads;
    unsigned char bytes[UNWINDER_BYTES_MOST];
};

struct unwinder {
    struct sandbox child;
    struct shared *shared;
    struct frozen frozen;
    bool native, spans, fetched;
    bool known[UNWINDER_IMAGES], has_runtime[UNWINDER_IMAGES], has_spans[UNWINDER_IMAGES];
    struct runtime_answer runtime;
    struct span_answer span;
    size_t word_count; /* above STACK_WORDS: the words are not known */
    bool used_fp;
    struct stack_word words[STACK_WORDS];
    struct tasks_answer *tasks; /* NULL: nobody has asked yet */
    uint64_t cpu_ns;            /* of children that were replaced */
};

/* ---- the child ------------------------------------------------------------------------ */

struct child {
    int socket;
    struct shared *shared;
    struct image *images[UNWINDER_IMAGES];
    struct made_code made[UNWINDER_IMAGES];
};

/* Separate debug information has the names of functions that a library does not export. The child
 * opens no file: it says which. */
static int ask_for_debug(void *ctx, const unsigned char *id, size_t length)
{
    struct child *child = ctx;
    struct answer want = {.wants = WANTS_DEBUG, .id_length = (uint32_t)length};
    size_t count = 0;
    uint32_t got;
    int fd = -1;

    if (length > BUILD_ID_MOST)
        return -1;
    memcpy(want.id, id, length);
    if (sandbox_send(child->socket, &want, sizeof(want), NULL, 0) ||
        sandbox_receive(child->socket, &got, sizeof(got), &fd, 1, &count, -1) != sizeof(got))
        return -1;
    return count ? fd : -1;
}

static void begin_image(struct child *child, unsigned image)
{
    const struct image_debug debug = {ask_for_debug, child};

    image_close(child->images[image]);
    child->images[image] = NULL;
    made_code_free(&child->made[image]);
    image_open(&debug, &child->images[image]);
}

/* Asks for the memory of the process that is being looked at, in which an interpreter's frames and
 * tasks are read. False: it is not to be had. */
static bool ask_for_memory(struct child *child, int fds[2])
{
    struct answer want = {.wants = WANTS_MEMORY};
    size_t count = 0;
    uint32_t got;

    if (sandbox_send(child->socket, &want, sizeof(want), NULL, 0) ||
        sandbox_receive(child->socket, &got, sizeof(got), fds, 2, &count, -1) != sizeof(got))
        return false;
    if (count == 1)
        close(fds[0]);
    return count == 2;
}

static int ready_image(struct child *child, struct image *image, struct answer *answer)
{
    int fds[2], result = image ? image_ready(image) : -ENOMEM;

    if (result || !image_runtimes(image))
        return result;
    answer->has_runtime = runtimes_any(image_runtimes(image));
    answer->has_spans = image_spans(image)->count != 0;
    if ((answer->has_runtime || answer->has_spans) && ask_for_memory(child, fds))
        runtimes_set_memory(image_runtimes(image), fds[0], fds[1]);
    return result;
}

static void answer_span(struct child *child, const struct ask *ask, struct image *image)
{
    const struct span_thread thread = {ask->robust, ask->at.sp, ask->tid};
    struct memory *memory = runtimes_memory(image_runtimes(image));

    memory_begin(memory);
    spans_read(image_spans(image), memory, &thread, &child->shared->span);
}

static void name_frame(void *ctx, uint64_t address, char *ret, size_t size)
{
    image_name(ctx, address, ret, size);
}

static void put_words(struct child *child, const struct image *image, struct answer *answer)
{
    size_t count;
    bool used_fp;
    const struct stack_word *words = image_words(image, &count, &used_fp);

    answer->word_count = (uint32_t)count;
    answer->used_fp = used_fp;
    if (words)
        memcpy(child->shared->words, words, count * sizeof(*words));
}

static void answer_unwind(struct child *child, const struct ask *ask, struct answer *answer)
{
    struct frozen frozen = {.at = ask->at,
                            .registers = ask->ran ? ask->registers : NULL,
                            .low = ask->low,
                            .bytes = child->shared->bytes};
    struct image *image = child->images[ask->image];
    struct runtimes *runtimes = ask->tid ? image_runtimes(image) : NULL;
    struct runtime_answer *runtime = &child->shared->runtime;
    const struct runtime_thread thread = {ask->tid,        ask->at.sp,      child->shared->nodes,
                                          ask->node_count, ask->whole != 0, ask->began_ns};
    enum stack_end end;

    runtime->count = 0;
    runtime->lock_at = runtime->chain.head = 0;
    frozen.length = frozen.room = ask->length;
    if (runtimes && ask->spans)
        answer_span(child, ask, image);
    if (runtimes)
        runtimes_read(runtimes, &thread, runtime);
    answer->count =
        (uint32_t)image_unwind(image, &frozen, child->shared->frames, UNWINDER_FRAMES, &end);
    answer->end = end;
    put_words(child, image, answer);
    if (runtimes)
        runtimes_place(runtimes, child->shared->frames, answer->count, name_frame, image, runtime);
}

static int answer_tasks(struct child *child, struct image *image)
{
    struct tasks *tasks = image ? image_tasks(image) : NULL;
    struct memory *memory = tasks ? tasks_memory(tasks) : NULL;
    int fds[2];

    if (!tasks)
        return image && runtimes_tasks(image_runtimes(image), &child->shared->tasks) ? 0 : -ENOENT;
    if (memory->mem < 0 && ask_for_memory(child, fds)) {
        memory->mem = fds[0];
        memory->pagemap = fds[1];
    }
    tasks_read(tasks, &child->shared->tasks);
    return 0;
}

static void answer_name(const struct child *child, const struct ask *ask, char ret[UNWINDER_NAME])
{
    const char *made = made_code_find(&child->made[ask->image], ask->address);
    char symbol[UNWINDER_NAME], plain[DEMANGLED_MAX];

    image_name(child->images[ask->image], ask->address, symbol, sizeof(symbol));
    if (!*symbol && made) {
        snprintf(ret, UNWINDER_NAME, "%s", made);
        return;
    }
    symbol[strcspn(symbol, "@")] = '\0'; /* a version: "@@GLIBC_2.34" */
    snprintf(ret, UNWINDER_NAME, "%s", demangle(symbol, plain));
}

/* False: it takes no answer. */
static bool answer_ask(struct child *child, const struct ask *ask, int fd, struct answer *answer)
{
    struct image *image = child->images[ask->image];

    switch (ask->what) {
    case ASK_IMAGE:
        begin_image(child, ask->image);
        return false;
    case ASK_FILE:
        if (image && fd >= 0)
            image_add(image, &(struct image_file){ask->address, fd, ask->name});
        else if (fd >= 0)
            close(fd);
        return false;
    case ASK_LIST:
        if (fd >= 0) {
            made_code_free(&child->made[ask->image]);
            made_code_read(fd, &child->made[ask->image]);
        }
        return false;
    case ASK_READY:
        answer->result = ready_image(child, image, answer);
        return true;
    case ASK_UNWIND:
        answer->result = image ? 0 : -ENOENT;
        if (image)
            answer_unwind(child, ask, answer);
        return true;
    case ASK_NAME:
        answer->result = image ? 0 : -ENOENT;
        if (image)
            answer_name(child, ask, answer->name);
        return true;
    case ASK_LINE:
        answer->result = image ? 0 : -ENOENT;
        if (image)
            answer->line = image_line(image, ask->address, answer->name, sizeof(answer->name));
        return true;
    case ASK_TASKS:
        answer->result = answer_tasks(child, image);
        return true;
    case ASK_THREADS:
        answer->result = image ? 0 : -ENOENT;
        if (image)
            runtimes_list(image_runtimes(image), &child->shared->threads);
        return true;
    default:
        return false;
    }
}

static int serve(int socket, void *ctx)
{
    struct child child = {.socket = socket, .shared = ctx};
    struct ask ask;
    size_t count;
    int fd;

    for (;;) {
        struct answer answer = {0};

        sandbox_alarm(0);
        fd = -1;
        if (sandbox_receive(socket, &ask, sizeof(ask), &fd, 1, &count, -1) != sizeof(ask))
            return 0;
        sandbox_alarm(ANSWER_S);
        if (answer_ask(&child, &ask, count ? fd : -1, &answer) &&
            sandbox_send(socket, &answer, sizeof(answer), NULL, 0))
            return 0;
    }
}

/* ---- the parent ----------------------------------------------------------------------- */

static int start(struct unwinder *u, struct prcb_error *err)
{
    const struct sandbox_limits limits = {.memory = MEMORY, .files = FILES};

    return sandbox_start(&limits, serve, u->shared, &u->child, err);
}

int unwinder_open(uint32_t flags, struct unwinder **ret, struct prcb_error *err)
{
    struct unwinder *u = calloc(1, sizeof(*u));
    int result;

    if (!u)
        return prcb_fail(err, -ENOMEM, "out of memory");
    u->native = flags & PRCB_STACKS_NATIVE;
    u->spans = flags & PRCB_STACKS_SPANS;
    u->fetched = flags & PRCB_STACKS_FETCHED;
    u->shared =
        mmap(NULL, sizeof(*u->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (u->shared == MAP_FAILED) {
        free(u);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    u->frozen = (struct frozen){.bytes = u->shared->bytes, .room = sizeof(u->shared->bytes)};
    result = start(u, err);
    if (result)
        unwinder_close(u);
    else
        *ret = u;
    return result;
}

void unwinder_close(struct unwinder *u)
{
    if (!u)
        return;
    sandbox_stop(&u->child);
    munmap(u->shared, sizeof(*u->shared));
    free(u->tasks);
    free(u);
}

/* The child did not do as it should: it is replaced. Always returns -EIO. */
static int replace(struct unwinder *u)
{
    u->cpu_ns += sandbox_cpu_ns(&u->child);
    sandbox_stop(&u->child);
    memset(u->known, 0, sizeof(u->known));
    start(u, NULL);
    return -EIO;
}

/* -1: there is none. */
static int open_debug(const struct unwinder *u, const struct answer *want)
{
    char id[2 * BUILD_ID_MOST + 1];

    if (want->id_length > BUILD_ID_MOST)
        return -1;
    return debug_file_open(text_hex(want->id, want->id_length, id), u->fetched);
}

static int hand_debug(struct unwinder *u, const struct answer *want)
{
    int fd = open_debug(u, want), result;
    uint32_t here = fd >= 0;

    result = here ? reach_hand(0, fd, u->child.socket, &here, sizeof(here)) : -ENOENT;
    if (result) {
        here = 0;
        result = sandbox_send(u->child.socket, &here, sizeof(here), NULL, 0);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

static int send_ask(struct unwinder *u, const struct ask *ask)
{
    return u->child.pid ? sandbox_send(u->child.socket, ask, sizeof(*ask), NULL, 0) : -EIO;
}

/* A file that cannot be opened, or whose file system does not answer in time, is left out:
 * -errno then, and the child never learns of it. -EIO: the child does not take it. */
static int send_file(struct unwinder *u, pid_t pid, const struct ask *ask, int place)
{
    int result = u->child.pid ? reach_hand(pid, place, u->child.socket, ask, sizeof(*ask)) : -EIO;

    return result == -EPIPE || result == -ECONNRESET ? -EIO : result;
}

/* The same for the code that no file holds. */
static int send_vdso(struct unwinder *u, const struct ask *ask)
{
    int fd = vdso_open(), result;

    if (fd < 0)
        return 0;
    result = u->child.pid ? sandbox_send(u->child.socket, ask, sizeof(*ask), &fd, 1) : -EIO;
    close(fd);
    return result ? -EIO : 0;
}

static int hand_memory(struct unwinder *u, pid_t pid)
{
    uint32_t here = 1;
    int result = u->native && !u->spans
                     ? -ENOENT
                     : reach_hand_memory(living_thread(pid), u->child.socket, &here, sizeof(here));

    here = 0;
    return result ? sandbox_send(u->child.socket, &here, sizeof(here), NULL, 0) : 0;
}

/* Waits for the answer. Sends the child the files that it wants on the way, at most one for each
 * file of its own, while there is time. pid: whose memory it may want; 0: none's. */
static int await_answer(struct unwinder *u, pid_t pid, struct answer *ret)
{
    uint64_t deadline = now_ms() + ANSWER_MS;

    for (unsigned i = 0; i < PROCESS_FILES; i++) {
        uint64_t now = now_ms();

        if (now >= deadline || sandbox_receive(u->child.socket, ret, sizeof(*ret), NULL, 0, NULL,
                                               (int)(deadline - now)) != sizeof(*ret))
            return -EIO;
        if (ret->wants == WANTS_NOTHING)
            return 0;
        if (ret->wants == WANTS_MEMORY && pid ? hand_memory(u, pid) : hand_debug(u, ret))
            return -EIO;
    }
    return -EIO;
}

static int ask_child(struct unwinder *u, pid_t pid, const struct ask *ask, struct answer *ret)
{
    if (ask->image >= UNWINDER_IMAGES || !u->known[ask->image])
        return -ESTALE;
    if (send_ask(u, ask) || await_answer(u, pid, ret))
        return replace(u);
    return ret->result;
}

/* Writes the end of a path, which may tell a runtime's version. */
static void name_file(const char *path, char ret[FILE_NAME])
{
    const char *slash = strrchr(path, '/');

    memset(ret, 0, FILE_NAME);
    snprintf(ret, FILE_NAME, "%s", slash ? slash + 1 : path);
}

int unwinder_image(struct unwinder *u, unsigned image, pid_t pid, const struct process_files *files)
{
    struct ask ask = {.what = ASK_IMAGE, .image = image};
    struct answer answer;
    int result;

    if (image >= UNWINDER_IMAGES)
        return -EINVAL;
    if (!u->child.pid)
        start(u, NULL);
    if (send_ask(u, &ask))
        return replace(u);
    ask.what = ASK_FILE;
    for (size_t i = 0; i < files->count; i++) {
        const struct process_file *file = &files->rows[i];

        bool vdso = !strcmp(file->path, "[vdso]");

        /* A file has one row for each part of it that has code. */
        if ((file->fd < 0 && !vdso) || (i && files->rows[i - 1].base == file->base))
            continue;
        ask.address = file->base;
        name_file(file->path, ask.name);
        if ((vdso ? send_vdso(u, &ask) : send_file(u, pid, &ask, file->fd)) == -EIO)
            return replace(u);
    }
    ask.what = ASK_LIST;
    if (files->list >= 0 && send_file(u, pid, &ask, files->list) == -EIO)
        return replace(u);
    ask.what = ASK_READY;
    u->known[image] = true;
    result = ask_child(u, pid, &ask, &answer);
    u->has_runtime[image] = !result && answer.has_runtime && !u->native;
    u->has_spans[image] = !result && answer.has_spans;
    return result;
}

struct frozen *unwinder_frozen(struct unwinder *u)
{
    return &u->frozen;
}

/* Takes what the child says of an interpreter, as far as it holds together. */
static void take_runtime(struct unwinder *u, size_t frames)
{
    const struct runtime_answer *said = &u->shared->runtime;
    struct runtime_answer *own = &u->runtime;
    uint32_t at = 0;

    own->count = said->count <= RUNTIME_FRAMES ? said->count : 0;
    own->text_used = said->text_used <= RUNTIME_TEXT ? said->text_used : 0;
    own->lock_at = said->lock_at;
    own->state = said->state <= RUNTIME_PARTLY ? said->state : RUNTIME_NONE;
    own->lock_number = said->lock_number;
    own->chain = said->chain;
    memcpy(own->unread, said->unread, sizeof(own->unread));
    memcpy(own->frames, said->frames, own->count * sizeof(*own->frames));
    memcpy(own->text, said->text, own->text_used);
    own->unread[sizeof(own->unread) - 1] = '\0';
    if (own->text_used)
        own->text[own->text_used - 1] = '\0';
    for (uint32_t i = 0; i < own->count; i++) {
        const struct runtime_frame *frame = &own->frames[i];

        if (frame->function >= own->text_used || frame->file >= own->text_used ||
            frame->at > frames || frame->at < at)
            own->count = 0;
        at = frame->at;
    }
}

int unwinder_unwind(struct unwinder *u, unsigned image, pid_t tid, const uint64_t *robust,
                    uint64_t *ret, size_t *ret_count, enum stack_end *ret_end)
{
    struct ask ask = {.what = ASK_UNWIND,
                      .image = image,
                      .tid = tid,
                      .spans = robust && tid,
                      .robust = robust ? *robust : 0,
                      .at = u->frozen.at,
                      .low = u->frozen.low,
                      .length = u->frozen.length};
    struct answer answer;
    int result;

    if (u->frozen.node_count && u->frozen.node_count <= PRCB_CHAIN_NODES) {
        ask.node_count = u->frozen.node_count;
        ask.whole = u->frozen.whole;
        ask.began_ns = u->frozen.began_ns;
        memcpy(u->shared->nodes, u->frozen.nodes, ask.node_count * sizeof(*u->frozen.nodes));
    }
    if (u->frozen.registers) {
        ask.ran = 1;
        memcpy(ask.registers, u->frozen.registers, sizeof(ask.registers));
    }
    u->word_count = STACK_WORDS + 1;
    u->runtime.count = 0;
    u->runtime.lock_at = u->runtime.chain.head = 0;
    u->runtime.state = RUNTIME_NONE;
    u->runtime.unread[0] = '\0';
    u->span = (struct span_answer){.state = SPAN_UNPUBLISHED};
    result = ask_child(u, 0, &ask, &answer);
    if (result)
        return result;
    if (!answer.count || answer.count > UNWINDER_FRAMES || answer.end > STACK_DEEP)
        return replace(u);
    memcpy(ret, u->shared->frames, answer.count * sizeof(*ret));
    *ret_count = answer.count;
    *ret_end = (enum stack_end)answer.end;
    u->word_count = answer.word_count;
    u->used_fp = answer.used_fp != 0;
    if (u->word_count <= STACK_WORDS)
        memcpy(u->words, u->shared->words, u->word_count * sizeof(*u->words));
    if (tid && u->has_runtime[image])
        take_runtime(u, answer.count);
    if (ask.spans && u->shared->span.state <= SPAN_THERE)
        u->span = u->shared->span;
    return 0;
}

const struct stack_word *unwinder_words(const struct unwinder *u, size_t *ret_count,
                                        bool *ret_used_fp)
{
    *ret_count = u->word_count;
    *ret_used_fp = u->used_fp;
    return u->word_count <= STACK_WORDS ? u->words : NULL;
}

const struct runtime_answer *unwinder_runtime(const struct unwinder *u)
{
    return &u->runtime;
}

const struct span_answer *unwinder_span(const struct unwinder *u)
{
    return &u->span;
}

bool unwinder_has_spans(const struct unwinder *u, unsigned image)
{
    return image < UNWINDER_IMAGES && u->spans && u->has_spans[image];
}

bool unwinder_has_runtime(const struct unwinder *u, unsigned image)
{
    return image < UNWINDER_IMAGES && u->has_runtime[image];
}

int unwinder_threads(struct unwinder *u, unsigned image, struct runtime_threads *ret)
{
    struct ask ask = {.what = ASK_THREADS, .image = image};
    struct answer answer;
    int result = unwinder_has_runtime(u, image) ? ask_child(u, 0, &ask, &answer) : -ENOENT;

    if (result)
        return result;
    memcpy(ret, &u->shared->threads, sizeof(*ret));
    return ret->count <= RUNTIME_THREADS ? 0 : replace(u);
}

/* Whether what the child says of tasks holds together. */
static bool is_whole(struct tasks_answer *a)
{
    a->kind[sizeof(a->kind) - 1] = a->runtime[sizeof(a->runtime) - 1] =
        a->unread[sizeof(a->unread) - 1] = '\0';
    if (!a->text_used || a->text_used > TASKS_TEXT || a->frame_count > TASKS_FRAMES ||
        a->group_count > TASKS_GROUPS || a->own > a->total)
        return false;
    a->text[a->text_used - 1] = '\0';
    for (uint32_t i = 0; i < a->frame_count; i++) {
        if (a->frames[i].function >= a->text_used || a->frames[i].file >= a->text_used)
            return false;
    }
    for (uint32_t i = 0; i < a->group_count; i++) {
        const struct tasks_group *group = &a->groups[i];

        if (group->state >= a->text_used || group->first > a->frame_count ||
            group->frames > a->frame_count - group->first)
            return false;
    }
    return true;
}

int unwinder_tasks(struct unwinder *u, unsigned image, pid_t pid, const struct tasks_answer **ret)
{
    struct ask ask = {.what = ASK_TASKS, .image = image};
    struct answer answer;
    int result = ask_child(u, pid, &ask, &answer);

    if (result)
        return result;
    if (!u->tasks)
        u->tasks = malloc(sizeof(*u->tasks));
    if (!u->tasks)
        return -ENOMEM;
    memcpy(u->tasks, &u->shared->tasks, sizeof(*u->tasks));
    if (!is_whole(u->tasks))
        return replace(u);
    *ret = u->tasks;
    return 0;
}

/* Asks for a text about an address. *ret_line: its line. */
static int ask_about(struct unwinder *u, enum what what, unsigned image, uint64_t address,
                     char ret[UNWINDER_NAME], uint32_t *ret_line)
{
    struct ask ask = {.what = what, .image = image, .address = address};
    struct answer answer;
    int result = ask_child(u, 0, &ask, &answer);

    if (result)
        return result;
    memcpy(ret, answer.name, UNWINDER_NAME);
    ret[UNWINDER_NAME - 1] = '\0';
    *ret_line = answer.line;
    return 0;
}

int unwinder_name(struct unwinder *u, unsigned image, uint64_t address, char ret[UNWINDER_NAME])
{
    uint32_t line;

    return ask_about(u, ASK_NAME, image, address, ret, &line);
}

int unwinder_line(struct unwinder *u, unsigned image, uint64_t address, char ret[UNWINDER_NAME],
                  uint32_t *ret_line)
{
    return ask_about(u, ASK_LINE, image, address, ret, ret_line);
}

uint64_t unwinder_cpu_ns(const struct unwinder *u)
{
    return u->cpu_ns + sandbox_cpu_ns(&u->child);
}
