/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether this build is a sanitizer's: its run-time library maps terabytes, and asks the kernel for
 * more than the program does.
 */
#ifndef PRCB_BASE_SANITIZED_H
#define PRCB_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
