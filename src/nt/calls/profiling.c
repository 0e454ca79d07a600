/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Thread profiling. One session for the process, opened by the first Enable that
 * wants switches; a profile per thread, reached by its own thread without a lock.
 * Read with DISPATCHING looks at one cache line of the account and makes no system
 * call on the bpf tier; the causes of waits are read only when there were switches.
 */
#include "inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

#define ENABLE_FLAGS (THREAD_PROFILING_FLAG_DISPATCH | THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
#define READ_FLAGS                                                                                 \
    (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
#define MASK_BITS   ((1ull << MAX_HW_COUNTERS) - 1)
#define NO_PLACE    0xff
#define MAX_THREADS 4096

struct profile {
    void *handle;
    uint64_t mask;
    /* This is for dispatching; account NULL: it was not asked for. */
    struct prcb_thread *account;
    uint64_t switches; /* as of the last read with DISPATCHING, as the rest */
    uint64_t run_ns;
    uint64_t cycles;
    uint32_t fraction; /* of a cycle, times 2^32 */
    uint64_t mult;     /* of the account's clock, which rate was made from */
    uint64_t rate;     /* ticks of the time-stamp counter per nanosecond, times 2^32 */
    uint64_t waits[PRCB_CAUSE_MAX];
    /* These are the counters; NULL: none of the mask can count. */
    struct prcb_counters *counters;
    uint8_t place[MAX_HW_COUNTERS]; /* of mask bit i in counters */
};

/* It is the calling thread's, at a fixed place in the thread's block: no call finds it. */
static __thread struct profile *own __attribute__((tls_model("initial-exec")));

static struct prcb *session; /* under the lock, as all below; once set, set for good */
static enum prcb_tier wanted_tier;
static uint64_t ended; /* threads that ended enabled, accounts not given back yet */
static pthread_key_t at_exit;
static bool have_at_exit;

static void free_profile(struct profile *profile)
{
    if (!profile)
        return;
    prcb_thread_close(profile->account);
    prcb_counters_close(profile->counters);
    free(profile);
}

static void forget_profile(void *object)
{
    free_profile(object);
}

/* Nothing of this belongs to a forked child: the accounts are those of the parent's threads. */
void nt_profiles_forget(void)
{
    nt_handle_each(NT_PROFILE, forget_profile);
    own = NULL;
    if (have_at_exit)
        pthread_setspecific(at_exit, NULL);
    if (session)
        prcb_close(session);
    session = NULL;
    ended = 0;
}

int prcb_nt_set_tier(enum prcb_tier tier)
{
    int result = 0;

    if (tier > PRCB_TIER_DAEMON)
        return -EINVAL;
    nt_enter();
    if (session)
        result = -EBUSY;
    else
        wanted_tier = tier;
    nt_leave();
    return result;
}

enum prcb_tier prcb_nt_tier(void)
{
    enum prcb_tier tier;

    nt_enter();
    tier = session ? prcb_session_tier(session) : PRCB_TIER_AUTO;
    nt_leave();
    return tier;
}

/* ---- enable and disable, under the lock ---- */

static int open_session(struct prcb_error *err)
{
    struct prcb_options options = {
        .size = sizeof(options),
        .tier = wanted_tier,
        .max_threads = MAX_THREADS,
        .flags = PRCB_OPEN_INTERRUPTED,
    };

    return session ? 0 : prcb_open(&options, &session, err);
}

/* Releases the accounts of threads that ended without Disable. A thread that has just run its
 * destructors may not have made its last switch yet; the next call looks at it again. */
static void release_ended(void)
{
    int count = ended ? prcb_refresh(session, NULL) : 0;

    if (!ended || count)
        return;
    count = prcb_release_exited(session, NULL);
    if (count > 0)
        ended -= (uint64_t)count < ended ? (uint64_t)count : ended;
}

/* A counter that the mask names gets no place if the configuration lacks it or if it cannot
 * count. Only a lack of descriptors or memory is a failure. */
static int open_counters(struct profile *profile, struct prcb_error *err)
{
    const struct nt_config *config = nt_config();
    struct counter_event events[MAX_HW_COUNTERS];
    uint8_t count = 0;
    int result;

    for (unsigned i = 0; i < config->count; i++) {
        if (!(profile->mask >> i & 1) || !config->events[i].name[0])
            continue;
        profile->place[i] = count;
        events[count++] = config->events[i];
    }
    if (!count)
        return 0;
    result = counters_open_events(events, count, 0, COUNTERS_STOPPED, &profile->counters, err);
    if (result == -EMFILE || result == -ENFILE || result == -ENOMEM)
        return result;
    if (result)
        memset(profile->place, NO_PLACE, sizeof(profile->place));
    return 0;
}

static void thread_ends(void *value)
{
    struct profile *profile = value;

    nt_enter();
    nt_handle_remove(profile->handle, NT_PROFILE);
    if (profile->mask)
        nt_config_release();
    ended += profile->account != NULL;
    own = NULL;
    free_profile(profile);
    nt_leave();
}

static int watch_thread(struct profile *profile)
{
    int result;

    if (!have_at_exit) {
        result = pthread_key_create(&at_exit, thread_ends);
        if (result)
            return -result;
        have_at_exit = true;
    }
    return -pthread_setspecific(at_exit, profile);
}

/* The expensive steps come first, so that neither the account nor the counters contain much of
 * this function's own work. */
static int start(struct profile *profile, uint32_t flags, pid_t tid, struct prcb_error *err)
{
    bool dispatch = flags & THREAD_PROFILING_FLAG_DISPATCH;
    int result = dispatch ? open_session(err) : 0;

    if (result)
        return result;
    if (dispatch)
        release_ended();
    profile->handle = nt_handle_add(NT_PROFILE, tid, profile);
    if (!profile->handle)
        return -ENOMEM;
    result = watch_thread(profile);
    if (!result && profile->mask)
        result = open_counters(profile, err);
    if (!result && dispatch)
        result = prcb_thread_open_self(session, &profile->account, err);
    if (!result && profile->counters)
        counters_start(profile->counters);
    return result;
}

static NTSTATUS enable(uint32_t flags, uint64_t mask, pid_t tid, void **ret)
{
    struct profile *profile = calloc(1, sizeof(*profile));
    struct prcb_error err = {0};
    int result = -ENOMEM;

    if (profile) {
        profile->mask = mask;
        memset(profile->place, NO_PLACE, sizeof(profile->place));
        result = start(profile, flags, tid, &err);
    }
    if (result) {
        if (profile && profile->handle) {
            nt_handle_remove(profile->handle, NT_PROFILE);
            pthread_setspecific(at_exit, NULL);
        }
        free_profile(profile);
        return nt_fail_errno(result, &err);
    }
    if (mask)
        nt_config_hold();
    own = profile;
    *ret = profile->handle;
    return STATUS_SUCCESS;
}

NTSTATUS prcb_RtlEnableThreadProfiling(void *ThreadHandle, uint32_t Flags,
                                       uint64_t HardwareCounters, void **PerformanceDataHandle)
{
    NTSTATUS status;
    pid_t tid;

    if (!PerformanceDataHandle)
        return nt_fail(STATUS_INVALID_PARAMETER, "no place for the handle");
    if (Flags & ~(uint32_t)ENABLE_FLAGS)
        return nt_fail(STATUS_INVALID_PARAMETER, "flags 0x%x have unknown bits", Flags);
    if (HardwareCounters & ~MASK_BITS)
        return nt_fail(STATUS_INVALID_PARAMETER, "counter mask 0x%llx: there are %d counters",
                       (unsigned long long)HardwareCounters, MAX_HW_COUNTERS);
    if (!(Flags & THREAD_PROFILING_FLAG_DISPATCH) && !HardwareCounters)
        return nt_fail(STATUS_INVALID_PARAMETER, "neither switches nor counters are asked for");
    status = nt_probe_write(PerformanceDataHandle, sizeof(*PerformanceDataHandle), 1);
    if (status)
        return status;
    nt_enter();
    if (!nt_thread_of(ThreadHandle, &tid))
        status = nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle on a thread", ThreadHandle);
    else if (tid != gettid())
        status = nt_fail(STATUS_INVALID_PARAMETER, "a thread can profile itself only");
    else if (own)
        status = nt_fail(STATUS_WMI_ALREADY_ENABLED, "this thread's profiling is on already");
    else
        status = enable(Flags, HardwareCounters, tid, PerformanceDataHandle);
    nt_leave();
    return status;
}

/* The handle belongs to another thread, or to none. */
static NTSTATUS not_own(void *handle)
{
    bool known;

    nt_enter();
    known = nt_handle_get(handle, NT_PROFILE, NULL, NULL);
    nt_leave();
    if (known)
        return nt_fail(STATUS_INVALID_PARAMETER, "another thread's profiling");
    return nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle that Enable gave, or was disabled",
                   handle);
}

