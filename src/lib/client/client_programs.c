/* SPDX-License-Identifier: BSD-2-Clause */
#include "client_programs.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What is taken off a program's count: what it had missed before. One that took the place of
 * another goes on from what that one had come to. */
static uint64_t base_of(const struct client_programs *before, bool first,
                        const struct wire_program *now)
{
    for (uint32_t i = 0; i < before->count; i++) {
        const struct client_program *old = &before->items[i];

        if (!strncmp(old->name, now->name, sizeof(now->name)))
            return old->id == now->id ? old->base : old->misses != UINT64_MAX ? 0 - old->misses : 0;
    }
    return first ? now->misses : 0;
}

static void take(struct client_programs *p, const struct wire_programs_answer *answer)
{
    const struct client_programs before = *p;

    p->count = answer->count < WIRE_PROGRAMS_MOST ? answer->count : WIRE_PROGRAMS_MOST;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct wire_program *from = &answer->items[i];
        struct client_program *to = &p->items[i];
        bool known = from->misses != UINT64_MAX;

        to->id = from->id;
        to->base = known ? base_of(&before, !p->asked, from) : 0;
        to->misses = known ? from->misses - to->base : UINT64_MAX;
        snprintf(to->name, sizeof(to->name), "%.*s", WIRE_PROGRAM_NAME, from->name);
    }
    p->asked = true;
}

int client_ask_programs(struct client *c, enum wire_programs_of of, struct client_programs *p)
{
    const struct wire_programs ask = {.of = of};
    struct wire_programs_answer answer;
    const struct client_question q = {WIRE_PROGRAMS, &ask,
                                      sizeof(ask),   offsetof(struct wire_programs_answer, items),
                                      &answer,       sizeof(answer)};
    struct client_arrival arrival;
    int result;

    p->current = false;
    if (c->hello.hello.minor < 4)
        return -EOPNOTSUPP;
    result = client_ask(c, &q, &arrival, NULL);
    if (result)
        return result;
    client_close_fds(&arrival);
    take(p, &answer);
    p->current = true;
    return 0;
}

int client_ask_processor_programs(struct client_programs *p)
{
    struct client c = {.socket = -1};
    int result;

    p->current = false;
    client_start(&c);
    client_hurry(&c);
    result = client_connect(&c, NULL);
    if (!result)
        result = client_ask_programs(&c, WIRE_OF_PROCESSORS, p);
    client_disconnect(&c);
    return result;
}

int client_program(const struct client_programs *p, uint32_t i, struct prcb_program *ret)
{
    if (i >= p->count)
        return -ENOENT;
    snprintf(ret->name, sizeof(ret->name), "%s", p->items[i].name);
    ret->recursion_misses = p->current ? p->items[i].misses : UINT64_MAX;
    return 0;
}
