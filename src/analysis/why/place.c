/* SPDX-License-Identifier: BSD-2-Clause */
#include "place.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static bool is_kernel(const struct prcb_frame *frame)
{
    return !frame->address && frame->file && *frame->file == '[';
}

static bool in_c_library(const struct prcb_frame *frame)
{
    const char *name = file_name(frame);

    return begins(name, "libc.so") || begins(name, "libc-") || begins(name, "libpthread") ||
           begins(name, "ld-");
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

/* What packages install is the program's only where it is no library. */
static bool in_library(const struct prcb_frame *frame)
{
    const char *file = frame->file ? frame->file : "";

    if (BEGINS_ANY(file_name(frame), runtimes) && !strstr(file, ".py"))
        return true;
    return strstr(file, "/lib/python3") ||
           ((begins(file, "/usr/") || begins(file, "/lib")) && strstr(file, ".so"));
}

const struct prcb_frame *place_of(const struct prcb_stack *stack)
{
    const struct prcb_frame *fallback = NULL, *unnamed = NULL;

    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct prcb_frame *frame = &stack->frames[i];

        if (is_kernel(frame) || in_c_library(frame))
            continue;
        if (!frame->function) {
            unnamed = unnamed ? unnamed : frame;
            continue;
        }
        if (in_library(frame) || BEGINS_ANY(frame->function, standard)) {
            fallback = fallback ? fallback : frame;
            continue;
        }
        /* A function without a name in front of it may be the one that is meant. */
        return unnamed && !in_library(unnamed) && !strcmp(frame->function, "main") ? unnamed
                                                                                   : frame;
    }
    return fallback ? fallback : unnamed;
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
    while ((at = strchr(at, '(')) && !ends_name(name, at))
        at++;
    snprintf(ret, size, "%.*s()", (int)(at ? (size_t)(at - name) : strlen(name)), name);
}
