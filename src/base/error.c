/* SPDX-License-Identifier: BSD-2-Clause */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int prcb_fail(struct prcb_error *err, int code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    err->code = code;
    err->offset = 0;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
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
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    length = strlen(err->text);
    snprintf(err->text + length, sizeof(err->text) - length, "%s", old);
}
