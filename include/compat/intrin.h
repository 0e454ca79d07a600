/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <intrin.h> for programs written for Windows: what this compiler calls by the same
 * names (__rdtsc, __rdpmc, _mm_pause, ...).
 */
#ifndef PRCB_COMPAT_INTRIN_H
#define PRCB_COMPAT_INTRIN_H

#include "basetsd.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

/* Hold back the compiler, not the processor. */
#define _ReadWriteBarrier() __asm__ volatile("" ::: "memory")
#define _ReadBarrier()      _ReadWriteBarrier()
#define _WriteBarrier()     _ReadWriteBarrier()

#endif
