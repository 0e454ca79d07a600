/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes one line a call to standard error, with the level in front ("<4>") where systemd reads
 * it, so that the journal files it. Text that others chose is made fit for a terminal (text.h).
 * Lines of one kind that clients can cause are counted and limited: log_client.
 */
#ifndef PRCB_DAEMON_LOG_H
#define PRCB_DAEMON_LOG_H

enum log_level { LOG_LINE_ERROR = 3, LOG_LINE_WARNING = 4, LOG_LINE_NOTICE = 5, LOG_LINE_INFO = 6 };

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, for events that a client can cause as often as it likes: at most 20 lines a second. */
void log_client(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
