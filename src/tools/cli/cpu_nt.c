/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_nt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS SystemProcessorPerformanceInformation

int cpu_nt_take(struct cpu_nt *nt, struct prcb_error *err)
{
    NTSTATUS status =
        prcb_nt_query_all_groups(CLASS, nt->now, nt->count * (uint32_t)sizeof(*nt->now), NULL);

    if (status >= 0)
        return 0;
    snprintf(err->text, sizeof(err->text), "NT's class 8: status 0x%08" PRIx32 "%s%s",
             (uint32_t)status, *prcb_nt_error_text() ? ": " : "", prcb_nt_error_text());
    return -EIO;
}

void cpu_nt_mark(struct cpu_nt *nt)
{
    memcpy(nt->mark, nt->now, nt->count * sizeof(*nt->now));
}

static int first_look(const struct cli_command *command, struct cpu_nt *nt)
{
    struct prcb_error err;

    nt->start = calloc(nt->count + 1, sizeof(*nt->start));
    nt->mark = calloc(nt->count + 1, sizeof(*nt->mark));
    nt->now = calloc(nt->count + 1, sizeof(*nt->now));
    if (!nt->start || !nt->mark || !nt->now)
        return cli_error(command, "out of memory");
    if (cpu_nt_take(nt, &err))
        return cli_error(command, "%s", err.text);
    cpu_nt_mark(nt);
    memcpy(nt->start, nt->now, nt->count * sizeof(*nt->now));
    return CLI_OK;
}

int cpu_nt_open(const struct cli_command *command, const struct cpu_choice *choice, uint32_t count,
                struct cpu_nt *ret)
{
    const struct prcb_processors_options opts = {
        .size = sizeof(opts), .tier = choice->tier, .root = choice->root};
    struct cpu_nt nt = {.count = count};
    int result = prcb_nt_set_processors(&opts), status;

    if (result)
        return cli_error(command, "%s", strerror(-result));
    status = first_look(command, &nt);
    if (status == CLI_OK)
        *ret = nt;
    else
        cpu_nt_close(&nt);
    return status;
}

void cpu_nt_close(struct cpu_nt *nt)
{
    free(nt->start);
    free(nt->mark);
    free(nt->now);
    memset(nt, 0, sizeof(*nt));
}

const struct prcb_nt_member *cpu_nt_member(size_t index)
{
    const struct prcb_nt_member *member;

    for (size_t i = 0; (member = prcb_nt_member(CLASS, i)); i++) {
        if (strncmp(member->name, "Spare", 5) && !index--)
            return member;
    }
    return NULL;
}

static uint64_t value(const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *element,
                      const struct prcb_nt_member *member)
{
    uint64_t number = 0;

    memcpy(&number, (const char *)element + member->offset, member->size);
    return number;
}

/* Counts wrap at the size of their member. */
uint64_t cpu_nt_delta(const struct cpu_nt *nt, enum cpu_since since, uint32_t number,
                      const struct prcb_nt_member *member)
{
    const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *from =
        since == CPU_SINCE_START ? nt->start : nt->mark;
    uint64_t grown = value(&nt->now[number], member) - value(&from[number], member);

    return member->size < sizeof(grown) ? (uint32_t)grown : grown;
}

uint64_t cpu_nt_wall(const struct cpu_nt *nt, enum cpu_since since, uint32_t number)
{
    const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *from =
        &(since == CPU_SINCE_START ? nt->start : nt->mark)[number];
    const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *now = &nt->now[number];

    return 100 * (uint64_t)(now->KernelTime.QuadPart - from->KernelTime.QuadPart +
                            now->UserTime.QuadPart - from->UserTime.QuadPart);
}

const char *cpu_nt_absent(const struct prcb_nt_member *member)
{
    return prcb_nt_absent(CLASS, member->offset);
}
