/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The user registers in an account are those with which the thread waits: as procfs shows them,
 * and for the frame pointer, which procfs does not show, a value that the waiter chose. The
 * kernel's part of its stack has the functions that /proc/PID/stack shows. A list in a thread's
 * memory is copied as it runs.
 */
#include "harness.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define CHOSEN 0x5a5a1234abcd5678ull
#define TRIES  5000 /* 1 ms each */

/* pause(), with a frame pointer that is none. */
static void pause_with_chosen(void)
{
#if defined(__x86_64__)
    __asm__ volatile("push %%rbp\n\t"
                     "mov %0, %%rbp\n\t"
                     "syscall\n\t"
                     "pop %%rbp"
                     :
                     : "r"(CHOSEN), "a"(SYS_pause)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register uint64_t number __asm__("x8") = SYS_ppoll;
    register uint64_t a0 __asm__("x0") = 0, a1 __asm__("x1") = 0, a2 __asm__("x2") = 0;
    register uint64_t a3 __asm__("x3") = 0;

    __asm__ volatile("stp x29, x30, [sp, #-16]!\n\t"
                     "mov x29, %5\n\t"
                     "svc #0\n\t"
                     "ldp x29, x30, [sp], #16"
                     : "+r"(a0)
                     : "r"(number), "r"(a1), "r"(a2), "r"(a3), "r"(CHOSEN)
                     : "memory");
#endif
}

static int wait_always(void *unused)
{
    for (;;)
        pause_with_chosen();
    return 0;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Of a thread in a system call; 0: it is in none yet. */
static bool procfs_registers(pid_t pid, uint64_t *ret_sp, uint64_t *ret_pc)
{
    char path[64], line[256] = "";
    FILE *file;
    bool known;

    snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
    file = fopen(path, "re");
    known = file && fgets(line, sizeof(line), file) &&
            sscanf(line, "%*d %*x %*x %*x %*x %*x %*x %lx %lx", ret_sp, ret_pc) == 2;
    if (file)
        fclose(file);
    return known;
}

/* The account once the thread was switched out for good. */
static struct prcb_account await_registers(struct prcb *p, pid_t pid, bool wanted)
{
    struct prcb_account a = must_find(p, pid);

    /* A switch that is seen: registered while it waits, it has made none yet. */
    kill(pid, SIGSTOP);
    kill(pid, SIGCONT);
    for (int i = 0; i < TRIES; i++, nap()) {
        a = must_find(p, pid);
        /* As it was when it ran, or was ready, is not as it waits now: the kernel's state is the
         * later one. */
        if (a.switches && !(a.flags & PRCB_ACCOUNT_RUNNING) && a.open.cause > PRCB_CAUSE_YIELD &&
            a.open.cause != PRCB_CAUSE_STOPPED && kernel_state(pid, pid) == 'S' &&
            (!wanted || a.present & PRCB_HAS_REGISTERS))
            break;
    }
    return a;
}

static void test_registers_are_those_of_the_wait(void **state)
{
    struct prcb *p = session_open_flags(64, PRCB_OPEN_REGISTERS);
    pid_t child = child_start(wait_always, NULL);
    struct prcb_account a;
    uint64_t sp = 0, pc = 0;

    must_profile_process(p, child, PRCB_FOLLOW_NONE);
    a = await_registers(p, child, true);
    if (!procfs_registers(child, &sp, &pc))
        printf("    procfs does not show them: %s\n", strerror(errno));
    child_kill(child);
    assert_null(prcb_absent_reason(p, PRCB_HAS_REGISTERS));
    assert_true(a.present & PRCB_HAS_REGISTERS);
    assert_int_equal(a.registers.fp, CHOSEN);
    if (pc) {
        assert_int_equal(a.registers.pc, pc);
        assert_int_equal(a.registers.sp, sp);
    }
}

/* "[<0>] do_sys_pause+0x1c/0x30": without the scheduler's, which procfs leaves out. */
static void procfs_stack(pid_t pid, char *ret, size_t size)
{
    char path[64], line[256], name[128];
    size_t used = 0;
    FILE *file;

    *ret = '\0';
    snprintf(path, sizeof(path), "/proc/%d/stack", pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "[<%*x>] %127[^+\n]", name) == 1)
            used += (size_t)snprintf(ret + used, size - used, "%s\n", name);
    }
    if (file)
        fclose(file);
}

