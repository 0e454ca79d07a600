/* SPDX-License-Identifier: BSD-2-Clause
 *
 * This does what prcb/stack.h promises, with the other files of this folder: a wait is looked up
 * by what names it, else its registers and stack are copied between two looks at its account,
 * unwound and named by the unwinder, and kept. Frames and stacks are kept once each; a table of
 * threads or processes is emptied when it is full, for all of it can be read again.
 */
#include <prcb/stack.h>

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alike.h"
#include "cause.h"
#include "error.h"
#include "frozen.h"
#include "held_up.h"
#include "idioms.h"
#include "living.h"
#include "now.h"
#include "pid_ns.h"
#include "process.h"
#include "reach.h"
#include "read_file.h"
#include "rules.h"
#include "sized.h"
#include "table.h"
#include "unwinder.h"

#define FRAMES_DEFAULT 256
#define BYTES_DEFAULT  (16u << 10)
#define BYTES_GROWTH   4
#define WAITS_MOST     65536         /* threads whose last wait is remembered */
#define NAMES_MOST     (1u << 20)    /* functions and files */
#define STACKS_MOST    (1u << 20)    /* kinds of stack */
#define KEPT_MOST      (256u << 20)  /* bytes of these, and of stacks */
#define RELOAD_NS      1000000000ull /* a process's mappings are read again no sooner than this; */
#define RELOAD_YOUNG   10000000ull   /* at first, while a program maps its libraries, than this, */
#define RELOAD_TIMES   10            /* nor than so many times what it took: others wait for that */
#define ASK_NS         5000000ull    /* a process that runs is asked again who it is */
#define SPANS_TIMES    10            /* so many pauses later, if nothing in it publishes spans */
#define CHAIN_ASK_NS   1000000000ull /* where a thread's frames are is asked again no sooner */
#define FOLLOW_NS      100000000ull  /* ... nor are all threads of a process listed, */
#define FOLLOW_YOUNG   10000000ull   /* or where it had none */
#define FROZEN_ASK_NS  100000000ull  /* between two questions whether a process is frozen */
#define STACK_NS       5000000000ull /* for naming one stack's functions */
#define LINES_NS       2000000000ull /* for all lines of source */
#define LONG_NS        1000000000ull /* of a wait as long as this the kernel's part tells, too */
#define KERNEL_TEXT    4096          /* names of the kernel's functions */

/* ---- tables of what is kept ------------------------------------------------------------- */

/* The item that fits; NULL: none. */
static void *find(const struct table *table, uint64_t hash,
                  bool (*fits)(const void *item, const void *wanted), const void *wanted)
{
    const struct table_slot *slot = NULL;

    while ((slot = table_next(table, hash, slot))) {
        if (fits(slot->item, wanted))
            return slot->item;
    }
    return NULL;
}

static void empty(struct table *table)
{
    for (size_t i = 0; i < table->room; i++)
        free(table->slots[i].item);
    table_free(table);
}

/* What is kept of an account, of so many bytes, all zero at first; NULL: no memory. */
static void *kept_of(struct table *table, uint64_t key, size_t size)
{
    void *item = table_find(table, key);

    if (item)
        return item;
    if (table->count >= WAITS_MOST)
        empty(table);
    item = calloc(1, size);
    if (item && table_put(table, key, item)) {
        free(item);
        item = NULL;
    }
    return item;
}

/* ---- what is kept ----------------------------------------------------------------------- */

struct known_stack {
    uint64_t hash;
    uint32_t id, flags, kind, frame_count;
    const char *word;
    struct prcb_frame frames[];
};

/* The last wait of a thread that was asked for. error: why there is no stack, 0: there is. */
struct known_wait {
    uint64_t switches;
    int error;
    bool is_long; /* as it was when it was looked at */
    const struct known_stack *stack;
    uint64_t lock_at; /* as of prcb_stack */
    uint32_t lock_number;
    struct span_answer span;
};

/* Whether a thread's frames in an interpreter, and its span, are copied as its waits begin. */
struct known_chain {
    bool there;        /* frames are, */
    bool none;         /* or the thread was none of an interpreter's */
    uint64_t asked_ns; /* when it was asked where they are, */
    uint64_t span_ns;  /* and where the span is: */
    uint64_t span_at;  /* there, as it was said last, */
    uint64_t program;  /* in the process of this identity, */
    uint64_t since_ns; /* for waits that began later */
    struct prcb_chain is;
};

/* A function of a file. */
struct known_name {
    struct process_file_id id;
    const char *file;     /* one of the texts */
    uint64_t place;       /* address in the file */
    const char *function; /* one of the texts; NULL: not known */
    size_t process;       /* one that has it, ... */
    uint64_t identity;    /* ... if it still is that one, ... */
    uint64_t address;     /* ... and where there */
    bool asked;           /* for its line */
    const char *source;   /* one of the texts; NULL: not known */
    uint32_t line;
};

struct process {
    pid_t pid;                         /* 0: free */
    uint64_t identity, again_ns, used; /* again_ns: when it may be read again */
    uint64_t reading;                  /* of all, which one it was that read it last */
    uint64_t pause_ns;                 /* from its next reading to the one after */
    uint64_t asked_ns;                 /* when it was last asked who it is, for a thread that ran */
    uint64_t seen_ns;                  /* when it was last seen to be this one */
    uint64_t cold_ns;                  /* when it was last asked whether it is frozen, 0: never, */
    bool frozen;                       /* and was */
    uint64_t spans_ns;                 /* when it is read again for who publishes spans */
    uint64_t follow_ns;                /* all threads of its interpreter are not listed before */
    bool usable;
    bool nested;    /* in a pid namespace of its own: it counts its threads otherwise */
    bool has_grown; /* its compiler has made code that its list did not have when it was read */
    bool asked_step, took_step; /* it was begun with the option that shows all functions */
    struct process_files files;
};

struct known_tasks;

struct prcb_stacks {
    struct prcb *session;
    struct unwinder *unwinder;
    uint32_t max_frames, stack_bytes;
    bool spans;
    bool asks_state; /* a wait's cause does not say all that may hold a thread up */
    struct prcb_stacks_status status;
    struct table texts, names, stacks, waits, chains; /* the last two by account */
    size_t kept;                                      /* bytes of texts and stacks */
    struct known_tasks *tasks;
    bool copies; /* the session copies frames of interpreters, where it is told where they are */
    struct runtime_threads *threads;           /* of the last list; NULL: there was none */
    struct known_stack *ran;                   /* of the last thread that ran */
    struct alike *alike;                       /* stacks of chosen waits, with known_stack */
    struct process processes[UNWINDER_IMAGES]; /* by number of the image */
    uint64_t uses, readings, lines_ns;         /* lines_ns: spent on lines of source */
};

/* Nothing new can be kept: -EIO, for a limit. It is not -ENOMEM, which would end a program that
 * looks at others' threads as soon as these make enough stacks. */
static int not_kept(const struct prcb_stacks *s)
{
    bool full =
        s->kept >= KEPT_MOST || s->texts.count >= NAMES_MOST || s->stacks.count >= STACKS_MOST;

    return full ? -EIO : -ENOMEM;
}

static bool text_fits(const void *item, const void *wanted)
{
    return !strcmp(item, wanted);
}

/* Returns the one copy of a text; NULL: no memory, or no room. */
static const char *keep_text(struct prcb_stacks *s, const char *text)
{
    uint64_t hash = table_hash_text(text);
    char *kept = find(&s->texts, hash, text_fits, text);

    if (kept || s->texts.count >= NAMES_MOST || s->kept >= KEPT_MOST)
        return kept;
    kept = strdup(text);
    if (kept && table_put(&s->texts, hash, kept)) {
        free(kept);
        kept = NULL;
    }
    s->kept += kept ? strlen(kept) + 1 : 0;
    return kept;
}

static bool name_fits(const void *item, const void *wanted)
{
    const struct known_name *a = item, *b = wanted;

    return a->file == b->file && a->place == b->place && a->id.dev == b->id.dev &&
           a->id.ino == b->id.ino && a->id.changed_ns == b->id.changed_ns;
}

static bool stack_fits(const void *item, const void *wanted)
{
    const struct known_stack *a = item, *b = wanted;

    if (a->frame_count != b->frame_count || a->flags != b->flags)
        return false;
    for (uint32_t i = 0; i < a->frame_count; i++) {
        const struct prcb_frame *x = &a->frames[i], *y = &b->frames[i];

        /* The same code of two processes lies at different addresses, and the kernel's has none. */
        if (x->file != y->file || x->function != y->function ||
            (x->file ? x->place != y->place : x->address != y->address))
            return false;
    }
    return true;
}

/* ---- processes -------------------------------------------------------------------------- */

/* Identifies what a process runs: the addresses of its program, its loader and 16 random bytes
 * change with each exec, and differ when another process has the same number. 0 or -errno. */
