/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

const char *const cpu_not_interrupts[] = {"TLB", "PMI", "RTR", "MCE", "MCP", "ERR", "MIS", NULL};

/* ---- parsers ---- */

static int take_range(struct words *text, uint64_t *ret_first, uint64_t *ret_last)
{
    if (words_take_digits(text, ret_first))
        return -EBADMSG;
    *ret_last = *ret_first;
    if (text->at < text->end && *text->at == '-') {
        text->at++;
        if (words_take_digits(text, ret_last))
            return -EBADMSG;
    }
    return *ret_last < *ret_first || *ret_last >= MOST_PROCESSORS ? -EBADMSG : 0;
}

static int parse_ranges(struct words *text, bool *ret, uint32_t room, uint32_t *ret_end)
{
    while (text->at < text->end) {
        uint64_t first, last;

        if (take_range(text, &first, &last))
            return -EBADMSG;
        for (uint64_t n = first; ret && n <= last && n < room; n++)
            ret[n] = true;
        if (last + 1 > *ret_end)
            *ret_end = (uint32_t)last + 1;
        if (text->at == text->end)
            break;
        if (*text->at++ != ',' || text->at == text->end)
            return -EBADMSG;
    }
    return 0;
}

int cpu_parse_list(const char *text, size_t length, bool *ret, uint32_t room, uint32_t *ret_end)
{
    struct words all = {text, text + length}, line = all, again;
    uint32_t end = 0;

    words_take_line(&all, &line);
    again = line;
    if (all.at != all.end || parse_ranges(&line, NULL, 0, &end))
        return -EBADMSG;
    memset(ret, 0, room * sizeof(*ret));
    parse_ranges(&again, ret, room, &end);
    *ret_end = end;
    return 0;
}

static int parse_stat_line(struct words *line, struct cpu_stat *ret)
{
    struct cpu_stat stat = {0};
    uint64_t number;

    if (words_take_digits(line, &number) || number >= MOST_PROCESSORS)
        return -EBADMSG;
    stat.number = (uint32_t)number;
    while (stat.fields < CPU_STAT_FIELDS &&
           !words_take_number(line, UINT64_MAX, &stat.ticks[stat.fields]))
        stat.fields++;
    words_skip_blanks(line);
    /* Either all known columns were there, or the line ended after a number. */
    if (stat.fields <= CPU_STAT_IDLE || (stat.fields < CPU_STAT_FIELDS && line->at < line->end))
        return -EBADMSG;
    *ret = stat;
    return 1;
}

int cpu_parse_stat(const char **at, const char *end, struct cpu_stat *ret)
{
    struct words text = {*at, end}, line;

    while (words_take_line(&text, &line)) {
        if (!words_take_prefix(&line, "cpu"))
            break; /* they come first */
        if (!words_is_digit(&line))
            continue; /* the sum of all */
        *at = text.at;
        return parse_stat_line(&line, ret);
    }
    *at = end;
    return 0;
}

/* The line "           CPU0       CPU1" tells which processor each column is of. */
static int parse_header(struct words *line, uint16_t *columns, uint32_t *ret_count)
{
    uint32_t count = 0;

    for (words_skip_blanks(line); line->at < line->end; words_skip_blanks(line)) {
        uint64_t number;

        if (!words_take_prefix(line, "CPU") || words_take_number(line, UINT64_MAX, &number) ||
            number >= MOST_PROCESSORS || count == MOST_PROCESSORS)
            return -EBADMSG;
        columns[count++] = (uint16_t)number;
    }
    *ret_count = count;
    return count ? 0 : -EBADMSG;
}

static bool is_skipped(const char *label, size_t length, const char *const *skip)
{
    for (; skip && *skip; skip++) {
        if (strlen(*skip) == length && !memcmp(*skip, label, length))
            return true;
    }
    return false;
}

static int add_row(struct words *line, const char *const *skip, const uint16_t *columns,
                   uint32_t count, uint64_t *ret, uint32_t room)
{
    const char *colon;
    struct words check;
    uint32_t numbers = 0;
    uint64_t value;

    words_skip_blanks(line);
    if (line->at == line->end)
        return 0;
    colon = memchr(line->at, ':', (size_t)(line->end - line->at));
    if (!colon)
        return -EBADMSG;
    if (is_skipped(line->at, (size_t)(colon - line->at), skip))
        return 0;
    line->at = colon + 1;
    for (check = *line; numbers < count && !words_take_number(&check, UINT64_MAX, &value);)
        numbers++;
    if (numbers < count)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!words_take_number(line, UINT64_MAX, &value) && columns[i] < room)
            ret[columns[i]] += value;
    }
    return 0;
}

