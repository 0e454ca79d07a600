/* SPDX-License-Identifier: BSD-2-Clause
 *
 * KPROFILE_SOURCE numbers (public: wdm.h) and what counts each here. Where no generic
 * event of the kernel means the same, there is no backing rather than a near one.
 */
#include "inside.h"

#define FIXED(n)    (UINT64_C(0x40000000) + (n))      /* the selector rdpmc takes on Intel */
#define LINUX_SW(n) (PRCB_PROFILE_SOURCE_LINUX + (n)) /* PERF_COUNT_SW_* */

static const struct prcb_profile_source rows[] = {
    {0, "ProfileTime", "task-clock"}, /* nanoseconds */
    {1, "ProfileAlignmentFixup", "alignment-faults"},
    {2, "ProfileTotalIssues", "instructions"},
    {3, "ProfilePipelineDry", "stalled-cycles-frontend"},
    {4, "ProfileLoadInstructions", NULL},
    {5, "ProfilePipelineFrozen", "stalled-cycles-backend"},
    {6, "ProfileBranchInstructions", "branches"},
    {7, "ProfileTotalNonissues", NULL},
    {8, "ProfileDcacheMisses", "L1-dcache-load-misses"},
    {9, "ProfileIcacheMisses", "L1-icache-load-misses"},
    {10, "ProfileCacheMisses", "cache-misses"},
    {11, "ProfileBranchMispredictions", "branch-misses"},
    {12, "ProfileStoreInstructions", NULL},
    {13, "ProfileFpInstructions", NULL},
    {14, "ProfileIntegerInstructions", NULL},
    {15, "Profile2Issue", NULL},
    {16, "Profile3Issue", NULL},
    {17, "Profile4Issue", NULL},
    {18, "ProfileSpecialInstructions", NULL},
    {19, "ProfileTotalCycles", "cycles"},
    {20, "ProfileIcacheIssues", "L1-icache-loads"},
    {21, "ProfileDcacheAccesses", "L1-dcache-loads"},
    {22, "ProfileMemoryBarrierCycles", NULL},
    {23, "ProfileLoadLinkedIssues", NULL},
    {FIXED(0), NULL, "instructions"},
    {FIXED(1), NULL, "cycles"},
    {FIXED(2), NULL, "ref-cycles"},
    {LINUX_SW(0), NULL, "cpu-clock"},
    {LINUX_SW(1), NULL, "task-clock"},
    {LINUX_SW(2), NULL, "page-faults"},
    {LINUX_SW(3), NULL, "context-switches"},
    {LINUX_SW(4), NULL, "cpu-migrations"},
    {LINUX_SW(5), NULL, "minor-faults"},
    {LINUX_SW(6), NULL, "major-faults"},
    {LINUX_SW(7), NULL, "alignment-faults"},
    {LINUX_SW(8), NULL, "emulation-faults"},
    {LINUX_SW(11), NULL, "cgroup-switches"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

const struct prcb_profile_source *prcb_profile_source(size_t i)
{
    return i < ROWS ? &rows[i] : NULL;
}

const struct prcb_profile_source *prcb_profile_source_find(uint64_t number)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].number == number)
            return &rows[i];
    }
    return NULL;
}