static int identity_in(const uint64_t *auxv, ssize_t length, uint64_t *ret)
{
    uint64_t hash = 1;

    if (length < 0)
        return length == -EACCES ? -EPERM : length == -ENOENT ? -ESRCH : (int)length;
    for (size_t i = 0; i < (size_t)length / sizeof(*auxv); i++)
        hash = table_mix(hash, auxv[i]);
    *ret = hash;
    return length ? 0 : -ENOTSUP; /* a kernel thread */
}

static int identity_of(pid_t tid, uint64_t *ret)
{
    uint64_t auxv[FROZEN_AUXV];
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)tid);
    return identity_in(auxv, reach_read(tid, path, auxv, sizeof(auxv)), ret);
}

static void forget(struct process *process)
{
    process_files_close(&process->files);
    *process = (struct process){0};
}

/* Sets when the process may be read again, after work for it that others waited for. */
static void set_again(struct process *process, uint64_t began, uint64_t least)
{
    uint64_t now = now_ns(), pause = RELOAD_TIMES * (now - began);

    process->again_ns = now + (pause > least ? pause : least);
}

/* Returns the number that a thread has for its own process; 0: not known. */
static pid_t own_number(pid_t pid, pid_t tid, bool *ret_nested)
{
    char path[64], text[4096], *at, *end;
    long number = 0;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    got = read_start(path, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    at = strstr(text, "\nNSpid:");
    if (!at)
        return 0;
    at += strlen("\nNSpid:");
    number = strtol(at, &end, 10);
    for (*ret_nested = false; *end == '\t'; *ret_nested = true)
        number = strtol(end, &end, 10);
    return (pid_t)number;
}

static int load(struct prcb_stacks *s, struct process *process, pid_t pid, uint64_t identity)
{
    bool same = process->pid == pid && process->identity == identity;
    uint64_t began = now_ns(), pause = same ? process->pause_ns : RELOAD_YOUNG;
    int result;

    forget(process);
    result = process_files_open(pid, &process->files);
    if (result)
        return result;
    process->pid = pid;
    process->identity = identity;
    process->reading = ++s->readings;
    result = unwinder_image(s->unwinder, (unsigned)(process - s->processes), pid, &process->files);
    process_files_release(&process->files);
    process->usable = !result;
    own_number(pid, living_thread(pid), &process->nested);
    set_again(process, began, pause);
    process->pause_ns = 2 * pause < RELOAD_NS ? 2 * pause : RELOAD_NS;
    process->spans_ns = now_ns() + SPANS_TIMES * pause;
    return result == -ENOENT ? -EIO : result;
}

/* A process that could not be unwound within the limits is not tried again for a while. */
static void give_up(struct process *process, int result, uint64_t began)
{
    if (result != -EIO || !process)
        return;
    process->usable = false;
    set_again(process, began, RELOAD_NS);
}

static bool may_reload(const struct process *process)
{
    return now_ns() > process->again_ns;
}

static struct process *find_process(struct prcb_stacks *s, pid_t pid)
{
    for (size_t i = 0; i < UNWINDER_IMAGES; i++) {
        if (s->processes[i].pid == pid)
            return &s->processes[i];
    }
    return NULL;
}

static struct process *oldest_process(struct prcb_stacks *s)
{
    struct process *oldest = &s->processes[0];

    for (size_t i = 1; i < UNWINDER_IMAGES; i++) {
        if (s->processes[i].used < oldest->used)
            oldest = &s->processes[i];
    }
    return oldest;
}

/* Returns the process's image, which is read if it is new or has changed. An image that could
 * not be used is not tried again at every stack. */
static int image_of(struct prcb_stacks *s, pid_t pid, uint64_t identity, struct process **ret)
{
    struct process *process = find_process(s, pid);
    int result = 0;

    if (!process)
        process = oldest_process(s);
    if (process->pid != pid || process->identity != identity)
        result = load(s, process, pid, identity);
    else if (!process->usable)
        result = may_reload(process) ? load(s, process, pid, identity) : -EIO;
    process->used = ++s->uses;
    if (!result)
        *ret = process;
    return result;
}

/* tid: a thread of it that lives. */
static int process_of(struct prcb_stacks *s, pid_t pid, pid_t tid, struct process **ret)
{
    uint64_t identity = 0, now = now_ns();
    int result = identity_of(tid, &identity);

    if (!result)
        result = image_of(s, pid, identity, ret);
    if (!result)
        (*ret)->seen_ns = now;
    return result;
}

/* Finds the process of a wait that began before it was last seen to be what it was when it was
 * read: of all that began since the question before, one asks. NULL: this one has to. */
static struct process *seen_since(struct prcb_stacks *s, const struct prcb_chosen *chosen)
{
    struct process *process = find_process(s, chosen->pid);

    if (!process || !process->usable || chosen->began_ns >= process->seen_ns)
        return NULL;
    process->used = ++s->uses;
    return process;
}

/* ---- frames ----------------------------------------------------------------------------- */

static uint64_t name_hash(const struct prcb_frame *frame)
{
    return table_mix((uint64_t)(uintptr_t)frame->file, frame->place);
}

static int name_of(struct prcb_stacks *s, const struct process *process,
                   const struct process_file_id *id, uint64_t address, struct prcb_frame *frame)
{
    const size_t number = (size_t)(process - s->processes);
    struct known_name wanted = {.id = *id,
                                .file = frame->file,
                                .place = frame->place,
                                .process = number,
                                .identity = process->identity,
                                .address = address},
                      *kept;
    uint64_t hash = name_hash(frame);
    char name[UNWINDER_NAME];
    int result;

    kept = find(&s->names, hash, name_fits, &wanted);
    if (kept) {
        kept->process = number;
        kept->identity = process->identity;
        kept->address = address;
        frame->function = kept->function;
        return 0;
    }
    result = unwinder_name(s->unwinder, (unsigned)number, address, name);
    if (result)
        return result;
    wanted.function = *name ? keep_text(s, name) : NULL;
    frame->function = wanted.function;
    kept = s->names.count < NAMES_MOST ? malloc(sizeof(*kept)) : NULL;
    if (kept) {
        *kept = wanted;
        if (table_put(&s->names, hash, kept))
            free(kept);
    }
    return 0;
}

/* Names code that was made at run time, by its compiler's list. */
static int made_name(struct prcb_stacks *s, struct process *process, uint64_t address,
                     struct prcb_frame *frame)
{
    char name[UNWINDER_NAME];
    int result = 0;

    if (!process->files.has_list)
        return 0;
    result = unwinder_name(s->unwinder, (unsigned)(process - s->processes), address, name);
    if (result || !*name) {
        process->has_grown |= !result;
        return result;
    }
    frame->function = keep_text(s, name);
    return frame->function ? 0 : not_kept(s);
}

static int make_frame(struct prcb_stacks *s, struct process *process, uint64_t address,
                      struct prcb_frame *ret)
{
    const struct process_file *file = process_files_at(&process->files, address);

    *ret = (struct prcb_frame){.address = address};
    if (!file || !*file->path)
        return made_name(s, process, address, ret);
    ret->file = keep_text(s, file->path);
    ret->place = address - file->start + file->offset;
    return ret->file ? name_of(s, process, &file->id, address, ret) : not_kept(s);
}

/* What was found out about one wait, before it is a stack. */
struct found {
    struct process *process; /* NULL: it has no user frames */
    uint64_t addresses[UNWINDER_FRAMES];
    size_t count;
    const struct known_stack *alike; /* the stack, which was unwound before; NULL: it was not */
    bool interpreted;                /* frames of an interpreter are the unwinder's */
    bool copied;                     /* and came with the wait */
    bool spanned;                    /* the span is the unwinder's */
    /* Their names, or else their files'; NULL: not known. The kernel's do not show how a program
     * waits. */
    const char *functions[UNWINDER_FRAMES];
    enum stack_end end;
    int error;                /* why it has no user frames, where it should have some; 0: it has */
    char kernel[KERNEL_TEXT]; /* as of prcb_kernel_stack */
};

static bool is_interpreted(const struct prcb_frame *frame)
{
    return !frame->address && frame->place;
}

static const struct idiom *find_source(const struct known_stack *stack)
{
    const char *functions[UNWINDER_FRAMES], *files[UNWINDER_FRAMES];
    size_t count = 0;

    for (uint32_t i = 0; i < stack->frame_count && count < UNWINDER_FRAMES; i++) {
        if (!is_interpreted(&stack->frames[i]))
            continue;
        functions[count] = stack->frames[i].function;
        files[count++] = stack->frames[i].file;
    }
    return idiom_find_source(functions, files, count);
}

/* Returns what the kernel's functions of a stack say: these have no addresses. NULL: nothing. */
static const char *kernel_word(const struct known_stack *stack)
{
    const char *functions[UNWINDER_FRAMES];
    size_t count = 0;

    for (uint32_t i = 0; i < stack->frame_count && count < UNWINDER_FRAMES; i++) {
        const struct prcb_frame *frame = &stack->frames[i];

        if (!frame->address && frame->file && *frame->file == '[')
            functions[count++] = frame->function;
    }
    return idiom_kernel_word(functions, count);
}

/* functions: of the machine's stack. */
static void note_idiom(struct known_stack *stack, const char *const *functions, size_t count)
{
    const struct idiom *idiom = idiom_find(functions, count), *source = find_source(stack);

    stack->word = kernel_word(stack);
    if (stack->word)
        return;
    if (source && (!idiom || idiom->kind != IDIOM_BLOCKED))
        idiom = source;
    if (!idiom)
        return;
    stack->word = idiom->word;
    stack->kind = idiom->kind == IDIOM_IDLE     ? PRCB_STACK_IDLE
                  : idiom->kind == IDIOM_EITHER ? PRCB_STACK_EITHER
                                                : PRCB_STACK_BLOCKED;
}

/* Returns the one copy of a stack; `fresh` itself is not kept. */
static const struct known_stack *keep_stack(struct prcb_stacks *s, const struct known_stack *fresh,
                                            const struct found *found)
{
    size_t bytes = sizeof(*fresh) + fresh->frame_count * sizeof(fresh->frames[0]);
    struct known_stack *kept = find(&s->stacks, fresh->hash, stack_fits, fresh);

    if (kept || s->stacks.count >= STACKS_MOST || s->kept >= KEPT_MOST)
        return kept;
    kept = malloc(bytes);
    if (!kept)
        return NULL;
    memcpy(kept, fresh, bytes);
    kept->id = (uint32_t)s->stacks.count + 1;
    note_idiom(kept, found->functions, found->count);
    if (table_put(&s->stacks, kept->hash, kept)) {
        free(kept);
        return NULL;
    }
    s->kept += bytes;
    return kept;
}

/* Whether threads begin in this function. The unwinder may have no information about these
 * functions, and then it ends with an error. */
static bool is_outermost(const char *function)
{
    static const char *const names[] = {"_start",         "__clone",          "__clone3",
                                        "clone",          "clone3",           "start_thread",
                                        "_dl_start_user", "_rt0_amd64_linux", "runtime.goexit",
                                        "runtime.mstart", "runtime.rt0_go"};

    for (size_t i = 0; function && i < sizeof(names) / sizeof(*names); i++) {
        if (!strcmp(function, names[i]))
            return true;
    }
    return false;
}

/* A single frame that ends cleanly is code about which nothing is known. */
static uint32_t flags_of(const struct known_stack *stack, size_t user_frames, enum stack_end end)
{
    const struct prcb_frame *last = &stack->frames[stack->frame_count - 1];

    if (end == STACK_DEEP || end == STACK_SHORT)
        return PRCB_STACK_CUT;
    return (end == STACK_COMPLETE && user_frames > 1) || is_outermost(last->function)
               ? PRCB_STACK_COMPLETE
               : 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names;
}

/* Every wait begins with these. */
static bool is_scheduler(const char *name)
{
    static const char *const names[] = {
        "__schedule", "schedule", "__switch_to", "context_switch", "preempt_schedule_common", NULL};

    return is_one_of(name, names);
}

/* Every system call ends with these. */
static bool is_entry(const char *name)
{
    static const char *const names[] = {"x64_sys_call",  "ia32_sys_call",     "invoke_syscall",
                                        "ret_from_fork", "ret_from_fork_asm", NULL};
    static const char *const beginnings[] = {
        "do_syscall_64", "entry_",           "el0", "do_el0", "do_fast_syscall_32",
        "do_int80",      "__do_fast_syscall"};

    for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++) {
        if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
            return true;
    }
    return is_one_of(name, names);
}

