/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "now.h"
#include "stat_wait.h"

#define INTERVAL_MIN_NS 1000000ull
#define READ_TRIES      50
#define INTERVAL_MAX_NS (86400ull * 1000000000)

/* ---- what was asked for -------------------------------------------------- */

int cpu_choice_check(const struct cli_command *command, const struct cpu_choice *choice)
{
    if (choice->root && choice->tier >= PRCB_TIER_BPF)
        return cli_usage_error(command,
                               "--root and --tier %s contradict each other: eBPF sees this "
                               "machine only",
                               prcb_tier_name(choice->tier));
    return CLI_OK;
}

int cpu_interval_parse(const struct cli_command *command, const char *text, uint64_t *ret_ns)
{
    uint64_t ns;

    if (cli_parse_duration(text, 1000000000, &ns) || ns < INTERVAL_MIN_NS || ns > INTERVAL_MAX_NS)
        return cli_usage_error(command,
                               "interval '%s': must be seconds, from 0.001 to 86400, or a time "
                               "such as 100ms",
                               text);
    *ret_ns = ns;
    return CLI_OK;
}

static int bad_number(const struct cli_command *command, const struct cpu_samples *s,
                      const char *word)
{
    return cli_usage_error(command, "-C '%s': this machine's processors are 0 to %" PRIu32, word,
                           s->count - 1);
}

/* "3" or "2-5". */
static int choose_range(const struct cli_command *command, struct cpu_samples *s, char *word)
{
    uint64_t first, last;
    char *dash = strchr(word, '-');
    int result;

    if (dash)
        *dash = '\0';
    result = number_parse(word, 0, UINT32_MAX, &first);
    last = first;
    if (!result && dash)
        result = number_parse(dash + 1, 0, UINT32_MAX, &last);
    if (dash)
        *dash = '-';
    if (result || last < first)
        return cli_usage_error(
            command, "-C '%s': must be processors' numbers or ranges, as 0,2-3, or all", word);
    if (last >= s->count)
        return bad_number(command, s, word);
    for (uint64_t number = first; number <= last; number++)
        s->chosen[number] = true;
    return CLI_OK;
}

static int choose(const struct cli_command *command, const char *list, struct cpu_samples *s)
{
    char *copy, *at, *word;
    int status = CLI_OK;

    if (!list || !strcasecmp(list, "all")) {
        memset(s->chosen, true, s->count * sizeof(*s->chosen));
        return CLI_OK;
    }
    copy = at = strdup(list);
    if (!copy)
        return cli_error(command, "out of memory");
    while (status == CLI_OK && (word = strsep(&at, ",")))
        status = choose_range(command, s, word);
    free(copy);
    return status;
}

/* ---- looking ------------------------------------------------------------- */

static int read_one(struct cpu_samples *s, uint32_t number, struct prcb_error *err)
{
    struct prcb_processor *record = &s->now[number];
    int result = -EAGAIN;

    /* A hypervisor may leave a processor in the middle of an update for longer than one read
     * waits. */
    for (int i = 0; i < READ_TRIES && result == -EAGAIN; i++) {
        record->size = sizeof(*record);
        result = prcb_processor_read(s->view, number, record);
    }
    if (result && err)
        snprintf(err->text, sizeof(err->text), "processor %" PRIu32 ": %s", number,
                 strerror(-result));
    return result;
}

int cpu_samples_take(struct cpu_samples *s, struct prcb_error *err)
{
    int result = prcb_processors_refresh(s->view, err);

    /* Also those that were absent: one may have been plugged in. */
    for (uint32_t i = 0; !result && i < s->count; i++)
        result = s->chosen[i] ? read_one(s, i, err) : 0;
    if (!result)
        s->now_ns = now_ns();
    return result;
}

void cpu_samples_mark(struct cpu_samples *s)
{
    memcpy(s->mark, s->now, s->count * sizeof(*s->now));
    s->mark_ns = s->now_ns;
}

int cpu_samples_start(struct cpu_samples *s, struct prcb_error *err)
{
    int result = cpu_samples_take(s, err);

    if (result)
        return result;
    cpu_samples_mark(s);
    memcpy(s->start, s->now, s->count * sizeof(*s->now));
    s->start_ns = s->now_ns;
    return 0;
}

/* ---- open and close ------------------------------------------------------ */

static int first_look(const struct cli_command *command, const struct cpu_choice *choice,
                      struct cpu_samples *s)
{
    struct prcb_error err;
    int status;

    s->chosen = calloc(s->count + 1, sizeof(*s->chosen));
    s->start = calloc(s->count + 1, sizeof(*s->start));
    s->mark = calloc(s->count + 1, sizeof(*s->mark));
    s->now = calloc(s->count + 1, sizeof(*s->now));
    if (!s->chosen || !s->start || !s->mark || !s->now)
        return cli_error(command, "out of memory");
    status = choose(command, choice->list, s);
    if (status != CLI_OK)
        return status;
    if (cpu_samples_start(s, &err))
        return cli_error(command, "%s", err.text);
    if (cpu_samples_next(s, 0) >= s->count)
        return cli_usage_error(command,
                               "-C '%s': no such processor is present (it may be plugged in)",
                               choice->list ? choice->list : "all");
    return CLI_OK;
}

int cpu_samples_open(const struct cli_command *command, const struct cpu_choice *choice,
                     struct cpu_samples *ret)
{
    const struct prcb_processors_options opts = {
        .size = sizeof(opts), .tier = choice->tier, .root = choice->root};
    struct cpu_samples s = {0};
    struct prcb_error err;
    int status, result;

    result = prcb_processors_open(&opts, &s.view, &err);
    if (choice->verbose)
        cli_write_load_log(prcb_load_log());
    if (result)
        return cli_error(command, "%s", err.text);
    s.count = prcb_processors_count(s.view);
    s.recorded = choice->root != NULL;
    status = first_look(command, choice, &s);
    if (status == CLI_OK)
        *ret = s;
    else
        cpu_samples_close(&s);
    return status;
}

void cpu_samples_close(struct cpu_samples *s)
{
    prcb_processors_close(s->view);
    free(s->chosen);
    free(s->start);
    free(s->mark);
    free(s->now);
    memset(s, 0, sizeof(*s));
}
