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
