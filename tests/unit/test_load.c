/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is said of eBPF programs that the kernel refused, from words as libbpf has them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_load.h"

static libbpf_print_fn_t listener;

static void say(enum libbpf_print_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    listener(level, format, args);
    va_end(args);
}

/* An attempt begins. */
static int begin(void **state)
{
    libbpf_print_fn_t before = bpf_listen();

    listener = libbpf_set_print(before);
    return 0;
}

static int fresh(void **state)
{
    bpf_forget_log();
    return begin(state);
}

static const char *explained(int code, int expected)
{
    static struct prcb_error err;

    memset(&err, 0, sizeof(err));
    assert_int_equal(bpf_explain_load(code, &err), expected);
    assert_int_equal(err.code, expected);
    assert_null(strchr(err.text, '\n'));
    return err.text;
}

static void program_and_reason(void **state)
{
    say(LIBBPF_DEBUG, "libbpf: prog 'other': a word of no meaning\n");
    say(LIBBPF_WARN, "libbpf: prog '%s': BPF program load failed: Permission denied\n",
        "prcb_tick_exit");
    say(LIBBPF_WARN, "libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n",
        "prcb_tick_exit",
        "0: (bf) r6 = r1\n"
        "1: (79) r1 = *(u64 *)(r10 -24)\n"
        "invalid read from stack R10 off -24+0 size 8\n"
        "processed 2 insns (limit 1000000) max_states_per_insn 0\n");
    say(LIBBPF_WARN, "libbpf: prog 'prcb_tick_exit': failed to load: -13\n");
    assert_string_equal(explained(-EACCES, -EOPNOTSUPP),
                        "the kernel refused the eBPF program prcb_tick_exit: invalid read from "
                        "stack R10 off -24+0 size 8");
    assert_non_null(strstr(bpf_last_log(), "1: (79) r1"));
    assert_false(bpf_lacked_memory(-ENOMEM));
    bpf_forget_log();
    assert_null(bpf_last_log());
}

static void refuse(const char *program, const char *why)
{
    say(LIBBPF_WARN, "libbpf: prog '%s': BPF program load failed: Invalid argument\n", program);
    say(LIBBPF_WARN, "libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\n%s\n-- END PROG LOAD LOG --\n",
        program, why);
}

/* A session makes several attempts: each has its own reason, and the first refused one's log stays.
 */
static void first_log_is_kept(void **state)
{
    refuse("prcb_tick_exit", "5: the first");
    begin(state);
    assert_non_null(strstr(bpf_last_log(), "the first"));
    refuse("prcb_switch",
           "failed to resolve CO-RE relocation <byte_off> [12] struct rq.clock (0:3 @ offset 40)");
    assert_string_equal(
        explained(-EINVAL, -EOPNOTSUPP),
        "the kernel refused the eBPF program prcb_switch: this kernel has no struct "
        "rq.clock as it is read here");
    assert_null(strstr(bpf_last_log(), "rq.clock"));
    begin(state);
    /* Of an attempt that left none, for which there were no rights. */
    assert_non_null(strstr(explained(-EPERM, -EPERM), "CAP_BPF"));
    assert_non_null(strstr(bpf_last_log(), "the first"));
    bpf_forget_log();
    refuse("prcb_switch", "6: the second");
    assert_non_null(strstr(bpf_last_log(), "the second"));
}

static void member_that_is_not_there(void **state)
{
    say(LIBBPF_WARN, "libbpf: prog 'prcb_switch': BPF program load failed: Invalid argument\n");
    say(LIBBPF_WARN,
        "libbpf: prog 'prcb_switch': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n",
        "5: <invalid CO-RE relocation>\n"
        "failed to resolve CO-RE relocation <byte_off> [12] struct task_struct.on_cpu (0:3 @ "
        "offset "
        "40)\n"
        "processed 6 insns (limit 1000000)\n");
    assert_string_equal(
        explained(-EINVAL, -EOPNOTSUPP),
        "the kernel refused the eBPF program prcb_switch: this kernel has no struct "
        "task_struct.on_cpu as it is read here");
}

static void long_logs_are_cut(void **state)
{
    char *log = malloc(1 << 20), *at = log;

    assert_non_null(log);
    for (int i = 0; i < 10000; i++)
        at += sprintf(at, "%d: (b7) r1 = %d\n", i, i);
    strcpy(at, "R1 is what it must not be\n");
    say(LIBBPF_WARN, "prog 'p': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n", log);
    assert_string_equal(explained(-EINVAL, -EOPNOTSUPP),
                        "the kernel refused the eBPF program p: R1 is what it must not be");
    assert_true(strlen(bpf_last_log()) < 4096);
    assert_non_null(strstr(bpf_last_log(), "9999: "));
    free(log);
}

static void no_log(void **state)
{
    say(LIBBPF_WARN, "libbpf: map 'account_map': failed to create: Cannot allocate memory(-12)\n");
    assert_true(bpf_lacked_memory(-ENOMEM));
    assert_string_equal(explained(-ENOMEM, -ENOMEM),
                        "the kernel refused the eBPF map account_map: Cannot allocate memory");
    begin(state);
    assert_string_equal(explained(-E2BIG, -E2BIG),
                        "the kernel refused the eBPF programs: Argument list too long");
    assert_non_null(strstr(explained(-EPERM, -EPERM), "CAP_BPF"));
    /* An end is missing, and a name. */
    say(LIBBPF_WARN, "prog 'x\n");
    say(LIBBPF_WARN, "-- BEGIN PROG LOAD LOG --\n%s", "");
    say(LIBBPF_WARN, "-- BEGIN PROG LOAD LOG --\nno end of the line");
    assert_non_null(strstr(explained(-EINVAL, -EOPNOTSUPP), "no end of the line"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(program_and_reason, fresh),
        cmocka_unit_test_setup(first_log_is_kept, fresh),
        cmocka_unit_test_setup(member_that_is_not_there, fresh),
        cmocka_unit_test_setup(long_logs_are_cut, fresh),
        cmocka_unit_test_setup(no_log, fresh),
    };

    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
