/* SPDX-License-Identifier: BSD-2-Clause */
#include "facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The first line of a file that starts with a word, without the word; or its first line. */
static bool read_word(const char *path, const char *word, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = false;
    char line[512];

    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        const char *value = line + strlen(word);

        if (strncmp(line, word, strlen(word)))
            continue;
        value += strspn(value, " \t:");
        snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
        found = true;
    }
    fclose(file);
    return found;
}

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
    if (!result && read_word("/proc/cpuinfo", "model name", text, sizeof(text)))
        result = writer_fact(writer, "processor_model", "%s", text);
    if (!result && read_word("/proc/meminfo", "MemTotal", text, sizeof(text)))
        result = writer_fact(writer, "memory", "%s", text);
    if (!result && read_word("/proc/sys/kernel/random/boot_id", "", text, sizeof(text)))
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

static int write_times(struct writer *writer, struct writer_times *row,
                       const struct prcb_processor *now)
{
    const struct {
        uint64_t member, value;
        int64_t *ret;
    } figures[] = {
        {PRCB_CPU_HAS_TIMES, now->user_ns, &row->user_ns},
        {PRCB_CPU_HAS_TIMES, now->kernel_ns, &row->kernel_ns},
        {PRCB_CPU_HAS_TIMES, now->idle_ns, &row->idle_ns},
        {PRCB_CPU_HAS_DPC, now->dpc_ns, &row->dpc_ns},
        {PRCB_CPU_HAS_INTERRUPT, now->interrupt_ns, &row->interrupt_ns},
        {PRCB_CPU_HAS_STEAL, now->steal_ns, &row->steal_ns},
    };

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        *figures[i].ret = now->present & figures[i].member ? (int64_t)figures[i].value : -1;
    return writer_times(writer, row);
}

int facts_write_times(struct writer *writer, struct prcb_processors *processors, uint64_t time_ns)
{
    struct prcb_processor now = {.size = sizeof(now)};
    int result = 0;

    prcb_processors_refresh(processors, NULL);
    for (uint32_t i = 0; i < prcb_processors_count(processors) && !result; i++) {
        struct writer_times row = {.time_ns = time_ns, .cpu = i};

        /* No row says that it was not known, or that there is no such processor. */
        if (prcb_processor_read(processors, i, &now) || !(now.flags & PRCB_CPU_ONLINE))
            continue;
        result = write_times(writer, &row, &now);
    }
    return result;
}
