/* SPDX-License-Identifier: BSD-2-Clause */
#include "source_line.h"

#include <stdint.h>

#include <dwarf.h>
#include <elfutils/libdw.h>

#define DEEPEST 64 /* of what lies in one another, */
#define MOST                                                                                       \
    (1u << 18) /* and of what is looked at: damaged information may lead around in circles */

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

/* Whether it may contain functions that were compiled. (libdw's own search leaves out these.) */
static bool has_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
           tag == DW_TAG_class_type || tag == DW_TAG_enumeration_type || tag == DW_TAG_union_type;
}

/* Finds the outermost function that was inlined at an address, in what the parent contains. *left:
 * how many entries may be looked at. */
static bool find_inlined(Dwarf_Die *parent, Dwarf_Addr address, unsigned depth, unsigned *left,
                         Dwarf_Die *ret)
{
    Dwarf_Die child;
    bool more = depth < DEEPEST && !dwarf_child(parent, &child);

    for (; more && *left; more = !dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);

        --*left;
        if (has_functions(tag)) {
            if (find_inlined(&child, address, depth + 1, left, ret))
                return true;
            continue;
        }
        if ((tag != DW_TAG_subprogram && tag != DW_TAG_lexical_block &&
             tag != DW_TAG_inlined_subroutine) ||
            dwarf_haspc(&child, address) != 1)
            continue;
        *ret = child;
        return tag == DW_TAG_inlined_subroutine ||
               find_inlined(&child, address, depth + 1, left, ret);
    }
    return false;
}

bool source_line_of_function(Dwfl_Module *module, Dwarf_Addr address, struct source_line *ret)
{
    struct source_line line;
    Dwarf_Attribute attribute;
    Dwarf_Word file, number;
    unsigned left = MOST;
    Dwarf_Files *files;
    Dwarf_Die inlined;
    size_t count;

    if (!source_line_find(module, address, &line))
        return false;
    *ret = line;
    if (!find_inlined(line.unit, address - line.bias, 0, &left, &inlined))
        return true;
    if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_file, &attribute), &file) ||
        dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &number) ||
        dwarf_getsrcfiles(line.unit, &files, &count) || file >= count || number > INT32_MAX)
        return false; /* the line that is known is another function's */
    ret->file = dwarf_filesrc(files, (size_t)file, NULL, NULL);
    ret->number = (int)number;
    return ret->file;
}
