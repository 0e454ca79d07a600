/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The folder of `prcb flight`: what its files are called, and which of them go.
 */
#ifndef PRCB_CLI_FLIGHT_FILES_H
#define PRCB_CLI_FLIGHT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: files can be kept there. Else why not, for the user. Who else may write there could refuse
 * files by what lies under their names, or change them while they are written. */
const char *flight_folder_unfit(const char *folder);

/* The name of a file that begins now. asked: by another user, who may (--open). */
void flight_file_name(const char *folder, bool asked, char *ret, size_t size);

/* Keeps `count` files and `bytes` (0: any) at most: those go first that other users asked for, of
 * these the oldest. newest: a path; it stays, but for one that a
 * stranger asked for. */
void flight_remove_oldest(const char *folder, const char *newest, uint64_t count, uint64_t bytes);

/* Removes what an earlier one was in the middle of. */
void flight_remove_parts(const char *folder);

#endif
