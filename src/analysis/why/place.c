/* SPDX-License-Identifier: BSD-2-Clause */
#include "place.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libc_file.h"

/* Programs and libraries that run others' code: by how their files' names begin. */
static const char *const runtimes[] = {"python3", "libpython", "libjvm",  "libjava",  "node",
                                       "libnode", "ruby",      "libruby", "beam.smp", "php"};

/* Functions of runtimes and standard libraries that are in the program's own file, or that were
 * compiled at run time: by how they begin. */
static const char *const standard[] = {
    /* Go */
    "runtime.", "runtime/", "sync.", "internal/", "syscall.", "time.Sleep", "net.", "net/", "os.",
    "io.", "bufio.", "database/sql.", "crypto/",
    /* Rust, C++ */
    "std::", "<std::", "core::", "<core::", "alloc::", "tokio::", "<tokio::", "parking_lot",
    "<parking_lot", "mio::", "<mio::", "rayon_core::", "__gnu_cxx::", "__cxa_", "__gthread",
    "boost::asio::",
    /* Java, JavaScript */
    "java.", "jdk.", "sun.", "Interpreter", "call_stub", "Builtins_", "node:",
    /* PostgreSQL, which has one way of waiting for all */
    "WaitEventSetWait", "WaitLatch", "ProcSleep", "LockAcquire", "LWLock", "ConditionVariableSleep",
    /* C, where libc is in the file */
    "pthread_", "__pthread_", "___pthread_", "__lll_", "__libc_", "start_thread", "_start"};

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static const char *file_name(const struct prcb_frame *frame)
{
    const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

    return slash ? slash + 1 : frame->file ? frame->file : "";
}

/* A function that an interpreter runs: its file is the source, its place the line. */
static bool is_interpreted(const struct prcb_frame *frame)
{
    return !frame->address && frame->place;
}

static bool is_kernel(const struct prcb_frame *frame)
{
    return !frame->address && !frame->place && frame->file && *frame->file == '[';
}

static bool begins_any(const char *text, const char *const *with, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (begins(text, with[i]))
            return true;
    }
    return false;
}
#define BEGINS_ANY(text, with) begins_any(text, with, sizeof(with) / sizeof(*(with)))

static bool in_runtime(const struct prcb_frame *frame)
{
    return BEGINS_ANY(file_name(frame), runtimes) && !is_interpreted(frame);
}

/* What packages install is the program's only where it is no library. */
static bool in_library(const struct prcb_frame *frame)
{
    const char *file = frame->file ? frame->file : "";

    return strstr(file, "/lib/python3") || strstr(file, "/node_modules/") ||
           strstr(file, "/lib/ruby/") || begins(file, "<internal:") || begins(file, "node:") ||
           !strcmp(file, "(built in)") ||
           ((begins(file, "/usr/") || begins(file, "/lib")) && strstr(file, ".so"));
}

/* Whether a function's name says that it is a standard library's: Go's and Java's have unmistakable
 * names, those of another interpreter may be anybody's. */
static bool is_standard(const struct prcb_frame *frame)
{
    const char *end = frame->file ? strrchr(frame->file, '.') : NULL;

    /* Node's own, as V8 says them: "JS:~execSync node:child_process:954:18". */
    if (begins(frame->function, "JS:") && strstr(frame->function, " node:"))
        return true;
    return BEGINS_ANY(frame->function, standard) &&
           (!is_interpreted(frame) || !strcmp(frame->file, "Unknown Source") ||
            (end && (!strcmp(end, ".go") || !strcmp(end, ".java"))));
}

/* Whether a function is what its program is for, rather than how it waits. */
static bool is_own(const struct prcb_frame *frame)
{
    return !is_kernel(frame) && !is_libc_name(file_name(frame)) && !in_runtime(frame) &&
           !in_library(frame) && frame->function && !is_standard(frame);
}

