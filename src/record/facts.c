/* SPDX-License-Identifier: BSD-2-Clause */
#include "facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll

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

int facts_write_times(struct writer *writer, uint64_t time_ns)
{
    int64_t tick = NS_PER_S / sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    int result = 0;
    char line[512];

    if (!file)
        return 0; /* no row says that it was not known */
    while (!result && fgets(line, sizeof(line), file)) {
        long long user, nice, kernel, idle, iowait, irq, softirq, steal;
        unsigned cpu;

        if (!strncmp(line, "cpu ", 4))
            continue; /* the sum */
        if (sscanf(line, "cpu%u %lld %lld %lld %lld %lld %lld %lld %lld", &cpu, &user, &nice,
                   &kernel, &idle, &iowait, &irq, &softirq, &steal) == 9)
            result = writer_times(writer, &(struct writer_times){
                                              .time_ns = time_ns,
                                              .cpu = cpu,
                                              .user_ns = (user + nice) * tick,
                                              .kernel_ns = kernel * tick,
                                              .idle_ns = (idle + iowait) * tick,
                                              .dpc_ns = softirq * tick,
                                              .interrupt_ns = irq * tick,
                                              .steal_ns = steal * tick,
                                          });
    }
    fclose(file);
    return result;
}
