/* SPDX-License-Identifier: BSD-2-Clause */
#include "rules.h"

#include <dwarf.h>
#include <stdlib.h>

#define KEPT 4096 /* by address: a new one takes the place of an old one */

/* Takes "so many bytes from this register". False: it is said in another form, or far off. */
static bool read_frame(Dwarf_Frame *rules, struct rule *ret)
{
    Dwarf_Op *ops;
    size_t count;
    int64_t bytes;

    if (dwarf_frame_cfa(rules, &ops, &count) || count != 1 || ops->atom != DW_OP_bregx ||
        (ops->number != REGISTER_SP && ops->number != REGISTER_FP))
        return false;
    bytes = (int64_t)ops->number2;
    ret->by_fp = ops->number == REGISTER_FP;
    ret->frame = (int32_t)bytes;
    return bytes == ret->frame;
}

/* Takes "saved so many bytes from the frame". *ret_undefined: it says that there is none. */
static enum rule_place read_register(Dwarf_Frame *rules, int number, int32_t *ret,
                                     bool *ret_undefined)
{
    Dwarf_Op own[3], *ops = own;
    size_t count = 3;
    int64_t bytes;

    if (dwarf_frame_register(rules, number, own, &ops, &count))
        return RULE_UNKNOWN;
    *ret_undefined = !count && ops == own;
    if (!count)
        return ops ? RULE_UNKNOWN : RULE_SAME;
    if (ops->atom != DW_OP_call_frame_cfa || count > 2 ||
        (count == 2 && ops[1].atom != DW_OP_plus_uconst))
        return RULE_UNKNOWN;
    bytes = count == 2 ? (int64_t)ops[1].number : 0;
    *ret = (int32_t)bytes;
    return bytes == *ret ? RULE_SAVED : RULE_UNKNOWN;
}

void rule_read(Dwarf_Frame *rules, struct rule *ret)
{
    bool undefined = false, none = false, signal = true;

    ret->kind = RULE_OTHER;
    /* Below a signal's frame, addresses are not those that calls return to. */
    if (!rules || dwarf_frame_info(rules, NULL, NULL, &signal) < 0 || signal)
        return;
    ret->back_at = (uint8_t)read_register(rules, REGISTER_RETURN, &ret->back, &undefined);
    if (undefined) {
        ret->kind = RULE_LAST;
        return;
    }
    if (ret->back_at == RULE_UNKNOWN || !read_frame(rules, ret))
        return;
    ret->fp_at = (uint8_t)read_register(rules, REGISTER_FP, &ret->fp, &none);
    ret->kind = RULE_NEXT;
}

struct rule *rule_place_of(struct rule **kept, uint64_t address)
{
    struct rule *rule;

    if (!*kept)
        *kept = calloc(KEPT, sizeof(**kept));
    if (!*kept)
        return NULL;
    rule = &(*kept)[(address ^ address >> 12) % KEPT];
    if (rule->kind == RULE_NONE || rule->address != address)
        *rule = (struct rule){.address = address, .kind = RULE_NONE};
    return rule;
}
