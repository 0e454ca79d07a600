/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Chooses waits at random, in a session of one's own. Part of accounts.bpf.c.
 */
#ifndef PRCB_CHOSEN_BPF_H
#define PRCB_CHOSEN_BPF_H

#include "owner.bpf.h"
#include "sample_context.bpf.h"
#include "stretches.bpf.h"

/* This ring is for the waits chosen at random; it is a page where none are asked for. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} chosen_ring SEC(".maps");
__u64 chosen_lost = 0; /* those that found no room there: atomic adds */

/* Lists of threads that ran; it is a page where none are asked for. What finds no room is not told:
 * then a sample has none. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} ran_ring SEC(".maps");

/* By slot: lists that are copied with the waits of its thread. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_bpf_chain);
} chains SEC(".maps");

/* Returns n where one in n waits of this cause is chosen. */
static __always_inline __u32 chosen_of(struct prcb_wait_cell *cell)
{
    __u64 count = cell->count, ns = cell->ns, one_in;

    if (count <= PRCB_CHOSEN_FIRST)
        return 1;
    one_in = ns ? count * PRCB_CHOSEN_PERIOD_NS / ns : PRCB_CHOSEN_MOST;
    return one_in < 1 ? 1 : one_in > PRCB_CHOSEN_MOST ? PRCB_CHOSEN_MOST : (__u32)one_in;
}

/* Describes what the wait is for. A futex's words say who holds it, where the lock is of a kind
 * that does. */
static __always_inline void describe_object(struct prcb_chosen_record *record,
                                            const struct prcb_wait_object *object,
                                            const struct call_seen *call, struct pt_regs *regs)
{
    const struct file *file = (const void *)call->file;

    record->object = *object;
    record->syscall = call->compat ? -1 : call->number;
    record->args[0] = call->arg;
    record->args[1] = second_argument(regs, call->compat);
    record->mode = 0;
    record->name[0] = '\0';
    record->words = 0;
    if (record->cause == PRCB_CAUSE_FUTEX)
        record->words =
            bpf_probe_read_user(record->word, sizeof(record->word), (const void *)call->arg)
                ? 0
                : sizeof(record->word) / sizeof(record->word[0]);
    if (!file || !has_file_names())
        return;
    record->mode = BPF_CORE_READ(file, f_inode, i_mode);
    if (bpf_probe_read_kernel_str(record->name, sizeof(record->name),
                                  BPF_CORE_READ(file, f_path.dentry, d_name.name)) < 0)
        record->name[0] = '\0';
}

static __always_inline void describe(struct prcb_chosen_record *record, struct tag *tag,
                                     struct prcb_account_block *account, __u32 kind)
{
    record->kind = kind;
    record->slot = tag->profiles[0].slot;
    record->generation = account->generation;
    record->tid = account->tid;
    record->pid = account->pid;
    record->cause = account->cause;
    record->switches =
        account->nvcsw - account->base_nvcsw + account->nivcsw - account->base_nivcsw;
    record->began_ns = tag->chosen_at;
    record->length = 0;
    record->ns = 0;
    record->span_state = PRCB_CHOSEN_SPAN_UNASKED;
}

static __always_inline __u32 copy_bytes(struct prcb_chosen_stack *to, const void *from, __u64 bytes)
{
    /* The compiler knows that it is no more; the verifier has to see it. */
    __asm__ volatile("" : "+r"(bytes));
    if (bytes > PRCB_CHOSEN_BYTES)
        return 0;
    return bpf_probe_read_user(to->bytes, bytes, from) ? 0 : (__u32)bytes;
}

/* Copies the top of the stack, as much of it as is in memory: all that is asked for, or up to
 * the end of one of the pages before. */
static __always_inline __u32 copy_stack(struct prcb_chosen_stack *to)
{
    const void *from = (const void *)(to->record.user.sp - PRCB_CHOSEN_RED_ZONE);
    __u64 first = PRCB_CHOSEN_PAGE - ((__u64)from & (PRCB_CHOSEN_PAGE - 1));
    __u32 bytes = copy_bytes(to, from, PRCB_CHOSEN_BYTES);

    if (!bytes)
        bytes = copy_bytes(to, from, first + PRCB_CHOSEN_PAGE);
    return bytes ? bytes : copy_bytes(to, from, first);
}

static __always_inline bool user_word(__u64 at, __u32 offset, __u64 *ret)
{
    return !bpf_probe_read_user(ret, sizeof(*ret), (const void *)(at + offset));
}

