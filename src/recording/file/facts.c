/* SPDX-License-Identifier: BSD-2-Clause */
#include "facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "first_line.h"

int facts_write_machine(struct writer *writer)
{
    struct utsname name;
    char text[256];
    int result = 0;

    if (!uname(&name)) {
        result = writer_fact(writer, "host", "%s", name.nodename);
        if (!result)
            result = writer_fact(writer, "kernel", "%s", name.release);
        if (!result)
            result = writer_fact(writer, "machine", "%s", name.machine);
    }
    if (!result)
        result = writer_fact(writer, "processors", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (!result && line_after("/proc/cpuinfo", "model name", text, sizeof(text)))
        result = writer_fact(writer, "processor_model", "%s", text);
    if (!result && line_after("/proc/meminfo", "MemTotal", text, sizeof(text)))
        result = writer_fact(writer, "memory", "%s", text);
    if (!result && line_after("/proc/sys/kernel/random/boot_id", "", text, sizeof(text)))
        result = writer_fact(writer, "boot_id", "%s", text);
    return result;
}

int facts_write_clock(struct writer *writer, const char *name)
{
    time_t now = time(NULL);
    struct tm parts;
    char text[32];

    gmtime_r(&now, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return writer_fact(writer, name, "%s", text);
}

int facts_write_times(struct writer *writer, struct prcb_processors *processors, uint64_t time_ns)
{
    struct prcb_processor now = {.size = sizeof(now)};
    int result = 0;

    prcb_processors_refresh(processors, NULL);
    for (uint32_t i = 0; i < prcb_processors_count(processors) && !result; i++) {
        struct writer_times row = {.time_ns = time_ns, .cpu = i};

        /* A missing row tells that it was not known, or that there is no such processor. */
        if (prcb_processor_read(processors, i, &now) || !(now.flags & PRCB_CPU_ONLINE))
            continue;
        for (const struct figure *figure = processor_figures; figure->name; figure++) {
            if (figure->kind == FIGURE_PART)
                row.parts[figure->index] =
                    now.present & figure->present ? (int64_t)figure_get(figure, &now) : -1;
        }
        result = writer_times(writer, &row);
    }
    return result;
}