/* Splits a line such as "filemap_read\n" or "ext4_map_blocks [ext4]\n" into strings. Returns the
 * next line; NULL: none. */
static char *take_line(char *line, const char **ret_name, const char **ret_file)
{
    char *end = strchr(line, '\n'), *space;

    if (!end)
        return NULL;
    *end = '\0';
    *ret_name = line;
    *ret_file = "[kernel]";
    space = strchr(line, ' ');
    if (space) {
        *space = '\0';
        *ret_file = space + 1;
    }
    return end + 1;
}

/* Reads the kernel's frames, without those that all waits have. Returns how many; -errno. */
static int make_kernel_frames(struct prcb_stacks *s, char *text, struct prcb_frame *ret,
                              size_t room)
{
    const char *name, *file;
    int count = 0;

    while (text && (size_t)count < room && (text = take_line(text, &name, &file))) {
        struct prcb_frame *frame = &ret[count];

        if ((!count && is_scheduler(name)) || is_entry(name) || *file == 'b' /* held by */)
            continue;
        *frame = (struct prcb_frame){.file = keep_text(s, file), .function = keep_text(s, name)};
        if (!frame->file || !frame->function)
            return not_kept(s);
        count++;
    }
    return count;
}

/* Names the frames of the machine's stack. */
static int make_native(struct prcb_stacks *s, struct found *found, struct prcb_frame *ret)
{
    uint64_t began = now_ns();
    int result = 0;

    for (size_t i = 0; i < found->count && !result; i++) {
        const char *slash;

        result = now_ns() - began > STACK_NS
                     ? -EIO
                     : make_frame(s, found->process, found->addresses[i], &ret[i]);
        if (result)
            break;
        slash = ret[i].file ? strrchr(ret[i].file, '/') : NULL;
        found->functions[i] = ret[i].function ? ret[i].function : slash ? slash + 1 : NULL;
    }
    return result;
}

/* Makes a frame of an interpreter: it has no address, its file is the source, its place the line.
 */
static int make_interpreted(struct prcb_stacks *s, const struct runtime_answer *runtime,
                            const struct runtime_frame *frame, struct prcb_frame *ret)
{
    *ret = (struct prcb_frame){
        .function = keep_text(s, runtime->text + frame->function),
        .file = keep_text(s, runtime->text + frame->file),
        .place = frame->line ? frame->line : 1,
    };
    return ret->function && ret->file ? 0 : not_kept(s);
}

/* Puts the interpreter's frames in the places of its own functions. What else of its file lies
 * between them only leads from one to the next; further out it does so if no frame is missing. */
static int splice(struct prcb_stacks *s, struct found *found, const struct prcb_frame *native,
                  struct known_stack *fresh)
{
    static const struct runtime_answer none = {.count = 0};
    const struct runtime_answer *runtime =
        found->interpreted ? unwinder_runtime(s->unwinder) : &none;
    const char *own = NULL; /* the interpreter's file */
    size_t next = 0;
    int result = 0;

    for (size_t i = 0; i < found->count && !result; i++) {
        bool replaced = next < runtime->count && runtime->frames[next].at == i;

        if (replaced)
            own = native[i].file;
        else if (own && native[i].file == own &&
                 (next < runtime->count || runtime->state == RUNTIME_COMPLETE))
            continue;

        for (; next < runtime->count && runtime->frames[next].at == i && !result; next++) {
            if (fresh->frame_count < s->max_frames)
                result = make_interpreted(s, runtime, &runtime->frames[next],
                                          &fresh->frames[fresh->frame_count++]);
            else
                found->end = STACK_DEEP;
        }
        if (!replaced && fresh->frame_count < s->max_frames)
            fresh->frames[fresh->frame_count++] = native[i];
        else if (!replaced)
            found->end = STACK_DEEP;
    }
    /* What the machine's stack was lost before. */
    for (; next < runtime->count && !result && fresh->frame_count < s->max_frames; next++)
        result = make_interpreted(s, runtime, &runtime->frames[next],
                                  &fresh->frames[fresh->frame_count++]);
    return result;
}

static uint64_t hash_of(const struct prcb_frame *frames, uint32_t count)
{
    uint64_t hash = 3;

    for (uint32_t i = 0; i < count; i++) {
        const struct prcb_frame *frame = &frames[i];

        hash = table_mix(table_mix(table_mix(hash, (uint64_t)(uintptr_t)frame->file),
                                   (uint64_t)(uintptr_t)frame->function),
                         frame->file ? frame->place : frame->address);
    }
    return hash;
}

static int make_frames(struct prcb_stacks *s, struct found *found, struct known_stack *fresh)
{
    struct prcb_frame native[UNWINDER_FRAMES];
    int result = make_kernel_frames(s, found->kernel, fresh->frames, s->max_frames);

    if (result < 0)
        return result;
    fresh->frame_count = (uint32_t)result;
    result = make_native(s, found, native);
    if (!result)
        result = splice(s, found, native, fresh);
    if (result)
        return result;
    fresh->flags = !fresh->frame_count ? 0
                   : found->error      ? 0
                   : found->process    ? flags_of(fresh, found->count, found->end)
                                       : PRCB_STACK_COMPLETE;
    fresh->hash = hash_of(fresh->frames, fresh->frame_count);
    return fresh->frame_count ? 0 : -ENOTSUP;
}

