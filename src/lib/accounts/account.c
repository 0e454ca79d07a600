/* SPDX-License-Identifier: BSD-2-Clause */
#include "account.h"

#include <string.h>
#include <time.h>

#include "seqcount_abi.h"
#include "writer_wait.h"

int account_copy(const struct prcb_account_block *block, uint32_t bytes,
                 struct prcb_account_block *ret, uint32_t *retries)
{
    const struct seq_part part = {ret, block, bytes};

    return seq_copy_parts(&block->seq, &part, 1, retries);
}

/* The words next_free (with run_cpu), interrupted_ns and interrupt_base lie side by side. */
#define INTERRUPTS_AT offsetof(struct prcb_account_block, next_free)

int account_copy_times(const struct prcb_account_block *block, struct prcb_account_block *ret,
                       uint32_t *retries)
{
    const struct seq_part parts[] = {
        {ret, block, 64},
        {(char *)ret + INTERRUPTS_AT, (const char *)block + INTERRUPTS_AT, 24},
    };

    return seq_copy_parts(&block->seq, parts, 2, retries);
}

void account_identity(const struct prcb_account_block *block, struct prcb_account *ret)
{
    uint64_t words[2];
    uint32_t begin;
    int tries = 0;

    /* Renames are rare and short; after a few tries the name may be half new. */
    do {
        begin = prcb_seq_read_begin(&block->comm_seq);
        ret->tid = (pid_t)__atomic_load_n(&block->tid, __ATOMIC_RELAXED);
        prcb_seq_copy(words, block->comm, sizeof(words));
    } while (prcb_seq_read_retry(&block->comm_seq, begin) && ++tries < WRITER_SPINS);
    memcpy(ret->comm, words, sizeof(ret->comm));
    ret->comm[sizeof(ret->comm) - 1] = '\0';
}

/* Causes that are not known here, of a later version or of a daemon that writes anything, are waits
 * with no finer cause known. */
static uint32_t known_cause(uint32_t cause)
{
    return !cause || prcb_cause_info(cause) ? cause : PRCB_CAUSE_OTHER;
}

/* What the account's thread is doing: UNSEEN is resolved by the registrar's guess. */
static uint32_t state_of(const struct prcb_account_block *copy, uint32_t *ret_cause)
{
    bool unseen = copy->state == PRCB_STATE_UNSEEN;

    *ret_cause = unseen ? (copy->guess >> 8) & 0xff : copy->cause;
    *ret_cause = known_cause(*ret_cause);
    return unseen ? copy->guess & 0xff : copy->state;
}

uint64_t account_live_run(const struct prcb_account_block *copy, uint64_t now)
{
    uint32_t cause;

    return state_of(copy, &cause) == PRCB_STATE_RUNNING && now > copy->stamp ? now - copy->stamp
                                                                             : 0;
}

bool account_rests(const struct prcb_account_block *copy)
{
    uint32_t cause, state = state_of(copy, &cause);
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return state == PRCB_STATE_EXITED ||
           (state == PRCB_STATE_OFF && info && info->kind != PRCB_KIND_READY);
}

static void convert_waits(const struct prcb_account_block *copy, struct prcb_account *ret)
{
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        uint32_t cause;

        if (!copy->waits[i].count && !copy->waits[i].ns)
            continue;
        cause = known_cause(i);
        ret->waits[cause].count += copy->waits[i].count;
        ret->waits[cause].ns += copy->waits[i].ns;
        ret->wait_ns += copy->waits[i].ns;
    }
}

