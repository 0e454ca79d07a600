/* SPDX-License-Identifier: BSD-2-Clause */
#include "demangle.h"

#ifdef HAVE_DEMANGLE

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#define SYMBOL_MAX 4096

struct writing {
    char *buffer;
    size_t used;
    jmp_buf too_long;
};

/* A symbol of some hundred bytes can stand for a name of any length, as its parts refer to each
 * other: writing stops at a length that no reader would follow. The caller, libiberty, has
 * allocated nothing, and there is no other way to make it end. */
static void take(const char *text, size_t length, void *ctx)
{
    struct writing *writing = ctx;

    if (length >= DEMANGLED_MAX - writing->used)
        longjmp(writing->too_long, 1);
    memcpy(writing->buffer + writing->used, text, length);
    writing->used += length;
    writing->buffer[writing->used] = '\0';
}

const char *demangle(const char *symbol, char *buffer)
{
    static const int options = DMGL_PARAMS | DMGL_ANSI;
    struct writing writing = {.buffer = buffer};

    /* All such names start with _Z or _R; a C function may, too. */
    if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R') || strlen(symbol) > SYMBOL_MAX)
        return symbol;
    if (setjmp(writing.too_long))
        return symbol;
    /* Rust's older names are C++'s with a hash behind them. */
    if (rust_demangle_callback(symbol, options, take, &writing) && writing.used)
        return buffer;
    writing.used = 0;
    if (cplus_demangle_v3_callback(symbol, options, take, &writing) && writing.used)
        return buffer;
    return symbol;
}

#else

const char *demangle(const char *symbol, char *buffer)
{
    (void)buffer;
    return symbol;
}

#endif
