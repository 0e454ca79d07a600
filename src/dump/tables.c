/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words: bug check codes (the names of bugcodes.h), releases by build, arm64 implementers, how
 * things were found.
 */
#include "inside.h"

#include <stdio.h>

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

/* A build's names: of the workstation, of the server. */
static const struct {
    uint32_t build;
    const char *workstation, *server;
} releases[] = {
    {2195, "Windows 2000", "Windows 2000 Server"},
    {2600, "Windows XP", NULL},
    {3790, "Windows XP x64", "Windows Server 2003"},
    {6000, "Windows Vista", NULL},
    {6001, "Windows Vista SP1", "Windows Server 2008"},
    {6002, "Windows Vista SP2", "Windows Server 2008 SP2"},
    {6003, NULL, "Windows Server 2008 SP2"},
    {7600, "Windows 7", "Windows Server 2008 R2"},
    {7601, "Windows 7 SP1", "Windows Server 2008 R2 SP1"},
    {9200, "Windows 8", "Windows Server 2012"},
    {9600, "Windows 8.1", "Windows Server 2012 R2"},
    {9841, "Windows 10 preview 9841", NULL},
    {10240, "Windows 10 1507", NULL},
    {10586, "Windows 10 1511", NULL},
    {14393, "Windows 10 1607", "Windows Server 2016"},
    {15063, "Windows 10 1703", NULL},
    {16299, "Windows 10 1709", "Windows Server 1709"},
    {17134, "Windows 10 1803", "Windows Server 1803"},
    {17763, "Windows 10 1809", "Windows Server 2019"},
    {18362, "Windows 10 1903 or 1909", "Windows Server 1903 or 1909"},
    {18363, "Windows 10 1909", "Windows Server 1909"},
    {19041, "Windows 10 2004 to 22H2", "Windows Server 2004 or 20H2"},
    {19042, "Windows 10 20H2", "Windows Server 20H2"},
    {19043, "Windows 10 21H1", NULL},
    {19044, "Windows 10 21H2", NULL},
    {19045, "Windows 10 22H2", NULL},
    {20348, NULL, "Windows Server 2022"},
    {22000, "Windows 11 21H2", NULL},
    {22621, "Windows 11 22H2", NULL},
    {22631, "Windows 11 23H2", NULL},
    {25398, NULL, "Windows Server 23H2"},
    {26100, "Windows 11 24H2", "Windows Server 2025"},
    {26200, "Windows 11 25H2", NULL},
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
    for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
        const char *workstation = releases[i].workstation, *server = releases[i].server;

        if (releases[i].build != header->minor)
            continue;
        if (!server || (workstation && header->product == 1))
            snprintf(ret, size, "%s", workstation);
        else if (!workstation || header->product == 2 || header->product == 3)
            snprintf(ret, size, "%s", server);
        else
            snprintf(ret, size, "%s or %s", workstation, server);
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