void account_convert(const struct prcb_account_block *copy, uint64_t now, uint32_t features,
                     double ticks_per_ns, struct prcb_account *ret)
{
    uint32_t cause, state = state_of(copy, &cause);

    if (now < copy->stamp)
        now = copy->stamp;
    ret->present = PRCB_HAS_WALL | PRCB_HAS_RUN | PRCB_HAS_SWITCHES | PRCB_HAS_WAITS |
                   PRCB_HAS_WAIT | PRCB_HAS_OPEN;
    ret->present |= features & PRCB_FEATURE_READY ? PRCB_HAS_READY : 0;
    ret->flags = (state == PRCB_STATE_EXITED ? PRCB_ACCOUNT_EXITED : 0) |
                 (state == PRCB_STATE_RUNNING ? PRCB_ACCOUNT_RUNNING : 0) |
                 (copy->thread_flags & PRCB_THREAD_KTHREAD ? PRCB_ACCOUNT_KTHREAD : 0);
    ret->pid = (pid_t)copy->pid;
    ret->run_ns = copy->run_ns + account_live_run(copy, now);
    ret->ready_ns = copy->ready_ns;
    convert_waits(copy, ret);
    ret->voluntary_switches = copy->nvcsw - copy->base_nvcsw;
    ret->switches = ret->voluntary_switches + copy->nivcsw - copy->base_nivcsw;
    if (features & PRCB_FEATURE_MIGRATIONS) {
        ret->migrations = copy->migrations - copy->base_migrations;
        ret->present |= PRCB_HAS_MIGRATIONS;
    }
    ret->missed_switches =
        ret->switches > copy->own_switches ? ret->switches - copy->own_switches : 0;
    /* Before ABI 1.9 an element of the list of free accounts was left in its place. */
    if (!(features & ACCOUNT_FEATURE_OLD_WORD))
        ret->unclear_wakes = copy->unclear_wakes;
    if (state != PRCB_STATE_RUNNING)
        ret->open.ns = now - copy->stamp;
    if (state == PRCB_STATE_OFF)
        ret->open.cause = cause;
    ret->wall_ns = now - copy->enabled;
    if (features & PRCB_FEATURE_SYSCALLS) {
        ret->last_syscall = copy->last_syscall;
        ret->present |= PRCB_HAS_SYSCALL;
    }
    if (copy->state == PRCB_STATE_OFF && copy->wants & PRCB_WANT_REGISTERS && copy->user.pc) {
        ret->registers =
            (struct prcb_registers){copy->user.pc, copy->user.sp, copy->user.fp, copy->user.lr};
        ret->present |= PRCB_HAS_REGISTERS;
    }
    if (copy->state == PRCB_STATE_OFF && copy->wants & PRCB_WANT_OBJECTS) {
        ret->object = (struct prcb_object){copy->object.inode, copy->object.device,
                                           copy->object.descriptor, copy->object.lock};
        ret->present |= PRCB_HAS_OBJECT;
    }
    if (features & PRCB_FEATURE_CGROUP) {
        ret->cgroup = copy->cgroup;
        ret->present |= PRCB_HAS_CGROUP;
    }
    account_cycles(ticks_per_ns, ret);
}

void account_cycles(double ticks_per_ns, struct prcb_account *ret)
{
    uint64_t cycles = (uint64_t)((double)ret->run_ns * ticks_per_ns);

    if (!(ticks_per_ns > 0))
        return;
    if (ret->tsc_cycles < cycles)
        ret->tsc_cycles = cycles;
    ret->present |= PRCB_HAS_CYCLES;
}

/* Moves up to *owed from a figure that grew since earlier. */
static void take_growth(uint64_t *later, uint64_t earlier, uint64_t *owed)
{
    uint64_t grown = *later > earlier ? *later - earlier : 0;
    uint64_t taken = grown < *owed ? grown : *owed;

    *later -= taken;
    *owed -= taken;
}

void account_never_back(const struct prcb_account *earlier, struct prcb_account *later)
{
    uint64_t owed;

    if (later->run_ns < earlier->run_ns) {
        owed = earlier->run_ns - later->run_ns;
        later->run_ns = earlier->run_ns;
        take_growth(&later->open.ns, 0, &owed);
        take_growth(&later->ready_ns, earlier->ready_ns, &owed);
        for (uint32_t i = 0; i < PRCB_CAUSE_MAX && owed; i++) {
            uint64_t before = later->waits[i].ns;

            take_growth(&later->waits[i].ns, earlier->waits[i].ns, &owed);
            later->wait_ns -= before - later->waits[i].ns;
        }
    }
    if (later->tsc_cycles < earlier->tsc_cycles)
        later->tsc_cycles = earlier->tsc_cycles;
}
