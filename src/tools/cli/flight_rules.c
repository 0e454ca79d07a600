/* SPDX-License-Identifier: BSD-2-Clause */
#include "flight_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_at.h"
#include "options.h"
#include "read_file.h"

/* With a unit: a bare number would be of none. */
static bool parse_time(const char *text, size_t length, uint64_t *ret)
{
    char word[32];

    if (!length || length >= sizeof(word) || strchr("0123456789.", text[length - 1]))
        return false;
    snprintf(word, sizeof(word), "%.*s", (int)length, text);
    return !cli_parse_duration(word, 1, ret);
}

static bool parse_cause(const char *text, size_t length, uint32_t *ret)
{
    if (length == 5 && !strncmp(text, "ready", length)) {
        *ret = PRCB_CAUSE_NONE;
        return true;
    }
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (info && info->kind == PRCB_KIND_WAIT && strlen(info->name) == length &&
            !strncmp(info->name, text, length)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool parse_filter(const char *text, size_t length, struct flight_rule *rule)
{
    static const char comm[] = "comm=", cgroup[] = "cgroup=";

    if (!strncmp(text, comm, sizeof(comm) - 1))
        return (size_t)snprintf(rule->comm, sizeof(rule->comm), "%.*s",
                                (int)(length - sizeof(comm) + 1),
                                text + sizeof(comm) - 1) < sizeof(rule->comm);
    if (!strncmp(text, cgroup, sizeof(cgroup) - 1) && text[sizeof(cgroup) - 1] == '/')
        return (size_t)snprintf(rule->cgroup, sizeof(rule->cgroup), "%.*s",
                                (int)(length - sizeof(cgroup) + 1),
                                text + sizeof(cgroup) - 1) < sizeof(rule->cgroup);
    return false;
}

/* The part behind '>' of a rule of pressure: "20%". */
static bool parse_percent(const char *text, size_t length, uint64_t *ret_ns)
{
    char word[32], *end;
    double percent;

    if (length < 2 || length >= sizeof(word) || text[length - 1] != '%' ||
        strspn(text, "0123456789.") != length - 1)
        return false;
    snprintf(word, sizeof(word), "%.*s", (int)length - 1, text);
    percent = strtod(word, &end);
    if (*end || percent < 0.1 || percent > 99)
        return false;
    *ret_ns = (uint64_t)(percent / 100 * (double)FLIGHT_PSI_NS);
    return true;
}

static const char *parse_psi(const char *text, struct flight_rule *ret)
{
    static const char *const resources[] = {"cpu", "io", "memory"};
    size_t length = strcspn(text, ">"), end;

    for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
        if (length == strlen(resources[i]) && !strncmp(text, resources[i], length))
            snprintf(ret->psi, sizeof(ret->psi), "%s", resources[i]);
    }
    if (!*ret->psi || !text[length])
        return "behind psi: must be cpu, io or memory and '>': as in 'psi:cpu>20%'";
    text += length + 1;
    end = strcspn(text, ",");
    if (!parse_percent(text, end, &ret->ns))
        return "behind '>' must be a share of the time, 0.1% to 99%";
    if (text[end] && (!parse_filter(text + end + 1, strlen(text + end + 1), ret) || *ret->comm))
        return "a condition of a pressure must be cgroup=/PATH";
    return NULL;
}

const char *flight_rule_parse(const char *text, struct flight_rule *ret)
{
    size_t cause = strcspn(text, ">"), length;
    const char *at = text + cause;

    *ret = (struct flight_rule){.text = text};
    if (!strncmp(text, "psi:", 4))
        return parse_psi(text + 4, ret);
    if (!*at)
        return "it has no '>': as in 'ready>5ms'";
    if (!parse_cause(text, cause, &ret->cause))
        return "before '>' must be ready or a cause of prcb-stat(1) that threads wait for";
    length = strcspn(++at, ",");
    if (!parse_time(at, length, &ret->ns))
        return "behind '>' must be a time: 500us, 5ms, 1.5s";
    for (at += length; *at; at += length) {
        length = strcspn(++at, ",");
        if (!parse_filter(at, length, ret))
            return "a condition must be comm=PATTERN (15 bytes) or cgroup=/PATH";
    }
    return NULL;
}

/* In the hierarchy of version 2, at this moment: a thread that has ended is in none. */
static bool is_in_cgroup(const char *cgroup, uint32_t pid, uint32_t tid)
{
    char path[64], text[4096], *line;
    size_t length = strlen(cgroup);
    ssize_t got;

    while (length && cgroup[length - 1] == '/')
        length--;
    snprintf(path, sizeof(path), "/proc/%u/task/%u/cgroup", pid, tid);
    got = read_start(path, text, sizeof(text) - 1);
    if (got <= 0)
        return false;
    text[got] = '\0';
    line = strstr(text, "0::");
    return line && (line == text || line[-1] == '\n') && !strncmp(line + 3, cgroup, length) &&
           strchr("/\n", line[3 + length]);
}

int flight_rule_open(const struct flight_rule *rule)
{
    char path[4096 + 64], order[64], group[300];
    const char *text = group;
    struct cgroup_at at;
    int fd;

    snprintf(path, sizeof(path), "/proc/pressure/%s", rule->psi);
    snprintf(group, sizeof(group), "0::%s\n", rule->cgroup);
    if (*rule->cgroup) {
        if (!cgroup_at_next(&text, CGROUP_CPU, &at))
            return -ENOENT;
        snprintf(path, sizeof(path), "%s%s/%s.pressure", at.mount, at.group, rule->psi);
    }
    snprintf(order, sizeof(order), "some %llu %llu", (unsigned long long)rule->ns / 1000,
             FLIGHT_PSI_NS / 1000);
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (write(fd, order, strlen(order) + 1) < 0) {
        int result = -errno;

        close(fd);
        return result;
    }
    return fd;
}

bool flight_rule_holds(const struct flight_rule *rule, const struct prcb_switch *s,
                       uint64_t *ret_ns)
{
    uint64_t ns = rule->cause ? s->wait_ns : s->ready_ns;

    if (*rule->psi || !s->new_tid || ns <= rule->ns ||
        (rule->cause && rule->cause != s->new_cause) ||
        (*rule->comm && fnmatch(rule->comm, s->new_comm, 0)) ||
        (*rule->cgroup && !is_in_cgroup(rule->cgroup, s->new_pid, s->new_tid)))
        return false;
    *ret_ns = ns;
    return true;
}
