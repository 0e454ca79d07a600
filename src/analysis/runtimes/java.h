/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The JVM's reader without a JVM, for tests.
 */
#ifndef PRCB_RUNTIMES_JAVA_H
#define PRCB_RUNTIMES_JAVA_H

#include <stdint.h>

#define JAVA_MEMBERS 43u

/* What is taken for the members of the VM's structures, JAVA_MEMBERS of them; NULL: what its tables
 * say, of a version that is known. */
extern const uint16_t *java_members;

#endif