static int make_stack(struct prcb_stacks *s, struct found *found, const struct known_stack **ret)
{
    struct known_stack *fresh =
        calloc(1, sizeof(*fresh) + s->max_frames * sizeof(fresh->frames[0]));
    int result;

    if (!fresh)
        return -ENOMEM;
    result = make_frames(s, found, fresh);
    if (!result)
        *ret = keep_stack(s, fresh, found);
    free(fresh);
    return result ? result : *ret ? 0 : not_kept(s);
}

/* ---- one wait --------------------------------------------------------------------------- */

/* Whether the thread still is in that wait: it does not run, and has not switched since. */
static int still_waits(struct prcb_thread *t, uint64_t switches)
{
    struct prcb_times times = {.size = sizeof(times)};
    int result = prcb_thread_times(t, &times);

    if (result)
        return result;
    if (times.flags & PRCB_ACCOUNT_EXITED)
        return -ESRCH;
    return times.flags & PRCB_ACCOUNT_RUNNING || times.switches != switches ? -EAGAIN : 0;
}

/* The kernel reads what procfs shows while the thread is off its processor: it waits for that.
 * So where procfs shows the same again, counts read after it have every switch that the thread
 * began; a thread on its way into its next wait looks asleep in /proc a moment before its count
 * grows. */
static int has_not_moved(const struct prcb_account *a, const struct frozen_registers *at)
{
    struct frozen_registers again = {0};
    int result = frozen_registers_read(a->pid, a->tid, &again);

    return result ? result : again.sp != at->sp || again.pc != at->pc ? -EAGAIN : 0;
}

/* Whether all that was read since the wait was first looked at is of that one wait. */
static int proves(struct prcb_thread *t, const struct prcb_account *a)
{
    /* What was read before the account: the child that reads answers after it, and the socket's
     * lock orders that answer before what its receipt is followed by here. Pairs with the store of
     * the account (prcb_switch) as the thread is switched in, which the kernel's barrier in the
     * switch orders before whatever the thread then stores: a copy that has any of it finds the
     * account changed. */
    atomic_thread_fence(memory_order_acquire);
    return still_waits(t, a->switches);
}

/* Copies registers and stack of one wait; the account proves that it is one. */
static int freeze(struct prcb_stacks *s, struct prcb_thread *t, const struct prcb_account *a,
                  size_t bytes)
{
    bool kept = a->present & PRCB_HAS_REGISTERS;
    struct frozen_registers at = {0};
    int result = still_waits(t, a->switches);

    if (!result && kept)
        at = (struct frozen_registers){a->registers.pc, a->registers.sp, a->registers.fp,
                                       a->registers.lr};
    else if (!result)
        result = frozen_registers_read(a->pid, a->tid, &at);
    if (!result && !at.sp)
        result = -ENOTSUP;
    if (!result)
        result = frozen_copy(a->tid, &at, bytes, unwinder_frozen(s->unwinder));
    if (!result && !kept)
        result = has_not_moved(a, &at);
    if (result)
        return result;
    return proves(t, a);
}

/* Whether a frame lies in code that was mapped after the mappings were read. */
static bool is_elsewhere(const struct process *process, const uint64_t *addresses, size_t count)
{
    return count && !process_files_at(&process->files, addresses[count - 1]);
}

/* Whether a wait lasts for so long that one asks where in the kernel it is. Of a sleep there is
 * nothing more to know. */
static bool is_long(const struct prcb_account *a)
{
    return a->present & PRCB_HAS_OPEN && a->open.ns >= LONG_NS &&
           cause_traits(a->open.cause)->class != CAUSE_CLASS_SLEEP;
}

/* Whether a wait's cause does not say where in the kernel the thread is. */
static bool wants_kernel(const struct prcb_account *a)
{
    if (!(a->present & PRCB_HAS_OPEN))
        return false;
    /* If the wait had begun before profiling, its cause may be only that of the system call. */
    return cause_has(a->open.cause, CAUSE_WANTS_KERNEL_STACK) || is_long(a) ||
           (!a->switches && held_blocked(a->pid, a->tid));
}

/* The kernel's part is a help, not a condition: without it, the user's part alone is the stack. */
static int find_kernel(struct prcb_stacks *s, struct prcb_thread *t, const struct prcb_account *a,
                       struct found *found)
{
    if ((!wants_kernel(a) && !found->error) ||
        prcb_kernel_stack(s->session, a->key, a->tid, found->kernel, sizeof(found->kernel), NULL))
        found->kernel[0] = '\0';
    return found->kernel[0] ? still_waits(t, a->switches) : 0;
}

/* Whether the copy is of the program that was read. If it is not, the image is read, and what
 * was copied before that may be of no known program: -EAGAIN, copy again. */
static int fit_image(struct prcb_stacks *s, pid_t pid, struct process **process)
{
    const struct frozen *frozen = unwinder_frozen(s->unwinder);
    uint64_t identity = 0;
    int result = identity_in(frozen->auxv, frozen->auxv_length, &identity);

    if (result)
        return result;
    if (*process && (*process)->identity == identity && (*process)->usable) {
        (*process)->used = ++s->uses;
        return 0;
    }
    result = image_of(s, pid, identity, process);
    return result ? result : -EAGAIN;
}

static bool is_copied(const struct prcb_stacks *s, uint64_t key)
{
    const struct known_chain *chain = table_find(&s->chains, key);

    return chain && chain->there;
}

static void set_chain(struct prcb_stacks *s, uint64_t key, const struct runtime_chain *said,
                      uint64_t lock_at, uint32_t lock_number, struct known_chain *chain)
{
    chain->is = (struct prcb_chain){
        .size = sizeof(chain->is),
        .head = said->head,
        .proof = said->proof,
        .proof_at = said->proof_at,
        .hop = said->hop,
        .first = said->first,
        .next = said->next,
        .words = {said->words[0], said->words[1]},
        .byte = said->byte,
        .lock_at = lock_at,
        .lock_number = lock_number,
        .span_at = chain->is.span_at,
    };
    chain->asked_ns = now_ns();
    chain->none = false;
    chain->there = said->head && !prcb_chosen_chain(s->session, key, &chain->is, NULL);
}

/* Lets the frames of an interpreter's thread be copied as its next waits begin. */
static void follow_chain(struct prcb_stacks *s, uint64_t key)
{
    const struct runtime_answer *runtime = unwinder_runtime(s->unwinder);
    struct known_chain *chain = kept_of(&s->chains, key, sizeof(*chain));

    if (!chain || (chain->there && now_ns() - chain->asked_ns < CHAIN_ASK_NS))
        return;
    set_chain(s, key, &runtime->chain, runtime->lock_at, runtime->lock_number, chain);
    chain->none = runtime->state == RUNTIME_NONE && !runtime->unread[0];
}

/* Lets a thread's span be copied as its next waits begin. What was read of a thread that ran
 * meanwhile has to be said twice. */
static void follow_span(struct prcb_stacks *s, const struct process *process, uint64_t key,
                        bool proven)
{
    uint64_t variable = unwinder_span(s->unwinder)->variable;
    struct known_chain *chain = s->copies ? kept_of(&s->chains, key, sizeof(*chain)) : NULL;
    bool again;

    if (!chain)
        return;
    again =
        variable && !proven && (chain->span_at != variable || chain->program != process->identity);
    chain->span_at = variable;
    chain->program = process->identity;
    chain->span_ns = again ? 0 : now_ns();
    variable = again ? 0 : variable;
    if (chain->is.span_at == variable)
        return;
    chain->is.size = sizeof(chain->is);
    chain->is.span_at = variable;
    if (prcb_chosen_chain(s->session, key, &chain->is, NULL))
        chain->is.span_at = 0;
    chain->since_ns = now_ns();
}

/* The same of one thread, if the process that says so has it. */
static void follow_listed(struct prcb_stacks *s, const struct process *process,
                          const struct runtime_threads *said,
                          const struct runtime_thread_chain *thread)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct runtime_chain chain = said->like;
    struct known_chain *kept;
    struct prcb_thread *t;

    chain.head = thread->head;
    chain.proof = thread->proof;
    if (prcb_thread_open(s->session, thread->tid, &t, NULL))
        return;
    kept = !prcb_thread_read(t, &a) && a.pid == process->pid
               ? kept_of(&s->chains, a.key, sizeof(*kept))
               : NULL;
    if (kept && !kept->there)
        set_chain(s, a.key, &chain, thread->lock_at, said->lock_number, kept);
    prcb_thread_close(t);
}

/* The same of all threads that the process's interpreter has, before the first wait of each is
 * read. */
