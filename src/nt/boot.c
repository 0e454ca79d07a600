/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's own figures since the system's start, to its tick: /proc/stat, /proc/interrupts and
 * /proc/softirqs, read once when the view is opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "view.h"

#define USER_HZ_NS 10000000ull

char *nt_read_file(const char *root, const char *path)
{
    char name[PATH_MAX], *text = NULL, *grown;
    size_t length = 0, room = 0;
    ssize_t got = 1;
    int fd;

    snprintf(name, sizeof(name), "%s%s", root ? root : "", path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    while (got > 0) {
        if (length + 1 >= room) {
            room = room ? room * 2 : 8192;
            grown = realloc(text, room);
            if (!grown)
                break;
            text = grown;
        }
        got = read(fd, text + length, room - length - 1);
        length += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (got) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');

    return end ? end + 1 : at + strlen(at);
}

/* Numbers from *at on, which stays on the line; how many there were. */
static unsigned numbers(const char **at, uint64_t *ret, unsigned room)
{
    unsigned count = 0;

    while (count < room) {
        char *end;

        *at += strspn(*at, " \t");
        if (**at < '0' || **at > '9')
            break;
        ret[count++] = strtoull(*at, &end, 10);
        *at = end;
    }
    return count;
}

int nt_boot_parse_stat(const char *text, uint32_t count, struct nt_boot *ret,
                       uint64_t *ret_switches)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    int result = -EINVAL;

    for (; *text; text = next_line(text)) {
        uint64_t ticks[FIELDS] = {0}, number;
        const char *at = text + 3;

        if (!strncmp(text, "ctxt ", 5)) {
            at = text + 5;
            if (numbers(&at, ret_switches, 1))
                result = 0;
        }
        if (strncmp(text, "cpu", 3) || *at == ' ' || !numbers(&at, &number, 1) || number >= count ||
            numbers(&at, ticks, FIELDS) <= IDLE)
            continue;
        ret[number].user_ns = (ticks[USER] + ticks[NICE]) * USER_HZ_NS; /* guests are inside */
        ret[number].kernel_ns = ticks[SYSTEM] * USER_HZ_NS;
        ret[number].idle_ns = (ticks[IDLE] + ticks[IOWAIT]) * USER_HZ_NS;
        ret[number].interrupt_ns = ticks[IRQ] * USER_HZ_NS;
        ret[number].dpc_ns = ticks[SOFTIRQ] * USER_HZ_NS;
        ret[number].steal_ns = ticks[STEAL] * USER_HZ_NS;
    }
    return result;
}

/* Numbers of a row go to the processors that the head names in turn. */
static void add_row(const char *row, const uint32_t *columns, uint32_t count, uint32_t *room,
                    uint64_t *ret)
{
    uint64_t value;

    for (uint32_t i = 0; i < *room && numbers(&row, &value, 1); i++) {
        if (columns[i] < count)
            ret[columns[i]] += value;
    }
}

void nt_boot_parse_columns(const char *text, uint32_t count, uint64_t *ret)
{
    uint32_t *columns = calloc(count + 1, sizeof(*columns)), found = 0;
    const char *at = text, *end = next_line(text);

    while (columns && found < count && (at = strstr(at, "CPU")) && at < end) {
        at += 3;
        columns[found++] = (uint32_t)strtoul(at, NULL, 10);
    }
    for (text = end; found && *text; text = next_line(text)) {
        const char *label = text + strspn(text, " "), *colon = strchr(label, ':');

        /* These two are of the system: one number, under the first column. */
        if (!colon || colon > next_line(text) || !strncmp(label, "ERR:", 4) ||
            !strncmp(label, "MIS:", 4))
            continue;
        add_row(colon + 1, columns, count, &found, ret);
    }
    free(columns);
}

static void read_columns(const char *root, const char *path, uint32_t count, struct nt_boot *boot,
                         size_t member)
{
    uint64_t *sums = calloc(count, sizeof(*sums));
    char *text = nt_read_file(root, path);

    if (sums && text) {
        nt_boot_parse_columns(text, count, sums);
        for (uint32_t i = 0; i < count; i++)
            memcpy((char *)&boot[i] + member, &sums[i], sizeof(sums[i]));
    }
    free(text);
    free(sums);
}

int nt_boot_read(const char *root, uint32_t count, struct nt_boot *ret, uint64_t *ret_switches,
                 struct prcb_error *err)
{
    char *text = nt_read_file(root, "/proc/stat");
    int result = text ? nt_boot_parse_stat(text, count, ret, ret_switches) : -errno;

    free(text);
    if (result)
        return prcb_fail(err, result, "%s/proc/stat: %s", root ? root : "",
                         result == -EINVAL ? "not what the kernel writes" : strerror(-result));
    read_columns(root, "/proc/interrupts", count, ret, offsetof(struct nt_boot, interrupts));
    read_columns(root, "/proc/softirqs", count, ret, offsetof(struct nt_boot, dpcs));
    return 0;
}