NTSTATUS prcb_RtlDisableThreadProfiling(void *PerformanceDataHandle)
{
    struct profile *profile = own;

    if (!profile || profile->handle != PerformanceDataHandle)
        return not_own(PerformanceDataHandle);
    nt_enter();
    nt_handle_remove(profile->handle, NT_PROFILE);
    pthread_setspecific(at_exit, NULL);
    own = NULL;
    if (profile->mask)
        nt_config_release();
    if (profile->account)
        prcb_release(session, profile->account->key, NULL);
    free_profile(profile);
    nt_leave();
    return STATUS_SUCCESS;
}

NTSTATUS prcb_RtlQueryThreadProfiling(void *ThreadHandle, uint8_t *Enabled)
{
    NTSTATUS status = STATUS_SUCCESS;
    pid_t tid;

    if (!Enabled)
        return nt_fail(STATUS_INVALID_PARAMETER, "no place for the answer");
    status = nt_probe_write(Enabled, sizeof(*Enabled), 1);
    if (status)
        return status;
    nt_enter();
    if (nt_thread_of(ThreadHandle, &tid))
        *Enabled = nt_handle_exists(NT_PROFILE, tid);
    else
        status = nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle on a thread", ThreadHandle);
    nt_leave();
    return status;
}

/* ---- reading ---- */