static void follow_all(struct prcb_stacks *s, struct process *process)
{
    const unsigned image = (unsigned)(process - s->processes);
    uint64_t now = now_ns();

    if (!s->copies || process->nested || !unwinder_has_runtime(s->unwinder, image) ||
        now < process->follow_ns)
        return;
    process->follow_ns = now + FOLLOW_YOUNG;
    if (!s->threads)
        s->threads = malloc(sizeof(*s->threads));
    if (!s->threads || unwinder_threads(s->unwinder, image, s->threads))
        return;
    if (s->threads->count)
        process->follow_ns = now + FOLLOW_NS;
    for (uint32_t i = 0; i < s->threads->count; i++)
        follow_listed(s, process, s->threads, &s->threads->threads[i]);
}

/* Whether the process was begun with the option that a step ends with. */
static bool was_taken(pid_t pid, const char *step)
{
    const char *option = strrchr(step, ' ');
    char path[64], *arguments;
    bool taken = false;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)living_thread(pid));
    length = option ? reach_text(pid, path, &arguments) : -ENOENT;
    if (length < 0)
        return false;
    for (ssize_t at = 0; at < length && !taken; at += (ssize_t)strlen(arguments + at) + 1)
        taken = !strcmp(arguments + at, option + 1);
    free(arguments);
    return taken;
}

/* Returns what is known of a thread's functions, and says the step that shows all. Where it was
 * taken, none are missing. */
static uint32_t runtime_state(struct prcb_stacks *s, struct process *process)
{
    const struct runtime_answer *runtime = unwinder_runtime(s->unwinder);

    if (!runtime->unread[0])
        return runtime->state;
    if (!process->asked_step)
        process->took_step = was_taken(process->pid, runtime->unread);
    process->asked_step = true;
    if (process->took_step)
        return runtime->state == RUNTIME_PARTLY ? RUNTIME_COMPLETE : runtime->state;
    if (!process->files.has_list) {
        s->status.unread = keep_text(s, runtime->unread);
        s->status.unread_pid = process->pid;
    }
    return runtime->state;
}

/* Whether an interpreter's frames are of the wait, if there are any, and counts what is known of
 * them. */
static int note_runtime(struct prcb_stacks *s, struct prcb_thread *t, const struct prcb_account *a,
                        struct process *process)
{
    const struct runtime_answer *runtime = unwinder_runtime(s->unwinder);
    const uint32_t state = runtime_state(s, process);
    bool known = table_find(&s->chains, a->key) != NULL;
    int result = 0;

    if (unwinder_has_runtime(s->unwinder, (unsigned)(process - s->processes)))
        follow_chain(s, a->key);
    if (runtime->state == RUNTIME_NONE && unwinder_span(s->unwinder)->state == SPAN_UNPUBLISHED)
        return 0;
    if (!(a->present & PRCB_HAS_REGISTERS))
        result = has_not_moved(a, &unwinder_frozen(s->unwinder)->at);
    if (!result)
        result = proves(t, a);
    if (!result && unwinder_span(s->unwinder)->state != SPAN_UNPUBLISHED)
        follow_span(s, process, a->key, true);
    s->status.interpreted += !result && state == RUNTIME_COMPLETE;
    /* Of one that is over there may be a copy. */
    s->status.uninterpreted +=
        result ? runtime->state != RUNTIME_NONE && !is_copied(s, a->key) : state == RUNTIME_PARTLY;
    if (!known)
        follow_all(s, process);
    return result;
}

/* Whether a library that publishes spans may have been loaded since the mappings were read. */
static bool lacks_spans(const struct prcb_stacks *s, const struct process *process)
{
    return s->spans && process->usable && now_ns() > process->spans_ns && may_reload(process) &&
           !unwinder_has_spans(s->unwinder, (unsigned)(process - s->processes));
}

static int find_user(struct prcb_stacks *s, struct prcb_thread *t, const struct prcb_account *a,
                     struct found *found)
{
    uint64_t *addresses = found->addresses;
    struct process *process = find_process(s, a->pid);
    uint64_t robust;
    bool spanned = false;
    pid_t own = 0;
    size_t bytes = s->stack_bytes, count = 0;
    unsigned image;
    enum stack_end end = STACK_BROKEN;
    int result = 0;

    while (!result) {
        if (process && ((process->has_grown && may_reload(process)) || lacks_spans(s, process))) {
            result = load(s, process, a->pid, process->identity);
            continue;
        }
        result = freeze(s, t, a, bytes);
        if (result)
            break;
        result = fit_image(s, a->pid, &process);
        if (result == -EAGAIN) {
            result = 0;
            continue;
        }
        image = (unsigned)(process - s->processes);
        spanned =
            !result && unwinder_has_spans(s->unwinder, image) && !reach_robust(a->tid, &robust);
        if (!result && (spanned || unwinder_has_runtime(s->unwinder, image)))
            own = process->nested ? own_number(a->pid, a->tid, &process->nested) : a->tid;
        if (!result)
            result = unwinder_unwind(s->unwinder, image, own, spanned ? &robust : NULL, addresses,
                                     &count, &end);
        if (!result && own)
            result = note_runtime(s, t, a, process);
        if (result == -ESTALE || (!result && end == STACK_BROKEN && may_reload(process) &&
                                  is_elsewhere(process, addresses, count))) {
            result = load(s, process, a->pid, process->identity);
            continue;
        }
        if (result || end != STACK_SHORT || bytes >= UNWINDER_BYTES_MOST)
            break;
        bytes *= BYTES_GROWTH;
        bytes = bytes < UNWINDER_BYTES_MOST ? bytes : UNWINDER_BYTES_MOST;
    }
    found->process = process;
    found->count = count;
    found->end = end;
    found->interpreted = !result && own;
    found->spanned = found->interpreted && spanned;
    return result;
}

/* Whether it can still be told where in the kernel a thread is, although its memory cannot be
 * read, or it has given that up and is not gone yet. */
static bool leaves_kernel(int result)
{
    return result == -ESRCH || result == -ENOTSUP || result == -EIO || result == -EFAULT ||
           result == -ETIMEDOUT || result == -EBUSY;
}

static int unwind(struct prcb_stacks *s, struct prcb_thread *t, const struct prcb_account *a,
                  struct known_wait *ret)
{
    struct found found = {.end = STACK_COMPLETE};
    uint64_t began = now_ns();
    int result = 0;

    if (!(a->flags & PRCB_ACCOUNT_KTHREAD))
        result = find_user(s, t, a, &found);
    give_up(found.process, result, began);
    if (leaves_kernel(result)) {
        found.error = result;
        found.count = 0;
    } else if (result) {
        return result;
    }
    result = find_kernel(s, t, a, &found);
    if (!result && found.error && !found.kernel[0])
        result = found.error;
    if (!result)
        result = make_stack(s, &found, &ret->stack);
    if (found.interpreted) {
        ret->lock_at = unwinder_runtime(s->unwinder)->lock_at;
        ret->lock_number = unwinder_runtime(s->unwinder)->lock_number;
    }
    ret->span = (struct span_answer){.state = SPAN_UNPUBLISHED};
    if (found.spanned)
        ret->span = *unwinder_span(s->unwinder);
    if (!found.error)
        give_up(found.process, result, began);
    return result;
}

/* Finds a process that has ended since the copy was made, as it was read before; -ESRCH: it
 * never was read. */
static int ended_process(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                         struct process **ret)
{
    struct process *process = find_process(s, chosen->pid);

    if (!process || !process->usable || !process_files_at(&process->files, chosen->registers.pc))
        return -ESRCH;
    *ret = process;
    return 0;
}

/* A chosen wait that goes on: then its interpreter's frames can be read, too. NULL: it does not. */
static struct prcb_thread *open_going_on(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                                         const struct process *process)
{
    struct prcb_thread *t;

    if (!process || process->nested ||
        !unwinder_has_runtime(s->unwinder, (unsigned)(process - s->processes)) ||
        prcb_thread_open_key(s->session, chosen->key, &t, NULL))
        return NULL;
    if (!still_waits(t, chosen->switches))
        return t;
    prcb_thread_close(t);
    return NULL;
}

static struct alike_key key_of(const struct process *process)
{
    return (struct alike_key){process->identity, process->reading};
}

/* Whether it is to be asked where the thread has its frames, which were not copied: it has begun
 * since, or runs another program. */
static bool lacks_chain(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                        const struct process *process)
{
    const struct known_chain *chain = table_find(&s->chains, chosen->key);

    return unwinder_has_runtime(s->unwinder, (unsigned)(process - s->processes)) &&
           (!chain || now_ns() - chain->asked_ns > CHAIN_ASK_NS);
}

/* The same of its span. */
static bool lacks_span(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                       const struct process *process)
{
    const struct known_chain *chain = table_find(&s->chains, chosen->key);

    return s->copies && unwinder_has_spans(s->unwinder, (unsigned)(process - s->processes)) &&
           (!chain || ((!chain->is.span_at || chain->program != process->identity) &&
                       now_ns() - chain->span_ns > CHAIN_ASK_NS));
}

