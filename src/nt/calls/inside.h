/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of the NT surface share: one lock, the handle table, the table from
 * errno to status, the counters that are configured. Not public.
 */
#ifndef PRCB_NT_INSIDE_H
#define PRCB_NT_INSIDE_H

#include <stdbool.h>
#include <sys/types.h>

#include <prcb/nt.h>
#include <prcb/sample.h>

#include "counters.h"

/* ---- failures ---- */

/* Stores a line for prcb_nt_error_text and returns the status. */
NTSTATUS nt_fail(NTSTATUS status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Does the same for an error of the library below. */
NTSTATUS nt_fail_errno(int code, const struct prcb_error *err);

/* Returns the status for a -errno, and STATUS_INTERNAL_ERROR for one that no code here returns. */
NTSTATUS nt_status(int code);

/* Rows of both tables, for the tests. */
struct nt_errno_row {
    int code; /* positive errno */
    NTSTATUS status;
};
struct nt_win32_row {
    NTSTATUS status;
    uint32_t win32;
};
extern const struct nt_errno_row nt_errno_rows[];
extern const struct nt_win32_row nt_win32_rows[];
extern const size_t nt_errno_row_count, nt_win32_row_count;

/* ---- the lock ---- */

/* Protects everything in src/nt/calls except what belongs to one thread. It is held across fork,
 * so that a child finds complete data. */
void nt_enter(void);
void nt_leave(void);

/* ---- handles ---- */

enum nt_kind { NT_THREAD = 1, NT_PROFILE, NT_COUNTER_SET };

/* A handle's value is never given out again, so a stale one stays invalid (after
 * 2^12 uses of its place where pointers have 32 bits). All under the lock. */
void *nt_handle_add(enum nt_kind kind, pid_t tid, void *object); /* NULL: out of memory */
/* Returns false if there is no such handle. Results may be NULL. */
bool nt_handle_get(void *handle, enum nt_kind kind, pid_t *ret_tid, void **ret_object);
/* Returns false if there is no such handle, or it is of another kind. */
bool nt_handle_remove(void *handle, enum nt_kind kind);
/* Whether there is a handle of the kind that belongs to this thread (0: to any). */
bool nt_handle_exists(enum nt_kind kind, pid_t tid);
void nt_handle_each(enum nt_kind kind, void (*fn)(void *object));
void nt_handles_forget(void); /* in a forked child */

#define NT_CURRENT_PROCESS ((void *)(intptr_t)-1)
#define NT_CURRENT_THREAD  ((void *)(intptr_t)-2)

/* The thread that a handle is about; GetCurrentThread's is the caller. */
bool nt_thread_of(void *handle, pid_t *ret);

/* ---- configuration, under the lock ---- */

struct nt_config {
    uint32_t count;
    HARDWARE_COUNTER counters[MAX_HW_COUNTERS];
    /* What counts element i; events[i].name is empty where nothing does. */
    struct counter_event events[MAX_HW_COUNTERS];
};
const struct nt_config *nt_config(void);

/* Called by a thread that counts by it; the configuration cannot be changed meanwhile. */
void nt_config_hold(void);
void nt_config_release(void);
bool nt_config_held(void);
void nt_config_forget(void); /* in a forked child: nobody holds it, so it stays */

/* Processor n is number n % NT_GROUP_SIZE of group n / NT_GROUP_SIZE. */
#define NT_GROUP_SIZE ((uint32_t)(8 * sizeof(uintptr_t)))

/* ---- the caller's memory ---- */

/* Probes a buffer as NT does for a caller in user mode, before anything else: it must be
 * aligned, and every page must be readable, or writable. A buffer of length 0 is not probed. */
NTSTATUS nt_probe_read(const void *buffer, size_t length, size_t alignment);
NTSTATUS nt_probe_write(void *buffer, size_t length, size_t alignment);

/* ---- NtSetSystemInformation ---- */

/* A class that can be set. The dispatcher has checked mode, length and memory before it calls
 * set, which runs without the lock. */
struct nt_set_class {
    uint32_t information_class;
    uint32_t length;  /* the buffer must be exactly so long */
    bool kernel_only; /* STATUS_ACCESS_DENIED for user mode */
    bool writes;      /* set stores into the buffer */
    NTSTATUS (*set)(void *buffer, enum prcb_nt_mode mode);
    /* Is called instead of set and length for a class of several lengths, which checks them. */
    NTSTATUS (*set_sized)(void *buffer, uint32_t length, enum prcb_nt_mode mode);
};
extern const struct nt_set_class nt_set_classes[];
extern const size_t nt_set_class_count;

/* These set classes 0x81 and 0x1F. */
NTSTATUS nt_set_profile_area(void *buffer, enum prcb_nt_mode mode);
NTSTATUS nt_set_trace(void *buffer, uint32_t length, enum prcb_nt_mode mode);

/* The functions that class 0x81 is built on, as one row; the tests have a row of their own. They
 * behave as the calls of these names in area.h and prcb/sample.h. */
struct nt_area_engine {
    int (*open)(const struct prcb_sampler_options *opts, struct prcb_sampler **ret,
                struct prcb_error *err);
    int (*take)(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
                struct prcb_error *err);
    void (*put_back)(struct prcb_sampler *s, struct prcb_ds_area *area);
    int (*check)(struct prcb_sampler *s, int cpu, struct prcb_error *err);
    int (*install)(struct prcb_sampler *s, int cpu, struct prcb_ds_area *area,
                   struct prcb_ds_area **ret);
    int (*remove)(struct prcb_sampler *s, int cpu, struct prcb_error *err);
    /* Allocates memory if there is no sampler; it is only ever freed again. NULL: out of memory. */
    void *(*plain)(size_t bytes);
    const char *vendor; /* of the processor; NULL: ask it */
    const char *msr;    /* its registers, %d for the processor's number */
};
extern const struct nt_area_engine *nt_area_engine;
void nt_profile_areas_forget(void); /* in a forked child */

/* These read and set class 0x1C. */
NTSTATUS nt_time_adjustment(SYSTEM_QUERY_TIME_ADJUST_INFORMATION *ret);
NTSTATUS nt_set_time_adjustment(void *buffer, enum prcb_nt_mode mode);

/* When the system was started, 100 ns since 1601; the same each time. Under the lock. */
int64_t nt_boot_time(void);

/* Returns the 100 ns units between two clock interrupts, as KeQueryTimeIncrement does. */
uint32_t nt_maximum_increment(void);
void nt_set_increment(uint32_t increment); /* 0: the kernel's */

/* Is called in a forked child: forgets what belongs to the parent or to its threads. */
void nt_hal_forget(void);
void nt_profiles_forget(void);

#endif
