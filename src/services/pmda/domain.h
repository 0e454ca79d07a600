/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The number of the agent among those of PCP.
 */
#define PRCB 460
