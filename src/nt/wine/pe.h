/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Export tables of 64-bit Windows modules (PE32+): a copy of a module whose functions are answered
 * by another. The bytes are somebody else's: every offset and count is checked against the file.
 */
#ifndef PRCB_WINE_PE_H
#define PRCB_WINE_PE_H

#include <stddef.h>
#include <stdint.h>

#include <prcb/prcb.h>

#define PE_MACHINE_I386  0x014c
#define PE_MACHINE_AMD64 0x8664

/* The processor that a module is for; 0: these bytes do not begin one. The first 4096 bytes of a
 * file are enough, for all but odd ones. */
uint16_t pe_machine(const void *image, size_t size);

/* One name of the export table that becomes a forwarder. */
struct pe_forward {
    const char *name;
    const char *target; /* "module.function" */
    const char *keep;   /* the name under which what was there can still be had; NULL: under none */
};

/* A module like this one with an export table of its own, in a new section at the end. Names that
 * were not exported are added, without what would be kept. *ret is for free().
 * -EBADMSG: not a 64-bit module, or a damaged one, or one that was made here; -ENOSPC: no room for
 * another section header, or too many exports; -ENOMEM. */
int pe_add_forwards(const void *image, size_t size, const struct pe_forward *rows, size_t count,
                    void **ret, size_t *ret_size, struct prcb_error *err);

#endif
