/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words: bug check codes (the names of bugcodes.h), releases, arm64 implementers, how things were
 * found.
 */
#include "inside.h"

#include <stdio.h>

#include "catalog.h"

struct named {
    uint32_t number;
    const char *name;
};

static const struct bugcheck {
    uint32_t code;
    const char *name;
    const char *parameters[4];
} bugchecks[] = {
#define C(code, name)                 {code, #name, {NULL, NULL, NULL, NULL}},
#define P(code, name, p1, p2, p3, p4) {code, #name, {p1, p2, p3, p4}},
#include "bugchecks.def"
#undef C
#undef P
};

static const struct named implementers[] = {
    {0x41, "Arm"},       {0x42, "Broadcom"}, {0x43, "Cavium"},     {0x46, "Fujitsu"},
    {0x48, "HiSilicon"}, {0x4e, "NVIDIA"},   {0x50, "Ampere APM"}, {0x51, "Qualcomm"},
    {0x53, "Samsung"},   {0x56, "Marvell"},  {0x61, "Apple"},      {0x6d, "Microsoft"},
    {0xc0, "Ampere"},
};

static const char *find(const struct named *table, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i].number == number)
            return table[i].name;
    }
    return NULL;
}

/* The flag 0x10000000 marks the same bug check as reported by a minidump (the "_M" names). */
static const struct bugcheck *find_bugcheck(uint32_t code)
{
    for (unsigned int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < ARRAY_SIZE(bugchecks); i++) {
            if (bugchecks[i].code == (pass ? code & ~0x10000000u : code))
                return &bugchecks[i];
        }
    }
    return NULL;
}

const char *bugcheck_name(uint32_t code)
{
    const struct bugcheck *b = find_bugcheck(code);

    return b ? b->name : NULL;
}

const char *bugcheck_parameter(uint32_t code, unsigned int index)
{
    const struct bugcheck *b = find_bugcheck(code & ~0x10000000u);

    return b && index < ARRAY_SIZE(b->parameters) ? b->parameters[index] : NULL;
}

/* ProductType decides between workstation and server; where it is not said, both are named. A
 * release that came in one form has one name. */
bool release_name(const struct header *header, char *ret, size_t size)
{
    for (const struct release_row *r = catalog_releases; r->build; r++) {
        if (r->build != header->minor)
            continue;
        if (!r->server || (r->workstation && header->product == 1))
            snprintf(ret, size, "%s", r->workstation);
        else if (!r->workstation || header->product == 2 || header->product == 3)
            snprintf(ret, size, "%s", r->server);
        else
            snprintf(ret, size, "%s or %s", r->workstation, r->server);
        return true;
    }
    return false;
}

const char *implementer_name(uint32_t code)
{
    return find(implementers, ARRAY_SIZE(implementers), code);
}

const char *prcb_dump_found_name(enum prcb_dump_found found)
{
    static const char *const names[] = {NULL, "catalog", "kdbg", "landmark", "symbols", "header"};

    return (size_t)found < ARRAY_SIZE(names) ? names[found] : NULL;
}
