/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What NtQuerySystemInformation and NtPowerInformation share: elements made of a processor's
 * record. Under the lock of inside.h but for nt_take_group.
 */
#ifndef PRCB_NT_QUERY_H
#define PRCB_NT_QUERY_H

#include "view.h"

/* Takes the caller's USHORT; longer input is taken, too. */
NTSTATUS nt_take_group(const void *input, uint32_t length, uint16_t *ret);

struct nt_row {
    const struct prcb_processor *record;
    struct nt_cpu *cpu;
};

union nt_element {
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX performance;
    SYSTEM_INTERRUPT_INFORMATION interrupt;
    SYSTEM_PROCESSOR_IDLE_INFORMATION idle;
    SYSTEM_PROCESSOR_POWER_INFORMATION power;
    SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION cycles;
    PROCESSOR_POWER_INFORMATION power_information;
};

/* Each finds the element zeroed. */
void nt_fill_performance(const struct nt_row *row, union nt_element *ret);
void nt_fill_interrupt(const struct nt_row *row, union nt_element *ret);
void nt_fill_idle(const struct nt_row *row, union nt_element *ret);
void nt_fill_power(const struct nt_row *row, union nt_element *ret);
void nt_fill_idle_cycles(const struct nt_row *row, union nt_element *ret);
void nt_fill_cycles(const struct nt_row *row, union nt_element *ret);
void nt_fill_power_information(const struct nt_row *row, union nt_element *ret);

/* ---- system_info.c: one structure for the system, zeroed before; after nt_view_look ---- */

#define NT_BASIC_SIZE        ((uint32_t)(sizeof(void *) == 8 ? 0x40 : 0x2c))
#define NT_SYSTEM_MOST       0x158u /* the largest */
#define NT_PERFORMANCE_LEAST 0x138u /* class 0x02 before Windows 10 */

NTSTATUS nt_make_basic(void *ret);
NTSTATUS nt_make_processor(void *ret);
NTSTATUS nt_make_performance(void *ret);
NTSTATUS nt_make_time_of_day(void *ret);

/* ---- */

/* Makes class 0x6B for a PRCB_NT_RELATION_ (topology.c), allocated; NULL and 0 for no record. */
NTSTATUS nt_make_topology(uint32_t relation, void **ret, uint32_t *ret_size);

/* Makes class 0x49 for a group whose first processor that is, and class 0xAF (topology.c);
 * allocated. */
NTSTATUS nt_make_logical(uint32_t first, uint32_t count, void **ret, uint32_t *ret_size);
NTSTATUS nt_make_cpu_sets(void **ret, uint32_t *ret_size);

/* Makes class 0x64, allocated. */
NTSTATUS nt_make_distribution(uint32_t first, uint32_t count, void **ret, uint32_t *ret_size);

#endif