static void renew_rate(struct profile *profile)
{
    const struct clock *clock = &profile->account->clock;

    if (clock->mult == profile->mult && profile->rate)
        return;
    profile->mult = clock->mult;
    if (clock->mult)
        profile->rate = wide_scale(1ull << 63, 2, clock->mult);
    else
        profile->rate = (uint64_t)(clock_tick_rate(&session->clock) / 1e9 * 4294967296.0);
    if (!profile->rate)
        profile->rate = 1ull << 32; /* no counter to be trusted: nanoseconds */
}

/* Ticks of run time less interrupts that were added since the last read. The sum keeps what was
 * returned when the rate becomes known more exactly. */
static uint64_t cycles_at(struct profile *profile, uint64_t run_ns)
{
    renew_rate(profile);
    if (run_ns > profile->run_ns) {
        uint64_t grown = run_ns - profile->run_ns;
        uint64_t fraction = (uint32_t)(grown * profile->rate) + (uint64_t)profile->fraction;

        profile->cycles += wide_shift(grown, profile->rate, 32) + (fraction >> 32);
        profile->fraction = (uint32_t)fraction;
        profile->run_ns = run_ns;
    }
    return profile->cycles;
}

/* Returns the reasons of the switches since the last read, as bits. */
static uint64_t take_reasons(struct profile *profile, const struct prcb_account *account)
{
    uint64_t map = 0, told = 0, switched = account->switches - profile->switches;

    if (!(account->present & PRCB_HAS_WAITS))
        return switched ? PRCB_WAIT_REASON_UNKNOWN : 0;
    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        uint64_t count = account->waits[cause].count;
        const struct prcb_cause_info *info;

        if (count == profile->waits[cause])
            continue;
        told += count - profile->waits[cause];
        profile->waits[cause] = count;
        info = prcb_cause_info(cause);
        map |= info ? 1ull << info->reason : PRCB_WAIT_REASON_UNKNOWN;
    }
    return told < switched ? map | PRCB_WAIT_REASON_UNKNOWN : map;
}

static NTSTATUS read_switches(struct profile *profile, PERFORMANCE_DATA *data)
{
    struct prcb_account account;
    int result;

    account.size = sizeof(account);
    result = prcb_thread_read(profile->account, &account);
    if (result)
        return nt_status(result);
    data->WaitReasonBitMap = take_reasons(profile, &account);
    profile->switches = account.switches;
    data->ContextSwitchCount = (uint32_t)account.switches;
    data->CycleTime = cycles_at(profile, account.run_ns - account.interrupted_ns);
    data->RetryCount = account.retries + 1;
    return STATUS_SUCCESS;
}