/* Finds the first node of the thread's list; false: the head is not the thread's any more. */
static __always_inline bool first_node(const struct prcb_bpf_chain *chain, __u64 *ret)
{
    __u64 at = chain->head, proof;

    if (!user_word(at, chain->proof_at, &proof) || proof != chain->proof)
        return false;
    if (chain->hop != PRCB_CHAIN_ABSENT && !user_word(at, chain->hop, &at))
        return false;
    return user_word(at, chain->first, ret);
}

static __always_inline bool copy_node(const struct prcb_bpf_chain *chain, __u64 *at,
                                      struct prcb_chosen_node *to)
{
    __u8 byte = 0;

    if (!user_word(*at, chain->words[0], &to->words[0]) ||
        !user_word(*at, chain->words[1], &to->words[1]))
        return false;
    if (chain->byte != PRCB_CHAIN_ABSENT &&
        bpf_probe_read_user(&byte, sizeof(byte), (const void *)(*at + chain->byte)))
        return false;
    to->byte = byte;
    return user_word(*at, chain->next, at);
}

/* Reads the number of the thread that has the lock, as its own process counts. */
static __always_inline __u64 holder_of(const struct prcb_bpf_chain *chain)
{
    struct {
        __u64 holder;
        __u32 held, rest;
    } lock;
    __u64 number;

    if (!chain->lock_at || bpf_probe_read_user(&lock, sizeof(lock), (const void *)chain->lock_at) ||
        !lock.held || !lock.holder || !user_word(lock.holder, chain->lock_number, &number))
        return 0;
    return number;
}

static __noinline int copy_chain(const struct prcb_bpf_chain *chain, struct prcb_chosen_list *to)
{
    __u64 at = 0;
    __u32 i;

    to->count = 0;
    to->whole = 0;
    to->holder = 0;
    if (!first_node(chain, &at))
        return 0;
    to->holder = holder_of(chain);
    for (i = 0; i < PRCB_CHAIN_NODES && at; i++) {
        if (!copy_node(chain, &at, &to->nodes[i]))
            return 0;
        to->count = i + 1;
    }
    to->whole = !at;
    return 0;
}

/* The kernel may give an element that was replaced to another slot while it is read. */
static __always_inline bool is_chain_of(const struct prcb_bpf_chain *chain, __u32 slot,
                                        const struct prcb_account_block *account)
{
    return chain && *(const volatile __u32 *)&chain->slot == slot &&
           *(const volatile __u32 *)&chain->generation == account->generation;
}

static __always_inline const struct prcb_bpf_chain *
chain_of(const struct tag *tag, const struct prcb_account_block *account)
{
    __u32 slot = tag->profiles[0].slot;
    const struct prcb_bpf_chain *chain = bpf_map_lookup_elem(&chains, &slot);

    return is_chain_of(chain, slot, account) ? chain : NULL;
}

/* The thread is the current one: nobody else writes the record that its variable leads to. */
static __always_inline void copy_span(const struct prcb_bpf_chain *chain,
                                      struct prcb_chosen_record *to)
{
    __u64 at;

    if (!chain->span_at)
        return;
    to->span_state = PRCB_CHOSEN_SPAN_UNREAD;
    if (!user_word(chain->span_at, 0, &at))
        return;
    if (!at)
        to->span_state = PRCB_CHOSEN_SPAN_NONE;
    else if (at % 2 == 0 && !bpf_probe_read_user(to->span, sizeof(to->span), (const void *)at))
        to->span_state = PRCB_CHOSEN_SPAN_THERE;
}

/* The thread is still the current one, so its user memory is in reach. */
static __noinline int copy_wait(struct prcb_chosen_stack *chosen, struct tag *tag,
                                struct prcb_account_block *account, struct switching *s)
{
    describe(&chosen->record, tag, account, PRCB_CHOSEN_OUT);
    chosen->record.one_in = tag->chosen;
    task_user_registers(s->prev, s->regs, &chosen->record.user);
    if (config.objects)
        describe_object(&chosen->record, &tag->object, &tag->call, s->regs);
    chosen->record.length = chosen->record.user.sp ? copy_stack(chosen) : 0;
    return 0;
}

/* chain: without a list; NULL: there is nothing to follow. */
static __always_inline bool record_wait(const struct prcb_bpf_chain *chain, struct tag *tag,
                                        struct prcb_account_block *account, struct switching *s)
{
    struct prcb_chosen_stack *chosen = bpf_ringbuf_reserve(&chosen_ring, sizeof(*chosen), 0);