/* Says the span that came with a wait. */
static void take_span(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                      const struct process *process, struct span_answer *ret)
{
    const struct known_chain *chain = table_find(&s->chains, chosen->key);

    *ret = (struct span_answer){.state = SPAN_UNPUBLISHED};
    if (!unwinder_has_spans(s->unwinder, (unsigned)(process - s->processes)))
        return;
    ret->state = SPAN_UNREAD;
    if (!chain || !chain->is.span_at || chain->program != process->identity ||
        chosen->began_ns < chain->since_ns || chosen->span_state < PRCB_SPAN_NONE)
        return;
    ret->state = SPAN_NONE;
    if (chosen->span_state == PRCB_SPAN_THERE)
        spans_decode(chosen->span_record, ret);
}

/* Both are words of the session's own programs, as they were copied. */
_Static_assert(sizeof(struct prcb_node) == sizeof(struct runtime_node), "nodes are handed on");

static void set_frozen(struct frozen *frozen, const struct prcb_chosen *chosen)
{
    const struct prcb_registers *at = &chosen->registers;

    frozen->at = (struct frozen_registers){at->pc, at->sp, at->fp, at->lr};
    frozen->registers = NULL;
    frozen->low = chosen->stack_at;
    frozen->length = chosen->stack_bytes;
    memcpy(frozen->bytes, chosen->stack, chosen->stack_bytes);
}

static int unwind_with(struct prcb_stacks *s, const struct prcb_chosen *chosen, pid_t own,
                       const uint64_t *robust, struct found *found)
{
    struct frozen *frozen = unwinder_frozen(s->unwinder);
    int result;

    frozen->node_count = found->copied ? chosen->node_count : 0;
    frozen->nodes = (const struct runtime_node *)chosen->nodes;
    frozen->whole = chosen->whole != 0;
    frozen->began_ns = chosen->began_ns;
    result = unwinder_unwind(s->unwinder, (unsigned)(found->process - s->processes), own, robust,
                             found->addresses, &found->count, &found->end);
    frozen->node_count = 0;
    return result;
}

/* found: the stack, if one like it is known. */
static int unwind_copy(struct prcb_stacks *s, const struct prcb_chosen *chosen, struct found *found)
{
    struct frozen *frozen = unwinder_frozen(s->unwinder);
    struct process *process = found->process;
    const unsigned image = (unsigned)(process - s->processes);
    bool copied = chosen->node_count && unwinder_has_runtime(s->unwinder, image);
    struct prcb_thread *t = copied ? NULL : open_going_on(s, chosen, process);
    bool asks = !copied && lacks_chain(s, chosen, process);
    uint64_t robust;
    bool asks_span = lacks_span(s, chosen, process) && !reach_robust(chosen->tid, &robust);
    pid_t own = 0;
    int result;

    set_frozen(frozen, chosen);
    found->copied = copied;
    found->interpreted = false;
    /* Pointers alone do not say that two copies of an interpreter's frames are the same. */
    found->alike =
        t || asks || asks_span || copied ? NULL : alike_find(s->alike, key_of(process), frozen);
    if (found->alike)
        return 0;
    if (copied || t || asks || asks_span)
        own = process->nested && (!copied || asks_span)
                  ? own_number(chosen->pid, chosen->tid, &process->nested)
                  : chosen->tid; /* whom copies are of needs no number */
    result = unwind_with(s, chosen, own, asks_span ? &robust : NULL, found);
    if (!result && asks_span)
        follow_span(s, process, chosen->key, false);
    if (!result && asks) {
        follow_chain(s, chosen->key);
        follow_all(s, process);
    }
    found->interpreted = !result && copied;
    if (t) {
        atomic_thread_fence(memory_order_acquire); /* as in proves() */
        found->interpreted = !result && !still_waits(t, chosen->switches);
        prcb_thread_close(t);
    }
    return result;
}

/* Keeps a stack for those like it, if it says all of itself. */
static void keep_alike(struct prcb_stacks *s, const struct found *found,
                       const struct known_stack *stack)
{
    struct alike_words by;

    by.words = unwinder_words(s->unwinder, &by.count, &by.used_fp);
    if (by.words && !found->interpreted && found->end == STACK_COMPLETE &&
        !found->process->files.has_list)
        alike_keep(&s->alike, key_of(found->process), unwinder_frozen(s->unwinder), &by, stack);
}

/* Counts what is known of interpreters' frames. One that was over before it was read may have had
 * some, where its process has an interpreter, unless its thread was none of that. */
static void count_runtime(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                          const struct found *found)
{
    const unsigned image = (unsigned)(found->process - s->processes);
    const struct known_chain *chain = table_find(&s->chains, chosen->key);
    uint32_t state = found->interpreted ? runtime_state(s, found->process) : RUNTIME_PARTLY;

    if (!unwinder_has_runtime(s->unwinder, image) ||
        (!found->interpreted && !found->copied && chain && chain->none))
        return;
    s->status.interpreted += state == RUNTIME_COMPLETE;
    s->status.copied += state == RUNTIME_COMPLETE && found->copied;
    s->status.uninterpreted += state == RUNTIME_PARTLY;
}

static int unwind_chosen(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                         const struct known_stack **ret, struct span_answer *ret_span)
{
    struct found found = {.end = STACK_BROKEN, .kernel = "", .process = seen_since(s, chosen)};
    uint64_t began = now_ns();
    int result =
        found.process ? 0 : process_of(s, chosen->pid, living_thread(chosen->pid), &found.process);
    bool ended = result == -ESRCH || result == -ENOTSUP; /* a zombie looks like a kernel thread */

    if (ended)
        result = ended_process(s, chosen, &found.process);
    /* It is tried twice: the child may have been replaced, or code mapped since. */
    for (int i = 0; i < 2 && !result; i++) {
        result = unwind_copy(s, chosen, &found);
        if (found.alike) {
            count_runtime(s, chosen, &found);
            take_span(s, chosen, found.process, ret_span);
            *ret = found.alike;
            return 0;
        }
        if (i || ended ||
            (result != -ESTALE &&
             (result || found.end != STACK_BROKEN || !may_reload(found.process) ||
              !is_elsewhere(found.process, found.addresses, found.count))))
            break;
        result = load(s, found.process, chosen->pid, found.process->identity);
    }
    /* The process may have run another program by then, or run another one now: in both cases no
     * stack comes to its end, and there is no code where this thread waited. */
    if (ended &&
        (result == -ESTALE || (!result && found.end != STACK_COMPLETE && found.end != STACK_SHORT)))
        result = -ESRCH;
    if (!result && !process_files_at(&found.process->files, chosen->registers.pc))
        result = -ESRCH;
    if (!result)
        result = make_stack(s, &found, ret);
    if (!result) {
        count_runtime(s, chosen, &found);
        take_span(s, chosen, found.process, ret_span);
        keep_alike(s, &found, *ret);
    }
    give_up(found.process, result, began);
    return result;
}

/* ---- one moment of a thread that ran ---------------------------------------------------- */

/* Finds the process that ran. Who it is is asked again after a while: a sample takes less than the
 * question. One that has ended is known as it was. */
static int ran_process(struct prcb_stacks *s, const struct prcb_running *r, struct process **ret,
                       bool *ret_ended)
{
    struct process *process = find_process(s, r->pid);
    uint64_t now = now_ns();
    int result;

    *ret_ended = false;
    if (process && process->usable && now < process->asked_ns + ASK_NS) {
        process->used = ++s->uses;
        *ret = process;
        return 0;
    }
    result = process_of(s, r->pid, living_thread(r->pid), ret);
    *ret_ended = result == -ESRCH || result == -ENOTSUP;
    if (*ret_ended && process && process->usable) {
        *ret = process;
        result = 0;
    }
    if (!result)
        (*ret)->asked_ns = now_ns();
    return result;
}

static int unwind_ran(struct prcb_stacks *s, const struct prcb_running *r, struct found *found)
{
    const unsigned image = (unsigned)(found->process - s->processes);
    struct frozen *frozen = unwinder_frozen(s->unwinder);
    int result;

    frozen->at = (struct frozen_registers){.pc = r->pc, .sp = r->registers[REGISTER_SP]};
    frozen->registers = r->registers;
    frozen->low = r->stack_at;
    frozen->length = r->stack_bytes;
    memcpy(frozen->bytes, r->stack, r->stack_bytes);
    found->interpreted = r->node_count && unwinder_has_runtime(s->unwinder, image);
    frozen->node_count = found->interpreted ? r->node_count : 0;
    frozen->nodes = (const struct runtime_node *)r->nodes;
    frozen->whole = r->whole != 0;
    frozen->began_ns = r->time_ns;
    result = unwinder_unwind(s->unwinder, image, found->interpreted ? r->tid : 0, NULL,
                             found->addresses, &found->count, &found->end);
    frozen->node_count = 0;
    frozen->registers = NULL;
    if (!r->node_count)
        follow_all(s, found->process);
    return result;
}

