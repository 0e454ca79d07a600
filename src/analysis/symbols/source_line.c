/* SPDX-License-Identifier: BSD-2-Clause */
#include "source_line.h"

#include <elfutils/libdw.h>

/* If the compiler wrote no table of the units' addresses, the units have to be searched one by
 * one. */
static Dwarf_Die *find_unit(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *ret_bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, ret_bias);

    if (unit)
        return unit;
    while ((unit = dwfl_module_nextcu(module, unit, ret_bias))) {
        if (dwarf_haspc(unit, address - *ret_bias) == 1)
            return unit;
    }
    return NULL;
}

bool source_line_find(Dwfl_Module *module, Dwarf_Addr address, struct source_line *ret)
{
    struct source_line found = {.number = 0};
    Dwarf_Line *line;

    found.unit = find_unit(module, address, &found.bias);
    line = found.unit ? dwarf_getsrc_die(found.unit, address - found.bias) : NULL;
    found.file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (!found.file || dwarf_lineno(line, &found.number) || found.number < 0)
        return false;
    *ret = found;
    return true;
}