    if (!chosen)
        return false;
    copy_wait(chosen, tag, account, s);
    if (chain)
        copy_span(chain, &chosen->record);
    if (chain && !is_chain_of(chain, tag->profiles[0].slot, account))
        chosen->record.span_state = PRCB_CHOSEN_SPAN_UNASKED;
    bpf_ringbuf_submit(chosen, BPF_RB_NO_WAKEUP);
    return true;
}

static __always_inline bool record_with(const struct prcb_bpf_chain *chain, struct tag *tag,
                                        struct prcb_account_block *account, struct switching *s)
{
    struct prcb_chosen_chain *chosen = bpf_ringbuf_reserve(&chosen_ring, sizeof(*chosen), 0);

    if (!chosen)
        return false;
    copy_wait(&chosen->stack, tag, account, s);
    copy_chain(chain, &chosen->list);
    copy_span(chain, &chosen->stack.record);
    if (!is_chain_of(chain, tag->profiles[0].slot, account)) {
        chosen->list.count = chosen->list.holder = 0;
        chosen->stack.record.span_state = PRCB_CHOSEN_SPAN_UNASKED;
    }
    bpf_ringbuf_submit(chosen, BPF_RB_NO_WAKEUP);
    return true;
}

static __noinline int choose(struct tag *tag, struct prcb_account_block *account,
                             struct switching *s)
{
    __u64 cause = account->cause;
    const struct prcb_bpf_chain *chain;
    struct prcb_wait_cell *cell;
    __u32 one_in;

    tag->chosen = 0;
    if (account->state != PRCB_STATE_OFF || cause_is_ready(cause) || cause >= PRCB_CAUSE_MAX ||
        s->prev->flags & PF_KERNELS_)
        return 0;
    /* The address is taken after the check, for the verifier. */
    __asm__ volatile("" : "+r"(cause));
    cell = &account->waits[cause];
    one_in = chosen_of(cell);
    if (one_in > 1 && bpf_get_prandom_u32() % one_in)
        return 0;
    tag->chosen_at = bpf_ktime_get_ns();
    tag->chosen = one_in;
    tag->chosen_base = cell->ns;
    chain = chain_of(tag, account);
    if (!(chain && chain->head ? record_with(chain, tag, account, s)
                               : record_wait(chain, tag, account, s)))
        __sync_fetch_and_add(&chosen_lost, 1);
    return 0;
}

/* Its wait is closed. One that the ring had no room for is reported all the same: it stands for
 * others. */
static __noinline int end_chosen(struct tag *tag, struct prcb_account_block *account)
{
    struct prcb_chosen_record *record;
    __u64 cause = account->cause;
    struct prcb_wait_cell *cell;

    if (cause >= PRCB_CAUSE_MAX)
        return 0;
    __asm__ volatile("" : "+r"(cause));
    cell = &account->waits[cause];
    if (cell->ns > tag->chosen_base) {
        record = bpf_ringbuf_reserve(&chosen_ring, sizeof(*record), 0);
        if (record) {
            describe(record, tag, account, PRCB_CHOSEN_IN);
            record->one_in = tag->chosen;
            record->user = (struct prcb_user_registers){};
            record->ns = cell->ns - tag->chosen_base;
            bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
        } else {
            __sync_fetch_and_add(&chosen_lost, 1);
        }
    }
    tag->chosen = 0;
    return 0;
}

/* Copies the list of the thread that a clock's event interrupts. That is no NMI, and switches have
 * interrupts off: it never runs in the middle of a switch's programs. */
SEC("perf_event")
int prcb_ran(struct sample_context *ctx)
{
    struct tag *tag = bpf_task_storage_get(&tags, bpf_get_current_task_btf(), NULL, 0);
    const struct prcb_account_block *account = tag ? account_of(&tag->profiles[0]) : NULL;
    const struct prcb_bpf_chain *chain = account ? chain_of(tag, account) : NULL;
    struct prcb_ran_record *record =
        chain && chain->head ? bpf_ringbuf_reserve(&ran_ring, sizeof(*record), 0) : NULL;

    if (!record)
        return 1;
    record->time_ns = bpf_ktime_get_ns();
    record->pc = REGISTER(ctx, IP);
    record->tid = account->tid;
    record->pid = account->pid;
    copy_chain(chain, &record->list);
    if (!is_chain_of(chain, tag->profiles[0].slot, account))
        record->list.count = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 1; /* the event is reported all the same */
}

static __always_inline void choose_out(struct switching *s, struct prcb_account_block *account)
{
    if (config.chosen)
        choose(s->tag, account, s);
}

static __always_inline void choose_in(struct switching *s, struct prcb_account_block *account)
{
    if (config.chosen && s->tag->chosen)
        end_chosen(s->tag, account);
}

#endif
