/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <powrprof.h> for programs written for Windows.
 */
#ifndef PRCB_COMPAT_POWRPROF_H
#define PRCB_COMPAT_POWRPROF_H

#include "powerbase.h"

#endif
