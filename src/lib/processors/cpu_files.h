/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What procfs and sysfs say about processors. Parsers take text and do no I/O; readers take an
 * opened root ("/", or a recorded tree that holds `proc` and `sys`) and hand the text to a parser.
 * What the figures mean, and that they must not go backwards, is processors_files.c's.
 *
 * Errors   0 or -errno, results unchanged on failure unless said. Parsers: -EBADMSG for text that
 *          is not what the kernel writes. Readers also: -ENOENT and the like from open.
 * Threads  Parsers are pure. A struct procfs belongs to one caller at a time.
 */
#ifndef PRCB_PROCESSORS_CPU_FILES_H
#define PRCB_PROCESSORS_CPU_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processor_parts.h"
#include "procfs.h"

#define CPU_FILES_IDLE_STATES 16
#define CPU_FILES_NAME        16

/* ---- parsers ---- */

/* "0-3,5,8-11", as .../cpu/online has it; an empty list is one. Sets ret[n] for each n < room,
 * and clears the rest; *ret_end is one more than the greatest number named. */
int cpu_parse_list(const char *text, size_t length, bool *ret, uint32_t room, uint32_t *ret_end);

/* These are the columns of the line "cpuN ..." of /proc/stat, in clock ticks. */
enum cpu_stat_field {
    CPU_STAT_USER,
    CPU_STAT_NICE,
    CPU_STAT_SYSTEM,
    CPU_STAT_IDLE,
    CPU_STAT_IOWAIT,
    CPU_STAT_IRQ,
    CPU_STAT_SOFTIRQ,
    CPU_STAT_STEAL,
    CPU_STAT_FIELDS,
};

struct cpu_stat {
    uint32_t number;
    uint32_t fields; /* that the line has: 4 on the oldest kernels; the rest are 0 */
    uint64_t ticks[CPU_STAT_FIELDS];
};

/* Reads the next line of a processor. Moves *at on. 1: *ret is one; 0: there are no more;
 * -EBADMSG. */
int cpu_parse_stat(const char **at, const char *end, struct cpu_stat *ret);

/* Sums the columns of /proc/interrupts or /proc/softirqs by processor: ret[n] for the processors
 * that the first line names; 0 for others. Rows with one of the labels in skip (NULL at its end),
 * and those that have fewer numbers than columns, are left out. ret is undefined after an error. */
int cpu_parse_columns(const char *text, size_t length, const char *const *skip, uint64_t *ret,
                      uint32_t room);

/* Reads "processor" and "cpu MHz" of /proc/cpuinfo (x86): ret[n] in MHz, 0 where it says nothing.
 * ret is undefined after an error. */
int cpu_parse_mhz(const char *text, size_t length, uint32_t *ret, uint32_t room);

/* A file that holds one number. */
int cpu_parse_number(const char *text, size_t length, uint64_t *ret);

/* A file that holds one name, blanks within it included, cut off to fit; bytes that are not
 * printable become '?'. */
int cpu_parse_name(const char *text, size_t length, char *ret, size_t room);

/* ---- readers ---- */

/* What sysfs has on one processor, which may change. */
struct cpu_sysfs {
    uint32_t present; /* enum cpu_sysfs_member bits */
    uint32_t mhz, max_mhz, limit_mhz, min_mhz, nominal_mhz;
    uint64_t throttles;
    uint32_t idle_state_count;
    struct {
        char name[CPU_FILES_NAME];
        uint64_t entries;
        uint64_t residency_ns;
    } idle_states[CPU_FILES_IDLE_STATES];
};

enum cpu_sysfs_member {
    CPU_SYSFS_MHZ = 1 << 0,
    CPU_SYSFS_MAX = 1 << 1,
    CPU_SYSFS_LIMIT = 1 << 2,
    CPU_SYSFS_MIN = 1 << 3,
    CPU_SYSFS_NOMINAL = 1 << 4,
    CPU_SYSFS_THROTTLES = 1 << 5,
    CPU_SYSFS_IDLE = 1 << 6,
};

/* Reads all but the idle states. fs: opened on a root. Files that are missing or hold nonsense
 * leave their member out. */
void cpu_read_sysfs(struct procfs *fs, uint32_t number, struct cpu_sysfs *ret);
/* These, into what the other has filled. */
void cpu_read_idle_states(struct procfs *fs, uint32_t number, struct cpu_sysfs *ret);
/* Whether there is a state beyond this number. */
bool cpu_has_idle_state(struct procfs *fs, uint32_t number, uint32_t count);
/* Reads the name of their driver, CPU_FILES_NAME bytes; 0, or -errno and ret is unchanged. */
int cpu_read_idle_driver(struct procfs *fs, char *ret);

/* Reads a list, possible or online. Falls back to the lines of /proc/stat for the kernels and trees
 * without. *ret_end as of cpu_parse_list. */
int cpu_read_list(struct procfs *fs, const char *which, bool *ret, uint32_t room,
                  uint32_t *ret_end);

/* Sets ret[n] of each that is present; of all where the kernel or tree does not tell. */
void cpu_read_present(struct procfs *fs, bool *ret, uint32_t room);

/* Rows of /proc/interrupts that are no interrupts of their own: TLB shootdowns are function calls
 * (CAL), performance interrupts are NMIs; machine checks are exceptions, and polls for them; ERR
 * and MIS are totals of the system, though on one processor they look like a column. NULL at the
 * end. */
extern const char *const cpu_not_interrupts[];

#endif