/* A function that every stack has at its outer end says nothing. */
static bool is_outermost(const struct prcb_frame *frame)
{
    return !frame->function || !strcmp(frame->function, "main") ||
           !strcmp(frame->function, "<main>") || !strcmp(frame->function, "<module>") ||
           !strcmp(frame->function, "main.main");
}

const struct prcb_frame *place_of(const struct prcb_stack *stack, const struct prcb_frame **ret_by)
{
    const struct prcb_frame *library = NULL, *unnamed = NULL;

    *ret_by = NULL;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct prcb_frame *frame = &stack->frames[i];

        if (is_own(frame)) {
            /* A function without a name in front of it may be the one that is meant. */
            if (unnamed && is_outermost(frame))
                return unnamed;
            if (i + 1 < stack->frame_count && is_own(frame + 1) && !is_outermost(frame + 1))
                *ret_by = frame + 1;
            return frame;
        }
        if (is_kernel(frame) || is_libc_name(file_name(frame)) || in_runtime(frame) || !frame->file)
            continue;
        if (!frame->function)
            unnamed = unnamed || in_library(frame) ? unnamed : frame;
        else if (!is_standard(frame))
            library = library ? library : frame;
    }
    return unnamed ? unnamed : library;
}

/* Whether an opening bracket at this place begins the types of arguments: not where it is a part of
 * the name, as in "main.(*Cache).Get", "(anonymous namespace)::get(int)", "operator()". */
static bool ends_name(const char *name, const char *at)
{
    return at > name && at[-1] != '.' && at[-1] != ':' && !begins(at, "(anonymous") &&
           !(at - name >= 8 && !memcmp(at - 8, "operator", 8));
}

void place_name(const struct prcb_frame *frame, char *ret, size_t size)
{
    const char *name = frame->function, *at = name;

    if (!name && frame->file) {
        snprintf(ret, size, "%s+0x%" PRIx64, file_name(frame), frame->place);
        return;
    }
    if (!name) {
        snprintf(ret, size, "0x%" PRIx64, frame->address);
        return;
    }
    if (begins(name, "JS:")) { /* then how it was compiled, its name, and where it is */
        name += 3 + strspn(name + 3, "~^*+");
        snprintf(ret, size, "%.*s()", (int)strcspn(name, " "), name);
        return;
    }
    while ((at = strchr(at, '(')) && !ends_name(name, at))
        at++;
    snprintf(ret, size, "%.*s()", (int)(at ? (size_t)(at - name) : strlen(name)), name);
}

void place_line(const struct prcb_frame *frame, char *ret, size_t size)
{
    const char *slash = frame->source ? strrchr(frame->source, '/') : NULL;

    *ret = '\0';
    if (is_interpreted(frame) && frame->file && *frame->file &&
        strcmp(frame->file, "Unknown Source") != 0)
        snprintf(ret, size, "%s:%" PRIu64, file_name(frame), frame->place);
    else if (frame->source)
        snprintf(ret, size, "%s:%" PRIu64, slash ? slash + 1 : frame->source, frame->line);
}

const struct prcb_frame *place_of_part(const struct why_part *part,
                                       const struct prcb_frame **ret_by)
{
    *ret_by = NULL;
    return part->kind == WHY_STACK ? place_of(&part->stack, ret_by) : NULL;
}

bool place_is_interpreted(const struct why_part *part)
{
    const struct prcb_frame *by, *frame = place_of_part(part, &by);

    return frame && (is_interpreted(frame) || (frame->function && begins(frame->function, "JS:")));
}

const char *place_in_kernel(const struct why_part *part)
{
    const struct prcb_frame *frame =
        part->kind == WHY_STACK && part->stack.frame_count ? part->stack.frames : NULL;

    return frame && is_kernel(frame) ? frame->function : NULL;
}

void place_text(const struct why_part *part, char *ret, size_t size)
{
    const struct prcb_frame *by, *frame = place_of_part(part, &by);

    *ret = '\0';
    if (frame)
        place_name(frame, ret, size);
}
