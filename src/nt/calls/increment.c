/* SPDX-License-Identifier: BSD-2-Clause
 *
 * KeQueryTimeIncrement and KeSetTimeIncrement.
 */
#include "view.h"

uint32_t prcb_KeQueryTimeIncrement(void)
{
    return nt_maximum_increment();
}

void prcb_KeSetTimeIncrement(uint32_t MaximumIncrement, uint32_t MinimumIncrement)
{
    if (!MaximumIncrement || MinimumIncrement > MaximumIncrement) {
        nt_fail(STATUS_INVALID_PARAMETER, "increments %u to %u: nothing is set", MinimumIncrement,
                MaximumIncrement);
        return;
    }
    nt_enter();
    nt_view_fold();
    nt_set_increment(MaximumIncrement);
    nt_leave();
}
