/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "text.h"

#define MOST_A_SECOND 20

static void put(enum log_level level, const char *format, va_list args)
{
    char raw[1024], line[sizeof(raw)];

    vsnprintf(raw, sizeof(raw), format, args);
    text_copy(TEXT_ESCAPES, raw, line, sizeof(line));
    if (getenv("JOURNAL_STREAM"))
        fprintf(stderr, "<%d>%s\n", (int)level, line);
    else
        fprintf(stderr, "prcbd: %s\n", line);
}

void log_line(enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put(level, format, args);
    va_end(args);
}

void log_client(const char *format, ...)
{
    static time_t second;
    static unsigned lines;
    struct timespec now;
    va_list args;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != second) {
        if (lines > MOST_A_SECOND)
            log_line(LOG_LINE_WARNING, "%u lines about clients were left out",
                     lines - MOST_A_SECOND);
        second = now.tv_sec;
        lines = 0;
    }
    if (++lines > MOST_A_SECOND)
        return;
    va_start(args, format);
    put(LOG_LINE_INFO, format, args);
    va_end(args);
}
