/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Has one row for each thing that `prcb doctor` looks at and that a machine may lack, with what
 * its absence costs and the command that fixes it. The rows only look;
 * src/tools/cli/cmd_doctor.c prints, and really opens a session. Nothing here changes the
 * machine or needs a privilege: what may not be read or tried is "unknown". One thread; no
 * ownership: results are values, row texts static.
 */
#ifndef PRCB_DOCTOR_DOCTOR_H
#define PRCB_DOCTOR_DOCTOR_H

#include <stddef.h>

enum doctor_state { DOCTOR_ABSENT, DOCTOR_PRESENT, DOCTOR_UNKNOWN };

struct doctor_result {
    enum doctor_state state;
    char detail[512]; /* what was found, one line */
};

struct doctor_check {
    const char *name; /* one word, also in JSON and in prcb-doctor(1) */
    /* root goes in front of every path looked at: "" for the machine itself. */
    void (*look)(const char *root, struct doctor_result *ret);
    const char *cost; /* of its absence */
    const char *fix;  /* a command, or what is to be done where no command helps */
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_check_count;

#endif