static void test_the_kernels_part(void **state)
{
    struct prcb *p = session_open_flags(64, PRCB_OPEN_REGISTERS);
    pid_t child = child_start(wait_always, NULL);
    char text[4096] = "", few[64] = "", witness[4096];
    struct prcb_error err = {.text = ""};
    struct prcb_account a;
    int result;

    must_profile_process(p, child, PRCB_FOLLOW_NONE);
    a = await_registers(p, child, true);
    result = prcb_kernel_stack(p, a.key, child, text, sizeof(text), &err);
    if (result == -EOPNOTSUPP) {
        child_kill(child);
        print_message("    %s\n", err.text);
        return;
    }
    assert_int_equal(result, 0);
    procfs_stack(child, witness, sizeof(witness));
    assert_int_equal(prcb_kernel_stack(p, a.key, child, few, sizeof(few), &err), 0);
    assert_int_equal(prcb_kernel_stack(p, a.key + (1ull << 32), child, text + 2048, 2048, &err),
                     -ESRCH);
    child_kill(child);
    assert_null(strstr(text, "0x"));
    assert_true(!*witness || strstr(text, witness));
    /* Whole lines of the same. */
    assert_true(*few && few[strlen(few) - 1] == '\n' && !strncmp(text, few, strlen(few)));
}

/* Of a thread that waits, in a session that asked for nothing more. */
static struct prcb_account await_plain(struct prcb *p)
{
    pid_t child = child_start(wait_always, NULL);
    struct prcb_account a;

    must_profile_process(p, child, PRCB_FOLLOW_NONE);
    a = await_registers(p, child, false);
    child_kill(child);
    return a;
}

static void test_not_kept_unless_asked_for(void **state)
{
    struct prcb *p = session_open(64);
    struct prcb_account a = await_plain(p);

    assert_true(a.switches > 0);
    assert_false(a.present & PRCB_HAS_REGISTERS);
    assert_int_equal(a.registers.pc, 0);
    assert_non_null(strstr(prcb_absent_reason(p, PRCB_HAS_REGISTERS), "PRCB_OPEN_REGISTERS"));
}

static int read_from(void *ctx)
{
    const int *fd = ctx;
    char byte;

    while (read(*fd, &byte, 1) < 0)
        ;
    return 0;
}

/* Which file a thread reads from. */
static void test_objects_are_the_files(void **state)
{
    struct prcb *p = session_open_flags(64, PRCB_OPEN_OBJECTS);
    struct prcb_account a;
    struct stat about;
    int pipes[2];
    pid_t child;

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fstat(pipes[0], &about), 0);
    child = child_start(read_from, &pipes[0]);
    must_profile_process(p, child, PRCB_FOLLOW_NONE);
    a = await_registers(p, child, false);
    child_kill(child);
    close(pipes[0]);
    close(pipes[1]);
    assert_null(prcb_absent_reason(p, PRCB_HAS_OBJECT));
    assert_true(a.present & PRCB_HAS_OBJECT);
    assert_int_equal(a.open.cause, PRCB_CAUSE_PIPE);
    assert_int_equal(a.object.inode, about.st_ino);
    assert_int_equal(a.object.device, major(about.st_dev) << 20 | minor(about.st_dev));
    assert_int_equal(a.object.descriptor, pipes[0]);
    assert_int_equal(a.object.lock, 0);
}

