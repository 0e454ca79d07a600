/* SPDX-License-Identifier: BSD-2-Clause */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* Many messages contain text that others chose, and programs print messages as they are. */
static void set_text(struct prcb_error *err, const char *format, va_list args)
{
    char raw[sizeof(err->text)];

    vsnprintf(raw, sizeof(raw), format, args);
    text_copy(TEXT_ESCAPES, raw, err->text, sizeof(err->text));
}

int prcb_fail(struct prcb_error *err, int code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    err->code = code;
    err->offset = 0;
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    return code;
}

void prcb_error_prepend(struct prcb_error *err, const char *format, ...)
{
    char old[sizeof(err->text)];
    va_list args;
    size_t length;

    if (!err)
        return;
    memcpy(old, err->text, sizeof(old));
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    length = strlen(err->text);
    snprintf(err->text + length, sizeof(err->text) - length, "%s", old);
}