int cpu_parse_columns(const char *text, size_t length, const char *const *skip, uint64_t *ret,
                      uint32_t room)
{
    struct words all = {text, text + length}, line;
    uint16_t columns[MOST_PROCESSORS];
    uint32_t count;

    memset(ret, 0, room * sizeof(*ret));
    if (!words_take_line(&all, &line) || parse_header(&line, columns, &count))
        return -EBADMSG;
    while (words_take_line(&all, &line)) {
        if (add_row(&line, skip, columns, count, ret, room))
            return -EBADMSG;
    }
    return 0;
}

/* Finds the value behind "key\t: ". */
static bool take_key(struct words *line, const char *key)
{
    if (!words_take_prefix(line, key))
        return false;
    words_skip_blanks(line);
    if (!words_take_prefix(line, ":"))
        return false;
    words_skip_blanks(line);
    return true;
}

int cpu_parse_mhz(const char *text, size_t length, uint32_t *ret, uint32_t room)
{
    struct words all = {text, text + length}, line;
    uint64_t number = UINT64_MAX, value;

    memset(ret, 0, room * sizeof(*ret));
    while (words_take_line(&all, &line)) {
        if (take_key(&line, "processor")) {
            if (words_take_digits(&line, &number))
                number = UINT64_MAX; /* arm's oldest: "Processor : ARMv7 ..." has no number */
        } else if (take_key(&line, "cpu MHz")) {
            if (words_take_digits(&line, &value) || value > UINT32_MAX)
                return -EBADMSG;
            if (number < room)
                ret[number] = (uint32_t)value;
        }
    }
    return 0;
}

int cpu_parse_number(const char *text, size_t length, uint64_t *ret)
{
    struct words all = {text, text + length}, line = all;
    uint64_t value;

    words_take_line(&all, &line);
    if (all.at != all.end || words_take_number(&line, UINT64_MAX, &value))
        return -EBADMSG;
    words_skip_blanks(&line);
    if (line.at != line.end)
        return -EBADMSG;
    *ret = value;
    return 0;
}

int cpu_parse_name(const char *text, size_t length, char *ret, size_t room)
{
    struct words all = {text, text + length}, line = all;
    size_t used = 0;

    words_take_line(&all, &line);
    words_skip_blanks(&line);
    if (line.at == line.end)
        return -EBADMSG;
    while (line.end[-1] == ' ' || line.end[-1] == '\t')
        line.end--;
    for (; line.at < line.end && used + 1 < room; line.at++)
        ret[used++] = *line.at >= ' ' && *line.at < 127 ? *line.at : '?';
    ret[used] = '\0';
    return 0;
}

/* ---- readers ---- */

#define CPU_FOLDER "sys/devices/system/cpu"

static int read_number(struct procfs *fs, uint32_t number, const char *file, uint64_t *ret)
{
    char path[128];
    size_t length;
    int result;

    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%u/%s", number, file);
    result = procfs_read(fs, path, &length);
    return result ? result : cpu_parse_number(fs->buffer, length, ret);
}

/* cpufreq writes kilohertz, CPPC megahertz. The first row of a member that can be read is taken. */
static const struct {
    const char *file;
    uint32_t member; /* enum cpu_sysfs_member */
    uint32_t per_mhz;
    size_t offset;
} frequencies[] = {
    {"cpufreq/scaling_cur_freq", CPU_SYSFS_MHZ, 1000, offsetof(struct cpu_sysfs, mhz)},
    {"cpufreq/cpuinfo_max_freq", CPU_SYSFS_MAX, 1000, offsetof(struct cpu_sysfs, max_mhz)},
    {"cpufreq/scaling_max_freq", CPU_SYSFS_LIMIT, 1000, offsetof(struct cpu_sysfs, limit_mhz)},
    {"cpufreq/scaling_min_freq", CPU_SYSFS_MIN, 1000, offsetof(struct cpu_sysfs, min_mhz)},
    {"cpufreq/base_frequency", CPU_SYSFS_NOMINAL, 1000, offsetof(struct cpu_sysfs, nominal_mhz)},
    {"acpi_cppc/nominal_freq", CPU_SYSFS_NOMINAL, 1, offsetof(struct cpu_sysfs, nominal_mhz)},
};

