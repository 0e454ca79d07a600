/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The blocks as the eBPF compiler laid them out (the type information of the built
 * object, given as the argument) against the same header as this compiler does: every
 * member, its offset and size, and none more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "block_abi.h"
#include "processor_abi.h"

struct member {
    const char *name;
    size_t offset, size;
};

#define M(type, name)                                                                              \
    {                                                                                              \
#name, offsetof(struct type, name), sizeof(((struct type *)0)->name)                       \
    }

static const struct member wait_cell[] = {M(prcb_wait_cell, count), M(prcb_wait_cell, ns)};

#define A(name) M(prcb_account_block, name)
static const struct member account[] = {
    A(seq),
    A(generation),
    A(run_ns),
    A(stamp),
    A(nvcsw),
    A(nivcsw),
    A(own_switches),
    A(state),
    A(cause),
    A(wants),
    A(cpu),
    A(ready_ns),
    A(run_delay),
    A(sum_exec),
    A(migrations),
    A(repaired),
    A(last_syscall),
    A(guess),
    A(enabled),
    A(base_nvcsw),
    A(base_nivcsw),
    A(base_migrations),
    A(tid),
    A(pid),
    A(thread_flags),
    A(comm_seq),
    A(comm),
    /* Of next_free and unclear_wakes, which have no name together. */
    {"", offsetof(struct prcb_account_block, unclear_wakes), sizeof(uint32_t)},
    A(run_cpu),
    A(interrupted_ns),
    A(interrupt_base),
    A(user),
    A(cgroup),
    A(object),
    A(waits),
};
#undef A

#define H(name) M(prcb_head_block, name)
static const struct member head[] = {
    H(magic),
    H(abi_major),
    H(abi_minor),
    H(head_size),
    H(account_size),
    H(account_stride),
    H(account_count),
    H(features),
    H(writer_pid),
    H(untracked),
    H(clock_offset),
    H(account_used),
    H(writer),
    H(ended),
    H(tail_processors),
    H(switch_processors),
    H(switch_elements),
    H(pad),
    H(pad1),
};
#undef H

#define P(name) M(prcb_processor_block, name)
static const struct member processor[] = {
    P(seq),        P(state),        P(beneath),      P(hard_depth), P(stamp),      P(nested_ns),
    P(folded_ns),  P(interrupt_ns), P(dpc_ns),       P(idle_ns),    P(busy_ns),    P(user_ns),
    P(kernel_ns),  P(steal_ns),     P(started),      P(offline_ns), P(user_share), P(idle_state),
    P(interrupts), P(dpcs),         P(switches),     P(seen),       P(irq),        P(soft_vector),
    P(pad1),       P(clock_offset), P(idle_entries), P(pad2),       P(idle),       P(pad3),
};
#undef P

static const char *object_path;

static void assert_same(const char *type_name, size_t size, const struct member *members,
                        size_t count)
{
    struct btf *btf = btf__parse(object_path, NULL);
    const struct btf_type *type;
    const struct btf_member *there;
    int id;

    assert_int_equal(libbpf_get_error(btf), 0);
    id = btf__find_by_name_kind(btf, type_name, BTF_KIND_STRUCT);
    assert_true(id > 0);
    type = btf__type_by_id(btf, (__u32)id);
    assert_int_equal(type->size, size);
    assert_int_equal(btf_vlen(type), count);
    there = btf_members(type);
    for (size_t i = 0; i < count; i++) {
        const char *name = btf__name_by_offset(btf, there[i].name_off);

        assert_string_equal(name, members[i].name);
        if (btf_member_bit_offset(type, (__u32)i) != members[i].offset * 8 ||
            btf__resolve_size(btf, there[i].type) != (__s64)members[i].size)
            fail_msg("%s.%s: bit %u, %lld bytes in the object; byte %zu, %zu bytes here", type_name,
                     name, btf_member_bit_offset(type, (__u32)i),
                     (long long)btf__resolve_size(btf, there[i].type), members[i].offset,
                     members[i].size);
    }
    btf__free(btf);
}

static void test_wait_cell(void **state)
{
    assert_same("prcb_wait_cell", sizeof(struct prcb_wait_cell), wait_cell,
                sizeof(wait_cell) / sizeof(wait_cell[0]));
}

static void test_account(void **state)
{
    assert_same("prcb_account_block", sizeof(struct prcb_account_block), account,
                sizeof(account) / sizeof(account[0]));
}

static void test_head(void **state)
{
    assert_same("prcb_head_block", sizeof(struct prcb_head_block), head,
                sizeof(head) / sizeof(head[0]));
}

static void test_processor(void **state)
{
    assert_same("prcb_processor_block", sizeof(struct prcb_processor_block), processor,
                sizeof(processor) / sizeof(processor[0]));
}

/* Only what a switch touches when nothing else changes lies on the first line. */
static void test_lines(void **state)
{
    assert_int_equal(sizeof(struct prcb_account_block) % 64, 0);
    assert_int_equal(offsetof(struct prcb_account_block, waits) % 64, 0);
    assert_in_range(offsetof(struct prcb_account_block, ready_ns) + 8, 1, 64);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_cell), cmocka_unit_test(test_account),
        cmocka_unit_test(test_head),      cmocka_unit_test(test_processor),
        cmocka_unit_test(test_lines),
    };

    if (argc != 2) {
        printf("usage: %s accounts.bpf.o\n", argv[0]);
        return 2;
    }
    object_path = argv[1];
    return cmocka_run_group_tests_name("block layout", tests, NULL, NULL);
}
