/* SPDX-License-Identifier: BSD-2-Clause */
#include "cause.h"

const char *const cause_class_names[CAUSE_CLASSES] = {
    [CAUSE_CLASS_LOCK] = "lock",     [CAUSE_CLASS_DISK] = "disk",
    [CAUSE_CLASS_NET] = "net",       [CAUSE_CLASS_IPC] = "ipc",
    [CAUSE_CLASS_EVENT] = "event",   [CAUSE_CLASS_SLEEP] = "sleep",
    [CAUSE_CLASS_CHILD] = "child",   [CAUSE_CLASS_STOPPED] = "stopped",
    [CAUSE_CLASS_KERNEL] = "kernel", [CAUSE_CLASS_OTHER] = "other",
};

#define T(NAME, cls, obj, role, bits)                                                              \
    [PRCB_CAUSE_##NAME] = {CAUSE_CLASS_##cls, CAUSE_OBJECT_##obj, role, bits},
static const struct cause_traits causes[PRCB_CAUSE_MAX] = {CAUSE_TRAITS(T)};
#undef T

static const struct cause_traits unknown = {CAUSE_CLASS_OTHER, CAUSE_OBJECT_ANY, "other", 0};

const struct cause_traits *cause_traits(uint32_t cause)
{
    return cause < PRCB_CAUSE_MAX && causes[cause].colour ? &causes[cause] : &unknown;
}

/* ---- the rows are whole and make sense ---- */

/* A second row of a cause would be a second definition here; a cause without one has no
 * TRAITS_OF. */
enum {
#define T(NAME, cls, obj, role, bits)                                                              \
    TRAITS_OF_##NAME = (bits), CLASS_OF_##NAME = CAUSE_CLASS_##cls,
    CAUSE_TRAITS(T)
#undef T
};

#define HAS(NAME, trait) ((TRAITS_OF_##NAME & (trait)) != 0)
#define READY            1
#define WAIT             2
#define END              3
#define X(number, NAME, name, kind, reason, words)                                                 \
    _Static_assert(kind == WAIT ||                                                                 \
                       (!TRAITS_OF_##NAME && CLASS_OF_##NAME == (int)CAUSE_CLASS_NONE),            \
                   name ": is no wait, and has a trait or a class");                               \
    _Static_assert(kind != WAIT || number == PRCB_CAUSE_THROTTLED ||                               \
                       CLASS_OF_##NAME != (int)CAUSE_CLASS_NONE,                                   \
                   name ": is a wait without a class");                                            \
    _Static_assert(!HAS(NAME, CAUSE_MAY_IDLE) || !HAS(NAME, CAUSE_HELD),                           \
                   name ": cannot be idle and be held");                                           \
    _Static_assert(HAS(NAME, CAUSE_MAY_IDLE) || !HAS(NAME, CAUSE_IDLES),                           \
                   name ": idles, and so may idle");                                               \
    _Static_assert(!HAS(NAME, CAUSE_IS_KERNEL_LOCK) ||                                             \
                       (CLASS_OF_##NAME == (int)CAUSE_CLASS_LOCK && HAS(NAME, CAUSE_HELD) &&       \
                        HAS(NAME, CAUSE_WANTS_KERNEL_STACK)),                                      \
                   name ": a kernel lock is of class lock, holds, and has a kernel stack");
PRCB_CAUSES(X)
#undef X