static void read_frequencies(struct procfs *fs, uint32_t number, struct cpu_sysfs *ret)
{
    for (size_t i = 0; i < sizeof(frequencies) / sizeof(frequencies[0]); i++) {
        uint32_t mhz;
        uint64_t value;

        if (ret->present & frequencies[i].member ||
            read_number(fs, number, frequencies[i].file, &value) || !value ||
            value / frequencies[i].per_mhz > UINT32_MAX)
            continue;
        mhz = (uint32_t)(value / frequencies[i].per_mhz);
        memcpy((char *)ret + frequencies[i].offset, &mhz, sizeof(mhz));
        ret->present |= frequencies[i].member;
    }
}

static int read_name(struct procfs *fs, const char *path, char *ret)
{
    size_t length;
    int result = procfs_read(fs, path, &length);

    return result ? result : cpu_parse_name(fs->buffer, length, ret, CPU_FILES_NAME);
}

static int read_state_name(struct procfs *fs, uint32_t number, uint32_t state, char *ret)
{
    char path[128];

    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%u/cpuidle/state%u/name", number, state);
    return read_name(fs, path, ret);
}

static int read_state(struct procfs *fs, uint32_t number, uint32_t state, struct cpu_sysfs *ret)
{
    uint64_t microseconds;
    char file[64];

    if (read_state_name(fs, number, state, ret->idle_states[state].name))
        return -ENOENT;
    snprintf(file, sizeof(file), "cpuidle/state%u/usage", state);
    if (read_number(fs, number, file, &ret->idle_states[state].entries))
        return -ENOENT;
    snprintf(file, sizeof(file), "cpuidle/state%u/time", state);
    if (read_number(fs, number, file, &microseconds) || microseconds > UINT64_MAX / 1000)
        return -ENOENT;
    ret->idle_states[state].residency_ns = microseconds * 1000;
    return 0;
}

void cpu_read_sysfs(struct procfs *fs, uint32_t number, struct cpu_sysfs *ret)
{
    memset(ret, 0, sizeof(*ret));
    read_frequencies(fs, number, ret);
    if (!read_number(fs, number, "thermal_throttle/core_throttle_count", &ret->throttles) ||
        !read_number(fs, number, "thermal_throttle/package_throttle_count", &ret->throttles))
        ret->present |= CPU_SYSFS_THROTTLES;
}

void cpu_read_idle_states(struct procfs *fs, uint32_t number, struct cpu_sysfs *ret)
{
    while (ret->idle_state_count < CPU_FILES_IDLE_STATES &&
           !read_state(fs, number, ret->idle_state_count, ret))
        ret->idle_state_count++;
    if (ret->idle_state_count)
        ret->present |= CPU_SYSFS_IDLE;
}

int cpu_read_idle_driver(struct procfs *fs, char *ret)
{
    return read_name(fs, CPU_FOLDER "/cpuidle/current_driver", ret);
}

bool cpu_has_idle_state(struct procfs *fs, uint32_t number, uint32_t count)
{
    char name[CPU_FILES_NAME];

    return count < CPU_FILES_IDLE_STATES && !read_state_name(fs, number, count, name);
}

static int list_of_stat(struct procfs *fs, bool *ret, uint32_t room, uint32_t *ret_end)
{
    struct cpu_stat stat;
    const char *at, *end;
    size_t length;
    uint32_t last = 0;
    int result = procfs_read(fs, "proc/stat", &length);

    if (result)
        return result;
    memset(ret, 0, room * sizeof(*ret));
    end = fs->buffer + length;
    for (at = fs->buffer; (result = cpu_parse_stat(&at, end, &stat)) > 0;) {
        if (stat.number < room)
            ret[stat.number] = true;
        if (stat.number >= last)
            last = stat.number + 1;
    }
    if (!result)
        *ret_end = last;
    return result;
}

int cpu_read_list(struct procfs *fs, const char *which, bool *ret, uint32_t room, uint32_t *ret_end)
{
    char path[64];
    size_t length;
    int result;

    snprintf(path, sizeof(path), CPU_FOLDER "/%s", which);
    result = procfs_read(fs, path, &length);
    if (result == -ENOENT || result == -ENOTDIR)
        return list_of_stat(fs, ret, room, ret_end);
    return result ? result : cpu_parse_list(fs->buffer, length, ret, room, ret_end);
}

void cpu_read_present(struct procfs *fs, bool *ret, uint32_t room)
{
    size_t length;
    uint32_t end;

    if (!procfs_read(fs, CPU_FOLDER "/present", &length) &&
        !cpu_parse_list(fs->buffer, length, ret, room, &end))
        return;
    memset(ret, true, room * sizeof(*ret));
}
