/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Class 0x1C over adjtimex(2). NT says what it adds to the time of day at each clock interrupt;
 * Linux keeps the same as microseconds a USER_HZ tick and a fine correction in parts per million.
 */
#include "inside.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/timex.h>

#define TICK_US  10000 /* USER_HZ is 100 */
#define TICK_MIN 9000  /* what the kernel takes */
#define TICK_MAX 11000
#define NT_MAX   10000000u /* 100 ns: a second */

/* Rates in struct timex.freq's unit, a 65536th of a millionth, of which a microsecond of tick is
 * a hundred times 65536. */
#define PER_TICK_US (INT64_C(100) << 16)
#define UNADJUSTED  (TICK_US * PER_TICK_US)

NTSTATUS nt_time_adjustment(SYSTEM_QUERY_TIME_ADJUST_INFORMATION *ret)
{
    struct timex now = {.modes = 0};
    int64_t increment = nt_maximum_increment(), rate;

    if (adjtimex(&now) < 0)
        return nt_fail(nt_status(-errno), "adjtimex: %s", strerror(errno));
    rate = now.tick * PER_TICK_US + now.freq;
    memset(ret, 0, sizeof(*ret));
    ret->TimeAdjustment = (uint32_t)((increment * rate + UNADJUSTED / 2) / UNADJUSTED);
    ret->TimeIncrement = (uint32_t)increment;
    ret->Enable = rate == UNADJUSTED;
    return STATUS_SUCCESS;
}

/* Sets whole microseconds a tick, and the rest, at most half a one or 50 ppm, as frequency. */
static NTSTATUS split_rate(uint32_t adjustment, struct timex *ret)
{
    int64_t increment = nt_maximum_increment(), rate;

    if (adjustment > NT_MAX)
        return nt_fail(STATUS_INVALID_PARAMETER, "TimeAdjustment %u is above %u", adjustment,
                       NT_MAX);
    rate = adjustment * UNADJUSTED / increment;
    if (rate < TICK_MIN * PER_TICK_US || rate > TICK_MAX * PER_TICK_US)
        return nt_fail(
            STATUS_INVALID_PARAMETER,
            "TimeAdjustment %u at an increment of %lld: Linux takes a tenth more or less",
            adjustment, (long long)increment);
    ret->tick = (long)((rate + PER_TICK_US / 2) / PER_TICK_US);
    ret->freq = (long)(rate - ret->tick * PER_TICK_US);
    return STATUS_SUCCESS;
}

NTSTATUS nt_set_time_adjustment(void *buffer, enum prcb_nt_mode mode)
{
    SYSTEM_SET_TIME_ADJUST_INFORMATION wanted;
    struct timex clock = {.modes = ADJ_TICK | ADJ_FREQUENCY, .tick = TICK_US};
    NTSTATUS status = STATUS_SUCCESS;

    memcpy(&wanted, buffer, sizeof(wanted));
    if (!wanted.Enable)
        status = split_rate(wanted.TimeAdjustment, &clock);
    if (status)
        return status;
    if (adjtimex(&clock) < 0)
        return nt_fail(nt_status(-errno), "adjtimex: %s%s", strerror(errno),
                       errno == EPERM ? " (wants CAP_SYS_TIME)" : "");
    return STATUS_SUCCESS;
}
