/* SPDX-License-Identifier: BSD-2-Clause */
#include "account_programs.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "bpf_load.h"
#include "bpf_run.h"
#include "error.h"

int bpf_explain_accounts(int code, struct prcb_error *err)
{
    if (bpf_lacked_memory(code))
        return prcb_fail(err, code, "no memory for the accounts: ask for fewer threads");
    return bpf_explain_load(code, err);
}

struct prcb_head_block bpf_account_head(uint32_t features, bool locks)
{
    return (struct prcb_head_block){
        .magic = PRCB_ABI_MAGIC,
        .abi_major = PRCB_ABI_MAJOR,
        .abi_minor = PRCB_ABI_MINOR,
        .head_size = sizeof(struct prcb_head_block),
        .account_size = sizeof(struct prcb_account_block),
        .account_stride = sizeof(struct prcb_account_block),
        .features = features | (locks ? PRCB_FEATURE_LOCKS : 0),
        .writer_pid = (__u32)getpid(),
        .clock_offset = features & PRCB_FEATURE_RQ_CLOCK ? PRCB_OFFSET_UNKNOWN : 0,
        .writer = PRCB_VERSION,
    };
}

static bool offset_is_known(const struct prcb_head_block *head)
{
    return __atomic_load_n(&head->clock_offset, __ATOMIC_RELAXED) != PRCB_OFFSET_UNKNOWN;
}

/* The offset between the writer's clock and ours comes from switches: make some,
 * enough that the smallest difference is near the true one. */
int bpf_settle_clock(const struct prcb_head_block *head, uint32_t *calibrating,
                     struct prcb_error *err)
{
    /* As short as there is; where no switch is seen, longer ones. */
    const struct timespec pauses[] = {{.tv_nsec = 1}, {.tv_nsec = 300000}};

    if (!(head->features & PRCB_FEATURE_RQ_CLOCK))
        return 0;
    *calibrating = 1;
    for (int i = 0; i < 8 || (i < 1000 && !offset_is_known(head)); i++)
        nanosleep(&pauses[i >= 8], NULL);
    *calibrating = 0;
    if (!offset_is_known(head))
        return prcb_fail(err, -EIO,
                         "the sched_switch program does not run: is BPF held back by the kernel "
                         "(kernel.ftrace_enabled, lockdown)?");
    return 0;
}

int bpf_register_pass(bool *narrow, int program, struct prcb_bpf_request *request,
                      struct prcb_bpf_request *asked, __u32 number, unsigned pass, bool *ret_again)
{
    bool process = asked->what == PRCB_REGISTER_PROCESS, cut;
    int result;

    asked->last = pass == PRCB_REGISTER_PASSES - 1;
    if (asked->last)
        number = 0; /* over all tasks: never cut short */
    *request = *asked;
    result =
        bpf_run_iterator(narrow, program, asked->what == PRCB_REGISTER_THREAD ? (pid_t)number : 0,
                         process ? (pid_t)number : 0);
    if (result && result != -ESRCH) /* nothing was seen: the caller says what */
        return result;
    cut = process && number && *narrow && request->cut;
    *ret_again = !asked->last && (cut || request->again);
    return 0;
}