static void test_objects_are_not_kept_unless_asked_for(void **state)
{
    struct prcb *p = session_open(64);
    struct prcb_account a = await_plain(p);

    assert_false(a.present & PRCB_HAS_OBJECT);
    assert_int_equal(a.object.inode, 0);
    assert_non_null(strstr(prcb_absent_reason(p, PRCB_HAS_OBJECT), "PRCB_OPEN_OBJECTS"));
}

static void test_a_running_thread_has_none(void **state)
{
    struct prcb *p = session_open_flags(64, PRCB_OPEN_REGISTERS);
    struct prcb_thread *t = must_open(p, 0);

    assert_false(must_read(t).present & PRCB_HAS_REGISTERS);
    nap();
    assert_false(must_read(t).present & PRCB_HAS_REGISTERS);
}

/* A list as an interpreter's frames are one, of three nodes. */
struct node {
    struct node *next;
    uint64_t words[2];
    uint8_t byte;
};
struct list {
    uint64_t proof;
    struct node *first;
};

struct found {
    uint64_t count, began_ns;
};

static int take_ran(const struct prcb_ran *ran, void *ctx)
{
    struct found *found = ctx;

    found->count++;
    assert_int_equal(ran->tid, gettid());
    assert_int_equal(ran->pid, getpid());
    assert_in_range(ran->time_ns, found->began_ns, mono_ns());
    assert_int_equal(ran->node_count, 3);
    assert_int_equal(ran->whole, 1);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(ran->nodes[i].words[0], i);
        assert_int_equal(ran->nodes[i].words[1], 10 * i);
        assert_int_equal(ran->nodes[i].byte, 20 + i);
    }
    return 0;
}

/* An event of the calling thread's processor time, each millisecond. */
static int open_clock(void)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 1000000,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void test_a_list_as_its_thread_runs(void **state)
{
    struct prcb *p = session_open_flags(64, PRCB_OPEN_CHOSEN | PRCB_OPEN_RAN);
    struct prcb_thread *t = must_open(p, 0);
    struct node nodes[3];
    struct list list = {CHOSEN, nodes};
    struct found found = {.began_ns = mono_ns()};
    const struct prcb_chain chain = {
        .size = sizeof(chain),
        .head = (uintptr_t)&list,
        .proof = CHOSEN,
        .hop = PRCB_CHAIN_NONE,
        .first = offsetof(struct list, first),
        .words = {offsetof(struct node, words), offsetof(struct node, words) + 8},
        .byte = offsetof(struct node, byte),
    };
    int event = open_clock();

    for (uint64_t i = 0; i < 3; i++)
        nodes[i] = (struct node){i < 2 ? &nodes[i + 1] : NULL, {i, 10 * i}, (uint8_t)(20 + i)};
    assert_int_equal(prcb_chosen_chain(p, must_read(t).key, &chain, NULL), 0);
    assert_int_equal(ioctl(event, PERF_EVENT_IOC_SET_BPF, prcb_ran_program(p, NULL)), 0);
    for (int i = 0; i < TRIES && !found.count; i++) {
        const uint64_t until = mono_ns() + 2000000;

        while (mono_ns() < until)
            ;
        assert_int_equal(prcb_ran_read(p, take_ran, &found, NULL), 0);
    }
    assert_true(found.count);
    close(event);
    /* Another session copies none. */
    assert_int_equal(prcb_ran_program(session_open_flags(64, PRCB_OPEN_CHOSEN), NULL), -EOPNOTSUPP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BPF_TEST(test_registers_are_those_of_the_wait),
        BPF_TEST(test_the_kernels_part),
        BPF_TEST(test_not_kept_unless_asked_for),
        BPF_TEST(test_objects_are_the_files),
        BPF_TEST(test_objects_are_not_kept_unless_asked_for),
        BPF_TEST(test_a_running_thread_has_none),
        BPF_TEST(test_a_list_as_its_thread_runs),
    };

    return BPF_RUN("registers", tests);
}