static NTSTATUS read_dispatching(struct profile *profile, PERFORMANCE_DATA *data)
{
    struct prcb_times times;
    int result;

    times.size = sizeof(times);
    result = prcb_thread_times(profile->account, &times);
    if (result)
        return nt_status(result);
    if (times.switches != profile->switches)
        return read_switches(profile, data);
    data->WaitReasonBitMap = 0;
    data->ContextSwitchCount = (uint32_t)times.switches;
    data->CycleTime = cycles_at(profile, times.run_ns - times.interrupted_ns);
    data->RetryCount = times.retries + 1;
    return STATUS_SUCCESS;
}

static void read_counters(struct profile *profile, PERFORMANCE_DATA *data)
{
    uint64_t values[MAX_HW_COUNTERS], present = 0;

    if (profile->counters)
        counters_values(profile->counters, values, &present);
    memset(data->HwCounters, 0, sizeof(data->HwCounters));
    data->HwCountersCount = 0;
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++) {
        uint8_t place = profile->place[i];

        if (place == NO_PLACE || !(present >> place & 1))
            continue;
        data->HwCounters[i].Value = values[place];
        data->HwCountersCount++;
    }
}

static NTSTATUS check_read(const struct profile *profile, uint32_t flags,
                           const PERFORMANCE_DATA *data)
{
    if (!data)
        return nt_fail(STATUS_INVALID_PARAMETER, "no place for the data");
    if (!flags || flags & ~(uint32_t)READ_FLAGS)
        return nt_fail(STATUS_INVALID_PARAMETER, "flags 0x%x: none, or some that mean nothing",
                       flags);
    if (data->Size != sizeof(*data))
        return nt_fail(STATUS_INVALID_PARAMETER, "Size is %u; it must be set to %zu", data->Size,
                       sizeof(*data));
    if (data->Version != PERFORMANCE_DATA_VERSION)
        return nt_fail(STATUS_REVISION_MISMATCH, "Version is %u; it must be set to %d",
                       data->Version, PERFORMANCE_DATA_VERSION);
    if (flags & READ_THREAD_PROFILING_FLAG_DISPATCHING && !profile->account)
        return nt_fail(STATUS_INVALID_PARAMETER, "Enable was not asked for switches");
    if (flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS && !profile->mask)
        return nt_fail(STATUS_INVALID_PARAMETER, "Enable was not asked for counters");
    return STATUS_SUCCESS;
}

NTSTATUS prcb_RtlReadThreadProfilingData(void *PerformanceDataHandle, uint32_t Flags,
                                         PERFORMANCE_DATA *PerformanceData)
{
    struct profile *profile = own;
    NTSTATUS status;

    if (!profile || profile->handle != PerformanceDataHandle)
        return not_own(PerformanceDataHandle);
    status = check_read(profile, Flags, PerformanceData);
    if (status)
        return status;
    if (Flags & READ_THREAD_PROFILING_FLAG_DISPATCHING) {
        status = read_dispatching(profile, PerformanceData);
        if (status)
            return nt_fail(status, "the account stayed inconsistent; read again");
    }
    if (Flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
        read_counters(profile, PerformanceData);
    PerformanceData->Reserved = 0;
    return STATUS_SUCCESS;
}

/* ---- kernel32's form ---- */

uint32_t prcb_EnableThreadProfiling(void *ThreadHandle, uint32_t Flags, uint64_t HardwareCounters,
                                    void **PerformanceDataHandle)
{
    return prcb_RtlNtStatusToDosError(prcb_RtlEnableThreadProfiling(
        ThreadHandle, Flags, HardwareCounters, PerformanceDataHandle));
}

uint32_t prcb_DisableThreadProfiling(void *PerformanceDataHandle)
{
    return prcb_RtlNtStatusToDosError(prcb_RtlDisableThreadProfiling(PerformanceDataHandle));
}

uint32_t prcb_QueryThreadProfiling(void *ThreadHandle, uint8_t *Enabled)
{
    return prcb_RtlNtStatusToDosError(prcb_RtlQueryThreadProfiling(ThreadHandle, Enabled));
}

uint32_t prcb_ReadThreadProfilingData(void *PerformanceDataHandle, uint32_t Flags,
                                      PERFORMANCE_DATA *PerformanceData)
{
    return prcb_RtlNtStatusToDosError(
        prcb_RtlReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData));
}