/* Puts frames into s->ran. Only the outermost is named, which tells whether it is one. */
static int make_ran(struct prcb_stacks *s, struct found *found, struct prcb_stack *ret)
{
    struct prcb_frame native[UNWINDER_FRAMES];
    struct known_stack *ran = s->ran;
    int result = 0;

    for (size_t i = 0; i < found->count && !result; i++) {
        uint64_t address = found->addresses[i];
        const struct process_file *file = process_files_at(&found->process->files, address);
        struct prcb_frame *frame = &native[i];

        *frame = (struct prcb_frame){.address = address};
        if (file && *file->path) {
            frame->file = keep_text(s, file->path);
            frame->place = address - file->start + file->offset;
            result = frame->file ? 0 : not_kept(s);
        }
        if (!result && i + 1 == found->count && frame->file)
            result = name_of(s, found->process, &file->id, address, frame);
    }
    ran->frame_count = 0;
    if (!result)
        result = splice(s, found, native, ran);
    ret->flags = ran->frame_count ? flags_of(ran, found->count, found->end) : 0;
    ret->frame_count = ran->frame_count;
    ret->frames = ran->frames;
    return result;
}

static int take_ran(struct prcb_stacks *s, const struct prcb_running *r, struct prcb_stack *ret)
{
    struct found found = {.end = STACK_BROKEN};
    uint64_t began = now_ns();
    bool ended;
    int result = ran_process(s, r, &found.process, &ended);

    /* As in unwind_chosen. */
    for (int i = 0; i < 2 && !result; i++) {
        result = unwind_ran(s, r, &found);
        if (i || ended ||
            (result != -ESTALE &&
             (result || found.end != STACK_BROKEN || !may_reload(found.process) ||
              !is_elsewhere(found.process, found.addresses, found.count))))
            break;
        result = load(s, found.process, r->pid, found.process->identity);
    }
    if (!result)
        result = make_ran(s, &found, ret);
    give_up(found.process, result, began);
    return result;
}

static int explain(const struct prcb_account *a, int result, struct prcb_error *err)
{
    const char *why = result == -EAGAIN      ? "it has run meanwhile"
                      : result == -EPERM     ? "no permission: it is another user's, or "
                                               "kernel.yama.ptrace_scope allows descendants only"
                      : result == -ESRCH     ? "it has ended"
                      : result == -ESTALE    ? "its account was given back"
                      : result == -ENOENT    ? "its runtime has no tasks"
                      : result == -ENOTSUP   ? "it has no user stack"
                      : result == -EFAULT    ? "its stack lies in no memory that can be had at once"
                      : result == -ETIMEDOUT ? "its memory or files do not answer: see prcb-why(1)"
                      : result == -EBUSY ? "too many readers wait for processes that do not answer"
                      : result == -EIO ? "its program could not be unwound within limits of memory "
                                         "and time"
                                       : strerror(-result);

    return prcb_fail(err, result, "stack of thread %d: %s", (int)a->tid, why);
}

/* Whether the reason holds for as long as the wait does. */
static bool lasts(int result)
{
    return !result || result == -EPERM || result == -ENOTSUP || result == -EIO;
}

static int look(struct prcb_stacks *s, const struct prcb_account *a, struct known_wait *wait)
{
    struct prcb_thread *t;
    int result = a->flags & PRCB_ACCOUNT_EXITED    ? -ESRCH
                 : a->flags & PRCB_ACCOUNT_RUNNING ? -EAGAIN
                                                   : 0;

    if (!result) {
        result = prcb_thread_open_key(s->session, a->key, &t, NULL);
        if (!result) {
            wait->lock_at = 0;
            result = unwind(s, t, a, wait);
            prcb_thread_close(t);
        }
    }
    s->status.unwound += !result;
    s->status.moved += result == -EAGAIN;
    wait->switches = lasts(result) ? a->switches : UINT64_MAX;
    wait->error = result;
    wait->is_long = is_long(a);
    return result;
}

/* Finds what holds a thread up that its cause does not tell. Where there is a cause, that can only
 * be the first freezer, which is asked once in a while for each process. */
static const char *word_of_held(struct prcb_stacks *s, const struct prcb_account *a, uint32_t cause)
{
    struct process *process = cause == PRCB_CAUSE_NONE ? NULL : find_process(s, a->pid);
    uint64_t now = now_ns();
    struct held held;

    if (process && (!process->cold_ns || now - process->cold_ns > FROZEN_ASK_NS)) {
        process->frozen = held_process_frozen(a->pid);
        process->cold_ns = now;
    }
    if ((process && !process->frozen) || held_read(a->pid, a->tid, &held) ||
        (cause != PRCB_CAUSE_NONE && !held.frozen))
        return NULL;
    return held_word(&held);
}

/* Marks a wait as blocked if its cause says that it is no wait for work, or if it is held up in
 * a way that causes do not tell: the perf tier knows no causes, and the first freezer freezes
 * what sleeps where it sleeps, without a switch. */
static void hold(struct prcb_stacks *s, const struct prcb_account *a, uint32_t cause,
                 struct prcb_stack *stack)
{
    const char *word;

    if (cause_has(cause, CAUSE_IDLES)) {
        stack->kind = PRCB_STACK_IDLE;
        stack->word = "kernel thread";
        return;
    }
    if (stack->kind == PRCB_STACK_BLOCKED)
        return;
    if (!cause_may_idle(cause)) {
        stack->word = NULL;
    } else {
        word = s->asks_state ? word_of_held(s, a, cause) : NULL;
        if (!word)
            return;
        stack->word = word;
    }
    stack->kind = PRCB_STACK_BLOCKED;
}

static int hand_out(struct prcb_stacks *s, const struct known_stack *known,
                    const struct known_wait *wait, const struct prcb_account *a, uint64_t key,
                    uint64_t switches, uint32_t cause, struct prcb_stack *ret)
{
    struct prcb_stack stack = {
        .size = sizeof(stack),
        .key = key,
        .switches = switches,
        .id = known->id,
        .flags = known->flags,
        .kind = known->kind,
        .word = known->word,
        .frame_count = known->frame_count,
        .frames = known->frames,
    };

    if (wait) {
        stack.span_state = wait->span.state;
        stack.span.flags = (unsigned char)wait->span.flags;
        memcpy(stack.span.trace_id, wait->span.trace_id, sizeof(stack.span.trace_id));
        memcpy(stack.span.span_id, wait->span.span_id, sizeof(stack.span.span_id));
    }
    if (wait && known->word && !strcmp(known->word, "GIL")) {
        stack.lock_at = wait->lock_at;
        stack.lock_number = wait->lock_number;
    }
    hold(s, a, cause, &stack);
    return sized_hand_out(&stack, sizeof(stack), ret);
}

int prcb_stacks_read(struct prcb_stacks *s, const struct prcb_account *a, struct prcb_stack *ret,
                     struct prcb_error *err)
{
    struct prcb_account record;
    struct known_wait *wait;
    uint32_t cause;
    int result;

    if (!s->session)
        return prcb_fail(err, -EINVAL, "the reader has no session");
    sized_take_record(a, &record, sizeof(record));
    s->status.asked++;
    wait = kept_of(&s->waits, record.key, sizeof(*wait));
    if (!wait)
        return prcb_fail(err, -ENOMEM, "out of memory");
    if (wait->switches == record.switches && (wait->stack || wait->error) &&
        (wait->is_long || !is_long(&record))) {
        s->status.remembered++;
        result = wait->error;
    } else {
        result = look(s, &record, wait);
    }
    if (result)
        return explain(&record, result, err);
    cause = record.present & PRCB_HAS_OPEN ? record.open.cause : PRCB_CAUSE_NONE;
    return hand_out(s, wait->stack, wait, &record, record.key, record.switches, cause, ret);
}

int prcb_stacks_meet(struct prcb_stacks *s, pid_t pid, struct prcb_error *err)
{
    const struct prcb_account about = {.tid = pid, .pid = pid};
    struct process *process;
    int result = process_of(s, pid, living_thread(pid), &process);

    if (result)
        return explain(&about, result, err);
    process->follow_ns = 0;
    follow_all(s, process);
    return 0;
}

int prcb_stacks_unwind(struct prcb_stacks *s, const struct prcb_chosen *chosen,
                       struct prcb_stack *ret, struct prcb_error *err)
{
    const struct prcb_account about = {.tid = chosen->tid, .pid = chosen->pid};
    struct known_wait wait = {.span.state = SPAN_UNPUBLISHED};
    const struct known_stack *stack = NULL;
    const struct known_chain *chain;
    int result = !s->session                             ? -EINVAL
                 : chosen->ended || !chosen->stack_bytes ? -EFAULT
                 : chosen->stack_bytes > unwinder_frozen(s->unwinder)->room
                     ? -EINVAL
                     : unwind_chosen(s, chosen, &stack, &wait.span);

