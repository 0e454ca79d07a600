/* SPDX-License-Identifier: BSD-2-Clause */
#include "go_layouts.h"

/* Source: Go's src/runtime/runtime2.go (g, gobuf, waitReason) and symtab.go (moduledata) of the
 * releases that are named. Words are put in between, never taken out, so each list is one of a
 * few. */
#define UNTIL_SLEEP                                                                                \
    "", "GC assist marking", "IO wait", "chan receive (nil chan)", "chan send (nil chan)",         \
        "dumping heap", "garbage collection", "garbage collection scan", "panicwait", "select",    \
        "select (no cases)", "GC assist wait", "GC sweep wait", "GC scavenge wait",                \
        "chan receive", "chan send", "finalizer wait", "force gc (idle)"
#define SYNC                                                                                       \
    "semacquire", "sleep", "sync.Cond.Wait", "sync.Mutex.Lock", "sync.RWMutex.RLock",              \
        "sync.RWMutex.Lock"
#define UNTIL_COROUTINE                                                                            \
    "trace reader (blocked)", "wait for GC cycle", "GC worker (idle)", "GC worker (active)",       \
        "preempted", "debug call", "GC mark termination", "stopping the world",                    \
        "flushing proc caches", "trace goroutine status", "trace proc status", "page trace flush", \
        "coroutine"

static const char *const reasons_19[] = {UNTIL_SLEEP,
                                         "semacquire",
                                         "sleep",
                                         "sync.Cond.Wait",
                                         "timer goroutine (idle)",
                                         "trace reader (blocked)",
                                         "wait for GC cycle",
                                         "GC worker (idle)",
                                         "preempted",
                                         "debug call"};
static const char *const reasons_20[] = {UNTIL_SLEEP, SYNC, UNTIL_COROUTINE};
static const char *const reasons_25[] = {UNTIL_SLEEP,
                                         "GOMAXPROCS updater (idle)",
                                         SYNC,
                                         "sync.WaitGroup.Wait",
                                         UNTIL_COROUTINE,
                                         "GC weak to strong wait",
                                         "synctest.Run",
                                         "synctest.Wait",
                                         "chan receive (durable)",
                                         "chan send (durable)",
                                         "select (durable)",
                                         "sync.WaitGroup.Wait (durable)",
                                         "cleanup wait"};
#define REASONS(list) .reasons = (list), .reason_count = sizeof(list) / sizeof(*(list))

/* gobuf begins with sp, pc and g in all of them. */
#define SCHED .sp = 56, .pc = 64, .self = 72
static const struct go_layout layouts[] = {
    {/* 1.19.8 */
     .minor = 19,
     .text = 176,
     .bss = 224,
     .bss_end = 232,
     .extra = 304,
     SCHED,
     .syscall_sp = 112,
     .syscall_pc = 120,
     .status = 144,
     .id = 152,
     .reason = 176,
     .size = 184,
     REASONS(reasons_19)},
    {/* 1.20.6; of later ones, 1.22's words are more */
     .minor = 20,
     .text = 176,
     .bss = 224,
     .bss_end = 232,
     .extra = 320,
     SCHED,
     .syscall_sp = 112,
     .syscall_pc = 120,
     .status = 144,
     .id = 152,
     .reason = 176,
     .size = 184,
     REASONS(reasons_20)},
    {/* 1.23.12: syscallbp */
     .minor = 23,
     .text = 176,
     .bss = 224,
     .bss_end = 232,
     .extra = 320,
     SCHED,
     .syscall_sp = 112,
     .syscall_pc = 120,
     .status = 152,
     .id = 160,
     .reason = 184,
     .size = 192,
     REASONS(reasons_20)},
    {/* 1.25.3: gobuf without ret */
     .minor = 25,
     .text = 176,
     .bss = 224,
     .bss_end = 232,
     .extra = 320,
     SCHED,
     .syscall_sp = 104,
     .syscall_pc = 112,
     .status = 144,
     .id = 152,
     .reason = 176,
     .size = 184,
     REASONS(reasons_25)},
};
#define MINOR_LAST 25

const struct go_layout *go_layout_of(uint32_t minor)
{
    const struct go_layout *found = NULL;

    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts) && minor <= MINOR_LAST; i++)
        found = layouts[i].minor <= minor ? &layouts[i] : found;
    return found;
}
