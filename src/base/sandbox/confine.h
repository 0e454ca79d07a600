/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calling process gives up what it has, for good: sandbox.c's child, and programs that are
 * started to have nothing.
 */
#ifndef PRCB_SANDBOX_CONFINE_H
#define PRCB_SANDBOX_CONFINE_H

#include "sandbox.h"

/* Closes all descriptors but one, whose new number it returns; the standard ones lead nowhere.
 * -errno */
int confine_descriptors(int keep);

/* Gives up identity and capabilities alone: for a program that needs the network. 0 or -errno */
int confine_identity(void);

/* Confines limits, identity, capabilities and system calls. 0, or -errno: not all of it was
 * done. */
int confine_process(const struct sandbox_limits *limits);

#endif
