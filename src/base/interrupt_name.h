/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of interrupts, which drivers choose.
 */
#ifndef PRCB_BASE_INTERRUPT_NAME_H
#define PRCB_BASE_INTERRUPT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERRUPTS "/proc/interrupts"

/* Finds the end of an interrupt's line in such a file: "nvme0q1", or for several drivers that
 * share it "uhci_hcd:usb1, ahci". False: there is none; *ret is then empty. */
bool interrupt_name(const char *list, uint32_t number, char *ret, size_t size);

#endif