    s->status.asked++;
    s->status.unwound += !result;
    if (result)
        return explain(&about, result, err);
    chain = table_find(&s->chains, chosen->key);
    if (chain) {
        wait.lock_at = chain->is.lock_at;
        wait.lock_number = chain->is.lock_number;
    }
    return hand_out(s, stack, &wait, &about, chosen->key, chosen->switches, chosen->cause, ret);
}

int prcb_stacks_ran(struct prcb_stacks *s, const struct prcb_running *ran, struct prcb_stack *ret,
                    struct prcb_error *err)
{
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_running running;
    struct prcb_account about;
    int result;

    sized_take_record(ran, &running, sizeof(running));
    about = (struct prcb_account){.tid = running.tid, .pid = running.pid};
    s->status.asked++;
    if (running.stack_bytes > unwinder_frozen(s->unwinder)->room)
        result = -EINVAL;
    else if (!running.stack_bytes)
        result = -EFAULT;
    else
        result = take_ran(s, &running, &stack);
    s->status.unwound += !result;
    return result ? explain(&about, result, err) : sized_hand_out(&stack, sizeof(stack), ret);
}

/* ---- lines of source -------------------------------------------------------------------- */

static bool frame_fits(const void *item, const void *wanted)
{
    const struct known_name *name = item;
    const struct prcb_frame *frame = wanted;

    return name->file == frame->file && name->place == frame->place &&
           name->function == frame->function;
}

/* Asks for the line of a function's place, once. */
static void find_line(struct prcb_stacks *s, struct known_name *name)
{
    uint64_t began = now_ns();
    char source[UNWINDER_NAME];
    uint32_t line;

    if (name->asked || s->lines_ns > LINES_NS ||
        s->processes[name->process].identity != name->identity)
        return;
    name->asked = true;
    if (!unwinder_line(s->unwinder, (unsigned)name->process, name->address, source, &line) &&
        line) {
        name->source = keep_text(s, source);
        name->line = line;
    }
    s->lines_ns += now_ns() - began;
}

static bool has_frames(const void *item, const void *wanted)
{
    return ((const struct known_stack *)item)->frames == wanted;
}

int prcb_stacks_lines(struct prcb_stacks *s, const struct prcb_stack *stack)
{
    struct known_stack *known =
        find(&s->stacks, hash_of(stack->frames, stack->frame_count), has_frames, stack->frames);

    if (!known)
        return -EINVAL;
    for (uint32_t i = 0; i < known->frame_count; i++) {
        struct prcb_frame *frame = &known->frames[i];
        struct known_name *name = find(&s->names, name_hash(frame), frame_fits, frame);

        if (!frame->address || !frame->file || !name)
            continue;
        find_line(s, name);
        frame->source = name->source;
        frame->line = name->line;
    }
    return 0;
}

/* ---- tasks ------------------------------------------------------------------------------ */

/* Groups that were handed out, with their frames. */
struct known_tasks {
    struct known_tasks *next;
    struct prcb_task_group groups[TASKS_GROUPS];
    struct prcb_frame frames[];
};

static int keep_groups(struct prcb_stacks *s, const struct tasks_answer *said,
                       struct known_tasks *kept)
{
    for (uint32_t i = 0; i < said->frame_count; i++) {
        kept->frames[i] = (struct prcb_frame){
            .function = keep_text(s, said->text + said->frames[i].function),
            .file = keep_text(s, said->text + said->frames[i].file),
            .place = said->frames[i].line,
        };
        if (!kept->frames[i].function || !kept->frames[i].file)
            return not_kept(s);
    }
    for (uint32_t i = 0; i < said->group_count; i++) {
        const struct tasks_group *group = &said->groups[i];

        kept->groups[i] = (struct prcb_task_group){
            .count = group->count,
            .state = keep_text(s, said->text + group->state),
            .locked = group->locked != 0,
            .complete = group->complete != 0,
            .frame_count = group->frames,
            .frames = kept->frames + group->first,
        };
        if (!kept->groups[i].state)
            return not_kept(s);
    }
    return 0;
}

static int keep_tasks(struct prcb_stacks *s, const struct tasks_answer *said,
                      struct prcb_tasks *ret)
{
    size_t size = sizeof(struct known_tasks) + said->frame_count * sizeof(struct prcb_frame);
    struct known_tasks *kept = s->kept < KEPT_MOST ? calloc(1, size) : NULL;
    struct prcb_tasks tasks = {
        .size = sizeof(tasks),
        .runtime = keep_text(s, said->runtime),
        .unread = *said->unread ? keep_text(s, said->unread) : NULL,
        .total = said->total,
        .own = said->own,
        .moved = said->moved,
        .beyond = said->beyond,
        .group_count = said->group_count,
        .kind = keep_text(s, said->kind),
    };

    if (!kept || !tasks.runtime || !tasks.kind)
        return free(kept), not_kept(s);
    tasks.groups = kept->groups;
    kept->next = s->tasks;
    s->tasks = kept;
    s->kept += size;
    return keep_groups(s, said, kept) ? not_kept(s) : sized_hand_out(&tasks, sizeof(tasks), ret);
}

int prcb_stacks_tasks(struct prcb_stacks *s, pid_t pid, struct prcb_tasks *ret,
                      struct prcb_error *err)
{
    const struct prcb_account about = {.tid = pid, .pid = pid};
    const struct tasks_answer *said;
    struct process *process = NULL;
    int result = process_of(s, pid, living_thread(pid), &process);

    if (!result)
        result = unwinder_tasks(s->unwinder, (unsigned)(process - s->processes), pid, &said);
    if (result == -ESTALE) {
        result = load(s, process, pid, process->identity);
        if (!result)
            result = unwinder_tasks(s->unwinder, (unsigned)(process - s->processes), pid, &said);
    }
    if (!result)
        result = keep_tasks(s, said, ret);
    return result ? explain(&about, result, err) : 0;
}

int prcb_stacks_status(struct prcb_stacks *s, struct prcb_stacks_status *ret)
{
    struct prcb_stacks_status status = s->status;

    status.size = sizeof(status);
    status.cpu_ns = unwinder_cpu_ns(s->unwinder) + reach_cpu_ns();
    status.unanswered = reach_hangs();
    return sized_hand_out(&status, sizeof(status), ret);
}

/* ---- readers ---------------------------------------------------------------------------- */

int prcb_stacks_open(struct prcb *p, const struct prcb_stacks_options *opts,
                     struct prcb_stacks **ret, struct prcb_error *err)
{
    struct prcb_stacks_options options;
    struct prcb_stacks *s;
    int result = sized_take_options("prcb_stacks_options", opts, &options, sizeof(options), err);

    if (result)
        return result;
    if (options.flags & ~(uint32_t)(PRCB_STACKS_NATIVE | PRCB_STACKS_SPANS | PRCB_STACKS_FETCHED))
        return prcb_fail(err, -EINVAL, "unknown flags 0x%x", options.flags);
    if (options.max_frames > UNWINDER_FRAMES || options.stack_bytes > UNWINDER_BYTES_MOST)
        return prcb_fail(err, -EINVAL, "at most %u frames and %u bytes of a stack", UNWINDER_FRAMES,
                         UNWINDER_BYTES_MOST);
    result = check_proc_numbers(err);
    if (result)
        return result;
    s = calloc(1, sizeof(*s));
    if (!s)
        return prcb_fail(err, -ENOMEM, "out of memory");
    s->session = p;
    s->copies =
        p && prcb_chosen_chain(p, 0, &(struct prcb_chain){.size = sizeof(struct prcb_chain)},
                               NULL) != -EOPNOTSUPP;
    s->asks_state = !p || prcb_session_tier(p) == PRCB_TIER_PERF || held_in_place();
    s->max_frames = options.max_frames ? options.max_frames : FRAMES_DEFAULT;
    s->stack_bytes = options.stack_bytes ? options.stack_bytes : BYTES_DEFAULT;
    s->ran = malloc(sizeof(*s->ran) + s->max_frames * sizeof(s->ran->frames[0]));
    if (!s->ran) {
        free(s);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    reach_hold();
    s->spans = options.flags & PRCB_STACKS_SPANS;
    result = unwinder_open(options.flags, &s->unwinder, err);
    if (result)
        prcb_stacks_close(s);
    else
        *ret = s;
    return result;
}

void prcb_stacks_close(struct prcb_stacks *s)
{
    if (!s)
        return;
    unwinder_close(s->unwinder);
    free(s->ran);
    free(s->threads);
    reach_release();
    for (size_t i = 0; i < UNWINDER_IMAGES; i++)
        forget(&s->processes[i]);
    alike_free(s->alike);
    empty(&s->waits);
    empty(&s->chains);
    empty(&s->stacks);
    empty(&s->names);
    empty(&s->texts);
    while (s->tasks) {
        struct known_tasks *tasks = s->tasks;

        s->tasks = tasks->next;
        free(tasks);
    }
    free(s);
}
