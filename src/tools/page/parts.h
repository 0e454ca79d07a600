/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The page's own files as the build puts them together (embed.py): what comes before the policy,
 * the policy of a file (whose hashes are of the one script and the one style), what is between that
 * and the data, and the rest.
 */
#ifndef PRCB_PAGE_PARTS_H
#define PRCB_PAGE_PARTS_H

extern const char page_part_head[], page_part_policy[], page_part_middle[], page_part_tail[];

#endif
