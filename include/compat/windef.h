/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <windef.h> for programs written for Windows.
 */
#ifndef PRCB_COMPAT_WINDEF_H
#define PRCB_COMPAT_WINDEF_H

#include "minwindef.h"

#endif
