/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Call frame rules in the form that nearly all of them have: the caller's frame is some bytes from
 * the stack pointer or the frame pointer, and the return address and the frame pointer are beside
 * it. They are kept by address, for libdw interprets a function's program anew for each frame of
 * each stack, which takes it a hundred times as long as to follow what came of it.
 *
 * Threads  One set by one thread at a time.
 */
#ifndef PRCB_STACK_RULES_H
#define PRCB_STACK_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

/* DWARF's numbers of the registers that a frozen thread has. */
#if defined(__x86_64__)
enum { REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_LR = -1, REGISTER_RETURN = 16, REGISTERS = 16 };
#elif defined(__aarch64__)
enum { REGISTER_FP = 29, REGISTER_SP = 31, REGISTER_LR = 30, REGISTER_RETURN = 30, REGISTERS = 32 };
#else
#error "no DWARF registers of this processor: add them here"
#endif

enum rule_kind {
    RULE_NONE,  /* of no address yet */
    RULE_OTHER, /* there are none, or of another form: libdw is to follow them */
    RULE_LAST,  /* the frame is the outermost */
    RULE_NEXT,
};

/* Where a value of the caller is. */
enum rule_place {
    RULE_SAME,   /* still in its register */
    RULE_SAVED,  /* in memory */
    RULE_UNKNOWN /* lost, or said in another form */
};

struct rule {
    uint64_t address;
    int32_t frame; /* bytes from the register to the caller's frame; from there: */
    int32_t fp, back;
    uint8_t kind;           /* enum rule_kind */
    uint8_t by_fp;          /* the register is the frame pointer */
    uint8_t fp_at, back_at; /* enum rule_place */
};

/* Reads libdw's rules; NULL: there are none. */
void rule_read(Dwarf_Frame *rules, struct rule *ret);

/* Returns the place of an address's rule, whose kind is RULE_NONE if it has to be read and put
 * there; NULL: no memory. *kept is NULL at first, and freed by the caller. */
struct rule *rule_place_of(struct rule **kept, uint64_t address);

#endif
